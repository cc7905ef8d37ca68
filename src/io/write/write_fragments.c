/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Makes fragments of a box in the caller's memory: cut, encoded and appended by the pool. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/access.h"
#include "io/container/accuracy.h"
#include "io/container/missing.h"
#include "io/container/rounded.h"
#include "io/encode/strings.h"
#include "io/session/readers.h"
#include "io/write/append.h"
#include "io/write/region_cutter.h"
#include "io/write/write.h"
#include "model/copy.h"

/* Uncommitted inline data of a dataset; beyond it, and beyond the bound of all datasets of the
 * session, small fragments go to packs too. */
#define PENDING_INLINE_BYTES (UINT64_C(8) << 20)
/* Parts of large chunks, at least. */
#define PART_BYTES (UINT64_C(2) << 20)
/* And of what is encoded. */
#define ENCODED_PART_BYTES (UINT64_C(256) << 10)
/* Largest element of a fragment that is stored as one. */
#define CONSTANT_BYTES 4096u

/* ---- one fragment ------------------------------------------------------------------------- */

/* A fragment in the making. */
typedef struct slot {
    esdm__fragment fragment;
    esdm__box part;          /* of the round's box */
    esdm__whereabouts where; /* in the regions of the accuracy */
    esdm__appended stored;
    void *inline_data; /* owned; NULL for fragments in packs */
} slot;

/* By which codecs fragments are stored. */
typedef struct way {
    const esdm__chain *chain;
    esdm__choice *chosen; /* where the chain comes from; NULL: it was stated, or is the site's */
    esdm_codec_effort effort;
} way;

/* A write box in the caller's memory, and the fragments that one round of the pool makes of it. */
typedef struct round {
    const esdm__transfer *transfer; /* the next four are from it */
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    const esdm__elements *elements;
    const esdm_dataspace *strided; /* the selection whose indices the box holds; NULL: dense */
    const esdm__box *box;
    slot *slots;                       /* of the fragments of one round */
    size_t batch;                      /* slots there are */
    atomic_uint_fast64_t behind_bytes; /* raw ones of the round that nobody has stored yet */
    bool inline_room;
    bool by_content;                /* values say where fragments begin */
    const esdm__accuracy *accuracy; /* what the dataset states */
    esdm__missing missing;          /* what does not count in statistics */
    const esdm__region_map *map;    /* of its regions; NULL: there are none, or nobody knows */
    way ways[2];                    /* elsewhere, and where a region is touched */
    struct esdm__equals *equals;    /* what is stored already; NULL: nothing is looked for */
    atomic_uint_fast64_t out_of_range;
} round;

static esdm__memory
memory_of(const round *r, const esdm__box *part)
{
    esdm__memory memory = r->transfer->memory;
    int64_t at = 0;
    for (uint32_t i = 0; i < part->rank; i++)
        at += (int64_t) (part->lo[i] - r->box->lo[i]) * memory.stride[i];
    at *= (int64_t) esdm__elements_bytes(r->elements, memory.form);
    memory.data = (uint8_t *) memory.data + at;
    return memory;
}

/* Dense elements of the fragment in the engine's form: the caller's memory itself where it is that
 * already, else a copy in *ret_owned. */
static esdm_status
dense_elements(round *r, const esdm__box *part, const void **ret_data, void **ret_owned,
               esdm_error *err)
{
    const esdm__memory source = memory_of(r, part);
    const esdm__elements *e = r->elements;
    *ret_owned = NULL;
    if (source.form == e->type && esdm__strides_are_dense(part->rank, part->n, source.stride)) {
        *ret_data = source.data;
        return ESDM_OK;
    }
    size_t bytes = (size_t) esdm__box_elements(part) * e->bytes;
    void *copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "a fragment");
    int64_t stride[ESDM_MAX_RANK];
    uint64_t out_of_range = 0;
    esdm__dense_strides(part->rank, part->n, stride);
    const esdm__memory engine = {e->type, copy, stride};
    esdm__elements_copy(e, part->rank, part->n, &source, &engine, &out_of_range);
    if (out_of_range > 0)
        atomic_fetch_add(&r->out_of_range, out_of_range);
    *ret_data = copy;
    *ret_owned = copy;
    return ESDM_OK;
}

