/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Writing packs. What is appended is copied into the part being filled; a full part goes out while
 * the next one is filled. Nobody sees the parts before they are joined, and a server that dies
 * takes them along: they stay in memory until the pack is sealed, so that it can be written
 * elsewhere. All of them are bounded by the target's memory: a pack whose target has more of them
 * than that asks to be sealed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "pack.h"
#include "xml.h"

/* Parts of one pack under way at once. */
#define PARTS_UNDER_WAY 4
/* How often a part is sent whose answer is in doubt. */
#define PART_ATTEMPTS 3u
/* A pack that has so many parts is full; a single append may still add many. */
#define PARTS_FULL 9000u
/* The first memory of a part. */
#define FIRST_BYTES ((size_t) 64 << 10)
/* A pack with less does not end because memory is short; it would have twice the memory with more
 * than 1 MiB. */
#define PRESSED_BYTES (UINT64_C(896) << 10)

esdm_status
s3__pack_create(void *self, const char *name, void **ret_pack, esdm_error *err)
{
    s3__target *target = self;
    char key[S3__KEY_BYTES];
    esdm_status status = s3__pack_key(target, name, key, err);
    if (status != ESDM_OK)
        return status;
    s3__pack *created = calloc(1, sizeof *created);
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

esdm_status
s3__pack_fail(s3__pack *to, esdm_status status, const esdm_error *why)
{
    if (to->failure.status == ESDM_OK) {
        to->failure = *why;
        to->failure.status = status;
    }
    return status;
}

esdm_status
s3__pack_failed(const s3__pack *to, esdm_error *err)
{
    if (to->failure.status != ESDM_OK && err != NULL)
        *err = to->failure;
    return to->failure.status;
}

/* ---- the part being filled ------------------------------------------------------------------ */

/* Memory that was used before need not be touched for the first time again, which takes as long as
 * copying into it. */
struct s3__spare {
    s3__spare *next;
    size_t capacity;
};

/* A buffer of at least so many bytes that is not used any more; NULL: none. */
static uint8_t *
take_spare(s3__target *target, size_t bytes, size_t *ret_capacity)
{
    s3__spare *found = NULL;
    (void) pthread_mutex_lock(&target->lock);
    for (s3__spare **at = &target->spares; *at != NULL && found == NULL;) {
        if ((*at)->capacity >= bytes) {
            found = *at;
            *at = found->next;
            target->spare_bytes -= found->capacity;
        } else {
            at = &(*at)->next;
        }
    }
    (void) pthread_mutex_unlock(&target->lock);
    if (found != NULL)
        *ret_capacity = found->capacity;
    return (uint8_t *) found;
}

static void
give_spare(s3__target *target, uint8_t *buffer, size_t capacity)
{
    bool kept = false;
    (void) pthread_mutex_lock(&target->lock);
    if (buffer != NULL && capacity >= target->options.object_bytes &&
        target->spare_bytes + capacity <= target->options.memory_bytes / 2 &&
        target->spare_bytes + capacity + atomic_load(&target->held_bytes) <=
            target->options.memory_bytes) {
        s3__spare *spare = (s3__spare *) (void *) buffer;
        *spare = (s3__spare){.next = target->spares, .capacity = capacity};
        target->spares = spare;
        target->spare_bytes += capacity;
        kept = true;
    }
    (void) pthread_mutex_unlock(&target->lock);
    if (!kept)
        free(buffer);
}

void
s3__spares_free(s3__target *target)
{
    while (target->spares != NULL) {
        s3__spare *spare = target->spares;
        target->spares = spare->next;
        free(spare);
    }
}

void
s3__free_tail(s3__pack *to)
{
    atomic_fetch_sub(&to->target->held_bytes, to->tail_capacity);
    give_spare(to->target, to->tail, to->tail_capacity);
    to->tail = NULL;
    to->tail_bytes = 0;
    to->tail_capacity = 0;
}

/* What the last part of a pack may take, at least `bytes`: the append that fills the object may
 * exceed it somewhat. */
static size_t
rest_bytes(const s3__pack *to, size_t bytes)
{
    uint64_t object = to->target->options.object_bytes;
    uint64_t sent = to->length_bytes - to->tail_bytes;
    uint64_t rest = (object > sent ? object - sent : 0) + FIRST_BYTES;
    return rest > bytes ? (size_t) rest : SIZE_MAX;
}

/* Room for `bytes` in all, which a part can have. */
static esdm_status
grow_tail(s3__pack *to, size_t bytes, esdm_error *err)
{
    size_t most = (size_t) to->target->options.part_bytes;
    size_t capacity = to->tail_capacity > 0 ? to->tail_capacity : FIRST_BYTES;
    if (bytes <= to->tail_capacity)
        return ESDM_OK;
    while (capacity < bytes)
        capacity *= 2;
    if (to->nparts > 0) /* a pack that has parts fills this one too, as far as its object goes */
        capacity = rest_bytes(to, bytes);
    if (capacity > most)
        capacity = most;
    uint8_t *grown =
        to->tail == NULL && bytes > FIRST_BYTES ? take_spare(to->target, bytes, &capacity) : NULL;
    if (grown == NULL)
        grown = realloc(to->tail, capacity);
    if (grown == NULL)
        return esdm__error_nomem(err, capacity, "a part of a pack");
    atomic_fetch_add(&to->target->held_bytes, capacity - to->tail_capacity);
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

/* One attempt; an answer that names no upload is not about it. */
static esdm_status
ask_for_upload(s3__pack *to, bool *ret_answered, esdm_error *err)
{
    s3__request request = {.doing = "begin an upload of",
                           .method = "POST",
                           .key = to->key,
                           .query = {{"uploads", ""}},
                           .nquery = 1,
                           .headers = {{S3__WRITER_HEADER, to->writer}},
                           .nheaders = 1};
    esdm_status status = s3__perform(to->client, &request, err);
    *ret_answered = status == ESDM_OK;
    if (status == ESDM_OK)
        status = s3__xml_parse(request.answer.data, request.answer.bytes, note_upload_id,
                               &to->upload_id, err);
    s3__request_clear(&request);
    if (status == ESDM_OK && (to->upload_id == NULL || to->upload_id[0] == '\0'))
        status =
            esdm__error_set(err, ESDM_EIO, "s3: the server at %s began an upload without an id",
                            to->target->options.endpoint);
    if (status != ESDM_OK) {
        free(to->upload_id);
        to->upload_id = NULL;
    }
    return status;
}

static esdm_status
begin_upload(s3__pack *to, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = ESDM_EIO;
    bool answered = true;
    for (unsigned attempt = 0; attempt < PART_ATTEMPTS && status != ESDM_OK && answered; attempt++)
        status = ask_for_upload(to, &answered, &why);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* Waits for a part. One whose answer is not about it is sent again; a foreign ETag that stays is
 * refused when the parts are joined, unless the server has its own way of making them. */
static esdm_status
wait_for_part(s3__pack *to, s3__part *part, esdm_error *why)
{
    s3__request *request = &part->request;
    esdm_status status = s3__wait(to->client, request, why);
    for (unsigned attempt = 1; attempt < PART_ATTEMPTS && status == ESDM_OK; attempt++) {
        if (request->etag[0] != '\0' &&
            (request->encrypted ||
             s3__etag_is_md5(request->etag, request->body, request->body_bytes)))
            break;
        s3__request_clear(request);
        status = s3__perform(to->client, request, why);
    }
    return status;
}

/* Ends the oldest part. Its failure is the pack's. */
static void
end_part(s3__pack *to)
{
    s3__part *oldest = to->under_way;
    esdm_error why;
    esdm_status status = wait_for_part(to, oldest, &why);
    if (status == ESDM_OK && oldest->request.etag[0] == '\0')
        status = esdm__error_set(&why, ESDM_EIO, "s3: the server at %s took a part without an ETag",
                                 to->target->options.endpoint);
    if (status == ESDM_OK)
        memcpy(oldest->etag, oldest->request.etag, sizeof oldest->etag);
    else
        (void) s3__pack_fail(to, status, &why);
    to->under_way = oldest->next;
    if (to->under_way == NULL)
        to->under_way_end = &to->under_way;
    to->nunder_way--;
    atomic_fetch_sub(&to->target->sent_bytes, oldest->capacity);
    s3__request_clear(&oldest->request);
}

void
s3__end_all_parts(s3__pack *to, bool cancel)
{
    for (s3__part *at = to->under_way; at != NULL && cancel; at = at->next)
        s3__cancel(to->client, &at->request);
    while (to->under_way != NULL) {
        bool failed_before = to->failure.status != ESDM_OK;
        end_part(to);
        if (!failed_before && to->failure.status != ESDM_OK) { /* the others are of no use */
            for (s3__part *at = to->under_way; at != NULL; at = at->next)
                s3__cancel(to->client, &at->request);
        }
    }
}

/* Takes what has ended, and waits while there is too much under way. */
static void
limit_parts(s3__pack *to)
{
    const s3__target *target = to->target;
    while (to->under_way != NULL &&
           (s3__is_done(to->client, &to->under_way->request) || to->nunder_way > PARTS_UNDER_WAY ||
            atomic_load(&target->sent_bytes) > target->options.memory_bytes / 2))
        end_part(to);
}

static esdm_status
reserve_part(s3__pack *to, esdm_error *err)
{
    if (to->nparts < to->parts_capacity)
        return ESDM_OK;
    size_t capacity = to->parts_capacity > 0 ? 2 * to->parts_capacity : 16;
    s3__part **grown = realloc(to->parts, capacity * sizeof *grown);
    if (grown == NULL)
        return esdm__error_nomem(err, capacity * sizeof *grown, "the parts of a pack");
    to->parts = grown;
    to->parts_capacity = capacity;
    return ESDM_OK;
}

/* Sends the part that is being filled. */
esdm_status
s3__send_tail(s3__pack *to, esdm_error *err)
{
    esdm_status status = reserve_part(to, err);
    if (status == ESDM_OK && to->nparts == S3__PARTS_MOST)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "s3: '%s' would have more than %u parts; make \"part\" larger",
                                 to->key, S3__PARTS_MOST);
    if (status == ESDM_OK && to->upload_id == NULL)
        status = begin_upload(to, err);
    s3__part *sent = status == ESDM_OK ? calloc(1, sizeof *sent) : NULL;
    if (status == ESDM_OK && sent == NULL)
        status = esdm__error_nomem(err, sizeof *sent, "a part of a pack");
    if (status != ESDM_OK)
        return status;
    sent->data = to->tail;
    sent->capacity = to->tail_capacity;
    to->parts[to->nparts] = sent;
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
append_piece(s3__pack *to, const uint8_t *data, size_t bytes, esdm_error *err)
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
            status = s3__send_tail(to, err);
            if (status != ESDM_OK)
                return status;
        }
    }
    return ESDM_OK;
}

