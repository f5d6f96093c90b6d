/* client/main.c: invert: sends a file of matrices to invertd and keeps the answer, at once or as a
 * job.
 *
 * Exit codes: the table in outcome.h. What went wrong is one line on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/arguments.h"
#include "client/manage.h"
#include "client/run.h"
#include "version.h"

/* A job that was sent and not waited for to its end. */
static void say_where(const struct arguments *arguments, const struct outcome *outcome)
{
    if (outcome->id[0] == '\0' || arguments->command != COMMAND_INVERT || arguments->quiet)
        return;
    if (outcome->code == OUTCOME_UNREACHABLE || outcome->code == OUTCOME_TIMED_OUT ||
        outcome->code == OUTCOME_NO_ROOM || outcome->code == OUTCOME_LOCAL)
        fprintf(stderr, "invert: the job %s may go on; invert fetch asks for its answer.\n",
                outcome->id);
}

static void report(const struct arguments *arguments, const struct outcome *outcome, bool printed)
{
    bool is_written = arguments->output != NULL && strcmp(arguments->output, "-") == 0;
    const char *id = arguments->command != COMMAND_INVERT ? outcome->id : "";
    if (outcome->code != OUTCOME_DONE)
        fprintf(stderr, "invert: %s%s%s.\n", id, id[0] != '\0' ? ": " : "", outcome->message);
    else if (outcome->info > 0 && !arguments->quiet)
        fprintf(stderr,
                "invert: INFO is not 0 for %ld of the matrices: their numbers may be worthless.\n",
                outcome->info);
    say_where(arguments, outcome);
    if (arguments->json && !printed)
        outcome_print_json(outcome, is_written ? stderr : stdout);
    else if (arguments->detach && outcome->code == OUTCOME_DONE)
        puts(outcome->id);
}

static enum outcome_code run(const struct arguments *arguments)
{
    struct session session;
    struct failure failure = {0};
    struct outcome outcome = {.code = OUTCOME_DONE, .info = -1};
    bool show = !arguments->quiet && isatty(STDERR_FILENO) == 1;
    enum error error = session_open(&session, arguments, &outcome, show, &failure);
    if (error != ERROR_NONE) {
        outcome.code = OUTCOME_LOCAL;
        outcome_say(&outcome, failure.detail);
    } else if (arguments->command == COMMAND_INVERT) {
        run_file(&session);
    } else {
        outcome.code = manage_run(&session, report);
    }
    session_stop(&session);
    session_close(&session);
    if (error != ERROR_NONE || arguments->command == COMMAND_INVERT)
        report(arguments, &outcome, false);
    return outcome.code;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct failure failure = {0};
    enum outcome_code code = OUTCOME_DONE;
    if (arguments_read(&arguments, argc, argv, getenv("INVERTD_SERVER"), &failure) != ERROR_NONE) {
        code = OUTCOME_LOCAL;
        fprintf(stderr, "invert: %s.\n", failure.detail);
    } else if (arguments.help) {
        arguments_print_help(stdout);
    } else if (arguments.version) {
        puts("invert " INVERTD_VERSION);
    } else {
        code = run(&arguments);
    }
    arguments_free(&arguments);
    if (fflush(stdout) != 0 && code == OUTCOME_DONE) {
        fprintf(stderr, "invert: cannot write to stdout.\n");
        code = OUTCOME_LOCAL;
    }
    return (int)code;
}
