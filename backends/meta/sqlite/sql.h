/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_SQL_H
#define ESDM_BACKEND_SQLITE_SQL_H

/** @file One SQLite connection with its kept statements. One thread at a time. */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "esdm/status.h"
#include "esdm/sys/meta_types.h"

/* So many containers may wait to be entered; each costs queries a look at it. */
#define SQLITE__CHANGED_MOST 32

/* Names among which those are that queries pass by (base/hidden_names.h), and their index. */
#define SQLITE__HAS_MARK "(instr(name, '@branch:') > 0 OR instr(name, '.esdm-') > 0)"
#define SQLITE__HIDDEN_INDEX                                                                       \
    "CREATE INDEX IF NOT EXISTS container_hidden ON container(name) WHERE " SQLITE__HAS_MARK ";"

/** Statements that a connection prepares at first use and keeps. */
typedef enum sqlite__statement_id {
    SQLITE__BEGIN,
    SQLITE__BEGIN_WRITE,
    SQLITE__COMMIT,
    SQLITE__ROLLBACK,
    SQLITE__CONTAINER_FIND,
    SQLITE__CONTAINER_LIST_ALL,
    SQLITE__CONTAINER_LIST,
    SQLITE__CONTAINER_TAKEN,
    SQLITE__CONTAINER_COUNT_ALL,
    SQLITE__CONTAINER_COUNT,
    SQLITE__RECORD_COUNT,
    SQLITE__CONTAINER_ID,
    SQLITE__CONTAINER_STATE,
    SQLITE__CONTAINER_INSERT,
    SQLITE__CONTAINER_UPDATE,
    SQLITE__CONTAINER_UNNAME,
    SQLITE__CONTAINER_RENAME,
    SQLITE__CONTAINER_DELETE,
    SQLITE__CONTAINER_TOMBSTONE,
    SQLITE__GARBAGE_LIST,
    SQLITE__GARBAGE_STATE,
    SQLITE__SNAPSHOT_OPEN,
    SQLITE__SNAPSHOT_OPEN_TAGS,
    SQLITE__SNAPSHOT_EXISTS,
    SQLITE__SNAPSHOT_LIST,
    SQLITE__SNAPSHOT_AT,
    SQLITE__SNAPSHOT_INSERT,
    SQLITE__SNAPSHOT_SCAN,
    SQLITE__SNAPSHOT_PRUNE,
    SQLITE__SNAPSHOT_DELETE,
    SQLITE__SNAPSHOT_DELETE_ALL,
    SQLITE__PAGE_LIST_ALL,
    SQLITE__PAGE_LIST,
    SQLITE__PAGE_BEFORE,
    SQLITE__PAGE_LOAD,
    SQLITE__PAGE_INSERT,
    SQLITE__PAGE_DATA_INSERT,
    SQLITE__PAGE_DATASET,
    SQLITE__PAGE_RETIRE,
    SQLITE__PAGE_RETIRED,
    SQLITE__PAGE_DELETE,
    SQLITE__PAGE_DATA_DELETE,
    SQLITE__PAGE_DELETE_ALL,
    SQLITE__PAGE_DATA_DELETE_ALL,
    SQLITE__INDEXED_GET,
    SQLITE__INDEXED_SET,
    SQLITE__ATTRIBUTE_INSERT, /* likewise */
    SQLITE__ATTRIBUTE_INSERT_2,
    SQLITE__ATTRIBUTE_INSERT_4,
    SQLITE__ATTRIBUTE_INSERT_8,
    SQLITE__ATTRIBUTE_INSERT_16,
    SQLITE__ATTRIBUTE_DELETE,
    SQLITE__ATTRIBUTE_PENDING,
    SQLITE__ATTRIBUTE_WAITING,
    SQLITE__ATTRIBUTE_WAITING_BYTES,
    SQLITE__ATTRIBUTE_LIST,
    SQLITE__FACET,
    SQLITE__FACET_NOTE,
    SQLITE__UNNAMED,
    SQLITE__OWN_NAMED,
    SQLITE__HIDDEN_NAMED,
    SQLITE__DATASET_NAMES,
    SQLITE__DATASET_NAME,
    SQLITE__DATASET_NAME_ADD,
    SQLITE__VIEW_TABLES,
    SQLITE__VIEW_ROOTS,
    SQLITE__VIEW_ROOT,
    SQLITE__VIEW_SOURCES,
    SQLITE__VIEW_ADD,
    SQLITE__VIEW_ENTER,
    SQLITE__VIEW_MEMBER,
    SQLITE__VIEW_LEAVE,
    SQLITE__VIEW_UNMEMBER,
    SQLITE__VIEW_SUB,
    SQLITE__VIEW_DROP,
    SQLITE__VIEW_FIND,
    SQLITE__VIEW_LEVEL,
    SQLITE__EXTENT_INSERT, /* of one row: sqlite__rows_statement() */
    SQLITE__EXTENT_INSERT_2,
    SQLITE__EXTENT_INSERT_4,
    SQLITE__EXTENT_INSERT_8,
    SQLITE__EXTENT_INSERT_16,
    SQLITE__EXTENT_SET,
    SQLITE__EXTENT_LOWER,
    SQLITE__EXTENT_UPPER,
    SQLITE__VALUES_CONTAINER,
    SQLITE__VALUES_ALL,
    SQLITE__VALUES_GLOBAL,
    SQLITE__EXTENT_LIST,
    SQLITE__EXTENT_DELETE,
    SQLITE__EXTENT_FIRST,
    SQLITE__EXTENT_NEXT,
    SQLITE__TREE_CHANGED,
    SQLITE__TREE_ALL_CHANGED,
    SQLITE__TREE_NOTE,
    SQLITE__TREE_NOTE_DELETED,
    SQLITE__TREE_RANGES,
    SQLITE__TREE_TIME_PUT,
    SQLITE__TREE_BOX_PUT,
    SQLITE__TREE_TIME_DELETE,
    SQLITE__TREE_BOX_DELETE,
    SQLITE__TREE_DONE,
    SQLITE__FORMAT_GET,
    SQLITE__STATE_GET,
    SQLITE__STATE_FORGET,
    SQLITE__STATE_SET,
    SQLITE__FACT_GET,
    SQLITE__FACT_PUT,
    SQLITE__FACT_REMOVE,
    SQLITE__FACT_LIST,
    SQLITE__FACT_FORGET,
    SQLITE__CONTAINER_IMPORT,
    SQLITE__PAGE_IMPORT,
    SQLITE__RECORD_LIST,
    SQLITE__PAGE_LIST_KEPT,
    SQLITE__PAGE_NUMBER_NEXT,
    SQLITE__PAGE_LOAD_NEXT,
    SQLITE__PAGE_RENUMBER,
    SQLITE__PAGE_DATA_REPLACE,
    SQLITE__CLONE_SOURCE,
    SQLITE__CLONE_SNAPSHOT,
    SQLITE__CLONE_PAGE,
    SQLITE__CLONE_PAGE_DATA,
    SQLITE__CLONE_EXTENTS,
    SQLITE__SHARED_LIST,
    SQLITE__SHARED_COUNT,
    SQLITE__SHARED_LIST_OF,
    SQLITE__SHARED_BESIDE,
    SQLITE__SHARED_LIST_UUID,
    SQLITE__SHARED_BESIDE_UUID,
    SQLITE__SHARED_INSERT,
    SQLITE__SHARED_MORE,
    SQLITE__SHARED_NAMED,
    SQLITE__SHARED_THERE,
    SQLITE__SHARED_DELETE,
    SQLITE__TAG_LIST,
    SQLITE__TAG_SCAN,
    SQLITE__TAG_COUNT,
    SQLITE__TAG_GET,
    SQLITE__TAG_PUT,
    SQLITE__TAG_REMOVE,
    SQLITE__TAG_DELETE,
    SQLITE__SEAL_CONTAINERS,
    SQLITE__SEAL_SNAPSHOTS,
    SQLITE__SEAL_PAGES,
    SQLITE__STATEMENTS
} sqlite__statement_id;

