/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The coders "lorenzo", which effort balanced has, and "groups", which effort fast has: all shapes
 * of neighbourhoods and masks, the same bytes with every instruction set, damaged bytes, and what
 * was packed before there were groups. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "encode.h"
#include "esdm/types.h"

#define FILL 1e20f

static const uint64_t shapes[][4] = {
    {1, 1, 1, 5000}, {1, 1, 70, 61},  {1, 9, 20, 33}, {3, 4, 25, 17},
    {5, 1, 30, 40},  {1, 40, 1, 129}, {7, 3, 1, 211}, {2, 2, 64, 64},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

enum { MASK_NONE, MASK_LAND, MASK_SCATTERED, MASK_ROWS, MASKS };

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static size_t
elements_of(const uint64_t *shape)
{
    return (size_t) (shape[0] * shape[1] * shape[2] * shape[3]);
}

static bool
is_masked(int mask, size_t i, size_t nx, uint32_t random)
{
    switch (mask) {
    case MASK_LAND:
        return (i / nx % 13 < 5) && (i % nx > nx / 3);
    case MASK_SCATTERED:
        return random % 2 == 0;
    case MASK_ROWS:
        return i / nx % 3 == 0;
    default:
        return false;
    }
}

/* Waves with noise, and a few points that are far off. Owned. */
static float *
make_values(const uint64_t *shape, int mask)
{
    size_t n = elements_of(shape);
    size_t nx = (size_t) shape[3];
    float *values = malloc(n * sizeof *values);
    uint32_t state = 7;
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        uint32_t random = next_random(&state);
        double wave = 280 + 20 * sin((double) (i % nx) / 9) * cos((double) (i / nx) / 7);
        values[i] = (float) (wave + (double) (random % 1000) / 2000);
        if (random % 997 == 0)
            values[i] += 300;
        if (is_masked(mask, i, nx, random))
            values[i] = FILL;
    }
    return values;
}

static void
encode(const uint64_t *shape, const float *values, double absolute, esdm_codec_effort effort,
       esdm__buffer *out)
{
    static const float fill = FILL;
    esdm_error err = {0};
    field__block block = {
        .type = ESDM_TYPE_FLOAT32, .rank = 4, .shape = shape, .elements = elements_of(shape)};
    esdm_codec_accuracy accuracy = {.absolute = absolute,
                                    .relative = INFINITY,
                                    .exact_below = -INFINITY,
                                    .exact_above = INFINITY,
                                    .sum_bound = INFINITY,
                                    .exact_values = &fill,
                                    .exact_count = 1};
    esdm__buffer_init(out);
    assert_int_equal(
        field__encode(&block, absolute > 0 ? &accuracy : NULL, effort, values, out, &err), ESDM_OK);
}

static void
check(const uint64_t *shape, int mask, double absolute, esdm_codec_effort effort)
{
    bool fast = effort == ESDM_EFFORT_FAST;
    size_t n = elements_of(shape);
    float *values = make_values(shape, mask);
    float *again = malloc(n * sizeof *again);
    esdm__buffer first;
    esdm_error err = {0};
    assert_non_null(again);
    field__kernels_force(field__kernels_at(0));
    encode(shape, values, absolute, effort, &first);
    if (absolute > 0 && first.data[2] != FIELD__CODER_NONE) { /* else it may not be worth it */
        assert_int_equal(first.data[0], fast ? FIELD__VERSION_GROUPS : FIELD__VERSION_LORENZO);
        assert_int_equal(first.data[2], fast ? FIELD__CODER_GROUPS : FIELD__CODER_LORENZO);
    }
    for (uint32_t k = 0; field__kernels_at(k) != NULL; k++) {
        esdm__buffer out;
        field__kernels_force(field__kernels_at(k));
        encode(shape, values, absolute, effort, &out);
        assert_int_equal(out.bytes, first.bytes);
        assert_memory_equal(out.data, first.data, first.bytes);
        memset(again, 0x55, n * sizeof *again);
        assert_int_equal(field__decode(ESDM_TYPE_FLOAT32, n, out.data, out.bytes, again, &err),
                         ESDM_OK);
        for (size_t i = 0; i < n; i++) {
            if (values[i] == FILL || absolute == 0)
                assert_memory_equal(&again[i], &values[i], sizeof *again);
            else
                assert_true(fabs((double) again[i] - values[i]) <= absolute);
        }
        esdm__buffer_clear(&out);
    }
    field__kernels_force(NULL);
    esdm__buffer_clear(&first);
    free(values);
    free(again);
}

