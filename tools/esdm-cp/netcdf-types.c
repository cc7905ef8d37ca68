/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* User-defined types of NetCDF files. */

#include "esdm-cp/netcdf.h"

#include <netcdf.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------ */

/* Where a type is that was not read yet. */
typedef struct found_type {
    cp_group *group;
    bool entered; /* a type that holds itself would not end */
} found_type;

typedef struct type_loader {
    const cp_end *end;
    cp_model *model;
    GHashTable *types; /* nc_type → cp_type, of those that were read */
    GHashTable *found; /* nc_type → found_type */
    esdm_error *err;
} type_loader;

static esdm_status
wrong(const type_loader *l, int rc, const char *name)
{
    g_autofree char *what = g_strdup_printf("cannot read the type %s", name);
    return cp_netcdf_error(l->err, rc, l->end->name, what);
}

const cp_type *
cp_netcdf_type(GHashTable *types, int number)
{
    const cp_type *atomic = cp_type_atomic(number);
    return atomic != NULL ? atomic : g_hash_table_lookup(types, GINT_TO_POINTER(number));
}

static esdm_status load_type(type_loader *l, nc_type number);

/* A type that another one is made of. */
static esdm_status
load_part(type_loader *l, nc_type number, const cp_type **ret_type)
{
    esdm_status status = ESDM_OK;
    if (cp_netcdf_type(l->types, number) == NULL)
        status = load_type(l, number);
    *ret_type = cp_netcdf_type(l->types, number);
    return status;
}

static esdm_status
load_compound_member(type_loader *l, int ncid, nc_type number, int index, cp_type *type)
{
    char name[NC_MAX_NAME + 1];
    size_t offset = 0;
    nc_type part = NC_NAT;
    int rank = 0, sizes[NC_MAX_VAR_DIMS];
    uint32_t shape[ESDM_MAX_RANK];
    int rc = nc_inq_compound_field(ncid, number, index, name, &offset, &part, &rank, sizes);
    if (rc != NC_NOERR)
        return wrong(l, rc, type->path);
    if (rank > ESDM_MAX_RANK)
        return tool_error_set(l->err, ESDM_ENOTSUP, "%s: member %s of type %s has %d dimensions",
                              l->end->name, name, type->path, rank);
    const cp_type *of = NULL;
    esdm_status status = load_part(l, part, &of);
    if (status != ESDM_OK)
        return status;
    for (int i = 0; i < rank; i++)
        shape[i] = (uint32_t) sizes[i];
    cp_member_shape(cp_member_add(type, name, of, offset), (uint32_t) rank, shape);
    return ESDM_OK;
}

static esdm_status
load_enum_member(type_loader *l, int ncid, nc_type number, int index, cp_type *type)
{
    char name[NC_MAX_NAME + 1];
    uint64_t value = 0; /* room for every integer type, little-endian as this machine is */
    int rc = nc_inq_enum_member(ncid, number, index, name, &value);
    if (rc != NC_NOERR)
        return wrong(l, rc, type->path);
    cp_member_add(type, name, NULL, 0)->value = value;
    return ESDM_OK;
}

/* Members last, and the type into the list behind those that it is made of. */
static esdm_status
load_type(type_loader *l, nc_type number)
{
    char name[NC_MAX_NAME + 1] = "?";
    size_t bytes = 0, members = 0;
    nc_type base = NC_NAT;
    int class = 0;
    const cp_type *of = NULL;
    esdm_status status = ESDM_OK;
    found_type *found = g_hash_table_lookup(l->found, GINT_TO_POINTER(number));
    if (found == NULL || found->entered)
        return wrong(l, NC_EBADTYPE, name);
    found->entered = true;
    int ncid = found->group->from_nc;
    int rc = nc_inq_user_type(ncid, number, name, &bytes, &base, &members, &class);
    if (rc != NC_NOERR)
        return wrong(l, rc, name);
    if (class == NC_ENUM || class == NC_VLEN)
        status = load_part(l, base, &of);
    for (size_t i = 0; i < members && class == NC_COMPOUND && status == ESDM_OK; i++) {
        nc_type part = NC_NAT;
        const cp_type *unused = NULL;
        rc = nc_inq_compound_fieldtype(ncid, number, (int) i, &part);
        status = rc == NC_NOERR ? load_part(l, part, &unused) : wrong(l, rc, name);
    }
    if (status != ESDM_OK)
        return status;
    esdm_type_class kind = class == NC_ENUM       ? ESDM_CLASS_ENUM
                           : class == NC_VLEN     ? ESDM_CLASS_VLEN
                           : class == NC_COMPOUND ? ESDM_CLASS_COMPOUND
                                                  : ESDM_CLASS_OPAQUE;
    cp_type *type = cp_type_add(l->model, found->group, name, kind,
                                kind == ESDM_CLASS_VLEN ? sizeof(esdm_vlen) : bytes);
    type->base = of;
    g_hash_table_insert(l->types, GINT_TO_POINTER(number), type);
    for (size_t i = 0; i < members && status == ESDM_OK; i++) {
        if (kind == ESDM_CLASS_COMPOUND)
            status = load_compound_member(l, ncid, number, (int) i, type);
        else if (kind == ESDM_CLASS_ENUM)
            status = load_enum_member(l, ncid, number, (int) i, type);
    }
    return status;
}

