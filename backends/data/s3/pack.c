/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Writing packs. What is appended is copied into the part being filled; a full part goes out while
 * the next one is filled. Parts under way are bounded by the target's memory, and so are the parts
 * being filled: a pack whose target has more of them than that asks to be sealed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/ids.h"
#include "s3.h"
#include "xml.h"

/* Parts of one pack under way at once. */
#define PARTS_UNDER_WAY 4
/* A pack that has so many parts is full; a single append may still add many. */
#define PARTS_FULL 9000u
/* The first memory of a part. */
#define FIRST_BYTES ((size_t) 64 << 10)
/* What a server may need to put the parts together: for this much a millisecond. */
#define JOINED_BYTES_PER_MS ((uint64_t) 32 << 10)

typedef char etag[S3__ETAG_BYTES];

/* A part under way. */
typedef struct part {
    struct part *next;
    s3__request request;
    uint8_t *data; /* owned */
    size_t capacity;
    uint32_t number; /* from 1 */
    char number_text[12];
} part;

typedef struct pack {
    s3__target *target;
    s3__client *client; /* of the process that created the pack */
    s3__gate gate;
    uint64_t length_bytes;
    uint8_t *tail; /* the part being filled */
    size_t tail_bytes;
    size_t tail_capacity;
    char *upload_id; /* NULL: no part was sent yet */
    part *under_way; /* oldest first */
    part **under_way_end;
    unsigned nunder_way;
    etag *etags; /* of parts, by number - 1 */
    uint32_t nparts;
    size_t etags_capacity;
    esdm_error failure; /* of a part: the pack is lost */
    char writer[ESDM__UUID_BYTES];
    char key[S3__KEY_BYTES];
} pack;

esdm_status
s3__pack_create(void *self, const char *name, void **ret_pack, esdm_error *err)
{
    s3__target *target = self;
    char key[S3__KEY_BYTES];
    esdm_status status = s3__pack_key(target, name, key, err);
    if (status != ESDM_OK)
        return status;
    pack *created = calloc(1, sizeof *created);
    if (created == NULL)
        return esdm__error_nomem(err, sizeof *created, "a pack");
    created->target = target;
    created->client = s3__target_client(target);
    if (created->client == NULL) {
        free(created);
        return esdm__error_nomem(err, sizeof *created, "a connection");
    }
    created->under_way_end = &created->under_way;
    memcpy(created->key, key, sizeof key);
    esdm__uuid_new(created->writer);
    s3__gate_init(&created->gate);
    *ret_pack = created;
    return ESDM_OK;
}

static esdm_status
fail(pack *to, esdm_status status, const esdm_error *why)
{
    if (to->failure.status == ESDM_OK) {
        to->failure = *why;
        to->failure.status = status;
    }
    return status;
}

static esdm_status
failed(const pack *to, esdm_error *err)
{
    if (to->failure.status != ESDM_OK && err != NULL)
        *err = to->failure;
    return to->failure.status;
}

/* ---- the part being filled ------------------------------------------------------------------ */

static void
free_tail(pack *to)
{
    atomic_fetch_sub(&to->target->tail_bytes, to->tail_capacity);
    free(to->tail);
    to->tail = NULL;
    to->tail_bytes = 0;
    to->tail_capacity = 0;
}

/* Room for `bytes` in all, which a part can have. */
static esdm_status
grow_tail(pack *to, size_t bytes, esdm_error *err)
{
    size_t most = (size_t) to->target->options.part_bytes;
    size_t capacity = to->tail_capacity > 0 ? to->tail_capacity : FIRST_BYTES;
    if (bytes <= to->tail_capacity)
        return ESDM_OK;
    while (capacity < bytes)
        capacity *= 2;
    if (capacity > most || to->nparts > 0) /* a pack that has parts fills this one too */
        capacity = most;
    uint8_t *grown = realloc(to->tail, capacity);
    if (grown == NULL)
        return esdm__error_nomem(err, capacity, "a part of a pack");
    atomic_fetch_add(&to->target->tail_bytes, capacity - to->tail_capacity);
    to->tail = grown;
    to->tail_capacity = capacity;
    return ESDM_OK;
}

