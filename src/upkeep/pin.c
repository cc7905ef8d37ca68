/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file Values that stay in files, brought into ESDM: a container that refers to files becomes one
 * that needs none. Where a target can share the blocks of a file it is cloned
 * (upkeep/pin_share.h); else boxes are read as everybody reads them, so a file that is not what it
 * was is an error, and written again; nobody's newer values are hidden by that (`guards_all`,
 * io/container/opened.h). What was interrupted is gone on with by the next call.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "esdm/reference.h"
#include "io/read/read.h"
#include "layout/source.h"
#include "upkeep/boxes.h"
#include "upkeep/pin_share.h"
#include "upkeep/upkeep.h"

/* Values between two commits. */
#define STEP_BYTES (UINT64_C(4) << 30)

typedef struct pinning {
    const esdm_pin_options *options;
    esdm_pin_result *result;
    esdm_container *container;
    esdm_pin_result on; /* counts of what is not committed yet */
    bool overtaken;     /* by somebody else's commit */
    bool published;     /* a commit was tried: clones may be referred to */
    bool shared;        /* some share blocks of files */
} pinning;

static esdm_status
commit(pinning *p, esdm_error *err)
{
    p->published = true;
    esdm_status status = esdm__io_commit(p->container, "esdm-ref --pin", err);
    p->overtaken = status == ESDM_ECONFLICT;
    if (status != ESDM_OK)
        return status;
    p->result->fragments += p->on.fragments;
    p->result->bytes += p->on.bytes;
    p->result->shared_bytes += p->on.shared_bytes;
    p->on = (esdm_pin_result){0};
    return ESDM_OK;
}

/* ---- boxes --------------------------------------------------------------------------------- */

/* Whether values are to be copied: clones are kept already. */
static bool
is_foreign(const pinning *p, const esdm__fragment *fragment)
{
    return fragment->kind == ESDM__KIND_FOREIGN &&
           (p->options->copies || !esdm__pin_share_is_clone(fragment));
}

/* The box around all pieces. false: they are not all of files, or do not fill it. */
static bool
fill_hull(const pinning *p, const esdm__plan *plan, esdm__box *hull)
{
    uint64_t elements = 0;
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__box *part = &plan->pieces[i].part;
        if (!is_foreign(p, plan->pieces[i].fragment))
            return false;
        if (i == 0)
            *hull = *part;
        for (uint32_t d = 0; d < part->rank; d++) {
            uint64_t end = hull->lo[d] + hull->n[d];
            uint64_t other = part->lo[d] + part->n[d];
            hull->lo[d] = part->lo[d] < hull->lo[d] ? part->lo[d] : hull->lo[d];
            hull->n[d] = (other > end ? other : end) - hull->lo[d];
        }
        elements += esdm__box_elements(part);
    }
    return elements == esdm__box_elements(hull);
}

static void
tell(const pinning *p, const esdm__piece *piece, uint64_t bytes)
{
    esdm__foreign foreign;
    if (p->options->file != NULL &&
        esdm__foreign_get(piece->fragment->elsewhere.source, &foreign, NULL) == ESDM_OK)
        p->options->file(foreign.location, bytes, false, p->options->user);
}

static esdm_status
pin_box(pinning *p, const esdm__boxes *boxes, const esdm__box *box, void *buffer, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm__box hull;
    esdm_status status = esdm__boxes_plan(boxes, box, &plan, err);
    bool dense = status == ESDM_OK && plan.npieces > 0 && fill_hull(p, &plan, &hull);
    if (dense)
        status = esdm__boxes_store(boxes, &hull, buffer, err);
    for (size_t i = 0; i < plan.npieces && status == ESDM_OK; i++) {
        const esdm__piece *piece = &plan.pieces[i];
        uint64_t bytes = esdm__box_elements(&piece->part) * boxes->each;
        if (!is_foreign(p, piece->fragment))
            continue;
        if (!dense)
            status = esdm__boxes_store(boxes, &piece->part, buffer, err);
        if (status != ESDM_OK)
            break;
        p->on.fragments++;
        p->on.bytes += bytes;
        tell(p, piece, bytes);
    }
    esdm__plan_clear(&plan);
    if (status == ESDM_OK && p->on.bytes >= STEP_BYTES)
        status = commit(p, err);
    return status;
}

