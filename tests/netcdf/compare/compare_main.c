/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Runs scenarios on both sides, each as a test of its own. */

#include "compare.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
/* HDF5 1.10 does not free all it allocates, nor does netCDF-4 when nc_enddef() or nc_close() fail.
 */
extern __attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
    return "leak:libhdf5\nleak:NC4_\nleak:nc4_\n";
}
#endif

#ifdef __SANITIZE_THREAD__
/* A commit holds the lock of every dataset, and TSan's deadlock detector ends the process at 64. */
extern __attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}
#endif

typedef struct job {
    const scenario *scenario;
    const compared_format *format;
    char *title;
} job;

enum { JOBS_MAX = 2000, FILE_BYTES_MAX = 256 << 20 };
static char folder[200];

static bool has_traps;

void
traps_on(void)
{
    if (has_traps)
        (void) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

void
traps_off(void)
{
    if (has_traps)
        (void) fedisableexcept(FE_ALL_EXCEPT);
}

static void
run_in(const job *j, const char *prefix, journal *log)
{
    char path[400];
    char other[400];
    static int serial;
    serial++;
    snprintf(path, sizeof path, "%s%s_%s_%d.nc", prefix, j->scenario->area, j->format->name,
             serial);
    snprintf(other, sizeof other, "%sother_%d.nc", prefix, serial);
    world w = {.path = path, .other = other, .mode = j->format->mode, .format = j->format->format};
    journal_select(log);
    j->scenario->run(&w);
    journal_select(NULL);
    (void) nc_delete(path);
    (void) nc_delete(other);
}

static void
test_same(void **state)
{
    const job *j = *state;
    char prefix[300];
    journal stock = {0};
    journal esdm = {0};
    snprintf(prefix, sizeof prefix, "%s/", folder);
    run_in(j, prefix, &stock);
    has_traps = getenv("NC_COMPARE_TRAPS") != NULL;
    traps_on();
    run_in(j, "esdm://compare/", &esdm);
    traps_off();
    has_traps = false;
    journals_judge(&stock, &esdm, j->scenario->area, j->format->bit, true);
}

/* A site of its own, in a new folder in /tmp. */
static int
make_site(void **state)
{
    (void) state;
    snprintf(folder, sizeof folder, "/tmp/esdm-compare-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    return setenv("XDG_DATA_HOME", folder, 1) != 0 || setenv("XDG_CONFIG_HOME", folder, 1) != 0 ||
           unsetenv("ESDM_CONFIG") != 0;
}

static int
remove_site(void **state)
{
    (void) state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static size_t
add_jobs(const scenario *s, job *jobs, struct CMUnitTest *tests, size_t count)
{
    for (int f = 0; f < FORMAT_COUNT && count < JOBS_MAX; f++) {
        if ((s->formats & compared_formats[f].bit) == 0)
            continue;
        job *j = &jobs[count];
        *j = (job){.scenario = s, .format = &compared_formats[f]};
        if (asprintf(&j->title, "%s__%s[%s]", s->area, s->name, j->format->name) < 0)
            exit(1);
        tests[count++] =
            (struct CMUnitTest){.name = j->title, .test_func = test_same, .initial_state = j};
    }
    return count;
}

/* Calls at the limits of a format must not fill a disk: stock netCDF writes fill values. */
static void
bound_files(void)
{
    const struct rlimit limit = {.rlim_cur = FILE_BYTES_MAX, .rlim_max = FILE_BYTES_MAX};
    (void) signal(SIGXFSZ, SIG_IGN);
    (void) setrlimit(RLIMIT_FSIZE, &limit);
}

int
compare_main(int argc, char **argv, const scenario *const areas[])
{
    static struct CMUnitTest tests[JOBS_MAX];
    static job jobs[JOBS_MAX];
    const char *area = argc > 1 ? argv[1] : NULL;
    const char *name = argc > 2 ? argv[2] : NULL;
    size_t count = 0;
    if (area != NULL && strcmp(area, "--list") == 0) {
        differences_list();
        return 0;
    }
    for (size_t a = 0; areas[a] != NULL; a++)
        for (const scenario *s = areas[a]; s->name != NULL; s++)
            if ((area == NULL || strcmp(area, s->area) == 0) &&
                (name == NULL || strcmp(name, s->name) == 0))
                count = add_jobs(s, jobs, tests, count);
    if (count == 0 || count >= JOBS_MAX) {
        fprintf(stderr, "%zu scenarios\n", count);
        return 1;
    }
    bound_files();
    int rc = _cmocka_run_group_tests("nc_compare", tests, count, make_site, remove_site);
    for (size_t i = 0; i < count; i++)
        free(jobs[i].title);
    return rc != 0 ? rc : record_write(area == NULL ? "all" : area);
}
