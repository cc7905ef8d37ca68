/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Large blocks of mode archive, in parts that are decoded alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "encode.h"
#include "esdm/types.h"
#include "some_cases.h"

#define BOUND 0.01

typedef struct example {
    const char *name;
    int32_t type;
    uint32_t rank;
    uint64_t shape[4];
    bool lossy;
    enum { WHOLE, HOLES, HOLES_FIRST } holes; /* the last: in the first part alone */
    field__coder coder;                       /* FIELD__CODERS: any */
    size_t parts;
    bool sum_stays; /* nudges make good for what coarse levels are off by */
} example;

static const example examples[] = {
    {"levels", ESDM_TYPE_FLOAT32, 3, {24, 96, 200}, true, WHOLE, FIELD__CODER_LEVELS, 2, true},
    {"three", ESDM_TYPE_FLOAT32, 3, {24, 141, 200}, true, WHOLE, FIELD__CODER_LEVELS, 3, false},
    {"masked", ESDM_TYPE_FLOAT32, 3, {24, 96, 200}, true, HOLES, FIELD__CODERS, 2, true},
    {"mixed", ESDM_TYPE_FLOAT32, 3, {24, 96, 200}, true, HOLES_FIRST, FIELD__CODER_LEVELS, 2, true},
    {"odd rows", ESDM_TYPE_FLOAT32, 2, {500, 900}, false, HOLES_FIRST, FIELD__CODER_ROWS, 2, false},
    {"volumes", ESDM_TYPE_FLOAT32, 4, {9, 25, 24, 90}, true, WHOLE, FIELD__CODERS, 2, false},
    {"rows", ESDM_TYPE_INT32, 2, {500, 900}, false, WHOLE, FIELD__CODER_ROWS, 2, false},
    {"wide", ESDM_TYPE_FLOAT64, 2, {500, 900}, false, HOLES, FIELD__CODERS, 2, false},
    {"long", ESDM_TYPE_FLOAT32, 1, {420000}, true, HOLES, FIELD__CODERS, 2, true},
};
#define EXAMPLES (sizeof examples / sizeof examples[0])

static size_t
elements_of(const example *e)
{
    size_t n = 1;
    for (uint32_t d = 0; d < e->rank; d++)
        n *= (size_t) e->shape[d];
    return n;
}

static double
value_at(const example *e, size_t i)
{
    double x = (double) (i % e->shape[e->rank - 1]);
    double y = (double) (i / e->shape[e->rank - 1]);
    double noise = (double) (i * 2654435761u % 8191) / 8191;
    return 20 * sin(x * 0.02) * cos(y * 0.003) + 0.05 * noise;
}

/* A corner, single points, and all of the last rows; or points of the upper rows of each plane. */
static bool
is_hole(const example *e, size_t i, size_t n)
{
    size_t ny = e->rank > 1 ? (size_t) e->shape[e->rank - 2] : 1;
    if (e->holes == HOLES_FIRST)
        return i / (size_t) e->shape[e->rank - 1] % ny < ny / 3 && i % 7 < 3;
    return e->holes == HOLES && (i % 777 == 0 || i % 1000 < 50 || i > n / 3 * 2);
}

/* Holes are NaN. */
static void *
make_values(const example *e)
{
    size_t n = elements_of(e);
    size_t size = field__element_bytes(e->type);
    uint8_t *raw = malloc(n * size);
    assert_non_null(raw);
    for (size_t i = 0; i < n; i++) {
        bool hole = is_hole(e, i, n);
        double value = hole ? (double) NAN : value_at(e, i);
        if (e->type == ESDM_TYPE_FLOAT32)
            ((float *) (void *) raw)[i] = (float) value;
        else if (e->type == ESDM_TYPE_FLOAT64)
            ((double *) (void *) raw)[i] = value;
        else
            ((int32_t *) (void *) raw)[i] = (int32_t) lrint(value * 1000);
    }
    return raw;
}

static void
encode(const example *e, const void *raw, esdm__buffer *out)
{
    const esdm_codec_accuracy accuracy = {.absolute = BOUND,
                                          .relative = INFINITY,
                                          .exact_below = -INFINITY,
                                          .exact_above = INFINITY,
                                          .sum_bound = INFINITY};
    const field__block block = {
        .type = e->type, .rank = e->rank, .shape = e->shape, .elements = elements_of(e)};
    esdm__buffer_init(out);
    assert_int_equal(
        field__encode(&block, e->lossy ? &accuracy : NULL, ESDM_EFFORT_ARCHIVE, raw, out, NULL),
        ESDM_OK);
}

