/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/layer_model.h"

#include <string.h>

#include "base/scratch.h"
#include "codec/blob_bytes.h"
#include "codec/layer_tables.h"

#define HEAD_BYTES 24u
/* A state has at least this, after words were taken in. */
#define STATE_LEAST (UINT64_C(1) << 31)
#define STATES      2u

enum { FROM_KNOWN, FROM_ROW, FROM_PLANE, FROM_VOLUME, FROM_AROUND, PREDICTORS };

/* ---- the model, the same for both ways ---------------------------------------------------- */

typedef struct model {
    const esdm__layer_base *base;
    uint32_t predictor;
    uint64_t reach; /* farthest that a number is from the known one */
    int64_t *finer; /* numbers of grid points, as far as they are known */
    uint8_t *left;  /* sizes of what was left of each */
    uint8_t *kept;  /* whether it was kept */
} model;

/* A prediction within reach of what is known. */
typedef struct guess {
    int64_t known;
    int64_t number;
    uint32_t context;
    bool at_most; /* it was moved down to the largest possible number */
    bool at_least;
} guess;

static inline int64_t
plus(int64_t a, int64_t b)
{
    return (int64_t) ((uint64_t) a + (uint64_t) b);
}

static inline int64_t
minus(int64_t a, int64_t b)
{
    return (int64_t) ((uint64_t) a - (uint64_t) b);
}

static inline int64_t
known_at(const model *m, size_t i)
{
    int64_t known = m->base->known[i];
    return known != ESDM__LAYER_NOWHERE ? known : i > 0 ? m->finer[i - 1] : 0;
}

/* Differences from the left within a row or plane that lies `back` before. */
static inline int64_t
row_step(const int64_t *finer, size_t i)
{
    return minus(finer[i], finer[i - 1]);
}

static inline int64_t
predict(const model *m, size_t i, int64_t known)
{
    const int64_t *f = m->finer;
    const size_t row = m->base->row;
    const size_t plane = m->base->plane;
    if (i == 0)
        return known;
    switch (m->predictor) {
    case FROM_ROW:
        return f[i - 1];
    case FROM_PLANE:
        return i > row ? plus(f[i - 1], row_step(f, i - row)) : f[i - 1];
    case FROM_VOLUME:
        if (i <= plane + row)
            return i > row ? plus(f[i - 1], row_step(f, i - row)) : f[i - 1];
        return plus(plus(f[i - 1], row_step(f, i - row)),
                    minus(row_step(f, i - plane), row_step(f, i - plane - row)));
    case FROM_AROUND: {
        if (i < row || i + row >= m->base->n)
            return f[i - 1];
        const int64_t right = m->base->known[i + 1];
        const int64_t below = m->base->known[i + row];
        if (right == ESDM__LAYER_NOWHERE || below == ESDM__LAYER_NOWHERE)
            return f[i - 1];
        return plus(plus(f[i - 1], f[i - row]), plus(right, below)) >> 2;
    }
    default:
        return known;
    }
}

static inline uint32_t
activity_at(const model *m, size_t i)
{
    static const uint16_t limits[ESDM__LAYER_ACTIVITIES - 1] = {1, 3, 6, 10, 16, 26, 44, 80, 180};
    const size_t row = m->base->row;
    uint32_t sum = i > 0 ? 2u * m->left[i - 1] : 0;
    uint32_t a = 0;
    if (i >= row)
        sum += 2u * m->left[i - row] + m->left[i - row + 1];
    if (i > row)
        sum += m->left[i - row - 1];
    while (a < ESDM__LAYER_ACTIVITIES - 1 && sum >= limits[a])
        a++;
    return a;
}

static inline guess
guess_at(const model *m, size_t i)
{
    guess g = {.known = known_at(m, i)};
    const int64_t low = minus(g.known, (int64_t) m->reach);
    const int64_t high = plus(g.known, (int64_t) m->reach);
    const size_t row = m->base->row;
    uint32_t moved = 0;
    g.number = predict(m, i, g.known);
    if (g.number >= high || g.number <= low) {
        g.at_most = g.number >= high;
        g.at_least = !g.at_most;
        uint64_t by = g.at_most ? (uint64_t) g.number - (uint64_t) high
                                : (uint64_t) low - (uint64_t) g.number;
        moved = by > m->reach / 2 ? 2 : 1;
        g.number = g.at_most ? high : low;
    }
    uint32_t kept = (i > 0 ? m->kept[i - 1] : 0u) + (i >= row ? m->kept[i - row] : 0u);
    g.context = kept == 0 ? moved * ESDM__LAYER_ACTIVITIES + activity_at(m, i)
                          : ESDM__LAYER_ACTIVITIES * ESDM__LAYER_MOVES + kept - 1;
    return g;
}

