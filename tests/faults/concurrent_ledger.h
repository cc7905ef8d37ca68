/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_FAULTS_CONCURRENT_LEDGER_H
#define TESTS_FAULTS_CONCURRENT_LEDGER_H

/**
 * @file
 * What the processes of concurrent_worker share: a file in memory that knows the legal history of
 * each value, and what is compared with it.
 *
 * A container has the datasets "a", "b" and "c", each with one row for each writer. A commit of a
 * writer writes its row of all. Elements of "a" tell container, row, sequence and column; those of
 * "b" not the container, so that equal fragments can be shared; "c" is as "a", and wide, so that a
 * handle that commits often leaves enough that was written over for its close to free it, and for
 * esdm-compact to empty packs; of it a reader looks at one row. Committed sequences are even. A
 * writer may write an odd one first, and does not commit it: nobody else may ever see one.
 */

#include <stdatomic.h>

#include "integration/testing.h"

enum {
    CONTAINERS = 4,
    SHARING =
        3, /* of these: packs of the last one are shared with none, so that they are emptied */
    WRITERS = 16, /* at most */
    BRANCHERS = 4,
    KEEPERS = 2,
    ROWS = WRITERS + BRANCHERS,
    COLUMNS = 300,
    WIDE = 8192, /* columns of "c" */
    MANY = 24,   /* commits of a handle that writes over what its close frees */
    SLOTS = 12   /* of keepers: slot i is of keeper i % KEEPERS */
};

typedef enum slot_state { SLOT_FREE, SLOT_MAKING, SLOT_THERE, SLOT_GOING } slot_state;

/* A tag or a clone, which never changes. Its name has the number of the use, which is not used
 * again. */
typedef struct slot {
    _Atomic uint32_t state;
    _Atomic uint32_t use;
    _Atomic uint32_t container;
    _Atomic uint64_t sequences[ROWS];
} slot;

typedef struct counts {
    _Atomic uint64_t commits, drafts, reads, again, earlier, kept, tags, clones, branches, changes;
    _Atomic uint64_t caught_up, merges, meetings, freed;
} counts;

typedef struct ledger {
    _Atomic uint32_t stop;
    _Atomic uint64_t begun[CONTAINERS][ROWS]; /* the newest sequence that may be there */
    _Atomic uint64_t least[CONTAINERS][ROWS]; /* that was told as committed, or was seen */
    slot slots[SLOTS];
    counts counts;
} ledger;

/* What one snapshot holds. */
typedef struct contents {
    uint64_t sequences[ROWS];
} contents;

extern ledger *shared;

/* ---- concurrent_ledger.c ------------------------------------------------------------------- */

void map_ledger(const char *file);
void add_one(_Atomic uint64_t *counter);
/** A later reader must see that, or what is newer. */
void at_least(uint32_t container, uint32_t row, uint64_t sequence);
void copy_least(uint32_t container, contents *ret);
void copy_begun(uint32_t container, contents *ret);

/** Writes a row of all datasets. */
void write_sequence(esdm_container *handle, uint32_t container, uint32_t row, uint64_t sequence);
/** Reads "a" and "b" whole and one row of "c"; ends the process when a row is of more than one
 * sequence, of another writer or container, or was never committed. */
void read_contents(esdm_container *handle, uint32_t container, const char *name, contents *ret);
/** Ends the process when a row is older than `least`, or newer than `most`. */
void is_legal(const char *name, const contents *seen, const contents *least, const contents *most);
void is_same(const char *name, const contents *seen, const contents *wanted);
/** Opens, reads and closes what may not be there. @return whether it was. */
bool read_named(esdm_session *session, const char *name, uint32_t container, contents *ret);

#endif
