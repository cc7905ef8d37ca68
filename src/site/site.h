/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_SITE_H
#define ESDM_SITE_SITE_H

/**
 * @file
 * The site configuration, parsed and checked (schemas/site.schema.json). Immutable after loading,
 * but for the id.
 *
 * A site is its metadata store: the id in the store's mark, random since it was made, is the
 * site's, and what each target is marked with. Neither the name nor an id in the configuration can
 * take over a target.
 */

#include "base/ids.h"
#include "esdm/site.h"
#include "esdm/sys/plugin.h"

typedef enum esdm__durability {
    ESDM__DURABLE_PROCESS, /* survives a killed process (default) */
    ESDM__DURABLE_SYSTEM   /* survives power loss */
} esdm__durability;

typedef struct esdm__site_target {
    char *name;   /* unique in the site */
    char *plugin; /* "posix" */
    char *json;   /* the target's object as JSON text, for the plug-in */
    char *path;   /* "FILE: targets[0]" for messages */
} esdm__site_target;

typedef struct esdm__site_engine {
    uint32_t threads;        /* pool threads incl. the caller; 0 in the file: number of cores */
    uint64_t memory_bytes;   /* gather buffers, encode buffers, caches; default 256 MiB */
    uint64_t fragment_bytes; /* preferred; default 4 MiB */
    uint64_t pack_bytes;     /* a pack is sealed beyond this; default 1 GiB */
    uint64_t inline_bytes;   /* fragments up to this stay in the metadata store; default 1024 */
    char *codec;             /* default chain: "none" */
    char *codec_on_request;  /* where a program asks for compression; NULL: not stated */
} esdm__site_engine;

typedef struct esdm__site {
    char *name;
    char stated_id[ESDM__UUID_BYTES]; /* "id" of the file, "": none */
    char id[ESDM__UUID_BYTES];        /* of the metadata store; "" until esdm__site_resolve() */
    char *source;                     /* file path, "(text)" or "(embedded default)" */
    bool embedded;                    /* made at first use */
    esdm__site_target *targets;
    size_t ntargets; /* ≥ 1 */
    esdm__site_target metadata;
    esdm__site_engine engine;
    esdm__durability durability;
    uint32_t history; /* snapshots to keep, ≥ 1; default 1 */
    char **routes;    /* directories whose plain NetCDF creates become containers */
    size_t nroutes;
} esdm__site;

/**
 * Loads by text, path, or search, checks everything, fills in defaults. Relative directories of
 * targets are taken from the configuration file's folder. Errors name file, line and column (JSON
 * syntax), or file, JSON path and the nearest known key.
 * @param config_json,config_path may be NULL. @param ret_site owned; esdm__site_free().
 */
esdm_status esdm__site_load(const char *config_json, const char *config_path, esdm__site **ret_site,
                            esdm_error *err);
void esdm__site_free(esdm__site *site); /* NULL is accepted */
/** Asks the metadata store for the site's id. ESDM_ENOENT: no store was made, and the id is "";
 *  ESDM_EINVAL: the configuration states another one. Opens nothing, locks nothing. */
esdm_status esdm__site_resolve(esdm__site *site, esdm_error *err);
/** Plug-in view of a target (borrows from the site, its id too). */
void esdm__site_plugin_config(const esdm__site *site, const esdm__site_target *target,
                              esdm_plugin_config *ret_config);
/** Makes store and targets (mkfs), used for the embedded default too, and resolves the id.
 * Processes that make a site at once agree on one id. */
esdm_status esdm__site_make(esdm__site *site, bool dry_run, esdm_plugin_reporter report, void *user,
                            esdm_error *err);

#endif
