/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "common.h"

#include <stdio.h>

static const char *
kind_name(esdm_finding_kind kind)
{
    return kind == ESDM_FINDING_NOTE       ? "note"
           : kind == ESDM_FINDING_REPAIRED ? "repaired"
                                           : "problem";
}

static void
set_text(json_t *object, const char *key, const char *text)
{
    tool_json_set(object, key, text != NULL ? tool_json_text(text) : json_null());
}

json_t *
tool_json_finding(const esdm_finding *finding)
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

void
tool_print_finding(const esdm_finding *finding)
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
