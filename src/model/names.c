/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checksum.h"
#include "base/error.h"
#include "esdm/container.h"

/* ---- table: open addressing with linear probing -------------------------------------------- */

typedef struct esdm__names_slot {
    uint32_t hash;
    uint32_t number; /* value + 1; 0 when free */
} esdm__names_slot;

uint32_t
esdm__names_hash(const char *name)
{
    if (name == NULL)
        return 0;
    uint64_t sum = esdm__checksum(name, strlen(name));
    return (uint32_t) (sum ^ (sum >> 32));
}

void
esdm__names_clear(esdm__names *names)
{
    free(names->slots);
    memset(names, 0, sizeof *names);
}

/* The capacity is no power of two, so that a name takes 10 to 15 bytes, not 10 to 21. */
static uint32_t
home_of(uint32_t hash, uint32_t capacity)
{
    return (uint32_t) (((uint64_t) hash * capacity) >> 32);
}

static uint32_t
after(uint32_t i, uint32_t capacity)
{
    return i + 1 < capacity ? i + 1 : 0;
}

/* Steps from one place on to another. */
static uint32_t
steps(uint32_t from, uint32_t to, uint32_t capacity)
{
    return to >= from ? to - from : to + (capacity - from);
}

static void
place(esdm__names_slot *slots, uint32_t capacity, esdm__names_slot entry)
{
    uint32_t i = home_of(entry.hash, capacity);
    while (slots[i].number != 0)
        i = after(i, capacity);
    slots[i] = entry;
}

bool
esdm__names_reserve(esdm__names *names)
{
    if ((uint64_t) (names->count + 1) * 5 <= (uint64_t) names->capacity * 4)
        return true;
    if (names->capacity >= UINT32_C(1) << 31)
        return false;
    uint32_t capacity = names->capacity > 1 ? names->capacity + names->capacity / 2 : 2;
    esdm__names_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < names->capacity; i++) {
        if (names->slots[i].number != 0)
            place(slots, capacity, names->slots[i]);
    }
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

void
esdm__names_add(esdm__names *names, uint32_t hash, uint32_t value)
{
    place(names->slots, names->capacity, (esdm__names_slot){hash, value + 1});
    names->count++;
}

void
esdm__names_remove(esdm__names *names, uint32_t hash, uint32_t value)
{
    uint32_t capacity = names->capacity;
    uint32_t hole = home_of(hash, capacity);
    while (names->slots[hole].number != value + 1)
        hole = after(hole, capacity);
    /* Entries behind the hole move into it unless that puts them before their first place. */
    for (uint32_t i = after(hole, capacity); names->slots[i].number != 0; i = after(i, capacity)) {
        uint32_t home = home_of(names->slots[i].hash, capacity);
        if (steps(home, i, capacity) >= steps(hole, i, capacity)) {
            names->slots[hole] = names->slots[i];
            hole = i;
        }
    }
    names->slots[hole].number = 0;
    names->count--;
}

void
esdm__names_shift(esdm__names *names, uint32_t value)
{
    for (uint32_t i = 0; i < names->capacity; i++) {
        if (names->slots[i].number > value + 1)
            names->slots[i].number--;
    }
}

bool
esdm__names_find(const esdm__names *names, const char *name, uint32_t hash,
                 esdm__names_lookup lookup, const void *owner, uint32_t *ret_value)
{
    if (names->count == 0)
        return false;
    for (uint32_t i = home_of(hash, names->capacity); names->slots[i].number != 0;
         i = after(i, names->capacity)) {
        uint32_t value = names->slots[i].number - 1;
        if (names->slots[i].hash == hash && strcmp(lookup(owner, value), name) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* ---- rules --------------------------------------------------------------------------------- */

/* Bytes of the sequence that starts with `first`, 0 if none does. */
static size_t
utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2)
        return 0;
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF5 ? 4 : 0;
}

bool
esdm__utf8_is_valid(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *) text;
    const unsigned char *end = p + bytes;
    while (p < end) {
        size_t length = utf8_length(*p);
        if (length == 0 || (size_t) (end - p) < length)
            return false;
        for (size_t i = 1; i < length; i++) {
            if ((p[i] & 0xC0) != 0x80)
                return false;
        }
        bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
        bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
        bool too_large = p[0] == 0xF4 && p[1] >= 0x90;
        if (overlong || surrogate || too_large)
            return false;
        p += length;
    }
    return true;
}

