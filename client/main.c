/* client/main.c: invert: sends a file of matrices to invertd and keeps the answer.
 *
 * Exit codes: the table in outcome.h. What went wrong is one line on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/arguments.h"
#include "client/files.h"
#include "client/outcome.h"
#include "client/transfer.h"
#include "version.h"

#define TOKEN_MAX 1024 /* bytes, as the daemon's */

/* From files to files; what a local file lacks is an outcome too. */
static void run(const struct arguments *arguments, struct outcome *outcome)
{
    char token[TOKEN_MAX + 1] = "";
    struct failure failure = {0};
    struct files_input input = {.fd = -1};
    struct files_output output = {.fd = -1};
    bool show = !arguments->quiet && isatty(STDERR_FILENO) == 1;
    enum error error = ERROR_NONE;
    if (arguments->token_file != NULL)
        error = files_read_token(arguments->token_file, token, sizeof token, &failure);
    if (error == ERROR_NONE)
        error = files_open_input(&input, arguments->input, &failure);
    if (error == ERROR_NONE)
        error = files_open_output(&output, arguments->output, &failure);
    *outcome = (struct outcome){.info = -1};
    if (error == ERROR_NONE)
        transfer_run(arguments, arguments->token_file != NULL ? token : NULL, &input, &output, show,
                     outcome);
    if (error == ERROR_NONE && outcome->code == OUTCOME_DONE)
        error = files_commit(&output, &failure);
    if (error != ERROR_NONE) {
        outcome->code = OUTCOME_LOCAL;
        outcome_say(outcome, failure.detail);
    }
    files_close_output(&output);
    files_close_input(&input);
    explicit_bzero(token, sizeof token);
}

static void report(const struct arguments *arguments, const struct outcome *outcome)
{
    if (outcome->code != OUTCOME_DONE)
        fprintf(stderr, "invert: %s.\n", outcome->message);
    else if (outcome->info > 0 && !arguments->quiet)
        fprintf(stderr,
                "invert: INFO is not 0 for %ld of the matrices: their numbers may be worthless.\n",
                outcome->info);
    if (arguments->json)
        outcome_print_json(outcome, strcmp(arguments->output, "-") == 0 ? stderr : stdout);
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct outcome outcome = {.code = OUTCOME_DONE, .info = -1};
    struct failure failure = {0};
    if (arguments_read(&arguments, argc, argv, getenv("INVERTD_SERVER"), &failure) != ERROR_NONE) {
        outcome.code = OUTCOME_LOCAL;
        fprintf(stderr, "invert: %s.\n", failure.detail);
    } else if (arguments.help) {
        arguments_print_help(stdout);
    } else if (arguments.version) {
        puts("invert " INVERTD_VERSION);
    } else {
        run(&arguments, &outcome);
        report(&arguments, &outcome);
    }
    arguments_free(&arguments);
    return (int)outcome.code;
}
