/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Pages of versions 4 and 5: records of all kinds of sources, statistics, and outlines. */
#include <math.h>

#include "layout_support.h"

#include "base/checksum.h"
#include "layout/page.h"
#include "layout/source.h"

enum { RECORDS = 60, UNKNOWN_KIND = 9, UNKNOWN_ROLE = 77 };

static const esdm__pack_name pack = {"scratch", "aa-1"};
static const uint8_t outline[] = "what a reader needs of the table of blocks";

/* Descriptions as their makers store them. */
typedef struct descriptions {
    esdm__buffer buffers[5];
    esdm__source foreign[2];
    esdm__source decoding;
    esdm__source link;
    esdm__source map;
    esdm__source unknown;
} descriptions;

static esdm__source
source_of(uint32_t role, const esdm__buffer *buffer)
{
    assert_false(buffer->failed);
    return (esdm__source){role, (uint32_t) buffer->bytes, buffer->data};
}

static void
describe(descriptions *d)
{
    static const uint8_t tag[] = {1, 2, 3};
    static const uint32_t level[] = {6};
    memset(d, 0, sizeof *d);
    esdm__foreign file = {.location = "/data/a.nc",
                          .bytes = 123456,
                          .mtime_ns = INT64_C(1700000000123456789),
                          .identity = "17:1700000001",
                          .tag = tag,
                          .tag_bytes = sizeof tag};
    esdm__foreign_put(&d->buffers[0], &file);
    file.location = "https://example.org/b.nc";
    file.bytes = UINT64_MAX;
    file.mtime_ns = INT64_MIN;
    esdm__foreign_put(&d->buffers[1], &file);
    esdm__decoding decoding = {.flags = ESDM__DECODING_BIG_ENDIAN | ESDM__DECODING_EDGES_WHOLE,
                               .type = ESDM_TYPE_FLOAT32,
                               .element_bytes = 4,
                               .rank = 2,
                               .chunk = {10, 20},
                               .nfilters = 2};
    decoding.filters[0] = (esdm__filter){.name = "hdf5", .id = 2, .codec = ""};
    decoding.filters[1] = (esdm__filter){.name = "hdf5",
                                         .id = 1,
                                         .codec = "",
                                         .parameters = (const uint8_t *) level,
                                         .parameter_bytes = sizeof level};
    esdm__decoding_put(&d->buffers[2], &decoding);
    const esdm__link link = {
        .container = "5d6f", .dataset = "/ocean/thetao", .number = 7, .snapshot = 0};
    esdm__link_put(&d->buffers[3], &link);
    esdm__link_map map = {.rank = 3, .flags = ESDM__MAP_SCALE, .scale = 0.5, .offset = -273.15};
    map.axes[0] = (esdm__link_axis){.here = UINT32_MAX, .first = 4, .step = 1};
    map.axes[1] = (esdm__link_axis){.here = 0, .first = -365, .step = 1};
    map.axes[2] = (esdm__link_axis){.here = 1, .first = 179, .step = -1};
    esdm__link_map_put(&d->buffers[4], &map);
    d->foreign[0] = source_of(ESDM__ROLE_FOREIGN, &d->buffers[0]);
    d->foreign[1] = source_of(ESDM__ROLE_FOREIGN, &d->buffers[1]);
    d->decoding = source_of(ESDM__ROLE_DECODING, &d->buffers[2]);
    d->link = source_of(ESDM__ROLE_LINK, &d->buffers[3]);
    d->map = source_of(ESDM__ROLE_MAP, &d->buffers[4]);
    d->unknown = (esdm__source){UNKNOWN_ROLE, sizeof tag, tag};
}

static void
forget(descriptions *d)
{
    for (size_t i = 0; i < 5; i++)
        esdm__buffer_clear(&d->buffers[i]);
}

