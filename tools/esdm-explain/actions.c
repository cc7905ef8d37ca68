/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What ESDM did by itself, and what that gained. */
#include "esdm-explain/esdm-explain.h"

#include <stdio.h>

/* Reads of a variable whose fragments were cut for its readers. */
static void
print_shape(const action *a)
{
    char *bytes = bytes_text((double) a->bytes);
    char *gained = time_text(a->gained_s > 0 ? a->gained_s : a->cost_s);
    char *name = short_name(a->container);
    (void) printf("  %s%s: its writer has cut it as its readers read it; %" G_GUINT64_FORMAT
                  " reads (%s)",
                  name, a->dataset, a->requests, bytes);
    if (a->gained_s > 0)
        (void) printf(" took %s less than they would have taken otherwise, by what was seen before",
                      gained);
    else if (a->cost_s > 0)
        (void) printf(" took %s more than they would have taken otherwise, by what was seen before",
                      gained);
    (void) printf("%s%s.\n", a->stopped != NULL ? "; stopped: " : "",
                  a->stopped != NULL ? a->stopped : "");
    g_free(name);
    g_free(gained);
    g_free(bytes);
}

static void
print_second_requests(const action *a)
{
    (void) printf(
        "  Second requests: %" G_GUINT64_FORMAT
        " reads waited unusually long for an answer and were asked for again; %" G_GUINT64_FORMAT
        " of these answers came first.\n",
        a->requests, a->used);
}

static void
print_action(const action *a)
{
    if (g_str_equal(a->kind, "second requests")) {
        print_second_requests(a);
        return;
    }
    if (g_str_equal(a->kind, "shape for readers") && a->container != NULL && a->dataset != NULL) {
        print_shape(a);
        return;
    }
    char *bytes = bytes_text((double) a->bytes);
    char *gained = time_text(a->gained_s);
    char *name = a->container != NULL ? short_name(a->container) : NULL;
    (void) printf("  %s%s%s%s%s: %" G_GUINT64_FORMAT
                  " requests (%s) before they were wanted, %" G_GUINT64_FORMAT
                  " of use. The program did not wait for %s of the time that these "
                  "took%s%s.\n",
                  g_str_equal(a->kind, "earlier runs") ? "As earlier runs did" : "Steps foreseen",
                  name != NULL ? ", " : "", name != NULL ? name : "", a->dataset != NULL ? " " : "",
                  a->dataset != NULL ? a->dataset : "", a->requests, bytes, a->used, gained,
                  a->stopped != NULL ? "; stopped: " : "", a->stopped != NULL ? a->stopped : "");
    g_free(name);
    g_free(gained);
    g_free(bytes);
}

void
print_actions(const run *r)
{
    bool any = false;
    for (guint i = 0; i < r->actions->len; i++) {
        const action *a = r->actions->pdata[i];
        if (action_is_detail(a))
            continue;
        if (!any)
            (void) printf("\nWhat ESDM asked of targets by itself\n");
        any = true;
        print_action(a);
    }
}

json_t *
actions_json(const run *r)
{
    json_t *list = json_array();
    for (guint i = 0; i < r->actions->len; i++) {
        const action *a = r->actions->pdata[i];
        json_t *one =
            json_pack("{s:s,s:s?,s:s?,s:I,s:I,s:I,s:f,s:f,s:s?}", "action", a->kind, "container",
                      a->container, "dataset", a->dataset, "requests", (json_int_t) a->requests,
                      "used", (json_int_t) a->used, "bytes", (json_int_t) a->bytes, "gained_s",
                      a->gained_s, "cost_s", a->cost_s, "stopped", a->stopped);
        if (action_is_detail(a))
            (void) json_object_update_new(
                one, json_pack("{s:s?,s:s?,s:s?,s:s?,s:f}", "at", a->at, "because", a->because,
                               "trace", a->trace, "ended", a->ended, "lasted_s", a->lasted_s));
        (void) json_array_append_new(list, one);
    }
    return list;
}
