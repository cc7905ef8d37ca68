/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The stored form of an index page. */

#include <lz4.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/error.h"
#include "layout/page_parts.h"
#include "layout/places.h"

/* The stored form of a page; the format is described in page.h. */

/* Bytes from which on a body is compressed. Of a few records it gains some ten bytes, and LZ4
 * clears its table of 16 KiB each time: that takes longer than all else that is done for such a
 * page. */
#define COMPRESSED_LEAST 512u

typedef esdm__page_encoder encoder;

static void
encoder_clear(encoder *e)
{
    free(e->values);
    free(e->packs);
    free(e->ends);
    free(e->pack_of);
    free(e->sources);
    free(e->source_of);
    esdm__buffer_clear(&e->body);
}

static const esdm__record *
item(const encoder *e, uint32_t i)
{
    return esdm__page_item(e, i);
}

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const void *const *) a;
    uintptr_t y = (uintptr_t) * (const void *const *) b;
    return (x > y) - (x < y);
}

bool
esdm__page_number(const void *const *pointers, uint32_t count, uint32_t *ret_number,
                  const void **ret_distinct, uint32_t *ret_count)
{
    const void **sorted = malloc(count * sizeof *sorted);
    uint32_t *number = calloc(count, sizeof *number); /* per pointer of `sorted`; 0: none yet */
    uint32_t n = 0;
    *ret_count = 0;
    if (sorted == NULL || number == NULL) {
        free(sorted);
        free(number);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (pointers[i] != NULL && (n == 0 || sorted[n - 1] != pointers[i]))
            sorted[n++] = pointers[i];
    }
    qsort(sorted, n, sizeof *sorted, by_address);
    for (uint32_t i = 0; i < count; i++) {
        ret_number[i] = 0;
        if (pointers[i] == NULL)
            continue;
        /* The search gives any of equal entries, but always the same one. */
        const void **at = bsearch(&pointers[i], sorted, n, sizeof *sorted, by_address);
        uint32_t *slot = &number[at - sorted];
        if (*slot == 0) {
            ret_distinct[(*ret_count)++] = pointers[i];
            *slot = *ret_count;
        }
        ret_number[i] = *slot;
    }
    free(sorted);
    free(number);
    return true;
}

static bool
number_packs(encoder *e)
{
    const void **pointers = malloc(e->count * sizeof *pointers);
    bool ok = pointers != NULL;
    for (uint32_t i = 0; ok && i < e->count; i++)
        pointers[i] = item(e, i)->pack;
    ok = ok &&
         esdm__page_number(pointers, e->count, e->pack_of, (const void **) e->packs, &e->npacks);
    free(pointers);
    return ok;
}

static void
put_text(esdm__buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    esdm__buffer_put_varint(buffer, length);
    esdm__buffer_put(buffer, text, length);
}

void
esdm__page_put_column(esdm__page_encoder *e)
{
    esdm__column_put(&e->body, e->values, e->count);
}

static void
put_boxes(encoder *e)
{
    uint32_t rank = e->records->rank;
    for (uint32_t d = 0; d < rank; d++) {
        for (uint32_t i = 0; i < e->count; i++)
            e->values[i] = esdm__records_bounds(e->records, e->order[i])[d];
        esdm__page_put_column(e);
        for (uint32_t i = 0; i < e->count; i++) {
            const uint64_t *bounds = esdm__records_bounds(e->records, e->order[i]);
            e->values[i] = bounds[rank + d] - bounds[d];
        }
        esdm__page_put_column(e);
    }
}

static void
put_positions(encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__record *r = item(e, i);
        uint64_t *end = NULL;
        e->values[i] = 0;
        if (r->pack != NULL)
            end = &e->ends[e->pack_of[i] - 1];
        else if (e->nsources > 0 && e->source_of[i] > 0)
            end = &e->ends[e->npacks + e->source_of[i] - 1];
        if (end != NULL) {
            e->values[i] = r->position - *end;
            *end = r->position + r->stored_bytes;
        }
    }
    esdm__page_put_column(e);
}

static void
put_columns(encoder *e, bool absolute)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = absolute ? item(e, i)->sequence : item(e, i)->sequence & UINT32_MAX;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->raw_bytes;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->stored_bytes;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = e->pack_of[i];
    esdm__page_put_column(e);
    put_positions(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->head_bytes;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t ids;
        memcpy(&ids, item(e, i)->codec_ids, sizeof ids);
        e->values[i] = ids;
    }
    esdm__page_put_column(e);
}

/* Whether any of the records is strided. */
static bool
has_strides(const encoder *e)
{
    for (uint32_t i = 0; e->records->strides != NULL && i < e->count; i++) {
        if (esdm__records_stride(e->records, e->order[i]) != NULL)
            return true;
    }
    return false;
}

/* Whether a pack lies in more than one place, or where not every node sees it. */
static bool
has_places(const encoder *e)
{
    for (uint32_t i = 0; i < e->npacks; i++) {
        if (esdm__places_are_special(e->packs[i]->target))
            return true;
    }
    return false;
}

static void
put_strides(encoder *e)
{
    uint32_t rank = e->records->rank;
    for (uint32_t d = 0; d < rank; d++) {
        for (uint32_t i = 0; i < e->count; i++)
            e->values[i] = e->records->strides[(size_t) e->order[i] * rank + d];
        esdm__page_put_column(e);
    }
}

