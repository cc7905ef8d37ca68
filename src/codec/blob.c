/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/blob.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"

#define BLOB_VERSION    1u
#define BLOB_LOG2_MIN   9u
#define BLOB_LOG2_MAX   26u
#define BLOB_FLAG_RAW   1u
#define CHECKSUM_OFFSET 56u
#define LENGTH_BYTES    4u /* of an intermediate result, before the block */

static const uint8_t blob_magic[8] = {'E', 'S', 'D', 'M', 'F', 'R', 'A', 'G'};

static void
put_u16(uint8_t *to, uint16_t value)
{
    memcpy(to, &value, sizeof value);
}

static void
put_u32(uint8_t *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

static void
put_u64(uint8_t *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
}

static uint16_t
get_u16(const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint32_t
get_u32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint64_t
get_u64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Of 64 bytes: the header with the checksum of the table in the place of its own. */
static uint64_t
head_checksum(const uint8_t *head, size_t head_bytes)
{
    uint8_t bytes[ESDM__BLOB_HEADER_BYTES];
    memcpy(bytes, head, CHECKSUM_OFFSET);
    put_u64(bytes + CHECKSUM_OFFSET,
            esdm__checksum(head + ESDM__BLOB_HEADER_BYTES, head_bytes - ESDM__BLOB_HEADER_BYTES));
    return esdm__checksum(bytes, sizeof bytes);
}

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

/* Encoding */

/* What the encoding of one block needs; `stage` are two buffers for results between codecs. */
typedef struct encoder {
    const esdm__chain *chain;
    esdm_codec_input input;
    uint8_t *stage[2];
    size_t stage_bytes;
    size_t slack_bytes; /* by which the worst case of a block exceeds it */
} encoder;

/* Also after a failed init. */
static void
encoder_clear(encoder *enc)
{
    free(enc->stage[0]);
    free(enc->stage[1]);
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
    enc->slack_bytes = most - block_bytes + (size_t) chain->count * LENGTH_BYTES;
    if (chain->count < 2)
        return ESDM_OK;
    enc->stage_bytes = most;
    enc->stage[0] = malloc(most);
    enc->stage[1] = malloc(most);
    if (enc->stage[0] == NULL || enc->stage[1] == NULL)
        return esdm__error_nomem(err, most, "results between codecs");
    return ESDM_OK;
}

/* Runs the chain on one block. *ret_bytes is 0 when the block does not become shorter. */
static esdm_status
encode_block(encoder *enc, const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t out_bytes,
             size_t *ret_bytes, esdm_error *err)
{
    const esdm__chain *chain = enc->chain;
    size_t prefix = (size_t) (chain->count - 1) * LENGTH_BYTES;
    *ret_bytes = 0;
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
        esdm_status st = codec->encode(&enc->input, from, from_bytes, to, room, &bytes, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "codec '%s'", codec->base.name);
        if (bytes == 0 || bytes > room)
            return ESDM_OK;
        if (!last)
            put_u32(out + (size_t) i * LENGTH_BYTES, (uint32_t) bytes);
        from = to;
        from_bytes = bytes;
    }
    if (prefix + from_bytes < raw_bytes)
        *ret_bytes = prefix + from_bytes;
    return ESDM_OK;
}

static void
put_entry(uint8_t *entry, uint32_t bytes, uint32_t flags, const void *stored)
{
    put_u32(entry, bytes);
    put_u32(entry + 4, flags);
    put_u64(entry + 8, esdm__checksum(stored, bytes));
}

static size_t
block_raw_bytes(uint64_t raw_bytes, uint32_t block_log2, uint64_t block)
{
    uint64_t left = raw_bytes - (block << block_log2);
    uint64_t full = UINT64_C(1) << block_log2;
    return (size_t) (left < full ? left : full);
}

static void
checksum_blocks(uint8_t *table, const uint8_t *raw, size_t raw_bytes, uint32_t block_log2)
{
    uint64_t blocks = block_count(raw_bytes, block_log2);
    for (uint64_t b = 0; b < blocks; b++)
        put_entry(table + b * ESDM__BLOB_ENTRY_BYTES,
                  (uint32_t) block_raw_bytes(raw_bytes, block_log2, b), BLOB_FLAG_RAW,
                  raw + (b << block_log2));
}

/* A block is never longer than its raw form, but codecs are faster with room for the worst case. */
static esdm_status
encode_blocks(encoder *enc, uint8_t *table, const uint8_t *raw, size_t raw_bytes,
              uint32_t block_log2, uint8_t *payload, size_t payload_bytes, size_t *ret_bytes,
              esdm_error *err)
{
    uint64_t blocks = block_count(raw_bytes, block_log2);
    size_t used = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        const uint8_t *from = raw + (b << block_log2);
        size_t from_bytes = block_raw_bytes(raw_bytes, block_log2, b);
        uint32_t flags = 0;
        size_t bytes;
        esdm_status st =
            encode_block(enc, from, from_bytes, payload + used, payload_bytes - used, &bytes, err);
        if (st != ESDM_OK)
            return st;
        if (bytes == 0) {
            memcpy(payload + used, from, from_bytes);
            bytes = from_bytes;
            flags = BLOB_FLAG_RAW;
        }
        put_entry(table + b * ESDM__BLOB_ENTRY_BYTES, (uint32_t) bytes, flags, payload + used);
        used += bytes;
    }
    *ret_bytes = used;
    return ESDM_OK;
}

