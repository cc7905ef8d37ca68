/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * R*Trees over the ranges of containers: time, and boxes of latitude and longitude. One row has
 * all that a container and its datasets have, so it finds too much, never too little.
 *
 * Whoever changes an extent leaves the container's number in extent_changed: this version by
 * sqlite__trees_note(), older ones, whose writers run triggers, by these. When there are some, a
 * commit enters them. Queries look at both. Triggers must not write to the trees themselves: an
 * SQLite without them could not commit any more.
 */

#include <string.h>

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

#define NOTE_INSERTED                                                                              \
    "CREATE TRIGGER extent_range_inserted AFTER INSERT ON attribute " NOTE(RANGE, "NEW.container")
#define NOTE_UPDATED                                                                               \
    "CREATE TRIGGER extent_range_updated AFTER UPDATE ON attribute " NOTE(RANGE, "NEW.container")
#define NOTE_GONE "CREATE TRIGGER extent_gone AFTER DELETE ON container " NOTE("", "OLD.container")

/* Numbers sort before texts: "" says that there is none. */
#define ENTER_TIMES                                                                                \
    "INSERT INTO extent_time SELECT container, min(value), max(value) "                            \
    "FROM attribute INDEXED BY attribute_value "                                                   \
    "WHERE name IN ('@time_min', '@time_max') AND value < '' GROUP BY container;"
#define ENTER_BOXES                                                                                \
    "INSERT INTO extent_box SELECT container, min(lat), max(lat), min(lon), max(lon) FROM "        \
    "(SELECT container, CASE WHEN name IN ('@lat_min', '@lat_max') THEN value END AS lat, "        \
    "CASE WHEN name IN ('@lon_min', '@lon_max') THEN value END AS lon "                            \
    "FROM attribute INDEXED BY attribute_value "                                                   \
    "WHERE name >= '@lat_max' AND name <= '@lon_min' AND value < '') "                             \
    "GROUP BY container HAVING min(lat) IS NOT NULL AND min(lon) IS NOT NULL;"

#define MAKE                                                                                       \
    "CREATE TABLE extent_changed(container INTEGER PRIMARY KEY);"                                  \
    "CREATE VIRTUAL TABLE extent_time USING rtree(container, low, high);"                          \
    "CREATE VIRTUAL TABLE extent_box USING rtree(container, south, north, west, east);"

static const char trees[] = MAKE NOTE_INSERTED NOTE_UPDATED NOTE_GONE ENTER_TIMES ENTER_BOXES;

/* An SQLite without R*Trees reads and writes all else; what it changes waits. */
static esdm_status
look(sqlite__link *link, esdm_error *err)
{
    int64_t found = 0;
    if (link->trees == SQLITE__TREES_THERE) /* they are never taken away */
        return ESDM_OK;
    esdm_status status = sqlite__query_number(
        link,
        "SELECT (SELECT count(*) FROM main.sqlite_master WHERE name = 'extent_changed') * "
        "(1 + (SELECT count(*) FROM pragma_module_list WHERE name = 'rtree'))",
        &found, err);
    if (status == ESDM_OK)
        link->trees = found == 0   ? SQLITE__TREES_NONE
                      : found == 1 ? SQLITE__TREES_FOREIGN
                                   : SQLITE__TREES_THERE;
    return status;
}

esdm_status
sqlite__trees_has(sqlite__link *link, bool *ret_has, esdm_error *err)
{
    esdm_status status = look(link, err);
    *ret_has = link->trees == SQLITE__TREES_THERE;
    return status;
}

esdm_status
sqlite__trees_make(sqlite__link *link, esdm_error *err)
{
    int64_t known = 0;
    esdm_status status = look(link, err);
    if (status != ESDM_OK || link->trees != SQLITE__TREES_NONE)
        return status;
    status = sqlite__query_number(
        link, "SELECT count(*) FROM pragma_module_list WHERE name = 'rtree'", &known, err);
    if (status != ESDM_OK || known == 0)
        return status;
    return sqlite__exec(link, trees, err);
}

bool
sqlite__trees_want(const char *name)
{
    static const char *const names[] = {"@time_min", "@time_max", "@lat_min",
                                        "@lat_max",  "@lon_min",  "@lon_max"};
    if (strncmp(name, "@t", 2) != 0 && strncmp(name, "@l", 2) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static esdm_status
note(sqlite__link *link, sqlite__statement_id how, uint64_t container, esdm_error *err)
{
    esdm_status status = look(link, err);
    if (status != ESDM_OK || link->trees == SQLITE__TREES_NONE)
        return status;
    return sqlite__run(link, how, err, "i", container);
}

esdm_status
sqlite__trees_note(sqlite__link *link, uint64_t container, esdm_error *err)
{
    return note(link, SQLITE__TREE_NOTE, container, err);
}

esdm_status
sqlite__trees_note_deleted(sqlite__link *link, uint64_t container, esdm_error *err)
{
    return note(link, SQLITE__TREE_NOTE_DELETED, container, err);
}

/* ---- entering ------------------------------------------------------------------------------- */

typedef struct hull {
    double low, high;
    bool any;
} hull;

static void
widen(hull *of, double value)
{
    if (!of->any || value < of->low)
        of->low = value;
    if (!of->any || value > of->high)
        of->high = value;
    of->any = true;
}

static void
widen_of(hull *time, hull *lat, hull *lon, const char *name, double value)
{
    if (!sqlite__trees_want(name))
        return;
    widen(name[1] == 't' ? time : name[2] == 'a' ? lat : lon, value);
}

/* One reading of its rows for both trees. */
static esdm_status
enter_one(sqlite__link *link, uint64_t container, esdm_error *err)
{
    hull time = {0}, lat = {0}, lon = {0};
    sqlite3_stmt *ranges = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, SQLITE__TREE_RANGES, &ranges, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, ranges, &row, err);
    while (status == ESDM_OK && row) {
        widen_of(&time, &lat, &lon, sqlite__text(ranges, 0), sqlite3_column_double(ranges, 1));
        status = sqlite__step(link, ranges, &row, err);
    }
    if (status == ESDM_OK && time.any)
        status =
            sqlite__run(link, SQLITE__TREE_TIME_PUT, err, "idd", container, time.low, time.high);
    else if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__TREE_TIME_DELETE, err, "i", container);
    if (status == ESDM_OK && lat.any && lon.any)
        return sqlite__run(link, SQLITE__TREE_BOX_PUT, err, "idddd", container, lat.low, lat.high,
                           lon.low, lon.high);
    return status == ESDM_OK ? sqlite__run(link, SQLITE__TREE_BOX_DELETE, err, "i", container)
                             : status;
}

esdm_status
sqlite__trees_keep(sqlite__link *link, esdm_error *err)
{
    uint64_t waiting[SQLITE__CHANGED_MOST];
    size_t count = 0;
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
    status = sqlite__prepare(link, SQLITE__TREE_ALL_CHANGED, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && count < SQLITE__CHANGED_MOST) {
        waiting[count++] = sqlite__u64(statement, 0);
        status = sqlite__step(link, statement, &row, err);
    }
    if (status == ESDM_OK && row)
        (void) sqlite3_reset(statement);
    link->puts_of_extents = 0; /* there may be more: who puts next looks, too */
    for (size_t i = 0; i < count && status == ESDM_OK; i++)
        status = enter_one(link, waiting[i], err);
    return status == ESDM_OK && count > 0
               ? sqlite__run(link, SQLITE__TREE_DONE, err, "i", waiting[count - 1])
               : status;
}
