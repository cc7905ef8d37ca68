/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Walks the committed fragments of a dataset without keeping their pages. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/visit.h"

static esdm_status
visit_page(const esdm_dataset *dataset, const esdm_meta_page *entry, esdm__fragment_fn visit,
           void *user, bool *ret_go_on, esdm_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    esdm__page *page = NULL;
    esdm_status status =
        esdm__container_load_page(dataset->group->container, entry->page, &data, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__page_decode(entry, data, bytes, &page, err);
    free(data);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "index page %" PRIu64, entry->page);
    *ret_go_on = esdm__page_visit(page, visit, user);
    esdm__page_unref(page);
    return ESDM_OK;
}

esdm_status
esdm__io_visit_fragments(esdm_dataset *dataset, esdm__fragment_fn visit, void *user,
                         esdm_error *err)
{
    uint64_t record;
    uint64_t snapshot;
    esdm__container_position(dataset->group->container, &record, &snapshot);
    if (record == 0)
        return ESDM_OK;
    esdm__page_list directory = {0};
    esdm_status status = esdm__dataset_list_pages(dataset, &directory, err);
    bool go_on = true;
    for (size_t i = 0; i < directory.count && status == ESDM_OK && go_on; i++) {
        const esdm_meta_page entry = esdm__page_list_at(&directory, i);
        status = visit_page(dataset, &entry, visit, user, &go_on, err);
    }
    esdm__page_list_clear(&directory);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}
