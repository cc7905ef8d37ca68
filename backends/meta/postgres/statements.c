/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Texts of the statements. What changes something calls one function
 * (functions.sql, names.sql). */

#include "esdm/sys/meta_types.h"
#include "link.h"

#define RECORD                                                                                     \
    "c.container, c.uuid, c.snapshot, c.structure, c.created_ns, c.modified_ns, c.raw_bytes, "     \
    "c.stored_bytes, c.fragments, c.datasets"
#define PAGE_COLUMNS                                                                               \
    "SELECT p.page, p.dataset, p.records, p.added, p.level, p.absolute, p.raw_bytes, "             \
    "p.stored_bytes, p.box "
#define PAGE                                                                                       \
    PAGE_COLUMNS "FROM {S}.snapshot s LEFT JOIN {S}.page p "                                       \
                 "ON p.container = s.container AND p.added <= s.snapshot "                         \
                 "AND (p.removed = 0 OR p.removed > s.snapshot)"
#define PAGE_OF " WHERE s.container = $1 AND s.snapshot = $2 AND NOT s.pruned "
#define PUBLISH                                                                                    \
    "{S}.publish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "     \
    "$18, "                                                                                        \
    "$19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"
#define LIST "SELECT " RECORD ", c.name FROM {S}.container c WHERE "

/* The record's extents, in the statement that changes it. `p` has the result of publish(), a row
 * with NULL, or no row. Parameters from `a` on: dataset, name, number, text, how, and whether all
 * others are deleted. */
#define EXTENTS_OF(record, a, b, c, d, e, all)                                                     \
    ", gone AS (DELETE FROM {S}.extent x USING p WHERE " all " AND x.container = " record          \
    " AND NOT EXISTS(SELECT FROM unnest(" a "::bigint[], " b "::text[]) AS u(dataset, name) "      \
    "WHERE u.dataset = x.dataset AND u.name = x.name)), "                                          \
    "put AS (INSERT INTO {S}.extent AS x(container, dataset, name, value, text, how) "             \
    "SELECT " record ", u.dataset, u.name, u.value::float8, u.text, u.how % 3 FROM p, "            \
    "unnest(" a "::bigint[], " b "::text[], " c "::text[], " d "::text[], " e "::bigint[]) "       \
    "AS u(dataset, name, value, text, how) WHERE " record " IS NOT NULL "                          \
    "AND (u.how < 3 OR EXISTS(SELECT FROM {S}.extent f WHERE f.name = '" ESDM_META_EXTENT_FOLLOWS  \
    "')) "                                                                                         \
    "ON CONFLICT (container, dataset, name) DO UPDATE SET value = excluded.value, "                \
    "text = excluded.text, how = excluded.how WHERE CASE WHEN excluded.how = 0 OR x.value IS "     \
    "NULL "                                                                                        \
    "THEN (x.value, x.text) IS DISTINCT FROM (excluded.value, excluded.text) "                     \
    "WHEN excluded.how = 1 THEN excluded.value < x.value ELSE excluded.value > x.value END)"
#define WITH_EXTENTS(publish, a, b, c, d, e, all)                                                  \
    "WITH p AS MATERIALIZED (" publish                                                             \
    ")" EXTENTS_OF("p.r[1]", a, b, c, d, e, all) " SELECT r FROM p"
#define WITH_30(publish) WITH_EXTENTS(publish, "$30", "$31", "$32", "$33", "$34", "$35")

/* NULL when the record has a newer snapshot than `seen`, or a name of the engine's own, unless an
 * earlier attempt took place. The lock of the record is kept until the end, so that none comes in
 * between. */
#define PUBLISH_NEXT(seen)                                                                         \
    "SELECT CASE WHEN NOT ($2 AND {S}.happened($1)) AND (SELECT CASE WHEN left(c.name, 1) = '/' "  \
    "THEN 9223372036854775807 ELSE c.snapshot END FROM {S}.container "                             \
    "c WHERE c.container = $6 FOR UPDATE) > " seen " THEN NULL ELSE " PUBLISH " END AS r"
/* Not of a record that is kept under a name of the engine's own. Its row is locked here, so that
 * nobody gives it such a name meanwhile. One that is sent again because its answer got lost has
 * perhaps taken place before it got that name. */
#define PUBLISH_UPDATE                                                                             \
    "SELECT " PUBLISH " AS r FROM (SELECT FROM {S}.container c WHERE c.container = $6 "            \
    "AND (left(c.name, 1) IS DISTINCT FROM '/' OR ($2 AND {S}.happened($1))) FOR UPDATE) "         \
    "AS head"

