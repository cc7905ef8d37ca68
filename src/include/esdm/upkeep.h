/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_H
#define ESDM_UPKEEP_H

/**
 * @file
 * Looking after a site: verifying what is stored, and removing what nobody needs. What esdm-fsck
 * and esdm-gc do. One call at a time per session; other sessions go on reading and writing.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum esdm_finding_kind {
    ESDM_FINDING_NOTE,       /**< worth knowing, nothing is wrong */
    ESDM_FINDING_PROBLEM,    /**< something is wrong */
    ESDM_FINDING_REPAIRED,   /**< was wrong */
    ESDM_FINDING_CONSEQUENCE /**< what problems that are told besides lead to; counts as none */
} esdm_finding_kind;

/** What was found in one place. Borrowed during the call; texts may be NULL but for `what`. */
typedef struct esdm_finding {
    esdm_finding_kind kind;
    esdm_status status; /**< of a problem: ESDM_ECORRUPT, ESDM_ENOENT, … */
    const char *container;
    const char *dataset; /**< "/group/name" */
    const char *place;   /**< "target 'disk', pack '…', byte 4096" */
    const char *what;
    const char *remedy; /**< what to do about it */
} esdm_finding;
typedef void (*esdm_finding_visitor)(const esdm_finding *finding, void *user);
/** Called now and then from any thread, one at a time. @param share 0 … 1. */
typedef void (*esdm_upkeep_progress)(double share, const char *container, void *user);

/** Zero-initialise. */
typedef struct esdm_fsck_options {
    const char *const *containers; /**< NULL: all; else names, each with what lies below it */
    size_t ncontainers;
    bool data;   /**< read and verify every byte, not the heads of fragments alone */
    bool repair; /**< mend what can be mended without losing anything */
    esdm_finding_visitor report;
    esdm_upkeep_progress progress;
    void *user;
} esdm_fsck_options;

typedef struct esdm_fsck_result {
    uint64_t containers;
    uint64_t pages;
    uint64_t fragments; /**< in packs */
    uint64_t packs;     /**< of the containers that were looked at */
    uint64_t bytes;     /**< that were read from packs */
    uint64_t problems;  /**< repaired ones included */
    uint64_t repaired;
    uint64_t orphans; /**< packs that nothing refers to and nobody writes; not with `containers` */
    uint64_t orphan_bytes;
    uint64_t unpublished; /**< packs of living writers that nothing refers to yet */
} esdm_fsck_result;

/**
 * Verifies the catalogue and all packs that it refers to. Finding problems is no failure: ESDM_OK,
 * and the result counts them. Never removes anything.
 * @param options,ret_result may be NULL.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_fsck(esdm_session *session,
                                               const esdm_fsck_options *options,
                                               esdm_fsck_result *ret_result, esdm_error *err);

/** Youngest packs that esdm_gc() removes unless told otherwise, in seconds. */
#define ESDM_GC_AGE_S 86400u

/** Zero-initialise. */
typedef struct esdm_gc_options {
    bool any_age;   /**< `age_s` counts even if 0; else 0 means ESDM_GC_AGE_S */
    uint64_t age_s; /**< packs that were written to within this time stay */
    bool dry_run;   /**< report only */
    bool replaced;  /**< free all former containers now, not those alone whose time is over */
    esdm_finding_visitor report;
    void *user;
} esdm_gc_options;

typedef struct esdm_gc_result {
    uint64_t packs; /**< removed, or to be removed */
    uint64_t bytes;
    uint64_t containers; /**< removed ones whose record was still kept, and nobody reads */
    uint64_t former;     /**< containers that were replaced or removed, and are kept no longer */
    uint64_t former_bytes;
    uint64_t young;  /**< packs that nothing refers to, too young to be removed */
    uint64_t living; /**< packs that nothing refers to yet, of living writers */
    uint64_t failed; /**< packs that could not be removed */
    uint64_t shapes; /**< second shapes (esdm/shapes.h) of containers that are gone */
    uint64_t shapes_bytes;
} esdm_gc_result;

