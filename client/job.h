/* client/job.h: the life of a job, seen from its client: upload, wait, fetch, forget.
 *
 * The upload bears an Idempotency-Key, so that sending it again is the same job. What breaks off is
 * taken up again, as session.h says. Where the server has lost the job, with its data folder, the
 * upload is sent again.
 *
 * Threads: one. Blocks.
 */
#ifndef CLIENT_JOB_H
#define CLIENT_JOB_H

#include "client/document.h"
#include "client/receive.h"

#define JOB_KEY_MAX 256

struct job {
    struct session *session;
    struct files_input *input; /* NULL: there is nothing that could be sent again */
    char key[JOB_KEY_MAX];
    char lost_id[68]; /* of one that the server no longer knows */
    int losses;
    bool refused;  /* the server gives no jobs to this client: a direct request may do */
    bool answered; /* the upload was answered directly */
    struct document document;
    struct text json; /* the last document */
};

/* input NULL: the job has the id. All is borrowed. job_close in any case. */
void job_open(struct job *job, struct session *session, struct files_input *input, const char *id);
void job_close(struct job *job);

/* Each sets the session's outcome; true: it is DONE. */
/* output: for a server that answers at once instead; NULL: that is a failure. */
bool job_upload(struct job *job, struct files_output *output);
/* Asks once, waiting wait_s for the end. */
bool job_ask(struct job *job, int wait_s);
/* Until it has ended, well or not. */
bool job_wait(struct job *job);
/* The answer, or the failure of a failed job as the outcome. output NULL: the outcome alone. */
bool job_fetch(struct job *job, struct files_output *output);
bool job_cancel(struct job *job);
/* All of it; the job is forgotten by job_forget. */
void job_run(struct job *job, struct files_output *output);
/* Drops what the server keeps of a job that has ended; the outcome stays. */
void job_forget(struct job *job);

#endif
