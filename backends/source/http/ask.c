/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file One question to a web server, attempt after attempt. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/retry.h"
#include "http.h"

#define ATTEMPTS_MAX 6u
#define CONNECT_MS   UINT64_C(10000)
/* Slower than that for so long, and it counts as hanging. */
#define LEAST_BYTES_PER_S 1L
#define HANGING_S         20L

uint64_t
http__now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

/* ---- connections ---------------------------------------------------------------------------- */

static http__line *
take_line(http__source *source)
{
    http__line *line = NULL;
    (void) pthread_mutex_lock(&source->lock);
    if (source->nidle > 0)
        line = source->idle[--source->nidle];
    (void) pthread_mutex_unlock(&source->lock);
    if (line != NULL)
        return line;
    esdm__descriptors_moving(true);
    line = http__line_new();
    esdm__descriptors_moving(false);
    return line;
}

static void
give_line(http__source *source, http__line *line)
{
    (void) pthread_mutex_lock(&source->lock);
    bool keep = source->nidle < HTTP__IDLE_MAX;
    if (keep)
        source->idle[source->nidle++] = line;
    (void) pthread_mutex_unlock(&source->lock);
    if (keep)
        return;
    esdm__descriptors_moving(true);
    http__line_free(line);
    esdm__descriptors_moving(false);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The value of a header of that name; NULL: it is another one. */
static const char *
value_of(const char *line, size_t bytes, const char *name, size_t *ret_bytes)
{
    size_t n = strlen(name);
    if (bytes <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    const char *at = line + n + 1, *end = line + bytes;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    *ret_bytes = (size_t) (end - at);
    return at;
}

static void
take_text(const char *line, size_t bytes, const char *name, char *to, size_t room)
{
    size_t n = 0;
    const char *value = value_of(line, bytes, name, &n);
    if (value == NULL || n >= room)
        return;
    memcpy(to, value, n);
    to[n] = '\0';
}

static void
take_date(const char *line, size_t bytes, const char *name, int64_t *to)
{
    char text[80] = "";
    take_text(line, bytes, name, text, sizeof text);
    if (text[0] != '\0')
        *to = (int64_t) curl_getdate(text, NULL);
}

static bool
take_number(const char *text, uint64_t *ret)
{
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    *ret = strtoull(text, &end, 10);
    return end != text;
}

/* "bytes 0-99/1234" */
static void
take_range(http__request *r, const char *text)
{
    const char *slash = strchr(text, '/');
    uint64_t begin = 0;
    if (strncasecmp(text, "bytes ", 6) != 0 || slash == NULL || !take_number(text + 6, &begin))
        return;
    r->begin = begin;
    r->has_range = true;
    r->length = UINT64_MAX;
    (void) take_number(slash + 1, &r->length);
}

static size_t
take_header(char *line, size_t size, size_t count, void *user)
{
    http__request *r = user;
    size_t bytes = size * count;
    char text[200] = "";
    if (r->first_ms == 0)
        r->first_ms = http__now_ms();
    if (bytes >= 5 && strncmp(line, "HTTP/", 5) == 0) { /* of this answer, not of one before it */
        r->etag[0] = r->location[0] = '\0';
        r->modified_s = r->date_s = -1;
        r->length = UINT64_MAX;
        r->begin = 0;
        r->has_range = r->encoded = false;
        return bytes;
    }
    take_text(line, bytes, "etag", r->etag, sizeof r->etag);
    take_text(line, bytes, "location", r->location, sizeof r->location);
    take_date(line, bytes, "last-modified", &r->modified_s);
    take_date(line, bytes, "date", &r->date_s);
    take_text(line, bytes, "content-encoding", text, sizeof text);
    r->encoded |= text[0] != '\0' && strcasecmp(text, "identity") != 0;
    text[0] = '\0';
    take_text(line, bytes, "content-length", text, sizeof text);
    if (!r->has_range)
        (void) take_number(text, &r->length);
    text[0] = '\0';
    take_text(line, bytes, "content-range", text, sizeof text);
    take_range(r, text);
    text[0] = '\0';
    take_text(line, bytes, "retry-after", text, sizeof text);
    uint64_t seconds = 0;
    if (take_number(text, &seconds) && seconds < 3600)
        r->asked_ms = seconds * 1000;
    return bytes;
}

/* A server without ranges sends all of it: what was asked for is taken out. */
static size_t
take_of_whole(const char *data, size_t bytes, http__request *r)
{
    if (r->length > HTTP__WHOLE_BYTES)
        return 0;
    size_t skipped = r->position - r->passed < bytes ? (size_t) (r->position - r->passed) : bytes;
    size_t left = r->bytes - r->received;
    size_t taken = bytes - skipped < left ? bytes - skipped : left;
    r->passed += skipped;
    memcpy(r->buffer + r->received, data + skipped, taken);
    r->received += taken;
    return bytes; /* to the end: the connection can be used again */
}

/* Contents of an answer that has the wanted ones; of others nothing is kept. */
static size_t
take_contents(char *data, size_t size, size_t count, void *user)
{
    http__request *r = user;
    size_t bytes = size * count;
    long status = r->status;
    if (status != 200 && status != 206)
        return r->received += bytes, r->received < 65536 ? bytes : 0;
    if (r->ranged && status == 200)
        return take_of_whole(data, bytes, r);
    if (bytes > r->bytes - r->received) {
        r->too_much = true;
        return 0;
    }
    if (r->buffer != NULL)
        memcpy(r->buffer + r->received, data, bytes);
    else
        esdm__buffer_put(&r->body, data, bytes);
    r->received += bytes;
    return r->body.failed ? 0 : bytes;
}

static size_t
take_body(char *data, size_t size, size_t count, void *user)
{
    http__transfer *t = user;
    (void) curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->request->status);
    return take_contents(data, size, count, t->request);
}

/* ---- one attempt ---------------------------------------------------------------------------- */

static bool
is_strong(const char *etag)
{
    return etag[0] == '"';
}

/* What makes the server say that the object is another one. */
static struct curl_slist *
conditions(const http__request *r)
{
    char line[400];
    char date[40];
    if (r->was == NULL)
        return NULL;
    if (is_strong(r->was->identity)) {
        (void) snprintf(line, sizeof line, "If-Match: %s", r->was->identity);
        return curl_slist_append(NULL, line);
    }
    if (r->was->modified_ns == INT64_MIN)
        return NULL;
    struct tm tm;
    time_t when = (time_t) (r->was->modified_ns / 1000000000);
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (gmtime_r(&when, &tm) == NULL)
        return NULL;
    (void) snprintf(date, sizeof date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
                    tm.tm_mday % 100, months[tm.tm_mon], (tm.tm_year + 1900) % 10000,
                    tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
    (void) snprintf(line, sizeof line, "If-Unmodified-Since: %s", date);
    return curl_slist_append(NULL, line);
}

/* SHA-256 of nothing: there is a digest of the contents in each request of S3. */
#define NO_CONTENTS                                                                                \
    "X-Amz-Content-Sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* @param headers are added to, and returned. */
static struct curl_slist *
sign(const http__request *r, CURL *easy, struct curl_slist *headers)
{
    if (r->place == NULL)
        return headers;
    const s3__credentials *keys = &r->place->keys;
    char *url = http__signed_url(r->url);
    if (url != NULL)
        (void) curl_easy_setopt(easy, CURLOPT_URL, url); /* which it copies */
    free(url);
    headers = curl_slist_append(headers, NO_CONTENTS);
    /* A libcurl that does not sign would send name and key as they are (HTTP Basic): none is given
     * to it, and the server refuses. */
    if (curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, r->place->sigv4) != CURLE_OK)
        return headers;
    (void) curl_easy_setopt(easy, CURLOPT_USERNAME, keys->access_key);
    (void) curl_easy_setopt(easy, CURLOPT_PASSWORD, keys->secret_key);
    if (keys->session_token == NULL)
        return headers;
    char *line = NULL;
    if (asprintf(&line, "X-Amz-Security-Token: %s", keys->session_token) < 0)
        return headers; /* the server refuses it */
    headers = curl_slist_append(headers, line);
    s3__forget(line);
    return headers;
}

void
http__transfer_prepare(const http__source *source, http__transfer *t, uint64_t left_ms)
{
    http__request *r = t->request;
    CURL *easy = t->easy;
    char range[64];
    r->received = 0;
    r->passed = 0;
    r->status = 0;
    r->too_much = false;
    r->asked_ms = 0;
    r->first_ms = 0;
    r->why[0] = '\0';
    esdm__buffer_clear(&r->body);
    esdm__buffer_init(&r->body);
    uint64_t connect_ms = left_ms < CONNECT_MS ? left_ms : CONNECT_MS;
    curl_easy_reset(easy);
    (void) curl_easy_setopt(easy, CURLOPT_URL, r->url);
    t->headers = sign(r, easy, conditions(r));
    (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void) curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* the site allows this place */
    (void) curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (source->ca_file != NULL)
        (void) curl_easy_setopt(easy, CURLOPT_CAINFO, source->ca_file);
    (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_USERAGENT, "esdm");
    (void) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
    (void) curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, r->why);
    (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) connect_ms);
    (void) curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) left_ms);
    (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, LEAST_BYTES_PER_S);
    (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, HANGING_S);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERDATA, r);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    (void) curl_easy_setopt(easy, CURLOPT_NOBODY, r->head ? 1L : 0L);
    (void) snprintf(range, sizeof range, "%llu-%llu", (unsigned long long) r->position,
                    (unsigned long long) (r->position + r->bytes - 1));
    if (r->ranged)
        (void) curl_easy_setopt(easy, CURLOPT_RANGE, range);
}

