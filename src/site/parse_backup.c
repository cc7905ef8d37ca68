/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* "backup": what lies on the targets about the catalogue. */

#include "base/error.h"
#include "site/parts.h"

#define EVERY_S     3600
#define EVERY_MAX_S (366 * 86400)

esdm_status
esdm__site_parse_backup(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"journal", "every", NULL};
    esdm__json_node node, member;
    site->journal = true;
    site->backup_s = EVERY_S;
    if (!esdm__json_member(root, "backup", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_is_object(&node, err);
    if (status == ESDM_OK)
        status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK && esdm__json_member(&node, "journal", &member)) {
        if (!json_is_boolean(member.value))
            return esdm__json_error(&member, err, "expected true or false");
        site->journal = json_is_true(member.value);
    }
    if (status == ESDM_OK && esdm__json_member(&node, "every", &member))
        status = esdm__json_u64(&member, 0, EVERY_MAX_S, &site->backup_s, err);
    return status;
}
