/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>

#include "common.h"

static const tool_help help = {
    .name = "esdm-drain",
    .arguments = "[CONTAINER…]",
    .description =
        "Brings what lies on this node's own targets (\"accessibility\": \"local\") to targets\n"
        "that all nodes see, and frees the space. Until then other nodes cannot read it.\n"
        "Programs may go on reading and writing, no snapshot changes; what is interrupted\n"
        "is done by the next call.\n"
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
                "  esdm-drain --wait run7          at the end of a job, on each of its nodes\n"
                "  esdm-drain --node nid0042 run7\n",
    .see_also = "esdm-fsck, esdm-gc, esdm-stat",
};

static gboolean wait_for_writers, quiet;
static char *node, *age_text;

static const GOptionEntry entries[] = {
    {"wait", 'w', 0, G_OPTION_ARG_NONE, &wait_for_writers, "Wait for programs that are writing",
     NULL},
    {"node", 0, 0, G_OPTION_ARG_STRING, &node, "Name of the node", "NAME"},
    {"age", 'a', 0, G_OPTION_ARG_STRING, &age_text, "Keep packs that are younger", "AGE"},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Print problems alone", NULL},
    {0},
};

static void
print_result(const esdm_session *session, const esdm_drain_result *result, json_t *findings)
{
    g_autofree char *bytes = tool_bytes(result->bytes);
    g_autofree char *freed = tool_bytes(result->freed_bytes);
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "node", tool_json_text(esdm_session_node(session)));
        tool_json_set(root, "findings", json_incref(findings));
        tool_json_set(root, "containers", tool_json_u64(result->containers));
        tool_json_set(root, "fragments", tool_json_u64(result->fragments));
        tool_json_set(root, "bytes", tool_json_u64(result->bytes));
        tool_json_set(root, "failed", tool_json_u64(result->failed));
        tool_json_set(root, "elsewhere", tool_json_u64(result->elsewhere));
        tool_json_set(root, "packs", tool_json_u64(result->packs));
        tool_json_set(root, "freed_bytes", tool_json_u64(result->freed_bytes));
        tool_json_set(root, "packs_left", tool_json_u64(result->packs_left));
        tool_json_set(root, "young", tool_json_u64(result->young));
        tool_json_print(root);
        return;
    }
    if (!quiet)
        (void) printf("node %s: brought %" G_GUINT64_FORMAT " fragment%s (%s) to targets that all "
                      "nodes see; removed %" G_GUINT64_FORMAT " pack%s (%s), %" G_GUINT64_FORMAT
                      " left\n",
                      esdm_session_node(session), (guint64) result->fragments,
                      result->fragments == 1 ? "" : "s", bytes, (guint64) result->packs,
                      result->packs == 1 ? "" : "s", freed, (guint64) result->packs_left);
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
        .wait = wait_for_writers,
        .any_age = age_text != NULL,
        .age_s = age_s,
        .report = tool_watch_finding,
        .progress = tool_watch_progress,
        .user = &watch,
    };
    tool_watch_start(&watch, true, !quiet);
    esdm_status status = esdm_drain(session, &options, &result, &err);
    json_t *findings = tool_watch_end(&watch);
    print_result(session, &result, findings);
    json_decref(findings);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return result.failed > 0 ? TOOL_DAMAGED : TOOL_OK;
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
    if (age_text != NULL && !tool_age(age_text, &age_s))
        return tool_usage("--age: expected a number with s, m, h or d behind it, not '%s'",
                          age_text);
    if (node != NULL)
        (void) g_setenv("ESDM_NODE", node, TRUE);
    esdm_session *session = NULL;
    result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    result = drain(session, names, age_s);
    esdm_session_close(session);
    return tool_finish(result);
}
