/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/error.h"

/* Calls of these are macros for the analyzer; their definitions are not. */
#undef esdm__error_set
#undef esdm__error_prefix
#undef esdm__error_nomem

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *
esdm_status_string(esdm_status status)
{
    switch (status) {
    case ESDM_OK:
        return "success";
    case ESDM_EINVAL:
        return "invalid argument";
    case ESDM_ENOENT:
        return "no such object";
    case ESDM_EEXIST:
        return "object exists";
    case ESDM_ECONFLICT:
        return "conflicting change by another writer";
    case ESDM_ENOTSUP:
        return "not supported";
    case ESDM_ENOMEM:
        return "out of memory";
    case ESDM_ENOSPC:
        return "no space left";
    case ESDM_EACCES:
        return "permission denied";
    case ESDM_EIO:
        return "input/output error";
    case ESDM_ETIMEDOUT:
        return "timed out";
    case ESDM_ECORRUPT:
        return "stored data is damaged";
    case ESDM_ECANCELED:
        return "canceled";
    }
    return "unknown status";
}

/* Whole messages: two paths, and what is said of them. */
#define WHOLE_BYTES 4096
/* Of a message that is too long the begin and the end stay: the end tells why, and what to do. */
#define HEAD_BYTES 170
#define GAP        " [...] "

/* Whether a byte continues a character of UTF-8. */
static bool
continues(char byte)
{
    return ((unsigned char) byte & 0xc0u) == 0x80u;
}

static void
store_text(esdm_error *err, const char *text)
{
    size_t length = strlen(text);
    const size_t room = sizeof err->message - 1;
    if (length <= room) {
        memcpy(err->message, text, length + 1);
        return;
    }
    size_t head = HEAD_BYTES;
    while (head > 0 && continues(text[head]))
        head--;
    const char *tail = text + length - (room - HEAD_BYTES - strlen(GAP));
    while (continues(*tail))
        tail++;
    (void) snprintf(err->message, sizeof err->message, "%.*s" GAP "%s", (int) head, text, tail);
}

/* @param behind that follows the text after a colon; NULL: nothing. It may be err->message. */
static void
set_text(esdm_error *err, esdm_status status, int os_errno, const char *behind, const char *format,
         va_list args)
{
    char text[WHOLE_BYTES];
    int length = vsnprintf(text, sizeof text, format, args);
    size_t used = length < 0                             ? 0
                  : (size_t) length < sizeof text - 1024 ? (size_t) length
                                                         : sizeof text - 1024;
    text[used] = '\0';
    /* What has told the same place already does not tell it twice. */
    if (behind != NULL && used > 0 && strncmp(behind, text, used) == 0 &&
        (behind[used] == ':' || behind[used] == ','))
        (void) snprintf(text, sizeof text, "%s", behind);
    else if (behind != NULL)
        (void) snprintf(text + used, sizeof text - used, ": %s", behind);
    err->status = status;
    err->os_errno = os_errno;
    store_text(err, text);
}

esdm_status
esdm__error_set(esdm_error *err, esdm_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        set_text(err, status, 0, NULL, format, args);
        va_end(args);
    }
    return status;
}

static esdm_status
status_from_errno(int os_errno)
{
    switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ESDM_ENOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
        return ESDM_EACCES;
    case ENOENT:
        return ESDM_ENOENT;
    case EEXIST:
        return ESDM_EEXIST;
    case ENOMEM:
        return ESDM_ENOMEM;
    case ETIMEDOUT:
        return ESDM_ETIMEDOUT;
    default:
        return ESDM_EIO;
    }
}

esdm_status
esdm__error_set_errno(esdm_error *err, int os_errno, const char *format, ...)
{
    esdm_status status = status_from_errno(os_errno);
    if (err == NULL)
        return status;
    char reason[128];
    va_list args;
    va_start(args, format);
    set_text(err, status, os_errno, strerror_r(os_errno, reason, sizeof reason) /* GNU variant */,
             format, args);
    va_end(args);
    return status;
}

esdm_status
esdm__error_prefix(esdm_error *err, esdm_status status, const char *format, ...)
{
    if (err == NULL)
        return status;
    int os_errno = err->os_errno;
    va_list args;
    va_start(args, format);
    set_text(err, status, os_errno, err->message, format, args);
    va_end(args);
    return status;
}

esdm_status
esdm__error_nomem(esdm_error *err, size_t bytes, const char *what)
{
    return esdm__error_set(err, ESDM_ENOMEM, "out of memory (%zu bytes for %s)", bytes, what);
}