/* The i-th of a row that has all kinds. */
static void
make_fragment(const descriptions *d, uint64_t i, esdm__fragment *f)
{
    static const double element = 273.15;
    memset(f, 0, sizeof *f);
    f->box.rank = 1;
    f->box.lo[0] = i * 100;
    f->box.n[0] = 100;
    f->raw_bytes = 800;
    switch (i % 6) {
    case 0:
        f->pack = &pack;
        f->position = i * 1000;
        f->stored_bytes = 900;
        f->head_bytes = 80;
        f->outline = i % 12 == 6 ? outline : NULL;
        f->outline_bytes = f->outline != NULL ? (uint32_t) (1 + i % sizeof outline) : 0;
        f->statistics =
            (esdm__statistics){.class = i % 12 == 0 ? ESDM__CLASS_FLOAT : ESDM__CLASS_SIGNED,
                               .valid = 99,
                               .sum = 1e300 + (double) i,
                               .rule = 0xdeadbeef};
        if (f->statistics.class == ESDM__CLASS_FLOAT) {
            f->statistics.min.f = -1.5;
            f->statistics.max.f = (double) INFINITY;
        } else {
            f->statistics.min.i = INT64_MIN;
            f->statistics.max.i = -3;
        }
        break;
    case 1:
        f->inline_data = (const uint8_t *) &element;
        f->raw_bytes = f->stored_bytes = sizeof element;
        f->box.n[0] = 1;
        break;
    case 2:
        f->kind = ESDM__KIND_CONSTANT;
        f->inline_data = (const uint8_t *) &element;
        f->stored_bytes = sizeof element;
        break;
    case 3:
        f->kind = ESDM__KIND_FOREIGN;
        f->position = UINT64_C(1) << 40;
        f->stored_bytes = 333;
        f->elsewhere = (esdm__elsewhere){.source = &d->foreign[i / 6 % 2],
                                         .decoding = &d->decoding,
                                         .check = 0x1234567890abcdef,
                                         .filter_mask = 3,
                                         .check_kind = ESDM__CHECK_XXH3};
        break;
    case 4:
        f->kind = ESDM__KIND_LINK;
        f->elsewhere = (esdm__elsewhere){.source = &d->link, .decoding = &d->map};
        break;
    default: /* as a newer program might write it */
        f->kind = UNKNOWN_KIND;
        f->stored_bytes = 5;
        f->elsewhere = (esdm__elsewhere){.source = &d->unknown};
    }
}

static bool
same_source(const esdm__source *a, const esdm__source *b)
{
    return a == NULL || b == NULL ? a == b
                                  : a->role == b->role && a->bytes == b->bytes &&
                                        memcmp(a->data, b->data, a->bytes) == 0;
}

static void
assert_same(const esdm__fragment *f, const esdm__fragment *expected)
{
    const esdm__statistics *s = &f->statistics;
    assert_true(esdm__box_equal(&f->box, &expected->box));
    assert_int_equal(f->kind, expected->kind);
    assert_int_equal(f->raw_bytes, expected->raw_bytes);
    assert_int_equal(f->stored_bytes, expected->stored_bytes);
    assert_int_equal(f->position, expected->position);
    assert_int_equal(f->head_bytes, expected->head_bytes);
    assert_int_equal(f->pack == NULL, expected->pack == NULL);
    assert_int_equal(f->inline_data == NULL, expected->inline_data == NULL);
    if (f->inline_data != NULL)
        assert_memory_equal(f->inline_data, expected->inline_data, f->stored_bytes);
    assert_int_equal(f->outline_bytes, expected->outline_bytes);
    assert_int_equal(f->outline == NULL, expected->outline == NULL);
    if (f->outline != NULL)
        assert_memory_equal(f->outline, expected->outline, f->outline_bytes);
    assert_true(same_source(f->elsewhere.source, expected->elsewhere.source));
    assert_true(same_source(f->elsewhere.decoding, expected->elsewhere.decoding));
    assert_int_equal(f->elsewhere.check, expected->elsewhere.check);
    assert_int_equal(f->elsewhere.filter_mask, expected->elsewhere.filter_mask);
    assert_int_equal(f->elsewhere.check_kind, expected->elsewhere.check_kind);
    assert_int_equal(s->class, expected->statistics.class);
    assert_int_equal(s->min.u, expected->statistics.min.u);
    assert_int_equal(s->max.u, expected->statistics.max.u);
    assert_memory_equal(&s->sum, &expected->statistics.sum, sizeof s->sum);
    assert_int_equal(s->valid, expected->statistics.valid);
    assert_int_equal(s->rule, expected->statistics.rule);
}

