/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/meta_checks.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

esdm_status
esdm__check_commit(const esdm_meta_commit *commit, uint64_t container_max, esdm_error *err)
{
    bool update = commit->kind == ESDM_META_UPDATE;
    if (!update && commit->kind != ESDM_META_CREATE && commit->kind != ESDM_META_REPLACE)
        return esdm__error_set(err, ESDM_EINVAL, "commit: unknown kind %d", (int) commit->kind);
    if (!update && (commit->name == NULL || commit->uuid == NULL || commit->document == NULL))
        return esdm__error_set(err, ESDM_EINVAL,
                               "commit: a new container needs a name, a uuid and a document");
    if (!update && strlen(commit->uuid) != ESDM_META_UUID_BYTES - 1)
        return esdm__error_set(err, ESDM_EINVAL, "commit: a uuid has %d digits",
                               ESDM_META_UUID_BYTES - 1);
    if (!update && commit->nmerged > 0)
        return esdm__error_set(err, ESDM_EINVAL, "commit: a new container has no pages to merge");
    if (update && (commit->container == 0 || commit->container > container_max))
        return esdm__error_set(err, ESDM_EINVAL, "commit: there is no record %llu",
                               (unsigned long long) commit->container);
    if (commit->follows != NULL && (!update || commit->follows->container == commit->container))
        return esdm__error_set(err, ESDM_EINVAL, "commit: it follows from no other record");
    return esdm__check_extents(commit->extents, commit->nextents, err);
}

bool
esdm__boxes_meet(uint32_t rank, const uint64_t *a, uint32_t other_rank, const uint64_t *b)
{
    for (uint32_t d = 0; d < rank && rank == other_rank; d++) {
        uint64_t behind = a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
        if (behind >= (a[d] > b[d] ? b[rank + d] : a[rank + d]))
            return false;
    }
    return rank == other_rank;
}

esdm_status
esdm__newer_pages_meet(const esdm_meta_commit *commit, uint64_t newest, esdm_error *err)
{
    if (commit->ret_newer != NULL)
        *commit->ret_newer = newest;
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "record %llu: another writer published pages that may meet these",
                           (unsigned long long) commit->container);
}

esdm_status
esdm__not_followed(const esdm_meta_commit *commit, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "record %llu: record %llu, from which this follows, was changed or "
                           "removed by another writer",
                           (unsigned long long) commit->container,
                           (unsigned long long) commit->follows->container);
}

static esdm_status
check_conditions(const esdm_meta_condition *conditions, size_t count, size_t most, esdm_error *err)
{
    if (count == 0 || count > most)
        return esdm__error_set(err, ESDM_EINVAL, "a query has 1 to %zu comparisons, not %zu", most,
                               count);
    for (size_t i = 0; i < count; i++) {
        if (conditions[i].attribute == NULL ||
            (conditions[i].text == NULL &&
             (!conditions[i].is_number || conditions[i].op == ESDM_META_GLOB)))
            return esdm__error_set(err, ESDM_EINVAL, "comparison %zu has no attribute or no value",
                                   i + 1);
    }
    return ESDM_OK;
}

esdm_status
esdm__check_conditions(const esdm_meta_condition *conditions, size_t count, esdm_error *err)
{
    return check_conditions(conditions, count, ESDM__CONDITIONS_MAX, err);
}

/* Whether the nodes from `at` on, as many as the first one says, are one part; of bounded depth. */
static bool
is_part(const esdm_meta_expression *e, size_t at, size_t end, int depth)
{
    const esdm_meta_node *node = &e->nodes[at];
    if (node->size == 0 || node->size > end - at || depth > ESDM_META_EXPRESSION_DEPTH_MAX)
        return false;
    if (node->kind == ESDM_META_HOLDS || node->kind == ESDM_META_FAILS)
        return node->size == 1 && node->condition < e->nconditions;
    end = at + node->size;
    for (at++; at < end; at += e->nodes[at].size) {
        if (!is_part(e, at, end, depth + 1))
            return false;
    }
    return node->kind == ESDM_META_ALL || node->kind == ESDM_META_ANY;
}

esdm_status
esdm__check_expression(const esdm_meta_expression *expression, esdm_error *err)
{
    size_t count = expression->nnodes;
    esdm_status status = check_conditions(
        expression->conditions, expression->nconditions,
        count > 0 ? ESDM_META_EXPRESSION_CONDITIONS_MAX : ESDM__CONDITIONS_MAX, err);
    if (status == ESDM_OK && count > 0 &&
        (!is_part(expression, 0, count, 0) || expression->nodes[0].size != count))
        status = esdm__error_set(err, ESDM_EINVAL, "the nodes of a query do not join all of it");
    return status;
}

esdm_status
esdm__check_extents(const esdm_meta_extent *extents, size_t count, esdm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const esdm_meta_extent *e = &extents[i];
        if (e->name == NULL || !esdm_meta_is_extent(e->name) ||
            strlen(e->name) > ESDM_META_EXTENT_NAME_MAX ||
            (unsigned) e->how > ESDM_META_EXTENT_IF_FOLLOWED ||
            (e->has_number && isnan(e->number)) ||
            (!e->has_number && e->how != ESDM_META_EXTENT_SET))
            return esdm__error_set(err, ESDM_EINVAL, "extent %zu has no fitting name or no value",
                                   i + 1);
    }
    return ESDM_OK;
}

esdm_status
esdm__check_fact(const char *name, esdm_error *err)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            bytes = 0;
    }
    if (bytes == 0 || bytes > ESDM_META_FACT_NAME_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the name of a fact has 1 to %d printable ASCII characters",
                               ESDM_META_FACT_NAME_MAX);
    return ESDM_OK;
}

bool
esdm__seal_allows_name(const char *from, const char *to)
{
    size_t bytes = to != NULL ? strlen(to) : 0;
    return from == NULL || from[0] == '/' || (to != NULL && strcmp(from, to) == 0) ||
           (bytes > 10 && strncmp(to, "/former/", 8) == 0 && strcmp(to + bytes - 2, "-d") == 0);
}

esdm_status
esdm__check_tag(uint64_t container, uint64_t container_max, const esdm_meta_tag *tag,
                esdm_error *err)
{
    size_t bytes = tag->name != NULL ? strlen(tag->name) : 0;
    if (bytes == 0 || bytes > ESDM_META_TAG_NAME_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "a tag's name has 1 to %d bytes",
                               ESDM_META_TAG_NAME_MAX);
    if (container == 0 || container > container_max || tag->snapshot == 0 ||
        tag->snapshot > UINT32_MAX)
        return esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                               (unsigned long long) container, (unsigned long long) tag->snapshot);
    return ESDM_OK;
}
