/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_FAKE_TARGETS_H
#define ESDM_TESTS_FAKE_TARGETS_H

/** @file A session of targets that keep no data and fail when they are told to; its packs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "io/packs/pack_set.h"
#include "io/session/models.h"

/* What was done, and what shall fail. */
static struct {
    unsigned created;
    unsigned synced;
    unsigned sealed;
    unsigned removed;
    unsigned discarded;
    unsigned mirrors_sealed;
    unsigned mirrors_discarded;
    unsigned begun;
    bool full;
    bool fail_sync;
    bool fail_seal;
    bool fail_mirror_sync;
    bool fail_mirror_seal;
    uint64_t recalled; /* bytes */
} did;

static inline esdm_status
fake_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    (void) target;
    (void) name;
    (void) err;
    did.created++;
    *ret_pack = calloc(1, sizeof(uint64_t));
    return ESDM_OK;
}

static inline esdm_status
fake_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position, esdm_error *err)
{
    uint64_t *length = pack;
    (void) err;
    *ret_position = *length;
    for (size_t i = 0; i < niov; i++)
        *length += iov[i].bytes;
    return ESDM_OK;
}

static inline esdm_status
fake_sync(void *pack, esdm_error *err)
{
    (void) pack;
    did.synced++;
    return did.fail_sync ? esdm__error_set(err, ESDM_EIO, "the disk is broken") : ESDM_OK;
}

static inline esdm_status
fake_seal(void *pack, esdm_error *err)
{
    free(pack);
    did.sealed++;
    return did.fail_seal ? esdm__error_set(err, ESDM_EIO, "the server is gone") : ESDM_OK;
}

static inline esdm_status
fake_remove(void *target, const char *name, esdm_error *err)
{
    (void) target;
    (void) name;
    (void) err;
    did.removed++;
    return ESDM_OK;
}

static inline bool
fake_is_full(void *pack)
{
    (void) pack;
    return did.full;
}

static inline esdm_status
fake_discard(void *pack, esdm_error *err)
{
    (void) err;
    free(pack);
    did.discarded++;
    return ESDM_OK;
}

/* One that keeps the handle of what it could not seal. */
static inline esdm_status
fake_seal_or_keep(void *pack, esdm_error *err)
{
    if (did.fail_seal)
        return esdm__error_set(err, ESDM_EIO, "the server is gone");
    return fake_seal(pack, err);
}

static inline esdm_status
fake_discard_mirror(void *pack, esdm_error *err)
{
    did.mirrors_discarded++;
    (void) err;
    free(pack);
    return ESDM_OK;
}

static inline esdm_status
mirror_seal_or_keep(void *pack, esdm_error *err)
{
    if (!did.fail_mirror_seal)
        free(pack);
    return did.fail_mirror_seal ? esdm__error_set(err, ESDM_EIO, "the other server is gone")
                                : ESDM_OK;
}

static inline esdm_status
fake_recall(void *pack, uint64_t position, size_t bytes, void *buffer, esdm_error *err)
{
    (void) pack;
    (void) position;
    (void) err;
    memset(buffer, 0, bytes);
    did.recalled += bytes;
    return ESDM_OK;
}

static inline void
fake_begin_seal(void *pack)
{
    (void) pack;
    did.begun++;
}

static inline esdm_status
mirror_sync(void *pack, esdm_error *err)
{
    (void) pack;
    return did.fail_mirror_sync ? esdm__error_set(err, ESDM_EIO, "the other disk is broken")
                                : ESDM_OK;
}

static inline esdm_status
mirror_seal(void *pack, esdm_error *err)
{
    free(pack);
    did.mirrors_sealed++;
    return did.fail_mirror_seal ? esdm__error_set(err, ESDM_EIO, "the other server is gone")
                                : ESDM_OK;
}