/* In parts; levels may be nudged. */
static void
check_version(const esdm__buffer *out)
{
    if (out->data[0] == FIELD__VERSION_NUDGED) {
        assert_int_equal(out->data[2], FIELD__CODER_LEVELS);
        assert_true(out->data[3] & FIELD__FLAG_PARTS);
    } else {
        assert_int_equal(out->data[0], FIELD__VERSION_PARTS);
    }
}

static void
check_values(const example *e, const uint8_t *raw, const uint8_t *back)
{
    size_t n = elements_of(e);
    if (!e->lossy) {
        assert_memory_equal(raw, back, n * field__element_bytes(e->type));
        return;
    }
    double change = 0;
    double sizes = 0;
    for (size_t i = 0; i < n; i++) {
        float x = ((const float *) (const void *) raw)[i];
        float y = ((const float *) (const void *) back)[i];
        if (isnan(x)) {
            assert_memory_equal(&x, &y, sizeof x);
            continue;
        }
        assert_true(fabs((double) y - (double) x) <= BOUND);
        change += (double) y - (double) x;
        sizes += fabs((double) x);
    }
    if (e->sum_stays && fabs(change) > 1e-6 * sizes)
        fail_msg("%s: the sum changes by %g of that of sizes", e->name, change / sizes);
}

static void
test_parts__keep_their_promise(void **state)
{
    const int every = 1;
    (void) state;
    for (size_t k = (size_t) first_of(every, 0); k < EXAMPLES; k += (size_t) every) {
        const example *e = &examples[k];
        uint8_t *raw = make_values(e);
        uint8_t *back = malloc(elements_of(e) * field__element_bytes(e->type));
        esdm__buffer out;
        assert_non_null(back);
        encode(e, raw, &out);
        check_version(&out);
        assert_true(e->coder == FIELD__CODERS || out.data[2] == e->coder);
        assert_int_equal(field__decode(e->type, elements_of(e), out.data, out.bytes, back, NULL),
                         ESDM_OK);
        check_values(e, raw, back);
        esdm__buffer_clear(&out);
        free(back);
        free(raw);
    }
}

/* What is wanted is as in the whole, what lies in other parts is not touched. */
static void
test_parts__are_decoded_alone(void **state)
{
    const int every = each_nth(2);
    (void) state;
    for (size_t k = (size_t) first_of(every, 1); k < EXAMPLES; k += (size_t) every) {
        const example *e = &examples[k];
        size_t size = field__element_bytes(e->type);
        size_t n = elements_of(e);
        uint8_t *raw = make_values(e);
        uint8_t *back = malloc(n * size);
        uint8_t *some = malloc(n * size);
        esdm__buffer out;
        assert_true(back != NULL && some != NULL);
        encode(e, raw, &out);
        assert_int_equal(field__decode(e->type, n, out.data, out.bytes, back, NULL), ESDM_OK);
        for (size_t i = 0; i < 4; i++) {
            size_t at = (i * 137987 + 5) % (n - 3);
            const esdm_codec_range wanted[2] = {{at * size, (at + 1) * size},
                                                {(at + 2) * size, (at + 3) * size}};
            size_t decoded = 0;
            memset(some, 0xA5, n * size);
            assert_int_equal(field__decode_some(e->type, n, out.data, out.bytes, wanted, 2, some,
                                                &decoded, NULL),
                             ESDM_OK);
            assert_true(decoded > 0 && decoded <= n / e->parts + n / 16);
            size_t touched = 0;
            for (size_t j = 0; j < n; j++) {
                bool same = memcmp(some + j * size, back + j * size, size) == 0;
                bool wants = j == at || j == at + 2;
                uint8_t none[8];
                memset(none, 0xA5, sizeof none);
                assert_true(same || (!wants && memcmp(some + j * size, none, size) == 0));
                touched += same;
            }
            assert_true(touched >= decoded && touched < n);
        }
        esdm__buffer_clear(&out);
        free(some);
        free(back);
        free(raw);
    }
}

