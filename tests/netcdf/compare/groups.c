/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Groups: trees, in data mode, formats without them, their types, dimensions of others. */
#include "compare.h"

#include <string.h>

static void
note_ncid(const char *what, int ncid)
{
    note("%s %d", what, ncid & 0xffff);
}

static void
tree(const world *w)
{
    int ncid = create(w);
    int a = ncid;
    int b = ncid;
    int aa = ncid;
    int id = -1;
    CALL(nc_def_grp(ncid, "a", &a));
    CALL(nc_def_grp(ncid, "b", &b));
    CALL(nc_def_grp(a, "a", &aa));
    CALL(nc_def_grp(ncid, "a", &id));
    CALL(nc_def_grp(ncid, "x/y", &id));
    CALL(nc_def_grp(ncid, "c", NULL));
    note_ncid("a", a);
    note_ncid("b", b);
    note_ncid("aa", aa);
    int x = -1;
    int y = -1;
    int z = -1;
    CALL(nc_def_dim(ncid, "x", 2, &x));
    CALL(nc_def_dim(a, "y", 3, &y));
    CALL(nc_def_dim(a, "x", 4, &z));
    CALL(nc_def_dim(aa, "u", NC_UNLIMITED, NULL));
    int v = -1;
    CALL(nc_def_var(a, "v", NC_INT, 2, (int[]){x, y}, &v));
    CALL(nc_def_var(aa, "v", NC_SHORT, 2, (int[]){z, y}, &v));
    CALL(nc_def_var(aa, "w", NC_SHORT, 1, (int[]){77}, &v));
    CALL(nc_def_var(ncid, "a", NC_SHORT, 1, &x, &v));
    CALL(nc_def_var(ncid, "q", NC_SHORT, 1, &x, &v));
    CALL(nc_def_grp(ncid, "q", &id));
    CALL(nc_put_att_text(a, NC_GLOBAL, "title", 5, "in a!"));
    CALL(nc_put_att_text(aa, v, "units", 1, "m"));
    CALL(nc_inq_dimid(aa, "x", &id));
    note("%d", id);
    CALL(nc_inq_dimid(b, "y", &id));
    CALL(nc_inq_dimid(b, "/a/y", &id));
    note("%d", id);
    CALL(nc_inq_dimid(b, "/none/y", &id));
    CALL(nc_inq_dimid(b, "a/y", &id));
    int n = -1;
    int ids[20];
    CALL(nc_inq_dimids(aa, &n, ids, 1));
    note_ints("dims", ids, (size_t) n);
    CALL(nc_inq_dimids(aa, &n, ids, 0));
    note_ints("dims", ids, (size_t) n);
    CALL(nc_inq_varids(aa, &n, ids));
    note_ints("vars", ids, (size_t) n);
    CALL(nc_inq_unlimdims(a, &n, ids));
    note("%d", n);
    CALL(nc_inq_unlimdim(aa, &n));
    note("%d", n);
    CALL(nc_inq_typeids(a, &n, ids));
    note("%d", n);
    char name[1000] = "";
    size_t length = 0;
    CALL(nc_inq_grpname(aa, name));
    note("%s", name);
    CALL(nc_inq_grpname_full(aa, &length, name));
    note("%s %zu", name, length);
    CALL(nc_inq_grpname_len(aa, &length));
    CALL(nc_inq_grpname_full(ncid, &length, name));
    note("%s %zu", name, length);
    CALL(nc_inq_grpname(ncid, name));
    note("%s", name);
    CALL(nc_inq_grp_parent(aa, &id));
    note_ncid("parent", id);
    CALL(nc_inq_grp_parent(aa, NULL));
    CALL(nc_inq_grp_parent(ncid, &id));
    CALL(nc_inq_ncid(ncid, "b", &id));
    note_ncid("b", id);
    CALL(nc_inq_ncid(a, NULL, &id));
    note_ncid("root", id);
    CALL(nc_inq_ncid(ncid, "nobody", &id));
    CALL(nc_inq_grp_ncid(a, "a", &id));
    note_ncid("aa", id);
    CALL(nc_inq_grp_full_ncid(ncid, "/a/a", &id));
    note_ncid("aa", id);
    CALL(nc_inq_grp_full_ncid(ncid, "a/a", &id));
    CALL(nc_inq_grp_full_ncid(ncid, "/", &id));
    note_ncid("root", id);
    CALL(nc_inq_grp_full_ncid(a, "/", &id));
    CALL(nc_inq_grp_full_ncid(ncid, "/a/none", &id));
    CALL(nc_rename_grp(b, "bee"));
    CALL(nc_rename_grp(b, "a"));
    CALL(nc_rename_grp(ncid, "root"));
    CALL(nc_enddef(ncid));
    CALL(nc_inq_varid(ncid, "/a/a/v", &id));
    CALL(nc_put_var_int(a, 0, (int[]){1, 2, 3, 4, 5, 6}));
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_def_grp(ncid, "late", &id));
    CALL(nc_inq_grps(ncid, &n, NULL));
    note("%d", n);
    CALL(nc_close(ncid));
}

