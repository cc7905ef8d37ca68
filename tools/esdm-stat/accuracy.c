/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What is stated of the accuracy of datasets, and what became of their numbers. */

#include "esdm-stat/esdm-stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/accuracy_attributes.h"

/* As esdm_accuracy_parse() reads it; "" when it cannot be printed. */
static char *
text_of(const esdm_accuracy *accuracy)
{
    esdm_error err;
    char *text = NULL;
    if (esdm_accuracy_print(accuracy, &text, &err) != ESDM_OK)
        return g_strdup("");
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

char *
stat_accuracy_text(const esdm_dataset *dataset)
{
    esdm_accuracy accuracy;
    return esdm_dataset_accuracy(dataset, &accuracy) ? text_of(&accuracy) : NULL;
}

/* "stated by its attributes esdm_mode, esdm_significant_digits", as far as they say the same. */
static void
append_stated(GString *text, esdm_dataset *dataset, const esdm_accuracy *accuracy)
{
    esdm_attribute attribute;
    esdm_accuracy said;
    esdm_error err;
    const char *last = NULL;
    g_autoptr(GString) names = g_string_new(NULL);
    for (size_t i = 0; esdm_attribute_at(esdm_dataset_attributes(dataset), i, &attribute); i++) {
        if (esdm_accuracy_is_attribute(attribute.name))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", attribute.name);
    }
    esdm_accuracy_init(&said);
    bool known = esdm_dataset_accuracy_attributes(dataset, &said, &last, &err) == ESDM_OK;
    g_autofree char *all = text_of(accuracy);
    g_autofree char *of_attributes = text_of(&said);
    if (names->len == 0)
        g_string_append(text,
                        "stated of this dataset, by an attribute, a call or esdm-cp --accuracy");
    else if (known && g_str_equal(all, of_attributes))
        g_string_append_printf(text, "stated by %s", names->str);
    else
        g_string_append_printf(
            text, "stated by %s, and by another attribute, a call or esdm-cp --accuracy",
            names->str);
}

char *
stat_accuracy_origin(esdm_dataset *dataset)
{
    esdm_accuracy stated, force;
    GString *text = g_string_new(NULL);
    bool is_stated = esdm_dataset_accuracy(dataset, &stated);
    bool in_force = esdm_dataset_accuracy_in_force(dataset, &force);
    if (is_stated)
        append_stated(text, dataset, &stated);
    if (in_force) {
        g_autofree char *now = text_of(&force);
        g_autofree char *own = is_stated ? text_of(&stated) : g_strdup("");
        if (!g_str_equal(now, own))
            g_string_append_printf(text,
                                   is_stated ? "; with a rule of the site's configuration: %s"
                                             : "%s (a rule of the site's configuration, for "
                                               "what is written now)",
                                   now);
    }
    size_t rule = 0;
    const char *kind = NULL;
    if (text->len == 0 && esdm_dataset_accuracy_spared(dataset, &rule, &kind))
        g_string_append_printf(text,
                               "nothing is lost: it is %s, which accuracy[%zu] of the site's "
                               "configuration does not name",
                               kind, rule);
    if (text->len > 0)
        return g_string_free(text, FALSE);
    (void) g_string_free(text, TRUE);
    return NULL;
}

/* "box=-10,35,30,60: absolute_tolerance=0.01"; owned. */
static char *
region_text(const esdm_accuracy *accuracy, uint32_t region)
{
    esdm_accuracy one;
    esdm_accuracy_init(&one);
    one.stated = (uint32_t) ESDM_ACCURACY_ABSOLUTE_TOLERANCE | ESDM_ACCURACY_REGIONS;
    one.regions[0] = accuracy->regions[region];
    one.region_count = 1;
    g_autofree char *text = text_of(&one);
    const char *begin = strstr(text, "; ");
    return g_strdup(begin != NULL ? begin + 2 : text);
}

/* What numbers of a dataset mean: as people state bounds, in its units, and unpacked. */
typedef struct meaning {
    double scale;  /* of the stored numbers */
    char unit[40]; /* " K", or "" */
} meaning;

static meaning
meaning_of(esdm_dataset *dataset)
{
    const esdm_attributes *list = esdm_dataset_attributes(dataset);
    meaning m = {.scale = 1};
    esdm_attribute a;
    if (esdm_attribute_find(list, "scale_factor", &a, NULL) && a.count == 1) {
        if (a.type == ESDM_TYPE_FLOAT64)
            m.scale = fabs(*(const double *) a.values);
        else if (a.type == ESDM_TYPE_FLOAT32)
            m.scale = fabs((double) *(const float *) a.values);
    }
    if (!isfinite(m.scale) || m.scale == 0)
        m.scale = 1;
    if (esdm_attribute_find(list, "units", &a, NULL) && a.type == ESDM_TYPE_CHAR && a.count > 0 &&
        a.count < sizeof m.unit - 1) {
        g_autofree char *unit = g_strndup(a.values, a.count);
        g_autofree char *printable = tool_printable(unit);
        (void) g_snprintf(m.unit, sizeof m.unit, " %s", printable);
    }
    return m;
}

/* The bounds that fragments were held to, the loosest ones. */
static char *
bounds_text(const esdm_accuracy_report *r, const meaning *m)
{
    GString *text = g_string_new(NULL);
    if (isfinite(r->absolute))
        g_string_append_printf(text, "%.6g%s", r->absolute * m->scale, m->unit);
    if (isfinite(r->relative))
        g_string_append_printf(text, "%s%.6g |x|", text->len > 0 ? " and " : "", r->relative);
    if (isfinite(r->relative) && r->finest > 0)
        g_string_append_printf(text, " (not finer than %.6g%s)", r->finest * m->scale, m->unit);
    return g_string_free(text, FALSE);
}

/* What came of fragments that have bounds. */
static void
append_errors(GString *text, const esdm_accuracy_report *r, const meaning *m, const char *indent)
{
    g_string_append_printf(text, "%s    largest error %.6g%s (%.1f %% of its bound)", indent,
                           r->largest_error * m->scale, m->unit, 100 * r->largest_share);
    if (r->points > 0) /* else they are read less accurately, and of means nothing is known */
        g_string_append_printf(text, ", mean changes by %.3g%s", r->mean_change * m->scale,
                               m->unit);
    if (r->exact_points > 0)
        g_string_append_printf(
            text, "; %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " numbers were to be kept",
            (guint64) r->exact_points, (guint64) (r->points + r->exact_points));
    g_string_append_c(text, '\n');
    if (r->blocks_again > 0)
        g_string_append_printf(text,
                               "%s    blocks encoded again: %" G_GUINT64_FORMAT
                               ", without loss in the end: %" G_GUINT64_FORMAT "\n",
                               indent, (guint64) r->blocks_again, (guint64) r->blocks_lossless);
}

/* What became of the fragments that touch regions. */
static esdm_status
append_regions(GString *text, esdm_dataset *dataset, const char *indent, esdm_error *err)
{
    esdm_accuracy force;
    meaning m = meaning_of(dataset);
    if (!esdm_dataset_accuracy_in_force(dataset, &force) ||
        (force.stated & ESDM_ACCURACY_REGIONS) == 0)
        return ESDM_OK;
    for (uint32_t i = 0; i < force.region_count; i++) {
        esdm_accuracy_report r;
        g_autofree char *region = region_text(&force, i);
        esdm_status status = esdm_dataset_region_report(dataset, i, &r, err);
        if (status != ESDM_OK && status != ESDM_ENOTSUP)
            return status;
        g_string_append_printf(text, "%s    %s; ", indent, region);
        if (status == ESDM_ENOTSUP) {
            g_string_append_printf(text, "%s\n", err->message);
            continue;
        }
        g_autofree char *bounds = bounds_text(&r, &m);
        g_string_append_printf(text, "fragments there: %" G_GUINT64_FORMAT, (guint64) r.fragments);
        if (r.lossy_fragments > 0)
            g_string_append_printf(text, "; bound %s, largest error %.6g%s", bounds,
                                   r.largest_error * m.scale, m.unit);
        g_string_append_c(text, '\n');
    }
    return ESDM_OK;
}

/* What a copy, or a result, has inherited: its numbers were off before they came here. */
static void
append_source(GString *text, esdm_dataset *dataset, const char *indent)
{
    esdm_accuracy accuracy;
    esdm_attribute a;
    if ((esdm_dataset_accuracy(dataset, &accuracy) && esdm_accuracy_is_lossy(&accuracy)) ||
        !esdm_attribute_find(esdm_dataset_attributes(dataset), ESDM_ACCURACY_STORED_ATTRIBUTE, &a,
                             NULL) ||
        a.type != ESDM_TYPE_CHAR || a.count == 0)
        return;
    g_autofree char *said = g_strndup(a.values, a.count);
    g_autofree char *printable = tool_printable(said);
    g_string_append_printf(text, "%s    what it was made of: %s\n", indent, printable);
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
        meaning m = meaning_of(dataset);
        g_autofree char *bounds = bounds_text(&r, &m);
        g_string_append_printf(text,
                               "%s    fragments with changed numbers: %" G_GUINT64_FORMAT
                               " of %" G_GUINT64_FORMAT "; bound %s\n",
                               indent, (guint64) r.changed_fragments, (guint64) r.fragments,
                               bounds);
        append_errors(text, &r, &m, indent);
        status = append_regions(text, dataset, indent, err);
    } else if (r.fragments > 0) {
        g_string_append_printf(text, "%s    nothing is lost: all numbers have their bits\n",
                               indent);
        append_source(text, dataset, indent);
    }
    if (status != ESDM_OK) {
        (void) g_string_free(text, TRUE);
        return status;
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

static esdm_status
regions_json(esdm_dataset *dataset, json_t *accuracy, esdm_error *err)
{
    esdm_accuracy force;
    if (!esdm_dataset_accuracy_in_force(dataset, &force) ||
        (force.stated & ESDM_ACCURACY_REGIONS) == 0)
        return ESDM_OK;
    json_t *list = json_array();
    for (uint32_t i = 0; i < force.region_count; i++) {
        esdm_accuracy_report r;
        json_t *region = json_object();
        g_autofree char *text = region_text(&force, i);
        esdm_status status = esdm_dataset_region_report(dataset, i, &r, err);
        tool_json_set(region, "stated", tool_json_text(text));
        if (status == ESDM_ENOTSUP) {
            tool_json_set(region, "unknown", tool_json_text(err->message));
        } else if (status != ESDM_OK) {
            json_decref(region);
            json_decref(list);
            return status;
        } else {
            tool_json_set(region, "fragments", tool_json_u64(r.fragments));
            tool_json_set(region, "lossy_fragments", tool_json_u64(r.lossy_fragments));
            set_number(region, "absolute", r.absolute);
            set_number(region, "relative", r.relative);
            set_number(region, "largest_error", r.largest_error);
        }
        tool_json_append(list, region);
    }
    tool_json_set(accuracy, "regions", list);
    return ESDM_OK;
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
    g_autofree char *origin = stat_accuracy_origin(dataset);
    if (origin != NULL)
        tool_json_set(accuracy, "origin", tool_json_text(origin));
    tool_json_set(accuracy, "fragments", tool_json_u64(r.fragments));
    tool_json_set(accuracy, "lossy_fragments", tool_json_u64(r.lossy_fragments));
    tool_json_set(accuracy, "changed_fragments", tool_json_u64(r.changed_fragments));
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
    return regions_json(dataset, accuracy, err);
}
