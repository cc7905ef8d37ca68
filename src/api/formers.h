/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_FORMERS_H
#define ESDM_API_FORMERS_H

/** @file The former containers of one name, for the other sources of this folder. */

#include "io/session/former.h"

typedef struct esdm__former_record {
    char *stored; /* owned */
    uint64_t record;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t created_ns;
    uint64_t time_ns; /* when it lost the name */
    bool removed;     /* else it was replaced */
    char id[ESDM__FORMER_ID_BYTES];
} esdm__former_record;

typedef struct esdm__formers {
    const char *name;           /* that they had; borrowed */
    esdm__former_record *items; /* owned; the oldest first */
    size_t count;
    bool failed;
} esdm__formers;

/** esdm__formers_clear() in any case. @param name borrowed until then. */
esdm_status esdm__formers_load(esdm_session *session, const char *name, esdm__formers *ret_formers,
                               esdm_error *err);
void esdm__formers_clear(esdm__formers *formers);

#endif
