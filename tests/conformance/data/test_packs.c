/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Writing, reading, listing and removing packs. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/ids.h"
#include "data.h"

typedef struct seen {
    size_t count;
    size_t stop_after;
    uint64_t bytes;
    uint64_t oldest_ns;
    const char *prefix;
} seen;

static bool
see(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    seen *s = user;
    assert_memory_equal(name, s->prefix, strlen(s->prefix));
    s->bytes += bytes;
    s->oldest_ns = modified_ns < s->oldest_ns ? modified_ns : s->oldest_ns;
    return ++s->count != s->stop_after;
}

static void
expect_list(fixture *f, const char *prefix, size_t count, uint64_t bytes)
{
    seen s = {.prefix = prefix != NULL ? prefix : "", .oldest_ns = UINT64_MAX};
    assert_ok(data_plugin()->pack_list(f->target, prefix, see, &s, &place_error));
    assert_int_equal(s.count, count);
    assert_int_equal(s.bytes, bytes);
    if (count > 0)
        assert_true(s.oldest_ns + UINT64_C(3600000000000) > esdm__now_ns());
}

static void *
create(fixture *f, const char *name)
{
    void *pack = NULL;
    assert_ok(data_plugin()->pack_create(f->target, name, &pack, &place_error));
    assert_non_null(pack);
    return pack;
}

static void
test_pack__pieces_are_appended_in_order(void **state)
{
    fixture *f = *state;
    void *pack = create(f, PACK "1");
    uint8_t data[5000];
    uint64_t end = 0;
    /* Counts around the sizes of batches, with empty pieces among them. */
    static const size_t counts[] = {1, 2, 0, 63, 64, 65, 128, 1500};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        esdm_iov pieces[1500];
        size_t bytes = 0;
        for (size_t i = 0; i < counts[c]; i++) {
            size_t length = i % 4;
            data_fill(data + bytes, 1, end + bytes, length);
            pieces[i] = (esdm_iov){.data = length > 0 ? data + bytes : NULL, .bytes = length};
            bytes += length;
        }
        uint64_t position = UINT64_MAX;
        assert_ok(data_plugin()->pack_append(pack, pieces, counts[c], &position, &place_error));
        assert_int_equal(position, end);
        end += bytes;
    }
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
    data_check_pack(f->target, PACK "1", 1, 0, (size_t) end);
}

static void
test_pack__name_is_taken_once(void **state)
{
    fixture *f = *state;
    skip_if(place_current_kind->bucket);
    void *second = NULL;
    void *pack = create(f, PACK "1");
    assert_status(data_plugin()->pack_create(f->target, PACK "1", &second, &place_error),
                  ESDM_EEXIST);
    assert_null(second);
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
    assert_status(data_plugin()->pack_create(f->target, PACK "1", &second, &place_error),
                  ESDM_EEXIST);
}

/* After a failed seal. */
static void
drop_failed(void *pack)
{
    if (data_plugin()->pack_recall != NULL)
        (void) !data_plugin()->pack_discard(pack, NULL);
}

/* A target that would have to ask a server says it at the end. */
static void
test_pack__name_is_taken_once_in_the_end(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->bucket);
    data_make_pack(f->target, PACK "1", 1, 1000);
    for (size_t bytes = 0; bytes <= (size_t) 20 << 20; bytes += (size_t) 10 << 20) {
        void *second = create(f, PACK "1");
        uint8_t *data = calloc(1, bytes + 1);
        uint64_t position = 0;
        esdm_iov piece = {.data = data, .bytes = bytes};
        assert_ok(data_plugin()->pack_append(second, &piece, 1, &position, &place_error));
        assert_status(data_plugin()->pack_seal(second, &place_error), ESDM_EEXIST);
        drop_failed(second);
        free(data);
    }
    data_check_pack(f->target, PACK "1", 1, 0, 1000);
    expect_list(f, NULL, 1, 1000);
}

static void
test_pack__discarded_pack_is_gone(void **state)
{
    fixture *f = *state;
    skip_if(data_plugin()->pack_discard == NULL);
    assert_ok(data_plugin()->pack_discard(NULL, &place_error));
    for (size_t bytes = 0; bytes <= (size_t) 20 << 20; bytes += (size_t) 10 << 20) {
        void *pack = create(f, PACK "1");
        uint8_t *data = calloc(1, bytes + 1);
        uint64_t position = 0;
        esdm_iov piece = {.data = data, .bytes = bytes};
        assert_ok(data_plugin()->pack_append(pack, &piece, 1, &position, &place_error));
        assert_ok(data_plugin()->pack_discard(pack, &place_error));
        free(data);
        expect_list(f, NULL, 0, 0);
    }
}

