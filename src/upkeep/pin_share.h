/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_PIN_SHARE_H
#define ESDM_UPKEEP_PIN_SHARE_H

/**
 * @file
 * Pinning without copying: files that a target can share the blocks of are cloned
 * (io/session/held_files.h), and fragments that are seen as a whole refer to the clones from then
 * on, with the descriptions that they had. One thread.
 */

#include "esdm/reference.h"
#include "io/io.h"

typedef struct esdm__pin_share esdm__pin_share;

/** Looks at all that the container refers to. Nothing is cloned yet.
 *  @param ret_share owned; esdm__pin_share_free(). */
esdm_status esdm__pin_share_new(esdm_container *container, esdm__pin_share **ret_share,
                                esdm_error *err);
/**
 * Refers to clones wherever that can be; what is left is to be copied.
 * @param tell of each fragment, as esdm_pin_options.file; may be NULL.
 * @param ret_on counts are added. @param ret_rest whether the dataset refers to something else,
 * too.
 */
esdm_status esdm__pin_share_dataset(esdm__pin_share *share, esdm_dataset *dataset,
                                    const esdm_pin_options *options, esdm_pin_result *ret_on,
                                    bool *ret_rest, esdm_error *err);
/** What was cloned and is not committed goes. */
void esdm__pin_share_drop(esdm__pin_share *share);
void esdm__pin_share_free(esdm__pin_share *share); /* NULL is accepted */

#endif
