/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Commits of which nobody knows whether they took place: the connection was lost while the server
 * worked on them, and did not come back in time. The next commit of the container finds out first.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"

esdm_status
postgres__happened(postgres__store *store, const postgres__params *change, bool *ret_happened,
                   postgres__failure *ret_failure, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    char text[ESDM_META_UUID_BYTES];
    const uint8_t *bytes = change->memory.data + change->offsets[change->again - 2];
    for (size_t i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[32] = '\0';
    postgres__put_string(&params, text);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__HAPPENED, &params, &result, ret_failure, err);
    if (status == ESDM_OK)
        *ret_happened = PQntuples(result) == 1 && postgres__bool(result, 0, 0);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

esdm_status
postgres__doubt_commit(postgres__store *store, const esdm_meta_commit *commit,
                       const char token[ESDM_META_UUID_BYTES], esdm_status status, esdm_error *err)
{
    bool update = commit->kind == ESDM_META_UPDATE;
    /* The server looks for the earlier attempt before it finds these. */
    if (status == ESDM_ECONFLICT || status == ESDM_EEXIST)
        return status;
    if (status != ESDM_ETIMEDOUT && status != ESDM_ENOMEM)
        status = ESDM_EIO; /* others would say that nothing was published */
    postgres__doubt *doubt = calloc(1, sizeof *doubt);
    char *name = update || doubt == NULL ? NULL : strdup(commit->name);
    if (doubt == NULL || (!update && name == NULL)) {
        free(doubt);
    } else {
        *doubt = (postgres__doubt){
            .container = update ? commit->container : 0, .name = name, .next = store->doubts};
        memcpy(doubt->token, token, sizeof doubt->token);
        store->doubts = doubt;
    }
    return esdm__error_prefix(err, status,
                              "the connection was lost during the commit: it may have taken place "
                              "or not; once the server is there again, the next commit tells, and "
                              "so does opening the container");
}

static bool
concerns(const postgres__doubt *doubt, uint64_t container, const char *name)
{
    if (doubt->container != 0)
        return doubt->container == container;
    return name != NULL && strcmp(doubt->name, name) == 0;
}

static void
drop(postgres__doubt **at)
{
    postgres__doubt *doubt = *at;
    *at = doubt->next;
    free(doubt->name);
    free(doubt);
}

void
postgres__forget_doubts(postgres__store *store, uint64_t container, const char *name)
{
    for (postgres__doubt **at = &store->doubts; *at != NULL;) {
        if (concerns(*at, container, name))
            drop(at);
        else
            at = &(*at)->next;
    }
}

/* Asks the server; one that did not take place is forgotten. */
static esdm_status
settle(postgres__store *store, postgres__doubt **at, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_string(&params, (*at)->token);
    esdm_status status = postgres__run(store, POSTGRES__HAPPENED, &params, &result, err);
    if (status == ESDM_OK && PQntuples(result) == 1 && postgres__bool(result, 0, 0))
        (*at)->happened = true;
    else if (status == ESDM_OK)
        drop(at);
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

esdm_status
postgres__settle_doubts(postgres__store *store, uint64_t container, const char *name,
                        esdm_error *err)
{
    for (postgres__doubt **at = &store->doubts; *at != NULL;) {
        postgres__doubt *doubt = *at;
        if (!concerns(doubt, container, name)) {
            at = &doubt->next;
            continue;
        }
        esdm_status status = doubt->happened ? ESDM_OK : settle(store, at, err);
        if (status != ESDM_OK)
            return status;
        if (*at == doubt) /* not ESDM_ECONFLICT: that one may be tried again in another way */
            return esdm__error_set(err, ESDM_EIO,
                                   "the earlier commit whose outcome was unknown did take place; "
                                   "open the container again and write what came after it");
    }
    return ESDM_OK;
}
