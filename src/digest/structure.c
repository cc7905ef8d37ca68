/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Groups, dimensions, types, datasets and attributes: sorted by their names. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "digest/digest.h"
#include "digest/inner.h"

#define DIGEST_VERSION "esdm digest 1"

/* ---- parts --------------------------------------------------------------------------------- */

void
esdm__digest_number(esdm__sha256 *sum, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t) (number >> (8 * i));
    esdm__sha256_add(sum, bytes, sizeof bytes);
}

void
esdm__digest_text(esdm__sha256 *sum, const void *text, size_t bytes)
{
    esdm__digest_number(sum, bytes);
    esdm__sha256_add(sum, text, bytes);
}

void
esdm__digest_hash(esdm__sha256 *sum, const uint8_t *hash)
{
    esdm__sha256_add(sum, hash, ESDM__SHA256_BYTES);
}

static void
add_name(esdm__sha256 *sum, const char *name)
{
    esdm__digest_text(sum, name, strlen(name));
}

/* "/group/name"; of the root: "" and "/name". */
static esdm_status
add_path(esdm__sha256 *sum, const esdm_group *group, const char *name, esdm_error *err)
{
    size_t bytes = strlen(name) + 1;
    for (const esdm_group *g = group; g->parent != NULL; g = g->parent)
        bytes += strlen(g->name) + 1;
    char *path = malloc(bytes + 1);
    if (path == NULL)
        return esdm__error_nomem(err, bytes, "a path");
    size_t at = bytes;
    const esdm_group *g = group;
    for (const char *part = name;; part = g->name, g = g->parent) {
        size_t length = strlen(part);
        at -= length;
        memcpy(path + at, part, length);
        path[--at] = '/';
        if (g->parent == NULL)
            break;
    }
    esdm__digest_text(sum, path, bytes);
    free(path);
    return ESDM_OK;
}

static esdm_status
add_type(esdm__sha256 *sum, const esdm_container *container, esdm_type type, esdm_error *err)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user != NULL)
        return add_path(sum, user->group, user->name, err);
    const char *name = esdm__type_name(container, type);
    add_name(sum, name != NULL ? name : "");
    return ESDM_OK;
}

/* Borrowed pointers to objects, sorted by their names. */
typedef struct named {
    const char *name;
    void *object;
} named;

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const named *) a)->name, ((const named *) b)->name);
}

static esdm_status
list_of(size_t count, named **ret_list, esdm_error *err)
{
    *ret_list = calloc(count > 0 ? count : 1, sizeof **ret_list);
    return *ret_list != NULL ? ESDM_OK
                             : esdm__error_nomem(err, count * sizeof **ret_list, "a list of names");
}

/* ---- attributes ---------------------------------------------------------------------------- */

static bool
counts(const char *name)
{
    return strncmp(name, "esdm_", 5) != 0 && strcmp(name, "_NCProperties") != 0;
}

static esdm_status
add_attribute(esdm__sha256 *sum, const esdm_container *container, const esdm_attribute *a,
              esdm_error *err)
{
    esdm__typeref type;
    esdm__buffer stored;
    esdm__buffer_init(&stored);
    add_name(sum, a->name);
    esdm_status status = add_type(sum, container, a->type, err);
    esdm__digest_number(sum, a->count);
    if (status == ESDM_OK)
        status = esdm__type_resolve(container, a->type, &type, err);
    if (status == ESDM_OK)
        status = esdm__digest_encode(type, a->values, a->count, &stored, err);
    if (status == ESDM_OK)
        esdm__digest_text(sum, stored.data, stored.bytes);
    esdm__buffer_clear(&stored);
    return status;
}

/* The fill value of a dataset as an attribute, where it was set without one. */
static bool
fill_as_attribute(esdm_dataset *dataset, esdm_attribute *ret)
{
    if (dataset == NULL || dataset->stated->fill == NULL ||
        esdm_attribute_find(&dataset->attributes, "_FillValue", NULL, NULL))
        return false;
    *ret = (esdm_attribute){
        .name = "_FillValue", .type = dataset->type, .count = 1, .values = dataset->stated->fill};
    return true;
}

static int
attributes_by_name(const void *a, const void *b)
{
    return strcmp(((const esdm_attribute *) a)->name, ((const esdm_attribute *) b)->name);
}