static inline void
note(model *m, size_t i, const guess *g, bool kept, int64_t number)
{
    int64_t left = minus(number, g->number);
    uint64_t size = left < 0 ? -(uint64_t) left : (uint64_t) left;
    m->finer[i] = kept ? g->known : number;
    m->kept[i] = kept;
    m->left[i] = kept ? 0 : size < 255 ? (uint8_t) size : 255;
}

static bool
model_init(model *m, const esdm__layer_base *base)
{
    *m = (model){.base = base};
    m->finer = esdm__scratch_new(base->n * sizeof *m->finer);
    m->left = esdm__scratch_new(base->n);
    m->kept = esdm__scratch_new(base->n);
    return m->finer != NULL && m->left != NULL && m->kept != NULL;
}

static void
model_clear(model *m)
{
    esdm__scratch_free(m->finer);
    esdm__scratch_free(m->left);
    esdm__scratch_free(m->kept);
}

/* ---- symbols ------------------------------------------------------------------------------ */

static inline uint32_t
size_of(uint64_t x)
{
    return x == 0 ? 0 : 64u - (uint32_t) __builtin_clzll(x);
}

/* What is left as a number from 0 on. */
static inline uint64_t
fold(const guess *g, int64_t left)
{
    if (g->at_most)
        return (uint64_t) minus(0, left);
    if (g->at_least)
        return (uint64_t) left;
    return ((uint64_t) left << 1) ^ (uint64_t) (left >> 63);
}

static inline int64_t
unfold(const guess *g, uint64_t folded)
{
    if (g->at_most)
        return minus(0, (int64_t) folded);
    if (g->at_least)
        return (int64_t) folded;
    return (int64_t) ((folded >> 1) ^ (0 - (folded & 1)));
}

static inline uint32_t
symbol_of(uint64_t folded, uint32_t *ret_loose)
{
    *ret_loose = 0;
    if (folded < ESDM__LAYER_DIRECT)
        return 1u + (uint32_t) folded;
    uint32_t size = size_of(folded); /* > ESDM__LAYER_DIRECT_BITS */
    *ret_loose = size - 2;
    return 1u + ESDM__LAYER_DIRECT + 2u * (size - 1u - ESDM__LAYER_DIRECT_BITS) +
           (uint32_t) (folded >> (size - 2u) & 1u);
}

/* ---- encoding ----------------------------------------------------------------------------- */

static inline int64_t
difference_of(const esdm__layer_base *base, int64_t code)
{
    return base->keeps && code > 0 ? code - 1 : code;
}

static inline bool
keeps(const esdm__layer_base *base, int64_t code)
{
    return base->keeps && code == 0;
}

/* Bits that a predictor leaves, about; of rows here and there. */
static uint64_t
cost_of(model *m, const int64_t *codes)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < m->base->n; i++) { /* all numbers are known to the encoder */
        if ((i / m->base->row) % 4 != 1 || keeps(m->base, codes[i]))
            continue;
        guess g = guess_at(m, i);
        int64_t number = plus(g.known, difference_of(m->base, codes[i]));
        uint64_t folded = fold(&g, minus(number, g.number));
        cost += folded == 0 ? 1 : 2u * size_of(folded);
    }
    return cost;
}

static void
find_predictor(model *m, const int64_t *codes)
{
    uint64_t least = UINT64_MAX;
    uint32_t best = FROM_KNOWN;
    memset(m->kept, 0, m->base->n);
    memset(m->left, 0, m->base->n);
    for (size_t i = 0; i < m->base->n; i++) {
        int64_t known = known_at(m, i);
        m->finer[i] =
            keeps(m->base, codes[i]) ? known : plus(known, difference_of(m->base, codes[i]));
    }
    for (uint32_t p = 0; p < PREDICTORS; p++) {
        m->predictor = p;
        uint64_t cost = cost_of(m, codes);
        if (cost < least) {
            least = cost;
            best = p;
        }
    }
    m->predictor = best;
}

static void
find_reach(model *m, const int64_t *codes)
{
    for (size_t i = 0; i < m->base->n; i++) {
        int64_t d = difference_of(m->base, codes[i]);
        uint64_t size = d < 0 ? -(uint64_t) d : (uint64_t) d;
        m->reach = size > m->reach ? size : m->reach;
    }
}

