/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_STORE_H
#define ESDM_BACKEND_SQLITE_STORE_H

/**
 * @file
 * Metadata store "sqlite": one database in a marked directory. See README.md for the tables.
 *
 * Two connections: readers never wait for this process's writer. Where threads open containers at
 * once there is a second one for that (second.c). Lock order: list (fork.c), write_mutex,
 * read_mutex, second_mutex, pins; calls hold only one of the three mutexes at a time.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/place.h"
#include "esdm/sys/meta_store.h"
#include "esdm/types.h"
#include "pins.h"
#include "sql.h"

#define SQLITE__FILE "catalogue.sqlite"
#define SQLITE__PINS "pins"
/** Files while a backup is made or brought back: this and random digits. */
#define SQLITE__BACKUP "catalogue-backup-"
#define SQLITE__FORMAT 5
/* While a migration is under way, and after it: who does not know of it is to keep away. Such
 * formats are even. */
#define SQLITE__FORMAT_MIGRATION 6
#define SQLITE__APP_ID           0x4553444d /* "ESDM" */

/** How the files are reached. */
typedef enum sqlite__access {
    SQLITE__LIVE,      /* through SQLite's own locking */
    SQLITE__IMMUTABLE, /* unlocked: nobody can write there while we look, or we notice */
    SQLITE__COPY       /* a private copy */
} sqlite__access;

/** The second connection for reading. */
typedef enum sqlite__second_is {
    SQLITE__SECOND_NEVER, /* the store is frozen or has no log, or it could not be opened */
    SQLITE__SECOND_LATER,
    SQLITE__SECOND_THERE
} sqlite__second_is;

/** What tells a frozen store that somebody changed the files. */
typedef struct sqlite__stamp {
    struct timespec modified[3];
    off_t bytes[3]; /* database, -wal, -journal; -1: not there */
} sqlite__stamp;

typedef struct sqlite__store {
    char *directory;
    char *file;     /* path of the database */
    pid_t pid;      /* of the process that opened it: useless in a forked child */
    bool migrating; /* used in every state */
    bool flushes;   /* removals and new names, too, survive power loss */
    bool writable;
    esdm_error refused; /* ESDM_OK: none; else why it is open for reading alone, though this process
                           may write */
    bool rollback_journal;      /* no WAL: network file system */
    pthread_mutex_t read_mutex; /* guards reader, access, stamp */
    _Atomic uintptr_t holder;   /* thread that holds it (sqlite__hold()); 0: none */
    sqlite__link reader;
    sqlite__access access;
    sqlite__stamp stamp;
    int open_flags; /* of connections for reading */
    dev_t device;   /* of the file that reader has, where a second one may be */
    ino_t inode;
    atomic_int second_is;         /* sqlite__second_is */
    atomic_uint waits;            /* for the first one, until there is a second one */
    pthread_mutex_t second_mutex; /* guards second */
    sqlite__link second;
    pthread_mutex_t write_mutex; /* guards writer, durable, current */
    sqlite__link writer;         /* opened by the first write */
    bool current;                /* the format is not an older one */
    bool durable;                /* the writer's commits are flushed */
    sqlite__pins pins;           /* locked inside */
    struct sqlite__store *next;  /* list of open stores (fork.c) */
    bool held[3]; /* by the fork in progress: write_mutex, read_mutex, second_mutex */
    bool busy;    /* in the child: some thread was inside at the fork */
} sqlite__store;

/* ---- schema.c ------------------------------------------------------------------------------- */

/** Makes the tables unless they are there. */
esdm_status sqlite__schema_make(sqlite__link *link, esdm_error *err);
/** ESDM_ENOENT: no tables yet; ESDM_ENOTSUP: newer; ESDM_ECORRUPT: not our database. */
esdm_status sqlite__schema_check(sqlite__link *link, esdm_error *err);

/** Covers the tables of an older format, in this connection, with views that have all columns. */
esdm_status sqlite__schema_adapt(sqlite__link *link, esdm_error *err);
/** Within a transaction: gives a store of an older format the current one.
 *  @param ret_current whether it had it before. */
