/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * What a job's reads and writes of a variable take when its data are cut in another way: they are
 * done again, in a site in a temporary folder. The time of processors is measured; how many
 * requests and bytes the engine asks its target for is counted, and takes what the device takes.
 */

#include "esdm-advise/esdm-advise.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Of a variable: what is more of it is left away. */
#define VARIABLE_BYTES (UINT64_C(64) << 20)
#define ACCESSES_MOST  256u
#define WRITE_BYTES    (UINT64_C(64) << 20) /* in one call, where the job wrote nothing */

typedef struct trial {
    const advise_use *use;
    const advise_device *device;
    char *folder; /* owned */
    char *config; /* owned */
    esdm_session *session;
    esdm_container *container;
    esdm_dataset *dataset;
    uint64_t size[8];
    double cpu_s;
} trial;

/* ---- the site ------------------------------------------------------------------------------- */

static char *
configuration(const trial *t, const advise_layout *layout, const char *mode)
{
    g_autofree char *meta = g_build_filename(t->folder, "meta", NULL);
    g_autofree char *stats = g_build_filename(t->folder, "stats.json", NULL);
    json_t *root =
        json_pack("{s:{s:s}, s:[{s:s, s:s}], s:{s:s, s:s}, s:{s:i, s:s, s:i}, s:[{s:s}], "
                  "s:{s:[s], s:s}}",
                  "site", "name", "esdm-advise", "targets", "name", "disk", "plugin", "mem",
                  "metadata", "plugin", "sqlite", "directory", meta, "engine", "threads", 1,
                  "fragment", layout->fragment, "inline", 0, "policies", "access", layout->access,
                  "monitor", "modules", "stats", "stats_file", stats);
    if (root == NULL)
        return NULL;
    if (mode != NULL)
        tool_json_set(root, "accuracy", json_pack("[{s:s}]", "quantities", mode));
    char *text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

static esdm_status
open_session(trial *t, esdm_error *err)
{
    esdm_session_options options = {.config_json = t->config};
    return esdm_session_open(&options, &t->session, err);
}

static esdm_status
start(trial *t, const advise_layout *layout, const char *mode, esdm_error *err)
{
    g_autoptr(GError) problem = NULL;
    t->folder = g_dir_make_tmp("esdm-advise.XXXXXX", &problem);
    if (t->folder == NULL)
        return tool_error_set(err, ESDM_EIO, "cannot make a temporary folder: %s",
                              problem->message);
    t->config = configuration(t, layout, mode);
    if (t->config == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "out of memory");
    esdm_site_options made = {.config_json = t->config};
    esdm_status st = esdm_site_create(&made, err);
    return st == ESDM_OK ? open_session(t, err) : st;
}

static void
stop(trial *t)
{
    esdm_error ignored;
    esdm_container_discard(t->container);
    esdm_session_close(t->session);
    if (t->config != NULL) {
        esdm_site_options options = {.config_json = t->config, .remove_data = true};
        (void) !esdm_site_remove(&options, &ignored);
        free(t->config);
    }
    if (t->folder != NULL) {
        g_autofree char *stats = g_build_filename(t->folder, "stats.json", NULL);
        (void) g_unlink(stats);
        (void) g_rmdir(t->folder);
    }
    g_free(t->folder);
}

/* ---- what the target was asked for ---------------------------------------------------------- */

/* Ends the session. @param kind "append", "fetch" @param ret_s what calls took, but for requests,
 * which take what the device takes. */
static esdm_status
end_session(trial *t, const char *kind, double *ret_s, esdm_error *err)
{
    double device_s = 0;
    size_t i;
    json_t *span;
    json_error_t problem;
    g_autofree char *stats = g_build_filename(t->folder, "stats.json", NULL);
    esdm_container_discard(t->container);
    t->container = NULL;
    esdm_session_close(t->session);
    t->session = NULL;
    json_t *root = tool_json_load(stats, &problem);
    (void) g_unlink(stats);
    if (root == NULL)
        return tool_error_set(err, ESDM_EIO, "%s: %s", stats, problem.text);
    json_array_foreach(json_object_get(root, "spans"), i, span)
    {
        if (g_strcmp0(json_string_value(json_object_get(span, "kind")), kind) != 0)
            continue;
        double pieces = json_number_value(json_object_get(span, "pieces"));
        double count = json_number_value(json_object_get(span, "count"));
        double bytes = json_number_value(json_object_get(span, "bytes"));
        /* What is written goes to the end of a pack; what is read lies here and there. */
        double requests = g_str_equal(kind, "fetch") ? fmax(pieces, count) : count;
        device_s += requests * t->device->latency_s + bytes / t->device->bytes_per_s;
    }
    json_decref(root);
    *ret_s = t->cpu_s + device_s;
    return ESDM_OK;
}

/* ---- the variable --------------------------------------------------------------------------- */

static esdm_type
type_of(uint32_t bytes)
{
    return bytes == 8   ? ESDM_TYPE_FLOAT64
           : bytes == 4 ? ESDM_TYPE_FLOAT32
           : bytes == 2 ? ESDM_TYPE_INT16
                        : ESDM_TYPE_INT8;
}

/* As long as it may be; the slowest dimensions are shortened first. */
static void
shorten(trial *t)
{
    uint64_t most = VARIABLE_BYTES / t->use->element_bytes;
    for (uint32_t i = t->use->rank; i-- > 0;) {
        t->size[i] = CLAMP(t->use->size[i], 1, MAX(most, 1));
        most /= t->size[i];
    }
}

static esdm_status
make_variable(trial *t, esdm_error *err)
{
    esdm_dimension *dimensions[8];
    esdm_status st =
        esdm_container_create(t->session, "trial", ESDM_CREATE_REPLACE, &t->container, err);
    esdm_group *root = st == ESDM_OK ? esdm_container_root(t->container) : NULL;
    for (uint32_t i = 0; i < t->use->rank && st == ESDM_OK; i++) {
        char name[16];
        (void) g_snprintf(name, sizeof name, "d%u", i);
        st = esdm_dimension_create(root, name, t->size[i], &dimensions[i], err);
    }
    if (st == ESDM_OK)
        st = esdm_dataset_create(root, "v", type_of(t->use->element_bytes), t->use->rank,
                                 dimensions, &t->dataset, err);
    return st;
}

/* The box that an access is about, as far as records tell: rows of the slowest dimension, and whole
 * in the fastest ones as far as its bytes go; where else, differs from one access to the next. */
static bool
box_of(const trial *t, const advise_access *a, guint number, uint64_t *offset, uint64_t *size)
{
    uint32_t rank = t->use->rank;
    uint64_t each = MAX(a->bytes / t->use->element_bytes / MAX(a->rows, 1), 1);
    offset[0] = rank > 0 ? a->row % t->size[0] : 0;
    size[0] = CLAMP(a->rows, 1, t->size[0] - offset[0]);
    if (a->row >= t->size[0] && a->writes)
        return false; /* beyond what is left of it */
    for (uint32_t i = rank; i-- > 1;) {
        size[i] = CLAMP(each, 1, t->size[i]);
        each /= size[i];
        uint64_t places = t->size[i] - size[i] + 1;
        offset[i] = size[i] == t->size[i]
                        ? 0
                        : (uint64_t) (tool_unit(tool_scramble(number * 8 + i)) * (double) places);
    }
    return true;
}

/* Smooth, with noise in the lower half of the bits. */
static void
fill(const trial *t, void *values, uint64_t count, uint64_t first)
{
    uint32_t bytes = t->use->element_bytes;
    for (uint64_t i = 0; i < count; i++) {
        double noise = tool_unit(tool_scramble(first + i)), smooth = sin((double) i * 0.01);
        double x = 280 + 10 * smooth + 0.02 * noise;
        if (bytes == 8)
            ((double *) values)[i] = x;
        else if (bytes == 4)
            ((float *) values)[i] = (float) x;
        else if (bytes == 2)
            ((int16_t *) values)[i] = (int16_t) (1000 * smooth + 8 * noise);
        else
            ((int8_t *) values)[i] = (int8_t) (100 * smooth + 4 * noise);
    }
}

/* Of this process: other programs of the machine do not count. */
static double
processor_s(void)
{
    struct timespec now = {0};
    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* ---- doing it again ------------------------------------------------------------------------- */

static esdm_status
transfer(trial *t, const uint64_t *offset, const uint64_t *size, bool writes, esdm_error *err)
{
    esdm_dataspace space;
    esdm_type type = type_of(t->use->element_bytes);
    esdm_status st = esdm_dataspace_init(&space, t->use->rank, offset, size, err);
    if (st != ESDM_OK)
        return st;
    uint64_t count = esdm_dataspace_elements(&space);
    g_autofree void *values = g_malloc(MAX(count, 1) * t->use->element_bytes);
    if (writes)
        fill(t, values, count, offset[0] * 977);
    double begun = processor_s();
    st = writes ? esdm_write(t->dataset, &space, type, values, NULL, err)
                : esdm_read(t->dataset, &space, type, values, NULL, err);
    t->cpu_s += processor_s() - begun;
    return st;
}

/* All of it, in large pieces: as a copy of a file does. */
static esdm_status
write_all(trial *t, esdm_error *err)
{
    uint64_t offset[8] = {0}, size[8], row = t->use->element_bytes;
    memcpy(size, t->size, sizeof size);
    for (uint32_t i = 1; i < t->use->rank; i++)
        row *= size[i];
    uint64_t step = MAX(WRITE_BYTES / row, 1);
    esdm_status st = ESDM_OK;
    for (; offset[0] < t->size[0] && st == ESDM_OK; offset[0] += step) {
        size[0] = MIN(step, t->size[0] - offset[0]);
        st = transfer(t, offset, size, true, err);
    }
    return st;
}

/* The job's reads or writes of it; many of them are thinned out, but writes, which leave no holes.
 * @param ret_share of the bytes that the job moved. */
static esdm_status
replay(trial *t, bool writes, double *ret_share, esdm_error *err)
{
    uint64_t offset[8] = {0}, size[8] = {1}, moved = 0;
    const GArray *all = t->use->accesses;
    guint count = 0, done = 0;
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < all->len; i++)
        count += g_array_index(all, advise_access, i).writes == writes;
    guint step = writes ? 1 : MAX(count / ACCESSES_MOST, 1);
    for (guint i = 0; i < all->len && st == ESDM_OK; i++) {
        const advise_access *a = &g_array_index(all, advise_access, i);
        if (a->writes != writes || done++ % step != 0 || !box_of(t, a, i, offset, size))
            continue;
        uint64_t bytes = t->use->element_bytes;
        for (uint32_t k = 0; k < t->use->rank; k++)
            bytes *= size[k];
        moved += bytes;
        st = transfer(t, offset, size, writes, err);
    }
    uint64_t wanted = writes ? t->use->written_bytes : t->use->read_bytes;
    *ret_share = moved > 0 ? (double) moved / (double) wanted : 1;
    return st;
}

static esdm_status
write_part(trial *t, double *ret_s, esdm_error *err)
{
    double share = 1;
    esdm_status st = make_variable(t, err);
    t->cpu_s = 0;
    if (st == ESDM_OK)
        st = t->use->written_bytes > 0 ? replay(t, true, &share, err) : write_all(t, err);
    double begun = processor_s();
    if (st == ESDM_OK)
        st = esdm_container_commit(t->container, NULL, err);
    t->cpu_s += processor_s() - begun;
    if (st == ESDM_OK)
        st = end_session(t, "append", ret_s, err);
    /* Where the job only read, nobody waits for what was written. */
    *ret_s = t->use->written_bytes > 0 ? *ret_s / share : 0;
    return st;
}

static esdm_status
read_part(trial *t, double *ret_s, esdm_error *err)
{
    double share = 1;
    *ret_s = 0;
    if (t->use->read_bytes == 0)
        return ESDM_OK;
    esdm_status st = open_session(t, err);
    if (st == ESDM_OK)
        st = esdm_container_open(t->session, "trial", ESDM_OPEN_READ, 0, &t->container, err);
    if (st == ESDM_OK)
        t->dataset = esdm_group_dataset_find(esdm_container_root(t->container), "v");
    t->cpu_s = 0;
    if (st == ESDM_OK)
        st = replay(t, false, &share, err);
    if (st == ESDM_OK)
        st = end_session(t, "fetch", ret_s, err);
    *ret_s /= share;
    return st;
}

esdm_status
advise_try_layout(const advise_use *use, const advise_layout *layout, const char *mode,
                  const advise_device *device, double *ret_s, esdm_error *err)
{
    trial t = {.use = use, .device = device};
    double written_s = 0, read_s = 0;
    shorten(&t);
    esdm_status st = start(&t, layout, mode, err);
    if (st == ESDM_OK)
        st = write_part(&t, &written_s, err);
    if (st == ESDM_OK)
        st = read_part(&t, &read_s, err);
    stop(&t);
    *ret_s = fmax(written_s + read_s, 1e-9);
    return st;
}
