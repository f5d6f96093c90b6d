/* server/engines/choice.h: which engines --engine asks for.
 *
 *   auto                the host, and CUDA on every device that answers
 *   host                the host alone
 *   cuda                the same as auto, but CUDA device 0 must answer at the start
 *   cuda:0,2            the host, and CUDA on these devices, which must answer at the start
 *   ...+host            as before, and the host helps with what CUDA takes
 *
 * Threads: pure.
 */
#ifndef SERVER_ENGINES_CHOICE_H
#define SERVER_ENGINES_CHOICE_H

#include <stdbool.h>

#include "base/error.h"
#include "gpu/engine.h"

struct engine_choice {
    bool cuda;                        /* start CUDA engines at all */
    bool must;                        /* those in `devices` have to answer at the start */
    bool all;                         /* of the others, every one that answers too */
    bool shared;                      /* the host helps */
    bool devices[ENGINE_DEVICES_MAX]; /* started first */
};

/* BAD_OPTION: the failure says what is allowed. */
ERROR_MUST_CHECK enum error engine_choice_parse(const char *text, struct engine_choice *choice,
                                                struct failure *failure);

#endif
