/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes the codec "field": decodes the input, and takes it as values to be kept exactly. */

#include <stdlib.h>
#include <string.h>

#include "plugin/registry.h"

#define CODEC_FIELD 4
#define HEAD        4 /* what to decode into: type, how to read the rest, elements (u16) */

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
    else
        decode(codec, &input, data + HEAD, size - HEAD,
               ((size_t) elements + 1) * input.element_bytes);
    return 0;
}
