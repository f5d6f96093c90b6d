/* base/arena.c: two-level segregated fit (Masmano et al., 2004) over the granules of one memfd.
 *
 * The arena is divided into runs of granules, each free or used; two neighbours are never both
 * free. A free run is in the list of its size class: class = (floor(log2 length), the next four
 * bits), so that the runs of a class differ by less than a sixteenth. Two bitmaps say which lists
 * are not empty. A request is rounded up to the next class border, where any run is long enough,
 * and takes the head of the first list that is not empty.
 *
 *      granule   0        3  4     6  7                12
 *                [ used 4  ] [free 3] [ used 6          ]     notes at 0,3  4,6  7,12
 *
 * What is known of a run (length, used, list neighbours) is noted at its first granule, length and
 * used also at its last, in an array of our own. That array is reserved for all granules but
 * touched, and so backed by memory, only where runs begin and end.
 *
 * Event loops on many cores would fight for that map's lock, so short runs that are given back are
 * kept in magazines, one for each few processors, and handed out again from there. What is kept is
 * neither used nor free: it returns to the map when the map has no run for a request.
 *
 * Threads: one mutex around the map, one for each magazine, never two at once. A used run's first
 * note is written by the owner of the run; neighbours only look whether it is free.
 * Cost: alloc and free O(1), about 50 ns, 20 ns from a magazine; 16 bytes of notes for a granule
 * that begins or ends a run. When no longer run exists the request's own class is searched too,
 * SEARCH_MAX runs deep. Magazines hold at most MAGAZINES / KEPT_SHARE of the arena.
 */
#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#define UNIT_BYTES (INT64_C(2) << 20) /* the arena is a whole number of huge pages */
#define FINE_BITS 4
#define FINE_CLASSES (1 << FINE_BITS)
#define COARSE_CLASSES 32
#define GRANULES_MAX (UINT32_MAX - 1)
#define NOWHERE UINT32_MAX /* no granule */
#define SEARCH_MAX 64
#define MAGAZINES 16
#define KEPT_LENGTH_MAX 32 /* granules of a run that is kept */
#define KEPT_COUNT_MAX 32  /* runs of one length that a magazine keeps */
#define KEPT_SHARE 1024    /* of the arena, that a magazine keeps at most */

enum use {
    USE_FREE,
    USE_TAKEN,
    USE_KEPT /* in a magazine */
};

struct run_note {
    uint32_t length;         /* granules; at the first and the last granule of the run */
    _Atomic uint32_t use;    /* enum use, KEPT at the first alone; likewise */
    uint32_t next, previous; /* free runs of the class; at the first granule of a free run */
};

struct magazine {
    _Alignas(64) pthread_mutex_t lock;
    _Atomic int64_t used_bytes; /* taken less given back here: those of all together are true */
    uint32_t kept_granules;     /* from here on under the lock */
    uint32_t counts[KEPT_LENGTH_MAX + 1];
    uint32_t firsts[KEPT_LENGTH_MAX + 1][KEPT_COUNT_MAX]; /* the first granules, by length */
};

struct arena {
    struct region *region;
    unsigned char *base; /* of the region */
    uint64_t bytes;
    uint32_t granules;
    struct magazine magazines[MAGAZINES];
    _Alignas(64) pthread_mutex_t lock;
    /* Under the lock. */
    struct run_note *notes; /* [granules] */
    uint32_t coarse_map;    /* bit c: fine_maps[c] is not 0 */
    uint32_t fine_maps[COARSE_CLASSES];
    uint32_t heads[COARSE_CLASSES][FINE_CLASSES];
};

struct size_class {
    unsigned coarse, fine;
};

/* ---- Free lists ---- */

static unsigned log2_of(uint32_t length)
{
    return 31U - (unsigned)__builtin_clz(length);
}

/* The class a run of this length belongs to. Below FINE_CLASSES granules every length has its own.
 */
static struct size_class class_of(uint32_t length)
{
    assert(length > 0);
    unsigned log2 = log2_of(length);
    if (log2 < FINE_BITS)
        return (struct size_class){0, length};
    unsigned fine = (length >> (log2 - FINE_BITS)) & (FINE_CLASSES - 1);
    return (struct size_class){log2 - FINE_BITS + 1, fine};
}

/* The least length whose class holds only runs of at least length granules. */
static uint64_t class_border(uint32_t length)
{
    unsigned log2 = log2_of(length);
    if (log2 < FINE_BITS)
        return length;
    uint64_t step = UINT64_C(1) << (log2 - FINE_BITS);
    return (length + step - 1) & ~(step - 1);
}

