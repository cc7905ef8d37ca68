/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reading and writing of data, in every way of access and every memory type. */

#include "../compare.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { VAR, VAR1, VARA, VARS, VARM, WAYS };
enum { UNTYPED = NC_STRING + 1, LONG, UBYTE, MEMORIES };
static const char *const ways[WAYS] = {"var", "var1", "vara", "vars", "varm"};

/* One buffer, large enough for ELEMENTS of the largest type. */
static union {
    double numbers[ELEMENTS];
    char *strings[ELEMENTS];
    char bytes[ELEMENTS * sizeof(double)];
} buffer;

/* ---- choosing ------------------------------------------------------------------------------- */

static size_t
dim_length(int ncid, int dimid, bool *ret_unlimited)
{
    int ids[300];
    int count = 0;
    size_t length = 0;
    *ret_unlimited = false;
    (void) nc_inq_dimlen(ncid, dimid, &length);
    for (int group = ncid; nc_inq_unlimdims(group, &count, NULL) == NC_NOERR && count < 300;) {
        (void) nc_inq_unlimdims(group, &count, ids);
        for (int i = 0; i < count; i++)
            *ret_unlimited |= ids[i] == dimid;
        if (nc_inq_grp_parent(group, &group) != NC_NOERR)
            break;
    }
    return length;
}

static void
make_axis(generator *g, op *o, int i, size_t length, bool unlimited, bool writing, bool wrong)
{
    if (unlimited && writing)
        length += pick(g, 4);
    unsigned most = length > 10 ? 10 : (unsigned) length;
    o->start[i] = pick(g, most);
    o->stride[i] = one_in(g, 3) ? 1 + (ptrdiff_t) pick(g, 3) : 1;
    size_t room =
        most == 0 ? 0 : (most - o->start[i] + (size_t) o->stride[i] - 1) / (size_t) o->stride[i];
    o->count[i] = room == 0 ? 0 : 1 + pick(g, (unsigned) room);
    if (room > 0 && one_in(g, 3))
        o->count[i] = room;
    if (!wrong)
        return;
    if (one_in(g, 3))
        o->start[i] = pick(g, 12);
    if (one_in(g, 3))
        o->count[i] = pick(g, 8);
    if (one_in(g, 8))
        o->stride[i] = (ptrdiff_t) pick(g, 4) - 2;
    if (one_in(g, 20))
        o->start[i] = (size_t) -1 - pick(g, 3);
    if (one_in(g, 30))
        o->stride[i] = (ptrdiff_t) 1 << (30 + pick(g, 30));
}

