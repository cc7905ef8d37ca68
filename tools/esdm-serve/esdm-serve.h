/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_SERVE_H
#define ESDM_TOOLS_SERVE_H

/** @file What the files of esdm-serve share. Functions run in any thread of the server. */

#include <microhttpd.h>

#include "common/common.h"
#include "vfile/pool.h"

/* What one request may cost. */
#define SERVE_MOST_NAMES    1000u
#define SERVE_MOST_VALUES   1000u      /* of an attribute */
#define SERVE_MOST_ELEMENTS (2u << 20) /* of a picture */
#define SERVE_MOST_READ     (1u << 30) /* bytes of the box that they are taken from */

typedef struct serve_state {
    esdm_session *session;
    vfile_pool *files;
    char *token; /* NULL: none is asked for */
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

/* ---- handlers ----------------------------------------------------------------------------- */

serve_result serve_list(serve_request *request); /* catalogue.c */
serve_result serve_find(serve_request *request);
serve_result serve_snapshots(serve_request *request);
serve_result serve_container(serve_request *request); /* structure.c */
serve_result serve_fragments(serve_request *request);
serve_result serve_values(serve_request *request); /* values.c */
serve_result serve_file(serve_request *request);   /* files.c */

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
