/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The loops for one type. quantize_bits.c includes this for float and for double with VALUE, BITS
 * (the unsigned integer of its size), STORED (bits of the significand that are stored), EXPONENTS
 * (number of exponents), BIAS (frexp()'s exponent of the number with exponent bits 0) and NAME()
 * defined, so there is no include guard. */

/* Older versions of netCDF-C take NaN and -0 for numbers like any other. */
#define IS_KEPT(value, bits)                                                                       \
    (((value) == missing) |                                                                        \
     (keeps_nan ? ((value) == 0) | ((value) != (value)) : (int) ((bits) == 0)))

/* Per position of a block: what to AND, then what to OR. */
static void
NAME(groom)(void *values, size_t count, int shift, esdmnc_groom groom, VALUE missing,
            bool keeps_nan)
{
    BITS keep[BLOCK];
    BITS set[BLOCK];
    BITS *bits = values;
    const VALUE *numbers = values;
    BITS mask = ~(BITS) 0 << shift;
    for (size_t i = 0; i < BLOCK; i++) {
        bool up = groom != ESDMNC_GROOM_DOWN && (i + (groom == ESDMNC_GROOM_ODD)) % 2 == 1;
        keep[i] = up ? ~(BITS) 0 : mask;
        set[i] = up ? ~mask : 0;
    }
    for (; count >= BLOCK; count -= BLOCK, bits += BLOCK, numbers += BLOCK)
        for (size_t i = 0; i < BLOCK; i++) {
            BITS rounded = (bits[i] & keep[i]) | set[i];
            bits[i] = IS_KEPT(numbers[i], bits[i]) ? bits[i] : rounded;
        }
    for (size_t i = 0; i < count; i++)
        if (!IS_KEPT(numbers[i], bits[i]))
            bits[i] = (bits[i] & keep[i]) | set[i];
}

/* Adds half of the last bit that stays; the carry may go into the exponent. */
static inline BITS
NAME(rounded)(BITS bits, int shift)
{
    BITS mask = ~(BITS) 0 << shift;
    return (bits + (~mask & (mask >> 1))) & mask;
}

static void
NAME(round)(void *values, size_t count, int shift, VALUE missing, bool keeps_nan)
{
    BITS *bits = values;
    const VALUE *numbers = values;
    for (; count >= BLOCK; count -= BLOCK, bits += BLOCK, numbers += BLOCK)
        for (size_t i = 0; i < BLOCK; i++) {
            BITS result = NAME(rounded)(bits[i], shift);
            bits[i] = IS_KEPT(numbers[i], bits[i]) ? bits[i] : result;
        }
    for (size_t i = 0; i < count; i++)
        if (!IS_KEPT(numbers[i], bits[i]))
            bits[i] = NAME(rounded)(bits[i], shift);
}

/* ---- Granular BitRound ---------------------------------------------------------------------- */

static inline VALUE
NAME(number)(unsigned exponent, BITS significand)
{
    BITS bits = ((BITS) exponent << STORED) | significand;
    VALUE value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The first significand from `low` on with more than `zeroed`, 2^STORED when there is none. The
 * first step is a few units away from the power of two, hence the gallop. */
static BITS
NAME(find_step)(unsigned exponent, int digits, BITS low, int zeroed)
{
    const BITS end = (BITS) 1 << STORED;
    BITS high = low;
    for (BITS stride = 1; high < end; stride *= 2) {
        if (granular_zeroed(NAME(number)(exponent, high), digits, STORED) > zeroed)
            break;
        low = high + 1;
        high = end - high > stride ? high + stride : end;
    }
    while (low < high) {
        BITS middle = low + (high - low) / 2;
        if (granular_zeroed(NAME(number)(exponent, middle), digits, STORED) > zeroed)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void
NAME(make_steps)(steps *table, int digits)
{
    const BITS end = (BITS) 1 << STORED;
    for (unsigned exponent = 1; exponent < EXPONENTS - 1; exponent++) {
        steps *s = &table[exponent];
        BITS from = 0;
        for (int i = 0; i < 3; i++) {
            BITS inside = from < end ? from : end - 1;
            int zeroed = granular_zeroed(NAME(number)(exponent, inside), digits, STORED);
            s->shift[i] = (uint8_t) shift_of(zeroed, STORED);
            if (i == 2)
                break;
            from = NAME(find_step)(exponent, digits, inside, zeroed);
            s->at[i] = from;
        }
    }
}

/* `table` may be NULL. */
static void
NAME(granular)(void *values, size_t count, int digits, const steps *table, VALUE missing,
               bool keeps_nan)
{
    BITS *bits = values;
    const VALUE *numbers = values;
    const BITS end = (BITS) 1 << STORED;
    for (size_t i = 0; i < count; i++) {
        BITS b = bits[i];
        unsigned exponent = (unsigned) (b >> STORED) % EXPONENTS;
        BITS significand = b & (end - 1);
        if (IS_KEPT(numbers[i], b))
            continue;
        if (table == NULL || exponent == 0 || exponent == EXPONENTS - 1) {
            bits[i] =
                NAME(rounded)(b, shift_of(granular_zeroed(numbers[i], digits, STORED), STORED));
            continue;
        }
        const steps *s = &table[exponent];
        int part = (significand >= s->at[0]) + (significand >= s->at[1]);
        bits[i] = NAME(rounded)(b, s->shift[part]);
    }
}

#undef IS_KEPT
