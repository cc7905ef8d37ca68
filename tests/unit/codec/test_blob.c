/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Blobs of fragments: blocks come back, damage and nonsense are refused, bytes are as
 * documented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "codec/blob.h"
#include "esdm/types.h"

/* Run-length codec: pairs of length and byte. */
static size_t
rle_bound(size_t raw_bytes)
{
    return raw_bytes > SIZE_MAX / 2 ? SIZE_MAX : 2 * raw_bytes;
}

static esdm_status
rle_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
           size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input;
    (void) err;
    const uint8_t *from = raw;
    uint8_t *to = out;
    size_t used = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < raw_bytes;) {
        size_t run = 1;
        while (run < 255 && i + run < raw_bytes && from[i + run] == from[i])
            run++;
        if (used + 2 > out_bytes)
            return ESDM_OK;
        to[used++] = (uint8_t) run;
        to[used++] = from[i];
        i += run;
    }
    *ret_bytes = used;
    return ESDM_OK;
}

static esdm_status
rle_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
           size_t raw_bytes, esdm_error *err)
{
    (void) input;
    (void) err;
    const uint8_t *from = encoded;
    uint8_t *to = raw;
    size_t used = 0;
    for (size_t i = 0; i + 1 < encoded_bytes; i += 2) {
        if (from[i] > raw_bytes - used)
            return ESDM_ECORRUPT;
        memset(to + used, from[i + 1], from[i]);
        used += from[i];
    }
    return used == raw_bytes ? ESDM_OK : ESDM_ECORRUPT;
}

static size_t
same_bound(size_t raw_bytes)
{
    return raw_bytes;
}

/* A filter that keeps the length: differences of neighbouring bytes. */
static esdm_status
delta_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
             size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input;
    (void) err;
    *ret_bytes = 0;
    if (raw_bytes > out_bytes)
        return ESDM_OK;
    uint8_t last = 0;
    for (size_t i = 0; i < raw_bytes; i++) {
        uint8_t now = ((const uint8_t *) raw)[i];
        ((uint8_t *) out)[i] = (uint8_t) (now - last);
        last = now;
    }
    *ret_bytes = raw_bytes;
    return ESDM_OK;
}

static esdm_status
delta_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
             size_t raw_bytes, esdm_error *err)
{
    (void) input;
    (void) err;
    if (encoded_bytes != raw_bytes)
        return ESDM_ECORRUPT;
    uint8_t last = 0;
    for (size_t i = 0; i < raw_bytes; i++) {
        last = (uint8_t) (last + ((const uint8_t *) encoded)[i]);
        ((uint8_t *) raw)[i] = last;
    }
    return ESDM_OK;
}

static esdm_status
failing_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
               size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input;
    (void) raw;
    (void) raw_bytes;
    (void) out;
    (void) out_bytes;
    (void) ret_bytes;
    if (err != NULL) {
        err->status = ESDM_EIO;
        strcpy(err->message, "broken");
    }
    return ESDM_EIO;
}

#define CODEC(text, number, limit, to, from)                                                       \
    {                                                                                              \
        .base = {.abi = ESDM_PLUGIN_ABI,                                                           \
                 .table_bytes = sizeof(esdm_codec_plugin),                                         \
                 .kind = ESDM_PLUGIN_CODEC,                                                        \
                 .name = text,                                                                     \
                 .summary = text},                                                                 \
        .id = (number), .bound = (limit), .encode = (to), .decode = (from)                         \
    }
static const esdm_codec_plugin rle = CODEC("rle", 130, rle_bound, rle_encode, rle_decode);
static const esdm_codec_plugin delta = CODEC("delta", 131, same_bound, delta_encode, delta_decode);
static const esdm_codec_plugin failing =
    CODEC("failing", 132, same_bound, failing_encode, delta_decode);

static const esdm_codec_plugin *
find_codec(uint8_t id)
{
    return id == 130 ? &rle : id == 131 ? &delta : NULL;
}

