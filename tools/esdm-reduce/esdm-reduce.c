/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-reduce: sum, mean and the like along dimensions. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm-reduce/histogram.h"
#include "esdm-reduce/list.h"
#include "esdm-reduce/output.h"
#include "esdm-reduce/variable.h"
#include "esdm-reduce/weights.h"
#include "esdm/statistics.h"

static const tool_help help = {
    .name = "esdm-reduce",
    .arguments = "OPERATION CONTAINER VARIABLE",
    .description =
        "Prints the sum, mean, min, max, count or variance of a variable, over all of its\n"
        "dimensions or those that --over names. What the index tells is not read: a mean\n"
        "over the grid for each time step of a model's output mostly reads no data.\n"
        "\n"
        "Missing values (NaN, the fill value, missing_value) do not count; \"count\" tells\n"
        "how many others there are. Values are unpacked (scale_factor and add_offset), and\n"
        "weighted where --weights asks for it. The variance is divided by the count.\n"
        "\n"
        "One number is printed for each element along the dimensions that stay, behind its\n"
        "indices along these, from 0 on; \"-\" where all values are missing.\n"
        "\n"
        "Weights are the values of a variable, whose dimensions are some of this one's\n"
        "(areacella), or made of a grid of latitudes and longitudes: \"area\" takes the exact\n"
        "areas of cells between two latitudes, \"great-circles\" those between great circles\n"
        "through their corners, as fldmean of cdo 2 does.\n"
        "\n"
        "The operation \"histogram\" counts the values of the whole variable between edges,\n"
        "the last of which is included: a line for each interval, then what lies below,\n"
        "above, and is missing.",
    .examples = "  esdm-reduce max tas.nc tas\n"
                "  esdm-reduce mean tas.nc tas --over lat,lon\n"
                "  esdm-reduce variance run1/ocean.nc /ocean/tos --over time --json\n"
                "  esdm-reduce mean run1/ocean.nc tos --over time --to run1/tos-mean.nc\n"
                "  esdm-reduce mean tas.nc tas --over lat,lon --weights area\n"
                "  esdm-reduce histogram tas.nc tas --bins 12 --from 200 --to-value 320\n",
    .see_also = "esdm-stat",
};

static gchar *over_names;
static gchar *to_name;
static gboolean force;
static gchar *weights_name;
static histogram_wish intervals = {.from = NAN, .to = NAN};

static const GOptionEntry entries[] = {
    {"over", 'o', 0, G_OPTION_ARG_STRING, &over_names,
     "Dimensions along which values are put together; all by default", "NAME,…"},
    {"to", 't', 0, G_OPTION_ARG_STRING, &to_name,
     "Store the result as this container, with the coordinates that stay, and print nothing",
     "NAME"},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "Replace the container of --to", NULL},
    {"weights", 'w', 0, G_OPTION_ARG_STRING, &weights_name,
     "Weights of a mean or sum: area, great-circles, or a variable", "WHAT"},
    {"edges", 0, 0, G_OPTION_ARG_STRING, &intervals.edges, "Edges of a histogram, increasing",
     "A,B,…"},
    {"bins", 0, 0, G_OPTION_ARG_INT, &intervals.bins, "Equal intervals of a histogram", "N"},
    {"from", 0, 0, G_OPTION_ARG_DOUBLE, &intervals.from, "where these begin", "A"},
    {"to-value", 0, 0, G_OPTION_ARG_DOUBLE, &intervals.to, "where these end", "B"},
    {0},
};

static const struct {
    const char *name;
    esdm_reduction what;
} operations[] = {{"sum", ESDM_REDUCE_SUM},     {"mean", ESDM_REDUCE_MEAN},
                  {"min", ESDM_REDUCE_MIN},     {"max", ESDM_REDUCE_MAX},
                  {"count", ESDM_REDUCE_COUNT}, {"variance", ESDM_REDUCE_VARIANCE}};

/* A variable, what is to be made of it, and the axes that stay. */
typedef struct reduction {
    esdm_reduction what;
    const char *operation;
    esdm_dataset *dataset;
    bool over[ESDM_MAX_RANK];
    uint32_t kept[ESDM_MAX_RANK];
    uint64_t shape[ESDM_MAX_RANK]; /* along these */
    uint32_t nkept;
    uint64_t count; /* of results */
} reduction;

/* ---- what is wanted ------------------------------------------------------------------------ */

static esdm_dataset *
find_dataset(esdm_group *group, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    const char *last = NULL;
    for (char **name = names; *name != NULL && group != NULL; name++) {
        if (**name == '\0')
            continue;
        if (last != NULL)
            group = esdm_group_find(group, last);
        last = *name;
    }
    return group != NULL && last != NULL ? esdm_group_dataset_find(group, last) : NULL;
}

