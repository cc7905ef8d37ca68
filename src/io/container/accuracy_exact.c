/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Which values of a dataset keep their bits: its fill value, and what attributes and statements
 * name. */

#include <string.h>

#include "base/error.h"
#include "io/container/accuracy.h"
#include "model/accuracy.h"
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
    esdm_status status = ESDM_OK;
    for (uint64_t i = 0; i < attribute.count && status == ESDM_OK; i++) {
        uint64_t value = 0;
        uint64_t misfits = 0;
        status = esdm_convert(attribute.type, (const char *) attribute.values + i * bytes,
                              dataset->type, &value, 1, &misfits, err);
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
