/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-drain: moves what lies on node-local, retiring or fuller targets. */

#include <stdio.h>

#include "common/common.h"

static const tool_help help = {
    .name = "esdm-drain",
    .arguments = "[CONTAINER…]",
    .description =
        "Brings what lies on this node's own targets (\"accessibility\": \"local\") to targets\n"
        "that all nodes see, and frees the space. Until then other nodes cannot read it.\n"
        "With --from it empties targets of the site, whichever node sees them, and stores a\n"
        "backup of the catalogue on the others: the only journal or backup may lie there.\n"
        "With --rebalance it brings packs of fuller targets to emptier ones, until all are\n"
        "about equally full. Programs may go on reading and writing, no snapshot changes;\n"
        "what is interrupted is done by the next call.\n"
        "\n"
        "A disk is retired like this:\n"
        "  1. in the site's configuration its target gets \"retiring\": true: programs that\n"
        "     start from now on write elsewhere\n"
        "  2. esdm-drain --from TARGET --dry-run tells how much there is to bring elsewhere\n"
        "  3. esdm-drain --from TARGET --wait waits for programs that began before step 1\n"
        "  4. when it says that nothing is left, the target goes out of the configuration;\n"
        "     esdm-fsck then finds nothing that is missing\n"
        "After a new target came into the configuration (and esdm-mkfs made it), new data go\n"
        "there by themselves; --rebalance brings some of the old ones.\n"
        "\n"
        "A CONTAINER stands for itself and everything below it; without one all are drained.\n"
        "What programs have not committed yet stays. With --wait it goes on until they have\n"
        "closed their containers and nothing is left here, as at the end of a job.\n"
        "\n"
        "With metadata in PostgreSQL a program whose connection was lost seems to have ended.\n"
        "What nothing refers to is freed at once if this call has moved it, else when nothing\n"
        "was written to it for one day; --age states another time: 90s, 30m, 12h, 7d.\n"
        "\n"
        "A node is known by the name of its host, or by the environment variable ESDM_NODE;\n"
        "--node states another one, for a node whose targets are mounted here.",
    .examples = "  esdm-drain\n"
                "  esdm-drain --from disk2 --dry-run    how much is there?\n"
                "  esdm-drain --from disk2 --wait       empties it\n"
                "  esdm-drain --rebalance               after a target was added\n"
                "  esdm-drain --wait run7          at the end of a job, on each of its nodes\n"
                "  esdm-drain --node nid0042 run7\n",
    .see_also = "esdm-fsck, esdm-gc, esdm-stat",
};

static gboolean wait_for_writers, quiet, rebalance, dry_run;
static char *node, *age_text;
static char **from;

