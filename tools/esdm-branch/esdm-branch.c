/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-branch: named lines of commits. */
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/branch.h"

static const tool_help help = {
    .name = "esdm-branch",
    .arguments = "NAME [BRANCH…]",
    .description =
        "Makes branches of a container: named lines of commits that begin with its newest\n"
        "snapshot, or with the one that --from says. Every program reads and writes a branch\n"
        "as esdm://NAME@branch:BRANCH; the container does not change meanwhile. A branch\n"
        "shares what is stored with its container: making one copies no data, and removing\n"
        "one of them never harms the other. esdm-merge brings what was changed back.\n"
        "\n"
        "A branch may begin with another one, NAME@branch:OTHER. All branches of a container have\n"
        "names beside each other, whatever they began with. Such a branch is merged into the one\n"
        "that it began with, or into the container at once, also when the other one is gone.\n"
        "\n"
        "Without BRANCH the branches of a container are listed (of a branch those that began with\n"
        "it), or of all with --all.\n"
        "\n"
        "The snapshot with which a branch began is kept as long as the branch is there.\n"
        "Queries (esdm-find) pass branches by, esdm-ls lists them. A branch is renamed and\n"
        "moved with its container; a container that is removed leaves its branches behind.\n"
        "\n"
        "A branch has up to 200 bytes, and no '@', '?', ':' or blanks; '/' makes folders of\n"
        "branches, so that 'fix' and 'fix/units' exclude each other.",
    .examples = "  esdm-branch run1.nc fix/units\n"
                "  esdm-branch run1.nc review --from @tag:ipcc-draft\n"
                "  esdm-branch run1.nc@branch:fix/units fix/names\n"
                "  esdm-run ncatted -a units,tas,o,c,K esdm://run1.nc@branch:fix/units\n"
                "  esdm-branch run1.nc\n"
                "  esdm-diff run1.nc run1.nc@branch:fix/units\n"
                "  esdm-merge run1.nc fix/units\n"
                "  esdm-branch --remove run1.nc fix/units\n",
    .see_also = "esdm-merge, esdm-log, esdm-diff, esdm-tag, esdm-cp --reflink",
};

static gboolean removes, all;
static char *from;

static const GOptionEntry entries[] = {
    {"from", 0, 0, G_OPTION_ARG_STRING, &from,
     "Begin with this snapshot: @7, @-1, @2026-11-20T12:00 or @tag:TAG", "@WHEN"},
    {"remove", 'd', 0, G_OPTION_ARG_NONE, &removes, "Remove the branches", NULL},
    {"all", 'a', 0, G_OPTION_ARG_NONE, &all,
     "List the branches of all containers, or of those below the prefix NAME", NULL},
    {0},
};

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct listing {
    const char *name;
    json_t *list;
    guint count;
} listing;

static void
show_text(const esdm_branch_info *info)
{
    g_autofree char *time = tool_time(info->modified_ns);
    g_autoptr(GString) line = g_string_new(info->name);
    const char *other = strstr(info->parent, "@branch:");
    if (info->from != 0)
        g_string_append_printf(line, "  from snapshot %" G_GUINT64_FORMAT, (guint64) info->from);
    if (other != NULL)
        g_string_append_printf(line, "%s branch %s", info->from != 0 ? " of" : "  from",
                               other + strlen("@branch:"));
    g_string_append_printf(line, ", newest %" G_GUINT64_FORMAT, (guint64) info->snapshot);
    if (info->merged != 0)
        g_string_append_printf(line, ", merged up to %" G_GUINT64_FORMAT, (guint64) info->merged);
    g_string_append_printf(line, "  %s", time);
    g_autofree char *printable = tool_printable(line->str);
    (void) printf("%s\n", printable);
}

