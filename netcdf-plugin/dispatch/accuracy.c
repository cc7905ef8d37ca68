/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Accuracy of a variable: attributes `esdm_NAME`, with NAME and value as in esdm/accuracy.h. They
 * are judged and taken when define mode is left, and do not stay: programs would copy them to what
 * they compute. Readers are told by attributes that state nothing.
 */

#include "storage.h"

#include "calls.h"

#include "esdm/accuracy_attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "esdm_"
/* Up to this level of deflate time matters more than bytes. */
#define FAST_LEVEL 2u
/* Levels of deflate from which on few bytes matter more than time. */
#define ARCHIVE_LEVEL 7u

/* ---- attributes that are set and removed ---------------------------------------------------- */

static bool
is_documentation(const char *attribute)
{
    return strcmp(attribute, ESDM_ACCURACY_STORED_ATTRIBUTE) == 0;
}

bool
esdmnc_accuracy_is_named(const char *attribute)
{
    return esdm_accuracy_is_attribute(attribute) || is_documentation(attribute);
}

/* Of a value, as esdmnc_attribute_origin() compares it. */
static esdmnc_origin
origin_of(const esdm_attribute *attribute)
{
    double numbers[ESDM_ACCURACY_EXACT_MAX];
    const char *text = attribute->values;
    size_t bytes = (size_t) attribute->count;
    if (attribute->type == ESDM_TYPE_STRING) {
        text = bytes == 1 ? *(const char *const *) attribute->values : NULL;
        bytes = text != NULL ? strlen(text) : 0;
    } else if (attribute->type != ESDM_TYPE_CHAR) {
        if (attribute->type >= ESDM_TYPE_FIRST_USER || bytes > ESDM_ACCURACY_EXACT_MAX ||
            esdm_convert(attribute->type, attribute->values, ESDM_TYPE_FLOAT64, numbers,
                         attribute->count, NULL, NULL) != ESDM_OK)
            return ESDMNC_FROM_PROGRAM;
        return esdmnc_attribute_origin(attribute->name, numbers, bytes * sizeof *numbers);
    }
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    return bytes > 0 ? esdmnc_attribute_origin(attribute->name, text, bytes) : ESDMNC_FROM_PROGRAM;
}

/* A program that copies all attributes has copied it to numbers that may be others, or together
 * with them. Ranks may have learned of it in different ways, and must decide alike. */
static esdmnc_origin
find_origin(const esdmnc_file *file, const esdmnc_var *var, const char *name)
{
    esdm_attribute attribute;
    if (esdmnc_comm(file) != NULL ||
        !esdm_attribute_find(esdm_dataset_attributes(var->dataset), name, &attribute, NULL))
        return ESDMNC_FROM_PROGRAM;
    return origin_of(&attribute);
}

void
esdmnc_accuracy_put(const esdmnc_file *file, esdmnc_var *var, const char *attribute)
{
    /* Modes and speeds lose nothing: they may travel. */
    const uint32_t harmless = (uint32_t) ESDM_ACCURACY_MODE | ESDM_ACCURACY_COMPRESSION_SPEED |
                              ESDM_ACCURACY_DECOMPRESSION_SPEED;
    const uint32_t quantity = esdm_accuracy_attribute_quantity(attribute) & ~harmless;
    var->restated = true;
    if (is_documentation(attribute)) {
        var->withdrawn = false;
        return;
    }
    const esdmnc_origin origin = find_origin(file, var, attribute);
    const bool copied = origin == ESDMNC_FROM_FILE && esdmnc_program_copies();
    const bool borrowed = origin != ESDMNC_FROM_PROGRAM && !copied;
    var->copied = copied ? var->copied | quantity : var->copied & ~quantity;
    var->borrowed = borrowed ? var->borrowed | quantity : var->borrowed & ~quantity;
}

