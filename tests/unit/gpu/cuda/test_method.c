/* Which methods and orders the CUDA engine says that it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *name;
    int64_t n_max;
} rows[] = {
    {"lu", CUDA_MIDDLE_N_MAX},
    {"lu_factor", CUDA_MIDDLE_N_MAX},
    {"tridiagonal", CUDA_TRIDIAGONAL_N_MAX},
    {"ism", CUDA_ISM_N_MAX},
    {"auto", CUDA_AUTO_N_MAX},
    {"gauss_jordan", CUDA_MIDDLE_N_MAX},
    {"iterative", CUDA_ITERATIVE_N_MAX},
};

static void test_orders(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows) * PRECISION_COUNT; i++) {
        size_t row = i / PRECISION_COUNT;
        enum precision precision = (enum precision)(i % PRECISION_COUNT);
        uint32_t index = (uint32_t)method_index(method_find(rows[row].name));
        assert_int_equal(cuda_method_n_max(index, precision), rows[row].n_max);
    }
}

/* No order between the first and the last of a method is left out, or taken twice. */
static void test_rows_follow_one_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t next = 1;
        for (int k = 0; cuda_method_row(k); k++) {
            const struct cuda_method *row = cuda_method_row(k);
            if (method_find(row->name) != method_find(rows[i].name))
                continue;
            assert_int_equal(row->n_min, next);
            next = row->n_max[PRECISION_FP64] + 1;
        }
        assert_int_equal(next - 1, rows[i].n_max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_rows_follow_one_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