/* A page with all kinds, and its directory entry. */
typedef struct sample {
    descriptions d;
    esdm__records records;
    uint32_t order[RECORDS];
    uint64_t box[2];
    esdm_meta_page entry;
    uint8_t *data;
    size_t bytes;
} sample;

static void
make_sample(sample *s)
{
    memset(s, 0, sizeof *s);
    describe(&s->d);
    esdm__records_init(&s->records, 1);
    s->entry = (esdm_meta_page){
        .page = 3, .dataset = 5, .records = RECORDS, .absolute = true, .rank = 1, .box = s->box};
    for (uint32_t i = 0; i < RECORDS; i++) {
        esdm__fragment f;
        make_fragment(&s->d, i, &f);
        const esdm__record item = {.sequence = i,
                                   .raw_bytes = f.raw_bytes,
                                   .stored_bytes = f.stored_bytes,
                                   .position = f.position,
                                   .pack = f.pack,
                                   .head_bytes = f.head_bytes,
                                   .outline_bytes = (uint16_t) f.outline_bytes,
                                   .kind = f.kind};
        const uint64_t bounds[2] = {f.box.lo[0], f.box.lo[0] + f.box.n[0]};
        const uint8_t *data = f.outline != NULL ? f.outline : f.inline_data;
        assert_true(esdm__records_add(&s->records, bounds, NULL, &item, data));
        if (f.elsewhere.source != NULL)
            assert_true(esdm__records_set_elsewhere(&s->records, i, &f.elsewhere));
        if (f.statistics.class != ESDM__CLASS_NONE)
            assert_true(esdm__records_set_statistics(&s->records, i, &f.statistics));
        s->order[i] = RECORDS - 1 - i;
        s->entry.raw_bytes += f.raw_bytes;
        s->entry.stored_bytes += f.kind <= ESDM__KIND_CONSTANT ? f.stored_bytes : 0;
        s->box[1] = bounds[1];
    }
    assert_int_equal(
        esdm__page_encode(&s->records, s->order, RECORDS, true, &s->data, &s->bytes, NULL),
        ESDM_OK);
}

static void
clear_sample(sample *s)
{
    esdm__records_clear(&s->records);
    forget(&s->d);
    free(s->data);
}

static void
test_page_kinds__all_kinds_come_back(void **state)
{
    (void) state;
    sample s;
    esdm__page *page = NULL;
    esdm_error err = {0};
    make_sample(&s);
    assert_int_equal(s.data[16], 5);
    assert_int_equal(s.data[18] & 56, 56);
    if (esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < RECORDS; i++) {
        esdm__fragment f;
        esdm__fragment expected;
        esdm__records_fragment(&page->records, i, &f);
        make_fragment(&s.d, s.order[i], &expected);
        assert_same(&f, &expected);
    }
    esdm__page_unref(page);
    clear_sample(&s);
}

/* As older programs do it with versions that they do not know. */
static void
test_page_kinds__older_versions_have_no_kinds(void **state)
{
    (void) state;
    sample s;
    esdm__page *page = NULL;
    esdm_error err = {0};
    make_sample(&s);
    for (uint8_t version = 3; version < 5; version++) { /* 4: no outlines */
        s.data[16] = version;
        uint64_t checksum = esdm__checksum(s.data + 16, s.bytes - 16);
        memcpy(s.data + 8, &checksum, sizeof checksum);
        assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    }
    clear_sample(&s);
}

