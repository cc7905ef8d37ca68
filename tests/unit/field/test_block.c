/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Blocks of the codec "field": without loss, within bounds, with sums, damaged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block_values.h"
#include "kernels.h"
#include "some_cases.h"

#define GUARD 64

/* Every how many-th case is tried. STEP has no factor in common with the lists. */
enum { EVERY = 3, STEP = 4 };

static void
encode(const field__block *block, const esdm_codec_accuracy *accuracy, esdm_codec_effort effort,
       const void *raw, esdm__buffer *out)
{
    esdm_error err = {0};
    esdm__buffer_init(out);
    if (field__encode(block, accuracy, effort, raw, out, &err) != ESDM_OK)
        fail_msg("%s", err.message);
}

/* Owned values, decoded between guards. */
static uint8_t *
decode(const field__block *block, const esdm__buffer *encoded)
{
    size_t bytes = block->elements * field__element_bytes(block->type);
    uint8_t *memory = malloc(bytes + 2 * GUARD);
    uint8_t *input = malloc(encoded->bytes); /* ends where the bytes end */
    assert_true(memory != NULL && input != NULL);
    memset(memory, 0xA5, bytes + 2 * GUARD);
    memcpy(input, encoded->data, encoded->bytes);
    esdm_error err = {0};
    if (field__decode(block->type, block->elements, input, encoded->bytes, memory + GUARD, &err) !=
        ESDM_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(memory[i], 0xA5);
        assert_int_equal(memory[GUARD + bytes + i], 0xA5);
    }
    memmove(memory, memory + GUARD, bytes);
    free(input);
    return memory;
}

/* Encodes with every kernel, compares the bytes, decodes with every kernel into equal values, which
 * are returned. */
static uint8_t *
round_trip(const field__block *block, const esdm_codec_accuracy *accuracy, esdm_codec_effort effort,
           const void *raw, size_t *ret_bytes)
{
    esdm__buffer first;
    uint8_t *values = NULL;
    size_t bytes = block->elements * field__element_bytes(block->type);
    field__kernels_force(field__kernels_at(0));
    encode(block, accuracy, effort, raw, &first);
    for (uint32_t k = 0; field__kernels_at(k) != NULL; k++) {
        field__kernels_force(field__kernels_at(k));
        esdm__buffer again;
        encode(block, accuracy, effort, raw, &again);
        assert_int_equal(again.bytes, first.bytes);
        assert_memory_equal(again.data, first.data, first.bytes);
        esdm__buffer_clear(&again);
        uint8_t *decoded = decode(block, &first);
        if (values != NULL) {
            assert_memory_equal(values, decoded, bytes);
            free(decoded);
        } else {
            values = decoded;
        }
    }
    field__kernels_force(NULL);
    if (ret_bytes != NULL)
        *ret_bytes = first.bytes;
    esdm__buffer_clear(&first);
    return values;
}

static void
test_block__lossless_for_all_types_and_shapes(void **state)
{
    const int every = each_nth(EVERY);
    (void) state;
    for (size_t t = 0; t < TYPES; t++) {
        for (size_t s = 0; s < SHAPES; s++) {
            for (int k = first_of(every, t + s); k < PATTERNS; k += every) {
                const pattern p = (pattern) k;
                field__block block = {.type = types[t],
                                      .rank = shapes[s].rank,
                                      .shape = shapes[s].sizes,
                                      .elements = elements_of(&shapes[s])};
                uint8_t *raw = make_values(types[t], block.elements, p);
                esdm_codec_effort effort = (esdm_codec_effort) ((s + (size_t) p) % 4);
                size_t encoded_bytes;
                uint8_t *again = round_trip(&block, NULL, effort, raw, &encoded_bytes);
                size_t bytes = block.elements * field__element_bytes(block.type);
                assert_memory_equal(raw, again, bytes);
                assert_true(encoded_bytes <= bytes + 64);
                free(raw);
                free(again);
            }
        }
    }
}

/* ---- bounds ------------------------------------------------------------------------------- */

