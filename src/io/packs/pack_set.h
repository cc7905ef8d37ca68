/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_SET_H
#define ESDM_IO_PACKS_PACK_SET_H

/**
 * @file
 * The packs that one open container writes. Each append has a pack to itself while it lasts, so
 * threads never share a file: two threads fill two packs at twice the speed.
 * Threads: locked inside.
 */

#include "base/buffer.h"
#include "io/packs/pack.h"
#include "layout/fragment.h"

typedef struct esdm__pack_set esdm__pack_set;

/** Where a blob went, as long as the esdm__pack_set lives. */
typedef struct esdm__place {
    const esdm__pack *pack; /* NULL: another rank's */
    const char *places;     /* NULL: where the pack is */
    const char *handed;     /* the name of another rank's */
    uint64_t position;
} esdm__place;

/** Where it lies (layout/places.h), and the name of the pack. The target of one without copies may
 *  change, which esdm__pack_owner.moved tells. */
const char *esdm__place_target_name(const esdm__place *place);
const char *esdm__place_pack_name(const esdm__place *place);

/** @param owner copied. NULL when out of memory. */
esdm__pack_set *esdm__pack_set_new(const esdm__pack_owner *owner);

struct esdm__handover;

/** From now on another rank stores what is appended, as long as it can (handover.h); the pack set
 *  owns that. Nobody else uses it yet. */
void esdm__pack_set_hand_over(esdm__pack_set *packs, struct esdm__handover *handover);
/** Of whom handovers tell. */
const esdm__pack_owner *esdm__pack_set_owner(const esdm__pack_set *packs);

/** What the placement is told about a blob. Zero-initialise. */
typedef struct esdm__pack_hint {
    uint64_t behind_bytes; /**< what the same call appends after it, about */
    const bool *allowed;   /**< flags of the session's targets that may hold it; NULL: all */
    bool cheap;            /**< cost counts, not speed */
    uint32_t copies;       /**< targets that shall hold it; 0: one */
    bool global;           /**< not on targets that one node alone sees */
} esdm__pack_hint;

/**
 * Appends one blob where the placement wants it (placement/placement.h). A target that is full or
 * fails is tried last from then on, and the blob goes to the next one; only when all targets refuse
 * is the first refusal returned. With fewer targets than copies it is stored all the same.
 */
esdm_status esdm__pack_set_append(esdm__pack_set *packs, const esdm__pack_hint *hint,
                                  const esdm_iov *iov, size_t niov, esdm__place *ret_place,
                                  esdm_error *err);

/** How the appends went so far. */
void esdm__pack_set_counts(esdm__pack_set *packs, esdm_write_counts *ret_counts);

/** Makes everything appended readable for other processes, and durable if asked. */
esdm_status esdm__pack_set_publish(esdm__pack_set *packs, bool durable, esdm_error *err);
/** Gives up packs that have failed and whose bytes are lost: nothing more is done to them. @return
 *  whether this call or an earlier one gave up any. */
bool esdm__pack_set_give_up_lost(esdm__pack_set *packs);
/** Whether a pack of that name was given up. */
bool esdm__pack_set_is_lost(esdm__pack_set *packs, const char *name);
/** Makes everything appended readable for this process. */
esdm_status esdm__pack_set_make_readable(esdm__pack_set *packs, esdm_error *err);
/** The same for the packs with these names; others stay open. Names of packs that are not in this
 *  set are ignored. @param ret_moved whether one is on another target than its name says. */
esdm_status esdm__pack_set_make_named_readable(esdm__pack_set *packs,
                                               const esdm__pack_name *const *names, size_t count,
                                               bool *ret_moved, esdm_error *err);
/**
 * Before a commit, by one thread at a time: when others may have taken the writer for dead, looks
 * whether its packs are still there. Packs with committed data may be gone, as these may have been
 * moved. It is a failure when data are gone that are to be committed (esdm__pack_owner.needed), and
 * later calls fail as well.
 */
esdm_status esdm__pack_set_check(esdm__pack_set *packs, esdm_error *err);
/**
 * The same after a commit, before esdm__pack_set_committed(): whether packs are gone to which index
 * pages of the record `container` refer. When that cannot be found out the next call tries again,
 * as long as esdm__pack_set_is_unanswered().
 * @param ret_lost whether the failure is that, and not a missing answer.
 */
esdm_status esdm__pack_set_check_committed(esdm__pack_set *packs, uint64_t container,
                                           bool *ret_lost, esdm_error *err);
bool esdm__pack_set_is_unanswered(const esdm__pack_set *packs);
/** Says to the metadata store that the writer lives, until the end of the pack set; the first
 * append does so. */
esdm_status esdm__pack_set_say_writing(esdm__pack_set *packs, esdm_error *err);
/** What rank 0 has found out about a writer that ranks share (esdm__pack_owner.rank); the rest is
 *  for the others. */
typedef enum esdm__writer_doubt {
    ESDM__WRITER_SEEN,
    ESDM__WRITER_UNANSWERED, /**< the store could not be asked after a commit */
    ESDM__WRITER_LOST        /**< it may have seemed dead */
} esdm__writer_doubt;
/** Rank 0: what the checks since the last call have found out. */
esdm__writer_doubt esdm__pack_set_take_doubt(esdm__pack_set *packs);
/** Other ranks: for the next check. */
void esdm__pack_set_tell_doubt(esdm__pack_set *packs, esdm__writer_doubt doubt);
/* ---- for those who append for others (taker.h); they tell the owner nothing ---------------- */

/** From now on some do. Nobody else uses the pack set yet. */
void esdm__pack_set_serve(esdm__pack_set *packs);
esdm_status esdm__pack_set_append_for(esdm__pack_set *packs, const esdm__pack_hint *hint,
                                      const esdm_iov *iov, size_t niov, esdm__place *ret_place,
                                      esdm_error *err);
esdm_status esdm__pack_set_publish_for(esdm__pack_set *packs, bool durable, esdm_error *err);
/** @param names NULL: all. */
esdm_status esdm__pack_set_make_readable_for(esdm__pack_set *packs,
                                             const esdm__pack_name *const *names, size_t count,
                                             bool *ret_moved, esdm_error *err);
/** What has become of packs: each is followed by where it is now, or by "", as it is lost. Pairs of
 *  texts with their NUL. */
void esdm__pack_set_news(esdm__pack_set *packs, esdm__buffer *ret_texts);

/** What was appended so far is referenced by a commit now: it must stay. */
void esdm__pack_set_committed(esdm__pack_set *packs);
/** What is appended from now on goes to new packs, so that those so far can go as a whole, when
 *  nothing in them is needed any more. One that cannot be sealed is told of by the next commit. */
void esdm__pack_set_begin_anew(esdm__pack_set *packs);
/** Another process is about to commit what was appended so far (`offered`), or could not (false).
 *  What is offered must stay as well, since the answer may never come; what was offered to a commit
 *  whose outcome is unknown stays although a later one fails. */
void esdm__pack_set_offer(esdm__pack_set *packs, bool offered);
/** Seals all packs, removes those that no commit refers to, frees; in a forked child only frees.
 *  NULL is accepted. */
void esdm__pack_set_free(esdm__pack_set *packs);

#endif
