/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_LINK_H
#define ESDM_BACKEND_POSTGRES_LINK_H

/**
 * @file
 * Configuration, and one connection with its prepared statements. One thread at a time.
 *
 * The connection is always in pipeline mode: preparing and running a statement takes one round
 * trip, and what needs no answer is sent without waiting.
 */

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "esdm/sys/plugin.h"

#define POSTGRES__FORMAT 3
/* The first one that has the tables `shared`, `tag` and `extent`. */
#define POSTGRES__FORMAT_SHARED 2

/* ---- config.c ------------------------------------------------------------------------------- */

#define POSTGRES__SCHEMA_BYTES 64
#define POSTGRES__KEYWORDS     24

typedef struct postgres__config {
    char *path;      /* "site.json: metadata", for messages */
    char *label;     /* "db.example.org:5432/esdm, schema esdm", for messages; never a password */
    char *name;      /* of the target: "metadata" */
    char *directory; /* of the site's own server (private.c); NULL: somebody else's */
    char schema[POSTGRES__SCHEMA_BYTES];
    uint32_t lock_space;  /* {K} */
    bool migrating;       /* used in every state */
    uint64_t patience_ns; /* how long to go on after a lost connection */
    size_t nkeywords;
    const char *keywords[POSTGRES__KEYWORDS + 1]; /* for PQconnectStartParams(); static */
    char *values[POSTGRES__KEYWORDS + 1];         /* owned */
} postgres__config;

/** @param ret_config owned, postgres__config_free(). ESDM_EINVAL names what is wrong. */
esdm_status postgres__config_new(const esdm_plugin_config *config, postgres__config **ret_config,
                                 esdm_error *err);
void postgres__config_free(postgres__config *config); /* NULL is accepted */
/** Replaces {S}, {K} and {F}. @param ret_text owned, free(). */
esdm_status postgres__expand(const postgres__config *config, const char *text, char **ret_text,
                             esdm_error *err);

/* ---- params.c ------------------------------------------------------------------------------- */

#define POSTGRES__PARAMS 1300

/** Parameters of a statement in the server's binary format. Zero-initialise. */
typedef struct postgres__params {
    int count;
    int again; /* index + 1 of the boolean "this is a repetition"; 0: none */
    Oid types[POSTGRES__PARAMS];
    size_t offsets[POSTGRES__PARAMS]; /* into `memory`; SIZE_MAX: NULL */
    int lengths[POSTGRES__PARAMS];
    size_t array; /* where the open array begins */
    uint32_t elements;
    esdm__buffer memory;
} postgres__params;

void postgres__params_clear(postgres__params *params);
void postgres__put_bool(postgres__params *params, bool value);
void postgres__put_int(postgres__params *params, uint64_t value);
/** NULL is accepted. Must be valid UTF-8. */
void postgres__put_string(postgres__params *params, const char *text);
/** A new random token and the flag of repetition. @param ret_token 32 digits and NUL. */
void postgres__put_token(postgres__params *params, char *ret_token);
/** The statement may have succeeded without our knowing: the next attempt is a repetition. */
void postgres__params_repeat(postgres__params *params); /* NULL is accepted */
bool postgres__params_repeated(const postgres__params *params);

/** An array: begin, elements, end. */
typedef enum postgres__element {
    POSTGRES__INTS,
    POSTGRES__TEXTS,
    POSTGRES__BLOBS
} postgres__element;
void postgres__array_begin(postgres__params *params, postgres__element type);
void postgres__array_int(postgres__params *params, uint64_t value);
/** NULL with 0 bytes is an SQL NULL for texts, an empty value for blobs. */
void postgres__array_bytes(postgres__params *params, const void *data, size_t bytes);
void postgres__array_null(postgres__params *params);
void postgres__array_end(postgres__params *params);

/** Columns of binary results. NULL is 0 or "". Texts are borrowed from the result. */
uint64_t postgres__u64(const PGresult *result, int row, int column);
bool postgres__bool(const PGresult *result, int row, int column);
double postgres__double(const PGresult *result, int row, int column);
const char *postgres__text(const PGresult *result, int row, int column);
/** Elements of a bigint[]; missing ones are 0. */
void postgres__u64s(const PGresult *result, int row, int column, uint64_t *ret_values,
                    size_t count);

/* ---- private.c ------------------------------------------------------------------------------ */

/** Where the site's own server listens, and what it takes to be let in. */
typedef struct postgres__endpoint {
    char node[256];      /* for messages */
    char addresses[512]; /* separated by commas */
    char port[8];
    char password[128];
    char certificate[4096]; /* path */
} postgres__endpoint;

/** Reads it. ESDM_ENOENT: it does not run, and was never started. It may run no more. */
esdm_status postgres__endpoint_read(const postgres__config *config,
                                    postgres__endpoint *ret_endpoint, esdm_error *err);
/** ESDM_ENOENT: no server was made in the directory. */
esdm_status postgres__server_made(const postgres__config *config, esdm_error *err);
/** Runs "esdm-postgres ACTION DIRECTORY", and waits. @param dry_run with --dry-run. */
esdm_status postgres__server_tell(const postgres__config *config, const char *action, bool dry_run,
                                  esdm_error *err);

/* ---- connect.c ------------------------------------------------------------------------------ */

/**
 * Connects to the first of the configured hosts that is a primary; each has "connect_timeout".
 *
 * @param endpoint of the site's own server; NULL: what the configuration says.
 * @param ret_in_time false: the last one did not answer in time.
 * @return owned, PQfinish(); whether it is connected its PQstatus() tells. NULL: out of memory.
 */
