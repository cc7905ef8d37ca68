/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* User-defined types: definition, inquiry, and values in variables and attributes. */

#include "../compare.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { TYPES = 6, MEMBERS = 4, VALUES = 200, BYTES_MAX = 256, ATT_VALUES = 3 };

/* ---- definition ------------------------------------------------------------------------------ */

static nc_type
pick_member(generator *g)
{
    if (one_in(g, 4))
        return NC_FIRSTUSERTYPEID + (nc_type) pick(g, TYPES);
    return one_in(g, 20) ? (nc_type) pick(g, 15) : 1 + (nc_type) pick(g, NC_STRING);
}

static void
make_type(generator *g, op *o)
{
    o->name = pick_name(g);
    o->name2 = pick_name(g);
    o->data = pick(g, 100000);
    o->argument[0] = (int) pick(g, 4);
    o->argument[1] = one_in(g, 15) ? (int) pick(g, 3) - 1 : 1 + (int) pick(g, MEMBERS);
    for (int i = 2; i < ARGUMENTS; i++)
        o->argument[i] = pick_member(g);
    o->null = one_in(g, 3); /* a member is an array */
}

static size_t
align(size_t at, size_t bytes)
{
    size_t to = bytes >= 8 ? 8 : bytes;
    return to == 0 ? at : (at + to - 1) / to * to;
}

/* Its size comes from the members that can be had. */
static int
def_compound(context *c, nc_type *ret_type)
{
    const op *o = c->op;
    size_t offsets[MEMBERS];
    size_t end = 0;
    int count = o->argument[1] < 0 ? 0 : o->argument[1];
    for (int i = 0; i < count; i++) {
        size_t bytes = value_bytes(c->ncid, o->argument[2 + i]);
        offsets[i] = end = align(end, bytes);
        end += bytes * (o->null ? 3 : 1);
    }
    if (end > BYTES_MAX)
        return skip(c);
    say(c, "nc_def_compound($, %zu, %s, &type)", align(end, 8), fuzz_name_text(o->name));
    int rc = nc_def_compound(c->ncid, align(end, 8), fuzz_name(o->name), ret_type);
    for (int i = 0; rc == NC_NOERR && i < count; i++) {
        char name[] = "mA";
        name[1] = (char) ('A' + i);
        int member =
            o->null ? nc_insert_array_compound(c->ncid, *ret_type, name, offsets[i],
                                               o->argument[2 + i], 1, (int[]){3})
                    : nc_insert_compound(c->ncid, *ret_type, name, offsets[i], o->argument[2 + i]);
        out_int(c, member);
    }
    return rc;
}

static int
def_enum(context *c, nc_type *ret_type)
{
    const op *o = c->op;
    say(c, "nc_def_enum($, %d, %s, &type)", o->argument[2], fuzz_name_text(o->name));
    int rc = nc_def_enum(c->ncid, o->argument[2], fuzz_name(o->name), ret_type);
    for (int i = 0; rc == NC_NOERR && i < o->argument[1]; i++) {
        char name[] = "eA";
        long long value = (long long) (o->data % 50) + i;
        name[1] = (char) ('A' + i);
        out_int(c, nc_insert_enum(c->ncid, *ret_type, name, &value));
    }
    return rc;
}

/* A compound without members, and an enumeration without or of no integers, cannot be written. */
static bool
is_hopeless(const context *c)
{
    const op *o = c->op;
    nc_type base = o->argument[2];
    if (o->argument[0] == 1 && (o->argument[1] < 1 || base == NC_CHAR || base == NC_FLOAT ||
                                base == NC_DOUBLE || base < NC_BYTE || base > NC_UINT64))
        return true;
    for (int i = 0; o->argument[0] == 0 && i < o->argument[1]; i++)
        if (value_bytes(c->ncid, o->argument[2 + i]) == 0)
            return true;
    return (o->argument[0] == 0 && o->argument[1] < 1) ||
           (o->argument[0] == 2 && value_bytes(c->ncid, base) == 0) ||
           (o->argument[0] == 3 && o->argument[1] < 1);
}

