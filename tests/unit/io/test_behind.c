/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The queue of what is stored behind a program, where its thread cannot be started (a limit
 * of processes). */
#include "io/session/behind.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

#define BYTES UINT64_C(50)

static bool broken;

/* In the place of the C library's. */
int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
               void *user)
{
    (void) thread, (void) attributes, (void) function, (void) user;
    return EAGAIN;
}

static esdm_status
store(esdm__job *job, esdm_error *err)
{
    (void) job;
    return broken ? esdm__error_set(err, ESDM_EIO, "the target is away") : ESDM_OK;
}

static void
free_job(esdm__job *job)
{
    free(job);
}

static void
put(esdm__behind *behind, esdm__lane *lane)
{
    esdm__job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    *job = (esdm__job){.bytes = BYTES, .run = store, .free = free_job};
    assert_int_equal(esdm__behind_enter(behind, BYTES, NULL), ESDM_OK);
    esdm__behind_put(behind, lane, job);
}

/* Two jobs, of which the first has failed, fill the memory. */
static esdm__behind *
stuck(esdm__lane *lane)
{
    (void) alarm(60); /* what waits for ever fails */
    esdm__behind *behind = esdm__behind_new(2 * BYTES);
    assert_non_null(behind);
    broken = true;
    put(behind, lane);
    put(behind, lane);
    assert_non_null(lane->why);
    return behind;
}

static void
test_failed_jobs__are_given_up_one_by_one(void **state)
{
    esdm__lane lane = {.count = 0};
    size_t dropped = 0;
    (void) state;
    esdm__behind *behind = stuck(&lane);
    while (esdm__behind_settle(behind, &lane, NULL) != ESDM_OK)
        dropped += esdm__behind_drop(behind, &lane, false, NULL, NULL);
    assert_int_equal(dropped, 2);
    assert_true(esdm__behind_is_empty(behind));
    esdm__behind_free(behind);
}

static void
test_full_memory__is_told_and_comes_free(void **state)
{
    esdm__lane lane = {.count = 0};
    esdm_error error = {0};
    (void) state;
    esdm__behind *behind = stuck(&lane);
    assert_int_equal(esdm__behind_enter(behind, BYTES, &error), ESDM_EIO);
    broken = false;
    put(behind, &lane);
    assert_int_equal(esdm__behind_settle(behind, &lane, NULL), ESDM_OK);
    assert_true(esdm__behind_is_empty(behind));
    esdm__behind_free(behind);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_jobs__are_given_up_one_by_one),
        cmocka_unit_test(test_full_memory__is_told_and_comes_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
