/* gpu/cuda/auto/space.c: the workspace of `auto`; see call.h for what is in it. */
#include <stddef.h>

#include "base/minmax.h"
#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/structured/cholesky.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/structured/triangular.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"
#include "gpu/cuda/base/workspace.h"
#include "gpu/methods/auto.h"

#define CHUNK_MAX (INT64_C(1) << 20) /* matrices whose lists are kept at a time */
/* Odd matrices that are worked on at a time. Beyond so many bytes more are no faster. */
#define PLACES_MAX 4096
#define PLACES_BYTES ((size_t)1 << 30)
/* The same of matrices that may be definite. */
#define HELD_BYTES ((size_t)2 << 30)

_Static_assert(PLACES_MAX <= CUDA_IDENTIFY_MATRICES_MAX, "identified in one call");
_Static_assert(PLACES_MAX <= CUDA_TRIANGULAR_MATRICES_MAX, "inverted in one call");
_Static_assert(CUDA_TRIANGULAR_PANEL % CUDA_CHOLESKY_UNIT == 0, "one padded order for both");

struct cuda_call cuda__auto_bands_call(const struct cuda__auto_call *of, int64_t count)
{
    static const int64_t options[METHOD_OPTIONS_MAX]; /* the variant `auto`, all rows and columns */
    return (struct cuda_call){.precision = of->precision,
                              .n = of->n,
                              .options = options,
                              .item_count = count,
                              .matrices = count,
                              .inputs = UINT32_MAX,
                              .wanted = UINT32_C(1) << METHOD_TRIDIAGONAL_INVERSE |
                                        UINT32_C(1) << METHOD_TRIDIAGONAL_INFO |
                                        UINT32_C(1) << METHOD_TRIDIAGONAL_RCOND,
                              .tensors = of->space.tensors,
                              .workspace = of->space.scratch,
                              .workspace_bytes = of->space.scratch_bytes};
}

/* The chunk's lists; or, where there are none, the items. Returns their bytes; SIZE_MAX when
 * they are too many to count. */
static size_t lay_out_lists(struct cuda__auto_call *of, int64_t matrices, unsigned char *start)
{
    struct cuda__auto_space *space = &of->space;
    struct cuda__walk walk = {.fits = true};
    int64_t listed = of->lists ? matrices : 0, items = of->lists ? 0 : of->item_count;
    int64_t counts = cuda__walk_take(&walk, 1, sizeof *space->counts, 1);
    int64_t odd = cuda__walk_take(&walk, listed, sizeof *space->odd, 1);
    int64_t likely = cuda__walk_take(&walk, listed, sizeof *space->likely, 1);
    int64_t dense = cuda__walk_take(&walk, listed, sizeof *space->dense, 1);
    int64_t dense_matrices = cuda__walk_take(&walk, listed, sizeof *space->dense_matrices, 1);
    int64_t items_at = cuda__walk_take(&walk, items, sizeof *space->items, 1);
    int64_t inverted = of->n <= CUDA_SMALL_N_MAX ? 0 : of->lists ? matrices : of->matrices;
    int64_t images = cuda__walk_take(&walk, inverted, sizeof *space->images, 1);
    int64_t products = cuda__walk_take(&walk, inverted, sizeof *space->products, of->n);
    if (!walk.fits)
        return SIZE_MAX;
    space->matrices = matrices;
    space->counts = (struct cuda__auto_counts *)(void *)(start + counts);
    space->odd = (int32_t *)(void *)(start + odd);
    space->likely = (int32_t *)(void *)(start + likely);
    space->dense = (struct cuda_item *)(void *)(start + dense);
    space->dense_matrices = (int32_t *)(void *)(start + dense_matrices);
    space->items = (struct cuda_item *)(void *)(start + items_at);
    space->images = (struct cuda__auto_image *)(void *)(start + images);
    space->products = (double *)(void *)(start + products);
    return (size_t)walk.bytes;
}

