/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Variables: definition, inquiry, renaming. */

#include "../compare.h"

#include "fuzz.h"

#include <string.h>

static void
make_def_var(generator *g, op *o)
{
    o->name = pick_name(g);
    o->argument[0] = pick_type(g);
    o->argument[1] = (int) pick(g, RANK + 1);
    for (int i = 0; i < RANK; i++)
        o->argument[2 + i] = pick_dim(g);
    if (one_in(g, 60))
        o->argument[1] = -1;
}

/* Stock fills variables when define mode ends. */
static bool
is_large(const context *c)
{
    size_t elements = 1;
    for (int i = 0; i < c->op->argument[1]; i++) {
        size_t length = 1;
        (void) nc_inq_dimlen(c->ncid, c->op->argument[2 + i], &length);
        if (!is_netcdf3(c->state) && length > 0 && is_unlimited(c->ncid, c->op->argument[2 + i]) &&
            left_out("netcdf4-default-chunks"))
            return true;
        if (length > 100000 || (elements *= length == 0 ? 1 : length) > 100000)
            return true;
    }
    return false;
}

static bool
sees_dims(const context *c)
{
    int ids[300];
    int count = 0;
    const op *o = c->op;
    if (c->state->format != NC_FORMAT_NETCDF4 || nc_inq_dimids(c->ncid, &count, ids, 1) != 0)
        return true;
    for (int i = 0; i < o->argument[1]; i++) {
        bool found = nc_inq_dimname(c->ncid, o->argument[2 + i], NULL) != NC_NOERR;
        for (int k = 0; k < count; k++)
            found |= ids[k] == o->argument[2 + i];
        if (!found && left_out("netcdf4-dims-of-other-groups"))
            return false;
    }
    return true;
}

/* netCDF-4 does not find types of other groups when it opens the file again. */
static bool
sees_type(const context *c)
{
    nc_type type = c->op->argument[0];
    int ids[100];
    int count = 0;
    for (int group = c->ncid; type > NC_STRING && c->handle->open;) {
        if (nc_inq_typeids(group, &count, ids) != NC_NOERR || count > 100)
            break;
        while (count > 0 && ids[count - 1] != type)
            count--;
        if (count > 0)
            return true;
        if (nc_inq_grp_parent(group, &group) != NC_NOERR)
            return nc_inq_user_type(c->ncid, type, NULL, NULL, NULL, NULL, NULL) != NC_NOERR ||
                   !left_out("netcdf4-types-of-other-groups");
    }
    return true;
}

/* Called like a dimension of its group, but not a coordinate variable. */
static bool
is_odd_coordinate(const context *c)
{
    int dimid = -1;
    const op *o = c->op;
    if (is_netcdf3(c->state) || nc_inq_dimid(c->ncid, fuzz_name(o->name), &dimid) != NC_NOERR)
        return false;
    return (o->argument[1] != 1 || o->argument[2] != dimid) && left_out("netcdf4-odd-coordinates");
}

/* It becomes a coordinate variable of a dimension in the file that some variable has twice. */
static bool
is_late_coordinate(const context *c)
{
    int dimid = -1;
    return !is_netcdf3(c->state) && c->handle->kept &&
           nc_inq_dimid(c->ncid, fuzz_name(c->op->name), &dimid) == NC_NOERR &&
           file_repeats_dim(c, dimid) && left_out("netcdf4-late-coordinates");
}

static int
call_def_var(context *c)
{
    const op *o = c->op;
    int id = -1;
    int vars = 0;
    if (c->side == STOCK && nc_inq_nvars(c->ncid, &vars) == NC_NOERR && vars > 12)
        return skip(c);
    if (c->side == STOCK && (is_large(c) || is_odd_coordinate(c) || is_late_coordinate(c) ||
                             !sees_dims(c) || !sees_type(c)))
        return skip(c);
    say(c, "nc_def_var($, %s, %d, %d, (int[]){%d, %d, %d, %d}, &id)", fuzz_name_text(o->name),
        o->argument[0], o->argument[1], o->argument[2], o->argument[3], o->argument[4],
        o->argument[5]);
    int rc = nc_def_var(c->ncid, fuzz_name(o->name), o->argument[0], o->argument[1],
                        o->argument + 2, &id);
    if (rc == NC_NOERR)
        out_int(c, id);
    c->handle->defined |= rc == NC_NOERR;
    /* A coordinate variable takes the place of its dimension in the file at once. */
    c->handle->removed |= rc == NC_NOERR && nc_inq_dimid(c->ncid, fuzz_name(o->name), &id) == 0;
    return rc;
}

static void
make_var(generator *g, op *o)
{
    o->varid = pick_var(g);
    o->name = pick_name(g);
    o->null = one_in(g, 8);
}