static void list_insert(struct arena *arena, uint32_t first)
{
    struct size_class class = class_of(arena->notes[first].length);
    uint32_t *head = &arena->heads[class.coarse][class.fine];
    arena->notes[first].previous = NOWHERE;
    arena->notes[first].next = *head;
    if (*head != NOWHERE)
        arena->notes[*head].previous = first;
    *head = first;
    arena->fine_maps[class.coarse] |= 1U << class.fine;
    arena->coarse_map |= 1U << class.coarse;
}

static void list_remove(struct arena *arena, uint32_t first)
{
    struct run_note *note = &arena->notes[first];
    struct size_class class = class_of(note->length);
    uint32_t *head = &arena->heads[class.coarse][class.fine];
    if (note->next != NOWHERE)
        arena->notes[note->next].previous = note->previous;
    if (note->previous != NOWHERE) {
        arena->notes[note->previous].next = note->next;
        return;
    }
    assert(*head == first);
    *head = note->next;
    if (*head != NOWHERE)
        return;
    arena->fine_maps[class.coarse] &= ~(1U << class.fine);
    if (arena->fine_maps[class.coarse] == 0)
        arena->coarse_map &= ~(1U << class.coarse);
}

/* The head of the first list whose runs are all of at least length granules; NOWHERE: none. */
static uint32_t find_above(const struct arena *arena, uint32_t length)
{
    uint64_t border = class_border(length);
    if (border > arena->granules)
        return NOWHERE;
    struct size_class class = class_of((uint32_t)border);
    uint32_t fine_map = arena->fine_maps[class.coarse] & (UINT32_MAX << class.fine);
    if (fine_map == 0) {
        uint32_t above = class.coarse + 1 < COARSE_CLASSES ? UINT32_MAX << (class.coarse + 1) : 0;
        uint32_t coarse_map = arena->coarse_map & above;
        if (coarse_map == 0)
            return NOWHERE;
        class.coarse = (unsigned)__builtin_ctz(coarse_map);
        fine_map = arena->fine_maps[class.coarse];
    }
    return arena->heads[class.coarse][__builtin_ctz(fine_map)];
}

/* A run among the request's own class, some of which are too short. A request for all that is free
 * needs this. */
static uint32_t find_within(const struct arena *arena, uint32_t length)
{
    struct size_class class = class_of(length);
    uint32_t first = arena->heads[class.coarse][class.fine];
    for (int i = 0; i < SEARCH_MAX && first != NOWHERE; i++) {
        if (arena->notes[first].length >= length)
            return first;
        first = arena->notes[first].next;
    }
    return NOWHERE;
}

static void set_use(struct arena *arena, uint32_t granule, enum use use)
{
    atomic_store_explicit(&arena->notes[granule].use, use, memory_order_relaxed);
}

static enum use use_of(const struct arena *arena, uint32_t granule)
{
    return (enum use)atomic_load_explicit(&arena->notes[granule].use, memory_order_relaxed);
}

static void note_run(struct arena *arena, uint32_t first, uint32_t length, enum use use)
{
    uint32_t last = first + length - 1;
    arena->notes[first].length = arena->notes[last].length = length;
    set_use(arena, first, use);
    set_use(arena, last, use);
}

/* ---- Life ---- */

/* Creates, sizes and seals the memfd. On failure it may be open still. */
static enum error make_file(uint64_t bytes, int *fd, struct failure *failure)
{
    *fd = memfd_create("invertd-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return failure_set(failure, ERROR_INTERNAL, "The arena's memfd cannot be made: %s.",
                           strerror(errno));
    /* Sealed so that no process that holds the descriptor can make another fault by shrinking it.
     */
    if (ftruncate(*fd, (off_t)bytes) != 0 ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return failure_set(failure, ERROR_INTERNAL, "The arena cannot be given %llu bytes: %s.",
                           (unsigned long long)bytes, strerror(errno));
    return ERROR_NONE;
}

static enum error map_memory(struct arena *arena, struct failure *failure)
{
    int fd = -1;
    enum error error = make_file(arena->bytes, &fd, failure);
    if (error == ERROR_NONE)
        error = region_create(REGION_ARENA, fd, arena->bytes, &arena->region, failure);
    if (error != ERROR_NONE) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    arena->base = region_map(arena->region).base;
    /* Fewer page faults where the system allows huge pages for memfds; no loss where not. */
    (void)madvise(arena->base, arena->bytes, MADV_HUGEPAGE);

