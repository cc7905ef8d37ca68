/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What memory held before shows in nothing that is encoded or decoded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/scratch.h"
#include "block_values.h"
#include "volume.h"

enum { PIECES = 6 };

static uint8_t
poison_of(int round)
{
    return round == 0 ? 0xA5 : 0x5A;
}

/* The memory that this thread keeps becomes pieces as the codec wants them, full of `poison`. */
static void
poison_kept(const field__block *block, uint8_t poison)
{
    field__axes axes = field__axes_of(block);
    size_t n = block->elements;
    size_t room = n / (size_t) axes.nx * ((size_t) axes.nx + 2 * FIELD__PAD) * 8;
    const size_t sizes[PIECES] = {room, room, (n + 128) * 4, n * 4, n * 8 + 1, n};
    uint8_t *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = esdm__scratch_new(sizes[i]);
        assert_non_null(pieces[i]);
        memset(pieces[i], poison, sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        esdm__scratch_free(pieces[i]);
}

static void
check_block(const field__block *block, const esdm_codec_accuracy *accuracy,
            esdm_codec_effort effort, const uint8_t *raw)
{
    size_t bytes = block->elements * field__element_bytes(block->type);
    esdm__buffer encoded[2];
    uint8_t *decoded[2];
    for (int k = 0; k < 2; k++) {
        esdm_error err = {0};
        esdm__buffer_init(&encoded[k]);
        poison_kept(block, poison_of(k));
        if (field__encode(block, accuracy, effort, raw, &encoded[k], &err) != ESDM_OK)
            fail_msg("%s", err.message);
    }
    assert_int_equal(encoded[0].bytes, encoded[1].bytes);
    assert_memory_equal(encoded[0].data, encoded[1].data, encoded[0].bytes);
    for (int k = 0; k < 2; k++) {
        esdm_error err = {0};
        decoded[k] = malloc(bytes);
        assert_non_null(decoded[k]);
        memset(decoded[k], poison_of(k), bytes);
        poison_kept(block, poison_of(k));
        if (field__decode(block->type, block->elements, encoded[0].data, encoded[0].bytes,
                          decoded[k], &err) != ESDM_OK)
            fail_msg("%s", err.message);
    }
    assert_memory_equal(decoded[0], decoded[1], bytes);
    if (accuracy == NULL)
        assert_memory_equal(decoded[0], raw, bytes);
    for (int k = 0; k < 2; k++) {
        esdm__buffer_clear(&encoded[k]);
        free(decoded[k]);
    }
}

static void
test_stale__memory_of_other_blocks_does_not_show(void **state)
{
    (void) state;
    static const shape boxes[] = {
        {1, {1009}}, {2, {31, 137}}, {3, {5, 20, 31}}, {4, {3, 2, 16, 17}}};
    static const pattern patterns[] = {SMOOTH, NOISE, FILLED, SPECIALS, DECIMAL};
    static const esdm_codec_accuracy accuracy = {.absolute = 0.01,
                                                 .relative = INFINITY,
                                                 .exact_below = -INFINITY,
                                                 .exact_above = INFINITY,
                                                 .sum_bound = INFINITY};
    for (size_t t = 0; t < TYPES; t++) {
        for (size_t b = 0; b < sizeof boxes / sizeof boxes[0]; b++) {
            for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
                field__block block = {.type = types[t],
                                      .rank = boxes[b].rank,
                                      .shape = boxes[b].sizes,
                                      .elements = elements_of(&boxes[b])};
                uint8_t *raw = make_values(block.type, block.elements, patterns[p]);
                for (int effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
                    check_block(&block, NULL, (esdm_codec_effort) effort, raw);
                    check_block(&block, &accuracy, (esdm_codec_effort) effort, raw);
                }
                free(raw);
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stale__memory_of_other_blocks_does_not_show),
    };
    return cmocka_run_group_tests_name("field.stale", tests, NULL, NULL);
}
