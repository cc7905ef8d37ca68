/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Encodes fragments in layers: a coarse one as any other fragment, then what makes it finer. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/blob_bytes.h"
#include "codec/layer_loops.h"
#include "codec/layers.h"
#include "esdm/float_env.h"

/* Bounds of the coarse layers, as shares of the range; relative ones of the number itself. Each
 * layer more costs some tenths of a bit for each number, so there are few. */
static const double shares[] = {1e-2, 1e-4};
#define SHARES (sizeof shares / sizeof shares[0])
_Static_assert(SHARES < ESDM__BLOB_LAYERS_MAX, "the last layer comes to them");
/* A layer has to be so many times coarser than all of it, else it is not worth its bytes. */
#define WORTH 4.0

typedef struct layers_encoder {
    const esdm__blob_numbers *numbers;
    const esdm_codec_plugin *codec;
    uint32_t count; /* of layers, the last one included */
    esdm_codec_accuracy coarse[SHARES];
    double range;
    double errors[ESDM__BLOB_LAYERS_MAX]; /* largest one when so many layers are read */
    esdm__blocks blocks;
    esdm__blob_accuracy accuracy; /* of all layers */
    uint8_t *known;               /* all numbers, as of the layers so far */
    uint8_t *head;
    size_t head_bytes;
    size_t table_at;
    uint8_t *payload;
    size_t payload_bytes;
    size_t payload_room;
} layers_encoder;

/* ---- which layers ------------------------------------------------------------------------- */

static bool
share_is_worth_it(const layers_encoder *e, double share)
{
    const esdm_codec_accuracy *a = e->numbers->accuracy;
    if (a == NULL)
        return true;
    return share * e->range > WORTH * a->absolute ||
           (a->relative < (double) INFINITY && !(a->absolute < (double) INFINITY) &&
            share > WORTH * a->relative);
}

/* Plans layers. @return false: one is enough, or the numbers have no range. */
static bool
plan(layers_encoder *e, uint64_t n)
{
    const esdm__blob_numbers *numbers = e->numbers;
    const esdm__chain *chain = numbers->chain;
    const uint32_t needed = ESDM_CODEC_LOSSY | ESDM_CODEC_SHAPED;
    if (chain->count != 1 || (chain->codecs[0]->flags & needed) != needed ||
        (chain->codecs[0]->flags & ESDM_CODEC_ROUNDS) != 0 ||
        !esdm__layer_has_type(numbers->type, numbers->element_bytes))
        return false;
    e->codec = chain->codecs[0];
    esdm__accuracy_spread spread =
        esdm__accuracy_spread_of(numbers->coarse, numbers->type, numbers->raw, (size_t) n, false);
    e->range = spread.high - spread.low;
    if (!(e->range > 0) || !isfinite(e->range) || e->range < DBL_MIN * 1e6)
        return false;
    for (size_t i = 0; i < SHARES && share_is_worth_it(e, shares[i]); i++) {
        const esdm_codec_accuracy *a = numbers->accuracy;
        esdm_codec_accuracy coarse = *numbers->coarse;
        coarse.absolute = esdm__accuracy_bound_below(shares[i] * e->range);
        coarse.relative = (double) INFINITY;
        coarse.finest = 0;
        coarse.sum_bound = (double) INFINITY;
        if (a != NULL && a->relative < (double) INFINITY && shares[i] > WORTH * a->relative) {
            coarse.relative = shares[i];
            coarse.finest = a->finest * (shares[i] / a->relative);
        }
        if (!(coarse.absolute > 0))
            break;
        e->coarse[e->count++] = coarse;
    }
    return e->count++ > 0;
}

/* ---- layers ------------------------------------------------------------------------------- */

static uint64_t
elements_of(const esdm__blob_numbers *numbers)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < numbers->rank; d++)
        n *= numbers->shape[d];
    return n;
}

