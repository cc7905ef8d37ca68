/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Encodes fragments: blocks through the chain, those with an accuracy verified at once. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/blob_bytes.h"
#include "codec/tally.h"
#include "codec/tally_checksums.h"
#include "esdm/float_env.h"

/* Raw bytes of shaped blocks, about: codecs that predict values want neighbours. */
#define SHAPED_BYTES   (UINT64_C(1) << 20)
#define UNSHAPED_BYTES (UINT64_C(128) << 10)
/* Where larger blocks are wanted: what compresses bytes gains little beyond that. */
#define UNSHAPED_MOST (UINT64_C(1) << 20)
/* How often the chain is run on a block at most: as asked, with less of the bounds or numbers that
 * stay as they are, without loss. */
#define ATTEMPTS 4
/* So much of the bounds: most blocks whose mean square of errors is too large miss by little. Codec
 * `field` knows numbers again that were rounded so (field__former_parts). */
static const double parts_of_bounds[ATTEMPTS - 1] = {1, 1 / 1.0905077326652577, 0.5};
/* What a sum of errors may be short of by rounding. */
#define SUM_CAREFUL (1 - 0x1p-30)

/* What the encoding of one block needs; `stage` are two buffers for results between codecs. */
typedef struct encoder {
    const esdm__chain *chain;
    esdm_codec_input input;
    uint8_t *stage[2];
    size_t stage_bytes;
    size_t slack_bytes; /* by which the worst case of a block exceeds it */
    esdm__tally *tally; /* NULL: none */
    /* with an accuracy */
    const esdm__blob_numbers *numbers; /* NULL: without */
    uint8_t *decoded[2];               /* of a block, for verification */
    uint32_t last_lossy;               /* codec behind which no values change */
    esdm__blob_accuracy accuracy;
    bool left; /* numbers of the block left the limits when it was encoded last */
} encoder;

/* Also after a failed init. */
static void
encoder_clear(encoder *enc)
{
    esdm__scratch_free(enc->stage[0]);
    esdm__scratch_free(enc->stage[1]);
    esdm__scratch_free(enc->decoded[0]);
    esdm__scratch_free(enc->decoded[1]);
}

static esdm_status
encoder_init(encoder *enc, const esdm__chain *chain, int32_t type, uint32_t element_bytes,
             size_t block_bytes, esdm_error *err)
{
    *enc = (encoder){.chain = chain, .input = {.element_bytes = element_bytes, .type = type}};
    size_t most = block_bytes;
    for (uint32_t i = 0; i < chain->count; i++) {
        size_t bound = chain->codecs[i]->bound(most);
        if (bound >= SIZE_MAX / 4)
            return esdm__error_set(err, ESDM_EINVAL, "codec '%s' cannot encode blocks of %zu bytes",
                                   chain->codecs[i]->base.name, most);
        most = bound > most ? bound : most;
    }
    enc->slack_bytes = most - block_bytes + (size_t) chain->count * ESDM__BLOB_LENGTH_BYTES;
    if (chain->count < 2)
        return ESDM_OK;
    enc->stage_bytes = most;
    enc->stage[0] = esdm__scratch_new(most);
    enc->stage[1] = esdm__scratch_new(most);
    if (enc->stage[0] == NULL || enc->stage[1] == NULL)
        return esdm__error_nomem(err, most, "results between codecs");
    return ESDM_OK;
}

/* ---- verification ------------------------------------------------------------------------- */

/* The codecs up to the last lossy one run backwards; what they give is *ret_decoded. */
static esdm_status
decode_lossy(const encoder *enc, const uint8_t *from, size_t from_bytes, const size_t *lengths,
             const uint8_t **ret_decoded, esdm_error *err)
{
    esdm_codec_input input = enc->input;
    input.accuracy = NULL;
    input.effort = 0;
    uint32_t turn = 0; /* what is decoded comes from the other buffer */
    for (uint32_t i = enc->last_lossy + 1; i-- > 0;) {
        const esdm_codec_plugin *codec = enc->chain->codecs[i];
        if ((codec->flags & ESDM_CODEC_ROUNDS) != 0)
            continue;
        uint8_t *to = enc->decoded[turn++ & 1];
        esdm_status st = codec->decode(&input, from, from_bytes, to, lengths[i], err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "codec '%s' does not decode what it encoded",
                                      codec->base.name);
        from = to;
        from_bytes = lengths[i];
    }
    *ret_decoded = from;
    return ESDM_OK;
}

