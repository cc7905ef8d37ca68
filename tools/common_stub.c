/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Small files that stand for containers in folders. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

static uint32_t
number_at(const unsigned char *bytes)
{
    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

/* A counted name, padded to four bytes, the type, a counted text. */
size_t
tool_stub_names(const unsigned char *bytes, size_t size, void (*visit)(char *name, void *user),
                void *user)
{
    static const char key[16] = "esdm_container";
    const unsigned char *at = bytes;
    const unsigned char *end = bytes + size;
    size_t count = 0;
    while ((at = memmem(at, (size_t) (end - at), key, sizeof key)) != NULL) {
        at += sizeof key;
        if (end - at < 8)
            break;
        uint32_t length = number_at(at + 4);
        if (length <= (size_t) (end - at) - 8) {
            visit(g_strndup((const char *) at + 8, length), user);
            count++;
        }
    }
    return count;
}

/* The name comes before all other texts, which may look like one. */
static void
keep_first(char *name, void *user)
{
    char **kept = user;
    if (*kept == NULL)
        *kept = name;
    else
        g_free(name);
}

char *
tool_stub(const char *path)
{
    static const char magic[] = "CDF\001ESDM"; /* netcdf-plugin/router/stub.c */
    unsigned char bytes[TOOL_STUB_BYTES];
    char *name = NULL;
    if (g_str_has_prefix(path, "esdm:"))
        return NULL;
    /* Not blocking: it may be a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        (void) close(fd);
    if (size > (ssize_t) sizeof magic && memcmp(bytes, magic, sizeof magic - 1) == 0)
        (void) tool_stub_names(bytes, (size_t) size, keep_first, &name);
    return name;
}
