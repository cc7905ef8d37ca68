/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-restore: brings back what was replaced or removed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/common.h"
#include "esdm-restore/file.h"

static const tool_help help = {
    .name = "esdm-restore",
    .arguments = "NAME…",
    .description =
        "Brings back containers that were replaced or removed: by a program that wrote over\n"
        "them, by esdm-rm, or by a rename. The site keeps such former containers for a\n"
        "while, one day by default, and as long as there is room.\n"
        "\n"
        "Of several former containers of one name the newest comes back; --list shows them\n"
        "all (without NAME those of all names), and --id takes another one. Where a\n"
        "container stands under the name it asks, or refuses unless --yes is given; that\n"
        "container then becomes a former one itself, so that a second esdm-restore undoes\n"
        "the first. --as brings it back beside the other one. What a program changes in\n"
        "place (ncatted, mode \"a\") is a snapshot, and no former container: esdm-log. Where\n"
        "the container was brought back before that change, esdm-restore refuses without --id.\n"
        "\n"
        "The file that stood for a container in a folder of ESDM_NC_ROUTE is put back where\n"
        "it lay, when it is missing there. --files does that alone, for containers that stand\n"
        "and whose files were removed (rm). Of files that were moved, and are found below the\n"
        "folder above, it says where they are now.\n"
        "\n"
        "With --recursive each NAME also stands for all removed containers below it.",
    .examples = "  esdm-restore run1.nc                what run1.nc was before\n"
                "  esdm-restore --list run1.nc\n"
                "  esdm-restore --id 3f9a01c2 --as old.nc run1.nc\n"
                "  esdm-restore -r experiment          after esdm-rm -r experiment\n"
                "  esdm-restore -r --files esdm://run  after rm -r run\n",
    .see_also = "esdm-ls --replaced, esdm-rm, esdm-gc --replaced-now",
};

static gboolean list_only, recursive, yes, dry_run, files_only;
static char *wanted_id;
static char *new_name;

static const GOptionEntry entries[] = {
    {"list", 'l', 0, G_OPTION_ARG_NONE, &list_only, "Show what could be brought back", NULL},
    {"id", 'i', 0, G_OPTION_ARG_STRING, &wanted_id, "The former container with this id", "ID"},
    {"as", 'a', 0, G_OPTION_ARG_STRING, &new_name, "Bring it back under another name", "NAME"},
    {"recursive", 'r', 0, G_OPTION_ARG_NONE, &recursive, "Also what was removed below", NULL},
    {"files", 'f', 0, G_OPTION_ARG_NONE, &files_only,
     "Put back the files that stand for containers, alone", NULL},
    {"yes", 'y', 0, G_OPTION_ARG_NONE, &yes, "Replace the container that has the name now", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would come back", NULL},
    {0},
};

/* One former container that was chosen, or is listed. */
typedef struct former {
    char *name;
    char *id;
    uint64_t time_ns;
    uint64_t raw_bytes;
    bool removed;
} former;

static json_t *told; /* with --json */

static void
free_former(gpointer data)
{
    former *one = data;
    g_free(one->name);
    g_free(one->id);
    g_free(one);
}

static bool
note(const esdm_former_info *info, void *user)
{
    former *one = g_new0(former, 1);
    one->name = g_strdup(info->container.name);
    one->id = g_strdup(info->id);
    one->time_ns = info->time_ns;
    one->raw_bytes = info->container.raw_bytes;
    one->removed = info->removed;
    g_ptr_array_add(user, one);
    return true;
}

/* @param file that is back, too; NULL: none. */
static void
tell(const former *one, const char *what, const char *file)
{
    g_autofree char *name = tool_printable(one->name);
    g_autofree char *time = tool.json ? tool_time_iso(one->time_ns) : tool_time(one->time_ns);
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(one->name));
        tool_json_set(object, "id", tool_json_text(one->id));
        tool_json_set(object, "was", json_string(one->removed ? "removed" : "replaced"));
        tool_json_set(object, "time", json_string(time));
        tool_json_set(object, "raw_bytes", tool_json_u64(one->raw_bytes));
        if (new_name != NULL)
            tool_json_set(object, "as", tool_json_text(new_name));
        if (file != NULL)
            tool_json_set(object, "file", tool_json_text(file));
        tool_json_append(told, object);
        return;
    }
    g_autofree char *bytes = tool_bytes(one->raw_bytes);
    g_autofree char *as = new_name != NULL ? g_strdup_printf(" as '%s'", new_name) : g_strdup("");
    (void) printf("%s%s%s  %s at %s  %10s  '%s'%s\n", what, what[0] != '\0' ? "  " : "", one->id,
                  one->removed ? "removed" : "replaced", time, bytes, name, as);
    g_autofree char *path = file != NULL ? tool_printable(file) : NULL;
    if (path != NULL)
        (void) printf("%s  with its file '%s'\n", what, path);
}