static esdm_data_plugin mirror_plugin = {.flags = ESDM_DATA_READ_UNSEALED,
                                         .pack_create = fake_create,
                                         .pack_append = fake_append,
                                         .pack_sync = mirror_sync,
                                         .pack_seal = mirror_seal,
                                         .pack_remove = fake_remove};
static esdm_data_plugin plugin = {.pack_create = fake_create,
                                  .pack_append = fake_append,
                                  .pack_sync = fake_sync,
                                  .pack_seal = fake_seal,
                                  .pack_remove = fake_remove};
static esdm_data_plugin third_plugin = {.flags = ESDM_DATA_READ_UNSEALED,
                                        .pack_create = fake_create,
                                        .pack_append = fake_append,
                                        .pack_sync = mirror_sync,
                                        .pack_seal = mirror_seal,
                                        .pack_remove = fake_remove};
static esdm__site site;
static esdm__target targets[3] = {
    {.plugin = &plugin, .name = "fake", .place = (char *) "fake", .state = ESDM__TARGET_OPEN},
    {.plugin = &mirror_plugin,
     .name = "other",
     .place = (char *) "other",
     .cost = 1,
     .state = ESDM__TARGET_OPEN},
    {.plugin = &third_plugin,
     .name = "third",
     .place = (char *) "third",
     .state = ESDM__TARGET_OPEN}};
static esdm_session session = {.site = &site, .targets = targets, .ntargets = 1};

static esdm__pack_owner owner = {.session = &session, .uuid = "00112233445566778899aabbccddeeff"};

static inline esdm__pack_set *
new_packs(uint32_t flags, esdm__durability durability, uint64_t pack_bytes)
{
    memset(&did, 0, sizeof did);
    plugin.flags = flags;
    plugin.pack_is_full = NULL;
    plugin.pack_discard = NULL;
    plugin.pack_recall = NULL;
    plugin.pack_seal = fake_seal;
    plugin.pack_begin_seal = NULL;
    mirror_plugin.flags = ESDM_DATA_READ_UNSEALED;
    mirror_plugin.pack_seal = mirror_seal;
    mirror_plugin.pack_discard = NULL;
    mirror_plugin.pack_recall = NULL;
    session.ntargets = 1;
    for (size_t i = 0; i < 3; i++) {
        atomic_store(&targets[i].full, false);
        atomic_store(&targets[i].again_ns, 0);
        atomic_store(&targets[i].pause_ns, 0);
    }
    plugin.pack_append = fake_append;
    mirror_plugin.pack_append = fake_append;
    owner.durable = false;
    owner.moved = NULL;
    site.durability = durability;
    site.engine.pack_bytes = pack_bytes;
    if (session.models == NULL) {
        session.models = esdm__models_new(3);
        assert_non_null(session.models);
    }
    esdm__pack_set *packs = esdm__pack_set_new(&owner);
    assert_non_null(packs);
    return packs;
}

static inline void
append_copied(esdm__pack_set *packs)
{
    static const bool allowed[2] = {true, true};
    const esdm__pack_hint hint = {.copies = 2, .allowed = allowed, .cheap = true};
    esdm__place place;
    assert_int_equal(
        esdm__pack_set_append(packs, &hint, &(esdm_iov){"12345678", 8}, 1, &place, NULL), ESDM_OK);
}

/* With a copy of each pack on the other target. */
static inline esdm__pack_set *
new_copied_packs(void)
{
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_SYSTEM, 1000);
    session.ntargets = 2;
    append_copied(packs);
    assert_int_equal(did.created, 2);
    return packs;
}

static inline esdm_status
append(esdm__pack_set *packs)
{
    esdm__place place;
    esdm_error error;
    return esdm__pack_set_append(packs, &(esdm__pack_hint){0}, &(esdm_iov){"12345678", 8}, 1,
                                 &place, &error);
}

static inline esdm_status
note_move(void *user, const char *pack, const char *from, const char *to, esdm_error *err)
{
    (void) user, (void) pack, (void) from, (void) to, (void) err;
    return ESDM_OK;
}

#endif
