/* `ism` through an engine process: chains of 10,000 updates of an inverse, as in quantum Monte
 * Carlo, of which every hundredth carries A0. What was put into an inverse, or was lost by a matrix
 * that was nearly singular for a step, must be seen there and repaired, and nothing be claimed
 * before. Several chains are in each batch and several batches under way at once, so that answers
 * which must be recovered lie among others. INVERTD_ENGINE_N_MAX leaves larger orders out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/methods/ism.h"
#include "tests/device/chain.h"
#include "tests/device/rig.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARENA_BYTES (UINT64_C(64) << 20)
#define STEPS 10000
#define KNOWN_EVERY 100   /* steps: A0 is sent */
#define CHAINS_MAX 4      /* of a batch */
#define CYCLE 1000        /* steps, in which everything below happens once */
#define SHIFT 200         /* steps by which the chains of a batch are apart in it */
#define ROUNDINGS 10.0    /* n eps times a condition, that many times: what numbers may be off by */
#define WRONG_RATIO 100.0 /* an inverse that is so far off must be seen to be */
#define RCOND_SLACK 1.5   /* beyond n = 64 it is an estimate; see docs/kernels.md */
#define EXACT_RCOND_N_MAX 64

enum event {
    ORDINARY,
    DRIFT,    /* the inverse that is sent has been spoilt, and the change is an ordinary one */
    NEAR,     /* A becomes nearly singular */
    BACK,     /* and what it was before */
    SINGULAR, /* A would become singular; the change is rejected */
};

/* Those of a cycle that are not ordinary; every hundredth carries A0. */
static const struct {
    int at;
    enum event event;
} events[] = {{95, DRIFT}, {260, DRIFT}, {340, NEAR}, {341, BACK},     {500, NEAR},
              {501, BACK}, {699, NEAR},  {700, BACK}, {837, SINGULAR}, {900, SINGULAR}};

/* A batch's chains. Each lane has two such batches, one after the other. */
static const struct row {
    enum engine_lane_id lane;
    enum precision precision;
    int64_t n;
    int chains;
} rows[] = {{ENGINE_LANE_SHORT, PRECISION_FP64, 20, CHAINS_MAX},
            {ENGINE_LANE_LONG, PRECISION_FP64, 100, 2},
            {ENGINE_LANE_SHORT, PRECISION_FP32, 20, 2},
            {ENGINE_LANE_LONG, PRECISION_FP32, 100, 1}};

/* What has happened to a chain's inverse since A0 was last sent. */
enum state {
    CLEAN,
    SPOILT, /* by DRIFT */
    SHAKEN  /* by NEAR */
};

/* How many steps with A0 there were after each, and how many of them took lu. */
struct tally {
    int known, by_lu;
};

struct link {
    struct chain chain;
    enum state state;
    enum event event; /* of the step under way */
    struct engine_item item;
    struct tally tallies[SHAKEN + 1];
    int singular, singular_seen; /* changes that were rejected; of those without A0, by INFO */
    double worst_known, worst_update, worst_clean, min_spoilt; /* ratios */
    double worst_rcond, worst_det;                             /* relative, with A0 */
};

struct team {
    const struct row *row;
    struct link links[CHAINS_MAX];
    struct engine_batch *batch; /* NULL: none under way */
    int step;
};

struct answer {
    int32_t info, algorithm;
    double rcond, det_ratio;
    double *z; /* n x n */
};

static struct rig rig;
static int64_t n_max;

static int start(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, NULL);
    n_max = rig_order_max(&rig, "ism");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

/* ---- What a step is ---- */

static bool is_known(int step)
{
    return step % KNOWN_EVERY == 0;
}

static int64_t rank(int step)
{
    static const int64_t ranks[] = {1, 1, 3, 1, 1, 2, 1, 1, 4, 1};
    return is_known(step) ? 1 + step / KNOWN_EVERY % CHAIN_RANK_MAX : ranks[step % 10];
}

static enum event event_of(int step, int chain)
{
    for (size_t i = 0; i < COUNT(events); i++) {
        if (events[i].at == (step + chain * SHIFT - 1) % CYCLE + 1)
            return events[i].event;
    }
    return ORDINARY;
}

static double eps_of(const struct chain *chain)
{
    return gputest_eps(chain->precision);
}

static void change(struct chain *chain, enum event event, int64_t m)
{
    if (event == DRIFT)
        chain_drift(chain, 100 * sqrt(eps_of(chain)));
    if (event == NEAR)
        chain_change_near(chain, m, chain->precision == PRECISION_FP32 ? 1e-3 : 1e-9);
    else if (event == BACK)
        chain_change_back(chain, m);
    else if (event == SINGULAR)
        chain_change_singular(chain, m);
    else
        chain_change(chain, m);
}

