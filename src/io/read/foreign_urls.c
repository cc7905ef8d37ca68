/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Objects on servers that references name by a URL: read by a plug-in, which is loaded when the
 * first is needed, and which sees to it that an object is what it was. */

#include "io/read/foreign_urls.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "io/session/references.h"
#include "plugin/registry.h"

/* The slot of a kind that has no state otherwise. */
#define SLOT ESDM__KIND_CONSTANT

typedef struct urls {
    esdm__source_state base;
    pthread_mutex_t lock; /* guards `plugin` until it is set; held while the plug-in is opened */
    const esdm_source_plugin *plugin;
    void *handle;
} urls;

static void
urls_free(esdm__source_state *state)
{
    urls *u = (urls *) state;
    if (u->plugin != NULL)
        u->plugin->close(u->handle);
    (void) pthread_mutex_destroy(&u->lock);
    free(u);
}

static urls *
urls_of(esdm_session *session)
{
    _Atomic(esdm__source_state *) *slot = &session->sources[SLOT];
    esdm__source_state *state = atomic_load(slot);
    if (state != NULL)
        return (urls *) state;
    urls *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->base.free = urls_free;
    (void) pthread_mutex_init(&u->lock, NULL);
    if (atomic_compare_exchange_strong(slot, &state, &u->base))
        return u;
    urls_free(&u->base);
    return (urls *) state;
}

/* "references" of the site, as its plug-in reads it. @param ret owned, free(); NULL: no memory. */
static char *
options_of(const esdm_session *session)
{
    const esdm__site_references *said = &session->site->references;
    json_t *options = json_object();
    int wrong = json_object_set_new(options, "timeout", json_integer((json_int_t) said->timeout_s));
    if (said->no_hedge)
        wrong |= json_object_set_new(options, "hedge", json_false());
    if (said->ca_file != NULL)
        wrong |= json_object_set_new(options, "ca_file", json_string(said->ca_file));
    if (said->s3 != NULL)
        wrong |= json_object_set_new(options, "s3", esdm__json_read(said->s3));
    char *text = wrong == 0 ? json_dumps(options, JSON_COMPACT) : NULL;
    json_decref(options);
    return text;
}

/* With the lock held. */
static esdm_status
open_plugin(const esdm_session *session, urls *u, esdm_error *err)
{
    const esdm_plugin *found = NULL;
    void *handle = NULL;
    esdm_status status = esdm__plugin_find(ESDM_PLUGIN_SOURCE, "http", &found, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "objects on web servers");
    const esdm_source_plugin *plugin = (const esdm_source_plugin *) found;
    char *options = options_of(session);
    if (options == NULL)
        return esdm__error_nomem(err, sizeof *session->site, "a source");
    const esdm_plugin_config config = {
        .name = "references", .json = options, .path = session->site->source, .site_id = ""};
    status = plugin->open(&config, &handle, err);
    explicit_bzero(options, strlen(options)); /* there may be keys in it */
    free(options);
    if (status != ESDM_OK)
        return status;
    u->handle = handle;
    u->plugin = plugin;
    return ESDM_OK;
}

/* @param ret borrowed from the session; its plug-in is open. */
static esdm_status
reach(esdm_session *session, const char *url, urls **ret, esdm_error *err)
{
    esdm_status status = esdm__reference_allowed(session, url, err);
    urls *u = status == ESDM_OK ? urls_of(session) : NULL;
    if (status != ESDM_OK)
        return status;
    if (u == NULL)
        return esdm__error_nomem(err, sizeof *u, "a source");
    (void) pthread_mutex_lock(&u->lock);
    if (u->plugin == NULL)
        status = open_plugin(session, u, err);
    (void) pthread_mutex_unlock(&u->lock);
    *ret = u;
    return status;
}

esdm_status
esdm__url_stat(esdm_session *session, const char *url, esdm_source_state *ret_state,
               esdm_error *err)
{
    urls *u = NULL;
    esdm_status status = reach(session, url, &u, err);
    memset(ret_state, 0, sizeof *ret_state);
    return status == ESDM_OK ? u->plugin->stat(u->handle, url, ret_state, err) : status;
}

esdm_status
esdm__url_read(esdm_session *session, const char *url, const esdm_source_state *was,
               uint64_t position, void *buffer, size_t bytes, esdm_error *err)
{
    urls *u = NULL;
    esdm_status status = reach(session, url, &u, err);
    return status == ESDM_OK ? u->plugin->read(u->handle, url, was, position, buffer, bytes, err)
                             : status;
}

esdm_status
esdm__url_load(esdm_session *session, const char *url, size_t most, esdm_source_state *ret_state,
               void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    urls *u = NULL;
    esdm_status status = reach(session, url, &u, err);
    memset(ret_state, 0, sizeof *ret_state);
    return status == ESDM_OK
               ? u->plugin->load(u->handle, url, most, ret_state, ret_data, ret_bytes, err)
               : status;
}
