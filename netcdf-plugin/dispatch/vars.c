/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Variables: definition, inquiry, renaming. A varid is the dataset's position in its group. */

#include "storage.h"

#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* Of any group, as in netCDF-4. */
static int
look_up_dims(const esdmnc_file *file, int rank, const int *dimids, esdm_dimension **ret_dimensions)
{
    size_t known = esdm_container_dimension_count(file->container);
    if (rank > 0 && dimids == NULL)
        return NC_EINVAL;
    for (int i = 0; i < rank; i++) {
        if (dimids[i] < 0 || (size_t) dimids[i] >= known)
            return NC_EBADDIM;
        ret_dimensions[i] = esdm_container_dimension(file->container, (uint32_t) dimids[i]);
        if (esdmnc_is_nc3(file) && i > 0 && esdm_dimension_is_unlimited(ret_dimensions[i]))
            return NC_EUNLIMPOS;
    }
    return NC_NOERR;
}

static int
check_new_var(esdmnc_file *file, const esdm_group *group, const char *name, nc_type type, int rank,
              char *normalised)
{
    bool nc3 = esdmnc_is_nc3(file);
    if (!nc3 && rank > ESDM_MAX_RANK)
        return NC_EMAXDIMS;
    int rc = esdmnc_need_define(file);
    if (rc == NC_NOERR)
        rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_classic_type(file, type);
    if (rc != NC_NOERR)
        return rc;
    if (rank < 0)
        return NC_EINVAL;
    rc = esdmnc_name_free(group, normalised);
    if (rc == NC_NOERR && rank > ESDM_MAX_RANK)
        rc = NC_EMAXDIMS;
    return rc;
}

int
esdmnc_def_var(esdmnc_id id, const char *name, nc_type type, int rank, const int *dimids,
               int *ret_varid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    char normalised[ESDMNC_NAME_BYTES];
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR)
        rc = check_new_var(file, group->group, name, type, rank, normalised);
    if (rc == NC_NOERR)
        rc = look_up_dims(file, rank, dimids, dimensions);
    esdm_type element = rc == NC_NOERR ? esdmnc_type_to_esdm(file, type) : ESDM_TYPE_NONE;
    if (rc == NC_NOERR && element == ESDM_TYPE_NONE) /* netCDF-4 looks the type up last */
        rc = type < 0 ? NC_EINVAL : NC_EBADTYPE;
    if (rc != NC_NOERR)
        return rc;
    esdm_error err;
    esdm_dataset *dataset;
    esdm_status st = esdm_dataset_create(group->group, normalised, element, (uint32_t) rank,
                                         dimensions, &dataset, &err);
    if (st != ESDM_OK) {
        rc = esdmnc_error(&err, "define variable", normalised);
        return st == ESDM_EINVAL ? NC_EVARSIZE : rc; /* all else was checked above */
    }
    rc = esdmnc_file_index(file);
    if (rc != NC_NOERR)
        return rc;
    uint32_t varid = esdm_dataset_index(dataset);
    if (!esdmnc_is_nc3(file)) {
        rc = esdmnc_chunks_start(file, group->vars[varid]);
        esdmnc_cache_adjust(file, group->vars[varid]);
    }
    if (rc == NC_NOERR && file->fill_mode == NC_NOFILL && type < NC_STRING)
        rc = esdmnc_set_nofill(file, group->vars[varid], true);
    if (rc == NC_NOERR && ret_varid != NULL)
        *ret_varid = (int) varid;
    return rc;
}

int
esdmnc_inq_varid(esdmnc_id id, const char *name, int *ret_varid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    rc = esdmnc_name_normalise(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return esdmnc_is_nc3(file) ? NC_ENOTVAR : rc;
    const esdm_dataset *dataset = esdm_group_dataset_find(group->group, normalised);
    if (dataset == NULL)
        return NC_ENOTVAR;
    if (ret_varid != NULL)
        *ret_varid = (int) esdm_dataset_index(dataset);
    return NC_NOERR;
}

int
esdmnc_rename_var(esdmnc_id id, int varid, const char *name)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var = NULL;
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!esdmnc_is_nc3(file) && strlen(name) > NC_MAX_NAME)
        return NC_EMAXNAME;
    if (!file->writable)
        return NC_EPERM;
    rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    if (!esdmnc_is_nc3(file)) /* netCDF-4 takes this one as it is */
        esdmnc_name_copy(name, normalised);
    int found = esdmnc_find_var(id, varid, &file, &group, &var);
    if (found != NC_NOERR && !esdmnc_is_nc3(file))
        return found;
    if (esdm_group_dataset_find(group->group, normalised) != NULL)
        return NC_ENAMEINUSE;
    if (found != NC_NOERR)
        return found;
    const char *old_name = esdm_dataset_name(var->dataset);
    if (esdmnc_is_classic(file) && !atomic_load(&file->indef) &&
        !esdmnc_room_suffices(file, var->dataset, NULL, old_name, normalised))
        return NC_ENOTINDEFINE;
    if ((rc = esdmnc_room_renamed(file, var->dataset, false, old_name, normalised)) != NC_NOERR)
        return rc;
    esdm_error err;
    esdm_status st = esdm_dataset_rename(var->dataset, normalised, &err);
    if (st == ESDM_EEXIST)
        return NC_ENAMEINUSE;
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "rename variable", normalised);
}

