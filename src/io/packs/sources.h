/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_SOURCES_H
#define ESDM_IO_PACKS_SOURCES_H

/** @file From which targets a pack can be read here, and which one to ask first. */

#include "io/session/session.h"
#include "layout/fragment.h"

/** Places that a record may name; sites ask for up to ESDM__COPIES_MAX. */
#define ESDM__SOURCES_MAX 16u

typedef struct esdm__sources {
    esdm__target *targets[ESDM__SOURCES_MAX];
    size_t count;
} esdm__sources;

/**
 * The targets that hold the pack, those that failed lately last. ESDM_ENOENT: the configuration
 * does not know them, or they belong to other nodes, which the message names.
 */
esdm_status esdm__sources_of(esdm_session *session, const esdm__pack_name *pack,
                             esdm__sources *ret_sources, esdm_error *err);
/** Whether each read of one of the places (layout/places.h) waits for a network. */
bool esdm__sources_are_far(esdm_session *session, const char *places);
/** Notes how a read from source i ended; the others are asked first for a while after a failure. */
void esdm__sources_note(esdm_session *session, const esdm__sources *sources, size_t i,
                        esdm_status status);
/** How often a target was asked again. Zero-initialise. */
typedef struct esdm__again {
    unsigned asked; /* for what was not held */
    unsigned held;  /* for what had been asked for ahead */
} esdm__again;

/** Whether the same target is worth another request: what came over a network may have been damaged
 *  on its way. What is held of the pack from before is not handed out any more then. */
bool esdm__sources_ask_again(const esdm_session *session, const esdm__sources *sources, size_t i,
                             const char *pack, esdm_status status, esdm__again *again);
/** Whether another copy may have what this one does not. */
bool esdm__sources_go_on(const esdm__sources *sources, size_t i, esdm_status status);

#endif
