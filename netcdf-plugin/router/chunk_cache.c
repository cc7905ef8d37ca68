/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * $ESDM_NC_CHUNK_CACHE: the chunk cache of plain netCDF-4 files, where the program states none. A
 * variable that is read across its chunks needs all that it meets in memory at once; with less,
 * each read decompresses all of them again.
 */
#include "router/overrides.h"

#include <stdlib.h>

/* HDF5 finds a chunk by its number modulo the slots, and two chunks in one slot drive each other
 * out: more slots than chunks of a usual size, and a prime number of them. */
#define CHUNK_BYTES 16384
#define SLOTS_LEAST 4133 /* netCDF's own */
#define SLOTS_MOST  262147
#define PREEMPTION  0.75f

static bool
is_prime(size_t number)
{
    for (size_t i = 3; i * i <= number; i += 2) {
        if (number % i == 0) {
            return false;
        }
    }
    return number % 2 != 0;
}

static size_t
slots_for(size_t bytes)
{
    size_t slots = bytes / CHUNK_BYTES;
    slots = slots < SLOTS_LEAST ? SLOTS_LEAST : slots > SLOTS_MOST ? SLOTS_MOST : slots;
    while (!is_prime(slots)) {
        slots++;
    }
    return slots;
}

/** "268435456"; 0: it is none. esdm-run has made it a number. */
static size_t
stated_bytes(void)
{
    const char *text = secure_getenv("ESDM_NC_CHUNK_CACHE");
    char *end = NULL;
    unsigned long long bytes = text && text[0] != '-' ? strtoull(text, &end, 10) : 0;
    return end && end != text && *end == '\0' && bytes <= SIZE_MAX / 2 ? (size_t) bytes : 0;
}

void
esdmnc__chunk_cache_set(const esdmnc__library *library)
{
    size_t bytes = stated_bytes();
    if (bytes == 0) {
        return;
    }
    int status = CALL_REAL(library, nc_set_chunk_cache, bytes, slots_for(bytes), PREEMPTION);
    esdmnc_debug("%s: chunk cache of plain files: %zu bytes: status %d", library->api.path, bytes,
                 status);
}

/* ---- a program's own ------------------------------------------------------------------------- */

ESDMNC_EXPORT int nc_set_chunk_cache_ints(int size, int nelems, int preemption);

/** A program may state its cache before its first file: CALLER() has given the copy the other one
 *  by then, so that the program's stays. */
ESDMNC_EXPORT int
nc_set_chunk_cache(size_t size, size_t nelems, float preemption)
{
    esdmnc__library *library = CALLER();
    return CALL_REAL(library, nc_set_chunk_cache, size, nelems, preemption);
}

/** The same, as Fortran has it. */
int
nc_set_chunk_cache_ints(int size, int nelems, int preemption)
{
    esdmnc__library *library = CALLER();
    return CALL_REAL(library, nc_set_chunk_cache_ints, size, nelems, preemption);
}
