/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The number of the process and random numbers, asked for once, also after each kind of
 *  fork. */

#include "base/own_process.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NUMBERS 200

/* ---- instead of libc's ---------------------------------------------------------------------- */

/* Kernels that follow the advice, know none of it, say yes to all and do nothing, or have followed
 * it in a process that somebody has restored from a checkpoint since. */
enum { FOLLOWS, REFUSES, SAYS_YES, RESTORED, KERNELS };
static int kernel_does;

int
madvise(void *at, size_t bytes, int advice)
{
    if (kernel_does == FOLLOWS)
        return (int) syscall(SYS_madvise, at, bytes, advice);
    bool accepts = kernel_does == SAYS_YES || (kernel_does == RESTORED && advice >= 0);
    errno = EINVAL;
    return accepts ? 0 : -1;
}

/* ---- support -------------------------------------------------------------------------------- */

typedef struct shared {
    pid_t told;
    uint8_t random[NUMBERS][16];
} shared;

static shared *child_has;

/* By fork(), or as libraries do that know nothing of it. */
static pid_t
make_child(int kind)
{
    return kind == 0 ? fork() : (pid_t) syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* What a child has. */
static void
ask_child(int kind)
{
    pid_t child = make_child(kind);
    int status = 0;
    assert_true(child >= 0);
    if (child == 0) {
        child_has->told = esdm__own_pid();
        for (int i = 0; i < NUMBERS; i++)
            esdm__own_random(child_has->random[i], sizeof child_has->random[i]);
        _exit(child_has->told == getpid() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(child_has->told, child);
}

static void
test_own_process__child_has_its_own(void **state)
{
    (void) state;
    uint8_t own[NUMBERS][16];
    child_has =
        mmap(NULL, sizeof *child_has, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(child_has, MAP_FAILED);
    for (int kind = 0; kind < 2; kind++) {
        assert_int_equal(esdm__own_pid(), getpid());
        esdm__own_random(own[0], sizeof own[0]); /* the rest waits for both */
        ask_child(kind);
        assert_int_equal(esdm__own_pid(), getpid());
        for (int i = 0; i < NUMBERS; i++)
            esdm__own_random(own[i], sizeof own[i]);
        /* The halves that no clock is mixed into. */
        for (int i = 0; i < NUMBERS; i++) {
            for (int k = 0; k < NUMBERS; k++) {
                assert_memory_not_equal(own[i] + 8, child_has->random[k] + 8, 8);
                assert_true(i == k || memcmp(own[i] + 8, own[k] + 8, 8) != 0);
            }
        }
    }
}

/* In a process that has asked for nothing yet. @return what waitpid() says; 0: all is well. */
static int
ask_grandchild(int does, int kind)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        uint8_t own[16];
        uint8_t theirs[16];
        int ends[2];
        kernel_does = does;
        bool good = esdm__own_pid() == getpid() && pipe(ends) == 0;
        esdm__own_random(own, sizeof own); /* the rest waits for both */
        pid_t grandchild = make_child(kind);
        if (grandchild == 0) {
            good = good && esdm__own_pid() == getpid();
            esdm__own_random(theirs, sizeof theirs);
            good = good && write(ends[1], theirs, sizeof theirs) == (ssize_t) sizeof theirs;
            _exit(good ? 0 : 1);
        }
        esdm__own_random(own, sizeof own);
        good = good && waitpid(grandchild, &status, 0) == grandchild && status == 0;
        good = good && read(ends[0], theirs, sizeof theirs) == (ssize_t) sizeof theirs &&
               memcmp(own + 8, theirs + 8, 8) != 0;
        _exit(good && esdm__own_pid() == getpid() ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* First of all, as a process asks its kernel once. */
static void
test_own_process__child_has_its_own_whatever_the_kernel_does(void **state)
{
    (void) state;
    for (int does = 0; does < KERNELS; does++) {
        assert_int_equal(ask_grandchild(does, 0), 0);
        if (does != RESTORED) /* which only fork() can make good */
            assert_int_equal(ask_grandchild(does, 1), 0);
    }
}

static void
test_own_process__random_fills_what_is_asked(void **state)
{
    (void) state;
    uint8_t data[3000] = {0};
    static const uint8_t none[sizeof data];
    const size_t sizes[] = {1, 7, 64, 128, 129, 2990};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t seen[64] = {0};
        for (int turn = 0; turn < 64; turn++) { /* one byte may be zero by chance */
            memset(data, 0, sizeof data);
            esdm__own_random(data, sizes[i]);
            assert_memory_equal(data + sizes[i], none, sizeof data - sizes[i]);
            for (size_t k = 0; k < sizes[i] && k < sizeof seen; k++)
                seen[k] |= data[sizes[i] - 1 - k];
        }
        for (size_t k = 0; k < sizes[i] && k < sizeof seen; k++)
            assert_int_not_equal(seen[k], 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_process__child_has_its_own_whatever_the_kernel_does),
        cmocka_unit_test(test_own_process__child_has_its_own),
        cmocka_unit_test(test_own_process__random_fills_what_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
