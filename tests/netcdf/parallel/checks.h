/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CHECKS_H
#define ESDM_TESTS_CHECKS_H

/**
 * @file
 * What programs share that check containers on several ranks by themselves: what does not hold is
 * told with rank and line, and ends all ranks.
 */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/** This process among all; set by checks_start(). */
extern int rank;
extern int size;

/** MPI_Init(), and who this is. */
void checks_start(int *argc, char ***argv);

void check_holds(bool holds, const char *text, const char *file, int line);
void check_gives(int rc, int code, const char *text, const char *file, int line);

#define CHECK(condition)  check_holds((condition), #condition, __FILE_NAME__, __LINE__)
#define GIVES(call, code) check_gives((call), (code), #call, __FILE_NAME__, __LINE__)
#define OK(call)          GIVES(call, NC_NOERR)

/** nc_create_par() of all ranks. */
int create(const char *path, int mode);
/** The same, with a variable v(t, y, x) of ints that is written collectively: steps, of which each
 *  rank has so many rows. */
int create_steps(const char *path, size_t rows, size_t columns, int *ret_var);

#endif
