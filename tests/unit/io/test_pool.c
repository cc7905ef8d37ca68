/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
        esdm__pool *pool = esdm__pool_new(threads);
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
    esdm__pool *pool = esdm__pool_new(3);
    static tally t;
    esdm_error err = {0};
    t.fail_at = 10;
    assert_int_equal(ESDM_EIO, esdm__pool_run(pool, 1000, count, &t, &err));
    assert_int_equal(ESDM_EIO, err.status);
    assert_memory_equal("task ", err.message, 5);
    assert_int_equal(0, t.ran[999]);
    esdm__pool_free(pool);
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
    esdm__pool *pool = esdm__pool_new(3);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__runs_each_task_once),
        cmocka_unit_test(test_pool__a_failure_is_reported_and_stops_the_rest),
        cmocka_unit_test(test_pool__serves_many_callers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
