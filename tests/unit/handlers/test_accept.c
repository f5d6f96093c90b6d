/* Which format an Accept header likes best. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "handlers/accept.h"

#define NONE PROTO_FORMAT_UNKNOWN
#define NPY PROTO_FORMAT_NPY
#define NPZ PROTO_FORMAT_NPZ
#define JSON PROTO_FORMAT_JSON

static void test_accept(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum proto_format natural, best; /* NONE: nothing is allowed */
    } rows[] = {
        {NULL, NPY, NPY},
        {"", NPZ, NPZ},
        {"*/*", JSON, JSON},
        {"application/*", NPY, NPY},
        {"application/x-npy", NPZ, NPY},
        {"Application/X-NPY", NPZ, NPY},
        {"application/json, application/x-npy", NPY, NPY},
        {"application/json, application/x-npy;q=0.5", NPY, JSON},
        {"application/json;q=0.5,*/*;q=0.1", NPY, JSON},
        {"application/x-npy;q=0, */*", NPZ, NPZ},
        {"application/x-npy;q=0, application/json;q=0.2", NPY, JSON},
        {"text/html", NPY, NONE},
        {"text/html, application/json;q=0", JSON, NONE},
        {"application/x-npyy", NPY, NONE},
        {"*/*;q=0", NPY, NONE},
        {"application/json ; q=0.3 , application/x-npz;q=0.301", NPY, NPZ},
        {"application/x-npz;version=1;q=0.9, application/json;q=0.8", JSON, NPZ},
        {"application/json;q=what", NPY, JSON},
        {"application/json;q=1.000,application/x-npy;q=0.999", NPY, JSON},
        {",,;, ", NPY, NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum proto_format format = rows[i].natural;
        bool found = handlers__accept_format(rows[i].accept, &format);
        if (found != (rows[i].best != NONE) || (found && format != rows[i].best))
            print_error("row %zu: %s\n", i, rows[i].accept);
        assert_int_equal(found, rows[i].best != NONE);
        if (found)
            assert_int_equal(format, rows[i].best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
