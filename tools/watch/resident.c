/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Whether memory has what a read asks for, by cachestat(): what decides most about how long it
 * takes, and can be known before it. Where calls are recorded to learn from them
 * ($ESDM_WATCH_BOXES), and never for longer than a hundredth of the run: of reads that are quick, a
 * sample is asked for.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watch/watch.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5, of all machines */
#endif
#define PAGE     4096u
#define SHARE    100u     /* of the run */
#define FIRST_NS 1000000u /* that it may take at the start */
#define EIGHTHS  8u

/* As the kernel has them. */
struct range {
    uint64_t at, bytes;
};
struct pages {
    uint64_t cached, dirty, written, evicted, evicted_recently;
};

static atomic_bool absent;
static _Atomic uint64_t spent_ns;

static unsigned
flag_of(uint64_t cached, uint64_t pages)
{
    if (cached == 0)
        return 1;
    if (cached >= pages)
        return 1 + EIGHTHS;
    uint64_t eighths = (cached * EIGHTHS + pages / 2) / pages;
    return 1 + (unsigned) (eighths < 1 ? 1 : eighths < EIGHTHS ? eighths : EIGHTHS - 1);
}

void
watch__ask_memory(watch_call *call, int fd, const watch_entry *entry, uint64_t at, uint64_t want)
{
    struct pages of = {0};
    const watch_head *head = watch__head();
    if (want == 0 || at >= entry->file_bytes || atomic_load_explicit(&absent, memory_order_relaxed))
        return;
    uint64_t spent = atomic_load_explicit(&spent_ns, memory_order_relaxed);
    if (spent > FIRST_NS + (call->start_ns - head->started_ns) / SHARE)
        return;
    uint64_t end = want < entry->file_bytes - at ? at + want : entry->file_bytes;
    struct range range = {at, end - at};
    long result = syscall(SYS_cachestat, fd, &range, &of, 0u);
    if (result == 0)
        call->cached = (uint8_t) flag_of(of.cached, (end - 1) / PAGE - at / PAGE + 1);
    else if (errno == ENOSYS)
        atomic_store(&absent, true);
    uint64_t now_ns = watch__now_ns();
    (void) atomic_fetch_add_explicit(&spent_ns, now_ns - call->start_ns, memory_order_relaxed);
    call->start_ns = now_ns; /* the read itself begins here */
}
