/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_FSCK_H
#define ESDM_UPKEEP_FSCK_H

/** @file What the files of the check share. */

#include <pthread.h>
#include <stdatomic.h>

#include "esdm/upkeep.h"
#include "io/packs/page_list.h"
#include "model/container.h"
#include "upkeep/inventory.h"
#include "upkeep/needs.h"

typedef struct esdm__fsck_findings {
    esdm_finding *items; /* owned, with their texts */
    size_t count;
} esdm__fsck_findings;

typedef struct esdm__fsck {
    esdm_session *session;
    const esdm_fsck_options *options;
    esdm__inventory packs;
    pthread_mutex_t lock; /* guards result, progress and the caller's functions */
    esdm_fsck_result result;
    uint64_t fragments; /* of all containers, for the progress */
    uint64_t looked_at;
    bool store_damaged; /* it was reported */
    uint32_t targets;   /* that can be written to */
} esdm__fsck;

/** Files outside of the site that are reported once; further ones with each page. */
#define ESDM__FSCK_SOURCES 32u

/** The container that is being checked. */
typedef struct esdm__fsck_container {
    esdm__fsck *check;
    const char *stored; /* name in the store */
    const char *name;   /* without what marks a former container: policies go by it */
    const char *label;  /* for messages */
    uint64_t record;
    esdm_container *model; /* NULL: its document cannot be read */
    esdm__needs needs;     /* what is to be stored anew; guarded by the check's lock */
    bool waits;            /* problems wait until it is known what could be repaired */
    bool again;            /* this is the look after the repair */
    atomic_uint absent;    /* index pages that are missing */
    esdm_error told;       /* the last damage of the store's own rows that was reported */
    esdm__fsck_findings waiting;
    uint64_t sources_told[ESDM__FSCK_SOURCES]; /* files outside of the site that were reported, by
                                                  the digest of their descriptions; guarded by the
                                                  check's lock, as the number is */
    uint32_t nsources_told;
} esdm__fsck_container;

/** Reports and counts. @param dataset NULL, or one of the container. @param place may be NULL. */
void esdm__fsck_report(esdm__fsck_container *c, const esdm_finding *finding);
/** "/group/name" of the dataset with that id, or "dataset 12"; owned, free(). NULL: no memory. */
char *esdm__fsck_dataset_name(const esdm__fsck_container *c, uint32_t dataset);

/** Checks one page and the fragments that it refers to, and marks their packs as used. Fails only
 *  when the check itself cannot go on. Any thread. */
esdm_status esdm__fsck_page(esdm__fsck_container *c, const esdm_meta_page *entry, esdm_error *err);
/** Checks files outside of the site that a page refers to, and reports each once for a container;
 * with the option `data` their chunks, too.
 *  @param count,bytes fragments and bytes are added. Fails as esdm__fsck_page(). Any thread. */
esdm_status esdm__fsck_sources(esdm__fsck_container *c, const char *dataset, const esdm__page *page,
                               uint64_t *count, uint64_t *bytes, esdm_error *err);
/** Stores anew what needs it, calls `look` once more, and reports what waits. */
esdm_status esdm__fsck_repair(esdm__fsck_container *c,
                              esdm_status (*look)(esdm__fsck_container *, esdm_error *),
                              esdm_error *err);
/** false when out of memory. */
bool esdm__fsck_findings_add(esdm__fsck_findings *list, const esdm_finding *finding);
void esdm__fsck_findings_clear(esdm__fsck_findings *list);
/** Remedy where the store has lost what says where values are. */
#define ESDM__FSCK_WRITE_AGAIN                                                                     \
    "bring the metadata store back from a backup, or write these values again"

/** Reports damage of the store in one container. @param dataset may be NULL. */
void esdm__fsck_report_rows(esdm__fsck_container *c, const char *dataset, const char *what,
                            const char *remedy);
/** Reports damage of the store that is no container's alone. */
void esdm__fsck_report_store(esdm__fsck *check, const char *what);
/** The store's own check of its database. */
void esdm__fsck_store(esdm__fsck *check);
/** Compares the directory of the index pages with what the commits counted: a lost entry. */
esdm_status esdm__fsck_totals(esdm__fsck_container *c, esdm_error *err);
/** Compares the attribute index with the document; repairs it when asked to. */
esdm_status esdm__fsck_attributes(esdm__fsck_container *c, esdm_error *err);

#endif
