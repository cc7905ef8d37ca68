/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Listing objects and unfinished uploads. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "encode.h"
#include "s3.h"
#include "xml.h"

#define PAGE_OBJECTS "1000"
#define TOKEN_BYTES  2048

/* One page, and what is known so far of the entry being read. */
typedef struct page {
    s3__object_visitor visit;
    void *user;
    const char *entry; /* path of an entry's element */
    char key[3200];    /* S3's longest key has 1024 bytes, each encoded as three */
    char upload_id[TOKEN_BYTES];
    uint64_t bytes;
    uint64_t modified_ns;
    bool encoded; /* keys are percent-encoded */
    bool truncated;
    bool stopped;
    char next[TOKEN_BYTES];        /* token, or key marker, of the next page */
    char next_upload[TOKEN_BYTES]; /* and upload-id marker */
    esdm__buffer found;            /* entries: the encoding is told after them */
} page;

typedef struct found_entry {
    uint64_t bytes;
    uint64_t modified_ns;
    uint32_t key_bytes; /* of the texts that follow, with NUL */
    uint32_t upload_bytes;
} found_entry;

/* "2026-11-20T10:37:34Z" or "2026-11-20T10:37:34.000Z" */
static uint64_t
parse_time(const char *text)
{
    struct tm parts;
    memset(&parts, 0, sizeof parts);
    if (strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) == NULL)
        return 0;
    time_t seconds = timegm(&parts);
    return seconds > 0 ? (uint64_t) seconds * 1000000000u : 0;
}

static esdm_status
copy_token(const char *text, char to[TOKEN_BYTES], esdm_error *err)
{
    size_t bytes = strlen(text);
    if (bytes >= TOKEN_BYTES)
        return esdm__error_set(err, ESDM_EIO, "a token of the answer is too long");
    memcpy(to, text, bytes + 1);
    return ESDM_OK;
}

static void
end_entry(page *p)
{
    const found_entry entry = {.bytes = p->bytes,
                               .modified_ns = p->modified_ns,
                               .key_bytes = (uint32_t) strlen(p->key) + 1,
                               .upload_bytes = (uint32_t) strlen(p->upload_id) + 1};
    esdm__buffer_put(&p->found, &entry, sizeof entry);
    esdm__buffer_put(&p->found, p->key, entry.key_bytes);
    esdm__buffer_put(&p->found, p->upload_id, entry.upload_bytes);
    p->key[0] = '\0';
    p->upload_id[0] = '\0';
    p->bytes = 0;
    p->modified_ns = 0;
}

static esdm_status
note_entry_field(page *p, const char *field, const char *text, esdm_error *err)
{
    if (strcmp(field, "Key") == 0) {
        if (strlen(text) >= sizeof p->key)
            return esdm__error_set(err, ESDM_EIO, "a key of the answer is too long");
        memcpy(p->key, text, strlen(text) + 1);
    } else if (strcmp(field, "Size") == 0) {
        p->bytes = strtoull(text, NULL, 10);
    } else if (strcmp(field, "LastModified") == 0 || strcmp(field, "Initiated") == 0) {
        p->modified_ns = parse_time(text);
    } else if (strcmp(field, "UploadId") == 0) {
        return copy_token(text, p->upload_id, err);
    }
    return ESDM_OK;
}

static esdm_status
note_field(const char *path, char *text, void *user, esdm_error *err)
{
    page *p = user;
    size_t bytes = strlen(p->entry);
    if (strncmp(path, p->entry, bytes) == 0 && path[bytes] == '/')
        return note_entry_field(p, path + bytes + 1, text, err);
    if (strcmp(path, p->entry) == 0) {
        end_entry(p);
        return ESDM_OK;
    }
    const char *field = strchr(path, '/');
    if (field == NULL)
        return ESDM_OK;
    if (strcmp(field, "/IsTruncated") == 0)
        p->truncated = strcmp(text, "true") == 0;
    else if (strcmp(field, "/EncodingType") == 0)
        p->encoded = strcmp(text, "url") == 0;
    else if (strcmp(field, "/NextContinuationToken") == 0 || strcmp(field, "/NextKeyMarker") == 0)
        return copy_token(text, p->next, err);
    else if (strcmp(field, "/NextUploadIdMarker") == 0)
        return copy_token(text, p->next_upload, err);
    return ESDM_OK;
}

static void
visit_found(page *p)
{
    for (size_t at = 0; at < p->found.bytes && !p->stopped;) {
        found_entry entry;
        memcpy(&entry, p->found.data + at, sizeof entry);
        char *key = (char *) p->found.data + at + sizeof entry;
        char *upload = key + entry.key_bytes;
        if (p->encoded)
            s3__decode(key);
        const s3__object object = {.key = key,
                                   .upload_id = upload[0] != '\0' ? upload : NULL,
                                   .bytes = entry.bytes,
                                   .modified_ns = entry.modified_ns};
        p->stopped = !p->visit(&object, p->user);
        at += sizeof entry + entry.key_bytes + entry.upload_bytes;
    }
}

