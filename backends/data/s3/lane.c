/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "lane.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/retry.h"
#include "base/thread.h"
#include "second.h"

#define IDLE_POLL_MS 60000
/* While it is not known yet what a GET may wait for. */
#define UNKNOWN_POLL_MS 50
/* What a request costs beside its bytes, as bytes. */
#define REQUEST_BYTES (UINT64_C(64) << 10)

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

static void end_attempt(s3__lane *lane, s3__transfer *transfer);

/* Ends a second request; the first one goes on, or is about to end. */
static void
end_second(s3__lane *lane, s3__transfer *second, bool won)
{
    end_attempt(lane, second);
    s3__second_free(second);
    (void) pthread_mutex_lock(&lane->shared->lock);
    lane->held--;
    s3__hedge_end(&lane->shared->hedges, won);
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

/* The caller may free the request as soon as the lock is given back. */
static void
finish(s3__lane *lane, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    bool dated = transfer->dated;
    int64_t skew = transfer->skew_s;
    if (transfer->second != NULL)
        end_second(lane, transfer->second, false);
    free(transfer);
    request->ended_s = (double) s3__now_ms() * 1e-3;
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
    transfer->due_ms = s3__now_ms() + wait;
    if (transfer->due_ms > transfer->first_ms + limit_of(lane, transfer->request))
        return false;
    push(&lane->waiting, transfer);
    count_held(lane, -1);
    return true;
}

/* What the end of an attempt tells about the server. */
static void
learn(s3__lane *lane, const s3__transfer *transfer, CURLcode code)
{
    const s3__request *request = transfer->request;
    s3__hedges *hedges = &lane->shared->hedges;
    bool refused = esdm__retry_http(request->http_status);
    bool good = code == CURLE_OK && request->status == ESDM_OK && transfer->answered_ms > 0 &&
                s3__second_fits(request);
    if (!refused && !good)
        return;
    (void) pthread_mutex_lock(&lane->shared->lock);
    if (refused)
        s3__hedge_refused(hedges, s3__now_ms());
    if (good)
        s3__hedge_note(hedges, request->range_bytes, transfer->answered_ms - transfer->begun_ms);
    if (good && !transfer->late)
        s3__hedge_count(hedges, false);
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

/* The whole answer of a second request is there: the first one is given up, wherever it is. */
static void
take_second(s3__lane *lane, s3__transfer *second)
{
    s3__transfer *first = second->first;
    if (first->easy != NULL && first->answered_ms == 0) { /* it would have waited even longer */
        (void) pthread_mutex_lock(&lane->shared->lock);
        s3__hedge_note(&lane->shared->hedges, first->request->range_bytes,
                       s3__now_ms() - first->begun_ms);
        (void) pthread_mutex_unlock(&lane->shared->lock);
    }
    end_attempt(lane, first);
    if (take_out(&lane->waiting, first))
        count_held(lane, 1);
    (void) take_out(&lane->ready, first);
    s3__second_deliver(second);
    end_second(lane, second, true);
    finish(lane, first);
}

static void
end_transfer(s3__lane *lane, s3__transfer *transfer, CURLcode code)
{
    bool again =
        s3__transfer_judge(transfer, lane->shared->options, lane->shared->credentials, code);
    learn(lane, transfer, code);
    if (transfer->first != NULL) {
        if (transfer->request->status == ESDM_OK)
            take_second(lane, transfer);
        else
            end_second(lane, transfer, false);
        return;
    }
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

/* @return whether it is under way; else its request has the error. */
static bool
send_transfer(s3__lane *lane, s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    CURL *easy = take_handle(lane);
    if (easy == NULL) {
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
        return false;
    }
    push(&lane->active, transfer);
    lane->nactive++;
    request->status =
        s3__transfer_prepare(transfer, lane->shared->options, lane->shared->credentials,
                             &lane->signer, easy, &request->error);
    if (request->status == ESDM_OK && curl_multi_add_handle(lane->multi, easy) != CURLM_OK)
        request->status = esdm__error_nomem(&request->error, 4096, "a request");
    if (request->status != ESDM_OK)
        end_attempt(lane, transfer);
    return request->status == ESDM_OK;
}

static void
start_transfer(s3__lane *lane, s3__transfer *transfer)
{
    if (transfer->first_ms == 0)
        transfer->first_ms = s3__now_ms();
    if (s3__second_fits(transfer->request)) {
        (void) pthread_mutex_lock(&lane->shared->lock);
        s3__hedge_begin(&lane->shared->hedges);
        (void) pthread_mutex_unlock(&lane->shared->lock);
    }
    if (!send_transfer(lane, transfer))
        finish(lane, transfer);
}

/* ---- the thread: second requests ------------------------------------------------------------ */

/* Whether it waits for its first byte, and something is done when that takes too long. What failed
 * once is not asked for twice at once. */
static bool
is_watched(const s3__transfer *transfer)
{
    if (transfer->answered_ms > 0 || (transfer->first != NULL && transfer->late))
        return false;
    return transfer->first != NULL || (!transfer->asked_twice && transfer->request->attempts == 1 &&
                                       s3__second_fits(transfer->request));
}

/* When a GET that waits is looked at, in milliseconds; 0: that is not known yet. */
static uint64_t
look_at_ms(const s3__transfer *transfer, uint32_t bound_ms)
{
    if (bound_ms == 0 || transfer->look_ms > 0)
        return transfer->look_ms;
    return transfer->begun_ms + bound_ms;
}

/* A GET is late: asks for it again, if that may be, and else looks at it later. */
static void
hedge(s3__lane *lane, s3__transfer *transfer, uint64_t now, uint32_t bound_ms)
{
    s3__hedges *hedges = &lane->shared->hedges;
    (void) pthread_mutex_lock(&lane->shared->lock);
    if (!transfer->late)
        s3__hedge_count(hedges, true);
    bool may = s3__hedge_take(hedges, now);
    lane->held += may ? 1 : 0;
    (void) pthread_mutex_unlock(&lane->shared->lock);
    transfer->late = true;
    transfer->look_ms = now + bound_ms;
    if (!may)
        return;
    transfer->asked_twice = true;
    s3__transfer *second = s3__second_new(transfer);
    if (second != NULL && send_transfer(lane, second))
        return;
    if (second != NULL)
        s3__second_free(second);
    (void) pthread_mutex_lock(&lane->shared->lock);
    lane->held--;
    s3__hedge_end(hedges, false);
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

/* A second request that is late, too, tells that the server is slow. */
static void
count_late(s3__lane *lane, s3__transfer *second)
{
    second->late = true;
    (void) pthread_mutex_lock(&lane->shared->lock);
    s3__hedge_count(&lane->shared->hedges, true);
    (void) pthread_mutex_unlock(&lane->shared->lock);
}

static s3__hedge_bounds
copy_bounds(s3__lane *lane)
{
    (void) pthread_mutex_lock(&lane->shared->lock);
    s3__hedge_bounds bounds = lane->shared->hedges.bounds;
    (void) pthread_mutex_unlock(&lane->shared->lock);
    return bounds;
}

/* Asks again for what waits for too long, as far as connections are free. @return milliseconds
 * until something is to be looked at. */
static int
hedge_late(s3__lane *lane)
{
    uint64_t now = s3__now_ms();
    uint64_t next = now + IDLE_POLL_MS;
    if (!lane->shared->options->hedge || lane->active.first == NULL)
        return IDLE_POLL_MS;
    const s3__hedge_bounds bounds = copy_bounds(lane);
    for (s3__transfer *at = lane->active.first; at != NULL; at = at->next) {
        if (!is_watched(at))
            continue;
        uint32_t bound_ms = s3__hedge_bound_ms(&bounds, at->request->range_bytes);
        uint64_t look_ms = look_at_ms(at, bound_ms);
        if (look_ms == 0) {
            look_ms = now + UNKNOWN_POLL_MS;
        } else if (look_ms <= now) {
            if (at->first != NULL)
                count_late(lane, at);
            else if (lane->nactive < lane->connections)
                hedge(lane, at, now, bound_ms);
            look_ms = at->look_ms; /* without a connection: when one of them has ended */
        }
        if (look_ms > now && look_ms < next)
            next = look_ms;
    }
    return (int) (next - now);
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
    uint64_t now = s3__now_ms();
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
        (void) hedge_late(lane); /* they go first */
        start_ready(lane);
        (void) curl_multi_perform(lane->multi, &running);
        take_ended(lane);
        /* What has ended may have made room, or be due again. */
        if (must_wait(lane)) {
            if (lane->waiting.first != NULL) {
                int due = wake_waiting(lane);
                wait = due < wait ? due : wait;
            }
            int late = hedge_late(lane);
            wait = late < wait ? late : wait;
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
