/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "failure.h"

/* Answers that may be outstanding: they must fit into the buffers of the connection. */
#define PENDING_MAX 256

/* ---- connecting ----------------------------------------------------------------------------- */

/* Settings of the session that the functions rely on, and that keep a dead client from holding up
 * the others. */
static esdm_status
set_up_session(postgres__link *link, postgres__failure *ret_failure, esdm_error *err)
{
    /* guard() of a store of format 2 wants just that one, which has clones and tags; later ones at
     * least that. */
    static const char settings[] =
        "SELECT set_config('default_transaction_isolation', 'read committed', false), "
        "set_config('lock_timeout', '30s', false), "
        "set_config('idle_in_transaction_session_timeout', '60s', false), "
        "set_config('jit', 'off', false), set_config('extra_float_digits', '1', false), "
        "set_config('search_path', 'pg_catalog', false), "
        "set_config('esdm.migrating', $1, false), set_config('esdm.format', '2', false)";
    postgres__params params = {0};
    postgres__put_string(&params, link->config->migrating ? "on" : "off");
    esdm_status status = postgres__link_query(link, settings, &params, NULL, ret_failure, err);
    postgres__params_clear(&params);
    return status;
}

/* @param socket that of a connection that stood: libpq closes it itself when it is lost, which the
 *  preloaded library has kept off. */
static void
finish(PGconn *conn, int socket)
{
    if (conn != NULL && socket >= 0 && PQsocket(conn) < 0)
        (void) esdm__descriptor_close(socket);
    esdm__descriptors_moving(true);
    PQfinish(conn);
    esdm__descriptors_moving(false);
}

/* @param ret_silent whether nothing there has said that it is a server. */
static esdm_status
connect_to(const postgres__config *config, const postgres__endpoint *endpoint, PGconn **ret_conn,
           bool *ret_silent, postgres__failure *ret_failure, esdm_error *err)
{
    bool in_time = true;
    *ret_failure = POSTGRES__LOST;
    PGconn *conn = postgres__connect_any(config, endpoint, &in_time);
    if (conn == NULL)
        return esdm__error_nomem(err, sizeof(void *), "a connection");
    if (in_time && PQstatus(conn) == CONNECTION_OK) {
        *ret_conn = conn;
        return ESDM_OK;
    }
    *ret_silent = !in_time || !postgres__has_code(conn);
    esdm_status status = postgres__connect_error(config, conn, in_time, ret_failure, err);
    finish(conn, -1);
    return status;
}

/* Connects to the site's own server where it was last; when nobody answers there it is started, or
 * found where another one has started it. */
static esdm_status
connect_to_own(const postgres__config *config, PGconn **ret_conn, postgres__failure *ret_failure,
               esdm_error *err)
{
    postgres__endpoint endpoint;
    for (bool told = false;; told = true) {
        bool silent = true;
        *ret_failure = POSTGRES__REFUSED;
        esdm_status status = postgres__server_made(config, err);
        if (status != ESDM_OK)
            return status;
        status = postgres__endpoint_read(config, &endpoint, err);
        if (status == ESDM_OK) {
            status = connect_to(config, &endpoint, ret_conn, &silent, ret_failure, err);
            explicit_bzero(endpoint.password, sizeof endpoint.password);
        } else if (status == ESDM_ENOENT && told) {
            *ret_failure = POSTGRES__LOST; /* it has stopped again */
            return esdm__error_set(err, ESDM_EIO, "metadata store '%.200s': the server has ended",
                                   config->label);
        } else if (status != ESDM_ENOENT) {
            return status;
        }
        if (status == ESDM_OK || told || !silent)
            return status;
        *ret_failure = POSTGRES__REFUSED;
        status = postgres__server_tell(config, "--start", false, err);
        if (status != ESDM_OK)
            return status;
    }
}

esdm_status
postgres__link_open(postgres__link *link, const postgres__config *config,
                    postgres__failure *ret_failure, esdm_error *err)
{
    PGconn *conn = NULL;
    bool silent = false;
    *link = (postgres__link){.config = config};
    esdm_status connected = config->directory != NULL
                                ? connect_to_own(config, &conn, ret_failure, err)
                                : connect_to(config, NULL, &conn, &silent, ret_failure, err);
    if (connected != ESDM_OK)
        return connected;
    *ret_failure = POSTGRES__LOST;
    (void) PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
    (void) PQsetNoticeProcessor(conn, postgres__ignore_notice, NULL);
    link->conn = conn;
    link->socket = PQsocket(conn);
    if (PQsetnonblocking(conn, 0) != 0 || PQenterPipelineMode(conn) != 1) {
        postgres__link_close(link);
        return esdm__error_set(err, ESDM_EIO, "metadata store '%.200s': cannot use the connection",
                               config->label);
    }
    esdm_status status = set_up_session(link, ret_failure, err);
    if (status != ESDM_OK)
        postgres__link_close(link);
    return status;
}

