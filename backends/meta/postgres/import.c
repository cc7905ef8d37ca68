/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Migration: the state of the store, containers from and for another store. */

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"

/* Bytes of pages that one statement carries, about. */
#define BATCH_BYTES (16u << 20)
#define BATCH_PAGES 1000

/* ---- state ---------------------------------------------------------------------------------- */

esdm_status
postgres__state(void *self, esdm_meta_state *ret_state, char ret_note[ESDM_META_NOTE_BYTES],
                esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__run(store, POSTGRES__STATE, NULL, &result, err);
    postgres__leave(store);
    if (status == ESDM_OK) {
        *ret_state = (esdm_meta_state) postgres__u64(result, 0, 0);
        (void) snprintf(ret_note, ESDM_META_NOTE_BYTES, "%s", postgres__text(result, 0, 1));
    }
    PQclear(result);
    return status;
}

/* Doing it twice is as good as once, so that a lost connection does not matter. */
esdm_status
postgres__set_state(void *self, esdm_meta_state state, const char *note, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    esdm_status status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__put_int(&params, (uint64_t) state);
    postgres__put_escaped(&params, note);
    status = postgres__run(store, POSTGRES__SET_STATE, &params, NULL, err);
    postgres__leave(store);
    postgres__params_clear(&params);
    return status;
}

/* ---- out ------------------------------------------------------------------------------------ */

static double
float_value(const PGresult *result, int row, int column)
{
    uint64_t bits = postgres__u64(result, row, column);
    double number = NAN;
    if (!PQgetisnull(result, row, column))
        memcpy(&number, &bits, sizeof number);
    return number;
}

esdm_status
postgres__attributes(void *self, uint64_t container, esdm_meta_attribute_visitor visit, void *user,
                     esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_int(&params, container);
    esdm_status status = postgres__ask(store, POSTGRES__ATTRIBUTES, &params, &result, err);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *name = PQgetvalue(result, row, 2);
        char *text = PQgetvalue(result, row, 3);
        postgres__restore_text(name);
        postgres__restore_text(text);
        esdm_meta_attribute attribute = {
            .dataset = (uint32_t) postgres__u64(result, row, 0),
            .dataset_path = PQgetisnull(result, row, 1) ? NULL : postgres__text(result, row, 1),
            .name = name,
            .text = text,
            .has_number = postgres__bool(result, row, 4),
        };
        if (attribute.has_number)
            attribute.number = float_value(result, row, 5);
        if (!visit(&attribute, user))
            break;
    }
    PQclear(result);
    return status;
}

/* ---- in: the record ------------------------------------------------------------------------- */

static void
put_record(postgres__params *params, const esdm_meta_import *import)
{
    const esdm_meta_container *record = &import->record;
    uint64_t document_at = 0;
    for (size_t i = 0; i < import->nsnapshots; i++) {
        if (import->snapshots[i].document != NULL)
            document_at = import->snapshots[i].snapshot;
    }
    const uint64_t values[] = {record->snapshot,   record->structure,    document_at,
                               import->npages + 1, record->created_ns,   record->modified_ns,
                               record->raw_bytes,  record->stored_bytes, record->fragments,
                               record->datasets};
    postgres__put_string(params, import->name);
    postgres__put_string(params, record->uuid);
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        postgres__array_int(params, values[i]);
    postgres__array_end(params);
}

static void
put_numbers(postgres__params *params, const esdm_meta_import *import)
{
    for (int column = 0; column < 5; column++) {
        uint64_t document_at = 0;
        postgres__array_begin(params, POSTGRES__INTS);
        for (size_t i = 0; i < import->nsnapshots; i++) {
            const esdm_meta_import_snapshot *one = &import->snapshots[i];
            if (one->document != NULL)
                document_at = one->snapshot;
            const uint64_t values[] = {one->snapshot, one->parent, one->structure, document_at,
                                       one->time_ns};
            postgres__array_int(params, values[column]);
        }
        postgres__array_end(params);
    }
}

static void
put_words(esdm__buffer *buffer, const esdm_meta_import_snapshot *one, bool of_dimensions)
{
    for (size_t i = 0; i < one->nlengths; i++) {
        char text[32];
        uint64_t value = of_dimensions ? one->lengths[i].dimension : one->lengths[i].length;
        int n = snprintf(text, sizeof text, "%s%llu", i > 0 ? " " : "", (unsigned long long) value);
        esdm__buffer_put(buffer, text, (size_t) n);
    }
}

