/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "esdm/types.h"

#define AT_CHECKSUM 8
#define AT_BYTES    16
#define AT_VERSION  24
#define AT_KIND     26
#define AT_TIME     32
#define AT_UUID     40
#define UUID_DIGITS (ESDM__UUID_BYTES - 1)

static const char magic[] = "ESDMJRNL";

size_t
esdm__journal_start(esdm__buffer *out, esdm__journal_kind kind, uint64_t time_ns, const char *uuid)
{
    uint8_t head[ESDM__JOURNAL_HEAD_BYTES] = {0};
    uint16_t version = ESDM__JOURNAL_VERSION;
    uint16_t number = (uint16_t) kind;
    size_t start = out->bytes;
    memcpy(head, magic, 8);
    memcpy(head + AT_VERSION, &version, sizeof version);
    memcpy(head + AT_KIND, &number, sizeof number);
    memcpy(head + AT_TIME, &time_ns, sizeof time_ns);
    if (uuid != NULL)
        memcpy(head + AT_UUID, uuid, strnlen(uuid, UUID_DIGITS));
    esdm__buffer_put(out, head, sizeof head);
    return start;
}

void
esdm__journal_finish(esdm__buffer *out, size_t start)
{
    if (out->failed)
        return;
    uint64_t bytes = out->bytes - start;
    memcpy(out->data + start + AT_BYTES, &bytes, sizeof bytes);
    uint64_t checksum = esdm__checksum(out->data + start + 16, (size_t) bytes - 16);
    memcpy(out->data + start + AT_CHECKSUM, &checksum, sizeof checksum);
}

esdm__journal_found
esdm__journal_look(const uint8_t *data, size_t bytes, esdm__journal_record *ret_record)
{
    uint64_t checksum;
    uint64_t length;
    uint16_t version;
    uint16_t kind;
    if (bytes < ESDM__JOURNAL_HEAD_BYTES || memcmp(data, magic, 8) != 0)
        return ESDM__JOURNAL_DAMAGED;
    memcpy(&checksum, data + AT_CHECKSUM, sizeof checksum);
    memcpy(&length, data + AT_BYTES, sizeof length);
    if (length < ESDM__JOURNAL_HEAD_BYTES || length > bytes ||
        checksum != esdm__checksum(data + 16, (size_t) length - 16))
        return ESDM__JOURNAL_DAMAGED;
    memcpy(&version, data + AT_VERSION, sizeof version);
    memcpy(&kind, data + AT_KIND, sizeof kind);
    *ret_record =
        (esdm__journal_record){.kind = (esdm__journal_kind) kind, .bytes = (size_t) length};
    if (version != ESDM__JOURNAL_VERSION)
        return ESDM__JOURNAL_NEWER;
    memcpy(&ret_record->time_ns, data + AT_TIME, sizeof ret_record->time_ns);
    memcpy(ret_record->uuid, data + AT_UUID, UUID_DIGITS);
    esdm__cursor_init(&ret_record->body, data + ESDM__JOURNAL_HEAD_BYTES,
                      (size_t) length - ESDM__JOURNAL_HEAD_BYTES);
    return ESDM__JOURNAL_FOUND;
}

/* ---- parts of a body ------------------------------------------------------------------------ */

void
esdm__journal_put_blob(esdm__buffer *out, const void *data, size_t bytes)
{
    esdm__buffer_put_varint(out, bytes);
    if (bytes > 0)
        esdm__buffer_put(out, data, bytes);
}

void
esdm__journal_put_text(esdm__buffer *out, const char *text)
{
    esdm__journal_put_blob(out, text, text != NULL ? strlen(text) : 0);
}

const uint8_t *
esdm__journal_blob(esdm__cursor *body, size_t *ret_bytes)
{
    uint64_t bytes = esdm__cursor_varint(body);
    *ret_bytes = 0;
    if (body->failed || bytes > esdm__cursor_left(body)) {
        body->failed = true;
        return NULL;
    }
    *ret_bytes = (size_t) bytes;
    return esdm__cursor_take(body, (size_t) bytes);
}

char *
esdm__journal_text(esdm__cursor *body)
{
    size_t bytes = 0;
    const uint8_t *data = esdm__journal_blob(body, &bytes);
    char *text =
        body->failed || (bytes > 0 && memchr(data, '\0', bytes) != NULL) ? NULL : malloc(bytes + 1);
    if (text == NULL) {
        body->failed = true;
        return NULL;
    }
    if (bytes > 0)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}

void
esdm__journal_put_lengths(esdm__buffer *out, const esdm_meta_length *lengths, size_t count)
{
    esdm__buffer_put_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        esdm__buffer_put_varint(out, lengths[i].dimension);
        esdm__buffer_put_varint(out, lengths[i].length);
    }
}

bool
esdm__journal_lengths(esdm__cursor *body, esdm_meta_length **ret_lengths, size_t *ret_count)
{
    uint64_t count = esdm__cursor_varint(body);
    *ret_lengths = NULL;
    *ret_count = 0;
    if (body->failed || count > esdm__cursor_left(body))
        return false;
    if (count == 0)
        return true;
    esdm_meta_length *lengths = malloc((size_t) count * sizeof *lengths);
    if (lengths == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        lengths[i].dimension = (uint32_t) esdm__cursor_varint(body);
        lengths[i].length = esdm__cursor_varint(body);
    }
    if (body->failed) {
        free(lengths);
        return false;
    }
    *ret_lengths = lengths;
    *ret_count = (size_t) count;
    return true;
}

void
esdm__journal_put_page(esdm__buffer *out, const esdm_meta_new_page *page, uint64_t added,
                       uint64_t removed)
{
    const uint64_t numbers[] = {page->dataset,  page->records,   page->level,
                                page->absolute, page->raw_bytes, page->stored_bytes,
                                added,          removed,         page->rank};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        esdm__buffer_put_varint(out, numbers[i]);
    for (uint32_t i = 0; i < 2 * page->rank; i++)
        esdm__buffer_put_varint(out, page->box[i]);
    esdm__journal_put_blob(out, page->data, page->bytes);
}

bool
esdm__journal_page_take(esdm__cursor *body, esdm__journal_page *ret_page)
{
    uint64_t numbers[9];
    for (size_t i = 0; i < 9; i++)
        numbers[i] = esdm__cursor_varint(body);
    if (body->failed || numbers[8] > ESDM_MAX_RANK)
        return false;
    uint32_t rank = (uint32_t) numbers[8];
    uint64_t *box = malloc((2 * (size_t) rank + 1) * sizeof *box);
    if (box == NULL)
        return false;
    for (uint32_t i = 0; i < 2 * rank; i++)
        box[i] = esdm__cursor_varint(body);
    size_t bytes = 0;
    const uint8_t *data = esdm__journal_blob(body, &bytes);
    if (body->failed) {
        free(box);
        return false;
    }
    *ret_page = (esdm__journal_page){.page = {.dataset = (uint32_t) numbers[0],
                                              .records = (uint32_t) numbers[1],
                                              .level = (uint32_t) numbers[2],
                                              .absolute = numbers[3] != 0,
                                              .raw_bytes = numbers[4],
                                              .stored_bytes = numbers[5],
                                              .rank = rank,
                                              .box = box,
                                              .data = data,
                                              .bytes = bytes},
                                     .added = numbers[6],
                                     .removed = numbers[7]};
    return true;
}

uint64_t
esdm__journal_page_sum(const void *data, size_t bytes)
{
    uint64_t sum = 0;
    if (bytes >= 16)
        memcpy(&sum, (const uint8_t *) data + 8, sizeof sum);
    return sum;
}
