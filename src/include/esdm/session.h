/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SESSION_H
#define ESDM_SESSION_H

/**
 * @file
 * Sessions, the catalogue of a site, snapshots, fragments and queries.
 *
 * A session is one open site: its targets, its metadata store, its thread pool and its memory
 * budget. Threads: locked inside. A session does not survive fork(): open a new one in the child.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialise; every field may stay 0. */
typedef struct esdm_session_options {
    const char *config_path; /**< site configuration file; NULL: search as esdm_site_find() does */
    const char *config_json; /**< the configuration itself; wins over the path */
    bool read_only;          /**< never write to the site, not even to create the default one */
} esdm_session_options;

/**
 * Opens a site. With nothing configured the embedded default site in the user's XDG data folder
 * is made at first use. @param options may be NULL. @param ret_session owned.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_session_open(const esdm_session_options *options,
                                                       esdm_session **ret_session, esdm_error *err);
/**
 * At the end of a program that cannot close its session, since other threads may be in it: stores
 * what the session knows about the site, and waits for what is drained in the background, as
 * esdm_session_close() does, and leaves it as it is.
 */
ESDM_API void esdm_session_settle(esdm_session *session);
/** All containers of the session must be closed before. NULL is accepted. */
ESDM_API void esdm_session_close(esdm_session *session);
/** Where the configuration came from: a file path or "(embedded default)"; borrowed. */
ESDM_API const char *esdm_session_config_source(const esdm_session *session);
/** Name of the site; borrowed. */
ESDM_API const char *esdm_session_site_name(const esdm_session *session);
/** 32 hexadecimal digits that no other site has, whatever its name and its configuration are;
 *  borrowed. */
ESDM_API const char *esdm_session_site_id(const esdm_session *session);
/** What people should know of the configuration, as that everybody can read a key in it; borrowed;
 *  NULL: nothing. */
ESDM_API const char *esdm_session_warning(const esdm_session *session);
/** Folder of the default site when opening this session made it, else NULL; borrowed. */
ESDM_API const char *esdm_session_made_site(const esdm_session *session);
/**
 * Says that what this session reads is handed to other users, as by a server. From then on files
 * that containers refer to are read only below the directories of "references.roots"; where the
 * site states none, only files that every user of the machine may read (the file's and its folders'
 * mode). Else whoever can make a container could have every file read that this process may read.
 * Call it before anything is read.
 */
ESDM_API void esdm_session_serve_others(esdm_session *session);
/** Directories whose plain NetCDF creates become containers ("netcdf.routes"). */
ESDM_API size_t esdm_session_route_count(const esdm_session *session);
/** Absolute path, borrowed; NULL when index is past the end. */
ESDM_API const char *esdm_session_route(const esdm_session *session, size_t index);

/** Whether readers are told what was stated of accuracies, as the attribute `esdm_stored_accuracy`
 *  ("netcdf.accuracy_attributes"). */
ESDM_API bool esdm_session_keeps_accuracy(const esdm_session *session);

/* ---- catalogue ---------------------------------------------------------------------------- */

/** Facts about a container without opening it; borrowed during the callback. */
typedef struct esdm_container_info {
    const char *name;
    uint64_t snapshot;     /**< newest */
    uint64_t created_ns;   /**< since 1970-01-01 UTC */
    uint64_t modified_ns;  /**< time of the newest commit */
    uint64_t raw_bytes;    /**< data as written, before encoding, in live fragments */
    uint64_t stored_bytes; /**< on the targets and inline */
    uint64_t fragments;
    uint32_t datasets;
} esdm_container_info;

/** Containers below it are of a tool that runs, or that was ended while it ran: esdm-gc and its
 * next run remove them. Lists of the whole site and queries pass them by. */
#define ESDM_SCRATCH_FOLDER ".esdm-recipe"

/** Containers are called so, and a UUID, below the folder of what esdm-cp and esdm-ref make of
 * them, until they are whole. Lists and queries pass them by as well; of esdm_container_list() this
 * is a prefix of its own, which visits them all, wherever they are. esdm-gc removes those whose
 * programs have ended. */
