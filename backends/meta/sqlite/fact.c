/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Facts: rows of the table `store` whose keys begin with "fact:". */

#include <stdlib.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "store.h"

esdm_status
sqlite__fact_get(void *self, const char *name, char **ret_text, esdm_error *err)
{
    sqlite__store *store = self;
    void *text = NULL;
    size_t bytes = 0;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__value(&store->reader, SQLITE__FACT_GET, &text, &bytes, err, "t", name);
    sqlite__end_read(store);
    if (status == ESDM_OK && text == NULL)
        return esdm__error_set(err, ESDM_ENOENT, "there is no fact '%.200s'", name);
    if (status == ESDM_OK)
        *ret_text = text;
    return status;
}

esdm_status
sqlite__fact_put(void *self, const char *name, const char *text, esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = esdm__check_fact(name, err);
    if (status == ESDM_OK)
        status = sqlite__begin_note(store, false, err);
    if (status != ESDM_OK)
        return status;
    status = text != NULL ? sqlite__run(&store->writer, SQLITE__FACT_PUT, err, "tt", name, text)
                          : sqlite__run(&store->writer, SQLITE__FACT_REMOVE, err, "t", name);
    return sqlite__end_write(store, status, err);
}

typedef struct fact_visit {
    esdm_meta_fact_visitor visit;
    void *user;
} fact_visit;

static bool
visit_fact(sqlite3_stmt *row, void *user)
{
    const fact_visit *asked = user;
    return asked->visit(sqlite__text(row, 0), sqlite__text(row, 1), asked->user);
}

esdm_status
sqlite__fact_list(void *self, const char *prefix, esdm_meta_fact_visitor visit, void *user,
                  esdm_error *err)
{
    fact_visit asked = {visit, user};
    return sqlite__read_rows(self, SQLITE__FACT_LIST, prefix, visit_fact, NULL, &asked, err);
}
