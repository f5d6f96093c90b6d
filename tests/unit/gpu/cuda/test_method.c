/* Which methods and orders the CUDA engine says that it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/cuda/base/method.h"

/* The rows of a method begin at order 1, leave out no order and take none twice, up to one that the
 * descriptor allows. */
static void test_rows_follow_one_another(void **state)
{
    (void)state;
    for (int i = 0; i < method_count() * PRECISION_COUNT; i++) {
        const struct method *method = method_at(i / PRECISION_COUNT);
        enum precision precision = (enum precision)(i % PRECISION_COUNT);
        int64_t next = 1, n_max = cuda_method_n_max((uint32_t)method_index(method), precision);
        for (int k = 0; cuda_method_row(k); k++) {
            const struct cuda_method *row = cuda_method_row(k);
            if (method_find(row->name) != method || row->n_max[precision] == 0)
                continue;
            assert_int_equal(row->n_min, next);
            next = row->n_max[precision] + 1;
        }
        assert_int_equal(next - 1, n_max);
        assert_true(n_max <= method->n_max);
    }
}

/* Every row is found by its method's number and its orders. */
static void test_rows_are_found(void **state)
{
    (void)state;
    for (int k = 0; cuda_method_row(k); k++) {
        const struct cuda_method *row = cuda_method_row(k);
        assert_non_null(method_find(row->name));
        uint32_t index = (uint32_t)method_index(method_find(row->name));
        for (int p = 0; p < PRECISION_COUNT; p++) {
            if (row->n_max[p] == 0)
                continue;
            assert_ptr_equal(cuda_method_find(index, (enum precision)p, row->n_min), row);
            assert_ptr_equal(cuda_method_find(index, (enum precision)p, row->n_max[p]), row);
        }
        assert_null(cuda_method_find(index, PRECISION_FP64, 0));
    }
    assert_null(cuda_method_find((uint32_t)method_count(), PRECISION_FP64, 1));
    assert_int_equal(cuda_method_n_max(UINT32_MAX, PRECISION_FP64), 0);
}

static void test_dense_inverses_are_taken(void **state)
{
    (void)state;
    uint32_t lu = (uint32_t)method_index(method_find("lu"));
    assert_true(cuda_method_n_max(lu, PRECISION_FP32) >= 32768);
    assert_true(cuda_method_n_max(lu, PRECISION_FP64) >= 32768);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_follow_one_another),
        cmocka_unit_test(test_rows_are_found),
        cmocka_unit_test(test_dense_inverses_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
