/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The file of a process: windows that are mapped one after the other. Before a window is used, its
 * room in the file is taken (fallocate), so that a full file system costs records, not the process.
 * No descriptor stays open, as programs close those that they do not know.
 */
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "watch/ranks.h"
#include "watch/watch.h"

_Static_assert(sizeof(watch_entry) == 1024, "an entry has 1,024 bytes");
_Static_assert(sizeof(watch_record) == 64 && sizeof(watch_window) == 64, "64 bytes");
_Static_assert(sizeof(watch_head) <= WATCH_WINDOW, "the head is in one window");

#define PER_RECORDS   ((WATCH_WINDOW - sizeof(watch_window)) / sizeof(watch_record))
#define PER_ENTRIES   ((WATCH_WINDOW - sizeof(watch_window)) / sizeof(watch_entry))
#define PER_BOXES     ((WATCH_WINDOW - sizeof(watch_window)) / sizeof(watch_box))
#define ENTRY_WINDOWS 64u
#define HASHES        8192u
#define DEFAULT_MB    64
#define RING          2u       /* windows: 2,046 calls */
#define FOLDER_MOST   67108864 /* bytes, where the last calls alone are kept */

static struct {
    atomic_bool on;
    pid_t pid;
    char folder[256];
    char path[400];
    watch_head *head;
    unsigned most; /* windows */
    bool with_boxes;
    atomic_flag growing;
    _Atomic(char *) entries[ENTRY_WINDOWS];
    _Atomic(char *) records[WATCH_WINDOWS];
    _Atomic(char *) boxes[WATCH_WINDOWS];
    atomic_uint record_windows;
    _Atomic uint32_t hashes[HASHES];
} state = {.growing = ATOMIC_FLAG_INIT};

__thread watch_here watch__here __attribute__((tls_model("initial-exec")));

bool
watch__is_on(void)
{
    return atomic_load_explicit(&state.on, memory_order_acquire);
}

bool
watch__is_owner(void)
{
    return state.pid == getpid();
}

bool
watch__is_complete(void)
{
    return state.with_boxes;
}

watch_head *
watch__head(void)
{
    return state.head;
}

