/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* NetCDF files as the target of a copy. */

#include "esdm-cp/netcdf.h"

#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

typedef struct creator {
    cp_end *end;
    bool is_hdf5;
    esdm_error *err;
} creator;

static esdm_status
wrong(const creator *c, int rc, const char *what)
{
    return rc == NC_NOERR ? ESDM_OK : cp_netcdf_error(c->err, rc, c->end->name, what);
}

/* ---- attributes --------------------------------------------------------------------------- */

static esdm_status
put_attributes(const creator *c, int ncid, int varid, const char *owner,
               const GPtrArray *attributes)
{
    for (guint i = 0; i < attributes->len; i++) {
        const cp_attribute *attribute = g_ptr_array_index(attributes, i);
        int rc = nc_put_att(ncid, varid, attribute->name, attribute->type->to_nc, attribute->count,
                            attribute->values);
        if (rc != NC_NOERR) {
            g_autofree char *what =
                g_strdup_printf("cannot write attribute %s:%s", owner, attribute->name);
            return wrong(c, rc, what);
        }
    }
    return ESDM_OK;
}

/* ---- variables ---------------------------------------------------------------------------- */

static int
put_chunking(const cp_dataset *dataset)
{
    int ncid = dataset->to.ncid, varid = dataset->to.varid;
    const char *storage = dataset->storage;
    if (dataset->chunk != NULL && dataset->rank > 0 &&
        (storage == NULL || g_str_equal(storage, "chunked"))) {
        size_t shape[ESDM_MAX_RANK];
        for (uint32_t i = 0; i < dataset->rank; i++) {
            const cp_dimension *dimension = dataset->dimensions[i];
            /* netCDF refuses chunks longer than a limited dimension. */
            shape[i] = dimension->unlimited ? dataset->chunk[i]
                                            : MIN(dataset->chunk[i], dimension->length);
        }
        return nc_def_var_chunking(ncid, varid, NC_CHUNKED, shape);
    }
    if (storage == NULL || g_str_equal(storage, "chunked"))
        return NC_NOERR;
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (dataset->dimensions[i]->unlimited) /* several files as one: netCDF has chunks for it */
            return NC_NOERR;
    }
    return nc_def_var_chunking(ncid, varid,
                               g_str_equal(storage, "compact") ? NC_COMPACT : NC_CONTIGUOUS, NULL);
}

static esdm_status
put_storage(const creator *c, const cp_dataset *dataset)
{
    int ncid = dataset->to.ncid, varid = dataset->to.varid;
    int rc = put_chunking(dataset);
    if (rc == NC_NOERR)
        rc = cp_filters_put(dataset, true, &c->end->left_out);
    if (rc == NC_NOERR && dataset->endian != NULL)
        rc = nc_def_var_endian(
            ncid, varid, g_str_equal(dataset->endian, "big") ? NC_ENDIAN_BIG : NC_ENDIAN_LITTLE);
    if (rc == NC_NOERR && dataset->nofill)
        rc = nc_def_var_fill(ncid, varid, NC_NOFILL, NULL);
    g_autofree char *what = g_strdup_printf("cannot set up variable %s", dataset->path);
    return wrong(c, rc, what);
}

static esdm_status
put_variable(const creator *c, int ncid, cp_dataset *dataset)
{
    int dimids[ESDM_MAX_RANK];
    g_autofree char *what = g_strdup_printf("cannot define variable %s", dataset->path);
    for (uint32_t i = 0; i < dataset->rank; i++)
        dimids[i] = dataset->dimensions[i]->dimid;
    dataset->to.ncid = ncid;
    int rc = nc_def_var(ncid, dataset->name, dataset->type->to_nc, (int) dataset->rank, dimids,
                        &dataset->to.varid);
    if (rc != NC_NOERR)
        return wrong(c, rc, what);
    if (!c->is_hdf5)
        (void) cp_filters_put(dataset, false, &c->end->left_out);
    esdm_status status = c->is_hdf5 ? put_storage(c, dataset) : ESDM_OK;
    if (status == ESDM_OK && dataset->fill != NULL &&
        cp_attribute_find(dataset->attributes, "_FillValue") == NULL) {
        rc = nc_put_att(ncid, dataset->to.varid, "_FillValue", dataset->type->to_nc, 1,
                        dataset->fill);
        status = wrong(c, rc, what);
    }
    if (status != ESDM_OK)
        return status;
    return put_attributes(c, ncid, dataset->to.varid, dataset->path, dataset->attributes);
}

/* ---- groups ------------------------------------------------------------------------------- */

static esdm_status
put_groups(const creator *c, const cp_group *group)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++) {
        cp_group *child = g_ptr_array_index(group->groups, i);
        g_autofree char *what = g_strdup_printf("cannot define group %s", child->path);
        status = wrong(c, nc_def_grp(group->to_nc, child->name, &child->to_nc), what);
        if (status == ESDM_OK)
            status = put_groups(c, child);
    }
    return status;
}

