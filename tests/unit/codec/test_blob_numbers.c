/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Version 3 of a fragment's stored form: shaped blocks, verified accuracy. */

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#define FLUSH_DENORMALS() _mm_setcsr(_mm_getcsr() | 0x8040)
#else
#define FLUSH_DENORMALS() ((void) 0)
#endif

#include "base/checksum.h"
#include "codec/blob.h"
#include "esdm/types.h"
#include "support/accuracy_check.h"

/* ---- a codec that wants shapes ------------------------------------------------------------ */

static size_t
same_bound(size_t raw_bytes)
{
    return raw_bytes + 64;
}

/* Writes the shape, and every element as its upper half: lossless for the data of these tests. */
static esdm_status
half_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) err;
    size_t n = raw_bytes / 4;
    size_t bytes = input->rank * 8 + n * 2;
    *ret_bytes = 0;
    if (bytes > out_bytes || bytes >= raw_bytes || input->element_bytes != 4)
        return ESDM_OK;
    if (input->rank > 0)
        memcpy(out, input->shape, input->rank * 8);
    for (size_t i = 0; i < n; i++)
        memcpy((char *) out + input->rank * 8 + i * 2, (const char *) raw + i * 4 + 2, 2);
    *ret_bytes = bytes;
    return ESDM_OK;
}

static esdm_status
half_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    (void) err;
    size_t n = raw_bytes / 4;
    if (input->element_bytes != 4 || encoded_bytes != input->rank * 8 + n * 2 ||
        input->accuracy != NULL ||
        (input->rank > 0 && memcmp(encoded, input->shape, input->rank * 8) != 0))
        return ESDM_ECORRUPT;
    memset(raw, 0, raw_bytes);
    for (size_t i = 0; i < n; i++)
        memcpy((char *) raw + i * 4 + 2, (const char *) encoded + input->rank * 8 + i * 2, 2);
    return ESDM_OK;
}

/* Claims to keep any bound: the encoder must find out. Lossless when not asked to be lossy. */
static int liar_calls;

static esdm_status
liar_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    liar_calls++;
    if (input->accuracy != NULL)
        return half_encode(input, raw, raw_bytes, out, out_bytes, ret_bytes, err);
    *ret_bytes = 0;
    return ESDM_OK;
}

#define CODEC(text, number, features, to, from)                                                    \
    {                                                                                              \
        .base = {.abi = ESDM_PLUGIN_ABI,                                                           \
                 .table_bytes = sizeof(esdm_codec_plugin),                                         \
                 .kind = ESDM_PLUGIN_CODEC,                                                        \
                 .name = text,                                                                     \
                 .summary = text},                                                                 \
        .id = (number), .flags = (features), .bound = same_bound, .encode = (to), .decode = (from) \
    }
static const esdm_codec_plugin half =
    CODEC("half", 140, ESDM_CODEC_SHAPED, half_encode, half_decode);
static const esdm_codec_plugin liar =
    CODEC("liar", 141, ESDM_CODEC_SHAPED | ESDM_CODEC_LOSSY, liar_encode, half_decode);
extern const esdm_codec_plugin esdm_codec_bitround_plugin;
extern const esdm_codec_plugin esdm_codec_field_plugin;
extern const esdm_codec_plugin esdm_codec_shuffle_plugin;
extern const esdm_codec_plugin esdm_codec_zstd_plugin;

static const esdm_codec_plugin *
find_codec(uint8_t id)
{
    return id == 140   ? &half
           : id == 141 ? &liar
           : id == 9   ? &esdm_codec_bitround_plugin
           : id == 4   ? &esdm_codec_field_plugin
           : id == 3   ? &esdm_codec_shuffle_plugin
           : id == 2   ? &esdm_codec_zstd_plugin
                       : NULL;
}

static const esdm__chain chain_half = {1, {&half}};
static const esdm__chain chain_liar = {1, {&liar}};
static const esdm__chain chain_field = {1, {&esdm_codec_field_plugin}};
static const esdm__chain chain_round = {
    3, {&esdm_codec_bitround_plugin, &esdm_codec_shuffle_plugin, &esdm_codec_zstd_plugin}};

/* ---- helpers ------------------------------------------------------------------------------ */