uint64_t
watch__now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* System calls, not functions: those are observed, here and by other libraries. */
static void *
map_window(uint64_t number)
{
    int fd = (int) syscall(SYS_openat, AT_FDCWD, state.path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    uint64_t at = number * WATCH_WINDOW;
    void *window = NULL;
    bool room = syscall(SYS_fallocate, fd, 0, at, (uint64_t) WATCH_WINDOW) == 0;
    if (!room && errno == EOPNOTSUPP) { /* then by writing to it */
        static const char zeros[4096];
        room = true;
        for (unsigned i = 0; i < WATCH_WINDOW && room; i += sizeof zeros)
            room = syscall(SYS_pwrite64, fd, zeros, sizeof zeros, at + i) == sizeof zeros;
    }
    if (room) {
        window = (void *) syscall(SYS_mmap, NULL, (size_t) WATCH_WINDOW, PROT_READ | PROT_WRITE,
                                  MAP_SHARED, fd, (off_t) at);
        window = window == MAP_FAILED ? NULL : window;
    }
    (void) syscall(SYS_close, fd);
    return window;
}

static char *
grow(uint32_t kind, uint32_t index)
{
    uint64_t number = state.head->windows;
    char *window = number < state.most ? map_window(number) : NULL;
    if (window == NULL)
        return NULL;
    *(watch_window *) window = (watch_window){.kind = kind, .index = index};
    __atomic_store_n(&state.head->windows, number + 1, __ATOMIC_RELEASE);
    return window;
}

/* The window, made unless another thread is making one: nobody waits for that. */
static char *
window_at(_Atomic(char *) *windows, uint32_t index, uint32_t kind)
{
    char *window = atomic_load_explicit(&windows[index], memory_order_acquire);
    if (window != NULL || atomic_flag_test_and_set_explicit(&state.growing, memory_order_acquire))
        return window;
    window = atomic_load_explicit(&windows[index], memory_order_acquire);
    if (window == NULL) {
        window = grow(kind, index);
        atomic_store_explicit(&windows[index], window, memory_order_release);
    }
    atomic_flag_clear_explicit(&state.growing, memory_order_release);
    return window;
}

/* The number of the next record's place. */
static uint64_t
next_place(void)
{
    uint64_t n = __atomic_fetch_add(&state.head->records, 1, __ATOMIC_RELAXED);
    if (state.head->ring == 0)
        return n;
    if (__atomic_load_n(&state.head->keep, __ATOMIC_RELAXED) == 0)
        return n % (RING * PER_RECORDS);
    return RING * PER_RECORDS + __atomic_fetch_add(&state.head->kept, 1, __ATOMIC_RELAXED);
}

watch_record *
watch__record(void)
{
    uint64_t n = next_place();
    uint64_t index = n / PER_RECORDS;
    char *window =
        index < WATCH_WINDOWS ? window_at(state.records, (uint32_t) index, WATCH_RECORDS) : NULL;
    if (window == NULL) {
        (void) __atomic_fetch_add(&state.head->dropped, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (n % PER_RECORDS == PER_RECORDS / 2 && index + 1 < WATCH_WINDOWS)
        (void) window_at(state.records, (uint32_t) index + 1, WATCH_RECORDS);
    watch_record *record = (watch_record *) (window + sizeof(watch_window)) + n % PER_RECORDS;
    if (state.head->ring != 0) { /* who reads it meanwhile sees that it is not ready */
        __atomic_store_n(&record->start_ns, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
    return record;
}

watch_box *
watch__box(uint64_t *ret_number)
{
    if (!state.with_boxes)
        return NULL;
    uint64_t n = __atomic_fetch_add(&state.head->boxes, 1, __ATOMIC_RELAXED);
    uint64_t index = n / PER_BOXES;
    char *window =
        index < WATCH_WINDOWS ? window_at(state.boxes, (uint32_t) index, WATCH_BOXES) : NULL;
    *ret_number = n + 1;
    return window != NULL ? (watch_box *) (window + sizeof(watch_window)) + n % PER_BOXES : NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

watch_entry *
watch__entry(uint32_t number)
{
    uint32_t index = (number - 1) / PER_ENTRIES;
    char *window = number > 0 && index < ENTRY_WINDOWS
                       ? atomic_load_explicit(&state.entries[index], memory_order_acquire)
                       : NULL;
    if (window == NULL)
        return NULL;
    return (watch_entry *) (window + sizeof(watch_window)) + (number - 1) % PER_ENTRIES;
}

static uint32_t
hash_of(uint32_t kind, const char *name)
{
    uint64_t hash = 14695981039346656037u ^ kind;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char) *name) * 1099511628211u;
    return (uint32_t) (hash ^ hash >> 32);
}

static uint32_t
add_entry(uint32_t kind, const char *name)
{
    uint64_t n = __atomic_load_n(&state.head->entries, __ATOMIC_RELAXED);
    if (n / PER_ENTRIES >= ENTRY_WINDOWS ||
        window_at(state.entries, (uint32_t) (n / PER_ENTRIES), WATCH_ENTRIES) == NULL)
        return 0;
    n = __atomic_fetch_add(&state.head->entries, 1, __ATOMIC_RELAXED);
    watch_entry *entry = watch__entry((uint32_t) n + 1);
    if (entry == NULL)
        return 0;
    (void) snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->wanted = (char) kind;
    return (uint32_t) n + 1;
}

uint32_t
watch__entry_find(uint32_t kind, const char *name, bool *ret_fresh)
{
    size_t length = strlen(name);
    name += length >= WATCH_NAME ? length - WATCH_NAME + 1 : 0;
    uint32_t at = hash_of(kind, name);
    *ret_fresh = false;
    for (unsigned i = 0; i < 64; i++) {
        _Atomic uint32_t *slot = &state.hashes[(at + i) % HASHES];
        uint32_t number = atomic_load_explicit(slot, memory_order_acquire);
        if (number == 0) {
            number = add_entry(kind, name);
            uint32_t none = 0;
            if (number == 0 || !atomic_compare_exchange_strong(slot, &none, number))
                return number == 0 ? WATCH_OTHERS : none; /* another thread's, of any name: rare */
            *ret_fresh = true;
            return number;
        }
        const watch_entry *entry = watch__entry(number);
        if (entry != NULL && entry->wanted == (char) kind && strcmp(entry->name, name) == 0)
            return number;
    }
    return WATCH_OTHERS;
}

void
watch__entry_ready(uint32_t number, uint32_t kind)
{
    watch_entry *entry = watch__entry(number);
    if (entry != NULL)
        __atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool
keeps_last(void)
{
    return secure_getenv("ESDM_WATCH_RING") != NULL;
}

static void
fill_head(watch_head *head)
{
    struct timespec wall;
    (void) clock_gettime(CLOCK_REALTIME, &wall);
    head->window_bytes = WATCH_WINDOW;
    head->pid = (int32_t) state.pid;
    head->parent = (int32_t) getppid();
    head->rank = ranks_own();
    head->ranks = ranks_all() > 0 ? ranks_all() : 0;
    head->cores = (uint32_t) sysconf(_SC_NPROCESSORS_ONLN);
    head->started_realtime_ns = (uint64_t) wall.tv_sec * 1000000000u + (uint64_t) wall.tv_nsec;
    head->started_ns = watch__now_ns();
    head->windows = 1;
    head->ring = keeps_last() ? RING : 0;
    struct stat own;
    if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &own, 0) == 0)
        head->pids = (uint64_t) own.st_ino;
    (void) gethostname(head->host, sizeof head->host - 1);
    (void) !readlink("/proc/self/exe", head->program, sizeof head->program - 1);
    int fd = (int) syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        (void) syscall(SYS_read, fd, head->command, sizeof head->command - 2);
        (void) syscall(SYS_close, fd);
    }
    __atomic_store_n(&head->magic, WATCH_MAGIC, __ATOMIC_RELEASE);
}

/* Bytes that files in the folder have. It is watched beside every program, and of a script that
 * starts very many the last ones are not. */
static bool
folder_is_full(void)
{
    alignas(8) char names[4096];
    uint64_t bytes = 0;
    int fd = (int) syscall(SYS_openat, AT_FDCWD, state.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n = 0;
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, names, sizeof names)) > 0) {
        for (long at = 0; at < n;) {
            /* struct linux_dirent64: inode, offset, length, kind, name */
            unsigned short length;
            struct stat st;
            memcpy(&length, names + at + 16, sizeof length);
            if (syscall(SYS_newfstatat, fd, names + at + 19, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(st.st_mode))
                bytes += (uint64_t) st.st_size;
            at += length;
        }
    }
    if (fd >= 0)
        (void) syscall(SYS_close, fd);
    return bytes >= FOLDER_MOST;
}

static bool
make_file(void)
{
    char host[64] = "";
    (void) gethostname(host, sizeof host - 1);
    for (int n = 0; n < 1000; n++) {
        (void) snprintf(state.path, sizeof state.path, "%s/%s.%d.%d.watch", state.folder, host,
                        (int) state.pid, n);
        int fd = (int) syscall(SYS_openat, AT_FDCWD, state.path,
                               O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            (void) syscall(SYS_close, fd);
            return true;
        }
        if (errno != EEXIST) /* n > 0 after exec() */
            return false;
    }
    return false;
}

bool
watch__windows_begin(void)
{
    const char *folder = secure_getenv("ESDM_WATCH");
    const char *limit = secure_getenv("ESDM_WATCH_MB");
    long mb = limit != NULL ? atol(limit) : DEFAULT_MB;
    if (folder == NULL || folder[0] != '/' || strlen(folder) >= sizeof state.folder)
        return false;
    (void) snprintf(state.folder, sizeof state.folder, "%s", folder);
    state.most = (unsigned) (mb * 1048576 / WATCH_WINDOW);
    state.most = state.most < 4 ? 4 : state.most < WATCH_WINDOWS ? state.most : WATCH_WINDOWS;
    state.with_boxes = secure_getenv("ESDM_WATCH_BOXES") != NULL;
    state.pid = getpid();
    if ((keeps_last() && folder_is_full()) || !make_file() || (state.head = map_window(0)) == NULL)
        return false;
    fill_head(state.head);
    watch__history_begin();
    bool fresh;
    uint32_t others = watch__entry_find(WATCH_FILE, "(other files)", &fresh);
    watch__entry_ready(others, WATCH_FILE);
    atomic_store_explicit(&state.on, others == WATCH_OTHERS, memory_order_release);
    return true;
}

/* A forked child has a file of its own; windows of its parent stay mapped, and are not used. */
static void
begin_in_child(void)
{
    if (!watch__is_on())
        return;
    watch__here.thread = 0;
    watch__here.busy = true;
    atomic_store(&state.on, false);
    for (unsigned i = 0; i < ENTRY_WINDOWS; i++)
        atomic_store(&state.entries[i], NULL);
    for (unsigned i = 0; i < WATCH_WINDOWS; i++) { /* a ring has gaps */
        if (atomic_load_explicit(&state.records[i], memory_order_relaxed) != NULL)
            atomic_store(&state.records[i], NULL);
        if (atomic_load_explicit(&state.boxes[i], memory_order_relaxed) != NULL)
            atomic_store(&state.boxes[i], NULL);
    }
    for (unsigned i = 0; i < HASHES; i++)
        atomic_store(&state.hashes[i], 0);
    atomic_flag_clear(&state.growing);
    watch__fds_forget();
    (void) watch__windows_begin();
    watch__here.busy = false;
}

__attribute__((constructor)) static void
begin(void)
{
    int saved = errno;
    watch__here.busy = true;
    if (watch__windows_begin())
        (void) pthread_atfork(NULL, NULL, begin_in_child);
    watch__here.busy = false;
    errno = saved;
}

__attribute__((destructor)) static void
end(void)
{
    struct rusage usage;
    if (!watch__is_on() || !watch__is_owner() || getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    state.head->user_us =
        (uint64_t) usage.ru_utime.tv_sec * 1000000u + (uint64_t) usage.ru_utime.tv_usec;
    state.head->system_us =
        (uint64_t) usage.ru_stime.tv_sec * 1000000u + (uint64_t) usage.ru_stime.tv_usec;
    __atomic_store_n(&state.head->ended_ns, watch__now_ns(), __ATOMIC_RELEASE);
}