static void
test_parts__are_the_same_on_all_processors(void **state)
{
    const int every = each_nth(2);
    (void) state;
    for (size_t k = (size_t) first_of(every, 1); k < EXAMPLES; k += (size_t) every) {
        const example *e = &examples[k];
        size_t n = elements_of(e);
        size_t bytes = n * field__element_bytes(e->type);
        uint8_t *raw = make_values(e);
        uint8_t *back = malloc(bytes);
        uint8_t *same = malloc(bytes);
        esdm__buffer first;
        assert_true(back != NULL && same != NULL);
        encode(e, raw, &first);
        assert_int_equal(field__decode(e->type, n, first.data, first.bytes, back, NULL), ESDM_OK);
        for (uint32_t i = 0; field__kernels_at(i) != NULL; i++) {
            esdm__buffer out;
            field__kernels_force(field__kernels_at(i));
            encode(e, raw, &out);
            assert_int_equal(out.bytes, first.bytes);
            assert_memory_equal(out.data, first.data, out.bytes);
            assert_int_equal(field__decode(e->type, n, out.data, out.bytes, same, NULL), ESDM_OK);
            assert_memory_equal(same, back, bytes);
            esdm__buffer_clear(&out);
        }
        field__kernels_force(NULL);
        esdm__buffer_clear(&first);
        free(same);
        free(back);
        free(raw);
    }
}

/* Blocks of all coders written before have no parts, and are still read so; of what is no such
 * block in parts none is believed. */
static void
test_parts__damaged_ones_are_refused_or_decode(void **state)
{
    (void) state;
    const example *e = &examples[1];
    size_t n = elements_of(e);
    uint8_t *raw = make_values(e);
    float *back = malloc(n * sizeof *back);
    esdm__buffer out;
    assert_non_null(back);
    encode(e, raw, &out);
    uint8_t *bytes = malloc(out.bytes);
    assert_non_null(bytes);
    for (size_t i = 0; i < 60; i++) {
        size_t at = i < 40 ? i : i * 7919 % out.bytes;
        size_t length = i % 3 == 0 ? out.bytes : out.bytes * i / 60;
        memcpy(bytes, out.data, out.bytes);
        bytes[at] = (uint8_t) (bytes[at] ^ (1u << i % 8));
        const esdm_codec_range wanted = {i * 4, i * 4 + 4};
        size_t decoded = 0;
        esdm_status st =
            field__decode_some(e->type, n, bytes, length, &wanted, 1, back, &decoded, NULL);
        assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
        if (i < 10) {
            st = field__decode(e->type, n, bytes, length, back, NULL);
            assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
        }
    }
    assert_int_equal(field__decode(e->type, n, out.data, out.bytes - 1, back, NULL), ESDM_ECORRUPT);
    /* As many parts as elements would take hours. */
    const field__axes axes = {1, 1, 1000, 1000};
    field__parts parts;
    esdm__buffer hostile;
    esdm__cursor in;
    esdm__buffer_init(&hostile);
    field__parts_put(&(field__parts){.extent = {1, 1, 1, 1}}, &hostile);
    esdm__cursor_init(&in, hostile.data, hostile.bytes);
    assert_false(field__parts_get(&axes, &in, &parts));
    esdm__buffer_clear(&hostile);
    esdm__buffer_clear(&out);
    free(bytes);
    free(back);
    free(raw);
}

/* Numbers that were decoded are encoded again without a change. */
static void
test_parts__keep_their_bits_when_written_again(void **state)
{
    (void) state;
    const example *e = &examples[1];
    size_t n = elements_of(e);
    float *raw = make_values(e);
    float *back = malloc(n * sizeof *back);
    esdm__buffer out;
    assert_non_null(back);
    encode(e, raw, &out);
    assert_int_equal(field__decode(e->type, n, out.data, out.bytes, raw, NULL), ESDM_OK);
    for (int i = 0; i < 3; i++) {
        esdm__buffer_clear(&out);
        encode(e, raw, &out);
        assert_int_equal(field__decode(e->type, n, out.data, out.bytes, back, NULL), ESDM_OK);
        assert_memory_equal(raw, back, n * sizeof *raw);
    }
    esdm__buffer_clear(&out);
    free(back);
    free(raw);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts__keep_their_promise),
        cmocka_unit_test(test_parts__are_decoded_alone),
        cmocka_unit_test(test_parts__are_the_same_on_all_processors),
        cmocka_unit_test(test_parts__damaged_ones_are_refused_or_decode),
        cmocka_unit_test(test_parts__keep_their_bits_when_written_again),
    };
    return cmocka_run_group_tests_name("field.parts", tests, NULL, NULL);
}
