/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/mark.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

static const char *
text_of(const json_t *mark, const char *key)
{
    return json_string_value(json_object_get(mark, key));
}

/* Whether it is a mark at all, and one that this version understands. */
static esdm_status
check_format(const esdm__mark *expected, const json_t *mark, esdm_error *err)
{
    json_int_t format = json_integer_value(json_object_get(mark, "format"));
    if (format < 1 || text_of(mark, "plugin") == NULL || text_of(mark, "target") == NULL ||
        text_of(mark, "site") == NULL)
        return esdm__error_set(err, ESDM_ECORRUPT, "%s: the mark '%s' is damaged", expected->path,
                               expected->file);
    if (format > ESDM__MARK_FORMAT)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "%s: %s has format %lld, newer than the %d that this version of "
                               "ESDM knows; use a newer ESDM",
                               expected->path, expected->where, (long long) format,
                               ESDM__MARK_FORMAT);
    return ESDM_OK;
}

static esdm_status
check_site(const esdm__mark *expected, const json_t *mark, esdm_error *err)
{
    const char *site = text_of(mark, "site");
    if (expected->site_id[0] == '\0')
        return esdm__error_set(
            err, ESDM_EINVAL,
            "%s: %s belongs to another site (id %.32s): the metadata store of "
            "this one is not there. If it is lost \"esdm-mkfs --restore\" brings "
            "it back from the targets; else name the metadata store of that "
            "site, or choose another place",
            expected->path, expected->where, site);
    if (strcmp(site, expected->site_id) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: %s belongs to another site (id %.32s): the metadata store of "
                               "this one has id %.32s. Name the metadata store of that site, or "
                               "choose another place",
                               expected->path, expected->where, site, expected->site_id);
    return ESDM_OK;
}

static esdm_status
check_target(const esdm__mark *expected, const json_t *mark, esdm_error *err)
{
    const char *plugin = text_of(mark, "plugin");
    const char *target = text_of(mark, "target");
    if (strcmp(plugin, expected->plugin) != 0 || strcmp(target, expected->target) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: %s belongs to target '%.100s' of plug-in '%.32s', not to "
                               "'%.100s' of '%s'",
                               expected->path, expected->where, target, plugin, expected->target,
                               expected->plugin);
    return ESDM_OK;
}

/* @param ret_mark owned, json_decref(). */
static esdm_status
load(const esdm__mark *expected, const char *text, size_t bytes, json_t **ret_mark, esdm_error *err)
{
    esdm_error why = {0};
    json_t *mark = NULL;
    esdm_status status = esdm__json_parse(text, bytes, expected->file, &mark, &why);
    if (status != ESDM_OK)
        return esdm__error_set(err, status == ESDM_EINVAL ? ESDM_ECORRUPT : status,
                               "%s: the mark '%s' is damaged: %.150s", expected->path,
                               expected->file, why.message);
    status = check_format(expected, mark, err);
    if (status == ESDM_OK)
        *ret_mark = mark;
    else
        json_decref(mark);
    return status;
}

esdm_status
esdm__mark_verify(const esdm__mark *expected, const char *text, size_t bytes, esdm_error *err)
{
    json_t *mark = NULL;
    esdm_status status = load(expected, text, bytes, &mark, err);
    if (status == ESDM_OK)
        status = check_site(expected, mark, err);
    if (status == ESDM_OK)
        status = check_target(expected, mark, err);
    json_decref(mark);
    return status;
}

esdm_status
esdm__mark_site_id(const esdm__mark *expected, const char *text, size_t bytes,
                   char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    json_t *mark = NULL;
    esdm_status status = load(expected, text, bytes, &mark, err);
    if (status == ESDM_OK)
        status = check_target(expected, mark, err);
    if (status != ESDM_OK) {
        json_decref(mark);
        return status;
    }
    const char *site = text_of(mark, "site");
    if (strlen(site) == ESDM__UUID_BYTES - 1 &&
        strspn(site, "0123456789abcdef") == ESDM__UUID_BYTES - 1)
        memcpy(ret_id, site, ESDM__UUID_BYTES);
    else
        status = esdm__error_set(err, ESDM_ECORRUPT, "%s: the mark '%s' has no valid id of a site",
                                 expected->path, expected->file);
    json_decref(mark);
    return status;
}

char *
esdm__mark_text(const esdm__mark *mark)
{
    json_t *object = json_pack("{s:i, s:s, s:s, s:s}", "format", ESDM__MARK_FORMAT, "plugin",
                               mark->plugin, "target", mark->target, "site", mark->site_id);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    return text;
}
