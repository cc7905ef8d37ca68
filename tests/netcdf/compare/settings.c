/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Random sequences of everything that a variable can be told, valid and invalid, over several
 * sessions, with all inquiries after each call. */

#include "compare.h"

#include <netcdf_filter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 7, VARS = 7, RANK = 3, STEPS = 60 };

typedef struct program {
    uint64_t state;
    int ncid;
    int dimids[DIMS];
    size_t lengths[DIMS];
    int vars;
    int rank[VARS];
    nc_type type[VARS];
    size_t elements[VARS];
    bool created[VARS]; /* perhaps */
} program;

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

/* A number from first to last. */
static int
pick_in(program *p, int first, int last)
{
    return first + (int) pick(p, (unsigned) (last - first + 1));
}

static void
note_filters(int ncid, int v)
{
    size_t count = 99;
    unsigned ids[20] = {0};
    if (CALL(nc_inq_var_filter_ids(ncid, v, &count, ids)) == NC_NOERR)
        note("%zu filters", count);
    for (size_t i = 0; i < count && i < 20; i++) {
        size_t params = 99;
        unsigned values[40] = {0};
        CALL(nc_inq_var_filter_info(ncid, v, ids[i], &params, values));
        note("filter %u: %zu %u %u %u %u", ids[i], params, values[0], values[1], values[2],
             values[3]);
    }
    unsigned id = 0;
    CALL(nc_inq_var_filter(ncid, v, &id, NULL, NULL));
    int mask = -1;
    int pixels = -1;
    CALL(nc_inq_var_szip(ncid, v, &mask, &pixels));
    note("first %u szip %d %d", id, mask, pixels);
}

static void
note_settings(int ncid, int v, nc_type type)
{
    int kind = -1;
    size_t chunks[RANK] = {0};
    CALL(nc_inq_var_chunking(ncid, v, &kind, chunks));
    note("kind %d", kind);
    note_sizes("chunk", chunks, RANK);
    int shuffle = -1;
    int deflate = -1;
    int level = -1;
    int fletcher32 = -1;
    int endian = -1;
    CALL(nc_inq_var_deflate(ncid, v, &shuffle, &deflate, &level));
    CALL(nc_inq_var_fletcher32(ncid, v, &fletcher32));
    CALL(nc_inq_var_endian(ncid, v, &endian));
    note("shuffle %d deflate %d level %d fletcher32 %d endian %d", shuffle, deflate, level,
         fletcher32, endian);
    note_filters(ncid, v);
    int nofill = -1;
    union {
        double number;
        char *text;
        unsigned char bytes[8];
    } fill = {.number = 0};
    if (CALL(nc_inq_var_fill(ncid, v, &nofill, &fill)) == NC_NOERR) {
        note("nofill %d", nofill != 0);
        if (type == NC_STRING && fill.text != NULL) {
            note("'%s'", fill.text);
            free(fill.text);
        } else if (type != NC_STRING) {
            note_bytes("fill", fill.bytes, 8);
        }
    }
    size_t bytes = 0;
    size_t slots = 0;
    float preemption = 0;
    CALL(nc_get_var_chunk_cache(ncid, v, &bytes, &slots, &preemption));
    note("cache %zu %zu %g", bytes, slots, (double) preemption);
    int mode = -1;
    int digits = -1;
    CALL(nc_inq_var_quantize(ncid, v, &mode, &digits));
    note("quantize %d %d", mode, digits);
    int atts = -1;
    CALL(nc_inq_varnatts(ncid, v, &atts));
    note("%d attributes", atts);
    for (int i = 0; i < atts; i++) {
        char name[NC_MAX_NAME + 1] = "";
        nc_type att_type = 0;
        size_t length = 0;
        CALL(nc_inq_attname(ncid, v, i, name));
        CALL(nc_inq_att(ncid, v, name, &att_type, &length));
        note("'%s' %d %zu", name, att_type, length);
    }
}

static void
define_var(program *p)
{
    char name[] = "vA";
    int v = p->vars;
    name[1] = (char) ('A' + v);
    p->rank[v] = pick_in(p, 0, RANK);
    p->type[v] = pick_in(p, NC_BYTE, NC_STRING);
    int ids[RANK];
    p->elements[v] = 1;
    p->created[v] = false;
    for (int d = 0; d < p->rank[v]; d++) {
        unsigned dim = pick(p, DIMS);
        ids[d] = p->dimids[dim];
        p->elements[v] *= p->lengths[dim] > 0 ? p->lengths[dim] : 1;
    }
    int id = -1;
    if (CALL(nc_def_var(p->ncid, name, p->type[v], p->rank[v], ids, &id)) != NC_NOERR)
        return;
    p->vars++;
    note("type %d rank %d", p->type[v], p->rank[v]);
    note_settings(p->ncid, v, p->type[v]);
}

