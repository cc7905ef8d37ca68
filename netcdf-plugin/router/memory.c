/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nc_open_mem() and nc_open_memio() with the bytes of a stub: a program that has read a file and
 * opens what it read. It gets the container. Changes stay in memory, as those of any image, and
 * nc_close_memio() gives the bytes back as they came.
 */
#include "router/router.h"

#include <stdatomic.h>
#include <stdlib.h>

/** One open image. */
typedef struct image {
    struct image *next;
    int instance;
    int ncid;
    NC_memio memory; /**< ours unless NC_MEMIO_LOCKED is set */
} image;

static image *images;
/** Guards `images`. Spins: held for a few pointer steps only. */
static atomic_flag images_lock = ATOMIC_FLAG_INIT;

static void
images_acquire(void)
{
    while (atomic_flag_test_and_set_explicit(&images_lock, memory_order_acquire)) {
    }
}

static void
images_release(void)
{
    atomic_flag_clear_explicit(&images_lock, memory_order_release);
}

void
esdmnc__memory_forked(void)
{
    images_release();
}

bool
esdmnc__memory_stub(const NC_memio *memory, esdmnc__stub *ret_stub)
{
    esdmnc__stub stub;
    if (!memory || !memory->memory ||
        esdmnc__stub_parse(memory->memory, memory->size, &stub) != NC_NOERR) {
        return false;
    }
    if (ret_stub) {
        *ret_stub = stub;
    }
    return true;
}

int
esdmnc__memory_opened(int instance, int ncid, const NC_memio *memory)
{
    image *new = malloc(sizeof(*new));
    if (!new) {
        return NC_ENOMEM;
    }
    *new = (image){.instance = instance, .ncid = ncid, .memory = *memory};
    images_acquire();
    new->next = images;
    images = new;
    images_release();
    return NC_NOERR;
}

void
esdmnc__memory_closed(int instance, int ncid, NC_memio *ret)
{
    images_acquire();
    image **link = &images;
    while (*link && ((*link)->instance != instance || (*link)->ncid != ncid)) {
        link = &(*link)->next;
    }
    image *found = *link;
    if (found) {
        *link = found->next;
    }
    images_release();
    if (found && ret) {
        *ret = (NC_memio){.size = found->memory.size, .memory = found->memory.memory};
    } else if (found && !(found->memory.flags & NC_MEMIO_LOCKED)) {
        free(found->memory.memory);
    }
    free(found);
}
