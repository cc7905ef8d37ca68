/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <lz4.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/error.h"
#include "layout/page.h"
#include "layout/places.h"

/* The stored form of a page; the format is described in page.h. */

#define FLAG_ABSOLUTE 1u
#define FLAG_LZ4      2u
#define FLAG_STRIDED  4u

typedef struct encoder {
    const esdm__records *records;
    const uint32_t *order;
    uint32_t count;
    uint64_t *values;              /* owned; one column */
    const esdm__pack_name **packs; /* owned; the packs in order of their first record */
    uint64_t *ends;                /* owned; per pack: where its last record ends */
    uint32_t *pack_of;             /* owned; per record: 0 or index of its pack + 1 */
    uint32_t npacks;
    esdm__buffer body;
} encoder;

static void
encoder_clear(encoder *e)
{
    free(e->values);
    free(e->packs);
    free(e->ends);
    free(e->pack_of);
    esdm__buffer_clear(&e->body);
}

static const esdm__record *
item(const encoder *e, uint32_t i)
{
    return &e->records->items[e->order[i]];
}

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const esdm__pack_name *const *) a;
    uintptr_t y = (uintptr_t) * (const esdm__pack_name *const *) b;
    return (x > y) - (x < y);
}

/* Numbers the packs by their first record, so that the bytes do not depend on addresses. */
static bool
number_packs(encoder *e)
{
    const esdm__pack_name **sorted = malloc(e->count * sizeof(esdm__pack_name *));
    uint32_t *number = calloc(e->count, sizeof *number); /* per pack of `sorted`; 0: none yet */
    uint32_t n = 0;
    if (sorted == NULL || number == NULL) {
        free(sorted);
        free(number);
        return false;
    }
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__pack_name *pack = item(e, i)->pack;
        if (pack != NULL && (n == 0 || sorted[n - 1] != pack))
            sorted[n++] = pack;
    }
    qsort(sorted, n, sizeof(esdm__pack_name *), by_address);
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__pack_name *pack = item(e, i)->pack;
        e->pack_of[i] = 0;
        if (pack == NULL)
            continue;
        /* The search gives any of equal entries, but always the same one. */
        const esdm__pack_name **at =
            bsearch(&pack, sorted, n, sizeof(esdm__pack_name *), by_address);
        uint32_t *slot = &number[at - sorted];
        if (*slot == 0) {
            e->packs[e->npacks++] = pack;
            *slot = e->npacks;
        }
        e->pack_of[i] = *slot;
    }
    free(sorted);
    free(number);
    return true;
}

static void
put_text(esdm__buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    esdm__buffer_put_varint(buffer, length);
    esdm__buffer_put(buffer, text, length);
}

static void
put_column(encoder *e)
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
        put_column(e);
        for (uint32_t i = 0; i < e->count; i++) {
            const uint64_t *bounds = esdm__records_bounds(e->records, e->order[i]);
            e->values[i] = bounds[rank + d] - bounds[d];
        }
        put_column(e);
    }
}

static void
put_positions(encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__record *r = item(e, i);
        e->values[i] = 0;
        if (r->pack != NULL) {
            uint64_t *end = &e->ends[e->pack_of[i] - 1];
            e->values[i] = r->position - *end;
            *end = r->position + r->stored_bytes;
        }
    }
    put_column(e);
}

static void
put_columns(encoder *e, bool absolute)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = absolute ? item(e, i)->sequence : item(e, i)->sequence & UINT32_MAX;
    put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->raw_bytes;
    put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->stored_bytes;
    put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = e->pack_of[i];
    put_column(e);
    put_positions(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = item(e, i)->head_bytes;
    put_column(e);
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t ids;
        memcpy(&ids, item(e, i)->codec_ids, sizeof ids);
        e->values[i] = ids;
    }
    put_column(e);
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
        put_column(e);
    }
}

static void
put_inline_data(encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__record *r = item(e, i);
        if (r->pack == NULL)
            esdm__buffer_put(&e->body, e->records->inline_data + r->position,
                             (size_t) r->stored_bytes);
    }
}

static bool
build_body(encoder *e, bool absolute)
{
    e->values = malloc(e->count * sizeof *e->values);
    e->packs = malloc(e->count * sizeof(esdm__pack_name *));
    e->ends = calloc(e->count, sizeof *e->ends);
    e->pack_of = malloc(e->count * sizeof *e->pack_of);
    if (e->values == NULL || e->packs == NULL || e->ends == NULL || e->pack_of == NULL ||
        !number_packs(e))
        return false;
    esdm__buffer_put_varint(&e->body, e->npacks);
    for (uint32_t i = 0; i < e->npacks; i++) {
        put_text(&e->body, e->packs[i]->target);
        put_text(&e->body, e->packs[i]->pack);
    }
    put_boxes(e);
    put_columns(e, absolute);
    if (has_strides(e))
        put_strides(e);
    put_inline_data(e);
    return !e->body.failed;
}

static void
put_header(esdm__buffer *out, const encoder *e, uint16_t flags)
{
    uint16_t version = has_places(e) ? 3 : has_strides(e) ? 2 : 1;
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
    uint16_t flags = absolute ? FLAG_ABSOLUTE : 0;
    flags |= has_places(e) && has_strides(e) ? FLAG_STRIDED : 0;
    put_header(out, e, flags);
    uint8_t *to = esdm__buffer_reserve(out, e->body.bytes);
    if (to == NULL)
        return false;
    int packed = 0;
    if (e->body.bytes > 64) /* of less, nothing is to be gained */
        packed = LZ4_compress_default((const char *) e->body.data, (char *) to, (int) e->body.bytes,
                                      (int) e->body.bytes - 1);
    if (packed > 0) {
        out->bytes += (size_t) packed;
        flags |= FLAG_LZ4;
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