/* Which axes --over names; all without it. */
static bool
choose_axes(reduction *r)
{
    uint32_t rank = esdm_dataset_rank(r->dataset);
    g_auto(GStrv) names = g_strsplit(over_names != NULL ? over_names : "", ",", -1);
    for (uint32_t d = 0; d < rank; d++)
        r->over[d] = over_names == NULL;
    for (char **name = names; *name != NULL; name++) {
        bool found = false;
        for (uint32_t d = 0; d < rank; d++) {
            if (strcmp(esdm_dimension_name(esdm_dataset_dimension(r->dataset, d)), *name) == 0)
                found = r->over[d] = true;
        }
        if (!found && **name != '\0') {
            g_autofree char *printable = tool_printable(*name);
            tool_error("the variable has no dimension '%s'; esdm-stat shows them", printable);
            return false;
        }
    }
    r->count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (r->over[d])
            continue;
        r->kept[r->nkept] = d;
        r->shape[r->nkept] = esdm_dimension_length(esdm_dataset_dimension(r->dataset, d));
        if (__builtin_mul_overflow(r->count, r->shape[r->nkept++], &r->count))
            r->count = G_MAXUINT64; /* no memory has that many */
    }
    return true;
}

/* ---- packed numbers ------------------------------------------------------------------------ */

/* What is made of stored numbers, for the numbers that they stand for. */
static double
unpacked(esdm_reduction what, double value, uint64_t valid, double scale, double offset)
{
    switch (what) {
    case ESDM_REDUCE_COUNT:
        return value;
    case ESDM_REDUCE_VARIANCE:
        return value * scale * scale;
    case ESDM_REDUCE_SUM:
        return value * scale + offset * (double) valid;
    default:
        return value * scale + offset;
    }
}

static esdm_status
reduce_weighted(const reduction *r, double *values, esdm_error *err)
{
    double scale = stated_number(r->dataset, "scale_factor", 1);
    double offset = stated_number(r->dataset, "add_offset", 0);
    esdm_group *group = esdm_dataset_group(r->dataset);
    reduce_weights weights = {.values = NULL};
    double *sums = g_try_malloc0(((gsize) r->count + 1) * sizeof *sums);
    if (sums == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "the results do not fit into memory");
    while (esdm_group_parent(group) != NULL)
        group = esdm_group_parent(group);
    bool great_circles = strcmp(weights_name, "great-circles") == 0;
    esdm_status status = great_circles || strcmp(weights_name, "area") == 0
                             ? weights_of_area(r->dataset, great_circles, &weights, err)
                             : weights_of_variable(r->dataset, find_dataset(group, weights_name),
                                                   weights_name, &weights, err);
    if (status == ESDM_OK)
        status = esdm_reduce_weighted(r->dataset, NULL, r->over, r->what, weights.axes,
                                      weights.values, values, sums, err);
    for (uint64_t i = 0; i < r->count && status == ESDM_OK; i++)
        values[i] = values[i] * scale + offset * (r->what == ESDM_REDUCE_SUM ? sums[i] : 1);
    g_free(weights.values);
    g_free(sums);
    return status;
}

