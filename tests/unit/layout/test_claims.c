/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Claims of owners on boxes meet when a scan of all pairs says so; many cost little. */
#include "layout_support.h"

#include <time.h>

#include "layout/bounds.h"
#include "layout/claims.h"

#define MANY UINT64_MAX

static bool
scan(uint32_t rank, const uint64_t *claims, size_t count)
{
    size_t numbers = esdm__claim_numbers(rank);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *a = claims + i * numbers;
        for (size_t k = 0; k < count; k++) {
            const uint64_t *b = claims + k * numbers;
            if (a[0] >> 2 != b[0] >> 2 && (a[0] & ESDM__CLAIM_WANTS) != 0 &&
                (b[0] & ESDM__CLAIM_HAS) != 0 && esdm__bounds_meet(rank, a + 1, b + 1))
                return true;
        }
    }
    return false;
}

static void
test_claims__meet_as_a_scan_of_all_pairs_says(void **state)
{
    (void) state;
    rng r = {11};
    size_t met = 0;
    for (int round = 0; round < 4000; round++) {
        uint32_t rank = (uint32_t) rng_below(&r, 4);
        size_t count = (size_t) rng_below(&r, 120);
        uint64_t space = 1 + rng_below(&r, rng_below(&r, 2) ? 4000 : 60);
        size_t numbers = esdm__claim_numbers(rank);
        uint64_t *claims = malloc((count * numbers + 1) * sizeof *claims);
        for (size_t i = 0; i < count; i++) {
            uint64_t *c = claims + i * numbers;
            c[0] = esdm__claim_head(rng_below(&r, count), 1 + (unsigned) rng_below(&r, 3));
            for (uint32_t d = 0; d < rank; d++) {
                c[1 + d] = rng_below(&r, space);
                c[1 + rank + d] = c[1 + d] + 1 + rng_below(&r, 9);
            }
        }
        bool expected = scan(rank, claims, count);
        assert_int_equal(esdm__claims_meet(rank, claims, count, MANY), expected);
        met += expected;
        free(claims);
    }
    assert_true(met > 400 && met < 3600);
}

/* The parts of a grid of x * y * z boxes, in the order of ranks. */
static uint64_t *
grid(size_t x, size_t y, size_t z, uint64_t overlap)
{
    uint64_t *claims = malloc(x * y * z * 7 * sizeof *claims);
    uint64_t *c = claims;
    for (size_t i = 0; i < x * y * z; i++, c += 7) {
        uint64_t at[3] = {i / (y * z), i / z % y, i % z};
        c[0] = esdm__claim_head(i, ESDM__CLAIM_WANTS | ESDM__CLAIM_HAS);
        for (int d = 0; d < 3; d++) {
            c[1 + d] = at[d] * 10;
            c[4 + d] = at[d] * 10 + 10 + (i == x * y * z / 2 ? overlap : 0);
        }
    }
    return claims;
}

static double
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static void
test_claims__parts_of_a_grid_become_one_box(void **state)
{
    (void) state;
    uint64_t *claims = grid(30, 20, 10, 0);
    assert_int_equal(esdm__claims_join(3, claims, 6000), 1);
    assert_int_equal(claims[4], 300);
    assert_int_equal(claims[5], 200);
    assert_int_equal(claims[6], 100);
    free(claims);
}

static void
test_claims__a_hundred_thousand_owners_cost_milliseconds(void **state)
{
    (void) state;
    uint64_t *claims = grid(50, 50, 40, 0);
    double before = seconds();
    assert_false(esdm__claims_meet(3, claims, 100000, 4000000));
    double apart = seconds() - before;
    free(claims);
    claims = grid(50, 50, 40, 1);
    before = seconds();
    assert_true(esdm__claims_meet(3, claims, 100000, 4000000));
    double together = seconds() - before;
    free(claims);
    print_message("100,000 claims: %.1f ms apart, %.1f ms meeting\n", 1e3 * apart, 1e3 * together);
    assert_true(apart < 2 && together < 2); /* all pairs: 16 s, and more under sanitizers */
}

static void
test_claims__a_bound_on_the_work_gives_the_careful_answer(void **state)
{
    (void) state;
    uint64_t claims[200 * 5];
    for (uint64_t i = 0; i < 200; i++) { /* crosses that all lie over each other, and only have */
        uint64_t *c = claims + i * 5;
        c[0] = esdm__claim_head(i, i < 100 ? ESDM__CLAIM_HAS : ESDM__CLAIM_WANTS);
        c[1] = i < 100 ? 0 : 1000;
        c[3] = i < 100 ? 1000 : 2000;
        c[2] = 0;
        c[4] = 1000;
    }
    assert_false(esdm__claims_meet(2, claims, 200, MANY));
    claims[5] = esdm__claim_head(1, ESDM__CLAIM_WANTS | ESDM__CLAIM_HAS);
    assert_true(esdm__claims_meet(2, claims, 200, 10));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims__meet_as_a_scan_of_all_pairs_says),
        cmocka_unit_test(test_claims__parts_of_a_grid_become_one_box),
        cmocka_unit_test(test_claims__a_hundred_thousand_owners_cost_milliseconds),
        cmocka_unit_test(test_claims__a_bound_on_the_work_gives_the_careful_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
