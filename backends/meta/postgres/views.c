/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Counts of containers for the levels of views; views.sql has the tables and what keeps
 * them. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"
#include "postgres_sql.h"

/* What a root says: the attribute that keeps containers out, and the levels, one a line. */
static void
put_root(const esdm_meta_view *view, esdm__buffer *out)
{
    postgres__put_text(out, view->without);
    for (size_t i = 0; i < view->nlevels; i++) {
        esdm__buffer_put(out, "\n", 1);
        postgres__put_text(out, view->attributes[i]);
        if (view->values[i] != NULL) {
            esdm__buffer_put(out, "=", 1);
            postgres__put_text(out, view->values[i]);
        }
    }
}

static void
put_roots(postgres__params *params, const esdm_meta_view *views, size_t nviews)
{
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < nviews; i++) {
        esdm__buffer text;
        esdm__buffer_init(&text);
        put_root(&views[i], &text);
        params->memory.failed |= text.failed;
        postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
        esdm__buffer_clear(&text);
    }
    postgres__array_end(params);
}

/* Asks a question with a truth as its answer. Under the mutex. */
static esdm_status
ask_whether(postgres__store *store, const char *question, postgres__params *params, bool *ret,
            esdm_error *err)
{
    PGresult *result = NULL;
    esdm_status status = postgres__query(store, question, params, &result, err);
    *ret = status == ESDM_OK && postgres__bool(result, 0, 0);
    PQclear(result);
    return status;
}

/* Which tables there are. */
typedef enum kept { KEPT_NOTHING, KEPT_COUNTS, KEPT_HIDDEN } kept;

static esdm_status
look_for_tables(postgres__store *store, kept *ret_kept, esdm_error *err)
{
    PGresult *result = NULL;
    esdm_status status = postgres__query(
        store,
        "SELECT CASE WHEN NOT coalesce(has_table_privilege(to_regclass('{S}.view_delta'), "
        "'SELECT'), false) THEN 0 WHEN NOT coalesce(has_table_privilege("
        "to_regclass('{S}.view_hidden'), 'SELECT'), false) THEN 1 ELSE 2 END::bigint",
        NULL, &result, err);
    *ret_kept = status == ESDM_OK ? (kept) postgres__u64(result, 0, 0) : KEPT_NOTHING;
    PQclear(result);
    return status;
}

/* Of a store whose views were made before those that queries pass by were counted: adds that, and
 * their index. One whose functions run as its owner for everybody gets those of today, too. Under
 * the mutex. */
static esdm_status
add_hidden(postgres__store *store, kept tables, esdm_error *err)
{
    bool counted = false, lacks = false;
    PGresult *result = NULL;
    esdm_status status = ESDM_OK;
    if (tables == KEPT_HIDDEN)
        status = ask_whether(store,
                             "SELECT EXISTS(SELECT FROM {S}.view_node v WHERE v.parent = -1 AND "
                             "v.part = 'hidden') AND NOT EXISTS(SELECT FROM pg_proc p WHERE "
                             "p.pronamespace = to_regnamespace('{S}') AND p.prosecdef AND "
                             "EXISTS(SELECT FROM aclexplode(coalesce(p.proacl, "
                             "acldefault('f', p.proowner))) AS a WHERE a.grantee = 0))",
                             NULL, &counted, err);
    if (status == ESDM_OK && !counted)
        status = ask_whether(store,
                             "SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c "
                             "WHERE c.oid = '{S}.container'::regclass",
                             NULL, &lacks, err);
    if (status == ESDM_OK && lacks)
        status = postgres__link_script(&store->link, postgres__views_sql, err);
    if (status == ESDM_OK && lacks)
        status = postgres__query(store, "SELECT {S}.view_hide_all()", NULL, &result, err);
    PQclear(result);
    return status;
}

/* Of a store that was made before rows of `reach` had marks of attributes. Under the mutex. */
static esdm_status
add_marks(postgres__store *store, esdm_error *err)
{
    if (!store->owned || !store->has_reach || store->has_marks)
        return ESDM_OK;
    esdm_status status = postgres__link_script(&store->link, postgres__marks_sql, err);
    store->has_marks = status == ESDM_OK;
    return status;
}

