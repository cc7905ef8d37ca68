/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "esdm-ls/esdm-ls.h"

static const tool_help help = {
    .name = "esdm-ls",
    .arguments = "[PREFIX…]",
    .description =
        "Lists the containers of the site, by default all of them, one name a line in\n"
        "byte order. A PREFIX selects the container of that name and all below PREFIX/;\n"
        "esdm:// is the whole site.\n"
        "\n"
        "With --long each line has the size of the data as the programs see it, the size\n"
        "stored, the number of fragments, datasets and the newest snapshot, who made the\n"
        "last commit and when, and the name; the last line has the totals. With --depth 1\n"
        "everything in a folder counts together, as in du. What clones, branches and equal\n"
        "fragments share counts in each line that refers to it, and once in a folder and in\n"
        "the total; where there is any, a column tells how much other lines or other\n"
        "containers refer to, too. The rest is the container's own.\n"
        "\n"
        "A PREFIX that begins with the name of a view and ':' is a place in it, whatever\n"
        "the containers are called: cmip6:/CMIP6/CMIP/ lists the institutes there, with\n"
        "all levels said the containers. --views tells which views there are, and their\n"
        "levels. What has no such attribute lies in _missing_, an empty one in _empty_;\n"
        "signs that mean something in a path are written as %2F. --depth N goes N levels\n"
        "down, --tree shows all of them with the number of containers at each, --long\n"
        "adds up what these hold. A place with all levels opens in any program:\n"
        "esdm://cmip6:/CMIP6/….\n"
        "\n"
        "With --replaced it lists what was replaced or removed and is still kept, each\n"
        "with the id by which esdm-restore knows it. How long the site says (\"replaced\").",
    .examples = "  esdm-ls                        names of all containers\n"
                "  esdm-ls -l experiment          facts about those below experiment/\n"
                "  esdm-ls -l --depth 1 --sort stored   what takes the space\n"
                "  esdm-ls --tree --depth 3       folders, and how many containers lie in each\n"
                "  esdm-ls -lt experiment         the newest first\n"
                "  esdm-ls cmip6:/CMIP6/CMIP/     a level of a view\n"
                "  esdm-ls --replaced             what esdm-restore can bring back\n"
                "  esdm-ls -0 | xargs -0 esdm-rm  remove everything\n",
    .see_also = "esdm-stat, esdm-find, esdm-cp, esdm-rm, esdm-restore",
};

ls_wants ls;
static gboolean by_time;

static const GOptionEntry entries[] = {
    {"long", 'l', 0, G_OPTION_ARG_NONE, &ls.facts, "One line of facts for each, and totals", NULL},
    {"bytes", 'b', 0, G_OPTION_ARG_NONE, &ls.exact_bytes, "Sizes in bytes (with -l)", NULL},
    {"null", '0', 0, G_OPTION_ARG_NONE, &ls.zero, "End names with NUL instead of a new line", NULL},
    {"replaced", 'R', 0, G_OPTION_ARG_NONE, &ls.replaced,
     "What was replaced or removed and is kept", NULL},
    {"sort", 's', 0, G_OPTION_ARG_STRING, &ls.sort, "name, size, stored, time or owner", "BY"},
    {"time", 't', 0, G_OPTION_ARG_NONE, &by_time, "The newest first: --sort time", NULL},
    {"tree", 0, 0, G_OPTION_ARG_NONE, &ls.tree, "Names as a tree of folders", NULL},
    {"views", 0, 0, G_OPTION_ARG_NONE, &ls.views, "The views of the site, and their levels", NULL},
    {"reverse", 'r', 0, G_OPTION_ARG_NONE, &ls.reverse, "The other way round", NULL},
    {"depth", 'd', 0, G_OPTION_ARG_INT, &ls.depth, "Count folders of this depth as one", "N"},
    {0},
};

static bool
visit(const esdm_container_info *info, void *user)
{
    ls_entry *entry = g_new0(ls_entry, 1);
    entry->name = g_strdup(info->name);
    entry->info = *info;
    g_ptr_array_add(user, entry);
    return true;
}

static bool
visit_former(const esdm_former_info *info, void *user)
{
    (void) visit(&info->container, user);
    GPtrArray *all = user;
    ls_entry *entry = g_ptr_array_index(all, all->len - 1);
    entry->id = g_strdup(info->id);
    entry->removed = info->removed;
    entry->time_ns = info->time_ns;
    entry->until_ns = info->until_ns;
    return true;
}

static void
find_owners(esdm_session *session, const GPtrArray *all, guint from)
{
    for (guint i = from; i < all->len; i++) {
        ls_entry *entry = g_ptr_array_index(all, i);
        entry->owner = tool_owner(session, entry->name);
    }
}

static bool
visit_match(const esdm_match *match, void *user)
{
    g_hash_table_add(user, g_strdup(match->container));
    return true;
}

