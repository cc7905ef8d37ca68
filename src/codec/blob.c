/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/blob.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/blob_bytes.h"
#include "codec/chain.h"
#include "codec/layers.h"
#include "esdm/float_env.h"

#define BLOB_NEWEST   ESDM__BLOB_VERSION_LAYERS
#define BLOB_LOG2_MIN 9u
#define LENGTH_BYTES  ESDM__BLOB_LENGTH_BYTES

static uint64_t
block_count(uint64_t raw_bytes, uint32_t block_log2)
{
    uint64_t rest = raw_bytes & ((UINT64_C(1) << block_log2) - 1);
    return (raw_bytes >> block_log2) + (rest != 0);
}

size_t
esdm__blob_head_bytes(uint64_t raw_bytes, uint32_t block_log2)
{
    uint64_t blocks = block_count(raw_bytes, block_log2);
    if (blocks > (UINT32_MAX - ESDM__BLOB_HEADER_BYTES) / ESDM__BLOB_ENTRY_BYTES)
        return SIZE_MAX;
    return ESDM__BLOB_HEADER_BYTES + (size_t) blocks * ESDM__BLOB_ENTRY_BYTES;
}

void
esdm__blob_clear(esdm__blob *blob)
{
    free(blob->head);
    free(blob->owned);
    memset(blob, 0, sizeof *blob);
}

/* Parsing */

static esdm_status
corrupt(esdm_error *err, const char *what)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "fragment head is damaged: %s", what);
}

static esdm_status
check_frame(const uint8_t *head, size_t head_bytes, esdm_error *err)
{
    if (head_bytes < ESDM__BLOB_HEADER_BYTES)
        return corrupt(err, "too short");
    if (memcmp(head, ESDM__BLOB_MAGIC, 8) != 0)
        return corrupt(err, "it does not begin with ESDMFRAG");
    uint16_t version = get_u16(head + 8);
    if (version > BLOB_NEWEST)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "fragment format %u is newer than this ESDM, which knows %u; "
                               "use a newer ESDM",
                               version, BLOB_NEWEST);
    if (version == 0)
        return corrupt(err, "version 0");
    if (get_u64(head + ESDM__BLOB_CHECKSUM_OFFSET) != head_checksum(head, head_bytes))
        return corrupt(err, "its checksum is wrong");
    return ESDM_OK;
}

static esdm_status
parse_chain(const uint8_t *head, esdm__codec_by_id find, esdm__chain *ret_chain, esdm_error *err)
{
    uint32_t count = head[10];
    if (count > ESDM__CHAIN_MAX)
        return corrupt(err, "too many codecs");
    *ret_chain = (esdm__chain){.count = count};
    for (uint32_t i = 0; i < ESDM__CHAIN_MAX; i++) {
        uint8_t id = head[16 + i];
        if ((id != 0) != (i < count))
            return corrupt(err, "the codec ids do not fit their number");
        if (id == 0)
            continue;
        ret_chain->codecs[i] = find != NULL ? find(id) : NULL;
        if (ret_chain->codecs[i] == NULL)
            return esdm__chain_missing(id, err);
    }
    return ESDM_OK;
}

/* Whether an entry of a block may be. */
static bool
entry_fits(const esdm__blob_view *view, uint32_t layer, uint64_t raw, uint32_t stored,
           uint32_t flags)
{
    if (layer > 0)
        return flags == 0 && stored >= ESDM__LAYER_HEAD_BYTES &&
               stored <= esdm__layer_bound((size_t) raw);
    if (flags == ESDM__BLOB_FLAG_RAW)
        return stored == raw;
    return flags == 0 && view->chain.count > 0 && stored > 0 && stored < raw;
}

static const uint8_t *
entry_of(const esdm__blob_view *view, uint32_t layer, uint32_t block)
{
    return view->table + ((size_t) layer * view->blocks + block) * ESDM__BLOB_ENTRY_BYTES;
}

