/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration wants of the fragments of some variables: "copies" and "policies". */

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/names.h"
#include "site/parts.h"

#define MAX_POLICIES 1024

/* ---- parsing ------------------------------------------------------------------------------ */

/* Targets of which each can hold another copy. Those of one node are one only if they are two. */
static esdm_status
parse_copies(const esdm__json_node *node, const esdm__site *site, uint32_t *ret_copies,
             esdm_error *err)
{
    uint64_t copies = 1;
    esdm_status status = esdm__json_u64(node, 1, ESDM__COPIES_MAX, &copies, err);
    if (status != ESDM_OK)
        return status;
    if (copies > site->ntargets)
        return esdm__json_error(node, err, "%u copies need as many targets; the site has %zu",
                                (unsigned) copies, site->ntargets);
    *ret_copies = (uint32_t) copies;
    return ESDM_OK;
}

static esdm_status
parse_shapes(const esdm__json_node *node, uint32_t *ret_shapes, esdm_error *err)
{
    uint64_t shapes = 1;
    esdm_status status = esdm__json_u64(node, 1, 2, &shapes, err);
    if (status == ESDM_OK)
        *ret_shapes = (uint32_t) shapes;
    return status;
}

esdm_status
esdm__site_parse_pattern(const esdm__json_node *object, const char *key, char **ret_pattern,
                         esdm_error *err)
{
    esdm__json_node member;
    const char *text = NULL;
    if (!esdm__json_member(object, key, &member))
        return ESDM_OK;
    esdm_status status = esdm__json_string(&member, &text, err);
    if (status != ESDM_OK)
        return status;
    if (text[0] == '\0')
        return esdm__json_error(&member, err, "an empty pattern matches nothing");
    *ret_pattern = strdup(text);
    return *ret_pattern != NULL
               ? ESDM_OK
               : esdm__error_nomem(err, strlen(text) + 1, "the site configuration");
}

/* Snapshots are of whole containers. */
static esdm_status
parse_retention(const esdm__json_node *node, esdm__site_policy *policy, esdm_error *err)
{
    esdm__json_node member;
    uint64_t history = 0;
    esdm_status status = ESDM_OK;
    if (esdm__json_member(node, "history", &member))
        status = esdm__json_u64(&member, 1, UINT32_MAX, &history, err);
    if (status == ESDM_OK && history > 0 && policy->variable != NULL)
        return esdm__json_error(&member, err, "a history is one of containers, not of variables");
    policy->history = (uint32_t) history;
    if (status != ESDM_OK || !esdm__json_member(node, "history_age", &member))
        return status;
    policy->has_age = true;
    if (policy->variable != NULL)
        return esdm__json_error(&member, err, "a history is one of containers, not of variables");
    return esdm__site_parse_duration(&member, &policy->history_age_s, err);
}

static esdm_status
parse_dedup(const esdm__json_node *member, esdm__dedup *ret_dedup, esdm_error *err)
{
    const char *text = NULL;
    esdm_status status = esdm__json_string(member, &text, err);
    if (status != ESDM_OK)
        return status;
    if (strcmp(text, "write") != 0 && strcmp(text, "off") != 0 && strcmp(text, "content") != 0)
        return esdm__json_error(member, err,
                                "\"%s\" is neither \"write\" (what is equal to what is stored "
                                "already is not stored once more), \"content\" (also where it has "
                                "moved along a dimension) nor \"off\"",
                                text);
    *ret_dedup = text[0] == 'w'   ? ESDM__DEDUP_WRITE
                 : text[0] == 'c' ? ESDM__DEDUP_CONTENT
                                  : ESDM__DEDUP_OFF;
    return ESDM_OK;
}

static esdm_status
parse_policy_dedup(const esdm__json_node *node, esdm__site_policy *policy, esdm_error *err)
{
    esdm__json_node member;
    if (!esdm__json_member(node, "dedup", &member))
        return ESDM_OK;
    if (policy->variable != NULL)
        return esdm__json_error(&member, err, "\"dedup\" is said of containers, not of variables");
    return parse_dedup(&member, &policy->dedup, err);
}

