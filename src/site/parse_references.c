/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration says about files that containers refer to. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/parts.h"

#define ROOTS_MOST     1024
#define TIMEOUT_MOST_S 3600u

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

esdm_status
esdm__site_parse_references(const esdm__json_node *root, const esdm__site_folder *folder,
                            esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"roots", "timeout", "ca_file", NULL};
    esdm__json_node node, list, timeout, ca_file;
    size_t count = 0;
    if (!esdm__json_member(root, "references", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK && esdm__json_member(&node, "timeout", &timeout))
        status = parse_timeout(&timeout, &site->references.timeout_s, err);
    if (status == ESDM_OK && esdm__json_member(&node, "ca_file", &ca_file))
        status = esdm__site_directory(&ca_file, folder, &site->references.ca_file, err);
    if (status != ESDM_OK || !esdm__json_member(&node, "roots", &list))
        return status;
    status = esdm__json_list(&node, "roots", ROOTS_MOST, &list, &count, err);
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