static esdm_status
check_table(const esdm__blob_view *view, esdm_error *err)
{
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer < view->layers; layer++) {
        for (uint32_t b = 0; b < view->blocks; b++) {
            const uint8_t *entry = entry_of(view, layer, b);
            uint64_t raw = esdm__blob_raw_bytes(view, b, 1);
            uint32_t stored = get_u32(entry);
            uint32_t flags = get_u32(entry + 4);
            if (!entry_fits(view, layer, raw, stored, flags))
                return esdm__error_set(err, ESDM_ECORRUPT,
                                       "fragment head is damaged: block %u has %u of %llu bytes, "
                                       "flags %u",
                                       b, stored, (unsigned long long) raw, flags);
            sum += stored; /* at most 2^34 blocks of 2^25 bytes */
        }
    }
    return sum == view->payload_bytes ? ESDM_OK : corrupt(err, "the blocks do not add up");
}

/* What values became. Numbers that say nothing wrong are not checked further: nobody counts on
 * them but who wants to know. */
static esdm_status
parse_accuracy(const uint8_t *at, esdm__blob_accuracy *ret, esdm_error *err)
{
    *ret = (esdm__blob_accuracy){
        .absolute = get_f64(at),
        .relative = get_f64(at + 8),
        .finest = get_f64(at + 16),
        .conserved = get_f64(at + 24),
        .facts = {.largest_error = get_f64(at + 32),
                  .largest_share = get_f64(at + 40),
                  .sum_change = get_f64(at + 48),
                  .points = get_u64(at + 56),
                  .exact_points = get_u64(at + 64)},
        .blocks_again = get_u32(at + 72),
        .blocks_lossless = get_u32(at + 76),
    };
    return get_u64(at + 80) == 0 ? ESDM_OK : corrupt(err, "a field has an impossible value");
}

/* What follows in the second header of version 4. */
static esdm_status
parse_layers(const uint8_t *at, esdm__blob_view *view, esdm_error *err)
{
    view->layers = get_u32(at);
    view->range = get_f64(at + 8);
    if (view->layers < 2 || view->layers > ESDM__BLOB_LAYERS_MAX || get_u32(at + 4) != 0 ||
        !(view->range > 0) || view->chain.count != 1)
        return corrupt(err, "its layers make no sense");
    for (uint32_t i = 0; i + 1 < view->layers; i++) {
        view->errors[i] = get_f64(at + 16 + (size_t) i * 8);
        if (!(view->errors[i] >= 0))
            return corrupt(err, "its layers make no sense");
    }
    return ESDM_OK;
}

/* The second header of versions 3 and 4. */
static esdm_status
parse_second(const uint8_t *head, size_t head_bytes, esdm__blob_view *view, esdm_error *err)
{
    uint32_t bytes = get_u32(head + 24);
    const uint8_t *at = head + ESDM__BLOB_HEADER_BYTES;
    uint64_t shape[ESDM_MAX_RANK];
    if (bytes < ESDM__BLOB_SHAPE_BYTES || bytes > head_bytes - ESDM__BLOB_HEADER_BYTES)
        return corrupt(err, "its second header is too short or too long");
    uint32_t rank = at[0];
    uint32_t flags = get_u16(at + 2);
    uint32_t shape_end = ESDM__BLOB_SHAPE_BYTES + rank * 8;
    view->lossy = (flags & ESDM__BLOB_LOSSY) != 0;
    uint32_t layers_at = shape_end + (view->lossy ? ESDM__BLOB_ACCURACY_BYTES : 0);
    bool layered = get_u16(head + 8) == ESDM__BLOB_VERSION_LAYERS;
    uint32_t known = ESDM__BLOB_LOSSY | (layered ? ESDM__BLOB_LAYERED : 0);
    if (rank > ESDM_MAX_RANK || (flags & ~known) != 0 || get_u32(at + 4) != 0 ||
        layered != ((flags & ESDM__BLOB_LAYERED) != 0) ||
        bytes != layers_at + (layered ? ESDM__BLOB_LAYERS_BYTES : 0))
        return corrupt(err, "its second header has an impossible value");
    memcpy(shape, at + ESDM__BLOB_SHAPE_BYTES, (size_t) rank * 8);
    if (!esdm__blocks_shaped(rank, shape, at[1], get_u64(at + 8), view->element_bytes,
                             view->raw_bytes, &view->geometry))
        return corrupt(err, "the shape of its blocks does not fit the fragment");
    view->table = at + bytes;
    esdm_status st = view->lossy ? parse_accuracy(at + shape_end, &view->accuracy, err) : ESDM_OK;
    return st == ESDM_OK && layered ? parse_layers(at + layers_at, view, err) : st;
}

