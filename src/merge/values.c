/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Values of one dataset: fragments of theirs are entered into ours, and where both sides
 * have changed something the elements of all three are compared. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/read/read.h"
#include "io/write/refer.h"
#include "io/write/write.h"
#include "layout/strided.h"
#include "merge/merge.h"
#include "model/values.h"

/* Values of one side in memory at a time. */
#define PART_BYTES (UINT64_C(8) << 20)
/* Boxes of conflicts that are kept for one dataset until they are told. */
#define BOXES_MOST 100000u

/* Of several bases the others are behind. */
enum { BASE, OURS, THEIRS, SIDES };
#define MOST_SIDES (SIDES + ESDM__BASES_LEAVES - 1)

typedef struct values {
    esdm__merging *m;
    esdm_dataset *sides[MOST_SIDES]; /* NULL: it has no such dataset, all is fill value */
    uint32_t nsides;
    esdm_dataset *target; /* in `ours` */
    esdm__typeref type;
    uint64_t each; /* bytes of an element in memory */
    bool varies;
    uint64_t most; /* elements at a time */
    void *buffers[MOST_SIDES];
    uint8_t *marks;    /* of conflicts */
    esdm__boxes found; /* conflicts */
} values;

/* ---- reading ------------------------------------------------------------------------------- */

/* Rows of the part that lies inside, from dense memory to where they belong in the whole. */
static void
spread(const values *v, const esdm__box *whole, const esdm__box *part, const char *from, char *to)
{
    uint32_t rank = whole->rank;
    uint64_t row = rank > 0 ? part->n[rank - 1] : 1;
    uint64_t rows = esdm__box_elements(part) / row;
    uint64_t at[ESDM_MAX_RANK] = {0};
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t offset = 0;
        for (uint32_t d = 0; d < rank; d++)
            offset = offset * whole->n[d] + part->lo[d] - whole->lo[d] + at[d];
        if (v->varies)
            esdm__values_clear(v->type, row, to + offset * v->each);
        memcpy(to + offset * v->each, from + r * row * v->each, row * v->each);
        for (uint32_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
            if (++at[d] < part->n[d])
                break;
            at[d] = 0;
        }
    }
}

static esdm_status
fill(const values *v, uint64_t count, char *to, esdm_error *err)
{
    const esdm_dataset *of = v->sides[THEIRS];
    const void *value = esdm_dataset_fill(of, NULL);
    esdm_status status = ESDM_OK;
    for (uint64_t i = 0; i < count && status == ESDM_OK; i++) {
        if (v->varies)
            status = esdm__values_copy(v->type, 1, value, to + i * v->each, err);
        else
            memcpy(to + i * v->each, value, v->each);
    }
    return status;
}

/* The box as far as the dataset reaches. false: not at all. */
static bool
clip(const esdm_dataset *dataset, const esdm__box *box, esdm__box *ret)
{
    esdm__box_copy(ret, box);
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t length = esdm_dimension_length(dataset->dimensions[d]);
        if (box->lo[d] >= length)
            return false;
        ret->n[d] = length - box->lo[d] < box->n[d] ? length - box->lo[d] : box->n[d];
    }
    return true;
}

static esdm_status
read_part(esdm_dataset *dataset, const esdm__box *box, void *buffer, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
    return status == ESDM_OK ? esdm__io_read(dataset, &space, dataset->type, buffer, NULL, err)
                             : status;
}

