/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "answer.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "xml.h"

/* ---- the error document --------------------------------------------------------------------- */

static void
copy_printable(const char *from, char *to, size_t bytes)
{
    size_t used = 0;
    for (; *from != '\0' && used + 1 < bytes; from++)
        to[used++] = *from >= ' ' && *from <= '~' ? *from : ' ';
    to[used] = '\0';
}

static void
scrub_one(const char *secret, char *text)
{
    size_t bytes = secret != NULL ? strlen(secret) : 0;
    if (bytes < 4) /* asterisks in every word would help nobody */
        return;
    for (char *at = strstr(text, secret); at != NULL; at = strstr(at, secret))
        memset(at, '*', bytes);
}

void
s3__scrub(const s3__credentials *credentials, char *text)
{
    scrub_one(credentials->secret_key, text);
    scrub_one(credentials->session_token, text);
}

typedef struct reading {
    const s3__credentials *credentials;
    s3__error_document *document;
} reading;

static esdm_status
note_field(const char *path, char *text, void *user, esdm_error *err)
{
    const reading *r = user;
    s3__error_document *document = r->document;
    (void) err;
    s3__scrub(r->credentials, text); /* before it is cut: half a secret is not found any more */
    if (strcmp(path, "Error/Code") == 0)
        copy_printable(text, document->code, sizeof document->code);
    else if (strcmp(path, "Error/Message") == 0)
        copy_printable(text, document->message, sizeof document->message);
    else if (strcmp(path, "Error/Region") == 0)
        copy_printable(text, document->region, sizeof document->region);
    return ESDM_OK;
}

void
s3__error_read(const s3__credentials *credentials, const void *body, size_t bytes,
               s3__error_document *ret_document)
{
    reading r = {.credentials = credentials, .document = ret_document};
    *ret_document = (s3__error_document){0};
    /* A page of some proxy is no XML: then there is nothing to tell but the HTTP status. */
    (void) !s3__xml_parse(body, bytes, note_field, &r, NULL);
}

/* ---- meanings ------------------------------------------------------------------------------- */

typedef struct meaning {
    const char *code;
    esdm_status status;
    const char *advice; /* what to do; "": nothing to add to the server's message */
} meaning;

#define BAD_KEY "\"access_key\", AWS_ACCESS_KEY_ID or the profile names a key that it does not know"

static const meaning meanings[] = {
    {"SignatureDoesNotMatch", ESDM_EACCES,
     "the secret key does not belong to the access key; correct AWS_SECRET_ACCESS_KEY, the profile "
     "or \"secret_key\""},
    {"InvalidAccessKeyId", ESDM_EACCES, BAD_KEY},
    {"XAdminUserNotFound", ESDM_EACCES, BAD_KEY},
    {"XMinioInvalidAccessKeyId", ESDM_EACCES, BAD_KEY},
    {"AccessDenied", ESDM_EACCES,
     "the key's owner may not do this in the bucket: ask for the right"},
    {"AllAccessDisabled", ESDM_EACCES, "the bucket is disabled"},
    {"AccountProblem", ESDM_EACCES, ""},
    {"ExpiredToken", ESDM_EACCES, "the session token has expired: get a new one"},
    {"InvalidToken", ESDM_EACCES, "the session token is wrong: correct AWS_SESSION_TOKEN"},
    {"MethodNotAllowed", ESDM_EACCES, "the server allows only reading here"},
    {"NoSuchBucket", ESDM_ENOENT,
     "make the bucket with the server's own tools, or say \"create_bucket\": true and run "
     "esdm-mkfs, or correct \"bucket\""},
    {"InvalidBucketName", ESDM_EINVAL, "correct \"bucket\""},
    {"NoSuchKey", ESDM_ENOENT, ""},
    {"NoSuchUpload", ESDM_ENOENT, ""},
    {"PreconditionFailed", ESDM_EEXIST, ""},
    {"BucketAlreadyExists", ESDM_EEXIST, "somebody else has a bucket of that name: choose another"},
    {"InvalidRange", ESDM_ECORRUPT, "the object is shorter than the bytes asked for"},
    {"EntityTooLarge", ESDM_EINVAL, "make \"part\" smaller"},
    {"EntityTooSmall", ESDM_EINVAL, "make \"part\" larger"},
    {"KeyTooLongError", ESDM_EINVAL, "shorten \"prefix\""},
    {"QuotaExceeded", ESDM_ENOSPC, "the bucket's quota is used up"},
    {"XMinioStorageFull", ESDM_ENOSPC, "the server's storage is full"},
    {"XMinioAdminBucketQuotaExceeded", ESDM_ENOSPC, "the bucket's quota is used up"},
    {"InsufficientStorage", ESDM_ENOSPC, "the server's storage is full"},
    {"NotImplemented", ESDM_ENOTSUP, ""},
    {"SlowDown", ESDM_ETIMEDOUT, "the server asks for fewer requests; lower \"connections\""},
    {"RequestTimeout", ESDM_ETIMEDOUT, ""},
};

