/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_DECISIONS_H
#define ESDM_IO_PACKS_DECISIONS_H

/**
 * @file
 * What the placement decided for the packs that one handle of a container writes, and how long they
 * took: for esdm-stat --explain. Kept as a fact of the container, one for each writer, next to the
 * pages and not in them: no data depend on it, older versions ignore it, and it goes with the
 * container. Written at the end and now and then, best effort. Threads: locked inside.
 */

#include "io/packs/pack.h"
#include "placement/placement.h"

typedef struct esdm__decisions esdm__decisions;

/** NULL when out of memory: then nothing is noted. */
esdm__decisions *esdm__decisions_new(void);
void esdm__decisions_free(esdm__decisions *d); /* NULL is accepted */

/** One fragment, as it was placed. */
typedef struct esdm__decision {
    const char *pack;
    size_t chosen; /* place in the order: 0 unless others refused */
    const esdm__place_choice *order;
    size_t count; /* of the order, forbidden ones too */
    uint64_t bytes;
    double predicted_s; /* of the request, with what was under way; 0: no model */
    double observed_s;
} esdm__decision;

/** Takes note of a fragment. NULL is accepted. */
void esdm__decisions_note(esdm__decisions *d, const esdm__decision *decision);
/** The pack took some more time: it was synced or sealed. NULL is accepted. */
void esdm__decisions_spent(esdm__decisions *d, const char *pack, double seconds);
/** Writes what was noted, and the counts of all that was written, as a fact of the container;
 *  `rarely`: only when a minute has passed since the last time. NULL is accepted. */
void esdm__decisions_store(esdm__decisions *d, const esdm__pack_owner *owner,
                           const esdm_write_counts *counts, bool rarely);

/** The sum of the counts that all writers of a container have stored. */
esdm_status esdm__decisions_history(esdm_session *session, const char *uuid,
                                    esdm_write_counts *ret_counts, esdm_error *err);
/** Visits what is known of a container's packs. A record that is damaged is left out. */
esdm_status esdm__decisions_visit(esdm_session *session, const char *uuid,
                                  esdm_decision_visitor visit, void *user, esdm_error *err);

#endif
