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
/* Blocks of the fragment on which they are tried, and the bytes of one. */
#define SAMPLES      3u
#define SAMPLE_BYTES (UINT64_C(128) << 10)
/* Where large blocks are stored: codecs are not to be judged by blocks that are too small for them.
 */
#define SAMPLE_LARGE (UINT64_C(1) << 20)
/* Candidates within that factor of the best are tried again. */
#define NEAR 1.3
/* A sample that is larger than that because rows are long is tried all the same, once. */
#define SAMPLE_MOST (UINT64_C(4) << 20)

/* ---- candidates --------------------------------------------------------------------------- */

enum { SPEED = 1, BALANCED = 2, ARCHIVE = 4, ENERGY = 8, ALL = 15 };

typedef struct candidate {
    const char *chain;
    esdm_codec_effort effort;
    bool lossy;      /* for data that may be off, else for others */
    uint32_t modes;  /* it can win in */
    bool whole_type; /* for elements of several bytes alone */
} candidate;

/* What experience leaves over; the rest is measured. Codecs that are not there are passed over. */
static const candidate candidates[] = {
    {"none", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY, false},
    {"lz4", ESDM_EFFORT_FAST, false, SPEED | ENERGY, false},
    {"shuffle+lz4", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY, true},
    {"shuffle+zstd", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY, true},
    {"shuffle+zstd", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, true},
    {"zstd", ESDM_EFFORT_FAST, false, BALANCED | ENERGY, false},
    {"zstd", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, false},
    {"field", ESDM_EFFORT_FAST, false, SPEED | BALANCED | ENERGY, false},
    {"field", ESDM_EFFORT_BALANCED, false, BALANCED, false},
    {"field", ESDM_EFFORT_ARCHIVE, false, ARCHIVE, false},
    {"none", ESDM_EFFORT_FAST, true, SPEED | ENERGY, false},
    {"bitround+shuffle+lz4", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY, true},
    {"bitround+shuffle+zstd", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY, true},
    {"bitround+shuffle+zstd", ESDM_EFFORT_ARCHIVE, true, ARCHIVE, true},
    {"bitround+zstd", ESDM_EFFORT_BALANCED, true, BALANCED | ARCHIVE, false},
    {"field", ESDM_EFFORT_FAST, true, SPEED | BALANCED | ENERGY, false},
    {"field", ESDM_EFFORT_BALANCED, true, BALANCED, false},
    {"field", ESDM_EFFORT_ARCHIVE, true, ARCHIVE, false},
};
#define NCANDIDATES (sizeof candidates / sizeof candidates[0])

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
        return (prices){SPEED, 2e9, 0.5};
    case ESDM_MODE_ARCHIVE: /* bytes decide, also of data that become a hundredth */
        return (prices){ARCHIVE, 1e3, 0.1};
    case ESDM_MODE_ENERGY:
        return (prices){ENERGY, 1e9, 1};
    default: /* what one of many cores has of a computing centre's storage; with a tolerance most
              * bytes go anyhow, and writing is to take no longer than without */
        return (prices){BALANCED, lossy ? 120e6 : 15e6, 1};
    }
}

/* What is known of storage, in place of the general figures. Who asks for compression does not want
 * to hear that the disk is fast. */