/* ---- one block ---------------------------------------------------------------------------- */

static void
tally_block(encoder *enc, const uint8_t *raw, size_t raw_bytes)
{
    if (enc->tally != NULL)
        esdm__tally_add(enc->tally, raw, raw_bytes / enc->input.element_bytes);
}

/* Whether the mean square of errors is what it may be. */
static bool
keeps_noise(const encoder *enc, const uint8_t *raw, const uint8_t *decoded, size_t raw_bytes)
{
    const double noise = enc->numbers->noise;
    return !(noise > 0 && noise < (double) INFINITY) ||
           esdm__accuracy_verify_noise(enc->input.accuracy, enc->input.type, raw, decoded,
                                       raw_bytes / enc->input.element_bytes, noise);
}

/* Whether no number has left the limits by being rounded. */
static bool
keeps_limits(const encoder *enc, const uint8_t *raw, const uint8_t *decoded, size_t raw_bytes)
{
    const esdm__limits *limits = enc->numbers->limits;
    return limits == NULL || esdm__limits_kept(limits, enc->input.type, raw, decoded,
                                               raw_bytes / enc->input.element_bytes);
}

/* Runs the chain on one block. *ret_bytes is 0 when the block does not become shorter.
 * *ret_missed: values are not within the accuracy that the codecs were asked for. */
static esdm_status
run_chain(encoder *enc, const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t out_bytes,
          size_t *ret_bytes, bool *ret_missed, esdm_error *err)
{
    const esdm__chain *chain = enc->chain;
    size_t prefix = (size_t) (chain->count - 1) * ESDM__BLOB_LENGTH_BYTES;
    size_t lengths[ESDM__CHAIN_MAX]; /* of the input of each codec */
    *ret_bytes = 0;
    *ret_missed = false;
    if (raw_bytes <= prefix + 1)
        return ESDM_OK;

    const uint8_t *from = raw;
    size_t from_bytes = raw_bytes;
    for (uint32_t i = 0; i < chain->count; i++) {
        const esdm_codec_plugin *codec = chain->codecs[i];
        bool last = i + 1 == chain->count;
        uint8_t *to = last ? out + prefix : enc->stage[i & 1];
        size_t room = last ? out_bytes - prefix : enc->stage_bytes;
        size_t bytes = 0;
        lengths[i] = from_bytes;
        esdm_status st = codec->encode(&enc->input, from, from_bytes, to, room, &bytes, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "codec '%s'", codec->base.name);
        if (bytes == 0 || bytes > room)
            return ESDM_OK;
        if (!last)
            put_u32(out + (size_t) i * ESDM__BLOB_LENGTH_BYTES, (uint32_t) bytes);
        from = to;
        from_bytes = bytes;
        if (enc->input.accuracy != NULL && i == enc->last_lossy) {
            const uint8_t *decoded = NULL;
            st = decode_lossy(enc, from, from_bytes, lengths, &decoded, err);
            if (st != ESDM_OK)
                return st;
            *ret_missed =
                !esdm__accuracy_verify(enc->input.accuracy, enc->input.type, raw, decoded,
                                       raw_bytes / enc->input.element_bytes, &enc->accuracy.facts);
            *ret_missed = *ret_missed || !keeps_noise(enc, raw, decoded, raw_bytes);
            enc->left = !*ret_missed && !keeps_limits(enc, raw, decoded, raw_bytes);
            *ret_missed = *ret_missed || enc->left;
            if (*ret_missed)
                return ESDM_OK;
            tally_block(enc, decoded, raw_bytes);
        }
    }
    if (prefix + from_bytes < raw_bytes)
        *ret_bytes = prefix + from_bytes;
    return ESDM_OK;
}

