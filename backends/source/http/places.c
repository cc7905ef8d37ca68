/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Places on S3 whose objects are asked for with a signature, and the keys for that. libcurl
 * signs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/url.h"
#include "encode.h"
#include "http.h"

/* The first that signs as S3 wants it: with a digest of the contents. */
#define CURL_SIGNS 0x075800u

static void
close_place(http__place *place)
{
    s3__credentials_clear(&place->keys);
    free(place->url);
    free(place->sigv4);
}

static const char *
text_of(const json_t *item, const char *key)
{
    return json_string_value(json_object_get(item, key));
}

/* Keys that are not there are told when an object is asked for that needs them. */
static esdm_status
open_place(http__place *place, const json_t *item, esdm_error *err)
{
    const char *url = text_of(item, "url"), *region = text_of(item, "region");
    const s3__credential_options wanted = {.access_key = text_of(item, "access_key"),
                                           .secret_key = text_of(item, "secret_key"),
                                           .session_token = text_of(item, "session_token"),
                                           .profile = text_of(item, "profile"),
                                           .file = text_of(item, "credentials_file")};
    place->url = strdup(url != NULL ? url : "");
    if (asprintf(&place->sigv4, "aws:amz:%s:s3", region != NULL ? region : "us-east-1") < 0)
        place->sigv4 = NULL;
    if (place->url == NULL || place->sigv4 == NULL)
        return esdm__error_nomem(err, sizeof *place, "a place on S3");
    if (curl_version_info(CURLVERSION_NOW)->version_num < CURL_SIGNS)
        (void) esdm__error_set(&place->problem, ESDM_ENOTSUP,
                               "requests are signed by libcurl 7.88 or newer; this is %s",
                               curl_version_info(CURLVERSION_NOW)->version);
    else
        (void) s3__credentials_find(&wanted, &place->keys, &place->problem);
    return ESDM_OK;
}

esdm_status
http__places_open(http__source *source, const json_t *said, esdm_error *err)
{
    size_t count = json_array_size(said);
    source->places = calloc(count + 1, sizeof *source->places);
    if (source->places == NULL)
        return esdm__error_nomem(err, count * sizeof *source->places, "places on S3");
    for (size_t i = 0; i < count; i++) {
        source->nplaces++;
        esdm_status status = open_place(&source->places[i], json_array_get(said, i), err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

void
http__places_close(http__source *source)
{
    for (size_t i = 0; i < source->nplaces; i++)
        close_place(&source->places[i]);
    free(source->places);
}

const http__place *
http__place_of(const http__source *source, const char *url)
{
    const http__place *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < source->nplaces; i++) {
        const http__place *place = &source->places[i];
        size_t bytes = strlen(place->url);
        if (bytes >= longest && esdm__url_is_in(url, place->url)) {
            found = place;
            longest = bytes;
        }
    }
    return found;
}

char *
http__signed_url(const char *url)
{
    const char *host = strstr(url, "//");
    const char *path = host != NULL ? strchr(host + 2, '/') : NULL;
    if (path == NULL)
        return strdup(url);
    char *key = strdup(path);
    if (key == NULL)
        return NULL;
    esdm__buffer whole;
    esdm__buffer_init(&whole);
    s3__decode(key);
    esdm__buffer_put(&whole, url, (size_t) (path - url));
    s3__encode(&whole, key, true);
    esdm__buffer_put_u8(&whole, 0);
    free(key);
    if (!whole.failed)
        return (char *) whole.data;
    esdm__buffer_clear(&whole);
    return NULL;
}
