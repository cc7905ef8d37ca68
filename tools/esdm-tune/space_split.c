/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Over which targets writes are split: "targets" of a policy that holds for everything. Policies
 * of some containers or variables stand before it and count more, as the first one that states a
 * thing decides it.
 */
#include "esdm-tune/esdm-tune.h"

#include <string.h>

#define POLICIES "policies"
#define JOINED   "+"

/* The policy for all that states targets; NULL: there is none. @param ret_at its place. */
static json_t *
policy_for_all(const json_t *config, gsize *ret_at)
{
    const json_t *policies = json_object_get(config, POLICIES);
    for (gsize i = 0; i < json_array_size(policies); i++) {
        json_t *policy = json_array_get(policies, i);
        if (json_object_get(policy, "container") != NULL ||
            json_object_get(policy, "variable") != NULL)
            continue;
        if (json_object_get(policy, "targets") != NULL || json_object_get(policy, "tier") != NULL) {
            *ret_at = i;
            return policy;
        }
    }
    return NULL;
}

/* Names of targets that take new data. Borrowed. */
static GPtrArray *
names_of(const json_t *config)
{
    GPtrArray *names = g_ptr_array_new();
    const json_t *targets = json_object_get(config, "targets");
    for (gsize i = 0; i < json_array_size(targets); i++) {
        const json_t *target = json_array_get(targets, i);
        const char *name = json_string_value(json_object_get(target, "name"));
        if (name != NULL && !json_is_true(json_object_get(target, "retiring")))
            g_ptr_array_add(names, (gpointer) name);
    }
    return names;
}

/* Those of a list, in the order of the site, so that equal ones have equal texts. */
static char *
text_of(const json_t *config, const json_t *list)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GPtrArray) names = names_of(config);
    for (guint i = 0; i < names->len; i++)
        for (gsize k = 0; k < json_array_size(list); k++)
            if (g_strcmp0(json_string_value(json_array_get(list, k)), names->pdata[i]) == 0) {
                g_string_append_printf(text, "%s%s", text->len > 0 ? JOINED : "",
                                       (const char *) names->pdata[i]);
                break;
            }
    return g_string_free(text, FALSE);
}

/* Most copies that anything of the site wants: as many targets are left to each. */
static guint
copies_of(const json_t *config)
{
    json_int_t most = json_integer_value(json_object_get(config, "copies"));
    const json_t *policies = json_object_get(config, POLICIES);
    for (gsize i = 0; i < json_array_size(policies); i++)
        most =
            MAX(most, json_integer_value(json_object_get(json_array_get(policies, i), "copies")));
    return (guint) MAX(most, 1);
}

tool_exit
tune_split_stated(const json_t *config, char **ret_text)
{
    gsize at = 0;
    g_autoptr(GPtrArray) names = names_of(config);
    const json_t *policy = policy_for_all(config, &at);
    if (names->len < 2)
        return tool_usage("--try: split is over targets that take new data, of which this site has "
                          "%u",
                          names->len);
    if (policy != NULL && json_object_get(policy, "tier") != NULL)
        return tool_usage("--try: split: a policy for all containers states a tier");
    *ret_text = policy != NULL ? text_of(config, json_object_get(policy, "targets"))
                               : g_strdup(TUNE_SPLIT_ALL);
    return TOOL_OK;
}

bool
tune_split_is(const json_t *config, const char *text)
{
    g_autoptr(GPtrArray) names = names_of(config);
    g_auto(GStrv) parts = g_strsplit(text, JOINED, -1);
    guint found = 0;
    if (g_str_equal(text, TUNE_SPLIT_ALL))
        return true;
    for (guint i = 0; i < names->len; i++)
        found += g_strv_contains((const char *const *) parts, names->pdata[i]);
    return found > 0 && found == g_strv_length(parts) && found >= copies_of(config);
}

/* All of them, each one alone, and all but one. */
char **
tune_split_values(const json_t *config)
{
    GPtrArray *values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = names_of(config);
    g_ptr_array_add(values, g_strdup(TUNE_SPLIT_ALL));
    for (guint i = 0; i < names->len; i++)
        if (tune_split_is(config, names->pdata[i]))
            g_ptr_array_add(values, g_strdup(names->pdata[i]));
    for (guint i = 0; i < names->len && names->len > 2; i++) {
        GString *text = g_string_new(NULL);
        for (guint k = 0; k < names->len; k++)
            if (k != i)
                g_string_append_printf(text, "%s%s", text->len > 0 ? JOINED : "",
                                       (const char *) names->pdata[k]);
        char *value = g_string_free(text, FALSE);
        if (tune_split_is(config, value))
            g_ptr_array_add(values, value);
        else
            g_free(value);
    }
    g_ptr_array_add(values, NULL);
    return (char **) g_ptr_array_free(values, FALSE);
}

void
tune_split_set(json_t *config, const char *text)
{
    gsize at = 0;
    bool all = g_str_equal(text, TUNE_SPLIT_ALL);
    json_t *policy = policy_for_all(config, &at);
    json_t *policies = json_object_get(config, POLICIES);
    if (all && policy != NULL) {
        (void) json_object_del(policy, "targets");
        if (json_object_size(policy) == 0)
            (void) json_array_remove(policies, at);
    }
    if (all)
        return;
    if (policies == NULL) {
        policies = json_array();
        tool_json_set(config, POLICIES, policies);
    }
    if (policy == NULL) {
        policy = json_object();
        tool_json_append(policies, policy);
    }
    json_t *list = json_array();
    g_auto(GStrv) parts = g_strsplit(text, JOINED, -1);
    for (char **part = parts; *part != NULL; part++)
        tool_json_append(list, json_string(*part));
    tool_json_set(policy, "targets", list);
}