/** Rows that one statement takes, at most. */
#define SQLITE__TOGETHER_MOST 16

/** The statement that takes as many of the rows that are left as one can. @param one that takes one
 *  row; those for 2, 4, 8 and 16 follow it. @param ret_rows how many it takes. */
static inline sqlite__statement_id
sqlite__rows_statement(sqlite__statement_id one, size_t left, size_t *ret_rows)
{
    int which = 0;
    while (which < 4 && (size_t) 2 << which <= left)
        which++;
    *ret_rows = (size_t) 1 << which;
    return (sqlite__statement_id) (one + which);
}

/** Their texts (statements.c). */
extern const char *const sqlite__texts[SQLITE__STATEMENTS];

/** A container that waits to be entered into the index (find_waiting.c). */
typedef struct sqlite__waiting sqlite__waiting;

/** What a query has left in temp.pending: containers that were not in the index (find_waiting.c).
 */
typedef struct sqlite__kept {
    bool is_there;
    int64_t version; /* "PRAGMA data_version": others have committed nothing since */
    int changes;     /* sqlite3_total_changes(): neither has this connection */
    bool any;
    uint64_t indexed;         /* the last that is in the index */
    uint64_t serial;          /* another one for each state of the store that was met */
    sqlite__waiting *waiting; /* owned; whose lists are there, in the order of their numbers */
    size_t nwaiting;
} sqlite__kept;