static bool
show(const esdm_branch_info *info, void *user)
{
    listing *l = user;
    l->count++;
    if (!tool.json) {
        show_text(info);
        return true;
    }
    g_autofree char *created = tool_time_iso(info->created_ns);
    g_autofree char *modified = tool_time_iso(info->modified_ns);
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(l->name));
    tool_json_set(object, "branch", tool_json_text(info->branch));
    tool_json_set(object, "container", tool_json_text(info->name));
    tool_json_set(object, "parent", tool_json_text(info->parent));
    tool_json_set(object, "from", info->from != 0 ? tool_json_u64(info->from) : json_null());
    tool_json_set(object, "snapshot", tool_json_u64(info->snapshot));
    tool_json_set(object, "merged", info->merged != 0 ? tool_json_u64(info->merged) : json_null());
    tool_json_set(object, "created", json_string(created));
    tool_json_set(object, "modified", json_string(modified));
    tool_json_append(l->list, object);
    return true;
}

static tool_exit
list_branches(esdm_session *session, const char *name, json_t *list)
{
    esdm_error err = {0};
    listing l = {.name = name, .list = list};
    esdm_status status = esdm_branch_list(session, name, show, &l, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status == ESDM_OK && l.count == 0 && !tool.json && !all) {
        g_autofree char *printable = tool_printable(name);
        (void) printf("%s has no branches\n", printable);
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* The containers that have branches, each once. */
static bool
note_base(const esdm_container_info *info, void *user)
{
    GPtrArray *names = user;
    const char *mark = strstr(info->name, "@branch:");
    if (mark == NULL || mark == info->name)
        return true;
    g_autofree char *base = g_strndup(info->name, (gsize) (mark - info->name));
    if (!g_ptr_array_find_with_equal_func(names, base, g_str_equal, NULL))
        g_ptr_array_add(names, g_steal_pointer(&base));
    return true;
}

static tool_exit
list_all(esdm_session *session, const char *prefix, json_t *list)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status status = esdm_container_list(session, prefix, note_base, names, &err);
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    for (guint i = 0; i < names->len && result == TOOL_OK; i++)
        result = list_branches(session, g_ptr_array_index(names, i), list);
    return result;
}

/* ---- changing ------------------------------------------------------------------------------ */

/* Of the container that has them all. */
static int
base_bytes(const char *name)
{
    const char *mark = strstr(name, "@branch:");
    return mark != NULL && mark > name ? (int) (mark - name) : (int) strlen(name);
}

static void
tell(const char *name, const char *branch, uint64_t snapshot, json_t *list)
{
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "branch", tool_json_text(branch));
        if (snapshot != 0)
            tool_json_set(object, "from", tool_json_u64(snapshot));
        tool_json_set(object, "removed", json_boolean(removes));
        tool_json_append(list, object);
        return;
    }
    g_autofree char *line =
        removes ? g_strdup_printf("%s: branch '%s' is removed", name, branch)
                : g_strdup_printf("%.*s@branch:%s begins with snapshot %" G_GUINT64_FORMAT "%s%s",
                                  base_bytes(name), name, branch, (guint64) snapshot,
                                  name[base_bytes(name)] != '\0' ? " of " : "",
                                  name[base_bytes(name)] != '\0' ? name : "");
    g_autofree char *printable = tool_printable(line);
    (void) printf("%s\n", printable);
}

static tool_exit
change_branch(esdm_session *session, const char *name, const char *branch, json_t *list)
{
    esdm_error err = {0};
    uint64_t snapshot = 0;
    g_autofree char *source = g_strconcat(name, from != NULL ? from : "", NULL);
    esdm_status status = removes ? esdm_branch_remove(session, name, branch, &err)
                                 : esdm_branch_create(session, source, branch, &snapshot, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tell(name, branch, snapshot, list);
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2 && !all)
        return tool_usage("of which container?");
    if (all && (argc > 2 || removes || from != NULL))
        return tool_usage("--all lists branches, of all containers or below one prefix");
    if (removes && (argc < 3 || from != NULL))
        return tool_usage("--remove takes a container and its branches, and nothing else");
    if (from != NULL && (argc < 3 || from[0] != '@'))
        return tool_usage("--from is for a branch that is made, and says a snapshot as in @7");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(argc < 3, &session);
    if (result != TOOL_OK)
        return result;
    json_t *list = json_array();
    const tool_marks marks = {.list_all = list_all, .list = list_branches, .change = change_branch};
    result = tool_marks_run(&marks, session, argc, argv, all, list);
    tool_json_print_list("branches", list);
    esdm_session_close(session);
    return tool_finish(result);
}
