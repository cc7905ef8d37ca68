/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codecs that know shapes, and those that may lose accuracy. */

#include "conformance/codec/codec.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/accuracy_check.h"
#include "support/number_fields.h"

#define ELEMENTS_MAX 8192u
#define GUARD        64u

/* ---- fields ------------------------------------------------------------------------------- */

typedef struct field_shape {
    uint32_t rank;
    uint64_t n[5];
} field_shape;

static const field_shape shapes[] = {
    {0, {0}},       {1, {1}},         {1, {4099}},      {2, {1, 977}},       {2, {64, 96}},
    {2, {97, 53}},  {3, {7, 31, 29}}, {3, {5, 1, 800}}, {4, {2, 6, 11, 17}}, {5, {2, 3, 2, 13, 19}},
    {3, {1, 1, 1}}, {2, {613, 2}},
};
#define NSHAPES (sizeof shapes / sizeof shapes[0])

static size_t
elements_of(const field_shape *shape)
{
    size_t n = 1;
    for (uint32_t d = 0; d < shape->rank; d++)
        n *= (size_t) shape->n[d];
    return shape->rank == 0 ? 1234 : n;
}

static esdm_codec_input
input_of(esdm_type type, const field_shape *shape, const esdm_codec_accuracy *accuracy)
{
    return (esdm_codec_input){.type = type,
                              .element_bytes = (uint32_t) field_type_bytes(type),
                              .rank = shape->rank,
                              .shape = shape->rank > 0 ? shape->n : NULL,
                              .accuracy = accuracy};
}

/* ---- round trips -------------------------------------------------------------------------- */

/* Encodes and decodes into memory of exact size; returns whether the codec stored anything. */
static bool
round_trip(const esdm_codec_input *input, const uint8_t *raw, size_t raw_bytes, uint8_t *back)
{
    size_t room = codec()->bound(raw_bytes);
    uint8_t *out = malloc(room);
    size_t bytes = 0;
    assert_non_null(out);
    assert_ok(codec()->encode(input, raw, raw_bytes, out, room, &bytes, &place_error));
    assert_true(bytes <= room);
    if (bytes > 0) {
        esdm_codec_input reading = *input;
        uint8_t *exact = malloc(bytes); /* so that the sanitizer sees reads past the end */
        assert_non_null(exact);
        memcpy(exact, out, bytes);
        reading.accuracy = NULL;
        reading.effort = 0;
        assert_ok(codec()->decode(&reading, exact, bytes, back, raw_bytes, &place_error));
        free(exact);
    } else {
        memcpy(back, raw, raw_bytes);
    }
    free(out);
    return bytes > 0;
}

static const esdm_codec_effort efforts[] = {0, ESDM_EFFORT_FAST, ESDM_EFFORT_BALANCED,
                                            ESDM_EFFORT_ARCHIVE};

void
test_codec__shapes_round_trip(void **state)
{
    (void) state;
    uint8_t *raw = malloc((size_t) ELEMENTS_MAX * 8);
    uint8_t *back = malloc((size_t) ELEMENTS_MAX * 8);
    assert_true(raw != NULL && back != NULL);
    size_t round = 0;
    for (size_t t = 0; t < FIELD_TYPES; t++) {
        for (size_t s = 0; s < NSHAPES; s++) {
            for (field_kind kind = 0; kind < FIELD_KINDS; kind++) {
                size_t n = elements_of(&shapes[s]);
                size_t bytes = n * field_type_bytes(field_types[t]);
                esdm_codec_input input = input_of(field_types[t], &shapes[s], NULL);
                input.effort = efforts[round++ % 4];
                field_make(kind, field_types[t], n, raw);
                (void) round_trip(&input, raw, bytes, back);
                assert_memory_equal(raw, back, bytes);
            }
        }
    }
    free(raw);
    free(back);
}

void
test_codec__equal_input_gives_equal_bytes(void **state)
{
    (void) state;
    const field_shape shape = {3, {4, 24, 40}};
    const esdm_codec_accuracy accuracy = {.absolute = 0.01,
                                          .relative = INFINITY,
                                          .exact_below = -INFINITY,
                                          .exact_above = INFINITY,
                                          .sum_bound = INFINITY};
    size_t raw_bytes = elements_of(&shape) * 4;
    size_t room = codec()->bound(raw_bytes);
    uint8_t *raw = malloc(raw_bytes);
    uint8_t *out[2] = {malloc(room), malloc(room)};
    size_t bytes[2] = {0, 0};
    assert_true(raw != NULL && out[0] != NULL && out[1] != NULL);
    field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT32, elements_of(&shape), raw);
    for (int lossy = 0; lossy < 2; lossy++) {
        esdm_codec_input input = input_of(ESDM_TYPE_FLOAT32, &shape, lossy ? &accuracy : NULL);
        for (int i = 0; i < 2; i++) {
            memset(out[i], i == 0 ? 0xA5 : 0x5A, room); /* what lies there must not matter */
            assert_ok(
                codec()->encode(&input, raw, raw_bytes, out[i], room, &bytes[i], &place_error));
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(out[0], out[1], bytes[0]);
    }
    free(raw);
    free(out[0]);
    free(out[1]);
}

