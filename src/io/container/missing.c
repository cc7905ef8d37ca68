/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/missing.h"

#include <strings.h>

#include "base/error.h"
#include "codec/tally.h"
#include "io/container/accuracy.h"

esdm_type
esdm__type_of_readers(const esdm_dataset *dataset)
{
    static const esdm_type natural[][2] = {{ESDM_TYPE_INT8, ESDM_TYPE_UINT8},
                                           {ESDM_TYPE_INT16, ESDM_TYPE_UINT16},
                                           {ESDM_TYPE_INT32, ESDM_TYPE_UINT32},
                                           {ESDM_TYPE_INT64, ESDM_TYPE_UINT64}};
    char text[8];
    for (size_t i = 0; i < 4; i++) {
        if (natural[i][0] != dataset->type)
            continue;
        esdm__attribute_text(dataset, "_Unsigned", text, sizeof text);
        if (strcasecmp(text, "true") == 0)
            return natural[i][1];
    }
    return dataset->type;
}

/* Numbers of an attribute. What the type does not have no value can be; one of the dataset's type
 * stands for what readers take the dataset's numbers for. */
static void
add_attribute(const esdm_dataset *dataset, const char *name, esdm__missing *missing)
{
    esdm_attribute attribute;
    if (!esdm_attribute_find(&dataset->attributes, name, &attribute, NULL) ||
        esdm__class_of(attribute.type) == ESDM__CLASS_NONE)
        return;
    size_t bytes = esdm_type_size(attribute.type);
    esdm_type type = attribute.type == dataset->type ? dataset->type : missing->type;
    for (uint64_t i = 0; i < attribute.count && missing->class != ESDM__CLASS_NONE; i++) {
        uint64_t value = 0;
        uint64_t misfits = 0;
        const char *from = (const char *) attribute.values + i * bytes;
        if (esdm_convert(attribute.type, from, type, &value, 1, &misfits, NULL) == ESDM_OK &&
            misfits == 0)
            esdm__missing_add(missing, esdm__number_of(missing->type, &value));
    }
}

void
esdm__missing_of(const esdm_dataset *dataset, esdm__missing *ret)
{
    bool is_default = false;
    const esdm_type type = esdm__type_of_readers(dataset);
    *ret = (esdm__missing){.class = esdm__class_of(type), .type = type};
    if (ret->class == ESDM__CLASS_NONE)
        return;
    const void *fill = esdm_dataset_fill(dataset, &is_default);
    if (!is_default || esdm_type_size(dataset->type) > 1)
        esdm__missing_add(ret, esdm__number_of(type, fill));
    add_attribute(dataset, "_FillValue", ret);
    add_attribute(dataset, "missing_value", ret);
    ret->rule = esdm__missing_rule(ret);
}

esdm_status
esdm__missing_of_reduced(const esdm_dataset *dataset, esdm__missing *ret, esdm_error *err)
{
    esdm__missing_of(dataset, ret);
    if (ret->class != ESDM__CLASS_NONE)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "only numbers can be reduced, of which at most %u values stand for "
                           "missing ones",
                           ESDM__MISSING_MOST);
}