/**
 * Removes what nobody can reach: former containers that are past their time or over what the site
 * keeps, removed containers whose last reader is gone, and packs that no kept snapshot refers to,
 * whose writer is dead and which are old enough.
 * @param options,ret_result may be NULL.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_gc(esdm_session *session, const esdm_gc_options *options,
                                             esdm_gc_result *ret_result, esdm_error *err);

/** A catalogue that was brought back (esdm_site_restore()) may not know all that was committed. */
typedef struct esdm_restoration {
    uint64_t restored_ns; /**< when it was brought back; nanoseconds since 1970 */
    uint64_t from_ns; /**< packs that were last written to from here on, and before `restored_ns`,
                         are kept although nothing refers to them */
} esdm_restoration;

/**
 * Tells whether packs are kept that a catalogue which was brought back does not know, and ends
 * that: from now on they are removed as all packs are that nothing refers to. This cannot be
 * undone: what the catalogue lacks cannot be brought back any more when its packs are gone.
 * @param end false: tell only.
 * @param ret_restoration may be NULL.
 * @return ESDM_ENOENT: the catalogue was not brought back, or this was called since.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_restoration_end(esdm_session *session, bool end,
                                                          esdm_restoration *ret_restoration,
                                                          esdm_error *err);

/** Zero-initialise. */
typedef struct esdm_reindex_options {
    esdm_finding_visitor report; /**< containers that could not be read; NULL is accepted */
    void *user;
    bool only_missing; /**< only of containers of which nothing is in the index */
} esdm_reindex_options;

typedef struct esdm_reindex_result {
    uint64_t containers; /**< whose index was made */
    uint64_t failed;
} esdm_reindex_result;

/**
 * Makes the index of times, boxes, levels and values (esdm-find) of all containers anew, from their
 * data: of sites of versions that kept none, and exactly where commits have only widened a range
 * because data were written again. Counts of the site's views are made anew, too (only_missing:
 * unless they are kept already). Readers and writers go on. @param options,ret_result may be
 * NULL.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_reindex(esdm_session *session,
                                                  const esdm_reindex_options *options,
                                                  esdm_reindex_result *ret_result, esdm_error *err);

/** Zero-initialise. */
typedef struct esdm_drain_options {
    const char *const *containers; /**< NULL: all; else names, each with what lies below it; those
                                        that share packs with them (clones) go with them */
    size_t ncontainers;
    const char *const *from; /**< targets that are to be emptied; nfrom 0: this node's own ones */
    size_t nfrom;
    bool rebalance; /**< instead: bring packs of fuller targets to emptier ones. Not with `from` */
    bool dry_run;   /**< tell what would be brought, change nothing */
    bool wait;      /**< until living writers (of this node) have closed their containers, too; not
                         when rebalancing */
    bool any_age;   /**< `age_s` counts even if 0; else 0 means ESDM_GC_AGE_S */
    uint64_t age_s; /**< where a writer that lives can be taken for dead (PostgreSQL: its connection
                         is lost): packs that nothing refers to, that were not moved by this call
                       and that were written to within this time stay */
    esdm_finding_visitor report;
    esdm_upkeep_progress progress;
    void *user;
} esdm_drain_options;

typedef struct esdm_drain_result {
    uint64_t containers;
    uint64_t
        fragments; /**< that were brought to (other) targets which all nodes see, or would be */
    uint64_t bytes;
    uint64_t failed;    /**< fragments that could not be read, or whose index page could not */
    uint64_t elsewhere; /**< fragments that other nodes alone have */
    uint64_t packs;     /**< that were removed */
    uint64_t freed_bytes;
    uint64_t packs_left; /**< on the targets that were to be emptied: living writers may go on with
                              them */
    uint64_t young;      /**< of those: what nothing refers to, and stays because of its age */
    uint64_t stuck;      /**< fragments that stay: policies allow no other target for them */
    uint64_t fewer_copies; /**< fragments that have fewer copies now than the site wants */
} esdm_drain_result;

