/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * One attempt of a request, by the thread that waits for it. A read that waits unusually long for
 * its first byte is sent a second time, with memory and results of its own, so that answers cannot
 * mix; data/s3/hedge.h decides when.
 */

#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/retry.h"
#include "http.h"

#define POLL_MS         1000
#define UNKNOWN_POLL_MS 50 /* until it is known how long reads wait usually */

typedef struct pair {
    http__source *source;
    http__line *line;
    http__transfer first;
    http__transfer second; /* without a request: there is none */
    http__request again;   /* that of the second one */
    uint64_t left_ms;
    uint64_t begun_ms;
    uint64_t second_ms; /* when the second one began */
    uint64_t look_ms;   /* when the first one is looked at again; 0: when it is late */
    bool watched;       /* it may be sent again */
    bool late;          /* and that is counted, as that of the second one */
    bool second_late;
} pair;

/* ---- connections ---------------------------------------------------------------------------- */

http__line *
http__line_new(void)
{
    http__line *line = calloc(1, sizeof *line);
    if (line == NULL)
        return NULL;
    line->multi = curl_multi_init();
    line->easy = curl_easy_init();
    if (line->multi == NULL || line->easy == NULL) {
        http__line_free(line);
        return NULL;
    }
    /* A second request that shares the connection of the first one would wait with it. */
    (void) curl_multi_setopt(line->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_NOTHING);
    return line;
}

void
http__line_free(http__line *line)
{
    if (line == NULL)
        return;
    curl_easy_cleanup(line->easy);
    curl_easy_cleanup(line->second);
    (void) curl_multi_cleanup(line->multi);
    free(line);
}

