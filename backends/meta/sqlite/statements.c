/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Texts of the statements. README.md says what the tables hold, sums.c what `sum` is. */

#include "sql.h"

/* It breaks texts that are made of parts between the parts. */
/* clang-format off */

#define RECORD                                                                                     \
    "container, uuid, snapshot, structure, created_ns, modified_ns, raw_bytes, stored_bytes, "     \
    "fragments, datasets"
#define PAGE                                                                                       \
    "page, dataset, records, added, level, absolute, raw_bytes, stored_bytes, box, container"

/* What stands under the checksum of a row, in the order of the columns; what a statement changes
 * is a parameter. `t` is "" or the table's name in the statement, with its dot. */
#define CONTAINER(t, name, uuid, snapshot, structure, document_at, next_page, modified_ns,         \
                  raw_bytes, stored_bytes, fragments, datasets)                                    \
    t "container, " name ", " uuid ", " snapshot ", " structure ", " document_at ", "              \
    next_page ", " t "created_ns, " modified_ns ", " raw_bytes ", " stored_bytes ", "              \
    fragments ", " datasets
#define CONTAINER_OF(t, name, uuid, next_page)                                                     \
    CONTAINER(t, name, uuid, t "snapshot", t "structure", t "document_at", next_page,              \
              t "modified_ns", t "raw_bytes", t "stored_bytes", t "fragments", t "datasets")
#define SNAPSHOT_OF(t, pruned)                                                                     \
    t "id, " t "parent, " t "structure, " t "document_at, " t "time_ns, " pruned ", "              \
    t "writer, " t "message, " t "lengths"
#define PAGE_OF(page, removed)                                                                     \
    "container, dataset, " page ", records, level, absolute, added, " removed ", raw_bytes, "      \
    "stored_bytes, box"

#define CONTAINER_SEALED(t)                                                                        \
    "sealed('container', 0, " t "sum, " CONTAINER_OF(t, t "name", t "uuid", t "next_page") ")"
#define SNAPSHOT_SEALED(t) "sealed('snapshot', 0, " t "sum, " SNAPSHOT_OF(t, t "pruned") ")"
#define PAGE_SEALED        "sealed('page', 3, sum, " PAGE_OF("page", "removed") ")"
#define PAGE_KEY_SEALED    "sealed('page', 3, sum, container, dataset, page)"
/* Of rows beside those that are asked for, the keys have to be right. */
#define PAGES_SEALED(asked) "CASE WHEN " asked " THEN " PAGE_SEALED " ELSE " PAGE_KEY_SEALED " END"

#define CONTAINER_INTO                                                                             \
    "INSERT INTO container(container, name, uuid, snapshot, structure, document_at, next_page, "   \
    "created_ns, modified_ns, raw_bytes, stored_bytes, fragments, datasets, sum) "
#define PAGE_INTO                                                                                  \
    "INSERT INTO page(container, dataset, page, records, level, absolute, added, removed, "        \
    "raw_bytes, stored_bytes, box, sum) "
#define TAG "0, sum, container, name, snapshot, created_ns, author"
/* The number is in the checksum, so it is chosen here: as SQLite would. */
#define NEXT_CONTAINER "(SELECT coalesce(max(container), 0) + 1 FROM container)"

#define EXTENT_NAME "(name >= '@' AND name < 'A' AND name <> '@type')"
#define EXTENT_AFTER(sign)                                                                         \
    "SELECT name FROM attribute INDEXED BY attribute_value WHERE name " sign                       \
    " ?1 AND name < 'A' AND name <> '@type' ORDER BY name LIMIT 1"
/* A row that stays as it is is not written. */
#define EXTENT_MERGE(changes)                                                                      \
    "INSERT INTO attribute(container, dataset, name, entry, value) VALUES(?1, ?2, ?3, 0, ?4) "     \
    "ON CONFLICT DO UPDATE SET value = excluded.value WHERE value >= '' OR excluded.value " changes \
    " value"

/* Rows of a statement that takes several; a `?` is the next parameter. */
#define ROWS_2(row)   row ", " row
#define ROWS_4(row)   ROWS_2(row) ", " ROWS_2(row)
#define ROWS_8(row)   ROWS_4(row) ", " ROWS_4(row)
#define ROWS_16(row)  ROWS_8(row) ", " ROWS_8(row)
#define ATTRIBUTE_ROW "(?, ?, ?, ?, ?, ?, ?)"
#define EXTENT_ROW    "(?, ?, ?, 0, ?)"
#define ATTRIBUTE_INTO                                                                             \
    "INSERT OR FAIL INTO attribute(container, dataset, name, entry, path, value, text) VALUES"
