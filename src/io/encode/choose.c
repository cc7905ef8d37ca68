/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/encode/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "codec/blocks.h"
#include "codec/chain.h"
#include "io/session/models.h"
#include "io/session/session.h"
#include "plugin/registry.h"

/* Fragments after which the chains are tried again, and by how much the ratio may drift. */
#define FRAGMENTS 512u
#define DRIFT     0.1
#define WINDOW    16u /* fragments of which it is a mean */
/* Blocks on which they are tried, about and at most, and the bytes of one. */
#define SAMPLES      3u
#define PIECES       4u
#define SAMPLE_BYTES (UINT64_C(128) << 10)
/* Where large blocks are stored: codecs are not to be judged by blocks that are too small for them.
 */
#define SAMPLE_LARGE (UINT64_C(1) << 20)
/* A sample that is larger than that because rows are long is tried all the same, once. */
#define SAMPLE_MOST (UINT64_C(4) << 20)

/* ---- candidates --------------------------------------------------------------------------- */

enum { SPEED = 1, BALANCED = 2, ARCHIVE = 4, ENERGY = 8, PROGRESSIVE = 16, FAST = 32 };

typedef struct candidate {
    const char *chain;
    esdm_codec_effort effort;
    bool lossy;      /* for data that may be off, else for others */
    uint32_t modes;  /* it can win in */
    bool whole_type; /* for elements of several bytes alone */
    /* MB/s of raw bytes on one core, as measured once on real fields (tests/bench/compression) on a
     * server of 2023. Choices go by these and by the bytes that come out: a stopwatch would choose
     * otherwise whenever the machine is busy, and two runs would store different bytes. */
    double encodes, decodes;
} candidate;

/* What experience leaves over; how many bytes they make is tried. Codecs that are not there are
 * passed over. */
static const candidate candidates[] = {
    {"none", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY | FAST, false, 20000, 20000},
    {"lz4", ESDM_EFFORT_FAST, false, SPEED | ENERGY | FAST, false, 1500, 6000},
    {"shuffle+lz4", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY | FAST, true, 1300, 4500},
    {"shuffle+zstd", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY | FAST, true, 600, 2200},
    {"shuffle+zstd", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, true, 12, 2000},
    {"zstd", ESDM_EFFORT_FAST, false, BALANCED | ENERGY | FAST, false, 500, 1800},
    {"zstd", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, false, 10, 1500},
    {"field", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY | FAST, false, 550, 1600},
    {"field", ESDM_EFFORT_BALANCED, false, BALANCED | PROGRESSIVE, false, 430, 1000},
    {"field", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, false, 60, 170},
    /* Not `none`: who says how far numbers may be off wants fewer bytes, and a looser bound would
     * store more of them than a stricter one whose fragments chose otherwise. */
    {"shuffle+zstd", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY | FAST, true, 600, 2200},
    {"bitround+shuffle+lz4", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY | FAST, true, 1000,
     4500},
    {"bitround+shuffle+zstd", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY | FAST, true, 550,
     2200},
    {"bitround+shuffle+zstd", ESDM_EFFORT_ARCHIVE, true, ARCHIVE, true, 12, 2000},
    {"bitround+zstd", ESDM_EFFORT_BALANCED, true, BALANCED | ARCHIVE, false, 200, 1800},
    {"field", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY | FAST, false, 1500, 3500},
    {"field", ESDM_EFFORT_BALANCED, true, BALANCED | PROGRESSIVE, false, 600, 1300},
    {"field", ESDM_EFFORT_ARCHIVE, true, ARCHIVE, false, 30, 170},
};
#define NCANDIDATES (sizeof candidates / sizeof candidates[0])

/* Of numbers that lie on steps already (whole metres, say, which rounding of bits within a small
 * tolerance leaves as they are) whoever rounds better would change some: but all may be kept. */
static const candidate exact_candidates[] = {
    {"field", ESDM_EFFORT_FAST, true, SPEED, false, 550, 1600},
    {"field", ESDM_EFFORT_BALANCED, true, BALANCED, false, 430, 1000},
    {"field", ESDM_EFFORT_ARCHIVE, true, ARCHIVE, false, 60, 170},
};
#define NEXACT (sizeof exact_candidates / sizeof exact_candidates[0])

/* What bytes and time are worth. */
typedef struct prices {
    uint32_t mode;
    double bandwidth; /* bytes per second to where they are stored */
    double reading;   /* share of the time of decoding */
} prices;

