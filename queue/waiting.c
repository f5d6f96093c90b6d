/* queue/waiting.c: the wait queues and the scheduler (deficit round-robin).
 *
 * Items wait in lists, one for each (priority, client, key), oldest first. The lists of a device
 * class, lane kind and priority form a ring. A list may lead a batch while its deficit is positive.
 * It pays for what is taken from it by predicted cost. When no list of the lane kind may lead, each
 * gets a quantum by its priority. So a higher priority goes first and gets more, and none is
 * starved. The lists of one key also form a circle, their group: they fill up the leader's batch in
 * turns of a quantum, and pay for it too.
 *
 * Threads: under the queue's lock.
 * Cost: adding and taking are O(1) an item; picking is O(lists in debt) at most.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUANTUM_NS 250e3 /* of normal priority */

/* A higher priority gets four times the share of the next lower one; none is starved. The
 * background has a lane kind to itself. */
static const double quantum_ns[QUEUE_PRIORITIES] = {[1] = 4 * QUANTUM_NS,
                                                    [2] = QUANTUM_NS,
                                                    [3] = QUANTUM_NS / 4,
                                                    [QUEUE_PRIORITY_BACKGROUND] = QUANTUM_NS};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t key_hash(const struct queue_key *key)
{
    uint64_t hash = mix((uint64_t)method_index(key->method) + 1, (uint64_t)key->n);
    hash = mix(hash, (uint64_t)key->m);
    hash = mix(hash, (uint64_t)key->inputs);
    hash = mix(hash, (uint64_t)key->only_engine);
    hash =
        mix(hash, (uint64_t)((key->device_class * PRECISION_COUNT + key->precision) * ENGINE_LANES +
                             key->lane));
    for (int i = 0; i < METHOD_OPTIONS_MAX; i++)
        hash = mix(hash, (uint64_t)key->options[i]);
    return hash;
}

static uint64_t list_hash(uint64_t hash, int priority, uint32_t client)
{
    return mix(mix(hash, (uint64_t)priority), client);
}

static enum engine_lane_id lane_of(const struct queue *queue, const struct queue_item *item)
{
    if (item->priority == QUEUE_PRIORITY_BACKGROUND)
        return ENGINE_LANE_BACKGROUND;
    bool is_long = item->cost_ns > (double)queue->limits.long_cost_ns;
    return is_long ? ENGINE_LANE_LONG : ENGINE_LANE_SHORT;
}

static void key_of(const struct queue *queue, const struct queue_item *item,
                   enum queue_class_id device_class, struct queue_key *key)
{
    memset(key, 0, sizeof *key);
    key->method = item->method;
    key->device_class = device_class;
    key->precision = item->precision;
    key->lane = lane_of(queue, item);
    key->n = item->n;
    key->m = item->m;
    key->only_engine = item->only_engine;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        key->inputs |= item->inputs[i].region != ENGINE_REGION_NONE ? INT64_C(1) << i : 0;
    memcpy(key->options, item->options, sizeof key->options);
}

static struct queue_group *group_get(struct queue *queue, const struct queue_key *key,
                                     uint64_t hash)
{
    struct queue_group **bucket = &queue->groups[hash % QUEUE_HASH_SIZE];
    for (struct queue_group *group = *bucket; group != NULL; group = group->hash_next)
        if (memcmp(&group->key, key, sizeof *key) == 0)
            return group;
    struct queue_group *group = calloc(1, sizeof *group);
    if (group == NULL)
        return NULL;
    group->key = *key;
    group->hash_next = *bucket;
    *bucket = group;
    return group;
}

static void group_free_if_empty(struct queue *queue, struct queue_group *group)
{
    if (group->lists != NULL)
        return;
    struct queue_group **link = &queue->groups[key_hash(&group->key) % QUEUE_HASH_SIZE];
    while (*link != group)
        link = &(*link)->hash_next;
    *link = group->hash_next;
    free(group);
}

/* The ring of the list's device class, lane kind and priority. */
static struct queue_waiting **ring_of(struct queue *queue, const struct queue_waiting *list)
{
    const struct queue_key *key = &list->group->key;
    return &queue->classes[key->device_class].rings[key->lane][list->priority];
}

/* Puts the list last in its group's circle and in its lane's ring. */
static void list_link(struct queue *queue, struct queue_waiting *list)
{
    struct queue_group *group = list->group;
    struct queue_waiting *head = group->lists;
    list->group_next = head != NULL ? head : list;
    list->group_previous = head != NULL ? head->group_previous : list;
    list->group_previous->group_next = list;
    list->group_next->group_previous = list;
    if (head == NULL)
        group->lists = list;

    struct queue_waiting **ring = ring_of(queue, list);
    head = *ring;
    list->ring_next = head != NULL ? head : list;
    list->ring_previous = head != NULL ? head->ring_previous : list;
    list->ring_previous->ring_next = list;
    list->ring_next->ring_previous = list;
    if (head == NULL)
        *ring = list;
}

