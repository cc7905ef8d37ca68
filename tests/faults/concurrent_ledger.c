/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What values concurrent_worker writes, and which of them may be seen. */

#include "faults/concurrent_ledger.h"

#include <fcntl.h>
#include <sys/mman.h>

ledger *shared;

void
map_ledger(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0 && ftruncate(fd, sizeof *shared) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(shared != MAP_FAILED);
    (void) close(fd);
}

void
add_one(_Atomic uint64_t *counter)
{
    (void) atomic_fetch_add(counter, 1);
}

void
at_least(uint32_t container, uint32_t row, uint64_t sequence)
{
    _Atomic uint64_t *least = &shared->least[container][row];
    uint64_t known = atomic_load(least);
    while (known < sequence && !atomic_compare_exchange_weak(least, &known, sequence))
        ;
}

static void
copy(const _Atomic uint64_t *from, contents *ret)
{
    for (uint32_t row = 0; row < ROWS; row++)
        ret->sequences[row] = atomic_load(&from[row]);
}

void
copy_least(uint32_t container, contents *ret)
{
    copy(shared->least[container], ret);
}

void
copy_begun(uint32_t container, contents *ret)
{
    copy(shared->begun[container], ret);
}

/* ---- values -------------------------------------------------------------------------------- */

static const char *const datasets[] = {"a", "b", "c"};
static const uint64_t columns[] = {COLUMNS, COLUMNS, WIDE};
enum { DATASETS = sizeof datasets / sizeof *datasets, SHARED = 1 };

/* Noise, so that no codec makes it small. */
static int64_t
element(int dataset, uint32_t container, uint32_t row, uint64_t sequence, uint64_t column)
{
    uint64_t part = dataset != SHARED ? container + 1 : 0;
    uint64_t mixed =
        sequence * UINT64_C(0x9E3779B97F4A7C15) + column * UINT64_C(0xBF58476D1CE4E5B9);
    return (int64_t) (part << 60 | (uint64_t) row << 52 | (sequence & 0xffffffff) << 20 |
                      ((mixed >> 40) & 0xfffff));
}

static uint64_t
sequence_of(int64_t value)
{
    return (uint64_t) value >> 20 & 0xffffffff;
}

void
write_sequence(esdm_container *handle, uint32_t container, uint32_t row, uint64_t sequence)
{
    static int64_t data[WIDE];
    esdm_dataspace space;
    for (int d = 0; d < DATASETS; d++) {
        for (uint64_t i = 0; i < columns[d]; i++)
            data[i] = element(d, container, row, sequence, i);
        esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(handle), datasets[d]);
        check(dataset != NULL);
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){1, columns[d]}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT64, data, NULL, ERR));
    }
}

/* The sequence of which all elements of a row are. */
static uint64_t
row_of(const int64_t *data, int dataset, uint32_t container, uint32_t row, const char *name)
{
    uint64_t sequence = sequence_of(data[0]);
    for (uint64_t i = 0; i < columns[dataset]; i++) {
        if (data[i] != element(dataset, container, row, sequence, i))
            die("%s: \"%s\" row %u: element 0 is of %" PRIu64 ", element %" PRIu64 " is %" PRIx64
                " (of %" PRIu64 ")",
                name, datasets[dataset], row, sequence, i, (uint64_t) data[i],
                sequence_of(data[i]));
    }
    return sequence;
}

static void
read_rows(esdm_container *handle, int d, uint32_t first, uint64_t rows, int64_t *data)
{
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(handle), datasets[d]);
    check(dataset != NULL);
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){first, 0}, (uint64_t[]){rows, columns[d]}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT64, data, NULL, ERR));
}

void
read_contents(esdm_container *handle, uint32_t container, const char *name, contents *ret)
{
    static int64_t data[2][ROWS * COLUMNS];
    static int64_t wide[WIDE];
    static uint32_t next; /* row of "c" */
    for (int d = 0; d < 2; d++)
        read_rows(handle, d, 0, ROWS, data[d]);
    next = (next + 7) % ROWS;
    read_rows(handle, 2, next, 1, wide);
    for (uint32_t row = 0; row < ROWS; row++) {
        uint64_t at = (uint64_t) row * COLUMNS;
        uint64_t a = row_of(&data[0][at], 0, container, row, name);
        uint64_t b = row_of(&data[1][at], 1, container, row, name);
        uint64_t c = row == next ? row_of(wide, 2, container, row, name) : a;
        if (a != b || a != c)
            die("%s: row %u is of %" PRIu64 " in \"a\", of %" PRIu64 " in \"b\" and of %" PRIu64
                " in \"c\"",
                name, row, a, b, c);
        if (a % 2 != 0)
            die("%s: row %u is of %" PRIu64 ", which was not committed", name, row, a);
        ret->sequences[row] = a;
    }
}

void
is_legal(const char *name, const contents *seen, const contents *least, const contents *most)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        uint64_t sequence = seen->sequences[row];
        if (sequence < least->sequences[row])
            die("%s: row %u is of %" PRIu64 ", though %" PRIu64 " was committed or seen before it "
                "was opened",
                name, row, sequence, least->sequences[row]);
        if (sequence > most->sequences[row])
            die("%s: row %u is of %" PRIu64 ", though nothing newer than %" PRIu64 " had begun",
                name, row, sequence, most->sequences[row]);
    }
}

void
is_same(const char *name, const contents *seen, const contents *wanted)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        if (seen->sequences[row] != wanted->sequences[row])
            die("%s: row %u is of %" PRIu64 ", and not of %" PRIu64 " as ever", name, row,
                seen->sequences[row], wanted->sequences[row]);
    }
}

bool
read_named(esdm_session *session, const char *name, uint32_t container, contents *ret)
{
    esdm_container *handle = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &handle, ERR);
    if (status == ESDM_ENOENT)
        return false;
    if (status != ESDM_OK)
        die("%s: %s: %s", name, esdm_status_string(status), ERR->message);
    read_contents(handle, container, name, ret);
    ok(esdm_container_close(handle, ERR));
    return true;
}
