/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Template of a codec: copy the folder, rename `template`, take an id of your own (128–255 for
 * site-local codecs; ids are stored with the data and never reused).
 *
 * This one takes the difference of each byte to the byte one element before, then writes runs of
 * equal bytes as pairs (length 1–255, byte). It shrinks constant and linear data.
 */

#include "base/error.h"
#include "esdm/sys/codec.h"

#define RUN_MAX 255u

/* Bytes of an element; 1 when the input does not say. */
static size_t
element_of(const esdm_codec_input *input)
{
    return input->element_bytes > 0 ? input->element_bytes : 1;
}

static uint8_t
difference(const uint8_t *raw, size_t at, size_t element)
{
    return (uint8_t) (raw[at] - (at >= element ? raw[at - element] : 0));
}

/* How many bytes encode() may need at most for `raw_bytes`; callers allocate that much. */
static size_t
template_bound(size_t raw_bytes)
{
    return raw_bytes > SIZE_MAX / 2 ? SIZE_MAX : 2 * raw_bytes;
}

/* Pure, runs in many threads at once, keeps no state. A result that is not shorter than the input
 * is 0 bytes and ESDM_OK: the caller then stores the block raw. This codec is lossless and looks
 * neither at input->accuracy (that needs ESDM_CODEC_LOSSY) nor at input->shape (ESDM_CODEC_SHAPED).
 */
static esdm_status
template_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
                size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    const uint8_t *from = raw;
    uint8_t *to = out;
    size_t element = element_of(input);
    size_t limit = out_bytes < raw_bytes ? out_bytes : raw_bytes;
    size_t used = 0;
    (void) err;
    for (size_t at = 0; at < raw_bytes;) {
        uint8_t value = difference(from, at, element);
        size_t run = 1;
        while (run < RUN_MAX && at + run < raw_bytes &&
               difference(from, at + run, element) == value)
            run++;
        if (limit - used < 2) {
            used = 0;
            break;
        }
        to[used++] = (uint8_t) run;
        to[used++] = value;
        at += run;
    }
    *ret_bytes = used < raw_bytes ? used : 0;
    return ESDM_OK;
}

/* Input may be hostile: check every length before it is used. Exactly raw_bytes must come out. */
static esdm_status
template_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
                size_t raw_bytes, esdm_error *err)
{
    const uint8_t *from = encoded;
    uint8_t *to = raw;
    size_t element = element_of(input);
    size_t done = 0;
    for (size_t at = 0; at + 1 < encoded_bytes; at += 2) {
        size_t run = from[at];
        if (run == 0 || run > raw_bytes - done)
            return esdm__error_set(err, ESDM_ECORRUPT, "template: a wrong run at byte %zu", at);
        for (; run > 0; run--, done++)
            to[done] = (uint8_t) (from[at + 1] + (done >= element ? to[done - element] : 0));
    }
    if (done != raw_bytes || encoded_bytes % 2 != 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "template: %zu bytes instead of %zu", done,
                               raw_bytes);
    return ESDM_OK;
}

/* The one global symbol: esdm_codec_<name>_plugin. */
extern const esdm_codec_plugin esdm_codec_template_plugin;
const esdm_codec_plugin esdm_codec_template_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "template", /* as in the configuration and in the file name */
             .summary = "differences of bytes, run-length encoded (a template)"},
    .id = 200,
    .bound = template_bound,
    .encode = template_encode,
    .decode = template_decode,
};

/* Only in the shared object: how libesdm finds the table above. */
#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_template_plugin.base;
}
#endif
