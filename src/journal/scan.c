/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/commit.h"
#include "journal/whole.h"

typedef struct pack_listing {
    esdm__scan *scan;
    uint64_t *bytes; /* of the journals' packs; owned */
    uint32_t *target;
    uint32_t at;
    bool failed;
} pack_listing;

static bool
add_name(char ***names, size_t *count, const char *name)
{
    if (!esdm__array_grow(names, *count, sizeof **names))
        return false;
    (*names)[*count] = strdup(name);
    return (*names)[(*count)++] != NULL;
}

static bool
note_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    pack_listing *to = user;
    esdm__scan *scan = to->scan;
    (void) modified_ns;
    if (!esdm__is_site_pack(name)) {
        to->failed = !add_name(&scan->data_packs, &scan->ndata_packs, name);
    } else if (strncmp(name, ESDM__JOURNAL_PACKS, sizeof ESDM__JOURNAL_PACKS - 1) == 0) {
        to->failed = !esdm__array_grow(&to->bytes, scan->npacks, sizeof *to->bytes) ||
                     !esdm__array_grow(&to->target, scan->npacks, sizeof *to->target);
        if (!to->failed) {
            to->bytes[scan->npacks] = bytes;
            to->target[scan->npacks] = to->at;
            to->failed = !add_name(&scan->packs, &scan->npacks, name);
        }
    }
    return !to->failed;
}

static esdm_status
list_packs(pack_listing *to, esdm_error *err)
{
    const esdm__scan *scan = to->scan;
    for (size_t i = 0; i < scan->ntargets; i++) {
        to->at = (uint32_t) i;
        esdm_status status =
            scan->targets[i].plugin->pack_list(scan->targets[i].handle, NULL, note_pack, to, err);
        if (status != ESDM_OK)
            return esdm__error_prefix(err, status, "target '%s'", scan->targets[i].name);
        if (to->failed)
            return esdm__error_nomem(err, scan->npacks * sizeof *scan->packs, "names of packs");
    }
    return ESDM_OK;
}

/* ---- records -------------------------------------------------------------------------------- */

static bool
note_record(esdm__scan *scan, const esdm__journal_record *record, uint32_t target, uint32_t pack,
            uint64_t position)
{
    if (!esdm__array_grow(&scan->refs, scan->nrefs, sizeof *scan->refs))
        return false;
    esdm__journal_ref *ref = &scan->refs[scan->nrefs++];
    *ref = (esdm__journal_ref){.kind = record->kind,
                               .time_ns = record->time_ns,
                               .target = target,
                               .pack = pack,
                               .position = position,
                               .bytes = record->bytes};
    memcpy(ref->uuid, record->uuid, sizeof ref->uuid);
    esdm__cursor body = record->body;
    if (record->kind == ESDM__JOURNAL_COMMIT) {
        ref->snapshot = esdm__cursor_varint(&body);
        ref->part_of = esdm__cursor_varint(&body);
    } else if (record->kind == ESDM__JOURNAL_CLONE) {
        ref->snapshot = esdm__cursor_varint(&body);
    } else if (record->kind == ESDM__JOURNAL_PART) {
        ref->part_of = esdm__cursor_varint(&body);
    }
    return true;
}

/* What cannot be read is counted: the others tell what they can. */
static esdm_status
read_pack(esdm__scan *scan, uint32_t target, uint32_t pack, uint64_t bytes, esdm_error *err)
{
    esdm__journal_reader reader;
    esdm__journal_record record;
    uint64_t position;
    bool end = false;
    esdm_error why = {0};
    esdm__journal_reader_init(&reader, &scan->targets[target], scan->packs[pack], bytes);
    esdm_status status = ESDM_OK;
    while (status == ESDM_OK) {
        status = esdm__journal_read(&reader, &record, &position, &end, &why);
        if (status != ESDM_OK || end)
            break;
        if (!note_record(scan, &record, target, pack, position))
            status = esdm__error_nomem(&why, scan->nrefs * sizeof *scan->refs, "the journal");
    }
    scan->damaged += reader.damaged;
    scan->newer += reader.newer;
    esdm__journal_reader_clear(&reader);
    if (status == ESDM_ENOMEM) {
        if (err != NULL)
            *err = why;
        return status;
    }
    scan->unread += status != ESDM_OK && status != ESDM_ENOENT;
    return ESDM_OK;
}

static int
by_container(const void *a, const void *b)
{
    const esdm__journal_ref *x = a;
    const esdm__journal_ref *y = b;
    int order = strcmp(x->uuid, y->uuid);
    if (order != 0)
        return order;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->snapshot != y->snapshot)
        return x->snapshot < y->snapshot ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

esdm_status
esdm__scan_targets(const esdm__journal_target *targets, size_t ntargets, esdm__scan *ret_scan,
                   esdm_error *err)
{
    *ret_scan = (esdm__scan){.targets = targets, .ntargets = ntargets};
    pack_listing to = {.scan = ret_scan};
    esdm_status status = list_packs(&to, err);
    for (uint32_t i = 0; i < ret_scan->npacks && status == ESDM_OK; i++)
        /* There is one for each pack. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        status = read_pack(ret_scan, to.target[i], i, to.bytes[i], err);
    free(to.bytes);
    free(to.target);
    if (ret_scan->nrefs > 0)
        qsort(ret_scan->refs, ret_scan->nrefs, sizeof *ret_scan->refs, by_container);
    if (ret_scan->ndata_packs > 0)
        qsort(ret_scan->data_packs, ret_scan->ndata_packs, sizeof(char *), by_name);
    return status;
}

void
esdm__scan_clear(esdm__scan *scan)
{
    for (size_t i = 0; i < scan->npacks; i++)
        free(scan->packs[i]);
    for (size_t i = 0; i < scan->ndata_packs; i++)
        free(scan->data_packs[i]);
    free(scan->packs);
    free(scan->data_packs);
    free(scan->refs);
    *scan = (esdm__scan){0};
}

bool
esdm__scan_has_pack(const esdm__scan *scan, const char *name)
{
    return scan->ndata_packs > 0 &&
           bsearch(&name, scan->data_packs, scan->ndata_packs, sizeof(char *), by_name) != NULL;
}

esdm_status
esdm__scan_load(const esdm__scan *scan, const esdm__journal_ref *ref,
                esdm__journal_record *ret_record, uint8_t **ret_data, esdm_error *err)
{
    const esdm__journal_target *target = &scan->targets[ref->target];
    uint8_t *data = malloc((size_t) ref->bytes);
    if (data == NULL)
        return esdm__error_nomem(err, (size_t) ref->bytes, "the journal");
    const esdm_range range = {.position = ref->position, .bytes = ref->bytes, .buffer = data};
    esdm_status status =
        target->plugin->pack_read(target->handle, scan->packs[ref->pack], &range, 1, err);
    if (status == ESDM_OK &&
        esdm__journal_look(data, (size_t) ref->bytes, ret_record) != ESDM__JOURNAL_FOUND)
        status = esdm__error_set(err, ESDM_ECORRUPT, "a record of the journal in pack '%s' changed",
                                 scan->packs[ref->pack]);
    if (status != ESDM_OK) {
        free(data);
        return status;
    }
    *ret_data = data;
    return ESDM_OK;
}
