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
#include "esdm/accuracy.h"
#include "esdm/site.h"
#include "esdm/sys/meta_store.h"
#include "esdm/sys/plugin.h"
#include "monitor/options.h"

typedef enum esdm__durability {
    ESDM__DURABLE_PROCESS, /* survives a killed process (default) */
    ESDM__DURABLE_SYSTEM   /* survives power loss */
} esdm__durability;

/** Most targets of a site. */
#define ESDM__SITE_TARGETS_MAX 256

typedef struct esdm__site_target {
    char *name;   /* unique in the site */
    char *plugin; /* "posix" */
    char *json;   /* the target's object as JSON text, for the plug-in */
    char *path;   /* "FILE: targets[0]" for messages */
    bool local;   /* each node has one of its own */
    /* For the placement (placement_keys.c): */
    char *tier;             /* NULL: none */
    double cost;            /* of storing, in any unit that all targets share; default 0 */
    uint64_t reserve_bytes; /* to be kept free; default 0 */
    bool retiring;          /* nothing new goes there */
} esdm__site_target;

/** An accuracy for datasets that the site knows better than their programs. */
typedef struct esdm__site_rule {
    char *variable;      /* pattern of the name or the path; NULL: any, as with all of these */
    char *container;     /* pattern of the container's name */
    char *standard_name; /* value of the attribute */
    char *units;         /* value of the attribute, and the units of the tolerances */
    char *quantities;    /* NULL, or as stated: read again with the units of the dataset */
    esdm_accuracy accuracy;
} esdm__site_rule;

typedef struct esdm__site_engine {
    uint32_t threads;         /* pool threads incl. the caller; 0 in the file: number of cores */
    uint64_t memory_bytes;    /* gather buffers, encode buffers, caches; default 256 MiB */
    uint64_t fragment_bytes;  /* preferred; default 4 MiB */
    bool fragment_stated;     /* else the site's model may find larger ones better */
    uint64_t pack_bytes;      /* a pack is sealed beyond this; default 1 GiB */
    uint64_t inline_bytes;    /* fragments up to this stay in the metadata store; default 1024 */
    char *codec;              /* default chain: "none" */
    bool writes_behind;       /* "writes": puts return before their data are stored */
    bool drain_in_background; /* "drain": node-local targets are emptied beside the program */
    char *codec_on_request;   /* where a program asks for compression; NULL: not stated */
    bool earlier_runs;        /* what earlier runs read is asked for early; default true */
    uint64_t gather_bytes;    /* "gather": of small writes of a variable; 0: a fragment */
    bool sieve_stated;        /* "sieve", else the models of the targets say it */
    uint64_t sieve_bytes;     /* a hole up to this is read rather than left out */
} esdm__site_engine;

/** Ranks that store for others. */
typedef struct esdm__site_ranks {
    uint32_t io;        /* how many; 0: none, each stores by itself */
    uint32_t timeout_s; /* for their answers */
} esdm__site_ranks;

/** How long and how much is kept of what was replaced or removed. */
typedef struct esdm__site_replaced {
    uint64_t keep_s;       /* 0: nothing is kept; default one day */
    uint64_t keep_moved_s; /* of those whose file was missing then; default 30 days */
    double share;          /* of the free space of the targets; default 0.1 */
    uint64_t containers;   /* at most; default 10,000 */
} esdm__site_replaced;

/** Most copies of a fragment. */
#define ESDM__COPIES_MAX 4u

/** What counts where targets differ. */
typedef enum esdm__prefer {
    ESDM__PREFER_UNSTATED,
    ESDM__PREFER_FAST,
    ESDM__PREFER_CHEAP
} esdm__prefer;

/** How a variable will be read. */
typedef enum esdm__access {
    ESDM__ACCESS_UNSTATED,
    ESDM__ACCESS_MAPS,
    ESDM__ACCESS_SERIES,
    ESDM__ACCESS_BOTH
} esdm__access;

/** Whether what is stored already is stored once more ("dedup"). */
typedef enum esdm__dedup {
    ESDM__DEDUP_UNSTATED,
    ESDM__DEDUP_OFF,
    ESDM__DEDUP_WRITE,
    ESDM__DEDUP_CONTENT /* and what has one dimension is cut where its values say so */
} esdm__dedup;

/** What holds for the fragments of some variables. The first policy that matches and states a
 *  thing decides it. */
typedef struct esdm__site_policy {
    char *container; /* glob; NULL: any */
    char *variable;  /* glob for the name, or with '/' for the path "/group/name"; NULL: any */
    uint32_t copies; /* on distinct targets; 0: not stated */
    uint32_t shapes; /* in which it may be stored; 0: not stated */
    bool *allowed;   /* which targets may hold it; owned; NULL: not stated */
    esdm__prefer prefer;
    esdm__access access;
    uint32_t history; /* snapshots to keep of a container; 0: not stated */
    bool has_age;     /* `history_age_s` is stated */
    uint64_t history_age_s;
    esdm__dedup dedup; /* of containers */
} esdm__site_policy;

/** Which files containers may refer to. */
typedef struct esdm__site_references {
    bool limited;       /* those below `roots` alone; else see io/session/references.h */
    char **roots;       /* absolute directories, and URLs; owned, each too */
    size_t nroots;      /* 0 and limited: none */
    uint64_t timeout_s; /* of a request to a web server; 0: not stated */
    bool no_hedge;      /* no request to one is sent a second time while it waits */
    char *ca_file;      /* of whom certificates of web servers may be; NULL: the system's. Owned */
    char *s3;           /* JSON: places whose objects are asked for with keys, which it may hold;
                           NULL: none. Owned */
} esdm__site_references;

