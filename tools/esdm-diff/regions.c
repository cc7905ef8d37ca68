/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Where two datasets can differ at all: within fragments that only one of them has. */

#include <string.h>

#include "esdm-diff/esdm-diff.h"

/* Newer fragments that are taken away from one: each may leave several pieces. */
#define HIDERS_MOST 64u

/* ---- fragments ---------------------------------------------------------------------------- */

/* A fragment at a place of its own. */
typedef struct held {
    diff_box box;
    guint64 sequence;
    gboolean dense;
} held;

/* A set of places: pack, position, box and steps. Packs never change. */
typedef struct places {
    const diff_box *all; /* what is compared */
    uint32_t rank;
    struct places *other; /* NULL: this is the first one */
    GHashTable *own;      /* texts to held; those that are in the other's as well leave both */
    GArray *shared;       /* held: dense ones that both have, with the sequence of this side */
    GArray *boxes;        /* of fragments that no place tells from others */
    guint64 found;        /* fragments in both */
} places;

static diff_box
box_of(const esdm_fragment_info *info)
{
    diff_box box;
    memset(&box, 0, sizeof box);
    for (uint32_t d = 0; d < info->rank; d++) {
        box.lo[d] = info->offset[d];
        box.n[d] = info->size[d];
    }
    return box;
}

/* What lies within what is compared. */
static bool
clip(diff_box *box, const diff_box *all, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (box->lo[d] >= all->n[d] || box->n[d] == 0)
            return false;
        box->n[d] = MIN(box->n[d], all->n[d] - box->lo[d]);
    }
    return true;
}

static char *
place_of(const esdm_fragment_info *info)
{
    GString *key = g_string_new(info->pack);
    for (uint32_t d = 0; d < info->rank; d++)
        g_string_append_printf(key,
                               " %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                               (guint64) info->offset[d], (guint64) info->size[d],
                               info->stride != NULL ? (guint64) info->stride[d] : 1);
    g_string_append_printf(key, "@%" G_GUINT64_FORMAT, (guint64) info->position);
    return g_string_free(key, FALSE);
}

static bool
note_place(const esdm_fragment_info *info, void *user)
{
    places *p = user;
    diff_box box = box_of(info);
    if (!clip(&box, p->all, p->rank))
        return true;
    if (info->pack[0] == '\0') {
        g_array_append_val(p->boxes, box);
        return true;
    }
    char *key = place_of(info);
    const held one = {box, info->sequence, info->stride == NULL};
    const held *same = p->other != NULL ? g_hash_table_lookup(p->other->own, key) : NULL;
    if (same != NULL) {
        if (one.dense) {
            g_array_append_vals(p->other->shared, same, 1);
            g_array_append_val(p->shared, one);
        }
        g_hash_table_remove(p->other->own, key);
        p->found++;
        g_free(key);
        return true;
    }
    g_hash_table_insert(p->own, key, g_memdup2(&one, sizeof one));
    return true;
}

/* ---- boxes that do not meet --------------------------------------------------------------- */

/* For g_array_sort_with_data(): by the axis that is merged last. */
typedef struct order {
    uint32_t rank;
    uint32_t axis;
} order;

static gint
by_axis(gconstpointer a, gconstpointer b, gpointer user)
{
    const order *o = user;
    const diff_box *x = a, *y = b;
    for (uint32_t d = 0; d < o->rank; d++) {
        if (d == o->axis)
            continue;
        if (x->lo[d] != y->lo[d])
            return x->lo[d] < y->lo[d] ? -1 : 1;
        if (x->n[d] != y->n[d])
            return x->n[d] < y->n[d] ? -1 : 1;
    }
    if (x->lo[o->axis] != y->lo[o->axis])
        return x->lo[o->axis] < y->lo[o->axis] ? -1 : 1;
    return 0;
}

/* Boxes of equal extent that follow each other, or meet, along an axis become one. */
static void
merge_along(GArray *boxes, uint32_t rank, uint32_t axis)
{
    order o = {rank, axis};
    guint kept = 0;
    g_array_sort_with_data(boxes, by_axis, &o);
    for (guint i = 0; i < boxes->len; i++) {
        const diff_box box = g_array_index(boxes, diff_box, i);
        diff_box *last = kept > 0 ? &g_array_index(boxes, diff_box, kept - 1) : NULL;
        bool joins = last != NULL && box.lo[axis] <= last->lo[axis] + last->n[axis];
        for (uint32_t d = 0; d < rank && joins; d++)
            joins = d == axis || (box.lo[d] == last->lo[d] && box.n[d] == last->n[d]);
        if (joins)
            last->n[axis] = MAX(last->n[axis], box.lo[axis] + box.n[axis] - last->lo[axis]);
        else
            g_array_index(boxes, diff_box, kept++) = box;
    }
    g_array_set_size(boxes, kept);
}

static bool
meet(const diff_box *a, const diff_box *b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (a->lo[d] >= b->lo[d] + b->n[d] || b->lo[d] >= a->lo[d] + a->n[d])
            return false;
    }
    return true;
}

/* Adds what of a box none of the others holds. */
static void
add_apart(GArray *apart, guint from, const diff_box *box, uint32_t rank)
{
    guint i = from;
    while (i < apart->len && !meet(&g_array_index(apart, diff_box, i), box, rank))
        i++;
    if (i == apart->len) {
        g_array_append_vals(apart, box, 1);
        return;
    }
    const diff_box other = g_array_index(apart, diff_box, i);
    diff_box rest = *box;
    for (uint32_t d = 0; d < rank; d++) {
        diff_box part = rest;
        guint64 end = rest.lo[d] + rest.n[d];
        guint64 low = MAX(rest.lo[d], other.lo[d]);
        guint64 high = MIN(end, other.lo[d] + other.n[d]);
        part.n[d] = low - rest.lo[d];
        if (part.n[d] > 0)
            add_apart(apart, i + 1, &part, rank);
        part.lo[d] = high;
        part.n[d] = end - high;
        if (part.n[d] > 0)
            add_apart(apart, i + 1, &part, rank);
        rest.lo[d] = low;
        rest.n[d] = high - low;
    }
}

