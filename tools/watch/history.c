/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Reads that the last run of the program made of a file (watch/history.h) are asked for before this
 * run makes them: the first ones when the file is opened, one more with each read that is as it
 * was.
 *
 * Some reads go without, to compare with. It ends for a file when the program reads something else,
 * when the reads without are answered from memory, or when those with are not faster.
 */
#include <stdlib.h>
#include <sys/syscall.h>

#include "watch/history.h"
#include "watch/watch.h"

#define DEPTH_NEW     8u /* reads ahead, of what was seen once … */
#define DEPTH_TRUSTED 32u
#define BYTES_AHEAD   (16u << 20) /* at most, not read yet */
#define READ_MOST     (4u << 20)  /* larger reads keep a device busy by themselves */
#define PIECE_BYTES   131072u     /* the smallest read-ahead window that is met: FUSE */
#define SKIP_MOST     16u         /* reads of the last run that this one may leave out */
#define MISSES_MOST   4u          /* other reads in a row */
#define CONTROL_EACH  32u
#define JUDGE_READS   16u
#define CACHED_NS     20000.0 /* as in watch/ahead.c */
#define HELPS         0.9

typedef struct progress {
    atomic_flag busy;
    const watch_history_file *file; /* NULL: none */
    bool over;
    uint32_t next;    /* the read that would come now */
    uint32_t asked;   /* the first one that was not asked for */
    uint64_t waiting; /* bytes that were asked for, and not read */
    uint32_t misses;
    uint32_t quick; /* reads without advice that memory answered, in a row */
    uint32_t plain_count, advised_count;
    double plain_ns, advised_ns, advice_ns;
} progress;

static const watch_history_file *files;
static const watch_history_read *reads;
static uint32_t file_count;
static progress states[WATCH_HISTORY_FILES];

/* ---- the record -------------------------------------------------------------------------------
 */

static bool
is_whole(const char *bytes, uint64_t size)
{
    const watch_history_head *head = (const watch_history_head *) bytes;
    if (head->magic != WATCH_HISTORY_MAGIC || head->files > WATCH_HISTORY_FILES ||
        head->reads > WATCH_HISTORY_FILES * WATCH_HISTORY_READS ||
        size != sizeof *head + head->files * sizeof *files + head->reads * sizeof *reads)
        return false;
    const watch_history_file *list = (const watch_history_file *) (bytes + sizeof *head);
    for (uint32_t i = 0; i < head->files; i++) {
        if (list[i].first > head->reads || list[i].reads > head->reads - list[i].first ||
            list[i].program[sizeof list[i].program - 1] != '\0' ||
            list[i].name[sizeof list[i].name - 1] != '\0')
            return false;
    }
    return true;
}

void
watch__history_begin(void)
{
    const char *path = secure_getenv("ESDM_WATCH_HISTORY");
    struct stat st;
    int fd = path != NULL && path[0] == '/'
                 ? (int) syscall(SYS_openat, AT_FDCWD, path,
                                 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0)
                 : -1; /* without O_NONBLOCK a FIFO in its place would hold the program */
    for (uint32_t i = 0; i < WATCH_HISTORY_FILES; i++)
        states[i] = (progress){.busy = ATOMIC_FLAG_INIT};
    if (fd < 0)
        return;
    void *bytes = MAP_FAILED;
    /* What others can change would tell us what to read. */
    if (file_count == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 022) == 0 && (size_t) st.st_size >= sizeof(watch_history_head) &&
        (size_t) st.st_size <= WATCH_HISTORY_BYTES)
        bytes = (void *) syscall(SYS_mmap, NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd,
                                 (off_t) 0);
    (void) syscall(SYS_close, fd);
    if (bytes == MAP_FAILED || !is_whole(bytes, (uint64_t) st.st_size))
        return;
    const watch_history_head *head = bytes;
    files = (const watch_history_file *) (const void *) (head + 1);
    reads = (const watch_history_read *) (const void *) (files + head->files);
    file_count = head->files;
}

static bool
is_of_program(const watch_history_file *file)
{
    const watch_head *head = watch__head();
    const char *slash = strrchr(head->program, '/');
    const char *name = slash != NULL ? slash + 1 : head->program;
    return file->rank == head->rank && strncmp(file->program, name, sizeof file->program - 1) == 0;
}

/* The file itself, else one of the series that no other file has yet. */
static progress *
find(const watch_entry *entry)
{
    progress *found = NULL;
    for (uint32_t i = 0; i < file_count; i++) {
        if (!is_of_program(&files[i]) || !watch_history_alike(files[i].name, entry->name))
            continue;
        bool same = strcmp(files[i].name, entry->name) == 0;
        if (same || (found == NULL && states[i].file == NULL))
            found = &states[i];
        if (same)
            break;
    }
    if (found == NULL || found->file != NULL)
        return NULL;
    const watch_history_file *file = &files[found - states];
    return file->trust >= WATCH_TRUST_NEW && file->reads > 0 ? found : NULL;
}

static progress *
state_of(const watch_entry *entry)
{
    return entry->history > 0 && entry->history <= file_count ? &states[entry->history - 1] : NULL;
}

/* ---- asking ------------------------------------------------------------------------------------
 */

static bool
is_control(uint32_t n)
{
    return n == 1 || n % CONTROL_EACH == 5;
}

/* What goes on where the two before did the kernel reads by itself. */
static bool
is_asked(const watch_history_file *file, uint32_t n)
{
    const watch_history_read *r = &reads[file->first + n];
    bool streams = n >= 2 && r[-1].at + r[-1].bytes == r->at && r[-2].at + r[-2].bytes == r[-1].at;
    return !is_control(n) && !streams && r->bytes <= READ_MOST;
}

