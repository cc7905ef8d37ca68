/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Runs the scenarios of all areas on all ranks:
 *
 *     nc_parallel_LIBRARY FOLDER [AREA [NAME]]
 *
 * FOLDER is for stock netCDF's files; containers go to the site of $ESDM_CONFIG. With
 * NC_COMPARE_RECORD set each rank writes there, with its number behind, what it called;
 * NC_COMPARE_DUMP prints on rank 0 what stock netCDF did (what ESDM did when set to "esdm").
 */

#include "parallel.h"

#include <netcdf_meta.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if NC_HAS_PNETCDF
enum { FORMATS = IN_CDF };
#else
enum { FORMATS = IN_HDF5 };
#endif

/* For a scenario on one side: HDF5 takes long with many ranks on few cores. */
enum { SECONDS_MAX = 450, SECONDS_A_RANK = 90 };

extern const scenario scenarios_par_access[];
extern const scenario scenarios_par_files[];
extern const scenario scenarios_par_settings[];
extern const scenario scenarios_par_types[];
static const scenario *const areas[] = {scenarios_par_access, scenarios_par_files,
                                        scenarios_par_settings, scenarios_par_types};
enum { AREAS = sizeof areas / sizeof areas[0] };

static const char *folder;
static char now[200]; /* what runs, for the alarm */

static void
hangs(int signal_number)
{
    static const char text[] = "\nhangs: ";
    (void) signal_number;
    (void) !write(STDERR_FILENO, text, sizeof text - 1);
    (void) !write(STDERR_FILENO, now, strlen(now));
    (void) !write(STDERR_FILENO, "\n", 1);
    _exit(3);
}

static void
run_in(const scenario *s, const compared_format *f, const char *prefix, journal *log)
{
    char path[400];
    char other[400];
    static int serial;
    serial++;
    snprintf(path, sizeof path, "%s%s_%s_%d.nc", prefix, s->area, f->name, serial);
    snprintf(other, sizeof other, "%sother_%d.nc", prefix, serial);
    snprintf(now, sizeof now, "rank %d in %s [%s], %.80s", my_rank, s->name, f->name, path);
    world w = {.path = path, .other = other, .mode = f->mode, .format = f->format};
    (void) alarm((unsigned) (SECONDS_MAX + SECONDS_A_RANK * rank_count));
    journal_select(log);
    s->run(&w);
    journal_select(NULL);
    meet();
    if (my_rank == 0) {
        (void) nc_delete(path);
        (void) nc_delete(other);
    }
    meet();
    (void) alarm(0);
}

typedef struct job {
    const scenario *scenario;
    const compared_format *format;
    char title[120];
} job;

static void
test_same(void **state)
{
    const job *j = *state;
    char prefix[300];
    journal stock = {0};
    journal esdm = {0};
    snprintf(prefix, sizeof prefix, "%s/", folder);
    run_in(j->scenario, j->format, prefix, &stock);
    run_in(j->scenario, j->format, "esdm://parallel/", &esdm);
    journals_judge(&stock, &esdm, j->scenario->area, j->format->bit, my_rank == 0);
}

enum { JOBS_MAX = 400 };
static struct CMUnitTest tests[JOBS_MAX];
static job jobs[JOBS_MAX];

static size_t
add_jobs(const scenario *s, size_t count)
{
    for (int f = 0; f < FORMAT_COUNT && count < JOBS_MAX; f++) {
        if ((s->formats & FORMATS & compared_formats[f].bit) == 0)
            continue;
        job *j = &jobs[count];
        *j = (job){.scenario = s, .format = &compared_formats[f]};
        snprintf(j->title, sizeof j->title, "%s__%s[%s] on rank %d", s->area, s->name,
                 compared_formats[f].name, my_rank);
        tests[count++] =
            (struct CMUnitTest){.name = j->title, .test_func = test_same, .initial_state = j};
    }
    return count;
}

static size_t
select_jobs(const char *area, const char *name)
{
    size_t count = 0;
    for (size_t a = 0; a < AREAS; a++)
        for (const scenario *s = areas[a]; s->name != NULL; s++)
            if ((area == NULL || strcmp(area, s->area) == 0) &&
                (name == NULL || strcmp(name, s->name) == 0))
                count = add_jobs(s, count);
    return count;
}

/* A file a rank; the report adds them up. */
static int
write_record(const char *area)
{
    char path[500];
    const char *place = getenv("NC_COMPARE_RECORD");
    if (place == NULL)
        return 0;
    snprintf(path, sizeof path, "%s.%d.txt", place, my_rank);
    return setenv("NC_COMPARE_RECORD", path, 1) != 0 || record_write(area) != 0;
}

int
main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    if (argc < 2) {
        fprintf(stderr, "usage: see the top of parallel_main.c\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    folder = argv[1];
    (void) signal(SIGALRM, hangs);
    size_t count = select_jobs(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    if (my_rank != 0 && freopen("/dev/null", "w", stdout) == NULL) /* failures go to stderr */
        MPI_Abort(MPI_COMM_WORLD, 2);
    int failed = count == 0 || count == JOBS_MAX;
    if (!failed)
        failed = _cmocka_run_group_tests("nc_parallel", tests, count, NULL, NULL);
    if (!failed)
        failed = write_record("parallel");
    (void) MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed != 0;
}