/* Fills a side's buffer; elements that the dataset does not reach are its fill value. */
static esdm_status
read_side(const values *v, uint32_t side, const esdm__box *box, esdm_error *err)
{
    esdm_dataset *dataset = v->sides[side];
    esdm__box part;
    uint64_t count = esdm__box_elements(box);
    if (dataset == NULL || !clip(dataset, box, &part))
        return fill(v, count, v->buffers[side], err);
    if (esdm__box_equal(&part, box))
        return read_part(dataset, box, v->buffers[side], err);
    uint64_t inside = esdm__box_elements(&part);
    char *dense = calloc(inside, v->each);
    if (dense == NULL)
        return esdm__error_nomem(err, inside * v->each, "values");
    esdm_status status = read_part(dataset, &part, dense, err);
    if (status == ESDM_OK)
        status = fill(v, count, v->buffers[side], err);
    if (status == ESDM_OK)
        spread(v, box, &part, dense, v->buffers[side]);
    free(dense);
    return status;
}

static void
clear_sides(const values *v, uint64_t count)
{
    for (uint32_t i = 0; i < v->nsides && v->varies; i++) {
        esdm__values_clear(v->type, count, v->buffers[i]);
        memset(v->buffers[i], 0, count * v->each);
    }
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool
same(const values *v, uint32_t a, uint32_t b, uint64_t i)
{
    const char *x = (const char *) v->buffers[a] + i * v->each;
    const char *y = (const char *) v->buffers[b] + i * v->each;
    return v->varies ? esdm__values_equal(v->type, 1, x, y) : memcmp(x, y, v->each) == 0;
}

static uint32_t
side_of(uint32_t leaf)
{
    return leaf == 0 ? BASE : SIDES + leaf - 1;
}

static bool
same_leaves(const void *user, uint32_t one, uint32_t other, uint64_t i)
{
    return same(user, side_of(one), side_of(other), i);
}

/* UINT32_MAX: it is not known. */
static uint32_t
base_of(const values *v, uint64_t i)
{
    if (v->m->bases == NULL)
        return BASE;
    uint8_t leaf = esdm__bases_pick(v->m->bases, same_leaves, v, i);
    return leaf == ESDM__BASE_UNKNOWN ? UINT32_MAX : side_of(leaf);
}

/* What each element is to be goes into the buffer of theirs. @param ret_keeps whether some element
 *  of ours must stay that theirs would hide. */
static uint64_t
decide(const values *v, uint64_t count, bool theirs_win, bool *ret_keeps)
{
    uint64_t conflicts = 0;
    *ret_keeps = false;
    for (uint64_t i = 0; i < count; i++) {
        v->marks[i] = 0;
        if (same(v, OURS, THEIRS, i))
            continue;
        uint32_t base = base_of(v, i);
        if (base != UINT32_MAX && same(v, base, OURS, i))
            continue;
        bool conflict = base == UINT32_MAX || !same(v, base, THEIRS, i);
        v->marks[i] = conflict;
        conflicts += conflict;
        if (conflict && theirs_win)
            continue;
        *ret_keeps = true;
        char *from = (char *) v->buffers[OURS] + i * v->each;
        char *to = (char *) v->buffers[THEIRS] + i * v->each;
        char kept[64];
        if (v->each <= sizeof kept) { /* both stay whole, and are freed once */
            memcpy(kept, to, v->each);
            memcpy(to, from, v->each);
            memcpy(from, kept, v->each);
        } else {
            for (uint64_t b = 0; b < v->each; b++) {
                char byte = to[b];
                to[b] = from[b];
                from[b] = byte;
            }
        }
    }
    return conflicts;
}

static esdm_status
write_back(const values *v, const esdm__box *box, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
    if (status == ESDM_OK)
        status = esdm__io_write(v->target, &space, v->target->type, v->buffers[THEIRS], NULL, err);
    return status;
}

static esdm_status
compare_part(values *v, const esdm__box *box, esdm_error *err)
{
    esdm_merge_result *result = v->m->result;
    uint64_t count = esdm__box_elements(box);
    bool keeps = false;
    esdm_status status = ESDM_OK;
    for (uint32_t side = 0; side < v->nsides && status == ESDM_OK; side++)
        status = read_side(v, side, box, err);
    if (status == ESDM_OK) {
        uint64_t conflicts = decide(v, count, v->m->options->prefer == ESDM_MERGE_THEIRS, &keeps);
        if (conflicts > 0 && v->found.count < BOXES_MOST)
            esdm__boxes_of_marks(&v->found, box, v->marks);
        result->conflict_elements += conflicts;
        if (keeps)
            result->rewritten_bytes += count * v->each;
        if (v->found.failed)
            status = esdm__error_nomem(err, v->found.count * sizeof(esdm__box), "conflicts");
    }
    if (status == ESDM_OK && keeps && v->m->writes)
        status = write_back(v, box, err);
    clear_sides(v, count);
    return status;
}

/* In parts that fit. */
static esdm_status
compare_box(values *v, const esdm__box *box, esdm_error *err)
{
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    if (esdm__box_elements(box) <= v->most || axis == box->rank)
        return compare_part(v, box, err);
    esdm__box low, high;
    esdm__box_copy(&low, box);
    esdm__box_copy(&high, box);
    low.n[axis] /= 2;
    high.lo[axis] += low.n[axis];
    high.n[axis] -= low.n[axis];
    esdm_status status = compare_box(v, &low, err);
    return status == ESDM_OK ? compare_box(v, &high, err) : status;
}

/* ---- where both have changed something ------------------------------------------------------ */

static uint64_t
fork_of(const esdm__merging *m)
{
    uint64_t record, snapshot = 0;
    if (m->fork != NULL)
        esdm__container_position(m->fork, &record, &snapshot);
    return snapshot;
}

/* Parts of a visible box of theirs that are visible in ours and younger than the fork. */
static esdm_status
meet_ours(const values *v, const esdm__fragment *fragment, const esdm__box *box, esdm__boxes *met,
          esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_dataset *ours = v->sides[OURS];
    esdm__plan plan = {0};
    uint64_t fork = fork_of(v->m);
    esdm_status status = esdm__dataset_io_get(ours, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__dataset_load_directory(ours, io, err);
    if (status == ESDM_OK)
        status = esdm__read_plan(ours, io, box, &plan, NULL, err);
    esdm__dataset_io_put(ours);
    for (size_t i = 0; i < plan.npieces && status == ESDM_OK; i++) {
        esdm__piece mine = {.fragment = fragment};
        esdm__box common;
        esdm__box_copy(&mine.part, box);
        if (plan.pieces[i].fragment->sequence >> 32 <= fork ||
            !esdm__strided_meet(&plan.pieces[i], &mine) ||
            !esdm__box_intersect(&plan.pieces[i].part, box, &common))
            continue;
        esdm__boxes_add(met, &common);
        if (met->failed)
            status = esdm__error_nomem(err, met->count * sizeof common, "overlaps");
    }
    esdm__plan_clear(&plan);
    return status;
}

static esdm_status
find_met(const values *v, const esdm__merge_changes *changes, esdm__boxes *met, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (v->sides[OURS] == NULL)
        return ESDM_OK;
    for (size_t i = 0; i < changes->count && status == ESDM_OK; i++) {
        esdm__fragment fragment;
        esdm__records_fragment(&changes->records, changes->order[i], &fragment);
        for (size_t k = 0; k < changes->visible[i].count && status == ESDM_OK; k++)
            status = meet_ours(v, &fragment, &changes->visible[i].items[k], met, err);
    }
    if (status == ESDM_OK && met->count > 1)
        status = esdm__boxes_part(met, err);
    if (status == ESDM_OK)
        esdm__boxes_join(met);
    return status;
}

static esdm_status
prepare(values *v, esdm_error *err)
{
    const esdm_dataset *theirs = v->sides[THEIRS];
    esdm_status status = esdm__type_resolve(theirs->group->container, theirs->type, &v->type, err);
    if (status != ESDM_OK)
        return status;
    v->each = esdm__typeref_bytes(v->type);
    v->varies = esdm__typeref_is_variable(v->type);
    v->most = PART_BYTES * SIDES / v->nsides / v->each;
    if (v->most == 0)
        v->most = 1;
    for (uint32_t i = 0; i < v->nsides; i++) {
        v->buffers[i] = calloc(v->most, v->each);
        if (v->buffers[i] == NULL)
            return esdm__error_nomem(err, v->most * v->each, "values");
    }
    v->marks = malloc(v->most);
    return v->marks != NULL ? ESDM_OK : esdm__error_nomem(err, v->most, "values");
}

static void
tell_conflicts(values *v)
{
    char *path = v->found.count > 0 ? esdm__dataset_path(v->sides[THEIRS]) : NULL;
    esdm__boxes_join(&v->found);
    for (size_t i = 0; i < v->found.count; i++) {
        const esdm__box *box = &v->found.items[i];
        esdm_merge_conflict conflict = {.object = path != NULL ? path : "",
                                        .what = "values",
                                        .rank = box->rank,
                                        .offset = box->lo,
                                        .size = box->n};
        (void) esdm__merge_conflict(v->m, &conflict, true);
    }
    free(path);
}

static esdm_status
compare_met(values *v, const esdm__boxes *met, esdm_error *err)
{
    esdm_status status = met->count > 0 ? prepare(v, err) : ESDM_OK;
    for (size_t i = 0; i < met->count && status == ESDM_OK; i++)
        status = compare_box(v, &met->items[i], err);
    if (status == ESDM_OK)
        tell_conflicts(v);
    for (uint32_t i = 0; i < v->nsides; i++)
        free(v->buffers[i]);
    free(v->marks);
    esdm__boxes_clear(&v->found);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------- */

static esdm_status
enter(const values *v, const esdm__merge_changes *changes, esdm_error *err)
{
    esdm_merge_result *result = v->m->result;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < changes->count && status == ESDM_OK; i++) {
        esdm__fragment fragment;
        esdm__records_fragment(&changes->records, changes->order[i], &fragment);
        result->fragments++;
        result->referenced_bytes += fragment.pack != NULL ? fragment.stored_bytes : 0;
        v->m->shares = v->m->shares || fragment.pack != NULL;
        if (fragment.pack != NULL && v->m->guard != NULL)
            status = esdm__pack_guard_add(v->m->guard, fragment.pack->pack, !v->m->writes, err);
        if (status == ESDM_OK && v->m->writes)
            status = esdm__io_share(v->target, &fragment, err);
    }
    return status;
}

esdm_status
esdm__merge_values(esdm__merging *m, esdm_dataset *theirs, esdm_dataset *const *bases,
                   esdm_dataset *before, esdm_dataset *ours, esdm_error *err)
{
    uint32_t more = esdm__merge_leaves(m) - 1; /* what one of several shows another may hide */
    esdm_dataset *base = m->bases == NULL ? bases[0] : NULL;
    esdm__merge_changes changes = {0};
    esdm__boxes met = {0};
    values v = {
        .m = m, .sides = {bases[0], before, theirs}, .nsides = SIDES + more, .target = ours};
    for (uint32_t k = 1; k <= more; k++)
        v.sides[side_of(k)] = bases[k];
    esdm_status status = esdm__merge_changes_load(m, theirs, &changes, err);
    if (status == ESDM_OK && m->apart)
        status = esdm__merge_changes_drop_known(&changes, base, before, &m->known, err);
    if (status == ESDM_OK && !m->whole)
        status = find_met(&v, &changes, &met, err);
    if (status == ESDM_OK)
        status = enter(&v, &changes, err);
    if (status == ESDM_OK)
        status =
            !m->writes || m->result->rewritten_bytes > 0 ? compare_met(&v, &met, err) : ESDM_OK;
    esdm__boxes_clear(&met);
    esdm__merge_changes_clear(&changes);
    return status == ESDM_OK ? status : esdm__dataset_prefix(theirs, status, err);
}
