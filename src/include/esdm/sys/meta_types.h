/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_META_TYPES_H
#define ESDM_SYS_META_TYPES_H

/**
 * @file
 * What metadata stores are told, and what they tell: records, snapshots, pages, commits, imports.
 * The words are explained in esdm/sys/meta_store.h.
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESDM_META_UUID_BYTES 33 /**< 32 hex digits and NUL */

/** State of a container at its newest snapshot. */
typedef struct esdm_meta_container {
    uint64_t container;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t snapshot;  /**< newest */
    uint64_t structure; /**< structure number of that snapshot */
    uint64_t created_ns;
    uint64_t modified_ns;
    /* Sums over live pages of the newest snapshot. */
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint64_t fragments;
    uint32_t datasets;
} esdm_meta_container;

typedef struct esdm_meta_length {
    uint32_t dimension; /**< id of an unlimited dimension */
    uint64_t length;
} esdm_meta_length;

/** A snapshot as loaded. Free `document` and `lengths` with free(). */
typedef struct esdm_meta_snapshot {
    esdm_meta_container record;
    uint64_t snapshot;
    uint64_t structure;
    char *document; /**< NUL-terminated JSON; owned */
    size_t document_bytes;
    esdm_meta_length *lengths; /**< sorted by dimension; owned; NULL when none */
    size_t nlengths;
    bool untagged; /**< the record has no tags; false: it may have some, tag_list() tells */
} esdm_meta_snapshot;

/** One page's directory entry. */
typedef struct esdm_meta_page {
    uint64_t page; /**< store-wide number, never reused */
    uint32_t dataset;
    uint32_t records;
    uint64_t added; /**< snapshot that published it */
    uint32_t level; /**< compaction level, chosen by the engine */
    bool absolute;  /**< its records carry absolute sequence numbers (merged page) */
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint32_t rank;
    const uint64_t *box; /**< `rank` lower corners, then `rank` sizes: hull of its fragments */
} esdm_meta_page;

/** A page to publish. */
typedef struct esdm_meta_new_page {
    uint32_t dataset;
    uint32_t records;
    uint32_t level;
    bool absolute;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
    uint32_t rank;
    const uint64_t *box;
    const void *data;
    size_t bytes;
    bool apart; /**< must not meet what others have published: see esdm_meta_commit.seen */
} esdm_meta_new_page;

/** One entry of the attribute index. */
typedef struct esdm_meta_attribute {
    uint32_t dataset;         /**< 0: the container itself (global attributes) */
    const char *dataset_path; /**< "/group/name", NULL for the container */
    const char *name;
    const char *text; /**< text form, NULL if it has none */
    double number;    /**< valid when has_number */
    bool has_number;
} esdm_meta_attribute;

/** How an extent enters the index. */
typedef enum esdm_meta_extent_how {
    ESDM_META_EXTENT_SET,   /**< replaces what is stored */
    ESDM_META_EXTENT_LOWER, /**< the lesser of both numbers stays */
    ESDM_META_EXTENT_UPPER, /**< the greater of both numbers stays */
    /** SET when some container of the store has the extent ESDM_META_EXTENT_FOLLOWS, seen within
     *  the transaction; else nothing happens. A number. Last of its list. Only where the plug-in
     *  has extent_merge(). */
    ESDM_META_EXTENT_IF_FOLLOWED
} esdm_meta_extent_how;

/** The engine's mark of saved queries, whose ranges follow those of other containers. */
#define ESDM_META_EXTENT_FOLLOWS "@members"

/**
 * What is known about the values of a container, or of one of its datasets: the ends of its time
 * range, of its box, of its values. Names begin with '@', as no attribute's does; conditions of
 * find() on such names (but "@type", an attribute) are about extents. An object has one value for
 * a name. Unlike attributes, extents change with data.
 */