esdm_status sqlite__schema_upgrade(sqlite__link *link, bool *ret_current, esdm_error *err);
/** Within a transaction that enters the first row of `shared` or `tag`: from now on programs of
 *  older versions that have the store open cannot delete anything any more. */
esdm_status sqlite__schema_guard(sqlite__link *link, esdm_error *err);
/** Whether there are the tables `shared` and `tag`: not in an older store that was not written
 *  since. Another program may have upgraded it since it was opened. */
esdm_status sqlite__schema_has_tables_of_5(sqlite__link *link, bool *ret_has, esdm_error *err);

static inline bool
sqlite__is_migration(uint64_t format)
{
    return format % 2 == 0;
}

/* ---- state.c -------------------------------------------------------------------------------- */

/** Where the store stands in a migration. @param ret_note may be NULL. */
esdm_status sqlite__read_state(sqlite__link *link, esdm_meta_state *ret_state,
                               char ret_note[ESDM_META_NOTE_BYTES], esdm_error *err);
/** ESDM_ENOTSUP for a store that does not serve. @param ret_writes whether it takes commits. */
esdm_status sqlite__check_state(sqlite__link *link, bool migrating, bool *ret_writes,
                                esdm_error *err);
esdm_status sqlite__state(void *store, esdm_meta_state *ret_state,
                          char ret_note[ESDM_META_NOTE_BYTES], esdm_error *err);
esdm_status sqlite__set_state(void *store, esdm_meta_state state, const char *note,
                              esdm_error *err);

/* ---- fork.c --------------------------------------------------------------------------------- */

/** Enters an open store into the list of this process, and takes it out. */
void sqlite__enter_list(sqlite__store *store);
void sqlite__leave_list(sqlite__store *store);
/** In a forked child: closes the connections of an inherited store without running SQL. false when
 *  a thread of the parent was inside: it must be left as it is. */
bool sqlite__abandon(sqlite__store *store);
/** In a forked child: abandons all inherited stores. To be called before SQLite is used. */
void sqlite__abandon_inherited(void);

/* ---- open.c, frozen.c ----------------------------------------------------------------------- */

/** Whether a directory lies on a network file system, where WAL does not work. */
bool sqlite__is_network(int fd);
void sqlite__tell_restore(esdm_error *err); /* to an error that says that nothing is there */
esdm_status sqlite__open(const esdm_plugin_config *config, bool read_only, void **ret_store,
                         esdm_error *err);
void sqlite__close(void *store);
void sqlite__settle(void *store);
/** Opens the reader of a store that cannot be opened through SQLite's locking. */
esdm_status sqlite__open_frozen(sqlite__store *store, esdm_error *err);
/** Whether somebody changed the files of a frozen store since. */
bool sqlite__frozen_changed(const sqlite__store *store);

/** Locks the reader and returns it ready to use; sqlite__end_read() in every case of ESDM_OK. */
esdm_status sqlite__begin_read(sqlite__store *store, esdm_error *err);
void sqlite__end_read(sqlite__store *store);
/** Whether this thread holds the store (sqlite__hold()). */
bool sqlite__holds(sqlite__store *store);
/** As sqlite__begin_read(), for what an opening asks: by a second connection while another thread
 *  has the first one (second.c). sqlite__end_opening() in every case of ESDM_OK. */
esdm_status sqlite__begin_opening(sqlite__store *store, sqlite__link **ret_link, esdm_error *err);
void sqlite__end_opening(sqlite__store *store, const sqlite__link *link);
/** Once the reader is open, which shares its log: there may be a second connection (second.c). */
void sqlite__second_allow(sqlite__store *store);
/** From here to sqlite__release() what this thread reads is of one transaction, and others wait,
 *  but for openings. */
