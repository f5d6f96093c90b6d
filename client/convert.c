/* client/convert.c: see convert.h. */
#include "client/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/matrix.h"

/* The rest of the body with a NUL behind it; NULL: errno. */
static char *read_text(struct files_input *input)
{
    char *text = malloc((size_t)input->size + 1);
    int64_t at = 0;
    while (text != NULL && at < input->size) {
        ssize_t count = pread(input->fd, text + at, (size_t)(input->size - at), input->start + at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            errno = count < 0 ? errno : EIO;
            free(text);
            return NULL;
        }
        at += count;
    }
    if (text != NULL)
        text[at] = '\0';
    return text;
}

static enum error fail(struct failure *failure, const char *what, const char *path, int number)
{
    return failure_set(failure, ERROR_BAD_OPTION, "cannot %s %.200s: %s", what, path,
                       strerror(number));
}

static enum error read_matrix(const struct arguments *arguments, struct files_input *input,
                              struct matrix *matrix, struct failure *failure)
{
    struct lexer lexer;
    if (input->size > CONVERT_BYTES_MAX)
        return failure_set(failure, ERROR_TOO_LARGE, "%.200s is larger than 4 GiB; send it as .npy",
                           arguments->input);
    char *text = read_text(input);
    if (text == NULL)
        return fail(failure, "read", arguments->input, errno);
    lexer_begin(&lexer, text, (size_t)input->size, arguments->input, failure);
    enum error error = arguments->input_format == FORMAT_CSV
                           ? csv_read(&lexer, CONVERT_BYTES_MAX, matrix)
                           : matrix_market_read(&lexer, CONVERT_BYTES_MAX, matrix);
    free(text);
    return error;
}

/* The text in input becomes the NPY in input. */
static enum error to_npy(const struct arguments *arguments, struct files_input *input,
                         struct failure *failure)
{
    struct matrix matrix = {0};
    struct files_output npy = {.fd = -1};
    enum error error = read_matrix(arguments, input, &matrix, failure);
    if (error == ERROR_NONE)
        error = files_open_nameless(&npy, failure);
    int number = error == ERROR_NONE ? npy_write(&matrix, &npy) : 0;
    if (number != 0)
        error = fail(failure, "make a temporary copy of", arguments->input, number);
    if (error == ERROR_NONE) {
        files_close_input(input);
        files_read_back(&npy, input);
    }
    files_close_output(&npy);
    matrix_free(&matrix);
    return error;
}

enum error convert_open_input(const struct arguments *arguments, struct files_input *input,
                              struct failure *failure)
{
    enum error error = files_open_input(input, arguments->input, failure);
    if (error != ERROR_NONE || !format_is_converted(arguments->input_format))
        return error;
    return to_npy(arguments, input, failure);
}

enum error convert_open_output(const struct arguments *arguments, struct convert_output *output,
                               struct failure *failure)
{
    bool converts = format_is_converted(arguments->output_format);
    *output = (struct convert_output){.file.fd = -1, .npy.fd = -1};
    output->receives = converts ? &output->npy : &output->file;
    enum error error = files_open_output(&output->file, arguments->output, failure);
    if (error == ERROR_NONE && converts)
        error = files_open_nameless(&output->npy, failure);
    return error;
}

/* The answer in output->npy becomes the text in output->file. */
static enum error from_npy(const struct arguments *arguments, struct convert_output *output,
                           struct failure *failure)
{
    struct files_input npy;
    struct matrix matrix;
    files_read_back(&output->npy, &npy);
    enum error error = npy_read(&npy, CONVERT_BYTES_MAX, &matrix, failure);
    int number = 0;
    if (error == ERROR_NONE)
        number = arguments->output_format == FORMAT_CSV
                     ? csv_write(&matrix, &output->file)
                     : matrix_market_write(&matrix, &output->file);
    if (number != 0)
        error = fail(failure, "write", arguments->output, number);
    matrix_free(&matrix);
    files_close_input(&npy);
    return error;
}

enum error convert_commit(const struct arguments *arguments, struct convert_output *output,
                          struct failure *failure)
{
    enum error error = ERROR_NONE;
    if (output->receives == &output->npy)
        error = from_npy(arguments, output, failure);
    return error == ERROR_NONE ? files_commit(&output->file, failure) : error;
}

void convert_close_output(struct convert_output *output)
{
    files_close_output(&output->file);
    files_close_output(&output->npy);
}
