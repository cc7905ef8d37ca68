/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-fsck: checks all that is stored, and mends it. */

#include <stdio.h>

#include "common/common.h"
#include "esdm-seal/seal.h"
#include "esdm/branch.h"
#include "esdm/upkeep.h"

static const tool_help help = {
    .name = "esdm-fsck",
    .arguments = "[CONTAINER…]",
    .description =
        "Checks what a site holds: the structure of every container at every snapshot\n"
        "that is kept, the attribute index, the index pages, and for every fragment that\n"
        "its pack exists, is long enough and has a sound head there. With --data every\n"
        "byte is read and compared with its checksum. Programs may go on using the site.\n"
        "\n"
        "A CONTAINER stands for itself and everything below it. Without one the whole\n"
        "site is checked, and packs that nothing refers to are counted: packs of\n"
        "programs that are writing at this moment, and what killed programs left behind,\n"
        "which esdm-gc removes.\n"
        "\n"
        "--repair mends what can be mended without losing anything; it never removes\n"
        "data. Each problem is told with its place and what to do about it.",
    .statuses = "  0  everything is sound\n"
                "  1  there are problems; with --repair all of them were repaired\n"
                "  2  the command line is wrong\n"
                "  3  there is no such container or site\n"
                "  4  there are problems that --repair could not repair\n"
                "  5  the check could not be completed; a message says why\n",
    .examples = "  esdm-fsck                      check the site, heads of fragments alone\n"
                "  esdm-fsck --data experiment    read every byte of experiment and below\n"
                "  esdm-fsck --repair --json\n",
    .see_also = "esdm-gc, esdm-mkfs --check, esdm-stat --fragments",
};

/* What the help says, for scripts. */
enum { FSCK_SOUND = 0, FSCK_PROBLEMS = 1, FSCK_UNREPAIRED = 4, FSCK_INCOMPLETE = 5 };

static gboolean data, repair, quiet;

static const GOptionEntry entries[] = {
    {"data", 'd', 0, G_OPTION_ARG_NONE, &data, "Read and verify every byte", NULL},
    {"repair", 'r', 0, G_OPTION_ARG_NONE, &repair, "Mend what can be mended", NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "No progress, and no summary when all is sound",
     NULL},
    {0},
};

static json_t *
json_of(const esdm_fsck_result *result, json_t *findings, esdm_status status, const esdm_error *err)
{
    json_t *root = json_object();
    tool_json_set(root, "findings", findings);
    tool_json_set(root, "containers", tool_json_u64(result->containers));
    tool_json_set(root, "pages", tool_json_u64(result->pages));
    tool_json_set(root, "fragments", tool_json_u64(result->fragments));
    tool_json_set(root, "packs", tool_json_u64(result->packs));
    tool_json_set(root, "bytes_read", tool_json_u64(result->bytes));
    tool_json_set(root, "problems", tool_json_u64(result->problems));
    tool_json_set(root, "repaired", tool_json_u64(result->repaired));
    tool_json_set(root, "orphans", tool_json_u64(result->orphans));
    tool_json_set(root, "orphan_bytes", tool_json_u64(result->orphan_bytes));
    tool_json_set(root, "unpublished", tool_json_u64(result->unpublished));
    tool_json_set(root, "complete", json_boolean(status == ESDM_OK));
    if (status != ESDM_OK)
        tool_json_set(root, "message", tool_json_text(err->message));
    return root;
}

static void
print_summary(const esdm_fsck_result *result, double seconds)
{
    g_autofree char *bytes = tool_bytes(result->bytes);
    if (quiet && result->problems == 0)
        return;
    (void) printf(
        "%" G_GUINT64_FORMAT " container%s, %" G_GUINT64_FORMAT " index pages, %" G_GUINT64_FORMAT
        " fragments in %" G_GUINT64_FORMAT " packs; %s read in %.1f s: ",
        (guint64) result->containers, result->containers == 1 ? "" : "s", (guint64) result->pages,
        (guint64) result->fragments, (guint64) result->packs, bytes, seconds);
    if (result->problems == 0)
        (void) printf("sound\n");
    else
        (void) printf("%" G_GUINT64_FORMAT " problem%s, %" G_GUINT64_FORMAT " repaired\n",
                      (guint64) result->problems, result->problems == 1 ? "" : "s",
                      (guint64) result->repaired);
}

/* A list of containers that is damaged is a problem which was told: the check goes on with those
 * that are listed. */
static esdm_status
unless_told(esdm_status status, const esdm_fsck_result *result)
{
    return status == ESDM_ECORRUPT && result->problems > 0 ? ESDM_OK : status;
}

/* What is looked at one by one when no containers are named. */
typedef struct listed {
    GPtrArray *names; /* of all, with --data */
    bool gathers;     /* whether there are branches that may have been made to be merged */
} listed;

static bool
note_name(const esdm_container_info *info, void *user)
{
    listed *all = user;
    if (data)
        g_ptr_array_add(all->names, g_strdup(info->name));
    all->gathers = all->gathers || strstr(info->name, "@branch:gather-") != NULL;
    return true;
}