/* Being allowed to keep everything as it is, a codec could pass all other tests so. */
void
test_codec__what_shrinks_is_shrunk(void **state)
{
    (void) state;
    const field_shape shape = {3, {4, 24, 40}};
    const esdm_codec_accuracy accuracy = {.absolute = 0.05,
                                          .relative = INFINITY,
                                          .exact_below = -INFINITY,
                                          .exact_above = INFINITY,
                                          .sum_bound = INFINITY};
    const esdm_type types[] = {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64};
    uint8_t raw[4 * 24 * 40 * 8];
    uint8_t *out = malloc(codec()->bound(sizeof raw));
    assert_non_null(out);
    bool compresses = codec()->id != 0 && (codec()->flags & ESDM_CODEC_FILTER) == 0;
    for (size_t t = 0; t < 2 && compresses; t++) {
        size_t raw_bytes = elements_of(&shape) * field_type_bytes(types[t]);
        size_t bytes[3]; /* of zeros, of waves as they are, of waves within a bound */
        for (int i = 0; i < 3; i++) {
            esdm_codec_input input = input_of(types[t], &shape, i == 2 ? &accuracy : NULL);
            memset(raw, 0, raw_bytes);
            if (i > 0)
                field_make(FIELD_SMOOTH, types[t], elements_of(&shape), raw);
            assert_ok(codec()->encode(&input, raw, raw_bytes, out, codec()->bound(raw_bytes),
                                      &bytes[i], &place_error));
        }
        assert_in_range(bytes[0], 1, raw_bytes / 8);
        if ((codec()->flags & ESDM_CODEC_SHAPED) != 0)
            assert_in_range(bytes[1], 1, raw_bytes);
        if ((codec()->flags & ESDM_CODEC_LOSSY) != 0)
            assert_in_range(bytes[2], 1, bytes[1] * 3 / 4);
    }
    free(out);
}

/* Shapes that do not belong to the bytes come from damaged fragments as well. */
void
test_codec__shaped_hostile_input_stays_in_bounds(void **state)
{
    (void) state;
    uint64_t random = 4711;
    uint8_t raw[4 * 30 * 8];
    uint8_t decoded[sizeof raw + GUARD];
    const field_shape shape = {2, {4, 30}};
    size_t room = codec()->bound(sizeof raw);
    uint8_t *out = malloc(room);
    assert_non_null(out);
    for (int round = 0; round < 4000; round++) {
        esdm_type type = field_types[(size_t) round % FIELD_TYPES];
        size_t raw_bytes = elements_of(&shape) * field_type_bytes(type);
        const esdm_codec_accuracy loose = {.absolute = 0.25,
                                           .relative = INFINITY,
                                           .exact_below = -INFINITY,
                                           .exact_above = INFINITY,
                                           .sum_bound = INFINITY};
        esdm_codec_input input = input_of(type, &shape, round % 3 == 0 ? &loose : NULL);
        input.effort = efforts[round % 4];
        size_t bytes = 0;
        field_make((field_kind) (round % FIELD_KINDS), type, elements_of(&shape), raw);
        assert_ok(codec()->encode(&input, raw, raw_bytes, out, room, &bytes, &place_error));
        if (bytes == 0)
            continue;
        size_t kept = round % 5 == 0 ? 1 + next_random(&random) % bytes : bytes;
        uint8_t *exact = malloc(kept);
        assert_non_null(exact);
        memcpy(exact, out, kept);
        for (int flips = 0; flips < 3; flips++)
            exact[next_random(&random) % kept] = (uint8_t) next_random(&random);
        memset(decoded, 0x5A, sizeof decoded);
        input.accuracy = NULL;
        esdm_status status = codec()->decode(&input, exact, kept, decoded, raw_bytes, &place_error);
        assert_true(status == ESDM_OK || status == ESDM_ECORRUPT || status == ESDM_ENOTSUP);
        for (size_t i = 0; i < GUARD; i++)
            assert_int_equal(decoded[raw_bytes + i], 0x5A);
        free(exact);
    }
    free(out);
}

/* ---- accuracy ----------------------------------------------------------------------------- */

