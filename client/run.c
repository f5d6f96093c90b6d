/* client/run.c: see run.h. */
#include "client/run.h"

#include <stdio.h>

#include "client/convert.h"
#include "client/direct.h"
#include "client/job.h"

/* A body that is too large for a direct request may do as a job; where there are no jobs, one that
 * is large may do as a direct request. */
static void send_either_way(struct job *job, struct files_input *input, struct files_output *output)
{
    struct session *session = job->session;
    bool as_job = input->size > session->arguments->direct_max;
    if (as_job)
        job_run(job, output);
    if (!as_job || job->refused)
        direct_run(session, input, output);
    if (!as_job && session->outcome->status == 413) {
        struct outcome kept = *session->outcome;
        job_run(job, output);
        if (job->refused)
            *session->outcome = kept;
    }
}

static enum error run(struct session *session, struct files_input *input,
                      struct convert_output *output, struct failure *failure)
{
    const struct arguments *arguments = session->arguments;
    struct job job;
    enum error error = convert_open_input(arguments, input, failure);
    if (error == ERROR_NONE && !arguments->detach)
        error = convert_open_output(arguments, output, failure);
    if (error != ERROR_NONE)
        return error;
    job_open(&job, session, input, NULL);
    if (arguments->detach)
        (void)job_upload(&job, NULL);
    else
        send_either_way(&job, input, output->receives);
    progress_end(&session->progress);
    if (!arguments->detach && session->outcome->code == OUTCOME_DONE)
        error = convert_commit(arguments, output, failure);
    if (error == ERROR_NONE && !arguments->detach)
        job_forget(&job);
    job_close(&job);
    return error;
}

void run_file(struct session *session)
{
    struct files_input input = {.fd = -1};
    struct convert_output output = {.file.fd = -1, .npy.fd = -1};
    struct failure failure = {0};
    if (run(session, &input, &output, &failure) != ERROR_NONE) {
        session->outcome->code = OUTCOME_LOCAL;
        outcome_say(session->outcome, failure.detail);
    }
    convert_close_output(&output);
    files_close_input(&input);
}
