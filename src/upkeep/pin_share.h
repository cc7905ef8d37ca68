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
/** Of a fragment that refers to something: whether that is a clone. */
bool esdm__pin_share_is_clone(const esdm__fragment *fragment);
/**
 * Refers to clones wherever that can be; what is left is to be copied.
 * @param options `file` is told of each fragment.
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
