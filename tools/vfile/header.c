/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The sparse file: structure, attributes and values of varying size, written by libnetcdf. */

#include <netcdf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfile/inner.h"

/* HDF5 tells the place of a chunk by going through those before it. */
#define MOST_CHUNKS     4096u  /* of a dataset */
#define MOST_CHUNKS_ALL 65536u /* about, of a file */
#define FEWEST_CHUNKS   16u
#define SMALL_CHUNK     (64u << 10) /* bytes; smaller ones are joined */
#define USUAL_CHUNK     (4u << 20)
#define LARGEST_CHUNK   (1u << 30) /* HDF5 allows 4 GiB */

/* ---- chunks ------------------------------------------------------------------------------- */

static uint64_t
chunk_bytes(const cp_dataset *d)
{
    uint64_t bytes = d->type->bytes;
    for (uint32_t i = 0; i < d->rank; i++) {
        if (__builtin_mul_overflow(bytes, d->chunk[i], &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

static uint64_t
chunk_count(const cp_dataset *d)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t length = MAX(d->dimensions[i]->length, 1);
        if (__builtin_mul_overflow(count, (length - 1) / d->chunk[i] + 1, &count))
            return UINT64_MAX;
    }
    return count;
}

/* The chunk becomes twice as long along the slowest dimension where that is possible. */
static bool
grow_chunk(cp_dataset *d)
{
    for (uint32_t i = d->rank; i-- > 0;) { /* rows first: a chunk stays as dense as it can */
        uint64_t length = MAX(d->dimensions[i]->length, 1);
        if (d->chunk[i] < length) {
            d->chunk[i] = MIN(d->chunk[i] * 2, length);
            return true;
        }
    }
    return false;
}

static bool
shrink_chunk(cp_dataset *d)
{
    for (uint32_t i = 0; i < d->rank; i++) {
        if (d->chunk[i] > 1) {
            d->chunk[i] = (d->chunk[i] + 1) / 2;
            return true;
        }
    }
    return false;
}

static void
choose_chunk(cp_dataset *d, uint64_t most)
{
    bool stated = d->chunk != NULL, first = true;
    if (!stated)
        d->chunk = g_new0(uint64_t, d->rank);
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t length = MAX(d->dimensions[i]->length, 1);
        if (stated)
            d->chunk[i] = CLAMP(d->chunk[i], 1, length);
        else
            d->chunk[i] = d->dimensions[i]->unlimited && first ? 1 : length;
        first &= !d->dimensions[i]->unlimited;
    }
    while (chunk_bytes(d) > (stated ? LARGEST_CHUNK : USUAL_CHUNK) && shrink_chunk(d))
        ;
    while ((chunk_count(d) > most || chunk_bytes(d) < SMALL_CHUNK) &&
           chunk_bytes(d) <= LARGEST_CHUNK / 2 && grow_chunk(d))
        ;
}

static bool
has_unlimited(const cp_dataset *d)
{
    bool found = false;
    for (uint32_t i = 0; i < d->rank; i++)
        found |= d->dimensions[i]->unlimited;
    return found;
}

/* A file of every kind of storage would be larger and slower: what cannot grow and has no stated
 * chunks lies in one piece. */
static void
prepare_dataset(cp_dataset *d, uint64_t most)
{
    bool in_chunks = has_unlimited(d) || (d->chunk != NULL && d->rank > 0);
    g_clear_pointer(&d->filters, g_free);
    g_clear_pointer(&d->endian, g_free);
    g_free(d->storage);
    d->storage = g_strdup(in_chunks ? "chunked" : "contiguous");
    if (in_chunks)
        choose_chunk(d, most);
    if (d->type->varies && !in_chunks)
        g_clear_pointer(&d->storage, g_free);
}

static const char *
format_name(const esdm_vfile *file)
{
    const char *own = file->model->format;
    switch (file->format) {
    case ESDM_VFILE_CDF1:
        return "classic";
    case ESDM_VFILE_CDF2:
        return "64bit-offset";
    case ESDM_VFILE_CDF5:
        return "cdf5";
    default: /* unsigned types of CDF-5 are none of the classic model in HDF5 files */
        return own == NULL || g_str_equal(own, "netcdf4") || g_str_equal(own, "cdf5")
                   ? "netcdf4"
                   : "netcdf4-classic";
    }
}

void
vf_prepare(esdm_vfile *file)
{
    cp_model *model = file->model;
    uint64_t most = MOST_CHUNKS_ALL / MAX(model->datasets->len, 1);
    most = CLAMP(most, FEWEST_CHUNKS, MOST_CHUNKS);
    for (guint i = 0; i < model->datasets->len; i++)
        prepare_dataset(g_ptr_array_index(model->datasets, i), most);
    char *format = g_strdup(format_name(file));
    g_free(model->format);
    model->format = format;
}

/* ---- values ------------------------------------------------------------------------------- */

/* Texts and arrays lie in the sparse file itself. */
static esdm_status
copy_varying(const esdm_vfile *file, const cp_end *to, const cp_dataset *d, esdm_error *err)
{
    cp_slab slab;
    cp_slab_init(&slab, d);
    if (slab.most_elements == 0)
        return ESDM_OK;
    void *buffer = calloc(slab.most_elements, d->type->bytes);
    if (buffer == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "%s: no memory for values of %s", file->end.name,
                              d->path);
    esdm_status status = ESDM_OK;
    while (status == ESDM_OK && cp_slab_next(&slab)) {
        status = cp_read(&file->end, d, &slab, buffer, err);
        if (status == ESDM_OK)
            status = cp_netcdf_write(to, d, &slab, buffer, err);
        cp_values_clear(d->type, slab.elements, buffer);
        memset(buffer, 0, slab.most_elements * d->type->bytes);
    }
    free(buffer);
    return status;
}

/* The length of the record dimension stands in the header of a classic file; one value in its last
 * record makes it so. The value is read from the container all the same. */
static esdm_status
count_records(const cp_end *to, const cp_model *model, esdm_error *err)
{
    static const char zeros[16];
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *d = g_ptr_array_index(model->datasets, i);
        if (!has_unlimited(d) || d->dimensions[0]->length == 0)
            continue;
        size_t index[ESDM_MAX_RANK] = {d->dimensions[0]->length - 1};
        int rc = nc_put_var1(d->to.ncid, d->to.varid, index, zeros);
        return rc == NC_NOERR ? ESDM_OK : cp_netcdf_error(err, rc, to->name, d->path);
    }
    return ESDM_OK;
}

static esdm_status
fill_in(const esdm_vfile *file, const cp_end *to, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (file->format != ESDM_VFILE_NETCDF4)
        return count_records(to, file->model, err);
    for (guint i = 0; i < file->model->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *d = g_ptr_array_index(file->model->datasets, i);
        if (d->type->varies)
            status = copy_varying(file, to, d, err);
    }
    return status;
}

esdm_status
vf_make(esdm_vfile *file, const char *path, esdm_error *err)
{
    cp_end to = {.name = (char *) path, .ncid = -1};
    vf_interposing = file->format == ESDM_VFILE_NETCDF4;
    esdm_status status = cp_netcdf_create(&to, file->model, err);
    if (status == ESDM_OK)
        status = fill_in(file, &to, err);
    if (status == ESDM_OK)
        status = cp_complete(&to, "", err);
    cp_close(&to);
    vf_interposing = false;
    if (status == ESDM_OK && file->format == ESDM_VFILE_NETCDF4)
        return vf_extend(file, path, err);
    return status;
}
