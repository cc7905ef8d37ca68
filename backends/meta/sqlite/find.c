/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Queries over attributes, translated to SQL.
 *
 * A dataset meets a condition by its own attribute or, lacking it, by the container's; a condition
 * on the container (variable "") is met by the container's alone. At least one condition must be
 * met by the dataset's own attribute, which also is where the search begins: in the index
 * (name, value). A container is found when its own attributes meet every condition.
 *
 * The column `value` is a number, or the text when there is none; `text` is what else a number can
 * be written as. Numbers sort before texts in SQLite.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/meta_checks.h"
#include "store.h"

static const char pending_table[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE IF NOT EXISTS pending("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, name TEXT NOT NULL,"
    " entry INTEGER NOT NULL, path TEXT, value, text TEXT,"
    " PRIMARY KEY(container, dataset, name, entry)) WITHOUT ROWID;";

/* Parameters of condition i: ?4i+1 attribute, +2 number, +3 text, +4 "/variable". */
enum { ATTRIBUTE = 1, NUMBER, TEXT, VARIABLE, PARAMETERS = 4 };

typedef struct query {
    esdm__buffer sql;
    const char *table; /* that the part being written reads */
    const esdm_meta_condition *conditions;
    size_t nconditions;
} query;

static void
put(query *q, const char *text)
{
    esdm__buffer_put(&q->sql, text, strlen(text));
}

static void
put_parameter(query *q, size_t condition, int which)
{
    char text[32];
    (void) snprintf(text, sizeof text, "?%zu", condition * PARAMETERS + (size_t) which);
    put(q, text);
}

/* Writes a text in which @ stands for the alias and $a $n $t $v for parameters. */
static void
put_pattern(query *q, size_t condition, const char *alias, const char *pattern)
{
    for (; *pattern != '\0'; pattern++) {
        char one[2] = {*pattern, '\0'};
        if (*pattern == '@') {
            put(q, alias);
        } else if (*pattern == '$') {
            pattern++;
            put_parameter(q, condition,
                          *pattern == 'a'   ? ATTRIBUTE
                          : *pattern == 'n' ? NUMBER
                          : *pattern == 't' ? TEXT
                                            : VARIABLE);
        } else {
            put(q, one);
        }
    }
}

/* The comparison alone. */
static const char *
value_pattern(const esdm_meta_condition *condition)
{
    bool number = condition->is_number;
    switch (condition->op) {
    case ESDM_META_EQ:
        return number ? "@.value IN ($n, $t)" : "(@.value = $t OR (@.value < '' AND @.text = $t))";
    case ESDM_META_NE:
        return number ? "@.value <> $n AND @.value IS NOT $t" : "coalesce(@.text, @.value) <> $t";
    case ESDM_META_LT:
        return number ? "@.value < $n" : "@.value < $t AND @.value >= ''";
    case ESDM_META_LE:
        return number ? "@.value <= $n" : "@.value <= $t AND @.value >= ''";
    case ESDM_META_GT:
        return number ? "@.value > $n AND @.value < ''" : "@.value > $t";
    case ESDM_META_GE:
        return number ? "@.value >= $n AND @.value < ''" : "@.value >= $t";
    case ESDM_META_GLOB:
        return "coalesce(@.text, @.value) GLOB $t";
    }
    return "0";
}

static bool
is_for_container(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] == '\0';
}

static bool
names_variable(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] != '\0';
}

static void
put_from(query *q, const char *before, const char *alias)
{
    put(q, before);
    put(q, " FROM ");
    put(q, q->table);
    put(q, " ");
    put(q, alias);
    put(q, " WHERE ");
}

/* EXISTS over one object's attributes: `of` restricts to the object. The unary + keeps SQLite from
 * searching all objects by value. */
