/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout_support.h"

/*
 * Printed, not asserted: how the index does on the patterns that it was made for. The only
 * assertion on time is a generous one against anything quadratic. ESDM_SPEED=1 in the environment
 * measures the full sizes (200,000 fragments), otherwise a twentieth.
 */

static bool full;

static uint64_t
scaled(uint64_t n)
{
    return full ? n : n / 20;
}

#define LIMIT_MS 5000.0

static const esdm__pack_name *pack_a;
static const esdm__pack_name *pack_b;

static void
add(esdm__index *index, uint32_t rank, const uint64_t *lo, const uint64_t *n, uint64_t i)
{
    esdm__fragment f = {.raw_bytes = 400, .stored_bytes = 500, .head_bytes = 80};
    esdm__box_set(&f.box, rank, lo, n);
    f.pack = i & 1 ? pack_a : pack_b; /* two pool threads */
    f.position = i / 2 * 500;
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
}

static esdm__index *
new_index(uint32_t rank)
{
    esdm__index *index = esdm__index_new(rank);
    pack_a = esdm__index_pack(index, "scratch", "0123456789abcdef0123456789abcdef-00112233-1");
    pack_b = esdm__index_pack(index, "scratch", "0123456789abcdef0123456789abcdef-00112233-2");
    return index;
}

static uint64_t
plan_elements(const esdm__plan *plan)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->npieces; i++)
        n += esdm__box_elements(&plan->pieces[i].part);
    return n;
}