esdm_status sqlite__hold(void *store, esdm_error *err);
bool sqlite__release(void *store);
/** A transaction of the reader, unless one is held. */
esdm_status sqlite__begin_question(sqlite__store *store, esdm_error *err);
/** Ends it. @param status of the question: of one that failed nothing is kept for the next. */
void sqlite__end_question(sqlite__store *store, esdm_status status);
/** Looks at a row; false: no more are wanted. */
typedef bool (*sqlite__row_visitor)(sqlite3_stmt *row, void *user);
/** Looks at the whole, after the last row and in the same state of the database. */
typedef esdm_status (*sqlite__rows_check)(sqlite__link *link, void *user, esdm_error *err);
/** One whole reading: calls `visit` for each row of a question.
 *  @param text the question's one parameter; NULL: it has none.
 *  @param check may be NULL; not called when `visit` stopped. */
esdm_status sqlite__read_rows(sqlite__store *store, sqlite__statement_id id, const char *text,
                              sqlite__row_visitor visit, sqlite__rows_check check, void *user,
                              esdm_error *err);
/** ESDM_ECORRUPT unless `rows` is what a counting statement says.
 *  @param text its one parameter; NULL: it has none. */
esdm_status sqlite__check_count(sqlite__link *link, sqlite__statement_id id, const char *text,
                                uint64_t rows, esdm_error *err);
/**
 * Locks the writer and begins a transaction. On ESDM_OK sqlite__end_write() must follow.
 * @param durable whether the commit is to survive power loss.
 */
esdm_status sqlite__begin_write(sqlite__store *store, bool durable, esdm_error *err);
/** The same for facts, which all formats have alike: a store of an older format keeps that one. So
 * who only reads, and leaves a note of what was found, does not shut out older versions. */
esdm_status sqlite__begin_note(sqlite__store *store, bool durable, esdm_error *err);
/** Commits if `status` is ESDM_OK, else rolls back. Returns the final status. */
esdm_status sqlite__end_write(sqlite__store *store, esdm_status status, esdm_error *err);
/** Gives the writer what it needs of memory and log where so many containers are entered together,
 *  which nothing but the catalogue's size decides. */
esdm_status sqlite__writer_fit(sqlite__link *link, uint32_t together, esdm_error *err);
/** Within a write that touches many pages: they stay in memory until it ends. */
esdm_status sqlite__cache_enlarge(sqlite__link *link, esdm_error *err);

/* ---- encoding.c ----------------------------------------------------------------------------- */

/** Lengths as stored in snapshots: pairs of varints, sorted by dimension. */
esdm_status sqlite__lengths_decode(const void *data, size_t bytes, esdm_meta_length **ret_lengths,
                                   size_t *ret_count, esdm_error *err);
/** Merges by maximum and encodes. @param ret_data owned; NULL when there are none. */
esdm_status sqlite__lengths_merge(const void *head, size_t head_bytes,
                                  const esdm_meta_length *lengths, size_t nlengths, void **ret_data,
                                  size_t *ret_bytes, esdm_error *err);
/** @param ret_data owned, free(). */
esdm_status sqlite__box_encode(uint32_t rank, const uint64_t *box, void **ret_data,
                               size_t *ret_bytes, esdm_error *err);
/** @param ret_box room for 2 * ESDM_MAX_RANK values. */
esdm_status sqlite__box_decode(const void *data, size_t bytes, uint32_t *ret_rank,
                               uint64_t *ret_box, esdm_error *err);
/** The attribute list as kept beside the document. @param ret_data owned, free(). */
esdm_status sqlite__attributes_encode(const esdm_meta_attribute *attributes, size_t count,
                                      void **ret_data, size_t *ret_bytes, esdm_error *err);

/* ---- newest.c: of the reader, under read_mutex ---------------------------------------------- */