/* Where the blocks are. */
static esdm_status
parse_geometry(const uint8_t *head, size_t head_bytes, esdm__blob_view *view, esdm_error *err)
{
    if (view->raw_bytes == 0 || view->element_bytes == 0 || get_u32(head + 28) != 0)
        return corrupt(err, "a field has an impossible value");
    if (get_u16(head + 8) >= ESDM__BLOB_VERSION_SHAPED) {
        esdm_status st = view->block_log2 == 0 && view->chain.count > 0
                             ? parse_second(head, head_bytes, view, err)
                             : corrupt(err, "a field has an impossible value");
        if (st != ESDM_OK)
            return st;
    } else {
        if (view->block_log2 < BLOB_LOG2_MIN || view->block_log2 > ESDM__BLOCK_LOG2_MAX)
            return corrupt(err, "the block size is out of range");
        if (get_u32(head + 24) != 0)
            return corrupt(err, "a field has an impossible value");
        uint64_t blocks = block_count(view->raw_bytes, view->block_log2);
        if (blocks > UINT32_MAX)
            return corrupt(err, "its length does not fit the number of blocks");
        esdm__blocks_plain(view->raw_bytes, (uint32_t) blocks, view->block_log2, &view->geometry);
    }
    uint64_t table = (uint64_t) view->geometry.blocks * ESDM__BLOB_ENTRY_BYTES * view->layers;
    if (view->geometry.blocks != view->blocks ||
        (uint64_t) (view->table - head) + table != head_bytes)
        return corrupt(err, "its length does not fit the number of blocks");
    return ESDM_OK;
}

esdm_status
esdm__blob_parse(const void *head, size_t head_bytes, esdm__codec_by_id find,
                 esdm__blob_view *ret_view, esdm_error *err)
{
    const uint8_t *bytes = head;
    esdm_status st = check_frame(bytes, head_bytes, err);
    if (st != ESDM_OK)
        return st;
    esdm__blob_view view = {
        .table = bytes + ESDM__BLOB_HEADER_BYTES,
        .raw_bytes = get_u64(bytes + 32),
        .payload_bytes = get_u64(bytes + 40),
        .blocks = get_u32(bytes + 52),
        .block_log2 = bytes[11],
        .dataset = get_u32(bytes + 48),
        .type = (int32_t) get_u32(bytes + 12),
        .element_bytes = get_u32(bytes + 20),
        .layers = 1,
    };
    view.chain.count = bytes[10];
    st = parse_geometry(bytes, head_bytes, &view, err);
    if (st == ESDM_OK)
        st = parse_chain(bytes, find, &view.chain, err);
    if (st == ESDM_OK)
        st = check_table(&view, err);
    if (st != ESDM_OK)
        return st;
    view.use = view.layers;
    view.errors[view.layers - 1] = view.lossy ? view.accuracy.facts.largest_error : 0;
    *ret_view = view;
    return ESDM_OK;
}

void
esdm__blob_look(const void *head, size_t head_bytes, const esdm__chain *chain,
                esdm__blob_view *ret_view)
{
    const uint8_t *bytes = head;
    *ret_view = (esdm__blob_view){.raw_bytes = get_u64(bytes + 32),
                                  .payload_bytes = get_u64(bytes + 40),
                                  .blocks = get_u32(bytes + 52),
                                  .type = (int32_t) get_u32(bytes + 12),
                                  .element_bytes = get_u32(bytes + 20),
                                  .layers = 1,
                                  .use = 1,
                                  .chain = *chain};
    (void) parse_geometry(bytes, head_bytes, ret_view, NULL);
}

