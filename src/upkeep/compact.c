/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file Storing anew what lies in too many or badly shaped fragments. A box of a dataset is read
 * and written again, so that the engine cuts it as it cuts what is new; old snapshots keep their
 * fragments. A box that others have written to since it was read is a conflict (`guards_all`,
 * io/container/opened.h), and is read again. What was interrupted is found to be done by the next
 * call, as far as it was committed.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "io/session/models.h"
#include "io/session/session.h"
#include "upkeep/boxes.h"
#include "upkeep/upkeep.h"

/* What is stored between two commits, if nothing is stated. */
#define STEP_BYTES (UINT64_C(4) << 30)

typedef struct compaction {
    const esdm_compact_options *options;
    esdm_compact_result *result;
    esdm_container *container;
    double began_s;
    uint64_t began_bytes;
    uint64_t pending;       /* bytes that are written, and not committed */
    esdm_compact_result on; /* counts of these */
} compaction;

/* What is asked of one dataset. */
typedef struct shape {
    esdm__boxes boxes;
    uint64_t ideal; /* bytes of a fragment */
} shape;

/* ---- what is bad --------------------------------------------------------------------------- */

/* Whether a fragment is cut where no chunk ends. */
static bool
cuts_chunks(const shape *s, const esdm__box *box, const esdm__fragment *fragment)
{
    for (uint32_t d = 0; s->boxes.chunk != NULL && d < box->rank; d++) {
        uint64_t chunk = s->boxes.chunk[d] < box->n[d] ? s->boxes.chunk[d] : box->n[d];
        uint64_t end = fragment->box.lo[d] + fragment->box.n[d];
        if (fragment->box.n[d] < chunk && end < s->boxes.length[d])
            return true;
    }
    return false;
}

/* The smallest box around the pieces. false: some lie where they are not ours to store. */
static bool
hull_of(const esdm__plan *plan, esdm__box *ret)
{
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__box *part = &plan->pieces[i].part;
        if (plan->pieces[i].fragment->kind > ESDM__KIND_CONSTANT)
            return false;
        if (i == 0)
            *ret = *part;
        for (uint32_t d = 0; d < part->rank; d++) {
            uint64_t end = ret->lo[d] + ret->n[d];
            uint64_t other = part->lo[d] + part->n[d];
            ret->lo[d] = part->lo[d] < ret->lo[d] ? part->lo[d] : ret->lo[d];
            ret->n[d] = (other > end ? other : end) - ret->lo[d];
        }
    }
    return plan->npieces > 0;
}

/* Fragments that the box would have if it was written now. */
static uint64_t
ideal_count(const shape *s, const esdm__box *box)
{
    uint64_t bytes = esdm__box_elements(box) * s->boxes.each;
    uint64_t cells = 1;
    if (s->boxes.chunk == NULL)
        return (bytes + s->ideal - 1) / s->ideal;
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t first = box->lo[d] / s->boxes.chunk[d];
        cells *= (box->lo[d] + box->n[d] - 1) / s->boxes.chunk[d] - first + 1;
    }
    return cells;
}

/* @param ret_box what is to be stored anew; untouched unless *ret_bad. */
static esdm_status
look_at(const shape *s, const esdm__box *box, bool *ret_bad, esdm__box *ret_box,
        uint64_t *ret_count, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm__box hull;
    *ret_bad = false;
    esdm_status status = esdm__boxes_plan(&s->boxes, box, &plan, err);
    if (status == ESDM_OK && hull_of(&plan, &hull)) {
        uint64_t chunk_bytes = s->boxes.chunk != NULL
                                   ? esdm__boxes_volume(s->boxes.chunk, box->rank) * s->boxes.each
                                   : UINT64_MAX;
        uint64_t ideal = ideal_count(s, &hull);
        bool bad = plan.npieces > ideal + ideal / 2 + 1;
        for (size_t i = 0; i < plan.npieces && !bad && chunk_bytes <= s->ideal; i++)
            bad = plan.npieces > 1 && cuts_chunks(s, box, plan.pieces[i].fragment);
        *ret_count = plan.npieces;
        *ret_bad = bad;
        if (bad)
            *ret_box = hull;
    }
    esdm__plan_clear(&plan);
    return status;
}

/* ---- storing anew -------------------------------------------------------------------------- */

