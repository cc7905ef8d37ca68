/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_ASKED_H
#define ESDM_UPKEEP_ASKED_H

/** @file The containers that somebody asks for by name, with those below, or all. */

#include "io/session/session.h"

/**
 * Tells of each container that has one of the names or is below one; of all of the catalogue when
 * `names` is NULL. One that is below two of the names is told of twice.
 * @param passes whether a name is passed by, as if it was not there: such as esdm__name_is_own();
 *        NULL: none is.
 * @param visit false: out of memory, which ends it with ESDM_ENOMEM.
 * @return ESDM_ENOENT where one of the names finds nothing.
 */
esdm_status esdm__asked_visit(const esdm_session *session, const char *const *names, size_t count,
                              bool (*passes)(const char *name), esdm_meta_container_visitor visit,
                              void *user, esdm_error *err);

#endif
