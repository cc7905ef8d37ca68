/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks that make mistakes, fail or are killed, on containers; trouble.py starts it.
 *
 *     nc_trouble differ        definitions, modes and paths that are not the same on all ranks
 *     nc_trouble refused       collective calls that only one rank gets wrong
 *     nc_trouble sites OTHER   the last rank uses the site configuration OTHER
 *     nc_trouble lost          the last rank cannot store its data
 *     nc_trouble full          the disk is full after some steps
 *     nc_trouble steps COUNT   commits that many steps; says which ones, on rank 0
 *     nc_trouble dies RANK N   such steps; RANK is killed as it begins its N-th message of the
 * third commit nc_trouble verify STEP   one process: every step up to the last one is whole, STEP
 * is there nc_trouble append        all ranks write one more step nc_trouble neighbours    each
 * rank reads what the next one wrote; says what it gets
 */
#include "checks.h"

#include <errno.h>
#include <inttypes.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- definitions that differ ---------------------------------------------------------------- */

/* Defines a small file; `odd` is what this rank does in another way than the others. */
typedef enum oddity {
    NOTHING,
    DIM_LENGTH,
    DIM_NAME,
    DIM_UNLIMITED,
    DIM_MISSING,
    VAR_TYPE,
    VAR_NAME,
    VAR_MISSING,
    VAR_SHAPE,
    VAR_ORDER,
    ATT_MISSING,
    ATT_TYPE,
    FILL_VALUE,
    GROUP_MISSING,
    TYPE_SIZE,
    ENUM_MEMBER,
    CHUNKS,
    FILTER,
    ODDITIES,
    ATT_VALUE /* is none */
} oddity;

static bool
needs_netcdf4(oddity odd)
{
    return odd == FILL_VALUE || (odd >= GROUP_MISSING && odd < ODDITIES);
}

static void
define_more(int ncid, oddity odd)
{
    int type, group;
    OK(nc_def_compound(ncid, 8, "pair",
                       &type)); /* larger than its member: padding is no difference */
    OK(nc_insert_compound(ncid, type, "a", 0, NC_INT));
    OK(nc_def_opaque(ncid, odd == TYPE_SIZE ? 16 : 8, "blob", &type));
    OK(nc_def_enum(ncid, NC_INT, "level", &type));
    OK(nc_insert_enum(ncid, type, "low", &(int){odd == ENUM_MEMBER ? 2 : 1}));
    OK(nc_def_var_chunking(ncid, 1, NC_CHUNKED, (size_t[]){odd == CHUNKS ? 3 : 2, 5}));
    OK(nc_def_var_deflate(ncid, 1, 0, 1, odd == FILTER ? 3 : 1));
    OK(nc_def_var_fill(ncid, 1, NC_FILL, &(int){odd == FILL_VALUE ? 5 : 4}));
    if (odd != GROUP_MISSING)
        OK(nc_def_grp(ncid, "g", &group));
}

static void
define(int ncid, int mode, oddity odd)
{
    int d[2];
    int v;
    OK(nc_def_dim(ncid, odd == DIM_NAME ? "z" : "y",
                  odd == DIM_UNLIMITED ? NC_UNLIMITED
                  : odd == DIM_LENGTH  ? 12
                                       : 10,
                  &d[0]));
    OK(nc_def_dim(ncid, "x", 5, &d[1]));
    if (odd != DIM_MISSING)
        OK(nc_def_dim(ncid, "unused", 7, NULL));
    if (odd != VAR_ORDER)
        OK(nc_def_var(ncid, "s", NC_SHORT, 1, d, &v));
    if (odd == VAR_SHAPE)
        d[0] = d[1];
    OK(nc_def_var(ncid, odd == VAR_NAME ? "other" : "f", odd == VAR_TYPE ? NC_FLOAT : NC_INT, 2, d,
                  &v));
    if (odd != VAR_MISSING)
        OK(nc_def_var(ncid, "last", NC_INT, 1, d, NULL));
    if (odd == VAR_ORDER)
        OK(nc_def_var(ncid, "s", NC_SHORT, 1, d, &v));
    if (odd != ATT_MISSING)
        OK(nc_put_att_text(ncid, 0, "units", 1, odd == ATT_VALUE ? "m" : "K"));
    if (odd == ATT_TYPE)
        OK(nc_put_att_short(ncid, NC_GLOBAL, "steps", NC_SHORT, 1, &(short){3}));
    else
        OK(nc_put_att_int(ncid, NC_GLOBAL, "steps", NC_INT, 1, &(int){3}));
    if ((mode & NC_NETCDF4) != 0)
        define_more(ncid, odd);
}

