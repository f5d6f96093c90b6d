/* proto/tensor.c: memory from the caller's space, and tensors brought to their place.
 *
 * Any thread. Cost: nothing where a tensor can stay where it lies; one copy where it is not
 * aligned; one blocked transposition where it is in Fortran order.
 */
#include "proto/proto_private.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/transpose.h"

enum error proto__take(struct proto_space *space, int64_t bytes, void **memory,
                       struct failure *failure)
{
    assert(bytes >= 0);
    void *taken = space->take(space, bytes > 0 ? bytes : 1);
    if (taken == NULL)
        return failure_set(failure, ERROR_FULL, "there is no room for %lld bytes at the moment",
                           (long long)bytes);
    *memory = taken;
    return ERROR_NONE;
}

bool proto__shape_count(int rank, const int64_t *shape, int64_t *count)
{
    int64_t product = 1;
    for (int i = 0; i < rank; i++) {
        if (!checked_mul(product, shape[i], &product))
            return false;
    }
    *count = product;
    return true;
}

/* Index (i0, ..., ik) lies at i0 + d0 (i1 + d1 (...)) in the source and at (... i0 d1 + i1) d2 ...
 * + ik in the target. The planes of first and last index are transposed one after the other. */
void proto__transpose(void *target, const unsigned char *source, int64_t element_bytes, int rank,
                      const int64_t *shape)
{
    int64_t source_strides[PROTO_RANK_MAX], target_strides[PROTO_RANK_MAX];
    int64_t index[PROTO_RANK_MAX] = {0};
    assert(rank >= 2 && rank <= PROTO_RANK_MAX);
    assert(element_bytes == 4 || element_bytes == 8);
    int64_t source_stride = element_bytes;
    int64_t target_stride = element_bytes;
    int64_t planes = 1;
    for (int i = 0; i < rank; i++) {
        int j = rank - 1 - i;
        source_strides[i] = source_stride;
        target_strides[j] = target_stride;
        bool fits = checked_mul(source_stride, shape[i], &source_stride) &&
                    checked_mul(target_stride, shape[j], &target_stride) &&
                    (i == 0 || i == rank - 1 || checked_mul(planes, shape[i], &planes));
        assert(fits); /* the array lies in memory */
    }
    struct transpose plane = {shape[0], shape[rank - 1], source_strides[rank - 1],
                              target_strides[0], element_bytes};
    for (int64_t done = 0; done < planes; done++) {
        int64_t source_at = 0, target_at = 0;
        for (int i = 1; i < rank - 1; i++) {
            source_at += index[i] * source_strides[i];
            target_at += index[i] * target_strides[i];
        }
        transpose_plane(&plane, (unsigned char *)target + target_at, source + source_at);
        for (int i = rank - 2; i > 0 && ++index[i] == shape[i]; i--)
            index[i] = 0;
    }
}

enum error proto__place(struct proto_space *space, unsigned char *source, enum precision precision,
                        bool fortran, struct proto_tensor *tensor, struct failure *failure)
{
    int64_t element_bytes = precision_bytes(precision);
    int64_t count, bytes;
    bool fits = proto__shape_count(tensor->rank, tensor->shape, &count) &&
                checked_mul(count, element_bytes, &bytes);
    assert(fits); /* proto__bind has seen it */
    bool reorder = fortran && tensor->rank > 1 && count > 0;
    if (count > 0 && !reorder && (uintptr_t)source % (uintptr_t)element_bytes == 0) {
        tensor->data = source;
        return ERROR_NONE;
    }
    enum error error = proto__take(space, bytes, &tensor->data, failure);
    if (error != ERROR_NONE)
        return error;
    if (reorder)
        proto__transpose(tensor->data, source, element_bytes, tensor->rank, tensor->shape);
    else if (bytes > 0)
        memcpy(tensor->data, source, (size_t)bytes);
    return ERROR_NONE;
}
