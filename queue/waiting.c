/* queue/waiting.c: what waits, and whose turn it is.
 *
 * Waiting items hang in flows, one for each (priority, client, key), oldest first. The flows of a
 * device class, lane kind and priority form a ring. Serving is deficit round-robin: a flow may lead
 * a batch while its deficit is positive and pays for what is taken from it by predicted cost; when
 * no flow of the lane kind may lead, each is given a quantum by its priority. So a higher priority
 * goes first and gets more, and none is starved. Flows of one key also form a circle, their group:
 * they fill up the leader's batch in turns of a quantum, and pay for it too.
 *
 * Threads: under the queue's lock.
 * Cost: adding and taking are O(1) an item; choosing is O(flows in debt) at most.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUANTUM_NS 250e3 /* of normal priority */

/* A higher priority gets four times the share of the next lower one; none is starved. */
static const double quantum_ns[QUEUE_PRIORITIES] = {
    [1] = 4 * QUANTUM_NS, [2] = QUANTUM_NS, [3] = QUANTUM_NS / 4};

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

static uint64_t flow_hash(uint64_t hash, int priority, uint32_t client)
{
    return mix(mix(hash, (uint64_t)priority), client);
}

static void key_of(const struct queue *queue, const struct queue_item *item,
                   enum queue_class_id device_class, struct queue_key *key)
{
    memset(key, 0, sizeof *key);
    key->method = item->method;
    key->device_class = device_class;
    key->precision = item->precision;
    key->lane =
        item->cost_ns > (double)queue->limits.long_cost_ns ? ENGINE_LANE_LONG : ENGINE_LANE_SHORT;
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
    if (group->flows != NULL)
        return;
    struct queue_group **link = &queue->groups[key_hash(&group->key) % QUEUE_HASH_SIZE];
    while (*link != group)
        link = &(*link)->hash_next;
    *link = group->hash_next;
    free(group);
}

/* The ring of the flow's device class, lane kind and priority. */
static struct queue_flow **ring_of(struct queue *queue, const struct queue_flow *flow)
{
    const struct queue_key *key = &flow->group->key;
    return &queue->classes[key->device_class].rings[key->lane][flow->priority];
}

/* Puts the flow last in its group's circle and in its lane's ring. */
static void flow_link(struct queue *queue, struct queue_flow *flow)
{
    struct queue_group *group = flow->group;
    struct queue_flow *head = group->flows;
    flow->group_next = head != NULL ? head : flow;
    flow->group_previous = head != NULL ? head->group_previous : flow;
    flow->group_previous->group_next = flow;
    flow->group_next->group_previous = flow;
    if (head == NULL)
        group->flows = flow;

    struct queue_flow **ring = ring_of(queue, flow);
    head = *ring;
    flow->ring_next = head != NULL ? head : flow;
    flow->ring_previous = head != NULL ? head->ring_previous : flow;
    flow->ring_previous->ring_next = flow;
    flow->ring_next->ring_previous = flow;
    if (head == NULL)
        *ring = flow;
}

static void flow_unlink(struct queue *queue, struct queue_flow *flow)
{
    struct queue_group *group = flow->group;
    if (group->flows == flow)
        group->flows = flow->group_next != flow ? flow->group_next : NULL;
    flow->group_previous->group_next = flow->group_next;
    flow->group_next->group_previous = flow->group_previous;

    struct queue_flow **ring = ring_of(queue, flow);
    if (*ring == flow)
        *ring = flow->ring_next != flow ? flow->ring_next : NULL;
    flow->ring_previous->ring_next = flow->ring_next;
    flow->ring_next->ring_previous = flow->ring_previous;
}

static struct queue_flow **flow_bucket(struct queue *queue, const struct queue_flow *flow)
{
    uint64_t hash = flow_hash(key_hash(&flow->group->key), flow->priority, flow->client);
    return &queue->flows[hash % QUEUE_HASH_SIZE];
}

static struct queue_flow *flow_get(struct queue *queue, const struct queue_item *item,
                                   enum queue_class_id device_class)
{
    struct queue_key key;
    key_of(queue, item, device_class, &key);
    uint64_t hash = key_hash(&key);
    int priority = item->priority == 0 ? QUEUE_PRIORITY_NORMAL : item->priority;
    uint64_t bucket = flow_hash(hash, priority, item->client) % QUEUE_HASH_SIZE;
    for (struct queue_flow *flow = queue->flows[bucket]; flow != NULL; flow = flow->hash_next)
        if (flow->priority == priority && flow->client == item->client &&
            memcmp(&flow->group->key, &key, sizeof key) == 0)
            return flow;