typedef struct esdm_meta_extent {
    uint32_t dataset; /**< 0: the container itself */
    const char *name;
    esdm_meta_extent_how how; /**< SET when it is not a number */
    bool has_number;
    double number;
    const char
        *text; /**< when it is not a number; "": this object has none, whatever others have */
} esdm_meta_extent;

#define ESDM_META_EXTENT_NAME_MAX 1000 /**< bytes */

/** Whether a name is that of an extent. */
static inline bool
esdm_meta_is_extent(const char *name)
{
    return name[0] == '@' && !(name[1] == 't' && name[2] == 'y' && name[3] == 'p' &&
                               name[4] == 'e' && name[5] == '\0');
}

/**
 * Yields one more page to publish, or NULL after the last one.
 * @param ret_page borrowed until the next call. An error ends the commit, which publishes nothing.
 */
typedef esdm_status (*esdm_meta_page_source)(void *user, const esdm_meta_new_page **ret_page,
                                             esdm_error *err);

typedef enum esdm_meta_commit_kind {
    ESDM_META_CREATE,  /**< the name must be free: else ESDM_EEXIST */
    ESDM_META_REPLACE, /**< new record takes over the name (free or not) */
    ESDM_META_UPDATE   /**< next snapshot of record `container` */
} esdm_meta_commit_kind;

/** What somebody has seen of a container that is to be replaced (container_move_seen()), or from
 *  which a commit follows. */
typedef struct esdm_meta_seen {
    uint64_t container;
    uint64_t snapshot; /**< the newest one then */
} esdm_meta_seen;

/** Everything one commit publishes, in one transaction. */
typedef struct esdm_meta_commit {
    esdm_meta_commit_kind kind;
    const char *name;     /**< CREATE, REPLACE */
    const char *uuid;     /**< CREATE, REPLACE */
    const char *keep_as;  /**< REPLACE: the name that the replaced record gets; NULL: it becomes
                               garbage */
    uint64_t container;   /**< UPDATE */
    uint64_t structure;   /**< UPDATE: structure number this writer started from */
    const char *document; /**< new structure; NULL (UPDATE only): unchanged */
    size_t document_bytes;
    uint32_t datasets;               /**< number of datasets in the document */
    const esdm_meta_length *lengths; /**< merged with the head's by maximum */
    size_t nlengths;
    const esdm_meta_new_page *pages;
    size_t npages;
    /** Further pages, published behind `pages`; NULL: none. Called inside the transaction, so that
     *  pages from many processes need not all be in memory; it does not call the store. */
    esdm_meta_page_source next_page;
    void *next_page_user;
    const uint64_t *merged; /**< pages that absolute new pages replace */
    size_t nmerged;
    /** UPDATE: the newest snapshot of which the caller knows that no `apart` page disagrees with
     * it. The hull of an `apart` page that meets one of the same dataset published after it, live
     * or not, is an ESDM_ECONFLICT that sets *ret_newer: the caller looks closer, and comes again.
     */
    uint64_t seen;
    uint64_t *ret_newer; /**< the newest snapshot, above `seen`; untouched otherwise; may be NULL */
    const esdm_meta_attribute *attributes; /**< the whole index of this container, objects and
                                                entries of one attribute together; replaces the
                                                stored one when `document` is set */
    size_t nattributes;
    const char *writer;
    const char *message;
    bool durable; /**< survive power loss when the call returns */
    uint32_t
        history; /**< snapshots to keep (≥ 1); older unpinned ones may be pruned now or later */
    /* Since interface 8. */
    const esdm_meta_extent *extents; /**< that change; each object and name at most once */
    size_t nextents;
    bool all_extents; /**< each is SET, and extents that are not among these are deleted */
    /**
     * Records to whose packs the pages refer beside the record's own: adds to shared_list() what
     * share() would, in the same transaction. Each is pinned by the caller, and was when it still
     * had a name, which it may have lost since. ESDM_ECONFLICT: one is not there any more. Only
     * where the plug-in says `commit_shares`. Since interface 8.
     */
    const uint64_t *shares;
    size_t nshares;
    /**
     * A tag that the new snapshot gets in the same transaction, in the place of one of that name;
     * its `snapshot` does not count. NULL: none. Only where the plug-in says `commit_tags`. Since
     * interface 8.
     */
    const struct esdm_meta_tag *tag;
    /**
     * UPDATE: another record from which this commit follows. Within the transaction that is still
     * its newest snapshot, else nothing is published: ESDM_ECONFLICT. Of two commits at once that
     * follow from each other's records one is refused therefore. NULL: none. Only where the plug-in
     * says `commit_follows`. Since interface 8.
     */
    const esdm_meta_seen *follows;
} esdm_meta_commit;

