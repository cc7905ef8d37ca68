/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "lane.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/retry.h"
#include "base/thread.h"

#define IDLE_POLL_MS 60000
/* What a request costs beside its bytes, as bytes. */
#define REQUEST_BYTES (UINT64_C(64) << 10)

static uint64_t
now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

static uint64_t
load_of(const s3__request *request)
{
    return REQUEST_BYTES + request->body_bytes + request->range_bytes;
}

static esdm_status
give_up(s3__request *request)
{
    return esdm__error_set(&request->error, ESDM_ECANCELED, "s3: the request was given up");
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void
push(s3__transfers *list, s3__transfer *transfer)
{
    transfer->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = transfer;
    list->last = transfer;
}

/* @return whether it was there */
static bool
take_out(s3__transfers *list, s3__transfer *wanted)
{
    s3__transfer *before = NULL;
    s3__transfer *at = list->first;
    while (at != NULL && at != wanted) {
        before = at;
        at = at->next;
    }
    if (at == NULL)
        return false;
    *(before != NULL ? &before->next : &list->first) = at->next;
    if (list->last == at)
        list->last = before;
    return true;
}

/* The first one; NULL: the list is empty. */
static s3__transfer *
pop(s3__transfers *list)
{
    s3__transfer *first = list->first;
    if (first != NULL)
        (void) take_out(list, first);
    return first;
}

/* ---- the thread: ends of requests ----------------------------------------------------------- */

/* The caller may free the request as soon as the lock is given back. */
static void
finish(s3__lane *lane, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    bool dated = transfer->dated;
    int64_t skew = transfer->skew_s;
    free(transfer);
    request->ended_s = (double) now_ms() * 1e-3;
    (void) pthread_mutex_lock(&lane->shared->lock);
    if (dated)
        lane->shared->skew_s = skew;
    lane->load -= load_of(request);
    lane->held--;
    request->transfer = NULL;
    request->done = true;
    (void) pthread_cond_broadcast(&request->gate->done);
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

/* Of the requests that have a connection or want one, `more` is 1 or -1. */
static void
count_held(s3__lane *lane, int more)
{
    (void) pthread_mutex_lock(&lane->shared->lock);
    lane->held += (uint32_t) more;
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

static void
end_attempt(s3__lane *lane, s3__transfer *transfer)
{
    CURL *easy = transfer->easy;
    if (easy != NULL) {
        (void) curl_multi_remove_handle(lane->multi, easy);
        lane->idle[lane->nidle++] = easy;
        lane->nactive--;
        (void) take_out(&lane->active, transfer);
    }
    s3__transfer_end_attempt(transfer);
}

static uint64_t
limit_of(const s3__lane *lane, const s3__request *request)
{
    return request->limit_ms > 0 ? request->limit_ms : lane->shared->options->timeout_ms;
}

/* Plans another attempt; false when there is no time left for one. */
static bool
plan_attempt(s3__lane *lane, s3__transfer *transfer)
{
    lane->random = lane->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t wait =
        esdm__retry_wait_ms(transfer->request->attempts, transfer->asked_ms, lane->random >> 33);
    transfer->due_ms = now_ms() + wait;
    if (transfer->due_ms > transfer->first_ms + limit_of(lane, transfer->request))
        return false;
    push(&lane->waiting, transfer);
    count_held(lane, -1);
    return true;
}

static void
end_transfer(s3__lane *lane, s3__transfer *transfer, CURLcode code)
{
    bool again =
        s3__transfer_judge(transfer, lane->shared->options, lane->shared->credentials, code);
    end_attempt(lane, transfer);
    if (!again || !plan_attempt(lane, transfer))
        finish(lane, transfer);
}

/* ---- the thread: beginnings ----------------------------------------------------------------- */

static CURL *
take_handle(s3__lane *lane)
{
    if (lane->nidle == 0)
        return curl_easy_init();
    CURL *easy = lane->idle[--lane->nidle];
    curl_easy_reset(easy);
    return easy;
}

static void
start_transfer(s3__lane *lane, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    CURL *easy = take_handle(lane);
    if (transfer->first_ms == 0)
        transfer->first_ms = now_ms();
    if (easy == NULL) {
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
        finish(lane, transfer);
        return;
    }
    push(&lane->active, transfer);
    lane->nactive++;
    request->status =
        s3__transfer_prepare(transfer, lane->shared->options, lane->shared->credentials,
                             &lane->signer, easy, &request->error);
    if (request->status == ESDM_OK && curl_multi_add_handle(lane->multi, easy) != CURLM_OK)
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
    if (request->status != ESDM_OK) {
        end_attempt(lane, transfer);
        finish(lane, transfer);
    }
}

static void
start_ready(s3__lane *lane)
{
    while (lane->ready.first != NULL && lane->nactive < lane->connections)
        start_transfer(lane, pop(&lane->ready));
}

/* Moves what is due to the ready ones. @return milliseconds until the next is due. */
static int
wake_waiting(s3__lane *lane)
{
    uint64_t now = now_ms();
    uint64_t next = now + IDLE_POLL_MS;
    for (s3__transfer *at = lane->waiting.first; at != NULL;) {
        s3__transfer *transfer = at;
        at = at->next;
        if (transfer->due_ms <= now) {
            (void) take_out(&lane->waiting, transfer);
            push(&lane->ready, transfer);
            count_held(lane, 1);
        } else if (transfer->due_ms < next) {
            next = transfer->due_ms;
        }
    }
    return (int) (next - now);
}

static s3__transfer *
find_canceled(s3__lane *lane)
{
    s3__transfer *lists[] = {lane->active.first, lane->waiting.first, lane->ready.first};
    s3__transfer *found = NULL;
    (void) pthread_mutex_lock(&lane->shared->lock);
    for (size_t i = 0; i < 3 && found == NULL; i++) {
        for (s3__transfer *at = lists[i]; at != NULL && found == NULL; at = at->next)
            found = at->request->canceled ? at : NULL;
    }
    (void) pthread_mutex_unlock(&lane->shared->lock);
    return found;
}

static void
end_canceled(s3__lane *lane)
{
    for (s3__transfer *at = find_canceled(lane); at != NULL; at = find_canceled(lane)) {
        end_attempt(lane, at);
        if (take_out(&lane->waiting, at))
            count_held(lane, 1);
        (void) take_out(&lane->ready, at);
        at->request->status = give_up(at->request);
        finish(lane, at);
    }
}

/* Whether there is room for a request of the queue. With the lock held. */
static bool
may_take(const s3__lane *lane)
{
    return lane->shared->queue.first != NULL && s3__lane_has_room(lane);
}

/* Whether there is nothing to do until the network or a caller says something. */
static bool
must_wait(s3__lane *lane)
{
    if (lane->ready.first != NULL && lane->nactive < lane->connections)
        return false;
    (void) pthread_mutex_lock(&lane->shared->lock);
    bool may = may_take(lane);
    (void) pthread_mutex_unlock(&lane->shared->lock);
    return !may;
}

/* Takes over what was submitted. @return false when it is time to end. */
static bool
take_submitted(s3__lane *lane)
{
    (void) pthread_mutex_lock(&lane->shared->lock);
    while (may_take(lane))
        s3__lane_take(lane, pop(&lane->shared->queue)->request);
    s3__transfers submitted = lane->submitted;
    bool canceling = lane->canceling;
    bool stop = lane->stop;
    lane->submitted = (s3__transfers){0};
    lane->canceling = false;
    (void) pthread_mutex_unlock(&lane->shared->lock);
    while (submitted.first != NULL)
        push(&lane->ready, pop(&submitted));
    if (canceling)
        end_canceled(lane);
    return !stop;
}

static void
take_ended(s3__lane *lane)
{
    int left = 0;
    for (CURLMsg *message = curl_multi_info_read(lane->multi, &left); message != NULL;
         message = curl_multi_info_read(lane->multi, &left)) {
        char *transfer = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        end_transfer(lane, (s3__transfer *) (void *) transfer, code);
    }
}

static void *
drive(void *user)
{
    s3__lane *lane = user;
    esdm__descriptors_moving(true); /* this thread opens none but libcurl's */
    while (take_submitted(lane)) {
        int running = 0;
        int wait = wake_waiting(lane);
        start_ready(lane);
        (void) curl_multi_perform(lane->multi, &running);
        take_ended(lane);
        /* What has ended may have made room, or be due again. */
        if (must_wait(lane)) {
            if (lane->waiting.first != NULL) {
                int due = wake_waiting(lane);
                wait = due < wait ? due : wait;
            }
            (void) curl_multi_poll(lane->multi, NULL, 0, wait, NULL);
        }
    }
    return NULL;
}

/* ---- callers -------------------------------------------------------------------------------- */

bool
s3__lane_init(s3__lane *lane, s3__lane_shared *shared, uint32_t connections)
{
    lane->shared = shared;
    lane->connections = connections;
    lane->random = esdm__now_ns() ^ ((uint64_t) getpid() << 40) ^ (uintptr_t) lane;
    lane->signer = (s3__signer){.access_key = shared->credentials->access_key,
                                .secret_key = shared->credentials->secret_key,
                                .region = shared->options->region,
                                .service = "s3"};
    lane->idle = calloc(connections, sizeof(CURL *));
    esdm__descriptors_moving(true); /* what wakes it */
    lane->multi = curl_multi_init();
    esdm__descriptors_moving(false);
    if (lane->multi != NULL)
        (void) curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, (long) connections);
    return lane->idle != NULL && lane->multi != NULL;
}

void
s3__lane_clear(s3__lane *lane)
{
    if (lane->started) {
        (void) pthread_mutex_lock(&lane->shared->lock);
        lane->stop = true;
        (void) pthread_mutex_unlock(&lane->shared->lock);
        (void) curl_multi_wakeup(lane->multi);
        (void) pthread_join(lane->thread, NULL);
    }
    esdm__descriptors_moving(true);
    for (uint32_t i = 0; i < lane->nidle; i++)
        curl_easy_cleanup(lane->idle[i]);
    if (lane->multi != NULL)
        (void) curl_multi_cleanup(lane->multi);
    esdm__descriptors_moving(false);
    explicit_bzero(&lane->signer, sizeof lane->signer);
    free(lane->idle);
}

bool
s3__lane_start(s3__lane *lane)
{
    if (!lane->started)
        lane->started = esdm__thread_start(&lane->thread, NULL, drive, lane);
    return lane->started;
}

bool
s3__lane_has_room(const s3__lane *lane)
{
    return lane->held < lane->connections;
}

void
s3__lane_take(s3__lane *lane, s3__request *request)
{
    request->lane = lane;
    push(&lane->submitted, request->transfer);
    lane->load += load_of(request);
    lane->held++;
}

void
s3__lane_queue(s3__lane_shared *shared, s3__request *request)
{
    push(&shared->queue, request->transfer);
}

bool
s3__lane_unqueue(s3__lane_shared *shared, s3__request *request)
{
    if (request->transfer == NULL || !take_out(&shared->queue, request->transfer))
        return false;
    request->status = give_up(request);
    free(request->transfer);
    request->transfer = NULL;
    request->done = true;
    (void) pthread_cond_broadcast(&request->gate->done);
    return true;
}
