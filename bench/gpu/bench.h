/* bench/gpu/bench.h: what the cases of all methods share: the table of subjects, what the command
 * line asks for, where figures go, memory of the device. C++, host code, one thread; an error of
 * CUDA or of a library ends the program.
 */
#ifndef BENCH_GPU_BENCH_H
#define BENCH_GPU_BENCH_H

#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "base/datatype.h"

/* Of the runtime's status, or of a library's: 0 is success. */
#define TRY(call) bench_try((call), #call, __FILE__, __LINE__)

static inline const char *bench_reason(cudaError_t status)
{
    return cudaGetErrorString(status);
}

template <typename Status> const char *bench_reason(Status)
{
    return "a library's status";
}

template <typename Status>
void bench_try(Status status, const char *call, const char *file, int line)
{
    if ((int)status == 0)
        return;
    fprintf(stderr, "%s:%d: %s: %s (%d)\n", file, line, call, bench_reason(status), (int)status);
    exit(2);
}

#define RATIO_MAX 15.0 /* of residuals; docs/numerics.md */

/* What is known of the numbers of a precision. */
template <typename T> struct number;

template <> struct number<float> {
    static constexpr enum precision precision = PRECISION_FP32;
    static constexpr double eps = FLT_EPSILON;
    static constexpr float largest = FLT_MAX;
    static constexpr int tiny = -115, huge = 122, denormal = -140; /* powers of two */
    static constexpr int small = -108, below_normal = -127;
    static constexpr double close = 1e-4; /* of nearly dependent rows */
    static constexpr long double denormal_step = 1.5e-45L;
};

template <> struct number<double> {
    static constexpr enum precision precision = PRECISION_FP64;
    static constexpr double eps = DBL_EPSILON;
    static constexpr double largest = DBL_MAX;
    static constexpr int tiny = -990, huge = 1017, denormal = -1060;
    static constexpr int small = -972, below_normal = -1023;
    static constexpr double close = 1e-10;
    static constexpr long double denormal_step = 5e-324L;
};

/* Device memory for `count` of U, all bytes 0xa5 at first; freed at the end of its scope. */
template <typename U> class device_array
{
  public:
    explicit device_array(size_t count) : bytes_((count ? count : 1) * sizeof(U))
    {
        TRY(cudaMalloc(&at_, bytes_));
        TRY(cudaMemset(at_, 0xa5, bytes_));
    }
    ~device_array()
    {
        cudaFree(at_);
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;

    U *at(size_t index) const
    {
        return (U *)at_ + index;
    }
    void put(const std::vector<U> &from, size_t offset = 0)
    {
        TRY(cudaMemcpy(at(offset), from.data(), from.size() * sizeof(U), cudaMemcpyHostToDevice));
    }
    std::vector<U> get(size_t offset, size_t count) const
    {
        std::vector<U> to(count);
        TRY(cudaMemcpy(to.data(), at(offset), count * sizeof(U), cudaMemcpyDeviceToHost));
        return to;
    }

  private:
    void *at_ = nullptr;
    size_t bytes_;
};

/* ---- Subjects ---- */

/* What the command line asks for. */
struct settings {
    bool quick = false;
    int64_t n = 0; /* of one order alone; 0: of all */
    int64_t n_max = INT64_MAX;
    int64_t matrices_max = INT64_MAX; /* of a batch that is checked */

    /* An order of a subject's own table. */
    bool wants(int64_t order) const
    {
        return (n == 0 || order == n) && order <= n_max;
    }

    /* The table's orders that are wanted; or n, whether it is in the table or not. */
    std::vector<int64_t> orders(const std::vector<int64_t> &table) const
    {
        std::vector<int64_t> found;
        for (int64_t order : n ? std::vector<int64_t>{n} : table) {
            if (order <= n_max)
                found.push_back(order);
        }
        return found;
    }
};

struct peer {
    const char *name;
    double value; /* in the figure's unit; 0: not measured */
};

/* Takes the figures of one subject. */
class recorder
{
  public:
    /* csv: NULL: figures are printed alone. origin: device, date and commit, as a row ends. */
    recorder(const char *subject, const std::string &origin, FILE *csv)
        : subject_(subject), origin_(origin), csv_(csv)
    {
    }

    /* Prints a line, each peer's value with it and its ratio to ours, and writes a row for each
     * peer. shape: "n=8 matrices=100", as many words as there is to say. */
    void add(const std::string &shape, enum precision precision, const std::string &what,
             double value, const char *unit, const std::vector<peer> &peers = {});

  private:
    const char *subject_;
    std::string origin_;
    FILE *csv_;
};

static inline std::string shape_of(int64_t n, int64_t matrices)
{
    return "n=" + std::to_string(n) + " matrices=" + std::to_string(matrices);
}

struct subject {
    const char *name, *what;
    int (*check)(const settings &); /* how many are wrong; NULL: nothing is checked */
    void (*time)(const settings &, recorder &);
    void (*ablate)(const settings &, recorder &); /* NULL: it has no special path */
    void (*ways)(const settings &, recorder &);   /* NULL: it is done in one way */
};

extern const struct subject lu_small_subject, arena_subject, lu_subject, tridiagonal_subject,
    passes_subject, products_subject, iterative_subject, ism_subject, updates_subject, auto_subject,
    structured_subject;

/* ism: one update, or one large matrix, for a profiler. */
void ism_once(int64_t n, int64_t m, enum precision precision, bool update);

#endif
