/* proto/proto_private.h: what the codecs share among themselves.
 *
 * A decode goes the same way in every format: read the shapes, bind them to the method's
 * descriptor (proto__bind), and only then take memory and bring the numbers to their place.
 * Threads: pure functions of their arguments.
 */
#ifndef PROTO_PROTO_PRIVATE_H
#define PROTO_PROTO_PRIVATE_H

#include <stddef.h>

#include "proto/proto.h"

#define PROTO_ELEMENTS_EMPTY_MAX 65536 /* matrices, or rows of them, where no numbers are sent */
#define PROTO_ALIGNMENT 64             /* of what a space gives */

/* ---- Words for messages; by value, so that they can stand in an argument list ---- */

struct proto__words {
    char text[112];
};
struct proto__words proto__shape_words(int rank, const int64_t *shape); /* "[2,3,3]" */
/* A client's text made harmless: printable ASCII, cut to 40 bytes. */
struct proto__words proto__safe_words(const char *text, size_t length);
/* The same for NumPy's name of a type, where < and > give the order of the bytes. */
struct proto__words proto__dtype_words(const char *text, size_t length);
struct proto__words proto__lower_words(const char *name);
/* "A, V0 (optional)", as the v2 protocol writes names, or in lower case. Where every input is
 * optional, as some go together, nothing is said of that. */
struct proto__words proto__input_words(const struct method *method, bool lower);
struct proto__words proto__output_words(const struct method *method, bool lower);
/* "[n,n]", with `[batch` in front of it for one lead dimension, `[...` for any number. */
struct proto__words proto__dims_words(const struct method *method,
                                      const struct method_tensor *tensor, int lead_rank);
/* "[1], [n] or [n,n]": the shapes of the input that methods have by this name; "" for none. */
struct proto__words proto__input_shapes_words(const char *name);
/* ", which goes with method tridiagonal": the methods that have an input or an option of this name;
 * "" for none. */
struct proto__words proto__takers_words(const char *name);

bool proto__equals_ignoring_case(const char *name, const char *text, size_t length);

/* ---- Memory and tensors ---- */

/* FULL when there is no room. Zero bytes give a valid pointer too. */
ERROR_MUST_CHECK enum error proto__take(struct proto_space *space, int64_t bytes, void **memory,
                                        struct failure *failure);
/* The product of the dimensions; false on overflow. */
ERROR_MUST_CHECK bool proto__shape_count(int rank, const int64_t *shape, int64_t *count);
/* Brings a tensor that lies at source to its place: there when it is aligned and in C order, else
 * into memory from the space. */
ERROR_MUST_CHECK enum error proto__place(struct proto_space *space, unsigned char *source,
                                         enum precision precision, bool fortran,
                                         struct proto_tensor *tensor, struct failure *failure);
/* Rewrites an array of this shape from Fortran to C order. target and source do not overlap;
 * source need not be aligned. */
void proto__transpose(void *target, const unsigned char *source, int64_t element_bytes, int rank,
                      const int64_t *shape);

/* ---- Binding shapes to a descriptor ---- */

#define PROTO_LEAD_ANY (-1)
#define PROTO_LEAD_BATCH (-2) /* one or more */
/* Sets n, m, batch and lead from the rank and shape of the inputs in `present` (a bit each), and
 * checks everything that descriptor and limits ask of them. lead_rank: how many dimensions must
 * stand before a matrix's own, or PROTO_LEAD_ANY, or PROTO_LEAD_BATCH. */
ERROR_MUST_CHECK enum error proto__bind(struct proto_request *request, uint32_t present,
                                        int lead_rank, struct failure *failure);
/* Do these inputs go together? present: a bit for each, at the first place of its name. */
ERROR_MUST_CHECK enum error proto__check_inputs(const struct method *method, uint32_t present,
                                                struct failure *failure);
/* Which shape the input at `place` has, the first of its name, next to those in `present`; lead, n
 * and m are known. request->shapes[place] says how far behind `place` it belongs. n_from: the
 * input that gave n, for messages. */
ERROR_MUST_CHECK enum error proto__choose_shape(struct proto_request *request, uint32_t present,
                                                int place, const char *n_from,
                                                struct failure *failure);
/* Moves every input to the place of its shape: the end of a decode. */
void proto__settle_inputs(struct proto_request *request);
/* The client's word for an input that is there: its name, as a rule. */
const char *proto__called(const struct method_tensor *tensor, const struct proto_tensor *input);
/* The input that an array without a name stands for: the only one that must be there, or A where
 * none must; -1 when the method needs several. */
int proto__sole_input(const struct method *method);

/* ---- Options ---- */

