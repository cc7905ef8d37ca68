/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* NetCDF files as the source of a copy. */

#include "esdm-cp/netcdf.h"

#include <errno.h>
#include <netcdf.h>
#include <netcdf_filter.h>
#include <stdlib.h>
#include <string.h>

esdm_status
cp_netcdf_error(esdm_error *err, int rc, const char *name, const char *what)
{
    esdm_status status = ESDM_EIO;
    if (rc == ENOENT)
        status = ESDM_ENOENT;
    else if (rc == EACCES || rc == EPERM || rc == EROFS || rc == NC_EPERM)
        status = ESDM_EACCES;
    else if (rc == ENOSPC || rc == EDQUOT)
        status = ESDM_ENOSPC;
    else if (rc == ENOMEM || rc == NC_ENOMEM)
        status = ESDM_ENOMEM;
    else if (rc < 0 && (rc > NC_EHDFERR || rc < NC_ECANTCREATE))
        status = ESDM_EINVAL;
    return tool_error_set(err, status, "%s: %s: %s", name, what, nc_strerror(rc));
}

typedef struct loader {
    const cp_end *end;
    cp_model *model;
    GHashTable *dimensions; /* dimid → cp_dimension */
    GHashTable *types;      /* nc_type → cp_type */
    bool is_hdf5;
    esdm_error *err;
} loader;

static esdm_status
wrong(loader *l, int rc, const char *what)
{
    return cp_netcdf_error(l->err, rc, l->end->name, what);
}

/* ---- attributes --------------------------------------------------------------------------- */

static esdm_status
load_values(loader *l, int ncid, int varid, const char *name, const cp_type *type, size_t count,
            void **ret_values)
{
    void *values = g_malloc0(MAX(count * type->bytes, 1));
    int rc = nc_get_att(ncid, varid, name, values);
    if (rc != NC_NOERR) {
        g_free(values);
        return wrong(l, rc, name);
    }
    *ret_values = values;
    return ESDM_OK;
}

static esdm_status
load_attributes(loader *l, int ncid, int varid, const char *owner, GPtrArray *attributes)
{
    int count = 0;
    int rc = nc_inq_varnatts(ncid, varid, &count);
    for (int i = 0; i < count && rc == NC_NOERR; i++) {
        char name[NC_MAX_NAME + 1];
        nc_type type = NC_NAT;
        size_t length = 0;
        if ((rc = nc_inq_attname(ncid, varid, i, name)) != NC_NOERR ||
            (rc = nc_inq_att(ncid, varid, name, &type, &length)) != NC_NOERR)
            break;
        const cp_type *of = cp_netcdf_type(l->types, type);
        if (of == NULL)
            return wrong(l, NC_EBADTYPE, name);
        void *values = NULL;
        esdm_status status = load_values(l, ncid, varid, name, of, length, &values);
        if (status != ESDM_OK)
            return status;
        cp_attribute_add(attributes, name, of, length, values);
    }
    return rc == NC_NOERR ? ESDM_OK
                          : wrong(l, rc, owner[0] != '\0' ? owner : "the file's own attributes");
}

/* ---- variables ---------------------------------------------------------------------------- */

/* "2;1,5": shuffle, then deflate with level 5. */
static char *
filters_text(int ncid, int varid)
{
    size_t count = 0;
    if (nc_inq_var_filter_ids(ncid, varid, &count, NULL) != NC_NOERR || count == 0)
        return NULL;
    g_autofree unsigned *ids = g_new0(unsigned, count);
    g_autoptr(GString) text = g_string_new(NULL);
    if (nc_inq_var_filter_ids(ncid, varid, &count, ids) != NC_NOERR)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t parameters = 0;
        if (nc_inq_var_filter_info(ncid, varid, ids[i], &parameters, NULL) != NC_NOERR)
            continue;
        g_autofree unsigned *values = g_new0(unsigned, parameters + 1);
        (void) nc_inq_var_filter_info(ncid, varid, ids[i], &parameters, values);
        g_string_append_printf(text, "%s%u", text->len > 0 ? ";" : "", ids[i]);
        for (size_t j = 0; j < parameters; j++)
            g_string_append_printf(text, ",%u", values[j]);
    }
    return text->len > 0 ? g_strdup(text->str) : NULL;
}

static int
load_chunking(int ncid, int varid, cp_dataset *dataset)
{
    size_t shape[ESDM_MAX_RANK] = {0};
    int storage = NC_CONTIGUOUS;
    int rc = nc_inq_var_chunking(ncid, varid, &storage, shape);
    if (rc != NC_NOERR)
        return rc;
    if (storage == NC_CHUNKED && dataset->rank > 0) {
        dataset->chunk = g_new0(uint64_t, dataset->rank);
        for (uint32_t i = 0; i < dataset->rank; i++)
            dataset->chunk[i] = MAX(shape[i], 1);
    }
    dataset->storage = g_strdup(storage == NC_CHUNKED   ? "chunked"
                                : storage == NC_COMPACT ? "compact"
                                                        : "contiguous");
    return NC_NOERR;
}

