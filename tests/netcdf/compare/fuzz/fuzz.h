/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_NC_FUZZ_H
#define ESDM_TESTS_NC_FUZZ_H

/**
 * @file
 * Random sequences of NetCDF calls, made on a stock file and on an ESDM container in lock step.
 *
 * A sequence is an array of ops with all their arguments, so that it can be replayed with some of
 * them left out. It is made while it runs: an op's arguments are chosen by what the stock file
 * looks like at that moment, mostly valid, sometimes not. After each op return code and results of
 * the two sides are compared, now and then everything that the files say about themselves.
 */

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    STOCK = 0,
    ESDM = 1,
    SIDES = 2,
    FILES = 2,   /* paths */
    HANDLES = 3, /* ncids that can be open at a time */
    GROUPS = 12, /* of a handle that ops reach */
    RANK = 4,
    ARGUMENTS = 6,
    OPS_MAX = 200,
    ELEMENTS = 4096,     /* of a data request */
    RECORDS = 24,        /* an unlimited dimension does not grow beyond */
    CLOSED = 0x7f000000, /* the ncid of a handle that is not open */
    TEXT_BYTES = 2000
};

/** One call. Which members mean what is the kind's business. */
typedef struct op {
    short kind;
    short handle;
    short group; /* position in the handle's list of groups, 0: the root */
    short name;  /* index into names[] */
    short name2;
    bool null; /* optional arguments are NULL */
    int varid;
    int argument[ARGUMENTS];
    size_t length;
    size_t start[RANK];
    size_t count[RANK];
    ptrdiff_t stride[RANK];
    ptrdiff_t map[RANK];
    uint64_t data; /* from which values are made */
} op;

/** What one side gave. */
typedef struct outcome {
    int rc;
    bool skipped; /* not called: it would be too large, or touch what stock gets wrong */
    size_t bytes;
    unsigned char *data;   /* owned by the runner; OUTCOME_MAX bytes */
    char text[TEXT_BYTES]; /* the call in C */
} outcome;

enum { OUTCOME_MAX = 1 << 18 };

/** A file of both sides. */
typedef struct fuzz_file {
    char path[SIDES][300];
    bool loose_data;  /* values are not defined: NC_NOFILL, NC_ERANGE */
    bool loose_order; /* of attributes */
    bool loose_names; /* netCDF-3 keeps room for the longer name that something had */
} fuzz_file;

typedef struct fuzz_handle {
    int ncid[SIDES];
    int file;
    bool open;
    bool shared; /* NC_SHARE */
    bool writable;
    bool reopened;  /* not made by nc_create() */
    bool kept;      /* define mode was left, so that nc_abort() does not take all back */
    bool defined;   /* variables were defined since define mode was left */
    bool grown;     /* records may have been added since it was synchronised */
    bool removed;   /* something was taken out of the file since it was synchronised */
    bool rewritten; /* an attribute in the file was written again since it was synchronised */
} fuzz_handle;

typedef struct fuzz_state {
    int format; /* NC_FORMAT_… */
    int mode;   /* its bits for nc_create() */
    fuzz_file files[FILES];
    fuzz_handle handles[HANDLES];
} fuzz_state;

/** What a kind's call function gets. */
typedef struct context {
    fuzz_state *state;
    const op *op;
    int side;
    fuzz_handle *handle;
    int ncid; /* of the op's group */
    outcome *out;
} context;

/* ---- choosing ------------------------------------------------------------------------------- */

typedef struct generator {
    uint64_t seed;
    const fuzz_state *state;
    /* the group that the op is about, as stock has it */
    int ncid;
    int dims;
    int vars;
    int global_atts;
} generator;

/** splitmix64: the same numbers everywhere. */
unsigned pick(generator *g, unsigned below);
/** True once in `n`. */
bool one_in(generator *g, unsigned n);
/** Makes up a name of dims, vars, atts, groups: mostly from a small pool. */
short pick_name(generator *g);
/** A varid of the group; sometimes none. */
int pick_var(generator *g);
/** Dimensions visible in the group; sometimes not. */
int pick_dim(generator *g);
nc_type pick_type(generator *g);
const char *fuzz_name(short index);
/** The name as a C literal. */
const char *fuzz_name_text(short index);

