/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fragments in layers: each prefix keeps the bound that it tells, the last one what was
 * asked. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "codec/blob.h"
#include "codec/layers.h"
#include "support/accuracy_check.h"

extern const esdm_codec_plugin esdm_codec_field_plugin;

static const esdm_codec_plugin *
find_codec(uint8_t id)
{
    return id == 4 ? &esdm_codec_field_plugin : NULL;
}

static const esdm__chain chain_field = {1, {&esdm_codec_field_plugin}};
#define NX 61u
#define NY 70u
#define NZ 40u
#define N  (NX * NY * NZ)

static const esdm_codec_accuracy nothing = {.absolute = INFINITY,
                                            .relative = INFINITY,
                                            .exact_below = -INFINITY,
                                            .exact_above = INFINITY,
                                            .sum_bound = INFINITY};

/* A field with fill values, NaN, infinities and zeros of both signs. */
static double
value_at(size_t i)
{
    double x = (double) (i % NX);
    double y = (double) (i / NX % NY);
    double z = (double) (i / NX / NY);
    uint32_t noise = (uint32_t) i * 2654435761u;
    if (i % 97 == 3)
        return NAN;
    if (i % 89 == 5)
        return 1e30;
    if (i % 211 == 9)
        return i % 2 == 0 ? INFINITY : -INFINITY;
    if (i % 307 == 4)
        return i % 2 == 0 ? 0.0 : -0.0;
    return 280 + 30 * sin(x / 9) * cos(y / 11) + z / 7 + (double) (noise >> 16) / 65536 * 0.05;
}

static void
fill_field(int32_t type, void *raw)
{
    for (size_t i = 0; i < N; i++) {
        double x = value_at(i);
        double whole = isfinite(x) ? fmin(rint(x * 50), 32000) : -32768;
        switch (type) {
        case ESDM_TYPE_FLOAT32:
            ((float *) raw)[i] = (float) x;
            break;
        case ESDM_TYPE_FLOAT64:
            ((double *) raw)[i] = x;
            break;
        case ESDM_TYPE_INT16:
            ((int16_t *) raw)[i] = (int16_t) whole;
            break;
        default:
            ((int32_t *) raw)[i] = (int32_t) whole * 1000;
        }
    }
}

typedef struct layered {
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blob_accuracy told;
    esdm_codec_accuracy exact; /* what keeps its bits, without bounds */
} layered;

static const uint64_t shape[3] = {NZ, NY, NX};

static layered
encode(int32_t type, uint32_t bytes, const void *raw, const esdm_codec_accuracy *accuracy,
       const void *fill)
{
    layered l = {.exact = nothing};
    l.exact.exact_values = fill;
    l.exact.exact_count = fill != NULL;
    const esdm__blob_numbers numbers = {.chain = &chain_field,
                                        .type = type,
                                        .element_bytes = bytes,
                                        .rank = 3,
                                        .shape = shape,
                                        .raw = raw,
                                        .accuracy = accuracy,
                                        .coarse = &l.exact,
                                        .conserved = INFINITY,
                                        .block_bytes = 100000,
                                        .effort = ESDM_EFFORT_BALANCED};
    esdm_error err;
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &l.blob, &l.told, &err), ESDM_OK);
    assert_int_equal(esdm__blob_parse(l.blob.head, l.blob.head_bytes, find_codec, &l.view, &err),
                     ESDM_OK);
    return l;
}

/* Stored bytes of blocks in the layers that are used, as a reader gathers them. */
static size_t
gather(const layered *l, uint32_t first, uint32_t count, uint8_t *to)
{
    size_t sum = 0;
    for (uint32_t layer = 0; layer < l->view.use; layer++) {
        uint64_t offset;
        uint64_t bytes;
        esdm__blob_range(&l->view, layer, first, count, &offset, &bytes);
        assert_true(offset + bytes <= l->blob.payload_bytes);
        memcpy(to + sum, (const uint8_t *) l->blob.payload + offset, (size_t) bytes);
        sum += (size_t) bytes;
    }
    assert_int_equal(sum, esdm__blob_stored_bytes(&l->view, first, count));
    return sum;
}

static void
decode(const layered *l, void *back)
{
    esdm_error err;
    uint8_t *stored = malloc(l->blob.payload_bytes);
    assert_non_null(stored);
    size_t bytes = gather(l, 0, l->view.blocks, stored);
    assert_int_equal(esdm__blob_decode(&l->view, 0, l->view.blocks, stored, bytes, back,
                                       (size_t) l->view.raw_bytes, &err),
                     ESDM_OK);
    free(stored);
}

