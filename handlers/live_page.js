
"use strict";
(() => {
    const POINTS = 300, RETRY_MAX_MS = 30000, JOBS_SHOWN = 10;
    const find = (id) => document.getElementById(id);
    const charts = {}; /* name: the last numbers */
    const seen = {}; /* id of a job that runs: how far it was when it was first seen, and when */
    let token = "", current = 0; /* current: which of the streams that were begun is wanted */

    const ask = (path, more) => fetch(path, {
        headers: token === "" ? {} : { Authorization: "Bearer " + token },
        cache: "no-store", credentials: "omit", ...more,
    });

    /* ---- Numbers as text ---- */

    function short(value, units) {
        const size = Math.abs(value);
        if (size === 0)
            return "0";
        for (const [bound, unit] of units)
            if (size >= bound) {
                const scaled = value / bound;
                return (scaled >= 100 ? scaled.toFixed(0) : scaled.toPrecision(3)) + unit;
            }
        return value.toPrecision(2);
    }
    const forms = {
        count: (v) => short(v, [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]]),
        whole: (v) => v < 1e4 ? String(v) : forms.count(v),
        seconds: (v) => short(v, [[1, " s"], [1e-3, " ms"], [1e-6, " \u00b5s"]]),
        bytes: (v) => short(v, [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"],
                                [2 ** 10, " KiB"], [1, " B"]]),
        share: (v) => (100 * v).toFixed(v < 0.1 ? 1 : 0) + " %",
        small: (v) => v === 0 ? "0" : v.toExponential(1),
        time: (v) => v < 120 ? v.toFixed(0) + " s" : v < 7200 ? (v / 60).toFixed(0) + " min"
            : v < 172800 ? (v / 3600).toFixed(0) + " h" : (v / 86400).toFixed(0) + " days",
    };
    forms.long = (v) => v < 10 ? forms.seconds(v) : forms.time(v);
    const at = (document, path) => path.split(".").reduce((part, name) => part[name], document);
    const say = (value, form) => value === null || value === undefined ? "\u2013"
        : forms[form](value);

    /* ---- Charts ---- */

    function push(name, value) {
        charts[name] = charts[name] || [];
        charts[name].push(value);
        charts[name].splice(0, charts[name].length - POINTS);
    }

    function line(values, top, kind) {
        const points = values.map((value, i) => value === null ? null
            : `${(300 - values.length + i + 1).toFixed(0)},${(78 - 76 * value / top).toFixed(1)}`);
        return `<polyline class="${kind}" points="${points.filter((p) => p !== null).join(" ")}"/>`;
    }

    function draw(figure) {
        const names = figure.dataset.lines.split(" "), form = figure.dataset.form;
        const all = names.map((name) => charts[name] || []);
        const top = Math.max(1e-9, ...all.flat().filter((value) => value !== null));
        const svg = figure.querySelector("svg");
        svg.innerHTML = all.map((values, i) => line(values, top, i ? "second" : "first")).join("");
        figure.querySelector(".top").textContent = "peak " + forms[form](top <= 1e-9 ? 0 : top);
        svg.setAttribute("aria-label", figure.querySelector(".name").textContent + ": now "
            + all.map((values) => say(values[values.length - 1], form)).join(" and ")
            + ", peak " + forms[form](top <= 1e-9 ? 0 : top));
    }

    /* rows: [label, count] */
    function bars(figure, rows) {
        const top = Math.max(1, ...rows.map((row) => row[1])), width = 300 / Math.max(rows.length, 8);
        figure.querySelector("svg").innerHTML = rows.map((row, i) => {
            const height = row[1] === 0 ? 0 : Math.max(1.5, 78 * row[1] / top);
            return `<rect x="${(i * width + 1).toFixed(1)}" y="${(80 - height).toFixed(1)}" `
                + `width="${Math.max(1, width - 2).toFixed(1)}" height="${height.toFixed(1)}">`
                + `<title>${row[0]}: ${row[1]}</title></rect>`;
        }).join("");
        const said = rows.filter((row) => row[1] > 0).map((row) => `${row[0]}: ${row[1]}`);
        figure.querySelector("svg").setAttribute("aria-label",
            figure.querySelector(".name").textContent + ". " + (said.join(", ") || "nothing yet"));
        figure.querySelector(".top").textContent = said.length > 0 ? said[0] : "nothing yet";
        if (said.length > 1)
            figure.querySelector(".top").textContent += " \u2026 " + said[said.length - 1];
    }

    /* ---- The document ---- */

    function fill(table, rows) {
        table.tBodies[0].replaceChildren(...rows.map((cells) => {
            const row = document.createElement("tr");
            row.append(...cells.map((text, i) => {
                const cell = document.createElement(i ? "td" : "th");
                if (i === 0)
                    cell.scope = "row";
                cell.append(text);
                return cell;
            }));
            return row;
        }));
    }

    function show(status) {
        for (const element of document.querySelectorAll("[data-at]"))
            element.textContent = say(at(status, element.dataset.at), element.dataset.as);
        fill(find("devices"), status.devices.map((d) => [d.device, d.up ? "up" : "down", d.model,
            say(d.busy.second, "share"), say(d.busy.minute, "share"),
            say(d.inversions.second, "count")]));
        for (const figure of document.querySelectorAll("[data-lines]"))
            draw(figure);
        bars(find("sizes"), status.batches.sizes.map((row) => [row.from === row.to ? row.to
            : row.to === null ? row.from + " or more" : row.from + " to " + row.to, row.batches]));
        bars(find("rcond"), status.accuracy.rcond.map((row) => [row.from === 0 ? "below 1e-18"
            : "from " + row.from.toExponential(0), row.total]));
        if (status.jobs.kept)
            showJobs();
    }

    function barOf(job) {
        const element = document.createElement("progress"), part = document.createElement("span");
        element.max = 100;
        element.value = job.progress;
        element.setAttribute("aria-label", "Job " + job.id.slice(0, 8));
        part.append(element, " " + job.progress + " %");
        return part;
    }

    /* Of one that runs what is left, by how fast it went since it was first seen here. */
    function timeOf(job) {
        const past = (from, to) => Math.max(0, Date.parse(to) - Date.parse(from)) / 1000;
        if (job.status === "successful" || job.status === "failed")
            return job.started === null ? "" : "took " + forms.long(past(job.started, job.finished));
        if (job.status === "accepted")
            return "waits for its turn";
        const now = performance.now() / 1000, first = seen[job.id];
        if (first === undefined || job.attempt !== first.attempt)
            seen[job.id] = { at: now, progress: job.progress, attempt: job.attempt };
        else if (job.progress > first.progress)
            return "some " + forms.time((100 - job.progress) * (now - first.at)
                / (job.progress - first.progress)) + " left";
        return "";
    }

    async function showJobs() {
        try {
            const answer = await ask("/v1/jobs?limit=" + JOBS_SHOWN);
            if (!answer.ok)
                return; /* this token has not the role */
            const jobs = (await answer.json()).jobs, table = find("jobs");
            table.parentNode.hidden = jobs.length === 0;
            for (const id of Object.keys(seen))
                if (!jobs.some((job) => job.id === id && job.status === "running"))
                    delete seen[id];
            fill(table, jobs.map((job) => [job.id.slice(0, 8), job.status,
                job.status === "running" ? barOf(job) : job.progress + " %", timeOf(job),
                job.method, `${forms.whole(job.batch)} of order ${job.n}`]));
        } catch (error) {
            /* the next event comes back to it */
        }
    }

    function note(status) {
        push("requests", status.rates.requests.second);
        push("inversions", status.rates.inversions.second);
        push("p50_s", status.latency.p50_s);
        push("p99_s", status.latency.p99_s);
        push("waiting", status.queue.waiting);
        const busy = status.devices.map((device) => device.busy.second);
        push("busy", busy.length ? busy.reduce((a, b) => a + b) / busy.length : 0);
        show(status);
    }

    /* ---- The stream ---- */

    function state(text, kind) {
        const element = find("state");
        if (element.textContent === text)
            return; /* said once to who listens to the page */
        element.textContent = text;
        element.className = kind;
    }

    async function read(body, mine) {
        const reader = body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ;) {
            const { value, done } = await reader.read();
            if (done || mine !== current)
                return reader.cancel();
            const events = (rest + value).split("\n\n");
            rest = events.pop();
            for (const event of events)
                for (const text of event.split("\n"))
                    if (text.startsWith("data: "))
                        note(JSON.parse(text.slice(6)));
        }
    }

    async function follow() {
        const mine = ++current;
        for (let wait = 1000; mine === current; wait = Math.min(2 * wait, RETRY_MAX_MS)) {
            try {
                const past = await ask("/v1/status?history=" + POINTS);
                if (past.status === 401 || past.status === 403)
                    return state("The service no longer lets this page in.", "bad");
                const status = await past.json();
                for (const name of Object.keys(status.history))
                    charts[name] = status.history[name];
                show(status);
                const answer = await ask("/v1/events");
                if (answer.ok) {
                    state("Live: a new figure every second.", "good");
                    wait = 500;
                    await read(answer.body, mine);
                }
            } catch (error) {
                /* the service is away */
            }
            if (mine === current)
                state("Not connected; trying again.", "bad");
            await new Promise((good) => setTimeout(good, wait));
        }
    }

    /* ---- The token ---- */

    /* Puts the body of another page of this service, or its text, into this one. Scripts of a
     * document that was parsed so do not run. Links become buttons: in a tab of its own a link
     * would be followed without the token. */
    function put(type, text) {
        const shown = find("shown");
        ++current;
        if (type.startsWith("text/html")) {
            const page = new DOMParser().parseFromString(text, "text/html");
            for (const script of page.querySelectorAll("script"))
                script.remove();
            for (const link of page.querySelectorAll("a")) {
                const button = page.createElement("button");
                button.className = "link";
                button.value = link.getAttribute("href");
                button.textContent = link.textContent;
                link.replaceWith(button);
            }
            shown.replaceChildren(...document.importNode(page.body, true).childNodes);
            follow();
        } else {
            const pre = document.createElement("pre");
            pre.tabIndex = 0;
            pre.textContent = text;
            shown.replaceChildren(pre);
        }
    }

    async function open(path) {
        try {
            const answer = await ask(path);
            const text = await answer.text();
            if (answer.status === 401)
                throw new Error("The service does not know this token.");
            if (!answer.ok)
                throw new Error(JSON.parse(text).detail || JSON.parse(text).error);
            find("form").hidden = true;
            find("message").textContent = "";
            put(answer.headers.get("Content-Type") || "", text);
        } catch (error) {
            find("message").textContent = error.message;
        }
    }

    if (find("form") === null) {
        follow();
        return;
    }
    find("form").addEventListener("submit", (event) => {
        event.preventDefault();
        token = find("token").value.trim();
        find("token").value = "";
        open("/");
    });
    find("shown").addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button === null)
            return;
        history.pushState(null, "");
        open(button.value);
    });
    addEventListener("popstate", () => {
        if (token !== "")
            open("/");
    });
})();
