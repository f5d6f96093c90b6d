/* tests/unit/queue/jobs/test_power.c: power that goes in the midst of writing. What was
 * acknowledged is there afterwards, nothing is completed twice, the file is whole; and a store or a
 * spool that does not sync is caught losing.
 *
 * INVERTD_SEED=N runs seed N alone; INVERTD_SEEDS=N so many.
 */
#include "tests/unit/queue/jobs/bed.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/spool.h"

#define SEEDS 250
#define JOBS_MAX 200
#define LIVES 3
#define PATH "/data/jobs.db"

/* What the clients know of a job. */
enum word {
    UNKNOWN, /* no answer came, or none yet */
    PUT,     /* its acceptance was acknowledged */
    ENDED    /* its end was */
};

struct world {
    struct sim_disk *sim;
    struct sim_vfs *vfs;
    struct store *store;
    uint64_t seed;
    bool no_sync;
    int jobs, lost, twice, broken;
    enum word words[JOBS_MAX];
};

static bool open_store(struct world *world)
{
    struct store_sqlite_config config = {.path = PATH,
                                         .disk = sim_disk_of(world->sim),
                                         .vfs = sim_vfs_name(world->vfs),
                                         .no_sync = world->no_sync};
    return store_sqlite_open(&config, &world->store, NULL) == ERROR_NONE;
}

/* A transaction of a few puts and ends; what it did is acknowledged if it is committed. */
static bool transact(struct world *world)
{
    static struct job job;
    struct store *store = world->store;
    enum word words[JOBS_MAX];
    int jobs = world->jobs;
    memcpy(words, world->words, sizeof words);
    if (store->ops->begin(store, NULL) != ERROR_NONE)
        return false;
    enum error error = ERROR_NONE;
    for (int64_t left = 1 + sim_below(&world->seed, 4); left > 0 && error == ERROR_NONE; left--) {
        if (jobs < JOBS_MAX && sim_below(&world->seed, 2) == 0) {
            struct store_new new_job = bed_new(jobs, 4 + 8 * sim_below(&world->seed, 5));
            error = store->ops->put(store, &new_job, &job, NULL);
            words[jobs++] = PUT;
            continue;
        }
        struct store_claim claim = bed_claim(1000);
        claim.lease_until_ms = 1000;
        error = store->ops->claim(store, &claim, &job, NULL);
        if (error != ERROR_NONE || job.state == JOB_STATES)
            continue;
        static const uint8_t result[JOB_INLINE_MAX];
        struct store_lease lease = {job.id, job.attempt};
        struct job_outcome outcome = {.error = ERROR_NONE};
        error = store->ops->finish(store, &lease, &outcome, result, 1000, 5000, NULL);
        for (int i = 0; i < jobs; i++) {
            struct job_id id = bed_id(i);
            if (memcmp(&id, &job.id, sizeof id) != 0)
                continue;
            world->twice += words[i] == ENDED;
            words[i] = ENDED;
        }
    }
    if (error == ERROR_NONE)
        error = store->ops->commit(store, NULL);
    if (error != ERROR_NONE)
        store->ops->rollback(store);
    else
        memcpy(world->words, words, sizeof words);
    world->jobs = jobs; /* an id is never used again */
    return error == ERROR_NONE;
}

static int on_row(void *context, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    *(bool *)context = strcmp(values[0], "ok") == 0;
    return 0;
}

static bool is_whole(struct world *world)
{
    sqlite3 *database = NULL;
    bool is_ok = false;
    if (sqlite3_open_v2(PATH, &database, SQLITE_OPEN_READWRITE, sim_vfs_name(world->vfs)) ==
        SQLITE_OK)
        sqlite3_exec(database, "PRAGMA integrity_check", on_row, &is_ok, NULL);
    sqlite3_close(database);
    return is_ok;
}

static void look(struct world *world)
{
    static struct job job;
    if (world->store->ops->begin(world->store, NULL) != ERROR_NONE) {
        world->broken++;
        return;
    }
    for (int i = 0; i < world->jobs; i++) {
        struct job_id id = bed_id(i);
        enum error error = world->store->ops->get(world->store, &id, &job, NULL);
        bool is_lost = (world->words[i] != UNKNOWN && error != ERROR_NONE) ||
                       (world->words[i] == ENDED && job.state != JOB_SUCCESSFUL);
        world->lost += is_lost;
        if (error == ERROR_NONE) /* it happened after all */
            world->words[i] = job.state == JOB_SUCCESSFUL ? ENDED : PUT;
    }
    if (world->store->ops->commit(world->store, NULL) != ERROR_NONE)
        world->broken++;
}

/* Works until the power goes, or the disk fails; fails: a sync fails once before. */
static void live(struct world *world, bool fails)
{
    if (fails)
        sim_disk_fail_sync(world->sim, (int)sim_below(&world->seed, 8));
    sim_disk_cut_after(world->sim, 1 + sim_below(&world->seed, 150));
    for (int i = 0; i < 1000 && !sim_disk_is_off(world->sim); i++) {
        if (!world->store && !open_store(world))
            continue; /* the failed sync was of the opening */
        if (!transact(world))
            world->store->ops->destroy(&world->store);
    }
    if (world->store)
        world->store->ops->destroy(&world->store);
    sim_disk_fail_sync(world->sim, -1);
    sim_disk_restart(world->sim);
}

