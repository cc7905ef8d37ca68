/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Small writes that are gathered in memory. */
#include "io/container/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/copy.h"

#define SIDE 12u

/* What left the gather, painted in order of leaving. */
typedef struct canvas {
    int32_t cells[SIDE][SIDE];
    size_t boxes;
} canvas;

static esdm_status
paint(void *user, const esdm__box *box, void *data, esdm_error *err)
{
    (void) err;
    canvas *c = user;
    const int32_t *values = data;
    c->boxes++;
    for (uint64_t i = 0; i < box->n[0]; i++) {
        for (uint64_t j = 0; j < box->n[1]; j++)
            c->cells[box->lo[0] + i][box->lo[1] + j] = *values++;
    }
    return ESDM_OK;
}

static void
put(esdm__gather *gather, canvas *c, uint64_t i, uint64_t j, uint64_t n, uint64_t m, int32_t value)
{
    int32_t data[SIDE * SIDE];
    for (uint64_t k = 0; k < n * m; k++)
        data[k] = value + (int32_t) k;
    esdm__box box;
    esdm__box_set(&box, 2, (uint64_t[]){i, j}, (uint64_t[]){n, m});
    assert_int_equal(ESDM_OK, esdm__gather_add(gather, &box, data, paint, c, NULL));
}

static void
test_gather__elements_in_c_order_become_one_box(void **state)
{
    (void) state;
    esdm__gather gather;
    canvas c = {0};
    esdm__gather_init(&gather, ESDM_TYPE_INT32, 4, 1u << 20);
    for (uint32_t i = 0; i < SIDE; i++) {
        for (uint32_t j = 0; j < SIDE; j++)
            put(&gather, &c, i, j, 1, 1, (int32_t) (100 * i + j));
    }
    assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, paint, &c, NULL));
    assert_int_equal(1, c.boxes);
    for (uint32_t i = 0; i < SIDE; i++) {
        for (uint32_t j = 0; j < SIDE; j++)
            assert_int_equal(100 * i + j, c.cells[i][j]);
    }
    assert_true(esdm__gather_is_empty(&gather));
}

/* Rows that follow each other, each by either way: the same box. */
static void
test_gather__rows_continue(void **state)
{
    (void) state;
    esdm__gather gather;
    canvas c = {0};
    uint32_t copied = 0;
    esdm__gather_init(&gather, ESDM_TYPE_INT32, 4, SIDE * SIDE * 4 / 2);
    for (uint64_t i = 0; i < SIDE; i++) {
        const int32_t row[4] = {(int32_t) i, 1, 2, 3};
        const uint64_t lo[2] = {i, 2};
        const uint64_t n[2] = {1, 4};
        assert_false(esdm__gather_continue(&gather, (uint64_t[]){i + 1, 2}, n, row));
        assert_false(esdm__gather_continue(&gather, (uint64_t[]){i, 3}, n, row));
        assert_false(esdm__gather_continue(&gather, lo, (uint64_t[]){1, 3}, row));
        assert_false(esdm__gather_continue(&gather, lo, (uint64_t[]){0, 4}, row));
        assert_false(esdm__gather_continue(&gather, lo, (uint64_t[]){UINT64_MAX, 4}, row));
        if (esdm__gather_continue(&gather, lo, n, row)) {
            copied++;
            continue;
        }
        esdm__box box;
        esdm__box_set(&box, 2, lo, n);
        assert_int_equal(ESDM_OK, esdm__gather_add(&gather, &box, row, paint, &c, NULL));
    }
    assert_in_range(copied, SIDE / 2, SIDE - 1);
    assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, paint, &c, NULL));
    for (uint32_t i = 0; i < SIDE; i++) {
        assert_int_equal(i, c.cells[i][2]);
        assert_int_equal(3, c.cells[i][5]);
        assert_int_equal(0, c.cells[i][6]);
    }
}

static void
test_gather__a_full_box_leaves(void **state)
{
    (void) state;
    esdm__gather gather;
    canvas c = {0};
    esdm__gather_init(&gather, ESDM_TYPE_INT32, 4, 4 * SIDE * sizeof(int32_t));
    for (uint32_t i = 0; i < SIDE; i++)
        put(&gather, &c, i, 0, 1, SIDE, (int32_t) i);
    assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, paint, &c, NULL));
    assert_in_range(c.boxes, 3, 6);
    for (uint32_t i = 0; i < SIDE; i++)
        assert_int_equal(i + SIDE - 1, c.cells[i][SIDE - 1]);
}

