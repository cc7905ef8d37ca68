/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The bound of memory that all writes share. */
#include "io/session/room.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT 100u

typedef struct crowd {
    esdm__pool *pool;
    esdm__room *room;
    atomic_uint inside; /* bytes */
    atomic_uint most;   /* at once, of those that fit */
    atomic_uint alone;  /* larger ones that had company: must be 0 */
    atomic_uint done;
} crowd;

static void
crowd_init(crowd *c, unsigned threads, unsigned waiting)
{
    *c = (crowd){.pool = esdm__pool_new(threads, waiting)};
    assert_non_null(c->pool);
    c->room = esdm__room_new(LIMIT, c->pool);
    assert_non_null(c->room);
}

static void
crowd_clear(crowd *c)
{
    esdm__pool_free(c->pool);
    esdm__room_free(c->room);
}

static void
pause_us(unsigned us)
{
    struct timespec time = {.tv_nsec = (long) us * 1000};
    (void) nanosleep(&time, NULL);
}

static void
raise_to(atomic_uint *most, unsigned value)
{
    unsigned seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value))
        continue;
}

/* As a reader does: has room, waits for a target, decodes, gives it back. */
static esdm_status
decode(void *context, size_t i, esdm_error *err)
{
    crowd *c = context;
    unsigned bytes = i % 17 == 16 ? 3 * LIMIT : 1 + (unsigned) (i * 37 % 60);
    (void) err;
    uint64_t taken = esdm__room_take(c->room, bytes);
    unsigned inside = atomic_fetch_add(&c->inside, bytes) + bytes;
    if (bytes > LIMIT || inside > LIMIT)
        atomic_fetch_add(&c->alone, inside != bytes);
    else
        raise_to(&c->most, inside);
    if (i % 3 > 0) {
        esdm__pool_wait_begin(c->pool);
        pause_us(200);
        esdm__pool_wait_end(c->pool);
    }
    pause_us(50);
    atomic_fetch_sub(&c->inside, bytes);
    esdm__room_give(c->room, taken);
    atomic_fetch_add(&c->done, 1u);
    return taken == bytes ? ESDM_OK : ESDM_EIO;
}

static void *
caller(void *argument)
{
    crowd *c = argument;
    return esdm__pool_run(c->pool, 100, decode, c, NULL) == ESDM_OK ? NULL : argument;
}

/* Also with targets that answer while others wait for room in their place of the pool. */
static void
test_room__holds_no_more_than_its_limit_and_nobody_waits_for_ever(void **state)
{
    (void) state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        for (unsigned waiting = 0; waiting <= 6; waiting += 3) {
            crowd c;
            pthread_t callers[3];
            crowd_init(&c, threads, waiting);
            for (size_t i = 0; i < 3; i++)
                assert_int_equal(0, pthread_create(&callers[i], NULL, caller, &c));
            for (size_t i = 0; i < 3; i++) {
                void *failed = NULL;
                assert_int_equal(0, pthread_join(callers[i], &failed));
                assert_null(failed);
            }
            assert_int_equal(300, c.done);
            assert_int_equal(0, c.alone);
            assert_true(c.most <= LIMIT);
            assert_true(c.most > 60); /* not one after the other */
            crowd_clear(&c);
        }
    }
}

static atomic_bool large_is_done;

static void *
take_large(void *argument)
{
    crowd *c = argument;
    esdm__room_give(c->room, esdm__room_take(c->room, LIMIT));
    atomic_store(&large_is_done, true);
    return NULL;
}

static void *
take_small(void *argument)
{
    crowd *c = argument;
    for (int i = 0; i < 20000 && !atomic_load(&large_is_done); i++) {
        uint64_t taken = esdm__room_take(c->room, LIMIT / 2);
        pause_us(500);
        esdm__room_give(c->room, taken);
    }
    return atomic_load(&large_is_done) ? NULL : argument;
}

static void
test_room__small_ones_do_not_overtake_for_ever(void **state)
{
    (void) state;
    crowd c;
    pthread_t threads[3];
    crowd_init(&c, 1, 0);
    atomic_store(&large_is_done, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, i < 2 ? take_small : take_large, &c));
    for (size_t i = 0; i < 3; i++) {
        void *failed = NULL;
        assert_int_equal(0, pthread_join(threads[i], &failed));
        assert_null(failed);
    }
    crowd_clear(&c);
}

/* Nobody gives back in a forked child what others had when it was made. */
static void
test_room__a_forked_child_is_not_counted(void **state)
{
    (void) state;
    crowd c;
    int status = 0;
    crowd_init(&c, 2, 0);
    uint64_t taken = esdm__room_take(c.room, LIMIT);
    assert_int_equal(LIMIT, taken);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void) alarm(120);
        _exit(esdm__room_take(c.room, LIMIT) == 0 ? 0 : 1);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    esdm__room_give(c.room, taken);
    crowd_clear(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room__holds_no_more_than_its_limit_and_nobody_waits_for_ever),
        cmocka_unit_test(test_room__small_ones_do_not_overtake_for_ever),
        cmocka_unit_test(test_room__a_forked_child_is_not_counted),
    };
    return cmocka_run_group_tests_name("io.room", tests, NULL, NULL);
}
