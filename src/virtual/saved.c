/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Queries under a name: a container without data, whose hints say what it stands for. Its structure
 * is that of the whole when it was saved, so that it is found by queries. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/former.h"
#include "virtual/parts.h"

/* ---- pins --------------------------------------------------------------------------------- */

static bool
write_pin(const esdm__virtual_member *m, void *user)
{
    char line[ESDM_CONTAINER_NAME_MAX + ESDM__UUID_BYTES + 40];
    int n = snprintf(line, sizeof line, "%" PRIu64 " %s %s\n", m->snapshot, m->uuid, m->name);
    esdm__buffer_put(user, line, (size_t) n);
    return true;
}

void
esdm__pins_write(const esdm__members *members, esdm__buffer *text)
{
    (void) esdm__members_visit(members, write_pin, text);
}

/* "SNAPSHOT UUID NAME" up to the end of the line. */
static bool
read_line(const char *line, size_t bytes, esdm__pin *pin, char **ret_name)
{
    char *end = NULL;
    errno = 0;
    pin->snapshot = strtoull(line, &end, 10);
    if (errno != 0 || end == line || *end != ' ' || end + ESDM__UUID_BYTES + 1 > line + bytes ||
        end[ESDM__UUID_BYTES] != ' ')
        return false;
    memcpy(pin->uuid, end + 1, ESDM__UUID_BYTES - 1);
    pin->uuid[ESDM__UUID_BYTES - 1] = '\0';
    const char *name = end + ESDM__UUID_BYTES + 1;
    *ret_name = strndup(name, (size_t) (line + bytes - name));
    return *ret_name != NULL;
}

esdm_status
esdm__pins_read(const char *text, esdm__question *question, esdm_error *err)
{
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    question->names = calloc(lines + 1, sizeof *question->names);
    question->pins = calloc(lines + 1, sizeof *question->pins);
    if (question->names == NULL || question->pins == NULL)
        return esdm__error_nomem(err, lines * sizeof *question->pins, "members");
    const char *line = text;
    for (size_t i = 0; i < lines; i++) {
        const char *end = strchr(line, '\n');
        if (!read_line(line, (size_t) (end - line), &question->pins[i], &question->names[i]))
            return esdm__error_set(err, ESDM_ECORRUPT, "line %zu of the members is damaged", i + 1);
        question->count++;
        line = end + 1;
    }
    return ESDM_OK;
}

/* ---- members that were moved -------------------------------------------------------------- */

/* A pinned member that is not where it was. */
typedef struct lost {
    const char *uuid;
    size_t member;
} lost;

typedef struct moving {
    esdm__question *question;
    lost *lost; /* sorted; owned */
    size_t count;
    bool moved, nomem;
} moving;

static int
by_uuid(const void *a, const void *b)
{
    return strcmp(((const lost *) a)->uuid, ((const lost *) b)->uuid);
}

static bool
note_moved(const char *name, const esdm_meta_container *record, void *user)
{
    moving *m = user;
    const lost wanted = {.uuid = record->uuid};
    const lost *found = bsearch(&wanted, m->lost, m->count, sizeof wanted, by_uuid);
    esdm__former former;
    bool removed = found != NULL && esdm__former_parse(name, &former);
    if (found == NULL || (name[0] == '/' && !removed))
        return true;
    char *copy = strdup(removed ? former.name : name); /* what esdm-restore takes */
    m->nomem = copy == NULL;
    if (m->nomem)
        return false;
    m->moved = m->moved || strcmp(copy, m->question->names[found->member]) != 0;
    free(m->question->names[found->member]);
    m->question->names[found->member] = copy;
    return true;
}

static esdm_status
note_lost(const esdm_session *session, moving *m, esdm_error *err)
{
    const esdm__question *question = m->question;
    for (size_t i = 0; i < question->count; i++) {
        esdm_meta_container record;
        esdm_error why = {0};
        esdm_status status =
            session->meta->container_find(session->store, question->names[i], &record, &why);
        if (status == ESDM_OK && strcmp(record.uuid, question->pins[i].uuid) == 0)
            continue;
        if (status != ESDM_OK && status != ESDM_ENOENT) {
            if (err != NULL)
                *err = why;
            return status;
        }
        m->lost[m->count++] = (lost){question->pins[i].uuid, i};
    }
    return ESDM_OK;
}