/* Outlines are given, taken and refused; a page whose outlines are gone is one of version 4. */
static void
test_page_kinds__outlines_come_and_go(void **state)
{
    (void) state;
    static uint8_t longest[ESDM__PAGE_OUTLINE_MAX + 1];
    sample s;
    esdm__page *page = NULL;
    esdm__fragment f;
    make_sample(&s);
    assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, NULL), ESDM_OK);
    uint32_t at = 0;
    while (page->records.items[at].pack == NULL)
        at++;
    assert_false(esdm__records_set_outline(&page->records, at, longest, sizeof longest));
    assert_true(
        esdm__records_set_outline(&page->records, at, longest, (uint32_t) sizeof longest - 1));
    esdm__records_fragment(&page->records, at, &f);
    assert_int_equal(f.outline_bytes, ESDM__PAGE_OUTLINE_MAX);
    assert_memory_equal(f.outline, longest, f.outline_bytes);
    for (int i = 0; i < 1000; i++) { /* as fragments move from far to far: in place of its own */
        longest[7] = (uint8_t) i;
        assert_true(esdm__records_set_outline(&page->records, at, longest, 16384));
        esdm__records_fragment(&page->records, at, &f);
        assert_memory_equal(f.outline, longest, 16384);
    }
    uint32_t given = 0; /* as many as a page has room for */
    do {
        assert_true(esdm__records_set_outline(&page->records, at, NULL, 0));
        given++;
    } while (given < 1000 && esdm__records_set_outline(&page->records, at, longest, 16384));
    assert_true(given > 1 && given < ESDM__PAGE_INLINE_MAX / 16384u);
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_true(esdm__records_set_outline(&page->records, i, NULL, 0));
    esdm__records_fragment(&page->records, at, &f);
    assert_true(f.outline == NULL && f.outline_bytes == 0);
    free(s.data);
    for (uint32_t i = 0; i < RECORDS; i++)
        s.order[i] = i;
    assert_int_equal(
        esdm__page_encode(&page->records, s.order, RECORDS, true, &s.data, &s.bytes, NULL),
        ESDM_OK);
    assert_int_equal(s.data[16], 4);
    esdm__page_unref(page);
    clear_sample(&s);
}

