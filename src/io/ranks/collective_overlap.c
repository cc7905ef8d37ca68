/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Rank 0 looks for records of other programs that the pages of all ranks would overwrite. */
#include "base/error.h"
#include "base/page_copies.h"
#include "io/ranks/collective.h"

esdm_status
esdm__page_source_next_marked(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    esdm__marked_source *marked = user;
    const esdm_meta_new_page *page = NULL;
    esdm_status status = esdm__page_source_next(marked->source, &page, err);
    *ret_page = NULL;
    if (status != ESDM_OK || page == NULL)
        return status;
    marked->page = *page;
    (void) esdm__overlap_mark(marked->container, &marked->page, 1);
    *ret_page = &marked->page;
    return ESDM_OK;
}

bool
esdm__collective_must_look(esdm__commit_work *w)
{
    if (w->io->record == 0 || w->io->session->site->last_wins)
        return false;
    w->seen = esdm__opened_alone_until(w->io);
    return w->seen == 0;
}

esdm_status
esdm__collective_look(esdm__commit_work *w, esdm__marked_source *marked, esdm_error *err)
{
    esdm__page_copies copies = {0};
    esdm_status status = ESDM_OK;
    bool more = true;
    while (status == ESDM_OK && more) {
        const esdm_meta_new_page *page = NULL;
        status = esdm__page_source_next_marked(marked, &page, err);
        more = status == ESDM_OK && page != NULL;
        if (more && page->apart && !esdm__page_copies_add(&copies, page))
            status = esdm__error_nomem(err, copies.count * sizeof *page, "the pages of a commit");
    }
    if (status == ESDM_OK)
        status = esdm__commit_check_overlap(w, copies.pages, copies.count, err);
    esdm__page_copies_clear(&copies);
    return status;
}
