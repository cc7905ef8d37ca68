/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The map of regions with an accuracy of their own, and boxes that are cut at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/container/region_map.h"
#include "io/write/region_cutter.h"

#define STEPS 6u
#define ROWS  40u
#define WIDTH 60u

static esdm_error error;

/* A map of one region over dimensions 1 and 2 of (step, row, column): rows [lo, hi) and the columns
 * that go around from `west` to `east`. */
static esdm__region_map *
map_of(uint64_t lo, uint64_t hi, uint64_t west, uint64_t east)
{
    esdm__region_map *map = calloc(1, sizeof *map);
    const uint64_t lengths[] = {ROWS, WIDTH};
    assert_non_null(map);
    map->count = 1;
    map->places[0].count = 2;
    for (uint32_t d = 0; d < 2; d++)
        assert_true(
            esdm__region_part_init(&map->places[0].parts[d], 1, (uint32_t[]){d + 1}, &lengths[d]));
    for (uint64_t i = lo; i < hi; i++)
        esdm__region_part_mark(&map->places[0].parts[0], i, 0);
    for (uint64_t i = west; i != east; i = (i + 1) % WIDTH)
        esdm__region_part_mark(&map->places[0].parts[1], i, 0);
    for (uint32_t d = 0; d < 2; d++)
        assert_true(esdm__region_part_sum(&map->places[0].parts[d]));
    return map;
}

static void
test_region_map__boxes_touch_where_all_parts_do(void **state)
{
    (void) state;
    esdm__region_map *map = map_of(10, 20, 55, 5);
    static const struct {
        uint64_t lo[3], n[3];
        uint32_t touched, holds;
    } cases[] = {
        {{0, 0, 0}, {STEPS, ROWS, WIDTH}, 1, 0}, {{0, 0, 0}, {STEPS, 10, WIDTH}, 0, 0},
        {{0, 0, 0}, {1, 11, 1}, 1, 0},           {{0, 10, 5}, {1, 10, 50}, 0, 0},
        {{0, 10, 4}, {1, 1, 1}, 1, 1},           {{0, 11, 55}, {STEPS, 9, 5}, 1, 1},
        {{0, 11, 55}, {STEPS, 10, 5}, 1, 0},     {{0, 19, 54}, {1, 9, 2}, 1, 0},
        {{0, 20, 0}, {1, 20, WIDTH}, 0, 0},      {{0, 0, 58}, {1, 5, 9}, 0, 0},
        {{0, 12, 20}, {1, 1, 41}, 1, 0}, /* beyond what coordinates have */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__box box;
        esdm__box_set(&box, 3, cases[i].lo, cases[i].n);
        assert_int_equal(esdm__region_map_touched(map, &box), cases[i].touched);
        assert_int_equal(esdm__region_map_holds(map, &box), cases[i].touched & cases[i].holds);
    }
    map->places[0].nowhere = true;
    esdm__box all;
    esdm__box_set(&all, 3, NULL, (uint64_t[]){STEPS, ROWS, WIDTH});
    assert_int_equal(esdm__region_map_touched(map, &all), 0);
    map->places[0].nowhere = false;
    map->places[0].everywhere = true;
    esdm__box corner;
    esdm__box_set(&corner, 3, NULL, (uint64_t[]){1, 1, 1});
    assert_int_equal(esdm__region_map_touched(map, &corner), 1);
    assert_int_equal(esdm__region_map_holds(map, &corner), 0); /* nobody knows */
    esdm__region_map_free(map);
}

/* Pieces cover the box once; points that are touched by strict pieces are counted. */
static uint64_t
cut_all(const esdm__region_map *map, uint64_t least_elements, size_t *ret_pieces)
{
    static uint8_t seen[STEPS][ROWS][WIDTH];
    const esdm__layout layout = {.rank = 3, .element_bytes = 4, .preferred_bytes = 1 << 20};
    esdm__region_cutter cutter;
    esdm__box box, piece;
    uint64_t strict = 0;
    memset(seen, 0, sizeof seen);
    esdm__box_set(&box, 3, NULL, (uint64_t[]){STEPS, ROWS, WIDTH});
    assert_int_equal(esdm__region_cutter_init(&cutter, &layout, &box, map, NULL, &error), ESDM_OK);
    cutter.least = least_elements;
    for (*ret_pieces = 0; esdm__region_cutter_next(&cutter, &piece); ++*ret_pieces) {
        const uint64_t elements = esdm__box_elements(&piece);
        assert_true(elements >= least_elements || elements == STEPS * ROWS * WIDTH);
        strict += map != NULL && esdm__region_map_touched(map, &piece) != 0 ? elements : 0;
        for (uint64_t t = piece.lo[0]; t < piece.lo[0] + piece.n[0]; t++)
            for (uint64_t i = piece.lo[1]; i < piece.lo[1] + piece.n[1]; i++)
                for (uint64_t k = piece.lo[2]; k < piece.lo[2] + piece.n[2]; k++)
                    assert_int_equal(seen[t][i][k]++, 0);
    }
    esdm__region_cutter_clear(&cutter);
    for (uint64_t t = 0; t < STEPS; t++)
        for (uint64_t i = 0; i < ROWS; i++)
            for (uint64_t k = 0; k < WIDTH; k++)
                assert_int_equal(seen[t][i][k], 1);
    return strict;
}

