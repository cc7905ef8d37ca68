/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_H
#define ESDM_BACKEND_POSTGRES_H

/**
 * @file
 * Metadata store "postgres": tables and functions in one schema of a PostgreSQL database. See
 * README.md for both.
 *
 * A store handle has one connection; its mutex is held during each call, which is one round trip in
 * most cases. Lock order: list (fork.c), mutex of a store.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/page_copies.h"
#include "esdm/sys/meta_store.h"
#include "esdm/types.h"
#include "link.h"
#include "pins.h"

/** Whether a name is one of those that queries pass by (base/hidden_names.h). The first has the
 * same text as the index container_hidden (views.sql); few names meet it. */
#define POSTGRES__HAS_MARK(name)                                                                   \
    "least(1, strpos(" name ", '@branch:') + strpos(" name ", '.esdm-')) = 1"
#define POSTGRES__IS_HIDDEN(name)                                                                  \
    "(" name                                                                                       \
    " LIKE '/%' OR (" POSTGRES__HAS_MARK(name) " AND (strpos(" name ", '@branch:') > 1 "           \
                                               "AND substr(" name ", strpos(" name                 \
                                               ", '@branch:') + 8) ~ '^[^@?:]+$' OR " name         \
                                               " ~ '^\\.esdm-recipe/|(^|/)\\.esdm-cp-[^/]*$')))"

/** Attributes of those that programs can say by name; read through the index. */
#define POSTGRES__HIDDEN_OBJECTS                                                                   \
    "(SELECT o.attributes FROM {S}.container c JOIN {S}.object o ON o.container = c.container "    \
    "AND o.dataset = 0 WHERE c.name NOT LIKE '/%' AND " POSTGRES__HAS_MARK(                        \
        "c.name") " AND " POSTGRES__IS_HIDDEN("c.name") ")"

/** Containers fit into 31 bits, snapshots and a container's pages into 32. */
#define POSTGRES__CONTAINER_MAX ((uint64_t) INT32_MAX)
#define POSTGRES__LOW_MAX       ((uint64_t) UINT32_MAX)

/** A change of which nobody knows whether it took place. */
typedef struct postgres__doubt {
    char token[ESDM_META_UUID_BYTES];
    uint64_t container; /* 0: it was to be a new one */
    char *name;         /* owned; NULL: an update */
    bool happened;      /* it did: the writer's handle does not know what it has published */
    struct postgres__doubt *next;
} postgres__doubt;

typedef struct postgres__store {
    postgres__config *config; /* owned; immutable */
    char *json;               /* owned: the configuration as it came */
    char site_id[ESDM_META_UUID_BYTES];
    pid_t pid; /* of the process that opened it: useless in a forked child */
    bool read_only;
    bool any_state; /* only asked for the site's id: a migration does not matter */
    bool writable;
    uint64_t format;
    bool owned;       /* by this user, who may upgrade it */
    bool has_extents; /* this user may use the table `extent`; as of the last connection */
    bool has_paths;   /* the server knows jsonpath; as of the last connection */
    bool has_places;  /* and reads rows from one place of a table to another */
    bool has_facets;  /* it may read `facet`; as of the last connection */
    bool has_reach;   /* this user may read the table `reach`; as of the last connection */
    bool has_marks;   /* its rows have marks of attributes; as of the last connection */
    uint64_t opened_ns;
    pthread_mutex_t mutex; /* guards everything below */
    bool unseen;           /* opened "later", and never connected: `writable` and the like are not
                              known */
    postgres__link link;
    PGresult
        *answer; /* owned: what the store said of itself to who asked for the site's id; NULL */
    uint64_t answered_ns;
    postgres__pins pins;
    postgres__doubt *doubts;
    char unflushed[ESDM_META_UUID_BYTES]; /* token of the last commit that did not wait for the
                                             disk; "": none */
    uint64_t unflushed_ns;
    bool lost;                    /* the connection was, since postgres__hold() */
    _Atomic uintptr_t holder;     /* thread that holds it; 0: none */
    struct postgres__store *next; /* list of open stores (fork.c) */
} postgres__store;

/* ---- store.c -------------------------------------------------------------------------------- */

/** Connects and looks at the schema. ESDM_ENOENT: not made; ESDM_ENOTSUP: newer. The site's id is
 *  not looked at. @param ret_store owned, postgres__close(). */
