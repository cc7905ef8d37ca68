/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Accuracy of a variable: attributes `esdm_NAME`, with NAME and value as in esdm/accuracy.h. They
 * count when define mode is left, and where they change later from then on. What may become of the
 * values is told to readers as attributes in the manner of CF's quantization.
 */

#include "storage.h"

#include "calls.h"

#include "esdm/accuracy.h"
#include "esdm/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX       "esdm_"
#define PREFIX_BYTES (sizeof PREFIX - 1)
#define VALUE_BYTES  400
/* Levels of deflate from which on few bytes matter more than time. */
#define ARCHIVE_LEVEL 7u

bool
esdmnc_accuracy_is_named(const char *attribute)
{
    return strncmp(attribute, PREFIX, PREFIX_BYTES) == 0 &&
           strcmp(attribute, ESDM_ACCESS_ATTRIBUTE) != 0; /* that is about fragments */
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

static bool
keeps_attributes(const esdmnc_file *file)
{
    return esdm_session_keeps_accuracy(esdm_container_session(file->container));
}

/* ---- what they state ------------------------------------------------------------------------ */

/* The user must learn which attribute of which variable is wrong: a code alone would not tell. */
static int
report(const esdmnc_var *var, const char *attribute, esdm_error *err)
{
    char what[ESDM_ERROR_MESSAGE_BYTES];
    snprintf(what, sizeof what, "attribute '%.100s' of variable", attribute);
    return esdmnc_error_loud(err, what, esdm_dataset_name(var->dataset));
}

/* Adds up the attributes. *ret_any: whether there are some. */
static int
collect(const esdmnc_var *var, esdm_accuracy *accuracy, bool *ret_any)
{
    esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    esdm_attribute attribute;
    char units[VALUE_BYTES];
    bool has_units =
        esdm_attribute_find(list, "units", &attribute, NULL) && print_attribute(&attribute, units);
    *ret_any = false;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        char text[VALUE_BYTES];
        esdm_error err = {.status = ESDM_EINVAL, .message = "it has no value, or one too long"};
        if (!esdmnc_accuracy_is_named(attribute.name))
            continue;
        *ret_any = true;
        if (!print_attribute(&attribute, text) ||
            esdm_accuracy_set(accuracy, attribute.name + PREFIX_BYTES, text,
                              has_units ? units : NULL, &err) != ESDM_OK)
            return report(var, attribute.name, &err);
    }
    return NC_NOERR;
}

/* What was stated without attributes that are still there: that a filter asked for compression. */
static void
start(const esdmnc_file *file, const esdmnc_var *var, esdm_accuracy *accuracy)
{
    esdm_accuracy_init(accuracy);
    if (!esdm_dataset_accuracy(var->dataset, accuracy) || !keeps_attributes(file))
        return;
    accuracy->stated &= esdmnc_has_filters(var) ? (uint32_t) ESDM_ACCURACY_MODE : 0;
}

static int
tell_number(esdm_attributes *list, const char *name, bool is_stated, double number)
{
    esdm_error err;
    esdm_status st = ESDM_OK;
    if (is_stated)
        st = esdm_attribute_set(list, name, ESDM_TYPE_FLOAT64, 1, &number, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "write attribute", name);
}

static int
tell_count(esdm_attributes *list, const char *name, bool is_stated, uint32_t count)
{
    esdm_error err;
    int32_t number = (int32_t) count;
    esdm_status st = ESDM_OK;
    if (is_stated)
        st = esdm_attribute_set(list, name, ESDM_TYPE_INT32, 1, &number, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "write attribute", name);
}

/* Attributes for readers. */
static int
tell_readers(const esdmnc_var *var, const esdm_accuracy *a)
{
    esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    uint32_t stated = a->stated;
    int rc = tell_number(list, "quantization_maximum_absolute_error",
                         (stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0, a->absolute_tolerance);
    if (rc == NC_NOERR)
        rc = tell_number(list, "quantization_maximum_relative_error",
                         (stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0 &&
                             (stated & ESDM_ACCURACY_RELATIVE_FINEST) == 0,
                         a->relative_tolerance);
    if (rc == NC_NOERR)
        rc = tell_count(list, "quantization_nsd", (stated & ESDM_ACCURACY_SIGNIFICANT_DIGITS) != 0,
                        a->significant_digits);
    if (rc == NC_NOERR)
        rc = tell_count(list, "quantization_nsb", (stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0,
                        a->significant_bits);
    return rc;
}

/* Where the site wants it so, what was stated is not shown any more. */
static int
remove_attributes(const esdmnc_var *var)
{
    esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute);) {
        char name[ESDM_NAME_MAX + 1];
        esdm_error err;
        if (!esdmnc_accuracy_is_named(attribute.name)) {
            i++;
            continue;
        }
        snprintf(name, sizeof name, "%s", attribute.name);
        if (esdm_attribute_remove(list, name, &err) != ESDM_OK)
            return esdmnc_error(&err, "remove attribute", name);
    }
    return NC_NOERR;
}

int
esdmnc_accuracy_settle(const esdmnc_file *file, esdmnc_var *var, bool changed)
{
    esdm_accuracy accuracy;
    bool any = false;
    esdm_error err;
    start(file, var, &accuracy);
    int rc = collect(var, &accuracy, &any);
    if (rc != NC_NOERR || (!any && !changed))
        return rc == NC_NOERR && esdm_dataset_accuracy_in_force(var->dataset, &accuracy)
                   ? tell_readers(var, &accuracy)
                   : rc;
    if (esdm_accuracy_check(&accuracy, &err) != ESDM_OK)
        return report(var, PREFIX "*", &err);
    if (any && esdm_dataset_set_codec(var->dataset, NULL, &err) != ESDM_OK)
        return esdmnc_error(&err, "state the accuracy in", file->name);
    if (esdm_dataset_set_accuracy(var->dataset, &accuracy, &err) != ESDM_OK)
        return report(var, PREFIX "*", &err);
    rc = any ? tell_readers(var, &accuracy) : NC_NOERR;
    if (rc == NC_NOERR && any && !keeps_attributes(file))
        rc = remove_attributes(var);
    return rc;
}

int
esdmnc_accuracy_deflate(const esdmnc_file *file, esdmnc_var *var, unsigned level)
{
    esdm_accuracy accuracy;
    esdm_error err;
    if (level < ARCHIVE_LEVEL || !esdm_dataset_accuracy(var->dataset, &accuracy))
        return NC_NOERR;
    accuracy.stated |= ESDM_ACCURACY_MODE;
    accuracy.mode = ESDM_MODE_ARCHIVE;
    esdm_status st = esdm_dataset_set_accuracy(var->dataset, &accuracy, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "set compression in", file->name);
}
