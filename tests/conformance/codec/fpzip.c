/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the codec fpzip alone has to keep. */

#include "conformance/codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include "esdm/types.h"

#define NUMBERS 256u

/* Numbers that shrink, with these bits at some places. Whether the codec stored anything; what it
 * did decodes. */
static bool
is_encoded(esdm_type type, const uint64_t *bits, size_t count)
{
    size_t bytes = type == ESDM_TYPE_FLOAT32 ? sizeof(float) : sizeof(double);
    uint64_t shape[1] = {NUMBERS};
    const esdm_codec_input input = {
        .type = type, .element_bytes = (uint32_t) bytes, .rank = 1, .shape = shape};
    uint8_t raw[NUMBERS * sizeof(double)];
    uint8_t back[sizeof raw];
    uint8_t out[sizeof raw];
    size_t encoded = 0;
    for (size_t i = 0; i < NUMBERS; i++) {
        float single = (float) i;
        double number = (double) i;
        memcpy(raw + i * bytes, bytes == sizeof single ? (void *) &single : &number, bytes);
    }
    for (size_t i = 0; i < 2 * count; i++) { /* twice: neighbours of each other, and far away */
        uint32_t half = (uint32_t) bits[i % count];
        memcpy(raw + (i < count ? 7 + i : 100 + i * 9) * bytes,
               bytes == sizeof half ? (const void *) &half : &bits[i % count], bytes);
    }
    assert_ok(codec()->encode(&input, raw, NUMBERS * bytes, out, codec()->bound(NUMBERS * bytes),
                              &encoded, &place_error));
    if (encoded == 0)
        return false;
    assert_ok(codec()->decode(&input, out, encoded, back, NUMBERS * bytes, &place_error));
    assert_memory_equal(raw, back, NUMBERS * bytes);
    return true;
}

void
test_codec__fpzip_refuses_what_compilers_differ_in(void **state)
{
    (void) state;
    static const struct {
        bool taken;
        size_t count;
        uint64_t singles[2];
        uint64_t doubles[2];
    } cases[] = {
        {true, 1, {0x3f800000}, {0x3ff0000000000000}},  /* 1 */
        {true, 1, {0x7f7fffff}, {0x7fefffffffffffff}},  /* the largest: sums overflow */
        {true, 1, {0x7fc00000}, {0x7ff8000000000000}},  /* the NaN of all machines */
        {false, 1, {0x7f800000}, {0x7ff0000000000000}}, /* infinities */
        {false, 1, {0xff800000}, {0xfff0000000000000}},
        {false, 1, {0xffc00000}, {0xfff8000000000000}}, /* that of x86 */
        {false, 1, {0x7f800001}, {0x7ff0000000000001}}, /* signalling */
        {false, 2, {0x7fc00000, 0x7fc00001}, {0x7ff8000000000000, 0x7ff8000000000001}},
        {false, 2, {0x7fc00000, 0xffc00000}, {0x7ff8000000000000, 0xfff8000000000000}},
    };
    if (strcmp(codec()->base.name, "fpzip") != 0)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(is_encoded(ESDM_TYPE_FLOAT32, cases[i].singles, cases[i].count),
                         cases[i].taken);
        assert_int_equal(is_encoded(ESDM_TYPE_FLOAT64, cases[i].doubles, cases[i].count),
                         cases[i].taken);
    }
}