/* @param dataset whose they are, or NULL. */
static esdm_status
add_attributes(esdm__sha256 *sum, const esdm_attributes *list, esdm_dataset *dataset,
               esdm_error *err)
{
    size_t count = 0;
    esdm_status status = ESDM_OK;
    esdm_attribute *all = calloc(list->count + 1, sizeof *all);
    if (all == NULL)
        return esdm__error_nomem(err, (list->count + 1) * sizeof *all, "a list of attributes");
    for (size_t i = 0; i < list->count; i++) {
        if (esdm_attribute_at(list, i, &all[count]) && counts(all[count].name))
            count++;
    }
    if (fill_as_attribute(dataset, &all[count]))
        count++;
    qsort(all, count, sizeof *all, attributes_by_name);
    esdm__digest_number(sum, count);
    for (size_t i = 0; i < count && status == ESDM_OK; i++)
        status = add_attribute(sum, list->container, &all[i], err);
    free(all);
    return status;
}

/* ---- types --------------------------------------------------------------------------------- */

static esdm_status
add_members(esdm__sha256 *sum, const esdm__usertype *type, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    add_name(sum, "compound");
    esdm__digest_number(sum, type->count);
    for (size_t i = 0; i < type->count && status == ESDM_OK; i++) {
        const esdm__member *member = &type->members[i];
        add_name(sum, member->name);
        status = add_type(sum, type->group->container, member->type, err);
        esdm__digest_number(sum, member->rank);
        for (uint32_t d = 0; d < member->rank; d++)
            esdm__digest_number(sum, member->shape[d]);
    }
    return status;
}

static esdm_status
add_definition(esdm__sha256 *sum, const esdm__usertype *type, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    switch (type->kind) {
    case ESDM_CLASS_COMPOUND:
        return add_members(sum, type, err);
    case ESDM_CLASS_ENUM:
        add_name(sum, "enum");
        status = add_type(sum, type->group->container, type->base, err);
        esdm__digest_number(sum, type->count);
        for (size_t i = 0; i < type->count; i++) {
            add_name(sum, type->enumerators[i].name);
            esdm__digest_text(sum, &type->enumerators[i].value, esdm_type_size(type->base));
        }
        return status;
    case ESDM_CLASS_OPAQUE:
        add_name(sum, "opaque");
        esdm__digest_number(sum, type->memory_bytes);
        return ESDM_OK;
    case ESDM_CLASS_VLEN:
    default:
        add_name(sum, "vlen");
        return add_type(sum, type->group->container, type->base, err);
    }
}

static esdm_status
add_types(esdm__sha256 *sum, const esdm_group *group, esdm_error *err)
{
    named *list;
    esdm_status status = list_of(group->types.count, &list, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < group->types.count; i++) {
        esdm__usertype *type = group->types.items[i];
        list[i] = (named){type->name, type};
    }
    qsort(list, group->types.count, sizeof *list, by_name);
    esdm__digest_number(sum, group->types.count);
    for (size_t i = 0; i < group->types.count && status == ESDM_OK; i++) {
        add_name(sum, list[i].name);
        status = add_definition(sum, list[i].object, err);
    }
    free(list);
    return status;
}

/* ---- datasets and dimensions --------------------------------------------------------------- */

esdm_status
esdm__digest_dataset(esdm_dataset *dataset, uint8_t ret_hash[ESDM__SHA256_BYTES], esdm_error *err)
{
    esdm__sha256 sum;
    uint8_t values[ESDM__SHA256_BYTES];
    esdm__sha256_init(&sum);
    add_name(&sum, "variable");
    esdm_status status = add_type(&sum, dataset->group->container, dataset->type, err);
    esdm__digest_number(&sum, dataset->rank);
    for (uint32_t d = 0; d < dataset->rank; d++) {
        add_name(&sum, dataset->dimensions[d]->name);
        esdm__digest_number(&sum, esdm_dimension_length(dataset->dimensions[d]));
    }
    if (status == ESDM_OK)
        status = add_attributes(&sum, &dataset->attributes, dataset, err);
    if (status == ESDM_OK)
        status = esdm__digest_values(dataset, values, err);
    if (status != ESDM_OK)
        return status;
    esdm__digest_hash(&sum, values);
    esdm__sha256_end(&sum, ret_hash);
    return ESDM_OK;
}

