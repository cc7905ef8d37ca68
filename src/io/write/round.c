/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/round.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/outline.h"
#include "io/container/access.h"
#include "io/encode/strings.h"
#include "io/packs/sources.h"
#include "io/write/small.h"
#include "model/copy.h"

/* Largest element of a fragment that is stored as one. */
#define CONSTANT_BYTES 4096u

/* What targets on a network read as a whole, at least (read_bytes of the plug-in). */
#define OUTLINED_BYTES ((size_t) 1 << 20)

typedef esdm__slot slot;
typedef esdm__way way;
typedef esdm__round round;

/* ---- one fragment ------------------------------------------------------------------------- */

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

uint64_t
esdm__round_part_bytes(const round *r, size_t i)
{
    uint64_t each = esdm__elements_vary(r->elements) ? 1 : r->elements->bytes;
    return esdm__box_elements(&r->slots[i].part) * each;
}

/* What the round has still to store after this fragment, at the ratio of its compression. */
static uint64_t
behind(round *r, size_t i, const esdm__blob *blob)
{
    uint64_t raw = esdm__round_part_bytes(r, i);
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
    const esdm__limits *limits = &r->accuracy->limits;
    esdm__block_bounds blocks = {0};
    bool lossy = esdm__accuracy_of_values(r->accuracy, &s->where, e->type, raw,
                                          esdm__box_elements(part), accuracy, &blocks);
    lossy = lossy && !w->exact;
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
                                .limits =
                                    (lossy || layers) && esdm__limits_any(limits) ? limits : NULL,
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
        esdm__tally tally = {.type = r->missing.type, .missing = &r->missing};
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

/* Where reads wait for a network the index page gets the outline of what they do not take as a
 * whole. Without memory for it a reader asks for the head. */
static void
keep_outline(const round *r, slot *s, const esdm__blob *blob)
{
    esdm_container *container = r->dataset->group->container;
    const esdm__pack_name *equal = s->stored.equal;
    if (!r->inline_room || esdm__io_of(container)->trial != NULL ||
        blob->payload_bytes <= OUTLINED_BYTES)
        return;
    const char *places = equal != NULL ? equal->target : esdm__place_target_name(&s->stored.place);
    uint32_t bytes = esdm__outline_bytes(blob->head, (uint32_t) blob->head_bytes,
                                         blob->head_bytes + blob->payload_bytes);
    if (bytes == 0 || !esdm__sources_are_far(container->session, places))
        return;
    s->outline = malloc(bytes);
    if (s->outline == NULL)
        return;
    esdm__outline_make(blob->head, (uint32_t) blob->head_bytes, s->outline);
    s->fragment.outline = s->outline;
    s->fragment.outline_bytes = bytes;
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
        keep_outline(r, &r->slots[i], &blob);
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

esdm_status
esdm__round_store(void *context, size_t i, esdm_error *err)
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
        (void) atomic_fetch_sub(&r->behind_bytes, esdm__round_part_bytes(r, i));
        status = keep_in_page(&r->slots[i], raw, r->elements->bytes, err);
    } else if (r->small && !has_null && esdm__small_take(r, bytes)) {
        (void) atomic_fetch_sub(&r->behind_bytes, esdm__round_part_bytes(r, i));
        status = keep_in_page(&r->slots[i], raw, bytes, err);
    } else {
        status = store_in_pack(r, i, raw, bytes, has_null, err);
    }
    free(owned);
    return status;
}

/* ---- codecs ------------------------------------------------------------------------------- */

static double
bandwidth_of_thread(const round *r)
{
    esdm_session *session = r->dataset->group->container->session;
    uint32_t threads = session->site->engine.threads;
    return esdm__storage_bandwidth(session) / (threads > 0 ? threads : 1);
}

/* Fragments by which codecs are chosen, and what is stated for each. */
typedef struct examples {
    esdm__blob_numbers numbers[ESDM__CHOICE_FRAGMENTS];
    esdm_codec_accuracy accuracy[ESDM__CHOICE_FRAGMENTS];
    void *owned[ESDM__CHOICE_FRAGMENTS]; /* by the turn that they were added in */
    uint32_t count;
} examples;

