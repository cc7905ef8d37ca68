/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-tag: names for snapshots, which are kept as long as they have one. */
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/history.h"

static const tool_help help = {
    .name = "esdm-tag",
    .arguments = "NAME[@WHEN] [TAG…]",
    .description =
        "Gives a snapshot a name, a tag: the newest snapshot of a container, or the one that\n"
        "NAME@7, NAME@-1 or NAME@2026-11-20T12:00 (UTC) says. Every program reads it as\n"
        "esdm://NAME@tag:TAG. A snapshot with a tag is kept, whatever the site's \"history\"\n"
        "says, and also when the container is replaced or removed, until its last tag is.\n"
        "\n"
        "Without TAG the tags of a container are listed, or of all with --all.\n"
        "\n"
        "A tag has up to 255 bytes, and no '/', '@', '?', ':' or blanks.",
    .examples = "  esdm-tag run1.nc ipcc-draft\n"
                "  esdm-tag run1.nc@-1 before-the-fix\n"
                "  esdm-tag run1.nc\n"
                "  esdm-run ncdump -h esdm://run1.nc@tag:ipcc-draft\n"
                "  esdm-tag --remove run1.nc ipcc-draft\n",
    .see_also = "esdm-log, esdm-diff, esdm-stat --digest",
};

static gboolean removes, force, all;

static const GOptionEntry entries[] = {
    {"remove", 'd', 0, G_OPTION_ARG_NONE, &removes, "Remove the tags", NULL},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force,
     "A tag that exists moves to the snapshot; a former container keeps its own", NULL},
    {"all", 'a', 0, G_OPTION_ARG_NONE, &all,
     "List the tags of all containers, or of those below the prefix NAME", NULL},
    {0},
};

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct listing {
    const char *name;
    json_t *list;
    guint count;
} listing;

static bool
show(const esdm_tag_info *info, void *user)
{
    listing *l = user;
    g_autofree char *time = tool_time(info->created_ns);
    g_autofree char *iso = tool_time_iso(info->created_ns);
    g_autofree char *lost = info->former_ns != 0 ? tool_time(info->former_ns) : NULL;
    l->count++;
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(l->name));
        tool_json_set(object, "tag", tool_json_text(info->tag));
        tool_json_set(object, "snapshot", tool_json_u64(info->snapshot));
        tool_json_set(object, "time", json_string(iso));
        tool_json_set(object, "author", tool_json_text(info->author));
        tool_json_set(object, "former", json_boolean(info->former_ns != 0));
        tool_json_append(l->list, object);
        return true;
    }
    g_autofree char *line = g_strdup_printf(
        "%s@tag:%s  snapshot %" G_GUINT64_FORMAT "  %s  %s%s%s%s", l->name, info->tag,
        (guint64) info->snapshot, time, info->author, lost != NULL ? "  (container replaced " : "",
        lost != NULL ? lost : "", lost != NULL ? ")" : "");
    g_autofree char *printable = tool_printable(line);
    (void) printf("%s\n", printable);
    return true;
}

static tool_exit
list_tags(esdm_session *session, const char *name, json_t *list)
{
    esdm_error err = {0};
    listing l = {.name = name, .list = list};
    esdm_status status = esdm_container_tags(session, name, show, &l, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status == ESDM_OK && l.count == 0 && !tool.json && !all) {
        g_autofree char *printable = tool_printable(name);
        (void) printf("%s has no tags\n", printable);
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static bool
note_name(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

static bool
note_former(const esdm_former_info *info, void *user)
{
    GPtrArray *names = user;
    if (!g_ptr_array_find_with_equal_func(names, info->container.name, g_str_equal, NULL))
        g_ptr_array_add(names, g_strdup(info->container.name));
    return true;
}

static tool_exit
list_all(esdm_session *session, const char *prefix, json_t *list)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status status = esdm_container_list(session, prefix, note_name, names, &err);
    if (status == ESDM_OK)
        status = esdm_former_list(session, prefix, note_former, names, &err);
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    for (guint i = 0; i < names->len && result == TOOL_OK; i++)
        result = list_tags(session, g_ptr_array_index(names, i), list);
    return result;
}

/* ---- changing ------------------------------------------------------------------------------ */

static void
tell(const char *name, const char *tag, uint64_t snapshot, json_t *list)
{
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "tag", tool_json_text(tag));
        if (snapshot != 0)
            tool_json_set(object, "snapshot", tool_json_u64(snapshot));
        tool_json_set(object, "removed", json_boolean(removes));
        tool_json_append(list, object);
        return;
    }
    g_autofree char *line =
        removes ? g_strdup_printf("%s: tag '%s' is removed", name, tag)
                : g_strdup_printf("%s: snapshot %" G_GUINT64_FORMAT " has the tag '%s'", name,
                                  (guint64) snapshot, tag);
    g_autofree char *printable = tool_printable(line);
    (void) printf("%s\n", printable);
}

static tool_exit
change_tag(esdm_session *session, const char *name, const char *tag, json_t *list)
{
    esdm_error err = {0};
    uint64_t snapshot = 0;
    esdm_status status = removes ? esdm_container_untag(session, name, tag, &err)
                                 : esdm_container_tag(session, name, tag, force, &snapshot, &err);
    if (status == ESDM_EEXIST) {
        tool_error("%s; --force gives it to this snapshot", err.message);
        return TOOL_REFUSED;
    }
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tell(name, tag, snapshot, list);
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2 && !all)
        return tool_usage("of which container?");
    if (all && (argc > 2 || removes || force))
        return tool_usage("--all lists tags, of all containers or below one prefix");
    if (removes && argc < 3)
        return tool_usage("which tags are to be removed?");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(argc < 3, &session);
    if (result != TOOL_OK)
        return result;
    json_t *list = json_array();
    const tool_marks marks = {.list_all = list_all, .list = list_tags, .change = change_tag};
    result = tool_marks_run(&marks, session, argc, argv, all, list);
    tool_json_print_list("tags", list);
    esdm_session_close(session);
    return tool_finish(result);
}
