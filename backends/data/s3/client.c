/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "client.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "retry.h"
#include "transfer.h"

#define IDLE_POLL_MS 60000

struct s3__client {
    const s3__options *options;
    const s3__credentials *credentials;
    CURLM *multi;
    pid_t owner; /* a forked child has no part in these connections */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows, and the results of requests; a leaf */
    s3__request *submitted;
    s3__request **submitted_end;
    int64_t skew_s;
    bool started;
    bool stop;
    bool canceling; /* some request under way was canceled */

    /* The thread's own. */
    s3__transfer *ready; /* to be sent when a connection is free; in order */
    s3__transfer **ready_end;
    s3__transfer *waiting; /* for their next attempt */
    s3__transfer *active;
    uint32_t nactive;
    CURL **idle; /* handles kept for reuse */
    uint32_t nidle;
    uint64_t random;
    s3__signer signer;
};

static uint64_t
now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void
start_curl(void)
{
    (void) curl_global_init(CURL_GLOBAL_DEFAULT); /* never undone: the program may use it too */
}

s3__client *
s3__client_new(const s3__options *options, const s3__credentials *credentials)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, start_curl);
    s3__client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    client->options = options;
    client->credentials = credentials;
    client->owner = getpid();
    client->submitted_end = &client->submitted;
    client->ready_end = &client->ready;
    client->random = esdm__now_ns() ^ ((uint64_t) getpid() << 40);
    client->signer = (s3__signer){.access_key = credentials->access_key,
                                  .secret_key = credentials->secret_key,
                                  .region = options->region,
                                  .service = "s3"};
    client->idle = calloc(options->connections, sizeof(CURL *));
    client->multi = curl_multi_init();
    if (client->idle == NULL || client->multi == NULL) {
        if (client->multi != NULL)
            (void) curl_multi_cleanup(client->multi);
        free(client->idle);
        free(client);
        return NULL;
    }
    (void) curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long) options->connections);
    (void) pthread_mutex_init(&client->lock, NULL);
    return client;
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
    (void) pthread_mutex_lock(&client->lock);
    bool started = client->started;
    client->stop = true;
    (void) pthread_mutex_unlock(&client->lock);
    if (started) {
        (void) curl_multi_wakeup(client->multi);
        (void) pthread_join(client->thread, NULL);
    }
    for (uint32_t i = 0; i < client->nidle; i++)
        curl_easy_cleanup(client->idle[i]);
    (void) curl_multi_cleanup(client->multi);
    (void) pthread_mutex_destroy(&client->lock);
    explicit_bzero(&client->signer, sizeof client->signer);
    free(client->idle);
    free(client);
}

int64_t
s3__client_skew_s(s3__client *client)
{
    (void) pthread_mutex_lock(&client->lock);
    int64_t skew = client->skew_s;
    (void) pthread_mutex_unlock(&client->lock);
    return skew;
}

/* ---- the thread: ends of requests ----------------------------------------------------------- */

/* The caller may free the request as soon as the lock is given back. */
static void
finish(s3__client *client, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    bool dated = transfer->dated;
    int64_t skew = transfer->skew_s;
    free(transfer);
    (void) pthread_mutex_lock(&client->lock);
    if (dated)
        client->skew_s = skew;
    request->transfer = NULL;
    request->done = true;
    (void) pthread_cond_broadcast(&request->gate->done);
    (void) pthread_mutex_unlock(&client->lock);
}

static void
append_ready(s3__client *client, s3__transfer *transfer)
{
    transfer->next = NULL;
    *client->ready_end = transfer;
    client->ready_end = &transfer->next;
}

static bool
unlink_transfer(s3__transfer **list, const s3__transfer *wanted)
{
    for (; *list != NULL; list = &(*list)->next) {
        if (*list == wanted) {
            *list = wanted->next;
            return true;
        }
    }
    return false;
}

static void
end_attempt(s3__client *client, s3__transfer *transfer)
{
    CURL *easy = transfer->easy;
    if (easy != NULL) {
        (void) curl_multi_remove_handle(client->multi, easy);
        client->idle[client->nidle++] = easy;
        client->nactive--;
        (void) unlink_transfer(&client->active, transfer);
    }
    s3__transfer_end_attempt(transfer);
}

static uint64_t
limit_of(const s3__client *client, const s3__request *request)
{
    return request->limit_ms > 0 ? request->limit_ms : client->options->timeout_ms;
}

