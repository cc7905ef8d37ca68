/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Order, folders and output of esdm-ls. */

#include <stdio.h>
#include <string.h>

#include "esdm-ls/esdm-ls.h"

void
ls_entry_free(gpointer data)
{
    ls_entry *entry = data;
    g_free(entry->name);
    g_free(entry->id);
    g_free(entry->owner);
    if (entry->members != NULL)
        g_ptr_array_unref(entry->members);
    g_free(entry);
}

/* ---- order -------------------------------------------------------------------------------- */

static const ls_entry *
entry_at(gconstpointer at)
{
    return *(const ls_entry *const *) at;
}

static int
compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    int order = strcmp(entry_at(a)->name, entry_at(b)->name);
    return order != 0 ? order : compare(entry_at(a)->time_ns, entry_at(b)->time_ns);
}

/* The largest and the newest first, as people look for them. */
static int
by_data(gconstpointer a, gconstpointer b)
{
    int order = compare(entry_at(b)->info.raw_bytes, entry_at(a)->info.raw_bytes);
    return order != 0 ? order : by_name(a, b);
}

static int
by_stored(gconstpointer a, gconstpointer b)
{
    int order = compare(entry_at(b)->info.stored_bytes, entry_at(a)->info.stored_bytes);
    return order != 0 ? order : by_name(a, b);
}

static uint64_t
time_of(const ls_entry *entry)
{
    return entry->time_ns != 0 ? entry->time_ns : entry->info.modified_ns;
}

static int
by_time(gconstpointer a, gconstpointer b)
{
    int order = compare(time_of(entry_at(b)), time_of(entry_at(a)));
    return order != 0 ? order : by_name(a, b);
}

static int
by_owner(gconstpointer a, gconstpointer b)
{
    int order = g_strcmp0(entry_at(a)->owner, entry_at(b)->owner);
    return order != 0 ? order : by_name(a, b);
}

GCompareFunc
ls_order(const char *word)
{
    static const struct {
        const char *word;
        GCompareFunc order;
    } orders[] = {{"name", by_name},
                  {"size", by_data},
                  {"stored", by_stored},
                  {"time", by_time},
                  {"owner", by_owner}};
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        if (g_str_equal(word, orders[i].word))
            return orders[i].order;
    }
    return NULL;
}

/* ---- folders ------------------------------------------------------------------------------ */

/* Length of the folder that stands for a name at this depth, with its '/'; 0: the name itself. */
static size_t
folder_bytes(const char *name, size_t skip)
{
    const char *at = name + skip;
    for (int depth = 0; depth < ls.depth; depth++) {
        const char *slash = strchr(at, '/');
        if (slash == NULL)
            return 0;
        at = slash + 1;
    }
    return (size_t) (at - name);
}

void
ls_join(ls_entry *folder, ls_entry *entry)
{
    if (folder->members == NULL)
        folder->members = g_ptr_array_new_with_free_func(ls_entry_free);
    g_ptr_array_add(folder->members, entry);
    folder->info.raw_bytes += entry->info.raw_bytes;
    folder->info.stored_bytes += entry->info.stored_bytes;
    folder->info.fragments += entry->info.fragments;
    folder->info.datasets += entry->info.datasets;
    if (entry->info.modified_ns > folder->info.modified_ns)
        folder->info.modified_ns = entry->info.modified_ns;
    if (folder->owner != NULL && g_strcmp0(folder->owner, entry->owner) != 0) {
        g_free(folder->owner);
        folder->owner = g_strdup("(several)");
    }
}

void
ls_fold(GPtrArray *entries, guint from, const char *prefix)
{
    size_t skip = prefix != NULL ? strlen(prefix) + 1 : 0;
    guint to = from;
    ls_entry *folder = NULL;
    for (guint i = from; i < entries->len; i++) {
        ls_entry *entry = g_ptr_array_index(entries, i);
        size_t bytes = strlen(entry->name) < skip ? 0 : folder_bytes(entry->name, skip);
        bool same = folder != NULL && bytes > 0 && strlen(folder->name) == bytes &&
                    strncmp(folder->name, entry->name, bytes) == 0;
        if (bytes > 0 && !same) {
            folder = g_new0(ls_entry, 1);
            folder->name = g_strndup(entry->name, bytes);
            folder->owner = g_strdup(entry->owner);
        }
        if (bytes > 0) {
            folder->containers++;
            ls_join(folder, entry);
            entries->pdata[i] = NULL;
        }
        if (bytes == 0 || !same)
            entries->pdata[to++] = bytes == 0 ? entry : folder;
    }
    /* What is behind has been moved or freed: the array's own function would free it again. */
    g_ptr_array_set_free_func(entries, NULL);
    g_ptr_array_set_size(entries, (int) to);
    g_ptr_array_set_free_func(entries, ls_entry_free);
}

