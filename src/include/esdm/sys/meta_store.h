/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_META_STORE_H
#define ESDM_SYS_META_STORE_H

/**
 * @file
 * Metadata stores: transactional home of containers, snapshots, index pages, attribute index.
 *
 * Words: a *container record* has a store-wide number `container` (> 0, never reused) and a random
 * `uuid` (32 hex digits) that its packs are named after. Replacing a container gives the name to a
 * new record; the old record becomes *garbage*: unreachable by name, but whole for readers
 * that pinned it, until forget().
 *
 * Names that begin with '/' are the engine's own: no program can say them. Records under such names
 * are whole, but take no more commits (UPDATE is ESDM_ECONFLICT, as for garbage).
 *
 * A *snapshot* is numbered 1, 2, … within its record. It refers to a *structure* (JSON document,
 * numbered 1, 2, … within the record, stored only when it changed) and has the lengths of the
 * unlimited dimensions. A *page* (opaque bytes) belongs to a dataset and is visible in snapshots s
 * with added ≤ s and (removed = 0 or s < removed).
 *
 * A pack is named after a record's uuid, and that record refers to it by this rule alone. Records
 * that refer to packs of *another* uuid, clones and what is cloned from them, have a row for each
 * such uuid (shared_list()): so a pack is needed by the record of its uuid and by those whose rows
 * name that uuid, and by nobody else. A row may say too much, never too little: commits and
 * relocations of pages only ever name packs of the record's own uuid and of uuids in its rows.
 *
 * Threads: a store handle is used by many threads at once; the plug-in locks inside. No engine lock
 * is held during a call, except where a visitor runs (a visitor never calls the store).
 * Strings and blobs handed to visitors are borrowed for the call. `ret_` memory is owned by the
 * caller and freed with free().
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESDM_META_UUID_BYTES 33 /**< 32 hex digits and NUL */

/** State of a container at its newest snapshot. */
typedef struct esdm_meta_container {
    uint64_t container;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t snapshot;  /**< newest */
    uint64_t structure; /**< structure number of that snapshot */
    uint64_t created_ns;
    uint64_t modified_ns;
    /* Sums over live pages of the newest snapshot. */
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t fragments;
    uint32_t datasets;
} esdm_meta_container;

typedef struct esdm_meta_length {
    uint32_t dimension; /**< id of an unlimited dimension */
    uint64_t length;
} esdm_meta_length;

/** A snapshot as loaded. Free `document` and `lengths` with free(). */
typedef struct esdm_meta_snapshot {
    esdm_meta_container record;
    uint64_t snapshot;
    uint64_t structure;
    char *document; /**< NUL-terminated JSON; owned */
    size_t document_bytes;
    esdm_meta_length *lengths; /**< sorted by dimension; owned; NULL when none */
    size_t nlengths;
} esdm_meta_snapshot;

/** One page's directory entry. */
typedef struct esdm_meta_page {
    uint64_t page; /**< store-wide number, never reused */
    uint32_t dataset;
    uint32_t records;
    uint64_t added; /**< snapshot that published it */
    uint32_t level; /**< compaction level, chosen by the engine */
    bool absolute;  /**< its records carry absolute sequence numbers (merged page) */
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint32_t rank;
    const uint64_t *box; /**< `rank` lower corners, then `rank` sizes: hull of its fragments */
} esdm_meta_page;

/** A page to publish. */
typedef struct esdm_meta_new_page {
    uint32_t dataset;
    uint32_t records;
    uint32_t level;
    bool absolute;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint32_t rank;
    const uint64_t *box;
    const void *data;
    size_t bytes;
    bool apart; /**< must not meet what others have published: see esdm_meta_commit.seen */
} esdm_meta_new_page;

/** One entry of the attribute index. */
typedef struct esdm_meta_attribute {
    uint32_t dataset;         /**< 0: the container itself (global attributes) */
    const char *dataset_path; /**< "/group/name", NULL for the container */
    const char *name;
    const char *text; /**< text form, NULL if it has none */
    double number;    /**< valid when has_number */
    bool has_number;
} esdm_meta_attribute;

/** How an extent enters the index. */
typedef enum esdm_meta_extent_how {
    ESDM_META_EXTENT_SET,   /**< replaces what is stored */
    ESDM_META_EXTENT_LOWER, /**< the lesser of both numbers stays */
    ESDM_META_EXTENT_UPPER  /**< the greater of both numbers stays */
} esdm_meta_extent_how;