static esdm_status
commit(compaction *c, esdm_error *err)
{
    esdm_compact_result *all = c->result;
    if (c->pending == 0)
        return ESDM_OK;
    esdm_status status = esdm__io_commit(c->container, "esdm-compact", err);
    if (status != ESDM_OK)
        return status;
    all->fragments += c->on.fragments;
    all->bytes += c->on.bytes;
    all->commits++;
    c->on = (esdm_compact_result){0};
    c->pending = 0;
    return ESDM_OK;
}

void
esdm__upkeep_pace(uint64_t bytes_per_s, uint64_t bytes, double began_s)
{
    double due = bytes_per_s > 0 ? (double) bytes / (double) bytes_per_s : 0;
    double left = due - (esdm__seconds_now() - began_s);
    if (left > 0) {
        struct timespec wait = {.tv_sec = (time_t) left,
                                .tv_nsec = (long) ((left - (double) (time_t) left) * 1e9)};
        (void) nanosleep(&wait, NULL);
    }
}

static esdm_status
compact_box(compaction *c, const shape *s, const esdm__box *box, void *buffer, esdm_error *err)
{
    esdm__box bad_box;
    bool bad;
    uint64_t count;
    esdm_status status = look_at(s, box, &bad, &bad_box, &count, err);
    if (status != ESDM_OK || !bad)
        return status;
    uint64_t bytes = esdm__box_elements(&bad_box) * s->boxes.each;
    if (c->options->dry_run) {
        c->result->fragments += count;
        c->result->bytes += bytes;
        return ESDM_OK;
    }
    status = esdm__boxes_store(&s->boxes, &bad_box, buffer, err);
    if (status != ESDM_OK)
        return status;
    c->on.fragments += count;
    c->on.bytes += bytes;
    c->pending += bytes;
    esdm__upkeep_pace(c->options->bytes_per_s, c->result->bytes + c->on.bytes - c->began_bytes,
                      c->began_s);
    uint64_t step = c->options->step_bytes > 0 ? c->options->step_bytes : STEP_BYTES;
    return c->pending >= step ? commit(c, err) : ESDM_OK;
}

/* ---- datasets ------------------------------------------------------------------------------ */

static void
tell_rounded(const compaction *c, const esdm_dataset *dataset)
{
    char *path = esdm__dataset_path(dataset);
    const esdm_finding finding = {.kind = ESDM_FINDING_NOTE,
                                  .container = c->container->name,
                                  .dataset = path,
                                  .what = "its numbers may be rounded: storing them anew would "
                                          "round them again, so they stay as they are"};
    if (c->options->report != NULL)
        c->options->report(&finding, c->options->user);
    free(path);
}

static esdm_status
open_shape(compaction *c, esdm_dataset *dataset, shape *s, bool *ret_any, esdm_error *err)
{
    esdm_status status = esdm__boxes_begin(dataset, &s->boxes, ret_any, err);
    *ret_any = *ret_any && dataset->rank > 0;
    if (status == ESDM_OK && *ret_any && esdm__boxes_are_rounded(dataset)) {
        tell_rounded(c, dataset);
        c->result->rounded++;
        *ret_any = false;
    }
    s->ideal = c->container->session->fragment_bytes;
    return status;
}

static esdm_status
compact_dataset(compaction *c, esdm_dataset *dataset, esdm_error *err)
{
    shape s;
    bool any;
    esdm_status status = open_shape(c, dataset, &s, &any, err);
    if (status != ESDM_OK || !any)
        return status;
    esdm__box box;
    esdm__boxes_first(&s.boxes, &box);
    void *buffer = calloc(esdm__box_elements(&box), esdm__typeref_bytes(s.boxes.type));
    if (buffer == NULL)
        return esdm__error_nomem(err, ESDM__BOX_BYTES, "values to be stored anew");
    do
        status = compact_box(c, &s, &box, buffer, err);
    while (status == ESDM_OK && esdm__boxes_next(&s.boxes, &box));
    free(buffer);
    return status == ESDM_OK ? status : esdm__dataset_prefix(dataset, status, err);
}

/* ---- all ----------------------------------------------------------------------------------- */

esdm_status
esdm__upkeep_compact(esdm_container *container, const esdm_compact_options *options,
                     esdm_compact_result *result, esdm_error *err)
{
    compaction c = {.options = options,
                    .result = result,
                    .container = container,
                    .began_bytes = result->bytes,
                    .began_s = esdm__seconds_now()};
    esdm_status status = ESDM_OK;
    esdm__io_of(container)->opened.guards_all = true;
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        status = compact_dataset(&c, container->datasets.items[i], err);
    return status == ESDM_OK ? commit(&c, err) : status;
}
