/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_RANKS_H
#define TESTS_INTEGRATION_RANKS_H

/**
 * @file
 * Programs of several ranks. The same scenarios run with threads as ranks (main_threads.c: no MPI
 * needed, and sanitizers see everything) and over MPI (main_mpi.c).
 */

#include "../testing.h"

/** What one rank has. */
typedef struct rank_state {
    esdm_comm *comm; /* all ranks */
    esdm_session *session;
    int rank;
    int size;
} rank_state;

typedef void (*scenario)(rank_state *r);

/** Every scenario leaves the ranks ready for the next one. Ends with a NULL name. */
typedef struct named_scenario {
    const char *name;
    scenario run;
} named_scenario;
extern const named_scenario order_scenarios[];
extern const named_scenario commit_scenarios[];
extern const named_scenario difference_scenarios[];
extern const named_scenario shape_scenarios[];

/** Runs all scenarios, or those whose name begins with `only`. */
void run_scenarios(rank_state *r, const char *only);

/* ---- helpers (ranks.c) --------------------------------------------------------------------- */

/** All ranks have come here. */
void meet(rank_state *r);
/** A container with the unlimited dimension "time" and the dimensions "y" (ROWS a rank) and "x"
 *  (COLUMNS), and a dataset "v" of int32 over all three. */
enum { ROWS = 4, COLUMNS = 6 };
esdm_container *create(rank_state *r, const char *name, esdm_create_mode mode);
esdm_container *open_all(rank_state *r, const char *name, esdm_open_mode mode);
esdm_dataset *find(esdm_container *container, const char *name);
esdm_dimension *find_dimension(esdm_container *container, const char *name);

/** A box of "v". */
esdm_dataspace box3(uint64_t t, uint64_t y, uint64_t x, uint64_t nt, uint64_t ny, uint64_t nx);
/** Writes or reads one value everywhere in the box; `collective`: by the collective call. */
void put(esdm_dataset *dataset, esdm_dataspace space, int32_t value, bool collective);
/** Takes part in a collective write without data. */
void put_nothing(esdm_dataset *dataset);
/** All elements of the box have the value. */
void expect(esdm_dataset *dataset, esdm_dataspace space, int32_t value, bool collective);
/** The container as another process would see it, on this rank alone; borrowed session. */
esdm_container *open_alone(rank_state *r, const char *name);

#endif
