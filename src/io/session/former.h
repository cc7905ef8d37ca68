/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_FORMER_H
#define ESDM_IO_SESSION_FORMER_H

/**
 * @file
 * Former containers: what was replaced or removed is kept for a while under a name of the engine's
 * own, "/former/NAME//TIME-ID-WHY": TIME in nanoseconds since 1970 (20 digits), ID 8 hexadecimal
 * digits of chance, WHY one letter. No program can say such a name, and the store takes no commits
 * for it; everything else (verifying, moving, copying a catalogue) sees a container like any other.
 * How long, how many and how much are kept the site says ("replaced"); those of which a snapshot
 * has a tag stay, even where the site keeps none.
 */

#include "base/hidden_names.h"
#include "io/session/session.h"
#include "model/names.h"

/** Bytes of a stored name, with its NUL. */
#define ESDM__FORMER_NAME_BYTES (ESDM_CONTAINER_NAME_MAX + 64)
#define ESDM__FORMER_ID_BYTES   9
/** What the stored names of former containers begin with. */
#define ESDM__FORMER_PREFIX "/former"

typedef struct esdm__former {
    char name[ESDM_CONTAINER_NAME_MAX + 1]; /* that it had */
    uint64_t time_ns;                       /* when it lost it */
    char id[ESDM__FORMER_ID_BYTES];
    bool removed; /* else it was replaced */
} esdm__former;

/** Takes a stored name apart. false: it is none of a former container. */
bool esdm__former_parse(const char *stored, esdm__former *ret_former);
/** Writes how a stored name is told to people: "a.nc (former, 1a2b3c4d)"; others as they are. */
void esdm__former_tell(const char *stored, char *text, size_t bytes);

/** The name under which a container is to be kept that loses `name` now; NULL: the site keeps none.
 *  @param stored room for ESDM__FORMER_NAME_BYTES. */
const char *esdm__former_name(const esdm_session *session, const char *name, bool removed,
                              char *stored);

/** Whether a container would stay as a former one that loses its name now
 * (esdm_former_would_be_kept()). */
bool esdm__former_fits(esdm_session *session, const char *name);

typedef struct esdm__former_sum {
    uint64_t containers;
    uint64_t bytes; /* stored, of all copies */
} esdm__former_sum;

/**
 * Frees former containers, the oldest first, that are past their time or over what the site keeps.
 * @param all all of them. @param dry_run only counts. @param ret_freed may be NULL.
 */
esdm_status esdm__former_sweep(esdm_session *session, bool all, bool dry_run,
                               esdm__former_sum *ret_freed, esdm_error *err);
/** After a container was replaced or removed: frees garbage that nobody has open, and now and then
 *  what esdm__former_sweep() does. Best effort. */
void esdm__session_replaced(esdm_session *session);
/** Nothing more can be stored: frees the oldest that hold some bytes. Whether any was freed; what,
 *  the session tells (esdm_session_relieved()). */
bool esdm__former_relieve(esdm_session *session);
/** Makes those of one name garbage. */
esdm_status esdm__former_forget(esdm_session *session, const char *name,
                                esdm__former_sum *ret_freed, esdm_error *err);

#endif