static void
put_exists(query *q, size_t i, const char *of, bool with_value)
{
    put_from(q, "EXISTS(SELECT 1", "a");
    put(q, of);
    put_pattern(q, i, "a", " AND @.name = $a");
    if (with_value) {
        put(q, " AND ");
        put_pattern(q, i, "+a", value_pattern(&q->conditions[i]));
    }
    put(q, ")");
}

#define OWN    "a.container = o.container AND a.dataset = o.dataset"
#define GLOBAL "a.container = o.container AND a.dataset = 0"

/* Whether condition i holds for the dataset o. */
static void
put_holds(query *q, size_t i)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    put(q, " AND ");
    if (is_for_container(condition)) {
        put_exists(q, i, GLOBAL, true);
        return;
    }
    if (names_variable(condition))
        put_pattern(q, i, "o", "substr(@.path, -length($v)) = $v AND ");
    put(q, "(");
    put_exists(q, i, OWN, true);
    put(q, " OR (NOT ");
    put_exists(q, i, OWN, false);
    put(q, " AND ");
    put_exists(q, i, GLOBAL, true);
    put(q, "))");
}

/* Datasets that meet some condition by themselves, and all conditions. */
static void
put_datasets(query *q)
{
    const char *joint = "SELECT c.name, o.path FROM (";
    for (size_t i = 0; i < q->nconditions; i++) {
        const esdm_meta_condition *condition = &q->conditions[i];
        if (is_for_container(condition))
            continue;
        put(q, joint);
        put_from(q, "SELECT a.container, a.dataset, a.path", "a");
        put_pattern(q, i, "a", "@.name = $a AND @.dataset <> 0 AND ");
        put_pattern(q, i, "a", value_pattern(condition));
        if (names_variable(condition))
            put_pattern(q, i, "a", " AND substr(@.path, -length($v)) = $v");
        joint = " UNION ";
    }
    put(q, ") o CROSS JOIN main.container c ON c.container = o.container "
           "WHERE c.name IS NOT NULL");
    for (size_t i = 0; i < q->nconditions && q->nconditions > 1; i++)
        put_holds(q, i);
}

/* Containers whose own attributes meet all conditions. */
static void
put_containers(query *q)
{
    put(q, "SELECT c.name, NULL FROM (");
    put_from(q, "SELECT DISTINCT a.container", "a");
    put_pattern(q, 0, "a", "@.name = $a AND @.dataset = 0 AND ");
    put_pattern(q, 0, "a", value_pattern(&q->conditions[0]));
    put(q, ") o CROSS JOIN main.container c ON c.container = o.container "
           "WHERE c.name IS NOT NULL");
    for (size_t i = 1; i < q->nconditions; i++) {
        put(q, " AND ");
        put_exists(q, i, GLOBAL, true);
    }
}

static void
put_query(query *q, bool with_pending)
{
    static const char *const tables[] = {"main.attribute", "temp.pending"};
    bool datasets = false;
    bool containers = true;
    bool first = true;
    for (size_t i = 0; i < q->nconditions; i++) {
        datasets |= !is_for_container(&q->conditions[i]);
        containers &= !names_variable(&q->conditions[i]);
    }
    for (int t = 0; t < 1 + with_pending; t++) {
        q->table = tables[t];
        for (int part = 0; part < 2; part++) {
            if (!(part == 0 ? datasets : containers))
                continue;
            put(q, first ? "" : " UNION ALL ");
            first = false;
            if (part == 0)
                put_datasets(q);
            else
                put_containers(q);
        }
    }
    put(q, " ORDER BY 1, 2");
    esdm__buffer_put_u8(&q->sql, 0);
}

/* ---- running it ----------------------------------------------------------------------------- */

