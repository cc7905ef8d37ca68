/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_FPZIP_STREAM_H
#define ESDM_CODEC_FPZIP_STREAM_H

/**
 * @file
 * Decodes what libfpzip (format 1.1, all bits, no header) encoded. libfpzip itself trusts its
 * input: damaged bytes make it write outside of its tables.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Pure. @param bytes of a number, 4 or 8. @param length of three axes, fastest first, their
 *  product the numbers. @param numbers aligned. @return false: damaged. */
bool fpzip__stream_decode(const uint8_t *encoded, size_t encoded_bytes, size_t bytes,
                          const size_t length[3], void *numbers);

#endif