/* The stored form of version 5, to the byte: what is written once stays readable. */
static void
test_page_kinds__outlines_keep_their_form(void **state)
{
    (void) state;
    static const uint32_t order[] = {0, 1, 2};
    static const uint64_t box[] = {0, 300};
    esdm__records r;
    uint8_t *data = NULL;
    size_t bytes = 0;
    esdm__page *page = NULL;
    esdm__records_init(&r, 1);
    for (uint64_t i = 0; i < 3; i++) { /* one of raw data, none, a head */
        const uint64_t bounds[] = {100 * i, 100 * i + 100};
        const esdm__record item = {.sequence = i,
                                   .raw_bytes = 2 << 20,
                                   .stored_bytes = (2 << 20) + 80,
                                   .position = i << 22,
                                   .pack = &pack,
                                   .head_bytes = 80,
                                   .codec_ids = {i == 2 ? 4 : 0},
                                   .outline_bytes = (uint16_t) (i == 0   ? 8
                                                                : i == 1 ? 0
                                                                         : sizeof outline)};
        assert_true(
            esdm__records_add(&r, bounds, NULL, &item, item.outline_bytes > 0 ? outline : NULL));
    }
    assert_int_equal(esdm__page_encode(&r, order, 3, false, &data, &bytes, NULL), ESDM_OK);
    static const uint8_t stored[] = {
        0x45, 0x53, 0x44, 0x4d, 0x50, 0x41, 0x47, 0x45, 0xcb, 0x32, 0xe7, 0xbb, 0x59, 0x32,
        0x81, 0xed, 0x05, 0x00, 0x20, 0x00, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
        0x6c, 0x00, 0x00, 0x00, 0x01, 0x07, 0x73, 0x63, 0x72, 0x61, 0x74, 0x63, 0x68, 0x04,
        0x61, 0x61, 0x2d, 0x31, 0x00, 0x00, 0xc8, 0x01, 0x00, 0x64, 0x00, 0x00, 0x00, 0x02,
        0x00, 0x80, 0x80, 0x80, 0x01, 0x00, 0x00, 0xd0, 0x80, 0x80, 0x01, 0x00, 0x00, 0x01,
        0x00, 0x01, 0x00, 0xe0, 0xfe, 0xff, 0x01, 0x00, 0x00, 0x50, 0x00, 0x01, 0x00, 0x00,
        0x08, 0x01, 0x10, 0x0f, 0x56, 0x77, 0x68, 0x61, 0x74, 0x20, 0x61, 0x20, 0x72, 0x77,
        0x68, 0x61, 0x74, 0x20, 0x61, 0x20, 0x72, 0x65, 0x61, 0x64, 0x65, 0x72, 0x20, 0x6e,
        0x65, 0x65, 0x64, 0x73, 0x20, 0x6f, 0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x74, 0x61,
        0x62, 0x6c, 0x65, 0x20, 0x6f, 0x66, 0x20, 0x62, 0x6c, 0x6f, 0x63, 0x6b, 0x73, 0x00};
    assert_int_equal(bytes, sizeof stored);
    assert_memory_equal(data, stored, sizeof stored);
    const esdm_meta_page entry = {.page = 1,
                                  .dataset = 1,
                                  .records = 3,
                                  .added = 1,
                                  .raw_bytes = 3 * (2 << 20),
                                  .stored_bytes = 3 * ((2 << 20) + 80),
                                  .rank = 1,
                                  .box = box};
    assert_int_equal(esdm__page_decode(&entry, stored, sizeof stored, &page, NULL), ESDM_OK);
    for (uint32_t i = 0; i < 3; i++) {
        esdm__fragment f;
        esdm__records_fragment(&page->records, i, &f);
        assert_int_equal(f.outline_bytes, r.items[i].outline_bytes);
        assert_int_equal(f.position, i << 22);
        assert_true((f.outline != NULL) == (i != 1));
        if (f.outline != NULL)
            assert_memory_equal(f.outline, outline, f.outline_bytes);
    }
    esdm__page_unref(page);
    esdm__records_clear(&r);
    free(data);
}

static void
test_page_kinds__nonsense_does_no_harm(void **state)
{
    (void) state;
    rng r = {5};
    size_t accepted = 0;
    sample s;
    make_sample(&s);
    for (size_t bit = 0; bit < 8 * s.bytes; bit++) {
        esdm__page *page;
        s.data[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, NULL), ESDM_ECORRUPT);
        s.data[bit / 8] ^= (uint8_t) (1u << (bit % 8));
    }
    for (int round = 0; round < 20000; round++) {
        size_t bytes = s.bytes - (rng_below(&r, 4) == 0 ? rng_below(&r, s.bytes - 32) : 0);
        uint8_t *copy = malloc(bytes);
        memcpy(copy, s.data, bytes);
        for (uint64_t n = 1 + rng_below(&r, 3); n > 0; n--)
            copy[16 + rng_below(&r, bytes - 16)] = (uint8_t) rng_below(&r, 256);
        uint64_t checksum = esdm__checksum(copy + 16, bytes - 16);
        memcpy(copy + 8, &checksum, sizeof checksum);
        esdm__page *page;
        esdm_status st = esdm__page_decode(&s.entry, copy, bytes, &page, NULL);
        assert_true(st == ESDM_OK || st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
        for (uint32_t i = 0; st == ESDM_OK && i < page->records.count; i++) {
            esdm__fragment f;
            esdm__foreign foreign;
            esdm__decoding decoding;
            esdm__link link;
            esdm__link_map map;
            esdm__records_fragment(&page->records, i, &f);
            (void) !esdm__foreign_get(f.elsewhere.source, &foreign, NULL);
            (void) !esdm__link_get(f.elsewhere.source, &link, NULL);
            (void) !esdm__decoding_get(f.elsewhere.decoding, &decoding, NULL);
            (void) !esdm__link_map_get(f.elsewhere.decoding, &map, NULL);
        }
        accepted += st == ESDM_OK;
        if (st == ESDM_OK)
            esdm__page_unref(page);
        free(copy);
    }
    assert_true(accepted > 0);
    clear_sample(&s);
}