#define ESDM_UNFINISHED_COPY ".esdm-cp-"

/** Return false to stop. */
typedef bool (*esdm_container_visitor)(const esdm_container_info *info, void *user);

/** Visits containers in byte order of their names. @param prefix NULL: all but those below
 *  ESDM_SCRATCH_FOLDER; else those that equal the prefix or lie below `prefix/`. Names that begin
 *  with ESDM_UNFINISHED_COPY are told when they equal the prefix, or when that is all of it. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_list(esdm_session *session, const char *prefix,
                                                         esdm_container_visitor visit, void *user,
                                                         esdm_error *err);
/** ESDM_ENOENT when it does not exist. `ret_info->name` is NULL. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_stat(esdm_session *session, const char *name,
                                                         esdm_container_info *ret_info,
                                                         esdm_error *err);
/** Removes it from the catalogue at once. It is kept as a former container as long as the site
 * wants
 *  ("replaced" in the configuration), else its packs are freed when no reader has it open. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_remove(esdm_session *session, const char *name,
                                                           esdm_error *err);
/** Removes it and former ones for good. ESDM_ENOENT: there is none. ESDM_EEXIST: one has a tag. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_erase(esdm_session *session, const char *name,
                                                          esdm_error *err);
/** @param replace whether an existing `to` is replaced (and kept, as above), else ESDM_EEXIST. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_move(esdm_session *session, const char *from,
                                                         const char *to, bool replace,
                                                         esdm_error *err);
/**
 * Replaces `to` by what was made of it: as esdm_container_move() with `replace`, as long as nobody
 * has changed or replaced `to` since it was read. Judged in the transaction that gives the name.
 * Nothing is in the way where there is no `to`, nor where the site says "overlap": "last".
 * @param uuid, snapshot of `to` as it was read (esdm_container_uuid(), esdm_container_snapshot());
 *        NULL: what esdm_container_note_seen() says, if the name of `from` is such that
 *        esdm_container_name_is_intermediate(); where that says nothing, `to` is replaced.
 * @return ESDM_ECONFLICT: it was changed or replaced; both stay as they are.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_move_seen(esdm_session *session,
                                                              const char *from, const char *to,
                                                              const char *uuid, uint64_t snapshot,
                                                              esdm_error *err);
/** Whether esdm_container_move_seen() would be refused now, as far as is known before. Changes
 *  nothing. Errors as there. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_check_seen(esdm_session *session,
                                                               const char *from, const char *to,
                                                               const char *uuid, uint64_t snapshot,
                                                               esdm_error *err);
/** Whether programs give what has this name another one when it is whole, so that nobody wants it
 * back: "NAME.pidNUMBER.PROGRAM.tmp" of NCO. NULL: false. Threads: any. */
ESDM_API bool esdm_container_name_is_intermediate(const char *name);
/**
 * Whether a container has this name since its program was ended while it wrote a branch anew: then
 * nobody wants it. NULL: false. Threads: any.
 * @param ret_elsewhere set where it is: the program ran on another node, or before this one was
 *        started, so whether it has ended is not known there. May be NULL.
 */
