/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Attributes. */

#include "../compare.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 12, FILL_NAME = 30 };

static void
make_att(generator *g, op *o)
{
    int count = 0;
    o->varid = one_in(g, 3) ? NC_GLOBAL : pick_var(g);
    o->name = pick_name(g);
    o->name2 = pick_name(g);
    if (one_in(g, 10))
        o->name = FILL_NAME;
    o->null = one_in(g, 10);
    o->data = pick(g, 100000);
    o->argument[0] = pick_type(g);
    o->argument[1] = one_in(g, 2) ? o->argument[0] : pick_type(g); /* in memory */
    o->argument[2] = (int) pick(g, HANDLES);
    o->argument[3] = one_in(g, 2) ? NC_GLOBAL : pick_var(g);
    o->length = pick(g, 6);
    (void) nc_inq_varnatts(g->ncid, o->varid, &count);
    o->argument[4] = one_in(g, 10) ? (int) pick(g, 6) - 2 : (int) pick(g, (unsigned) count);
    /* _FillValue of the right kind, more often than by chance */
    if (o->name == FILL_NAME && !one_in(g, 4)) {
        (void) nc_inq_vartype(g->ncid, o->varid, &o->argument[0]);
        o->argument[1] = o->argument[0];
        o->length = 1;
    }
}

static long long
number(const op *o, size_t i)
{
    return (long long) ((o->data + 7 * i) % 120);
}

static double
wild(const op *o, size_t i)
{
    static const double values[] = {1.5, -1, 200, 70000, -40000, 3e9, 1e19, 1e39};
    return o->data % 9 == 0 ? values[(o->data + i) % 8] : (double) number(o, i);
}

static const char *
string(const op *o, size_t i)
{
    static const char strings[4][32] = {"", "one", "two \xc3\xa4", "a somewhat longer text"};
    return strings[(o->data + i) % 4];
}

#define PUT(type, suffix, value)                                                                   \
    static int put_##suffix(context *c)                                                            \
    {                                                                                              \
        const op *o = c->op;                                                                       \
        type values[LENGTH];                                                                       \
        for (size_t i = 0; i < LENGTH; i++)                                                        \
            values[i] = (type) value(o, i);                                                        \
        return nc_put_att_##suffix(c->ncid, o->varid, fuzz_name(o->name), o->argument[0],          \
                                   o->length, values);                                             \
    }
PUT(signed char, schar, number)
PUT(unsigned char, uchar, number)
PUT(short, short, number)
PUT(unsigned short, ushort, number)
PUT(int, int, number)
PUT(unsigned, uint, number)
PUT(long long, longlong, number)
PUT(unsigned long long, ulonglong, number)
PUT(float, float, wild)
PUT(double, double, wild)

static int
put_text(context *c)
{
    return nc_put_att_text(c->ncid, c->op->varid, fuzz_name(c->op->name), c->op->length,
                           string(c->op, 0));
}

static int
put_string(context *c)
{
    const char *values[LENGTH];
    for (size_t i = 0; i < LENGTH; i++)
        values[i] = string(c->op, i);
    return nc_put_att_string(c->ncid, c->op->varid, fuzz_name(c->op->name), c->op->length, values);
}

#define GET(type, suffix)                                                                          \
    static int get_##suffix(context *c)                                                            \
    {                                                                                              \
        type values[64];                                                                           \
        memset(values, 0, sizeof values);                                                          \
        int rc = nc_get_att_##suffix(c->ncid, c->op->varid, fuzz_name(c->op->name), values);       \
        if (rc == NC_NOERR)                                                                        \
            out_bytes(c, values, sizeof values);                                                   \
        return rc;                                                                                 \
    }
GET(char, text)
GET(signed char, schar)
GET(unsigned char, uchar)
GET(short, short)
GET(unsigned short, ushort)
GET(int, int)
GET(unsigned, uint)
GET(long long, longlong)
GET(unsigned long long, ulonglong)
GET(float, float)
GET(double, double)

static int
get_string(context *c)
{
    char *values[64] = {NULL};
    size_t length = 0;
    int rc = nc_get_att_string(c->ncid, c->op->varid, fuzz_name(c->op->name), values);
    if (rc != NC_NOERR || nc_inq_attlen(c->ncid, c->op->varid, fuzz_name(c->op->name), &length))
        return rc;
    for (size_t i = 0; i < length; i++)
        out_text(c, values[i] == NULL ? "(null)" : values[i]);
    return nc_free_string(length, values);
}

typedef int (*att_fn)(context *);
/* by memory type */
static const att_fn putters[] = {put_int,  NULL,         put_schar,     put_text,  put_short,
                                 put_int,  put_float,    put_double,    put_uchar, put_ushort,
                                 put_uint, put_longlong, put_ulonglong, put_string};
