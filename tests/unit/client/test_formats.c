/* tests/unit/client/test_formats.c: Matrix Market, CSV and NPY: what is read, what is written, and
 * what is reported, with line and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/matrix.h"

#define BYTES_MAX 10000
#define MARKET "%%MatrixMarket matrix "

static enum error read_text(const char *text, bool is_csv, struct matrix *matrix,
                            struct failure *failure)
{
    struct lexer lexer;
    lexer_begin(&lexer, text, strlen(text), "a", failure);
    return is_csv ? csv_read(&lexer, BYTES_MAX, matrix)
                  : matrix_market_read(&lexer, BYTES_MAX, matrix);
}

/* An entry of 9e9 stands for NaN. */
static const struct {
    const char *text;
    int64_t rows, columns;
    double values[9];
} good[] = {
    {"4,7\n2,6\n", 2, 2, {4, 7, 2, 6}},
    {"4;7\r\n2 ; 6", 2, 2, {4, 7, 2, 6}},
    {"# head\n\n4\t7\n\n2\t6\n\n", 2, 2, {4, 7, 2, 6}},
    {" 4  7 \n 2 6\n", 2, 2, {4, 7, 2, 6}},
    {"\xef\xbb\xbf\"4\",\"7\"\n\"2\",\"6\"\n", 2, 2, {4, 7, 2, 6}},
    {"-0.5e1,+7,.5\n", 1, 3, {-5, 7, 0.5}},
    {"1.,-.5,1.e2,-1.D-1,007,00.5\n", 1, 6, {1, -0.5, 100, -0.1, 7, 0.5}},
    {"nan,-inf,+Infinity,inf\n", 1, 4, {9e9, -INFINITY, INFINITY, INFINITY}},
    {"0.1,1e-400,1.7976931348623157e308\n", 1, 3, {0.1, 0, 1.7976931348623157e308}},
    {"5", 1, 1, {5}},
    {MARKET "array real general\n2 2\n1\n2\n3\n4\n", 2, 2, {1, 3, 2, 4}},
    {MARKET "array integer symmetric\n% c\n2 2\n1\n2\n3", 2, 2, {1, 2, 2, 3}},
    {MARKET "array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
    {MARKET "coordinate real general\n%\n\n2 3 2\n1 3 .5\n2 1 -1\n", 2, 3, {0, 0, .5, -1, 0, 0}},
    {MARKET "Coordinate Pattern Symmetric\n2 2 2\n1 1\n2 1\n", 2, 2, {1, 1, 1, 0}},
    {MARKET "coordinate real general\r\n1 1 3\r\n1 1 1\r\n1 1 2\r\n1 1 3\r\n", 1, 1, {6}},
    {MARKET "coordinate integer skew-symmetric\n2 2 1\n2 1 4\n", 2, 2, {0, -4, 4, 0}},
    {MARKET "coordinate double general\n2 2 0\n", 2, 2, {0, 0, 0, 0}},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct matrix matrix;
        struct failure failure = {0};
        if (read_text(good[i].text, good[i].text[0] != '%', &matrix, &failure) != ERROR_NONE)
            fail_msg("row %zu: %s", i, failure.detail);
        assert_int_equal(matrix.rows, good[i].rows);
        assert_int_equal(matrix.columns, good[i].columns);
        for (int64_t k = 0; k < matrix.rows * matrix.columns; k++) {
            double value = isnan(matrix.values[k]) ? 9e9 : matrix.values[k];
            if (value != good[i].values[k])
                fail_msg("row %zu: %g at %d", i, value, (int)k);
        }
        matrix_free(&matrix);
    }
}

