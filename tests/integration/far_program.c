/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes and reads a field of time steps, with noise in it, for tests of targets that are far away.
 *
 *     far_program write NAME STEPS LAT LON CODEC [CHUNK-STEPS]  each step by itself
 *     far_program series NAME LAT LON [LAT LON]…   all steps of a point, by one read; of others
 *     far_program loop NAME FIRST COUNT STEP [LINES]  a step (its first lines) after the other
 *     far_program sums NAME COUNT                  a step after the other, whose sums alone are
 * compared, in the end far_program steps NAME T…                    these steps, in that order
 *     far_program whole NAME                       by one read
 *     far_program rows NAME FIRST EVERY [FIRST EVERY]…  of the first step, from one on every so
 * many far_program leave NAME COUNT                 as many steps, and ends without a close
 *
 * What is read is compared with what was written. Prints "seconds N" of what it read.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esdm/esdm.h"

static esdm_error error;
static uint64_t shape[3];

static void
must(esdm_status status, const char *what)
{
    if (status == ESDM_OK)
        return;
    fprintf(stderr, "far_program: %s: %s\n", what, error.message);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* Smooth, with noise that no codec makes small. */
static float
value_at(uint64_t t, uint64_t y, uint64_t x)
{
    uint32_t h = (uint32_t) (t * 2654435761u + y * 40503u * 65537u + x * 2246822519u);
    h ^= h >> 15;
    h *= 2654435761u;
    h ^= h >> 13;
    return 250.0F + (float) t + 0.01F * (float) y + (float) (h & 0xffffu) / 8192.0F;
}

static void
write_field(esdm_session *session, char **a, int n)
{
    esdm_container *container = NULL;
    esdm_dimension *dims[3];
    esdm_dataset *tas;
    uint64_t lat = strtoull(a[2], NULL, 10);
    uint64_t lon = strtoull(a[3], NULL, 10);
    float *step = malloc(lat * lon * sizeof *step);
    must(esdm_container_create(session, a[0], ESDM_CREATE_REPLACE, &container, &error), a[0]);
    esdm_group *root = esdm_container_root(container);
    must(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], &error), "time");
    must(esdm_dimension_create(root, "lat", lat, &dims[1], &error), "lat");
    must(esdm_dimension_create(root, "lon", lon, &dims[2], &error), "lon");
    must(esdm_dataset_create(root, "tas", ESDM_TYPE_FLOAT32, 3, dims, &tas, &error), "tas");
    must(esdm_dataset_set_codec(tas, a[4], &error), a[4]);
    if (n > 5) {
        uint64_t chunk[3] = {strtoull(a[5], NULL, 10), lat, lon};
        must(esdm_dataset_set_chunk(tas, chunk, &error), "chunk");
    }
    for (uint64_t t = 0; t < strtoull(a[1], NULL, 10); t++) {
        for (uint64_t y = 0; y < lat; y++)
            for (uint64_t x = 0; x < lon; x++)
                step[y * lon + x] = value_at(t, y, x);
        esdm_dataspace space;
        must(esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0}, (uint64_t[]){1, lat, lon},
                                 &error),
             "space");
        must(esdm_write(tas, &space, ESDM_TYPE_FLOAT32, step, NULL, &error), "write");
    }
    must(esdm_container_close(container, &error), "close");
    free(step);
}

static void
read_box(esdm_dataset *tas, const uint64_t *offset, const uint64_t *size, double *seconds)
{
    esdm_dataspace space;
    float *data = malloc(size[0] * size[1] * size[2] * sizeof *data);
    const float *at = data;
    must(esdm_dataspace_init(&space, 3, offset, size, &error), "space");
    double start = now();
    must(esdm_read(tas, &space, ESDM_TYPE_FLOAT32, data, NULL, &error), "read");
    *seconds += now() - start;
    for (uint64_t t = 0; t < size[0]; t++)
        for (uint64_t y = 0; y < size[1]; y++)
            for (uint64_t x = 0; x < size[2]; x++)
                if (*at++ != value_at(offset[0] + t, offset[1] + y, offset[2] + x)) {
                    fprintf(stderr, "far_program: wrong value at step %llu\n",
                            (unsigned long long) (offset[0] + t));
                    exit(1);
                }
    free(data);
}

/* Rows first, first + every, … of the first step. */
static void
read_rows(esdm_dataset *tas, uint64_t first, uint64_t every, double *seconds)
{
    esdm_dataspace space;
    uint64_t count = (shape[1] - 1 - first) / every + 1;
    float *data = malloc(count * shape[2] * sizeof *data);
    must(esdm_dataspace_init(&space, 3, (uint64_t[]){0, first, 0}, (uint64_t[]){1, count, shape[2]},
                             &error),
         "space");
    must(esdm_dataspace_set_stride(&space, (uint64_t[]){1, every, 1}, &error), "stride");
    double start = now();
    must(esdm_read(tas, &space, ESDM_TYPE_FLOAT32, data, NULL, &error), "read");
    *seconds += now() - start;
    for (uint64_t y = 0; y < count; y++)
        for (uint64_t x = 0; x < shape[2]; x++)
            if (data[y * shape[2] + x] != value_at(0, first + y * every, x)) {
                fprintf(stderr, "far_program: wrong value in row %llu\n",
                        (unsigned long long) (first + y * every));
                exit(1);
            }
    free(data);
}