/* Floats of which the lower halves are 0. */
static float *
make_halves(size_t n)
{
    float *data = malloc(n * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t) (0x4300 + i % 777) << 16;
        memcpy(&data[i], &bits, sizeof bits);
    }
    return data;
}

static float *
make_waves(size_t n)
{
    float *data = malloc(n * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (float) (280.0 + 15.0 * sin((double) i * 0.01) + 0.01 * (double) (i * 7919 % 89));
    return data;
}

/* Decodes every block alone, and all together; `back` holds all raw bytes. */
static void
decode_all(const esdm__blob *blob, const esdm__blob_view *view, uint8_t *back)
{
    esdm_error err;
    for (uint32_t b = 0; b <= view->blocks; b++) {
        uint32_t first = b < view->blocks ? b : 0;
        uint32_t count = b < view->blocks ? 1 : view->blocks;
        uint64_t offset;
        uint64_t bytes;
        esdm__blob_range(view, 0, first, count, &offset, &bytes);
        uint8_t *stored = malloc((size_t) bytes);
        assert_non_null(stored);
        memcpy(stored, (const uint8_t *) blob->payload + offset, (size_t) bytes);
        assert_int_equal(esdm__blob_decode(view, first, count, stored, (size_t) bytes,
                                           back + esdm__blocks_start(&view->geometry, first),
                                           (size_t) esdm__blob_raw_bytes(view, first, count), &err),
                         ESDM_OK);
        free(stored);
    }
}

static esdm__blob_numbers
numbers_of(const esdm__chain *chain, uint32_t rank, const uint64_t *shape, const void *raw,
           const esdm_codec_accuracy *accuracy)
{
    return (esdm__blob_numbers){.chain = chain,
                                .type = ESDM_TYPE_FLOAT32,
                                .element_bytes = 4,
                                .dataset = 9,
                                .rank = rank,
                                .shape = shape,
                                .raw = raw,
                                .accuracy = accuracy,
                                .conserved = INFINITY};
}

static const esdm_codec_accuracy hundredth = {.absolute = 0.01,
                                              .relative = INFINITY,
                                              .exact_below = -INFINITY,
                                              .exact_above = INFINITY,
                                              .sum_bound = INFINITY};

/* ---- tests -------------------------------------------------------------------------------- */

static void
test_numbers__blocks_are_boxes_and_decode_alone(void **state)
{
    static const uint64_t shapes[][3] = {{1000, 1, 700}, {3, 401, 997}, {1, 1, 1200000}, {2, 2, 2}};
    (void) state;
    for (size_t s = 0; s < 4; s++) {
        size_t n = (size_t) (shapes[s][0] * shapes[s][1] * shapes[s][2]);
        float *raw = make_halves(n);
        uint8_t *back = malloc(n * 4);
        esdm__blob blob;
        esdm__blob_view view;
        const esdm__blob_numbers numbers = numbers_of(&chain_half, 3, shapes[s], raw, NULL);
        assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         ESDM_OK);
        assert_int_equal(blob.head[8], 3);
        assert_false(view.lossy);
        assert_int_equal(view.geometry.rank, 3);
        assert_true(view.geometry.block_bytes <= (1u << 20) || view.geometry.extent == 1);
        memset(back, 0x5A, n * 4);
        decode_all(&blob, &view, back);
        assert_memory_equal(back, raw, n * 4);
        esdm__blob_clear(&blob);
        free(back);
        free(raw);
    }
}

/* Up to the limit of the format; bytes gain little beyond 1 MiB. */
static void
test_numbers__blocks_are_as_large_as_wanted(void **state)
{
    static const esdm__chain bytes = {2, {&esdm_codec_shuffle_plugin, &esdm_codec_zstd_plugin}};
    static const esdm__chain none = {0};
    static const uint64_t shape[3] = {19, 512, 512}; /* 19 MiB */
    static const struct {
        const esdm__chain *chain;
        uint64_t wanted;
        uint32_t blocks;
    } cases[] = {{&chain_half, 0, 19},       {&chain_half, 4 << 20, 5}, {&chain_half, 16 << 20, 2},
                 {&chain_half, 64 << 20, 2}, {&bytes, 512 << 10, 38},   {&bytes, 16 << 20, 19}};
    size_t n = 19 * 512 * 512;
    float *raw = make_halves(n);
    uint8_t *back = malloc(n * 4);
    esdm__blob blob;
    esdm__blob_view view;
    (void) state;
    assert_non_null(back);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__blob_numbers numbers = numbers_of(cases[i].chain, 3, shape, raw, NULL);
        numbers.block_bytes = cases[i].wanted;
        assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         ESDM_OK);
        assert_int_equal(view.blocks, cases[i].blocks);
        memset(back, 0x5A, n * 4);
        decode_all(&blob, &view, back);
        assert_memory_equal(back, raw, n * 4);
        esdm__blob_clear(&blob);
    }
    esdm__blob_numbers plain = numbers_of(&none, 3, shape, raw, NULL);
    plain.block_bytes = 16 << 20;
    assert_int_equal(esdm__blob_encode_numbers(&plain, &blob, NULL, NULL), ESDM_OK);
    assert_int_equal(blob.head[8], 1);
    esdm__blob_clear(&blob);
    free(back);
    free(raw);
}