/* Elements with lengths of their own, serialised. */
static esdm_status
serialise(round *r, const esdm__box *part, esdm__buffer *out, bool *ret_has_null, esdm_error *err)
{
    const esdm__elements *e = r->elements;
    const esdm__memory source = memory_of(r, part);
    if (esdm__elements_encode(e, source.form))
        return esdm__elements_store(e, part->rank, part->n, &source, out, err);
    const void *data = NULL;
    void *owned = NULL;
    esdm_status status = dense_elements(r, part, &data, &owned, err);
    if (status == ESDM_OK && e->type == ESDM_TYPE_STRING)
        status = esdm__strings_encode(data, esdm__box_elements(part), out, ret_has_null, err);
    else if (status == ESDM_OK)
        status = esdm__blobs_store(data, esdm__box_elements(part), out, err);
    free(owned);
    return status;
}

/* The bytes to store. `ret_has_null` becomes true when texts are NULL. */
static esdm_status
raw_bytes_of(round *r, const esdm__box *part, const void **ret_raw, size_t *ret_bytes,
             void **ret_owned, bool *ret_has_null, esdm_error *err)
{
    esdm__buffer out;
    if (!esdm__elements_vary(r->elements)) {
        *ret_bytes = (size_t) esdm__box_elements(part) * r->elements->bytes;
        return dense_elements(r, part, ret_raw, ret_owned, err);
    }
    esdm__buffer_init(&out);
    esdm_status status = serialise(r, part, &out, ret_has_null, err);
    if (status != ESDM_OK) {
        esdm__buffer_clear(&out);
        return status;
    }
    *ret_owned = esdm__buffer_steal(&out, ret_bytes);
    *ret_raw = *ret_owned;
    return ESDM_OK;
}

/* Raw bytes of a fragment, about: elements may vary in length. */
static uint64_t
part_bytes(const round *r, size_t i)
{
    uint64_t each = esdm__elements_vary(r->elements) ? 1 : r->elements->bytes;
    return esdm__box_elements(&r->slots[i].part) * each;
}

/* What the round has still to store after this fragment, at the ratio of its compression. */
static uint64_t
behind(round *r, size_t i, const esdm__blob *blob)
{
    uint64_t raw = part_bytes(r, i);
    uint64_t left = atomic_fetch_sub(&r->behind_bytes, raw) - raw;
    double stored = (double) (blob->head_bytes + blob->payload_bytes);
    return raw > 0 ? (uint64_t) ((double) left * stored / (double) raw) : 0;
}

static const way *
way_of(const round *r, const slot *s)
{
    return &r->ways[s->where.touched != 0];
}

/* A part as numbers, with what may become of them: *accuracy holds it. */
static esdm__blob_numbers
numbers_of(const round *r, const slot *s, const void *raw, esdm_codec_accuracy *accuracy)
{
    const bool layers = r->accuracy->stated && r->accuracy->mode == ESDM_MODE_PROGRESSIVE;
    const esdm__elements *e = r->elements;
    const esdm__box *part = &s->part;
    const way *w = way_of(r, s);
    esdm__block_bounds blocks = {0};
    bool lossy = esdm__accuracy_of_values(r->accuracy, &s->where, e->type, raw,
                                          esdm__box_elements(part), accuracy, &blocks);
    return (esdm__blob_numbers){.chain = w->chain,
                                .type = e->type,
                                .element_bytes = (uint32_t) e->bytes,
                                .dataset = r->dataset->id,
                                .rank = part->rank,
                                .shape = part->n,
                                .raw = raw,
                                .accuracy = lossy ? accuracy : NULL,
                                .coarse = layers ? &r->accuracy->codec : NULL,
                                .conserved = r->accuracy->conserved,
                                .noise = blocks.noise,
                                .mean = blocks.mean,
                                .effort = w->effort,
                                .block_bytes = w->chosen != NULL ? r->io->block_bytes : 0};
}

/* Numbers keep their shape, other elements are bytes for the codecs. */
static esdm_status
encode(const round *r, const slot *s, const void *raw, size_t bytes, esdm__blob *ret_blob,
       esdm__statistics *ret_statistics, esdm_error *err)
{
    const esdm__elements *e = r->elements;
    if (esdm__accuracy_applies(e->type)) {
        esdm__tally tally = {.type = e->type, .missing = &r->missing};
        esdm_codec_accuracy accuracy;
        esdm__blob_numbers numbers = numbers_of(r, s, raw, &accuracy);
        if (r->missing.class != ESDM__CLASS_NONE)
            numbers.tally = &tally;
        esdm_status status = esdm__blob_encode_numbers(&numbers, ret_blob, NULL, err);
        *ret_statistics = tally.statistics;
        return status;
    }
    esdm_type type = e->type > ESDM_TYPE_NONE ? e->type : r->dataset->type;
    return esdm__blob_encode(way_of(r, s)->chain, type,
                             esdm__elements_vary(e) ? 1 : (uint32_t) e->bytes, r->dataset->id, raw,
                             bytes, ret_blob, err);
}