static const esdm__chain chain_none = {0};
static const esdm__chain chain_rle = {1, {&rle}};
static const esdm__chain chain_both = {2, {&delta, &rle}};
static const esdm__chain chain_four = {4, {&delta, &rle, &delta, &rle}};
static const esdm__chain *const chains[] = {&chain_none, &chain_rle, &chain_both, &chain_four};

/* Half noise, half ramps and runs. */
static uint8_t *
make_raw(size_t bytes, unsigned seed)
{
    uint8_t *raw = malloc(bytes);
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        raw[i] = (i >> 15) & 1 ? (uint8_t) (state >> 24) : (uint8_t) ((i >> 9) + (i >> 12) * i);
    }
    return raw;
}

/* The blob's payload in memory of its own, so that ASan sees every overrun. */
static uint8_t *
copy_payload(const esdm__blob *blob)
{
    uint8_t *copy = malloc(blob->payload_bytes);
    memcpy(copy, blob->payload, blob->payload_bytes);
    return copy;
}

static void
check_round_trip(const esdm__chain *chain, size_t bytes)
{
    esdm_error err = {0};
    uint8_t *raw = make_raw(bytes, (unsigned) bytes);
    esdm__blob blob;
    assert_int_equal(esdm__blob_encode(chain, ESDM_TYPE_FLOAT32, 4, 7, raw, bytes, &blob, &err),
                     ESDM_OK);
    esdm__blob_view view;
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, &err),
                     ESDM_OK);
    assert_int_equal(view.raw_bytes, bytes);
    assert_int_equal(view.payload_bytes, blob.payload_bytes);
    assert_int_equal(view.dataset, 7);
    assert_int_equal(view.type, ESDM_TYPE_FLOAT32);
    assert_int_equal(view.element_bytes, 4);
    assert_int_equal(view.chain.count, chain->count);

    uint8_t *payload = copy_payload(&blob);
    for (uint32_t first = 0; first < view.blocks; first++) {
        uint32_t count = first == 0 ? view.blocks : 1;
        uint64_t offset, stored;
        esdm__blob_range(&view, 0, first, count, &offset, &stored);
        size_t part = esdm__blob_raw_bytes(&view, first, count);
        uint8_t *out = malloc(part);
        assert_int_equal(
            esdm__blob_decode(&view, first, count, payload + offset, stored, out, part, &err),
            ESDM_OK);
        assert_memory_equal(out, raw + ((size_t) first << view.block_log2), part);
        free(out);
    }
    free(payload);
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_blob__every_block_decodes_alone_and_all_together(void **state)
{
    (void) state;
    static const size_t sizes[] = {1, 2, 3, 8, 100, 4095, 4096, 4097, 16384, 65536, 65537, 300000};
    for (size_t c = 0; c < 4; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_round_trip(chains[c], sizes[i]);
}

static void
test_blob__an_empty_chain_borrows_the_data(void **state)
{
    (void) state;
    uint8_t *raw = make_raw(50000, 1);
    esdm__blob blob;
    assert_int_equal(esdm__blob_encode(&chain_none, ESDM_TYPE_INT8, 1, 1, raw, 50000, &blob, NULL),
                     ESDM_OK);
    assert_ptr_equal(blob.payload, raw);
    assert_null(blob.owned);
    esdm__blob_view view;
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, NULL, &view, NULL), ESDM_OK);
    /* In place: verified, not moved. */
    assert_int_equal(esdm__blob_decode(&view, 0, view.blocks, raw, 50000, raw, 50000, NULL),
                     ESDM_OK);
    raw[40000] ^= 1;
    esdm_error err;
    assert_int_equal(esdm__blob_decode(&view, 0, view.blocks, raw, 50000, raw, 50000, &err),
                     ESDM_ECORRUPT);
    assert_string_equal(err.message, "block 9 of 13 is damaged: its checksum is wrong");
    esdm__blob_clear(&blob);
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_blob__a_block_that_does_not_shrink_is_raw(void **state)
{
    (void) state;
    uint8_t *raw = malloc(3 * 65536);
    memset(raw, 0, 3 * 65536);
    for (size_t i = 0; i < 65536; i++)
        raw[65536 + i] = (uint8_t) (i * 7 + (i >> 3));
    esdm__blob blob;
    assert_int_equal(
        esdm__blob_encode(&chain_rle, ESDM_TYPE_INT8, 1, 1, raw, 3 * 65536, &blob, NULL), ESDM_OK);
    const uint8_t *table = blob.head + ESDM__BLOB_HEADER_BYTES;
    assert_int_equal(table[4], 0);
    assert_int_equal(table[ESDM__BLOB_ENTRY_BYTES + 4], 1);
    assert_int_equal(table[2 * ESDM__BLOB_ENTRY_BYTES + 4], 0);
    assert_true(blob.payload_bytes > 65536 && blob.payload_bytes < 65536 + 2000);
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_blob__header_bytes_are_as_documented(void **state)
{
    (void) state;
    const uint8_t raw[4] = {1, 2, 3, 4};
    esdm__blob blob;
    assert_int_equal(esdm__blob_encode(&chain_none, ESDM_TYPE_INT16, 2, 258, raw, 4, &blob, NULL),
                     ESDM_OK);
    static const uint8_t expected[56] = {
        'E', 'S', 'D', 'M', 'F', 'R', 'A', 'G',
        1,   0,   0,   12,  3,   0,   0,   0, /* magic … type */
        0,   0,   0,   0,   2,   0,   0,   0,
        0,   0,   0,   0,   0,   0,   0,   0, /* ids, element, reserved */
        4,   0,   0,   0,   0,   0,   0,   0,
        4,   0,   0,   0,   0,   0,   0,   0,  /* raw, payload */
        2,   1,   0,   0,   1,   0,   0,   0}; /* dataset, blocks */
    assert_int_equal(blob.head_bytes, 80);
    assert_memory_equal(blob.head, expected, sizeof expected);
    static const uint8_t entry[8] = {4, 0, 0, 0, 1, 0, 0, 0};
    assert_memory_equal(blob.head + 64, entry, sizeof entry);
    uint64_t sum = esdm__checksum(raw, 4);
    assert_memory_equal(blob.head + 72, &sum, 8);
    esdm__blob_clear(&blob);
}

static void
test_blob__damaged_heads_are_corrupt(void **state)
{
    (void) state;
    uint8_t *raw = make_raw(150000, 3);
    for (size_t c = 0; c < 4; c++) {
        esdm__blob blob;
        assert_int_equal(
            esdm__blob_encode(chains[c], ESDM_TYPE_INT8, 1, 1, raw, 150000, &blob, NULL), ESDM_OK);
        esdm__blob_view view;
        memset(&view, 0x5a, sizeof view);
        const esdm__blob_view untouched = view;
        for (size_t length = 0; length < blob.head_bytes; length++) {
            uint8_t *cut = malloc(length + 1);
            memcpy(cut, blob.head, length);
            uint8_t *exact = realloc(cut, length > 0 ? length : 1);
            assert_int_equal(esdm__blob_parse(exact, length, find_codec, &view, NULL),
                             ESDM_ECORRUPT);
            free(exact);
        }
        for (size_t bit = 0; bit < 8 * blob.head_bytes; bit++) {
            blob.head[bit / 8] ^= (uint8_t) (1u << (bit % 8));
            esdm_status st = esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL);
            bool version = bit / 8 == 8 || bit / 8 == 9;
            assert_true(st == ESDM_ECORRUPT || (version && st == ESDM_ENOTSUP));
            blob.head[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        }
        assert_memory_equal(&view, &untouched, sizeof view);
        esdm__blob_clear(&blob);
    }
    free(raw);
}

static void
test_blob__damaged_payloads_are_corrupt(void **state)
{
    (void) state;
    uint8_t *raw = make_raw(70000, 3);
    uint8_t *out = malloc(70000);
    for (size_t c = 0; c < 4; c++) {
        esdm__blob blob;
        assert_int_equal(
            esdm__blob_encode(chains[c], ESDM_TYPE_INT8, 1, 1, raw, 70000, &blob, NULL), ESDM_OK);
        esdm__blob_view view;
        assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, find_codec, &view, NULL),
                         ESDM_OK);
        uint8_t *payload = copy_payload(&blob);
        for (size_t i = 0; i < blob.payload_bytes; i += 977) {
            payload[i] ^= 0x10;
            assert_int_equal(esdm__blob_decode(&view, 0, view.blocks, payload, blob.payload_bytes,
                                               out, 70000, NULL),
                             ESDM_ECORRUPT);
            payload[i] ^= 0x10;
        }
        free(payload);
        esdm__blob_clear(&blob);
    }
    free(out);
    free(raw);
}

