/* gpu/cuda/auto.c: see auto.h. What is next is decided here, from the lists' lengths; what is in
 * the lists only the device knows.
 */
#include "gpu/cuda/auto.h"

#include <assert.h>
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
    struct cuda__auto_counts counts; /* the device's */
    int64_t first;                   /* the chunk's */
    int64_t odd_first, placed;       /* placed: the places hold matrices that are sorted */
    int32_t lu_begun, mended;        /* of the chunk */
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

static bool is_small(const struct cuda__auto_call *of)
{
    return of->n <= CUDA_SMALL_N_MAX;
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

/* The chunk's lists. Returns their bytes; SIZE_MAX when they are too many to count. */
static size_t lay_out_lists(struct cuda__auto_call *of, int64_t matrices, unsigned char *start)
{
    struct cuda__auto_space *space = &of->space;
    struct walk walk = {.fits = true};
    int64_t dense_count = is_small(of) ? 0 : matrices;
    int64_t odd = take(&walk, matrices, sizeof *space->odd, 1);
    int64_t dense = take(&walk, dense_count, sizeof *space->dense, 1);
    int64_t dense_matrices = take(&walk, dense_count, sizeof *space->dense_matrices, 1);
    int64_t items = take(&walk, is_small(of) ? of->item_count : 0, sizeof *space->items, 1);
    if (!walk.fits)
        return SIZE_MAX;
    space->matrices = matrices;
    space->odd = (int32_t *)(void *)(start + odd);
    space->dense = (struct cuda_item *)(void *)(start + dense);
    space->dense_matrices = (int32_t *)(void *)(start + dense_matrices);
    space->items = (struct cuda_item *)(void *)(start + items);
    return (size_t)walk.bytes;
}

/* The same of the places. */
static size_t lay_out_places(struct cuda__auto_call *of, int64_t places, unsigned char *start)
{
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

/* Of one matrix in its place, roughly. */
static size_t place_bytes(const struct cuda__auto_call *of)
{
    struct cuda__auto_call call = *of;
    return lay_out_places(&call, 1, NULL);
}

/* As many places as pay. */
static int64_t places_wanted(const struct cuda__auto_call *of, int64_t matrices)
{
    size_t one = place_bytes(of);
    int64_t most = one < PLACES_BYTES ? (int64_t)(PLACES_BYTES / one) : 1;
    return least(least(most, PLACES_MAX), matrices);
}

static size_t lu_bytes(const struct cuda__auto_call *of, int64_t matrices)
{
    return is_small(of) ? 0 : cuda_inverse_middle_workspace(of->precision, of->n, matrices);
}

/* What lists and places take, the places and lu sharing theirs. */
static size_t bytes_of(struct cuda__auto_call *of, int64_t matrices, int64_t places)
{
    size_t lists = lay_out_lists(of, matrices, NULL), shared = lay_out_places(of, places, NULL);
    size_t lu = lu_bytes(of, matrices);
    shared = lu > shared ? lu : shared;
    return lists > SIZE_MAX - shared ? SIZE_MAX : lists + shared;
}

/* What the call is, without its workspace. */
static struct cuda__auto_call read_call(const struct cuda_call *call)
{
    int64_t panel = CUDA_TRIANGULAR_PANEL;
    return (struct cuda__auto_call){
        .precision = call->precision,
        .n = call->n,
        .ld = (call->n + panel - 1) / panel * panel,
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
    };
}

size_t cuda_auto_workspace(const struct cuda_call *call, int64_t matrices)
{
    struct cuda__auto_call of = read_call(call);
    int64_t chunk = least(matrices, CHUNK_MAX);
    return bytes_of(&of, chunk, places_wanted(&of, chunk));
}

/* Lays out as many matrices and places as the workspace holds; false: not even one. */
static bool settle(struct cuda__auto_call *of, const struct cuda_call *call)
{
    int64_t matrices = least(call->matrices, CHUNK_MAX);
    while (matrices > 1 && lay_out_lists(of, matrices, NULL) > call->workspace_bytes / 2)
        matrices /= 2;
    int64_t places = places_wanted(of, matrices);
    while (places > 1 && lay_out_lists(of, matrices, NULL) + lay_out_places(of, places, NULL) >
                             call->workspace_bytes)
        places /= 2;
    size_t one = lu_bytes(of, 1), lists = lay_out_lists(of, matrices, call->workspace);
    unsigned char *rest = (unsigned char *)call->workspace + lists;
    if (lists > call->workspace_bytes)
        return false;
    of->space.shared = rest;
    of->space.shared_bytes = call->workspace_bytes - lists;
    return lay_out_places(of, places, rest) <= of->space.shared_bytes &&
           one <= of->space.shared_bytes;
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

/* There will be another visit, whatever the device finds. */
static void ask(struct visit *visit)
{
    visit->call->notes->asked = 1;
}

static bool open_visit(struct visit *visit, const struct cuda_call *call, cudaStream_t stream)
{
    *visit = (struct visit){.call = call,
                            .of = read_call(call),
                            .kernels = call->precision == PRECISION_FP32 ? &cuda__auto_kernels_f32
                                                                         : &cuda__auto_kernels_f64,
                            .state = (struct state *)(void *)call->notes->next,
                            .seen = (struct state *)(void *)call->d_notes->next,
                            .stream = stream};
    visit->of.counts = &visit->seen->counts;
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

static void look(struct visit *visit, int64_t first)
{
    *visit->state = (struct state){.first = first};
    find_chunk(visit);
    pass(visit, visit->kernels->look, visit->of.count);
    if (first + visit->of.count < visit->of.matrices)
        ask(visit);
}

/* ---- lu ---- */

/* Its batch: the list, or up to CUDA_SMALL_N_MAX the call's own items. */
static struct cuda_batch lu_batch(const struct visit *visit)
{
    const struct cuda__auto_call *of = &visit->of;
    int64_t dense = visit->state->counts.dense;
    return (struct cuda_batch){.items = is_small(of) ? of->space.items : of->space.dense,
                               .item_count = is_small(of) ? of->item_count : dense,
                               .matrices = is_small(of) ? of->matrices : dense};
}

static void invert_small(struct visit *visit)
{
    struct cuda_batch batch = lu_batch(visit);
    pass(visit, visit->kernels->list_items, visit->of.item_count);
    if (visit->status == cudaSuccess)
        visit->status =
            cuda_inverse_small(visit->of.precision, visit->of.n, &batch, visit->stream);
}

static void invert_dense(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_batch batch = lu_batch(visit);
    visit->state->lu_begun = 1;
    if (visit->status == cudaSuccess)
        visit->status = cuda_inverse_middle(of->precision, of->n, &batch, of->space.shared,
                                            of->space.shared_bytes, visit->call->products,
                                            visit->stream);
    pass(visit, visit->kernels->note_dense, batch.matrices);
}

static void mend(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda_batch batch = lu_batch(visit);
    visit->state->mended = 1;
    if (visit->status != cudaSuccess)
        return;
    visit->status =
        is_small(of) ? cuda_mend_small(of->precision, of->n, &batch, visit->stream)
                     : cuda_mend_middle(of->precision, of->n, &batch, of->space.shared,
                                        of->space.shared_bytes, visit->call->products,
                                        visit->stream);
}

/* ---- Odd matrices ---- */

/* The next ones come into the places, and are sorted. */
static void place(struct visit *visit)
{
    struct cuda__auto_call *of = &visit->of;
    struct cuda__auto_space *space = &of->space;
    struct state *state = visit->state;
    state->placed = least(space->places, (int64_t)state->counts.odd - state->odd_first);
    memset(state->counts.kinds, 0, sizeof state->counts.kinds);
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
    const uint32_t *kinds = state->counts.kinds;
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

/* Is anything doubtful that has not been mended? The device has asked for another visit. */
static bool is_doubtful(const struct visit *visit)
{
    return visit->state->counts.doubtful > 0 && !visit->state->mended;
}
