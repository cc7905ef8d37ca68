/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/scratch.h"
#include "esdm-gc/esdm-gc.h"

static const tool_help help = {
    .name = "esdm-gc",
    .arguments = "",
    .description =
        "Removes what nobody can reach any more: packs that killed programs left behind,\n"
        "packs of snapshots that are not kept, removed containers that a reader still had\n"
        "open, branches 'gather-…' whose process was ended before it had merged them (these are\n"
        "kept for a while, as by esdm-rm), and former containers (esdm-ls --replaced) that are "
        "past their time or more\n"
        "than the site keeps, the oldest first; with --replaced-now all of these. It never removes "
        "what a snapshot refers to, what a program is writing\n"
        "at this moment, or what was written to within the age limit, one day unless\n"
        "--age says otherwise: 90s, 30m, 12h, 7d.\n"
        "\n"
        "Removing a stub file leaves its container. With --stubs FOLDER, which may be given\n"
        "several times, containers that no stub in any of the FOLDERs names any more are\n"
        "removed, too, when nothing was committed to them within the age limit: those whose\n"
        "stubs were made in or below FOLDER, whatever route gave them their names, and those\n"
        "that are called like it. Name all folders to which stubs may have been moved, and do\n"
        "not use this for containers that are known by their esdm:// names alone, of such a\n"
        "NAME: FOLDER=NAME is as in ESDM_NC_ROUTE, which is asked what a FOLDER without NAME\n"
        "is called. Needed is it only where containers do not tell where their stubs were\n"
        "made, which is said then. Kept and told are containers whose stubs were made in a\n"
        "FOLDER of another node (a /scratch that each node has for itself) or in folders that\n"
        "are not there, those that were given another name since, and those that esdm-restore\n"
        "has brought back.\n"
        "In the FOLDERs, stubs go whose containers were on this site and are gone for good:\n"
        "removed, and past the time for which esdm-restore brings them back. Stubs of which\n"
        "that is not known are left, and counted; left and told are those that are younger\n"
        "than the last commit that the catalogue knows.\n"
        "\n"
        "After esdm-mkfs --restore packs stay that were written shortly before the backup, or\n"
        "between it and the restoration, and that the catalogue does not know: they may hold what "
        "it\n"
        "lacks. When you know that nothing is missing, --restoration-complete ends that for good, "
        "and\n"
        "such packs are removed like others, now and later.\n"
        "\n"
        "It tells what it would remove, and asks; without a terminal it refuses unless\n"
        "--yes is given. Programs may go on using the site.",
    .examples = "  esdm-gc --dry-run        tell what would be removed\n"
                "  esdm-gc --yes            as from cron\n"
                "  esdm-gc --age 12h\n"
                "  esdm-gc --replaced-now --yes   the disk is full\n"
                "  esdm-gc --restoration-complete\n"
                "  esdm-gc --stubs /scratch/run --stubs /archive --dry-run\n",
    .see_also = "esdm-fsck, esdm-rm, esdm-restore",
};

static gboolean dry_run, yes, verbose, replaced_now, restoration_complete;
static char *age_text;
static char **stub_folders;
static gc_found found; /* with --stubs */

