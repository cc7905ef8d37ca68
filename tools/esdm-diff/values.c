/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Comparing the elements of two datasets, slab by slab. */
#include <math.h>
#include <string.h>

#include "esdm-diff/esdm-diff.h"

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

/* ---- both --------------------------------------------------------------------------------- */

typedef struct comparison {
    const cp_end *ends[2];
    const cp_dataset *datasets[2];
    guchar *values[2];  /* owned */
    double *numbers[2]; /* owned; NULL: the types are no numbers */
    guint64 room;       /* elements */
    diff_values *result;
} comparison;

static esdm_status
read_slab(comparison *c, const cp_slab *slab, esdm_error *err)
{
    const cp_dataset *x = c->datasets[0], *y = c->datasets[1];
    esdm_status status = cp_read(c->ends[0], x, slab, c->values[0], err);
    bool first = status == ESDM_OK;
    if (status == ESDM_OK)
        status = cp_read(c->ends[1], y, slab, c->values[1], err);
    bool second = first && status == ESDM_OK;
    if (second) {
        c->result->read_bytes += slab->elements * x->type->bytes;
        status = compare_slab(x, y, slab, c->values[0], c->values[1], c->numbers, c->result, err);
    }
    if (first)
        cp_values_clear(x->type, slab->elements, c->values[0]);
    if (second)
        cp_values_clear(y->type, slab->elements, c->values[1]);
    return status;
}

/* In parts that fit, along the slowest axes. */
static esdm_status
read_box(comparison *c, const diff_box *box, esdm_error *err)
{
    cp_slab slab = {.rank = c->datasets[0]->rank, .elements = 1};
    uint32_t axis = 0;
    for (uint32_t d = 0; d < slab.rank; d++) {
        slab.shape[d] = c->datasets[0]->dimensions[d]->length;
        slab.offset[d] = box->lo[d];
        slab.size[d] = slab.step[d] = box->n[d];
        slab.elements *= box->n[d];
    }
    while (axis < slab.rank && box->n[axis] == 1)
        axis++;
    if (slab.elements <= c->room || axis == slab.rank)
        return read_slab(c, &slab, err);
    diff_box low = *box, high = *box;
    low.n[axis] /= 2;
    high.lo[axis] += low.n[axis];
    high.n[axis] -= low.n[axis];
    esdm_status status = read_box(c, &low, err);
    return status == ESDM_OK ? read_box(c, &high, err) : status;
}

static esdm_status
read_boxes(comparison *c, const GArray *boxes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < boxes->len && status == ESDM_OK; i++)
        status = read_box(c, &g_array_index(boxes, diff_box, i), err);
    return status;
}

esdm_status
diff_values_compare(const cp_end *a, const cp_dataset *x, const cp_end *b, const cp_dataset *y,
                    diff_values *ret, esdm_error *err)
{
    cp_dimension common[ESDM_MAX_RANK];
    cp_dataset box = *x;
    diff_box all;
    cp_slab slab;
    comparison c = {.ends = {a, b}, .datasets = {x, y}, .result = ret};
    esdm_status status = ESDM_OK;
    *ret = (diff_values){.numbers = is_number(x->type) && is_number(y->type), .compared = 1};
    for (uint32_t d = 0; d < x->rank; d++) {
        common[d] = *x->dimensions[d];
        common[d].length = MIN(x->dimensions[d]->length, y->dimensions[d]->length);
        box.dimensions[d] = &common[d];
        ret->first[d] = G_MAXUINT64;
        all.lo[d] = 0;
        all.n[d] = common[d].length;
        ret->compared *= common[d].length;
    }
    cp_slab_init(&slab, &box);
    c.room = slab.most_elements;
    for (int i = 0; i < 2; i++) {
        c.values[i] = g_malloc0(MAX(c.room * c.datasets[i]->type->bytes, 1));
        c.numbers[i] = ret->numbers ? g_new(double, MAX(c.room, 1)) : NULL;
    }
    g_autoptr(GArray) regions = ret->compared > 0 ? diff_regions(a, x, b, y, &all) : NULL;
    if (regions != NULL)
        status = read_boxes(&c, regions, err);
    while (regions == NULL && status == ESDM_OK && cp_slab_next(&slab))
        status = read_slab(&c, &slab, err);
    for (int i = 0; i < 2; i++) {
        g_free(c.values[i]);
        g_free(c.numbers[i]);
    }
    return status;
}
