/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "client.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/error.h"
#include "lane.h"

/* One thread receives some 2 GB/s; more of them than cores would be in each other's way. */
#define LANES_MAX 4u

struct s3__client {
    pid_t owner; /* a forked child has no part in these connections */
    s3__lane_shared shared;
    uint32_t nlanes;
    s3__lane lanes[LANES_MAX];
};

/* ---- life ----------------------------------------------------------------------------------- */

/* Requests may be under way when the program ends: OpenSSL is not to go before them. Where the
 * program has begun with OpenSSL itself, it does: io/session/ahead.c ends its requests before. */
static void
start_curl(void)
{
    (void) OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    (void) curl_global_init(CURL_GLOBAL_DEFAULT); /* never undone: the program may use it too */
}

static uint32_t
count_lanes(uint32_t connections)
{
    uint32_t most = esdm__usable_cores(LANES_MAX);
    return connections < most ? connections : most;
}

static void
free_lanes(s3__client *client)
{
    for (uint32_t i = 0; i < client->nlanes; i++)
        s3__lane_clear(&client->lanes[i]);
    (void) pthread_mutex_destroy(&client->shared.lock);
    free(client);
}

s3__client *
s3__client_new(const s3__options *options, const s3__credentials *credentials)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, start_curl);
    s3__client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    client->owner = getpid();
    client->shared.options = options;
    client->shared.credentials = credentials;
    (void) pthread_mutex_init(&client->shared.lock, NULL);
    client->nlanes = count_lanes(options->connections);
    bool good = true;
    for (uint32_t i = 0; i < client->nlanes && good; i++) /* together as many as are allowed */
        good = s3__lane_init(&client->lanes[i], &client->shared,
                             (options->connections + i) / client->nlanes);
    if (good)
        return client;
    free_lanes(client);
    return NULL;
}

bool
s3__client_is_ours(const s3__client *client)
{
    return client->owner == getpid();
}

void
s3__client_free(s3__client *client)
{
    if (client == NULL)
        return;
    if (!s3__client_is_ours(client))
        return; /* closing would end the parent's TLS sessions: better to leak */
    free_lanes(client);
}

int64_t
s3__client_skew_s(s3__client *client)
{
    (void) pthread_mutex_lock(&client->shared.lock);
    int64_t skew = client->shared.skew_s;
    (void) pthread_mutex_unlock(&client->shared.lock);
    return skew;
}

void
s3__client_second_requests(s3__client *client, uint64_t *ret_sent, uint64_t *ret_used)
{
    (void) pthread_mutex_lock(&client->shared.lock);
    *ret_sent = client->shared.hedges.sent;
    *ret_used = client->shared.hedges.won;
    (void) pthread_mutex_unlock(&client->shared.lock);
}

/* ---- callers -------------------------------------------------------------------------------- */

void
s3__gate_init(s3__gate *gate)
{
    (void) pthread_cond_init(&gate->done, NULL);
}

void
s3__gate_clear(s3__gate *gate)
{
    (void) pthread_cond_destroy(&gate->done);
}

static esdm_status
prepare(s3__client *client, s3__request *request)
{
    esdm_error *err = &request->error;
    if (!s3__client_is_ours(client))
        return esdm__error_set(err, ESDM_EINVAL,
                               "s3: target '%s' was opened before fork(); open it again in the "
                               "child",
                               client->shared.options->name);
    request->transfer = calloc(1, sizeof *request->transfer);
    if (request->transfer == NULL)
        return esdm__error_nomem(err, sizeof *request->transfer, "a request");
    request->transfer->request = request;
    if (request->body_bytes > 0 && !client->shared.options->sign_payload)
        memcpy(request->payload_hash, S3__UNSIGNED_PAYLOAD, sizeof S3__UNSIGNED_PAYLOAD);
    else if (!s3__sha256_hex(request->body_bytes > 0 ? request->body : "", request->body_bytes,
                             request->payload_hash))
        return esdm__error_set(err, ESDM_ENOTSUP, "s3: OpenSSL has no SHA-256");
    return ESDM_OK;
}

