/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Extents: rows of the table `attribute` whose names begin with '@'. They are in no list of
 * a snapshot, and never wait to be entered. */

#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "store.h"

/* Writes of extents that nothing waits for, so many times before somebody looks whether other
 * programs have left containers that wait to be entered into trees. */
#define KEEP_EVERY 16

static esdm_status
bind_one(sqlite__link *link, sqlite3_stmt *statement, int at, uint64_t container,
         const esdm_meta_extent *extent, esdm_error *err)
{
    int code = sqlite3_bind_int64(statement, at, (sqlite3_int64) container);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, at + 1, extent->dataset);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 2, extent->name, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && extent->has_number)
        code = sqlite3_bind_double(statement, at + 3, extent->number);
    else if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, at + 3, extent->text != NULL ? extent->text : "", -1,
                                 SQLITE_STATIC);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
}

/* Puts some by one statement. @param ret_changes rows that are other than before. */
static esdm_status
put_by(sqlite__link *link, sqlite__statement_id id, uint64_t container,
       const esdm_meta_extent *extents, size_t nextents, int *ret_changes, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, id, &statement, err, "");
    for (size_t i = 0; i < nextents && status == ESDM_OK; i++)
        status = bind_one(link, statement, (int) (4 * i) + 1, container, &extents[i], err);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    *ret_changes = status == ESDM_OK ? sqlite3_changes(link->db) : 0;
    return status;
}

/* Each is merged with what is there, also with others of this list. */
static esdm_status
merge(sqlite__link *link, uint64_t container, const esdm_meta_extent *extents, size_t nextents,
      bool *changed, esdm_error *err)
{
    static const sqlite__statement_id statements[] = {
        [ESDM_META_EXTENT_SET] = SQLITE__EXTENT_SET,
        [ESDM_META_EXTENT_LOWER] = SQLITE__EXTENT_LOWER,
        [ESDM_META_EXTENT_UPPER] = SQLITE__EXTENT_UPPER,
        [ESDM_META_EXTENT_IF_FOLLOWED] = SQLITE__EXTENT_SET};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < nextents && status == ESDM_OK; i++) {
        int changes = 0;
        status =
            put_by(link, extents[i].has_number ? statements[extents[i].how] : SQLITE__EXTENT_SET,
                   container, &extents[i], 1, &changes, err);
        *changed |= changes > 0 && sqlite__trees_want(extents[i].name);
    }
    return status;
}

/* A container that has no others gets many by each statement: half of the work. */
static esdm_status
insert(sqlite__link *link, uint64_t container, const esdm_meta_extent *extents, size_t nextents,
       bool *changed, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0, n = 0; i < nextents && status == ESDM_OK; i += n) {
        int changes = 0;
        sqlite__statement_id id = sqlite__rows_statement(SQLITE__EXTENT_INSERT, nextents - i, &n);
        status = put_by(link, id, container, &extents[i], n, &changes, err);
        for (size_t k = i; k < i + n; k++)
            *changed |= sqlite__trees_want(extents[k].name);
        if (status == ESDM_OK && changes < (int) n) /* some are there from this list */
            status = merge(link, container, &extents[i], n, changed, err);
    }
    return status;
}

/* Leaves out what is only for stores with saved queries where there are none: one search. */
static esdm_status
leave_unfollowed(sqlite__link *link, const esdm_meta_extent *extents, size_t *nextents,
                 esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    if (*nextents == 0 || extents[*nextents - 1].how != ESDM_META_EXTENT_IF_FOLLOWED)
        return ESDM_OK;
    esdm_status status =
        sqlite__prepare(link, SQLITE__EXTENT_FIRST, &statement, err, "t", ESDM_META_EXTENT_FOLLOWS);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    bool followed = row && strcmp(sqlite__text(statement, 0), ESDM_META_EXTENT_FOLLOWS) == 0;
    if (row)
        (void) sqlite3_reset(statement);
    *nextents -= !followed;
    return status;
}

