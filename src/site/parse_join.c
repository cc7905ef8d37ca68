/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the configuration says about containers that queries join: "join": {"equal": […]},
 * attributes that tell one run from another, beside those of CMIP and CORDEX. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/parts.h"

/* A name that "&across=A,B" can say. */
static esdm_status
parse_name(const esdm__json_node *item, esdm__site *site, esdm_error *err)
{
    const char *name = NULL;
    esdm_status status = esdm__json_string(item, &name, err);
    if (status != ESDM_OK)
        return status;
    size_t bytes = strlen(name);
    if (bytes == 0 || bytes > ESDM__SITE_EQUAL_BYTES || strpbrk(name, ",*&= \t\n") != NULL)
        return esdm__json_error(item, err,
                                "the name of an attribute is needed: 1 to %u bytes, without "
                                "blanks and ',', '*', '&', '='",
                                ESDM__SITE_EQUAL_BYTES);
    for (size_t i = 0; i < site->nequal; i++) {
        if (strcmp(site->equal[i], name) == 0)
            return esdm__json_error(item, err, "'%s' is listed twice", name);
    }
    site->equal[site->nequal] = strdup(name);
    if (site->equal[site->nequal] == NULL)
        return esdm__error_nomem(err, bytes, "a name");
    site->nequal++;
    return ESDM_OK;
}

esdm_status
esdm__site_parse_join(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"equal", NULL};
    esdm__json_node node, list;
    size_t count = 0;
    if (!esdm__json_member(root, "join", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK)
        status = esdm__json_list(&node, "equal", ESDM__SITE_EQUAL_MOST, &list, &count, err);
    if (status != ESDM_OK)
        return status;
    site->equal = calloc(count + 1, sizeof *site->equal);
    if (site->equal == NULL)
        return esdm__error_nomem(err, count * sizeof *site->equal, "names");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node item = esdm__json_element(&list, i);
        status = parse_name(&item, site, err);
    }
    return status;
}

void
esdm__site_join_free(esdm__site *site)
{
    for (size_t i = 0; i < site->nequal; i++)
        free(site->equal[i]);
    free(site->equal);
    site->equal = NULL;
    site->nequal = 0;
}
