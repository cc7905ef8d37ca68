/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Deleting objects and unfinished uploads. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "s3.h"

/* Requests under way at once; the client has a limit of its own. */
#define BATCH 64

struct s3__upload {
    s3__upload *next;
    char *key;
    char *id;
};

static void
upload_free(s3__upload *upload)
{
    if (upload == NULL)
        return;
    free(upload->key);
    free(upload->id);
    free(upload);
}

bool
s3__upload_note(s3__target *target, const char *key, const char *upload_id)
{
    s3__upload *upload = calloc(1, sizeof *upload);
    bool known = false;
    if (upload == NULL)
        return false;
    upload->key = strdup(key);
    upload->id = strdup(upload_id);
    if (upload->key == NULL || upload->id == NULL) {
        upload_free(upload);
        return false;
    }
    (void) pthread_mutex_lock(&target->lock);
    for (const s3__upload *at = target->uploads; at != NULL && !known; at = at->next)
        known = strcmp(at->id, upload_id) == 0 && strcmp(at->key, key) == 0;
    if (!known) {
        upload->next = target->uploads;
        target->uploads = upload;
    }
    (void) pthread_mutex_unlock(&target->lock);
    if (known)
        upload_free(upload);
    return true;
}

void
s3__uploads_forget(s3__target *target)
{
    while (target->uploads != NULL) {
        s3__upload *upload = target->uploads;
        target->uploads = upload->next;
        upload_free(upload);
    }
}

/* Takes a remembered upload of this key out; NULL when there is none. */
static s3__upload *
take_upload(s3__target *target, const char *key)
{
    s3__upload *found = NULL;
    (void) pthread_mutex_lock(&target->lock);
    for (s3__upload **at = &target->uploads; *at != NULL && found == NULL;) {
        if (strcmp((*at)->key, key) == 0) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    }
    (void) pthread_mutex_unlock(&target->lock);
    return found;
}

esdm_status
s3__upload_abort(s3__target *target, const char *key, const char *upload_id, uint32_t limit_ms,
                 esdm_error *err)
{
    s3__request request = {.doing = "give up the upload of",
                           .method = "DELETE",
                           .key = key,
                           .query = {{"uploadId", upload_id}},
                           .nquery = 1,
                           .limit_ms = limit_ms};
    esdm_status status = s3__send(target, &request, err);
    s3__request_clear(&request);
    return status == ESDM_ENOENT ? ESDM_OK : status;
}

static esdm_status
delete_batch(s3__target *target, char *const *keys, size_t nkeys, esdm_error *err)
{
    s3__client *client = s3__target_client(target);
    s3__request *requests = calloc(nkeys, sizeof *requests);
    esdm_status first = ESDM_OK;
    if (client == NULL || requests == NULL) {
        free(requests);
        return esdm__error_nomem(err, nkeys * sizeof *requests, "requests");
    }
    s3__gate gate;
    s3__gate_init(&gate);
    for (size_t i = 0; i < nkeys; i++) {
        requests[i] = (s3__request){.doing = "delete", .method = "DELETE", .key = keys[i]};
        s3__submit(client, &gate, &requests[i]);
    }
    for (size_t i = 0; i < nkeys; i++) {
        esdm_error why;
        esdm_status status = s3__wait(client, &requests[i], &why);
        bool gone = status == ESDM_ENOENT && strcmp(requests[i].code, "NoSuchBucket") != 0;
        if (status != ESDM_OK && !gone && first == ESDM_OK) {
            first = status;
            if (err != NULL)
                *err = why;
        }
        s3__request_clear(&requests[i]);
    }
    s3__gate_clear(&gate);
    free(requests);
    return first;
}

esdm_status
s3__delete_objects(s3__target *target, char *const *keys, size_t nkeys, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t at = 0; at < nkeys && status == ESDM_OK; at += BATCH)
        status = delete_batch(target, keys + at, nkeys - at < BATCH ? nkeys - at : BATCH, err);
    return status;
}

esdm_status
s3__pack_remove(void *self, const char *name, esdm_error *err)
{
    s3__target *target = self;
    char key[S3__KEY_BYTES];
    char *keys = key;
    esdm_status status = s3__pack_key(target, name, key, err);
    if (status == ESDM_OK)
        status = s3__delete_objects(target, &keys, 1, err);
    for (s3__upload *upload = NULL;
         status == ESDM_OK && (upload = take_upload(target, key)) != NULL;) {
        status = s3__upload_abort(target, key, upload->id, 0, err);
        upload_free(upload);
    }
    return status;
}