/* ---- parts under way ------------------------------------------------------------------------ */

static esdm_status
note_upload_id(const char *path, char *text, void *user, esdm_error *err)
{
    char **id = user;
    if (strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0 || *id != NULL)
        return ESDM_OK;
    *id = strdup(text);
    return *id != NULL ? ESDM_OK : esdm__error_nomem(err, strlen(text), "an upload");
}

static esdm_status
begin_upload(pack *to, esdm_error *err)
{
    s3__request request = {.doing = "begin an upload of",
                           .method = "POST",
                           .key = to->key,
                           .query = {{"uploads", ""}},
                           .nquery = 1,
                           .headers = {{S3__WRITER_HEADER, to->writer}},
                           .nheaders = 1};
    esdm_status status = s3__perform(to->client, &request, err);
    if (status == ESDM_OK)
        status = s3__xml_parse(request.answer.data, request.answer.bytes, note_upload_id,
                               &to->upload_id, err);
    s3__request_clear(&request);
    if (status == ESDM_OK && (to->upload_id == NULL || to->upload_id[0] == '\0'))
        status =
            esdm__error_set(err, ESDM_EIO, "s3: the server at %s began an upload without an id",
                            to->target->options.endpoint);
    return status;
}

/* Ends the oldest part. Its failure is the pack's. */
static void
end_part(pack *to)
{
    part *oldest = to->under_way;
    esdm_error why;
    esdm_status status = s3__wait(to->client, &oldest->request, &why);
    if (status == ESDM_OK && oldest->request.etag[0] == '\0')
        status = esdm__error_set(&why, ESDM_EIO, "s3: the server at %s took a part without an ETag",
                                 to->target->options.endpoint);
    if (status == ESDM_OK)
        memcpy(to->etags[oldest->number - 1], oldest->request.etag, sizeof(etag));
    else
        (void) fail(to, status, &why);
    to->under_way = oldest->next;
    if (to->under_way == NULL)
        to->under_way_end = &to->under_way;
    to->nunder_way--;
    atomic_fetch_sub(&to->target->sent_bytes, oldest->capacity);
    s3__request_clear(&oldest->request);
    free(oldest->data);
    free(oldest);
}

static void
end_all_parts(pack *to, bool cancel)
{
    for (part *at = to->under_way; at != NULL && cancel; at = at->next)
        s3__cancel(to->client, &at->request);
    while (to->under_way != NULL) {
        bool failed_before = to->failure.status != ESDM_OK;
        end_part(to);
        if (!failed_before && to->failure.status != ESDM_OK) { /* the others are of no use */
            for (part *at = to->under_way; at != NULL; at = at->next)
                s3__cancel(to->client, &at->request);
        }
    }
}

/* Takes what has ended, and waits while there is too much under way. */
static void
limit_parts(pack *to)
{
    const s3__target *target = to->target;
    while (to->under_way != NULL &&
           (s3__is_done(to->client, &to->under_way->request) || to->nunder_way > PARTS_UNDER_WAY ||
            atomic_load(&target->sent_bytes) > target->options.memory_bytes / 2))
        end_part(to);
}

static esdm_status
reserve_etag(pack *to, esdm_error *err)
{
    if (to->nparts < to->etags_capacity)
        return ESDM_OK;
    size_t capacity = to->etags_capacity > 0 ? 2 * to->etags_capacity : 16;
    etag *grown = realloc(to->etags, capacity * sizeof *grown);
    if (grown == NULL)
        return esdm__error_nomem(err, capacity * sizeof *grown, "the parts of a pack");
    to->etags = grown;
    to->etags_capacity = capacity;
    return ESDM_OK;
}

