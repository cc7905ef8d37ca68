/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Creating, opening, synchronising and giving up. */

#include "parallel.h"

#include <stdio.h>
#include <string.h>

static void
creating(const world *w)
{
    int ncid = -1;
    CALL(nc_create_par(w->path, w->mode | NC_NOCLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "first", 3, "one"));
    CALL(nc_close(ncid));
    CALL(nc_create_par(w->path, w->mode | NC_NOCLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    par_note(w->path);
    CALL(nc_create_par(w->path, w->mode | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "second", 3, "two"));
    CALL(nc_close(ncid));
    par_note(w->path);
    CALL(nc_create_par(w->path, w->mode | NC_DISKLESS, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    CALL(nc_create_par(w->path, w->mode | NC_INMEMORY, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
}

static void
opening_errors(const world *w)
{
    int ncid = -1;
    CALL(nc_open_par(w->other, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    CALL(nc_open_par(w->other, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    int r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    CALL(nc_close(ncid));
    CALL(nc_close(ncid));
    (void) left_out("parallel-in-memory");
}

static void
reading_only(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    put_record(ncid, r, 0);
    CALL(nc_close(ncid));
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    int format = 0;
    int mode = 0;
    CALL(nc_inq_format_extended(ncid, &format, &mode));
    note("extended %d", format);
    CALL(nc_sync(ncid));
    /* Each rank reads something else, independently and then together. */
    int got[COLUMNS] = {0};
    for (int i = 0; i <= my_rank; i++) {
        CALL(nc_get_vara_int(ncid, r, (size_t[]){0, (size_t) (my_rank + i), 0},
                             (size_t[]){1, 1, COLUMNS}, got));
        note_ints("row", got, COLUMNS);
    }
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    CALL(nc_get_vara_int(ncid, r, (size_t[]){0, (size_t) (2 * my_rank), 0},
                         (size_t[]){1, 1, COLUMNS}, got));
    note_ints("together", got, COLUMNS);
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
changing_what_is_read(const world *w)
{
    int ncid, r, f;
    int dim = -1;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    CALL(nc_close(ncid));
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    put_rows(ncid, f, 2);
    CALL(nc_def_dim(ncid, "z", 3, &dim));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "a", 1, "b"));
    CALL(nc_redef(ncid));
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
}

static void
writing_again(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    CALL(nc_close(ncid));
    for (int round = 2; round < 4; round++) {
        if (!par_open(w->path, NC_WRITE, &ncid))
            return;
        CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
        put_record(ncid, r, (size_t) round);
        CALL(nc_var_par_access(ncid, r, NC_INDEPENDENT)); /* of the whole file in classic formats */
        if (my_rank % 2 == round % 2)
            put_rows(ncid, f, round);
        CALL(nc_close(ncid));
    }
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    note_rows(ncid, f);
    CALL(nc_close(ncid));
}

static void
redefining(const world *w)
{
    int ncid, r, f;
    int added = -1;
    int y[2] = {1, 2};
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_redef(ncid));
    CALL(nc_enddef(ncid));
    put_rows(ncid, f, 1);
    CALL(nc_redef(ncid));
    CALL(nc_def_var(ncid, "added", NC_INT, 2, y, &added));
    CALL(nc_put_att_text(ncid, added, "units", 1, "K"));
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "steps", NC_INT, 2, (int[]){7, 8}));
    CALL(nc_enddef(ncid));
    put_rows(ncid, added, 2);
    CALL(nc_sync(ncid));
    meet();
    note_rows(ncid, f);
    note_rows(ncid, added);
    CALL(nc_redef(ncid));
    CALL(nc_rename_att(ncid, NC_GLOBAL, "steps", "count"));
    CALL(nc_put_att_text(ncid, added, "units", 4, "degC"));
    CALL(nc_del_att(ncid, NC_GLOBAL, "count"));
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
define_mode_rules(const world *w)
{
    int ncid = -1;
    int dim = -1;
    int varid = -1;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_redef(ncid));
    CALL(nc_def_dim(ncid, "x", (size_t) rank_count, &dim));
    CALL(nc_def_dim(ncid, "x", 3, NULL));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &dim, &varid));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &dim, NULL));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var1_int(ncid, varid, (size_t[]){(size_t) my_rank}, &my_rank));
    CALL(nc_sync(ncid));
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
classic_define_mode_rules(const world *w)
{
    int ncid, r, f;
    int dim = -1;
    if (!par_make(w, &ncid, &r, &f))
        return;
    CALL(nc_enddef(ncid));
    CALL(nc_def_dim(ncid, "z", 3, &dim));
    CALL(nc_def_var(ncid, "z", NC_INT, 0, NULL, &dim));
    CALL(nc_redef(ncid));
    CALL(nc_redef(ncid));
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
}

/* ---- giving up ------------------------------------------------------------------------------ */

static void
abort_of_new(const world *w)
{
    int ncid = -1;
    int dim = -1;
    if (!par_create(w, &ncid))
        return;
    CALL(nc_def_dim(ncid, "x", 4, &dim));
    CALL(nc_abort(ncid));
    meet();
    CALL(nc_open_par(w->path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
}

static void
abort_in_data_mode(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    CALL(nc_abort(ncid));
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    note_rows(ncid, f);
    CALL(nc_close(ncid));
}

static void
abort_of_changes(const world *w)
{
    int ncid, r, f;
    int dim = -1;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 1);
    CALL(nc_close(ncid));
    if (!par_open(w->path, NC_WRITE, &ncid))
        return;
    CALL(nc_redef(ncid));
    CALL(nc_def_dim(ncid, "z", 4, &dim));
    CALL(nc_abort(ncid));
    int count = 0;
    if (!par_open(w->path, NC_NOWRITE, &ncid))
        return;
    CALL(nc_inq_ndims(ncid, &count));
    note("dims %d", count);
    note_rows(ncid, f);
    CALL(nc_close(ncid));
}

/* ---- other communicators -------------------------------------------------------------------- */

/* One row of one number a rank. */
static int
make_on(MPI_Comm comm, const char *path, int mode, int value)
{
    int rank = 0;
    int size = 0;
    int ncid = -1;
    int dim = -1;
    int varid = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int rc = nc_create_par(path, mode, comm, MPI_INFO_NULL, &ncid);
    note("created %d", rc);
    if (rc != NC_NOERR)
        return rc;
    CALL(nc_def_dim(ncid, "x", (size_t) size, &dim));
    CALL(nc_def_var(ncid, "v", NC_INT, 1, &dim, &varid));
    CALL(nc_enddef(ncid));
    CALL(nc_put_var1_int(ncid, varid, (size_t[]){(size_t) rank}, &value));
    return CALL(nc_close(ncid));
}

static void
half_path(const world *w, int half, char *ret, size_t bytes)
{
    snprintf(ret, bytes, "%.*s.%d.nc", (int) strlen(w->path) - 3, w->path, half);
}

/* Ranks in two groups, the second in the reverse order, write two files at once. */
static void
halves(const world *w)
{
    MPI_Comm half;
    char path[500];
    MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank % 2 == 0 ? my_rank : -my_rank, &half);
    half_path(w, my_rank % 2, path, sizeof path);
    make_on(half, path, w->mode, my_rank);
    MPI_Comm_free(&half);
    meet();
    for (int i = 0; i < 2 && i < rank_count; i++) {
        half_path(w, i, path, sizeof path);
        par_note(path);
    }
    meet();
    for (int i = 0; i < 2 && my_rank == 0; i++) {
        half_path(w, i, path, sizeof path);
        (void) nc_delete(path);
    }
}

static void
a_file_a_rank(const world *w)
{
    char path[500];
    half_path(w, my_rank, path, sizeof path);
    make_on(MPI_COMM_SELF, path, w->mode, my_rank);
    int ncid = -1;
    CALL(nc_open_par(path, NC_NOWRITE, MPI_COMM_SELF, MPI_INFO_NULL, &ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc_open(path, NC_NOWRITE, &ncid)); /* as one process */
    note_file(ncid);
    CALL(nc_close(ncid));
    (void) nc_delete(path);
}

static void
some_ranks_do_nothing(const world *w)
{
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, my_rank == 0 ? MPI_UNDEFINED : 1, 0, &some);
    if (my_rank > 0) {
        make_on(some, w->path, w->mode, my_rank);
        MPI_Comm_free(&some);
    }
    meet();
    if (rank_count > 1)
        par_note(w->path);
    note("done");
}

/* The communicator may be freed when the file is open. */
static void
freed_communicator(const world *w)
{
    MPI_Comm copy;
    int ncid = -1;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    CALL(nc_create_par(w->path, w->mode, copy, info, &ncid));
    MPI_Comm_free(&copy);
    MPI_Info_free(&info);
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "a", NC_INT, 1, &(int){5}));
    CALL(nc_close(ncid));
    par_note(w->path);
}

