/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* GRIB files as the source of a copy: variables over valid time, level and points, and containers
 * that refer to the messages. */

#include "refer/grib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-cp/esdm-cp.h"
#include "esdm-cp/grib.h"

/* What a decoded message has where nothing is; cdo's. */
static const float missing = -9e33f;

static void
free_variable(gpointer data)
{
    cp_grib_variable *v = data;
    if (v->cells != NULL)
        g_array_unref(v->cells);
    if (v->levels != NULL)
        g_array_unref(v->levels);
    g_free(v->values);
    g_free(v);
}

static void
free_grib(void *state)
{
    cp_grib *g = state;
    gribs_index_free(g->index);
    if (g->fd >= 0)
        (void) close(g->fd);
    g_ptr_array_unref(g->variables);
    g_free(g->path);
    g_free(g);
}

/* ---- reading -------------------------------------------------------------------------------- */

static const esdm_file_filter decoder = {.codec = "grib"};

static esdm_status
read_message(const cp_grib *g, const gribs_message *m, size_t points, float **ret_values,
             esdm_error *err)
{
    g_autofree uint8_t *stored = g_malloc(m->place.bytes);
    void *raw = NULL;
    size_t raw_bytes = 0;
    for (uint64_t done = 0; done < m->place.bytes;) {
        ssize_t n =
            pread(g->fd, stored + done, m->place.bytes - done, (off_t) (m->place.position + done));
        if (n <= 0)
            return tool_error_set(err, ESDM_EIO, "%s: cannot be read: %s", g->path,
                                  n < 0 ? g_strerror(errno) : "it was cut off");
        done += (uint64_t) n;
    }
    esdm_status status = esdm_file_decode(&decoder, 1, sizeof(float), stored, m->place.bytes,
                                          points * sizeof(float), &raw, &raw_bytes, err);
    *ret_values = raw;
    return status;
}

/* The points of a message that are in the slab. */
static void
take(const cp_slab *slab, uint32_t first, const uint64_t *at, const float *values, float *to)
{
    uint64_t place = 0;
    for (uint32_t d = 0; d < first; d++)
        place = place * slab->size[d] + (at[d] - slab->offset[d]);
    uint32_t last = slab->rank - 1;
    uint64_t rows = first == last ? 1 : slab->size[first];
    to += place * rows * slab->size[last];
    for (uint64_t j = 0; j < rows; j++) {
        uint64_t row = first == last ? 0 : (slab->offset[first] + j) * slab->shape[last];
        memcpy(to + j * slab->size[last], values + row + slab->offset[last],
               slab->size[last] * sizeof *to);
    }
}

static esdm_status
read_variable(const cp_grib *g, const cp_grib_variable *v, const cp_slab *slab, float *to,
              esdm_error *err)
{
    uint32_t first = slab->rank - v->grid->rank;
    size_t points = 1;
    esdm_status status = ESDM_OK;
    for (uint32_t d = 0; d < v->grid->rank; d++)
        points *= v->grid->shape[d];
    for (uint64_t i = 0; i < slab->elements; i++)
        to[i] = missing;
    for (guint i = 0; i < v->cells->len && status == ESDM_OK; i++) {
        const cp_grib_cell *cell = &g_array_index(v->cells, cp_grib_cell, i);
        uint64_t at[2] = {cell->time, cell->level};
        float *values = NULL;
        bool in = true;
        for (uint32_t d = 0; d < first; d++)
            in &= at[d] >= slab->offset[d] && at[d] < slab->offset[d] + slab->size[d];
        if (!in)
            continue;
        status = read_message(g, cell->message, points, &values, err);
        if (status == ESDM_OK)
            take(slab, first, at, values, to);
        free(values);
    }
    return status;
}

