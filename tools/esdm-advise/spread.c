/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* How far the members of an ensemble are from each other. */

#include "esdm-advise/propose.h"

#include <math.h>
#include <string.h>

#define EXCEED      0.1 /* share of points that are not counted, those with the least spread */
#define SPREADS     500000u
#define POINTS_MOST (UINT64_C(4) << 20) /* of a member, kept while others are read */

uint32_t
propose_member_axis(const propose_study *study, const cp_dataset *dataset)
{
    static const char *const names[] = {"realization", "realisation", "member",         "members",
                                        "ensemble",    "ens",         "number",         "member_id",
                                        "ens_mem",     "ensmember",   "ensemble_member"};
    for (uint32_t i = 0; i < dataset->rank; i++) {
        const char *name = dataset->dimensions[i]->name;
        bool is = study->options.dimension != NULL && g_str_equal(name, study->options.dimension);
        for (size_t k = 0; k < G_N_ELEMENTS(names) && study->options.dimension == NULL; k++)
            is = is || g_ascii_strcasecmp(name, names[k]) == 0;
        if (is && dataset->dimensions[i]->length > 1)
            return i;
    }
    return dataset->rank;
}

/* All members, of as much of the other axes as a block has, in the middle of them. */
static void
cut(const cp_dataset *dataset, uint32_t axis, uint64_t block_bytes, cp_slab *slab)
{
    uint64_t room = MAX(block_bytes / dataset->type->bytes / dataset->dimensions[axis]->length, 1);
    *slab = (cp_slab){.rank = dataset->rank, .elements = 1};
    for (uint32_t i = dataset->rank; i-- > 0;) {
        uint64_t length = dataset->dimensions[i]->length;
        slab->shape[i] = length;
        slab->size[i] = i == axis ? length : MIN(length, room);
        slab->offset[i] = (length - slab->size[i]) / 2;
        room = i == axis ? room : MAX(room / slab->size[i], 1);
        slab->elements *= slab->size[i];
    }
}

/* Of numbers about the first of them, so that little is lost. */
static double
spread_of(double count, double sum, double squares)
{
    return count > 1 ? sqrt(fmax((squares - sum * sum / count) / (count - 1), 0)) : 0;
}

static void
note(propose_variable *v, double spread, uint64_t points, uint64_t i)
{
    uint64_t each = points / SPREADS + 1;
    if (spread > 0 && i % each == 0)
        g_array_append_val(v->spreads, spread);
}

esdm_status
propose_spread_add(const cp_end *end, const cp_dataset *dataset, uint32_t axis,
                   uint64_t block_bytes, propose_variable *v, esdm_error *err)
{
    cp_slab slab;
    cut(dataset, axis, block_bytes, &slab);
    g_autofree void *values = g_malloc0(slab.elements * dataset->type->bytes);
    esdm_status status = cp_read(end, dataset, &slab, values, err);
    if (status != ESDM_OK)
        return status;
    g_autofree double *x = advise_doubles(dataset->type->atomic, values, slab.elements);
    g_autofree uint8_t *is_data = advise_is_data(dataset, values, x, slab.elements);
    uint64_t members = slab.size[axis], inner = 1;
    for (uint32_t i = axis + 1; i < slab.rank; i++)
        inner *= slab.size[i];
    uint64_t points = slab.elements / members;
    for (uint64_t p = 0; p < points; p++) {
        const uint64_t first = p / inner * inner * members + p % inner;
        double sum = 0, squares = 0;
        bool all = true;
        for (uint64_t m = 0; m < members; m++) {
            double d = x[first + m * inner] - x[first];
            all = all && is_data[first + m * inner];
            sum += d;
            squares += d * d;
        }
        note(v, all ? spread_of((double) members, sum, squares) : 0, points, p);
    }
    v->members = MAX(v->members, members);
    return ESDM_OK;
}

void
propose_member_add(propose_variable *v, const double *numbers, const uint8_t *is_data,
                   uint64_t count)
{
    if (v->firsts == NULL) {
        v->points = MIN(count, POINTS_MOST);
        v->firsts = g_new(double, v->points);
        v->sums = g_new0(double, v->points);
        v->squares = g_new0(double, v->points);
        for (uint64_t i = 0; i < v->points; i++)
            v->firsts[i] = is_data[i] ? numbers[i] : (double) NAN;
    }
    if (count < v->points) /* another shape */
        return;
    for (uint64_t i = 0; i < v->points; i++) {
        double d = is_data[i] ? numbers[i] - v->firsts[i] : (double) NAN;
        v->sums[i] += d;
        v->squares[i] += d * d;
    }
    v->of_members++;
}

void
propose_spread_end(propose_variable *v)
{
    for (uint64_t i = 0; i < v->points && v->of_members > 1; i++)
        note(v, spread_of((double) v->of_members, v->sums[i], v->squares[i]), v->points, i);
    v->members = MAX(v->members, v->of_members > 1 ? v->of_members : 0);
    if (v->spreads->len == 0)
        return;
    g_array_sort(v->spreads, tool_by_number);
    v->spread = g_array_index(v->spreads, double, (guint) (EXCEED * v->spreads->len));
}
