/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What is stated of the accuracy of datasets, and what became of their numbers. */

#include "esdm-stat.h"

#include <math.h>
#include <stdlib.h>

char *
stat_accuracy_text(const esdm_dataset *dataset)
{
    esdm_accuracy accuracy;
    esdm_error err;
    char *text = NULL;
    if (!esdm_dataset_accuracy(dataset, &accuracy) ||
        esdm_accuracy_print(&accuracy, &text, &err) != ESDM_OK)
        return NULL;
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

/* The bounds that fragments were held to, the loosest ones. */
static char *
bounds_text(const esdm_accuracy_report *r)
{
    GString *text = g_string_new(NULL);
    if (isfinite(r->absolute))
        g_string_append_printf(text, "%.6g", r->absolute);
    if (isfinite(r->relative))
        g_string_append_printf(text, "%s%.6g |x|", text->len > 0 ? " and " : "", r->relative);
    if (isfinite(r->relative) && r->finest > 0)
        g_string_append_printf(text, " (not finer than %.6g)", r->finest);
    return g_string_free(text, FALSE);
}

esdm_status
stat_accuracy_report(esdm_dataset *dataset, const char *indent, char **ret_text, esdm_error *err)
{
    esdm_accuracy_report r;
    esdm_status status = esdm_dataset_accuracy_report(dataset, &r, err);
    if (status != ESDM_OK)
        return status;
    GString *text = g_string_new(NULL);
    if (r.lossy_fragments > 0) {
        g_autofree char *bounds = bounds_text(&r);
        g_string_append_printf(
            text,
            "%s    fragments with changed numbers: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
            "; bound %s\n"
            "%s    largest error %.6g (%.1f %% of its bound), mean changes by %.3g; "
            "%" G_GUINT64_FORMAT " exact of %" G_GUINT64_FORMAT " numbers\n",
            indent, (guint64) r.lossy_fragments, (guint64) r.fragments, bounds, indent,
            r.largest_error, 100 * r.largest_share, r.mean_change, (guint64) r.exact_points,
            (guint64) (r.points + r.exact_points));
        if (r.blocks_again > 0)
            g_string_append_printf(text,
                                   "%s    blocks encoded again: %" G_GUINT64_FORMAT
                                   ", without loss in the end: %" G_GUINT64_FORMAT "\n",
                                   indent, (guint64) r.blocks_again, (guint64) r.blocks_lossless);
    }
    *ret_text = g_string_free(text, FALSE);
    return ESDM_OK;
}

/* JSON has no infinity: what was not asked for is left out. */
static void
set_number(json_t *object, const char *key, double number)
{
    if (isfinite(number))
        tool_json_set(object, key, json_real(number));
}

esdm_status
stat_accuracy_json(esdm_dataset *dataset, json_t *object, esdm_error *err)
{
    esdm_accuracy_report r;
    esdm_status status = esdm_dataset_accuracy_report(dataset, &r, err);
    if (status != ESDM_OK)
        return status;
    g_autofree char *stated = stat_accuracy_text(dataset);
    json_t *accuracy = json_object();
    if (stated != NULL)
        tool_json_set(accuracy, "stated", tool_json_text(stated));
    tool_json_set(accuracy, "fragments", tool_json_u64(r.fragments));
    tool_json_set(accuracy, "lossy_fragments", tool_json_u64(r.lossy_fragments));
    tool_json_set(accuracy, "points", tool_json_u64(r.points));
    tool_json_set(accuracy, "exact_points", tool_json_u64(r.exact_points));
    if (r.lossy_fragments > 0) {
        set_number(accuracy, "absolute", r.absolute);
        set_number(accuracy, "relative", r.relative);
        set_number(accuracy, "finest", r.finest);
        set_number(accuracy, "largest_error", r.largest_error);
        set_number(accuracy, "largest_share", r.largest_share);
        set_number(accuracy, "sum_change", r.sum_change);
        set_number(accuracy, "mean_change", r.mean_change);
        tool_json_set(accuracy, "blocks_again", tool_json_u64(r.blocks_again));
        tool_json_set(accuracy, "blocks_lossless", tool_json_u64(r.blocks_lossless));
    }
    tool_json_set(object, "accuracy", accuracy);
    return ESDM_OK;
}