    void *notes = mmap(NULL, arena->granules * sizeof arena->notes[0], PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (notes == MAP_FAILED)
        return failure_set(failure, ERROR_INTERNAL, "The arena's map cannot be made: %s.",
                           strerror(errno));
    arena->notes = notes;
    return ERROR_NONE;
}

static void unmap_memory(struct arena *arena)
{
    if (arena->notes != NULL)
        munmap(arena->notes, arena->granules * sizeof arena->notes[0]);
    if (arena->base != NULL)
        ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->bytes);
    region_drop(&arena->region);
}

static void init_locks(struct arena *arena)
{
    int status = pthread_mutex_init(&arena->lock, NULL);
    assert(status == 0);
    for (int i = 0; i < MAGAZINES; i++) {
        status = pthread_mutex_init(&arena->magazines[i].lock, NULL);
        assert(status == 0);
    }
}

enum error arena_create(int64_t bytes, struct arena **arena, struct failure *failure)
{
    *arena = NULL;
    int64_t rounded;
    if (bytes <= 0 || !checked_round_up(bytes, UNIT_BYTES, &rounded) ||
        rounded / ARENA_GRANULE > GRANULES_MAX)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "An arena of %lld bytes is not possible; allowed: 1 byte to %lld GiB.",
                           (long long)bytes,
                           (long long)((int64_t)GRANULES_MAX * ARENA_GRANULE >> 30));
    struct arena *made = aligned_alloc(_Alignof(struct arena), sizeof *made);
    if (made == NULL)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the arena.");
    memset(made, 0, sizeof *made);
    made->bytes = (uint64_t)rounded;
    made->granules = (uint32_t)(rounded / ARENA_GRANULE);
    memset(made->heads, 0xff, sizeof made->heads); /* NOWHERE */
    enum error error = map_memory(made, failure);
    if (error != ERROR_NONE) {
        unmap_memory(made);
        free(made);
        return error;
    }
    init_locks(made);
    note_run(made, 0, made->granules, USE_FREE);
    list_insert(made, 0);
    *arena = made;
    return ERROR_NONE;
}

void arena_destroy(struct arena **arena)
{
    struct arena *old = *arena;
    if (old == NULL)
        return;
    assert(arena_used_bytes(old) == 0);
    *arena = NULL;
    for (int i = 0; i < MAGAZINES; i++)
        pthread_mutex_destroy(&old->magazines[i].lock);
    pthread_mutex_destroy(&old->lock);
    unmap_memory(old);
    free(old);
}

/* ---- The map ---- */

/* Takes length granules from the start of a free run; what is left stays free. */
static void split_run(struct arena *arena, uint32_t first, uint32_t length)
{
    uint32_t whole = arena->notes[first].length;
    assert(use_of(arena, first) == USE_FREE && whole >= length);
    list_remove(arena, first);
    note_run(arena, first, length, USE_TAKEN);
    if (whole == length)
        return;
    note_run(arena, first + length, whole - length, USE_FREE);
    list_insert(arena, first + length);
}

/* NOWHERE: no free run is long enough. */
static uint32_t take_run(struct arena *arena, uint32_t length)
{
    pthread_mutex_lock(&arena->lock);
    uint32_t first = find_above(arena, length);
    if (first == NOWHERE)
        first = find_within(arena, length);
    if (first != NOWHERE)
        split_run(arena, first, length);
    pthread_mutex_unlock(&arena->lock);
    return first;
}

/* Frees the taken run at first and joins it with its free neighbours. Under the lock. */
static void release_run(struct arena *arena, uint32_t first, uint32_t length)
{
    struct run_note *notes = arena->notes;
    set_use(arena, first, USE_FREE); /* it may end up inside a longer run; a second free must see */
    uint32_t behind = first + length;
    if (behind < arena->granules && use_of(arena, behind) == USE_FREE) {
        list_remove(arena, behind);
        length += notes[behind].length;
    }
    if (first > 0 && use_of(arena, first - 1) == USE_FREE) {
        uint32_t before = first - notes[first - 1].length;
        list_remove(arena, before);
        length += first - before;
        first = before;
    }
    note_run(arena, first, length, USE_FREE);
    list_insert(arena, first);
}

/* ---- Magazines ---- */

/* Any one is right; the processor's own is seldom in use. -1 (no such call) is one too. */
static struct magazine *own_magazine(struct arena *arena)
{
    return &arena->magazines[(unsigned)sched_getcpu() % MAGAZINES];
}

/* NOWHERE: none of that length is kept. */
static uint32_t take_kept(struct arena *arena, struct magazine *magazine, uint32_t length)
{
    uint32_t first = NOWHERE;
    if (length > KEPT_LENGTH_MAX)
        return NOWHERE;
    pthread_mutex_lock(&magazine->lock);
    if (magazine->counts[length] > 0) {
        first = magazine->firsts[length][--magazine->counts[length]];
        magazine->kept_granules -= length;
        set_use(arena, first, USE_TAKEN);
    }
    pthread_mutex_unlock(&magazine->lock);
    return first;
}

