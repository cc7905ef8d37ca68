/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Attributes of variables and groups, with netCDF's conversions. */

#include "storage.h"

#include "calls.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What an attribute call works on. */
typedef struct target {
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var; /* NULL for NC_GLOBAL */
    esdm_attributes *attributes;
} target;

static int
find_list(esdmnc_id id, int varid, target *ret)
{
    ret->var = NULL;
    int rc = esdmnc_find(id, &ret->file, &ret->group);
    if (rc != NC_NOERR)
        return rc;
    if (varid == NC_GLOBAL) {
        ret->attributes = esdm_group_attributes(ret->group->group);
        return NC_NOERR;
    }
    if (varid < 0 || (size_t) varid >= ret->group->count)
        return NC_ENOTVAR;
    ret->var = ret->group->vars[varid];
    ret->attributes = esdm_dataset_attributes(ret->var->dataset);
    return NC_NOERR;
}

/* By name, with those that are not listed. */
static int
find_attribute(esdmnc_id id, int varid, const char *name, target *ret_target, esdm_attribute *ret,
               size_t *ret_index)
{
    char normalised[ESDMNC_NAME_BYTES];
    int rc = find_list(id, varid, ret_target);
    if (rc != NC_NOERR)
        return rc;
    if (name == NULL)
        return NC_EBADNAME;
    rc = esdmnc_name_normalise(ret_target->file->instance, name, normalised);
    if (rc != NC_NOERR)
        return esdmnc_is_nc3(ret_target->file) ? NC_ENOTATT : rc;
    if (esdm_attribute_find(ret_target->attributes, normalised, ret, ret_index))
        return NC_NOERR;
    esdmnc_hidden hidden;
    if (!esdmnc_hidden_find(ret_target->file, ret_target->group, varid, normalised, &hidden))
        return NC_ENOTATT;
    *ret = (esdm_attribute){.type = hidden.type, .count = hidden.count, .values = hidden.values};
    *ret_index = SIZE_MAX;
    return NC_NOERR;
}

int
esdmnc_inq_att(esdmnc_id id, int varid, const char *name, nc_type *ret_type, size_t *ret_count)
{
    target on;
    esdm_attribute attribute;
    size_t index;
    int rc = find_attribute(id, varid, name, &on, &attribute, &index);
    if (rc != NC_NOERR)
        return rc;
    if (ret_type != NULL)
        *ret_type = esdmnc_type_from_esdm(on.file, attribute.type);
    if (ret_count != NULL)
        *ret_count = (size_t) attribute.count;
    return NC_NOERR;
}

int
esdmnc_inq_attid(esdmnc_id id, int varid, const char *name, int *ret_index)
{
    target on;
    esdm_attribute attribute;
    size_t index;
    int rc = find_attribute(id, varid, name, &on, &attribute, &index);
    if (rc != NC_NOERR)
        return rc;
    if (index == SIZE_MAX)
        return NC_ENOTATT;
    if (ret_index != NULL)
        *ret_index = (int) index;
    return NC_NOERR;
}

