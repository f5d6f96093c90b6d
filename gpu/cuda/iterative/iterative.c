/* gpu/cuda/iterative/iterative.c: see iterative.h.
 *
 * A visit looks through the notes of a chunk, one byte a matrix, and launches for each action that
 * some matrices wait for: for the matrices between the first of them and the last, or, where they
 * are far apart, for each group of them. Others in between are computed with and left alone, which
 * costs less than launches do. A start or a step is followed by a measurement, and where that may
 * err by too much for the tolerance the matrix waits to be judged.
 *
 * What is next is known to the device before it is to the CPU. Where the device has said that more
 * steps of the same kind are sure to follow, a visit launches them too, each with its measurement.
 */
#include "gpu/cuda/iterative/iterative.h"

#include <string.h>

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/structured/transpose.h"
#include "gpu/cuda/base/workspace.h"
#include "gpu/methods/iterative.h"

#define CHUNK_MAX CUDA_NOTES_MAX

_Static_assert(2 * CHUNK_MAX <= CUDA_IDENTIFY_MATRICES_MAX, "A and V0 of a chunk");

/* ---- The workspace ---- */

/* Numbers from row to row: whole pieces of 128 bytes in FP64. */
static int64_t stride_of(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* What products of n x n need besides the matrices. */
static size_t products_bytes(const struct cuda__iter_call *call)
{
    struct cuda_product product = {
        .precision = call->precision, .rows = call->n, .columns = call->n, .inner = call->n};
    return cuda_product_scratch(&product);
}

/* What a matrix needs when A is identified, and V0, or V and R are measured. */
static size_t scratch_bytes(const struct cuda__iter_call *call)
{
    size_t identify = cuda_identify_bytes(call->precision, call->n, call->wishes.warm ? 2 : 1);
    size_t measure = cuda__iter_kernels_of(call->precision)->measure_bytes(call->n);
    return identify > measure ? identify : measure;
}

/* Lays the workspace out for `count` matrices, from `start` on. Returns its bytes; SIZE_MAX when
 * they are too many to count. */
static size_t lay_out(struct cuda__iter_call *call, int64_t count, unsigned char *start)
{
    struct cuda__iter_space *space = &call->space;
    int64_t unit = precision_bytes(call->precision);
    size_t scratch = scratch_bytes(call);
    struct cuda__walk walk = {.fits = scratch <= INT64_MAX};
    int64_t matrices =
        cuda__walk_take(&walk, CUDA__ITER_MATRICES * count, call->n * call->ld, unit);
    int64_t states = cuda__walk_take(
        &walk, count, (int64_t)cuda__iter_kernels_of(call->precision)->state_bytes, 1);
    int64_t identities = cuda__walk_take(&walk, 2 * count, sizeof *space->identities, 1);
    int64_t factors = cuda__walk_take(&walk, 2 * count, sizeof *space->factors, 1);
    int64_t history = cuda__walk_take(&walk, 2 * count, call->wishes.max_iterations, unit);
    int64_t items = cuda__walk_take(&walk, count, sizeof *space->items, 1);
    int64_t infos = cuda__walk_take(&walk, count, sizeof *space->infos, 1);
    int64_t equilibria = cuda__walk_take(&walk, count, sizeof *space->equilibria, 1);
    int64_t exponents = cuda__walk_take(&walk, 4 * count, call->n, sizeof *space->exponents);
    int64_t scratches = cuda__walk_take(&walk, count, (int64_t)scratch, 1);
    size_t of_products = products_bytes(call);
    int64_t last = cuda__walk_take(&walk, 1, (int64_t)of_products, 1);
    if (!walk.fits)
        return SIZE_MAX;
    *space = (struct cuda__iter_space){
        .count = count,
        .matrices = start + matrices,
        .states = (struct cuda__iter_state *)(void *)(start + states),
        .identities = (struct cuda_identity *)(void *)(start + identities),
        .factors = (double *)(void *)(start + factors),
        .history = start + history,
        .items = (struct cuda_item *)(void *)(start + items),
        .infos = (int32_t *)(void *)(start + infos),
        .equilibria = (struct cuda_equilibrium *)(void *)(start + equilibria),
        .exponents = (int32_t *)(void *)(start + exponents),
        .scratch = start + scratches,
        .products = of_products > 0 ? start + last : NULL,
    };
    return (size_t)walk.bytes;
}

/* What the call is, without its workspace. */
static struct cuda__iter_call read_call(const struct cuda_call *call)
{
    const int64_t *options = call->options;
    struct cuda__iter_call result = {
        .precision = call->precision,
        .n = call->n,
        .ld = stride_of(call->n),
        .wishes = {.max_iterations = options[METHOD_ITERATIVE_MAX_ITERATIONS],
                   .scheme = (int32_t)options[METHOD_ITERATIVE_SCHEME],
                   .initial = (int32_t)options[METHOD_ITERATIVE_INITIAL],
                   .warm = call->inputs & UINT32_C(1) << METHOD_ITERATIVE_V0,
                   .measures = call->wanted & (UINT32_C(1) << METHOD_ITERATIVE_RESIDUAL |
                                               UINT32_C(1) << METHOD_ITERATIVE_HISTORY)},
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
        .notes = call->d_notes,
    };
    memcpy(&result.wishes.tolerance, &options[METHOD_ITERATIVE_TOLERANCE],
           sizeof result.wishes.tolerance);
    return result;
}

static int64_t chunk_of(int64_t matrices)
{
    return matrices < CHUNK_MAX ? matrices : CHUNK_MAX;
}

size_t cuda_iterative_workspace(const struct cuda_call *call, int64_t matrices)
{
    struct cuda__iter_call of = read_call(call);
    return lay_out(&of, chunk_of(matrices), NULL);
}

/* Lays out as many matrices as the workspace holds; false: not even one. */
static bool settle(struct cuda__iter_call *of, const struct cuda_call *call)
{
    int64_t count = chunk_of(call->matrices);
    size_t one = lay_out(of, 1, call->workspace);
    if (call->workspace_bytes < one)
        return false;
    if (lay_out(of, count, call->workspace) > call->workspace_bytes)
        (void)lay_out(of, (int64_t)(call->workspace_bytes / one), call->workspace);
    return true;
}

/* ---- Runs ---- */

/* The next run of matrices from `from` on whose actions are among `actions`, a bit each, with gaps
 * of at most `gap` in between; false: there is none. */
static bool next_run(const struct cuda__iter_call *of, const uint8_t *next, uint32_t actions,
                     int64_t gap, int64_t from, struct cuda__iter_run *run)
{
    while (from < of->count && !(actions >> next[from] & 1))
        from++;
    int64_t end = from + 1;
    for (int64_t i = end; i < of->count && i - end <= gap; i++)
        end = actions >> next[i] & 1 ? i + 1 : end;
    *run = (struct cuda__iter_run){.first = from, .count = end - from};
    return from < of->count;
}

#define BIT(action) (UINT32_C(1) << (action))
#define STARTS                                                                                     \
    (BIT(CUDA__ITER_START_WARM) | BIT(CUDA__ITER_START_LOW) | BIT(CUDA__ITER_START_DIAGONAL) |     \
     BIT(CUDA__ITER_START_TRANSPOSE) | BIT(CUDA__ITER_START_IDENTITY))
#define STEPS (BIT(CUDA__ITER_LAST) - BIT(CUDA__ITER_STEP))
#define LASTS (BIT(CUDA__ITER_ACTIONS) - BIT(CUDA__ITER_LAST))
_Static_assert(CUDA__ITER_ACTIONS <= 1 << CUDA__ITER_NOTE_BITS, "a bit each");

/* ---- What a run goes through: each goes on with step->status ---- */

typedef cudaError_t pass(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);

static void go(struct cuda__iter_step *step, pass *kernel)
{
    if (step->status == cudaSuccess)
        step->status = kernel(step->call, step->run, step->stream);
}

/* Identifies A, and V0 where there are two sets; the identities go to place `to` of them. */
static void identify(struct cuda__iter_step *step, int sets, int to, bool scaled)
{
    const struct cuda__iter_call *of = step->call;
    const struct cuda__iter_space *space = &of->space;
    struct cuda_identification task = {
        .precision = of->precision,
        .n = of->n,
        .a = cuda__iter_at(of, CUDA__ITER_MATRIX_A, step->run),
        .count = step->run.count,
        .sets = sets,
        .set_step = space->count * of->n * of->ld,
        .factors = scaled ? space->factors + 2 * step->run.first : NULL,
        .to = space->identities + to * space->count + step->run.first,
        .to_step = space->count,
        .scratch = space->scratch,
    };
    if (step->status == cudaSuccess)
        step->status = cuda_identify(&task, step->stream);
}

static void start_low(struct cuda__iter_step *step)
{
    const struct cuda__iter_call *of = step->call;
    const struct cuda__iter_space *space = &of->space;
    struct cuda_batch batch = {.items = space->items + step->run.first,
                               .item_count = step->run.count,
                               .matrices = step->run.count};
    /* The spare matrices of the whole chunk, but for the two that hold what goes in and out. */
    struct cuda__iter_run chunk = {.count = space->count};
    struct cuda_matrices rest = cuda__iter_at(of, CUDA__ITER_MATRIX_SPARE + 2, chunk);
    size_t bytes = (size_t)((CUDA__ITER_SPARE - 2) * space->count * rest.step) * sizeof(double);
    go(step, step->kernels->narrow);
    if (step->status == cudaSuccess && of->n <= CUDA_SMALL_N_MAX)
        step->status = cuda_inverse_small(PRECISION_FP32, of->n, &batch, step->stream);
    else if (step->status == cudaSuccess)
        step->status = cuda_inverse_middle(PRECISION_FP32, of->n, &batch, rest.at, bytes,
                                           step->products, step->stream);
    go(step, step->kernels->widen);
}

static void start_diagonal(struct cuda__iter_step *step)
{
    go(step, step->kernels->diagonal);
}

static void start_identity(struct cuda__iter_step *step)
{
    identify(step, 1, 1, true);
    go(step, step->kernels->alpha);
    go(step, step->kernels->diagonal);
}

static void start_transpose(struct cuda__iter_step *step)
{
    const struct cuda__iter_call *of = step->call;
    struct cuda_transposition task = {
        .precision = of->precision,
        .rows = of->n,
        .columns = of->n,
        .from = cuda__iter_at(of, CUDA__ITER_MATRIX_A, step->run),
        .to = cuda__iter_at(of, CUDA__ITER_MATRIX_SPARE, step->run),
        .count = step->run.count,
        .factors = of->space.factors + 2 * step->run.first,
    };
    if (step->status == cudaSuccess)
        step->status = cuda_transpose(&task, step->stream);
    if (step->status == cudaSuccess)
        step->status = step->kernels->commit(of, step->run, CUDA__ITER_START_TRANSPOSE,
                                             CUDA__ITER_MATRIX_SPARE, false, step->stream);
}

static void start_warm(struct cuda__iter_step *step)
{
    go(step, step->kernels->warm);
}

static void begin_again(struct cuda__iter_step *step, enum cuda__iter_action action)
{
    step->run.again = (int)action;
    go(step, step->kernels->begin);
}

static void identify_again(struct cuda__iter_step *step)
{
    identify(step, 1, 1, true);
    begin_again(step, CUDA__ITER_IDENTIFY);
}

static void equilibrate(struct cuda__iter_step *step)
{
    const struct cuda__iter_call *of = step->call;
    const struct cuda__iter_space *space = &of->space;
    const struct cuda_equilibration task = {
        .precision = of->precision,
        .n = of->n,
        .a = cuda__iter_at(of, CUDA__ITER_MATRIX_A, step->run),
        .count = step->run.count,
        .states = space->equilibria + step->run.first,
        .exponents = space->exponents + 2 * of->n * step->run.first,
        .scratch = space->exponents + 2 * of->n * (space->count + step->run.first),
    };
    if (step->status == cudaSuccess)
        step->status = cuda_equilibrate(&task, step->stream);
    go(step, step->kernels->scale);
    identify(step, 1, 0, false);
    begin_again(step, CUDA__ITER_EQUILIBRATE);
}

static void store(struct cuda__iter_step *step)
{
    go(step, step->kernels->store);
}

static void prepare(struct cuda__iter_step *step)
{
    go(step, step->kernels->prepare);
}

static void measure_for(struct cuda__iter_step *step, int action)
{
    if (step->status == cudaSuccess)
        step->status = step->kernels->measure(step->call, step->run, action, step->stream);
}

static void measure(struct cuda__iter_step *step)
{
    cuda__iter_residual(step);
    measure_for(step, CUDA__ITER_START_WARM);
}

static void judge(struct cuda__iter_step *step, enum cuda__iter_action action)
{
    const struct cuda__iter_kernels *kernels = step->kernels;
    if (action == CUDA__ITER_JUDGE)
        go(step, kernels->rounding);
    else if (step->status == cudaSuccess)
        step->status = kernels->residual(step->call, step->run, true, step->stream);
    if (step->status == cudaSuccess)
        step->status = kernels->terms(step->call, step->run, (int)action, step->stream);
    measure_for(step, (int)action);
}

/* After a last step that need not be measured. */
static void finish(struct cuda__iter_step *step)
{
    measure_for(step, CUDA__ITER_LAST);
}

/* ---- A visit ---- */

/* What is made, in order. Without gaps: they would compute with others too, and must not. */
static const struct {
    uint32_t actions;
    bool has_gaps;
    void (*make)(struct cuda__iter_step *step);
} parts[] = {
    {BIT(CUDA__ITER_STORE), true, store},
    {STARTS, true, prepare},
    {BIT(CUDA__ITER_START_WARM), true, start_warm},
    {BIT(CUDA__ITER_START_LOW), false, start_low},
    {BIT(CUDA__ITER_START_DIAGONAL), true, start_diagonal},
    {BIT(CUDA__ITER_START_TRANSPOSE), true, start_transpose},
    {BIT(CUDA__ITER_START_IDENTITY), true, start_identity},
};

/* Every step that is next, and its measurement unless that is left to others. */
static void take_steps(struct cuda__iter_step *step, const uint8_t *next, bool measured)
{
    int64_t gap = cuda__iter_gap(step->call->n), from;
    for (int s = METHOD_ITERATIVE_NEWTON_SCHULZ; s < METHOD_ITERATIVE_SCHEMES; s++) {
        for (from = 0;
             next_run(step->call, next, BIT(CUDA__ITER_STEP + s) | BIT(CUDA__ITER_LAST + s), gap,
                      from, &step->run);
             from = step->run.first + step->run.count) {
            cuda__iter_improve(step, (enum method_iterative_scheme)s);
            if (measured)
                measure(step);
        }
    }
}

/* The steps that are sure to follow, by what was noted before the visit: V and R are those of a
 * measurement. A matrix that needs something else by now keeps its V, and the R of that is made
 * again with the same bits. A neighbour that can take the step takes it too. */
static void take_more_steps(struct cuda__iter_step *step, const uint8_t *notes)
{
    uint8_t next[CUDA_NOTES_MAX];
    for (int more = 1; more <= CUDA__ITER_MORE_MAX; more++) {
        for (int64_t i = 0; i < step->call->count; i++)
            next[i] = cuda__iter_more_of(notes[i]) >= more ? (uint8_t)cuda__iter_action_of(notes[i])
                                                           : CUDA__ITER_REST;
        take_steps(step, next, true);
    }
}

/* One action of every matrix that waits for one. The device changes the notes meanwhile. */
static cudaError_t advance(struct cuda__iter_step *step, const struct cuda_notes *notes)
{
    uint8_t next[CUDA_NOTES_MAX], noted[CUDA_NOTES_MAX];
    memcpy(noted, notes->next, sizeof noted);
    for (int64_t i = 0; i < step->call->count; i++)
        next[i] = (uint8_t)cuda__iter_action_of(noted[i]);
    int64_t gap = cuda__iter_gap(step->call->n), from;
    bool measures = step->call->wishes.measures;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (from = 0; next_run(step->call, next, parts[i].actions, parts[i].has_gaps ? gap : 0,
                                from, &step->run);
             from = step->run.first + step->run.count)
            parts[i].make(step);
    }
    take_steps(step, next, false);
    /* From here on it is said what is next. Nothing is made for that in this visit but steps, and
     * nothing measured that is not made: `made` in the state. */
    for (from = 0; !measures && next_run(step->call, next, LASTS, gap, from, &step->run);
         from = step->run.first + step->run.count)
        finish(step);
    uint32_t measured = STARTS | STEPS | (measures ? LASTS : 0);
    for (from = 0; next_run(step->call, next, measured, gap, from, &step->run);
         from = step->run.first + step->run.count)
        measure(step);
    take_more_steps(step, noted);
    for (from = 0; next_run(step->call, next, BIT(CUDA__ITER_IDENTIFY), gap, from, &step->run);
         from = step->run.first + step->run.count)
        identify_again(step);
    for (from = 0; next_run(step->call, next, BIT(CUDA__ITER_EQUILIBRATE), gap, from, &step->run);
         from = step->run.first + step->run.count)
        equilibrate(step);
    /* Last: R in double-double stays until the step that is made of it. */
    for (int action = CUDA__ITER_JUDGE; action <= CUDA__ITER_JUDGE_WHOLE; action++) {
        for (from = 0; next_run(step->call, next, BIT(action), gap, from, &step->run);
             from = step->run.first + step->run.count)
            judge(step, (enum cuda__iter_action)action);
    }
    return step->status;
}

