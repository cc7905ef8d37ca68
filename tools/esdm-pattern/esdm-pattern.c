/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-pattern/esdm-pattern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tool_help help = {
    .name = "esdm-pattern",
    .arguments = "OUTPUT",
    .description =
        "Makes a synthetic variable for tests and benchmarks, as a NetCDF file or, with\n"
        "esdm:NAME or esdm://NAME, as a container. The same options give the same values\n"
        "everywhere.\n"
        "\n"
        "Patterns, each scaled to --range:\n"
        "  constant                          the lower end of the range\n"
        "  random                            independent, evenly distributed\n"
        "  noise[:frequency=4,octaves=3]     smooth gradient noise; hills along an axis,\n"
        "                                    and layers of ever finer ones\n"
        "  steps[:count=8]                   plateaus that climb along all axes\n"
        "  waves[:frequency=4]               sum of sines along all axes\n"
        "\n"
        "Mutators, applied in the order given:\n"
        "  repeat:COUNT    so many neighbours along the fastest axis have one value\n"
        "  noise:SHARE     adds even noise of at most this share of the range\n"
        "\n"
        "--land masks a share of the two fastest axes, in coherent patches that are the\n"
        "same at all indices of the others, with --fill as _FillValue.",
    .examples =
        "  esdm-pattern -s 12x180x360 -p noise:frequency=6 -r 250,310 tas.nc\n"
        "  esdm-pattern -s time=12,lat=180,lon=360 -u -v sst -l 0.29 esdm:test/sst.nc\n"
        "  esdm-pattern -s 1000000 -t int -r 0,19 -p steps:count=20 -m repeat:16 steps.nc\n",
    .see_also = "esdm-cp, esdm-stat",
};

static char *shape_text, *type_text, *range_text, *pattern_text, *seed_text, *fill_text, *format;
static char *land_text, *variable, *units;
static char **mutators;
static gboolean unlimited, force, quiet;

static const GOptionEntry entries[] = {
    {"shape", 's', 0, G_OPTION_ARG_STRING, &shape_text,
     "Lengths, slowest first: 12x180x360, or time=12,lat=180,lon=360", "SHAPE"},
    {"pattern", 'p', 0, G_OPTION_ARG_STRING, &pattern_text, "See above (noise)", "PATTERN"},
    {"mutate", 'm', 0, G_OPTION_ARG_STRING_ARRAY, &mutators, "See above; can be repeated",
     "MUTATOR"},
    {"range", 'r', 0, G_OPTION_ARG_STRING, &range_text, "Ends of the range (0,1)", "LOW,HIGH"},
    {"land", 'l', 0, G_OPTION_ARG_STRING, &land_text, "Share of masked points (0)", "SHARE"},
    {"fill", 0, 0, G_OPTION_ARG_STRING, &fill_text, "Value of masked points (NetCDF's own)",
     "VALUE"},
    {"type", 't', 0, G_OPTION_ARG_STRING, &type_text, "Type of numbers (float)", "TYPE"},
    {"variable", 'v', 0, G_OPTION_ARG_STRING, &variable, "Name of the variable (pattern)", "NAME"},
    {"units", 0, 0, G_OPTION_ARG_STRING, &units, "Its units", "TEXT"},
    {"unlimited", 'u', 0, G_OPTION_ARG_NONE, &unlimited, "The slowest dimension is unlimited",
     NULL},
    {"seed", 0, 0, G_OPTION_ARG_STRING, &seed_text, "Another field of the same kind (1)", "NUMBER"},
    {"format", 0, 0, G_OPTION_ARG_STRING, &format,
     "Of a file: netcdf4, netcdf4-classic, cdf5, 64bit-offset, classic", "FORMAT"},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "Replace what exists", NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "No progress bar, no summary", NULL},
    {0},
};

/* ---- reading options ---------------------------------------------------------------------- */

static bool
read_number(const char *text, double *ret_value)
{
    char *end = NULL;
    *ret_value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0';
}

/* "12" or "time=12". */
static bool
read_axis(const char *text, char **ret_name, uint64_t *ret_length)
{
    const char *equals = strchr(text, '=');
    const char *length = equals != NULL ? equals + 1 : text;
    if (equals == text || !g_ascii_string_to_unsigned(length, 10, 1, INT64_MAX, ret_length, NULL))
        return false;
    *ret_name = equals != NULL ? g_strndup(text, (gsize) (equals - text)) : NULL;
    return true;
}

static const char *
default_name(uint32_t rank, uint32_t axis)
{
    static const char *const names[] = {"time", "lev", "lat", "lon"};
    static const char *const more[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};
    if (rank > 4)
        return more[axis];
    if (rank == 3 && axis == 0)
        return names[0];
    return names[4 - rank + axis];
}

static tool_exit
read_shape(pattern_field *field, char **names)
{
    if (shape_text == NULL)
        return tool_usage("--shape is missing");
    bool named = strchr(shape_text, '=') != NULL;
    g_auto(GStrv) parts = g_strsplit(shape_text, named ? "," : "x", -1);
    guint rank = g_strv_length(parts);
    uint64_t points = 1;
    if (rank > PATTERN_RANK_MAX)
        return tool_usage("--shape has %u axes; at most %d are possible", rank, PATTERN_RANK_MAX);
    field->rank = rank;
    for (guint i = 0; i < rank; i++) {
        char *name = NULL;
        if (!read_axis(parts[i], &name, &field->shape[i]))
            return tool_usage("--shape: '%s' is no length", parts[i]);
        names[i] = name != NULL ? name : g_strdup(default_name(rank, i));
        if (field->shape[i] > (UINT64_MAX >> 4) / points)
            return tool_usage("--shape: there are too many points");
        points *= field->shape[i];
        for (guint k = 0; k < i; k++) {
            if (g_str_equal(names[k], names[i]))
                return tool_usage("--shape names '%s' twice", names[i]);
        }
    }
    return TOOL_OK;
}