/* Every prefix keeps what it tells, and takes fewer bytes than the next one. */
static void
check_prefixes(layered *l, int32_t type, uint32_t bytes, const void *raw,
               const esdm_codec_accuracy *accuracy)
{
    uint8_t *back = malloc((size_t) N * bytes);
    uint8_t *alone = malloc((size_t) N * bytes);
    uint64_t before = 0;
    assert_non_null(back);
    assert_non_null(alone);
    for (uint32_t use = 1; use <= l->view.layers; use++) {
        esdm_codec_accuracy a = l->exact;
        l->view.use = use;
        a.absolute = l->view.errors[use - 1];
        decode(l, back);
        if (use == l->view.layers && accuracy == NULL)
            assert_memory_equal(back, raw, (size_t) N * bytes);
        else if (use == l->view.layers)
            assert_int_equal(accuracy_first_violation(accuracy, type, bytes, raw, back, N), N);
        assert_int_equal(accuracy_first_violation(&a, type, bytes, raw, back, N), N);
        uint64_t stored = esdm__blob_stored_bytes(&l->view, 0, l->view.blocks);
        assert_true(stored > before);
        before = stored;
        for (uint32_t b = 0; b < l->view.blocks; b++) { /* a point read decodes one */
            size_t raw_bytes = (size_t) esdm__blob_raw_bytes(&l->view, b, 1);
            size_t taken = gather(l, b, 1, alone);
            uint8_t *one = malloc(raw_bytes);
            assert_non_null(one);
            assert_int_equal(esdm__blob_decode(&l->view, b, 1, alone, taken, one, raw_bytes, NULL),
                             ESDM_OK);
            assert_memory_equal(one, back + esdm__blocks_start(&l->view.geometry, b), raw_bytes);
            free(one);
        }
    }
    free(back);
    free(alone);
}

/* ---- tests -------------------------------------------------------------------------------- */

static void
test_layers__each_prefix_keeps_its_bound(void **state)
{
    static const struct {
        int32_t type;
        uint32_t bytes;
        double absolute, relative, finest; /* 0: no loss */
    } cases[] = {
        {ESDM_TYPE_FLOAT32, 4, 0.01, INFINITY, 0},
        {ESDM_TYPE_FLOAT32, 4, 1e-4, INFINITY, 0},
        {ESDM_TYPE_FLOAT32, 4, 0, 0, 0},
        {ESDM_TYPE_FLOAT32, 4, INFINITY, 1e-5, 0},
        {ESDM_TYPE_FLOAT32, 4, INFINITY, 1e-4, 1},
        {ESDM_TYPE_FLOAT32, 4, 0.02, 1e-4, 1e-3},
        {ESDM_TYPE_FLOAT64, 8, 1e-3, INFINITY, 0},
        {ESDM_TYPE_FLOAT64, 8, 0, 0, 0},
        {ESDM_TYPE_FLOAT64, 8, INFINITY, 1e-6, 0},
        {ESDM_TYPE_INT16, 2, 1, INFINITY, 0},
        {ESDM_TYPE_INT16, 2, 0, 0, 0},
        {ESDM_TYPE_INT32, 4, 777, INFINITY, 0},
        {ESDM_TYPE_INT32, 4, 0, 0, 0},
        {ESDM_TYPE_INT32, 4, INFINITY, 1e-4, 0},
    };
    (void) state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint8_t *raw = malloc((size_t) N * cases[c].bytes);
        assert_non_null(raw);
        fill_field(cases[c].type, raw);
        const float fill_float = 1e30f;
        const double fill_double = 1e30;
        const int16_t fill_short = -32768;
        const int32_t fill_int = -32768 * 1000;
        const void *fill = cases[c].type == ESDM_TYPE_FLOAT32   ? (const void *) &fill_float
                           : cases[c].type == ESDM_TYPE_FLOAT64 ? (const void *) &fill_double
                           : cases[c].type == ESDM_TYPE_INT16   ? (const void *) &fill_short
                                                                : (const void *) &fill_int;
        esdm_codec_accuracy accuracy = nothing;
        accuracy.absolute = cases[c].absolute;
        accuracy.relative = cases[c].relative;
        accuracy.finest = cases[c].finest;
        accuracy.exact_values = fill;
        accuracy.exact_count = 1;
        const esdm_codec_accuracy *asked = cases[c].absolute > 0 ? &accuracy : NULL;
        layered l = encode(cases[c].type, cases[c].bytes, raw, asked, fill);
        assert_int_equal(l.blob.head[8], 4);
        assert_true(l.view.layers >= 2);
        assert_true(l.view.blocks > 2);
        assert_int_equal(l.view.lossy, asked != NULL);
        assert_true(l.view.errors[0] <= 0.01 * l.view.range);
        check_prefixes(&l, cases[c].type, cases[c].bytes, raw, asked);
        esdm__blob_clear(&l.blob);
        free(raw);
    }
}