/* What every rank gets, whichever rank is odd and whichever call finds it; then all give up. */
static void
differ_in(oddity odd, int odd_rank, int mode, int how)
{
    int ncid = create("esdm:differ", mode);
    define(ncid, mode, rank == odd_rank ? odd : NOTHING);
    if (how == 0) {
        GIVES(nc_enddef(ncid), NC_EINVAL);
        GIVES(nc_sync(ncid), NC_EINVAL); /* nothing gets published later either */
    } else if (how == 1) {
        GIVES(nc_close(ncid), NC_EINVAL);
    } else {
        GIVES(nc_sync(ncid), (mode & NC_NETCDF4) != 0 ? NC_EINVAL : NC_EINDEFINE);
    }
    int rc = nc_abort(ncid); /* commits in data mode, as nc_close() */
    CHECK(rc == NC_NOERR || rc == NC_EINVAL);
    GIVES(nc_open_par("esdm:differ", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid), ENOENT);
}

/* Times and hosts in attributes: rank 0's are kept, as with HDF5 and PnetCDF. */
static void
followed(int mode)
{
    char value[2] = "";
    int ncid = create("esdm:followed", mode);
    define(ncid, mode, rank == 0 ? NOTHING : ATT_VALUE);
    OK(nc_enddef(ncid));
    OK(nc_put_var_int(ncid, 2, (int[10]){0}));
    OK(nc_close(ncid));
    OK(nc_open_par("esdm:followed", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    OK(nc_get_att_text(ncid, 0, "units", value));
    CHECK(value[0] == 'K');
    OK(nc_close(ncid));
}

/* A rank that forgot something adds it, and all go on. */
static void
mended(void)
{
    int ncid = create("esdm:mended", NC_NETCDF4);
    OK(nc_def_dim(ncid, "x", 3, NULL));
    if (rank != size - 1)
        OK(nc_put_att_text(ncid, NC_GLOBAL, "a", 1, "b"));
    GIVES(nc_enddef(ncid), size > 1 ? NC_EINVAL : NC_NOERR);
    if (rank == size - 1)
        OK(nc_put_att_text(ncid, NC_GLOBAL, "a", 1, "b"));
    OK(nc_sync(ncid));
    OK(nc_close(ncid));
    OK(nc_open_par("esdm:mended", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    OK(nc_close(ncid));
}

static void
arguments_differ(void)
{
    int ncid = -1;
    bool last = rank == size - 1;
    GIVES(nc_create_par(last ? "esdm:other" : "esdm:differ", NC_NETCDF4, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &ncid),
          NC_EINVAL);
    GIVES(nc_create_par("esdm:differ", last ? NC_NETCDF4 : 0, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid),
          NC_EINVAL);
    GIVES(nc_open_par("esdm:mended", last ? NC_WRITE : 0, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid),
          NC_EINVAL);
    GIVES(nc_create_par("esdm:bad//name/../x", 0, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid), NC_EINVAL);
}

static void
differ(void)
{
    if (size < 2)
        return;
    for (oddity odd = NOTHING + 1; odd < ODDITIES; odd++) {
        int how = (int) odd % 3;
        differ_in(odd, (int) odd % size, NC_NETCDF4, how);
        if (!needs_netcdf4(odd))
            differ_in(odd, size - 1, (int) odd % 2 == 0 ? NC_64BIT_DATA : 0, how);
    }
    followed(NC_NETCDF4);
    followed(0);
    mended();
    arguments_differ();
}

/* ---- collective calls that one rank gets wrong ---------------------------------------------- */

static int
make_field(const char *path, int mode, int *ret_var, int access)
{
    int d[2];
    int ncid = create(path, mode);
    OK(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    OK(nc_def_dim(ncid, "x", (size_t) size, &d[1]));
    OK(nc_def_var(ncid, "v", NC_INT, 2, d, ret_var));
    OK(nc_enddef(ncid));
    OK(nc_var_par_access(ncid, *ret_var, access));
    return ncid;
}

static void
refused_in(int mode)
{
    int v;
    int ncid = make_field("esdm:refused", mode, &v, NC_COLLECTIVE);
    bool last = rank == size - 1;
    size_t x = (size_t) rank;
    int value = rank;
    OK(nc_put_vara_int(ncid, v, (size_t[]){0, x}, (size_t[]){1, 1}, &value));
    /* Past the fixed dimension, with a stride that is none, as text, without data. */
    int rc =
        nc_put_vara_int(ncid, v, (size_t[]){1, last ? (size_t) size : x}, (size_t[]){1, 1}, &value);
    CHECK(last ? rc == NC_EINVALCOORDS || rc == NC_EEDGE : rc == NC_NOERR);
    rc = nc_put_vara_int(ncid, v, (size_t[]){1, x}, (size_t[]){1, last ? (size_t) size + 1 : 1},
                         &value);
    CHECK(rc == (last ? NC_EEDGE : NC_NOERR));
    rc = nc_put_vars_int(ncid, v, (size_t[]){1, x}, (size_t[]){1, 1},
                         (ptrdiff_t[]){1, last ? 0 : 1}, &value);
    CHECK(rc == (last ? NC_ESTRIDE : NC_NOERR));
    if (last)
        GIVES(nc_put_vara_text(ncid, v, (size_t[]){2, x}, (size_t[]){1, 1}, "t"), NC_ECHAR);
    else
        OK(nc_put_vara_int(ncid, v, (size_t[]){2, x}, (size_t[]){1, 1}, &value));
    rc = nc_get_vara_int(ncid, v, (size_t[]){last ? 9 : 0, x}, (size_t[]){1, 1}, &value);
    CHECK(last ? rc == NC_EINVALCOORDS || rc == NC_EEDGE : rc == NC_NOERR);
    CHECK(value == rank);
    size_t length = 0;
    OK(nc_inq_dimlen(ncid, 0, &length));
    CHECK(length == (size > 1 ? 3 : 1)); /* what was refused makes nothing longer */
    OK(nc_close(ncid));
}

static void
refused(void)
{
    refused_in(NC_NETCDF4);
    refused_in(NC_64BIT_OFFSET);
}

/* ---- sites ---------------------------------------------------------------------------------- */

static void
sites(const char *other)
{
    int ncid = -1;
    if (rank == size - 1 && setenv("ESDM_CONFIG", other, 1) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int rc = nc_create_par("esdm:sites", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid);
    CHECK(rc != NC_NOERR);
    int least = rc;
    int most = rc;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most);
}

/* ---- data that cannot be stored ------------------------------------------------------------- */

enum { ROWS = 256, COLUMNS = 1024 }; /* 1 MiB: goes to a pack at once */
static int field[ROWS][COLUMNS];

/* Not all equal: that would take no pack. */
static int
value_at(size_t t, int i)
{
    return (int) t + 1 + i % 2 * 1000;
}

static int
put_step(int ncid, int varid, size_t t, int rank_of_rows)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        field[i / COLUMNS][i % COLUMNS] = value_at(t, i);
    return nc_put_vara_int(ncid, varid, (size_t[]){t, (size_t) (ROWS * rank_of_rows), 0},
                           (size_t[]){1, ROWS, COLUMNS}, &field[0][0]);
}

static void
check_steps(const char *path, size_t steps)
{
    int ncid = -1;
    size_t length = 0;
    OK(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    OK(nc_inq_dimlen(ncid, 0, &length));
    CHECK(length == steps);
    for (size_t t = 0; t < steps; t++) {
        OK(nc_get_vara_int(ncid, 0, (size_t[]){t, (size_t) (ROWS * rank), 0},
                           (size_t[]){1, ROWS, COLUMNS}, &field[0][0]));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK(field[i / COLUMNS][i % COLUMNS] == value_at(t, i));
    }
    OK(nc_close(ncid));
}

static void
lost(void)
{
    int v;
    bool last = rank == size - 1;
    if (last && setenv("ESDM_FAULTY", "append:2+0:fail:ENOSPC", 1) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int ncid = create_steps("esdm:lost", ROWS, COLUMNS, &v);
    OK(put_step(ncid, v, 0, rank));
    OK(nc_sync(ncid));
    GIVES(put_step(ncid, v, 1, rank), last ? ENOSPC : NC_NOERR);
    GIVES(nc_sync(ncid), ENOSPC);
    GIVES(nc_close(ncid), ENOSPC);
    (void) nc_abort(ncid);
    check_steps("esdm:lost", 1);
}

/* Writes steps until the disk is full: all ranks are told. Returns how many are committed;
 * *ret_mine: how this rank's part of the next one went. */
static size_t
fill(int ncid, int v, int *ret_mine)
{
    size_t committed = 0;
    int rc = NC_NOERR;
    for (size_t t = 0; t < 1000 && rc == NC_NOERR; t++) {
        *ret_mine = put_step(ncid, v, t, rank);
        CHECK(*ret_mine == NC_NOERR || *ret_mine == ENOSPC);
        rc = nc_sync(ncid);
        committed += rc == NC_NOERR;
        int worst = rc;
        MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(worst == rc);
    }
    CHECK(rc == ENOSPC && committed > 0);
    return committed;
}

/* The disk is large enough for some steps; no rank goes on alone, and what was committed stays. */
static void
full(void)
{
    int v;
    int mine;
    int ncid = create_steps("esdm:full", ROWS, COLUMNS, &v);
    size_t committed = fill(ncid, v, &mine);
    CHECK(nc_close(ncid) == ENOSPC);
    (void) nc_abort(ncid);
    check_steps("esdm:full", committed);
    if (rank == 0)
        printf("%zu steps\n", committed);
}

/* Somebody makes room by removing `ballast`: those ranks whose write failed write the same again,
 * and all go on with the same handle. */
static void
room(const char *ballast)
{
    int v;
    int mine;
    int ncid = create_steps("esdm:room", ROWS, COLUMNS, &v);
    size_t committed = fill(ncid, v, &mine);
    int failed = mine != NC_NOERR;
    GIVES(nc_sync(ncid), ENOSPC); /* still */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(unlink(ballast) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (failed)
        OK(put_step(ncid, v, committed, rank));
    else /* writes are collective: it takes part, and writes nothing */
        OK(nc_put_vara_int(ncid, v, (size_t[]){committed, 0, 0}, (size_t[]){0, 0, 0},
                           &field[0][0]));
    OK(nc_sync(ncid));
    OK(put_step(ncid, v, committed + 1, rank));
    OK(nc_close(ncid));
    check_steps("esdm:room", committed + 2);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%zu steps, %d writes were repeated\n", committed + 2, failed);
}

/* ---- ranks that are killed ------------------------------------------------------------------ */

static unsigned long messages_left; /* before this rank is killed; 0: it lives on */

static void
begin_message(void)
{
    if (messages_left > 0 && --messages_left == 0)
        raise(SIGKILL);
}

/* What the core sends comes through here, as through a profiler of MPI. */
int
MPI_Ssend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    begin_message();
    return PMPI_Ssend(data, count, type, to, tag, comm);
}

int
MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status *status)
{
    begin_message();
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}

int
MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    begin_message();
    return PMPI_Bcast(data, count, type, root, comm);
}

int
MPI_Allreduce(const void *data, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    begin_message();
    return PMPI_Allreduce(data, all, count, type, op, comm);
}

static void
steps(size_t count, int victim, unsigned long message)
{
    int v;
    int ncid = create_steps("esdm:killed", ROWS, COLUMNS, &v);
    for (size_t t = 0; t < count; t++) {
        OK(put_step(ncid, v, t, rank));
        messages_left = rank == victim && t == 2 ? message : 0;
        OK(nc_sync(ncid));
        messages_left = 0;
        if (rank == 0) {
            printf("committed %zu\n", t);
            fflush(stdout);
        }
    }
    OK(nc_close(ncid));
}

/* As another job finds it. */
static void
verify(long long at_least)
{
    int ncid = -1;
    size_t length = 0;
    size_t rows = 0;
    int rc = nc_open("esdm:killed", NC_NOWRITE, &ncid);
    if (rc == ENOENT && at_least < 0)
        return;
    OK(rc);
    OK(nc_inq_dimlen(ncid, 0, &length));
    OK(nc_inq_dimlen(ncid, 1, &rows));
    CHECK((long long) length > at_least);
    for (size_t t = 0; t < length; t++) {
        for (size_t y = 0; y < rows; y += ROWS) {
            OK(nc_get_vara_int(ncid, 0, (size_t[]){t, y, 0}, (size_t[]){1, ROWS, COLUMNS},
                               &field[0][0]));
            for (int i = 0; i < ROWS * COLUMNS; i++)
                CHECK(field[i / COLUMNS][i % COLUMNS] == value_at(t, i));
        }
    }
    OK(nc_close(ncid));
}

static void
append(void)
{
    int ncid = -1;
    size_t length = 0;
    int rc = nc_open_par("esdm:killed", NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid);
    if (rc == ENOENT) {
        int v;
        ncid = create_steps("esdm:killed", ROWS, COLUMNS, &v);
    } else {
        OK(rc);
    }
    OK(nc_inq_dimlen(ncid, 0, &length));
    OK(nc_var_par_access(ncid, 0, NC_COLLECTIVE));
    OK(put_step(ncid, 0, length, rank));
    OK(nc_close(ncid));
    check_steps("esdm:killed", length + 1);
}

static void
neighbours(void)
{
    int ncid = -1;
    size_t length = 0;
    int next = (rank + 1) % size;
    OK(nc_open_par("esdm:killed", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    OK(nc_var_par_access(ncid, 0, NC_COLLECTIVE));
    OK(nc_inq_dimlen(ncid, 0, &length));
    CHECK(length > 0);
    int rc = NC_NOERR;
    for (size_t t = 0; t < length; t++) { /* all of them: the others wait in the collective call */
        int code = nc_get_vara_int(ncid, 0, (size_t[]){t, (size_t) (ROWS * next), 0},
                                   (size_t[]){1, ROWS, COLUMNS}, &field[0][0]);
        for (int i = 0; i < ROWS * COLUMNS && code == NC_NOERR; i++)
            CHECK(field[i / COLUMNS][i % COLUMNS] == value_at(t, i));
        rc = rc == NC_NOERR ? code : rc;
    }
    printf("rank %d reads rank %d: %s\n", rank, next, rc == NC_NOERR ? "good" : nc_strerror(rc));
    fflush(stdout);
    OK(nc_close(ncid));
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    checks_start(&argc, &argv);
    if (strcmp(mode, "differ") == 0)
        differ();
    else if (strcmp(mode, "refused") == 0)
        refused();
    else if (strcmp(mode, "sites") == 0 && argc > 2)
        sites(argv[2]);
    else if (strcmp(mode, "lost") == 0)
        lost();
    else if (strcmp(mode, "full") == 0)
        full();
    else if (strcmp(mode, "room") == 0 && argc > 2)
        room(argv[2]);
    else if (strcmp(mode, "steps") == 0 && argc > 2)
        steps(strtoull(argv[2], NULL, 10), -1, 0);
    else if (strcmp(mode, "dies") == 0 && argc > 3)
        steps(6, atoi(argv[2]), strtoul(argv[3], NULL, 10));
    else if (strcmp(mode, "verify") == 0 && argc > 2)
        verify(strtoll(argv[2], NULL, 10));
    else if (strcmp(mode, "append") == 0)
        append();
    else if (strcmp(mode, "neighbours") == 0)
        neighbours();
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