static const GOptionEntry entries[] = {
    {"age", 'a', 0, G_OPTION_ARG_STRING, &age_text, "Keep packs that are younger", "AGE"},
    {"stubs", 's', 0, G_OPTION_ARG_FILENAME_ARRAY, &stub_folders,
     "Remove containers of FOLDER whose stubs are gone, and the other way round", "FOLDER"},
    {"replaced-now", 'R', 0, G_OPTION_ARG_NONE, &replaced_now,
     "Free all that was replaced or removed and is still kept", NULL},
    {"restoration-complete", 'C', 0, G_OPTION_ARG_NONE, &restoration_complete,
     "Keep no packs any more for what a restored catalogue may lack", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be removed, remove nothing",
     NULL},
    {"yes", 'y', 0, G_OPTION_ARG_NONE, &yes, "Remove without asking", NULL},
    {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Print the name of each pack", NULL},
    {0},
};

static tool_watch watch;
static guint unfinished; /* containers that esdm-cp and esdm-ref have left so */
static guint scratch;    /* containers that esdm-recipe has left when it was ended */
static guint gathers;    /* branches whose gathering process was ended */

static char *
describe(const esdm_gc_result *result)
{
    g_autofree char *bytes = tool_bytes(result->bytes);
    g_autofree char *without =
        found.names->len == 0 ? g_strdup("")
                              : g_strdup_printf("%u container%s without stub, ", found.names->len,
                                                found.names->len == 1 ? "" : "s");
    g_autofree char *stubs =
        found.stubs->len == 0 ? g_strdup("")
                              : g_strdup_printf("%u stub%s without container, ", found.stubs->len,
                                                found.stubs->len == 1 ? "" : "s");
    g_autofree char *shapes_bytes = tool_bytes(result->shapes_bytes);
    g_autofree char *shapes = result->shapes == 0
                                  ? g_strdup("")
                                  : g_strdup_printf("%" G_GUINT64_FORMAT " second shape%s (%s), ",
                                                    (guint64) result->shapes,
                                                    result->shapes == 1 ? "" : "s", shapes_bytes);
    g_autofree char *former_bytes = tool_bytes(result->former_bytes);
    g_autofree char *former =
        result->former == 0 ? g_strdup("")
                            : g_strdup_printf("%" G_GUINT64_FORMAT " former container%s (%s), ",
                                              (guint64) result->former,
                                              result->former == 1 ? "" : "s", former_bytes);
    return g_strdup_printf(
        "%s%s%s%s%" G_GUINT64_FORMAT " pack%s (%s) and %" G_GUINT64_FORMAT " removed container%s",
        without, stubs, shapes, former, (guint64) result->packs, result->packs == 1 ? "" : "s",
        bytes, (guint64) result->containers, result->containers == 1 ? "" : "s");
}

/* TOOL_OK: go on. */
static tool_exit
ask(const esdm_gc_result *result)
{
    g_autofree char *what = describe(result);
    g_autofree char *question = g_strdup_printf("Remove %s for good?", what);
    if (!tool_can_ask()) {
        tool_error("%s could be removed; say --yes to do so", what);
        return TOOL_REFUSED;
    }
    if (tool_confirm(question))
        return TOOL_OK;
    tool_error("nothing was removed");
    return TOOL_REFUSED;
}

/* What is too young to go. */
static void
print_left(guint64 count, const char *what, const char *without)
{
    if (count > 0)
        (void) printf("%" G_GUINT64_FORMAT
                      " %s%s %s left, written to within %s: --age 0 removes the youngest, too\n",
                      count, what, count == 1 ? "" : "s", without,
                      age_text != NULL ? age_text : "one day");
}

static void
print_result(const esdm_gc_result *result, bool removed)
{
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "dry_run", json_boolean(!removed));
        tool_json_set(root, "findings", json_incref(watch.findings));
        json_t *names = json_array();
        for (guint i = 0; i < found.names->len; i++)
            tool_json_append(names, tool_json_text(g_ptr_array_index(found.names, i)));
        tool_json_set(root, "without_stub", names);
        tool_json_set(root, "without_stub_young", tool_json_u64(found.young));
        json_t *stubs = json_array();
        for (guint i = 0; i < found.stubs->len; i++) {
            const gc_stub *stub = g_ptr_array_index(found.stubs, i);
            tool_json_append(stubs, tool_json_text(stub->path));
        }
        tool_json_set(root, "stubs", stubs);
        tool_json_set(root, "stubs_young", tool_json_u64(found.stubs_young));
        tool_json_set(root, "stubs_left", tool_json_u64(found.stubs_left));
        tool_json_set(root, "scratch", tool_json_u64(scratch));
        tool_json_set(root, "unfinished", tool_json_u64(unfinished));
        tool_json_set(root, "gathers", tool_json_u64(gathers));
        tool_json_set(root, "packs", tool_json_u64(result->packs));
        tool_json_set(root, "bytes", tool_json_u64(result->bytes));
        tool_json_set(root, "containers", tool_json_u64(result->containers));
        tool_json_set(root, "former", tool_json_u64(result->former));
        tool_json_set(root, "former_bytes", tool_json_u64(result->former_bytes));
        tool_json_set(root, "shapes", tool_json_u64(result->shapes));
        tool_json_set(root, "shapes_bytes", tool_json_u64(result->shapes_bytes));
        tool_json_set(root, "young", tool_json_u64(result->young));
        tool_json_set(root, "living", tool_json_u64(result->living));
        tool_json_set(root, "failed", tool_json_u64(result->failed));
        tool_json_print(root);
        return;
    }
    g_autofree char *what = describe(result);
    (void) printf("%s%s; %" G_GUINT64_FORMAT " younger pack%s left, %" G_GUINT64_FORMAT
                  " of living writers\n",
                  removed ? "removed " : "would remove ", what, (guint64) result->young,
                  result->young == 1 ? "" : "s", (guint64) result->living);
    print_left(found.young, "container", "without stub");
    print_left(found.stubs_young, "stub", "without container");
    if (found.stubs_left > 0)
        (void) printf("%" G_GUINT64_FORMAT
                      " stub%s left of containers that this site does not have: "
                      "of programs that write or were ended before they had committed, of other "
                      "sites, or of earlier versions\n",
                      found.stubs_left, found.stubs_left == 1 ? "" : "s");
}

