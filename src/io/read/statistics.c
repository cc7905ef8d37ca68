/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/tally.h"
#include "io/container/behind.h"
#include "io/container/missing.h"
#include "io/read/read.h"

/* Values in memory at a time. */
#define READ_BYTES (UINT64_C(16) << 20)
/* Fragments in one plan, as in a read. */
#define PLAN_FRAGMENTS ((size_t) 32768)

typedef struct gatherer {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    esdm__missing missing;
    esdm__beyond beyond;
    bool read;
    void *buffer; /* of values that are read */
    esdm__box_statistics result;
} gatherer;

/* ---- values -------------------------------------------------------------------------------- */

static void
add(gatherer *g, const esdm__statistics *more)
{
    esdm__statistics_add(&g->result.values, more);
}

/* `n` times the same element. */
static void
add_equal(gatherer *g, const void *element, uint64_t n)
{
    esdm__tally tally = {.type = g->missing.type, .missing = &g->missing};
    uint64_t own = 0;
    memcpy(&own, element, esdm_type_size(g->missing.type));
    esdm__beyond_hide(&g->beyond, g->missing.type, &own, 1);
    esdm__tally_add(&tally, &own, 1);
    tally.statistics.valid *= n;
    tally.statistics.sum *= (double) n;
    add(g, &tally.statistics);
}

static esdm_status
add_part(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    gatherer *g = user;
    esdm__tally tally = {.type = g->missing.type, .missing = &g->missing};
    uint64_t elements = esdm__box_elements(part);
    (void) err;
    esdm__beyond_hide(&g->beyond, g->missing.type, g->buffer, (size_t) elements);
    esdm__tally_add(&tally, values, (size_t) elements);
    add(g, &tally.statistics);
    g->result.read_elements += elements;
    return ESDM_OK;
}

static esdm_status
read_values(gatherer *g, const esdm__box *box, esdm_error *err)
{
    uint64_t elements = esdm__box_elements(box);
    uint64_t most = READ_BYTES / g->io->elements.bytes;
    size_t bytes = (size_t) (elements < most ? elements : most) * g->io->elements.bytes;
    void *buffer = malloc(bytes);
    if (buffer == NULL)
        return esdm__error_nomem(err, bytes, "the statistics of a dataset");
    const esdm__parts parts = {g->dataset, g->dataset->type, most, buffer, add_part, g};
    g->buffer = buffer;
    esdm_status status = esdm__read_in_parts(&parts, box, err);
    free(buffer);
    return status;
}

/* ---- fragments ----------------------------------------------------------------------------- */

esdm__statistics
esdm__fragment_statistics(const esdm_dataset *dataset, const esdm__missing *missing,
                          const esdm__fragment *fragment)
{
    esdm__tally tally = {.type = missing->type, .missing = missing};
    uint64_t elements = esdm__fragment_elements(fragment);
    size_t size = esdm_type_size(dataset->type);
    esdm__statistics none = {0};
    bool in_page = fragment->pack == NULL && fragment->kind == ESDM__KIND_STORED;
    if (in_page && size > 0 && fragment->raw_bytes / size == elements)
        esdm__tally_add(&tally, fragment->inline_data, (size_t) elements);
    else if (fragment->statistics.class == missing->class &&
             fragment->statistics.rule == missing->rule)
        return fragment->statistics;
    return in_page ? tally.statistics : none;
}

static esdm__statistics
known(const gatherer *g, const esdm__fragment *fragment)
{
    return esdm__fragment_statistics(g->dataset, &g->missing, fragment);
}

/* A part of a dense fragment that nothing hides. */
static esdm_status
add_piece(gatherer *g, const esdm__piece *piece, esdm_error *err)
{
    const esdm__fragment *fragment = piece->fragment;
    if (fragment->kind == ESDM__KIND_CONSTANT && fragment->stored_bytes == g->io->elements.bytes) {
        add_equal(g, fragment->inline_data, esdm__box_elements(&piece->part));
        return ESDM_OK;
    }
    const esdm__statistics all = known(g, fragment);
    bool whole =
        esdm__box_equal(&piece->part, &fragment->box) && esdm__beyond_none(&g->beyond, &all);
    if (all.class != ESDM__CLASS_NONE && (whole || !g->read)) {
        g->result.exact = g->result.exact && whole;
        add(g, &all);
        return ESDM_OK;
    }
    if (g->read)
        return read_values(g, &piece->part, err);
    g->result.bounds = false;
    g->result.exact = false;
    return ESDM_OK;
}

/* What no fragment covers is the fill value, which is missing or not. */
static void
add_holes(gatherer *g, uint64_t elements)
{
    if (elements > 0)
        add_equal(g, esdm_dataset_fill(g->dataset, NULL), elements);
}

