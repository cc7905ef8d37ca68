/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions that read and write data. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/regions.h"
#include "api/transfer.h"
#include "base/arguments.h"
#include "base/error.h"
#include "codec/chain.h"
#include "esdm/float_env.h"
#include "io/io.h"
#include "model/accuracy.h"
#include "model/copy.h"
#include "model/usertype.h"

/* User-defined types convert to nothing else, but enumerations to and from their base type. */
static bool
converts(const esdm_dataset *dataset, esdm_type memory_type)
{
    const esdm__usertype *user = esdm__usertype_at(dataset->group->container, dataset->type);
    if (user == NULL)
        return esdm__type_converts(memory_type, dataset->type);
    return memory_type == dataset->type ||
           (user->kind == ESDM_CLASS_ENUM && memory_type == user->base);
}

/* Bytes of an element: in memory, or stored, whichever are more. */
static esdm_status
element_bytes(const esdm_dataset *dataset, esdm_type memory_type, uint64_t *ret, esdm_error *err)
{
    esdm__typeref type; /* the sizes of a new type are known from here on */
    esdm_status st = esdm__type_resolve(dataset->group->container, dataset->type, &type, err);
    if (st != ESDM_OK)
        return st;
    uint64_t stored = type.user != NULL ? type.user->stored_bytes : esdm_type_size(dataset->type);
    uint64_t memory = type.user != NULL ? type.user->memory_bytes : esdm_type_size(memory_type);
    uint64_t most = stored > memory ? stored : memory;
    *ret = most > sizeof(void *) ? most : sizeof(void *); /* texts */
    return ESDM_OK;
}

/* Every size that follows from the selection fits in 63 bits from here on. */
static esdm_status
check_bytes(const esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
            esdm_error *err)
{
    uint64_t elements = esdm_dataspace_elements(space);
    uint64_t each = 0;
    esdm_status st = element_bytes(dataset, memory_type, &each, err);
    if (st != ESDM_OK)
        return esdm__dataset_prefix(dataset, st, err);
    if (elements <= INT64_MAX / each)
        return ESDM_OK;
    (void) esdm__error_set(err, ESDM_EINVAL,
                           "%" PRIu64 " elements of %" PRIu64 " bytes are more than 2^63 - 1 bytes",
                           elements, each);
    return esdm__dataset_prefix(dataset, ESDM_EINVAL, err);
}

esdm_status
esdm__check_transfer(const esdm_dataset *dataset, const esdm_dataspace *space,
                     esdm_type memory_type, const void *buffer, esdm_error *err)
{
    if (dataset == NULL || space == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "dataset or hyperslab is NULL");
    if (!converts(dataset, memory_type)) {
        const esdm_container *container = dataset->group->container;
        const char *from = esdm__type_name(container, memory_type);
        (void) esdm__error_set(err, ESDM_EINVAL, "elements of type %s do not convert to or from %s",
                               from != NULL ? from : "(unknown)",
                               esdm__type_name(container, dataset->type));
        return esdm__dataset_prefix(dataset, ESDM_EINVAL, err);
    }
    if (buffer == NULL && esdm_dataspace_elements(space) > 0) {
        (void) esdm__error_set(err, ESDM_EINVAL, "the buffer is NULL");
        return esdm__dataset_prefix(dataset, ESDM_EINVAL, err);
    }
    return check_bytes(dataset, space, memory_type, err);
}

esdm_status
esdm__check_writable(const esdm_dataset *dataset, esdm_error *err)
{
    if (dataset->group->container->writable)
        return ESDM_OK;
    (void) esdm__error_set(err, ESDM_EACCES, "the container was opened for reading");
    return esdm__dataset_prefix(dataset, ESDM_EACCES, err);
}