/* The chunk's matrices come in. */
static cudaError_t enter(struct cuda__iter_step *step)
{
    step->run = (struct cuda__iter_run){.count = step->call->count};
    go(step, step->kernels->load);
    identify(step, step->call->wishes.warm ? 2 : 1, 0, false);
    go(step, step->kernels->begin);
    return step->status;
}

/* Of the batch: earlier chunks are done. */
static uint64_t progress_of(const struct cuda__iter_call *of, const struct cuda_notes *notes)
{
    uint64_t progress = (uint64_t)of->first * METHOD_PROGRESS_WHOLE;
    for (int64_t i = 0; i < of->count; i++)
        progress += notes->shares[i];
    return progress;
}

/* The chunk that begins with matrix `first`. */
static cudaError_t visit(const struct cuda_call *call, int64_t first, bool again,
                         cudaStream_t stream)
{
    struct cuda__iter_call of = read_call(call);
    struct cuda__iter_step step = {.call = &of,
                                   .kernels = cuda__iter_kernels_of(call->precision),
                                   .products = call->products,
                                   .stream = stream};
    if (call->n < 1 || call->n > CUDA_ITERATIVE_N_MAX || call->matrices < 0)
        return cudaErrorInvalidValue;
    if (!settle(&of, call))
        return cudaErrorMemoryAllocation;
    of.first = first;
    of.count = call->matrices - first < of.space.count ? call->matrices - first : of.space.count;
    if (!again)
        return enter(&step);
    call->notes->progress = progress_of(&of, call->notes);
    bool goes_on = false;
    for (int64_t i = 0; i < of.count; i++)
        goes_on = goes_on || call->notes->next[i] > CUDA__ITER_STORE;
    cudaError_t status = advance(&step, call->notes);
    if (goes_on || status != cudaSuccess)
        return status;
    /* All of the chunk is stored now. The next one may have its place. */
    call->notes->done = first + of.count;
    of.first = call->notes->done;
    if (of.first == call->matrices)
        return cudaSuccess;
    of.count = call->matrices - of.first < of.count ? call->matrices - of.first : of.count;
    return enter(&step);
}

cudaError_t cuda_iterative(const struct cuda_call *call, cudaStream_t stream)
{
    call->notes->done = 0;
    return call->matrices > 0 ? visit(call, 0, false, stream) : cudaSuccess;
}

cudaError_t cuda_iterative_again(const struct cuda_call *call, cudaStream_t stream)
{
    return visit(call, call->notes->done, true, stream);
}

const struct cuda_method cuda_method_iterative[] = {
    {.name = "iterative",
     .kernel = "cuda iterative",
     .n_min = 1,
     .n_max = {CUDA_ITERATIVE_N_MAX, CUDA_ITERATIVE_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_iterative,
     .again = cuda_iterative_again,
     .workspace = cuda_iterative_workspace,
     .self_test = cuda__try_iterative},
    {0},
};