/* Plans another attempt; false when there is no time left for one. */
static bool
plan_attempt(s3__client *client, s3__transfer *transfer)
{
    client->random = client->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t wait =
        s3__retry_wait_ms(transfer->request->attempts, transfer->asked_ms, client->random >> 33);
    transfer->due_ms = now_ms() + wait;
    if (transfer->due_ms > transfer->first_ms + limit_of(client, transfer->request))
        return false;
    transfer->next = client->waiting;
    client->waiting = transfer;
    return true;
}

static void
end_transfer(s3__client *client, s3__transfer *transfer, CURLcode code)
{
    bool again = s3__transfer_judge(transfer, client->options, client->credentials, code);
    end_attempt(client, transfer);
    if (!again || !plan_attempt(client, transfer))
        finish(client, transfer);
}

/* ---- the thread: beginnings ----------------------------------------------------------------- */

static CURL *
take_handle(s3__client *client)
{
    if (client->nidle == 0)
        return curl_easy_init();
    CURL *easy = client->idle[--client->nidle];
    curl_easy_reset(easy);
    return easy;
}

static void
start_transfer(s3__client *client, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    CURL *easy = take_handle(client);
    if (transfer->first_ms == 0)
        transfer->first_ms = now_ms();
    if (easy == NULL) {
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
        finish(client, transfer);
        return;
    }
    transfer->next = client->active;
    client->active = transfer;
    client->nactive++;
    request->status = s3__transfer_prepare(transfer, client->options, client->credentials,
                                           &client->signer, easy, &request->error);
    if (request->status == ESDM_OK && curl_multi_add_handle(client->multi, easy) != CURLM_OK)
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
    if (request->status != ESDM_OK) {
        end_attempt(client, transfer);
        finish(client, transfer);
    }
}

static void
start_ready(s3__client *client)
{
    while (client->ready != NULL && client->nactive < client->options->connections) {
        s3__transfer *transfer = client->ready;
        client->ready = transfer->next;
        if (client->ready == NULL)
            client->ready_end = &client->ready;
        start_transfer(client, transfer);
    }
}

/* Moves what is due to the ready ones. @return milliseconds until the next is due. */
static int
wake_waiting(s3__client *client)
{
    uint64_t now = now_ms();
    uint64_t next = now + IDLE_POLL_MS;
    for (s3__transfer **at = &client->waiting; *at != NULL;) {
        s3__transfer *transfer = *at;
        if (transfer->due_ms <= now) {
            *at = transfer->next;
            append_ready(client, transfer);
        } else {
            next = transfer->due_ms < next ? transfer->due_ms : next;
            at = &transfer->next;
        }
    }
    return (int) (next - now);
}

static s3__transfer *
find_canceled(s3__client *client)
{
    s3__transfer *lists[] = {client->active, client->waiting, client->ready};
    s3__transfer *found = NULL;
    (void) pthread_mutex_lock(&client->lock);
    for (size_t i = 0; i < 3 && found == NULL; i++) {
        for (s3__transfer *at = lists[i]; at != NULL && found == NULL; at = at->next)
            found = at->request->canceled ? at : NULL;
    }
    (void) pthread_mutex_unlock(&client->lock);
    return found;
}

static void
end_canceled(s3__client *client)
{
    for (s3__transfer *at = find_canceled(client); at != NULL; at = find_canceled(client)) {
        end_attempt(client, at);
        (void) unlink_transfer(&client->waiting, at);
        if (unlink_transfer(&client->ready, at)) {
            client->ready_end = &client->ready;
            while (*client->ready_end != NULL)
                client->ready_end = &(*client->ready_end)->next;
        }
        at->request->status =
            esdm__error_set(&at->request->error, ESDM_ECANCELED, "s3: the request was given up");
        finish(client, at);
    }
}

/* Takes over what was submitted. @return false when it is time to end. */
static bool
take_submitted(s3__client *client)
{
    (void) pthread_mutex_lock(&client->lock);
    s3__request *list = client->submitted;
    bool canceling = client->canceling;
    bool stop = client->stop;
    client->submitted = NULL;
    client->submitted_end = &client->submitted;
    client->canceling = false;
    (void) pthread_mutex_unlock(&client->lock);
    while (list != NULL) {
        s3__request *request = list;
        list = request->next;
        append_ready(client, request->transfer);
    }
    if (canceling)
        end_canceled(client);
    return !stop;
}

