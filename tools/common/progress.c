/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The bar that long work shows on a terminal. */

#include "common/common.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_EVERY_US 100000
#define BAR_COLUMNS   28

void
tool_progress_start(tool_progress *progress, bool wanted)
{
    const char *terminal = g_getenv("TERM");
    *progress = (tool_progress){.started_us = g_get_monotonic_time()};
    progress->shown =
        wanted && isatty(STDERR_FILENO) && (terminal == NULL || !g_str_equal(terminal, "dumb"));
}

static int
terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

void
tool_progress_show(tool_progress *progress, double share, const char *text)
{
    gint64 now_us = g_get_monotonic_time();
    if (!progress->shown || now_us - progress->drawn_us < DRAW_EVERY_US)
        return;
    progress->drawn_us = now_us;
    bool has_bar = share >= 0;
    share = CLAMP(share, 0, 1);
    int full = (int) (share * BAR_COLUMNS);
    char bar[BAR_COLUMNS + 1];
    memset(bar, '.', BAR_COLUMNS);
    memset(bar, '#', (size_t) full);
    bar[BAR_COLUMNS] = '\0';
    g_autofree char *line = has_bar
                                ? g_strdup_printf("[%s] %3d%%  %s", bar, (int) (share * 100), text)
                                : g_strdup(text);
    g_autofree char *printable = tool_printable(line);
    (void) fprintf(stderr, "\r\033[K%.*s", terminal_columns() - 1, printable);
    (void) fflush(stderr);
}

void
tool_progress_end(tool_progress *progress)
{
    if (progress->shown && progress->drawn_us != 0)
        (void) fprintf(stderr, "\r\033[K");
    progress->shown = false;
}

double
tool_progress_seconds(const tool_progress *progress)
{
    return (double) (g_get_monotonic_time() - progress->started_us) / 1e6;
}
