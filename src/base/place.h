/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PLACE_H
#define ESDM_BASE_PLACE_H

/**
 * @file
 * A directory that a plug-in owns, known by a mark.
 *
 * The mark is the file `esdm-mark.json` (base/mark.h). A directory without it, or with another
 * plug-in's, target's or site's, is never written to. Plug-ins that keep files share this, so that
 * they refuse foreign directories in the same way.
 * Threads and processes: making one place from many at once is fine.
 */

#include <jansson.h>

#include "base/ids.h"
#include "base/mark.h"
#include "esdm/sys/plugin.h"

typedef struct esdm__place {
    const char *plugin; /* borrowed, as `config` during whose call the place is used */
    const char *name;
    const char *path;
    const char *site_id; /* "": not known, which no mark agrees with */
    char *directory;     /* owned; absolute */
    json_t *options;     /* owned; the plug-in's object of the site configuration */
    /* Beginnings of file names, NULL at the end: a directory that holds such files alone may be
     * made this place. NULL: it must be empty. */
    const char *const *tolerates;
} esdm__place;

/** Takes the directory from the configuration: an absolute path. ESDM_EINVAL names what is wrong.
 *  @param plugin static. @param ret_place esdm__place_clear(). */
esdm_status esdm__place_init(esdm__place *ret_place, const char *plugin,
                             const esdm_plugin_config *config, esdm_error *err);
void esdm__place_clear(esdm__place *place); /* a zeroed one is accepted */

/**
 * Opens the directory for reading and verifies its mark. ESDM_ENOENT: no directory, or no mark;
 * ESDM_EINVAL: somebody else's mark; ESDM_ENOTSUP: a newer format; ESDM_ECORRUPT: a damaged mark.
 * @param ret_fd owned, close().
 */
esdm_status esdm__place_open(const esdm__place *place, int *ret_fd, esdm_error *err);

/** Id of the site in the mark, whatever `site_id` says. Errors as above; ESDM_EINVAL for the mark
 * of another plug-in or target. */
esdm_status esdm__place_site_id(const esdm__place *place, char ret_id[ESDM__UUID_BYTES],
                                esdm_error *err);

/** The `site_id` of a plug-in that owns a directory. */
esdm_status esdm__place_read_site_id(const char *plugin, const esdm_plugin_config *config,
                                     char ret_id[ESDM__UUID_BYTES], esdm_error *err);

/**
 * Makes the directory (with its parents) and marks it. Marked already for the same plug-in, target
 * and site: fine, nothing is done. ESDM_EEXIST, and nothing touched, for a directory that holds
 * other files or another mark.
 * @param ret_fd owned, close(); -1 in a dry run of a place that is not there yet.
 */
esdm_status esdm__place_make(const esdm__place *place, bool dry_run, esdm_plugin_reporter report,
                             void *user, int *ret_fd, esdm_error *err);

/** Takes the mark off, then removes the directory if nothing else is in it. */
esdm_status esdm__place_unmark(const esdm__place *place, int fd, bool dry_run,
                               esdm_plugin_reporter report, void *user, esdm_error *err);

/** One formatted line to a reporter, which may be NULL. */
void esdm__report(esdm_plugin_reporter report, void *user, const char *format, ...)
    ESDM_PRINTF(3, 4);

/** Problems that a check finds: each is reported, the first is what the check returns. */
typedef struct esdm__findings {
    esdm_plugin_reporter report;
    void *user;
    esdm_status status; /**< of the first; ESDM_OK: none */
    esdm_error first;
} esdm__findings;
void esdm__findings_add(esdm__findings *all, const esdm_error *problem);

/** Looks into an open place and adds what is wrong. */
typedef void (*esdm__place_inspector)(const esdm__place *place, int fd,
                                      const esdm_plugin_config *config, esdm__findings *all);
/** The `check` of a plug-in that owns a directory: the mark, then what `inspect` finds. */
esdm_status esdm__place_check(const char *plugin, const esdm_plugin_config *config,
                              esdm__place_inspector inspect, esdm_plugin_reporter report,
                              void *user, esdm_error *err);

/** Adds when `file` of the directory cannot be used, or the directory not be written to. */
void esdm__place_inspect_file(const esdm__place *place, int fd, const char *file,
                              esdm__findings *all);
/** Adds when the disk has no space or no files left; reports a note when little is left. */
void esdm__place_inspect_space(const esdm__place *place, int fd, esdm__findings *all);

/** Removes what the plug-in keeps in an open place; a dry run only reports. */
typedef esdm_status (*esdm__place_emptier)(const esdm__place *place, int fd,
                                           const esdm_plugin_config *config, bool dry_run,
                                           esdm_plugin_reporter report, void *user,
                                           esdm_error *err);
/** The `remove` of a plug-in that owns a directory: verifies the mark, empties, takes it off. */
esdm_status esdm__place_remove(const char *plugin, const esdm_plugin_config *config,
                               esdm__place_emptier empty, bool dry_run, esdm_plugin_reporter report,
                               void *user, esdm_error *err);

/** Writes all of it, in as many calls as that takes. ESDM_EIO: errno tells why. */
esdm_status esdm__write_all(int fd, const void *data, size_t bytes);
/**
 * Renames a file to a name that is not taken, so that who finds it finds all of it.
 * @param fd of the directory of both. @return 0; -1 with errno, EEXIST: it is taken. Where neither
 *        such a rename nor a hard link is known, what has the name then is replaced.
 */
int esdm__place_rename_new(int fd, const char *from, const char *to);

#endif
