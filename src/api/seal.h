/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_SEAL_H
#define ESDM_API_SEAL_H

/** @file Seals and retractions, for the other sources of this folder. */

#include "esdm/seal.h"
#include "io/session/session.h"

/** ESDM_EACCES when the container of that name is sealed; ESDM_OK, too, when there is none. */
esdm_status esdm__sealed_check(esdm_session *session, const char *name, esdm_error *err);
/** The same of a container that was created to replace one. */
esdm_status esdm__sealed_at_create(esdm_container *container, esdm_error *err);
/** What opening a container does with what is noted of it: ESDM_EACCES when it is sealed and open
 *  for writing; readers of one that is retracted get an attribute. */
esdm_status esdm__sealed_at_open(esdm_container *container, esdm_error *err);

#endif