/* Of all groups: those of one may be used in another. */
static esdm_status
put_dimensions(const creator *c, const cp_group *group)
{
    esdm_status status = ESDM_OK;
    int ncid = group->to_nc;
    for (guint i = 0; i < group->dimensions->len && status == ESDM_OK; i++) {
        cp_dimension *dimension = g_ptr_array_index(group->dimensions, i);
        g_autofree char *what = g_strdup_printf("cannot define dimension %s", dimension->name);
        size_t length = dimension->unlimited ? NC_UNLIMITED : dimension->length;
        if (!dimension->unlimited && length == 0)
            return tool_error_set(c->err, ESDM_ENOTSUP,
                                  "%s: NetCDF has no limited dimension of length 0: %s",
                                  c->end->name, dimension->name);
        status = wrong(c, nc_def_dim(ncid, dimension->name, length, &dimension->dimid), what);
    }
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = put_dimensions(c, g_ptr_array_index(group->groups, i));
    return status;
}

static esdm_status
put_contents(const creator *c, const cp_group *group)
{
    esdm_status status = put_attributes(c, group->to_nc, NC_GLOBAL, group->path, group->attributes);
    for (guint i = 0; i < group->datasets->len && status == ESDM_OK; i++)
        status = put_variable(c, group->to_nc, g_ptr_array_index(group->datasets, i));
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = put_contents(c, g_ptr_array_index(group->groups, i));
    return status;
}

static esdm_status
put_all(const creator *c, cp_model *model)
{
    model->root->to_nc = c->end->ncid;
    esdm_status status = put_groups(c, model->root);
    if (status == ESDM_OK)
        status = cp_netcdf_put_types(c->end, model, c->err);
    if (status == ESDM_OK)
        status = put_dimensions(c, model->root);
    return status == ESDM_OK ? put_contents(c, model->root) : status;
}

static int
create_mode(const char *format)
{
    if (g_str_equal(format, "classic"))
        return 0;
    if (g_str_equal(format, "64bit-offset"))
        return NC_64BIT_OFFSET;
    if (g_str_equal(format, "cdf5"))
        return NC_64BIT_DATA;
    if (g_str_equal(format, "netcdf4-classic"))
        return NC_NETCDF4 | NC_CLASSIC_MODEL;
    return NC_NETCDF4;
}

/* The classic formats have no compression: as nccopy does, that makes a netCDF-4 file of them. */
static const char *
format_of(const cp_model *model)
{
    const char *format = cp_wants.format != NULL ? cp_wants.format : model->format;
    if (format == NULL)
        return "netcdf4";
    return cp_filters_asked() && !g_str_has_prefix(format, "netcdf4") ? "netcdf4-classic" : format;
}

esdm_status
cp_netcdf_create(cp_end *end, cp_model *model, esdm_error *err)
{
    const char *format = format_of(model);
    int mode = create_mode(format);
    creator c = {.end = end, .is_hdf5 = (mode & NC_NETCDF4) != 0, .err = err};
    int old = 0;
    int rc = nc_create(end->name, mode | NC_NOCLOBBER, &end->ncid);
    if (rc != NC_NOERR) {
        end->ncid = -1;
        g_autofree char *folder = g_path_get_dirname(end->name);
        if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) /* HDF5 calls it a lack of permission */
            return tool_error_set(err, ESDM_ENOENT, "there is no folder '%s'", folder);
        return cp_netcdf_error(err, rc, end->name, "cannot create");
    }
    /* Every value is written: filling before would be work for nothing. In netCDF-4 files the
     * setting would stay with the variables, so it is left alone there. */
    if (!c.is_hdf5)
        (void) nc_set_fill(end->ncid, NC_NOFILL, &old);
    esdm_status status = cp_filters_choose(end, model, err);
    if (status == ESDM_OK)
        status = put_all(&c, model);
    if (status != ESDM_OK)
        return status;
    return wrong(&c, nc_enddef(end->ncid), "cannot write the header");
}

esdm_status
cp_netcdf_write(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                const void *buffer, esdm_error *err)
{
    size_t start[ESDM_MAX_RANK + 1] = {0}, count[ESDM_MAX_RANK + 1] = {0};
    for (uint32_t i = 0; i < slab->rank; i++) {
        start[i] = slab->offset[i];
        count[i] = slab->size[i];
    }
    int rc = nc_put_vara(dataset->to.ncid, dataset->to.varid, start, count, buffer);
    if (rc == NC_NOERR)
        return ESDM_OK;
    return cp_netcdf_error(err, rc, end->name, dataset->path);
}
