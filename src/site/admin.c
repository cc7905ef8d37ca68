/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "site/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plugin/registry.h"

/* ---- parts ---------------------------------------------------------------------------------- */

esdm_status
esdm__part_at(const esdm__site *site, size_t index, esdm__part *ret_part, esdm_error *err)
{
    bool is_meta = index == site->ntargets;
    const esdm__site_target *target = is_meta ? &site->metadata : &site->targets[index];
    const esdm_plugin *plugin = NULL;
    esdm_status status = esdm__plugin_find(is_meta ? ESDM_PLUGIN_META : ESDM_PLUGIN_DATA,
                                           target->plugin, &plugin, err);
    if (status != ESDM_OK) {
        (void) esdm__error_prefix(err, status, "%s", target->path);
        return status;
    }
    *ret_part = (esdm__part){.target = target};
    if (is_meta)
        ret_part->meta = (const esdm_meta_plugin *) plugin;
    else
        ret_part->data = (const esdm_data_plugin *) plugin;
    esdm__site_plugin_config(site, target, &ret_part->config);
    return ESDM_OK;
}

esdm_status
esdm__site_resolve(esdm__site *site, esdm_error *err)
{
    char id[ESDM__UUID_BYTES];
    esdm__part store;
    site->id[0] = '\0';
    esdm_status status = esdm__part_at(site, site->ntargets, &store, err);
    if (status == ESDM_OK)
        status = store.meta->site_id(&store.config, id, err);
    if (status != ESDM_OK)
        return status;
    if (site->stated_id[0] != '\0' && strcmp(site->stated_id, id) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: site.id: the site of this metadata store has the id %s, not "
                               "%s; correct or leave out \"id\", or name another store",
                               site->source, id, site->stated_id);
    memcpy(site->id, id, sizeof id);
    return ESDM_OK;
}

/* ---- reports -------------------------------------------------------------------------------- */

static void
report_nothing(const char *line, void *user)
{
    (void) line;
    (void) user;
}

esdm__report_to
esdm__reporter(esdm_site_reporter report, void *user)
{
    return (esdm__report_to){.report = report != NULL ? report : report_nothing, .user = user};
}

void
esdm__say(const esdm__report_to *to, const char *format, ...)
{
    char line[ESDM_ERROR_MESSAGE_BYTES + 256];
    va_list args;
    va_start(args, format);
    (void) vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to->report(line, to->user);
}

/* ---- options -------------------------------------------------------------------------------- */

esdm_status
esdm__site_load_options(const esdm_site_options **options, esdm__site **ret_site, esdm_error *err)
{
    static const esdm_site_options none = {0};
    if (*options == NULL)
        *options = &none;
    return esdm__site_load((*options)->config_json, (*options)->config_path, ret_site, err);
}

esdm_status
esdm_site_validate(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    esdm__site_free(site);
    return status;
}