static void
test_layers__a_reader_takes_as_few_as_it_needs(void **state)
{
    float *raw = malloc(N * sizeof *raw);
    const float fill = 1e30f;
    (void) state;
    assert_non_null(raw);
    fill_field(ESDM_TYPE_FLOAT32, raw);
    for (size_t i = 0; i < N; i++) /* zeros would widen the range */
        raw[i] = raw[i] == 0 ? 280 : raw[i];
    layered l = encode(ESDM_TYPE_FLOAT32, 4, raw, NULL, &fill);
    assert_int_equal(l.view.layers, 3);
    esdm__blob_use(&l.view, 0, 0.01);
    assert_int_equal(l.view.use, 1);
    uint64_t coarse = esdm__blob_stored_bytes(&l.view, 0, l.view.blocks);
    esdm__blob_use(&l.view, 0, 0.0002);
    assert_int_equal(l.view.use, 2);
    esdm__blob_use(&l.view, l.view.errors[1], 0);
    assert_int_equal(l.view.use, 2);
    esdm__blob_use(&l.view, nextafter(l.view.errors[1], 0), 0);
    assert_int_equal(l.view.use, 3);
    esdm__blob_use(&l.view, 1e-20, 1e-20);
    assert_int_equal(l.view.use, l.view.layers);
    assert_true(4 * coarse < esdm__blob_stored_bytes(&l.view, 0, l.view.blocks));
    esdm__blob_clear(&l.blob);
    free(raw);
}

/* One that is coarse anyhow, numbers without a range, and chains that cannot. */
static void
test_layers__are_left_out_where_they_gain_nothing(void **state)
{
    float *raw = malloc(N * sizeof *raw);
    (void) state;
    assert_non_null(raw);
    fill_field(ESDM_TYPE_FLOAT32, raw);
    esdm_codec_accuracy accuracy = nothing;
    const float fill = 1e30f;
    accuracy.absolute = 5;
    accuracy.exact_values = &fill;
    accuracy.exact_count = 1;
    layered l = encode(ESDM_TYPE_FLOAT32, 4, raw, &accuracy, &fill);
    assert_int_equal(l.blob.head[8], 3);
    assert_int_equal(l.view.layers, 1);
    esdm__blob_clear(&l.blob);
    for (size_t i = 0; i < N; i++)
        raw[i] = i % 2 == 0 ? NAN : 5;
    accuracy.absolute = 0.001;
    l = encode(ESDM_TYPE_FLOAT32, 4, raw, &accuracy, &fill);
    assert_int_equal(l.blob.head[8], 3);
    esdm__blob_clear(&l.blob);
    free(raw);
}

/* Written again, numbers are what they were. */
static void
test_layers__rounding_again_changes_nothing(void **state)
{
    float *raw = malloc(N * sizeof *raw);
    float *once = malloc(N * sizeof *once);
    float *twice = malloc(N * sizeof *twice);
    const float fill = 1e30f;
    (void) state;
    assert_non_null(raw);
    assert_non_null(once);
    assert_non_null(twice);
    fill_field(ESDM_TYPE_FLOAT32, raw);
    esdm_codec_accuracy accuracy = nothing;
    accuracy.absolute = 0.01;
    accuracy.exact_values = &fill;
    accuracy.exact_count = 1;
    layered l = encode(ESDM_TYPE_FLOAT32, 4, raw, &accuracy, &fill);
    decode(&l, once);
    esdm__blob_clear(&l.blob);
    l = encode(ESDM_TYPE_FLOAT32, 4, once, &accuracy, &fill);
    decode(&l, twice);
    esdm__blob_clear(&l.blob);
    assert_memory_equal(once, twice, N * sizeof *once);
    free(raw);
    free(once);
    free(twice);
}

