/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration says about files that containers refer to. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/url.h"
#include "site/parts.h"

#define ROOTS_MOST     1024
#define TIMEOUT_MOST_S 3600u
#define PLACES_MOST    256

bool
esdm__site_is_url(const char *location)
{
    return location != NULL &&
           (strncmp(location, "http://", 7) == 0 || strncmp(location, "https://", 8) == 0);
}

/* "https://data.example.org/cmip6": with a host, and nothing that would be read in two ways. */
static esdm_status
parse_url(const esdm__json_node *item, const char *text, char **ret_root, esdm_error *err)
{
    const char *host = strstr(text, "//") + 2;
    size_t bytes = strlen(text);
    if (*host == '\0' || *host == '/' || strpbrk(text, "@?# \\%") != NULL ||
        strstr(text, "/../") != NULL || strstr(text, "/./") != NULL)
        return esdm__json_error(item, err,
                                "'%s' is no URL of a place: http(s)://HOST/PATH, without user, "
                                "question and escapes",
                                text);
    while (bytes > 0 && text[bytes - 1] == '/')
        bytes--;
    *ret_root = strndup(text, bytes);
    return *ret_root != NULL ? ESDM_OK : esdm__error_nomem(err, bytes, "a URL");
}

static esdm_status
parse_root(const esdm__json_node *item, const esdm__site_folder *folder, char **ret_root,
           esdm_error *err)
{
    const char *text = NULL;
    esdm_status status = esdm__json_string(item, &text, err);
    if (status != ESDM_OK)
        return status;
    return esdm__site_is_url(text) ? parse_url(item, text, ret_root, err)
                                   : esdm__site_directory(item, folder, ret_root, err);
}

static esdm_status
parse_timeout(const esdm__json_node *node, uint64_t *ret_seconds, esdm_error *err)
{
    esdm_status status = esdm__site_parse_duration(node, ret_seconds, err);
    if (status == ESDM_OK && (*ret_seconds < 1 || *ret_seconds > TIMEOUT_MOST_S))
        status = esdm__json_error(node, err, "a time of 1 s to 1 h is needed");
    return status;
}

static esdm_status
parse_roots(const esdm__json_node *node, const esdm__site_folder *folder, esdm__site *site,
            esdm_error *err)
{
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = esdm__json_list(node, "roots", ROOTS_MOST, &list, &count, err);
    if (status != ESDM_OK)
        return status;
    site->references.roots = calloc(count + 1, sizeof *site->references.roots);
    if (site->references.roots == NULL)
        return esdm__error_nomem(err, count * sizeof *site->references.roots, "roots");
    site->references.limited = true;
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node item = esdm__json_element(&list, i);
        status = parse_root(&item, folder, &site->references.roots[i], err);
        site->references.nroots += status == ESDM_OK;
    }
    return status;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Roots that are a URL, and what lies below them. */
static bool
is_allowed(const esdm__site_references *references, const char *url)
{
    for (size_t i = 0; i < references->nroots; i++) {
        if (esdm__site_is_url(references->roots[i]) && esdm__url_is_in(url, references->roots[i]))
            return true;
    }
    return false;
}

static bool
is_region(const char *text)
{
    size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return bytes > 0 && bytes < 64 && text[bytes] == '\0';
}

/* What belongs together; no value is quoted. */
static esdm_status
check_keys(const esdm__json_node *item, esdm_error *err)
{
    static const char *const keys[] = {"url",           "region",  "access_key",       "secret_key",
                                       "session_token", "profile", "credentials_file", NULL};
    esdm_status status = esdm__json_known_keys(item, keys, err);
    for (size_t i = 0; keys[i] != NULL && status == ESDM_OK; i++) {
        esdm__json_node value;
        const char *text = NULL;
        if (!esdm__json_member(item, keys[i], &value))
            continue;
        status = esdm__json_string(&value, &text, err);
        if (status == ESDM_OK && text[0] == '\0')
            status = esdm__json_error(&value, err, "the text is empty; leave the key out instead");
        if (status == ESDM_OK && strcmp(keys[i], "region") == 0 && !is_region(text))
            status = esdm__json_error(&value, err, "a region has letters, digits and '-'");
    }
    if (status != ESDM_OK)
        return status;
    const json_t *has = item->value;
    bool access = json_object_get(has, "access_key") != NULL;
    if (access != (json_object_get(has, "secret_key") != NULL))
        return esdm__json_error(item, err, "\"access_key\" and \"secret_key\" go together");
    if (access && (json_object_get(has, "profile") != NULL ||
                   json_object_get(has, "credentials_file") != NULL))
        return esdm__json_error(item, err,
                                "give either keys, or \"profile\" and \"credentials_file\"");
    if (!access && json_object_get(has, "session_token") != NULL)
        return esdm__json_error(item, err, "\"session_token\" needs \"access_key\"");
    return ESDM_OK;
}

