/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Random programs, the same on both sides: variables of random shapes and types, written and read
 * through every kind of access, with wrong indices among them, over several sessions. */

#include "compare.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARS = 6, DIMS = 5, RANK = 4, BUFFER = 60000, STEPS = 120 };

typedef struct program {
    uint64_t state;
    int ncid;
    int nc4;
    size_t lengths[DIMS]; /* 0: unlimited */
    int dimids[DIMS];
    int rank[VARS];
    int dims[VARS][RANK];
    nc_type type[VARS];
} program;

/* A slab of one variable. */
typedef struct box {
    size_t start[RANK];
    size_t count[RANK];
    ptrdiff_t stride[RANK];
    ptrdiff_t map[RANK];
    size_t elements;
} box;

/* splitmix64: the same numbers everywhere. */
static unsigned
pick(program *p, unsigned below)
{
    p->state += 0x9e3779b97f4a7c15u;
    uint64_t z = p->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned) ((z ^ (z >> 31)) % below);
}

static void
define(program *p, const world *w)
{
    p->ncid = create(w);
    for (int i = 0; i < DIMS; i++) {
        char name[] = "dA";
        name[1] = (char) ('A' + i);
        p->lengths[i] = i == 0 ? 0 : 1 + pick(p, 7);
        CALL(nc_def_dim(p->ncid, name, p->lengths[i], &p->dimids[i]));
    }
    nc_type last =
        w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_64BIT_DATA ? NC_UINT64 : NC_DOUBLE;
    for (int v = 0; v < VARS; v++) {
        char name[] = "vA";
        name[1] = (char) ('A' + v);
        p->rank[v] = (int) pick(p, RANK + 1);
        int ids[RANK];
        for (int d = 0; d < p->rank[v]; d++) {
            /* Elsewhere netCDF-4 mixes data and fill values when it reads past what was written. */
            p->dims[v][d] = (int) (d == 0 ? pick(p, DIMS) : 1 + pick(p, DIMS - 1));
            ids[d] = p->dimids[p->dims[v][d]];
        }
        do
            p->type[v] = 1 + (nc_type) pick(p, (unsigned) last);
        while (p->type[v] == NC_CHAR);
        CALL(nc_def_var(p->ncid, name, p->type[v], p->rank[v], ids, NULL));
        if (p->nc4 && p->rank[v] > 0 && pick(p, 2) == 0) {
            size_t chunks[RANK];
            for (int d = 0; d < p->rank[v]; d++)
                chunks[d] = p->lengths[p->dims[v][d]] == 0
                                ? 1 + pick(p, 3)
                                : 1 + pick(p, (unsigned) p->lengths[p->dims[v][d]]);
            CALL(nc_def_var_chunking(p->ncid, v, NC_CHUNKED, chunks));
            if (pick(p, 2) == 0)
                CALL(nc_def_var_deflate(p->ncid, v, 1, 1, 1));
        }
    }
    CALL(nc_enddef(p->ncid));
}

/* Mostly valid; false when nothing should be done with it. */
static bool
pick_box(program *p, int v, bool writing, int kind, box *ret)
{
    bool strided = kind == 1 || kind == 2;
    bool wrong = pick(p, 8) == 0;
    ret->elements = 1;
    for (int d = 0; d < p->rank[v]; d++) {
        size_t length = p->lengths[p->dims[v][d]];
        if (length == 0) {
            (void) nc_inq_dimlen(p->ncid, p->dimids[p->dims[v][d]], &length);
            length += writing ? pick(p, 4) : 0;
        }
        if (length == 0)
            wrong = true;
        unsigned most = (unsigned) (length == 0 ? 1 : length);
        ret->start[d] = pick(p, most);
        ret->stride[d] = strided ? 1 + (ptrdiff_t) pick(p, 3) : 1;
        if (p->lengths[p->dims[v][d]] == 0 && kind == 1 && !writing)
            ret->stride[d] = 1; /* netCDF-4 mistakes where the fill values begin otherwise */
        size_t room = (length - (length == 0 ? 0 : ret->start[d]) + (size_t) ret->stride[d] - 1) /
                      (size_t) ret->stride[d];
        ret->count[d] = room == 0 ? 1 : 1 + pick(p, (unsigned) room);
        if (wrong && !strided && pick(p, 2) == 0)
            ret->start[d] += pick(p, 3);
        ret->elements *= ret->count[d];
    }
    /* Memory with the axes the other way round. */
    ptrdiff_t step = 1;
    for (int d = 0; d < p->rank[v]; d++) {
        ret->map[d] = step;
        step *= (ptrdiff_t) ret->count[d];
    }
    return ret->elements < BUFFER;
}

