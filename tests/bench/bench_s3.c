/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a bare program gets from an S3 server: libcurl's multi interface, requests one after the
 * other on a number of connections, nothing else.
 *
 *     bench_s3 put|get URL COUNT BYTES CONNECTIONS
 *
 * Objects are URL0, URL1, …; credentials come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY.
 * Prints "seconds N".
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct job {
    CURL *curl;
    char *body; /* of this object */
    size_t at;
    size_t got;
    char url[1024];
} job;

static bool putting;
static size_t bytes;
static char *bodies; /* of all objects, as a program has that stores its data */
static const char *url;
static struct curl_slist *headers;

static void
fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_s3: %s: %s\n", what, why);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static size_t
send_body(char *to, size_t size, size_t n, void *user)
{
    job *j = user;
    size_t room = size * n;
    size_t step = bytes - j->at < room ? bytes - j->at : room;
    memcpy(to, j->body + j->at, step);
    j->at += step;
    return step;
}

static size_t
take_body(char *from, size_t size, size_t n, void *user)
{
    job *j = user;
    size_t left = bytes - j->got;
    memcpy(j->body + j->got, from, size * n < left ? size * n : left);
    j->got += size * n;
    return size * n;
}

static void
start(CURLM *multi, job *j, size_t i)
{
    (void) snprintf(j->url, sizeof j->url, "%s%zu", url, i);
    j->body = bodies + i * bytes;
    j->at = 0;
    j->got = 0;
    curl_easy_setopt(j->curl, CURLOPT_URL, j->url);
    curl_multi_add_handle(multi, j->curl);
}

static void
prepare(job *j)
{
    char user[512];
    const char *key = getenv("AWS_ACCESS_KEY_ID");
    const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
    (void) snprintf(user, sizeof user, "%s:%s", key ? key : "", secret ? secret : "");
    j->curl = curl_easy_init();
    if (j->curl == NULL)
        fail("libcurl", "no memory");
    curl_easy_setopt(j->curl, CURLOPT_PRIVATE, j);
    curl_easy_setopt(j->curl, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
    curl_easy_setopt(j->curl, CURLOPT_USERPWD, user);
    curl_easy_setopt(j->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(j->curl, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(j->curl, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
    curl_easy_setopt(j->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(j->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(j->curl, CURLOPT_WRITEDATA, j);
    if (!putting)
        return;
    curl_easy_setopt(j->curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(j->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t) bytes);
    curl_easy_setopt(j->curl, CURLOPT_READFUNCTION, send_body);
    curl_easy_setopt(j->curl, CURLOPT_READDATA, j);
}

static void
check(const CURLMsg *message, const job *j)
{
    long status = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    if (message->data.result != CURLE_OK)
        fail(j->url, curl_easy_strerror(message->data.result));
    if (status != 200 || (!putting && j->got != bytes)) {
        char text[64];
        (void) snprintf(text, sizeof text, "status %ld, %zu bytes", status, j->got);
        fail(j->url, text);
    }
}

static void
run(size_t count, job *jobs, size_t njobs)
{
    CURLM *multi = curl_multi_init();
    size_t started = 0;
    size_t done = 0;
    while (started < njobs && started < count)
        start(multi, &jobs[started], started), started++;
    while (done < count) {
        int running = 0;
        int left = 0;
        curl_multi_perform(multi, &running);
        for (CURLMsg *m = curl_multi_info_read(multi, &left); m != NULL;
             m = curl_multi_info_read(multi, &left)) {
            job *j = NULL;
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &j);
            check(m, j);
            curl_multi_remove_handle(multi, j->curl);
            done++;
            if (started < count)
                start(multi, j, started++);
        }
        if (done < count)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    curl_multi_cleanup(multi);
}

int
main(int argc, char **argv)
{
    if (argc != 6)
        fail("usage", "put|get URL COUNT BYTES CONNECTIONS");
    putting = strcmp(argv[1], "put") == 0;
    url = argv[2];
    size_t count = strtoull(argv[3], NULL, 10);
    bytes = strtoull(argv[4], NULL, 10);
    size_t njobs = strtoull(argv[5], NULL, 10);
    job *jobs = calloc(njobs, sizeof *jobs);
    bodies = malloc(count * bytes + 1);
    if (jobs == NULL || bodies == NULL)
        fail("main", "no memory");
    for (size_t i = 0; i < count * bytes; i++)
        bodies[i] = (char) (i * 2654435761u >> 13);
    headers = curl_slist_append(NULL, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    headers = curl_slist_append(headers, "Expect:");
    for (size_t i = 0; i < njobs; i++)
        prepare(&jobs[i]);
    double t = now();
    run(count, jobs, njobs);
    printf("seconds %.6f\n", now() - t);
    return 0;
}