void
esdm__blob_use(esdm__blob_view *view, double absolute, double share)
{
    double bound = share * view->range;
    bound = bound > absolute ? bound : absolute;
    for (view->use = 1; view->use < view->layers; view->use++) {
        if (view->errors[view->use - 1] <= bound)
            break;
    }
}

uint64_t
esdm__blob_stored_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer < view->use; layer++) {
        uint64_t offset;
        uint64_t bytes;
        esdm__blob_range(view, layer, first, count, &offset, &bytes);
        sum += bytes;
    }
    return sum;
}

void
esdm__blob_range(const esdm__blob_view *view, uint32_t layer, uint32_t first, uint32_t count,
                 uint64_t *ret_offset, uint64_t *ret_bytes)
{
    if (view->chain.count == 0) {
        *ret_offset = esdm__blocks_start(&view->geometry, first);
        *ret_bytes = esdm__blob_raw_bytes(view, first, count);
        return;
    }
    uint64_t offset = 0;
    uint64_t bytes = 0;
    size_t from = (size_t) layer * view->blocks + first;
    for (size_t i = 0; i < from; i++)
        offset += get_u32(view->table + i * ESDM__BLOB_ENTRY_BYTES);
    for (size_t i = from; i < from + count; i++)
        bytes += get_u32(view->table + i * ESDM__BLOB_ENTRY_BYTES);
    *ret_offset = offset;
    *ret_bytes = bytes;
}

uint64_t
esdm__blob_raw_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count)
{
    if (first >= view->blocks)
        return 0;
    uint32_t end = count < view->blocks - first ? first + count : view->blocks;
    return esdm__blocks_start(&view->geometry, end) - esdm__blocks_start(&view->geometry, first);
}

/* Decoding */

/* Runs the chain backwards on one block; `stage` are two buffers of stage_bytes. */
static esdm_status
decode_chain(const esdm__blob_view *view, uint32_t block, const uint8_t *stored,
             size_t stored_bytes, uint8_t *raw, size_t raw_bytes, uint8_t *const stage[2],
             size_t stage_bytes, esdm_error *err)
{
    const esdm__chain *chain = &view->chain;
    uint64_t shape[ESDM_MAX_RANK];
    esdm__blocks_shape(&view->geometry, block, shape);
    const esdm_codec_input input = {.element_bytes = view->element_bytes,
                                    .type = view->type,
                                    .rank = view->geometry.rank,
                                    .shape = view->geometry.rank > 0 ? shape : NULL};
    /* A first codec that rounds has nothing to take back. */
    uint32_t first = chain->count > 1 && (chain->codecs[0]->flags & ESDM_CODEC_ROUNDS) != 0 ? 1 : 0;
    size_t prefix = (size_t) (chain->count - 1) * LENGTH_BYTES;
    if (stored_bytes <= prefix)
        return esdm__error_set(err, ESDM_ECORRUPT, "too short for its codecs");

    const uint8_t *from = stored + prefix;
    size_t from_bytes = stored_bytes - prefix;
    if (first > 0 && get_u32(stored) != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "the length between codecs is out of range");
    for (uint32_t i = chain->count; i-- > first;) {
        uint8_t *to = i == first ? raw : stage[i & 1];
        size_t to_bytes =
            i == first ? raw_bytes : get_u32(stored + (size_t) (i - 1) * LENGTH_BYTES);
        if (i > first && (to_bytes == 0 || to_bytes > stage_bytes))
            return esdm__error_set(err, ESDM_ECORRUPT, "the length between codecs is out of range");
        esdm_status st = chain->codecs[i]->decode(&input, from, from_bytes, to, to_bytes, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "codec '%s'", chain->codecs[i]->base.name);
        from = to;
        from_bytes = to_bytes;
    }
    return ESDM_OK;
}