int nc_create_par_fortran(const char *path, int cmode, int comm, int info, int *ncidp);
int nc_open_par_fortran(const char *path, int mode, int comm, int info, int *ncidp);

static void
fortran_handles(const world *w)
{
    int ncid = -1;
    int comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    int info = MPI_Info_c2f(MPI_INFO_NULL);
    CALL(nc_create_par_fortran(w->path, w->mode, comm, info, &ncid));
    CALL(nc_put_att_int(ncid, NC_GLOBAL, "a", NC_INT, 1, &(int){5}));
    CALL(nc_close(ncid));
    CALL(nc_open_par_fortran(w->path, NC_NOWRITE, comm, info, &ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc_open_par_fortran(w->other, NC_NOWRITE, comm, info, &ncid));
}

/* ---- one process and many ------------------------------------------------------------------- */

static void
made_by_one(const world *w)
{
    int ncid = -1;
    int dim = -1;
    int varid = -1;
    if (my_rank == 0) {
        CALL(nc_create(w->path, w->mode, &ncid));
        CALL(nc_def_dim(ncid, "x", (size_t) rank_count, &dim));
        CALL(nc_def_var(ncid, "v", NC_DOUBLE, 1, &dim, &varid));
        CALL(nc_put_att_double(ncid, varid, "_FillValue", NC_DOUBLE, 1, &(double){-1}));
        CALL(nc_enddef(ncid));
        CALL(nc_put_var1_double(ncid, varid, (size_t[]){0}, &(double){0.5}));
        CALL(nc_close(ncid));
    }
    meet();
    par_note(w->path);
    if (!par_open(w->path, NC_WRITE, &ncid))
        return;
    double value = my_rank;
    if (my_rank > 0)
        CALL(nc_put_var1_double(ncid, 0, (size_t[]){(size_t) my_rank}, &value));
    CALL(nc_close(ncid));
    meet();
    if (my_rank == 0) {
        CALL(nc_open(w->path, NC_NOWRITE, &ncid));
        note_file(ncid);
        CALL(nc_close(ncid));
    }
}

static void
two_files_at_once(const world *w)
{
    world second = *w;
    second.path = w->other;
    int a, ra, fa, b, rb, fb;
    if (!par_make(w, &a, &ra, &fa) || !par_make(&second, &b, &rb, &fb))
        return;
    put_rows(a, fa, 1);
    put_rows(b, fb, 2);
    CALL(nc_sync(b));
    put_rows(a, fa, 3);
    CALL(nc_close(a));
    put_rows(b, fb, 4);
    CALL(nc_close(b));
    if (!par_open(w->path, NC_NOWRITE, &a) || !par_open(w->other, NC_NOWRITE, &b))
        return;
    note_rows(a, fa);
    note_rows(b, fb);
    CALL(nc_close(b));
    CALL(nc_close(a));
}

/* Steps are published by nc_sync() and read by ranks that opened the file for reading. */
static void
synchronised_steps(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    put_rows(ncid, f, 9);
    CALL(nc_var_par_access(ncid, r, NC_COLLECTIVE));
    for (size_t t = 0; t < 5; t++) {
        put_record(ncid, r, t);
        CALL(nc_sync(ncid));
        meet();
        note_records(ncid, r, t + 1);
    }
    CALL(nc_sync(ncid));
    CALL(nc_close(ncid));
    par_note(w->path);
}

static void
inquiries(const world *w)
{
    int ncid, r, f;
    if (!par_make(w, &ncid, &r, &f))
        return;
    char path[500] = "";
    size_t length = 0;
    int format = 0;
    int mode = 0;
    CALL(nc_inq_path(ncid, &length, path));
    note("path %d", strcmp(path, w->path));
    CALL(nc_inq_format(ncid, &format));
    note("format %d", format);
    CALL(nc_inq_format_extended(ncid, &format, &mode));
    note("extended %d", format);
    CALL(nc_close(ncid));
}

const scenario scenarios_par_files[] = {
    {"par_files", "creating", IN_ALL, creating},
    {"par_files", "opening_errors", IN_ALL, opening_errors},
    {"par_files", "reading_only", IN_ALL, reading_only},
    {"par_files", "changing_what_is_read", IN_ALL, changing_what_is_read},
    {"par_files", "writing_again", IN_ALL, writing_again},
    {"par_files", "redefining", IN_ALL, redefining},
    {"par_files", "define_mode_rules", IN_ALL, define_mode_rules},
    {"par_files", "classic_define_mode_rules", IN_STRICT, classic_define_mode_rules},
    {"par_files", "abort_of_new", IN_ALL, abort_of_new},
    {"par_files", "abort_in_data_mode", IN_ALL, abort_in_data_mode},
    {"par_files", "abort_of_changes", IN_ALL, abort_of_changes},
    {"par_files", "halves", IN_ALL, halves},
    {"par_files", "a_file_a_rank", IN_ALL, a_file_a_rank},
    {"par_files", "some_ranks_do_nothing", IN_ALL, some_ranks_do_nothing},
    {"par_files", "freed_communicator", IN_ALL, freed_communicator},
    {"par_files", "fortran_handles", IN_ALL, fortran_handles},
    {"par_files", "made_by_one", IN_ALL, made_by_one},
    {"par_files", "two_files_at_once", IN_ALL, two_files_at_once},
    {"par_files", "synchronised_steps", IN_ALL, synchronised_steps},
    {"par_files", "inquiries", IN_ALL, inquiries},
    {NULL, NULL, 0, NULL}};
