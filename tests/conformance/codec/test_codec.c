/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The contract of esdm/sys/codec.h, for every codec. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/codec/codec.h"

#define GUARD 64

static bool
is_filter(void)
{
    return (codec()->flags & ESDM_CODEC_FILTER) != 0;
}

typedef enum pattern { ZEROS, RAMP, NOISE, FLOATS, TEXT, PATTERNS } pattern;

static void
make_pattern(pattern which, uint8_t *data, size_t bytes)
{
    uint64_t state = bytes;
    for (size_t i = 0; i < bytes; i++) {
        switch (which) {
        case ZEROS:
            data[i] = 0;
            break;
        case RAMP:
            data[i] = (uint8_t) (i / 4);
            break;
        case NOISE:
            data[i] = (uint8_t) next_random(&state);
            break;
        case FLOATS: {
            float value = 273.15f + (float) (i / 4) * 0.01f;
            memcpy(&data[i], (const char *) &value + i % 4, 1);
            break;
        }
        default:
            data[i] = (uint8_t) "the quick brown fox "[i % 20];
        }
    }
}

/* Encodes with guards around the output; returns the encoded length (0: stored raw). */
static size_t
encode_guarded(const esdm_codec_input *input, const uint8_t *raw, size_t raw_bytes,
               size_t out_bytes, uint8_t **ret_out)
{
    uint8_t *memory = malloc(out_bytes + 2 * GUARD);
    assert_non_null(memory);
    memset(memory, 0xA5, out_bytes + 2 * GUARD);
    size_t encoded = 12345;
    assert_ok(
        codec()->encode(input, raw, raw_bytes, memory + GUARD, out_bytes, &encoded, &place_error));
    assert_true(encoded <= out_bytes);
    if (is_filter())
        assert_true(encoded == (out_bytes >= raw_bytes ? raw_bytes : 0));
    else
        assert_true(encoded < raw_bytes);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(memory[i], 0xA5);
        assert_int_equal(memory[GUARD + out_bytes + i], 0xA5);
    }
    memmove(memory, memory + GUARD, encoded);
    *ret_out = memory;
    return encoded;
}

static void
check_round_trip(const esdm_codec_input *input, const uint8_t *raw, size_t raw_bytes,
                 size_t out_bytes)
{
    uint8_t *encoded = NULL;
    size_t encoded_bytes = encode_guarded(input, raw, raw_bytes, out_bytes, &encoded);
    if (encoded_bytes > 0) {
        uint8_t *decoded = malloc(raw_bytes + GUARD);
        assert_non_null(decoded);
        memset(decoded, 0x5A, raw_bytes + GUARD);
        assert_ok(codec()->decode(input, encoded, encoded_bytes, decoded, raw_bytes, &place_error));
        assert_memory_equal(decoded, raw, raw_bytes);
        for (size_t i = 0; i < GUARD; i++)
            assert_int_equal(decoded[raw_bytes + i], 0x5A);
        free(decoded);
    }
    free(encoded);
}

static void
test_codec__identity(void **state)
{
    (void) state;
    assert_int_equal(place_current->abi, ESDM_PLUGIN_ABI);
    assert_int_equal(place_current->kind, ESDM_PLUGIN_CODEC);
    assert_ptr_equal(esdm__plugin_codec_by_id(codec()->id), codec());
    assert_true(strlen(place_current->summary) > 0);
}

static void
test_codec__round_trips_every_pattern(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 7, 8, 15, 100, 4096, 65536, 65537, 300000};
    static const uint32_t elements[] = {1, 2, 3, 4, 8, 16};
    (void) state;
    uint8_t *raw = malloc(300000);
    assert_non_null(raw);
    for (int p = 0; p < PATTERNS; p++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            make_pattern((pattern) p, raw, sizes[s]);
            for (size_t e = 0; e < sizeof elements / sizeof elements[0]; e++) {
                esdm_codec_input input = {.element_bytes = elements[e], .type = 5};
                size_t bound = codec()->bound(sizes[s]);
                assert_true(bound < SIZE_MAX);
                check_round_trip(&input, raw, sizes[s], bound);
            }
        }
    }
    free(raw);
}

static void
test_codec__small_output_is_respected(void **state)
{
    (void) state;
    uint8_t raw[4096];
    esdm_codec_input input = {.element_bytes = 4, .type = 5};
    for (int p = 0; p < PATTERNS; p++) {
        make_pattern((pattern) p, raw, sizeof raw);
        for (size_t room = 0; room < sizeof raw; room += room < 40 ? 1 : 97)
            check_round_trip(&input, raw, sizeof raw, room);
    }
}

static void
test_codec__bound_saturates(void **state)
{
    (void) state;
    size_t bound = codec()->bound(SIZE_MAX);
    assert_true(bound == SIZE_MAX || bound >= SIZE_MAX - 1);
    assert_true(codec()->bound(1) >= 1);
}

