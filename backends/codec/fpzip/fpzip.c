/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "fpzip" (id 7): what a Lorenzo predictor leaves of floating-point numbers, range coded;
 * encoded by libfpzip, without loss. After the head (base/seal.h), whose variant is 0, come its
 * bytes without its header. With FPZIP_READS_ONLY it does without libfpzip.
 */

#ifndef FPZIP_READS_ONLY
#include <fpzip.h>
#endif
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/axes.h"
#include "base/error.h"
#include "base/seal.h"
#include "esdm/sys/codec.h"
#include "esdm/types.h"
#include "stream.h"

#define NAME "fpzip"
#define AXES 3u

/* Bytes of a number; 0: none that fpzip takes. */
static size_t
number_bytes(const esdm_codec_input *input, size_t raw_bytes)
{
    size_t bytes = input->type == ESDM_TYPE_FLOAT32   ? sizeof(float)
                   : input->type == ESDM_TYPE_FLOAT64 ? sizeof(double)
                                                      : 0;
    return bytes > 0 && input->element_bytes == bytes && raw_bytes % bytes == 0 ? bytes : 0;
}

/* Joined axes; false: longer than fpzip can count. */
static bool
lengths_of(const esdm_codec_input *input, size_t n, size_t length[AXES])
{
    for (uint32_t d = esdm__axes_join(input->rank, input->shape, n, AXES, length); d < AXES; d++)
        length[d] = 1;
    return n <= INT_MAX;
}

static size_t
fpzip_bound(size_t raw_bytes)
{
    return raw_bytes; /* longer ones are not kept */
}

#ifdef FPZIP_READS_ONLY
#define FLAGS (ESDM_CODEC_SHAPED | ESDM_CODEC_READS)

static esdm_status
fpzip_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
             size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input, (void) raw, (void) raw_bytes, (void) out, (void) out_bytes, (void) ret_bytes;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           NAME ": this ESDM was built without libfpzip; it reads what others "
                                "wrote and cannot write");
}
#else
#define FLAGS ESDM_CODEC_SHAPED

/* Whether every machine and compiler makes the same predictions of them: a sum with an infinity may
 * be NaN, whose bits differ, and of several NaN any may be the result. One alone is safe, if it is
 * the one that all machines make of it. */
static bool
predictions_agree(size_t bytes, const void *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes == sizeof(float)) {
            uint32_t bits;
            memcpy(&bits, (const uint8_t *) numbers + i * sizeof bits, sizeof bits);
            if ((bits >> 23 & 0xffu) == 0xffu && bits != UINT32_C(0x7fc00000))
                return false;
        } else {
            uint64_t bits;
            memcpy(&bits, (const uint8_t *) numbers + i * sizeof bits, sizeof bits);
            if ((bits >> 52 & 0x7ffu) == 0x7ffu && bits != UINT64_C(0x7ff8000000000000))
                return false;
        }
    }
    return true;
}

static size_t
run_fpzip(size_t bytes, const size_t length[AXES], const void *numbers, void *out, size_t room)
{
    FPZ *fpz = fpzip_write_to_buffer(out, room);
    if (fpz == NULL)
        return 0;
    fpz->type = bytes == sizeof(float) ? FPZIP_TYPE_FLOAT : FPZIP_TYPE_DOUBLE;
    fpz->prec = 0;
    fpz->nx = (int) length[0];
    fpz->ny = (int) length[1];
    fpz->nz = (int) length[2];
    fpz->nf = 1;
    size_t written = fpzip_write(fpz, numbers);
    fpzip_write_close(fpz);
    return written;
}

static esdm_status
fpzip_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
             size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    size_t length[AXES];
    size_t bytes = number_bytes(input, raw_bytes);
    *ret_bytes = 0;
    if (bytes == 0 || out_bytes <= ESDM__SEAL_BYTES || raw_bytes <= ESDM__SEAL_BYTES ||
        !lengths_of(input, raw_bytes / bytes, length) ||
        !predictions_agree(bytes, raw, raw_bytes / bytes))
        return ESDM_OK;
    size_t room = (out_bytes < raw_bytes ? out_bytes : raw_bytes) - ESDM__SEAL_BYTES;
    void *numbers = malloc(2 * raw_bytes); /* aligned; what goes in and what comes back */
    if (numbers == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    void *back = (uint8_t *) numbers + raw_bytes;
    uint8_t *to = (uint8_t *) out + ESDM__SEAL_BYTES;
    memcpy(numbers, raw, raw_bytes);
    size_t written = run_fpzip(bytes, length, numbers, to, room);
    if (written > 0 && written < room && fpzip__stream_decode(to, written, bytes, length, back) &&
        memcmp(back, raw, raw_bytes) == 0) {
        *ret_bytes = ESDM__SEAL_BYTES + written;
        esdm__seal_write(out, 0, *ret_bytes, raw, raw_bytes);
    }
    free(numbers);
    return ESDM_OK;
}
#endif

static esdm_status
fpzip_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
             size_t raw_bytes, esdm_error *err)
{
    uint8_t variant = 0;
    size_t length[AXES];
    size_t bytes = number_bytes(input, raw_bytes);
    esdm_status st = esdm__seal_read(NAME, encoded, encoded_bytes, &variant, err);
    if (st != ESDM_OK)
        return st;
    if (variant != 0)
        return esdm__error_set(err, ESDM_ENOTSUP, NAME ": variant %u is not known", variant);
    if (bytes == 0 || raw_bytes == 0 || !lengths_of(input, raw_bytes / bytes, length))
        return esdm__error_set(err, ESDM_ECORRUPT, NAME ": %zu bytes of type %d", raw_bytes,
                               (int) input->type);
    void *numbers = (uintptr_t) raw % bytes == 0 ? raw : malloc(raw_bytes);
    if (numbers == NULL)
        return esdm__error_nomem(err, raw_bytes, NAME);
    const uint8_t *from = (const uint8_t *) encoded + ESDM__SEAL_BYTES;
    if (!fpzip__stream_decode(from, encoded_bytes - ESDM__SEAL_BYTES, bytes, length, numbers))
        st = esdm__error_set(err, ESDM_ECORRUPT,
                             NAME ": %zu stored bytes do not decode to %zu raw ones", encoded_bytes,
                             raw_bytes);
    else
        st = esdm__seal_check(NAME, encoded, numbers, raw_bytes, err);
    if (numbers != raw) {
        memcpy(raw, numbers, st == ESDM_OK ? raw_bytes : 0);
        free(numbers);
    }
    return st;
}

extern const esdm_codec_plugin esdm_codec_fpzip_plugin;
const esdm_codec_plugin esdm_codec_fpzip_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = NAME,
             .summary = "fpzip for floating-point numbers, lossless"},
    .id = 7,
    .bound = fpzip_bound,
    .encode = fpzip_encode,
    .decode = fpzip_decode,
    .flags = FLAGS,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_fpzip_plugin.base;
}
#endif