/* ---- seals --------------------------------------------------------------------------------- */

static void
check_seal(esdm_session *session, const char *name, esdm_fsck_result *result, tool_watch *watch)
{
    esdm_error err = {0};
    esdm_notices notices = {.sealed = false};
    seal_text seal = {.snapshot = 0};
    if (esdm_container_notices(session, name, &notices, &err) != ESDM_OK || !notices.sealed) {
        esdm_notices_clear(&notices);
        return;
    }
    g_autofree char *why = seal_verify(session, name, &notices, NULL, &seal);
    if (why != NULL) {
        g_autofree char *what = g_strdup_printf("the seal is broken: %s", why);
        const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                      .status = ESDM_ECORRUPT,
                                      .container = name,
                                      .what = what,
                                      .remedy = "a copy of the container may be as it was"};
        tool_watch_finding(&finding, watch);
        result->problems++;
    }
    seal_text_clear(&seal);
    esdm_notices_clear(&notices);
}

/* What was sealed is still what it was, by signature and values. */
static void
check_seals(esdm_session *session, const GPtrArray *names, esdm_fsck_result *result,
            tool_watch *watch)
{
    for (guint i = 0; i < names->len; i++)
        check_seal(session, g_ptr_array_index(names, i), result, watch);
}

/* ---- what waits for nobody ------------------------------------------------------------------ */

static bool
note_gather(const char *name, void *user)
{
    const esdm_finding finding = {
        .kind = ESDM_FINDING_NOTE,
        .container = name,
        .what = "others wrote into this branch for a process that was ended before it merged it",
        .remedy = "esdm-merge brings what is there into the container; esdm-gc removes the branch "
                  "a day after the last commit to it, and the next esdm.gather() does at once"};
    tool_watch_finding(&finding, user);
    return true;
}

static esdm_status
tell_gathers(esdm_session *session, const GPtrArray *named, tool_watch *watch, esdm_error *err)
{
    esdm_status status =
        named->len > 0 ? ESDM_OK : esdm_gather_left(session, NULL, 0, note_gather, watch, err);
    for (guint i = 0; i < named->len && status == ESDM_OK; i++)
        status = esdm_gather_left(session, g_ptr_array_index(named, i), 0, note_gather, watch, err);
    return status;
}

/* Seals and branches, of all containers with one list of them. */
static esdm_status
look_further(esdm_session *session, GPtrArray *named, esdm_fsck_result *result, tool_watch *watch,
             esdm_error *err)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    listed list = {.names = named->len > 0 ? named : all, .gathers = named->len > 0};
    esdm_status status =
        named->len > 0 ? ESDM_OK : esdm_container_list(session, NULL, note_name, &list, err);
    status = unless_told(status, result);
    if (status == ESDM_OK && data)
        check_seals(session, list.names, result, watch);
    if (status == ESDM_OK && list.gathers)
        status = unless_told(tell_gathers(session, named, watch, err), result);
    return status;
}

static int
check(esdm_session *session, GPtrArray *names)
{
    tool_watch watch;
    esdm_fsck_result result = {0};
    esdm_error err = {0};
    const esdm_fsck_options options = {
        .containers = names->len > 0 ? (const char *const *) names->pdata : NULL,
        .ncontainers = names->len,
        .data = data,
        .repair = repair,
        .report = tool_watch_finding,
        .progress = tool_watch_progress,
        .user = &watch,
    };
    tool_watch_start(&watch, !quiet, !quiet);
    esdm_status status = esdm_fsck(session, &options, &result, &err);
    if (status == ESDM_OK)
        status = look_further(session, names, &result, &watch, &err);
    json_t *findings = tool_watch_end(&watch);
    if (tool.json)
        tool_json_print(json_of(&result, json_incref(findings), status, &err));
    else if (status == ESDM_OK)
        print_summary(&result, tool_progress_seconds(&watch.progress));
    json_decref(findings);
    if (status != ESDM_OK)
        return tool_fail(status, &err) == TOOL_NOT_FOUND ? (int) TOOL_NOT_FOUND : FSCK_INCOMPLETE;
    if (result.problems == 0)
        return FSCK_SOUND;
    return repair && result.repaired < result.problems ? FSCK_UNREPAIRED : FSCK_PROBLEMS;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    tool_exit failed = TOOL_OK;
    g_autoptr(GPtrArray) names = tool_names(argc, argv, &failed);
    if (names == NULL)
        return failed;
    if (tool_no_site())
        return TOOL_OK;
    esdm_session *session = NULL;
    failed = tool_session(false, &session); /* whether writers live is asked of a writable store */
    if (failed != TOOL_OK)
        return failed == TOOL_NOT_FOUND ? (int) failed : FSCK_INCOMPLETE;
    int result = check(session, names);
    esdm_session_close(session);
    return tool_finish(TOOL_OK) == TOOL_OK ? result : FSCK_INCOMPLETE;
}