/* Adds one, where it is large enough. */
static esdm_status
add_example(round *r, const slot *s, examples *e, esdm_error *err)
{
    const esdm__site_engine *engine = &r->dataset->group->container->session->site->engine;
    const void *raw = NULL;
    if (esdm__box_elements(&s->part) * r->elements->bytes <= engine->inline_bytes)
        return ESDM_OK;
    uint64_t out_of_range = atomic_load(&r->out_of_range);
    esdm_status status = dense_elements(r, &s->part, &raw, &e->owned[e->count], err);
    atomic_store(&r->out_of_range, out_of_range); /* counted when it is stored */
    if (status != ESDM_OK)
        return status;
    e->numbers[e->count] = numbers_of(r, s, raw, &e->accuracy[e->count]);
    e->count++;
    return ESDM_OK;
}

/* What of them can be tried together: where some may be off, these. */
static void
keep_alike(examples *e)
{
    bool lossy = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->count; i++)
        lossy = lossy || e->numbers[i].accuracy != NULL;
    for (uint32_t i = 0; i < e->count; i++) {
        if ((e->numbers[i].accuracy != NULL) == lossy)
            e->numbers[kept++] = e->numbers[i];
    }
    e->count = kept;
}

/* The fragment number `wanted` of those that go one way. */
static const slot *
on_way(const round *r, const way *w, size_t wanted)
{
    size_t i = 0;
    while (way_of(r, &r->slots[i]) != w || wanted-- > 0)
        i++;
    return &r->slots[i];
}

/* Chooses codecs by the first, the middle and the last of the fragments that go this way: one alone
 * (ice at the pole) may be unlike all others. */
static esdm_status
choose_by(round *r, size_t count, way *w, esdm_error *err)
{
    examples e = {.count = 0};
    esdm_status status = ESDM_OK;
    size_t wanted = count < ESDM__CHOICE_FRAGMENTS ? count : ESDM__CHOICE_FRAGMENTS;
    w->exact = false;
    for (size_t i = 0; i < wanted && status == ESDM_OK; i++)
        status = add_example(r, on_way(r, w, i == 0 ? 0 : (count - 1) * i / (wanted - 1)), &e, err);
    keep_alike(&e);
    const esdm__wish wish = {.mode = r->accuracy->mode,
                             .compression_speed = r->accuracy->compression_speed,
                             .decompression_speed = r->accuracy->decompression_speed,
                             .bandwidth = bandwidth_of_thread(r),
                             .numbers = e.numbers,
                             .count = e.count};
    if (status == ESDM_OK && e.count > 0)
        status = esdm__choose(&wish, w->chosen, err);
    for (size_t i = 0; i < ESDM__CHOICE_FRAGMENTS; i++)
        free(e.owned[i]);
    return status;
}

esdm_status
esdm__round_choose_codecs(round *r, size_t count, esdm_error *err)
{
    esdm__choice **const choices[] = {&r->io->choice, &r->io->choice_in_regions};
    if (!r->accuracy->stated || r->dataset->stated->codec != NULL)
        return ESDM_OK;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        way *w = &r->ways[k];
        size_t ours = 0;
        for (size_t i = 0; i < count; i++)
            ours += way_of(r, &r->slots[i]) == w;
        if (ours == 0)
            continue;
        if (*choices[k] == NULL)
            *choices[k] = calloc(1, sizeof **choices[k]);
        w->chosen = *choices[k];
        if (w->chosen == NULL)
            return esdm__error_nomem(err, sizeof *w->chosen, "a choice of codecs");
        w->chain = &w->chosen->chain;
        esdm_status status = esdm__choice_is_due(w->chosen) ? choose_by(r, ours, w, err) : ESDM_OK;
        if (status != ESDM_OK)
            return status;
        w->effort = w->chosen->effort;
        w->exact = w->chosen->exact;
    }
    return ESDM_OK;
}

void
esdm__round_note_sizes(const round *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const slot *s = &r->slots[i];
        if (way_of(r, s)->chosen != NULL && s->fragment.inline_data == NULL)
            esdm__choice_note(way_of(r, s)->chosen, s->fragment.raw_bytes,
                              s->fragment.stored_bytes);
    }
}