/* Whether a container has the name now. */
static bool
stands(esdm_session *session, const char *name)
{
    esdm_container_info info;
    esdm_error ignored;
    return esdm_container_stat(session, name, &info, &ignored) == ESDM_OK;
}

/* When esdm-restore brought back what stands under a name. 0: it did not. */
static uint64_t
brought_back_ns(esdm_session *session, const char *name)
{
    esdm_container *container;
    esdm_error ignored;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            &ignored) != ESDM_OK)
        return 0;
    uint64_t time_ns = esdm_container_restored_ns(container);
    esdm_container_discard(container);
    return time_ns;
}

/* What was written to in place has no former container: who wants that undone would get another
 * one, perhaps the mistake that was undone before. false: refused. */
static bool
undoes_what_is_meant(esdm_session *session, const former *one)
{
    bool by_name = new_name == NULL && wanted_id == NULL && stands(session, one->name);
    uint64_t restored_ns = by_name ? brought_back_ns(session, one->name) : 0;
    uint64_t written_ns = 0;
    tool_written written = restored_ns == 0
                               ? TOOL_WRITTEN_NOT
                               : tool_written_since(session, one->name, restored_ns, &written_ns);
    g_autofree char *name = tool_printable(one->name);
    g_autofree char *changed = tool_time(written_ns);
    g_autofree char *then = tool_time(one->time_ns);
    if (written == TOOL_WRITTEN_YES)
        tool_error("'%s' was brought back by esdm-restore, and was written to in place at %s: what "
                   "it was before that is no former container (\"esdm-log '%s'\" shows the "
                   "snapshots that are kept). --id %s brings back the one that was %s at %s",
                   name, changed, name, one->id, one->removed ? "removed" : "replaced", then);
    else if (written == TOOL_WRITTEN_PERHAPS)
        tool_error("note: '%s' was brought back by esdm-restore, and stored anew at %s by upkeep "
                   "(esdm-log); whether somebody had written to it between is not kept",
                   name, changed);
    return written != TOOL_WRITTEN_YES;
}

/* Who renamed it and wants it back is told that this is another one. */
static void
tell_renamed(esdm_session *session, const former *one)
{
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t time_ns = 0;
    esdm_error ignored;
    if (new_name == NULL &&
        esdm_container_renamed(session, one->name, now, &time_ns, &ignored) == ESDM_OK &&
        time_ns > one->time_ns)
        tool_error("note: the container that was called '%s' last is '%s' now (esdm-mv '%s' '%s' "
                   "gives it the name back); what comes back is the older one that was %s before",
                   one->name, now, now, one->name, one->removed ? "removed" : "replaced");
}

/* Whether the file that stood for a container is missing. */
static bool
is_without_file(esdm_session *session, const char *name)
{
    g_autofree char *file = NULL;
    return restore_file_put(session, name, true, &file) == RESTORE_FILE_PUT;
}

