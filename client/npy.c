/* client/npy.c: one matrix in NumPy's .npy format, as far as the server writes it.
 *
 *      \x93NUMPY major minor | header length, 2 bytes (version 1) or 4, little-endian |
 *      {'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), } and spaces | the data
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/matrix.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define HEAD_MAX 4096
#define ALIGNMENT 64
#define RANK_MAX 8

struct head {
    int64_t shape[RANK_MAX], data; /* where the data begins */
    int rank;
    bool single, fortran;
};

static int read_at(const struct files_input *input, int64_t at, void *data, size_t size)
{
    char *next = data;
    while (size > 0) {
        ssize_t count = pread(input->fd, next, size, input->start + at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : EIO;
        next += count;
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

/* What stands behind a key of the dict; NULL: it is not there. */
static const char *value_of(const char *dict, const char *key)
{
    const char *found = strstr(dict, key);
    return found != NULL ? found + strlen(key) + strspn(found + strlen(key), " :") : NULL;
}

static bool read_dict(const char *dict, struct head *head)
{
    const char *type = value_of(dict, "'descr'"), *shape = value_of(dict, "'shape'");
    const char *fortran = value_of(dict, "'fortran_order'");
    if (type == NULL || shape == NULL || fortran == NULL || *shape != '(')
        return false;
    head->single = strncmp(type, "'<f4'", 5) == 0;
    head->fortran = strncmp(fortran, "True", 4) == 0;
    for (shape++; *shape != ')' && head->rank < RANK_MAX; head->rank++) {
        char *end;
        head->shape[head->rank] = strtoll(shape, &end, 10);
        if (end == shape || head->shape[head->rank] < 0)
            return false;
        shape = end + strspn(end, ", ");
    }
    return *shape == ')' && (head->single || strncmp(type, "'<f8'", 5) == 0);
}

static bool read_head(const struct files_input *input, struct head *head)
{
    unsigned char start[12] = {0};
    char dict[HEAD_MAX + 1];
    *head = (struct head){0};
    if (read_at(input, 0, start, 10) != 0 || memcmp(start, MAGIC, MAGIC_BYTES) != 0)
        return false;
    bool is_first = start[6] == 1;
    if (!is_first && read_at(input, 10, start + 10, 2) != 0)
        return false;
    size_t length = (size_t)start[8] | (size_t)start[9] << 8;
    if (!is_first)
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    head->data = (is_first ? 10 : 12) + (int64_t)length;
    if (length > HEAD_MAX || read_at(input, is_first ? 10 : 12, dict, length) != 0)
        return false;
    dict[length] = '\0';
    return read_dict(dict, head);
}

/* A stack of one is a matrix. */
static bool drop_ones(struct head *head)
{
    while (head->rank > 2 && head->shape[0] == 1) {
        head->rank--;
        memmove(head->shape, head->shape + 1, (size_t)head->rank * sizeof head->shape[0]);
    }
    return head->rank == 2;
}

static void widen(struct matrix *matrix, int64_t count)
{
    const char *narrow = (const char *)matrix->values;
    for (int64_t i = count; i-- > 0;) {
        float value;
        memcpy(&value, narrow + (size_t)i * sizeof value, sizeof value);
        matrix->values[i] = (double)value;
    }
}

enum error npy_read(struct files_input *input, int64_t bytes_max, struct matrix *matrix,
                    struct failure *failure)
{
    struct head head;
    *matrix = (struct matrix){0};
    if (!read_head(input, &head) || head.fortran)
        return failure_set(failure, ERROR_BAD_DATATYPE,
                           "the answer is no real matrix; take -o FILE.npy");
    if (!drop_ones(&head))
        return failure_set(failure, ERROR_BAD_SHAPE,
                           "the answer has %d dimensions, and a text holds one matrix; take "
                           "-o FILE.npy",
                           head.rank);
    enum error error = matrix_create(matrix, head.shape[0], head.shape[1], bytes_max, failure);
    if (error != ERROR_NONE)
        return error;
    int64_t count = matrix->rows * matrix->columns;
    matrix->single = head.single;
    int number = read_at(input, head.data, matrix->values, (size_t)count * (head.single ? 4 : 8));
    if (number != 0)
        return failure_set(failure, ERROR_MALFORMED, "cannot read the answer: %s",
                           strerror(number));
    if (head.single)
        widen(matrix, count);
    return ERROR_NONE;
}

int npy_write(const struct matrix *matrix, struct files_output *output)
{
    char head[2 * ALIGNMENT + 1], dict[2 * ALIGNMENT];
    int length = snprintf(dict, sizeof dict,
                          "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }",
                          (long long)matrix->rows, (long long)matrix->columns);
    memset(head, ' ', sizeof head);
    memcpy(head, MAGIC "\1\0\x76\0", MAGIC_BYTES + 4); /* 0x76: with these 10 bytes, 128 */
    memcpy(head + MAGIC_BYTES + 4, dict, (size_t)length);
    head[2 * ALIGNMENT - 1] = '\n';
    int number = files_write(output, head, (size_t)2 * ALIGNMENT);
    if (number == 0)
        number =
            files_write(output, (const char *)matrix->values,
                        (size_t)matrix->rows * (size_t)matrix->columns * sizeof *matrix->values);
    return number;
}
