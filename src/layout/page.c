/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <lz4.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/error.h"
#include "layout/page_parts.h"
#include "layout/places.h"

/* Pages in memory, and decoding; the format is described in page.h. */

#define LZ4_RATIO_MAX 255u

#define VERSION_AT      16u
#define FLAGS_AT        18u
#define NEWEST_VERSION  5u
#define VERSION_STRIDED 2u
#define VERSION_PLACES  3u
#define VERSION_KINDS   4u
#define VERSION_OUTLINE 5u

typedef esdm__page_decoder decoder;

void
esdm__page_forget_names(esdm__page *page)
{
    free(page->packs);
    free(page->names);
    free(page->sources);
    free(page->source_data);
    page->packs = NULL;
    page->names = NULL;
    page->sources = NULL;
    page->source_data = NULL;
    page->npacks = 0;
    page->nsources = 0;
}

void
esdm__page_unref(esdm__page *page)
{
    if (page == NULL || atomic_fetch_sub_explicit(&page->references, 1, memory_order_acq_rel) != 1)
        return;
    esdm__records_clear(&page->records);
    esdm__rtree_clear(&page->tree);
    esdm__page_forget_names(page);
    free(page);
}

bool
esdm__page_visit(const esdm__page *page, esdm__fragment_fn visit, void *user)
{
    for (uint32_t i = 0; i < page->records.count; i++) {
        esdm__fragment fragment;
        esdm__records_fragment(&page->records, i, &fragment);
        if (!visit(&fragment, user))
            return false;
    }
    return true;
}

static void
count_memory(esdm__page *page)
{
    page->memory_bytes = sizeof *page + esdm__records_memory_bytes(&page->records) +
                         esdm__rtree_memory_bytes(&page->tree) +
                         page->npacks * (sizeof *page->packs + 64) +
                         page->nsources * (sizeof *page->sources + 128);
}

esdm__page *
esdm__page_of_records(const esdm_meta_page *entry, const esdm__records *records,
                      const uint32_t *order, const void *data)
{
    esdm__page *page = calloc(1, sizeof *page);
    if (page == NULL)
        return NULL;
    esdm__records *r = &page->records;
    atomic_init(&page->references, 1);
    esdm__records_init(r, records->rank);
    if (!esdm__records_gather(r, records, order, entry->records) ||
        !esdm__rtree_pack(&page->tree, r->rank, r->bounds, r->count, NULL)) {
        esdm__page_unref(page);
        return NULL;
    }
    for (uint32_t i = 0; i < r->count; i++)
        r->items[i].sequence = (r->items[i].sequence & UINT32_MAX) | entry->added << 32;
    count_memory(page);
    memcpy(&page->checksum, (const uint8_t *) data + 8, sizeof page->checksum);
    return page;
}

esdm_status
esdm__page_corrupt(const esdm_meta_page *entry, esdm_error *err, const char *what)
{
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "index page %llu of dataset %u is damaged: %s; its fragments cannot be "
                           "found",
                           (unsigned long long) entry->page, entry->dataset, what);
}

static esdm_status
corrupt(const esdm_meta_page *entry, esdm_error *err, const char *what)
{
    return esdm__page_corrupt(entry, err, what);
}

/* Header */

static uint32_t
u32_at(const uint8_t *data, size_t at)
{
    uint32_t value;
    memcpy(&value, data + at, sizeof value);
    return value;
}

