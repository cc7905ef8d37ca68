/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/histogram.h"

#include <math.h>
#include <stdio.h>

#include "esdm-reduce/number_text.h"
#include "esdm-reduce/variable.h"
#include "esdm/statistics.h"

enum { BINS_MOST = 10000000 };

/* ---- edges --------------------------------------------------------------------------------- */

/* The edges that are asked for; false: they do not increase, or are no numbers. */
static bool
make_edges(const histogram_wish *wish, GArray *ret)
{
    if (wish->edges == NULL) {
        for (gint i = 0; i <= wish->bins; i++) { /* as numpy.linspace() */
            double edge = i == wish->bins
                              ? wish->to
                              : wish->from + (wish->to - wish->from) / wish->bins * (double) i;
            g_array_append_val(ret, edge);
        }
    } else {
        g_auto(GStrv) texts = g_strsplit(wish->edges, ",", -1);
        for (char **text = texts; *text != NULL; text++) {
            char *end = NULL;
            double edge = g_ascii_strtod(*text, &end);
            if (end == *text || *end != '\0')
                return false;
            g_array_append_val(ret, edge);
        }
    }
    for (guint i = 1; i < ret->len; i++) {
        if (!(g_array_index(ret, double, i - 1) < g_array_index(ret, double, i)))
            return false;
    }
    return ret->len > 1;
}

const char *
histogram_wrong(const histogram_wish *wish)
{
    bool equal = wish->bins != 0 || !isnan(wish->from) || !isnan(wish->to);
    if (wish->edges != NULL && equal)
        return "a histogram has either --edges or --bins";
    if (wish->edges == NULL &&
        (wish->bins < 1 || wish->bins > BINS_MOST || !isfinite(wish->from) || !isfinite(wish->to)))
        return "a histogram needs --edges A,B,… or --bins N --from A --to-value B";
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(double));
    bool right = make_edges(wish, edges);
    (void) g_array_free(edges, TRUE);
    return right ? NULL : "edges of a histogram are two numbers or more that increase";
}

/* ---- packed numbers ------------------------------------------------------------------------ */

static bool
is_whole(esdm_type type)
{
    return type != ESDM_TYPE_FLOAT32 && type != ESDM_TYPE_FLOAT64;
}

/* Where stored numbers change from those less than an edge to the others (`last`: from those that
 * are not more). Between two whole numbers: none lies on it. */
static double
stored_edge(double edge, double scale, double offset, bool whole, bool last)
{
    double at = (edge - offset) / scale;
    double step = scale > 0 ? 1 : -1;
    if (!whole || !(fabs(at) < 1e15))
        return at;
    at = round(at) - 2 * step; /* the first number that stands for more, in the order unpacked */
    while (last ? at * scale + offset <= edge : at * scale + offset < edge)
        at += step;
    return at - step / 2;
}

/* Edges of stored numbers, in their order. Of whole numbers two may be the same. */
static double *
stored_edges(const GArray *edges, double scale, double offset, bool whole)
{
    guint n = edges->len;
    double *stored = g_new0(double, n);
    for (guint i = 0; i < n; i++)
        stored[scale < 0 ? n - 1 - i : i] =
            stored_edge(g_array_index(edges, double, i), scale, offset, whole, i + 1 == n);
    return stored;
}

/* Intervals between edges that are the same have no number: they are left out of the call. */
static esdm_status
count_packed(esdm_dataset *dataset, const GArray *edges, double scale, double offset,
             uint64_t *ret_counts, esdm_histogram_rest *ret_rest, esdm_error *err)
{
    guint n = edges->len;
    guint different = 1;
    bool whole = is_whole(esdm_dataset_type(dataset));
    g_autofree double *stored = stored_edges(edges, scale, offset, whole);
    g_autofree double *distinct = g_new0(double, n + 1);
    g_autofree uint64_t *counts = g_new0(uint64_t, n + 1);
    distinct[0] = stored[0];
    for (guint i = 1; i < n; i++) {
        if (stored[i] > stored[i - 1])
            distinct[different++] = stored[i];
    }
    if (different == 1) /* all is below or above */
        distinct[different++] = nextafter(distinct[0], (double) INFINITY);
    esdm_status status = esdm_histogram(dataset, NULL, distinct, different, counts, ret_rest, err);
    for (guint i = 1, at = 0; i < n && status == ESDM_OK; i++) {
        guint to = scale < 0 ? n - 1 - i : i - 1;
        ret_counts[to] = stored[i] > stored[i - 1] ? counts[at++] : 0;
    }
    if (scale < 0) {
        uint64_t below = ret_rest->below;
        ret_rest->below = ret_rest->above;
        ret_rest->above = below;
    }
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

static void
print_text(const GArray *edges, const uint64_t *counts, const esdm_histogram_rest *rest)
{
    char low[NUMBER_TEXT_BYTES];
    char high[NUMBER_TEXT_BYTES];
    for (guint i = 0; i + 1 < edges->len && !ferror(stdout); i++) {
        size_t a = number_text(g_array_index(edges, double, i), low);
        size_t b = number_text(g_array_index(edges, double, i + 1), high);
        printf("%.*s %.*s %" G_GUINT64_FORMAT "\n", (int) a, low, (int) b, high,
               (guint64) counts[i]);
    }
    printf("below %" G_GUINT64_FORMAT "\nabove %" G_GUINT64_FORMAT "\nmissing %" G_GUINT64_FORMAT
           "\n",
           (guint64) rest->below, (guint64) rest->above, (guint64) rest->missing);
}

static void
print_json(const char *container, const char *variable, const GArray *edges, const uint64_t *counts,
           const esdm_histogram_rest *rest)
{
    json_t *root = json_object();
    json_t *numbers = json_array();
    json_t *list = json_array();
    for (guint i = 0; i < edges->len; i++) {
        double edge = g_array_index(edges, double, i);
        tool_json_append(numbers, isfinite(edge) ? json_real(edge) : json_null());
        if (i + 1 < edges->len)
            tool_json_append(list, tool_json_u64(counts[i]));
    }
    tool_json_set(root, "container", tool_json_text(container));
    tool_json_set(root, "variable", tool_json_text(variable));
    tool_json_set(root, "operation", tool_json_text("histogram"));
    tool_json_set(root, "edges", numbers);
    tool_json_set(root, "counts", list);
    tool_json_set(root, "below", tool_json_u64(rest->below));
    tool_json_set(root, "above", tool_json_u64(rest->above));
    tool_json_set(root, "missing", tool_json_u64(rest->missing));
    tool_json_set(root, "read", tool_json_u64(rest->read_elements));
    tool_json_print(root);
}

tool_exit
histogram_print(esdm_dataset *dataset, const char *container, const char *variable,
                const histogram_wish *wish)
{
    esdm_error err = {0};
    esdm_histogram_rest rest = {0};
    double scale = stated_number(dataset, "scale_factor", 1);
    double offset = stated_number(dataset, "add_offset", 0);
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(double));
    (void) make_edges(wish, edges);
    uint64_t *counts = g_new0(uint64_t, edges->len);
    esdm_status status =
        scale == 1 && offset == 0
            ? esdm_histogram(dataset, NULL, (const double *) (const void *) edges->data, edges->len,
                             counts, &rest, &err)
            : count_packed(dataset, edges, scale, offset, counts, &rest, &err);
    if (status == ESDM_OK && tool.json)
        print_json(container, variable, edges, counts, &rest);
    else if (status == ESDM_OK)
        print_text(edges, counts, &rest);
    g_free(counts);
    (void) g_array_free(edges, TRUE);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}
