/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The fill value of a variable: the `_FillValue` attribute and what holes in ESDM read as. */

#include "storage.h"

#include "calls.h"

#include <string.h>

int
esdmnc_fill_from_att(esdmnc_file *file, esdmnc_var *var, nc_type type, const void *values)
{
    esdm_error err;
    if (type != var->type)
        return NC_EBADTYPE;
    if (esdmnc_is_nc3(file))
        return NC_NOERR; /* what counts is the attribute when define mode ends: fill_records.c */
    if (atomic_load_explicit(&var->written, memory_order_relaxed))
        return NC_ELATEFILL;
    esdm_status st = esdm_dataset_set_fill(var->dataset, values, &err);
    if (st == ESDM_EINVAL)
        return NC_ELATEFILL;
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "set fill value in", file->name);
}

static int
remove_attribute(const esdmnc_file *file, esdmnc_var *var)
{
    esdm_error err;
    esdm_attributes *attributes = esdm_dataset_attributes(var->dataset);
    if (!esdm_attribute_find(attributes, _FillValue, NULL, NULL))
        return NC_NOERR;
    if (esdm_attribute_remove(attributes, _FillValue, &err) != ESDM_OK)
        return esdmnc_error(&err, "remove _FillValue in", file->name);
    return NC_NOERR;
}

static int
check(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_var **ret_var)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    bool nc3 = esdmnc_is_nc3(*ret_file);
    if (!(*ret_file)->writable)
        return NC_EPERM;
    if (nc3 && !atomic_load(&(*ret_file)->indef))
        return NC_ENOTINDEFINE;
    rc = esdmnc_find_var(id, varid, ret_file, &group, ret_var);
    if (rc != NC_NOERR)
        return rc;
    return !nc3 && (*ret_var)->created ? NC_ELATEDEF : NC_NOERR;
}

int
esdmnc_def_var_fill(esdmnc_id id, int varid, int nofill, const void *value)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = check(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (!esdmnc_is_nc3(file))
        esdmnc_cache_adjust(file, var);
    if (nofill && var->type == NC_STRING)
        return NC_EINVAL; /* a text always has a value */
    rc = esdmnc_set_nofill(file, var, nofill != 0);
    if (rc != NC_NOERR)
        return rc;
    if (!nofill && value != NULL) {
        if ((rc = remove_attribute(file, var)) != NC_NOERR) /* it is listed last then */
            return rc;
        return esdmnc_put_att(id, varid, _FillValue, var->type, 1, value, var->type);
    }
    bool is_default = true;
    (void) esdm_dataset_fill(var->dataset, &is_default);
    if (!nofill || is_default || esdmnc_is_nc3(file))
        return NC_NOERR;
    esdm_error err;
    rc = remove_attribute(file, var);
    if (rc == NC_NOERR && esdm_dataset_set_fill(var->dataset, NULL, &err) != ESDM_OK)
        rc = esdmnc_error(&err, "unset fill value in", file->name);
    return rc;
}
