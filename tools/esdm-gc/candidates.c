/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that may have been made in a folder: by their names, or by what they tell. */

#include "esdm-gc/search.h"

#include <inttypes.h>
#include <string.h>

/* One that no stub names. */
typedef struct candidate {
    char *name;
    guint64 modified_ns;
    const char *called; /* of what is asked for it is by its name; NULL: none. Borrowed */
    char *folder;       /* of its stub; NULL: not known */
    const char *walked; /* which of the folders that are asked for has that; NULL: none. Borrowed */
    guint64 number;
    bool untold;  /* it has a stub, and does not tell where */
    bool kept;    /* where its stub was made cannot be looked at */
    bool afar;    /* that was on another node or file system, as far as is known */
    bool renamed; /* since then */
    bool restored;
} candidate;

static void
candidate_free(gpointer item)
{
    candidate *c = item;
    g_free(c->name);
    g_free(c->folder);
    g_free(c);
}

typedef struct collection {
    gc_search *search;
    GPtrArray *candidates;
} collection;

static bool
note_unnamed(const esdm_container_info *info, void *user)
{
    collection *all = user;
    all->search->last_ns = MAX(all->search->last_ns, info->modified_ns);
    if (g_hash_table_contains(all->search->named, info->name)) {
        g_hash_table_add(all->search->living, g_strdup(info->name));
        return true;
    }
    candidate *c = g_new0(candidate, 1);
    c->name = g_strdup(info->name);
    c->modified_ns = info->modified_ns;
    for (guint i = 0; i < all->search->wanted->len && c->called == NULL; i++) {
        const char *wanted = g_ptr_array_index(all->search->wanted, i);
        c->called = gc_below(info->name, wanted) != NULL ? wanted : NULL;
    }
    g_ptr_array_add(all->candidates, c);
    return true;
}

char *
gc_number(guint64 number)
{
    return g_strdup_printf("%016" PRIx64, (uint64_t) number);
}

/* false: it cannot be opened, though it is there. */
static bool
ask(const gc_search *s, esdm_session *session, candidate *c)
{
    esdm_container *container;
    esdm_error err = {0};
    esdm_status status = esdm_container_open(session, c->name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                             &container, &err);
    c->kept = status != ESDM_OK;
    if (status != ESDM_OK)
        return status == ESDM_ENOENT; /* gone meanwhile */
    c->folder = g_strdup(esdm_container_stub_folder(container));
    c->number = esdm_container_stub(container, NULL);
    if (c->number != 0)
        g_hash_table_add(s->held, gc_number(c->number));
    c->untold = c->number != 0 && esdm_container_hint(container, ESDM_HINT_STUB_FOLDER) == NULL;
    for (guint i = 0; c->folder != NULL && c->walked == NULL && i < s->folders->len; i++) {
        const char *walked = g_ptr_array_index(s->folders, i);
        c->walked = gc_below(c->folder, walked) != NULL ? walked : NULL;
    }
    if (c->folder != NULL && (c->walked != NULL || c->called != NULL)) {
        char place[ESDM_STUB_PLACE_BYTES];
        esdm_stub_place(session, c->folder, place);
        /* What cannot even be asked for is told by who looks there. */
        c->afar =
            !esdm_container_stub_is_at(container, place) && (c->walked != NULL || place[0] != '\0');
    }
    c->renamed = esdm_container_stub_is_renamed(container);
    c->restored =
        (c->walked != NULL || c->called != NULL) && esdm_container_restored_ns(container) != 0;
    esdm_container_discard(container);
    return true;
}

/* What containers of the folder that was asked for are called, by the name of one whose stub was
 * made in or below it. Owned. */
static char *
prefix_of(const candidate *c)
{
    const char *slash = strrchr(c->name, '/');
    g_autofree char *above = g_strndup(c->name, slash != NULL ? (gsize) (slash - c->name) : 0);
    const char *rest = gc_below(c->folder, c->walked);
    size_t bytes = strlen(above);
    size_t rest_bytes = strlen(rest);
    bool ends_so = rest_bytes > 0 && bytes >= rest_bytes &&
                   strcmp(above + bytes - rest_bytes, rest) == 0 &&
                   (bytes == rest_bytes || above[bytes - rest_bytes - 1] == '/');
    if (ends_so)
        above[bytes - rest_bytes - (bytes > rest_bytes)] = '\0';
    return g_steal_pointer(&above);
}

/* Their stubs may have been moved to where other routes give such names. */
static tool_exit
walk_other_routes(gc_search *s, const GPtrArray *candidates)
{
    g_autoptr(GHashTable) done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < candidates->len && result == TOOL_OK; i++) {
        const candidate *c = g_ptr_array_index(candidates, i);
        if (c->walked == NULL)
            continue;
        g_autofree char *prefix = prefix_of(c);
        if (g_hash_table_add(done, g_strdup_printf("%s\n%s", c->walked, prefix)))
            result = gc_walk_routes(s, c->walked, prefix);
    }
    return result;
}

/* Those that are called so, and whose stubs were made in other folders that are routed to the same
 * NAME: they are looked for there. What cannot be looked at keeps its containers. */
