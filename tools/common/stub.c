/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Small files that stand for containers in folders. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/common.h"

#define NS_PER_S      UINT64_C(1000000000)
#define CLOCK_SKEW_NS (2 * NS_PER_S) /* files are stamped by the clock of their server */

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

static uint64_t
hexadecimal(const unsigned char *bytes, size_t size, const char *key, size_t key_size)
{
    g_autofree char *text = text_of(bytes, size, key, key_size);
    return text != NULL ? g_ascii_strtoull(text, NULL, 16) : 0;
}

bool
tool_stub_origin(const unsigned char *bytes, size_t size, char **ret_container, char **ret_path,
                 guint64 *ret_number)
{
    static const char number_key[16] = "\0\0\0\013esdm_number";
    /* Counted names, padded to four bytes; what is counted cannot hold these NULs. */
    static const char path_key[16] = "\0\0\0\011esdm_path";
    const unsigned char *stub = find_stub(bytes, size);
    size_t rest = stub == NULL ? 0 : size - (size_t) (stub - bytes);
    char *path = stub == NULL ? NULL : text_of(stub, rest, path_key, sizeof path_key);
    if (path == NULL)
        return false;
    *ret_container = NULL;
    *ret_path = path;
    *ret_number = hexadecimal(stub, rest, number_key, sizeof number_key);
    (void) tool_stub_names(stub, rest, keep_first, ret_container);
    return *ret_container != NULL;
}

/* What a stub tells. */
typedef struct stub {
    char *container; /* owned; NULL: there is no stub */
    uint64_t number; /* 0: none, of an earlier ESDM */
    uint64_t version;
    uint64_t copied_ns; /* when the copy was made */
    bool is_original;   /* else a copy */
    char *site;         /* owned; of the one that has it, zeros before the first commit */
} stub;

/* As netcdf-plugin/router/stub.c: where it was made it has the same inode. Network file systems
 * number devices differently on each node. */
static bool
is_original(const unsigned char *bytes, size_t size, const char *path, const struct stat *is)
{
    static const char inode_key[16] = "\0\0\0\012esdm_inode";
    static const char path_key[16] = "\0\0\0\011esdm_path";
    g_autofree char *made = text_of(bytes, size, inode_key, sizeof inode_key);
    g_autofree char *where = text_of(bytes, size, path_key, sizeof path_key);
    g_autofree char *inode = g_strdup_printf("%llu:%llu", (unsigned long long) is->st_dev,
                                             (unsigned long long) is->st_ino);
    const char *theirs = made != NULL ? strchr(made, ':') : NULL;
    if (theirs == NULL || strcmp(theirs, strchr(inode, ':')) != 0)
        return false;
    char *real = strcmp(made, inode) != 0 && where != NULL ? realpath(path, NULL) : NULL;
    bool same = strcmp(made, inode) == 0 || (real != NULL && strcmp(real, where) == 0);
    free(real);
    return same;
}

/* As netcdf-plugin/router/stub.c. */
static uint64_t
copied_ns(const char *path, const struct stat *is)
{
    struct statx more = {0};
    uint64_t written_ns = (uint64_t) is->st_mtim.tv_sec * NS_PER_S + (uint64_t) is->st_mtim.tv_nsec;
    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &more) != 0 || (more.stx_mask & STATX_BTIME) == 0)
        return (uint64_t) is->st_ctim.tv_sec * NS_PER_S + (uint64_t) is->st_ctim.tv_nsec;
    return MAX((uint64_t) more.stx_btime.tv_sec * NS_PER_S + more.stx_btime.tv_nsec, written_ns);
}

