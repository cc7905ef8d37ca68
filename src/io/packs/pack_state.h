/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_STATE_H
#define ESDM_IO_PACKS_PACK_STATE_H

/** @file In what state a pack is: how far it is written, and what commits have to do with it. Pure
 * functions. */

/** How far a pack is written. */
typedef enum esdm__pack_stage {
    ESDM__PACK_OPEN,   /**< blobs are appended */
    ESDM__PACK_ENDING, /**< nothing more is appended, the target is storing it */
    ESDM__PACK_SEALED, /**< whole and stored */
    ESDM__PACK_FAILED, /**< what was appended may be lost; for good, unless the target can recall it
                        */
    ESDM__PACK_GONE    /**< others have removed it; nothing is appended any more */
} esdm__pack_stage;

/** What happens to it. */
typedef enum esdm__pack_event {
    ESDM__PACK_ENDS,     /**< the target begins to store it */
    ESDM__PACK_ANSWERED, /**< the target has answered how storing went */
    ESDM__PACK_STORED,   /**< it is whole on the target, or on that of a copy */
    ESDM__PACK_REFUSED,  /**< it could not be flushed or stored */
    ESDM__PACK_AGAIN,    /**< all its bytes are at hand: another attempt begins */
    ESDM__PACK_VANISHED  /**< it was looked for, and is not there */
} esdm__pack_event;

/** What commits have to do with it: whether it must stay when its writer ends. */
typedef enum esdm__pack_use {
    ESDM__PACK_UNUSED,    /**< no commit refers to it */
    ESDM__PACK_OFFERED,   /**< a commit refers to it, and the answer has not come */
    ESDM__PACK_DOUBTED,   /**< the answer to a commit that refers to it never came */
    ESDM__PACK_COMMITTED, /**< a commit refers to it */
    ESDM__PACK_UNVERIFIED /**< committed, and nobody could tell whether it was there then */
} esdm__pack_use;

/** What commits do. */
typedef enum esdm__pack_commit {
    ESDM__COMMIT_OFFERS,     /**< is about to begin */
    ESDM__COMMIT_WITHDRAWS,  /**< did not take place */
    ESDM__COMMIT_SUCCEEDS,   /**< took place */
    ESDM__COMMIT_UNANSWERED, /**< took place, but whether the pack was there could not be asked */
} esdm__pack_commit;

/** The next stage. An event that means nothing in a stage leaves it as it is. */
esdm__pack_stage esdm__pack_stage_next(esdm__pack_stage stage, esdm__pack_event event);
esdm__pack_use esdm__pack_use_next(esdm__pack_use use, esdm__pack_commit commit);

#endif
