/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-find: containers and datasets by their metadata. */

#include <stdio.h>
#include <string.h>

#include "esdm-find/find.h"

static const tool_help help = {
    .name = "esdm-find",
    .arguments = "EXPRESSION…",
    .description =
        "Finds containers and datasets by their attributes, and by what their data are\n"
        "about: times, places, levels, values. The answer comes from an index that every\n"
        "commit keeps; no container is opened.\n"
        "\n"
        "An expression has comparisons, joined by \"and\" and \"or\", with \"not\" and\n"
        "brackets; \"and\" binds more tightly than \"or\". Put it in quotes, because < > * ( )\n"
        "and blanks mean something to the shell. Several arguments are joined by \"and\".\n"
        "An argument may be a place of a view (esdm-ls --views): cmip6:/CMIP6/CMIP, or the\n"
        "name of a query that was saved, with ':' behind it.\n"
        "\n"
        "  NAME OPERATOR VALUE\n"
        "  NAME in (VALUE, VALUE, …), NAME not in (…)\n"
        "  exists NAME\n"
        "\n"
        "  NAME      ATTRIBUTE of a dataset or a container, VARIABLE:ATTRIBUTE of the\n"
        "            datasets called VARIABLE, or :ATTRIBUTE of containers alone\n"
        "  OPERATOR  = != < <= > >=; ~ for a glob (* ? [a-z]), =~ for a regular\n"
        "            expression (PCRE2) on text\n"
        "  VALUE     a number, a word, or text in single or double quotes (\\n \\\" \\u00b0);\n"
        "            a month or day (2019-04, 2019-04-05) after <= or > is all of it\n"
        "\n"
        "These are about the data; put VARIABLE: in front for one variable's:\n"
        "\n"
        "  time overlaps 1990-01 .. 2000-12    in the calendar of the data; a year, month,\n"
        "                                      day or hour is all of it\n"
        "  box overlaps WEST,SOUTH,EAST,NORTH  degrees; longitudes may be -180 to 180 or\n"
        "                                      0 to 360, and go across the end\n"
        "  level overlaps 500 .. 850 hPa       of the vertical axis\n"
        "  grid = curvilinear                  or regular, unstructured, point\n"
        "  max(VARIABLE) > 310 K, min(…) < 0   units are converted; without one the number\n"
        "                                      is in that of the data\n"
        "  length(DIMENSION) >= 365\n"
        "  text ~ \"sea ice\"                   all these words in a title, long name or\n"
        "                                      comment (64 words of a container are kept);\n"
        "                                      the last may end in *\n"
        "\n"
        "They find containers; a dataset is found by a comparison of an attribute or with\n"
        "VARIABLE: besides. Where data were written over, ranges may be too wide until\n"
        "esdm-mkfs --reindex, which also makes the index for containers of older versions.\n"
        "\n"
        "What is printed: the name of a container whose global attributes meet the\n"
        "expression, and CONTAINER:/GROUP/DATASET for each such dataset. Where a dataset has\n"
        "no attribute of the name, that of its container counts; one comparison outside of\n"
        "\"not\" must be met by its own. != is met by an attribute that is there and has\n"
        "another value, \"not NAME = VALUE\" also where there is none. A quoted value is\n"
        "compared as text, even if it looks like a number. Upper and lower case differ.\n"
        "Nothing found is exit status 3; a message tells then which attributes or values\n"
        "nothing has. Attributes of --columns, --sort and --facets that nothing has are told, too.",
    .examples =
        "  esdm-find 'source_id ~ CNRM-* and table_id = Amon'\n"
        "  esdm-find 'standard_name = air_temperature and units = K'\n"
        "  esdm-find 'variable_id in (tas, pr) and not (source_id =~ \"^(EC|IITM)\")'\n"
        "  esdm-find 'time overlaps 1990 .. 1999 and box overlaps -10,35,30,60'\n"
        "  esdm-find 'max(tas) > 40 degC and text ~ \"near surface\"'\n"
        "  esdm-find ':experiment_id = historical' ':realization_index <= 3'\n"
        "  esdm-find cmip6:/CMIP6/CMIP/ 'time overlaps 1990 and max(tas) > 320 K'\n"
        "  esdm-find --facets source_id,table_id 'mip_era = CMIP6'\n"
        "  esdm-find -c --columns source_id,nominal_resolution --sort source_id 'table_id = Amon'\n"
        "  esdm-find --without 'work/*' 'table_id = Amon'\n"
        "  esdm-find -0 -c 'experiment_id = ssp585' | xargs -0 esdm-rm\n",
    .see_also = "esdm-ls, esdm-stat",
};

#define NO_LIMIT G_MININT64 /* nobody asked for one */

static find_options options = {.limit = NO_LIMIT};
static char *save, *forget;
static gboolean list;