    struct queue_flow *flow = calloc(1, sizeof *flow);
    struct queue_group *group = flow != NULL ? group_get(queue, &key, hash) : NULL;
    if (group == NULL) {
        free(flow);
        return NULL;
    }
    flow->group = group;
    flow->priority = priority;
    flow->client = item->client;
    flow->deficit_ns = quantum_ns[priority];
    flow->hash_next = queue->flows[bucket];
    queue->flows[bucket] = flow;
    flow_link(queue, flow);
    return flow;
}

static void flow_free_if_empty(struct queue *queue, struct queue_flow *flow)
{
    if (flow->first != NULL)
        return;
    struct queue_group *group = flow->group;
    struct queue_flow **link = flow_bucket(queue, flow);
    while (*link != flow)
        link = &(*link)->hash_next;
    *link = flow->hash_next;
    flow_unlink(queue, flow);
    free(flow);
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

/* Inputs and outputs of one matrix: what a batch moves for it. */
static int64_t matrix_bytes(const struct queue_item *item)
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

enum error queue__flow_add(struct queue *queue, struct queue_item *item)
{
    assert(item->flow == NULL && item->taken < item->batch);
    enum queue_class_id device_class = queue__class_route(queue, item);
    item->matrix_bytes = matrix_bytes(item);
    struct queue_work work = {.method = item->method,
                              .precision = item->precision,
                              .n = item->n,
                              .m = item->m,
                              .matrices = item->batch,
                              .bytes = item->batch * item->matrix_bytes};
    if (item->cost_ns == 0)
        item->cost_ns = queue__cost_ns(queue, device_class, &work);
    struct queue_flow *flow = flow_get(queue, item, device_class);
    if (flow == NULL)
        return ERROR_FULL;
    item->flow = flow;
    item->next = NULL;
    item->previous = flow->last;
    if (flow->last != NULL)
        flow->last->next = item;
    else
        flow->first = item;
    flow->last = item;
    count_waiting(queue, flow->group, item, item->batch - item->taken);
    return ERROR_NONE;
}

/* Takes the item out of its flow's list; the flow itself stays. */
static void flow_unlist(struct queue_flow *flow, struct queue_item *item)
{
    if (item->previous != NULL)
        item->previous->next = item->next;
    else
        flow->first = item->next;
    if (item->next != NULL)
        item->next->previous = item->previous;
    else
        flow->last = item->previous;
    item->next = item->previous = NULL;
    item->flow = NULL;
}

void queue__flow_remove(struct queue *queue, struct queue_item *item)
{
    struct queue_flow *flow = item->flow;
    if (flow == NULL)
        return;
    count_waiting(queue, flow->group, item, -(item->batch - item->taken));
    flow_unlist(flow, item);
    flow_free_if_empty(queue, flow);
}

static bool is_ripe(const struct queue *queue, const struct queue_flow *flow, uint64_t now_ns)
{
    const struct queue_limits *limits = &queue->limits;
    const struct queue_group *group = flow->group;
    return limits->batch_wait_ns == 0 ||
           group->matrices >= limits->batch_matrices_max[group->key.device_class] ||
           group->bytes >= limits->batch_bytes_max ||
           group->cost_ns >= (double)limits->batch_cost_ns ||
           now_ns >= flow->first->queued_ns + (uint64_t)limits->batch_wait_ns;
}

/* May the flow lead a batch for the lane? */
static bool may_lead(const struct queue_lane *lane, const struct queue_flow *flow, uint64_t now_ns)
{
    int64_t only = flow->group->key.only_engine;
    return (only == 0 || only == lane->number + 1) && is_ripe(lane->queue, flow, now_ns);
}

/* The next flow of a ring that may lead and is not in debt; *any: whether any may lead at all. */
static struct queue_flow *solvent(const struct queue_lane *lane, struct queue_flow **ring,
                                  uint64_t now_ns, bool *any)
{
    struct queue_flow *flow = *ring;
    while (flow != NULL) {
        if (may_lead(lane, flow, now_ns)) {
            *any = true;
            if (flow->deficit_ns > 0) {
                *ring = flow;
                return flow;
            }
        }
        flow = flow->ring_next != *ring ? flow->ring_next : NULL;
    }
    return NULL;
}

/* The least count of quanta after which a flow of the ring that may lead is out of debt. */
static double rounds_needed(const struct queue_lane *lane, const struct queue_flow *ring,
                            uint64_t now_ns, double least)
{
    const struct queue_flow *flow = ring;
    while (flow != NULL) {
        double rounds = floor(-flow->deficit_ns / quantum_ns[flow->priority]) + 1;
        if (rounds < least && may_lead(lane, flow, now_ns))
            least = rounds;
        flow = flow->ring_next != ring ? flow->ring_next : NULL;
    }
    return least;
}

static void pay(struct queue_flow *ring, double rounds)
{
    struct queue_flow *flow = ring;
    while (flow != NULL) {
        flow->deficit_ns += rounds * quantum_ns[flow->priority];
        flow = flow->ring_next != ring ? flow->ring_next : NULL;
    }
}

/* The first flow that may lead, higher priorities before lower ones. */
static struct queue_flow *first_solvent(const struct queue_lane *lane, struct queue_flow **rings,
                                        uint64_t now_ns, bool *any)
{
    struct queue_flow *flow = NULL;
    for (int priority = 1; priority < QUEUE_PRIORITIES && flow == NULL; priority++)
        flow = solvent(lane, &rings[priority], now_ns, any);
    return flow;
}

struct queue_flow *queue__flow_choose(const struct queue_lane *lane,
                                      enum queue_class_id device_class, enum engine_lane_id kind,
                                      uint64_t now_ns)
{
    struct queue_flow **rings = lane->queue->classes[device_class].rings[kind];
    bool any = false;
    struct queue_flow *flow = first_solvent(lane, rings, now_ns, &any);
    if (flow != NULL || !any)
        return flow;
    /* All in debt: as many rounds as bring the first of them out, at once. */
    double rounds = HUGE_VAL;
    for (int priority = 1; priority < QUEUE_PRIORITIES; priority++)
        rounds = rounds_needed(lane, rings[priority], now_ns, rounds);
    for (int priority = 1; priority < QUEUE_PRIORITIES; priority++)
        pay(rings[priority], rounds);
    flow = first_solvent(lane, rings, now_ns, &any);
    assert(flow != NULL);
    return flow;
}

uint64_t queue__flow_ripe_ns(const struct queue *queue, uint64_t now_ns)
{
    uint64_t min_ns = 0;
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        for (const struct queue_flow *flow = queue->flows[i]; flow != NULL;
             flow = flow->hash_next) {
            uint64_t ripe_ns = flow->first->queued_ns + (uint64_t)queue->limits.batch_wait_ns;
            if (ripe_ns > now_ns && (min_ns == 0 || ripe_ns < min_ns))
                min_ns = ripe_ns;
        }
    return min_ns;
}

void queue__flow_drop_all(struct queue *queue, enum queue_class_id device_class, enum error status)
{
    for (int lane = 0; lane < ENGINE_LANES; lane++)
        for (int priority = 1; priority < QUEUE_PRIORITIES; priority++) {
            struct queue_flow **ring = &queue->classes[device_class].rings[lane][priority];
            while (*ring != NULL) /* an empty flow leaves its ring */
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

/* One flow's turn: at most a quantum's worth. Returns the count of fragments added. */
static int take_turn(struct queue *queue, struct queue_flow *flow, struct budget *budget,
                     struct queue_fragment *fragments, bool first)
{
    double turn_ns = quantum_ns[flow->priority];
    int taken = 0;
    while (turn_ns > 0 && flow->first != NULL && budget->reason == QUEUE_REASON_GATHERED) {
        struct queue_item *item = flow->first;
        int64_t count = fitting(item, budget, first && taken == 0);
        if (count == 0)
            break;
        fragments[taken++] = (struct queue_fragment){item, item->taken, count};
        double cost_ns = item_cost_ns(item, count);
        budget->items--;
        budget->matrices -= count;
        budget->bytes -= count * item->matrix_bytes;
        budget->cost_ns -= cost_ns;
        turn_ns -= cost_ns;
        flow->deficit_ns -= cost_ns;
        count_waiting(queue, flow->group, item, -count);
        item->taken += count;
        item->running++;
        if (item->state == QUEUE_QUEUED)
            queue__item_move(queue, item, QUEUE_RUNNING);
        if (item->taken == item->batch)
            flow_unlist(flow, item);
    }
    return taken;
}

int queue__flow_take(struct queue *queue, struct queue_flow *flow, struct queue_fragment *fragments,
                     enum queue_reason *reason)
{
    const struct queue_limits *limits = &queue->limits;
    bool is_short = flow->group->key.lane == ENGINE_LANE_SHORT;
    struct budget budget = {
        .cost_ns = (double)(is_short ? limits->batch_cost_ns : limits->long_cost_ns),
        .matrices = limits->batch_matrices_max[flow->group->key.device_class],
        .bytes = limits->batch_bytes_max,
        .items = ENGINE_BATCH_ITEMS,
        .reason = QUEUE_REASON_GATHERED,
    };
    int count = 0;
    while (flow != NULL && budget.reason == QUEUE_REASON_GATHERED) {
        struct queue_flow *following = flow->group_next != flow ? flow->group_next : NULL;
        count += take_turn(queue, flow, &budget, fragments + count, count == 0);
        if (flow->first != NULL && following == NULL)
            following = flow; /* alone in its group: another turn */
        flow_free_if_empty(queue, flow);
        flow = following;
    }
    *reason = budget.reason;
    return count;
}