static meaning
meaning_of(const s3__failure *failure)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strcmp(failure->code, meanings[i].code) == 0)
            return meanings[i];
    }
    switch (failure->http_status) {
    case 401:
    case 403:
        return (meaning){"", ESDM_EACCES, "check the credentials and the rights of their owner"};
    case 404:
        return (meaning){"", ESDM_ENOENT, ""};
    case 412:
        return (meaning){"", ESDM_EEXIST, ""};
    case 416:
        return (meaning){"", ESDM_ECORRUPT, "the object is shorter than the bytes asked for"};
    case 429:
        return (meaning){"", ESDM_ETIMEDOUT, "the server asks for fewer requests"};
    case 501:
        return (meaning){"", ESDM_ENOTSUP, ""};
    case 507:
        return (meaning){"", ESDM_ENOSPC, "the server's storage is full"};
    default:
        return (meaning){"", ESDM_EIO, ""};
    }
}

/* "cannot write 's3://bucket/key' at https://…" */
static void
put_subject(const s3__options *options, const s3__failure *failure, char *text, size_t bytes)
{
    (void) snprintf(text, bytes, "s3: cannot %s 's3://%s/%.150s' at %.100s", failure->doing,
                    options->bucket, failure->key != NULL ? failure->key : "", options->endpoint);
}

static void
put_attempts(const s3__failure *failure, char text[32])
{
    text[0] = '\0';
    if (failure->attempts > 1)
        (void) snprintf(text, 32, " (%u attempts)", failure->attempts);
}

static esdm_status
finish(const s3__credentials *credentials, esdm_status status, esdm_error *err)
{
    if (err != NULL)
        s3__scrub(credentials, err->message);
    return status;
}

static esdm_status
describe_skew(const s3__failure *failure, const char *subject, esdm_error *err)
{
    int64_t seconds = failure->skew_s < 0 ? -failure->skew_s : failure->skew_s;
    if (seconds < 2)
        return esdm__error_set(
            err, ESDM_EACCES,
            "%s: the server finds that our clock is wrong (%s); set the clock of "
            "this machine, with NTP best",
            subject, failure->code);
    return esdm__error_set(err, ESDM_EACCES,
                           "%s: the clock of this machine is %lld seconds %s the server's, and "
                           "signatures hold for some minutes only (%s); set the clock, with NTP "
                           "best",
                           subject, (long long) seconds,
                           failure->skew_s > 0 ? "behind" : "ahead of", failure->code);
}

static esdm_status
describe_region(const s3__options *options, const s3__failure *failure, const char *subject,
                esdm_error *err)
{
    return esdm__error_set(
        err, ESDM_EINVAL,
        "%s: the bucket lies in region '%s', not in '%s'; say \"region\": \"%s\" "
        "in the configuration%s",
        subject, failure->region, options->region, failure->region,
        failure->http_status < 400 ? ", and the endpoint of that region" : "");
}

esdm_status
s3__describe(const s3__options *options, const s3__credentials *credentials,
             const s3__failure *failure, esdm_error *err)
{
    char subject[400];
    char attempts[32];
    put_subject(options, failure, subject, sizeof subject);
    put_attempts(failure, attempts);
    if (strcmp(failure->code, "RequestTimeTooSkewed") == 0 ||
        strcmp(failure->code, "RequestExpired") == 0)
        return finish(credentials, describe_skew(failure, subject, err), err);
    if (failure->region[0] != '\0' && strcmp(failure->region, options->region) != 0)
        return finish(credentials, describe_region(options, failure, subject, err), err);
    if (failure->http_status >= 300 && failure->http_status < 400)
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: the server sends us elsewhere (HTTP %ld %s); correct "
                               "\"endpoint\", \"region\" or \"style\"",
                               subject, failure->http_status, failure->code);
    meaning what = meaning_of(failure);
    const char *text = what.advice[0] != '\0' ? what.advice : failure->message;
    const char *whose = what.status == ESDM_EACCES ? credentials->source : NULL;
    esdm_status status = esdm__error_set(err, what.status, "%s: HTTP %ld%s%s%s%s%s%s%s%s", subject,
                                         failure->http_status, failure->code[0] != '\0' ? " " : "",
                                         failure->code, attempts, text[0] != '\0' ? ": " : "", text,
                                         whose != NULL ? " (credentials: " : "",
                                         whose != NULL ? whose : "", whose != NULL ? ")" : "");
    return finish(credentials, status, err);
}

esdm_status
s3__describe_transport(const s3__options *options, const s3__credentials *credentials,
                       const s3__failure *failure, int curl_code, const char *why, esdm_error *err)
{
    char subject[400];
    char attempts[32];
    esdm_status status = ESDM_EIO;
    const char *advice = "";
    put_subject(options, failure, subject, sizeof subject);
    put_attempts(failure, attempts);
    switch (curl_code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        advice = options->host_style ? "; correct \"endpoint\", or say \"style\": \"path\""
                                     : "; correct \"endpoint\"";
        break;
    case CURLE_COULDNT_CONNECT:
        advice = "; is the server running, and \"endpoint\" right?";
        break;
    case CURLE_OPERATION_TIMEDOUT:
        status = ESDM_ETIMEDOUT;
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        status = ESDM_EACCES;
        advice = "; if the server has a certificate of your own authority, name that authority's "
                 "file as \"ca_file\"";
        break;
    case CURLE_SSL_CACERT_BADFILE:
        status = ESDM_EINVAL;
        advice = "; correct \"ca_file\"";
        break;
    case CURLE_OUT_OF_MEMORY:
        status = ESDM_ENOMEM;
        break;
    default:
        break;
    }
    status = esdm__error_set(err, status, "%s: %s%s%s", subject, why, attempts, advice);
    return finish(credentials, status, err);
}