static esdm_status
parse_policy(const esdm__json_node *node, const esdm__site *site, esdm__site_policy *policy,
             esdm_error *err)
{
    static const char *const keys[] = {"container",   "variable", "copies", "targets",
                                       "tier",        "prefer",   "access", "history",
                                       "history_age", "dedup",    "shapes", NULL};
    esdm__json_node member;
    esdm_status status = esdm__json_is_object(node, err);
    if (status == ESDM_OK)
        status = esdm__json_known_keys(node, keys, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_pattern(node, "container", &policy->container, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_pattern(node, "variable", &policy->variable, err);
    if (status == ESDM_OK && esdm__json_member(node, "copies", &member))
        status = parse_copies(&member, site, &policy->copies, err);
    if (status == ESDM_OK && esdm__json_member(node, "shapes", &member))
        status = parse_shapes(&member, &policy->shapes, err);
    if (status == ESDM_OK)
        status = parse_retention(node, policy, err);
    if (status == ESDM_OK)
        status = parse_policy_dedup(node, policy, err);
    return status == ESDM_OK ? esdm__site_parse_placement(node, site, policy, err) : status;
}

esdm_status
esdm__site_parse_policies(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    esdm__json_node member, list;
    esdm_status status = ESDM_OK;
    site->copies = 1;
    site->shapes = 1;
    site->prefer = ESDM__PREFER_FAST;
    site->dedup = ESDM__DEDUP_OFF;
    if (esdm__json_member(root, "copies", &member))
        status = parse_copies(&member, site, &site->copies, err);
    if (status == ESDM_OK && esdm__json_member(root, "shapes", &member))
        status = parse_shapes(&member, &site->shapes, err);
    if (status == ESDM_OK && esdm__json_member(root, "prefer", &member))
        status = esdm__site_parse_prefer(&member, &site->prefer, err);
    if (status == ESDM_OK && esdm__json_member(root, "dedup", &member))
        status = parse_dedup(&member, &site->dedup, err);
    size_t count = 0;
    if (status == ESDM_OK)
        status = esdm__json_list(root, "policies", MAX_POLICIES, &list, &count, err);
    if (status != ESDM_OK || count == 0)
        return status;
    site->policies = calloc(count, sizeof *site->policies);
    if (site->policies == NULL)
        return esdm__error_nomem(err, count * sizeof *site->policies, "policies");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node node = esdm__json_element(&list, i);
        status = parse_policy(&node, site, &site->policies[site->npolicies++], err);
    }
    return status;
}

void
esdm__site_clear_policies(esdm__site *site)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        free(site->policies[i].container);
        free(site->policies[i].variable);
        free(site->policies[i].allowed);
    }
    free(site->policies);
    site->policies = NULL;
    site->npolicies = 0;
}

/* ---- asking ------------------------------------------------------------------------------- */

static bool
matches(const esdm__site_policy *policy, const char *container, const char *path)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    size_t bytes;
    if (esdm__name_is_shapes(container, &bytes) && bytes < sizeof base) {
        memcpy(base, container, bytes);
        base[bytes] = '\0';
        container = base;
    }
    if (esdm__name_branch(container, &bytes) != NULL && bytes < sizeof base) {
        memmove(base, container, bytes); /* what holds for a container holds for its branches */
        base[bytes] = '\0';
        container = base;
    }
    if (policy->container != NULL && fnmatch(policy->container, container, 0) != 0)
        return false;
    if (policy->variable == NULL)
        return true;
    const char *name = strrchr(path, '/');
    bool whole = strchr(policy->variable, '/') != NULL || name == NULL;
    return fnmatch(policy->variable, whole ? path : name + 1, 0) == 0;
}

uint32_t
esdm__site_copies(const esdm__site *site, const char *container, const char *path)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->copies > 0 && matches(policy, container, path))
            return policy->copies;
    }
    return site->copies;
}

uint32_t
esdm__site_shapes(const esdm__site *site, const char *container, const char *path)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->shapes > 0 && matches(policy, container, path))
            return policy->shapes;
    }
    return site->shapes;
}

bool
esdm__site_has_shapes(const esdm__site *site)
{
    bool has = site->shapes > 1;
    for (size_t i = 0; i < site->npolicies; i++)
        has = has || site->policies[i].shapes > 1;
    return has;
}

const bool *
esdm__site_allowed(const esdm__site *site, const char *container, const char *path)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->allowed != NULL && matches(policy, container, path))
            return policy->allowed;
    }
    return NULL;
}

esdm__prefer
esdm__site_prefer(const esdm__site *site, const char *container, const char *path)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->prefer != ESDM__PREFER_UNSTATED && matches(policy, container, path))
            return policy->prefer;
    }
    return site->prefer;
}

esdm__access
esdm__site_access(const esdm__site *site, const char *container, const char *path)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->access != ESDM__ACCESS_UNSTATED && matches(policy, container, path))
            return policy->access;
    }
    return ESDM__ACCESS_UNSTATED;
}

esdm__retention
esdm__site_retention(const esdm__site *site, const char *container)
{
    esdm__retention found = {.count = 0};
    bool has_age = esdm__name_is_shapes(container, NULL); /* only the newest one is of use */
    if (has_age)
        found.count = 1;
    for (size_t i = 0; i < site->npolicies && (found.count == 0 || !has_age); i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->variable != NULL || !matches(policy, container, "/"))
            continue;
        if (found.count == 0)
            found.count = policy->history;
        if (!has_age && policy->has_age)
            found.age_s = policy->history_age_s;
        has_age = has_age || policy->has_age;
    }
    if (found.count == 0)
        found.count = site->history;
    if (!has_age)
        found.age_s = site->history_age_s;
    return found;
}

esdm__dedup
esdm__site_dedup(const esdm__site *site, const char *container)
{
    for (size_t i = 0; i < site->npolicies; i++) {
        const esdm__site_policy *policy = &site->policies[i];
        if (policy->dedup != ESDM__DEDUP_UNSTATED && policy->variable == NULL &&
            matches(policy, container, "/"))
            return policy->dedup;
    }
    return site->dedup;
}

uint32_t
esdm__site_most_copies(const esdm__site *site)
{
    uint32_t most = site->copies;
    for (size_t i = 0; i < site->npolicies; i++)
        most = site->policies[i].copies > most ? site->policies[i].copies : most;
    return most;
}