/* One element, in memory that the caller has; what hangs below is the caller's to free. */
static int
inq_fill(const esdmnc_file *file, const esdmnc_var *var, void *ret_value)
{
    esdm_attribute attribute;
    esdm_error err;
    const void *value = esdm_dataset_fill(var->dataset, NULL);
    /* netCDF-3 has no other place for it than the attribute, and gives what is in it. */
    if (esdmnc_is_nc3(file)) {
        if (esdm_attribute_find(esdm_dataset_attributes(var->dataset), _FillValue, &attribute,
                                NULL)) {
            size_t bytes = attribute.count * esdm_type_size(attribute.type);
            size_t room =
                esdm_type_size(var->type); /* stock writes all values, the caller has one */
            memcpy(ret_value, attribute.values, bytes < room ? bytes : room);
            return NC_NOERR;
        }
        value = esdm_type_default_fill(var->type);
    }
    if (esdm_values_copy(file->container, esdm_dataset_type(var->dataset), 1, value, ret_value,
                         &err) != ESDM_OK)
        return esdmnc_error(&err, "inquire fill value in", file->name);
    return NC_NOERR;
}

static void
inq_shape(const esdmnc_var *var, int *ret_rank, int *ret_dimids)
{
    if (ret_rank != NULL)
        *ret_rank = (int) var->rank;
    for (uint32_t i = 0; ret_dimids != NULL && i < var->rank; i++)
        ret_dimids[i] = (int) esdm_dimension_id(var->axes[i].dimension);
}

int
esdmnc_inq_var_all(esdmnc_id id, int varid, char *ret_name, nc_type *ret_type, int *ret_rank,
                   int *ret_dimids, int *ret_atts, int *ret_shuffle, int *ret_deflate,
                   int *ret_level, int *ret_fletcher32, int *ret_kind, size_t *ret_chunks,
                   int *ret_nofill, void *ret_fill, int *ret_endian, unsigned *ret_filter,
                   size_t *ret_param_count, unsigned *ret_params)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    (void) ret_params;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (varid == NC_GLOBAL && ret_atts != NULL && !esdmnc_is_nc3(file)) {
        *ret_atts = (int) esdm_attribute_count(esdm_group_attributes(group->group));
        return NC_NOERR;
    }
    rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return NC_ENOTVAR;
    if (ret_name != NULL)
        esdmnc_name_copy(esdm_dataset_name(var->dataset), ret_name);
    if (ret_type != NULL)
        *ret_type = var->type;
    inq_shape(var, ret_rank, ret_dimids);
    if (ret_atts != NULL)
        *ret_atts = (int) esdm_attribute_count(esdm_dataset_attributes(var->dataset));
    if (ret_shuffle == NULL && ret_deflate == NULL && ret_level == NULL && ret_fletcher32 == NULL &&
        ret_kind == NULL && ret_chunks == NULL && ret_nofill == NULL && ret_fill == NULL &&
        ret_endian == NULL && ret_filter == NULL && ret_param_count == NULL)
        return NC_NOERR; /* most calls ask for no more; reading the hints costs something */

    int kind = esdmnc_storage_kind(file, var);
    if (ret_kind != NULL)
        *ret_kind = kind;
    if (ret_chunks != NULL && kind == NC_CHUNKED)
        esdmnc_chunks_get(var, ret_chunks);
    if (ret_shuffle != NULL)
        *ret_shuffle = esdmnc_has_filter(var, ESDMNC_FILTER_SHUFFLE);
    if (ret_fletcher32 != NULL)
        *ret_fletcher32 = esdmnc_has_filter(var, ESDMNC_FILTER_FLETCHER32);
    if (ret_deflate != NULL || ret_level != NULL)
        return NC_EFILTER; /* inquired by nc_inq_var_filter_info() instead */
    bool nofill = esdmnc_nofill(file, var);
    if (ret_nofill != NULL)
        *ret_nofill = nofill;
    if (ret_fill != NULL && (!nofill || esdmnc_is_nc3(file)) &&
        (rc = inq_fill(file, var, ret_fill)) != NC_NOERR)
        return rc;
    if (ret_filter != NULL || ret_param_count != NULL)
        return NC_EFILTER; /* likewise */
    if (ret_endian != NULL) {
        if (esdmnc_is_nc3(file))
            return NC_ENOTNC4;
        *ret_endian = esdmnc_endian(file, var);
    }
    return NC_NOERR;
}
