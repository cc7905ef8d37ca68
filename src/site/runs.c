/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What runs of programs did, out of the folder of the site that keeps it. */
#include "monitor/runs.h"
#include "base/arguments.h"
#include "base/error.h"
#include "esdm/monitor.h"
#include "site/site.h"

/* Owned site; its folder is there to be used. */
static esdm_status
load(const char *config_path, esdm__site **ret_site, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load(NULL, config_path, &site, err);
    if (status == ESDM_OK && site->monitor.runs == NULL)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "%s: the site keeps no runs of programs: \"monitor\": {\"runs\": "
                                 "FOLDER} does",
                                 site->source);
    if (status != ESDM_OK) {
        esdm__site_free(site);
        return status;
    }
    *ret_site = site;
    return ESDM_OK;
}

esdm_status
esdm_runs_read(const char *config_path, const char *program, esdm_runs_visitor take, void *context,
               esdm_error *err)
{
    esdm__site *site = NULL;
    ESDM__NEED(err, take);
    esdm_status status = load(config_path, &site, err);
    if (status == ESDM_OK)
        status = esdm__runs_read(site->monitor.runs, program, take, context, err);
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_runs_add(const char *config_path, const char *program, const char *line, esdm_error *err)
{
    esdm__site *site = NULL;
    ESDM__NEED(err, program);
    ESDM__NEED(err, line);
    esdm_status status = load(config_path, &site, err);
    if (status == ESDM_OK)
        status = esdm__runs_add(site->monitor.runs, program, line, err);
    esdm__site_free(site);
    return status;
}
