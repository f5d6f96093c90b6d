/* tests/unit/queue/jobs/test_desk.c: calls share transactions, come back in order and after the
 * commit; a store that fails is refused, and opened anew; many posters at once. */
#include "tests/unit/queue/jobs/bed.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/desk.h"

struct world {
    struct sim_disk *sim;
    struct sim_vfs *vfs;
    struct metric_registry *metrics;
    struct desk *desk;
};

static enum error open_store(void *context, struct store **store, struct failure *failure)
{
    struct world *world = context;
    struct store_sqlite_config config = {
        .path = "/jobs.db", .disk = sim_disk_of(world->sim), .vfs = sim_vfs_name(world->vfs)};
    return store_sqlite_open(&config, store, failure);
}

static void open_world(struct world *world, bool has_thread)
{
    world->sim = sim_disk_create(1);
    world->vfs = sim_vfs_create(world->sim);
    world->metrics = metric_registry_create();
    struct desk_opener opener = {open_store, world};
    if (has_thread)
        must(desk_create(&opener, world->metrics, &world->desk, failure));
    else
        must(desk_create_driven(&opener, world->metrics, &world->desk, failure));
}

static void close_world(struct world *world)
{
    desk_destroy(&world->desk);
    assert_null(world->desk);
    metric_registry_destroy(&world->metrics);
    sim_vfs_destroy(&world->vfs);
    sim_disk_destroy(&world->sim);
}

static int done;

struct posted {
    struct desk_call call; /* first */
    int place;
    sem_t *signal;
};

static void on_run(struct message *message)
{
    struct posted *posted = (struct posted *)message;
    posted->place = ++done;
}

static void on_known(void *context, const struct desk_call *call)
{
    (void)call;
    assert_int_equal(((struct posted *)context)->place, 0);
    ((struct posted *)context)->place = -1;
}

static uint64_t value_of(struct world *world, enum metric_id id)
{
    return metric_value(metric_series(world->metrics, id));
}

/* Three calls, one of them refused: one transaction. */
static void test_together(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    static struct store_new new_job;
    static struct job known, got;
    new_job = bed_new(1, 4);
    struct posted put = {.call = {.message.run = on_run, .kind = DESK_PUT, .job = &known}},
                  get = {.call = {.message.run = on_run, .kind = DESK_GET, .job = &got}},
                  none = get;
    put.call.in.put = &new_job;
    put.call.on_done = on_known;
    put.call.context = &put;
    get.call.in.get = bed_id(1);
    none.call.in.get = bed_id(2);
    done = 0;
    desk_post(world.desk, &put.call);
    desk_post(world.desk, &none.call);
    desk_post(world.desk, &get.call);
    assert_int_equal(done, 0);
    assert_int_equal(desk_run(world.desk), 3);
    assert_int_equal(put.place, 1);
    assert_int_equal(none.place, 2);
    assert_int_equal(get.place, 3);
    assert_int_equal(put.call.failure.code, ERROR_NONE);
    assert_int_equal(none.call.failure.code, ERROR_NOT_FOUND);
    assert_int_equal(got.state, JOB_ACCEPTED);
    assert_int_equal(value_of(&world, METRIC_STORE_TRANSACTIONS), 1);
    assert_int_equal(desk_run(world.desk), 0);
    close_world(&world);
}

/* The sync fails: both calls are failures, the next is refused until the store is open again. */
static void test_failure(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    static struct store_new jobs[2];
    static struct job known;
    struct posted calls[2] = {{.call = {.message.run = on_run, .kind = DESK_PUT, .job = &known}},
                              {.call = {.message.run = on_run, .kind = DESK_PUT, .job = &known}}};
    for (int i = 0; i < 2; i++) {
        jobs[i] = bed_new(i, 4);
        calls[i].call.in.put = &jobs[i];
        desk_post(world.desk, &calls[i].call);
    }
    sim_disk_fail_sync(world.sim, 0);
    assert_true(desk_works(world.desk));
    assert_int_equal(desk_run(world.desk), 2);
    assert_false(desk_works(world.desk));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].call.failure.code, ERROR_STORE_FAILED);
        assert_true(calls[i].call.failure.retry_after_s > 0);
    }
    assert_int_equal(value_of(&world, METRIC_STORE_FAILURES), 1);
    sim_disk_fail_sync(world.sim, 0); /* of the opening */
    desk_post(world.desk, &calls[0].call);
    assert_int_equal(desk_run(world.desk), 1);
    assert_int_equal(calls[0].call.failure.code, ERROR_STORE_FAILED);
    struct posted totals = {.call = {.message.run = on_run, .kind = DESK_TOTALS}};
    desk_post(world.desk, &totals.call);
    assert_int_equal(desk_run(world.desk), 1);
    assert_int_equal(totals.call.failure.code, ERROR_NONE);
    assert_true(desk_works(world.desk));
    close_world(&world);
}

/* A full disk takes no job, and takes them again when there is room. */
static void test_full(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    static struct store_new new_job;
    static struct job known;
    struct posted put = {.call = {.message.run = on_run, .kind = DESK_PUT, .job = &known}};
    put.call.in.put = &new_job;
    sim_disk_set_room(world.sim, 100000);
    int taken = 0;
    do {
        new_job = bed_new(taken, 40);
        desk_post(world.desk, &put.call);
        desk_run(world.desk);
        taken += put.call.failure.code == ERROR_NONE;
    } while (put.call.failure.code == ERROR_NONE);
    assert_in_range(taken, 1, 20);
    assert_non_null(strstr(put.call.failure.detail, "full"));
    sim_disk_set_room(world.sim, -1);
    desk_post(world.desk, &put.call);
    desk_run(world.desk);
    assert_int_equal(put.call.failure.code, ERROR_NONE);
    close_world(&world);
}

/* ---- With its thread ---- */

#define POSTERS 4
#define PUTS 100

struct poster {
    pthread_t thread;
    struct desk *desk;
    int first, good;
};

static void on_signal(struct message *message)
{
    sem_post(((struct posted *)message)->signal);
}

static void *post_many(void *context)
{
    struct poster *poster = context;
    sem_t signal;
    sem_init(&signal, 0, 0);
    struct store_new *new_job = malloc(sizeof *new_job);
    struct job *known = malloc(sizeof *known);
    for (int i = 0; i < PUTS; i++) {
        *new_job = (struct store_new){
            .job = {.id = bed_id(poster->first + i), .owner = "a", .task = bed_task(2)},
            .body = (const uint8_t *)"0123456789abcdef0123456789abcde"};
        struct posted posted = {.call = {.message.run = on_signal, .kind = DESK_PUT, .job = known},
                                .signal = &signal};
        posted.call.in.put = new_job;
        desk_post(poster->desk, &posted.call);
        while (sem_wait(&signal) != 0)
            continue;
        poster->good += posted.call.failure.code == ERROR_NONE;
    }
    free(new_job);
    free(known);
    sem_destroy(&signal);
    return NULL;
}

static void test_posters(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true);
    struct poster posters[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.desk = world.desk, .first = i * PUTS};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        assert_int_equal(posters[i].good, PUTS);
    }
    uint64_t transactions = value_of(&world, METRIC_STORE_TRANSACTIONS);
    assert_in_range(transactions, PUTS, POSTERS * PUTS);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_posters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
