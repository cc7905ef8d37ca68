/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_GUARD_H
#define ESDM_IO_PACKS_PACK_GUARD_H

/** @file Packs that stay where they are until something names them. */

#include "io/session/session.h"

/** Facts of the site: the writer whose packs were guarded last, and a random number, each time
 *  another one. By these a look for garbage sees what was guarded meanwhile. */
#define ESDM__FACT_GUARDED "esdm/guarded/"

/**
 * Packs that will be named by a commit, and that a drain could give up meanwhile: who wrote them
 * counts as alive (writer_begin()), so that nobody removes them, and a fact says so. Places are
 * read after that. One thread. NULL when out of memory.
 */
typedef struct esdm__pack_guard esdm__pack_guard;
esdm__pack_guard *esdm__pack_guard_new(esdm_session *session);
/** @param may_begin true: a pack that is not guarded yet is guarded from now on. false: that is
 *  ESDM_ECONFLICT, as the data were stored elsewhere meanwhile. */
esdm_status esdm__pack_guard_add(esdm__pack_guard *guard, const char *pack, bool may_begin,
                                 esdm_error *err);
void esdm__pack_guard_free(esdm__pack_guard *guard); /* NULL is accepted */

#endif
