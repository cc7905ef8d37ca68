/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_UPKEEP_H
#define ESDM_UPKEEP_UPKEEP_H

/** @file What the API layer calls, and packs that nothing refers to. */

#include "esdm/reference.h"
#include "esdm/upkeep.h"
#include "upkeep/departed.h"
#include "upkeep/inventory.h"

typedef struct esdm__drainer esdm__drainer;

/** esdm_fsck() and esdm_gc() after their argument checks. */
esdm_status esdm__upkeep_fsck(esdm_session *session, const esdm_fsck_options *options,
                              esdm_fsck_result *ret_result, esdm_error *err);
esdm_status esdm__upkeep_gc(esdm_session *session, const esdm_gc_options *options,
                            esdm_gc_result *ret_result, esdm_error *err);

/** @param departed what earlier calls have moved away, and are to remember; NULL: there are none.
 */
esdm_status esdm__upkeep_drain(esdm_session *session, const esdm_drain_options *options,
                               esdm__departed *departed, esdm_drain_result *ret_result,
                               esdm_error *err);

/** esdm_reindex() after its argument checks. */
esdm_status esdm__upkeep_reindex(esdm_session *session, const esdm_reindex_options *options,
                                 esdm_reindex_result *ret_result, esdm_error *err);

/** esdm_dedup() after its argument checks. */
esdm_status esdm__upkeep_dedup(esdm_session *session, const esdm_dedup_options *options,
                               esdm_dedup_result *ret_result, esdm_error *err);

/** esdm_dedup_foretell() after its argument checks. */
esdm_status esdm__upkeep_dedup_forecast(esdm_session *session, const esdm_dedup_options *options,
                                        bool content, esdm_dedup_forecast *forecast,
                                        esdm_error *err);

/** esdm_usage_count() after its argument checks. @param groups,total zeroed. */
esdm_status esdm__upkeep_usage(esdm_session *session, const esdm_usage_part *parts, size_t nparts,
                               esdm_usage *groups, esdm_usage *total, esdm_error *err);

/** A container was committed: where the site wants that (`engine.drain`), it is drained beside the
 *  program. */
void esdm__drain_later(esdm_session *session, const char *name);
/** Waits until all that was committed is drained. All containers are closed. */
void esdm__drain_end(esdm_session *session);

/**
 * Frees what a container held before its data were written again: snapshots that the history does
 * not keep and nobody reads, and the packs that nothing refers to then. Where a writer that lives
 * may seem dead, only packs that were published to their last byte. Best effort.
 */
void esdm__upkeep_trim(esdm_session *session, uint64_t container, const char *uuid,
                       const char *name);

/** Stores elsewhere what is left in packs of a container of which little is needed any more, and
 *  removes these. None of it where others share its packs. @param result counts are added. */
esdm_status esdm__upkeep_empty(esdm_session *session, const char *name,
                               const esdm_compact_options *options, esdm_compact_result *result,
                               esdm_error *err);

/** Deletes the snapshots of a record that the site does not keep. @param stored its name. */
esdm_status esdm__upkeep_prune(const esdm_session *session, uint64_t record, const char *stored,
                               esdm_error *err);

/**
 * Chunks of a dataset that recorded reads want (io/session/readers.h).
 * @param ret_chunk room for `rank` numbers. @param ret_why room for a sentence.
 * @param ret_wanted false: they want nothing else than it has, or it cannot be stored anew.
 */
esdm_status esdm__upkeep_wish(esdm_dataset *dataset, uint64_t *ret_chunk, char *ret_why,
                              size_t room, bool *ret_wanted, esdm_error *err);
/** Stores anew what lies in too many fragments, through a handle that is open for writing and has
 *  written nothing. @param result counts are added. @return ESDM_ECONFLICT: others have written to
 *  the same boxes meanwhile: what was not committed is to be done again, with a new handle. */
esdm_status esdm__upkeep_compact(esdm_container *container, const esdm_compact_options *options,
                                 esdm_compact_result *result, esdm_error *err);

/** Brings the values of files into ESDM, through such a handle as well. @param ret_again whether it
 *  failed because others have written meanwhile, which a new handle may mend. */
esdm_status esdm__upkeep_pin(esdm_container *container, const esdm_pin_options *options,
                             esdm_pin_result *result, bool *ret_again, esdm_error *err);

/** The metadata store's own check. ESDM_ECORRUPT: its database is damaged. */
esdm_status esdm__store_check(const esdm_session *session, esdm_error *err);

/** Packs that no kept snapshot refers to. */
typedef struct esdm__strays {
    size_t *dead_packs; /* indices into the inventory, of dead writers; owned */
    uint64_t dead;
    uint64_t dead_bytes;
    uint64_t living; /* of writers that may still publish them */
    uint64_t lost;   /* records whose packs all count as needed, because what says it is damaged */
    uint64_t unknown_from_ns; /* see esdm__stray_may_be_unknown() */
    uint64_t unknown_until_ns;
} esdm__strays;

/** One record of the catalogue. */
typedef struct esdm__stray_record {
    uint64_t container;
    const char *uuid;
    const char *name; /* NULL: garbage */
} esdm__stray_record;

/**
 * Finds them among the packs of an inventory. A pack is dead when its writer is, asked before the
 * pages are looked at, so that nothing is published afterwards.
 * @param fence wait for commits in progress in between: a process may publish what a rank wrote
 *        that has just died; and look twice, as others may name what is in a pack meanwhile. For
 *        those who remove packs.
 * @param only the packs are all of this record; NULL: of any. So the catalogue need not be listed.
 * @param ret_strays zeroed; free(dead_packs).
 */
esdm_status esdm__strays_find(esdm_session *session, esdm__inventory *packs,
                              const esdm__stray_record *only, bool fence, esdm__strays *ret_strays,
                              esdm_error *err);
/** Whether the writer of a dead pack has not come back since: where a living one may have seemed
 *  dead, or somebody is about to name what is in it. To be asked before the pack is removed. */
bool esdm__stray_stays_dead(esdm_session *session, const esdm__pack_entry *entry);
/** Whether it came after the backup that a restored catalogue was made of: it may be of commits
 *  that nobody knows any more, and must not be removed for being a stray. */
esdm_status esdm__restoration_read(const esdm_session *session, esdm_restoration *ret_restoration,
                                   esdm_error *err);
bool esdm__stray_may_be_unknown(const esdm__strays *strays, const esdm__pack_entry *entry);
/** Not faster than was asked for: waits until so many bytes are due. @param bytes_per_s 0: never.
 */
void esdm__upkeep_pace(uint64_t bytes_per_s, uint64_t bytes, double began_s);

#endif
