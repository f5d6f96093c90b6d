/* tests/unit/proto/bench.c: see bench.h. */
#include "bench.h"

static void *take(struct proto_space *self, int64_t bytes)
{
    struct prototest_space *space = (struct prototest_space *)self;
    if (bytes > space->budget - space->taken ||
        space->count == (int)(sizeof space->blocks / sizeof space->blocks[0]))
        return NULL;
    void *block;
    if (posix_memalign(&block, 64, (size_t)bytes) != 0)
        return NULL;
    memset(block, 0xa5, (size_t)bytes);
    space->taken += bytes;
    space->blocks[space->count++] = block;
    return block;
}

void prototest_space_init(struct prototest_space *space, int64_t budget)
{
    memset(space, 0, sizeof *space);
    space->space.take = take;
    space->budget = budget;
}

void prototest_space_free(struct prototest_space *space)
{
    for (int i = 0; i < space->count; i++)
        free(space->blocks[i]);
    space->count = 0;
}

const struct method prototest_chain = {
    .name = "chain",
    .title = "A tridiagonal chain",
    .when = "In tests.",
    .inputs = {{.name = "DL", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}},
               {.name = "D", .rank = 1, .dims = {METHOD_DIM_N}},
               {.name = "DU", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}}},
    .outputs = {{.name = "INVERSE",
                 .rank = 2,
                 .dims = {METHOD_DIM_RANGE(0), METHOD_DIM_RANGE(1)},
                 .is_default = true},
                {.name = "DIAGONAL", .rank = 1, .dims = {METHOD_DIM_N}},
                {.name = "INFO", .kind = METHOD_INT32, .is_default = true},
                {.name = "RCOND", .is_default = true},
                {.name = "METHOD", .kind = METHOD_ALGORITHM},
                {.name = "HISTORY", .rank = 2, .dims = {METHOD_DIM_INT(2), METHOD_DIM_4}}},
    .options = {{.name = "rows", .help = "r", .kind = METHOD_OPTION_RANGE},
                {.name = "columns", .help = "c", .kind = METHOD_OPTION_RANGE},
                {.name = "steps", .kind = METHOD_OPTION_INT, .min = 0, .max = 1e15, .initial = 5}},
    .algorithms = {{.id = METHOD_ALGORITHM_TRIDIAGONAL, .help = "one"}},
    .n_max = 100,
};

const struct method prototest_update = {
    .name = "update",
    .title = "A low-rank update",
    .when = "In tests.",
    .inputs = {{.name = "X", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}},
               {.name = "Y", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}},
               {.name = "A0", .rank = 1, .dims = {METHOD_DIM_N}, .optional = true}},
    .outputs =
        {{.name = "INVERSE", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}, .is_default = true},
         {.name = "INFO", .kind = METHOD_INT32, .is_default = true}},
    .options =
        {{.name = "refine", .help = "again", .kind = METHOD_OPTION_BOOL, .initial = 1},
         {.name = "block_size", .kind = METHOD_OPTION_INT, .min = 1, .max = 64, .initial = 8},
         {.name = "tolerance", .kind = METHOD_OPTION_REAL, .min = 0, .max = 0.5},
         {.name = "variant",
          .kind = METHOD_OPTION_CHOICE,
          .choices = "auto|single|block",
          .initial = 2}},
    .n_max = 1000,
};

struct prototest_body prototest_body(const void *bytes, int64_t length, int shift)
{
    struct prototest_body body = {.length = length};
    void *block;
    assert_int_equal(posix_memalign(&block, 64, (size_t)(length + shift + 1)), 0);
    body.block = block;
    body.bytes = body.block + shift;
    memcpy(body.bytes, bytes, (size_t)length);
    return body;
}

void prototest_body_free(struct prototest_body *body)
{
    free(body->block);
    body->block = NULL;
}

char *prototest_join(const struct proto_answer *answer)
{
    char *joined = malloc((size_t)answer->total_bytes + 1);
    size_t at = 0;
    assert_non_null(joined);
    for (int i = 0; i < answer->segment_count; i++) {
        memcpy(joined + at, answer->segments[i].iov_base, answer->segments[i].iov_len);
        at += answer->segments[i].iov_len;
    }
    assert_int_equal(at, answer->total_bytes);
    joined[at] = '\0';
    return joined;
}

void prototest_expect(const char *row, enum error got, enum error wanted,
                      const struct failure *failure, const char *fragment)
{
    if (got != wanted)
        fail_msg("%s: got %s (%s), wanted %s", row, error_name(got), failure->detail,
                 error_name(wanted));
    if (wanted != ERROR_NONE &&
        (failure->code != wanted || fragment == NULL || strstr(failure->detail, fragment) == NULL))
        fail_msg("%s: '%s' (%s) lacks '%s'", row, failure->detail, error_name(failure->code),
                 fragment);
}

int64_t prototest_npy(unsigned char *out, const char *dict, int64_t data_bytes, bool f32)
{
    size_t header = strlen(dict);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (unsigned char)(header & 0xff);
    out[9] = (unsigned char)(header >> 8);
    memcpy(out + 10, dict, header);
    unsigned char *data = out + 10 + header;
    int64_t size = f32 ? 4 : 8;
    memset(data, 0, (size_t)data_bytes);
    for (int64_t i = 0; i < data_bytes / size; i++) {
        double value = (double)i;
        float value_f32 = (float)i;
        memcpy(data + i * size, f32 ? (void *)&value_f32 : (void *)&value, (size_t)size);
    }
    return 10 + (int64_t)header + data_bytes;
}