/* ---- text --------------------------------------------------------------------------------- */

static char *
size_text(uint64_t bytes)
{
    return ls.exact_bytes ? g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) bytes)
                          : tool_bytes(bytes);
}

static void
print_long(const ls_entry *entry, const char *name, bool with_shared)
{
    g_autofree char *raw = size_text(entry->info.raw_bytes);
    g_autofree char *stored = size_text(entry->info.stored_bytes);
    g_autofree char *shared_size = size_text(entry->shared_bytes);
    g_autofree char *shared = g_strdup_printf(with_shared ? " %10s" : "%.0s", shared_size);
    g_autofree char *time = tool_time(entry->info.modified_ns);
    g_autofree char *owner = tool_printable(entry->owner != NULL ? entry->owner : "-");
    /* Folders have none. */
    g_autofree char *snapshot =
        entry->info.snapshot > 0
            ? g_strdup_printf("%" G_GUINT64_FORMAT, (guint64) entry->info.snapshot)
            : g_strdup("-");
    if (entry->of_view)
        (void) printf("%10" G_GUINT64_FORMAT " %10s %10s%s  %s  %s\n", (guint64) entry->containers,
                      raw, stored, shared, time, name);
    else
        (void) printf("%10s %10s%s %8" G_GUINT64_FORMAT " %5u %5s  %-10s %s  %s\n", raw, stored,
                      shared, (guint64) entry->info.fragments, entry->info.datasets, snapshot,
                      owner, time, name);
}

static void
print_former(const ls_entry *entry, const char *name)
{
    g_autofree char *stored = size_text(entry->info.stored_bytes);
    g_autofree char *time = tool_time(entry->time_ns);
    g_autofree char *until = entry->until_ns == G_MAXUINT64 ? g_strdup("its file is removed")
                                                            : tool_time(entry->until_ns);
    (void) printf("%s  %-8s %s  %s %10s  %s\n", entry->id, entry->removed ? "removed" : "replaced",
                  time, until, stored, name);
}

static bool
any_shared(const GPtrArray *entries)
{
    bool any = false;
    for (guint i = 0; i < entries->len && !any; i++)
        any = ((const ls_entry *) g_ptr_array_index(entries, i))->shared_bytes > 0;
    return any;
}

static void
print_heads(const GPtrArray *entries, bool with_shared)
{
    const ls_entry *first = entries->len > 0 ? g_ptr_array_index(entries, 0) : NULL;
    const char *shared = with_shared ? "     shared" : "";
    if (first != NULL && first->of_view && ls.facts)
        (void) printf("%10s %10s %10s%s  %-19s  %s\n", "containers", "data", "stored", shared,
                      "modified", "place");
    else if (ls.replaced)
        (void) printf("%-8s  %-8s %-19s  %-19s %10s  %s\n", "id", "was", "at", "kept until",
                      "stored", "name");
    else if (ls.facts)
        (void) printf("%10s %10s%s %8s %5s %5s  %-10s %-19s  %s\n", "data", "stored", shared,
                      "fragm.", "vars", "snap.", "owner", "modified", "name");
}

static void
print_total(const ls_total *total)
{
    g_autofree char *raw = size_text(total->raw_bytes);
    g_autofree char *stored = size_text(total->usage.stored_bytes);
    g_autofree char *shared = size_text(total->usage.shared_bytes);
    (void) printf("total: %" G_GUINT64_FORMAT " %scontainer%s, %s of data, %s stored",
                  (guint64) total->containers, ls.replaced ? "former " : "",
                  total->containers == 1 ? "" : "s", raw, stored);
    if (total->usage.shared_bytes > 0)
        (void) printf(", %s of it for several containers", shared);
    (void) putchar('\n');
}

