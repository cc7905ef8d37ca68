/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Records that begin as a copy of another one and share its packs; names of snapshots. */

#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "postgres.h"

/* ---- clones --------------------------------------------------------------------------------- */

/* The parameters of clone(). What is kept under another name has no name when it runs. */
static esdm_status
put_clone(postgres__params *params, const esdm_meta_clone *clone, char token[ESDM_META_UUID_BYTES],
          esdm_error *err)
{
    postgres__put_token(params, token);
    postgres__put_int(params, clone->container);
    postgres__put_int(params, clone->snapshot);
    postgres__put_string(params, clone->name);
    postgres__put_string(params, clone->uuid);
    postgres__put_bool(params, clone->replace && clone->keep_as == NULL);
    postgres__put_escaped(params, clone->writer);
    postgres__put_escaped(params, clone->message);
    postgres__put_bool(params, clone->durable);
    return postgres__put_objects(params, clone->attributes, clone->nattributes, err);
}

static esdm_status
run_clone(postgres__store *store, postgres__transaction *all, esdm_error *err)
{
    esdm_status status = postgres__check_format(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__pins_sink(store);
    status = all->keep_as != NULL ? postgres__transact(store, all, err)
                                  : postgres__run(store, all->id, all->params, &all->result, err);
    if (status != ESDM_OK && postgres__params_repeated(all->params))
        (void) esdm__error_prefix(err, status,
                                  "the connection was lost: the clone may have been made or not");
    return status;
}

esdm_status
postgres__clone(void *self, const esdm_meta_clone *clone, esdm_meta_committed *ret_committed,
                esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    postgres__transaction all = {.id = POSTGRES__CLONE,
                                 .params = &params,
                                 .name = clone->name,
                                 .keep_as = clone->replace ? clone->keep_as : NULL};
    bool sane = clone->container <= POSTGRES__CONTAINER_MAX && clone->snapshot <= POSTGRES__LOW_MAX;
    esdm_status status =
        sane ? put_clone(&params, clone, token, err)
             : esdm__error_set(err, ESDM_ENOENT, "container '%.300s' has no snapshot %llu",
                               clone->from, (unsigned long long) clone->snapshot);
    if (status == ESDM_OK)
        status = postgres__enter_commit(store, clone->durable, err);
    if (status == ESDM_OK) {
        status = run_clone(store, &all, err);
        if (status == ESDM_OK)
            postgres__note_commit(store, token);
        postgres__leave(store);
    }
    if (status == ESDM_OK) {
        postgres__read_committed(all.result, ret_committed);
        ret_committed->replaced = all.kept != 0 ? all.kept : ret_committed->replaced;
    }
    postgres__params_clear(&params);
    PQclear(all.result);
    return status == ESDM_OK || status == ESDM_EEXIST
               ? status
               : esdm__error_prefix(err, status, "clone of container '%.200s'", clone->from);
}

/* An older store has no such rows; another program may have upgraded it since it was opened. */
static esdm_status
has_rows(postgres__store *store, bool *ret_has, esdm_error *err)
{
    static const char question[] = "SELECT to_regclass('{S}.tag') IS NOT NULL";
    PGresult *result = NULL;
    *ret_has = store->format >= POSTGRES__FORMAT_SHARED;
    if (*ret_has)
        return ESDM_OK;
    esdm_status status = postgres__query(store, question, NULL, &result, err);
    *ret_has = status == ESDM_OK && postgres__bool(result, 0, 0);
    PQclear(result);
    return status;
}

/* Asks for rows that an older store has none of: then the result is NULL. Clears the parameters. */
static esdm_status
ask_rows(postgres__store *store, postgres__statement id, postgres__params *params,
         PGresult **ret_result, esdm_error *err)
{
    bool has = false;
    esdm_status status = postgres__enter(store, err);
    if (status == ESDM_OK) {
        status = has_rows(store, &has, err);
        if (status == ESDM_OK && has)
            status = postgres__run(store, id, params, ret_result, err);
        postgres__leave(store);
    }
    postgres__params_clear(params);
    return status;
}

static esdm_status
list_shared(postgres__store *store, postgres__statement id, postgres__params *params,
            esdm_meta_shared_visitor visit, void *user, esdm_error *err)
{
    PGresult *result = NULL;
    esdm_status status = ask_rows(store, id, params, &result, err);
    int rows = status == ESDM_OK && result != NULL ? PQntuples(result) : 0;
    for (int row = 0; row < rows; row++) {
        if (!visit(postgres__text(result, row, 0), postgres__u64(result, row, 1), user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__share(void *self, uint64_t container, uint64_t other, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    uint64_t named = 0;
    if (container == other)
        return ESDM_OK;
    postgres__put_int(&params, container);
    postgres__put_int(&params, other);
    esdm_status status = postgres__enter_write(store, err);
    if (status == ESDM_OK) {
        postgres__pins_sink(store);
        status = postgres__check_format(store, err);
        if (status == ESDM_OK)
            status = postgres__run(store, POSTGRES__SHARE, &params, &result, err);
        if (status == ESDM_OK)
            named = postgres__u64(result, 0, 0);
        postgres__leave(store);
    }
    postgres__params_clear(&params);
    PQclear(result);
    if (status == ESDM_OK && named != 2)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "record %llu or %llu was removed or replaced meanwhile",
                               (unsigned long long) container, (unsigned long long) other);
    return status;
}

esdm_status
postgres__shared_list(void *self, uint64_t container, esdm_meta_shared_visitor visit, void *user,
                      esdm_error *err)
{
    postgres__params params = {0};
    if (container == 0)
        return list_shared(self, POSTGRES__SHARED_LIST, &params, visit, user, err);
    postgres__put_int(&params, container);
    return list_shared(self, POSTGRES__SHARED_LIST_OF, &params, visit, user, err);
}

esdm_status
postgres__shared_of(void *self, const char *uuid, esdm_meta_shared_visitor visit, void *user,
                    esdm_error *err)
{
    postgres__params params = {0};
    postgres__put_string(&params, uuid);
    return list_shared(self, POSTGRES__SHARED_LIST_UUID, &params, visit, user, err);
}

/* ---- tags ----------------------------------------------------------------------------------- */

/* Clears the parameters. @param ret_result may be NULL. */
static esdm_status
change_tag(postgres__store *store, postgres__statement id, postgres__params *params,
           PGresult **ret_result, esdm_error *err)
{
    esdm_status status = postgres__enter_write(store, err);
    if (status == ESDM_OK) {
        postgres__pins_sink(store);
        status = postgres__check_format(store, err);
        if (status == ESDM_OK)
            status = postgres__run(store, id, params, ret_result, err);
        postgres__leave(store);
    }
    if (status != ESDM_OK && postgres__params_repeated(params))
        (void) esdm__error_prefix(
            err, status, "the connection was lost: the change may have taken place or not");
    postgres__params_clear(params);
    return status;
}

/* A tag that only moves to newer snapshots. */
static esdm_status
raise_tag(postgres__store *store, uint64_t container, const esdm_meta_tag *tag, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_int(&params, container);
    postgres__put_escaped(&params, tag->name);
    postgres__put_int(&params, tag->snapshot);
    postgres__put_int(&params, tag->created_ns);
    postgres__put_escaped(&params, tag->author);
    esdm_status status = change_tag(store, POSTGRES__TAG_RAISE, &params, &result, err);
    if (status == ESDM_OK && postgres__u64(result, 0, 0) == 0)
        status =
            esdm__error_set(err, ESDM_ENOENT, "record %llu has no snapshot %llu",
                            (unsigned long long) container, (unsigned long long) tag->snapshot);
    PQclear(result);
    return status;
}

esdm_status
postgres__tag_set(void *self, uint64_t container, const esdm_meta_tag *tag, bool replace,
                  esdm_error *err)
{
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    esdm_status status = esdm__check_tag(container, POSTGRES__CONTAINER_MAX, tag, err);
    if (status != ESDM_OK)
        return status;
    /* A seal is on the newest snapshot, which set_tag() looks at. */
    if (replace && tag->only_newer && strcmp(tag->name, ESDM_META_TAG_SEAL) != 0)
        return raise_tag(self, container, tag, err);
    postgres__put_token(&params, token);
    postgres__put_int(&params, container);
    postgres__put_escaped(&params, tag->name);
    postgres__put_int(&params, tag->snapshot);
    postgres__put_int(&params, tag->created_ns);
    postgres__put_escaped(&params, tag->author);
    postgres__put_bool(&params, replace);
    return change_tag(self, POSTGRES__TAG_SET, &params, NULL, err);
}

esdm_status
postgres__tag_remove(void *self, uint64_t container, const char *name, esdm_error *err)
{
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    postgres__put_token(&params, token);
    postgres__put_int(&params, container);
    postgres__put_escaped(&params, name);
    return change_tag(self, POSTGRES__TAG_REMOVE, &params, NULL, err);
}

esdm_status
postgres__tag_list(void *self, uint64_t container, esdm_meta_tag_visitor visit, void *user,
                   esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_int(&params, container);
    esdm_status status = ask_rows(self, POSTGRES__TAG_LIST, &params, &result, err);
    int rows = status == ESDM_OK && result != NULL ? PQntuples(result) : 0;
    for (int row = 0; row < rows; row++) {
        postgres__restore_text(PQgetvalue(result, row, 0));
        postgres__restore_text(PQgetvalue(result, row, 3));
        esdm_meta_tag tag = {.name = postgres__text(result, row, 0),
                             .snapshot = postgres__u64(result, row, 1),
                             .created_ns = postgres__u64(result, row, 2),
                             .author = postgres__text(result, row, 3)};
        if (!visit(&tag, user))
            break;
    }
    PQclear(result);
    return status;
}
