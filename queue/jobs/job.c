/* queue/jobs/job.c: ids, states, and tasks as bytes.
 *
 * A task in bytes, numbers little-endian, a text with its length in one byte before it:
 *
 *     u8 version, 1
 *     text method, u8 precision (enum precision), u8 flags (1: nan_on_singular), u8 priority
 *     i64 batch, n, m, body_bytes, result_bytes
 *     u8 count, options by name: text, i64 value
 *     u8 count, inputs in the descriptor's order: i64 offset_bytes, u8 column_major
 *     u8 count, outputs in the descriptor's order: i64 offset_bytes
 *
 * Options go by name, so that a method may get more of them; tensors by their place, and a method
 * whose tensors are others than those of the task's day does not read it.
 *
 * Threads: plain data. Cost: no allocation.
 */
#include "queue/jobs/job.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"

#define TASK_VERSION 1
#define TASK_NAN_ON_SINGULAR 1

/* ---- Ids ---- */

enum error job_id_make(struct job_id *id, struct failure *failure)
{
    ssize_t got;
    do
        got = getrandom(id->bytes, sizeof id->bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof id->bytes)
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "The system gives no random numbers.");
}

void job_id_write(const struct job_id *id, char text[JOB_ID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < JOB_ID_BYTES; i++) {
        text[2 * i] = digits[id->bytes[i] >> 4];
        text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text[JOB_ID_TEXT - 1] = '\0';
}

static int digit_of(char text)
{
    if (text >= '0' && text <= '9')
        return text - '0';
    return text >= 'a' && text <= 'f' ? text - 'a' + 10 : -1;
}

bool job_id_read(const char *text, size_t length, struct job_id *id)
{
    if (length != JOB_ID_TEXT - 1)
        return false;
    for (int i = 0; i < JOB_ID_BYTES; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* ---- States ---- */

#define BIT(state) (1U << JOB_##state)

/* From each state, to which. */
static const unsigned moves[JOB_STATES] = {
    [JOB_ACCEPTED] = BIT(RUNNING) | BIT(DISMISSED),
    [JOB_RUNNING] = BIT(RUNNING) | BIT(ACCEPTED) | BIT(SUCCESSFUL) | BIT(FAILED) | BIT(DISMISSED),
    [JOB_SUCCESSFUL] = BIT(DISMISSED),
    [JOB_FAILED] = BIT(DISMISSED),
    [JOB_DISMISSED] = 0,
};

static const char *const state_names[JOB_STATES] = {
#define STATE_NAME(state, name) [JOB_##state] = (name),
    JOB_STATE_TABLE(STATE_NAME)
#undef STATE_NAME
};

bool job_may_move(enum job_state from, enum job_state to)
{
    assert((unsigned)from < JOB_STATES && (unsigned)to < JOB_STATES);
    return (moves[from] >> to & 1) != 0;
}

bool job_is_over(enum job_state state)
{
    assert((unsigned)state < JOB_STATES);
    return state >= JOB_SUCCESSFUL;
}

const char *job_state_name(enum job_state state)
{
    assert((unsigned)state < JOB_STATES);
    return state_names[state];
}

const char *job_callback_name(enum job_callback_state state)
{
    static const char *const names[] = {
#define JOB_CALLBACK_NAME(state, name) [JOB_CALLBACK_##state] = (name),
        JOB_CALLBACK_TABLE(JOB_CALLBACK_NAME)
#undef JOB_CALLBACK_NAME
    };
    assert((unsigned)state < JOB_CALLBACK_STATES);
    return names[state];
}

bool job_state_find(const char *name, size_t length, enum job_state *state)
{
    for (int i = 0; i < JOB_STATES; i++) {
        if (strlen(state_names[i]) == length && memcmp(state_names[i], name, length) == 0) {
            *state = (enum job_state)i;
            return true;
        }
    }
    return false;
}

/* ---- Tasks ---- */

static enum error malformed(struct failure *failure, const char *what)
{
    return failure_set(failure, ERROR_MALFORMED, "The task of the job is not usable: %s.", what);
}

int64_t job_matrix_bytes(const struct job_task *task)
{
    const struct method *method = task->method;
    int64_t sum = 0;
    for (int i = 0; method->inputs[i].name; i++) {
        int64_t bytes = method_tensor_bytes(&method->inputs[i], task->precision, task->n, task->m,
                                            task->options);
        if (task->inputs[i].offset_bytes >= 0 && !checked_add(sum, bytes, &sum))
            return -1;
    }
    for (int i = 0; method->outputs[i].name; i++) {
        int64_t bytes = method_tensor_bytes(&method->outputs[i], task->precision, task->n, task->m,
                                            task->options);
        if (task->outputs[i].offset_bytes >= 0 && !checked_add(sum, bytes, &sum))
            return -1;
    }
    return sum;
}

static int option_count(const struct method *method)
{
    int count = 0;
    while (count < METHOD_OPTIONS_MAX && method->options[count].name)
        count++;
    return count;
}

/* How many names a list of "a|b|c" has. */
static int64_t choice_count(const char *choices)
{
    int64_t count = 1;
    for (const char *at = choices; *at; at++)
        count += *at == '|';
    return count;
}

static bool is_option_right(const struct method_option *option, int64_t value, int64_t n)
{
    double real;
    struct method_range range;
    switch (option->kind) {
    case METHOD_OPTION_BOOL:
        return value == 0 || value == 1;
    case METHOD_OPTION_INT:
        return (double)value >= option->min && (double)value <= option->max;
    case METHOD_OPTION_REAL:
        memcpy(&real, &value, sizeof real);
        return real >= option->min && real <= option->max;
    case METHOD_OPTION_CHOICE:
        return value >= 0 && value < choice_count(option->choices);
    case METHOD_OPTION_RANGE:
        range = method_range_unpack(value, n);
        return value == 0 || (range.first >= 0 && range.first < range.end && range.end <= n &&
                              method_range_pack(range) == value);
    }
    return false;
}

/* Absent, or within so many bytes, at a multiple of its elements' size. */
static bool is_tensor_right(const struct job_task *task, const struct method_tensor *tensor,
                            const struct job_tensor *place, int64_t within_bytes)
{
    if (place->offset_bytes < 0)
        return place->offset_bytes == -1;
    int64_t element = tensor->kind == METHOD_REAL ? precision_bytes(task->precision) : 4;
    int64_t bytes, end;
    int64_t matrix = method_tensor_bytes(tensor, task->precision, task->n, task->m, task->options);
    return place->offset_bytes % element == 0 && checked_mul(matrix, task->batch, &bytes) &&
           checked_add(place->offset_bytes, bytes, &end) && end <= within_bytes;
}

static const char *wrong_numbers(const struct job_task *task)
{
    if ((unsigned)task->precision >= PRECISION_COUNT)
        return "its precision";
    if (task->batch < 1 || task->n < 0 || task->n > task->method->n_max || task->m < 0 ||
        task->m > INT32_MAX)
        return "its shape";
    if (task->body_bytes < 0 || task->result_bytes < 0)
        return "its size";
    if (task->priority < 0 || task->priority > JOB_PRIORITY_MAX)
        return "its priority";
    for (int i = 0; i < option_count(task->method); i++) {
        if (!is_option_right(&task->method->options[i], task->options[i], task->n))
            return "an option";
    }
    return NULL;
}

enum error job_task_check(const struct job_task *task, struct failure *failure)
{
    const struct method *method = task->method;
    const char *wrong = wrong_numbers(task);
    if (wrong)
        return malformed(failure, wrong);
    for (int i = 0; method->inputs[i].name; i++) {
        if (!is_tensor_right(task, &method->inputs[i], &task->inputs[i], task->body_bytes))
            return malformed(failure, "an input");
    }
    for (int i = 0; method->outputs[i].name; i++) {
        if (!is_tensor_right(task, &method->outputs[i], &task->outputs[i], task->result_bytes))
            return malformed(failure, "an output");
    }
    if (job_matrix_bytes(task) < 0)
        return malformed(failure, "its size");
    return ERROR_NONE;
}

/* ---- Tasks as bytes ---- */

struct writer {
    uint8_t *at, *end;
};

static void put_u8(struct writer *writer, unsigned value)
{
    assert(writer->at < writer->end && value <= UINT8_MAX);
    *writer->at++ = (uint8_t)value;
}

static void put_i64(struct writer *writer, int64_t value)
{
    for (int i = 0; i < 8; i++)
        put_u8(writer, (unsigned)((uint64_t)value >> 8 * i & UINT8_MAX));
}

static void put_text(struct writer *writer, const char *text)
{
    size_t length = strlen(text);
    put_u8(writer, (unsigned)length);
    for (size_t i = 0; i < length; i++)
        put_u8(writer, (uint8_t)text[i]);
}

void job_task_write(const struct job_task *task, uint8_t out[JOB_TASK_MAX], size_t *bytes)
{
    const struct method *method = task->method;
    struct writer writer = {out, out + JOB_TASK_MAX};
    put_u8(&writer, TASK_VERSION);
    put_text(&writer, method->name);
    put_u8(&writer, (unsigned)task->precision);
    put_u8(&writer, task->nan_on_singular ? TASK_NAN_ON_SINGULAR : 0);
    put_u8(&writer, (unsigned)task->priority);
    const int64_t numbers[] = {task->batch, task->n, task->m, task->body_bytes, task->result_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_i64(&writer, numbers[i]);
    put_u8(&writer, (unsigned)option_count(method));
    for (int i = 0; i < option_count(method); i++) {
        put_text(&writer, method->options[i].name);
        put_i64(&writer, task->options[i]);
    }
    put_u8(&writer, (unsigned)method_input_count(method));
    for (int i = 0; i < method_input_count(method); i++) {
        put_i64(&writer, task->inputs[i].offset_bytes);
        put_u8(&writer, task->inputs[i].column_major ? 1 : 0);
    }
    put_u8(&writer, (unsigned)method_output_count(method));
    for (int i = 0; i < method_output_count(method); i++)
        put_i64(&writer, task->outputs[i].offset_bytes);
    *bytes = (size_t)(writer.at - out);
}

/* Past the end everything reads as 0, and is_short says so. */
struct reader {
    const uint8_t *at, *end;
    bool is_short;
};

static unsigned get_u8(struct reader *reader)
{
    if (reader->at == reader->end) {
        reader->is_short = true;
        return 0;
    }
    return *reader->at++;
}

static int64_t get_i64(struct reader *reader)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)get_u8(reader) << 8 * i;
    return (int64_t)value;
}

static void get_text(struct reader *reader, char text[UINT8_MAX + 1])
{
    unsigned length = get_u8(reader);
    for (unsigned i = 0; i < length; i++)
        text[i] = (char)get_u8(reader);
    text[length] = '\0';
}

static enum error read_options(struct reader *reader, struct job_task *task,
                               struct failure *failure)
{
    char name[UINT8_MAX + 1];
    method_default_options(task->method, task->options);
    for (unsigned left = get_u8(reader); left > 0 && !reader->is_short; left--) {
        get_text(reader, name);
        int64_t value = get_i64(reader);
        int option = method_option_find(task->method, name);
        if (option < 0)
            return malformed(failure, "its method has no such option");
        task->options[option] = value;
    }
    return ERROR_NONE;
}

static enum error read_tensors(struct reader *reader, struct job_task *task,
                               struct failure *failure)
{
    int inputs = (int)get_u8(reader);
    if (inputs != method_input_count(task->method))
        return malformed(failure, "its method has other inputs");
    for (int i = 0; i < inputs; i++) {
        task->inputs[i].offset_bytes = get_i64(reader);
        unsigned order = get_u8(reader);
        if (order > 1)
            return malformed(failure, "an input");
        task->inputs[i].column_major = order == 1;
    }
    int outputs = (int)get_u8(reader);
    if (outputs != method_output_count(task->method))
        return malformed(failure, "its method has other outputs");
    for (int i = 0; i < outputs; i++)
        task->outputs[i].offset_bytes = get_i64(reader);
    return ERROR_NONE;
}

/* An unsigned number that is no such value is kept as one, for job_task_check to refuse. */
static enum error read_head(struct reader *reader, struct job_task *task, struct failure *failure)
{
    char name[UINT8_MAX + 1];
    unsigned version = get_u8(reader);
    if (version != TASK_VERSION)
        return failure_set(failure, ERROR_MALFORMED,
                           "The task of the job is of version %u; this daemon reads %d.", version,
                           TASK_VERSION);
    get_text(reader, name);
    task->method = method_find(name);
    if (!task->method)
        return malformed(failure, "this daemon has no such method");
    task->precision = (enum precision)get_u8(reader);
    unsigned flags = get_u8(reader);
    if (flags > TASK_NAN_ON_SINGULAR)
        return malformed(failure, "its flags");
    task->nan_on_singular = flags == TASK_NAN_ON_SINGULAR;
    task->priority = (int)get_u8(reader);
    task->batch = get_i64(reader);
    task->n = get_i64(reader);
    task->m = get_i64(reader);
    task->body_bytes = get_i64(reader);
    task->result_bytes = get_i64(reader);
    return ERROR_NONE;
}

enum error job_task_read(const uint8_t *in, size_t bytes, struct job_task *task,
                         struct failure *failure)
{
    struct reader reader = {in, in + bytes, false};
    *task = (struct job_task){.method = NULL};
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task->inputs[i].offset_bytes = -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        task->outputs[i].offset_bytes = -1;
    enum error error = read_head(&reader, task, failure);
    if (error == ERROR_NONE)
        error = read_options(&reader, task, failure);
    if (error == ERROR_NONE)
        error = read_tensors(&reader, task, failure);
    if (error != ERROR_NONE)
        return error;
    if (reader.is_short || reader.at != reader.end)
        return malformed(failure, "its length");
    return job_task_check(task, failure);
}
