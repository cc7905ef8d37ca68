/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What rules look at: totals of requests by target, and the last requests. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "monitor/parts.h"

#define THREADS 4
#define EACH    20000

/* Whose parts belong together, so that one that is torn is seen. */
static esdm__record
record_of(uint64_t id)
{
    return (esdm__record){.id = id,
                          .cause = id + 1,
                          .start_ns = id + 2,
                          .ns = id + 3,
                          .bytes = id + 4,
                          .stored_bytes = id + 5,
                          .object = (uint32_t) id + 6,
                          .kind = ESDM__SPAN_FETCH,
                          .detail = (char *) 1};
}

static void
assert_whole(const esdm__record *r)
{
    uint64_t id = r->id;
    assert_true(r->cause == id + 1 && r->start_ns == id + 2 && r->ns == id + 3 &&
                r->bytes == id + 4 && r->stored_bytes == id + 5 && r->object == (uint32_t) id + 6);
    assert_null(r->detail);
}

typedef struct writer {
    esdm__recent *recent;
    uint64_t first;
} writer;

static void *
write_many(void *argument)
{
    const writer *w = argument;
    for (uint64_t i = 0; i < EACH; i++) {
        esdm__record r = record_of(w->first + i);
        esdm__recent_put(w->recent, &r);
    }
    return NULL;
}

static void
test_recent__the_last_ones_are_kept_in_order(void **state)
{
    (void) state;
    esdm__recent *recent = esdm__recent_new(ESDM__RECENT_MOST);
    esdm__record r;
    assert_non_null(recent);
    assert_false(esdm__recent_take(recent, &r));
    for (uint64_t id = 1; id <= 3000; id++) {
        r = record_of(id);
        esdm__recent_put(recent, &r);
    }
    for (uint64_t id = 3000 - ESDM__RECENT_MOST + 1; id <= 3000; id++) {
        assert_true(esdm__recent_take(recent, &r));
        assert_int_equal(id, r.id);
        assert_whole(&r);
    }
    assert_false(esdm__recent_take(recent, &r));
    r = record_of(7);
    esdm__recent_put(recent, &r);
    assert_true(esdm__recent_take(recent, &r) && r.id == 7);
    assert_false(esdm__recent_take(recent, &r));
    esdm__recent_free(recent);
    esdm__recent_free(NULL);
}

/* While others write and overwrite, what is taken is whole, each at most once. */
static void
test_recent__many_writers(void **state)
{
    (void) state;
    esdm__recent *recent = esdm__recent_new(ESDM__RECENT_MOST);
    pthread_t threads[THREADS];
    writer writers[THREADS];
    uint64_t last[THREADS] = {0}, taken = 0;
    esdm__record r;
    assert_non_null(recent);
    for (size_t t = 0; t < THREADS; t++) {
        writers[t] = (writer){recent, 1 + t * EACH};
        assert_int_equal(0, pthread_create(&threads[t], NULL, write_many, &writers[t]));
    }
    for (size_t ended = 0; ended <= THREADS; ended++) {
        if (ended < THREADS)
            assert_int_equal(0, pthread_join(threads[ended], NULL));
        while (esdm__recent_take(recent, &r)) {
            size_t t = (r.id - 1) / EACH;
            assert_whole(&r);
            assert_true(t < THREADS && r.id > last[t]);
            last[t] = r.id;
            taken++;
        }
    }
    assert_true(taken >= ESDM__RECENT_MOST / 2 && taken <= (uint64_t) THREADS * EACH);
    esdm__recent_free(recent);
}

static void
add(esdm__objects *objects, const char *dataset, const char *target, esdm__span_kind kind,
    uint64_t bytes)
{
    const esdm__record r = {.object = esdm__objects_find(objects, "c", dataset, target),
                            .kind = (int16_t) kind,
                            .bytes = bytes,
                            .ns = 10,
                            .pieces = 1};
    int request = esdm__request_index(kind);
    esdm__objects_add(objects, &r);
    if (request >= 0)
        esdm__objects_add_total(objects, &r, request);
}

/* Rules look at as many numbers as there are targets, whatever the number of datasets. */
static void
test_objects__totals_by_target(void **state)
{
    (void) state;
    esdm__objects *o = calloc(1, sizeof *o);
    assert_non_null(o);
    assert_true(esdm__objects_init(o));
    for (int i = 0; i < 5000; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "/v%d", i);
        add(o, name, i % 2 == 0 ? "disk" : "tape", ESDM__SPAN_FETCH, 3);
        add(o, name, NULL, ESDM__SPAN_READ, 3);
    }
    add(o, NULL, NULL, ESDM__SPAN_CATALOG, 0);
    assert_int_equal(3, atomic_load(&o->ntargets));
    assert_string_equal("disk", o->targets[1]);
    assert_string_equal("tape", o->targets[2]);
    /* Those beyond the bound of objects have no target any more. */
    uint64_t disk = atomic_load(&o->totals[1][0].count), tape = atomic_load(&o->totals[2][0].count);
    assert_true(disk > 1000 && tape > 1000 && disk + tape < 5000);
    assert_int_equal(5000, disk + tape + atomic_load(&o->totals[0][0].count));
    assert_int_equal(3 * disk, atomic_load(&o->totals[1][0].bytes));
    assert_int_equal(10 * tape, atomic_load(&o->totals[2][0].ns));
    assert_int_equal(1, atomic_load(&o->totals[0][4].count));
    assert_int_equal(0, atomic_load(&o->totals[1][1].count));
    esdm__objects_clear(o);
    free(o);
}

static void
test_objects__too_many_targets_are_not_mixed(void **state)
{
    (void) state;
    esdm__objects *o = calloc(1, sizeof *o);
    assert_non_null(o);
    assert_true(esdm__objects_init(o));
    for (int i = 0; i < 200; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "t%d", i);
        add(o, NULL, name, ESDM__SPAN_APPEND, 1);
    }
    assert_int_equal(ESDM__TARGETS_MAX, atomic_load(&o->ntargets));
    assert_int_equal(0, atomic_load(&o->totals[0][1].count));
    for (unsigned i = 1; i < ESDM__TARGETS_MAX; i++)
        assert_int_equal(1, atomic_load(&o->totals[i][1].count));
    esdm__objects_clear(o);
    free(o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recent__the_last_ones_are_kept_in_order),
        cmocka_unit_test(test_recent__many_writers),
        cmocka_unit_test(test_objects__totals_by_target),
        cmocka_unit_test(test_objects__too_many_targets_are_not_mixed),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
