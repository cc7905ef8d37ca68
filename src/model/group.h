/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_GROUP_H
#define ESDM_MODEL_GROUP_H

/**
 * @file
 * The members of a group: child groups and datasets share one namespace, hence one table, whose
 * numbers are 2*index + kind. Used by group.c and dataset.c alone.
 */

#include "model/container.h"

enum { ESDM__MEMBER_GROUP = 0, ESDM__MEMBER_DATASET = 1 };

/** Most groups, dimensions or datasets of a container: their numbers and twice them fit 32 bits. */
#define ESDM__OBJECTS_MAX ((size_t) INT32_MAX)

/** The child of that kind, else NULL. Borrowed. */
void *esdm__group_member(const esdm_group *group, const char *name, uint32_t kind);
/** ESDM_EINVAL for a wrong name of a `what`, ESDM_EEXIST when a child has it. */
esdm_status esdm__group_check_free(const esdm_group *group, const char *name, uint32_t hash,
                                   const char *what, esdm_error *err);
/** Renames the child `index` of that kind, whose name is *object_name (owned). */
esdm_status esdm__group_rename_member(esdm_group *group, const char *name, uint32_t kind,
                                      uint32_t index, char **object_name, esdm_error *err);

#endif