static esdm_status
check_header(const esdm_meta_page *entry, const uint8_t *data, size_t bytes, esdm_error *err)
{
    if (bytes < ESDM__PAGE_HEADER_BYTES)
        return corrupt(entry, err, "too short");
    if (memcmp(data, "ESDMPAGE", 8) != 0)
        return corrupt(entry, err, "it does not begin with ESDMPAGE");
    uint64_t checksum;
    memcpy(&checksum, data + 8, sizeof checksum);
    if (checksum != esdm__checksum(data + 16, bytes - 16))
        return corrupt(entry, err, "its checksum is wrong");
    uint16_t version, flags;
    memcpy(&version, data + 16, sizeof version);
    memcpy(&flags, data + 18, sizeof flags);
    if (version > NEWEST_VERSION)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "index page %llu has format %u, this ESDM knows up to %u; use a "
                               "newer ESDM",
                               (unsigned long long) entry->page, version, NEWEST_VERSION);
    uint16_t known = ESDM__PAGE_FLAG_ABSOLUTE | ESDM__PAGE_FLAG_LZ4;
    known |= version >= VERSION_PLACES ? ESDM__PAGE_FLAG_STRIDED : 0;
    known |= version >= VERSION_KINDS ? ESDM__PAGE_FLAG_KINDS | ESDM__PAGE_FLAG_STATISTICS : 0;
    known |= version >= VERSION_OUTLINE ? ESDM__PAGE_FLAG_OUTLINES : 0;
    if (version == 0 || (flags & ~known) != 0)
        return corrupt(entry, err, "unknown version or flags");
    if (((flags & ESDM__PAGE_FLAG_ABSOLUTE) != 0) != entry->absolute)
        return corrupt(entry, err, "its kind of sequence numbers differs from the directory");
    if (u32_at(data, 20) != entry->rank || entry->rank > ESDM_MAX_RANK)
        return corrupt(entry, err, "its rank differs from the directory");
    if (u32_at(data, 24) != entry->records || entry->records == 0 ||
        entry->records > ESDM__PAGE_RECORDS)
        return corrupt(entry, err, "its number of records differs from the directory");
    return ESDM_OK;
}

/* Borrows the body, or decompresses it into *ret_owned. */
static esdm_status
open_body(const esdm_meta_page *entry, const uint8_t *data, size_t bytes, esdm__cursor *ret_body,
          uint8_t **ret_owned, esdm_error *err)
{
    const uint8_t *stored = data + ESDM__PAGE_HEADER_BYTES;
    size_t stored_bytes = bytes - ESDM__PAGE_HEADER_BYTES;
    size_t body_bytes = u32_at(data, 28);
    if ((data[18] & ESDM__PAGE_FLAG_LZ4) == 0) {
        if (body_bytes != stored_bytes)
            return corrupt(entry, err, "its length is wrong");
        esdm__cursor_init(ret_body, stored, stored_bytes);
        return ESDM_OK;
    }
    /* Before memory is taken: LZ4 cannot make so much of so few bytes. */
    if (body_bytes == 0 || body_bytes > ESDM__PAGE_BODY_MAX ||
        body_bytes / LZ4_RATIO_MAX > stored_bytes || stored_bytes > ESDM__PAGE_BODY_MAX)
        return corrupt(entry, err, "its length is wrong");
    uint8_t *body = malloc(body_bytes);
    if (body == NULL)
        return esdm__error_nomem(err, body_bytes, "an index page");
    int n = LZ4_decompress_safe((const char *) stored, (char *) body, (int) stored_bytes,
                                (int) body_bytes);
    if (n < 0 || (size_t) n != body_bytes) {
        free(body);
        return corrupt(entry, err, "it does not decompress");
    }
    esdm__cursor_init(ret_body, body, body_bytes);
    *ret_owned = body;
    return ESDM_OK;
}

/* Body */

/* Copies one text behind those before; NULL when it is damaged. */
static const char *
take_name(esdm__cursor *body, char **names)
{
    uint64_t length = esdm__cursor_varint(body);
    if (body->failed || length == 0 || length > ESDM__PAGE_NAME_MAX)
        return NULL;
    const uint8_t *from = esdm__cursor_take(body, (size_t) length);
    if (from == NULL || memchr(from, '\0', (size_t) length) != NULL)
        return NULL;
    char *name = *names;
    memcpy(name, from, (size_t) length);
    name[length] = '\0';
    *names += length + 1;
    return name;
}

