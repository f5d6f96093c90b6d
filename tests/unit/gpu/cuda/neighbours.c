/* tests/unit/gpu/cuda/neighbours.c: see neighbours.h. */
#include "tests/unit/gpu/cuda/neighbours.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOISE 0x5a
#define BEFORE 32 /* bytes before a tensor, and as many behind it at least */
#define ALIGN 64

/* One tensor of an item: its memory, and where the numbers lie in it. */
struct piece {
    const char *name;
    unsigned char *memory; /* NULL: not yet */
    size_t first_bytes, matrix_bytes, memory_bytes;
};

static struct piece piece_of(const struct cudatest_bed *bed, const struct method_tensor *tensor,
                             unsigned char *memory, int item)
{
    size_t unit =
        tensor->kind == METHOD_REAL ? (size_t)precision_bytes(bed->precision) : sizeof(int32_t);
    struct piece piece = {
        .name = tensor->name, .memory = memory, .first_bytes = BEFORE + (size_t)bed->late * unit};
    piece.matrix_bytes =
        (size_t)method_tensor_bytes(tensor, bed->precision, bed->n, bed->m, bed->options);
    piece.memory_bytes =
        (size_t)bed->counts[item] * piece.matrix_bytes + piece.first_bytes + BEFORE + ALIGN - 1;
    piece.memory_bytes -= piece.memory_bytes % ALIGN;
    return piece;
}

static struct piece input_piece(const struct cudatest_bed *bed, int item, int input)
{
    return piece_of(bed, &bed->method->inputs[input], bed->inputs_memory[item][input], item);
}

static struct piece output_piece(const struct cudatest_bed *bed, int item, int output)
{
    return piece_of(bed, &bed->method->outputs[output], bed->outputs_memory[item][output], item);
}

unsigned char *cudatest_input(const struct cudatest_bed *bed, int item, int64_t index, int input)
{
    struct piece piece = input_piece(bed, item, input);
    return piece.memory + piece.first_bytes + (size_t)index * piece.matrix_bytes;
}

unsigned char *cudatest_output(const struct cudatest_bed *bed, int item, int64_t index, int output)
{
    struct piece piece = output_piece(bed, item, output);
    return piece.memory + piece.first_bytes + (size_t)index * piece.matrix_bytes;
}

void cudatest_put(enum precision precision, unsigned char *to, const double *from, int64_t count,
                  int64_t step)
{
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            ((float *)(void *)to)[i] = (float)from[i * step];
        else
            ((double *)(void *)to)[i] = from[i * step];
    }
}

static unsigned char *take(const struct piece *piece)
{
    unsigned char *memory = aligned_alloc(ALIGN, piece->memory_bytes);
    assert_non_null(memory);
    memset(memory, NOISE, piece->memory_bytes);
    return memory;
}

static void fill_item(struct cudatest_bed *bed, int item)
{
    bool leaves_out = item % 2 || bed->by_all;
    for (int t = 0; bed->method->inputs[t].name; t++) {
        struct piece piece = input_piece(bed, item, t);
        bed->inputs_memory[item][t] = take(&piece);
        bed->items[item].inputs[t] = bed->inputs >> t & 1 ? cudatest_input(bed, item, 0, t) : NULL;
    }
    for (int t = 0; bed->method->outputs[t].name; t++) {
        struct piece piece = output_piece(bed, item, t);
        bed->outputs_memory[item][t] = take(&piece);
        bed->items[item].outputs[t] =
            bed->unwanted >> t & 1 && leaves_out ? NULL : cudatest_output(bed, item, 0, t);
    }
}

void cudatest_fill(struct cudatest_bed *bed, int items, int64_t first)
{
    int64_t at = 0;
    for (int i = 0; i < items; i++) {
        fill_item(bed, i);
        bed->items[i].first = at;
        for (int64_t k = 0; k < bed->counts[i]; k++, at++)
            bed->set_matrix(bed, i, k, first + at);
    }
}

void cudatest_run(const struct cudatest_bed *bed, int items)
{
    struct cuda_call call = {.precision = bed->precision,
                             .n = bed->n,
                             .m = bed->m,
                             .options = bed->options,
                             .item_count = items,
                             .inputs = bed->inputs,
                             .tensors = bed->items,
                             .products = bed->products};
    for (int i = 0; i < items; i++) {
        call.matrices += bed->counts[i];
        for (int t = 0; t < METHOD_OUTPUTS_MAX; t++)
            call.wanted |= bed->items[i].outputs[t] ? UINT32_C(1) << t : 0;
    }
    bed->run(bed, &call, bed->at_once ? bed->at_once : call.matrices);
}

void cudatest_release(struct cudatest_bed *bed, int items)
{
    for (int i = 0; i < items; i++) {
        for (int t = 0; t < METHOD_INPUTS_MAX; t++)
            free(bed->inputs_memory[i][t]);
        for (int t = 0; t < METHOD_OUTPUTS_MAX; t++)
            free(bed->outputs_memory[i][t]);
    }
    memset(bed->inputs_memory, 0, sizeof bed->inputs_memory);
    memset(bed->outputs_memory, 0, sizeof bed->outputs_memory);
}

/* Nothing before or behind a tensor was written. */
static void check_edges(const struct piece *piece, int64_t count)
{
    size_t end = piece->first_bytes + (size_t)count * piece->matrix_bytes;
    for (size_t i = 0; i < piece->memory_bytes; i++)
        if ((i < piece->first_bytes || i >= end) && piece->memory[i] != NOISE)
            fail_msg("%s: byte %d was written, of %d to %d", piece->name, (int)i,
                     (int)piece->first_bytes, (int)end);
}

/* Number k alone, aligned and with memory in plenty. */
static void compare(const struct cudatest_bed *bed, int item, int64_t index, int64_t k)
{
    struct cudatest_bed alone = *bed;
    alone.late = 0;
    alone.at_once = 0;
    alone.unwanted = 0;
    alone.counts[0] = 1;
    cudatest_fill(&alone, 1, k);
    cudatest_run(&alone, 1);
    for (int t = 0; bed->method->outputs[t].name; t++) {
        struct piece piece = output_piece(bed, item, t);
        if (bed->items[item].outputs[t] &&
            memcmp(cudatest_output(bed, item, index, t), cudatest_output(&alone, 0, 0, t),
                   piece.matrix_bytes))
            fail_msg("n = %d, m = %d, kind %d: another %s of matrix %d", (int)bed->n, (int)bed->m,
                     bed->kind, piece.name, (int)k);
    }
    cudatest_release(&alone, 1);
}

void cudatest_try_neighbours(struct cudatest_bed *bed, int items, int64_t first)
{
    cudatest_fill(bed, items, first);
    cudatest_run(bed, items);
    for (int i = 0; i < items; i++) {
        for (int t = 0; bed->method->inputs[t].name; t++) {
            struct piece piece = input_piece(bed, i, t);
            check_edges(&piece, bed->counts[i]);
        }
        for (int t = 0; bed->method->outputs[t].name; t++) {
            struct piece piece = output_piece(bed, i, t);
            check_edges(&piece, bed->items[i].outputs[t] ? bed->counts[i] : 0);
        }
        for (int64_t k = 0; k < bed->counts[i]; k++, first++)
            compare(bed, i, k, first);
    }
    cudatest_release(bed, items);
}