esdm_status postgres__attach(const esdm_plugin_config *config, bool read_only, bool any_state,
                             postgres__store **ret_store, esdm_error *err);
esdm_status postgres__open(const esdm_plugin_config *config, bool read_only, void **ret_store,
                           esdm_error *err);
void postgres__close(void *store);
esdm_status postgres__site_id(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                              esdm_error *err);

/** Locks the store for a call; ESDM_EINVAL in a forked child. On ESDM_OK postgres__leave(). */
esdm_status postgres__enter(postgres__store *store, esdm_error *err);
/** The same without the connection that a store opened "later" makes when it is first asked. */
esdm_status postgres__enter_known(postgres__store *store, esdm_error *err);
/** As above; ESDM_EACCES when the store is open for reading only. */
esdm_status postgres__enter_write(postgres__store *store, esdm_error *err);
/** The same for facts, which all formats have alike: a store of an older format keeps that one. */
esdm_status postgres__enter_note(postgres__store *store, esdm_error *err);
/** As postgres__enter_write() for a commit that need not survive a crash of the server, unless
 * `durable`. */
esdm_status postgres__enter_commit(postgres__store *store, bool durable, esdm_error *err);
/** Gives a store of an older format the current one (admin.c). ESDM_EEXIST: it has it already. */
esdm_status postgres__upgrade(postgres__link *link, esdm_error *err);
/** ESDM_ENOTSUP unless the store has clones and tags, which the first change gives it. */
esdm_status postgres__check_format(const postgres__store *store, esdm_error *err);
/** A commit took place. @param token of the change. */
void postgres__note_commit(postgres__store *store, const char token[ESDM_META_UUID_BYTES]);
void postgres__leave(postgres__store *store);
/** From here to postgres__release() what this thread asks is of one transaction that reads, and
 *  others wait. A connection that is lost in it is not made anew: all that follows fails. */
esdm_status postgres__hold(void *store, esdm_error *err);
bool postgres__release(void *store);

/**
 * Runs a statement, over lost connections if need be. One that changes something must have a token:
 * a repetition says so.
 * @param ret_result owned, PQclear().
 */
esdm_status postgres__run(postgres__store *store, postgres__statement id, postgres__params *params,
                          PGresult **ret_result, esdm_error *err);
/** A reading call as a whole: locks the store, runs the statement, clears the parameters. */
esdm_status postgres__ask(postgres__store *store, postgres__statement id, postgres__params *params,
                          PGresult **ret_result, esdm_error *err);
/** As postgres__run() for any text without tokens. */
esdm_status postgres__query(postgres__store *store, const char *sql, postgres__params *params,
                            PGresult **ret_result, esdm_error *err);

/** How long to go on after a failure. Zero-initialise. */
typedef struct postgres__patience {
    uint64_t until_ns; /* 0: nothing happened yet */
    unsigned attempts;
} postgres__patience;
/** Sleeps before the next attempt, a little longer each time; false when there is to be none. */
bool postgres__try_again(postgres__patience *patience, uint64_t limit_ns,
                         postgres__failure failure);
/** Makes the connection usable, if it is not. One attempt. */
esdm_status postgres__connect(postgres__store *store, postgres__failure *ret_failure,
                              esdm_error *err);

/* ---- pins.c: all under the mutex ----------------------------------------------------------- */

/** Notes what the server has just locked for a snapshot that this process has committed. */
void postgres__pins_float(postgres__store *store, uint64_t container, uint64_t snapshot);
/** Gives up what floats: nobody has asked for it. */
void postgres__pins_sink(postgres__store *store);
/** Notes what the server has just locked for one more user. */
esdm_status postgres__pins_adopt(postgres__store *store, uint64_t container, uint64_t snapshot,
                                 esdm_error *err);
/** Pins one that is locked by this session already, or asks the server. */
esdm_status postgres__pins_take(postgres__store *store, uint64_t container, uint64_t snapshot,
                                esdm_error *err);
/** Lets one user go. */
void postgres__pins_drop(postgres__store *store, uint64_t container, uint64_t snapshot);
/** On a new connection: takes all pins again. */
esdm_status postgres__pins_renew(postgres__store *store, postgres__failure *ret_failure,
                                 esdm_error *err);

/* ---- doubt.c: all under the mutex ----------------------------------------------------------- */

/** Whether a change, given by its parameters, has taken place. One attempt. */
esdm_status postgres__happened(postgres__store *store, const postgres__params *change,
                               bool *ret_happened, postgres__failure *ret_failure, esdm_error *err);
