/* gpu/cuda/auto.c: see auto.h. What is next is decided here, from the lists' lengths; what is in
 * the lists only the device knows.
 */
#include "gpu/cuda/auto.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/cuda/auto_call.h"
#include "gpu/cuda/lu_middle.h"
#include "gpu/cuda/triangular.h"
#include "gpu/cuda/tridiagonal.h"

#define CHUNK_MAX (INT64_C(1) << 20) /* matrices whose lists are kept at a time */
/* Odd matrices that are worked on at a time. Beyond so many bytes more are no faster. */
#define PLACES_MAX 4096
#define PLACES_BYTES ((size_t)1 << 30)

_Static_assert(PLACES_MAX <= CUDA_IDENTIFY_MATRICES_MAX, "identified in one call");
_Static_assert(PLACES_MAX <= CUDA_TRIANGULAR_MATRICES_MAX, "inverted in one call");
_Static_assert(CUDA_AUTO_N_MAX <= CUDA_MIDDLE_N_MAX, "lu takes what is left over");
_Static_assert(CUDA_AUTO_N_MAX <= CUDA_TRIDIAGONAL_N_MAX, "one launch");

/* Where a batch stands between two visits; in the call's notes. */
struct state {
    uint32_t counts[CUDA__AUTO_COUNTS]; /* the device's */
    int64_t first;                      /* the chunk's */
    int64_t odd_first, placed;          /* placed: the places hold matrices that are sorted */
    int32_t lu_begun;                   /* of the chunk */
    int32_t sorts;                      /* see struct cuda__auto_call */
};

_Static_assert(sizeof(struct state) <= CUDA_NOTES_MAX, "");
_Static_assert(offsetof(struct cuda_notes, next) % _Alignof(struct state) == 0, "");

/* ---- Workspace ---- */

/* Parts of the workspace, one after the other. */
struct walk {
    int64_t bytes;
    bool fits;
};

/* Takes `count` times `each` of `bytes`. Returns where that starts. */
static int64_t take(struct walk *walk, int64_t count, int64_t each, int64_t bytes)
{
    int64_t start = walk->bytes, more = 0;
    walk->fits = walk->fits && checked_mul(count, each, &more) && checked_mul(more, bytes, &more) &&
                 checked_round_up(more, CUDA_WORKSPACE_ALIGN, &more) &&
                 checked_add(walk->bytes, more, &walk->bytes);
    return start;
}

/* `tridiagonal` of the places' bands. */
static struct cuda_call bands_call(const struct cuda__auto_call *of, int64_t count)
{
    static const int64_t options[METHOD_OPTIONS_MAX]; /* the variant `auto`, all rows and columns */
    return (struct cuda_call){.precision = of->precision,
                              .n = of->n,
                              .options = options,
                              .item_count = count,
                              .matrices = count,
                              .inputs = UINT32_MAX,
                              .wanted = UINT32_C(1) << CUDA__TRI_INVERSE |
                                        UINT32_C(1) << CUDA__TRI_INFO |
                                        UINT32_C(1) << CUDA__TRI_RCOND,
                              .tensors = of->space.tensors,
                              .workspace = of->space.scratch,
                              .workspace_bytes = of->space.scratch_bytes};
}

/* The chunk's lists; or, where nothing is sorted, the items. Returns their bytes; SIZE_MAX when
 * they are too many to count. */
static size_t lay_out_lists(struct cuda__auto_call *of, int64_t matrices, unsigned char *start)
{
    struct cuda__auto_space *space = &of->space;
    struct walk walk = {.fits = true};
    int64_t listed = of->sorts ? matrices : 0, items = of->sorts ? 0 : of->item_count;
    int64_t counts = take(&walk, 1, sizeof *space->counts, 1);
    int64_t odd = take(&walk, listed, sizeof *space->odd, 1);
    int64_t dense = take(&walk, listed, sizeof *space->dense, 1);
    int64_t dense_matrices = take(&walk, listed, sizeof *space->dense_matrices, 1);
    int64_t items_at = take(&walk, items, sizeof *space->items, 1);
    if (!walk.fits)
        return SIZE_MAX;
    space->matrices = matrices;
    space->counts = (struct cuda__auto_counts *)(void *)(start + counts);
    space->odd = (int32_t *)(void *)(start + odd);
    space->dense = (struct cuda_item *)(void *)(start + dense);
    space->dense_matrices = (int32_t *)(void *)(start + dense_matrices);
    space->items = (struct cuda_item *)(void *)(start + items_at);
    return (size_t)walk.bytes;
}

