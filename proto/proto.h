/* proto/proto.h: codecs. Bytes in, tensors out; tensors in, bytes out. No sockets, no queue.
 *
 * A decoder reads a whole body (in the arena) and describes one inference in a
 * `struct proto_request`. Tensors are used where they lie in the body when they are aligned to
 * their element, little-endian, C-ordered and of the right precision; otherwise they are converted
 * into memory taken from the caller's `struct proto_space`. An encoder makes an answer's segments
 * from the outputs, again without copying what needs no conversion.
 *
 * Threads: pure functions of their arguments; any thread. Those that run longer than a few
 * microseconds (see proto_request_is_long, proto_answer_is_long) belong in the work pool.
 * Memory: everything larger than the skeleton of a JSON header (at most PROTO_SKELETON_MAX) is
 * taken from the space; a failed decode leaves it to the caller to give the space back. Hostile
 * input: every size is checked before memory is taken; recursion is bounded; a decoder reads no
 * byte outside its body.
 */
#ifndef PROTO_PROTO_H
#define PROTO_PROTO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/text.h"
#include "gpu/method.h"

#define PROTO_RANK_MAX 16            /* dimensions of a posted array, batch included */
#define PROTO_ID_MAX 256             /* bytes of a v2 request id */
#define PROTO_SKELETON_MAX (1 << 20) /* bytes of JSON once its number arrays are lifted out */
#define PROTO_DEPTH_MAX 32           /* nesting of JSON */
#define PROTO_SEGMENTS_MAX (2 + 3 * METHOD_OUTPUTS_MAX)

/* Where codecs take memory from. */
struct proto_space {
    /* 64-byte aligned, contents undefined; NULL when there is no room (the caller says FULL). */
    void *(*take)(struct proto_space *self, int64_t bytes);
};

enum proto_format {
    PROTO_FORMAT_V2,  /* JSON, with or without binary tensors behind it */
    PROTO_FORMAT_RAW, /* v2 with Inference-Header-Content-Length: 0 */
    PROTO_FORMAT_NPY,
    PROTO_FORMAT_NPZ,
    PROTO_FORMAT_JSON, /* /v1 */
    PROTO_FORMAT_UNKNOWN
};

struct proto_tensor {
    void *data; /* dense, row-major, aligned to its element; NULL when the tensor is absent */
    int rank;   /* as posted */
    int64_t shape[PROTO_RANK_MAX];
    const char *called; /* the client's word for it, "matrix"; NULL: the input's name. Constant */
};

struct proto_output {
    int index;   /* in method->outputs */
    bool binary; /* v2: raw bytes behind the JSON */
};

/* One inference, as asked for. */
struct proto_request {
    enum proto_format format;
    const struct method *method;
    enum precision precision;
    int64_t batch, n, m; /* any may be 0; batch is the product of lead */
    int lead_rank;       /* dimensions before the matrix's own, as posted; 0: one matrix */
    int64_t lead[PROTO_RANK_MAX];
    struct proto_tensor inputs[METHOD_INPUTS_MAX]; /* in the descriptor's order */
    int64_t options[METHOD_OPTIONS_MAX];           /* defaults filled in */
    uint32_t options_set;                          /* bit i: options[i] was named */
    uint32_t request_options_set;  /* private to the codecs: the same for those below */
    int shapes[METHOD_INPUTS_MAX]; /* private to the codecs: see proto__choose_shape */
    struct proto_output outputs[METHOD_OUTPUTS_MAX]; /* in the order asked for */
    int output_count;                                /* after decoding never 0 */
    int priority;                                    /* 0: 2; 1 highest, from 3 on lowest */
    int64_t timeout_us;                              /* 0: the service's own */
    bool nan_on_singular;                            /* on_singular=nan (/v1) */
    bool want_npz;             /* /v1: set by the handler from Accept and format before encoding */
    char id[PROTO_ID_MAX + 1]; /* v2; "" when absent */
    bool has_id;
    int64_t inflated_max; /* bytes of all arrays of an NPZ; set before decoding; 0: no limit */
};