/* Strided fragments lie over the others: what is seen of those is not known then. */
static esdm_status
add_strided(gatherer *g, const esdm__box *box, const esdm__plan *plan, esdm_error *err)
{
    if (g->read)
        return read_values(g, box, err);
    g->result.exact = false;
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__statistics all = known(g, plan->pieces[i].fragment);
        g->result.bounds = g->result.bounds && all.class != ESDM__CLASS_NONE;
        if (all.class != ESDM__CLASS_NONE)
            add(g, &all);
    }
    if (!plan->covered)
        add_holes(g, 1);
    return ESDM_OK;
}

static esdm_status
add_plan(gatherer *g, const esdm__box *box, const esdm__plan *plan, esdm_error *err)
{
    uint64_t left = esdm__box_elements(box);
    esdm_status status = ESDM_OK;
    if (plan->ndense < plan->npieces)
        return add_strided(g, box, plan, err);
    for (size_t i = 0; i < plan->npieces && status == ESDM_OK; i++) {
        status = add_piece(g, &plan->pieces[i], err);
        left -= esdm__box_elements(&plan->pieces[i].part);
    }
    if (status == ESDM_OK)
        add_holes(g, left);
    return status;
}

/* ---- box ----------------------------------------------------------------------------------- */

/* Where a box with very many fragments is cut: between two of them if possible. */
static uint64_t
cut_of(gatherer *g, const esdm__box *box, uint32_t axis)
{
    uint64_t middle = box->lo[axis] + box->n[axis] / 2;
    uint64_t at = middle;
    esdm__box one = *box;
    esdm__plan plan = {0};
    for (uint32_t d = 0; d < box->rank; d++)
        one.n[d] = 1;
    one.lo[axis] = middle;
    if (esdm__read_plan(g->dataset, g->io, &one, &plan, NULL, NULL) == ESDM_OK &&
        plan.npieces > 0) {
        const esdm__box *found = &plan.pieces[0].fragment->box;
        uint64_t end = found->lo[axis] + found->n[axis];
        if (found->lo[axis] > box->lo[axis])
            at = found->lo[axis];
        else if (end < box->lo[axis] + box->n[axis])
            at = end;
    }
    esdm__plan_clear(&plan);
    return at;
}

static esdm_status
add_box(gatherer *g, const esdm__box *box, esdm_error *err)
{
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    (void) pthread_mutex_lock(&g->io->lock);
    size_t count = esdm__index_count(g->io->index, box, PLAN_FRAGMENTS + 1);
    (void) pthread_mutex_unlock(&g->io->lock);
    if (count <= PLAN_FRAGMENTS || axis == box->rank) {
        esdm__plan plan = {0};
        esdm_status status = esdm__read_plan(g->dataset, g->io, box, &plan, NULL, err);
        if (status == ESDM_OK)
            status = add_plan(g, box, &plan, err);
        esdm__plan_clear(&plan);
        return status;
    }
    esdm__box low = *box;
    esdm__box high = *box;
    uint64_t at = cut_of(g, box, axis);
    low.n[axis] = at - box->lo[axis];
    high.lo[axis] = at;
    high.n[axis] -= low.n[axis];
    esdm_status status = add_box(g, &low, err);
    return status == ESDM_OK ? add_box(g, &high, err) : status;
}

static esdm_status
flush(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    esdm_error failure = {0};
    esdm_status status = esdm__container_check_process(dataset->group->container, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&io->write_lock);
    failure.status = esdm__dataset_flush(dataset, io, &failure);
    (void) pthread_mutex_unlock(&io->write_lock);
    if (failure.status != ESDM_OK && err != NULL)
        *err = failure;
    return failure.status;
}

esdm_status
esdm__io_statistics(esdm_dataset *dataset, const esdm__box *box, bool readers, bool read,
                    esdm__box_statistics *ret, esdm_error *err)
{
    if (dataset->group->container->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers: there are statistics "
                               "of each of these, not of the whole",
                               dataset->group->container->name);
    gatherer g = {.dataset = dataset, .read = read};
    g.result =
        (esdm__box_statistics){.elements = esdm__box_elements(box), .bounds = true, .exact = true};
    esdm__missing_of(dataset, &g.missing);
    if (g.missing.class == ESDM__CLASS_NONE)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "there are no statistics of values that are no numbers, or of which "
                               "more than %u stand for missing ones",
                               ESDM__MISSING_MOST);
    if (readers)
        esdm__beyond_of(dataset, &g.missing, &g.beyond);
    esdm_status status = esdm__dataset_io_get(dataset, &g.io, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    if (atomic_load(&g.io->gathered) || atomic_load(&g.io->lane.count) > 0)
        status = flush(dataset, g.io, err);
    if (status == ESDM_OK)
        status = esdm__dataset_load_directory(dataset, g.io, err);
    if (status == ESDM_OK && !esdm__box_is_empty(box))
        status = add_box(&g, box, err);
    esdm__dataset_io_put(dataset);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    /* Those of fragments are of what is stored, others of what this handle reads. */
    if (esdm__coarse_is_asked(&dataset->stated->coarse))
        g.result.exact = g.result.bounds = false;
    *ret = g.result;
    return ESDM_OK;
}