static esdm_status
add_datasets(esdm__sha256 *sum, const esdm_group *group, esdm_error *err)
{
    named *list;
    uint8_t hash[ESDM__SHA256_BYTES];
    esdm_status status = list_of(group->datasets.count, &list, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < group->datasets.count; i++) {
        esdm_dataset *dataset = group->datasets.items[i];
        list[i] = (named){dataset->name, dataset};
    }
    qsort(list, group->datasets.count, sizeof *list, by_name);
    esdm__digest_number(sum, group->datasets.count);
    for (size_t i = 0; i < group->datasets.count && status == ESDM_OK; i++) {
        esdm_dataset *dataset = list[i].object;
        add_name(sum, dataset->name);
        for (uint32_t d = 0; d < dataset->rank && status == ESDM_OK; d++)
            status =
                add_path(sum, dataset->dimensions[d]->group, dataset->dimensions[d]->name, err);
        if (status == ESDM_OK)
            status = esdm__digest_dataset(dataset, hash, err);
        if (status == ESDM_OK)
            esdm__digest_hash(sum, hash);
    }
    free(list);
    return status;
}

static esdm_status
add_dimensions(esdm__sha256 *sum, const esdm_group *group, esdm_error *err)
{
    named *list;
    esdm_status status = list_of(group->dimensions.count, &list, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < group->dimensions.count; i++) {
        esdm_dimension *dimension = group->dimensions.items[i];
        list[i] = (named){dimension->name, dimension};
    }
    qsort(list, group->dimensions.count, sizeof *list, by_name);
    esdm__digest_number(sum, group->dimensions.count);
    for (size_t i = 0; i < group->dimensions.count; i++) {
        add_name(sum, list[i].name);
        esdm__digest_number(sum, esdm_dimension_length(list[i].object));
    }
    free(list);
    return ESDM_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

static esdm_status digest_group(esdm_group *group, uint8_t ret_hash[ESDM__SHA256_BYTES],
                                esdm_error *err);

static esdm_status
add_groups(esdm__sha256 *sum, const esdm_group *group, esdm_error *err)
{
    named *list;
    uint8_t hash[ESDM__SHA256_BYTES];
    esdm_status status = list_of(group->groups.count, &list, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < group->groups.count; i++) {
        esdm_group *child = group->groups.items[i];
        list[i] = (named){child->name, child};
    }
    qsort(list, group->groups.count, sizeof *list, by_name);
    esdm__digest_number(sum, group->groups.count);
    for (size_t i = 0; i < group->groups.count && status == ESDM_OK; i++) {
        status = digest_group(list[i].object, hash, err);
        add_name(sum, list[i].name);
        if (status == ESDM_OK)
            esdm__digest_hash(sum, hash);
    }
    free(list);
    return status;
}

/* Groups are at most ESDM__GROUP_DEPTH_MAX deep. */
static esdm_status
digest_group(esdm_group *group, uint8_t ret_hash[ESDM__SHA256_BYTES], esdm_error *err)
{
    esdm__sha256 sum;
    esdm__sha256_init(&sum);
    add_name(&sum, "group");
    esdm_status status = add_attributes(&sum, &group->attributes, NULL, err);
    if (status == ESDM_OK)
        status = add_dimensions(&sum, group, err);
    if (status == ESDM_OK)
        status = add_types(&sum, group, err);
    if (status == ESDM_OK)
        status = add_datasets(&sum, group, err);
    if (status == ESDM_OK)
        status = add_groups(&sum, group, err);
    if (status == ESDM_OK)
        esdm__sha256_end(&sum, ret_hash);
    return status;
}

esdm_status
esdm__digest_container(esdm_container *container, uint8_t ret_hash[ESDM__SHA256_BYTES],
                       esdm_error *err)
{
    esdm__sha256 sum;
    uint8_t root[ESDM__SHA256_BYTES];
    esdm_status status = esdm__usertypes_complete(container, err);
    if (status == ESDM_OK)
        status = digest_group(container->groups.items[0], root, err);
    if (status != ESDM_OK)
        return status;
    esdm__sha256_init(&sum);
    add_name(&sum, DIGEST_VERSION);
    esdm__digest_hash(&sum, root);
    esdm__sha256_end(&sum, ret_hash);
    return ESDM_OK;
}

void
esdm__digest_print(const uint8_t hash[ESDM__SHA256_BYTES], char ret_text[ESDM_DIGEST_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(ret_text, "esdm1:", 6);
    for (size_t i = 0; i < ESDM__SHA256_BYTES; i++) {
        ret_text[6 + 2 * i] = digits[hash[i] >> 4];
        ret_text[7 + 2 * i] = digits[hash[i] & 15];
    }
    ret_text[6 + 2 * ESDM__SHA256_BYTES] = '\0';
}
