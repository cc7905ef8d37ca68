/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Writes valid inputs for the fuzz targets: FOLDER/blob/, FOLDER/page/, FOLDER/document/. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/chain.h"
#include "esdm/usertypes.h"
#include "foreign.h"
#include "layout/index.h"
#include "model/container.h"
#include "plugin/registry.h"
#ifdef WITH_GRIB
#include "seeds_grib.h"
#endif

static esdm_error err;

static void
ok(esdm_status status)
{
    if (status != ESDM_OK) {
        fprintf(stderr, "fuzz_seeds: %s\n", err.message);
        exit(1);
    }
}

/* Pieces of one input file. */
typedef struct piece {
    const void *data;
    size_t bytes;
} piece;

static void
save(const char *folder, const char *target, int number, const piece *pieces, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, target);
    (void) mkdir(folder, 0777); /* they exist already, or fopen() tells */
    (void) mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/seed-%d", folder, target, number);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    for (size_t i = 0; i < count; i++)
        fwrite(pieces[i].data, 1, pieces[i].bytes, file);
    fclose(file);
}

/* A byte for the number of blocks, head, payload: see fuzz_blob.c. */
static void
save_blob(const char *folder, int *number, const esdm__blob *blob, size_t second_bytes)
{
    size_t blocks =
        (blob->head_bytes - ESDM__BLOB_HEADER_BYTES - second_bytes) / ESDM__BLOB_ENTRY_BYTES;
    uint8_t first = (uint8_t) blocks;
    const piece pieces[] = {
        {&first, 1}, {blob->head, blob->head_bytes}, {blob->payload, blob->payload_bytes}};
    if (blocks < 16)
        save(folder, "blob", (*number)++, pieces, 3);
}

/* Of every chain for numbers and every effort, exact and rounded. */
static void
save_number_blobs(const char *folder, int *number)
{
    static const char *const chains[] = {"field", "shuffle+zstd", "bitround+shuffle+lz4",
                                         "bitround+field+zstd"};
    static const uint64_t shape[3] = {3, 20, 31};
    static const esdm_codec_accuracy accuracy = {.absolute = 0.01,
                                                 .relative = 0.001,
                                                 .finest = 0.001,
                                                 .exact_below = -(double) INFINITY,
                                                 .exact_above = (double) INFINITY};
    static float raw[3 * 20 * 31];
    for (int i = 0; i < 3 * 20 * 31; i++)
        raw[i] = i % 97 == 5 ? NAN : 280 + (float) (i % 31 * (i % 31)) / 16 + (float) (i % 7) / 64;
    for (int i = 0; i < 4 * 3 * 2 + 2; i++) { /* the last ones in layers */
        esdm__chain chain;
        esdm__blob blob;
        uint16_t second = 0;
        ok(esdm__chain_parse(chains[i < 24 ? i / 6 : 0], &chain, &err));
        const esdm__blob_numbers numbers = {.chain = &chain,
                                            .type = ESDM_TYPE_FLOAT32,
                                            .element_bytes = 4,
                                            .rank = 3,
                                            .shape = shape,
                                            .raw = raw,
                                            .accuracy = i % 2 == 0 ? &accuracy : NULL,
                                            .coarse = i < 24 ? NULL : &accuracy,
                                            .conserved = (double) INFINITY,
                                            .effort = (esdm_codec_effort) (1 + i / 2 % 3)};
        ok(esdm__blob_encode_numbers(&numbers, &blob, NULL, &err));
        if (blob.head[8] >= 3)
            memcpy(&second, blob.head + 24, sizeof second);
        save_blob(folder, number, &blob, second);
        esdm__blob_clear(&blob);
    }
}

static void
save_blobs(const char *folder)
{
    static const char *const chains[] = {"none", "lz4"};
    static const size_t sizes[] = {1, 4000, 100000};
    static int32_t raw[25000];
    int number = 0;
    for (int i = 0; i < 25000; i++)
        raw[i] = i / 7;
    for (size_t c = 0; c < 2; c++) {
        for (size_t s = 0; s < 3; s++) {
            esdm__chain chain;
            esdm__blob blob;
            ok(esdm__chain_parse(chains[c], &chain, &err));
            ok(esdm__blob_encode(&chain, ESDM_TYPE_INT32, 4, 1, raw, sizes[s], &blob, &err));
            save_blob(folder, &number, &blob, 0);
            esdm__blob_clear(&blob);
        }
    }
    save_number_blobs(folder, &number);
}