/* Symbols and contexts in their order; counts; loose bits. false: something is out of reach. */
static bool
make_symbols(model *m, const int64_t *codes, uint8_t *symbols, uint8_t *contexts,
             esdm__layer_tables *t, esdm__layer_bits *loose)
{
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < m->base->n; i++) {
        const guess g = guess_at(m, i);
        const bool kept = keeps(m->base, codes[i]);
        const int64_t number = plus(g.known, difference_of(m->base, codes[i]));
        uint32_t symbol = 0;
        if (!kept) {
            uint32_t count;
            uint64_t folded = fold(&g, minus(number, g.number));
            if ((g.at_most || g.at_least) && (int64_t) folded < 0)
                return false;
            symbol = symbol_of(folded, &count);
            esdm__layer_bits_put(loose, folded, count);
        }
        note(m, i, &g, kept, number);
        symbols[i] = (uint8_t) symbol;
        contexts[i] = (uint8_t) g.context;
        t->frequency[g.context][symbol]++;
    }
    return !loose->failed;
}

/* From the last symbol to the first; words come to stand in the order of decoding at the end of the
 * room. @return bytes; 0: no room. */
static size_t
put_words(const esdm__layer_tables *t, const uint8_t *symbols, const uint8_t *contexts, size_t n,
          uint8_t *out, size_t room)
{
    uint64_t state[STATES] = {STATE_LEAST, STATE_LEAST};
    size_t at = room & ~(size_t) 3;
    for (size_t i = n; i-- > 0;) {
        uint64_t *x = &state[i % STATES];
        const uint64_t f = t->frequency[contexts[i]][symbols[i]];
        if (*x >= ((STATE_LEAST >> ESDM__LAYER_TOTAL_BITS) << 32) * f) {
            if (at < 4)
                return 0;
            at -= 4;
            put_u32(out + at, (uint32_t) *x);
            *x >>= 32;
        }
        *x = (*x / f << ESDM__LAYER_TOTAL_BITS) + *x % f + t->start[contexts[i]][symbols[i]];
    }
    if (at < 8 * STATES)
        return 0;
    for (uint32_t k = STATES; k-- > 0;) {
        at -= 8;
        put_u64(out + at, state[k]);
    }
    size_t bytes = (room & ~(size_t) 3) - at;
    memmove(out, out + at, bytes);
    return bytes;
}

static size_t
encode(model *m, const int64_t *codes, esdm__layer_tables *t, uint8_t *symbols, uint8_t *contexts,
       uint8_t *out, size_t room)
{
    const size_t n = m->base->n;
    find_reach(m, codes);
    if (m->reach > (uint64_t) INT64_MAX / 4)
        return 0;
    find_predictor(m, codes);
    esdm__layer_bits loose = {.data = out,
                              .room = room}; /* they are moved when the tables are known */
    if (!make_symbols(m, codes, symbols, contexts, t, &loose))
        return 0;
    for (uint32_t c = 0; c < ESDM__LAYER_CONTEXTS; c++)
        esdm__layer_tables_scale(t->frequency[c]);
    esdm__layer_tables_start(t);
    size_t loose_bytes = (loose.at + 7) >> 3;
    uint8_t written[ESDM__LAYER_CONTEXTS * (2u + 3u * ESDM__LAYER_SYMBOLS)];
    size_t table_bytes = esdm__layer_tables_write(t, written, sizeof written);
    size_t before = HEAD_BYTES + table_bytes + loose_bytes;
    if (table_bytes == 0 || before >= room)
        return 0;
    memmove(out + HEAD_BYTES + table_bytes, out, loose_bytes);
    memcpy(out + HEAD_BYTES, written, table_bytes);
    memset(out, 0, HEAD_BYTES);
    out[0] = (uint8_t) m->predictor;
    put_u64(out + 8, m->reach);
    put_u32(out + 16, (uint32_t) table_bytes);
    put_u32(out + 20, (uint32_t) loose_bytes);
    size_t words = put_words(t, symbols, contexts, n, out + before, room - before);
    return words > 0 ? before + words : 0;
}

size_t
esdm__layer_model_encode(const esdm__layer_base *base, const int64_t *codes, uint8_t *out,
                         size_t room)
{
    model m;
    size_t bytes = 0;
    bool good = model_init(&m, base);
    esdm__layer_tables *t = esdm__scratch_new(sizeof *t);
    uint8_t *symbols = esdm__scratch_new(base->n);
    uint8_t *contexts = esdm__scratch_new(base->n);
    if (good && t != NULL && symbols != NULL && contexts != NULL)
        bytes = encode(&m, codes, t, symbols, contexts, out, room);
    model_clear(&m);
    esdm__scratch_free(t);
    esdm__scratch_free(symbols);
    esdm__scratch_free(contexts);
    return bytes;
}

