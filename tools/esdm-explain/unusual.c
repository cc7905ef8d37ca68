/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What was unusual, so that detailed monitoring began by itself. */
#include "esdm-explain/esdm-explain.h"

#include <stdio.h>

#define TOLD_MOST 10u
#define DAYS      7

bool
action_is_detail(const action *a)
{
    return g_str_equal(a->kind, "detailed monitoring");
}

/* The reason begins with a capital letter. */
static void
print_detail(const action *a)
{
    const char *told = a->because != NULL ? a->because : a->stopped;
    g_autofree char *reason = tool_printable(told != NULL ? told : "something was unusual");
    g_autofree char *lasted = time_text(a->lasted_s);
    g_autofree char *at = a->at != NULL ? g_strdup_printf(" at %s", a->at) : g_strdup("");
    (void) printf("  Detailed monitoring was turned on%s, because %s.", at, reason);
    if (a->lasted_s > 0)
        (void) printf(" It lasted %s, until %s.", lasted, a->ended != NULL ? a->ended : "now");
    else if (a->ended != NULL)
        (void) printf(" It failed: %s.", a->ended);
    (void) printf("\n");
    if (a->trace != NULL && a->lasted_s > 0) {
        g_autofree char *trace = tool_printable(a->trace);
        g_autofree char *before =
            a->before > 0
                ? g_strdup_printf(", and the %" G_GUINT64_FORMAT " requests before", a->before)
                : g_strdup("");
        (void) printf("  What it saw (%" G_GUINT64_FORMAT " steps%s): esdm-explain %s\n",
                      a->requests, before, trace);
    }
}

void
print_unusual(const run *r)
{
    bool any = false;
    for (guint i = 0; i < r->actions->len; i++) {
        const action *a = r->actions->pdata[i];
        if (!action_is_detail(a))
            continue;
        if (!any)
            (void) printf("\nWhat was unusual\n");
        any = true;
        print_detail(a);
    }
}

void
print_told(const json_t *list)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        action *a = action_of(one, "detailed monitoring");
        a->requests = (guint64) json_integer_value(json_object_get(one, "spans"));
        if (i == 0)
            (void) printf("esdm-run: something was unusual\n");
        print_detail(a);
        action_free(a);
    }
}

/* ---- of all runs of the site ------------------------------------------------------------------
 */

/* Those of the last days, the latest first. */
static GPtrArray *
lately(const GPtrArray *runs)
{
    GPtrArray *list = g_ptr_array_new();
    gint64 since = (g_get_real_time() - DAYS * G_TIME_SPAN_DAY) * 1000;
    for (guint i = runs->len; i-- > 0;) {
        const tool_run *one = runs->pdata[i];
        if (one->started_ns >= since && json_array_size(json_object_get(one->line, "unusual")) > 0)
            g_ptr_array_add(list, (gpointer) one);
    }
    return list;
}

void
print_site_unusual(const GPtrArray *runs)
{
    g_autoptr(GPtrArray) list = lately(runs);
    if (list->len > 0)
        (void) printf("\nUnusual in the last %d days\n", DAYS);
    for (guint i = 0; i < list->len && i < TOLD_MOST; i++) {
        const tool_run *of = list->pdata[i];
        size_t k;
        const json_t *one;
        json_array_foreach(json_object_get(of->line, "unusual"), k, one)
        {
            action *a = action_of(one, "detailed monitoring");
            a->requests = (guint64) json_integer_value(json_object_get(one, "spans"));
            g_autofree char *program = tool_printable(of->program);
            (void) printf("  %s, user %" G_GUINT64_FORMAT ":\n", program, of->user);
            print_detail(a);
            action_free(a);
        }
    }
    if (list->len > TOLD_MOST)
        (void) printf("  and in %u more runs (--json)\n", list->len - TOLD_MOST);
}

json_t *
site_unusual_json(const GPtrArray *runs)
{
    json_t *all = json_array();
    g_autoptr(GPtrArray) list = lately(runs);
    for (guint i = 0; i < list->len; i++) {
        const tool_run *of = list->pdata[i];
        tool_json_append(all, json_pack("{s:o,s:I,s:O}", "program", tool_json_text(of->program),
                                        "user", (json_int_t) of->user, "unusual",
                                        json_object_get(of->line, "unusual")));
    }
    return all;
}