static tool_exit
read_range(pattern_field *field)
{
    field->lowest = 0;
    field->highest = 1;
    if (range_text == NULL)
        return TOOL_OK;
    g_auto(GStrv) ends = g_strsplit(range_text, ",", -1);
    if (g_strv_length(ends) != 2 || !read_number(ends[0], &field->lowest) ||
        !read_number(ends[1], &field->highest) || !(field->lowest <= field->highest) ||
        !isfinite(field->highest - field->lowest))
        return tool_usage("--range is '%s'; it takes two numbers, the lower one first", range_text);
    return TOOL_OK;
}

static tool_exit
read_field(pattern_field *field, char **names)
{
    esdm_error err = {0};
    tool_exit result = read_shape(field, names);
    if (result == TOOL_OK)
        result = read_range(field);
    if (result != TOOL_OK)
        return result;
    if (pattern_parse(pattern_text != NULL ? pattern_text : "noise", field, &err) != ESDM_OK)
        return tool_usage("%s", err.message);
    for (char **text = mutators; text != NULL && *text != NULL; text++) {
        if (pattern_parse_mutator(*text, field, &err) != ESDM_OK)
            return tool_usage("%s", err.message);
    }
    if (land_text != NULL &&
        (!read_number(land_text, &field->land) || !(field->land >= 0 && field->land <= 1)))
        return tool_usage("--land is '%s'; it takes a share from 0 to 1", land_text);
    field->seed = 1;
    if (seed_text != NULL &&
        !g_ascii_string_to_unsigned(seed_text, 10, 0, UINT64_MAX, &field->seed, NULL))
        return tool_usage("--seed is '%s'; it takes a whole number", seed_text);
    return TOOL_OK;
}

static tool_exit
read_output(const char *argument, pattern_output *output)
{
    output->is_container = g_str_has_prefix(argument, "esdm:");
    output->target = tool_container(argument);
    output->replace = force;
    output->unlimited = unlimited;
    output->variable = variable != NULL ? variable : "pattern";
    output->units = units;
    output->format = format;
    if (format != NULL && output->is_container)
        return tool_usage("--format is for files; a container takes all formats");
    if (!pattern_format_known(format))
        return tool_usage("there is no format '%s'", format);
    output->type = pattern_type(type_text != NULL ? type_text : "float");
    if (output->type == ESDM_TYPE_NONE)
        return tool_usage("there is no type '%s'; there are %s", type_text, pattern_types());
    output->fill = pattern_default_fill(output->type);
    if (fill_text != NULL && !read_number(fill_text, &output->fill))
        return tool_usage("--fill is '%s'; it takes a number", fill_text);
    return TOOL_OK;
}

/* ---- results ------------------------------------------------------------------------------ */

static json_t *
json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void
print_summary(const pattern_output *output, const pattern_summary *sum, double seconds)
{
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "output", tool_json_text(output->target));
        tool_json_set(root, "values", tool_json_u64(sum->values));
        tool_json_set(root, "masked", tool_json_u64(sum->masked));
        tool_json_set(root, "bytes", tool_json_u64(sum->bytes));
        tool_json_set(root, "smallest", json_number(sum->smallest));
        tool_json_set(root, "largest", json_number(sum->largest));
        tool_json_set(root, "seconds", json_number(seconds));
        tool_json_print(root);
        return;
    }
    g_autofree char *target = tool_printable(output->target);
    g_autofree char *bytes = tool_bytes(sum->bytes);
    (void) printf("%s: %" G_GUINT64_FORMAT " values, %s, %g to %g", target, sum->values, bytes,
                  sum->smallest, sum->largest);
    if (sum->masked > 0)
        (void) printf(", %.1f %% masked", 100 * (double) sum->masked / (double) sum->values);
    (void) printf("\n");
}

int
main(int argc, char **argv)
{
    /* Taken before the parser moves arguments. */
    g_autofree char *history = g_strjoinv(" ", argv);
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 2)
        return tool_usage(argc < 2 ? "where to? Name a file or esdm:CONTAINER"
                                   : "one output at a time");
    pattern_field field = {0};
    char *names[PATTERN_RANK_MAX] = {0};
    pattern_output output = {.history = history, .dimensions = (const char *const *) names};
    pattern_summary sum = {0};
    tool_progress progress;
    tool_exit result = read_output(argv[1], &output);
    if (result == TOOL_OK)
        result = read_field(&field, names);
    if (result == TOOL_OK) {
        tool_progress_start(&progress, !quiet && !tool.json);
        pattern_field_prepare(&field);
        result = pattern_write(&field, &output, &progress, &sum);
        if (result == TOOL_OK && (!quiet || tool.json))
            print_summary(&output, &sum, tool_progress_seconds(&progress));
    }
    for (uint32_t i = 0; i < PATTERN_RANK_MAX; i++)
        g_free(names[i]);
    return tool_finish(result);
}
