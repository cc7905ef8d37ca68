/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_CONTAINER_H
#define ESDM_MODEL_CONTAINER_H

/**
 * @file
 * Structure of a container in memory. Public accessors (esdm/container.h) that only touch structure
 * are implemented in src/model; those that touch data or the store are in src/api.
 *
 * Ownership: the container owns every group, dimension, dataset and attribute list, in arrays of
 * pointers, so that addresses stay valid until esdm__container_free().
 * Every structural change is told by esdm__container_changed(), and fails with ESDM_EACCES on a
 * read-only handle.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "esdm/accuracy.h"
#include "esdm/container.h"
#include "model/names.h"

/** Growable array of borrowed or owned pointers. */
typedef struct esdm__pointers {
    void **items;
    size_t count;
    size_t capacity;
} esdm__pointers;

typedef struct esdm__hint {
    char *key;
    char *value;
} esdm__hint;

typedef struct esdm__hints {
    esdm__hint *items;
    size_t count;
} esdm__hints;

/** What esdm_container_revert() goes back to; see model/undo.h. */
typedef struct esdm__undo {
    bool active;     /* there is a mark */
    bool dirty;      /* structure_dirty at the mark */
    bool hints_kept; /* of the container */
    uint32_t number; /* of the mark: objects that carry it are kept */
    uint32_t next_dataset_id;
    size_t groups; /* that there were */
    size_t dimensions;
    size_t datasets;
    size_t types;
    struct esdm__undo_entry *entries; /* owned; in order */
    size_t count;
    size_t capacity;
} esdm__undo;

struct esdm_attributes {
    esdm_container *container;           /* borrowed: dirty flag, writability */
    struct esdm__attribute_entry *items; /* owned; in order; see attribute.c */
    esdm__names *names;                  /* owned; to positions in items; NULL: they are few */
    uint32_t kept;                       /* the mark since which changes can be undone */
    uint32_t count : 31;
    uint32_t of_dataset : 1;
};

struct esdm_group {
    esdm_container *container;
    esdm_group *parent;
    char *name;
    uint32_t id;
    uint32_t depth;              /* 0 for the root */
    esdm__pointers groups;       /* esdm_group *, borrowed */
    esdm__pointers dimensions;   /* esdm_dimension *, borrowed */
    esdm__pointers datasets;     /* esdm_dataset *, borrowed */
    esdm__pointers types;        /* esdm__usertype *, borrowed */
    esdm__names members;         /* groups, datasets and types share names; see group.c */
    esdm__names dimension_names; /* to positions in dimensions */
    esdm_attributes attributes;
};

struct esdm_dimension {
    esdm_group *group;
    char *name;
    uint32_t id;
    bool unlimited;
    _Atomic uint64_t length; /* grows by atomic maximum from many writers */
};

/** How accurate numbers need be where fragments are stored in layers (codec/blob.h): off by no more
 *  than the larger one, in units of the stored numbers. Both 0: as they are stored. */
typedef struct esdm__coarse {
    double absolute;
    double share; /* of the range of the numbers of a fragment */
} esdm__coarse;

static inline bool
esdm__coarse_is_asked(const esdm__coarse *coarse)
{
    return coarse != NULL && (coarse->absolute > 0 || coarse->share > 0);
}

/** What is stated for few datasets. */
typedef struct esdm__stated {
    uint64_t *chunk;                      /* owned; NULL when not stated */
    char *codec;                          /* owned; NULL when not stated */
    struct esdm__kept_accuracy *accuracy; /* owned; NULL when not stated; model/accuracy_kept.h */
    char *units; /* owned; those in which it was stated, when they were changed since */
    void *fill;  /* owned, see esdm__value_new(); or NULL */
    esdm__hints hints;
    esdm__coarse coarse; /* of reads of this handle; set when it is opened */
    uint32_t kept;       /* as of attributes */
} esdm__stated;

/** There may be very many: one piece of memory each, in which the name stands behind the
 * dimensions. */
struct esdm_dataset {
    esdm_group *group;
    char *name;     /* in this piece, unless name_apart */
    uint32_t id;    /* ≥ 1 */
    uint32_t index; /* in its group */
    esdm_type type;
    _Atomic uint32_t named_at;   /* `changes`, cut, when another dataset named it: auxiliary.c */
    esdm_dimension **dimensions; /* borrowed pointers; owned array, unless it is the one below */
    const esdm__stated *stated;  /* never NULL; owned, unless nothing was stated so far */
    esdm_attributes attributes;
    /* esdm__changes_mark() when no accuracy within regions was stated of it */
    _Atomic uint32_t unregioned_at;
    uint8_t rank;         /* ≤ ESDM_MAX_RANK */
    atomic_bool has_data; /* something was written through this handle or is committed */
    bool io_was_freed;    /* it had engine state before; under the lock of the container's */
    bool name_apart;      /* the name is a piece of its own: it was renamed */
    atomic_uint io_users; /* calls that use it: it stays as long */
    atomic_uint object;   /* number for those who observe; 0: not asked yet */
    void *io;             /* engine state of this dataset while it needs some; see io/ */
    void *io_choice;      /* what of it took time, while it has none; under the same lock */
    esdm_dimension *dimensions_here[]; /* what it was made with */
};

