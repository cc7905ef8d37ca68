/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What runs of programs did, out of the folder of the site that keeps it. */
#include "monitor/runs.h"

#include <errno.h>

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
    if (status == ESDM_ENOENT && site != NULL)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "monitor.runs: folder '%s' does not exist (esdm-mkfs makes it)",
                                 site->monitor.runs);
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

esdm_status
esdm_runs_rule(const char *config_path, esdm_files_rule *ret_rule, esdm_error *err)
{
    esdm__site *site = NULL;
    ESDM__NEED(err, ret_rule);
    esdm_status status = load(config_path, &site, err);
    const esdm__monitor_rule *rule = status == ESDM_OK ? esdm__site_files_rule(site) : NULL;
    if (rule != NULL)
        *ret_rule = (esdm_files_rule){rule->slower, rule->for_s, rule->bytes, rule->times};
    else if (status == ESDM_OK)
        status = esdm__error_set(err, ESDM_ENOENT, "%s: no rule for \"files\"", site->source);
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_runs_trace(const char *config_path, const char *program, int *ret_file, char **ret_path,
                esdm_error *err)
{
    esdm__site *site = NULL;
    ESDM__NEED(err, program);
    ESDM__NEED(err, ret_file);
    ESDM__NEED(err, ret_path);
    char *path = NULL;
    esdm_status status = load(config_path, &site, err);
    if (status == ESDM_OK) {
        int file = esdm__runs_trace(site->monitor.runs, program, &path);
        if (path == NULL)
            status = esdm__error_set_errno(err, errno, "monitor.runs: %s", site->monitor.runs);
        else
            *ret_file = file;
    }
    if (status == ESDM_OK)
        *ret_path = path;
    esdm__site_free(site);
    return status;
}