static void
test_numbers__without_need_it_is_version_1(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {1000};
    static const esdm__chain lossless = {2, {&esdm_codec_shuffle_plugin, &esdm_codec_zstd_plugin}};
    float *raw = make_waves(1000);
    esdm__blob blob;
    esdm__blob_numbers numbers = numbers_of(&lossless, 1, shape, raw, &hundredth);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
    assert_int_equal(blob.head[8], 1);
    esdm__blob_clear(&blob);
    numbers = numbers_of(&chain_round, 1, shape, raw, NULL);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
    assert_int_equal(blob.head[8], 1);
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_numbers__accuracy_is_kept_and_told(void **state)
{
    (void) state;
    static const uint64_t shape[2] = {300, 1000};
    size_t n = 300000;
    float *raw = make_waves(n);
    float *back = malloc(n * 4);
    esdm_error err;
    raw[5] = NAN;
    raw[6] = -INFINITY;
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blob_accuracy told;
    const esdm__blob_numbers numbers = numbers_of(&chain_round, 2, shape, raw, &hundredth);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, &told, &err), ESDM_OK);
    assert_true(blob.payload_bytes < n * 4 / 2);
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, &err),
                     ESDM_OK);
    assert_true(view.lossy);
    assert_memory_equal(&view.accuracy, &told, sizeof told);
    decode_all(&blob, &view, (uint8_t *) back);
    assert_int_equal(accuracy_first_violation(&hundredth, ESDM_TYPE_FLOAT32, 4, raw, back, n), n);

    double largest = 0;
    for (size_t i = 7; i < n; i++)
        largest = fmax(largest, fabs((double) back[i] - (double) raw[i]));
    assert_true(largest > 0.001);
    assert_true(told.facts.largest_error == largest);
    assert_true(fabs(told.facts.largest_share - largest / 0.01) < 1e-12);
    assert_int_equal(told.facts.points, n - 2);
    assert_int_equal(told.facts.exact_points, 2);
    assert_int_equal(told.blocks_again, 0);
    long double change = accuracy_sum_change(&hundredth, ESDM_TYPE_FLOAT32, 4, raw, back, n);
    assert_true(fabsl(change - (long double) told.facts.sum_change) < 1e-9L);
    assert_true(told.absolute == 0.01 && isinf(told.relative) && isinf(told.conserved));
    esdm__blob_clear(&blob);
    free(raw);
    free(back);
}

static void
test_numbers__the_sum_is_conserved(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {100000};
    size_t n = 100000;
    float *raw = malloc(n * 4);
    float *back = malloc(n * 4);
    assert_true(raw != NULL && back != NULL);
    for (size_t i = 0; i < n; i++) /* all are rounded down: the sum would fall by 1e-3 of itself */
        raw[i] = 1.0f + 0.003f + 1e-4f * (float) (i % 10);
    for (int conserve = 0; conserve < 3; conserve++) {
        esdm__blob blob;
        esdm__blob_view view;
        esdm__blob_accuracy told;
        esdm__blob_numbers numbers = numbers_of(&chain_round, 1, shape, raw, &hundredth);
        numbers.conserved = conserve == 1 ? 1e-6 : INFINITY;
        numbers.mean = conserve == 2 ? 1e-6 : 0;
        assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, &told, NULL), ESDM_OK);
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         ESDM_OK);
        decode_all(&blob, &view, (uint8_t *) back);
        assert_int_equal(accuracy_first_violation(&hundredth, ESDM_TYPE_FLOAT32, 4, raw, back, n),
                         n);
        long double change = accuracy_sum_change(&hundredth, ESDM_TYPE_FLOAT32, 4, raw, back, n);
        if (conserve)
            assert_true(fabsl(change) <= 1e-6L * 1.004L * (long double) n);
        else
            assert_true(fabsl(change) > 1e-4L * (long double) n);
        assert_int_equal(told.blocks_lossless, 0);
        esdm__blob_clear(&blob);
    }
    free(raw);
    free(back);
}

