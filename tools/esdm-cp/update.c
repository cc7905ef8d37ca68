/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-ref --update: which containers of a tree that was referred to before are as their sources
 * are, which are not, and which have none any more. */

#include "common/scratch.h"
#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
cp_change_name(cp_change change)
{
    static const char *const names[] = {"", "new", "changed", "unchanged", "kept"};
    return names[change];
}

/* ---- one source ----------------------------------------------------------------------------- */

typedef struct newest {
    bool by_ref; /* made by esdm-ref, and by nobody else since */
} newest;

static bool
note_newest(const esdm_snapshot_info *info, void *user)
{
    newest *n = user;
    n->by_ref = g_str_has_prefix(info->message, "esdm-ref ");
    return true;
}

/* ESDM_EEXIST: somebody has written to it. */
static esdm_status
check_untouched(esdm_session *session, const char *name, esdm_error *err)
{
    newest n = {0};
    esdm_status status = esdm_container_snapshots(session, name, note_newest, &n, err);
    if (status != ESDM_OK || n.by_ref || cp_wants.force)
        return status;
    return tool_error_set(err, ESDM_EEXIST,
                          "'%s' was written to since esdm-ref made it, and would lose that; "
                          "--force does it all the same",
                          name);
}

/* What it was made of: owned; NULL: not known. */
static esdm_status
remembered(esdm_session *session, const char *name, char **ret_seen, bool *ret_pinned,
           esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, err);
    if (status != ESDM_OK)
        return status;
    *ret_seen = g_strdup(esdm_container_hint(container, ESDM_REFERENCE_SOURCE));
    *ret_pinned = esdm_container_hint(container, ESDM_REFERENCE_PIN) != NULL;
    esdm_container_discard(container);
    return ESDM_OK;
}

static esdm_status
check_name(const cp_job *job, const char *then, const char *now, cp_result *result, esdm_error *err)
{
    g_autofree char *name = then != NULL ? cp_seen_name(then) : NULL;
    g_autofree char *whole = esdm_location_is_remote(job->source)
                                 ? g_strdup(job->source)
                                 : g_canonicalize_filename(job->source, NULL);
    if (cp_wants.force || (name != NULL && g_str_equal(name, whole)))
        return ESDM_OK;
    if (name != NULL && cp_moved_fits(name, whole))
        return cp_moved_same(then, now)
                   ? ESDM_OK
                   : tool_error_set(err, ESDM_EEXIST,
                                    "'%s' differs in size or time from '%s', of which '%s' was "
                                    "made; --force replaces it",
                                    whole, name, job->target);
    result->elsewhere = name != NULL;
    return name != NULL ? cp_moved_refuse(job, name, whole, err)
                        : tool_error_set(err, ESDM_EEXIST,
                                         "'%s' was made of something else, not of '%s'; --force "
                                         "replaces it",
                                         job->target, whole);
}

esdm_status
cp_update_look(const cp_job *job, esdm_session *session, const char *now, cp_result *result,
               esdm_error *err)
{
    g_autofree char *then = NULL;
    esdm_error why = {0};
    esdm_container_info info;
    bool pinned = false;
    esdm_status status = esdm_container_stat(session, job->target, &info, &why);
    result->change = CP_CHANGE_NEW;
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status == ESDM_OK)
        status = remembered(session, job->target, &then, &pinned, &why);
    if (status == ESDM_OK && then != NULL && cp_seen_equal(then, now)) {
        result->change = CP_CHANGE_NONE;
        return ESDM_OK;
    }
    result->change = CP_CHANGE_CHANGED;
    if (status == ESDM_OK && then != NULL)
        status = check_name(job, then, now, result, &why);
    if (status == ESDM_OK && pinned && !cp_wants.force) {
        result->change = CP_CHANGE_KEPT;
        return ESDM_OK;
    }
    /* An older esdm-ref kept no more than its message. */
    if (status == ESDM_OK)
        status = check_untouched(session, job->target, &why);
    if (status == ESDM_ENOENT) { /* removed this moment */
        result->change = CP_CHANGE_NEW;
        return ESDM_OK;
    }
    if (status != ESDM_OK)
        *err = why;
    return status;
}

/* ---- what is gone --------------------------------------------------------------------------- */

typedef struct sweep {
    esdm_session *session;
    const cp_tree *tree;
    GHashTable *targets; /* names that have a source */
    GPtrArray *names;    /* of containers that have none */
    cp_swept *swept;
    tool_exit result;
} sweep;

static bool
note_stranger(const esdm_container_info *info, void *user)
{
    sweep *s = user;
    if (strstr(info->name, "@branch:") == NULL && !g_hash_table_contains(s->targets, info->name))
        g_ptr_array_add(s->names, g_strdup(info->name));
    return true;
}

