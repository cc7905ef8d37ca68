/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A server that is far away: stands before one on loopback and holds each request back, as a long
 * way does. Answers go on as they come, without copies, so that it is no bottleneck itself.
 *
 *     bench_delay PORT MILLISECONDS [EVERY MILLISECONDS]
 *
 * Every so manyth request, as counted since the last line of standard input, is a straggler: it is
 * held back for the second time.
 * Prints the port that it listens on. For each line of standard input it prints "requests N bytes N
 * at_once N" of what there was since the line before: requests, bytes of answers, requests under
 * way at once at most. Ends when standard input does. Bodies of requests are not held back.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t) 1 << 20)

/* One connection; freed by the last of its two threads. */
typedef struct link {
    int client;
    int server;
    atomic_int users;
    atomic_bool waits; /* for the answer of a request */
} link_pair;

static long delay_ns;
static long straggler_ns;
static unsigned long long straggler_every; /* 0: there are none */
static uint16_t upstream;
static atomic_ullong requests;
static atomic_ullong answered; /* bytes */
static atomic_int at_once;
static atomic_int most_at_once;

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static void
leave(link_pair *l)
{
    (void) shutdown(l->client, SHUT_RDWR);
    (void) shutdown(l->server, SHUT_RDWR);
    if (atomic_fetch_sub(&l->users, 1) > 1)
        return;
    if (atomic_load(&l->waits))
        atomic_fetch_sub(&at_once, 1);
    (void) close(l->client);
    (void) close(l->server);
    free(l);
}

static bool
begins_request(const char *text, size_t bytes)
{
    static const char *const methods[] = {"GET ", "HEAD ", "PUT ", "POST ", "DELETE "};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        size_t length = strlen(methods[i]);
        if (bytes >= length && memcmp(text, methods[i], length) == 0)
            return true;
    }
    return false;
}

static void
hold_back(link_pair *l)
{
    unsigned long long number = atomic_fetch_add(&requests, 1) + 1;
    bool straggles = straggler_every > 0 && number % straggler_every == 0;
    long ns = straggles ? straggler_ns : delay_ns;
    const struct timespec way = {ns / 1000000000, ns % 1000000000};
    if (!atomic_exchange(&l->waits, true)) {
        int now = atomic_fetch_add(&at_once, 1) + 1;
        int most = atomic_load(&most_at_once);
        while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now))
            continue;
    }
    (void) nanosleep(&way, NULL);
}

static void *
to_server(void *argument)
{
    link_pair *l = argument;
    static _Thread_local char text[65536];
    ssize_t n;
    while ((n = recv(l->client, text, sizeof text, 0)) > 0) {
        if (begins_request(text, (size_t) n))
            hold_back(l);
        for (ssize_t done = 0, k; done < n; done += k) {
            k = send(l->server, text + done, (size_t) (n - done), MSG_NOSIGNAL);
            if (k <= 0) {
                leave(l);
                return NULL;
            }
        }
    }
    leave(l);
    return NULL;
}

static void *
to_client(void *argument)
{
    link_pair *l = argument;
    int ends[2];
    ssize_t n = 0;
    if (pipe(ends) != 0)
        fail("pipe");
    (void) fcntl(ends[1], F_SETPIPE_SZ, (int) PIECE_BYTES);
    while ((n = splice(l->server, NULL, ends[1], NULL, PIECE_BYTES, SPLICE_F_MOVE)) > 0) {
        if (atomic_exchange(&l->waits, false))
            atomic_fetch_sub(&at_once, 1);
        atomic_fetch_add(&answered, (unsigned long long) n);
        for (ssize_t k; n > 0; n -= k) {
            k = splice(ends[0], NULL, l->client, NULL, (size_t) n, SPLICE_F_MOVE);
            if (k <= 0)
                break;
        }
        if (n > 0)
            break;
    }
    (void) close(ends[0]);
    (void) close(ends[1]);
    leave(l);
    return NULL;
}

static void
start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void) pthread_attr_init(&attributes);
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void) pthread_attr_setstacksize(&attributes, (size_t) 1 << 18);
    if (pthread_create(&thread, &attributes, run, argument) != 0)
        fail("pthread_create");
    (void) pthread_attr_destroy(&attributes);
}

static void
serve(int client)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(upstream),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    link_pair *l = calloc(1, sizeof *l);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (l == NULL || server < 0)
        fail("a connection");
    if (connect(server, (const struct sockaddr *) &address, sizeof address) != 0) {
        (void) close(server);
        (void) close(client);
        free(l);
        return;
    }
    (void) setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void) setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *l = (link_pair){.client = client, .server = server, .users = 2};
    start(to_server, l);
    start(to_client, l);
}

static void *
accept_all(void *argument)
{
    int listener = *(const int *) argument;
    int client;
    while ((client = accept(listener, NULL, NULL)) >= 0)
        serve(client);
    return NULL;
}

int
main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char line[64];
    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: bench_delay PORT MILLISECONDS [EVERY MILLISECONDS]\n");
        return 2;
    }
    upstream = (uint16_t) strtoul(argv[1], NULL, 10);
    delay_ns = (long) (strtod(argv[2], NULL) * 1e6);
    if (argc == 5) {
        straggler_every = strtoull(argv[3], NULL, 10);
        straggler_ns = (long) (strtod(argv[4], NULL) * 1e6);
    }
    (void) signal(SIGPIPE, SIG_IGN); /* of splice() */
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof address) != 0 ||
        listen(listener, 256) != 0 ||
        getsockname(listener, (struct sockaddr *) &address, &length) != 0)
        fail("bench_delay: a port");
    printf("%u\n", ntohs(address.sin_port));
    (void) fflush(stdout);
    start(accept_all, &listener);
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("requests %llu bytes %llu at_once %d\n", atomic_exchange(&requests, 0),
               atomic_exchange(&answered, 0), atomic_exchange(&most_at_once, 0));
        (void) fflush(stdout);
    }
    return 0;
}
