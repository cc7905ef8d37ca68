/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-cost: what computing, storing and archiving cost a centre over years, and whether
 * keeping, compressing, de-duplicating, archiving or computing again is cheapest. */

#include "esdm-cost/esdm-cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tool_help help = {
    .name = "esdm-cost",
    .arguments = "CENTRE.json",
    .description =
        "Tells what it costs to compute data, and to have them for years. CENTRE.json says what\n"
        "the centre buys, for how many years that runs, how much it holds and does, and what\n"
        "energy costs, by year or with a growth; and of its cases (a run, a project) how much\n"
        "they compute and write, how long that is kept, and how often it is read.\n"
        "site-config/costs/README.md has all keys, climate.json beside it an example.\n"
        "\n"
        "For each case and each year in which it begins there are two tables. The first one is\n"
        "the case as it is kept, in prices of that year: computing, disks, access, catalogue,\n"
        "archive; and how many times it could be computed again for what disks and archive\n"
        "cost, by the exact amounts and by the rounded ones of the table.\n"
        "\n"
        "The second one compares ways to have the data for keep_years with so many readings,\n"
        "after they were computed once: on disk, compressed, de-duplicated, archived, or\n"
        "computed again for each reading. What wears out is bought again, and read, recalled\n"
        "and computed, at the prices of the years to come.",
    .examples = "  esdm-cost climate.json\n"
                "  esdm-cost --case CMIP5 --from 2025 --readings 100 climate.json\n"
                "  esdm-cost --json --years 20 centre.json\n",
    .see_also = "esdm-advise, esdm-recipe cost, esdm-dedup",
};

static char **from_texts;
static char *case_wanted;
static double years_wanted = -1, readings_wanted = -1;

static const GOptionEntry entries[] = {
    {"case", 0, 0, G_OPTION_ARG_STRING, &case_wanted, "This one alone", "NAME"},
    {"from", 0, 0, G_OPTION_ARG_STRING_ARRAY, &from_texts,
     "Year in which it begins, instead of those of the file; can be repeated", "YEAR"},
    {"years", 0, 0, G_OPTION_ARG_DOUBLE, &years_wanted, "That ways are compared for (keep_years)",
     "NUMBER"},
    {"readings", 0, 0, G_OPTION_ARG_DOUBLE, &readings_wanted, "In these years (readings)",
     "NUMBER"},
    {0},
};

/* What options say instead of the file. */
static tool_exit
apply_options(cost_centre *centre)
{
    if (years_wanted != -1 && !(years_wanted > 0 && years_wanted <= 1000))
        return tool_usage("--years: expected a number above 0 and up to 1000");
    if (readings_wanted != -1 && !(readings_wanted >= 0 && isfinite(readings_wanted)))
        return tool_usage("--readings: expected a number from 0 on");
    if (from_texts != NULL)
        g_array_set_size(centre->years, 0);
    for (char **one = from_texts; one != NULL && *one != NULL; one++) {
        char *end = NULL;
        double year = g_ascii_strtod(*one, &end);
        if (end == *one || *end != '\0' || !(year > 1900 && year < 3000))
            return tool_usage("--from is '%s'; it takes a year such as 2025", *one);
        g_array_append_val(centre->years, year);
    }
    for (guint i = 0; i < centre->cases->len; i++) {
        cost_case *one = g_ptr_array_index(centre->cases, i);
        one->keep_years = years_wanted > 0 ? years_wanted : one->keep_years;
        one->readings = readings_wanted >= 0 ? readings_wanted : one->readings;
    }
    return TOOL_OK;
}

static tool_exit
choose_case(cost_centre *centre, const char *file)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = centre->cases->len; case_wanted != NULL && i-- > 0;) {
        const cost_case *one = g_ptr_array_index(centre->cases, i);
        g_string_append_printf(names, "%s'%s'", names->len > 0 ? ", " : "", one->name);
        if (!g_str_equal(one->name, case_wanted))
            g_ptr_array_remove_index(centre->cases, i);
    }
    if (centre->cases->len > 0)
        return TOOL_OK;
    if (case_wanted != NULL)
        tool_error("%s has no case '%s'; it has %s", file, case_wanted, names->str);
    else
        tool_error("%s has no 'cases': there is nothing to tell the costs of", file);
    return TOOL_NOT_FOUND;
}

/* Growths of centuries go beyond all numbers. */
static tool_exit
check_amounts(const cost_centre *centre)
{
    for (guint i = 0; i < centre->cases->len; i++) {
        const cost_case *one = g_ptr_array_index(centre->cases, i);
        for (guint y = 0; y < centre->years->len; y++) {
            double year = g_array_index(centre->years, double, y);
            g_autoptr(GPtrArray) ways = cost_ways(centre, one, year);
            bool good = isfinite(cost_of_case(centre, one, year).total);
            for (guint w = 0; w < ways->len; w++)
                good = good && isfinite(cost_of_way(ways->pdata[w], one->readings));
            if (!good) {
                tool_error("what '%s' costs from %g on is no finite number: look at what grows in "
                           "the file, and at --from and --years",
                           one->name, year);
                return TOOL_FAILED;
            }
        }
    }
    return TOOL_OK;
}

/* A container, or a file of data, in the place of the description. */
static bool
names_data(const char *argument)
{
    static const char *const ends[] = {".nc", ".nc4", ".cdf", ".grb", ".grib", ".zarr", ".h5"};
    bool is = g_str_has_prefix(argument, "esdm:");
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++)
        is = is || g_str_has_suffix(argument, ends[i]);
    if (is || g_file_test(argument, G_FILE_TEST_EXISTS))
        return is;
    esdm_error err = {0};
    esdm_session *session = NULL;
    esdm_session_options options = {.config_path = tool.config, .read_only = true};
    if (esdm_session_open(&options, &session, &err) != ESDM_OK)
        return false;
    is = tool_is_container(session, argument);
    esdm_session_close(session);
    return is;
}

int
main(int argc, char **argv)
{
    g_autoptr(cost_centre) centre = NULL;
    esdm_error err = {0};
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 2)
        return tool_usage("which file of a centre (one)?");
    if (names_data(argv[1])) {
        (void) tool_usage(
            "'%s' is data: esdm-cost takes a file that describes what the centre pays "
            "(site-config/costs/climate.json is an example). 'esdm-recipe cost NAME' "
            "tells what keeping one container costs, and what computing it again",
            argv[1]);
        return TOOL_USAGE;
    }
    esdm_status status = cost_centre_read(argv[1], &centre, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = apply_options(centre);
    if (result == TOOL_OK)
        result = choose_case(centre, argv[1]);
    if (result == TOOL_OK)
        result = check_amounts(centre);
    if (result != TOOL_OK)
        return result;
    if (tool.json)
        cost_print_json(centre);
    else
        cost_print(centre);
    return tool_finish(TOOL_OK);
}
