/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Changes that take several statements: many pages, or a record that is kept under another
 *  name. */

#include "base/error.h"
#include "base/meta_checks.h"
#include "postgres.h"

void
postgres__read_committed(const PGresult *result, esdm_meta_committed *ret_committed)
{
    uint64_t values[6];
    postgres__u64s(result, 0, 0, values, 6);
    *ret_committed = (esdm_meta_committed){
        .container = values[0],
        .snapshot = values[1],
        .structure = values[2],
        .time_ns = values[3],
        .replaced = values[4],
        .first_page = values[5],
    };
}

esdm_status
postgres__check_published(const postgres__transaction *all, esdm_error *err)
{
    if (PQntuples(all->result) > 0)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "record %llu: the container was removed or replaced by another writer",
                           (unsigned long long) all->container);
}

static esdm_status
add_batch(postgres__store *store, const esdm_meta_committed *so_far,
          const esdm_meta_new_page *pages, size_t first, size_t count,
          postgres__failure *ret_failure, esdm_error *err)
{
    postgres__params params = {0};
    postgres__put_int(&params, so_far->container);
    postgres__put_int(&params, so_far->snapshot);
    postgres__put_int(&params, so_far->first_page + first);
    postgres__put_pages(&params, pages + first, count);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__ADD_PAGES, &params, NULL, ret_failure, err);
    postgres__params_clear(&params);
    return status;
}

static esdm_status
add_batches(postgres__store *store, const postgres__transaction *all,
            postgres__failure *ret_failure, esdm_error *err)
{
    esdm_meta_committed so_far = {0};
    esdm_status status = ESDM_OK;
    if (all->npages > all->first)
        postgres__read_committed(all->result, &so_far);
    for (size_t first = all->first; status == ESDM_OK && first < all->npages;) {
        size_t count = postgres__batch_size(all->pages + first, all->npages - first);
        status = add_batch(store, &so_far, all->pages, first, count, ret_failure, err);
        first += count;
    }
    return status;
}

/* What the commit refers to. */
static esdm_status
share_all(postgres__store *store, const postgres__transaction *all, postgres__failure *ret_failure,
          esdm_error *err)
{
    esdm_meta_committed made = {0};
    esdm_status status = ESDM_OK;
    postgres__read_committed(all->result, &made);
    for (size_t i = 0; i < all->commit->nshares && status == ESDM_OK; i++) {
        postgres__params params = {0};
        PGresult *result = NULL;
        uint64_t other = all->commit->shares[i];
        if (other == made.container)
            continue;
        postgres__put_int(&params, made.container);
        postgres__put_int(&params, other);
        status = postgres__link_run(&store->link, POSTGRES__SHARE_COMMITTED, &params, &result,
                                    ret_failure, err);
        if (status == ESDM_OK && postgres__u64(result, 0, 0) == 0) {
            *ret_failure = POSTGRES__REFUSED;
            status = esdm__error_set(err, ESDM_ECONFLICT,
                                     "record %llu, to whose packs it refers, is not there any more",
                                     (unsigned long long) other);
        }
        PQclear(result);
        postgres__params_clear(&params);
    }
    return status;
}

/* The name of its snapshot. */
static esdm_status
tag(postgres__store *store, const postgres__transaction *all, postgres__failure *ret_failure,
    esdm_error *err)
{
    const esdm_meta_tag *wanted = all->commit->tag;
    esdm_meta_committed made = {0};
    postgres__params params = {0};
    postgres__read_committed(all->result, &made);
    postgres__put_int(&params, made.container);
    postgres__put_escaped(&params, wanted->name);
    postgres__put_int(&params, made.snapshot);
    postgres__put_int(&params, wanted->created_ns != 0 ? wanted->created_ns : made.time_ns);
    postgres__put_escaped(&params, wanted->author != NULL ? wanted->author : "");
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__TAG_COMMITTED, &params, NULL, ret_failure, err);
    postgres__params_clear(&params);
    return status;
}

/* The record that has the name gets another one; no failure when there is none. */
static esdm_status
keep(postgres__store *store, postgres__transaction *all, postgres__failure *ret_failure,
     esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__put_string(&params, all->name);
    postgres__put_string(&params, all->keep_as);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__KEEP, &params, &result, ret_failure, err);
    all->kept = status == ESDM_OK && PQntuples(result) > 0 ? postgres__u64(result, 0, 0) : 0;
    PQclear(result);
    postgres__params_clear(&params);
    return status;
}

static esdm_status
overtaken(const postgres__transaction *all, postgres__failure *ret_failure, esdm_error *err)
{
    *ret_failure = POSTGRES__REFUSED;
    return esdm__error_set(err, ESDM_ECONFLICT, "container '%.300s' was changed or replaced",
                           all->name);
}

