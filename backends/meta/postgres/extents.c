/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Extents: the table `extent`. Writing them twice is as good as once. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "postgres.h"

void
postgres__put_extents(postgres__params *params, const esdm_meta_extent *extents, size_t count)
{
    esdm__buffer text;
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < count; i++)
        postgres__array_int(params, extents[i].dataset);
    postgres__array_end(params);
    for (int column = 0; column < 3; column++) { /* name, number, text */
        postgres__array_begin(params, POSTGRES__TEXTS);
        for (size_t i = 0; i < count; i++) {
            const esdm_meta_extent *e = &extents[i];
            char number[40];
            if ((column == 1) != e->has_number && column != 0) {
                postgres__array_null(params);
                continue;
            }
            esdm__buffer_init(&text);
            (void) snprintf(number, sizeof number, "%.17g", e->number);
            postgres__put_text(&text, column == 0       ? e->name
                                      : column == 1     ? number
                                      : e->text != NULL ? e->text
                                                        : "");
            params->memory.failed |= text.failed;
            postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
            esdm__buffer_clear(&text);
        }
        postgres__array_end(params);
    }
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < count; i++)
        postgres__array_int(params, extents[i].how);
    postgres__array_end(params);
}

static esdm_status
need_table(const postgres__store *store, esdm_error *err)
{
    if (store->has_extents)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "metadata store '%.200s' has no index of times, boxes and values that "
                           "this user may use: the first change that the owner of its tables makes "
                           "upgrades it, then esdm-mkfs --reindex fills it",
                           store->config->label);
}

esdm_status
postgres__need_extents(postgres__store *store, esdm_error *err)
{
    postgres__failure failure;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__connect(store, &failure, err);
    if (status == ESDM_OK)
        status = need_table(store, err);
    postgres__leave(store);
    return status;
}

static esdm_status
put(postgres__store *store, uint64_t container, uint64_t snapshot, const esdm_meta_extent *extents,
    size_t nextents, bool all, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__failure failure;
    esdm_status status = esdm__check_extents(extents, nextents, err);
    if (status == ESDM_OK)
        status = postgres__enter_commit(store, false, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__connect(store, &failure, err);
    if (status == ESDM_OK)
        status = need_table(store, err);
    if (status != ESDM_OK) {
        postgres__leave(store);
        return status;
    }
    postgres__put_int(&params, container);
    postgres__put_int(&params, snapshot);
    postgres__put_extents(&params, extents, nextents);
    postgres__put_bool(&params, all);
    status = postgres__run(store, POSTGRES__EXTENT_PUT, &params, &result, err);
    postgres__leave(store);
    if (status == ESDM_OK && PQntuples(result) == 0)
        status = esdm__error_set(err, ESDM_ECONFLICT,
                                 "record %llu has another newest snapshot than %llu",
                                 (unsigned long long) container, (unsigned long long) snapshot);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

esdm_status
postgres__extent_put(void *self, uint64_t container, uint64_t snapshot,
                     const esdm_meta_extent *extents, size_t nextents, esdm_error *err)
{
    return put(self, container, snapshot, extents, nextents, true, err);
}

esdm_status
postgres__extent_merge(void *self, uint64_t container, uint64_t snapshot,
                       const esdm_meta_extent *extents, size_t nextents, esdm_error *err)
{
    return put(self, container, snapshot, extents, nextents, false, err);
}

esdm_status
postgres__extent_list(void *self, uint64_t container, esdm_meta_extent_visitor visit, void *user,
                      esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    esdm_status status = postgres__need_extents(self, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_int(&params, container);
    status = postgres__ask(self, POSTGRES__EXTENT_LIST, &params, &result, err);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *name = PQgetvalue(result, row, 1);
        char *text = PQgetvalue(result, row, 3);
        postgres__restore_text(name);
        postgres__restore_text(text);
        bool is_text = PQgetisnull(result, row, 2);
        esdm_meta_extent extent = {.dataset = (uint32_t) postgres__u64(result, row, 0),
                                   .name = name,
                                   .has_number = !is_text,
                                   .number = is_text ? 0 : postgres__double(result, row, 2),
                                   .text = is_text ? text : NULL};
        if (!visit(&extent, user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__extent_names(void *self, const char *prefix, esdm_meta_name_visitor visit, void *user,
                       esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    if (prefix[0] != '@')
        return esdm__error_set(err, ESDM_EINVAL, "'%.80s' begins no name of an extent", prefix);
    esdm_status status = postgres__need_extents(self, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_escaped(&params, prefix);
    status = postgres__ask(self, POSTGRES__EXTENT_NAMES, &params, &result, err);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *name = PQgetvalue(result, row, 0);
        postgres__restore_text(name);
        if (!visit(name, user))
            break;
    }
    PQclear(result);
    return status;
}