/* Under the mutex. */
static esdm_status
set_views(postgres__store *store, const esdm_meta_view *views, size_t nviews, bool anew,
          esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    kept tables = KEPT_NOTHING;
    bool same = false;
    esdm_status status = anew ? add_marks(store, err) : ESDM_OK;
    if (status == ESDM_OK)
        status = look_for_tables(store, &tables, err);
    put_roots(&params, views, nviews);
    if (status == ESDM_OK && tables != KEPT_NOTHING)
        status = ask_whether(store,
                             "SELECT $1::text[] @> ARRAY(SELECT v.part FROM {S}.view_node v WHERE "
                             "v.parent = 0) AND cardinality($1::text[]) = (SELECT count(*) FROM "
                             "{S}.view_node v WHERE v.parent = 0) AND EXISTS(SELECT FROM "
                             "{S}.view_node v WHERE v.parent = -1)",
                             &params, &same, err);
    if (status == ESDM_OK && (anew || !same)) {
        status = postgres__link_script(&store->link, postgres__views_sql, err);
        if (status == ESDM_OK)
            status =
                postgres__query(store, "SELECT {S}.view_make($1::text[])", &params, &result, err);
    } else if (status == ESDM_OK)
        status = add_hidden(store, tables, err);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

esdm_status
postgres__view_set(void *self, const esdm_meta_view *views, size_t nviews, bool anew,
                   esdm_error *err)
{
    postgres__store *store = self;
    esdm_status status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    status = set_views(store, views, nviews, anew, err);
    postgres__leave(store);
    return status;
}

/* How many of a node queries pass by, by looking at each of them. */
#define HIDDEN_LOOKED_AT "(SELECT count(*) FROM hidden h WHERE h.part = v.part)"
/* The same by what is kept, where it is. */
#define HIDDEN_KEPT                                                                                \
    "CASE WHEN EXISTS(SELECT FROM {S}.view_node k WHERE k.parent = -1 "                            \
    "AND md5(k.part) = md5('hidden')) THEN coalesce((SELECT sum(h.n)::bigint "                     \
    "FROM {S}.view_hidden h WHERE h.node = v.node), 0) ELSE " HIDDEN_LOOKED_AT " END"

/* The first row is the root's, with a NULL; then what is below the place. Containers that queries
 * pass by are counted, too, and taken away. */
#define LEVEL_QUESTION(hidden)                                                                     \
    "WITH RECURSIVE hidden(part) AS MATERIALIZED (SELECT p.parts[cardinality($2::text[]) + 1] "    \
    "FROM " POSTGRES__HIDDEN_OBJECTS " AS o CROSS JOIN LATERAL (SELECT {S}.view_parts("            \
    "string_to_array(($1::text[])[1], E'\\n'), o.attributes) AS parts OFFSET 0) AS p "             \
    "WHERE p.parts[1:cardinality($2::text[])] = $2::text[]), "                                     \
    "root(node) AS (SELECT v.node FROM {S}.view_node v WHERE v.parent = 0 "                        \
    "AND v.part = ($1::text[])[1] AND md5(v.part) = md5(($1::text[])[1])), "                       \
    "at(node, i) AS (SELECT r.node, 0 FROM root r UNION ALL "                                      \
    "SELECT v.node, at.i + 1 FROM at JOIN {S}.view_node v ON v.parent = at.node "                  \
    "AND md5(v.part) = md5(($2::text[])[at.i + 1]) WHERE at.i < cardinality($2::text[])) "         \
    "SELECT NULL AS part, 1::bigint AS n FROM root UNION ALL "                                     \
    "(SELECT x.part, x.n FROM (SELECT v.part, v.n + coalesce((SELECT sum(d.n)::bigint "            \
    "FROM {S}.view_delta d WHERE d.node = v.node), 0) "                                            \
    "- " hidden " AS n FROM at JOIN {S}.view_node v "                                              \
    "ON v.parent = at.node WHERE at.i = cardinality($2::text[])) AS x WHERE x.n > 0)"

static const char level_question[] = LEVEL_QUESTION(HIDDEN_LOOKED_AT);
static const char level_question_kept[] = LEVEL_QUESTION(HIDDEN_KEPT);

static void
put_path(postgres__params *params, const char *const *path, size_t depth)
{
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < depth; i++) {
        esdm__buffer text;
        esdm__buffer_init(&text);
        esdm__buffer_put(&text, path[i] != NULL ? "=" : "-", 1);
        postgres__put_text(&text, path[i] != NULL ? path[i] : "");
        params->memory.failed |= text.failed;
        postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
        esdm__buffer_clear(&text);
    }
    postgres__array_end(params);
}

esdm_status
postgres__view_level(void *self, const esdm_meta_view *view, const char *const *path, size_t depth,
                     esdm_meta_view_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    kept tables = KEPT_NOTHING;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    put_roots(&params, view, 1);
    put_path(&params, path, depth);
    status = look_for_tables(store, &tables, err);
    if (status == ESDM_OK && tables != KEPT_NOTHING)
        status =
            postgres__query(store, tables == KEPT_HIDDEN ? level_question_kept : level_question,
                            &params, &result, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    if (status == ESDM_OK && (tables == KEPT_NOTHING || PQntuples(result) == 0))
        status = esdm__error_set(err, ESDM_ENOENT, "no counts are kept of this view");
    for (int row = 1; status == ESDM_OK && row < PQntuples(result); row++) {
        char *part = PQgetvalue(result, row, 0);
        bool has = part[0] == '=';
        if (has)
            postgres__restore_text(part + 1);
        if (!visit(has ? part + 1 : NULL, postgres__u64(result, row, 1), user))
            break;
    }
    PQclear(result);
    return status;
}