static long double
number(int32_t type, const uint8_t *at)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } v;
    memcpy(&v, at, field__element_bytes(type));
    switch (type) {
    case ESDM_TYPE_INT8:
        return v.i8;
    case ESDM_TYPE_INT16:
        return v.i16;
    case ESDM_TYPE_UINT16:
        return v.u16;
    case ESDM_TYPE_INT32:
        return v.i32;
    case ESDM_TYPE_UINT32:
        return v.u32;
    case ESDM_TYPE_INT64:
        return v.i64;
    case ESDM_TYPE_UINT64:
        return v.u64;
    case ESDM_TYPE_FLOAT32:
        return v.f32;
    case ESDM_TYPE_FLOAT64:
        return v.f64;
    default:
        return v.u8;
    }
}

static bool
within(const esdm_codec_accuracy *a, int32_t type, const uint8_t *before, const uint8_t *after)
{
    size_t size = field__element_bytes(type);
    long double x = number(type, before);
    long double y = number(type, after);
    bool same = memcmp(before, after, size) == 0;
    if (!(fabsl(x) < INFINITY) || x <= a->exact_below || x >= a->exact_above)
        return same;
    for (uint32_t i = 0; i < a->exact_count; i++) {
        if (memcmp((const uint8_t *) a->exact_values + i * size, before, size) == 0)
            return same;
    }
    long double relative = a->relative < INFINITY ? a->relative * fabsl(x) : INFINITY;
    relative = relative > a->finest ? relative : a->finest;
    long double bound = relative < a->absolute ? relative : a->absolute;
    if (x == 0 && a->relative < INFINITY && a->finest == 0)
        return same;
    return fabsl(y - x) <= bound;
}

static void
check_bound(int32_t type, const shape *s, pattern p, const esdm_codec_accuracy *accuracy)
{
    field__block block = {
        .type = type, .rank = s->rank, .shape = s->sizes, .elements = elements_of(s)};
    size_t size = field__element_bytes(type);
    uint8_t *raw = make_values(type, block.elements, p);
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        uint8_t *again = round_trip(&block, accuracy, effort, raw, NULL);
        for (size_t i = 0; i < block.elements; i++) {
            if (!within(accuracy, type, raw + i * size, again + i * size))
                fail_msg("type %d pattern %d effort %d: element %zu is %.17Lg, was %.17Lg", type,
                         (int) p, (int) effort, i, number(type, again + i * size),
                         number(type, raw + i * size));
        }
        free(again);
    }
    free(raw);
}

static void
test_block__every_point_stays_within_its_bound(void **state)
{
    static const double absolutes[] = {INFINITY, 1e-3, 0.7, 20};
    static const double relatives[] = {INFINITY, 1e-6, 0.01, 0.3};
    static const double finests[] = {0, 1e-3};
    static const double fill = 42.5;
    const int every = each_nth(EVERY);
    (void) state;
    for (size_t t = 0; t < TYPES; t++) {
        for (int k = 1 + first_of(every, t); k < 32; k += every) {
            esdm_codec_accuracy a = {.absolute = absolutes[k % 4],
                                     .relative = relatives[k / 4 % 4],
                                     .finest = finests[k / 16],
                                     .exact_below = k % 3 == 0 ? -5 : -INFINITY,
                                     .exact_above = k % 5 == 0 ? 60 : INFINITY,
                                     .sum_bound = INFINITY};
            if (types[t] == ESDM_TYPE_FLOAT64 && k % 2 == 1) {
                a.exact_values = &fill;
                a.exact_count = 1;
            }
            for (pattern p = 0; p < PATTERNS; p++)
                check_bound(types[t], &shapes[((size_t) k * 7 + (size_t) p * 5 + t) % SHAPES], p,
                            &a);
        }
    }
}

static void
test_block__smooth_fields_shrink(void **state)
{
    (void) state;
    shape s = {3, {8, 60, 100}};
    field__block block = {
        .type = ESDM_TYPE_FLOAT32, .rank = 3, .shape = s.sizes, .elements = 48000};
    uint8_t *raw = make_values(block.type, block.elements, SMOOTH);
    esdm_codec_accuracy accuracy = {.absolute = 0.08,
                                    .relative = INFINITY,
                                    .exact_below = -INFINITY,
                                    .exact_above = INFINITY,
                                    .sum_bound = INFINITY};
    size_t exact, rough;
    free(round_trip(&block, NULL, ESDM_EFFORT_ARCHIVE, raw, &exact));
    free(round_trip(&block, &accuracy, ESDM_EFFORT_ARCHIVE, raw, &rough));
    assert_true(exact < 192000 * 2 / 3);
    assert_true(rough < 192000 / 10);
    free(raw);
}

