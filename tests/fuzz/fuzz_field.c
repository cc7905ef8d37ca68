/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes the codec "field": decodes the input, and takes it as values to be kept exactly. */

#include <stdlib.h>
#include <string.h>

#include "plugin/registry.h"

#define CODEC_FIELD 4
#define HEAD        4  /* what to decode into: type, how to read the rest, elements (u16) */
#define LARGE       16 /* times as many elements where a block may be in parts */

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
        (void) codec->decode(input, encoded, size, raw, raw_bytes, NULL);
    }
    free(encoded);
    free(raw);
}

/* The same of two pieces of it, which lie anywhere, and must be what decode() gives. */
static void
decode_some(const esdm_codec_plugin *codec, const esdm_codec_input *input, const uint8_t *data,
            size_t size, size_t raw_bytes)
{
    uint8_t *encoded = malloc(size);
    uint8_t *raw = calloc(1, raw_bytes);
    uint8_t *all = calloc(1, raw_bytes);
    size_t bytes = 0;
    if (encoded != NULL && raw != NULL && all != NULL) {
        memcpy(encoded, data, size);
        size_t step = raw_bytes / 7 + 1;
        size_t first = (size_t) data[size / 2] * raw_bytes / 256;
        size_t second = (first + step) % raw_bytes;
        esdm_codec_range wanted[2] = {
            {first, first + 1}, {second, second + step < raw_bytes ? second + step : raw_bytes}};
        bool good = codec->decode_some(input, encoded, size, wanted, 2, raw, raw_bytes, &bytes,
                                       NULL) == ESDM_OK;
        memcpy(encoded, data, size);
        if (good && codec->decode(input, encoded, size, all, raw_bytes, NULL) == ESDM_OK) {
            for (int i = 0; i < 2; i++) {
                if (memcmp(raw + wanted[i].from, all + wanted[i].from,
                           wanted[i].to - wanted[i].from) != 0)
                    abort();
            }
        }
    }
    free(encoded);
    free(raw);
    free(all);
}

static void
round_trip(const esdm_codec_plugin *codec, const esdm_codec_input *input, const uint8_t *data,
           size_t size)
{
    size_t room = codec->bound(size);
    uint8_t *encoded = malloc(room);
    uint8_t *raw = malloc(size);
    size_t bytes = 0;
    if (encoded != NULL && raw != NULL &&
        codec->encode(input, data, size, encoded, room, &bytes, NULL) == ESDM_OK && bytes > 0) {
        if (codec->decode(input, encoded, bytes, raw, size, NULL) != ESDM_OK ||
            memcmp(raw, data, size) != 0)
            abort();
    }
    free(encoded);
    free(raw);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const esdm_codec_plugin *codec = esdm__plugin_codec_by_id(CODEC_FIELD);
    if (codec == NULL || size <= HEAD)
        return 0;
    uint16_t elements;
    memcpy(&elements, data + 2, sizeof elements);
    esdm_codec_input input = {.type = data[0] % 13};
    input.element_bytes = bytes_of(input.type);
    if (data[1] % 4 == 0)
        round_trip(codec, &input, data + HEAD, size - HEAD);
    else if (data[1] % 4 == 2)
        decode_some(codec, &input, data + HEAD, size - HEAD,
                    ((size_t) elements + 1) * LARGE * input.element_bytes);
    else
        decode(codec, &input, data + HEAD, size - HEAD,
               ((size_t) elements + 1) * input.element_bytes);
    return 0;
}