/** Before a reading within which something is to be kept. */
void sqlite__newest_begin(sqlite__link *link);
/** Within it, or after it: the state of the log that it has seen, if nobody has committed since. */
void sqlite__state_keep(sqlite__link *link, sqlite__log_state *ret_state);
/** Whether nobody has committed since, as far as that can be told without a reading. */
bool sqlite__state_is(sqlite__link *link, const sqlite__log_state *then);
/** Keeps, within the reading that has found it so, that there is no container of that name. */
void sqlite__absent_keep(sqlite__link *link, const char *name);
/** Whether that is known, as nobody has committed anything since. Reads nothing. */
bool sqlite__absent_is(sqlite__link *link, const char *name);
/** Whether nothing has that name or lies below it, where that is told faster than by a reading:
 *  after a commit of this process its writer has the pages that the reader has to read anew. Locks
 *  both, the writer only if it is free. */
bool sqlite__absent_below(sqlite__store *store, const char *name);
/** Of the writer, within its transaction: the state that the transaction follows. */
void sqlite__state_followed(sqlite__link *writer, sqlite__log_state *ret_state);
/** Whether it is known that there was no container of that name then. Takes read_mutex, if it is
 *  free. */
bool sqlite__absent_at(sqlite__store *store, const sqlite__log_state *state, const char *name);
/** After a commit of this process that has put these names and no others (NULL: none): what else
 *  was absent before still is, if nobody else has committed. Takes read_mutex, if it is free. */
void sqlite__absent_follow(sqlite__store *store, const sqlite__log_state *followed,
                           const char *name, const char *other);
/** Whether the snapshot is what is kept, and is still there, as nobody has committed anything
 *  since. Reads nothing. */
bool sqlite__newest_has(sqlite__link *link, uint64_t container, uint64_t snapshot);
/** Keeps what was loaded, within the reading that has loaded it. @param snapshot false: only the
 *  record is known. */
void sqlite__newest_keep(sqlite__link *link, const char *name, const esdm_meta_snapshot *loaded,
                         bool snapshot);
/** Whether what is kept is of that name, and nobody has committed anything since. */
esdm_status sqlite__newest_is(sqlite__link *link, const char *name, bool *ret_is, esdm_error *err);
/** The newest snapshot, without its document. @param ret_found false: it has to be loaded. */
esdm_status sqlite__newest_load(sqlite__link *link, const char *name, uint64_t known_container,
                                uint64_t known_structure, esdm_meta_snapshot *ret_snapshot,
                                bool *ret_found, esdm_error *err);

/* ---- pages_ahead.c: of the reader, under read_mutex ----------------------------------------- */

/** An index page. @param ret_data owned, free(); NULL: there is none. */
esdm_status sqlite__ahead_load(sqlite__link *link, uint64_t page, void **ret_data,
                               size_t *ret_bytes, esdm_error *err);

/* ---- attributes.c --------------------------------------------------------------------------- */

/** Containers that are entered into the index of attributes together: the least, the most, and one
 *  for each so many there are (see attributes.c). */
#define SQLITE__PENDING_MIN     64
#define SQLITE__PENDING_MAX     1024
#define SQLITE__CONTAINERS_EACH 512
/** Lists of containers that wait longer than 64: about 60,000 entries, which a first question reads
 *  within some 60 ms. */
#define SQLITE__PENDING_BYTES (2u << 20)

/** After a commit that stored `attributes` of a fact: keeps the index in step. */
esdm_status sqlite__attributes_changed(sqlite__link *link, uint64_t container, bool created,
                                       const void *attributes, size_t bytes, esdm_error *err);
/** Whether the store has trees over times and boxes (extent_trees.c). */
esdm_status sqlite__trees_has(sqlite__link *link, bool *ret_has, esdm_error *err);
/** Makes them, with what is there, unless there are some or this SQLite has none. */
esdm_status sqlite__trees_make(sqlite__link *link, esdm_error *err);
/** Whether they have the extents of that name. */
bool sqlite__trees_want(const char *name);
/** Notes that such an extent of the container was changed, or the container was made or removed. */
esdm_status sqlite__trees_note(sqlite__link *link, uint64_t container, esdm_error *err);
/** Notes what SQLITE__CONTAINER_DELETE is about to delete. */
esdm_status sqlite__trees_note_deleted(sqlite__link *link, uint64_t container, esdm_error *err);
/** Enters what was changed, when that is much. All within a transaction that writes. */
esdm_status sqlite__trees_keep(sqlite__link *link, esdm_error *err);
/** What a record has of extents beside those that are written. */
typedef enum sqlite__extents_how {
    SQLITE__EXTENTS_SOME,  /**< others stay, and are merged with what is written */
    SQLITE__EXTENTS_ALL,   /**< others are deleted */
    SQLITE__EXTENTS_FIRST, /**< it has none: it is new */
} sqlite__extents_how;

