/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <time.h>

#include "answer.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "encode.h"
#include "retry.h"

/* Longest body of what is no ranged GET: a page of a listing has some 500 KB. */
#define ANSWER_MAX_BYTES ((size_t) 16 << 20)
/* The slowest line that an attempt is given time for. */
#define SLOWEST_BYTES_PER_MS 32u
/* An attempt that moves less for half of the time limit has stalled. */
#define STALLED_BYTES_PER_S 512L
#define CONNECT_MS          10000u
#define WIRE_BUFFER_BYTES   (512L << 10)

uint64_t
s3__now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

/* ---- what arrives --------------------------------------------------------------------------- */

/* Printable bytes alone: some values come to stand in messages. */
static void
copy_value(const char *value, size_t bytes, char *to, size_t capacity)
{
    bytes = bytes < capacity - 1 ? bytes : capacity - 1;
    for (size_t i = 0; i < bytes; i++)
        to[i] = value[i] >= ' ' && value[i] <= '~' ? value[i] : ' '; /* NOLINT: within the line */
    to[bytes] = '\0';
}

static bool
is_header(const char *line, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    return bytes > length && strncasecmp(line, name, length) == 0 && line[length] == ':';
}

/* "bytes 10-19/100" */
static void
note_range(s3__transfer *transfer, const char *value)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    char total[24] = "";
    if (sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%23s", &begin, &end, total) < 2)
        return;
    transfer->ranged = true;
    transfer->range_begin = begin;
    if (total[0] >= '0' && total[0] <= '9')
        transfer->object_bytes = strtoull(total, NULL, 10);
}

static void
note_date(s3__transfer *transfer, const char *value)
{
    time_t theirs = curl_getdate(value, NULL);
    if (theirs == (time_t) -1)
        return;
    transfer->dated = true;
    transfer->skew_s = (int64_t) theirs - (int64_t) time(NULL);
}

static void
forget_answer(s3__transfer *transfer)
{
    s3__request *request = transfer->request;
    request->answer.bytes = 0;
    request->etag[0] = '\0';
    request->encrypted = false;
    request->writer[0] = '\0';
    request->code[0] = '\0';
    request->content_bytes = 0;
    transfer->region[0] = '\0';
    transfer->ranged = false;
    transfer->overflow = false;
    transfer->object_bytes = UINT64_MAX;
    transfer->asked_ms = 0;
    transfer->segment = 0;
    transfer->segment_used = 0;
    transfer->received = 0;
}

static size_t
on_header(char *line, size_t size, size_t count, void *user)
{
    s3__transfer *transfer = user;
    s3__request *request = transfer->request;
    size_t bytes = size * count;
    char value[256];
    const char *colon = memchr(line, ':', bytes);
    if (transfer->answered_ms == 0)
        transfer->answered_ms = s3__now_ms();
    if (bytes >= 5 && strncasecmp(line, "HTTP/", 5) == 0)
        forget_answer(transfer); /* what came before was "100 Continue" */
    if (colon == NULL)
        return bytes;
    const char *at = colon + 1;
    const char *end = line + bytes;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    copy_value(at, (size_t) (end - at), value, sizeof value);
    if (is_header(line, bytes, "etag"))
        copy_value(value, strlen(value), request->etag, sizeof request->etag);
    else if (is_header(line, bytes, "x-amz-meta-esdm-writer"))
        copy_value(value, strlen(value), request->writer, sizeof request->writer);
    else if (is_header(line, bytes, "x-amz-server-side-encryption"))
        request->encrypted |= strncmp(value, "aws:kms", 7) == 0;
    else if (is_header(line, bytes, "x-amz-server-side-encryption-customer-algorithm"))
        request->encrypted = true;
    else if (is_header(line, bytes, "x-amz-bucket-region"))
        copy_value(value, strlen(value), transfer->region, sizeof transfer->region);
    else if (is_header(line, bytes, "content-length"))
        request->content_bytes = strtoull(value, NULL, 10);
    else if (is_header(line, bytes, "content-range"))
        note_range(transfer, value);
    else if (is_header(line, bytes, "date"))
        note_date(transfer, value);
    else if (is_header(line, bytes, "retry-after") && value[0] >= '0' && value[0] <= '9')
        transfer->asked_ms = strtoull(value, NULL, 10) * 1000;
    return bytes;
}