#define EXTENT_INTO                                                                                \
    "INSERT OR IGNORE INTO attribute(container, dataset, name, entry, value) VALUES"

/* Containers that go with one that is forgotten: see SQLITE__CONTAINER_TOMBSTONE. */
#define FORGOTTEN                                                                                  \
    "name IS NULL AND (container = ?1 OR uuid = '') "                                              \
    "AND container < (SELECT max(container) FROM container)"

/* A snapshot with its record; `tagged` tells, as one more column, whether that has tags. */
#define SNAPSHOT_OPENED(tagged) \
    "SELECT c.container, c.uuid, c.snapshot, c.structure, c.created_ns, c.modified_ns, " \
    "c.raw_bytes, c.stored_bytes, c.fragments, c.datasets, " \
    "CASE s.pruned WHEN 0 THEN s.id END, s.structure, s.lengths, " \
    "CASE WHEN c.container = ?3 AND s.structure = ?4 THEN NULL ELSE d.document END, " \
    CONTAINER_SEALED("c.") ", " \
    "CASE WHEN s.id IS NULL THEN 1 ELSE " SNAPSHOT_SEALED("s.") " END" tagged " " \
    "FROM container c LEFT JOIN snapshot s ON s.id = (c.container << 32) + " \
    "CASE ?2 WHEN 0 THEN c.snapshot ELSE ?2 END " \
    "LEFT JOIN snapshot d ON d.id = (c.container << 32) + s.document_at WHERE c.name = ?1"

