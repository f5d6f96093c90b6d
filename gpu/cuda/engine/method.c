/* gpu/cuda/engine/method.c: the rows of all methods that gpu/cuda has any for, in the order of
 * their names: see base/method.h.
 *
 * The list is what the sources define (build/gen, made by the Makefile).
 */
#include "gpu/cuda/base/method.h"

#include <stddef.h>

static const struct {
    const struct method *method;
    const struct cuda_method *rows;
} table[] = {
#define METHOD(name) {&method_##name, cuda_method_##name},
#include "cuda_method_list.inc"
#undef METHOD
};

#define METHODS (sizeof table / sizeof table[0])

size_t cuda_method_bytes_min(const struct cuda_method *method, const struct cuda_call *call)
{
    size_t work = method->workspace ? method->workspace(call, 1) : 0;
    size_t recovery = method->recover_workspace ? method->recover_workspace(call, 1) : 0;
    return work > recovery ? work : recovery;
}

const struct cuda_method *cuda_method_row(int row)
{
    for (size_t i = 0; i < METHODS; i++) {
        for (const struct cuda_method *of = table[i].rows; of->name; of++) {
            if (row-- == 0)
                return of;
        }
    }
    return NULL;
}

/* The rows of method_at(index): none, where there is no such method. */
static const struct cuda_method *rows_of(uint32_t index)
{
    static const struct cuda_method none[] = {{0}};
    for (size_t i = 0; i < METHODS; i++) {
        if (index < (uint32_t)method_count() && table[i].method == method_at((int)index))
            return table[i].rows;
    }
    return none;
}

const struct cuda_method *cuda_method_find(uint32_t index, enum precision precision, int64_t n)
{
    for (const struct cuda_method *row = rows_of(index); row->name; row++) {
        if (n >= row->n_min && n <= row->n_max[precision])
            return row;
    }
    return NULL;
}

int64_t cuda_method_n_max(uint32_t index, enum precision precision)
{
    int64_t n_max = 0;
    for (const struct cuda_method *row = rows_of(index); row->name; row++)
        n_max = row->n_max[precision] > n_max ? row->n_max[precision] : n_max;
    return n_max;
}