static void
test_gather__overlaps_keep_program_order(void **state)
{
    (void) state;
    srand(7);
    for (unsigned round = 0; round < 2000; round++) {
        esdm__gather gather;
        canvas c = {0};
        int32_t expected[SIDE][SIDE] = {{0}};
        esdm__gather_init(&gather, ESDM_TYPE_INT32, 4, 64 + (uint64_t) (rand() % 512));
        for (int32_t write = 1; write <= 20; write++) {
            uint64_t i = (uint64_t) rand() % SIDE;
            uint64_t j = (uint64_t) rand() % SIDE;
            uint64_t n = 1 + (uint64_t) rand() % (rand() % 2 ? 1 : SIDE - i);
            uint64_t m = 1 + (uint64_t) rand() % (SIDE - j);
            if (rand() % 3 == 0) { /* often continue where the last one may have ended */
                i = (uint64_t) write % SIDE;
                j = 0;
                n = 1;
                m = SIDE;
            }
            put(&gather, &c, i, j, n, m, 1000 * write);
            for (uint64_t k = 0; k < n * m; k++)
                expected[i + k / m][j + k % m] = 1000 * write + (int32_t) k;
        }
        assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, paint, &c, NULL));
        assert_memory_equal(expected, c.cells, sizeof expected);
    }
}

static void
test_gather__find_gives_the_newest_box_only(void **state)
{
    (void) state;
    esdm__gather gather;
    canvas c = {0};
    esdm__gather_init(&gather, ESDM_TYPE_INT32, 4, 1u << 20);
    put(&gather, &c, 0, 0, 2, 2, 1);
    put(&gather, &c, 8, 8, 2, 2, 9);
    esdm__box inside;
    esdm__box_set(&inside, 2, (uint64_t[]){9, 8}, (uint64_t[]){1, 2});
    assert_non_null(esdm__gather_find(&gather, &inside));
    esdm__box_set(&inside, 2, (uint64_t[]){0, 0}, (uint64_t[]){1, 2});
    assert_null(esdm__gather_find(&gather, &inside));
    esdm__gather_clear(&gather);
}

static esdm_status
count_texts(void *user, const esdm__box *box, void *data, esdm_error *err)
{
    (void) err;
    char **texts = data;
    assert_string_equal("a", texts[0]);
    assert_null(texts[1]);
    *(uint64_t *) user = esdm__box_elements(box);
    return ESDM_OK;
}

static void
test_gather__texts_are_copied(void **state)
{
    (void) state;
    esdm__gather gather;
    uint64_t count = 0;
    esdm__gather_init(&gather, ESDM_TYPE_STRING, sizeof(char *), 1u << 20);
    for (uint64_t i = 0; i < 3; i++) {
        char text[] = "a";
        const char *value = i == 1 ? NULL : text;
        esdm__box box;
        esdm__box_set(&box, 1, &i, (uint64_t[]){1});
        assert_int_equal(ESDM_OK,
                         esdm__gather_add(&gather, &box, &value, count_texts, &count, NULL));
        text[0] = 'x';
    }
    assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, count_texts, &count, NULL));
    assert_int_equal(3, count);
}

/* Counts the boxes and forgets them. */
static esdm_status
count_boxes(void *user, const esdm__box *box, void *data, esdm_error *err)
{
    (void) box;
    (void) data;
    (void) err;
    ++*(size_t *) user;
    return ESDM_OK;
}

static void
test_gather__texts_count_against_the_limit(void **state)
{
    (void) state;
    enum { TEXTS = 1000, LENGTH = 1000, LIMIT = 64 << 10 };
    char text[LENGTH + 1];
    const char *const texts[1] = {text};
    size_t boxes = 0;
    esdm__gather gather;
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    esdm__gather_init(&gather, ESDM_TYPE_STRING, sizeof(char *), LIMIT);
    for (uint64_t i = 0; i < TEXTS; i++) {
        esdm__box box;
        esdm__box_set(&box, 1, &i, (uint64_t[]){1});
        assert_int_equal(ESDM_OK,
                         esdm__gather_add(&gather, &box, texts, count_boxes, &boxes, NULL));
        uint64_t bytes = esdm__gather_bytes(&gather);
        assert_true(bytes > LENGTH && bytes <= (uint64_t) ESDM__GATHER_LEVELS * 2 * LIMIT);
    }
    assert_in_range(boxes, TEXTS * LENGTH / LIMIT - ESDM__GATHER_LEVELS, 20);
    assert_int_equal(ESDM_OK, esdm__gather_flush(&gather, count_boxes, &boxes, NULL));
    assert_int_equal(esdm__gather_bytes(&gather), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather__elements_in_c_order_become_one_box),
        cmocka_unit_test(test_gather__rows_continue),
        cmocka_unit_test(test_gather__a_full_box_leaves),
        cmocka_unit_test(test_gather__overlaps_keep_program_order),
        cmocka_unit_test(test_gather__find_gives_the_newest_box_only),
        cmocka_unit_test(test_gather__texts_are_copied),
        cmocka_unit_test(test_gather__texts_count_against_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
