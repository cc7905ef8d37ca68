/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading packs: neighbouring ranges with one request, long ones with several at once. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "s3.h"

/* To read a gap of this size costs less than another request. */
#define GAP_BYTES (UINT64_C(128) << 10)
/* A request moves this much at most: longer runs go over several connections. */
#define RUN_BYTES (UINT64_C(8) << 20)
/* A range that begins this near to the begin of its pack is asked for from there on: a pack that
 * holds one fragment is then read as a whole. Servers send whole objects straight from a file,
 * parts of them by way of their own memory (versitygw: 1.4 times the time). */
#define HEAD_BYTES UINT64_C(4096)

/* The requests of one call. Segments of all of them lie in one array. */
typedef struct reading {
    s3__request *requests;
    size_t nrequests;
    s3__segment *segments;
    size_t nsegments;
} reading;

static void
add_segment(reading *r, void *buffer, uint64_t bytes)
{
    s3__request *last = &r->requests[r->nrequests - 1];
    r->segments[r->nsegments++] = (s3__segment){.buffer = buffer, .bytes = bytes};
    last->nsegments++;
    last->range_bytes += bytes;
}

static void
begin_request(reading *r, const char *key, uint64_t position)
{
    r->requests[r->nrequests++] = (s3__request){.doing = "read",
                                                .method = "GET",
                                                .key = key,
                                                .range_from = position,
                                                .segments = r->segments + r->nsegments};
}

/* Whether the range goes on with the last request, which has room behind the gap. Overlaps do not:
 * each byte has one place. */
static bool
joins(const reading *r, uint64_t position)
{
    if (r->nrequests == 0)
        return false;
    const s3__request *last = &r->requests[r->nrequests - 1];
    uint64_t end = last->range_from + last->range_bytes;
    return position >= end && position - end <= GAP_BYTES &&
           position - last->range_from < RUN_BYTES;
}

static void
add_range(reading *r, const char *key, const esdm_range *range)
{
    uint64_t done = 0;
    while (done < range->bytes) {
        uint64_t position = range->position + done;
        if (!joins(r, position))
            begin_request(r, key, position <= HEAD_BYTES ? 0 : position);
        const s3__request *last = &r->requests[r->nrequests - 1];
        uint64_t end = last->range_from + last->range_bytes;
        if (position > end)
            add_segment(r, NULL, position - end);
        uint64_t room = last->range_bytes < RUN_BYTES ? RUN_BYTES - last->range_bytes : RUN_BYTES;
        uint64_t left = range->bytes - done;
        /* A short rest is not worth a request of its own. */
        uint64_t step = left <= room + RUN_BYTES / 4 ? left : room;
        add_segment(r, (char *) range->buffer + done, step);
        done += step;
    }
}

/* Room for the worst case: each range alone, cut into runs, a gap before it. */
static esdm_status
allocate(reading *r, const esdm_range *ranges, size_t nranges, esdm_error *err)
{
    size_t most = 1;
    for (size_t i = 0; i < nranges; i++)
        most += 2 + (size_t) (ranges[i].bytes / (RUN_BYTES / 4));
    r->requests = calloc(most, sizeof *r->requests);
    r->segments = calloc(2 * most, sizeof *r->segments);
    if (r->requests != NULL && r->segments != NULL)
        return ESDM_OK;
    return esdm__error_nomem(err, most * sizeof *r->requests, "requests");
}

/* Sets *r up for the ranges; freed by end_reading(), whatever became of it. */
static esdm_status
plan_reading(const s3__target *target, const char *name, const esdm_range *ranges, size_t nranges,
             char key[S3__KEY_BYTES], reading *r, esdm_error *err)
{
    esdm_status status = s3__pack_key(target, name, key, err);
    for (size_t i = 0; i < nranges && status == ESDM_OK; i++) {
        if (ranges[i].position > INT64_MAX || ranges[i].bytes > INT64_MAX - ranges[i].position)
            status = esdm__error_set(err, ESDM_ECORRUPT, "s3: pack '%s' has no position %llu", name,
                                     (unsigned long long) ranges[i].position);
    }
    if (status == ESDM_OK && nranges > 0)
        status = allocate(r, ranges, nranges, err);
    for (size_t i = 0; i < nranges && status == ESDM_OK; i++)
        add_range(r, key, &ranges[i]);
    return status;
}

static void
submit_all(s3__client *client, reading *r, s3__gate *gate)
{
    for (size_t i = 0; i < r->nrequests; i++)
        s3__submit(client, gate, &r->requests[i]);
}

static void
cancel_from(s3__client *client, reading *r, size_t first)
{
    for (size_t i = first; i < r->nrequests; i++)
        s3__cancel(client, &r->requests[i]);
}

/* Of those that were submitted. */
static esdm_status
wait_for_all(s3__client *client, reading *r, esdm_error *err)
{
    esdm_status first = ESDM_OK;
    for (size_t i = 0; i < r->nrequests; i++) {
        esdm_error why;
        esdm_status status = s3__wait(client, &r->requests[i], &why);
        s3__request_clear(&r->requests[i]);
        if (status == ESDM_OK || first != ESDM_OK)
            continue;
        first = status;
        if (err != NULL)
            *err = why;
        cancel_from(client, r, i + 1);
    }
    return first;
}

static void
end_reading(reading *r)
{
    free(r->requests);
    free(r->segments);
}

static esdm_status
fetch(s3__target *target, reading *r, esdm_error *err)
{
    s3__client *client = s3__target_client(target);
    s3__gate gate;
    if (client == NULL)
        return esdm__error_nomem(err, sizeof *target, "a connection");
    s3__gate_init(&gate);
    submit_all(client, r, &gate);
    esdm_status status = wait_for_all(client, r, err);
    s3__gate_clear(&gate);
    return status;
}

esdm_status
s3__pack_read(void *self, const char *name, const esdm_range *ranges, size_t nranges,
              esdm_error *err)
{
    s3__target *target = self;
    char key[S3__KEY_BYTES];
    reading r = {0};
    esdm_status status = plan_reading(target, name, ranges, nranges, key, &r, err);
    if (status == ESDM_OK && r.nrequests > 0)
        status = fetch(target, &r, err);
    end_reading(&r);
    return status;
}

esdm_status
s3__open_and_read(const esdm_plugin_config *config, const char *name, const esdm_range *ranges,
                  size_t nranges, const esdm_target_opening *opening, esdm_status *ret_read,
                  esdm_error *err)
{
    char key[S3__KEY_BYTES];
    s3__target *target = NULL;
    reading r = {0};
    s3__gate gate;
    esdm_error why = {0};
    esdm_status status = s3__target_new(config, &target, err); /* its client is there */
    if (status != ESDM_OK)
        return status;
    esdm_status read = plan_reading(target, name, ranges, nranges, key, &r, &why);
    if (read != ESDM_OK)
        r.nrequests = 0;
    s3__client *client = s3__target_client(target);
    opening->begun(target, opening->user);
    s3__gate_init(&gate);
    submit_all(client, &r, &gate);
    status = s3__mark_check(target, NULL, err);
    if (status == ESDM_OK)
        opening->opened(opening->user);
    else
        cancel_from(client, &r, 0);
    esdm_status waited = wait_for_all(client, &r, &why);
    s3__gate_clear(&gate);
    end_reading(&r);
    if (status != ESDM_OK)
        return status;
    *ret_read = read == ESDM_OK ? waited : read;
    if (*ret_read != ESDM_OK && err != NULL)
        *err = why;
    return ESDM_OK;
}