void
esdmnc_accuracy_removed(esdmnc_var *var, const char *attribute)
{
    var->restated = true;
    var->withdrawn = true;
    var->borrowed &= ~esdm_accuracy_attribute_quantity(attribute);
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

/* Told once: who runs a chain of such programs does so every day. */
static void
tell_borrowed(const esdmnc_file *file, const esdmnc_var *var, const char *attribute)
{
    static atomic_bool told;
    if (atomic_exchange(&told, true))
        esdmnc_debug("'%s' of '%s' in '%s' is not taken", attribute,
                     esdm_dataset_name(var->dataset), file->name);
    else
        esdmnc_say("'%s' of variable '%s' in '%s' is not taken: this program copied it from a "
                   "file, where it was stated of other numbers; these are stored without loss (to "
                   "state it of them: esdm-cp --accuracy, or \"accuracy\" in the site "
                   "configuration)",
                   attribute, esdm_dataset_name(var->dataset), file->name);
}

static int
drop_borrowed(const esdmnc_file *file, esdmnc_var *var)
{
    esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    esdm_attribute attribute;
    esdm_error err;
    for (size_t i = 0; var->borrowed != 0 && esdm_attribute_at(list, i, &attribute);) {
        char name[ESDMNC_NAME_BYTES];
        if ((esdm_accuracy_attribute_quantity(attribute.name) & var->borrowed) == 0) {
            i++;
            continue;
        }
        tell_borrowed(file, var, attribute.name);
        snprintf(name, sizeof name, "%s", attribute.name);
        if (esdm_attribute_remove(list, name, &err) != ESDM_OK)
            return esdmnc_error(&err, "remove attributes in", file->name);
    }
    var->borrowed = 0;
    return NC_NOERR;
}

/* Adds up the attributes. *ret_last: the last one, borrowed; NULL when there are none. */
static int
collect(const esdmnc_var *var, esdm_accuracy *accuracy, const char **ret_last)
{
    esdm_error err;
    esdm_status st = esdm_dataset_accuracy_attributes(var->dataset, accuracy, ret_last, &err);
    return st == ESDM_OK ? NC_NOERR : report(var, *ret_last, &err);
}

/* What was stated before, and stays unless it was taken back: that a filter asked for compression
 * stays then, too. */
static void
start(const esdmnc_var *var, esdm_accuracy *accuracy)
{
    esdm_accuracy_init(accuracy);
    if (esdm_dataset_accuracy(var->dataset, accuracy) && var->withdrawn)
        accuracy->stated &= esdmnc_has_filters(var) ? (uint32_t) ESDM_ACCURACY_MODE : 0;
}

/* A tolerance that came with a file counts when the numbers fit it. Now it was found to make sense;
 * what held before holds on. */
static int
put_in_doubt(const esdmnc_file *file, esdmnc_var *var, const esdm_accuracy *before,
             const esdm_accuracy *accuracy)
{
    const uint32_t absolute = (uint32_t) ESDM_ACCURACY_ABSOLUTE_TOLERANCE |
                              ESDM_ACCURACY_RELATIVE_FINEST | ESDM_ACCURACY_GRADIENT_TOLERANCE |
                              ESDM_ACCURACY_VECTOR_TOLERANCE;
    esdm_error err;
    if ((var->copied & absolute) == 0 || esdm_accuracy_least_span(accuracy) <= 0)
        return NC_NOERR;
    if (esdm_dataset_set_accuracy(var->dataset, before, &err) != ESDM_OK)
        return esdmnc_error(&err, "state the accuracy in", file->name);
    return esdmnc_doubt_begin(var, accuracy);
}

static int
take(const esdmnc_file *file, esdmnc_var *var)
{
    esdm_accuracy accuracy, before;
    const char *last = NULL;
    esdm_error err;
    start(var, &accuracy);
    before = accuracy;
    int rc = collect(var, &accuracy, &last);
    const bool any = last != NULL;
    if (rc != NC_NOERR || (!any && !var->withdrawn))
        return rc;
    if (esdm_accuracy_check(&accuracy, &err) != ESDM_OK)
        return report(var, any ? last : PREFIX "*", &err);
    if (any && esdm_dataset_set_codec(var->dataset, NULL, &err) != ESDM_OK)
        return esdmnc_error(&err, "state the accuracy in", file->name);
    if (esdm_dataset_set_accuracy(var->dataset, &accuracy, &err) != ESDM_OK)
        return report(var, any ? last : PREFIX "*", &err);
    rc = any ? put_in_doubt(file, var, &before, &accuracy) : NC_NOERR;
    if (rc == NC_NOERR && any &&
        esdm_dataset_remove_accuracy_attributes(var->dataset, &err) != ESDM_OK)
        return esdmnc_error(&err, "remove attributes in", file->name);
    return rc;
}

int
esdmnc_accuracy_settle(esdmnc_file *file, esdmnc_var *var)
{
    esdm_error err;
    int rc = drop_borrowed(file, var);
    if (rc == NC_NOERR)
        rc = take(file, var);
    if (rc == NC_NOERR && esdm_dataset_tell_accuracy(var->dataset, &err) != ESDM_OK)
        rc = esdmnc_error(&err, "tell the accuracy in", file->name);
    if (rc == NC_NOERR)
        var->restated = var->withdrawn = false;
    else
        file->refused = true;
    return rc;
}

static void
tell_regions(const esdmnc_file *file, const esdm_dataset *dataset)
{
    static atomic_bool told;
    const char *why = esdm_dataset_region_doubt(dataset);
    if (why == NULL)
        return;
    if (atomic_exchange(&told, true))
        esdmnc_debug("all of '%s' in '%s' keeps the accuracy of its regions, as %s",
                     esdm_dataset_name(dataset), file->name, why);
    else
        esdmnc_say("numbers of variable '%s' in '%s' keep the strictest accuracy of all "
                   "its regions wherever they lie, as %s (less is stored where coordinates "
                   "tell when data are written)",
                   esdm_dataset_name(dataset), file->name, why);
}

static void
tell_units(const esdmnc_file *file, const esdm_dataset *dataset)
{
    static atomic_bool told;
    const char *units = esdm_dataset_accuracy_units(dataset);
    if (units != NULL && !atomic_exchange(&told, true))
        esdmnc_say("the units of variable '%s' in '%s' have changed: its accuracy was stated "
                   "in '%s', and does not hold any more; what is written from now on is "
                   "stored without loss (state it anew: attribute esdm_absolute_tolerance)",
                   esdm_dataset_name(dataset), file->name, units);
}

/* Numbers that were rounded before may lie beyond the limit, and are missing ones for readers. */
void
esdmnc_accuracy_limits(const esdmnc_file *file, const esdmnc_var *var, const char *attribute,
                       size_t bytes, const void *values)
{
    static atomic_bool told;
    esdm_accuracy accuracy;
    esdm_attribute before;
    const esdm_comm *comm = esdmnc_comm(file);
    if (strncmp(attribute, "valid_", 6) != 0 ||
        (strcmp(attribute + 6, "range") != 0 && strcmp(attribute + 6, "min") != 0 &&
         strcmp(attribute + 6, "max") != 0) ||
        !(var->stored || var->written) || (comm != NULL && comm->rank != 0) ||
        !esdm_dataset_accuracy_in_force(var->dataset, &accuracy) ||
        !esdm_accuracy_is_lossy(&accuracy))
        return;
    if (esdm_attribute_find(esdm_dataset_attributes(var->dataset), attribute, &before, NULL) &&
        before.count * esdm_type_size(before.type) == bytes &&
        memcmp(before.values, values, bytes) == 0)
        return;
    if (!atomic_exchange(&told, true))
        esdmnc_say("'%s' of variable '%s' in '%s' comes after numbers that were rounded within its "
                   "accuracy: those near its ends may lie beyond it, where readers take them for "
                   "missing. Set it before the values, and write them anew",
                   attribute, esdm_dataset_name(var->dataset), file->name);
}

void
esdmnc_accuracy_tell(const esdmnc_file *file)
{
    const esdm_comm *comm = esdmnc_comm(file);
    if (comm != NULL && comm->rank != 0)
        return;
    for (size_t g = 0; g < file->group_count; g++) {
        for (size_t v = 0; v < file->groups[g]->count; v++) {
            const esdm_dataset *dataset = file->groups[g]->vars[v]->dataset;
            tell_regions(file, dataset);
            tell_units(file, dataset);
        }
    }
}

static bool
states_mode(const esdmnc_var *var, esdm_accuracy *ret_accuracy)
{
    esdm_accuracy_init(ret_accuracy);
    return esdm_dataset_accuracy(var->dataset, ret_accuracy) &&
           (ret_accuracy->stated & ESDM_ACCURACY_MODE) != 0;
}

static esdm_accuracy_mode
mode_of_level(unsigned level)
{
    if (level >= ARCHIVE_LEVEL)
        return ESDM_MODE_ARCHIVE;
    return level <= FAST_LEVEL ? ESDM_MODE_FAST : ESDM_MODE_BALANCED;
}

int
esdmnc_accuracy_compress(const esdmnc_file *file, esdmnc_var *var, unsigned level)
{
    esdm_accuracy accuracy;
    esdm_error err;
    bool stated = states_mode(var, &accuracy) && !var->mode_of_filter;
    esdm_status st = esdm_dataset_request_compression(var->dataset, &err);
    if (st == ESDM_OK && !stated && states_mode(var, &accuracy)) {
        var->mode_of_filter = true;
        accuracy.mode = level > 0 ? mode_of_level(level) : accuracy.mode;
        st = esdm_dataset_set_accuracy(var->dataset, &accuracy, &err);
    }
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "set compression in", file->name);
}
