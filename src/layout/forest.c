/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/forest.h"

#include <stdlib.h>

#define TAIL_MAX 32u /* scanning so many costs less than a tree */

void
esdm__forest_clear(esdm__forest *forest)
{
    for (uint32_t i = 0; i < forest->nruns; i++)
        esdm__rtree_clear(&forest->runs[i].tree);
    free(forest->runs);
    *forest = (esdm__forest){0};
}

/* Makes the tail a run, together with the runs before it that are not at least twice as long. */
static void
index_tail(esdm__forest *forest, uint32_t rank, const uint64_t *bounds, uint32_t count)
{
    if (forest->runs == NULL)
        forest->runs = calloc(ESDM__FOREST_RUNS, sizeof *forest->runs);
    if (forest->runs == NULL)
        return; /* the tail is scanned */
    uint32_t first = forest->indexed;
    uint32_t keep = forest->nruns;
    while (keep > 0 &&
           (forest->runs[keep - 1].count / 2 < count - first || keep == ESDM__FOREST_RUNS)) {
        keep--;
        first = forest->runs[keep].first;
    }
    esdm__forest_run run = {.first = first, .count = count - first};
    if (!esdm__rtree_build(&run.tree, rank, esdm__bounds_at(rank, bounds, first), run.count))
        return; /* the tail is scanned */
    for (uint32_t i = keep; i < forest->nruns; i++)
        esdm__rtree_clear(&forest->runs[i].tree);
    forest->runs[keep] = run;
    forest->nruns = keep + 1;
    forest->indexed = count;
}

/* Adds the first index of a run to what its tree finds. */
typedef struct run_visit {
    uint32_t first;
    esdm__rtree_fn visit;
    void *user;
} run_visit;

static bool
visit_run_box(uint32_t box, void *user)
{
    const run_visit *v = user;
    return v->visit(v->first + box, v->user);
}

bool
esdm__forest_query(esdm__forest *forest, uint32_t rank, const uint64_t *bounds, uint32_t count,
                   const uint64_t *request, esdm__rtree_fn visit, void *user)
{
    if (count - forest->indexed > TAIL_MAX)
        index_tail(forest, rank, bounds, count);
    for (uint32_t i = 0; i < forest->nruns; i++) {
        const esdm__forest_run *run = &forest->runs[i];
        run_visit v = {run->first, visit, user};
        if (!esdm__rtree_query(&run->tree, esdm__bounds_at(rank, bounds, run->first), request,
                               visit_run_box, &v))
            return false;
    }
    for (uint32_t i = forest->indexed; i < count; i++) {
        if (esdm__bounds_meet(rank, esdm__bounds_at(rank, bounds, i), request) && !visit(i, user))
            return false;
    }
    return true;
}