/* That nobody has replaced or changed the record of the name, which nobody can from now on. */
static esdm_status
check_seen(postgres__store *store, const postgres__transaction *all, postgres__failure *ret_failure,
           esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    uint64_t found[2] = {all->seen->container, all->seen->snapshot};
    postgres__put_string(&params, all->name);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__SEEN, &params, &result, ret_failure, err);
    if (status == ESDM_OK && PQntuples(result) > 0) {
        found[0] = postgres__u64(result, 0, 0);
        found[1] = postgres__u64(result, 0, 1);
    }
    PQclear(result);
    postgres__params_clear(&params);
    if (status != ESDM_OK || (found[0] == all->seen->container && found[1] == all->seen->snapshot))
        return status;
    return overtaken(all, ret_failure, err);
}

/* Nor has anybody made one of the name between check_seen() and the change. */
static esdm_status
check_replaced(const postgres__transaction *all, postgres__failure *ret_failure, esdm_error *err)
{
    uint64_t replaced = all->kept;
    if (replaced == 0)
        postgres__u64s(all->result, 0, 0, &replaced, 1);
    return replaced == 0 || replaced == all->seen->container ? ESDM_OK
                                                             : overtaken(all, ret_failure, err);
}

/* That nobody has changed what the commit follows from, which nobody can from now on. */
static esdm_status
check_followed(postgres__store *store, const esdm_meta_commit *commit,
               postgres__failure *ret_failure, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    bool same = false;
    postgres__put_int(&params, commit->container);
    postgres__put_int(&params, commit->follows->container);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__FOLLOWED, &params, &result, ret_failure, err);
    for (int i = 0; status == ESDM_OK && i < PQntuples(result); i++)
        same = same || (postgres__u64(result, i, 0) == commit->follows->container &&
                        postgres__u64(result, i, 1) == commit->follows->snapshot);
    PQclear(result);
    postgres__params_clear(&params);
    if (status != ESDM_OK || same)
        return status;
    *ret_failure = POSTGRES__REFUSED;
    return esdm__not_followed(commit, err);
}

/* Within a transaction. */
static esdm_status
run_parts(postgres__store *store, postgres__transaction *all, postgres__failure *ret_failure,
          esdm_error *err)
{
    bool done = false;
    esdm_status status = ESDM_OK;
    if (postgres__params_repeated(all->params))
        status = postgres__happened(store, all->params, &done, ret_failure, err);
    if (status == ESDM_OK && !done && all->seen != NULL)
        status = check_seen(store, all, ret_failure, err);
    if (status == ESDM_OK && !done && all->commit != NULL && all->commit->follows != NULL)
        status = check_followed(store, all->commit, ret_failure, err);
    if (status == ESDM_OK && !done && all->keep_as != NULL)
        status = keep(store, all, ret_failure, err);
    if (status == ESDM_OK && !done && all->commit != NULL && postgres__stands_apart(all->commit))
        status = postgres__check_apart(store, all->commit, ret_failure, err);
    if (status == ESDM_OK)
        status =
            postgres__link_run(&store->link, all->id, all->params, &all->result, ret_failure, err);
    if (status == ESDM_EEXIST && all->keep_as != NULL)
        *ret_failure = POSTGRES__RETRY; /* somebody made it meanwhile: that one is kept, too */
    if (status == ESDM_OK) {
        status = postgres__check_published(all, err);
        *ret_failure = POSTGRES__REFUSED;
    }
    if (status == ESDM_OK && !done && all->seen != NULL)
        status = check_replaced(all, ret_failure, err);
    if (status == ESDM_OK && !done && all->commit != NULL && all->commit->nshares > 0)
        status = share_all(store, all, ret_failure, err);
    if (status == ESDM_OK && !done && all->commit != NULL && all->commit->tag != NULL)
        status = tag(store, all, ret_failure, err);
    return status == ESDM_OK && !done ? add_batches(store, all, ret_failure, err) : status;
}

/* One attempt. What an earlier attempt has done is not done again. */
static esdm_status
attempt(postgres__store *store, postgres__transaction *all, postgres__failure *ret_failure,
        esdm_error *err)
{
    postgres__link *link = &store->link;
    esdm_status status = postgres__connect(store, ret_failure, err);
    if (status == ESDM_OK)
        status = postgres__link_run(link, POSTGRES__BEGIN, NULL, NULL, ret_failure, err);
    if (status == ESDM_OK)
        status = run_parts(store, all, ret_failure, err);
    if (status == ESDM_OK) {
        status = postgres__link_run(link, POSTGRES__COMMIT, NULL, NULL, ret_failure, err);
        if (status != ESDM_OK && *ret_failure == POSTGRES__LOST)
            postgres__params_repeat(all->params);
    }
    if (status != ESDM_OK && link->conn != NULL) {
        postgres__failure ignored;
        (void) !postgres__link_run(link, POSTGRES__ROLLBACK, NULL, NULL, &ignored, NULL);
    }
    if (status != ESDM_OK) {
        PQclear(all->result);
        all->result = NULL;
    }
    return status;
}

esdm_status
postgres__transact(postgres__store *store, postgres__transaction *all, esdm_error *err)
{
    postgres__patience patience = {0};
    for (;;) {
        esdm_error why = {0};
        postgres__failure failure = POSTGRES__LOST;
        esdm_status status = attempt(store, all, &failure, &why);
        if (status == ESDM_OK)
            return ESDM_OK;
        if (!postgres__try_again(&patience, store->config->patience_ns, failure)) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
}