static const GOptionEntry entries[] = {
    {"from", 'f', 0, G_OPTION_ARG_STRING_ARRAY, &from,
     "Empty this target of the site; several are possible", "TARGET"},
    {"rebalance", 'r', 0, G_OPTION_ARG_NONE, &rebalance, "Make targets equally full", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be brought elsewhere", NULL},
    {"wait", 'w', 0, G_OPTION_ARG_NONE, &wait_for_writers, "Wait for programs that are writing",
     NULL},
    {"node", 0, 0, G_OPTION_ARG_STRING, &node, "Name of the node", "NAME"},
    {"age", 'a', 0, G_OPTION_ARG_STRING, &age_text, "Keep packs that are younger", "AGE"},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Print problems alone", NULL},
    {0},
};

static json_t *
result_json(const esdm_session *session, const esdm_drain_result *result, json_t *findings)
{
    json_t *root = json_object();
    json_t *targets = json_array();
    for (char **target = from; target != NULL && *target != NULL; target++)
        tool_json_append(targets, tool_json_text(*target));
    tool_json_set(root, "node", tool_json_text(esdm_session_node(session)));
    tool_json_set(root, "from", targets);
    tool_json_set(root, "rebalance", json_boolean(rebalance));
    tool_json_set(root, "dry_run", json_boolean(dry_run));
    tool_json_set(root, "findings", json_incref(findings));
    tool_json_set(root, "containers", tool_json_u64(result->containers));
    tool_json_set(root, "fragments", tool_json_u64(result->fragments));
    tool_json_set(root, "bytes", tool_json_u64(result->bytes));
    tool_json_set(root, "failed", tool_json_u64(result->failed));
    tool_json_set(root, "elsewhere", tool_json_u64(result->elsewhere));
    tool_json_set(root, "stuck", tool_json_u64(result->stuck));
    tool_json_set(root, "fewer_copies", tool_json_u64(result->fewer_copies));
    tool_json_set(root, "packs", tool_json_u64(result->packs));
    tool_json_set(root, "freed_bytes", tool_json_u64(result->freed_bytes));
    tool_json_set(root, "packs_left", tool_json_u64(result->packs_left));
    tool_json_set(root, "young", tool_json_u64(result->young));
    return root;
}

/* "brought 12 fragments (3 MiB) to other targets" */
static char *
moved_text(const esdm_session *session, const esdm_drain_result *result)
{
    g_autofree char *bytes = tool_bytes(result->bytes);
    g_autofree char *names = from != NULL ? g_strjoinv(", ", from) : NULL;
    g_autofree char *source = names != NULL ? tool_printable(names) : NULL;
    const char *verb = dry_run ? "would bring" : "brought";
    if (rebalance)
        return g_strdup_printf("%s %" G_GUINT64_FORMAT " fragment%s (%s) to emptier targets", verb,
                               (guint64) result->fragments, result->fragments == 1 ? "" : "s",
                               bytes);
    if (source != NULL)
        return g_strdup_printf("%s: %s %" G_GUINT64_FORMAT " fragment%s (%s) to other targets",
                               source, verb, (guint64) result->fragments,
                               result->fragments == 1 ? "" : "s", bytes);
    return g_strdup_printf("node %s: %s %" G_GUINT64_FORMAT
                           " fragment%s (%s) to targets that all nodes see",
                           esdm_session_node(session), verb, (guint64) result->fragments,
                           result->fragments == 1 ? "" : "s", bytes);
}

/* What the admin of a target that is to retire does next. */
static void
print_next(const esdm_drain_result *result, bool all)
{
    if (from == NULL || dry_run || !all)
        return;
    if (result->packs_left > 0)
        (void) printf("not empty yet: %s\n",
                      result->failed > 0  ? "see the problems above"
                      : result->stuck > 0 ? "change the policies, see above"
                      : result->young > 0 ? "--age 0 removes what nothing refers to"
                                          : "programs are writing there; --wait waits for them");
    else if (result->failed == 0 && result->stuck == 0)
        (void) printf("nothing that is needed is left there: it can go out of the site's "
                      "configuration (esdm-gc removes what killed programs left behind)\n");
}

static void
print_result(const esdm_session *session, const esdm_drain_result *result, bool all,
             json_t *findings)
{
    if (tool.json) {
        tool_json_print(result_json(session, result, findings));
        return;
    }
    if (quiet)
        return;
    g_autofree char *moved = moved_text(session, result);
    g_autofree char *freed = tool_bytes(result->freed_bytes);
    (void) printf("%s", moved);
    if (!dry_run)
        (void) printf("; removed %" G_GUINT64_FORMAT " pack%s (%s), %" G_GUINT64_FORMAT " left",
                      (guint64) result->packs, result->packs == 1 ? "" : "s", freed,
                      (guint64) result->packs_left);
    (void) printf("\n");
    print_next(result, all);
}

static tool_exit
drain(esdm_session *session, GPtrArray *names, uint64_t age_s)
{
    tool_watch watch;
    esdm_drain_result result = {0};
    esdm_error err = {0};
    const esdm_drain_options options = {
        .containers = names->len > 0 ? (const char *const *) names->pdata : NULL,
        .ncontainers = names->len,
        .from = (const char *const *) from,
        .nfrom = from != NULL ? g_strv_length(from) : 0,
        .rebalance = rebalance,
        .dry_run = dry_run,
        .wait = wait_for_writers,
        .any_age = age_text != NULL,
        .age_s = age_s,
        .report = tool_watch_finding,
        .progress = tool_watch_progress,
        .user = &watch,
    };
    tool_watch_start(&watch, !quiet, !quiet);
    esdm_status status = esdm_drain(session, &options, &result, &err);
    json_t *findings = tool_watch_end(&watch);
    print_result(session, &result, names->len == 0 && status == ESDM_OK, findings);
    json_decref(findings);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return result.failed > 0                ? TOOL_DAMAGED
           : result.stuck > 0 && !rebalance ? TOOL_FAILED
                                            : TOOL_OK;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    tool_exit result = TOOL_OK;
    g_autoptr(GPtrArray) names = tool_names(argc, argv, &result);
    if (names == NULL)
        return result;
    uint64_t age_s = 0;
    if (from != NULL && rebalance)
        return tool_usage("--from and --rebalance exclude each other");
    if (rebalance && wait_for_writers)
        return tool_usage("--rebalance leaves what programs are writing: it does not --wait");
    if (age_text != NULL && !tool_age(age_text, &age_s))
        return tool_usage("--age: expected a number with s, m, h or d behind it, not '%s'",
                          age_text);
    if (node != NULL)
        (void) g_setenv("ESDM_NODE", node, TRUE);
    if (tool_no_site())
        return TOOL_OK;
    esdm_session *session = NULL;
    result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    result = drain(session, names, age_s);
    esdm_session_close(session);
    return tool_finish(result);
}
