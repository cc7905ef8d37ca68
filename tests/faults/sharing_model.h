/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_FAULTS_SHARING_MODEL_H
#define TESTS_FAULTS_SHARING_MODEL_H

/** @file What the parts of sharing_model share: the model, a step, and what is done with them. */

enum { NAMES = 6, ROWS = 10, COLUMNS = 300, KINDS = 18, VALUES = 200000 };

#include "integration/rows.h"

/* One container as it should be. */
typedef struct content {
    bool exists;
    uint32_t rows;
    int32_t values[ROWS];
} content;

typedef struct state {
    content now;
    bool knows_before;
    content before; /* of the snapshot before */
    content branch; /* as its branch should be */
    content base;   /* of the branch when it began, or was merged */
} state;

typedef enum kind {
    CREATE,
    OVERWRITE,
    APPEND,
    CLONE,
    CLONE_BEFORE,
    REMOVE,
    ERASE,
    RENAME,
    COLLECT,
    DRAIN,
    DRAIN_ONE,
    COMPACT,
    REPAIR,
    DEDUP,
    BRANCH,
    CHANGE_BRANCH,
    MERGE,
    UNBRANCH
} kind;

typedef struct operation {
    kind kind;
    uint32_t a;
    uint32_t b;
    uint32_t row;
    int32_t value;
} operation;

extern state model[NAMES]; /* what should be there now */

/** A random number. */
uint32_t any(uint32_t below);
const char *name_of(uint32_t i);

/* ---- sharing_expected.c ------------------------------------------------------------------- */

/** Chooses a step. false: it makes no sense now. */
bool choose(operation *op);
/** What should be there after a step. */
void apply(const operation *op, state *all);

/* ---- sharing_operations.c ----------------------------------------------------------------- */

/** Does a step, with a session of its own. @param compacted fragments, added to. */
void do_step(const operation *op, uint64_t *compacted);
/** Removes everything, and looks whether nothing is left. */
void leave_nothing(void);

/* ---- sharing_compare.c -------------------------------------------------------------------- */

/** Whether the containers of a step (NULL: all of them) are as in `all`; by another process. */
bool compare(const operation *op, const state *all);
/** Begins and ends readers, which have containers open meanwhile. @param step UINT64_MAX: ends all.
 */
void turn_readers(uint64_t step);
/** In a child: it does not hold the readers' pipes open. */
void forget_readers(void);

#endif