/* Whether it was made of what had its place in the tree. */
static bool
is_of_tree(const cp_tree *tree, const char *name, const char *seen)
{
    g_autofree char *source = cp_seen_name(seen);
    size_t prefix = strlen(tree->prefix), folder = strlen(tree->folder);
    const char *below = prefix > 0 && strlen(name) > prefix ? name + prefix + 1 : name;
    folder = folder == 1 ? 0 : folder; /* "/" */
    return source != NULL && strncmp(source, tree->folder, folder) == 0 && source[folder] == '/' &&
           g_str_equal(source + folder + 1, below);
}

static void
fail(sweep *s, esdm_status status, const esdm_error *err)
{
    tool_exit one = tool_fail(status, err);
    s->result = s->result == TOOL_OK ? one : s->result;
}

static void
add_gone(sweep *s, const char *name, const char *seen, bool pinned, bool removed)
{
    cp_gone *gone = g_new0(cp_gone, 1);
    gone->source = cp_seen_name(seen);
    gone->target = g_strdup(name);
    gone->pinned = pinned;
    gone->removed = removed;
    g_ptr_array_add(s->swept->gone, gone);
    s->swept->removed += removed;
}

static void
sweep_one(sweep *s, const char *name)
{
    g_autofree char *seen = NULL;
    esdm_error err = {0};
    bool pinned = false;
    esdm_status status = remembered(s->session, name, &seen, &pinned, &err);
    bool removes = cp_wants.remove_gone && !cp_wants.dry_run && (!pinned || cp_wants.force);
    if (status == ESDM_ENOENT || (status == ESDM_OK && seen == NULL))
        return;
    if (status == ESDM_OK && !is_of_tree(s->tree, name, seen))
        return;
    if (status == ESDM_OK && removes)
        status = check_untouched(s->session, name, &err);
    if (status == ESDM_OK && removes)
        status = esdm_container_remove(s->session, name, &err);
    if (status != ESDM_OK && status != ESDM_ENOENT)
        fail(s, status, &err);
    if (status == ESDM_OK || seen != NULL)
        add_gone(s, name, seen, pinned, removes && status == ESDM_OK);
}

static bool
has_sources(const cp_tree *tree, const GPtrArray *jobs)
{
    g_autofree char *below = g_strconcat(tree->prefix, tree->prefix[0] != '\0' ? "/" : "", NULL);
    for (guint i = 0; i < jobs->len; i++) {
        if (g_str_has_prefix(((const cp_job *) g_ptr_array_index(jobs, i))->target, below))
            return true;
    }
    return false;
}

/* The whole tree is gone: nobody wants a line for each of its files. */
static void
tell_all_gone(sweep *s, guint first)
{
    guint count = s->swept->gone->len - first;
    g_autofree char *folder = tool_printable(s->tree->folder);
    g_autofree char *name = g_strconcat("esdm://", s->tree->prefix, NULL);
    g_autofree char *from = g_shell_quote(folder);
    g_autofree char *to = g_shell_quote(name);
    for (guint i = first; i < s->swept->gone->len; i++)
        ((cp_gone *) g_ptr_array_index(s->swept->gone, i))->told = true;
    tool_error("%u of %u sources are gone below '%s'. Is it mounted? If it was moved: esdm-ref "
               "--moved %s NEW %s; --verbose names them",
               count, count, folder, from, to);
}

static void
sweep_tree(sweep *s, const GPtrArray *jobs)
{
    esdm_error err = {0};
    guint first = s->swept->gone->len;
    guint removed = s->swept->removed;
    g_ptr_array_set_size(s->names, 0);
    esdm_status status = esdm_container_list(
        s->session, s->tree->prefix[0] != '\0' ? s->tree->prefix : NULL, note_stranger, s, &err);
    if (status != ESDM_OK) {
        fail(s, status, &err);
        return;
    }
    /* An archive that is not mounted looks like that. */
    if (cp_wants.remove_gone && !cp_wants.dry_run && !cp_wants.force && s->names->len > 0 &&
        !has_sources(s->tree, jobs)) {
        tool_error("there is no source at all in '%s': is it mounted? Was it moved (--moved)? "
                   "--force removes all containers that were made of it",
                   s->tree->folder);
        s->result = TOOL_REFUSED;
        return;
    }
    for (guint i = 0; i < s->names->len && !cp_is_interrupted(); i++)
        sweep_one(s, g_ptr_array_index(s->names, i));
    guint gone = s->swept->gone->len - first;
    if (gone > 1 && s->swept->removed == removed && !has_sources(s->tree, jobs))
        tell_all_gone(s, first);
    if (s->tree->absent && gone <= 1)
        tool_error("%s: %s", s->tree->folder, g_strerror(ENOENT));
    if (s->tree->absent && s->result == TOOL_OK)
        s->result = TOOL_NOT_FOUND;
}

