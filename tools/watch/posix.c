/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Files: which entry a descriptor has, where it stands, and what calls did with it. */
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "watch/watch.h"

#define SMALL_BYTES 65536u

typedef struct descriptor {
    _Atomic uint32_t entry;    /* 0: not known */
    _Atomic uint64_t position; /* as far as calls that are observed move it */
} descriptor;

static descriptor table[WATCH_FDS];
static atomic_int highest = -1;

static descriptor *
descriptor_of(int fd)
{
    return fd >= 0 && fd < WATCH_FDS ? &table[fd] : NULL;
}

static void
set_descriptor(int fd, uint32_t entry, uint64_t position)
{
    descriptor *d = descriptor_of(fd);
    if (d == NULL)
        return;
    atomic_store_explicit(&d->entry, entry, memory_order_relaxed);
    atomic_store_explicit(&d->position, position, memory_order_relaxed);
    int before = atomic_load_explicit(&highest, memory_order_relaxed);
    while (fd > before && !atomic_compare_exchange_weak(&highest, &before, fd))
        ;
}

void
watch__fds_forget(void)
{
    int last = atomic_load(&highest);
    for (int fd = 0; fd <= last; fd++) {
        atomic_store(&table[fd].entry, 0);
        watch__ahead_forget(fd);
    }
}

/* ---- begin and end of a call ----------------------------------------------------------------- */

bool
watch__begin(watch_call *call)
{
    if (!watch__is_on() || watch__here.busy)
        return false;
    call->fd_entry = 0;
    call->ahead = 0;
    call->advised = 0;
    call->cached = 0;
    call->start_ns = watch__now_ns();
    return true;
}

void
watch__real_done(watch_call *call)
{
    call->ns = watch__now_ns() - call->start_ns;
}

uint64_t
watch__vector_bytes(const struct iovec *vector, int count)
{
    uint64_t bytes = 0;
    if (vector == NULL || count > IOV_MAX)
        return 0; /* the kernel refuses these, and reads none of it */
    for (int i = 0; i < count; i++)
        bytes += vector[i].iov_len;
    return bytes;
}