/* The first one: a fragment by itself, whose table and payload become the beginning of all. */
static esdm_status
encode_first(layers_encoder *e, esdm_error *err)
{
    esdm__blob blob = {0};
    esdm__blob_view view;
    esdm__blob_accuracy told;
    esdm__blob_numbers numbers = *e->numbers;
    numbers.coarse = NULL;
    esdm_codec_accuracy first = e->coarse[0];
    if (numbers.limits != NULL && numbers.accuracy != NULL) {
        /* Numbers near the limits stay as they are in finer layers, whose grids know no others. */
        esdm_codec_accuracy finest = *numbers.accuracy;
        esdm__limits_spare(numbers.limits, &finest);
        first.exact_below = finest.exact_below;
        first.exact_above = finest.exact_above;
    }
    numbers.accuracy = &first;
    numbers.conserved = (double) INFINITY;
    numbers.noise = 0;
    numbers.mean = 0;
    numbers.tally = NULL;
    esdm_status st = esdm__blob_encode_numbers(&numbers, &blob, &told, err);
    if (st != ESDM_OK)
        return st;
    esdm__blob_look(blob.head, blob.head_bytes, numbers.chain, &view);
    e->blocks = view.geometry;
    e->errors[0] = told.facts.largest_error;
    size_t raw_bytes = (size_t) view.raw_bytes;
    size_t table = (size_t) view.blocks * ESDM__BLOB_ENTRY_BYTES;
    e->table_at = ESDM__BLOB_HEADER_BYTES + ESDM__BLOB_SHAPE_BYTES + (size_t) numbers.rank * 8 +
                  (e->numbers->accuracy != NULL ? ESDM__BLOB_ACCURACY_BYTES : 0) +
                  ESDM__BLOB_LAYERS_BYTES;
    e->head_bytes = e->table_at + e->count * table;
    e->payload_bytes = blob.payload_bytes;
    e->payload_room = blob.payload_bytes + esdm__layer_bound(raw_bytes);
    e->known = malloc(raw_bytes);
    e->head = calloc(1, e->head_bytes);
    e->payload = malloc(e->payload_room);
    if (e->known == NULL || e->head == NULL || e->payload == NULL)
        st = esdm__error_nomem(err, e->payload_room + e->head_bytes, "the layers of a fragment");
    if (st == ESDM_OK)
        st = esdm__blob_decode(&view, 0, view.blocks, blob.payload, blob.payload_bytes, e->known,
                               raw_bytes, err);
    if (st == ESDM_OK) {
        memcpy(e->head, blob.head, ESDM__BLOB_HEADER_BYTES);
        memcpy(e->head + e->table_at, view.table, table);
        memcpy(e->payload, blob.payload, blob.payload_bytes);
    }
    esdm__blob_clear(&blob);
    return st;
}

static esdm_status
more_room(layers_encoder *e, size_t bytes, esdm_error *err)
{
    if (e->payload_room - e->payload_bytes >= bytes)
        return ESDM_OK;
    size_t room = e->payload_bytes + bytes + e->payload_room / 2;
    uint8_t *payload = realloc(e->payload, room);
    if (payload == NULL)
        return esdm__error_nomem(err, room, "the layers of a fragment");
    e->payload = payload;
    e->payload_room = room;
    return ESDM_OK;
}

static esdm_status
encode_block(layers_encoder *e, uint32_t layer, uint32_t b, esdm__accuracy_facts *facts,
             esdm_error *err)
{
    uint64_t shape[ESDM_MAX_RANK];
    const esdm__blob_numbers *numbers = e->numbers;
    const bool last = layer + 1 == e->count;
    const uint64_t from = esdm__blocks_start(&e->blocks, b);
    const size_t bytes = (size_t) (esdm__blocks_start(&e->blocks, b + 1) - from);
    const size_t n = bytes / numbers->element_bytes;
    const uint8_t *raw = (const uint8_t *) numbers->raw + from;
    esdm_codec_accuracy accuracy = {0};
    esdm__layer_aim aim = {
        .last = last, .noise = last ? numbers->noise : 0, .limits = numbers->limits};
    size_t stored = 0;
    if (!last)
        accuracy = e->coarse[layer];
    else if (numbers->accuracy != NULL)
        accuracy = *numbers->accuracy;
    if (!last || numbers->accuracy != NULL)
        aim.accuracy = &accuracy;
    accuracy.sum_bound =
        last && aim.accuracy != NULL ? esdm__blob_sum_bound(numbers, raw, n) : (double) INFINITY;
    esdm_status st = more_room(e, esdm__layer_bound(bytes), err);
    if (st != ESDM_OK)
        return st;
    esdm__blocks_shape(&e->blocks, b, shape);
    const esdm_codec_input input = {.element_bytes = numbers->element_bytes,
                                    .type = numbers->type,
                                    .rank = e->blocks.rank,
                                    .shape = e->blocks.rank > 0 ? shape : NULL,
                                    .effort = numbers->effort};
    uint8_t *out = e->payload + e->payload_bytes;
    st = esdm__layer_encode(&input, e->codec, &aim, raw, e->known + from, bytes, out, &stored,
                            facts, err);
    if (st != ESDM_OK)
        return st;
    uint8_t *entry =
        e->head + e->table_at + ((size_t) layer * e->blocks.blocks + b) * ESDM__BLOB_ENTRY_BYTES;
    put_u32(entry, (uint32_t) stored);
    put_u64(entry + 8, esdm__checksum(out, stored));
    e->payload_bytes += stored;
    if (last && numbers->tally != NULL)
        esdm__tally_add(numbers->tally, e->known + from, n);
    return ESDM_OK;
}