static void
test_codec__wrong_length_is_corrupt(void **state)
{
    (void) state;
    uint8_t raw[5000];
    uint8_t *encoded = NULL;
    uint8_t decoded[6000];
    esdm_codec_input input = {.element_bytes = 4, .type = 5};
    make_pattern(ZEROS, raw, sizeof raw);
    size_t bytes = encode_guarded(&input, raw, sizeof raw, codec()->bound(sizeof raw), &encoded);
    if (bytes == 0) { /* stored raw: what decode() gets is the raw bytes */
        free(encoded);
        encoded = malloc(sizeof raw);
        assert_non_null(encoded);
        memcpy(encoded, raw, sizeof raw);
        bytes = sizeof raw;
    }
    assert_status(codec()->decode(&input, encoded, bytes, decoded, sizeof raw + 1, &place_error),
                  ESDM_ECORRUPT);
    assert_int_equal(place_error.status, ESDM_ECORRUPT);
    assert_true(strlen(place_error.message) > 0);
    assert_status(codec()->decode(&input, encoded, bytes, decoded, sizeof raw - 1, &place_error),
                  ESDM_ECORRUPT);
    assert_status(codec()->decode(&input, encoded, bytes - 1, decoded, sizeof raw, &place_error),
                  ESDM_ECORRUPT);
    assert_status(codec()->decode(&input, encoded, 0, decoded, sizeof raw, &place_error),
                  ESDM_ECORRUPT);
    assert_status(codec()->decode(&input, encoded, 0, decoded, sizeof raw, NULL), ESDM_ECORRUPT);
    free(encoded);
}

/* Nothing but "no crash, no write outside" can be asked of damaged input. */
static void
test_codec__hostile_input_stays_in_bounds(void **state)
{
    (void) state;
    enum { BYTES = 2000 };
    uint8_t raw[BYTES];
    uint8_t decoded[BYTES + GUARD];
    uint64_t random = 42;
    esdm_codec_input input = {.element_bytes = 4, .type = 5};
    for (int round = 0; round < 3000; round++) {
        uint8_t *encoded = NULL;
        make_pattern((pattern) (round % PATTERNS), raw, sizeof raw);
        size_t bytes =
            encode_guarded(&input, raw, sizeof raw, codec()->bound(sizeof raw), &encoded);
        if (bytes == 0 || round % 2 == 0) {
            bytes = 1 + next_random(&random) % BYTES;
            free(encoded);
            encoded = malloc(bytes);
            assert_non_null(encoded);
            for (size_t i = 0; i < bytes; i++)
                encoded[i] = (uint8_t) next_random(&random);
        } else {
            uint8_t *exact = malloc(bytes); /* so that the sanitizer sees reads past the end */
            assert_non_null(exact);
            memcpy(exact, encoded, bytes);
            free(encoded);
            encoded = exact;
            for (int flips = 0; flips < 4; flips++)
                encoded[next_random(&random) % bytes] ^=
                    (uint8_t) (1u << (next_random(&random) % 8));
        }
        memset(decoded, 0x5A, sizeof decoded);
        esdm_status status =
            codec()->decode(&input, encoded, bytes, decoded, sizeof raw, &place_error);
        /* ENOTSUP: bytes that claim to be of a newer format of the codec. */
        assert_true(status == ESDM_OK || status == ESDM_ECORRUPT || status == ESDM_ENOTSUP);
        for (size_t i = 0; i < GUARD; i++)
            assert_int_equal(decoded[sizeof raw + i], 0x5A);
        free(encoded);
    }
}

static void *
round_trips(void *user)
{
    uint8_t raw[20000];
    esdm_codec_input input = {.element_bytes = 8, .type = 6};
    uint8_t *out = malloc(codec()->bound(sizeof raw));
    uint8_t *back = malloc(sizeof raw);
    bool *good = user;
    *good = out != NULL && back != NULL;
    for (int i = 0; i < 50 && *good; i++) {
        size_t bytes = 0;
        make_pattern((pattern) (i % PATTERNS), raw, sizeof raw);
        *good = codec()->encode(&input, raw, sizeof raw, out, codec()->bound(sizeof raw), &bytes,
                                NULL) == ESDM_OK;
        if (bytes > 0)
            *good = *good &&
                    codec()->decode(&input, out, bytes, back, sizeof raw, NULL) == ESDM_OK &&
                    memcmp(raw, back, sizeof raw) == 0;
    }
    free(out);
    free(back);
    return NULL;
}

static void
test_codec__runs_in_many_threads(void **state)
{
    (void) state;
    pthread_t threads[8];
    bool good[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, round_trips, &good[i]), 0);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(good[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec__identity),
        cmocka_unit_test(test_codec__round_trips_every_pattern),
        cmocka_unit_test(test_codec__small_output_is_respected),
        cmocka_unit_test(test_codec__bound_saturates),
        cmocka_unit_test(test_codec__wrong_length_is_corrupt),
        cmocka_unit_test(test_codec__hostile_input_stays_in_bounds),
        cmocka_unit_test(test_codec__shapes_round_trip),
        cmocka_unit_test(test_codec__equal_input_gives_equal_bytes),
        cmocka_unit_test(test_codec__what_shrinks_is_shrunk),
        cmocka_unit_test(test_codec__shaped_hostile_input_stays_in_bounds),
        cmocka_unit_test(test_codec__lossy_keeps_every_bound),
        cmocka_unit_test(test_codec__lossy_special_values_keep_their_bits),
        cmocka_unit_test(test_codec__fpzip_refuses_what_compilers_differ_in),
        cmocka_unit_test(test_codec__runs_in_many_threads),
    };
    /* Loadable ones come in by being asked for. */
    const esdm_plugin *plugin = NULL;
    if (esdm__plugin_find(ESDM_PLUGIN_CODEC, "template", &plugin, &place_error) != ESDM_OK)
        return 1;
    size_t count = sizeof tests / sizeof tests[0];
#if defined(__SANITIZE_THREAD__) /* codecs start no threads: one test alone has several */
    return place_run_all(ESDM_PLUGIN_CODEC, "codec", &tests[count - 1], 1);
#else
    return place_run_all(ESDM_PLUGIN_CODEC, "codec", tests, count);
#endif
}