static void list_unlink(struct queue *queue, struct queue_waiting *list)
{
    struct queue_group *group = list->group;
    if (group->lists == list)
        group->lists = list->group_next != list ? list->group_next : NULL;
    list->group_previous->group_next = list->group_next;
    list->group_next->group_previous = list->group_previous;

    struct queue_waiting **ring = ring_of(queue, list);
    if (*ring == list)
        *ring = list->ring_next != list ? list->ring_next : NULL;
    list->ring_previous->ring_next = list->ring_next;
    list->ring_next->ring_previous = list->ring_previous;
}

static struct queue_waiting **list_bucket(struct queue *queue, const struct queue_waiting *list)
{
    uint64_t hash = list_hash(key_hash(&list->group->key), list->priority, list->client);
    return &queue->lists[hash % QUEUE_HASH_SIZE];
}

static struct queue_waiting *list_get(struct queue *queue, const struct queue_item *item,
                                      enum queue_class_id device_class)
{
    struct queue_key key;
    key_of(queue, item, device_class, &key);
    uint64_t hash = key_hash(&key);
    int priority = item->priority == 0 ? QUEUE_PRIORITY_NORMAL : item->priority;
    uint64_t bucket = list_hash(hash, priority, item->client) % QUEUE_HASH_SIZE;
    for (struct queue_waiting *list = queue->lists[bucket]; list != NULL; list = list->hash_next)
        if (list->priority == priority && list->client == item->client &&
            memcmp(&list->group->key, &key, sizeof key) == 0)
            return list;

    struct queue_waiting *list = calloc(1, sizeof *list);
    struct queue_group *group = list != NULL ? group_get(queue, &key, hash) : NULL;
    if (group == NULL) {
        free(list);
        return NULL;
    }
    list->group = group;
    list->priority = priority;
    list->client = item->client;
    list->deficit_ns = quantum_ns[priority];
    list->hash_next = queue->lists[bucket];
    queue->lists[bucket] = list;
    list_link(queue, list);
    return list;
}

static void list_free_if_empty(struct queue *queue, struct queue_waiting *list)
{
    if (list->first != NULL)
        return;
    struct queue_group *group = list->group;
    struct queue_waiting **link = list_bucket(queue, list);
    while (*link != list)
        link = &(*link)->hash_next;
    *link = list->hash_next;
    list_unlink(queue, list);
    free(list);
    group_free_if_empty(queue, group);
}

/* Predicted time of `count` of the item's matrices. */
static double item_cost_ns(const struct queue_item *item, int64_t count)
{
    return item->cost_ns * ((double)count / (double)item->batch);
}

static void count_waiting(struct queue *queue, struct queue_group *group,
                          const struct queue_item *item, int64_t matrices)
{
    double cost_ns = item_cost_ns(item, matrices);
    group->cost_ns += cost_ns;
    group->matrices += matrices;
    group->bytes += matrices * item->matrix_bytes;
    queue->waiting_cost_ns += cost_ns;
}

int64_t queue__matrix_bytes(const struct queue_item *item)
{
    const struct method *method = item->method;
    int64_t bytes = 0;
    for (int i = 0; i < method_input_count(method); i++)
        if (item->inputs[i].region != ENGINE_REGION_NONE)
            bytes += method_tensor_bytes(&method->inputs[i], item->precision, item->n, item->m,
                                         item->options);
    for (int i = 0; i < method_output_count(method); i++)
        if (item->outputs[i].region != ENGINE_REGION_NONE)
            bytes += method_tensor_bytes(&method->outputs[i], item->precision, item->n, item->m,
                                         item->options);
    assert(bytes > 0);
    return bytes;
}

enum error queue__waiting_add(struct queue *queue, struct queue_item *item)
{
    assert(item->list == NULL && item->taken < item->batch);
    enum queue_class_id device_class = queue__class_route(queue, item);
    item->matrix_bytes = queue__matrix_bytes(item);
    struct queue_work work = {.method = item->method,
                              .precision = item->precision,
                              .n = item->n,
                              .m = item->m,
                              .matrices = item->batch,
                              .bytes = item->batch * item->matrix_bytes};
    if (item->cost_ns == 0)
        item->cost_ns = queue__cost_ns(queue, device_class, &work);
    struct queue_waiting *list = list_get(queue, item, device_class);
    if (list == NULL)
        return ERROR_FULL;
    assert(list->priority >= 1 && list->priority < QUEUE_PRIORITIES);
    item->list = list;
    item->next = NULL;
    item->previous = list->last;
    if (list->last != NULL)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
    count_waiting(queue, list->group, item, item->batch - item->taken);
    return ERROR_NONE;
}

