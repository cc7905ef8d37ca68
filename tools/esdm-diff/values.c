/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Comparing the elements of two datasets, slab by slab. */
#include <math.h>
#include <string.h>

#include "esdm-diff/esdm-diff.h"

/* ---- what need not be read ---------------------------------------------------------------- */

/* Places of the fragments of a dataset that meet a box. */
typedef struct places {
    const cp_slab *slab;
    GHashTable *set; /* texts */
    bool known;      /* all of them have a place that tells their content */
} places;

static bool
note_place(const esdm_fragment_info *info, void *user)
{
    places *p = user;
    g_autoptr(GString) key = g_string_new(info->pack);
    for (uint32_t d = 0; d < info->rank; d++) {
        if (info->offset[d] >= p->slab->offset[d] + p->slab->size[d] ||
            info->offset[d] + info->size[d] <= p->slab->offset[d])
            return true;
        g_string_append_printf(key,
                               " %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                               (guint64) info->offset[d], (guint64) info->size[d],
                               info->stride != NULL ? (guint64) info->stride[d] : 1);
    }
    g_string_append_printf(key, "@%" G_GUINT64_FORMAT, (guint64) info->position);
    p->known = info->pack[0] != '\0';
    g_hash_table_add(p->set, g_strdup(key->str));
    return p->known;
}

/* What no fragment covers reads as this. */
static bool
same_fill(const cp_dataset *x, const cp_dataset *y)
{
    const void *a = esdm_dataset_fill(x->from.dataset, NULL);
    const void *b = esdm_dataset_fill(y->from.dataset, NULL);
    return a != NULL && b != NULL && memcmp(a, b, x->type->bytes) == 0;
}

/* Whether both have the very same fragments in that slab: packs never change. Where there are none
 * values may be joined from other containers. */
static bool
shares_fragments(const cp_dataset *x, const cp_dataset *y, const cp_slab *slab)
{
    if (x->from.dataset == NULL || y->from.dataset == NULL || x->type->varies ||
        !cp_type_equal(x->type, y->type) || !same_fill(x, y))
        return false;
    esdm_error ignored;
    places sides[2];
    const cp_dataset *datasets[2] = {x, y};
    bool same = true;
    for (int i = 0; i < 2; i++) {
        sides[i] = (places){.slab = slab, .known = true};
        sides[i].set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        same = same &&
               esdm_dataset_fragments(datasets[i]->from.dataset, note_place, &sides[i], &ignored) ==
                   ESDM_OK &&
               sides[i].known;
    }
    guint count = g_hash_table_size(sides[0].set);
    same = same && count > 0 && count == g_hash_table_size(sides[1].set);
    GHashTableIter at;
    gpointer key;
    g_hash_table_iter_init(&at, sides[0].set);
    while (same && g_hash_table_iter_next(&at, &key, NULL))
        same = g_hash_table_contains(sides[1].set, key);
    g_hash_table_unref(sides[0].set);
    g_hash_table_unref(sides[1].set);
    return same;
}

/* ---- elements ----------------------------------------------------------------------------- */

static void
note_index(const cp_slab *slab, guint64 element, diff_values *ret)
{
    for (uint32_t d = slab->rank; d-- > 0;) {
        guint64 index = slab->offset[d] + element % slab->size[d];
        element /= slab->size[d];
        ret->first[d] = MIN(ret->first[d], index);
        ret->last[d] = MAX(ret->last[d], index);
    }
}

/* Equal numbers, and NaN with NaN, are no difference: neither are types that hold the same number.
 */
static void
compare_numbers(const cp_slab *slab, const double *x, const double *y, diff_values *ret)
{
    for (guint64 i = 0; i < slab->elements; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i])))
            continue;
        double absolute = fabs(x[i] - y[i]);
        double largest = fmax(fabs(x[i]), fabs(y[i]));
        ret->different++;
        ret->absolute = fmax(ret->absolute, isnan(absolute) ? (double) INFINITY : absolute);
        ret->relative =
            fmax(ret->relative, isfinite(absolute) ? absolute / largest : (double) INFINITY);
        note_index(slab, i, ret);
    }
}

static void
compare_others(const cp_slab *slab, const cp_dataset *x, const cp_dataset *y, const guchar *a,
               const guchar *b, diff_values *ret)
{
    for (guint64 i = 0; i < slab->elements; i++) {
        uint64_t ignored;
        if (cp_values_equal(x->type, y->type, 1, a + i * x->type->bytes, b + i * y->type->bytes,
                            &ignored))
            continue;
        ret->different++;
        note_index(slab, i, ret);
    }
}

