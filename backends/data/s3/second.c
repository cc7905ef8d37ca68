/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "second.h"

#include <stdlib.h>
#include <string.h>

/* The transfer is the first member: a pointer to it is one to all. */
typedef struct second_request {
    s3__transfer transfer;
    s3__request request;
    s3__segment segment;
} second_request;

bool
s3__second_fits(const s3__request *request)
{
    return request->key != NULL && strcmp(request->method, "GET") == 0;
}

s3__transfer *
s3__second_new(s3__transfer *first)
{
    const s3__request *asked = first->request;
    second_request *second = calloc(1, sizeof *second);
    void *memory = asked->range_bytes > 0 ? malloc((size_t) asked->range_bytes) : NULL;
    if (second == NULL || (asked->range_bytes > 0 && memory == NULL)) {
        free(memory);
        free(second);
        return NULL;
    }
    /* Member by member: others belong to whoever waits for the first one, under a lock. */
    s3__request *request = &second->request;
    request->doing = asked->doing;
    request->method = asked->method;
    request->key = asked->key;
    memcpy(request->query, asked->query, sizeof request->query);
    request->nquery = asked->nquery;
    memcpy(request->headers, asked->headers, sizeof request->headers);
    request->nheaders = asked->nheaders;
    request->range_from = asked->range_from;
    request->range_bytes = asked->range_bytes;
    request->limit_ms = asked->limit_ms;
    request->patience_ms = asked->patience_ms;
    memcpy(request->payload_hash, asked->payload_hash, sizeof request->payload_hash);
    second->segment = (s3__segment){.buffer = memory, .bytes = asked->range_bytes};
    request->segments = &second->segment;
    request->nsegments = asked->range_bytes > 0 ? 1 : 0;
    esdm__buffer_init(&request->answer);
    second->transfer.request = request;
    second->transfer.first = first;
    first->second = &second->transfer;
    return &second->transfer;
}

void
s3__second_deliver(s3__transfer *transfer)
{
    second_request *second = (second_request *) transfer;
    s3__request *from = &second->request;
    s3__request *to = transfer->first->request;
    const char *data = second->segment.buffer;
    for (size_t i = 0; i < to->nsegments && data != NULL; i++) {
        if (to->segments[i].buffer != NULL)
            memcpy(to->segments[i].buffer, data, (size_t) to->segments[i].bytes);
        data += to->segments[i].bytes;
    }
    esdm__buffer_clear(&to->answer);
    to->answer = from->answer;
    esdm__buffer_init(&from->answer);
    to->status = from->status;
    to->http_status = from->http_status;
    to->encrypted = from->encrypted;
    to->content_bytes = from->content_bytes;
    memcpy(to->code, from->code, sizeof to->code);
    memcpy(to->etag, from->etag, sizeof to->etag);
    memcpy(to->writer, from->writer, sizeof to->writer);
    if (transfer->dated) {
        transfer->first->dated = true;
        transfer->first->skew_s = transfer->skew_s;
    }
}

void
s3__second_free(s3__transfer *transfer)
{
    second_request *second = (second_request *) transfer;
    transfer->first->second = NULL;
    esdm__buffer_clear(&second->request.answer);
    free(second->segment.buffer);
    free(second);
}
