/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_MV_USERS_H
#define ESDM_TOOLS_MV_USERS_H

/** @file Virtual containers that have what esdm-mv moves as a member. One thread. */

#include "esdm/esdm.h"

typedef struct move_users move_users;

/** Asks who has which member; before the first one is moved. A failure is told. @return owned. */
move_users *move_users_new(esdm_session *session);
/** A container was moved, or would be. */
void move_users_note(move_users *users, const char *from, const char *to);
/** Tells on stderr of all that were noted which virtual containers have them; those that lost
 *  them, too. Frees `users`. */
void move_users_tell(move_users *users, esdm_session *session, bool dry_run);

#endif