/* Wide integers of one type, which doubles do not all tell apart. */
static void
compare_wide(const cp_slab *slab, bool is_signed, const uint64_t *x, const uint64_t *y,
             diff_values *ret)
{
    for (guint64 i = 0; i < slab->elements; i++) {
        if (x[i] == y[i])
            continue;
        bool less = is_signed ? (int64_t) x[i] < (int64_t) y[i] : x[i] < y[i];
        double absolute = (double) (less ? y[i] - x[i] : x[i] - y[i]);
        double a = is_signed ? (double) (int64_t) x[i] : (double) x[i];
        double b = is_signed ? (double) (int64_t) y[i] : (double) y[i];
        ret->different++;
        ret->absolute = fmax(ret->absolute, absolute);
        ret->relative = fmax(ret->relative, absolute / fmax(fabs(a), fabs(b)));
        note_index(slab, i, ret);
    }
}

/* Types whose numbers a double holds, or nearly so. */
static bool
is_number(const cp_type *type)
{
    return type->path == NULL && type->atomic != ESDM_TYPE_CHAR && type->atomic != ESDM_TYPE_STRING;
}

static bool
is_wide(const cp_type *type)
{
    return type->atomic == ESDM_TYPE_INT64 || type->atomic == ESDM_TYPE_UINT64;
}

static esdm_status
convert(const cp_type *type, const void *from, guint64 count, double *to, esdm_error *err)
{
    uint64_t ignored;
    return esdm_convert(type->atomic, from, ESDM_TYPE_FLOAT64, to, count, &ignored, err);
}

static esdm_status
compare_slab(const cp_dataset *x, const cp_dataset *y, const cp_slab *slab, const void *a,
             const void *b, double *const numbers[2], diff_values *ret, esdm_error *err)
{
    if (cp_type_equal(x->type, y->type) && !x->type->varies &&
        memcmp(a, b, slab->elements * x->type->bytes) == 0)
        return ESDM_OK;
    if (numbers[0] == NULL) {
        compare_others(slab, x, y, a, b, ret);
        return ESDM_OK;
    }
    if (is_wide(x->type) && x->type->atomic == y->type->atomic) {
        compare_wide(slab, x->type->atomic == ESDM_TYPE_INT64, a, b, ret);
        return ESDM_OK;
    }
    esdm_status status = convert(x->type, a, slab->elements, numbers[0], err);
    if (status == ESDM_OK)
        status = convert(y->type, b, slab->elements, numbers[1], err);
    if (status != ESDM_OK)
        return status;
    compare_numbers(slab, numbers[0], numbers[1], ret);
    return ESDM_OK;
}

esdm_status
diff_values_compare(const cp_end *a, const cp_dataset *x, const cp_end *b, const cp_dataset *y,
                    diff_values *ret, esdm_error *err)
{
    cp_dimension common[ESDM_MAX_RANK];
    cp_dataset box = *x;
    cp_slab slab;
    esdm_status status = ESDM_OK;
    *ret = (diff_values){.numbers = is_number(x->type) && is_number(y->type)};
    for (uint32_t d = 0; d < x->rank; d++) {
        common[d] = *x->dimensions[d];
        common[d].length = MIN(x->dimensions[d]->length, y->dimensions[d]->length);
        box.dimensions[d] = &common[d];
        ret->first[d] = G_MAXUINT64;
    }
    cp_slab_init(&slab, &box);
    gsize room = slab.most_elements;
    guchar *values[2] = {g_malloc0(MAX(room * x->type->bytes, 1)),
                         g_malloc0(MAX(room * y->type->bytes, 1))};
    double *numbers[2] = {NULL, NULL};
    for (int i = 0; i < 2 && ret->numbers; i++)
        numbers[i] = g_new(double, MAX(room, 1));
    while (status == ESDM_OK && cp_slab_next(&slab)) {
        ret->compared += slab.elements;
        if (shares_fragments(x, y, &slab))
            continue;
        status = cp_read(a, x, &slab, values[0], err);
        bool first = status == ESDM_OK;
        if (status == ESDM_OK)
            status = cp_read(b, y, &slab, values[1], err);
        if (status == ESDM_OK) {
            ret->read_bytes += slab.elements * x->type->bytes;
            status = compare_slab(x, y, &slab, values[0], values[1], numbers, ret, err);
        }
        if (first)
            cp_values_clear(x->type, slab.elements, values[0]);
        if (status == ESDM_OK)
            cp_values_clear(y->type, slab.elements, values[1]);
    }
    for (int i = 0; i < 2; i++) {
        g_free(values[i]);
        g_free(numbers[i]);
    }
    return status;
}
