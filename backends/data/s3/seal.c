/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file How the writing of a pack ends: stored, joined, asked for its bytes, given up. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pack.h"
#include "xml.h"

/* How long a server that failed is asked to throw parts away. */
#define ABORT_MS 2000u
/* How often a request is sent whose answer is in doubt. */
#define ATTEMPTS 3u
/* What a server may need to put the parts together: for this much a millisecond. */
#define JOINED_BYTES_PER_MS ((uint64_t) 32 << 10)

/* Whether the object of this name is the pack: the answer to an earlier attempt may be lost. */
static bool
is_stored(s3__pack *of)
{
    s3__request request = {.doing = "look at", .method = "HEAD", .key = of->key};
    bool stored = s3__perform(of->client, &request, NULL) == ESDM_OK &&
                  strcmp(request.writer, of->writer) == 0 &&
                  request.content_bytes == of->length_bytes;
    s3__request_clear(&request);
    return stored;
}

/* Makes a request one that does not overwrite an object of the pack's name. */
static void
add_condition(s3__pack *of, s3__request *request)
{
    of->conditional = !atomic_load(&of->target->unconditional);
    if (of->conditional)
        request->headers[request->nheaders++] = (s3__pair){"if-none-match", "*"};
}

/* After the request that makes the pack visible. */
static esdm_status
judge(s3__pack *of, s3__request *request, esdm_status status, esdm_error *why)
{
    if (status == ESDM_ENOTSUP &&
        of->conditional) { /* names are unique; this was for good measure */
        atomic_store(&of->target->unconditional, true);
        request->nheaders--;
        s3__request_clear(request);
        status = s3__perform(of->client, request, why);
    }
    bool doubtful = status == ESDM_EEXIST || status == ESDM_ENOENT;
    if (doubtful && request->attempts > 1 && is_stored(of))
        status = ESDM_OK;
    if (status == ESDM_EEXIST)
        status = esdm__error_set(why, ESDM_EEXIST, "s3: there is a pack 's3://%s/%s' already",
                                 of->target->options.bucket, of->key);
    return status;
}

/* An answer that all is well, which does not say what was stored: is it there? A request that is
 * not gets another chance. */
static esdm_status
confirm(s3__pack *of, s3__request *request, bool (*says)(const s3__request *request),
        esdm_status status, esdm_error *why)
{
    for (unsigned attempt = 1; status == ESDM_OK && !says(request) && !is_stored(of); attempt++) {
        char etag[S3__ETAG_BYTES];
        memcpy(etag, request->etag, sizeof etag);
        if (attempt == ATTEMPTS)
            return esdm__error_set(
                why, ESDM_EIO,
                "s3: %s answered that it took 's3://%s/%.150s' (ETag %.60s), but "
                "does not have it; is something between us and the server?",
                of->target->options.endpoint, of->target->options.bucket, of->key,
                etag[0] != '\0' ? etag : "missing");
        s3__request_clear(request);
        status = judge(of, request, s3__perform(of->client, request, why), why);
    }
    return status;
}

/* The answer to a PUT tells the checksum of what was stored. */
static bool
says_stored(const s3__request *request)
{
    return request->etag[0] != '\0' &&
           (request->encrypted ||
            s3__etag_is_md5(request->etag, request->body, request->body_bytes));
}

static esdm_status
note_joined(const char *path, char *text, void *user, esdm_error *err)
{
    bool *joined = user;
    (void) err;
    *joined |= strcmp(path, "CompleteMultipartUploadResult/ETag") == 0 && text[0] != '\0';
    return ESDM_OK;
}

/* The answer to the end of an upload names the object. */
static bool
says_joined(const s3__request *request)
{
    bool joined = false;
    return s3__xml_parse(request->answer.data, request->answer.bytes, note_joined, &joined, NULL) ==
               ESDM_OK &&
           joined;
}

