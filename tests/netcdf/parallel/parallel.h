/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_PARALLEL_H
#define ESDM_TESTS_PARALLEL_H

/**
 * @file
 * The comparison of ../compare on several ranks. A scenario runs on all of them at once, first on a
 * file of stock netCDF (HDF5 in parallel, or PnetCDF for the classic formats), then on a container;
 * each rank compares its own journal.
 *
 * Nothing may fail a test in the midst of a scenario: the other ranks would wait. So scenarios only
 * note, and give up alike on all ranks. A scenario that hangs is ended by an alarm, which says
 * where.
 */

#include "../compare/compare.h"

#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

/** This process among all. */
extern int my_rank;
extern int rank_count;

/** Rank 0 calls its serial twin in scenarios whose calls stock netCDF cannot make in parallel. */
bool on_stock(const world *w);

/** nc_create_par() on all ranks with the world's format; false when it failed, on all ranks. */
bool par_create(const world *w, int *ret_ncid);
bool par_open(const char *path, int mode, int *ret_ncid);
/** All ranks have come here. */
void meet(void);
/** note_file() of a file that all ranks open for reading, which they do not share. */
void par_note(const char *path);

/** A record variable "r" (t, y, x) and a fixed one "f" (y, x), ints, of ROWS rows a rank; in data
 *  mode. */
enum { ROWS = 3, COLUMNS = 5 };
bool par_make(const world *w, int *ret_ncid, int *ret_record, int *ret_fixed);
/** ROWS * COLUMNS numbers that tell rank and step. */
void numbers(int step, int *ret);
/** The rows of this rank in step `t` of "r", or in "f". */
int put_record(int ncid, int varid, size_t t);
int put_rows(int ncid, int varid, int step);
/** Notes all of "f", or steps [0, steps) of "r". */
void note_rows(int ncid, int varid);
void note_records(int ncid, int varid, size_t steps);

#endif
