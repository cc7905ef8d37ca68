/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Define and data mode, formats, creating, files mapped into memory, aborting, wrong ids,
 * readers beside a writer. */
#include "compare.h"

static void
note_format(int ncid)
{
    int format = -1;
    int mode = -1;
    CALL(nc_inq_format(ncid, &format));
    note("format %d", format);
    CALL(nc_inq_format_extended(ncid, &format, &mode));
    note("extended %d mode %#x", format, (unsigned) mode);
}

static void
define_mode(const world *w)
{
    int ncid = create(w);
    int v = -1;
    CALL(nc_redef(ncid));
    CALL(nc_sync(ncid));
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    CALL(nc_put_var_int(ncid, v, (int[]){1}));
    CALL(nc_enddef(ncid));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_int(ncid, v, (int[]){1}));
    CALL(nc_sync(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_sync(ncid));
    CALL(nc_close(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    CALL(nc_redef(ncid));
    CALL(nc_enddef(ncid));
    CALL(nc_sync(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE);
    CALL(nc_enddef(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_enddef(ncid));
    CALL(nc__enddef(ncid, 10, 4, 10, 4));
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
formats(const world *w)
{
    int ncid = create(w);
    note_format(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_format(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_WRITE | NC_SHARE);
    note_format(ncid);
    CALL(nc_close(ncid));
}

static void
creating(const world *w)
{
    int ncid = -1;
    CALL(nc_open(w->path, NC_NOWRITE, &ncid));
    CALL(nc_open(w->path, NC_WRITE, &ncid));
    CALL(nc_create(w->path, w->mode | NC_NOCLOBBER, &ncid));
    CALL(nc_def_dim(ncid, "x", 1, NULL));
    CALL(nc_close(ncid));
    int second = -1;
    CALL(nc_create(w->path, w->mode | NC_NOCLOBBER, &second));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc_create(w->path, w->mode | NC_CLOBBER, &ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc_delete(w->path));
    CALL(nc_open(w->path, NC_NOWRITE, &ncid));
}

static void
mapped(const world *w)
{
    int ncid = -1;
    CALL(nc_create(w->path, w->mode | NC_MMAP | NC_DISKLESS, &ncid));
    CALL(nc_create(w->path, w->mode | NC_MMAP | NC_INMEMORY, &ncid));
    for (int i = 0; i < 2; i++) { /* kept when it is to persist */
        int v = -1;
        if (CALL(nc_create(w->path, w->mode | NC_MMAP | (i == 0 ? 0 : NC_PERSIST), &ncid)) != 0)
            continue;
        note_format(ncid);
        CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
        CALL(nc_enddef(ncid));
        CALL(nc_put_var_int(ncid, v, (int[]){42}));
        note_file(ncid);
        CALL(nc_close(ncid));
        if (CALL(nc_open(w->path, NC_NOWRITE, &ncid)) != 0)
            continue;
        note_file(ncid);
        CALL(nc_close(ncid));
        CALL(nc_open(w->path, NC_WRITE | NC_MMAP, &ncid));
        note_format(ncid);
        CALL(nc_put_var_int(ncid, v, (int[]){43}));
        CALL(nc_close(ncid));
        CALL(nc_open(w->path, NC_MMAP, &ncid));
        note_file(ncid);
        CALL(nc_close(ncid));
    }
    ncid = create(w);
    CALL(nc_close(ncid));
    int rc = CALL(nc_open(w->path, NC_MMAP, &ncid));
    if (rc == NC_NOERR)
        CALL(nc_close(ncid));
    CALL(nc_open(w->path, NC_MMAP | NC_NETCDF4, &ncid));
}

static void
aborting(const world *w)
{
    int ncid = create(w);
    CALL(nc_def_dim(ncid, "x", 1, NULL));
    CALL(nc_abort(ncid));
    CALL(nc_open(w->path, NC_NOWRITE, &ncid));
    ncid = create(w);
    CALL(nc_def_dim(ncid, "x", 1, NULL));
    int v = -1;
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_int(ncid, v, (int[]){42}));
    CALL(nc_sync(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_def_dim(ncid, "dropped", 1, NULL));
    CALL(nc_abort(ncid));
    CALL(nc_abort(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_abort(ncid));
}

/* v(x), with attributes; data are written, nothing is synchronised. */
static int
define_some(const world *w, int *ret_v)
{
    int ncid = create(w);
    int x = -1;
    CALL(nc_def_dim(ncid, "x", 3, &x));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &x, ret_v));
    CALL(nc_put_att_int(ncid, *ret_v, "number", NC_INT, 2, (int[]){1, 2}));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 3, "old"));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "other", 5, "other"));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var_int(ncid, *ret_v, (int[]){4, 5, 6}));
    return ncid;
}

static void
define_more(const world *w, int ncid, int v)
{
    int y = -1;
    int late = -1;
    int group = ncid;
    CALL(nc_def_dim(ncid, "y", 2, &y));
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, NULL));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 8, "a longer"));
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "new", NC_INT, 1, &y));
    CALL(nc_put_att_double(ncid, v, "number", NC_DOUBLE, 1, (double[]){7}));
    if (w->format == NC_FORMAT_NETCDF4) {
        nc_type type = NC_INT;
        CALL(nc_def_grp(ncid, "below", &group));
        CALL(nc_def_opaque(ncid, 3, "bytes", &type));
        CALL(nc_def_var(group, "of_type", type, 1, &y, &late));
    }
    CALL(nc_def_var(group, "late", NC_FLOAT, 1, &y, &late));
    CALL(nc_put_att_text(group, late, "units", 1, "m"));
}

