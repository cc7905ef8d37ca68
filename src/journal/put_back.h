/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_PUT_BACK_H
#define ESDM_JOURNAL_PUT_BACK_H

/**
 * @file
 * A catalogue in whose place somebody has put an older copy of it, without esdm-mkfs --restore.
 *
 * The catalogue notes when the newest backup began that was made of it. Where a target has one that
 * is newer, the catalogue is a copy of before: what was committed in between is missing, and
 * programs go on without knowing. So that is noted as soon as it is seen. Until the site has been
 * restored, or somebody has said that nothing more will be, packs that the catalogue does not know
 * are kept, and so are the journals and the backups that tell of them.
 */

#include "journal/reader.h"
#include "site/catalogue.h"

/** Whether a target has a backup of which the catalogue knows nothing; notes it then, unless the
 *  store takes no notes. @param ret_from_ns when the newest backup began that it knows of; 0: it
 *  knows of none. */
bool esdm__put_back_look(const esdm__catalogue *catalogue, const esdm__journal_target *targets,
                         size_t ntargets, uint64_t *ret_from_ns);
/** Whether it was noted, and has not ended since. */
bool esdm__put_back_noted(const esdm__catalogue *catalogue, uint64_t *ret_from_ns);
/** The catalogue has what it lacked, or shall not have it: what lies on the targets now is known.
 */
esdm_status esdm__put_back_end(const esdm__catalogue *catalogue,
                               const esdm__journal_target *targets, size_t ntargets,
                               esdm_error *err);
/** A backup of the catalogue begins, or may: before anything of it is on a target. */
esdm_status esdm__put_back_know(const esdm__catalogue *catalogue, uint64_t start_ns,
                                esdm_error *err);

/** Packs since a time may be of commits that the catalogue does not know: esdm-gc keeps them. An
 *  earlier time that was noted before stays. */
esdm_status esdm__unknown_since(const esdm__catalogue *catalogue, uint64_t from_ns,
                                esdm_error *err);

#endif
