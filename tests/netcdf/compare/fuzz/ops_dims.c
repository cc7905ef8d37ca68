/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Dimensions and groups. */

#include "../compare.h"

#include "fuzz.h"

#include <string.h>

enum { IDS = 300 };

static void
out_ids(context *c, const int *ids, int count)
{
    out_int(c, count);
    for (int i = 0; i < count && i < IDS; i++)
        out_int(c, ids[i]);
}

static void
make_def_dim(generator *g, op *o)
{
    static const size_t odd[] = {100,        1000000,          2147483647,
                                 4294967295, (size_t) 1 << 33, (size_t) -1};
    o->name = pick_name(g);
    o->length = one_in(g, 4) ? NC_UNLIMITED : 1 + pick(g, 6);
    if (one_in(g, 40))
        o->length = odd[pick(g, 6)];
}

static int
call_def_dim(context *c)
{
    int id = -1;
    if (!is_netcdf3(c->state) && c->op->length > INT64_MAX && left_out("large-dimensions"))
        return skip(c);
    if (c->side == STOCK && !is_netcdf3(c->state) &&
        (file_has_var(c, fuzz_name(c->op->name), "") || group_has_group(c) ||
         is_decomposed(c, c->op->name)) &&
        left_out("netcdf4-dim-after-var"))
        return skip(c);
    say(c, "nc_def_dim($, %s, %zu, &id)", fuzz_name_text(c->op->name), c->op->length);
    int rc = nc_def_dim(c->ncid, fuzz_name(c->op->name), c->op->length, &id);
    if (rc == NC_NOERR)
        out_int(c, id);
    return rc;
}

static void
make_dim(generator *g, op *o)
{
    o->varid = pick_dim(g);
    o->name = pick_name(g);
    o->null = one_in(g, 8);
}

static int
call_inq_dim(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    size_t length = 0;
    say(c, "nc_inq_dim($, %d, name, &length)", c->op->varid);
    int rc = nc_inq_dim(c->ncid, c->op->varid, c->op->null ? NULL : name, &length);
    if (rc != NC_NOERR)
        return rc;
    out_text(c, name);
    out_int(c, (long long) length);
    return rc;
}

static int
call_inq_dimname(context *c)
{
    char name[NC_MAX_NAME + 1] = "";
    say(c, "nc_inq_dimname($, %d, name)", c->op->varid);
    int rc = nc_inq_dimname(c->ncid, c->op->varid, name);
    if (rc == NC_NOERR)
        out_text(c, name);
    return rc;
}

static int
call_inq_dimlen(context *c)
{
    size_t length = 0;
    say(c, "nc_inq_dimlen($, %d, &length)", c->op->varid);
    int rc = nc_inq_dimlen(c->ncid, c->op->varid, &length);
    if (rc == NC_NOERR)
        out_int(c, (long long) length);
    return rc;
}

static int
call_inq_dimid(context *c)
{
    int id = -1;
    say(c, "nc_inq_dimid($, %s, &id)", fuzz_name_text(c->op->name));
    int rc = nc_inq_dimid(c->ncid, fuzz_name(c->op->name), c->op->null ? NULL : &id);
    if (rc == NC_NOERR)
        out_int(c, id);
    return rc;
}

/* netCDF-4 looks for the dimension scale in the group that it is renamed through. */
static bool
is_of_group(const context *c)
{
    int ids[IDS];
    int count = 0;
    if (c->state->format != NC_FORMAT_NETCDF4 || nc_inq_dimids(c->ncid, &count, ids, 0) != 0)
        return true;
    for (int i = 0; i < count; i++)
        if (ids[i] == c->op->varid)
            return true;
    return nc_inq_dimname(c->ncid, c->op->varid, NULL) != NC_NOERR ||
           !left_out("netcdf4-rename-dim-elsewhere");
}

static int
call_rename_dim(context *c)
{
    char old[NC_MAX_NAME + 1] = "";
    if (is_decomposed(c, c->op->name) || !is_of_group(c))
        return skip(c);
    bool exists = nc_inq_dimname(c->ncid, c->op->varid, old) == NC_NOERR;
    if (exists && c->side == STOCK && !is_netcdf3(c->state) &&
        (file_has_var(c, old, fuzz_name(c->op->name)) || group_has_group(c) || c->handle->kept) &&
        left_out("netcdf4-renames"))
        return skip(c);
    if (exists && !may_rename(c, old, fuzz_name(c->op->name)))
        return skip(c);
    say(c, "nc_rename_dim($, %d, %s)", c->op->varid, fuzz_name_text(c->op->name));
    return nc_rename_dim(c->ncid, c->op->varid, fuzz_name(c->op->name));
}