static void
test_block__extremes_of_integers(void **state)
{
    (void) state;
    static const uint64_t values[] = {0, 0, UINT64_C(1) << 63, UINT64_MAX, 1, INT64_MAX, 7, 0, 0};
    for (int unsigned_too = 0; unsigned_too < 2; unsigned_too++) {
        field__block block = {.type = unsigned_too ? ESDM_TYPE_UINT64 : ESDM_TYPE_INT64,
                              .elements = sizeof values / sizeof values[0]};
        uint8_t *again = round_trip(&block, NULL, ESDM_EFFORT_BALANCED, values, NULL);
        assert_memory_equal(again, values, sizeof values);
        free(again);
    }
}

/* Waves in every direction, with noise of `noise` and land. */
static uint8_t *
make_waves(const shape *s, double noise)
{
    size_t n = elements_of(s);
    size_t nx = (size_t) s->sizes[s->rank - 1];
    size_t ny = (size_t) s->sizes[s->rank - 2];
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    random_state = 4711;
    for (size_t i = 0; i < n; i++) {
        double x = (double) (i % nx);
        double y = (double) (i / nx % ny);
        double z = (double) (i / nx / ny);
        values[i] = (float) (280 + 20 * sin(x * 0.11 + z * 0.2) * cos(y * 0.13 - z * 0.07) +
                             noise * uniform());
        if (sin(x * 0.07) + cos(y * 0.09) > 1.3)
            values[i] = 9.96921e36f;
    }
    return (uint8_t *) values;
}

static void
test_block__fields_of_any_smoothness_keep_their_bound(void **state)
{
    static const shape fields[] = {
        {2, {150, 211}},   {3, {1, 70, 130}},   {3, {11, 40, 64}},
        {3, {40, 17, 31}}, {4, {3, 9, 33, 40}},
    };
    static const double noises[] = {0, 0.01, 1};
    static const double absolutes[] = {1, 0.05, 1e-3};
    const int step = each_nth(STEP);
    (void) state;
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        for (int k = first_of(step, f); k < 9; k += step) {
            field__block block = {.type = ESDM_TYPE_FLOAT32,
                                  .rank = fields[f].rank,
                                  .shape = fields[f].sizes,
                                  .elements = elements_of(&fields[f])};
            esdm_codec_accuracy a = {.absolute = absolutes[k % 3],
                                     .relative = k == 7 ? 1e-4 : INFINITY,
                                     .exact_below = -INFINITY,
                                     .exact_above = INFINITY,
                                     .sum_bound = INFINITY};
            uint8_t *raw = make_waves(&fields[f], noises[k / 3]);
            uint8_t *again = round_trip(&block, &a, ESDM_EFFORT_ARCHIVE, raw, NULL);
            for (size_t i = 0; i < block.elements; i++)
                assert_true(within(&a, block.type, raw + 4 * i, again + 4 * i));
            free(raw);
            free(again);
        }
    }
}

static long double
sum_of(const uint8_t *raw, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, raw + 4 * i, sizeof value);
        sum += fabsf(value) < 1e30f ? value : 0;
    }
    return sum;
}