static void
add(uint64_t *counter, uint64_t more)
{
    (void) __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

void
watch__enter(const watch_call *call, watch_op op, uint32_t entry, uint64_t position, uint64_t want,
             uint64_t moved, unsigned failed, watch_counts *counts)
{
    uint64_t ns = call->ns;
    add(&counts->calls, 1);
    add(&counts->bytes, moved);
    add(&counts->ns, ns);
    add(&counts->small, moved < SMALL_BYTES);
    watch_record *record = watch__record();
    uint64_t box = watch__here.box;
    uint16_t flags =
        (uint16_t) (watch__here.flags | (watch__here.mpi > 0 ? WATCH_FLAG_IN_MPI : 0u) |
                    (unsigned) call->cached << WATCH_CACHED_BIT);
    watch__here.box = 0;
    watch__here.flags = 0;
    if (record == NULL)
        return;
    record->box = box;
    if (watch__here.thread == 0)
        watch__here.thread = (int32_t) syscall(SYS_gettid);
    record->ns = ns;
    record->bytes = moved;
    record->position = position;
    record->wanted = want;
    record->entry = entry;
    record->thread = (uint32_t) watch__here.thread;
    record->op = (uint16_t) op;
    record->failed = (uint16_t) failed;
    record->depth = watch__here.depth;
    record->flags = flags;
    __atomic_store_n(&record->start_ns, call->start_ns, __ATOMIC_RELEASE);
}

/* In the library itself from here on; what the program will find in errno is kept. */
static int
enter_library(void)
{
    watch__here.busy = true;
    return errno;
}

static void
leave_library(int saved)
{
    watch__here.busy = false;
    errno = saved;
}

/* ---- names of descriptors -------------------------------------------------------------------- */

static void
describe(uint32_t number, int fd, const struct stat *st)
{
    watch_entry *entry = watch__entry(number);
    struct statfs system;
    if (entry == NULL)
        return;
    if (fstatfs(fd, &system) == 0)
        entry->file_system = (uint32_t) system.f_type;
    entry->file_bytes = (uint64_t) st->st_size;
    entry->device = (uint64_t) st->st_dev;
    entry->inode = (uint64_t) st->st_ino;
}

/* Of the kernel, or memory that ranks of a node share by way of a file. */
static bool
is_no_data(const char *name)
{
    static const char *const begins[] = {
        "/proc/",         "/sys/", "/dev/shm/ucx_", "/dev/shm/vader_", "/dev/shm/sm_segment",
        "/dev/shm/mpich_"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    }
    return false;
}

static uint32_t
ask_entry(int fd, int flags)
{
    struct stat st;
    char link[64];
    char name[4096];
    bool fresh;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return WATCH_IGNORED;
    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    if (n <= 0 || is_no_data(name))
        return WATCH_IGNORED;
    uint32_t number = watch__entry_find(WATCH_FILE, name, &fresh);
    if (fresh) {
        describe(number, fd, &st);
        watch_entry *entry = watch__entry(number);
        if (entry != NULL)
            entry->flags = flags;
        watch__entry_ready(number, WATCH_FILE);
    }
    return number;
}

uint32_t
watch__fd_entry(int fd)
{
    descriptor *d = descriptor_of(fd);
    if (d == NULL)
        return WATCH_IGNORED;
    uint32_t entry = atomic_load_explicit(&d->entry, memory_order_relaxed);
    if (entry == 0) { /* inherited, or opened by a call that is not observed */
        entry = ask_entry(fd, 0);
        off_t at = entry != WATCH_IGNORED ? (off_t) syscall(SYS_lseek, fd, 0, SEEK_CUR) : -1;
        set_descriptor(fd, entry, at >= 0 ? (uint64_t) at : 0);
    }
    return entry;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void
opened(const watch_call *call, watch_op op, int fd, int flags)
{
    uint32_t number = ask_entry(fd, flags);
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    set_descriptor(fd, number, 0);
    watch__ahead_forget(fd);
    if (entry != NULL && (flags & O_ACCMODE) != O_WRONLY)
        watch__history_opened(fd, entry);
    if (entry != NULL)
        watch__enter(call, op, number, WATCH_NOWHERE, 0, 0, 0, &entry->other);
}

void
watch__opened(watch_call *call, watch_op op, int fd, int dir, const char *path, int flags)
{
    int saved = enter_library();
    if (fd < 0)
        watch__path(call, op, dir, path, true);
    else if (watch__is_owner())
        opened(call, op, fd, flags);
    leave_library(saved);
}

void
watch__fopened(watch_call *call, watch_op op, FILE *file, const char *path, const char *mode)
{
    int saved = enter_library();
    if (file == NULL)
        watch__path(call, op, AT_FDCWD, path, true);
    else if (watch__is_owner())
        opened(call, op, fileno(file), mode[0] == 'r' ? O_RDONLY : O_WRONLY);
    leave_library(saved);
}

void
watch__reading(watch_call *call, int fd, int64_t at, uint64_t want)
{
    int saved = enter_library();
    const descriptor *d = descriptor_of(fd);
    uint32_t entry = d != NULL ? watch__fd_entry(fd) : WATCH_IGNORED;
    if (entry != WATCH_IGNORED) {
        uint64_t from = at >= 0 ? (uint64_t) at : atomic_load(&d->position);
        const watch_entry *of = watch__is_complete() ? watch__entry(entry) : NULL;
        if (of != NULL)
            watch__ask_memory(call, fd, of, from, want);
        watch__ahead_begin(call, fd, entry, from, want);
    }
    leave_library(saved);
}

void
watch__moved(watch_call *call, watch_op op, int fd, bool writes, int64_t at, uint64_t want,
             uint64_t moved, bool failed)
{
    int saved = enter_library();
    uint32_t number = watch__fd_entry(fd);
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    if (entry != NULL) {
        descriptor *d = descriptor_of(fd);
        uint64_t position = (uint64_t) at;
        if (at < 0)
            position = atomic_fetch_add_explicit(&d->position, moved, memory_order_relaxed);
        if (call->ahead != 0)
            watch__ahead_done(call, fd, position, moved, call->ns);
        watch__enter(call, op, number, position, want, moved, failed ? (unsigned) saved : 0,
                     writes ? &entry->write : &entry->read);
    }
    leave_library(saved);
}

void
watch__file_moved(watch_call *call, watch_op op, FILE *file, bool writes, uint64_t want,
                  uint64_t moved)
{
    int fd = file != NULL ? fileno(file) : -1;
    watch__moved(call, op, fd, writes, -1, want, moved, false);
}

void
watch__closing(watch_call *call, int fd)
{
    const descriptor *d = descriptor_of(fd);
    call->fd_entry = d != NULL ? atomic_load_explicit(&d->entry, memory_order_relaxed) : 0;
}

void
watch__closed(watch_call *call, watch_op op, int fd)
{
    int saved = enter_library();
    uint32_t number = call->fd_entry;
    if (number != 0 && watch__is_owner()) { /* not in the child of a vfork() */
        watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
        descriptor *d = descriptor_of(fd);
        watch__ahead_forget(fd);
        /* Another thread may have opened a file under the number meanwhile. */
        (void) atomic_compare_exchange_strong(&d->entry, &number, 0);
        if (entry != NULL)
            watch__enter(call, op, call->fd_entry, WATCH_NOWHERE, 0, 0, 0, &entry->other);
    }
    leave_library(saved);
}

void
watch__duplicated(watch_call *call, watch_op op, int fd, int other)
{
    int saved = enter_library();
    (void) call;
    (void) op;
    const descriptor *d = descriptor_of(fd);
    if (other >= 0 && d != NULL && fd != other && watch__is_owner()) {
        set_descriptor(other, atomic_load(&d->entry), atomic_load(&d->position));
        watch__ahead_forget(other);
    }
    leave_library(saved);
}

void
watch__sought(watch_call *call, watch_op op, int fd, int64_t position)
{
    int saved = enter_library();
    uint32_t number = watch__fd_entry(fd);
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    if (entry != NULL && position >= 0)
        atomic_store_explicit(&descriptor_of(fd)->position, (uint64_t) position,
                              memory_order_relaxed);
    if (entry != NULL)
        watch__enter(call, op, number, (uint64_t) position, 0, 0, position < 0, &entry->other);
    leave_library(saved);
}

void
watch__file_sought(watch_call *call, watch_op op, FILE *file)
{
    int saved = enter_library();
    off_t at = file != NULL ? ftello(file) : -1;
    watch__sought(call, op, file != NULL ? fileno(file) : -1, (int64_t) at);
    leave_library(saved);
}

void
watch__synced(watch_call *call, watch_op op, int fd)
{
    int saved = enter_library();
    uint32_t number = watch__fd_entry(fd);
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    if (entry != NULL)
        watch__enter(call, op, number, WATCH_NOWHERE, 0, 0, 0, &entry->other);
    leave_library(saved);
}

void
watch__file_synced(watch_call *call, watch_op op, FILE *file)
{
    if (file != NULL)
        watch__synced(call, op, fileno(file));
}

void
watch__mapped(watch_call *call, watch_op op, int fd, uint64_t bytes, uint64_t at)
{
    int saved = enter_library();
    uint32_t number = fd >= 0 ? watch__fd_entry(fd) : WATCH_IGNORED;
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    if (entry != NULL) {
        add(&entry->mapped_bytes, bytes);
        watch__enter(call, op, number, at, bytes, 0, bytes == 0, &entry->other);
    }
    leave_library(saved);
}

static void
copied(const watch_call *call, watch_op op, int fd, bool writes, uint64_t bytes)
{
    uint32_t number = watch__fd_entry(fd);
    watch_entry *entry = number != WATCH_IGNORED ? watch__entry(number) : NULL;
    if (entry != NULL)
        watch__enter(call, op, number, WATCH_NOWHERE, bytes, bytes, 0,
                     writes ? &entry->write : &entry->read);
}

void
watch__copied(watch_call *call, watch_op op, int in, int out, uint64_t bytes)
{
    int saved = enter_library();
    copied(call, op, in, false, bytes);
    copied(call, op, out, true, bytes);
    leave_library(saved);
}

/* Paths are not worth an entry each; what they cost is. */
void
watch__path(watch_call *call, watch_op op, int dir, const char *path, bool failed)
{
    int saved = enter_library();
    (void) dir;
    (void) path;
    watch_entry *entry = watch__entry(WATCH_OTHERS);
    if (entry != NULL && watch__is_owner())
        watch__enter(call, op, WATCH_OTHERS, WATCH_NOWHERE, 0, 0, failed ? (unsigned) saved : 0,
                     &entry->other);
    leave_library(saved);
}
