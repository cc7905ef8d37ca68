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
#include "refer/remote.h"

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
    gribs_file_clear(&g->file);
    if (g->file.fd >= 0)
        (void) close(g->file.fd);
    g_ptr_array_unref(g->variables);
    g_free(g->path);
    g_free(g);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* How the values of a message, or of one of its fields, are found. */
typedef struct decoder {
    esdm_file_filter filters[2];
    uint32_t nfilters;
    uint32_t field;
} decoder;

/* @param d must stay where it is. */
static void
decoder_init(decoder *d, const gribs_message *m)
{
    d->field = m->field;
    d->nfilters = m->fields > 1 ? 2 : 1;
    d->filters[0] = (esdm_file_filter){.codec = "grib"};
    d->filters[1] = (esdm_file_filter){.codec = "grib-field", .nvalues = 1, .values = &d->field};
}

static esdm_status
read_message(cp_grib *g, const gribs_message *m, size_t points, float **ret_values, esdm_error *err)
{
    g_autofree uint8_t *stored = g_malloc(m->place.bytes);
    void *raw = NULL;
    size_t raw_bytes = 0;
    decoder d;
    if (!gribs_file_read(&g->file, m->place.position, stored, m->place.bytes, true)) {
        if (g->file.remote == NULL || remote_failure() == NULL)
            return tool_error_set(err, ESDM_EIO, "%s: cannot be read: %s", g->path,
                                  errno != 0 ? g_strerror(errno) : "it was cut off");
        *err = *remote_failure();
        return err->status;
    }
    decoder_init(&d, m);
    esdm_status status =
        esdm_file_decode(d.filters, d.nfilters, sizeof(float), stored, m->place.bytes,
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
read_variable(cp_grib *g, const cp_grib_variable *v, const cp_slab *slab, float *to,
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
        uint64_t at[CP_GRIB_OUTER];
        float *values = NULL;
        bool in = true;
        cp_grib_indices(v, cell, at);
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
    cp_grib *g = end->state;
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

static esdm_file_part
part_of(const cp_grib *g, const cp_grib_variable *v, const cp_dataset *dataset,
        const cp_grib_cell *cell)
{
    uint64_t at[CP_GRIB_OUTER];
    cp_grib_indices(v, cell, at);
    esdm_file_part part = {.position = cell->message->place.position,
                           .bytes = cell->message->place.bytes,
                           .checksum_kind = g->file.remote == NULL ? ESDM_FILE_CHECKSUM_XXH3
                                                                   : ESDM_FILE_CHECKSUM_NONE,
                           .checksum = cell->message->checksum};
    for (uint32_t d = 0; d < dataset->rank; d++) {
        bool point = d + v->grid->rank < dataset->rank;
        part.offset[d] = point ? at[d] : 0;
        part.size[d] = point ? 1 : dataset->dimensions[d]->length;
    }
    return part;
}

static esdm_file_layout
layout_of(const cp_grib *g)
{
    esdm_file_layout layout = {.location = g->path, .bytes = g->file.bytes};
    if (g->file.remote != NULL) {
        layout.modified_ns = g->file.remote->state.modified_ns;
        layout.identity = g->file.remote->state.identity;
        return layout;
    }
    layout.modified_ns = nanoseconds(g->is.st_mtim);
    layout.changed_ns = nanoseconds(g->is.st_ctim);
    layout.inode = (uint64_t) g->is.st_ino;
    return layout;
}

static bool
is_decoded_alike(const gribs_message *a, const gribs_message *b)
{
    return (a->fields <= 1) == (b->fields <= 1) && a->field == b->field;
}

/* Messages one after the other that are decoded alike are referred to together. */
static esdm_status
refer(const cp_end *end, const cp_dataset *dataset, bool *ret_referred, const char **ret_why,
      esdm_error *err)
{
    const cp_grib *g = end->state;
    const cp_grib_variable *v = g_ptr_array_index(g->variables, (guint) dataset->from.varid);
    esdm_file_layout layout = layout_of(g);
    esdm_status status = ESDM_OK;
    *ret_referred = v->cells != NULL;
    *ret_why = "it is made of the heads of the messages";
    if (!*ret_referred)
        return ESDM_OK;
    g_autofree esdm_file_part *parts = g_new0(esdm_file_part, v->cells->len + 1);
    for (guint i = 0, n = 0; i < v->cells->len && status == ESDM_OK; i += n) {
        const cp_grib_cell *first = &g_array_index(v->cells, cp_grib_cell, i);
        decoder d;
        decoder_init(&d, first->message);
        layout.filters = d.filters;
        layout.nfilters = d.nfilters;
        for (n = 0; i + n < v->cells->len && is_decoded_alike(first->message, first[n].message);
             n++)
            parts[n] = part_of(g, v, dataset, first + n);
        status = esdm_dataset_refer(dataset->to.dataset, &layout, parts, n, err);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static const cp_source_ops ops = {.read = read_values, .refer = refer, .close = free_grib};

static esdm_status
open_file(cp_grib *g, const char *name, esdm_error *err)
{
    char *path = realpath(name, NULL);
    if (path == NULL)
        return tool_error_set(err, ESDM_ENOENT, "%s: %s", name, g_strerror(errno));
    g->path = g_strdup(path);
    g->file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(path);
    if (g->file.fd < 0 || fstat(g->file.fd, &g->is) != 0)
        return tool_error_set(err, ESDM_EIO, "%s: %s", name, g_strerror(errno));
    g->file.bytes = (uint64_t) g->is.st_size;
    return ESDM_OK;
}

static esdm_status
open_object(cp_grib *g, const char *url, esdm_error *err)
{
    esdm_status status = remote_open(url, &g->file.remote, err);
    g->path = g_strdup(url);
    if (status == ESDM_OK)
        g->file.bytes = g->file.remote->state.bytes;
    return status;
}

esdm_status
cp_grib_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    cp_grib *g = g_new0(cp_grib, 1);
    g->file.fd = -1;
    g->variables = g_ptr_array_new_with_free_func(free_variable);
    esdm_status status = esdm_location_is_remote(end->name) ? open_object(g, end->name, err)
                                                            : open_file(g, end->name, err);
    g->file.path = g->path;
    if (status == ESDM_OK)
        status = gribs_index_new(&g->file, &g->index, err);
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