static void
in_data_mode(const world *w)
{
    int ncid = create(w);
    CALL(nc_enddef(ncid));
    int a = ncid;
    CALL(nc_def_grp(ncid, "a", &a));
    CALL(nc_put_att_text(a, NC_GLOBAL, "t", 1, "x"));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_def_grp(ncid, "b", &a));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
without_groups(const world *w)
{
    int ncid = create(w);
    int id = -1;
    int n = -1;
    char name[1000] = "";
    size_t length = 0;
    CALL(nc_def_grp(ncid, "a", &id));
    CALL(nc_inq_grps(ncid, &n, NULL));
    note("%d", n);
    CALL(nc_inq_grpname(ncid, name));
    CALL(nc_inq_grpname_full(ncid, &length, name));
    note("%s %zu", name, length);
    CALL(nc_inq_grp_parent(ncid, &id));
    CALL(nc_inq_grp_full_ncid(ncid, "/a", &id));
    CALL(nc_inq_grp_full_ncid(ncid, "/", &id));
    CALL(nc_inq_varids(ncid, &n, NULL));
    CALL(nc_inq_dimids(ncid, &n, NULL, 0));
    CALL(nc_inq_typeids(ncid, &n, NULL));
    CALL(nc_rename_grp(ncid, "b"));
    nc_type type = 0;
    CALL(nc_def_compound(ncid, 8, "c", &type));
    CALL(nc_def_vlen(ncid, "v", NC_INT, &type));
    CALL(nc_def_opaque(ncid, 8, "o", &type));
    CALL(nc_def_enum(ncid, NC_INT, "e", &type));
    CALL(nc_close(ncid));
}

static void
types(const world *w)
{
    int ncid = create(w);
    char name[NC_MAX_NAME + 1] = "";
    size_t bytes = 0;
    nc_type type = 0;
    int equal = -1;
    for (nc_type t = 1; t <= 12; t++) {
        CALL(nc_inq_type(ncid, t, name, &bytes));
        note("%s %zu", name, bytes);
        CALL(nc_inq_typeid(ncid, name, &type));
        note("%d", type);
    }
    CALL(nc_inq_type(ncid, 0, name, &bytes));
    CALL(nc_inq_type(ncid, 40, name, &bytes));
    if (w->format != NC_FORMAT_NETCDF4 && w->format != NC_FORMAT_NETCDF4_CLASSIC)
        CALL(nc_inq_typeid(ncid, "none", &type)); /* netCDF-4 4.9.0 answers NC_NOERR */
    CALL(nc_inq_type_equal(ncid, NC_INT, ncid, NC_INT, &equal));
    CALL(nc_inq_type_equal(ncid, NC_INT, ncid, NC_FLOAT, &equal));
    note("%d", equal);
    int class = 0;
    size_t fields = 0;
    CALL(nc_inq_user_type(ncid, 40, name, &bytes, &type, &fields, &class));
    CALL(nc_close(ncid));
}

/* Variables over dimensions of groups that are none of those above theirs. */
static void
foreign_dims(const world *w)
{
    int ncid = create(w);
    int a = -1;
    int b = -1;
    int c = -1;
    int x = -1;
    int v = -1;
    const int values[2] = {1, 2};
    CALL(nc_def_grp(ncid, "a", &a));
    CALL(nc_def_grp(a, "c", &c));
    CALL(nc_def_grp(ncid, "b", &b));
    CALL(nc_def_dim(c, "x", 2, &x));
    CALL(nc_def_var(b, "v", NC_INT, 1, &x, &v));
    CALL(nc_def_var(b, "w", NC_INT, 1, (int[]){7}, NULL));
    CALL(nc_put_var_int(b, v, values));
    for (int i = 0; i < 2; i++) {
        char name[NC_MAX_NAME + 1] = "";
        size_t length = 0;
        int read[2] = {0};
        int dimid = -1;
        int count = -1;
        CALL(nc_inq_ncid(ncid, "b", &b));
        CALL(nc_inq_vardimid(b, 0, &dimid));
        CALL(nc_inq_dim(b, dimid, name, &length));
        CALL(nc_inq_dimid(b, "x", &x));
        CALL(nc_inq_dimids(b, &count, NULL, 1));
        CALL(nc_get_var_int(b, 0, read));
        note("%d '%s' %zu %d: %d %d", dimid, name, length, count, read[0], read[1]);
        note_file(ncid);
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_groups[] = {{"groups", "tree", IN_NC4, tree},
                                     {"groups", "in_data_mode", IN_NC4, in_data_mode},
                                     {"groups", "without_groups", IN_STRICT, without_groups},
                                     {"groups", "types", IN_ALL, types},
                                     {"groups", "foreign_dims", IN_NC4, foreign_dims},
                                     {0}};