/** What the memory that all processes share says of the log: another one after each commit. */
typedef struct sqlite__log_state {
    bool is_known;
    uint32_t words[12];
} sqlite__log_state;

/** The record, or the newest snapshot, that was read last. A program that looks at a file before it
 *  opens it asks twice: as long as nobody has committed, the second answer comes from here
 * (newest.c).
 */
typedef struct sqlite__newest {
    bool is_there;
    bool has_snapshot;         /* else only the record was read */
    sqlite__log_state state;   /* of the log, when it was read */
    unsigned version;          /* SQLITE_FCNTL_DATA_VERSION of the state it was read from */
    char name[200];            /* longer ones are read again, as are more lengths */
    esdm_meta_snapshot loaded; /* without document and lengths */
    esdm_meta_length lengths[4];
} sqlite__newest;

/** Names of which there was no container when somebody looked last: of one that is created, and of
 *  the folders that it lies in. */
#define SQLITE__ABSENT_NAMES 6
typedef struct sqlite__absent {
    sqlite__log_state state;               /* in which there was none of them */
    char names[SQLITE__ABSENT_NAMES][200]; /* "": none */
    size_t next;                           /* whose place the next one takes */
    sqlite__log_state own;                 /* after the last commit of this process */
} sqlite__absent;

/** Index pages that lie behind the one that was asked for last, for who asks for them next: a small
 *  container has one for each of its variables. */
#define SQLITE__AHEAD_PAGES 7
#define SQLITE__AHEAD_BYTES 4096 /* larger ones are loaded when they are asked for */
typedef struct sqlite__ahead {
    sqlite__log_state state;
    uint64_t last; /* page that was asked for last */
    size_t count;
    struct {
        uint64_t page;
        void *data; /* owned; NULL: somebody has it now */
        size_t bytes;
    } pages[SQLITE__AHEAD_PAGES];
} sqlite__ahead;

typedef struct sqlite__link {
    sqlite3 *db;       /* NULL: not open */
    const char *label; /* path of the database for messages; borrowed */
    sqlite3_stmt *statements[SQLITE__STATEMENTS];
    uint64_t waited_ns;    /* for locks, in this transaction or read */
    uint64_t nap_began_ns; /* monotonic; of the last wait */
    uint64_t until_ns;     /* monotonic; end of a question that has a limit */
    enum { SQLITE__SETS_UNKNOWN, SQLITE__SETS_TAKEN, SQLITE__SETS_REFUSED } sets;
    /* Over times and boxes (extent_trees.c): none when last looked, not known to this SQLite, or
     * there, which they stay. */
    enum { SQLITE__TREES_NONE, SQLITE__TREES_FOREIGN, SQLITE__TREES_THERE } trees;
    unsigned puts_of_extents; /* counted (extents.c) */
    bool has_tables_of_5;     /* it was seen; formats only rise */
    bool is_large;            /* the cache, until this transaction ends */
    uint32_t together; /* containers, for which the writer is fitted (attributes.c); 0: few */
    sqlite__kept kept;
    struct sqlite__columns *columns;     /* owned; NULL: none (facet_columns.c) */
    bool shares_log;                     /* with other processes, through their shared memory */
    const volatile uint32_t *log_memory; /* of SQLite's; NULL: not asked for yet */
    sqlite__log_state began;             /* when the reading began in which something may be kept */
    sqlite__newest newest;
    sqlite__absent absent;
    sqlite__ahead ahead;
} sqlite__link;