static prices
prices_of(esdm_accuracy_mode mode, bool lossy)
{
    switch (mode) {
    case ESDM_MODE_SPEED:
        return (prices){SPEED, 1e9, 0.5};
    case ESDM_MODE_ARCHIVE: /* bytes decide, also of data that become a hundredth */
        return (prices){ARCHIVE, 1e3, 0.1};
    case ESDM_MODE_PROGRESSIVE: /* there is one codec that layers can be made with */
        return (prices){PROGRESSIVE, 30e6, 1};
    case ESDM_MODE_ENERGY:
        return (prices){ENERGY, 1e9, 1};
    case ESDM_MODE_FAST: /* a tenth of the bytes is worth what the fastest good codecs cost */
        return (prices){FAST, 60e6, 1};
    default: /* what one of many cores has of a computing centre's storage; within a tolerance bytes
              * decide among codecs that are fast, so that a looser one never takes more of them */
        return (prices){BALANCED, lossy ? 1e4 : 15e6, 1};
    }
}

/* What is known of storage, in place of the general figures. Who asks for compression does not want
 * to hear that the disk is fast. */
static prices
prices_here(const esdm__wish *wish)
{
    prices p = prices_of(wish->mode, wish->numbers->accuracy != NULL);
    bool counts = p.mode == SPEED || p.mode == ENERGY ||
                  ((p.mode == BALANCED || p.mode == FAST) && wish->bandwidth < p.bandwidth);
    if (wish->bandwidth > 0 && counts)
        p.bandwidth = wish->bandwidth;
    return p;
}

double
esdm__storage_bandwidth(esdm_session *session)
{
    double sum = 0;
    double bytes = (double) session->site->engine.fragment_bytes;
    double threads = session->site->engine.threads > 0 ? session->site->engine.threads : 1;
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__perf perf;
        if (esdm__models_get(session, i, false, &perf))
            sum += esdm__perf_bandwidth(&perf, bytes, threads);
    }
    return sum;
}

/* ---- trials ------------------------------------------------------------------------------- */

/* A block, on which chains are tried. */
typedef struct piece {
    const esdm__blob_numbers *numbers; /* borrowed; the fragment */
    esdm__blocks blocks;
    uint32_t block;
} piece;

typedef struct sample {
    piece pieces[PIECES];
    uint32_t count;
    uint8_t *decoded; /* room for one */
} sample;

/* What a chain made of the sample. */
typedef struct trial {
    double raw_bytes;
    double stored_bytes;
    double encode_s;
    double decode_s;
    bool changed; /* some number is another one */
    bool exact;   /* some block is stored without loss, as what is asked for was not reached */
} trial;

