/* handlers/judge.c: see judge.h. */
#include "handlers/judge.h"

#include <stdlib.h>

#include "handlers/handlers_private.h"
#include "handlers/inference.h"
#include "handlers/inference/survey.h"
#include "handlers/jobs/document.h"
#include "handlers/jobs/keep.h"
#include "handlers/stats.h"

/* The outputs of one number a matrix. */
static enum error read_outputs(const struct job *job, const struct jobs_result *result,
                               void *outputs[METHOD_OUTPUTS_MAX], struct failure *failure)
{
    const struct job_task *task = &job->task;
    for (int i = 0; i < method_output_count(task->method); i++) {
        int64_t bytes = handlers__keep_output_bytes(task, i);
        if (task->method->outputs[i].rank > 0 || bytes <= 0)
            continue;
        outputs[i] = malloc((size_t)bytes);
        if (outputs[i] == NULL)
            return failure_set(failure, ERROR_INTERNAL, "The service is out of memory.");
        enum error error =
            jobs_result_read(result, task->outputs[i].offset_bytes, outputs[i], bytes, failure);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

static enum error judge(struct handlers *handlers, const struct job *job,
                        const struct proto_request *request,
                        void *const outputs[METHOD_OUTPUTS_MAX], struct failure *failure)
{
    struct survey survey;
    char detail[sizeof failure->detail];
    handlers__survey_make(request, outputs, &survey);
    const struct handlers__model *model = handlers__model_of(handlers, job->task.method);
    struct stats_cell *cell = handlers__stats_cell(handlers, &handlers->shards[0], model);
    handlers__stats_inversions(cell, job->task.precision, survey.infos);
    handlers__stats_accuracy(cell, &survey);
    if (!handlers__v1_kind.refuses(request, &survey))
        return ERROR_NONE;
    handlers__survey_explain(request, &survey, detail, sizeof detail);
    return failure_set(failure, ERROR_NOT_INVERTIBLE, "%s", detail);
}

enum error handlers_judge(void *context, const struct job *job, const struct jobs_result *result,
                          struct failure *failure)
{
    struct proto_request request;
    void *outputs[METHOD_OUTPUTS_MAX] = {NULL};
    enum error error = handlers__keep_request(job, &request, failure);
    if (error == ERROR_NONE)
        error = read_outputs(job, result, outputs, failure);
    if (error == ERROR_NONE)
        error = judge(context, job, &request, outputs, failure);
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        free(outputs[i]);
    return error;
}

void handlers_job_document(const struct job *job, struct text *json)
{
    handlers__job_document(job, -1, json);
}