/* @param outlined whether every second one in a pack has an outline: of a raw one, and a head. */
static void
add_fragment(esdm__index *index, uint32_t rank, uint64_t i, bool outlined)
{
    uint8_t data[32] = {(uint8_t) i};
    uint8_t outline[80] = "ESDMFRAG";
    esdm__fragment fragment = {.raw_bytes = 32, .stored_bytes = 32};
    fragment.box.rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        fragment.box.lo[d] = d == 0 ? i * 2 : 0;
        fragment.box.n[d] = 2;
    }
    if (i % 3 == 0) {
        fragment.inline_data = data;
    } else {
        fragment.pack = esdm__index_pack(index, "disk", i % 2 ? "0123-abc-1" : "0123-abc-2");
        fragment.position = i * 4096;
        fragment.stored_bytes = 4096;
        fragment.head_bytes = 80;
        fragment.codec_ids[0] = i % 4 != 0;
        fragment.outline = outlined && i % 4 < 2 ? outline : NULL;
        fragment.outline_bytes = fragment.outline == NULL ? 0 : i % 4 != 0 ? 80 : 8;
    }
    ok(esdm__index_add_pending(index, &fragment, &err));
}

/* What the directory says, then the page: see fuzz_page.c. */
static void
save_pages(const char *folder)
{
    static const uint64_t counts[] = {1, 5, 400};
    int number = 0;
    for (uint32_t rank = 0; rank <= 4; rank++) {
        for (size_t c = 0; c < 6; c++) { /* the last three with outlines */
            esdm__page_set set;
            esdm__index *index = esdm__index_new(rank);
            for (uint64_t i = 0; i < (rank == 0 ? 1 : counts[c % 3]); i++)
                add_fragment(index, rank, i, c >= 3);
            ok(esdm__index_encode(index, NULL, 0, &set, &err));
            for (size_t p = 0; p < set.npages; p++) {
                uint64_t box[8] = {0};
                memcpy(box, set.pages[p].box, 2 * rank * sizeof *box);
                const uint64_t sums[] = {set.pages[p].raw_bytes, set.pages[p].stored_bytes};
                const piece pieces[] = {{sums, sizeof sums},
                                        {box, sizeof box},
                                        {set.pages[p].data, set.pages[p].bytes}};
                save(folder, "page", number++, pieces, 3);
            }
            esdm__page_set_clear(&set);
            esdm__index_free(index);
        }
    }
}

/* Types of every class, with values. */
static void
add_types(esdm_group *root)
{
    esdm_container *container = esdm_group_container(root);
    esdm_type flag, raw, rows, all;
    esdm_vlen row = {2, (float[]){1, 2}};
    struct {
        int8_t flag;
        char *text;
        esdm_vlen row;
    } value = {1, (char *) "text", row};
    ok(esdm_enum_create(root, "flag", ESDM_TYPE_INT8, &flag, &err));
    ok(esdm_enum_add(container, flag, "on", &(int8_t){1}, &err));
    ok(esdm_opaque_create(root, "raw", 4, &raw, &err));
    ok(esdm_vlen_create(root, "rows", ESDM_TYPE_FLOAT32, &rows, &err));
    ok(esdm_compound_create(root, "all", sizeof value, &all, &err));
    ok(esdm_compound_add(container, all, "flag", 0, flag, 0, NULL, &err));
    ok(esdm_compound_add(container, all, "text", 8, ESDM_TYPE_STRING, 0, NULL, &err));
    ok(esdm_compound_add(container, all, "row", 16, rows, 1, (const uint32_t[]){1}, &err));
    esdm_attributes *list = esdm_group_attributes(root);
    ok(esdm_attribute_set(list, "all", all, 1, &value, &err));
    ok(esdm_attribute_set(list, "raw", raw, 1, "abcd", &err));
}

/* Chooser of the type, number, stored form: see fuzz_values.c. */
static void
save_values(const char *folder)
{
    static const uint8_t row[] = {6, 1, 1, 1, 0, 1, 0, 1, 2, 3, 1, 2, 'x'};
    static const uint8_t texts[] = {2, 2, 2, 3, 'a', 'b', 0, 1, 1};
    const piece pieces[] = {{row, sizeof row}};
    const piece others[] = {{texts, sizeof texts}};
    save(folder, "values", 0, pieces, 1);
    save(folder, "values", 1, others, 1);
}