/**
 * What is known about the values of a container, or of one of its datasets: the ends of its time
 * range, of its box, of its values. Names begin with '@', as no attribute's does; conditions of
 * find() on such names (but "@type", an attribute) are about extents. An object has one value for
 * a name. Unlike attributes, extents change with data.
 */
typedef struct esdm_meta_extent {
    uint32_t dataset; /**< 0: the container itself */
    const char *name;
    esdm_meta_extent_how how; /**< SET when it is not a number */
    bool has_number;
    double number;
    const char
        *text; /**< when it is not a number; "": this object has none, whatever others have */
} esdm_meta_extent;

#define ESDM_META_EXTENT_NAME_MAX 1000 /**< bytes */

/** Whether a name is that of an extent. */
static inline bool
esdm_meta_is_extent(const char *name)
{
    return name[0] == '@' && !(name[1] == 't' && name[2] == 'y' && name[3] == 'p' &&
                               name[4] == 'e' && name[5] == '\0');
}

/**
 * Yields one more page to publish, or NULL after the last one.
 * @param ret_page borrowed until the next call. An error ends the commit, which publishes nothing.
 */
typedef esdm_status (*esdm_meta_page_source)(void *user, const esdm_meta_new_page **ret_page,
                                             esdm_error *err);

typedef enum esdm_meta_commit_kind {
    ESDM_META_CREATE,  /**< the name must be free: else ESDM_EEXIST */
    ESDM_META_REPLACE, /**< new record takes over the name (free or not) */
    ESDM_META_UPDATE   /**< next snapshot of record `container` */
} esdm_meta_commit_kind;

/** Everything one commit publishes, in one transaction. */
typedef struct esdm_meta_commit {
    esdm_meta_commit_kind kind;
    const char *name;     /**< CREATE, REPLACE */
    const char *uuid;     /**< CREATE, REPLACE */
    const char *keep_as;  /**< REPLACE: the name that the replaced record gets; NULL: it becomes
                               garbage */
    uint64_t container;   /**< UPDATE */
    uint64_t structure;   /**< UPDATE: structure number this writer started from */
    const char *document; /**< new structure; NULL (UPDATE only): unchanged */
    size_t document_bytes;
    uint32_t datasets;               /**< number of datasets in the document */
    const esdm_meta_length *lengths; /**< merged with the head's by maximum */
    size_t nlengths;
    const esdm_meta_new_page *pages;
    size_t npages;
    /** Further pages, published behind `pages`; NULL: none. Called inside the transaction, so that
     *  pages from many processes need not all be in memory; it does not call the store. */
    esdm_meta_page_source next_page;
    void *next_page_user;
    const uint64_t *merged; /**< pages that absolute new pages replace */
    size_t nmerged;
    /** UPDATE: the newest snapshot of which the caller knows that no `apart` page disagrees with
     * it. The hull of an `apart` page that meets one of the same dataset published after it, live
     * or not, is an ESDM_ECONFLICT that sets *ret_newer: the caller looks closer, and comes again.
     */
    uint64_t seen;
    uint64_t *ret_newer; /**< the newest snapshot, above `seen`; untouched otherwise; may be NULL */
    const esdm_meta_attribute *attributes; /**< the whole index of this container, objects and
                                                entries of one attribute together; replaces the
                                                stored one when `document` is set */
    size_t nattributes;
    const char *writer;
    const char *message;
    bool durable; /**< survive power loss when the call returns */
    uint32_t
        history; /**< snapshots to keep (≥ 1); older unpinned ones may be pruned now or later */
    /* Since interface 8. */
    const esdm_meta_extent *extents; /**< that change; each object and name at most once */
    size_t nextents;
    bool all_extents; /**< each is SET, and extents that are not among these are deleted */
} esdm_meta_commit;

typedef struct esdm_meta_committed {
    uint64_t container;
    uint64_t snapshot;
    uint64_t structure;
    uint64_t time_ns;
    uint64_t replaced;   /**< REPLACE: the record that lost the name, 0 if none */
    uint64_t first_page; /**< number of pages[0]; the others follow consecutively */
} esdm_meta_committed;

