/* handlers/openapi.h: docs/openapi.yaml, made part of the program by the Makefile. Constant. */
#ifndef HANDLERS_OPENAPI_H
#define HANDLERS_OPENAPI_H

#include <stddef.h>

extern const unsigned char openapi_yaml[];
extern const size_t openapi_yaml_bytes;

#endif