static void
put_inline_data(encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__record *r = item(e, i);
        size_t bytes = (size_t) esdm__record_inline_bytes(r);
        if (bytes > 0)
            esdm__buffer_put(&e->body, e->records->inline_data + esdm__record_inline_at(r), bytes);
    }
}

static bool
has_outlines(const encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (item(e, i)->pack != NULL && item(e, i)->outline_bytes > 0)
            return true;
    }
    return false;
}

static void
put_outline_lengths(encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->pack != NULL ? item(e, i)->outline_bytes : 0;
    esdm__page_put_column(e);
}

static bool
build_body(encoder *e, bool absolute)
{
    e->values = malloc(e->count * sizeof *e->values);
    e->packs = malloc(e->count * sizeof(esdm__pack_name *));
    e->pack_of = malloc(e->count * sizeof *e->pack_of);
    if (e->values == NULL || e->packs == NULL || e->pack_of == NULL || !number_packs(e))
        return false;
    bool kinds = esdm__page_has_kinds(e);
    if (kinds && !esdm__page_number_sources(e))
        return false;
    e->ends = calloc((size_t) e->npacks + e->nsources + 1, sizeof *e->ends);
    if (e->ends == NULL)
        return false;
    esdm__buffer_put_varint(&e->body, e->npacks);
    for (uint32_t i = 0; i < e->npacks; i++) {
        put_text(&e->body, e->packs[i]->target);
        put_text(&e->body, e->packs[i]->pack);
    }
    if (kinds)
        esdm__page_put_kinds(e);
    put_boxes(e);
    put_columns(e, absolute);
    if (has_strides(e))
        put_strides(e);
    if (esdm__page_has_statistics(e))
        esdm__page_put_statistics(e);
    if (has_outlines(e))
        put_outline_lengths(e);
    put_inline_data(e);
    return !e->body.failed;
}

static void
put_header(esdm__buffer *out, const encoder *e, uint16_t version, uint16_t flags)
{
    esdm__buffer_put(out, "ESDMPAGE", 8);
    esdm__buffer_put_u64(out, 0);
    esdm__buffer_put(out, &version, sizeof version);
    esdm__buffer_put(out, &flags, sizeof flags);
    esdm__buffer_put_u32(out, e->records->rank);
    esdm__buffer_put_u32(out, e->count);
    esdm__buffer_put_u32(out, (uint32_t) e->body.bytes);
}

/* Header and body, compressed when that helps, and last the checksum over it. */
static bool
build_page(const encoder *e, bool absolute, esdm__buffer *out)
{
    uint16_t flags = e->sources != NULL ? ESDM__PAGE_FLAG_KINDS : 0;
    flags |= esdm__page_has_statistics(e) ? ESDM__PAGE_FLAG_STATISTICS : 0;
    flags |= has_outlines(e) ? ESDM__PAGE_FLAG_OUTLINES : 0;
    uint16_t version = (flags & ESDM__PAGE_FLAG_OUTLINES) != 0 ? 5
                       : flags != 0                            ? 4
                       : has_places(e)                         ? 3
                       : has_strides(e)                        ? 2
                                                               : 1;
    flags |= absolute ? ESDM__PAGE_FLAG_ABSOLUTE : 0;
    flags |= version > 2 && has_strides(e) ? ESDM__PAGE_FLAG_STRIDED : 0;
    put_header(out, e, version, flags);
    uint8_t *to = esdm__buffer_reserve(out, e->body.bytes);
    if (to == NULL)
        return false;
    int packed = 0;
    if (e->body.bytes >= COMPRESSED_LEAST)
        packed = LZ4_compress_default((const char *) e->body.data, (char *) to, (int) e->body.bytes,
                                      (int) e->body.bytes - 1);
    if (packed > 0) {
        out->bytes += (size_t) packed;
        flags |= ESDM__PAGE_FLAG_LZ4;
        memcpy(out->data + 18, &flags, sizeof flags);
    } else {
        esdm__buffer_put(out, e->body.data, e->body.bytes);
    }
    if (out->failed)
        return false;
    uint64_t checksum = esdm__checksum(out->data + 16, out->bytes - 16);
    memcpy(out->data + 8, &checksum, sizeof checksum);
    return true;
}

esdm_status
esdm__page_encode(const esdm__records *records, const uint32_t *order, uint32_t count,
                  bool absolute, uint8_t **ret_data, size_t *ret_bytes, esdm_error *err)
{
    if (count == 0 || count > ESDM__PAGE_RECORDS)
        return esdm__error_set(err, ESDM_EINVAL, "a page cannot hold %u records", count);
    encoder e = {.records = records, .order = order, .count = count};
    esdm__buffer out;
    esdm__buffer_init(&e.body);
    esdm__buffer_init(&out);
    esdm_status st = ESDM_OK;
    bool built = build_body(&e, absolute);
    if (built && e.body.bytes > ESDM__PAGE_BODY_MAX)
        st = esdm__error_set(err, ESDM_EINVAL, "an index page of %zu bytes is too long",
                             e.body.bytes);
    else if (!built || !build_page(&e, absolute, &out))
        st = esdm__error_nomem(err, e.body.bytes, "an index page");
    if (st == ESDM_OK)
        *ret_data = esdm__buffer_steal(&out, ret_bytes);
    encoder_clear(&e);
    esdm__buffer_clear(&out);
    return st;
}
