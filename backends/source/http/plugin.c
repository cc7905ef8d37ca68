/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Objects on web servers, over HTTP and HTTPS with libcurl. A change is found out by the ETag or,
 * where there is none, by time of modification and size: the server is asked to refuse
 * (If-Match, If-Unmodified-Since), and what it answers is compared, too, as not all obey.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "http.h"

#define TIMEOUT_S 60

static void
start_curl(void)
{
    (void) curl_global_init(CURL_GLOBAL_DEFAULT); /* never undone: the program may use it too */
}

static void
http_close(void *self)
{
    http__source *source = self;
    if (source == NULL)
        return;
    esdm__descriptors_moving(true);
    for (uint32_t i = 0; i < source->nidle; i++)
        http__line_free(source->idle[i]);
    esdm__descriptors_moving(false);
    (void) pthread_mutex_destroy(&source->lock);
    http__places_close(source);
    free(source->ca_file);
    free(source);
}

static esdm_status
http_open(const esdm_plugin_config *config, void **ret_source, esdm_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    json_t *options = esdm__json_read(config->json);
    json_int_t seconds = json_integer_value(json_object_get(options, "timeout"));
    const char *said = json_string_value(json_object_get(options, "ca_file"));
    char *ca_file = said != NULL ? strdup(said) : NULL;
    bool copied = (said == NULL) == (ca_file == NULL);
    (void) pthread_once(&once, start_curl);
    http__source *source = copied ? calloc(1, sizeof *source) : NULL;
    if (source == NULL) {
        free(ca_file);
        json_decref(options);
        return esdm__error_nomem(err, sizeof *source, "a source");
    }
    source->ca_file = ca_file;
    source->timeout_ms = (uint64_t) (seconds > 0 ? seconds : TIMEOUT_S) * 1000;
    source->hedge = !json_is_false(json_object_get(options, "hedge"));
    source->random = esdm__now_ns() ^ ((uint64_t) getpid() << 40);
    (void) pthread_mutex_init(&source->lock, NULL);
    esdm_status status = http__places_open(source, json_object_get(options, "s3"), err);
    json_decref(options);
    if (status == ESDM_OK)
        *ret_source = source;
    else
        http_close(source);
    return status;
}

/* Some servers allow nothing but GET: then its first byte is asked for. */
static bool
wants_get(const http__request *r)
{
    return r->status == 403 || r->status == 405 || r->status == 501 || r->status == 400 ||
           (r->status == 200 && r->length == UINT64_MAX);
}

static esdm_status
http_stat(void *self, const char *url, esdm_source_state *ret_state, esdm_error *err)
{
    http__request r = {.url = url, .head = true};
    uint8_t first = 0;
    esdm_status status = http__ask(self, &r, err);
    if (status == ESDM_OK && wants_get(&r)) {
        esdm__buffer_clear(&r.body);
        r = (http__request){.url = url, .ranged = true, .bytes = 1, .buffer = &first};
        status = http__ask(self, &r, err);
    }
    esdm__buffer_clear(&r.body);
    if (status == ESDM_OK && r.status != 200 && r.status != 206)
        status = http__refuse(&r, err);
    if (status == ESDM_OK)
        status = http__compare(&r, err);
    return status == ESDM_OK ? http__describe(&r, ret_state, err) : status;
}

static esdm_status
http_read(void *self, const char *url, const esdm_source_state *was, uint64_t position,
          void *buffer, size_t bytes, esdm_error *err)
{
    if (bytes == 0)
        return ESDM_OK;
    if (position > was->bytes || bytes > was->bytes - position)
        return esdm__error_set(err, ESDM_ECONFLICT, "'%s' ends before byte %llu", url,
                               (unsigned long long) (position + bytes));
    http__request r = {.url = url,
                       .was = was,
                       .ranged = true,
                       .position = position,
                       .bytes = bytes,
                       .buffer = buffer};
    esdm_status status = http__ask(self, &r, err);
    esdm__buffer_clear(&r.body);
    return status == ESDM_OK ? http__check_part(&r, err) : status;
}

static esdm_status
http_load(void *self, const char *url, size_t most, esdm_source_state *ret_state, void **ret_data,
          size_t *ret_bytes, esdm_error *err)
{
    http__request r = {.url = url, .bytes = most};
    esdm_status status = http__ask(self, &r, err);
    if (status == ESDM_OK && r.status != 200)
        status = http__refuse(&r, err);
    if (status == ESDM_OK)
        status = http__compare(&r, err);
    if (status == ESDM_OK && r.too_much)
        status = esdm__error_set(err, ESDM_EINVAL, "'%s' has more than %zu bytes", url, most);
    if (status == ESDM_OK && r.length == UINT64_MAX)
        r.length = r.received; /* it came in pieces */
    if (status == ESDM_OK && r.length != r.received)
        status = esdm__error_set(err, ESDM_EIO, "'%s': the server sent %zu of %llu bytes", url,
                                 r.received, (unsigned long long) r.length);
    void *data = status == ESDM_OK ? malloc(r.received + 1) : NULL;
    if (status == ESDM_OK && data == NULL)
        status = esdm__error_nomem(err, r.received, "an object");
    if (status == ESDM_OK) {
        if (r.received > 0)
            memcpy(data, r.body.data, r.received);
        ((char *) data)[r.received] = '\0';
        ret_state->bytes = r.received;
        ret_state->modified_ns = r.modified_s > 0 ? r.modified_s * 1000000000 : INT64_MIN;
        memcpy(ret_state->identity, r.etag, sizeof r.etag);
        *ret_data = data;
        *ret_bytes = r.received;
    }
    esdm__buffer_clear(&r.body);
    return status;
}

static const esdm_source_plugin esdm_source_http_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .kind = ESDM_PLUGIN_SOURCE,
             .table_bytes = sizeof(esdm_source_plugin),
             .name = "http",
             .summary = "objects on web servers that containers refer to"},
    .open = http_open,
    .close = http_close,
    .stat = http_stat,
    .read = http_read,
    .load = http_load,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM__DESCRIPTORS_SHARED

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_source_http_plugin.base;
}
#endif