/* Containers with a bit of everything. */
static void
save_documents(const char *folder)
{
    static const double numbers[] = {1.5, -0.0, 1e300};
    const char *const texts[] = {"a text", "\xff not UTF-8"};
    esdm_dimension *dims[2];
    esdm_group *group;
    esdm_dataset *dataset;
    for (int number = 0; number < 3; number++) {
        char *text;
        size_t bytes;
        esdm_container *container = esdm__container_new("seed");
        if (!container)
            exit(1);
        container->writable = true;
        if (number == 1) {
            esdm_group *root = esdm_container_root(container);
            ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], &err));
            ok(esdm_dimension_create(root, "x", 100, &dims[1], &err));
            ok(esdm_group_create(root, "sub", &group, &err));
            ok(esdm_dataset_create(group, "v", ESDM_TYPE_FLOAT64, 2, dims, &dataset, &err));
            ok(esdm_dataset_set_chunk(dataset, (const uint64_t[]){1, 50}, &err));
            ok(esdm_dataset_set_fill(dataset, &numbers[2], &err));
            ok(esdm_dataset_set_hint(dataset, "netcdf.deflate", "1", &err));
            esdm_attributes *list = esdm_dataset_attributes(dataset);
            ok(esdm_attribute_set(list, "numbers", ESDM_TYPE_FLOAT64, 3, numbers, &err));
            ok(esdm_attribute_set(list, "texts", ESDM_TYPE_STRING, 2, texts, &err));
            ok(esdm_attribute_set(list, "units", ESDM_TYPE_CHAR, 3, "m\xff\0", &err));
            ok(esdm_dataset_create(root, "names", ESDM_TYPE_STRING, 1, dims, &dataset, &err));
        }
        if (number == 2)
            add_types(esdm_container_root(container));
        ok(esdm__document_write(container, &text, &bytes, &err));
        const piece pieces[] = {{text, bytes}};
        save(folder, "document", number, pieces, 1);
        free(text);
        esdm__container_free(container);
    }
}

/* Two bytes of a status, then an answer; or a credentials file. */
static void
save_answers(const char *folder)
{
    static const char *const texts[] = {
        "\x01\x93<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>No &amp; "
        "no&#33;</Message><Region>eu-west-1</Region><RequestId>1</RequestId></Error>",
        "\x00\xc8<ListBucketResult xmlns=\"http://s3\"><IsTruncated>true</IsTruncated>"
        "<Contents><Key>a%2Fb</Key><Size>5</Size><ETag>&quot;1&quot;</ETag></Contents>"
        "<!-- x --><Prefix/><![CDATA[y]]></ListBucketResult>",
        "[default]\naws_access_key_id = AK\naws_secret_access_key=S\n[profile b]\r\n# c\n"};
    for (int i = 0; i < 3; i++)
        save(folder, "s3", i,
             (piece[]){{texts[i], i == 1 ? 2 + strlen(texts[i] + 2) : strlen(texts[i])}}, 1);
}

/* What effort balanced has for blocks that are not small, and effort fast beside it: absolute and
 * relative bounds, and nothing lost; with and without masked numbers; a few numbers far off. */