static void
test_page_kinds__descriptions_come_back(void **state)
{
    (void) state;
    descriptions d;
    esdm__foreign file;
    esdm__decoding decoding;
    esdm__link link;
    esdm__link_map map;
    esdm_error err = {0};
    describe(&d);
    assert_int_equal(esdm__foreign_get(&d.foreign[0], &file, NULL), ESDM_OK);
    assert_string_equal(file.location, "/data/a.nc");
    assert_int_equal(file.bytes, 123456);
    assert_int_equal(file.mtime_ns, INT64_C(1700000000123456789));
    assert_string_equal(file.identity, "17:1700000001");
    assert_int_equal(file.tag_bytes, 3);
    assert_int_equal(esdm__foreign_get(&d.foreign[1], &file, NULL), ESDM_OK);
    assert_true(file.bytes == UINT64_MAX && file.mtime_ns == INT64_MIN);
    assert_int_equal(esdm__decoding_get(&d.decoding, &decoding, NULL), ESDM_OK);
    assert_true(decoding.rank == 2 && decoding.chunk[1] == 20 && decoding.nfilters == 2);
    assert_true(decoding.filters[0].id == 2 && decoding.filters[1].parameter_bytes == 4);
    assert_string_equal(decoding.filters[1].name, "hdf5");
    assert_int_equal(esdm__link_get(&d.link, &link, NULL), ESDM_OK);
    assert_string_equal(link.dataset, "/ocean/thetao");
    assert_int_equal(link.number, 7);
    assert_int_equal(esdm__link_map_get(&d.map, &map, NULL), ESDM_OK);
    assert_true(map.axes[0].here == UINT32_MAX && map.axes[1].first == -365);
    assert_true(map.axes[2].step == -1 && map.scale == 0.5 && map.offset == -273.15);

    assert_int_equal(esdm__foreign_get(&d.link, &file, &err), ESDM_ECORRUPT);
    d.buffers[0].data[0] = 2; /* of a newer program */
    assert_int_equal(esdm__foreign_get(&d.foreign[0], &file, &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "newer ESDM"));
    forget(&d);
}

typedef struct seen {
    const descriptions *d;
    uint32_t count;
} seen;

static bool
compare(const esdm__fragment *f, void *user)
{
    seen *v = user;
    esdm__fragment expected;
    make_fragment(v->d, f->box.lo[0] / 100, &expected);
    assert_same(f, &expected);
    v->count++;
    return true;
}

/* Commits, merging of pages, and gathering the pages of ranks keep all that records have; plans
 * outlive the pages. */