/* The same of the places: none where nothing is sorted. */
static size_t lay_out_places(struct cuda__auto_call *of, int64_t places, unsigned char *start)
{
    if (!of->sorts)
        return 0;
    struct cuda__auto_space *space = &of->space;
    int64_t unit = precision_bytes(of->precision), matrix = of->ld * of->ld;
    struct cuda_call bands = cuda__auto_bands_call(of, places);
    size_t identify = cuda_identify_bytes(of->precision, of->n, places);
    size_t tridiagonal = cuda_tridiagonal_workspace(&bands, places);
    size_t scratch = identify > tridiagonal ? identify : tridiagonal;
    int64_t lists[CUDA__AUTO_KINDS];
    struct cuda__walk walk = {.fits = scratch <= INT64_MAX};
    int64_t a = cuda__walk_take(&walk, places, matrix, unit),
            b = cuda__walk_take(&walk, places, matrix, unit);
    int64_t x = cuda__walk_take(&walk, places, matrix, unit);
    int64_t identities = cuda__walk_take(&walk, places, sizeof *space->identities, 1);
    for (int k = 0; k < CUDA__AUTO_KINDS; k++)
        lists[k] = cuda__walk_take(&walk, places, sizeof *space->lists[k], 1);
    int64_t plans = cuda__walk_take(&walk, places, sizeof *space->plans, 1);
    int64_t verdicts = cuda__walk_take(&walk, places, sizeof *space->verdicts, 1);
    int64_t sums = cuda__walk_take(&walk, places, of->ld / CUDA__AUTO_STRIP, sizeof *space->sums);
    int64_t bands_at = cuda__walk_take(&walk, 3 * places, of->ld, unit);
    int64_t tensors = cuda__walk_take(&walk, places, sizeof *space->tensors, 1);
    int64_t rconds = cuda__walk_take(&walk, places, unit, 1);
    int64_t infos = cuda__walk_take(&walk, places, sizeof *space->infos, 1);
    int64_t last = cuda__walk_take(&walk, 1, walk.fits ? (int64_t)scratch : 0, 1);
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

/* The same of so many matrices that are held. */
static size_t lay_out_held(struct cuda__auto_call *of, int64_t held, unsigned char *start)
{
    if (!of->lists)
        return 0;
    struct cuda__auto_space *space = &of->space;
    int64_t unit = precision_bytes(of->precision);
    size_t scratch = cuda_cholesky_scratch(of->precision, of->ld, held);
    struct cuda__walk walk = {.fits = scratch <= INT64_MAX};
    int64_t w = cuda__walk_take(&walk, held, of->ld * of->ld, unit);
    int64_t product = cuda__walk_take(&walk, held, of->ld, unit),
            own = cuda__walk_take(&walk, 2 * held, of->ld, unit);
    int64_t peaks = cuda__walk_take(&walk, 2 * held, of->ld / CUDA__AUTO_STRIP, unit);
    int64_t claims = cuda__walk_take(&walk, held, sizeof *space->claims, 1);
    int64_t failed = cuda__walk_take(&walk, held, sizeof *space->failed, 1);
    int64_t cholesky = cuda__walk_take(&walk, 1, walk.fits ? (int64_t)scratch : 0, 1);
    if (!walk.fits)
        return SIZE_MAX;
    space->holds = held;
    space->w = start + w;
    space->product = start + product;
    space->own = start + own;
    space->peaks = start + peaks;
    space->claims = (struct cuda__auto_claim *)(void *)(start + claims);
    space->failed = (int32_t *)(void *)(start + failed);
    space->cholesky = start + cholesky;
    return (size_t)walk.bytes;
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

/* As many places as pay. */
static int64_t places_wanted(struct cuda__auto_call *of, int64_t matrices)
{
    size_t one = lay_out_places(of, 1, NULL);
    int64_t most = one > 0 && one < PLACES_BYTES ? (int64_t)(PLACES_BYTES / one) : 1;
    return min_i64(min_i64(most, PLACES_MAX), matrices);
}

/* As many matrices as it pays to hold. */
static int64_t held_wanted(struct cuda__auto_call *of, int64_t matrices)
{
    size_t one = lay_out_held(of, 1, NULL);
    int64_t most = one > 0 && one < HELD_BYTES ? (int64_t)(HELD_BYTES / one) : 1;
    return min_i64(min_i64(most, CUDA_CHOLESKY_MATRICES_MAX), matrices);
}

static size_t lu_bytes(const struct cuda__auto_call *of, int64_t matrices)
{
    return of->n <= CUDA_SMALL_N_MAX
               ? 0
               : cuda_inverse_middle_workspace(of->precision, of->n, matrices);
}

/* What the lists of so many matrices take, so many places, so many that are held and lu of
 * `together`, which have the places' part. */
static size_t bytes_of(struct cuda__auto_call *of, int64_t matrices, int64_t places, int64_t held,
                       int64_t together)
{
    size_t lists = lay_out_lists(of, matrices, NULL);
    size_t shared = larger(lay_out_places(of, places, NULL), lay_out_held(of, held, NULL));
    shared = larger(shared, lu_bytes(of, together));
    return lists > SIZE_MAX - shared ? SIZE_MAX : lists + shared;
}

struct cuda__auto_call cuda__auto_read(const struct cuda_call *call, bool sorts)
{
    int64_t panel = CUDA_TRIANGULAR_PANEL;
    /* Smaller orders are sorted for tests alone, and then whole. */
    bool definite =
        call->n < CUDA_AUTO_SORTED_N_MIN || call->n >= CUDA_AUTO_DEFINITE_N_MIN(call->precision);
    bool averages = call->options && call->options[METHOD_AUTO_SPD] != 0;
    return (struct cuda__auto_call){
        .precision = call->precision,
        .n = call->n,
        .ld = (call->n + panel - 1) / panel * panel,
        .sorts = sorts,
        .definite = sorts && definite,
        .averages = averages,
        .lists = sorts || averages,
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
    };
}

/* Matrices whose lists are kept at a time; all, where there are none. */
static int64_t chunk_of(const struct cuda__auto_call *of, int64_t matrices)
{
    return of->lists ? min_i64(matrices, CHUNK_MAX) : matrices;
}

size_t cuda__auto_bytes(const struct cuda_call *call, bool sorts, int64_t matrices)
{
    struct cuda__auto_call of = cuda__auto_read(call, sorts);
    int64_t chunk = chunk_of(&of, matrices);
    return bytes_of(&of, chunk, places_wanted(&of, chunk), held_wanted(&of, chunk), chunk);
}

size_t cuda_auto_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda__auto_bytes(call, call->n >= CUDA_AUTO_SORTED_N_MIN, matrices);
}

bool cuda__auto_settle(struct cuda__auto_call *of, const struct cuda_call *call)
{
    size_t bytes = call->workspace_bytes;
    int64_t matrices = chunk_of(of, call->matrices);
    while (of->lists && matrices > 1 && bytes_of(of, matrices, 1, 1, 1) > bytes)
        matrices /= 2;
    int64_t places = places_wanted(of, matrices), held = held_wanted(of, matrices);
    while (places > 1 && bytes_of(of, matrices, places, 1, 1) > bytes)
        places /= 2;
    while (held > 1 && bytes_of(of, matrices, 1, held, 1) > bytes)
        held /= 2;
    if (bytes_of(of, matrices, places, held, 1) > bytes)
        return false;
    size_t lists = lay_out_lists(of, matrices, call->workspace);
    of->space.shared = (unsigned char *)call->workspace + lists;
    of->space.shared_bytes = bytes - lists;
    (void)lay_out_places(of, places, of->space.shared);
    (void)lay_out_held(of, held, of->space.shared);
    return true;
}