/* In lanes that a processor adds side by side. */
static double
sum_of(const float *values, uint64_t count)
{
    double lanes[8] = {0};
    for (uint64_t i = 0; i < count; i++)
        lanes[i % 8] += (double) values[i];
    for (int k = 1; k < 8; k++)
        lanes[0] += lanes[k];
    return lanes[0];
}

/* What a program does that reduces each step: nothing else comes between the reads. */
static void
read_sums(esdm_dataset *tas, uint64_t count, double *seconds)
{
    uint64_t elems = shape[1] * shape[2];
    float *data = malloc(elems * sizeof *data);
    double *sums = malloc(count * sizeof *sums);
    esdm_dataspace space;
    double start = now();
    for (uint64_t t = 0; t < count; t++) {
        must(esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0},
                                 (uint64_t[]){1, shape[1], shape[2]}, &error),
             "space");
        must(esdm_read(tas, &space, ESDM_TYPE_FLOAT32, data, NULL, &error), "read");
        sums[t] = sum_of(data, elems);
    }
    *seconds += now() - start;
    for (uint64_t t = 0; t < count; t++) {
        for (uint64_t i = 0; i < elems; i++)
            data[i] = value_at(t, i / shape[2], i % shape[2]);
        if (sums[t] != sum_of(data, elems)) {
            fprintf(stderr, "far_program: wrong sum of step %llu\n", (unsigned long long) t);
            exit(1);
        }
    }
    free(data);
    free(sums);
}

static void
read_field(esdm_dataset *tas, const char *what, char **a, int n)
{
    double seconds = 0;
    if (strcmp(what, "series") == 0 && n >= 2 && n % 2 == 0) {
        for (int i = 0; i < n; i += 2)
            read_box(tas, (uint64_t[]){0, strtoull(a[i], NULL, 10), strtoull(a[i + 1], NULL, 10)},
                     (uint64_t[]){shape[0], 1, 1}, &seconds);
    } else if (strcmp(what, "loop") == 0 && n >= 3) {
        uint64_t first = strtoull(a[0], NULL, 10);
        uint64_t lines = n > 3 ? strtoull(a[3], NULL, 10) : shape[1];
        for (uint64_t i = 0; i < strtoull(a[1], NULL, 10); i++)
            read_box(tas, (uint64_t[]){first + i * strtoull(a[2], NULL, 10), 0, 0},
                     (uint64_t[]){1, lines, shape[2]}, &seconds);
    } else if (strcmp(what, "sums") == 0 && n == 1) {
        read_sums(tas, strtoull(a[0], NULL, 10), &seconds);
    } else if (strcmp(what, "steps") == 0) {
        for (int i = 0; i < n; i++)
            read_box(tas, (uint64_t[]){strtoull(a[i], NULL, 10), 0, 0},
                     (uint64_t[]){1, shape[1], shape[2]}, &seconds);
    } else if (strcmp(what, "leave") == 0 && n == 1) {
        for (uint64_t t = 0; t < strtoull(a[0], NULL, 10); t++)
            read_box(tas, (uint64_t[]){t, 0, 0}, (uint64_t[]){1, shape[1], shape[2]}, &seconds);
        exit(0);
    } else if (strcmp(what, "rows") == 0 && n >= 2 && n % 2 == 0) {
        for (int i = 0; i < n; i += 2)
            read_rows(tas, strtoull(a[i], NULL, 10), strtoull(a[i + 1], NULL, 10), &seconds);
    } else if (strcmp(what, "whole") == 0) {
        read_box(tas, (uint64_t[]){0, 0, 0}, shape, &seconds);
    } else {
        fprintf(stderr, "far_program: wrong arguments\n");
        exit(2);
    }
    printf("seconds %.4f\n", seconds);
}

int
main(int argc, char **argv)
{
    esdm_session *session = NULL;
    esdm_container *container = NULL;
    if (argc < 3)
        return 2;
    must(esdm_session_open(NULL, &session, &error), "session");
    if (strcmp(argv[1], "write") == 0 && argc > 7 - 1) {
        write_field(session, argv + 2, argc - 2);
    } else {
        must(esdm_container_open(session, argv[2], ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                                 &error),
             argv[2]);
        esdm_dataset *tas = esdm_group_dataset_find(esdm_container_root(container), "tas");
        for (uint32_t d = 0; d < 3; d++)
            shape[d] = esdm_dimension_length(esdm_dataset_dimension(tas, d));
        read_field(tas, argv[1], argv + 3, argc - 3);
        must(esdm_container_close(container, &error), "close");
    }
    esdm_session_close(session);
    return 0;
}