static void
make_request(generator *g, op *o, bool writing)
{
    int rank = 0;
    int dims[NC_MAX_VAR_DIMS];
    nc_type type = NC_INT;
    o->varid = pick_var(g);
    o->argument[0] = (int) pick(g, WAYS);
    o->argument[1] = (int) pick(g, MEMORIES);
    o->argument[2] = one_in(g, 15) ? 1 << pick(g, 4) : 0; /* what is NULL */
    o->data = pick(g, 1000000);
    (void) nc_inq_varndims(g->ncid, o->varid, &rank);
    (void) nc_inq_vartype(g->ncid, o->varid, &type);
    if (!one_in(g, 12) && type == NC_CHAR)
        o->argument[1] = NC_CHAR;
    else if (!one_in(g, 12) && type == NC_STRING)
        o->argument[1] = NC_STRING;
    else if (!one_in(g, 4) && (o->argument[1] == NC_CHAR || o->argument[1] == NC_STRING))
        o->argument[1] = NC_DOUBLE;
    if (rank > RANK || nc_inq_vardimid(g->ncid, o->varid, dims) != NC_NOERR)
        rank = 0;
    bool wrong = one_in(g, 6);
    for (int i = 0; i < RANK; i++) {
        bool unlimited = false;
        size_t length = i < rank ? dim_length(g->ncid, dims[i], &unlimited) : 1;
        make_axis(g, o, i, length, unlimited, writing, wrong);
    }
    /* Memory in some order of the axes, dense or with gaps. */
    int order[RANK] = {0, 1, 2, 3};
    for (int i = rank - 1; i > 0 && one_in(g, 2); i--) {
        int k = (int) pick(g, (unsigned) i + 1);
        int swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    ptrdiff_t step = one_in(g, 6) ? 2 : 1;
    for (int i = rank - 1; i >= 0; i--) {
        o->map[order[i]] = step;
        step *= (ptrdiff_t) (o->count[order[i]] == 0 ? 1 : o->count[order[i]] % 64);
    }
}

static void
make_put(generator *g, op *o)
{
    make_request(g, o, true);
}

static void
make_get(generator *g, op *o)
{
    make_request(g, o, false);
}

/* ---- calling -------------------------------------------------------------------------------- */

typedef struct arrays {
    const size_t *start;
    const size_t *count;
    const ptrdiff_t *stride;
    const ptrdiff_t *map;
} arrays;

/* Every function of one memory type. */
#define MOVE(name, suffix, put_type, get_type)                                                     \
    static int name(context *c, int way, const arrays *a, void *at, bool writing)                  \
    {                                                                                              \
        int id = c->ncid;                                                                          \
        int v = c->op->varid;                                                                      \
        put_type from = at;                                                                        \
        get_type to = at;                                                                          \
        switch (way) {                                                                             \
        case VAR:                                                                                  \
            return writing ? nc_put_var##suffix(id, v, from) : nc_get_var##suffix(id, v, to);      \
        case VAR1:                                                                                 \
            return writing ? nc_put_var1##suffix(id, v, a->start, from)                            \
                           : nc_get_var1##suffix(id, v, a->start, to);                             \
        case VARA:                                                                                 \
            return writing ? nc_put_vara##suffix(id, v, a->start, a->count, from)                  \
                           : nc_get_vara##suffix(id, v, a->start, a->count, to);                   \
        case VARS:                                                                                 \
            return writing ? nc_put_vars##suffix(id, v, a->start, a->count, a->stride, from)       \
                           : nc_get_vars##suffix(id, v, a->start, a->count, a->stride, to);        \
        default:                                                                                   \
            return writing                                                                         \
                       ? nc_put_varm##suffix(id, v, a->start, a->count, a->stride, a->map, from)   \
                       : nc_get_varm##suffix(id, v, a->start, a->count, a->stride, a->map, to);    \
        }                                                                                          \
    }

MOVE(move_schar, _schar, const signed char *, signed char *)
MOVE(move_text, _text, const char *, char *)
MOVE(move_short, _short, const short *, short *)
MOVE(move_int, _int, const int *, int *)
MOVE(move_float, _float, const float *, float *)
MOVE(move_double, _double, const double *, double *)
MOVE(move_uchar, _uchar, const unsigned char *, unsigned char *)
MOVE(move_ushort, _ushort, const unsigned short *, unsigned short *)
MOVE(move_uint, _uint, const unsigned *, unsigned *)
MOVE(move_longlong, _longlong, const long long *, long long *)
MOVE(move_ulonglong, _ulonglong, const unsigned long long *, unsigned long long *)
MOVE(move_string, _string, const char **, char **)
MOVE(move_untyped, , const void *, void *)
MOVE(move_long, _long, const long *, long *)
MOVE(move_ubyte, _ubyte, const unsigned char *, unsigned char *)

typedef int (*move_fn)(context *c, int way, const arrays *a, void *at, bool writing);
static const struct {
    const char *suffix;
    move_fn move;
    size_t bytes;
} memories[MEMORIES] = {[0] = {"_int", move_int, sizeof(int)},
                        [NC_BYTE] = {"_schar", move_schar, 1},
                        [NC_CHAR] = {"_text", move_text, 1},
                        [NC_SHORT] = {"_short", move_short, 2},
                        [NC_INT] = {"_int", move_int, 4},
                        [NC_FLOAT] = {"_float", move_float, 4},
                        [NC_DOUBLE] = {"_double", move_double, 8},
                        [NC_UBYTE] = {"_uchar", move_uchar, 1},
                        [NC_USHORT] = {"_ushort", move_ushort, 2},
                        [NC_UINT] = {"_uint", move_uint, 4},
                        [NC_INT64] = {"_longlong", move_longlong, 8},
                        [NC_UINT64] = {"_ulonglong", move_ulonglong, 8},
                        [NC_STRING] = {"_string", move_string, sizeof(char *)},
                        [UNTYPED] = {"", move_untyped, 8},
                        [LONG] = {"_long", move_long, sizeof(long)},
                        [UBYTE] = {"_ubyte", move_ubyte, 1}};

/* The variable as stock has it. */
typedef struct target {
    nc_type type;
    int rank;
    size_t lengths[RANK];
    bool unlimited[RANK];
} target;

/* False when the call must not be made: too large, or of a rank that ops do not have. */
static bool
find_target(context *c, target *t)
{
    int dims[NC_MAX_VAR_DIMS];
    *t = (target){.type = NC_NAT};
    if (nc_inq_vartype(c->ncid, c->op->varid, &t->type) != NC_NOERR)
        return true;
    if (nc_inq_varndims(c->ncid, c->op->varid, &t->rank) != NC_NOERR || t->rank > RANK ||
        nc_inq_vardimid(c->ncid, c->op->varid, dims) != NC_NOERR)
        return false;
    for (int i = 0; i < t->rank; i++)
        t->lengths[i] = dim_length(c->ncid, dims[i], &t->unlimited[i]);
    /* Without a memory type these have elements of their own size: ops_types.c. */
    return t->type <= NC_STRING || c->op->argument[1] != UNTYPED;
}

/* Elements of memory that the call may touch; more than ELEMENTS: too many. */
static size_t
extent(const op *o, const arrays *a, const target *t)
{
    size_t elements = 1;
    size_t reach = 1;
    for (int i = 0; i < t->rank; i++) {
        size_t count = o->argument[0] == VAR1 ? 1 : o->count[i];
        if (o->argument[0] == VAR || (o->argument[0] > VAR1 && a->count == NULL))
            count = t->lengths[i];
        if (count > ELEMENTS)
            return SIZE_MAX;
        elements *= count;
        size_t step = (size_t) (o->map[i] < 0 ? -o->map[i] : o->map[i]);
        if (o->argument[0] == VARM && count > 0)
            reach += (count - 1) * step;
        if (elements > ELEMENTS || reach > ELEMENTS)
            return SIZE_MAX;
    }
    return elements > reach ? elements : reach;
}

/* Whether it would make an unlimited dimension longer than sequences want it. */
static bool
grows_too_far(const op *o, const target *t)
{
    for (int i = 0; i < t->rank; i++) {
        size_t stride = o->argument[0] >= VARS ? (size_t) o->stride[i] : 1;
        if (t->unlimited[i] && (o->start[i] > RECORDS || o->count[i] > RECORDS ||
                                stride > RECORDS || o->start[i] + o->count[i] * stride > RECORDS))
            return true;
    }
    return false;
}

/* Where the request lies in the file decides whether netCDF-3 looks at the type. */
static bool
is_empty_as_strings(context *c, const arrays *a, const target *t)
{
    const op *o = c->op;
    bool empty = false;
    for (int i = 0; i < t->rank; i++)
        empty |= o->argument[0] == VAR || a->count == NULL ? t->lengths[i] == 0 : o->count[i] == 0;
    return empty && o->argument[0] != VAR1 && o->argument[1] == NC_STRING && is_netcdf3(c->state) &&
           left_out("netcdf3-no-strings");
}

static bool
is_sane(context *c, const arrays *a, const target *t, bool writing)
{
    const op *o = c->op;
    for (int i = 0; i < t->rank; i++)
        if (o->count[i] > ELEMENTS)
            return false;
    if (extent(o, a, t) > ELEMENTS || is_empty_as_strings(c, a, t))
        return false;
    return !writing || !grows_too_far(o, t);
}

static long long
number(const op *o, size_t i)
{
    return (long long) ((o->data + 13 * i) % 120);
}

static double
wild(const op *o, size_t i)
{
    static const double values[] = {1.5, -1, 200, 70000, -40000, 3e9, 1e19, 1e39};
    return o->data % 25 == 0 ? values[(o->data + i) % 8] : (double) number(o, i);
}

static void
fill_buffer(const op *o, nc_type memory)
{
    static char strings[4][32] = {"", "one", "two \xc3\xa4", "a somewhat longer text"};
    for (size_t i = 0; i < ELEMENTS; i++) {
        if (memory == NC_STRING)
            buffer.strings[i] = strings[(o->data + i) % 4];
        else if (memory == NC_DOUBLE)
            buffer.numbers[i] = wild(o, i);
        else if (memory == NC_FLOAT)
            ((float *) buffer.bytes)[i] = (float) wild(o, i);
        else if (memories[memory].bytes == 1)
            buffer.bytes[i] = (char) number(o, i);
        else if (memories[memory].bytes == 2)
            ((short *) (void *) buffer.bytes)[i] = (short) number(o, i);
        else if (memories[memory].bytes == 4)
            ((int *) (void *) buffer.bytes)[i] = (int) number(o, i);
        else
            ((long long *) (void *) buffer.bytes)[i] = number(o, i);
    }
}

/* What lies in memory: that of the variable for calls without a memory type. */
static int
memory_of(const op *o, const target *t)
{
    if (o->argument[1] != UNTYPED)
        return o->argument[1];
    return t->type >= NC_BYTE && t->type <= NC_STRING ? t->type : NC_INT64;
}

static void
say_call(context *c, const arrays *a, bool writing)
{
    const op *o = c->op;
    static const char *const null[] = {"", "NULL, not "};
    say(c,
        "nc_%s_%s%s($, %d, %s{%zu, %zu, %zu, %zu}, %s{%zu, %zu, %zu, %zu}, %s{%td, %td, %td, "
        "%td}, %s{%td, %td, %td, %td}, data(%d))",
        writing ? "put" : "get", ways[o->argument[0]], memories[o->argument[1]].suffix, o->varid,
        null[a->start == NULL], o->start[0], o->start[1], o->start[2], o->start[3],
        null[a->count == NULL], o->count[0], o->count[1], o->count[2], o->count[3],
        null[a->stride == NULL], o->stride[0], o->stride[1], o->stride[2], o->stride[3],
        null[a->map == NULL], o->map[0], o->map[1], o->map[2], o->map[3], (int) o->data);
}

static void
prepare(const op *o, arrays *a)
{
    *a = (arrays){.start = o->start, .count = o->count, .stride = o->stride, .map = o->map};
    if ((o->argument[2] & 1) != 0)
        a->start = NULL;
    if ((o->argument[2] & 2) != 0)
        a->count = NULL;
    if ((o->argument[2] & 4) != 0)
        a->stride = NULL;
    if ((o->argument[2] & 8) != 0)
        a->map = NULL;
}

/* Whether stock cannot be trusted with more than an element: see reads_past_extents(). */
static bool
is_unreliable(const context *c, const arrays *a, const target *t)
{
    const op *o = c->op;
    bool strided = o->argument[0] >= VARS && a->stride != NULL;
    for (int i = 0; i < t->rank && !is_netcdf3(c->state) && o->argument[0] != VAR1; i++)
        if (t->unlimited[i] && (i > 0 || (strided && o->stride[i] != 1)))
            return left_out("netcdf4-past-the-extent");
    return false;
}

static bool
is_big_endian(const context *c)
{
    int endian = NC_ENDIAN_NATIVE;
    (void) nc_inq_var_endian(c->ncid, c->op->varid, &endian);
    return !is_netcdf3(c->state) && c->handle->reopened && endian == NC_ENDIAN_BIG &&
           left_out("netcdf4-big-endian");
}

static int
call_put(context *c)
{
    arrays a;
    target t;
    prepare(c->op, &a);
    bool known = find_target(c, &t);
    if (c->side == STOCK && (!known || !is_sane(c, &a, &t, true)))
        return skip(c);
    /* Whether a file that is read refuses the type or the growth depends on the extent. */
    if (c->side == STOCK && c->handle->open && !c->handle->writable && !is_netcdf3(c->state) &&
        (t.type == NC_STRING) != (memory_of(c->op, &t) == NC_STRING) &&
        left_out("netcdf4-past-the-extent"))
        return skip(c);
    if (is_large_unsigned(c, memory_of(c->op, &t), t.type) || is_big_endian(c))
        return skip(c);
    say_call(c, &a, true);
    c->handle->kept = c->handle->grown = true;
    fill_buffer(c->op, (nc_type) memory_of(c->op, &t));
    int rc = memories[c->op->argument[1]].move(c, c->op->argument[0], &a, &buffer, true);
    return rc;
}

/* Reads once more what stock has read, element by element. */
static void
read_elements(context *c, const arrays *a, const target *t, size_t bytes)
{
    const op *o = c->op;
    size_t at[RANK] = {0};
    size_t count[RANK];
    ptrdiff_t map[RANK];
    bool whole = o->argument[0] == VAR;
    ptrdiff_t dense = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        count[i] = whole || a->count == NULL ? t->lengths[i] : o->count[i];
        map[i] = o->argument[0] == VARM && a->map != NULL ? o->map[i] : dense;
        dense *= (ptrdiff_t) count[i];
        if (count[i] == 0)
            return;
    }
    for (int axis = t->rank; axis >= 0;) {
        size_t index[RANK] = {0};
        ptrdiff_t position = 0;
        for (int i = 0; i < t->rank; i++) {
            size_t stride = o->argument[0] >= VARS && a->stride != NULL ? (size_t) o->stride[i] : 1;
            index[i] = whole ? at[i] : o->start[i] + at[i] * stride;
            position += (ptrdiff_t) at[i] * map[i];
        }
        const arrays one = {.start = index};
        (void) memories[o->argument[1]].move(c, VAR1, &one,
                                             buffer.bytes + (size_t) position * bytes, false);
        for (axis = t->rank - 1; axis >= 0 && ++at[axis] == count[axis]; axis--)
            at[axis] = 0;
    }
}

