/* client/format.h: the formats of files, one table row each. Any thread. */
#ifndef CLIENT_FORMAT_H
#define CLIENT_FORMAT_H

#include <stdbool.h>

/* X(code, name, what a file's name ends in, media type). Without a type the server does not know
 * it: it is converted here, from and to NPY. */
#define FORMAT_TABLE(X)                                                                            \
    X(NPY, "npy", ".npy", "application/x-npy")                                                     \
    X(NPZ, "npz", ".npz", "application/x-npz")                                                     \
    X(JSON, "json", ".json", "application/json")                                                   \
    X(MATRIX_MARKET, "mtx", ".mtx", NULL)                                                          \
    X(CSV, "csv", ".csv", NULL)

#define FORMAT_NAMES "npy, npz, json, mtx or csv"

enum format {
    FORMAT_UNKNOWN, /* the server looks at the first bytes */
#define FORMAT_ENUM(code, name, ending, type) FORMAT_##code,
    FORMAT_TABLE(FORMAT_ENUM)
#undef FORMAT_ENUM
};

/* By the ending, in any case. */
enum format format_of_path(const char *path);
enum format format_of_name(const char *name);
/* Of what travels: NPY's for a format that is converted; NULL: unknown. */
const char *format_media_type(enum format format);
bool format_is_converted(enum format format);

#endif