double
esdm__blob_sum_bound(const esdm__blob_numbers *numbers, const void *raw, size_t n)
{
    const bool by_mean = numbers->mean > 0 && numbers->mean < (double) INFINITY;
    size_t points = 0;
    double bound = (double) INFINITY;
    if (!(numbers->conserved < (double) INFINITY) && !by_mean)
        return bound;
    double magnitude = esdm__accuracy_magnitude(numbers->accuracy, numbers->type, raw, n, &points);
    /* A sum beyond all doubles is a bound still, not none. */
    if (numbers->conserved < (double) INFINITY)
        bound = numbers->conserved * fmin(magnitude, DBL_MAX);
    if (by_mean)
        bound = fmin(bound, fmin(numbers->mean * (double) points * SUM_CAREFUL, DBL_MAX));
    return bound;
}

/* The bounds for one block, `part` of what was asked for. */
static esdm_codec_accuracy
bounds_of(const encoder *enc, const uint8_t *raw, size_t raw_bytes, double part)
{
    esdm_codec_accuracy a = *enc->numbers->accuracy;
    a.absolute *= part;
    a.relative *= part;
    a.finest *= part;
    a.sum_bound =
        part * esdm__blob_sum_bound(enc->numbers, raw, raw_bytes / enc->input.element_bytes);
    return a;
}

/* Facts of a block that is stored as it is. */
static void
note_exact_block(encoder *enc, const uint8_t *raw, size_t raw_bytes)
{
    esdm_codec_accuracy a = *enc->numbers->accuracy;
    a.sum_bound = (double) INFINITY;
    (void) esdm__accuracy_verify(&a, enc->input.type, raw, raw,
                                 raw_bytes / enc->input.element_bytes, &enc->accuracy.facts);
}

static esdm_status
encode_block(encoder *enc, const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t out_bytes,
             size_t *ret_bytes, esdm_error *err)
{
    bool missed = false;
    if (enc->numbers == NULL) {
        tally_block(enc, raw, raw_bytes);
        return run_chain(enc, raw, raw_bytes, out, out_bytes, ret_bytes, &missed, err);
    }
    const esdm__accuracy_facts before = enc->accuracy.facts;
    esdm__statistics sums = {0};
    if (enc->tally != NULL)
        sums = enc->tally->statistics;
    bool lossless = false;
    enc->left = false;
    for (int attempt = 0; attempt == 0 || missed; attempt++) {
        lossless = attempt + 1 == ATTEMPTS;
        esdm_codec_accuracy a =
            bounds_of(enc, raw, raw_bytes, lossless || enc->left ? 1.0 : parts_of_bounds[attempt]);
        if (enc->left)
            esdm__limits_spare(enc->numbers->limits, &a);
        enc->accuracy.facts = before;
        enc->input.accuracy = lossless ? NULL : &a;
        esdm_status st = run_chain(enc, raw, raw_bytes, out, out_bytes, ret_bytes, &missed, err);
        enc->input.accuracy = NULL;
        if (st != ESDM_OK)
            return st;
        enc->accuracy.blocks_again += attempt == 1;
        enc->accuracy.blocks_lossless += lossless;
    }
    if (*ret_bytes == 0 || lossless) {
        enc->accuracy.facts = before;
        note_exact_block(enc, raw, raw_bytes);
        if (enc->tally != NULL)
            enc->tally->statistics = sums;
        tally_block(enc, raw, raw_bytes);
    }
    return ESDM_OK;
}

static void
put_entry(uint8_t *entry, uint32_t bytes, uint32_t flags, uint64_t checksum)
{
    put_u32(entry, bytes);
    put_u32(entry + 4, flags);
    put_u64(entry + 8, checksum);
}

/* ---- all blocks --------------------------------------------------------------------------- */

static size_t
block_bytes(const esdm__blocks *blocks, uint32_t b)
{
    return (size_t) (esdm__blocks_start(blocks, b + 1) - esdm__blocks_start(blocks, b));
}

/* Blocks that are checksummed and tallied at a time: they fit the first cache. */
#define BLOCKS_AT_ONCE 8u

_Static_assert(1u << ESDM__BLOB_RAW_LOG2 == ESDM__TALLY_BLOCK_BYTES, "blocks that a tally knows");