/* Right checksums over wrong fields: what a hostile writer could store. */
static void
seal_head(uint8_t *head, size_t head_bytes)
{
    uint64_t sum = esdm__checksum(head + 64, head_bytes - 64);
    memcpy(head + 56, &sum, 8);
    sum = esdm__checksum(head, 64);
    memcpy(head + 56, &sum, 8);
}

static void
test_blob__sealed_nonsense_is_corrupt(void **state)
{
    (void) state;
    uint8_t *raw = calloc(1, 150000);
    esdm__blob blob;
    assert_int_equal(esdm__blob_encode(&chain_both, ESDM_TYPE_INT8, 1, 1, raw, 150000, &blob, NULL),
                     ESDM_OK);
    static const struct {
        size_t at;
        uint8_t value;
        esdm_status status;
    } cases[] = {{10, 5, ESDM_ECORRUPT},   {10, 1, ESDM_ECORRUPT},  {10, 0, ESDM_ECORRUPT},
                 {11, 0, ESDM_ECORRUPT},   {11, 63, ESDM_ECORRUPT}, {11, 255, ESDM_ECORRUPT},
                 {16, 77, ESDM_ENOTSUP},   {18, 1, ESDM_ECORRUPT},  {24, 1, ESDM_ECORRUPT},
                 {39, 255, ESDM_ECORRUPT}, {47, 1, ESDM_ECORRUPT},  {52, 4, ESDM_ECORRUPT},
                 {55, 1, ESDM_ECORRUPT},   {67, 9, ESDM_ECORRUPT},  {68, 2, ESDM_ECORRUPT},
                 {68, 1, ESDM_ECORRUPT},   {8, 0, ESDM_ECORRUPT},   {9, 1, ESDM_ENOTSUP}};
    esdm__blob_view view;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *copy = malloc(blob.head_bytes);
        memcpy(copy, blob.head, blob.head_bytes);
        copy[cases[i].at] = cases[i].value;
        seal_head(copy, blob.head_bytes);
        assert_int_equal(esdm__blob_parse(copy, blob.head_bytes, find_codec, &view, NULL),
                         cases[i].status);
        free(copy);
    }
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_blob__unknown_codecs_and_newer_versions_say_what_to_do(void **state)
{
    (void) state;
    const uint8_t raw[4] = {0};
    esdm__blob blob;
    esdm_error err;
    esdm__blob_view view;
    assert_int_equal(esdm__blob_encode(&chain_rle, ESDM_TYPE_INT8, 1, 1, raw, 4, &blob, NULL),
                     ESDM_OK);
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, NULL, &view, &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "no codec with id 130"));
    esdm_codec_plugin zfp = *chain_rle.codecs[0]; /* one that ESDM has, though not everywhere */
    zfp.id = 6;
    const esdm__chain chain_zfp = {.codecs = {&zfp}, .count = 1};
    esdm__blob foreign;
    assert_int_equal(esdm__blob_encode(&chain_zfp, ESDM_TYPE_INT8, 1, 1, raw, 4, &foreign, NULL),
                     ESDM_OK);
    assert_int_equal(esdm__blob_parse(foreign.head, foreign.head_bytes, NULL, &view, &err),
                     ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "codec 'zfp' (id 6)"));
    assert_non_null(strstr(err.message, "esdm-codec-zfp.so"));
    assert_non_null(strstr(err.message, "libzfp 1.0 is installed"));
    esdm__blob_clear(&foreign);
    blob.head[8] = 5;
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, NULL, &view, &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "format 5 is newer"));
    esdm__blob_clear(&blob);
}

