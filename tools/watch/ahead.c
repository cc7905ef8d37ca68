/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Read-ahead for patterns that the kernel does not see: reads of one descriptor at a constant
 * distance (and, on file systems with a small window, one after the other). What the next reads
 * will want is asked for with posix_fadvise(WILLNEED), a piece each, some reads ahead; the number
 * grows as long as reads still wait.
 *
 * Whether that helps is measured: the first reads of a pattern, and every 32nd one, go without, and
 * when those with advice (and the advice itself) take as long, no more is given for this
 * descriptor. Reads that are as fast as a copy from memory get none.
 */
#include <stdlib.h>

#include "watch/watch.h"

#define DESCRIPTORS  4096
#define LEARN_READS  4u         /* at one distance before advice begins */
#define DEPTH_MOST   64u        /* reads ahead */
#define PIECE_BYTES  131072u    /* the smallest read-ahead window that is met: FUSE */
#define READ_MOST    (4u << 20) /* larger reads keep a device busy by themselves */
#define CONTROL_EACH 32u        /* one read of so many goes without advice */
#define JUDGE_READS  24u        /* advised ones, before the comparison counts */
#define CACHED_NS    20000.0    /* a read from memory takes less, and … */
#define CACHED_RATE  1.0        /* … a byte a nanosecond more */
#define HELPS        0.9        /* of the time without advice, or less */
#define WEIGHT       0.15       /* of a new time in the mean */
#define PAUSE_READS  4096u      /* until it is tried again */

typedef struct pattern {
    uint32_t entry;
    uint64_t last;   /* position of the last read */
    uint64_t bytes;  /* of it */
    int64_t stride;  /* distance of the last two */
    uint32_t run;    /* reads at this distance */
    uint32_t depth;  /* reads ahead */
    uint64_t next;   /* reads of the run that are advised; sequential: bytes up to here */
    uint32_t count;  /* since advice began */
    uint32_t paused; /* reads to go until it is tried again */
    double plain_ns; /* means: reads without, with advice, and the advice per read */
    double advised_ns;
    double advice_ns;
    uint32_t plain;
    uint32_t advised;
} pattern;

static pattern *_Atomic patterns[DESCRIPTORS / 64]; /* arrays of 64, made when needed */
static atomic_int wanted = -1;                      /* 1: the user wants it */

static bool
is_wanted(void)
{
    int is = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (is < 0) {
        const char *text = secure_getenv("ESDM_WATCH_AHEAD");
        is = text != NULL && strcmp(text, "1") == 0;
        atomic_store_explicit(&wanted, is, memory_order_relaxed);
    }
    return is == 1;
}

static pattern *
pattern_of(int fd, bool make)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    pattern *list = atomic_load_explicit(&patterns[fd / 64], memory_order_acquire);
    if (list == NULL && make) {
        pattern *none = NULL;
        list = mmap(NULL, 64 * sizeof *list, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
        if (list == MAP_FAILED)
            return NULL;
        if (!atomic_compare_exchange_strong(&patterns[fd / 64], &none, list)) {
            (void) munmap(list, 64 * sizeof *list);
            list = none;
        }
    }
    return list != NULL ? &list[fd % 64] : NULL;
}

void
watch__ahead_forget(int fd)
{
    pattern *p = pattern_of(fd, false);
    if (p != NULL)
        *p = (pattern){0};
}

static bool
was_cached(const pattern *p)
{
    return p->plain_ns < CACHED_NS + CACHED_RATE * (double) p->bytes;
}

static void
advise(pattern *p, int fd, uint64_t at, uint64_t bytes, watch_entry *entry)
{
    uint64_t start = watch__now_ns();
    if (posix_fadvise(fd, (off_t) at, (off_t) bytes, POSIX_FADV_WILLNEED) != 0) {
        p->paused = UINT32_MAX; /* no file for it */
        return;
    }
    uint64_t ns = watch__now_ns() - start;
    (void) __atomic_fetch_add(&entry->ahead_calls, 1, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->ahead_bytes, bytes, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->ahead_ns, ns, __ATOMIC_RELAXED);
}