static esdm_status
store_in_pack(round *r, size_t i, const void *raw, size_t bytes, bool has_null, esdm_error *err)
{
    esdm__fragment *fragment = &r->slots[i].fragment;
    esdm_container *container = r->dataset->group->container;
    esdm__blob blob = {0};
    esdm__span span;
    esdm__span_begin(&span, container->session->monitor);
    esdm_status status = encode(r, &r->slots[i], raw, bytes, &blob, &fragment->statistics, err);
    esdm__dataset_observed(r->dataset, &span,
                           (esdm__span_facts){.kind = ESDM__SPAN_ENCODE,
                                              .bytes = bytes,
                                              .stored_bytes = blob.head_bytes + blob.payload_bytes,
                                              .status = status});
    if (status != ESDM_OK)
        return status;
    if (has_null)
        esdm__blob_mark_nulls(&blob);
    const esdm__pack_hint hint = {.behind_bytes = behind(r, i, &blob),
                                  .copies = r->io->copies,
                                  .allowed = r->io->allowed,
                                  .cheap = r->io->cheap};
    status = esdm__write_append(container, r->equals, &hint, &blob, &r->slots[i].stored, err);
    if (status == ESDM_OK) {
        fragment->position = r->slots[i].stored.position;
        fragment->stored_bytes = blob.head_bytes + blob.payload_bytes;
        fragment->head_bytes = (uint32_t) blob.head_bytes;
        const esdm__chain *chain = way_of(r, &r->slots[i])->chain;
        for (uint32_t k = 0; k < chain->count; k++)
            fragment->codec_ids[k] = chain->codecs[k]->id;
    }
    esdm__blob_clear(&blob);
    return status;
}

/* Whether all elements are equal: mostly the first or the last one tells that they are not. */
static bool
is_constant(const round *r, const uint8_t *raw, size_t bytes)
{
    size_t element = r->elements->bytes;
    return !esdm__elements_vary(r->elements) && element <= CONSTANT_BYTES && bytes > element &&
           memcmp(raw, raw + (bytes - element), element) == 0 &&
           memcmp(raw, raw + element, bytes - element) == 0;
}

/* The first `bytes` of the elements go into the record. */
static esdm_status
keep_in_page(slot *s, const void *raw, size_t bytes, esdm_error *err)
{
    s->inline_data = malloc(bytes > 0 ? bytes : 1);
    if (s->inline_data == NULL)
        return esdm__error_nomem(err, bytes, "a fragment");
    if (bytes > 0)
        memcpy(s->inline_data, raw, bytes);
    s->fragment.inline_data = s->inline_data;
    s->fragment.stored_bytes = bytes;
    return ESDM_OK;
}

static esdm_status
store_fragment(void *context, size_t i, esdm_error *err)
{
    round *r = context;
    esdm__fragment *fragment = &r->slots[i].fragment;
    const void *raw = NULL;
    void *owned = NULL;
    size_t bytes = 0;
    bool has_null = false; /* not inline then: only the head of a blob tells older readers */
    esdm_status status = raw_bytes_of(r, &r->slots[i].part, &raw, &bytes, &owned, &has_null, err);
    if (status != ESDM_OK)
        return status;
    fragment->raw_bytes = bytes;
    const esdm_session *session = r->dataset->group->container->session;
    bool fits = bytes <= session->site->engine.inline_bytes && r->inline_room && !has_null;
    if (fits) {
        status = keep_in_page(&r->slots[i], raw, bytes, err);
    } else if (is_constant(r, raw, bytes)) {
        fragment->kind = ESDM__KIND_CONSTANT;
        (void) atomic_fetch_sub(&r->behind_bytes, part_bytes(r, i));
        status = keep_in_page(&r->slots[i], raw, r->elements->bytes, err);
    } else {
        status = store_in_pack(r, i, raw, bytes, has_null, err);
    }
    free(owned);
    return status;
}