static void
save_large_fields(const char *folder, int number)
{
    enum { ROWS = 50, COLUMNS = 100 };
    static const float fill = 1e20F;
    static const double bounds[3][2] = {{0.05, 1e30}, {1e30, 0.001}, {1e30, 1e30}};
    const uint64_t shape[2] = {ROWS, COLUMNS};
    const esdm_codec_plugin *codec = esdm__plugin_codec_by_id(4);
    static float raw[ROWS * COLUMNS];
    static uint8_t encoded[sizeof raw + 1000];
    for (int i = 0; i < 3 * 2 * 2; i++) {
        const double *bound = bounds[i % 3];
        const esdm_codec_accuracy accuracy = {
            .absolute = bound[0] < 1e30 ? bound[0] : (double) INFINITY,
            .relative = bound[1] < 1e30 ? bound[1] : (double) INFINITY,
            .exact_below = -(double) INFINITY,
            .exact_above = (double) INFINITY,
            .sum_bound = (double) INFINITY,
            .exact_values = &fill,
            .exact_count = 1};
        const esdm_codec_input input = {.type = ESDM_TYPE_FLOAT32,
                                        .element_bytes = 4,
                                        .rank = 2,
                                        .shape = shape,
                                        .effort =
                                            i / 6 == 0 ? ESDM_EFFORT_BALANCED : ESDM_EFFORT_FAST,
                                        .accuracy = i % 3 < 2 ? &accuracy : NULL};
        size_t bytes = 0;
        for (int k = 0; k < ROWS * COLUMNS; k++) {
            float wave = 20 * sinf((float) (k % COLUMNS) / 9) * cosf((float) (k / COLUMNS) / 7);
            raw[k] = 280 + wave + (float) (k * 37 % 101) / 200 + (k % 997 == 3 ? 300 : 0);
            if (i / 3 % 2 == 1 && k / COLUMNS % 13 < 5 && k % COLUMNS > 30)
                raw[k] = fill;
        }
        ok(codec->encode(&input, raw, sizeof raw, encoded, sizeof encoded, &bytes, &err));
        const uint8_t head[4] = {ESDM_TYPE_FLOAT32, 1, (ROWS * COLUMNS - 1) & 255,
                                 (ROWS * COLUMNS - 1) >> 8};
        if (bytes > 0)
            save(folder, "field", number++, (piece[]){{head, sizeof head}, {encoded, bytes}}, 2);
    }
}

/* What to decode into, then a block: see fuzz_field.c. Every effort and coder, exact and within a
 * bound; in the last round without differences; then what is predicted from coarse to fine, and
 * that in parts. */
static void
save_fields(const char *folder)
{
    enum { BYTES = 8000, TYPES = 4, EFFORTS = 3 };
    static const int32_t types[TYPES] = {ESDM_TYPE_INT16, ESDM_TYPE_INT32, ESDM_TYPE_FLOAT32,
                                         ESDM_TYPE_FLOAT64};
    static const double bounds[2][2] = {{1e30, 0.01}, {0.5, 1e30}}; /* absolute, relative */
    const esdm_codec_plugin *codec = esdm__plugin_codec_by_id(4);
    static uint8_t raw[BYTES];
    static uint8_t encoded[BYTES + 1000];
    for (int i = 0; i < 3 * EFFORTS * TYPES; i++) {
        int32_t type = types[i % TYPES];
        int round = i / TYPES / EFFORTS;
        const esdm_codec_accuracy accuracy = {.absolute = bounds[i % 2][0],
                                              .relative = bounds[i % 2][1],
                                              .finest = 1e-3,
                                              .exact_below = -(double) INFINITY,
                                              .exact_above = (double) INFINITY,
                                              .sum_bound = (double) INFINITY};
        uint32_t size = (uint32_t) esdm_type_size(type);
        const uint64_t shape[3] = {2, 20, BYTES / 40 / size};
        esdm_codec_input input = {.type = type,
                                  .element_bytes = size,
                                  .rank = 3,
                                  .shape = shape,
                                  .effort = (esdm_codec_effort) (1 + i / TYPES % EFFORTS),
                                  .accuracy = round == 1 ? &accuracy : NULL};
        uint16_t last = (uint16_t) (sizeof raw / size - 1);
        size_t bytes = 0;
        for (size_t k = 0; k < sizeof raw; k++)
            raw[k] = round == 2         ? (uint8_t) (k % size == size - 1 ? k / size % 7 * 37 : 64)
                     : k / 400 % 5 == 0 ? 0xFF
                                        : (uint8_t) (k >> 6);
        ok(codec->encode(&input, raw, sizeof raw, encoded, sizeof encoded, &bytes, &err));
        const uint8_t head[4] = {(uint8_t) type, 1, (uint8_t) last, (uint8_t) (last >> 8)};
        save(folder, "field", i, (piece[]){{head, sizeof head}, {encoded, bytes}}, 2);
    }
    /* What levels suit. */
    static float smooth[128 * 192];
    const esdm_codec_accuracy coarse = {.absolute = 0.5,
                                        .relative = (double) INFINITY,
                                        .exact_below = -(double) INFINITY,
                                        .exact_above = (double) INFINITY,
                                        .sum_bound = (double) INFINITY};
    esdm_codec_input input = {.type = ESDM_TYPE_FLOAT32,
                              .element_bytes = 4,
                              .rank = 2,
                              .shape = (const uint64_t[]){128, 192},
                              .effort = ESDM_EFFORT_ARCHIVE,
                              .accuracy = &coarse};
    size_t bytes = 0;
    for (int k = 0; k < 128 * 192; k++)
        smooth[k] = 20 * sinf((float) (k % 192) / 29) * cosf((float) (k / 192) / 17);
    ok(codec->encode(&input, smooth, sizeof smooth, encoded, sizeof encoded, &bytes, &err));
    const uint8_t head[4] = {ESDM_TYPE_FLOAT32, 1, (128 * 192 - 1) & 255, (128 * 192 - 1) >> 8};
    save(folder, "field", 3 * EFFORTS * TYPES, (piece[]){{head, sizeof head}, {encoded, bytes}}, 2);

    /* What is in parts: 16 times as many elements as the head says. */
    enum { ROWS = 640, COLUMNS = 1024, FEW = ROWS * COLUMNS / 16 - 1 };
    static float large[ROWS * COLUMNS];
    static uint8_t many[1 << 18];
    input.shape = (const uint64_t[]){ROWS, COLUMNS};
    for (int k = 0; k < ROWS * COLUMNS; k++)
        large[k] = 20 * sinf((float) (k % COLUMNS) / 290) * cosf((float) (k / COLUMNS) / 170);
    ok(codec->encode(&input, large, sizeof large, many, sizeof many, &bytes, &err));
    const uint8_t of_parts[4] = {ESDM_TYPE_FLOAT32, 2, FEW & 255, FEW >> 8};
    save(folder, "field", 3 * EFFORTS * TYPES + 1,
         (piece[]){{of_parts, sizeof of_parts}, {many, bytes}}, 2);
    save_large_fields(folder, 3 * EFFORTS * TYPES + 2);
}