/* Whether the type is what the op would define. */
static bool
is_equal(const context *c, nc_type type)
{
    const op *o = c->op;
    size_t bytes = 0;
    size_t members = 0;
    nc_type base = NC_NAT;
    int class = 0;
    static const int classes[] = {NC_COMPOUND, NC_ENUM, NC_VLEN, NC_OPAQUE};
    if (nc_inq_user_type(c->ncid, type, NULL, &bytes, &base, &members, &class) != NC_NOERR ||
        class != classes[o->argument[0]])
        return false;
    if (class == NC_OPAQUE)
        return bytes == (size_t) (3 * o->argument[1]);
    if (class != NC_COMPOUND)
        return base == o->argument[2];
    if (members != (size_t) o->argument[1])
        return false;
    for (int i = 0; i < o->argument[1]; i++) {
        nc_type member = NC_NAT;
        (void) nc_inq_compound_fieldtype(c->ncid, type, i, &member);
        if (member != o->argument[2 + i])
            return false;
    }
    return true;
}

/* When such a type is there, stock takes the one for the other in a file that it opens again. */
static bool
has_equal_type(const context *c)
{
    for (int i = 0; i < 2 * TYPES; i++)
        if (is_equal(c, NC_FIRSTUSERTYPEID + i))
            return left_out("netcdf4-equal-types");
    return false;
}

static int
call_def_type(context *c)
{
    const op *o = c->op;
    nc_type type = -5;
    int rc;
    if (c->side == STOCK && c->handle->open && is_hopeless(c) && left_out("netcdf4-failed-types"))
        return skip(c);
    if (c->side == STOCK && c->handle->open && !c->handle->writable &&
        left_out("netcdf4-types-of-readers"))
        return skip(c);
    if (c->side == STOCK && (is_decomposed(c, o->name) || group_has_group(c) || has_equal_type(c)))
        return skip(c);
    if (c->side == STOCK && file_has_dim(c, fuzz_name(o->name), fuzz_name(o->name)) &&
        left_out("netcdf4-group-names"))
        return skip(c);
    switch (o->argument[0]) {
    case 0:
        rc = def_compound(c, &type);
        break;
    case 1:
        rc = def_enum(c, &type);
        break;
    case 2:
        say(c, "nc_def_vlen($, %s, %d, &type)", fuzz_name_text(o->name), o->argument[2]);
        rc = nc_def_vlen(c->ncid, fuzz_name(o->name), o->argument[2], &type);
        break;
    default:
        say(c, "nc_def_opaque($, %d, %s, &type)", 3 * o->argument[1], fuzz_name_text(o->name));
        rc = nc_def_opaque(c->ncid, (size_t) (3 * o->argument[1]), fuzz_name(o->name), &type);
    }
    if (rc == NC_NOERR)
        out_int(c, type);
    return rc;
}

/* ---- inquiry --------------------------------------------------------------------------------- */

static void
make_inquiry(generator *g, op *o)
{
    o->name = pick_name(g);
    o->argument[0] = one_in(g, 8) ? (int) pick(g, 20) : NC_FIRSTUSERTYPEID + (int) pick(g, TYPES);
    o->argument[1] = (int) pick(g, MEMBERS + 1);
}

static int
call_inq_user_type(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    size_t bytes = 0;
    size_t members = 0;
    nc_type base = -5;
    int class = -5;
    say(c, "nc_inq_user_type($, %d, name, &bytes, &base, &members, &class)", c->op->argument[0]);
    int rc = nc_inq_user_type(c->ncid, c->op->argument[0], name, &bytes, &base, &members, &class);
    if (rc != NC_NOERR)
        return rc;
    out_text(c, name);
    out_int(c, (long long) bytes);
    out_int(c, class);
    if (class == NC_VLEN || class == NC_ENUM)
        out_int(c, base);
    if (class == NC_COMPOUND || class == NC_ENUM)
        out_int(c, (long long) members);
    return rc;
}