static void
write_header(const esdm__blob *blob, const esdm__chain *chain, int32_t type, uint32_t element_bytes,
             uint32_t dataset, uint64_t raw_bytes, uint32_t block_log2)
{
    uint8_t *head = blob->head;
    memset(head, 0, ESDM__BLOB_HEADER_BYTES);
    memcpy(head, blob_magic, sizeof blob_magic);
    put_u16(head + 8, BLOB_VERSION);
    head[10] = (uint8_t) chain->count;
    head[11] = (uint8_t) block_log2;
    put_u32(head + 12, (uint32_t) type);
    for (uint32_t i = 0; i < chain->count; i++)
        head[16 + i] = chain->codecs[i]->id;
    put_u32(head + 20, element_bytes);
    put_u64(head + 32, raw_bytes);
    put_u64(head + 40, blob->payload_bytes);
    put_u32(head + 48, dataset);
    put_u32(head + 52, (uint32_t) block_count(raw_bytes, block_log2));
    put_u64(head + CHECKSUM_OFFSET, head_checksum(head, blob->head_bytes));
}

static esdm_status
encode_payload(const esdm__chain *chain, int32_t type, uint32_t element_bytes, const void *raw,
               size_t raw_bytes, uint32_t block_log2, esdm__blob *blob, esdm_error *err)
{
    uint8_t *table = blob->head + ESDM__BLOB_HEADER_BYTES;
    if (chain->count == 0) {
        checksum_blocks(table, raw, raw_bytes, block_log2);
        blob->payload = raw;
        blob->payload_bytes = raw_bytes;
        return ESDM_OK;
    }
    encoder enc;
    esdm_status st = encoder_init(&enc, chain, type, element_bytes, (size_t) 1 << block_log2, err);
    size_t room = raw_bytes + enc.slack_bytes;
    uint8_t *payload = st == ESDM_OK ? malloc(room) : NULL;
    if (payload != NULL) {
        blob->owned = payload;
        blob->payload = payload;
        st = encode_blocks(&enc, table, raw, raw_bytes, block_log2, payload, room,
                           &blob->payload_bytes, err);
    } else if (st == ESDM_OK) {
        st = esdm__error_nomem(err, room, "an encoded fragment");
    }
    encoder_clear(&enc);
    return st;
}