static void
take_ended(s3__client *client)
{
    int left = 0;
    for (CURLMsg *message = curl_multi_info_read(client->multi, &left); message != NULL;
         message = curl_multi_info_read(client->multi, &left)) {
        char *transfer = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        end_transfer(client, (s3__transfer *) (void *) transfer, code);
    }
}

static void *
drive(void *user)
{
    s3__client *client = user;
    while (take_submitted(client)) {
        int running = 0;
        int wait = wake_waiting(client);
        start_ready(client);
        (void) curl_multi_perform(client->multi, &running);
        take_ended(client);
        /* What has ended may have made room, or be due again. */
        if (client->ready == NULL || client->nactive == client->options->connections) {
            if (client->waiting != NULL) {
                int due = wake_waiting(client);
                wait = due < wait ? due : wait;
            }
            (void) curl_multi_poll(client->multi, NULL, 0, wait, NULL);
        }
    }
    return NULL;
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

/* With the lock held. */
static bool
start_thread(s3__client *client)
{
    sigset_t all;
    sigset_t old;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the program's threads */
    client->started = pthread_create(&client->thread, NULL, drive, client) == 0;
    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
    return client->started;
}

static esdm_status
prepare(s3__client *client, s3__request *request)
{
    esdm_error *err = &request->error;
    if (!s3__client_is_ours(client))
        return esdm__error_set(err, ESDM_EINVAL,
                               "s3: target '%s' was opened before fork(); open it again in the "
                               "child",
                               client->options->name);
    request->transfer = calloc(1, sizeof *request->transfer);
    if (request->transfer == NULL)
        return esdm__error_nomem(err, sizeof *request->transfer, "a request");
    request->transfer->request = request;
    if (request->body_bytes > 0 && !client->options->sign_payload)
        memcpy(request->payload_hash, S3__UNSIGNED_PAYLOAD, sizeof S3__UNSIGNED_PAYLOAD);
    else if (!s3__sha256_hex(request->body_bytes > 0 ? request->body : "", request->body_bytes,
                             request->payload_hash))
        return esdm__error_set(err, ESDM_ENOTSUP, "s3: OpenSSL has no SHA-256");
    return ESDM_OK;
}

void
s3__submit(s3__client *client, s3__gate *gate, s3__request *request)
{
    esdm__buffer_init(&request->answer);
    request->gate = gate;
    request->done = false;
    request->canceled = false;
    request->attempts = 0;
    request->next = NULL;
    esdm_status status = prepare(client, request);
    request->status = status; /* from its submission on it is the thread's */
    if (status == ESDM_OK) {
        (void) pthread_mutex_lock(&client->lock);
        if (client->started || start_thread(client)) {
            *client->submitted_end = request;
            client->submitted_end = &request->next;
        } else {
            status = esdm__error_set(&request->error, ESDM_ENOMEM,
                                     "s3: the system starts no more threads");
        }
        (void) pthread_mutex_unlock(&client->lock);
    }
    if (status == ESDM_OK) {
        (void) curl_multi_wakeup(client->multi);
        return;
    }
    free(request->transfer);
    request->transfer = NULL;
    request->status = status;
    request->done = true;
}

esdm_status
s3__wait(s3__client *client, s3__request *request, esdm_error *err)
{
    if (s3__client_is_ours(client)) {
        (void) pthread_mutex_lock(&client->lock);
        while (!request->done)
            (void) pthread_cond_wait(&request->gate->done, &client->lock);
        (void) pthread_mutex_unlock(&client->lock);
    }
    if (request->status != ESDM_OK && err != NULL)
        *err = request->error;
    return request->status;
}

bool
s3__is_done(s3__client *client, const s3__request *request)
{
    (void) pthread_mutex_lock(&client->lock);
    bool done = request->done;
    (void) pthread_mutex_unlock(&client->lock);
    return done;
}

void
s3__cancel(s3__client *client, s3__request *request)
{
    if (!s3__client_is_ours(client))
        return;
    (void) pthread_mutex_lock(&client->lock);
    request->canceled = true;
    client->canceling = true;
    (void) pthread_mutex_unlock(&client->lock);
    (void) curl_multi_wakeup(client->multi);
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