/* Reads everything from pending fragments, commits, opens again, reads everything. */
static void
measure(const char *name, esdm__index *index, uint32_t rank, const uint64_t *size)
{
    store s = {0};
    esdm__box all;
    esdm__plan plan;
    esdm__box_set(&all, rank, NULL, size);

    double start = now_ms();
    store_resolve(&s, index, &all, &plan);
    double pending = now_ms() - start;
    uint64_t elements = plan_elements(&plan);
    esdm__plan_clear(&plan);

    start = now_ms();
    store_commit(&s, index, true);
    double commit = now_ms() - start;
    esdm__index_free(index);
    size_t bytes = 0;
    for (size_t i = 0; i < s.count; i++)
        bytes += s.pages[i].bytes;

    start = now_ms();
    index = store_open(&s, rank);
    double open = now_ms() - start;
    start = now_ms();
    uint64_t *missing;
    size_t count;
    assert_int_equal(esdm__index_missing(index, &all, &missing, &count, NULL), ESDM_OK);
    store_load(&s, index, missing, count);
    free(missing);
    double load = now_ms() - start;
    start = now_ms();
    assert_int_equal(esdm__index_resolve(index, &all, &plan, NULL), ESDM_OK);
    double resolve = now_ms() - start;
    size_t pieces = plan.npieces;
    assert_int_equal(plan_elements(&plan), elements);
    size_t memory = esdm__index_memory_bytes(index);
    start = now_ms();
    esdm__plan_clear(&plan);
    double clear = now_ms() - start;

    print_message("%-26s %7zu pieces | resolve pending %6.1f ms, commit %6.1f | %3zu pages "
                  "%5.2f MB | open %.2f, load %5.1f, resolve %6.1f, clear %4.1f | %.1f MB\n",
                  name, pieces, pending, commit, s.count, (double) bytes / 1e6, open, load, resolve,
                  clear, (double) memory / 1e6);
    assert_true(pending < LIMIT_MS && commit < LIMIT_MS && resolve < LIMIT_MS);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_speed__steps_of_a_time_series(void **state)
{
    (void) state;
    const uint64_t n = scaled(200000);
    esdm__index *index = new_index(3);
    for (uint64_t i = 0; i < n; i++)
        add(index, 3, (const uint64_t[]){i, 0, 0}, (const uint64_t[]){1, 180, 360}, i);
    measure("steps", index, 3, (const uint64_t[]){n, 180, 360});
}

static void
test_speed__a_grid_in_random_order(void **state)
{
    (void) state;
    const uint64_t side = full ? 21 : 10; /* 194,481 */
    esdm__index *index = new_index(4);
    const uint64_t cells = side * side * side * side;
    for (uint64_t k = 0; k < cells; k++) {
        uint64_t i = k * 100003 % cells;
        const uint64_t lo[4] = {i % side, i / side % side * 2, i / side / side % side * 30,
                                i / side / side / side * 30};
        add(index, 4, lo, (const uint64_t[]){1, 2, 30, 30}, k);
    }
    measure("grid, random order", index, 4,
            (const uint64_t[]){side, side * 2, side * 30, side * 30});
}

static void
test_speed__everything_written_twice(void **state)
{
    (void) state;
    const uint64_t n = scaled(200000);
    esdm__index *index = new_index(2);
    for (uint64_t i = 0; i < 2 * n; i++)
        add(index, 2, (const uint64_t[]){i % n, 0}, (const uint64_t[]){1, 100}, i);
    measure("every step twice", index, 2, (const uint64_t[]){n, 100});
}

static void
test_speed__one_slab_again_and_again(void **state)
{
    (void) state;
    const uint64_t n = scaled(200000);
    esdm__index *index = new_index(2);
    for (uint64_t i = 0; i < n; i++)
        add(index, 2, (const uint64_t[]){3, 0}, (const uint64_t[]){1, 100}, i);
    measure("one slab rewritten", index, 2, (const uint64_t[]){10, 100});
}

static void
test_speed__small_writes_over_a_large_one(void **state)
{
    (void) state;
    const uint64_t side = full ? 440 : 100;
    esdm__index *index = new_index(2);
    add(index, 2, (const uint64_t[]){0, 0}, (const uint64_t[]){3 * side, 3 * side}, 0);
    for (uint64_t i = 0; i < side * side; i++)
        add(index, 2, (const uint64_t[]){i / side * 3, i % side * 3}, (const uint64_t[]){2, 2}, i);
    measure("small over one large", index, 2, (const uint64_t[]){3 * side, 3 * side});
}

static void
test_speed__halos(void **state)
{
    (void) state;
    const uint64_t side = full ? 440 : 100;
    esdm__index *index = new_index(2);
    for (uint64_t i = 0; i < side * side; i++)
        add(index, 2, (const uint64_t[]){i / side * 8, i % side * 8}, (const uint64_t[]){10, 10},
            i);
    measure("tiles with halos", index, 2, (const uint64_t[]){8 * side + 2, 8 * side + 2});
}

static void
test_speed__nested_boxes(void **state)
{
    (void) state;
    const uint64_t n = scaled(100000);
    for (int growing = 0; growing < 2; growing++) {
        esdm__index *index = new_index(1);
        for (uint64_t i = 0; i < n; i++)
            add(index, 1, (const uint64_t[]){0}, (const uint64_t[]){growing ? i + 1 : n - i}, i);
        measure(growing ? "nested, growing" : "nested, shrinking", index, 1, (const uint64_t[]){n});
    }
}

static void
test_speed__sliding_windows(void **state)
{
    (void) state;
    const uint64_t n = scaled(100000);
    esdm__index *index = new_index(1);
    for (uint64_t i = 0; i < n; i++)
        add(index, 1, &i, (const uint64_t[]){1000}, i);
    measure("sliding windows", index, 1, (const uint64_t[]){n + 999});
}

static void
test_speed__rows_over_columns(void **state)
{
    (void) state;
    const uint64_t n = full ? 500 : 120;
    esdm__index *index = new_index(2);
    for (uint64_t i = 0; i < n; i++)
        add(index, 2, (const uint64_t[]){0, 2 * i}, (const uint64_t[]){2 * n, 1}, i);
    for (uint64_t i = 0; i < n; i++)
        add(index, 2, (const uint64_t[]){2 * i, 0}, (const uint64_t[]){1, 2 * n}, i);
    measure("rows over columns", index, 2, (const uint64_t[]){2 * n, 2 * n});
}

static void
test_speed__random_boxes(void **state)
{
    (void) state;
    const uint64_t n = scaled(100000);
    esdm__index *index = new_index(3);
    rng r = {7};
    for (uint64_t i = 0; i < n; i++) {
        esdm__box box;
        random_box(&r, 3, (const uint64_t[]){1000, 1000, 1000}, &box);
        for (uint32_t d = 0; d < 3; d++)
            box.n[d] = 1 + box.n[d] / 20;
        add(index, 3, box.lo, box.n, i);
    }
    measure("random boxes", index, 3, (const uint64_t[]){1000, 1000, 1000});
}

/* One small request after the other, while pending, and from pages. */
static void
test_speed__single_steps(void **state)
{
    (void) state;
    const uint64_t n = scaled(100000);
    store s = {0};
    esdm__index *index = new_index(4);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; round == 0 && i < n; i++)
            add(index, 4, (const uint64_t[]){i, 0, 0, 0}, (const uint64_t[]){1, 32, 180, 360}, i);
        double start = now_ms();
        for (uint64_t i = 0; i < n; i++) {
            esdm__box box;
            esdm__plan plan;
            uint64_t *missing;
            size_t count;
            esdm__box_set(&box, 4, (const uint64_t[]){i, 3, 90, 180},
                          (const uint64_t[]){1, 1, 1, 1});
            assert_int_equal(esdm__index_missing(index, &box, &missing, &count, NULL), ESDM_OK);
            assert_int_equal(esdm__index_resolve(index, &box, &plan, NULL), ESDM_OK);
            assert_int_equal(plan.npieces, 1);
            assert_true(plan.covered);
            esdm__plan_clear(&plan);
        }
        print_message("one point of one fragment, %s: %.3f us\n", round == 0 ? "pending" : "pages",
                      (now_ms() - start) / (double) n * 1e3);
        if (round == 0)
            store_commit(&s, index, true);
    }
    esdm__index_free(index);

    index = new_index(4); /* write a step, read it back, and so on */
    double start = now_ms();
    for (uint64_t i = 0; i < n; i++) {
        esdm__box box;
        esdm__plan plan;
        add(index, 4, (const uint64_t[]){i, 0, 0, 0}, (const uint64_t[]){1, 32, 180, 360}, i);
        esdm__box_set(&box, 4, (const uint64_t[]){i, 3, 90, 180}, (const uint64_t[]){1, 1, 1, 1});
        assert_int_equal(esdm__index_resolve(index, &box, &plan, NULL), ESDM_OK);
        assert_int_equal(plan.npieces, 1);
        esdm__plan_clear(&plan);
    }
    print_message("add a fragment and read it: %.3f us\n", (now_ms() - start) / (double) n * 1e3);
    esdm__index_free(index);
    store_clear(&s);
}

int
main(void)
{
    full = getenv("ESDM_SPEED") != NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speed__steps_of_a_time_series),
        cmocka_unit_test(test_speed__a_grid_in_random_order),
        cmocka_unit_test(test_speed__everything_written_twice),
        cmocka_unit_test(test_speed__one_slab_again_and_again),
        cmocka_unit_test(test_speed__small_writes_over_a_large_one),
        cmocka_unit_test(test_speed__halos),
        cmocka_unit_test(test_speed__nested_boxes),
        cmocka_unit_test(test_speed__sliding_windows),
        cmocka_unit_test(test_speed__rows_over_columns),
        cmocka_unit_test(test_speed__random_boxes),
        cmocka_unit_test(test_speed__single_steps),
    };
    return cmocka_run_group_tests_name("layout.speed", tests, NULL, NULL);
}
