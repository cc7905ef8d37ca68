/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "site/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/error.h"
#include "site/parts.h"

static const char text_source[] = "(text)";
static const char embedded_source[] = "(embedded default)";
static const char system_config[] = "/etc/esdm/site.json";

/* ---- finding ------------------------------------------------------------------------------ */

/* Whether something stands at a place where a configuration is looked for. What cannot be reached
 * (a home folder of somebody else, say) counts as absent. */
static bool
is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static esdm_status
copy_path(const char *path, char **ret_path, esdm_error *err)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(path) + 1, "a path");
    *ret_path = copy;
    return ESDM_OK;
}

/* @param ret_named whether $ESDM_CONFIG names it. */
static esdm_status
find(char **ret_path, bool *ret_named, esdm_error *err)
{
    /* secure_getenv: a setuid program must not be told whom to obey, nor by its current folder. */
    const char *named = secure_getenv("ESDM_CONFIG");
    *ret_named = named != NULL && named[0] != '\0';
    if (named != NULL && named[0] != '\0') {
        struct stat info;
        if (stat(named, &info) != 0)
            return esdm__error_set_errno(err, errno,
                                         "ESDM_CONFIG, which must name the file of a site "
                                         "configuration (JSON), is '%s': cannot open it",
                                         named);
        if (S_ISDIR(info.st_mode))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "ESDM_CONFIG is '%s', a folder; it must name the file of a site "
                                   "configuration (JSON), such as '%s/site.json'",
                                   named, named);
        if (access(named, R_OK) != 0)
            return esdm__error_set_errno(err, errno, "ESDM_CONFIG: cannot read '%s'", named);
        return copy_path(named, ret_path, err);
    }
    if (getauxval(AT_SECURE) == 0 && is_there("./esdm.json"))
        return copy_path("./esdm.json", ret_path, err);
    char *path = NULL;
    esdm_status status = esdm__site_user_config(&path, err);
    if (status != ESDM_OK)
        return status;
    if (path != NULL && is_there(path)) {
        *ret_path = path;
        return ESDM_OK;
    }
    free(path);
    if (is_there(system_config))
        return copy_path(system_config, ret_path, err);
    *ret_path = NULL;
    return ESDM_OK;
}

esdm_status
esdm_site_find(char **ret_path, esdm_error *err)
{
    ESDM__NEED(err, ret_path);
    bool named = false;
    return find(ret_path, &named, err);
}

/* ---- loading ------------------------------------------------------------------------------ */

static esdm_status
site_from_json(json_t *root, const char *source, bool embedded, const esdm__site_folder *folder,
               esdm__site **ret_site, esdm_error *err)
{
    esdm__site *site = calloc(1, sizeof *site);
    if (site == NULL)
        return esdm__error_nomem(err, sizeof *site, "the site configuration");
    site->embedded = embedded;
    esdm_status status = copy_path(source, &site->source, err);
    if (status == ESDM_OK)
        status = esdm__site_parse(root, folder, site, err);
    if (status == ESDM_OK)
        *ret_site = site;
    else
        esdm__site_free(site);
    return status;
}

static esdm_status
load_text(const char *text, esdm__site **ret_site, esdm_error *err)
{
    json_t *root = NULL;
    char *base = NULL;
    esdm_status status = esdm__json_parse(text, strlen(text), text_source, &root, err);
    if (status == ESDM_OK)
        status = esdm__site_folder_of(NULL, &base, err);
    if (status == ESDM_OK) {
        const esdm__site_folder folder = {.base = base, .expand = true};
        status = site_from_json(root, text_source, false, &folder, ret_site, err);
    }
    free(base);
    json_decref(root);
    return status;
}

