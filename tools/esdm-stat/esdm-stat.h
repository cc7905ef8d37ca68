/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_STAT_H
#define ESDM_TOOLS_STAT_H

/** @file What the files of esdm-stat share. */

#include "common/common.h"
#include "esdm/placement.h"
#include "esdm/statistics.h"

typedef struct stat_options {
    gboolean attributes;
    gboolean fragments;
    gboolean summary;
    gboolean exact_bytes;
    gboolean explain;
    gboolean accuracy;
    gboolean statistics;
    gboolean exact;
    gboolean digest;
    gboolean each;
} stat_options;
extern stat_options stat_wants;

/** Where the fragments of a dataset lie. */
typedef struct stat_target {
    uint64_t fragments;
    uint64_t stored_bytes;
    GHashTable *packs; /* names */
} stat_target;

/** One fragment, copied from the visitor. */
typedef struct stat_fragment {
    uint32_t rank;
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    uint64_t stride[ESDM_MAX_RANK];
    bool strided;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t position;
    char *target;
    char *pack;
    char *codec;
} stat_fragment;

typedef struct stat_storage {
    uint64_t fragments;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t shared; /* of the fragments: in packs of other containers */
    uint64_t shared_bytes;
    const char *uuid; /* of the container */
    GTree *targets;   /* name → stat_target, sorted by name */
    GTree *codecs;    /* name → uint64_t * */
    GPtrArray *list;  /* stat_fragment, with --fragments alone */
} stat_storage;

esdm_status stat_storage_read(esdm_dataset *dataset, stat_storage *ret_storage, esdm_error *err);
void stat_storage_clear(stat_storage *storage);

typedef struct stat_snapshot {
    uint64_t snapshot;
    uint64_t parent;
    uint64_t time_ns;
    char *writer;
    char *message;
} stat_snapshot;

/** What had the name of the container before. */
typedef struct stat_former {
    char *id;
    bool removed; /* else it was replaced */
    uint64_t time_ns;
    uint64_t until_ns;
    uint64_t stored_bytes;
} stat_former;

/** What is known about a container without its structure. */
typedef struct stat_facts {
    esdm_container_info info;
    esdm_write_counts writes; /* of all writers */
    GPtrArray *snapshots;     /* stat_snapshot, oldest first */
    GPtrArray *former;        /* stat_former, oldest first */
    bool is_former;           /* it was replaced or removed itself */
    tool_former lost;
    GPtrArray *shares; /* names of containers that share what is stored */
} stat_facts;

esdm_status stat_facts_read(esdm_session *session, esdm_container *container, stat_facts *ret_facts,
                            esdm_error *err);
void stat_facts_clear(stat_facts *facts);

/** Values of an attribute as in CDL: `"K"`, `1.5f, 2.f`; owned. */
char *stat_values_text(const esdm_container *container, esdm_type type, uint64_t count,
                       const void *values);
json_t *stat_values_json(const esdm_container *container, esdm_type type, uint64_t count,
                         const void *values);
/** "compound point: float64 x, int16 s[2][3]"; owned. */
char *stat_type_text(const esdm_container *container, esdm_type type);
/** Those of the group alone. */
json_t *stat_types_json(const esdm_group *group);
/** The name of any type; borrowed. */
const char *stat_type_name(const esdm_container *container, esdm_type type);
/** "1x32x180"; owned; "" for rank 0. */
char *stat_shape_text(const uint64_t *shape, uint32_t rank);

/** Tells which snapshots there are instead of the wanted one; without any @param why. */
tool_exit stat_no_snapshot(esdm_session *session, const char *name, const esdm_error *why);
/** Why the data of CONTAINER or CONTAINER/VARIABLE lie where they lie. @param list with --json. */
tool_exit stat_explain(esdm_session *session, const char *argument, uint64_t snapshot,
                       json_t *list);
/** What is stated of a dataset's accuracy: owned; NULL when nothing is. */
char *stat_accuracy_text(const esdm_dataset *dataset);
/** Where that comes from, as far as it can still be told: owned; NULL when nothing is stated and no
 *  rule of the site fits. */
char *stat_accuracy_origin(esdm_dataset *dataset);
/** Lines about what became of a dataset's numbers: owned; "" when nothing was lost. */
esdm_status stat_accuracy_report(esdm_dataset *dataset, const char *indent, char **ret_text,
                                 esdm_error *err);
/** The same as JSON. */
esdm_status stat_accuracy_json(esdm_dataset *dataset, json_t *object, esdm_error *err);

/** What it has in a second shape: lines, owned; "" when it has none. */
esdm_status stat_shapes_text(const esdm_container *container, char **ret_text, esdm_error *err);
/** The same as member "second_shape" of an object, if it has one. */
esdm_status stat_shapes_json(const esdm_container *container, json_t *object, esdm_error *err);

/** What the values are, one line, owned; NULL: no numbers, or none at all. */
esdm_status stat_statistics_text(esdm_dataset *dataset, char **ret_text, esdm_error *err);
/** The same as JSON. */
esdm_status stat_statistics_json(esdm_dataset *dataset, json_t *object, esdm_error *err);

/** What the recipe of a container says (esdm-recipe), with how many other results count as well; a
 *  new reference. NULL: it has none. */
json_t *stat_recipe(const esdm_container *container);

/** Everything as JSON; NULL and *err on failure. */
json_t *stat_json(esdm_container *container, const stat_facts *facts, esdm_error *err);

/** Prints the digest of what the container contains, or appends it to the list (--json).
 *  @param name what to call it. */
esdm_status stat_digest(esdm_container *container, const char *name, json_t *list, esdm_error *err);

#endif
