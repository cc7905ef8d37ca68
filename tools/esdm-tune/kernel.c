/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What models do, in short: the I/O of VPIC (particles: eight one-dimensional arrays, written by
 * parts), of VORPAL (three-dimensional fields, written by blocks) and of GCRM (cells times levels,
 * written step by step), after the kernels with which H5Tuner was measured (Behzad et al.,
 * SC 2013). Each reads some of it back as its users do.
 */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PARTICLE_ARRAYS 8u
#define PARTICLE_PARTS  8u
#define BLOCK           64u
#define LEVELS          32u
#define PATTERN         (UINT64_C(1) << 22) /* numbers; codecs do not see further back */

typedef struct kernel {
    const char *name;
    esdm_status (*create)(esdm_container *container, guint64 bytes, esdm_error *err);
    esdm_status (*write)(esdm_container *container, esdm_error *err);
    esdm_status (*read)(esdm_container *container, esdm_error *err);
} kernel;

/* Smooth numbers with noise in the last bits, as fields of models are. They are made before a clock
 * runs. */
static float *pattern;

static void
make_pattern(void)
{
    pattern = g_new(float, PATTERN);
    for (guint64 i = 0; i < PATTERN; i++)
        pattern[i] =
            (float) (280 + 20 * sin((double) i * 1e-3) + 0.01 * tool_unit(tool_scramble(i)));
}

static void
fill(float *values, guint64 count, guint64 seed)
{
    for (guint64 done = 0; done < count;) {
        guint64 from = (seed + done) % PATTERN;
        guint64 n = MIN(PATTERN - from, count - done);
        memcpy(values + done, pattern + from, n * sizeof(float));
        done += n;
    }
}

static esdm_status
transfer(esdm_dataset *dataset, uint32_t rank, const uint64_t *offset, const uint64_t *size,
         bool writes, guint64 seed, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status st = esdm_dataspace_init(&space, rank, offset, size, err);
    if (st != ESDM_OK)
        return st;
    guint64 count = esdm_dataspace_elements(&space);
    g_autofree float *values = g_try_new(float, count);
    if (values == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "no memory for %" G_GUINT64_FORMAT " numbers",
                              count);
    if (writes)
        fill(values, count, seed);
    return writes ? esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, err)
                  : esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, err);
}

static esdm_status
make_dataset(esdm_container *container, const char *name, uint32_t rank, const char *const *names,
             const uint64_t *shape, esdm_error *err)
{
    esdm_dimension *dims[3] = {NULL};
    esdm_dataset *dataset;
    esdm_group *root = esdm_container_root(container);
    esdm_status st = ESDM_OK;
    for (uint32_t i = 0; i < rank && st == ESDM_OK; i++) {
        dims[i] = esdm_group_dimension_find(root, names[i]);
        if (dims[i] == NULL)
            st = esdm_dimension_create(root, names[i], shape[i], &dims[i], err);
    }
    return st == ESDM_OK
               ? esdm_dataset_create(root, name, ESDM_TYPE_FLOAT32, rank, dims, &dataset, err)
               : st;
}

static esdm_dataset *
dataset_of(esdm_container *container, const char *name)
{
    return esdm_group_dataset_find(esdm_container_root(container), name);
}

static guint64
length_of(esdm_container *container, const char *dimension)
{
    return esdm_dimension_length(
        esdm_group_dimension_find(esdm_container_root(container), dimension));
}

/* ---- particles ------------------------------------------------------------------------------ */

static const char *const particle_arrays[PARTICLE_ARRAYS] = {"x",  "y",  "z",      "ux",
                                                             "uy", "uz", "energy", "id"};

static esdm_status
vpic_create(esdm_container *container, guint64 bytes, esdm_error *err)
{
    static const char *const names[] = {"particle"};
    uint64_t n = MAX(bytes / PARTICLE_ARRAYS / sizeof(float), PARTICLE_PARTS);
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < PARTICLE_ARRAYS && st == ESDM_OK; i++)
        st = make_dataset(container, particle_arrays[i], 1, names, &n, err);
    return st;
}

static esdm_status
vpic_transfer(esdm_container *container, guint arrays, bool writes, esdm_error *err)
{
    guint64 n = length_of(container, "particle");
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < arrays; i++) {
        for (guint part = 0; part < PARTICLE_PARTS && st == ESDM_OK; part++) {
            uint64_t offset = n / PARTICLE_PARTS * part;
            uint64_t size = part + 1 < PARTICLE_PARTS ? n / PARTICLE_PARTS : n - offset;
            st = transfer(dataset_of(container, particle_arrays[i]), 1, &offset, &size, writes,
                          offset, err);
        }
    }
    return st;
}

static esdm_status
vpic_write(esdm_container *container, esdm_error *err)
{
    return vpic_transfer(container, PARTICLE_ARRAYS, true, err);
}

/* Positions and energy are looked at. */
static esdm_status
vpic_read(esdm_container *container, esdm_error *err)
{
    return vpic_transfer(container, 3, false, err);
}

/* ---- blocks --------------------------------------------------------------------------------- */

static esdm_status
vorpal_create(esdm_container *container, guint64 bytes, esdm_error *err)
{
    static const char *const names[] = {"z", "y", "x"};
    guint64 blocks = MAX(bytes / (sizeof(float) * BLOCK * BLOCK * BLOCK), 1);
    guint64 side = MAX((guint64) (cbrt((double) blocks) + 1e-9), 1);
    const uint64_t shape[] = {BLOCK * MAX(blocks / (side * side), 1), BLOCK * side, BLOCK * side};
    return make_dataset(container, "field", 3, names, shape, err);
}