static void
advise_strided(pattern *p, int fd, uint64_t at, uint64_t want, watch_entry *entry)
{
    uint64_t from = p->next > p->run ? p->next : p->run + 1; /* numbers of reads in the run */
    for (uint64_t n = from; n <= p->run + p->depth; n++) {
        int64_t position = (int64_t) at + (int64_t) (n - p->run) * p->stride;
        if (position < 0 || (uint64_t) position >= entry->file_bytes)
            return;
        p->next = n + 1;
        if (n % CONTROL_EACH == 0)
            continue;
        for (uint64_t done = 0; done < want; done += PIECE_BYTES)
            advise(p, fd, (uint64_t) position + done,
                   want - done < PIECE_BYTES ? want - done : PIECE_BYTES, entry);
    }
}

/* The kernel reads one window ahead; this reads several at once. */
static void
advise_sequential(pattern *p, int fd, uint64_t at, uint64_t want, watch_entry *entry)
{
    uint64_t end = at + want + (uint64_t) p->depth * PIECE_BYTES;
    uint64_t from = p->next > at + want ? p->next : at + want + PIECE_BYTES;
    from -= from % PIECE_BYTES;
    end = end < entry->file_bytes ? end : entry->file_bytes;
    for (; from < end; from += PIECE_BYTES) {
        p->next = from + PIECE_BYTES;
        advise(p, fd, from, PIECE_BYTES, entry);
    }
}

static bool
follow(pattern *p, uint64_t at, uint64_t want)
{
    int64_t stride = (int64_t) at - (int64_t) p->last;
    bool same = stride == p->stride && stride != 0;
    if (!same) {
        p->run = 0;
        p->next = 0;
        p->depth = 1;
        p->stride = stride;
    } else {
        p->run++;
    }
    p->last = at;
    p->bytes = want;
    return same && p->run >= LEARN_READS;
}

static void
stop(pattern *p, watch_entry *entry)
{
    p->paused = PAUSE_READS;
    p->advised = 0;
    p->plain = 0;
    p->run = 0;
    (void) __atomic_fetch_add(&entry->ahead_stopped, 1, __ATOMIC_RELAXED);
}

void
watch__ahead_begin(watch_call *call, int fd, uint32_t number, uint64_t at, uint64_t want)
{
    pattern *p = is_wanted() && want > 0 && want <= READ_MOST ? pattern_of(fd, true) : NULL;
    watch_entry *entry = p != NULL ? watch__entry(number) : NULL;
    if (entry == NULL)
        return;
    if (p->paused > 0) {
        p->paused -= p->paused != UINT32_MAX;
        return;
    }
    bool sequential = p->stride == (int64_t) p->bytes;
    bool known = follow(p, at, want);
    if (p->run == 0)
        return;
    call->ahead = p->next > p->run && p->run % CONTROL_EACH != 0 && !sequential ? 2 : 1;
    if (sequential && p->next > at + want)
        call->ahead = 2;
    if (!known || (p->plain >= LEARN_READS && was_cached(p)))
        return;
    uint64_t before = watch__now_ns();
    if (sequential)
        advise_sequential(p, fd, at, want, entry);
    else
        advise_strided(p, fd, at, want, entry);
    call->advised = watch__now_ns() - before;
}

static void
mean(double *value, double more, uint32_t count)
{
    double weight = count < 6 ? 1.0 / (count + 1) : WEIGHT;
    *value += weight * (more - *value);
}

void
watch__ahead_done(const watch_call *call, int fd, uint64_t at, uint64_t moved, uint64_t ns)
{
    pattern *p = pattern_of(fd, false);
    watch_entry *entry = p != NULL ? watch__entry(watch__fd_entry(fd)) : NULL;
    if (entry == NULL || p->last != at || moved == 0)
        return;
    double read_ns = (double) (ns - call->advised);
    mean(&p->advice_ns, (double) call->advised, p->count++);
    if (call->ahead == 1) {
        mean(&p->plain_ns, read_ns, p->plain++);
        (void) __atomic_fetch_add(&entry->plain_reads, 1, __ATOMIC_RELAXED);
        (void) __atomic_fetch_add(&entry->plain_ns, (uint64_t) read_ns, __ATOMIC_RELAXED);
        return;
    }
    mean(&p->advised_ns, read_ns, p->advised++);
    (void) __atomic_fetch_add(&entry->advised_reads, 1, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->advised_ns, (uint64_t) read_ns, __ATOMIC_RELAXED);
    if (p->advised > JUDGE_READS && p->advised_ns + p->advice_ns > HELPS * p->plain_ns)
        stop(p, entry);
    else if (p->depth < DEPTH_MOST && p->advised % 2 == 0 &&
             read_ns > CACHED_NS + CACHED_RATE * (double) p->bytes)
        p->depth *= 2;
}