/* Largest result between codecs of one block. */
static esdm_status
stage_size(const esdm__blob_view *view, size_t *ret_bytes, esdm_error *err)
{
    size_t most = (size_t) esdm__blob_raw_bytes(view, 0, 1);
    for (uint32_t i = 0; i + 1 < view->chain.count; i++) {
        size_t bound = view->chain.codecs[i]->bound(most);
        if (bound == SIZE_MAX)
            return esdm__error_set(err, ESDM_ECORRUPT, "blocks are too long for codec '%s'",
                                   view->chain.codecs[i]->base.name);
        most = bound > most ? bound : most;
    }
    *ret_bytes = most > 0 ? most : 1;
    return ESDM_OK;
}

static esdm_status
decode_blocks(const esdm__blob_view *view, uint32_t first, uint32_t count, const uint8_t *stored,
              uint8_t *raw, uint8_t *const stage[2], size_t stage_bytes, esdm_error *err)
{
    for (uint32_t b = first; b < first + count; b++) {
        const uint8_t *entry = view->table + (size_t) b * ESDM__BLOB_ENTRY_BYTES;
        size_t stored_bytes = get_u32(entry);
        size_t raw_bytes = (size_t) esdm__blob_raw_bytes(view, b, 1);
        if (esdm__checksum(stored, stored_bytes) != get_u64(entry + 8))
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "block %u of %u is damaged: its checksum is wrong", b,
                                   view->blocks);
        if (get_u32(entry + 4) != ESDM__BLOB_FLAG_RAW) {
            esdm_status st = decode_chain(view, b, stored, stored_bytes, raw, raw_bytes, stage,
                                          stage_bytes, err);
            if (st != ESDM_OK)
                return esdm__error_prefix(err, st, "block %u of %u", b, view->blocks);
        } else if (raw != stored) {
            memcpy(raw, stored, raw_bytes);
        }
        stored += stored_bytes;
        raw += raw_bytes;
    }
    return ESDM_OK;
}

/* What makes the numbers of the layers before more accurate. */
static esdm_status
decode_layer(const esdm__blob_view *view, uint32_t layer, uint32_t first, uint32_t count,
             const uint8_t **stored, uint8_t *raw, esdm_error *err)
{
    for (uint32_t b = first; b < first + count; b++) {
        uint64_t shape[ESDM_MAX_RANK];
        const uint8_t *entry = entry_of(view, layer, b);
        size_t stored_bytes = get_u32(entry);
        size_t raw_bytes = (size_t) esdm__blob_raw_bytes(view, b, 1);
        if (esdm__checksum(*stored, stored_bytes) != get_u64(entry + 8))
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "layer %u of block %u of %u is damaged: its checksum is wrong",
                                   layer, b, view->blocks);
        esdm__blocks_shape(&view->geometry, b, shape);
        const esdm_codec_input input = {.element_bytes = view->element_bytes,
                                        .type = view->type,
                                        .rank = view->geometry.rank,
                                        .shape = view->geometry.rank > 0 ? shape : NULL};
        esdm_status st = esdm__layer_decode(&input, view->chain.codecs[0], *stored, stored_bytes,
                                            raw, raw_bytes, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "layer %u of block %u of %u", layer, b,
                                      view->blocks);
        *stored += stored_bytes;
        raw += raw_bytes;
    }
    return ESDM_OK;
}

static esdm_status
decode_layers(const esdm__blob_view *view, uint32_t first, uint32_t count, const uint8_t *stored,
              uint8_t *raw, esdm_error *err)
{
    uint64_t offset;
    uint64_t bytes;
    esdm_status st = ESDM_OK;
    esdm__blob_range(view, 0, first, count, &offset, &bytes);
    stored += bytes;
    for (uint32_t layer = 1; layer < view->use && st == ESDM_OK; layer++)
        st = decode_layer(view, layer, first, count, &stored, raw, err);
    return st;
}

