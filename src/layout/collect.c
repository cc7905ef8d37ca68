/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Small records of many writers, gathered until they fill an index page. */

#include <stdlib.h>

#include "base/error.h"
#include "layout/index_private.h"

/* Pages of at least this size are not worth another encoding. */
#define PASS_RECORDS (ESDM__PAGE_RECORDS / 4u)
#define PASS_BYTES   (256u << 10)
#define FULL_INLINE  (ESDM__PAGE_INLINE_MAX / 2u)

struct esdm__collector {
    esdm__packs *packs; /* the names that the records point to */
    esdm__records records;
};

esdm__collector *
esdm__collector_new(uint32_t rank)
{
    esdm__collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return NULL;
    esdm__records_init(&collector->records, rank);
    collector->packs = esdm__packs_new();
    if (collector->packs == NULL) {
        free(collector);
        return NULL;
    }
    return collector;
}

void
esdm__collector_free(esdm__collector *collector)
{
    if (collector == NULL)
        return;
    esdm__records_clear(&collector->records);
    esdm__packs_unref(collector->packs);
    free(collector);
}

bool
esdm__collector_passes(const esdm_meta_new_page *page)
{
    return page->records >= PASS_RECORDS || page->bytes >= PASS_BYTES;
}

esdm_status
esdm__collector_add(esdm__collector *collector, const esdm_meta_new_page *page, esdm_error *err)
{
    const esdm_meta_page entry = esdm__page_entry(page);
    esdm__page *decoded = NULL;
    if (page->rank != collector->records.rank || page->absolute)
        return esdm__error_set(err, ESDM_EINVAL, "a page of another kind cannot be collected");
    esdm_status status = esdm__page_decode(&entry, page->data, page->bytes, &decoded, err);
    if (status != ESDM_OK)
        return status;
    const esdm__records *from = &decoded->records;
    bool ok = esdm__records_reserve(&collector->records, from->count, from->inline_bytes);
    for (uint32_t i = 0; ok && i < from->count; i++)
        ok = esdm__records_copy(&collector->records, from, i, collector->packs);
    if (!ok)
        status = esdm__error_nomem(err, decoded->memory_bytes, "the index pages of a commit");
    esdm__page_unref(decoded);
    return status;
}

bool
esdm__collector_is_full(const esdm__collector *collector)
{
    return collector->records.count >= ESDM__PAGE_RECORDS ||
           collector->records.inline_bytes >= FULL_INLINE;
}

bool
esdm__collector_is_empty(const esdm__collector *collector)
{
    return collector->records.count == 0;
}

esdm_status
esdm__collector_take(esdm__collector *collector, esdm__page_set *ret_set, esdm_error *err)
{
    esdm__page_set set = {0};
    esdm_status status = esdm__pages_encode(&set, &collector->records, 0, false, err);
    if (status != ESDM_OK) {
        esdm__page_set_clear(&set);
        return status;
    }
    esdm__records_clear(&collector->records);
    *ret_set = set;
    return ESDM_OK;
}
