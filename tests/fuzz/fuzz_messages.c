/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes the codec grib: messages that ecCodes decodes, which is a program of its own.
 * Nothing that it is given may end this one, nor spoil the message that comes next. */

#include <stdlib.h>
#include <string.h>

#include "esdm/sys/codec.h"
#include "esdm/types.h"
#include "messages.h"

#define HEAD 3 /* type, values (two bytes) */

extern const esdm_codec_plugin esdm_codec_grib_plugin;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* From memory that ends where the message ends. */
static esdm_status
decode(const uint8_t *message, size_t bytes, void *values, size_t count, bool single)
{
    const esdm_codec_input input = {.type = single ? ESDM_TYPE_FLOAT32 : ESDM_TYPE_FLOAT64,
                                    .element_bytes = single ? 4 : 8};
    uint8_t *copy = malloc(bytes);
    esdm_status status = ESDM_ENOMEM;
    if (copy != NULL) {
        memcpy(copy, message, bytes);
        status = esdm_codec_grib_plugin.decode(&input, copy, bytes, values,
                                               count * input.element_bytes, NULL);
    }
    free(copy);
    return status;
}

static void
need_good(void)
{
    float values[GOOD_VALUES];
    if (decode(good_message, sizeof good_message, values, GOOD_VALUES, true) != ESDM_OK)
        abort();
    for (int i = 0; i < GOOD_VALUES; i++) {
        float wanted = good_value(i);
        if (memcmp(&values[i], &wanted, sizeof wanted) != 0)
            abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned runs;
    if (size <= HEAD)
        return 0;
    bool single = data[0] % 2 == 0;
    size_t count = data[1] | (size_t) data[2] << 8;
    void *values = malloc(count * (single ? 4 : 8));
    if (values != NULL)
        (void) decode(data + HEAD, size - HEAD, values, count, single);
    free(values);
    if (runs++ % 100 == 0)
        need_good();
    return 0;
}
