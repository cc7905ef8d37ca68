/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the values of datasets are: minimum, maximum, mean, how many are missing. */

#include "esdm-stat/esdm-stat.h"

/* *ret_any: there are numbers. */
static esdm_status
read_statistics(esdm_dataset *dataset, esdm_statistics *ret, bool *ret_any, esdm_error *err)
{
    esdm_status status = esdm_dataset_statistics(dataset, NULL, stat_wants.exact, ret, err);
    *ret_any = status == ESDM_OK;
    return status == ESDM_ENOTSUP ? ESDM_OK : status;
}

/* @param about  the same as a double: its sign tells numbers of signed types from those that are
 *               taken for unsigned ones (_Unsigned) */
static char *
number_text(esdm_type type, esdm_number value, double about)
{
    if (type == ESDM_TYPE_FLOAT32)
        return g_strdup_printf("%.7g", value.f);
    if (type == ESDM_TYPE_FLOAT64)
        return g_strdup_printf("%.12g", value.f);
    return about < 0 ? g_strdup_printf("%" G_GINT64_FORMAT, (gint64) value.i)
                     : g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) value.u);
}

esdm_status
stat_statistics_text(esdm_dataset *dataset, char **ret_text, esdm_error *err)
{
    esdm_statistics s;
    bool any = false;
    esdm_type type = esdm_dataset_type(dataset);
    esdm_status status = read_statistics(dataset, &s, &any, err);
    *ret_text = NULL;
    if (status != ESDM_OK || !any || s.elements == 0)
        return status;
    g_autofree char *low = number_text(type, s.min_value, s.min);
    g_autofree char *high = number_text(type, s.max_value, s.max);
    bool exact = (s.flags & ESDM_STATISTICS_EXACT) != 0;
    if (exact && s.valid == 0)
        *ret_text = g_strdup("all missing");
    else if (exact)
        *ret_text = g_strdup_printf(
            "%s to %s, mean %.10g; missing: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT, low, high,
            s.sum / (double) s.valid, (guint64) (s.elements - s.valid), (guint64) s.elements);
    else if ((s.flags & ESDM_STATISTICS_BOUNDS) != 0)
        *ret_text = g_strdup_printf("between %s and %s; --exact reads them", low, high);
    else
        *ret_text = g_strdup("not known; --exact reads them");
    return ESDM_OK;
}

static json_t *
number_json(esdm_type type, esdm_number value, double about)
{
    if (type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64)
        return json_real(value.f); /* NULL when it is not finite */
    return about < 0 ? json_integer(value.i) : tool_json_u64(value.u);
}

/* JSON has no infinity. */
static void
set_number(json_t *object, const char *name, json_t *value)
{
    tool_json_set(object, name, value != NULL ? value : json_null());
}

esdm_status
stat_statistics_json(esdm_dataset *dataset, json_t *object, esdm_error *err)
{
    esdm_statistics s;
    bool any = false;
    esdm_type type = esdm_dataset_type(dataset);
    esdm_status status = read_statistics(dataset, &s, &any, err);
    if (status != ESDM_OK || !any)
        return status;
    json_t *found = json_object();
    bool exact = (s.flags & ESDM_STATISTICS_EXACT) != 0;
    bool bounds = (s.flags & ESDM_STATISTICS_BOUNDS) != 0;
    tool_json_set(found, "elements", tool_json_u64(s.elements));
    tool_json_set(found, "exact", json_boolean(exact));
    tool_json_set(found, "read", tool_json_u64(s.read_elements));
    if ((exact && s.valid > 0) || (!exact && bounds)) {
        set_number(found, "min", number_json(type, s.min_value, s.min));
        set_number(found, "max", number_json(type, s.max_value, s.max));
    }
    if (exact) {
        tool_json_set(found, "valid", tool_json_u64(s.valid));
        set_number(found, "sum", json_real(s.sum));
    }
    tool_json_set(object, "statistics", found);
    return ESDM_OK;
}