/* Numbers of which the sum is beyond all doubles; its change is not. */
static void
test_numbers__the_sum_of_huge_numbers_is_conserved(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {1000};
    size_t n = 1000;
    double *raw = malloc(n * sizeof *raw);
    double *back = malloc(n * sizeof *back);
    assert_true(raw != NULL && back != NULL);
    for (size_t i = 0; i < n; i++) /* all are rounded down */
        raw[i] = 0x1p1020 * (1.003 + 1e-4 * (double) (i % 10));
    esdm_codec_accuracy one_percent = hundredth;
    one_percent.absolute = INFINITY;
    one_percent.relative = 0.01;
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blob_numbers numbers = numbers_of(&chain_field, 1, shape, raw, &one_percent);
    numbers.type = ESDM_TYPE_FLOAT64;
    numbers.element_bytes = 8;
    numbers.conserved = 1e-6;
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                     ESDM_OK);
    decode_all(&blob, &view, (uint8_t *) back);
    assert_int_equal(accuracy_first_violation(&one_percent, ESDM_TYPE_FLOAT64, 8, raw, back, n), n);
    long double change = accuracy_sum_change(&one_percent, ESDM_TYPE_FLOAT64, 8, raw, back, n);
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (long double) raw[i];
    assert_true(fabsl(change) <= 1e-6L * sum);
    esdm__blob_clear(&blob);
    free(raw);
    free(back);
}

/* Where the bound is half a step, no number but ties can be turned within it. */
static void
test_numbers__the_sum_is_conserved_with_round_bounds(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {40000};
    size_t n = 40000;
    float *raw = make_waves(n);
    esdm_codec_accuracy half_one = hundredth;
    half_one.absolute = 0.5;
    esdm__blob blob;
    esdm__blob_accuracy told;
    esdm__blob_numbers numbers = numbers_of(&chain_round, 1, shape, raw, &half_one);
    numbers.conserved = 1e-7;
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, &told, NULL), ESDM_OK);
    assert_int_equal(told.blocks_again, 0);
    assert_true(told.facts.largest_error > 0.1 && told.facts.largest_error <= 0.5);
    assert_true(fabs(told.facts.sum_change) <= 1e-7 * 300 * 40000);
    assert_true(blob.payload_bytes < n);
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_numbers__a_codec_that_misses_is_found_out(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {1000};
    float *raw = make_waves(1000);
    float back[1000];
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blob_accuracy told;
    const esdm__blob_numbers numbers = numbers_of(&chain_liar, 1, shape, raw, &hundredth);
    liar_calls = 0;
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, &told, NULL), ESDM_OK);
    assert_int_equal(liar_calls, 4);
    assert_int_equal(told.blocks_again, 1);
    assert_int_equal(told.blocks_lossless, 1);
    assert_true(told.facts.largest_error == 0);
    assert_int_equal(told.facts.points, 1000);
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                     ESDM_OK);
    decode_all(&blob, &view, (uint8_t *) back);
    assert_memory_equal(raw, back, sizeof back);
    esdm__blob_clear(&blob);
    free(raw);
}

