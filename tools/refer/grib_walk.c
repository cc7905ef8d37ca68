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

/* Of lengths in edition 1, which have 24 bits. */
#define LONG_FLAG UINT64_C(0x800000)
#define LONG_UNIT 120u

bool
gribs_head(const uint8_t head[GRIB_HEAD_BYTES], gribs_place *ret)
{
    if (memcmp(head, "GRIB", 4) != 0 || (head[7] != 1 && head[7] != 2))
        return false;
    ret->edition = head[7];
    ret->bytes = head[7] == 1 ? big(head + 4, 3) : big(head + 8, 8);
    ret->is_long = head[7] == 1 && (ret->bytes & LONG_FLAG) != 0;
    return ret->bytes >= 20 && ret->bytes <= INT64_MAX;
}

/* ---- edition 1 ------------------------------------------------------------------------------ */

/* Sections of edition 1. */
typedef struct sections1 {
    uint64_t at[5]; /* 0: it has none */
    uint64_t bytes[5];
} sections1;

/* Section 1 says which of 2 and 3 there are. GRIBS_FIELD: all is read. */
static gribs_step
read_sections1(gribs_reader read, void *message, uint64_t bytes, sections1 *ret)
{
    static const unsigned least[5] = {0, 28, 6, 6, 4};
    uint8_t head[8], flags = 0;
    uint64_t at = 8;
    for (unsigned i = 1; i <= 4; i++) {
        size_t n = i == 1 ? 8 : 3;
        if ((i == 2 && (flags & 0x80) == 0) || (i == 3 && (flags & 0x40) == 0))
            continue;
        if (at > bytes || bytes - at < n + 4)
            return GRIBS_DAMAGED;
        if (!read(message, at, head, n))
            return GRIBS_UNREAD;
        ret->at[i] = at;
        ret->bytes[i] = big(head, 3);
        flags = i == 1 ? head[7] : flags;
        if (ret->bytes[i] < least[i] && i != 4)
            return GRIBS_DAMAGED;
        at += ret->bytes[i];
    }
    return GRIBS_FIELD;
}

bool
gribs_long(gribs_place *place, gribs_reader read, void *message)
{
    sections1 s = {{0}, {0}};
    uint64_t bytes = place->bytes & (LONG_FLAG - 1);
    if (read_sections1(read, message, INT64_MAX, &s) != GRIBS_FIELD)
        return false;
    place->is_long = s.bytes[4] < LONG_UNIT;
    if (place->is_long)
        place->bytes = bytes * LONG_UNIT + 4 - MIN(s.bytes[4], bytes * LONG_UNIT);
    return place->bytes >= s.at[4] + 4 + 4;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* What may lie between the data and the end: lengths were rounded up to 120 bytes. */
#define ROUNDED_BYTES 240u

static gribs_step
next1(gribs_walk *w)
{
    sections1 s = {{0}, {0}};
    if (w->at != 0)
        return GRIBS_END;
    gribs_step step = read_sections1(w->read, w->message, w->place->bytes, &s);
    if (step != GRIBS_FIELD)
        return step;
    uint64_t end = w->place->bytes - 4; /* which all sections begin before */
    bool good = s.at[2] != 0 && s.bytes[2] <= end - s.at[2];
    if (good && !w->place->is_long)
        good = s.bytes[4] <= end - s.at[4] && end - s.at[4] - s.bytes[4] < ROUNDED_BYTES;
    if (!good)
        return GRIBS_DAMAGED;
    w->at = s.at[2];
    w->field.at[1] = s.at[1];
    w->field.bytes[1] = s.bytes[1];
    w->field.at[3] = s.at[2];
    w->field.bytes[3] = s.bytes[2];
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
    char head[4];
    FILE *file = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? fopen(path, "rbe") : NULL;
    bool is = file != NULL && fread(head, sizeof head, 1, file) == 1 &&
              memcmp(head, "GRIB", sizeof head) == 0;
    if (file != NULL)
        (void) fclose(file);
    return is;
}