static void
note_filling(s3__pack *to)
{
    uint64_t bytes = to->length_bytes > FIRST_BYTES ? to->length_bytes : FIRST_BYTES;
    atomic_fetch_add(&to->target->filling_bytes, bytes - to->filling_bytes);
    to->filling_bytes = bytes;
}

void
s3__stop_filling(s3__pack *of)
{
    atomic_fetch_sub(&of->target->filling_bytes, of->filling_bytes);
    of->filling_bytes = 0;
}

esdm_status
s3__pack_append(void *self, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                esdm_error *err)
{
    s3__pack *to = self;
    esdm_error why;
    uint64_t position = to->length_bytes;
    uint64_t end = position;
    for (size_t i = 0; i < niov; i++) {
        if (!esdm__add_u64(end, iov[i].bytes, &end) || end > INT64_MAX)
            return esdm__error_set(err, ESDM_EINVAL, "s3: pack '%s' would exceed 2^63 bytes",
                                   to->key);
    }
    limit_parts(to);
    if (s3__pack_failed(to, err) != ESDM_OK)
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
        (void) s3__pack_fail(to, status, &why);
        return s3__pack_failed(to, err);
    }
    to->length_bytes = end;
    note_filling(to);
    *ret_position = position;
    return ESDM_OK;
}

bool
s3__pack_is_full(void *self)
{
    const s3__pack *of = self;
    const s3__target *target = of->target;
    /* Ending small packs frees little, and gives a server that is slow already more to do. */
    bool pressed = of->length_bytes >= PRESSED_BYTES &&
                   atomic_load(&target->held_bytes) > target->options.memory_bytes;
    /* Of many small ones, perhaps in as many containers, one that is ended makes room. */
    bool crowded = atomic_load(&target->filling_bytes) > target->options.memory_bytes;
    return pressed || crowded || of->length_bytes >= target->options.object_bytes ||
           of->nparts >= PARTS_FULL;
}

esdm_status
s3__pack_sync(void *self, esdm_error *err)
{
    const s3__pack *of = self;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "s3: '%s' is safe once it is sealed, an upload under way cannot be made "
                           "so",
                           of->key);
}