/** Notes a commit of which nobody knows, and says so in front of the message. Returns what is
 *  to be told: nothing that says that it was refused. */
esdm_status postgres__doubt_commit(postgres__store *store, const esdm_meta_commit *commit,
                                   const char token[ESDM_META_UUID_BYTES], esdm_status status,
                                   esdm_error *err);
/** Before another commit: ESDM_EIO when an earlier one in doubt has taken place.
 *  @param name may be NULL. */
esdm_status postgres__settle_doubts(postgres__store *store, uint64_t container, const char *name,
                                    esdm_error *err);

/** The container was opened anew. */
void postgres__forget_doubts(postgres__store *store, uint64_t container, const char *name);

/* ---- fork.c --------------------------------------------------------------------------------- */

void postgres__enter_list(postgres__store *store);
void postgres__leave_list(postgres__store *store);

/* ---- encoding.c ----------------------------------------------------------------------------- */

/** Any bytes as UTF-8: those that are none become U+10FF80 … U+10FFFF. */
void postgres__put_text(esdm__buffer *buffer, const char *text);
/** The same as a JSON string. */
void postgres__put_json(esdm__buffer *buffer, const char *text);
/** A number as JSON; infinity becomes 1e999. Not for NaN. */
void postgres__put_number(esdm__buffer *buffer, double number);
/** Undoes postgres__put_text() in place. */
void postgres__restore_text(char *text);

/** Objects with their attributes, as the table `object` holds them, as three parameters. */
esdm_status postgres__put_objects(postgres__params *params, const esdm_meta_attribute *attributes,
                                  size_t count, esdm_error *err);
/** Lengths of dimensions as two parameters. */
void postgres__put_lengths(postgres__params *params, const esdm_meta_length *lengths, size_t count);
/** From the texts of open_snapshot(). @param ret_lengths owned, free(). */
esdm_status postgres__read_lengths(const char *dimensions, const char *lengths,
                                   esdm_meta_length **ret_lengths, size_t *ret_count,
                                   esdm_error *err);

/* ---- commit.c ------------------------------------------------------------------------------- */

/** Adds the columns of pages as eight parameters. */
void postgres__put_pages(postgres__params *params, const esdm_meta_new_page *pages, size_t count);
/** Whether pages of the commit must not meet those of newer snapshots than `seen`. */
bool postgres__stands_apart(const esdm_meta_commit *commit);
/** Within a transaction, so that nobody else publishes for the record until its end: ESDM_ECONFLICT
 *  when they do. */
esdm_status postgres__check_apart(postgres__store *store, const esdm_meta_commit *commit,
                                  postgres__failure *ret_failure, esdm_error *err);
/** Number of pages from the first one on that one statement carries. */
size_t postgres__batch_size(const esdm_meta_new_page *pages, size_t count);
/** Any bytes as a text, see postgres__put_text(). NULL is "". */
void postgres__put_escaped(postgres__params *params, const char *text);

/* ---- extents.c ------------------------------------------------------------------------------ */

/** Adds the columns of extents as five parameters. */
void postgres__put_extents(postgres__params *params, const esdm_meta_extent *extents, size_t count);
/** ESDM_ENOTSUP when there is no table of them. Locks the store. */
esdm_status postgres__need_extents(postgres__store *store, esdm_error *err);
esdm_status postgres__extent_put(void *store, uint64_t container, uint64_t snapshot,
                                 const esdm_meta_extent *extents, size_t nextents, esdm_error *err);
esdm_status postgres__extent_merge(void *store, uint64_t container, uint64_t snapshot,
                                   const esdm_meta_extent *extents, size_t nextents,
                                   esdm_error *err);
esdm_status postgres__extent_list(void *store, uint64_t container, esdm_meta_extent_visitor visit,
                                  void *user, esdm_error *err);
esdm_status postgres__extent_names(void *store, const char *prefix, esdm_meta_name_visitor visit,
                                   void *user, esdm_error *err);

/* ---- values.c ------------------------------------------------------------------------------- */

esdm_status postgres__values(void *store, const char *const *containers, size_t ncontainers,
                             const char *const *names, size_t nnames, bool datasets,
                             esdm_meta_value_visitor visit, void *user, esdm_error *err);

esdm_status postgres__facets(void *store, const esdm_meta_expression *expression,
                             const char *const *names, size_t nnames, esdm_meta_facet_visitor visit,
                             void *user, esdm_error *err);