/* What only netCDF-4 files on HDF5 have. */
static esdm_status
load_storage(loader *l, int ncid, int varid, cp_dataset *dataset)
{
    int endian = NC_ENDIAN_NATIVE, nofill = 0;
    int rc = load_chunking(ncid, varid, dataset);
    if (rc != NC_NOERR || (rc = nc_inq_var_endian(ncid, varid, &endian)) != NC_NOERR ||
        (rc = nc_inq_var_fill(ncid, varid, &nofill, NULL)) != NC_NOERR)
        return wrong(l, rc, dataset->path);
    dataset->nofill = nofill != 0;
    dataset->filters = filters_text(ncid, varid);
    esdm_type atomic = dataset->type->atomic;
    bool has_order =
        atomic != ESDM_TYPE_NONE && atomic != ESDM_TYPE_CHAR && atomic != ESDM_TYPE_STRING;
    if (has_order && endian != NC_ENDIAN_NATIVE)
        dataset->endian = g_strdup(endian == NC_ENDIAN_BIG ? "big" : "little");
    return ESDM_OK;
}

static void
load_fill(cp_dataset *dataset)
{
    const cp_attribute *fill = cp_attribute_find(dataset->attributes, "_FillValue");
    if (fill != NULL && fill->type == dataset->type && fill->count == 1)
        dataset->fill = cp_values_copy(fill->type, 1, fill->values);
}

static esdm_status
load_variable(loader *l, int ncid, int varid, cp_group *group)
{
    char name[NC_MAX_NAME + 1];
    nc_type type = NC_NAT;
    int rank = 0, dimids[NC_MAX_VAR_DIMS];
    int rc = nc_inq_var(ncid, varid, name, &type, &rank, dimids, NULL);
    if (rc != NC_NOERR)
        return wrong(l, rc, "cannot read a variable");
    const cp_type *of = cp_netcdf_type(l->types, type);
    if (of == NULL)
        return wrong(l, NC_EBADTYPE, name);
    if (rank > ESDM_MAX_RANK)
        return tool_error_set(l->err, ESDM_ENOTSUP,
                              "%s: variable %s/%s has %d dimensions; ESDM allows %d", l->end->name,
                              group->path, name, rank, ESDM_MAX_RANK);
    cp_dataset *dataset = cp_dataset_add(l->model, group, name, of);
    dataset->from = (cp_place){.ncid = ncid, .varid = varid};
    dataset->rank = (uint32_t) rank;
    for (int i = 0; i < rank; i++) {
        dataset->dimensions[i] = g_hash_table_lookup(l->dimensions, GINT_TO_POINTER(dimids[i]));
        if (dataset->dimensions[i] == NULL)
            return wrong(l, NC_EBADDIM, dataset->path);
    }
    esdm_status status = load_attributes(l, ncid, varid, dataset->path, dataset->attributes);
    if (status == ESDM_OK && l->is_hdf5)
        status = load_storage(l, ncid, varid, dataset);
    load_fill(dataset);
    return status;
}

/* ---- groups ------------------------------------------------------------------------------- */

