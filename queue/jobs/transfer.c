/* queue/jobs/transfer.c: see transfer.h. */
#include "queue/jobs/transfer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "base/transpose.h"

#define ALIGN_BYTES 64
#define PANEL_BYTES (INT64_C(256) << 10) /* of columns that are transposed at a time */

/* ---- Layout ---- */

/* The outputs that have to have memory: those that are wanted, what they are made of, and the
 * numbers that an engine writes in any case. */
static uint32_t outputs_of(const struct job_task *task)
{
    const struct method *method = task->method;
    uint32_t outputs = 0;
    for (int i = 0; i < method_output_count(method); i++) {
        const struct method_tensor *tensor = &method->outputs[i];
        if (task->outputs[i].offset_bytes >= 0)
            outputs |= UINT32_C(1) << i | tensor->needs;
        if (tensor->rank == 0 && !tensor->optional)
            outputs |= UINT32_C(1) << i;
    }
    return outputs;
}

static int64_t each_bytes(const struct job_task *task, const struct method_tensor *tensor)
{
    return method_tensor_bytes(tensor, task->precision, task->n, task->m, task->options);
}

/* Puts the tensors of so many matrices at the end of the layout. */
static bool append(const struct job_task *task, const struct method_tensor *tensor,
                   struct transfer_layout *layout, int64_t *offset_bytes)
{
    int64_t bytes;
    *offset_bytes = layout->bytes;
    return checked_mul(each_bytes(task, tensor), layout->matrices, &bytes) &&
           checked_round_up(bytes, ALIGN_BYTES, &bytes) &&
           checked_add(layout->bytes, bytes, &layout->bytes);
}

bool transfer_lay_out(const struct job_task *task, int64_t matrices, struct transfer_layout *layout)
{
    const struct method *method = task->method;
    uint32_t outputs = outputs_of(task);
    bool fits = true;
    layout->matrices = matrices;
    layout->bytes = 0;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        layout->inputs[i] = -1;
        if (i < method_input_count(method) && task->inputs[i].offset_bytes >= 0)
            fits = fits && append(task, &method->inputs[i], layout, &layout->inputs[i]);
    }
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        layout->outputs[i] = -1;
        if ((outputs >> i & 1) != 0)
            fits = fits && append(task, &method->outputs[i], layout, &layout->outputs[i]);
    }
    return fits;
}

/* ---- Bytes ---- */

enum error transfer_get(const struct transfer_end *from, int64_t offset_bytes, void *data,
                        int64_t bytes, struct failure *failure)
{
    if (from->file != NULL)
        return spool_get(from->file, offset_bytes, data, bytes, failure);
    memcpy(data, from->bytes + offset_bytes, (size_t)bytes);
    return ERROR_NONE;
}

static enum error put(const struct transfer_end *to, int64_t offset_bytes, const void *data,
                      int64_t bytes, struct failure *failure)
{
    if (to->file != NULL)
        return spool_put(to->file, offset_bytes, data, bytes, failure);
    memcpy(to->bytes + offset_bytes, data, (size_t)bytes);
    return ERROR_NONE;
}

/* ---- Column-major inputs ---- */

/* One matrix, rows x columns; panel has room for some of its columns. */
struct columns {
    int64_t rows, columns, element_bytes;
    int64_t in_panel; /* columns */
    unsigned char *panel;
};

static enum error read_columns(const struct columns *of, const struct transfer_end *body,
                               int64_t offset_bytes, unsigned char *to, struct failure *failure)
{
    int64_t column_bytes = of->rows * of->element_bytes;
    for (int64_t first = 0; first < of->columns; first += of->in_panel) {
        int64_t count = min_i64(of->in_panel, of->columns - first);
        enum error error = transfer_get(body, offset_bytes + first * column_bytes, of->panel,
                                        count * column_bytes, failure);
        if (error != ERROR_NONE)
            return error;
        struct transpose plane = {.rows = of->rows,
                                  .columns = count,
                                  .source_stride = column_bytes,
                                  .target_stride = of->columns * of->element_bytes,
                                  .element_bytes = of->element_bytes};
        transpose_plane(&plane, to + first * of->element_bytes, of->panel);
    }
    return ERROR_NONE;
}

/* `matrices` of them, one after the other. */
static enum error read_transposed(const struct job_task *task, const struct method_tensor *tensor,
                                  const struct transfer_end *body, int64_t offset_bytes,
                                  int64_t matrices, unsigned char *to, struct failure *failure)
{
    assert(tensor->rank == 2);
    struct columns of = {
        .rows = method_dim_length(tensor->dims[0], task->n, task->m, task->options),
        .columns = method_dim_length(tensor->dims[1], task->n, task->m, task->options),
    };
    int64_t bytes = each_bytes(task, tensor);
    if (bytes == 0)
        return ERROR_NONE;
    of.element_bytes = bytes / (of.rows * of.columns);
    int64_t column_bytes = of.rows * of.element_bytes;
    of.in_panel = min_i64(max_i64(PANEL_BYTES / column_bytes, 1), of.columns);
    of.panel = malloc((size_t)(of.in_panel * column_bytes));
    if (of.panel == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    enum error error = ERROR_NONE;
    for (int64_t k = 0; k < matrices && error == ERROR_NONE; k++)
        error = read_columns(&of, body, offset_bytes + k * bytes, to + k * bytes, failure);
    free(of.panel);
    return error;
}

/* ---- Pieces ---- */

enum error transfer_read(const struct job_task *task, const struct transfer_layout *layout,
                         int64_t first, const struct transfer_end *body, unsigned char *memory,
                         struct failure *failure)
{
    assert(first >= 0 && first + layout->matrices <= task->batch);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        if (layout->inputs[i] < 0)
            continue;
        const struct method_tensor *tensor = &task->method->inputs[i];
        int64_t bytes = each_bytes(task, tensor);
        int64_t offset_bytes = task->inputs[i].offset_bytes + first * bytes;
        unsigned char *to = memory + layout->inputs[i];
        enum error error =
            task->inputs[i].column_major && tensor->rank == 2
                ? read_transposed(task, tensor, body, offset_bytes, layout->matrices, to, failure)
                : transfer_get(body, offset_bytes, to, layout->matrices * bytes, failure);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

enum error transfer_write(const struct job_task *task, const struct transfer_layout *layout,
                          int64_t first, const struct transfer_end *result,
                          const unsigned char *memory, struct failure *failure)
{
    assert(first >= 0 && first + layout->matrices <= task->batch);
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        if (i >= method_output_count(task->method) || task->outputs[i].offset_bytes < 0)
            continue;
        int64_t bytes = each_bytes(task, &task->method->outputs[i]);
        enum error error = put(result, task->outputs[i].offset_bytes + first * bytes,
                               memory + layout->outputs[i], layout->matrices * bytes, failure);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}