/** One comparison of a query; all must hold. */
typedef enum esdm_meta_operator {
    ESDM_META_EQ,
    ESDM_META_NE,
    ESDM_META_LT,
    ESDM_META_LE,
    ESDM_META_GT,
    ESDM_META_GE,
    ESDM_META_GLOB
} esdm_meta_operator;
typedef struct esdm_meta_condition {
    const char
        *variable; /**< last component of the dataset path; NULL: any object; "": container */
    const char *attribute;
    esdm_meta_operator op;
    bool is_number;
    double number;
    const char *text; /**< set when not is_number, and the literal's text otherwise */
} esdm_meta_condition;

/**
 * Where a store stands in a migration (esdm_site_migrate()). LEAVING: it can be read, commits are
 * ESDM_EACCES. ARRIVING and LEFT: open(), make(), check() and remove() are ESDM_ENOTSUP with the
 * note; site_id() answers. A configuration that is `migrating` opens a store in any state, for
 * reading and writing.
 */
typedef enum esdm_meta_state {
    ESDM_META_ACTIVE = 0,
    ESDM_META_LEAVING = 1,  /**< is being copied */
    ESDM_META_ARRIVING = 2, /**< is being filled */
    ESDM_META_LEFT = 3      /**< was copied; its packs belong to the other store */
} esdm_meta_state;

#define ESDM_META_NOTE_BYTES 256 /**< of the note beside a state, with its NUL */

/** A snapshot as another store had it. */
typedef struct esdm_meta_import_snapshot {
    uint64_t snapshot;
    uint64_t parent;
    uint64_t structure;
    uint64_t time_ns;
    const char *writer;
    const char *message;
    const char *document; /**< NULL: that of the snapshot before */
    size_t document_bytes;
    const esdm_meta_length *lengths; /**< sorted by dimension */
    size_t nlengths;
} esdm_meta_import_snapshot;

/** A page as another store had it; its number is given anew. */
typedef struct esdm_meta_import_page {
    esdm_meta_new_page page; /**< borrowed until the next one is asked for */
    uint64_t added;
    uint64_t removed; /**< 0: live */
} esdm_meta_import_page;

/** A name that somebody gave a snapshot, which is kept as long as it has one. */
typedef struct esdm_meta_tag {
    const char *name; /**< unique in its container; 1 … ESDM_META_TAG_NAME_MAX bytes */
    uint64_t snapshot;
    uint64_t created_ns; /**< 0, for tag_set(): now */
    const char *author;  /**< NULL, for tag_set(): "" */
} esdm_meta_tag;
#define ESDM_META_TAG_NAME_MAX 255
/**
 * Tags of the engine's own, which no user can give; their `author` is a text of the engine.
 * A record that has the tag SEAL does not change any more: commits to it are ESDM_EACCES, and so is
 * each change of its name but from one that begins with '/' (the engine's own), or to one that
 * begins with "/former/" and ends in "-d" (it is removed). SEAL can only be given to the newest
 * snapshot: ESDM_ECONFLICT. Moving packs (relocate()), pruning and other tags go on.
 */
#define ESDM_META_TAG_SEAL       "esdm:seal"
#define ESDM_META_TAG_RETRACTION "esdm:retraction"

/** A container as another store had it. */
typedef struct esdm_meta_import {
    const char *name;
    esdm_meta_container record;                 /**< but for its number */
    const esdm_meta_import_snapshot *snapshots; /**< oldest first, ≥ 1, the first with document */
    size_t nsnapshots;
    const esdm_meta_attribute *attributes; /**< as for commits */
    size_t nattributes;
    uint64_t npages;
    /** Called `npages` times: the next page, in the order of their numbers within a dataset. */
    esdm_status (*next_page)(void *user, esdm_meta_import_page *ret_page, esdm_error *err);
    void *user;
    /** Called after the last page: the uuids of other records whose packs the pages name, for
     *  shared_list(). NULL: none. @param ret_uuids borrowed until the import ends. */
    void (*shares)(void *user, const char *const **ret_uuids, size_t *ret_count);
    const esdm_meta_tag *tags;
    size_t ntags;
    const esdm_meta_extent *extents; /**< since interface 8 */
    size_t nextents;
} esdm_meta_import;

