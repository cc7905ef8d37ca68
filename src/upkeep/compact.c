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
#include "io/io.h"
#include "io/session/models.h"
#include "io/session/session.h"
#include "model/accuracy.h"
#include "model/values.h"
#include "upkeep/upkeep.h"

/* Values in memory at a time. */
#define BOX_BYTES (UINT64_C(32) << 20)
/* What is stored between two commits, if nothing is stated. */
#define STEP_BYTES (UINT64_C(4) << 30)
#define TEXT_BYTES 64u

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
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    esdm__typeref type;
    uint64_t each; /* bytes of an element, about */
    uint64_t length[ESDM_MAX_RANK];
    uint64_t step[ESDM_MAX_RANK]; /* of the boxes */
    uint64_t ideal;               /* bytes of a fragment */
    const uint64_t *chunk;        /* NULL: the site decides */
} shape;

/* ---- boxes --------------------------------------------------------------------------------- */

static uint64_t
volume(const uint64_t *n, uint32_t rank)
{
    uint64_t product = 1;
    for (uint32_t d = 0; d < rank; d++)
        product = product > UINT64_MAX / (n[d] > 0 ? n[d] : 1) ? UINT64_MAX : product * n[d];
    return product;
}

/* Whole chunks, or rows, as many as memory is meant for: the fastest dimension first. */
static void
choose_step(shape *s)
{
    uint32_t rank = s->dataset->rank;
    uint64_t most = BOX_BYTES / s->each > 0 ? BOX_BYTES / s->each : 1;
    for (uint32_t d = 0; d < rank; d++) {
        s->step[d] = s->chunk != NULL && s->chunk[d] < s->length[d] ? s->chunk[d] : 1;
        if (s->chunk != NULL && s->chunk[d] >= s->length[d])
            s->step[d] = s->length[d];
    }
    for (uint32_t d = 0; d < rank && volume(s->step, rank) > most; d++)
        s->step[d] = 1; /* a chunk is too large: rows of it */
    for (uint32_t d = rank; d-- > 0;) {
        uint64_t times = most / volume(s->step, rank);
        uint64_t whole = (s->length[d] + s->step[d] - 1) / s->step[d];
        s->step[d] = times >= whole ? s->length[d] : s->step[d] * (times > 0 ? times : 1);
        if (s->step[d] < s->length[d])
            return;
    }
}

static bool
next_box(const shape *s, esdm__box *box)
{
    uint32_t d = s->dataset->rank;
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

/* ---- what is bad --------------------------------------------------------------------------- */

/* Whether a fragment is cut where no chunk ends. */
static bool
cuts_chunks(const shape *s, const esdm__box *box, const esdm__fragment *fragment)
{
    for (uint32_t d = 0; s->chunk != NULL && d < box->rank; d++) {
        uint64_t chunk = s->chunk[d] < box->n[d] ? s->chunk[d] : box->n[d];
        uint64_t end = fragment->box.lo[d] + fragment->box.n[d];
        if (fragment->box.n[d] < chunk && end < s->length[d])
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
    uint64_t bytes = esdm__box_elements(box) * s->each;
    uint64_t cells = 1;
    if (s->chunk == NULL)
        return (bytes + s->ideal - 1) / s->ideal;
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t first = box->lo[d] / s->chunk[d];
        cells *= (box->lo[d] + box->n[d] - 1) / s->chunk[d] - first + 1;
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
    esdm_status status = esdm__read_plan(s->dataset, s->io, box, &plan, NULL, err);
    if (status == ESDM_OK && hull_of(&plan, &hull)) {
        uint64_t chunk_bytes =
            s->chunk != NULL ? volume(s->chunk, box->rank) * s->each : UINT64_MAX;
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
store_box(const shape *s, const esdm__box *box, void *buffer, esdm_error *err)
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

/* Not faster than was asked for. */
static void
wait_for_speed(const compaction *c)
{
    double allowed = (double) c->options->bytes_per_s;
    double due =
        allowed > 0 ? (double) (c->result->bytes + c->on.bytes - c->began_bytes) / allowed : 0;
    double left = due - (esdm__seconds_now() - c->began_s);
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
    uint64_t bytes = esdm__box_elements(&bad_box) * s->each;
    if (c->options->dry_run) {
        c->result->fragments += count;
        c->result->bytes += bytes;
        return ESDM_OK;
    }
    status = store_box(s, &bad_box, buffer, err);
    if (status != ESDM_OK)
        return status;
    c->on.fragments += count;
    c->on.bytes += bytes;
    c->pending += bytes;
    wait_for_speed(c);
    uint64_t step = c->options->step_bytes > 0 ? c->options->step_bytes : STEP_BYTES;
    return c->pending >= step ? commit(c, err) : ESDM_OK;
}

/* ---- datasets ------------------------------------------------------------------------------ */

/* What was rounded would be rounded again. */
static bool
is_rounded(const esdm_dataset *dataset)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    return esdm_dataset_accuracy_in_force(dataset, &accuracy) &&
           (accuracy.stated & ~(uint32_t) ESDM_ACCURACY_MODE) != 0;
}

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
    *s = (shape){.dataset = dataset, .chunk = dataset->chunk};
    *ret_any = dataset->rank > 0;
    for (uint32_t d = 0; d < dataset->rank; d++) {
        s->length[d] = esdm_dimension_length(dataset->dimensions[d]);
        *ret_any = *ret_any && s->length[d] > 0;
    }
    if (*ret_any && is_rounded(dataset)) {
        tell_rounded(c, dataset);
        c->result->rounded++;
        *ret_any = false;
    }
    if (!*ret_any)
        return ESDM_OK;
    esdm_status status = esdm__type_resolve(c->container, dataset->type, &s->type, err);
    if (status == ESDM_OK)
        status = esdm__dataset_io_get(dataset, &s->io, err);
    if (status == ESDM_OK)
        status = esdm__dataset_load_directory(dataset, s->io, err);
    s->each = esdm__typeref_bytes(s->type) + (esdm__typeref_is_variable(s->type) ? TEXT_BYTES : 0);
    s->ideal = c->container->session->fragment_bytes;
    choose_step(s);
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
    esdm__box box = {.rank = dataset->rank};
    memcpy(box.n, s.step, sizeof s.step);
    void *buffer = calloc(esdm__box_elements(&box), esdm__typeref_bytes(s.type));
    if (buffer == NULL)
        return esdm__error_nomem(err, BOX_BYTES, "values to be stored anew");
    do
        status = compact_box(c, &s, &box, buffer, err);
    while (status == ESDM_OK && next_box(&s, &box));
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