esdm_status postgres__ordered(void *store, const char *attribute, bool descending, size_t most,
                              esdm_meta_position *position, esdm_meta_number_visitor visit,
                              void *user, esdm_error *err);
esdm_status postgres__find_among(void *store, const esdm_meta_expression *expression,
                                 const uint64_t *containers, size_t ncontainers,
                                 esdm_meta_match_visitor visit, void *user, esdm_error *err);
esdm_status postgres__find_estimate(void *store, const esdm_meta_expression *expression,
                                    uint64_t *ret_containers, esdm_error *err);
esdm_status postgres__find_expression(void *store, const esdm_meta_expression *expression,
                                      esdm_meta_match_visitor visit, void *user, esdm_error *err);

/* ---- views.c -------------------------------------------------------------------------------- */

esdm_status postgres__view_set(void *store, const esdm_meta_view *views, size_t nviews, bool anew,
                               esdm_error *err);
esdm_status postgres__view_level(void *store, const esdm_meta_view *view, const char *const *path,
                                 size_t depth, esdm_meta_view_visitor visit, void *user,
                                 esdm_error *err);

/* ---- transaction.c -------------------------------------------------------------------------- */

/** A change that takes several statements. */
typedef struct postgres__transaction {
    postgres__statement id;   /**< that makes the change */
    postgres__params *params; /**< of that statement; begin with a token */
    const char *name;         /**< with keep_as; borrowed, as all that follows */
    const char *keep_as;      /**< the record of this name gets that one before; NULL: none does */
    const esdm_meta_seen *seen; /**< the record of this name must be that one, and as it was; NULL:
                                   any */
    uint64_t container;         /**< of an update */
    const esdm_meta_commit *commit; /**< whose pages may have to stand apart; NULL: none */
    const esdm_meta_new_page *pages;
    size_t npages;
    size_t first;     /**< of the pages, the first that `params` do not carry */
    PGresult *result; /**< of the statement; the caller's, PQclear() */
    uint64_t kept;    /**< the record that got another name, 0 if none */
} postgres__transaction;
/** Runs it, over lost connections if need be. Under the mutex. */
esdm_status postgres__transact(postgres__store *store, postgres__transaction *all, esdm_error *err);
/** ESDM_ECONFLICT when the statement has found no container to change. */
esdm_status postgres__check_published(const postgres__transaction *all, esdm_error *err);
void postgres__read_committed(const PGresult *result, esdm_meta_committed *ret_committed);

/* ---- read.c --------------------------------------------------------------------------------- */

/** Visits the pages of a result; a NULL in its first column ends it. */
esdm_status postgres__visit_pages(const PGresult *result, esdm_meta_page_visitor visit, void *user,
                                  esdm_error *err);
/** The columns of a record from `column` on. */
void postgres__read_record(const PGresult *result, int row, int column,
                           esdm_meta_container *ret_record);
esdm_status postgres__no_container(const char *name, esdm_error *err);

/* ---- operations ----------------------------------------------------------------------------- */

/* ---- stream.c ------------------------------------------------------------------------------- */

/** The pages of a commit that yields some one by one. @param ret_pages zeroed;
 *  esdm__page_copies_clear() in any case. */
esdm_status postgres__stream_collect(const esdm_meta_commit *commit, esdm__page_copies *ret_pages,
                                     esdm_error *err);

esdm_status postgres__make(const esdm_plugin_config *config, bool dry_run,
                           esdm_plugin_reporter report, void *user, esdm_error *err);
esdm_status postgres__check(const esdm_plugin_config *config, esdm_plugin_reporter report,
                            void *user, esdm_error *err);
esdm_status postgres__remove(const esdm_plugin_config *config, bool dry_run,
                             esdm_plugin_reporter report, void *user, esdm_error *err);
esdm_status postgres__container_find(void *store, const char *name, esdm_meta_container *ret_record,
                                     esdm_error *err);
esdm_status postgres__container_list(void *store, const char *prefix,
                                     esdm_meta_container_visitor visit, void *user,
                                     esdm_error *err);
esdm_status postgres__container_remove(void *store, const char *name, uint64_t *ret_container,
                                       esdm_error *err);
esdm_status postgres__container_move_seen(void *store, const char *from, const char *to,
                                          const char *keep_as, const esdm_meta_seen *seen,
                                          uint64_t *ret_replaced, esdm_error *err);
