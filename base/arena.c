/* arena.c: two-level segregated fit (Masmano et al., 2004) over the granules of one memfd.
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
 * Threads: one mutex around alloc and free; the count of used bytes is an atomic.
 * Cost: alloc and free O(1), about 50 ns; 16 bytes of notes for a granule that begins or ends a
 * run. When no longer run exists the request's own class is searched too, SEARCH_MAX runs deep.
 */
#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

struct run_note {
    uint32_t length;         /* granules; at the first and the last granule of the run */
    uint32_t used;           /* 1 or 0; likewise */
    uint32_t next, previous; /* free runs of the class; at the first granule of a free run */
};

struct arena {
    int fd;
    unsigned char *base;
    uint64_t bytes;
    uint32_t granules;
    _Atomic uint64_t used_bytes;
    pthread_mutex_t lock;
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

static void note_run(struct arena *arena, uint32_t first, uint32_t length, uint32_t used)
{
    struct run_note *head = &arena->notes[first];
    struct run_note *tail = &arena->notes[first + length - 1];
    head->length = tail->length = length;
    head->used = tail->used = used;
}

/* ---- Life ---- */

/* Creates, sizes, seals and maps the memfd. */
static enum error map_memory(struct arena *arena, struct failure *failure)
{
    arena->fd = memfd_create("invertd-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arena->fd < 0)
        return failure_set(failure, ERROR_INTERNAL, "The arena's memfd cannot be made: %s.",
                           strerror(errno));
    /* Sealed so that no process that holds the descriptor can make another fault by shrinking it.
     */
    if (ftruncate(arena->fd, (off_t)arena->bytes) != 0 ||
        fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return failure_set(failure, ERROR_INTERNAL, "The arena cannot be given %llu bytes: %s.",
                           (unsigned long long)arena->bytes, strerror(errno));
    void *base = mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (base == MAP_FAILED)
        return failure_set(failure, ERROR_INTERNAL, "The arena of %llu bytes cannot be mapped: %s.",
                           (unsigned long long)arena->bytes, strerror(errno));
    arena->base = base;
    /* Fewer page faults where the system allows huge pages for memfds; no loss where not. */
    (void)madvise(base, arena->bytes, MADV_HUGEPAGE);

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
    if (arena->base != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->bytes);
        munmap(arena->base, arena->bytes);
    }
    if (arena->fd >= 0)
        close(arena->fd);
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
    struct arena *made = calloc(1, sizeof *made);
    if (made == NULL)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the arena.");
    made->fd = -1;
    made->bytes = (uint64_t)rounded;
    made->granules = (uint32_t)(rounded / ARENA_GRANULE);
    memset(made->heads, 0xff, sizeof made->heads); /* NOWHERE */
    enum error error = map_memory(made, failure);
    if (error != ERROR_NONE) {
        unmap_memory(made);
        free(made);
        return error;
    }
    int status = pthread_mutex_init(&made->lock, NULL);
    assert(status == 0);
    note_run(made, 0, made->granules, 0);
    list_insert(made, 0);
    *arena = made;
    return ERROR_NONE;
}

void arena_destroy(struct arena **arena)
{
    struct arena *old = *arena;
    if (old == NULL)
        return;
    assert(atomic_load(&old->used_bytes) == 0);
    *arena = NULL;
    pthread_mutex_destroy(&old->lock);
    unmap_memory(old);
    free(old);
}

/* ---- Slots ---- */

/* Takes length granules from the start of a free run; what is left stays free. */
static void take_run(struct arena *arena, uint32_t first, uint32_t length)
{
    uint32_t whole = arena->notes[first].length;
    assert(arena->notes[first].used == 0 && whole >= length);
    list_remove(arena, first);
    note_run(arena, first, length, 1);
    if (whole == length)
        return;
    note_run(arena, first + length, whole - length, 0);
    list_insert(arena, first + length);
}

enum error arena_alloc(struct arena *arena, int64_t bytes, struct arena_slot *slot)
{
    assert(bytes >= 0);
    int64_t rounded;
    if (!checked_round_up(bytes > 0 ? bytes : 1, ARENA_GRANULE, &rounded) ||
        (uint64_t)rounded > arena->bytes)
        return ERROR_FULL;
    uint32_t length = (uint32_t)(rounded / ARENA_GRANULE);

    pthread_mutex_lock(&arena->lock);
    uint32_t first = find_above(arena, length);
    if (first == NOWHERE)
        first = find_within(arena, length);
    if (first != NOWHERE)
        take_run(arena, first, length);
    pthread_mutex_unlock(&arena->lock);
    if (first == NOWHERE)
        return ERROR_FULL;

    atomic_fetch_add_explicit(&arena->used_bytes, (uint64_t)rounded, memory_order_relaxed);
    slot->offset_bytes = (uint64_t)first * ARENA_GRANULE;
    slot->bytes = (uint64_t)rounded;
    ASAN_UNPOISON_MEMORY_REGION(arena->base + slot->offset_bytes, slot->bytes);
    return ERROR_NONE;
}

/* Frees the used run at first and joins it with its free neighbours. */
static void release_run(struct arena *arena, uint32_t first, uint32_t length)
{
    struct run_note *notes = arena->notes;
    notes[first].used = 0; /* it may end up inside a longer run; a second free must see it */
    uint32_t behind = first + length;
    if (behind < arena->granules && notes[behind].used == 0) {
        list_remove(arena, behind);
        length += notes[behind].length;
    }
    if (first > 0 && notes[first - 1].used == 0) {
        uint32_t before = first - notes[first - 1].length;
        list_remove(arena, before);
        length += first - before;
        first = before;
    }
    note_run(arena, first, length, 0);
    list_insert(arena, first);
}

void arena_free(struct arena *arena, struct arena_slot *slot)
{
    if (slot->bytes == 0)
        return;
    assert(slot->offset_bytes % ARENA_GRANULE == 0 && slot->bytes % ARENA_GRANULE == 0);
    assert(slot->offset_bytes < arena->bytes && slot->bytes <= arena->bytes - slot->offset_bytes);
    uint32_t first = (uint32_t)(slot->offset_bytes / ARENA_GRANULE);
    uint32_t length = (uint32_t)(slot->bytes / ARENA_GRANULE);
    /* Under the sanitizer, whoever touches a slot that was given back is reported. */
    ASAN_POISON_MEMORY_REGION(arena->base + slot->offset_bytes, slot->bytes);

    pthread_mutex_lock(&arena->lock);
    /* A slot given back twice, or one the arena never granted. */
    assert(arena->notes[first].used == 1 && arena->notes[first].length == length);
    release_run(arena, first, length);
    pthread_mutex_unlock(&arena->lock);

    atomic_fetch_sub_explicit(&arena->used_bytes, slot->bytes, memory_order_relaxed);
    *slot = (struct arena_slot){0};
}

unsigned char *arena_base(const struct arena *arena)
{
    return arena->base;
}

int arena_fd(const struct arena *arena)
{
    return arena->fd;
}

uint64_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}

uint64_t arena_used_bytes(const struct arena *arena)
{
    return atomic_load_explicit(&arena->used_bytes, memory_order_relaxed);
}
