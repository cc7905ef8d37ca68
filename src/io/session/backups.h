/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_BACKUPS_H
#define ESDM_IO_SESSION_BACKUPS_H

/** @file When a session makes a backup of the catalogue, on all targets that nodes share. */

#include "io/session/session.h"

/** After a commit: where the session has gone on for long, a thread looks whether a backup is due.
 *  Cheap. */
void esdm__backup_later(esdm_session *session);
/** Waits for that thread; then makes what is due, if the session changed something.
 *  @param now whenever the last one was made: the journal lacks something. */
void esdm__backup_end(esdm_session *session, bool now);
/** Whether somebody has put an older copy of the catalogue in its place, as far as the backups on
 *  the targets show (journal/put_back.h). @param ret_from_ns what was committed since may be
 *  missing; nanoseconds since 1970. */
bool esdm__backup_put_back(esdm_session *session, uint64_t *ret_from_ns);
/**
 * Makes a backup at once, on the targets that keep it: for those that are to be taken away, with
 * the journals and backups that lie there. Nothing, where the site wants neither
 * (esdm__site.journal, backup_s).
 * @param leaves of each target, whether it is to be taken away; those that are retiring are, too.
 * @return ESDM_ENOTSUP: no other target can hold one.
 */
esdm_status esdm__backup_elsewhere(esdm_session *session, const bool *leaves, esdm_error *err);

#endif