/* The same of the places: none where nothing is sorted. */
static size_t lay_out_places(struct cuda__auto_call *of, int64_t places, unsigned char *start)
{
    if (!of->sorts)
        return 0;
    struct cuda__auto_space *space = &of->space;
    int64_t unit = precision_bytes(of->precision), matrix = of->ld * of->ld;
    struct cuda_call bands = bands_call(of, places);
    size_t identify = cuda_identify_bytes(of->precision, of->n, places);
    size_t tridiagonal = cuda_tridiagonal_workspace(&bands, places);
    size_t scratch = identify > tridiagonal ? identify : tridiagonal;
    int64_t lists[CUDA__AUTO_KINDS];
    struct walk walk = {.fits = scratch <= INT64_MAX};
    int64_t a = take(&walk, places, matrix, unit), b = take(&walk, places, matrix, unit);
    int64_t x = take(&walk, places, matrix, unit);
    int64_t identities = take(&walk, places, sizeof *space->identities, 1);
    for (int k = 0; k < CUDA__AUTO_KINDS; k++)
        lists[k] = take(&walk, places, sizeof *space->lists[k], 1);
    int64_t plans = take(&walk, places, sizeof *space->plans, 1);
    int64_t verdicts = take(&walk, places, sizeof *space->verdicts, 1);
    int64_t sums = take(&walk, places, of->ld / CUDA__AUTO_STRIP, sizeof *space->sums);
    int64_t bands_at = take(&walk, 3 * places, of->ld, unit);
    int64_t tensors = take(&walk, places, sizeof *space->tensors, 1);
    int64_t rconds = take(&walk, places, unit, 1);
    int64_t infos = take(&walk, places, sizeof *space->infos, 1);
    int64_t last = take(&walk, 1, walk.fits ? (int64_t)scratch : 0, 1);
    if (!walk.fits)
        return SIZE_MAX;
    space->places = places;
    space->a = start + a;
    space->b = start + b;
    space->x = start + x;
    space->identities = (struct cuda_identity *)(void *)(start + identities);
    for (int k = 0; k < CUDA__AUTO_KINDS; k++)
        space->lists[k] = (int32_t *)(void *)(start + lists[k]);
    space->plans = (struct cuda__auto_plan *)(void *)(start + plans);
    space->verdicts = (struct cuda__auto_verdict *)(void *)(start + verdicts);
    space->sums = (double *)(void *)(start + sums);
    space->bands = start + bands_at;
    space->tensors = (struct cuda_tensors *)(void *)(start + tensors);
    space->rconds = start + rconds;
    space->infos = (int32_t *)(void *)(start + infos);
    space->scratch = start + last;
    space->scratch_bytes = scratch;
    return (size_t)walk.bytes;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* As many places as pay. */
static int64_t places_wanted(struct cuda__auto_call *of, int64_t matrices)
{
    size_t one = lay_out_places(of, 1, NULL);
    int64_t most = one > 0 && one < PLACES_BYTES ? (int64_t)(PLACES_BYTES / one) : 1;
    return least(least(most, PLACES_MAX), matrices);
}

static size_t lu_bytes(const struct cuda__auto_call *of, int64_t matrices)
{
    return of->n <= CUDA_SMALL_N_MAX
               ? 0
               : cuda_inverse_middle_workspace(of->precision, of->n, matrices);
}

/* What the lists of so many matrices take, so many places, and lu of `together`, which has the
 * places' part. */
static size_t bytes_of(struct cuda__auto_call *of, int64_t matrices, int64_t places,
                       int64_t together)
{
    size_t lists = lay_out_lists(of, matrices, NULL), shared = lay_out_places(of, places, NULL);
    size_t lu = lu_bytes(of, together);
    shared = lu > shared ? lu : shared;
    return lists > SIZE_MAX - shared ? SIZE_MAX : lists + shared;
}

/* What the call is, without its workspace. */
static struct cuda__auto_call read_call(const struct cuda_call *call, bool sorts)
{
    int64_t panel = CUDA_TRIANGULAR_PANEL;
    return (struct cuda__auto_call){
        .precision = call->precision,
        .n = call->n,
        .ld = (call->n + panel - 1) / panel * panel,
        .sorts = sorts,
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
    };
}

/* Matrices whose lists are kept at a time; all, where there are none. */
static int64_t chunk_of(const struct cuda__auto_call *of, int64_t matrices)
{
    return of->sorts ? least(matrices, CHUNK_MAX) : matrices;
}

size_t cuda__auto_bytes(const struct cuda_call *call, bool sorts, int64_t matrices)
{
    struct cuda__auto_call of = read_call(call, sorts);
    int64_t chunk = chunk_of(&of, matrices);
    return bytes_of(&of, chunk, places_wanted(&of, chunk), chunk);
}

size_t cuda_auto_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda__auto_bytes(call, call->n >= CUDA_AUTO_SORTED_N_LEAST, matrices);
}