esdm_status
esdm__blob_encode(const esdm__chain *chain, int32_t type, uint32_t element_bytes, uint32_t dataset,
                  const void *raw, size_t raw_bytes, esdm__blob *ret_blob, esdm_error *err)
{
    if (raw_bytes == 0 || raw == NULL || element_bytes == 0 || chain->count > ESDM__CHAIN_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "a fragment of %zu bytes cannot be encoded",
                               raw_bytes);
    uint32_t block_log2 = chain->count == 0 ? ESDM__BLOB_RAW_LOG2 : ESDM__BLOB_CODED_LOG2;
    esdm__blob blob = {.head_bytes = esdm__blob_head_bytes(raw_bytes, block_log2)};
    if (blob.head_bytes == SIZE_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a fragment of %zu bytes is longer than the format holds; "
                               "use smaller fragments",
                               raw_bytes);
    blob.head = malloc(blob.head_bytes);
    if (blob.head == NULL)
        return esdm__error_nomem(err, blob.head_bytes, "the head of a fragment");

    esdm_status st =
        encode_payload(chain, type, element_bytes, raw, raw_bytes, block_log2, &blob, err);
    if (st != ESDM_OK) {
        esdm__blob_clear(&blob);
        return st;
    }
    write_header(&blob, chain, type, element_bytes, dataset, raw_bytes, block_log2);
    *ret_blob = blob;
    return ESDM_OK;
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
    if (memcmp(head, blob_magic, sizeof blob_magic) != 0)
        return corrupt(err, "it does not begin with ESDMFRAG");
    uint16_t version = get_u16(head + 8);
    if (version > BLOB_VERSION)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "fragment format %u is newer than this ESDM, which knows %u; "
                               "use a newer ESDM",
                               version, BLOB_VERSION);
    if (version != BLOB_VERSION)
        return corrupt(err, "version 0");
    if (get_u64(head + CHECKSUM_OFFSET) != head_checksum(head, head_bytes))
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
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "no codec with id %u; install its plug-in "
                                   "(ESDM_PLUGIN_PATH)",
                                   id);
    }
    return ESDM_OK;
}

static esdm_status
check_table(const esdm__blob_view *view, esdm_error *err)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < view->blocks; b++) {
        const uint8_t *entry = view->table + (size_t) b * ESDM__BLOB_ENTRY_BYTES;
        size_t raw = block_raw_bytes(view->raw_bytes, view->block_log2, b);
        uint32_t stored = get_u32(entry);
        uint32_t flags = get_u32(entry + 4);
        bool fits = flags == BLOB_FLAG_RAW
                        ? stored == raw
                        : flags == 0 && view->chain.count > 0 && stored > 0 && stored < raw;
        if (!fits)
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "fragment head is damaged: block %u has %u of %zu bytes, "
                                   "flags %u",
                                   b, stored, raw, flags);
        sum += stored; /* at most 2^32 blocks of 2^32 bytes */
    }
    return sum == view->payload_bytes ? ESDM_OK : corrupt(err, "the blocks do not add up");
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
    };
    if (view.block_log2 < BLOB_LOG2_MIN || view.block_log2 > BLOB_LOG2_MAX)
        return corrupt(err, "the block size is out of range");
    if (view.raw_bytes == 0 || view.element_bytes == 0 || get_u64(bytes + 24) != 0)
        return corrupt(err, "a field has an impossible value");
    if (esdm__blob_head_bytes(view.raw_bytes, view.block_log2) != head_bytes ||
        block_count(view.raw_bytes, view.block_log2) != view.blocks)
        return corrupt(err, "its length does not fit the number of blocks");
    st = parse_chain(bytes, find, &view.chain, err);
    if (st == ESDM_OK)
        st = check_table(&view, err);
    if (st == ESDM_OK)
        *ret_view = view;
    return st;
}

void
esdm__blob_range(const esdm__blob_view *view, uint32_t first, uint32_t count, uint64_t *ret_offset,
                 uint64_t *ret_bytes)
{
    if (view->chain.count == 0) {
        *ret_offset = (uint64_t) first << view->block_log2;
        *ret_bytes = esdm__blob_raw_bytes(view, first, count);
        return;
    }
    uint64_t offset = 0;
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < first; b++)
        offset += get_u32(view->table + (size_t) b * ESDM__BLOB_ENTRY_BYTES);
    for (uint32_t b = first; b < first + count; b++)
        bytes += get_u32(view->table + (size_t) b * ESDM__BLOB_ENTRY_BYTES);
    *ret_offset = offset;
    *ret_bytes = bytes;
}

uint64_t
esdm__blob_raw_bytes(const esdm__blob_view *view, uint32_t first, uint32_t count)
{
    uint64_t from = (uint64_t) first << view->block_log2;
    uint64_t to = ((uint64_t) first + count) << view->block_log2;
    to = to < view->raw_bytes ? to : view->raw_bytes;
    return to > from ? to - from : 0;
}