static prices
prices_here(const esdm__wish *wish)
{
    prices p = prices_of(wish->mode, wish->numbers->accuracy != NULL);
    bool counts = p.mode == SPEED || p.mode == ENERGY ||
                  (p.mode == BALANCED && wish->bandwidth < p.bandwidth);
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

/* Blocks of a fragment, on which chains are tried. */
typedef struct sample {
    const esdm__blob_numbers *numbers;
    esdm__blocks blocks;
    uint32_t list[SAMPLES];
    uint32_t count;
    uint8_t *decoded; /* room for one */
} sample;

/* What a chain made of the sample. */
typedef struct trial {
    double raw_bytes;
    double stored_bytes;
    double encode_s;
    double decode_s;
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

/* The first, the last and the middle block; nothing when blocks are huge. */
static esdm_status
take_sample(const esdm__blob_numbers *numbers, sample *s, esdm_error *err)
{
    *s = (sample){.numbers = numbers};
    if (!esdm__blocks_cut(numbers->rank, numbers->shape, numbers->element_bytes,
                          sample_bytes(numbers), &s->blocks))
        return esdm__error_set(err, ESDM_EINVAL, "a fragment of this shape cannot be encoded");
    uint32_t n = s->blocks.blocks;
    s->count = n < SAMPLES ? n : s->blocks.block_bytes > SAMPLE_MOST ? 1 : SAMPLES;
    for (uint32_t i = 0; i < s->count; i++)
        s->list[i] = s->count == 1 ? n / 2 : (uint32_t) ((uint64_t) i * (n - 1) / (s->count - 1));
    s->decoded = malloc((size_t) s->blocks.block_bytes);
    return s->decoded != NULL
               ? ESDM_OK
               : esdm__error_nomem(err, (size_t) s->blocks.block_bytes, "a choice of codecs");
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
try_block(const sample *s, uint32_t block, const esdm__chain *chain, esdm_codec_effort effort,
          trial *t, esdm_error *err)
{
    uint64_t shape[ESDM_MAX_RANK];
    uint64_t from = esdm__blocks_start(&s->blocks, block);
    size_t bytes = (size_t) (esdm__blocks_start(&s->blocks, block + 1) - from);
    esdm__blob_numbers numbers = *s->numbers;
    esdm__blob blob = {0};
    esdm__blocks_shape(&s->blocks, block, shape);
    numbers.shape = shape;
    numbers.raw = (const uint8_t *) s->numbers->raw + from;
    numbers.chain = chain;
    numbers.effort = effort;
    double start = cpu_seconds();
    esdm_status st = esdm__blob_encode_numbers(&numbers, &blob, NULL, err);
    double encoded = cpu_seconds();
    if (st == ESDM_OK)
        st = decode(s, &blob, chain, bytes, err);
    if (st == ESDM_OK) {
        t->raw_bytes += (double) bytes;
        t->stored_bytes += (double) blob.payload_bytes;
        t->encode_s += encoded - start;
        t->decode_s += cpu_seconds() - encoded;
    }
    esdm__blob_clear(&blob);
    return st;
}

static esdm_status
try_chain(const sample *s, const esdm__chain *chain, esdm_codec_effort effort, trial *ret_trial,
          esdm_error *err)
{
    trial t = {0};
    esdm_status st = ESDM_OK;
    for (uint32_t i = 0; i < s->count && st == ESDM_OK; i++)
        st = try_block(s, s->list[i], chain, effort, &t, err);
    *ret_trial = t;
    return st;
}

/* Infinite where a limit is not kept. */
static double
cost_of(const trial *t, const prices *p, const esdm__wish *wish)
{
    if (t->raw_bytes < wish->compression_speed * t->encode_s ||
        t->raw_bytes < wish->decompression_speed * t->decode_s)
        return (double) INFINITY;
    return t->stored_bytes / p->bandwidth + t->encode_s + p->reading * t->decode_s;
}

/* ---- the choice --------------------------------------------------------------------------- */

/* A candidate that can win. */
typedef struct entrant {
    esdm__choice choice;
    double cost;
} entrant;

static bool
can_win(const candidate *c, const prices *p, const esdm__wish *wish, esdm__choice *ret_choice)
{
    *ret_choice = (esdm__choice){.made = true, .effort = c->effort};
    return (c->modes & p->mode) != 0 && c->lossy == (wish->numbers->accuracy != NULL) &&
           !(c->whole_type && wish->numbers->element_bytes == 1) &&
           esdm__chain_parse(c->chain, &ret_choice->chain, NULL) == ESDM_OK;
}

static esdm_status
try_entrant(const sample *s, const esdm__wish *wish, const prices *p, entrant *e, esdm_error *err)
{
    trial t;
    esdm_status st = try_chain(s, &e->choice.chain, e->choice.effort, &t, err);
    double cost = st == ESDM_OK ? cost_of(&t, p, wish) : (double) INFINITY;
    e->cost = cost < e->cost ? cost : e->cost;
    return st;
}

static const entrant *
cheapest(const entrant *list, size_t n)
{
    const entrant *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (best == NULL || list[i].cost < best->cost)
            best = &list[i];
    }
    return best;
}

/* Who comes near the best is tried twice and judged by the better time: a single one may have met
 * cold caches, or another program. */
static esdm_status
choose_from(const sample *s, const esdm__wish *wish, esdm__choice *ret_best, esdm_error *err)
{
    prices p = prices_here(wish);
    entrant list[NCANDIDATES];
    size_t n = 0;
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < NCANDIDATES && st == ESDM_OK; i++) {
        list[n].cost = (double) INFINITY;
        if (can_win(&candidates[i], &p, wish, &list[n].choice))
            st = try_entrant(s, wish, &p, &list[n++], err);
    }
    const entrant *best = cheapest(list, n);
    double least = best != NULL ? best->cost : (double) INFINITY;
    for (size_t i = 0; i < n && st == ESDM_OK && isfinite(least); i++) {
        if (list[i].cost <= NEAR * least)
            st = try_entrant(s, wish, &p, &list[i], err);
    }
    best = cheapest(list, n);
    if (st == ESDM_OK && best != NULL && isfinite(best->cost))
        *ret_best = best->choice;
    return st;
}

esdm_status
esdm__choose(const esdm__wish *wish, esdm__choice *choice, esdm_error *err)
{
    sample s;
    /* Where no chain keeps the limits, or none is there, bytes are stored as they are. */
    esdm__choice best = {.made = true, .effort = ESDM_EFFORT_FAST};
    esdm_status st = take_sample(wish->numbers, &s, err);
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
    return !choice->made || choice->drifted || choice->fragments >= FRAGMENTS;
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
