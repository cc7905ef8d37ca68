/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-replay: does again what a recorded program did with containers, with other values. */

#include "esdm-replay/esdm-replay.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const tool_help help = {
    .name = "esdm-replay",
    .arguments = "RECORDS…",
    .description =
        "Does again what a program did with containers: makes and opens as many, defines the\n"
        "same dimensions and variables, writes and reads the same parts of them and commits,\n"
        "in the same order; with values that look like those of models, or those of a\n"
        "container (--data). So storage, a site or a configuration can be measured, or\n"
        "compared with another one, without the program and its input.\n"
        "\n"
        "RECORDS are traces of the program: files of JSON Lines of \"monitor\", as\n"
        "ESDM_MONITOR=trace:run.jsonl makes them, or trace:runs.sqlite (then #latest or #JOB\n"
        "behind the name takes one run), or folders of esdm-run --records. These also\n"
        "hold what the program did with plain NetCDF files: the same calls on containers tell\n"
        "what it would gain. Variables of such files that are never read or written are not\n"
        "known, and names of dimensions are not.\n"
        "Each recorded process becomes one, each of its threads as well; ranks that shared a\n"
        "container do it again, without MPI: name the records of all. What the program\n"
        "found there is made before the clock runs, as far as it is read. All containers of\n"
        "the replay have names esdm-replay.…/NUMBER and are removed in the end, also when it\n"
        "is interrupted; no other name is written to.\n"
        "\n"
        "Calls follow each other without the pauses between them; --think-time keeps these.\n"
        "A process that opened a container after another one had committed it waits for\n"
        "that, too. Not replayed: attributes, calls that failed, and variables of\n"
        "user-defined types. Files are in memory after they were written: reads may be faster\n"
        "than they were in the program.",
    .statuses = "  0  done\n"
                "  1  the records are damaged, or a call failed\n"
                "  2  usage\n"
                "  3  the records are not there, or hold nothing that could be replayed\n"
                "  4  refused: it would write more than --limit\n",
    .examples = "  ESDM_MONITOR=trace:run.jsonl esdm-run ./model\n"
                "  esdm-replay --compare run.jsonl\n"
                "  esdm-replay --target tape run.jsonl\n"
                "  esdm-replay --config other-site.json --think-time run.jsonl\n"
                "  esdm-run --records day/ cdo timmean esdm://in.nc esdm://out.nc\n"
                "  esdm-replay --json --data in.nc day/\n",
    .see_also = "esdm-run, esdm-tune, esdm-explain",
};

static char *data, *limit_text, *target;
static gboolean compare, think_time, keep;

static const GOptionEntry entries[] = {
    {"compare", 'c', 0, G_OPTION_ARG_NONE, &compare, "Also tell the recorded times", NULL},
    {"think-time", 't', 0, G_OPTION_ARG_NONE, &think_time, "Wait between calls as the program did",
     NULL},
    {"data", 'd', 0, G_OPTION_ARG_STRING, &data,
     "Take values of variables of the same names from there", "CONTAINER"},
    {"target", 'T', 0, G_OPTION_ARG_STRING, &target, "Store all on this target of the site",
     "NAME"},
    {"limit", 'l', 0, G_OPTION_ARG_STRING, &limit_text,
     "Write no more than that, inputs included (64G)", "BYTES"},
    {"keep", 'k', 0, G_OPTION_ARG_NONE, &keep, "Leave the containers of the replay", NULL},
    {0},
};

static tool_exit
read_limit(double *ret_bytes)
{
    char *end = NULL;
    *ret_bytes = 0x1p36;
    if (limit_text == NULL)
        return TOOL_OK;
    *ret_bytes = g_ascii_strtod(limit_text, &end);
    const char *unit = *end != '\0' ? strchr("KMGT", *end) : NULL;
    if (unit != NULL)
        *ret_bytes *= (double) (UINT64_C(1) << (10 * (unit - "KMGT" + 1)));
    if (end == limit_text || (*end != '\0' && (unit == NULL || end[1] != '\0')) ||
        !(*ret_bytes > 0))
        return tool_usage("--limit: expected bytes such as 200G, not '%s'", limit_text);
    return TOOL_OK;
}

/* Also what a damaged record tells ends here. */
static tool_exit
check_bytes(const replay_load *load, double limit)
{
    double bytes = (double) load->written_bytes + (double) load->input_bytes;
    double memory = (double) sysconf(_SC_PHYS_PAGES) * (double) sysconf(_SC_PAGESIZE);
    guint64 largest = 0;
    for (guint k = 0; k < load->processes->len; k++) {
        const replay_process *p = load->processes->pdata[k];
        for (guint i = 0; i < p->operations->len; i++) {
            const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
            if (o->space != NULL)
                largest =
                    MAX(largest, esdm_dataspace_elements(o->space) * esdm_type_size(o->memory));
        }
    }
    if (bytes > limit) {
        g_autofree char *inputs = tool_bytes(load->input_bytes);
        g_autofree char *written = tool_bytes(load->written_bytes);
        tool_error("the replay would write %s, and %s of inputs before: --limit allows more",
                   written, inputs);
        return TOOL_REFUSED;
    }
    if ((double) largest > memory / 2) {
        g_autofree char *text = tool_bytes(largest);
        tool_error("one call moves %s, more than half of the memory of this node", text);
        return TOOL_REFUSED;
    }
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    replay_load load;
    replay_result result;
    double limit;
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2)
        return tool_usage("which records?");
    tool_exit status = read_limit(&limit);
    if (status == TOOL_OK)
        status = replay_load_paths(argv + 1, (guint) argc - 1, &load);
    if (status == TOOL_OK)
        status = check_bytes(&load, limit);
    if (status != TOOL_OK)
        return tool_finish(status);
    g_autofree char *prefix =
        g_strdup_printf("esdm-replay.%d-%08x", (int) getpid(), (guint) g_random_int());
    const replay_options options = {.prefix = prefix,
                                    .data = data != NULL ? tool_container(data) : NULL,
                                    .think = think_time,
                                    .keep = keep};
    char *config = NULL;
    if (target != NULL)
        status = replay_use_target(target, prefix, &config);
    if (status == TOOL_OK)
        status = replay_run(&load, &options, &result);
    if (config != NULL)
        (void) g_unlink(config);
    if (status == TOOL_OK && tool.json) {
        json_t *report = replay_report_json(&load, &result);
        if (keep)
            tool_json_set(report, "kept", json_string(prefix));
        tool_json_print(report);
    } else if (status == TOOL_OK) {
        replay_report(&load, &result, compare);
        if (keep)
            (void) printf("Its containers stay below esdm://%s/.\n", prefix);
    }
    return tool_finish(status);
}