static tool_exit
restore(esdm_session *session, const former *one)
{
    const char *name = new_name != NULL ? tool_container(new_name) : one->name;
    tell_renamed(session, one);
    if (!undoes_what_is_meant(session, one))
        return TOOL_REFUSED;
    esdm_error err = {0};
    bool replace = false;
    /* Who may not write is told so, and not asked. */
    esdm_status status =
        dry_run ? ESDM_OK : esdm_former_restore(session, one->name, one->id, name, false, &err);
    if (dry_run ? stands(session, name) : status == ESDM_EEXIST) {
        g_autofree char *printable = tool_printable(name);
        g_autofree char *question = g_strdup_printf(
            "'%s' exists. Replace it by the former container %s, and keep it as a former one?",
            printable, one->id);
        replace = yes || dry_run || tool_confirm(question);
        if (!replace) {
            tool_error("'%s' exists; --yes replaces it (and keeps it as a former one), --as NAME "
                       "brings the other one back beside it%s",
                       name,
                       is_without_file(session, name) ? "; its file in the folder is missing: "
                                                        "--files puts that back, and nothing else"
                                                      : "");
            return TOOL_REFUSED;
        }
    }
    if (replace && !dry_run)
        status = esdm_former_restore(session, one->name, one->id, name, true, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autofree char *file = NULL;
    restore_file put = dry_run || new_name != NULL ? RESTORE_FILE_NONE
                                                   : restore_file_put(session, name, false, &file);
    tell(one, dry_run ? "would restore" : "restored", put == RESTORE_FILE_PUT ? file : NULL);
    return put == RESTORE_FILE_FAILED ? TOOL_FAILED : TOOL_OK;
}

/* Who wants back what was replaced earlier would get the two newest in turn. */
static void
tell_older(const GPtrArray *all, const char *name)
{
    guint older = 0;
    for (guint i = 0; i < all->len; i++)
        older += strcmp(((const former *) g_ptr_array_index(all, i))->name, name) == 0;
    if (older < 2)
        return;
    g_autofree char *printable = tool_printable(name);
    tool_error("note: this is the newest of %u former containers of that name: \"esdm-restore "
               "--list '%s'\" shows them, --id brings another one back",
               older, printable);
}

/* What an argument stands for: the newest of the name, the one with the id, or with --recursive the
 * newest of each name. */
static bool
is_wanted(const GPtrArray *all, guint i, const char *name, const char *id)
{
    const former *one = g_ptr_array_index(all, i);
    const former *next = i + 1 < all->len ? g_ptr_array_index(all, i + 1) : NULL;
    if (!recursive && strcmp(one->name, name) != 0)
        return false;
    if (list_only)
        return true;
    if (id != NULL)
        return strcmp(one->id, id) == 0;
    return next == NULL || strcmp(next->name, one->name) != 0;
}

/* Names below it that have former containers. */
static guint
count_below(esdm_session *session, const char *name)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_former);
    esdm_error ignored;
    if (esdm_former_list(session, name, note, all, &ignored) != ESDM_OK)
        return 0;
    guint count = 0;
    for (guint i = 0; i < all->len; i++) {
        const former *one = g_ptr_array_index(all, i);
        const former *before = i > 0 ? g_ptr_array_index(all, i - 1) : NULL;
        count += strcmp(one->name, name) != 0 &&
                 (before == NULL || strcmp(before->name, one->name) != 0);
    }
    return count;
}

/* Says that there is nothing to bring back, and what was perhaps meant. @param name NULL: all. */
static tool_exit
nothing_kept(esdm_session *session, const char *name)
{
    char hint[2 * ESDM_CONTAINER_NAME_MAX + 128] = "";
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error ignored;
    if (name != NULL && wanted_id == NULL &&
        esdm_container_renamed(session, name, now, NULL, &ignored) == ESDM_OK) {
        tool_error("'%s' was renamed, not removed: it is '%s' now; esdm-mv '%s' '%s' gives it the "
                   "name back",
                   name, now, now, name);
        return TOOL_NOT_FOUND;
    }
    g_autofree char *file = NULL;
    if (name != NULL && wanted_id == NULL && !list_only &&
        restore_file_put(session, name, true, &file) == RESTORE_FILE_PUT) {
        tool_error(
            "'%s' stands and replaced none that is kept; only its file '%s' is missing: "
            "esdm-restore --files '%s' puts that back (unless you moved it: then it is there)",
            name, file, name);
        return TOOL_NOT_FOUND;
    }
    guint below = name != NULL && !recursive ? count_below(session, name) : 0;
    esdm_former_suggest(session, name, hint, sizeof hint);
    if (below > 0) {
        tool_error("no former container '%s' is kept, but %u below it: esdm-restore --recursive "
                   "'%s' brings them back",
                   name, below, name);
        return TOOL_NOT_FOUND;
    }
    if (name != NULL && wanted_id == NULL && stands(session, name)) {
        tool_error("no former container '%s' is kept: the one of that name stands, and replaced "
                   "none that is kept. What a program changed in place is a snapshot: \"esdm-log "
                   "'%s'\" shows which are kept; esdm-ls --replaced tells which former containers "
                   "there are",
                   name, name);
        return TOOL_NOT_FOUND;
    }
    tool_error("no former container '%s'%s%s is kept; %s%sesdm-ls --replaced tells which there are",
               name != NULL ? name : "esdm://", wanted_id != NULL ? " with the id " : "",
               wanted_id != NULL ? wanted_id : "", hint, hint[0] != '\0' ? " " : "");
    return TOOL_NOT_FOUND;
}