/* ---- one box ------------------------------------------------------------------------------ */

static esdm_status
enter_pending(round *r, size_t count, esdm_error *err)
{
    esdm__dataset_io *io = r->io;
    const esdm__pack_name *before = NULL;
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__fragment *fragment = &r->slots[i].fragment;
        if (fragment->inline_data == NULL) {
            fragment->pack = esdm__appended_pack(&r->slots[i].stored, before, io->index);
            before = fragment->pack;
            if (fragment->pack == NULL)
                status = esdm__error_nomem(err, sizeof *fragment, "the fragment index");
        }
        if (status == ESDM_OK)
            status = esdm__index_add_pending(io->index, fragment, err);
    }
    esdm__dataset_trim_index(r->dataset, io);
    (void) pthread_mutex_unlock(&io->lock);
    return status;
}

static bool
has_inline_room(const round *r)
{
    const esdm_session *session = r->dataset->group->container->session;
    (void) pthread_mutex_lock(&r->io->lock);
    uint64_t own = esdm__index_pending_inline_bytes(r->io->index);
    (void) pthread_mutex_unlock(&r->io->lock);
    return own < PENDING_INLINE_BYTES &&
           atomic_load(&session->inlined) < session->index_limit_bytes;
}

static double
bandwidth_of_thread(const round *r)
{
    esdm_session *session = r->dataset->group->container->session;
    uint32_t threads = session->site->engine.threads;
    return esdm__storage_bandwidth(session) / (threads > 0 ? threads : 1);
}

/* Chooses codecs by a fragment, if that is due. */
static esdm_status
choose_by(round *r, const slot *s, way *w, esdm_error *err)
{
    const esdm__box *part = &s->part;
    const esdm__site_engine *engine = &r->dataset->group->container->session->site->engine;
    const void *raw = NULL;
    void *owned = NULL;
    if (esdm__choice_is_due(w->chosen) &&
        esdm__box_elements(part) * r->elements->bytes > engine->inline_bytes) {
        uint64_t out_of_range = atomic_load(&r->out_of_range);
        esdm_status status = dense_elements(r, part, &raw, &owned, err);
        atomic_store(&r->out_of_range, out_of_range); /* counted when it is stored */
        if (status != ESDM_OK)
            return status;
        esdm_codec_accuracy accuracy;
        const esdm__blob_numbers numbers = numbers_of(r, s, raw, &accuracy);
        const esdm__wish wish = {.mode = r->accuracy->mode,
                                 .compression_speed = r->accuracy->compression_speed,
                                 .decompression_speed = r->accuracy->decompression_speed,
                                 .bandwidth = bandwidth_of_thread(r),
                                 .numbers = &numbers};
        status = esdm__choose(&wish, w->chosen, err);
        free(owned);
        if (status != ESDM_OK)
            return status;
    }
    w->effort = w->chosen->effort;
    return ESDM_OK;
}

