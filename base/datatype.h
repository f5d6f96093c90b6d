/* base/datatype.h: the kinds of number that travel between client, front and engine. */
#ifndef BASE_DATATYPE_H
#define BASE_DATATYPE_H

#include <stdint.h>

/* The precision of a matrix and of its answer. The values are part of the engine contract. */
enum precision {
    PRECISION_FP32 = 0,
    PRECISION_FP64 = 1,
    PRECISION_COUNT
};

static inline int64_t precision_bytes(enum precision precision)
{
    return precision == PRECISION_FP32 ? 4 : 8;
}

/* "FP32" or "FP64", as the Open Inference Protocol names them. */
static inline const char *precision_name(enum precision precision)
{
    return precision == PRECISION_FP32 ? "FP32" : "FP64";
}

#endif