esdm_status postgres__container_move(void *store, const char *from, const char *to, bool replace,
                                     const char *keep_as, uint64_t *ret_replaced, esdm_error *err);
esdm_status postgres__snapshot_open(void *store, const char *name, uint64_t snapshot,
                                    uint64_t known_container, uint64_t known_structure,
                                    esdm_meta_snapshot *ret_snapshot, esdm_error *err);
esdm_status postgres__pin(void *store, uint64_t container, uint64_t snapshot, esdm_error *err);
void postgres__unpin(void *store, uint64_t container, uint64_t snapshot);
esdm_status postgres__snapshot_list(void *store, const char *name, esdm_meta_snapshot_visitor visit,
                                    void *user, esdm_error *err);
esdm_status postgres__snapshot_at(void *store, const char *name, uint64_t time_ns,
                                  uint64_t *ret_snapshot, esdm_error *err);
esdm_status postgres__page_list(void *store, uint64_t container, uint64_t snapshot,
                                uint32_t dataset, esdm_meta_page_visitor visit, void *user,
                                esdm_error *err);
esdm_status postgres__page_load(void *store, uint64_t page, void **ret_data, size_t *ret_bytes,
                                esdm_error *err);
esdm_status postgres__commit(void *store, const esdm_meta_commit *commit,
                             esdm_meta_committed *ret_committed, esdm_error *err);
esdm_status postgres__find(void *store, const esdm_meta_condition *conditions, size_t nconditions,
                           esdm_meta_match_visitor visit, void *user, esdm_error *err);
esdm_status postgres__garbage(void *store, esdm_meta_garbage_visitor visit, void *user,
                              esdm_error *err);
esdm_status postgres__forget(void *store, uint64_t container, esdm_error *err);
esdm_status postgres__state(void *store, esdm_meta_state *ret_state,
                            char ret_note[ESDM_META_NOTE_BYTES], esdm_error *err);
esdm_status postgres__set_state(void *store, esdm_meta_state state, const char *note,
                                esdm_error *err);
esdm_status postgres__attributes(void *store, uint64_t container, esdm_meta_attribute_visitor visit,
                                 void *user, esdm_error *err);
esdm_status postgres__import(void *store, const esdm_meta_import *import, esdm_error *err);
esdm_status postgres__record_list(void *store, esdm_meta_record_visitor visit, void *user,
                                  esdm_error *err);
esdm_status postgres__writer_begin(void *store, const char *writer, esdm_error *err);
void postgres__writer_end(void *store, const char *writer);
esdm_status postgres__writer_check(void *store, const char *writer, bool *ret_lost,
                                   esdm_error *err);
esdm_status postgres__writer_lives(void *store, const char *writer, bool *ret_lives,
                                   esdm_error *err);
esdm_status postgres__relocate(void *store, uint64_t container, esdm_meta_relocation *pages,
                               size_t npages, bool durable, esdm_error *err);

esdm_status postgres__clone(void *store, const esdm_meta_clone *clone,
                            esdm_meta_committed *ret_committed, esdm_error *err);
esdm_status postgres__share(void *store, uint64_t container, uint64_t other, esdm_error *err);
esdm_status postgres__shared_list(void *store, uint64_t container, esdm_meta_shared_visitor visit,
                                  void *user, esdm_error *err);
esdm_status postgres__shared_of(void *store, const char *uuid, esdm_meta_shared_visitor visit,
                                void *user, esdm_error *err);
esdm_status postgres__tag_set(void *store, uint64_t container, const esdm_meta_tag *tag,
                              bool replace, esdm_error *err);
esdm_status postgres__tag_remove(void *store, uint64_t container, const char *name,
                                 esdm_error *err);
esdm_status postgres__tag_list(void *store, uint64_t container, esdm_meta_tag_visitor visit,
                               void *user, esdm_error *err);

esdm_status postgres__prune(void *store, uint64_t container, uint32_t history, esdm_error *err);

esdm_status postgres__fact_get(void *store, const char *name, char **ret_text, esdm_error *err);
esdm_status postgres__fact_put(void *store, const char *name, const char *text, esdm_error *err);
esdm_status postgres__fact_list(void *store, const char *prefix, esdm_meta_fact_visitor visit,
                                void *user, esdm_error *err);
/** Removes the facts of a container that is about to be forgotten. */
esdm_status postgres__fact_forget(postgres__store *store, uint64_t container, esdm_error *err);

#endif
