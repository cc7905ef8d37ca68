/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Texts of the statements. What changes something calls one function (functions.sql). */

#include "link.h"

#define RECORD                                                                                     \
    "c.container, c.uuid, c.snapshot, c.structure, c.created_ns, c.modified_ns, c.raw_bytes, "     \
    "c.stored_bytes, c.fragments, c.datasets"
#define PAGE                                                                                       \
    "SELECT p.page, p.dataset, p.records, p.added, p.level, p.absolute, p.raw_bytes, "             \
    "p.stored_bytes, p.box FROM {S}.snapshot s LEFT JOIN {S}.page p "                              \
    "ON p.container = s.container AND p.added <= s.snapshot "                                      \
    "AND (p.removed = 0 OR p.removed > s.snapshot)"
#define PAGE_OF " WHERE s.container = $1 AND s.snapshot = $2 AND NOT s.pruned "
#define LIST    "SELECT " RECORD ", c.name FROM {S}.container c WHERE "

const char *const postgres__statements[POSTGRES__STATEMENTS] = {
    [POSTGRES__BEGIN] = "BEGIN",
    [POSTGRES__COMMIT] = "COMMIT",
    [POSTGRES__ROLLBACK] = "ROLLBACK",
    [POSTGRES__PUBLISH] = "SELECT {S}.publish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
                          "$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, "
                          "$27, $28, $29)",
    [POSTGRES__ADD_PAGES] = "SELECT {S}.add_pages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    [POSTGRES__HAPPENED] = "SELECT {S}.happened($1::uuid)",
    [POSTGRES__CONTAINER_FIND] = "SELECT " RECORD " FROM {S}.container c WHERE c.name = $1",
    /* After the name $1, at most $2 of them. */
    [POSTGRES__CONTAINER_LIST_ALL] = LIST "c.name > $1 ORDER BY c.name LIMIT $2",
    /* As above, of the name $3 and everything below "$3/": '0' follows '/' in ASCII. */
    [POSTGRES__CONTAINER_LIST] =
        LIST "c.name > $1 AND (c.name = $3 OR (c.name >= $3 || '/' AND c.name < $3 || '0')) "
             "ORDER BY c.name LIMIT $2",
    [POSTGRES__CONTAINER_REMOVE] = "SELECT {S}.remove_container($1, $2, $3)",
    [POSTGRES__CONTAINER_MOVE] = "SELECT {S}.move_container($1, $2, $3, $4, $5)",
    [POSTGRES__SNAPSHOT_OPEN] = "SELECT * FROM {S}.open_snapshot($1, $2, $3, $4)",
    [POSTGRES__SNAPSHOT_LIST] = "SELECT s.snapshot, s.parent, s.time_ns, s.writer, s.message "
                                "FROM {S}.container c JOIN {S}.snapshot s USING (container) "
                                "WHERE c.name = $1 AND NOT s.pruned ORDER BY s.snapshot",
    [POSTGRES__PAGE_LIST_ALL] = PAGE PAGE_OF "ORDER BY p.dataset, p.page",
    [POSTGRES__PAGE_LIST] = PAGE " AND p.dataset = $3" PAGE_OF "ORDER BY p.page",
    [POSTGRES__PAGE_LOAD] = "SELECT p.data FROM {S}.page p WHERE p.page = $1",
    [POSTGRES__PIN] = "SELECT {S}.pin(u.container, u.snapshot) "
                      "FROM unnest($1, $2) WITH ORDINALITY AS u(container, snapshot, n) "
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
    [POSTGRES__STATE] = "SELECT (SELECT s.value::bigint FROM {S}.store s WHERE s.key = 'state'), "
                        "(SELECT s.value FROM {S}.store s WHERE s.key = 'note')",
    [POSTGRES__SET_STATE] = "SELECT {S}.set_state($1, $2)",
    [POSTGRES__IMPORT_CONTAINER] =
        "SELECT {S}.import_container($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
        "$15, $16)",
    [POSTGRES__IMPORT_PAGES] = "SELECT {S}.add_pages($1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                               "$11, $12)",
};