/* A layer that some block could not be brought to has the error of the layer before, at most. */
static esdm_status
encode_layer(layers_encoder *e, uint32_t layer, esdm_error *err)
{
    const bool last = layer + 1 == e->count;
    esdm__accuracy_facts all = {0};
    bool reached = true;
    for (uint32_t b = 0; b < e->blocks.blocks; b++) {
        esdm__accuracy_facts facts = {0};
        esdm_status st = encode_block(e, layer, b, &facts, err);
        if (st != ESDM_OK)
            return st;
        reached = reached && (last || facts.points + facts.exact_points > 0);
        esdm__accuracy_add(&all, &facts);
    }
    /* Blocks that stayed as they were have the error of the layer before, at most; others their
     * own. */
    e->errors[layer] = reached ? all.largest_error : fmax(all.largest_error, e->errors[layer - 1]);
    if (last)
        e->accuracy.facts = all;
    return ESDM_OK;
}

static void
finish_head(layers_encoder *e)
{
    const esdm__blob_numbers *numbers = e->numbers;
    uint8_t *at = e->head + ESDM__BLOB_HEADER_BYTES;
    put_u16(e->head + 8, ESDM__BLOB_VERSION_LAYERS);
    put_u32(e->head + 24, (uint32_t) (e->table_at - ESDM__BLOB_HEADER_BYTES));
    put_u64(e->head + 40, e->payload_bytes);
    esdm__blob_put_second(at, &e->blocks, numbers->accuracy != NULL ? &e->accuracy : NULL);
    put_u16(at + 2, (uint16_t) (get_u16(at + 2) | ESDM__BLOB_LAYERED));
    at = e->head + e->table_at - ESDM__BLOB_LAYERS_BYTES;
    put_u32(at, e->count);
    put_u32(at + 4, 0);
    put_f64(at + 8, e->range);
    for (uint32_t i = 0; i + 1 < e->count; i++)
        put_f64(at + 16 + (size_t) i * 8, e->errors[i]);
    put_u64(e->head + ESDM__BLOB_CHECKSUM_OFFSET, head_checksum(e->head, e->head_bytes));
}

esdm_status
esdm__blob_encode_layers(const esdm__blob_numbers *numbers, esdm__blob *ret_blob,
                         esdm__blob_accuracy *ret_accuracy, bool *ret_done, esdm_error *err)
{
    layers_encoder e = {.numbers = numbers};
    *ret_done = plan(&e, elements_of(numbers));
    if (!*ret_done)
        return ESDM_OK;
    if (numbers->accuracy != NULL)
        e.accuracy = (esdm__blob_accuracy){.absolute = numbers->accuracy->absolute,
                                           .relative = numbers->accuracy->relative,
                                           .finest = numbers->accuracy->finest,
                                           .conserved = numbers->conserved};
    esdm_status st = encode_first(&e, err);
    for (uint32_t i = 1; i < e.count && st == ESDM_OK; i++)
        st = encode_layer(&e, i, err);
    free(e.known);
    if (st != ESDM_OK) {
        free(e.head);
        free(e.payload);
        return st;
    }
    finish_head(&e);
    *ret_blob = (esdm__blob){.head = e.head,
                             .head_bytes = e.head_bytes,
                             .payload = e.payload,
                             .payload_bytes = e.payload_bytes,
                             .owned = e.payload};
    if (ret_accuracy != NULL)
        *ret_accuracy = e.accuracy;
    return ESDM_OK;
}
