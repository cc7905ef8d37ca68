/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Stub files: what a folder shows for a container. A stub is a valid, empty classic NetCDF file, so
 * that programs without ESDM say "no variables" instead of "damaged":
 *
 *   "CDF\001", numrecs = "ESDM", no dimensions, text attributes, no variables.
 *
 * Attributes name the container and where the stub was made: device, inode, path. Together they
 * tell the original from a copy, which must not be written through. The device number alone would
 * not do: network file systems number differently on each node.
 */
#include "router/stub.h"

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

#define NS_PER_S UINT64_C(1000000000)

size_t
esdmnc__stub_bytes(const char *container, int format, unsigned char *bytes, size_t size)
{
    size_t length = 0;
    if (format != NC_FORMAT_CLASSIC) {
        length = esdmnc__stub_prefix(container, format, bytes, size);
        size_t padded = (length + 3) & ~(size_t) 3;
        if (length == 0 || padded > size) {
            return 0;
        }
        memset(bytes + length, 0, padded - length);
        length = padded;
    }
    size_t rest = esdmnc__stub_build(1, container, NULL, bytes + length, size - length);
    return rest ? length + rest : 0;
}

int
esdmnc__stub_write(const char *path, const char *container, uint64_t number, uint64_t version,
                   const char *site)
{
    char absolute[PATH_MAX];
    int status = esdmnc__stub_put(path, true, container, number, version, site, absolute);
    if (status == 0 && absolute[0]) {
        esdmnc__living_note(absolute, container);
    }
    if (status != 0) {
        esdmnc_debug("cannot write the stub %s: %s", path, strerror(status));
    }
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *bytes;
    size_t size;
    size_t at;
    bool bad;
} reader;

static uint32_t
get_uint(reader *r)
{
    if (r->bad || r->size - r->at < 4) {
        r->bad = true;
        return 0;
    }
    const unsigned char *b = r->bytes + r->at;
    r->at += 4;
    return (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16 | (uint32_t) b[2] << 8 | b[3];
}

/** A counted text, padded to four bytes; borrowed. */
static const char *
get_text(reader *r, size_t length)
{
    size_t padded = (length + 3) & ~(size_t) 3;
    if (r->bad || padded < length || r->size - r->at < padded) {
        r->bad = true;
        return NULL;
    }
    const char *text = (const char *) r->bytes + r->at;
    r->at += padded;
    return text;
}

typedef struct fields {
    char container[ESDMNC_NAME_MAX + 1];
    char inode[48];
    char path[PATH_MAX];
    char number[17];
    char version[17];
    char site[ESDMNC_SITE_BYTES];
    bool annotated;
} fields;

static void
take_field(fields *f, const char *name, size_t name_length, const char *text, size_t length)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
    } known[] = {{"esdm_container", f->container, sizeof(f->container)},
                 {"esdm_inode", f->inode, sizeof(f->inode)},
                 {"esdm_path", f->path, sizeof(f->path)},
                 {"esdm_number", f->number, sizeof(f->number)},
                 {"esdm_version", f->version, sizeof(f->version)},
                 {ESDMNC_STUB_SITE, f->site, sizeof(f->site)}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].name) == name_length && memcmp(known[i].name, name, name_length) == 0 &&
            length < known[i].size && !memchr(text, '\0', length)) {
            memcpy(known[i].text, text, length);
            known[i].text[length] = '\0';
        }
    }
    f->annotated = f->annotated || name_length < 5 || memcmp(name, "esdm_", 5) != 0;
}

