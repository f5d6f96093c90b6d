/* tests/fuzz/fuzz_options.c: options by name and value, and the coding headers.
 *
 * The first byte chooses the method; then come lines of `name=value`. A line without "=" is read as
 * Content-Encoding and as Accept-Encoding.
 */
#include "tests/fuzz/codec.h"

#include <stdlib.h>
#include <string.h>

#include "proto/coding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_line(struct proto_request *request, char *line)
{
    struct failure failure = {0};
    char *value = strchr(line, '=');
    if (value != NULL) {
        *value++ = '\0';
        enum error error = proto_request_option(request, line, value, &failure);
        FUZZ_CHECK(error == ERROR_NONE || failure.code == ERROR_BAD_OPTION);
        return;
    }
    enum proto_coding coding;
    enum error error = proto_coding_parse(line, &coding, &failure);
    FUZZ_CHECK(error == ERROR_NONE || coding == PROTO_CODING_IDENTITY);
    FUZZ_CHECK(proto_coding_name(proto_coding_accepted(line)) != NULL);
}

/* What fits an order lies within it. */
static void check_ranges(struct proto_request *request, int64_t n)
{
    struct failure failure = {0};
    const struct method *method = request->method;
    request->n = n;
    request->batch = 1;
    if (proto_request_fit(request, &failure) != ERROR_NONE) {
        FUZZ_CHECK(failure.code == ERROR_BAD_OPTION || failure.code == ERROR_BAD_SHAPE);
        return;
    }
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++) {
        struct method_range range = method_range_unpack(request->options[i], n);
        FUZZ_CHECK(method->options[i].kind != METHOD_OPTION_RANGE ||
                   (range.first >= 0 && range.first < range.end && range.end <= n));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_request request;
    if (size == 0)
        return 0;
    char *text = malloc(size);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    proto_request_init(&request, PROTO_FORMAT_NPY, fuzz_method(data[0]));
    for (char *line = text; line != NULL;) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        read_line(&request, line);
        line = next;
    }
    check_ranges(&request, 1 + data[0]);
    FUZZ_CHECK(request.output_count >= 0 &&
               request.output_count <= method_output_count(request.method));
    free(text);
    return 0;
}