/* ---- datasets ------------------------------------------------------------------------------ */

typedef struct search {
    const pinning *p;
    bool found;
} search;

static bool
look_for_foreign(const esdm__fragment *fragment, void *user)
{
    search *s = user;
    s->found = is_foreign(s->p, fragment);
    return !s->found;
}

static esdm_status
check_rounding(const esdm_dataset *dataset, esdm_error *err)
{
    if (!esdm__boxes_are_rounded(dataset))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "its accuracy is stated, so what is stored would be rounded: take the "
                           "statement back before (docs/reference.md, \"How accurate\")");
}

static esdm_status
pin_dataset(pinning *p, esdm_dataset *dataset, esdm_error *err)
{
    esdm__boxes boxes;
    esdm__box box;
    bool any = false;
    search s = {.p = p};
    esdm_status status = esdm__io_visit_fragments(dataset, look_for_foreign, &s, err);
    if (status != ESDM_OK || !s.found)
        return status;
    status = check_rounding(dataset, err);
    if (status == ESDM_OK)
        status = esdm__boxes_begin(dataset, &boxes, &any, err);
    if (status != ESDM_OK || !any)
        return status == ESDM_OK ? status : esdm__dataset_prefix(dataset, status, err);
    esdm__boxes_first(&boxes, &box);
    void *buffer = calloc(esdm__box_elements(&box), esdm__typeref_bytes(boxes.type));
    if (buffer == NULL)
        return esdm__error_nomem(err, ESDM__BOX_BYTES, "values of files");
    do
        status = pin_box(p, &boxes, &box, buffer, err);
    while (status == ESDM_OK && esdm__boxes_next(&boxes, &box));
    free(buffer);
    return status == ESDM_OK ? status : esdm__dataset_prefix(dataset, status, err);
}

/* Clones of files, wherever that can be. *ret_rest: of each dataset, whether some is left. */
static esdm_status
share_all(pinning *p, esdm__pin_share **ret_share, bool *rest, esdm_error *err)
{
    const esdm_container *container = p->container;
    esdm_status status = esdm__pin_share_new(p->container, ret_share, err);
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        status = esdm__pin_share_dataset(*ret_share, container->datasets.items[i], p->options,
                                         &p->on, &rest[i], err);
    p->shared = p->on.shared_bytes > 0;
    return status;
}

static esdm_status
pin_all(pinning *p, esdm__pin_share **ret_share, esdm_error *err)
{
    const esdm_container *container = p->container;
    bool *rest = malloc(container->datasets.count + 1);
    if (rest == NULL)
        return esdm__error_nomem(err, container->datasets.count, "a list of variables");
    memset(rest, 1, container->datasets.count + 1);
    esdm_status status = p->options->copies ? ESDM_OK : share_all(p, ret_share, rest, err);
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++) {
        if (rest[i])
            status = pin_dataset(p, container->datasets.items[i], err);
    }
    free(rest);
    return status;
}

/* Says in a hint that it is pinned, and how. */
static esdm_status
note_pinned(const pinning *p, esdm_error *err)
{
    const char *is = esdm_container_hint(p->container, ESDM_REFERENCE_PIN);
    const char *way = p->shared ? "reflink" : p->options->copies || is == NULL ? "copy" : is;
    bool refers = p->on.fragments + p->result->fragments > 0 ||
                  esdm_container_hint(p->container, ESDM_REFERENCE_SOURCE) != NULL;
    if (!refers || (is != NULL && strcmp(is, way) == 0))
        return ESDM_OK;
    return esdm_container_set_hint(p->container, ESDM_REFERENCE_PIN, way, err);
}

esdm_status
esdm__upkeep_pin(esdm_container *container, const esdm_pin_options *options,
                 esdm_pin_result *result, bool *ret_again, esdm_error *err)
{
    pinning p = {.options = options, .result = result, .container = container};
    esdm__pin_share *share = NULL;
    esdm__io_of(container)->opened.guards_all = true;
    esdm_status status = pin_all(&p, &share, err);
    if (status == ESDM_OK)
        status = note_pinned(&p, err);
    if (status == ESDM_OK)
        status = commit(&p, err);
    if (status != ESDM_OK && !p.published && share != NULL)
        esdm__pin_share_drop(share);
    esdm__pin_share_free(share);
    *ret_again = p.overtaken;
    return status;
}