/* Sends the part that is being filled. */
static esdm_status
send_tail(pack *to, esdm_error *err)
{
    esdm_status status = reserve_etag(to, err);
    if (status == ESDM_OK && to->nparts == S3__PARTS_MOST)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "s3: '%s' would have more than %u parts; make \"part\" larger",
                                 to->key, S3__PARTS_MOST);
    if (status == ESDM_OK && to->upload_id == NULL)
        status = begin_upload(to, err);
    part *sent = status == ESDM_OK ? calloc(1, sizeof *sent) : NULL;
    if (status == ESDM_OK && sent == NULL)
        status = esdm__error_nomem(err, sizeof *sent, "a part of a pack");
    if (status != ESDM_OK)
        return status;
    sent->data = to->tail;
    sent->capacity = to->tail_capacity;
    sent->number = ++to->nparts;
    (void) snprintf(sent->number_text, sizeof sent->number_text, "%" PRIu32, sent->number);
    sent->request =
        (s3__request){.doing = "write a part of",
                      .method = "PUT",
                      .key = to->key,
                      .query = {{"partNumber", sent->number_text}, {"uploadId", to->upload_id}},
                      .nquery = 2,
                      .body = sent->data,
                      .body_bytes = to->tail_bytes};
    atomic_fetch_add(&to->target->sent_bytes, sent->capacity);
    atomic_fetch_sub(&to->target->tail_bytes, sent->capacity);
    to->tail = NULL;
    to->tail_bytes = 0;
    to->tail_capacity = 0;
    *to->under_way_end = sent;
    to->under_way_end = &sent->next;
    to->nunder_way++;
    s3__submit(to->client, &to->gate, &sent->request);
    limit_parts(to);
    return ESDM_OK;
}

/* ---- appending ------------------------------------------------------------------------------ */

static esdm_status
append_piece(pack *to, const uint8_t *data, size_t bytes, esdm_error *err)
{
    size_t part_bytes = (size_t) to->target->options.part_bytes;
    while (bytes > 0) {
        size_t room = part_bytes - to->tail_bytes;
        size_t step = bytes < room ? bytes : room;
        esdm_status status = grow_tail(to, to->tail_bytes + step, err);
        if (status != ESDM_OK)
            return status;
        memcpy(to->tail + to->tail_bytes, data, step);
        to->tail_bytes += step;
        data += step;
        bytes -= step;
        if (to->tail_bytes == part_bytes) {
            status = send_tail(to, err);
            if (status != ESDM_OK)
                return status;
        }
    }
    return ESDM_OK;
}

esdm_status
s3__pack_append(void *self, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                esdm_error *err)
{
    pack *to = self;
    esdm_error why;
    uint64_t position = to->length_bytes;
    uint64_t end = position;
    for (size_t i = 0; i < niov; i++) {
        if (!esdm__add_u64(end, iov[i].bytes, &end) || end > INT64_MAX)
            return esdm__error_set(err, ESDM_EINVAL, "s3: pack '%s' would exceed 2^63 bytes",
                                   to->key);
    }
    limit_parts(to);
    if (failed(to, err) != ESDM_OK)
        return to->failure.status;
    /* When this fails nothing was changed. Once a part is full there is no way back. */
    uint64_t first = end - position + to->tail_bytes;
    uint64_t part_bytes = to->target->options.part_bytes;
    esdm_status status = grow_tail(to, (size_t) (first < part_bytes ? first : part_bytes), err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < niov && status == ESDM_OK; i++)
        status = append_piece(to, iov[i].data, iov[i].bytes, &why);
    if (status != ESDM_OK) {
        (void) fail(to, status, &why);
        return failed(to, err);
    }
    to->length_bytes = end;
    *ret_position = position;
    return ESDM_OK;
}

bool
s3__pack_is_full(void *self)
{
    const pack *of = self;
    const s3__target *target = of->target;
    return of->nparts >= PARTS_FULL ||
           atomic_load(&target->tail_bytes) > target->options.memory_bytes / 2;
}

esdm_status
s3__pack_sync(void *self, esdm_error *err)
{
    const pack *of = self;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "s3: '%s' is safe once it is sealed, an upload under way cannot be made "
                           "so",
                           of->key);
}

/* ---- ending --------------------------------------------------------------------------------- */

