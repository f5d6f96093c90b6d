/* handlers/inference/survey.h: what INFO, RCOND and METHOD say over all matrices of a request.
 *
 * Threads: pure functions of their arguments; any thread.
 * Cost: one pass over each of these outputs, which have one number a matrix.
 */
#ifndef HANDLERS_INFERENCE_SURVEY_H
#define HANDLERS_INFERENCE_SURVEY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

#define SURVEY_BAD_MAX 100 /* indices a survey keeps */

/* What INFO says of a matrix. X(id, label `info` of invertd_inversions_total, help) */
#define SURVEY_INFO_TABLE(X)                                                                       \
    X(GOOD, "good", "INFO 0")                                                                      \
    X(SINGULAR, "singular", "INFO 1 to n: no inverse")                                             \
    X(ILL_CONDITIONED, "ill_conditioned",                                                          \
      "INFO n+1: singular to working precision, or the inverse overflows")                         \
    X(NOT_CONVERGED, "not_converged", "INFO n+2: the iteration did not converge")                  \
    X(NONFINITE, "nonfinite", "INFO -1: a NaN or an infinity in the input, or A0 + X Y^T overflows")

enum survey_info {
#define SURVEY_INFO_ENUM(id, label, help) SURVEY_##id,
    SURVEY_INFO_TABLE(SURVEY_INFO_ENUM)
#undef SURVEY_INFO_ENUM
    SURVEY_INFOS
};

#define SURVEY_DECADES 19 /* of RCOND: from 0.1 on, from 0.01 on, ...; the last: below 1e-18 */

/* Residuals are of two kinds, which cannot be compared. */
enum survey_residual {
    SURVEY_RESIDUAL_NORM,   /* RESIDUAL: |I - X A| */
    SURVEY_RESIDUAL_SCALED, /* RESIDUAL_LEFT and _RIGHT: over n |A| |X| eps */
    SURVEY_RESIDUALS
};

struct survey {
    int64_t infos[SURVEY_INFOS];        /* matrices, by kind */
    int64_t rconds[SURVEY_DECADES];     /* and by RCOND, where that is a number */
    int64_t measured[SURVEY_RESIDUALS]; /* and those whose residual was asked for */
    double residuals[SURVEY_RESIDUALS]; /* the largest of them; 0: none */
    int64_t failed;                     /* those with another INFO than 0 and n+1 */
    int bad_count;
    struct {
        int64_t index;
        int32_t info;
    } bad[SURVEY_BAD_MAX]; /* the first of the failed */
    /* From here on set by survey_make alone. */
    double rcond;        /* the smallest; NaN when none is a number */
    int algorithm;       /* the one of all matrices, or METHOD_ALGORITHM_COUNT: several */
    int64_t unconverged; /* the first matrix with INFO n+2, valid when there is one; and its: */
    int32_t iterations;  /* ITERATIONS; -1: not an output */
    double residual;     /* RESIDUAL; NaN: not an output */
};

/* outputs: one for each of the method's, as the encoders take them. INFO, RCOND and METHOD are
 * there where the method has them and batch is not 0. */

/* Counts by INFO and RCOND, and residuals: all that metrics need. */
void handlers__survey_count(const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX], struct survey *survey);
/* The same, and everything else. */
void handlers__survey_make(const struct proto_request *request,
                           void *const outputs[METHOD_OUTPUTS_MAX], struct survey *survey);
/* explain.c: says which matrices failed, why the first did, and what may help. Some have failed. */
void handlers__survey_explain(const struct proto_request *request, const struct survey *survey,
                              char *text, size_t size);

#endif
