/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_RENAMED_H
#define ESDM_API_RENAMED_H

/**
 * @file
 * What containers were called before. A fact "renamed/NAME" of the metadata store says which
 * container lost that name to a rename, when, and which name it got. Some hundred are kept; they
 * help people alone.
 */

#include "io/io.h"

/** Notes a rename that is done. Best effort. */
void esdm__renamed_note(esdm_session *session, const char *from, const char *to);

/** What the container is called now that had `name` last; normalised names. false: it is not known,
 *  or there is none any more. @param ret_time_ns when it lost the name. */
bool esdm__renamed_find(esdm_session *session, const char *name,
                        char ret_now[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_time_ns);

#endif
