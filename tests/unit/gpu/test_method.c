/* The registry of methods and the contract's hash. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/choices.h"
#include "gpu/engine.h"
#include "gpu/host/base/host.h"
#include "gpu/method.h"
#include "gpu/methods/ism.h"
#include "gpu/methods/iterative.h"
#include "gpu/methods/tridiagonal.h"

static void test_registry_is_sorted_and_found(void **state)
{
    (void)state;
    assert_true(method_count() >= 4);
    for (int i = 0; i < method_count(); i++) {
        const struct method *method = method_at(i);
        assert_ptr_equal(method_find(method->name), method);
        assert_int_equal(method_index(method), i);
        if (i > 0)
            assert_true(strcmp(method_at(i - 1)->name, method->name) < 0);
    }
    assert_null(method_find("inverse"));
    assert_null(method_find(""));
    assert_null(method_find("LU"));
}

/* A dimension that depends on an option needs one of its kind; an input's never does. */
static void check_dim(const struct method *method, enum method_dim dim, bool is_input)
{
    assert_in_range(dim, METHOD_DIM_1, is_input ? METHOD_DIM_M : METHOD_DIM_END - 1);
    assert_non_null(method_dim_name(method, dim));
    if (dim < METHOD_DIM_INT_FIRST) {
        assert_in_range(dim, METHOD_DIM_1, METHOD_DIM_M);
        return;
    }
    int kind = METHOD_OPTION_INT, option = (int)dim - METHOD_DIM_INT_FIRST;
    if (dim >= METHOD_DIM_RANGE_FIRST) {
        kind = METHOD_OPTION_RANGE;
        option = (int)dim - METHOD_DIM_RANGE_FIRST;
    }
    assert_string_equal(method_dim_name(method, dim), method->options[option].name);
    assert_int_equal(method->options[option].kind, kind);
    assert_true(kind == METHOD_OPTION_RANGE || method->options[option].min >= 0);
}

static void check_tensor(const struct method *method, const struct method_tensor *tensor,
                         bool is_input)
{
    assert_non_null(tensor->help);
    assert_in_range(tensor->rank, 0, METHOD_RANK_MAX);
    for (int i = 0; i < tensor->rank; i++)
        check_dim(method, tensor->dims[i], is_input);
    for (const char *c = tensor->name; *c; c++)
        assert_true(isupper((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
}

/* A set has one shape of an input at most. */
static void check_sets(const struct method *method)
{
    for (int s = 0; method->input_sets[s]; s++) {
        uint32_t set = method->input_sets[s], names = 0;
        assert_int_equal(set >> method_input_count(method), 0);
        for (int j = 0; j < method_input_count(method); j++) {
            uint32_t name = METHOD_INPUT(method_input_find(method, method->inputs[j].name));
            if ((set & METHOD_INPUT(j)) == 0)
                continue;
            assert_int_equal(names & name, 0);
            names |= name;
        }
    }
}

/* Several algorithms, each named once, where METHOD reports which one; else one. */
static void check_algorithms(const struct method *method)
{
    bool seen[METHOD_ALGORITHM_COUNT] = {false};
    int count = 0;
    for (; method->algorithms[count].id != METHOD_ALGORITHM_NONE; count++) {
        assert_true(count < METHOD_ALGORITHMS_MAX);
        assert_non_null(method->algorithms[count].help);
        assert_false(seen[method->algorithms[count].id]);
        seen[method->algorithms[count].id] = true;
    }
    bool reports = method_output_find(method, "METHOD") >= 0;
    assert_true(count == 1 || (reports && count > 1));
    assert_int_equal(method_algorithm_of_all(method),
                     reports ? METHOD_ALGORITHM_NONE : method->algorithms[0].id);
}

static void test_descriptors_are_complete(void **state)
{
    (void)state;
    for (int i = 0; i < method_count(); i++) {
        const struct method *method = method_at(i);
        assert_true(method->title && method->when && method->n_max >= 1);
        assert_true(method->flops(10, 3) > 0);
        assert_in_range(method_input_count(method), 1, METHOD_INPUTS_MAX);
        assert_in_range(method_output_count(method), 1, METHOD_OUTPUTS_MAX);
        assert_true(method->outputs[0].is_default);
        for (int j = 0; j < method_input_count(method); j++) {
            int first = method_input_find(method, method->inputs[j].name);
            check_tensor(method, &method->inputs[j], true);
            assert_in_range(j - first, 0, method_input_shapes(method, first) - 1);
            assert_true(method->inputs[j].optional || method_input_shapes(method, first) == 1);
        }
        check_sets(method);
        for (int j = 0; j < method_output_count(method); j++) {
            check_tensor(method, &method->outputs[j], false);
            assert_int_equal(method_output_find(method, method->outputs[j].name), j);
        }
        check_algorithms(method);
        assert_true(method_output_find(method, "INFO") >= 0);
    }
}

static void test_names_are_found(void **state)
{
    (void)state;
    const struct method *method = method_find("auto");
    assert_int_equal(method_input_find(method, "a"), 0);
    assert_int_equal(method_output_find(method, "inverse"), 0);
    assert_int_equal(method_output_find(method, "Rcond"), 2);
    assert_int_equal(method_output_find(method, "LU"), -1);
    assert_int_equal(method_option_find(method, "spd"), 0);
    assert_int_equal(method_option_find(method, "SPD"), -1);
    assert_int_equal(method_option_find(method_find("lu"), "spd"), -1);
}

/* Of dense inverses the first outputs stand where engines write them. */
/* An option's choices have the ids that engines know them by. */
static void test_choices_have_their_ids(void **state)
{
    (void)state;
    static const struct {
        const struct method *method;
        int option;
        const char *choice;
        int id;
    } rows[] = {
        {&method_ism, METHOD_ISM_VARIANT, "auto", METHOD_ISM_AUTO},
        {&method_ism, METHOD_ISM_VARIANT, "single", METHOD_ISM_SINGLE},
        {&method_ism, METHOD_ISM_VARIANT, "block", METHOD_ISM_BLOCK},
        {&method_ism, METHOD_ISM_VARIANT, "reduced_memory", METHOD_ISM_REDUCED_MEMORY},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "auto", METHOD_ITERATIVE_SCHEME_AUTO},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "chebyshev", METHOD_ITERATIVE_CHEBYSHEV},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "order5", METHOD_ITERATIVE_ORDER5},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "order7", METHOD_ITERATIVE_ORDER7},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "order7_horner",
         METHOD_ITERATIVE_ORDER7_HORNER},
        {&method_iterative, METHOD_ITERATIVE_SCHEME, "order19", METHOD_ITERATIVE_ORDER19},
        {&method_iterative, METHOD_ITERATIVE_INITIAL, "diagonal", METHOD_ITERATIVE_DIAGONAL},
        {&method_iterative, METHOD_ITERATIVE_INITIAL, "transpose", METHOD_ITERATIVE_TRANSPOSE},
        {&method_iterative, METHOD_ITERATIVE_INITIAL, "scaled_identity",
         METHOD_ITERATIVE_SCALED_IDENTITY},
        {&method_tridiagonal, METHOD_TRIDIAGONAL_VARIANT, "two_sweep",
         METHOD_TRIDIAGONAL_TWO_SWEEP},
        {&method_tridiagonal, METHOD_TRIDIAGONAL_VARIANT, "pivoted", METHOD_TRIDIAGONAL_PIVOTED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            choices_find(rows[i].method->options[rows[i].option].choices, rows[i].choice),
            rows[i].id);
}

