/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Findings and progress of checks, as lines or JSON. */

#include "common/common.h"

#include <stdio.h>

static const char *
kind_name(esdm_finding_kind kind)
{
    return kind == ESDM_FINDING_NOTE          ? "note"
           : kind == ESDM_FINDING_REPAIRED    ? "repaired"
           : kind == ESDM_FINDING_CONSEQUENCE ? "consequence"
                                              : "problem";
}

static void
set_text(json_t *object, const char *key, const char *text)
{
    tool_json_set(object, key, text != NULL ? tool_json_text(text) : json_null());
}

static json_t *
json_finding(const esdm_finding *finding)
{
    json_t *object = json_object();
    tool_json_set(object, "kind", json_string(kind_name(finding->kind)));
    tool_json_set(object, "status", json_string(esdm_status_string(finding->status)));
    set_text(object, "container", finding->container);
    set_text(object, "dataset", finding->dataset);
    set_text(object, "place", finding->place);
    set_text(object, "what", finding->what);
    set_text(object, "remedy", finding->remedy);
    return object;
}

static void
print_finding(const esdm_finding *finding)
{
    GString *line = g_string_new(kind_name(finding->kind));
    g_string_append(line, ": ");
    if (finding->container != NULL)
        g_string_append_printf(line, "container '%s': ", finding->container);
    if (finding->dataset != NULL)
        g_string_append_printf(line, "%s: ", finding->dataset);
    if (finding->place != NULL)
        g_string_append_printf(line, "%s: ", finding->place);
    g_string_append(line, finding->what);
    if (finding->remedy != NULL)
        g_string_append_printf(line, "; %s", finding->remedy);
    g_autofree char *printable = tool_printable(line->str);
    (void) printf("%s\n", printable);
    (void) g_string_free(line, TRUE);
}

void
tool_watch_start(tool_watch *watch, bool notes, bool progress)
{
    *watch = (tool_watch){.findings = json_array(), .notes = notes};
    tool_progress_start(&watch->progress, progress && !tool.json);
}

json_t *
tool_watch_end(tool_watch *watch)
{
    json_t *findings = watch->findings;
    tool_progress_end(&watch->progress);
    watch->findings = NULL;
    return findings;
}

void
tool_watch_finding(const esdm_finding *finding, void *watch)
{
    const tool_watch *all = watch;
    if (tool.json)
        tool_json_append(all->findings, json_finding(finding));
    else if (all->notes || finding->kind != ESDM_FINDING_NOTE)
        print_finding(finding);
}

void
tool_watch_progress(double share, const char *container, void *watch)
{
    tool_watch *all = watch;
    tool_progress_show(&all->progress, share, container);
}