/* Writers, messages, dimensions, lengths, documents. */
static void
put_texts(postgres__params *params, const esdm_meta_import *import)
{
    esdm__buffer text;
    esdm__buffer_init(&text);
    for (int column = 0; column < 5; column++) {
        postgres__array_begin(params, POSTGRES__TEXTS);
        for (size_t i = 0; i < import->nsnapshots; i++) {
            const esdm_meta_import_snapshot *one = &import->snapshots[i];
            text.bytes = 0;
            if (column < 2)
                postgres__put_text(&text, column == 0 ? one->writer : one->message);
            else if (column < 4)
                put_words(&text, one, column == 2);
            else if (one->document != NULL)
                esdm__buffer_put(&text, one->document, one->document_bytes);
            if (column == 4 && one->document == NULL)
                postgres__array_null(params);
            else
                postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
        }
        postgres__array_end(params);
    }
    params->memory.failed |= text.failed;
    esdm__buffer_clear(&text);
}

static esdm_status
insert_record(postgres__store *store, const esdm_meta_import *import, uint64_t *ret_container,
              esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__failure failure;
    put_record(&params, import);
    put_numbers(&params, import);
    put_texts(&params, import);
    esdm_status status =
        postgres__put_objects(&params, import->attributes, import->nattributes, err);
    if (status == ESDM_OK)
        status = postgres__link_run(&store->link, POSTGRES__IMPORT_CONTAINER, &params, &result,
                                    &failure, err);
    if (status == ESDM_OK)
        *ret_container = postgres__u64(result, 0, 0);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

static esdm_status
insert_extents(postgres__store *store, const esdm_meta_import *import, uint64_t container,
               esdm_error *err)
{
    postgres__params params = {0};
    postgres__failure failure;
    postgres__put_int(&params, container);
    postgres__put_extents(&params, import->extents, import->nextents);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__EXTENT_IMPORT, &params, NULL, &failure, err);
    postgres__params_clear(&params);
    return status;
}

/* ---- in: the pages -------------------------------------------------------------------------- */

/* Pages that go with one statement: each is borrowed for a moment only, so it is copied. */
typedef struct batch {
    esdm_meta_new_page pages[BATCH_PAGES];
    void *memory[BATCH_PAGES]; /* owned: box and bytes of a page */
    uint64_t added[BATCH_PAGES];
    uint64_t removed[BATCH_PAGES];
    size_t count;
    size_t bytes;
} batch;

static void
clear_batch(batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->memory[i]);
    b->count = 0;
    b->bytes = 0;
}

static esdm_status
keep_page(batch *b, const esdm_meta_import_page *from, esdm_error *err)
{
    esdm_meta_new_page page = from->page;
    size_t box_bytes = 2 * (size_t) page.rank * sizeof *page.box;
    uint64_t *box = malloc(box_bytes + page.bytes + 1);
    if (box == NULL)
        return esdm__error_nomem(err, page.bytes, "an index page");
    char *data = (char *) box + box_bytes;
    if (box_bytes > 0)
        memcpy(box, page.box, box_bytes);
    if (page.bytes > 0)
        memcpy(data, page.data, page.bytes);
    page.box = box;
    page.data = data;
    b->pages[b->count] = page;
    b->memory[b->count] = box;
    b->added[b->count] = from->added;
    b->removed[b->count++] = from->removed;
    b->bytes += page.bytes;
    return ESDM_OK;
}

static esdm_status
send_batch(postgres__store *store, uint64_t container, uint64_t first, batch *b, esdm_error *err)
{
    postgres__params params = {0};
    postgres__failure failure;
    postgres__put_int(&params, container);
    postgres__put_int(&params, (container << 32) + first);
    postgres__put_pages(&params, b->pages, b->count);
    for (int column = 0; column < 2; column++) {
        postgres__array_begin(&params, POSTGRES__INTS);
        for (size_t i = 0; i < b->count; i++)
            postgres__array_int(&params, column == 0 ? b->added[i] : b->removed[i]);
        postgres__array_end(&params);
    }
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__IMPORT_PAGES, &params, NULL, &failure, err);
    postgres__params_clear(&params);
    clear_batch(b);
    return status;
}