/* An answer's body. Segments point into outputs, into the space, or into `head`. */
struct proto_answer {
    const char *content_type;
    int64_t json_bytes; /* v2 binary: the value of Inference-Header-Content-Length; -1: none */
    struct iovec segments[PROTO_SEGMENTS_MAX];
    int segment_count;
    int64_t total_bytes;
};

/* Zeroes the request and fills in format, method (may be NULL: /v1 JSON names it) and defaults. */
void proto_request_init(struct proto_request *request, enum proto_format format,
                        const struct method *method);

/* ---- Options and outputs, from a query string or a v1 JSON body. method must be set. ----
 * Knows the method's own options and the request's: outputs (comma-separated names), on_singular
 * (error, nan), priority, timeout (microseconds). BAD_OPTION names the option, the value and what
 * is allowed, also when the option was set before with the same request (query and body, or twice).
 */
ERROR_MUST_CHECK enum error proto_request_option(struct proto_request *request, const char *name,
                                                 const char *value, struct failure *failure);
/* What stands where /v2 has no options, in the query or next to "inputs": BAD_OPTION where it is
 * the name of an option, lest it is lost; anything else is the protocol's business. */
ERROR_MUST_CHECK enum error proto_request_stray(const struct proto_request *request,
                                                const char *name, struct failure *failure);

/* Do the options fit the shapes? Decoders see to the options that were set before; call it when one
 * was set after decoding. BAD_OPTION: a range that reaches beyond the order; BAD_SHAPE: an output
 * whose size overflows. */
ERROR_MUST_CHECK enum error proto_request_fit(struct proto_request *request,
                                              struct failure *failure);

/* ---- Decoders. body is aligned as the arena gave it and may be overwritten by the decoder. ----
 */

/* v2. json_bytes: the header Inference-Header-Content-Length, or -1 when absent (all JSON). */
ERROR_MUST_CHECK enum error proto_v2_decode(unsigned char *body, int64_t length, int64_t json_bytes,
                                            struct proto_space *space,
                                            struct proto_request *request, struct failure *failure);
/* One square FP64 `A` of the raw request. */
ERROR_MUST_CHECK enum error proto_raw_decode(unsigned char *body, int64_t length,
                                             struct proto_space *space,
                                             struct proto_request *request,
                                             struct failure *failure);
ERROR_MUST_CHECK enum error proto_npy_decode(unsigned char *body, int64_t length,
                                             struct proto_space *space,
                                             struct proto_request *request,
                                             struct failure *failure);
/* Where the numbers of an .npy lie, for one whose bytes are not all there. */
struct proto_npy_place {
    int input;                       /* of the method's, that they are */
    int64_t data_offset, data_bytes; /* in the file */
    bool column_major;               /* one matrix in Fortran order */
};
/* How many bytes the head of an .npy has that begins so; 0: that cannot be said yet. Those of no
 * .npy have a head as well: proto_npy_head says what is wrong. */
int64_t proto_npy_head_bytes(const unsigned char *bytes, int64_t length);
/* proto_npy_decode of the head alone, which is there: all but the numbers, file_bytes being how
 * many bytes the file has. Tensors get no data. BAD_SHAPE for a stack in Fortran order, whose
 * matrices do not lie one after the other. */
ERROR_MUST_CHECK enum error proto_npy_head(const unsigned char *bytes, int64_t length,
                                           int64_t file_bytes, struct proto_request *request,
                                           struct proto_npy_place *place, struct failure *failure);
/* TOO_LARGE, before memory is taken, when the arrays are larger than request->inflated_max. */
ERROR_MUST_CHECK enum error proto_npz_decode(unsigned char *body, int64_t length,
                                             struct proto_space *space,
                                             struct proto_request *request,
                                             struct failure *failure);
/* /v1 JSON. May set request->method ("method"); else it stays, or becomes `auto` when NULL. */
ERROR_MUST_CHECK enum error proto_json_decode(unsigned char *body, int64_t length,
                                              struct proto_space *space,
                                              struct proto_request *request,
                                              struct failure *failure);