static void
test_lorenzo__every_shape_and_mask(void **state)
{
    static const double bounds[] = {0, 1e-4, 0.02, 5};
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_BALANCED; effort++) {
        for (size_t s = 0; s < SHAPES; s++) {
            for (int mask = 0; mask < MASKS; mask++)
                check(shapes[s], mask, bounds[(s + (size_t) mask) % 4], effort);
        }
        for (size_t b = 0; b < 4; b++)
            check(shapes[3], MASK_LAND, bounds[b], effort);
    }
}

static void
check_damaged(esdm_codec_effort effort)
{
    const uint64_t *shape = shapes[3];
    size_t n = elements_of(shape);
    float *values = make_values(shape, MASK_LAND);
    float *again = malloc(n * sizeof *again);
    esdm__buffer out;
    uint32_t random = 3;
    size_t refused = 0;
    assert_non_null(again);
    encode(shape, values, 0.02, effort, &out);
    for (int i = 0; i < 3000; i++) {
        esdm_error err = {0};
        size_t bytes = i % 4 == 0 ? next_random(&random) % out.bytes : out.bytes;
        size_t range = i % 2 == 0 ? out.bytes : out.bytes < 400 ? out.bytes : 400;
        uint8_t *copy = malloc(bytes + 1); /* ends where the bytes end */
        assert_non_null(copy);
        memcpy(copy, out.data, bytes);
        for (int k = 0; k < 1 + i % 3 && bytes > 0; k++)
            copy[next_random(&random) % (range < bytes ? range : bytes)] ^=
                (uint8_t) (1u << next_random(&random) % 8);
        uint32_t kernels = (uint32_t) i % 3;
        if (field__kernels_at(kernels) != NULL)
            field__kernels_force(field__kernels_at(kernels));
        esdm_status st = field__decode(ESDM_TYPE_FLOAT32, n, copy, bytes, again, &err);
        assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
        refused += st != ESDM_OK;
        free(copy);
    }
    assert_true(refused > 750);
    field__kernels_force(NULL);
    esdm__buffer_clear(&out);
    free(values);
    free(again);
}

static void
test_lorenzo__damaged_bytes_are_refused_or_decoded(void **state)
{
    (void) state;
    check_damaged(ESDM_EFFORT_BALANCED);
    check_damaged(ESDM_EFFORT_FAST);
}

/* ---- blocks of earlier formats ------------------------------------------------------------- */

typedef struct seen {
    size_t rows;
} seen;

static void
count_row(void *user, const field__volume *volume, size_t row)
{
    (void) volume;
    assert_int_equal(((seen *) user)->rows++, row);
}

/* As pack.h says: lane l of 16 has differences l, l + 16, … of 512, from the lowest bit on. */
static void
put_packed(const uint32_t *values, uint32_t width, esdm__buffer *out)
{
    uint8_t bytes[512 * 4] = {0};
    for (size_t i = 0; i < 512; i++) {
        for (uint32_t k = 0; k < width; k++) {
            size_t bit = i / 16 * width + k; /* of the lane, whose words are 16 apart */
            size_t at = (bit / 32 * 16 + i % 16) * 32 + bit % 32;
            bytes[at / 8] |= (uint8_t) ((values[i] >> k & 1) << at % 8);
        }
    }
    esdm__buffer_put(out, bytes, 64 * (size_t) width);
}

/* Differences packed by the largest of 512, which nothing writes any more, are read. */
static void
test_lorenzo__packed_blocks_of_earlier_formats_are_read(void **state)
{
    enum { NX = 100, NY = 13, N = NX * NY, GROUPS = (N + 511) / 512 };
    static uint32_t folded[GROUPS * 512];
    static int32_t codes[NY][NX];
    (void) state;
    for (uint32_t width = 0; width <= 32; width++) {
        uint32_t random = width + 1;
        esdm_error err = {0};
        esdm__buffer out;
        esdm__cursor in;
        field__volume volume;
        field__axes axes = {1, 1, NY, NX};
        seen rows = {0};
        memset(folded, 0, sizeof folded);
        for (size_t i = 0; i < N; i++) {
            uint32_t d = width == 0 ? 0 : next_random(&random) >> (32 - width);
            uint32_t before =
                (i % NX > 0 ? (uint32_t) codes[i / NX][i % NX - 1] : 0) +
                (i >= NX ? (uint32_t) codes[i / NX - 1][i % NX] : 0) -
                (i % NX > 0 && i >= NX ? (uint32_t) codes[i / NX - 1][i % NX - 1] : 0);
            folded[i] = d;
            codes[i / NX][i % NX] = (int32_t) (before + (d >> 1 ^ (0 - (d & 1))));
        }
        esdm__buffer_init(&out);
        esdm__buffer_put_u8(&out, 2); /* along x and y */
        esdm__buffer_put_u8(&out, FIELD__PACK_BITS);
        for (size_t g = 0; g < GROUPS; g++)
            esdm__buffer_put_u8(&out, (uint8_t) width);
        for (size_t g = 0; g < GROUPS; g++)
            put_packed(folded + 512 * g, width, &out);
        esdm__cursor_init(&in, out.data, out.bytes);
        assert_int_equal(field__volume_init(&volume, &axes, false, &err), ESDM_OK);
        assert_int_equal(field__pack_decode(&volume, &in, count_row, &rows, &err), ESDM_OK);
        assert_int_equal(rows.rows, NY);
        for (size_t r = 0; r < NY; r++)
            assert_memory_equal(field__row32(&volume, r), codes[r], sizeof codes[r]);
        esdm__cursor_init(&in, out.data, out.bytes - 1);
        assert_int_equal(field__pack_decode(&volume, &in, count_row, &(seen){0}, &err),
                         ESDM_ECORRUPT);
        field__volume_clear(&volume);
        esdm__buffer_clear(&out);
    }
}

