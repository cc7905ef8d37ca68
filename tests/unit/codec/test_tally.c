/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Statistics of numbers against one comparison after the other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "codec/tally.h"
#include "codec/tally_checksums.h"
#include "codec/tally_kernels.h"
#include "esdm/types.h"

enum { MOST = 20000 };

static const int32_t types[] = {
    ESDM_TYPE_INT8,   ESDM_TYPE_UINT8, ESDM_TYPE_INT16,  ESDM_TYPE_UINT16,  ESDM_TYPE_INT32,
    ESDM_TYPE_UINT32, ESDM_TYPE_INT64, ESDM_TYPE_UINT64, ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64};
static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

static uint64_t state = 1;

static uint64_t
next(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 16;
}

static double
as_double(const esdm__missing *missing, esdm__number x)
{
    if (missing->class == ESDM__CLASS_SIGNED)
        return (double) x.i;
    return missing->class == ESDM__CLASS_UNSIGNED ? (double) x.u : x.f;
}

static bool
counts(const esdm__missing *missing, esdm__number x)
{
    bool is_float = missing->class >= ESDM__CLASS_FLOAT;
    for (uint32_t i = 0; i < missing->count; i++) {
        if (is_float ? x.f == missing->values[i].f : x.u == missing->values[i].u)
            return false;
    }
    return !is_float || !isnan(x.f);
}

static void
compare(const esdm__tally *tally, const uint8_t *data, size_t bytes, size_t n)
{
    const esdm__statistics *s = &tally->statistics;
    long double sum = 0;
    long double size = 0;
    double low = (double) INFINITY;
    double high = -(double) INFINITY;
    uint64_t valid = 0;
    for (size_t i = 0; i < n; i++) {
        esdm__number x = esdm__number_of(tally->type, data + i * bytes);
        if (!counts(tally->missing, x))
            continue;
        double value = as_double(tally->missing, x);
        sum += (long double) value;
        size += fabsl((long double) value);
        low = value < low ? value : low;
        high = value > high ? value : high;
        valid++;
    }
    assert_int_equal(s->valid, valid);
    assert_int_equal(s->rule, tally->missing->rule);
    if (valid == 0)
        return;
    assert_true(as_double(tally->missing, s->min) == low);
    assert_true(as_double(tally->missing, s->max) == high);
    if (isfinite(size))
        assert_true(fabsl((long double) s->sum - sum) <= size * 1e-14L);
    else
        assert_false(isfinite(s->sum));
}

/* Numbers as data have them, then with values that are missing, NaN and infinities strewn in. */
static void
fill(uint8_t *data, int32_t type, size_t n, int kind, const esdm__missing *missing)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t r = next();
        double number = 250 + (double) (r % 100000) / 1000;
        float single = (float) number;
        if (kind > 0 && r % 7 == 0 && missing->count > 0)
            number = missing->values[r / 7 % missing->count].f;
        else if (kind > 1 && r % 11 == 0)
            number = (double) NAN;
        else if (kind > 2 && r % 500 == 0)
            number = r % 1000 == 0 ? (double) INFINITY : -(double) INFINITY;
        if (type == ESDM_TYPE_FLOAT64) {
            memcpy(data + 8 * i, &number, 8);
        } else if (type == ESDM_TYPE_FLOAT32) {
            single = (float) number;
            memcpy(data + 4 * i, &single, 4);
        } else {
            size_t bytes = type == ESDM_TYPE_INT8 || type == ESDM_TYPE_UINT8     ? 1
                           : type == ESDM_TYPE_INT16 || type == ESDM_TYPE_UINT16 ? 2
                           : type == ESDM_TYPE_INT32 || type == ESDM_TYPE_UINT32 ? 4
                                                                                 : 8;
            uint64_t bits = r ^ next() << 40;
            if (kind > 0 && r % 7 == 0 && missing->count > 0)
                bits = missing->values[r / 7 % missing->count].u;
            memcpy(data + bytes * i, &bits, bytes);
        }
    }
}

static void
set_missing(esdm__missing *missing, int32_t type, uint32_t count)
{
    *missing = (esdm__missing){.class = esdm__class_of(type)};
    for (uint32_t i = 0; i < count; i++) {
        esdm__number value = {.i = 17 + (int64_t) i};
        if (missing->class >= ESDM__CLASS_FLOAT)
            value.f = i == 0 ? (double) 9.96921e36f : 255.0 + i;
        esdm__missing_add(missing, value);
    }
    missing->rule = esdm__missing_rule(missing);
}

