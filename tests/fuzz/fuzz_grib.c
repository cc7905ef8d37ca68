/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes what is read of GRIB messages without ecCodes: heads, sections, and fields of those
 * that have several. */

#include <stdlib.h>
#include <string.h>

#include "base/scratch.h"
#include "io/read/foreign_codecs.h"
#include "refer/grib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t bytes;
} input;

/* As of an object: what lies behind the end is not there. */
static bool
read_input(void *message, uint64_t position, void *to, size_t bytes)
{
    const input *in = message;
    if (position > in->bytes || bytes > in->bytes - position)
        return false;
    memcpy(to, in->data + position, bytes);
    return true;
}

/* What was found lies in the message; a message without data says the same. */
static void
check_field(const gribs_walk *walk, uint64_t all)
{
    uint8_t *empty = NULL;
    size_t bytes = 0;
    gribs_place place = {0};
    for (unsigned i = 1; i < GRIB_SECTIONS; i++) {
        if (walk->field.at[i] > all || walk->field.bytes[i] > all - walk->field.at[i])
            abort();
    }
    if (!gribs_empty_message(walk, &empty, &bytes))
        return;
    if (!gribs_head(empty, &place) || place.bytes != bytes || place.edition != walk->place->edition)
        abort();
    g_free(empty);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gribs_place place = {0};
    if (size < GRIB_HEAD_BYTES)
        return 0;
    uint8_t *copy = malloc(size); /* that ends where the input ends */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    input in = {copy, size};
    if (gribs_head(copy, &place)) {
        if (place.bytes < GRIB_HEAD_BYTES)
            abort();
        if (place.is_long && !gribs_long(&place, read_input, &in)) {
            free(copy);
            return 0;
        }
        gribs_walk walk = {.place = &place, .read = read_input, .message = &in};
        while (gribs_next(&walk) == GRIBS_FIELD)
            check_field(&walk, place.bytes);
    }
    for (uint32_t field = 0; field < 3; field++) {
        uint8_t *one = NULL;
        size_t bytes = 0;
        if (esdm__grib_field(copy, size, field, &one, &bytes, NULL) == ESDM_OK) {
            if (bytes < 20 || memcmp(one + bytes - 4, "7777", 4) != 0)
                abort();
            esdm__scratch_free(one);
        }
    }
    free(copy);
    return 0;
}