/* Brings the lists of containers that are not in the index into a temporary table. */
static esdm_status
load_pending(sqlite__link *link, bool *ret_any, esdm_error *err)
{
    sqlite3_stmt *pending = NULL;
    sqlite3_stmt *insert = NULL;
    uint64_t indexed = 0;
    bool row = false;
    *ret_any = false;
    esdm_status status = sqlite__attributes_indexed(link, &indexed, err);
    if (status == ESDM_OK)
        status = sqlite__prepare(link, SQLITE__ATTRIBUTE_PENDING, &pending, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, pending, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    int code = sqlite3_prepare_v2(
        link->db,
        "INSERT INTO temp.pending(container, dataset, name, entry, path, value, text) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        -1, &insert, NULL);
    if (code != SQLITE_OK)
        status = sqlite__error(link, code, err);
    while (status == ESDM_OK && row) {
        const void *attributes = sqlite3_column_blob(pending, 1);
        if (attributes != NULL)
            status = sqlite__attributes_insert(link, insert, sqlite__u64(pending, 0), attributes,
                                               (size_t) sqlite3_column_bytes(pending, 1), err);
        *ret_any = true;
        if (status == ESDM_OK)
            status = sqlite__step(link, pending, &row, err);
    }
    if (row)
        (void) sqlite3_reset(pending);
    (void) sqlite3_finalize(insert);
    return status;
}

static esdm_status
bind_condition(sqlite__link *link, sqlite3_stmt *statement, size_t i,
               const esdm_meta_condition *condition, esdm_error *err)
{
    int at = (int) (i * PARAMETERS);
    /* Not every condition uses every parameter: SQLITE_RANGE is then fine for the last ones. */
    int code =
        sqlite3_bind_text(statement, at + ATTRIBUTE, condition->attribute, -1, SQLITE_STATIC);
    if (code == SQLITE_OK && condition->is_number)
        code = sqlite3_bind_double(statement, at + NUMBER, condition->number);
    if (code == SQLITE_OK && condition->text != NULL)
        code = sqlite3_bind_text(statement, at + TEXT, condition->text, -1, SQLITE_STATIC);
    if ((code == SQLITE_OK || code == SQLITE_RANGE) && names_variable(condition)) {
        char *path = sqlite3_mprintf("/%s", condition->variable);
        if (path == NULL)
            return esdm__error_nomem(err, strlen(condition->variable), "a query");
        code = sqlite3_bind_text(statement, at + VARIABLE, path, -1, sqlite3_free);
    }
    if (code == SQLITE_OK || code == SQLITE_RANGE)
        return ESDM_OK;
    return sqlite__error(link, code, err);
}

static esdm_status
run_query(sqlite__link *link, const query *q, esdm_meta_match_visitor visit, void *user,
          esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    int code = sqlite3_prepare_v2(link->db, (const char *) q->sql.data, -1, &statement, NULL);
    esdm_status status = code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++)
        status = bind_condition(link, statement, i, &q->conditions[i], err);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        const char *path = (const char *) sqlite3_column_text(statement, 1);
        if (!visit(sqlite__text(statement, 0), path, user))
            break;
        status = sqlite__step(link, statement, &row, err);
    }
    (void) sqlite3_finalize(statement);
    return status;
}

esdm_status
sqlite__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
             esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->reader;
    query q = {.conditions = conditions, .nconditions = nconditions};
    bool any_pending = false;
    esdm_status status = esdm__check_conditions(conditions, nconditions, err);
    if (status == ESDM_OK)
        status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    esdm__buffer_init(&q.sql);
    status = sqlite__exec(link, pending_table, err);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__BEGIN, err, "");
    if (status == ESDM_OK) {
        status = load_pending(link, &any_pending, err);
        put_query(&q, any_pending);
        if (status == ESDM_OK && q.sql.failed)
            status = esdm__error_nomem(err, q.sql.bytes, "a query");
        if (status == ESDM_OK)
            status = run_query(link, &q, visit, user, err);
        /* Nothing but the temporary table has changed: that is to be empty again. */
        (void) !sqlite__run(link, SQLITE__ROLLBACK, NULL, "");
    }
    sqlite__end_read(store);
    esdm__buffer_clear(&q.sql);
    return status;
}
