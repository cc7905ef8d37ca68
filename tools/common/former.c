/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Names in time that say a container which was replaced or removed since. */

#include <string.h>

#include "common/common.h"

typedef struct search {
    const char *base;
    uint64_t created_ns;
    uint64_t modified_ns;
    tool_former *found;
    bool any;
} search;

static bool
look(const esdm_former_info *info, void *user)
{
    search *s = user;
    if (!g_str_equal(info->container.name, s->base) ||
        info->container.created_ns != s->created_ns ||
        info->container.modified_ns != s->modified_ns)
        return true;
    s->any = true;
    *s->found = (tool_former){.time_ns = info->time_ns, .removed = info->removed};
    (void) g_strlcpy(s->found->id, info->id, sizeof s->found->id);
    return false;
}

bool
tool_former_of(esdm_session *session, const char *name, tool_former *ret_former)
{
    const char *at = strrchr(name, '@');
    esdm_container_info info;
    esdm_error ignored;
    if (at == NULL || at == name || esdm_container_stat(session, name, &info, &ignored) != ESDM_OK)
        return false;
    g_autofree char *base = g_strndup(name, (gsize) (at - name));
    search s = {.base = base,
                .created_ns = info.created_ns,
                .modified_ns = info.modified_ns,
                .found = ret_former};
    if (esdm_former_list(session, base, look, &s, &ignored) != ESDM_OK || !s.any)
        return false;
    (void) g_strlcpy(ret_former->base, base, sizeof ret_former->base);
    return true;
}

static bool
look_for_name(const esdm_container_info *info, void *user)
{
    search *s = user;
    s->any = g_str_equal(info->name, s->base);
    return !s->any;
}

bool
tool_is_container(esdm_session *session, const char *name)
{
    search s = {.base = name};
    esdm_error ignored;
    return esdm_container_list(session, name, look_for_name, &s, &ignored) == ESDM_OK && s.any;
}
