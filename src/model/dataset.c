/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Datasets: created, renamed, asked about. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/accuracy.h"
#include "model/group.h"
#include "model/undo.h"
#include "model/values.h"

/* ---- creation ------------------------------------------------------------------------------ */

static const esdm__stated nothing = {0};

static void
free_stated(esdm_dataset *dataset)
{
    esdm__typeref of;
    if (dataset->stated == &nothing)
        return;
    esdm__stated *stated = (esdm__stated *) (uintptr_t) dataset->stated;
    if (stated->fill != NULL &&
        esdm__type_resolve(dataset->group->container, dataset->type, &of, NULL) == ESDM_OK)
        esdm__value_free(of, stated->fill);
    esdm__hints_clear(&stated->hints);
    free(stated->codec);
    free(stated->accuracy);
    free(stated->units);
    free(stated->chunk);
    free(stated);
}

esdm__stated *
esdm__dataset_stated(esdm_dataset *dataset, esdm_error *err)
{
    if (dataset->stated == &nothing) {
        esdm__stated *stated = calloc(1, sizeof *stated);
        if (stated == NULL) {
            (void) esdm__error_nomem(err, sizeof *stated, "what is stated for a dataset");
            return NULL;
        }
        dataset->stated = stated;
    }
    return (esdm__stated *) (uintptr_t) dataset->stated;
}

static esdm__shape_note *
find_note(const esdm_dataset *dataset)
{
    esdm__shape_note *note = atomic_load(&dataset->group->container->shape_notes);
    while (note != NULL && atomic_load(&note->dataset) != dataset)
        note = note->next;
    return note;
}

const char *
esdm__dataset_shape_noted(const esdm_dataset *dataset)
{
    const esdm__shape_note *note = find_note(dataset);
    return note != NULL ? note->why : NULL;
}

bool
esdm__dataset_note_shape(const esdm_dataset *dataset, const char *why)
{
    esdm_container *container = dataset->group->container;
    size_t bytes = strlen(why) + 1;
    esdm__shape_note *note = malloc(sizeof *note + bytes);
    if (note == NULL)
        return false;
    atomic_init(&note->dataset, dataset);
    note->next = atomic_load(&container->shape_notes);
    memcpy(note->why, why, bytes);
    atomic_store(&container->shape_notes, note);
    return true;
}

void
esdm__dataset_free(esdm_dataset *dataset)
{
    if (dataset == NULL)
        return;
    esdm__shape_note *note = dataset->group != NULL ? find_note(dataset) : NULL;
    if (note != NULL) /* another dataset may get this address */
        atomic_store(&note->dataset, NULL);
    esdm__attributes_clear(&dataset->attributes);
    free_stated(dataset);
    if (dataset->dimensions != dataset->dimensions_here)
        free(dataset->dimensions);
    if (dataset->name_apart)
        free(dataset->name);
    free(dataset);
}

bool
esdm__dimension_is_visible(const esdm_dimension *dimension, const esdm_group *group)
{
    while (group != NULL && group != dimension->group)
        group = group->parent;
    return group != NULL;
}

static esdm_status
check_shape(const esdm_group *group, const char *name, esdm_type type, uint32_t rank,
            esdm_dimension *const *dimensions, esdm_error *err)
{
    if (esdm_container_type_size(group->container, type) == 0)
        return esdm__error_set(err, ESDM_EINVAL, "dataset '%s': unknown type %d", name, (int) type);
    if (rank > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_EINVAL, "dataset '%s': rank %" PRIu32 " exceeds %d", name,
                               rank, ESDM_MAX_RANK);
    if (rank > 0 && dimensions == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "dataset '%s': dimensions must not be NULL", name);
    for (uint32_t i = 0; i < rank; i++) {
        if (dimensions[i] == NULL || dimensions[i]->group->container != group->container)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dataset '%s': dimension %" PRIu32 " (%s) is not of this "
                                   "container",
                                   name, i, dimensions[i] != NULL ? dimensions[i]->name : "NULL");
    }
    return ESDM_OK;
}

