/* tests/unit/server/test_access.c: whose a token is, and the file read anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/text.h"
#include "server/http/access.h"

static char folder[64], path[96], link_path[96];

/* Writes a line for each name of names ("a,b"), whose token is its name twice. */
static void write_clients(const char *names)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *name = names; *name != '\0';) {
        size_t length = strcspn(name, ",");
        unsigned char digest[DIGEST_BYTES];
        char token[64], hex[DIGEST_HEX_BYTES];
        snprintf(token, sizeof token, "%.*s%.*s", (int)length, name, (int)length, name);
        assert_true(digest_sha256(token, strlen(token), digest));
        digest_show(digest, hex);
        fprintf(file, "%.*s infer sha256:%s\n", (int)length, name, hex);
        name += length + (name[length] == ',');
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0644), 0);
}

static struct access *open_access(void)
{
    struct access *access = NULL;
    struct failure failure = {0};
    if (access_create(path, &access, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
    return access;
}

/* Whether the token is a client's by the table in force, of the name that it is twice. */
static bool is_known(struct access *access, const char *token)
{
    struct access_table *table = NULL;
    access_hold(access, &table);
    size_t length = strlen(token);
    const struct client *client = access_find(table, token, length);
    if (client != NULL)
        assert_true(strlen(client->name) * 2 == length &&
                    memcmp(client->name, token, length / 2) == 0);
    access_let_go(access, &table);
    return client != NULL;
}

static void reload(struct access *access)
{
    struct failure failure = {0};
    if (access_reload(access, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
}

static void test_find(void **state)
{
    (void)state;
    write_clients("a,b,c");
    struct access *access = open_access();
    struct access_table *table = NULL;
    assert_int_equal(access_count(access), 3);
    access_hold(access, &table);
    assert_string_equal(access_find(table, "bb", 2)->name, "b");
    assert_null(access_find(table, "bb", 1));
    assert_null(access_find(table, "", 0));
    assert_null(access_find(table, "bbb", 3));
    assert_string_equal(access_find(table, "ccc", 2)->name, "c");
    char *longest = calloc(1, ACCESS_TOKEN_MAX + 1);
    assert_non_null(longest);
    assert_null(access_find(table, longest, ACCESS_TOKEN_MAX + 1));
    free(longest);
    access_let_go(access, &table);
    assert_null(table);
    access_let_go(access, &table);
    access_destroy(&access);
    assert_null(access);
}

static void test_a_table_that_is_held_stays(void **state)
{
    (void)state;
    write_clients("a,b,c");
    struct access *access = open_access();
    struct access_table *held = NULL, *other = NULL;
    access_hold(access, &held);
    access_hold(access, &other);
    const struct client *b = access_find(held, "bb", 2);
    assert_string_equal(b->name, "b");

    write_clients("c,d,a");
    reload(access);
    access_let_go(access, &other);
    assert_string_equal(b->name, "b");
    assert_ptr_equal(access_find(held, "bb", 2), b);
    assert_null(access_find(held, "dd", 2));
    assert_true(is_known(access, "aa") && is_known(access, "cc") && is_known(access, "dd"));
    assert_false(is_known(access, "bb"));

    write_clients("e");
    reload(access);
    access_hold(access, &held);
    assert_string_equal(access_find(held, "ee", 2)->name, "e");
    assert_null(access_find(held, "bb", 2));
    access_let_go(access, &held);
    access_destroy(&access);
}

static void test_a_bad_file_changes_nothing(void **state)
{
    (void)state;
    struct failure failure = {0};
    write_clients("a");
    struct access *access = open_access();
    assert_false(access_has_changed(access));

    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("a infer nothing\n", file);
    fclose(file);
    assert_true(access_has_changed(access));
    assert_int_equal(access_reload(access, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, path));
    assert_false(access_has_changed(access)); /* it is bad, and is not read again and again */
    assert_true(is_known(access, "aa"));

    unlink(path);
    assert_true(access_has_changed(access));
    assert_int_equal(access_reload(access, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "No such file"));
    assert_false(access_has_changed(access));
    assert_true(is_known(access, "aa"));

    write_clients("b");
    assert_true(access_has_changed(access));
    chmod(path, 0646);
    assert_int_equal(access_reload(access, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "others can write the file"));
    assert_false(is_known(access, "bb"));
    chmod(path, 0644);
    assert_true(access_has_changed(access));
    reload(access);
    assert_false(is_known(access, "aa"));
    assert_true(is_known(access, "bb"));
    access_destroy(&access);
}

/* As orchestrators do: another file under the same name. */
static void test_a_link_is_judged_by_its_target(void **state)
{
    (void)state;
    struct access *access = NULL;
    struct failure failure = {0};
    write_clients("a");
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(access_create(link_path, &access, &failure), ERROR_NONE);
    assert_false(access_has_changed(access));
    char other[112];
    snprintf(other, sizeof other, "%s.old", path);
    assert_int_equal(rename(path, other), 0);
    write_clients("b");
    assert_true(access_has_changed(access));
    reload(access);
    assert_true(is_known(access, "bb"));
    access_destroy(&access);

    chmod(path, 0602);
    assert_int_equal(access_create(link_path, &access, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "others can write the file"));
    assert_null(access);
    assert_int_equal(access_create(folder, &access, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "no plain file"));
    unlink(other);
    unlink(link_path);
}

struct binder {
    int left; /* clients that there is memory for */
    int calls;
    char names[64];
};

static bool bind(void *context, struct client *client)
{
    struct binder *binder = context;
    binder->calls++;
    if (binder->left-- == 0)
        return false;
    size_t length = strlen(binder->names);
    snprintf(binder->names + length, sizeof binder->names - length, "%s", client->name);
    client->account = context;
    return true;
}

/* Every client that a token finds has been bound. Without memory the old table stays. */
static void test_clients_are_bound(void **state)
{
    (void)state;
    struct binder binder = {.left = 100};
    const struct access_bind use = {bind, &binder};
    struct failure failure = {0};
    write_clients("a,b");
    struct access *access = open_access();
    struct access_table *table = NULL;
    assert_true(access_set_bind(access, &use));
    assert_string_equal(binder.names, "ab");
    write_clients("b,c,d");
    reload(access);
    assert_string_equal(binder.names, "abbcd");
    access_hold(access, &table);
    assert_ptr_equal(access_find(table, "dd", 2)->account, &binder);
    binder.left = 1;
    write_clients("e,f,g");
    assert_int_equal(access_reload(access, &failure), ERROR_INTERNAL);
    assert_string_equal(failure.detail, "out of memory");
    assert_int_equal(binder.calls, 7);
    assert_true(is_known(access, "dd"));
    binder.left = 0;
    assert_false(access_set_bind(access, &use));
    access_let_go(access, &table);
    access_destroy(&access);
}

static void test_a_full_table(void **state)
{
    (void)state;
    static char names[CLIENTS_MAX * 8];
    for (int i = 0; i < CLIENTS_MAX; i++)
        snprintf(names + strlen(names), 8, "%sa%d", i > 0 ? "," : "", i);
    write_clients(names);
    struct access *access = open_access();
    assert_int_equal(access_count(access), CLIENTS_MAX);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        char token[16];
        snprintf(token, sizeof token, "a%da%d", i, i);
        assert_true(is_known(access, token));
    }
    assert_false(is_known(access, "a1024a1024"));
    access_destroy(&access);
}

/* ---- Threads ---- */

static struct access *shared;
static _Atomic bool over;

static void *look_up(void *context)
{
    struct access_table *held = NULL;
    int64_t found = 0;
    (void)context;
    while (!over) {
        access_hold(shared, &held);
        const struct client *client = access_find(held, "aa", 2);
        assert_non_null(client); /* it is in every file */
        assert_string_equal(client->name, "a");
        found++;
        if (found % 7 == 0)
            access_let_go(shared, &held);
    }
    access_let_go(shared, &held);
    return NULL;
}

static void test_lookups_while_it_is_read_anew(void **state)
{
    (void)state;
    pthread_t threads[3];
    write_clients("a,b");
    shared = open_access();
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up, NULL), 0);
    for (int i = 0; i < 200; i++) {
        write_clients(i % 2 == 0 ? "c,a" : "a,b");
        reload(shared);
    }
    over = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    access_destroy(&shared);
}

/* ---- Fields ---- */

static void test_bearer(void **state)
{
    (void)state;
    static const struct {
        const char *value, *token;
    } rows[] = {
        {"Bearer abc", "abc"},      {"bearer abc", "abc"},
        {"BEARER   abc \t", "abc"}, {"Bearer a b", "a b"},
        {"Bearer", NULL},           {"Bearer ", NULL},
        {"Bearer  ", NULL},         {"Bearerabc", NULL},
        {"Basic abc", NULL},        {"", NULL},
        {"Bearer\tabc", NULL},      {" Bearer abc", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = 0;
        const char *token = access_bearer(rows[i].value, strlen(rows[i].value), &length);
        if ((token == NULL) != (rows[i].token == NULL))
            fail_msg("row %zu", i);
        if (token != NULL) {
            assert_int_equal(length, strlen(rows[i].token));
            assert_memory_equal(token, rows[i].token, length);
        }
    }
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/invertd-access-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/tokens", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_a_table_that_is_held_stays),
        cmocka_unit_test(test_a_bad_file_changes_nothing),
        cmocka_unit_test(test_a_link_is_judged_by_its_target),
        cmocka_unit_test(test_clients_are_bound),
        cmocka_unit_test(test_a_full_table),
        cmocka_unit_test(test_lookups_while_it_is_read_anew),
        cmocka_unit_test(test_bearer),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
