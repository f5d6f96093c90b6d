/* How the matrices that `ism` recovers are picked from a batch, on the CPU: each round goes on
 * where the one before it ended, and many small ones are recovered at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "gpu/method.h"
#include "tests/simt/simt.h"
}

#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/ism/recover.cuh"

#define MATRICES 700
#define UNVERIFIED 3 /* every third */

/* Rounds of `at_once`. What was picked is unverified still: only a round that looks at a matrix
 * again would find it. */
static void pick_all(int64_t at_once)
{
    std::vector<int32_t> info(MATRICES);
    std::vector<int64_t> list((size_t)at_once);
    int64_t picked = 77, unverified = 0, count = 0;
    struct cuda_tensors tensors[2] = {};
    cuda__ism_call call = {};
    for (int i = 0; i < MATRICES; i++)
        info[(size_t)i] = i % UNVERIFIED == 1 ? CUDA_INFO_UNVERIFIED + i % 2 : i % 2;
    for (int i = 0; i < MATRICES; i++)
        unverified += info[(size_t)i] < -1;
    tensors[0].outputs[METHOD_ISM_INFO] = info.data();
    tensors[1].outputs[METHOD_ISM_INFO] = info.data() + 300;
    tensors[1].first = 300;
    call.tensors = tensors;
    call.item_count = 2;
    call.matrices = MATRICES;
    call.list = list.data();
    call.picked = &picked;
    for (; count < unverified; count += call.count) {
        call.count = unverified - count < at_once ? unverified - count : at_once;
        assert_int_equal(cuda__start(cuda__ism_pick_kernel<double>, 1u, CUDA__ISM_THREADS, 0,
                                     nullptr, call, count == 0),
                         cudaSuccess);
        for (int64_t k = 0; k < call.count; k++)
            assert_int_equal(list[(size_t)k], (count + k) * UNVERIFIED + 1);
    }
}

static void test_each_is_picked_once(void **state)
{
    (void)state;
    static const int64_t at_once[] = {1, 2, 64, 85, 86, 233, 234};
    for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++)
        pick_all(at_once[i]);
}

/* 64 at least, and of small orders thousands. */
static void test_many_small_ones_at_once(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX] = {};
    struct cuda_call call = {};
    call.precision = PRECISION_FP64;
    call.n = 4;
    call.m = 5;
    call.inputs = METHOD_INPUT(METHOD_ISM_X) | METHOD_INPUT(METHOD_ISM_Y) |
                  METHOD_INPUT(METHOD_ISM_A0_INVERSE);
    call.options = options;
    assert_true(cuda_ism_recover_workspace(&call, 1000000) >
                4000 *
                    (cuda_ism_recover_workspace(&call, 2) - cuda_ism_recover_workspace(&call, 1)));
    assert_true(cuda_ism_recover_workspace(&call, 1000000) <= 70 << 20);
    assert_int_equal(cuda_ism_workspace(&call, 1000000), 0);
    call.n = 600;
    call.m = 601;
    assert_true(cuda_ism_recover_workspace(&call, 63) < cuda_ism_recover_workspace(&call, 64));
    assert_int_equal(cuda_ism_recover_workspace(&call, 64),
                     cuda_ism_recover_workspace(&call, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_picked_once),
        cmocka_unit_test(test_many_small_ones_at_once),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
