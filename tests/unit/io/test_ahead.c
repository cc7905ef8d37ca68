/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What is asked for ahead: read by other threads, bounded, dropped, never wrong, and nothing of a
 * forked child. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/session/ahead.h"

enum { KIB = 1024, THREADS = 4 };

static esdm_data_plugin plugin = {.concurrency = THREADS};
static esdm__target target = {.plugin = &plugin, .name = "far"};

/* A server that answers when it is told to. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned asked;
static bool answers;
static bool fails;

static esdm_status
read_slowly(void *user, esdm__target *from, const char *pack, const esdm_range *range,
            esdm_error *err)
{
    (void) user, (void) from, (void) pack, (void) err;
    (void) pthread_mutex_lock(&lock);
    asked++;
    (void) pthread_cond_broadcast(&changed);
    while (!answers)
        (void) pthread_cond_wait(&changed, &lock);
    bool bad = fails;
    (void) pthread_mutex_unlock(&lock);
    for (uint64_t i = 0; i < range->bytes; i++)
        ((uint8_t *) range->buffer)[i] = (uint8_t) (range->position + i);
    return bad ? ESDM_EIO : ESDM_OK;
}

static void
wait_for(unsigned count)
{
    (void) pthread_mutex_lock(&lock);
    while (asked < count)
        (void) pthread_cond_wait(&changed, &lock);
    (void) pthread_mutex_unlock(&lock);
}

static void
answer(bool now, bool badly)
{
    (void) pthread_mutex_lock(&lock);
    answers = now;
    fails = badly;
    (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&lock);
}

static esdm__ahead *
new_ahead(void)
{
    asked = 0;
    answer(false, false);
    esdm__ahead *ahead = esdm__ahead_new(THREADS, 100 * KIB, read_slowly, NULL);
    assert_non_null(ahead);
    assert_true(esdm__ahead_is_empty(ahead));
    return ahead;
}

static bool
ask(esdm__ahead *ahead, uint64_t position, uint64_t bytes, uint64_t turn)
{
    return esdm__ahead_ask(ahead, &(esdm__ahead_want){.target = &target,
                                                      .pack = "a",
                                                      .position = position,
                                                      .bytes = bytes,
                                                      .owner = &target,
                                                      .turn = turn});
}

static bool
take(esdm__ahead *ahead, const char *pack, uint64_t position, uint64_t bytes)
{
    uint8_t data[KIB] = {0};
    bool taken = esdm__ahead_take(ahead, &target, pack, &(esdm_range){position, bytes, data});
    for (uint64_t i = 0; i < bytes && taken; i++)
        assert_int_equal(data[i], (uint8_t) (position + i));
    return taken;
}

static void
test_ahead__many_requests_are_under_way_at_once(void **state)
{
    (void) state;
    esdm__ahead *ahead = new_ahead();
    for (uint64_t i = 0; i < THREADS; i++)
        assert_true(ask(ahead, i * KIB, KIB, i));
    wait_for(THREADS);
    answer(true, false);
    for (uint64_t i = 0; i < THREADS; i++)
        assert_true(take(ahead, "a", i * KIB + 10, 100));
    assert_false(take(ahead, "a", KIB - 10, 20)); /* of two: the caller reads for itself */
    assert_false(take(ahead, "b", 0, 10));
    assert_int_equal(asked, THREADS);
    esdm__ahead_free(ahead);
}