/* ---- files alone ----------------------------------------------------------------------------- */

static guint moved; /* files that were moved, of all arguments */

/* A container that stands, whose file alone was removed. */
static tool_exit
put_file_alone(esdm_session *session, const char *name)
{
    g_autofree char *file = NULL;
    restore_file put = restore_file_put(session, name, dry_run, &file);
    g_autofree char *path = tool_printable(file != NULL ? file : "");
    g_autofree char *printable = tool_printable(name);
    if (put == RESTORE_FILE_MOVED && moved++ == 0)
        tool_error("the file of '%s' was moved, not removed: it is '%s' now, and none is put back "
                   "for it (further ones that were moved are not told)",
                   printable, path);
    if (put != RESTORE_FILE_PUT)
        return put == RESTORE_FILE_FAILED ? TOOL_FAILED : TOOL_NOT_FOUND;
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "file", tool_json_text(file));
        tool_json_append(told, object);
    } else {
        (void) printf("%s  '%s' of '%s'\n", dry_run ? "would put back" : "put back", path,
                      printable);
    }
    return TOOL_OK;
}

static bool
note_name(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

static bool
note_any(const esdm_container_info *info, void *user)
{
    (void) info;
    *(bool *) user = true;
    return false;
}

/* Who has removed a folder names its path, by which no file is found any more: containers of a
 * route without NAME are called so. @return false: none is. */
static bool
tell_path(esdm_session *session, const char *argument)
{
    g_autofree char *path = g_canonicalize_filename(argument, NULL);
    g_autofree char *above = g_path_get_dirname(path);
    g_autofree char *base = g_path_get_basename(path);
    char *real = realpath(above, NULL);
    g_autofree char *name = g_build_filename(real != NULL ? real : above, base, NULL);
    free(real);
    esdm_error ignored;
    bool one = stands(session, name + 1), below = false;
    if (g_str_has_prefix(argument, "esdm:") || name[1] == '\0')
        return false;
    if (!one &&
        (esdm_container_list(session, name + 1, note_any, &below, &ignored) != ESDM_OK || !below))
        return false;
    g_autofree char *printable = tool_printable(name + 1);
    tool_error("there is no container '%s', but 'esdm://%s'%s: esdm-restore%s --files 'esdm://%s'",
               argument, printable, one ? "" : " with some below it", one ? "" : " -r", printable);
    return true;
}

/* --files: the container, with --recursive all below it. */
static tool_exit
put_files(esdm_session *session, const char *argument)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    bool whole = recursive && (g_str_equal(argument, "esdm:") || g_str_equal(argument, "esdm://"));
    esdm_status status = whole ? ESDM_OK : tool_container_name(session, argument, name, &err);
    if (status == ESDM_OK && recursive)
        status = esdm_container_list(session, whole ? NULL : name, note_name, names, &err);
    if (status != ESDM_OK)
        return tell_path(session, argument) ? TOOL_NOT_FOUND : tool_fail(status, &err);
    if (!whole && stands(session, name))
        g_ptr_array_add(names, g_strdup(name));
    tool_exit result = TOOL_OK;
    guint put = 0, moved_before = moved;
    for (guint i = 0; i < names->len; i++) {
        tool_exit one = put_file_alone(session, g_ptr_array_index(names, i));
        put += one == TOOL_OK;
        result = one == TOOL_FAILED ? one : result;
    }
    if (names->len == 0 && tell_path(session, argument))
        return TOOL_NOT_FOUND;
    if (names->len == 0)
        return tool_absent(session, name);
    if (put == 0 && result == TOOL_OK) {
        if (moved == moved_before)
            tool_error("%s: no file is missing in a folder of this node in which one was made for "
                       "it (of NAME~2, and of what was renamed into another folder since, nobody "
                       "knows which file it was)",
                       argument);
        result = TOOL_NOT_FOUND;
    }
    return result;
}