void
ls_print(const GPtrArray *entries, const ls_total *total)
{
    bool shared = any_shared(entries);
    print_heads(entries, shared);
    for (guint i = 0; i < entries->len && !ferror(stdout); i++) {
        const ls_entry *entry = g_ptr_array_index(entries, i);
        /* A NUL-terminated list is read by programs, which want the names as they are. */
        g_autofree char *name = ls.zero ? g_strdup(entry->name) : tool_printable(entry->name);
        if (ls.replaced)
            print_former(entry, name);
        else if (ls.facts)
            print_long(entry, name, shared);
        else
            (void) printf("%s%c", name, ls.zero ? '\0' : '\n');
    }
    if (ls.facts || ls.replaced)
        print_total(total);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *
entry_json(const ls_entry *entry)
{
    g_autofree char *created = tool_time_iso(entry->info.created_ns);
    g_autofree char *modified = tool_time_iso(entry->info.modified_ns);
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(entry->name));
    if (entry->containers > 0) {
        tool_json_set(object, "containers", tool_json_u64(entry->containers));
    } else {
        tool_json_set(object, "snapshot", tool_json_u64(entry->info.snapshot));
        tool_json_set(object, "created", json_string(created));
    }
    if (entry->of_view && !g_str_has_suffix(entry->name, "/")) {
        g_autofree char *url = g_strconcat("esdm://", entry->name, NULL);
        tool_json_set(object, "open", tool_json_text(url));
    }
    tool_json_set(object, "modified", json_string(modified));
    tool_json_set(object, "raw_bytes", tool_json_u64(entry->info.raw_bytes));
    tool_json_set(object, "stored_bytes", tool_json_u64(entry->info.stored_bytes));
    tool_json_set(object, "shared_bytes", tool_json_u64(entry->shared_bytes));
    tool_json_set(object, "fragments", tool_json_u64(entry->info.fragments));
    tool_json_set(object, "datasets", tool_json_u64(entry->info.datasets));
    if (entry->owner != NULL)
        tool_json_set(object, "owner", tool_json_text(entry->owner));
    if (entry->id != NULL) {
        g_autofree char *time = tool_time_iso(entry->time_ns);
        g_autofree char *until =
            entry->until_ns == G_MAXUINT64 ? NULL : tool_time_iso(entry->until_ns);
        tool_json_set(object, "id", tool_json_text(entry->id));
        tool_json_set(object, "was", json_string(entry->removed ? "removed" : "replaced"));
        tool_json_set(object, "time", json_string(time));
        tool_json_set(object, "kept_until", until != NULL ? json_string(until) : json_null());
    }
    return object;
}

json_t *
ls_json(const GPtrArray *entries, const ls_total *sum)
{
    json_t *root = json_object();
    json_t *list = json_array();
    json_t *total = json_object();
    for (guint i = 0; i < entries->len; i++)
        tool_json_append(list, entry_json(g_ptr_array_index(entries, i)));
    tool_json_set(total, "containers", tool_json_u64(sum->containers));
    tool_json_set(total, "raw_bytes", tool_json_u64(sum->raw_bytes));
    tool_json_set(total, "stored_bytes", tool_json_u64(sum->usage.stored_bytes));
    tool_json_set(total, "shared_bytes", tool_json_u64(sum->usage.shared_bytes));
    tool_json_set(total, "fragments", tool_json_u64(sum->fragments));
    tool_json_set(root, ls.replaced ? "replaced" : "containers", list);
    tool_json_set(root, "total", total);
    return root;
}

/* ---- trees -------------------------------------------------------------------------------- */

/* Bytes of the folders that both names lie in, with the last '/'. */
static size_t
shared_folders(const char *a, const char *b)
{
    size_t shared = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++) {
        if (a[i] == '/')
            shared = i + 1;
    }
    return shared;
}

static int
depth_of(const char *name, size_t bytes)
{
    int depth = 0;
    for (size_t i = 0; i < bytes; i++)
        depth += name[i] == '/';
    return depth;
}

void
ls_print_tree(const GPtrArray *entries)
{
    const char *before = "";
    for (guint i = 0; i < entries->len && !ferror(stdout); i++) {
        const ls_entry *entry = g_ptr_array_index(entries, i);
        const char *name = entry->name;
        size_t at = shared_folders(before, name);
        before = name;
        while (name[at] != '\0') {
            const char *slash = strchr(name + at, '/');
            size_t end = slash != NULL ? (size_t) (slash - name) + 1 : strlen(name);
            g_autofree char *part = g_strndup(name + at, end - at);
            g_autofree char *printable = tool_printable(part);
            (void) printf("%*s%s", 2 * depth_of(name, at), "", printable);
            if (name[end] == '\0' && entry->containers > 0)
                (void) printf("  %" G_GUINT64_FORMAT, (guint64) entry->containers);
            (void) putchar('\n');
            at = end;
        }
    }
}