static void
define(program *p, const world *w)
{
    /* Large ones are never written to; but netCDF-3 fills variables when define mode is left. */
    static const size_t lengths[DIMS] = {NC_UNLIMITED, NC_UNLIMITED, 1, 5, 20, 3000, 100000};
    bool nc3 = w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC;
    p->ncid = create(w);
    p->vars = 0;
    for (int i = 0; i < DIMS; i++) {
        char name[] = "dA";
        name[1] = (char) ('A' + i);
        p->lengths[i] = nc3 && lengths[i] > 20 ? 20 : lengths[i];
        if (CALL(nc_def_dim(p->ncid, name, p->lengths[i], &p->dimids[i])) != NC_NOERR)
            p->dimids[i] = p->dimids[0];
    }
    for (int v = 0; v < VARS - 2; v++)
        define_var(p);
}

static void
chunking(program *p, int v)
{
    static const size_t some[] = {1, 1, 1, 2, 5, 20, 40, 1000, 3000, 70000, 4000000000u};
    size_t chunks[RANK];
    for (int d = 0; d < RANK; d++)
        chunks[d] = some[pick(p, sizeof some / sizeof some[0])];
    int kind = pick_in(p, 0, 8) == 0 ? pick_in(p, -1, 4) : pick_in(p, 0, 2);
    CALL(nc_def_var_chunking(p->ncid, v, kind, pick(p, 4) == 0 ? NULL : chunks));
    note("kind %d chunks %zu %zu %zu", kind, chunks[0], chunks[1], chunks[2]);
}

static void
filter(program *p, int v)
{
    static const unsigned ids[] = {0, 1, 1, 2, 2, 3, 3, 7, 307, 32015, 32001, 54321};
    unsigned params[4];
    for (int i = 0; i < 4; i++)
        params[i] = pick(p, 12);
    unsigned id = ids[pick(p, sizeof ids / sizeof ids[0])];
    size_t count = pick(p, 3) == 0 ? pick(p, 4) : 1;
    note("filter %u count %zu first %u", id, count, params[0]);
    if (CALL(nc_def_var_filter(p->ncid, v, id, count, params)) == NC_EFILTER)
        note("parameters");
    CALL(nc_inq_filter_avail(p->ncid, id));
}

static void
compression(program *p, int v)
{
    switch (pick(p, 6)) {
    case 0:
        CALL(nc_def_var_szip(p->ncid, v, pick(p, 2) == 0 ? NC_SZIP_NN : NC_SZIP_EC,
                             pick_in(p, 1, 34)));
        break;
    case 1:
        CALL(nc_def_var_fletcher32(p->ncid, v, pick_in(p, 0, 1)));
        break;
    case 2:
        CALL(nc_def_var_zstandard(p->ncid, v, pick_in(p, -1, 25)));
        break;
    case 3:
        CALL(nc_def_var_bzip2(p->ncid, v, pick_in(p, -1, 10)));
        break;
    default:
        CALL(
            nc_def_var_deflate(p->ncid, v, pick_in(p, 0, 1), pick_in(p, 0, 1), pick_in(p, -1, 10)));
        break;
    }
}

/* When it fails netCDF-C leaves an attribute without values behind. */
static void
put_fill(const program *p, int v, int rc)
{
    if (rc != NC_NOERR && rc != NC_ERANGE)
        (void) nc_del_att(p->ncid, v, "_FillValue");
}

static void
filling(program *p, int v)
{
    static const double doubles[4] = {-3.5, 7};
    static const int ints[4] = {-99, 5};
    static const char *const texts[4] = {"a", "b"};
    int old = -1;
    const void *values = p->type[v] == NC_STRING ? (const void *) texts : (const void *) doubles;
    switch (pick(p, 7)) {
    case 0:
        CALL(nc_set_fill(p->ncid, pick_in(p, 0, 1) == 0 ? NC_FILL : NC_NOFILL, &old));
        note("old %d", old);
        break;
    case 1:
        CALL(nc_def_var_fill(p->ncid, v, pick_in(p, 0, 1), NULL));
        break;
    case 2:
        CALL(nc_del_att(p->ncid, v, "_FillValue"));
        break;
    case 3:
        if (p->created[v]) /* netCDF-4 makes the variable anew, behind all others */
            break;
        put_fill(p, v,
                 CALL(nc_put_att_int(p->ncid, v, "_FillValue", p->type[v], 1, ints + pick(p, 2))));
        break;
    case 4:
        if (p->created[v])
            break;
        put_fill(p, v, CALL(nc_put_att(p->ncid, v, "_FillValue", p->type[v], 1, values)));
        break;
    default:
        CALL(nc_def_var_fill(p->ncid, v, pick_in(p, 0, 1), values));
        break;
    }
}

