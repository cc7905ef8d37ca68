/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Containers in the order of the values of an attribute. There is no index in that order: the
 * server goes through the objects that have the attribute, and keeps the first ones. That takes two
 * microseconds an object, where handing all of them out would take fifty.
 *
 * What a row shows is compared, so several values have their place by their text. Texts with bytes
 * that are no UTF-8, which are stored as other characters, have none: they come beforehand.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"
#include "postgres.h"

/* "… WITH TIES" */
#define OLDEST_SERVER 130000
/* Going through all again costs more than so many containers more. */
#define AT_LEAST    1024
#define TIMES_MORE  8
#define MOST_AT_ONE 1000000
/* More that have one value are left to who asks for all. */
#define MOST_TIES 100000

/* $1: the attribute. */
static const char values[] =
    "SELECT y.container, y.number, y.text, octet_length(y.text) <> length(y.text) "
    "AND y.text ~ '[\\U0010FF80-\\U0010FFFF]' AS odd FROM (SELECT z.container, "
    "CASE WHEN z.n > 1e309 THEN 'Infinity'::float8 WHEN z.n < -1e309 THEN '-Infinity'::float8 "
    "ELSE z.n::float8 END AS number, CASE WHEN z.n IS NOT NULL THEN '' "
    "WHEN jsonb_array_length(z.a) = 1 THEN z.a->>0 ELSE (SELECT string_agg(t.v, ', ' ORDER BY t.i) "
    "FROM jsonb_array_elements_text(z.a) WITH ORDINALITY AS t(v, i)) END COLLATE \"C\" AS text "
    "FROM (SELECT x.container, x.a, CASE WHEN jsonb_array_length(x.a) = 1 "
    "THEN (x.d->>0)::numeric END AS n FROM (SELECT o.container, "
    "coalesce(o.attributes->'s'->$1, o.attributes->'f'->$1) AS a, o.attributes->'d'->$1 AS d "
    "FROM {S}.object o OFFSET 0) AS x WHERE x.a IS NOT NULL) AS z) AS y";

/* Appends what is behind the position. */
static void
put_behind(esdm__buffer *sql, postgres__params *params, const esdm_meta_position *at,
           bool descending)
{
    char text[160], number[40];
    esdm__buffer value;
    if (at->at == ESDM_META_AT_BEGIN)
        return;
    esdm__buffer_init(&value);
    if (at->at == ESDM_META_AT_TEXT) {
        postgres__put_text(&value, at->text);
        (void) snprintf(text, sizeof text,
                        descending ? " AND (v.number IS NOT NULL OR v.text < $2)"
                                   : " AND v.number IS NULL AND v.text > $2");
    } else {
        if (isinf(at->number))
            esdm__buffer_put(&value, at->number < 0 ? "-Infinity" : "Infinity",
                             at->number < 0 ? 9 : 8);
        else
            postgres__put_number(&value, at->number);
        (void) snprintf(number, sizeof number, "v.number %s $2::float8", descending ? "<" : ">");
        (void) snprintf(text, sizeof text, descending ? " AND %s" : " AND (v.number IS NULL OR %s)",
                        number);
    }
    esdm__buffer_put_u8(&value, 0);
    params->memory.failed |= value.failed;
    postgres__put_string(params, value.failed ? "" : (const char *) value.data);
    esdm__buffer_clear(&value);
    esdm__buffer_put(sql, text, strlen(text));
}

