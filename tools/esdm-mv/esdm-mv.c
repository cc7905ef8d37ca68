/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-mv: gives containers other names. */

#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm-mv/users.h"

static const tool_help help = {
    .name = "esdm-mv",
    .arguments = "FROM… TO",
    .description =
        "Gives containers other names. Nothing is copied; programs that have one open go\n"
        "on reading it. \"esdm-mv a.nc b.nc\" renames one; where TO ends in '/', or several\n"
        "are moved, each goes below TO under the last part of its name. With --recursive\n"
        "FROM also stands for everything below it: \"esdm-mv -r exp old/exp\" moves\n"
        "exp/run1.nc to old/exp/run1.nc.\n"
        "\n"
        "A container that has the new name is in the way, unless --replace is given: it is\n"
        "kept for a while then, as esdm-rm does (esdm-restore brings it back). The first\n"
        "failure does not keep the others from being moved.\n"
        "\n"
        "Virtual containers (esdm-ln) that have a moved one as a member are told, and those\n"
        "that have it no more, as their query names the place (&within=FOLDER).",
    .examples = "  esdm-mv run1.nc 2026/run1.nc\n"
                "  esdm-mv a.nc b.nc archive/\n"
                "  esdm-mv -r -n exp old/exp     tell what -r would move\n",
    .see_also = "esdm-rm, esdm-restore, esdm-ls, esdm-ln, esdm-cp",
};

static gboolean recursive, replace, dry_run, verbose;

static const GOptionEntry entries[] = {
    {"recursive", 'r', 0, G_OPTION_ARG_NONE, &recursive, "Move what lies below, too", NULL},
    {"replace", 'f', 0, G_OPTION_ARG_NONE, &replace, "Replace containers of the new names", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Print the names, move nothing", NULL},
    {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Print both names of each moved one", NULL},
    {0},
};

static json_t *moved; /* with --json */
static move_users *users;

static tool_exit
move_one(esdm_session *session, const char *from, const char *to)
{
    esdm_error err = {0};
    esdm_container_info info;
    esdm_status status = dry_run ? esdm_container_stat(session, from, &info, &err)
                                 : esdm_container_move(session, from, to, replace, &err);
    if (dry_run && status == ESDM_OK && !replace && !g_str_equal(from, to) &&
        esdm_container_stat(session, to, &info, &err) == ESDM_OK)
        status = tool_error_set(&err, ESDM_EEXIST, "container '%s' exists", to);
    if (status == ESDM_ENOENT)
        return tool_absent(session, from);
    if (status == ESDM_EEXIST) {
        tool_error("%s; --replace moves '%s' there all the same", err.message, from);
        return TOOL_REFUSED;
    }
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    move_users_note(users, from, to);
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "from", tool_json_text(from));
        tool_json_set(object, "to", tool_json_text(to));
        tool_json_append(moved, object);
    } else if (dry_run || verbose) {
        g_autofree char *line = g_strdup_printf("%s -> %s", from, to);
        g_autofree char *printable = tool_printable(line);
        (void) printf("%s%s\n", dry_run ? "would move " : "", printable);
    }
    return TOOL_OK;
}

/* Branches go with their container, which comes before them. */
static bool
note_name(const esdm_container_info *info, void *user)
{
    GPtrArray *names = user;
    const char *mark = strstr(info->name, "@branch:");
    g_autofree char *base =
        mark != NULL ? g_strndup(info->name, (gsize) (mark - info->name)) : NULL;
    if (base == NULL || !g_ptr_array_find_with_equal_func(names, base, g_str_equal, NULL))
        g_ptr_array_add(names, g_strdup(info->name));
    return true;
}

/* What lies below `from` goes below `to`. */
static tool_exit
move_below(esdm_session *session, const char *from, const char *to)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    tool_exit result = TOOL_OK;
    size_t bytes = strlen(from);
    esdm_status status = esdm_container_list(session, from, note_name, names, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (names->len == 0)
        return tool_absent(session, from);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *target = g_strconcat(to, name + bytes, NULL);
        tool_exit one = move_one(session, name, target);
        result = result == TOOL_OK ? one : result;
    }
    return result;
}

static tool_exit
move_all(esdm_session *session, int argc, char **argv)
{
    char from[ESDM_CONTAINER_NAME_MAX + 1], to[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    tool_exit result = TOOL_OK;
    const char *last = argv[argc - 1];
    bool root = g_str_equal(last, "esdm:") || g_str_equal(last, "esdm://");
    bool folder = root || argc > 3 || g_str_has_suffix(last, "/");
    to[0] = '\0';
    if (!root && esdm_container_normalise(tool_container(last), to, &err) != ESDM_OK)
        return tool_usage("%s", err.message);
    for (int i = 1; i < argc - 1; i++) {
        if (tool_normalise(argv[i], from, &err) != ESDM_OK)
            return tool_usage("%s", err.message);
        const char *slash = strrchr(from, '/');
        g_autofree char *target =
            folder ? g_strconcat(to, root ? "" : "/", slash != NULL ? slash + 1 : from, NULL)
                   : g_strdup(to);
        tool_exit one =
            recursive ? move_below(session, from, target) : move_one(session, from, target);
        result = result == TOOL_OK ? one : result;
    }
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 3)
        return tool_usage("which containers, and where to?");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(dry_run, &session);
    if (result != TOOL_OK)
        return result;
    moved = json_array();
    users = move_users_new(session);
    result = move_all(session, argc, argv);
    move_users_tell(users, session, dry_run);
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "dry_run", json_boolean(dry_run));
        tool_json_set(object, "moved", moved);
        tool_json_print(object);
    } else {
        json_decref(moved);
    }
    esdm_session_close(session);
    return tool_finish(result);
}