/** Writes extents of a record. (extents.c) */
esdm_status sqlite__extents_put(sqlite__link *link, uint64_t container,
                                const esdm_meta_extent *extents, size_t nextents,
                                sqlite__extents_how how, esdm_error *err);
/** Visits an encoded list until the visitor returns false. */
esdm_status sqlite__attributes_visit(const sqlite__link *link, uint64_t container,
                                     const void *attributes, size_t bytes,
                                     esdm_meta_attribute_visitor visit, void *user,
                                     esdm_error *err);
/** Names of attributes of datasets that were noted within a transaction. */
typedef struct sqlite__noted sqlite__noted;
/** Enters an encoded list through a statement that takes the columns of `attribute` in order.
 *  @param noted names that need not be noted again; NULL: none are noted. */
esdm_status sqlite__attributes_insert(sqlite__link *link, sqlite3_stmt *statement,
                                      uint64_t container, const void *attributes, size_t bytes,
                                      sqlite__noted *noted, esdm_error *err);
/** Containers up to this number are in the index. */
esdm_status sqlite__attributes_indexed(sqlite__link *link, uint64_t *ret_container,
                                       esdm_error *err);

/* ---- prune.c -------------------------------------------------------------------------------- */

/** Deletes snapshots that the history does not keep and nobody has pinned, within the current
 *  transaction. Locks pins that sqlite__pins_release() must free after the commit. */
esdm_status sqlite__prune(sqlite__store *store, uint64_t container, uint64_t head, uint32_t history,
                          uint64_t now_ns, esdm_error *err);

/* ---- commit.c ------------------------------------------------------------------------------- */

/** Makes the name free, within the current transaction. ESDM_EEXIST unless `replace`.
 *  @param keep_as the name that the record gets; NULL: it becomes garbage.
 *  @param ret_replaced the record that had the name, or 0. */
esdm_status sqlite__free_name(sqlite__link *link, const char *name, bool replace,
                              const char *keep_as, uint64_t *ret_replaced, esdm_error *err);
/** When the record was last changed. */
esdm_status sqlite__last_change(sqlite__link *link, uint64_t container, uint64_t *ret_ns,
                                esdm_error *err);

/* ---- shared.c ------------------------------------------------------------------------------- */

/** Rows of a commit: esdm_meta_commit.shares. Within a change. */
esdm_status sqlite__share_all(sqlite__link *link, uint64_t container, const uint64_t *others,
                              size_t count, esdm_error *err);
esdm_status sqlite__share(void *store, uint64_t container, uint64_t other, esdm_error *err);
esdm_status sqlite__shared_list(void *store, uint64_t container, esdm_meta_shared_visitor visit,
                                void *user, esdm_error *err);
esdm_status sqlite__shared_of(void *store, const char *uuid, esdm_meta_shared_visitor visit,
                              void *user, esdm_error *err);
esdm_status sqlite__clone(void *store, const esdm_meta_clone *clone,
                          esdm_meta_committed *ret_committed, esdm_error *err);

/* ---- tags.c --------------------------------------------------------------------------------- */

/** esdm_meta_commit.tag, of the new snapshot; NULL: nothing. Within a change. */
esdm_status sqlite__tag_committed(sqlite__link *link, uint64_t container, uint64_t snapshot,
                                  const esdm_meta_tag *tag, esdm_error *err);

/** Whether a record has the tag ESDM_META_TAG_SEAL. Within a change. */
esdm_status sqlite__is_sealed(sqlite__link *link, uint64_t container, bool *ret_sealed,
                              esdm_error *err);