static void
test_block__the_sum_stays_within_its_bound(void **state)
{
    static const shape s = {3, {7, 40, 64}};
    static const double bounds[] = {100, 1, 1e-3};
    const int step = each_nth(STEP);
    (void) state;
    for (int k = first_of(step, 0); k < 27; k += step) {
        esdm_codec_accuracy a = {.absolute = k / 9 == 1 ? INFINITY : 0.5,
                                 .relative = k / 9 == 1 ? 0.01 : INFINITY,
                                 .exact_below = -INFINITY,
                                 .exact_above = INFINITY,
                                 .sum_bound = bounds[k % 3]};
        field__block block = {
            .type = ESDM_TYPE_FLOAT32, .rank = s.rank, .shape = s.sizes, .elements = 7 * 40 * 64};
        uint8_t *raw =
            k / 9 == 2 ? make_values(block.type, block.elements, CONSTANT) : make_waves(&s, 0.1);
        size_t bytes;
        uint8_t *again = round_trip(&block, &a, (esdm_codec_effort) (1 + k / 3 % 3), raw, &bytes);
        for (size_t i = 0; i < block.elements; i++)
            assert_true(within(&a, block.type, raw + 4 * i, again + 4 * i));
        long double change = sum_of(again, block.elements) - sum_of(raw, block.elements);
        if (!(fabsl(change) <= a.sum_bound))
            fail_msg("round %d: the sum is off by %Lg", k, change);
        assert_true(bytes < block.elements * 2);
        free(raw);
        free(again);
    }
}

/* Few different values, in no simple steps, with land and zeros. */
static uint8_t *
make_packed(size_t n, bool zeros)
{
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    random_state = 99;
    for (size_t i = 0; i < n; i++) {
        double steps = floor(300 * sin((double) i * 0.002)) + (double) (next_random() % 5);
        values[i] = (float) (101325.37 + steps * 1.7071);
        if (zeros && sin((double) i * 0.01) > 0.2)
            values[i] = sin((double) i * 0.01) > 0.9 ? -0.0f : 0.0f;
        if (i % 1000 < 50)
            values[i] = NAN;
    }
    return (uint8_t *) values;
}

static void
test_block__values_that_repeat_are_kept_and_shrink(void **state)
{
    (void) state;
    uint64_t sizes[3] = {2, 150, 100};
    field__block block = {.type = ESDM_TYPE_FLOAT32, .rank = 3, .shape = sizes, .elements = 30000};
    for (int k = 0; k < 6; k++) {
        uint8_t *raw = make_packed(block.elements, k % 2 == 1);
        size_t bytes;
        uint8_t *again = round_trip(&block, NULL, (esdm_codec_effort) (1 + k / 2), raw, &bytes);
        assert_memory_equal(raw, again, block.elements * 4);
        assert_true(bytes < block.elements * 4 / (k < 2 ? 2 : 5));
        free(raw);
        free(again);
    }
}

/* ---- hostile input ------------------------------------------------------------------------ */

static void
decode_hostile(const field__block *block, const uint8_t *bytes, size_t count)
{
    uint8_t *input = malloc(count + 1);
    uint8_t *raw = malloc(block->elements * field__element_bytes(block->type));
    assert_true(input != NULL && raw != NULL);
    memcpy(input, bytes, count);
    uint8_t *end = realloc(input, count > 0 ? count : 1);
    assert_non_null(end);
    esdm_error err = {0};
    esdm_status st = field__decode(block->type, block->elements, end, count, raw, &err);
    assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
    free(end);
    free(raw);
}

static void
test_block__damaged_bytes_are_refused_or_decode(void **state)
{
    (void) state;
    esdm_codec_accuracy accuracy = {.absolute = 0.01,
                                    .relative = INFINITY,
                                    .exact_below = -INFINITY,
                                    .exact_above = INFINITY,
                                    .sum_bound = INFINITY};
    static const shape field = {3, {5, 20, 31}};
    static const shape packed = {2, {200, 100}};
    for (int round = 0; round < 18; round++) {
        const shape *s = round < 12 ? &shapes[9 + round % 6] : round < 16 ? &field : &packed;
        field__block block = {.type = round % 2 ? ESDM_TYPE_FLOAT64 : ESDM_TYPE_FLOAT32,
                              .rank = s->rank,
                              .shape = s->sizes,
                              .elements = elements_of(s)};
        uint8_t *raw = make_values(block.type, block.elements, round % 4 ? FILLED : SMOOTH);
        esdm__buffer encoded;
        encode(&block, round % 3 ? &accuracy : NULL, (esdm_codec_effort) (round % 4), raw,
               &encoded);
        for (size_t length = 0; length < encoded.bytes; length += 1 + length / 16)
            decode_hostile(&block, encoded.data, length);
        for (int i = 0; i < 400; i++) {
            uint8_t *copy = malloc(encoded.bytes);
            assert_non_null(copy);
            memcpy(copy, encoded.data, encoded.bytes);
            size_t most = i % 2 ? encoded.bytes : encoded.bytes < 48 ? encoded.bytes : 48;
            for (uint64_t k = 0; k <= next_random() % 3; k++)
                copy[next_random() % most] = (uint8_t) next_random();
            decode_hostile(&block, copy, encoded.bytes);
            free(copy);
        }
        esdm__buffer_clear(&encoded);
        free(raw);
    }
}

