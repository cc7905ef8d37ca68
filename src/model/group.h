/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_GROUP_H
#define ESDM_MODEL_GROUP_H

/**
 * @file
 * The members of a group: child groups, datasets and types share one namespace, hence one table,
 * whose numbers are 4*index + kind.
 */

#include "model/container.h"

enum { ESDM__MEMBER_GROUP, ESDM__MEMBER_DATASET, ESDM__MEMBER_TYPE };

/** Most groups, dimensions, datasets or types of a container: four times their numbers fit 32
 *  bits. */
#define ESDM__OBJECTS_MAX ((size_t) INT32_MAX / 2)

/** The child of that kind, else NULL. Borrowed. */
void *esdm__group_member(const esdm_group *group, const char *name, uint32_t kind);
/** ESDM_EINVAL for a wrong name of a `what`, ESDM_EEXIST when a child has it. */
esdm_status esdm__group_check_free(const esdm_group *group, const char *name, uint32_t hash,
                                   const char *what, esdm_error *err);
/** Enters child `index` of that kind; room was reserved. */
void esdm__group_add_member(esdm_group *group, uint32_t hash, uint32_t index, uint32_t kind);
/** Whether it belongs to the group or to one of those above it. */
bool esdm__dimension_is_visible(const esdm_dimension *dimension, const esdm_group *group);
/** Renames the child `index` of that kind, whose name is *object_name (owned).
 *  @param apart  whether that is a piece of memory of its own, as it is then; NULL: it always is.
 */
esdm_status esdm__group_rename_member(esdm_group *group, const char *name, uint32_t kind,
                                      uint32_t index, char **object_name, bool *apart,
                                      esdm_error *err);

#endif