/* The codecs of a round: those of fragments that touch a region, and of others. */
static esdm_status
choose_codecs(round *r, size_t count, esdm_error *err)
{
    esdm__choice **const choices[] = {&r->io->choice, &r->io->choice_in_regions};
    if (!r->accuracy->stated || r->dataset->stated->codec != NULL)
        return ESDM_OK;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        way *w = &r->ways[k];
        size_t first = 0;
        while (first < count && way_of(r, &r->slots[first]) != w)
            first++;
        if (first == count)
            continue;
        if (*choices[k] == NULL)
            *choices[k] = calloc(1, sizeof **choices[k]);
        w->chosen = *choices[k];
        if (w->chosen == NULL)
            return esdm__error_nomem(err, sizeof *w->chosen, "a choice of codecs");
        w->chain = &w->chosen->chain;
        esdm_status status = choose_by(r, &r->slots[first], w, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static void
note_sizes(const round *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const slot *s = &r->slots[i];
        if (way_of(r, s)->chosen != NULL && s->fragment.inline_data == NULL)
            esdm__choice_note(way_of(r, s)->chosen, s->fragment.raw_bytes,
                              s->fragment.stored_bytes);
    }
}

static esdm_status
run_round(round *r, size_t count, esdm_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += part_bytes(r, i);
    atomic_store(&r->behind_bytes, bytes);
    r->inline_room = has_inline_room(r);
    r->equals = esdm__container_equals(r->dataset->group->container);
    esdm__pool *pool = r->dataset->group->container->session->pool;
    esdm_status status = choose_codecs(r, count, err);
    if (status == ESDM_OK)
        status = esdm__pool_run(pool, count, store_fragment, r, err);
    if (status == ESDM_OK)
        note_sizes(r, count);
    if (status == ESDM_OK && esdm__io_of(r->dataset->group->container)->trial == NULL)
        status = enter_pending(r, count, err);
    for (size_t i = 0; i < count; i++) {
        free(r->slots[i].inline_data);
        r->slots[i].inline_data = NULL;
    }
    return status;
}

/* Adds the stored bytes of elements up. */
typedef struct adder {
    const round *r;
    uint64_t sum;
} adder;

static esdm_status
add_stored_bytes(void *user, void *element, esdm_error *err)
{
    adder *a = user;
    const void *text;
    (void) err;
    a->sum += sizeof(uint32_t);
    esdm_type form = a->r->transfer->memory.form;
    if (esdm__elements_encode(a->r->elements, form)) {
        a->sum += esdm__values_stored_bytes(a->r->elements->outer, 1, element);
        return ESDM_OK;
    }
    memcpy(&text, element, sizeof text);
    if (form == ESDM__TYPE_BLOB)
        a->sum += esdm__blob_bytes(text);
    else
        a->sum += text != NULL ? strlen(text) : 0;
    return ESDM_OK;
}

/* Stored bytes of an element; of those that vary on average, so that fragments of long ones stay
 * small. */
static uint64_t
element_bytes(const round *r)
{
    const esdm__elements *e = r->elements;
    adder a = {.r = r};
    if (!esdm__elements_vary(e))
        return e->bytes;
    (void) esdm__elements_visit(e, r->box->rank, r->box->n, &r->transfer->memory, add_stored_bytes,
                                &a, NULL);
    return a.sum / esdm__box_elements(r->box);
}

/* Whether a large chunk may be several fragments, so that more than one processor stores it: on
 * targets whose requests have a price each more costs more, and mode archive wants large blocks. */
static bool
may_cut_chunks(const round *r)
{
    const esdm_session *session = r->dataset->group->container->session;
    for (size_t i = 0; i < session->ntargets; i++) {
        if (session->targets[i].plugin->concurrency > 0 &&
            (r->io->allowed == NULL || r->io->allowed[i]))
            return false;
    }
    return r->io->block_bytes == 0 && !esdm__elements_vary(r->elements);
}

/* Fragments for all threads, as long as they do not get too small; at most `bytes` each. */
static uint64_t
share_of_thread(const round *r, uint64_t bytes)
{
    uint64_t threads = r->dataset->group->container->session->site->engine.threads;
    uint64_t each = esdm__box_elements(r->box) * r->elements->bytes;
    each = threads > 1 ? (each + threads - 1) / threads : bytes;
    each = each > ENCODED_PART_BYTES ? each : ENCODED_PART_BYTES;
    return each < bytes ? each : bytes;
}

static esdm__layout
layout_of(const round *r, esdm__cut cut)
{
    const esdm_dataset *dataset = r->dataset;
    const esdm__dataset_io *io = r->io;
    esdm__layout layout = {.rank = dataset->rank,
                           .element_bytes = element_bytes(r),
                           .chunk = dataset->stated->chunk,
                           .cut = r->strided == NULL ? cut : ESDM__CUT_CONTIGUOUS,
                           .preferred_bytes = esdm__dataset_io_preferred(io),
                           .minimum_bytes = esdm__dataset_io_minimum(io)};
    if (r->strided != NULL)
        layout.chunk = NULL;
    if (layout.chunk != NULL) {
        esdm__box chunk;
        esdm__box_set(&chunk, dataset->rank, NULL, dataset->stated->chunk);
        /* A chunk that does not fit the memory bound is a hint we cannot follow. */
        uint64_t limit = dataset->group->container->session->fragment_limit_bytes;
        if (esdm__box_elements(&chunk) > limit / layout.element_bytes)
            layout.chunk = NULL;
    }
    if (layout.chunk == NULL && io->encodes && may_cut_chunks(r))
        layout.preferred_bytes = share_of_thread(r, layout.preferred_bytes);
    if (layout.chunk != NULL && may_cut_chunks(r)) {
        layout.parts = dataset->group->container->session->site->engine.threads;
        layout.part_bytes = PART_BYTES;
    }
    return layout;
}

/* The fragment that a part of the round's box becomes; what is kept where comes later. */
static void
prepare(const round *r, slot *s)
{
    const esdm_dataspace *space = r->strided;
    s->fragment.inline_data = NULL;
    s->fragment.pack = NULL;
    s->fragment.position = 0;
    s->fragment.head_bytes = 0;
    s->fragment.strided = false;
    s->fragment.kind = ESDM__KIND_STORED;
    s->fragment.statistics = (esdm__statistics){0};
    memset(s->fragment.codec_ids, 0, sizeof s->fragment.codec_ids);
    esdm__box_copy(&s->fragment.box, &s->part);
    for (uint32_t i = 0; space != NULL && i < space->rank; i++) {
        uint64_t count = s->part.n[i];
        s->fragment.box.lo[i] = space->offset[i] + s->part.lo[i] * space->stride[i];
        s->fragment.box.n[i] = (count - 1) * space->stride[i] + 1;
        s->fragment.stride[i] = count > 1 ? space->stride[i] : 1;
        s->fragment.strided = s->fragment.strided || s->fragment.stride[i] > 1;
    }
    s->where = esdm__accuracy_where(r->accuracy, r->map, &s->fragment.box);
}

static esdm_status
cut_and_store(round *r, const esdm__layout *layout, esdm_error *err)
{
    esdm__region_cutter cutter;
    const esdm__region_map *map = r->strided == NULL ? r->map : NULL;
    const esdm__transfer *content = r->by_content ? r->transfer : NULL;
    esdm_status status = esdm__region_cutter_init(&cutter, layout, r->box, map, content, err);
    bool more = status == ESDM_OK;
    while (more) {
        size_t count = 0;
        while (count < r->batch) {
            more = esdm__region_cutter_next(&cutter, &r->slots[count].part);
            if (!more)
                break;
            prepare(r, &r->slots[count++]);
        }
        status = count > 0 ? run_round(r, count, err) : ESDM_OK;
        more = more && status == ESDM_OK;
    }
    esdm__region_cutter_clear(&cutter);
    return status;
}

esdm_status
esdm__write_fragments(const esdm__transfer *t, const esdm__box *box, bool strided, esdm_error *err)
{
    esdm__accuracy accuracy;
    esdm_status status = esdm__accuracy_compile(t->dataset, &accuracy, err);
    if (status == ESDM_OK && accuracy.lossy && !accuracy.by_rule)
        status = esdm__rounded_note(t->dataset, t->io, err);
    if (status != ESDM_OK)
        return status;
    round r = {.transfer = t,
               .dataset = t->dataset,
               .io = t->io,
               .elements = t->elements,
               .strided = strided ? t->space : NULL,
               .box = box,
               .accuracy = &accuracy,
               .ways = {{.chain = t->io->chain}, {.chain = t->io->chain}}};
    r.map = esdm__accuracy_map(&accuracy, t->io);
    esdm__missing_of(t->dataset, &r.missing);
    esdm__cut cut = ESDM__CUT_CONTIGUOUS;
    status = esdm__access_of(t->dataset, &cut, err);
    if (status != ESDM_OK)
        return status;
    bool for_readers = t->io->for_readers != 0 && !esdm__access_is_stated(t->dataset);
    if (for_readers)
        cut = (esdm__cut) t->io->for_readers;
    esdm__layout layout = layout_of(&r, cut);
    if (for_readers)
        layout.preferred_bytes = esdm__readers_preferred(layout.preferred_bytes, layout.cut);
    r.by_content = esdm__io_of(t->dataset->group->container)->by_content && !strided &&
                   r.map == NULL && esdm__content_can_cut(t, box);
    uint64_t count =
        r.map != NULL || r.by_content ? ESDM__WRITE_BATCH : esdm__cutter_count(&layout, box);
    r.batch = count > ESDM__WRITE_BATCH ? ESDM__WRITE_BATCH : count > 0 ? (size_t) count : 1;
    r.slots = calloc(r.batch + 1, sizeof *r.slots);
    if (r.slots == NULL)
        return esdm__error_nomem(err, r.batch * sizeof *r.slots, "a write");
    status = cut_and_store(&r, &layout, err);
    esdm__transfer_count(t, atomic_load(&r.out_of_range));
    free(r.slots);
    return status;
}
