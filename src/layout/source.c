/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/source.h"

#include <string.h>

#include "base/error.h"

/* Of each stored form. A newer program that adds something which must not be overlooked raises it.
 */
#define VERSION 1u

/* ---- parts -------------------------------------------------------------------------------- */

/* With its length, so that nothing has to be searched, and a NUL, so that it can be borrowed. */
static void
put_text(esdm__buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    esdm__buffer_put_varint(buffer, length);
    esdm__buffer_put(buffer, text, length + 1);
}

static const char *
get_text(esdm__cursor *cursor)
{
    uint64_t length = esdm__cursor_varint(cursor);
    if (length >= ESDM__SOURCE_BYTES_MAX) {
        cursor->failed = true;
        return "";
    }
    const char *text = (const char *) esdm__cursor_take(cursor, (size_t) length + 1);
    if (text == NULL || memchr(text, '\0', (size_t) length + 1) != text + length) {
        cursor->failed = true;
        return "";
    }
    return text;
}

static void
put_bytes(esdm__buffer *buffer, const uint8_t *data, uint32_t bytes)
{
    esdm__buffer_put_varint(buffer, bytes);
    esdm__buffer_put(buffer, data, bytes);
}

static const uint8_t *
get_bytes(esdm__cursor *cursor, uint32_t *ret_bytes)
{
    uint64_t bytes = esdm__cursor_varint(cursor);
    *ret_bytes = 0;
    if (bytes > ESDM__SOURCE_BYTES_MAX) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *data = esdm__cursor_take(cursor, (size_t) bytes);
    if (data != NULL)
        *ret_bytes = (uint32_t) bytes;
    return data;
}

static uint32_t
get_u32(esdm__cursor *cursor)
{
    uint64_t value = esdm__cursor_varint(cursor);
    cursor->failed |= value > UINT32_MAX;
    return (uint32_t) value;
}

static void
put_double(esdm__buffer *buffer, double value)
{
    esdm__buffer_put(buffer, &value, sizeof value);
}

static double
get_double(esdm__cursor *cursor)
{
    uint64_t bits = esdm__cursor_u64(cursor);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static esdm_status
begin(const esdm__source *source, uint32_t role, esdm__cursor *ret, esdm_error *err)
{
    if (source == NULL || source->role != role)
        return esdm__error_set(err, ESDM_ECORRUPT, "a description of role %u where %u is needed",
                               source != NULL ? source->role : 0, role);
    esdm__cursor_init(ret, source->data, source->bytes);
    uint64_t version = esdm__cursor_varint(ret);
    if (!ret->failed && version > VERSION)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "what it refers to is described in format %llu, this ESDM knows up "
                               "to %u; use a newer ESDM",
                               (unsigned long long) version, VERSION);
    return ESDM_OK;
}

/* Bytes that follow are of newer programs, and may be overlooked. */
static esdm_status
end(const esdm__cursor *cursor, esdm_error *err)
{
    return !cursor->failed ? ESDM_OK
                           : esdm__error_set(err, ESDM_ECORRUPT,
                                             "the description of what it refers to is damaged");
}

/* ---- foreign ------------------------------------------------------------------------------ */

void
esdm__foreign_put(esdm__buffer *buffer, const esdm__foreign *foreign)
{
    esdm__buffer_put_varint(buffer, VERSION);
    put_text(buffer, foreign->location);
    esdm__buffer_put_varint(buffer, foreign->bytes);
    esdm__buffer_put_svarint(buffer, foreign->mtime_ns);
    put_text(buffer, foreign->identity);
    put_bytes(buffer, foreign->tag, foreign->tag_bytes);
}

esdm_status
esdm__foreign_get(const esdm__source *source, esdm__foreign *ret, esdm_error *err)
{
    esdm__cursor cursor;
    esdm_status status = begin(source, ESDM__ROLE_FOREIGN, &cursor, err);
    if (status != ESDM_OK)
        return status;
    esdm__foreign foreign = {.location = get_text(&cursor)};
    foreign.bytes = esdm__cursor_varint(&cursor);
    foreign.mtime_ns = esdm__cursor_svarint(&cursor);
    foreign.identity = get_text(&cursor);
    foreign.tag = get_bytes(&cursor, &foreign.tag_bytes);
    status = end(&cursor, err);
    if (status == ESDM_OK)
        *ret = foreign;
    return status;
}

/* ---- decoding ----------------------------------------------------------------------------- */

void
esdm__decoding_put(esdm__buffer *buffer, const esdm__decoding *decoding)
{
    esdm__buffer_put_varint(buffer, VERSION);
    esdm__buffer_put_varint(buffer, decoding->flags);
    esdm__buffer_put_varint(buffer, decoding->type);
    esdm__buffer_put_varint(buffer, decoding->element_bytes);
    esdm__buffer_put_varint(buffer, decoding->rank);
    for (uint32_t d = 0; d < decoding->rank; d++)
        esdm__buffer_put_varint(buffer, decoding->chunk[d]);
    esdm__buffer_put_varint(buffer, decoding->nfilters);
    for (uint32_t i = 0; i < decoding->nfilters; i++) {
        const esdm__filter *filter = &decoding->filters[i];
        put_text(buffer, filter->name);
        esdm__buffer_put_varint(buffer, filter->id);
        put_text(buffer, filter->codec);
        put_bytes(buffer, filter->parameters, filter->parameter_bytes);
    }
    put_bytes(buffer, decoding->extra, decoding->extra_bytes);
}