/* Numbers near a limit that would leave it keep their bits; the others are rounded as ever. */
static void
test_numbers__none_leaves_its_limits(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {40000};
    static const esdm__limits limits = {.low = -(long double) INFINITY, .high = 273.99};
    size_t n = 40000;
    float *raw = make_waves(n);
    float *back = malloc(n * sizeof *back);
    esdm_codec_accuracy half_one = hundredth;
    half_one.absolute = 0.5;
    for (size_t i = 0; i < n; i++)
        raw[i] = raw[i] > 273.99f ? 273.98f : raw[i];
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blob_accuracy told;
    esdm__blob_numbers numbers = numbers_of(&chain_round, 1, shape, raw, &half_one);
    for (int limited = 0; limited < 2; limited++) {
        size_t left = 0;
        numbers.limits = limited != 0 ? &limits : NULL;
        assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, &told, NULL), ESDM_OK);
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         ESDM_OK);
        decode_all(&blob, &view, (uint8_t *) back);
        for (size_t i = 0; i < n; i++)
            left += back[i] > 273.99f;
        assert_true((left == 0) == (limited != 0));
        assert_int_equal(told.blocks_lossless, 0);
        assert_true(told.facts.largest_error > 0.1 && told.facts.largest_error <= 0.5);
        esdm__blob_clear(&blob);
    }
    free(back);
    free(raw);
}

/* Whole numbers that readers take for ones without a sign do not wrap. */
static void
test_numbers__natural_ones_keep_their_signs(void **state)
{
    (void) state;
    static const esdm__limits wrapped = {.low = 2, .high = 250, .natural = true};
    const int8_t raw[] = {0, 2, 100, 127, -128, -6, -5, -1};
    const int8_t near[] = {0, 3, 98, 126, -127, -7, -3, -2};
    assert_true(esdm__limits_any(&wrapped));
    assert_true(esdm__limits_kept(&wrapped, ESDM_TYPE_INT8, raw, near, 8));
    for (size_t i = 0; i < 8; i++) {
        static const int8_t beyond[] = {-1, 1, -100, -128, 127, -5, 0, 0};
        int8_t changed[8];
        memcpy(changed, near, sizeof changed);
        changed[i] = beyond[i];
        assert_false(esdm__limits_kept(&wrapped, ESDM_TYPE_INT8, raw, changed, 8));
    }
}

/* Puts the checksum of a head right. */
static void
seal(uint8_t *head, size_t head_bytes)
{
    uint64_t sum = esdm__checksum(head + 64, head_bytes - 64);
    memcpy(head + 56, &sum, sizeof sum);
    sum = esdm__checksum(head, 64);
    memcpy(head + 56, &sum, sizeof sum);
}

/* What is stored does not depend on how the program computes, which is as it was afterwards. */
static void
test_numbers__are_stored_alike_by_every_program(void **state)
{
    (void) state;
    static const uint64_t shape[2] = {50, 200};
    float *raw = make_waves(10000);
    float *decoded = calloc(10000, sizeof *decoded);
    esdm__blob plain, odd;
    esdm__blob_accuracy told, told_oddly;
    esdm__blob_view view;
    assert_non_null(decoded);
    for (size_t i = 0; i < 100; i++)
        raw[i * 7] = (float) i * 1e-41F;
    raw[1] = INFINITY;
    raw[2] = -INFINITY;
    raw[3] = 3e38F;
    raw[4] = -3e38F;
    const esdm__blob_numbers numbers = numbers_of(&chain_round, 2, shape, raw, &hundredth);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &plain, &told, NULL), ESDM_OK);
    fenv_t before;
    assert_int_equal(fegetenv(&before), 0);
    (void) fesetround(FE_UPWARD);
    FLUSH_DENORMALS();
    int traps = feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
    esdm_status st = esdm__blob_encode_numbers(&numbers, &odd, &told_oddly, NULL);
    if (st == ESDM_OK)
        st = esdm__blob_parse(odd.head, odd.head_bytes, find_codec, &view, NULL);
    if (st == ESDM_OK)
        st = esdm__blob_decode(&view, 0, view.blocks, odd.payload, odd.payload_bytes, decoded,
                               10000 * sizeof *decoded, NULL);
    int rounding = fegetround();
    int trapped = fegetexcept();
    (void) fesetenv(&before);
    assert_int_equal(st, ESDM_OK);
    assert_int_equal(rounding, FE_UPWARD);
    assert_true(traps == -1 || trapped == (FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO));
    assert_int_equal(odd.payload_bytes, plain.payload_bytes);
    assert_memory_equal(odd.head, plain.head, plain.head_bytes);
    assert_memory_equal(odd.payload, plain.payload, plain.payload_bytes);
    assert_true(memcmp(&told, &told_oddly, sizeof told) == 0);
    assert_true(decoded[1] == INFINITY && decoded[3] == 3e38F);
    esdm__blob_clear(&plain);
    esdm__blob_clear(&odd);
    free(decoded);
    free(raw);
}

