/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SHA256_H
#define ESDM_BASE_SHA256_H

/**
 * @file
 * SHA-256 (FIPS 180-4), so that libesdm needs no OpenSSL: loading that would cost every program
 * that opens a container. A state belongs to one thread; it needs no freeing.
 */

#include <stddef.h>
#include <stdint.h>

#define ESDM__SHA256_BYTES 32u

typedef struct esdm__sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* that were added */
    uint8_t block[64]; /* the last `bytes` % 64 of them */
} esdm__sha256;

void esdm__sha256_init(esdm__sha256 *sum);
void esdm__sha256_add(esdm__sha256 *sum, const void *data, size_t bytes);
/** The state must be initialised anew before it is used again. */
void esdm__sha256_end(esdm__sha256 *sum, uint8_t ret_hash[ESDM__SHA256_BYTES]);
/** All at once. */
void esdm__sha256_of(const void *data, size_t bytes, uint8_t ret_hash[ESDM__SHA256_BYTES]);

/* ---- what goes through blocks of 64 bytes ---- */

extern const uint32_t esdm__sha256_k[64];
typedef void (*esdm__sha256_fn)(uint32_t state[8], const uint8_t *blocks, size_t count);

void esdm__sha256_plain(uint32_t state[8], const uint8_t *blocks, size_t count);
#if defined(__x86_64__)
#define ESDM__SHA256_X86
/** Needs SHA-NI and SSE4.1. */
void esdm__sha256_ni(uint32_t state[8], const uint8_t *blocks, size_t count);
#endif

#endif