/** Most levels of a view. */
#define ESDM__VIEW_LEVELS_MOST ESDM_META_VIEW_LEVELS_MAX
/** Attribute of containers that are saved queries, which are in no view. */
#define ESDM__SAVED_ATTRIBUTE "esdm_query"

typedef struct esdm__view_level {
    char *attribute; /**< of containers, whose value is the folder */
    char *value;     /**< that it must have; NULL: any */
} esdm__view_level;

/** Names of "join.equal", and their bytes. */
#define ESDM__SITE_EQUAL_MOST  16u
#define ESDM__SITE_EQUAL_BYTES 64u

/** How containers are browsed by their attributes ("views"). */
typedef struct esdm__site_view {
    char *name;
    char *text;    /**< "{mip_era=CMIP6}/{activity_id}" */
    bool built_in; /**< the configuration does not state it */
    esdm__view_level levels[ESDM__VIEW_LEVELS_MOST];
    size_t nlevels; /**< ≥ 1 */
} esdm__site_view;

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
    bool last_wins; /* where two programs have written the same new records */
    esdm__site_replaced replaced;
    bool journal;           /* what is committed is noted on a target, too; default true */
    uint64_t backup_s;      /* seconds between backups of the catalogue; 0: none; default 3600 */
    uint32_t history;       /* snapshots to keep, ≥ 1; default 1 */
    uint64_t history_age_s; /* younger ones are kept, too; default 0 */
    uint32_t copies;        /* of each fragment, on distinct targets, ≥ 1; default 1 */
    uint32_t shapes;        /* in which a variable may be stored, 1 or 2; default 1 */
    esdm__dedup dedup;      /* never unstated; default off */
    esdm__prefer prefer;    /* never unstated; default fast */
    esdm__site_policy *policies; /* in the order of the file */
    size_t npolicies;
    char **routes; /* directories whose plain NetCDF creates become containers */
    size_t nroutes;
    esdm__site_references references;
    esdm__site_view *views; /* by name; owned */
    size_t nviews;
    char **equal; /* owned; attributes that containers which are joined have in common ("join") */
    size_t nequal;
    char *warning;          /* something about the file that people should know; may be NULL */
    bool removes_accuracy;  /* attributes that stated an accuracy do not stay */
    esdm__site_rule *rules; /* the first that fits counts */
    size_t nrules;
    esdm__site_ranks ranks;
    esdm__monitor_options monitor;          /* unless $ESDM_MONITOR says otherwise */
    uint64_t speeds[ESDM_SPEED_SHARED + 1]; /* bytes per second by esdm_speed_unit; 0: not stated */
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
/** How many targets shall hold a fragment of a dataset. @param path "/group/name". */
uint32_t esdm__site_copies(const esdm__site *site, const char *container, const char *path);
/** In how many shapes a dataset may be stored: 1 or 2. */
uint32_t esdm__site_shapes(const esdm__site *site, const char *container, const char *path);
/** Whether any may be stored in two. */
bool esdm__site_has_shapes(const esdm__site *site);
/** Which targets may hold a dataset: as many flags as there are targets; borrowed. NULL: all. */
const bool *esdm__site_allowed(const esdm__site *site, const char *container, const char *path);
/** Never unstated. */
esdm__prefer esdm__site_prefer(const esdm__site *site, const char *container, const char *path);
/** How the site's policies say that a dataset is read. */
esdm__access esdm__site_access(const esdm__site *site, const char *container, const char *path);
/** A view as metadata stores know it; borrows from the view, and from itself. */
typedef struct esdm__view_shape {
    const char *attributes[ESDM__VIEW_LEVELS_MOST];
    const char *values[ESDM__VIEW_LEVELS_MOST];
    esdm_meta_view view;
} esdm__view_shape;
void esdm__site_view_describe(const esdm__site_view *view, esdm__view_shape *shape);
/** Has the store keep counts of the site's views, and of no others; of what is there already,
 * unless it does. A store that cannot is fine. @param anew also of what it has counted. */
esdm_status esdm__site_views_keep(const esdm__site *site, const esdm_meta_plugin *meta, void *store,
                                  bool anew, esdm_error *err);
/** Whether fragments of a container that are equal to committed ones are referred to; never
 *  unstated. */
esdm__dedup esdm__site_dedup(const esdm__site *site, const char *container);
/** Which snapshots of a container are kept, beside those that have tags. */
typedef struct esdm__retention {
    uint32_t count; /* the newest ones; ≥ 1 */
    uint64_t age_s; /* and those that are younger */
} esdm__retention;
esdm__retention esdm__site_retention(const esdm__site *site, const char *container);
/** The largest number of copies that the site asks for. */
uint32_t esdm__site_most_copies(const esdm__site *site);
/** What buffers and caches of the engine leave for each target, in bytes. */
uint64_t esdm__site_target_memory(const esdm__site *site);
/** Whether a place of references is a URL of a web server, and no file or folder; NULL is none. */
bool esdm__site_is_url(const char *location);
/** Plug-in view of a target (borrows from the site, its id too). */
void esdm__site_plugin_config(const esdm__site *site, const esdm__site_target *target,
                              esdm_plugin_config *ret_config);
/** Makes store and targets (mkfs), used for the embedded default too, and resolves the id.
 * Processes that make a site at once agree on one id. ESDM_EEXIST: a target is away on which the
 * catalogue has packs, or the catalogue is away and targets have packs. @param anew makes it all
 * the same. */
esdm_status esdm__site_make(esdm__site *site, bool dry_run, bool anew, esdm_plugin_reporter report,
                            void *user, esdm_error *err);

/** The rule for calls of plain files, borrowed; NULL: there is none. */
const esdm__monitor_rule *esdm__site_files_rule(const esdm__site *site);

#endif
