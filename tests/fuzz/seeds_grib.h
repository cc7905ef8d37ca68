/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_FUZZ_SEEDS_GRIB_H
#define TESTS_FUZZ_SEEDS_GRIB_H

/** @file Messages that ecCodes makes. */

#include <stddef.h>
#include <stdint.h>

/** Has each saved: type and number of values, then the message. */
void seeds_grib(void (*save)(const void *head, size_t head_bytes, const void *message,
                             size_t bytes));

#endif
