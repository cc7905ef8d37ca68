/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Accuracy of a variable: attributes `esdm_NAME`, with NAME and value as in esdm/accuracy.h. They
 * count when define mode is left, and where they change later from then on. What may become of the
 * values is told to readers as attributes in the manner of CF's quantization.
 */

#include "storage.h"

#include "calls.h"

#include "esdm/accuracy_attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "esdm_"
/* Levels of deflate from which on few bytes matter more than time. */
#define ARCHIVE_LEVEL 7u

bool
esdmnc_accuracy_is_named(const char *attribute)
{
    return esdm_accuracy_is_attribute(attribute);
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

/* Adds up the attributes. *ret_last: the last one, borrowed; NULL when there are none. */
static int
collect(const esdmnc_var *var, esdm_accuracy *accuracy, const char **ret_last)
{
    esdm_error err;
    esdm_status st = esdm_dataset_accuracy_attributes(var->dataset, accuracy, ret_last, &err);
    return st == ESDM_OK ? NC_NOERR : report(var, *ret_last, &err);
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

/* Attributes for readers. */
static int
tell_readers(const esdmnc_file *file, const esdmnc_var *var)
{
    esdm_error err;
    return esdm_dataset_tell_accuracy(var->dataset, &err) == ESDM_OK
               ? NC_NOERR
               : esdmnc_error(&err, "tell the accuracy in", file->name);
}

/* Where the site wants it so, what was stated is not shown any more. */
static int
remove_attributes(const esdmnc_file *file, const esdmnc_var *var)
{
    esdm_error err;
    return esdm_dataset_remove_accuracy_attributes(var->dataset, &err) == ESDM_OK
               ? NC_NOERR
               : esdmnc_error(&err, "remove attributes in", file->name);
}

int
esdmnc_accuracy_settle(const esdmnc_file *file, esdmnc_var *var, bool changed)
{
    esdm_accuracy accuracy;
    const char *last = NULL;
    esdm_error err;
    start(file, var, &accuracy);
    int rc = collect(var, &accuracy, &last);
    const bool any = last != NULL;
    if (rc != NC_NOERR || (!any && !changed))
        return rc == NC_NOERR ? tell_readers(file, var) : rc;
    if (esdm_accuracy_check(&accuracy, &err) != ESDM_OK)
        return report(var, any ? last : PREFIX "*", &err);
    if (any && esdm_dataset_set_codec(var->dataset, NULL, &err) != ESDM_OK)
        return esdmnc_error(&err, "state the accuracy in", file->name);
    if (esdm_dataset_set_accuracy(var->dataset, &accuracy, &err) != ESDM_OK)
        return report(var, any ? last : PREFIX "*", &err);
    rc = any ? tell_readers(file, var) : NC_NOERR;
    if (rc == NC_NOERR && any && !keeps_attributes(file))
        rc = remove_attributes(file, var);
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