/** Enters one over this connection, which is within a transaction. */
esdm_status sqlite__tag_insert(sqlite__link *link, uint64_t container, const esdm_meta_tag *tag,
                               esdm_error *err);
/** Snapshots of a record that have names, in ascending order.
 *  @param ret_snapshots owned, free(). @param ret_whole false: some may be missing. */
esdm_status sqlite__tagged(sqlite__link *link, uint64_t container, uint64_t **ret_snapshots,
                           size_t *ret_count, bool *ret_whole, esdm_error *err);
esdm_status sqlite__tag_set(void *store, uint64_t container, const esdm_meta_tag *tag, bool replace,
                            esdm_error *err);
esdm_status sqlite__tag_remove(void *store, uint64_t container, const char *name, esdm_error *err);
esdm_status sqlite__tag_list(void *store, uint64_t container, esdm_meta_tag_visitor visit,
                             void *user, esdm_error *err);

/* ---- operations ----------------------------------------------------------------------------- */

esdm_status sqlite__make(const esdm_plugin_config *config, bool dry_run,
                         esdm_plugin_reporter report, void *user, esdm_error *err);
esdm_status sqlite__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                          esdm_error *err);
esdm_status sqlite__remove(const esdm_plugin_config *config, bool dry_run,
                           esdm_plugin_reporter report, void *user, esdm_error *err);
esdm_status sqlite__site_id(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                            esdm_error *err);
esdm_status sqlite__container_find(void *store, const char *name, esdm_meta_container *ret_record,
                                   esdm_error *err);