void
http__transfer_end(http__transfer *t)
{
    (void) curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->request->status);
    (void) curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, NULL);
    (void) curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

/* ---- all attempts --------------------------------------------------------------------------- */

static uint64_t
next_random(http__source *source)
{
    (void) pthread_mutex_lock(&source->lock);
    source->random = source->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t random = source->random >> 33;
    (void) pthread_mutex_unlock(&source->lock);
    return random;
}

/* Failures of the way there; those of names, certificates and memory stay. */
static bool
may_pass(CURLcode code)
{
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_PARTIAL_FILE ||
           code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
           code == CURLE_SSL_CONNECT_ERROR || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
}

static void
pause_ms(uint64_t ms)
{
    struct timespec wait = {.tv_sec = (time_t) (ms / 1000),
                            .tv_nsec = (long) (ms % 1000) * 1000000L};
    (void) nanosleep(&wait, NULL);
}

/* What to do about a certificate; "" where it is something else. */
static void
advise(const http__source *source, CURLcode code, char *text, size_t bytes)
{
    text[0] = '\0';
    if (code == CURLE_SSL_CACERT_BADFILE)
        (void) snprintf(
            text, bytes,
            "; correct \"references.ca_file\" of the site: there are no certificates in "
            "'%.200s' that can be read",
            source->ca_file != NULL ? source->ca_file : "");
    else if (code == CURLE_PEER_FAILED_VERIFICATION && source->ca_file == NULL)
        (void) snprintf(text, bytes,
                        "; if the server has a certificate of your own authority, name that "
                        "authority's file as \"references.ca_file\" of the site");
    else if (code == CURLE_PEER_FAILED_VERIFICATION)
        (void) snprintf(text, bytes,
                        "; the certificate must be for that name, valid, and of an authority in "
                        "\"references.ca_file\" of the site, '%.200s'",
                        source->ca_file);
}