static bool
is_quantized(const context *c)
{
    int mode = NC_NOQUANTIZE;
    (void) nc_inq_var_quantize(c->ncid, c->op->varid, &mode, NULL);
    return !is_netcdf3(c->state) && mode != NC_NOQUANTIZE && left_out("netcdf4-quantized-reads");
}

static int
call_get(context *c)
{
    arrays a;
    target t;
    prepare(c->op, &a);
    bool known = find_target(c, &t);
    if (c->side == STOCK && (!known || !is_sane(c, &a, &t, false)))
        return skip(c);
    if (c->side == STOCK && t.type != memory_of(c->op, &t) && is_quantized(c))
        return skip(c);
    /* Elements cannot be compared one by one, or whether one of them does not fit. */
    if (c->side == STOCK && (t.type == NC_STRING || t.type != memory_of(c->op, &t)) &&
        is_unreliable(c, &a, &t))
        return skip(c);
    say_call(c, &a, false);
    c->handle->kept = true;
    memset(&buffer, 0, sizeof buffer);
    size_t elements = extent(c->op, &a, &t);
    int memory = memory_of(c->op, &t);
    int rc = memories[c->op->argument[1]].move(c, c->op->argument[0], &a, &buffer, false);
    bool loose = c->handle->open && c->state->files[c->handle->file].loose_data;
    if (rc != NC_NOERR || elements > ELEMENTS)
        return loose && rc == NC_ERANGE ? NC_NOERR : rc;
    if (c->side == STOCK && is_unreliable(c, &a, &t))
        read_elements(c, &a, &t, memories[memory].bytes);
    if (memory == NC_STRING) {
        for (size_t i = 0; i < elements; i++)
            out_text(c, buffer.strings[i] == NULL ? "(null)" : buffer.strings[i]);
        (void) nc_free_string(elements, buffer.strings);
        return rc;
    }
    if (!loose && !is_large_unsigned(c, t.type, memory))
        out_bytes(c, &buffer, elements * memories[memory].bytes);
    return rc;
}

const kind kinds_data[] = {
    {"put", 90, false, make_put, call_put}, {"get", 60, false, make_get, call_get}, {0}};
