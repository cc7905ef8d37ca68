/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "stream.h"

#include <string.h>

/* ---- range decoder ------------------------------------------------------------------------ */

#define PROBABILITY_BITS 16u

/* Bytes past the end are zeros; `failed` is set when they are asked for, or a number is none. */
typedef struct range_decoder {
    const uint8_t *next;
    const uint8_t *end;
    uint32_t low;
    uint32_t range;
    uint32_t code;
    bool failed;
} range_decoder;

static void
shift_in(range_decoder *r, int count)
{
    for (; count > 0; count--) {
        r->failed |= r->next == r->end;
        r->code = r->code << 8 | (r->next == r->end ? 0u : *r->next++);
        r->low <<= 8;
    }
}

static void
normalize(range_decoder *r)
{
    while (r->range != 0 && ((r->low ^ (r->low + r->range)) >> 24) == 0) {
        shift_in(r, 1);
        r->range <<= 8;
    }
    if (r->range >> 16 == 0) {
        shift_in(r, 2);
        r->range = 0u - r->low;
    }
}

/* Which of 2^bits equal parts of the range the code is in. */
static uint32_t
part_of(range_decoder *r, uint32_t bits)
{
    r->range >>= bits;
    if (r->range == 0) {
        r->failed = true;
        r->range = 1;
    }
    uint32_t part = (r->code - r->low) / r->range;
    if (part >> bits != 0) {
        r->failed = true;
        part = 0;
    }
    return part;
}

/* A number of `count` bits as it is; 16 at a time, the least first. */
static uint64_t
plain_bits(range_decoder *r, uint32_t count)
{
    uint64_t value = 0;
    uint32_t done = 0;
    for (bool more = true; more;) {
        uint32_t bits = count - done > 16 ? 16 : count - done;
        uint32_t part = part_of(r, bits);
        r->low += r->range * part;
        normalize(r);
        value |= (uint64_t) part << done;
        done += bits;
        more = done < count;
    }
    return value;
}

/* ---- adaptive model ----------------------------------------------------------------------- */

#define SYMBOLS_MAX 129u
#define PERIOD      1024u /* symbols between two updates of the table, in the end */

typedef struct model {
    uint32_t symbols;
    uint32_t left; /* symbols until the next update */
    uint32_t more; /* of them, with a larger step */
    uint32_t step;
    uint32_t period;
    uint32_t weight[SYMBOLS_MAX];
    uint32_t start[SYMBOLS_MAX + 1]; /* cumulated weights at the last update */
} model;

static void
model_update(model *m)
{
    if (m->more > 0) {
        m->left = m->more;
        m->more = 0;
        m->step++;
        return;
    }
    m->period = 2 * m->period > PERIOD ? PERIOD : 2 * m->period;
    uint32_t total = UINT32_C(1) << PROBABILITY_BITS;
    uint32_t missing = total;
    for (uint32_t i = m->symbols; i-- > 0;) {
        total -= m->weight[i];
        m->start[i] = total;
        m->weight[i] = m->weight[i] >> 1 | 1;
        missing -= m->weight[i];
    }
    m->step = missing / m->period;
    m->more = missing % m->period;
    m->left = m->period - m->more;
}

static void
model_init(model *m, uint32_t symbols)
{
    uint32_t total = UINT32_C(1) << PROBABILITY_BITS;
    memset(m, 0, sizeof *m);
    m->symbols = symbols;
    m->period = symbols >> 4 | 2;
    m->start[symbols] = total;
    for (uint32_t i = 0; i < symbols; i++)
        m->weight[i] = total / symbols + (i < total % symbols);
    model_update(m);
}

static uint32_t
next_symbol(range_decoder *r, model *m)
{
    uint32_t part = part_of(r, PROBABILITY_BITS);
    uint32_t from = 0;
    uint32_t to = m->symbols; /* start[from] <= part < start[to] */
    while (from + 1 < to) {
        uint32_t middle = (from + to) / 2;
        if (part < m->start[middle])
            to = middle;
        else
            from = middle;
    }
    r->low += r->range * m->start[from];
    r->range *= m->start[from + 1] - m->start[from];
    normalize(r);
    if (m->left == 0)
        model_update(m);
    m->left--;
    m->weight[from] += m->step;
    return from;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Floating-point bits as integers of the same order, and back. */
static inline uint64_t
ordered(uint64_t bits, uint32_t width)
{
    uint64_t all = UINT64_MAX >> (64 - width);
    bits = ~bits & all;
    return bits >> (width - 1) != 0 ? bits ^ all >> 1 : bits;
}

static inline uint64_t
unordered(uint64_t value, uint32_t width)
{
    uint64_t all = UINT64_MAX >> (64 - width);
    value &= all;
    value = value >> (width - 1) != 0 ? value ^ all >> 1 : value;
    return ~value & all;
}

/* The number whose prediction has these bits. */
static uint64_t
next_number(range_decoder *r, model *m, uint64_t predicted, uint32_t width)
{
    uint32_t symbol = next_symbol(r, m);
    if (symbol == width)
        return predicted;
    uint32_t log2 = symbol > width ? symbol - width - 1 : width - 1 - symbol;
    uint64_t distance = (UINT64_C(1) << log2) + plain_bits(r, log2);
    uint64_t p = ordered(predicted, width);
    return unordered(symbol > width ? p + distance : p - distance, width);
}

/* Neighbours outside of the field are 0. The order of the operations is libfpzip's. */
#define DEFINE_DECODE(name, number, bits_type)                                                     \
    static void name(range_decoder *r, const size_t length[3], number *out)                        \
    {                                                                                              \
        model m;                                                                                   \
        size_t nx = length[0];                                                                     \
        size_t plane = nx * length[1];                                                             \
        uint32_t width = 8 * (uint32_t) sizeof(number);                                            \
        model_init(&m, 2 * width + 1);                                                             \
        for (size_t z = 0; z < length[2] && !r->failed; z++) {                                     \
            for (size_t y = 0; y < length[1] && !r->failed; y++) {                                 \
                number *row = out + z * plane + y * nx;                                            \
                for (size_t x = 0; x < nx; x++) {                                                  \
                    number p =                                                                     \
                        (x > 0 ? row[x - 1] : 0) - (y > 0 && z > 0 ? *(row + x - nx - plane) : 0); \
                    p += y > 0 ? *(row + x - nx) : 0;                                              \
                    p -= x > 0 && z > 0 ? *(row + x - 1 - plane) : 0;                              \
                    p += z > 0 ? *(row + x - plane) : 0;                                           \
                    p -= x > 0 && y > 0 ? *(row + x - 1 - nx) : 0;                                 \
                    p += x > 0 && y > 0 && z > 0 ? *(row + x - 1 - nx - plane) : 0;                \
                    bits_type bits;                                                                \
                    memcpy(&bits, &p, sizeof bits);                                                \
                    bits = (bits_type) next_number(r, &m, bits, width);                            \
                    memcpy(&row[x], &bits, sizeof bits);                                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_DECODE(decode_singles, float, uint32_t)
DEFINE_DECODE(decode_doubles, double, uint64_t)

bool
fpzip__stream_decode(const uint8_t *encoded, size_t encoded_bytes, size_t bytes,
                     const size_t length[3], void *numbers)
{
    range_decoder r = {.next = encoded, .end = encoded + encoded_bytes, .range = UINT32_MAX};
    shift_in(&r, 4);
    if (bytes == sizeof(float))
        decode_singles(&r, length, numbers);
    else
        decode_doubles(&r, length, numbers);
    return !r.failed;
}
