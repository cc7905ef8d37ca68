/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * "views" of a site: templates such as "{mip_era=CMIP6}/{activity_id}", one level for each
 * attribute, by which containers are browsed like folders. Some are there without being stated.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/parts.h"

#define NAME_MOST  64
#define VIEWS_MOST 256

static const struct {
    const char *name;
    const char *text;
} built_in[] = {
    {"cmip6", "{mip_era=CMIP6}/{activity_id}/{institution_id}/{source_id}/{experiment_id}/"
              "{variant_label}/{table_id}/{variable_id}/{grid_label}"},
    {"cmip7", "{drs_specs}/{mip_era=CMIP7}/{activity_id}/{institution_id}/{source_id}/"
              "{experiment_id}/{variant_label}/{region}/{frequency}/{variable_id}/"
              "{branding_suffix}/{grid_label}"},
    {"cordex", "{project_id=CORDEX-CMIP6}/{activity_id}/{domain_id}/{institution_id}/"
               "{driving_source_id}/{driving_experiment_id}/{driving_variant_label}/{source_id}/"
               "{version_realization}/{frequency}/{variable_id}"},
};

static const char name_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
static const char attribute_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

static void
clear_view(esdm__site_view *view)
{
    for (size_t i = 0; i < view->nlevels; i++) {
        free(view->levels[i].attribute);
        free(view->levels[i].value);
    }
    free(view->name);
    free(view->text);
}

void
esdm__site_views_free(esdm__site *site)
{
    for (size_t i = 0; i < site->nviews; i++)
        clear_view(&site->views[i]);
    free(site->views);
    site->views = NULL;
    site->nviews = 0;
}

/* One "{attribute}" or "{attribute=value}". @param ret_end behind it. NULL: it is none. */
static const char *
wrong_level(const char *text, const char **ret_value, const char **ret_end)
{
    if (text[0] != '{')
        return "a level is {ATTRIBUTE} or {ATTRIBUTE=VALUE}, and '/' parts levels";
    const char *end = strchr(text, '}');
    size_t bytes = strspn(text + 1, attribute_letters);
    const char *equal = text + 1 + bytes;
    if (end == NULL)
        return "a '}' is missing";
    if (bytes == 0 || (equal != end && *equal != '='))
        return "an attribute of a level has letters, digits, '_', '-' and '.'";
    if (equal + 1 == end)
        return "a value is missing behind '='";
    for (const char *at = equal; at < end; at++) {
        if ((unsigned char) *at < 0x20)
            return "a value has no control characters";
    }
    *ret_value = equal == end ? NULL : equal + 1;
    *ret_end = end;
    return NULL;
}

/* Parses the template of a view. @param ret_wrong set when it is wrong. */
static esdm_status
parse_levels(const char *text, esdm__site_view *view, const char **ret_wrong, esdm_error *err)
{
    while (*ret_wrong == NULL) {
        const char *value = NULL, *end = NULL;
        *ret_wrong = wrong_level(text, &value, &end);
        if (*ret_wrong == NULL && view->nlevels == ESDM__VIEW_LEVELS_MOST)
            *ret_wrong = "a view has at most 32 levels";
        if (*ret_wrong != NULL)
            break;
        esdm__view_level *level = &view->levels[view->nlevels++];
        const char *behind = value != NULL ? value - 1 : end;
        level->attribute = strndup(text + 1, (size_t) (behind - text - 1));
        level->value = value != NULL ? strndup(value, (size_t) (end - value)) : NULL;
        if (level->attribute == NULL || (value != NULL && level->value == NULL))
            return esdm__error_nomem(err, strlen(text), "a view");
        for (size_t i = 0; i + 1 < view->nlevels; i++) {
            if (strcmp(view->levels[i].attribute, level->attribute) == 0)
                *ret_wrong = "an attribute stands twice";
        }
        if (end[1] == '\0')
            break;
        text = end + 1;
        if (*text == '/')
            text++;
        else if (*ret_wrong == NULL)
            *ret_wrong = "levels are parted by '/'";
    }
    return ESDM_OK;
}

static esdm_status
add_view(esdm__site *site, const char *name, const char *text, const esdm__json_node *node,
         esdm_error *err)
{
    const char *wrong = NULL;
    esdm__site_view *view = &site->views[site->nviews++];
    view->built_in = node == NULL;
    view->name = strdup(name);
    view->text = strdup(text);
    if (view->name == NULL || view->text == NULL)
        return esdm__error_nomem(err, strlen(text), "a view");
    esdm_status status = parse_levels(text, view, &wrong, err);
    if (status == ESDM_OK && wrong != NULL)
        status = node != NULL ? esdm__json_error(node, err, "'%.200s': %s", text, wrong)
                              : esdm__error_set(err, ESDM_EINVAL, "view '%s': %s", name, wrong);
    return status;
}

static esdm_status
add_stated(esdm__site *site, const esdm__json_node *node, esdm_error *err)
{
    const char *text = NULL;
    size_t bytes = strlen(node->key);
    if (bytes == 0 || bytes > NAME_MOST || strspn(node->key, name_letters) != bytes)
        return esdm__json_error(
            node, err, "a view's name has 1 ... %d letters, digits, '_' and '-'", NAME_MOST);
    if (json_is_false(node->value))
        return ESDM_OK;
    esdm_status status = esdm__json_string(node, &text, err);
    return status == ESDM_OK ? add_view(site, node->key, text, node, err) : status;
}

static int
by_name(const void *a, const void *b)
{
    const esdm__site_view *x = a, *y = b;
    return strcmp(x->name, y->name);
}

esdm_status
esdm__site_parse_views(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    enum { BUILT_IN = sizeof built_in / sizeof *built_in };
    esdm__json_node node = {0}, member;
    bool stated = esdm__json_member(root, "views", &node);
    esdm_status status = stated ? esdm__json_is_object(&node, err) : ESDM_OK;
    size_t count = status == ESDM_OK && stated ? json_object_size(node.value) : 0;
    if (status == ESDM_OK && count > VIEWS_MOST)
        status = esdm__json_error(&node, err, "a site has at most %d views", VIEWS_MOST);
    if (status != ESDM_OK)
        return status;
    site->views = calloc(count + BUILT_IN, sizeof *site->views);
    if (site->views == NULL)
        return esdm__error_nomem(err, count * sizeof *site->views, "views");
    for (size_t i = 0; i < BUILT_IN && status == ESDM_OK; i++) {
        if (!stated || !esdm__json_member(&node, built_in[i].name, &member))
            status = add_view(site, built_in[i].name, built_in[i].text, NULL, err);
    }
    void *at = count > 0 ? json_object_iter(node.value) : NULL;
    for (; at != NULL && status == ESDM_OK; at = json_object_iter_next(node.value, at)) {
        if (esdm__json_member(&node, json_object_iter_key(at), &member))
            status = add_stated(site, &member, err);
    }
    if (status == ESDM_OK && site->nviews > 1)
        qsort(site->views, site->nviews, sizeof *site->views, by_name);
    return status;
}