/* Of plain blocks, the last of which may be shorter. */
static void
checksums_of(encoder *enc, const uint8_t *raw, size_t bytes, uint64_t *ret_checksums)
{
    const size_t block = ESDM__TALLY_BLOCK_BYTES;
    size_t whole = enc->tally != NULL ? bytes / block : 0;
    if (whole > 0)
        esdm__tally_add_blocks(enc->tally, raw, whole, ret_checksums);
    if (whole * block < bytes)
        tally_block(enc, raw + whole * block, bytes - whole * block);
    for (size_t b = whole, at = whole * block; at < bytes; b++, at += block)
        ret_checksums[b] = esdm__checksum(raw + at, bytes - at < block ? bytes - at : block);
}

static void
checksum_blocks(encoder *enc, uint8_t *table, const uint8_t *raw, const esdm__blocks *blocks)
{
    uint64_t checksums[BLOCKS_AT_ONCE];
    for (uint32_t b = 0; b < blocks->blocks; b++) {
        if (b % BLOCKS_AT_ONCE == 0) {
            uint64_t from = esdm__blocks_start(blocks, b);
            uint64_t left = blocks->raw_bytes - from;
            uint64_t most = BLOCKS_AT_ONCE * ESDM__TALLY_BLOCK_BYTES;
            checksums_of(enc, raw + from, (size_t) (left < most ? left : most), checksums);
        }
        put_entry(table + (size_t) b * ESDM__BLOB_ENTRY_BYTES, (uint32_t) block_bytes(blocks, b),
                  ESDM__BLOB_FLAG_RAW, checksums[b % BLOCKS_AT_ONCE]);
    }
}

/* A block is never longer than its raw form, but codecs are faster with room for the worst case. */
static esdm_status
encode_blocks(encoder *enc, uint8_t *table, const uint8_t *raw, const esdm__blocks *blocks,
              uint8_t *payload, size_t payload_bytes, size_t *ret_bytes, esdm_error *err)
{
    uint64_t shape[ESDM_MAX_RANK];
    size_t used = 0;
    for (uint32_t b = 0; b < blocks->blocks; b++) {
        const uint8_t *from = raw + esdm__blocks_start(blocks, b);
        size_t from_bytes = block_bytes(blocks, b);
        uint32_t flags = 0;
        size_t bytes;
        esdm__blocks_shape(blocks, b, shape);
        enc->input.rank = blocks->rank;
        enc->input.shape = blocks->rank > 0 ? shape : NULL;
        esdm_status st =
            encode_block(enc, from, from_bytes, payload + used, payload_bytes - used, &bytes, err);
        if (st != ESDM_OK)
            return st;
        if (bytes == 0) {
            memcpy(payload + used, from, from_bytes);
            bytes = from_bytes;
            flags = ESDM__BLOB_FLAG_RAW;
        }
        put_entry(table + (size_t) b * ESDM__BLOB_ENTRY_BYTES, (uint32_t) bytes, flags,
                  esdm__checksum(payload + used, bytes));
        used += bytes;
    }
    *ret_bytes = used;
    return ESDM_OK;
}

/* ---- heads -------------------------------------------------------------------------------- */

/* What a head says. */
typedef struct head_facts {
    const esdm__chain *chain;
    int32_t type;
    uint32_t element_bytes;
    uint32_t dataset;
    uint32_t version;
    uint32_t second_bytes; /* of the second header */
    const esdm__blocks *blocks;
} head_facts;

static void
write_header(const esdm__blob *blob, const head_facts *f)
{
    uint8_t *head = blob->head;
    memset(head, 0, ESDM__BLOB_HEADER_BYTES);
    memcpy(head, ESDM__BLOB_MAGIC, 8);
    put_u16(head + 8, (uint16_t) f->version);
    head[10] = (uint8_t) f->chain->count;
    if (f->version == ESDM__BLOB_VERSION_PLAIN)
        head[11] = f->chain->count == 0 ? ESDM__BLOB_RAW_LOG2 : ESDM__BLOB_CODED_LOG2;
    put_u32(head + 12, (uint32_t) f->type);
    for (uint32_t i = 0; i < f->chain->count; i++)
        head[16 + i] = f->chain->codecs[i]->id;
    put_u32(head + 20, f->element_bytes);
    put_u32(head + 24, f->second_bytes);
    put_u64(head + 32, f->blocks->raw_bytes);
    put_u64(head + 40, blob->payload_bytes);
    put_u32(head + 48, f->dataset);
    put_u32(head + 52, f->blocks->blocks);
    put_u64(head + ESDM__BLOB_CHECKSUM_OFFSET, head_checksum(head, blob->head_bytes));
}