PGconn *postgres__connect_any(const postgres__config *config, const postgres__endpoint *endpoint,
                              bool *ret_in_time);

/* ---- link.c --------------------------------------------------------------------------------- */

/** Statements that a connection prepares at first use; their text is in statements.c. */
typedef enum postgres__statement {
    POSTGRES__BEGIN,
    POSTGRES__COMMIT,
    POSTGRES__ROLLBACK,
    POSTGRES__PUBLISH,
    POSTGRES__PUBLISH_NEXT,
    POSTGRES__PUBLISH_EXTENTS,
    POSTGRES__PUBLISH_NEXT_EXTENTS,
    POSTGRES__PUBLISH_UPDATE_EXTENTS,
    POSTGRES__VALUES,
    POSTGRES__EXTENT_PUT,
    POSTGRES__EXTENT_LIST,
    POSTGRES__EXTENT_NAMES,
    POSTGRES__EXTENT_IMPORT,
    POSTGRES__LOCK_HEAD,
    POSTGRES__PAGE_LIST_NEWER,
    POSTGRES__PUBLISH_UPDATE,
    POSTGRES__KEEP,
    POSTGRES__SEEN,
    POSTGRES__FOLLOWED,
    POSTGRES__ADD_PAGES,
    POSTGRES__HAPPENED,
    POSTGRES__CONTAINER_FIND,
    POSTGRES__CONTAINER_LIST_ALL,
    POSTGRES__CONTAINER_LIST,
    POSTGRES__CONTAINER_REMOVE,
    POSTGRES__CONTAINER_MOVE,
    POSTGRES__SNAPSHOT_OPEN,
    POSTGRES__SNAPSHOT_LIST,
    POSTGRES__SNAPSHOT_AT,
    POSTGRES__PAGE_LIST_ALL,
    POSTGRES__PAGE_LIST,
    POSTGRES__PAGE_LOAD,
    POSTGRES__PIN,
    POSTGRES__UNPIN,
    POSTGRES__GARBAGE,
    POSTGRES__FORGET,
    POSTGRES__ATTRIBUTES,
    POSTGRES__STATE,
    POSTGRES__SET_STATE,
    POSTGRES__FACT_GET,
    POSTGRES__FACT_PUT,
    POSTGRES__FACT_REMOVE,
    POSTGRES__FACT_LIST,
    POSTGRES__FACT_FORGET,
    POSTGRES__IMPORT_CONTAINER,
    POSTGRES__IMPORT_PAGES,
    POSTGRES__RECORD_LIST,
    POSTGRES__PAGE_LIST_KEPT,
    POSTGRES__WRITER_LIVES,
    POSTGRES__RELOCATE,
    POSTGRES__PRUNE,
    POSTGRES__CLONE,
    POSTGRES__SHARED_LIST,
    POSTGRES__SHARE,
    POSTGRES__SHARE_COMMITTED,
    POSTGRES__SHARED_LIST_OF,
    POSTGRES__SHARED_LIST_UUID,
    POSTGRES__IMPORT_SHARES,
    POSTGRES__TAG_SET,
    POSTGRES__TAG_RAISE,
    POSTGRES__TAG_REMOVE,
    POSTGRES__TAG_LIST,
    POSTGRES__IMPORT_TAG,
    POSTGRES__TAG_COMMITTED,
    POSTGRES__RELAX,
    POSTGRES__STRICT,
    POSTGRES__FLUSH,
    POSTGRES__STATEMENTS
} postgres__statement;

extern const char *const postgres__statements[POSTGRES__STATEMENTS];

typedef struct postgres__link {
    const postgres__config *config; /* borrowed */
    PGconn *conn;                   /* NULL: not connected */
    int socket;                     /* of the connection, while it stood */
    PGconn *abandoned;              /* in a forked child: its parent's, not to be touched */
    unsigned pending;               /* answers that nobody waits for */
    bool relaxed;                   /* commits do not wait for the disk */
    bool replicated;                /* they wait for a standby, which stays so */
    bool prepared[POSTGRES__STATEMENTS];
} postgres__link;

/** How a statement failed, beyond its status. */
typedef enum postgres__failure {
    POSTGRES__REFUSED, /* by the server, for good */
    POSTGRES__RETRY,   /* by the server, which has undone it: once more may succeed */
    POSTGRES__LOST     /* no connection: it may have succeeded */
} postgres__failure;

/** Connects. @param ret_failure POSTGRES__LOST: may succeed later. */
esdm_status postgres__link_open(postgres__link *link, const postgres__config *config,
                                postgres__failure *ret_failure, esdm_error *err);
void postgres__link_close(postgres__link *link); /* a closed one is accepted */
/** Closes it if the server has closed its end, as far as that has been heard. Does not wait. */
void postgres__link_look(postgres__link *link);
/** In a forked child: gives up the connection without a word to the server. */
void postgres__link_abandon(postgres__link *link);

/** Runs one statement. @param ret_result owned, PQclear(); may be NULL. */
esdm_status postgres__link_run(postgres__link *link, postgres__statement id,
                               const postgres__params *params, PGresult **ret_result,
                               postgres__failure *ret_failure, esdm_error *err);
/** Runs any text; placeholders are replaced. */
esdm_status postgres__link_query(postgres__link *link, const char *sql,
                                 const postgres__params *params, PGresult **ret_result,
                                 postgres__failure *ret_failure, esdm_error *err);
/** Runs a script of many statements, as one transaction. */
esdm_status postgres__link_script(postgres__link *link, const char *sql, esdm_error *err);
/** Sends a statement and does not wait for its answer. Best effort. */
void postgres__link_send(postgres__link *link, postgres__statement id,
                         const postgres__params *params);

#endif
