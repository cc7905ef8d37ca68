/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_IDS_H
#define ESDM_BASE_IDS_H

/** @file Random identifiers, wall-clock time, and the name of this process. */

#include <stddef.h>
#include <stdint.h>

/** 32 hex digits and NUL. */
#define ESDM__UUID_BYTES 33

/** 128 random bits from the operating system as lower-case hex digits. Fork-safe. */
void esdm__uuid_new(char ret_uuid[ESDM__UUID_BYTES]);

/** Nanoseconds since 1970-01-01 UTC. */
uint64_t esdm__now_ns(void);

/** "user@host:pid program", cut to `bytes`; esdm__program_name(). */
void esdm__writer_name(char *ret_name, size_t bytes);

#endif
