/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration says about files that containers refer to. */

#include <stdlib.h>

#include "base/error.h"
#include "site/parts.h"

#define ROOTS_MOST 1024

esdm_status
esdm__site_parse_references(const esdm__json_node *root, const esdm__site_folder *folder,
                            esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"roots", NULL};
    esdm__json_node node, list;
    size_t count = 0;
    if (!esdm__json_member(root, "references", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
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
        status = esdm__site_directory(&item, folder, &site->references.roots[i], err);
        site->references.nroots += status == ESDM_OK;
    }
    return status;
}
