/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Starts the program as a child, which ends when esdm-run is killed, and passes signals on to it.
 * What the terminal or kill() sends to the whole process group, or a batch system to each process,
 * has reached the program already: a process beside it, the witness, that does nothing but wait for
 * signals tells whether it had the same one.
 */
#include "esdm-run/esdm-run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS    65
#define WITNESS_MS 50 /* that a signal may come to the witness earlier or later than to us */

static volatile sig_atomic_t child;
static volatile sig_atomic_t witness;
static _Atomic uint64_t *seen; /* by the witness: when each signal came last; NULL: no witness */

static const int passed[] = {SIGTERM, SIGHUP,  SIGUSR1, SIGUSR2, SIGINT,
                             SIGQUIT, SIGXCPU, SIGCONT, SIGALRM};
#define PASSED (sizeof passed / sizeof passed[0])

typedef struct signals {
    struct sigaction passed[PASSED], of_children;
} signals;

void
report_ignore_signals(void)
{
    for (size_t i = 0; i < PASSED; i++)
        (void) signal(passed[i], SIG_IGN);
}

void
report_close_from(int fd)
{
#ifdef SYS_close_range /* Linux 5.9 */
    if (syscall(SYS_close_range, (unsigned) fd, ~0u, 0u) == 0)
        return;
#endif
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (all != NULL && (entry = readdir(all)) != NULL) {
        int one = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && one >= fd && one != dirfd(all))
            (void) close(one);
    }
    if (all != NULL)
        (void) closedir(all);
    else
        for (; fd < 1024; fd++)
            (void) close(fd);
}

/* ---- who else had a signal --------------------------------------------------------------------
 */

/* Who sends signals by name (pkill, killall) means esdm-run, or the program: the witness has the
 * program's arguments, and a name of its own. */
static void
be_called_as_program(char *const *arguments)
{
    char *own = program_invocation_name; /* where the arguments begin */
    char *first = arguments[0], *end = first;
    for (size_t i = 0; arguments[i] != NULL; i++)
        end = arguments[i] + strlen(arguments[i]) + 1;
    (void) prctl(PR_SET_NAME, "signal-witness");
    /* pidof also compares what processes run; of this one only root may know it then. */
    (void) prctl(PR_SET_DUMPABLE, 0);
    if (first <= own || end < first)
        return;
    (void) memmove(own, first, (size_t) (end - first));
    (void) memset(own + (end - first), 0, (size_t) (first - own));
}

/* All signals are blocked here; they are kept for sigwaitinfo(). */
_Noreturn static void
be_witness(void)
{
    sigset_t set;
    (void) sigemptyset(&set);
    for (size_t i = 0; i < PASSED; i++)
        (void) sigaddset(&set, passed[i]);
    report_close_from(0);
    for (;;) {
        int number = sigwaitinfo(&set, NULL);
        if (number > 0 && number < SIGNALS)
            atomic_store(&seen[number], look_now_ns());
    }
}

/* Has this process end with its parent. */
static void
end_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(128 + SIGKILL);
}

/* Without one, signals to the group come twice. */
static void
begin_witness(pid_t parent, char *const *arguments)
{
    void *page = mmap(NULL, SIGNALS * sizeof *seen, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    seen = page;
    pid_t pid = fork();
    if (pid == 0) {
        end_with(parent);
        be_called_as_program(arguments);
        be_witness();
    }
    if (pid < 0)
        seen = NULL;
    else
        witness = pid;
}

static void
end_witness(void)
{
    pid_t pid = (pid_t) witness;
    witness = 0;
    if (pid <= 0)
        return;
    (void) kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* A program that left the group has not had it. A second signal to esdm-run alone that comes within
 * WITNESS_MS of one to all is taken for that. */
static bool
had_by_program(int number, bool by_terminal)
{
    if (getpgid((pid_t) child) != getpgrp())
        return false;
    if (by_terminal)
        return true;
    uint64_t now_ns = look_now_ns();
    for (unsigned ms = 0; witness > 0 && ms <= WITNESS_MS; ms++) {
        const struct timespec step = {.tv_nsec = 1000000};
        if (atomic_load(&seen[number]) + WITNESS_MS * UINT64_C(1000000) > now_ns)
            return true;
        (void) nanosleep(&step, NULL);
    }
    return false;
}

/* ---- passing on -------------------------------------------------------------------------------
 */

static void
pass_on(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    (void) context;
    bool by_terminal = info->si_code > 0 && (number == SIGINT || number == SIGQUIT);
    if (child > 0 && !had_by_program(number, by_terminal))
        (void) kill((pid_t) child, number);
    errno = saved;
}

/* What is ignored (nohup) stays so. @param ret_before for the program */
static void
set_signals(signals *ret_before)
{
    struct sigaction pass = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct sigaction usual = {.sa_handler = SIG_DFL}; /* otherwise nobody can wait for children */
    for (size_t i = 0; i < PASSED; i++) {
        (void) sigaction(passed[i], NULL, &ret_before->passed[i]);
        if (ret_before->passed[i].sa_handler != SIG_IGN)
            (void) sigaction(passed[i], &pass, NULL);
    }
    (void) sigaction(SIGCHLD, &usual, &ret_before->of_children);
}

static void
reset_signals(const signals *before)
{
    for (size_t i = 0; i < PASSED; i++)
        (void) sigaction(passed[i], &before->passed[i], NULL);
    (void) sigaction(SIGCHLD, &before->of_children, NULL);
}

int
signals_fork_program(char *const *arguments)
{
    signals before;
    sigset_t all, mask;
    pid_t parent = getpid();
    (void) sigfillset(&all);
    (void) sigprocmask(SIG_BLOCK, &all, &mask);
    set_signals(&before);
    begin_witness(parent, arguments);
    pid_t pid = fork();
    if (pid < 0)
        end_witness();
    if (pid <= 0)
        reset_signals(&before);
    else
        child = pid;
    if (pid == 0)
        end_with(parent);
    (void) sigprocmask(SIG_SETMASK, &mask, NULL);
    return pid;
}

void
signals_program_ended(void)
{
    child = 0;
    end_witness();
}
