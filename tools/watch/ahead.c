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
#define LEARN_READS  4u  /* at one distance before advice begins; all but one must wait */
#define LEARN_STREAM 24u /* of a stream, which the kernel reads ahead by itself */
#define DEPTH_FIRST  2u  /* reads ahead */
#define DEPTH_MOST   64u
#define PIECE_BYTES  131072u    /* the smallest read-ahead window that is met: FUSE */
#define READ_MOST    (4u << 20) /* larger reads keep a device busy by themselves */
#define CONTROL_EACH 32u        /* one read of so many goes without advice */
#define JUDGE_READS  32u        /* advised ones, before the comparison counts */
#define STREAM_READS 1024u      /* of a stream with advice, until one part goes without again */
#define CACHED_NS    20000.0    /* a read from memory takes less, and … */
#define CACHED_RATE  1.0        /* … a nanosecond a byte more */
#define HELPS        0.9        /* of the time without advice, or less */
#define RETRY_READS  256u       /* until a depth is tried again that lost something */
#define LOST         0.8        /* as long: nothing was read early */
#define WEIGHT       0.06       /* of a new time in the mean */
#define PAUSE_READS  4096u      /* until it is tried again */

typedef struct times {
    double mean_ns;
    uint32_t count;
} times;

typedef struct pattern {
    uint64_t last;    /* position of the last read */
    uint64_t bytes;   /* of it */
    int64_t stride;   /* distance of the last two */
    uint32_t run;     /* reads at this distance */
    uint32_t depth;   /* reads ahead */
    bool active;      /* advice is given */
    uint32_t ceiling; /* depth at which something was lost; DEPTH_MOST: never */
    uint32_t grown;   /* reads since the depth grew */
    uint64_t recover; /* losses before this number (or piece) are known */
    uint64_t next; /* number of the first read of the run that is not advised; streams: position */
    uint32_t waited; /* reads in a row that memory did not answer */
    uint32_t quick;  /* reads without advice in a row that it did */
    uint32_t paused; /* reads to go until it is tried again */
    times plain;     /* reads without, with advice, and the advice itself */
    times advised;
    times advice;
    uint64_t asked_ns[DEPTH_MOST]; /* when the reads (or pieces) ahead were asked for */
} pattern;

static pattern *_Atomic patterns[DESCRIPTORS / 64]; /* arrays of 64, made when needed */
static atomic_int wanted = -1;                      /* 1: the user wants it */

bool
watch__ahead_is_wanted(void)
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
is_from_memory(const pattern *p, double ns)
{
    return ns < CACHED_NS + CACHED_RATE * (double) p->bytes;
}

static bool
is_stream(const pattern *p)
{
    return p->stride == (int64_t) p->bytes;
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
        p->asked_ns[n % DEPTH_MOST] = watch__now_ns();
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
        p->asked_ns[from / PIECE_BYTES % DEPTH_MOST] = watch__now_ns();
        advise(p, fd, from, PIECE_BYTES, entry);
    }
}

/* Whether the read goes on with the pattern. */
static void
follow(pattern *p, uint64_t at, uint64_t want)
{
    int64_t stride = (int64_t) at - (int64_t) p->last;
    if (stride == p->stride && stride != 0 && want == p->bytes) {
        p->run++;
    } else {
        p->run = 0;
        p->next = 0;
        p->waited = 0;
        p->active = false;
        p->stride = stride;
    }
    p->last = at;
    p->bytes = want;
}

static void
set_active(pattern *p)
{
    uint32_t reads = is_stream(p) ? LEARN_STREAM : LEARN_READS;
    bool waits = is_stream(p) ? p->plain.count >= reads && !is_from_memory(p, p->plain.mean_ns)
                              : p->waited + 1 >= reads;
    if (p->active || p->run < reads || !waits)
        return;
    p->active = true;
    p->ceiling = DEPTH_MOST;
    p->grown = 0;
    p->recover = 0;
    p->depth = DEPTH_FIRST;
    p->quick = 0;
    p->advised = (times){0};
}

static void
stop(pattern *p, watch_entry *entry)
{
    p->paused = PAUSE_READS;
    p->active = false;
    p->plain = (times){0};
    p->run = 0;
    (void) __atomic_fetch_add(&entry->ahead_stopped, 1, __ATOMIC_RELAXED);
}

/* Whether this read was asked for before. */
static bool
was_advised(const pattern *p, uint64_t at, uint64_t want)
{
    if (!p->active)
        return false;
    return is_stream(p) ? p->next >= at + want : p->next > p->run && p->run % CONTROL_EACH != 0;
}