/* Numbers of the types of a group, NULL when it has none. Owned. */
static int *
type_ids(const cp_group *group, int *ret_count)
{
    int *ids = NULL;
    *ret_count = 0;
    if (nc_inq_typeids(group->from_nc, ret_count, NULL) == NC_NOERR && *ret_count > 0) {
        ids = g_new0(int, (gsize) *ret_count);
        if (nc_inq_typeids(group->from_nc, NULL, ids) != NC_NOERR)
            *ret_count = 0;
    }
    return ids;
}

static void
find_types(type_loader *l, cp_group *group)
{
    int count = 0;
    g_autofree int *ids = type_ids(group, &count);
    for (int i = 0; i < count; i++) {
        found_type *found = g_new0(found_type, 1);
        found->group = group;
        g_hash_table_insert(l->found, GINT_TO_POINTER(ids[i]), found);
    }
    for (guint i = 0; i < group->groups->len; i++)
        find_types(l, g_ptr_array_index(group->groups, i));
}

static esdm_status
load_types_of(type_loader *l, const cp_group *group)
{
    int count = 0;
    esdm_status status = ESDM_OK;
    g_autofree int *ids = type_ids(group, &count);
    for (int i = 0; i < count && status == ESDM_OK; i++) {
        const cp_type *type = NULL;
        status = load_part(l, ids[i], &type);
    }
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = load_types_of(l, g_ptr_array_index(group->groups, i));
    return status;
}

esdm_status
cp_netcdf_load_types(const cp_end *end, cp_model *model, GHashTable *types, esdm_error *err)
{
    g_autoptr(GHashTable) found = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    type_loader l = {.end = end, .model = model, .types = types, .found = found, .err = err};
    find_types(&l, model->root);
    return load_types_of(&l, model->root);
}

/* ---- writing ------------------------------------------------------------------------------ */

static int
put_members(int ncid, const cp_type *type)
{
    int rc = NC_NOERR;
    for (guint i = 0; i < type->members->len && rc == NC_NOERR; i++) {
        const cp_member *member = g_ptr_array_index(type->members, i);
        int sizes[ESDM_MAX_RANK];
        for (uint32_t axis = 0; axis < member->rank; axis++)
            sizes[axis] = (int) member->shape[axis];
        if (type->kind == ESDM_CLASS_ENUM)
            rc = nc_insert_enum(ncid, type->to_nc, member->name, &member->value);
        else if (member->rank == 0)
            rc = nc_insert_compound(ncid, type->to_nc, member->name, member->offset,
                                    member->type->to_nc);
        else
            rc = nc_insert_array_compound(ncid, type->to_nc, member->name, member->offset,
                                          member->type->to_nc, (int) member->rank, sizes);
    }
    return rc;
}

static int
put_type(cp_type *type)
{
    int ncid = type->group->to_nc;
    int rc = NC_EBADTYPE;
    switch (type->kind) {
    case ESDM_CLASS_COMPOUND:
        rc = nc_def_compound(ncid, type->bytes, type->name, &type->to_nc);
        break;
    case ESDM_CLASS_ENUM:
        rc = nc_def_enum(ncid, type->base->to_nc, type->name, &type->to_nc);
        break;
    case ESDM_CLASS_OPAQUE:
        rc = nc_def_opaque(ncid, type->bytes, type->name, &type->to_nc);
        break;
    case ESDM_CLASS_VLEN:
        rc = nc_def_vlen(ncid, type->name, type->base->to_nc, &type->to_nc);
        break;
    default:
        break;
    }
    return rc == NC_NOERR ? put_members(ncid, type) : rc;
}

esdm_status
cp_netcdf_put_types(const cp_end *end, const cp_model *model, esdm_error *err)
{
    for (guint i = 0; i < model->types->len; i++) {
        cp_type *type = g_ptr_array_index(model->types, i);
        int rc = put_type(type);
        if (rc != NC_NOERR) {
            g_autofree char *what = g_strdup_printf("cannot define the type %s", type->path);
            return cp_netcdf_error(err, rc, end->name, what);
        }
    }
    return ESDM_OK;
}
