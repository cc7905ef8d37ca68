/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes codecs over foreign libraries: decodes the input, and takes it as values. The
 *  libraries have no sanitizers, but their memory comes from the allocator of the program. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/seal.h"
#include "esdm/types.h"
#include "foreign.h"

#define HEAD 8 /* codec, type, what to do, rank, shape (four sizes of a byte) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t
bytes_of(int32_t type)
{
    static const uint8_t bytes[] = {1, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    return type < 12 ? bytes[type] : 1;
}

/* From memory that ends where the input ends. */
static void
decode(const esdm_codec_plugin *codec, const esdm_codec_input *input, const uint8_t *data,
       size_t size, size_t raw_bytes)
{
    uint8_t *encoded = malloc(size);
    uint8_t *raw = malloc(raw_bytes);
    if (encoded != NULL && raw != NULL) {
        memcpy(encoded, data, size);
        bool sealed = size >= ESDM__SEAL_BYTES && strcmp(codec->base.name, "deflate") != 0;
        for (size_t i = 0; i < 4 && sealed; i++)
            encoded[4 + i] = (uint8_t) (size >> (8 * i)); /* else the head refuses it */
        (void) codec->decode(input, encoded, size, raw, raw_bytes, NULL);
    }
    free(encoded);
    free(raw);
}

static void
round_trip(const esdm_codec_plugin *codec, esdm_codec_input *input, const uint8_t *data,
           size_t size)
{
    const esdm_codec_accuracy accuracy = {.absolute = 0.5,
                                          .relative = (double) INFINITY,
                                          .exact_below = -(double) INFINITY,
                                          .exact_above = (double) INFINITY,
                                          .sum_bound = (double) INFINITY};
    uint8_t *encoded = malloc(codec->bound(size));
    uint8_t *raw = malloc(size);
    for (int lossy = 0; lossy < 2 && encoded != NULL && raw != NULL; lossy++) {
        size_t bytes = 0;
        input->accuracy = lossy ? &accuracy : NULL;
        if (codec->encode(input, data, size, encoded, codec->bound(size), &bytes, NULL) !=
                ESDM_OK ||
            bytes == 0)
            continue;
        input->accuracy = NULL;
        if (codec->decode(input, encoded, bytes, raw, size, NULL) != ESDM_OK ||
            (!lossy && memcmp(raw, data, size) != 0))
            abort();
    }
    free(encoded);
    free(raw);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t shape[4];
    size_t elements = 1;
    if (FOREIGN_CODECS == 0 || size <= HEAD)
        return 0;
    const esdm_codec_plugin *codec = foreign_codecs[data[0] % FOREIGN_CODECS];
    esdm_codec_input input = {.type = data[1] % 13,
                              .rank = data[3] % 5,
                              .shape = shape,
                              .effort = (esdm_codec_effort) (data[2] / 4 % 4)};
    input.element_bytes = bytes_of(input.type);
    for (uint32_t d = 0; d < 4; d++) {
        shape[d] = 1 + (uint64_t) data[4 + d] % (d < 2 ? 8 : 64);
        elements *= d < input.rank ? (size_t) shape[d] : 1;
    }
    if (data[2] % 4 == 0) {
        input.rank = 0;
        round_trip(codec, &input, data + HEAD, size - HEAD);
    } else {
        decode(codec, &input, data + HEAD, size - HEAD, elements * input.element_bytes);
    }
    return 0;
}
