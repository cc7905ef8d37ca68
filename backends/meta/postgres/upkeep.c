/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Care for packs: all records, living writers, pages whose fragments lie elsewhere. */

#include <stdlib.h>

#include "base/error.h"
#include "postgres.h"

#define RECORDS_AT_ONCE 10000

esdm_status
postgres__record_list(void *self, esdm_meta_record_visitor visit, void *user, esdm_error *err)
{
    uint64_t after = 0;
    int rows = RECORDS_AT_ONCE;
    for (bool go_on = true; go_on && rows == RECORDS_AT_ONCE;) {
        postgres__params params = {0};
        PGresult *result = NULL;
        postgres__put_int(&params, after);
        postgres__put_int(&params, RECORDS_AT_ONCE);
        esdm_status status = postgres__ask(self, POSTGRES__RECORD_LIST, &params, &result, err);
        if (status != ESDM_OK)
            return status;
        rows = PQntuples(result);
        for (int row = 0; row < rows && go_on; row++) {
            const char *name = PQgetisnull(result, row, 2) ? NULL : postgres__text(result, row, 2);
            after = postgres__u64(result, row, 0);
            go_on = visit(after, postgres__text(result, row, 1), name, user);
        }
        PQclear(result);
    }
    return ESDM_OK;
}

/* ---- writers -------------------------------------------------------------------------------- */

/* A pin of record 0, which is none. Two writers may share it: then both count as alive as long as
 * one of them is. */
static uint64_t
writer_number(const char *writer)
{
    char digits[9] = "";
    for (size_t i = 0; i + 1 < sizeof digits && writer[i] != '\0'; i++)
        digits[i] = writer[i];
    uint64_t number = strtoull(digits, NULL, 16);
    return number != 0 ? number : 1;
}

esdm_status
postgres__writer_begin(void *self, const char *writer, esdm_error *err)
{
    postgres__store *store = self;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__pins_take(store, 0, writer_number(writer), err);
    postgres__leave(store);
    return status;
}

void
postgres__writer_end(void *self, const char *writer)
{
    postgres__store *store = self;
    if (postgres__enter_known(store, NULL) != ESDM_OK) /* a forked child: it is its parent's */
        return;
    postgres__pins_drop(store, 0, writer_number(writer));
    postgres__leave(store);
}

esdm_status
postgres__writer_lives(void *self, const char *writer, bool *ret_lives, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    *ret_lives = true;
    postgres__put_int(&params, writer_number(writer));
    esdm_status status = postgres__ask(self, POSTGRES__WRITER_LIVES, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 1)
        *ret_lives = postgres__bool(result, 0, 0);
    PQclear(result);
    return status;
}

/* Connects anew when the server has gone: that takes the pins again and notes who was not seen. */
esdm_status
postgres__writer_check(void *self, const char *writer, bool *ret_lost, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    postgres__link_look(&store->link);
    postgres__put_int(&params, writer_number(writer));
    if (store->link.conn == NULL)
        status = postgres__run(store, POSTGRES__WRITER_LIVES, &params, NULL, err);
    postgres__params_clear(&params);
    postgres__pin_entry *entry = postgres__pins_find(&store->pins, 0, writer_number(writer));
    if (status == ESDM_OK) {
        *ret_lost = entry == NULL || entry->unseen;
        if (entry != NULL)
            entry->unseen = false;
    }
    postgres__leave(store);
    return status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Without a token: what a repetition finds to have happened already counts as not moved, and the
 * caller looks again. */
esdm_status
postgres__relocate(void *self, uint64_t container, esdm_meta_relocation *pages, size_t npages,
                   bool durable, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    (void) durable; /* the server's synchronous_commit is on unless somebody switched it off */
    postgres__put_int(&params, container);
    postgres__array_begin(&params, POSTGRES__INTS);
    for (size_t i = 0; i < npages; i++) {
        pages[i].moved = false;
        postgres__array_int(&params, pages[i].page);
    }
    postgres__array_end(&params);
    postgres__array_begin(&params, POSTGRES__BLOBS);
    for (size_t i = 0; i < npages; i++)
        postgres__array_bytes(&params, pages[i].data, pages[i].bytes);
    postgres__array_end(&params);
    esdm_status status = postgres__enter_write(store, err);
    if (status == ESDM_OK) {
        postgres__pins_sink(store);
        status = postgres__run(store, POSTGRES__RELOCATE, &params, &result, err);
        postgres__leave(store);
    }
    postgres__params_clear(&params);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        uint64_t n = postgres__u64(result, row, 0);
        if (n >= 1 && n <= npages)
            pages[n - 1].moved = true;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__prune(void *self, uint64_t container, uint32_t history, esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    postgres__put_int(&params, container);
    postgres__put_int(&params, history);
    esdm_status status = postgres__enter_write(store, err);
    if (status == ESDM_OK) {
        postgres__pins_sink(store);
        status = postgres__run(store, POSTGRES__PRUNE, &params, NULL, err);
        postgres__leave(store);
    }
    postgres__params_clear(&params);
    return status;
}
