/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_H
#define ESDM_SITE_H

/**
 * @file
 * Making, checking and removing a site: what esdm-mkfs does. One thread at a time per site.
 */

#include "esdm/status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Called with one line of text for each step taken (or that would be taken). */
typedef void (*esdm_site_reporter)(const char *line, void *user);

/** How one part of a site is. Borrowed during the call. */
typedef struct esdm_part_health {
    const char *name;    /**< of the target; "metadata" */
    const char *plugin;  /**< "posix", "sqlite" */
    bool metadata;       /**< it is the metadata store */
    esdm_status status;  /**< ESDM_OK: good */
    const char *problem; /**< the first one; NULL when it is good */
    /* Of a target that is good: */
    uint64_t packs;
    uint64_t used_bytes;  /**< by packs of the site */
    uint64_t free_bytes;  /**< 0 with total_bytes 0: not known */
    uint64_t total_bytes; /**< 0: not known */
} esdm_part_health;
typedef void (*esdm_part_visitor)(const esdm_part_health *part, void *user);

/** Zero-initialise. */
typedef struct esdm_site_options {
    const char *config_path; /**< NULL: search (esdm_site_find) */
    const char *config_json; /**< wins over the path */
    bool dry_run;            /**< report only */
    bool lasting;            /**< esdm_site_create(): ESDM_ENOTSUP for what ends with the process */
    bool remove_data;        /**< esdm_site_remove(): also when containers or packs exist */
    esdm_site_reporter report;
    esdm_part_visitor part; /**< esdm_site_check(): called once for each part; NULL: nobody asks */
    void *user;
    bool anew; /**< esdm_site_create(): also a target that is away with packs of containers, and an
                  empty catalogue beside packs */
} esdm_site_options;

/**
 * Finds the site configuration: $ESDM_CONFIG, ./esdm.json, $XDG_CONFIG_HOME/esdm/site.json
 * (~/.config), /etc/esdm/site.json. A setuid program looks in /etc alone. Of those that nobody
 * names only the ones are obeyed that belong to the user or to root and that nobody else can write
 * to, else opening the site is ESDM_EACCES. @param ret_path owned, free(); NULL when none exists
 * and the embedded default serves. A set but unreadable $ESDM_CONFIG is an error.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_find(char **ret_path, esdm_error *err);

/** Parses and checks the configuration text or file without touching any target. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_validate(const esdm_site_options *options,
                                                        esdm_error *err);

/**
 * Makes and marks the metadata store and every target. The store's mark gives the site its id, a
 * random one unless the configuration states it; the targets are marked with it. Running it on a
 * made site is ESDM_OK and changes nothing; a directory that holds foreign files or has the mark of
 * another site, or of one whose metadata store is not there, is ESDM_EEXIST and is not touched. So
 * is a target that is not there, though containers have packs on it, and a lost catalogue of a site
 * whose targets hold packs, unless `anew` is set.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_create(const esdm_site_options *options,
                                                      esdm_error *err);

/** Checks marks, versions, permissions, free space, that metadata can be read, and that each pack
 *  of the catalogue is there (ESDM_ECORRUPT; its content is not looked at). Reports every problem;
 *  returns the first. Packs that belong to no container are worth a note. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_check(const esdm_site_options *options,
                                                     esdm_error *err);

/** Removes what esdm_site_create() made and ESDM wrote, nothing else. ESDM_EEXIST when containers
 *  or packs exist and remove_data is not set; ESDM_EINVAL for targets whose mark does not agree
 * with the metadata store, and nothing is removed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_remove(const esdm_site_options *options,
                                                      esdm_error *err);

/** @param directory absolute; borrowed; NULL: something lies in no directory of this machine.
 *  Return false to stop. */
typedef bool (*esdm_directory_visitor)(const char *directory, void *user);

/** Visits the directories of this machine in which the metadata store and the targets keep their
 *  files: all that programs write to through ESDM, but for what goes over a network. Touches none.
 *  Each of them that states no directory (S3, a database server, memory) is visited as NULL, and so
 *  are objects on S3 that are read with keys of the site ("references.s3").
 *  @param visit, user instead of what the options have. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_directories(const esdm_site_options *options,
                                                           esdm_directory_visitor visit, void *user,
                                                           esdm_error *err);

/** Counts what a removal would destroy. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_contents(const esdm_site_options *options,
                                                        uint64_t *ret_containers,
                                                        uint64_t *ret_bytes, esdm_error *err);

/**
 * Copies the catalogue of a site into another metadata store, verifies the copy, and hands the site
 * over: from then on `to` is its configuration, and the store of `from` refuses to be opened. Data
 * stay where they are: both configurations describe the same targets. The store of `to` is made if
 * it is not there. Writers are refused while this lasts; programs that have the site open must be
 * ended before.
 *
 * A failure leaves the site with `from`, unless the message says otherwise; what was interrupted
 * is taken up when this is called again.
 * @param from its dry_run, report and user count.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_migrate(const esdm_site_options *from,
                                                       const esdm_site_options *to,
                                                       esdm_error *err);

/** What esdm_site_restore() found and did. */
typedef struct esdm_restore_result {
    bool from_backup;        /**< the catalogue was made of a backup */
    uint64_t backup_ns;      /**< when that began; nanoseconds since 1970 */
    uint64_t containers;     /**< the site has now */
    uint64_t restored;       /**< that were made anew, or got commits */
    uint64_t commits;        /**< that were taken from the journal */
    uint64_t lost;           /**< containers of which something is known, and that are not back */
    uint64_t incomplete;     /**< that are back, but commits or packs of them are missing */
    uint64_t damaged_bytes;  /**< of the journal that make no record; the end of what a program was
                                  writing when it was killed counts, too */
    uint64_t targets_absent; /**< that could not be looked at */
} esdm_restore_result;

/**
 * Brings the catalogue of a site back from what lies on its targets: the newest backup that is
 * whole, and what the journals tell of commits, names and moves since. A catalogue that is there
 * and sound is kept, and gets what it lacks; so is a database that was put back by hand. One that
 * is damaged is kept beside the new one under another name. No other program may use the site.
 *
 * Packs are not touched. What is interrupted is begun again by the next call.
 * @param options dry_run tells what is there and changes nothing; report gets a line for each step
 *        and for each container that is not as it was.
 * @param ret_result may be NULL.
 * @return ESDM_OK also when something is lost: see the result. ESDM_ENOENT: neither a backup nor a
 *         journal is there.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_restore(const esdm_site_options *options,
                                                       esdm_restore_result *ret_result,
                                                       esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