static void
test_block__wrong_shape_or_version_has_a_message(void **state)
{
    (void) state;
    uint64_t sizes[2] = {3, 5};
    float values[16] = {1, 2, 3};
    esdm_error err = {0};
    field__block block = {.type = ESDM_TYPE_FLOAT32, .rank = 2, .shape = sizes, .elements = 16};
    esdm__buffer out;
    esdm__buffer_init(&out);
    assert_int_equal(field__encode(&block, NULL, ESDM_EFFORT_FAST, values, &out, &err),
                     ESDM_EINVAL);
    assert_non_null(strstr(err.message, "16 elements"));
    assert_int_equal(out.bytes, 0);
    block.elements = 15;
    encode(&block, NULL, ESDM_EFFORT_FAST, values, &out);
    out.data[0] = 200;
    assert_int_equal(field__decode(block.type, block.elements, out.data, out.bytes, values, &err),
                     ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "format 200"));
    esdm__buffer_clear(&out);
}

/* Values of which some byte planes repeat and no difference does: coder PACK takes no differences,
 * which the first readers of version 1 did not know. Blocks of that kind were written as version 1
 * for a while. */
static void
test_block__packed_without_differences_has_a_version_of_its_own(void **state)
{
    enum { N = 4096, CODER_PACK = 4 };
    static uint32_t values[2][N];
    static uint32_t again[N];
    (void) state;
    uint64_t sizes[1] = {N};
    field__block block = {.type = ESDM_TYPE_FLOAT32, .rank = 1, .shape = sizes, .elements = N};
    for (size_t i = 0; i < N; i++) {
        values[0][i] = 0x40000000u + (uint32_t) (next_random() % 3 << 20);
        values[1][i] = 0x40000000u + (uint32_t) i * 7;
    }
    for (uint8_t version = 1; version <= 2; version++) {
        const uint32_t *raw = values[version == 2 ? 0 : 1];
        esdm__buffer out;
        esdm_error err = {0};
        encode(&block, NULL, ESDM_EFFORT_FAST, raw, &out);
        assert_int_equal(out.data[2], CODER_PACK);
        assert_int_equal(out.data[0], version);
        for (uint8_t told = 1; told <= 2; told++) {
            out.data[0] = told;
            memset(again, 0, sizeof again);
            assert_int_equal(field__decode(block.type, N, out.data, out.bytes, again, &err),
                             ESDM_OK);
            assert_memory_equal(again, raw, sizeof again);
        }
        out.data[0] = 0;
        assert_int_equal(field__decode(block.type, N, out.data, out.bytes, again, &err),
                         ESDM_ECORRUPT);
        out.data[0] = 7;
        assert_int_equal(field__decode(block.type, N, out.data, out.bytes, again, &err),
                         ESDM_ENOTSUP);
        assert_non_null(strstr(err.message, "up to 6"));
        esdm__buffer_clear(&out);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block__lossless_for_all_types_and_shapes),
        cmocka_unit_test(test_block__every_point_stays_within_its_bound),
        cmocka_unit_test(test_block__extremes_of_integers),
        cmocka_unit_test(test_block__fields_of_any_smoothness_keep_their_bound),
        cmocka_unit_test(test_block__the_sum_stays_within_its_bound),
        cmocka_unit_test(test_block__values_that_repeat_are_kept_and_shrink),
        cmocka_unit_test(test_block__smooth_fields_shrink),
        cmocka_unit_test(test_block__damaged_bytes_are_refused_or_decode),
        cmocka_unit_test(test_block__packed_without_differences_has_a_version_of_its_own),
        cmocka_unit_test(test_block__wrong_shape_or_version_has_a_message),
    };
    return cmocka_run_group_tests_name("field.block", tests, NULL, NULL);
}
