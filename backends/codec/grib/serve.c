/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Decodes messages with ecCodes, in a process that is there for nothing else: ecCodes ends a
 *  process by assertions, reads where nothing is, or does not come to an end over messages that are
 *  ill. Runs in the program "esdm-grib", which has one thread. */

#include <eccodes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "esdm/sys/plugin.h"
#include "grib.h"

#define MISSING (-9e33)

/* What a message may take: seconds of a processor, and memory. JPEG 2000 decodes some 5 million
 * values in a second, and has them several times. */
#define SECONDS_LEAST      10u
#define VALUES_PER_SECOND  200000u
#define MEMORY_LEAST_BYTES (UINT64_C(1) << 30)
#define MEMORY_PER_VALUE   128u
#define MEMORY_PER_BYTE    4u

#ifdef __SANITIZE_ADDRESS__ /* takes terabytes of addresses */
#define LIMITS_MEMORY 0
#elif defined __SANITIZE_THREAD__
#define LIMITS_MEMORY 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIMITS_MEMORY 0
#endif
#endif
#ifndef LIMITS_MEMORY
#define LIMITS_MEMORY 1
#endif

ESDM_API int esdm_grib_serve(int fd);

static esdm_status
failed(int code, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "grib: ecCodes cannot decode the message: %s",
                           codes_get_error_message(code));
}

/* Without its definitions ecCodes ends the process when it is asked for anything. */
static esdm_status
need_definitions(esdm_error *err)
{
    const char *path = codes_definition_path(NULL);
    for (const char *at = path; at != NULL && *at != '\0';) {
        char file[PATH_MAX];
        int length = (int) strcspn(at, ":");
        int n = snprintf(file, sizeof file, "%.*s/boot.def", length, at);
        /* Some libraries have them inside, under a path that no file has. */
        if (strncmp(at, "/MEMFS", 6) == 0 ||
            (n > 0 && (size_t) n < sizeof file && access(file, R_OK) == 0))
            return ESDM_OK;
        at += length + (at[length] == ':');
    }
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "grib: ecCodes has no definitions of GRIB: there is no boot.def in "
                           "%.200s. Install them (Debian: libeccodes-data), or say where they are "
                           "by ECCODES_DEFINITION_PATH",
                           path != NULL ? path : "any folder");
}

static esdm_status
values_of(codes_handle *message, double *values, size_t n, esdm_error *err)
{
    size_t count = 0;
    int code = codes_set_double(message, "missingValue", MISSING);
    if (code == CODES_SUCCESS)
        code = codes_get_size(message, "values", &count);
    if (code == CODES_SUCCESS && count != n)
        return esdm__error_set(err, ESDM_ECORRUPT, "grib: %zu values instead of %zu", count, n);
    if (code == CODES_SUCCESS)
        code = codes_get_double_array(message, "values", values, &count);
    return code == CODES_SUCCESS && count == n ? ESDM_OK : failed(code, err);
}

static esdm_status
decode(const void *data, size_t bytes, double *values, size_t n, esdm_error *err)
{
    esdm_status status = need_definitions(err);
    if (status != ESDM_OK)
        return status;
    codes_handle *message = codes_handle_new_from_message_copy(NULL, data, bytes);
    if (message == NULL)
        return failed(CODES_INVALID_MESSAGE, err);
    status = values_of(message, values, n, err);
    (void) codes_handle_delete(message);
    return status;
}

/* Beyond them the process ends, which the other side sees. Time is that of a processor: a machine
 * that stands still costs no message. */
static void
limit(const grib__question *question, bool begins)
{
    const struct itimerval end = {
        .it_value.tv_sec =
            begins ? (time_t) (SECONDS_LEAST + question->values / VALUES_PER_SECOND) : 0};
    (void) setitimer(ITIMER_PROF, &end, NULL);
    struct rlimit memory;
    if (!LIMITS_MEMORY || getrlimit(RLIMIT_AS, &memory) != 0)
        return;
    rlim_t needed = MEMORY_LEAST_BYTES + question->values * MEMORY_PER_VALUE +
                    question->message_bytes * MEMORY_PER_BYTE;
    memory.rlim_cur = needed < memory.rlim_max ? needed : memory.rlim_max;
    (void) setrlimit(RLIMIT_AS, &memory);
}

static bool
refuse(int fd, esdm_status status, const char *text)
{
    grib__answer answer = {.status = (uint64_t) status};
    (void) snprintf(answer.text, sizeof answer.text, "%s", text);
    (void) grib__send(fd, &answer, sizeof answer);
    return false;
}

/* Takes what the other side sends all the same. */
static bool
refuse_memory(int fd, size_t bytes)
{
    char rest[4096];
    while (bytes > 0) {
        size_t n = bytes < sizeof rest ? bytes : sizeof rest;
        if (!grib__receive(fd, rest, n))
            return false;
        bytes -= n;
    }
    return refuse(fd, ESDM_ENOMEM, "grib: out of memory for the values of a message");
}

/* @return whether another message may follow: after an ill one the memory is not trusted. */
static bool
answer_one(int fd, const grib__question *question, void *data, double *values)
{
    esdm_error err = {0};
    size_t n = (size_t) question->values;
    if (!grib__receive(fd, data, (size_t) question->message_bytes))
        return false;
    esdm_status status = decode(data, (size_t) question->message_bytes, values, n, &err);
    if (status != ESDM_OK)
        return refuse(fd, status, err.message);
    for (size_t i = 0; question->element_bytes == sizeof(float) && i < n; i++) {
        float value = (float) values[i];
        memcpy((char *) values + i * sizeof value, &value, sizeof value);
    }
    const grib__answer answer = {.status = ESDM_OK};
    return grib__send(fd, &answer, sizeof answer) &&
           grib__send(fd, values, n * (size_t) question->element_bytes);
}

int
esdm_grib_serve(int fd)
{
    const uint64_t hello = GRIB_HELLO;
    grib__question question;
    (void) prctl(PR_SET_DUMPABLE, 0); /* nobody wants its memory in a file */
    bool goes_on = grib__send(fd, &hello, sizeof hello);
    while (goes_on && grib__receive(fd, &question, sizeof question)) {
        limit(&question, true);
        void *data = malloc((size_t) question.message_bytes);
        double *values = question.values < SIZE_MAX / sizeof *values - 1
                             ? malloc((size_t) question.values * sizeof *values + 1)
                             : NULL;
        goes_on = data != NULL && values != NULL
                      ? answer_one(fd, &question, data, values)
                      : refuse_memory(fd, (size_t) question.message_bytes);
        free(values);
        free(data);
        limit(&question, false);
    }
    return 0;
}