/* ---- Batches ---- */

static void put(enum precision precision, const struct engine_tensor *tensor, const double *from,
                int64_t count)
{
    unsigned char *to = rig.bed.arena + tensor->offset_bytes;
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            memcpy(to + i * 4, &(float){(float)from[i]}, 4);
        else
            memcpy(to + i * 8, &from[i], 8);
    }
}

static double get(enum precision precision, const struct engine_tensor *tensor, int64_t i)
{
    const unsigned char *from = rig.bed.arena + tensor->offset_bytes;
    double wide;
    float narrow;
    if (precision == PRECISION_FP64) {
        memcpy(&wide, from + i * 8, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from + i * 4, sizeof narrow);
    return (double)narrow;
}

/* Places in the arena, which each step takes anew. */
static void lay_out(struct link *link)
{
    static const int inputs[] = {METHOD_ISM_X, METHOD_ISM_Y, METHOD_ISM_A0_DENSE,
                                 METHOD_ISM_A0_INVERSE};
    const int64_t n = link->chain.n, unit = precision_bytes(link->chain.precision);
    struct engine_item *item = &link->item;
    item->count = 1;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        item->inputs[i].region = ENGINE_REGION_NONE;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        item->outputs[i].region = i < METHOD_ISM_U ? ENGINE_REGION_ARENA : ENGINE_REGION_NONE;
    for (size_t i = 0; i < COUNT(inputs); i++) {
        int64_t columns = i < 2 ? CHAIN_RANK_MAX : n;
        item->inputs[inputs[i]] = (struct engine_tensor){
            .offset_bytes = gputest_bed_take(&rig.bed, n * columns * unit, unit)};
    }
    for (int i = 0; i < METHOD_ISM_U; i++) {
        int64_t count = i == METHOD_ISM_INVERSE ? n * n : 1;
        item->outputs[i].offset_bytes = gputest_bed_take(&rig.bed, count * unit, unit);
    }
}

static void fill(struct link *link, bool known)
{
    const struct chain *chain = &link->chain;
    struct engine_item *item = &link->item;
    const int64_t n = chain->n, unit = precision_bytes(chain->precision);
    put(chain->precision, &item->inputs[METHOD_ISM_X], chain->x, n * chain->m);
    put(chain->precision, &item->inputs[METHOD_ISM_Y], chain->y, n * chain->m);
    put(chain->precision, &item->inputs[METHOD_ISM_A0_INVERSE], chain->inverse, n * n);
    if (known)
        put(chain->precision, &item->inputs[METHOD_ISM_A0_DENSE], chain->a, n * n);
    item->inputs[METHOD_ISM_A0_DENSE].region = known ? ENGINE_REGION_ARENA : ENGINE_REGION_NONE;
    for (int i = 0; i < METHOD_ISM_U; i++)
        memset(rig.bed.arena + item->outputs[i].offset_bytes, 0xa5,
               (size_t)((i == METHOD_ISM_INVERSE ? n * n : 1) * unit));
}

static void begin(struct team *team)
{
    const struct row *row = team->row;
    const int step = ++team->step;
    const int64_t m = rank(step);
    struct engine_batch *batch =
        gputest_bed_next(&rig.bed, row->lane, "ism", row->precision, row->n);
    batch->m = m;
    for (int k = 0; k < row->chains; k++) {
        struct link *link = &team->links[k];
        link->event = event_of(step, k);
        change(&link->chain, link->event, m);
        fill(link, is_known(step));
        batch->items[batch->item_count++] = link->item;
        batch->matrices++;
    }
    team->batch = batch;
    gputest_bed_submit(&rig.bed, row->lane, batch);
}

/* z: n x n, to be filled. */
static struct answer take(const struct link *link, double *z)
{
    const struct chain *chain = &link->chain;
    const struct engine_tensor *outputs = link->item.outputs;
    struct answer answer = {.z = z,
                            .rcond = get(chain->precision, &outputs[METHOD_ISM_RCOND], 0),
                            .det_ratio = get(chain->precision, &outputs[METHOD_ISM_DET_RATIO], 0)};
    memcpy(&answer.info, rig.bed.arena + outputs[METHOD_ISM_INFO].offset_bytes, 4);
    memcpy(&answer.algorithm, rig.bed.arena + outputs[METHOD_ISM_ALGORITHM].offset_bytes, 4);
    for (int64_t i = 0; i < chain->n * chain->n; i++)
        z[i] = get(chain->precision, &outputs[METHOD_ISM_INVERSE], i);
    return answer;
}

/* ---- What it must answer ---- */

/* Where a check fails. */
static const struct team *checked;
static int checked_chain;

static void expect(bool good, const char *what, double value)
{
    if (!good)
        fail_msg("%s n = %d, chain %d, step %d: %s %.9g", precision_name(checked->row->precision),
                 (int)checked->row->n, checked_chain, checked->step, what, value);
}

static void worsen(double *worst, double value)
{
    *worst = value > *worst || isnan(value) ? value : *worst;
}

/* Without A0: right for the inverse that was sent, and no word of how good that one was. */
static void check_update(struct link *link, const struct answer *answer)
{
    const struct chain *chain = &link->chain;
    const struct chain_update update =
        chain_measure_update(chain, answer->z, answer->algorithm == METHOD_ALGORITHM_LU);
    const int32_t n = (int32_t)chain->n;
    const double det = answer->det_ratio - update.det_ratio;
    if (link->event == SINGULAR) {
        link->singular_seen += answer->info != 0;
        expect(answer->info >= 0 && answer->info <= n + 1, "INFO", answer->info);
        expect(fabs(answer->det_ratio) <= sqrt(eps_of(chain)), "DET_RATIO", answer->det_ratio);
    } else {
        expect(answer->info == 0, "INFO", answer->info);
    }
    expect(answer->info >= 1 && answer->info <= n ? answer->rcond == 0 : isnan(answer->rcond),
           "RCOND without A0", answer->rcond);
    expect(answer->algorithm == METHOD_ALGORITHM_BLOCK || answer->algorithm == METHOD_ALGORITHM_LU,
           "METHOD", answer->algorithm);
    expect(fabs(det) <= ROUNDINGS * update.det_slack, "DET_RATIO is off by", det);
    if (answer->info > 0)
        return;
    expect(update.ratio <= GPUTEST_RATIO_MAX, "the update's ratio", update.ratio);
    worsen(&link->worst_update, update.ratio);
}

/* A singular A: that is what must be said of it. */
static void check_rejected(const struct link *link, const struct answer *answer)
{
    const struct chain *chain = &link->chain;
    const int32_t n = (int32_t)chain->n;
    expect(answer->info >= 1 && answer->info <= n + 1, "INFO of a singular matrix", answer->info);
    expect(answer->rcond < eps_of(chain), "RCOND of a singular matrix", answer->rcond);
    expect(answer->algorithm == METHOD_ALGORITHM_LU, "METHOD", answer->algorithm);
    expect(answer->info > n || isnan(answer->z[0]), "INVERSE", answer->z[0]);
    expect(fabs(answer->det_ratio) <= sqrt(eps_of(chain)), "DET_RATIO", answer->det_ratio);
}

/* With A0: INFO 0, the contract, and true numbers, whatever inverse was sent. */
static void check_known(struct link *link, const struct answer *answer)
{
    const struct chain *chain = &link->chain;
    const struct chain_truth truth = chain_measure_truth(chain);
    const double rounding = (double)chain->n * eps_of(chain);
    const double ratio = chain_ratio(chain, chain->next, answer->z);
    const double rcond = answer->rcond / truth.rcond, det = answer->det_ratio / truth.det_ratio;
    const double slack = ROUNDINGS * rounding / truth.rcond;
    const bool estimated = chain->n > EXACT_RCOND_N_MAX && answer->algorithm != METHOD_ALGORITHM_LU;
    expect(answer->info == 0, "INFO with A0", answer->info);
    expect(ratio <= GPUTEST_RATIO_MAX, "ratio with A0", ratio);
    expect(rcond >= 1 - slack && rcond <= (estimated ? RCOND_SLACK : 1) + slack,
           "RCOND is off by the factor", rcond);
    expect(fabs(det - 1) <= slack + ROUNDINGS * rounding / truth.rcond_a0,
           "DET_RATIO is off by the factor", det);
    worsen(&link->worst_known, ratio);
    if (link->event != NEAR && link->event != BACK) {
        worsen(&link->worst_rcond, fabs(rcond - 1));
        worsen(&link->worst_det, fabs(det - 1));
    }
}

/* Was it seen that the inverse which was sent is off? */
static void check_repair(struct link *link, const struct answer *answer)
{
    const double sent = chain_ratio(&link->chain, link->chain.a, link->chain.inverse);
    const bool by_lu = answer->algorithm == METHOD_ALGORITHM_LU;
    struct tally *tally = &link->tallies[link->state];
    tally->known++;
    tally->by_lu += by_lu;
    if (link->state == SPOILT) {
        expect(sent > WRONG_RATIO, "the spoilt inverse has a ratio of", sent);
        link->min_spoilt = fmin(link->min_spoilt, sent);
    } else if (link->state == CLEAN) {
        expect(sent <= GPUTEST_RATIO_MAX, "after ordinary updates a ratio of", sent);
        worsen(&link->worst_clean, sent);
    }
    expect(sent <= WRONG_RATIO || by_lu, "unseen: an inverse of the ratio", sent);
    link->state = CLEAN;
}

static void check(struct team *team, int k)
{
    static double z[CHAIN_N_MAX * CHAIN_N_MAX];
    struct link *link = &team->links[k];
    const bool known = is_known(team->step), rejected = link->event == SINGULAR;
    const struct answer answer = take(link, z);
    checked = team;
    checked_chain = k;
    if (link->event == DRIFT)
        link->state = SPOILT;
    if (!known)
        check_update(link, &answer);
    else if (rejected)
        check_rejected(link, &answer);
    else
        check_known(link, &answer);
    if (known && !rejected)
        check_repair(link, &answer);
    if (link->event == NEAR || link->event == BACK)
        link->state = known ? link->state : SHAKEN;
    link->singular += rejected && !known;
    if (!rejected)
        chain_accept(&link->chain, z);
}

static void finish(struct team *team)
{
    if (!team->batch)
        return;
    assert_true(gputest_bed_wait(&rig.bed, team->row->lane, team->batch, RIG_WAIT_MS));
    assert_int_equal(team->batch->status, ENGINE_OK);
    for (int k = 0; k < team->row->chains; k++)
        check(team, k);
    gputest_bed_release(team->batch);
    team->batch = NULL;
}

/* ---- The chains ---- */

static void open_team(struct team *team, const struct row *row)
{
    *team = (struct team){.row = row};
    for (int k = 0; k < row->chains; k++) {
        struct link *link = &team->links[k];
        link->chain = chain_make(row->precision, row->n, (uint64_t)(1 + k));
        link->min_spoilt = HUGE_VAL;
        lay_out(link);
    }
}

static void tell(const struct team *team, int k)
{
    const struct link *link = &team->links[k];
    const struct tally *tallies = link->tallies;
    print_message(
        "one chain %s n=%d (%d): by lu %d of %d spoilt, %d of %d shaken, %d of %d clean; ratios up "
        "to %.2g with A0, %.2g without; sent: clean up to %.2g, spoilt from %.2g; RCOND and "
        "DET_RATIO off by up to %.1g and %.1g; singular %d, %d seen\n",
        precision_name(team->row->precision), (int)team->row->n, k, tallies[SPOILT].by_lu,
        tallies[SPOILT].known, tallies[SHAKEN].by_lu, tallies[SHAKEN].known, tallies[CLEAN].by_lu,
        tallies[CLEAN].known, link->worst_known, link->worst_update, link->worst_clean,
        link->min_spoilt, link->worst_rcond, link->worst_det, link->singular, link->singular_seen);
}

/* Every drift was repaired, and hardly a step with A0 took lu where there was none. */
static void close_team(struct team *team)
{
    for (int k = 0; k < team->row->chains; k++) {
        struct link *link = &team->links[k];
        const struct tally *tallies = link->tallies;
        tell(team, k);
        assert_int_equal(tallies[SPOILT].known, 2 * STEPS / CYCLE);
        assert_int_equal(tallies[SPOILT].by_lu, tallies[SPOILT].known);
        assert_true(tallies[CLEAN].known >= 3 * STEPS / CYCLE);
        assert_true(10 * tallies[CLEAN].by_lu <= tallies[CLEAN].known);
        chain_free(&link->chain);
    }
}

static void test_chains(void **state)
{
    (void)state;
    static struct team teams[COUNT(rows)];
    size_t count = 0;
    for (size_t r = 0; r < COUNT(rows); r++) {
        if (rows[r].n <= n_max)
            open_team(&teams[count++], &rows[r]);
    }
    for (int step = 1; step <= STEPS; step++) {
        for (size_t t = 0; t < count; t++) {
            finish(&teams[t]);
            begin(&teams[t]);
        }
    }
    for (size_t t = 0; t < count; t++) {
        finish(&teams[t]);
        close_team(&teams[t]);
    }
    gputest_bed_reset(&rig.bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, start, stop);
}
