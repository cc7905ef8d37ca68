/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Ratio, speeds and errors of the field codec on the first variable of netCDF files.
 *
 * bench_field [--abs FRACTION_OF_RANGE | --rel BOUND] [--effort fast|balanced|archive]
 *             [--block BYTES] [--kernels base|avx2|avx512] [--repeat N] FILE…
 *
 * Blocks of up to --block bytes (1 MiB, as fragments have; 0: the whole variable) are encoded one
 * by one. Prints a line per file and the geometric mean of the ratios.
 */

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "field.h"
#include "field_file.h"
#include "kernels.h"

typedef struct options {
    double absolute, relative;
    esdm_codec_effort effort;
    int repeat;
    size_t block_bytes;
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

/* Elements of the next block from `first` on, and its shape; whole in the fastest axes. */
static size_t
next_block(const variable *v, size_t most, size_t first, uint64_t *shape, field__block *ret)
{
    uint32_t axis = v->block.rank - 1;
    size_t inner = 1;
    while (axis > 0 && inner * v->block.shape[axis] <= most)
        inner *= v->block.shape[axis--];
    size_t length = v->block.shape[axis];
    size_t pieces = (length * inner + most - 1) / most;
    size_t extent = pieces > 0 ? (length + pieces - 1) / pieces : length;
    size_t at = first / inner % length;
    for (uint32_t d = 0; d < v->block.rank; d++)
        shape[d] = d < axis ? 1 : v->block.shape[d];
    shape[axis] = at + extent > length ? length - at : extent;
    *ret = v->block;
    ret->shape = shape;
    ret->elements = inner * shape[axis];
    return ret->elements;
}

/* Encodes and decodes all blocks; adds up their bytes and the times. */
static void
round_trip(const variable *v, const options *o, const esdm_codec_accuracy *a, float *again,
           size_t *ret_bytes, double *ret_encode_s, double *ret_decode_s)
{
    esdm_error err = {0};
    uint64_t shape[NC_MAX_VAR_DIMS];
    field__block block;
    size_t most = o->block_bytes > 0 ? o->block_bytes / sizeof(float) : v->block.elements;
    *ret_bytes = 0;
    *ret_encode_s = *ret_decode_s = 0;
    for (size_t first = 0; first < v->block.elements; first += block.elements) {
        size_t n = next_block(v, most, first, shape, &block);
        esdm__buffer out;
        esdm__buffer_init(&out);
        double t = seconds();
        if (field__encode(&block, a, o->effort, v->file.values + first, &out, &err) != ESDM_OK)
            check(NC_EINVAL, err.message);
        *ret_encode_s += seconds() - t;
        memset(again + first, 0x55, n * sizeof(float));
        t = seconds();
        if (field__decode(block.type, n, out.data, out.bytes, again + first, &err) != ESDM_OK)
            check(NC_EINVAL, err.message);
        *ret_decode_s += seconds() - t;
        *ret_bytes += out.bytes;
        esdm__buffer_clear(&out);
    }
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
    if (again == NULL)
        check(NC_ENOMEM, "decoded values");
    for (int i = 0; i < o->repeat; i++) {
        double encoding, decoding;
        round_trip(&v, o, a, again, &bytes, &encoding, &decoding);
        encode_s = fmin(encode_s, encoding);
        decode_s = fmin(decode_s, decoding);
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

/* Those of another instruction set than the best. */
static void
use_kernels(const char *name)
{
    const field__kernels *kernels;
    for (uint32_t i = 0; (kernels = field__kernels_at(i)) != NULL; i++) {
        if (strcmp(kernels->name, name) == 0) {
            field__kernels_force(kernels);
            return;
        }
    }
    fprintf(stderr, "bench_field: this processor has no '%s'\n", name);
    exit(2);
}

int
main(int argc, char **argv)
{
    static const struct option long_options[] = {{"abs", required_argument, NULL, 'a'},
                                                 {"rel", required_argument, NULL, 'r'},
                                                 {"effort", required_argument, NULL, 'e'},
                                                 {"repeat", required_argument, NULL, 'n'},
                                                 {"block", required_argument, NULL, 'b'},
                                                 {"kernels", required_argument, NULL, 'k'},
                                                 {NULL, 0, NULL, 0}};
    options o = {.absolute = INFINITY,
                 .relative = INFINITY,
                 .effort = ESDM_EFFORT_ARCHIVE,
                 .repeat = 3,
                 .block_bytes = 1 << 20};
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (c == 'a')
            o.absolute = strtod(optarg, NULL);
        else if (c == 'r')
            o.relative = strtod(optarg, NULL);
        else if (c == 'e')
            o.effort = optarg[0] == 'f'   ? ESDM_EFFORT_FAST
                       : optarg[0] == 'b' ? ESDM_EFFORT_BALANCED
                                          : ESDM_EFFORT_ARCHIVE;
        else if (c == 'k')
            use_kernels(optarg);
        else if (c == 'b')
            o.block_bytes = (size_t) strtoull(optarg, NULL, 10);
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