static void
start(const pair *p, http__transfer *t, uint64_t left_ms)
{
    http__transfer_prepare(p->source, t, left_ms);
    t->under_way = curl_multi_add_handle(p->line->multi, t->easy) == CURLM_OK;
    t->code = t->under_way ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

/* It takes nothing from the wire any more. */
static void
stop(const pair *p, http__transfer *t)
{
    if (t->under_way)
        (void) curl_multi_remove_handle(p->line->multi, t->easy);
    t->under_way = false;
    http__transfer_end(t);
}

/* ---- what is learned ------------------------------------------------------------------------ */

static bool
fits(const http__source *source, const http__request *r)
{
    return source->hedge && r->ranged && r->buffer != NULL;
}

static void
learn(const pair *p, const http__transfer *t, uint64_t begun_ms, bool late)
{
    const http__request *r = t->request;
    s3__hedges *hedges = &p->source->hedges;
    bool answered = t->code == CURLE_OK;
    (void) pthread_mutex_lock(&p->source->lock);
    if (answered && esdm__retry_http(r->status))
        s3__hedge_refused(hedges, http__now_ms());
    else if (answered && r->status < 300 && r->first_ms > 0) {
        s3__hedge_note(hedges, r->bytes, r->first_ms - begun_ms);
        if (!late)
            s3__hedge_count(hedges, false);
    }
    (void) pthread_mutex_unlock(&p->source->lock);
}

static uint32_t
bound_ms(const pair *p)
{
    (void) pthread_mutex_lock(&p->source->lock);
    uint32_t ms = s3__hedge_bound_ms(&p->source->hedges.bounds, p->first.request->bytes);
    (void) pthread_mutex_unlock(&p->source->lock);
    return ms;
}

/* ---- the second request --------------------------------------------------------------------- */

static void
end_second(pair *p, bool won)
{
    (void) pthread_mutex_lock(&p->source->lock);
    s3__hedge_end(&p->source->hedges, won);
    (void) pthread_mutex_unlock(&p->source->lock);
    esdm__buffer_clear(&p->again.body);
    free(p->again.buffer);
    p->second.request = NULL;
}

/* The first one is late. */
static void
ask_again(pair *p, uint64_t now, uint32_t bound)
{
    const http__request *r = p->first.request;
    s3__hedges *hedges = &p->source->hedges;
    (void) pthread_mutex_lock(&p->source->lock);
    if (!p->late)
        s3__hedge_count(hedges, true);
    bool may = s3__hedge_take(hedges, now);
    (void) pthread_mutex_unlock(&p->source->lock);
    p->late = true;
    p->look_ms = now + bound;
    if (!may)
        return;
    p->watched = false;
    p->again = (http__request){.url = r->url,
                               .was = r->was,
                               .ranged = true,
                               .position = r->position,
                               .bytes = r->bytes,
                               .buffer = malloc(r->bytes),
                               .place = r->place};
    if (p->line->second == NULL)
        p->line->second = curl_easy_init();
    p->second = (http__transfer){.request = &p->again, .easy = p->line->second};
    p->second_ms = now;
    uint64_t passed = now - p->begun_ms;
    if (p->again.buffer == NULL || p->second.easy == NULL) {
        end_second(p, false);
        return;
    }
    start(p, &p->second, p->left_ms > passed ? p->left_ms - passed : 1);
    if (!p->second.under_way) {
        http__transfer_end(&p->second);
        end_second(p, false);
    }
}

/* Its answer is the first one's, if it is whole. @return whether it is. */
static bool
take_second(pair *p)
{
    http__request *r = p->first.request;
    learn(p, &p->second, p->second_ms, p->second_late);
    if (p->second.code != CURLE_OK || http__check_part(&p->again, NULL) != ESDM_OK) {
        end_second(p, false);
        return false;
    }
    if (r->first_ms == 0) { /* it would have waited even longer */
        (void) pthread_mutex_lock(&p->source->lock);
        s3__hedge_note(&p->source->hedges, r->bytes, http__now_ms() - p->begun_ms);
        (void) pthread_mutex_unlock(&p->source->lock);
    }
    stop(p, &p->first);
    uint8_t *buffer = r->buffer;
    memcpy(buffer, p->again.buffer, r->bytes);
    esdm__buffer_clear(&r->body);
    esdm__buffer body = r->body;
    uint8_t *theirs = p->again.buffer;
    *r = p->again;
    r->buffer = buffer;
    r->body = body;
    p->again.buffer = theirs;
    p->first.code = CURLE_OK;
    end_second(p, true);
    return true;
}

/* ---- both ----------------------------------------------------------------------------------- */

static void
take_ends(pair *p)
{
    int left = 0;
    const CURLMsg *message = NULL;
    while ((message = curl_multi_info_read(p->line->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        bool is_first = message->easy_handle == p->first.easy;
        http__transfer *t = is_first ? &p->first : &p->second;
        t->code = message->data.result;
        stop(p, t);
    }
}

/* Asks again for what is late. @return milliseconds until something is to be looked at. */
static int
look(pair *p)
{
    const http__request *r = p->first.request;
    bool first_waits = p->watched && r->first_ms == 0;
    bool second_waits = p->second.request != NULL && p->again.first_ms == 0 && !p->second_late;
    if (!first_waits && !second_waits)
        return POLL_MS;
    uint64_t now = http__now_ms();
    uint32_t bound = bound_ms(p);
    if (bound == 0)
        return UNKNOWN_POLL_MS;
    uint64_t at = second_waits      ? p->second_ms + bound
                  : p->look_ms != 0 ? p->look_ms
                                    : p->begun_ms + bound;
    if (at > now)
        return at - now < POLL_MS ? (int) (at - now) : POLL_MS;
    if (first_waits) {
        ask_again(p, now, bound);
        return 0;
    }
    p->second_late = true; /* the server is slow, then */
    (void) pthread_mutex_lock(&p->source->lock);
    s3__hedge_count(&p->source->hedges, true);
    (void) pthread_mutex_unlock(&p->source->lock);
    return POLL_MS;
}

/* @return whether there is a result. */
static bool
go_on(pair *p)
{
    int running = 0;
    if (curl_multi_perform(p->line->multi, &running) != CURLM_OK) {
        p->first.code = CURLE_OUT_OF_MEMORY;
        stop(p, &p->first);
        return true;
    }
    take_ends(p);
    if (!p->first.under_way) {
        learn(p, &p->first, p->begun_ms, p->late);
        return true;
    }
    return p->second.request != NULL && !p->second.under_way && take_second(p);
}

CURLcode
http__perform(http__source *source, http__line *line, http__request *r, bool once, uint64_t left_ms)
{
    pair p = {.source = source,
              .line = line,
              .first = {.request = r, .easy = line->easy},
              .left_ms = left_ms,
              .begun_ms = http__now_ms(),
              .watched = !once && fits(source, r)};
    esdm__descriptors_moving(true);
    if (p.watched) {
        (void) pthread_mutex_lock(&source->lock);
        s3__hedge_begin(&source->hedges);
        (void) pthread_mutex_unlock(&source->lock);
    }
    start(&p, &p.first, left_ms);
    if (!p.first.under_way)
        http__transfer_end(&p.first);
    while (p.first.under_way && !go_on(&p))
        (void) curl_multi_poll(line->multi, NULL, 0, look(&p), NULL);
    if (p.second.request != NULL) {
        stop(&p, &p.second);
        end_second(&p, false);
    }
    esdm__descriptors_moving(false);
    return p.first.code;
}
