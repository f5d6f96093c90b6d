/* bench/cuda/ism_steps.cu: the paper's Figure 5: how the time of BISM is shared by its steps, where
 * the block stays the same and n grows. A0 is diagonal, m = n/2. Beside it an update of a few
 * columns by a block of all of them, and of a known inverse.
 *
 * The device's time between the marks that the launcher's watch puts into the stream; each mark
 * takes it a microsecond or so, so that many small steps seem longer than they are.
 */
#include "bench/cuda/ism.cuh"

namespace
{

#define MARKS_MAX 4096
#define ROUNDS 3

const char *const step_names[CUDA_ISM_STEPS] = {"bring",  "begin",    "meet", "invert",
                                                "couple", "assemble", "try"};

/* Marks in the default stream. */
struct marks {
    cudaEvent_t events[MARKS_MAX];
    enum cuda_ism_step steps[MARKS_MAX];
    int count = 0;

    marks()
    {
        for (cudaEvent_t &event : events)
            SMALL_TRY(cudaEventCreate(&event));
    }
    ~marks()
    {
        for (cudaEvent_t &event : events)
            cudaEventDestroy(event);
    }
    marks(const marks &) = delete;
    marks &operator=(const marks &) = delete;
};

void put_mark(void *watcher, enum cuda_ism_step step)
{
    marks *of = (marks *)watcher;
    if (of->count == MARKS_MAX) {
        fprintf(stderr, "cuda_ism: more steps than there is room for\n");
        exit(2);
    }
    SMALL_TRY(cudaEventRecord(of->events[of->count]));
    of->steps[of->count++] = step;
}

/* Microseconds of each step, of the last round. */
template <typename T> void time_steps(bed<T> &of, double (&found)[CUDA_ISM_STEPS])
{
    static marks seen;
    struct cuda_ism_watch watch = {put_mark, &seen};
    for (int round = 0; round < ROUNDS; round++) {
        seen.count = 0;
        SMALL_TRY(cuda_ism_watched(&of.call, nullptr, &watch));
        put_mark(&seen, CUDA_ISM_STEPS);
        SMALL_TRY(cudaDeviceSynchronize());
    }
    for (double &microseconds : found)
        microseconds = 0;
    for (int i = 0; i + 1 < seen.count; i++) {
        float milliseconds;
        SMALL_TRY(cudaEventElapsedTime(&milliseconds, seen.events[i], seen.events[i + 1]));
        found[seen.steps[i]] += milliseconds * 1e3;
    }
}

void print_steps(enum kind kind, int64_t n, int64_t m, int64_t variant, int64_t block, FILE *csv)
{
    bed<double> of(kind, n, m, 1, variant, block);
    const char *a0 = kind == DIAGONAL ? "diagonal" : "inverse";
    double found[CUDA_ISM_STEPS], all = 0;
    time_steps(of, found);
    for (double microseconds : found)
        all += microseconds;
    printf("FP64 %5d %5d %-8s block %4d %9.1f us:", (int)n, (int)m, a0, (int)block, all);
    for (int step = 0; step < CUDA_ISM_STEPS; step++)
        printf(" %s %.1f (%.0f%%)", step_names[step], found[step], 100 * found[step] / all);
    printf("\n");
    fflush(stdout);
    for (int step = 0; csv && step < CUDA_ISM_STEPS; step++)
        fprintf(csv, "FP64,%d,%d,%s,%d,%s,%.2f\n", (int)n, (int)m, a0, (int)block, step_names[step],
                found[step]);
}

} // namespace

void ism_steps(FILE *csv)
{
    if (csv)
        fputs("precision,n,m,a0,block,step,us\n", csv);
    for (int64_t n : {1024, 2048, 4096, 8192})
        print_steps(DIAGONAL, n, n / 2, 2, 128, csv);
    for (int64_t n : {4096, 8192})
        for (enum kind kind : {DIAGONAL, INVERSE})
            print_steps(kind, n, 64, 0, 0, csv);
}