/* What is dropped was not there; what was written before is kept. */
static void
aborting_redefinition(const world *w)
{
    int v = -1;
    bool hdf5 = w->format == NC_FORMAT_NETCDF4 || w->format == NC_FORMAT_NETCDF4_CLASSIC;
    note_parts(true, !(hdf5 && left_out("netcdf4-order-of-attributes")));
    for (int synchronised = 0; synchronised < 3; synchronised++) {
        int ncid = define_some(w, &v);
        if (synchronised == 1)
            CALL(nc_sync(ncid));
        if (synchronised == 2) {
            CALL(nc_close(ncid));
            ncid = reopen(w, NC_WRITE);
            CALL(nc_put_var1_int(ncid, v, (size_t[]){1}, (int[]){50}));
        }
        CALL(nc_redef(ncid));
        define_more(w, ncid, v);
        CALL(nc_abort(ncid));
        ncid = reopen(w, NC_WRITE);
        note_file(ncid);
        CALL(nc_redef(ncid)); /* names are free again */
        define_more(w, ncid, v);
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
        note_file(ncid);
        CALL(nc_close(ncid));
    }
    note_parts(true, true);
}

/* netCDF-4 renames and removes at once in what lies in the file. */
static void
aborting_renames(const world *w)
{
    for (int share = 0; share <= NC_SHARE; share += NC_SHARE) {
        int v = -1;
        int ncid = define_some(w, &v);
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_WRITE | share);
        CALL(nc_rename_dim(ncid, 0, "y"));
        CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 3, "new"));
        CALL(nc_redef(ncid));
        note_file(ncid);
        CALL(nc_rename_var(ncid, v, "renamed"));
        CALL(nc_rename_att(ncid, v, "number", "other"));
        CALL(nc_del_att(ncid, NC_GLOBAL, "title"));
        CALL(nc_def_dim(ncid, "x", 9, NULL));
        CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
        CALL(nc_abort(ncid));
        ncid = reopen(w, NC_WRITE);
        note_file(ncid);
        CALL(nc_rename_var(ncid, 0, "u"));
        CALL(nc_sync(ncid));
        CALL(nc_rename_var(ncid, 0, "w"));
        CALL(nc_redef(ncid));
        CALL(nc_rename_var(ncid, 0, "w2"));
        CALL(nc_abort(ncid));
        ncid = reopen(w, NC_NOWRITE);
        note_file(ncid);
        CALL(nc_close(ncid));
    }
}

/* nc_create() over what is there takes it away, whatever comes then. */
static void
aborting_replacement(const world *w)
{
    int v = -1;
    int ncid = define_some(w, &v);
    CALL(nc_close(ncid));
    ncid = create(w);
    CALL(nc_def_dim(ncid, "n", 1, NULL));
    CALL(nc_abort(ncid));
    CALL(nc_open(w->path, NC_NOWRITE, &ncid));
    CALL(nc_create(w->path, w->mode | NC_NOCLOBBER, &ncid));
    CALL(nc_close(ncid));
    ncid = create(w);
    CALL(nc_def_dim(ncid, "n", 1, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_abort(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* In data mode. */
static void
aborting_data(const world *w)
{
    int v = -1;
    int ncid = define_some(w, &v);
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 3, "new"));
    CALL(nc_abort(ncid));
    ncid = reopen(w, NC_WRITE);
    note_file(ncid);
    CALL(nc_put_var1_int(ncid, v, (size_t[]){1}, (int[]){50}));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 3, "two"));
    CALL(nc_sync(ncid));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "title", 3, "six"));
    CALL(nc_abort(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
wrong_ids(const world *w)
{
    int ncid = create(w);
    int format = 0;
    CALL(nc_close(ncid));
    CALL(nc_inq_format(ncid, &format));
    CALL(nc_redef(ncid));
    CALL(nc_def_dim(ncid, "x", 1, NULL));
    CALL(nc_sync(-1));
    CALL(nc_close(-1));
}

static void
reader_sees_sync(const world *w)
{
    int ncid = create(w);
    int t = -1;
    int v = -1;
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &t));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &t, &v));
    CALL(nc_enddef(ncid));
    CALL(nc_put_vara_int(ncid, v, (size_t[]){0}, (size_t[]){2}, (int[]){1, 2}));
    CALL(nc_sync(ncid));
    int reader = reopen(w, NC_NOWRITE | NC_SHARE);
    note_file(reader);
    CALL(nc_put_vara_int(ncid, v, (size_t[]){2}, (size_t[]){2}, (int[]){3, 4}));
    CALL(nc_sync(ncid));
    CALL(nc_sync(reader));
    note_file(reader);
    CALL(nc_close(reader));
    CALL(nc_close(ncid));
}

const scenario scenarios_modes[] = {
    {"modes", "define_mode", IN_ALL, define_mode},
    {"modes", "formats", IN_ALL, formats},
    {"modes", "creating", IN_ALL, creating},
    {"modes", "mapped", IN_ALL, mapped},
    {"modes", "aborting", IN_ALL, aborting},
    {"modes", "aborting_redefinition", IN_ALL, aborting_redefinition},
    {"modes", "aborting_renames", IN_CDF, aborting_renames},
    {"modes", "aborting_replacement", IN_ALL, aborting_replacement},
    {"modes", "aborting_data", IN_ALL, aborting_data},
    {"modes", "wrong_ids", IN_ALL, wrong_ids},
    {"modes", "reader_sees_sync", IN_CDF, reader_sees_sync},
    {0}};
