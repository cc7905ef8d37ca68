/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The tasks through ESDM's C API. FORMAT is not used. */

#include <math.h>

#include "bench.h"
#include "esdm/esdm.h"
#include "esdm/statistics.h"

static esdm_error err;
static esdm_session *session;

static void
ok(esdm_status status)
{
    if (status != ESDM_OK)
        fail(esdm_status_string(status), err.message);
}

static esdm_container *
create(const char *path)
{
    esdm_container *container;
    ok(esdm_container_create(session, path, ESDM_CREATE_REPLACE, &container, &err));
    return container;
}

static esdm_dataset *
open_dataset(const char *path, const char *name, esdm_container **container)
{
    ok(esdm_container_open(session, path, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, container, &err));
    return esdm_group_dataset_find(esdm_container_root(*container), name);
}

static void
step_space(size_t first, size_t count, esdm_dataspace *space)
{
    ok(esdm_dataspace_init(space, 4, (uint64_t[]){first, 0, 0, 0},
                           (uint64_t[]){count, LEVELS, LAT, LON}, &err));
}

static void
write_variable(const bench *b)
{
    static const char *const names[] = {"time", "level", "lat", "lon"};
    const uint64_t lengths[] = {b->steps, LEVELS, LAT, LON};
    float *buffer = touched(STEP_ELEMS * sizeof *buffer);
    esdm_dimension *dims[4];
    esdm_dataset *dataset;
    esdm_dataspace space;
    double total = 0;
    double t = now();
    esdm_container *container = create(b->path);
    esdm_group *root = esdm_container_root(container);
    for (int i = 0; i < 4; i++)
        ok(esdm_dimension_create(root, names[i], lengths[i], &dims[i], &err));
    ok(esdm_dataset_create(root, "ta", ESDM_TYPE_FLOAT32, 4, dims, &dataset, &err));
    total += now() - t;
    for (size_t step = 0; step < b->steps; step++) {
        fill_step(step, buffer);
        t = now();
        step_space(step, 1, &space);
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
        total += now() - t;
    }
    t = now();
    ok(esdm_container_close(container, &err));
    report(b, total + now() - t);
    free(buffer);
}

static void
read_variable(const bench *b)
{
    float *buffer = touched(b->steps * STEP_ELEMS * sizeof *buffer);
    esdm_container *container;
    esdm_dataspace space;
    double t = now();
    esdm_dataset *dataset = open_dataset(b->path, "ta", &container);
    step_space(0, b->steps, &space);
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
    ok(esdm_container_close(container, &err));
    report(b, now() - t);
    for (size_t step = 0; step < b->steps; step++)
        verify_step(b, step, buffer + step * STEP_ELEMS);
    free(buffer);
}

static void
read_steps(const bench *b)
{
    float *buffer = touched(STEP_ELEMS * sizeof *buffer);
    esdm_container *container;
    esdm_dataspace space;
    double total = 0;
    double t = now();
    esdm_dataset *dataset = open_dataset(b->path, "ta", &container);
    total += now() - t;
    for (size_t step = 0; step < b->steps; step++) {
        t = now();
        step_space(step, 1, &space);
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
        total += now() - t;
        verify_step(b, step, buffer);
    }
    t = now();
    ok(esdm_container_close(container, &err));
    report(b, total + now() - t);
    free(buffer);
}

/* Adds in the order of the values, in lanes that a processor adds side by side. */
static double
sum_of(const float *values, uint64_t count)
{
    double lanes[8] = {0};
    uint64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++)
            lanes[k] += (double) values[i + k];
    for (; i < count; i++)
        lanes[0] += (double) values[i];
    for (int k = 1; k < 8; k++)
        lanes[0] += lanes[k];
    return lanes[0];
}

static esdm_status
sum_part(const esdm_stream_part *part, void *user, void **ret_result, esdm_error *why)
{
    double *sum = malloc(sizeof *sum);
    (void) user;
    (void) why;
    if (sum == NULL)
        return ESDM_ENOMEM;
    *sum = sum_of(part->values, part->elements);
    *ret_result = sum;
    return ESDM_OK;
}

static esdm_status
add_part(const esdm_stream_part *part, void *result, void *user, esdm_error *why)
{
    (void) part;
    (void) why;
    *(double *) user += *(double *) result;
    free(result);
    return ESDM_OK;
}

/* With FORMAT "parts" by esdm_read_stream(), else of a buffer with all values. */
static void
sum_variable(const bench *b)
{
    bool parts = strcmp(b->format, "parts") == 0;
    float *buffer = parts ? NULL : malloc(b->steps * STEP_ELEMS * sizeof *buffer);
    const esdm_stream stream = {.work = sum_part, .reduce = add_part, .user = &(double){0}};
    esdm_container *container;
    esdm_dataspace space;
    double t = now();
    esdm_dataset *dataset = open_dataset(b->path, "ta", &container);
    if (parts) {
        ok(esdm_read_stream(dataset, NULL, &stream, &err));
    } else {
        step_space(0, b->steps, &space);
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
        *(double *) stream.user = sum_of(buffer, b->steps * STEP_ELEMS);
    }
    ok(esdm_container_close(container, &err));
    report(b, now() - t);
    double wanted = 0;
    buffer = realloc(buffer, STEP_ELEMS * sizeof *buffer);
    for (size_t step = 0; step < b->steps; step++) {
        fill_step(step, buffer);
        wanted += sum_of(buffer, STEP_ELEMS);
    }
    if (fabs(*(double *) stream.user - wanted) > 1e-9 * fabs(wanted))
        fail("sum", "wrong value");
    free(buffer);
}

