/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * R*Trees over the ranges of containers: time, and boxes of latitude and longitude. One row has
 * all that a container and its datasets have, so it finds too much, never too little.
 *
 * Whoever changes an extent, older versions too, leaves the container's number in extent_changed,
 * by a trigger. When there are some, a commit enters them. Queries look at both. Triggers must not
 * write to the trees themselves: an SQLite without them could not commit any more.
 */

#include "base/error.h"
#include "store.h"

/* Every attribute of every container passes these conditions. A list in parentheses would be a
 * table that SQLite makes anew each time, and so would be an INSERT that reads what it writes to.
 * Not OR IGNORE: in a trigger it means nothing to statements with ON CONFLICT of their own. */
#define RANGE                                                                                      \
    "NEW.name >= '@lat_max' AND NEW.name <= '@time_min' AND (NEW.name = '@time_min' OR "           \
    "NEW.name = '@time_max' OR NEW.name = '@lat_min' OR NEW.name = '@lat_max' OR "                 \
    "NEW.name = '@lon_min' OR NEW.name = '@lon_max') AND "
#define NOTE(condition, number)                                                                    \
    "WHEN " condition "NOT EXISTS (SELECT 1 FROM extent_changed WHERE container = " number ") "    \
    "BEGIN INSERT INTO extent_changed VALUES(" number "); END;"
#define NOTE_RANGES                                                                                \
    "CREATE TRIGGER extent_range_inserted AFTER INSERT ON attribute " NOTE(                        \
        RANGE, "NEW.container") "CREATE TRIGGER extent_range_updated AFTER UPDATE ON "             \
                                "attribute " NOTE(RANGE, "NEW.container")

#define ALL "INDEXED BY attribute_value WHERE 1"

static const char trees[] =
    "CREATE TABLE extent_changed(container INTEGER PRIMARY KEY);"
    "CREATE VIRTUAL TABLE extent_time USING rtree(container, low, high);"
    "CREATE VIRTUAL TABLE extent_box USING rtree(container, south, north, west, east);" NOTE_RANGES
    "CREATE TRIGGER extent_gone AFTER DELETE ON container " NOTE("", "OLD.container")
        SQLITE__ENTER_TIMES(ALL, "name") ";" SQLITE__ENTER_BOXES(ALL, "name") ";";

/* Stores that older versions made note the same by slower triggers. */
static const char quicker[] = "DROP TRIGGER IF EXISTS extent_inserted;"
                              "DROP TRIGGER IF EXISTS extent_updated;" NOTE_RANGES;

static const sqlite__statement_id enter[] = {SQLITE__TREE_TIME_DELETE, SQLITE__TREE_BOX_DELETE,
                                             SQLITE__TREE_TIME_ENTER, SQLITE__TREE_BOX_ENTER,
                                             SQLITE__TREE_DONE};

/* An SQLite without R*Trees reads and writes all else; what it changes waits. */
esdm_status
sqlite__trees_has(sqlite__link *link, bool *ret_has, esdm_error *err)
{
    int64_t count = 0;
    esdm_status status = ESDM_OK;
    if (!link->has_trees) /* they are never taken away */
        status = sqlite__query_number(
            link,
            "SELECT count(*) FROM main.sqlite_master WHERE name = 'extent_box' "
            "AND EXISTS (SELECT 1 FROM pragma_module_list WHERE name = 'rtree')",
            &count, err);
    link->has_trees |= count > 0;
    *ret_has = link->has_trees;
    return status;
}

esdm_status
sqlite__trees_make(sqlite__link *link, esdm_error *err)
{
    bool has = false;
    int64_t known = 0;
    esdm_status status = sqlite__trees_has(link, &has, err);
    if (status != ESDM_OK || has)
        return status;
    status = sqlite__query_number(
        link, "SELECT count(*) FROM pragma_module_list WHERE name = 'rtree'", &known, err);
    if (status != ESDM_OK || known == 0)
        return status;
    return sqlite__exec(link, trees, err);
}

/* Once for each connection, when there is much to do anyway. */
static esdm_status
make_quicker(sqlite__link *link, esdm_error *err)
{
    int64_t count = 1;
    esdm_status status = ESDM_OK;
    if (!link->has_quick_triggers)
        status = sqlite__query_number(
            link, "SELECT count(*) FROM main.sqlite_master WHERE name = 'extent_range_inserted'",
            &count, err);
    if (status == ESDM_OK && count == 0)
        status = sqlite__exec(link, quicker, err);
    link->has_quick_triggers = status == ESDM_OK;
    return status;
}

/* The first of those that wait, all together. */
static esdm_status
enter_changed(sqlite__link *link, esdm_error *err)
{
    esdm_status status = make_quicker(link, err);
    for (size_t i = 0; i < sizeof enter / sizeof *enter && status == ESDM_OK; i++)
        status = sqlite__run(link, enter[i], err, "");
    return status;
}

esdm_status
sqlite__trees_keep(sqlite__link *link, esdm_error *err)
{
    bool has = false, row = false;
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__trees_has(link, &has, err);
    if (status != ESDM_OK || !has)
        return status;
    status = sqlite__prepare(link, SQLITE__TREE_CHANGED, &statement, err, "i",
                             (uint64_t) SQLITE__CHANGED_MOST - 1);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (!row)
        return status;
    (void) sqlite3_reset(statement);
    return enter_changed(link, err);
}