static void
test_region_map__boxes_are_cut_at_regions(void **state)
{
    size_t pieces;
    (void) state;
    assert_int_equal(cut_all(NULL, 1, &pieces), 0);
    assert_int_equal(pieces, 1);
    esdm__region_map *map = map_of(10, 20, 20, 30);
    assert_int_equal(cut_all(map, 1, &pieces), STEPS * 10 * 10);
    assert_int_equal(pieces, 5);
    assert_int_equal(cut_all(map, STEPS * 200, &pieces), STEPS * 10 * 20);
    assert_int_equal(cut_all(map, UINT64_C(1) << 40, &pieces) > 0, 1);
    assert_int_equal(pieces, 1);
    esdm__region_map_free(map);
    map = map_of(0, ROWS, 55, 5); /* both ends, and all rows */
    assert_int_equal(cut_all(map, 1, &pieces), STEPS * ROWS * 10);
    assert_int_equal(pieces, 3);
    /* what is too little at the ends takes of what is outside */
    assert_int_equal(cut_all(map, STEPS * ROWS * 8, &pieces), STEPS * ROWS * 16);
    assert_int_equal(pieces, 3);
    esdm__region_map_free(map);
}

/* Points of random places are never outside of what is strict. */
static void
test_region_map__random_places_are_covered(void **state)
{
    (void) state;
    srand(7);
    for (int round = 0; round < 200; round++) {
        esdm__region_map *map = calloc(1, sizeof *map);
        uint8_t inside[ROWS][WIDTH] = {{0}};
        const uint32_t dims[] = {2, 1}; /* the coordinate's order is another one */
        const uint64_t lengths[] = {WIDTH, ROWS};
        size_t pieces;
        uint64_t points = 0;
        assert_non_null(map);
        map->count = 1;
        map->places[0].count = 1;
        esdm__region_part *part = &map->places[0].parts[0];
        assert_true(esdm__region_part_init(part, 2, dims, lengths));
        for (int k = rand() % 30; k >= 0; k--) {
            uint64_t i = (uint64_t) rand() % ROWS, j = (uint64_t) rand() % (WIDTH / 2);
            points += inside[i][j] == 0;
            inside[i][j] = 1;
            esdm__region_part_mark(part, j, i);
        }
        assert_true(esdm__region_part_sum(part));
        assert_true(cut_all(map, 1 + (uint64_t) rand() % 600, &pieces) >= points * STEPS);
        for (uint64_t i = 0; i < ROWS; i++)
            for (uint64_t j = 0; j < WIDTH; j++) {
                esdm__box box;
                esdm__box_set(&box, 3, (uint64_t[]){0, i, j}, (uint64_t[]){1, 1, 1});
                assert_int_equal(esdm__region_map_touched(map, &box), inside[i][j]);
            }
        esdm__region_map_free(map);
    }
}

/* Tables are bounded: cells of several points are inside when one of them is. */
static void
test_region_map__large_grids_have_coarser_cells(void **state)
{
    (void) state;
    esdm__region_part part;
    const uint64_t lengths[] = {5000, 3001};
    const uint32_t dims[] = {0, 1};
    assert_true(esdm__region_part_init(&part, 2, dims, lengths));
    assert_true(part.cells[0] * part.cells[1] <= UINT64_C(1) << 20);
    esdm__region_part_mark(&part, 4999, 3000);
    assert_true(esdm__region_part_sum(&part));
    esdm__region_map *map = calloc(1, sizeof *map);
    assert_non_null(map);
    map->count = 1;
    map->places[0].count = 1;
    map->places[0].parts[0] = part;
    esdm__box box;
    esdm__box_set(&box, 2, (uint64_t[]){4999, 3000}, (uint64_t[]){1, 1});
    assert_int_equal(esdm__region_map_touched(map, &box), 1);
    esdm__box_set(&box, 2, NULL, (uint64_t[]){4900, 2900});
    assert_int_equal(esdm__region_map_touched(map, &box), 0);
    esdm__region_map_free(map);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_region_map__boxes_touch_where_all_parts_do),
        cmocka_unit_test(test_region_map__boxes_are_cut_at_regions),
        cmocka_unit_test(test_region_map__random_places_are_covered),
        cmocka_unit_test(test_region_map__large_grids_have_coarser_cells),
    };
    return cmocka_run_group_tests_name("io.region_map", tests, NULL, NULL);
}
