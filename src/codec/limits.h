/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_LIMITS_H
#define ESDM_CODEC_LIMITS_H

/** @file Limits beyond which readers take numbers for missing ones (valid_range): a number that is
 *  within them must not leave them when it is rounded, nor one beyond come in. Pure. */

#include <stdbool.h>

#include "esdm/sys/codec.h"

/** Of numbers of one type; infinite: none on that side. */
typedef struct esdm__limits {
    long double low, high;
    bool natural; /* readers take negative whole numbers for those above the positive ones
                     (_Unsigned), and the limits are of these: none may change its sign */
} esdm__limits;

/** Whether there is one. */
bool esdm__limits_any(const esdm__limits *limits);
/** Whether all of `n` numbers are within the limits, below or above them as decoded, too. */
bool esdm__limits_kept(const esdm__limits *limits, int32_t type, const void *raw,
                       const void *decoded, size_t n);
/** Has numbers keep their bits that could leave the limits by `a`'s bounds; of natural ones also
 * all that are stored as negative. */
void esdm__limits_spare(const esdm__limits *limits, esdm_codec_accuracy *a);

#endif
