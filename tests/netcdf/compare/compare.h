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
 * entry of the two journals must be the same, unless differences.c lists the difference with its
 * reason.
 *
 * An area is a file AREA.c in this folder that defines `scenarios_AREA`; CMake finds it. Which
 * functions were called, how often and with what outcome is recorded (compare_record.c); report.py
 * makes COMPATIBILITY.md of that.
 */

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

typedef struct compared_format {
    int bit;    /* IN_… */
    int mode;   /* for nc_create() */
    int format; /* NC_FORMAT_… */
    const char *name;
} compared_format;

enum { FORMAT_COUNT = 5 };
extern const compared_format compared_formats[FORMAT_COUNT];

/** Each area's list, `scenarios_AREA`, ends with an entry without a name. */
typedef struct scenario {
    const char *area; /* the name of the file */
    const char *name;
    int formats;
    scenario_fn run;
} scenario;

/**
 * The main program: `nc_compare_calls [AREA [NAME]]`, or `--list` for the differences. With
 * NC_COMPARE_DUMP set it prints what stock netCDF did (what ESDM did when set to "esdm"), with
 * NC_COMPARE_RECORD it writes there what was called.
 *
 * @param areas  lists of scenarios, NULL behind the last.
 */
int compare_main(int argc, char **argv, const scenario *const areas[]);

/* ---- in scenarios --------------------------------------------------------------------------- */

/** Makes a call, notes its text and result, and gives the result. */
#define CALL(call) note_call(__FILE__, __LINE__, #call, (call))
/** The same for a call through a pointer: `name` is the text to note, "nc_get_var(…)". */
#define CALL_AS(name, call) note_call(__FILE__, __LINE__, name, (call))

int note_call(const char *file, int line, const char *text, int rc);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_ints(const char *what, const int *values, size_t count);
void note_sizes(const char *what, const size_t *values, size_t count);
void note_doubles(const char *what, const double *values, size_t count);
void note_bytes(const char *what, const void *values, size_t bytes);

/* compare_values.c: values of any type, as the file describes it. */

/** Bytes of an element in memory; 0 for an unknown type. */
size_t value_bytes(int ncid, nc_type type);
/** Fills memory with elements that `seed` tells; what they hold is malloc'ed. */
void values_make(int ncid, nc_type type, void *values, size_t count, uint64_t *seed);
void values_note(int ncid, const char *what, nc_type type, const void *values, size_t count);

/** Notes everything that a file or group says about itself and below, with all data. */
void note_file(int ncid);
/** What note_file() notes from now on: all at first. Attributes without their order are sorted. */
void note_parts(bool data, bool att_order);

/** Whether a dimension that the group sees is unlimited. */
bool is_unlimited(int ncid, int dimid);
/** Whether netCDF-4 cannot be trusted to read more than an element of such a variable. */
bool reads_past_extents(int ncid, int rank, const int *dimids);

/** Creates with the world's format; fails the test when that fails. */
int create(const world *w);
/** Opens; fails the test when that fails. */
int reopen(const world *w, int mode);

/** With NC_COMPARE_TRAPS set an operation that is invalid, overflows or divides by zero ends the
 * program on ESDM's side, as in models that are compiled with -ffpe-trap. A scenario that makes odd
 * numbers switches that off meanwhile. */
void traps_on(void);
void traps_off(void);

/**
 * True. Stands where a scenario leaves out what stock netCDF gets wrong: `id` names the entry in
 * differences.c that says why.
 */
bool left_out(const char *id);

/* ---- journals, compare_journal.c ------------------------------------------------------------ */

typedef struct entry {
    char *text; /* owned */
    bool is_call;
    int rc; /* of a call */
} entry;

typedef struct journal {
    entry *entries;
    size_t count;
    size_t capacity;
} journal;

/** Notes go there from now on; NULL: nowhere. */
void journal_select(journal *log);
/** Where they go now. */
journal *journal_selected(void);
void journal_clear(journal *log);
/** Fails the test when they differ otherwise than listed, records the calls, and clears both.
 *  @param show prints one of them first when NC_COMPARE_DUMP asks for it. */
void journals_judge(journal *stock, journal *esdm, const char *area, int format_bit, bool show);

/* ---- what differs, differences.c ------------------------------------------------------------ */

typedef struct difference {
    const char *area;  /* "*": any */
    int formats;       /* IN_… */
    const char *stock; /* what stock netCDF noted; '*' stands for any text */
    const char *esdm;  /* what ESDM noted */
    const char *reason;
} difference;

/** Functions without a comparison, and things that no scenario does, with the reason. */
typedef struct omission {
    const char *what; /* the function, or the id for left_out() */
    const char *reason;
} omission;

extern const difference known_differences[];
extern const omission functions_left_out[];
extern const omission behaviours_left_out[];
/** Index of the difference that explains the two lines, -1 for none. */
int difference_find(const char *area, int format_bit, const char *stock, const char *esdm);
/** Prints the three tables for report.py. */
void differences_list(void);

/* ---- what was called, compare_record.c ------------------------------------------------------ */

/** Counts a call; `text` begins with the function's name. `listed` is the index of its difference,
 * or -1. */
void record_call(const char *text, int format_bit, int rc, int listed);
/** Writes the counts to $NC_COMPARE_RECORD, when that is set. */
int record_write(const char *area);

#endif
