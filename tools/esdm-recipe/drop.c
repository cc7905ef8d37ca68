/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Lets values go that a recipe computes again: what is left refers to the recipe, as to a file. */
#include "esdm-recipe/esdm-recipe.h"

#include <string.h>

#include "esdm/reference.h"

/* Smaller variables, coordinates among them, stay: what is found by time and place stays so. */
#define STAYS_BYTES 65536

static guint64
bytes_of(const esdm_dataset *dataset)
{
    guint64 bytes = esdm_type_size(esdm_dataset_type(dataset));
    for (uint32_t i = 0; i < esdm_dataset_rank(dataset); i++)
        bytes *= esdm_dimension_length(esdm_dataset_dimension(dataset, i));
    return bytes;
}

static bool
is_droppable(const esdm_dataset *dataset)
{
    return bytes_of(dataset) > STAYS_BYTES && esdm_dataset_type(dataset) < ESDM_TYPE_STRING;
}

static esdm_status
drop_dataset(esdm_dataset *dataset, guint64 *bytes, esdm_error *err)
{
    guint64 own = bytes_of(dataset);
    esdm_file_part part = {.bytes = own};
    const esdm_file_layout layout = {.location = ESDM_RECIPE_LOCATION, .bytes = own};
    if (!is_droppable(dataset))
        return ESDM_OK;
    for (uint32_t i = 0; i < esdm_dataset_rank(dataset); i++)
        part.size[i] = esdm_dimension_length(esdm_dataset_dimension(dataset, i));
    *bytes += own;
    return esdm_dataset_refer(dataset, &layout, &part, 1, err);
}

static esdm_status
drop_group(esdm_group *group, guint64 *bytes, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (size_t i = 0; st == ESDM_OK && i < esdm_group_dataset_count(group); i++)
        st = drop_dataset(esdm_group_dataset_at(group, i), bytes, err);
    for (size_t i = 0; st == ESDM_OK && i < esdm_group_count(group); i++)
        st = drop_group(esdm_group_at(group, i), bytes, err);
    return st;
}

static bool
has_droppable(esdm_group *group)
{
    bool found = false;
    for (size_t i = 0; !found && i < esdm_group_dataset_count(group); i++)
        found = is_droppable(esdm_group_dataset_at(group, i));
    for (size_t i = 0; !found && i < esdm_group_count(group); i++)
        found = has_droppable(esdm_group_at(group, i));
    return found;
}

tool_exit
recipe_find_droppable(esdm_session *session, const char *name, bool *ret_some)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    *ret_some = false;
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    *ret_some = has_droppable(esdm_container_root(container));
    esdm_container_discard(container);
    return TOOL_OK;
}

tool_exit
recipe_drop_values(esdm_session *session, const char *name, guint64 *ret_bytes)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    *ret_bytes = 0;
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (st == ESDM_OK)
        st = drop_group(esdm_container_root(container), ret_bytes, &err);
    if (st == ESDM_OK && *ret_bytes > 0)
        st = esdm_container_set_hint(container, "recipe-dropped", "1", &err);
    if (st == ESDM_OK && *ret_bytes > 0)
        st = esdm_container_commit(container, "esdm-recipe drop", &err);
    if (container != NULL && st != ESDM_OK)
        esdm_container_discard(container);
    else if (container != NULL)
        st = esdm_container_close(container, &err);
    return st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
}

bool
recipe_is_dropped(esdm_session *session, const char *name)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            &err) != ESDM_OK)
        return false;
    bool dropped = esdm_container_hint(container, "recipe-dropped") != NULL;
    esdm_container_discard(container);
    return dropped;
}