/* @param place a copy of the item, whose URL and path are made whole. */
static esdm_status
parse_place(const esdm__json_node *item, const esdm__site_folder *folder,
            const esdm__site_references *references, json_t *place, esdm_error *err)
{
    esdm__json_node url, file;
    const char *text = NULL;
    char *whole = NULL;
    esdm_status status = check_keys(item, err);
    if (status == ESDM_OK)
        status = esdm__json_require(item, "url", &url, err);
    if (status != ESDM_OK)
        return status;
    text = json_string_value(url.value);
    if (!esdm__site_is_url(text))
        return esdm__json_error(&url, err, "'%s' is no URL (http or https)", text);
    status = parse_url(&url, text, &whole, err);
    if (status == ESDM_OK && !is_allowed(references, whole))
        status = esdm__json_error(&url, err, "'%s' lies below none of \"references.roots\"", text);
    if (status == ESDM_OK && json_object_set_new(place, "url", json_string(whole)) != 0)
        status = esdm__error_nomem(err, strlen(whole), "a URL");
    free(whole);
    whole = NULL;
    if (status != ESDM_OK || !esdm__json_member(item, "credentials_file", &file))
        return status;
    status = esdm__site_directory(&file, folder, &whole, err);
    if (status == ESDM_OK &&
        json_object_set_new(place, "credentials_file", json_string(whole)) != 0)
        status = esdm__error_nomem(err, strlen(whole), "a path");
    free(whole);
    return status;
}

static esdm_status
parse_s3(const esdm__json_node *node, const esdm__site_folder *folder, esdm__site *site,
         esdm_error *err)
{
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = esdm__json_list(node, "s3", PLACES_MOST, &list, &count, err);
    if (status != ESDM_OK)
        return status;
    json_t *places = json_array();
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node item = esdm__json_element(&list, i);
        json_t *place = json_copy(item.value);
        if (place == NULL || json_array_append_new(places, place) != 0)
            status = esdm__error_nomem(err, sizeof item, "references");
        else
            status = parse_place(&item, folder, &site->references, place, err);
    }
    if (status == ESDM_OK)
        site->references.s3 = json_dumps(places, JSON_COMPACT);
    if (status == ESDM_OK && site->references.s3 == NULL)
        status = esdm__error_nomem(err, count, "references");
    json_decref(places);
    return status;
}

esdm_status
esdm__site_parse_references(const esdm__json_node *root, const esdm__site_folder *folder,
                            esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"roots", "timeout", "ca_file", "s3", "hedge", NULL};
    esdm__json_node node, list, timeout, ca_file, hedge;
    if (!esdm__json_member(root, "references", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK && esdm__json_member(&node, "timeout", &timeout))
        status = parse_timeout(&timeout, &site->references.timeout_s, err);
    if (status == ESDM_OK && esdm__json_member(&node, "ca_file", &ca_file))
        status = esdm__site_directory(&ca_file, folder, &site->references.ca_file, err);
    if (status == ESDM_OK && esdm__json_member(&node, "hedge", &hedge)) {
        if (!json_is_boolean(hedge.value))
            status = esdm__json_error(&hedge, err, "expected true or false");
        site->references.no_hedge = json_is_false(hedge.value);
    }
    if (status == ESDM_OK && esdm__json_member(&node, "roots", &list))
        status = parse_roots(&node, folder, site, err);
    if (status == ESDM_OK && esdm__json_member(&node, "s3", &list))
        status = parse_s3(&node, folder, site, err);
    return status;
}
