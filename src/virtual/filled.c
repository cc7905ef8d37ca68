/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Values of elements that no member has: those of the coordinate and its bounds follow from
 * the step, all others are missing. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/copy.h"
#include "virtual/parts.h"

typedef enum part_in { COORDINATE, BOUNDS, DATA } part_in;

static part_in
role_of(const esdm__axis *axis, const esdm_dataset *dataset)
{
    if (dataset->group->parent != NULL)
        return DATA;
    if (dataset->rank == 1 && strcmp(dataset->name, axis->name) == 0)
        return COORDINATE;
    return dataset->rank == 2 && strcmp(dataset->name, axis->bounds_name) == 0 ? BOUNDS : DATA;
}

/* A key in the numbers of the whole. */
static double
number_of(const esdm__meaning *whole, double key)
{
    double number = key;
    double day = floor(key / 86400000.);
    esdm__instant when = {(int64_t) day, (int64_t) (key - day * 86400000.) * 1000000};
    if (whole->is_time)
        (void) esdm__time_encode(&whole->time, when, &number);
    return number;
}

/* Whether a type holds the numbers of some keys. */
static bool
type_holds(const esdm__meaning *whole, const double *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t room = 0;
        double number = number_of(whole, keys[i]);
        double back = 0;
        if (esdm_convert(ESDM_TYPE_FLOAT64, &number, whole->type, &room, 1, NULL, NULL) !=
                ESDM_OK ||
            esdm_convert(whole->type, &room, ESDM_TYPE_FLOAT64, &back, 1, NULL, NULL) != ESDM_OK ||
            back != number)
            return false;
    }
    return true;
}

static esdm_status
prepare_coordinate(const esdm__axis *axis, part_in role, esdm_dataset *dataset,
                   esdm__joined *joined, esdm_error *err)
{
    const double *keys = role == BOUNDS ? axis->bounds : axis->filled;
    size_t count = role == BOUNDS ? 2 * axis->nfilled : axis->nfilled;
    if (joined->whole.packed)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "the coordinate '%s' is packed: its gaps are not filled by this "
                               "version",
                               dataset->name);
    if (type_holds(&joined->whole, keys, count))
        return ESDM_OK;
    joined->whole.type = ESDM_TYPE_FLOAT64;
    return esdm__joined_retype(dataset, &joined->whole, false, err);
}

esdm_status
esdm__filled_prepare(const esdm__virtual *whole, esdm_dataset *dataset, esdm__joined *joined,
                     esdm_error *err)
{
    part_in role = role_of(&whole->axis, dataset);
    esdm__meaning *meaning = &joined->whole;
    if (role != DATA)
        return prepare_coordinate(&whole->axis, role, dataset, joined, err);
    if (meaning->has_fill || meaning->nmarks > 0) {
        if (esdm_attribute_find(&dataset->attributes, "_FillValue", NULL, NULL) ||
            esdm_attribute_find(&dataset->attributes, "missing_value", NULL, NULL))
            return ESDM_OK;
    } else if (esdm_type_size(dataset->type) < 2) {
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' has bytes without a _FillValue: nothing stands for "
                               "values that are missing, so gaps cannot be filled",
                               dataset->name);
    }
    if (dataset->type == ESDM_TYPE_INT64 || dataset->type == ESDM_TYPE_UINT64) {
        const void *fill = esdm_dataset_fill(dataset, NULL);
        return esdm_attribute_set(&dataset->attributes, "_FillValue", dataset->type, 1, fill, err);
    }
    esdm_status status = ESDM_OK;
    if (meaning->nmarks == 0)
        status = esdm_convert(dataset->type, esdm_dataset_fill(dataset, NULL), ESDM_TYPE_FLOAT64,
                              &meaning->fill, 1, NULL, err);
    meaning->has_fill = true; /* what was understood is said now */
    return status == ESDM_OK ? esdm__joined_retype(dataset, meaning, false, err) : status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static esdm_status