/* When a file is opened again, netCDF-4 lists dimensions as HDF5 has them. */
static bool
has_odd_order(const context *c)
{
    int count = 0;
    return !is_netcdf3(c->state) && nc_inq_unlimdims(c->ncid, &count, NULL) == NC_NOERR &&
           count > 1 && left_out("netcdf4-order-of-unlimited");
}

static int
call_inq_unlimdim(context *c)
{
    int id = -5;
    say(c, "nc_inq_unlimdim($, &id)");
    int rc = nc_inq_unlimdim(c->ncid, &id);
    if (rc == NC_NOERR)
        out_int(c, has_odd_order(c) ? -5 : id);
    return rc;
}

static int
call_inq_unlimdims(context *c)
{
    int ids[IDS];
    int count = -1;
    say(c, "nc_inq_unlimdims($, &count, ids)");
    int rc = nc_inq_unlimdims(c->ncid, &count, c->op->null ? NULL : ids);
    if (rc == NC_NOERR)
        out_ids(c, ids, c->op->null || has_odd_order(c) ? 0 : count);
    return rc;
}

static int
call_inq_dimids(context *c)
{
    int ids[IDS];
    int count = -1;
    int parents = c->op->varid & 1;
    say(c, "nc_inq_dimids($, &count, ids, %d)", parents);
    int rc = nc_inq_dimids(c->ncid, &count, c->op->null ? NULL : ids, parents);
    if (rc == NC_NOERR)
        out_ids(c, ids, c->op->null ? 0 : count);
    return rc;
}

static int
call_inq(context *c)
{
    int n[4] = {-5, -5, -5, -5};
    say(c, "nc_inq($, &dims, &vars, &atts, &unlimited)");
    int rc = c->op->null ? nc_inq(c->ncid, NULL, n + 1, NULL, n + 3)
                         : nc_inq(c->ncid, n, n + 1, n + 2, n + 3);
    for (int i = 0; i < 4 && rc == NC_NOERR; i++)
        out_int(c, i == 3 && has_odd_order(c) ? -5 : n[i]);
    return rc;
}

const kind kinds_dims[] = {{"def_dim", 30, false, make_def_dim, call_def_dim},
                           {"inq_dim", 3, false, make_dim, call_inq_dim},
                           {"inq_dimname", 1, false, make_dim, call_inq_dimname},
                           {"inq_dimlen", 1, false, make_dim, call_inq_dimlen},
                           {"inq_dimid", 3, false, make_dim, call_inq_dimid},
                           {"rename_dim", 5, false, make_dim, call_rename_dim},
                           {"inq_unlimdim", 2, false, make_dim, call_inq_unlimdim},
                           {"inq_unlimdims", 2, false, make_dim, call_inq_unlimdims},
                           {"inq_dimids", 2, false, make_dim, call_inq_dimids},
                           {"inq", 2, false, make_dim, call_inq},
                           {0}};

/* ---- groups --------------------------------------------------------------------------------- */

static void
make_group(generator *g, op *o)
{
    o->name = pick_name(g);
    o->name2 = pick_name(g);
    o->null = one_in(g, 8);
    o->argument[0] = (int) pick(g, 6);
}

/* The number of a group, which the ids of both sides have in common. */
static void
out_group(context *c, int ncid)
{
    char name[NC_MAX_NAME + 1] = "";
    (void) nc_inq_grpname(ncid, name);
    out_text(c, name);
    out_int(c, ncid & 0xffff);
}

/* What netCDF-4 cannot store or find again. */
static bool
is_bad_group_name(const context *c)
{
    const char *name = fuzz_name(c->op->name);
    return c->side == STOCK && c->state->format == NC_FORMAT_NETCDF4 && file_has_dim(c, name, "") &&
           left_out("netcdf4-group-names");
}