esdm_status
sqlite__extents_put(sqlite__link *link, uint64_t container, const esdm_meta_extent *extents,
                    size_t nextents, sqlite__extents_how how, esdm_error *err)
{
    bool changed = false;
    esdm_status status = leave_unfollowed(link, extents, &nextents, err);
    if (status == ESDM_OK && how == SQLITE__EXTENTS_ALL)
        status = sqlite__run(link, SQLITE__EXTENT_DELETE, err, "i", container);
    if (status == ESDM_OK)
        status = how == SQLITE__EXTENTS_SOME
                     ? merge(link, container, extents, nextents, &changed, err)
                     : insert(link, container, extents, nextents, &changed, err);
    if (status == ESDM_OK && changed)
        status = sqlite__trees_note(link, container, err);
    if (status != ESDM_OK || nextents == 0)
        return status;
    /* What older versions leave is looked for now and then, at first by each program. */
    bool looks = changed || link->puts_of_extents % KEEP_EVERY == 0;
    link->puts_of_extents++;
    return looks ? sqlite__trees_keep(link, err) : ESDM_OK;
}

/* ---- operations ----------------------------------------------------------------------------- */

static esdm_status
put(sqlite__store *store, uint64_t container, uint64_t snapshot, const esdm_meta_extent *extents,
    size_t nextents, sqlite__extents_how how, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = esdm__check_extents(extents, nextents, err);
    if (status == ESDM_OK)
        status = sqlite__begin_write(store, false, err);
    if (status != ESDM_OK)
        return status;
    status =
        sqlite__prepare(&store->writer, SQLITE__CONTAINER_STATE, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(&store->writer, statement, &row, err);
    bool newest = row && sqlite__u64(statement, 1) == snapshot;
    if (row)
        (void) sqlite3_reset(statement);
    if (status == ESDM_OK && !newest)
        status = esdm__error_set(err, ESDM_ECONFLICT,
                                 "record %llu has another newest snapshot than %llu",
                                 (unsigned long long) container, (unsigned long long) snapshot);
    if (status == ESDM_OK)
        status = sqlite__extents_put(&store->writer, container, extents, nextents, how, err);
    return sqlite__end_write(store, status, err);
}

esdm_status
sqlite__extent_put(void *self, uint64_t container, uint64_t snapshot,
                   const esdm_meta_extent *extents, size_t nextents, esdm_error *err)
{
    return put(self, container, snapshot, extents, nextents, SQLITE__EXTENTS_ALL, err);
}

esdm_status
sqlite__extent_merge(void *self, uint64_t container, uint64_t snapshot,
                     const esdm_meta_extent *extents, size_t nextents, esdm_error *err)
{
    return put(self, container, snapshot, extents, nextents, SQLITE__EXTENTS_SOME, err);
}

esdm_status
sqlite__extent_list(void *self, uint64_t container, esdm_meta_extent_visitor visit, void *user,
                    esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->reader;
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__prepare(link, SQLITE__EXTENT_LIST, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        bool is_text = sqlite3_column_int(statement, 3) != 0;
        esdm_meta_extent extent = {.dataset = (uint32_t) sqlite__u64(statement, 0),
                                   .name = sqlite__text(statement, 1),
                                   .has_number = !is_text,
                                   .number = is_text ? 0 : sqlite3_column_double(statement, 2),
                                   .text = is_text ? sqlite__text(statement, 2) : NULL};
        if (!visit(&extent, user))
            break;
        status = sqlite__step(link, statement, &row, err);
    }
    if (status == ESDM_OK && row)
        (void) sqlite3_reset(statement);
    sqlite__end_read(store);
    return status;
}

/* One search in the index for each name. */
esdm_status
sqlite__extent_names(void *self, const char *prefix, esdm_meta_name_visitor visit, void *user,
                     esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->reader;
    char last[ESDM_META_EXTENT_NAME_MAX + 1];
    size_t bytes = strlen(prefix);
    if (bytes == 0 || prefix[0] != '@' || bytes >= sizeof last)
        return esdm__error_set(err, ESDM_EINVAL, "'%.80s' begins no name of an extent", prefix);
    /* The greatest name before those that begin with the prefix: it is never one itself. */
    memcpy(last, prefix, bytes + 1);
    bool more = true, first = true;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    while (status == ESDM_OK && more) {
        sqlite3_stmt *statement = NULL;
        status = sqlite__prepare(link, first ? SQLITE__EXTENT_FIRST : SQLITE__EXTENT_NEXT,
                                 &statement, err, "t", last);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &more, err);
        if (status != ESDM_OK || !more)
            break;
        const char *name = sqlite__text(statement, 0);
        more = strncmp(name, prefix, bytes) == 0 && strlen(name) < sizeof last;
        if (more) {
            memcpy(last, name, strlen(name) + 1);
            more = visit(last, user);
        }
        (void) sqlite3_reset(statement);
        first = false;
    }
    sqlite__end_read(store);
    return status;
}
