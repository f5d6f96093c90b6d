/* queue/reservation.c: who holds how much memory, and who waits for some.
 *
 * A body is not trusted with more than it has sent. Its first part lies in staging memory, outside
 * the arena, of which all bodies together have staging_bytes_max. Then the request is given all
 * that it needs of the arena at once: for its body, outputs and scratch. So what holds a part of
 * the arena can always be finished, and no request waits for another that waits for it.
 *
 * Who waits for the arena is served a client at a time, in turn; a client above its share comes
 * last. Small requests, which hold all they need from the start, overtake: a sixteenth of the arena
 * is theirs alone, and they may have a quarter of it while others wait.
 *
 * Threads: admission.c's lock guards everything; on_room is called outside it.
 * Cost: a few comparisons.
 */
#include "queue/queue_private.h"

#include <assert.h>

#include "base/clock.h"
#include "base/minmax.h"

#define SMALL_SHARE 16 /* of the arena, that large reservations leave to small ones */
#define SMALL_MAX_SHARE 4
#define STAGING_SHARE 4
#define LOOK_MAX 64 /* clients, or reservations, looked at in one go */

static bool is_small(const struct queue_reservation *reservation)
{
    return reservation->need_bytes <= QUEUE_RESERVATION_SMALL;
}

static int64_t lacking(const struct queue_reservation *reservation)
{
    return max_i64(reservation->need_bytes - reservation->held_bytes, 0);
}

/* What was reserved later is not counted. */
static int64_t held_as_small(const struct queue_reservation *reservation)
{
    return is_small(reservation) ? min_i64(reservation->held_bytes, reservation->need_bytes) : 0;
}

/* ---- Giving ---- */

/* Whether all that the reservation lacks is there for it. */
static bool has_room(const struct queue *queue, const struct queue_reservation *reservation)
{
    const struct queue_admission *admission = &queue->admission;
    int64_t max = queue->limits.bytes_max, free = max - admission->reserved_bytes;
    int64_t bytes = lacking(reservation);
    if (max == 0)
        return true;
    if (is_small(reservation))
        return bytes <= free &&
               (admission->waiting == 0 || admission->small_bytes + bytes <= max / SMALL_MAX_SHARE);
    int64_t left = min_i64(max / SMALL_SHARE, max - reservation->need_bytes);
    return bytes <= free - left;
}

/* A client has a quarter of it at most, or what one body wants. */
static bool has_staging_room(const struct queue *queue, const struct queue_reservation *reservation,
                             int64_t bytes)
{
    int64_t max = queue->limits.staging_bytes_max, own = reservation->entry->staged_bytes;
    return bytes <= max - queue->admission.staged_bytes &&
           (own == reservation->staged_bytes || own + bytes <= max / STAGING_SHARE);
}

static void give(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    struct queue_admission *admission = &queue->admission;
    admission->small_bytes -= held_as_small(reservation);
    reservation->held_bytes += bytes;
    admission->small_bytes += held_as_small(reservation);
    admission->reserved_bytes += bytes;
    reservation->entry->bytes += bytes;
    reservation->returns = admission->returns;
}

static void give_staging(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    reservation->staged_bytes += bytes;
    reservation->entry->staged_bytes += bytes;
    queue->admission.staged_bytes += bytes;
}

/* ---- Lines ---- */

static void append(struct queue_line *line, struct queue_reservation *reservation)
{
    reservation->before = line->last;
    reservation->behind = NULL;
    *(line->last == NULL ? &line->first : &line->last->behind) = reservation;
    line->last = reservation;
}

static void take_out(struct queue_line *line, struct queue_reservation *reservation)
{
    *(reservation->before == NULL ? &line->first : &reservation->before->behind) =
        reservation->behind;
    *(reservation->behind == NULL ? &line->last : &reservation->behind->before) =
        reservation->before;
    reservation->before = reservation->behind = NULL;
}

static void link_client(struct queue_admission *admission, struct queue_client *client)
{
    struct queue_client *last = admission->last_client;
    client->previous_waiting = last;
    client->next_waiting = NULL;
    *(last == NULL ? &admission->first_client : &last->next_waiting) = client;
    admission->last_client = client;
}