/* Of the lanes with room the one that has the least to do, the first of them, so that a request
 * after the other goes over one connection. NULL: none has room, or the system starts no threads.
 * With the lock held. */
static s3__lane *
choose_lane(s3__client *client)
{
    s3__lane *least = NULL;
    for (uint32_t i = 0; i < client->nlanes; i++) {
        s3__lane *lane = &client->lanes[i];
        bool less = least == NULL || lane->load < least->load;
        if (less && s3__lane_has_room(lane) && s3__lane_start(lane))
            least = lane;
    }
    return least;
}

static bool
any_started(const s3__client *client)
{
    bool any = false;
    for (uint32_t i = 0; i < client->nlanes; i++)
        any = any || client->lanes[i].started;
    return any;
}

/* @return whether some lane has it, or will have. */
static bool
hand_over(s3__client *client, s3__request *request)
{
    (void) pthread_mutex_lock(&client->shared.lock);
    s3__lane *lane = choose_lane(client);
    bool taken = lane != NULL || any_started(client);
    if (lane != NULL)
        s3__lane_take(lane, request);
    else if (taken)
        s3__lane_queue(&client->shared, request);
    (void) pthread_mutex_unlock(&client->shared.lock);
    if (lane != NULL)
        (void) curl_multi_wakeup(lane->multi);
    return taken;
}

void
s3__submit(s3__client *client, s3__gate *gate, s3__request *request)
{
    esdm__buffer_init(&request->answer);
    request->gate = gate;
    request->lane = NULL;
    request->done = false;
    request->canceled = false;
    request->attempts = 0;
    esdm_status status = prepare(client, request);
    request->status = status; /* from its submission on it is a lane's */
    if (status == ESDM_OK && hand_over(client, request))
        return;
    if (status == ESDM_OK)
        status =
            esdm__error_set(&request->error, ESDM_ENOMEM, "s3: the system starts no more threads");
    free(request->transfer);
    request->transfer = NULL;
    request->status = status;
    request->done = true;
}

esdm_status
s3__wait(s3__client *client, s3__request *request, esdm_error *err)
{
    if (s3__client_is_ours(client)) {
        (void) pthread_mutex_lock(&client->shared.lock);
        while (!request->done)
            (void) pthread_cond_wait(&request->gate->done, &client->shared.lock);
        (void) pthread_mutex_unlock(&client->shared.lock);
    }
    if (request->status != ESDM_OK && err != NULL)
        *err = request->error;
    return request->status;
}

bool
s3__is_done(s3__client *client, const s3__request *request)
{
    if (!s3__client_is_ours(client)) /* the parent's lock may be held for ever */
        return true;
    (void) pthread_mutex_lock(&client->shared.lock);
    bool done = request->done;
    (void) pthread_mutex_unlock(&client->shared.lock);
    return done;
}

void
s3__cancel(s3__client *client, s3__request *request)
{
    if (!s3__client_is_ours(client))
        return;
    (void) pthread_mutex_lock(&client->shared.lock);
    s3__lane *lane = request->lane;
    if (lane != NULL) {
        request->canceled = true;
        lane->canceling = true;
    } else {
        (void) s3__lane_unqueue(&client->shared, request);
    }
    (void) pthread_mutex_unlock(&client->shared.lock);
    if (lane != NULL)
        (void) curl_multi_wakeup(lane->multi);
}

esdm_status
s3__perform(s3__client *client, s3__request *request, esdm_error *err)
{
    s3__gate gate;
    s3__gate_init(&gate);
    s3__submit(client, &gate, request);
    esdm_status status = s3__wait(client, request, err);
    s3__gate_clear(&gate);
    return status;
}

void
s3__request_clear(s3__request *request)
{
    esdm__buffer_clear(&request->answer);
}
