-- bench/http/post.lua: wrk posts binary v2 tensors and prints what it saw as one line of JSON.
--
--   wrk ... -s bench/http/post.lua URL -- N COUNT
--
-- Every request carries COUNT matrices of N x N FP64, well-conditioned and different from thread to
-- thread; the inverses are asked for in binary. The same requests go to the daemon and to the echo
-- next to it. Answers other than 2xx are counted as errors.
local ffi = require("ffi")

local threads = 0

function setup(thread)
    thread:set("id", threads)
    threads = threads + 1
end

function init(args)
    local n, count = tonumber(args[1]), tonumber(args[2])
    local elements = n * n * count
    local data = ffi.new("double[?]", elements)
    math.randomseed(1000 + id)
    for i = 0, elements - 1 do
        local row, column = math.floor(i / n) % n, i % n
        data[i] = math.random() - 0.5 + (row == column and n / 2 or 0)
    end
    local head = string.format(
        '{"inputs":[{"name":"A","shape":[%d,%d,%d],"datatype":"FP64",' ..
        '"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}',
        count, n, n, elements * 8)
    wrk.method = "POST"
    wrk.body = head .. ffi.string(data, elements * 8)
    wrk.headers["Inference-Header-Content-Length"] = tostring(#head)
    wrk.headers["Content-Type"] = "application/octet-stream"
end

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '{"requests": %d, "seconds": %.6f, "errors": %d, "p50_us": %.1f, "p90_us": %.1f, ' ..
        '"p99_us": %.1f, "max_us": %.1f}\n',
        summary.requests, summary.duration / 1e6,
        e.connect + e.read + e.write + e.status + e.timeout,
        latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max))
end