static tool_exit
remove_scratch(esdm_session *session, uint64_t age_s)
{
    esdm_error err = {0};
    esdm_status status = tool_scratch_sweep(session, !dry_run, &scratch, &err);
    if (status == ESDM_OK)
        status = tool_unfinished_sweep(session, age_s, !dry_run, &unfinished, &err);
    guint left = 0;
    if (status == ESDM_OK)
        status = tool_left_sweep(session, age_s, !dry_run, &left, &err);
    unfinished += left;
    if (status == ESDM_OK)
        status = tool_gathers_sweep(session, age_s, !dry_run, &gathers, &err);
    if (status != ESDM_OK) {
        esdm_error why = err;
        (void) snprintf(err.message, sizeof err.message, "nothing is removed: %.400s", why.message);
        return tool_fail(status, &err);
    }
    if (scratch > 0 && !tool.json)
        (void) printf("%s %u container%s of runs of esdm-recipe that were ended\n",
                      dry_run ? "would remove" : "removed", scratch, scratch == 1 ? "" : "s");
    if (unfinished > 0 && !tool.json)
        (void) printf("%s %u container%s that %s not finished when the program was ended\n",
                      dry_run ? "would remove" : "removed", unfinished, unfinished == 1 ? "" : "s",
                      unfinished == 1 ? "was" : "were");
    if (gathers > 0 && !tool.json)
        (void) printf("%s %u branch%s into which others wrote for a process that was ended\n",
                      dry_run ? "would remove" : "removed", gathers, gathers == 1 ? "" : "es");
    return TOOL_OK;
}

/* A stub that was copied or moved elsewhere keeps nothing. */
static void
tell_where_looked(void)
{
    tool_error(
        "stubs were looked for in the folders of --stubs and of ESDM_NC_ROUTE alone: a copy "
        "elsewhere would lose its container (name its folder with --stubs, too; esdm-restore "
        "brings back what was removed while it is kept)");
}

/* Tells the names, and removes the containers unless this is a dry run. */
static tool_exit
remove_stubless(esdm_session *session, bool remove)
{
    for (guint i = 0; i < found.names->len; i++) {
        const char *name = g_ptr_array_index(found.names, i);
        esdm_error err = {0};
        esdm_status status = remove ? esdm_container_remove(session, name, &err) : ESDM_OK;
        if (status != ESDM_OK && status != ESDM_ENOENT)
            return tool_fail(status, &err);
        g_autofree char *printable = tool_printable(name);
        if (!tool.json)
            (void) printf("%s container '%s', which no stub names\n",
                          remove ? "removed" : "would remove", printable);
    }
    return TOOL_OK;
}

/* The same of stubs. Those that cannot be removed are told, and left out of what was found. */
static tool_exit
remove_stubs(bool remove)
{
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < found.stubs->len; i++) {
        const gc_stub *stub = g_ptr_array_index(found.stubs, i);
        g_autofree char *path = tool_printable(stub->path);
        g_autofree char *container = tool_printable(stub->container);
        int why = remove ? gc_remove_stub(stub) : 0;
        if (why == 0 && !tool.json)
            (void) printf("%s stub '%s', whose container '%s' is gone\n",
                          remove ? "removed" : "would remove", path, container);
        if (why == 0)
            continue;
        if (why != ESTALE) { /* else somebody uses it again */
            tool_error("cannot remove the stub '%s': %s", path, g_strerror(why));
            result = TOOL_FAILED;
        }
        g_ptr_array_remove_index(found.stubs, i--);
    }
    return result;
}

