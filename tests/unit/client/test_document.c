/* tests/unit/client/test_document.c: documents of jobs, and pages of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/document.h"

static struct text text_of(const char *string)
{
    struct text text;
    text_init(&text, 10000);
    text_puts(&text, string);
    return text;
}

static const struct {
    const char *json;
    bool good;
    enum document_status status;
    int64_t position, n;
} rows[] = {
    {"{\"id\":\"a-_9\",\"status\":\"accepted\",\"position\":3,\"n\":5}", true, DOCUMENT_ACCEPTED, 3,
     5},
    {"{\"id\":\"a\",\"status\":\"running\",\"progress\":12.5}", true, DOCUMENT_RUNNING, 0, -1},
    {"{\"id\":\"a\",\"status\":\"successful\",\"position\":null}", true, DOCUMENT_SUCCESSFUL, 0,
     -1},
    {"{\"id\":\"a\",\"status\":\"failed\",\"message\":\"\\u001b[2J\"}", true, DOCUMENT_FAILED, 0,
     -1},
    {"{\"id\":\"a\",\"status\":\"dismissed\"}", true, DOCUMENT_DISMISSED, 0, -1},
    {"{\"id\":\"a\",\"status\":\"other\"}", false, 0, 0, 0},
    {"{\"id\":\"\",\"status\":\"running\"}", false, 0, 0, 0},
    {"{\"id\":\"../a\",\"status\":\"running\"}", false, 0, 0, 0},
    {"{\"id\":\"a?b\",\"status\":\"running\"}", false, 0, 0, 0},
    {"{\"id\":7,\"status\":\"running\"}", false, 0, 0, 0},
    {"{\"id\":\"a\"}", false, 0, 0, 0},
    {"[]", false, 0, 0, 0},
    {"", false, 0, 0, 0},
    {"{", false, 0, 0, 0},
};

static void test_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct document document;
        struct text body = text_of(rows[i].json);
        if (document_read(&body, &document) != rows[i].good)
            fail_msg("row %zu", i);
        if (rows[i].good) {
            assert_int_equal(document.status, rows[i].status);
            assert_int_equal(document.position, rows[i].position);
            assert_int_equal(document.n, rows[i].n);
            assert_null(strchr(document.message, '\x1b'));
        }
        text_free(&body);
    }
}

static void count(void *context, const struct document *document, const char *json)
{
    int *counted = context;
    assert_non_null(strstr(json, document->id));
    (*counted)++;
}

#define JOB "{\"id\":\"a\",\"status\":\"running\"}"

static void test_pages(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int result;
        const char *next;
    } pages[] = {
        {"{\"jobs\":[" JOB "," JOB "],\"next\":\"c\"}", 2, "c"},
        {"{\"jobs\":[" JOB "," JOB "," JOB "," JOB "],\"next\":\"c\"}", 3, "c"},
        {"{\"jobs\":[],\"next\":null}", 0, ""},
        {"{\"jobs\":[" JOB "]}", 1, ""},
        {"{\"jobs\":[{}]}", -1, ""},
        {"{\"jobs\":7}", -1, ""},
        {"{\"jobs\":[],\"next\":\"a cursor that is too long\"}", -1, ""},
        {"", -1, ""},
    };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char next[8];
        int counted = 0;
        struct text body = text_of(pages[i].json);
        int result = document_read_page(&body, next, sizeof next, 3, count, &counted);
        assert_int_equal(result, pages[i].result);
        assert_string_equal(next, pages[i].next);
        assert_true(result < 0 || counted == result);
        text_free(&body);
    }
}

static void test_printing(void **state)
{
    (void)state;
    char line[300] = "", head[300] = "";
    struct document document = {.id = "0123456789abcdef0123456789abcdef",
                                .method = "lu",
                                .created = "2026-11-28T12:00:00Z",
                                .status = DOCUMENT_RUNNING,
                                .progress = 41.6,
                                .n = 5,
                                .batch = -1};
    FILE *file = tmpfile();
    assert_non_null(file);
    document_print_head(file);
    document_print(&document, file);
    rewind(file);
    assert_non_null(fgets(head, sizeof head, file));
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_string_equal(line, "0123456789abcdef0123456789abcdef   running         42%        - lu"
                              "                  5        -  2026-11-28T12:00:00Z\n");
    assert_int_equal(strstr(head, "CREATED") - head, strstr(line, "2026") - line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents),
                                       cmocka_unit_test(test_pages),
                                       cmocka_unit_test(test_printing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
