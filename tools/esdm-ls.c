/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>

#include "common.h"

static const tool_help help = {
    .name = "esdm-ls",
    .arguments = "[PREFIX…]",
    .description =
        "Lists the containers of the site, by default all of them, one name a line in\n"
        "byte order. A PREFIX selects the container of that name and all below PREFIX/;\n"
        "esdm:// is the whole site.\n"
        "\n"
        "With --long each line has the size of the data as the programs see it, the size\n"
        "stored, the number of fragments, datasets and the newest snapshot, the time of\n"
        "the last commit, and the name.",
    .examples = "  esdm-ls                        names of all containers\n"
                "  esdm-ls -l experiment          facts about those below experiment/\n"
                "  esdm-ls -0 | xargs -0 esdm-rm  remove everything\n",
    .see_also = "esdm-stat, esdm-find, esdm-cp, esdm-rm",
};

static gboolean want_long, exact_bytes, zero;

static const GOptionEntry entries[] = {
    {"long", 'l', 0, G_OPTION_ARG_NONE, &want_long, "One line of facts for each", NULL},
    {"bytes", 'b', 0, G_OPTION_ARG_NONE, &exact_bytes, "Sizes in bytes (with -l)", NULL},
    {"null", '0', 0, G_OPTION_ARG_NONE, &zero, "End names with NUL instead of a new line", NULL},
    {0},
};

typedef struct listing {
    json_t *containers; /* with --json */
    uint64_t count;
} listing;

static char *
size_text(uint64_t bytes)
{
    return exact_bytes ? g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) bytes) : tool_bytes(bytes);
}

static void
print_long(const esdm_container_info *info, const char *name)
{
    g_autofree char *raw = size_text(info->raw_bytes);
    g_autofree char *stored = size_text(info->stored_bytes);
    g_autofree char *time = tool_time(info->modified_ns);
    (void) printf("%10s %10s %8" G_GUINT64_FORMAT " %5u %5" G_GUINT64_FORMAT "  %s  %s\n", raw,
                  stored, (guint64) info->fragments, info->datasets, (guint64) info->snapshot, time,
                  name);
}

static void
add_json(json_t *containers, const esdm_container_info *info)
{
    g_autofree char *created = tool_time_iso(info->created_ns);
    g_autofree char *modified = tool_time_iso(info->modified_ns);
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(info->name));
    tool_json_set(object, "snapshot", tool_json_u64(info->snapshot));
    tool_json_set(object, "created", json_string(created));
    tool_json_set(object, "modified", json_string(modified));
    tool_json_set(object, "raw_bytes", tool_json_u64(info->raw_bytes));
    tool_json_set(object, "stored_bytes", tool_json_u64(info->stored_bytes));
    tool_json_set(object, "fragments", tool_json_u64(info->fragments));
    tool_json_set(object, "datasets", tool_json_u64(info->datasets));
    tool_json_append(containers, object);
}

static bool
visit(const esdm_container_info *info, void *user)
{
    listing *all = user;
    all->count++;
    if (tool.json) {
        add_json(all->containers, info);
        return true;
    }
    /* A NUL-terminated list is read by programs, which want the names as they are. */
    g_autofree char *name = zero ? g_strdup(info->name) : tool_printable(info->name);
    if (want_long)
        print_long(info, name);
    else
        (void) printf("%s%c", name, zero ? '\0' : '\n');
    return !ferror(stdout);
}

static tool_exit
list_prefix(esdm_session *session, const char *prefix, listing *all)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    if (prefix != NULL && (g_str_equal(prefix, "esdm:") || g_str_equal(prefix, "esdm://")))
        prefix = NULL; /* the whole site */
    if (prefix != NULL) {
        status = esdm_container_normalise(tool_container(prefix), name, &err);
        if (status != ESDM_OK)
            return tool_fail(status, &err);
    }
    uint64_t before = all->count;
    status = esdm_container_list(session, prefix != NULL ? name : NULL, visit, all, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (prefix != NULL && all->count == before) {
        tool_error("there is no container '%s' and none below it", name);
        return TOOL_NOT_FOUND;
    }
    return TOOL_OK;
}

static void
print_json(esdm_session *session, json_t *containers)
{
    json_t *root = json_object();
    tool_json_set(root, "site", tool_json_text(esdm_session_site_name(session)));
    tool_json_set(root, "config", tool_json_text(esdm_session_config_source(session)));
    tool_json_set(root, "containers", containers);
    tool_json_print(root);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (zero && (want_long || tool.json))
        return tool_usage("-0 goes with plain names alone");
    esdm_session *session = NULL;
    tool_exit result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result;
    listing all = {.containers = json_array()};
    if (want_long && !tool.json)
        (void) printf("%10s %10s %8s %5s %5s  %-19s  %s\n", "data", "stored", "fragm.", "vars",
                      "snap.", "modified", "name");
    if (argc == 1)
        result = list_prefix(session, NULL, &all);
    for (int i = 1; i < argc; i++) {
        tool_exit one = list_prefix(session, argv[i], &all);
        result = result == TOOL_OK ? one : result;
    }
    if (tool.json)
        print_json(session, all.containers);
    else
        json_decref(all.containers);
    esdm_session_close(session);
    return tool_finish(result);
}