/** Longest wait for locks of others in one transaction or read, in seconds. */
#define SQLITE__BUSY_SECONDS 30

/** Result code of a row whose checksum is not that of its values (sums.c). */
#define SQLITE__CORRUPT_ROW (SQLITE_CORRUPT | 0x45 << 8)

/** Gives a connection the functions of sums.c. Returns an SQLite result code. */
int sqlite__sums_register(sqlite3 *db);

/** Opens `file` (a name or a file: URI) with SQLITE_OPEN_* flags and sets the connection up. */
esdm_status sqlite__link_open(sqlite__link *link, const char *file, const char *label, int flags,
                              esdm_error *err);
/** Whether it waits for locks of others, as it does at first. */
void sqlite__link_wait(sqlite__link *link, bool waits);
/** Statements are ended (ESDM_ETIMEDOUT) when that is over; 0: never. */
void sqlite__link_limit(sqlite__link *link, uint32_t most_ms);
void sqlite__link_close(sqlite__link *link); /* a closed one is accepted */
/** Frees what was loaded ahead (pages_ahead.c). */
void sqlite__ahead_clear(sqlite__link *link);
/** Forgets which containers wait; what is in temp.pending is of no use any more. */
void sqlite__waiting_clear(sqlite__link *link);
/** Gives a connection the function by which values of attributes are read (facet_columns.c).
 * Returns an SQLite result code. */
int sqlite__columns_register(sqlite__link *link);
/** Frees values of attributes (facet_columns.c). */
void sqlite__columns_clear(sqlite__link *link);

/* Of a damaged database. */
#define SQLITE__REMEDY                                                                             \
    "esdm-mkfs --restore makes it anew from what lies on the targets (with --dry-run it tells "    \
    "what it finds there)"

/** Maps an SQLite result code, with the system's errno where there is one. */
esdm_status sqlite__error(const sqlite__link *link, int code, esdm_error *err);

/** Runs statements without results. */
esdm_status sqlite__exec(sqlite__link *link, const char *sql, esdm_error *err);
/** First column of the first row of a query, as a number. */
esdm_status sqlite__query_number(sqlite__link *link, const char *sql, int64_t *ret_number,
                                 esdm_error *err);

/**
 * Prepares (once) a kept statement and binds its parameters in order.
 * @param types one letter each: i uint64_t; t const char * (may be NULL); b const void *, size_t;
 *        d double; n nothing (NULL).
 */
esdm_status sqlite__prepare(sqlite__link *link, sqlite__statement_id id,
                            sqlite3_stmt **ret_statement, esdm_error *err, const char *types, ...);
esdm_status sqlite__bind(sqlite__link *link, sqlite3_stmt *statement, esdm_error *err,
                         const char *types, ...);
/** Next row. At the end or on failure *ret_row is false and the statement is reset. */
esdm_status sqlite__step(sqlite__link *link, sqlite3_stmt *statement, bool *ret_row,
                         esdm_error *err);
/** Runs a kept statement that gives no rows. */
esdm_status sqlite__run(sqlite__link *link, sqlite__statement_id id, esdm_error *err,
                        const char *types, ...);

/**
 * First column of the first row of a kept statement, copied, with a NUL behind it.
 * @param ret_data owned, free(); NULL: there is no row, or SQL's NULL.
 */
esdm_status sqlite__value(sqlite__link *link, sqlite__statement_id id, void **ret_data,
                          size_t *ret_bytes, esdm_error *err, const char *types, ...);

/** Column readers. */
uint64_t sqlite__u64(sqlite3_stmt *statement, int column);
/** "" for NULL; borrowed until the next step. */
const char *sqlite__text(sqlite3_stmt *statement, int column);
/** Copies a blob or text and adds a NUL. ESDM_OK with NULL for an SQL NULL. */
esdm_status sqlite__copy(sqlite3_stmt *statement, int column, void **ret_data, size_t *ret_bytes,
                         esdm_error *err);

/** Numbers that SQL composes: container << 32 | low. */
static inline uint64_t
sqlite__key(uint64_t container, uint64_t low)
{
    return container << 32 | low;
}

/** Containers fit into 31 bits, snapshots and a container's pages into 32. */
#define SQLITE__CONTAINER_MAX ((uint64_t) INT32_MAX)
#define SQLITE__LOW_MAX       ((uint64_t) UINT32_MAX)

#endif