typedef struct esdm_meta_committed {
    uint64_t container;
    uint64_t snapshot;
    uint64_t structure;
    uint64_t time_ns;
    uint64_t replaced;   /**< REPLACE: the record that lost the name, 0 if none */
    uint64_t first_page; /**< number of pages[0]; the others follow consecutively */
} esdm_meta_committed;

/** One comparison of a query; all must hold. */
typedef enum esdm_meta_operator {
    ESDM_META_EQ,
    ESDM_META_NE,
    ESDM_META_LT,
    ESDM_META_LE,
    ESDM_META_GT,
    ESDM_META_GE,
    ESDM_META_GLOB
} esdm_meta_operator;
typedef struct esdm_meta_condition {
    const char
        *variable; /**< last component of the dataset path; NULL: any object; "": container */
    const char *attribute;
    esdm_meta_operator op;
    bool is_number;
    double number;
    const char *text; /**< set when not is_number, and the literal's text otherwise */
} esdm_meta_condition;

/** What must hold of comparisons. */
typedef enum esdm_meta_node_kind {
    ESDM_META_HOLDS, /**< comparison `condition` holds */
    ESDM_META_FAILS, /**< it does not hold */
    ESDM_META_ALL,   /**< all that follows up to `size` nodes; without any: always */
    ESDM_META_ANY    /**< some of what follows up to `size` nodes; without any: never */
} esdm_meta_node_kind;

/** A node of an expression, which stands before what it joins. */
typedef struct esdm_meta_node {
    esdm_meta_node_kind kind;
    uint32_t condition; /**< HOLDS, FAILS: its number */
    uint32_t size; /**< nodes of this part, with this one: the next one beside it follows them */
} esdm_meta_node;

/** Comparisons joined by "and", "or" and "not"; the first node joins all others. */
typedef struct esdm_meta_expression {
    const esdm_meta_condition *conditions;
    size_t nconditions;
    const esdm_meta_node *nodes;
    size_t nnodes;    /**< 0: all comparisons hold */
    uint32_t most_ms; /**< ESDM_ETIMEDOUT when a statement takes longer; 0: no limit. Stores may
                           pass it by. Since interface 9 */
} esdm_meta_expression;
#define ESDM_META_EXPRESSION_CONDITIONS_MAX 256
#define ESDM_META_EXPRESSION_DEPTH_MAX      24 /**< of nodes below nodes */

/** How far ordered() has come: what it has not visited has values behind this one. */
typedef struct esdm_meta_position {
    enum { ESDM_META_AT_BEGIN, ESDM_META_AT_NUMBER, ESDM_META_AT_TEXT, ESDM_META_AT_END } at;
    double number;
    char *text;     /**< owned by who asks, free() */
    bool one_value; /**< all that the last call visited has this value of its own */
} esdm_meta_position;

/** A view: how containers are browsed by their own (global) attributes, level by level. */
typedef struct esdm_meta_view {
    const char *const *attributes; /**< of each level; none has a line's end or '=' in it */
    const char *const *values;     /**< that it must have; NULL: any. No line's end */
    size_t nlevels;                /**< 1 … ESDM_META_VIEW_LEVELS_MAX */
    const char *without;           /**< what has this attribute is not in it */
} esdm_meta_view;
#define ESDM_META_VIEW_LEVELS_MAX 32

