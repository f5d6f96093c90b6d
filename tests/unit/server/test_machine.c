/* tests/unit/server/test_machine.c: the memory that control groups leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/machine.h"

struct bench {
    char folder[64], root[96], groups[96];
};

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void folder(const struct bench *bench, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", bench->root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static struct bench bench_open(void)
{
    struct bench bench = {.folder = "/tmp/invertd-test-XXXXXX"};
    assert_non_null(mkdtemp(bench.folder));
    snprintf(bench.root, sizeof bench.root, "%s/root", bench.folder);
    snprintf(bench.groups, sizeof bench.groups, "%s/groups", bench.folder);
    folder(&bench, "");
    folder(&bench, "/a");
    folder(&bench, "/a/b");
    return bench;
}

static void bench_close(const struct bench *bench)
{
    static const char *const made[] = {"/root/a/b/memory.max",
                                       "/root/a/b",
                                       "/root/a/memory.max",
                                       "/root/a",
                                       "/root/memory.max",
                                       "/root/memory/memory.limit_in_bytes",
                                       "/root/memory",
                                       "/root",
                                       "/groups",
                                       ""};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s%s", bench->folder, made[i]);
        remove(path);
    }
    assert_int_not_equal(access(bench->folder, F_OK), 0);
}

static void test_the_least_limit_on_the_way_up_counts(void **state)
{
    static const struct {
        const char *own, *above, *root; /* memory.max of /a/b, /a, / */
        int64_t expected;
    } rows[] = {
        {"max\n", "max\n", NULL, INT64_MAX},
        {"1000\n", "max\n", NULL, 1000},
        {"max\n", "500\n", NULL, 500},
        {"1000\n", "500\n", "700\n", 500},
        {"1000\n", "900\n", "700\n", 700},
        {"nonsense\n", "0\n", "-1\n", INT64_MAX},
        {"99999999999999999999\n", NULL, NULL, INT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open();
        put(bench.folder, "groups", "4:cpu:/other\n0::/a/b\n");
        put(bench.root, "a/b/memory.max", rows[i].own);
        if (rows[i].above != NULL)
            put(bench.root, "a/memory.max", rows[i].above);
        if (rows[i].root != NULL)
            put(bench.root, "memory.max", rows[i].root);
        assert_true(machine_group_limit_bytes(bench.groups, bench.root) == rows[i].expected);
        bench_close(&bench);
    }
}

static void test_version_1_and_nothing_at_all(void **state)
{
    (void)state;
    struct bench bench = bench_open();
    assert_true(machine_group_limit_bytes(bench.groups, bench.root) == INT64_MAX);
    folder(&bench, "/memory");
    put(bench.root, "memory/memory.limit_in_bytes", "12345\n");
    assert_true(machine_group_limit_bytes(bench.groups, bench.root) == 12345);
    bench_close(&bench);
}

static void test_this_machine(void **state)
{
    (void)state;
    assert_true(machine_memory_bytes() >= 1 << 20);
    assert_true(machine_memory_bytes() < INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_limit_on_the_way_up_counts),
        cmocka_unit_test(test_version_1_and_nothing_at_all),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