static esdm_status
take_packs(decoder *d, esdm_error *err)
{
    uint64_t count = esdm__cursor_varint(&d->body);
    if (d->body.failed || count > d->entry->records)
        return corrupt(d->entry, err, "its number of packs is out of range");
    if (count == 0)
        return ESDM_OK;
    /* Each text takes a byte more than its length in the body as well: their sum fits. */
    size_t most = esdm__cursor_left(&d->body);
    size_t longest = (size_t) count * 2 * (ESDM__PAGE_NAME_MAX + 1);
    esdm__page *page = d->page;
    page->names = malloc((most < longest ? most : longest) + 1);
    page->packs = malloc((size_t) count * sizeof *page->packs);
    if (page->names == NULL || page->packs == NULL)
        return esdm__error_nomem(err, most, "an index page");
    char *names = page->names;
    for (uint32_t i = 0; i < count; i++) {
        page->packs[i].target = take_name(&d->body, &names);
        page->packs[i].pack = page->packs[i].target != NULL ? take_name(&d->body, &names) : NULL;
        if (page->packs[i].pack == NULL)
            return corrupt(d->entry, err, "the name of a pack is damaged");
        if (!d->places && esdm__places_are_special(page->packs[i].target))
            return corrupt(d->entry, err, "the name of a target is damaged");
    }
    page->npacks = (uint32_t) count;
    return ESDM_OK;
}

static esdm_status
take_boxes(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    uint32_t rank = r->rank;
    for (uint32_t dim = 0; dim < rank; dim++) {
        esdm__column_get(&d->body, d->values, r->count);
        for (uint32_t i = 0; i < r->count; i++)
            r->bounds[(size_t) i * 2 * rank + dim] = d->values[i];
        esdm__column_get(&d->body, d->values, r->count);
        for (uint32_t i = 0; i < r->count; i++) {
            uint64_t *bounds = r->bounds + (size_t) i * 2 * rank;
            if (d->values[i] == 0 ||
                __builtin_add_overflow(bounds[dim], d->values[i], &bounds[rank + dim]))
                return corrupt(d->entry, err, "a box is empty or too large");
        }
    }
    return ESDM_OK;
}

static esdm_status
take_sequences(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t sequence = d->values[i];
        if (!d->entry->absolute) {
            if (sequence > UINT32_MAX || d->entry->added > UINT32_MAX)
                return corrupt(d->entry, err, "a sequence number is out of range");
            sequence |= d->entry->added << 32;
        }
        if ((sequence & ESDM__SEQUENCE_PENDING) != 0)
            return corrupt(d->entry, err, "a sequence number is out of range");
        r->items[i].sequence = sequence;
    }
    return ESDM_OK;
}

static esdm_status
take_places(decoder *d, uint64_t *ends, esdm_error *err)
{
    esdm__page *page = d->page;
    esdm__records *r = &page->records;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > page->npacks)
            return corrupt(d->entry, err, "a record names a pack that is not there");
        r->items[i].pack = d->values[i] > 0 ? &page->packs[d->values[i] - 1] : NULL;
    }
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        esdm__record *item = &r->items[i];
        const esdm__source *source = r->elsewhere != NULL ? r->elsewhere[i].source : NULL;
        uint64_t *end = NULL;
        item->position = 0;
        if (item->pack != NULL && item->kind != ESDM__KIND_STORED)
            return corrupt(d->entry, err, "a record is in a pack and elsewhere");
        if (item->pack != NULL)
            end = &ends[item->pack - page->packs];
        else if (source != NULL)
            end = &ends[page->npacks + (source - page->sources)];
        if (end == NULL)
            continue;
        item->position = d->values[i] + *end;
        if (__builtin_add_overflow(item->position, item->stored_bytes, end))
            return corrupt(d->entry, err, "a position is out of range");
    }
    return ESDM_OK;
}