static void unlink_client(struct queue_admission *admission, struct queue_client *client)
{
    struct queue_client *before = client->previous_waiting, *behind = client->next_waiting;
    *(before == NULL ? &admission->first_client : &before->next_waiting) = behind;
    *(behind == NULL ? &admission->last_client : &behind->previous_waiting) = before;
}

static struct queue_line *line_of(struct queue *queue, const struct queue_reservation *reservation)
{
    return reservation->waits == QUEUE_WAITS_STAGING ? &queue->admission.staging_line
                                                     : &reservation->entry->line;
}

static void begin_to_wait(struct queue *queue, struct queue_reservation *reservation,
                          enum queue_waits what)
{
    struct queue_admission *admission = &queue->admission;
    reservation->waits = what;
    struct queue_line *line = line_of(queue, reservation);
    if (what != QUEUE_WAITS_STAGING && line->first == NULL)
        link_client(admission, reservation->entry);
    append(line, reservation);
    if (admission->waiting++ == 0)
        atomic_store(&admission->short_since_ns, clock_now_ns());
}

static void stop_waiting(struct queue *queue, struct queue_reservation *reservation)
{
    struct queue_admission *admission = &queue->admission;
    struct queue_line *line = line_of(queue, reservation);
    take_out(line, reservation);
    if (reservation->waits != QUEUE_WAITS_STAGING && line->first == NULL)
        unlink_client(admission, reservation->entry);
    reservation->waits = QUEUE_WAITS_NOT;
    if (--admission->waiting == 0)
        atomic_store(&admission->short_since_ns, 0);
}

/* ---- Serving ---- */

/* Gives a waiting reservation what it waits for, if it is there, and chains it. */
static bool serve(struct queue *queue, struct queue_reservation *reservation,
                  struct queue_reservation **served)
{
    enum queue_waits waits = reservation->waits;
    if (waits == QUEUE_WAITS_STAGING
            ? !has_staging_room(queue, reservation, reservation->staging_wanted_bytes)
            : waits == QUEUE_WAITS_WHOLE && !has_room(queue, reservation))
        return false;
    stop_waiting(queue, reservation);
    if (waits == QUEUE_WAITS_STAGING)
        give_staging(queue, reservation, reservation->staging_wanted_bytes);
    else if (waits == QUEUE_WAITS_WHOLE)
        give(queue, reservation, lacking(reservation));
    reservation->next_served = *served;
    *served = reservation;
    return true;
}

static bool is_above_share(const struct queue *queue, const struct queue_reservation *reservation)
{
    int64_t max = queue->limits.client_bytes_max;
    return max > 0 && reservation->entry->bytes + lacking(reservation) > max;
}

/* Serves clients that are above their share, or those that are not, in turn. blocked: others have
 * to wait on, so that only small ones are served. Whether some have to after it. */
static bool serve_clients(struct queue *queue, bool above, bool blocked,
                          struct queue_reservation **served)
{
    struct queue_admission *admission = &queue->admission;
    struct queue_client *client = admission->first_client, *next;
    for (int looks = 0; client != NULL && looks < LOOK_MAX; looks++, client = next) {
        struct queue_reservation *reservation = client->line.first;
        next = client->next_waiting;
        if (is_above_share(queue, reservation) != above)
            continue;
        if ((blocked && !is_small(reservation)) || !serve(queue, reservation, served)) {
            blocked = true;
            continue;
        }
        if (client->line.first == NULL)
            continue;
        unlink_client(admission, client); /* to the end of the line */
        link_client(admission, client);
        if (next == NULL)
            next = client;
    }
    return blocked;
}

struct queue_reservation *queue__reservation_serve(struct queue *queue)
{
    struct queue_reservation *served = NULL;
    queue->admission.returns++;
    if (queue->admission.waiting == 0)
        return NULL;
    bool blocked = serve_clients(queue, false, false, &served);
    (void)serve_clients(queue, true, blocked, &served);
    struct queue_reservation *reservation = queue->admission.staging_line.first, *behind;
    for (int looks = 0; reservation != NULL && looks < LOOK_MAX; looks++, reservation = behind) {
        behind = reservation->behind;
        (void)serve(queue, reservation, &served);
    }
    return served;
}