static const GOptionEntry entries[] = {
    {"containers", 'c', 0, G_OPTION_ARG_NONE, &options.containers_only,
     "Print containers alone: each one that matches or has a dataset that does", NULL},
    {"columns", 'l', 0, G_OPTION_ARG_STRING, &options.columns,
     "Print these attributes behind each name, parted by tabs", "NAME,…"},
    {"sort", 's', 0, G_OPTION_ARG_STRING, &options.sort,
     "Sort by attributes; --sort=-NAME: the largest first", "NAME,…"},
    {"limit", 'n', 0, G_OPTION_ARG_INT64, &options.limit,
     "Print at most so many, from 1; in JSON \"more\" says whether there are others", "N"},
    {"facets", 'f', 0, G_OPTION_ARG_STRING, &options.facets,
     "Print how many of the containers that -c prints have each value of these attributes",
     "NAME,…"},
    {"without", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.without,
     "Leave this container out, or those of a pattern (work/*); may be repeated", "NAME"},
    {"save", 0, 0, G_OPTION_ARG_STRING, &save,
     "Keep the expression in the site under this name; NAME: stands for it from then on", "NAME"},
    {"forget", 0, 0, G_OPTION_ARG_STRING, &forget, "Forget the expression of this name", "NAME"},
    {"list", 0, 0, G_OPTION_ARG_NONE, &list, "Print the expressions that are kept", NULL},
    {"null", '0', 0, G_OPTION_ARG_NONE, &options.zero, "End results with NUL instead of a new line",
     NULL},
    {0},
};

typedef struct results {
    json_t *matches;  /* with --json */
    GHashTable *seen; /* containers, with -c */
    uint64_t count;
    bool left_out; /* something was found that --without names */
} results;

static void
print_match(const char *container, const char *dataset)
{
    g_autofree char *text =
        dataset != NULL ? g_strdup_printf("%s:%s", container, dataset) : g_strdup(container);
    g_autofree char *shown = options.zero ? g_strdup(text) : tool_printable(text);
    (void) printf("%s%c", shown, options.zero ? '\0' : '\n');
}

static bool
visit(const esdm_match *match, void *user)
{
    results *all = user;
    const char *dataset = options.containers_only ? NULL : match->dataset;
    if (find_is_left_out(&options, match->container)) {
        all->left_out = true;
        return true;
    }
    if (options.containers_only && !g_hash_table_add(all->seen, g_strdup(match->container)))
        return true;
    all->count++;
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "container", tool_json_text(match->container));
        tool_json_set(object, "dataset", dataset != NULL ? tool_json_text(dataset) : json_null());
        tool_json_append(all->matches, object);
    } else {
        print_match(match->container, dataset);
    }
    return !ferror(stdout);
}

static tool_exit
find(esdm_session *session, const char *expression, bool several)
{
    results all = {.matches = json_array(),
                   .seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    esdm_error err = {0};
    esdm_status status = esdm_find(session, expression, visit, &all, &err);
    tool_exit result = TOOL_OK;
    if (status == ESDM_EINVAL)
        result = tool_usage("%s%s", err.message,
                            several ? " (a comparison is one argument: put it in quotes)" : "");
    else if (status != ESDM_OK)
        result = tool_fail(status, &err);
    else if (all.count == 0)
        result = TOOL_NOT_FOUND;
    if (status == ESDM_OK && all.count == 0 && !all.left_out)
        find_tell_why(session, expression);
    g_hash_table_unref(all.seen);
    if (tool.json && (status == ESDM_OK)) {
        json_t *root = json_object();
        tool_json_set(root, "expression", tool_json_text(expression));
        tool_json_set(root, "matches", all.matches);
        tool_json_print(root);
    } else {
        json_decref(all.matches);
    }
    return result;
}

/* Of --without. */
static tool_exit
check_left_out(void)
{
    if (save != NULL && options.without != NULL)
        return tool_usage("--without is of one question: --save does not keep it");
    for (char **name = options.without; name != NULL && *name != NULL; name++) {
        if (*find_name_of(*name) == '\0')
            return tool_usage("--without: the name of a container, or a pattern");
    }
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if ((save != NULL) + (forget != NULL) + list > 1 || ((forget != NULL || list) && argc > 1))
        return tool_usage("--forget and --list go with no expression, and not with each other");
    if (list)
        return find_list_saved();
    if (forget != NULL)
        return find_save(forget, NULL);
    if (argc < 2)
        return tool_usage("which expression?");
    if (options.zero)
        tool_output_exact();
    if (options.zero && tool.json)
        return tool_usage("-0 and --json exclude each other");
    if (options.limit != NO_LIMIT && options.limit < 1)
        return tool_usage("--limit: a number of results from 1, not %" G_GINT64_FORMAT,
                          options.limit);
    options.limit = MAX(options.limit, 0);
    if (options.facets != NULL && (options.columns != NULL || options.sort != NULL || options.zero))
        return tool_usage("--facets goes with --limit and --json alone");
    if (check_left_out() != TOOL_OK)
        return TOOL_USAGE;
    g_autofree char *expression = NULL;
    esdm_session *session = NULL;
    tool_exit result = tool_session(true, &session);
    if (result == TOOL_OK && find_are_words(argv + 1)) {
        g_autofree char *words = g_strjoinv(" ", argv + 1);
        result = find_tell_words(session, words);
    }
    if (result == TOOL_OK)
        result = find_expression(session, argv + 1, &expression);
    if (result != TOOL_OK || save != NULL) {
        esdm_session_close(session);
        return result != TOOL_OK ? result : find_save(save, expression);
    }
    tool_follow(session);
    if (options.facets != NULL)
        result = find_facets(session, expression, &options);
    else if (options.columns != NULL || options.sort != NULL || options.limit > 0)
        result = find_table(session, expression, &options);
    else
        result = find(session, expression, argc > 2);
    if (result == TOOL_OK || result == TOOL_NOT_FOUND)
        find_tell_ranges(session, expression, result == TOOL_NOT_FOUND);
    if (result == TOOL_OK || result == TOOL_NOT_FOUND)
        find_tell_names(session, &options);
    esdm_session_close(session);
    return tool_finish(result);
}