/* Pinned members that have another name by now get it, also those that were removed under it, which
 * esdm-restore brings back: what stays is their UUID. Looks through the
 * whole catalogue where some are not where they were. */
static esdm_status
follow_moved(const esdm_session *session, esdm__question *question, bool *ret_moved,
             esdm_error *err)
{
    moving m = {.question = question, .lost = calloc(question->count + 1, sizeof *m.lost)};
    *ret_moved = false;
    if (m.lost == NULL)
        return esdm__error_nomem(err, question->count * sizeof *m.lost, "members");
    esdm_status status = note_lost(session, &m, err);
    if (status == ESDM_OK && m.count > 0) {
        qsort(m.lost, m.count, sizeof *m.lost, by_uuid);
        status = session->meta->container_list(session->store, NULL, note_moved, &m, err);
    }
    if (status == ESDM_OK && m.nomem)
        status = esdm__error_nomem(err, ESDM_CONTAINER_NAME_MAX, "a name");
    *ret_moved = m.moved;
    free(m.lost);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* At all members, where others commit meanwhile: then the next opening does it. */
#define LOOKS_MOST 3

bool
esdm__virtual_is_saved(const esdm_container *container)
{
    return esdm_container_hint(container, ESDM__SAVED_QUERY) != NULL;
}

/* @param definition open; borrowed. */
static esdm_status
ask_again(const esdm_container *definition, esdm__question *ret, esdm_error *err)
{
    const char *query = esdm_container_hint(definition, ESDM__SAVED_QUERY);
    const char *pins = esdm_container_hint(definition, ESDM__SAVED_PINS);
    if (query == NULL || query[0] != '?')
        return esdm__error_set(err, ESDM_ECORRUPT, "'%s' does not say its query", definition->name);
    esdm_status status = esdm__question_ask(definition->session, query, pins, ret, err);
    if (status != ESDM_OK || ret->across != NULL ||
        esdm_container_hint(definition, ESDM__SAVED_CHECKED) != NULL)
        return status;
    ret->across = strdup("*"); /* it was saved when members of different runs joined */
    return ret->across != NULL ? ESDM_OK : esdm__error_nomem(err, 2, "a query");
}

/* Others may have committed after the question that led to what was stored, have widened what was
 * there before, and taken their marks off: of what is found by now nothing is lost.
 * @param ret_all all has to be looked at once more. */
static esdm_status
catch_up(const esdm_container *definition, bool *ret_all)
{
    esdm_session *session = definition->session;
    esdm__question now = {0};
    esdm_meta_container saved = {0};
    size_t n = 0;
    esdm_status status = ask_again(definition, &now, NULL);
    esdm__virtual_member *members = calloc(now.count + 1, sizeof *members);
    if (status == ESDM_OK && members == NULL)
        status = ESDM_ENOMEM;
    for (size_t i = 0; i < now.count && status == ESDM_OK; i++) {
        members[n].name = now.names[i];
        status = esdm__member_find(session, &members[n], NULL);
        if (status == ESDM_OK)
            n++;
        else if (status == ESDM_ENOENT)
            status = ESDM_OK; /* removed since */
    }
    esdm__container_position(definition, &saved.container, &saved.snapshot);
    if (status == ESDM_OK)
        status = esdm__hull_widen(session, definition->name, &saved, members, n, ret_all, NULL);
    free(members);
    esdm__question_clear(&now);
    return status;
}

/* @param whole what the definition's query has opened. */
static esdm_status
keep_hull(const esdm_container *whole, esdm_container *definition, bool again)
{
    uint64_t record, snapshot;
    bool pinned = esdm_container_hint(definition, ESDM__SAVED_PINS) != NULL;
    bool all = true;
    esdm_container *next = NULL;
    esdm_status status = ESDM_OK;
    esdm__container_position(definition, &record, &snapshot);
    for (int i = 0; i < LOOKS_MOST && status == ESDM_OK && all; i++) {
        bool stored = false;
        esdm__question question = {0};
        if (i > 0)
            status = ask_again(definition, &question, NULL);
        esdm__container_drop(next);
        next = NULL;
        if (i > 0 && status == ESDM_OK)
            status = esdm__virtual_open_question(definition->session, definition->name, &question,
                                                 &next, NULL);
        esdm__question_clear(&question);
        all = false;
        if (status == ESDM_OK)
            status = esdm__hull_keep(i == 0 ? whole : next, record, snapshot, pinned, again,
                                     &stored, NULL);
        if (status == ESDM_OK && stored && !pinned)
            status = catch_up(definition, &all);
    }
    esdm__container_drop(next);
    return status;
}

/* What is found out about its ranges is kept, where it can be. */
static esdm_status
open_saved(esdm_container *definition, bool again, esdm_container **ret_container, esdm_error *err)
{
    esdm__question question = {0};
    esdm_session *session = esdm_container_session(definition);
    bool moved = false;
    esdm_status status = ask_again(definition, &question, err);
    if (status == ESDM_OK)
        status =
            esdm__virtual_open_question(session, definition->name, &question, ret_container, err);
    if (status != ESDM_OK && question.pins != NULL &&
        follow_moved(session, &question, &moved, NULL) == ESDM_OK && moved)
        status =
            esdm__virtual_open_question(session, definition->name, &question, ret_container, err);
    if (status != ESDM_OK)
        status =
            esdm__error_prefix(err, status, "the virtual container '%.300s'", definition->name);
    else
        (void) !keep_hull(*ret_container, definition, again);
    esdm__question_clear(&question);
    return status;
}

esdm_status
esdm__virtual_open_saved(esdm_container *definition, esdm_container **ret_container,
                         esdm_error *err)
{
    return open_saved(definition, false, ret_container, err);
}

esdm_status
esdm__virtual_reindex(esdm_session *session, bool again, esdm_error *err)
{
    esdm__question saved = {0};
    esdm_status status = esdm__question_saved(session, &saved, err);
    for (size_t i = 0; i < saved.count && status == ESDM_OK; i++) {
        esdm_container *definition = NULL;
        esdm_container *whole = NULL;
        esdm_status one = esdm__io_open(session, saved.names[i], ESDM_OPEN_READ,
                                        ESDM_SNAPSHOT_LATEST, &definition, NULL);
        if (one == ESDM_OK && esdm__virtual_is_saved(definition))
            one = open_saved(definition, again, &whole, NULL);
        esdm__container_drop(whole);
        esdm__container_drop(definition);
        if (one == ESDM_ENOMEM)
            status = esdm__error_nomem(err, sizeof *whole, "virtual containers");
    }
    esdm__question_clear(&saved);
    return status;
}

/* ---- saving ------------------------------------------------------------------------------- */

/* @param pins NULL, or the members as they are. */
static esdm_status
describe(esdm_container *to, const char *query, const char *pins, esdm_error *err)
{
    esdm_attributes *root = esdm_group_attributes(esdm_container_root(to));
    esdm_status status = esdm_container_set_hint(to, ESDM__SAVED_QUERY, query, err);
    if (status == ESDM_OK)
        status = esdm_container_set_hint(to, ESDM__SAVED_CHECKED, "origins", err);
    if (status == ESDM_OK && pins != NULL)
        status = esdm_container_set_hint(to, ESDM__SAVED_PINS, pins, err);
    if (status == ESDM_OK)
        status = esdm_attribute_set(root, ESDM__SAVED_ATTRIBUTE, ESDM_TYPE_CHAR, strlen(query),
                                    query, err);
    return status;
}

/* Of one container, or of several. */
static void
write_pins(esdm_container *whole, esdm__buffer *text)
{
    const esdm__virtual *provided = whole->provided;
    const esdm__container_io *io = esdm__io_of(whole);
    esdm__virtual_member one = {.name = whole->name, .snapshot = io->snapshot};
    const esdm__members single = {.items = &one, .count = 1};
    memcpy(one.uuid, io->uuid, sizeof one.uuid);
    esdm__pins_write(provided != NULL ? &provided->members : &single, text);
    esdm__buffer_put(text, "", 1);
}

esdm_status
esdm__virtual_save(esdm_container *whole, const char *query, bool pin, esdm_container *to,
                   esdm_error *err)
{
    esdm__buffer pins = {0};
    if (whole->coarse)
        return esdm__error_set(
            err, ESDM_ENOTSUP,
            "a saved query says no accuracy: leave '&accuracy=' out, and open the "
            "name with '?accuracy='");
    esdm_status status = esdm__virtual_copy_structure(whole, to, err);
    to->writable = true;
    if (status == ESDM_OK && pin)
        write_pins(whole, &pins);
    if (pins.failed)
        status = esdm__error_nomem(err, pins.bytes, "members");
    if (status == ESDM_OK)
        status = describe(to, query, pin ? (const char *) pins.data : NULL, err);
    esdm__buffer_clear(&pins);
    return status;
}

/* What was committed since the whole was opened bears no mark, as there was nothing yet to follow
 * it, or has lost it: it is asked for once more. */
static esdm_status
look_again(esdm_session *session, const char *name, esdm_error *err)
{
    esdm_container *definition = NULL;
    esdm_container *whole = NULL;
    esdm_status status =
        esdm__io_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &definition, err);
    if (status == ESDM_OK && esdm_container_hint(definition, ESDM__SAVED_PINS) == NULL)
        status = open_saved(definition, false, &whole, err);
    esdm__container_drop(whole);
    esdm__container_drop(definition);
    return status;
}

