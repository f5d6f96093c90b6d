/* tests/fuzz/codec.c: see codec.h. */
#include "tests/fuzz/codec.h"

#include <stdlib.h>
#include <string.h>

static void *take(struct proto_space *self, int64_t bytes)
{
    struct fuzz_space *space = (struct fuzz_space *)self;
    void *block;
    if (bytes > FUZZ_BUDGET_BYTES - space->taken ||
        space->count == (int)(sizeof space->blocks / sizeof space->blocks[0]) ||
        posix_memalign(&block, 64, (size_t)bytes) != 0)
        return NULL;
    space->taken += bytes;
    space->blocks[space->count++] = block;
    return block;
}

void fuzz_space_init(struct fuzz_space *space)
{
    memset(space, 0, sizeof *space);
    space->space.take = take;
}

void fuzz_space_free(struct fuzz_space *space)
{
    for (int i = 0; i < space->count; i++)
        free(space->blocks[i]);
    space->count = 0;
}

static const struct method chain = {
    .name = "chain",
    .inputs = {{.name = "DL", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}},
               {.name = "D", .rank = 1, .dims = {METHOD_DIM_N}},
               {.name = "DU", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}}},
    .outputs = {{.name = "INVERSE",
                 .rank = 2,
                 .dims = {METHOD_DIM_RANGE(0), METHOD_DIM_RANGE(1)},
                 .is_default = true},
                {.name = "DIAGONAL", .rank = 1, .dims = {METHOD_DIM_N}},
                {.name = "HISTORY", .rank = 1, .dims = {METHOD_DIM_INT(2)}},
                {.name = "INFO", .kind = METHOD_INT32, .is_default = true},
                {.name = "RCOND", .is_default = true},
                {.name = "METHOD", .kind = METHOD_ALGORITHM, .is_default = true}},
    .options = {{.name = "rows", .kind = METHOD_OPTION_RANGE},
                {.name = "columns", .kind = METHOD_OPTION_RANGE},
                {.name = "steps", .kind = METHOD_OPTION_INT, .min = 0, .max = 1000, .initial = 5}},
    .n_max = 100,
};

static const struct method update = {
    .name = "update",
    .inputs = {{.name = "X", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}},
               {.name = "Y", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}},
               {.name = "A0", .rank = 1, .dims = {METHOD_DIM_1}, .optional = true},
               {.name = "A0", .rank = 1, .dims = {METHOD_DIM_N}, .optional = true},
               {.name = "A0", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}, .optional = true}},
    .outputs =
        {{.name = "INVERSE", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}, .is_default = true},
         {.name = "INFO", .kind = METHOD_INT32, .is_default = true}},
    .options = {{.name = "refine", .kind = METHOD_OPTION_BOOL, .initial = 1},
                {.name = "block_size", .kind = METHOD_OPTION_INT, .min = 1, .max = 64},
                {.name = "tolerance", .kind = METHOD_OPTION_REAL, .min = 0, .max = 0.5},
                {.name = "variant", .kind = METHOD_OPTION_CHOICE, .choices = "auto|single|block"}},
    .n_max = 1000,
};

const struct method *fuzz_method(unsigned number)
{
    switch (number % 4) {
    case 0:
        return method_find("lu");
    case 1:
        return method_find("auto");
    case 2:
        return &chain;
    default:
        return &update;
    }
}

struct fuzz_body fuzz_body(const uint8_t *data, size_t size, unsigned shift)
{
    struct fuzz_body body = {.length = (int64_t)size};
    void *block;
    shift %= 16;
    FUZZ_CHECK(posix_memalign(&block, 64, size + shift + (size + shift == 0)) == 0);
    body.block = block;
    body.bytes = body.block + shift;
    if (size > 0)
        memcpy(body.bytes, data, size);
    return body;
}

void fuzz_body_free(struct fuzz_body *body)
{
    free(body->block);
    body->block = NULL;
}

/* Every byte of every input counts, so that a sanitizer sees each one read. */
static void check_inputs(const struct proto_request *request)
{
    volatile unsigned char sum = 0;
    for (int i = 0; i < method_input_count(request->method); i++) {
        const struct method_tensor *tensor = &request->method->inputs[i];
        const struct proto_tensor *input = &request->inputs[i];
        int64_t bytes =
            method_tensor_bytes(tensor, request->precision, request->n, request->m, NULL);
        FUZZ_CHECK(input->data != NULL || tensor->optional);
        FUZZ_CHECK((uintptr_t)input->data % (uintptr_t)precision_bytes(request->precision) == 0);
        const unsigned char *data = input->data;
        for (int64_t k = 0; data != NULL && k < bytes * request->batch; k++)
            sum = (unsigned char)(sum + data[k]);
    }
}

typedef enum error encode(const struct proto_request *request,
                          void *const outputs[METHOD_OUTPUTS_MAX], struct proto_space *space,
                          struct proto_answer *answer, struct failure *failure);

static void check_answer(const struct proto_request *request, void *const *outputs, encode *run)
{
    struct fuzz_space space;
    struct proto_answer answer;
    struct failure failure;
    volatile unsigned char sum = 0;
    int64_t bound = proto_answer_bound(request);
    fuzz_space_init(&space);
    if (run(request, outputs, &space.space, &answer, &failure) == ERROR_NONE) {
        FUZZ_CHECK(bound >= space.taken);
        for (int i = 0; i < answer.segment_count; i++) {
            const unsigned char *data = answer.segments[i].iov_base;
            for (size_t k = 0; k < answer.segments[i].iov_len; k++)
                sum = (unsigned char)(sum + data[k]);
        }
    }
    (void)proto_answer_is_long(request);
    fuzz_space_free(&space);
}

void fuzz_answer(struct proto_request *request)
{
    void *outputs[METHOD_OUTPUTS_MAX] = {NULL};
    bool fits = true;
    FUZZ_CHECK(request->output_count > 0);
    check_inputs(request);
    for (int i = 0; i < method_output_count(request->method); i++) {
        int64_t bytes = method_tensor_bytes(&request->method->outputs[i], request->precision,
                                            request->n, request->m, request->options);
        FUZZ_CHECK(bytes >= 0);
        fits = fits && bytes <= FUZZ_BUDGET_BYTES && request->batch <= FUZZ_BUDGET_BYTES &&
               bytes * request->batch <= FUZZ_BUDGET_BYTES;
        if (!fits)
            break;
        size_t size = (size_t)(bytes * request->batch);
        FUZZ_CHECK((outputs[i] = malloc(size > 0 ? size : 1)) != NULL);
        memset(outputs[i], 0xa5, size);
    }
    bool v2 = request->format == PROTO_FORMAT_V2 || request->format == PROTO_FORMAT_RAW;
    if (fits && v2)
        check_answer(request, outputs, proto_v2_encode);
    if (fits && request->format == PROTO_FORMAT_JSON)
        check_answer(request, outputs, proto_json_encode);
    request->want_npz = true;
    if (fits && !v2) {
        check_answer(request, outputs, proto_npz_encode);
        check_answer(request, outputs, proto_npy_encode);
    }
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        free(outputs[i]);
}