/* Says that no method has this name, and which there are. Returns code. */
enum error proto_no_method(enum error code, const char *name, size_t length,
                           struct failure *failure);
/* The format of a /v1 body by its first bytes: \x93NUMPY, PK\3\4 or PK\5\6, { or [ (white space
 * before it is tolerated; the decoder says how to wrap a bare array). */
enum proto_format proto_sniff(const unsigned char *body, int64_t length);
/* Turns the byte order mark that some editors write before UTF-8 text into white space; raw bytes
 * are no text. */
void proto_blank_mark(enum proto_format format, unsigned char *body, int64_t length);
/* MALFORMED for a /v1 body that begins as another format than this one, which its Content-Type
 * named; says what it looks like, and how to send it. */
ERROR_MUST_CHECK enum error proto_check_format(enum proto_format format, const unsigned char *body,
                                               int64_t length, struct failure *failure);
/* Whether decoding this body takes long enough to need the work pool: JSON text or checksums over
 * more than 16 KiB, or more than 1 MiB to copy or to transpose. Looks at the NPY header only. */
bool proto_request_is_long(enum proto_format format, const unsigned char *body, int64_t length,
                           int64_t json_bytes);

/* ---- Encoders. outputs[i] is method->outputs[i]'s data (dense; ALGORITHM and INT32 as int32_t),
 * NULL for those not wanted, and for those without elements if you like. space must give
 * proto_answer_bound() bytes in one or more takes. ---- */

/* An upper bound of the bytes an encoder takes from its space; -1 on overflow. For V2 and RAW
 * requests the bound is proto_v2_encode's; for JSON proto_json_encode's, or with want_npz
 * proto_npz_encode's; for NPY and NPZ proto_npz_encode's, which covers proto_npy_encode. A
 * caller that answers in another family sets request->format to it first. */
int64_t proto_answer_bound(const struct proto_request *request);
ERROR_MUST_CHECK enum error proto_v2_encode(const struct proto_request *request,
                                            void *const outputs[METHOD_OUTPUTS_MAX],
                                            struct proto_space *space, struct proto_answer *answer,
                                            struct failure *failure);
ERROR_MUST_CHECK enum error proto_npy_encode(const struct proto_request *request,
                                             void *const outputs[METHOD_OUTPUTS_MAX],
                                             struct proto_space *space, struct proto_answer *answer,
                                             struct failure *failure);
ERROR_MUST_CHECK enum error proto_npz_encode(const struct proto_request *request,
                                             void *const outputs[METHOD_OUTPUTS_MAX],
                                             struct proto_space *space, struct proto_answer *answer,
                                             struct failure *failure);
ERROR_MUST_CHECK enum error proto_json_encode(const struct proto_request *request,
                                              void *const outputs[METHOD_OUTPUTS_MAX],
                                              struct proto_space *space,
                                              struct proto_answer *answer, struct failure *failure);

/* The head of the .npy that proto_npy_encode makes of an output of numbers, whose data follow it;
 * returns its bytes, a multiple of 64. */
#define PROTO_NPY_HEAD_MAX 640
int64_t proto_npy_answer_head(const struct proto_request *request, char head[PROTO_NPY_HEAD_MAX]);
/* Bytes of the output that proto_npy_encode encodes, as it lies in memory. */
int64_t proto_npy_answer_bytes(const struct proto_request *request);
/* Whether it is converted, and so is no part of the answer as it lies there. */
bool proto_npy_answer_is_text(const struct proto_request *request);

/* Whether encoding this answer takes long enough to need the work pool: JSON text or a checksum
 * over more than 16 KiB. */
bool proto_answer_is_long(const struct proto_request *request);

/* ---- v2 documents about a method: metadata and configuration, from its descriptor ---- */
void proto_v2_metadata(const struct method *method, struct text *json);
void proto_v2_config(const struct method *method, struct text *json);
/* The methods document of GET /v1/methods: all of the registry. */
void proto_methods_document(struct text *json);

#endif
