/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The folders of the site configuration whose plain creates become containers. */

#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct route_list {
    size_t count;
    char *folders[]; /* owned */
} route_list;

/* Set once, never freed: callers keep the texts. */
static _Atomic(route_list *) published;

static void
routes_free(route_list *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        free(list->folders[i]);
    free(list);
}

/* NULL when out of memory. */
static route_list *
routes_copy(const esdm_session *session)
{
    size_t count = session == NULL ? 0 : esdm_session_route_count(session);
    route_list *list = calloc(1, sizeof *list + count * sizeof list->folders[0]);
    for (; list != NULL && list->count < count; list->count++) {
        list->folders[list->count] = strdup(esdm_session_route(session, list->count));
        if (list->folders[list->count] == NULL) {
            routes_free(list);
            return NULL;
        }
    }
    return list;
}

/* A session of its own for the question alone: most programs that create plain files never need
 * another one, and would carry its threads and its database over every fork(). */
static esdm_session *
open_configured_site(void)
{
    char *path;
    esdm_error err;
    esdm_status st = esdm_site_find(&path, &err);
    if (st == ESDM_OK && path == NULL)
        return NULL; /* the default site, which has no routes, and must not be made by asking */
    esdm_session *session = NULL;
    if (st == ESDM_OK) {
        /* Searched once more: what a caller names is obeyed whoever it belongs to. */
        esdm_session_options options = {.read_only = true};
        free(path);
        st = esdm_session_open(&options, &session, &err);
    }
    if (st != ESDM_OK) {
        esdmnc_debug("no folder is routed by the site configuration: %s", err.message);
        return NULL;
    }
    return session;
}

static const route_list *
routes(void)
{
    route_list *known = atomic_load_explicit(&published, memory_order_acquire);
    if (known != NULL)
        return known;
    esdm_session *session = open_configured_site();
    route_list *list = routes_copy(session);
    esdm_session_close(session);
    /* No lock, since a child that is forked while it is held could never take it: of two threads
     * that come here at once, the first one's result stays. */
    if (list != NULL && !atomic_compare_exchange_strong(&published, &known, list)) {
        routes_free(list);
        list = known;
    }
    return list;
}

const char *
esdmnc_route(size_t index)
{
    const route_list *list = routes();
    return list != NULL && index < list->count ? list->folders[index] : NULL;
}
