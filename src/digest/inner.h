/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_DIGEST_INNER_H
#define ESDM_DIGEST_INNER_H

/** @file What the sources of this folder share. */

#include "base/buffer.h"
#include "model/values.h"

/** Appends the stored form of elements that lie dense in the caller's form. A NULL text is an empty
 *  one. */
esdm_status esdm__digest_encode(esdm__typeref type, const void *values, uint64_t count,
                                esdm__buffer *out, esdm_error *err);

#endif
