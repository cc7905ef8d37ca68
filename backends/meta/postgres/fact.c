/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Facts: rows of the table `store` whose keys begin with "fact:". Doing a change twice is as
 * good as once, so that a lost connection does not matter.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "postgres.h"

esdm_status
postgres__fact_get(void *self, const char *name, char **ret_text, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    char *text = NULL;
    postgres__put_escaped(&params, name);
    esdm_status status = postgres__ask(self, POSTGRES__FACT_GET, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 0)
        status = esdm__error_set(err, ESDM_ENOENT, "there is no fact '%.200s'", name);
    if (status == ESDM_OK) {
        text = strdup(PQgetvalue(result, 0, 0));
        if (text == NULL)
            status = esdm__error_nomem(err, 1, "a fact");
    }
    PQclear(result);
    if (status == ESDM_OK) {
        postgres__restore_text(text);
        *ret_text = text;
    }
    return status;
}

esdm_status
postgres__fact_put(void *self, const char *name, const char *text, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    esdm_status status = esdm__check_fact(name, err);
    if (status == ESDM_OK)
        status = postgres__enter_note(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_escaped(&params, name);
    if (text != NULL)
        postgres__put_escaped(&params, text);
    postgres__put_bool(&params, store->config->migrating);
    status = postgres__run(store, text != NULL ? POSTGRES__FACT_PUT : POSTGRES__FACT_REMOVE,
                           &params, &result, err);
    postgres__leave(store);
    if (status == ESDM_OK && PQntuples(result) == 0)
        status = esdm__error_set(err, ESDM_EACCES, "metadata store '%.200s' is being migrated",
                                 store->config->label);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

esdm_status
postgres__fact_list(void *self, const char *prefix, esdm_meta_fact_visitor visit, void *user,
                    esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_escaped(&params, prefix);
    esdm_status status = postgres__ask(self, POSTGRES__FACT_LIST, &params, &result, err);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *name = PQgetvalue(result, row, 0);
        char *text = PQgetvalue(result, row, 1);
        postgres__restore_text(name);
        postgres__restore_text(text);
        if (!visit(name, text, user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__fact_forget(postgres__store *store, uint64_t container, esdm_error *err)
{
    postgres__params params = {0};
    esdm_status status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_int(&params, container);
    status = postgres__run(store, POSTGRES__FACT_FORGET, &params, NULL, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    return status;
}