/* A codec of numbers has, of each, a code, the size of its error, and whether it is one. */
uint64_t
esdm__blob_decode_bytes(const esdm__blob_view *view)
{
    uint64_t raw = esdm__blob_raw_bytes(view, 0, 1);
    uint64_t code = view->element_bytes > 4 ? 8 : 4;
    uint64_t numbers = view->element_bytes > 0 ? raw / view->element_bytes : 0;
    uint64_t bytes = view->chain.count > 1 ? 2 * raw : view->use > 1 ? numbers * 8 : 0;
    uint64_t layers =
        view->use > 1 ? numbers * ESDM__LAYER_DECODE_BYTES + ESDM__LAYER_TABLES_BYTES : 0;
    for (uint32_t i = 0; i < view->chain.count; i++) {
        if ((view->chain.codecs[i]->flags & ESDM_CODEC_SHAPED) != 0)
            bytes += numbers * (2 * code + 1);
    }
    return bytes > layers ? bytes : layers;
}

esdm_status
esdm__blob_decode(const esdm__blob_view *view, uint32_t first, uint32_t count, const void *stored,
                  size_t stored_bytes, void *raw, size_t raw_bytes, esdm_error *err)
{
    if (first > view->blocks || count > view->blocks - first)
        return esdm__error_set(err, ESDM_EINVAL, "blocks %u+%u of %u do not exist", first, count,
                               view->blocks);
    uint64_t bytes = esdm__blob_stored_bytes(view, first, count);
    if (bytes != stored_bytes || esdm__blob_raw_bytes(view, first, count) != raw_bytes)
        return esdm__error_set(err, ESDM_EINVAL, "buffers of %zu and %zu bytes do not fit blocks",
                               stored_bytes, raw_bytes);
    uint8_t *stage[2] = {NULL, NULL};
    size_t most = 0;
    esdm_status st = ESDM_OK;
    esdm_float_env program;
    if (view->chain.count == 0)
        return decode_blocks(view, first, count, stored, raw, stage, 0, err);
    if (view->chain.count > 1) {
        st = stage_size(view, &most, err);
        if (st != ESDM_OK)
            return st;
        stage[0] = esdm__scratch_new(most);
        stage[1] = esdm__scratch_new(most);
        if (stage[0] == NULL || stage[1] == NULL)
            st = esdm__error_nomem(err, most, "results between codecs");
    }
    esdm_float_env_enter_all(&program);
    if (st == ESDM_OK)
        st = decode_blocks(view, first, count, stored, raw, stage, most, err);
    if (st == ESDM_OK && view->use > 1)
        st = decode_layers(view, first, count, stored, raw, err);
    esdm_float_env_leave_all(&program);
    esdm__scratch_free(stage[0]);
    esdm__scratch_free(stage[1]);
    return st;
}

/* ---- equal ones ----------------------------------------------------------------------------- */

/* Places in the head that differ between equal fragments: dataset, and the checksum over it. */
#define AT_DATASET  48u
#define AT_BLOCKS   52u
#define AT_CHECKSUM 56u

void
esdm__blob_hash(const void *head, size_t head_bytes, uint64_t ret_hash[2])
{
    const uint8_t *bytes = head;
    uint8_t told[AT_DATASET + 4 + 16];
    uint64_t rest[2];
    esdm__checksum128(bytes + ESDM__BLOB_HEADER_BYTES, head_bytes - ESDM__BLOB_HEADER_BYTES, rest);
    memcpy(told, bytes, AT_DATASET);
    memcpy(told + AT_DATASET, bytes + AT_BLOCKS, 4);
    memcpy(told + AT_DATASET + 4, rest, sizeof rest);
    esdm__checksum128(told, sizeof told, ret_hash);
}

bool
esdm__blob_head_equals(const void *a, const void *b, size_t head_bytes)
{
    const uint8_t *x = a;
    const uint8_t *y = b;
    return memcmp(x, y, AT_DATASET) == 0 &&
           memcmp(x + AT_BLOCKS, y + AT_BLOCKS, AT_CHECKSUM - AT_BLOCKS) == 0 &&
           memcmp(x + ESDM__BLOB_HEADER_BYTES, y + ESDM__BLOB_HEADER_BYTES,
                  head_bytes - ESDM__BLOB_HEADER_BYTES) == 0;
}