/* A dataset that is not yet in any list; NULL when out of memory. */
static esdm_dataset *
allocate(esdm_group *group, const char *name, uint32_t rank, esdm_dimension *const *dimensions)
{
    size_t name_bytes = strlen(name) + 1;
    esdm_dataset *dataset =
        calloc(1, sizeof *dataset + rank * sizeof(esdm_dimension *) + name_bytes);
    if (dataset == NULL)
        return NULL;
    dataset->stated = &nothing;
    dataset->dimensions = dataset->dimensions_here;
    dataset->name = memcpy(dataset->dimensions_here + rank, name, name_bytes);
    for (uint32_t i = 0; i < rank; i++)
        dataset->dimensions[i] = dimensions[i];
    dataset->group = group;
    dataset->attributes.container = group->container;
    dataset->attributes.of_dataset = true;
    dataset->rank = (uint8_t) rank;
    atomic_init(&dataset->has_data, false);
    return dataset;
}

esdm_status
esdm__dataset_new(esdm_group *group, uint32_t id, const char *name, esdm_type type, uint32_t rank,
                  esdm_dimension *const *dimensions, esdm_dataset **ret_dataset, esdm_error *err)
{
    esdm_container *container = group->container;
    uint32_t hash = esdm__names_hash(name);
    esdm_status st = esdm__group_check_free(group, name, hash, "dataset", err);
    if (st == ESDM_OK)
        st = check_shape(group, name, type, rank, dimensions, err);
    if (st != ESDM_OK)
        return st;
    if (container->datasets.count >= ESDM__OBJECTS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "container '%.300s' has too many datasets",
                               container->name);
    st = esdm__usertype_need_zero(container, type, err);
    if (st != ESDM_OK)
        return st;

    esdm_dataset *dataset = allocate(group, name, rank, dimensions);
    if (dataset == NULL || !esdm__pointers_reserve(&container->datasets) ||
        !esdm__pointers_reserve(&group->datasets) || !esdm__names_reserve(&group->members)) {
        esdm__dataset_free(dataset);
        return esdm__error_nomem(err, sizeof *dataset, "a dataset");
    }
    dataset->id = id;
    dataset->type = type;
    dataset->index = (uint32_t) group->datasets.count;
    esdm__group_add_member(group, hash, dataset->index, ESDM__MEMBER_DATASET);
    (void) esdm__pointers_add(&container->datasets, dataset); /* room was reserved */
    (void) esdm__pointers_add(&group->datasets, dataset);
    *ret_dataset = dataset;
    return ESDM_OK;
}

esdm_status
esdm_dataset_create(esdm_group *group, const char *name, esdm_type type, uint32_t rank,
                    esdm_dimension *const *dimensions, esdm_dataset **ret_dataset, esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_dataset);
    esdm_container *container = group->container;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st != ESDM_OK)
        return st;
    if (container->next_dataset_id == UINT32_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "container '%.300s' has used up the numbers of its datasets",
                               container->name);
    st = esdm__dataset_new(group, container->next_dataset_id, name, type, rank, dimensions,
                           ret_dataset, err);
    if (st == ESDM_OK) {
        container->next_dataset_id++;
        esdm__container_changed(container);
    }
    return st;
}

void
esdm__dataset_put_dimensions(esdm_dataset *dataset, uint32_t rank, esdm_dimension **dimensions,
                             uint64_t *chunk)
{
    if (dataset->dimensions != dataset->dimensions_here)
        free(dataset->dimensions);
    dataset->rank = (uint8_t) rank;
    dataset->dimensions = dimensions;
    if (dataset->stated != &nothing) {
        esdm__stated *stated = (esdm__stated *) (uintptr_t) dataset->stated;
        free(stated->chunk);
        stated->chunk = chunk;
    }
}

/* ---- properties ---------------------------------------------------------------------------- */

esdm_status
esdm_dataset_rename(esdm_dataset *dataset, const char *name, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, name);
    return esdm__group_rename_member(dataset->group, name, ESDM__MEMBER_DATASET, dataset->index,
                                     &dataset->name, &dataset->name_apart, err);
}

const char *
esdm_dataset_name(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return NULL;
    return dataset->name;
}

uint32_t
esdm_dataset_id(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return 0;
    return dataset->id;
}

uint32_t
esdm_dataset_index(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return 0;
    return dataset->index;
}

esdm_group *
esdm_dataset_group(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return NULL;
    return dataset->group;
}

esdm_type
esdm_dataset_type(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return ESDM_TYPE_NONE;
    return dataset->type;
}

uint32_t
esdm_dataset_rank(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return 0;
    return dataset->rank;
}