static void
put(program *p, int v, int kind, const box *b)
{
    static double doubles[BUFFER];
    static int ints[BUFFER];
    static unsigned char bytes[BUFFER];
    for (size_t i = 0; i < b->elements; i++) {
        ints[i] = (int) pick(p, 100);
        doubles[i] = ints[i];
        bytes[i] = (unsigned char) ints[i];
    }
    unsigned memory = pick(p, 3);
    if (kind == 0 && memory == 0)
        CALL(nc_put_vara_double(p->ncid, v, b->start, b->count, doubles));
    else if (kind == 0 && memory == 1)
        CALL(nc_put_vara_int(p->ncid, v, b->start, b->count, ints));
    else if (kind == 0)
        CALL(nc_put_vara_uchar(p->ncid, v, b->start, b->count, bytes));
    else if (kind == 1)
        CALL(nc_put_vars_double(p->ncid, v, b->start, b->count, b->stride, doubles));
    else if (kind == 2)
        CALL(nc_put_varm_int(p->ncid, v, b->start, b->count, b->stride, b->map, ints));
    else
        CALL(nc_put_var1_double(p->ncid, v, b->start, doubles));
}

static void
get(program *p, int v, int kind, const box *b)
{
    static double doubles[BUFFER];
    static short shorts[BUFFER];
    memset(doubles, 0, (b->elements + 1) * sizeof doubles[0]);
    memset(shorts, 0, (b->elements + 1) * sizeof shorts[0]);
    int rc;
    if (kind == 0)
        rc = CALL(nc_get_vara_double(p->ncid, v, b->start, b->count, doubles));
    else if (kind == 1)
        rc = CALL(nc_get_vars_double(p->ncid, v, b->start, b->count, b->stride, doubles));
    else if (kind == 2)
        rc = CALL(nc_get_varm_double(p->ncid, v, b->start, b->count, b->stride, b->map, doubles));
    else
        rc = CALL(nc_get_var1_double(p->ncid, v, b->start, doubles));
    if (rc == NC_NOERR)
        note_bytes("got", doubles, (kind == 3 ? 1 : b->elements) * sizeof doubles[0]);
    /* Fill values do not fit everywhere; then only the code is compared. */
    if (kind == 0 && CALL(nc_get_vara_short(p->ncid, v, b->start, b->count, shorts)) == NC_NOERR)
        note_bytes("short", shorts, b->elements * sizeof shorts[0]);
}

static void
step(program *p)
{
    int v = (int) pick(p, VARS);
    bool writing = pick(p, 2) == 0;
    int kind = (int) pick(p, 4);
    box b = {.elements = 0};
    if (!pick_box(p, v, writing, kind, &b))
        return;
    note("var %d type %d kind %d", v, p->type[v], kind);
    note_sizes("start", b.start, (size_t) p->rank[v]);
    note_sizes("count", b.count, (size_t) p->rank[v]);
    if (writing)
        put(p, v, kind, &b);
    else
        get(p, v, kind, &b);
}

static void
run(const world *w)
{
    for (unsigned seed = 1; seed <= 16; seed++) {
        program p = {.state = (uint64_t) seed * 7919u};
        p.nc4 = w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC;
        note("seed %u", seed);
        define(&p, w);
        for (int i = 0; i < STEPS; i++) {
            step(&p);
            if (pick(&p, 25) == 0)
                CALL(nc_sync(p.ncid));
            if (pick(&p, 40) == 0) {
                CALL(nc_close(p.ncid));
                p.ncid = reopen(w, NC_WRITE);
            }
        }
        CALL(nc_close(p.ncid));
        p.ncid = reopen(w, NC_NOWRITE);
        note_file(p.ncid);
        CALL(nc_close(p.ncid));
        CALL(nc_delete(w->path));
    }
}

const scenario scenarios_random[] = {{"random", "programs", IN_ALL, run}, {0}};
