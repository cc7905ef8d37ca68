/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/ranks/page_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/tree.h"

/* Of one batch. It has one page at least, which may be larger. */
#define BATCH_BYTES ((size_t) 256 << 10)

/* What fits goes along with the head of a batch: ranks with little or nothing send one message, and
 * do not wait for ever when the receiver misses it. */
#define HEAD_BYTES 1000u

/* Precedes each batch. */
typedef struct batch_head {
    uint64_t bytes; /* of pages; with a failure: of its text, in `data` */
    uint32_t last;
    uint32_t failure; /* an esdm_status: there are no pages */
    uint8_t data[HEAD_BYTES];
} batch_head;

/* Precedes each page; the box and the data follow. */
typedef struct page_head {
    uint32_t dataset;
    uint32_t records;
    uint32_t level;
    uint32_t rank;
    uint64_t absolute;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t bytes;
} page_head;

void
esdm__page_put(esdm__buffer *batch, const esdm_meta_new_page *page)
{
    static const uint8_t zeros[8];
    const page_head head = {
        .dataset = page->dataset,
        .records = page->records,
        .level = page->level,
        .rank = page->rank,
        .absolute = page->absolute,
        .raw_bytes = page->raw_bytes,
        .stored_bytes = page->stored_bytes,
        .bytes = page->bytes,
    };
    esdm__buffer_put(batch, &head, sizeof head);
    esdm__buffer_put(batch, page->box, (size_t) 2 * page->rank * sizeof *page->box);
    esdm__buffer_put(batch, page->data, page->bytes);
    esdm__buffer_put(batch, zeros, (8 - page->bytes % 8) % 8); /* keeps boxes aligned */
}

/* What fails is sent on all the same, as the receiver may have got it and waits for the rest. */
static esdm_status
send_batch(esdm_comm *comm, int to, const esdm__buffer *batch, bool last, esdm_error *err)
{
    batch_head head = {.last = last, .bytes = batch->bytes};
    if (head.bytes > 0 && head.bytes <= HEAD_BYTES)
        memcpy(head.data, batch->data, batch->bytes);
    esdm_status status = comm->ops->send(comm, &head, sizeof head, to, err);
    esdm_status rest = ESDM_OK;
    if (head.bytes > HEAD_BYTES)
        rest =
            esdm__parts_send(comm, to, batch->data, batch->bytes, status == ESDM_OK ? err : NULL);
    return status == ESDM_OK ? rest : status;
}

static esdm_status
send_failure(esdm_comm *comm, int to, const esdm_error *failure, esdm_error *err)
{
    batch_head head = {.last = true, .failure = (uint32_t) failure->status};
    head.bytes = strnlen(failure->message, sizeof failure->message);
    memcpy(head.data, failure->message, (size_t) head.bytes);
    return comm->ops->send(comm, &head, sizeof head, to, err);
}

/* Fills a batch. *ret_last: there are no more pages. */
static esdm_status
fill_batch(esdm__buffer *batch, esdm_meta_page_source next, void *user, bool *ret_last,
           esdm_error *err)
{
    esdm_status status = ESDM_OK;
    batch->bytes = 0;
    *ret_last = false;
    while (status == ESDM_OK && !*ret_last && batch->bytes < BATCH_BYTES) {
        const esdm_meta_new_page *page = NULL;
        status = next(user, &page, err);
        *ret_last = status == ESDM_OK && page == NULL;
        if (page != NULL)
            esdm__page_put(batch, page);
        if (batch->failed)
            status = esdm__error_nomem(err, BATCH_BYTES, "index pages");
    }
    return status;
}

esdm_status
esdm__pages_send(esdm_comm *comm, int to, const esdm_error *failure, esdm_meta_page_source next,
                 void *user, esdm_error *err)
{
    esdm_status first = ESDM_OK;
    esdm_error why = *failure;
    esdm__buffer batch;
    bool last = false;
    esdm__buffer_init(&batch);
    while (!last) {
        esdm_error *into = first == ESDM_OK ? err : NULL;
        if (why.status == ESDM_OK)
            why.status = fill_batch(&batch, next, user, &last, &why);
        last |= why.status != ESDM_OK;
        esdm_status sent = why.status == ESDM_OK ? send_batch(comm, to, &batch, last, into)
                                                 : send_failure(comm, to, &why, into);
        first = first == ESDM_OK ? sent : first;
    }
    esdm__buffer_clear(&batch);
    return first;
}

