/* handlers/accept.h: Accept, for the formats of /v1's answers. Pure. */
#ifndef HANDLERS_ACCEPT_H
#define HANDLERS_ACCEPT_H

#include <stdbool.h>

#include "proto/proto.h"

/* *format holds the natural format of the answer (NPY, NPZ or JSON) and becomes the one that the
 * Accept header (NULL: anything) likes best; the natural one among equals. False when it allows
 * none. */
bool handlers__accept_format(const char *accept, enum proto_format *format);

#endif