static const struct {
    const char *text, *detail;
} bad[] = {
    {"", "line 1, column 1: the file holds no numbers"},
    {"# 1\n\n", "line 3, column 1: the file holds no numbers"},
    {"x,y\n1,2\n", "line 1, column 1: \"x\" is no number"},
    {"1,2\n3,4x\n", "line 2, column 3: \"4x\" is no number"},
    {"1,2\n3,\n", "line 2, column 3: a number is missing"},
    {"1,,2\n", "line 1, column 3: a number is missing"},
    {"1,2\n3\n", "line 2, column 2: the row has 1 numbers, and the first has 2"},
    {"1,2\n3,4,5\n", "line 2, column 6: the row has 3 numbers, and the first has 2"},
    {"1,2\n3 4\n", "line 2, column 3: a separator is expected"},
    {"\"1,2\n", "line 1, column 3: a closing quote is missing"},
    {"1,1e400\n", "line 1, column 3: 1e400 is too large"},
    {"1,0x10\n", "line 1, column 3: \"0x10\" is no number"},
    {"1,--1\n", "line 1, column 3: \"--1\" is no number"},
    {"1,.\n", "line 1, column 3: \".\" is no number"},
    {"1,e5\n", "line 1, column 3: \"e5\" is no number"},
    {"%%Matrix matrix\n", "line 1, column 1: \"%%Matrix\" is not supported; %%MatrixMarket"},
    {MARKET "coordinate complex general\n",
     "line 1, column 34: \"complex\" is not supported; real"},
    {MARKET "coordinate real hermitian\n", "line 1, column 39: \"hermitian\" is not supported"},
    {MARKET "array pattern general\n", "line 1, column 1: an array cannot be a pattern"},
    {MARKET "coordinate real general\n", "line 2, column 1: the line of sizes is missing"},
    {MARKET "coordinate real general\n0 2 1\n", "line 2, column 1: the count of rows \"0\""},
    {MARKET "coordinate real general\n2 2\n", "line 2, column 4: the count of entries \"\""},
    {MARKET "coordinate real general\n2 2 1 1\n", "line 2, column 7: the line is expected to end"},
    {MARKET "coordinate real symmetric\n2 3 1\n", "line 2, column 1: a symmetric matrix is square"},
    {MARKET "coordinate real general\n2 2 1\n3 1 1\n", "line 3, column 1: the row \"3\" is not"},
    {MARKET "coordinate real general\n2 2 1\n1 0 1\n", "line 3, column 3: the column \"0\""},
    {MARKET "coordinate real general\n2 2 1\n1 1\n", "line 3, column 4: a number is missing"},
    {MARKET "coordinate real general\n2 2 1\n1 1 1 1\n", "line 3, column 7: the line is expected"},
    {MARKET "coordinate real general\n2 2 2\n1 1 1\n", "line 4, column 1: the file ends after 1"},
    {MARKET "coordinate real general\n2 2 1\n1 1 1\n1 1 1", "line 4, column 1: there is more"},
    {MARKET "coordinate real symmetric\n2 2 1\n1 2 1\n", "line 3, column 1: the entry is not in"},
    {MARKET "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "line 3, column 1: the entry is not"},
    {MARKET "array real general\n2 2\n1\n2\n", "line 5, column 1: the file ends before row 1"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct matrix matrix;
        struct failure failure = {0};
        assert_int_equal(read_text(bad[i].text, bad[i].text[0] != '%', &matrix, &failure),
                         ERROR_MALFORMED);
        if (strncmp(failure.detail, "a, ", 3) != 0 ||
            strncmp(failure.detail + 3, bad[i].detail, strlen(bad[i].detail)) != 0)
            fail_msg("row %zu: %s", i, failure.detail);
        matrix_free(&matrix);
    }
}

/* A declaration takes no memory beyond the bound, nor do rows that never end. */
static void test_bounds(void **state)
{
    (void)state;
    static char row[4 * BYTES_MAX];
    struct matrix matrix;
    struct failure failure = {0};
    const char *declared = MARKET "coordinate real general\n1000000000 1000000000 1\n1 1 1\n";
    assert_int_equal(read_text(declared, false, &matrix, &failure), ERROR_TOO_LARGE);
    matrix_free(&matrix);
    for (size_t i = 0; i < sizeof row - 1; i++)
        row[i] = i % 2 == 0 ? '1' : ',';
    assert_int_equal(read_text(row, true, &matrix, &failure), ERROR_MALFORMED);
    assert_non_null(strstr(failure.detail, "larger than 10000 bytes"));
    matrix_free(&matrix);
}

static void check_written(struct files_output *output, const char *wanted)
{
    char text[500] = "";
    assert_true(pread(output->fd, text, sizeof text - 1, 0) >= 0);
    assert_string_equal(text, wanted);
    files_close_output(output);
}

static void test_writing(void **state)
{
    (void)state;
    double values[] = {0.1, -0.0, NAN, INFINITY, -INFINITY, 1e300};
    struct matrix matrix = {.rows = 2, .columns = 3, .values = values};
    struct files_output output;
    struct failure failure;
    assert_int_equal(files_open_nameless(&output, &failure), ERROR_NONE);
    assert_int_equal(csv_write(&matrix, &output), 0);
    check_written(&output, "0.1,-0.0,nan\ninf,-inf,1e+300\n");
    assert_int_equal(files_open_nameless(&output, &failure), ERROR_NONE);
    assert_int_equal(matrix_market_write(&matrix, &output), 0);
    check_written(&output, MARKET "array real general\n2 3\n0.1\ninf\n-0.0\n-inf\nnan\n1e+300\n");
    values[0] = (double)0.1F;
    matrix = (struct matrix){.rows = 1, .columns = 1, .values = values, .single = true};
    assert_int_equal(files_open_nameless(&output, &failure), ERROR_NONE);
    assert_int_equal(csv_write(&matrix, &output), 0);
    check_written(&output, "0.1\n");
}

/* ---- NPY ---- */

static void test_npy_and_back(void **state)
{
    (void)state;
    double values[] = {1, -0.0, 3, 4, NAN, 6};
    struct matrix matrix = {.rows = 3, .columns = 2, .values = values}, again;
    struct files_output output;
    struct files_input input;
    struct failure failure;
    assert_int_equal(files_open_nameless(&output, &failure), ERROR_NONE);
    assert_int_equal(npy_write(&matrix, &output), 0);
    assert_int_equal(output.at, 128 + sizeof values);
    files_read_back(&output, &input);
    assert_int_equal(npy_read(&input, BYTES_MAX, &again, &failure), ERROR_NONE);
    assert_int_equal(again.rows, 3);
    assert_int_equal(again.columns, 2);
    assert_false(again.single);
    assert_memory_equal(again.values, values, sizeof values);
    matrix_free(&again);
    files_close_input(&input);
}

static const struct {
    const char *dict;
    int version;
    enum error error;
} npys[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", 1, ERROR_NONE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2), }\n", 2, ERROR_NONE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 1), }", 1, ERROR_BAD_SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 1, ERROR_BAD_SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 1, ERROR_BAD_SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9), }", 1, ERROR_TOO_LARGE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 1, ERROR_MALFORMED},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", 1, ERROR_BAD_DATATYPE},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1), }", 1, ERROR_BAD_DATATYPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2), }", 1, ERROR_BAD_DATATYPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", 1, ERROR_BAD_DATATYPE},
    {"{}", 1, ERROR_BAD_DATATYPE},
};

