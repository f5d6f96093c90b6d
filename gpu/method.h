/* gpu/method.h: what a method is. One descriptor a method, gpu/methods/NAME.c; everything the
 * front knows of it (wire form, metadata, documentation, limits, cost, metric label) follows. What
 * engines share with it (places of tensors and options, limits) is in gpu/methods/NAME.h.
 * docs/howto/method.md adds one.
 *
 * The registry (gpu/method.c) lists gpu/methods in the order of their names; a method's place
 * in it is its number in the engine contract. Descriptors are constant data: any thread, any
 * process.
 *
 * Conventions of every method, kept by every engine:
 *  - Tensors are dense and row-major: [batch] followed by the row's dimensions.
 *  - REAL tensors have the request's precision. INT32 are 4-byte integers. ALGORITHM is stored by
 *    engines as INT32 (enum method_algorithm) and travels as BYTES or a string.
 *  - Outputs of rank 0 (one number a matrix: INFO, RCOND, METHOD, ...) are always computed, but for
 *    those that are `optional`; others only when wanted.
 *  - RESIDUAL_LEFT and RESIDUAL_RIGHT are the engine's: it measures them when the method is done.
 *  - m is the length of the dimensions that the descriptor calls so; n where no input has it.
 *  - Where an output's length depends on an option, the option travels with the batch, and every
 *    matrix of the batch has the same.
 *  - INFO: 0 good; k in 1..n exact zero pivot at step k; n+1 singular to working precision, also
 *    once equilibrated (or the inverse overflows); n+2 not converged; -1 NaN or infinity in the
 *    input. See docs/methods.md.
 */
#ifndef GPU_METHOD_H
#define GPU_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"

#define METHOD_INPUTS_MAX 7
#define METHOD_OUTPUTS_MAX 10
#define METHOD_OPTIONS_MAX 8
#define METHOD_RANK_MAX 2
#define METHOD_INPUT_SETS_MAX 8
#define METHOD_ALGORITHMS_MAX 8
/* The progress of a computation is reported in parts, of which one matrix has so many. */
#define METHOD_PROGRESS_WHOLE 1000

/* A dimension of one matrix's part of a tensor, in terms of the request's n and m, and of outputs
 * in terms of its options: METHOD_DIM_INT(k) is the value of option k, an INT, METHOD_DIM_RANGE(k)
 * the length of option k, a RANGE. */
enum method_dim {
    METHOD_DIM_1 = 1,
    METHOD_DIM_4,
    METHOD_DIM_N,
    METHOD_DIM_N_MINUS_1,
    METHOD_DIM_M,
    METHOD_DIM_INT_FIRST = 16,
    METHOD_DIM_RANGE_FIRST = METHOD_DIM_INT_FIRST + METHOD_OPTIONS_MAX,
    METHOD_DIM_END = METHOD_DIM_RANGE_FIRST + METHOD_OPTIONS_MAX
};
#define METHOD_DIM_INT(option) ((enum method_dim)(METHOD_DIM_INT_FIRST + (option)))
#define METHOD_DIM_RANGE(option) ((enum method_dim)(METHOD_DIM_RANGE_FIRST + (option)))

enum method_kind {
    METHOD_REAL,
    METHOD_INT32,
    METHOD_ALGORITHM
};

/* The outputs that every method of dense inverses begins with, since engines share the code that
 * writes them. */
enum method_output {
    METHOD_OUTPUT_INVERSE,
    METHOD_OUTPUT_INFO,
    METHOD_OUTPUT_RCOND,
    METHOD_OUTPUT_ALGORITHM
};

/* The residuals of an inverse of a dense A, relative to n |A| |X| eps: of which product. */
enum method_side {
    METHOD_LEFT, /* I - X A */
    METHOD_RIGHT /* I - A X */
};

/* What an output holds for a matrix of order 0, which no engine sees. Other than ZEROS: of REALs.
 */
enum method_empty {
    METHOD_EMPTY_ZEROS,
    METHOD_EMPTY_ONES,
    METHOD_EMPTY_IDENTITY, /* of a square */
    METHOD_EMPTY_ONE_ZERO  /* a list whose first number is 0, with NaNs behind it */
};

struct method_tensor {
    const char *name; /* as in the v2 protocol: "A"; /v1 uses it in lower case. NULL ends a list */
    const char *help; /* one line for documentation */
    enum method_kind kind;
    int rank; /* without the batch dimension */
    enum method_dim dims[METHOD_RANK_MAX];
    bool optional; /* inputs: may be absent */
    const char
        *instead;    /* inputs: "form A and take lu", where what goes with it is missing; or NULL */
    bool is_default; /* outputs: answered when the request names none */
    uint32_t needs;  /* outputs: those it is made of, a bit each; they are there where it is */
    enum method_empty when_empty; /* outputs */
};

enum method_option_kind {
    METHOD_OPTION_BOOL,
    METHOD_OPTION_INT,
    METHOD_OPTION_REAL,
    METHOD_OPTION_CHOICE,
    METHOD_OPTION_RANGE /* "first:last" of 0 to n - 1, the last one excluded */
};

/* Values travel as int64: BOOL 0/1, INT itself, CHOICE the index, REAL the bits of the double,
 * RANGE as method_range_pack has it, with 0 for everything. */