static gint
by_first_axis(gconstpointer a, gconstpointer b)
{
    const diff_box *x = a, *y = b;
    return x->lo[0] < y->lo[0] ? -1 : x->lo[0] > y->lo[0];
}

/* @param boxes are freed. */
static GArray *
apart(GArray *boxes, uint32_t rank)
{
    GArray *result = g_array_new(FALSE, FALSE, sizeof(diff_box));
    guint from = 0;
    for (uint32_t axis = rank; axis-- > 0;)
        merge_along(boxes, rank, axis);
    if (rank > 0)
        g_array_sort(boxes, by_first_axis);
    for (guint i = 0; i < boxes->len && (rank > 0 || i == 0); i++) {
        const diff_box *box = &g_array_index(boxes, diff_box, i);
        /* Those that end before this one begins meet none that follows. */
        for (; from < result->len && rank > 0; from++) {
            const diff_box *done = &g_array_index(result, diff_box, from);
            if (done->lo[0] + done->n[0] > box->lo[0])
                break;
        }
        add_apart(result, from, box, rank);
    }
    g_array_unref(boxes);
    return result;
}

/* ---- what can be seen --------------------------------------------------------------------- */

/* The first of some that are ordered by their first axis which may reach `low` there. */
static guint
first_that_reaches(const GArray *ordered, guint64 low, guint64 longest)
{
    guint from = 0, to = ordered->len;
    while (from < to) {
        guint middle = from + (to - from) / 2;
        if (g_array_index(ordered, held, middle).box.lo[0] + longest > low)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* Of fragments that one side alone has: what newer ones that both have leave to be seen. What these
 * hide cannot differ; the other side has merely forgotten it. */
static void
take_boxes(const places *p, GArray *boxes)
{
    GHashTableIter at;
    gpointer value;
    guint64 longest = 0;
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(diff_box));
    for (guint i = 0; i < p->shared->len && p->rank > 0; i++)
        longest = MAX(longest, g_array_index(p->shared, held, i).box.n[0]);
    if (p->rank > 0)
        g_array_sort(p->shared, by_first_axis);
    g_hash_table_iter_init(&at, p->own);
    while (g_hash_table_iter_next(&at, NULL, &value)) {
        const held *one = value;
        guint i = p->rank > 0 ? first_that_reaches(p->shared, one->box.lo[0], longest) : 0;
        g_array_set_size(seen, 0);
        for (; i < p->shared->len && seen->len < HIDERS_MOST; i++) {
            const held *other = &g_array_index(p->shared, held, i);
            if (p->rank > 0 && other->box.lo[0] >= one->box.lo[0] + one->box.n[0])
                break;
            if (other->sequence > one->sequence && meet(&other->box, &one->box, p->rank))
                g_array_append_val(seen, other->box);
        }
        guint hiders = seen->len;
        add_apart(seen, 0, &one->box, p->rank);
        for (i = hiders; i < seen->len; i++)
            g_array_append_val(boxes, g_array_index(seen, diff_box, i));
    }
}

/* ---- both --------------------------------------------------------------------------------- */

/* What no fragment covers reads as this. */
static bool
same_fill(const cp_dataset *x, const cp_dataset *y)
{
    const void *a = esdm_dataset_fill(x->from.dataset, NULL);
    const void *b = esdm_dataset_fill(y->from.dataset, NULL);
    return a != NULL && b != NULL && memcmp(a, b, x->type->bytes) == 0;
}

/* What is put together from other containers has no fragments of its own. */
static bool
has_fragments(const cp_end *end, const cp_dataset *dataset)
{
    return dataset->from.dataset != NULL && end->container != NULL &&
           esdm_container_snapshot(end->container) > 0;
}

GArray *
diff_regions(const cp_end *a, const cp_dataset *x, const cp_end *b, const cp_dataset *y,
             const diff_box *all)
{
    esdm_error ignored;
    if (!has_fragments(a, x) || !has_fragments(b, y) || x->type->varies ||
        !cp_type_equal(x->type, y->type) || !same_fill(x, y))
        return NULL;
    GArray *boxes = g_array_new(FALSE, FALSE, sizeof(diff_box));
    places sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = (places){.all = all, .rank = x->rank, .boxes = boxes};
        sides[i].own = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        sides[i].shared = g_array_new(FALSE, FALSE, sizeof(held));
    }
    sides[1].other = &sides[0];
    bool known =
        esdm_dataset_fragments(x->from.dataset, note_place, &sides[0], &ignored) == ESDM_OK &&
        esdm_dataset_fragments(y->from.dataset, note_place, &sides[1], &ignored) == ESDM_OK;
    for (int i = 0; i < 2; i++)
        take_boxes(&sides[i], boxes);
    /* Without any in common the slabs that fit the chunks are better. */
    known = known && (sides[1].found > 0 || boxes->len == 0);
    for (int i = 0; i < 2; i++) {
        g_hash_table_unref(sides[i].own);
        g_array_unref(sides[i].shared);
    }
    if (known)
        return apart(boxes, x->rank);
    g_array_unref(boxes);
    return NULL;
}