static struct world run_seed(uint64_t seed, bool no_sync, bool fails)
{
    struct world world = {.sim = sim_disk_create(seed), .seed = seed * 3, .no_sync = no_sync};
    world.vfs = sim_vfs_create(world.sim);
    for (int i = 0; i < LIVES && world.broken == 0; i++) {
        live(&world, fails);
        if (!open_store(&world)) {
            world.broken++;
            break;
        }
        look(&world);
        world.store->ops->destroy(&world.store);
        world.broken += !is_whole(&world);
    }
    sim_vfs_destroy(&world.vfs);
    sim_disk_destroy(&world.sim);
    return world;
}

static uint64_t first_seed(uint64_t *count)
{
    const char *one = getenv("INVERTD_SEED"), *many = getenv("INVERTD_SEEDS");
    *count = one ? 1 : many ? strtoull(many, NULL, 10) : *count;
    return one ? strtoull(one, NULL, 10) : 1;
}

static void run_all(bool fails)
{
    uint64_t count = SEEDS, first = first_seed(&count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct world world = run_seed(seed, false, fails);
        if (world.lost + world.twice + world.broken > 0)
            fail_msg("INVERTD_SEED=%llu: %d lost, %d completed twice, %d times broken",
                     (unsigned long long)seed, world.lost, world.twice, world.broken);
    }
}

static void test_store(void **state)
{
    (void)state;
    run_all(false);
}

/* A sync fails, the daemon goes on with the file opened anew, and then the power goes. */
static void test_failed_sync(void **state)
{
    (void)state;
    run_all(true);
}

static void test_store_control(void **state)
{
    (void)state;
    int caught = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world world = run_seed(seed, true, false);
        caught += world.lost + world.broken > 0;
    }
    print_message("without sync %d of 100 seeds lose\n", caught);
    assert_true(caught > 30);
}

/* ---- The spool ---- */

#define FILE_BYTES 3000

static void fill(uint8_t *bytes, int number)
{
    uint64_t seed = (uint64_t)number;
    for (int i = 0; i < FILE_BYTES; i++)
        bytes[i] = (uint8_t)sim_next(&seed);
}

/* Writes files until the power goes; how many were kept. */
static int write_files(struct spool *spool)
{
    static uint8_t bytes[FILE_BYTES];
    for (int number = 0;; number++) {
        struct job_id id = bed_id(number);
        struct spool_file *file;
        fill(bytes, number);
        if (spool_write(spool, &id, number % 3, FILE_BYTES, &file, NULL) != ERROR_NONE)
            return number;
        enum error error = spool_put(file, 0, bytes, 1000, NULL);
        if (error == ERROR_NONE)
            error = spool_put(file, 1000, bytes + 1000, FILE_BYTES - 1000, NULL);
        if (error == ERROR_NONE)
            error = spool_keep(&file, NULL);
        spool_close(&file);
        if (error != ERROR_NONE)
            return number;
    }
}

/* false: it is not there, or not as it was written. */
static bool is_kept(struct spool *spool, int number)
{
    static uint8_t bytes[FILE_BYTES], expected[FILE_BYTES];
    struct job_id id = bed_id(number);
    struct spool_file *file;
    fill(expected, number);
    if (spool_read(spool, &id, number % 3, FILE_BYTES, &file, NULL) != ERROR_NONE)
        return false;
    must(spool_get(file, 0, bytes, FILE_BYTES, failure));
    spool_close(&file);
    return memcmp(bytes, expected, FILE_BYTES) == 0;
}

static bool sweep_all(void *context, const struct job_id *id, int32_t attempt)
{
    (void)id;
    (*(int *)context)++;
    return attempt < 0;
}

/* How many of the files that were kept are lost; a file that has a name is whole in any case. */
static int spool_seed(uint64_t seed, bool lies)
{
    struct sim_disk *sim = sim_disk_create(seed);
    struct spool *spool;
    uint64_t numbers = seed * 5;
    must(spool_create("/spool", sim_disk_of(sim), &spool, failure));
    sim_disk_lie(sim, lies);
    sim_disk_cut_after(sim, 1 + sim_below(&numbers, 100));
    int kept = write_files(spool), lost = 0, seen = 0;
    sim_disk_restart(sim);
    for (int i = 0; i < kept; i++)
        lost += !is_kept(spool, i);
    if (!lies) {
        struct spool_file *file;
        struct job_id id = bed_id(kept);
        enum error error = spool_read(spool, &id, kept % 3, FILE_BYTES, &file, NULL);
        spool_close(&file);
        assert_true(error == ERROR_NOT_FOUND || is_kept(spool, kept));
    }
    must(spool_sweep(spool, 0, sweep_all, &seen, failure));
    assert_true(lies || seen >= kept);
    spool_destroy(&spool);
    sim_disk_destroy(&sim);
    return lost;
}

static void test_spool(void **state)
{
    (void)state;
    uint64_t count = SEEDS, first = first_seed(&count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (spool_seed(seed, false) != 0)
            fail_msg("INVERTD_SEED=%llu: files were lost", (unsigned long long)seed);
    }
}

static void test_spool_control(void **state)
{
    (void)state;
    int caught = 0;
    for (uint64_t seed = 1; seed <= 100; seed++)
        caught += spool_seed(seed, true) > 0;
    print_message("without sync %d of 100 seeds lose\n", caught);
    assert_true(caught > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store),         cmocka_unit_test(test_failed_sync),
        cmocka_unit_test(test_store_control), cmocka_unit_test(test_spool),
        cmocka_unit_test(test_spool_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
