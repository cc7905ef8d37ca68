/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_SMALL_H
#define ESDM_IO_WRITE_SMALL_H

/**
 * @file
 * Containers that are small as a whole, of programs that write many of them: their data stay in
 * the index page, too, as a pack of its own for each costs more than all else that the kernel does
 * for it. Once such a container is committed, what comes later goes to packs.
 */

#include "io/write/round.h"

/** Whether fragments of the round that are larger than what always stays in the index page may stay
 * there. Caller holds the write lock of the dataset. */
bool esdm__small_allows(const esdm__round *r);
/** Takes room for `bytes` in the index pages of the round's container. Any thread of the pool.
 *  @return false: the fragment goes to a pack. */
bool esdm__small_take(const esdm__round *r, uint64_t bytes);

#endif
