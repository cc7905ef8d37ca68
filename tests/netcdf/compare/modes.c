/* SPDX-License-Identifier: LGPL-3.0-or-later */
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

const scenario scenarios_modes[] = {{"modes", "define_mode", IN_ALL, define_mode},
                                    {"modes", "formats", IN_ALL, formats},
                                    {"modes", "creating", IN_ALL, creating},
                                    {"modes", "aborting", IN_ALL, aborting},
                                    {"modes", "wrong_ids", IN_ALL, wrong_ids},
                                    {"modes", "reader_sees_sync", IN_CDF, reader_sees_sync},
                                    {0}};
