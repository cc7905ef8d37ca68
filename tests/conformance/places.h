/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CONFORMANCE_PLACES_H
#define ESDM_TESTS_CONFORMANCE_PLACES_H

/**
 * @file
 * Where the conformance suites put what they make: one fresh place per test, configured for the
 * plug-in under test. A plug-in that is to be tested needs a line in the table of places.c.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plugin/registry.h"

#define PLACE_SITE       "5eed5eed5eed5eed5eed5eed5eed5eed"
#define PLACE_OTHER_SITE "0123456789abcdef0123456789abcdef"

typedef struct place {
    char folder[160]; /* temporary folder of the test */
    char dir[224];    /* the plug-in's directory below it; "" when it has none */
    char name[32];    /* of the target */
    char json[512];
    esdm_plugin_config config; /* points into this */
} place;

/** How a plug-in is configured. */
typedef struct place_kind {
    esdm_plugin_kind kind;
    const char *plugin;
    const char *json; /* %s: directory, when has_directory */
    bool has_directory;
    const char *server; /* variable with the connection string of a server: %s %s in json are that
                           and a schema; NULL: needs none */
    bool bucket;        /* on the server of tests/support/s3server.py: the directory is a prefix of
                           keys, and can be looked into where objects are files */
    bool shared;        /* other processes see it */
    bool durable;       /* pack_sync works */
} place_kind;

/** NULL when the table has no line. */
const place_kind *place_kind_of(const esdm_plugin *plugin);

/** Sets up a place; nothing is made yet. Fails the test when it cannot. */
void place_init(place *ret_place, const place_kind *kind);
/** A second place beside the first one: same folder and site, other directory and name. */
void place_sibling(place *ret_place, const place *beside, const place_kind *kind, const char *name);
/** Deletes the temporary folder and everything in it. */
void place_clear(place *p);

/** Counts reported lines; `user` is a size_t, or NULL. */
void place_count_lines(const char *line, void *user);

/** Number of files and folders below a path, at all depths; 0 when it does not exist. */
size_t place_count_entries(const char *path);
void place_write_file(const char *folder, const char *name, const char *text);
/** Runs `body` in a child process. @return its exit status, or 128 + signal. */
int place_in_child(void (*body)(void *user), void *user);
/** Runs the group once for each plug-in of the kind, or for that which $ESDM_TEST_ONLY names;
 *  `current` is set before. */
int place_run_all(esdm_plugin_kind kind, const char *suite, const struct CMUnitTest *tests,
                  size_t ntests);

/** The plug-in under test. */
extern const esdm_plugin *place_current;
extern const place_kind *place_current_kind;

/** Asserts a status and shows the message otherwise. */
#define assert_status(expression, expected)                                                        \
    do {                                                                                           \
        esdm_status status_ = (expression);                                                        \
        if (status_ != (expected))                                                                 \
            fail_msg("%s: %s instead of %s: %s", #expression, esdm_status_string(status_),         \
                     esdm_status_string(expected), status_ != ESDM_OK ? place_error.message : ""); \
    } while (0)
#define assert_ok(expression) assert_status(expression, ESDM_OK)

/** Leaves a test that does not apply here. */
#define skip_if(condition)                                                                         \
    do {                                                                                           \
        if (condition) {                                                                           \
            skip();                                                                                \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/** How often something is repeated: a sanitizer, which sees each step, needs fewer repetitions and
 * is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define place_by_build(sanitized, plain) (sanitized)
#else
#define place_by_build(sanitized, plain) (plain)
#endif

/** A forked child of these plug-ins has threads of its own, which ThreadSanitizer cannot follow. */
#ifdef __SANITIZE_THREAD__
#define skip_if_forks_have_threads() skip_if(place_current_kind->bucket)
#else
#define skip_if_forks_have_threads() (void) 0
#endif

/** The error object that tests pass along. */
extern _Thread_local esdm_error place_error;

#endif