esdm_dimension *
esdm_dataset_dimension(const esdm_dataset *dataset, uint32_t axis)
{
    if (dataset == NULL)
        return NULL;
    return axis < dataset->rank ? dataset->dimensions[axis] : NULL;
}

esdm_attributes *
esdm_dataset_attributes(esdm_dataset *dataset)
{
    return dataset != NULL ? &dataset->attributes : NULL;
}

bool
esdm_dataset_has_data(esdm_dataset *dataset)
{
    if (dataset == NULL)
        return false;
    return atomic_load_explicit(&dataset->has_data, memory_order_acquire);
}

esdm_status
esdm_dataset_set_fill(esdm_dataset *dataset, const void *value, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    esdm_status st = esdm__container_check_writable(dataset->group->container, err);
    if (st != ESDM_OK)
        return st;
    if (esdm_dataset_has_data(dataset))
        return esdm__error_set(err, ESDM_EINVAL,
                               "dataset '%s' has data: its fill value cannot change any more",
                               dataset->name);
    return esdm__dataset_put_fill(dataset, value, err);
}

esdm_status
esdm__dataset_put_fill(esdm_dataset *dataset, const void *value, esdm_error *err)
{
    void *copy = NULL;
    esdm__typeref of;
    esdm_container *container = dataset->group->container;
    esdm_status st = esdm__type_resolve(container, dataset->type, &of, err);
    if (st == ESDM_OK && value != NULL)
        st = esdm__value_new(of, value, &copy, err);
    if (st != ESDM_OK)
        return st;
    bool same = copy == NULL || dataset->stated->fill == NULL
                    ? copy == dataset->stated->fill
                    : esdm__values_equal(of, 1, copy, dataset->stated->fill);
    if (same) {
        esdm__value_free(of, copy);
        return ESDM_OK;
    }
    st = esdm__undo_keep_dataset(dataset, err);
    esdm__stated *stated = st == ESDM_OK ? esdm__dataset_stated(dataset, err) : NULL;
    if (stated == NULL) {
        esdm__value_free(of, copy);
        return st != ESDM_OK ? st : ESDM_ENOMEM;
    }
    esdm__value_free(of, stated->fill);
    stated->fill = copy;
    esdm__container_changed(container);
    return ESDM_OK;
}

const void *
esdm_dataset_fill(const esdm_dataset *dataset, bool *ret_is_default)
{
    if (dataset == NULL)
        return NULL;
    if (ret_is_default != NULL)
        *ret_is_default = dataset->stated->fill == NULL;
    if (dataset->stated->fill != NULL)
        return dataset->stated->fill;
    return esdm__type_default_fill(dataset->group->container, dataset->type);
}

esdm_status
esdm_dataset_set_chunk(esdm_dataset *dataset, const uint64_t *shape, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    uint64_t *copy = NULL;
    size_t bytes = dataset->rank * sizeof *copy;
    esdm_container *container = dataset->group->container;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st != ESDM_OK)
        return st;
    for (uint32_t i = 0; shape != NULL && i < dataset->rank; i++) {
        if (shape[i] == 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dataset '%s': chunk size of axis %" PRIu32 " is 0, must be "
                                   "≥ 1",
                                   dataset->name, i);
    }
    if (shape == NULL
            ? dataset->stated->chunk == NULL
            : dataset->stated->chunk != NULL && memcmp(shape, dataset->stated->chunk, bytes) == 0)
        return ESDM_OK;
    st = esdm__undo_keep_dataset(dataset, err);
    if (st != ESDM_OK)
        return st;
    esdm__stated *stated = esdm__dataset_stated(dataset, err);
    if (stated == NULL)
        return ESDM_ENOMEM;
    if (shape != NULL) {
        copy = malloc(bytes > 0 ? bytes : 1);
        if (copy == NULL)
            return esdm__error_nomem(err, bytes, "a chunk shape");
        memcpy(copy, shape, bytes);
    }
    free(stated->chunk);
    stated->chunk = copy;
    esdm__container_changed(container);
    return ESDM_OK;
}

const uint64_t *
esdm_dataset_chunk(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return NULL;
    return dataset->stated->chunk;
}

