/* tests/unit/base/test_checked.c: size arithmetic at its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/checked.h"

#define MAX INT64_MAX

struct row {
    bool (*operation)(int64_t a, int64_t b, int64_t *result);
    int64_t a, b;
    bool good;
    int64_t result;
};

static const struct row rows[] = {
    {checked_mul, 0, 0, true, 0},
    {checked_mul, 0, MAX, true, 0},
    {checked_mul, MAX, 1, true, MAX},
    {checked_mul, MAX, 2, false, 0},
    {checked_mul, 46341, 46341, true, 2147488281},
    {checked_mul, 3037000499, 3037000499, true, 9223372030926249001},
    {checked_mul, 3037000500, 3037000500, false, 0},
    {checked_mul, INT64_C(1) << 32, INT64_C(1) << 32, false, 0},
    {checked_mul, -1, 1, false, 0},
    {checked_mul, 1, -1, false, 0},
    {checked_mul, -1, -1, false, 0},
    {checked_mul, INT64_MIN, INT64_MIN, false, 0},
    {checked_add, 0, 0, true, 0},
    {checked_add, MAX, 0, true, MAX},
    {checked_add, MAX, 1, false, 0},
    {checked_add, MAX - 1, 1, true, MAX},
    {checked_add, -1, 2, false, 0},
    {checked_add, 2, -1, false, 0},
    {checked_round_up, 0, 512, true, 0},
    {checked_round_up, 1, 512, true, 512},
    {checked_round_up, 512, 512, true, 512},
    {checked_round_up, 513, 512, true, 1024},
    {checked_round_up, 7, 1, true, 7},
    {checked_round_up, MAX, 512, false, 0},
    {checked_round_up, MAX - 511, 512, true, MAX - 511},
    {checked_round_up, MAX - 510, 512, false, 0},
    {checked_round_up, -1, 512, false, 0},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        int64_t result = -77;
        bool good = row->operation(row->a, row->b, &result);
        if (good != row->good || result != (row->good ? row->result : -77))
            fail_msg("row %zu: %lld, %lld gave %d, %lld", i, (long long)row->a, (long long)row->b,
                     good, (long long)result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