void
postgres__link_close(postgres__link *link)
{
    /* Out of sight first: a process that another thread forks meanwhile must not touch it. */
    PGconn *conn = link->conn;
    link->conn = NULL;
    finish(conn, link->socket);
    link->pending = 0;
    memset(link->prepared, 0, sizeof link->prepared);
}

void
postgres__link_look(postgres__link *link)
{
    /* Answers that nobody waits for come first, then perhaps why the server ends the session. */
    for (int i = 0; i < PENDING_MAX && link->conn != NULL; i++) {
        struct pollfd readable = {.fd = PQsocket(link->conn), .events = POLLIN};
        if (poll(&readable, 1, 0) <= 0)
            return;
        if (PQconsumeInput(link->conn) != 1 || PQstatus(link->conn) != CONNECTION_OK)
            postgres__link_close(link);
    }
}

void
postgres__link_abandon(postgres__link *link)
{
    /* PQfinish() would tell the server that the parent's session is over. */
    link->abandoned = link->conn;
    link->conn = NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Pointers into the memory of parameters. */
typedef struct arguments {
    const char *values[POSTGRES__PARAMS];
    int formats[POSTGRES__PARAMS];
} arguments;

static void
point_arguments(const postgres__params *params, arguments *ret_arguments)
{
    for (int i = 0; params != NULL && i < params->count; i++) {
        static const char empty[1];
        const char *memory =
            params->memory.data != NULL ? (const char *) params->memory.data : empty;
        ret_arguments->values[i] =
            params->offsets[i] == SIZE_MAX ? NULL : memory + params->offsets[i];
        ret_arguments->formats[i] = 1;
    }
}

static bool
send_prepared(postgres__link *link, postgres__statement id, const postgres__params *params,
              const arguments *all)
{
    char name[16];
    int count = params != NULL ? params->count : 0;
    (void) snprintf(name, sizeof name, "esdm%d", (int) id);
    if (!link->prepared[id]) {
        char *text = NULL;
        if (postgres__expand(link->config, postgres__statements[id], &text, NULL) != ESDM_OK)
            return false;
        int sent =
            PQsendPrepare(link->conn, name, text, count, params != NULL ? params->types : NULL);
        free(text);
        if (sent != 1)
            return false;
    }
    return PQsendQueryPrepared(link->conn, name, count, all->values,
                               params != NULL ? params->lengths : NULL, all->formats, 1) == 1 &&
           PQpipelineSync(link->conn) == 1;
}

static bool
send_text(postgres__link *link, const char *sql, const postgres__params *params,
          const arguments *all)
{
    char *text = NULL;
    if (postgres__expand(link->config, sql, &text, NULL) != ESDM_OK)
        return false;
    bool sent = PQsendQueryParams(link->conn, text, params != NULL ? params->count : 0,
                                  params != NULL ? params->types : NULL, all->values,
                                  params != NULL ? params->lengths : NULL, all->formats, 1) == 1 &&
                PQpipelineSync(link->conn) == 1;
    free(text);
    return sent;
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* What came for the statement that is waited for. */
typedef struct answer {
    PGresult *last;  /* owned */
    PGresult *error; /* owned: the first one */
} answer;

static void
keep_result(answer *kept, PGresult *result)
{
    ExecStatusType state = PQresultStatus(result);
    if (state == PGRES_PIPELINE_ABORTED) {
        PQclear(result);
    } else if (state == PGRES_TUPLES_OK || state == PGRES_COMMAND_OK) {
        PQclear(kept->last);
        kept->last = result;
    } else if (kept->error == NULL) {
        kept->error = result;
    } else {
        PQclear(result);
    }
}

/* Reads up to the end of the pipeline; what nobody waits for is dropped. false: lost. */
static bool
receive(postgres__link *link, unsigned waited, answer *kept)
{
    unsigned nothing = 0;
    while (link->pending > 0) {
        PGresult *result = PQgetResult(link->conn);
        if (result == NULL) {
            /* One follows each statement; several in a row: there is nothing to come. */
            if (PQstatus(link->conn) == CONNECTION_BAD || ++nothing > 3)
                return false;
            continue;
        }
        nothing = 0;
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            link->pending--;
            PQclear(result);
        } else if (link->pending <= waited) {
            keep_result(kept, result);
        } else {
            PQclear(result);
        }
    }
    return PQstatus(link->conn) == CONNECTION_OK;
}

static esdm_status
settle(postgres__link *link, bool received, answer *kept, PGresult **ret_result,
       postgres__failure *ret_failure, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (kept->error != NULL)
        status = postgres__result_error(link->config, kept->error, ret_failure, err);
    else if (!received || kept->last == NULL)
        status = postgres__lost_error(link->config, link->conn, ret_failure, err);
    if (!received) {
        *ret_failure = POSTGRES__LOST;
        postgres__link_close(link);
    }
    if (status == ESDM_OK && ret_result != NULL) {
        *ret_result = kept->last;
        kept->last = NULL;
    }
    PQclear(kept->last);
    PQclear(kept->error);
    return status;
}

/* ---- statements ----------------------------------------------------------------------------- */

static esdm_status
check_params(const postgres__link *link, const postgres__params *params,
             postgres__failure *ret_failure, esdm_error *err)
{
    *ret_failure = POSTGRES__REFUSED;
    if (params != NULL && params->memory.failed)
        return esdm__error_nomem(err, params->memory.bytes, "parameters of a statement");
    if (params != NULL && params->memory.bytes > (size_t) INT32_MAX / 2)
        return esdm__error_set(err, ESDM_EINVAL,
                               "metadata store '%.200s': a statement of %zu bytes is longer than "
                               "1 GB",
                               link->config->label, params->memory.bytes);
    *ret_failure = POSTGRES__LOST;
    if (link->conn == NULL)
        return esdm__error_set(err, ESDM_EIO, "metadata store '%.200s': not connected",
                               link->config->label);
    return ESDM_OK;
}

esdm_status
postgres__link_run(postgres__link *link, postgres__statement id, const postgres__params *params,
                   PGresult **ret_result, postgres__failure *ret_failure, esdm_error *err)
{
    arguments all = {.values = {NULL}};
    answer kept = {NULL, NULL};
    esdm_status status = check_params(link, params, ret_failure, err);
    if (status != ESDM_OK)
        return status;
    point_arguments(params, &all);
    bool good = send_prepared(link, id, params, &all);
    if (good) {
        link->pending++;
        good = receive(link, 1, &kept);
        /* Preparing has its own answer, before that of the statement itself. */
        link->prepared[id] |= good && kept.last != NULL;
    }
    return settle(link, good, &kept, ret_result, ret_failure, err);
}

esdm_status
postgres__link_query(postgres__link *link, const char *sql, const postgres__params *params,
                     PGresult **ret_result, postgres__failure *ret_failure, esdm_error *err)
{
    arguments all = {.values = {NULL}};
    answer kept = {NULL, NULL};
    esdm_status status = check_params(link, params, ret_failure, err);
    if (status != ESDM_OK)
        return status;
    point_arguments(params, &all);
    bool good = send_text(link, sql, params, &all);
    if (good) {
        link->pending++;
        good = receive(link, 1, &kept);
    }
    return settle(link, good, &kept, ret_result, ret_failure, err);
}

void
postgres__link_send(postgres__link *link, postgres__statement id, const postgres__params *params)
{
    arguments all = {.values = {NULL}};
    answer kept = {NULL, NULL};
    if (link->conn == NULL || params->memory.failed)
        return;
    point_arguments(params, &all);
    bool good = send_prepared(link, id, params, &all);
    if (good) {
        link->pending++;
        link->prepared[id] = true; /* it cannot fail but with the connection */
        good = link->pending < PENDING_MAX || receive(link, 0, &kept);
    }
    if (!good)
        postgres__link_close(link);
}

esdm_status
postgres__link_script(postgres__link *link, const char *sql, esdm_error *err)
{
    char *text = NULL;
    answer kept = {NULL, NULL};
    postgres__failure failure = POSTGRES__LOST;
    esdm_status status = check_params(link, NULL, &failure, err);
    if (status == ESDM_OK)
        status = postgres__expand(link->config, sql, &text, err);
    if (status != ESDM_OK)
        return status;
    bool good = receive(link, 0, &kept) && PQexitPipelineMode(link->conn) == 1;
    if (good) {
        PGresult *result = PQexec(link->conn, text); /* several statements are one transaction */
        if (result != NULL)
            keep_result(&kept, result);
        good = PQstatus(link->conn) == CONNECTION_OK && PQenterPipelineMode(link->conn) == 1;
    }
    free(text);
    return settle(link, good, &kept, NULL, &failure, err);
}
