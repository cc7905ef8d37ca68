/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A preloaded allocator that fails once, or from then on, when it is armed. */

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void fail_malloc_arm(long at, int on);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *old, size_t bytes);

static atomic_long countdown = -1; /* < 0: never fails */
static atomic_int failing;         /* all allocations fail */
static int goes_on;

/** The allocation number `at` (1: the next one) fails; with `on`, all after it, too. */
void
fail_malloc_arm(long at, int on)
{
    goes_on = on;
    atomic_store(&countdown, at);
}

static int
fails(void)
{
    if (atomic_load(&failing))
        return 1;
    if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 1)
        return 0;
    if (goes_on)
        atomic_store(&failing, 1);
    else
        atomic_store(&countdown, -1);
    return 1;
}

void *
malloc(size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, bytes);
}

void *
realloc(void *old, size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, bytes);
}
