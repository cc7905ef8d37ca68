/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a replay measured. */
#include "esdm-replay/esdm-replay.h"

#include <stdio.h>

const char *
replay_kind_name(replay_kind kind)
{
    static const char *const names[REPLAY_KINDS] = {
        [REPLAY_OPEN] = "open",   [REPLAY_CREATE] = "create", [REPLAY_READ] = "read",
        [REPLAY_WRITE] = "write", [REPLAY_ALIGN] = "align",   [REPLAY_COMMIT] = "commit",
        [REPLAY_CLOSE] = "close"};
    return names[kind];
}

static char *
seconds_text(double s)
{
    return s < 1e-3  ? g_strdup_printf("%.0f us", s * 1e6)
           : s < 1.0 ? g_strdup_printf("%.1f ms", s * 1e3)
                     : g_strdup_printf("%.2f s", s);
}

static char *
ratio_text(double now, double before)
{
    return before > 0 ? g_strdup_printf("%.2f", now / before) : g_strdup("-");
}

static void
print_row(const char *name, const replay_sum *sum, bool compare)
{
    g_autofree char *bytes = sum->bytes > 0 ? tool_bytes(sum->bytes) : g_strdup("-");
    g_autofree char *now = seconds_text(sum->seconds);
    g_autofree char *before = seconds_text(sum->recorded);
    g_autofree char *ratio = ratio_text(sum->seconds, sum->recorded);
    (void) printf("%-10s %9" G_GUINT64_FORMAT " %12s %12s", name, sum->calls, bytes, now);
    if (compare)
        (void) printf(" %12s %8s", before, ratio);
    (void) printf("\n");
}

static replay_sum
total_of(const replay_result *result)
{
    replay_sum all = {0};
    for (guint i = 0; i < REPLAY_KINDS; i++) {
        all.calls += result->sums[i].calls;
        all.bytes += result->sums[i].bytes;
        all.seconds += result->sums[i].seconds;
        all.recorded += result->sums[i].recorded;
    }
    return all;
}

static void
print_left_out(const replay_load *load)
{
    if (load->left_out > 0)
        (void) printf("%" G_GUINT64_FORMAT
                      " calls were left out: on variables of user-defined types, or of more than 8 "
                      "dimensions.\n",
                      load->left_out);
    if (load->failed > 0)
        (void) printf("%" G_GUINT64_FORMAT " calls had failed when they were recorded and were "
                      "left out.\n",
                      load->failed);
    if (load->dropped > 0)
        (void) printf("The record lacks %" G_GUINT64_FORMAT " spans for which there was no room: "
                      "the replay does less than the program.\n",
                      load->dropped);
    if (load->damaged > 0)
        (void) printf("%" G_GUINT64_FORMAT " lines are no JSON, as a killed program leaves its "
                      "last one, and were left out.\n",
                      load->damaged);
}

void
replay_report(const replay_load *load, const replay_result *result, bool compare)
{
    replay_sum all = total_of(result);
    g_autofree char *seconds = seconds_text(result->seconds);
    (void) printf("%-10s %9s %12s %12s", "operation", "calls", "bytes", "time");
    (void) printf(compare ? " %12s %8s\n" : "\n", "recorded", "ratio");
    for (guint i = 0; i < REPLAY_KINDS; i++) {
        if (result->sums[i].calls > 0)
            print_row(replay_kind_name((replay_kind) i), &result->sums[i], compare);
    }
    print_row("all", &all, compare);
    (void) printf("\n%u %s, %s from the first call to the end of the last.\n", load->processes->len,
                  load->processes->len == 1 ? "process" : "processes", seconds);
    if (compare) {
        g_autofree char *before = seconds_text(result->recorded);
        g_autofree char *calls = seconds_text(result->recorded_calls);
        (void) printf("When it was recorded: %s, of which %s in these calls%s.\n", before, calls,
                      load->processes->len > 1 ? " (of the process that had most)" : "");
    }
    print_left_out(load);
}

json_t *
replay_report_json(const replay_load *load, const replay_result *result)
{
    json_t *object = json_object();
    json_t *list = json_array();
    replay_sum all = total_of(result);
    for (guint i = 0; i < REPLAY_KINDS; i++) {
        const replay_sum *sum = &result->sums[i];
        if (sum->calls == 0)
            continue;
        json_t *one = json_object();
        tool_json_set(one, "operation", json_string(replay_kind_name((replay_kind) i)));
        tool_json_set(one, "calls", tool_json_u64(sum->calls));
        tool_json_set(one, "bytes", tool_json_u64(sum->bytes));
        tool_json_set(one, "seconds", json_real(sum->seconds));
        tool_json_set(one, "recorded_seconds", json_real(sum->recorded));
        tool_json_append(list, one);
    }
    tool_json_set(object, "operations", list);
    tool_json_set(object, "processes", json_integer(load->processes->len));
    tool_json_set(object, "seconds", json_real(result->seconds));
    tool_json_set(object, "call_seconds", json_real(all.seconds));
    tool_json_set(object, "recorded_seconds", json_real(result->recorded));
    tool_json_set(object, "recorded_call_seconds", json_real(all.recorded));
    tool_json_set(object, "prepare_seconds", json_real(result->prepare_s));
    tool_json_set(object, "left_out", tool_json_u64(load->left_out));
    tool_json_set(object, "failed", tool_json_u64(load->failed));
    tool_json_set(object, "dropped", tool_json_u64(load->dropped));
    tool_json_set(object, "damaged_lines", tool_json_u64(load->damaged));
    return object;
}
