/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the site configuration says about the accuracy of datasets and about speeds. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/accuracy_units.h"
#include "site/parts.h"

#define MAX_RULES 1024

static esdm_status
parse_rule(const esdm__json_node *node, esdm__site_rule *rule, esdm_error *err)
{
    static const char *const keys[] = {"variable", "container",  "standard_name",
                                       "units",    "quantities", NULL};
    esdm__json_node member;
    const char *text = NULL;
    esdm_error why = {0};
    esdm_status status = esdm__json_known_keys(node, keys, err);
    if (status != ESDM_OK ||
        (status = esdm__site_parse_pattern(node, "variable", &rule->variable, err)) != ESDM_OK ||
        (status = esdm__site_parse_pattern(node, "container", &rule->container, err)) != ESDM_OK ||
        (status = esdm__site_parse_pattern(node, "standard_name", &rule->standard_name, err)) !=
            ESDM_OK ||
        (status = esdm__site_parse_pattern(node, "units", &rule->units, err)) != ESDM_OK ||
        (status = esdm__json_require(node, "quantities", &member, err)) != ESDM_OK ||
        (status = esdm__json_string(&member, &text, err)) != ESDM_OK)
        return status;
    esdm_accuracy_init(&rule->accuracy);
    status = esdm_accuracy_parse(&rule->accuracy, text, rule->units, &why);
    if (status != ESDM_OK && rule->units == NULL &&
        esdm_accuracy_parse(&rule->accuracy, text, esdm__units_any, NULL) == ESDM_OK) {
        status = ESDM_OK;
        rule->quantities = strdup(text);
        if (rule->quantities == NULL)
            return esdm__error_nomem(err, strlen(text), "rules");
    }
    if (status != ESDM_OK)
        return esdm__json_error(&member, err, "%s", why.message);
    if (rule->accuracy.stated == 0)
        return esdm__json_error(&member, err, "states nothing");
    return ESDM_OK;
}

static esdm_status
parse_speeds(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"network", "node_local", "shared", NULL};
    esdm__json_node node, member;
    if (!esdm__json_member(root, "speeds", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    for (int i = 0; status == ESDM_OK && keys[i] != NULL; i++)
        if (esdm__json_member(&node, keys[i], &member))
            status =
                esdm__json_size(&member, 1, INT64_MAX, &site->speeds[ESDM_SPEED_NETWORK + i], err);
    return status;
}

esdm_status
esdm__site_parse_accuracy(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    esdm__json_node list;
    size_t count = 0;
    esdm_status status = parse_speeds(root, site, err);
    if (status == ESDM_OK)
        status = esdm__json_list(root, "accuracy", MAX_RULES, &list, &count, err);
    if (status != ESDM_OK || count == 0)
        return status;
    site->rules = calloc(count, sizeof *site->rules);
    if (site->rules == NULL)
        return esdm__error_nomem(err, count * sizeof *site->rules, "rules");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node node = esdm__json_element(&list, i);
        site->nrules++;
        status = parse_rule(&node, &site->rules[i], err);
    }
    return status;
}

void
esdm__site_rules_free(esdm__site *site)
{
    for (size_t i = 0; i < site->nrules; i++) {
        free(site->rules[i].variable);
        free(site->rules[i].container);
        free(site->rules[i].standard_name);
        free(site->rules[i].units);
        free(site->rules[i].quantities);
    }
    free(site->rules);
}