/**
 * Copies what committed snapshots have on targets with `"accessibility": "local"` of this node, or
 * on the targets that are named, to other targets that all nodes see, and frees the space. Or makes
 * targets equally full: whole packs go from those that have more than their share. Readers and
 * writers go on, no snapshot changes; what is interrupted is done by the next call. When named
 * targets were emptied as a whole a backup of the catalogue is stored on the others: what lay there
 * was perhaps the only journal or backup. An error that says so means: do not take the target away.
 * ESDM_ENOENT: there is nowhere to copy to, or no such target. ESDM_ENOSPC: it would not fit.
 * @param options,ret_result may be NULL.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_drain(esdm_session *session,
                                                const esdm_drain_options *options,
                                                esdm_drain_result *ret_result, esdm_error *err);
/** Zero-initialise. */
typedef struct esdm_compact_options {
    bool dry_run;         /**< count what would be stored anew */
    uint64_t bytes_per_s; /**< of values, at most; 0: as fast as it goes */
    uint64_t step_bytes;  /**< of values between two commits; 0: 4 GiB */
    esdm_finding_visitor report;
    void *user;
} esdm_compact_options;

typedef struct esdm_compact_result {
    uint64_t fragments; /**< that were, or would be, replaced by fewer ones */
    uint64_t bytes;     /**< of values in them */
    uint64_t commits;
    uint64_t conflicts; /**< commits that others came before; what they had was done again */
    uint64_t rounded;   /**< datasets that were left out, as their numbers would be rounded again */
    uint64_t moved_bytes; /**< stored, that were, or would be, moved out of packs of which at most
                               half is needed, so that these can go */
} esdm_compact_result;

/**
 * Stores those parts of a container anew that lie in many more fragments than they would if they
 * were written now, or in fragments that cut its chunks (esdm_dataset_set_chunk()). Others may read
 * and write meanwhile: what they write is never hidden. No value changes, and older snapshots have
 * the fragments that they had, as long as the site keeps them. Then packs of which at most half is
 * needed, and that nobody writes, are emptied and removed, unless other containers share some of
 * the container's. What was interrupted is done by the next call, but for what was not committed.
 * @param options,ret_result may be NULL.
 * @return ESDM_ECONFLICT: others wrote to the same parts again and again. Else as esdm_write().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_compact(esdm_session *session, const char *name,
                                                  const esdm_compact_options *options,
                                                  esdm_compact_result *ret_result, esdm_error *err);
/**
 * The chunks with which those who read containers of this name (but for numbers in it) would need
 * least, as far as the site has recorded their reads: for esdm_dataset_set_chunk() and
 * esdm_compact().
 * @param ret_chunk room for esdm_dataset_rank() numbers; untouched unless ESDM_OK.
 * @param ret_why room for a sentence that says why, cut to `room` bytes; may be NULL.
 * @return ESDM_ENOENT: nothing else than it has, as far as is known; or its numbers are rounded,
 * and stay where they are. Threads: one for each handle.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_chunk_for_readers(esdm_dataset *dataset,
                                                                    uint64_t *ret_chunk,
                                                                    char *ret_why, size_t room,
                                                                    esdm_error *err);
/** Zero-initialise. */
typedef struct esdm_dedup_options {
    const char *const *containers; /**< NULL: all; else names, each with what lies below it */
    size_t ncontainers;
    bool dry_run; /**< only tell what it would save */
    esdm_upkeep_progress progress;
    void *user;
} esdm_dedup_options;

typedef struct esdm_dedup_result {
    uint64_t containers;
    uint64_t fragments;  /**< in packs, each place once, however many containers refer to it */
    uint64_t bytes;      /**< stored, of these */
    uint64_t duplicates; /**< fragments equal to another one, which is named in their place */
    uint64_t duplicate_bytes;
    uint64_t freed_bytes; /**< of these, in packs that can go as a whole by it */
    uint64_t moved_bytes; /**< that are stored anew for it: what else is in these packs */
    uint64_t pages;       /**< of the index, that were written anew */
    uint64_t head_bytes;  /**< that were read to find them */
    uint64_t table_bytes; /**< of memory, for the table of all fragments */
} esdm_dedup_result;