static esdm_status
insert_pages(postgres__store *store, const esdm_meta_import *import, uint64_t container,
             esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t first = 1;
    batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return esdm__error_nomem(err, sizeof *b, "index pages");
    for (uint64_t i = 0; i < import->npages && status == ESDM_OK; i++) {
        esdm_meta_import_page page;
        status = import->next_page(import->user, &page, err);
        if (status == ESDM_OK)
            status = keep_page(b, &page, err);
        if (status == ESDM_OK &&
            (b->count == BATCH_PAGES || b->bytes >= BATCH_BYTES || i + 1 == import->npages)) {
            size_t count = b->count;
            status = send_batch(store, container, first, b, err);
            first += count;
        }
    }
    clear_batch(b);
    free(b);
    return status;
}

/* ---- in: whose packs it shares, names of its snapshots -------------------------------------- */

static esdm_status
insert_shares(postgres__store *store, const esdm_meta_import *import, uint64_t container,
              esdm_error *err)
{
    const char *const *uuids = NULL;
    size_t count = 0;
    postgres__params params = {0};
    postgres__failure failure;
    if (import->shares != NULL)
        import->shares(import->user, &uuids, &count);
    if (count == 0)
        return ESDM_OK;
    postgres__put_int(&params, container);
    postgres__array_begin(&params, POSTGRES__TEXTS);
    for (size_t i = 0; i < count; i++)
        postgres__array_bytes(&params, uuids[i], strlen(uuids[i]));
    postgres__array_end(&params);
    esdm_status status = postgres__check_format(store, err);
    if (status == ESDM_OK)
        status =
            postgres__link_run(&store->link, POSTGRES__IMPORT_SHARES, &params, NULL, &failure, err);
    postgres__params_clear(&params);
    return status;
}

static esdm_status
insert_tags(postgres__store *store, const esdm_meta_import *import, uint64_t container,
            esdm_error *err)
{
    esdm_status status = import->ntags > 0 ? postgres__check_format(store, err) : ESDM_OK;
    for (size_t i = 0; i < import->ntags && status == ESDM_OK; i++) {
        postgres__params params = {0};
        postgres__failure failure;
        postgres__put_int(&params, container);
        postgres__put_escaped(&params, import->tags[i].name);
        postgres__put_int(&params, import->tags[i].snapshot);
        postgres__put_int(&params, import->tags[i].created_ns);
        postgres__put_escaped(&params, import->tags[i].author);
        status =
            postgres__link_run(&store->link, POSTGRES__IMPORT_TAG, &params, NULL, &failure, err);
        postgres__params_clear(&params);
    }
    return status;
}

esdm_status
postgres__import(void *self, const esdm_meta_import *import, esdm_error *err)
{
    postgres__store *store = self;
    postgres__failure failure;
    uint64_t container = 0;
    if (import->nsnapshots == 0 || import->snapshots[0].document == NULL ||
        import->snapshots[import->nsnapshots - 1].snapshot != import->record.snapshot ||
        import->record.snapshot > POSTGRES__LOW_MAX || import->npages >= POSTGRES__LOW_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "import of container '%.200s': no whole record",
                               import->name);
    esdm_status status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__connect(store, &failure, err);
    if (status == ESDM_OK)
        status = postgres__link_run(&store->link, POSTGRES__BEGIN, NULL, NULL, &failure, err);
    if (status == ESDM_OK)
        status = insert_record(store, import, &container, err);
    if (status == ESDM_OK && store->has_extents && import->nextents > 0)
        status = insert_extents(store, import, container, err);
    if (status == ESDM_OK)
        status = insert_pages(store, import, container, err);
    if (status == ESDM_OK)
        status = insert_shares(store, import, container, err);
    if (status == ESDM_OK)
        status = insert_tags(store, import, container, err);
    if (status == ESDM_OK)
        status = postgres__link_run(&store->link, POSTGRES__COMMIT, NULL, NULL, &failure, err);
    if (status != ESDM_OK && store->link.conn != NULL)
        (void) !postgres__link_run(&store->link, POSTGRES__ROLLBACK, NULL, NULL, &failure, NULL);
    postgres__leave(store);
    return status;
}
