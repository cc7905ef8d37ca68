/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What the configuration says about where fragments go. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/parts.h"

#define TIER_BYTES_MAX 63u
#define COST_MAX       1e12

esdm_status
esdm__site_parse_target_keys(const esdm__json_node *node, esdm__site_target *target,
                             esdm_error *err)
{
    esdm__json_node member;
    const char *tier = NULL;
    esdm_status status = ESDM_OK;
    if (esdm__json_member(node, "tier", &member)) {
        status = esdm__json_string(&member, &tier, err);
        if (status == ESDM_OK && (tier[0] == '\0' || strlen(tier) > TIER_BYTES_MAX))
            status = esdm__json_error(&member, err, "a tier has 1 ... %u bytes", TIER_BYTES_MAX);
        if (status == ESDM_OK && (target->tier = strdup(tier)) == NULL)
            status = esdm__error_nomem(err, strlen(tier) + 1, "the site configuration");
    }
    if (status == ESDM_OK && esdm__json_member(node, "cost", &member)) {
        double cost = json_number_value(member.value);
        if (!json_is_number(member.value) || !(cost >= 0) || cost > COST_MAX)
            return esdm__json_error(&member, err, "expected a number from 0 on");
        target->cost = cost;
    }
    if (status == ESDM_OK && esdm__json_member(node, "reserve", &member))
        status = esdm__json_size(&member, 0, INT64_MAX, &target->reserve_bytes, err);
    if (status == ESDM_OK && esdm__json_member(node, "retiring", &member)) {
        if (!json_is_boolean(member.value))
            return esdm__json_error(&member, err, "expected true or false");
        target->retiring = json_is_true(member.value);
    }
    return status;
}

esdm_status
esdm__site_parse_prefer(const esdm__json_node *node, esdm__prefer *ret_prefer, esdm_error *err)
{
    static const char *const choices[] = {"speed", "cost", NULL};
    size_t choice = 0;
    esdm_status status = esdm__json_choice(node, choices, &choice, err);
    if (status == ESDM_OK)
        *ret_prefer = choice == 0 ? ESDM__PREFER_FAST : ESDM__PREFER_CHEAP;
    return status;
}

size_t
esdm__site_target_number(const esdm__site *site, const char *name)
{
    size_t i = 0;
    while (i < site->ntargets && strcmp(site->targets[i].name, name) != 0)
        i++;
    return i;
}

static esdm_status
allow_named(const esdm__json_node *list, const esdm__site *site, bool *allowed, esdm_error *err)
{
    esdm_status status = esdm__json_is_array(list, err);
    if (status != ESDM_OK)
        return status;
    size_t count = json_array_size(list->value);
    if (count == 0)
        return esdm__json_error(list, err, "without any target there is nowhere to write");
    for (size_t i = 0; i < count; i++) {
        esdm__json_node element = esdm__json_element(list, i);
        const char *name = NULL;
        status = esdm__json_string(&element, &name, err);
        if (status != ESDM_OK)
            return status;
        size_t number = esdm__site_target_number(site, name);
        if (number == site->ntargets)
            return esdm__json_error(&element, err, "there is no target \"%s\"", name);
        allowed[number] = true;
    }
    return ESDM_OK;
}

static esdm_status
allow_tier(const esdm__json_node *node, const esdm__site *site, bool *allowed, esdm_error *err)
{
    const char *tier = NULL;
    bool any = false;
    esdm_status status = esdm__json_string(node, &tier, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < site->ntargets; i++) {
        const char *has = site->targets[i].tier;
        allowed[i] = has != NULL && strcmp(has, tier) == 0;
        any = any || allowed[i];
    }
    return any ? ESDM_OK : esdm__json_error(node, err, "no target has the tier \"%s\"", tier);
}

static esdm_status
check_copies(const esdm__json_node *node, const esdm__site *site, const esdm__site_policy *policy,
             esdm_error *err)
{
    uint32_t count = 0;
    for (size_t i = 0; i < site->ntargets; i++)
        count += policy->allowed[i];
    if (policy->copies <= count)
        return ESDM_OK;
    return esdm__json_error(node, err, "%u copies need as many targets; %u %s allowed",
                            (unsigned) policy->copies, (unsigned) count, count == 1 ? "is" : "are");
}

esdm_status
esdm__site_parse_placement(const esdm__json_node *node, const esdm__site *site,
                           esdm__site_policy *policy, esdm_error *err)
{
    static const char *const patterns[] = {"maps", "time-series", "both", NULL};
    static const esdm__access accesses[] = {ESDM__ACCESS_MAPS, ESDM__ACCESS_SERIES,
                                            ESDM__ACCESS_BOTH};
    esdm__json_node targets, tier, member;
    esdm_status status = ESDM_OK;
    bool by_name = esdm__json_member(node, "targets", &targets);
    bool by_tier = esdm__json_member(node, "tier", &tier);
    size_t choice = 0;
    if (by_name && by_tier)
        return esdm__json_error(&tier, err, "\"targets\" and \"tier\" exclude each other");
    if (by_name || by_tier) {
        policy->allowed = calloc(site->ntargets, sizeof *policy->allowed);
        if (policy->allowed == NULL)
            return esdm__error_nomem(err, site->ntargets, "the site configuration");
        status = by_name ? allow_named(&targets, site, policy->allowed, err)
                         : allow_tier(&tier, site, policy->allowed, err);
        if (status == ESDM_OK)
            status = check_copies(node, site, policy, err);
    }
    if (status == ESDM_OK && esdm__json_member(node, "prefer", &member))
        status = esdm__site_parse_prefer(&member, &policy->prefer, err);
    if (status == ESDM_OK && esdm__json_member(node, "access", &member)) {
        status = esdm__json_choice(&member, patterns, &choice, err);
        if (status == ESDM_OK)
            policy->access = accesses[choice];
    }
    return status;
}