/**
 * Where a store stands in a migration (esdm_site_migrate()). LEAVING: it can be read, commits are
 * ESDM_EACCES. ARRIVING and LEFT: open(), make(), check() and remove() are ESDM_ENOTSUP with the
 * note; site_id() answers. A configuration that is `migrating` opens a store in any state, for
 * reading and writing.
 */
typedef enum esdm_meta_state {
    ESDM_META_ACTIVE = 0,
    ESDM_META_LEAVING = 1,  /**< is being copied */
    ESDM_META_ARRIVING = 2, /**< is being filled */
    ESDM_META_LEFT = 3      /**< was copied; its packs belong to the other store */
} esdm_meta_state;

#define ESDM_META_NOTE_BYTES 256 /**< of the note beside a state, with its NUL */

/** A snapshot as another store had it. */
typedef struct esdm_meta_import_snapshot {
    uint64_t snapshot;
    uint64_t parent;
    uint64_t structure;
    uint64_t time_ns;
    const char *writer;
    const char *message;
    const char *document; /**< NULL: that of the snapshot before */
    size_t document_bytes;
    const esdm_meta_length *lengths; /**< sorted by dimension */
    size_t nlengths;
} esdm_meta_import_snapshot;

/** A page as another store had it; its number is given anew. */
typedef struct esdm_meta_import_page {
    esdm_meta_new_page page; /**< borrowed until the next one is asked for */
    uint64_t added;
    uint64_t removed; /**< 0: live */
} esdm_meta_import_page;

/** A name that somebody gave a snapshot, which is kept as long as it has one. */
typedef struct esdm_meta_tag {
    const char *name; /**< unique in its container; 1 … ESDM_META_TAG_NAME_MAX bytes */
    uint64_t snapshot;
    uint64_t created_ns; /**< 0, for tag_set(): now */
    const char *author;  /**< NULL, for tag_set(): "" */
    /** For tag_set() with `replace`: a tag of that name on this snapshot or a later one stays as it
     *  is, which is ESDM_OK. Of two who set it at once the later snapshot wins. */
    bool only_newer;
} esdm_meta_tag;
#define ESDM_META_TAG_NAME_MAX 255
/**
 * Tags of the engine's own, which no user can give; their `author` is a text of the engine.
 * A record that has the tag SEAL does not change any more: commits to it are ESDM_EACCES, and so is
 * each change of its name but from one that begins with '/' (the engine's own), or to one that
 * begins with "/former/" and ends in "-d" (it is removed). SEAL can only be given to the newest
 * snapshot: ESDM_ECONFLICT. Moving packs (relocate()), pruning and other tags go on.
 */
#define ESDM_META_TAG_SEAL       "esdm:seal"
#define ESDM_META_TAG_RETRACTION "esdm:retraction"

/** A container as another store had it. */
typedef struct esdm_meta_import {
    const char *name;
    esdm_meta_container record;                 /**< but for its number */
    const esdm_meta_import_snapshot *snapshots; /**< oldest first, ≥ 1, the first with document */
    size_t nsnapshots;
    const esdm_meta_attribute *attributes; /**< as for commits */
    size_t nattributes;
    uint64_t npages;
    /** Called `npages` times: the next page, in the order of their numbers within a dataset. */
    esdm_status (*next_page)(void *user, esdm_meta_import_page *ret_page, esdm_error *err);
    void *user;
    /** Called after the last page: the uuids of other records whose packs the pages name, for
     *  shared_list(). NULL: none. @param ret_uuids borrowed until the import ends. */
    void (*shares)(void *user, const char *const **ret_uuids, size_t *ret_count);
    const esdm_meta_tag *tags;
    size_t ntags;
    const esdm_meta_extent *extents; /**< since interface 8 */
    size_t nextents;
} esdm_meta_import;

