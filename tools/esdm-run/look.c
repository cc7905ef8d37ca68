/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A process of esdm-explain looks at the run while it is under way (esdm-explain/look.c). */
#include "esdm-run/esdm-run.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 30000 /* that it may take to write a trace */

_Noreturn static void
be_looker(const report_run *r, const report_options *o, int input)
{
    char program[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    char *slash = n > 0 ? strrchr(program, '/') : NULL;
    const char *argv[] = {"esdm-explain", "--look", r->folder, o->report ? "--quiet" : NULL, NULL};
    (void) signal(SIGTERM, SIG_IGN); /* it ends with the program */
    (void) signal(SIGHUP, SIG_IGN);
    (void) dup2(input, STDIN_FILENO);
    (void) dup2(STDERR_FILENO, STDOUT_FILENO);
    (void) unsetenv("LD_PRELOAD"); /* nobody watches who watches */
    if (slash != NULL) {
        (void) snprintf(slash + 1, 20, "esdm-explain");
        (void) execv(program, (char *const *) (uintptr_t) argv);
    }
    (void) execvp("esdm-explain", (char *const *) (uintptr_t) argv);
    _exit(1);
}

void
look_begin(report_run *r, const report_options *o)
{
    const char *monitor = getenv("ESDM_MONITOR");
    int ends[2];
    if ((monitor != NULL && strcmp(monitor, "off") == 0) || pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        be_looker(r, o, ends[0]);
    (void) close(ends[0]);
    r->ends_one = ends[1];
    r->looker = pid > 0 ? (int) pid : 0;
    if (pid <= 0)
        (void) close(ends[1]);
}

void
look_end(report_run *r)
{
    if (r->looker == 0)
        return;
    (void) close(r->ends_one);
    int fd = (int) syscall(SYS_pidfd_open, (pid_t) r->looker, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd < 0 || poll(&ended, 1, WAIT_MS) == 0)
        (void) kill((pid_t) r->looker, SIGKILL);
    if (fd >= 0)
        (void) close(fd);
    (void) waitpid((pid_t) r->looker, NULL, 0);
    r->looker = 0;
}