static void test_npys(void **state)
{
    (void)state;
    static const float values[] = {0.25F, -2};
    for (size_t i = 0; i < sizeof npys / sizeof npys[0]; i++) {
        size_t length = strlen(npys[i].dict);
        char head[] = {'\x93', 'N',          'U', 'M', 'P', 'Y', (char)npys[i].version,
                       0,      (char)length, 0,   0,   0};
        struct matrix matrix;
        struct files_output output;
        struct files_input input;
        struct failure failure = {0};
        assert_int_equal(files_open_nameless(&output, &failure), ERROR_NONE);
        assert_int_equal(files_write(&output, head, npys[i].version == 1 ? 10 : 12), 0);
        assert_int_equal(files_write(&output, npys[i].dict, length), 0);
        assert_int_equal(files_write(&output, (const char *)values, sizeof values), 0);
        files_read_back(&output, &input);
        if (npy_read(&input, BYTES_MAX, &matrix, &failure) != npys[i].error)
            fail_msg("row %zu: %s", i, failure.detail);
        if (npys[i].error == ERROR_NONE) {
            assert_true(matrix.single && matrix.values[0] == 0.25 && matrix.values[1] == -2);
        }
        matrix_free(&matrix);
        files_close_input(&input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_writing),
        cmocka_unit_test(test_npy_and_back), cmocka_unit_test(test_npys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