/** A container that begins with one snapshot of another one, and shares its packs. */
typedef struct esdm_meta_clone {
    uint64_t container;  /**< record that has the snapshot; it may lose its name to the new one */
    const char *from;    /**< what it is called, for messages */
    uint64_t snapshot;   /**< 0: the newest */
    const char *name;    /**< of the new record */
    const char *uuid;    /**< of the new record */
    bool replace;        /**< the new record takes over the name, as ESDM_META_REPLACE */
    const char *keep_as; /**< with `replace`: as in esdm_meta_commit */
    const char *writer;
    const char *message;
    bool durable;
    /** As for commits, of that snapshot's document. A store may keep those of each document, and
     *  then does not look at these. */
    const esdm_meta_attribute *attributes;
    size_t nattributes;
} esdm_meta_clone;

/** Record `container` may refer to packs that are named after `uuid`, which is not its own. */
typedef bool (*esdm_meta_shared_visitor)(const char *uuid, uint64_t container, void *user);

typedef bool (*esdm_meta_tag_visitor)(const esdm_meta_tag *tag, void *user);

typedef bool (*esdm_meta_attribute_visitor)(const esdm_meta_attribute *attribute, void *user);
typedef bool (*esdm_meta_extent_visitor)(const esdm_meta_extent *extent, void *user);
/** `container`: which of those that were asked for, from 0. */
typedef bool (*esdm_meta_value_visitor)(size_t container, const esdm_meta_attribute *attribute,
                                        void *user);
typedef bool (*esdm_meta_name_visitor)(const char *name, void *user);
typedef bool (*esdm_meta_container_visitor)(const char *name, const esdm_meta_container *record,
                                            void *user);
typedef bool (*esdm_meta_page_visitor)(const esdm_meta_page *page, void *user);
typedef bool (*esdm_meta_snapshot_visitor)(uint64_t snapshot, uint64_t parent, uint64_t time_ns,
                                           const char *writer, const char *message, void *user);
typedef bool (*esdm_meta_match_visitor)(const char *container, const char *dataset_path,
                                        void *user);
typedef bool (*esdm_meta_garbage_visitor)(uint64_t container, const char *uuid, void *user);
/** `name` is NULL for garbage. */
typedef bool (*esdm_meta_record_visitor)(uint64_t container, const char *uuid, const char *name,
                                         void *user);

/** In page_list(): the pages of all snapshots that are kept, pinned ones and garbage included. */
#define ESDM_META_EVERY_SNAPSHOT UINT64_MAX

/** A page whose fragments lie elsewhere from now on: the same records in the same order, other
 *  packs or positions. */
typedef struct esdm_meta_relocation {
    uint64_t page;
    const void *data;
    size_t bytes;
    bool moved; /**< set by relocate() */
} esdm_meta_relocation;

/** A text that belongs to the site or to a container: see fact_get(). */
typedef bool (*esdm_meta_fact_visitor)(const char *name, const char *text, void *user);
#define ESDM_META_FACT_NAME_MAX 200 /**< bytes of a fact's name: printable ASCII */

/** Takes bytes of a backup. */
typedef esdm_status (*esdm_meta_bytes_sink)(void *user, const void *data, size_t bytes,
                                            esdm_error *err);
/** Gives the next bytes of a backup. @param ret_data borrowed until the next call; NULL: the end.
 */
typedef esdm_status (*esdm_meta_bytes_source)(void *user, const void **ret_data, size_t *ret_bytes,
                                              esdm_error *err);

