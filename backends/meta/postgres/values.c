/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Some attributes of many containers, in one question. */

#include "base/error.h"
#include "postgres.h"

static void
put_texts(postgres__params *params, const char *const *texts, size_t count)
{
    esdm__buffer text;
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < count; i++) {
        esdm__buffer_init(&text);
        postgres__put_text(&text, texts[i]);
        params->memory.failed |= text.failed;
        postgres__array_bytes(params, text.data, text.failed ? 0 : text.bytes);
        esdm__buffer_clear(&text);
    }
    postgres__array_end(params);
}

esdm_status
postgres__values(void *self, const char *const *containers, size_t ncontainers,
                 const char *const *names, size_t nnames, bool datasets,
                 esdm_meta_value_visitor visit, void *user, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    put_texts(&params, containers, ncontainers);
    put_texts(&params, names, nnames);
    postgres__put_bool(&params, datasets);
    esdm_status status = postgres__ask(self, POSTGRES__VALUES, &params, &result, err);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        char *path = PQgetisnull(result, row, 2) ? NULL : PQgetvalue(result, row, 2);
        char *text = PQgetvalue(result, row, 4);
        size_t name = (size_t) postgres__u64(result, row, 3);
        if (path != NULL)
            postgres__restore_text(path);
        postgres__restore_text(text);
        const esdm_meta_attribute attribute = {.dataset = (uint32_t) postgres__u64(result, row, 1),
                                               .dataset_path = path,
                                               .name = names[name - 1],
                                               .text = text,
                                               .number = postgres__double(result, row, 5),
                                               .has_number = !PQgetisnull(result, row, 5)};
        if (!visit((size_t) postgres__u64(result, row, 0) - 1, &attribute, user))
            break;
    }
    PQclear(result);
    return status;
}
