/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Pages that come one by one. A transaction that the server cut off is sent again, which a
 *  stream cannot be: so they are all collected before it begins. */

#include "base/error.h"
#include "postgres.h"

esdm_status
postgres__stream_collect(const esdm_meta_commit *commit, esdm__page_copies *ret_pages,
                         esdm_error *err)
{
    bool room = true;
    esdm_status status = ESDM_OK;
    ret_pages->borrowed = commit->npages;
    for (size_t i = 0; i < commit->npages && room; i++)
        room = esdm__page_copies_add(ret_pages, &commit->pages[i]);
    while (status == ESDM_OK && room) {
        const esdm_meta_new_page *page = NULL;
        status = commit->next_page(commit->next_page_user, &page, err);
        if (status == ESDM_OK && page == NULL)
            return ESDM_OK;
        if (status == ESDM_OK)
            room = esdm__page_copies_add(ret_pages, page);
    }
    return room ? status
                : esdm__error_nomem(err, ret_pages->count * sizeof *ret_pages->pages,
                                    "the pages of a commit");
}