static void
test_tally__agrees_with_one_number_after_the_other(void **unused)
{
    static const size_t counts_of[] = {1, 7, 63, 64, 65, 1000, 8191, 8192, 8193, MOST};
    uint8_t *memory = malloc(8 * MOST + 1);
    (void) unused;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (uint32_t nmissing = 0; nmissing <= ESDM__MISSING_MOST; nmissing++) {
            esdm__missing missing;
            set_missing(&missing, types[t], nmissing);
            for (int kind = 0; kind < 4; kind++) {
                size_t n = counts_of[next() % (sizeof counts_of / sizeof *counts_of)];
                uint8_t *data = memory + next() % 2; /* not aligned */
                fill(data, types[t], n, kind, &missing);
                esdm__tally tally = {.type = types[t], .missing = &missing};
                size_t first = n / 3;
                esdm__tally_add(&tally, data, first);
                esdm__tally_add(&tally, data + first * sizes[t], n - first);
                compare(&tally, data, sizes[t], n);
            }
        }
    }
    free(memory);
}

/* Checksums and statistics in one pass are those of two. */
static void
test_tally__blocks_have_their_checksums_and_statistics(void **unused)
{
    enum { BLOCKS = 19, BYTES = BLOCKS * ESDM__TALLY_BLOCK_BYTES };
    uint8_t *memory = malloc(BYTES + 1);
    (void) unused;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (uint32_t nmissing = 0; nmissing <= ESDM__MISSING_MOST; nmissing++) {
            esdm__missing missing;
            set_missing(&missing, types[t], nmissing);
            for (int kind = 0; kind < 4; kind++) {
                size_t blocks = 1 + next() % BLOCKS;
                size_t n = blocks * ESDM__TALLY_BLOCK_BYTES / sizes[t];
                uint64_t checksums[BLOCKS] = {0};
                uint8_t *data = memory + next() % 2; /* not aligned */
                fill(data, types[t], n, kind, &missing);
                esdm__tally tally = {.type = types[t], .missing = &missing};
                esdm__tally_add_blocks(&tally, data, blocks, checksums);
                compare(&tally, data, sizes[t], n);
                for (size_t b = 0; b < blocks; b++)
                    assert_true(checksums[b] == esdm__checksum(data + b * ESDM__TALLY_BLOCK_BYTES,
                                                               ESDM__TALLY_BLOCK_BYTES));
            }
        }
    }
    free(memory);
}

/* Each place of a block counts for minimum, maximum and checksum. */
static void
test_tally__each_place_of_a_block_counts(void **unused)
{
    enum { SINGLES = ESDM__TALLY_BLOCK_BYTES / sizeof(float) };
    float data[SINGLES];
    esdm__missing missing;
    (void) unused;
    set_missing(&missing, ESDM_TYPE_FLOAT32, 0);
    for (size_t i = 0; i < SINGLES; i++)
        data[i] = -3;
    for (size_t i = 0; i < SINGLES; i++) {
        esdm__tally tally = {.type = ESDM_TYPE_FLOAT32, .missing = &missing};
        uint64_t checksum = 0;
        data[i] = i % 2 == 0 ? 5.0F : -8.0F;
        esdm__tally_add_blocks(&tally, data, 1, &checksum);
        assert_true(tally.statistics.min.f == (i % 2 == 0 ? -3.0 : -8.0));
        assert_true(tally.statistics.max.f == (i % 2 == 0 ? 5.0 : -3.0));
        assert_true(tally.statistics.sum == (double) data[i] - 3.0 * (SINGLES - 1));
        assert_true(checksum == esdm__checksum(data, sizeof data));
        data[i] = -3;
    }
}

/* The loops of all instruction sets that this processor has. */
static size_t
tables_here(const esdm__tallies **ret_tables)
{
    size_t n = 0;
    ret_tables[n++] = &esdm__tallies_base;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        ret_tables[n++] = &esdm__tallies_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        ret_tables[n++] = &esdm__tallies_avx512;
#endif
    return n;
}