static void
seal(uint8_t *head, size_t bytes)
{
    uint64_t sum = esdm__checksum(head + 64, bytes - 64);
    memcpy(head + 56, &sum, 8);
    sum = esdm__checksum(head, 64);
    memcpy(head + 56, &sum, 8);
}

/* A flipped bit in any layer is told; heads that were made to lie, and layers, never do harm. */
static void
test_layers__damage_and_lies_are_refused(void **state)
{
    float *raw = malloc(N * sizeof *raw);
    float *back = malloc(N * sizeof *back);
    const float fill = 1e30f;
    esdm_error err;
    (void) state;
    assert_non_null(raw);
    assert_non_null(back);
    fill_field(ESDM_TYPE_FLOAT32, raw);
    layered l = encode(ESDM_TYPE_FLOAT32, 4, raw, NULL, &fill);
    uint8_t *payload = malloc(l.blob.payload_bytes);
    assert_non_null(payload);
    for (uint32_t layer = 0; layer < l.view.layers; layer++) {
        uint64_t offset;
        uint64_t bytes;
        esdm__blob_range(&l.view, layer, 1, 1, &offset, &bytes);
        memcpy(payload, l.blob.payload, l.blob.payload_bytes);
        payload[offset + bytes / 2] ^= 4;
        assert_int_equal(esdm__blob_decode(&l.view, 0, l.view.blocks, payload, l.blob.payload_bytes,
                                           back, N * sizeof *back, &err),
                         ESDM_ECORRUPT);
    }
    uint8_t *head = malloc(l.blob.head_bytes);
    assert_non_null(head);
    for (size_t at = 8; at < l.blob.head_bytes; at++) {
        for (int bit = (int) (at % 3); bit < 8; bit += at < 240 ? 3 : 11) {
            esdm__blob_view view;
            memcpy(head, l.blob.head, l.blob.head_bytes);
            head[at] ^= (uint8_t) (1 << bit);
            assert_int_not_equal(esdm__blob_parse(head, l.blob.head_bytes, find_codec, &view, NULL),
                                 ESDM_OK);
            seal(head, l.blob.head_bytes);
            if (esdm__blob_parse(head, l.blob.head_bytes, find_codec, &view, NULL) == ESDM_OK &&
                view.raw_bytes == N * sizeof *back && view.payload_bytes == l.blob.payload_bytes)
                (void) !esdm__blob_decode(&view, 0, view.blocks, l.blob.payload,
                                          l.blob.payload_bytes, back, N * sizeof *back, NULL);
        }
    }
    free(head);
    free(payload);
    free(raw);
    free(back);
    esdm__blob_clear(&l.blob);
}

static void
test_layers__stored_bytes_may_be_anything(void **state)
{
    static const uint64_t small[2] = {7, 9};
    const int32_t types[] = {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, ESDM_TYPE_INT16,
                             ESDM_TYPE_UINT64};
    const uint32_t sizes[] = {4, 8, 2, 8};
    uint8_t known[63 * 8];
    uint8_t stored[16 + 63 * 8];
    uint32_t random = 7;
    (void) state;
    for (int i = 0; i < 40000; i++) {
        const size_t t = (size_t) i % 4;
        const esdm_codec_input input = {
            .element_bytes = sizes[t], .type = types[t], .rank = 2, .shape = small};
        for (size_t k = 0; k < sizeof stored; k++)
            stored[k] = (uint8_t) ((random = random * 1664525u + 1013904223u) >> 24);
        memcpy(known, stored, sizeof known);
        stored[0] = (uint8_t) (i / 4 % 5);
        stored[1] = (uint8_t) (1u << (i / 20 % 4));
        stored[2] = (uint8_t) (i % 3 == 0 ? stored[2] % 24 : 0);
        stored[3] = (uint8_t) (i / 7 % 3);
        memset(stored + 4, 0, 4);
        size_t bytes = 16 + (stored[3] == 0 ? 63u * stored[1] : (size_t) stored[9]);
        esdm_status st = esdm__layer_decode(&input, &esdm_codec_field_plugin, stored, bytes, known,
                                            63u * sizes[t], NULL);
        assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers__each_prefix_keeps_its_bound),
        cmocka_unit_test(test_layers__a_reader_takes_as_few_as_it_needs),
        cmocka_unit_test(test_layers__are_left_out_where_they_gain_nothing),
        cmocka_unit_test(test_layers__rounding_again_changes_nothing),
        cmocka_unit_test(test_layers__damage_and_lies_are_refused),
        cmocka_unit_test(test_layers__stored_bytes_may_be_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