static void
read_stub(const char *path, stub *ret_stub)
{
    static const char number_key[16] = "\0\0\0\013esdm_number";
    static const char version_key[16] = "\0\0\0\014esdm_version";
    static const char site_key[16] = "\0\0\0\011esdm_site";
    unsigned char bytes[TOOL_STUB_BYTES];
    struct stat is;
    *ret_stub = (stub){.container = NULL};
    if (g_str_has_prefix(path, "esdm:"))
        return;
    /* Trees of large files are gone through without opening any. */
    if (stat(path, &is) != 0 || S_ISDIR(is.st_mode) || is.st_size > TOOL_STUB_BYTES)
        return;
    /* Not blocking: it may be a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        (void) close(fd);
    const unsigned char *at = size > 0 ? find_stub(bytes, (size_t) size) : NULL;
    if (at == NULL)
        return;
    size_t rest = (size_t) (bytes + size - at);
    (void) tool_stub_names(at, rest, keep_first, &ret_stub->container);
    ret_stub->is_original = is_original(at, rest, path, &is);
    ret_stub->copied_ns = ret_stub->is_original ? 0 : copied_ns(path, &is);
    ret_stub->number = hexadecimal(at, rest, number_key, sizeof number_key);
    ret_stub->version = hexadecimal(at, rest, version_key, sizeof version_key);
    if (ret_stub->version == 0)
        ret_stub->version = ret_stub->number;
    ret_stub->site = text_of(at, rest, site_key, sizeof site_key);
}

/* What of a stub goes with its container. */
static char *
container_of(stub *found)
{
    g_clear_pointer(&found->site, g_free);
    return found->container;
}

char *
tool_stub(const char *path)
{
    stub found;
    read_stub(path, &found);
    return container_of(&found);
}

char *
tool_stub_copy(const char *path)
{
    stub found;
    read_stub(path, &found);
    if (found.is_original)
        g_clear_pointer(&found.container, g_free);
    return container_of(&found);
}

char *
tool_stub_original(const char *path, guint64 *ret_number)
{
    stub found;
    read_stub(path, &found);
    if (!found.is_original)
        g_clear_pointer(&found.container, g_free);
    *ret_number = found.number;
    return container_of(&found);
}

/* As netcdf-plugin/router/table.c. */
static bool
is_elsewhere(const esdm_session *session, const stub *found)
{
    return found->site != NULL && strspn(found->site, "0") < strlen(found->site) &&
           !g_str_equal(found->site, esdm_session_site_id(session));
}

/* As netcdf-plugin/router/table.c. */
static bool
is_newer_here(esdm_session *session, const char *path, const char *name)
{
    struct stat is;
    esdm_container_info info;
    return stat(path, &is) == 0 && esdm_container_stat(session, name, &info, NULL) == ESDM_OK &&
           info.modified_ns >
               (uint64_t) is.st_mtim.tv_sec * 1000000000u + (uint64_t) is.st_mtim.tv_nsec;
}

/* As netcdf-plugin/router/table.c: the original stands for what was written anew in its place on
 * its site, a copy for what it was copied of. What has no number was made by the name.
 * @param anew it was written anew on another site. */
static bool
means_newest(esdm_session *session, const stub *found, bool anew)
{
    esdm_container *container;
    esdm_error ignored;
    uint64_t version = 0;
    if (found->number == 0 ||
        esdm_container_open(session, found->container, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                            &container, &ignored) != ESDM_OK)
        return true; /* who opens it is told what is wrong */
    uint64_t number = esdm_container_stub(container, &version);
    esdm_container_discard(container);
    return number == 0 || (number == found->number &&
                           ((found->is_original && !anew) || version == found->version));
}

static bool
is_there(esdm_session *session, const char *name)
{
    esdm_container_info info;
    return esdm_container_stat(session, name, &info, NULL) == ESDM_OK;
}

/* A copy is read as what its container is now. */
static void
tell_changed(esdm_session *session, const char *path, const stub *found)
{
    uint64_t ignored = 0;
    tool_written written = found->copied_ns == 0
                               ? TOOL_WRITTEN_NOT
                               : tool_written_since(session, found->container,
                                                    found->copied_ns + CLOCK_SKEW_NS, &ignored);
    if (written != TOOL_WRITTEN_NOT)
        tool_error("note: '%s' is a copy of the file that stands for '%s', which %s: this is what "
                   "it is now",
                   path, found->container,
                   written == TOOL_WRITTEN_YES ? "was written to after the copy was made"
                                               : "has a newer snapshot than the copy");
}

esdm_status
tool_stub_container(esdm_session *session, const char *path, char **ret_name, esdm_error *err)
{
    stub found;
    char former[ESDM_CONTAINER_NAME_MAX + 1];
    read_stub(path, &found);
    *ret_name = found.container;
    if (found.container == NULL) {
        g_clear_pointer(&found.site, g_free);
        return ESDM_OK;
    }
    bool elsewhere = is_elsewhere(session, &found);
    g_clear_pointer(&found.site, g_free);
    bool anew = elsewhere && !is_newer_here(session, path, found.container);
    if (means_newest(session, &found, anew)) {
        if (elsewhere && is_there(session, found.container))
            tool_error("note: '%s' was written on another site, with another configuration "
                       "(ESDM_CONFIG, ./esdm.json, --config); this is what this site has under "
                       "that name, 'esdm://%s'",
                       path, found.container);
        tell_changed(session, path, &found);
        return ESDM_OK;
    }
    if (elsewhere) {
        esdm_status status = tool_error_set(
            err, ESDM_ENOENT,
            "'%s' stands for a container of another site: a program wrote it there, with another "
            "configuration (ESDM_CONFIG, ./esdm.json, --config). This site has another one "
            "under that name: 'esdm://%s'",
            path, found.container);
        *ret_name = NULL;
        g_free(found.container);
        return status;
    }
    esdm_error why = {0};
    esdm_status status =
        esdm_container_of_stub(session, found.container, found.number, found.version, former, &why);
    *ret_name = NULL;
    if (status != ESDM_OK) {
        status = tool_error_set(err, status, "'%s' stands for an earlier container: %s", path,
                                why.message);
    } else {
        tool_error("'%s' stands for a container that was replaced since then; this is the former "
                   "one, '%s', which is kept for a while only",
                   path, former);
        *ret_name = g_strdup(former);
    }
    g_free(found.container);
    return status;
}

esdm_status
tool_normalise(const char *argument, char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err)
{
    esdm_status status = esdm_container_normalise(tool_container(argument), ret_name, err);
    g_autofree char *meant = status == ESDM_OK && argument[0] == '/' ? tool_stub(argument) : NULL;
    if (meant != NULL && !g_str_equal(meant, ret_name))
        return tool_error_set(err, ESDM_EINVAL,
                              "'%s' is a file that stands for container '%s', not for one that is "
                              "called as its path: say 'esdm://%s'",
                              argument, meant, meant);
    return status;
}

esdm_status
tool_container_name(esdm_session *session, const char *argument,
                    char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err)
{
    g_autofree char *name = NULL;
    esdm_status status = tool_stub_container(session, argument, &name, err);
    return status != ESDM_OK ? status
                             : esdm_container_normalise(
                                   name != NULL ? name : tool_container(argument), ret_name, err);
}