/* Left by a killed writer: found under the pack's name, and removed by it. */
static void
test_pack__unsealed_pack_is_listed_and_removed(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    enum { BYTES = 20 << 20 };
    void *pack = create(f, PACK "1");
    uint8_t *data = calloc(1, BYTES);
    uint64_t position = 0;
    esdm_iov piece = {.data = data, .bytes = BYTES};
    seen s = {.prefix = PACK "1", .oldest_ns = UINT64_MAX};
    assert_ok(data_plugin()->pack_append(pack, &piece, 1, &position, &place_error));
    free(data);
    /* MinIO lists uploads by their whole names alone. */
    assert_ok(data_plugin()->pack_list(f->target, PACK "1", see, &s, &place_error));
    assert_int_equal(s.count, 1);
    /* Unlike a killed writer's, its parts are still under way: a server may store one afterwards.
     */
    for (int attempt = 0; attempt < 1000 && s.count > 0; attempt++) {
        assert_ok(data_plugin()->pack_remove(f->target, PACK "1", &place_error));
        s.count = 0;
        assert_ok(data_plugin()->pack_list(f->target, PACK "1", see, &s, &place_error));
        if (s.count > 0)
            usleep(100000);
    }
    expect_list(f, NULL, 0, 0);
    if (data_plugin()->pack_seal(pack, &place_error) != ESDM_OK)
        drop_failed(pack);
}

static void
test_pack__wrong_names_are_refused(void **state)
{
    static const char *const names[] = {"",
                                        "x",
                                        "../../../../../../tmp/0000000000000000000000000000000000",
                                        "aabbccddeeff0011223344556677889/-1",
                                        "AABBCCDDEEFF00112233445566778899-1-1",
                                        "aabbccddeeff00112233445566778899-1-1\n"};
    fixture *f = *state;
    size_t entries = place_count_entries(f->place.folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *pack = NULL;
        uint8_t byte = 0;
        esdm_range range = {.position = 0, .bytes = 1, .buffer = &byte};
        assert_status(data_plugin()->pack_create(f->target, names[i], &pack, &place_error),
                      ESDM_EINVAL);
        assert_status(data_plugin()->pack_read(f->target, names[i], &range, 1, &place_error),
                      ESDM_EINVAL);
        assert_status(data_plugin()->pack_remove(f->target, names[i], &place_error), ESDM_EINVAL);
    }
    assert_int_equal(place_count_entries(f->place.folder), entries);
}

static void
test_pack__ranges_with_gaps_and_overlaps(void **state)
{
    enum { BYTES = 300000, RANGES = 200 };
    fixture *f = *state;
    data_make_pack(f->target, PACK "2", 2, BYTES);
    uint8_t *memory = malloc((size_t) BYTES * 4);
    assert_non_null(memory);
    esdm_range ranges[RANGES];
    static const uint64_t steps[] = {0, 1, 10, 4096, 8191, 8192, 8193, 20000};
    static const uint64_t sizes[] = {1, 0, 100, 5000, 3};
    for (int round = 0; round < 40; round++) {
        uint64_t position = (uint64_t) round;
        size_t count = 0;
        size_t used = 0;
        while (count < RANGES) {
            uint64_t size = sizes[(count + (size_t) round) % 5];
            position += steps[(count * 7 + (size_t) round) % 8];
            if (position + size > BYTES || used + size > BYTES * 4)
                break;
            ranges[count++] =
                (esdm_range){.position = position, .bytes = size, .buffer = memory + used};
            used += size;
            if (round % 3 != 0) /* else the next one overlaps */
                position += size;
        }
        memset(memory, 0, used);
        assert_ok(data_plugin()->pack_read(f->target, PACK "2", ranges, count, &place_error));
        for (size_t i = 0; i < count; i++) {
            const uint8_t *got = ranges[i].buffer;
            for (uint64_t k = 0; k < ranges[i].bytes; k++)
                assert_int_equal(got[k], data_byte(2, ranges[i].position + k));
        }
    }
    assert_ok(data_plugin()->pack_read(f->target, PACK "2", NULL, 0, &place_error));
    free(memory);
}

