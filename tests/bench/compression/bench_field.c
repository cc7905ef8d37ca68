/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Ratio, speeds and errors of the field codec on the first variable of netCDF files.
 *
 * bench_field [--abs FRACTION_OF_RANGE | --rel BOUND] [--effort fast|balanced|archive]
 *             [--repeat N] FILE…
 *
 * Prints a line per file and the geometric mean of the ratios.
 */

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "field.h"
#include "field_file.h"

typedef struct options {
    double absolute, relative;
    esdm_codec_effort effort;
    int repeat;
} options;

typedef struct variable {
    field_file file;
    field__block block;
} variable;

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void
check(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench_field: %s: %s\n", what, nc_strerror(status));
    exit(1);
}

static void
load(const char *path, variable *v)
{
    check(field_file_load(path, &v->file), path);
    v->block = (field__block){.type = NC_FLOAT,
                              .rank = v->file.rank,
                              .shape = v->file.shape,
                              .elements = v->file.elements};
}

/* Points that are outside the bound. */
static size_t
violations(const variable *v, const esdm_codec_accuracy *a, const float *again, double *ret_worst)
{
    size_t count = 0;
    double worst = 0;
    for (size_t i = 0; i < v->block.elements; i++) {
        long double x = v->file.values[i];
        long double y = again[i];
        bool special = !(fabsl(x) < FIELD_FILE_HUGE);
        if (a == NULL || special) {
            count += memcmp(&v->file.values[i], &again[i], sizeof(float)) != 0;
            continue;
        }
        long double relative = a->relative < INFINITY ? a->relative * fabsl(x) : INFINITY;
        long double bound = a->absolute < relative ? a->absolute : relative;
        long double error = fabsl(y - x);
        count += !(error <= bound);
        if (bound > 0 && (double) (error / bound) > worst)
            worst = (double) (error / bound);
    }
    *ret_worst = worst;
    return count;
}

static double
run(const char *path, const options *o)
{
    variable v;
    load(path, &v);
    float fill = 9.96921e36f;
    float fills[2] = {fill, -1e10f};
    esdm_codec_accuracy accuracy = {.absolute = o->absolute < INFINITY ? o->absolute * v.file.range
                                                                       : INFINITY,
                                    .relative = o->relative,
                                    .exact_below = -INFINITY,
                                    .exact_above = INFINITY,
                                    .exact_values = fills,
                                    .exact_count = 2,
                                    .sum_bound = INFINITY};
    const esdm_codec_accuracy *a =
        o->absolute < INFINITY || o->relative < INFINITY ? &accuracy : NULL;
    double raw_bytes = (double) v.block.elements * sizeof(float);
    float *again = malloc(v.block.elements * sizeof(float));
    double encode_s = INFINITY;
    double decode_s = INFINITY;
    size_t bytes = 0;
    esdm_error err = {0};
    for (int i = 0; i < o->repeat; i++) {
        esdm__buffer out;
        esdm__buffer_init(&out);
        double t = seconds();
        if (again == NULL ||
            field__encode(&v.block, a, o->effort, v.file.values, &out, &err) != ESDM_OK)
            check(NC_EINVAL, err.message);
        encode_s = fmin(encode_s, seconds() - t);
        memset(again, 0x55, v.block.elements * sizeof(float));
        t = seconds();
        if (field__decode(v.block.type, v.block.elements, out.data, out.bytes, again, &err) !=
            ESDM_OK)
            check(NC_EINVAL, err.message);
        decode_s = fmin(decode_s, seconds() - t);
        bytes = out.bytes;
        esdm__buffer_clear(&out);
    }
    double worst = 0;
    size_t bad = violations(&v, a, again, &worst);
    double ratio = raw_bytes / (double) bytes;
    printf("%-14s %9zu bytes  ratio %8.3f  %6.0f / %6.0f MB/s  worst %.4f  violations %zu\n",
           v.file.name, bytes, ratio, raw_bytes / encode_s / 1e6, raw_bytes / decode_s / 1e6, worst,
           bad);
    field_file_clear(&v.file);
    free(again);
    return ratio;
}

int
main(int argc, char **argv)
{
    static const struct option long_options[] = {{"abs", required_argument, NULL, 'a'},
                                                 {"rel", required_argument, NULL, 'r'},
                                                 {"effort", required_argument, NULL, 'e'},
                                                 {"repeat", required_argument, NULL, 'n'},
                                                 {NULL, 0, NULL, 0}};
    options o = {
        .absolute = INFINITY, .relative = INFINITY, .effort = ESDM_EFFORT_ARCHIVE, .repeat = 3};
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (c == 'a')
            o.absolute = strtod(optarg, NULL);
        else if (c == 'r')
            o.relative = strtod(optarg, NULL);
        else if (c == 'e')
            o.effort = optarg[0] == 'f'   ? ESDM_EFFORT_FAST
                       : optarg[0] == 'b' ? ESDM_EFFORT_BALANCED
                                          : ESDM_EFFORT_ARCHIVE;
        else if (c == 'n')
            o.repeat = atoi(optarg);
        else
            return 2;
    }
    double sum = 0;
    for (int i = optind; i < argc; i++)
        sum += log(run(argv[i], &o));
    if (argc > optind)
        printf("%-14s %15s  ratio %8.3f\n", "mean", "", exp(sum / (argc - optind)));
    return 0;
}
