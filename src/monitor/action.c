/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What ESDM did by itself, for the statistics. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "monitor/parts.h"

void
esdm__monitor_join(char **list, const char *object)
{
    char *all = NULL;
    bool first = *list == NULL;
    if (asprintf(&all, "%s%s%s", first ? "" : *list, first ? "" : ",", object) < 0)
        return;
    free(*list);
    *list = all;
}

json_t *
esdm__action_json(const esdm__action *action)
{
    return json_pack("{s:s,s:s?,s:s?,s:I,s:I,s:I,s:I,s:I,s:s?}", "action", action->kind,
                     "container", action->container, "dataset", action->dataset, "requests",
                     (json_int_t) action->requests, "used", (json_int_t) action->used, "bytes",
                     (json_int_t) action->bytes, "gained_ns", (json_int_t) action->gained_ns,
                     "cost_ns", (json_int_t) action->cost_ns, "stopped", action->stopped);
}

void
esdm__monitor_action(esdm__monitor *monitor, const esdm__action *action)
{
    if (monitor == NULL)
        return;
    json_t *what = esdm__action_json(action);
    char *text = what != NULL ? json_dumps(what, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(what);
    if (text == NULL)
        return;
    (void) pthread_mutex_lock(&monitor->lock);
    esdm__monitor_join(&monitor->actions, text);
    (void) pthread_mutex_unlock(&monitor->lock);
    free(text);
}
