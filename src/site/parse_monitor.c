/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* "monitor": what is observed, unless $ESDM_MONITOR says otherwise. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/parts.h"

#define MODULES_MAX    16
#define BUFFER_LEAST   (UINT64_C(64) << 10)
#define BUFFER_MOST    (UINT64_C(1) << 30)
#define INTERVAL_MOST  3600000
#define INTERVAL_LEAST 10

static esdm_status
parse_modules(const esdm__json_node *node, esdm__monitor_options *options, esdm_error *err)
{
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = esdm__json_list(node, "modules", MODULES_MAX, &list, &count, err);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        static const char *const known[] = {"stats", "trace", "node", NULL};
        esdm__json_node member = esdm__json_element(&list, i);
        size_t choice = 0;
        status = esdm__json_choice(&member, known, &choice, err);
        if (status == ESDM_OK)
            options->modules |= esdm__monitor_module(known[choice], strlen(known[choice]));
    }
    return status;
}

static esdm_status
parse_file(const esdm__json_node *node, const char *key, const esdm__site_folder *folder,
           char **ret_file, esdm_error *err)
{
    esdm__json_node member;
    if (!esdm__json_member(node, key, &member))
        return ESDM_OK;
    if (json_is_string(member.value)) {
        char source[32];
        (void) snprintf(source, sizeof source, "monitor.%s", key);
        esdm_status status = esdm__monitor_check_file(json_string_value(member.value), source, err);
        if (status != ESDM_OK)
            return status;
        if (strstr(json_string_value(member.value), "://") != NULL) {
            *ret_file = strdup(json_string_value(member.value));
            return *ret_file != NULL ? ESDM_OK : esdm__error_nomem(err, PATH_MAX, source);
        }
    }
    return esdm__site_directory(&member, folder, ret_file, err);
}

esdm_status
esdm__site_parse_monitor(const esdm__json_node *root, const esdm__site_folder *folder,
                         esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"modules",  "stats_file", "trace_file", "buffer",
                                       "interval", "runs",       "runs_names", NULL};
    esdm__monitor_options *options = &site->monitor;
    esdm__json_node node, member;
    if (!esdm__json_member(root, "monitor", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_is_object(&node, err);
    if (status == ESDM_OK)
        status = esdm__json_known_keys(&node, keys, err);
    if (status == ESDM_OK)
        status = parse_modules(&node, options, err);
    if (status == ESDM_OK)
        status = parse_file(&node, "stats_file", folder, &options->stats_file, err);
    if (status == ESDM_OK)
        status = parse_file(&node, "trace_file", folder, &options->trace_file, err);
    if (status == ESDM_OK && esdm__json_member(&node, "buffer", &member))
        status = esdm__json_size(&member, BUFFER_LEAST, BUFFER_MOST, &options->buffer_bytes, err);
    if (status == ESDM_OK && esdm__json_member(&node, "interval", &member))
        status = esdm__json_u64(&member, INTERVAL_LEAST, INTERVAL_MOST, &options->interval_ms, err);
    if (status == ESDM_OK && esdm__json_member(&node, "runs", &member)) {
        status = esdm__site_directory(&member, folder, &options->runs, err);
        options->modules |= status == ESDM_OK ? ESDM__MONITOR_RUNS : 0;
    }
    if (status == ESDM_OK && esdm__json_member(&node, "runs_names", &member)) {
        if (!json_is_boolean(member.value))
            return esdm__json_error(&member, err, "must be true or false");
        options->runs_names = json_is_true(member.value);
    }
    return status;
}