/* false: there is no room for it, or it is too long. */
static bool keep(struct arena *arena, struct magazine *magazine, uint32_t first, uint32_t length)
{
    if (length > KEPT_LENGTH_MAX)
        return false;
    pthread_mutex_lock(&magazine->lock);
    bool room = magazine->counts[length] < KEPT_COUNT_MAX &&
                magazine->kept_granules + length <= arena->granules / KEPT_SHARE;
    if (room) {
        magazine->firsts[length][magazine->counts[length]++] = first;
        magazine->kept_granules += length;
        set_use(arena, first, USE_KEPT);
    }
    pthread_mutex_unlock(&magazine->lock);
    return room;
}

/* Gives everything that is kept back to the map; whether there was anything. */
static bool empty_magazines(struct arena *arena)
{
    bool any = false;
    for (int i = 0; i < MAGAZINES; i++)
        for (uint32_t length = 1; length <= KEPT_LENGTH_MAX; length++) {
            uint32_t first;
            while ((first = take_kept(arena, &arena->magazines[i], length)) != NOWHERE) {
                any = true;
                pthread_mutex_lock(&arena->lock);
                release_run(arena, first, length);
                pthread_mutex_unlock(&arena->lock);
            }
        }
    return any;
}

/* ---- Slots ---- */

enum error arena_alloc(struct arena *arena, int64_t bytes, struct arena_slot *slot)
{
    assert(bytes >= 0);
    int64_t rounded;
    if (!checked_round_up(bytes > 0 ? bytes : 1, ARENA_GRANULE, &rounded) ||
        (uint64_t)rounded > arena->bytes)
        return ERROR_FULL;
    uint32_t length = (uint32_t)(rounded / ARENA_GRANULE);

    struct magazine *magazine = own_magazine(arena);
    uint32_t first = take_kept(arena, magazine, length);
    if (first == NOWHERE)
        first = take_run(arena, length);
    if (first == NOWHERE && empty_magazines(arena))
        first = take_run(arena, length);
    if (first == NOWHERE)
        return ERROR_FULL;

    atomic_fetch_add_explicit(&magazine->used_bytes, rounded, memory_order_relaxed);
    slot->offset_bytes = (uint64_t)first * ARENA_GRANULE;
    slot->bytes = (uint64_t)rounded;
    ASAN_UNPOISON_MEMORY_REGION(arena->base + slot->offset_bytes, slot->bytes);
    return ERROR_NONE;
}

void arena_free(struct arena *arena, struct arena_slot *slot)
{
    if (slot->bytes == 0)
        return;
    assert(slot->offset_bytes % ARENA_GRANULE == 0 && slot->bytes % ARENA_GRANULE == 0);
    assert(slot->offset_bytes < arena->bytes && slot->bytes <= arena->bytes - slot->offset_bytes);
    uint32_t first = (uint32_t)(slot->offset_bytes / ARENA_GRANULE);
    uint32_t length = (uint32_t)(slot->bytes / ARENA_GRANULE);
    /* Under the sanitizer, a touch of a slot that was given back is reported. */
    ASAN_POISON_MEMORY_REGION(arena->base + slot->offset_bytes, slot->bytes);
    /* A slot given back twice, or one the arena never granted. */
    assert(use_of(arena, first) == USE_TAKEN && arena->notes[first].length == length);

    struct magazine *magazine = own_magazine(arena);
    atomic_fetch_sub_explicit(&magazine->used_bytes, (int64_t)slot->bytes, memory_order_relaxed);
    if (!keep(arena, magazine, first, length)) {
        pthread_mutex_lock(&arena->lock);
        release_run(arena, first, length);
        pthread_mutex_unlock(&arena->lock);
    }
    *slot = (struct arena_slot){0};
}

unsigned char *arena_base(const struct arena *arena)
{
    return arena->base;
}

int arena_fd(const struct arena *arena)
{
    return region_fd(arena->region);
}

struct region_map arena_map(const struct arena *arena)
{
    return region_map(arena->region);
}

uint64_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}

uint64_t arena_used_bytes(const struct arena *arena)
{
    int64_t sum = 0;
    for (int i = 0; i < MAGAZINES; i++)
        sum += atomic_load_explicit(&arena->magazines[i].used_bytes, memory_order_relaxed);
    /* Read one after the other: what moved in between may be counted on one side alone. */
    return sum > 0 ? (uint64_t)sum : 0;
}