static esdm_status
read_values(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
            esdm_error *err)
{
    const cp_grib *g = end->state;
    const cp_grib_variable *v = g_ptr_array_index(g->variables, (guint) dataset->from.varid);
    double *to = buffer;
    if (v->cells != NULL)
        return read_variable(g, v, slab, buffer, err);
    uint32_t last = slab->rank > 0 ? slab->rank - 1 : 0;
    uint64_t rows = slab->rank == 2 ? slab->size[0] : 1;
    uint64_t columns = slab->rank > 0 ? slab->size[last] : 1;
    for (uint64_t j = 0; j < rows; j++) {
        uint64_t from = slab->rank == 2 ? (slab->offset[0] + j) * slab->shape[1] : 0;
        memcpy(to + j * columns, v->values + from + (slab->rank > 0 ? slab->offset[last] : 0),
               columns * sizeof *to);
    }
    return ESDM_OK;
}

/* ---- references ----------------------------------------------------------------------------- */

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

static esdm_status
refer(const cp_end *end, const cp_dataset *dataset, bool *ret_referred, const char **ret_why,
      esdm_error *err)
{
    const cp_grib *g = end->state;
    const cp_grib_variable *v = g_ptr_array_index(g->variables, (guint) dataset->from.varid);
    esdm_file_layout layout = {.location = g->path,
                               .bytes = (uint64_t) g->is.st_size,
                               .modified_ns = nanoseconds(g->is.st_mtim),
                               .changed_ns = nanoseconds(g->is.st_ctim),
                               .inode = (uint64_t) g->is.st_ino,
                               .nfilters = 1,
                               .filters = &decoder};
    *ret_referred = v->cells != NULL;
    *ret_why = "it is made of the heads of the messages";
    if (!*ret_referred)
        return ESDM_OK;
    g_autofree esdm_file_part *parts = g_new0(esdm_file_part, v->cells->len + 1);
    for (guint i = 0; i < v->cells->len; i++) {
        const cp_grib_cell *cell = &g_array_index(v->cells, cp_grib_cell, i);
        uint64_t at[2] = {cell->time, cell->level};
        parts[i] = (esdm_file_part){.position = cell->message->place.position,
                                    .bytes = cell->message->place.bytes,
                                    .checksum_kind = ESDM_FILE_CHECKSUM_XXH3,
                                    .checksum = cell->message->checksum};
        for (uint32_t d = 0; d < dataset->rank; d++) {
            bool point = d + v->grid->rank < dataset->rank;
            parts[i].offset[d] = point ? at[d] : 0;
            parts[i].size[d] = point ? 1 : dataset->dimensions[d]->length;
        }
    }
    return esdm_dataset_refer(dataset->to.dataset, &layout, parts, v->cells->len, err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static const cp_source_ops ops = {.read = read_values, .refer = refer, .close = free_grib};

esdm_status
cp_grib_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    char *path = realpath(end->name, NULL);
    if (path == NULL)
        return tool_error_set(err, ESDM_ENOENT, "%s: %s", end->name, g_strerror(errno));
    cp_grib *g = g_new0(cp_grib, 1);
    g->path = g_strdup(path);
    g->variables = g_ptr_array_new_with_free_func(free_variable);
    g->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(path);
    esdm_status status = ESDM_OK;
    if (g->fd < 0 || fstat(g->fd, &g->is) != 0)
        status = tool_error_set(err, ESDM_EIO, "%s: %s", end->name, g_strerror(errno));
    if (status == ESDM_OK)
        status = gribs_index_new(g->fd, g->path, (uint64_t) g->is.st_size, &g->index, err);
    g_autoptr(cp_model) model = cp_model_new();
    model->format = g_strdup("netcdf4");
    if (status == ESDM_OK)
        status = cp_grib_model(g, model, missing, err);
    if (status != ESDM_OK) {
        free_grib(g);
        return status;
    }
    cp_model_finish(model);
    end->state = g;
    end->ops = &ops;
    *ret_model = g_steal_pointer(&model);
    return ESDM_OK;
}