static void
test_pack__reading_past_the_end_is_corrupt(void **state)
{
    fixture *f = *state;
    uint8_t data[200];
    data_make_pack(f->target, PACK "3", 3, 100);
    static const struct {
        uint64_t position, bytes;
    } wrong[] = {{100, 1}, {99, 2}, {0, 101}, {UINT64_MAX - 10, 5}, {UINT64_C(1) << 62, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        esdm_range ranges[2] = {
            {.position = 0, .bytes = 10, .buffer = data},
            {.position = wrong[i].position, .bytes = wrong[i].bytes, .buffer = data + 50}};
        assert_status(data_plugin()->pack_read(f->target, PACK "3", ranges, 2, &place_error),
                      ESDM_ECORRUPT);
        assert_non_null(strstr(place_error.message, PACK "3"));
    }
    esdm_range range = {.position = 0, .bytes = 1, .buffer = data};
    assert_status(data_plugin()->pack_read(f->target, PACK "4", &range, 1, &place_error),
                  ESDM_ENOENT);
}

static double
monotonic_s(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void
test_pack__end_in_the_background_is_told(void **state)
{
    fixture *f = *state;
    skip_if(data_plugin()->pack_begin_seal == NULL || data_plugin()->pack_has_ended == NULL);
    for (size_t bytes = 1; bytes <= (size_t) 20 << 20; bytes += (size_t) 20 << 20 >> 1) {
        void *pack = create(f, PACK "1");
        uint8_t *data = malloc(bytes);
        double ended_s = 0;
        uint64_t position;
        data_fill(data, 1, 0, bytes);
        assert_ok(
            data_plugin()->pack_append(pack, &(esdm_iov){data, bytes}, 1, &position, &place_error));
        double before_s = monotonic_s();
        data_plugin()->pack_begin_seal(pack);
        while (!data_plugin()->pack_has_ended(pack, &ended_s))
            (void) usleep(1000);
        /* A clock of milliseconds is good enough. */
        assert_true(ended_s == 0 || (ended_s > before_s - 0.01 && ended_s < monotonic_s() + 0.01));
        assert_ok(data_plugin()->pack_seal(pack, &place_error));
        data_check_pack(f->target, PACK "1", 1, 0, bytes);
        assert_ok(data_plugin()->pack_remove(f->target, PACK "1", &place_error));
        free(data);
    }
}

/* Sizes around those at which targets begin to do something else with a pack. */
static void
test_pack__unsealed_pack_is_recalled(void **state)
{
    fixture *f = *state;
    static const size_t sizes[] = {1, 65536, 100001, 3 << 20, 12 << 20};
    if (data_plugin()->pack_recall == NULL)
        skip();
    void *pack = create(f, PACK "1");
    uint8_t *data = malloc(12 << 20);
    uint8_t *back = malloc(12 << 20);
    uint64_t end = 0;
    assert_true(data != NULL && back != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t position;
        data_fill(data, 1, end, sizes[i]);
        assert_ok(data_plugin()->pack_append(pack, &(esdm_iov){data, sizes[i]}, 1, &position,
                                             &place_error));
        end += sizes[i];
        size_t from = sizes[i] / 3; /* from the end: also what went away long ago */
        size_t bytes = i > 0 ? sizes[i] - from + sizes[i - 1] : 1;
        assert_ok(data_plugin()->pack_recall(pack, end - bytes, bytes, back, &place_error));
        data_fill(data, 1, end - bytes, bytes);
        assert_memory_equal(data, back, bytes);
    }
    assert_ok(data_plugin()->pack_recall(pack, 0, 70000, back, &place_error));
    data_fill(data, 1, 0, 70000);
    assert_memory_equal(data, back, 70000);
    assert_true(data_plugin()->pack_recall(pack, end, 1, back, &place_error) != ESDM_OK);
    assert_ok(data_plugin()->pack_discard(pack, &place_error));
    expect_list(f, NULL, 0, 0);
    free(data);
    free(back);
}

static void
test_pack__unsealed_pack_is_readable(void **state)
{
    fixture *f = *state;
    skip_if((data_plugin()->flags & ESDM_DATA_READ_UNSEALED) == 0);
    void *pack = create(f, PACK "6");
    uint8_t data[1000];
    for (int i = 0; i < 20; i++) {
        uint64_t position = 0;
        data_fill(data, 6, (uint64_t) i * sizeof data, sizeof data);
        esdm_iov piece = {.data = data, .bytes = sizeof data};
        assert_ok(data_plugin()->pack_append(pack, &piece, 1, &position, &place_error));
        data_check_pack(f->target, PACK "6", 6, 0, (size_t) position + sizeof data);
    }
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
}

static void
test_pack__large_append_in_one_piece(void **state)
{
    enum { BYTES = place_by_build(20, 70) << 20 };
    fixture *f = *state;
    uint8_t *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i += 4096)
        data[i] = data_byte(7, i);
    void *pack = create(f, PACK "7");
    uint64_t position = 0;
    esdm_iov pieces[2] = {{.data = "head", .bytes = 4}, {.data = data, .bytes = BYTES}};
    assert_ok(data_plugin()->pack_append(pack, pieces, 2, &position, &place_error));
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
    uint8_t back = 0;
    for (size_t i = 0; i < BYTES; i += (size_t) 4096 * 100) {
        esdm_range range = {.position = 4 + i, .bytes = 1, .buffer = &back};
        assert_ok(data_plugin()->pack_read(f->target, PACK "7", &range, 1, &place_error));
        assert_int_equal(back, data_byte(7, i));
    }
    free(data);
}

static void
test_pack__sync_works_or_says_so(void **state)
{
    fixture *f = *state;
    void *pack = create(f, PACK "8");
    uint64_t position = 0;
    esdm_iov piece = {.data = "abc", .bytes = 3};
    esdm_status expected = place_current_kind->durable ? ESDM_OK : ESDM_ENOTSUP;
    assert_status(data_plugin()->pack_sync(pack, &place_error), expected);
    assert_ok(data_plugin()->pack_append(pack, &piece, 1, &position, &place_error));
    assert_status(data_plugin()->pack_sync(pack, &place_error), expected);
    assert_status(data_plugin()->pack_sync(pack, &place_error), expected);
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
}

/* Pages of a file that are in memory; 0 for one that lies in memory anyhow. */
static size_t
pages_in_memory(const char *path, size_t bytes)
{
    static unsigned char map[4096];
    struct statfs fs;
    size_t found = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstatfs(fd, &fs) == 0);
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mincore(memory, bytes, map), 0);
    for (size_t i = 0; i < bytes / (size_t) sysconf(_SC_PAGESIZE); i++)
        found += map[i] & 1;
    (void) munmap(memory, bytes);
    (void) close(fd);
    return fs.f_type == 0x01021994 ? 0 : found; /* tmpfs */
}