/** A container that begins with one snapshot of another one, and shares its packs. */
typedef struct esdm_meta_clone {
    uint64_t container;  /**< record that has the snapshot; it may lose its name to the new one */
    const char *from;    /**< what it is called, for messages */
    uint64_t snapshot;   /**< 0: the newest */
    const char *name;    /**< of the new record */
    const char *uuid;    /**< of the new record */
    bool replace;        /**< the new record takes over the name, as ESDM_META_REPLACE */
    const char *keep_as; /**< with `replace`: as in esdm_meta_commit */
    const char *writer;
    const char *message;
    bool durable;
    /** As for commits, of that snapshot's document. A store may keep those of each document, and
     *  then does not look at these. */
    const esdm_meta_attribute *attributes;
    size_t nattributes;
} esdm_meta_clone;

/** Record `container` may refer to packs that are named after `uuid`, which is not its own. */
typedef bool (*esdm_meta_shared_visitor)(const char *uuid, uint64_t container, void *user);

typedef bool (*esdm_meta_tag_visitor)(const esdm_meta_tag *tag, void *user);

typedef bool (*esdm_meta_attribute_visitor)(const esdm_meta_attribute *attribute, void *user);
typedef bool (*esdm_meta_extent_visitor)(const esdm_meta_extent *extent, void *user);
/** `container`: which of those that were asked for, from 0. */
typedef bool (*esdm_meta_value_visitor)(size_t container, const esdm_meta_attribute *attribute,
                                        void *user);
typedef bool (*esdm_meta_name_visitor)(const char *name, void *user);
typedef bool (*esdm_meta_number_visitor)(uint64_t container, void *user);
/** @param name which of those that were asked for, from 0. */
typedef bool (*esdm_meta_facet_visitor)(size_t name, const char *value, uint64_t containers,
                                        void *user);
/** @param value elements of an attribute, joined by ", "; NULL: there is none. */
typedef bool (*esdm_meta_view_visitor)(const char *value, uint64_t containers, void *user);
typedef bool (*esdm_meta_container_visitor)(const char *name, const esdm_meta_container *record,
                                            void *user);
typedef bool (*esdm_meta_page_visitor)(const esdm_meta_page *page, void *user);
typedef bool (*esdm_meta_snapshot_visitor)(uint64_t snapshot, uint64_t parent, uint64_t time_ns,
                                           const char *writer, const char *message, void *user);
typedef bool (*esdm_meta_match_visitor)(const char *container, const char *dataset_path,
                                        void *user);
typedef bool (*esdm_meta_garbage_visitor)(uint64_t container, const char *uuid, void *user);
/** `name` is NULL for garbage. */
typedef bool (*esdm_meta_record_visitor)(uint64_t container, const char *uuid, const char *name,
                                         void *user);

/** In page_list(): the pages of all snapshots that are kept, pinned ones and garbage included. */
#define ESDM_META_EVERY_SNAPSHOT UINT64_MAX

/** A page whose fragments lie elsewhere from now on: the same records in the same order, other
 *  packs or positions. */
typedef struct esdm_meta_relocation {
    uint64_t page;
    const void *data;
    size_t bytes;
    bool moved; /**< set by relocate() */
} esdm_meta_relocation;

/** A text that belongs to the site or to a container: see fact_get(). */
typedef bool (*esdm_meta_fact_visitor)(const char *name, const char *text, void *user);
#define ESDM_META_FACT_NAME_MAX 200 /**< bytes of a fact's name: printable ASCII */

/** Takes bytes of a backup. */
typedef esdm_status (*esdm_meta_bytes_sink)(void *user, const void *data, size_t bytes,
                                            esdm_error *err);
/** Gives the next bytes of a backup. @param ret_data borrowed until the next call; NULL: the end.
 */
typedef esdm_status (*esdm_meta_bytes_source)(void *user, const void **ret_data, size_t *ret_bytes,
                                              esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
