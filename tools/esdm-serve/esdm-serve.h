/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_SERVE_H
#define ESDM_TOOLS_SERVE_H

/** @file What the files of esdm-serve share. Functions run in any thread of the server. */

#include <microhttpd.h>

#include "common/common.h"
#include "common/pool.h"
#include "esdm-cp/esdm-cp.h"
#include "vfile/pool.h"

/* What one request may cost. */
#define SERVE_MOST_NAMES    1000u
#define SERVE_MOST_VALUES   1000u      /* of an attribute */
#define SERVE_MOST_ELEMENTS (2u << 20) /* of a picture */
#define SERVE_MOST_READ     (1u << 30) /* bytes of the box that they are taken from */

/** Who has a connection and asks for nothing (guard.c). */
typedef struct serve_guard serve_guard;

typedef struct serve_state {
    serve_guard *guard;
    esdm_session *session;
    vfile_pool *files;
    tool_pool *models;           /* serve_model: snapshots of containers (model.c) */
    char *token;                 /* NULL: none is asked for */
    char **origins;              /* pages of these may ask; NULL: of no other place */
    bool any_user;               /* of this machine may read: it was said, or there is a token */
    _Atomic uint64_t held_bytes; /* of answers that lie in memory as a whole */
} serve_state;

/** A request that is being answered. */
typedef struct serve_request {
    serve_state *state;
    struct MHD_Connection *connection;
    const char *rest; /* of the path, behind what chose the handler */
    bool head;        /* HEAD: no body */
} serve_request;

typedef enum MHD_Result serve_result;

/** A parameter behind '?'; borrowed, NULL: not given. */
const char *serve_parameter(const serve_request *request, const char *key);
/** A number there. false: it is no number, and the answer was given. */
bool serve_number(serve_request *request, const char *key, uint64_t otherwise, uint64_t *ret_value,
                  serve_result *ret);
/** Answers with JSON, and frees it. */
serve_result serve_json(serve_request *request, unsigned code, json_t *root);
/** Answers with an error as JSON: {"error": TEXT}. */
serve_result serve_error(serve_request *request, unsigned code, const char *text);
serve_result serve_failed(serve_request *request, esdm_status status, const esdm_error *err);
/** Queues a response and lets go of it; sets the headers that all answers have. */
serve_result serve_reply(serve_request *request, unsigned code, struct MHD_Response *response);

/** Whether a connection within this machine is of a user who could not read the site's directories,
 *  and did not start the server; also when that cannot be told. (local.c) */
bool serve_is_stranger(int socket);

/* ---- connections that ask for nothing (guard.c) -------------------------------------------- */

/** Begins to watch. @param connections most that there are. @return owned; NULL: no thread. */
serve_guard *serve_guard_new(guint connections);
/** New connections come by this socket; -1: none come any more. Threads: any. */
void serve_guard_listens(serve_guard *guard, MHD_socket socket);
/** When no connection is left. */
void serve_guard_free(serve_guard *guard);
/** For MHD_OPTION_NOTIFY_CONNECTION; the user is the guard. */
void serve_guard_connection(void *user, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what);
/** The headers of a request are there: to find the answer takes as long as it takes, and so does
 *  sending it while the client reads, or places are free.
 *  @param ret_stranger see serve_is_stranger(); NULL: it does not matter. */
void serve_guard_request(serve_guard *guard, struct MHD_Connection *connection, bool *ret_stranger);
/** For MHD_OPTION_NOTIFY_COMPLETED; the user is the guard. */
void serve_guard_done(void *user, struct MHD_Connection *connection, void **seen,
                      enum MHD_RequestTerminationCode how);

/* ---- bodies that are read while they are sent (stream.c) ----------------------------------- */

/** Bytes of the body from `position` on. Threads: any, one at a time for one body.
 *  @param ret_read 1 or more with ESDM_OK. */
typedef esdm_status (*serve_reader)(void *user, uint64_t position, void *buffer, size_t bytes,
                                    size_t *ret_read, esdm_error *err);

typedef struct serve_body {
    uint64_t size;
    const char *type;     /* of the content */
    const char *tag;      /* with its quotes: what stays the same as long as the body does */
    const char *location; /* a name that stays with these bytes; NULL: none is told */
    serve_reader read;
    void (*done)(void *user); /* called once, when nothing more is read */
    void *user;
} serve_body;

/** Answers with 304 where the client has the body already; then `done` is left to the caller, as it
 *  is otherwise, too. */
serve_result serve_unchanged(serve_request *request, const serve_body *body, bool *ret_unchanged);
/** Answers with the body or the range of it that is asked for, and calls `done` in every case. */
serve_result serve_stream(serve_request *request, const serve_body *body);

/* ---- snapshots that are read by several requests (model.c) --------------------------------- */

/** A snapshot of a container, open. Immutable but for what esdm_read() does. */
typedef struct serve_model {
    cp_end end;
    cp_model *model;
    GHashTable *nodes;  /* "group/name" → serve_node, owned; "" is the root */
    char *consolidated; /* the metadata of all nodes as Zarr has them; see zarr.c */
} serve_model;

typedef struct serve_node {
    cp_group *group;     /* NULL: a dataset */
    cp_dataset *dataset; /* NULL: a group */
} serve_node;

/** Opens what serve_models_new()'s pool holds. */
tool_pool *serve_models_new(esdm_session *session, unsigned most_idle);

/** A snapshot that a request is about. */
typedef struct serve_place {
    tool_held *held;    /* owned */
    serve_model *model; /* borrowed */
    char *tag;          /* owned: tells snapshots apart */
    char *pinned;       /* owned: the name that stays with these bytes, for a path; NULL: none */
} serve_place;

/** What stands beside the name of a thing that is kept open: the second, of a query that was saved
 *  under a name (esdm-ln), which is asked anew; 0 of all others. @param info of the name. */
uint64_t serve_now_if_saved(const esdm_container *opened, const esdm_container_info *info);
/** Opens the container of a name as it is now. @param ret_place owned: serve_place_clear().
 *  @return false: the answer was given. */
bool serve_place_open(serve_request *request, const char *name, serve_place *ret_place,
                      serve_result *ret);
void serve_place_clear(serve_state *state, serve_place *place);
/** By "group/name"; NULL: there is none. */
const serve_node *serve_node_find(const serve_model *model, const char *path);
/** "consolidated_metadata" of Zarr; owned. (zarr.c) */
char *serve_zarr_consolidated(const serve_model *model);

/* ---- handlers ----------------------------------------------------------------------------- */

serve_result serve_list(serve_request *request); /* catalogue.c */
serve_result serve_views(serve_request *request);
serve_result serve_find(serve_request *request);
serve_result serve_facets(serve_request *request);
serve_result serve_snapshots(serve_request *request);
serve_result serve_container(serve_request *request); /* structure.c */
serve_result serve_fragments(serve_request *request);
serve_result serve_values(serve_request *request); /* values.c */
serve_result serve_file(serve_request *request);   /* files.c */
serve_result serve_zarr(serve_request *request);   /* zarr.c */
serve_result serve_dap(serve_request *request);    /* dap.c */

/** Opens the container that the rest of the path names, at the snapshot that the request wants.
 *  NULL: the answer was given. @return owned. (structure.c) */
esdm_container *serve_open(serve_request *request, serve_result *ret);
/** A dataset by "/group/name"; NULL: there is none. */
esdm_dataset *serve_dataset(esdm_container *container, const char *path);

/** The handler of all requests. (request.c) */
enum MHD_Result serve_handle(void *state, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_bytes, void **request);

#endif