void proto__set_method(struct proto_request *request, const struct method *method);

enum proto__scope {
    PROTO_SCOPE_V1 = 1,
    PROTO_SCOPE_V2 = 2
};
/* What an option is answered with whose value in JSON is of a kind that no option has, or not this
 * one. value: the kind in words, "a list". */
ERROR_MUST_CHECK enum error proto__refuse_option(const struct proto_request *request,
                                                 enum proto__scope scope, const char *name,
                                                 const char *value, struct failure *failure);
ERROR_MUST_CHECK enum error proto__set_option(struct proto_request *request,
                                              enum proto__scope scope, const char *name,
                                              const char *value, struct failure *failure);
/* Adds one output by its name; in v2 as the metadata spell it, elsewhere in any case. */
ERROR_MUST_CHECK enum error proto__add_output(struct proto_request *request, const char *name,
                                              size_t length, bool binary, struct failure *failure);
/* When none was named: the method's defaults. */
void proto__default_outputs(struct proto_request *request, bool binary);

/* ---- Answers ---- */

struct proto__shape {
    int rank;
    int64_t dims[PROTO_RANK_MAX + METHOD_RANK_MAX];
    int64_t count; /* elements */
};
/* The shape of an output's whole tensor: lead, then the matrix's own. */
struct proto__shape proto__output_shape(const struct proto_request *request,
                                        const struct method_tensor *tensor);
int64_t proto__output_bytes(const struct proto_request *request,
                            const struct method_tensor *tensor);
/* An output's data; NULL only where it has no elements. */
const void *proto__output_data(const struct proto_request *request,
                               void *const outputs[METHOD_OUTPUTS_MAX], int index);
/* How the v2 protocol names an output's kind of number: "FP64", "INT32", "BYTES". */
const char *proto__datatype(const struct method_tensor *tensor, enum precision precision);
size_t proto__algorithm_name_max(void); /* bytes of the longest algorithm name */

/* Writes into memory whose size was computed before; writing past its end is a bug. */
struct proto__writer {
    char *start, *at, *end;
};
void proto__write(struct proto__writer *writer, const void *data, size_t length);
void proto__write_text(struct proto__writer *writer, const char *string);
void proto__write_lower(struct proto__writer *writer, const char *name);
void proto__write_int(struct proto__writer *writer, int64_t value);
/* A string as JSON, with its quotes; at most 6 bytes a byte, and 2. One byte more must be there. */
void proto__write_json_string(struct proto__writer *writer, const char *string);
/* count values of an output as JSON, separated by commas, from data[first] on. */
void proto__write_values(struct proto__writer *writer, const struct method_tensor *tensor,
                         enum precision precision, const void *data, int64_t first, int64_t count);
/* The same bound to the byte: of one value and its comma. */
int64_t proto__value_text_max(const struct method_tensor *tensor, enum precision precision);

void proto__answer_init(struct proto_answer *answer, const char *content_type);
void proto__answer_add(struct proto_answer *answer, const void *data, int64_t bytes);

/* Bounds of the encoders, one each; -1 on overflow. */
int64_t proto__v2_bound(const struct proto_request *request);
int64_t proto__json_bound(const struct proto_request *request);
int64_t proto__npz_bound(const struct proto_request *request);

/* ---- v2 ---- */

/* How many bytes of binary tensors follow this JSON; for proto_inflate. */
ERROR_MUST_CHECK enum error proto__v2_binary_bytes(const char *json, int64_t length, int64_t *bytes,
                                                   struct failure *failure);

/* ---- NPY ---- */

#define PROTO_NPY_HEADER_MAX 8192 /* bytes before the data */

struct proto__npy {
    enum precision precision;
    bool fortran;
    int rank;
    int64_t shape[PROTO_RANK_MAX];
    int64_t data_offset, data_bytes;
};
/* Reads the header of an array from its first bytes; they hold all of the header, or all of the
 * array. */
ERROR_MUST_CHECK enum error proto__npy_read(const unsigned char *bytes, int64_t length,
                                            struct proto__npy *npy, struct failure *failure);
/* Writes a version 1.0 header for an output; at most PROTO_NPY_HEAD_MAX bytes. */
void proto__npy_write(struct proto__writer *writer, const struct method_tensor *tensor,
                      enum precision precision, const struct proto__shape *shape);
/* The names of algorithms as NumPy's fixed-width unicode; proto__algorithm_array_bytes long. */
void proto__write_algorithm_array(struct proto__writer *writer, const int32_t *algorithms,
                                  int64_t count);
int64_t proto__algorithm_array_bytes(int64_t count); /* -1 on overflow */

#endif