/** `changes` of a container as a mark in a dataset, which counts while it equals them. From 2^32
 *  changes on there is none: 0, which they never are. */
static inline uint32_t
esdm__changes_mark(uint64_t changes)
{
    return changes <= UINT32_MAX ? (uint32_t) changes : 0;
}

/** Reads in place of the engine, of containers whose data lie in others (virtual/virtual.h). */
typedef struct esdm__provider {
    /** As esdm_read(), of a selection that was checked; many threads. */
    esdm_status (*read)(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                        void *buffer, uint64_t *ret_out_of_range, esdm_error *err);
    /** Frees `provided`, before the container is freed. */
    void (*free)(void *provided);
} esdm__provider;

/** ESDM__HINT_SHAPE of a dataset as a commit of this handle has noted it, while others may read.
 * Few datasets have one. */
typedef struct esdm__shape_note {
    struct esdm__shape_note *next;
    const esdm_dataset *_Atomic dataset; /* NULL: it was taken back */
    char why[];
} esdm__shape_note;

struct esdm_container {
    esdm_session *session; /* borrowed */
    char *name;
    char *said; /* what a former container was called to open it; NULL: by its name */
    bool writable;
    bool coarse; /* numbers are read less accurately than they are stored: NAME?accuracy=1% */
    esdm_conversion conversion;
    bool structure_dirty;
    _Atomic uint64_t changes;  /* of the structure in memory, counted from 1 */
    _Atomic uint64_t named_at; /* `changes` when `named_at` of all datasets was brought up to it */
    atomic_bool lengths_dirty; /* an unlimited dimension was extended: a commit must publish it */
    uint64_t snapshot;
    uint32_t next_dataset_id;
    esdm__pointers groups;      /* owned; [0] is the root */
    esdm__pointers dimensions;  /* owned */
    esdm__pointers datasets;    /* owned; in order of creation over all groups */
    esdm__pointers types;       /* owned; esdm__usertype *, in order of definition */
    esdm__pointers words;       /* owned; names of attributes, once each, of all objects */
    esdm__names words_by_text;  /* to positions in words */
    pthread_mutex_t types_lock; /* guards the completion of types; a leaf lock */
    esdm__hints hints;
    esdm__shape_note *_Atomic shape_notes; /* owned; only added to */
    esdm__undo undo;
    void (*settle)(esdm_container *container); /* NULL, or: waits for who reads structure */
    void *io;                                  /* engine state of this container; see io/ */
    const esdm__provider *provider;            /* NULL: data are the engine's */
    void *provided;                            /* owned by the provider */
};

/** The structure changed: a commit must publish it. */
static inline void
esdm__container_changed(esdm_container *container)
{
    container->structure_dirty = true;
    atomic_fetch_add(&container->changes, 1);
}

/** Before a change of structure: those who read it behind their caller have ended. */
static inline void
esdm__container_settle(esdm_container *container)
{
    if (container->settle != NULL)
        container->settle(container);
}

/** A fresh container with an empty root group; name is copied. NULL when out of memory. */
esdm_container *esdm__container_new(const char *name);
/** Frees all objects. `io` pointers must have been released. NULL is accepted. */
void esdm__container_free(esdm_container *container);

/**
 * Writes the structure as the JSON container document (schemas/container.schema.json): groups,
 * dimensions (without the lengths of unlimited ones), datasets, attributes, hints. Bit-exact for
 * every value: finite floats in 17 (9) digits, others as hex bit patterns, text that is not UTF-8
 * in base64, 64-bit integers as JSON integers or, above INT64_MAX, as texts.
 * @param ret_text owned, free(); NUL-terminated.
 */
esdm_status esdm__document_write(const esdm_container *container, char **ret_text,
                                 size_t *ret_bytes, esdm_error *err);

/**
 * Fills an empty container from a document. Hostile documents give ESDM_ECORRUPT naming the JSON
 * path; a newer `format` gives ESDM_ENOTSUP. The container is usable for esdm__container_free()
 * alone after a failure.
 */
esdm_status esdm__document_read(const char *text, size_t bytes, esdm_container *container,
                                esdm_error *err);

/** Version of the document's `format` that is written: since 5 with a checksum. Older ones, which
 * are read: 1; 2 with user-defined types; 3 with fill values that are NULL, or dimensions of any
 * group; 4 with accuracies. */
#define ESDM__DOCUMENT_FORMAT 5
/** Hint by which a dataset with an accuracy of mode `balanced` has mode `fast`: libraries of the
 * same format that do not know that mode read `balanced`, and keep the hint. */
#define ESDM__HINT_MODE      "esdm.mode"
#define ESDM__HINT_MODE_FAST "fast"
/** A dataset whose writer did as readers wanted (io/session/readers.h) has this hint: why. */
#define ESDM__HINT_SHAPE "esdm.shape"

