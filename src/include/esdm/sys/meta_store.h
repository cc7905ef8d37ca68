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
 * name that uuid, and by nobody else. A row may be superfluous, but none is ever missing: commits
 * and relocations of pages only name packs of the record's own uuid and of uuids in its rows.
 *
 * Threads: a store handle is used by many threads at once; the plug-in locks inside. No engine lock
 * is held during a call, except where a visitor runs (a visitor never calls the store).
 * Strings and blobs handed to visitors are borrowed for the call. `ret_` memory is owned by the
 * caller and freed with free().
 */

#include "esdm/sys/meta_types.h"

#ifdef __cplusplus
extern "C" {
#endif

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
     * with the pages that none of the others shows. What commits do, too, but for snapshots of the
     * last half second, of which a writer may be about to pin its own. ESDM_OK when there is no
     * such record.
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

    /**
     * How many of the containers that meet an expression (as of find_expression()) have each value
     * of some attributes. Containers do not count whose names queries pass by: those that begin
     * with '/', branches, and what is not whole yet (base/hidden_names.h says which). A value may
     * be told several times, whose counts are to be added. Since interface 8; optional.
     * ESDM_ENOTSUP when the expression finds datasets as well, or a container has several values of
     * an attribute: who asks then goes through what is found; what was told before does not count.
     */
    esdm_status (*facets)(void *store, const esdm_meta_expression *expression,
                          const char *const *names, size_t nnames, esdm_meta_facet_visitor visit,
                          void *user, esdm_error *err);

    /**
     * Each object that meets an expression, once: what find() finds for one of the lists of
     * comparisons that must hold together once all is multiplied out, less what find() finds for
     * that list with one that must fail. For a list without any that must hold: all containers,
     * less those. One question to the store. Since interface 8; optional.
     */
    esdm_status (*find_expression)(void *store, const esdm_meta_expression *expression,
                                   esdm_meta_match_visitor visit, void *user, esdm_error *err);

    /* ---- views; since interface 8. Optional, both or none ---- */

    /**
     * From now on these views are kept, and no others: commits and names keep the counts of
     * containers at each place. A container is in a view when it has the attribute of the first
     * level, the values that the view states, and a name that programs can say. What is there
     * already is entered, which takes a while, unless these views are kept already.
     * @param anew also then.
     */
    esdm_status (*view_set)(void *store, const esdm_meta_view *views, size_t nviews, bool anew,
                            esdm_error *err);
    /**
     * What lies directly below a place, with how many containers; in any order, a value perhaps
     * several times, whose counts are to be added. ESDM_ENOENT: this view is not kept. Costs as
     * much as there are values, however many containers.
     * @param path values of the first `depth` levels; depth < nlevels.
     */
    esdm_status (*view_level)(void *store, const esdm_meta_view *view, const char *const *path,
                              size_t depth, esdm_meta_view_visitor visit, void *user,
                              esdm_error *err);

    /** commit() does what `shares` of esdm_meta_commit says. Since interface 8. */
    bool commit_shares;
    /** commit() does what `tag` of esdm_meta_commit says. Since interface 8. */
    bool commit_tags;
    /** commit() does what `follows` of esdm_meta_commit says. Since interface 8. */
    bool commit_follows;
    /** Each process that asks holds a connection to a server, of which this has not many: ranks of
     * a node that read a snapshot together hand on what one of them has asked. Since interface 8.
     */
    bool connects;

    /**
     * container_move() with `replace`, over a record that is as the caller has seen it, in one
     * transaction. ESDM_ECONFLICT, and nothing changes: `to` is another record now, or has another
     * newest snapshot. Where there is no `to`, nothing is in the way. Since interface 8; optional:
     * without it the engine looks before it moves, and may miss what happens between.
     */
    esdm_status (*container_move_seen)(void *store, const char *from, const char *to,
                                       const char *keep_as, const esdm_meta_seen *seen,
                                       uint64_t *ret_replaced, esdm_error *err);

    /**
     * Why is_writable() says no, and who can change that, in words that follow a colon: "'FILE'
     * belongs to user 'ada' …: ask …". Since interface 8; optional.
     * @param text of `bytes`; "" when the store does not know.
     */
    void (*why_read_only)(void *store, char *text, size_t bytes);

    /* ---- order; since interface 9. Optional, all or none ---- */

    /**
     * Visits numbers of containers that have an attribute, or a dataset of which has, from an index
     * by its values: numbers, then texts by bytes, turned round with `descending`. What a row shows
     * of an attribute with several values is one text, of them joined by ", ", which has its place
     * in that order, too. Each call goes on behind `position` until it has visited `most` and all
     * that have the value of the last one. A container may be visited several times. ESDM_ENOTSUP:
     * nothing is in this order.
     * @param position zeroed before the first call.
     */
    esdm_status (*ordered)(void *store, const char *attribute, bool descending, size_t most,
                           esdm_meta_position *position, esdm_meta_number_visitor visit, void *user,
                           esdm_error *err);
    /** find_expression() among some containers: `containers` has `ncontainers` numbers, each once.
     *  What is not there any more is passed by. */
    esdm_status (*find_among)(void *store, const esdm_meta_expression *expression,
                              const uint64_t *containers, size_t ncontainers,
                              esdm_meta_match_visitor visit, void *user, esdm_error *err);
    /** About how many containers find_expression() would look at: a bound where that is small;
     *  counting ends at some ten thousand. */
    esdm_status (*find_estimate)(void *store, const esdm_meta_expression *expression,
                                 uint64_t *ret_containers, esdm_error *err);

    /* ---- one state; since interface 9. Optional, both or none ---- */

    /**
     * What this thread asks from here to release() sees one state of the store, whatever is
     * committed meanwhile: find(), find_expression(), those above, values() and container_list().
     * Other threads that use this handle may wait; writers of other handles do not, where the store
     * has a log of its own. Nothing else is called in between, and no visitor runs for long.
     */
    esdm_status (*hold)(void *store, esdm_error *err);
    /** @return false: the state was lost on the way (a connection was): what was asked since hold()
     *  failed, and may be asked again. */
    bool (*release)(void *store);

    /**
     * Number of the last snapshot that snapshot_list() tells of and that is not younger than a
     * time. Few reads, or one question to a server, however many snapshots there are: no snapshot
     * is older than the one before it. Since interface 9; optional. ESDM_ENOENT: there is none, or
     * no such container.
     * @param time_ns at most INT64_MAX.
     */
    esdm_status (*snapshot_at)(void *store, const char *name, uint64_t time_ns,
                               uint64_t *ret_snapshot, esdm_error *err);

    /** Merges some extents of a container with what is stored, each as its `how` says; others stay.
     *  ESDM_ECONFLICT: `snapshot` is not its newest one. Since interface 9; optional. */
    esdm_status (*extent_merge)(void *store, uint64_t container, uint64_t snapshot,
                                const esdm_meta_extent *extents, size_t nextents, esdm_error *err);
} esdm_meta_plugin;

#ifdef __cplusplus
}
#endif
#endif