static double
cpu_seconds(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Raw bytes of a block, about. */
static uint64_t
sample_bytes(const esdm__blob_numbers *numbers)
{
    if (numbers->block_bytes == 0)
        return SAMPLE_BYTES;
    return numbers->block_bytes < SAMPLE_LARGE ? numbers->block_bytes : SAMPLE_LARGE;
}

/* Adds some blocks of a fragment: the middle one, or others from the first to the last. */
static esdm_status
take_pieces(const esdm__blob_numbers *numbers, uint32_t wanted, sample *s, uint64_t *most,
            esdm_error *err)
{
    piece p = {.numbers = numbers};
    if (!esdm__blocks_cut(numbers->rank, numbers->shape, numbers->element_bytes,
                          sample_bytes(numbers), &p.blocks))
        return esdm__error_set(err, ESDM_EINVAL, "a fragment of this shape cannot be encoded");
    uint32_t n = p.blocks.blocks;
    uint32_t count = n < wanted ? n : p.blocks.block_bytes > SAMPLE_MOST ? 1 : wanted;
    for (uint32_t i = 0; i < count; i++) {
        p.block = count == 1 ? n / 2 : (uint32_t) ((uint64_t) i * (n - 1) / (count - 1));
        s->pieces[s->count++] = p;
    }
    *most = p.blocks.block_bytes > *most ? p.blocks.block_bytes : *most;
    return ESDM_OK;
}

/* Of one fragment the first, the last and the middle block; of several about as many. Where blocks
 * are huge one fragment says enough. */
static esdm_status
take_sample(const esdm__wish *wish, sample *s, esdm_error *err)
{
    uint32_t wanted = (SAMPLES + wish->count - 1) / wish->count;
    uint64_t most = 0;
    esdm_status st = ESDM_OK;
    *s = (sample){.count = 0};
    for (uint32_t i = 0; i < wish->count && st == ESDM_OK && most <= SAMPLE_MOST; i++)
        st = take_pieces(&wish->numbers[i], wanted, s, &most, err);
    if (st != ESDM_OK)
        return st;
    s->decoded = malloc((size_t) most);
    return s->decoded != NULL ? ESDM_OK
                              : esdm__error_nomem(err, (size_t) most, "a choice of codecs");
}

static esdm_status
decode(const sample *s, const esdm__blob *blob, const esdm__chain *chain, size_t raw_bytes,
       esdm_error *err)
{
    esdm__blob_view view;
    esdm_status st =
        esdm__blob_parse(blob->head, blob->head_bytes, esdm__plugin_codec_by_id, &view, err);
    if (st != ESDM_OK || chain->count == 0)
        return st;
    return esdm__blob_decode(&view, 0, view.blocks, blob->payload, blob->payload_bytes, s->decoded,
                             raw_bytes, err);
}

static esdm_status
try_block(const sample *s, const piece *p, const esdm__chain *chain, esdm_codec_effort effort,
          bool exactly, trial *t, esdm_error *err)
{
    uint64_t shape[ESDM_MAX_RANK];
    uint64_t from = esdm__blocks_start(&p->blocks, p->block);
    size_t bytes = (size_t) (esdm__blocks_start(&p->blocks, p->block + 1) - from);
    esdm__blob_numbers numbers = *p->numbers;
    esdm__blob blob = {0};
    esdm__blob_accuracy accuracy = {0};
    esdm__blocks_shape(&p->blocks, p->block, shape);
    numbers.shape = shape;
    numbers.raw = (const uint8_t *) p->numbers->raw + from;
    numbers.chain = chain;
    numbers.effort = effort;
    if (exactly) {
        numbers.accuracy = NULL;
        numbers.limits = NULL;
    }
    double start = cpu_seconds();
    esdm_status st = esdm__blob_encode_numbers(&numbers, &blob, &accuracy, err);
    double encoded = cpu_seconds();
    if (st == ESDM_OK)
        st = decode(s, &blob, chain, bytes, err);
    if (st == ESDM_OK) {
        t->raw_bytes += (double) bytes;
        t->stored_bytes += (double) blob.payload_bytes;
        t->encode_s += encoded - start;
        t->decode_s += cpu_seconds() - encoded;
        t->changed =
            t->changed || (chain->count > 0 && memcmp(s->decoded, numbers.raw, bytes) != 0);
        t->exact = t->exact || accuracy.blocks_lossless > 0 || blob.payload_bytes >= bytes;
    }
    esdm__blob_clear(&blob);
    return st;
}

static esdm_status
try_chain(const sample *s, const esdm__choice *choice, trial *ret_trial, esdm_error *err)
{
    trial t = {0};
    esdm_status st = ESDM_OK;
    for (uint32_t i = 0; i < s->count && st == ESDM_OK; i++)
        st = try_block(s, &s->pieces[i], &choice->chain, choice->effort, choice->exact, &t, err);
    *ret_trial = t;
    return st;
}

/* Whether it is as fast as was asked for, on this machine and now: nobody asks for that but who
 * wants to have it measured. */
static bool
is_fast_enough(const trial *t, const esdm__wish *wish)
{
    return t->raw_bytes >= wish->compression_speed * t->encode_s &&
           t->raw_bytes >= wish->decompression_speed * t->decode_s;
}

/* Seconds that the sample costs. */
static double
cost_of(const trial *t, const candidate *c, const prices *p)
{
    return t->stored_bytes / p->bandwidth + t->raw_bytes / (c->encodes * 1e6) +
           p->reading * t->raw_bytes / (c->decodes * 1e6);
}

/* ---- the choice --------------------------------------------------------------------------- */

static bool
can_win(const candidate *c, const prices *p, const esdm__wish *wish, esdm__choice *ret_choice)
{
    *ret_choice = (esdm__choice){.made = true, .effort = c->effort};
    return (c->modes & p->mode) != 0 && c->lossy == (wish->numbers->accuracy != NULL) &&
           !(c->whole_type && wish->numbers->element_bytes == 1) &&
           esdm__chain_parse(c->chain, &ret_choice->chain, NULL) == ESDM_OK;
}

/* A chain that is too slow is tried once more: the first time may have met cold caches, or another
 * program. */
static esdm_status
try_candidate(const sample *s, const esdm__wish *wish, const esdm__choice *choice, trial *ret_trial,
              bool *ret_fast, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    *ret_fast = false;
    for (int times = 0; times < 2 && st == ESDM_OK && !*ret_fast; times++) {
        st = try_chain(s, choice, ret_trial, err);
        *ret_fast = st == ESDM_OK && is_fast_enough(ret_trial, wish);
    }
    return st;
}

/* Whether the numbers were rounded before by a codec that would leave them so: those that change
 * them again cannot win then. A codec that stores blocks without loss says nothing about that. */
static bool
keeps_rounding(const candidate *c, const trial *t)
{
    return !t->changed && !t->exact &&
           (strncmp(c->chain, "field", 5) == 0 || strncmp(c->chain, "bitround", 8) == 0);
}

/* The same for a chain that is to keep what it could round. */
static esdm_status
try_exact(const sample *s, const esdm__wish *wish, const candidate *c, const prices *p,
          double *least, esdm__choice *best, esdm_error *err)
{
    esdm__choice choice;
    trial t = {0};
    bool fast = false;
    if (!can_win(c, p, wish, &choice))
        return ESDM_OK;
    choice.exact = true;
    esdm_status st = try_candidate(s, wish, &choice, &t, &fast, err);
    if (st == ESDM_OK && fast && cost_of(&t, c, p) < *least) {
        *least = cost_of(&t, c, p);
        *best = choice;
    }
    return st;
}

static esdm_status
choose_from(const sample *s, const esdm__wish *wish, esdm__choice *ret_best, esdm_error *err)
{
    prices p = prices_here(wish);
    double least[2] = {(double) INFINITY,
                       (double) INFINITY}; /* of all, and of what changes nothing */
    esdm__choice best[2];
    bool rounded = false;
    bool steps = false; /* those of the codec `field`, which stay */
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < NCANDIDATES && st == ESDM_OK; i++) {
        esdm__choice choice;
        trial t = {0};
        bool fast = false;
        if (!can_win(&candidates[i], &p, wish, &choice))
            continue;
        st = try_candidate(s, wish, &choice, &t, &fast, err);
        double cost = fast ? cost_of(&t, &candidates[i], &p) : (double) INFINITY;
        bool keeps = fast && candidates[i].lossy && keeps_rounding(&candidates[i], &t);
        rounded = rounded || keeps;
        steps = steps || (keeps && candidates[i].chain[0] == 'f');
        for (int k = 0; k < 2; k++) {
            if (cost < least[k] && (k == 0 || !t.changed)) {
                least[k] = cost;
                best[k] = choice;
            }
        }
    }
    for (size_t i = 0; i < NEXACT && rounded && !steps && st == ESDM_OK; i++)
        st = try_exact(s, wish, &exact_candidates[i], &p, &least[1], &best[1], err);
    if (least[rounded] < (double) INFINITY)
        *ret_best = best[rounded];
    return st;
}