esdm_status
esdm__virtual_index(const esdm_container *whole, const char *name, esdm_error *err)
{
    esdm_session *session = whole->session;
    esdm_meta_container record;
    bool stored = false;
    esdm_status status = session->meta->container_find(session->store, name, &record, err);
    if (status == ESDM_OK)
        status =
            esdm__hull_keep(whole, record.container, record.snapshot, false, true, &stored, err);
    return status == ESDM_OK ? look_again(session, name, err) : status;
}

typedef struct telling {
    bool (*visit)(const char *member, uint64_t snapshot, void *user);
    void *user;
} telling;

static bool
tell_pin(const esdm__virtual_member *member, void *user)
{
    const telling *t = user;
    return t->visit(member->name, member->snapshot, t->user);
}

void
esdm__virtual_pinned(const esdm_container *whole,
                     bool (*visit)(const char *member, uint64_t snapshot, void *user), void *user)
{
    const esdm__virtual *provided = whole->provided;
    telling t = {visit, user};
    if (provided == NULL)
        (void) visit(whole->name, esdm__io_of(whole)->snapshot, user);
    else
        (void) esdm__members_visit(&provided->members, tell_pin, &t);
}

/* ---- who uses whom ------------------------------------------------------------------------ */

/* Each is asked for: of more pinned members than that those that were moved are told by the names
 * that they had. */