static void test_dense_inverses_are_known(void **state)
{
    (void)state;
    assert_true(method_inverts_dense(&method_lu) && method_inverts_dense(&method_ism));
    assert_true(method_takes_dense(&method_lu_factor) && !method_inverts_dense(&method_lu_factor));
    assert_false(method_takes_dense(&method_tridiagonal));
    for (int i = 0; i < method_count(); i++) {
        const struct method *method = method_at(i);
        if (!method_inverts_dense(method))
            continue;
        assert_int_equal(method_output_find(method, "INFO"), METHOD_OUTPUT_INFO);
        assert_int_equal(method_output_find(method, "RCOND"), METHOD_OUTPUT_RCOND);
        int algorithm = method_output_find(method, "METHOD");
        assert_true(algorithm < 0 || algorithm == METHOD_OUTPUT_ALGORITHM);
    }
}

static void test_algorithms_have_names(void **state)
{
    (void)state;
    assert_string_equal(method_algorithm_name(METHOD_ALGORITHM_CHOLESKY), "cholesky");
    assert_string_equal(method_algorithm_name(METHOD_ALGORITHM_NONE), "none");
    assert_string_equal(method_algorithm_name(-1), "none");
    assert_string_equal(method_algorithm_name(METHOD_ALGORITHM_COUNT), "none");
    for (int i = 1; i < METHOD_ALGORITHM_COUNT; i++) {
        assert_true(method_algorithm_name(i)[0] != 0);
        if (i > 1)
            assert_true(strcmp(method_algorithm_name(i - 1), method_algorithm_name(i)) < 0);
    }
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct method_range rows[] = {
        {0, 1}, {0, 5}, {4, 5}, {1, METHOD_RANGE_MAX}, {METHOD_RANGE_MAX - 1, METHOD_RANGE_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t value = method_range_pack(rows[i]);
        struct method_range range = method_range_unpack(value, 7);
        assert_true(value != 0);
        assert_int_equal(range.first, rows[i].first);
        assert_int_equal(range.end, rows[i].end);
    }
    struct method_range all = method_range_unpack(0, 7);
    assert_int_equal(all.first, 0);
    assert_int_equal(all.end, 7);
}

static void test_default_options(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX];
    for (int i = 0; i < method_count(); i++) {
        memset(options, 0xa5, sizeof options);
        method_default_options(method_at(i), options);
        int k = 0;
        for (; k < METHOD_OPTIONS_MAX && method_at(i)->options[k].name; k++)
            assert_int_equal(options[k], method_at(i)->options[k].initial);
        for (; k < METHOD_OPTIONS_MAX; k++)
            assert_int_equal(options[k], 0);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    /* Option 0 is an integer, 1 a range of three, 2 everything. */
    static const int64_t options[METHOD_OPTIONS_MAX] = {11, INT64_C(2) << 32 | 5};
    static const struct {
        enum method_kind kind;
        int rank;
        enum method_dim dims[METHOD_RANK_MAX];
        enum precision precision;
        int64_t n, m, bytes;
    } rows[] = {
        {METHOD_REAL, 2, {METHOD_DIM_N, METHOD_DIM_N}, PRECISION_FP64, 8, 0, 512},
        {METHOD_REAL, 2, {METHOD_DIM_N, METHOD_DIM_N}, PRECISION_FP32, 8, 0, 256},
        {METHOD_REAL, 2, {METHOD_DIM_N, METHOD_DIM_M}, PRECISION_FP64, 8, 3, 192},
        {METHOD_REAL, 1, {METHOD_DIM_N_MINUS_1}, PRECISION_FP64, 8, 0, 56},
        {METHOD_REAL, 1, {METHOD_DIM_N_MINUS_1}, PRECISION_FP64, 0, 0, 0},
        {METHOD_REAL, 1, {METHOD_DIM_1}, PRECISION_FP64, 8, 0, 8},
        {METHOD_INT32, 1, {METHOD_DIM_N}, PRECISION_FP64, 8, 0, 32},
        {METHOD_INT32, 2, {METHOD_DIM_4, METHOD_DIM_N}, PRECISION_FP64, 8, 0, 128},
        {METHOD_REAL, 1, {METHOD_DIM_INT(0)}, PRECISION_FP64, 8, 0, 88},
        {METHOD_REAL, 2, {METHOD_DIM_RANGE(1), METHOD_DIM_RANGE(2)}, PRECISION_FP64, 8, 0, 192},
        {METHOD_REAL, 2, {METHOD_DIM_RANGE(2), METHOD_DIM_RANGE(2)}, PRECISION_FP64, 0, 0, 0},
        {METHOD_ALGORITHM, 0, {0}, PRECISION_FP64, 8, 0, 4},
        {METHOD_REAL, 0, {0}, PRECISION_FP32, 8, 0, 4},
        {METHOD_REAL, 2, {METHOD_DIM_N, METHOD_DIM_N}, PRECISION_FP64, 3037000500, 0, -1},
        {METHOD_REAL, 2, {METHOD_DIM_N, METHOD_DIM_N}, PRECISION_FP32, INT64_MAX, 0, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct method_tensor tensor = {.name = "T", .kind = rows[i].kind, .rank = rows[i].rank};
        memcpy(tensor.dims, rows[i].dims, sizeof tensor.dims);
        assert_int_equal(
            method_tensor_bytes(&tensor, rows[i].precision, rows[i].n, rows[i].m, options),
            rows[i].bytes);
    }
}

static void test_contract_hash(void **state)
{
    (void)state;
    assert_true(engine_contract_hash() != 0);
    assert_true(engine_contract_hash() == engine_contract_hash());
}

static void test_host_engine_has_every_method(void **state)
{
    (void)state;
    for (int i = 0; i < method_count(); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++) {
            const struct host_method *host = host_method_at((uint32_t)i, (enum precision)p);
            assert_non_null(host);
            assert_string_equal(host->name, method_at(i)->name);
            assert_true(host->run != NULL);
            int64_t bytes = host->scratch_bytes(10, 2);
            assert_true(bytes >= 0 && bytes % HOST_ALIGN_BYTES == 0);
            /* What grows with n is beyond 64 bits at last. */
            assert_int_equal(host->scratch_bytes(INT64_MAX / 2, 2), bytes > 0 ? -1 : 0);
            assert_true(strlen(host->kernel(10)) < ENGINE_KERNEL_NAME_MAX);
        }
    }
    assert_null(host_method_at((uint32_t)method_count(), PRECISION_FP64));
    assert_null(host_method_at(UINT32_MAX, PRECISION_FP64));
    assert_null(host_method_at(0, PRECISION_COUNT));
}

/* Of `ism`: G, K and the product, two products with A0_INVERSE, and U and V, column by column. */
static void test_flops_of_factors(void **state)
{
    (void)state;
    static const int64_t ranks[] = {10, 300, 1000};
    for (int i = 0; i < 3; i++) {
        const double n = 1000, m = (double)ranks[i];
        const double flops = method_find("ism")->flops(1000, ranks[i]);
        double least = 6 * n * n * m + 4 * n * m * m;
        for (int64_t earlier = 0; earlier < ranks[i]; earlier++)
            least += 2 * 2 * n * (double)earlier;
        assert_true(flops >= least && flops <= 1.2 * least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry_is_sorted_and_found),
        cmocka_unit_test(test_descriptors_are_complete),
        cmocka_unit_test(test_names_are_found),
        cmocka_unit_test(test_choices_have_their_ids),
        cmocka_unit_test(test_dense_inverses_are_known),
        cmocka_unit_test(test_algorithms_have_names),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_default_options),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_contract_hash),
        cmocka_unit_test(test_host_engine_has_every_method),
        cmocka_unit_test(test_flops_of_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