/** The dataset with that id; NULL: there is none. */
const esdm_dataset *esdm__container_dataset(const esdm_container *container, uint32_t id);
/** "/group/name" of a dataset; owned, free(). NULL when out of memory. */
char *esdm__dataset_path(const esdm_dataset *dataset);
/** Raises the length atomically to at least `length`; returns whether it grew. */
bool esdm__dimension_grow(esdm_dimension *dimension, uint64_t length);

bool esdm__pointers_add(esdm__pointers *list, void *item); /* false: out of memory */
/** Makes room for one more item, which esdm__pointers_add() then cannot fail to add. */
bool esdm__pointers_reserve(esdm__pointers *list);
/** Before each change of structure. ESDM_EACCES on a read-only handle. Changes nothing. */
esdm_status esdm__container_check_writable(esdm_container *container, esdm_error *err);
/** ESDM_EACCES on a read-only handle; else marks the structure dirty. */
esdm_status esdm__container_touch(esdm_container *container, esdm_error *err);

/** Sets the fill value of a dataset even if it has data, which nobody is to see any more. NULL: the
 *  type's default. */
esdm_status esdm__dataset_put_fill(esdm_dataset *dataset, const void *value, esdm_error *err);
/** States the codec chain without asking whether its codecs exist; NULL: the site decides. */
esdm_status esdm__dataset_set_codec_text(esdm_dataset *dataset, const char *chain, esdm_error *err);
/** Copies fill value, chunk shape, codecs, accuracy and hints to a dataset that was just made. Both
 *  have the same type and rank, and may be in different containers. */
esdm_status esdm__dataset_copy_properties(const esdm_dataset *from, esdm_dataset *to,
                                          esdm_error *err);

/** Most hints of an object: they are searched one by one. */
#define ESDM__HINTS_MAX 1000
/** Deepest nesting of groups: the way up is walked to find a dimension. */
#define ESDM__GROUP_DEPTH_MAX 256

/** Sets or (value NULL) removes a hint. *ret_changed: false when it was so already. */
esdm_status esdm__hints_set(esdm__hints *hints, const char *key, const char *value,
                            bool *ret_changed, esdm_error *err);
/** NULL when not set. */
const char *esdm__hints_get(const esdm__hints *hints, const char *key);
void esdm__hints_clear(esdm__hints *hints);

/** Copies all attributes, in their order, into an empty list, which must be cleared also on
 *  failure. */
esdm_status esdm__attributes_copy(const esdm_attributes *from, esdm_attributes *to,
                                  esdm_error *err);
/** Text of an attribute of a dataset, cut to the buffer; "" when there is none or it is no text. */
void esdm__attribute_text(const esdm_dataset *dataset, const char *name, char *buffer,
                          size_t bytes);
/** The dataset's own, made when it has none; NULL: out of memory. Lives as long as the dataset. */
esdm__stated *esdm__dataset_stated(esdm_dataset *dataset, esdm_error *err);
/** As esdm__hints_set(), without asking for writability or marking anything. */
esdm_status esdm__dataset_put_hint(esdm_dataset *dataset, const char *key, const char *value,
                                   bool *ret_changed, esdm_error *err);
/** Notes ESDM__HINT_SHAPE beside the hints, which others may read. Caller holds the commit lock.
 *  @return false: no memory. */
bool esdm__dataset_note_shape(const esdm_dataset *dataset, const char *why);
/** What was noted so; borrowed. NULL: nothing. */
const char *esdm__dataset_shape_noted(const esdm_dataset *dataset);
/** Frees the names of attributes, after all lists. */
void esdm__words_clear(esdm_container *container);
/** Gives a dataset other dimensions, and a chunk shape of as many; takes over both arrays. */
void esdm__dataset_put_dimensions(esdm_dataset *dataset, uint32_t rank, esdm_dimension **dimensions,
                                  uint64_t *chunk);
/** Frees the attributes of a list; the list itself belongs to its object. */
void esdm__attributes_clear(esdm_attributes *list);

/* Creation without asking for writability or marking anything: what esdm_*_create() and the
 * document reader share. Arguments are checked (ESDM_EINVAL, ESDM_EEXIST). */
esdm_status esdm__group_new(esdm_group *parent, const char *name, esdm_group **ret_group,
                            esdm_error *err);
esdm_status esdm__dimension_new(esdm_group *group, const char *name, uint64_t length,
                                esdm_dimension **ret_dimension, esdm_error *err);
esdm_status esdm__dataset_new(esdm_group *group, uint32_t id, const char *name, esdm_type type,
                              uint32_t rank, esdm_dimension *const *dimensions,
                              esdm_dataset **ret_dataset, esdm_error *err);
/** @param ret_changed false when the attribute had this very value. */
esdm_status esdm__attribute_put(esdm_attributes *list, const char *name, esdm_type type,
                                uint64_t count, const void *values, bool *ret_changed,
                                esdm_error *err);
/** Takes an attribute out, if there is one, and marks nothing: for handles that only read. */
void esdm__attribute_drop(esdm_attributes *list, const char *name);
/** Frees what esdm__*_new() made, after the container has forgotten it. */
void esdm__group_free(esdm_group *group);
void esdm__dimension_free(esdm_dimension *dimension);
void esdm__dataset_free(esdm_dataset *dataset);

#endif