/* Asks for one page and visits it. */
static esdm_status
read_page(s3__target *target, s3__request *request, page *p, esdm_error *err)
{
    p->found.bytes = 0;
    p->truncated = false;
    p->next[0] = '\0';
    p->next_upload[0] = '\0';
    esdm_status status = s3__send(target, request, err);
    if (status == ESDM_OK) {
        status = s3__xml_parse(request->answer.data, request->answer.bytes, note_field, p, err);
        if (status != ESDM_OK)
            status = esdm__error_prefix(err, status, "s3: cannot list %s", target->options.place);
        else if (p->found.failed)
            status = esdm__error_nomem(err, p->found.bytes, "a listing");
    }
    s3__request_clear(request);
    if (status == ESDM_OK)
        visit_found(p);
    if (status == ESDM_OK && p->truncated && p->next[0] == '\0')
        return esdm__error_set(err, ESDM_EIO,
                               "s3: cannot list %s: the server says that there is more, but not "
                               "how to ask for it",
                               target->options.place);
    return status;
}

esdm_status
s3__list_objects(s3__target *target, const char *key_prefix, s3__object_visitor visit, void *user,
                 esdm_error *err)
{
    esdm_status status = ESDM_OK;
    char token[TOKEN_BYTES] = "";
    page *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a listing");
    *p = (page){.visit = visit, .user = user, .entry = "ListBucketResult/Contents"};
    do {
        s3__request request = {.doing = "list",
                               .method = "GET",
                               .query = {{"list-type", "2"},
                                         {"prefix", key_prefix},
                                         {"max-keys", PAGE_OBJECTS},
                                         {"encoding-type", "url"},
                                         {"continuation-token", token}},
                               .nquery = token[0] != '\0' ? 5 : 4};
        status = read_page(target, &request, p, err);
        memcpy(token, p->next, sizeof token);
    } while (status == ESDM_OK && p->truncated && !p->stopped);
    esdm__buffer_clear(&p->found);
    free(p);
    return status;
}

esdm_status
s3__list_uploads(s3__target *target, const char *key_prefix, s3__object_visitor visit, void *user,
                 esdm_error *err)
{
    esdm_status status = ESDM_OK;
    esdm_error why = {0};
    char key[TOKEN_BYTES] = "";
    char upload[TOKEN_BYTES] = "";
    page *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a listing");
    *p = (page){.visit = visit, .user = user, .entry = "ListMultipartUploadsResult/Upload"};
    do {
        s3__request request = {.doing = "list uploads of",
                               .method = "GET",
                               .query = {{"uploads", ""},
                                         {"prefix", key_prefix},
                                         {"max-uploads", PAGE_OBJECTS},
                                         {"encoding-type", "url"},
                                         {"key-marker", key},
                                         {"upload-id-marker", upload}},
                               .nquery = key[0] != '\0' ? 6 : 4};
        status = read_page(target, &request, p, &why);
        if (p->encoded)
            s3__decode(p->next);
        memcpy(key, p->next, sizeof key);
        memcpy(upload, p->next_upload, sizeof upload);
    } while (status == ESDM_OK && p->truncated && !p->stopped);
    esdm__buffer_clear(&p->found);
    free(p);
    if (status == ESDM_EACCES || status == ESDM_ENOTSUP)
        return ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ---- packs ---------------------------------------------------------------------------------- */

typedef struct pack_walk {
    s3__target *target;
    esdm_pack_visitor visit;
    void *user;
    bool stopped;
    bool no_memory;
} pack_walk;

static bool
visit_pack(const s3__object *object, void *user)
{
    pack_walk *walk = user;
    const char *name = s3__pack_of_key(walk->target, object->key);
    if (name == NULL)
        return true;
    if (object->upload_id != NULL &&
        !s3__upload_note(walk->target, object->key, object->upload_id)) {
        walk->no_memory = true;
        return false;
    }
    walk->stopped = !walk->visit(name, object->bytes, object->modified_ns, walk->user);
    return !walk->stopped;
}

esdm_status
s3__pack_list(void *self, const char *prefix, esdm_pack_visitor visit, void *user, esdm_error *err)
{
    s3__target *target = self;
    pack_walk walk = {.target = target, .visit = visit, .user = user};
    char key_prefix[S3__KEY_BYTES];
    if (prefix == NULL)
        prefix = "";
    if (strlen(prefix) > S3__NAME_MAX)
        return ESDM_OK; /* no pack has such a name */
    (void) snprintf(key_prefix, sizeof key_prefix, "%s" S3__PACKS "%s", target->options.prefix,
                    prefix);
    esdm_status status = s3__list_objects(target, key_prefix, visit_pack, &walk, err);
    if (status == ESDM_OK && !walk.stopped)
        status = s3__list_uploads(target, key_prefix, visit_pack, &walk, err);
    if (status == ESDM_OK && walk.no_memory)
        return esdm__error_nomem(err, sizeof walk, "a listing");
    return status;
}
