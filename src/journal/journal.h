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
 * stored: there a thread does it, and esdm__journal_free() waits for it. What waits is bounded, and
 * so is the time: when the target does nothing for so long, records are left out, as if the program
 * had been killed before it entered them, and the backup that is made then has what they told.
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
    bool durable;       /* what was entered is flushed, about once a second and in the end */
    size_t queue_bytes; /* that may wait for a target over a network; 0: 64 MiB */
    uint32_t wait_ms; /* for how long somebody waits for such a target that does nothing; 0: 30 s */
} esdm__journal_host;

/** NULL when out of memory. Makes nothing on a target yet. */
esdm__journal *esdm__journal_new(const esdm__journal_host *host);
/** Ends the journal; NULL is accepted. In a forked child only memory is freed. */
void esdm__journal_free(esdm__journal *journal);
/** Enters whole records, whose memory it takes over in every case. @param wait for room, when too
 *  much waits for a target; not within a transaction, which holds others up. */
void esdm__journal_enter(esdm__journal *journal, esdm__buffer *records, bool wait);
/** Notes that something could not even be put into a record. */
void esdm__journal_lack(esdm__journal *journal);
/** Whether records were left out since the last esdm__journal_settle(). Does not wait. */
bool esdm__journal_lacks(const esdm__journal *journal);
/** Waits until all is stored, or the target does nothing any more. @return whether all records were
 *  entered since the last call. */
bool esdm__journal_settle(esdm__journal *journal);

#endif
