/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_CATALOGUE_H
#define ESDM_SITE_CATALOGUE_H

/** @file Containers of one metadata store, as whole records: for a copy in another one. */

#include "base/buffer.h"
#include "esdm/sys/meta_store.h"

/** Fact: since when (nanoseconds since 1970) a journal lacks something that no backup has. */
#define ESDM__FACT_JOURNAL_LACKS "esdm/journal"
/** Fact: seconds since 1970 when the last backup was begun. */
#define ESDM__FACT_BACKUP "esdm/backup"
/** Fact: an older copy of the catalogue was put back in its place (journal/put_back.h). */
#define ESDM__FACT_PUT_BACK "esdm/put_back"

/** An open store. */
typedef struct esdm__catalogue {
    const esdm_meta_plugin *plugin;
    void *store;
} esdm__catalogue;

/** An index page with the snapshots that see it. */
typedef struct esdm__whole_page {
    uint64_t number;
    esdm_meta_new_page entry; /* box owned; `data` is not set */
    uint64_t added;
    uint64_t removed;
    uint64_t last_seen; /* newest snapshot that shows it */
    void *data;         /* owned; NULL: in the store, under its number */
    size_t bytes;       /* of `data` */
} esdm__whole_page;

/** One container with everything but the bytes of its pages. */
typedef struct esdm__whole {
    char *name;
    esdm_meta_container record;
    esdm_meta_import_snapshot *snapshots; /* owned, with all they point to */
    size_t nsnapshots;
    esdm__whole_page *pages; /* owned; by dataset and number */
    size_t npages;
    esdm_meta_attribute *attributes; /* owned, with their texts */
    size_t nattributes;
    esdm_meta_extent *extents; /* owned, with their texts; by dataset and name */
    size_t nextents;
    bool has_extents; /* the store keeps such */
    char (
        *shares)[ESDM_META_UUID_BYTES]; /* uuids of other records whose packs it may name; owned */
    size_t nshares;
    esdm_meta_tag *tags; /* owned, with their texts */
    size_t ntags;
} esdm__whole;

/**
 * Makes the facts of `to` those of `from`, and reads them back. @param ret_count how many there
 * are.
 */
esdm_status esdm__facts_copy(const esdm__catalogue *from, const esdm__catalogue *to,
                             uint64_t *ret_count, esdm_error *err);

/** All names, in byte order, NUL-terminated one after another. @param ret_names cleared by the
 *  caller. */
esdm_status esdm__catalogue_names(const esdm__catalogue *from, esdm__buffer *ret_names,
                                  esdm_error *err);

/** @param ret_whole owned, esdm__whole_clear(). */
esdm_status esdm__whole_load(const esdm__catalogue *from, const char *name, esdm__whole *ret_whole,
                             esdm_error *err);
void esdm__whole_clear(esdm__whole *whole);

/** Notes that it may name packs of this uuid (its first 32 characters). false: out of memory. */
bool esdm__whole_share(esdm__whole *whole, const char *uuid);
/** Adds a copy. false: out of memory. */
bool esdm__whole_tag(esdm__whole *whole, const esdm_meta_tag *tag);

/** Enters a container that was loaded from another store. */
esdm_status esdm__whole_import(const esdm__whole *whole, const esdm__catalogue *from,
                               const esdm__catalogue *to, esdm_error *err);
/** ESDM_ECORRUPT tells the first difference, pages byte for byte. */
esdm_status esdm__whole_compare(const esdm__whole *a, const esdm__catalogue *from,
                                const esdm__whole *b, const esdm__catalogue *to, esdm_error *err);
#endif