/** @param exact whether nothing may follow. */
static int
parse_header(const unsigned char *bytes, size_t size, bool exact, fields *ret)
{
    reader r = {.bytes = bytes, .size = size, .at = ESDMNC_STUB_MAGIC_LEN};
    uint32_t tag = get_uint(&r);
    uint32_t count = get_uint(&r);
    if (tag != 0 || count != 0 || get_uint(&r) != ESDMNC_STUB_TAG_ATTRIBUTES) {
        return NC_ENOTNC;
    }
    count = get_uint(&r);
    for (uint32_t i = 0; i < count && !r.bad; i++) {
        size_t name_length = get_uint(&r);
        const char *name = get_text(&r, name_length);
        uint32_t type = get_uint(&r);
        size_t length = get_uint(&r);
        const char *text = type == ESDMNC_STUB_TYPE_CHAR ? get_text(&r, length) : NULL;
        if (name && text) {
            take_field(ret, name, name_length, text, length);
        } else {
            r.bad = true; /* some other program wrote into it */
        }
    }
    r.bad = r.bad || (exact && (get_uint(&r) != 0 || get_uint(&r) != 0 || r.at != size));
    return r.bad || !ret->container[0] ? NC_ENOTNC : NC_NOERR;
}

/** Reads the first bytes of a regular file. @return bytes read; -1 when there is none. */
static ssize_t
file_head(const char *path, unsigned char *bytes, size_t size, struct stat *st)
{
    /* Not blocking: the path may be a FIFO. Not through the shim, which shows other bytes. */
    int fd =
        (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode)) {
        n = pread(fd, bytes, size, 0);
    }
    (void) close(fd);
    return n;
}

static bool
is_original(const char *path, const struct stat *st, const fields *f)
{
    char inode[48];
    esdmnc__stub_inode(st, inode, sizeof(inode));
    if (strcmp(inode, f->inode) == 0) {
        return true;
    }
    /* Another device number, but the same inode at the same path: the same file seen elsewhere. */
    const char *mine = strchr(inode, ':');
    const char *theirs = strchr(f->inode, ':');
    char absolute[PATH_MAX];
    return mine && theirs && strcmp(mine, theirs) == 0 && f->path[0] && realpath(path, absolute) &&
           strcmp(absolute, f->path) == 0;
}

/** NC_NOERR, ENOENT (no stub), NC_ENOTNC. */
static int
parse(const unsigned char *bytes, size_t size, fields *ret)
{
    size_t offset;
    if (!esdmnc__stub_find(bytes, size, &offset)) {
        return ENOENT;
    }
    int status = parse_header(bytes + offset, size - offset, offset > 0, ret);
    return offset > 0 && status == NC_ENOTNC ? ENOENT : status; /* another file, then */
}

static void
fill_stub(const fields *f, bool is_original, esdmnc__stub *ret)
{
    esdmnc__text_copy(ret->container, f->container);
    ret->is_original = is_original;
    ret->number = strtoull(f->number, NULL, 16);
    ret->version = f->version[0] ? strtoull(f->version, NULL, 16) : ret->number;
    esdmnc__text_copy(ret->site, f->site);
    ret->annotated = f->annotated;
}

/** When a copy got its bytes: a file that was written over is older, one that keeps the time of its
 *  original is younger than it says. */
static uint64_t
copied_ns(const char *path, const struct stat *st)
{
    struct statx stx = {0};
    uint64_t written_ns = (uint64_t) st->st_mtim.tv_sec * NS_PER_S + (uint64_t) st->st_mtim.tv_nsec;
    /* Not through the shim, which shows the container's times. */
    if (syscall(SYS_statx, AT_FDCWD, path, 0, STATX_BTIME, &stx) != 0 ||
        !(stx.stx_mask & STATX_BTIME)) {
        return (uint64_t) st->st_ctim.tv_sec * NS_PER_S + (uint64_t) st->st_ctim.tv_nsec;
    }
    uint64_t made_ns = (uint64_t) stx.stx_btime.tv_sec * NS_PER_S + stx.stx_btime.tv_nsec;
    return made_ns > written_ns ? made_ns : written_ns;
}

int
esdmnc__stub_parse(const void *bytes, size_t size, esdmnc__stub *ret)
{
    fields f = {0};
    int status = parse(bytes, size < ESDMNC_STUB_MAX ? size : ESDMNC_STUB_MAX, &f);
    if (status == NC_NOERR) {
        fill_stub(&f, false, ret);
    }
    return status;
}

