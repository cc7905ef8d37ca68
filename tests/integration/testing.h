/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_TESTING_H
#define TESTS_INTEGRATION_TESTING_H

/**
 * @file
 * What the C tests over the public API share: a site of its own, and checks.
 * Checks end the process, so that they can be used in any thread and in children.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esdm/esdm.h"

/* Filled by every call that is wrapped in ok() or fails(). */
static _Thread_local esdm_error test_error;
#define ERR (&test_error)

#define die(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            die("not true: %s", #condition);                                                       \
    } while (0)

/** The call must succeed; it reports into ERR. */
#define ok(call)                                                                                   \
    do {                                                                                           \
        esdm_status st_ = (call);                                                                  \
        if (st_ != ESDM_OK)                                                                        \
            die("%s: %s: %s", #call, esdm_status_string(st_), test_error.message);                 \
    } while (0)

/** The call must fail with `status` and a message that contains `words`. */
#define fails(call, status, words)                                                                 \
    do {                                                                                           \
        memset(&test_error, 0, sizeof test_error);                                                 \
        esdm_status st_ = (call);                                                                  \
        if (st_ != (status))                                                                       \
            die("%s: status %d (%s: %s), expected %d", #call, (int) st_, esdm_status_string(st_),  \
                test_error.message, (int) (status));                                               \
        if (!strstr(test_error.message, words))                                                    \
            die("%s: message \"%s\" does not say \"%s\"", #call, test_error.message, words);       \
    } while (0)

static char test_folder[256];
static pid_t test_owner;

/* Only the process that made the folder removes it. */
static void
remove_test_folder(void)
{
    char command[300];
    if (getpid() != test_owner || !test_folder[0])
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    if (system(command) != 0)
        fprintf(stderr, "could not remove %s\n", test_folder);
}

/** Copies a text, with the name of the test's folder for "@id@", and the same in digits for
 * "@hex@". */
static inline void
copy_site(const char *from, const char *to)
{
    char text[65536];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    if (!in || !out)
        die("cannot copy %s to %s: %s", from, to, strerror(errno));
    size_t n = fread(text, 1, sizeof text - 1, in);
    text[n] = '\0';
    const char *name = strrchr(test_folder, '/') + 1;
    for (const char *at = text; *at != '\0'; at++) {
        if (strncmp(at, "@id@", 4) == 0) {
            fputs(name, out);
            at += 3;
        } else if (strncmp(at, "@hex@", 5) == 0) {
            for (const char *c = name; *c != '\0'; c++)
                fprintf(out, "%02x", (unsigned char) *c);
            at += 4;
        } else {
            fputc(*at, out);
        }
    }
    fclose(in);
    check(fclose(out) == 0);
}

/** Makes a site from tests/support/site.json, or what $ESDM_TEST_SITE names, in a temporary folder
 *  and sets $ESDM_CONFIG. */
static inline void
make_site(void)
{
    const char *tmp = getenv("TMPDIR");
    const char *source = getenv("ESDM_SOURCE");
    const char *site = getenv("ESDM_TEST_SITE");
    char from[512];
    char path[300];
    snprintf(test_folder, sizeof test_folder, "%s/esdm-test.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(test_folder))
        die("mkdtemp %s: %s", test_folder, strerror(errno));
    test_owner = getpid();
    atexit(remove_test_folder);
    if (site)
        snprintf(from, sizeof from, "%s", site);
    else
        snprintf(from, sizeof from, "%s/tests/support/site.json", source ? source : ".");
    snprintf(path, sizeof path, "%s/site.json", test_folder);
    copy_site(from, path);
    setenv("ESDM_CONFIG", path, 1);
    esdm_site_options options = {.config_path = path};
    ok(esdm_site_create(&options, ERR));
}

static inline esdm_session *
open_session(void)
{
    esdm_session *session;
    ok(esdm_session_open(NULL, &session, ERR));
    return session;
}

/** $ESDM_TEST_SIZE chooses one of three. */
static inline uint64_t
by_size(uint64_t quick, uint64_t normal, uint64_t large)
{
    const char *size = getenv("ESDM_TEST_SIZE");
    if (size && strcmp(size, "quick") == 0)
        return quick;
    return size && strcmp(size, "long") == 0 ? large : normal;
}

/* A small generator, so that runs repeat (splitmix64). */
static inline uint64_t
next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/** Waits for `count` children; all must end with status 0. */
static inline void
wait_children(const pid_t *children, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int status;
        check(waitpid(children[i], &status, 0) == children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            die("child %zu of %zu ended with wait status 0x%x", i, count, (unsigned) status);
    }
}

#endif