esdm_status
esdm__name_check(const char *name, const char *what, esdm_error *err)
{
    if (name == NULL || name[0] == '\0')
        return esdm__error_set(err, ESDM_EINVAL, "the name of a %s must not be empty", what);
    size_t bytes = strlen(name);
    if (bytes > ESDM_NAME_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "%s name '%.40s...' has %zu bytes, more than %d",
                               what, name, bytes, ESDM_NAME_MAX);
    if (memchr(name, '/', bytes) != NULL)
        return esdm__error_set(err, ESDM_EINVAL, "%s name '%s' contains '/'", what, name);
    if (!esdm__utf8_is_valid(name, bytes))
        return esdm__error_set(err, ESDM_EINVAL, "%s name '%s' is not valid UTF-8", what, name);
    return ESDM_OK;
}

/* U+0000 … U+001F, U+007F … U+009F in valid UTF-8. */
static bool
has_control_characters(const char *text)
{
    for (const unsigned char *p = (const unsigned char *) text; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7F || (*p == 0xC2 && p[1] < 0xA0))
            return true;
    }
    return false;
}

esdm_status
esdm__branch_check(const char *branch, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    size_t bytes = strlen(branch);
    if (bytes > 0 && bytes <= ESDM_BRANCH_MAX && strpbrk(branch, "@?: ") == NULL &&
        esdm__name_normalise(branch, normal, NULL) == ESDM_OK && strcmp(normal, branch) == 0)
        return ESDM_OK;
    return esdm__error_set(
        err, ESDM_EINVAL,
        "'%.200s' cannot be the name of a branch: it has 1 to %d bytes of UTF-8, "
        "and no '@', '?', ':', blanks or control characters; '/' stands between "
        "two parts",
        branch, ESDM_BRANCH_MAX);
}

static esdm_status
check_component(const char *name, const char *part, size_t bytes, esdm_error *err)
{
    if ((bytes == 1 && part[0] == '.') || (bytes == 2 && part[0] == '.' && part[1] == '.'))
        return esdm__error_set(err, ESDM_EINVAL,
                               "container name '%.200s': '.' and '..' are not allowed", name);
    if (bytes > 255)
        return esdm__error_set(err, ESDM_EINVAL,
                               "container name: component '%.40s...' has %zu bytes, more than 255",
                               part, bytes);
    return ESDM_OK;
}

esdm_status
esdm__name_normalise(const char *name, char *buffer, esdm_error *err)
{
    static const char scheme[] = "esdm://";
    char result[ESDM_CONTAINER_NAME_MAX + 1];
    size_t used = 0;

    if (name == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "container name: must not be NULL");
    const char *rest = name;
    if (strncasecmp(rest, scheme, sizeof scheme - 1) == 0)
        rest += sizeof scheme - 1;
    if (!esdm__utf8_is_valid(rest, strlen(rest)))
        return esdm__error_set(err, ESDM_EINVAL, "container name '%.200s' is not valid UTF-8",
                               name);
    if (has_control_characters(rest))
        return esdm__error_set(err, ESDM_EINVAL,
                               "container name '%.200s' contains a control character", name);
    for (;;) {
        rest += strspn(rest, "/"); /* repeated slashes count as one, as in file paths */
        size_t bytes = strcspn(rest, "/");
        if (bytes == 0)
            break;
        esdm_status st = check_component(name, rest, bytes, err);
        if (st != ESDM_OK)
            return st;
        if (used + (used > 0) + bytes > ESDM_CONTAINER_NAME_MAX)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "container name '%.40s...' is longer than %d bytes", name,
                                   ESDM_CONTAINER_NAME_MAX);
        if (used > 0)
            result[used++] = '/';
        memcpy(result + used, rest, bytes);
        used += bytes;
        rest += bytes;
    }
    if (used == 0)
        return esdm__error_set(err, ESDM_EINVAL, "container name '%.200s' is empty", name);
    result[used] = '\0';
    memcpy(buffer, result, used + 1);
    return ESDM_OK;
}