static void
test_blob__wrong_arguments_leave_the_output_untouched(void **state)
{
    (void) state;
    esdm__blob blob;
    memset(&blob, 0x5a, sizeof blob);
    const esdm__blob untouched = blob;
    esdm_error err;
    const uint8_t raw[16] = {0};
    assert_int_equal(esdm__blob_encode(&chain_none, ESDM_TYPE_INT8, 1, 1, raw, 0, &blob, &err),
                     ESDM_EINVAL);
    const esdm__chain broken = {1, {&failing}};
    assert_int_equal(esdm__blob_encode(&broken, ESDM_TYPE_INT8, 1, 1, raw, 16, &blob, &err),
                     ESDM_EIO);
    assert_string_equal(err.message, "codec 'failing': broken");
    assert_memory_equal(&blob, &untouched, sizeof blob);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* Refused by its size alone: the bytes are never looked at. */
    assert_int_equal(
        esdm__blob_encode(&chain_none, ESDM_TYPE_INT8, 1, 1, raw, (size_t) 1 << 43, &blob, &err),
        ESDM_EINVAL);
#endif
    assert_int_equal(esdm__blob_head_bytes(UINT64_MAX, ESDM__BLOB_RAW_LOG2), SIZE_MAX);
    assert_int_equal(esdm__blob_head_bytes(UINT64_C(1) << 40, 14), 64 + 16 * (UINT64_C(1) << 26));

    assert_int_equal(esdm__blob_encode(&chain_none, ESDM_TYPE_INT8, 1, 1, raw, 16, &blob, NULL),
                     ESDM_OK);
    esdm__blob_view view;
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, NULL, &view, NULL), ESDM_OK);
    uint8_t out[16];
    assert_int_equal(esdm__blob_decode(&view, 0, 2, raw, 16, out, 16, NULL), ESDM_EINVAL);
    assert_int_equal(esdm__blob_decode(&view, 2, 0, raw, 0, out, 0, NULL), ESDM_EINVAL);
    assert_int_equal(esdm__blob_decode(&view, 0, 1, raw, 15, out, 16, NULL), ESDM_EINVAL);
    assert_int_equal(esdm__blob_decode(&view, 0, 1, raw, 16, out, 15, NULL), ESDM_EINVAL);
    esdm__blob_clear(&blob);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blob__every_block_decodes_alone_and_all_together),
        cmocka_unit_test(test_blob__an_empty_chain_borrows_the_data),
        cmocka_unit_test(test_blob__a_block_that_does_not_shrink_is_raw),
        cmocka_unit_test(test_blob__header_bytes_are_as_documented),
        cmocka_unit_test(test_blob__damaged_heads_are_corrupt),
        cmocka_unit_test(test_blob__damaged_payloads_are_corrupt),
        cmocka_unit_test(test_blob__sealed_nonsense_is_corrupt),
        cmocka_unit_test(test_blob__unknown_codecs_and_newer_versions_say_what_to_do),
        cmocka_unit_test(test_blob__wrong_arguments_leave_the_output_untouched),
    };
    return cmocka_run_group_tests_name("codec.blob", tests, NULL, NULL);
}