ESDM_API bool esdm_container_name_is_left(const char *name, bool *ret_elsewhere);
/** Notes for the process that will rename `name` to `of` that it was made of that snapshot of `of`.
 *  The note goes with the rename. ESDM_ENOENT: there is no container `name`. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_note_seen(esdm_session *session,
                                                              const char *name, const char *of,
                                                              const char *uuid, uint64_t snapshot,
                                                              esdm_error *err);
/**
 * Makes the container `to` of a snapshot of another one, without copying data: the new container
 * begins with that snapshot, by its number, and both share what is stored. Whatever becomes of one
 * of them (written to, removed, replaced, stored elsewhere) changes nothing of the other; stored
 * bytes go when nothing refers to them any more. Takes time for the index, about a millisecond for
 * thousands of fragments. What open handles have not committed is not part of it.
 *
 * @param from a name, or one that says a snapshot ("run.nc@7", "run.nc@2026-11-20"); no query.
 * @param to another name. ESDM_EEXIST when there is such a container, unless `replace`: then that
 *        one is kept as with ESDM_CREATE_REPLACE. It may be the container that `from` says a
 *        snapshot of, which so becomes what it was.
 * @return ESDM_ENOENT: there is no such container or snapshot. ESDM_ENOTSUP: `from` is a query, or
 *         the metadata store cannot do it (one that an older ESDM made, whose owner has not written
 *         to it since).
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_clone(esdm_session *session, const char *from,
                                                          const char *to, bool replace,
                                                          esdm_error *err);

/**
 * Visits, by byte order of names, the other containers with which a container may share what is
 * stored: clones, branches, what it was cloned from, and those that esdm_dedup() found equal
 * fragments in. Their `stored_bytes` are counted by each of them; removing one frees what no other
 * refers to. Former containers, which share too, are not visited. Costs nothing where nothing is
 * shared; otherwise all records are looked at. @return ESDM_ENOENT: there is no such container.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_shares(esdm_session *session, const char *name,
                                                           esdm_container_visitor visit, void *user,
                                                           esdm_error *err);

/** A container that was replaced or removed and is still kept; borrowed during the callback. */
typedef struct esdm_former_info {
    esdm_container_info container; /**< as it was; with its name */
    const char *id;                /**< 8 hexadecimal digits, which tell those of one name apart */
    uint64_t time_ns;              /**< when it was replaced or removed, since 1970-01-01 UTC */
    uint64_t until_ns;             /**< about: kept so long unless space is short; UINT64_MAX: as
                                        long as a file in a folder stands for it */
    bool removed;                  /**< else another container took its name */
} esdm_former_info;
typedef bool (*esdm_former_visitor)(const esdm_former_info *info, void *user);
/** Visits former containers, by name, those of one name oldest first. @param prefix as in
 *  esdm_container_list(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_former_list(esdm_session *session, const char *prefix,
                                                      esdm_former_visitor visit, void *user,
                                                      esdm_error *err);
/**
 * Whether what has a name would be kept as a former container if it were removed or replaced now:
 * the site keeps some, and it fits into the share of the free space that these may take, or has a
 * tag. @param name of a container; borrowed.
 * @return true also when there is none of this name, or it cannot be told. Thread-safe.
 */
ESDM_API bool esdm_former_would_be_kept(esdm_session *session, const char *name);
/**
 * Brings a former container back.
 * @param id NULL: the newest one of the name. @param to its name from then on; NULL: as before.
 * @param replace whether a container that has this name is replaced, and kept itself as a former
 *        one; else ESDM_EEXIST. ESDM_ENOENT: there is no such former container.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_former_restore(esdm_session *session, const char *name,
                                                         const char *id, const char *to,
                                                         bool replace, esdm_error *err);
/** What this session freed of former containers because nothing more could be stored. */
ESDM_API void esdm_session_relieved(const esdm_session *session, uint64_t *ret_containers,
                                    uint64_t *ret_bytes);

/**
 * What to tell somebody who named a container that is not there: "did you mean 'x'?", or how to
 * bring back the one that was removed. @param text "" when there is nothing to tell; of `bytes`.
 */
ESDM_API void esdm_container_suggest(esdm_session *session, const char *name, char *text,
                                     size_t bytes);
/** The same for who wants a former container back: the nearest name of those that are kept. */
ESDM_API void esdm_former_suggest(esdm_session *session, const char *name, char *text,
                                  size_t bytes);