struct method_option {
    const char *name; /* NULL ends the list */
    const char *help;
    enum method_option_kind kind;
    const char *choices; /* "auto|single|block" for CHOICE */
    double min, max;     /* inclusive bounds of INT and REAL */
    int64_t initial;     /* default, as it travels */
};

/* The algorithm a matrix took: the METHOD output and the Invertd-Method header. Every one that a
 * descriptor lists has an id, and its name is the id's: METHOD_ALGORITHM_LU is "lu", in `lu` and in
 * `auto`. The list is the descriptors' (build/gen, made by the Makefile), sorted.
 */
enum method_algorithm {
    METHOD_ALGORITHM_NONE, /* not computed: INFO -1, or nothing to do (n = 0) */
#define ALGORITHM(id, name) METHOD_ALGORITHM_##id,
#include "method_algorithms.inc"
#undef ALGORITHM
    METHOD_ALGORITHM_COUNT
};

struct method_algorithm_row {
    enum method_algorithm id; /* METHOD_ALGORITHM_NONE ends a list */
    const char *help;         /* what it is, in a few words for documentation */
};

/* A set of inputs: a bit for each, by its place in the descriptor. */
#define METHOD_INPUT(place) (UINT32_C(1) << (place))

struct method {
    const char *name;  /* model name and metric label: "lu" */
    const char *title; /* "Inverse by LU factorisation with partial pivoting" */
    const char *when;  /* when to choose it; one or two sentences for the documentation */
    /* Inputs with one name, which stand one after the other, are shapes of one tensor: a request
     * has at most one of them, the first that fits. All of them are optional. */
    struct method_tensor inputs[METHOD_INPUTS_MAX + 1];
    /* Which inputs go together; 0 ends the list. An empty list: any that are not optional, with any
     * others. All matrices of a batch have the same ones. */
    uint32_t input_sets[METHOD_INPUT_SETS_MAX + 1];
    struct method_tensor outputs[METHOD_OUTPUTS_MAX + 1];
    struct method_option options[METHOD_OPTIONS_MAX + 1];
    /* One, which every matrix takes; or several, and the output METHOD reports each matrix's. */
    struct method_algorithm_row algorithms[METHOD_ALGORITHMS_MAX + 1];
    int64_t n_max; /* largest order accepted */
    /* Predicted work for one matrix of order n (rank m), in floating-point operations and bytes
     * moved; the front turns it into time with rates it measures, for fairness and deadlines. */
    double (*flops)(int64_t n, int64_t m);
    /* The most that a difficult matrix may take, for the time that an engine is given; NULL: no
     * more than that. */
    double (*flops_max)(int64_t n, int64_t m);
};

int method_count(void);
const struct method *method_at(int index);          /* 0 <= index < method_count() */
const struct method *method_find(const char *name); /* NULL when there is none */
int method_index(const struct method *method);
int method_input_count(const struct method *method);
int method_output_count(const struct method *method);
/* How many shapes the input at `place`, the first of its name, can have; 1 as a rule. */
int method_input_shapes(const struct method *method, int place);
/* The index of the input, the first of its name, or output; ASCII case ignored; -1: none. */
int method_input_find(const struct method *method, const char *name);
int method_output_find(const struct method *method, const char *name);
int method_option_find(const struct method *method, const char *name); /* exact; -1 */
/* Does it take a dense A, its first input, without any other? */
bool method_takes_dense(const struct method *method);
/* Is it that, and its first output INVERSE, n x n? */
bool method_inverts_dense(const struct method *method);
/* The output that has that residual; -1: none. */
int method_residual_find(const struct method *method, enum method_side side);
/* The algorithm of every matrix; METHOD_ALGORITHM_NONE: the output METHOD has each one's. */
enum method_algorithm method_algorithm_of_all(const struct method *method);
const char *method_algorithm_name(int algorithm); /* "cholesky"; "none" for a number out of range */
/* The options of a request that names none, as they travel. */
void method_default_options(const struct method *method, int64_t options[METHOD_OPTIONS_MAX]);

/* first to end - 1. A range given for a request has 0 <= first < end <= n. */
struct method_range {
    int64_t first, end;
};
#define METHOD_RANGE_MAX INT64_C(0x7fffffff)          /* the largest end that travels */
int64_t method_range_pack(struct method_range range); /* 0 <= first < end <= METHOD_RANGE_MAX */
struct method_range method_range_unpack(int64_t value, int64_t n); /* 0: from 0 to n */

/* The length of one dimension for order n and rank m (METHOD_DIM_N_MINUS_1 of n = 0 is 0). options:
 * METHOD_OPTIONS_MAX values as they travel; inputs do not depend on them, and NULL will do. */
int64_t method_dim_length(enum method_dim dim, int64_t n, int64_t m, const int64_t *options);
/* How a dimension is called: "n-1", or the name of the option that it depends on. */
const char *method_dim_name(const struct method *method, enum method_dim dim);
/* Bytes of one matrix's part of a tensor; -1 on overflow. ALGORITHM counts 4 bytes. options: as
 * above.
 */
int64_t method_tensor_bytes(const struct method_tensor *tensor, enum precision precision, int64_t n,
                            int64_t m, const int64_t *options);

/* Every descriptor: method_lu, ... */
#define METHOD(name) extern const struct method method_##name;
#include "method_list.inc"
#undef METHOD

#endif
