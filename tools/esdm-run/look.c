/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A process of esdm-explain looks at the run while it is under way (esdm-explain/look.c). */
#include "esdm-run/esdm-run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ASK_MS 1000 /* that reading the site's configuration may take */

uint64_t
look_now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

bool
look_wait(int fd, int most_ms)
{
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    uint64_t until_ns = look_now_ns() + (uint64_t) most_ms * 1000000u;
    int n;
    do {
        uint64_t now_ns = look_now_ns();
        n = poll(&ended, 1, now_ns < until_ns ? (int) ((until_ns - now_ns + 999999) / 1000000) : 0);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Beside this program, else by $PATH. */
_Noreturn static void
be_explain(const char *const *argv)
{
    char program[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    char *slash = n > 0 ? strrchr(program, '/') : NULL;
    report_close_from(STDERR_FILENO + 1);
    (void) unsetenv("LD_PRELOAD"); /* nobody watches who watches */
    if (slash != NULL) {
        (void) snprintf(slash + 1, 20, "esdm-explain");
        (void) execv(program, (char *const *) (uintptr_t) argv);
    }
    (void) execvp("esdm-explain", (char *const *) (uintptr_t) argv);
    _exit(127);
}

/* Of a site on a file system that does not answer, the asker may not even end when it is killed: it
 * is a grandchild, so that the program, which this process may become, has no child of ours. */
_Noreturn static void
be_asking(void)
{
    static const char *const argv[] = {"esdm-explain", "--look", "--quiet", NULL};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int none = open("/dev/null", O_RDWR);
        for (int fd = STDIN_FILENO; none >= 0 && fd <= STDERR_FILENO; fd++)
            (void) dup2(none, fd);
        be_explain(argv);
    }
    int fd = pid > 0 ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;
    bool ended = fd >= 0 && look_wait(fd, ASK_MS);
    if (!ended && pid > 0)
        (void) kill(pid, SIGKILL);
    while (ended && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1);
}

bool
look_is_wanted(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, before;
    int status = 1;
    (void) sigaction(SIGCHLD, &usual, &before);
    pid_t pid = fork();
    if (pid == 0)
        be_asking();
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void) sigaction(SIGCHLD, &before, NULL);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void
look_begin(report_run *r, const report_options *o)
{
    const char *monitor = getenv("ESDM_MONITOR");
    const char *argv[] = {"esdm-explain", "--look", r->folder, o->report ? "--quiet" : NULL, NULL};
    int ends[2];
    if ((monitor != NULL && strcmp(monitor, "off") == 0) || pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        report_ignore_signals(); /* it ends with the program */
        (void) dup2(ends[0], STDIN_FILENO);
        (void) dup2(STDERR_FILENO, STDOUT_FILENO);
        be_explain(argv);
    }
    (void) close(ends[0]);
    r->ends_one = ends[1];
    r->looker = pid > 0 ? (int) pid : 0;
    r->looker_fd = pid > 0 ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pid <= 0)
        (void) close(ends[1]);
}

void
look_ended(report_run *r)
{
    (void) close(r->ends_one);
    if (r->looker_fd >= 0)
        (void) close(r->looker_fd);
    r->looker = 0;
}

void
look_end(report_run *r, int most_ms)
{
    if (r->looker == 0)
        return;
    pid_t pid = (pid_t) r->looker; /* a child, or one of the parent: its number may be another's */
    if (r->ends_one >= 0)
        (void) close(r->ends_one);
    bool ended = r->looker_fd >= 0 && look_wait(r->looker_fd, most_ms);
    if (!ended && r->looker_fd >= 0)
        (void) syscall(SYS_pidfd_send_signal, r->looker_fd, SIGKILL, NULL, 0);
    if (r->looker_fd >= 0)
        (void) close(r->looker_fd);
    r->looker = 0;
    while (waitpid(pid, NULL, ended ? 0 : WNOHANG) < 0 && errno == EINTR)
        ;
}
