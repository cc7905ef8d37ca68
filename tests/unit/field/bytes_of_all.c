/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Prints checksums of what `field` and `bitround` make of many blocks, with all kernels that
 *  this CPU has: for compilers.sh. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/sys/codec.h"
#include "kernels.h"
#include "support/number_fields.h"

extern const esdm_codec_plugin esdm_codec_field_plugin;
extern const esdm_codec_plugin esdm_codec_bitround_plugin;

#define ELEMENTS 4320u

static const uint64_t shapes[][4] = {{4320}, {60, 72}, {12, 18, 20}, {2, 9, 12, 20}};
static const esdm_type types[] = {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, ESDM_TYPE_INT16,
                                  ESDM_TYPE_INT64, ESDM_TYPE_UINT8};

/* Nothing may be lost; then absolute, relative with a finest, absolute with the sum kept. */
static const esdm_codec_accuracy accuracies[] = {
    {.absolute = INFINITY, .relative = INFINITY, .sum_bound = INFINITY},
    {.absolute = 0.03, .relative = INFINITY, .sum_bound = INFINITY},
    {.absolute = 2, .relative = 0.003, .finest = 0.001, .sum_bound = INFINITY},
    {.absolute = 0.7, .relative = INFINITY, .sum_bound = 0.01},
};
#define ACCURACIES (sizeof accuracies / sizeof accuracies[0])

/* FNV-1a. */
static uint64_t
checksum(const uint8_t *bytes, size_t n)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void
encode(const char *what, const esdm_codec_plugin *codec, const esdm_codec_input *input,
       const uint8_t *raw)
{
    static uint8_t back[ELEMENTS * 8];
    size_t raw_bytes = ELEMENTS * (size_t) input->element_bytes;
    size_t room = codec->bound(raw_bytes);
    uint8_t *out = malloc(room);
    size_t bytes = 0;
    esdm_error err;
    esdm_codec_input reading = *input;
    reading.accuracy = NULL;
    reading.effort = 0;
    if (out == NULL || codec->encode(input, raw, raw_bytes, out, room, &bytes, &err) != ESDM_OK ||
        (bytes > 0 && codec->decode(&reading, out, bytes, back, raw_bytes, &err) != ESDM_OK)) {
        fprintf(stderr, "%s %s: failed\n", codec->base.name, what);
        exit(1);
    }
    printf("%s %s: %zu bytes %016llx, decoded %016llx\n", codec->base.name, what, bytes,
           (unsigned long long) checksum(out, bytes),
           (unsigned long long) (bytes > 0 ? checksum(back, raw_bytes) : 0));
    free(out);
}

static void
encode_all(esdm_type type, field_kind kind, uint32_t kernels)
{
    static uint8_t raw[ELEMENTS * 8 + 8];
    char what[100];
    size_t bytes = field_type_bytes(type);
    field_make_hard(kind, type, ELEMENTS, raw);
    for (uint32_t i = 0; i < ACCURACIES * 3; i++) {
        esdm_codec_accuracy a = accuracies[i % ACCURACIES];
        a.exact_below = -INFINITY;
        a.exact_above = INFINITY;
        uint32_t rank = 1 + (i + (uint32_t) kind) % 4;
        const esdm_codec_input input = {.element_bytes = (uint32_t) bytes,
                                        .type = type,
                                        .rank = rank,
                                        .shape = shapes[rank - 1],
                                        .accuracy = i % ACCURACIES == 0 ? NULL : &a,
                                        .effort = (esdm_codec_effort) (1 + i / ACCURACIES)};
        snprintf(what, sizeof what, "type %d field %d accuracy %u effort %d kernels %u", (int) type,
                 (int) kind, i % (uint32_t) ACCURACIES, (int) input.effort, kernels);
        encode(what, &esdm_codec_field_plugin, &input, raw);
        if (kernels == 0)
            encode(what, &esdm_codec_bitround_plugin, &input, raw);
    }
    printf("raw %016llx\n", (unsigned long long) checksum(raw, ELEMENTS * bytes));
}

int
main(void)
{
    for (uint32_t k = 0; field__kernels_at(k) != NULL; k++) {
        field__kernels_force(field__kernels_at(k));
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
            for (field_kind kind = 0; kind < FIELD_ALL_KINDS; kind++)
                encode_all(types[t], kind, k);
    }
    return 0;
}
