/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_META_CHECKS_H
#define ESDM_BASE_META_CHECKS_H

/** @file Arguments that every metadata store refuses, in the same words. Pure functions. */

#include "esdm/sys/meta_store.h"

/** Comparisons in one query. */
#define ESDM__CONDITIONS_MAX 64

/** ESDM_EINVAL for a commit that contradicts itself. @param container_max highest record number. */
esdm_status esdm__check_commit(const esdm_meta_commit *commit, uint64_t container_max,
                               esdm_error *err);

/** ESDM_ECONFLICT of a commit whose pages apart meet newer ones; tells the newest snapshot. */
esdm_status esdm__newer_pages_meet(const esdm_meta_commit *commit, uint64_t newest,
                                   esdm_error *err);

/** ESDM_ECONFLICT of a commit: what it follows from is not what it was. */
esdm_status esdm__not_followed(const esdm_meta_commit *commit, esdm_error *err);

/** Whether two boxes as pages have them (corners, then sizes) have a point in common. */
bool esdm__boxes_meet(uint32_t rank, const uint64_t *a, uint32_t other_rank, const uint64_t *b);

/** ESDM_EINVAL for too few or too many comparisons, or one without attribute or value. */
esdm_status esdm__check_conditions(const esdm_meta_condition *conditions, size_t count,
                                   esdm_error *err);

/** The same for an expression, and for nodes that do not join all others one way. */
esdm_status esdm__check_expression(const esdm_meta_expression *expression, esdm_error *err);

/** ESDM_EINVAL for an extent that has another kind of name, or no value. */
esdm_status esdm__check_extents(const esdm_meta_extent *extents, size_t count, esdm_error *err);

/** ESDM_EINVAL for a fact's name that is empty, too long, or not printable ASCII. */
esdm_status esdm__check_fact(const char *name, esdm_error *err);

/** ESDM_EINVAL for a tag without a name, or with too long a one; ESDM_ENOENT: of no snapshot. */
/** Whether a sealed record may get another name (NULL: none). */
bool esdm__seal_allows_name(const char *from, const char *to);
esdm_status esdm__check_tag(uint64_t container, uint64_t container_max, const esdm_meta_tag *tag,
                            esdm_error *err);

#endif
