/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-stat --digest: a line for each container, in the manner of sha256sum. */
#include <stdio.h>

#include "esdm-stat/esdm-stat.h"
#include "esdm/digest.h"

static void
tell_variable(const char *name, const char *path, const char *digest, json_t *object)
{
    g_autofree char *line = g_strdup_printf("%s  esdm://%s%s", digest, name, path);
    g_autofree char *printable = tool_printable(line);
    if (tool.json)
        tool_json_set(object, path, tool_json_text(digest));
    else
        (void) printf("%s\n", printable);
}

static esdm_status
tell_group(const char *name, esdm_group *group, const char *path, json_t *object, esdm_error *err)
{
    char digest[ESDM_DIGEST_BYTES];
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < esdm_group_dataset_count(group) && status == ESDM_OK; i++) {
        esdm_dataset *dataset = esdm_group_dataset_at(group, i);
        g_autofree char *own = g_strconcat(path, "/", esdm_dataset_name(dataset), NULL);
        status = esdm_dataset_digest(dataset, digest, err);
        if (status == ESDM_OK)
            tell_variable(name, own, digest, object);
    }
    for (size_t i = 0; i < esdm_group_count(group) && status == ESDM_OK; i++) {
        esdm_group *child = esdm_group_at(group, i);
        g_autofree char *own = g_strconcat(path, "/", esdm_group_name(child), NULL);
        status = tell_group(name, child, own, object, err);
    }
    return status;
}

esdm_status
stat_digest(esdm_container *container, const char *name, json_t *list, esdm_error *err)
{
    char digest[ESDM_DIGEST_BYTES];
    esdm_status status =
        esdm_container_digest(container, stat_wants.exact ? ESDM_DIGEST_READ : 0, digest, err);
    if (status != ESDM_OK)
        return status;
    g_autofree char *line = g_strdup_printf("%s  esdm://%s", digest, name);
    g_autofree char *printable = tool_printable(line);
    json_t *object = NULL, *variables = NULL;
    if (tool.json) {
        object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "uuid", tool_json_text(esdm_container_uuid(container)));
        tool_json_set(object, "snapshot", tool_json_u64(esdm_container_snapshot(container)));
        tool_json_set(object, "digest", tool_json_text(digest));
        if (stat_wants.each)
            tool_json_set(object, "variables", variables = json_object());
        tool_json_append(list, object);
    } else {
        (void) printf("%s\n", printable);
    }
    if (stat_wants.each)
        status = tell_group(name, esdm_container_root(container), "", variables, err);
    return status;
}
