/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_JOURNAL_H
#define ESDM_JOURNAL_JOURNAL_H

/**
 * @file
 * The journal of one session: what it has changed in the catalogue, on a target that all nodes
 * share. A change is entered after its transaction, so the journal never has what did not take
 * place; a program that is killed in between has not been told of it.
 *
 * On targets whose packs can be read while they are written a record is appended at once. Others
 * get a pack for each record, or, over a network, for all that came while the one before was being
 * stored: there a thread does it, and esdm__journal_free() waits for it.
 *
 * The journal never makes a change fail: what it could not enter, it tells.
 * Threads: locked inside.
 */

#include "journal/reader.h"

typedef struct esdm__journal esdm__journal;

/** How the journal gets at the targets, in the order in which they are tried. */
typedef struct esdm__journal_host {
    size_t ntargets;
    /** Plug-in of target i, which need not be open. */
    const esdm_data_plugin *(*plugin)(void *user, size_t i);
    /** Opens target i. */
    esdm_status (*open)(void *user, size_t i, esdm__journal_target *ret_target, esdm_error *err);
    void *user;
    bool durable; /* what was entered is flushed, about once a second and in the end */
} esdm__journal_host;

/** NULL when out of memory. Makes nothing on a target yet. */
esdm__journal *esdm__journal_new(const esdm__journal_host *host);
/** Ends the journal; NULL is accepted. In a forked child only memory is freed. */
void esdm__journal_free(esdm__journal *journal);
/** Enters whole records, whose memory it takes over in every case. */
void esdm__journal_enter(esdm__journal *journal, esdm__buffer *records);
/** Waits until all is stored. @return whether all records were entered since the last call. */
bool esdm__journal_settle(esdm__journal *journal);

#endif
