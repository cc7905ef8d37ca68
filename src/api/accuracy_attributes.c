/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Attributes with which programs state the accuracy of a dataset, and those that tell readers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/accuracy_attributes.h"
#include "esdm/placement.h"
#include "model/accuracy.h"
#include "model/container.h"

#define PREFIX       "esdm_"
#define PREFIX_BYTES (sizeof PREFIX - 1)
#define VALUE_BYTES  1024

bool
esdm_accuracy_is_attribute(const char *name)
{
    return name != NULL && strncmp(name, PREFIX, PREFIX_BYTES) == 0 &&
           strcmp(name, ESDM_ACCURACY_STORED_ATTRIBUTE) != 0 &&
           strcmp(name, ESDM_ACCESS_ATTRIBUTE) != 0; /* that is about fragments */
}

uint32_t
esdm_accuracy_attribute_quantity(const char *name)
{
    return esdm_accuracy_is_attribute(name) ? esdm__accuracy_flag(name + PREFIX_BYTES) : 0;
}

/* ---- attributes as texts -------------------------------------------------------------------- */

/* Numbers one after the other. false: that is no text for a quantity. */
static bool
print_numbers(const esdm_attribute *attribute, char *text)
{
    double numbers[ESDM_ACCURACY_EXACT_MAX];
    size_t used = 0;
    if (attribute->count == 0 || attribute->count > ESDM_ACCURACY_EXACT_MAX ||
        esdm_convert(attribute->type, attribute->values, ESDM_TYPE_FLOAT64, numbers,
                     attribute->count, NULL, NULL) != ESDM_OK)
        return false;
    for (uint64_t i = 0; i < attribute->count; i++)
        used += (size_t) snprintf(text + used, VALUE_BYTES - used, "%s%.17g", i > 0 ? " " : "",
                                  numbers[i]);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == ',' ? '.' : *at; /* of the program's locale */
    return true;
}

/* The value of an attribute as text in VALUE_BYTES; false: it has none. */
static bool
print_attribute(const esdm_attribute *attribute, char *text)
{
    const char *from = attribute->values;
    size_t bytes = (size_t) attribute->count;
    if (attribute->type == ESDM_TYPE_STRING) {
        if (attribute->count != 1)
            return false;
        from = *(const char *const *) attribute->values;
        bytes = from != NULL ? strlen(from) : 0;
    } else if (attribute->type != ESDM_TYPE_CHAR) {
        return print_numbers(attribute, text);
    }
    while (bytes > 0 && from[bytes - 1] == '\0')
        bytes--;
    if (bytes == 0 || bytes >= VALUE_BYTES)
        return false;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    return true;
}

/* ---- what they state ------------------------------------------------------------------------ */

esdm_status
esdm_dataset_accuracy_attributes(esdm_dataset *dataset, esdm_accuracy *accuracy,
                                 const char **ret_last, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, accuracy);
    ESDM__NEED(err, ret_last);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    esdm_attribute attribute;
    char units[VALUE_BYTES];
    bool has_units =
        esdm_attribute_find(list, "units", &attribute, NULL) && print_attribute(&attribute, units);
    *ret_last = NULL;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        char text[VALUE_BYTES];
        if (!esdm_accuracy_is_attribute(attribute.name))
            continue;
        *ret_last = attribute.name;
        if (!print_attribute(&attribute, text))
            return esdm__error_set(err, ESDM_EINVAL, "it has no value, or one too long");
        esdm_status st = esdm_accuracy_set(accuracy, attribute.name + PREFIX_BYTES, text,
                                           has_units ? units : NULL, err);
        if (st != ESDM_OK)
            return st;
    }
    return ESDM_OK;
}

/* ---- readers -------------------------------------------------------------------------------- */

/* All that is in force, as one text. */
static esdm_status
tell_all(esdm_dataset *dataset, const esdm_accuracy *accuracy, esdm_error *err)
{
    char *text = NULL;
    if (!esdm_session_keeps_accuracy(dataset->group->container->session))
        return ESDM_OK;
    esdm_status st = esdm_accuracy_print(accuracy, &text, err);
    if (st != ESDM_OK)
        return st;
    st = esdm_attribute_set(esdm_dataset_attributes(dataset), ESDM_ACCURACY_STORED_ATTRIBUTE,
                            ESDM_TYPE_CHAR, strlen(text), text, err);
    free(text);
    return st;
}

esdm_status
esdm_dataset_tell_accuracy(esdm_dataset *dataset, esdm_error *err)
{
    esdm_accuracy a;
    ESDM__NEED(err, dataset);
    if (!esdm_dataset_accuracy_in_force(dataset, &a))
        return ESDM_OK;
    const int32_t digits = (int32_t) a.significant_digits;
    const int32_t bits = (int32_t) a.significant_bits;
    bool has_finest = (a.stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0;
    const struct {
        const char *name;
        bool stated;
        esdm_type type;
        const void *value;
    } told[] = {
        {"quantization_maximum_absolute_error", (a.stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0,
         ESDM_TYPE_FLOAT64, &a.absolute_tolerance},
        {"quantization_maximum_relative_error",
         (a.stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0 && !has_finest, ESDM_TYPE_FLOAT64,
         &a.relative_tolerance},
        {"quantization_nsd", (a.stated & ESDM_ACCURACY_SIGNIFICANT_DIGITS) != 0, ESDM_TYPE_INT32,
         &digits},
        {"quantization_nsb", (a.stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0, ESDM_TYPE_INT32,
         &bits},
    };
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < sizeof told / sizeof told[0] && st == ESDM_OK; i++)
        if (told[i].stated)
            st = esdm_attribute_set(esdm_dataset_attributes(dataset), told[i].name, told[i].type, 1,
                                    told[i].value, err);
    return st == ESDM_OK && esdm_accuracy_is_lossy(&a) ? tell_all(dataset, &a, err) : st;
}

esdm_status
esdm_dataset_remove_accuracy_attributes(esdm_dataset *dataset, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    esdm_attribute attribute;
    esdm_status st = ESDM_OK;
    for (size_t i = 0; st == ESDM_OK && esdm_attribute_at(list, i, &attribute);) {
        char name[ESDM_NAME_MAX + 1];
        if (!esdm_accuracy_is_attribute(attribute.name)) {
            i++;
            continue;
        }
        (void) snprintf(name, sizeof name, "%s", attribute.name);
        st = esdm_attribute_remove(list, name, err);
    }
    return st;
}
