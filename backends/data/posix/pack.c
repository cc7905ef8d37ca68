/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Writing packs. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "posix.h"

/* Pieces handed to one system call, and bytes: longer calls are at times ten times slower on ext4.
 */
#define BATCH      64
#define CALL_BYTES ((size_t) 1 << 20)

typedef struct pack {
    posix__target *target; /* borrowed */
    int fd;
    bool entry_synced; /* the directory entry is on stable storage */
    uint64_t length_bytes;
    char file[POSIX__FILE_BYTES];
} pack;

/* Who may read is what the rights of the directory say, whatever the umask of who writes: the
 * others of a group must not see containers whose data they cannot read. SQLite makes its files
 * likewise. */
static void
let_read(const posix__target *target, int fd)
{
    struct stat folder, file;
    if (fstat(target->fd, &folder) != 0 || fstat(fd, &file) != 0)
        return;
    mode_t wanted = (file.st_mode | (folder.st_mode & 0444)) & 0777;
    if (wanted != (file.st_mode & 0777))
        (void) !fchmod(fd, wanted);
}

/* A maker was killed, or is still at work: makes the folder, with the rights of the others. */
static int
make_shard(const posix__target *target, const char *file)
{
    struct stat folder;
    char shard[3] = {file[0], file[1], '\0'};
    if (mkdirat(target->fd, shard, 0777) != 0)
        return errno == EEXIST ? 0 : -1;
    if (fstat(target->fd, &folder) == 0)
        (void) !fchmodat(target->fd, shard, folder.st_mode & 07777, 0);
    return 0;
}

static int
create_file(const posix__target *target, const char *file)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = openat(target->fd, file, flags, 0666);
    if (fd < 0 && errno == ENOENT && make_shard(target, file) == 0)
        fd = openat(target->fd, file, flags, 0666);
    if (fd >= 0)
        let_read(target, fd);
    return fd;
}

esdm_status
posix__pack_create(void *self, const char *name, void **ret_pack, esdm_error *err)
{
    posix__target *target = self;
    char file[POSIX__FILE_BYTES];
    esdm_status status = posix__file_name(name, file, err);
    if (status != ESDM_OK)
        return status;
    pack *created = malloc(sizeof *created);
    if (created == NULL)
        return esdm__error_nomem(err, sizeof *created, "a pack");
    int fd = esdm__descriptor_keep(create_file(target, file));
    if (fd < 0) {
        status = esdm__error_set_errno(err, errno, "posix: cannot create pack '%s/%s'",
                                       target->directory, file);
        free(created);
        return status;
    }
    *created = (pack){.target = target, .fd = fd};
    memcpy(created->file, file, sizeof file);
    *ret_pack = created;
    return ESDM_OK;
}

/* Takes `done` bytes off the front of the pieces. */
static void
advance(struct iovec **vec, int *count, size_t done)
{
    while (*count > 0 && done >= (*vec)->iov_len) {
        done -= (*vec)->iov_len;
        (*vec)++;
        (*count)--;
    }
    if (*count > 0) {
        (*vec)->iov_base = (char *) (*vec)->iov_base + done;
        (*vec)->iov_len -= done;
    }
}

/* One call. */
static ssize_t
write_some(int fd, const struct iovec *vec, int count, uint64_t position)
{
    struct iovec few[BATCH];
    size_t left = CALL_BYTES;
    int n = 0;
    while (n < count && left > 0) {
        few[n] = vec[n];
        few[n].iov_len = few[n].iov_len < left ? few[n].iov_len : left;
        left -= few[n++].iov_len;
    }
    return pwritev(fd, few, n, (off_t) position);
}

/* Writes all pieces of one batch from *end on and moves it. Returns 0 or an errno. */
static int
write_batch(int fd, struct iovec *vec, int count, uint64_t *end)
{
    advance(&vec, &count, 0);
    while (count > 0) {
        ssize_t n = write_some(fd, vec, count, *end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return EIO;
        *end += (uint64_t) n;
        advance(&vec, &count, (size_t) n);
    }
    return 0;
}

static int
write_pieces(int fd, const esdm_iov *iov, size_t niov, uint64_t *end)
{
    struct iovec vec[BATCH];
    int why = 0;
    while (niov > 0 && why == 0) {
        int count = 0;
        for (; niov > 0 && count < BATCH; iov++, niov--) {
            if (iov->bytes > 0)
                vec[count++] =
                    (struct iovec){.iov_base = (void *) iov->data, .iov_len = iov->bytes};
        }
        why = write_batch(fd, vec, count, end);
    }
    return why;
}

esdm_status
posix__pack_append(void *self, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                   esdm_error *err)
{
    pack *to = self;
    uint64_t end = to->length_bytes;
    for (size_t i = 0; i < niov; i++) {
        if (!esdm__add_u64(end, iov[i].bytes, &end) || end > INT64_MAX)
            return esdm__error_set(err, ESDM_EINVAL, "posix: pack '%s/%s' would exceed 2^63 bytes",
                                   to->target->directory, to->file);
    }
    end = to->length_bytes;
    int why = write_pieces(to->fd, iov, niov, &end);
    if (why != 0) {
        if (end != to->length_bytes) /* else nothing was written */
            (void) !ftruncate(to->fd, (off_t) to->length_bytes);
        return esdm__error_set_errno(err, why, "posix: cannot append to pack '%s/%s'",
                                     to->target->directory, to->file);
    }
    *ret_position = to->length_bytes;
    to->length_bytes = end;
    return ESDM_OK;
}

/* The entry of the pack in its folder, and that of the folder: whoever has made it just now may not
 * have come to flush it. */
static int
sync_folder(const pack *of)
{
    posix__target *target = of->target;
    char shard[3] = {of->file[0], of->file[1], '\0'};
    int fd = openat(of->target->fd, shard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int why = fsync(fd) == 0 ? 0 : errno;
    (void) close(fd);
    size_t number = strtoul(shard, NULL, 16);
    if (why == 0 && !atomic_load(&target->shard_synced[number])) {
        why = fsync(target->fd) == 0 ? 0 : errno;
        atomic_store(&target->shard_synced[number], why == 0);
    }
    return why;
}

esdm_status
posix__pack_sync(void *self, esdm_error *err)
{
    pack *of = self;
    int why = fdatasync(of->fd) == 0 ? 0 : errno;
    if (why == 0 && !of->entry_synced)
        why = sync_folder(of);
    if (why != 0)
        return esdm__error_set_errno(err, why, "posix: cannot flush pack '%s/%s'",
                                     of->target->directory, of->file);
    of->entry_synced = true;
    return ESDM_OK;
}

esdm_status
posix__pack_seal(void *self, esdm_error *err)
{
    pack *of = self;
    if (of == NULL)
        return ESDM_OK;
    esdm_status status = ESDM_OK;
    /* Network file systems report here what they could not write. EINTR: Linux has closed it. */
    if (esdm__descriptor_close(of->fd) != 0 && errno != EINTR)
        status = esdm__error_set_errno(err, errno, "posix: cannot close pack '%s/%s'",
                                       of->target->directory, of->file);
    free(of);
    return status;
}
