/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Heads and sections of GRIB messages, without ecCodes. Everything may be hostile. */

#include <stdio.h>
#include <string.h>

#include "refer/grib.h"

static uint64_t
big(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Messages of GRIB 1 with more than 8 MiB count in units of 120 bytes (ECMWF's convention). */
#define LONG_FLAG UINT64_C(0x800000)

bool
gribs_head(const uint8_t head[GRIB_HEAD_BYTES], gribs_place *ret)
{
    if (memcmp(head, "GRIB", 4) != 0 || (head[7] != 1 && head[7] != 2))
        return false;
    ret->edition = head[7];
    ret->bytes = head[7] == 1 ? big(head + 4, 3) : big(head + 8, 8);
    return ret->bytes >= 20 && ret->bytes <= INT64_MAX &&
           (head[7] == 2 || (ret->bytes & LONG_FLAG) == 0);
}

/* ---- fields --------------------------------------------------------------------------------- */

static gribs_step
next1(gribs_walk *w)
{
    uint8_t head[8];
    uint64_t bytes = w->place->bytes;
    if (w->at != 0)
        return GRIBS_END;
    if (bytes < 8 + 28 + 4)
        return GRIBS_DAMAGED;
    if (!w->read(w->message, 8, head, sizeof head))
        return GRIBS_UNREAD;
    uint64_t first = big(head, 3);
    if (first < 28 || first > bytes - 8 - 4 - 3 || (head[7] & 0x80) == 0)
        return GRIBS_DAMAGED;
    w->at = 8 + first;
    if (!w->read(w->message, w->at, head, 3))
        return GRIBS_UNREAD;
    uint64_t length = big(head, 3);
    if (length < 6 || length > bytes - 4 - w->at)
        return GRIBS_DAMAGED;
    w->field.at[1] = 8;
    w->field.bytes[1] = first;
    w->field.at[3] = w->at;
    w->field.bytes[3] = length;
    w->fields = 1;
    return GRIBS_FIELD;
}

static void
begin_section(gribs_field *field, unsigned number, uint64_t at, uint64_t bytes)
{
    field->at[number] = at;
    field->bytes[number] = bytes;
    /* What stands behind it is not of this field. */
    for (unsigned i = number < 4 ? 4 : number + 1; i < GRIB_SECTIONS; i++)
        field->at[i] = 0;
}

static bool
has_all(const gribs_field *field)
{
    for (unsigned i = 1; i < GRIB_SECTIONS; i++) {
        if (i != 2 && field->at[i] == 0)
            return false;
    }
    return true;
}

gribs_step
gribs_next(gribs_walk *w)
{
    uint8_t head[5];
    uint64_t end = w->place->bytes - 4;
    if (w->place->bytes < 20)
        return GRIBS_DAMAGED;
    if (w->place->edition == 1)
        return next1(w);
    w->at = w->at == 0 ? 16 : w->at;
    while (w->at < end) {
        if (end - w->at < sizeof head)
            return GRIBS_DAMAGED;
        if (!w->read(w->message, w->at, head, sizeof head))
            return GRIBS_UNREAD;
        uint64_t length = big(head, 4);
        unsigned number = head[4];
        if (length < 5 || length > end - w->at || number < 1 || number > 7)
            return GRIBS_DAMAGED;
        begin_section(&w->field, number, w->at, length);
        w->at += length;
        if (number != 7)
            continue;
        w->fields++;
        return has_all(&w->field) ? GRIBS_FIELD : GRIBS_DAMAGED;
    }
    return w->fields > 0 ? GRIBS_END : GRIBS_DAMAGED;
}

/* ---- messages without data ------------------------------------------------------------------ */

/* Grids of many rows and levels of many coefficients take some ten thousand. */
#define HEADS_BYTES_MAX (UINT64_C(16) << 20)

/* Values that need no bits: all are 0. */
static const uint8_t no_data1[12] = {0, 0, 12, 8};
static const uint8_t no_data2[] = {0, 0, 0, 21, 5, 0,   0, 0, 0, 0, 0,
                                   0, 0, 0, 0,  0, 0,   0, 0, 0, 0, /* section 5: no bits */
                                   0, 0, 0, 6,  6, 255,             /* 6: no bitmap */
                                   0, 0, 0, 5,  7};

static bool
put_section(const gribs_walk *w, unsigned number, uint8_t *to, size_t *at)
{
    const gribs_field *f = &w->field;
    if (f->at[number] == 0)
        return true;
    if (!w->read(w->message, f->at[number], to + *at, (size_t) f->bytes[number]))
        return false;
    *at += (size_t) f->bytes[number];
    return true;
}

static void
put_big(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; value >>= 8)
        to[i] = (uint8_t) value;
}

bool
gribs_empty_message(const gribs_walk *w, uint8_t **ret, size_t *ret_bytes)
{
    const gribs_field *f = &w->field;
    uint64_t heads = 0;
    size_t at = w->place->edition == 1 ? 8 : 16;
    for (unsigned i = 1; i <= 4; i++)
        heads += f->at[i] != 0 ? f->bytes[i] : 0;
    if (heads > HEADS_BYTES_MAX || f->bytes[3] < 6 || f->bytes[1] < 6)
        return false;
    uint8_t *to = g_malloc0(at + heads + sizeof no_data2 + 4);
    bool good = w->read(w->message, 0, to, at);
    for (unsigned i = 1; i <= 4 && good; i++)
        good = put_section(w, i, to, &at);
    if (!good || (w->place->edition == 2 && f->bytes[3] < 14)) {
        g_free(to);
        return false;
    }
    if (w->place->edition == 1) {
        to[8 + 7] &= (uint8_t) ~0x40u; /* no bitmap */
        memcpy(to + at, no_data1, sizeof no_data1);
        at += sizeof no_data1;
    } else {
        const uint8_t *grid = to + 16 + f->bytes[1] + (f->at[2] != 0 ? f->bytes[2] : 0);
        memcpy(to + at, no_data2, sizeof no_data2);
        memcpy(to + at + 5, grid + 6, 4); /* number of points */
        at += sizeof no_data2;
    }
    memcpy(to + at, "7777", 4);
    at += 4;
    if (w->place->edition == 1)
        put_big(to + 4, at, 3);
    else
        put_big(to + 8, at, 8);
    if (w->place->edition == 1 && (at & LONG_FLAG) != 0) {
        g_free(to);
        return false;
    }
    *ret = to;
    *ret_bytes = at;
    return true;
}

/* ---- files ---------------------------------------------------------------------------------- */

bool
gribs_is_file(const char *path)
{
    uint8_t head[GRIB_HEAD_BYTES];
    gribs_place place;
    FILE *file = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? fopen(path, "rbe") : NULL;
    bool is = file != NULL && fread(head, sizeof head, 1, file) == 1 && gribs_head(head, &place);
    if (file != NULL)
        (void) fclose(file);
    return is;
}
