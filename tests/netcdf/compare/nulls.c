/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* NULL for names, results and values, in the formats where stock netCDF does not crash on it. */

#include "compare.h"

static void
make(int ncid)
{
    int d = -1;
    int v = -1;
    CALL(nc_def_dim(ncid, "x", 2, &d));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &d, &v));
    CALL(nc_put_att_int(ncid, v, "a", NC_INT, 1, (int[]){7}));
}

static void
results(const world *w)
{
    int ncid = create(w);
    make(ncid);
    CALL(nc_def_dim(ncid, "y", 2, NULL));
    CALL(nc_def_var(ncid, "w", NC_INT, 0, NULL, NULL));
    CALL(nc_inq(ncid, NULL, NULL, NULL, NULL));
    CALL(nc_inq_ndims(ncid, NULL));
    CALL(nc_inq_nvars(ncid, NULL));
    CALL(nc_inq_natts(ncid, NULL));
    CALL(nc_inq_unlimdim(ncid, NULL));
    CALL(nc_inq_unlimdims(ncid, NULL, NULL));
    CALL(nc_inq_dim(ncid, 0, NULL, NULL));
    CALL(nc_inq_dimid(ncid, "x", NULL));
    CALL(nc_inq_dimids(ncid, NULL, NULL, 0));
    CALL(nc_inq_var(ncid, 0, NULL, NULL, NULL, NULL, NULL));
    CALL(nc_inq_varid(ncid, "v", NULL));
    CALL(nc_inq_varids(ncid, NULL, NULL));
    CALL(nc_inq_att(ncid, 0, "a", NULL, NULL));
    CALL(nc_inq_attid(ncid, 0, "a", NULL));
    CALL(nc_inq_attname(ncid, 0, 0, NULL));
    CALL(nc_inq_format(ncid, NULL));
    CALL(nc_inq_format_extended(ncid, NULL, NULL));
    CALL(nc_inq_path(ncid, NULL, NULL));
    CALL(nc_inq_grps(ncid, NULL, NULL));
    CALL(nc_inq_grpname(ncid, NULL));
    CALL(nc_inq_grpname_full(ncid, NULL, NULL));
    CALL(nc_inq_grpname_len(ncid, NULL));
    CALL(nc_inq_grp_parent(ncid, NULL));
    CALL(nc_inq_ncid(ncid, "g", NULL));
    CALL(nc_inq_grp_full_ncid(ncid, "/", NULL));
    CALL(nc_inq_var_fill(ncid, 0, NULL, NULL));
    CALL(nc_inq_var_chunking(ncid, 0, NULL, NULL));
    CALL(nc_inq_var_deflate(ncid, 0, NULL, NULL, NULL));
    CALL(nc_inq_var_endian(ncid, 0, NULL));
    CALL(nc_inq_type(ncid, NC_INT, NULL, NULL));
    CALL(nc_inq_typeids(ncid, NULL, NULL));
    CALL(nc_set_fill(ncid, NC_NOFILL, NULL));
    CALL(nc_close(ncid));
}

static void
names(const world *w)
{
    int ncid = create(w);
    int id = -1;
    make(ncid);
    CALL(nc_inq_dimid(ncid, NULL, &id));
    CALL(nc_inq_varid(ncid, NULL, &id));
    CALL(nc_rename_dim(ncid, 0, NULL));
    CALL(nc_rename_var(ncid, 0, NULL));
    CALL(nc_inq_ncid(ncid, NULL, &id));
    note("ncid %d", id == ncid);
    id = -1;
    CALL(nc_inq_grp_ncid(ncid, NULL, &id));
    note("ncid %d", id == ncid);
    CALL(nc_inq_grp_full_ncid(ncid, NULL, &id));
    CALL(nc_rename_att(ncid, 0, NULL, "b"));
    CALL(nc_rename_att(ncid, 0, "a", NULL));
    CALL(nc_del_att(ncid, 0, NULL));
    if (w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC) {
        CALL(nc_def_dim(ncid, NULL, 2, &id));
        CALL(nc_def_var(ncid, NULL, NC_INT, 0, NULL, &id));
        CALL(nc_def_grp(ncid, NULL, &id));
        CALL(nc_rename_grp(ncid, NULL));
        CALL(nc_put_att_int(ncid, 0, NULL, NC_INT, 1, &id));
        CALL(nc_inq_att(ncid, 0, NULL, NULL, NULL));
        CALL(nc_get_att_int(ncid, 0, NULL, &id));
    }
    CALL(nc_close(ncid));
}