static esdm_status
reduce_unpacked(const reduction *r, double *values, esdm_error *err)
{
    double scale = stated_number(r->dataset, "scale_factor", 1);
    double offset = stated_number(r->dataset, "add_offset", 0);
    bool packed = scale != 1 || offset != 0;
    esdm_reduction what = r->what;
    if (scale < 0 && (what == ESDM_REDUCE_MIN || what == ESDM_REDUCE_MAX))
        what = what == ESDM_REDUCE_MIN ? ESDM_REDUCE_MAX : ESDM_REDUCE_MIN;
    uint64_t *valid = packed ? g_try_malloc0(((gsize) r->count + 1) * sizeof *valid) : NULL;
    if (packed && valid == NULL) {
        tool_error("%" G_GUINT64_FORMAT " results do not fit into memory", (guint64) r->count);
        return ESDM_ENOMEM;
    }
    esdm_status status = esdm_reduce(r->dataset, NULL, r->over, what, values, valid, err);
    for (uint64_t i = 0; packed && i < r->count && status == ESDM_OK; i++)
        values[i] = unpacked(r->what, values[i], valid[i], scale, offset);
    g_free(valid);
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

static void
print_json(const reduction *r, const char *container, const char *variable, const double *values)
{
    json_t *root = json_object();
    json_t *names = json_array();
    json_t *shape = json_array();
    json_t *list = json_array();
    for (uint32_t k = 0; k < r->nkept; k++) {
        const esdm_dimension *dimension = esdm_dataset_dimension(r->dataset, r->kept[k]);
        tool_json_append(names, tool_json_text(esdm_dimension_name(dimension)));
        tool_json_append(shape, tool_json_u64(r->shape[k]));
    }
    for (uint64_t i = 0; i < r->count; i++) /* JSON has neither NaN nor infinity */
        tool_json_append(list, isfinite(values[i]) ? json_real(values[i])
                               : isnan(values[i])
                                   ? json_null()
                                   : json_string(values[i] > 0 ? "Infinity" : "-Infinity"));
    tool_json_set(root, "container", tool_json_text(container));
    tool_json_set(root, "variable", tool_json_text(variable));
    tool_json_set(root, "operation", tool_json_text(r->operation));
    tool_json_set(root, "dimensions", names);
    tool_json_set(root, "shape", shape);
    tool_json_set(root, "values", list);
    tool_json_print(root);
}

static esdm_status
put_results(const reduction *r, esdm_container *container, const char *variable, double *values,
            esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    if (to_name == NULL) {
        if (tool.json)
            print_json(r, esdm_container_name(container), variable, values);
        else
            list_print(&(reduce_list){
                .values = values, .count = r->count, .shape = r->shape, .rank = r->nkept});
        return ESDM_OK;
    }
    const reduce_output output = {.name = name,
                                  .replace = force,
                                  .what = r->what,
                                  .operation = r->operation,
                                  .weights = weights_name,
                                  .source = r->dataset,
                                  .over = r->over};
    esdm_status status = esdm_container_normalise(tool_container(to_name), name, err);
    if (status == ESDM_OK && strcmp(name, esdm_container_name(container)) == 0)
        return tool_error_set(err, ESDM_EINVAL, "'%s' is what is read: choose another --to", name);
    return status == ESDM_OK
               ? reduce_store(esdm_container_session(container), &output, values, r->count, err)
               : status;
}

static tool_exit
reduce(reduction *r, esdm_container *container, const char *name, const char *variable)
{
    esdm_error err = {0};
    g_autofree char *printable = tool_printable(variable);
    r->dataset = find_dataset(esdm_container_root(container), variable);
    if (r->dataset == NULL) {
        tool_error("'%s' has no variable '%s'; esdm-stat shows them", name, printable);
        return TOOL_NOT_FOUND;
    }
    if (r->what == 0)
        return histogram_print(r->dataset, name, variable, &intervals);
    if (!choose_axes(r))
        return TOOL_NOT_FOUND;
    double *values = r->count < G_MAXSIZE / sizeof *values
                         ? g_try_malloc0(((gsize) r->count + 1) * sizeof *values)
                         : NULL;
    if (values == NULL) {
        tool_error("%" G_GUINT64_FORMAT " results do not fit into memory", (guint64) r->count);
        return TOOL_FAILED;
    }
    esdm_status status =
        weights_name != NULL ? reduce_weighted(r, values, &err) : reduce_unpacked(r, values, &err);
    if (status == ESDM_OK)
        status = put_results(r, container, variable, values, &err);
    g_free(values);
    if (status == ESDM_EEXIST && to_name != NULL) {
        tool_error("%s; --force replaces it", err.message);
        return TOOL_REFUSED;
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static tool_exit
open_and_reduce(esdm_session *session, reduction *r, const char *argument, const char *variable)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_container *container = NULL;
    esdm_error err = {0};
    esdm_status status = argument[0] == '/' /* of a file that stands for one */
                             ? tool_container_name(session, argument, name, &err)
                             : esdm_container_normalise(tool_container(argument), name, &err);
    if (status == ESDM_OK)
        status = esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = reduce(r, container, name, variable);
    esdm_container_discard(container);
    return result;
}

int
main(int argc, char **argv)
{
    reduction r = {.operation = NULL};
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 4)
        return tool_usage("which operation, container and variable?");
    for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
        if (strcmp(argv[1], operations[i].name) == 0) {
            r.operation = operations[i].name;
            r.what = operations[i].what;
        }
    }
    if (strcmp(argv[1], "histogram") == 0)
        r.operation = "histogram";
    if (r.operation == NULL)
        return tool_usage("the operation is sum, mean, min, max, count, variance or histogram");
    if (weights_name != NULL && r.what != ESDM_REDUCE_MEAN && r.what != ESDM_REDUCE_SUM)
        return tool_usage("only a mean and a sum are weighted");
    const char *wrong = r.what == 0 ? histogram_wrong(&intervals) : NULL;
    if (wrong != NULL || (r.what == 0 && over_names != NULL))
        return tool_usage("%s", wrong != NULL ? wrong : "a histogram is made of all dimensions");
    if (r.what != 0 && (intervals.edges != NULL || intervals.bins != 0))
        return tool_usage("only a histogram has intervals");
    if (r.what == 0 && to_name != NULL)
        return tool_usage("a histogram is printed: --to is for the other operations");
    esdm_session *session = NULL;
    tool_exit result = tool_session(to_name == NULL, &session);
    if (result != TOOL_OK)
        return result;
    result = open_and_reduce(session, &r, argv[2], argv[3]);
    esdm_session_close(session);
    return tool_finish(result);
}