typedef struct esdm_meta_plugin {
    esdm_plugin base;

    /* make, check, remove: as for data targets (esdm/sys/data_target.h). */
    esdm_status (*make)(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                        void *user, esdm_error *err);
    esdm_status (*check)(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                         esdm_error *err);
    esdm_status (*remove)(const esdm_plugin_config *config, bool dry_run,
                          esdm_plugin_reporter report, void *user, esdm_error *err);

    /**
     * Id of the site that the store was made for: the store is the site's identity, and what the
     * targets' marks must agree with. ESDM_ENOENT: not made yet. Writes nothing, and does not look
     * at `config->site_id`.
     * @param ret_id 32 hex digits and NUL.
     */
    esdm_status (*site_id)(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                           esdm_error *err);

    /** Opens a made store; read_only, or when writing is not permitted: reads work, commits are
     *  ESDM_EACCES. A store of a newer format version is ESDM_ENOTSUP. */
    esdm_status (*open)(const esdm_plugin_config *config, bool read_only, void **ret_store,
                        esdm_error *err);
    void (*close)(void *store); /**< NULL is accepted */
    /** Whether commits can succeed as far as permissions go. Cheap. */
    bool (*is_writable)(void *store);

    /** ESDM_ENOENT when the name is not there. */
    esdm_status (*container_find)(void *store, const char *name, esdm_meta_container *ret_record,
                                  esdm_error *err);
    /** By byte order of names; prefix as in esdm_container_list(). */
    esdm_status (*container_list)(void *store, const char *prefix,
                                  esdm_meta_container_visitor visit, void *user, esdm_error *err);
    /** The name is free afterwards and the record garbage. @param ret_container its number. */
    esdm_status (*container_remove)(void *store, const char *name, uint64_t *ret_container,
                                    esdm_error *err);
    /** @param keep_as with `replace`: the name that the replaced record gets; NULL: it becomes
     *         garbage.
     *  @param ret_replaced record that lost the name, 0 if none. */
    esdm_status (*container_move)(void *store, const char *from, const char *to, bool replace,
                                  const char *keep_as, uint64_t *ret_replaced, esdm_error *err);

    /**
     * Loads a snapshot by container name and pins it, in one consistent read. 0: the newest.
     * A pinned snapshot and its pages stay loadable until unpin(), also across processes, also
     * after the container was removed; a pin dies with its process. Pins count.
     * @param known_structure structure number whose document the caller has: then document is NULL
     *        if it is the snapshot's (0: none known).
     */
    esdm_status (*snapshot_open)(void *store, const char *name, uint64_t snapshot,
                                 uint64_t known_container, uint64_t known_structure,
                                 esdm_meta_snapshot *ret_snapshot, esdm_error *err);
    /** Pins a snapshot that the caller just committed. ESDM_ENOENT: others have committed
     *  meanwhile, and it was deleted already; snapshot_open() has the newest one. */
    esdm_status (*pin)(void *store, uint64_t container, uint64_t snapshot, esdm_error *err);
    void (*unpin)(void *store, uint64_t container, uint64_t snapshot);
    /** Oldest first. */
    esdm_status (*snapshot_list)(void *store, const char *name, esdm_meta_snapshot_visitor visit,
                                 void *user, esdm_error *err);

    /** Directory of the pages visible in the snapshot, or ESDM_META_EVERY_SNAPSHOT; dataset 0: of
     *  all datasets. */
    esdm_status (*page_list)(void *store, uint64_t container, uint64_t snapshot, uint32_t dataset,
                             esdm_meta_page_visitor visit, void *user, esdm_error *err);
    /** @param ret_data owned, free(). */
    esdm_status (*page_load)(void *store, uint64_t page, void **ret_data, size_t *ret_bytes,
                             esdm_error *err);

    /**
     * Publishes in one transaction. ESDM_ECONFLICT when (a) the record became garbage, (b) a
     * document is given and the head's structure is not `structure`, (c) a page of `merged` is no
     * longer live, (d) an `apart` page meets a page that is newer than `seen`; the message says
     * which, and nothing changes. Without a document, a structure that moved on is no conflict.
     */
    esdm_status (*commit)(void *store, const esdm_meta_commit *commit,
                          esdm_meta_committed *ret_committed, esdm_error *err);

    /** Each object (a dataset, or a container with dataset_path NULL) for which all conditions
     * hold. */
    esdm_status (*find)(void *store, const esdm_meta_condition *conditions, size_t nconditions,
                        esdm_meta_match_visitor visit, void *user, esdm_error *err);

    /** Garbage records that nobody has pinned. */
    esdm_status (*garbage)(void *store, esdm_meta_garbage_visitor visit, void *user,
                           esdm_error *err);
    /** Deletes a garbage record for good; ESDM_ECONFLICT when it is pinned or not garbage. */
    esdm_status (*forget)(void *store, uint64_t container, esdm_error *err);

    /* ---- migration ---- */

    /** @param ret_note what was said when the state was set, "" if nothing. */
    esdm_status (*state)(void *store, esdm_meta_state *ret_state,
                         char ret_note[ESDM_META_NOTE_BYTES], esdm_error *err);
    /** Waits for changes in progress, of all processes; later ones see the new state. Durable. */
    esdm_status (*set_state)(void *store, esdm_meta_state state, const char *note, esdm_error *err);
    /** The attribute index of a container at its newest snapshot, in the order of the commit. */
    esdm_status (*attributes)(void *store, uint64_t container, esdm_meta_attribute_visitor visit,
                              void *user, esdm_error *err);
    /** Enters a container, in one transaction. ESDM_EEXIST when the name is taken. For handles that
     *  are `migrating`; so are removals of what an interrupted migration left. */
    esdm_status (*import)(void *store, const esdm_meta_import *import, esdm_error *err);

    /* ---- facts ---- */

    /**
     * Small texts (UTF-8) beside the catalogue: what is known about the site, and about how
     * containers were written. A name that begins with a container's uuid and '/' belongs to that
     * container and goes with it (forget()). Nothing that data depend on is kept here.
     * ESDM_ENOENT: there is none. @param ret_text owned, free().
     */
    esdm_status (*fact_get)(void *store, const char *name, char **ret_text, esdm_error *err);
    /** Replaces a fact. @param text NULL: removes it; ESDM_OK when there was none. */
    esdm_status (*fact_put)(void *store, const char *name, const char *text, esdm_error *err);
    /** Those whose names begin with `prefix` ("": all), by byte order. */
    esdm_status (*fact_list)(void *store, const char *prefix, esdm_meta_fact_visitor visit,
                             void *user, esdm_error *err);
    /* ---- care for packs ---- */

    /** Every record, garbage included, in the order of their numbers. */
    esdm_status (*record_list)(void *store, esdm_meta_record_visitor visit, void *user,
                               esdm_error *err);
    /**
     * Says that packs of `writer` are being written that no commit refers to yet. Ends with
     * writer_end(), or with the process. Read-only handles may do without.
     * @param writer hex digits, at least 8.
     */
    esdm_status (*writer_begin)(void *store, const char *writer, esdm_error *err);
    void (*writer_end)(void *store, const char *writer);
    /** Whether the writer lives, in any process; true as well when it cannot be told. One that has
     *  lost its connection may seem dead until it has another one: see writer_check(). */
    esdm_status (*writer_lives)(void *store, const char *writer, bool *ret_lives, esdm_error *err);
    /**
     * Replaces pages, each one at once, live or not. A page gets a new number, so that who holds
     * an old number finds nothing under it (page_load(): ESDM_ENOENT; merging it: ESDM_ECONFLICT)
     * and asks for the directory again; its entry stays as it was, and no snapshot changes. Pages
     * that are not there any more are left out.
     */
    esdm_status (*relocate)(void *store, uint64_t container, esdm_meta_relocation *pages,
                            size_t npages, bool durable, esdm_error *err);

    /**
     * Deletes snapshots of a record that a history of so many does not keep and nobody has pinned,
     * with the pages that none of the others shows; young ones stay for half a second. What commits
     * do now and then. ESDM_OK when there is no such record.
     */
    esdm_status (*prune)(void *store, uint64_t container, uint32_t history, esdm_error *err);

    /* Optional: NULL when a writer that lives never seems dead. */

    /**
     * Asked by a writer between writer_begin() and writer_end(): makes sure that it is seen, and
     * tells whether it may have seemed dead since then, or since this was asked before. What it
     * wrote and did not commit may have been removed meanwhile. Cheap: no question to a server
     * unless the connection is known to be lost.
     */
    esdm_status (*writer_check)(void *store, const char *writer, bool *ret_lost, esdm_error *err);

    /** Optional. The program ends: what lies beside the store for speed is put into it, as close()
     *  does, which may not be called any more. Waits for nobody. */
    void (*settle)(void *store);

    /* Optional, both or none: NULL when a backup is made container by container, and import()ed. */

    /** Hands out the whole store as it is at one moment, piece after piece. Nobody waits for it. */
    esdm_status (*backup)(void *store, esdm_meta_bytes_sink put, void *user, esdm_error *err);
    /**
     * Makes the store of what backup() gave. A store that is there already is kept beside it, under
     * another name that is told. The new one is ESDM_META_ARRIVING with the note until set_state().
     * @param next NULL: what lies at the place without a mark, brought back by hand, is to be the
     *        store; ESDM_ENOENT when nothing lies there.
     */
    esdm_status (*restore)(const esdm_plugin_config *config, esdm_meta_bytes_source next,
                           void *next_user, const char *note, esdm_plugin_reporter report,
                           void *user, esdm_error *err);

    /* ---- containers that share packs; since interface 8. Optional, both or none ---- */

    /**
     * Makes a record of one snapshot of another, in one transaction: its document, lengths, index
     * pages and attributes. The new record has this one snapshot, with the number, structure number
     * and pages (`added`) of the old one, so that the order of overlapping fragments stays; its
     * pages get numbers of their own. It shares the packs of the old record's uuid and of all uuids
     * that the old record shares. It has the extents of the old one if the snapshot is the newest,
     * else none. Changes of the old record wait, or the clone does. ESDM_ECONFLICT: there is no
     * such record, or it has no name any more (garbage): nothing may refer to its packs again.
     * ESDM_ENOENT: no such snapshot; ESDM_EEXIST: the name is taken; ESDM_ECORRUPT: the directory
     * of its pages is not whole; ESDM_ENOTSUP: the store has an older format, and this user may not
     * upgrade it.
     */
    esdm_status (*clone)(void *store, const esdm_meta_clone *clone,
                         esdm_meta_committed *ret_committed, esdm_error *err);
    /** All pairs (of one record unless `container` is 0), of garbage too; each until forget().
     *  ESDM_ECORRUPT when some may be missing: then nothing may be removed. */
    esdm_status (*shared_list)(void *store, uint64_t container, esdm_meta_shared_visitor visit,
                               void *user, esdm_error *err);

    /* ---- names of snapshots; since interface 8. Optional, all or none. They go with their record
     * at forget(); a snapshot that has one is not pruned by commits and prune() ---- */

    /** ESDM_ENOENT: there is no such snapshot; ESDM_EEXIST: the name is taken, and not `replace`;
     *  ESDM_ENOTSUP: as for clone(). Durable. */
    esdm_status (*tag_set)(void *store, uint64_t container, const esdm_meta_tag *tag, bool replace,
                           esdm_error *err);
    /** ESDM_ENOENT: there is none. Durable. */
    esdm_status (*tag_remove)(void *store, uint64_t container, const char *name, esdm_error *err);
    /** All of a record, by name (bytes); none when there is no such record. */
    esdm_status (*tag_list)(void *store, uint64_t container, esdm_meta_tag_visitor visit,
                            void *user, esdm_error *err);
    /* ---- extents; since interface 8. Optional, all or none ---- */

    /** Those of a container, by dataset and name. */
    esdm_status (*extent_list)(void *store, uint64_t container, esdm_meta_extent_visitor visit,
                               void *user, esdm_error *err);
    /** Replaces all extents of a container. ESDM_ECONFLICT: `snapshot` is not its newest one. */
    esdm_status (*extent_put)(void *store, uint64_t container, uint64_t snapshot,
                              const esdm_meta_extent *extents, size_t nextents, esdm_error *err);
    /** Each name that begins with `prefix` (with '@' in front) and some container has, once; by
     *  byte order. Costs as much as there are names, however many containers have them. */
    esdm_status (*extent_names)(void *store, const char *prefix, esdm_meta_name_visitor visit,
                                void *user, esdm_error *err);

    /**
     * Attributes with some names of some containers, of each in the order of its datasets; elements
     * of one attribute in their order. Names of containers that are not there are passed by.
     * Since interface 8; optional. @param datasets also those of datasets, not the containers'
     * alone.
     */
    esdm_status (*values)(void *store, const char *const *containers, size_t ncontainers,
                          const char *const *names, size_t nnames, bool datasets,
                          esdm_meta_value_visitor visit, void *user, esdm_error *err);

    /**
     * From now on record `container` may refer to packs of record `other`'s uuid and of all uuids
     * that this one shares: adds to shared_list(). Asked before a commit that does so. ESDM_OK when
     * it is so already. ESDM_ECONFLICT: there is no such record, or it has no name any more
     * (garbage); ESDM_ENOTSUP: as for clone(). Durable. Since interface 8; optional.
     */
    esdm_status (*share)(void *store, uint64_t container, uint64_t other, esdm_error *err);

    /** Pairs of shared_list() with this uuid. Costs as much as there are of these, however many
     *  others there are. ESDM_ECORRUPT as there. Since interface 8; optional. */
    esdm_status (*shared_of)(void *store, const char *uuid, esdm_meta_shared_visitor visit,
                             void *user, esdm_error *err);
} esdm_meta_plugin;

#ifdef __cplusplus
}
#endif
#endif