void queue__reservation_report(struct queue_reservation *served)
{
    while (served != NULL) {
        struct queue_reservation *next = served->next_served;
        served->on_room(served); /* which may be the end of it */
        served = next;
    }
}

/* ---- What a request asks for ---- */

void queue__reservation_open(struct queue *queue, struct queue_reservation *reservation)
{
    if (is_small(reservation) && has_room(queue, reservation))
        give(queue, reservation, lacking(reservation));
}

bool queue__reservation_take(struct queue *queue, struct queue_reservation *reservation)
{
    assert(reservation->waits == QUEUE_WAITS_NOT);
    bool others_first = queue->admission.first_client != NULL && !is_small(reservation);
    if (others_first || !has_room(queue, reservation)) {
        begin_to_wait(queue, reservation, QUEUE_WAITS_WHOLE);
        return false;
    }
    give(queue, reservation, lacking(reservation));
    return true;
}

bool queue__reservation_take_staging(struct queue *queue, struct queue_reservation *reservation,
                                     int64_t bytes)
{
    assert(reservation->waits == QUEUE_WAITS_NOT && bytes > 0);
    if (has_staging_room(queue, reservation, bytes)) {
        give_staging(queue, reservation, bytes);
        return true;
    }
    reservation->staging_wanted_bytes = bytes;
    begin_to_wait(queue, reservation, QUEUE_WAITS_STAGING);
    return false;
}

bool queue__reservation_await_piece(struct queue *queue, struct queue_reservation *reservation)
{
    assert(reservation->waits == QUEUE_WAITS_NOT);
    if (reservation->returns != queue->admission.returns) {
        reservation->returns = queue->admission.returns;
        return true;
    }
    begin_to_wait(queue, reservation, QUEUE_WAITS_PIECE);
    return false;
}

bool queue__reservation_stop_waiting(struct queue *queue, struct queue_reservation *reservation)
{
    bool waited = reservation->waits != QUEUE_WAITS_NOT;
    if (waited)
        stop_waiting(queue, reservation);
    return waited;
}

enum error queue__reservation_add(struct queue *queue, struct queue_reservation *reservation,
                                  int64_t bytes, struct failure *failure)
{
    int64_t max = queue->limits.bytes_max;
    assert(bytes >= 0 && reservation->waits == QUEUE_WAITS_NOT);
    if (max > 0 && bytes > max - queue->admission.reserved_bytes)
        return failure_set(failure, ERROR_FULL,
                           "The service's memory is taken by other requests; try again later.");
    if (reservation->account != NULL) {
        enum error error = queue__quota_grow(reservation->account, reservation,
                                             reservation->held_bytes + bytes, failure);
        if (error != ERROR_NONE)
            return error;
    }
    give(queue, reservation, bytes);
    return ERROR_NONE;
}

void queue__reservation_remove(struct queue *queue, struct queue_reservation *reservation,
                               int64_t bytes)
{
    struct queue_admission *admission = &queue->admission;
    assert(bytes >= 0 && reservation->held_bytes >= bytes && reservation->waits == QUEUE_WAITS_NOT);
    assert(admission->reserved_bytes >= bytes && reservation->entry->bytes >= bytes);
    admission->small_bytes -= held_as_small(reservation);
    reservation->held_bytes -= bytes;
    admission->small_bytes += held_as_small(reservation);
    admission->reserved_bytes -= bytes;
    reservation->entry->bytes -= bytes;
    if (reservation->account != NULL)
        queue__quota_shrink(reservation->account, reservation, bytes);
}

void queue__reservation_remove_staging(struct queue *queue, struct queue_reservation *reservation)
{
    assert(queue->admission.staged_bytes >= reservation->staged_bytes);
    queue->admission.staged_bytes -= reservation->staged_bytes;
    reservation->entry->staged_bytes -= reservation->staged_bytes;
    reservation->staged_bytes = 0;
}
