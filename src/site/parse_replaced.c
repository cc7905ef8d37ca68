/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration says about keeping what was replaced or removed. */

#include <stdlib.h>
#include <string.h>

#include "site/parts.h"

#define KEEP_S       UINT64_C(86400)
#define KEEP_MOVED_S (30 * KEEP_S)
#define KEEP_MAX_S   (UINT64_C(36600) * 86400)
#define SHARE        0.1
#define CONTAINERS   UINT64_C(10000)
#define COUNTED_MOST UINT64_C(10000000)

/* "12h" in seconds; without a letter they are. */
static bool
parse_duration(const char *text, uint64_t *ret_seconds)
{
    static const struct {
        char letter;
        uint64_t seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long long number = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (end[0] != units[i].letter || (end[0] != '\0' && end[1] != '\0'))
            continue;
        if (number > KEEP_MAX_S / units[i].seconds)
            return false;
        *ret_seconds = number * units[i].seconds;
        return true;
    }
    return false;
}

esdm_status
esdm__site_parse_duration(const esdm__json_node *node, uint64_t *ret_seconds, esdm_error *err)
{
    const char *text = json_string_value(node->value);
    if (json_is_integer(node->value))
        return esdm__json_u64(node, 0, KEEP_MAX_S, ret_seconds, err);
    if (text == NULL || !parse_duration(text, ret_seconds))
        return esdm__json_error(node, err,
                                "expected a time such as \"1d\", \"12h\", \"30m\" or 0 seconds");
    return ESDM_OK;
}

esdm_status
esdm__site_parse_replaced(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"keep", "keep_moved", "share", "containers", NULL};
    esdm__json_node node;
    esdm__json_node member;
    esdm__site_replaced *replaced = &site->replaced;
    *replaced = (esdm__site_replaced){
        .keep_s = KEEP_S, .keep_moved_s = KEEP_MOVED_S, .share = SHARE, .containers = CONTAINERS};
    if (!esdm__json_member(root, "replaced", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK && esdm__json_member(&node, "keep", &member))
        status = esdm__site_parse_duration(&member, &replaced->keep_s, err);
    if (status == ESDM_OK && esdm__json_member(&node, "keep_moved", &member))
        status = esdm__site_parse_duration(&member, &replaced->keep_moved_s, err);
    if (status == ESDM_OK && replaced->keep_s == 0 && replaced->keep_moved_s > 0 &&
        esdm__json_member(&node, "keep_moved", &member))
        status = esdm__json_error(&member, err, "nothing is kept at all with \"keep\": 0");
    if (status == ESDM_OK && esdm__json_member(&node, "share", &member)) {
        replaced->share = json_number_value(member.value);
        if (!json_is_number(member.value) || !(replaced->share >= 0) || replaced->share > 1)
            status = esdm__json_error(&member, err, "expected a number from 0 to 1");
    }
    if (status == ESDM_OK && esdm__json_member(&node, "containers", &member))
        status = esdm__json_u64(&member, 0, COUNTED_MOST, &replaced->containers, err);
    return status;
}
