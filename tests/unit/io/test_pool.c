/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The pool of threads: tasks, failures, waits within waits. */
#include "io/session/pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cores.h"
#include "base/error.h"

typedef struct tally {
    atomic_uint ran[1000];
    size_t fail_at;
} tally;

static esdm_status
count(void *context, size_t i, esdm_error *err)
{
    tally *t = context;
    atomic_fetch_add(&t->ran[i], 1u);
    if (i >= t->fail_at)
        return esdm__error_set(err, ESDM_EIO, "task %zu", i);
    return ESDM_OK;
}

static void
test_pool__runs_each_task_once(void **state)
{
    (void) state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        esdm__pool *pool = esdm__pool_new(threads, 0);
        static tally t;
        memset(&t, 0, sizeof t);
        t.fail_at = SIZE_MAX;
        assert_int_equal(ESDM_OK, esdm__pool_run(pool, 1000, count, &t, NULL));
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(1, t.ran[i]);
        esdm__pool_free(pool);
    }
}

static void
test_pool__a_failure_is_reported_and_stops_the_rest(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(3, 0);
    static tally t;
    esdm_error err = {0};
    t.fail_at = 10;
    assert_int_equal(ESDM_EIO, esdm__pool_run(pool, 1000, count, &t, &err));
    assert_int_equal(ESDM_EIO, err.status);
    assert_memory_equal("task ", err.message, 5);
    assert_int_equal(0, t.ran[999]);
    esdm__pool_free(pool);
}

/* ---- short tasks -------------------------------------------------------------------------- */

typedef struct callers {
    pthread_t caller;
    size_t slow_from; /* tasks from this one on take a while */
    size_t fail_at;
    atomic_uint by_others;
    atomic_uint ran;
} callers;

static esdm_status
note_thread(void *context, size_t i, esdm_error *err)
{
    callers *c = context;
    struct timespec nap = {.tv_nsec = 2000000};
    atomic_fetch_add(&c->ran, 1u);
    if (!pthread_equal(pthread_self(), c->caller))
        atomic_fetch_add(&c->by_others, 1u);
    if (i >= c->slow_from)
        (void) nanosleep(&nap, NULL);
    return i >= c->fail_at ? esdm__error_set(err, ESDM_EIO, "task %zu", i) : ESDM_OK;
}

static void
test_pool__short_tasks_wake_nobody(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(3, 0);
    bool alone = false;
    for (int attempt = 0; attempt < 50 && !alone; attempt++) { /* a busy machine may stop it */
        callers c = {.caller = pthread_self(), .slow_from = SIZE_MAX, .fail_at = SIZE_MAX};
        assert_int_equal(ESDM_OK, esdm__pool_run_short(pool, 40, note_thread, &c, NULL));
        assert_int_equal(40, c.ran);
        alone = c.by_others == 0;
    }
    assert_true(alone);
    esdm__pool_free(pool);
}

static void
test_pool__short_tasks_that_are_long_are_shared(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(3, 0);
    for (size_t slow_from = 0; slow_from <= 10; slow_from += 10) {
        callers c = {.caller = pthread_self(), .slow_from = slow_from, .fail_at = SIZE_MAX};
        assert_int_equal(ESDM_OK, esdm__pool_run_short(pool, 40, note_thread, &c, NULL));
        assert_int_equal(40, c.ran);
        assert_true(c.by_others > 0);
    }
    esdm__pool_free(pool);
}

static void
test_pool__short_tasks_fail_like_others(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(3, 0);
    for (size_t fail_at = 0; fail_at < 39; fail_at += 13) {
        callers c = {.caller = pthread_self(), .slow_from = 5, .fail_at = fail_at};
        esdm_error err = {0};
        assert_int_equal(ESDM_EIO, esdm__pool_run_short(pool, 40, note_thread, &c, &err));
        assert_memory_equal("task ", err.message, 5);
        assert_true(c.ran < 40);
    }
    esdm__pool_free(pool);
}

/* ---- waiting ------------------------------------------------------------------------------ */

typedef struct waiters {
    esdm__pool *pool;
    atomic_uint working;
    atomic_uint most_working;
    atomic_uint waiting;
    atomic_uint most_waiting;
    unsigned wanted; /* all wait until so many have waited at once */
    atomic_uint done;
} waiters;

static void
raise_to(atomic_uint *most, unsigned value)
{
    unsigned seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value))
        continue;
}

static void
pause_ms(unsigned ms)
{
    struct timespec time = {.tv_nsec = (long) ms * 1000000};
    (void) nanosleep(&time, NULL);
}

