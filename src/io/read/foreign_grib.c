/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fields of GRIB 2 messages that have several: a message with one of them alone, which
 * decoders understand. Everything may be hostile. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "io/read/foreign_codecs.h"

#define HEAD_BYTES 16u
#define END_BYTES  4u
#define SECTIONS   8u

typedef struct section {
    const uint8_t *data; /* NULL: there is none */
    size_t bytes;
} section;

static uint64_t
big(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Sections 1 to 7 that count for a field: some may be those of an earlier one. */
static bool
find(const uint8_t *message, size_t bytes, uint32_t field, section *found)
{
    section bitmap = {NULL, 0};
    uint32_t fields = 0;
    for (size_t at = HEAD_BYTES; at + 5 <= bytes - END_BYTES;) {
        size_t length = (size_t) big(message + at, 4);
        unsigned number = message[at + 4];
        if (length < 5 || length > bytes - END_BYTES - at || number < 1 || number >= SECTIONS)
            return false;
        section *s = &found[number];
        *s = (section){message + at, length};
        /* 254: the bitmap before, which may be that of another field. */
        if (number == 6 && length >= 6 && s->data[5] == 254)
            *s = bitmap;
        else if (number == 6 && length >= 6 && s->data[5] != 255) /* 255 says that there is none */
            bitmap = *s;
        if (number == 7 && fields++ == field)
            return true;
        at += length;
    }
    return false;
}

esdm_status
esdm__grib_field(const uint8_t *message, size_t bytes, uint32_t field, uint8_t **ret_message,
                 size_t *ret_bytes, esdm_error *err)
{
    section found[SECTIONS] = {{NULL, 0}};
    size_t all = HEAD_BYTES + END_BYTES;
    bool good = bytes >= HEAD_BYTES + END_BYTES && memcmp(message, "GRIB", 4) == 0 &&
                message[7] == 2 && find(message, bytes, field, found);
    for (unsigned i = 1; i < SECTIONS && good; i++) {
        good = i == 2 || found[i].data != NULL;
        all += found[i].bytes;
    }
    /* Each lies in the message, so that the sum cannot overflow. */
    if (!good)
        return esdm__error_set(err, ESDM_ECORRUPT, "grib: the message has no field %u", field + 1);
    uint8_t *to = esdm__scratch_new(all);
    if (to == NULL)
        return esdm__error_nomem(err, all, "a field of a message");
    size_t at = HEAD_BYTES;
    memcpy(to, message, HEAD_BYTES);
    for (size_t i = 0; i < 8; i++)
        to[8 + i] = (uint8_t) ((uint64_t) all >> (8 * (7 - i)));
    for (unsigned i = 1; i < SECTIONS; i++) {
        if (found[i].data != NULL)
            memcpy(to + at, found[i].data, found[i].bytes);
        at += found[i].bytes;
    }
    memcpy(to + at, "7777", END_BYTES);
    *ret_message = to;
    *ret_bytes = all;
    return ESDM_OK;
}
