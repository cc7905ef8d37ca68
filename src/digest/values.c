/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The leaves of a dataset. Parts of whole rows are read one after the other, so that they follow
 * each other in C order as well; the leaves within a part are hashed by all threads. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "digest/digest.h"
#include "digest/inner.h"
#include "io/session/session.h"

#define LEAF_BYTES    (UINT64_C(1) << 20)
#define LEAF_VARIABLE UINT64_C(4096)
/* Values in memory at a time. */
#define READ_BYTES (UINT64_C(32) << 20)

typedef struct hasher {
    esdm_dataset *dataset;
    esdm__typeref type;
    bool lies;     /* the stored form is what lies in memory */
    size_t bytes;  /* of an element in memory */
    uint64_t leaf; /* elements */
    esdm__sha256 root;
    esdm__sha256 open;      /* the leaf at the end of the part before */
    uint64_t open_elements; /* that it has */
    const uint8_t *values;  /* of the whole leaves of a part */
    uint8_t *hashes;        /* of these; owned; room for those of a part */
} hasher;

/* ---- the stored form of elements ----------------------------------------------------------- */

static void
put_texts(esdm__buffer *out, const char *const *texts, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const char *text = texts[i] != NULL ? texts[i] : "";
        esdm__buffer_put_varint(out, strlen(text) + 1);
        esdm__buffer_put(out, text, strlen(text));
    }
}

esdm_status
esdm__digest_encode(esdm__typeref type, const void *values, uint64_t count, esdm__buffer *out,
                    esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (type.user == NULL && type.type == ESDM_TYPE_STRING)
        put_texts(out, values, count);
    else
        status = esdm__values_encode(type, count, values, out, err);
    if (status == ESDM_OK && out->failed)
        status = esdm__error_nomem(err, out->bytes, "values to be hashed");
    return status;
}

static esdm_status
add_elements(const hasher *h, esdm__sha256 *sum, const uint8_t *values, uint64_t count,
             esdm_error *err)
{
    esdm__buffer stored;
    if (h->lies) {
        esdm__sha256_add(sum, values, count * h->bytes);
        return ESDM_OK;
    }
    esdm__buffer_init(&stored);
    esdm_status status = esdm__digest_encode(h->type, values, count, &stored, err);
    if (status == ESDM_OK)
        esdm__sha256_add(sum, stored.data, stored.bytes);
    esdm__buffer_clear(&stored);
    return status;
}

/* ---- leaves -------------------------------------------------------------------------------- */

static esdm_status
hash_leaf(void *context, size_t i, esdm_error *err)
{
    const hasher *h = context;
    esdm__sha256 sum;
    esdm__sha256_init(&sum);
    esdm_status status = add_elements(h, &sum, h->values + i * h->leaf * h->bytes, h->leaf, err);
    if (status == ESDM_OK)
        esdm__sha256_end(&sum, h->hashes + i * ESDM__SHA256_BYTES);
    return status;
}

static void
end_leaf(hasher *h)
{
    uint8_t hash[ESDM__SHA256_BYTES];
    esdm__sha256_end(&h->open, hash);
    esdm__sha256_add(&h->root, hash, sizeof hash);
    esdm__sha256_init(&h->open);
    h->open_elements = 0;
}

/* Elements that belong to a leaf of which this part has not all. */
static esdm_status
add_to_open(hasher *h, const uint8_t *values, uint64_t count, esdm_error *err)
{
    esdm_status status = add_elements(h, &h->open, values, count, err);
    h->open_elements += count;
    if (status == ESDM_OK && h->open_elements == h->leaf)
        end_leaf(h);
    return status;
}

static esdm_status
add_consecutive(hasher *h, const uint8_t *values, uint64_t count, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (h->open_elements > 0) {
        uint64_t left = h->leaf - h->open_elements;
        uint64_t first = count < left ? count : left;
        status = add_to_open(h, values, first, err);
        values += first * h->bytes;
        count -= first;
    }
    uint64_t whole = count / h->leaf;
    h->values = values;
    if (status == ESDM_OK && whole > 0)
        status =
            esdm__pool_run(h->dataset->group->container->session->pool, whole, hash_leaf, h, err);
    if (status == ESDM_OK && whole > 0)
        esdm__sha256_add(&h->root, h->hashes, whole * ESDM__SHA256_BYTES);
    if (status == ESDM_OK && count % h->leaf > 0)
        status = add_to_open(h, values + whole * h->leaf * h->bytes, count % h->leaf, err);
    return status;
}

static esdm_status
add_part(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    hasher *h = user;
    uint64_t count = esdm__box_elements(part);
    esdm_status status = add_consecutive(h, values, count, err);
    if (esdm__typeref_is_variable(h->type))
        esdm__values_clear(h->type, count, (void *) (uintptr_t) values);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

static void
init(hasher *h)
{
    bool varies = esdm__typeref_is_variable(h->type);
    h->bytes = esdm__typeref_bytes(h->type);
    h->lies = !varies && (h->type.user == NULL || h->type.user->plain);
    uint64_t stored = h->type.user != NULL ? h->type.user->stored_bytes : h->bytes;
    h->leaf = varies ? LEAF_VARIABLE : stored < LEAF_BYTES ? LEAF_BYTES / stored : 1;
    esdm__sha256_init(&h->root);
    esdm__sha256_init(&h->open);
}

static esdm_status
read_all(hasher *h, const esdm__box *box, esdm_error *err)
{
    uint64_t elements = esdm__box_elements(box);
    uint64_t most = READ_BYTES / h->bytes > 0 ? READ_BYTES / h->bytes : 1;
    uint64_t room = elements < most ? elements : most;
    void *buffer = calloc(room, h->bytes);
    h->hashes = malloc((room / h->leaf + 1) * ESDM__SHA256_BYTES);
    const esdm__parts parts = {h->dataset, h->dataset->type, most, buffer, add_part, h};
    esdm_status status = buffer != NULL && h->hashes != NULL
                             ? esdm__read_in_parts(&parts, box, err)
                             : esdm__error_nomem(err, room * h->bytes, "values to be hashed");
    free(buffer);
    free(h->hashes);
    return status;
}

esdm_status
esdm__digest_values(esdm_dataset *dataset, uint8_t ret_hash[ESDM__SHA256_BYTES], esdm_error *err)
{
    hasher h = {.dataset = dataset};
    esdm__box box = {.rank = dataset->rank};
    bool empty = false;
    for (uint32_t d = 0; d < dataset->rank; d++) {
        box.n[d] = esdm_dimension_length(dataset->dimensions[d]);
        empty = empty || box.n[d] == 0;
    }
    esdm_status status = esdm__type_resolve(dataset->group->container, dataset->type, &h.type, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    init(&h);
    if (!empty)
        status = read_all(&h, &box, err);
    if (status != ESDM_OK)
        return status;
    if (h.open_elements > 0)
        end_leaf(&h);
    esdm__sha256_end(&h.root, ret_hash);
    return ESDM_OK;
}
