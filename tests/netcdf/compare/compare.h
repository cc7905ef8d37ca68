/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_COMPARE_H
#define ESDM_TESTS_COMPARE_H

/**
 * @file
 * Runs the same NetCDF calls on a file of stock netCDF and on an ESDM container and compares what
 * they return, call by call.
 *
 * A scenario is a function that makes calls through CALL() and tells values through note_*(). It
 * runs once with a plain path and once with an `esdm:` path, in every format that it names. Each
 * entry of the two journals must be the same.
 */

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct world {
    const char *path;  /* where to create; nothing is there */
    const char *other; /* a second place */
    int mode;          /* format bits for nc_create() */
    int format;        /* NC_FORMAT_… */
} world;

typedef void (*scenario_fn)(const world *w);

/** Bits for the formats that a scenario runs in. */
enum {
    IN_CLASSIC = 1,
    IN_CDF2 = 2,
    IN_CDF5 = 4,
    IN_NC4 = 8,
    IN_NC4C = 16,
    IN_CDF = IN_CLASSIC | IN_CDF2 | IN_CDF5,
    IN_STRICT = IN_CDF | IN_NC4C,
    IN_HDF5 = IN_NC4 | IN_NC4C,
    IN_ALL = IN_CDF | IN_HDF5
};

typedef struct scenario {
    const char *area; /* "dims" */
    const char *name;
    int formats;
    scenario_fn run;
} scenario;

/** Each area's list ends with an entry without a name. */
extern const scenario scenarios_atts[];
extern const scenario scenarios_data[];
extern const scenario scenarios_dims[];
extern const scenario scenarios_fill[];
extern const scenario scenarios_groups[];
extern const scenario scenarios_modes[];
extern const scenario scenarios_names[];
extern const scenario scenarios_random[];
extern const scenario scenarios_ranges[];
extern const scenario scenarios_storage[];
extern const scenario scenarios_vars[];

/** Makes a call, notes its text and result, and gives the result. */
#define CALL(call) note_call(__FILE__, __LINE__, #call, (call))

int note_call(const char *file, int line, const char *text, int rc);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_ints(const char *what, const int *values, size_t count);
void note_sizes(const char *what, const size_t *values, size_t count);
void note_doubles(const char *what, const double *values, size_t count);
void note_bytes(const char *what, const void *values, size_t bytes);

/** Notes everything that a file or group says about itself and below, with all data. */
void note_file(int ncid);

/** Creates with the world's format; fails the test when that fails. */
int create(const world *w);
/** Opens; fails the test when that fails. */
int reopen(const world *w, int mode);

#endif