/* Sends a request that makes the pack visible, unless there is an object of that name. */
static esdm_status
publish(s3__pack *of, s3__request *request, esdm_error *err)
{
    esdm_error why = {0};
    add_condition(of, request);
    esdm_status status = judge(of, request, s3__perform(of->client, request, &why), &why);
    status = confirm(of, request, says_joined, status, &why);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* Starts to store a pack that has no parts. */
static esdm_status
begin_put(s3__pack *of, esdm_error *err)
{
    of->put = calloc(1, sizeof *of->put);
    if (of->put == NULL)
        return esdm__error_nomem(err, sizeof *of->put, "a request");
    *of->put = (s3__request){.doing = "write",
                             .method = "PUT",
                             .key = of->key,
                             .headers = {{S3__WRITER_HEADER, of->writer}},
                             .nheaders = 1,
                             .body = of->tail,
                             .body_bytes = of->tail_bytes};
    add_condition(of, of->put);
    s3__submit(of->client, &of->gate, of->put);
    return ESDM_OK;
}

static esdm_status
end_put(s3__pack *of, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = of->put == NULL ? begin_put(of, &why) : ESDM_OK;
    if (status == ESDM_OK) {
        status = judge(of, of->put, s3__wait(of->client, of->put, &why), &why);
        status = confirm(of, of->put, says_stored, status, &why);
        s3__request_clear(of->put);
        free(of->put);
        of->put = NULL;
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* A pack of several parts sends its last one: it is joined when it is sealed. */
void
s3__pack_begin_seal(void *self)
{
    s3__pack *of = self;
    esdm_error why = {0};
    esdm_status status = ESDM_OK;
    s3__stop_filling(of);
    if (of->failure.status != ESDM_OK || of->put != NULL)
        return;
    if (of->upload_id == NULL && of->nparts == 0)
        status = begin_put(of, &why);
    else if (of->tail_bytes > 0)
        status = s3__send_tail(of, &why);
    if (status != ESDM_OK)
        (void) s3__pack_fail(of, status, &why);
}

bool
s3__pack_has_ended(void *self, double *ret_ended_s)
{
    const s3__pack *of = self;
    *ret_ended_s = 0;
    if (of->put != NULL) {
        bool done = s3__is_done(of->client, of->put);
        if (done)
            *ret_ended_s = of->put->ended_s;
        return done;
    }
    for (const s3__part *at = of->under_way; at != NULL; at = at->next) {
        if (!s3__is_done(of->client, &at->request))
            return false;
    }
    return true;
}

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

/* An ETag is what the server said: no element may come out of it. */
static void
put_escaped(esdm__buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char reference[8];
        if (strchr("<>&\"'", *text) != NULL) {
            (void) snprintf(reference, sizeof reference, "&#%d;", *text);
            put_text(out, reference);
        } else {
            esdm__buffer_put_u8(out, (uint8_t) *text);
        }
    }
}

static esdm_status
join_parts(s3__pack *of, esdm_error *err)
{
    esdm__buffer body;
    esdm__buffer_init(&body);
    put_text(&body, "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < of->nparts; i++) {
        char number[64];
        (void) snprintf(number, sizeof number, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>",
                        i + 1);
        put_text(&body, number);
        put_escaped(&body, of->parts[i]->etag);
        put_text(&body, "</ETag></Part>");
    }
    put_text(&body, "</CompleteMultipartUpload>");
    if (body.failed) {
        esdm__buffer_clear(&body);
        return esdm__error_nomem(err, of->nparts * (size_t) 128, "the parts of a pack");
    }
    uint64_t patience_ms = 10000 + of->length_bytes / JOINED_BYTES_PER_MS;
    s3__request request = {.doing = "end the upload of",
                           .method = "POST",
                           .key = of->key,
                           .query = {{"uploadId", of->upload_id}},
                           .nquery = 1,
                           .body = body.data,
                           .body_bytes = body.bytes,
                           .patience_ms =
                               patience_ms < INT32_MAX ? (uint32_t) patience_ms : INT32_MAX};
    esdm_status status = publish(of, &request, err);
    s3__request_clear(&request);
    esdm__buffer_clear(&body);
    return status;
}

static esdm_status
finish(s3__pack *of, esdm_error *err)
{
    esdm_error why;
    if (of->upload_id == NULL && of->nparts == 0 && of->failure.status == ESDM_OK)
        return end_put(of, err);
    if (of->tail_bytes > 0 && of->failure.status == ESDM_OK) {
        esdm_status status = s3__send_tail(of, &why);
        if (status != ESDM_OK)
            (void) s3__pack_fail(of, status, &why);
    }
    s3__end_all_parts(of, of->failure.status != ESDM_OK);
    return s3__pack_failed(of, err) == ESDM_OK ? join_parts(of, err) : of->failure.status;
}

/* In a forked child the requests are the parent's: they are left alone. */
static void
pack_free(s3__pack *of)
{
    s3__stop_filling(of);
    if (s3__client_is_ours(of->client)) {
        s3__end_all_parts(of, true);
        if (of->put != NULL) {
            s3__cancel(of->client, of->put);
            (void) !s3__wait(of->client, of->put, NULL);
            s3__request_clear(of->put);
        }
        free(of->put);
        s3__gate_clear(&of->gate);
    }
    s3__free_tail(of);
    for (uint32_t i = 0; i < of->nparts; i++) {
        atomic_fetch_sub(&of->target->held_bytes, of->parts[i]->capacity);
        free(of->parts[i]->data);
        free(of->parts[i]);
    }
    free(of->parts);
    free(of->upload_id);
    free(of);
}

esdm_status
s3__pack_seal(void *self, esdm_error *err)
{
    s3__pack *of = self;
    if (of == NULL)
        return ESDM_OK;
    esdm_error why;
    s3__stop_filling(of);
    esdm_status status = finish(of, &why);
    if (status == ESDM_OK) {
        pack_free(of);
        return ESDM_OK;
    }
    (void) s3__pack_fail(of, status, &why);
    if (err != NULL)
        *err = why;
    return status;
}

esdm_status
s3__pack_recall(void *self, uint64_t position, size_t bytes, void *buffer, esdm_error *err)
{
    const s3__pack *of = self;
    uint64_t part_bytes = of->target->options.part_bytes; /* of all parts but the last */
    uint8_t *to = buffer;
    if (position > of->length_bytes || bytes > of->length_bytes - position)
        return esdm__error_set(err, ESDM_ECORRUPT, "s3: '%s' is shorter than that", of->key);
    while (bytes > 0) {
        uint64_t number = position / part_bytes;
        size_t from = (size_t) (position % part_bytes);
        size_t step = part_bytes - from < bytes ? (size_t) (part_bytes - from) : bytes;
        memcpy(to, (number < of->nparts ? of->parts[number]->data : of->tail) + from, step);
        position += step;
        bytes -= step;
        to += step;
    }
    return ESDM_OK;
}

esdm_status
s3__pack_discard(void *self, esdm_error *err)
{
    s3__pack *of = self;
    esdm_status status = ESDM_OK;
    if (of == NULL)
        return ESDM_OK;
    if (s3__client_is_ours(of->client)) {
        /* A server may store a part whose connection was cut after it gave up the upload. */
        s3__end_all_parts(of, of->failure.status != ESDM_OK);
        /* Parts take space that nobody sees; of a server that is gone they are not asked back. */
        if (of->upload_id != NULL)
            status = s3__upload_abort(of->target, of->key, of->upload_id,
                                      of->failure.status != ESDM_OK ? ABORT_MS : 0, err);
    }
    pack_free(of);
    return status;
}