/* Lays out as many matrices and places as the workspace holds; false: not even one. */
static bool settle(struct cuda__auto_call *of, const struct cuda_call *call)
{
    size_t bytes = call->workspace_bytes;
    int64_t matrices = chunk_of(of, call->matrices);
    while (of->sorts && matrices > 1 && bytes_of(of, matrices, 1, 1) > bytes)
        matrices /= 2;
    int64_t places = places_wanted(of, matrices);
    while (places > 1 && bytes_of(of, matrices, places, 1) > bytes)
        places /= 2;
    if (bytes_of(of, matrices, places, 1) > bytes)
        return false;
    size_t lists = lay_out_lists(of, matrices, call->workspace);
    of->space.shared = (unsigned char *)call->workspace + lists;
    of->space.shared_bytes = bytes - lists;
    (void)lay_out_places(of, places, of->space.shared);
    return true;
}

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
 * on lu's list, or lu has left one to be mended. */
static void ask(struct visit *visit)
{
    visit->call->notes->asked = 1;
}

static bool open_visit(struct visit *visit, const struct cuda_call *call, bool sorts,
                       cudaStream_t stream)
{
    *visit = (struct visit){.call = call,
                            .of = read_call(call, sorts),
                            .kernels = call->precision == PRECISION_FP32 ? &cuda__auto_kernels_f32
                                                                         : &cuda__auto_kernels_f64,
                            .state = (struct state *)(void *)call->notes->next,
                            .seen = (struct state *)(void *)call->d_notes->next,
                            .stream = stream};
    visit->of.told = visit->seen->counts;
    visit->of.asked = &call->d_notes->asked;
    return settle(&visit->of, call);
}

/* The chunk that the state tells. */
static void find_chunk(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    of->first = visit->state->first;
    of->count = least(of->space.matrices, of->matrices - of->first);
    of->odd_first = visit->state->odd_first;
    of->placed = visit->state->placed;
}

/* ---- lu ---- */

/* Its batch: the list, or all matrices. */
static struct cuda_batch lu_batch(const struct visit *visit)
{
    const struct cuda__auto_call *of = &visit->of;
    int64_t dense = visit->state->counts[CUDA__AUTO_DENSE];
    return (struct cuda_batch){.items = of->sorts ? of->space.dense : of->space.items,
                               .item_count = of->sorts ? dense : of->item_count,
                               .matrices = of->sorts ? dense : of->matrices};
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

static void mend(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_batch batch = lu_batch(visit);
    if (visit->status != cudaSuccess)
        return;
    visit->status =
        of->n <= CUDA_SMALL_N_MAX
            ? cuda_mend_small(of->precision, of->n, &batch, visit->stream)
            : cuda_mend_middle(of->precision, of->n, &batch, of->space.shared,
                               of->space.shared_bytes, visit->call->products, visit->stream);
}

/* ---- Odd matrices ---- */

/* The next ones come into the places, and are sorted. */
static void place(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda__auto_space *space = &of->space;
    struct state *state = visit->state;
    state->placed = least(space->places, (int64_t)state->counts[CUDA__AUTO_ODD] - state->odd_first);
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
    struct cuda_call bands = bands_call(&visit->of, count);
    pass(visit, visit->kernels->cut, count);
    if (visit->status == cudaSuccess)
        visit->status = cuda_tridiagonal(&bands, visit->stream);
    pass(visit, visit->kernels->take_or_pass, count);
}

/* The placed matrices take their roads. X is one kind's after the other's. */
static void take_roads(struct visit *visit)
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

/* ---- What is next ---- */

/* What the chunk holds. */
static void look(struct visit *visit, int64_t first)
{
    *visit->state = (struct state){.first = first, .sorts = 1};
    find_chunk(visit);
    pass(visit, visit->kernels->begin, 0);
    pass(visit, visit->kernels->look, visit->of.count);
    if (first + visit->of.count < visit->of.matrices)
        ask(visit);
}

/* Nothing is on its way on the device. */
static void advance(struct visit *visit)
{
    struct state *state = visit->state;
    find_chunk(visit);
    bool more = visit->of.first + visit->of.count < visit->of.matrices;
    bool placed = state->placed > 0;
    bool odd = state->odd_first + state->placed < state->counts[CUDA__AUTO_ODD];
    if (placed)
        take_roads(visit);
    if (odd)
        place(visit);
    if (placed || odd) {
        if (odd || more || state->counts[CUDA__AUTO_DENSE] > 0)
            ask(visit);
        return;
    }
    if (!state->lu_begun && state->counts[CUDA__AUTO_DENSE] > 0) {
        invert_dense(visit);
        if (more)
            ask(visit);
        return;
    }
    if (state->counts[CUDA__AUTO_DOUBTFUL] > 0)
        mend(visit);
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
    if (sorts) {
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
    return cuda__auto_begin(call, call->n >= CUDA_AUTO_SORTED_N_LEAST, stream);
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