esdm_status
esdm__choose(const esdm__wish *wish, esdm__choice *choice, esdm_error *err)
{
    sample s;
    /* Where no chain keeps the limits, or none is there, bytes are stored as they are. */
    esdm__choice best = {.made = true, .effort = ESDM_EFFORT_FAST};
    esdm_status st = take_sample(wish, &s, err);
    if (st == ESDM_OK)
        st = choose_from(&s, wish, &best, err);
    free(s.decoded);
    if (st == ESDM_OK)
        *choice = best;
    return st == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, st, "choice of codecs");
}

bool
esdm__choice_is_due(const esdm__choice *choice)
{
    /* What comes next may be no whole numbers. */
    return !choice->made || choice->drifted || choice->fragments >= (choice->exact ? 1 : FRAGMENTS);
}

void
esdm__choice_note(esdm__choice *choice, uint64_t raw_bytes, uint64_t stored_bytes)
{
    choice->fragments++;
    choice->latest.raw_bytes += raw_bytes;
    choice->latest.stored_bytes += stored_bytes;
    if (++choice->latest.fragments < WINDOW || choice->latest.stored_bytes == 0)
        return;
    double ratio = (double) choice->latest.raw_bytes / (double) choice->latest.stored_bytes;
    if (choice->ratio == 0)
        choice->ratio = ratio;
    choice->drifted = choice->drifted || fabs(ratio / choice->ratio - 1) > DRIFT;
    memset(&choice->latest, 0, sizeof choice->latest);
}