/* ---- kinds ---------------------------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    int weight;
    bool enhanced; /* not for the three netCDF-3 formats */
    /** Fills the op; handle, group and kind are set. */
    void (*make)(generator *g, op *o);
    /** Makes the call on one side. */
    int (*call)(context *c);
} kind;

/** Lists end with an entry without a name. */
extern const kind kinds_files[];
extern const kind kinds_dims[];
extern const kind kinds_groups[];
extern const kind kinds_vars[];
extern const kind kinds_settings[];
extern const kind kinds_atts[];
extern const kind kinds_data[];
extern const kind kinds_types[];

/** All of them in one list; index is op.kind. */
const kind *fuzz_kind(int index);
int fuzz_kind_count(void);
int fuzz_kind_pick(generator *g, bool enhanced);

/* ---- in call functions ---------------------------------------------------------------------- */

/** The call as C text; `$` stands for the ncid. */
void say(context *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_int(context *c, long long value);
void out_bytes(context *c, const void *bytes, size_t count);
void out_text(context *c, const char *text);
/** Leaves the call out on both sides; for what only the stock side can tell. Gives NC_NOERR. */
int skip(context *c);
bool is_netcdf3(const fuzz_state *state);
/** A name that is not in NFC, where netCDF-4 forgets to normalise it. */
bool is_decomposed(const context *c, short name);
/** Whether some dimension (variable) of the file has one of the two names, in any group. */
bool file_has_dim(const context *c, const char *a, const char *b);
bool file_has_var(const context *c, const char *a, const char *b);
/** Whether some variable of the file has the dimension more than once. */
bool file_repeats_dim(const context *c, int dimid);
/** Whether the op's group has a group, or sees a type, of the op's name. */
bool group_has_group(const context *c);
/** Whether an attribute of the op's name that lies in the file gets `length` elements where
 * netCDF-4 does not write that. */
bool changes_att(const context *c, size_t length);
/** Notes that an attribute of the op's name is about to be written; see leaves_attribute(). */
void rewrites_att(context *c);
/** Whether values of the type, which the op's group knows, are written as an attribute through a
 * handle where netCDF-4 takes them for values as they lie in the file. */
bool writes_padding(const context *c, nc_type type, const fuzz_handle *to);
/** Whether netCDF-4 converts numbers from 2^63 on wrongly. */
bool is_large_unsigned(const context *c, nc_type from, nc_type to);
/** Whether renaming in data mode can be compared; notes what follows from it. */
bool may_rename(context *c, const char *old_name, const char *new_name);

/* ---- running -------------------------------------------------------------------------------- */

typedef enum verdict { SAME, DIFFERENT, CRASHED_STOCK, CRASHED_ESDM } verdict;

/** Written by a child, read by its parent. */
typedef struct report {
    verdict verdict;
    uint64_t seed;
    int at;   /* index of the op that differed */
    int side; /* that is being called */
    int kind;
    int rc[SIDES];
    int count;
    op ops[OPS_MAX];
    bool stock_failed; /* ended by an HDF5 error of stock netCDF alone */
    uint64_t sequences;
    uint64_t calls;
    uint64_t failures; /* sequences of that kind */
    char difference[8000];
} report;

/** Runs ops[0…count), or makes up to `count` new ones when `seed` is not 0. Stops at the first
 *  difference. `text`: gets the calls in C; NULL for none. */
void fuzz_run(report *r, int format, uint64_t seed, int count, FILE *text);
/** Runs them in a child; true when the same thing goes wrong as in `wanted`. */
bool fuzz_same_failure(const report *wanted, const op *ops, int count, int format);
/** Leaves out ops as long as the same thing goes wrong. */
void fuzz_shrink(report *r, int format);

extern report *fuzz_shared; /* between parent and child */

#endif