/* A fragment of a gigabyte is stored in blocks, and a head that says that it is one block would
 * make a reader of one point allocate all of it, and the codecs some times more. */
static void
test_numbers__blocks_without_measure_are_corrupt(void **state)
{
    (void) state;
    static const uint64_t shape[1] = {1000};
    static const struct {
        uint64_t elements;
        esdm_status status;
    } claims[] = {{UINT64_C(1) << 28, ESDM_ECORRUPT},
                  {(UINT64_C(1) << 22) + 1, ESDM_ECORRUPT},
                  {UINT64_C(1) << 22, ESDM_OK}};
    float *raw = make_waves(1000);
    esdm__blob blob;
    esdm__blob_view view;
    const esdm__blob_numbers numbers = numbers_of(&chain_round, 1, shape, raw, &hundredth);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        uint64_t raw_bytes = claims[i].elements * 4;
        memcpy(blob.head + 32, &raw_bytes, sizeof raw_bytes);
        memcpy(blob.head + 72, &claims[i].elements, sizeof raw_bytes); /* extent, shape */
        memcpy(blob.head + 80, &claims[i].elements, sizeof raw_bytes);
        seal(blob.head, blob.head_bytes);
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         claims[i].status);
    }
    esdm__blob_clear(&blob);
    free(raw);
}

/* A head that is changed anywhere is refused: by its checksum, or, with that put right, by what it
 * says, or it says something that can be. Nothing is read outside of it. */
static void
test_numbers__damaged_heads_are_corrupt(void **state)
{
    (void) state;
    static const uint64_t shape[3] = {3, 100, 1000};
    float *raw = make_waves(300000);
    esdm__blob blob;
    const esdm__blob_numbers numbers = numbers_of(&chain_round, 3, shape, raw, &hundredth);
    assert_int_equal(esdm__blob_encode_numbers(&numbers, &blob, NULL, NULL), ESDM_OK);
    for (size_t at = 0; at < blob.head_bytes; at++) {
        static const uint8_t flips[] = {1, 0x80, 0xff};
        for (size_t f = 0; f < 3; f++) {
            uint8_t *head = malloc(blob.head_bytes);
            esdm__blob_view view;
            assert_non_null(head);
            memcpy(head, blob.head, blob.head_bytes);
            head[at] ^= flips[f];
            esdm_status status = esdm__blob_parse(head, blob.head_bytes, find_codec, &view, NULL);
            assert_true(status == ESDM_ECORRUPT || status == ESDM_ENOTSUP);
            seal(head, blob.head_bytes);
            (void) !esdm__blob_parse(head, blob.head_bytes, find_codec, &view, NULL);
            free(head);
        }
    }
    for (size_t bytes = 0; bytes < blob.head_bytes; bytes++) {
        uint8_t *head = malloc(bytes + 1);
        esdm__blob_view view;
        assert_non_null(head);
        memcpy(head, blob.head, bytes);
        assert_int_equal(esdm__blob_parse(head, bytes, find_codec, &view, NULL), ESDM_ECORRUPT);
        free(head);
    }
    esdm__blob_clear(&blob);
    free(raw);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers__blocks_are_boxes_and_decode_alone),
        cmocka_unit_test(test_numbers__blocks_are_as_large_as_wanted),
        cmocka_unit_test(test_numbers__without_need_it_is_version_1),
        cmocka_unit_test(test_numbers__accuracy_is_kept_and_told),
        cmocka_unit_test(test_numbers__the_sum_is_conserved),
        cmocka_unit_test(test_numbers__the_sum_of_huge_numbers_is_conserved),
        cmocka_unit_test(test_numbers__the_sum_is_conserved_with_round_bounds),
        cmocka_unit_test(test_numbers__a_codec_that_misses_is_found_out),
        cmocka_unit_test(test_numbers__none_leaves_its_limits),
        cmocka_unit_test(test_numbers__natural_ones_keep_their_signs),
        cmocka_unit_test(test_numbers__are_stored_alike_by_every_program),
        cmocka_unit_test(test_numbers__blocks_without_measure_are_corrupt),
        cmocka_unit_test(test_numbers__damaged_heads_are_corrupt),
    };
    return cmocka_run_group_tests_name("codec.blob_numbers", tests, NULL, NULL);
}
