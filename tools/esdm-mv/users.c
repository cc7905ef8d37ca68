/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which virtual containers have what is moved as a member, and whether they still do. */

#include "esdm-mv/users.h"
#include "common/common.h"
#include "esdm/virtual.h"

struct move_users {
    GHashTable *before; /* member -> names of virtual containers, by whether they are pinned */
    GHashTable *moved;  /* old name -> new name */
    GPtrArray *order;   /* old names; those of `moved` */
};

static bool
note_user(const char *name, const char *member, bool pinned, void *user)
{
    GHashTable *table = user;
    GHashTable *of_member = g_hash_table_lookup(table, member);
    if (of_member == NULL) {
        of_member = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(table, g_strdup(member), of_member);
    }
    g_hash_table_insert(of_member, g_strdup(name), GINT_TO_POINTER(pinned));
    return true;
}

static void
unref_table(void *table)
{
    g_hash_table_unref(table);
}

/* NULL: it is not known, which was told. */
static GHashTable *
load(esdm_session *session)
{
    esdm_error err = {0};
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_table);
    if (esdm_virtual_members(session, note_user, table, &err) == ESDM_OK)
        return table;
    tool_error("which virtual containers have what is moved as a member is not known: %s",
               err.message);
    g_hash_table_unref(table);
    return NULL;
}

move_users *
move_users_new(esdm_session *session)
{
    move_users *users = g_new0(move_users, 1);
    users->before = load(session);
    users->moved = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    users->order = g_ptr_array_new_with_free_func(g_free);
    return users;
}

void
move_users_note(move_users *users, const char *from, const char *to)
{
    if (g_hash_table_insert(users->moved, g_strdup(from), g_strdup(to)))
        g_ptr_array_add(users->order, g_strdup(from));
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(a, b);
}

/* Names as a list of those that have, or have not, the member after the move. @param after NULL:
 * all of them. */
static char *
names_of(const move_users *users, GHashTable *before, GHashTable *after, bool kept)
{
    GString *text = g_string_new(NULL);
    GList *names = g_list_sort(g_hash_table_get_keys(before), by_name);
    for (GList *at = names; at != NULL; at = at->next) {
        const char *now = g_hash_table_lookup(users->moved, at->data);
        bool has = after != NULL && g_hash_table_contains(after, now != NULL ? now : at->data);
        if (has == kept)
            g_string_append_printf(text, "%s'%s'%s", text->len > 0 ? ", " : "",
                                   now != NULL ? now : (const char *) at->data,
                                   g_hash_table_lookup(before, at->data) ? " (pinned)" : "");
    }
    g_list_free(names);
    return g_string_free(text, FALSE);
}

static void
tell(const char *name, const char *who, const char *what)
{
    if (who[0] == '\0')
        return;
    g_autofree char *line =
        g_strdup_printf("note: '%s' %s %s (esdm-ln lists them)", name, what, who);
    g_autofree char *printable = tool_printable(line);
    tool_error("%s", printable);
}

static void
tell_one(const move_users *users, GHashTable *after, const char *from)
{
    const char *to = g_hash_table_lookup(users->moved, from);
    GHashTable *before = g_hash_table_lookup(users->before, from);
    GHashTable *replaced = g_strcmp0(from, to) != 0 && !g_hash_table_contains(users->moved, to)
                               ? g_hash_table_lookup(users->before, to)
                               : NULL;
    GHashTable *now = after != NULL ? g_hash_table_lookup(after, to) : NULL;
    if (before != NULL && after == NULL) {
        g_autofree char *all = names_of(users, before, NULL, false);
        tell(from, all, "is a member of the virtual container");
    } else if (before != NULL) {
        g_autofree char *have = names_of(users, before, now, true);
        g_autofree char *lack = names_of(users, before, now, false);
        tell(to, have, "is by its new name, too, a member of the virtual container");
        tell(from, lack, "was a member, and by its new name is none, of the virtual container");
    }
    if (replaced != NULL) {
        g_autofree char *all = names_of(users, replaced, NULL, false);
        tell(to, all, "that is replaced was a member of the virtual container");
    }
}

void
move_users_tell(move_users *users, esdm_session *session, bool dry_run)
{
    GHashTable *after = NULL;
    bool some = false;
    for (guint i = 0; users->before != NULL && i < users->order->len && !some; i++) {
        const char *from = g_ptr_array_index(users->order, i);
        some = g_hash_table_contains(users->before, from) ||
               g_hash_table_contains(users->before, g_hash_table_lookup(users->moved, from));
    }
    if (some && !dry_run)
        after = load(session);
    for (guint i = 0; some && i < users->order->len; i++)
        tell_one(users, after, g_ptr_array_index(users->order, i));
    g_clear_pointer(&after, g_hash_table_unref);
    g_clear_pointer(&users->before, g_hash_table_unref);
    g_hash_table_unref(users->moved);
    g_ptr_array_unref(users->order);
    g_free(users);
}
