/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_RECORDS_H
#define ESDM_LAYOUT_RECORDS_H

/**
 * @file
 * Fragment records in memory, compact: 56 bytes and 16 for each dimension, and 40 more
 * with statistics. Used for pages and for
 * pending fragments. One thread at a time while growing.
 */

#include "layout/bounds.h"
#include "layout/fragment.h"
#include "layout/packs.h"

typedef struct esdm__record {
    uint64_t sequence;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t position;           /* inline: of its bytes in inline_data */
    const esdm__pack_name *pack; /* NULL: in no pack */
    uint32_t head_bytes;
    uint32_t outline_at; /* of its outline in inline_data */
    uint8_t codec_ids[4];
    uint16_t outline_bytes; /* 0: it has none */
    uint8_t kind;           /* esdm__kind */
} esdm__record;

typedef struct esdm__records {
    uint32_t rank;
    uint32_t count;
    uint32_t capacity;
    uint64_t *bounds;             /* owned; layout/bounds.h; not NULL once something was reserved */
    uint64_t *strides;            /* owned; `rank` a record, 1 where dense; NULL: none is strided */
    esdm__record *items;          /* owned */
    esdm__elsewhere *elsewhere;   /* owned; one a record; NULL: none lies elsewhere */
    esdm__statistics *statistics; /* owned; one a record; NULL: none are known */
    uint8_t *inline_data;         /* owned */
    size_t inline_bytes;
    size_t inline_capacity;
} esdm__records;

void esdm__records_init(esdm__records *records, uint32_t rank);
void esdm__records_clear(esdm__records *records); /* keeps the rank */
/** Room for more records and inline bytes; false when out of memory. */
bool esdm__records_reserve(esdm__records *records, uint32_t more, size_t more_inline);
/** Copies a record and its inline data (NULL unless it is in the page), or its outline (NULL unless
 *  it has one); false when out of memory.
 *  @param stride `rank` numbers, or NULL when it is dense. */
bool esdm__records_add(esdm__records *records, const uint64_t *bounds, const uint64_t *stride,
                       const esdm__record *item, const uint8_t *inline_data);
/** Gives a record what few records have; false when out of memory. */
bool esdm__records_set_elsewhere(esdm__records *records, uint32_t index,
                                 const esdm__elsewhere *elsewhere);
bool esdm__records_set_statistics(esdm__records *records, uint32_t index,
                                  const esdm__statistics *statistics);
/** Gives a record in a pack another outline. bytes 0: none. False: it has none, as memory or room
 * in its page is wanting. */
bool esdm__records_set_outline(esdm__records *records, uint32_t index, const uint8_t *outline,
                               uint32_t bytes);
/** Copies record `index` of `from`, with all that it has, behind the others; false when out of
 *  memory. @param names interns what it points to; NULL: as it is. */
bool esdm__records_copy(esdm__records *records, const esdm__records *from, uint32_t index,
                        esdm__packs *names);
/** Fills empty records with from[order[0 … count-1]], all that they have; false when out of memory:
 *  they are to be cleared then. */
bool esdm__records_gather(esdm__records *records, const esdm__records *from, const uint32_t *order,
                          uint32_t count);
/** Moves a record to the place of an earlier one, which is given up. */
void esdm__records_move(esdm__records *records, uint32_t from, uint32_t to);
/** Copies all records of `from` behind the others; false when out of memory. */
bool esdm__records_append(esdm__records *records, const esdm__records *from);
/** Makes room for strides: all ones. false when out of memory. */
bool esdm__records_need_strides(esdm__records *records);
/** Makes room for what lies elsewhere, or for statistics: all 0. false when out of memory. */
bool esdm__records_need_elsewhere(esdm__records *records);
bool esdm__records_need_statistics(esdm__records *records);
size_t esdm__records_memory_bytes(const esdm__records *records);
/** Fills a fragment; its pointers are borrowed from the records. */
void esdm__records_fragment(const esdm__records *records, uint32_t index,
                            esdm__fragment *ret_fragment);

static inline const uint64_t *
esdm__records_bounds(const esdm__records *records, uint32_t index)
{
    return esdm__bounds_at(records->rank, records->bounds, index);
}

/** Bytes of a record in the inline data of its page: its values, or its outline. */
static inline uint64_t
esdm__record_inline_bytes(const esdm__record *item)
{
    if (item->pack != NULL)
        return item->outline_bytes;
    return esdm__kind_is_elsewhere(item->kind) ? 0 : item->stored_bytes;
}

/** Where they lie in it. */
static inline uint64_t
esdm__record_inline_at(const esdm__record *item)
{
    return item->pack != NULL ? item->outline_at : item->position;
}

/** They lie there now. An outline that would begin behind 4 GiB is given up. @return bytes */
static inline size_t
esdm__record_place_inline(esdm__record *item, size_t at)
{
    if (item->pack == NULL) {
        item->position = at;
    } else {
        item->outline_bytes = at <= UINT32_MAX ? item->outline_bytes : 0;
        item->outline_at = (uint32_t) at;
    }
    return (size_t) esdm__record_inline_bytes(item);
}

/** Stored bytes that the site holds for it: none of what lies elsewhere. */
static inline uint64_t
esdm__record_held_bytes(const esdm__record *item)
{
    return esdm__kind_is_elsewhere(item->kind) ? 0 : item->stored_bytes;
}

/** Strides of a strided record; NULL for a dense one. */
static inline const uint64_t *
esdm__records_stride(const esdm__records *records, uint32_t index)
{
    const uint64_t *stride =
        records->strides != NULL ? records->strides + (size_t) index * records->rank : NULL;
    for (uint32_t d = 0; stride != NULL && d < records->rank; d++) {
        if (stride[d] > 1)
            return stride;
    }
    return NULL;
}

#endif
