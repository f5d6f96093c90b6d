/* demo/daemon.c: starts the daemon as a child on a free port, waits until it is ready, stops it.
 *
 * The child dies with the demonstration. Its log and its port file lie in a folder of their own
 * below /tmp, which is removed at the end; the log is shown first when something went wrong.
 */
#include "demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_SIZE = 128,
    READY_MS = 20000,
    STOP_MS = 35000, /* the daemon's own drain takes 30 s at most */
    STEP_MS = 20
};

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void file_in_folder(const struct demo_daemon *daemon, const char *name, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s", daemon->folder, name);
}

/* In the child: becomes the daemon. */
static _Noreturn void become(const char *program, const struct demo_daemon *daemon)
{
    char log[PATH_SIZE], port_file[PATH_SIZE];
    file_in_folder(daemon, "log", log);
    file_in_folder(daemon, "port", port_file);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
    execl(program, program, "--listen", "127.0.0.1:0", "--port-file", port_file, "--data-dir",
          "none", "--log-format", "text", (char *)NULL);
    fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

static int read_port(const struct demo_daemon *daemon)
{
    char path[PATH_SIZE], text[32];
    file_in_folder(daemon, "port", path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    bool there = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return there ? (int)strtol(text, NULL, 10) : 0;
}

static bool is_ready(const struct demo_daemon *daemon)
{
    struct demo_answer answer;
    bool ready = demo_http(daemon->port, "GET", "/v2/health/ready", NULL, 0, 0, &answer) &&
                 answer.status == 200;
    demo_answer_free(&answer);
    return ready;
}

static void show_log(const struct demo_daemon *daemon)
{
    char path[PATH_SIZE], line[1024];
    file_in_folder(daemon, "log", path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    fprintf(stderr, "demo: the daemon's log:\n");
    while (fgets(line, sizeof line, file) != NULL)
        fprintf(stderr, "    %s", line);
    fclose(file);
}

static void remove_folder(const struct demo_daemon *daemon)
{
    static const char *const names[] = {"log", "port"};
    char path[PATH_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file_in_folder(daemon, names[i], path);
        unlink(path);
    }
    rmdir(daemon->folder);
}

bool demo_daemon_start(const char *program, struct demo_daemon *daemon)
{
    memset(daemon, 0, sizeof *daemon);
    snprintf(daemon->folder, sizeof daemon->folder, "/tmp/invertd-demo-XXXXXX");
    if (mkdtemp(daemon->folder) == NULL) {
        fprintf(stderr, "demo: cannot make a folder below /tmp: %s\n", strerror(errno));
        return false;
    }
    daemon->pid = fork();
    if (daemon->pid == 0)
        become(program, daemon);
    for (int waited = 0; daemon->pid > 0 && waited < READY_MS; waited += STEP_MS) {
        if (waitpid(daemon->pid, NULL, WNOHANG) == daemon->pid) {
            daemon->pid = -1;
            break;
        }
        daemon->port = read_port(daemon);
        if (daemon->port != 0 && is_ready(daemon))
            return true;
        sleep_ms(STEP_MS);
    }
    fprintf(stderr, "demo: the daemon did not become ready\n");
    (void)demo_daemon_stop(daemon);
    return false;
}

bool demo_daemon_stop(struct demo_daemon *daemon)
{
    int status = -1;
    if (daemon->pid > 0) {
        bool ended = false;
        kill(daemon->pid, SIGTERM);
        for (int waited = 0; !ended && waited < STOP_MS; waited += STEP_MS) {
            ended = waitpid(daemon->pid, &status, WNOHANG) == daemon->pid;
            if (!ended)
                sleep_ms(STEP_MS);
        }
        if (!ended) {
            kill(daemon->pid, SIGKILL);
            waitpid(daemon->pid, &status, 0);
        }
    }
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!clean)
        show_log(daemon);
    remove_folder(daemon);
    daemon->pid = -1;
    return clean;
}
