/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "grib" (id 11): values of a GRIB message, by ecCodes in a program of its own. Decodes
 * alone.
 *
 * Raw bytes are `float` or `double` in the order of the message; missing values are -9e33.
 */

#include "grib.h"

#include <string.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

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
grib_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    size_t element = input->element_bytes == sizeof(float) ? sizeof(float) : sizeof(double);
    const grib__question question = {
        .message_bytes = encoded_bytes, .values = raw_bytes / element, .element_bytes = element};
    if (encoded_bytes < 16 || raw_bytes % element != 0 || memcmp(encoded, "GRIB", 4) != 0 ||
        memcmp((const char *) encoded + encoded_bytes - 4, "7777", 4) != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "grib: %zu bytes that are no message",
                               encoded_bytes);
    return grib__ask(&question, encoded, raw, err);
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