/* They find the same. */
static void
test_tally__all_instruction_sets_agree(void **unused)
{
    const esdm__tallies *tables[3];
    size_t n = tables_here(tables);
    uint8_t *data = malloc(8 * 8000);
    (void) unused;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        esdm__missing missing;
        esdm__run expected;
        set_missing(&missing, types[t], 2);
        fill(data, types[t], 8000, 3, &missing);
        for (size_t i = 0; i < n; i++) {
            esdm__run run;
            tables[i]->masked[types[t]](data, 7999, missing.values[0], missing.values[1], &run);
            if (i == 0)
                expected = run;
            assert_int_equal(run.valid, expected.valid);
            assert_int_equal(run.infinite, expected.infinite);
            assert_int_equal(run.min.u, expected.min.u);
            assert_int_equal(run.max.u, expected.max.u);
            assert_true(fabs(run.sum - expected.sum) <= fabs(expected.sum) * 1e-9);
        }
        fill(data, types[t], 8000, 0, &missing); /* nothing is missing, both loops may be taken */
        for (size_t i = 0; i < n; i++) {
            esdm__run run;
            tables[i]->all[types[t]](data, 7999, &run);
            if (i == 0)
                expected = run;
            assert_int_equal(run.valid, expected.valid);
            assert_int_equal(run.min.u, expected.min.u);
            assert_int_equal(run.max.u, expected.max.u);
            assert_true(fabs(run.sum - expected.sum) <= fabs(expected.sum) * 1e-9);
        }
    }
    free(data);
}

/* Minimum and maximum of numbers of one sign and of both, with each at each place. */
static void
check_extremes(const esdm__tallies *table, float from, float step, uint32_t n, size_t turn)
{
    float data[100];
    esdm__run run;
    for (uint32_t i = 0; i < n; i++)
        data[(i + turn) % n] = from + step * (float) i;
    table->all[ESDM_TYPE_FLOAT32](data, n, &run);
    float last = from + step * (float) (n - 1);
    assert_true(run.min.f == (double) (step < 0 ? last : from));
    assert_true(run.max.f == (double) (step < 0 ? from : last));
    double sum = n * ((double) from + (double) last) / 2;
    assert_true(run.sum == sum);
    assert_int_equal(run.valid, n);
}

static void
test_tally__extremes_of_singles_of_both_signs(void **unused)
{
    static const struct {
        float from;
        float step;
    } series[] = {{1, 1},
                  {-1, -1},
                  {-40, 1},
                  {40, -1},
                  {-200, 1},
                  {0, 1},
                  {0, -1},
                  {-99, 1},
                  {99, -1},
                  {5, 0},
                  {-5, 0},
                  {0, 0},
                  {0x1p-149F, 0x1p-149F},
                  {-0x1p-149F, -0x1p-149F},
                  {-0x1p-144F, 0x1p-149F}};
    const esdm__tallies *tables[3];
    (void) unused;
    size_t ntables = tables_here(tables);
    for (size_t t = 0; t < ntables; t++) {
        for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
            for (uint32_t n = 1; n <= 100; n++) {
                for (size_t turn = 0; turn < n; turn += 1 + n / 9)
                    check_extremes(tables[t], series[i].from, series[i].step, n, turn);
            }
        }
    }
}

static void
test_tally__rules_tell_values_apart(void **unused)
{
    esdm__missing a = {.class = ESDM__CLASS_FLOAT};
    esdm__missing b = {.class = ESDM__CLASS_FLOAT};
    (void) unused;
    assert_int_equal(esdm__missing_rule(&a), 0);
    esdm__missing_add(&a, (esdm__number){.f = (double) NAN});
    assert_int_equal(a.count, 0);
    esdm__missing_add(&a, (esdm__number){.f = 1});
    esdm__missing_add(&a, (esdm__number){.f = 2});
    esdm__missing_add(&b, (esdm__number){.f = 2});
    assert_int_not_equal(esdm__missing_rule(&a), esdm__missing_rule(&b));
    esdm__missing_add(&b, (esdm__number){.f = 1});
    esdm__missing_add(&b, (esdm__number){.f = 1});
    assert_int_equal(esdm__missing_rule(&a), esdm__missing_rule(&b));
    for (int i = 3; i < 6; i++)
        esdm__missing_add(&b, (esdm__number){.f = i});
    assert_int_equal(b.class, ESDM__CLASS_NONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tally__agrees_with_one_number_after_the_other),
        cmocka_unit_test(test_tally__blocks_have_their_checksums_and_statistics),
        cmocka_unit_test(test_tally__each_place_of_a_block_counts),
        cmocka_unit_test(test_tally__all_instruction_sets_agree),
        cmocka_unit_test(test_tally__extremes_of_singles_of_both_signs),
        cmocka_unit_test(test_tally__rules_tell_values_apart),
    };
    return cmocka_run_group_tests_name("codec.tally", tests, NULL, NULL);
}