/* Takes the item out of its list, which stays even if it is empty. */
static void list_remove(struct queue_waiting *list, struct queue_item *item)
{
    assert(item->list == list);
    if (item->previous != NULL)
        item->previous->next = item->next;
    else
        list->first = item->next;
    if (item->next != NULL)
        item->next->previous = item->previous;
    else
        list->last = item->previous;
    item->next = item->previous = NULL;
    item->list = NULL;
}

void queue__waiting_remove(struct queue *queue, struct queue_item *item)
{
    struct queue_waiting *list = item->list;
    if (list == NULL)
        return;
    count_waiting(queue, list->group, item, -(item->batch - item->taken));
    list_remove(list, item);
    list_free_if_empty(queue, list);
}

static bool is_ripe(const struct queue *queue, const struct queue_waiting *list, uint64_t now_ns)
{
    const struct queue_limits *limits = &queue->limits;
    const struct queue_group *group = list->group;
    return limits->batch_wait_ns == 0 ||
           group->matrices >= limits->batch_matrices_max[group->key.device_class] ||
           group->bytes >= limits->batch_bytes_max ||
           group->cost_ns >= (double)limits->batch_cost_ns ||
           now_ns >= list->first->queued_ns + (uint64_t)limits->batch_wait_ns;
}

/* May the list lead a batch for the lane? */
static bool may_lead(const struct queue_lane *lane, const struct queue_waiting *list,
                     uint64_t now_ns)
{
    int64_t only = list->group->key.only_engine;
    return (only == 0 || only == lane->number + 1) && is_ripe(lane->queue, list, now_ns);
}

/* The next list of a ring that may lead and is not in debt; *any: whether any may lead at all. */
static struct queue_waiting *solvent(const struct queue_lane *lane, struct queue_waiting **ring,
                                     uint64_t now_ns, bool *any)
{
    struct queue_waiting *list = *ring;
    while (list != NULL) {
        if (may_lead(lane, list, now_ns)) {
            *any = true;
            if (list->deficit_ns > 0) {
                *ring = list;
                return list;
            }
        }
        list = list->ring_next != *ring ? list->ring_next : NULL;
    }
    return NULL;
}

/* The smallest count of quanta after which a list of the ring may lead and is out of debt. */
static double rounds_needed(const struct queue_lane *lane, const struct queue_waiting *ring,
                            uint64_t now_ns, double min)
{
    const struct queue_waiting *list = ring;
    while (list != NULL) {
        double rounds = floor(-list->deficit_ns / quantum_ns[list->priority]) + 1;
        if (rounds < min && may_lead(lane, list, now_ns))
            min = rounds;
        list = list->ring_next != ring ? list->ring_next : NULL;
    }
    return min;
}

static void pay(struct queue_waiting *ring, double rounds)
{
    struct queue_waiting *list = ring;
    while (list != NULL) {
        list->deficit_ns += rounds * quantum_ns[list->priority];
        list = list->ring_next != ring ? list->ring_next : NULL;
    }
}

/* The first list that may lead, higher priorities before lower ones. */
static struct queue_waiting *first_solvent(const struct queue_lane *lane,
                                           struct queue_waiting **rings, uint64_t now_ns, bool *any)
{
    struct queue_waiting *list = NULL;
    for (int priority = 1; priority < QUEUE_PRIORITIES && list == NULL; priority++)
        list = solvent(lane, &rings[priority], now_ns, any);
    return list;
}

struct queue_waiting *queue__waiting_pick(const struct queue_lane *lane,
                                          enum queue_class_id device_class,
                                          enum engine_lane_id kind, uint64_t now_ns)
{
    struct queue_waiting **rings = lane->queue->classes[device_class].rings[kind];
    bool any = false;
    struct queue_waiting *list = first_solvent(lane, rings, now_ns, &any);
    if (list != NULL || !any)
        return list;
    /* All in debt: as many rounds as bring the first of them out, at once. */
    double rounds = HUGE_VAL;
    for (int priority = 1; priority < QUEUE_PRIORITIES; priority++)
        rounds = rounds_needed(lane, rings[priority], now_ns, rounds);
    for (int priority = 1; priority < QUEUE_PRIORITIES; priority++)
        pay(rings[priority], rounds);
    list = first_solvent(lane, rings, now_ns, &any);
    assert(list != NULL);
    return list;
}