static void
test_pack__is_forgotten_by_the_memory(void **state)
{
    fixture *f = *state;
    const esdm_data_plugin *plugin = data_plugin();
    static uint8_t data[1 << 20];
    const esdm_iov piece = {.data = data, .bytes = sizeof data};
    uint64_t position = 0;
    skip_if(plugin->pack_evict == NULL);
    void *pack = create(f, PACK "e");
    data_fill(data, 1, 0, sizeof data);
    assert_ok(plugin->pack_append(pack, &piece, 1, &position, &place_error));
    assert_ok(plugin->pack_sync(pack, &place_error));
    assert_ok(plugin->pack_seal(pack, &place_error));
    data_check_pack(f->target, PACK "e", 1, 0, sizeof data);
    assert_ok(plugin->pack_evict(f->target, PACK "e", &place_error));
    if (strcmp(place_current->name, "posix") == 0) {
        char path[400];
        (void) snprintf(path, sizeof path, "%s/%.2s/%s", f->place.dir, PACK, PACK "e");
        assert_int_equal(pages_in_memory(path, sizeof data), 0);
    }
    data_check_pack(f->target, PACK "e", 1, 0, sizeof data);
    assert_status(plugin->pack_evict(f->target, PACK "f", &place_error), ESDM_ENOENT);
}

/* ---- listing -------------------------------------------------------------------------------- */

static void
test_pack__lists_by_prefix(void **state)
{
    fixture *f = *state;
    expect_list(f, NULL, 0, 0);
    for (int i = 0; i < 40; i++) {
        char name[80];
        (void) snprintf(name, sizeof name, "%02x%030x-9-%x", i % 4, i % 8, i);
        data_make_pack(f->target, name, 0, (size_t) i);
    }
    expect_list(f, NULL, 40, 780);
    expect_list(f, "", 40, 780);
    expect_list(f, "0", 40, 780);
    expect_list(f, "02", 10, 200);
    expect_list(f, "02000000000000000000000000000006-", 5, 110);
    expect_list(f, "02000000000000000000000000000006-9-6", 1, 6);
    expect_list(f, "ff", 0, 0);
    seen s = {.prefix = "", .stop_after = 3};
    assert_ok(data_plugin()->pack_list(f->target, NULL, see, &s, &place_error));
    assert_int_equal(s.count, 3);
}