esdm_status
esdm__dataset_set_codec_text(esdm_dataset *dataset, const char *chain, esdm_error *err)
{
    char *copy = NULL;
    esdm_container *container = dataset->group->container;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st != ESDM_OK)
        return st;
    if (chain == NULL
            ? dataset->stated->codec == NULL
            : dataset->stated->codec != NULL && strcmp(chain, dataset->stated->codec) == 0)
        return ESDM_OK;
    st = esdm__undo_keep_dataset(dataset, err);
    if (st != ESDM_OK)
        return st;
    esdm__stated *stated = esdm__dataset_stated(dataset, err);
    if (stated == NULL)
        return ESDM_ENOMEM;
    if (chain != NULL) {
        if (!esdm__utf8_is_valid(chain, strlen(chain)))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dataset '%s': the codec chain is not valid UTF-8",
                                   dataset->name);
        copy = strdup(chain);
        if (copy == NULL)
            return esdm__error_nomem(err, strlen(chain), "a codec chain");
    }
    free(stated->codec);
    stated->codec = copy;
    esdm__container_changed(container);
    return ESDM_OK;
}

const char *
esdm_dataset_codec(const esdm_dataset *dataset)
{
    if (dataset == NULL)
        return NULL;
    return dataset->stated->codec;
}

esdm_status
esdm__dataset_put_hint(esdm_dataset *dataset, const char *key, const char *value, bool *ret_changed,
                       esdm_error *err)
{
    esdm__stated *stated = esdm__dataset_stated(dataset, err);
    return stated != NULL ? esdm__hints_set(&stated->hints, key, value, ret_changed, err)
                          : ESDM_ENOMEM;
}

esdm_status
esdm_dataset_set_hint(esdm_dataset *dataset, const char *key, const char *value, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, key);
    bool changed = false;
    esdm_container *container = dataset->group->container;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st == ESDM_OK)
        st = esdm__undo_keep_dataset(dataset, err);
    if (st == ESDM_OK)
        st = esdm__dataset_put_hint(dataset, key, value, &changed, err);
    if (changed)
        esdm__container_changed(container);
    return st;
}

const char *
esdm_dataset_hint(const esdm_dataset *dataset, const char *key)
{
    if (dataset == NULL)
        return NULL;
    const char *stated = esdm__hints_get(&dataset->stated->hints, key);
    bool shape = stated == NULL && key != NULL && strcmp(key, ESDM__HINT_SHAPE) == 0;
    return shape ? esdm__dataset_shape_noted(dataset) : stated;
}

const esdm_dataset *
esdm__container_dataset(const esdm_container *container, uint32_t id)
{
    for (size_t i = 0; i < container->datasets.count; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        if (dataset->id == id)
            return dataset;
    }
    return NULL;
}

char *
esdm__dataset_path(const esdm_dataset *dataset)
{
    size_t bytes = 1 + strlen(dataset->name) + 1;
    for (const esdm_group *group = dataset->group; group->parent != NULL; group = group->parent)
        bytes += 1 + strlen(group->name);
    char *path = malloc(bytes);
    if (path == NULL)
        return NULL;

    char *at = path + bytes - 1;
    const char *name = dataset->name;
    *at = '\0';
    for (const esdm_group *group = dataset->group;; group = group->parent) {
        size_t length = strlen(name);
        at -= length;
        memcpy(at, name, length);
        *--at = '/';
        if (group->parent == NULL)
            return path;
        name = group->name;
    }
}

esdm_status
esdm__dataset_copy_properties(const esdm_dataset *from, esdm_dataset *to, esdm_error *err)
{
    bool standard = true;
    bool changed = false;
    const void *fill = esdm_dataset_fill(from, &standard);
    esdm_status status = standard ? ESDM_OK : esdm_dataset_set_fill(to, fill, err);
    if (status == ESDM_OK && from->stated->chunk != NULL)
        status = esdm_dataset_set_chunk(to, from->stated->chunk, err);
    if (status == ESDM_OK)
        status = esdm__dataset_set_codec_text(to, from->stated->codec, err);
    esdm_accuracy accuracy;
    if (status == ESDM_OK && esdm_dataset_accuracy(from, &accuracy))
        status = esdm__dataset_put_accuracy(to, &accuracy, NULL, err);
    for (size_t i = 0; i < from->stated->hints.count && status == ESDM_OK; i++)
        status = esdm__dataset_put_hint(to, from->stated->hints.items[i].key,
                                        from->stated->hints.items[i].value, &changed, err);
    return status;
}