uint64_t queue__waiting_ripe_ns(const struct queue *queue, uint64_t now_ns)
{
    uint64_t min_ns = 0;
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        for (const struct queue_waiting *list = queue->lists[i]; list != NULL;
             list = list->hash_next) {
            uint64_t ripe_ns = list->first->queued_ns + (uint64_t)queue->limits.batch_wait_ns;
            if (ripe_ns > now_ns && (min_ns == 0 || ripe_ns < min_ns))
                min_ns = ripe_ns;
        }
    return min_ns;
}

void queue__waiting_drop_all(struct queue *queue, enum queue_class_id device_class,
                             enum error status)
{
    for (int lane = 0; lane < ENGINE_LANES; lane++)
        for (int priority = 1; priority < QUEUE_PRIORITIES; priority++) {
            struct queue_waiting **ring = &queue->classes[device_class].rings[lane][priority];
            while (*ring != NULL) /* an empty list leaves its ring */
                queue__item_drop(queue, (*ring)->first, status);
        }
}

/* What a batch may still hold. */
struct budget {
    double cost_ns;
    int64_t matrices, bytes;
    int items;
    enum queue_reason reason; /* what ran out */
};

/* Matrices of the item that fit; the first fragment of a batch always gets one. */
static int64_t fitting(const struct queue_item *item, struct budget *budget, bool first)
{
    int64_t count = item->batch - item->taken;
    double each_ns = item_cost_ns(item, 1);
    if (budget->items == 0) {
        budget->reason = QUEUE_REASON_ITEMS;
        return 0;
    }
    if ((double)count * each_ns > budget->cost_ns) {
        budget->reason = QUEUE_REASON_COST;
        count = budget->cost_ns > 0 ? (int64_t)(budget->cost_ns / each_ns) : 0;
    }
    if (count > budget->matrices) {
        budget->reason = QUEUE_REASON_MATRICES;
        count = budget->matrices;
    }
    if (count > budget->bytes / item->matrix_bytes) {
        budget->reason = QUEUE_REASON_BYTES;
        count = budget->bytes / item->matrix_bytes;
    }
    return count == 0 && first ? 1 : count;
}

/* One list's turn: at most a quantum's worth. Returns the count of fragments added. */
static int take_turn(struct queue *queue, struct queue_waiting *list, struct budget *budget,
                     struct queue_fragment *fragments, bool first)
{
    double turn_ns = quantum_ns[list->priority];
    int taken = 0;
    while (turn_ns > 0 && list->first != NULL && budget->reason == QUEUE_REASON_GATHERED) {
        struct queue_item *item = list->first;
        int64_t count = fitting(item, budget, first && taken == 0);
        if (count == 0)
            break;
        assert(count >= 1 && count <= item->batch - item->taken && !item->dropped);
        fragments[taken++] = (struct queue_fragment){item, item->taken, count};
        double cost_ns = item_cost_ns(item, count);
        budget->items--;
        budget->matrices -= count;
        budget->bytes -= count * item->matrix_bytes;
        budget->cost_ns -= cost_ns;
        turn_ns -= cost_ns;
        list->deficit_ns -= cost_ns;
        count_waiting(queue, list->group, item, -count);
        item->taken += count;
        item->running++;
        if (item->state == QUEUE_QUEUED)
            queue__item_move(queue, item, QUEUE_RUNNING);
        if (item->taken == item->batch)
            list_remove(list, item);
    }
    return taken;
}

int queue__waiting_take(struct queue *queue, struct queue_waiting *list,
                        struct queue_fragment *fragments, enum queue_reason *reason)
{
    const struct queue_limits *limits = &queue->limits;
    bool is_long = list->group->key.lane == ENGINE_LANE_LONG;
    struct budget budget = {
        .cost_ns = (double)(is_long ? limits->long_cost_ns : limits->batch_cost_ns),
        .matrices = limits->batch_matrices_max[list->group->key.device_class],
        .bytes = limits->batch_bytes_max,
        .items = ENGINE_BATCH_ITEMS,
        .reason = QUEUE_REASON_GATHERED,
    };
    int count = 0;
    while (list != NULL && budget.reason == QUEUE_REASON_GATHERED) {
        count += take_turn(queue, list, &budget, fragments + count, count == 0);
        struct queue_waiting *following = list->group_next != list ? list->group_next : NULL;
        if (list->first != NULL && following == NULL)
            following = list; /* alone in its group: another turn */
        list_free_if_empty(queue, list);
        list = following;
    }
    *reason = budget.reason;
    return count;
}
