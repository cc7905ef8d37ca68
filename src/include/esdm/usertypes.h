/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_USERTYPES_H
#define ESDM_USERTYPES_H

/**
 * @file
 * User-defined types: compounds, enumerations, opaque bytes and variable-length arrays.
 *
 * A type belongs to a container and lies in one of its groups, where types, datasets and groups
 * share their names. Its number is ESDM_TYPE_FIRST_USER plus its position in the order of
 * definition; types are never removed. The number stands wherever an esdm_type does: datasets,
 * attributes and fill values of the same container, in any group.
 *
 * Compounds and enumerations get their members one by one. The first use of their values (an
 * attribute, a fill value, data, a commit), or esdm_type_complete(), completes a type and all that
 * it consists of: after that it does not change any more.
 *
 * The *memory layout* of compounds (size, offsets) is the program's own and not stored. In a
 * container that is opened, compounds are laid out as a C compiler lays out a struct of their
 * members in their order; ask before you read into a struct that may differ.
 *
 * In memory a variable-length array is an esdm_vlen, a string a `char *`. Values that are read,
 * also within others, are the caller's: esdm_values_clear() frees them, as does free() of each.
 *
 * Threads: as in esdm/container.h.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The number of the first user-defined type of a container. */
#define ESDM_TYPE_FIRST_USER 64

typedef enum esdm_type_class {
    ESDM_CLASS_ATOMIC,
    ESDM_CLASS_COMPOUND,
    ESDM_CLASS_ENUM,
    ESDM_CLASS_OPAQUE,
    ESDM_CLASS_VLEN
} esdm_type_class;

/** A variable-length array in memory; the same as netCDF's nc_vlen_t. */
typedef struct esdm_vlen {
    size_t count;
    void *values; /**< `count` elements of the base type, malloc'ed when read; NULL if there are
                       none */
} esdm_vlen;

/* ---- definition --------------------------------------------------------------------------- */

/**
 * Defines a compound without members.
 * @param bytes in memory, its padding included; at most 2^31-1.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_compound_create(esdm_group *group, const char *name,
                                                          size_t bytes, esdm_type *ret_type,
                                                          esdm_error *err);
/**
 * Adds a member.
 * @param offset in bytes, in memory. Members must not overlap or lie beyond the compound's size.
 * @param member atomic, or a type that was defined before the compound.
 * @param rank,shape of an array of such elements, sizes ≥ 1; 0 and NULL for a single one.
 * ESDM_EINVAL when the compound is complete already. What contradicts other members (names,
 * overlaps) is found when the type is completed.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_compound_add(esdm_container *container,
                                                       esdm_type compound, const char *name,
                                                       size_t offset, esdm_type member,
                                                       uint32_t rank, const uint32_t *shape,
                                                       esdm_error *err);
/** Defines an enumeration without members. @param base an integer type. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_enum_create(esdm_group *group, const char *name,
                                                      esdm_type base, esdm_type *ret_type,
                                                      esdm_error *err);
/** Adds a member; names and values are unique. @param value one element of the base type. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_enum_add(esdm_container *container, esdm_type type,
                                                   const char *name, const void *value,
                                                   esdm_error *err);
/** Defines a type of `bytes` bytes that mean nothing to ESDM; 1 … 2^31-1. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_opaque_create(esdm_group *group, const char *name,
                                                        size_t bytes, esdm_type *ret_type,
                                                        esdm_error *err);
/** Defines arrays of any length. @param base atomic, or a type that was defined before. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_vlen_create(esdm_group *group, const char *name,
                                                      esdm_type base, esdm_type *ret_type,
                                                      esdm_error *err);
/** Checks a type and ends its definition. ESDM_EINVAL says what is wrong with it. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_type_complete(esdm_container *container, esdm_type type,
                                                        esdm_error *err);

/* ---- inquiry ------------------------------------------------------------------------------ */

typedef struct esdm_type_info {
    const char *name;  /**< borrowed, as all below */
    esdm_group *group; /**< NULL for atomic types */
    esdm_type_class kind;
    size_t bytes;     /**< of one element in memory */
    esdm_type base;   /**< of enumerations and variable-length arrays, else ESDM_TYPE_NONE */
    uint32_t members; /**< of compounds and enumerations */
    bool is_complete;
} esdm_type_info;

typedef struct esdm_compound_member {
    const char *name;
    size_t offset; /**< in memory */
    esdm_type type;
    uint32_t rank; /**< 0: a single element */
    const uint32_t *shape;
} esdm_compound_member;

typedef struct esdm_enum_member {
    const char *name;
    const void *value; /**< one element of the base type */
} esdm_enum_member;

/** About any type, atomic ones included. false when there is no such type. */
ESDM_API bool esdm_type_inquire(const esdm_container *container, esdm_type type,
                                esdm_type_info *ret);
/** Bytes of one element in memory; 0 for an unknown type. */
ESDM_API size_t esdm_container_type_size(const esdm_container *container, esdm_type type);
/** Whether elements hold no strings or variable-length arrays, at any depth. ESDM_EINVAL when the
 *  type is unknown or cannot be completed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_type_is_fixed_size(const esdm_container *container,
                                                             esdm_type type, bool *ret_is_fixed,
                                                             esdm_error *err);
/** false when there is no such member, or `type` is no compound. */
ESDM_API bool esdm_compound_member_at(const esdm_container *container, esdm_type type,
                                      uint32_t index, esdm_compound_member *ret);
/** false when there is no such member, or `type` is no enumeration. */
ESDM_API bool esdm_enum_member_at(const esdm_container *container, esdm_type type, uint32_t index,
                                  esdm_enum_member *ret);
/** Number of user-defined types: their numbers go from ESDM_TYPE_FIRST_USER on. */
ESDM_API size_t esdm_container_type_count(const esdm_container *container);
/** Those of one group alone, in order of definition. */
ESDM_API size_t esdm_group_type_count(const esdm_group *group);
ESDM_API esdm_type esdm_group_type_at(const esdm_group *group, size_t index);
/** By name in this group alone; ESDM_TYPE_NONE when there is none. */
ESDM_API esdm_type esdm_group_type_find(const esdm_group *group, const char *name);
/** Whether two complete types have the same values and names of members; their own names, groups
 * and memory layouts do not count. */
ESDM_API bool esdm_type_equal(const esdm_container *container, esdm_type type,
                              const esdm_container *other_container, esdm_type other);

/* ---- values in memory --------------------------------------------------------------------- */

/** Frees the strings and arrays within `count` elements (not the elements themselves) and sets them
 *  to NULL. Does nothing for an unknown or incomplete type. */
ESDM_API void esdm_values_clear(const esdm_container *container, esdm_type type, uint64_t count,
                                void *values);
/** Copies `count` elements with all that is within them. On failure `to` holds nothing to be freed.
 *  ESDM_EINVAL for an unknown or incomplete type, or an array that says NULL holds elements. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_values_copy(const esdm_container *container,
                                                      esdm_type type, uint64_t count,
                                                      const void *from, void *to, esdm_error *err);
/** Whether `count` elements are the same, bit for bit (padding aside). */
ESDM_API bool esdm_values_equal(const esdm_container *container, esdm_type type, uint64_t count,
                                const void *a, const void *b);

#ifdef __cplusplus
}
#endif
#endif