/* What would be removed. *ret_go_on: somebody agreed, or there is nothing to ask about. */
static tool_exit
rehearse(esdm_session *session, esdm_gc_options options, bool *ret_go_on)
{
    esdm_gc_result result = {0};
    esdm_error err = {0};
    options.dry_run = true;
    options.report = dry_run ? tool_watch_finding : NULL;
    *ret_go_on = false;
    esdm_status status = esdm_gc(session, &options, &result, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (found.names->len > 0)
        tell_where_looked();
    (void) remove_stubless(session, false);
    (void) remove_stubs(false);
    if (dry_run)
        print_result(&result, false);
    else if (found.names->len + found.stubs->len + result.former + result.packs +
                 result.containers >
             0)
        return (*ret_go_on = ask(&result) == TOOL_OK) ? TOOL_OK : TOOL_REFUSED;
    *ret_go_on = !dry_run;
    return TOOL_OK;
}

static tool_exit
collect(esdm_session *session, esdm_gc_options *options)
{
    esdm_gc_result result = {0};
    esdm_error err = {0};
    bool go_on = yes && !dry_run;
    if (!go_on) {
        tool_exit rehearsed = rehearse(session, *options, &go_on);
        if (!go_on)
            return rehearsed;
    } else if (found.names->len > 0) { /* nothing goes where esdm_gc() would refuse */
        esdm_gc_options rehearsal = *options;
        rehearsal.dry_run = true;
        esdm_status refused = esdm_gc(session, &rehearsal, &result, &err);
        if (refused != ESDM_OK)
            return tool_fail(refused, &err);
    }
    if (yes && found.names->len > 0)
        tell_where_looked();
    tool_exit removed = remove_stubless(session, true);
    if (removed != TOOL_OK)
        return removed;
    removed = remove_stubs(true);
    options->report = tool_watch_finding;
    esdm_status status = esdm_gc(session, options, &result, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    print_result(&result, true);
    return result.failed > 0 ? TOOL_FAILED : removed;
}

/* --restoration-complete. TOOL_OK: go on, also when there was nothing to end. */
static tool_exit
end_restoration(esdm_session *session)
{
    esdm_restoration restoration = {0};
    esdm_error err = {0};
    esdm_status status = esdm_restoration_end(session, false, &restoration, &err);
    if (status == ESDM_ENOENT) {
        tool_error("%s", err.message);
        return TOOL_OK;
    }
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autofree char *restored = tool_time(restoration.restored_ns);
    g_autofree char *from = tool_time(restoration.from_ns);
    g_autofree char *what = g_strdup_printf(
        "the catalogue was brought back at %s; packs that were written %s%s%s before that and that "
        "it "
        "does not know",
        restored, restoration.from_ns > 0 ? "from " : "at any time",
        restoration.from_ns > 0 ? from : "", restoration.from_ns > 0 ? " on and" : "");
    if (dry_run) {
        if (!tool.json)
            (void) printf("%s would not be kept any more; they count as kept below\n", what);
        return TOOL_OK;
    }
    if (!yes && !tool_can_ask()) {
        tool_error("%s are kept; say --yes to keep them no longer", what);
        return TOOL_REFUSED;
    }
    g_autofree char *question = g_strdup_printf("%s are kept. Keep them no longer?", what);
    if (!yes && !tool_confirm(question)) {
        tool_error("nothing was changed");
        return TOOL_REFUSED;
    }
    status = esdm_restoration_end(session, true, NULL, &err);
    return status == ESDM_OK || status == ESDM_ENOENT ? TOOL_OK : tool_fail(status, &err);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc > 1)
        return tool_usage("esdm-gc looks at the whole site; to remove containers: esdm-rm");
    esdm_gc_options options = {.any_age = age_text != NULL, .replaced = replaced_now};
    if (age_text != NULL && !tool_age(age_text, &options.age_s))
        return tool_usage("--age: expected a number with s, m, h or d behind it, not '%s'",
                          age_text);
    if (tool_no_site())
        return TOOL_OK;
    esdm_session *session = NULL;
    tool_exit result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    tool_watch_start(&watch, verbose, false);
    options.user = &watch;
    uint64_t age_s = age_text != NULL ? options.age_s : ESDM_GC_AGE_S;
    gc_found_init(&found);
    if (stub_folders != NULL)
        result = gc_find_stubless(session, stub_folders, age_s, &found);
    if (result == TOOL_OK && restoration_complete)
        result = end_restoration(session);
    if (result == TOOL_OK)
        result = remove_scratch(session, age_s);
    if (result == TOOL_OK)
        result = collect(session, &options);
    gc_found_clear(&found);
    json_decref(tool_watch_end(&watch));
    esdm_session_close(session);
    return tool_finish(result);
}
