/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* --accuracy 'NAME: QUANTITIES': what the copies of variables may be off by. */

#include "esdm-cp.h"

#include <string.h>

/* One option: a pattern of names and what is stated of them. */
typedef struct wish {
    char *pattern;
    const char *text; /* borrowed from the option */
} wish;

/* Splits an option at its first colon. */
static bool
split(const char *option, wish *ret)
{
    const char *colon = strchr(option, ':');
    if (colon == NULL)
        return false;
    ret->pattern = g_strstrip(g_strndup(option, (gsize) (colon - option)));
    ret->text = colon + 1;
    if (ret->pattern[0] != '\0')
        return true;
    g_free(ret->pattern);
    return false;
}

static bool
matches(const char *pattern, const cp_dataset *dataset)
{
    return g_pattern_match_simple(pattern, dataset->name) ||
           g_pattern_match_simple(pattern, dataset->path);
}

const char *
cp_accuracy_wrong(void)
{
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        wish w;
        if (!split(*option, &w))
            return *option;
        g_free(w.pattern);
    }
    return NULL;
}

/* The attribute `units` of a dataset; owned; NULL when there is none. */
static char *
units_of(const cp_dataset *dataset)
{
    const cp_attribute *units = cp_attribute_find(dataset->attributes, "units");
    if (units != NULL && units->type == cp_type_atomic(ESDM_TYPE_CHAR))
        return g_strndup(units->values, units->count);
    if (units != NULL && units->type == cp_type_atomic(ESDM_TYPE_STRING) && units->count == 1)
        return g_strdup(*(char *const *) units->values);
    return NULL;
}

static esdm_status
state(const cp_dataset *dataset, const char *text, esdm_error *err)
{
    esdm_accuracy accuracy;
    g_autofree char *units = units_of(dataset);
    esdm_accuracy_init(&accuracy);
    (void) esdm_dataset_accuracy(dataset->to.dataset, &accuracy);
    esdm_status status = esdm_accuracy_parse(&accuracy, text, units, err);
    if (status == ESDM_OK)
        status = esdm_dataset_set_codec(dataset->to.dataset, NULL, err);
    if (status == ESDM_OK)
        status = esdm_dataset_set_accuracy(dataset->to.dataset, &accuracy, err);
    if (status == ESDM_OK)
        return ESDM_OK;
    g_autofree char *why = g_strdup(err->message);
    return tool_error_set(err, status, "--accuracy for %s: %s", dataset->path, why);
}

esdm_status
cp_accuracy_state(const cp_model *model, const char *source, esdm_error *err)
{
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        wish w;
        bool any = false;
        esdm_status status = ESDM_OK;
        if (!split(*option, &w))
            continue; /* refused before */
        for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++) {
            const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
            if (!matches(w.pattern, dataset))
                continue;
            any = true;
            status = state(dataset, w.text, err);
        }
        if (status == ESDM_OK && !any && !cp_wants.recursive)
            status = tool_error_set(err, ESDM_EINVAL, "--accuracy: %s has no variable '%s'", source,
                                    w.pattern);
        g_free(w.pattern);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}
