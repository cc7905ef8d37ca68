/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_USERTYPE_H
#define ESDM_MODEL_USERTYPE_H

/**
 * @file
 * User-defined types in memory (esdm/usertypes.h). A complete type does not change any more and may
 * be looked at from all threads; completing is locked inside.
 *
 * Stored form of an element: numbers, characters and enumerations little-endian, opaque bytes as
 * they are; a string as a varint of its length plus 1 (0 for NULL) and its bytes; an array as a
 * varint of its count and its elements; a compound as its members in order. Nothing lies in
 * between. A type without strings and arrays so has elements of a fixed size.
 */

#include "esdm/usertypes.h"
#include "model/container.h"

/** Deepest nesting of types: their values are walked by recursion. */
#define ESDM__TYPE_DEPTH_MAX 64
/** Most bytes of an element in memory. */
#define ESDM__TYPE_BYTES_MAX ((size_t) 1 << 30)
/** Most dimensions of a member. */
#define ESDM__MEMBER_RANK_MAX 32

typedef struct esdm__usertype esdm__usertype;

/** A type with its object: NULL for atomic ones. */
typedef struct esdm__typeref {
    esdm_type type;
    const esdm__usertype *user; /* complete */
} esdm__typeref;

typedef struct esdm__member {
    char *name; /* owned */
    size_t offset;
    esdm_type type;
    uint32_t rank;
    uint32_t *shape; /* owned; NULL without */
} esdm__member;

typedef struct esdm__enumerator {
    char *name;     /* owned */
    uint64_t value; /* its low bytes in memory are one element of the base type */
} esdm__enumerator;

/** Part of a compound: a run of bytes that is stored as it lies, or elements of one type. */
typedef struct esdm__step {
    size_t offset;
    size_t bytes; /* of the run; 0: elements */
    esdm__typeref of;
    uint64_t count;
} esdm__step;

struct esdm__usertype {
    esdm_group *group;
    char *name; /* owned */
    esdm_type type;
    esdm_type_class kind;
    esdm_type base;      /* enum, vlen */
    size_t memory_bytes; /* of an element */
    size_t alignment;    /* of compounds that were laid out by esdm__usertype_align() */
    void *zero;          /* owned: an element of zeros; NULL until esdm__usertype_need_zero() */
    size_t count;        /* members or enumerators */
    size_t capacity;
    esdm__member *members;         /* owned; compound */
    esdm__enumerator *enumerators; /* owned; enum */
    atomic_bool complete;          /* what follows is valid */
    bool variable;                 /* holds strings or arrays */
    bool plain;                    /* fixed, and stored as it lies in memory */
    uint32_t depth;
    uint64_t stored_bytes; /* of an element; of variable ones the least */
    esdm__typeref base_of; /* vlen */
    esdm__step *steps;     /* owned; compound */
    size_t step_count;
};

/** NULL when the number is not one of a user-defined type. May be incomplete. */
esdm__usertype *esdm__usertype_at(const esdm_container *container, esdm_type type);
/** Completes a type: ESDM_EINVAL says what is wrong with it. Any thread. */
esdm_status esdm__usertype_complete(const esdm__usertype *type, esdm_error *err);
/** Completes all types of a container. */
esdm_status esdm__usertypes_complete(const esdm_container *container, esdm_error *err);
void esdm__usertype_free(esdm__usertype *type);

/** Finds and completes. ESDM_EINVAL for an unknown type. */
esdm_status esdm__type_resolve(const esdm_container *container, esdm_type type,
                               esdm__typeref *ret_ref, esdm_error *err);
static inline size_t
esdm__typeref_bytes(esdm__typeref ref)
{
    return ref.user != NULL ? ref.user->memory_bytes : esdm_type_size(ref.type);
}
static inline bool
esdm__typeref_is_variable(esdm__typeref ref)
{
    return ref.user != NULL ? ref.user->variable : ref.type == ESDM_TYPE_STRING;
}
/** Makes the zeros that esdm__type_default_fill() gives for the type. */
esdm_status esdm__usertype_need_zero(const esdm_container *container, esdm_type type,
                                     esdm_error *err);
/** One default fill value: of an enumeration its base type's, else zeros. NULL: unknown type. */
const void *esdm__type_default_fill(const esdm_container *container, esdm_type type);
/** The name of any type; NULL if unknown. */
const char *esdm__type_name(const esdm_container *container, esdm_type type);

/* What esdm_*_create() and the document reader share: nothing is asked or marked. */
esdm_status esdm__usertype_new(esdm_group *group, const char *name, esdm_type_class kind,
                               size_t memory_bytes, esdm_type base, esdm__usertype **ret_type,
                               esdm_error *err);
esdm_status esdm__usertype_add_member(esdm__usertype *type, const char *name, size_t offset,
                                      esdm_type member, uint32_t rank, const uint32_t *shape,
                                      esdm_error *err);
esdm_status esdm__usertype_add_enumerator(esdm__usertype *type, const char *name, const void *value,
                                          esdm_error *err);
/** Lays a compound out as a C compiler does: sets its offsets and size. Its members' types are
 *  complete. ESDM_EINVAL when it is too large. */
esdm_status esdm__usertype_align(esdm__usertype *type, esdm_error *err);

#endif
