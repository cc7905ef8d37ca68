/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "grib" (id 11): values of a GRIB message, by ecCodes. Decodes alone.
 *
 * Raw bytes are `float` or `double` in the order of the message; missing values are -9e33.
 */

#include <eccodes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

#define MISSING (-9e33)

/* Debian's ecCodes is built without threads: guards all of its calls. A leaf lock. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static size_t
grib_bound(size_t raw_bytes)
{
    return raw_bytes;
}

static esdm_status
grib_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input, (void) raw, (void) raw_bytes, (void) out, (void) out_bytes, (void) ret_bytes;
    return esdm__error_set(err, ESDM_ENOTSUP, "grib: messages are read, and never written");
}

static esdm_status
failed(int code, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "grib: ecCodes cannot decode the message: %s",
                           codes_get_error_message(code));
}

/* Without its definitions ecCodes ends the process when it is asked for anything. With the lock
 * held. */
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

/* With the lock held. */
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
grib_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    size_t element = input->element_bytes == sizeof(float) ? sizeof(float) : sizeof(double);
    size_t n = raw_bytes / element;
    const char *end = (const char *) encoded + encoded_bytes - 4;
    if (encoded_bytes < 16 || raw_bytes % element != 0 || memcmp(encoded, "GRIB", 4) != 0 ||
        memcmp(end, "7777", 4) != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "grib: %zu bytes that are no message",
                               encoded_bytes);
    double *values = element == sizeof(double) ? raw : malloc(n * sizeof *values + 1);
    if (values == NULL)
        return esdm__error_nomem(err, n * sizeof *values, "the values of a message");
    (void) pthread_mutex_lock(&one_at_a_time);
    codes_handle *message = NULL;
    esdm_status status = need_definitions(err);
    if (status == ESDM_OK) {
        message = codes_handle_new_from_message_copy(NULL, encoded, encoded_bytes);
        status = message != NULL ? values_of(message, values, n, err)
                                 : failed(CODES_INVALID_MESSAGE, err);
    }
    if (message != NULL)
        (void) codes_handle_delete(message);
    (void) pthread_mutex_unlock(&one_at_a_time);
    for (size_t i = 0; element == sizeof(float) && status == ESDM_OK && i < n; i++)
        ((float *) raw)[i] = (float) values[i];
    if (values != raw)
        free(values);
    return status;
}

extern const esdm_codec_plugin esdm_codec_grib_plugin;
const esdm_codec_plugin esdm_codec_grib_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "grib",
             .summary = "values of GRIB messages that containers refer to, by ecCodes"},
    .id = 11,
    .flags = ESDM_CODEC_READS,
    .bound = grib_bound,
    .encode = grib_encode,
    .decode = grib_decode,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_grib_plugin.base;
}
#endif