int
esdmnc_inq_attname(esdmnc_id id, int varid, int index, char *ret_name)
{
    target on;
    esdm_attribute attribute;
    int rc = find_list(id, varid, &on);
    if (rc != NC_NOERR)
        return rc;
    if (index < 0 || !esdm_attribute_at(on.attributes, (size_t) index, &attribute))
        return NC_ENOTATT;
    if (ret_name != NULL)
        esdmnc_name_copy(attribute.name, ret_name);
    return NC_NOERR;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int
get_strings(const esdm_attribute *attribute, char **ret_texts)
{
    const char *const *texts = attribute->values;
    for (uint64_t i = 0; i < attribute->count; i++) {
        ret_texts[i] = texts[i] != NULL ? strdup(texts[i]) : NULL;
        if (ret_texts[i] == NULL && texts[i] != NULL) {
            while (i-- > 0)
                free(ret_texts[i]);
            return NC_ENOMEM;
        }
    }
    return NC_NOERR;
}

static int
get_user_values(const esdmnc_file *file, const esdm_attribute *attribute, void *ret_values)
{
    esdm_error err;
    esdm_status st = esdm_values_copy(file->container, attribute->type, attribute->count,
                                      attribute->values, ret_values, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "read attribute", attribute->name);
}

int
esdmnc_get_att(esdmnc_id id, int varid, const char *name, void *ret_values, nc_type memory_type)
{
    target on;
    esdm_attribute attribute;
    size_t index;
    int rc = find_attribute(id, varid, name, &on, &attribute, &index);
    if (rc != NC_NOERR)
        return rc;
    nc_type file_type = esdmnc_type_from_esdm(on.file, attribute.type);
    if (memory_type == NC_NAT)
        memory_type = file_type;
    if (attribute.count == 0)
        return NC_NOERR;
    if ((file_type == NC_CHAR) != (memory_type == NC_CHAR))
        return NC_ECHAR;
    bool numbers = esdmnc_type_is_number(file_type) && esdmnc_type_is_number(memory_type);
    if (file_type != memory_type && !numbers)
        return NC_EBADTYPE;
    if (ret_values == NULL)
        return NC_NOERR;
    if (file_type == NC_STRING)
        return get_strings(&attribute, ret_values);
    if (!esdmnc_type_is_atomic(file_type))
        return get_user_values(on.file, &attribute, ret_values);
    uint64_t out_of_range = 0;
    esdm_error err;
    nc_type type = esdmnc_memory_type(on.file, file_type, memory_type);
    if (esdm_convert_as(esdmnc_conversion(on.file), false, attribute.type, attribute.values, type,
                        ret_values, attribute.count, &out_of_range, &err) != ESDM_OK)
        return esdmnc_error(&err, "read attribute", name);
    return out_of_range > 0 ? NC_ERANGE : NC_NOERR;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool
is_fill_value(const target *on, const char *name)
{
    return on->var != NULL && strcmp(name, _FillValue) == 0;
}

/* Types without a size of their own count -1 in netCDF-4, of which the products wrap around. */
static size_t
size_in_nc4(nc_type type)
{
    return type != NC_STRING && esdmnc_type_is_atomic(type) ? esdm_type_size(type) : SIZE_MAX;
}

/* Whether define mode is needed: the attribute is new or grows. */
static bool
needs_room(const target *on, const char *name, nc_type type, size_t count)
{
    esdm_attribute old;
    if (!esdm_attribute_find(on->attributes, name, &old, NULL))
        return true;
    if (!esdmnc_is_nc3(on->file))
        return count * size_in_nc4(type) >
               old.count * size_in_nc4(esdmnc_type_from_esdm(on->file, old.type));
    size_t room = old.count * esdm_container_type_size(on->file->container, old.type);
    return count * esdmnc_type_bytes(on->file, type) > (room + 3) / 4 * 4;
}

static int
check_put_nc3(const target *on, const char *name, nc_type type, size_t count, const void *values,
              nc_type *memory_type, char *normalised)
{
    int rc = esdmnc_classic_type(on->file, type);
    if (rc != NC_NOERR)
        return rc;
    if (*memory_type == NC_NAT)
        *memory_type = type;
    if ((*memory_type == NC_CHAR) != (type == NC_CHAR))
        return NC_ECHAR;
    if (count > INT_MAX || (count > 0 && values == NULL))
        return NC_EINVAL;
    rc = esdmnc_name_check(on->file->instance, name, normalised);
    bool indef = atomic_load(&on->file->indef);
    if (!indef && (rc != NC_NOERR || needs_room(on, normalised, type, count)))
        return NC_ENOTINDEFINE;
    return rc;
}

static int
check_put_nc4(const target *on, int varid, const char *name, nc_type type, size_t count,
              const void *values, nc_type memory_type, char *normalised)
{
    if (count > INT_MAX)
        return NC_EINVAL;
    if (strlen(name) > NC_MAX_NAME)
        return NC_EBADNAME;
    if (count > 0 && values == NULL)
        return NC_EINVAL;
    if (!on->file->writable)
        return NC_EPERM;
    int rc = esdmnc_name_check(on->file->instance, name, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_hidden_check(on->file, on->group, varid, normalised);
    if (rc != NC_NOERR)
        return rc;
    if (!atomic_load(&on->file->indef) && needs_room(on, normalised, type, count)) {
        if (esdmnc_is_classic(on->file))
            return NC_ENOTINDEFINE;
        if ((rc = esdmnc_need_define(on->file)) != NC_NOERR)
            return rc;
    }
    if (type == NC_NAT || memory_type == NC_NAT)
        return NC_EBADTYPE;
    if (type != memory_type && (esdmnc_type_is_text(type) || esdmnc_type_is_text(memory_type)))
        return NC_ECHAR;
    rc = esdmnc_classic_type(on->file, type);
    if (rc == NC_NOERR && type < 0)
        rc = NC_EINVAL;
    if (rc == NC_NOERR && esdmnc_type_to_esdm(on->file, type) == ESDM_TYPE_NONE)
        rc = NC_EBADTYPID;
    if (rc != NC_NOERR || !is_fill_value(on, normalised))
        return rc;
    if (count != 1)
        return NC_EINVAL;
    if (atomic_load_explicit(&on->var->written, memory_order_relaxed))
        return NC_ELATEFILL;
    return type != on->var->type ? NC_EBADTYPE : NC_NOERR;
}

/* Converts into memory of the attribute's type; *ret_buffer is the caller's to free. */
static int
convert(const target *on, nc_type memory_type, const void *values, nc_type type, size_t count,
        void **ret_buffer, uint64_t *ret_out_of_range)
{
    esdm_error err;
    nc_type from = esdmnc_memory_type(on->file, type, memory_type);
    void *buffer = malloc(count * esdm_type_size(type));
    if (buffer == NULL)
        return NC_ENOMEM;
    if (esdm_convert_as(esdmnc_conversion(on->file), true, from, values, type, buffer, count,
                        ret_out_of_range, &err) != ESDM_OK) {
        free(buffer);
        return NC_EBADTYPE;
    }
    *ret_buffer = buffer;
    return NC_NOERR;
}

/* Of an attribute that may state the accuracy of a variable, which counts when define mode ends: at
 * once outside of it. */
static int
settle_accuracy(const target *on)
{
    return on->var->created && on->var->restated && !atomic_load(&on->file->indef)
               ? esdmnc_accuracy_settle(on->file, on->var)
               : NC_NOERR;
}

/* Numbers that are stored mean others with another factor, and so does what they are off by. What
 * was told of that holds no more: where the numbers are too many to ask, nobody knows. */
static int
scale_changed(const target *on)
{
    static const char told[] = "quantization_maximum_absolute_error";
    esdm_accuracy accuracy;
    esdm_error err;
    if (esdm_dataset_accuracy_in_force(on->var->dataset, &accuracy) &&
        esdm_attribute_find(on->attributes, told, NULL, NULL) &&
        esdm_attribute_remove(on->attributes, told, &err) != ESDM_OK)
        return esdmnc_error(&err, "remove attribute", told);
    on->var->restated = true;
    return settle_accuracy(on);
}

static int
accuracy_put(const target *on, const char *name)
{
    if (on->var != NULL && on->var->stored && strcmp(name, "scale_factor") == 0)
        return scale_changed(on);
    if (on->var == NULL || !esdmnc_accuracy_is_named(name))
        return NC_NOERR;
    esdmnc_accuracy_put(on->file, on->var, name);
    return settle_accuracy(on);
}

static int
accuracy_removed(const target *on, const char *name)
{
    if (on->var != NULL && on->var->stored && strcmp(name, "scale_factor") == 0)
        return scale_changed(on);
    if (on->var == NULL || !esdmnc_accuracy_is_named(name))
        return NC_NOERR;
    esdmnc_accuracy_removed(on->var, name);
    return settle_accuracy(on);
}

static int
store(const target *on, const char *name, nc_type type, size_t count, const void *values)
{
    esdm_error err;
    on->file->record_fill = ESDMNC_RECORDS_UNKNOWN;
    /* netCDF-3 stores a value of another type or length too, and does not fill with it. */
    if (is_fill_value(on, name) && type == on->var->type && count == 1) {
        int rc = esdmnc_fill_from_att(on->file, on->var, type, values);
        if (rc != NC_NOERR)
            return rc;
    }
    if (on->var != NULL && type <= NC_UINT64)
        esdmnc_accuracy_limits(on->file, on->var, name, count * esdmnc_type_bytes(on->file, type),
                               values);
    esdm_status st = esdm_attribute_set(on->attributes, name, esdmnc_type_to_esdm(on->file, type),
                                        count, values, &err);
    if (st != ESDM_OK)
        return esdmnc_error(&err, "write attribute", name);
    return accuracy_put(on, name);
}

int
esdmnc_put_att(esdmnc_id id, int varid, const char *name, nc_type type, size_t count,
               const void *values, nc_type memory_type)
{
    target on;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = find_list(id, varid, &on);
    bool nc3 = (rc == NC_NOERR || rc == NC_ENOTVAR) && esdmnc_is_nc3(on.file);
    if (nc3 && !on.file->writable)
        return NC_EPERM;
    if (rc != NC_NOERR)
        return rc;
    if (name == NULL)
        return NC_EBADNAME;
    rc = nc3 ? check_put_nc3(&on, name, type, count, values, &memory_type, normalised)
             : check_put_nc4(&on, varid, name, type, count, values, memory_type, normalised);
    if (rc != NC_NOERR)
        return rc;
    uint64_t out_of_range = 0;
    void *buffer = NULL;
    if (count > 0 && memory_type != type &&
        !(esdmnc_type_is_number(type) && esdmnc_type_is_number(memory_type)))
        return NC_EURL; /* so netCDF-4 says that nothing converts to user-defined types */
    if (memory_type != type && count > 0) {
        rc = convert(&on, memory_type, values, type, count, &buffer, &out_of_range);
        if (rc != NC_NOERR)
            return rc;
        values = buffer;
    }
    rc = store(&on, normalised, type, count, values);
    free(buffer);
    return rc == NC_NOERR && out_of_range > 0 ? NC_ERANGE : rc;
}

/* ---- renaming and removing --------------------------------------------------------------------
 */

int
esdmnc_rename_att(esdmnc_id id, int varid, const char *name, const char *new_name)
{
    target on;
    char old_name[ESDMNC_NAME_BYTES];
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL || new_name == NULL)
        return NC_EINVAL;
    int rc = find_list(id, varid, &on);
    if (rc != NC_NOERR && rc != NC_ENOTVAR)
        return rc;
    if (!esdmnc_is_nc3(on.file) && strlen(new_name) > NC_MAX_NAME)
        return NC_EMAXNAME;
    if (!on.file->writable)
        return NC_EPERM;
    int name_rc = esdmnc_name_check(on.file->instance, new_name, normalised);
    if (esdmnc_is_nc3(on.file) ? rc != NC_NOERR : name_rc == NC_NOERR && rc != NC_NOERR)
        return rc;
    if (name_rc != NC_NOERR)
        return name_rc;
    bool taken = esdm_attribute_find(on.attributes, normalised, NULL, NULL);
    if (taken && !esdmnc_is_nc3(on.file))
        return NC_ENAMEINUSE;
    rc = esdmnc_name_normalise(on.file->instance, name, old_name);
    if (rc != NC_NOERR)
        return esdmnc_is_nc3(on.file) ? NC_ENOTATT : rc;
    if (!esdm_attribute_find(on.attributes, old_name, NULL, NULL))
        return NC_ENOTATT;
    if (taken)
        return NC_ENAMEINUSE;
    if (esdmnc_is_classic(on.file) && !atomic_load(&on.file->indef) &&
        !esdmnc_room_suffices(on.file, on.attributes, old_name, old_name, normalised))
        return NC_ENOTINDEFINE;
    rc = esdmnc_room_renamed(on.file, on.attributes, true, old_name, normalised);
    if (rc != NC_NOERR)
        return rc;
    esdm_error err;
    on.file->record_fill = ESDMNC_RECORDS_UNKNOWN;
    if (esdm_attribute_rename(on.attributes, old_name, normalised, &err) != ESDM_OK)
        return esdmnc_error(&err, "rename attribute", old_name);
    rc = accuracy_removed(&on, old_name);
    return rc == NC_NOERR ? accuracy_put(&on, normalised) : rc;
}

int
esdmnc_del_att(esdmnc_id id, int varid, const char *name)
{
    target on;
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL)
        return NC_EINVAL;
    int rc = find_list(id, varid, &on);
    if (rc != NC_NOERR && rc != NC_ENOTVAR)
        return rc;
    bool nc3 = esdmnc_is_nc3(on.file);
    if (!nc3 && !on.file->writable)
        return NC_EPERM;
    int define = esdmnc_need_define(on.file);
    if (define != NC_NOERR)
        return define;
    if (rc != NC_NOERR)
        return rc;
    if (nc3 && (rc = esdmnc_name_normalise(on.file->instance, name, normalised)) != NC_NOERR)
        return rc == NC_EBADNAME ? rc : NC_ENOTATT;
    const char *wanted = nc3 ? normalised : name; /* netCDF-4 does not normalise here */
    esdm_error err;
    on.file->record_fill = ESDMNC_RECORDS_UNKNOWN;
    esdmnc_room_forget(on.file, on.attributes, wanted);
    esdm_status st = esdm_attribute_remove(on.attributes, wanted, &err);
    if (st == ESDM_ENOENT)
        return NC_ENOTATT;
    if (st != ESDM_OK)
        return esdmnc_error(&err, "remove attribute", wanted);
    return accuracy_removed(&on, wanted);
}
