/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fragments that another line has as well: as they are shared, nothing is new about them. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/read/read.h"
#include "merge/merge.h"

/* Fragments that are entered, of which the most are compared with those that may be left out. */
#define MOST_BOXES 4096u

/* Whether both are the same stored values at the same place. */
static bool
same_fragment(const esdm__fragment *a, const esdm__fragment *b)
{
    if (a->kind != b->kind || a->strided || b->strided || esdm__kind_is_elsewhere(a->kind) ||
        a->stored_bytes != b->stored_bytes || !esdm__box_equal(&a->box, &b->box))
        return false;
    if (a->pack == NULL || b->pack == NULL)
        return a->pack == b->pack && memcmp(a->inline_data, b->inline_data, a->stored_bytes) == 0;
    return a->position == b->position && strcmp(a->pack->pack, b->pack->pack) == 0;
}

/* Whether a dataset shows just this fragment in the box. */
static esdm_status
shows(esdm_dataset *dataset, const esdm__fragment *fragment, const esdm__box *box, bool *ret,
      esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm__plan plan = {0};
    *ret = false;
    if (dataset == NULL)
        return ESDM_OK;
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__dataset_load_directory(dataset, io, err);
    if (status == ESDM_OK)
        status = esdm__read_plan(dataset, io, box, &plan, NULL, err);
    esdm__dataset_io_put(dataset);
    *ret = status == ESDM_OK && plan.covered;
    for (size_t i = 0; i < plan.npieces && *ret; i++)
        *ret = same_fragment(plan.pieces[i].fragment, fragment);
    esdm__plan_clear(&plan);
    return status;
}

/* All of it that can be seen, by one of both in each part. @param ret_new ours alone shows some. */
static esdm_status
is_known(const esdm__merge_changes *c, size_t i, esdm_dataset *base, esdm_dataset *ours, bool *ret,
         bool *ret_new, esdm_error *err)
{
    esdm__fragment fragment;
    esdm_status status = ESDM_OK;
    esdm__records_fragment(&c->records, c->order[i], &fragment);
    *ret = !fragment.strided && !esdm__kind_is_elsewhere(fragment.kind);
    for (size_t k = 0; k < c->visible[i].count && *ret && status == ESDM_OK; k++) {
        status = shows(base, &fragment, &c->visible[i].items[k], ret, err);
        if (status == ESDM_OK && !*ret) {
            *ret_new = true;
            status = shows(ours, &fragment, &c->visible[i].items[k], ret, err);
        }
    }
    return status;
}

/* What is entered would hide it. */
static bool
meets(const esdm__boxes *entered, const esdm__box *box)
{
    esdm__box common;
    bool met = entered->count > MOST_BOXES;
    for (size_t i = 0; i < entered->count && !met; i++)
        met = esdm__box_intersect(&entered->items[i], box, &common);
    return met;
}

esdm_status
esdm__merge_changes_drop_known(esdm__merge_changes *c, esdm_dataset *base, esdm_dataset *ours,
                               bool *known_of_ours, esdm_error *err)
{
    esdm__boxes entered = {0};
    size_t left = 0;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < c->count; i++) {
        esdm__fragment fragment;
        bool known = false, new = false;
        esdm__records_fragment(&c->records, c->order[i], &fragment);
        if (status == ESDM_OK && !meets(&entered, &fragment.box))
            status = is_known(c, i, base, ours, &known, &new, err);
        if (known && status == ESDM_OK) {
            *known_of_ours = *known_of_ours || new;
            esdm__boxes_clear(&c->visible[i]);
            continue;
        }
        esdm__boxes_add(&entered, &fragment.box);
        c->order[left] = c->order[i];
        if (left != i) {
            c->visible[left] = c->visible[i];
            c->visible[i] = (esdm__boxes){0};
        }
        left++;
    }
    c->count = left;
    if (status == ESDM_OK && entered.failed)
        status = esdm__error_nomem(err, entered.count * sizeof(esdm__box), "boxes of fragments");
    esdm__boxes_clear(&entered);
    return status;
}
