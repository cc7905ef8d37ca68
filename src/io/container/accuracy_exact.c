/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Which values of a dataset keep their bits: its fill value, and what attributes and statements
 * name; and within which limits numbers stay. */

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "codec/tally.h"
#include "io/container/accuracy.h"
#include "io/container/missing.h"
#include "model/accuracy.h"
#include "model/container.h"
#include "model/convert.h"

static esdm_status
add_exact(const esdm_dataset *dataset, esdm__accuracy *a, const void *value, esdm_error *err)
{
    size_t bytes = esdm_type_size(dataset->type);
    char *list = (char *) a->exact;
    for (uint32_t i = 0; i < a->codec.exact_count; i++)
        if (memcmp(list + i * bytes, value, bytes) == 0)
            return ESDM_OK;
    if (a->codec.exact_count == ESDM__EXACT_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "more than %u values are to be kept exactly",
                               ESDM__EXACT_MAX);
    memcpy(list + a->codec.exact_count * bytes, value, bytes);
    a->codec.exact_count++;
    return ESDM_OK;
}

/* Values of an attribute such as missing_value. What the type does not have no number can be. */
static esdm_status
add_attribute(const esdm_dataset *dataset, const char *name, esdm__accuracy *a, esdm_error *err)
{
    esdm_attribute attribute;
    const esdm_attributes *list = &dataset->attributes;
    if (!esdm_attribute_find((esdm_attributes *) (uintptr_t) list, name, &attribute, NULL) ||
        !esdm__accuracy_has_type(attribute.type))
        return ESDM_OK;
    size_t bytes = esdm_type_size(attribute.type);
    esdm_type type =
        attribute.type == dataset->type ? attribute.type : esdm__type_of_readers(dataset);
    esdm_status status = ESDM_OK;
    for (uint64_t i = 0; i < attribute.count && status == ESDM_OK; i++) {
        uint64_t value = 0;
        uint64_t misfits = 0;
        status = esdm_convert(attribute.type, (const char *) attribute.values + i * bytes, type,
                              &value, 1, &misfits, err);
        if (status == ESDM_OK && misfits == 0)
            status = add_exact(dataset, a, &value, err);
        if (status != ESDM_OK)
            return esdm__error_prefix(err, status, "attribute '%s'", name);
    }
    return status;
}

static esdm_status
add_stated(const esdm_dataset *dataset, const esdm_accuracy *stated, esdm__accuracy *a,
           esdm_error *err)
{
    for (uint32_t i = 0; i < stated->exact_count; i++) {
        uint64_t value = 0;
        uint64_t misfits = 0;
        esdm_status status = esdm_convert(ESDM_TYPE_FLOAT64, &stated->exact_values[i],
                                          dataset->type, &value, 1, &misfits, err);
        if (status == ESDM_OK && misfits > 0)
            status = esdm__error_set(err, ESDM_EINVAL, "exact_values: %g is no number of type %s",
                                     stated->exact_values[i], esdm_type_name(dataset->type));
        if (status == ESDM_OK)
            status = add_exact(dataset, a, &value, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* ---- limits ------------------------------------------------------------------------------- */

static long double
wide_of(esdm_type type, const void *value)
{
    return esdm__number_wide(esdm__class_of(type), esdm__number_of(type, value));
}

/* Off from a whole number by less, a packed limit is that one. */
#define NEARLY 1e-6

/* Whether a limit of integers is a float: as it is, or, as NetCDF's conventions have it, of what
 * they are unpacked to. */
static bool
is_unpacked(const esdm_dataset *dataset, esdm_type type)
{
    bool is_float = dataset->type == ESDM_TYPE_FLOAT32 || dataset->type == ESDM_TYPE_FLOAT64;
    return !is_float && (type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64);
}

static long double
packed(const esdm_dataset *dataset, esdm_type type, const void *value)
{
    double scale = esdm__accuracy_number(dataset, "scale_factor", 1);
    double offset = esdm__accuracy_number(dataset, "add_offset", 0);
    double limit = ((double) wide_of(type, value) - offset) / scale;
    return (long double) (fabs(limit - rint(limit)) < NEARLY ? rint(limit) : limit);
}

/* A number of an attribute that has `count`, as readers compare it; `none` when there is none. One
 * of the dataset's type stands for what readers take the dataset's numbers for. */
static long double
limit_of(const esdm_dataset *dataset, const char *name, uint64_t count, uint64_t i,
         long double none)
{
    const esdm_type type = esdm__type_of_readers(dataset);
    esdm_attribute attribute;
    const esdm_attributes *list = &dataset->attributes;
    uint64_t value = 0;
    uint64_t misfits = 0;
    if (!esdm_attribute_find((esdm_attributes *) (uintptr_t) list, name, &attribute, NULL) ||
        !esdm__accuracy_has_type(attribute.type) || attribute.count != count)
        return none;
    const char *at = (const char *) attribute.values + i * esdm_type_size(attribute.type);
    const bool unpacked = is_unpacked(dataset, attribute.type);
    if (!unpacked && (esdm_convert(attribute.type == dataset->type ? type : attribute.type, at,
                                   type, &value, 1, &misfits, NULL) != ESDM_OK ||
                      misfits > 0))
        return none;
    long double limit = unpacked ? packed(dataset, attribute.type, at) : wide_of(type, &value);
    return isfinite(limit) ? limit : none;
}

/* Whether the largest number of those that an attribute is of is stored as the least one. */
static bool
is_turned(const esdm_dataset *dataset, const char *name)
{
    esdm_attribute attribute;
    const esdm_attributes *list = &dataset->attributes;
    return esdm_attribute_find((esdm_attributes *) (uintptr_t) list, name, &attribute, NULL) &&
           is_unpacked(dataset, attribute.type) &&
           esdm__accuracy_number(dataset, "scale_factor", 1) < 0;
}

void
esdm__limits_of(const esdm_dataset *dataset, esdm__limits *limits)
{
    const long double all = (long double) INFINITY;
    limits->natural = esdm__type_of_readers(dataset) != dataset->type;
    const long double least = limits->natural ? 0 : -all;
    bool turned = is_turned(dataset, "valid_range");
    limits->low = limit_of(dataset, "valid_range", 2, turned ? 1 : 0, least);
    limits->high = limit_of(dataset, "valid_range", 2, turned ? 0 : 1, all);
    if (!(limits->low > least || limits->high < all)) {
        turned = is_turned(dataset, "valid_min") || is_turned(dataset, "valid_max");
        limits->low = limit_of(dataset, turned ? "valid_max" : "valid_min", 1, 0, least);
        limits->high = limit_of(dataset, turned ? "valid_min" : "valid_max", 1, 0, all);
    }
    if (!(limits->low <= limits->high)) { /* nothing is within */
        limits->low = least;
        limits->high = all;
    }
}

esdm_status
esdm__accuracy_collect_exact(const esdm_dataset *dataset, const esdm_accuracy *stated,
                             esdm__accuracy *a, esdm_error *err)
{
    a->codec.exact_values = a->exact;
    esdm_status status = add_exact(dataset, a, esdm_dataset_fill(dataset, NULL), err);
    if (status == ESDM_OK)
        status = add_attribute(dataset, "_FillValue", a, err);
    if (status == ESDM_OK)
        status = add_attribute(dataset, "missing_value", a, err);
    if (status == ESDM_OK && (stated->stated & ESDM_ACCURACY_EXACT_VALUES) != 0)
        status = add_stated(dataset, stated, a, err);
    return status;
}