static esdm_status
vorpal_write(esdm_container *container, esdm_error *err)
{
    const uint64_t shape[] = {length_of(container, "z"), length_of(container, "y"),
                              length_of(container, "x")};
    const uint64_t size[] = {BLOCK, BLOCK, BLOCK};
    esdm_status st = ESDM_OK;
    for (uint64_t z = 0; z < shape[0]; z += BLOCK) {
        for (uint64_t y = 0; y < shape[1]; y += BLOCK) {
            for (uint64_t x = 0; x < shape[2] && st == ESDM_OK; x += BLOCK) {
                const uint64_t offset[] = {z, y, x};
                st =
                    transfer(dataset_of(container, "field"), 3, offset, size, true, z + y + x, err);
            }
        }
    }
    return st;
}

/* One plane across each axis. */
static esdm_status
vorpal_read(esdm_container *container, esdm_error *err)
{
    static const char *const names[] = {"z", "y", "x"};
    esdm_status st = ESDM_OK;
    for (guint axis = 0; axis < 3 && st == ESDM_OK; axis++) {
        uint64_t offset[3] = {0};
        uint64_t size[3];
        for (guint i = 0; i < 3; i++)
            size[i] = length_of(container, names[i]);
        offset[axis] = size[axis] / 2;
        size[axis] = 1;
        st = transfer(dataset_of(container, "field"), 3, offset, size, false, 0, err);
    }
    return st;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static esdm_status
gcrm_create(esdm_container *container, guint64 bytes, esdm_error *err)
{
    static const char *const names[] = {"time", "cell", "level"};
    guint64 values = MAX(bytes / sizeof(float) / LEVELS, 64);
    guint64 steps = CLAMP(values / 16384, 2, 24);
    const uint64_t shape[] = {steps, values / steps, LEVELS};
    return make_dataset(container, "temperature", 3, names, shape, err);
}

static esdm_status
gcrm_write(esdm_container *container, esdm_error *err)
{
    const uint64_t size[] = {1, length_of(container, "cell"), LEVELS};
    esdm_status st = ESDM_OK;
    for (uint64_t t = 0; t < length_of(container, "time") && st == ESDM_OK; t++) {
        const uint64_t offset[] = {t, 0, 0};
        st = transfer(dataset_of(container, "temperature"), 3, offset, size, true, t * 7919, err);
    }
    return st;
}

/* Every second step, and all steps of an eighth of the cells. */
static esdm_status
gcrm_read(esdm_container *container, esdm_error *err)
{
    uint64_t size[] = {1, length_of(container, "cell"), LEVELS};
    uint64_t offset[3] = {0};
    guint64 steps = length_of(container, "time");
    esdm_status st = ESDM_OK;
    for (uint64_t t = 0; t < steps && st == ESDM_OK; t += 2) {
        offset[0] = t;
        st = transfer(dataset_of(container, "temperature"), 3, offset, size, false, 0, err);
    }
    offset[0] = 0;
    size[0] = steps;
    size[1] = MAX(size[1] / 8, 1);
    return st == ESDM_OK
               ? transfer(dataset_of(container, "temperature"), 3, offset, size, false, 0, err)
               : st;
}

/* ---- running -------------------------------------------------------------------------------- */

static const kernel kernels[] = {{"vpic", vpic_create, vpic_write, vpic_read},
                                 {"vorpal", vorpal_create, vorpal_write, vorpal_read},
                                 {"gcrm", gcrm_create, gcrm_write, gcrm_read}};

static const kernel *
kernel_named(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kernels); i++) {
        if (g_str_equal(kernels[i].name, name))
            return &kernels[i];
    }
    return NULL;
}

bool
kernel_is_known(const char *name)
{
    return kernel_named(name) != NULL;
}

const char *
kernel_names(void)
{
    return "vpic, vorpal, gcrm";
}

static esdm_status
run(esdm_session *session, const kernel *k, const char *name, const char *phase, guint64 bytes,
    double *ret_s, esdm_error *err)
{
    esdm_container *c = NULL;
    gint64 started = g_get_monotonic_time();
    esdm_status st = esdm_container_create(session, name, ESDM_CREATE_REPLACE, &c, err);
    if (st == ESDM_OK)
        st = k->create(c, bytes, err);
    if (st == ESDM_OK)
        st = k->write(c, err);
    if (st == ESDM_OK)
        st = esdm_container_commit(c, NULL, err);
    if (c != NULL && st != ESDM_OK)
        esdm_container_discard(c);
    else if (c != NULL)
        st = esdm_container_close(c, err);
    gint64 written = g_get_monotonic_time();
    if (st != ESDM_OK || g_str_equal(phase, "write")) {
        *ret_s = (double) (written - started) / 1e6;
        return st;
    }
    st = esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &c, err);
    if (st != ESDM_OK)
        return st;
    st = k->read(c, err);
    esdm_container_discard(c);
    gint64 ended = g_get_monotonic_time();
    *ret_s = (double) (ended - (g_str_equal(phase, "read") ? written : started)) / 1e6;
    return st;
}

tool_exit
kernel_run(const char *which, const char *phase, guint64 bytes)
{
    esdm_error err = {0};
    esdm_error unimportant = {0};
    esdm_session *session = NULL;
    double seconds = 0;
    g_autofree char *name = g_strdup_printf("esdm-tune.%d/%s", (int) getpid(), which);
    tool_exit result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    make_pattern();
    esdm_status st = run(session, kernel_named(which), name, phase, bytes, &seconds, &err);
    result = st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
    if (esdm_container_erase(session, name, &unimportant) != ESDM_OK && result == TOOL_OK)
        result = tool_fail(unimportant.status, &unimportant);
    esdm_session_close(session);
    if (result == TOOL_OK)
        (void) printf("{\"seconds\":%.6f}\n", seconds);
    return tool_finish(result);
}
