/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_PAGE_PARTS_H
#define ESDM_LAYOUT_PAGE_PARTS_H

/** @file Inside of the stored form of a page: for page.c, page_encode.c and the optional parts. */

#include "layout/page.h"
#include "layout/source.h"

#define ESDM__PAGE_FLAG_ABSOLUTE   1u
#define ESDM__PAGE_FLAG_LZ4        2u
#define ESDM__PAGE_FLAG_STRIDED    4u
#define ESDM__PAGE_FLAG_KINDS      8u
#define ESDM__PAGE_FLAG_STATISTICS 16u
#define ESDM__PAGE_FLAG_OUTLINES   32u

/* Encoding */

/** What is being encoded: records order[0 … count-1]. */
typedef struct esdm__page_encoder {
    const esdm__records *records;
    const uint32_t *order;
    uint32_t count;
    uint64_t *values;              /* owned; one column */
    const esdm__pack_name **packs; /* owned; in order of their first record */
    uint32_t npacks;
    uint32_t *pack_of;            /* owned; per record: 0 or index of its pack + 1 */
    const esdm__source **sources; /* owned; in order of their first record; NULL: no kinds */
    uint32_t nsources;
    uint32_t *source_of; /* owned; per record: as pack_of; behind all of them those of decodings */
    uint64_t *ends;      /* owned; per pack, then per source: where its last record ends */
    esdm__buffer body;
} esdm__page_encoder;

static inline const esdm__record *
esdm__page_item(const esdm__page_encoder *e, uint32_t i)
{
    return &e->records->items[e->order[i]];
}

/** Numbers pointers by their first appearance, so that the bytes do not depend on addresses.
 *  @param ret_number 0 for NULL, else index in ret_distinct + 1. false when out of memory. */
bool esdm__page_number(const void *const *pointers, uint32_t count, uint32_t *ret_number,
                       const void **ret_distinct, uint32_t *ret_count);
/** Puts the numbers in e->values as a column. */
void esdm__page_put_column(esdm__page_encoder *e);

/** Whether a record is of another kind than ESDM__KIND_STORED. */
bool esdm__page_has_kinds(const esdm__page_encoder *e);
/** Numbers the descriptions. false when out of memory. */
bool esdm__page_number_sources(esdm__page_encoder *e);
void esdm__page_put_kinds(esdm__page_encoder *e);
bool esdm__page_has_statistics(const esdm__page_encoder *e);
void esdm__page_put_statistics(esdm__page_encoder *e);

/* Decoding */

typedef struct esdm__page_decoder {
    const esdm_meta_page *entry;
    esdm__cursor body;
    esdm__page *page;
    uint64_t *values; /* one column */
    bool places;      /* packs may have several */
    uint16_t flags;   /* with ESDM__PAGE_FLAG_STRIDED where version 2 says so */
} esdm__page_decoder;

esdm_status esdm__page_corrupt(const esdm_meta_page *entry, esdm_error *err, const char *what);
esdm_status esdm__page_take_kinds(esdm__page_decoder *d, esdm_error *err);
esdm_status esdm__page_take_statistics(esdm__page_decoder *d, esdm_error *err);

#endif
