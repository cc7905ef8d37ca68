/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nc_fuzz [--seconds S] [--sequences N] [--seed N] [--format F] [--length N] [--show]
 * [--keep-going]
 *
 * Random call sequences on stock netCDF and ESDM, compared. Runs for S seconds, or N sequences.
 * A sequence also ends where stock netCDF alone has an HDF5 error: these are counted.
 * --format: classic, cdf2, cdf5, nc4, nc4classic; all in turn without it. A sequence in which the
 * sides differ, or in which ESDM crashes, is made short and printed as calls; the exit status is 1.
 * --seed N begins with that sequence; with `--sequences 1` it repeats one. --show prints its calls.
 */

#include "../compare.h"

#include "fuzz.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 40, SEQUENCE_SECONDS = 120, FILE_BYTES_MAX = 256 << 20 };

typedef struct options {
    double seconds;
    long sequences;
    uint64_t seed;
    int format; /* index; -1: all */
    int length;
    bool show;
    bool keep_going;
} options;

static char folder[100];

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static const compared_format *
format_of(const options *o, uint64_t seed)
{
    return &compared_formats[o->format >= 0 ? o->format : (int) (seed % FORMAT_COUNT)];
}

/* In a child: sequences one after the other until one fails. */
static void
run_batch(const options *o, uint64_t seed, int count)
{
    /* What stock fills by mistake must not fill the disk. */
    const struct rlimit limit = {FILE_BYTES_MAX, FILE_BYTES_MAX};
    (void) setrlimit(RLIMIT_FSIZE, &limit);
    (void) signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < count; i++) {
        alarm(SEQUENCE_SECONDS); /* stock netCDF goes round in circles at times */
        fuzz_shared->seed = seed + (uint64_t) i;
        fuzz_run(fuzz_shared, format_of(o, fuzz_shared->seed)->format, fuzz_shared->seed, o->length,
                 o->show ? stdout : NULL);
        if (fuzz_shared->verdict != SAME)
            break;
        fuzz_shared->sequences++;
    }
    fflush(stdout);
    _exit(0);
}

static void
print_sequence(const report *r, int format)
{
    static report copy;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SEQUENCE_SECONDS);
        copy = *r;
        setvbuf(stdout, NULL, _IONBF, 0);
        fuzz_run(&copy, format, 0, r->count, stdout);
        _exit(0);
    }
    (void) waitpid(child, NULL, 0);
}

static void
tell(const options *o, int status)
{
    static report r;
    static const char *const what[] = {"same", "the sides differ", "stock netCDF crashed",
                                       "ESDM crashed"};
    r = *fuzz_shared;
    const compared_format *format = format_of(o, r.seed);
    printf("seed %llu, format %s: %s", (unsigned long long) r.seed, format->name, what[r.verdict]);
    if (WIFSIGNALED(status))
        printf(" (signal %d)", WTERMSIG(status));
    printf(" in call %d, %s\n%s", r.at,
           r.kind >= 0 ? fuzz_kind(r.kind)->name : "looking at the file", r.difference);
    fflush(stdout);
    if (r.verdict == CRASHED_STOCK)
        return;
    fuzz_shrink(&r, format->format);
    printf("  shrunk to %d calls:\n", r.count);
    print_sequence(&r, format->format);
    printf("%s\n", fuzz_shared->difference);
    fflush(stdout);
}

static bool
run_children(const options *o)
{
    double end = o->seconds > 0 ? now() + o->seconds : 0;
    uint64_t seed = o->seed;
    long left = o->sequences;
    bool failed = false;
    long crashes = 0;
    while (end > 0 ? now() < end : left > 0) {
        int batch = end > 0 || left > BATCH ? BATCH : (int) left;
        *fuzz_shared = (report){.calls = fuzz_shared->calls,
                                .sequences = fuzz_shared->sequences,
                                .failures = fuzz_shared->failures};
        uint64_t before = fuzz_shared->sequences;
        pid_t child = fork();
        if (child == 0)
            run_batch(o, seed, batch);
        int status = 0;
        (void) waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fuzz_shared->verdict = fuzz_shared->side == ESDM ? CRASHED_ESDM : CRASHED_STOCK;
        uint64_t done = fuzz_shared->sequences - before;
        if (fuzz_shared->verdict != SAME) {
            crashes += fuzz_shared->verdict == CRASHED_STOCK;
            failed |= fuzz_shared->verdict != CRASHED_STOCK;
            tell(o, status);
            done++;
            if (failed && !o->keep_going)
                break;
        }
        seed += done;
        left -= (long) done;
    }
    printf("%llu sequences, %llu calls, stock crashed in %ld and had an HDF5 error in %llu: %s\n",
           (unsigned long long) fuzz_shared->sequences, (unsigned long long) fuzz_shared->calls,
           crashes, (unsigned long long) fuzz_shared->failures,
           failed ? "FAILED" : "no difference");
    return !failed;
}

static bool
make_folder(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/esdm-fuzz-XXXXXX", base);
    return mkdtemp(folder) != NULL && setenv("XDG_DATA_HOME", folder, 1) == 0 &&
           setenv("XDG_CONFIG_HOME", folder, 1) == 0 && unsetenv("ESDM_CONFIG") == 0 &&
           setenv("NC_FUZZ_FOLDER", folder, 1) == 0;
}

static int
parse(int argc, char **argv, options *o)
{
    static const struct option long_options[] = {
        {"seconds", required_argument, NULL, 's'}, {"sequences", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 'r'},    {"format", required_argument, NULL, 'f'},
        {"length", required_argument, NULL, 'l'},  {"show", no_argument, NULL, 'p'},
        {"keep-going", no_argument, NULL, 'k'},    {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (c) {
        case 's':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'n':
            o->sequences = strtol(optarg, NULL, 10);
            break;
        case 'r':
            o->seed = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            for (o->format = FORMAT_COUNT - 1; o->format >= 0; o->format--)
                if (strcmp(compared_formats[o->format].name, optarg) == 0)
                    break;
            break;
        case 'l':
            o->length = (int) strtol(optarg, NULL, 10);
            break;
        case 'p':
            o->show = true;
            break;
        case 'k':
            o->keep_going = true;
            break;
        default:
            return 2;
        }
    }
    return o->length < 1 || o->length > OPS_MAX ? 2 : 0;
}

int
main(int argc, char **argv)
{
    options o = {.sequences = 200, .seed = 1, .format = -1, .length = 80};
    if (parse(argc, argv, &o) != 0) {
        fprintf(stderr, "usage: nc_fuzz [--seconds S] [--sequences N] [--seed N] [--format F] "
                        "[--length N] [--show] [--keep-going]\n");
        return 2;
    }
    fuzz_shared =
        mmap(NULL, sizeof *fuzz_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fuzz_shared == MAP_FAILED || !make_folder()) {
        perror("nc_fuzz");
        return 2;
    }
    bool good = run_children(&o);
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    (void) !system(command);
    return good ? 0 : 1;
}