void
esdm__blob_put_second(uint8_t *to, const esdm__blocks *blocks, const esdm__blob_accuracy *a)
{
    to[0] = (uint8_t) blocks->rank;
    to[1] = (uint8_t) blocks->axis;
    put_u16(to + 2, a != NULL ? ESDM__BLOB_LOSSY : 0);
    put_u64(to + 8, blocks->extent);
    for (uint32_t d = 0; d < blocks->rank; d++)
        put_u64(to + ESDM__BLOB_SHAPE_BYTES + (size_t) d * 8, blocks->shape[d]);
    if (a == NULL)
        return;
    to += ESDM__BLOB_SHAPE_BYTES + (size_t) blocks->rank * 8;
    put_f64(to, a->absolute);
    put_f64(to + 8, a->relative);
    put_f64(to + 16, a->finest);
    put_f64(to + 24, a->conserved);
    put_f64(to + 32, a->facts.largest_error);
    put_f64(to + 40, a->facts.largest_share);
    put_f64(to + 48, a->facts.sum_change);
    put_u64(to + 56, a->facts.points);
    put_u64(to + 64, a->facts.exact_points);
    put_u32(to + 72, a->blocks_again);
    put_u32(to + 76, a->blocks_lossless);
}

/* Room for head and payload; with an empty chain the payload is the raw data. */
static esdm_status
make_room(const head_facts *f, const void *raw, size_t slack_bytes, esdm__blob *blob,
          size_t *ret_room, esdm_error *err)
{
    uint64_t table = (uint64_t) f->blocks->blocks * ESDM__BLOB_ENTRY_BYTES;
    if (table > UINT32_MAX - ESDM__BLOB_HEADER_BYTES - f->second_bytes)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a fragment of %llu bytes is longer than the format holds; "
                               "use smaller fragments",
                               (unsigned long long) f->blocks->raw_bytes);
    blob->head_bytes = (size_t) table + ESDM__BLOB_HEADER_BYTES + f->second_bytes;
    blob->head = calloc(1, blob->head_bytes);
    if (blob->head == NULL)
        return esdm__error_nomem(err, blob->head_bytes, "the head of a fragment");
    blob->payload = raw;
    blob->payload_bytes = (size_t) f->blocks->raw_bytes;
    if (f->chain->count == 0)
        return ESDM_OK;
    *ret_room = (size_t) f->blocks->raw_bytes + slack_bytes;
    blob->owned = malloc(*ret_room);
    blob->payload = blob->owned;
    return blob->owned != NULL ? ESDM_OK : esdm__error_nomem(err, *ret_room, "an encoded fragment");
}

/* ---- plain blobs -------------------------------------------------------------------------- */

static esdm_status
encode_plain(encoder *enc, const head_facts *f, const void *raw, esdm__blob *blob, esdm_error *err)
{
    size_t room = 0;
    esdm_status st = make_room(f, raw, enc->slack_bytes, blob, &room, err);
    if (st != ESDM_OK)
        return st;
    uint8_t *table = blob->head + ESDM__BLOB_HEADER_BYTES;
    if (f->chain->count == 0)
        checksum_blocks(enc, table, raw, f->blocks);
    else
        st =
            encode_blocks(enc, table, raw, f->blocks, blob->owned, room, &blob->payload_bytes, err);
    if (st == ESDM_OK)
        write_header(blob, f);
    return st;
}