static void
values(const world *w)
{
    int ncid = create(w);
    make(ncid);
    CALL(nc_put_att_int(ncid, 0, "b", NC_INT, 1, NULL));
    CALL(nc_put_att_int(ncid, 0, "c", NC_INT, 0, NULL));
    CALL(nc_put_att_text(ncid, 0, "d", 0, NULL));
    CALL(nc_put_att_text(ncid, 0, "e", 3, NULL));
    CALL(nc_def_var(ncid, "z", NC_INT, 1, NULL, NULL));
    CALL(nc_def_var_fill(ncid, 0, NC_FILL, NULL));
    CALL(nc_def_var_fill(ncid, 0, NC_NOFILL, NULL));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
note_texts(int ncid, int v, size_t n)
{
    char *texts[4] = {NULL};
    char *fill = NULL;
    int nofill = -1;
    CALL(nc_get_var_string(ncid, v, texts));
    for (size_t i = 0; i < n; i++)
        note("text %d %s", texts[i] != NULL, texts[i] != NULL ? texts[i] : "");
    CALL(nc_free_string(n, texts));
    CALL(nc_inq_var_fill(ncid, v, &nofill, &fill));
    note("fill %d %s", fill != NULL, fill != NULL ? fill : "");
    CALL(nc_free_string(1, &fill));
    if (CALL(nc_get_att_string(ncid, v, "_FillValue", texts)) == NC_NOERR) {
        note("attribute %d %s", texts[0] != NULL, texts[0] != NULL ? texts[0] : "");
        CALL(nc_free_string(1, texts));
    }
}

static void
texts(const world *w)
{
    const char *const none = NULL;
    const char *const empty = "";
    int v[4] = {-1, -1, -1, -1};
    int d = -1;
    int ncid = create(w);
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d));
    CALL(nc_def_var(ncid, "plain", NC_STRING, 1, &d, &v[0]));
    CALL(nc_def_var(ncid, "null", NC_STRING, 1, &d, &v[1]));
    CALL(nc_def_var(ncid, "empty", NC_STRING, 1, &d, &v[2]));
    CALL(nc_def_var(ncid, "defined", NC_STRING, 1, &d, &v[3]));
    CALL(nc_put_att_string(ncid, v[1], "_FillValue", 1, (const char **) &none));
    CALL(nc_put_att_string(ncid, v[2], "_FillValue", 1, (const char **) &empty));
    CALL(nc_def_var_fill(ncid, v[3], NC_FILL, &none));
    CALL(nc_put_att_string(ncid, NC_GLOBAL, "a", 3, (const char *[]){NULL, "", "a"}));
    for (int i = 0; i < 4; i++) {
        CALL(nc_put_vara_string(ncid, v[i], (size_t[]){1}, (size_t[]){2},
                                (const char *[]){NULL, ""}));
        CALL(nc_put_var1_string(ncid, v[i], (size_t[]){3}, (const char *[]){i < 2 ? "x" : NULL}));
    }
    for (int i = 0; i < 4; i++)
        note_texts(ncid, v[i], 4);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    for (int i = 0; i < 4; i++)
        note_texts(ncid, v[i], 4);
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_nulls[] = {{"nulls", "results", IN_HDF5, results},
                                    {"nulls", "names", IN_HDF5, names},
                                    {"nulls", "values", IN_HDF5, values},
                                    {"nulls", "texts", IN_NC4, texts},
                                    {0}};