void
watch__ahead_begin(watch_call *call, int fd, uint32_t number, uint64_t at, uint64_t want)
{
    bool wanted_here = watch__ahead_is_wanted() && want > 0;
    watch_entry *entry = wanted_here ? watch__entry(number) : NULL;
    if (entry == NULL || watch__history_read(call, fd, entry, at, want))
        return;
    pattern *p = want <= READ_MOST ? pattern_of(fd, true) : NULL;
    if (p == NULL)
        return;
    if (p->paused > 0) {
        p->paused -= p->paused != UINT32_MAX;
        return;
    }
    follow(p, at, want);
    if (p->run == 0)
        return;
    set_active(p);
    call->ahead = was_advised(p, at, want) ? WATCH_AHEAD_ADVISED : WATCH_AHEAD_PLAIN;
    if (!p->active)
        return;
    uint64_t before = watch__now_ns();
    if (is_stream(p))
        advise_sequential(p, fd, at, want, entry);
    else
        advise_strided(p, fd, at, want, entry);
    call->advised = watch__now_ns() - before;
}

static void
mean(times *t, double more)
{
    double weight = 1.0 / (t->count + 1);
    weight = weight > WEIGHT ? weight : WEIGHT;
    t->mean_ns += weight * (more - t->mean_ns);
    t->count += t->count < UINT32_MAX;
}

static void
plain_done(pattern *p, watch_entry *entry, double ns)
{
    bool quick = is_from_memory(p, ns);
    p->waited = quick ? 0 : p->waited + 1;
    p->quick = quick ? p->quick + 1 : 0;
    if (p->active && !is_stream(p) && p->quick >= 2) /* memory has the file meanwhile */
        p->active = false;
    mean(&p->plain, ns);
    (void) __atomic_fetch_add(&entry->plain_reads, 1, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->plain_ns, (uint64_t) ns, __ATOMIC_RELAXED);
}

/* Number of the read in its run; of a stream, the piece in which it ends. */
static uint64_t
number_of(const pattern *p)
{
    return is_stream(p) ? (p->last + p->bytes - 1) / PIECE_BYTES : p->run;
}

/* As far ahead as the device has places for. What is asked for beyond them may be passed over: the
 * read takes as long as without advice, though it was asked for long before. */
static void
set_depth(pattern *p, uint64_t start_ns, double ns)
{
    uint64_t number = number_of(p);
    double ahead_ns = (double) (start_ns - p->asked_ns[number % DEPTH_MOST]);
    bool slow = ns > LOST * p->plain.mean_ns;
    p->grown++;
    if (slow && ahead_ns > p->plain.mean_ns / 2) {
        if (number < p->recover)
            return;
        p->ceiling = p->depth;
        p->depth = p->depth > 2 ? p->depth * 3 / 4 : 1;
        p->recover = number + p->depth + 1;
        p->grown = 0;
    } else if (!is_from_memory(p, ns) && p->grown >= p->depth / 2 && p->depth < DEPTH_MOST) {
        bool known = p->ceiling < DEPTH_MOST;
        if (known && p->depth + 1 >= p->ceiling && p->grown < RETRY_READS)
            return;
        p->depth = known ? p->depth + 1 : 2 * p->depth;
        p->depth = p->depth < DEPTH_MOST ? p->depth : DEPTH_MOST - 1;
        p->grown = 0;
    }
}

static void
advised_done(pattern *p, watch_entry *entry, uint64_t start_ns, double ns)
{
    mean(&p->advised, ns);
    (void) __atomic_fetch_add(&entry->advised_reads, 1, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&entry->advised_ns, (uint64_t) ns, __ATOMIC_RELAXED);
    set_depth(p, start_ns, ns);
    if (p->advised.count >= JUDGE_READS &&
        p->advised.mean_ns + p->advice.mean_ns > HELPS * p->plain.mean_ns)
        stop(p, entry);
    else if (is_stream(p) && p->advised.count >= STREAM_READS) {
        p->active = false; /* one part without it, to compare with */
        p->plain = (times){0};
    }
}

void
watch__ahead_done(const watch_call *call, int fd, uint64_t at, uint64_t moved, uint64_t ns)
{
    pattern *p = pattern_of(fd, false);
    watch_entry *entry = watch__entry(watch__fd_entry(fd));
    if (entry != NULL && moved > 0 && call->ahead >= WATCH_AHEAD_CONTROL)
        watch__history_done(call, entry, moved, ns);
    if (entry == NULL || call->ahead >= WATCH_AHEAD_CONTROL || p == NULL || p->last != at ||
        moved == 0)
        return;
    double read_ns = ns > call->advised ? (double) (ns - call->advised) : 0;
    if (p->active)
        mean(&p->advice, (double) call->advised);
    if (call->ahead == WATCH_AHEAD_PLAIN)
        plain_done(p, entry, read_ns);
    else
        advised_done(p, entry, call->start_ns + call->advised, read_ns);
}