static int
call_inq_member(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    size_t offset = 0;
    nc_type type = c->op->argument[0];
    int class = 0;
    int n[3] = {-5, -5, -5};
    int rc = nc_inq_user_type(c->ncid, type, NULL, NULL, NULL, NULL, &class);
    if (rc == NC_NOERR && class == NC_ENUM) {
        say(c, "nc_inq_enum_member($, %d, %d, name, &value)", type, c->op->argument[1]);
        long long value = 0;
        rc = nc_inq_enum_member(c->ncid, type, c->op->argument[1], name, &value);
        out_bytes(c, &value, sizeof value);
    } else if (rc == NC_NOERR && class == NC_COMPOUND) {
        say(c, "nc_inq_compound_field($, %d, %d, name, &offset, &type, &rank, shape)", type,
            c->op->argument[1]);
        rc = nc_inq_compound_field(c->ncid, type, c->op->argument[1], name, &offset, n, n + 1,
                                   n + 2);
        out_bytes(c, n, sizeof n);
        out_int(c, (long long) offset);
    }
    out_text(c, name);
    return rc;
}

static int
call_inq_typeids(context *c)
{
    int ids[100] = {0};
    int count = -5;
    say(c, "nc_inq_typeids($, &count, ids)");
    int rc = nc_inq_typeids(c->ncid, &count, ids);
    if (rc != NC_NOERR)
        return rc;
    out_int(c, count);
    out_bytes(c, ids, sizeof ids);
    nc_type found = -5;
    rc = nc_inq_typeid(c->ncid, fuzz_name(c->op->name), &found);
    out_int(c, found);
    return rc;
}