static esdm_status
receive_batch(esdm__page_reader *reader, esdm_error *err)
{
    batch_head head;
    free(reader->batch);
    reader->batch = NULL;
    reader->bytes = reader->position = 0;
    /* A head that fails is not known to have been the last one: if it was not, the sender waits for
     * ever. Where heads fail because nothing gets through, this rank would. */
    reader->last = true;
    esdm_status status =
        reader->comm->ops->receive(reader->comm, &head, sizeof head, reader->rank, err);
    if (status != ESDM_OK)
        return status;
    reader->last = head.last != 0;
    if (head.failure != ESDM_OK)
        return esdm__error_set(err, (esdm_status) head.failure, "%.*s",
                               (int) (head.bytes < HEAD_BYTES ? head.bytes : HEAD_BYTES),
                               (const char *) head.data);
    uint8_t *batch = head.bytes > 0 ? malloc((size_t) head.bytes) : NULL;
    if (head.bytes > HEAD_BYTES)
        status = esdm__parts_receive(reader->comm, reader->rank, batch, (size_t) head.bytes, err);
    else if (batch != NULL)
        memcpy(batch, head.data, (size_t) head.bytes);
    if (status != ESDM_OK) {
        free(batch);
        return status;
    }
    reader->batch = batch;
    if (batch == NULL && head.bytes > 0)
        return esdm__error_nomem(err, (size_t) head.bytes, "index pages of other ranks");
    reader->bytes = (size_t) head.bytes;
    return ESDM_OK;
}

static esdm_status
parse_page(esdm__page_reader *reader, esdm_error *err)
{
    const uint8_t *from = reader->batch + reader->position;
    size_t left = reader->bytes - reader->position;
    page_head head = {0};
    if (left >= sizeof head)
        memcpy(&head, from, sizeof head);
    size_t box_bytes = (size_t) 2 * head.rank * sizeof(uint64_t);
    if (left < sizeof head || head.rank > ESDM_MAX_RANK || left - sizeof head < box_bytes ||
        left - sizeof head - box_bytes < head.bytes)
        return esdm__error_set(err, ESDM_EIO, "rank %d sent a damaged index page", reader->rank);
    reader->page = (esdm_meta_new_page){
        .dataset = head.dataset,
        .records = head.records,
        .level = head.level,
        .absolute = head.absolute != 0,
        .raw_bytes = head.raw_bytes,
        .stored_bytes = head.stored_bytes,
        .rank = head.rank,
        .box = (const uint64_t *) (const void *) (from + sizeof head),
        .data = from + sizeof head + box_bytes,
        .bytes = (size_t) head.bytes,
    };
    reader->has_page = true;
    reader->position += sizeof head + box_bytes + (size_t) head.bytes + (8 - head.bytes % 8) % 8;
    return ESDM_OK;
}

esdm_status
esdm__page_reader_step(esdm__page_reader *reader, esdm_error *err)
{
    reader->has_page = false;
    if (reader->comm == NULL) {
        reader->has_page = reader->next_local < reader->nlocal;
        if (reader->has_page)
            reader->page = reader->local[reader->next_local++];
        return ESDM_OK;
    }
    while (reader->position >= reader->bytes) {
        if (reader->last)
            return ESDM_OK;
        esdm_status status = receive_batch(reader, err);
        if (status != ESDM_OK)
            return status;
    }
    return parse_page(reader, err);
}

void
esdm__page_reader_begin(esdm__page_reader *reader, esdm_comm *comm, int rank)
{
    *reader = (esdm__page_reader){.comm = comm, .rank = rank};
}

void
esdm__page_reader_begin_local(esdm__page_reader *reader, const esdm_meta_new_page *pages,
                              size_t npages)
{
    *reader = (esdm__page_reader){.local = pages, .nlocal = npages};
    (void) !esdm__page_reader_step(reader, NULL);
}

void
esdm__page_reader_begin_batch(esdm__page_reader *reader, esdm_comm *comm, int rank, uint8_t *batch,
                              size_t bytes)
{
    *reader = (esdm__page_reader){
        .comm = comm, .rank = rank, .last = true, .batch = batch, .lent = true, .bytes = bytes};
}

const esdm_meta_new_page *
esdm__page_reader_page(const esdm__page_reader *reader)
{
    return reader->has_page ? &reader->page : NULL;
}

void
esdm__page_reader_clear(esdm__page_reader *reader)
{
    while (reader->comm != NULL && !reader->last)
        (void) !receive_batch(reader, NULL);
    if (!reader->lent)
        free(reader->batch);
    *reader = (esdm__page_reader){0};
}