const char *const sqlite__texts[SQLITE__STATEMENTS] = {
    [SQLITE__BEGIN] = "BEGIN",
    /* A transaction that reads and then writes would fail at once when another one wrote between.
     */
    [SQLITE__BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQLITE__COMMIT] = "COMMIT",
    [SQLITE__ROLLBACK] = "ROLLBACK",

    /* ---- containers; lists do not compare checksums, so that one damaged row hides no others */
    [SQLITE__CONTAINER_FIND] =
        "SELECT " RECORD ", " CONTAINER_SEALED("") " FROM container WHERE name = ?1",
    [SQLITE__CONTAINER_LIST_ALL] =
        "SELECT " RECORD ", name FROM container WHERE name IS NOT NULL ORDER BY name",
    /* '0' follows '/' in ASCII: everything below "prefix/". */
    [SQLITE__CONTAINER_LIST] =
        "SELECT " RECORD ", name FROM container WHERE name = ?1 "
        "UNION ALL SELECT * FROM (SELECT " RECORD ", name FROM container "
        "WHERE name >= ?1 || '/' AND name < ?1 || '0' ORDER BY name)",
    [SQLITE__CONTAINER_TAKEN] =
        "SELECT EXISTS (SELECT 1 FROM container WHERE name = ?1) OR EXISTS "
        "(SELECT 1 FROM container WHERE name >= ?1 || '/' AND name < ?1 || '0')",
    /* Through the table and through its index: after damage one has more than the other. */
    [SQLITE__CONTAINER_COUNT_ALL] =
        "SELECT count(*) FROM main.container NOT INDEXED WHERE name IS NOT NULL",
    [SQLITE__CONTAINER_COUNT] =
        "SELECT count(*) FROM main.container NOT INDEXED "
        "WHERE name = ?1 OR (name >= ?1 || '/' AND name < ?1 || '0')",
    [SQLITE__RECORD_COUNT] =
        "SELECT count(*) FROM main.container INDEXED BY sqlite_autoindex_container_1",
    [SQLITE__CONTAINER_ID] =
        "SELECT container, " CONTAINER_SEALED("") " FROM container WHERE name = ?1",
    [SQLITE__CONTAINER_STATE] =
        "SELECT c.name IS NOT NULL AND c.name NOT GLOB '/*', "
        "c.snapshot, c.structure, c.document_at, c.next_page, "
        "c.modified_ns, s.lengths, " CONTAINER_SEALED("c.") ", "
        "CASE WHEN c.name IS NULL THEN 1 ELSE " SNAPSHOT_SEALED("s.") " END, "
        "c.uuid <> '' "
        "FROM container c LEFT JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.snapshot WHERE c.container = ?1",
    [SQLITE__CONTAINER_INSERT] =
        CONTAINER_INTO "VALUES(" NEXT_CONTAINER ", ?1, ?2, 1, 1, 1, ?3, ?4, ?4, ?5, ?6, ?7, ?8, "
        "seal(0, " NEXT_CONTAINER ", ?1, ?2, 1, 1, 1, ?3, ?4, ?4, ?5, ?6, ?7, ?8))",
    [SQLITE__CONTAINER_UPDATE] =
        "UPDATE container SET snapshot = ?2, structure = ?3, document_at = ?4, next_page = ?5, "
        "modified_ns = ?6, raw_bytes = raw_bytes + ?7, stored_bytes = stored_bytes + ?8, "
        "fragments = fragments + ?9, datasets = coalesce(?10, datasets), "
        "sum = seal(0, " CONTAINER("", "name", "uuid", "?2", "?3", "?4", "?5", "?6",
                                   "raw_bytes + ?7", "stored_bytes + ?8", "fragments + ?9",
                                   "coalesce(?10, datasets)") ") WHERE container = ?1",
    [SQLITE__CONTAINER_UNNAME] =
        "UPDATE container SET name = NULL, "
        "sum = seal(0, " CONTAINER_OF("", "NULL", "uuid", "next_page") ") WHERE container = ?1",
    [SQLITE__CONTAINER_RENAME] =
        "UPDATE container SET name = ?2, "
        "sum = seal(0, " CONTAINER_OF("", "?2", "uuid", "next_page") ") WHERE container = ?1",
    /* The highest number stays taken for ever by a tombstone (no uuid), until there is a higher
     * one: numbers are never reused. */
    [SQLITE__CONTAINER_DELETE] =
        "DELETE FROM container WHERE " FORGOTTEN,
    [SQLITE__CONTAINER_TOMBSTONE] =
        "UPDATE container SET uuid = '', "
        "sum = seal(0, " CONTAINER_OF("", "name", "''", "next_page") ") WHERE container = ?1",
    [SQLITE__CONTAINER_IMPORT] =
        CONTAINER_INTO "VALUES(" NEXT_CONTAINER
        ", ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "seal(0, " NEXT_CONTAINER ", ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12))",
    [SQLITE__GARBAGE_LIST] =
        "SELECT container, uuid, name FROM container "
        "WHERE name IS NULL AND " CONTAINER_SEALED("") " AND uuid <> ''",
    [SQLITE__GARBAGE_STATE] =
        "SELECT name IS NULL FROM container "
        "WHERE container = ?1 AND " CONTAINER_SEALED("") " AND uuid <> ''",
    [SQLITE__RECORD_LIST] =
        "SELECT container, uuid, name, " CONTAINER_SEALED("") " FROM container "
        "ORDER BY container",

    /* ---- snapshots. Conditions of a value under the checksum are written as NOT s.pruned: SQLite
     * would put the constant of s.pruned = 0 in the place of the value, also in sealed(). */
    [SQLITE__SNAPSHOT_OPEN] = SNAPSHOT_OPENED(""),
    [SQLITE__SNAPSHOT_OPEN_TAGS] =
        SNAPSHOT_OPENED(", EXISTS (SELECT 1 FROM tag WHERE container = c.container)"),
    [SQLITE__SNAPSHOT_EXISTS] = "SELECT 1 FROM snapshot WHERE id = ?1 AND pruned = 0",
    [SQLITE__SNAPSHOT_LIST] =
        "SELECT s.id & 0xffffffff, s.parent, s.time_ns, s.writer, s.message FROM container c "
        "JOIN snapshot s ON s.id BETWEEN c.container << 32 AND (c.container << 32) + 0xffffffff "
        "WHERE c.name = ?1 AND " SNAPSHOT_SEALED("s.") " AND NOT s.pruned ORDER BY s.id",
    /* What is not above `low` is old enough, and nothing is above `top`. Each step asks about one
     * row: the last one up to there, as numbers may be missing. */
    [SQLITE__SNAPSHOT_AT] =
        "WITH RECURSIVE search(low, top, step) AS ("
        "SELECT container << 32, (container << 32) + snapshot, 1 << 31 FROM container "
        "WHERE name = ?1 AND " CONTAINER_SEALED("") " UNION ALL "
        "SELECT low + CASE WHEN low + step > top OR (SELECT s.time_ns > ?2 FROM snapshot s "
        "WHERE s.id > low AND s.id <= low + step AND " SNAPSHOT_SEALED("s.")
        " ORDER BY s.id DESC LIMIT 1) THEN 0 ELSE step END, top, step / 2 "
        "FROM search WHERE step > 0) "
        "SELECT (SELECT s.id & 0xffffffff FROM snapshot s WHERE s.id > low - (low & 0xffffffff) "
        "AND s.id <= low AND " SNAPSHOT_SEALED("s.")
        " AND NOT s.pruned ORDER BY s.id DESC LIMIT 1) AS found "
        "FROM search WHERE step = 0 AND found > 0",
    [SQLITE__SNAPSHOT_INSERT] =
        "INSERT INTO snapshot(id, parent, structure, document_at, time_ns, pruned, writer, "
        "message, lengths, document, attributes, sum) VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, "
        "?9, ?10, seal(0, ?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8))",
    [SQLITE__SNAPSHOT_SCAN] =
        "SELECT id & 0xffffffff, document_at, time_ns, pruned, "
        "intact(0, sum, " SNAPSHOT_OF("", "pruned") ") FROM snapshot "
        "WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    [SQLITE__SNAPSHOT_PRUNE] =
        "UPDATE snapshot SET pruned = 1, sum = seal(0, " SNAPSHOT_OF("", "1") ") WHERE id = ?1",
    [SQLITE__SNAPSHOT_DELETE] = "DELETE FROM snapshot WHERE id = ?1",
    [SQLITE__SNAPSHOT_DELETE_ALL] = "DELETE FROM snapshot WHERE id BETWEEN ?1 AND ?2",

    /* ---- pages: lists go on behind what is asked for, see page_scan in read.c. The checksum comes
     * first, as a damaged key may be one (NULL) that the other condition leaves out. */
    [SQLITE__PAGE_LIST_ALL] =
        "SELECT " PAGE ", added <= ?2 AND (removed = 0 OR removed > ?2) FROM page "
        "WHERE " PAGES_SEALED("container = ?1") " AND container >= ?1 "
        "ORDER BY container, dataset, page",
    [SQLITE__PAGE_LIST] =
        "SELECT " PAGE ", added <= ?2 AND (removed = 0 OR removed > ?2) FROM page "
        "WHERE " PAGES_SEALED("container = ?1 AND dataset = ?3") " "
        "AND (container, dataset) >= (?1, ?3) ORDER BY container, dataset, page",
    [SQLITE__PAGE_LIST_KEPT] =
        "SELECT " PAGE ", 1 FROM page "
        "WHERE " PAGES_SEALED("container = ?1 AND ?2 IN (0, dataset)") " "
        "AND (container, dataset) >= (?1, ?2) ORDER BY container, dataset, page",
    [SQLITE__PAGE_BEFORE] =
        "SELECT " PAGE " FROM page "
        "WHERE " PAGE_KEY_SEALED " AND (container, dataset) < (?1, ?2) "
        "ORDER BY container DESC, dataset DESC, page DESC LIMIT 2",
    /* With those that follow it, of the same container. */
    [SQLITE__PAGE_LOAD_NEXT] =
        "SELECT page, length(data), data FROM page_data "
        "WHERE page >= ?1 AND page <= (?1 | 0xffffffff) ORDER BY page LIMIT ?2",
    [SQLITE__PAGE_LOAD] = "SELECT data FROM page_data WHERE page = ?1",
    [SQLITE__PAGE_INSERT] =
        PAGE_INTO "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, "
        "seal(3, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10))",
    [SQLITE__PAGE_IMPORT] =
        PAGE_INTO "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
        "seal(3, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11))",
    [SQLITE__PAGE_DATA_INSERT] = "INSERT INTO page_data(page, dataset, data) VALUES(?1, ?2, ?3)",
    [SQLITE__PAGE_DATASET] = "SELECT dataset FROM page_data WHERE page = ?1",
    /* OR FAIL: SQLite then keeps no journal of the statement, which would take most of its time.
     * What fails is taken back with the whole transaction. */
    [SQLITE__PAGE_RETIRE] =
        "UPDATE OR FAIL page SET removed = ?4, sum = seal(3, " PAGE_OF("page", "?4") ") "
        "WHERE container = ?1 AND dataset = ?2 AND page = ?3 AND " PAGE_SEALED " AND NOT removed "
        "RETURNING raw_bytes, stored_bytes, records",
    /* A damaged one stays. */
    [SQLITE__PAGE_RETIRED] =
        "SELECT dataset, page, added, removed FROM page INDEXED BY page_removed "
        "WHERE container = ?1 AND removed <> 0 AND intact(3, sum, " PAGE_OF("page", "removed") ")",
    [SQLITE__PAGE_DELETE] = "DELETE FROM page WHERE container = ?1 AND dataset = ?2 AND page = ?3",
    [SQLITE__PAGE_DATA_DELETE] = "DELETE FROM page_data WHERE page = ?1",
    [SQLITE__PAGE_DELETE_ALL] = "DELETE FROM page WHERE container = ?1",
    [SQLITE__PAGE_DATA_DELETE_ALL] = "DELETE FROM page_data WHERE page BETWEEN ?1 AND ?2",
    [SQLITE__PAGE_NUMBER_NEXT] =
        "UPDATE container SET next_page = next_page + 1, "
        "sum = seal(0, " CONTAINER_OF("", "name", "uuid", "next_page + 1") ") "
        "WHERE container = ?1 AND " CONTAINER_SEALED("") " RETURNING next_page - 1",
    [SQLITE__PAGE_RENUMBER] =
        "UPDATE page SET page = ?4, sum = seal(3, " PAGE_OF("?4", "removed") ") "
        "WHERE container = ?1 AND dataset = ?2 AND page = ?3 AND " PAGE_SEALED,
    [SQLITE__PAGE_DATA_REPLACE] = "UPDATE page_data SET page = ?2, data = ?3 WHERE page = ?1",

    /* ---- the index of attributes */
    [SQLITE__INDEXED_GET] = "SELECT value FROM store WHERE key = 'indexed'",
    [SQLITE__INDEXED_SET] = "UPDATE store SET value = ?1 WHERE key = 'indexed'",
    /* OR FAIL, OR IGNORE: no journal of the statement here, too. */
    [SQLITE__ATTRIBUTE_INSERT] = ATTRIBUTE_INTO ATTRIBUTE_ROW,
    [SQLITE__ATTRIBUTE_INSERT_2] = ATTRIBUTE_INTO ROWS_2(ATTRIBUTE_ROW),
    [SQLITE__ATTRIBUTE_INSERT_4] = ATTRIBUTE_INTO ROWS_4(ATTRIBUTE_ROW),
    [SQLITE__ATTRIBUTE_INSERT_8] = ATTRIBUTE_INTO ROWS_8(ATTRIBUTE_ROW),
    [SQLITE__ATTRIBUTE_INSERT_16] = ATTRIBUTE_INTO ROWS_16(ATTRIBUTE_ROW),
    /* Extents are rows of the same table, whose names begin with '@'; "@type" is an attribute. */
    [SQLITE__ATTRIBUTE_DELETE] =
        "DELETE FROM attribute WHERE container = ?1 AND NOT " EXTENT_NAME,
    [SQLITE__EXTENT_INSERT] = EXTENT_INTO EXTENT_ROW,
    [SQLITE__EXTENT_INSERT_2] = EXTENT_INTO ROWS_2(EXTENT_ROW),
    [SQLITE__EXTENT_INSERT_4] = EXTENT_INTO ROWS_4(EXTENT_ROW),
    [SQLITE__EXTENT_INSERT_8] = EXTENT_INTO ROWS_8(EXTENT_ROW),
    [SQLITE__EXTENT_INSERT_16] = EXTENT_INTO ROWS_16(EXTENT_ROW),
    [SQLITE__EXTENT_SET] =
        EXTENT_MERGE("IS NOT"),
    [SQLITE__EXTENT_LOWER] = EXTENT_MERGE("<"),
    [SQLITE__EXTENT_UPPER] = EXTENT_MERGE(">"),
    [SQLITE__VALUES_CONTAINER] = "SELECT container FROM container WHERE name = ?1",
    [SQLITE__VALUES_ALL] =
        "SELECT dataset, path, value, text FROM attribute WHERE container = ?1 AND name = ?2 "
        "ORDER BY dataset, entry",
    [SQLITE__VALUES_GLOBAL] = "SELECT dataset, path, value, text FROM attribute "
                              "WHERE container = ?1 AND dataset = 0 AND name = ?2 ORDER BY entry",
    [SQLITE__EXTENT_LIST] = "SELECT dataset, name, value, typeof(value) = 'text' FROM attribute "
                            "WHERE container = ?1 AND " EXTENT_NAME " ORDER BY dataset, name",
    [SQLITE__EXTENT_DELETE] = "DELETE FROM attribute WHERE container = ?1 AND " EXTENT_NAME,
    [SQLITE__EXTENT_FIRST] = EXTENT_AFTER(">="),
    [SQLITE__EXTENT_NEXT] = EXTENT_AFTER(">"),
    [SQLITE__TREE_CHANGED] = "SELECT 1 FROM extent_changed LIMIT 1 OFFSET ?1",
    [SQLITE__TREE_ALL_CHANGED] = "SELECT container FROM extent_changed ORDER BY container",
    [SQLITE__TREE_NOTE] = "INSERT OR IGNORE INTO extent_changed VALUES(?1)",
    [SQLITE__TREE_NOTE_DELETED] =
        "INSERT OR IGNORE INTO extent_changed SELECT container FROM container WHERE " FORGOTTEN,
    [SQLITE__TREE_RANGES] =
        "SELECT name, value FROM attribute WHERE container = ?1 AND name >= '@lat_max' "
        "AND name <= '@time_min' AND value < ''",
    [SQLITE__TREE_TIME_PUT] = "INSERT OR REPLACE INTO extent_time VALUES(?1, ?2, ?3)",
    [SQLITE__TREE_BOX_PUT] = "INSERT OR REPLACE INTO extent_box VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQLITE__TREE_TIME_DELETE] = "DELETE FROM extent_time WHERE container = ?1",
    [SQLITE__TREE_BOX_DELETE] = "DELETE FROM extent_box WHERE container = ?1",
    [SQLITE__TREE_DONE] = "DELETE FROM extent_changed WHERE container <= ?1",
    [SQLITE__ATTRIBUTE_PENDING] =
        "SELECT c.container, s.attributes, substr(c.name, 1, 1) = '/', passed_by(c.name) "
        "FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container > ?1 "
        "AND c.name IS NOT NULL ORDER BY c.container",
    [SQLITE__ATTRIBUTE_WAITING] =
        "SELECT container, document_at FROM container WHERE container > ?1 "
        "AND name IS NOT NULL ORDER BY container",
    [SQLITE__ATTRIBUTE_WAITING_BYTES] =
        "SELECT total(length(s.attributes)) FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container > ?1 "
        "AND c.name IS NOT NULL",
    [SQLITE__ATTRIBUTE_LIST] =
        "SELECT s.attributes FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container = ?1",

    [SQLITE__FACET] = "SELECT value, container FROM attribute INDEXED BY attribute_value "
                      "WHERE name = ?1 AND dataset = 0",
    [SQLITE__FACET_NOTE] = "SELECT note_value(value, container, dataset) FROM attribute "
                           "INDEXED BY attribute_value WHERE name = ?1",
    [SQLITE__UNNAMED] = "SELECT container FROM container WHERE name IS NULL",
    [SQLITE__OWN_NAMED] = "SELECT container FROM container WHERE name >= '/' AND name < '0'",
    /* Through its index; a store of before has none until its views are set. */
    [SQLITE__HIDDEN_NAMED] = "SELECT container, name FROM container c WHERE " SQLITE__HAS_MARK,
    /* Names that attributes of datasets have, or had: only where the store has all of them. */
    [SQLITE__DATASET_NAMES] = "SELECT 1 FROM store WHERE key = 'names'",
    [SQLITE__DATASET_NAME] = "SELECT 1 FROM store WHERE key = 'name:' || ?1",
    [SQLITE__DATASET_NAME_ADD] = "INSERT OR IGNORE INTO store VALUES('name:' || ?1, 1)",

    /* ---- views */
    [SQLITE__VIEW_TABLES] = "SELECT 1 FROM main.sqlite_master WHERE name = 'view_member'",
    [SQLITE__VIEW_ROOTS] = "SELECT node, part FROM view_node WHERE parent = 0 ORDER BY node",
    [SQLITE__VIEW_ROOT] = "INSERT INTO view_node(parent, part, n) VALUES(0, ?1, 0)",
    [SQLITE__VIEW_SOURCES] =
        "SELECT c.container, s.attributes FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container <= ?1 "
        "AND c.name IS NOT NULL AND substr(c.name, 1, 1) <> '/' ORDER BY c.container",
    [SQLITE__VIEW_ADD] = "UPDATE view_node SET n = n + 1 WHERE node = ?1",
    [SQLITE__VIEW_ENTER] =
        "INSERT INTO view_node(parent, part, n) VALUES(?1, ?2, 1) "
        "ON CONFLICT(parent, part) DO UPDATE SET n = n + 1 RETURNING node",
    [SQLITE__VIEW_MEMBER] = "INSERT INTO view_member(container, node) VALUES(?1, ?2)",
    [SQLITE__VIEW_LEAVE] = "SELECT node FROM view_member WHERE container = ?1",
    [SQLITE__VIEW_UNMEMBER] = "DELETE FROM view_member WHERE container = ?1 AND node = ?2",
    [SQLITE__VIEW_SUB] = "UPDATE view_node SET n = n - 1 WHERE node = ?1 RETURNING parent, n",
    [SQLITE__VIEW_DROP] = "DELETE FROM view_node WHERE node = ?1",
    [SQLITE__VIEW_FIND] = "SELECT node FROM view_node WHERE parent = ?1 AND part = ?2",
    /* Containers that queries pass by have entered as well: few, which are taken away. */
    [SQLITE__VIEW_LEVEL] =
        "WITH RECURSIVE up(node) AS (SELECT m.node FROM container c CROSS JOIN view_member m "
        "ON m.container = c.container WHERE " SQLITE__HAS_MARK " AND passed_by(c.name) "
        "UNION ALL SELECT v.parent FROM up JOIN view_node v ON v.node = up.node "
        "WHERE v.parent NOT IN (0, ?1)), "
        "gone(node, n) AS MATERIALIZED (SELECT node, count(*) FROM up GROUP BY node) "
        "SELECT v.part, v.n - coalesce(g.n, 0) AS rest FROM view_node v "
        "LEFT JOIN gone g ON g.node = v.node WHERE v.parent = ?1 AND rest > 0",

    /* ---- packs that records share */
    [SQLITE__SHARED_LIST] =
        "SELECT uuid, container, sealed('shared', 0, sum, uuid, container) FROM shared "
        "ORDER BY uuid, container",
    /* Through the index, as of names. */
    [SQLITE__SHARED_COUNT] = "SELECT count(*) FROM shared INDEXED BY shared_container",
    [SQLITE__SHARED_LIST_OF] =
        "SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared INDEXED BY shared_container WHERE container = ?1",
    [SQLITE__SHARED_BESIDE] =
        "SELECT * FROM (SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared INDEXED BY shared_container WHERE container < ?1 "
        "ORDER BY container DESC LIMIT 2) UNION ALL "
        "SELECT * FROM (SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared INDEXED BY shared_container WHERE container > ?1 "
        "ORDER BY container LIMIT 2)",
    [SQLITE__SHARED_LIST_UUID] =
        "SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared WHERE uuid = ?1 ORDER BY container",
    [SQLITE__SHARED_BESIDE_UUID] =
        "SELECT * FROM (SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared WHERE uuid < ?1 ORDER BY uuid DESC, container DESC LIMIT 2) UNION ALL "
        "SELECT * FROM (SELECT uuid, container, sealed('shared', 0, sum, uuid, container) "
        "FROM shared WHERE uuid > ?1 ORDER BY uuid, container LIMIT 2)",
    [SQLITE__SHARED_INSERT] =
        "INSERT OR IGNORE INTO shared(uuid, container, sum) VALUES(?1, ?2, seal(0, ?1, ?2))",
    [SQLITE__SHARED_MORE] =
        "INSERT OR IGNORE INTO shared(uuid, container, sum) SELECT u.uuid, ?1, seal(0, u.uuid, ?1) "
        "FROM (SELECT uuid FROM container WHERE container = ?2 UNION "
        "SELECT uuid FROM shared WHERE container = ?2) u "
        "WHERE u.uuid <> (SELECT uuid FROM container WHERE container = ?1)",
    [SQLITE__SHARED_NAMED] =
        "SELECT count(*) FROM container WHERE container IN (?1, ?2) AND name IS NOT NULL",
    [SQLITE__SHARED_THERE] = "SELECT count(*) FROM container WHERE container = ?1",
    [SQLITE__SHARED_DELETE] = "DELETE FROM shared WHERE container = ?1",

    /* ---- names of snapshots */
    [SQLITE__TAG_LIST] =
        "SELECT name, snapshot, created_ns, author, sealed('tag', " TAG ") FROM tag "
        "WHERE container = ?1 ORDER BY name",
    [SQLITE__TAG_SCAN] =
        "SELECT snapshot, intact(" TAG ") FROM tag NOT INDEXED WHERE container = ?1 "
        "ORDER BY snapshot",
    [SQLITE__TAG_COUNT] =
        "SELECT count(*) FROM tag INDEXED BY tag_snapshot WHERE container = ?1 AND snapshot >= 0",
    [SQLITE__TAG_GET] =
        "SELECT snapshot, sealed('tag', " TAG ") FROM tag WHERE container = ?1 AND name = ?2",
    [SQLITE__TAG_PUT] =
        "INSERT OR REPLACE INTO tag(container, name, snapshot, created_ns, author, sum) "
        "VALUES(?1, ?2, ?3, ?4, ?5, seal(0, ?1, ?2, ?3, ?4, ?5))",
    [SQLITE__TAG_REMOVE] = "DELETE FROM tag WHERE container = ?1 AND name = ?2",
    [SQLITE__TAG_DELETE] = "DELETE FROM tag WHERE container = ?1",

    /* ---- clones */
    [SQLITE__CLONE_SOURCE] =
        "SELECT c.container, c.uuid, CASE s.pruned WHEN 0 THEN s.id & 0xffffffff END, "
        "s.structure, s.document_at, c.datasets, c.snapshot, c.raw_bytes, c.stored_bytes, "
        "c.fragments, d.attributes, " CONTAINER_SEALED("c.") ", "
        "CASE WHEN s.id IS NULL THEN 1 ELSE " SNAPSHOT_SEALED("s.") " END "
        "FROM container c LEFT JOIN snapshot s ON s.id = (c.container << 32) + "
        "CASE ?2 WHEN 0 THEN c.snapshot ELSE ?2 END "
        "LEFT JOIN snapshot d ON d.id = (c.container << 32) + s.document_at "
        "WHERE c.container = ?1 AND c.name IS NOT NULL",
    /* ?1 of the old record, ?2 of the new one, ?3 that has the document. */
    [SQLITE__CLONE_SNAPSHOT] =
        "INSERT INTO snapshot(id, parent, structure, document_at, time_ns, pruned, writer, "
        "message, lengths, document, attributes, sum) "
        "SELECT ?2, s.parent, s.structure, ?2 & 0xffffffff, ?4, 0, ?5, ?6, s.lengths, d.document, "
        "d.attributes, seal(0, ?2, s.parent, s.structure, ?2 & 0xffffffff, ?4, 0, ?5, ?6, "
        "s.lengths) FROM snapshot s JOIN snapshot d ON d.id = ?3 WHERE s.id = ?1",
    [SQLITE__CLONE_PAGE] =
        PAGE_INTO "SELECT ?4, dataset, ?5, records, level, absolute, added, 0, raw_bytes, "
        "stored_bytes, box, seal(3, ?4, dataset, ?5, records, level, absolute, added, 0, "
        "raw_bytes, stored_bytes, box) FROM page "
        "WHERE container = ?1 AND dataset = ?2 AND page = ?3 AND " PAGE_SEALED,
    [SQLITE__CLONE_EXTENTS] =
        "INSERT INTO attribute(container, dataset, name, entry, path, value, text) "
        "SELECT ?2, dataset, name, entry, path, value, text FROM attribute "
        "WHERE container = ?1 AND " EXTENT_NAME,
    [SQLITE__CLONE_PAGE_DATA] =
        "INSERT INTO page_data(page, dataset, data) SELECT ?2, dataset, data FROM page_data "
        "WHERE page = ?1",

    /* ---- the store */
    [SQLITE__SEAL_CONTAINERS] =
        "UPDATE container SET sum = seal(0, " CONTAINER_OF("", "name", "uuid", "next_page") ")",
    [SQLITE__SEAL_SNAPSHOTS] =
        "INSERT INTO sealed_snapshot SELECT id, parent, structure, document_at, time_ns, pruned, "
        "writer, message, seal(0, " SNAPSHOT_OF("", "pruned") "), lengths, document, attributes "
        "FROM snapshot",
    [SQLITE__SEAL_PAGES] = "UPDATE page SET sum = seal(3, " PAGE_OF("page", "removed") ")",
    [SQLITE__FORMAT_GET] = "PRAGMA user_version",
    [SQLITE__STATE_GET] =
        "SELECT s.value, n.value FROM store s JOIN store n "
        "WHERE s.key = 'state' AND n.key = 'note'",
    [SQLITE__STATE_FORGET] = "DELETE FROM store WHERE key IN ('state', 'note')",
    [SQLITE__STATE_SET] = "INSERT OR REPLACE INTO store VALUES('state', ?1), ('note', ?2)",
    [SQLITE__FACT_GET] = "SELECT value FROM store WHERE key = 'fact:' || ?1",
    [SQLITE__FACT_PUT] = "INSERT OR REPLACE INTO store VALUES('fact:' || ?1, ?2)",
    [SQLITE__FACT_REMOVE] = "DELETE FROM store WHERE key = 'fact:' || ?1",
    [SQLITE__FACT_LIST] =
        "SELECT substr(key, 6), value FROM store "
        "WHERE key >= 'fact:' || ?1 AND key < 'fact:' || ?1 || char(127) ORDER BY key",
    /* '0' follows '/' in ASCII. */
    [SQLITE__FACT_FORGET] =
        "DELETE FROM store WHERE "
        "key > 'fact:' || (SELECT uuid FROM container WHERE container = ?1) || '/' AND "
        "key < 'fact:' || (SELECT uuid FROM container WHERE container = ?1) || '0'",
};
/* clang-format on */