/* Codec, type, what to do, rank and shape, then a block: see fuzz_foreign.c. */
static void
save_foreign(const char *folder)
{
    static const int32_t types[] = {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, ESDM_TYPE_INT16};
    const uint64_t shape[] = {4, 5, 60};
    const esdm_codec_accuracy accuracy = {.absolute = 0.5,
                                          .relative = (double) INFINITY,
                                          .exact_below = -(double) INFINITY,
                                          .exact_above = (double) INFINITY,
                                          .sum_bound = (double) INFINITY};
    static uint8_t raw[4 * 5 * 60 * 8];
    static uint8_t encoded[sizeof raw + 64];
    int number = 0;
    for (uint8_t c = 0; foreign_codecs[c] != NULL; c++) {
        for (int i = 0; i < 6; i++) {
            esdm_codec_input input = {.type = types[i % 3],
                                      .element_bytes = (uint32_t) esdm_type_size(types[i % 3]),
                                      .rank = 3,
                                      .shape = shape,
                                      .accuracy = i < 3 ? NULL : &accuracy};
            size_t bytes = 0;
            for (size_t k = 0; k < 4 * 5 * 60; k++) {
                float single = k % 97 == 5 ? (float) NAN : 280.0F + (float) k / 64;
                double value = (double) single;
                int16_t whole = (int16_t) k;
                const void *from = i % 3 == 0   ? (const void *) &single
                                   : i % 3 == 1 ? (const void *) &value
                                                : &whole;
                memcpy(raw + k * input.element_bytes, from, input.element_bytes);
            }
            ok(foreign_codecs[c]->encode(&input, raw, 4 * 5 * 60 * input.element_bytes, encoded,
                                         sizeof encoded, &bytes, &err));
            const uint8_t head[8] = {c, (uint8_t) types[i % 3], 1, 3, 3, 4, 59, 0};
            if (bytes > 0)
                save(folder, "foreign", number++, (piece[]){{head, sizeof head}, {encoded, bytes}},
                     2);
        }
    }
}

#ifdef WITH_GRIB
static const char *messages_folder;

static void
save_message(const void *head, size_t head_bytes, const void *message, size_t bytes)
{
    static int number;
    save(messages_folder, "messages", number++, (piece[]){{head, head_bytes}, {message, bytes}}, 2);
}
#endif

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    save_blobs(argv[1]);
    save_pages(argv[1]);
    save_documents(argv[1]);
    save_values(argv[1]);
    save_answers(argv[1]);
    save_fields(argv[1]);
    save_foreign(argv[1]);
#ifdef WITH_GRIB
    messages_folder = argv[1];
    seeds_grib(save_message);
#endif
    return 0;
}