/* Data of a range goes to where it belongs; false when there is more than was asked for. */
static bool
scatter(s3__transfer *transfer, const char *data, size_t bytes)
{
    const s3__request *request = transfer->request;
    transfer->received += bytes;
    while (bytes > 0) {
        if (transfer->segment == request->nsegments)
            return false;
        const s3__segment *to = &request->segments[transfer->segment];
        uint64_t room = to->bytes - transfer->segment_used;
        size_t step = bytes < room ? bytes : (size_t) room;
        if (to->buffer != NULL && step > 0)
            memcpy((char *) to->buffer + transfer->segment_used, data, step);
        data += step;
        bytes -= step;
        transfer->segment_used += step;
        if (transfer->segment_used == to->bytes) {
            transfer->segment++;
            transfer->segment_used = 0;
        }
    }
    return true;
}

static bool
wants_range(const s3__request *request, long http_status)
{
    return request->range_bytes > 0 && (http_status == 206 || http_status == 200);
}

static size_t
on_body(char *data, size_t size, size_t count, void *user)
{
    s3__transfer *transfer = user;
    s3__request *request = transfer->request;
    size_t bytes = size * count;
    long http_status = 0;
    (void) curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &http_status);
    if (wants_range(request, http_status)) {
        /* A server that ignores ranges sends the whole object: not into these buffers. */
        if (http_status == 200 &&
            (request->range_from > 0 || request->content_bytes > request->range_bytes))
            transfer->overflow = true;
        else if (!scatter(transfer, data, bytes))
            transfer->overflow = true;
        return transfer->overflow ? 0 : bytes;
    }
    if (bytes > ANSWER_MAX_BYTES - request->answer.bytes) {
        transfer->overflow = true;
        return 0;
    }
    esdm__buffer_put(&request->answer, data, bytes);
    return request->answer.failed ? 0 : bytes;
}

/* ---- what is sent --------------------------------------------------------------------------- */

static size_t
on_send(char *to, size_t size, size_t count, void *user)
{
    s3__transfer *transfer = user;
    const s3__request *request = transfer->request;
    size_t room = size * count;
    size_t left = request->body_bytes - transfer->sent;
    size_t step = left < room ? left : room;
    if (step > 0)
        memcpy(to, (const char *) request->body + transfer->sent, step);
    transfer->sent += step;
    return step;
}

static int
on_rewind(void *user, curl_off_t offset, int origin)
{
    s3__transfer *transfer = user;
    if (origin != SEEK_SET || offset < 0 || (uint64_t) offset > transfer->request->body_bytes)
        return CURL_SEEKFUNC_FAIL;
    transfer->sent = (size_t) offset;
    return CURL_SEEKFUNC_OK;
}

/* The path of the signature and the URL are the same text. Both end with NUL. */
static bool
make_target(const s3__request *request, const s3__options *options, esdm__buffer *path,
            esdm__buffer *query, char *host, size_t host_bytes)
{
    esdm__buffer_put_u8(path, '/');
    if (!options->host_style) {
        s3__encode(path, options->bucket, false);
        if (request->key != NULL)
            esdm__buffer_put_u8(path, '/');
    }
    if (request->key != NULL)
        s3__encode(path, request->key, true);
    esdm__buffer_put_u8(path, 0);
    s3__canonical_query(query, request->query, request->nquery);
    esdm__buffer_put_u8(query, 0);
    int n = snprintf(host, host_bytes, "%s%s%s", options->host_style ? options->bucket : "",
                     options->host_style ? "." : "", options->host);
    return n > 0 && (size_t) n < host_bytes && !path->failed && !query->failed;
}

static bool
add_header(s3__transfer *transfer, const char *name, const char *value)
{
    char *line = NULL;
    if (asprintf(&line, "%s: %s", name, value) < 0)
        return false;
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);
    free(line);
    if (longer == NULL)
        return false;
    transfer->headers = longer;
    return true;
}

/* libcurl's own headers that are not wanted: a name without a value takes one away. */
static bool
drop_header(s3__transfer *transfer, const char *name)
{
    struct curl_slist *longer = curl_slist_append(transfer->headers, name);
    transfer->headers = longer != NULL ? longer : transfer->headers;
    return longer != NULL;
}

