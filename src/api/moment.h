/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_MOMENT_H
#define ESDM_API_MOMENT_H

/** @file Names that say a point of time: NAME@7, NAME@-1, NAME@2026-11-20, NAME@2026-11-20T12:00,
 *  NAME@tag:TAG. */

#include "io/session/former.h"

/** A snapshot that a name says. */
typedef struct esdm__moment {
    char stored[ESDM__FORMER_NAME_BYTES]; /* of the container, or of the former one that it was */
    uint64_t snapshot;
} esdm__moment;

/** Whether a name ends in what may say a point of time. */
bool esdm__moment_is_said(const char *name);
/**
 * Finds it. @param name normalised; no container is called so.
 * @return ESDM_ENOENT: there is no such container or snapshot; the message tells those there are.
 *         ESDM_EINVAL: what follows the '@' is no point of time.
 */
esdm_status esdm__moment_find(esdm_session *session, const char *name, esdm__moment *ret_moment,
                              esdm_error *err);

/**
 * A name that is about to be given to a container. One that says a snapshot of a container that is
 * there, or of a former one, cannot be: it would hide the snapshot.
 * @return ESDM_EACCES: so it is.
 */
esdm_status esdm__moment_check_new(esdm_session *session, const char *name, esdm_error *err);

/** esdm__moment_find() of a tag. @param name of the container, also of a former one. @param
 * ret_record its number. @return ESDM_ENOENT: none of them has it. */
esdm_status esdm__moment_find_tag(esdm_session *session, const char *name, const char *tag,
                                  esdm__moment *ret_moment, uint64_t *ret_record, esdm_error *err);

#endif