static void
test_page_kinds__merging_keeps_everything(void **state)
{
    (void) state;
    descriptions d;
    store s = {0};
    describe(&d);
    esdm__index *index = esdm__index_new(1);
    for (uint64_t i = 0; i < 40; i++) { /* a commit each: pages are merged on the way */
        esdm__fragment f;
        make_fragment(&d, i, &f);
        if (f.kind == UNKNOWN_KIND) { /* nobody here writes such */
            f.kind = ESDM__KIND_LINK;
            f.elsewhere.source = &d.link;
        }
        if (f.pack != NULL)
            f.pack = esdm__index_pack(index, f.pack->target, f.pack->pack);
        if (f.elsewhere.source != NULL)
            f.elsewhere.source =
                esdm__index_source(index, f.elsewhere.source->role, f.elsewhere.source->data,
                                   f.elsewhere.source->bytes);
        if (f.elsewhere.decoding != NULL)
            f.elsewhere.decoding =
                esdm__index_source(index, f.elsewhere.decoding->role, f.elsewhere.decoding->data,
                                   f.elsewhere.decoding->bytes);
        assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        uint64_t *merge = NULL;
        size_t nmerge = 0;
        esdm__page_set set = {0};
        assert_int_equal(esdm__index_merge_candidates(index, &merge, &nmerge, NULL), ESDM_OK);
        assert_int_equal(esdm__index_encode(index, merge, nmerge, &set, NULL), ESDM_OK);
        uint64_t first = store_publish(&s, &set);
        esdm__index_committed(index, &set, first, s.snapshot);
        esdm__page_set_clear(&set);
        free(merge);
    }
    esdm__box all = {.rank = 1, .n = {4000}};
    esdm__plan plan = {0};
    assert_int_equal(esdm__index_resolve(index, &all, &plan, NULL), ESDM_OK);
    esdm__index_free(index);
    assert_int_equal(plan.npieces, 40);
    for (size_t i = 0; i < plan.npieces; i++) {
        esdm__fragment f = *plan.pieces[i].fragment;
        seen v = {.d = &d};
        if (f.box.lo[0] / 100 % 6 == 5)
            assert_true(f.kind == ESDM__KIND_LINK && same_source(f.elsewhere.source, &d.link));
        else
            (void) compare(&f, &v);
    }
    esdm__plan_clear(&plan);

    /* The same page through a collector, as with several ranks; unknown kinds too. */
    sample one;
    make_sample(&one);
    free(one.data);
    assert_int_equal(
        esdm__page_encode(&one.records, one.order, RECORDS, false, &one.data, &one.bytes, NULL),
        ESDM_OK);
    const esdm_meta_new_page page = {.records = RECORDS,
                                     .rank = 1,
                                     .box = one.box,
                                     .raw_bytes = one.entry.raw_bytes,
                                     .stored_bytes = one.entry.stored_bytes,
                                     .data = one.data,
                                     .bytes = one.bytes};
    esdm__collector *collector = esdm__collector_new(1);
    esdm__page_set set = {0};
    assert_int_equal(esdm__collector_add(collector, &page, NULL), ESDM_OK);
    assert_int_equal(esdm__collector_take(collector, &set, NULL), ESDM_OK);
    assert_int_equal(set.npages, 1);
    assert_int_equal(set.pages[0].stored_bytes, one.entry.stored_bytes);
    one.entry.absolute = false;
    esdm__page *decoded = NULL;
    assert_int_equal(
        esdm__page_decode(&one.entry, set.pages[0].data, set.pages[0].bytes, &decoded, NULL),
        ESDM_OK);
    seen v = {.d = &one.d};
    (void) esdm__page_visit(decoded, compare, &v);
    assert_int_equal(v.count, RECORDS);
    esdm__page_unref(decoded);
    esdm__page_set_clear(&set);
    esdm__collector_free(collector);
    clear_sample(&one);
    store_clear(&s);
    forget(&d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_kinds__all_kinds_come_back),
        cmocka_unit_test(test_page_kinds__older_versions_have_no_kinds),
        cmocka_unit_test(test_page_kinds__outlines_come_and_go),
        cmocka_unit_test(test_page_kinds__outlines_keep_their_form),
        cmocka_unit_test(test_page_kinds__nonsense_does_no_harm),
        cmocka_unit_test(test_page_kinds__descriptions_come_back),
        cmocka_unit_test(test_page_kinds__merging_keeps_everything),
    };
    return cmocka_run_group_tests_name("layout.page_kinds", tests, NULL, NULL);
}