static bool
head_fits(const esdm__record *item, uint64_t head_bytes)
{
    if (item->pack != NULL)
        return head_bytes <= UINT32_MAX && head_bytes <= item->stored_bytes;
    if (item->kind == ESDM__KIND_STORED)
        return head_bytes == 0 && item->stored_bytes == item->raw_bytes;
    if (item->kind == ESDM__KIND_CONSTANT)
        return head_bytes == 0 && item->stored_bytes > 0 &&
               item->raw_bytes % item->stored_bytes == 0;
    return head_bytes <= UINT32_MAX;
}

static esdm_status
take_heads(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (!head_fits(&r->items[i], d->values[i]))
            return corrupt(d->entry, err, "the lengths of a record contradict each other");
        r->items[i].head_bytes = (uint32_t) d->values[i];
    }
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t ids = (uint32_t) d->values[i];
        if (d->values[i] > UINT32_MAX)
            return corrupt(d->entry, err, "codec ids are out of range");
        memcpy(r->items[i].codec_ids, &ids, sizeof ids);
    }
    return ESDM_OK;
}

/* Strides fit the box: its first and its last element belong to the fragment. */
static esdm_status
take_strides(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    uint32_t rank = r->rank;
    if (!esdm__records_need_strides(r))
        return esdm__error_nomem(err, (size_t) r->count * rank * sizeof *r->strides,
                                 "an index page");
    for (uint32_t dim = 0; dim < rank; dim++) {
        esdm__column_get(&d->body, d->values, r->count);
        for (uint32_t i = 0; i < r->count; i++) {
            const uint64_t *bounds = esdm__records_bounds(r, i);
            uint64_t last = bounds[rank + dim] - bounds[dim] - 1;
            uint64_t stride = d->values[i];
            if (stride == 0 || last % stride != 0 || (last == 0 && stride != 1))
                return corrupt(d->entry, err, "a stride does not fit its box");
            r->strides[(size_t) i * rank + dim] = stride;
        }
    }
    return ESDM_OK;
}

static esdm_status
take_lengths(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    uint64_t raw = 0;
    uint64_t stored = 0;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        raw += r->items[i].raw_bytes = d->values[i];
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        r->items[i].stored_bytes = d->values[i];
        stored += esdm__record_held_bytes(&r->items[i]);
    }
    if (raw != d->entry->raw_bytes || stored != d->entry->stored_bytes)
        return corrupt(d->entry, err, "its sums of bytes differ from the directory");
    return ESDM_OK;
}

static esdm_status
take_outlines(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > ESDM__PAGE_OUTLINE_MAX || (d->values[i] > 0 && r->items[i].pack == NULL))
            return corrupt(d->entry, err, "an outline is too long, or of a record in no pack");
        r->items[i].outline_bytes = (uint16_t) d->values[i];
    }
    return ESDM_OK;
}

static esdm_status
take_inline_data(decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    uint64_t left = esdm__cursor_left(&d->body);
    uint64_t used = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        esdm__record *item = &r->items[i];
        uint64_t bytes = esdm__record_inline_bytes(item);
        if (bytes > left - used)
            return corrupt(d->entry, err, "its inline data is cut off");
        if (bytes > 0) /* less than ESDM__PAGE_BODY_MAX */
            used += esdm__record_place_inline(item, (size_t) used);
    }
    if (used != left)
        return corrupt(d->entry, err, "there are bytes behind its end");
    if (!esdm__records_reserve(r, 0, (size_t) used))
        return esdm__error_nomem(err, (size_t) used, "inline data of an index page");
    if (used > 0)
        memcpy(r->inline_data, esdm__cursor_take(&d->body, (size_t) used), (size_t) used);
    r->inline_bytes = (size_t) used;
    return ESDM_OK;
}

