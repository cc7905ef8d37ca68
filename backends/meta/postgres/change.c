/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Removing and moving containers; garbage. */

#include <string.h>

#include "base/error.h"
#include "postgres.h"

/* Runs a change whose parameters are complete, and clears them. Its result is one number.
 * @param keep_as the name that the container `name` gets before; NULL: none. @param seen what the
 * container `name` must be then; NULL: anything. */
static esdm_status
run_change(postgres__store *store, postgres__statement id, postgres__params *params,
           const char *name, const char *keep_as, const esdm_meta_seen *seen, uint64_t *ret_number,
           esdm_error *err)
{
    postgres__transaction all = {
        .id = id, .params = params, .name = name, .keep_as = keep_as, .seen = seen};
    esdm_status status = postgres__enter_write(store, err);
    if (status == ESDM_OK) {
        postgres__pins_sink(store);
        status = keep_as != NULL || seen != NULL
                     ? postgres__transact(store, &all, err)
                     : postgres__run(store, id, params, &all.result, err);
        postgres__leave(store);
    }
    if (status == ESDM_OK && all.kept != 0)
        *ret_number = all.kept;
    else if (status == ESDM_OK)
        postgres__u64s(all.result, 0, 0, ret_number, 1);
    else if (postgres__params_repeated(params))
        (void) esdm__error_prefix(err, status,
                                  "the connection was lost: the change may have taken place or "
                                  "not");
    PQclear(all.result);
    postgres__params_clear(params);
    return status;
}

esdm_status
postgres__container_remove(void *self, const char *name, uint64_t *ret_container, esdm_error *err)
{
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    postgres__put_token(&params, token);
    postgres__put_string(&params, name);
    return run_change(self, POSTGRES__CONTAINER_REMOVE, &params, NULL, NULL, NULL, ret_container,
                      err);
}

static esdm_status
move(postgres__store *store, const char *from, const char *to, bool replace, const char *keep_as,
     const esdm_meta_seen *seen, uint64_t *ret_replaced, esdm_error *err)
{
    bool keeps = replace && keep_as != NULL && strcmp(from, to) != 0;
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    postgres__put_token(&params, token);
    postgres__put_string(&params, from);
    postgres__put_string(&params, to);
    postgres__put_bool(&params, replace && !keeps);
    return run_change(store, POSTGRES__CONTAINER_MOVE, &params, to, keeps ? keep_as : NULL, seen,
                      ret_replaced, err);
}

esdm_status
postgres__container_move(void *self, const char *from, const char *to, bool replace,
                         const char *keep_as, uint64_t *ret_replaced, esdm_error *err)
{
    return move(self, from, to, replace, keep_as, NULL, ret_replaced, err);
}

esdm_status
postgres__container_move_seen(void *self, const char *from, const char *to, const char *keep_as,
                              const esdm_meta_seen *seen, uint64_t *ret_replaced, esdm_error *err)
{
    return move(self, from, to, true, keep_as, seen, ret_replaced, err);
}

esdm_status
postgres__forget(void *self, uint64_t container, esdm_error *err)
{
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    uint64_t forgotten = 0;
    if (container == 0 || container > POSTGRES__CONTAINER_MAX)
        return esdm__error_set(err, ESDM_ECONFLICT, "record %llu is not garbage",
                               (unsigned long long) container);
    esdm_status status = postgres__fact_forget(self, container, err); /* nothing depends on them */
    if (status != ESDM_OK)
        return status;
    postgres__put_token(&params, token);
    postgres__put_int(&params, container);
    return run_change(self, POSTGRES__FORGET, &params, NULL, NULL, NULL, &forgotten, err);
}

esdm_status
postgres__garbage(void *self, esdm_meta_garbage_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    esdm_status status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__pins_sink(store);
    status = postgres__run(store, POSTGRES__GARBAGE, NULL, &result, err);
    postgres__leave(store);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        if (!visit(postgres__u64(result, row, 0), postgres__text(result, row, 1), user))
            break;
    }
    PQclear(result);
    return status;
}
