/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/boxes.h"

#include <string.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "model/accuracy.h"

#define TEXT_BYTES 64u

uint64_t
esdm__boxes_volume(const uint64_t *n, uint32_t rank)
{
    uint64_t product = 1;
    for (uint32_t d = 0; d < rank; d++)
        product = product > UINT64_MAX / (n[d] > 0 ? n[d] : 1) ? UINT64_MAX : product * n[d];
    return product;
}

/* Makes the step as large as the memory that is meant for it allows, in whole chunks or rows;
 * the fastest dimension grows first. */
static void
choose_step(esdm__boxes *s)
{
    uint32_t rank = s->dataset->rank;
    uint64_t most = ESDM__BOX_BYTES / s->each > 0 ? ESDM__BOX_BYTES / s->each : 1;
    for (uint32_t d = 0; d < rank; d++) {
        s->step[d] = s->chunk != NULL && s->chunk[d] < s->length[d] ? s->chunk[d] : 1;
        if (s->chunk != NULL && s->chunk[d] >= s->length[d])
            s->step[d] = s->length[d];
    }
    for (uint32_t d = 0; d < rank && esdm__boxes_volume(s->step, rank) > most; d++)
        s->step[d] = 1; /* a chunk is too large: rows of it */
    for (uint32_t d = rank; d-- > 0;) {
        uint64_t times = most / esdm__boxes_volume(s->step, rank);
        uint64_t whole = (s->length[d] + s->step[d] - 1) / s->step[d];
        s->step[d] = times >= whole ? s->length[d] : s->step[d] * (times > 0 ? times : 1);
        if (s->step[d] < s->length[d])
            return;
    }
}

static esdm_status
load_directory(esdm_dataset *dataset, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__dataset_load_directory(dataset, io, err);
    esdm__dataset_io_put(dataset);
    return status;
}

esdm_status
esdm__boxes_begin(esdm_dataset *dataset, esdm__boxes *ret, bool *ret_any, esdm_error *err)
{
    return esdm__boxes_begin_as(dataset, dataset->stated->chunk, ret, ret_any, err);
}

esdm_status
esdm__boxes_begin_as(esdm_dataset *dataset, const uint64_t *chunk, esdm__boxes *ret, bool *ret_any,
                     esdm_error *err)
{
    esdm__boxes *s = ret;
    *s = (esdm__boxes){.dataset = dataset, .chunk = chunk};
    *ret_any = true;
    for (uint32_t d = 0; d < dataset->rank; d++) {
        s->length[d] = esdm_dimension_length(dataset->dimensions[d]);
        *ret_any = *ret_any && s->length[d] > 0;
    }
    if (!*ret_any)
        return ESDM_OK;
    esdm_status status =
        esdm__type_resolve(dataset->group->container, dataset->type, &s->type, err);
    if (status == ESDM_OK)
        status = load_directory(dataset, err);
    if (status != ESDM_OK)
        return status;
    s->each = esdm__typeref_bytes(s->type) + (esdm__typeref_is_variable(s->type) ? TEXT_BYTES : 0);
    choose_step(s);
    return ESDM_OK;
}

esdm_status
esdm__boxes_plan(const esdm__boxes *boxes, const esdm__box *box, esdm__plan *ret_plan,
                 esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(boxes->dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__read_plan(boxes->dataset, io, box, ret_plan, NULL, err);
    esdm__dataset_io_put(boxes->dataset);
    return status;
}

void
esdm__boxes_first(const esdm__boxes *boxes, esdm__box *ret)
{
    *ret = (esdm__box){.rank = boxes->dataset->rank};
    memcpy(ret->n, boxes->step, sizeof ret->n);
}

bool
esdm__boxes_next(const esdm__boxes *s, esdm__box *box)
{
    uint32_t d = s->dataset->rank;
    if (d == 0)
        return false;
    while (d > 0) {
        d--;
        box->lo[d] += s->step[d];
        if (box->lo[d] < s->length[d])
            break;
        box->lo[d] = 0;
        if (d == 0)
            return false;
    }
    for (d = 0; d < s->dataset->rank; d++)
        box->n[d] = s->length[d] - box->lo[d] < s->step[d] ? s->length[d] - box->lo[d] : s->step[d];
    return true;
}

esdm_status
esdm__boxes_store(const esdm__boxes *s, const esdm__box *box, void *buffer, esdm_error *err)
{
    esdm_dataspace space;
    uint64_t count = esdm__box_elements(box);
    esdm_status status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
    if (status == ESDM_OK)
        status = esdm__io_read(s->dataset, &space, s->dataset->type, buffer, NULL, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__io_write(s->dataset, &space, s->dataset->type, buffer, NULL, err);
    if (esdm__typeref_is_variable(s->type))
        esdm__values_clear(s->type, count, buffer);
    return status;
}

bool
esdm__boxes_are_rounded(const esdm_dataset *dataset)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    return esdm_dataset_accuracy_in_force(dataset, &accuracy) &&
           (accuracy.stated & ~(uint32_t) ESDM_ACCURACY_MODE) != 0;
}