static esdm_status
sign(s3__transfer *transfer, const s3__credentials *credentials, s3__signer *signer,
     const char *path, const char *query, const char *host, esdm_error *err)
{
    const s3__request *request = transfer->request;
    s3__pair headers[4 + S3__EXTRA_HEADERS_MAX];
    char now[S3__TIME_TEXT];
    size_t count = 0;
    s3__format_time((int64_t) time(NULL), now);
    headers[count++] = (s3__pair){"host", host};
    headers[count++] = (s3__pair){"x-amz-date", now};
    headers[count++] = (s3__pair){"x-amz-content-sha256", request->payload_hash};
    if (credentials->session_token != NULL)
        headers[count++] = (s3__pair){"x-amz-security-token", credentials->session_token};
    for (size_t i = 0; i < request->nheaders; i++)
        headers[count++] = request->headers[i];

    esdm__buffer authorization;
    esdm__buffer_init(&authorization);
    const s3__signable what = {.method = request->method,
                               .path = path,
                               .query = query,
                               .headers = headers,
                               .nheaders = count,
                               .payload_hash = request->payload_hash,
                               .time = now};
    esdm_status status = s3__sign(signer, &what, &authorization, err);
    bool good = status == ESDM_OK &&
                add_header(transfer, "Authorization", (const char *) authorization.data);
    esdm__buffer_clear(&authorization);
    for (size_t i = 0; i < count && good; i++)
        good = add_header(transfer, headers[i].name, headers[i].value);
    if (good && request->range_bytes > 0) {
        char range[64];
        (void) snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, request->range_from,
                        request->range_from + request->range_bytes - 1);
        good = add_header(transfer, "range", range);
    }
    good = good && drop_header(transfer, "Expect:") && drop_header(transfer, "Content-Type:");
    return good || status != ESDM_OK ? status : esdm__error_nomem(err, 1024, "a request");
}

/* ---- the handle ----------------------------------------------------------------------------- */

static void
set_method(CURL *easy, const s3__request *request)
{
    if (strcmp(request->method, "HEAD") == 0) {
        (void) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (strcmp(request->method, "PUT") == 0) {
        (void) curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t) request->body_bytes);
    } else if (strcmp(request->method, "POST") == 0) {
        (void) curl_easy_setopt(easy, CURLOPT_POST, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                (curl_off_t) request->body_bytes);
    } else if (strcmp(request->method, "GET") != 0) {
        (void) curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

static void
set_limits(CURL *easy, const s3__request *request, const s3__options *options)
{
    uint64_t limit = request->limit_ms > 0 ? request->limit_ms : options->timeout_ms;
    uint64_t moved = request->body_bytes + request->range_bytes;
    uint64_t most = limit + request->patience_ms + moved / SLOWEST_BYTES_PER_MS;
    uint64_t connect = limit / 2 < CONNECT_MS ? limit / 2 : CONNECT_MS;
    uint64_t stalled_s = limit / 2000 < 30 ? limit / 2000 : 30;
    (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                            (long) (connect > 200 ? connect : 200));
    (void) curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) (most < INT32_MAX ? most : INT32_MAX));
    if (request->patience_ms == 0) {
        (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, STALLED_BYTES_PER_S);
        (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                                (long) (stalled_s > 0 ? stalled_s : 1));
    }
}

static curl_socket_t
open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void) user;
    (void) purpose;
    return esdm__descriptor_keep(
        socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
}

static int
close_socket(void *user, curl_socket_t fd)
{
    (void) user;
    return esdm__descriptor_close(fd);
}

static void
set_options(s3__transfer *transfer, const s3__options *options)
{
    CURL *easy = transfer->easy;
    (void) curl_easy_setopt(easy, CURLOPT_URL, transfer->url);
    (void) curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void) curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, WIRE_BUFFER_BYTES);
    (void) curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, WIRE_BUFFER_BYTES);
    (void) curl_easy_setopt(easy, CURLOPT_USERAGENT, "esdm");
    (void) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    (void) curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* of a proxy */
    (void) curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->why);
    (void) curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *) transfer);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    (void) curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    (void) curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    (void) curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
    (void) curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
    if (getauxval(AT_SECURE) != 0) /* no proxy of the environment */
        (void) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (options->ca_file != NULL)
        (void) curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    set_method(easy, transfer->request);
    set_limits(easy, transfer->request, options);
}