/**
 * Lets containers refer to one place where fragments are equal. They are found by a hash of 128
 * bits over the lengths and checksums of their blocks, so that little is read, and compared byte by
 * byte before anything changes; with `dry_run` the hash alone counts. Of packs of which a fifth is
 * not needed any more the rest is stored anew, so that they can go; others wait for what makes them
 * garbage. No snapshot changes; what is removed or overwritten later does no harm to others, as
 * packs stay while anybody refers to them. What lies in index pages is not looked at.
 * @param options,ret_result may be NULL.
 * @return ESDM_ENOENT: there is no such container. ESDM_ENOTSUP: the metadata store cannot share
 * packs. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dedup(esdm_session *session,
                                                const esdm_dedup_options *options,
                                                esdm_dedup_result *ret_result, esdm_error *err);

/** What de-duplication while programs write would save. */
typedef struct esdm_dedup_forecast {
    uint64_t containers;
    uint64_t now_bytes;   /**< stored, that their newest snapshots take now, each for itself */
    uint64_t fragments;   /**< in packs, that they would have */
    uint64_t bytes;       /**< stored, of these, if each was stored */
    uint64_t equals;      /**< of these: equal ones are there already, so they are not stored */
    uint64_t equal_bytes; /**< so much is saved */
    uint64_t head_bytes;  /**< that writers read to find them, all together */
    uint64_t table_bytes; /**< of memory, that the writer takes which looks at most */
} esdm_dedup_forecast;

/**
 * Tells what `"dedup": "write"` or `"dedup": "content"` in the configuration would save, had the
 * containers been written with it, one after the other in the order of their last commits. All
 * values are read, cut and encoded as a write does it, and nothing is stored: that takes about as
 * long as a copy. Programs that write small parts may cut a little differently. What refers to
 * other files is not looked at.
 * @param options `containers`, `progress` and `user` count; may be NULL.
 * @param content cut as with "content"; false: as ever.
 * @param ret_forecast owned by the caller.
 * @return ESDM_ENOENT: there is no such container. Else as esdm_read().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dedup_foretell(esdm_session *session,
                                                         const esdm_dedup_options *options,
                                                         bool content,
                                                         esdm_dedup_forecast *ret_forecast,
                                                         esdm_error *err);

/** A container of which esdm_usage_count() is to count what it stores. */
typedef struct esdm_usage_part {
    const char *name;      /**< as esdm_container_info and esdm_former_info have it */
    const char *former;    /**< id of a former container of this name; NULL: the container itself */
    uint64_t stored_bytes; /**< that its esdm_container_info has; right where nothing is shared */
    uint32_t group;        /**< for what it counts, from 0: a folder, a user, itself */
} esdm_usage_part;

typedef struct esdm_usage {
    uint64_t stored_bytes; /**< each stored fragment once, however many containers refer to it */
    uint64_t shared_bytes; /**< of these: others refer to them, too */
} esdm_usage;

/**
 * Counts what the newest snapshots of containers store: what clones, branches and equal fragments
 * share counts once. Sums of esdm_container_info.stored_bytes count it for each container. Nothing
 * but the catalogue is read: index pages of those that share something with any container of the
 * site, or are de-duplicated when they are written; for others `stored_bytes` is taken. Fragments
 * that esdm_dedup() found several times in one container alone, which shares nothing, so count as
 * often as it names them.
 *
 * @param parts of containers that are in the catalogue; those that are not count as they say.
 * @param ret_groups owned by the caller, `ngroups` of them: what is shared with containers of other
 *        groups, or that are not among the parts, is `shared_bytes`. Former containers that are not
 *        among the parts do not matter.
 * @param ret_total of all parts; `shared_bytes` of it several containers refer to.
 * @return ESDM_EINVAL: a part without a name, or with a group past the end.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_usage_count(esdm_session *session,
                                                      const esdm_usage_part *parts, size_t nparts,
                                                      esdm_usage *ret_groups, size_t ngroups,
                                                      esdm_usage *ret_total, esdm_error *err);
/** What node-local targets are told apart by: $ESDM_NODE, else the host's name; borrowed. */
ESDM_API const char *esdm_session_node(const esdm_session *session);

#ifdef __cplusplus
}
#endif
#endif
