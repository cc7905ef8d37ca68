/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Files that are read past the kernel's memory, with --direct.
 *
 * Values that are stored as they are lie in the kernel's memory already, in pages of the packs. In
 * pages of the mounted file they lie there again, after two more copies. What has to be decoded, or
 * comes from another machine, or has other readers, the kernel keeps all the same. It is an option,
 * as each read is then a request: 12 to 40 us, which is much for a few KiB. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/fuse.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "esdm-mount/esdm-mount.h"

#define SMALLEST_BYTES (UINT64_C(8) << 20)

/* From this version of the protocol on (Linux 6.6) files that are read directly can be mapped into
 * memory by several programs, when that is asked for: bit 36 of the flags. */
#define MAPPED_MINOR  39u
#define MAPPED_FLAGS2 (1u << 4)

static atomic_bool asks; /* the next answer of this size is that to FUSE_INIT */
static atomic_bool can_be_mapped;

void
mount_direct_init(const struct fuse_conn_info *conn)
{
    atomic_store(&asks,
                 conn->proto_major == FUSE_KERNEL_VERSION && conn->proto_minor >= MAPPED_MINOR);
}

bool
mount_is_direct(const mount_state *state, const mount_node *node)
{
    return atomic_load(&can_be_mapped) && state->direct && node->size >= SMALLEST_BYTES &&
           node->stored_bytes >= node->size / 16 * 15;
}

/* libfuse 3.14 knows nothing of the flag, and later ones name it in different ways. So it is added
 * to what libfuse writes. @return whether this was the answer to FUSE_INIT. */
static bool
ask_for_mapping(const struct iovec *parts, int count)
{
    if (count != 2 || parts[1].iov_len != sizeof(struct fuse_init_out))
        return false;
    struct fuse_init_out *answer = parts[1].iov_base;
    if (answer->major != FUSE_KERNEL_VERSION)
        return false;
    answer->flags |= FUSE_INIT_EXT;
    answer->flags2 |= MAPPED_FLAGS2;
    return true;
}

/** The program's own, which libfuse finds before that of the C library. */
#pragma GCC visibility push(default)
ssize_t
writev(int fd, const struct iovec *parts, int count)
{
    bool is_answer = atomic_load(&asks) && ask_for_mapping(parts, count);
    ssize_t written = syscall(SYS_writev, fd, parts, count);
    if (is_answer) {
        atomic_store(&asks, false);
        atomic_store(&can_be_mapped, written > 0);
    }
    return written;
}
#pragma GCC visibility pop
