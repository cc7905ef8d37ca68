/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which hints the next run gives a file by MPI. Nothing here knows of files or processes. */
#include "esdm-explain/hints_learn.h"

#include <stdio.h>
#include <string.h>

#define LEAST_S      0.02 /* of all ranks: less is not worth a trial */
#define LEAST_CALLS  20.0
#define LEARN_RUNS   2u
#define TRY_RUNS     2u
#define CONTROL_EACH 8u
#define HELPS        0.9  /* of the time without, or less, to be kept … */
#define STILL_HELPS  0.95 /* … and to stay */
#define HOPELESS     2.0  /* of the time without: one trial is enough */
#define WEIGHT       0.25 /* of a slower run in the mean … */
#define OUTLIER      3.0  /* … which counts as so many times the mean at most */
#define OTHER        2.0  /* as large calls, or half as large: it does something else */
#define KIB          1024.0
#define MIB          (1024.0 * 1024.0)
#define GIB          (1024.0 * MIB)
#define LARGE_BYTES  (512 * KIB)
#define BUFFER_BYTES (16 * MIB) /* what ROMIO takes without a hint */
#define BUFFER_MOST  (64 * MIB) /* each aggregator has one */
#define STRIPES_MOST 16u

/* ---- rules ------------------------------------------------------------------------------------
 */

static double
mean(double bytes, double calls)
{
    return calls > 0 ? bytes / calls : 0;
}

static bool
has_together(const hints_facts *f)
{
    return f->together_write_calls >= LEAST_CALLS;
}

static bool
sieves_reads(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "romio_ds_read=disable\n");
    return f->romio && f->gap_calls >= LEAST_CALLS &&
           f->read_calls - f->together_read_calls >= LEAST_CALLS && f->read_bytes > 0 &&
           f->file_read_bytes >= 4 * f->read_bytes;
}

static bool
sieves_writes(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "romio_ds_write=disable\n");
    return f->romio && f->gap_calls >= LEAST_CALLS &&
           f->write_calls - f->together_write_calls >= LEAST_CALLS &&
           f->file_read_bytes >= 2 * f->write_bytes + f->read_bytes;
}

static bool
writes_small(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "romio_cb_write=enable\n");
    return f->romio && has_together(f) &&
           mean(f->together_write_bytes, f->together_write_calls) < 64 * KIB &&
           f->file_write_calls >= 0.9 * f->together_write_calls;
}

static bool
reads_small(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "romio_cb_read=enable\n");
    return f->romio && f->together_read_calls >= LEAST_CALLS &&
           mean(f->together_read_bytes, f->together_read_calls) < 64 * KIB &&
           f->file_read_calls >= 0.9 * f->together_read_calls;
}

/* Without handing round each rank moves its own pieces. Whether these are large is not known:
 * sieving stays for calls in which they may be small. */
static const char *
apart(double each_bytes, const char *without, const char *without_sieve)
{
    return each_bytes >= 4 * MIB ? without_sieve : each_bytes >= LARGE_BYTES ? without : "";
}

static const char *
reads_apart(const hints_facts *f)
{
    return f->together_read_calls < LEAST_CALLS
               ? ""
               : apart(mean(f->together_read_bytes, f->together_read_calls),
                       "romio_cb_read=disable\n", "romio_cb_read=disable\nromio_ds_read=disable\n");
}

/* What is read of the same file goes with it: a hint that is kept is the last one. */
static bool
writes_large(const hints_facts *f, char *ret, size_t room)
{
    double each = mean(f->together_write_bytes, f->together_write_calls);
    (void) snprintf(
        ret, room, "%s%s",
        apart(each, "romio_cb_write=disable\n", "romio_cb_write=disable\nromio_ds_write=disable\n"),
        reads_apart(f));
    return f->romio && has_together(f) && each >= LARGE_BYTES;
}

static bool
reads_large(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "%s", reads_apart(f));
    return f->romio && ret[0] != '\0';
}

static double
round_bytes(const hints_facts *f)
{
    return f->ranks * mean(f->together_write_bytes, f->together_write_calls);
}

static bool
overflows_buffer(const hints_facts *f, char *ret, size_t room)
{
    double buffer = f->buffer_bytes > 0 ? f->buffer_bytes : BUFFER_BYTES;
    double wanted = buffer;
    double each = round_bytes(f) / (f->aggregators > 0 ? f->aggregators : 1);
    while (wanted < each && wanted < BUFFER_MOST)
        wanted *= 2;
    (void) snprintf(ret, room, "cb_buffer_size=%.0f\n", wanted);
    return has_together(f) && wanted > buffer;
}

static bool
lacks_aggregators(const hints_facts *f, char *ret, size_t room)
{
    uint32_t wanted = f->aggregators > 0 ? 2 * f->aggregators : f->ranks / 2;
    wanted = wanted < f->ranks ? wanted : f->ranks;
    /* ROMIO takes one of each node, unless it is told otherwise. */
    (void) snprintf(ret, room, "cb_nodes=%u\n%s", wanted, f->romio ? "cb_config_list=*:2\n" : "");
    return has_together(f) && round_bytes(f) >= MIB && wanted > 1 && wanted > f->aggregators;
}

static bool
lacks_stripes(const hints_facts *f, char *ret, size_t room)
{
    (void) snprintf(ret, room, "striping_factor=%u\n",
                    f->ranks < STRIPES_MOST ? f->ranks : STRIPES_MOST);
    return f->lustre && f->ranks > 1 && f->write_bytes >= GIB;
}