/* Reads a file, and tells what it is. @param found nobody named it: only a trusted one is read. */
static esdm_status
read_file(const char *path, bool found, struct stat *ret_file, json_t **ret_root, esdm_error *err)
{
    /* Whoever put a pipe there would make all programs hang. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | (found ? O_NONBLOCK : 0));
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        int why = errno;
        if (fd >= 0)
            (void) close(fd);
        return esdm__error_set_errno(err, why, "cannot open '%s'", path);
    }
    esdm_status status = ESDM_OK;
    if (fstat(fd, ret_file) != 0)
        status = esdm__error_set_errno(err, errno, "cannot read '%s'", path);
    else if (found)
        status = esdm__site_check_owner(path, ret_file, err);
    if (status == ESDM_OK)
        status = esdm__json_load_file(file, path, ret_root, err);
    (void) fclose(file);
    return status;
}

/* Best effort. */
static void
warn_of_secret(esdm__site *site, const char *path, const struct stat *file, const json_t *root)
{
    if ((file->st_mode & S_IROTH) == 0 || !S_ISREG(file->st_mode) || !esdm__site_holds_secret(root))
        return;
    if (asprintf(&site->warning,
                 "%s: everybody can read this file, and a secret key or a password stands in it: "
                 "chmod o-r '%s'",
                 path, path) < 0)
        site->warning = NULL;
}

static esdm_status
load_file(const char *path, bool found, esdm__site **ret_site, esdm_error *err)
{
    json_t *root = NULL;
    char *base = NULL;
    struct stat file = {0};
    esdm_status status = read_file(path, found, &file, &root, err);
    if (status != ESDM_OK && err != NULL && strncmp(err->message, "cannot ", 7) == 0)
        return esdm__error_prefix(err, status, "the site configuration");
    if (status != ESDM_OK)
        return status;
    status = esdm__site_folder_of(path, &base, err);
    if (status == ESDM_OK) {
        const esdm__site_folder folder = {.base = base, .expand = true};
        status = site_from_json(root, path, false, &folder, ret_site, err);
    }
    if (status == ESDM_OK)
        warn_of_secret(*ret_site, path, &file, root);
    free(base);
    json_decref(root);
    return status;
}

static esdm_status
load_embedded(esdm__site **ret_site, esdm_error *err)
{
    char *base = NULL;
    esdm_status status = esdm__site_data_folder(&base, err);
    if (status != ESDM_OK)
        return status;
    json_t *root = json_pack("{s:[{s:s, s:s, s:s}], s:{s:s, s:s}}", "targets", "name", "local",
                             "plugin", "posix", "directory", "data", "metadata", "plugin", "sqlite",
                             "directory", "meta");
    if (root == NULL) {
        status = esdm__error_nomem(err, 256, "the default site");
    } else {
        const esdm__site_folder folder = {.base = base, .expand = false};
        status = site_from_json(root, embedded_source, true, &folder, ret_site, err);
    }
    json_decref(root);
    free(base);
    return status;
}

esdm_status
esdm__site_load(const char *config_json, const char *config_path, esdm__site **ret_site,
                esdm_error *err)
{
    if (config_json != NULL)
        return load_text(config_json, ret_site, err);
    if (config_path != NULL)
        return load_file(config_path, false, ret_site, err);
    char *path = NULL;
    bool named = false;
    esdm_status status = find(&path, &named, err);
    if (status != ESDM_OK)
        return status;
    status = path != NULL ? load_file(path, !named, ret_site, err) : load_embedded(ret_site, err);
    free(path);
    return status;
}

static void
target_clear(esdm__site_target *target)
{
    free(target->name);
    free(target->plugin);
    free(target->json);
    free(target->tier);
    free(target->path);
}

void
esdm__site_free(esdm__site *site)
{
    if (site == NULL)
        return;
    for (size_t i = 0; i < site->ntargets; i++)
        target_clear(&site->targets[i]);
    free(site->targets);
    target_clear(&site->metadata);
    esdm__site_clear_policies(site);
    for (size_t i = 0; i < site->nroutes; i++)
        free(site->routes[i]);
    free(site->routes);
    for (size_t i = 0; i < site->references.nroots; i++)
        free(site->references.roots[i]);
    free(site->references.roots);
    free(site->references.ca_file);
    if (site->references.s3 != NULL)
        explicit_bzero(site->references.s3, strlen(site->references.s3));
    free(site->references.s3);
    esdm__site_rules_free(site);
    esdm__site_views_free(site);
    esdm__site_join_free(site);
    free(site->engine.codec);
    free(site->engine.codec_on_request);
    esdm__monitor_options_clear(&site->monitor);
    free(site->name);
    free(site->source);
    free(site->warning);
    free(site);
}

uint64_t
esdm__site_target_memory(const esdm__site *site)
{
    return site->engine.memory_bytes / 8 / (site->ntargets > 0 ? site->ntargets : 1);
}

void
esdm__site_plugin_config(const esdm__site *site, const esdm__site_target *target,
                         esdm_plugin_config *ret_config)
{
    /* What buffers and caches of the engine leave. */
    uint64_t memory = esdm__site_target_memory(site);
    *ret_config = (esdm_plugin_config){.name = target->name,
                                       .json = target->json,
                                       .path = target->path,
                                       .site_id = site->id,
                                       .memory_bytes = memory,
                                       .durable = site->durability == ESDM__DURABLE_SYSTEM};
}