esdm_status
esdm__decoding_get(const esdm__source *source, esdm__decoding *ret, esdm_error *err)
{
    esdm__cursor cursor;
    esdm_status status = begin(source, ESDM__ROLE_DECODING, &cursor, err);
    if (status != ESDM_OK)
        return status;
    esdm__decoding decoding = {.flags = get_u32(&cursor)};
    decoding.type = get_u32(&cursor);
    decoding.element_bytes = get_u32(&cursor);
    decoding.rank = get_u32(&cursor);
    cursor.failed |= decoding.rank > ESDM_MAX_RANK;
    for (uint32_t d = 0; d < decoding.rank && !cursor.failed; d++)
        decoding.chunk[d] = esdm__cursor_varint(&cursor);
    decoding.nfilters = get_u32(&cursor);
    cursor.failed |= decoding.nfilters > ESDM__FILTERS_MAX;
    for (uint32_t i = 0; i < decoding.nfilters && !cursor.failed; i++) {
        esdm__filter *filter = &decoding.filters[i];
        filter->name = get_text(&cursor);
        filter->id = get_u32(&cursor);
        filter->codec = get_text(&cursor);
        filter->parameters = get_bytes(&cursor, &filter->parameter_bytes);
    }
    decoding.extra = get_bytes(&cursor, &decoding.extra_bytes);
    status = end(&cursor, err);
    if (status == ESDM_OK)
        *ret = decoding;
    return status;
}

/* ---- link --------------------------------------------------------------------------------- */

void
esdm__link_put(esdm__buffer *buffer, const esdm__link *link)
{
    esdm__buffer_put_varint(buffer, VERSION);
    put_text(buffer, link->container);
    esdm__buffer_put_u8(buffer, link->by_name);
    put_text(buffer, link->dataset);
    esdm__buffer_put_varint(buffer, link->number);
    esdm__buffer_put_varint(buffer, link->snapshot);
}

esdm_status
esdm__link_get(const esdm__source *source, esdm__link *ret, esdm_error *err)
{
    esdm__cursor cursor;
    esdm_status status = begin(source, ESDM__ROLE_LINK, &cursor, err);
    if (status != ESDM_OK)
        return status;
    esdm__link link = {.container = get_text(&cursor)};
    link.by_name = esdm__cursor_u8(&cursor) != 0;
    link.dataset = get_text(&cursor);
    link.number = get_u32(&cursor);
    link.snapshot = esdm__cursor_varint(&cursor);
    status = end(&cursor, err);
    if (status == ESDM_OK)
        *ret = link;
    return status;
}

void
esdm__link_map_put(esdm__buffer *buffer, const esdm__link_map *map)
{
    esdm__buffer_put_varint(buffer, VERSION);
    esdm__buffer_put_varint(buffer, map->rank);
    for (uint32_t d = 0; d < map->rank; d++) {
        esdm__buffer_put_varint(buffer, map->axes[d].here);
        esdm__buffer_put_svarint(buffer, map->axes[d].first);
        esdm__buffer_put_svarint(buffer, map->axes[d].step);
    }
    esdm__buffer_put_varint(buffer, map->flags);
    esdm__buffer_put_varint(buffer, map->type);
    put_double(buffer, map->scale);
    put_double(buffer, map->offset);
    put_bytes(buffer, map->extra, map->extra_bytes);
}

esdm_status
esdm__link_map_get(const esdm__source *source, esdm__link_map *ret, esdm_error *err)
{
    esdm__cursor cursor;
    esdm_status status = begin(source, ESDM__ROLE_MAP, &cursor, err);
    if (status != ESDM_OK)
        return status;
    esdm__link_map map = {.rank = get_u32(&cursor)};
    cursor.failed |= map.rank > ESDM_MAX_RANK;
    for (uint32_t d = 0; d < map.rank && !cursor.failed; d++) {
        map.axes[d].here = get_u32(&cursor);
        map.axes[d].first = esdm__cursor_svarint(&cursor);
        map.axes[d].step = esdm__cursor_svarint(&cursor);
        cursor.failed |= map.axes[d].step == 0;
    }
    map.flags = get_u32(&cursor);
    map.type = get_u32(&cursor);
    map.scale = get_double(&cursor);
    map.offset = get_double(&cursor);
    map.extra = get_bytes(&cursor, &map.extra_bytes);
    status = end(&cursor, err);
    if (status == ESDM_OK)
        *ret = map;
    return status;
}