static void
test_pack__usage_sums_packs(void **state)
{
    fixture *f = *state;
    esdm_target_usage usage = {0};
    data_make_pack(f->target, PACK "1", 1, 1000);
    data_make_pack(f->target, PACK "2", 1, 500);
    assert_ok(data_plugin()->usage(f->target, &usage, &place_error));
    assert_int_equal(usage.packs, 2);
    assert_int_equal(usage.used_bytes, 1500);
    if (usage.total_bytes > 0)
        assert_true(usage.free_bytes <= usage.total_bytes);
    assert_ok(data_plugin()->pack_remove(f->target, PACK "1", &place_error));
    assert_ok(data_plugin()->usage(f->target, &usage, &place_error));
    assert_int_equal(usage.packs, 1);
    assert_int_equal(usage.used_bytes, 500);
}

static void
test_pack__removed_pack_is_gone(void **state)
{
    fixture *f = *state;
    uint8_t byte = 0;
    esdm_range range = {.position = 0, .bytes = 1, .buffer = &byte};
    data_make_pack(f->target, PACK "1", 1, 1000);
    data_check_pack(f->target, PACK "1", 1, 0, 1000);
    assert_ok(data_plugin()->pack_remove(f->target, PACK "1", &place_error));
    assert_status(data_plugin()->pack_read(f->target, PACK "1", &range, 1, &place_error),
                  ESDM_ENOENT);
    assert_ok(data_plugin()->pack_remove(f->target, PACK "1", &place_error));
    expect_list(f, NULL, 0, 0);
}

/* What one handle makes and another one removes, as a writer and esdm-gc do. */
static void
check_listed(void *target, const bool *there, size_t count)
{
    seen s = {.prefix = PACK, .oldest_ns = UINT64_MAX};
    size_t expected = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        expected += there[i];
        bytes += there[i] ? i * 7 : 0;
    }
    assert_ok(data_plugin()->pack_list(target, NULL, see, &s, &place_error));
    assert_int_equal(s.count, expected);
    assert_int_equal(s.bytes, bytes);
}

static void
test_pack__packs_come_and_go(void **state)
{
    enum { PACKS = 300 };
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    void *other = NULL;
    bool there[PACKS] = {false};
    uint32_t random = 1;
    assert_ok(data_plugin()->open(&f->place.config, &other, &place_error));
    for (unsigned step = 0; step < 900; step++) {
        char name[80];
        random = random * 1664525u + 1013904223u;
        unsigned n = (random >> 8) % (step < 300 ? 40 : PACKS);
        bool clearing = step % 150 > 125; /* until nothing is left, now and then */
        for (unsigned i = clearing ? 0 : n; i < (clearing ? PACKS : n + 1); i++) {
            (void) snprintf(name, sizeof name, PACK "%x", i);
            if (there[i])
                assert_ok(
                    data_plugin()->pack_remove(step % 2 ? other : f->target, name, &place_error));
            else if (!clearing)
                data_make_pack(f->target, name, i, (size_t) i * 7);
            there[i] = !clearing && !there[i];
        }
        if (step % 25 == 0 || clearing)
            check_listed(other, there, PACKS);
    }
    for (unsigned i = 0; i < PACKS; i++) {
        char name[80];
        (void) snprintf(name, sizeof name, PACK "%x", i);
        if (there[i] && i > 0)
            data_check_pack(other, name, i, 0, (size_t) i * 7);
    }
    check_listed(f->target, there, PACKS);
    data_plugin()->close(other);
}

const struct CMUnitTest data_pack_tests[] = {
    WITH_PLACE(test_pack__pieces_are_appended_in_order),
    WITH_PLACE(test_pack__name_is_taken_once),
    WITH_PLACE(test_pack__name_is_taken_once_in_the_end),
    WITH_PLACE(test_pack__discarded_pack_is_gone),
    WITH_PLACE(test_pack__unsealed_pack_is_listed_and_removed),
    WITH_PLACE(test_pack__wrong_names_are_refused),
    WITH_PLACE(test_pack__ranges_with_gaps_and_overlaps),
    WITH_PLACE(test_pack__reading_past_the_end_is_corrupt),
    WITH_PLACE(test_pack__end_in_the_background_is_told),
    WITH_PLACE(test_pack__unsealed_pack_is_recalled),
    WITH_PLACE(test_pack__unsealed_pack_is_readable),
    WITH_PLACE(test_pack__large_append_in_one_piece),
    WITH_PLACE(test_pack__sync_works_or_says_so),
    WITH_PLACE(test_pack__is_forgotten_by_the_memory),
    WITH_PLACE(test_pack__lists_by_prefix),
    WITH_PLACE(test_pack__usage_sums_packs),
    WITH_PLACE(test_pack__removed_pack_is_gone),
    WITH_PLACE(test_pack__packs_come_and_go),
};
const size_t data_pack_count = sizeof data_pack_tests / sizeof data_pack_tests[0];
