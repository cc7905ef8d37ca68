/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Some attributes of many containers. */

#include <string.h>

#include "base/error.h"
#include "store.h"

typedef struct reading {
    sqlite__link *link;
    const char *const *names; /* of attributes */
    size_t nnames;
    size_t container; /* which of those that were asked for */
    esdm_meta_value_visitor visit;
    void *user;
    bool more;
} reading;

/* A number is written as its text, unless it has another one. */
static bool
visit_row(reading *r, sqlite3_stmt *row, const char *name)
{
    bool is_text = sqlite3_column_type(row, 2) == SQLITE_TEXT;
    const char *text = sqlite__text(row, sqlite3_column_type(row, 3) == SQLITE_NULL ? 2 : 3);
    const esdm_meta_attribute attribute = {
        .dataset = (uint32_t) sqlite__u64(row, 0),
        .dataset_path = sqlite3_column_type(row, 1) == SQLITE_NULL ? NULL : sqlite__text(row, 1),
        .name = name,
        .text = text,
        .number = is_text ? 0 : sqlite3_column_double(row, 2),
        .has_number = !is_text};
    r->more = r->visit(r->container, &attribute, r->user);
    return r->more;
}

static esdm_status
visit_indexed(reading *r, uint64_t container, bool datasets, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < r->nnames && status == ESDM_OK && r->more; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        status = sqlite__prepare(r->link, datasets ? SQLITE__VALUES_ALL : SQLITE__VALUES_GLOBAL,
                                 &statement, err, "it", container, r->names[i]);
        if (status == ESDM_OK)
            status = sqlite__step(r->link, statement, &row, err);
        while (status == ESDM_OK && row && visit_row(r, statement, r->names[i]))
            status = sqlite__step(r->link, statement, &row, err);
        if (status == ESDM_OK && row)
            (void) sqlite3_reset(statement);
    }
    return status;
}

static bool
visit_listed(const esdm_meta_attribute *attribute, void *user)
{
    reading *r = user;
    for (size_t i = 0; i < r->nnames && r->more; i++) {
        if (strcmp(attribute->name, r->names[i]) == 0)
            r->more = r->visit(r->container, attribute, r->user);
    }
    return r->more;
}

/* Of a container whose list was not entered yet. */
static esdm_status
visit_pending(reading *r, uint64_t container, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(r->link, SQLITE__ATTRIBUTE_LIST, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(r->link, statement, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
        status = sqlite__attributes_visit(r->link, container, sqlite3_column_blob(statement, 0),
                                          (size_t) sqlite3_column_bytes(statement, 0), visit_listed,
                                          r, err);
    (void) sqlite3_reset(statement);
    return status;
}

static esdm_status
visit_container(reading *r, const char *name, uint64_t indexed, bool datasets, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(r->link, SQLITE__VALUES_CONTAINER, &statement, err, "t", name);
    if (status == ESDM_OK)
        status = sqlite__step(r->link, statement, &row, err);
    if (status != ESDM_OK || !row) /* it was removed meanwhile */
        return status;
    uint64_t container = sqlite__u64(statement, 0);
    (void) sqlite3_reset(statement);
    return container > indexed ? visit_pending(r, container, err)
                               : visit_indexed(r, container, datasets, err);
}

esdm_status
sqlite__values(void *self, const char *const *containers, size_t ncontainers,
               const char *const *names, size_t nnames, bool datasets,
               esdm_meta_value_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    uint64_t indexed = 0;
    reading r = {.link = &store->reader,
                 .names = names,
                 .nnames = nnames,
                 .visit = visit,
                 .user = user,
                 .more = true};
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__begin_question(store, err);
    if (status == ESDM_OK) {
        status = sqlite__attributes_indexed(r.link, &indexed, err);
        for (size_t i = 0; i < ncontainers && status == ESDM_OK && r.more; i++) {
            r.container = i;
            status = visit_container(&r, containers[i], indexed, datasets, err);
        }
        sqlite__end_question(store, status);
    }
    sqlite__end_read(store);
    return status;
}