/* What a saved query finds, by name. */
static tool_exit
list_saved(esdm_session *session, const char *prefix, GPtrArray *all)
{
    g_autofree char *name = g_strndup(prefix, strlen(prefix) - 1);
    g_autoptr(GHashTable) found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char *expression = NULL;
    esdm_error err = {0};
    guint before = all->len;
    esdm_status status = esdm_find_saved(session, name, &expression, &err);
    if (status == ESDM_OK)
        tool_follow(session);
    if (status == ESDM_OK)
        status = esdm_find(session, expression, visit_match, found, &err);
    free(expression);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(found), (GCompareFunc) strcmp);
    for (const GList *at = names; at != NULL; at = at->next) {
        esdm_container_info info;
        status = esdm_container_stat(session, at->data, &info, &err);
        if (status == ESDM_ENOENT)
            continue; /* it was removed meanwhile */
        if (status != ESDM_OK)
            return tool_fail(status, &err);
        info.name = at->data;
        (void) visit(&info, all);
    }
    if (ls.facts || tool.json || g_strcmp0(ls.sort, "owner") == 0)
        find_owners(session, all, before);
    return all->len > before ? TOOL_OK : TOOL_NOT_FOUND;
}

static tool_exit
list_prefix(esdm_session *session, const char *prefix, GPtrArray *all)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    guint before = all->len;
    if (prefix != NULL && (g_str_equal(prefix, "esdm:") || g_str_equal(prefix, "esdm://")))
        prefix = NULL; /* the whole site */
    if (prefix != NULL && !ls.replaced && esdm_view_is_said(session, tool_container(prefix)))
        return ls_list_view(session, prefix, all);
    if (prefix != NULL && prefix[0] != '\0' && prefix[strlen(prefix) - 1] == ':' && !ls.replaced)
        return list_saved(session, prefix, all);
    if (prefix != NULL) {
        status = tool_normalise(prefix, name, &err);
        if (status != ESDM_OK)
            return tool_fail(status, &err);
        prefix = name;
    }
    status = ls.replaced ? esdm_former_list(session, prefix, visit_former, all, &err)
                         : esdm_container_list(session, prefix, visit, all, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    bool owners = ls.facts || tool.json || g_strcmp0(ls.sort, "owner") == 0;
    if (owners && !ls.replaced)
        find_owners(session, all, before);
    if (prefix != NULL && all->len == before && ls.replaced) {
        tool_error("no former container '%s' is kept, and none below it", name);
        return TOOL_NOT_FOUND;
    }
    esdm_container_info info;
    if (prefix != NULL && all->len == before && strchr(name, '@') != NULL && !ls.replaced &&
        esdm_container_stat(session, name, &info, &err) == ESDM_OK) { /* a name in time */
        info.name = name;
        (void) visit(&info, all);
    }
    if (prefix != NULL && all->len == before)
        return tool_absent(session, name);
    if (ls.depth > 0)
        ls_fold(all, before, prefix);
    return TOOL_OK;
}

static tool_exit
show(esdm_session *session, GPtrArray *all, GCompareFunc order)
{
    ls_total total = {.containers = 0};
    tool_exit result = TOOL_OK;
    if (ls.facts || ls.replaced || tool.json || g_strcmp0(ls.sort, "stored") == 0)
        result = ls_count(session, all, &total);
    if (ls.sort != NULL)
        g_ptr_array_sort(all, order);
    for (guint i = 0; ls.reverse && i < all->len / 2; i++) {
        gpointer other = all->pdata[all->len - 1 - i];
        all->pdata[all->len - 1 - i] = all->pdata[i];
        all->pdata[i] = other;
    }
    if (!tool.json) {
        if (ls.tree)
            ls_print_tree(all);
        else
            ls_print(all, &total);
        return result;
    }
    json_t *root = ls_json(all, &total);
    if (session != NULL) {
        tool_json_set(root, "site", tool_json_text(esdm_session_site_name(session)));
        tool_json_set(root, "config", tool_json_text(esdm_session_config_source(session)));
    }
    tool_json_print(root);
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (by_time && ls.sort != NULL)
        return tool_usage("-t is --sort time: give one of them");
    if (by_time)
        ls.sort = g_strdup("time");
    if (ls.tree &&
        (ls.sort != NULL || ls.facts || ls.zero || ls.replaced || ls.reverse || tool.json))
        return tool_usage("--tree goes with --depth alone");
    GCompareFunc order = ls_order(ls.sort != NULL ? ls.sort : "name");
    if (ls.zero)
        tool_output_exact();
    if (ls.zero && (ls.facts || tool.json || ls.replaced))
        return tool_usage("-0 goes with plain names alone");
    if (order == NULL)
        return tool_usage("--sort: name, size, stored, time or owner, not '%s'", ls.sort);
    if (ls.depth < 0 || (ls.depth > 0 && ls.replaced))
        return tool_usage("--depth is a number from 1 on, and not for --replaced");
    if (ls.views && argc > 1)
        return tool_usage("--views goes with no PREFIX");
    esdm_session *session = NULL;
    tool_exit result = tool_session_if_made(&session);
    if (result != TOOL_OK)
        return result;
    if (ls.views && session != NULL) {
        result = ls_show_views(session);
        esdm_session_close(session);
        return tool_finish(result);
    }
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(ls_entry_free);
    if (session != NULL && argc == 1)
        result = list_prefix(session, NULL, all);
    for (int i = 1; session != NULL && i < argc; i++) {
        tool_exit one = list_prefix(session, argv[i], all);
        result = result == TOOL_OK ? one : result;
    }
    tool_exit shown = show(session, all, order);
    result = result == TOOL_OK ? shown : result;
    esdm_session_close(session);
    return tool_finish(result);
}