/** Normalises a container name into `buffer` (ESDM_CONTAINER_NAME_MAX + 1 bytes). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_normalise(const char *name, char *buffer,
                                                              esdm_error *err);

typedef struct esdm_snapshot_info {
    uint64_t snapshot;
    uint64_t parent;
    uint64_t time_ns;
    const char *writer;  /**< "user@host:pid program" */
    const char *message; /**< "" for none */
} esdm_snapshot_info;
typedef bool (*esdm_snapshot_visitor)(const esdm_snapshot_info *info, void *user);
/** Visits the kept snapshots, oldest first. @param name of a container; a name in time (NAME@7,
 * also of a container that was replaced or removed since) stands for the container that it says. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_snapshots(esdm_session *session,
                                                              const char *name,
                                                              esdm_snapshot_visitor visit,
                                                              void *user, esdm_error *err);

/** One live fragment of a dataset; borrowed during the callback. */
typedef struct esdm_fragment_info {
    uint32_t rank;
    const uint64_t *offset;
    const uint64_t *size;   /**< extent, from the first to the last element */
    const uint64_t *stride; /**< `rank` steps between its elements; NULL: it holds all of them */
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t position;  /**< in the pack, bytes */
    const char *target; /**< "(inline)" when kept in the metadata store; "(constant)": one element
                             there; "(file)", "(link)": elsewhere; copies: "one,two"; of one node
                             alone: "burst@node7" */
    const char *pack;   /**< "" when in none */
    const char *codec;
    uint64_t sequence; /**< where two of a dataset hold an element, the larger one's is seen */
} esdm_fragment_info;
typedef bool (*esdm_fragment_visitor)(const esdm_fragment_info *info, void *user);
/** Visits the fragments of the dataset in the handle's snapshot (committed ones alone). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_fragments(esdm_dataset *dataset,
                                                            esdm_fragment_visitor visit, void *user,
                                                            esdm_error *err);

/* ---- queries ------------------------------------------------------------------------------ */

typedef struct esdm_match {
    const char *container;
    const char *dataset; /**< path in the container ("/ocean/tos"), NULL: the container itself */
} esdm_match;
typedef bool (*esdm_match_visitor)(const esdm_match *match, void *user);

/**
 * Finds containers and datasets by their attributes, answered from the attribute index.
 *
 * Grammar: comparisons joined by `and` and `or`, with `not` and brackets. A comparison is `NAME OP
 * VALUE`, NAME an attribute, `VARIABLE:NAME` or `:NAME` (containers alone), OP one of `= != < <= >
 * >= ~ =~` (`~` is a glob, `=~` a regular expression of PCRE2, both on text), VALUE a number, a
 * bare word or a text in single or double quotes; or `NAME in (VALUE, …)`, `NAME not in (…)`,
 * `exists NAME`. About data: `time overlaps DATE .. DATE`, `box overlaps W,S,E,N`, `level overlaps
 * NUMBER .. NUMBER UNIT`, `grid = KIND`, `max(VARIABLE) > NUMBER UNIT`, `min(…)`,
 * `length(DIMENSION)
 * >= NUMBER`, `text ~ WORDS`. See esdm-find(1). A container is found when its own attributes meet
 * the expression; a dataset when its attributes do, or its container's where it has none of the
 * name, and one of its own meets a comparison that is not within a `not`. Matches come by byte
 * order of names, each once.
 * @return ESDM_EINVAL with the column of the first wrong token, or when the expression has more
 * than 4096 alternatives or 64 comparisons that are joined by `and`.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find(esdm_session *session, const char *expression,
                                               esdm_match_visitor visit, void *user,
                                               esdm_error *err);

/**
 * Ends questions of this session, esdm_find() and those below, once the metadata store has worked
 * on one for so long: with ESDM_ETIMEDOUT, after some of the answer or none. What is asked of
 * several tables is several questions to the store. Any thread; those under way are not changed.
 * @param most_ms milliseconds; 0, as at first: no limit.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_limit(esdm_session *session, uint32_t most_ms,
                                                     esdm_error *err);

/** An attribute of a match: its own or, lacking it, its container's. Borrowed during the call. */
typedef struct esdm_find_value {
    const char *text; /**< its first 1024 bytes; elements joined by ", "; NULL: there is none */
    double number;
    bool has_number; /**< it is one number */
} esdm_find_value;
/** @param values one for each column. @return false: no more. */
typedef bool (*esdm_find_row_visitor)(const esdm_match *match, const esdm_find_value *values,
                                      void *user);
