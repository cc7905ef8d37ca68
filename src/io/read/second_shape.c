/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/second_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hidden_names.h"
#include "io/container/container_io.h"

/* What a request costs beside its bytes, in bytes: about what a disk reads in the time, and much
 * less than a server sends in it. */
#define REQUEST_BYTES 65536.0
/* What is decoded, or read, at once. */
#define CODED_BYTES 65536.0
#define RAW_BYTES   4096.0
/* Reads that cost no more than this much of what they must are not worth another look. */
#define WORTH 2.0
/* The second shape must cost at most so much of the first. */
#define BETTER 0.8
/* Who reads less accurately may read so little of the first one. The second one is read as it is
 * stored. */
#define COARSE_SHARE 0.125
/* Each rank looks for the second shape by itself: where the metadata are on a server, more ranks
 * would be too many connections at once. */
#define CONNECTING_RANKS 64

uint64_t
esdm__shapes_number(const char *hint)
{
    return hint != NULL ? strtoull(hint, NULL, 10) : 0;
}

esdm_dataset *
esdm__shapes_find(const esdm_container *shapes, uint32_t id)
{
    for (size_t i = 0; i < shapes->datasets.count; i++) {
        esdm_dataset *one = shapes->datasets.items[i];
        if (esdm__shapes_number(esdm_dataset_hint(one, ESDM__HINT_SHAPE_OF)) == id)
            return one;
    }
    return NULL;
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Bytes of a fragment that are read, or decoded, for a part of it: whole blocks, of each run of
 * neighbours. */
static double
cost_of_piece(const esdm__piece *piece, double element_bytes)
{
    const esdm__fragment *f = piece->fragment;
    double block = f->codec_ids[0] != 0 ? CODED_BYTES : RAW_BYTES;
    double all = (double) f->raw_bytes;
    double run = element_bytes;
    double runs = 1;
    bool whole = !f->strided;
    if (f->kind == ESDM__KIND_CONSTANT || f->inline_data != NULL)
        return 0;
    for (uint32_t d = f->box.rank; d-- > 0;) {
        double n = (double) piece->part.n[d];
        if (whole)
            run *= n;
        else
            runs *= n;
        whole = whole && piece->part.n[d] == f->box.n[d];
    }
    double bytes = runs * (run + block); /* a run begins and ends within blocks */
    return REQUEST_BYTES + (bytes < all ? bytes : all);
}

/* @param share of the bytes that are read of fragments. */
static double
cost_of(const esdm__plan *plan, double element_bytes, double share)
{
    double cost = 0;
    for (size_t i = 0; i < plan->npieces; i++) {
        double one = cost_of_piece(&plan->pieces[i], element_bytes);
        cost += one > 0 ? REQUEST_BYTES + share * (one - REQUEST_BYTES) : 0;
    }
    return cost;
}

/* ---- the second container -------------------------------------------------------------------- */

esdm_status
esdm__shapes_name(const char *name, char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err)
{
    if (strlen(name) + sizeof ESDM__SHAPES_MARK > ESDM_CONTAINER_NAME_MAX + 1)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%.300s' is too long a name: there is no room for '%s' behind it",
                               name, ESDM__SHAPES_MARK);
    (void) snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%s" ESDM__SHAPES_MARK, name);
    return ESDM_OK;
}

esdm_status
esdm__shapes_open(esdm_session *session, const char *shapes, esdm_open_mode mode,
                  esdm_container **ret, esdm_error *err)
{
    *ret = NULL;
    esdm_status status = esdm__io_open(session, shapes, mode, ESDM_SNAPSHOT_LATEST, ret, err);
    if (status != ESDM_OK || esdm_container_hint(*ret, ESDM__HINT_SHAPES_OF) != NULL)
        return status;
    esdm__container_drop(*ret);
    *ret = NULL;
    return esdm__error_set(err, ESDM_EEXIST,
                           "container '%s' is none of second shapes, but has the name of one",
                           shapes);
}

static esdm_container *
open_shapes(const esdm_container *container)
{
    const esdm__container_io *io = esdm__io_of(container);
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_container *shapes = NULL;
    esdm_error ignored;
    bool crowded =
        io->comm != NULL && io->session->meta->connects && io->comm->size > CONNECTING_RANKS;
    if (io->record == 0 || crowded || container->writable || esdm__name_is_own(container->name) ||
        esdm__name_is_shapes(container->name, NULL))
        return NULL;
    if (esdm__shapes_name(container->name, name, &ignored) != ESDM_OK ||
        esdm__shapes_open(io->session, name, ESDM_OPEN_READ, &shapes, &ignored) != ESDM_OK)
        return NULL;
    if (strcmp(esdm_container_hint(shapes, ESDM__HINT_SHAPES_OF), io->uuid) == 0)
        return shapes;
    esdm__container_drop(shapes);
    return NULL;
}

static const esdm_container *
shapes_of(const esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    (void) pthread_mutex_lock(&io->shapes_lock);
    if (!io->shapes_sought)
        io->shapes = open_shapes(container);
    io->shapes_sought = true;
    const esdm_container *shapes = io->shapes;
    (void) pthread_mutex_unlock(&io->shapes_lock);
    return shapes;
}

