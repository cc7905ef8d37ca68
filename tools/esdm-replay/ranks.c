/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Containers that ranks shared: which handles of which processes belong together. */
#include "esdm-replay/esdm-replay.h"

#include <string.h>

/* Those who opened a container together, as so many, for the n-th time. */
typedef struct group {
    guint number; /* of the meeting */
    guint ranks;
    guint found;
    guint8 *there; /* of each rank */
    const replay_file *file;
} group;

static void
free_group(gpointer data)
{
    group *g = data;
    g_free(g->there);
    g_free(g);
}

static group *
group_of(replay_load *load, GHashTable *groups, const replay_handle *h, guint turn)
{
    char *key = g_strdup_printf("%u %u %u", h->file->number, h->ranks, turn);
    group *found = g_hash_table_lookup(groups, key);
    if (found != NULL) {
        g_free(key);
        return found;
    }
    found = g_new0(group, 1);
    found->number = load->meetings->len;
    found->ranks = h->ranks;
    found->file = h->file;
    found->there = g_try_malloc0(h->ranks);
    g_array_append_val(load->meetings, h->ranks);
    g_hash_table_insert(groups, key, found);
    return found;
}

static bool
unfit(const replay_handle *h, const char *how)
{
    g_autofree char *name = tool_printable(h->file->name);
    tool_error("'%s' was shared by %u ranks, %s", name, h->ranks, how);
    return false;
}

static bool
add_handle(replay_load *load, GHashTable *groups, GHashTable *turns, replay_handle *h)
{
    char *key = g_strdup_printf("%u %u", h->file->number, h->ranks);
    guint turn = GPOINTER_TO_UINT(g_hash_table_lookup(turns, key));
    g_hash_table_insert(turns, key, GUINT_TO_POINTER(turn + 1));
    if (h->ranks > load->processes->len)
        return unfit(h, "and there are records of fewer processes: name those of all");
    group *g = group_of(load, groups, h, turn);
    if (h->rank >= h->ranks || g->there == NULL || g->there[h->rank] != 0)
        return unfit(h, "two of which say that they are the same: name the records of one run");
    g->there[h->rank] = 1;
    g->found++;
    h->meeting = g->number + 1;
    return true;
}

static bool
add_process(replay_load *load, GHashTable *groups, const replay_process *p)
{
    g_autoptr(GHashTable) turns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool good = true;
    for (guint i = 0; i < p->operations->len && good; i++) {
        const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
        bool opens = o->kind == REPLAY_OPEN || o->kind == REPLAY_CREATE;
        if (opens && o->handle->ranks > 1)
            good = add_handle(load, groups, turns, o->handle);
    }
    return good;
}

tool_exit
replay_find_meetings(replay_load *load)
{
    g_autoptr(GHashTable) groups =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_group);
    GHashTableIter all;
    gpointer value;
    for (guint k = 0; k < load->processes->len; k++) {
        if (!add_process(load, groups, load->processes->pdata[k]))
            return TOOL_FAILED;
    }
    g_hash_table_iter_init(&all, groups);
    while (g_hash_table_iter_next(&all, NULL, &value)) {
        const group *g = value;
        if (g->found == g->ranks)
            continue;
        g_autofree char *name = tool_printable(g->file->name);
        tool_error("'%s' was shared by %u ranks, of which the records have %u: name those of all",
                   name, g->ranks, g->found);
        return TOOL_FAILED;
    }
    return TOOL_OK;
}
