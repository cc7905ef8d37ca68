/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Index pages are asked for one by one. Those of a small container, one for each of its variables,
 * lie beside each other: who asks for its first page, or for one after the other, is given them
 * from one reading. What was loaded ahead counts as long as nobody has committed anything, as pages
 * can be deleted; numbers are not used again.
 */

#include <stdlib.h>

#include "store.h"

void
sqlite__ahead_clear(sqlite__link *link)
{
    for (size_t i = 0; i < link->ahead.count; i++)
        free(link->ahead.pages[i].data);
    link->ahead.count = 0;
    link->ahead.state.is_known = false;
}

/* Gives the page away if it is there. */
static bool
take(sqlite__link *link, uint64_t page, void **ret_data, size_t *ret_bytes)
{
    sqlite__ahead *ahead = &link->ahead;
    size_t i = 0;
    while (i < ahead->count && (ahead->pages[i].page != page || ahead->pages[i].data == NULL))
        i++;
    if (i == ahead->count || !sqlite__state_is(link, &ahead->state))
        return false;
    *ret_data = ahead->pages[i].data;
    *ret_bytes = ahead->pages[i].bytes;
    ahead->pages[i].data = NULL;
    return true;
}

static void
keep(sqlite__ahead *ahead, uint64_t page, void *data, size_t bytes)
{
    ahead->pages[ahead->count].page = page;
    ahead->pages[ahead->count].data = data;
    ahead->pages[ahead->count++].bytes = bytes;
}

/* Keeps what comes from `first` on, as far as it is small, but for the page that is wanted.
 * Without errors: whoever asks for a page alone gets its own. */
static void
load_from(sqlite__link *link, uint64_t first, uint64_t wanted, void **ret_data, size_t *ret_bytes)
{
    sqlite3_stmt *rows = NULL;
    bool row = false;
    if (sqlite__prepare(link, SQLITE__PAGE_LOAD_NEXT, &rows, NULL, "ii", first,
                        (uint64_t) SQLITE__AHEAD_PAGES + 1) != ESDM_OK)
        return;
    while (sqlite__step(link, rows, &row, NULL) == ESDM_OK && row) {
        void *data = NULL;
        size_t bytes = 0;
        uint64_t page = sqlite__u64(rows, 0);
        if (page != wanted && (link->ahead.count == SQLITE__AHEAD_PAGES ||
                               sqlite__u64(rows, 1) > SQLITE__AHEAD_BYTES))
            break;
        if (sqlite__copy(rows, 2, &data, &bytes, NULL) != ESDM_OK || data == NULL)
            break;
        if (page == wanted) {
            *ret_data = data;
            *ret_bytes = bytes;
        } else {
            keep(&link->ahead, page, data, bytes);
        }
    }
    (void) sqlite3_reset(rows);
}

esdm_status
sqlite__ahead_load(sqlite__link *link, uint64_t page, void **ret_data, size_t *ret_bytes,
                   esdm_error *err)
{
    uint64_t before = link->ahead.last;
    uint64_t number = page & SQLITE__LOW_MAX;
    link->ahead.last = page;
    if (take(link, page, ret_data, ret_bytes))
        return ESDM_OK;
    *ret_data = NULL;
    bool first = before >> 32 != page >> 32 && number <= SQLITE__AHEAD_PAGES;
    if (link->shares_log && (first || page == before + 1)) {
        sqlite__ahead_clear(link);
        sqlite__newest_begin(link);
        load_from(link, first ? page - number : page, page, ret_data, ret_bytes);
        sqlite__state_keep(link, &link->ahead.state);
        if (*ret_data != NULL)
            return ESDM_OK;
    }
    return sqlite__value(link, SQLITE__PAGE_LOAD, ret_data, ret_bytes, err, "i", page);
}