esdm_status sqlite__container_list(void *store, const char *prefix,
                                   esdm_meta_container_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__container_remove(void *store, const char *name, uint64_t *ret_container,
                                     esdm_error *err);
esdm_status sqlite__container_move_seen(void *store, const char *from, const char *to,
                                        const char *keep_as, const esdm_meta_seen *seen,
                                        uint64_t *ret_replaced, esdm_error *err);
esdm_status sqlite__container_move(void *store, const char *from, const char *to, bool replace,
                                   const char *keep_as, uint64_t *ret_replaced, esdm_error *err);
esdm_status sqlite__snapshot_open(void *store, const char *name, uint64_t snapshot,
                                  uint64_t known_container, uint64_t known_structure,
                                  esdm_meta_snapshot *ret_snapshot, esdm_error *err);
esdm_status sqlite__pin(void *store, uint64_t container, uint64_t snapshot, esdm_error *err);
void sqlite__unpin(void *store, uint64_t container, uint64_t snapshot);
esdm_status sqlite__snapshot_list(void *store, const char *name, esdm_meta_snapshot_visitor visit,
                                  void *user, esdm_error *err);
esdm_status sqlite__snapshot_at(void *store, const char *name, uint64_t time_ns,
                                uint64_t *ret_snapshot, esdm_error *err);
esdm_status sqlite__page_list(void *store, uint64_t container, uint64_t snapshot, uint32_t dataset,
                              esdm_meta_page_visitor visit, void *user, esdm_error *err);
/** Those of a record and a dataset (0: of all), live or not, over this connection. */
esdm_status sqlite__visit_kept_pages(sqlite__link *link, uint64_t container, uint32_t dataset,
                                     esdm_meta_page_visitor visit, void *user, esdm_error *err);
/** Those of a snapshot, over this connection. */
esdm_status sqlite__visit_snapshot_pages(sqlite__link *link, uint64_t container, uint64_t snapshot,
                                         esdm_meta_page_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__page_load(void *store, uint64_t page, void **ret_data, size_t *ret_bytes,
                              esdm_error *err);
esdm_status sqlite__commit(void *store, const esdm_meta_commit *commit,
                           esdm_meta_committed *ret_committed, esdm_error *err);
esdm_status sqlite__find(void *store, const esdm_meta_condition *conditions, size_t nconditions,
                         esdm_meta_match_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__garbage(void *store, esdm_meta_garbage_visitor visit, void *user,
                            esdm_error *err);
esdm_status sqlite__forget(void *store, uint64_t container, esdm_error *err);

esdm_status sqlite__attributes(void *store, uint64_t container, esdm_meta_attribute_visitor visit,
                               void *user, esdm_error *err);
esdm_status sqlite__import(void *store, const esdm_meta_import *import, esdm_error *err);

esdm_status sqlite__extent_put(void *store, uint64_t container, uint64_t snapshot,
                               const esdm_meta_extent *extents, size_t nextents, esdm_error *err);
esdm_status sqlite__extent_merge(void *store, uint64_t container, uint64_t snapshot,
                                 const esdm_meta_extent *extents, size_t nextents, esdm_error *err);
esdm_status sqlite__extent_list(void *store, uint64_t container, esdm_meta_extent_visitor visit,
                                void *user, esdm_error *err);
esdm_status sqlite__extent_names(void *store, const char *prefix, esdm_meta_name_visitor visit,
                                 void *user, esdm_error *err);
esdm_status sqlite__values(void *store, const char *const *containers, size_t ncontainers,
                           const char *const *names, size_t nnames, bool datasets,
                           esdm_meta_value_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__facets(void *store, const esdm_meta_expression *expression,
                           const char *const *names, size_t nnames, esdm_meta_facet_visitor visit,
                           void *user, esdm_error *err);
esdm_status sqlite__find_expression(void *store, const esdm_meta_expression *expression,
                                    esdm_meta_match_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__ordered(void *store, const char *attribute, bool descending, size_t most,
                            esdm_meta_position *position, esdm_meta_number_visitor visit,
                            void *user, esdm_error *err);
esdm_status sqlite__find_among(void *store, const esdm_meta_expression *expression,
                               const uint64_t *containers, size_t ncontainers,
                               esdm_meta_match_visitor visit, void *user, esdm_error *err);
esdm_status sqlite__find_estimate(void *store, const esdm_meta_expression *expression,
                                  uint64_t *ret_containers, esdm_error *err);
esdm_status sqlite__view_set(void *store, const esdm_meta_view *views, size_t nviews, bool anew,
                             esdm_error *err);
esdm_status sqlite__view_level(void *store, const esdm_meta_view *view, const char *const *path,
                               size_t depth, esdm_meta_view_visitor visit, void *user,
                               esdm_error *err);
esdm_status sqlite__fact_get(void *store, const char *name, char **ret_text, esdm_error *err);
esdm_status sqlite__fact_put(void *store, const char *name, const char *text, esdm_error *err);
esdm_status sqlite__fact_list(void *store, const char *prefix, esdm_meta_fact_visitor visit,
                              void *user, esdm_error *err);
esdm_status sqlite__record_list(void *store, esdm_meta_record_visitor visit, void *user,
                                esdm_error *err);
esdm_status sqlite__writer_begin(void *store, const char *writer, esdm_error *err);
void sqlite__writer_end(void *store, const char *writer);
esdm_status sqlite__writer_lives(void *store, const char *writer, bool *ret_lives, esdm_error *err);
esdm_status sqlite__prune_record(void *store, uint64_t container, uint32_t history,
                                 esdm_error *err);
esdm_status sqlite__relocate(void *store, uint64_t container, esdm_meta_relocation *pages,
                             size_t npages, bool durable, esdm_error *err);

esdm_status sqlite__backup(void *store, esdm_meta_bytes_sink put, void *user, esdm_error *err);
esdm_status sqlite__restore(const esdm_plugin_config *config, esdm_meta_bytes_source next,
                            void *next_user, const char *note, esdm_plugin_reporter report,
                            void *user, esdm_error *err);

/** The columns of a record, in the order of the statements that give one. */
void sqlite__read_record(sqlite3_stmt *statement, esdm_meta_container *ret_record);

/* ---- rights.c ------------------------------------------------------------------------------ */

void sqlite__why_read_only(void *store, char *text, size_t bytes);

#endif