/* Of version 1. */
static esdm_status
encode_bytes(const esdm__chain *chain, int32_t type, uint32_t element_bytes, uint32_t dataset,
             const void *raw, size_t raw_bytes, esdm__tally *tally, esdm__blob *ret_blob,
             esdm_error *err)
{
    if (raw_bytes == 0 || raw == NULL || element_bytes == 0 || chain->count > ESDM__CHAIN_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "a fragment of %zu bytes cannot be encoded",
                               raw_bytes);
    uint32_t block_log2 = chain->count == 0 ? ESDM__BLOB_RAW_LOG2 : ESDM__BLOB_CODED_LOG2;
    if (esdm__blob_head_bytes(raw_bytes, block_log2) == SIZE_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a fragment of %zu bytes is longer than the format holds; "
                               "use smaller fragments",
                               raw_bytes);
    esdm__blocks blocks;
    esdm__blob blob = {0};
    encoder enc;
    esdm__blocks_plain(raw_bytes, (uint32_t) (((raw_bytes - 1) >> block_log2) + 1), block_log2,
                       &blocks);
    const head_facts facts = {.chain = chain,
                              .type = type,
                              .element_bytes = element_bytes,
                              .dataset = dataset,
                              .version = ESDM__BLOB_VERSION_PLAIN,
                              .blocks = &blocks};
    esdm_status st = encoder_init(&enc, chain, type, element_bytes, (size_t) 1 << block_log2, err);
    enc.tally = tally;
    if (st == ESDM_OK)
        st = encode_plain(&enc, &facts, raw, &blob, err);
    encoder_clear(&enc);
    if (st != ESDM_OK) {
        esdm__blob_clear(&blob);
        return st;
    }
    *ret_blob = blob;
    return ESDM_OK;
}

esdm_status
esdm__blob_encode(const esdm__chain *chain, int32_t type, uint32_t element_bytes, uint32_t dataset,
                  const void *raw, size_t raw_bytes, esdm__blob *ret_blob, esdm_error *err)
{
    return encode_bytes(chain, type, element_bytes, dataset, raw, raw_bytes, NULL, ret_blob, err);
}

void
esdm__blob_mark_nulls(esdm__blob *blob)
{
    put_u16(blob->head + 8, ESDM__BLOB_VERSION_NULLS);
    put_u64(blob->head + ESDM__BLOB_CHECKSUM_OFFSET, head_checksum(blob->head, blob->head_bytes));
}

/* ---- numbers ------------------------------------------------------------------------------ */

static uint32_t
flags_of(const esdm__chain *chain)
{
    uint32_t flags = 0;
    for (uint32_t i = 0; i < chain->count; i++)
        flags |= chain->codecs[i]->flags;
    return flags;
}

/* Prepares verification; without a lossy codec there is nothing to verify. */
static esdm_status
accuracy_init(encoder *enc, const esdm__blob_numbers *n, size_t block_bytes_max, esdm_error *err)
{
    enc->numbers = n;
    for (uint32_t i = 0; i < n->chain->count; i++)
        if ((n->chain->codecs[i]->flags & ESDM_CODEC_LOSSY) != 0)
            enc->last_lossy = i;
    enc->accuracy = (esdm__blob_accuracy){.absolute = n->accuracy->absolute,
                                          .relative = n->accuracy->relative,
                                          .finest = n->accuracy->finest,
                                          .conserved = n->conserved};
    size_t bytes = enc->stage_bytes > block_bytes_max ? enc->stage_bytes : block_bytes_max;
    enc->decoded[0] = esdm__scratch_new(bytes);
    enc->decoded[1] = enc->last_lossy > 0 ? esdm__scratch_new(bytes) : NULL;
    if (enc->decoded[0] == NULL || (enc->last_lossy > 0 && enc->decoded[1] == NULL))
        return esdm__error_nomem(err, bytes, "the verification of a block");
    return ESDM_OK;
}

static esdm_status
encode_shaped(encoder *enc, const head_facts *f, const void *raw, bool lossy, esdm__blob *blob,
              esdm_error *err)
{
    size_t room = 0;
    esdm_status st = make_room(f, raw, enc->slack_bytes, blob, &room, err);
    if (st != ESDM_OK)
        return st;
    uint8_t *second = blob->head + ESDM__BLOB_HEADER_BYTES;
    st = encode_blocks(enc, second + f->second_bytes, raw, f->blocks, blob->owned, room,
                       &blob->payload_bytes, err);
    if (st != ESDM_OK)
        return st;
    esdm__blob_put_second(second, f->blocks, lossy ? &enc->accuracy : NULL);
    write_header(blob, f);
    return ESDM_OK;
}