esdm_status
esdm_write(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
           const void *buffer, uint64_t *ret_out_of_range, esdm_error *err)
{
    if (dataset != NULL && space != NULL && buffer != NULL && !space->has_stride &&
        !space->has_memory_stride &&
        esdm__io_append(dataset, space->rank, space->offset, space->size, memory_type, buffer)) {
        if (ret_out_of_range != NULL)
            *ret_out_of_range = 0;
        return ESDM_OK;
    }
    ESDM_FLOAT_ENV_OWN;
    esdm_status status = esdm__check_transfer(dataset, space, memory_type, buffer, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__check_writable(dataset, err);
    if (status != ESDM_OK)
        return status;
    esdm__regions_look(dataset);
    return esdm__io_write(dataset, space, memory_type, buffer, ret_out_of_range, err);
}

bool
esdm_write_next(esdm_dataset *dataset, uint32_t rank, const uint64_t *offset, const uint64_t *size,
                esdm_type memory_type, const void *buffer)
{
    return dataset != NULL && offset != NULL && size != NULL && buffer != NULL &&
           esdm__io_append(dataset, rank, offset, size, memory_type, buffer);
}

esdm_status
esdm_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type, void *buffer,
          uint64_t *ret_out_of_range, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    esdm_status status = esdm__check_transfer(dataset, space, memory_type, buffer, err);
    if (status != ESDM_OK)
        return status;
    return esdm__io_read(dataset, space, memory_type, buffer, ret_out_of_range, err);
}

esdm_status
esdm_dataset_set_codec(esdm_dataset *dataset, const char *chain, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    esdm__chain parsed = {0};
    if (chain != NULL) {
        esdm_status status = esdm__chain_parse(chain, &parsed, err);
        if (status == ESDM_OK)
            status = esdm__chain_check_writes(&parsed, chain, err);
        if (status != ESDM_OK)
            return esdm__dataset_prefix(dataset, status, err);
    }
    return esdm__io_set_codec(dataset, chain, &parsed, err);
}

esdm_status
esdm_dataset_request_compression(esdm_dataset *dataset, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    const esdm__site_engine *engine = &dataset->group->container->session->site->engine;
    const char *stated = engine->codec_on_request;
    if (stated != NULL)
        return strcmp(stated, "none") == 0 ? ESDM_OK : esdm_dataset_set_codec(dataset, stated, err);
    if (strcmp(engine->codec, "none") != 0)
        return esdm_dataset_set_codec(dataset, NULL, err);
    esdm_error why;
    if (esdm__accuracy_has_type(dataset->type)) {
        esdm_accuracy accuracy;
        esdm_accuracy_init(&accuracy);
        if (esdm_dataset_accuracy(dataset, &accuracy) &&
            (accuracy.stated & ESDM_ACCURACY_MODE) != 0)
            return ESDM_OK;
        accuracy.stated |= ESDM_ACCURACY_MODE;
        accuracy.mode = ESDM_MODE_BALANCED;
        return esdm_dataset_set_accuracy(dataset, &accuracy, err);
    }
    esdm_status status = esdm_dataset_set_codec(dataset, "lz4", &why);
    if (status != ESDM_OK && status != ESDM_ENOENT && err != NULL)
        *err = why;
    return status == ESDM_ENOENT ? ESDM_OK : status; /* built without it */
}

typedef struct visitor {
    esdm_fragment_visitor visit;
    void *user;
} visitor;

/* In place of the name of a target. */
static const char *
not_in_pack(uint8_t kind)
{
    static const char *const names[] = {"(inline)", "(constant)", "(file)", "(link)"};
    return kind < sizeof names / sizeof *names ? names[kind] : "(elsewhere)";
}

static bool
visit_fragment(const esdm__fragment *fragment, void *user)
{
    const visitor *v = user;
    char codec[128];
    esdm__chain_print(fragment->codec_ids, codec, sizeof codec);
    const esdm_fragment_info info = {
        .rank = fragment->box.rank,
        .offset = fragment->box.lo,
        .size = fragment->box.n,
        .stride = fragment->strided ? fragment->stride : NULL,
        .raw_bytes = fragment->raw_bytes,
        .stored_bytes = fragment->stored_bytes,
        .sequence = fragment->sequence,
        .position = fragment->position,
        .target = fragment->pack != NULL ? fragment->pack->target : not_in_pack(fragment->kind),
        .pack = fragment->pack != NULL ? fragment->pack->pack : "",
        .codec = codec,
    };
    return v->visit(&info, v->user);
}

esdm_status
esdm_dataset_fragments(esdm_dataset *dataset, esdm_fragment_visitor visit, void *user,
                       esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, visit);
    visitor v = {visit, user};
    return esdm__io_visit_fragments(dataset, visit_fragment, &v, err);
}