fill_texts(const esdm_dataspace *piece, const int64_t *stride, char **to, esdm_error *err)
{
    uint64_t count = esdm_dataspace_elements(piece);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t rest = i;
        char **text = to;
        for (uint32_t d = piece->rank; d-- > 0; rest /= piece->size[d])
            text += (int64_t) (rest % piece->size[d]) * stride[d];
        *text = strdup("");
        if (*text == NULL)
            return esdm__error_nomem(err, 1, "a text");
    }
    return ESDM_OK;
}

/* One value everywhere. */
static esdm_status
fill_values(const esdm_dataset *dataset, const esdm__meaning *meaning, const esdm_dataspace *piece,
            esdm_type memory_type, void *buffer, const int64_t *stride, uint64_t *ret_out_of_range,
            esdm_error *err)
{
    static const int64_t same[ESDM_MAX_RANK];
    uint64_t room = 0;
    const void *fill = esdm_dataset_fill(dataset, NULL);
    bool is_integer64 = dataset->type == ESDM_TYPE_INT64 || dataset->type == ESDM_TYPE_UINT64;
    if (esdm__meaning_is_number(dataset->type) && !is_integer64) {
        esdm_status status =
            esdm_convert(ESDM_TYPE_FLOAT64, &meaning->fill, dataset->type, &room, 1, NULL, err);
        if (status != ESDM_OK)
            return status;
        fill = &room;
    }
    if (fill == NULL)
        fill = &room; /* characters: NUL */
    esdm__copy_by_rules_nd(dataset->group->container->conversion, false, piece->rank, piece->size,
                           dataset->type, fill, same, memory_type, buffer, stride,
                           ret_out_of_range);
    return ESDM_OK;
}

/* Of the coordinate or its bounds. */
static esdm_status
fill_coordinates(const esdm__virtual *whole, const esdm_dataset *dataset,
                 const esdm_dataspace *piece, esdm_type memory_type, void *buffer,
                 const int64_t *stride, uint64_t *ret_out_of_range, esdm_error *err)
{
    const esdm__axis *axis = &whole->axis;
    const esdm__meaning *meaning = &esdm__joined_of(whole, dataset)->whole;
    uint64_t ends = piece->rank == 2 ? piece->size[1] : 1;
    uint64_t count = piece->size[0] * ends;
    int64_t dense[ESDM_MAX_RANK];
    double *values = malloc((size_t) (count + 1) * sizeof *values);
    if (values == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof *values, "a read");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t step = piece->has_stride ? piece->stride[0] : 1;
        uint64_t at = piece->offset[0] + i / ends * step;
        uint64_t end = piece->rank == 2 ? piece->offset[1] + i % ends : 0;
        values[i] =
            number_of(meaning, piece->rank == 2 ? axis->bounds[2 * at + end] : axis->filled[at]);
    }
    esdm__dense_strides(piece->rank, piece->size, dense);
    esdm__copy_by_rules_nd(dataset->group->container->conversion, false, piece->rank, piece->size,
                           ESDM_TYPE_FLOAT64, values, dense, memory_type, buffer, stride,
                           ret_out_of_range);
    free(values);
    return ESDM_OK;
}

esdm_status
esdm__filled_read(const esdm__virtual *whole, const esdm_dataset *dataset, uint32_t axis,
                  const esdm_dataspace *piece, esdm_type memory_type, void *buffer,
                  uint64_t *ret_out_of_range, esdm_error *err)
{
    int64_t stride[ESDM_MAX_RANK];
    esdm__space_memory_strides(piece, stride);
    if (memory_type == ESDM_TYPE_STRING)
        return fill_texts(piece, stride, buffer, err);
    if (axis == 0 && role_of(&whole->axis, dataset) != DATA)
        return fill_coordinates(whole, dataset, piece, memory_type, buffer, stride,
                                ret_out_of_range, err);
    return fill_values(dataset, &esdm__joined_of(whole, dataset)->whole, piece, memory_type, buffer,
                       stride, ret_out_of_range, err);
}