esdm_status
s3__transfer_prepare(s3__transfer *transfer, const s3__options *options,
                     const s3__credentials *credentials, s3__signer *signer, CURL *easy,
                     esdm_error *err)
{
    esdm__buffer path;
    esdm__buffer query;
    char host[400];
    esdm__buffer_init(&path);
    esdm__buffer_init(&query);
    s3__request *request = transfer->request;
    request->attempts++;
    request->http_status = 0;
    transfer->easy = easy;
    transfer->sent = 0;
    transfer->why[0] = '\0';
    transfer->begun_ms = s3__now_ms();
    transfer->answered_ms = 0;
    forget_answer(transfer);
    bool good = make_target(request, options, &path, &query, host, sizeof host) &&
                asprintf(&transfer->url, "%s%s%s%s%s", options->tls ? "https://" : "http://", host,
                         (const char *) path.data, query.bytes > 1 ? "?" : "",
                         (const char *) query.data) >= 0;
    esdm_status status = good ? sign(transfer, credentials, signer, (const char *) path.data,
                                     (const char *) query.data, host, err)
                              : esdm__error_nomem(err, 1024, "a request");
    if (!good)
        transfer->url = NULL;
    if (status == ESDM_OK)
        set_options(transfer, options);
    esdm__buffer_clear(&path);
    esdm__buffer_clear(&query);
    return status;
}

void
s3__transfer_end_attempt(s3__transfer *transfer)
{
    curl_slist_free_all(transfer->headers);
    free(transfer->url);
    transfer->headers = NULL;
    transfer->url = NULL;
    transfer->easy = NULL;
}

/* ---- judging -------------------------------------------------------------------------------- */

static s3__failure
failure_of(const s3__transfer *transfer)
{
    const s3__request *request = transfer->request;
    return (s3__failure){.doing = request->doing,
                         .key = request->key,
                         .http_status = request->http_status,
                         .code = "",
                         .message = "",
                         .region = transfer->region,
                         .skew_s = transfer->skew_s,
                         .attempts = request->attempts};
}

/* A ranged GET that the server answered: did it send what was asked for? */
static esdm_status
judge_range(const s3__transfer *transfer, const s3__options *options, esdm_error *err)
{
    const s3__request *request = transfer->request;
    if (transfer->overflow || !wants_range(request, request->http_status) ||
        (transfer->ranged && transfer->range_begin != request->range_from))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "s3: the server at %s does not answer a range of '%.200s' with that "
                               "range; ESDM cannot use it",
                               options->endpoint, request->key);
    if (transfer->received == request->range_bytes)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "s3: 's3://%s/%.200s' at %s is shorter than the bytes asked for: "
                           "%" PRIu64 " of %" PRIu64 " at %" PRIu64,
                           options->bucket, request->key, options->endpoint, transfer->received,
                           request->range_bytes, request->range_from);
}

/* @return whether another attempt may help */
static bool
judge_transport(const s3__transfer *transfer, const s3__options *options,
                const s3__credentials *credentials, CURLcode code)
{
    s3__request *request = transfer->request;
    const s3__failure failure = failure_of(transfer);
    if (request->answer.failed) {
        request->status = esdm__error_nomem(&request->error, request->answer.bytes, "an answer");
        return false;
    }
    if (transfer->overflow && request->range_bytes > 0) {
        request->status = judge_range(transfer, options, &request->error);
        return false;
    }
    const char *why = transfer->overflow         ? "the answer is too long"
                      : transfer->why[0] != '\0' ? transfer->why
                                                 : curl_easy_strerror(code);
    request->status =
        s3__describe_transport(options, credentials, &failure, (int) code, why, &request->error);
    return s3__retry_transport((int) code);
}

bool
s3__transfer_judge(s3__transfer *transfer, const s3__options *options,
                   const s3__credentials *credentials, CURLcode code)
{
    s3__request *request = transfer->request;
    (void) curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &request->http_status);
    /* Servers refuse a body while it is being sent: then the answer counts, not the broken pipe. */
    bool refused = request->http_status >= 300 && (code == CURLE_SEND_ERROR || code == CURLE_OK);
    if (code != CURLE_OK && !refused)
        return judge_transport(transfer, options, credentials, code);
    if (request->range_bytes > 0 && !refused) { /* 203 and 204 are no such answer, either */
        request->status = judge_range(transfer, options, &request->error);
        return false;
    }
    s3__error_document document = {0};
    if (request->answer.bytes > 0 && (refused || strcmp(request->method, "POST") == 0))
        s3__error_read(credentials, request->answer.data, request->answer.bytes, &document);
    /* Finishing a long upload may begin with 200 and end with an error. */
    if (!refused && document.code[0] == '\0') {
        request->status = ESDM_OK;
        return false;
    }
    s3__failure failure = failure_of(transfer);
    failure.code = document.code;
    failure.message = document.message;
    if (document.region[0] != '\0')
        failure.region = document.region;
    (void) snprintf(request->code, sizeof request->code, "%s", document.code);
    request->status = s3__describe(options, credentials, &failure, &request->error);
    return s3__retry_answer(request->http_status, document.code);
}
