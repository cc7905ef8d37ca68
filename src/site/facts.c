/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Facts of one metadata store, copied to another one. */

#include <string.h>

#include "base/error.h"
#include "site/catalogue.h"

/* Names and texts of facts in turn, NUL-terminated, in byte order of the names. */
static bool
note_fact(const char *name, const char *text, void *user)
{
    esdm__buffer *all = user;
    esdm__buffer_put(all, name, strlen(name) + 1);
    esdm__buffer_put(all, text, strlen(text) + 1);
    return !all->failed;
}

static esdm_status
list_facts(const esdm__catalogue *from, esdm__buffer *all, esdm_error *err)
{
    esdm_status status = from->plugin->fact_list(from->store, "", note_fact, all, err);
    return status == ESDM_OK && all->failed ? esdm__error_nomem(err, all->bytes, "facts") : status;
}

static const char *
end_of(const esdm__buffer *all)
{
    return (const char *) all->data + all->bytes;
}

static const char *
after(const char *text)
{
    return text + strlen(text) + 1;
}

static bool
has_name(const esdm__buffer *all, const char *name)
{
    for (const char *at = (const char *) all->data; at != end_of(all); at = after(after(at))) {
        if (strcmp(at, name) == 0)
            return true;
    }
    return false;
}

static esdm_status
put_all(const esdm__buffer *all, const esdm__buffer *there, const esdm__catalogue *to,
        uint64_t *count, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (const char *at = (const char *) there->data; at != end_of(there) && status == ESDM_OK;
         at = after(after(at))) {
        if (!has_name(all, at))
            status = to->plugin->fact_put(to->store, at, NULL, err);
    }
    for (const char *at = (const char *) all->data; at != end_of(all) && status == ESDM_OK;
         at = after(after(at))) {
        status = to->plugin->fact_put(to->store, at, after(at), err);
        ++*count;
    }
    return status;
}

esdm_status
esdm__facts_copy(const esdm__catalogue *from, const esdm__catalogue *to, uint64_t *ret_count,
                 esdm_error *err)
{
    esdm__buffer all;
    esdm__buffer there;
    esdm__buffer copies;
    uint64_t count = 0;
    esdm__buffer_init(&all);
    esdm__buffer_init(&there);
    esdm__buffer_init(&copies);
    esdm_status status = list_facts(from, &all, err);
    if (status == ESDM_OK)
        status = list_facts(to, &there, err);
    if (status == ESDM_OK)
        status = put_all(&all, &there, to, &count, err);
    if (status == ESDM_OK)
        status = list_facts(to, &copies, err);
    if (status == ESDM_OK && (copies.bytes != all.bytes ||
                              (all.bytes > 0 && memcmp(copies.data, all.data, all.bytes) != 0)))
        status = esdm__error_set(err, ESDM_ECORRUPT, "the facts of the new store are not the same");
    if (status == ESDM_OK)
        *ret_count = count;
    esdm__buffer_clear(&all);
    esdm__buffer_clear(&there);
    esdm__buffer_clear(&copies);
    return status;
}