static void
test_lorenzo__archive_is_no_larger(void **state)
{
    (void) state;
    for (int mask = 0; mask < MASKS; mask++) {
        const uint64_t *shape = shapes[2];
        float *values = make_values(shape, mask);
        field__block block = {
            .type = ESDM_TYPE_FLOAT32, .rank = 4, .shape = shape, .elements = elements_of(shape)};
        esdm__buffer balanced, archive;
        esdm_error err = {0};
        encode(shape, values, 0, ESDM_EFFORT_BALANCED, &balanced);
        esdm__buffer_init(&archive);
        assert_int_equal(field__encode(&block, NULL, ESDM_EFFORT_ARCHIVE, values, &archive, &err),
                         ESDM_OK);
        assert_true(archive.bytes <= balanced.bytes);
        esdm__buffer_clear(&balanced);
        esdm__buffer_clear(&archive);
        free(values);
    }
}

static size_t
bytes_within(const float *values, const uint64_t *shape, double absolute, double relative,
             double finest, esdm_codec_effort effort)
{
    field__block block = {
        .type = ESDM_TYPE_FLOAT32, .rank = 4, .shape = shape, .elements = elements_of(shape)};
    esdm_codec_accuracy accuracy = {.absolute = absolute,
                                    .relative = relative,
                                    .finest = finest,
                                    .exact_below = -INFINITY,
                                    .exact_above = INFINITY,
                                    .sum_bound = INFINITY};
    esdm__buffer out;
    esdm_error err = {0};
    esdm__buffer_init(&out);
    assert_int_equal(field__encode(&block, &accuracy, effort, values, &out, &err), ESDM_OK);
    size_t bytes = out.bytes;
    esdm__buffer_clear(&out);
    return bytes;
}

/* Of two bounds the finer one counts, and a looser one never costs more: neither the coarser of two
 * bounds that are given together, nor a floor of a relative bound where values change their sign.
 */
static void
test_lorenzo__a_looser_bound_costs_no_more(void **state)
{
    const uint64_t *shape = shapes[7];
    size_t n = elements_of(shape);
    float *values = make_values(shape, MASK_NONE);
    (void) state;
    for (size_t i = 0; i < n; i++) { /* around zero, and around 280 */
        float value = values[i] - (i < n / 2 ? 280.0F : 0);
        values[i] = value;
    }
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_BALANCED; effort++) {
        for (double finest = 0.01; finest < 1; finest *= 3) {
            size_t loose = bytes_within(values, shape, INFINITY, 0.01, finest, effort);
            size_t tight = bytes_within(values, shape, INFINITY, 0.0001, finest, effort);
            assert_true((double) loose <= 1.02 * (double) tight);
        }
        for (double relative = 0.001; relative < 0.2; relative *= 3) {
            const float *warm = values + n / 2;
            uint64_t half[4] = {1, 2, 64, 64};
            size_t both = bytes_within(warm, half, 0.02, relative, 0, effort);
            size_t one = bytes_within(warm, half, 0.02, INFINITY, 0, effort);
            assert_true((double) both <= 1.02 * (double) one); /* 0.02 is finer everywhere */
        }
    }
    free(values);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lorenzo__every_shape_and_mask),
        cmocka_unit_test(test_lorenzo__damaged_bytes_are_refused_or_decoded),
        cmocka_unit_test(test_lorenzo__packed_blocks_of_earlier_formats_are_read),
        cmocka_unit_test(test_lorenzo__archive_is_no_larger),
        cmocka_unit_test(test_lorenzo__a_looser_bound_costs_no_more),
    };
    return cmocka_run_group_tests_name("field.lorenzo", tests, NULL, NULL);
}
