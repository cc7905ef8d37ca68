/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_SHARERS_H
#define ESDM_IO_SESSION_SHARERS_H

/**
 * @file
 * Which records refer to packs of other records (clones): a pack is needed by the record whose uuid
 * its name begins with, and by those that share this uuid, and by nobody else.
 *
 * Such a row is added only of a container that has a name, or of one that the writer who adds it
 * has pinned since it had one. So when at some moment no record but garbage that nobody has pinned
 * shares a uuid or has it, nobody ever will again.
 */

#include "io/session/session.h"

typedef struct esdm__sharer {
    char uuid[ESDM_META_UUID_BYTES]; /* packs are named after it */
    uint64_t container;              /* may refer to them */
} esdm__sharer;

/** Zero-initialise. */
typedef struct esdm__sharers {
    esdm__sharer *items; /* owned; by uuid, then record */
    esdm__sharer *own;   /* owned; the same by record, then uuid */
    size_t count;
} esdm__sharers;

/** Loads all of the catalogue. On a failure nothing must be removed. */
esdm_status esdm__sharers_load(const esdm_session *session, esdm__sharers *ret_all,
                               esdm_error *err);
void esdm__sharers_clear(esdm__sharers *all);
/** What a record shares. @param ret_first borrowed. @return how many. */
size_t esdm__sharers_of(const esdm__sharers *all, uint64_t container,
                        const esdm__sharer **ret_first);
/** Whether any record shares the packs of `uuid` now: asks the catalogue, of them alone. */
esdm_status esdm__sharers_ask(const esdm_session *session, const char *uuid, bool *ret_any,
                              esdm_error *err);
/** Whether any record shares the packs of `uuid`. */
bool esdm__sharers_any(const esdm__sharers *all, const char *uuid);
/** Whether this record does. */
bool esdm__sharers_has(const esdm__sharers *all, const char *uuid, uint64_t container);

#endif