/* What goes on with a file that netCDF-4 could write half of is nobody's business. */
static void
give_up_after(program *p, int rc)
{
    if (rc != NC_EFILTER && rc != NC_EHDFERR)
        return;
    (void) nc_abort(p->ncid);
    p->ncid = -1;
}

static void
write_one(program *p, int v)
{
    int rc = NC_NOERR;
    static const size_t start[RANK];
    if (p->elements[v] > 10000)
        return;
    memset(p->created, true, sizeof p->created);
    if (p->type[v] == NC_CHAR)
        rc = CALL(nc_put_var1_text(p->ncid, v, start, "x"));
    else if (p->type[v] != NC_STRING)
        rc = CALL(nc_put_var1_int(p->ncid, v, start, (int[]){3}));
    give_up_after(p, rc);
}

/* netCDF-4 forgets what is set before it has looked at a variable. */
static void
open_again(program *p, const world *w, int mode)
{
    p->ncid = reopen(w, mode);
    for (int v = 0; v < p->vars; v++)
        note_settings(p->ncid, v, p->type[v]);
}

static void
change_mode(program *p, const world *w)
{
    int rc = NC_NOERR;
    memset(p->created, true, sizeof p->created);
    switch (pick(p, 9)) {
    case 0:
    case 1:
    case 2:
        rc = CALL(nc_enddef(p->ncid));
        break;
    case 3:
    case 4:
    case 5:
        CALL(nc_redef(p->ncid));
        break;
    case 6:
        rc = CALL(nc_close(p->ncid));
        if (rc == NC_NOERR)
            open_again(p, w, pick(p, 4) == 0 ? NC_NOWRITE : NC_WRITE);
        break;
    default:
        break;
    }
    give_up_after(p, rc);
}

/* Some variable, at times one that is not there. */
static void
step(program *p, const world *w)
{
    if (p->vars == 0)
        return;
    int v = pick(p, 12) == 0 ? pick_in(p, -1, VARS) : (int) pick(p, (unsigned) p->vars);
    bool there = v >= 0 && v < p->vars;
    note("variable %d", v);
    switch (pick(p, 16)) {
    case 0:
    case 1:
    case 2:
        chunking(p, v);
        break;
    case 3:
    case 4:
        filter(p, v);
        break;
    case 5:
    case 6:
        compression(p, v);
        break;
    case 7:
    case 8:
        if (there)
            filling(p, v);
        break;
    case 9:
        CALL(nc_def_var_endian(p->ncid, v, pick_in(p, -1, 3)));
        break;
    case 10:
        if (w->format != NC_FORMAT_NETCDF4_CLASSIC) /* netCDF-C cannot write its attribute then */
            CALL(nc_def_var_quantize(p->ncid, v, pick_in(p, -1, 4), pick_in(p, -1, 24)));
        break;
    case 11:
        CALL(nc_set_var_chunk_cache(p->ncid, v, pick(p, 3) * 1000000, pick(p, 3000),
                                    (float) pick_in(p, -1, 12) / 10));
        break;
    case 12:
        if (there && pick(p, 3) == 0)
            write_one(p, v);
        break;
    case 13:
        if (p->vars < VARS)
            define_var(p);
        break;
    default:
        change_mode(p, w);
        break;
    }
    if (there && p->ncid >= 0)
        note_settings(p->ncid, v, p->type[v]);
}

static void
random_settings(const world *w)
{
    /* NC_COMPARE_SEED: one program alone */
    const char *one = getenv("NC_COMPARE_SEED");
    unsigned first = one != NULL ? (unsigned) atoi(one) : 1;
    unsigned last = one != NULL ? first : 100;
    for (unsigned seed = first; seed <= last; seed++) {
        program p = {.state = (uint64_t) seed * 104729u};
        note("seed %u", seed);
        define(&p, w);
        for (int i = 0; i < STEPS && p.ncid >= 0; i++)
            step(&p, w);
        if (p.ncid >= 0 && CALL(nc_close(p.ncid)) == NC_NOERR) {
            open_again(&p, w, NC_NOWRITE);
            CALL(nc_close(p.ncid));
        }
        (void) nc_delete(w->path);
    }
}

const scenario scenarios_settings[] = {{"settings", "random_settings", IN_ALL, random_settings},
                                       {0}};