/* Works, waits, works. */
static esdm_status
wait_for_answer(void *context, size_t i, esdm_error *err)
{
    waiters *w = context;
    (void) i, (void) err;
    raise_to(&w->most_working, atomic_fetch_add(&w->working, 1u) + 1);
    pause_ms(1);
    atomic_fetch_sub(&w->working, 1u);
    esdm__pool_wait_begin(w->pool);
    raise_to(&w->most_waiting, atomic_fetch_add(&w->waiting, 1u) + 1);
    pause_ms(20);
    for (int k = 0; k < 60000 && atomic_load(&w->most_waiting) < w->wanted; k++)
        pause_ms(1);
    atomic_fetch_sub(&w->waiting, 1u);
    esdm__pool_wait_end(w->pool);
    raise_to(&w->most_working, atomic_fetch_add(&w->working, 1u) + 1);
    pause_ms(1);
    atomic_fetch_sub(&w->working, 1u);
    atomic_fetch_add(&w->done, 1u);
    return ESDM_OK;
}

static void
test_pool__others_work_while_some_wait(void **state)
{
    (void) state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        waiters w = {.pool = esdm__pool_new(threads, 8), .wanted = threads + 1};
        assert_int_equal(ESDM_OK, esdm__pool_run(w.pool, 100, wait_for_answer, &w, NULL));
        assert_int_equal(100, w.done);
        assert_int_equal(0, w.working);
        assert_true(w.most_waiting > threads);      /* that is what it is for */
        assert_true(w.most_waiting <= threads + 8); /* threads that there can be */
        assert_true(w.most_working <= threads + 1); /* one more when the caller comes back */
        esdm__pool_free(w.pool);
    }
}

static void
test_pool__waiting_outside_of_tasks_is_nothing(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(2, 2);
    esdm__pool *other = esdm__pool_new(2, 2);
    waiters w = {.pool = other};
    esdm__pool_wait_begin(pool);
    esdm__pool_wait_end(pool);
    assert_int_equal(ESDM_OK, esdm__pool_run(pool, 10, wait_for_answer, &w, NULL));
    assert_true(w.most_waiting <= 2); /* of another pool: these tasks keep their threads */
    esdm__pool_free(pool);
    esdm__pool_free(other);
}

/* As one who waits for a slow target does, in which it waits for a server. */
static esdm_status
wait_inside_of_waiting(void *context, size_t i, esdm_error *err)
{
    waiters *w = context;
    (void) i, (void) err;
    raise_to(&w->most_working, atomic_fetch_add(&w->working, 1u) + 1);
    atomic_fetch_sub(&w->working, 1u);
    esdm__pool_wait_begin(w->pool);
    esdm__pool_wait_begin(w->pool);
    pause_ms(2);
    esdm__pool_wait_end(w->pool);
    pause_ms(1);
    esdm__pool_wait_end(w->pool);
    raise_to(&w->most_working, atomic_fetch_add(&w->working, 1u) + 1);
    pause_ms(1);
    atomic_fetch_sub(&w->working, 1u);
    atomic_fetch_add(&w->done, 1u);
    return ESDM_OK;
}

static void
test_pool__waits_are_nested(void **state)
{
    (void) state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        waiters w = {.pool = esdm__pool_new(threads, 4)};
        assert_int_equal(ESDM_OK, esdm__pool_run(w.pool, 100, wait_inside_of_waiting, &w, NULL));
        assert_int_equal(100, w.done);
        assert_true(w.most_working <= threads + 1);
        esdm__pool_free(w.pool);
    }
}

static void *
waiting_caller(void *argument)
{
    waiters *w = argument;
    return esdm__pool_run(w->pool, 20, wait_for_answer, w, NULL) == ESDM_OK ? NULL : argument;
}

static void
test_pool__many_callers_wait(void **state)
{
    (void) state;
    waiters w = {.pool = esdm__pool_new(2, 4)};
    pthread_t threads[5];
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, waiting_caller, &w));
    for (size_t i = 0; i < 5; i++) {
        void *failed = NULL;
        assert_int_equal(0, pthread_join(threads[i], &failed));
        assert_null(failed);
    }
    assert_int_equal(100, w.done);
    esdm__pool_free(w.pool);
}

static void *
caller(void *argument)
{
    static _Thread_local tally t;
    t.fail_at = SIZE_MAX;
    for (int round = 0; round < 50; round++) {
        if (esdm__pool_run(argument, 100, count, &t, NULL) != ESDM_OK)
            return argument;
    }
    return t.ran[99] == 50 ? NULL : argument;
}

