/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Several ranks on one variable, through libnetcdf: ranks.py starts it. Each rank has a band of the
 * levels of every step, or whole steps. FORMAT: contiguous, chunked, cdf5; "plain" for ESDM. Rank 0
 * prints the time of the slowest rank.
 *
 *     write       steps by collective calls; with create and close
 *     robin       whole steps in turns: one of each rank in a collective call; likewise
 *     block       whole steps, each rank its part of the time; likewise
 *     model       computes `count` ms of processor time before each step, on one thread; with
 *                 create and close. Ranks meet at the steps alone
 *     read        all steps of the band in one call; with open and close
 *     commit      `count` times a small record and nc_sync()
 */

#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

#include "bench.h"

static int rank;
static int ranks;

static void
nc(int rc)
{
    if (rc == NC_NOERR)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, nc_strerror(rc));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Seconds since `began`, of the slowest rank. */
static double
since(double began)
{
    double seconds = MPI_Wtime() - began;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static double
together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static int
create_mode(const bench *b)
{
    return NC_CLOBBER | (strcmp(b->format, "cdf5") == 0 ? NC_64BIT_DATA : NC_NETCDF4);
}

static void
make(const bench *b, size_t steps, size_t levels, size_t together_levels, int *ret_ncid,
     int *ret_var)
{
    const size_t chunk[] = {1, together_levels, LAT, LON};
    int dims[4];
    int old;
    nc(nc_create_par(b->path, create_mode(b), MPI_COMM_WORLD, MPI_INFO_NULL, ret_ncid));
    nc(nc_def_dim(*ret_ncid, "time", steps, &dims[0]));
    nc(nc_def_dim(*ret_ncid, "level", levels, &dims[1]));
    nc(nc_def_dim(*ret_ncid, "lat", LAT, &dims[2]));
    nc(nc_def_dim(*ret_ncid, "lon", LON, &dims[3]));
    nc(nc_def_var(*ret_ncid, "ta", NC_FLOAT, 4, dims, ret_var));
    if (strcmp(b->format, "chunked") == 0)
        nc(nc_def_var_chunking(*ret_ncid, *ret_var, NC_CHUNKED, chunk));
    else if (strcmp(b->format, "contiguous") == 0)
        nc(nc_def_var_chunking(*ret_ncid, *ret_var, NC_CONTIGUOUS, NULL));
    nc(nc_set_fill(*ret_ncid, NC_NOFILL, &old));
    nc(nc_enddef(*ret_ncid));
    nc(nc_var_par_access(*ret_ncid, *ret_var, NC_COLLECTIVE));
}

static double
write_variable(const bench *b)
{
    size_t levels = LEVELS / (size_t) ranks;
    size_t first = levels * (size_t) rank;
    float *step_values = touched(STEP_ELEMS * sizeof *step_values);
    int ncid;
    int var;
    double t = together();
    make(b, b->steps, LEVELS, levels, &ncid, &var);
    double total = since(t);
    for (size_t step = 0; step < b->steps; step++) {
        fill_step(step, step_values);
        t = together();
        nc(nc_put_vara_float(ncid, var, (const size_t[]){step, first, 0, 0},
                             (const size_t[]){1, levels, LAT, LON},
                             step_values + first * LAT * LON));
        total += since(t);
    }
    t = together();
    nc(nc_close(ncid));
    free(step_values);
    return total + since(t);
}

/* @param in_turns ranks have steps that follow each other, else each has a part of all of them. */
static double
write_steps(const bench *b, bool in_turns)
{
    size_t rounds = (b->steps + (size_t) ranks - 1) / (size_t) ranks;
    float *step_values = touched(STEP_ELEMS * sizeof *step_values);
    int ncid;
    int var;
    double t = together();
    make(b, b->steps, LEVELS, LEVELS, &ncid, &var);
    double total = since(t);
    for (size_t round = 0; round < rounds; round++) {
        size_t step =
            in_turns ? round * (size_t) ranks + (size_t) rank : (size_t) rank * rounds + round;
        bool is_one = step < b->steps;
        if (is_one)
            fill_step(step, step_values);
        t = together();
        nc(nc_put_vara_float(ncid, var, (const size_t[]){is_one ? step : 0, 0, 0, 0},
                             (const size_t[]){is_one, is_one * LEVELS, is_one * LAT, is_one * LON},
                             step_values));
        total += since(t);
    }
    t = together();
    nc(nc_close(ncid));
    free(step_values);
    return total + since(t);
}

static double
processor_seconds(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Changes all values of the step as long as it has to, and leaves them as they were. */
static void
compute(const bench *b, size_t step, float *step_values)
{
    double end = processor_seconds() + (double) b->count * 1e-3;
    while (processor_seconds() < end) {
        for (size_t i = 0; i < STEP_ELEMS / 8; i++)
            step_values[i] = step_values[i] * 0.5f + 1.0f;
    }
    fill_step(step, step_values);
}

static double
run_model(const bench *b)
{
    size_t levels = LEVELS / (size_t) ranks;
    size_t first = levels * (size_t) rank;
    float *step_values = touched(STEP_ELEMS * sizeof *step_values);
    int ncid;
    int var;
    double t = together();
    make(b, b->steps, LEVELS, levels, &ncid, &var);
    for (size_t step = 0; step < b->steps; step++) {
        compute(b, step, step_values);
        nc(nc_put_vara_float(ncid, var, (const size_t[]){step, first, 0, 0},
                             (const size_t[]){1, levels, LAT, LON},
                             step_values + first * LAT * LON));
    }
    nc(nc_close(ncid));
    free(step_values);
    return since(t);
}

static double
read_variable(const bench *b)
{
    size_t levels = LEVELS / (size_t) ranks;
    size_t first = levels * (size_t) rank;
    size_t elems = levels * LAT * LON;
    float *values = touched(b->steps * elems * sizeof *values);
    int ncid;
    int var;
    double t = together();
    nc(nc_open_par(b->path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid));
    nc(nc_inq_varid(ncid, "ta", &var));
    nc(nc_var_par_access(ncid, var, NC_COLLECTIVE));
    nc(nc_get_vara_float(ncid, var, (const size_t[]){0, first, 0, 0},
                         (const size_t[]){b->steps, levels, LAT, LON}, values));
    nc(nc_close(ncid));
    double seconds = since(t);
    for (size_t step = 0; step < b->steps; step++)
        for (size_t k = 0; k < elems; k++)
            if (values[step * elems + k] != field_value(step, first * LAT * LON + k))
                fail("netCDF", "wrong data");
    free(values);
    return seconds;
}

static double
commit_records(const bench *b)
{
    float value[1] = {(float) rank};
    int ncid;
    int var;
    make(b, b->count, (size_t) ranks, 1, &ncid, &var);
    double t = together();
    for (size_t i = 0; i < b->count; i++) {
        nc(nc_put_vara_float(ncid, var, (const size_t[]){i, (size_t) rank, 0, 0},
                             (const size_t[]){1, 1, 1, 1}, value));
        nc(nc_sync(ncid));
    }
    double seconds = since(t);
    nc(nc_close(ncid));
    return seconds;
}

int
main(int argc, char **argv)
{
    bench b = parse_arguments(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = 0;
    init_field();
    if (strcmp(b.task, "write") == 0)
        seconds = write_variable(&b);
    else if (strcmp(b.task, "robin") == 0 || strcmp(b.task, "block") == 0)
        seconds = write_steps(&b, b.task[0] == 'r');
    else if (strcmp(b.task, "model") == 0)
        seconds = run_model(&b);
    else if (strcmp(b.task, "read") == 0)
        seconds = read_variable(&b);
    else if (strcmp(b.task, "commit") == 0)
        seconds = commit_records(&b);
    else
        fail(b.task, "no such task");
    if (rank == 0)
        report(&b, seconds);
    MPI_Finalize();
    return 0;
}
