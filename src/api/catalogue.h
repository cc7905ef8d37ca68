/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_CATALOGUE_H
#define ESDM_API_CATALOGUE_H

/** @file What the functions of the catalogue share. Pure functions. */

#include "io/session/session.h"

/** @param name borrowed; may be NULL. */
esdm_container_info esdm__info_of(const char *name, const esdm_meta_container *record);
/** ESDM_EACCES unless this process may change the catalogue. */
esdm_status esdm__need_writable(const esdm_session *session, esdm_error *err);
/** esdm_container_remove(). @param sealed also one that is sealed. */
esdm_status esdm__remove(esdm_session *session, const char *name, bool sealed, esdm_error *err);

#endif
