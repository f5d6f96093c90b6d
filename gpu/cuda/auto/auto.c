/* gpu/cuda/auto/auto.c: see auto.h. What is next is decided here, from the lists' lengths; what is
 * in the lists only the device knows.
 */
#include "gpu/cuda/auto/auto.h"

#include <stddef.h>

#include "base/minmax.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/structured/cholesky.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/structured/triangular.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

_Static_assert(CUDA_AUTO_N_MAX <= CUDA_MIDDLE_N_MAX, "lu takes what is left over");
_Static_assert(CUDA_AUTO_N_MAX <= CUDA_TRIDIAGONAL_N_MAX, "one launch");

/* Where a batch stands between two visits; in the call's notes. */
struct state {
    uint32_t counts[CUDA__AUTO_COUNTS]; /* the device's */
    int64_t first;                      /* the chunk's */
    int64_t odd_first, placed;          /* placed: the places hold matrices that are sorted */
    int64_t likely_first, held;         /* held: so many matrices that are judged */
    int32_t lu_begun, mirrored;         /* of the chunk */
    int32_t sorts;                      /* see struct cuda__auto_call */
};

_Static_assert(sizeof(struct state) <= CUDA_NOTES_MAX, "");
_Static_assert(offsetof(struct cuda_notes, next) % _Alignof(struct state) == 0, "");

/* ---- A visit ---- */

struct visit {
    const struct cuda_call *call;
    struct cuda__auto_call of;
    const struct cuda__auto_kernels *kernels;
    struct state *state, *seen; /* seen: by the device */
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */
};

static void pass(struct visit *visit, cuda__auto_pass *kernel, int64_t count)
{
    if (visit->status == cudaSuccess)
        visit->status = kernel(&visit->of, count, visit->stream);
}

/* There will be another visit, whatever the device finds; it asks for itself where it puts a matrix
 * on lu's list, or lu has left one to be recovered. */
static void ask(struct visit *visit)
{
    visit->call->notes->asked = 1;
}

static bool open_visit(struct visit *visit, const struct cuda_call *call, bool sorts,
                       cudaStream_t stream)
{
    *visit = (struct visit){.call = call,
                            .of = cuda__auto_read(call, sorts),
                            .kernels = call->precision == PRECISION_FP32 ? &cuda__auto_kernels_f32
                                                                         : &cuda__auto_kernels_f64,
                            .state = (struct state *)(void *)call->notes->next,
                            .seen = (struct state *)(void *)call->d_notes->next,
                            .stream = stream};
    visit->of.reported = visit->seen->counts;
    visit->of.asked = &call->d_notes->asked;
    return cuda__auto_settle(&visit->of, call);
}

/* The state's chunk. */
static void find_chunk(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    of->first = visit->state->first;
    of->count = min_i64(of->space.matrices, of->matrices - of->first);
    of->odd_first = visit->state->odd_first;
    of->placed = visit->state->placed;
    of->likely_first = visit->state->likely_first;
    of->held = visit->state->held;
}

/* ---- lu ---- */

/* Its batch: the list, or all matrices. */
static struct cuda_batch lu_batch(const struct visit *visit)
{
    const struct cuda__auto_call *of = &visit->of;
    int64_t dense = visit->state->counts[CUDA__AUTO_DENSE];
    return (struct cuda_batch){.items = of->lists ? of->space.dense : of->space.items,
                               .item_count = of->lists ? dense : of->item_count,
                               .matrices = of->lists ? dense : of->matrices};
}

static void invert_dense(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_batch batch = lu_batch(visit);
    visit->state->lu_begun = 1;
    if (visit->status == cudaSuccess && of->n <= CUDA_SMALL_N_MAX)
        visit->status = cuda_inverse_small(of->precision, of->n, &batch, visit->stream);
    else if (visit->status == cudaSuccess)
        visit->status =
            cuda_inverse_middle(of->precision, of->n, &batch, of->space.shared,
                                of->space.shared_bytes, visit->call->products, visit->stream);
    pass(visit, visit->kernels->note, batch.matrices);
}