static esdm_status
failed(const http__source *source, const http__request *r, CURLcode code, unsigned attempts,
       esdm_error *err)
{
    const char *why = r->why[0] != '\0' ? r->why : curl_easy_strerror(code);
    char advice[400];
    if (r->body.failed)
        return esdm__error_nomem(err, r->bytes, "an object");
    advise(source, code, advice, sizeof advice);
    return esdm__error_set(err, code == CURLE_OPERATION_TIMEDOUT ? ESDM_ETIMEDOUT : ESDM_EIO,
                           "'%s': no answer in %u attempt%s: %s%s", r->url, attempts,
                           attempts == 1 ? "" : "s", why, advice);
}

esdm_status
http__ask(http__source *source, http__request *r, esdm_error *err)
{
    uint64_t end_ms = http__now_ms() + source->timeout_ms;
    r->place = http__place_of(source, r->url);
    if (r->place != NULL && r->place->problem.status != ESDM_OK)
        return esdm__error_set(err, r->place->problem.status, "'%s': %.300s", r->url,
                               r->place->problem.message);
    http__line *line = take_line(source);
    if (line == NULL)
        return esdm__error_nomem(err, 4096, "a request");
    for (unsigned n = 1;; n++) {
        uint64_t now = http__now_ms();
        CURLcode code = http__perform(source, line, r, n > 1, now < end_ms ? end_ms - now : 1);
        bool cut = code == CURLE_WRITE_ERROR && !r->body.failed; /* by us: enough is known */
        bool answered = code == CURLE_OK || cut;
        bool again = answered ? esdm__retry_http(r->status) : may_pass(code);
        uint64_t wait = esdm__retry_wait_ms(n, r->asked_ms, next_random(source));
        if (again && n < ATTEMPTS_MAX && http__now_ms() + wait < end_ms) {
            pause_ms(wait);
            continue;
        }
        give_line(source, line);
        return answered ? ESDM_OK : failed(source, r, code, n, err);
    }
}

