/* client/progress.c: see progress.h. */
#include "client/progress.h"

#include <stdio.h>

#include "base/clock.h"

static void append_size(struct text *line, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 3; unit++)
        value /= 1024;
    text_printf(line, "%.*f %s", unit > 0, value, units[unit]);
}

static void append_bar(struct text *line, const char *what, const struct progress_state *state)
{
    static const char bar[] = "########################";
    double part = state->total == 0 ? 0 : (double)state->now / (double)state->total;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    text_printf(line, "%s [%-*.*s] %3d%%", what, (int)sizeof bar - 1,
                (int)(part * (double)(sizeof bar - 1)), bar, (int)(part * 100));
}

void progress_text(const struct progress_state *state, uint64_t elapsed_ns, struct text *line)
{
    bool travels = state->stage == PROGRESS_UPLOAD || state->stage == PROGRESS_DOWNLOAD;
    if (state->stage == PROGRESS_RUNNING)
        append_bar(line, "running", state);
    else if (travels)
        append_bar(line, state->stage == PROGRESS_UPLOAD ? "upload" : "download", state);
    else
        text_puts(line, state->stage == PROGRESS_COMPUTING ? "computing" : "waiting");
    if (state->stage == PROGRESS_WAITING && state->now > 0)
        text_printf(line, ", position %lld", (long long)state->now);
    if (travels) {
        text_puts(line, "  ");
        append_size(line, state->now);
    }
    if (travels && state->total > 0) {
        text_puts(line, " of ");
        append_size(line, state->total);
    }
    text_printf(line, "  %llu s", (unsigned long long)(elapsed_ns / CLOCK_S));
}

void progress_begin(struct progress *progress, bool wanted)
{
    *progress = (struct progress){.wanted = wanted, .begun_ns = clock_now_ns()};
}

void progress_update(struct progress *progress, const struct progress_state *state)
{
    uint64_t now = clock_now_ns();
    if (!progress->wanted || now - progress->begun_ns < 500 * CLOCK_MS ||
        now - progress->changed_ns < 100 * CLOCK_MS)
        return;
    char buffer[128];
    struct text line;
    text_init_fixed(&line, buffer, sizeof buffer);
    progress_text(state, now - progress->begun_ns, &line);
    fprintf(stderr, "\r%s\033[K", buffer);
    progress->changed_ns = now;
    progress->shown = true;
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