/* Decoding */

/* Runs the chain backwards on one block; `stage` are two buffers of stage_bytes. */
static esdm_status
decode_chain(const esdm__blob_view *view, const uint8_t *stored, size_t stored_bytes, uint8_t *raw,
             size_t raw_bytes, uint8_t *const stage[2], size_t stage_bytes, esdm_error *err)
{
    const esdm__chain *chain = &view->chain;
    const esdm_codec_input input = {.element_bytes = view->element_bytes, .type = view->type};
    size_t prefix = (size_t) (chain->count - 1) * LENGTH_BYTES;
    if (stored_bytes <= prefix)
        return esdm__error_set(err, ESDM_ECORRUPT, "too short for its codecs");

    const uint8_t *from = stored + prefix;
    size_t from_bytes = stored_bytes - prefix;
    for (uint32_t i = chain->count; i-- > 0;) {
        uint8_t *to = i == 0 ? raw : stage[i & 1];
        size_t to_bytes = i == 0 ? raw_bytes : get_u32(stored + (size_t) (i - 1) * LENGTH_BYTES);
        if (i > 0 && (to_bytes == 0 || to_bytes > stage_bytes))
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
    size_t first = block_raw_bytes(view->raw_bytes, view->block_log2, 0);
    size_t most = first > 0 ? first : 1;
    for (uint32_t i = 0; i + 1 < view->chain.count; i++) {
        size_t bound = view->chain.codecs[i]->bound(most);
        if (bound == SIZE_MAX)
            return esdm__error_set(err, ESDM_ECORRUPT, "blocks are too long for codec '%s'",
                                   view->chain.codecs[i]->base.name);
        most = bound > most ? bound : most;
    }
    *ret_bytes = most;
    return ESDM_OK;
}

static esdm_status
decode_blocks(const esdm__blob_view *view, uint32_t first, uint32_t count, const uint8_t *stored,
              uint8_t *raw, uint8_t *const stage[2], size_t stage_bytes, esdm_error *err)
{
    for (uint32_t b = first; b < first + count; b++) {
        const uint8_t *entry = view->table + (size_t) b * ESDM__BLOB_ENTRY_BYTES;
        size_t stored_bytes = get_u32(entry);
        size_t raw_bytes = block_raw_bytes(view->raw_bytes, view->block_log2, b);
        if (esdm__checksum(stored, stored_bytes) != get_u64(entry + 8))
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "block %u of %u is damaged: its checksum is wrong", b,
                                   view->blocks);
        if (get_u32(entry + 4) != BLOB_FLAG_RAW) {
            esdm_status st =
                decode_chain(view, stored, stored_bytes, raw, raw_bytes, stage, stage_bytes, err);
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

esdm_status
esdm__blob_decode(const esdm__blob_view *view, uint32_t first, uint32_t count, const void *stored,
                  size_t stored_bytes, void *raw, size_t raw_bytes, esdm_error *err)
{
    if (first > view->blocks || count > view->blocks - first)
        return esdm__error_set(err, ESDM_EINVAL, "blocks %u+%u of %u do not exist", first, count,
                               view->blocks);
    uint64_t offset;
    uint64_t bytes;
    esdm__blob_range(view, first, count, &offset, &bytes);
    if (bytes != stored_bytes || esdm__blob_raw_bytes(view, first, count) != raw_bytes)
        return esdm__error_set(err, ESDM_EINVAL, "buffers of %zu and %zu bytes do not fit blocks",
                               stored_bytes, raw_bytes);
    if (view->chain.count < 2)
        return decode_blocks(view, first, count, stored, raw, (uint8_t *const[2]){NULL, NULL}, 0,
                             err);

    size_t most = 1;
    esdm_status st = stage_size(view, &most, err);
    if (st != ESDM_OK)
        return st;
    uint8_t *stage[2] = {malloc(most), malloc(most)};
    if (stage[0] == NULL || stage[1] == NULL)
        st = esdm__error_nomem(err, most, "results between codecs");
    else
        st = decode_blocks(view, first, count, stored, raw, stage, most, err);
    free(stage[0]);
    free(stage[1]);
    return st;
}