static void recover(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_batch batch = lu_batch(visit);
    if (visit->status != cudaSuccess)
        return;
    visit->status =
        of->n <= CUDA_SMALL_N_MAX
            ? cuda_recover_small(of->precision, of->n, &batch, visit->stream)
            : cuda_recover_middle(of->precision, of->n, &batch, of->space.shared,
                                  of->space.shared_bytes, visit->call->products, visit->stream);
}

/* The device asks for another visit where one of them is spoilt. */
static void mirror(struct visit *visit)
{
    visit->of.last = visit->state->mirrored != 0;
    visit->state->mirrored = 1;
    pass(visit, visit->kernels->mirror, lu_batch(visit).matrices);
}

/* ---- Odd matrices ---- */

/* The next ones come into the places, and are sorted. */
static void place(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda__auto_space *space = &of->space;
    struct state *state = visit->state;
    state->placed =
        min_i64(space->places, (int64_t)state->counts[CUDA__AUTO_ODD] - state->odd_first);
    find_chunk(visit);
    struct cuda_identification task = {
        .precision = of->precision,
        .n = of->n,
        .a = {space->a, of->ld, of->ld * of->ld},
        .count = of->placed,
        .sets = 1,
        .to = space->identities,
        .to_step = of->placed,
        .scratch = space->scratch,
    };
    pass(visit, visit->kernels->place, of->placed);
    if (visit->status == cudaSuccess)
        visit->status = cuda_identify(&task, visit->stream);
    pass(visit, visit->kernels->sort, of->placed);
}

static void invert_triangular(struct visit *visit, int64_t count)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_triangular task = {
        .precision = of->precision,
        .n = of->ld,
        .count = count,
        .a = {of->space.b, of->ld, of->ld * of->ld},
        .x = {of->space.x, of->ld, of->ld * of->ld},
    };
    pass(visit, visit->kernels->load, count);
    if (visit->status == cudaSuccess)
        visit->status = cuda_triangular_invert(visit->call->products, &task, visit->stream);
    pass(visit, visit->kernels->unload, count);
}

static void invert_tridiagonal(struct visit *visit, int64_t count)
{
    struct cuda_call bands = cuda__auto_bands_call(&visit->of, count);
    pass(visit, visit->kernels->cut, count);
    if (visit->status == cudaSuccess)
        visit->status = cuda_tridiagonal(&bands, visit->stream);
    pass(visit, visit->kernels->take_or_pass, count);
}

/* The placed matrices take their algorithms. X is one kind's after the other's. */
static void take_algorithms(struct visit *visit)
{
    struct state *state = visit->state;
    const uint32_t *kinds = state->counts + CUDA__AUTO_OF_KIND;
    if (kinds[CUDA__AUTO_DIAGONAL] > 0)
        pass(visit, visit->kernels->diagonal, kinds[CUDA__AUTO_DIAGONAL]);
    if (kinds[CUDA__AUTO_TRIANGULAR] > 0)
        invert_triangular(visit, kinds[CUDA__AUTO_TRIANGULAR]);
    if (kinds[CUDA__AUTO_TRIDIAGONAL] > 0)
        invert_tridiagonal(visit, kinds[CUDA__AUTO_TRIDIAGONAL]);
    state->odd_first += state->placed;
    state->placed = 0;
}

/* ---- Matrices that may be definite ---- */

/* The next ones are held, and judged. */
static void hold(struct visit *visit)
{
    struct state *state = visit->state;
    state->held = min_i64(visit->of.space.holds,
                          (int64_t)state->counts[CUDA__AUTO_LIKELY] - state->likely_first);
    find_chunk(visit);
    pass(visit, visit->kernels->hold, state->held);
}

/* Those that are held are inverted; false: none has stood the judgement. */
static bool invert_held(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct state *state = visit->state;
    struct cuda_cholesky task = {
        .precision = of->precision,
        .n = of->ld,
        .count = state->held,
        .w = {of->space.w, of->ld, of->ld * of->ld},
        .failed = of->space.failed,
        .scratch = of->space.cholesky,
    };
    bool some = state->held > 0 && state->counts[CUDA__AUTO_DEFINITE] > 0;
    if (some && visit->status == cudaSuccess)
        visit->status = cuda_cholesky_invert(visit->call->products, &task, visit->stream);
    if (some)
        pass(visit, visit->kernels->conclude, state->held);
    state->likely_first += state->held;
    state->held = 0;
    return some;
}

