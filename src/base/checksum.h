/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_CHECKSUM_H
#define ESDM_BASE_CHECKSUM_H

/** @file XXH3, 64 bits (xxHash ≥ 0.8.0): the checksum of everything ESDM stores. */

#include <stddef.h>
#include <stdint.h>

uint64_t esdm__checksum(const void *data, size_t bytes);
/** XXH3 with 128 bits: low ones first. */
void esdm__checksum128(const void *data, size_t bytes, uint64_t ret[2]);

#endif