/* Whether the object of this name is the pack: the answer to an earlier attempt may be lost. */
static bool
is_stored(pack *of)
{
    s3__request request = {.doing = "look at", .method = "HEAD", .key = of->key};
    bool stored = s3__perform(of->client, &request, NULL) == ESDM_OK &&
                  strcmp(request.writer, of->writer) == 0 &&
                  request.content_bytes == of->length_bytes;
    s3__request_clear(&request);
    return stored;
}

/* Sends a request that makes the pack visible, unless there is an object of that name. */
static esdm_status
publish(pack *of, s3__request *request, esdm_error *err)
{
    esdm_error why = {0};
    bool conditional = !atomic_load(&of->target->unconditional);
    size_t nheaders = request->nheaders;
    if (conditional)
        request->headers[request->nheaders++] = (s3__pair){"if-none-match", "*"};
    esdm_status status = s3__perform(of->client, request, &why);
    if (status == ESDM_ENOTSUP && conditional) { /* names are unique; this was for good measure */
        atomic_store(&of->target->unconditional, true);
        request->nheaders = nheaders;
        s3__request_clear(request);
        status = s3__perform(of->client, request, &why);
    }
    bool doubtful = status == ESDM_EEXIST || status == ESDM_ENOENT;
    if (doubtful && request->attempts > 1 && is_stored(of))
        status = ESDM_OK;
    if (status == ESDM_EEXIST)
        status = esdm__error_set(&why, ESDM_EEXIST, "s3: there is a pack 's3://%s/%s' already",
                                 of->target->options.bucket, of->key);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
put_whole(pack *of, esdm_error *err)
{
    s3__request request = {.doing = "write",
                           .method = "PUT",
                           .key = of->key,
                           .headers = {{S3__WRITER_HEADER, of->writer}},
                           .nheaders = 1,
                           .body = of->tail,
                           .body_bytes = of->tail_bytes};
    esdm_status status = publish(of, &request, err);
    s3__request_clear(&request);
    return status;
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
join_parts(pack *of, esdm_error *err)
{
    esdm__buffer body;
    esdm__buffer_init(&body);
    put_text(&body, "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < of->nparts; i++) {
        char number[64];
        (void) snprintf(number, sizeof number, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>",
                        i + 1);
        put_text(&body, number);
        put_escaped(&body, of->etags[i]);
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
finish(pack *of, esdm_error *err)
{
    esdm_error why;
    if (of->upload_id == NULL && of->nparts == 0 && of->failure.status == ESDM_OK)
        return put_whole(of, err);
    if (of->tail_bytes > 0 && of->failure.status == ESDM_OK) {
        esdm_status status = send_tail(of, &why);
        if (status != ESDM_OK)
            (void) fail(of, status, &why);
    }
    end_all_parts(of, of->failure.status != ESDM_OK);
    return failed(of, err) == ESDM_OK ? join_parts(of, err) : of->failure.status;
}

/* In a forked child the requests are the parent's: they are left alone. */
static void
pack_free(pack *of)
{
    if (s3__client_is_ours(of->client)) {
        end_all_parts(of, true);
        s3__gate_clear(&of->gate);
    }
    free_tail(of);
    free(of->etags);
    free(of->upload_id);
    free(of);
}

esdm_status
s3__pack_seal(void *self, esdm_error *err)
{
    pack *of = self;
    if (of == NULL)
        return ESDM_OK;
    esdm_status status = finish(of, err);
    /* The parts of what failed take space that nobody sees. One that is there answers for itself.
     */
    if (status != ESDM_OK && of->upload_id != NULL && status != ESDM_EINVAL)
        (void) !s3__upload_abort(of->target, of->key, of->upload_id, NULL);
    pack_free(of);
    return status;
}

esdm_status
s3__pack_discard(void *self, esdm_error *err)
{
    pack *of = self;
    esdm_status status = ESDM_OK;
    if (of == NULL)
        return ESDM_OK;
    if (s3__client_is_ours(of->client)) {
        end_all_parts(of, true);
        if (of->upload_id != NULL)
            status = s3__upload_abort(of->target, of->key, of->upload_id, err);
    }
    pack_free(of);
    return status;
}
