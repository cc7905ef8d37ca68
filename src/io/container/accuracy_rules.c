/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which accuracy is in force for a dataset: what is stated of it, or what the site's rules
 * say of datasets like it. */

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/accuracy.h"
#include "model/accuracy.h"

/* Whether an attribute is that text. */
static bool
has_text(const esdm_dataset *dataset, const char *name, const char *text)
{
    esdm_attribute attribute;
    const esdm_attributes *list = &dataset->attributes;
    if (!esdm_attribute_find((esdm_attributes *) (uintptr_t) list, name, &attribute, NULL))
        return false;
    if (attribute.type == ESDM_TYPE_CHAR)
        return attribute.count == strlen(text) &&
               memcmp(attribute.values, text, (size_t) attribute.count) == 0;
    const char *const *texts = attribute.values;
    return attribute.type == ESDM_TYPE_STRING && attribute.count == 1 && texts[0] != NULL &&
           strcmp(texts[0], text) == 0;
}

/* Whether it is what the rule says. */
static bool
rule_matches(const esdm__site_rule *rule, const esdm_dataset *dataset)
{
    if (esdm__name_is_shapes(dataset->group->container->name, NULL))
        return false; /* it has what others have, bit for bit */
    if (rule->container != NULL &&
        fnmatch(rule->container, dataset->group->container->name, 0) != 0)
        return false;
    if (rule->variable != NULL && fnmatch(rule->variable, dataset->name, 0) != 0) {
        char *path = esdm__dataset_path(dataset);
        bool fits = path != NULL && fnmatch(rule->variable, path, 0) == 0;
        free(path);
        if (!fits)
            return false;
    }
    return (rule->standard_name == NULL ||
            has_text(dataset, "standard_name", rule->standard_name)) &&
           (rule->units == NULL || has_text(dataset, "units", rule->units));
}

/* Whether it rounds what describes others without naming it. */
static bool
rule_spares(const esdm__site_rule *rule, const esdm_dataset *dataset, const char **ret_kind)
{
    return esdm_accuracy_is_lossy(&rule->accuracy) &&
           !esdm_accuracy_pattern_is_literal(rule->variable) &&
           esdm_dataset_is_auxiliary(dataset, ret_kind);
}

static bool
rule_fits(const esdm__site_rule *rule, const esdm_dataset *dataset)
{
    return rule_matches(rule, dataset) && !rule_spares(rule, dataset, NULL);
}

bool
esdm__accuracy_spared(const esdm_dataset *dataset, size_t *ret_rule, const char **ret_kind)
{
    const esdm__site *site = dataset->group->container->session->site;
    for (size_t i = 0; esdm__accuracy_has_type(dataset->type) && i < site->nrules; i++) {
        if (!rule_matches(&site->rules[i], dataset))
            continue;
        *ret_rule = i;
        return rule_spares(&site->rules[i], dataset, ret_kind);
    }
    return false;
}

const char *
esdm__accuracy_units(const esdm_dataset *dataset, char *buffer, size_t bytes)
{
    esdm_attribute units;
    const esdm_attributes *list = &dataset->attributes;
    if (!esdm_attribute_find((esdm_attributes *) (uintptr_t) list, "units", &units, NULL))
        return NULL;
    const char *const *texts = units.values;
    if (units.type == ESDM_TYPE_CHAR)
        (void) snprintf(buffer, bytes, "%.*s", (int) (units.count < bytes ? units.count : bytes),
                        (const char *) units.values);
    else if (units.type == ESDM_TYPE_STRING && units.count == 1 && texts[0] != NULL)
        (void) snprintf(buffer, bytes, "%s", texts[0]);
    else
        return NULL;
    return buffer;
}

/* What a rule states of a dataset. Units that it names are compared only now, as it does not say
 * of which datasets it is. */
static esdm_status
rule_accuracy(const esdm__site *site, size_t number, const esdm_dataset *dataset,
              esdm_accuracy *ret_accuracy, esdm_error *err)
{
    char units[128];
    esdm_error why = {0};
    const esdm__site_rule *rule = &site->rules[number];
    if (rule->quantities == NULL) {
        *ret_accuracy = rule->accuracy;
        return ESDM_OK;
    }
    esdm_accuracy_init(ret_accuracy);
    esdm_status status = esdm_accuracy_parse(
        ret_accuracy, rule->quantities, esdm__accuracy_units(dataset, units, sizeof units), &why);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_set(err, status, "%s: accuracy[%zu] for '%s': %s",
                                               site->source, number, dataset->name, why.message);
}

esdm_status
esdm__accuracy_find(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy, bool *ret_stated,
                    bool *ret_by_rule, esdm_error *err)
{
    *ret_by_rule = false;
    const esdm__site *site = dataset->group->container->session->site;
    esdm_accuracy own;
    const esdm_accuracy *stated = esdm_dataset_accuracy(dataset, &own) ? &own : NULL;
    bool alone = stated == NULL || stated->stated == ESDM_ACCURACY_MODE;
    for (size_t i = 0; alone && esdm__accuracy_has_type(dataset->type) && i < site->nrules; i++) {
        if (!rule_fits(&site->rules[i], dataset))
            continue;
        esdm_status status = rule_accuracy(site, i, dataset, ret_accuracy, err);
        *ret_stated = *ret_by_rule = status == ESDM_OK;
        if (status != ESDM_OK)
            return status;
        if (stated != NULL && (ret_accuracy->stated & ESDM_ACCURACY_MODE) == 0) {
            ret_accuracy->stated |= ESDM_ACCURACY_MODE;
            ret_accuracy->mode = stated->mode;
        }
        return ESDM_OK;
    }
    *ret_stated = stated != NULL;
    if (stated != NULL)
        *ret_accuracy = *stated;
    return ESDM_OK;
}

bool
esdm__accuracy_in_force(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy)
{
    esdm_accuracy found;
    bool stated = false;
    bool by_rule;
    if (esdm__accuracy_find(dataset, &found, &stated, &by_rule, NULL) != ESDM_OK || !stated)
        return false;
    *ret_accuracy = found;
    return true;
}