static void
check_bound(const esdm_codec_input *input, const uint8_t *raw, size_t n, uint8_t *back,
            const char *what)
{
    size_t bytes = input->element_bytes;
    (void) round_trip(input, raw, n * bytes, back);
    size_t at = accuracy_first_violation(input->accuracy, input->type, bytes, raw, back, n);
    if (at < n)
        fail_msg("%s, type %d, element %zu of %zu: %.17Lg became %.17Lg", what, input->type, at, n,
                 accuracy_value(input->type, raw + at * bytes),
                 accuracy_value(input->type, back + at * bytes));
}

static const esdm_codec_accuracy accuracies[] = {
    {.absolute = 0.01, .relative = INFINITY},
    {.absolute = 1.0, .relative = INFINITY},
    {.absolute = 37.5, .relative = INFINITY},
    {.absolute = 1e-30, .relative = INFINITY},
    {.absolute = 1e30, .relative = INFINITY},
    {.absolute = INFINITY, .relative = 0.01},
    {.absolute = INFINITY, .relative = 0.3},
    {.absolute = INFINITY, .relative = 1e-5},
    {.absolute = INFINITY, .relative = 3.0},
    {.absolute = INFINITY, .relative = 0.01, .finest = 0.1},
    {.absolute = 0.5, .relative = 0.001},
    {.absolute = 0.5, .relative = 0.001, .finest = 0.01},
};
#define NACCURACIES (sizeof accuracies / sizeof accuracies[0])

static esdm_codec_accuracy
accuracy_of(size_t which)
{
    esdm_codec_accuracy a = accuracies[which % NACCURACIES];
    a.exact_below = which / NACCURACIES % 2 == 1 ? 265.0 : -INFINITY;
    a.exact_above = which / NACCURACIES % 3 == 2 ? 290.0 : INFINITY;
    a.sum_bound = INFINITY;
    return a;
}

/* A codec that cannot lose anything is given accuracies too: it must not mind. */
void
test_codec__lossy_keeps_every_bound(void **state)
{
    (void) state;
    uint8_t *raw = malloc((size_t) ELEMENTS_MAX * 8);
    uint8_t *back = malloc((size_t) ELEMENTS_MAX * 8);
    assert_true(raw != NULL && back != NULL);
    size_t round = 0;
    for (size_t t = 0; t < FIELD_TYPES; t++) {
        for (field_kind kind = 0; kind < FIELD_KINDS; kind++) {
            for (size_t a = 0; a < 3 * NACCURACIES; a++, round++) {
                const field_shape *shape = &shapes[round % NSHAPES];
                esdm_codec_accuracy accuracy = accuracy_of(a);
                esdm_codec_input input = input_of(field_types[t], shape, &accuracy);
                char what[64];
                (void) snprintf(what, sizeof what, "accuracy %zu, field %d, shape %zu", a,
                                (int) kind, round % NSHAPES);
                input.effort = efforts[round / 7 % 4];
                field_make(kind, field_types[t], elements_of(shape), raw);
                check_bound(&input, raw, elements_of(shape), back, what);
            }
        }
    }
    free(raw);
    free(back);
}

void
test_codec__lossy_special_values_keep_their_bits(void **state)
{
    (void) state;
    static const uint32_t singles[] = {0x7fc00000u, 0xffc12345u, 0x7f800001u, 0x7f800000u,
                                       0xff800000u, 0x501502f9u, 0x7cf00000u};
    const field_shape shape = {2, {40, 50}};
    float exact[2];
    uint32_t raw[2000];
    uint32_t back[2000];
    uint64_t random = 5;
    memcpy(exact, &singles[5], sizeof *exact);     /* 1e10 */
    memcpy(exact + 1, &singles[6], sizeof *exact); /* 9.96921e36 */
    esdm_codec_accuracy a = {.absolute = 1e9,
                             .relative = INFINITY,
                             .exact_below = -INFINITY,
                             .exact_above = INFINITY,
                             .sum_bound = INFINITY,
                             .exact_values = exact,
                             .exact_count = 2};
    esdm_codec_input input = input_of(ESDM_TYPE_FLOAT32, &shape, &a);
    for (size_t i = 0; i < 2000; i++) {
        float value = 9.9e9f + (float) (next_random(&random) % 200000000); /* around 1e10 */
        memcpy(&raw[i], &value, sizeof value);
        if (i % 13 < 7 && i % 3 == 0)
            raw[i] = singles[i % 13];
    }
    for (size_t e = 0; e < sizeof efforts / sizeof efforts[0]; e++) {
        input.effort = efforts[e];
        check_bound(&input, (uint8_t *) raw, 2000, (uint8_t *) back, "special values");
    }
}
