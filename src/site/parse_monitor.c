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

#define TARGETS_MAX      64
#define SLOWER_LEAST     1.5
#define SLOWER_MOST      1000.0
#define FOR_MOST_S       86400
#define RULE_BYTES_LEAST (UINT64_C(64) << 10)
#define RULE_BYTES_MOST  (UINT64_C(1) << 40)
#define TIMES_MOST       1000

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

/* ---- rules ----------------------------------------------------------------------------------- */

static esdm_status
parse_then(const esdm__json_node *node, esdm__monitor_rule *rule, esdm_error *err)
{
    static const char *const known[] = {"trace", "node", NULL};
    esdm__json_node list, member;
    size_t count = 0, choice = 0;
    esdm_status status = esdm__json_list(node, "then", 2, &list, &count, err);
    if (status != ESDM_OK || !esdm__json_member(node, "then", &list))
        return status;
    if (count == 0)
        return esdm__json_error(&list, err, "at least one of \"trace\", \"node\" is needed");
    rule->then = 0;
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        member = esdm__json_element(&list, i);
        status = esdm__json_choice(&member, known, &choice, err);
        if (status == ESDM_OK && rule->of_files && choice != 0)
            return esdm__json_error(&member, err, "of \"files\" there is a trace alone");
        if (status == ESDM_OK)
            rule->then |= esdm__monitor_module(known[choice], strlen(known[choice]));
    }
    return status;
}

static esdm_status
parse_rule_targets(const esdm__json_node *node, const esdm__site *site, esdm__monitor_rule *rule,
                   esdm_error *err)
{
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = esdm__json_list(node, "targets", TARGETS_MAX, &list, &count, err);
    if (status != ESDM_OK || !esdm__json_member(node, "targets", &list))
        return status;
    if (rule->of_run || rule->of_files || count == 0)
        return esdm__json_error(&list, err,
                                count == 0 ? "at least one name of a target is needed"
                                           : "goes with \"requests\" alone, not with \"%s\"",
                                rule->of_run ? "run" : "files");
    for (size_t i = 0; i < count; i++) {
        esdm__json_node member = esdm__json_element(&list, i);
        const char *name = NULL;
        char *all = NULL;
        status = esdm__json_string(&member, &name, err);
        if (status != ESDM_OK)
            return status;
        if (esdm__site_target_number(site, name) == site->ntargets)
            return esdm__json_error(&member, err, "there is no target '%s'", name);
        if (asprintf(&all, "%s%s\n", rule->targets != NULL ? rule->targets : "", name) < 0)
            return esdm__error_nomem(err, PATH_MAX, "monitor.rules");
        free(rule->targets);
        rule->targets = all;
    }
    return ESDM_OK;
}

static esdm_status
parse_bounds(const esdm__json_node *node, esdm__monitor_rule *rule, esdm_error *err)
{
    esdm__json_node member;
    esdm_status status = ESDM_OK;
    if (esdm__json_member(node, "slower", &member)) {
        rule->slower = json_number_value(member.value);
        if (!json_is_number(member.value) || rule->slower < SLOWER_LEAST ||
            rule->slower > SLOWER_MOST)
            return esdm__json_error(&member, err, "must be a number from %g to %g: so many times",
                                    SLOWER_LEAST, SLOWER_MOST);
    }
    if (esdm__json_member(node, "for", &member)) {
        status = esdm__site_parse_duration(&member, &rule->for_s, err);
        if (status == ESDM_OK && (rule->for_s < 1 || rule->for_s > FOR_MOST_S))
            return esdm__json_error(&member, err, "a time of 1 s to 1 d is needed");
    }
    if (status == ESDM_OK && esdm__json_member(node, "bytes", &member))
        status = esdm__json_size(&member, RULE_BYTES_LEAST, RULE_BYTES_MOST, &rule->bytes, err);
    if (status == ESDM_OK && esdm__json_member(node, "times", &member))
        status = esdm__json_u64(&member, 1, TIMES_MOST, &rule->times, err);
    return status;
}

const esdm__monitor_rule *
esdm__site_files_rule(const esdm__site *site)
{
    for (size_t i = 0; i < site->monitor.nrules; i++) {
        if (site->monitor.rules[i].of_files)
            return &site->monitor.rules[i];
    }
    return NULL;
}

static esdm_status
parse_rule(const esdm__json_node *node, const esdm__site *site, esdm__monitor_rule *ret_rule,
           esdm_error *err)
{
    static const char *const keys[] = {"when", "slower", "targets", "then",
                                       "for",  "bytes",  "times",   NULL};
    static const char *const events[] = {"requests", "run", "files", NULL};
    esdm__json_node member;
    size_t event = 0;
    esdm_status status = esdm__json_is_object(node, err);
    if (status == ESDM_OK)
        status = esdm__json_known_keys(node, keys, err);
    if (status == ESDM_OK)
        status = esdm__json_require(node, "when", &member, err);
    if (status == ESDM_OK)
        status = esdm__json_choice(&member, events, &event, err);
    if (status != ESDM_OK)
        return status;
    if (event != 0 && site->monitor.runs == NULL)
        return esdm__json_error(&member, err, "\"%s\" needs \"runs\", the folder of earlier runs",
                                events[event]);
    *ret_rule = esdm__monitor_rule_default(event == 1);
    ret_rule->of_files = event == 2;
    if (ret_rule->of_files && esdm__site_files_rule(site) != ret_rule)
        return esdm__json_error(&member, err, "one rule for \"files\" is enough");
    status = parse_then(node, ret_rule, err);
    if (status == ESDM_OK)
        status = parse_bounds(node, ret_rule, err);
    return status == ESDM_OK ? parse_rule_targets(node, site, ret_rule, err) : status;
}

/* A site that keeps runs looks for what is not as usual, unless it states other rules, or none. */
static esdm_status
parse_rules(const esdm__json_node *node, esdm__site *site, esdm_error *err)
{
    esdm__monitor_options *options = &site->monitor;
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = esdm__json_list(node, "rules", ESDM__RULES_MAX, &list, &count, err);
    if (status == ESDM_OK && !esdm__json_member(node, "rules", &list) && options->runs != NULL) {
        options->rules[options->nrules++] = esdm__monitor_rule_default(false);
        options->rules[options->nrules++] = esdm__monitor_rule_default(true);
        options->rules[options->nrules] = esdm__monitor_rule_default(false);
        options->rules[options->nrules++].of_files = true;
    }
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node member = esdm__json_element(&list, i);
        status = parse_rule(&member, site, &options->rules[options->nrules++], err);
    }
    /* Sessions do nothing for rules of plain files. */
    if (options->nrules > (esdm__site_files_rule(site) != NULL))
        options->modules |= ESDM__MONITOR_RULES;
    return status;
}

esdm_status
esdm__site_parse_monitor(const esdm__json_node *root, const esdm__site_folder *folder,
                         esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"modules", "stats_file", "trace_file", "buffer", "interval",
                                       "runs",    "runs_names", "rules",      NULL};
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
    return status == ESDM_OK ? parse_rules(&node, site, err) : status;
}