static void
test_ahead__memory_is_bounded_and_dropped_turns_make_room(void **state)
{
    (void) state;
    esdm__ahead *ahead = new_ahead();
    answer(true, false);
    assert_true(ask(ahead, 0, 60 * KIB, 1));
    assert_true(ask(ahead, 100 * KIB, 40 * KIB, 2));
    wait_for(2);
    assert_false(ask(ahead, 200 * KIB, 1, 3));
    assert_true(ask(ahead, 10, 100, 3)); /* is held already */
    assert_true(take(ahead, "a", 0, 100));
    assert_true(take(ahead, "a", 100 * KIB, 100));
    esdm__ahead_drop(ahead, &target, 0, 3);
    assert_true(take(ahead, "a", 0, 100)); /* the third turn wants it too */
    assert_true(ask(ahead, 300 * KIB, 40 * KIB, 4));
    wait_for(3);
    esdm__ahead_drop(ahead, &plugin, 0, UINT64_MAX); /* of somebody else */
    assert_true(take(ahead, "a", 300 * KIB, 100));
    assert_true(take(ahead, "a", 100 * KIB, 10) == false); /* its turn is over */
    assert_true(take(ahead, "a", 0, 10));                  /* all have arrived */
    esdm__ahead_drop(ahead, &target, 0, UINT64_MAX);
    assert_true(esdm__ahead_is_empty(ahead));
    assert_true(ask(ahead, 0, 100 * KIB, 1));
    esdm__ahead_free(ahead);
}

static void
test_ahead__what_nobody_has_begun_is_left_to_the_caller(void **state)
{
    (void) state;
    esdm__ahead *ahead = new_ahead();
    for (uint64_t i = 0; i < THREADS + 1; i++)
        assert_true(ask(ahead, i * KIB, KIB, i));
    wait_for(THREADS);
    assert_false(take(ahead, "a", THREADS * KIB, 10));
    esdm__ahead_drop(ahead, &target, 0, UINT64_MAX); /* while it is read */
    assert_false(take(ahead, "a", 0, 10));
    answer(true, false);
    esdm__ahead_free(ahead);
    assert_int_equal(asked, THREADS);
}

static void
test_ahead__failures_are_the_callers_to_find(void **state)
{
    (void) state;
    esdm__ahead *ahead = new_ahead();
    assert_true(ask(ahead, 0, KIB, 1));
    wait_for(1);
    answer(true, true);
    assert_false(take(ahead, "a", 0, 10));
    assert_true(esdm__ahead_is_empty(ahead));
    assert_false(ask(ahead, 0, 101 * KIB, 1));
    assert_false(ask(ahead, 0, 0, 1));
    esdm__ahead_free(ahead);
    esdm__ahead_free(NULL);
}

/* ---- forks while another thread has the lock of all ---------------------------------------- */

static int
exit_code_of(pid_t child)
{
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* What a child does that was forked amid the end of its parent. Never returns. */
static void
work_in_child(void)
{
    (void) alarm(5);
    esdm__ahead *ahead = esdm__ahead_new(THREADS, 100 * KIB, read_slowly, NULL);
    bool good = ahead != NULL && esdm__ahead_is_empty(ahead);
    esdm__ahead_free(ahead);
    _exit(good ? 0 : 1);
}

/* Ends the process, with what its child came to. */
static void *
fork_amid_the_end(void *ahead)
{
    for (uint64_t i = 1; ask(ahead, i * KIB, 1, i); i++) /* until the end has begun */
        (void) usleep(1000);
    pid_t child = fork();
    if (child == 0)
        work_in_child();
    _exit(exit_code_of(child));
}

/* A process that ends has the lock until its requests have ended, which this one never does. */
static void
end_with_a_request(void)
{
    pthread_t thread;
    esdm__ahead *ahead = esdm__ahead_new(1, UINT64_MAX, read_slowly, NULL);
    if (ahead == NULL || !ask(ahead, 0, 1, 1))
        _exit(2);
    wait_for(1);
    if (pthread_create(&thread, NULL, fork_amid_the_end, ahead) != 0)
        _exit(2);
    exit(3); /* the other thread is faster */
}

static void
test_ahead__children_have_the_lock_of_nobody(void **state)
{
    (void) state;
    esdm__ahead_free(new_ahead()); /* the server answers nobody */
    (void) fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        end_with_a_request();
    assert_int_equal(exit_code_of(child), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ahead__many_requests_are_under_way_at_once),
        cmocka_unit_test(test_ahead__memory_is_bounded_and_dropped_turns_make_room),
        cmocka_unit_test(test_ahead__what_nobody_has_begun_is_left_to_the_caller),
        cmocka_unit_test(test_ahead__failures_are_the_callers_to_find),
        cmocka_unit_test(test_ahead__children_have_the_lock_of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
