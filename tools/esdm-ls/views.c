/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Views of a site in esdm-ls: levels, trees, and the containers at a place. */

#include <stdio.h>
#include <string.h>

#include "esdm-ls/esdm-ls.h"

/* ---- the list of views -------------------------------------------------------------------- */

static bool
show_view(const esdm_view_info *info, void *user)
{
    if (tool.json) {
        json_t *view = json_object();
        tool_json_set(view, "name", tool_json_text(info->name));
        tool_json_set(view, "template", tool_json_text(info->template_text));
        tool_json_set(view, "built_in", json_boolean(info->built_in));
        tool_json_append(user, view);
    } else {
        g_autofree char *text = tool_printable(info->template_text);
        (void) printf("%s:\t%s\n", info->name, text);
    }
    return !ferror(stdout);
}

tool_exit
ls_show_views(esdm_session *session)
{
    esdm_error err = {0};
    json_t *list = json_array();
    esdm_status status = esdm_view_list(session, show_view, list, &err);
    if (tool.json && status == ESDM_OK)
        tool_json_print_list("views", list);
    else
        json_decref(list);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* ---- levels ------------------------------------------------------------------------------- */

typedef struct gathering {
    GPtrArray *all; /* ls_entry */
    const char *place;
} gathering;

static bool
note_entry(const esdm_view_entry *entry, void *user)
{
    const gathering *g = user;
    ls_entry *line = g_new0(ls_entry, 1);
    line->name = g_strconcat(g->place, "/", entry->name, entry->is_last ? NULL : "/", NULL);
    line->containers = entry->containers;
    line->of_view = true;
    g_ptr_array_add(g->all, line);
    return true;
}

static bool
add_facts(const esdm_container_info *info, void *user)
{
    ls_entry *entry = g_new0(ls_entry, 1);
    entry->name = g_strdup(info->name);
    entry->info = *info;
    ls_join(user, entry);
    return true;
}

/* Entries `depth` levels below a place, or with --tree all levels down to there. */
static esdm_status
gather(esdm_session *session, const char *place, int depth, GPtrArray *all, esdm_error *err)
{
    g_autoptr(GPtrArray) here = g_ptr_array_new_with_free_func(ls_entry_free);
    gathering g = {here, place};
    esdm_status status = esdm_view_level(session, place, note_entry, &g, err);
    while (here->len > 0 && status == ESDM_OK) {
        ls_entry *line = g_ptr_array_steal_index(here, 0);
        g_autofree char *below = g_strdup(line->name);
        size_t bytes = strlen(below);
        bool folder = bytes > 0 && below[bytes - 1] == '/';
        bool deeper = folder && depth != 1;
        if (folder)
            below[bytes - 1] = '\0';
        if (ls.tree || !deeper)
            g_ptr_array_add(all, line);
        else
            ls_entry_free(line);
        if (deeper)
            status = gather(session, below, depth - 1, all, err);
    }
    return status;
}

static bool
note_container(const esdm_container_info *info, void *user)
{
    ls_entry *line = g_new0(ls_entry, 1);
    line->name = g_strdup(info->name);
    line->info = *info;
    g_ptr_array_add(user, line);
    return true;
}

tool_exit
ls_list_view(esdm_session *session, const char *argument, GPtrArray *all)
{
    esdm_error err = {0};
    guint before = all->len;
    g_autofree char *place = g_strdup(tool_container(argument));
    if (g_str_has_prefix(place, "esdm://"))
        memmove(place, place + strlen("esdm://"), strlen(place) - strlen("esdm://") + 1);
    for (size_t n = strlen(place); n > 0 && place[n - 1] == '/'; n--)
        place[n - 1] = '\0';
    int depth = ls.depth > 0 ? ls.depth : ls.tree ? 0 : 1;
    esdm_status status = gather(session, place, depth, all, &err);
    if (status == ESDM_OK && all->len == before) /* all levels are said */
        status = esdm_view_containers(session, place, note_container, all, &err);
    bool facts = ls.facts || tool.json || ls.sort != NULL;
    for (guint i = before; i < all->len && status == ESDM_OK && facts; i++) {
        ls_entry *line = g_ptr_array_index(all, i);
        if (line->of_view)
            status = esdm_view_containers(session, line->name, add_facts, line, &err);
        else
            line->owner = tool_owner(session, line->name);
    }
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (all->len == before) {
        tool_error("there is nothing at '%s': esdm-ls --views tells the levels of each view",
                   place);
        return TOOL_NOT_FOUND;
    }
    return TOOL_OK;
}
