/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_HISTORY_H
#define ESDM_HISTORY_H

/**
 * @file
 * Names for snapshots, and what became of names. A snapshot that has a name (a *tag*) is kept as
 * long as it has one, whatever the site's `history` says, and opens as `NAME@tag:TAG`.
 */

#include "esdm/container.h"
#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most bytes of a tag. */
#define ESDM_TAG_MAX 255

/** A tag; borrowed during the callback. */
typedef struct esdm_tag_info {
    const char *tag;
    uint64_t snapshot;
    uint64_t created_ns; /**< since 1970 */
    const char *author;  /**< "user@host:pid" of who made it */
    uint64_t former_ns;  /**< when its container was replaced or removed; 0: it has the name now */
} esdm_tag_info;
typedef bool (*esdm_tag_visitor)(const esdm_tag_info *info, void *user);

/**
 * Gives a snapshot a name.
 * @param name of a container (its newest snapshot), or what says one of its snapshots: NAME@7,
 * NAME@-1, NAME@2026-11-20, NAME@tag:OTHER.
 * @param tag 1 to ESDM_TAG_MAX bytes of UTF-8, without '/', '@', '?', ':', white space and control
 * characters; unique in its container, and in the former ones of its name.
 * @param replace whether a tag of that name may move to this snapshot. One of a former container
 * stays there, and is found again when this one is removed.
 * @param ret_snapshot number of the snapshot; may be NULL.
 * @return ESDM_EINVAL: no such name can be given. ESDM_EEXIST: the tag is at another snapshot, also
 * of a former container of that name (at this one: ESDM_OK). ESDM_ENOENT: no such container or
 * snapshot. ESDM_ENOTSUP: the metadata store knows no tags. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_tag(esdm_session *session, const char *name,
                                                        const char *tag, bool replace,
                                                        uint64_t *ret_snapshot, esdm_error *err);
/** Removes a tag; its snapshot goes when the site's `history` does not keep it. ESDM_ENOENT: there
 *  is none. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_untag(esdm_session *session, const char *name,
                                                          const char *tag, esdm_error *err);
/** Visits the tags of a container in the order of their names (bytes), then those of the former
 *  containers of that name, which stay as long as they have one, newest first. A name in time says
 *  one of these: its tags alone. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_tags(esdm_session *session, const char *name,
                                                         esdm_tag_visitor visit, void *user,
                                                         esdm_error *err);

/**
 * What the container is called now that had this name and was renamed by esdm_container_move().
 * Known of the last renames of a site, as long as no other container has the name.
 * @param ret_now its name; room for ESDM_CONTAINER_NAME_MAX + 1 bytes.
 * @param ret_time_ns when it lost this one, since 1970; may be NULL.
 * @return ESDM_ENOENT: none was renamed so, or it was removed or replaced since. Any thread.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_renamed(esdm_session *session, const char *name,
                                                            char *ret_now, uint64_t *ret_time_ns,
                                                            esdm_error *err);

/** The name that the container which had `name` got when it was renamed, whatever has become of it
 *  since. @param ret_to room for ESDM_CONTAINER_NAME_MAX + 1 bytes. @return ESDM_ENOENT: none was
 *  renamed so, or that is not known any more. Any thread. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_renamed_to(esdm_session *session,
                                                               const char *name, char *ret_to,
                                                               esdm_error *err);

/** Hint of a container: number and version of the stub file that stands for it in a folder, 16
 *  hexadecimal digits each. */
#define ESDM_HINT_STUB "netcdf.stub"

/** The number that the hint ESDM_HINT_STUB tells; 0: none. @param ret_version 0 then; it changes
 *  each time that a program writes the file anew. */
ESDM_API uint64_t esdm_container_stub(const esdm_container *container, uint64_t *ret_version);

/** Hint of a container: where its stub was made. "UUID BYTES NAME PLACE FOLDER": the container's
 * own uuid, as clones have the hint of their original; its name at that time, and the bytes of
 * that; which folder of this path it is (esdm_stub_place(), "-": not known); and its real path. */
#define ESDM_HINT_STUB_FOLDER "netcdf.stub.folder"

#define ESDM_STUB_PLACE_BYTES 320 /**< of an esdm_stub_place() at most, with its NUL */

/**
 * What tells folders of the same path on different nodes apart: the file system, and the node where
 * other nodes do not see that. Of a folder that is not there it is where it would be.
 * @param folder a whole path. @param ret_place without blanks, room for ESDM_STUB_PLACE_BYTES; "":
 *        not known. Any thread.
 */
ESDM_API void esdm_stub_place(const esdm_session *session, const char *folder, char *ret_place);

/**
 * Notes which stub file stands for the container: both hints, with the next commit.
 * @param number, version of the stub; not 0. @param folder real path of the one in which the stub
 *        lies; NULL or "": not known, and so is one that is no UTF-8. @param place of the folder:
 *        esdm_stub_place(), on one rank for all; NULL or "": not known.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_set_stub(esdm_container *container,
                                                             uint64_t number, uint64_t version,
                                                             const char *folder, const char *place,
                                                             esdm_error *err);
/** Real path of the folder in which the stub of the container was made; borrowed until the next
 *  set. NULL: it has none, or was given another name than those of the files in that folder get, or
 *  is a clone, whose original the stub stands for. The stub may have been removed or moved since.
 */
ESDM_API const char *esdm_container_stub_folder(const esdm_container *container);
/** Whether the stub's folder lay in that place: esdm_stub_place() of its path, on this node. false:
 *  also where that is not known. */
ESDM_API bool esdm_container_stub_is_at(const esdm_container *container, const char *place);
/** Whether the container has another name than when its stub was made: it was renamed, or brought
 *  back under another name. A program's own rename (esdm_container_name_is_intermediate()) does not
 *  count. false: also of clones, and where it is not known. */
ESDM_API bool esdm_container_stub_is_renamed(const esdm_container *container);
/** When esdm_former_restore() has brought the container back last, in ns since 1970-01-01 UTC. 0:
 * it has not, or the store cannot be asked. Any thread. */
ESDM_API uint64_t esdm_container_restored_ns(const esdm_container *container);
/**
 * Which container a stub file means that tells a name, a number and a version: the one that has the
 * name, or a former one.
 * @param ret_name the name, or what says the former one in time (NAME\@TIME); room for
 *        ESDM_CONTAINER_NAME_MAX + 1 bytes.
 * @return ESDM_ENOENT: it is not kept, or a time does not tell it. Any thread.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_of_stub(esdm_session *session, const char *name,
                                                            uint64_t number, uint64_t version,
                                                            char *ret_name, esdm_error *err);
/**
 * Notes that the stub file of a container is not where it was, and that the container is about to
 * be replaced: whether the file was removed or moved, nobody knows. As a former container it is
 * kept longer than others then ("keep_moved" of the site's "replaced"). Does nothing where the
 * catalogue cannot be written to. Any thread.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_stub_lost(esdm_session *session,
                                                              const char *name, esdm_error *err);
/**
 * Notes that a stub file stands for a former container: it is kept as long as the file is there,
 * whatever the site says of others.
 * @param name what esdm_container_of_stub() found. @param path a whole one, of the file.
 * @return ESDM_EACCES: the catalogue cannot be written to, ESDM_ENOENT: there is no such container
 *         or file. Any thread.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_stub_found(esdm_session *session,
                                                               const char *name, const char *path,
                                                               esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