/* All steps of a point, or of all latitudes at one level and one longitude. */
static void
read_lines(const bench *b, size_t lats)
{
    float *series = touched(b->steps * lats * sizeof *series);
    esdm_container *container;
    esdm_dataspace space;
    double total = 0;
    esdm_dataset *dataset = open_dataset(b->path, "ta", &container);
    for (size_t i = 0; i < POINTS; i++) {
        size_t k = point_index(i);
        size_t lat = lats > 1 ? 0 : k / LON % LAT;
        size_t level = k / (LAT * LON);
        double t = now();
        ok(esdm_dataspace_init(&space, 4, (uint64_t[]){0, level, lat, k % LON},
                               (uint64_t[]){b->steps, 1, lats, 1}, &err));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, series, NULL, &err));
        total += now() - t;
        k = (level * LAT + lat) * LON + k % LON;
        for (size_t at = 0; at < b->steps * lats; at++)
            if (series[at] != field_value(at / lats, k + at % lats * LON))
                fail(b->task, "wrong value");
    }
    ok(esdm_container_close(container, &err));
    report(b, total / POINTS);
    free(series);
}

static void
read_points(const bench *b)
{
    read_lines(b, 1);
}

static void
read_columns(const bench *b)
{
    read_lines(b, LAT);
}

static void
create_small(const bench *b)
{
    char path[4096];
    double value[10] = {0};
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){10}, &err));
    double t = now();
    for (size_t i = 0; i < b->count; i++) {
        esdm_dimension *dim;
        esdm_dataset *dataset;
        snprintf(path, sizeof path, "%s-%zu.nc", b->path, i);
        value[0] = (double) i;
        esdm_container *container = create(path);
        esdm_group *root = esdm_container_root(container);
        ok(esdm_dimension_create(root, "x", 10, &dim, &err));
        ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dim, &dataset, &err));
        ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "units", ESDM_TYPE_CHAR, 1, "K",
                              &err));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, value, NULL, &err));
        ok(esdm_container_close(container, &err));
    }
    report(b, now() - t);
}

static void
open_small(const bench *b)
{
    char path[4096];
    double t = now();
    for (size_t i = 0; i < b->count; i++) {
        esdm_container *container;
        snprintf(path, sizeof path, "%s-%zu.nc", b->path, i);
        if (!open_dataset(path, "v", &container))
            fail(path, "no dataset");
        ok(esdm_container_close(container, &err));
    }
    report(b, now() - t);
}

static void
append_records(const bench *b)
{
    esdm_dimension *time;
    esdm_dataset *dataset;
    esdm_dataspace space;
    double t = now();
    esdm_container *container = create(b->path);
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &time, &err));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &time, &dataset, &err));
    for (uint64_t i = 0; i < b->count; i++) {
        double value = (double) i;
        ok(esdm_dataspace_init(&space, 1, &i, (uint64_t[]){1}, &err));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, &err));
    }
    ok(esdm_container_close(container, &err));
    report(b, now() - t);
}

static void
read_records(const bench *b)
{
    double *values = touched(b->count * sizeof *values);
    esdm_container *container;
    esdm_dataspace space;
    double t = now();
    esdm_dataset *dataset = open_dataset(b->path, "v", &container);
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){b->count}, &err));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &err));
    ok(esdm_container_close(container, &err));
    report(b, now() - t);
    for (size_t i = 0; i < b->count; i++)
        if (values[i] != (double) i)
            fail("record", "wrong value");
    free(values);
}

/* The mean over the slowest axis of the variable "t", of three axes (reductions.py). */
static void
reduce_first(const bench *b)
{
    esdm_container *container;
    esdm_dataspace space;
    double t = now();
    esdm_dataset *dataset = open_dataset(b->path, "t", &container);
    uint64_t shape[3];
    for (uint32_t d = 0; d < 3; d++)
        shape[d] = esdm_dimension_length(esdm_dataset_dimension(dataset, d));
    double *means = malloc(shape[1] * shape[2] * sizeof *means);
    ok(esdm_reduce(dataset, NULL, (bool[]){true, false, false}, ESDM_REDUCE_MEAN, means, NULL,
                   &err));
    report(b, now() - t);
    float *series = malloc(shape[0] * sizeof *series);
    for (uint64_t x = 0; x < shape[2]; x += 7) {
        double sum = 0;
        uint64_t y = x % shape[1];
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, y, x}, (uint64_t[]){shape[0], 1, 1},
                               &err));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, series, NULL, &err));
        for (uint64_t i = 0; i < shape[0]; i++)
            sum += series[i];
        if (fabs(means[y * shape[2] + x] - sum / (double) shape[0]) > 1e-9 * fabs(sum))
            fail("reduce", "wrong value");
    }
    ok(esdm_container_close(container, &err));
    free(series);
    free(means);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const bench *b);
    } tasks[] = {
        {"write", write_variable},  {"read", read_variable},     {"read-steps", read_steps},
        {"point", read_points},     {"create", create_small},    {"open", open_small},
        {"append", append_records}, {"read-back", read_records}, {"sum", sum_variable},
        {"column", read_columns},   {"reduce", reduce_first}};
    bench b = parse_arguments(argc, argv);
    init_field();
    ok(esdm_session_open(NULL, &session, &err));
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (strcmp(tasks[i].name, b.task) == 0) {
            tasks[i].run(&b);
            esdm_session_close(session);
            return 0;
        }
    }
    fail(b.task, "no such task");
}