#define LOOK_MOST 1024

static esdm_status
visit_one(esdm_session *session, const char *name, esdm__member_visitor visit, void *user,
          bool *ret_stopped, esdm_error *err)
{
    esdm_container *definition = NULL;
    esdm__question question = {0};
    bool moved = false;
    esdm_status status =
        esdm__io_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &definition, err);
    if (status == ESDM_ENOENT)
        return ESDM_OK; /* removed since */
    if (status != ESDM_OK)
        return status;
    if (esdm__virtual_is_saved(definition))
        status = ask_again(definition, &question, err);
    if (status == ESDM_OK && question.pins != NULL && question.count <= LOOK_MOST)
        status = follow_moved(session, &question, &moved, err);
    for (size_t i = 0; i < question.count && status == ESDM_OK && !*ret_stopped; i++)
        *ret_stopped = !visit(name, question.names[i], question.pins != NULL, user);
    if (status == ESDM_ENOENT)
        status = ESDM_OK; /* it has no members now */
    esdm__question_clear(&question);
    esdm__container_drop(definition);
    return status;
}

esdm_status
esdm__virtual_members(esdm_session *session, esdm__member_visitor visit, void *user,
                      esdm_error *err)
{
    esdm__question saved = {0};
    bool stopped = false;
    esdm_status status = esdm__question_saved(session, &saved, err);
    for (size_t i = 0; i < saved.count && status == ESDM_OK && !stopped; i++)
        status = visit_one(session, saved.names[i], visit, user, &stopped, err);
    esdm__question_clear(&saved);
    return status;
}
