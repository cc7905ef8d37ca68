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

const scenario scenarios_nulls[] = {{"nulls", "results", IN_HDF5, results},
                                    {"nulls", "names", IN_HDF5, names},
                                    {"nulls", "values", IN_HDF5, values},
                                    {0}};