static int
call_inq_var(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = -5;
    int rank = -5;
    int dims[NC_MAX_VAR_DIMS] = {0};
    int atts = -5;
    say(c, "nc_inq_var($, %d, name, &type, &rank, dims, &atts)", c->op->varid);
    int rc = c->op->null ? nc_inq_var(c->ncid, c->op->varid, NULL, &type, NULL, dims, NULL)
                         : nc_inq_var(c->ncid, c->op->varid, name, &type, &rank, dims, &atts);
    if (rc != NC_NOERR)
        return rc;
    out_text(c, name);
    out_int(c, type);
    out_int(c, rank);
    out_int(c, atts);
    out_bytes(c, dims, RANK * sizeof dims[0]);
    return rc;
}

static int
call_inq_varname(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    say(c, "nc_inq_varname($, %d, name)", c->op->varid);
    int rc = nc_inq_varname(c->ncid, c->op->varid, name);
    if (rc == NC_NOERR)
        out_text(c, name);
    return rc;
}

static int
call_inq_vardimid(context *c)
{
    int dims[NC_MAX_VAR_DIMS] = {0};
    say(c, "nc_inq_vardimid($, %d, dims)", c->op->varid);
    int rc = nc_inq_vardimid(c->ncid, c->op->varid, dims);
    if (rc == NC_NOERR)
        out_bytes(c, dims, RANK * sizeof dims[0]);
    return rc;
}

static int
call_inq_varid(context *c)
{
    int id = -5;
    say(c, "nc_inq_varid($, %s, &id)", fuzz_name_text(c->op->name));
    int rc = nc_inq_varid(c->ncid, fuzz_name(c->op->name), &id);
    if (rc == NC_NOERR)
        out_int(c, id);
    return rc;
}

/* `which`: one of three functions with the same form. */
static int
call_inq_number(context *c)
{
    int n = -5;
    int rc;
    if (c->op->data % 3 == 0) {
        say(c, "nc_inq_varndims($, %d, &n)", c->op->varid);
        rc = nc_inq_varndims(c->ncid, c->op->varid, &n);
    } else if (c->op->data % 3 == 1) {
        say(c, "nc_inq_vartype($, %d, &n)", c->op->varid);
        rc = nc_inq_vartype(c->ncid, c->op->varid, &n);
    } else {
        say(c, "nc_inq_varnatts($, %d, &n)", c->op->varid);
        rc = nc_inq_varnatts(c->ncid, c->op->varid, &n);
    }
    if (rc == NC_NOERR)
        out_int(c, n);
    return rc;
}

static void
make_number(generator *g, op *o)
{
    make_var(g, o);
    o->data = pick(g, 3);
}

static int
call_rename_var(context *c)
{
    char old[NC_MAX_NAME + 1] = "";
    if (is_decomposed(c, c->op->name))
        return skip(c);
    bool exists = nc_inq_varname(c->ncid, c->op->varid, old) == NC_NOERR;
    if (exists && c->side == STOCK && !is_netcdf3(c->state) &&
        (c->handle->kept || file_has_dim(c, old, fuzz_name(c->op->name)) || group_has_group(c)) &&
        left_out("netcdf4-renames"))
        return skip(c);
    if (exists && !may_rename(c, old, fuzz_name(c->op->name)))
        return skip(c);
    say(c, "nc_rename_var($, %d, %s)", c->op->varid, fuzz_name_text(c->op->name));
    return nc_rename_var(c->ncid, c->op->varid, fuzz_name(c->op->name));
}

static void
make_copy_var(generator *g, op *o)
{
    make_var(g, o);
    o->argument[0] = (int) pick(g, HANDLES);
}

static int
call_copy_var(context *c)
{
    const fuzz_handle *other = &c->state->handles[c->op->argument[0]];
    int to = other->ncid[c->side];
    if (c->handle->open && other->open && c->state->files[c->handle->file].loose_data)
        c->state->files[other->file].loose_data = true;
    say(c, "nc_copy_var($, %d, ncid%d)", c->op->varid, c->op->argument[0]);
    return nc_copy_var(c->ncid, c->op->varid, to);
}

static void
make_inq_type(generator *g, op *o)
{
    o->argument[0] = pick_type(g);
}

static int
call_inq_type(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    size_t bytes = 0;
    nc_type found = -5;
    say(c, "nc_inq_type($, %d, name, &bytes)", c->op->argument[0]);
    int rc = nc_inq_type(c->ncid, c->op->argument[0], name, &bytes);
    if (rc != NC_NOERR)
        return rc;
    out_text(c, name);
    out_int(c, (long long) bytes);
    rc = nc_inq_typeid(c->ncid, name, &found);
    if (rc == NC_NOERR)
        out_int(c, found);
    return rc;
}

const kind kinds_vars[] = {{"def_var", 45, false, make_def_var, call_def_var},
                           {"inq_var", 3, false, make_var, call_inq_var},
                           {"inq_varname", 1, false, make_var, call_inq_varname},
                           {"inq_vardimid", 1, false, make_var, call_inq_vardimid},
                           {"inq_varid", 2, false, make_var, call_inq_varid},
                           {"inq_varnumber", 2, false, make_number, call_inq_number},
                           {"rename_var", 5, false, make_var, call_rename_var},
                           {"copy_var", 2, false, make_copy_var, call_copy_var},
                           {"inq_type", 1, false, make_inq_type, call_inq_type},
                           {0}};