static void
ask(progress *s, int fd, watch_entry *entry)
{
    const watch_history_file *file = s->file;
    uint32_t depth = file->trust > WATCH_TRUST_NEW ? DEPTH_TRUSTED : DEPTH_NEW;
    uint64_t start = watch__now_ns();
    uint64_t calls = 0;
    for (; s->asked < file->reads && s->asked < s->next + depth && s->waiting < BYTES_AHEAD;
         s->asked++) {
        const watch_history_read *r = &reads[file->first + s->asked];
        if (!is_asked(file, s->asked))
            continue;
        for (uint64_t done = 0; done < r->bytes; done += PIECE_BYTES, calls++) {
            uint64_t piece = r->bytes - done < PIECE_BYTES ? r->bytes - done : PIECE_BYTES;
            if (posix_fadvise(fd, (off_t) (r->at + done), (off_t) piece, POSIX_FADV_WILLNEED) != 0)
                s->over = true; /* no file for it */
        }
        s->waiting += r->bytes;
        if (s->over)
            break;
    }
    if (calls == 0)
        return;
    uint64_t ns = watch__now_ns() - start;
    s->advice_ns += (double) ns;
    (void) __atomic_fetch_add(&entry->earlier_calls, calls, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->earlier_ns, ns, __ATOMIC_RELAXED);
}

static void
stop(progress *s, watch_entry *entry, char why)
{
    s->over = true;
    entry->earlier_stopped = why;
}

void
watch__history_opened(int fd, watch_entry *entry)
{
    progress *s =
        entry->history == 0 && file_count > 0 && watch__ahead_is_wanted() ? find(entry) : NULL;
    if (s == NULL || atomic_flag_test_and_set(&s->busy))
        return;
    if (s->file == NULL) {
        s->file = &files[s - states];
        entry->history = (uint8_t) (s - states + 1);
        ask(s, fd, entry);
    }
    atomic_flag_clear(&s->busy);
}

/* ---- reads -------------------------------------------------------------------------------------
 */

/* The read of the last run that this one is; false: of none. */
static bool
match(progress *s, uint64_t at, uint64_t want, uint32_t *ret_n)
{
    const watch_history_file *file = s->file;
    for (uint32_t n = s->next; n < file->reads && n < s->next + SKIP_MOST; n++) {
        const watch_history_read *r = &reads[file->first + n];
        if (r->at == at && r->bytes <= want) {
            *ret_n = n;
            return true;
        }
    }
    return false;
}

static void
go_on(progress *s, watch_call *call, int fd, watch_entry *entry, uint32_t n)
{
    bool early = n < s->asked && is_asked(s->file, n);
    for (uint32_t i = s->next; i <= n && i < s->asked; i++) {
        uint64_t bytes = is_asked(s->file, i) ? reads[s->file->first + i].bytes : 0;
        s->waiting -= bytes < s->waiting ? bytes : s->waiting;
    }
    s->next = n + 1;
    s->asked = s->asked > s->next ? s->asked : s->next;
    s->misses = 0;
    call->ahead = early ? WATCH_AHEAD_EARLIER : is_control(n) ? WATCH_AHEAD_CONTROL : 0;
    uint64_t before = watch__now_ns();
    ask(s, fd, entry);
    call->advised = watch__now_ns() - before;
}

bool
watch__history_read(watch_call *call, int fd, watch_entry *entry, uint64_t at, uint64_t want)
{
    progress *s = state_of(entry);
    uint32_t n;
    if (s == NULL || s->over)
        return false;
    if (atomic_flag_test_and_set_explicit(&s->busy, memory_order_acquire))
        return true;
    if (match(s, at, want, &n))
        go_on(s, call, fd, entry, n);
    else if (++s->misses >= MISSES_MOST && s->next < s->file->reads)
        stop(s, entry, WATCH_EARLIER_ASTRAY);
    else if (s->next >= s->file->reads)
        s->over = true; /* the last run had no more */
    atomic_flag_clear_explicit(&s->busy, memory_order_release);
    return !s->over;
}

static void
judge(progress *s, watch_entry *entry)
{
    if (s->quick >= 2)
        stop(s, entry, WATCH_EARLIER_CACHED);
    else if (s->plain_count >= 2 && s->advised_count >= JUDGE_READS &&
             (s->advised_ns + s->advice_ns) / s->advised_count >
                 HELPS * s->plain_ns / s->plain_count)
        stop(s, entry, WATCH_EARLIER_USELESS);
}

void
watch__history_done(const watch_call *call, watch_entry *entry, uint64_t moved, uint64_t ns)
{
    progress *s = state_of(entry);
    uint64_t read_ns = ns > call->advised ? ns - call->advised : 0;
    if (s == NULL || atomic_flag_test_and_set_explicit(&s->busy, memory_order_acquire))
        return;
    if (call->ahead == WATCH_AHEAD_CONTROL) {
        s->quick = (double) read_ns < CACHED_NS + (double) moved ? s->quick + 1 : 0;
        s->plain_count++;
        s->plain_ns += (double) read_ns;
        (void) __atomic_fetch_add(&entry->earlier_plain_reads, 1, __ATOMIC_RELAXED);
        (void) __atomic_fetch_add(&entry->earlier_plain_ns, read_ns, __ATOMIC_RELAXED);
    } else {
        s->advised_count++;
        s->advised_ns += (double) read_ns;
        (void) __atomic_fetch_add(&entry->earlier_reads, 1, __ATOMIC_RELAXED);
        (void) __atomic_fetch_add(&entry->earlier_read_ns, read_ns, __ATOMIC_RELAXED);
    }
    if (!s->over)
        judge(s, entry);
    atomic_flag_clear_explicit(&s->busy, memory_order_release);
}
