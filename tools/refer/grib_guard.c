/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What a tool says when ecCodes ends it, or does not come to an end, over a message. */

#include "refer/grib_guard.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/common.h"

/* Of a processor, for a message: the largest grids take a few. */
#define SECONDS_MOST 120

/* SIGABRT: assertions. SIGPROF: the seconds are over. */
static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF};

static struct sigaction before[G_N_ELEMENTS(signals)];
static char said[512];
static volatile sig_atomic_t said_bytes; /* 0: ecCodes is not at work */

static void
tell(int number)
{
    if (said_bytes > 0) {
        ssize_t n = write(STDERR_FILENO, said, (size_t) said_bytes);
        _exit(n >= 0 ? TOOL_DAMAGED : TOOL_FAILED);
    }
    (void) signal(number, SIG_DFL);
    (void) raise(number);
}

void
gribs_guard_begin(void)
{
    struct sigaction action = {.sa_handler = tell};
    (void) sigemptyset(&action.sa_mask);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        (void) sigaction(signals[i], &action, &before[i]);
}

void
gribs_guard(const char *path, uint64_t position)
{
    struct itimerval most = {0};
    said_bytes = 0;
    if (path != NULL) {
        g_autofree char *printable = tool_printable(path);
        int n = g_snprintf(said, sizeof said,
                           "%s: %.300s: message at byte %" G_GUINT64_FORMAT
                           ": ecCodes ended over it; it is damaged\n",
                           g_get_prgname(), printable, (guint64) position);
        said_bytes = MIN(n, (int) sizeof said - 1);
        most.it_value.tv_sec = SECONDS_MOST;
    }
    (void) setitimer(ITIMER_PROF, &most, NULL);
}

void
gribs_guard_end(void)
{
    gribs_guard(NULL, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        (void) sigaction(signals[i], &before[i], NULL);
}
