/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-ref --moved: sources that lie below another folder now. And what is said when a scan finds
 * that without being told. */

#include "esdm-cp/esdm-cp.h"

#include <sys/stat.h>

#define SECOND_NS ((json_int_t) 1000000000)

/* What follows the folder in a path below it, with its slash. NULL: it is not below. */
static const char *
below(const char *path, const char *folder)
{
    size_t bytes = g_str_equal(folder, "/") ? 0 : strlen(folder);
    return strncmp(path, folder, bytes) == 0 && path[bytes] == '/' ? path + bytes : NULL;
}

bool
cp_moved_fits(const char *was, const char *whole)
{
    g_autofree char *old =
        cp_wants.moved != NULL ? g_canonicalize_filename(cp_wants.moved, NULL) : NULL;
    const char *rest = old != NULL ? below(was, old) : NULL;
    return rest != NULL && g_str_has_suffix(whole, rest);
}

/* Archives that keep whole seconds are no reason to refuse. */
static bool
same_time(json_int_t then, json_int_t now)
{
    return then == now || (now % SECOND_NS == 0 && then / SECOND_NS == now / SECOND_NS);
}

bool
cp_moved_same(const char *then, const char *now)
{
    json_t *a = json_loads(then, 0, NULL), *b = json_loads(now, 0, NULL);
    const char *digest = json_string_value(json_object_get(a, "digest"));
    bool same = json_equal(json_object_get(a, "bytes"), json_object_get(b, "bytes")) == 1;
    if (digest != NULL) /* a store */
        same = same && g_strcmp0(digest, json_string_value(json_object_get(b, "digest"))) == 0;
    else
        same = same && same_time(json_integer_value(json_object_get(a, "modified_ns")),
                                 json_integer_value(json_object_get(b, "modified_ns")));
    json_decref(a);
    json_decref(b);
    return same;
}

/* The folder that a container's source lay below when it was called as the tree's are. Owned; NULL:
 * it is not known. */
static char *
old_folder(const cp_job *job, const cp_tree *tree)
{
    esdm_session *session = NULL;
    esdm_container *container = NULL;
    esdm_error ignored;
    g_autofree char *whole = g_canonicalize_filename(job->source, NULL);
    const char *rest = below(whole, tree->folder);
    char *old = NULL;
    if (rest == NULL || tool_session(true, &session) != TOOL_OK)
        return NULL;
    if (esdm_container_open(session, job->target, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            &ignored) == ESDM_OK) {
        const char *hint = esdm_container_hint(container, ESDM_REFERENCE_SOURCE);
        g_autofree char *was = hint != NULL ? cp_seen_name(hint) : NULL;
        if (was != NULL && g_str_has_suffix(was, rest))
            old = g_strndup(was, strlen(was) - strlen(rest));
        esdm_container_discard(container);
    }
    esdm_session_close(session);
    return old;
}

static bool
is_elsewhere(const cp_job *job, const cp_result *result, const cp_tree *tree)
{
    g_autofree char *whole = g_canonicalize_filename(job->source, NULL);
    return result->elsewhere && below(whole, tree->folder) != NULL;
}

bool
cp_moved_tell(const GPtrArray *jobs, const cp_result *results, const GPtrArray *trees)
{
    bool told = false;
    for (guint t = 0; t < trees->len && cp_wants.moved == NULL; t++) {
        const cp_tree *tree = g_ptr_array_index(trees, t);
        const cp_job *first = NULL;
        guint count = 0, all = 0;
        for (guint i = 0; i < jobs->len; i++) {
            const cp_job *job = g_ptr_array_index(jobs, i);
            all += results[i].change != CP_CHANGE_NEW;
            if (!is_elsewhere(job, &results[i], tree))
                continue;
            first = count++ == 0 ? job : first;
        }
        g_autofree char *old = count > 1 ? old_folder(first, tree) : NULL;
        if (old == NULL)
            continue;
        struct stat is;
        bool gone = stat(old, &is) != 0;
        g_autofree char *from = tool_printable(old);
        g_autofree char *to = tool_printable(tree->folder);
        tool_error("%u of %u containers refer to files below '%s'%s. Was it moved? esdm-ref "
                   "--moved '%s' '%s' 'esdm://%s' takes those over that have the same size and "
                   "time; --update --force replaces all by what is there now",
                   count, all, from, gone ? ", which is gone" : "", from, to, tree->prefix);
        told = true;
    }
    return told;
}