static void
test_pool__serves_many_callers_at_once(void **state)
{
    (void) state;
    esdm__pool *pool = esdm__pool_new(3, 0);
    pthread_t threads[6];
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, caller, pool));
    for (size_t i = 0; i < 6; i++) {
        void *bad = NULL;
        assert_int_equal(0, pthread_join(threads[i], &bad));
        assert_null(bad);
    }
    esdm__pool_free(pool);
}

/* ---- where threads run -------------------------------------------------------------------- */

typedef struct cores {
    pthread_t caller;
    cpu_set_t usable; /* the caller's */
    atomic_uint others, same;
} cores;

static esdm_status
note_cores(void *context, size_t i, esdm_error *err)
{
    cores *c = context;
    cpu_set_t mine;
    struct timespec nap = {.tv_nsec = 2000000};
    (void) i;
    (void) err;
    (void) nanosleep(&nap, NULL);
    if (pthread_equal(pthread_self(), c->caller))
        return ESDM_OK;
    atomic_fetch_add(&c->others, 1u);
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_EQUAL(&mine, &c->usable))
        atomic_fetch_add(&c->same, 1u);
    return ESDM_OK;
}

static void
check_cores(const cpu_set_t *usable)
{
    cores c = {.caller = pthread_self(), .usable = *usable};
    esdm__pool *pool = esdm__pool_new(3, 0);
    while (atomic_load(&c.others) == 0)
        assert_int_equal(ESDM_OK, esdm__pool_run(pool, 50, note_cores, &c, NULL));
    assert_int_equal(atomic_load(&c.others), atomic_load(&c.same));
    esdm__pool_free(pool);
}

/* They begin elsewhere than their maker, and may then run wherever it may. */
static void
test_pool__threads_may_use_the_cores_of_the_caller(void **state)
{
    (void) state;
    cpu_set_t usable, others, one;
    assert_int_equal(0, sched_getaffinity(0, sizeof usable, &usable));
    check_cores(&usable);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &usable))
            CPU_SET(i, &one);
    assert_int_equal(0, sched_setaffinity(0, sizeof one, &one));
    assert_false(esdm__other_cores(&usable, &others));
    assert_true(CPU_EQUAL(&usable, &one));
    check_cores(&one);
}

#ifdef __GLIBC__
/* What threads are told to begin on: seen here on its way to the system's function. */
static atomic_uint told;
static cpu_set_t begins_on;

int
pthread_attr_setaffinity_np(pthread_attr_t *attributes, size_t bytes, const cpu_set_t *set)
{
    static int (*real)(pthread_attr_t *, size_t, const cpu_set_t *);
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "pthread_attr_setaffinity_np");
    if (atomic_fetch_add(&told, 1) == 0)
        begins_on = *set;
    return real(attributes, bytes, set);
}
#endif

/* Where another thread waits by turning, as OpenBLAS's do after numpy was loaded, the kernel would
 * put a new thread behind its maker: of 20 pools two to five had a second one in time. */
static void
test_pool__threads_begin_away_from_their_maker(void **state)
{
    (void) state;
#ifdef __GLIBC__
    cpu_set_t usable, both;
    assert_int_equal(0, sched_getaffinity(0, sizeof usable, &usable));
    if (CPU_COUNT(&usable) < 2)
        skip();
    atomic_store(&told, 0);
    check_cores(&usable);
    assert_true(atomic_load(&told) >= 1);
    CPU_AND(&both, &begins_on, &usable);
    assert_true(CPU_EQUAL(&both, &begins_on)); /* all but the one on which its maker ran */
    assert_int_equal(CPU_COUNT(&usable) - 1, CPU_COUNT(&begins_on));
#else
    skip();
#endif
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__others_work_while_some_wait),
        cmocka_unit_test(test_pool__waiting_outside_of_tasks_is_nothing),
        cmocka_unit_test(test_pool__waits_are_nested),
        cmocka_unit_test(test_pool__many_callers_wait),
        cmocka_unit_test(test_pool__runs_each_task_once),
        cmocka_unit_test(test_pool__a_failure_is_reported_and_stops_the_rest),
        cmocka_unit_test(test_pool__serves_many_callers_at_once),
        cmocka_unit_test(test_pool__short_tasks_wake_nobody),
        cmocka_unit_test(test_pool__short_tasks_that_are_long_are_shared),
        cmocka_unit_test(test_pool__short_tasks_fail_like_others),
        cmocka_unit_test(test_pool__threads_begin_away_from_their_maker),
        cmocka_unit_test(test_pool__threads_may_use_the_cores_of_the_caller), /* binds this one */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