/* ---- what it means -------------------------------------------------------------------------- */

esdm_status
http__refuse(const http__request *r, esdm_error *err)
{
    switch (r->status) {
    case 404:
    case 410:
        return esdm__error_set(err, ESDM_ENOENT, "'%s' is not there (status %ld)", r->url,
                               r->status);
    case 401:
    case 403:
        if (r->place != NULL)
            return esdm__error_set(err, ESDM_EACCES,
                                   "'%s': the server does not allow it to the keys of %s (status "
                                   "%ld; the region and this machine's clock count, too)",
                                   r->url, r->place->keys.source, r->status);
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s': the server does not allow it (status %ld; a bucket on S3 "
                               "that wants a signature is named in \"references.s3\")",
                               r->url, r->status);
    case 412:
    case 416:
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "'%s' was changed (status %ld); refer to it again (esdm-ref)",
                               r->url, r->status);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' lies elsewhere now: refer to '%s', if the site allows that",
                               r->url, r->location);
    default:
        return esdm__error_set(err, ESDM_EIO, "'%s': the server answers with status %ld", r->url,
                               r->status);
    }
}

static int64_t
modified_ns(const http__request *r)
{
    return r->modified_s > 0 && r->modified_s < INT64_MAX / 1000000000 ? r->modified_s * 1000000000
                                                                       : INT64_MIN;
}

esdm_status
http__compare(const http__request *r, esdm_error *err)
{
    const esdm_source_state *was = r->was;
    if (r->encoded)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s': the server compresses it on its way, so that bytes cannot "
                               "be found",
                               r->url);
    if (was == NULL)
        return ESDM_OK;
    if (r->length == was->bytes &&
        (was->identity[0] == '\0' || strcmp(r->etag, was->identity) == 0) &&
        (was->modified_ns == INT64_MIN || modified_ns(r) == was->modified_ns))
        return ESDM_OK;
    return esdm__error_set(
        err, ESDM_ECONFLICT, "'%s' was changed: its %s; refer to it again (esdm-ref)", r->url,
        r->length != was->bytes               ? "size is another one"
        : strcmp(r->etag, was->identity) != 0 ? "ETag is another one"
                                              : "time of modification is another one");
}

esdm_status
http__check_part(const http__request *r, esdm_error *err)
{
    if (r->status != 206 && r->status != 200)
        return http__refuse(r, err);
    esdm_status status = http__compare(r, err);
    if (status != ESDM_OK)
        return status;
    if (r->status == 200 && r->length > HTTP__WHOLE_BYTES)
        return esdm__error_set(
            err, ESDM_ENOTSUP,
            "'%s': the server has no ranges (it answers with all of %llu bytes): "
            "parts of so large an object cannot be read there",
            r->url, (unsigned long long) r->length);
    if (r->status == 206 && (!r->has_range || r->begin != r->position))
        return esdm__error_set(err, ESDM_EIO, "'%s': the server answers with another range",
                               r->url);
    if (r->received != r->bytes || r->too_much)
        return esdm__error_set(err, ESDM_EIO, "'%s': the server sent %s bytes than were asked for",
                               r->url, r->too_much ? "more" : "fewer");
    return ESDM_OK;
}

esdm_status
http__describe(const http__request *r, esdm_source_state *ret, esdm_error *err)
{
    if (r->length == UINT64_MAX || r->length > INT64_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP, "'%s': the server does not tell its size",
                               r->url);
    if (r->etag[0] == '\0' && modified_ns(r) == INT64_MIN)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s': the server tells neither an ETag nor a time of modification: "
                               "a change could not be found out",
                               r->url);
    /* Its clock counts seconds: what is written within the same one has the same time. */
    if (!is_strong(r->etag) && (r->date_s < 0 || r->modified_s > r->date_s - 2))
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "'%s' was written this moment, and its server has no strong ETag: "
                               "a further change could not be found out; try again in 2 s",
                               r->url);
    ret->bytes = r->length;
    ret->modified_ns = modified_ns(r);
    (void) snprintf(ret->identity, sizeof ret->identity, "%s", r->etag);
    return ESDM_OK;
}