static void
put_question(esdm__buffer *sql, postgres__params *params, const char *attribute, size_t most,
             const esdm_meta_position *at, bool descending)
{
    char end[200];
    bool begin = at->at == ESDM_META_AT_BEGIN;
    const char *down = descending ? " DESC" : "";
    esdm__buffer name;
    esdm__buffer_init(&name);
    postgres__put_text(&name, attribute);
    esdm__buffer_put_u8(&name, 0);
    params->memory.failed |= name.failed;
    postgres__put_string(params, name.failed ? "" : (const char *) name.data);
    esdm__buffer_clear(&name);
    const char *head =
        begin ? "SELECT w.* FROM (WITH v AS MATERIALIZED (" : "SELECT w.* FROM (WITH v AS (";
    esdm__buffer_put(sql, head, strlen(head));
    esdm__buffer_put(sql, values, sizeof values - 1);
    head = begin ? ") SELECT v.container, NULL::float8 AS number, NULL::text AS text FROM v WHERE "
                   "v.odd UNION ALL (SELECT v.container, v.number, v.text FROM v WHERE NOT v.odd"
                 : ") (SELECT v.container, v.number, v.text FROM v WHERE NOT v.odd";
    esdm__buffer_put(sql, head, strlen(head));
    put_behind(sql, params, at, descending);
    (void) snprintf(end, sizeof end,
                    " ORDER BY v.number IS NULL%s, v.number%s, v.text%s FETCH FIRST %zu ROWS WITH "
                    "TIES)) AS w LIMIT %zu",
                    down, down, down, most, most + MOST_TIES);
    esdm__buffer_put(sql, end, strlen(end) + 1);
}

/* Whether a row has the value at hand; rows without any come first. */
static bool
is_at(const PGresult *rows, int row, const esdm_meta_position *at)
{
    if (!PQgetisnull(rows, row, 1))
        return at->at == ESDM_META_AT_NUMBER && postgres__double(rows, row, 1) == at->number;
    return at->at == ESDM_META_AT_TEXT && strcmp(PQgetvalue(rows, row, 2), at->text) == 0;
}

static esdm_status
go_to(PGresult *rows, int row, esdm_meta_position *at, esdm_error *err)
{
    if (!PQgetisnull(rows, row, 1)) {
        at->at = ESDM_META_AT_NUMBER;
        at->number = postgres__double(rows, row, 1);
        return ESDM_OK;
    }
    char *text = strdup(PQgetvalue(rows, row, 2));
    if (text == NULL)
        return esdm__error_nomem(err, strlen(PQgetvalue(rows, row, 2)), "a value");
    free(at->text);
    at->text = text;
    at->at = ESDM_META_AT_TEXT;
    return ESDM_OK;
}

static esdm_status
visit_rows(PGresult *rows, size_t most, esdm_meta_position *at, esdm_meta_number_visitor visit,
           void *user, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    size_t placed = 0, groups = 0;
    bool more = true;
    int count = PQntuples(rows);
    for (int row = 0; row < count && more && status == ESDM_OK; row++) {
        bool odd = PQgetisnull(rows, row, 1) && PQgetisnull(rows, row, 2);
        placed += !odd;
        if (!odd && (groups == 0 || !is_at(rows, row, at))) {
            status = go_to(rows, row, at, err);
            groups++;
        }
        more = visit(postgres__u64(rows, row, 0), user);
    }
    at->one_value = groups == 1 && placed == (size_t) count;
    if (status == ESDM_OK && more && placed < most)
        at->at = ESDM_META_AT_END;
    return status;
}

esdm_status
postgres__ordered(void *self, const char *attribute, bool descending, size_t most,
                  esdm_meta_position *position, esdm_meta_number_visitor visit, void *user,
                  esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    esdm__buffer sql;
    PGresult *rows = NULL;
    if (position->at == ESDM_META_AT_END)
        return ESDM_OK;
    if (esdm_meta_is_extent(attribute))
        return esdm__error_set(err, ESDM_ENOTSUP, "'%.200s' is in no order", attribute);
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    most = most < MOST_AT_ONE ? most * TIMES_MORE : most;
    most = most < AT_LEAST ? AT_LEAST : most;
    esdm__buffer_init(&sql);
    put_question(&sql, &params, attribute, most, position, descending);
    if (PQserverVersion(store->link.conn) < OLDEST_SERVER)
        status = esdm__error_set(err, ESDM_ENOTSUP, "servers before 13 keep no first rows");
    else if (sql.failed)
        status = esdm__error_nomem(err, sql.bytes, "a query");
    else
        status = postgres__query(store, (const char *) sql.data, &params, &rows, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    esdm__buffer_clear(&sql);
    if (status == ESDM_OK && (size_t) PQntuples(rows) >= most + MOST_TIES)
        status = esdm__error_set(err, ESDM_ENOTSUP, "'%.200s' has one value too often", attribute);
    if (status == ESDM_OK)
        status = visit_rows(rows, most, position, visit, user, err);
    PQclear(rows);
    return status;
}
