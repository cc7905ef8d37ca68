/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which steps sharing_model takes, and what should be there after them. */

#include "faults/sharing_model.h"

static void
commit(state *s, uint32_t row, int32_t value)
{
    s->before = s->now;
    s->knows_before = true;
    s->now.values[row] = value;
    if (row == s->now.rows)
        s->now.rows++;
}

/* Theirs wins where both have changed a row. */
static void
merge_rows(state *s)
{
    const content *base = &s->base;
    const content *theirs = &s->branch;
    for (uint32_t row = 0; row < theirs->rows; row++) {
        if (row >= base->rows || theirs->values[row] != base->values[row])
            s->now.values[row] = theirs->values[row];
    }
    s->now.rows = theirs->rows > s->now.rows ? theirs->rows : s->now.rows;
    s->base = s->branch;
    s->knows_before = false;
}

void
apply(const operation *op, state *all)
{
    state *a = &all[op->a];
    state *b = &all[op->b];
    switch (op->kind) {
    case CREATE:
        *a = (state){.now = {.exists = true, .rows = op->row + 1}};
        for (uint32_t i = 0; i <= op->row; i++)
            a->now.values[i] = op->value + (int32_t) i;
        break;
    case OVERWRITE:
    case APPEND:
        commit(a, op->row, op->value);
        break;
    case CLONE:
        *b = (state){.now = a->now};
        break;
    case CLONE_BEFORE:
        *b = (state){.now = a->before};
        break;
    case RENAME:
        *b = *a;
        *a = (state){.knows_before = false};
        break;
    case REMOVE:
    case ERASE:
        *a = (state){.knows_before = false};
        break;
    case COMPACT: /* perhaps there was nothing to do, and no commit */
        a->knows_before = false;
        break;
    case BRANCH:
        a->branch = a->base = a->now;
        break;
    case CHANGE_BRANCH:
        a->branch.values[op->row] = op->value;
        a->branch.rows += op->row == a->branch.rows;
        break;
    case MERGE:
        merge_rows(a);
        break;
    case UNBRANCH:
        a->branch = a->base = (content){.exists = false};
        break;
    default:
        break;
    }
}

bool
choose(operation *op)
{
    static const kind often[] = {
        CREATE,        OVERWRITE,     OVERWRITE,     OVERWRITE, APPEND, APPEND,  CLONE,   CLONE,
        CLONE,         CLONE,         CLONE_BEFORE,  REMOVE,    ERASE,  RENAME,  COLLECT, DRAIN,
        DRAIN_ONE,     COMPACT,       COMPACT,       REPAIR,    DEDUP,  BRANCH,  BRANCH,  BRANCH,
        CHANGE_BRANCH, CHANGE_BRANCH, CHANGE_BRANCH, MERGE,     MERGE,  UNBRANCH};
    *op = (operation){.kind = often[any(sizeof often / sizeof often[0])],
                      .a = any(NAMES),
                      .b = any(NAMES),
                      .row = any(ROWS),
                      .value = (int32_t) any(VALUES)};
    const state *a = &model[op->a];
    const state *b = &model[op->b];
    if (op->kind == BRANCH)
        return a->now.exists && !a->branch.exists;
    if (op->kind == CHANGE_BRANCH)
        op->row %= a->branch.rows + 1;
    if (op->kind == CHANGE_BRANCH || op->kind == MERGE || op->kind == UNBRANCH)
        return a->branch.exists && op->row < ROWS;
    /* What is replaced, removed or renamed has no branches here. */
    if ((op->kind == CREATE || op->kind == REMOVE || op->kind == ERASE || op->kind == RENAME) &&
        a->branch.exists)
        return false;
    if ((op->kind == CLONE || op->kind == CLONE_BEFORE || op->kind == RENAME) && b->branch.exists)
        return false;
    if (op->kind == DEDUP || op->kind == COLLECT || op->kind == DRAIN || op->kind == REPAIR ||
        op->kind == CREATE)
        return true;
    if (op->kind == APPEND)
        op->row = a->now.rows;
    if (op->kind == OVERWRITE && a->now.rows > 0)
        op->row %= a->now.rows;
    if (op->kind == CLONE_BEFORE)
        return a->now.exists && a->knows_before;
    if (op->kind == CLONE || op->kind == RENAME)
        return a->now.exists && op->a != op->b;
    return a->now.exists && (op->kind != APPEND || op->row < ROWS);
}
