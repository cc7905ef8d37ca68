/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/sha256.h"

#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"

#define BLOCK 64u

static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

const uint32_t esdm__sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t
rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static inline uint32_t
big_endian(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static void
one_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];
    for (unsigned t = 0; t < 16; t++)
        w[t] = big_endian(block + 4 * (size_t) t);
    for (unsigned t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (unsigned t = 0; t < 64; t++) {
        uint32_t e = s[4], a = s[0];
        uint32_t first = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & s[5]) ^ (~e & s[6])) + esdm__sha256_k[t] + w[t];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void
esdm__sha256_plain(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        one_block(state, blocks + i * BLOCK);
}

static esdm__sha256_fn
fastest(void)
{
#ifdef ESDM__SHA256_X86
    if (esdm__cpu_has_sha())
        return esdm__sha256_ni;
#endif
    return esdm__sha256_plain;
}

static void
add_blocks(esdm__sha256 *sum, const uint8_t *blocks, size_t count)
{
    static _Atomic(esdm__sha256_fn) kernel; /* every thread finds the same one */
    esdm__sha256_fn add = atomic_load_explicit(&kernel, memory_order_relaxed);
    if (add == NULL) {
        add = fastest();
        atomic_store_explicit(&kernel, add, memory_order_relaxed);
    }
    add(sum->state, blocks, count);
}

void
esdm__sha256_init(esdm__sha256 *sum)
{
    memcpy(sum->state, initial, sizeof initial);
    sum->bytes = 0;
}

void
esdm__sha256_add(esdm__sha256 *sum, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    size_t held = (size_t) (sum->bytes % BLOCK);
    if (bytes == 0)
        return;
    sum->bytes += bytes;
    if (held > 0) {
        size_t more = bytes < BLOCK - held ? bytes : BLOCK - held;
        memcpy(sum->block + held, p, more);
        p += more;
        bytes -= more;
        if (held + more < BLOCK)
            return;
        add_blocks(sum, sum->block, 1);
    }
    if (bytes >= BLOCK)
        add_blocks(sum, p, bytes / BLOCK);
    memcpy(sum->block, p + bytes / BLOCK * BLOCK, bytes % BLOCK);
}

void
esdm__sha256_end(esdm__sha256 *sum, uint8_t ret_hash[ESDM__SHA256_BYTES])
{
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = sum->bytes * 8;
    uint8_t length[8];
    size_t held = (size_t) (sum->bytes % BLOCK);
    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t) (bits >> (56 - 8 * i));
    esdm__sha256_add(sum, padding, (held < 56 ? 56 : 120) - held);
    esdm__sha256_add(sum, length, sizeof length);
    for (unsigned i = 0; i < ESDM__SHA256_BYTES; i++)
        ret_hash[i] = (uint8_t) (sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

void
esdm__sha256_of(const void *data, size_t bytes, uint8_t ret_hash[ESDM__SHA256_BYTES])
{
    esdm__sha256 sum;
    esdm__sha256_init(&sum);
    esdm__sha256_add(&sum, data, bytes);
    esdm__sha256_end(&sum, ret_hash);
}