/* Who brings back a folder would take what was made under these names since for what was removed.
 */
static void
tell_taken(const char *first, guint count)
{
    g_autofree char *name = tool_printable(first);
    tool_error("note: %u of what was removed %s not brought back, as another one has the name now: "
               "'%s'%s; \"esdm-restore --yes '%s'\" replaces that (and keeps it as a former one)",
               count, count == 1 ? "is" : "are", name, count == 1 ? "" : " and others", name);
}

static tool_exit
restore_argument(esdm_session *session, const char *argument)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_former);
    bool whole = recursive && (g_str_equal(argument, "esdm:") || g_str_equal(argument, "esdm://"));
    esdm_status status = whole ? ESDM_OK : tool_container_name(session, argument, name, &err);
    tool_former meant; /* a copied stub, or a name in time, says one of them */
    const char *id = wanted_id;
    if (status == ESDM_OK && !whole && tool_former_of(session, name, &meant)) {
        (void) g_strlcpy(name, meant.base, sizeof name);
        id = id == NULL ? meant.id : id;
    }
    if (status == ESDM_OK)
        status = esdm_former_list(session, whole ? NULL : name, note, all, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = TOOL_OK;
    guint found = 0;
    guint taken = 0;
    const char *first_taken = NULL;
    for (guint i = 0; i < all->len; i++) {
        const former *one = g_ptr_array_index(all, i);
        if (!is_wanted(all, i, name, id))
            continue;
        /* What was replaced has a living successor: with --recursive it stays. */
        if (recursive && !list_only && wanted_id == NULL && !yes && stands(session, one->name)) {
            if (one->removed && taken++ == 0)
                first_taken = one->name;
            continue;
        }
        found++;
        tool_exit step = TOOL_OK;
        if (list_only)
            tell(one, "", NULL);
        else
            step = restore(session, one);
        if (!list_only && id == NULL && !recursive && step == TOOL_OK)
            tell_older(all, name);
        result = result == TOOL_OK ? step : result;
    }
    if (taken > 0)
        tell_taken(first_taken, taken);
    if (found > 0)
        return result;
    if (taken > 0)
        return TOOL_NOT_FOUND;
    return nothing_kept(session, whole ? NULL : name);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2 && !list_only)
        return tool_usage("which containers?");
    if (new_name != NULL && (argc > 2 || recursive))
        return tool_usage("--as goes with one NAME");
    if (files_only && (list_only || wanted_id != NULL || new_name != NULL))
        return tool_usage("--files goes with no --list, --id or --as: it brings back files alone");
    if (files_only && argc < 2)
        return tool_usage("the files of which containers?");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(list_only || dry_run, &session);
    if (result != TOOL_OK)
        return result;
    told = json_array();
    if (argc < 2) { /* --list */
        recursive = TRUE;
        result = restore_argument(session, "esdm:");
    }
    for (int i = 1; i < argc; i++) {
        tool_exit one =
            files_only ? put_files(session, argv[i]) : restore_argument(session, argv[i]);
        result = result == TOOL_OK ? one : result;
    }
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "dry_run", json_boolean(dry_run));
        tool_json_set(root, list_only ? "replaced" : "restored", told);
        tool_json_print(root);
    } else {
        json_decref(told);
    }
    esdm_session_close(session);
    return tool_finish(result);
}
