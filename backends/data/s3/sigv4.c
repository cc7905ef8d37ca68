/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "sigv4.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "encode.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

/* ---- queries ------------------------------------------------------------------------------- */

static int
compare_pairs(const void *a, const void *b)
{
    const s3__pair *x = a;
    const s3__pair *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->value, y->value);
}

/* Order is by the encoded names; ours are plain ASCII words, for which that is the same. */
static size_t
sort_pairs(const s3__pair *pairs, size_t count, s3__pair sorted[S3__HEADERS_MAX])
{
    count = count < S3__HEADERS_MAX ? count : S3__HEADERS_MAX;
    if (count > 0)
        memcpy(sorted, pairs, count * sizeof *pairs);
    qsort(sorted, count, sizeof *sorted, compare_pairs);
    return count;
}

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

void
s3__canonical_query(esdm__buffer *out, const s3__pair *parameters, size_t nparameters)
{
    s3__pair sorted[S3__HEADERS_MAX];
    nparameters = sort_pairs(parameters, nparameters, sorted);
    for (size_t i = 0; i < nparameters; i++) {
        if (i > 0)
            put_text(out, "&");
        s3__encode(out, sorted[i].name, false);
        put_text(out, "=");
        s3__encode(out, sorted[i].value, false);
    }
}

/* ---- hashes --------------------------------------------------------------------------------- */

static void
put_hex(const uint8_t *bytes, size_t count, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15u];
    }
    ret_hex[2 * count] = '\0';
}

bool
s3__etag_is_md5(const char *etag, const void *data, size_t bytes)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    unsigned length = 0;
    if (EVP_Digest(bytes > 0 ? data : "", bytes, hash, &length, EVP_md5(), NULL) != 1)
        return true;
    put_hex(hash, length, hex);
    etag += *etag == '"';
    return strncasecmp(etag, hex, 2 * length) == 0 &&
           (etag[2 * length] == '\0' || etag[2 * length] == '"');
}

bool
s3__sha256_hex(const void *data, size_t bytes, char ret_hex[S3__SHA256_TEXT])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(data, bytes, hash, &length, EVP_sha256(), NULL) != 1 ||
        length != S3__SHA256_BYTES)
        return false;
    put_hex(hash, S3__SHA256_BYTES, ret_hex);
    return true;
}

static bool
hmac(const void *key, size_t key_bytes, const void *text, size_t bytes,
     uint8_t ret_hash[S3__SHA256_BYTES])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key, (int) key_bytes, text, bytes, hash, &length) == NULL ||
        length != S3__SHA256_BYTES)
        return false;
    memcpy(ret_hash, hash, S3__SHA256_BYTES);
    return true;
}

/* The key depends on the day: a chain of four hashes that begins with the secret. */
static bool
renew_key(s3__signer *signer, const char *time)
{
    if (signer->day[0] != '\0' && memcmp(signer->day, time, 8) == 0)
        return true;
    char start[512];
    int n = snprintf(start, sizeof start, "AWS4%s", signer->secret_key);
    uint8_t *key = signer->key;
    signer->day[0] = '\0';
    bool good = n > 0 && (size_t) n < sizeof start && hmac(start, (size_t) n, time, 8, key) &&
                hmac(key, S3__SHA256_BYTES, signer->region, strlen(signer->region), key) &&
                hmac(key, S3__SHA256_BYTES, signer->service, strlen(signer->service), key) &&
                hmac(key, S3__SHA256_BYTES, "aws4_request", 12, key);
    OPENSSL_cleanse(start, sizeof start);
    if (good) {
        memcpy(signer->day, time, 8);
        signer->day[8] = '\0';
    }
    return good;
}

void
s3__format_time(int64_t seconds, char ret_time[S3__TIME_TEXT])
{
    time_t when = (time_t) seconds;
    struct tm parts;
    memset(&parts, 0, sizeof parts);
    (void) gmtime_r(&when, &parts);
    if (strftime(ret_time, S3__TIME_TEXT, "%Y%m%dT%H%M%SZ", &parts) == 0)
        ret_time[0] = '\0';
}

/* ---- signing -------------------------------------------------------------------------------- */

/* A header's value without spaces at its ends, and with single ones inside. */
static void
put_trimmed(esdm__buffer *out, const char *value)
{
    bool pending = false;
    bool any = false;
    for (; *value != '\0'; value++) {
        if (isspace((unsigned char) *value)) {
            pending = any;
            continue;
        }
        if (pending)
            esdm__buffer_put_u8(out, ' ');
        esdm__buffer_put_u8(out, (uint8_t) *value);
        pending = false;
        any = true;
    }
}

static void
put_signed_headers(esdm__buffer *out, const s3__pair *headers, size_t nheaders)
{
    for (size_t i = 0; i < nheaders; i++) {
        if (i > 0)
            put_text(out, ";");
        put_text(out, headers[i].name);
    }
}

static void
put_canonical_request(esdm__buffer *out, const s3__signable *request, const s3__pair *headers,
                      size_t nheaders)
{
    put_text(out, request->method);
    put_text(out, "\n");
    put_text(out, request->path);
    put_text(out, "\n");
    put_text(out, request->query);
    put_text(out, "\n");
    for (size_t i = 0; i < nheaders; i++) {
        put_text(out, headers[i].name);
        put_text(out, ":");
        put_trimmed(out, headers[i].value);
        put_text(out, "\n");
    }
    put_text(out, "\n");
    put_signed_headers(out, headers, nheaders);
    put_text(out, "\n");
    put_text(out, request->payload_hash);
}

/* What the signature is made of; "<day>/<region>/<service>/aws4_request" on the way. */
static bool
sign_text(s3__signer *signer, const s3__signable *request, const char *canonical_hash,
          const char *scope, char ret_signature[S3__SHA256_TEXT])
{
    char text[512];
    uint8_t hash[S3__SHA256_BYTES];
    int n = snprintf(text, sizeof text, "%s\n%s\n%s\n%s", ALGORITHM, request->time, scope,
                     canonical_hash);
    if (n < 0 || (size_t) n >= sizeof text || !renew_key(signer, request->time) ||
        !hmac(signer->key, sizeof signer->key, text, (size_t) n, hash))
        return false;
    put_hex(hash, sizeof hash, ret_signature);
    return true;
}

esdm_status
s3__sign(s3__signer *signer, const s3__signable *request, esdm__buffer *out, esdm_error *err)
{
    s3__pair headers[S3__HEADERS_MAX];
    char hash[S3__SHA256_TEXT];
    char signature[S3__SHA256_TEXT];
    char scope[256];
    size_t nheaders = sort_pairs(request->headers, request->nheaders, headers);
    put_canonical_request(out, request, headers, nheaders);
    if (out->failed)
        return esdm__error_nomem(err, out->bytes, "a request");
    bool good = s3__sha256_hex(out->data, out->bytes, hash);
    out->bytes = 0;
    (void) snprintf(scope, sizeof scope, "%.8s/%s/%s/aws4_request", request->time, signer->region,
                    signer->service);
    if (!good || !sign_text(signer, request, hash, scope, signature))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "s3: requests cannot be signed: OpenSSL has no HMAC-SHA256");
    put_text(out, ALGORITHM " Credential=");
    put_text(out, signer->access_key);
    put_text(out, "/");
    put_text(out, scope);
    put_text(out, ", SignedHeaders=");
    put_signed_headers(out, headers, nheaders);
    put_text(out, ", Signature=");
    esdm__buffer_put(out, signature, sizeof signature);
    return out->failed ? esdm__error_nomem(err, out->bytes, "a request") : ESDM_OK;
}