static const att_fn getters[] = {get_int,  NULL,         get_schar,     get_text,  get_short,
                                 get_int,  get_float,    get_double,    get_uchar, get_ushort,
                                 get_uint, get_longlong, get_ulonglong, get_string};
static const char *const suffixes[] = {"int",  "?",        "schar",     "text",  "short",
                                       "int",  "float",    "double",    "uchar", "ushort",
                                       "uint", "longlong", "ulonglong", "string"};

/* Index into the tables. */
static int
memory_of(const op *o)
{
    return o->argument[1] >= NC_BYTE && o->argument[1] <= NC_STRING ? o->argument[1] + 1 : 0;
}

/* Notes that the order of attributes is HDF5's from here on. */
static bool
is_late_fill(const context *c)
{
    const op *o = c->op;
    if (c->side == ESDM || is_netcdf3(c->state) || !c->handle->kept)
        return false;
    if (c->handle->open && left_out("netcdf4-order-of-attributes"))
        c->state->files[c->handle->file].loose_order = true;
    return o->name == FILL_NAME && o->varid >= 0 && left_out("netcdf4-late-fill-value");
}

/* Whether an attribute that lies in the file has no elements, or is to get none. */
static bool
is_emptied(const fuzz_handle *handle, int ncid, int varid, const char *name, size_t length)
{
    size_t old = 0;
    return handle->kept && nc_inq_attlen(ncid, varid, name, &old) == NC_NOERR &&
           (length == 0) != (old == 0);
}

bool
changes_att(const context *c, size_t length)
{
    return !is_netcdf3(c->state) &&
           is_emptied(c->handle, c->ncid, c->op->varid, fuzz_name(c->op->name), length);
}

void
rewrites_att(context *c)
{
    const op *o = c->op;
    if (c->handle->kept && nc_inq_attid(c->ncid, o->varid, fuzz_name(o->name), NULL) == NC_NOERR)
        c->handle->rewritten = true;
}

/* Stock would not take it out of the file. */
static bool
leaves_attribute(const context *c)
{
    return c->side == STOCK && !is_netcdf3(c->state) && c->handle->rewritten &&
           left_out("netcdf4-rewritten-attributes");
}

/* Of an unknown type, for an attribute that is there, or cannot be removed afterwards. */
static bool
spoils_attribute(const context *c)
{
    const op *o = c->op;
    return c->side == STOCK && !is_netcdf3(c->state) &&
           (o->argument[0] < NC_BYTE || o->argument[0] > NC_STRING) &&
           (is_decomposed(c, o->name) ||
            nc_inq_attid(c->ncid, o->varid, fuzz_name(o->name), NULL) == NC_NOERR) &&
           left_out("netcdf4-failed-attributes");
}

static int
call_put_att(context *c)
{
    const op *o = c->op;
    int memory = memory_of(o);
    if (c->side == STOCK && changes_att(c, o->length) && left_out("netcdf4-emptied-attributes"))
        return skip(c);
    if (is_late_fill(c) || spoils_attribute(c) || is_large_unsigned(c, memory - 1, o->argument[0]))
        return skip(c);
    rewrites_att(c);
    say(c, "nc_put_att_%s($, %d, %s, %d, %zu, values(%d))", suffixes[memory], o->varid,
        fuzz_name_text(o->name), o->argument[0], o->length, (int) o->data);
    int rc = putters[memory](c);
    if (rc != NC_NOERR && rc != NC_ERANGE && !is_netcdf3(c->state) &&
        (o->name == FILL_NAME || o->argument[0] < NC_BYTE || o->argument[0] > NC_STRING) &&
        left_out("netcdf4-failed-attributes"))
        (void) nc_del_att(c->ncid, o->varid, fuzz_name(o->name));
    return rc;
}

/* What there is must fit into the buffers. */
static bool
fits(context *c)
{
    size_t length = 0;
    return c->side == ESDM ||
           nc_inq_attlen(c->ncid, c->op->varid, fuzz_name(c->op->name), &length) != NC_NOERR ||
           length <= 32;
}

static int
call_get_att(context *c)
{
    const op *o = c->op;
    int memory = memory_of(o);
    if (!fits(c))
        return skip(c);
    say(c, "nc_get_att_%s($, %d, %s, values)", suffixes[memory], o->varid, fuzz_name_text(o->name));
    int rc = getters[memory](c);
    nc_type type = NC_NAT;
    (void) nc_inq_atttype(c->ncid, o->varid, fuzz_name(o->name), &type);
    if (is_large_unsigned(c, type, memory - 1))
        c->out->bytes = 0;
    return rc;
}

static bool
has_order(const context *c)
{
    return !c->handle->open || !c->state->files[c->handle->file].loose_order;
}

