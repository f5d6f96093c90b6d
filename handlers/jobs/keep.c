/* handlers/jobs/keep.c: see keep.h. */
#include "handlers/jobs/keep.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"

#define KEEP_VERSION 1
#define HEAD_BYTES 6
#define LEAD_BYTES 8

enum keep_flag {
    KEEP_WANT_NPZ = 1
};

/* ---- The task ---- */

/* Takes the next place for so many bytes. */
static bool place(int64_t bytes, int64_t *total, int64_t *offset)
{
    return checked_round_up(*total, KEEP_ALIGN, offset) && checked_add(*offset, bytes, total);
}

/* A request's 1 is the highest; 0 is 2, and from 3 on they are one. */
static int job_priority(int priority)
{
    return priority == 1 ? 2 : priority == 0 || priority == 2 ? 1 : 0;
}
_Static_assert(JOB_PRIORITY_MAX == 2, "as many as requests have");

enum error handlers__keep_task(const struct proto_request *request, uint32_t wanted,
                               struct job_task *task, struct failure *failure)
{
    const struct method *method = request->method;
    *task = (struct job_task){.method = method,
                              .precision = request->precision,
                              .batch = request->batch,
                              .n = request->n,
                              .m = request->m,
                              .nan_on_singular = request->nan_on_singular,
                              .priority = job_priority(request->priority)};
    memcpy(task->options, request->options, sizeof task->options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task->inputs[i].offset_bytes = -1;
    bool fits = true;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        task->outputs[i].offset_bytes = -1;
        if ((wanted >> i & 1) == 0)
            continue;
        int64_t one = method_tensor_bytes(&method->outputs[i], task->precision, task->n, task->m,
                                          task->options);
        int64_t all = 0;
        fits = fits && one >= 0 && checked_mul(one, task->batch, &all) &&
               place(all, &task->result_bytes, &task->outputs[i].offset_bytes);
    }
    if (fits)
        return ERROR_NONE;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "The answer would be too large; send fewer matrices at once.");
}

int64_t handlers__keep_input_bytes(const struct job_task *task, int input)
{
    return task->batch * method_tensor_bytes(&task->method->inputs[input], task->precision, task->n,
                                             task->m, task->options);
}

int64_t handlers__keep_output_bytes(const struct job_task *task, int output)
{
    if (task->outputs[output].offset_bytes < 0)
        return -1;
    return task->batch * method_tensor_bytes(&task->method->outputs[output], task->precision,
                                             task->n, task->m, task->options);
}

bool handlers__keep_place_input(struct job_task *task, int input, bool column_major)
{
    task->inputs[input].column_major = column_major;
    return place(handlers__keep_input_bytes(task, input), &task->body_bytes,
                 &task->inputs[input].offset_bytes);
}

/* ---- The answer ---- */

static_assert(HEAD_BYTES + LEAD_BYTES * PROTO_RANK_MAX + METHOD_OUTPUTS_MAX <= JOB_ANSWER_MAX,
              "every request fits");
static_assert(METHOD_INPUTS_MAX <= 8, "the inputs' bits fit a byte");

int handlers__keep_answer(const struct proto_request *request, uint8_t answer[JOB_ANSWER_MAX])
{
    uint8_t *at = answer + HEAD_BYTES;
    answer[0] = KEEP_VERSION;
    answer[1] = (uint8_t)request->format;
    answer[2] = request->want_npz ? KEEP_WANT_NPZ : 0;
    answer[3] = (uint8_t)request->lead_rank;
    answer[4] = (uint8_t)request->output_count;
    answer[5] = 0;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        if (request->inputs[i].data != NULL)
            answer[5] |= (uint8_t)(1u << i);
    for (int i = 0; i < request->lead_rank; i++)
        for (int byte = 0; byte < LEAD_BYTES; byte++)
            *at++ = (uint8_t)((uint64_t)request->lead[i] >> (8 * byte));
    for (int i = 0; i < request->output_count; i++)
        *at++ = (uint8_t)request->outputs[i].index;
    return (int)(at - answer);
}

static int64_t read_length(const uint8_t *bytes)
{
    uint64_t length = 0;
    for (int byte = 0; byte < LEAD_BYTES; byte++)
        length |= (uint64_t)bytes[byte] << (8 * byte);
    return (int64_t)length;
}

/* The lead dimensions, whose product is the batch. */
static bool read_lead(const uint8_t *at, struct proto_request *request)
{
    int64_t batch = 1;
    for (int i = 0; i < request->lead_rank; i++) {
        request->lead[i] = read_length(at + LEAD_BYTES * i);
        if (request->lead[i] < 0 || !checked_mul(batch, request->lead[i], &batch))
            return false;
    }
    return batch == request->batch;
}

static bool read_outputs(const uint8_t *at, const struct job_task *task,
                         struct proto_request *request)
{
    const int count = method_output_count(task->method);
    for (int i = 0; i < request->output_count; i++) {
        request->outputs[i] = (struct proto_output){.index = at[i]};
        if (at[i] >= count || task->outputs[at[i]].offset_bytes < 0)
            return false;
    }
    return true;
}

static bool read_answer(const struct job *job, struct proto_request *request)
{
    const uint8_t *bytes = job->answer;
    static char mark; /* that an input was there */
    if (job->answer_bytes < HEAD_BYTES || bytes[0] != KEEP_VERSION)
        return false;
    bool known = bytes[1] == PROTO_FORMAT_NPY || bytes[1] == PROTO_FORMAT_NPZ ||
                 bytes[1] == PROTO_FORMAT_JSON;
    if (!known || bytes[3] > PROTO_RANK_MAX || bytes[4] < 1 || bytes[4] > METHOD_OUTPUTS_MAX ||
        job->answer_bytes != HEAD_BYTES + LEAD_BYTES * bytes[3] + bytes[4])
        return false;
    request->format = (enum proto_format)bytes[1];
    request->want_npz = (bytes[2] & KEEP_WANT_NPZ) != 0;
    request->lead_rank = bytes[3];
    request->output_count = bytes[4];
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        if ((bytes[5] >> i & 1) != 0)
            request->inputs[i].data = &mark;
    return read_lead(bytes + HEAD_BYTES, request) &&
           read_outputs(bytes + HEAD_BYTES + LEAD_BYTES * request->lead_rank, &job->task, request);
}

enum error handlers__keep_request(const struct job *job, struct proto_request *request,
                                  struct failure *failure)
{
    const struct job_task *task = &job->task;
    proto_request_init(request, PROTO_FORMAT_NPY, task->method);
    request->precision = task->precision;
    request->batch = task->batch;
    request->n = task->n;
    request->m = task->m;
    request->nan_on_singular = task->nan_on_singular;
    request->priority = 3 - task->priority;
    memcpy(request->options, task->options, sizeof request->options);
    if (read_answer(job, request))
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL,
                       "The job was accepted by a version of this service that kept its answer "
                       "in another way; send it anew.");
}