/* ---- What is next ---- */

/* What the chunk holds. */
static void look(struct visit *visit, int64_t first)
{
    *visit->state = (struct state){.first = first, .sorts = visit->of.sorts};
    find_chunk(visit);
    pass(visit, visit->kernels->begin, 0);
    pass(visit, visit->kernels->look, visit->of.count);
    if (first + visit->of.count < visit->of.matrices)
        ask(visit);
}

/* Odd matrices are worked on, and the next ones are placed. Returns whether there were any. */
static bool advance_odd(struct visit *visit, bool more)
{
    struct state *state = visit->state;
    bool placed = state->placed > 0;
    bool odd = state->odd_first + state->placed < state->counts[CUDA__AUTO_ODD];
    if (placed)
        take_algorithms(visit);
    if (odd)
        place(visit);
    if (odd || (placed && (more || state->counts[CUDA__AUTO_DENSE] > 0 ||
                           state->counts[CUDA__AUTO_LIKELY] > 0)))
        ask(visit);
    return placed || odd;
}

/* The same of those that may be definite: whether there was anything to do. */
static bool advance_likely(struct visit *visit, bool more)
{
    struct state *state = visit->state;
    bool inverted = invert_held(visit);
    bool likely = state->likely_first < state->counts[CUDA__AUTO_LIKELY];
    if (likely)
        hold(visit);
    if (likely || (inverted && (more || state->counts[CUDA__AUTO_DENSE] > 0)))
        ask(visit);
    return inverted || likely;
}

/* Nothing is on its way on the device. */
static void advance(struct visit *visit)
{
    struct state *state = visit->state;
    find_chunk(visit);
    bool more = visit->of.first + visit->of.count < visit->of.matrices;
    if (advance_odd(visit, more) || advance_likely(visit, more))
        return;
    if (!state->lu_begun && state->counts[CUDA__AUTO_DENSE] > 0) {
        invert_dense(visit);
        if (more)
            ask(visit);
        return;
    }
    if (state->counts[state->mirrored ? CUDA__AUTO_SPOILT : CUDA__AUTO_UNVERIFIED] > 0)
        recover(visit);
    if (!state->mirrored && state->counts[CUDA__AUTO_SYMMETRIC] > 0) {
        mirror(visit);
        if (more)
            ask(visit);
        return;
    }
    if (state->mirrored && state->counts[CUDA__AUTO_SPOILT] > 0)
        mirror(visit);
    if (more)
        look(visit, visit->of.first + visit->of.count);
}

static bool is_taken(const struct cuda_call *call)
{
    return call->n >= 1 && call->n <= CUDA_AUTO_N_MAX && call->matrices >= 0 &&
           (call->matrices == 0 || call->item_count >= 1);
}

cudaError_t cuda__auto_begin(const struct cuda_call *call, bool sorts, cudaStream_t stream)
{
    struct visit visit;
    if (!is_taken(call))
        return cudaErrorInvalidValue;
    if (call->matrices == 0)
        return cudaSuccess;
    if (!open_visit(&visit, call, sorts, stream))
        return cudaErrorMemoryAllocation;
    if (visit.of.lists) {
        look(&visit, 0);
        return visit.status;
    }
    *visit.state = (struct state){.sorts = 0};
    pass(&visit, visit.kernels->begin, visit.of.item_count);
    invert_dense(&visit);
    return visit.status;
}

cudaError_t cuda_auto(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda__auto_begin(call, call->n >= CUDA_AUTO_SORTED_N_MIN, stream);
}

cudaError_t cuda_auto_again(const struct cuda_call *call, cudaStream_t stream)
{
    struct visit visit;
    const struct state *state = (const struct state *)(void *)call->notes->next;
    if (!open_visit(&visit, call, state->sorts, stream))
        return cudaErrorMemoryAllocation;
    advance(&visit);
    return visit.status;
}

const struct cuda_method cuda_method_auto[] = {
    {.name = "auto",
     .kernel = "cuda auto",
     .n_min = 1,
     .n_max = {CUDA_AUTO_N_MAX, CUDA_AUTO_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_auto,
     .again = cuda_auto_again,
     .workspace = cuda_auto_workspace,
     .self_test = cuda__try_auto},
    {0},
};
