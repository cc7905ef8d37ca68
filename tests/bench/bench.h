/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

/**
 * @file
 * What the benchmark programs share: the clock, the field, the tasks, the output.
 *
 * Each program runs one task and prints "TASK SECONDS MIB", the last being the most memory that it
 * had, on standard output; what is not part of the
 * task (allocating, filling buffers, verifying) is not timed. Every value that is read is verified.
 *
 *     write       one float32 variable, steps x 32 x 180 x 360, written step by step; with create
 *                 and close
 *     read        the whole variable in one call; with open and close
 *     read-steps  the same step by step
 *     point       the time series at one point, mean of several points; open before
 *     create      `count` small containers created and closed
 *     open        the same opened and closed
 *     append      `count` scalar records, one call each; with create and close
 *     sum         the sum of the whole variable, from one read or part by part; with open and close
 *     read-back   these records in one call; with open and close
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LEVELS = 32, LAT = 180, LON = 360, STEP_ELEMS = LEVELS * LAT * LON, POINTS = 8 };

typedef struct bench {
    const char *task;
    const char *path;   /* of the large variable, or a prefix */
    const char *format; /* of stock netCDF */
    size_t steps;
    size_t count;
} bench;

static inline double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static inline void
report(const bench *b, double seconds)
{
    struct rusage used;
    (void) getrusage(RUSAGE_SELF, &used);
    printf("%s %.9f %.1f\n", b->task, seconds, (double) used.ru_maxrss / 1024);
}

/** Memory whose pages exist already, and which begins at one: how fast the kernel copies depends on
 *  where source and target begin in theirs (a factor of two on some processors). */
static inline void *
touched(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, bytes) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 1, bytes);
    return memory;
}

static inline void
fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static float base_field[STEP_ELEMS];

/** Temperature of a level, colder towards the poles, with noise in the low bits. */
static inline void
init_field(void)
{
    uint32_t state = 1;
    for (size_t k = 0; k < STEP_ELEMS; k++) {
        size_t level = k / (LAT * LON);
        double lat = ((double) (k / LON % LAT) - 89.5) / 90;
        state = state * 1664525U + 1013904223U;
        base_field[k] = (float) (300 - 60 * lat * lat - 2 * (double) level + (state >> 16) * 1e-4);
    }
}

/** Element `k` at a step. A step adds a whole number of 1/64 so that verifying is exact. */
static inline float
field_value(size_t step, size_t k)
{
    return base_field[k] + (float) (step % 64) * 0.015625F;
}

static inline void
fill_step(size_t step, float *buffer)
{
    for (size_t k = 0; k < STEP_ELEMS; k++)
        buffer[k] = field_value(step, k);
}

static inline bool
is_within(float value, float expected, double tolerance)
{
    double error = (double) value - (double) expected;
    return value == expected || (error <= tolerance && -error <= tolerance);
}

/** The error that FORMAT allows: "esdm_absolute_tolerance=TOLERANCE", else none. */
static inline double
tolerance_of(const bench *b)
{
    static const char name[] = "esdm_absolute_tolerance=";
    return strncmp(b->format, name, sizeof name - 1) == 0 ? atof(b->format + sizeof name - 1) : 0;
}

static inline void
verify_step(const bench *b, size_t step, const float *buffer)
{
    double tolerance = tolerance_of(b);
    for (size_t k = 0; k < STEP_ELEMS; k++)
        if (!is_within(buffer[k], field_value(step, k), tolerance)) {
            fprintf(stderr, "step %zu, element %zu: read %g\n", step, k, (double) buffer[k]);
            exit(1);
        }
}

/** The i-th point whose time series is read. */
static inline size_t
point_index(size_t i)
{
    return (i * 2654435761U + 12345) % STEP_ELEMS;
}

static inline bench
parse_arguments(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s TASK PATH FORMAT STEPS COUNT\n", argv[0]);
        exit(2);
    }
    return (bench){argv[1], argv[2], argv[3], strtoul(argv[4], NULL, 10),
                   strtoul(argv[5], NULL, 10)};
}

#endif
