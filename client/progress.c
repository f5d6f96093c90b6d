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

static void append_part(struct text *line, const char *what, int64_t now, int64_t total)
{
    static const char bar[] = "########################";
    double part = total == 0 ? 0 : now < total ? (double)now / (double)total : 1;
    text_printf(line, "%s [%-*.*s] %3d%%  ", what, (int)sizeof bar - 1,
                (int)(part * (double)(sizeof bar - 1)), bar, (int)(part * 100));
    append_size(line, now);
    text_puts(line, " of ");
    append_size(line, total);
}

void progress_text(const struct progress_bytes *bytes, uint64_t elapsed_ns, struct text *line)
{
    if (bytes->to_receive > 0)
        append_part(line, "download", bytes->received, bytes->to_receive);
    else if (bytes->sent < bytes->to_send)
        append_part(line, "upload", bytes->sent, bytes->to_send);
    else
        text_puts(line, "computing");
    text_printf(line, "  %llu s", (unsigned long long)(elapsed_ns / CLOCK_S));
}

void progress_begin(struct progress *progress, bool wanted)
{
    *progress = (struct progress){.wanted = wanted, .begun_ns = clock_now_ns()};
}

void progress_update(struct progress *progress, const struct progress_bytes *bytes)
{
    uint64_t now = clock_now_ns();
    if (!progress->wanted || now - progress->begun_ns < 500 * CLOCK_MS ||
        now - progress->changed_ns < 100 * CLOCK_MS)
        return;
    char buffer[128];
    struct text line;
    text_init_fixed(&line, buffer, sizeof buffer);
    progress_text(bytes, now - progress->begun_ns, &line);
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