/* Raw bytes of a block, about. */
static uint64_t
target_bytes(const esdm__blob_numbers *n, uint32_t flags)
{
    bool shaped = (flags & ESDM_CODEC_SHAPED) != 0;
    uint64_t most = shaped ? UINT64_C(1) << ESDM__BLOCK_LOG2_MAX : UNSHAPED_MOST;
    if (n->block_bytes == 0)
        return shaped ? SHAPED_BYTES : UNSHAPED_BYTES;
    return n->block_bytes < most ? n->block_bytes : most;
}

/* Of version 3. */
static esdm_status
encode_numbers(const esdm__blob_numbers *n, uint32_t flags, esdm__blob *ret_blob,
               esdm__blob_accuracy *ret_accuracy, esdm_error *err)
{
    esdm__blocks blocks;
    bool lossy = n->accuracy != NULL && (flags & ESDM_CODEC_LOSSY) != 0;
    if (!esdm__blocks_cut(n->rank, n->shape, n->element_bytes, target_bytes(n, flags), &blocks))
        return esdm__error_set(err, ESDM_EINVAL,
                               "a fragment of this shape does not fit the format; "
                               "use smaller fragments");
    const head_facts facts = {.chain = n->chain,
                              .type = n->type,
                              .element_bytes = n->element_bytes,
                              .dataset = n->dataset,
                              .version = ESDM__BLOB_VERSION_SHAPED,
                              .second_bytes = ESDM__BLOB_SHAPE_BYTES + n->rank * 8 +
                                              (lossy ? ESDM__BLOB_ACCURACY_BYTES : 0),
                              .blocks = &blocks};
    encoder enc;
    esdm__blob blob = {0};
    esdm_status st =
        encoder_init(&enc, n->chain, n->type, n->element_bytes, (size_t) blocks.block_bytes, err);
    enc.input.effort = n->effort;
    enc.tally = n->tally;
    if (st == ESDM_OK && lossy)
        st = accuracy_init(&enc, n, (size_t) blocks.block_bytes, err);
    if (st == ESDM_OK)
        st = encode_shaped(&enc, &facts, n->raw, lossy, &blob, err);
    encoder_clear(&enc);
    if (st != ESDM_OK) {
        esdm__blob_clear(&blob);
        return st;
    }
    *ret_blob = blob;
    if (ret_accuracy != NULL)
        *ret_accuracy = enc.accuracy;
    return ESDM_OK;
}

esdm_status
esdm__blob_encode_numbers(const esdm__blob_numbers *numbers, esdm__blob *ret_blob,
                          esdm__blob_accuracy *ret_accuracy, esdm_error *err)
{
    uint32_t flags = flags_of(numbers->chain);
    bool lossy = numbers->accuracy != NULL && (flags & ESDM_CODEC_LOSSY) != 0;
    bool sized = numbers->block_bytes > 0 && numbers->chain->count > 0;
    if (lossy || sized || (flags & ESDM_CODEC_SHAPED) != 0) {
        esdm_float_env program;
        esdm_float_env_enter_all(&program);
        bool layered = false;
        esdm_status st = ESDM_OK;
        if (numbers->coarse != NULL)
            st = esdm__blob_encode_layers(numbers, ret_blob, ret_accuracy, &layered, err);
        if (st == ESDM_OK && !layered)
            st = encode_numbers(numbers, flags, ret_blob, ret_accuracy, err);
        esdm_float_env_leave_all(&program);
        return st;
    }
    uint64_t bytes = numbers->element_bytes;
    for (uint32_t d = 0; d < numbers->rank; d++)
        bytes *= numbers->shape[d];
    if (ret_accuracy != NULL)
        *ret_accuracy = (esdm__blob_accuracy){0};
    return encode_bytes(numbers->chain, numbers->type, numbers->element_bytes, numbers->dataset,
                        numbers->raw, (size_t) bytes, numbers->tally, ret_blob, err);
}
