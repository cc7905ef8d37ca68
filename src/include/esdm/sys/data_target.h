/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_DATA_TARGET_H
#define ESDM_SYS_DATA_TARGET_H

/**
 * @file
 * Data targets: where packs lie.
 *
 * A pack is an append-only object with one writer. Its name is `<container>-<writer>-<n>` of
 * lower-case hex digits and '-', chosen by the engine, unique for ever, and begins with the 32 hex
 * digits of its container. What was appended never changes. A target knows nothing of fragments.
 *
 * Threads: a target handle is used by many threads at once; a pack handle by one at a time. No
 * engine lock is held during any of these calls; each may block. A plug-in never re-enters ESDM.
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A pack can be read by name while it is still being appended to, up to what was appended. */
#define ESDM_DATA_READ_UNSEALED 0x1u
/** Contents go with the process (tests). */
#define ESDM_DATA_VOLATILE 0x2u
/** What pack_seal() ends survives power loss too; the engine then does without pack_sync(). */
#define ESDM_DATA_SEAL_DURABLE 0x4u
/** The memory of this machine may take appends before the device does, and answer reads in its
 *  place: what they take says little about the device. */
#define ESDM_DATA_CACHED 0x8u

/** One range of a ranged get. */
typedef struct esdm_range {
    uint64_t position; /**< bytes from the start of the pack */
    uint64_t bytes;
    void *buffer; /**< `bytes` long, owned by the caller */
} esdm_range;

typedef struct esdm_target_usage {
    uint64_t total_bytes; /**< 0: unknown */
    uint64_t free_bytes;
    uint64_t used_bytes; /**< by packs of this site */
    uint64_t packs;
} esdm_target_usage;

/** Return false to stop. `name` is borrowed. */
typedef bool (*esdm_pack_visitor)(const char *name, uint64_t bytes, uint64_t modified_ns,
                                  void *user);

/** What open_and_read() tells while it is under way. */
typedef struct esdm_target_opening {
    /** First of all, before any request: others may call pack_read(), and what they read counts
     * when the target is open. It is the caller's from then on: close(), also after a failure. */
    void (*begun)(void *target, void *user);
    /** The target is open; the read may not have ended yet. Not called when that fails. */
    void (*opened)(void *user);
    void *user;
} esdm_target_opening;

