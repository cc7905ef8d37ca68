/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Small files that stand for containers in folders. */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/common.h"

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

/* Bytes of an esdm:// path that were copied to a file begin like a file of the container's format;
 * the stub follows (netcdf-plugin/router/stub_kinds.c). NULL: there is none. */
static const unsigned char *
find_stub(const unsigned char *bytes, size_t size)
{
    /* Its magic; no dimensions; attributes, of which the first one names the container. */
    static const unsigned char begin[20] = "CDF\001ESDM\0\0\0\0\0\0\0\0\0\0\0\014";
    static const unsigned char name[20] = "\0\0\0\016esdm_container";
    static const size_t between = 4; /* the number of attributes */
    const unsigned char *found = memmem(bytes, size, begin, sizeof begin);
    size_t rest = found == NULL ? 0 : size - (size_t) (found - bytes);
    bool whole = rest > sizeof begin + between + sizeof name &&
                 memcmp(found + sizeof begin + between, name, sizeof name) == 0;
    bool shaped = size > 4 && (memcmp(bytes, "CDF", 3) == 0 || memcmp(bytes, "\x89HDF", 4) == 0);
    return whole && shaped ? found : NULL;
}

/* The text attribute `key` (with its NUL-padded name of `key_size` bytes); owned, NULL: none. */
static char *
text_of(const unsigned char *bytes, size_t size, const char *key, size_t key_size)
{
    const unsigned char *at = memmem(bytes, size, key, key_size);
    size_t rest = at != NULL ? size - (size_t) (at - bytes) - key_size : 0;
    if (rest < 8)
        return NULL;
    at += key_size;
    uint32_t length = number_at(at + 4);
    return length <= rest - 8 ? g_strndup((const char *) at + 8, length) : NULL;
}

bool
tool_stub_origin(const unsigned char *bytes, size_t size, char **ret_container, char **ret_path)
{
    /* Counted names, padded to four bytes; what is counted cannot hold these NULs. */
    static const char path_key[16] = "\0\0\0\011esdm_path";
    const unsigned char *stub = find_stub(bytes, size);
    size_t rest = stub == NULL ? 0 : size - (size_t) (stub - bytes);
    char *path = stub == NULL ? NULL : text_of(stub, rest, path_key, sizeof path_key);
    if (path == NULL)
        return false;
    *ret_container = NULL;
    *ret_path = path;
    (void) tool_stub_names(stub, rest, keep_first, ret_container);
    return *ret_container != NULL;
}

char *
tool_stub(const char *path)
{
    unsigned char bytes[TOOL_STUB_BYTES];
    char *name = NULL;
    struct stat is;
    if (g_str_has_prefix(path, "esdm:"))
        return NULL;
    /* Trees of large files are gone through without opening any. */
    if (stat(path, &is) != 0 || S_ISDIR(is.st_mode) || is.st_size > TOOL_STUB_BYTES)
        return NULL;
    /* Not blocking: it may be a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        (void) close(fd);
    const unsigned char *stub = size > 0 ? find_stub(bytes, (size_t) size) : NULL;
    if (stub != NULL)
        (void) tool_stub_names(stub, (size_t) (bytes + size - stub), keep_first, &name);
    return name;
}

esdm_status
tool_container_name(const char *argument, char ret_name[ESDM_CONTAINER_NAME_MAX + 1],
                    esdm_error *err)
{
    g_autofree char *stub = tool_stub(argument);
    return esdm_container_normalise(stub != NULL ? stub : tool_container(argument), ret_name, err);
}
