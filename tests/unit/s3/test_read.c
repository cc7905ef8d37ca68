/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What is asked for by one request; a server here notes the ranges, and has nothing. */
#include "s3.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB  UINT64_C(1048576)
#define PACK "00112233445566778899aabbccddeeff-0123456789abcdef-0"

typedef struct server {
    int listener;
    unsigned port;
    pthread_t thread;
    size_t tunnels; /* asked for, as of a proxy */
    size_t requests;
    uint64_t from[8];
    uint64_t bytes[8];
} server;

static void
note_request(server *s, int connection)
{
    static const char nothing[] =
        "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static const char tunnel[] = "HTTP/1.1 200 X\r\nx-amz-meta-esdm-writer: proxy\r\n\r\n";
    char text[4096] = "";
    size_t used = 0;
    ssize_t n = 1;
    while (strstr(text, "\r\n\r\n") == NULL && n > 0 && used + 1 < sizeof text) {
        n = read(connection, text + used, sizeof text - 1 - used);
        used += n > 0 ? (size_t) n : 0;
        text[used] = '\0';
    }
    const char *range = strstr(text, "range: bytes=");
    uint64_t first = 0;
    uint64_t last = 0;
    if (range != NULL && s->requests < 8 &&
        sscanf(range, "range: bytes=%" SCNu64 "-%" SCNu64, &first, &last) == 2) {
        s->from[s->requests] = first;
        s->bytes[s->requests++] = last + 1 - first;
    }
    const char *answer = strncmp(text, "CONNECT ", 8) == 0 ? tunnel : nothing;
    s->tunnels += answer == tunnel ? 1 : 0;
    (void) !write(connection, answer, strlen(answer));
}

static void *
serve(void *user)
{
    server *s = user;
    int connection = -1;
    while ((connection = accept(s->listener, NULL, NULL)) >= 0) {
        note_request(s, connection);
        (void) close(connection);
    }
    return NULL;
}

static void
start(server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    *s = (server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(s->listener, (struct sockaddr *) &at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *) &at, &bytes), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void
stop(server *s)
{
    (void) shutdown(s->listener, SHUT_RDWR);
    (void) pthread_join(s->thread, NULL);
    (void) close(s->listener);
}

/* The ranges that are asked for; in the order of their begins, as one connection sends them. */
static void
read_from(server *s, const esdm_range *ranges, size_t nranges)
{
    char json[200];
    esdm_error error;
    s3__target *target = NULL;
    start(s);
    (void) snprintf(json, sizeof json,
                    "{\"bucket\": \"abc\", \"endpoint\": \"http://127.0.0.1:%u\", \"connections\": "
                    "1, \"access_key\": \"AK\", \"secret_key\": \"SK\"}",
                    s->port);
    const esdm_plugin_config config = {
        .name = "cloud", .json = json, .path = "targets[0]", .site_id = "", .memory_bytes = MIB};
    assert_int_equal(s3__target_new(&config, &target, &error), ESDM_OK);
    assert_int_equal(s3__pack_read(target, PACK, ranges, nranges, &error), ESDM_ENOENT);
    s3__close(target);
    stop(s);
}

/* One that ends short of a request's length, a gap, and a long one. */
static void
test_read__a_gap_makes_no_request_longer(void **state)
{
    (void) state;
    server s;
    char *memory = malloc(20 * MIB);
    const esdm_range ranges[] = {
        {.position = MIB, .bytes = 8 * MIB - 1024, .buffer = memory},
        {.position = 9 * MIB + 100 * 1024, .bytes = 10 * MIB, .buffer = memory + 8 * MIB}};
    assert_non_null(memory);
    read_from(&s, ranges, 2);
    assert_true(s.requests >= 1);
    for (size_t i = 0; i < s.requests; i++)
        assert_true(s.bytes[i] <= 10 * MIB);
    free(memory);
}

static void
test_read__neighbours_are_one_request(void **state)
{
    (void) state;
    server s;
    char memory[3000];
    const esdm_range ranges[] = {{.position = 5000, .bytes = 1000, .buffer = memory},
                                 {.position = 6000, .bytes = 1000, .buffer = memory + 1000},
                                 {.position = 50000, .bytes = 1000, .buffer = memory + 2000}};
    read_from(&s, ranges, 3);
    assert_int_equal(s.requests, 1);
    assert_int_equal(s.from[0], 5000);
    assert_int_equal(s.bytes[0], 46000);
}

/* What a proxy says of itself is no answer, nor the first byte of one. */
static void
test_read__a_proxy_is_not_the_server(void **state)
{
    (void) state;
    server s;
    char proxy[64];
    char memory[10];
    esdm_error error;
    s3__target *target = NULL;
    s3__segment segment = {.buffer = memory, .bytes = sizeof memory};
    s3__request request = {.doing = "read",
                           .method = "GET",
                           .key = "a",
                           .segments = &segment,
                           .nsegments = 1,
                           .range_bytes = sizeof memory,
                           .limit_ms = 300};
    const esdm_plugin_config config = {
        .name = "cloud",
        .json = "{\"bucket\": \"abc\", \"endpoint\": \"https://127.0.0.1:1\", \"access_key\": "
                "\"AK\", \"secret_key\": \"SK\"}",
        .path = "targets[0]",
        .site_id = "",
        .memory_bytes = MIB};
    start(&s);
    (void) snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", s.port);
    (void) unsetenv("no_proxy");
    (void) unsetenv("NO_PROXY");
    assert_int_equal(setenv("https_proxy", proxy, 1), 0);
    assert_int_equal(s3__target_new(&config, &target, &error), ESDM_OK);
    assert_int_not_equal(s3__perform(s3__target_client(target), &request, &error), ESDM_OK);
    s3__request_clear(&request);
    s3__close(target);
    stop(&s);
    (void) unsetenv("https_proxy");
    assert_true(s.tunnels > 0);
    assert_string_equal(request.writer, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read__a_gap_makes_no_request_longer),
        cmocka_unit_test(test_read__neighbours_are_one_request),
        cmocka_unit_test(test_read__a_proxy_is_not_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