/**
 * esdm_find() with the values of some attributes, read from the index; no container is opened. The
 * rows are of one state of the store; they are visited when all are known (esdm_find_sorted() with
 * a limit reads no more than that).
 * @param columns `ncolumns` names of attributes, without variables; NULL when there is none.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_rows(esdm_session *session, const char *expression,
                                                    const char *const *columns, size_t ncolumns,
                                                    esdm_find_row_visitor visit, void *user,
                                                    esdm_error *err);

/** How esdm_find_sorted() sorts. */
typedef struct esdm_find_order {
    const char *const *keys; /**< names of attributes, without variables; the first decides first */
    const bool *descending;  /**< of each key; NULL: none */
    size_t nkeys;
    uint64_t limit;  /**< visits so many at most; 0: all */
    bool containers; /**< visits each container once: its first match by byte order */
} esdm_find_order;
/**
 * The first rows of esdm_find_rows() in the order of some attributes: numbers before texts (by
 * bytes; of a descending key the other way round), what lacks the attribute last in either
 * direction, and what is alike by byte order of names. With a limit below 65536, and where the
 * metadata store has an index in the order of the first key (SQLite), the time does not grow with
 * how many are found. The rows are of one state of the store; they are visited when all are known.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_sorted(esdm_session *session, const char *expression,
                                                      const char *const *columns, size_t ncolumns,
                                                      const esdm_find_order *order,
                                                      esdm_find_row_visitor visit, void *user,
                                                      esdm_error *err);

/** @param name which of those that were asked for, from 0. @param value borrowed during the call.
 *  @return false: no more. */
typedef bool (*esdm_facet_visitor)(size_t name, const char *value, uint64_t containers, void *user);
/**
 * Counts the containers that esdm_find() visits, or has matches in, by the values of some
 * attributes (a match's own or, lacking it, its container's; elements joined by ", "). Of each name
 * the most frequent value comes first. No container is opened, and where containers alone are found
 * the metadata store counts. @param names `nnames` names of attributes, without variables.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_facets(esdm_session *session, const char *expression,
                                                      const char *const *names, size_t nnames,
                                                      esdm_facet_visitor visit, void *user,
                                                      esdm_error *err);

/**
 * Keeps an expression in the site under a name, for all who use it; one of the name is replaced.
 * @param name 1 to 64 letters, digits, '_' and '-'.
 * @param expression NULL: it is forgotten, ESDM_ENOENT when there was none.
 * @return ESDM_EINVAL for a wrong name or expression.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_save(esdm_session *session, const char *name,
                                                    const char *expression, esdm_error *err);
/** ESDM_ENOENT: there is none. @param ret_expression owned, free(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_saved(esdm_session *session, const char *name,
                                                     char **ret_expression, esdm_error *err);
/** @return false: no more. The texts are borrowed during the call. */
typedef bool (*esdm_find_saved_visitor)(const char *name, const char *expression, void *user);
/** The kept expressions, by byte order of their names. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_saved_list(esdm_session *session,
                                                          esdm_find_saved_visitor visit, void *user,
                                                          esdm_error *err);

/** "NAME", "VARIABLE:NAME" or ":NAME"; borrowed during the call. @return false: no more. */
typedef bool (*esdm_find_name_visitor)(const char *name, void *user);
/**
 * Visits texts that tell why an expression may find nothing: the names in it that nothing in the
 * site has, each with its column and the name that was perhaps meant.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_explain(esdm_session *session,
                                                       const char *expression,
                                                       esdm_find_name_visitor visit, void *user,
                                                       esdm_error *err);
/** Visits the names in an expression that nothing in the site has: why it may find nothing. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_find_unknown(esdm_session *session,
                                                       const char *expression,
                                                       esdm_find_name_visitor visit, void *user,
                                                       esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