/* ---- whether it holds ------------------------------------------------------------------------ */

/* Whether both datasets are alike, and show the same where nothing was written. */
static bool
is_alike(const esdm_dataset *a, const esdm_dataset *b)
{
    size_t bytes = esdm_type_size(a->type);
    return bytes > 0 && a->type != ESDM_TYPE_STRING && a->type == b->type && a->rank == b->rank &&
           memcmp(esdm_dataset_fill(a, NULL), esdm_dataset_fill(b, NULL), bytes) == 0;
}

/* Where what the second shape lacks begins along each axis. */
typedef struct lack {
    bool any;
    uint64_t first[ESDM_MAX_RANK]; /* of fragments that are younger, or elsewhere */
    uint32_t past;                 /* axes along which the box goes past its end */
    uint32_t axis;                 /* the last of these */
    uint64_t end;                  /* the length there */
} lack;

static void
find_lack(const esdm__plan *plan, const esdm__box *hull, const esdm_dataset *second, uint64_t until,
          lack *ret)
{
    *ret = (lack){.any = false};
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__piece *piece = &plan->pieces[i];
        if (piece->fragment->sequence >> 32 <= until &&
            !esdm__kind_is_elsewhere(piece->fragment->kind))
            continue;
        for (uint32_t d = 0; d < hull->rank; d++) {
            if (!ret->any || piece->part.lo[d] < ret->first[d])
                ret->first[d] = piece->part.lo[d];
        }
        ret->any = true;
    }
    for (uint32_t d = 0; d < hull->rank; d++) {
        uint64_t length = esdm_dimension_length(second->dimensions[d]);
        if (hull->lo[d] + hull->n[d] <= length)
            continue;
        ret->past++;
        ret->axis = d;
        ret->end = length;
    }
}

/* Cuts off what the second shape lacks, where that is possible with one cut. */
static void
cut(const esdm_dataspace *space, const lack *l, esdm__second_shape *ret)
{
    uint32_t axis = 0;
    uint64_t end = l->end;
    if (l->past > 1)
        return;
    if (l->past == 1)
        axis = l->axis;
    else
        while (axis < space->rank && l->first[axis] <= space->offset[axis])
            axis++;
    if (axis == space->rank)
        return;
    if (l->any && (l->past == 0 || l->first[axis] < end))
        end = l->first[axis];
    if (end <= space->offset[axis])
        return;
    uint64_t step = space->has_stride ? space->stride[axis] : 1;
    uint64_t low = (end - space->offset[axis] + step - 1) / step;
    if (low >= space->size[axis])
        return;
    ret->axis = axis;
    ret->low = low;
}

/* Whether the second shape costs less. */
static bool
is_better(esdm_dataset *second, const esdm__box *hull, double element_bytes, double cost)
{
    esdm__dataset_io *io = NULL;
    esdm__plan plan = {0};
    esdm_error ignored;
    bool too_many = false;
    if (esdm__dataset_io_get(second, &io, &ignored) != ESDM_OK)
        return false;
    esdm_status status = esdm__dataset_load_directory(second, io, &ignored);
    if (status == ESDM_OK)
        status = esdm__read_plan(second, io, hull, &plan, &too_many, &ignored);
    bool better =
        status == ESDM_OK && !too_many && cost_of(&plan, element_bytes, 1) < BETTER * cost;
    esdm__plan_clear(&plan);
    esdm__dataset_io_put(second);
    return better;
}

void
esdm__second_shape_choose(const esdm__transfer *t, const esdm__box *hull, const esdm__plan *plan,
                          esdm__second_shape *ret)
{
    const esdm_container *container = t->dataset->group->container;
    uint64_t record, snapshot;
    lack lacking;
    *ret = (esdm__second_shape){.dataset = NULL};
    if (!esdm__site_has_shapes(container->session->site))
        return;
    double element_bytes = (double) t->elements->bytes;
    double cost = cost_of(plan, element_bytes, container->coarse ? COARSE_SHARE : 1);
    double least = (double) esdm_dataspace_elements(t->space) * element_bytes + REQUEST_BYTES;
    if (cost <= WORTH * least)
        return;
    atomic_store(&t->io->second, false);
    const esdm_container *shapes = shapes_of(container);
    esdm_dataset *second = shapes != NULL ? esdm__shapes_find(shapes, t->dataset->id) : NULL;
    if (second == NULL || !is_alike(t->dataset, second))
        return;
    uint64_t until = esdm__shapes_number(esdm_dataset_hint(second, ESDM__HINT_SHAPE_UNTIL));
    uint64_t since = esdm__shapes_number(esdm_container_hint(shapes, ESDM__HINT_SHAPES_SINCE));
    esdm__container_position(container, &record, &snapshot);
    if (until == 0 || snapshot < since)
        return;
    find_lack(plan, hull, second, until, &lacking);
    if (lacking.any || lacking.past > 0) {
        cut(t->space, &lacking, ret);
        return;
    }
    if (!is_better(second, hull, element_bytes, cost))
        return;
    ret->dataset = second;
    atomic_store(&t->io->second, true);
}
