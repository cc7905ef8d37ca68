/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/handover_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"

#define VERSION 1u

uint32_t
esdm__handover_form(void)
{
    return VERSION << 24 |
           (uint32_t) (sizeof(esdm__handover_request) << 12 ^ sizeof(esdm__handover_answer));
}

/* ---- sockets ------------------------------------------------------------------------------- */

static socklen_t
address_of(const char *name, struct sockaddr_un *address)
{
    size_t bytes = strlen(name);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, name, bytes); /* after a NUL: abstract */
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int
new_socket(void)
{
    return esdm__descriptor_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

/* Keeps errno. @return -1. */
static int
give_up(int fd)
{
    int why = errno;
    (void) esdm__descriptor_close(fd);
    errno = why;
    return -1;
}

int
esdm__handover_listen(const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(name, &address);
    int fd = new_socket();
    if (fd < 0)
        return -1;
    if (bind(fd, (const struct sockaddr *) &address, bytes) != 0 || listen(fd, SOMAXCONN) != 0)
        return give_up(fd);
    return fd;
}

int
esdm__handover_connect(const char *name, unsigned timeout_s)
{
    struct sockaddr_un address;
    const struct timeval timeout = {.tv_sec = (time_t) timeout_s};
    socklen_t bytes = address_of(name, &address);
    int fd = new_socket();
    if (fd < 0)
        return -1;
    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (const struct sockaddr *) &address, bytes) != 0)
        return give_up(fd);
    return fd;
}

bool
esdm__handover_peer(int socket, pid_t *ret_process)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0)
        return false;
    *ret_process = who.pid;
    return who.uid == geteuid();
}

/* ---- messages ------------------------------------------------------------------------------ */

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

bool
esdm__handover_send(int socket, const void *head, size_t head_bytes, const void *tail,
                    size_t tail_bytes, int fd)
{
    struct iovec parts[2] = {{(void *) (uintptr_t) head, head_bytes},
                             {(void *) (uintptr_t) tail, tail_bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    control c;
    if (fd >= 0) {
        memset(&c, 0, sizeof c);
        message.msg_control = c.bytes;
        message.msg_controllen = sizeof c.bytes;
        struct cmsghdr *along = CMSG_FIRSTHDR(&message);
        along->cmsg_level = SOL_SOCKET;
        along->cmsg_type = SCM_RIGHTS;
        along->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(along), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

ptrdiff_t
esdm__handover_receive(int socket, void *message, size_t bytes, int *ret_fd)
{
    control c;
    struct iovec part = {message, bytes};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = c.bytes,
                       .msg_controllen = sizeof c.bytes};
    ssize_t got;
    *ret_fd = -1;
    do
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *along = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (along != NULL && along->cmsg_level == SOL_SOCKET && along->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(along), sizeof *ret_fd);
    return got;
}

/* ---- memory -------------------------------------------------------------------------------- */

bool
esdm__window_make(esdm__window *window, uint64_t bytes, int *ret_fd)
{
    int fd = memfd_create("esdm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *data = MAP_FAILED;
    /* All at once: a page that cannot be had later would kill the program. */
    if (fd >= 0 && fallocate(fd, 0, 0, (off_t) bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        data = mmap(NULL, (size_t) bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        if (fd >= 0)
            (void) close(fd);
        return false;
    }
    esdm__window_clear(window);
    *window = (esdm__window){data, bytes};
    *ret_fd = fd;
    return true;
}

bool
esdm__window_take(esdm__window *window, uint64_t bytes, int fd)
{
    struct stat file;
    void *data = MAP_FAILED;
    int seals = fcntl(fd, F_GET_SEALS);
    if (bytes > 0 && bytes <= ESDM__HANDOVER_WINDOW_MOST && seals >= 0 &&
        (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &file) == 0 && file.st_size >= (off_t) bytes)
        data = mmap(NULL, (size_t) bytes, PROT_READ, MAP_SHARED, fd, 0);
    (void) close(fd);
    if (data == MAP_FAILED)
        return false;
    esdm__window_clear(window);
    *window = (esdm__window){data, bytes};
    return true;
}

void
esdm__window_clear(esdm__window *window)
{
    if (window->data != NULL)
        (void) munmap(window->data, (size_t) window->bytes);
    *window = (esdm__window){0};
}
