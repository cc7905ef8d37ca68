/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Chunks that a dataset would have if it was cut for those who read it, as the site knows.
 */

#include <string.h>

#include "io/session/readers.h"
#include "io/session/session.h"
#include "layout/fragmenter.h"
#include "upkeep/boxes.h"
#include "upkeep/upkeep.h"

esdm_status
esdm__upkeep_wish(esdm_dataset *dataset, uint64_t *ret_chunk, char *ret_why, size_t room,
                  bool *ret_wanted, esdm_error *err)
{
    const esdm_session *session = dataset->group->container->session;
    esdm__boxes all;
    esdm__cut cut = ESDM__CUT_CONTIGUOUS;
    bool any = false;
    *ret_wanted = false;
    if (dataset->rank < 2)
        return ESDM_OK;
    esdm_status status = esdm__boxes_begin(dataset, &all, &any, err);
    if (status != ESDM_OK || !any || esdm__typeref_is_variable(all.type) ||
        esdm__boxes_are_rounded(dataset) ||
        !esdm__readers_want(session->readers, dataset, &cut, ret_why, room))
        return status;
    const esdm__layout layout = {
        .rank = dataset->rank,
        .element_bytes = all.each,
        .cut = cut,
        .preferred_bytes = session->fragment_bytes,
    };
    esdm__box box = {.rank = dataset->rank};
    esdm__cutter cutter;
    memcpy(box.n, all.length, sizeof box.n);
    esdm__cutter_init(&cutter, &layout, &box);
    for (uint32_t d = 0; d < dataset->rank; d++)
        ret_chunk[d] = cutter.cell[d] < all.length[d] ? cutter.cell[d] : all.length[d];
    *ret_wanted =
        all.chunk == NULL || memcmp(all.chunk, ret_chunk, dataset->rank * sizeof *ret_chunk) != 0;
    return ESDM_OK;
}
