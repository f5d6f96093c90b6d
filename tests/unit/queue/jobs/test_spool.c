/* tests/unit/queue/jobs/test_spool.c: the spool on the file system, and store and spool in a
 * process that is confined as the front is. */
#include "tests/unit/queue/jobs/bed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"
#include "queue/jobs/spool.h"

#define BYTES 100000

static char folder[32];
static struct spool *spool;

static void open_spool(void)
{
    strcpy(folder, "/tmp/invertd-spool-XXXXXX");
    assert_non_null(mkdtemp(folder));
    must(spool_create(folder, &disk_system, &spool, failure));
}

static void close_spool(void)
{
    spool_destroy(&spool);
    for (int i = 0; i < 256; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%02x", folder, (unsigned)i);
        assert_int_equal(rmdir(path), 0); /* nothing was left */
    }
    assert_int_equal(rmdir(folder), 0);
}

static void write_one(int number, int32_t attempt)
{
    static uint8_t bytes[BYTES];
    struct job_id id = bed_id(number);
    struct spool_file *file;
    memset(bytes, number, sizeof bytes);
    must(spool_write(spool, &id, attempt, BYTES, &file, failure));
    must(spool_put(file, BYTES / 2, bytes + BYTES / 2, BYTES - BYTES / 2, failure));
    must(spool_put(file, 0, bytes, BYTES / 2, failure));
    must(spool_keep(&file, failure));
    assert_null(file);
}

static void test_files(void **state)
{
    (void)state;
    open_spool();
    struct job_id id = bed_id(1);
    struct spool_file *file;
    struct stat stat;
    uint8_t bytes[10];
    assert_int_equal(spool_read(spool, &id, 0, BYTES, &file, NULL), ERROR_NOT_FOUND);
    write_one(1, 0);
    write_one(1, 7);
    assert_int_equal(spool_read(spool, &id, 1, BYTES, &file, NULL), ERROR_NOT_FOUND);
    assert_int_equal(spool_read(spool, &id, 7, BYTES + 1, &file, NULL), ERROR_STORE_FAILED);
    must(spool_read(spool, &id, 7, BYTES, &file, failure));
    must(spool_get(file, BYTES - 10, bytes, 10, failure));
    assert_int_equal(bytes[9], 1);
    assert_int_equal(fstat(spool_fd(file), &stat), 0);
    assert_int_equal(stat.st_size, BYTES);
    assert_int_equal(stat.st_mode & 0777, 0600);
    spool_close(&file);
    spool_remove(spool, &id, 0);
    spool_remove(spool, &id, 7);
    spool_remove(spool, &id, 7);
    must(spool_write(spool, &id, 0, BYTES, &file, failure));
    spool_close(&file); /* not kept: removed */
    int64_t free_bytes;
    must(spool_free(spool, &free_bytes, failure));
    assert_int_equal(spool_write(spool, &id, 0, free_bytes + (INT64_C(1) << 40), &file, NULL),
                     ERROR_NO_ROOM);
    close_spool();
}

struct seen {
    int bodies, results, parts;
};

static bool see(void *context, const struct job_id *id, int32_t attempt)
{
    struct seen *seen = context;
    struct job_id one = bed_id(1);
    assert_memory_equal(id, &one, sizeof one);
    seen->bodies += attempt == 0;
    seen->results += attempt == 12;
    seen->parts += attempt == -1;
    return true;
}

static void test_sweep(void **state)
{
    (void)state;
    open_spool();
    write_one(1, 0);
    write_one(1, 12);
    char text[JOB_ID_TEXT], path[128];
    struct job_id id = bed_id(1);
    job_id_write(&id, text);
    static const char *const others[] = {".3.result.part", ".x", ".03.result", ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%.2s/%s%s", folder, text, text, others[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    struct seen seen = {0};
    must(spool_sweep(spool, 60000, see, &seen, failure));
    assert_int_equal(seen.bodies + seen.results + seen.parts, 0);
    must(spool_sweep(spool, 0, see, &seen, failure));
    assert_int_equal(seen.bodies, 1);
    assert_int_equal(seen.results, 1);
    assert_int_equal(seen.parts, 1);
    for (int i = 1; i < 4; i++) { /* not ours: left alone */
        snprintf(path, sizeof path, "%s/%.2s/%s%s", folder, text, text, others[i]);
        assert_int_equal(unlink(path), 0);
    }
    close_spool();
}

/* Exit status 0: all went well. */
static void work_confined(struct bed *bed)
{
    static struct job job;
    must(confine_process(CONFINE_FRONT, failure));
    for (int i = 0; i < 2; i++) {
        bed_reopen(bed);
        struct store_new new_job = bed_new(i, 80);
        must(bed->store->ops->begin(bed->store, failure));
        must(bed->store->ops->put(bed->store, &new_job, &job, failure));
        must(bed->store->ops->commit(bed->store, failure));
    }
    bed->store->ops->destroy(&bed->store);
    write_one(1, 1);
    struct job_id id = bed_id(1);
    struct spool_file *file;
    must(spool_read(spool, &id, 1, BYTES, &file, failure));
    spool_close(&file);
    struct seen seen = {0};
    must(spool_sweep(spool, 0, see, &seen, failure));
    _exit(spool_read(spool, &id, 1, BYTES, &file, NULL) == ERROR_NOT_FOUND ? 0 : 1);
}

static void test_confined(void **state)
{
    (void)state;
    if (!CONFINE_IS_BUILT)
        skip();
    open_spool();
    struct bed bed;
    bed_open(&bed);
    pid_t child = fork();
    if (child == 0)
        work_confined(&bed);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bed_close(&bed);
    close_spool();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_confined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
