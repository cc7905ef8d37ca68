/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-ln: gives a query a name; lists what has one. */
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/virtual.h"

static const tool_help help = {
    .name = "esdm-ln",
    .arguments = "'QUERY' NAME",
    .description =
        "Makes a virtual container: all that a query finds, as one container under a name.\n"
        "No data are copied. The query is asked anew each time NAME is opened, so what is\n"
        "committed later is seen; with --pin the members stay as they are now, and their\n"
        "snapshots are kept (each gets the tag 'virtual-NAME', see esdm-tag).\n"
        "\n"
        "The members are put together once before, so what cannot be joined is an error now.\n"
        "Members of different models, members of an ensemble, tables or grids (source_id,\n"
        "variant_label, table_id, grid_label, …) are such an error: with --across they are\n"
        "joined all the same, with --ensemble they become a dimension. Names that were given\n"
        "before there was this error open as they did; the attribute esdm_across of what is\n"
        "opened tells in what their members differ.\n"
        "NAME is found by esdm-find by its attributes, and not by queries that open something.\n"
        "It is listed, renamed and removed as other containers are; its members stay.\n"
        "\n"
        "Without arguments the members of all virtual containers are listed.",
    .examples = "  esdm-ln 'esdm://?source_id=MPI-ESM1-2-LR&variable_id=ta&table_id=Amon' mpi/ta\n"
                "  esdm-ln --pin '?run=42' paper/run42\n"
                "  esdm-ln --ensemble variant_label '?variable_id=tas' all-members\n"
                "  esdm-run ncdump -h esdm://mpi/ta\n"
                "  esdm-ln\n",
    .see_also = "esdm-find, esdm-ls, esdm-tag",
};

static gboolean pin, force;
static char *ensemble, *gaps, *across;

static const GOptionEntry entries[] = {
    {"pin", 'p', 0, G_OPTION_ARG_NONE, &pin, "The members stay as they are now", NULL},
    {"ensemble", 'e', 0, G_OPTION_ARG_STRING, &ensemble,
     "Make a dimension of an attribute, as &ensemble=ATTRIBUTE in the query does", "ATTRIBUTE"},
    {"gaps", 'g', 0, G_OPTION_ARG_STRING, &gaps,
     "fill: times that no member has get missing values, as &gaps=fill in the query does", "HOW"},
    {"across", 'a', 0, G_OPTION_ARG_STRING, &across,
     "Join also what comes from others (source_id,variant_label or *), as &across=LIST does",
     "LIST"},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "Replace a container of that name", NULL},
    {0},
};

/* ---- listing ------------------------------------------------------------------------------ */

typedef struct listing {
    json_t *list;
    char *last; /* name of the virtual container that was seen last */
    json_t *members;
} listing;

static bool
show(const char *name, const char *member, bool pinned, void *user)
{
    listing *l = user;
    g_autofree char *printable = tool_printable(name);
    g_autofree char *of_member = tool_printable(member);
    if (g_strcmp0(l->last, name) != 0) {
        g_free(l->last);
        l->last = g_strdup(name);
        if (tool.json) {
            json_t *object = json_object();
            l->members = json_array();
            tool_json_set(object, "name", tool_json_text(name));
            tool_json_set(object, "pinned", json_boolean(pinned));
            tool_json_set(object, "members", l->members);
            tool_json_append(l->list, object);
        } else {
            (void) printf("%s%s\n", printable, pinned ? " (pinned)" : "");
        }
    }
    if (tool.json)
        tool_json_append(l->members, tool_json_text(member));
    else
        (void) printf("    %s\n", of_member);
    return true;
}

static tool_exit
list_all(esdm_session *session)
{
    esdm_error err = {0};
    listing l = {.list = json_array()};
    esdm_status status = esdm_virtual_members(session, show, &l, &err);
    tool_json_print_list("virtual", l.list);
    g_free(l.last);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* ---- what the query also says -------------------------------------------------------------- */

/* Appends "&option=value", in which '%' and '&' of the value are written as %25 and %26. */
static void
add_option(GString *query, const char *option, const char *value)
{
    if (value == NULL)
        return;
    g_string_append_printf(query, "&%s=", option);
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '%' || *at == '&')
            g_string_append_printf(query, "%%%02x", (unsigned) *at);
        else
            g_string_append_c(query, *at);
    }
}

static char *
query_of(const char *said)
{
    GString *query = g_string_new(said);
    add_option(query, "ensemble", ensemble);
    add_option(query, "gaps", gaps);
    add_option(query, "across", across);
    return g_string_free(query, FALSE);
}

/* ---- saving ------------------------------------------------------------------------------- */

static tool_exit
save(esdm_session *session, const char *query, const char *name)
{
    esdm_error err = {0};
    esdm_status status = esdm_virtual_save(session, query, name, pin, force, &err);
    if (status == ESDM_EEXIST) {
        tool_error("%s; --force replaces it", err.message);
        return TOOL_FAILED;
    }
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "name", tool_json_text(name));
        tool_json_set(root, "query", tool_json_text(query));
        tool_json_set(root, "pinned", json_boolean(pin));
        tool_json_print(root);
    }
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 1 && argc != 3)
        return tool_usage("which query, and which name?");
    esdm_session *session = NULL;
    tool_exit result = tool_session(argc == 1, &session);
    if (result != TOOL_OK)
        return result;
    if (argc == 1) {
        result = list_all(session);
    } else {
        g_autofree char *query = query_of(tool_container(argv[1]));
        result = save(session, query, tool_container(argv[2]));
    }
    esdm_session_close(session);
    return tool_finish(result);
}
