/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * ESDM's status as a NetCDF code. Positive codes are errno values, which nc_strerror() words well:
 *
 *   EINVAL    NC_EINVAL        ENOENT    ENOENT         EEXIST    NC_EEXIST
 *   ECONFLICT NC_ECANTWRITE    ENOTSUP   NC_ENOTBUILT   ENOMEM    NC_ENOMEM
 *   ENOSPC    ENOSPC           EACCES    EACCES         EIO       NC_EIO
 *   ETIMEDOUT ETIMEDOUT        ECORRUPT  NC_ETRUNC      ECANCELED ECANCELED
 *
 * A file that a container refers to and that was changed is NC_ECANTREAD when it is read. What an
 * open container misses is NC_ETRUNC, and a site that has lost its catalogue NC_EIO.
 *
 * NC_EPERM is kept for its netCDF meaning: writing to a file that was opened for reading.
 */

#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int
code_of(esdm_status status)
{
    switch (status) {
    case ESDM_OK:
        break; /* nobody reports a success here */
    case ESDM_EINVAL:
        return NC_EINVAL;
    case ESDM_ENOENT:
        return ENOENT;
    case ESDM_EEXIST:
        return NC_EEXIST;
    case ESDM_ECONFLICT:
        return NC_ECANTWRITE;
    case ESDM_ENOTSUP:
        return NC_ENOTBUILT;
    case ESDM_ENOMEM:
        return NC_ENOMEM;
    case ESDM_ENOSPC:
        return ENOSPC;
    case ESDM_EACCES:
        return EACCES;
    case ESDM_EIO:
        return NC_EIO;
    case ESDM_ETIMEDOUT:
        return ETIMEDOUT;
    case ESDM_ECORRUPT:
        return NC_ETRUNC;
    case ESDM_ECANCELED:
        return ECANCELED;
    }
    return NC_EINTERNAL;
}

void
esdmnc_say(const char *format, ...)
{
    int saved = errno;
    char line[ESDM_ERROR_MESSAGE_BYTES + 2 * ESDM_CONTAINER_NAME_MAX];
    char printable[sizeof line];
    va_list args;
    va_start(args, format);
    (void) vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void) esdm_text_printable(line, printable, sizeof printable);
    if (!esdmnc_is_heard(printable))
        (void) fprintf(stderr, "esdm: %s\n", printable);
    errno = saved;
}

/* Of an open container. A pack or a page is gone then: to programs ENOENT means that there is no
 * such file, whereupon some make a new one. */
static int
code_of_data(esdm_status status)
{
    return status == ESDM_ENOENT ? NC_ETRUNC : code_of(status);
}

int
esdmnc_error_loud(const esdm_error *err, const char *what, const char *name)
{
    const char *advice = "";
    if (err->status == ESDM_ECONFLICT &&
        strstr(err->message, "changed its structure first") != NULL)
        advice =
            "; what this program has not committed yet is not stored: run it again, which then "
            "starts from what the other one has written";
    if (what == NULL)
        esdmnc_say("%s%s", err->message, advice);
    else
        esdmnc_say("%s '%s': %s%s", what, name, err->message, advice);
    return code_of_data(err->status);
}

int
esdmnc_error_site(const esdm_error *err, bool loud)
{
    static char told[ESDM_ERROR_MESSAGE_BYTES];
    if (loud && strcmp(told, err->message) != 0)
        esdmnc_say("cannot open the site: %s", err->message);
    (void) snprintf(told, sizeof told, "%s", err->message);
    /* The targets of a site whose catalogue is lost are what exists, not the program's file. */
    return err->status == ESDM_EEXIST ? NC_EIO : code_of(err->status);
}

int
esdmnc_error_quiet(const esdm_error *err, const char *what, const char *name)
{
    esdmnc_debug("%s '%s': %s", what, name, err->message);
    return code_of(err->status);
}

/* A program that ignores errors may fail a million times in a row. */
#define LOUD_MAX 20

static int
loud_at_first(const esdm_error *err, const char *what, const char *name)
{
    static atomic_int count;
    if (atomic_fetch_add(&count, 1) < LOUD_MAX)
        return esdmnc_error_loud(err, what, name);
    atomic_store(&count, LOUD_MAX); /* never wraps around */
    return esdmnc_error_quiet(err, what, name);
}

int
esdmnc_error(const esdm_error *err, const char *what, const char *name)
{
    switch (err->status) {
    case ESDM_EIO:
    case ESDM_ENOSPC:
    case ESDM_ECORRUPT:
    case ESDM_ECONFLICT:
        return loud_at_first(err, what, name);
    default:
        return esdmnc_error_quiet(err, what, name);
    }
}

int
esdmnc_error_data(const esdm_error *err, const char *what, const char *name)
{
    switch (err->status) {
    case ESDM_ENOENT:
        (void) loud_at_first(err, what, name);
        return code_of_data(err->status);
    case ESDM_EACCES:
    case ESDM_ETIMEDOUT:
        return loud_at_first(err, what, name);
    default:
        return esdmnc_error(err, what, name);
    }
}

int
esdmnc_error_read(const esdm_error *err, const char *name)
{
    /* What is there and cannot be read here: a plug-in that is missing, a server without ranges. */
    if (err->status == ESDM_ENOTSUP)
        return loud_at_first(err, "read", name);
    int rc = esdmnc_error_data(err, "read", name);
    return err->status == ESDM_ECONFLICT ? NC_ECANTREAD : rc;
}
