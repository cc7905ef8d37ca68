/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Objects on web servers as the source of a copy: libnetcdf opens a local file that stands for
 * them. Of HDF5 it reads the object through a file driver; of netCDF classic the file has the
 * header, and values are read here. */

#include <stdlib.h>
#include <string.h>

#include "esdm-cp/esdm-cp.h"
#include "refer/refer.h"
#include "refer/remote.h"

typedef struct classic_object {
    remote_object *object; /* borrowed */
    classic_header header;
} classic_object;

static void
close_classic(void *state)
{
    classic_object *c = state;
    free(c->header.variables);
    g_free(c);
}

static bool
read_beginning(void *file, void *data, size_t bytes, size_t *ret_bytes)
{
    *ret_bytes = bytes;
    return remote_read(file, 0, data, bytes);
}

static void
swap_bytes(uint8_t *data, size_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count && size > 1; i++, data += size) {
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t first = data[k];
            data[k] = data[size - 1 - k];
            data[size - 1 - k] = first;
        }
    }
}

/* Runs of bytes that lie together, one after the other. */
static esdm_status
read_classic(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
             esdm_error *err)
{
    classic_object *c = end->state;
    const classic_variable *v = &c->header.variables[dataset->from.varid];
    uint64_t step[ESDM_MAX_RANK] = {0}, at[ESDM_MAX_RANK] = {0}, bytes = dataset->type->bytes;
    uint8_t *to = buffer;
    uint32_t axis = slab->rank; /* from which on all is one run */
    for (uint32_t d = slab->rank; d-- > 0;) {
        step[d] = d == 0 && v->record  ? c->header.record_bytes
                  : d + 1 < slab->rank ? step[d + 1] * slab->shape[d + 1]
                                       : dataset->type->bytes;
    }
    while (axis > 0 && step[axis - 1] == bytes)
        bytes *= slab->size[--axis];
    while (slab->elements > 0) {
        uint64_t position = v->begin;
        for (uint32_t d = 0; d < slab->rank; d++)
            position += (slab->offset[d] + (d < axis ? at[d] : 0)) * step[d];
        if (position > c->object->state.bytes || bytes > c->object->state.bytes - position)
            return tool_error_set(err, ESDM_ECORRUPT,
                                  "'%s': it was cut off: values of %s lie behind its end",
                                  end->name, dataset->path);
        if (!remote_read(c->object, position, to, bytes)) {
            *err = *remote_failure();
            return err->status;
        }
        to += bytes;
        uint32_t d = axis;
        while (d > 0 && ++at[d - 1] == slab->size[d - 1])
            at[--d] = 0;
        if (d == 0)
            break;
    }
    swap_bytes(buffer, dataset->type->bytes, slab->elements);
    return ESDM_OK;
}

static const cp_source_ops classic_ops = {.read = read_classic, .close = close_classic};

static esdm_status
open_classic(cp_end *end, remote_object *object, cp_model **ret_model, esdm_error *err)
{
    uint8_t *head = NULL;
    size_t bytes = 0;
    cp_model *model = NULL;
    classic_object *c = g_new0(classic_object, 1);
    c->object = object;
    esdm_status status =
        classic_read(read_beginning, object, object->state.bytes, &c->header, &head, &bytes)
            ? ESDM_OK
            : tool_error_set(err, ESDM_ECORRUPT,
                             "'%s': no header of netCDF classic that can be "
                             "read",
                             end->name);
    if (status == ESDM_OK)
        status = remote_stand_in(head, bytes, object->state.bytes, &end->path, err);
    free(head);
    if (status == ESDM_OK)
        status = cp_netcdf_open(end, &model, err);
    for (guint i = 0; status == ESDM_OK && i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if ((size_t) dataset->from.varid >= c->header.nvariables)
            status =
                tool_error_set(err, ESDM_ECORRUPT, "'%s': a variable without a header", end->name);
    }
    if (status != ESDM_OK) {
        cp_model_free(model);
        close_classic(c);
        return status;
    }
    end->state = c;
    end->ops = &classic_ops;
    *ret_model = model;
    return ESDM_OK;
}

esdm_status
cp_remote_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    remote_object *object = NULL;
    remote_kind kind = REMOTE_HDF5;
    esdm_status status = remote_kind_of(end->name, &kind, err);
    if (status == ESDM_OK)
        status = remote_open(end->name, &object, err);
    if (status == ESDM_OK && kind == REMOTE_GRIB)
        return cp_grib_open(end, ret_model, err);
    if (status == ESDM_OK && kind == REMOTE_CLASSIC)
        return open_classic(end, object, ret_model, err);
    if (status == ESDM_OK)
        status = remote_path(&end->path, err);
    if (status != ESDM_OK)
        return status;
    hdf5_stand_for(end->path, object);
    return cp_netcdf_open(end, ret_model, err);
}