static int
call_inq_type_equal(context *c)
{
    int equal = -5;
    say(c, "nc_inq_type_equal($, %d, $, %d, &equal)", c->op->argument[0],
        NC_FIRSTUSERTYPEID + c->op->argument[1]);
    int rc = nc_inq_type_equal(c->ncid, c->op->argument[0], c->ncid,
                               NC_FIRSTUSERTYPEID + c->op->argument[1], &equal);
    if (rc == NC_NOERR)
        out_int(c, equal);
    return rc;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Gives the values of a call to the comparison as text. */
static void
out_values(context *c, nc_type type, const void *values, size_t count)
{
    journal lines = {0};
    journal *before = journal_selected();
    journal_select(&lines);
    values_note(c->ncid, "v", type, values, count);
    journal_select(before);
    for (size_t i = 0; i < lines.count; i++)
        out_text(c, lines.entries[i].text);
    journal_clear(&lines);
}

static void
make_values(generator *g, op *o)
{
    o->varid = one_in(g, 4) ? NC_GLOBAL : pick_var(g);
    o->name = pick_name(g);
    o->argument[0] = NC_FIRSTUSERTYPEID + (int) pick(g, TYPES);
    o->data = pick(g, 100000);
    o->length = pick(g, ATT_VALUES + 1);
    for (int i = 0; i < RANK; i++) {
        o->start[i] = pick(g, 3);
        o->count[i] = 1 + pick(g, 3);
        o->stride[i] = one_in(g, 4) ? 2 : 1;
    }
}

bool
writes_padding(const context *c, nc_type type, const fuzz_handle *to)
{
    nc_type base = NC_NAT;
    int class = 0;
    return to->reopened &&
           nc_inq_user_type(c->ncid, type, NULL, NULL, &base, NULL, &class) == NC_NOERR &&
           (class == NC_COMPOUND || (class == NC_VLEN && base > NC_STRING)) &&
           left_out("netcdf4-padded-attributes");
}

static int
call_put_att_user(context *c)
{
    const op *o = c->op;
    nc_type type = o->argument[0];
    size_t bytes = value_bytes(c->ncid, type);
    if (c->side == STOCK && (bytes == 0 || o->varid >= 0 || is_decomposed(c, o->name)))
        return skip(c);
    if (c->side == STOCK && changes_att(c, o->length) && left_out("netcdf4-emptied-attributes"))
        return skip(c);
    if (c->side == STOCK && writes_padding(c, type, c->handle))
        return skip(c);
    rewrites_att(c);
    char values[ATT_VALUES][BYTES_MAX + 8];
    uint64_t seed = o->data;
    memset(values, 0, sizeof values);
    values_make(c->ncid, type, values, o->length, &seed);
    say(c, "nc_put_att($, %d, %s, %d, %zu, values(%d))", o->varid, fuzz_name_text(o->name), type,
        o->length, (int) o->data);
    int rc = nc_put_att(c->ncid, o->varid, fuzz_name(o->name), type, o->length, values);
    (void) nc_reclaim_data(c->ncid, type, values, o->length);
    return rc;
}

/* What the variable is and how much of it the op wants. False: not this one. */
static bool
find_values(const context *c, nc_type *ret_type, size_t *ret_count)
{
    int rank = 0;
    int dims[NC_MAX_VAR_DIMS];
    const op *o = c->op;
    *ret_count = 1;
    if (nc_inq_vartype(c->ncid, o->varid, ret_type) != NC_NOERR || *ret_type <= NC_STRING ||
        nc_inq_varndims(c->ncid, o->varid, &rank) != NC_NOERR || rank > RANK ||
        nc_inq_vardimid(c->ncid, o->varid, dims) != NC_NOERR)
        return false;
    for (int i = 0; i < rank; i++) {
        *ret_count *= o->count[i];
        if (is_unlimited(c->ncid, dims[i]) && (i > 0 || o->stride[i] != 1) &&
            left_out("netcdf4-past-the-extent"))
            return false;
    }
    return true;
}

static int
call_put_user(context *c)
{
    const op *o = c->op;
    nc_type type;
    size_t count;
    if (!find_values(c, &type, &count))
        return skip(c);
    size_t bytes = value_bytes(c->ncid, type);
    char *values = calloc(count + 1, bytes + 8);
    uint64_t seed = o->data;
    values_make(c->ncid, type, values, count, &seed);
    say(c, "nc_put_vars($, %d, {%zu, %zu, %zu, %zu}, {%zu, %zu, %zu, %zu}, ..., values(%d))",
        o->varid, o->start[0], o->start[1], o->start[2], o->start[3], o->count[0], o->count[1],
        o->count[2], o->count[3], (int) o->data);
    c->handle->kept = c->handle->grown = true;
    int rc = nc_put_vars(c->ncid, o->varid, o->start, o->count, o->stride, values);
    (void) nc_reclaim_data(c->ncid, type, values, count);
    free(values);
    return rc;
}

static int
call_get_user(context *c)
{
    const op *o = c->op;
    nc_type type;
    size_t count;
    if (!find_values(c, &type, &count))
        return skip(c);
    char *values = calloc(count + 1, value_bytes(c->ncid, type) + 8);
    say(c, "nc_get_vars($, %d, {%zu, %zu, %zu, %zu}, {%zu, %zu, %zu, %zu}, ..., values)", o->varid,
        o->start[0], o->start[1], o->start[2], o->start[3], o->count[0], o->count[1], o->count[2],
        o->count[3]);
    c->handle->kept = true;
    int rc = nc_get_vars(c->ncid, o->varid, o->start, o->count, o->stride, values);
    if (rc == NC_NOERR) {
        if (c->handle->open && !c->state->files[c->handle->file].loose_data)
            out_values(c, type, values, count);
        (void) nc_reclaim_data(c->ncid, type, values, count);
    }
    free(values);
    return rc;
}

const kind kinds_types[] = {{"def_type", 8, true, make_type, call_def_type},
                            {"inq_user_type", 2, true, make_inquiry, call_inq_user_type},
                            {"inq_member", 2, true, make_inquiry, call_inq_member},
                            {"inq_typeids", 2, true, make_inquiry, call_inq_typeids},
                            {"inq_type_equal", 2, true, make_inquiry, call_inq_type_equal},
                            {"put_att_user", 5, true, make_values, call_put_att_user},
                            {"put_user", 8, true, make_values, call_put_user},
                            {"get_user", 5, true, make_values, call_get_user},
                            {0}};