static void
look_where_made(gc_search *s, const GPtrArray *candidates)
{
    g_autoptr(GHashTable) done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) closed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < candidates->len; i++) {
        candidate *c = g_ptr_array_index(candidates, i);
        if (c->called == NULL || c->folder == NULL || c->walked != NULL || c->afar)
            continue;
        if (g_hash_table_add(done, g_strdup(c->folder)) && !gc_look_at_folder(s, c->folder))
            g_hash_table_add(closed, g_strdup(c->folder));
        c->kept = g_hash_table_contains(closed, c->folder);
    }
    GHashTableIter all;
    gpointer folder;
    g_hash_table_iter_init(&all, closed);
    while (g_hash_table_iter_next(&all, &folder, NULL)) {
        g_autofree char *printable = tool_printable(folder);
        tool_error("'%s' cannot be looked at: containers whose stubs were made there are kept",
                   printable);
    }
}

/* Also by its number: it may have been brought back beside the one that has its name now. */
static bool
has_stub(const gc_search *s, const candidate *c)
{
    g_autofree char *number = gc_number(c->number);
    return g_hash_table_contains(s->named, c->name) ||
           (c->folder != NULL && g_hash_table_contains(s->numbers, number));
}

/* Some containers have the NAME of a route that was not asked for, and do not tell in which folder
 * their stubs were. Their stubs may be elsewhere, under the same NAME. So these containers are not
 * removed, but the user is told how to ask for that. */
static void
tell_untold(const gc_search *s, const GPtrArray *candidates)
{
    for (guint i = 0; i < s->others->len; i++) {
        const gc_other *other = g_ptr_array_index(s->others, i);
        bool found = false;
        for (guint j = 0; j < candidates->len && !found; j++) {
            const candidate *c = g_ptr_array_index(candidates, j);
            found = c->untold && c->called == NULL && !has_stub(s, c) &&
                    gc_below(c->name, other->prefix) != NULL;
        }
        if (!found)
            continue;
        g_autofree char *option = g_strdup_printf("%s=%s", other->folder, other->prefix);
        g_autofree char *printable = tool_printable(option);
        tool_error("stubs in this folder stand for containers of a route to a name, some of which "
                   "do not tell where their stubs were, and are not looked at; if all their stubs "
                   "are there: --stubs '%s'",
                   printable);
    }
}

/* Those that are kept for one reason. */
typedef struct reason {
    guint64 count;
    const char *first; /* borrowed */
} reason;

static void
keep(reason *why, const candidate *c)
{
    if (why->count++ == 0)
        why->first = c->name;
}

static void
tell_kept(const reason *kept, const char *why)
{
    if (kept->count == 0)
        return;
    g_autofree char *printable = tool_printable(kept->first);
    tool_error("%" G_GUINT64_FORMAT " container%s without stub kept, such as '%s': %s", kept->count,
               kept->count == 1 ? "" : "s", printable, why);
}

/* Those that belong to the folders, have no stub, and leave no doubt. */
static void
take_stubless(gc_search *s, const GPtrArray *candidates)
{
    reason afar = {.count = 0};
    reason renamed = {.count = 0};
    reason restored = {.count = 0};
    for (guint i = 0; i < candidates->len; i++) {
        const candidate *c = g_ptr_array_index(candidates, i);
        bool belongs = c->called != NULL || c->walked != NULL;
        s->found += belongs;
        if (!belongs || c->kept || has_stub(s, c))
            continue;
        if (c->afar || c->renamed || c->restored) {
            keep(c->afar ? &afar : c->renamed ? &renamed : &restored, c);
            continue;
        }
        if (c->modified_ns > s->newest_ns)
            s->result->young++;
        else
            g_ptr_array_add(s->result->names, g_strdup(c->name));
        if (s->prefix == NULL && c->modified_ns <= s->newest_ns)
            s->prefix = c->walked != NULL ? prefix_of(c) : g_strdup(c->called);
    }
    tell_kept(&afar, "their stubs were made on another node or file system, where the folder has "
                     "the same path; esdm-gc finds them there, esdm-rm removes them");
    tell_kept(&renamed, "they got another name after their stubs were made, by esdm-mv, mv or "
                        "esdm-restore; esdm-rm removes them");
    tell_kept(&restored,
              "esdm-restore brought them back, without their stubs; esdm-rm removes them");
}

/* What nobody can look at is told, and stays. */
static void
ask_all(gc_search *s, esdm_session *session, const GPtrArray *candidates)
{
    guint unread = 0;
    for (guint i = 0; i < candidates->len; i++)
        unread += !ask(s, session, g_ptr_array_index(candidates, i));
    s->blind = unread > 0;
    if (unread > 0)
        tool_error("%u container%s could not be opened, and %s not looked at: esdm-fsck tells why",
                   unread, unread == 1 ? "" : "s", unread == 1 ? "is" : "are");
}

tool_exit
gc_find_candidates(gc_search *s, esdm_session *session)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) candidates = g_ptr_array_new_with_free_func(candidate_free);
    collection all = {.search = s, .candidates = candidates};
    esdm_status status = esdm_container_list(session, NULL, note_unnamed, &all, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    ask_all(s, session, candidates);
    tool_exit result = walk_other_routes(s, candidates);
    if (result == TOOL_OK)
        look_where_made(s, candidates);
    if (result == TOOL_OK) {
        take_stubless(s, candidates);
        tell_untold(s, candidates);
    }
    return result;
}