int
esdmnc__stub_read(const char *path, esdmnc__stub *ret)
{
    unsigned char bytes[ESDMNC_STUB_MAX];
    struct stat st;
    int saved = errno;
    ssize_t n = file_head(path, bytes, sizeof(bytes), &st);
    errno = saved;
    fields f = {0};
    ret->remains = false;
    /* Of what is larger than any stub the magic number is enough. */
    bool small = n >= 0 && st.st_size <= (off_t) sizeof(bytes);
    size_t looked_at = small || n < ESDMNC_STUB_MAGIC_LEN ? (size_t) n : ESDMNC_STUB_MAGIC_LEN;
    int status = n < 0 ? ENOENT : parse(bytes, looked_at, &f);
    if (status != NC_NOERR) {
        if (status == NC_ENOTNC) {
            esdmnc_debug("%s begins like a stub but is damaged", path);
        }
        ret->remains = n > 0 && esdmnc__stub_remains(bytes, (size_t) n, ret->container);
        return status;
    }
    fill_stub(&f, is_original(path, &st, &f), ret);
    ret->copied_ns = ret->is_original ? 0 : copied_ns(path, &st);
    errno = saved;
    return NC_NOERR;
}

/** Where the text of an attribute begins; 0: there is none of that length. */
static size_t
text_at(const unsigned char *bytes, size_t size, const char *name, size_t length)
{
    unsigned char head[40]; /* what stands before it, as it is written */
    size_t used = esdmnc__stub_before_text(name, length, head, sizeof(head));
    const unsigned char *found = used ? memmem(bytes, size, head, used) : NULL;
    size_t at = found ? (size_t) (found - bytes) + used : 0;
    return at + length <= size ? at : 0;
}

/** Writes the text of an attribute in place, as a file that is written anew keeps its inode, owner
 *  and permissions. ENOENT: there is no stub, or it has no such attribute of that length. */
static int
put_in_place(const char *path, const char *name, const char *text, size_t length)
{
    unsigned char bytes[ESDMNC_STUB_MAX];
    struct stat st;
    fields f = {0};
    int fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return errno;
    }
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= ESDMNC_STUB_MAX;
    ssize_t n = fits ? pread(fd, bytes, sizeof(bytes), 0) : -1;
    int status = n > 0 && parse(bytes, (size_t) n, &f) == NC_NOERR ? NC_NOERR : ENOENT;
    size_t at = status == NC_NOERR ? text_at(bytes, (size_t) n, name, length) : 0;
    if (at == 0) {
        status = ENOENT;
    } else if (pwrite(fd, text, length, (off_t) at) != (ssize_t) length) {
        status = EIO;
    }
    return close(fd) != 0 && status == NC_NOERR ? errno : status;
}

int
esdmnc__stub_renew(const char *path, uint64_t version)
{
    esdmnc__stub stub;
    char text[17];
    if (esdmnc__stub_read(path, &stub) != NC_NOERR || !stub.is_original) {
        return ENOENT;
    }
    if (stub.version == version) {
        return NC_NOERR;
    }
    (void) snprintf(text, sizeof(text), "%016" PRIx64, version);
    int status = put_in_place(path, "esdm_version", text, 16);
    if (status == ENOENT) { /* made by an earlier ESDM */
        status = esdmnc__stub_write(path, stub.container, stub.number, version, stub.site);
    }
    return status;
}

int
esdmnc__stub_settle(const char *path, const char *site)
{
    return put_in_place(path, ESDMNC_STUB_SITE, site, ESDMNC_SITE_BYTES - 1);
}

void
esdmnc__stub_drop(const char *path, const char *container)
{
    esdmnc__stub stub;
    if (esdmnc__stub_read(path, &stub) == NC_NOERR && stub.is_original &&
        strcmp(stub.container, container) == 0) {
        (void) unlink(path);
    }
}
