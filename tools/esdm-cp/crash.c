/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A damaged file can crash the library that reads it. Tools that read files in their own process
 * name the file then, and end as after other errors. */
#include "esdm-cp/esdm-cp.h"

#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What libnetcdf reads now; NULL: nothing. One thread at a time does. */
static const char *volatile in_hand;
static int exit_status;

void
cp_crash_at(const char *name)
{
    in_hand = name;
}

static struct iovec
part(const char *text)
{
    return (struct iovec){.iov_base = (void *) text, .iov_len = strlen(text)}; /* not written to */
}

static void
tell_and_end(int number)
{
    const char *name = in_hand;
    in_hand = NULL; /* a second one ends the process as usual */
    if (name == NULL) {
        (void) raise(number); /* the default again: SA_RESETHAND */
        return;
    }
    const struct iovec parts[] = {part(tool.name),
                                  part(": "),
                                  part(name),
                                  part(": the NetCDF library crashed when it read this (signal "),
                                  part(number == SIGSEGV   ? "11: segmentation fault"
                                       : number == SIGABRT ? "6: aborted"
                                       : number == SIGBUS  ? "7: bus error"
                                                           : "8: arithmetic"),
                                  part("); is the file damaged? \"ncdump\" may tell\n")};
    (void) !writev(STDERR_FILENO, parts, (int) (sizeof parts / sizeof *parts));
    _exit(exit_status);
}

void
cp_tell_crashes(int status)
{
    static char memory[16384]; /* the stack may be what has run out */
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = tell_and_end,
                               .sa_flags = (int) (SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};
    exit_status = status;
    (void) sigemptyset(&action.sa_mask);
    (void) sigaltstack(&stack, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        (void) sigaction(signals[i], &action, NULL);
}
