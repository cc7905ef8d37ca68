/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The bytes of a stub file, and how they get into a folder. Needs libc alone: the router makes
 * stubs with it, and esdm-restore puts them back.
 */
#include "router/stub_build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_REPLACE 1u /* RENAME_NOREPLACE */

const char esdmnc__stub_notice[] =
    "This file holds no data: it stands for the container in ESDM that esdm_container names. To "
    "read "
    "it: esdm-run PROGRAM THIS_FILE. To make a plain file of it: esdm-cp THIS_FILE plain.nc";

/* ---- bytes ---------------------------------------------------------------------------------- */

typedef struct writer {
    unsigned char *bytes;
    size_t size;
    size_t used;
    bool full;
    bool wide; /**< CDF-5: counts have eight bytes */
} writer;

static void
put_bytes(writer *w, const void *bytes, size_t length)
{
    size_t padded = (length + 3) & ~(size_t) 3;
    if (w->full || padded > w->size - w->used) {
        w->full = true;
        return;
    }
    memcpy(w->bytes + w->used, bytes, length);
    memset(w->bytes + w->used + length, 0, padded - length);
    w->used += padded;
}

static void
put_uint(writer *w, uint32_t value)
{
    unsigned char bytes[4] = {(unsigned char) (value >> 24), (unsigned char) (value >> 16),
                              (unsigned char) (value >> 8), (unsigned char) value};
    put_bytes(w, bytes, 4);
}

static void
put_count(writer *w, size_t count)
{
    if (w->wide) {
        put_uint(w, 0);
    }
    put_uint(w, (uint32_t) count);
}

static void
put_attribute(writer *w, const char *name, const char *text)
{
    put_count(w, strlen(name));
    put_bytes(w, name, strlen(name));
    put_uint(w, ESDMNC_STUB_TYPE_CHAR);
    put_count(w, strlen(text));
    put_bytes(w, text, strlen(text));
}

size_t
esdmnc__stub_build(int version, const char *container, const esdmnc__stub_place *place,
                   unsigned char *bytes, size_t size)
{
    char text[17];
    writer w = {.bytes = bytes, .size = size, .wide = version == 5};
    const unsigned char magic[4] = {'C', 'D', 'F', (unsigned char) version};
    if (version == 1) {
        put_bytes(&w, ESDMNC_STUB_MAGIC, ESDMNC_STUB_MAGIC_LEN);
    } else {
        put_bytes(&w, magic, sizeof(magic));
        put_count(&w, 0);
    }
    put_uint(&w, 0); /* no dimensions */
    put_count(&w, 0);
    put_uint(&w, ESDMNC_STUB_TAG_ATTRIBUTES);
    put_count(&w, !place ? 2u : 4u + (place->number ? 2 : 0) + (place->site[0] ? 1 : 0));
    put_attribute(&w, "esdm_container", container);
    put_attribute(&w, "esdm_notice", esdmnc__stub_notice);
    if (place) {
        put_attribute(&w, "esdm_inode", place->inode);
        put_attribute(&w, "esdm_path", place->path);
    }
    if (place && place->number) {
        (void) snprintf(text, sizeof(text), "%016" PRIx64, place->number);
        put_attribute(&w, "esdm_number", text);
        (void) snprintf(text, sizeof(text), "%016" PRIx64, place->version);
        put_attribute(&w, "esdm_version", text);
    }
    if (place && place->site[0]) {
        put_attribute(&w, ESDMNC_STUB_SITE, place->site);
    }
    put_uint(&w, 0); /* no variables */
    put_count(&w, 0);
    return w.full ? 0 : w.used;
}

size_t
esdmnc__stub_before_text(const char *name, size_t length, unsigned char *bytes, size_t size)
{
    writer w = {.bytes = bytes, .size = size};
    put_uint(&w, (uint32_t) strlen(name));
    put_bytes(&w, name, strlen(name));
    put_uint(&w, ESDMNC_STUB_TYPE_CHAR);
    put_uint(&w, (uint32_t) length);
    return w.full ? 0 : w.used;
}

/* ---- files ---------------------------------------------------------------------------------- */

void
esdmnc__stub_inode(const struct stat *st, char *text, size_t size)
{
    (void) snprintf(text, size, "%llu:%llu", (unsigned long long) st->st_dev,
                    (unsigned long long) st->st_ino);
}

static int
write_all(int fd, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        bytes += n;
        length -= (size_t) n;
    }
    return 0;
}

/** Makes an empty file beside `path` with the permissions a plain create would give. */
static int
open_beside(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int) (slash - path + 1) : 0;
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        int n =
            snprintf(name, size, "%.*s.esdm-stub-%ld-%u", folder, path, (long) getpid(), attempt);
        if (n <= 0 || (size_t) n >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/** The real path of what a name in a folder is called. "": not known. */
static void
absolute_of(const char *path, char *absolute)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t) (slash - path) : 0;
    absolute[0] = '\0';
    if (length >= sizeof(folder)) {
        return;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (!realpath(slash ? (length ? folder : "/") : ".", absolute)) {
        absolute[0] = '\0';
        return;
    }
    size_t used = strlen(absolute);
    int n = snprintf(absolute + used, PATH_MAX - used, "/%s", slash ? slash + 1 : path);
    if (n < 0 || (size_t) n >= PATH_MAX - used) {
        absolute[0] = '\0';
    }
}

int
esdmnc__stub_put(const char *path, bool replace, const char *container, uint64_t number,
                 uint64_t version, const char *site, char *ret_absolute)
{
    char temporary[PATH_MAX];
    char inode[48];
    unsigned char bytes[ESDMNC_STUB_MAX];
    struct stat st;
    ret_absolute[0] = '\0';
    int fd = open_beside(path, temporary, sizeof(temporary));
    if (fd < 0) {
        return errno;
    }
    int status = fstat(fd, &st) == 0 ? 0 : errno;
    if (status == 0) {
        esdmnc__stub_inode(&st, inode, sizeof(inode));
        absolute_of(path, ret_absolute); /* without it a stub is still told by device and inode */
        const esdmnc__stub_place place = {.inode = inode,
                                          .path = ret_absolute,
                                          .number = number,
                                          .version = version,
                                          .site = site};
        size_t size = esdmnc__stub_build(1, container, &place, bytes, sizeof(bytes));
        status = size ? write_all(fd, bytes, size) : ENAMETOOLONG;
    }
    if (close(fd) != 0 && status == 0) {
        status = errno;
    }
    /* Not through the shim, which would let the container follow. */
    if (status == 0 && syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path,
                               replace ? 0u : NO_REPLACE) != 0) {
        status = errno;
    }
    if (status == EINVAL && !replace) { /* a file system that cannot say so */
        status = link(temporary, path) == 0 ? 0 : errno;
        (void) unlink(temporary);
    }
    if (status != 0) {
        (void) unlink(temporary);
    }
    return status;
}