static void
free_gone(gpointer data)
{
    cp_gone *gone = data;
    g_free(gone->source);
    g_free(gone->target);
    g_free(gone);
}

tool_exit
cp_update_sweep(const GPtrArray *jobs, const GPtrArray *trees, cp_swept *ret)
{
    sweep s = {.swept = ret, .result = TOOL_OK};
    ret->gone = g_ptr_array_new_with_free_func(free_gone);
    if (trees->len == 0 || cp_is_interrupted())
        return TOOL_OK;
    tool_exit result = tool_session(cp_wants.dry_run != 0, &s.session);
    if (result != TOOL_OK)
        return result;
    s.targets = g_hash_table_new(g_str_hash, g_str_equal);
    s.names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < jobs->len; i++)
        (void) g_hash_table_add(s.targets, ((cp_job *) g_ptr_array_index(jobs, i))->target);
    guint ignored;
    esdm_error why = {0};
    if (!cp_wants.dry_run && tool_unfinished_sweep(s.session, 0, true, &ignored, &why) != ESDM_OK)
        tool_error("%s", why.message); /* esdm-gc does it, too */
    for (guint i = 0; i < trees->len; i++) {
        s.tree = g_ptr_array_index(trees, i);
        sweep_tree(&s, jobs);
    }
    g_hash_table_unref(s.targets);
    g_ptr_array_unref(s.names);
    esdm_session_close(s.session);
    return s.result;
}

/* ---- what is told --------------------------------------------------------------------------- */

cp_counts
cp_update_counts(const GPtrArray *jobs, const cp_result *results, const cp_swept *swept)
{
    cp_counts counts = {.gone = swept->gone->len - swept->removed, .removed = swept->removed};
    for (guint i = 0; i < jobs->len; i++) {
        if (results[i].status != ESDM_OK)
            continue;
        counts.added += results[i].change == CP_CHANGE_NEW;
        counts.changed += results[i].change == CP_CHANGE_CHANGED;
        counts.unchanged += results[i].change == CP_CHANGE_NONE;
        counts.kept += results[i].change == CP_CHANGE_KEPT;
    }
    return counts;
}

static void
print_line(const char *what, const char *source, const char *target)
{
    g_autofree char *from = tool_printable(source);
    g_autofree char *to = tool_printable(target);
    (void) printf("%s: %s -> esdm://%s\n", what, from, to);
}

void
cp_update_print(const GPtrArray *jobs, const cp_result *results, const cp_swept *swept,
                double seconds)
{
    cp_counts n = cp_update_counts(jobs, results, swept);
    guint failed = 0;
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        failed += results[i].status != ESDM_OK;
        if ((cp_wants.verbose || cp_wants.dry_run) && results[i].status == ESDM_OK &&
            results[i].change != CP_CHANGE_NONE)
            print_line(cp_change_name(results[i].change), job->source, job->target);
        else if (results[i].change == CP_CHANGE_KEPT)
            print_line("kept, as it is pinned", job->source, job->target);
    }
    for (guint i = 0; i < swept->gone->len; i++) {
        const cp_gone *gone = g_ptr_array_index(swept->gone, i);
        if ((!gone->removed && !gone->told) || cp_wants.verbose)
            print_line(gone->removed  ? "removed"
                       : gone->pinned ? "gone, but pinned"
                                      : "gone",
                       gone->source, gone->target);
    }
    if (!cp_wants.quiet)
        (void) printf("%u new, %u changed, %u unchanged, %u kept, %u gone, %u removed, %u failed "
                      "in %.1f s\n",
                      n.added, n.changed, n.unchanged, n.kept, n.gone, n.removed, failed, seconds);
}

void
cp_update_json(json_t *root, const cp_counts *counts, const cp_swept *swept)
{
    json_t *list = json_array();
    for (guint i = 0; i < swept->gone->len; i++) {
        const cp_gone *gone = g_ptr_array_index(swept->gone, i);
        g_autofree char *target = g_strconcat("esdm://", gone->target, NULL);
        json_t *object = json_object();
        tool_json_set(object, "source", tool_json_text(gone->source));
        tool_json_set(object, "target", tool_json_text(target));
        tool_json_set(object, "pinned", json_boolean(gone->pinned));
        tool_json_set(object, "removed", json_boolean(gone->removed));
        tool_json_append(list, object);
    }
    tool_json_set(root, "new", tool_json_u64(counts->added));
    tool_json_set(root, "changed", tool_json_u64(counts->changed));
    tool_json_set(root, "unchanged", tool_json_u64(counts->unchanged));
    tool_json_set(root, "kept", tool_json_u64(counts->kept));
    tool_json_set(root, "removed", tool_json_u64(counts->removed));
    tool_json_set(root, "gone", list);
}
