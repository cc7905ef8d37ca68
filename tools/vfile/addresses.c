/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Where values lie in a sparse netCDF-4 file, as HDF5 tells. */

#include <hdf5.h>
#include <string.h>

#include "vfile/inner.h"

static esdm_status
wrong(const esdm_vfile *file, const char *what, const char *path, esdm_error *err)
{
    return tool_error_set(err, ESDM_EIO, "%s as a file: HDF5 cannot %s %s", file->end.name, what,
                          path);
}

/* netCDF has another name for a variable that is called as a dimension of its group but is not its
 * coordinate variable. */
static hid_t
open_dataset(hid_t h5, const cp_dataset *d)
{
    g_autofree char *folder = g_path_get_dirname(d->path);
    g_autofree char *other = g_strdup_printf("%s/_nc4_non_coord_%s", folder, d->name);
    bool exists = H5Lexists(h5, other, H5P_DEFAULT) > 0;
    return H5Dopen2(h5, exists ? other : d->path, H5P_DEFAULT);
}

static bool
grows(const cp_dataset *d)
{
    bool found = false;
    for (uint32_t i = 0; i < d->rank; i++)
        found |= d->dimensions[i]->unlimited;
    return found;
}

esdm_status
vf_extend(const esdm_vfile *file, const char *path, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    hid_t h5 = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    if (h5 < 0)
        return wrong(file, "open", path, err);
    for (guint i = 0; i < file->model->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *d = g_ptr_array_index(file->model->datasets, i);
        if (d->type->varies || !grows(d))
            continue;
        hsize_t lengths[ESDM_MAX_RANK];
        for (uint32_t k = 0; k < d->rank; k++)
            lengths[k] = d->dimensions[k]->length;
        hid_t ds = open_dataset(h5, d);
        if (ds < 0 || H5Dset_extent(ds, lengths) < 0)
            status = wrong(file, "extend", d->path, err);
        if (ds >= 0)
            (void) H5Dclose(ds);
    }
    if (H5Fclose(h5) < 0 && status == ESDM_OK)
        status = wrong(file, "write", path, err);
    return status;
}

/* ---- chunks ------------------------------------------------------------------------------- */

typedef struct chunks {
    hid_t ds, space;
    uint32_t rank;
    uint64_t bytes; /* of each */
    uint64_t count;
    uint64_t along[ESDM_MAX_RANK]; /* how many there are along the dimensions */
    const uint64_t *shape;
    uint64_t *addresses;
} chunks;

/* The address of a chunk, by its number in C order. */
static bool
ask(const chunks *c, uint64_t index)
{
    hsize_t offset[ESDM_MAX_RANK] = {0}, bytes = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    if (H5Dget_chunk_info(c->ds, c->space, index, offset, &mask, &address, &bytes) < 0 ||
        address == HADDR_UNDEF || bytes != c->bytes)
        return false;
    uint64_t number = 0; /* HDF5 counts them as we do */
    for (uint32_t i = 0; i < c->rank; i++)
        number = number * c->along[i] + offset[i] / c->shape[i];
    c->addresses[index] = address;
    return number == index;
}

/* Chunks between two that are as far apart as their numbers say lie side by side: HDF5 gives them
 * their room in their order. Each question costs as much as there are chunks before. */
static bool
ask_between(const chunks *c, uint64_t low, uint64_t high)
{
    if (high - low < 2)
        return true;
    if (c->addresses[high] - c->addresses[low] == (high - low) * c->bytes) {
        for (uint64_t i = low + 1; i < high; i++)
            c->addresses[i] = c->addresses[low] + (i - low) * c->bytes;
        return true;
    }
    uint64_t middle = low + (high - low) / 2;
    return ask(c, middle) && ask_between(c, low, middle) && ask_between(c, middle, high);
}

static void
add_chunks(esdm_vfile *file, uint32_t index, const chunks *c)
{
    for (uint64_t i = 0; i < c->count; i++) {
        vf_region region = {
            .address = c->addresses[i], .bytes = c->bytes, .number = i, .dataset = index};
        g_array_append_val(file->regions, region);
    }
}

static bool
find_chunks(esdm_vfile *file, uint32_t index, hid_t ds, hid_t plist)
{
    vf_dataset *d = &g_array_index(file->datasets, vf_dataset, index);
    hsize_t shape[ESDM_MAX_RANK], count = 0;
    chunks c = {
        .ds = ds, .space = H5Dget_space(ds), .rank = d->rank, .bytes = d->bytes, .count = 1};
    bool good = c.space >= 0 && H5Pget_chunk(plist, (int) d->rank, shape) == (int) d->rank;
    for (uint32_t i = 0; good && i < d->rank; i++) {
        d->box[i] = shape[i];
        c.bytes *= shape[i];
        c.along[i] = (d->shape[i] + shape[i] - 1) / shape[i];
        c.count *= c.along[i];
    }
    c.shape = d->box;
    good = good && H5Dget_num_chunks(ds, c.space, &count) >= 0 && count == c.count;
    if (good && count > 0) {
        c.addresses = g_new0(uint64_t, count);
        good = ask(&c, 0) && ask(&c, count - 1) && ask_between(&c, 0, count - 1);
        if (good)
            add_chunks(file, index, &c);
        g_free(c.addresses);
    }
    if (c.space >= 0)
        (void) H5Sclose(c.space);
    return good;
}

static bool
find_whole(esdm_vfile *file, uint32_t index, hid_t ds)
{
    const vf_dataset *d = &g_array_index(file->datasets, vf_dataset, index);
    vf_region region = {.address = H5Dget_offset(ds), .bytes = d->bytes, .dataset = index};
    for (uint32_t i = 0; i < d->rank; i++)
        region.bytes *= d->shape[i];
    if (region.bytes == 0)
        return true;
    g_array_append_val(file->regions, region);
    return region.address != HADDR_UNDEF;
}

/* ---- all of them -------------------------------------------------------------------------- */

static esdm_status
find_dataset(esdm_vfile *file, hid_t h5, const cp_dataset *d, esdm_error *err)
{
    uint32_t index = vf_dataset_add(file, d, false);
    hid_t ds = open_dataset(h5, d);
    hid_t plist = ds >= 0 ? H5Dget_create_plist(ds) : -1;
    hid_t type = ds >= 0 ? H5Dget_type(ds) : -1;
    bool good = plist >= 0 && type >= 0 &&
                H5Tget_size(type) == g_array_index(file->datasets, vf_dataset, index).bytes;
    if (good && H5Pget_layout(plist) == H5D_CHUNKED)
        good = find_chunks(file, index, ds, plist);
    else if (good)
        good = H5Pget_layout(plist) == H5D_CONTIGUOUS && find_whole(file, index, ds);
    if (type >= 0)
        (void) H5Tclose(type);
    if (plist >= 0)
        (void) H5Pclose(plist);
    if (ds >= 0)
        (void) H5Dclose(ds);
    return good ? ESDM_OK : wrong(file, "tell the place of values of", d->path, err);
}

static gint
by_address(gconstpointer a, gconstpointer b)
{
    const vf_region *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

esdm_status
vf_addresses(esdm_vfile *file, const char *path, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    (void) H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t h5 = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (h5 < 0)
        return wrong(file, "open", path, err);
    for (guint i = 0; i < file->model->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *d = g_ptr_array_index(file->model->datasets, i);
        if (!d->type->varies)
            status = find_dataset(file, h5, d, err);
    }
    (void) H5Fclose(h5);
    g_array_sort(file->regions, by_address);
    return status;
}