/* One row in a store that takes changes, or when the parameter says that it does anyhow. */
#define SERVING(migrating)                                                                         \
    "WITH serving AS (SELECT 1::bigint AS one WHERE " migrating                                    \
    " OR coalesce((SELECT t.value FROM {S}.store t WHERE t.key = 'state'), '0') = '0'), "

const char *const postgres__statements[POSTGRES__STATEMENTS] = {
    [POSTGRES__BEGIN] = "BEGIN",
    [POSTGRES__COMMIT] = "COMMIT",
    [POSTGRES__ROLLBACK] = "ROLLBACK",
    [POSTGRES__PUBLISH] = "SELECT " PUBLISH,
    [POSTGRES__PUBLISH_NEXT] = PUBLISH_NEXT("$30"),
    [POSTGRES__PUBLISH_EXTENTS] = WITH_30("SELECT " PUBLISH " AS r"),
    [POSTGRES__PUBLISH_NEXT_EXTENTS] = WITH_30(PUBLISH_NEXT("$36")),
    [POSTGRES__PUBLISH_UPDATE_EXTENTS] = WITH_30(PUBLISH_UPDATE),
    [POSTGRES__EXTENT_PUT] = "WITH p AS MATERIALIZED (SELECT c.container AS r FROM {S}.container c "
                             "WHERE c.container = $1 AND c.snapshot = $2 FOR UPDATE)" EXTENTS_OF(
                                 "p.r", "$3", "$4", "$5", "$6", "$7", "$8") " SELECT r FROM p",
    [POSTGRES__EXTENT_IMPORT] =
        "INSERT INTO {S}.extent(container, dataset, name, value, text, how) "
        "SELECT $1, u.dataset, u.name, u.value::float8, u.text, u.how "
        "FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[]) "
        "AS u(dataset, name, value, text, how)",
    [POSTGRES__EXTENT_LIST] = "SELECT x.dataset, x.name, x.value, x.text FROM {S}.extent x "
                              "WHERE x.container = $1 ORDER BY x.dataset, x.name",
    /* One search in the index for each name. */
    [POSTGRES__EXTENT_NAMES] =
        "WITH RECURSIVE n AS ((SELECT x.name FROM {S}.extent x WHERE x.name >= $1 "
        "ORDER BY x.name LIMIT 1) UNION ALL SELECT (SELECT x.name FROM {S}.extent x "
        "WHERE x.name > n.name ORDER BY x.name LIMIT 1) FROM n "
        "WHERE starts_with(n.name, $1)) SELECT n.name FROM n WHERE starts_with(n.name, $1)",
    [POSTGRES__LOCK_HEAD] =
        "SELECT c.snapshot FROM {S}.container c WHERE c.container = $1 FOR UPDATE",
    [POSTGRES__PAGE_LIST_NEWER] =
        PAGE_COLUMNS "FROM {S}.page p WHERE p.container = $1 AND p.added > $2 "
                     "AND p.dataset = ANY($3)",
    [POSTGRES__PUBLISH_UPDATE] = PUBLISH_UPDATE,
    [POSTGRES__KEEP] = "UPDATE {S}.container c SET name = $2 WHERE c.name = $1 "
                       "RETURNING c.container",
    [POSTGRES__SEEN] = "SELECT c.container, c.snapshot FROM {S}.container c WHERE c.name = $1 "
                       "FOR UPDATE",
    /* In one order, or two that follow from each other's records would wait for each other. */
    [POSTGRES__FOLLOWED] =
        "SELECT c.container, c.snapshot FROM {S}.container c WHERE c.container IN ($1, $2) "
        "ORDER BY c.container FOR UPDATE",
    [POSTGRES__ADD_PAGES] = "SELECT {S}.add_pages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    [POSTGRES__HAPPENED] = "SELECT {S}.happened($1::uuid)",
    [POSTGRES__CONTAINER_FIND] = "SELECT " RECORD " FROM {S}.container c WHERE c.name = $1",
    /* After the name $1, at most $2 of them. */
    [POSTGRES__CONTAINER_LIST_ALL] = LIST "c.name > $1 ORDER BY c.name LIMIT $2",
    /* As above, of the name $3 and everything below "$3/": '0' follows '/' in ASCII. Two lists,
     * each of a range of the index whatever the server knows of the table: of both in one it may
     * take a plan, once and for all, that goes through all names after $1. */
    [POSTGRES__CONTAINER_LIST] =
        "SELECT l.* FROM ((" LIST "c.name > $1 AND c.name = $3) UNION ALL (" LIST
        "c.name > $1 AND c.name >= $3 || '/' AND c.name < $3 || '0' ORDER BY c.name LIMIT $2)) "
        "AS l ORDER BY l.name LIMIT $2",
    [POSTGRES__CONTAINER_REMOVE] = "SELECT {S}.remove_container($1, $2, $3)",
    [POSTGRES__CONTAINER_MOVE] = "SELECT {S}.move_container($1, $2, $3, $4, $5)",
    [POSTGRES__SNAPSHOT_OPEN] = "SELECT * FROM {S}.open_snapshot($1, $2, $3, $4)",
    [POSTGRES__SNAPSHOT_LIST] = "SELECT s.snapshot, s.parent, s.time_ns, s.writer, s.message "
                                "FROM {S}.container c JOIN {S}.snapshot s USING (container) "
                                "WHERE c.name = $1 AND NOT s.pruned ORDER BY s.snapshot",
    [POSTGRES__SNAPSHOT_AT] =
        "SELECT s.snapshot FROM {S}.container c JOIN {S}.snapshot s USING (container) "
        "WHERE c.name = $1 AND NOT s.pruned AND s.time_ns <= $2 ORDER BY s.snapshot DESC LIMIT 1",
    [POSTGRES__PAGE_LIST_ALL] = PAGE PAGE_OF "ORDER BY p.dataset, p.page",
    [POSTGRES__PAGE_LIST] = PAGE " AND p.dataset = $3" PAGE_OF "ORDER BY p.page",
    [POSTGRES__PAGE_LOAD] = "SELECT p.data FROM {S}.page p WHERE p.page = $1",
    /* Record 0 is none: a writer, who is there from then on. */
    [POSTGRES__PIN] = "SELECT CASE u.container WHEN 0 THEN (SELECT true FROM "
                      "pg_advisory_lock_shared({S}.lock_key(0, u.snapshot))) "
                      "ELSE {S}.pin(u.container, u.snapshot) END FROM unnest($1, $2) WITH "
                      "ORDINALITY AS u(container, snapshot, n) "
                      "ORDER BY u.n",
    [POSTGRES__UNPIN] = "SELECT pg_advisory_unlock_shared({S}.lock_key($1, $2))",
    [POSTGRES__GARBAGE] = "SELECT c.container, c.uuid FROM {S}.container c WHERE c.name IS NULL "
                          "AND cardinality({S}.pins(c.container)) = 0 ORDER BY c.container",
    [POSTGRES__FORGET] = "SELECT {S}.forget($1, $2, $3)",
    /* One row an entry. A number out of the range of float8 stands for infinity. */
    [POSTGRES__ATTRIBUTES] =
        "SELECT o.dataset, o.path, n.name, e.text, o.attributes->'d' ? n.name, "
        "CASE WHEN e.number > 1e309 THEN 'Infinity'::float8 "
        "WHEN e.number < -1e309 THEN '-Infinity'::float8 ELSE e.number::float8 END "
        "FROM {S}.object o "
        "CROSS JOIN jsonb_array_elements_text(o.attributes->'n') WITH ORDINALITY AS n(name, i) "
        "CROSS JOIN LATERAL (SELECT t.i, t.v AS text, d.v::numeric AS number "
        "FROM jsonb_array_elements_text(coalesce(o.attributes->'s'->n.name, "
        "o.attributes->'f'->n.name)) WITH ORDINALITY AS t(v, i) "
        "LEFT JOIN jsonb_array_elements_text(o.attributes->'d'->n.name) WITH ORDINALITY "
        "AS d(v, i) USING (i)) AS e WHERE o.container = $1 ORDER BY o.dataset, n.i, e.i",
    [POSTGRES__VALUES] =
        "SELECT u.i, o.dataset, o.path, n.i, e.text, "
        "CASE WHEN e.number > 1e309 THEN 'Infinity'::float8 "
        "WHEN e.number < -1e309 THEN '-Infinity'::float8 ELSE e.number::float8 END "
        "FROM unnest($1::text[]) WITH ORDINALITY AS u(name, i) "
        "JOIN {S}.container c ON c.name = u.name "
        "JOIN {S}.object o ON o.container = c.container AND ($3 OR o.dataset = 0) "
        "CROSS JOIN unnest($2::text[]) WITH ORDINALITY AS n(name, i) "
        "CROSS JOIN LATERAL (SELECT t.i, t.v AS text, d.v::numeric AS number "
        "FROM jsonb_array_elements_text(coalesce(o.attributes->'s'->n.name, "
        "o.attributes->'f'->n.name)) WITH ORDINALITY AS t(v, i) "
        "LEFT JOIN jsonb_array_elements_text(o.attributes->'d'->n.name) WITH ORDINALITY "
        "AS d(v, i) USING (i)) AS e ORDER BY u.i, o.dataset, n.i, e.i",
    [POSTGRES__STATE] = "SELECT (SELECT s.value::bigint FROM {S}.store s WHERE s.key = 'state'), "
                        "(SELECT s.value FROM {S}.store s WHERE s.key = 'note')",
    [POSTGRES__SET_STATE] = "SELECT {S}.set_state($1, $2)",
    /* Facts: plain statements, which stores that were made before need no function for. */
    [POSTGRES__FACT_GET] = "SELECT s.value FROM {S}.store s WHERE s.key = 'fact:' || $1",
    [POSTGRES__FACT_PUT] =
        SERVING("$3") "put AS (INSERT INTO {S}.store AS s(key, value) SELECT 'fact:' || $1, $2 "
                      "FROM serving ON CONFLICT (key) DO UPDATE SET value = excluded.value) "
                      "SELECT one FROM serving",
    [POSTGRES__FACT_REMOVE] =
        SERVING("$2") "gone AS (DELETE FROM {S}.store s USING serving WHERE s.key = 'fact:' || $1) "
                      "SELECT one FROM serving",
    [POSTGRES__FACT_LIST] = "SELECT substr(s.key, 6), s.value FROM {S}.store s "
                            "WHERE starts_with(s.key, 'fact:' || $1) "
                            "ORDER BY s.key COLLATE \"C\"",
    [POSTGRES__FACT_FORGET] =
        "DELETE FROM {S}.store s USING {S}.container c WHERE c.container = $1 "
        "AND c.name IS NULL AND cardinality({S}.pins(c.container)) = 0 "
        "AND starts_with(s.key, 'fact:' || c.uuid || '/')",
    [POSTGRES__IMPORT_CONTAINER] =
        "SELECT {S}.import_container($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
        "$15, $16)",
    [POSTGRES__IMPORT_PAGES] = "SELECT {S}.add_pages($1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                               "$11, $12)",
    /* After the record $1, at most $2 of them. */
    [POSTGRES__RECORD_LIST] = "SELECT c.container, c.uuid, c.name FROM {S}.container c "
                              "WHERE c.container > $1 ORDER BY c.container LIMIT $2",
    [POSTGRES__PAGE_LIST_KEPT] =
        PAGE_COLUMNS "FROM {S}.page p WHERE p.container = $1 "
                     "AND ($2 = 0 OR p.dataset = $2) ORDER BY p.dataset, p.page",
    [POSTGRES__WRITER_LIVES] = "SELECT $1 = ANY({S}.pins(0))",
    /* The numbers come first, under the lock of the record, which commits take too. A page that
     * another one has replaced meanwhile is not found. */
    [POSTGRES__RELOCATE] =
        "WITH head AS (UPDATE {S}.container c SET next_page = c.next_page + cardinality($2) "
        "WHERE c.container = $1 AND NOT EXISTS(SELECT FROM {S}.store s WHERE s.key = 'state' "
        "AND s.value <> '0') RETURNING c.next_page) "
        "UPDATE {S}.page p SET data = u.data, "
        "page = ($1 << 32) + head.next_page - cardinality($2) + u.n - 1 "
        "FROM head, unnest($2, $3) WITH ORDINALITY AS u(page, data, n) "
        "WHERE p.page = u.page AND p.container = $1 RETURNING u.n",
    /* As a commit does under the lock of the record; not in a store that takes no changes. */
    [POSTGRES__PRUNE] =
        "SELECT {S}.prune(head.container, head.snapshot, $2, {S}.now_ns() + 500000000) FROM "
        "(SELECT c.container, c.snapshot FROM {S}.container c WHERE c.container = $1 "
        "AND NOT EXISTS(SELECT FROM {S}.store s WHERE s.key = 'state' AND s.value <> '0') "
        "FOR UPDATE) AS head",
    [POSTGRES__CLONE] = "SELECT {S}.clone($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    /* Both have a name, and keep it until the end of the transaction. */
    [POSTGRES__SHARE] =
        "WITH named AS MATERIALIZED (SELECT c.container, c.uuid FROM {S}.container c "
        "WHERE c.container IN ($1, $2) AND c.name IS NOT NULL "
        "AND NOT EXISTS(SELECT FROM {S}.store s WHERE s.key = 'state' AND s.value <> '0') "
        "ORDER BY c.container FOR UPDATE), "
        "added AS (INSERT INTO {S}.shared(uuid, container) SELECT u.uuid, $1 FROM "
        "(SELECT n.uuid FROM named n WHERE n.container = $2 UNION "
        "SELECT h.uuid FROM {S}.shared h WHERE h.container = $2) u "
        "WHERE (SELECT count(*) FROM named) = 2 "
        "AND u.uuid <> (SELECT n.uuid FROM named n WHERE n.container = $1) "
        "ON CONFLICT DO NOTHING) SELECT count(*) FROM named",
    /* Within the transaction of a commit, which has the other one pinned. */
    [POSTGRES__SHARE_COMMITTED] =
        "WITH other AS MATERIALIZED (SELECT c.container, c.uuid FROM {S}.container c "
        "WHERE c.container = $2 FOR KEY SHARE), "
        "added AS (INSERT INTO {S}.shared(uuid, container) SELECT u.uuid, $1 FROM "
        "(SELECT o.uuid FROM other o UNION "
        "SELECT h.uuid FROM {S}.shared h WHERE h.container = $2) u "
        "WHERE EXISTS(SELECT FROM other) "
        "AND u.uuid <> (SELECT c.uuid FROM {S}.container c WHERE c.container = $1) "
        "ON CONFLICT DO NOTHING) SELECT count(*) FROM other",
    [POSTGRES__SHARED_LIST] = "SELECT h.uuid, h.container FROM {S}.shared h",
    [POSTGRES__SHARED_LIST_OF] =
        "SELECT h.uuid, h.container FROM {S}.shared h WHERE h.container = $1",
    [POSTGRES__SHARED_LIST_UUID] = "SELECT h.uuid, h.container FROM {S}.shared h WHERE h.uuid = $1",
    [POSTGRES__IMPORT_SHARES] = "INSERT INTO {S}.shared(uuid, container) "
                                "SELECT u.uuid, $1 FROM unnest($2) AS u(uuid)",
    [POSTGRES__TAG_SET] = "SELECT {S}.set_tag($1, $2, $3, $4, $5, $6, $7, $8)",
    /* No function: stores of format 2 have none for it. The snapshot is looked at as it is once
     * nobody else has it. A repetition changes nothing more: it needs no token. */
    [POSTGRES__TAG_RAISE] =
        "WITH there AS MATERIALIZED (SELECT s.container, s.snapshot FROM {S}.container c "
        "JOIN {S}.snapshot s ON s.container = c.container AND s.snapshot = $3 AND NOT s.pruned "
        "WHERE c.container = $1 AND (SELECT {S}.enter(NULL, false)) IS NULL FOR UPDATE OF c, s), "
        "raised AS (INSERT INTO {S}.tag AS t(container, name, snapshot, created_ns, author) "
        "SELECT h.container, $2, h.snapshot, CASE $4 WHEN 0 THEN {S}.now_ns() ELSE $4 END, $5 "
        "FROM there h ON CONFLICT (container, name) DO UPDATE SET snapshot = excluded.snapshot, "
        "created_ns = excluded.created_ns, author = excluded.author "
        "WHERE t.snapshot < excluded.snapshot) SELECT count(*) FROM there",
    [POSTGRES__TAG_REMOVE] = "SELECT {S}.remove_tag($1, $2, $3, $4)",
    [POSTGRES__TAG_LIST] = "SELECT t.name, t.snapshot, t.created_ns, t.author FROM {S}.tag t "
                           "WHERE t.container = $1 ORDER BY t.name",
    [POSTGRES__TAG_COMMITTED] =
        "INSERT INTO {S}.tag(container, name, snapshot, created_ns, author) "
        "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (container, name) DO UPDATE SET "
        "snapshot = $3, created_ns = $4, author = $5",
    [POSTGRES__IMPORT_TAG] = "INSERT INTO {S}.tag(container, name, snapshot, created_ns, author) "
                             "VALUES ($1, $2, $3, $4, $5)",
    [POSTGRES__RELAX] = "SET synchronous_commit TO off",
    [POSTGRES__STRICT] = "RESET synchronous_commit",
    /* A change that waits for the disk waits for all that came before. */
    [POSTGRES__FLUSH] = "UPDATE {S}.token t SET time_ns = t.time_ns WHERE t.token = $1::text::uuid",
};
