/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_SEEN_H
#define ESDM_API_SEEN_H

/**
 * @file
 * What a program has read of a container that it is about to replace by what it made of it, so that
 * it does not take away what another one wrote meanwhile. A process that renames for another one
 * (mv, which NCO starts) learns it from a fact of the container that gets the name, "UUID/seen":
 * lines of uuid, snapshot and name.
 */

#include "io/session/session.h"

typedef struct esdm__seen {
    char uuid[ESDM_META_UUID_BYTES]; /* "": nothing is known */
    uint64_t snapshot;
} esdm__seen;

/** The name that a container gets when it is whole: `name` without what makes it intermediate
 *  (esdm_container_name_is_intermediate()), or `name`. */
void esdm__name_to_be(const char *name, char ret[ESDM_CONTAINER_NAME_MAX + 1]);

/** Fills what is not known from the fact of `from`, as far as that says something of `to`. */
void esdm__seen_find(esdm_session *session, const char *from, const char *to, esdm__seen *seen);

/** Whether `to` is still what was seen, or is not there. All names are normalised.
 *  @param ret_expected for esdm__named_move(). @param ret_expects whether there is something to
 *  expect. @return ESDM_ECONFLICT, with a message that says what to do. */
esdm_status esdm__seen_check(esdm_session *session, const char *from, const char *to,
                             const esdm__seen *seen, esdm_meta_seen *ret_expected,
                             bool *ret_expects, esdm_error *err);

/** After the rename: the fact has done its work. `to` has the container now. */
void esdm__seen_forget(esdm_session *session, const char *to);

/** esdm_container_note_seen(), of normalised names. Best effort: NULL in place of an error. */
esdm_status esdm__seen_note(esdm_session *session, const char *name, const char *of,
                            const char *uuid, uint64_t snapshot, esdm_error *err);

#endif
