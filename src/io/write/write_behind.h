/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_WRITE_BEHIND_H
#define ESDM_IO_WRITE_WRITE_BEHIND_H

/** @file Boxes that become fragments after the put has returned, where the site has
 *  "writes": "background". */

#include "io/container/transfer.h"

/**
 * As esdm__write_fragments(), of a copy and later. What is small or larger than the memory for it
 * is stored before the return, after all that came before. Caller holds the write lock.
 * @return ESDM_OK: it is stored, or will be before esdm__behind_settle() says so.
 */
esdm_status esdm__write_behind(const esdm__transfer *t, const esdm__box *box, bool strided,
                               esdm_error *err);

#endif