static int
compare_ints(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static esdm_status
load_dimensions(loader *l, int ncid, cp_group *group)
{
    int count = 0, unlimited_count = 0;
    int rc = nc_inq_dimids(ncid, &count, NULL, 0);
    if (rc == NC_NOERR)
        rc = nc_inq_unlimdims(ncid, &unlimited_count, NULL);
    if (rc != NC_NOERR)
        return wrong(l, rc, "cannot read dimensions");
    g_autofree int *ids = g_new0(int, (gsize) count + 1);
    g_autofree int *unlimited = g_new0(int, (gsize) unlimited_count + 1);
    if ((rc = nc_inq_dimids(ncid, &count, ids, 0)) != NC_NOERR ||
        (rc = nc_inq_unlimdims(ncid, &unlimited_count, unlimited)) != NC_NOERR)
        return wrong(l, rc, "cannot read dimensions");
    qsort(ids, (size_t) count, sizeof *ids, compare_ints);
    for (int i = 0; i < count; i++) {
        char name[NC_MAX_NAME + 1];
        size_t length = 0;
        bool is_unlimited = false;
        rc = nc_inq_dim(ncid, ids[i], name, &length);
        if (rc != NC_NOERR)
            return wrong(l, rc, "cannot read a dimension");
        for (int j = 0; j < unlimited_count; j++)
            is_unlimited |= unlimited[j] == ids[i];
        cp_dimension *dimension = cp_dimension_add(group, name, length, is_unlimited);
        g_hash_table_insert(l->dimensions, GINT_TO_POINTER(ids[i]), dimension);
    }
    return ESDM_OK;
}

/* Groups first: types of one may be made of types of another, and be used in a third. */
static esdm_status
load_groups(loader *l, cp_group *group)
{
    int count = 0;
    esdm_status status = ESDM_OK;
    int rc = nc_inq_grps(group->from_nc, &count, NULL);
    if (rc != NC_NOERR || count == 0)
        return rc == NC_NOERR ? ESDM_OK : wrong(l, rc, "cannot read groups");
    g_autofree int *ids = g_new0(int, (gsize) count);
    if ((rc = nc_inq_grps(group->from_nc, NULL, ids)) != NC_NOERR)
        return wrong(l, rc, "cannot read groups");
    for (int i = 0; i < count && status == ESDM_OK; i++) {
        char name[NC_MAX_NAME + 1];
        rc = nc_inq_grpname(ids[i], name);
        if (rc != NC_NOERR)
            return wrong(l, rc, "cannot read a group");
        cp_group *child = cp_group_new(group, name);
        child->from_nc = ids[i];
        status = load_groups(l, child);
    }
    return status;
}

/* Of all groups: those of one may be used in another. */
static esdm_status
load_all_dimensions(loader *l, cp_group *group)
{
    esdm_status status = load_dimensions(l, group->from_nc, group);
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = load_all_dimensions(l, g_ptr_array_index(group->groups, i));
    return status;
}

static esdm_status
load_contents(loader *l, cp_group *group)
{
    int count = 0, ncid = group->from_nc;
    esdm_status status = load_attributes(l, ncid, NC_GLOBAL, group->path, group->attributes);
    if (status != ESDM_OK)
        return status;
    int rc = nc_inq_nvars(ncid, &count);
    if (rc != NC_NOERR)
        return wrong(l, rc, "cannot read variables");
    g_autofree int *ids = g_new0(int, (gsize) count + 1);
    if ((rc = nc_inq_varids(ncid, &count, ids)) != NC_NOERR)
        return wrong(l, rc, "cannot read variables");
    for (int i = 0; i < count && status == ESDM_OK; i++)
        status = load_variable(l, ncid, ids[i], group);
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = load_contents(l, g_ptr_array_index(group->groups, i));
    return status;
}

static esdm_status
load_all(loader *l)
{
    esdm_status status = load_groups(l, l->model->root);
    if (status == ESDM_OK)
        status = cp_netcdf_load_types(l->end, l->model, l->types, l->err);
    if (status == ESDM_OK)
        status = load_all_dimensions(l, l->model->root);
    return status == ESDM_OK ? load_contents(l, l->model->root) : status;
}

static const char *
format_name(int format)
{
    switch (format) {
    case NC_FORMAT_CLASSIC:
        return "classic";
    case NC_FORMAT_64BIT_OFFSET:
        return "64bit-offset";
    case NC_FORMAT_CDF5:
        return "cdf5";
    case NC_FORMAT_NETCDF4_CLASSIC:
        return "netcdf4-classic";
    default:
        return "netcdf4";
    }
}

static esdm_status
open_and_load(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    int format = 0, extended = 0, mode = 0;
    int rc = nc_open(end->path != NULL ? end->path : end->name, NC_NOWRITE, &end->ncid);
    if (rc != NC_NOERR) {
        end->ncid = -1;
        return cp_netcdf_error(err, rc, end->name, "cannot open");
    }
    if ((rc = nc_inq_format(end->ncid, &format)) != NC_NOERR ||
        (rc = nc_inq_format_extended(end->ncid, &extended, &mode)) != NC_NOERR)
        return cp_netcdf_error(err, rc, end->name, "cannot tell the format");
    g_autoptr(cp_model) model = cp_model_new();
    loader l = {.end = end,
                .model = model,
                .dimensions = g_hash_table_new(NULL, NULL),
                .types = g_hash_table_new(NULL, NULL),
                .is_hdf5 = extended == NC_FORMATX_NC_HDF5,
                .err = err};
    model->format = g_strdup(format_name(format));
    model->root->from_nc = end->ncid;
    esdm_status status = load_all(&l);
    g_hash_table_unref(l.dimensions);
    g_hash_table_unref(l.types);
    if (status != ESDM_OK)
        return status;
    cp_model_finish(model);
    *ret_model = g_steal_pointer(&model);
    return ESDM_OK;
}

esdm_status
cp_netcdf_open(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    cp_crash_at(end->name);
    esdm_status status = open_and_load(end, ret_model, err);
    cp_crash_at(NULL);
    return status;
}

esdm_status
cp_netcdf_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
               esdm_error *err)
{
    size_t start[ESDM_MAX_RANK + 1] = {0}, count[ESDM_MAX_RANK + 1] = {0};
    for (uint32_t i = 0; i < slab->rank; i++) {
        start[i] = slab->offset[i];
        count[i] = slab->size[i];
    }
    cp_crash_at(end->name);
    int rc = nc_get_vara(dataset->from.ncid, dataset->from.varid, start, count, buffer);
    cp_crash_at(NULL);
    if (rc == NC_NOERR)
        return ESDM_OK;
    return cp_netcdf_error(err, rc, end->name, dataset->path);
}
