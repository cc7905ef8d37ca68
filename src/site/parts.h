/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_PARTS_H
#define ESDM_SITE_PARTS_H

/** @file What the files of this folder share. */

#include <sys/stat.h>

#include "base/json.h"
#include "site/site.h"

/** Where relative directories start, and whether `~` and `$NAME` mean something. */
typedef struct esdm__site_folder {
    const char *base; /**< absolute; borrowed */
    bool expand;
} esdm__site_folder;

/**
 * Makes a directory of the configuration absolute. A leading `~` is $HOME, `$NAME` and `${NAME}`
 * environment variables (unset ones are errors), `$$` a dollar sign; what is then relative starts
 * at the folder; slashes at the end go.
 * @param node the text, for messages. @param ret_path owned, free().
 */
esdm_status esdm__site_directory(const esdm__json_node *node, const esdm__site_folder *folder,
                                 char **ret_path, esdm_error *err);

/** Folder of a file as an absolute path, without touching the file system but for the current
 *  folder. @param file NULL: the current folder. @param ret_folder owned, free(). */
esdm_status esdm__site_folder_of(const char *file, char **ret_folder, esdm_error *err);

/** $XDG_DATA_HOME/esdm or ~/.local/share/esdm. @param ret_path owned, free(). */
esdm_status esdm__site_data_folder(char **ret_path, esdm_error *err);
/** $XDG_CONFIG_HOME/esdm/site.json or ~/.config/…; NULL when neither variable is usable. */
esdm_status esdm__site_user_config(char **ret_path, esdm_error *err);
/** Makes a folder and its parents (mode 0700, as XDG asks); existing ones are left alone. */
esdm_status esdm__site_make_folders(const char *path, esdm_error *err);

/** Fills a zeroed site (but for `source`) from a configuration. The caller frees it on failure. */
esdm_status esdm__site_parse(json_t *root, const esdm__site_folder *folder, esdm__site *site,
                             esdm_error *err);

/** Keys of a target that the placement reads: tier, cost, reserve, retiring. */
esdm_status esdm__site_parse_target_keys(const esdm__json_node *node, esdm__site_target *target,
                                         esdm_error *err);
/** The number of a target; ntargets: there is none of that name. */
size_t esdm__site_target_number(const esdm__site *site, const char *name);
/** "prefer" of the site or a policy. */
esdm_status esdm__site_parse_prefer(const esdm__json_node *node, esdm__prefer *ret_prefer,
                                    esdm_error *err);
/** What a policy says about placement: targets or tier, prefer, access. */
esdm_status esdm__site_parse_placement(const esdm__json_node *node, const esdm__site *site,
                                       esdm__site_policy *policy, esdm_error *err);

/** The text of an optional member that something is compared with; owned. Empty: ESDM_EINVAL. */
esdm_status esdm__site_parse_pattern(const esdm__json_node *object, const char *key,
                                     char **ret_pattern, esdm_error *err);
/** Fills in `copies` and `policies`; after the targets. */
esdm_status esdm__site_parse_policies(const esdm__json_node *root, esdm__site *site,
                                      esdm_error *err);
void esdm__site_clear_policies(esdm__site *site);

/** Each directory belongs to one target, or to the store, alone: it may not be the same as that of
 *  another one, nor contain it or lie in it. Links are followed where they exist. ESDM_EINVAL names
 *  both. */
esdm_status esdm__site_check_directories(const esdm__site *site, esdm_error *err);

/** A duration: seconds, or "12h", "7d". */
esdm_status esdm__site_parse_duration(const esdm__json_node *node, uint64_t *ret_seconds,
                                      esdm_error *err);
/** Fills in `replaced` (parse_replaced.c). */
esdm_status esdm__site_parse_replaced(const esdm__json_node *root, esdm__site *site,
                                      esdm_error *err);

/**
 * Whether a configuration that was found, rather than named, may be obeyed: it belongs to the user
 * or to root, and nobody else can write to it. ESDM_EACCES tells why not.
 */
esdm_status esdm__site_check_owner(const char *path, const struct stat *file, esdm_error *err);
/** Whether a key or a password stands in the configuration itself. */
bool esdm__site_holds_secret(const json_t *root);

/** "%s/%s"; owned; NULL when out of memory. */
char *esdm__site_join(const char *folder, const char *name);

/** "backup" (parse_backup.c). */
esdm_status esdm__site_parse_backup(const esdm__json_node *root, esdm__site *site, esdm_error *err);

/** "references" (parse_references.c). */
esdm_status esdm__site_parse_references(const esdm__json_node *root,
                                        const esdm__site_folder *folder, esdm__site *site,
                                        esdm_error *err);

/** "join" (parse_join.c). */
esdm_status esdm__site_parse_join(const esdm__json_node *root, esdm__site *site, esdm_error *err);
void esdm__site_join_free(esdm__site *site);
/** "views" (parse_views.c). */
esdm_status esdm__site_parse_views(const esdm__json_node *root, esdm__site *site, esdm_error *err);
void esdm__site_views_free(esdm__site *site);

/** "monitor" (parse_monitor.c). */
esdm_status esdm__site_parse_monitor(const esdm__json_node *root, const esdm__site_folder *folder,
                                     esdm__site *site, esdm_error *err);

/** "accuracy" and "speeds" (parse_accuracy.c). */
esdm_status esdm__site_parse_accuracy(const esdm__json_node *root, esdm__site *site,
                                      esdm_error *err);
void esdm__site_rules_free(esdm__site *site);

#endif