static esdm_status
take_columns(decoder *d, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    if ((d->flags & ESDM__PAGE_FLAG_KINDS) != 0)
        st = esdm__page_take_kinds(d, err);
    if (st != ESDM_OK)
        return st;
    size_t nends = (size_t) d->page->npacks + d->page->nsources + 1;
    uint64_t *ends = calloc(nends, sizeof *ends);
    if (ends == NULL)
        return esdm__error_nomem(err, nends * sizeof *ends, "an index page");
    st = take_boxes(d, err);
    if (st == ESDM_OK)
        st = take_sequences(d, err);
    if (st == ESDM_OK)
        st = take_lengths(d, err);
    if (st == ESDM_OK)
        st = take_places(d, ends, err);
    if (st == ESDM_OK)
        st = take_heads(d, err);
    if (st == ESDM_OK && (d->flags & ESDM__PAGE_FLAG_STRIDED) != 0)
        st = take_strides(d, err);
    if (st == ESDM_OK && (d->flags & ESDM__PAGE_FLAG_STATISTICS) != 0)
        st = esdm__page_take_statistics(d, err);
    if (st == ESDM_OK && (d->flags & ESDM__PAGE_FLAG_OUTLINES) != 0)
        st = take_outlines(d, err);
    if (st == ESDM_OK && d->body.failed)
        st = corrupt(d->entry, err, "a column is damaged");
    if (st == ESDM_OK)
        st = take_inline_data(d, err);
    free(ends);
    return st;
}

/* The directory decides whether a page is looked at, so its box must be the hull of the records. */
static esdm_status
check_hull(const decoder *d, esdm_error *err)
{
    const esdm__rtree *tree = &d->page->tree;
    const uint64_t *hull = esdm__rtree_hull(tree, tree->levels - 1, 0);
    for (uint32_t dim = 0; dim < tree->rank; dim++) {
        if (d->entry->box == NULL || d->entry->box[dim] != hull[dim] ||
            d->entry->box[tree->rank + dim] != hull[tree->rank + dim] - hull[dim])
            return corrupt(d->entry, err, "its box differs from the directory");
    }
    return ESDM_OK;
}

static esdm_status
decode_body(decoder *d, esdm_error *err)
{
    esdm__page *page = d->page;
    esdm__records *r = &page->records;
    esdm_status st = take_packs(d, err);
    if (st != ESDM_OK)
        return st;
    if (!esdm__records_reserve(r, d->entry->records, 0))
        return esdm__error_nomem(err, d->entry->records * sizeof *r->items, "an index page");
    r->count = d->entry->records;
    memset(r->items, 0, r->count * sizeof *r->items);
    st = take_columns(d, err);
    if (st != ESDM_OK)
        return st;
    if (!esdm__rtree_pack(&page->tree, r->rank, r->bounds, r->count, NULL))
        return esdm__error_nomem(err, r->count * sizeof *r->bounds, "the tree of an index page");
    count_memory(page);
    return check_hull(d, err);
}

esdm_status
esdm__page_decode(const esdm_meta_page *entry, const void *data, size_t bytes,
                  esdm__page **ret_page, esdm_error *err)
{
    esdm_status st = check_header(entry, data, bytes, err);
    if (st != ESDM_OK)
        return st;
    uint16_t version = ((const uint8_t *) data)[VERSION_AT];
    decoder d = {.entry = entry, .places = version >= VERSION_PLACES};
    d.flags = ((const uint8_t *) data)[FLAGS_AT];
    d.flags |= version == VERSION_STRIDED ? ESDM__PAGE_FLAG_STRIDED : 0;
    uint8_t *owned = NULL;
    st = open_body(entry, data, bytes, &d.body, &owned, err);
    if (st != ESDM_OK)
        return st;
    d.page = calloc(1, sizeof *d.page);
    d.values = malloc(entry->records * sizeof *d.values);
    if (d.page != NULL) {
        atomic_init(&d.page->references, 1);
        esdm__records_init(&d.page->records, entry->rank);
    }
    if (d.page != NULL && d.values != NULL)
        st = decode_body(&d, err);
    else
        st = esdm__error_nomem(err, sizeof *d.page, "an index page");
    free(d.values);
    free(owned);
    if (st == ESDM_OK) {
        memcpy(&d.page->checksum, (const uint8_t *) data + 8, sizeof d.page->checksum);
        *ret_page = d.page;
    } else {
        esdm__page_unref(d.page);
    }
    return st;
}
