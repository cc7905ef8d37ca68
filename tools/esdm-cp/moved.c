/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-ref --moved: sources that lie below another folder now. And what is said when a scan finds
 * that without being told. */

#include "esdm-cp/esdm-cp.h"

#include <sys/stat.h>

#define SECOND_NS ((json_int_t) 1000000000)
#define ALONE_MAX 8u /* files that lay elsewhere by themselves, before the search ends */

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
    json_t *a = tool_json_read(then, -1, 0, NULL), *b = tool_json_read(now, -1, 0, NULL);
    const char *digest = json_string_value(json_object_get(a, "digest"));
    const char *kept = json_string_value(json_object_get(a, CP_SEEN_KEPT));
    bool same = json_equal(json_object_get(a, "bytes"), json_object_get(b, "bytes")) == 1;
    if (digest != NULL) /* a store; an older esdm-ref kept no more than what no copy has */
        same =
            same && (kept != NULL
                         ? g_strcmp0(kept, json_string_value(json_object_get(b, CP_SEEN_KEPT)))
                         : g_strcmp0(digest, json_string_value(json_object_get(b, "digest")))) == 0;
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

esdm_status
cp_moved_refuse(const cp_job *job, const char *was, const char *whole, esdm_error *err)
{
    return tool_error_set(err, ESDM_EEXIST,
                          "'%s' was made of '%s', not of '%s'; --force replaces it", job->target,
                          was, whole);
}

/* Whether a result says that its container was made of what has the same place below another
 * folder. */
static bool
is_below(const cp_job *job, const cp_result *result, const cp_tree *tree, const char *old)
{
    esdm_error said;
    g_autofree char *whole = g_canonicalize_filename(job->source, NULL);
    const char *rest = result->elsewhere && !result->told ? below(whole, tree->folder) : NULL;
    g_autofree char *was = g_strconcat(old, rest, NULL);
    return rest != NULL && cp_moved_refuse(job, was, whole, &said) == ESDM_EEXIST &&
           g_str_equal(said.message, result->message);
}

/* @return whether it was said. */
static bool
tell_folder(const GPtrArray *jobs, cp_result *results, const cp_tree *tree, const char *old)
{
    guint count = 0, all = 0;
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        g_autofree char *whole = g_canonicalize_filename(job->source, NULL);
        all += results[i].change != CP_CHANGE_NEW && below(whole, tree->folder) != NULL;
        count += is_below(job, &results[i], tree, old);
    }
    if (count < 2)
        return false;
    for (guint i = 0; i < jobs->len; i++)
        results[i].told |= is_below(g_ptr_array_index(jobs, i), &results[i], tree, old);
    struct stat is;
    bool gone = stat(old, &is) != 0;
    g_autofree char *shown = tool_printable(old);
    g_autofree char *folder = tool_printable(tree->folder);
    g_autofree char *name = g_strconcat("esdm://", tree->prefix, NULL);
    g_autofree char *from = g_shell_quote(shown);
    g_autofree char *to = g_shell_quote(folder);
    g_autofree char *target = g_shell_quote(name);
    tool_error("%u of %u containers refer to files below '%s'%s. Was it moved? esdm-ref --moved %s "
               "%s %s takes those over that have the same size and time; --update --force replaces "
               "all by what is there now",
               count, all, shown, gone ? ", which is gone" : "", from, to, target);
    return true;
}

void
cp_moved_tell(const GPtrArray *jobs, cp_result *results, const GPtrArray *trees)
{
    for (guint t = 0; t < trees->len && cp_wants.moved == NULL; t++) {
        const cp_tree *tree = g_ptr_array_index(trees, t);
        guint alone = 0; /* what lay elsewhere by itself is told by itself */
        for (guint i = 0; i < jobs->len && alone < ALONE_MAX; i++) {
            if (!results[i].elsewhere || results[i].told)
                continue;
            g_autofree char *old = old_folder(g_ptr_array_index(jobs, i), tree);
            alone += old == NULL || !tell_folder(jobs, results, tree, old);
        }
    }
}