static int
call_inq_att(context *c)
{
    nc_type type = -5;
    size_t length = 0;
    const op *o = c->op;
    say(c, "nc_inq_att($, %d, %s, &type, &length)", o->varid, fuzz_name_text(o->name));
    int rc = o->null ? nc_inq_att(c->ncid, o->varid, fuzz_name(o->name), NULL, NULL)
                     : nc_inq_att(c->ncid, o->varid, fuzz_name(o->name), &type, &length);
    if (rc == NC_NOERR) {
        out_int(c, type);
        out_int(c, (long long) length);
    }
    return rc;
}

static int
call_inq_attid(context *c)
{
    int id = -5;
    const op *o = c->op;
    say(c, "nc_inq_attid($, %d, %s, &id)", o->varid, fuzz_name_text(o->name));
    int rc = nc_inq_attid(c->ncid, o->varid, fuzz_name(o->name), &id);
    if (rc == NC_NOERR && has_order(c))
        out_int(c, id);
    return rc;
}

static int
call_inq_attname(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    say(c, "nc_inq_attname($, %d, %d, name)", c->op->varid, c->op->argument[4]);
    int rc = nc_inq_attname(c->ncid, c->op->varid, c->op->argument[4], name);
    if (rc == NC_NOERR && has_order(c))
        out_text(c, name);
    return rc;
}

static int
call_rename_att(context *c)
{
    const op *o = c->op;
    char old[300];
    if (leaves_attribute(c) || is_decomposed(c, o->name) || is_decomposed(c, o->name2) ||
        !may_rename(c, fuzz_name(o->name), fuzz_name(o->name2)))
        return skip(c);
    c->handle->removed = true;
    snprintf(old, sizeof old, "%s", fuzz_name_text(o->name));
    say(c, "nc_rename_att($, %d, %s, %s)", o->varid, old, fuzz_name_text(o->name2));
    return nc_rename_att(c->ncid, o->varid, fuzz_name(o->name), fuzz_name(o->name2));
}

static int
call_del_att(context *c)
{
    const op *o = c->op;
    if (leaves_attribute(c) || is_decomposed(c, o->name))
        return skip(c);
    c->handle->removed = true;
    say(c, "nc_del_att($, %d, %s)", o->varid, fuzz_name_text(o->name));
    return nc_del_att(c->ncid, o->varid, fuzz_name(o->name));
}

static int
call_copy_att(context *c)
{
    const op *o = c->op;
    int to = c->state->handles[o->argument[2]].ncid[c->side];
    fuzz_handle *other = &c->state->handles[o->argument[2]];
    nc_type type = NC_NAT;
    (void) nc_inq_atttype(c->ncid, o->varid, fuzz_name(o->name), &type);
    size_t length = 0;
    (void) nc_inq_attlen(c->ncid, o->varid, fuzz_name(o->name), &length);
    if (c->side == STOCK && writes_padding(c, type, other))
        return skip(c);
    if (c->side == STOCK && !is_netcdf3(c->state) && other->open &&
        is_emptied(other, to, o->argument[3], fuzz_name(o->name), length) &&
        left_out("netcdf4-emptied-attributes"))
        return skip(c);
    other->rewritten |= other->kept;
    if (c->side == STOCK && !is_netcdf3(c->state) && other->open && other->kept &&
        left_out("netcdf4-order-of-attributes"))
        c->state->files[other->file].loose_order = true;
    say(c, "nc_copy_att($, %d, %s, ncid%d, %d)", o->varid, fuzz_name_text(o->name), o->argument[2],
        o->argument[3]);
    int rc = nc_copy_att(c->ncid, o->varid, fuzz_name(o->name), to, o->argument[3]);
    if (rc != NC_NOERR && !is_netcdf3(c->state) && o->name == FILL_NAME &&
        left_out("netcdf4-failed-attributes"))
        (void) nc_del_att(to, o->argument[3], fuzz_name(o->name));
    return rc;
}

static int
call_inq_natts(context *c)
{
    int n = -5;
    say(c, "nc_inq_natts($, &n)");
    int rc = nc_inq_natts(c->ncid, &n);
    if (rc == NC_NOERR)
        out_int(c, n);
    return rc;
}

const kind kinds_atts[] = {{"put_att", 30, false, make_att, call_put_att},
                           {"get_att", 6, false, make_att, call_get_att},
                           {"inq_att", 3, false, make_att, call_inq_att},
                           {"inq_attid", 2, false, make_att, call_inq_attid},
                           {"inq_attname", 2, false, make_att, call_inq_attname},
                           {"rename_att", 4, false, make_att, call_rename_att},
                           {"del_att", 5, false, make_att, call_del_att},
                           {"copy_att", 4, false, make_att, call_copy_att},
                           {"inq_natts", 1, false, make_att, call_inq_natts},
                           {0}};