static const struct {
    bool (*speaks)(const hints_facts *facts, char *ret, size_t room);
    const char *why;
} rules[] = {
    {sieves_reads, "much more was read from the file than was wanted, for the sake of gaps"},
    {sieves_writes, "the file was read to write pieces with gaps"},
    {writes_small, "small pieces of collective calls were written one by one"},
    {reads_small, "small pieces of collective calls were read one by one"},
    {writes_large, "what collective calls write is large already, and was handed round"},
    {reads_large, "what collective calls read is large already, and was handed round"},
    {overflows_buffer, "a collective call does not go into the buffer of those that write"},
    {lacks_aggregators, "few ranks write what all hand them"},
    {lacks_stripes, "a large file lies on Lustre"},
};
#define RULES ((uint32_t) (sizeof rules / sizeof *rules))

bool
hints_rule(uint32_t rule, const hints_facts *facts, char *ret, size_t room)
{
    return rule >= 1 && rule <= RULES && rules[rule - 1].speaks(facts, ret, room);
}

const char *
hints_why(const watch_hints_file *record)
{
    return record->candidate >= 1 && record->candidate <= RULES ? rules[record->candidate - 1].why
                                                                : "";
}

/* ---- runs -------------------------------------------------------------------------------------
 */

/* From the facts of a run without hints. */
static void
try_next(watch_hints_file *r, const hints_facts *f)
{
    for (uint32_t i = 1; i <= RULES; i++) {
        if ((r->tried & 1u << i) != 0 || !hints_rule(i, f, r->best, sizeof r->best))
            continue;
        r->tried |= 1u << i;
        r->candidate = i;
        r->phase = WATCH_HINTS_TRY;
        r->hinted_runs = 0;
        r->hinted_ns = 0;
        (void) memcpy(r->give, r->best, sizeof r->give);
        return;
    }
    r->phase = WATCH_HINTS_OVER;
    r->candidate = 0;
    r->give[0] = '\0';
    r->best[0] = '\0';
}

/* One run more goes without, which tells what else there is to try. */
static void
give_up(watch_hints_file *r)
{
    r->phase = WATCH_HINTS_LEARN;
    r->candidate = 0;
    r->plain_runs = LEARN_RUNS - 1;
    r->give[0] = '\0';
    r->best[0] = '\0';
}

static void
plain_ended(watch_hints_file *r, const hints_facts *f, double ns)
{
    if (r->phase == WATCH_HINTS_LEARN) {
        r->plain_ns = r->plain_ns > 0 && r->plain_ns < ns ? r->plain_ns : ns;
        if (++r->plain_runs >= LEARN_RUNS)
            try_next(r, f);
    } else if (r->phase == WATCH_HINTS_KEEP) {
        if (r->hinted_ns > STILL_HELPS * ns) {
            give_up(r);
            return;
        }
        r->plain_ns = 0.5 * (r->plain_ns + ns);
        (void) memcpy(r->give, r->best, sizeof r->give);
    }
}

/* Slow runs have many reasons: whether the hints are one of them, the next run without tells. */
static void
kept_ended(watch_hints_file *r, double ns)
{
    double most = OUTLIER * r->hinted_ns;
    r->hinted_ns =
        ns < r->hinted_ns ? ns : r->hinted_ns + WEIGHT * ((ns < most ? ns : most) - r->hinted_ns);
    if (ns > STILL_HELPS * r->plain_ns || r->hinted_runs % CONTROL_EACH == 0)
        r->give[0] = '\0';
}

static void
hinted_ended(watch_hints_file *r, double ns)
{
    r->hinted_runs++;
    if (r->phase == WATCH_HINTS_KEEP) {
        kept_ended(r, ns);
        return;
    }
    r->hinted_ns = r->hinted_ns > 0 && r->hinted_ns < ns ? r->hinted_ns : ns;
    if (r->hinted_runs < TRY_RUNS && ns <= HOPELESS * r->plain_ns)
        return;
    if (r->hinted_ns <= HELPS * r->plain_ns)
        r->phase = WATCH_HINTS_KEEP;
    else
        give_up(r);
}

double
hints_learn(watch_hints_file *r, const hints_facts *f, const char *given)
{
    double bytes = f->read_bytes + f->write_bytes;
    double size = mean(bytes, f->read_calls + f->write_calls);
    bool hinted = given[0] != '\0';
    bool as_told = strcmp(given, r->give) == 0;
    /* Runs with hints may well take less, and so may those that are compared with them. */
    if (bytes <= 0 || (!hinted && r->phase != WATCH_HINTS_KEEP && f->seconds < LEAST_S))
        return 0;
    double ns = 1e9 * f->seconds / bytes;
    bool other = size > OTHER * r->call_bytes || size < r->call_bytes / OTHER;
    if (r->phase == 0 || other) {
        watch_hints_file fresh = {.ranks = f->ranks, .phase = WATCH_HINTS_LEARN};
        (void) memcpy(fresh.program, r->program, sizeof fresh.program);
        (void) memcpy(fresh.name, r->name, sizeof fresh.name);
        fresh.gained_s = r->gained_s;
        fresh.seen_s = r->seen_s;
        *r = fresh;
        r->call_bytes = size;
        if (hinted) /* what it took says nothing of what it takes without */
            return 0;
        as_told = true;
    }
    r->bytes = bytes;
    /* Where the program, or the user, has stated others, nothing is learned. */
    if (!as_told)
        return 0;
    if (!hinted) {
        plain_ended(r, f, ns);
        return 0;
    }
    double gain = (r->plain_ns - ns) * bytes / 1e9;
    r->gained_s += gain;
    hinted_ended(r, ns);
    return gain;
}
