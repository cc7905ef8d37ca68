/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Values of boxes that are larger than the memory for them. */
#include "io/read/read.h"

esdm_status
esdm__read_in_parts(const esdm__parts *parts, const esdm__box *box, esdm_error *err)
{
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    if (esdm__box_elements(box) <= parts->most || axis == box->rank) {
        esdm_dataspace space;
        esdm_status status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
        if (status == ESDM_OK)
            status = esdm__io_read(parts->dataset, &space, parts->type, parts->buffer, NULL, err);
        return status == ESDM_OK ? parts->visit(parts->user, box, parts->buffer, err) : status;
    }
    esdm__box low = *box;
    esdm__box high = *box;
    low.n[axis] /= 2;
    high.lo[axis] += low.n[axis];
    high.n[axis] -= low.n[axis];
    esdm_status status = esdm__read_in_parts(parts, &low, err);
    return status == ESDM_OK ? esdm__read_in_parts(parts, &high, err) : status;
}
