/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The mark of the place. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "s3.h"

typedef struct mark_words {
    char key[S3__KEY_BYTES];
    char where[S3__KEY_BYTES + 400];
    char file[S3__KEY_BYTES + 100];
} mark_words;

static esdm__mark
expected_mark(const s3__target *target, mark_words *words)
{
    const s3__options *options = &target->options;
    (void) snprintf(words->key, sizeof words->key, "%s" ESDM__MARK_FILE, options->prefix);
    (void) snprintf(words->where, sizeof words->where, "the place %.600s", options->place);
    (void) snprintf(words->file, sizeof words->file, "s3://%s/%s", options->bucket, words->key);
    return (esdm__mark){.plugin = S3__PLUGIN,
                        .target = options->name,
                        .site_id = options->site_id,
                        .path = options->path,
                        .where = words->where,
                        .file = words->file};
}

/* Opening must not take as long as writing may: somebody waits for a prompt. */
static uint32_t
patience_of(const s3__target *target)
{
    return target->options.timeout_ms < 20000 ? target->options.timeout_ms : 20000;
}

/* Reads the mark; what is done with its text differs. */
static esdm_status
read_mark(s3__target *target, bool *ret_no_bucket, char *ret_id, esdm_error *err)
{
    mark_words words;
    const esdm__mark expected = expected_mark(target, &words);
    s3__request request = {
        .doing = "read", .method = "GET", .key = words.key, .limit_ms = patience_of(target)};
    esdm_status status = s3__send(target, &request, err);
    if (ret_no_bucket != NULL)
        *ret_no_bucket = strcmp(request.code, "NoSuchBucket") == 0;
    if (status == ESDM_ENOENT && strcmp(request.code, "NoSuchBucket") != 0)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "%s: %s is not marked as ESDM's (no %s); make the site with "
                                 "esdm-mkfs",
                                 expected.path, expected.where, ESDM__MARK_FILE);
    else if (status != ESDM_OK)
        status = esdm__error_prefix(err, status, "%s", expected.path);
    else if (request.answer.bytes > ESDM__MARK_MAX_BYTES)
        status = esdm__error_set(err, ESDM_ECORRUPT, "%s: the mark '%s' is damaged: it is too long",
                                 expected.path, expected.file);
    else if (ret_id != NULL)
        status = esdm__mark_site_id(&expected, (const char *) request.answer.data,
                                    request.answer.bytes, ret_id, err);
    else
        status = esdm__mark_verify(&expected, (const char *) request.answer.data,
                                   request.answer.bytes, err);
    s3__request_clear(&request);
    return status;
}

esdm_status
s3__mark_check(s3__target *target, bool *ret_no_bucket, esdm_error *err)
{
    return read_mark(target, ret_no_bucket, NULL, err);
}

esdm_status
s3__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    s3__target *target = NULL;
    esdm_status status = s3__target_new(config, &target, err);
    if (status == ESDM_OK)
        status = read_mark(target, NULL, ret_id, err);
    s3__close(target);
    return status;
}

/* One PUT. `conditional`: only when there is none. */
static esdm_status
put_mark(s3__target *target, const char *key, const char *text, bool conditional, esdm_error *err)
{
    char writer[ESDM__UUID_BYTES];
    esdm__uuid_new(writer);
    s3__request request = {.doing = "write",
                           .method = "PUT",
                           .key = key,
                           .body = text,
                           .body_bytes = strlen(text),
                           .headers = {{S3__WRITER_HEADER, writer}, {"if-none-match", "*"}},
                           .nheaders = conditional ? 2 : 1,
                           .limit_ms = patience_of(target)};
    esdm_status status = s3__send(target, &request, err);
    bool lost_answer = status == ESDM_EEXIST && request.attempts > 1;
    s3__request_clear(&request);
    if (!lost_answer)
        return status;
    s3__request head = {.doing = "look at", .method = "HEAD", .key = key};
    if (s3__send(target, &head, NULL) == ESDM_OK && strcmp(head.writer, writer) == 0)
        status = ESDM_OK; /* an earlier attempt of ours was the first */
    s3__request_clear(&head);
    return status;
}

esdm_status
s3__mark_write(s3__target *target, esdm_error *err)
{
    mark_words words;
    const esdm__mark mark = expected_mark(target, &words);
    if (mark.site_id[0] == '\0')
        return esdm__error_set(err, ESDM_EINVAL, "%s: there is no site to mark %s for", mark.path,
                               mark.where);
    char *text = esdm__mark_text(&mark);
    if (text == NULL)
        return esdm__error_nomem(err, ESDM__MARK_MAX_BYTES, "a mark");
    esdm_status status = put_mark(target, words.key, text, true, err);
    if (status == ESDM_ENOTSUP) { /* the server has no conditions: the caller has looked */
        atomic_store(&target->unconditional, true);
        status = put_mark(target, words.key, text, false, err);
    }
    free(text);
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "%s", mark.path);
}

esdm_status
s3__mark_remove(s3__target *target, esdm_error *err)
{
    mark_words words;
    const esdm__mark mark = expected_mark(target, &words);
    char *key = words.key;
    esdm_status status = s3__delete_objects(target, &key, 1, err);
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "%s", mark.path);
}