/* ---- decoding ----------------------------------------------------------------------------- */

typedef struct decoder {
    esdm__layer_tables t;
    uint8_t symbol[ESDM__LAYER_CONTEXTS][ESDM__LAYER_TOTAL]; /* of each slot */
} decoder;

static void
make_slots(decoder *d)
{
    for (uint32_t c = 0; c < ESDM__LAYER_CONTEXTS; c++) {
        /* Where nothing occurred: a symbol that has no frequency. */
        memset(d->symbol[c], 0, sizeof d->symbol[c]);
        for (uint32_t s = 0; s < ESDM__LAYER_SYMBOLS; s++)
            memset(d->symbol[c] + d->t.start[c][s], (int) s, d->t.frequency[c][s]);
    }
}

static bool
decode(model *m, const decoder *d, esdm__layer_bits *loose, const uint8_t *words, size_t bytes,
       int64_t *codes)
{
    uint64_t state[STATES];
    size_t at = 8 * STATES;
    if (bytes < at)
        return false;
    for (uint32_t k = 0; k < STATES; k++)
        state[k] = get_u64(words + 8 * (size_t) k);
    for (size_t i = 0; i < m->base->n; i++) {
        const guess g = guess_at(m, i);
        uint64_t *x = &state[i % STATES];
        const uint32_t slot = (uint32_t) *x & (ESDM__LAYER_TOTAL - 1);
        const uint32_t symbol = d->symbol[g.context][slot];
        const uint32_t f = d->t.frequency[g.context][symbol];
        if (f == 0) /* a context that did not occur */
            return false;
        *x = f * (*x >> ESDM__LAYER_TOTAL_BITS) + slot - d->t.start[g.context][symbol];
        if (*x < STATE_LEAST) {
            if (bytes - at < 4)
                return false;
            *x = *x << 32 | get_u32(words + at);
            at += 4;
        }
        const bool kept = symbol == 0;
        int64_t number = g.known;
        if (!kept) {
            uint64_t folded = symbol - 1u;
            if (symbol > ESDM__LAYER_DIRECT) {
                uint32_t size =
                    (symbol - 1u - ESDM__LAYER_DIRECT) / 2u + 1u + ESDM__LAYER_DIRECT_BITS;
                folded = (2u | ((symbol - 1u - ESDM__LAYER_DIRECT) & 1u));
                folded = folded << (size - 2u) | esdm__layer_bits_take(loose, size - 2u);
            }
            number = plus(g.number, unfold(&g, folded));
        }
        note(m, i, &g, kept, number);
        int64_t difference = minus(number, g.known);
        codes[i] = kept ? 0 : m->base->keeps && difference >= 0 ? plus(difference, 1) : difference;
    }
    return !loose->failed && at == bytes && state[0] == STATE_LEAST && state[1] == STATE_LEAST;
}

bool
esdm__layer_model_decode(const esdm__layer_base *base, const uint8_t *stored, size_t bytes,
                         int64_t *codes, bool *ret_nomem)
{
    model m;
    bool good = false;
    *ret_nomem = false;
    if (bytes < HEAD_BYTES || stored[0] >= PREDICTORS)
        return false;
    const size_t table_bytes = get_u32(stored + 16);
    const size_t loose_bytes = get_u32(stored + 20);
    const uint64_t reach = get_u64(stored + 8);
    if (table_bytes > bytes - HEAD_BYTES || loose_bytes > bytes - HEAD_BYTES - table_bytes ||
        reach > (uint64_t) INT64_MAX / 4)
        return false;
    decoder *d = esdm__scratch_new(sizeof *d);
    bool room = model_init(&m, base) && d != NULL;
    *ret_nomem = !room;
    m.predictor = stored[0];
    m.reach = reach;
    if (room && esdm__layer_tables_read(stored + HEAD_BYTES, table_bytes, &d->t)) {
        make_slots(d);
        union {
            const uint8_t *from;
            uint8_t *data;
        } at = {.from = stored + HEAD_BYTES + table_bytes};
        esdm__layer_bits loose = {.data = at.data, .room = loose_bytes};
        good = decode(&m, d, &loose, at.from + loose_bytes,
                      bytes - HEAD_BYTES - table_bytes - loose_bytes, codes);
    }
    model_clear(&m);
    esdm__scratch_free(d);
    return good;
}