static int
call_def_grp(context *c)
{
    int id = CLOSED;
    int dims = 0;
    /* Trees stay small enough to be listed. */
    if (c->side == STOCK && nc_inq_grps(c->ncid, &dims, NULL) == NC_NOERR && dims > 3)
        return skip(c);
    if (is_bad_group_name(c))
        return skip(c);
    say(c, "nc_def_grp($, %s, &id)", fuzz_name_text(c->op->name));
    int rc = nc_def_grp(c->ncid, fuzz_name(c->op->name), &id);
    if (rc == NC_NOERR)
        out_group(c, id);
    return rc;
}

static int
call_rename_grp(context *c)
{
    if (is_decomposed(c, c->op->name) || is_bad_group_name(c))
        return skip(c);
    if (c->side == STOCK && c->handle->kept && !is_netcdf3(c->state) && left_out("netcdf4-renames"))
        return skip(c);
    say(c, "nc_rename_grp($, %s)", fuzz_name_text(c->op->name));
    return nc_rename_grp(c->ncid, fuzz_name(c->op->name));
}

static int
call_inq_grps(context *c)
{
    int ids[IDS];
    int count = -1;
    say(c, "nc_inq_grps($, &count, ids)");
    int rc = nc_inq_grps(c->ncid, &count, ids);
    for (int i = 0; i < count && rc == NC_NOERR; i++)
        out_group(c, ids[i]);
    return rc;
}

static int
call_inq_grpname_full(context *c)
{
    char name[20 * NC_MAX_NAME] = "";
    size_t length = 0;
    say(c, "nc_inq_grpname_full($, &length, name)");
    int rc = nc_inq_grpname_full(c->ncid, &length, c->op->null ? NULL : name);
    if (rc != NC_NOERR)
        return rc;
    out_int(c, (long long) length);
    out_text(c, name);
    return nc_inq_grpname_len(c->ncid, &length);
}

static int
call_inq_grp_parent(context *c)
{
    int id = CLOSED;
    say(c, "nc_inq_grp_parent($, &id)");
    int rc = nc_inq_grp_parent(c->ncid, &id);
    if (rc == NC_NOERR)
        out_group(c, id);
    return rc;
}

static int
call_inq_ncid(context *c)
{
    int id = CLOSED;
    bool null = c->op->null;
    say(c, "nc_inq_ncid($, %s, &id)", null ? "NULL" : fuzz_name_text(c->op->name));
    int rc = nc_inq_ncid(c->ncid, null ? NULL : fuzz_name(c->op->name), &id);
    if (rc == NC_NOERR)
        out_group(c, id);
    return rc;
}

static int
call_inq_grp_full_ncid(context *c)
{
    static const char *const forms[] = {"/%s", "/%s/%s", "%s", "%s/%s", "%s/", "//%s"};
    char path[700];
    int id = CLOSED;
    /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    snprintf(path, sizeof path, forms[c->op->argument[0] % 6], fuzz_name(c->op->name),
             fuzz_name(c->op->name2));
#pragma GCC diagnostic pop
    say(c, "nc_inq_grp_full_ncid($, \"%s\", &id)", path);
    int rc = nc_inq_grp_full_ncid(c->ncid, path, &id);
    if (rc == NC_NOERR)
        out_group(c, id);
    return rc;
}

static int
call_inq_varids(context *c)
{
    int ids[IDS];
    int count = -1;
    say(c, "nc_inq_varids($, &count, ids)");
    int rc = nc_inq_varids(c->ncid, &count, c->op->null ? NULL : ids);
    if (rc == NC_NOERR)
        out_ids(c, ids, c->op->null ? 0 : count);
    return rc;
}

const kind kinds_groups[] = {{"def_grp", 6, true, make_group, call_def_grp},
                             {"rename_grp", 2, true, make_group, call_rename_grp},
                             {"inq_grps", 1, true, make_group, call_inq_grps},
                             {"inq_grpname_full", 1, true, make_group, call_inq_grpname_full},
                             {"inq_grp_parent", 1, true, make_group, call_inq_grp_parent},
                             {"inq_ncid", 2, true, make_group, call_inq_ncid},
                             {"inq_grp_full_ncid", 2, true, make_group, call_inq_grp_full_ncid},
                             {"inq_varids", 1, true, make_group, call_inq_varids},
                             {0}};