typedef struct esdm_data_plugin {
    esdm_plugin base;
    uint32_t flags; /**< ESDM_DATA_* */
    /** What a read costs before its first byte arrives, as bytes that it could have moved instead;
     *  0: next to nothing. The engine asks for this much at once where it has the choice. */
    uint32_t read_bytes;
    /** Calls that pay off to have under way at once, for targets that wait for a network. 0: as
     *  many as there are cores. */
    uint32_t concurrency;

    /**
     * Makes and marks the place (mkfs). Already made by this site: ESDM_OK, nothing changes. A
     * place with foreign content or another site's mark: ESDM_EEXIST, nothing is touched.
     */
    esdm_status (*make)(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                        void *user, esdm_error *err);
    /** Reports every problem, returns the first. Writes nothing. */
    esdm_status (*check)(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                         esdm_error *err);
    /** Removes all packs and the mark, nothing else. Not marked by this site: ESDM_EINVAL. */
    esdm_status (*remove)(const esdm_plugin_config *config, bool dry_run,
                          esdm_plugin_reporter report, void *user, esdm_error *err);

    /** Opens a made target. Must not need write permission. @param ret_target owned, close(). */
    esdm_status (*open)(const esdm_plugin_config *config, void **ret_target, esdm_error *err);
    /** After all its packs were sealed. NULL is accepted. */
    void (*close)(void *target);
    esdm_status (*usage)(void *target, esdm_target_usage *ret_usage, esdm_error *err);

    /** Starts a pack. ESDM_EEXIST (a target that would have to ask for it may find out as late as
     *  pack_seal(), the older pack unharmed), ESDM_EACCES, ESDM_ENOSPC.
     *  @param ret_pack owned, pack_seal(). */
    esdm_status (*pack_create)(void *target, const char *name, void **ret_pack, esdm_error *err);
    /**
     * Appends the pieces in order. On failure the pack's length is as before the call, or the pack
     * is lost: then pack_seal() fails too.
     * @param ret_position of the first byte in the pack.
     */
    esdm_status (*pack_append)(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                               esdm_error *err);
    /** What was appended survives power loss when this returns. ESDM_ENOTSUP: it cannot be, or not
     *  before the pack is sealed. */
    esdm_status (*pack_sync)(void *pack, esdm_error *err);
    /** Ends writing; readers anywhere see the whole pack when it returns. Frees the handle in
     *  every case (but see pack_recall()). NULL is accepted. */
    esdm_status (*pack_seal)(void *pack, esdm_error *err);

    /** Ranged get: fills every range or fails (ESDM_ENOENT, ESDM_EIO; ESDM_ECORRUPT past the end).
     *  Ranges come sorted by position. */
    esdm_status (*pack_read)(void *target, const char *name, const esdm_range *ranges,
                             size_t nranges, esdm_error *err);
    /** A pack that does not exist is ESDM_OK. */
    esdm_status (*pack_remove)(void *target, const char *name, esdm_error *err);
    /** Visits packs whose name begins with `prefix` (NULL: all), in any order. A name may come more
     *  than once: for what is stored, and for each attempt at it that was begun and not ended. */
    esdm_status (*pack_list)(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                             esdm_error *err);

    /* Optional: NULL when there is nothing to say. */

    /** Whether the pack should be sealed soon: it cannot grow much more, or its buffers take more
     *  memory than they should. Cheap. */
    bool (*pack_is_full)(void *pack);
    /** Ends writing and removes the pack, of which nothing needs to be stored. Frees the handle in
     *  every case. Without it the engine seals, then removes. */
    esdm_status (*pack_discard)(void *pack, esdm_error *err);
    /**
     * Gives back bytes that were appended and are not sealed, whatever has become of the target:
     * from memory, which pack_is_full() bounds, or because they can be read. Works after a failed
     * pack_append() and pack_seal(), too. A plug-in that has this has pack_discard(), and a
     * pack_seal() that fails leaves the handle to it.
     */
    esdm_status (*pack_recall)(void *pack, uint64_t position, size_t bytes, void *buffer,
                               esdm_error *err);
    /** Nothing more is appended: starts to store what is there, without waiting for the end, which
     *  pack_seal() does. */
    void (*pack_begin_seal)(void *pack);
    /** For measurements: the memory of this machine forgets a pack that was synced and sealed, so
     *  that the device answers the next reads. ESDM_ENOTSUP: it does not. */
    esdm_status (*pack_evict)(void *target, const char *name, esdm_error *err);
    /** As usage(), but used_bytes and packs need not be counted. Cheap. */
    esdm_status (*space)(void *target, esdm_target_usage *ret_usage, esdm_error *err);
    /**
     * Id of the site in the mark of the place, as the `site_id` of metadata stores: what is left of
     * the identity of a site that has lost its metadata store. ESDM_ENOENT: it is not marked.
     * @param ret_id 32 hex digits and NUL.
     */
    esdm_status (*site_id)(const esdm_plugin_config *config, char ret_id[33], esdm_error *err);
    /**
     * Whether what pack_begin_seal() began has ended, well or not, so that pack_seal() need not
     * wait for it. Cheap. Without it the engine learns how fast the target is only where it waits.
     * @param ret_ended_s when that was, in seconds of CLOCK_MONOTONIC; 0: it tells nothing about
     * the target's speed, as when parts had been sent before.
     */
    bool (*pack_has_ended)(void *pack, double *ret_ended_s);

    /* Files that are held: all four or none. Since interface 9. They are no packs: pack_list() does
     * not visit them, remove() removes them. Their names are made as those of packs. */

    /** Keeps the contents of an open file as they are at this moment, without a copy: blocks are
     *  shared (FICLONE). Survives power loss when this returns. ESDM_ENOTSUP: they cannot be. */
    esdm_status (*file_hold)(void *target, const char *name, int fd, esdm_error *err);
    /** Opens one for pread(). @param ret_fd esdm__descriptor_close(). ESDM_ENOENT: there is none.
     */
    esdm_status (*file_open)(void *target, const char *name, int *ret_fd, esdm_error *err);
    esdm_status (*file_list)(void *target, esdm_pack_visitor visit, void *user, esdm_error *err);
    /** One that does not exist is ESDM_OK. */
    esdm_status (*file_remove)(void *target, const char *name, esdm_error *err);

    /**
     * open() and pack_read() at once, where both wait for a network: what is read counts when the
     * place turns out to be the site's. Since interface 9, optional.
     * @param ret_read set when it is open: as pack_read() returns, and `err` tells of it.
     * @return as open(); the ranges are undefined when it failed.
     */
    esdm_status (*open_and_read)(const esdm_plugin_config *config, const char *name,
                                 const esdm_range *ranges, size_t nranges,
                                 const esdm_target_opening *opening, esdm_status *ret_read,
                                 esdm_error *err);

    /** Reads that were asked for a second time, as the first request took unusually long, and how
     *  many of the second requests gave the answer; since the target is open. Cheap. Since
     * interface 9, optional. */
    void (*second_requests)(void *target, uint64_t *ret_sent, uint64_t *ret_used);
} esdm_data_plugin;

#ifdef __cplusplus
}
#endif
#endif
