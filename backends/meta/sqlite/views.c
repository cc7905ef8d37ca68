/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Counts of containers for the levels of views.
 *
 * Each view is a tree of rows of `view_node`: its root says the view, a node below has a part (a
 * value, or that there is none) and the number of containers at or below it. `view_member` has the
 * last node of each container that is entered. Only containers with names that programs can say are
 * entered, when their attributes are (attributes.c); a level that is asked for is made of the nodes
 * and of the lists of those that wait, without containers that queries pass by
 * (base/hidden_names.h). The tables are made with the first view, so that older versions read the
 * store as before.
 */

#include "views.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS view_node(node INTEGER PRIMARY KEY, parent INTEGER NOT NULL,"
    " part TEXT NOT NULL, n INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS view_node_part ON view_node(parent, part);"
    "CREATE TABLE IF NOT EXISTS view_member(container INTEGER NOT NULL, node INTEGER NOT NULL,"
    " PRIMARY KEY(container, node)) WITHOUT ROWID;" SQLITE__HIDDEN_INDEX;

/* Names of attributes of datasets, which queries look up (find.c). */
static const char dataset_names[] =
    "INSERT OR IGNORE INTO store SELECT DISTINCT 'name:' || name, 1 FROM attribute "
    "WHERE dataset <> 0;"
    "INSERT OR IGNORE INTO store VALUES('names', 1);";

/* ---- texts -------------------------------------------------------------------------------- */

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

/* What a root says: the attribute that keeps containers out, and the levels, one a line. */
static void
put_root(const esdm_meta_view *view, esdm__buffer *out)
{
    put_text(out, view->without);
    for (size_t i = 0; i < view->nlevels; i++) {
        put_text(out, "\n");
        put_text(out, view->attributes[i]);
        if (view->values[i] != NULL) {
            put_text(out, "=");
            put_text(out, view->values[i]);
        }
    }
    esdm__buffer_put_u8(out, 0);
}

static void
parse_root(sqlite__view *view)
{
    char *next = NULL;
    view->without = strtok_r(view->text, "\n", &next);
    for (char *line = strtok_r(NULL, "\n", &next);
         line != NULL && view->nlevels < SQLITE__VIEW_LEVELS; line = strtok_r(NULL, "\n", &next)) {
        char *equal = strchr(line, '=');
        view->attributes[view->nlevels] = line;
        view->values[view->nlevels++] = equal != NULL ? equal + 1 : NULL;
        if (equal != NULL)
            *equal = '\0';
    }
}

/* ---- views -------------------------------------------------------------------------------- */

void
sqlite__views_clear(sqlite__views *views)
{
    for (size_t i = 0; i < views->count; i++) {
        free(views->items[i].text);
        for (size_t k = 0; k < SQLITE__VIEW_LEVELS; k++)
            esdm__buffer_clear(&views->items[i].parts[k]);
    }
    free(views->items);
    *views = (sqlite__views){0};
}

static esdm_status
add_view(sqlite__views *views, uint64_t root, const char *text, esdm_error *err)
{
    if (!esdm__array_grow(&views->items, views->count, sizeof *views->items))
        return esdm__error_nomem(err, sizeof *views->items, "views");
    sqlite__view *view = &views->items[views->count];
    *view = (sqlite__view){.root = root, .text = strdup(text)};
    for (size_t k = 0; k < SQLITE__VIEW_LEVELS; k++)
        esdm__buffer_init(&view->parts[k]);
    if (view->text == NULL)
        return esdm__error_nomem(err, strlen(text), "views");
    views->count++;
    parse_root(view);
    return ESDM_OK;
}

esdm_status
sqlite__views_load(sqlite__link *link, sqlite__views *views, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    *views = (sqlite__views){0};
    esdm_status status = sqlite__prepare(link, SQLITE__VIEW_TABLES, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status != ESDM_OK || !row)
        return status;
    (void) sqlite3_reset(statement);
    status = sqlite__prepare(link, SQLITE__VIEW_ROOTS, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        status = add_view(views, sqlite__u64(statement, 0), sqlite__text(statement, 1), err);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    if (status != ESDM_OK)
        sqlite__views_clear(views);
    return status;
}

/* ---- parts of a container ----------------------------------------------------------------- */

/* Takes an attribute of a container: the parts of the level that it is. */
static bool
take_attribute(const esdm_meta_attribute *attribute, void *user)
{
    sqlite__view *view = user;
    if (attribute->dataset != 0)
        return true;
    view->kept_out |= strcmp(attribute->name, view->without) == 0;
    for (size_t i = 0; i < view->nlevels; i++) {
        if (strcmp(attribute->name, view->attributes[i]) != 0)
            continue;
        put_text(&view->parts[i], view->parts[i].bytes > 0 ? ", " : "=");
        put_text(&view->parts[i], attribute->text != NULL ? attribute->text : "");
    }
    return !view->kept_out;
}

/* The parts of a container in a view. @param ret_in false: it is not in it. */
static esdm_status
make_parts(const sqlite__link *link, sqlite__view *view, uint64_t container, const void *attributes,
           size_t bytes, bool *ret_in, esdm_error *err)
{
    view->kept_out = false;
    *ret_in = false;
    for (size_t i = 0; i < view->nlevels; i++)
        view->parts[i].bytes = 0;
    esdm_status status =
        sqlite__attributes_visit(link, container, attributes, bytes, take_attribute, view, err);
    if (status != ESDM_OK || view->kept_out || view->parts[0].bytes == 0)
        return status;
    bool in = true;
    for (size_t i = 0; i < view->nlevels; i++) {
        if (view->parts[i].bytes == 0)
            put_text(&view->parts[i], "-");
        esdm__buffer_put_u8(&view->parts[i], 0);
        if (view->parts[i].failed)
            return esdm__error_nomem(err, view->parts[i].bytes, "a place in a view");
        const char *part = (const char *) view->parts[i].data;
        in &= view->values[i] == NULL || (part[0] == '=' && strcmp(part + 1, view->values[i]) == 0);
    }
    *ret_in = in;
    return ESDM_OK;
}

/* ---- entering and leaving ------------------------------------------------------------------ */

static esdm_status
count_up(sqlite__link *link, const sqlite__view *view, uint64_t *ret_node, esdm_error *err)
{
    uint64_t node = view->root;
    esdm_status status = sqlite__run(link, SQLITE__VIEW_ADD, err, "i", node);
    for (size_t i = 0; i < view->nlevels && status == ESDM_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        status = sqlite__prepare(link, SQLITE__VIEW_ENTER, &statement, err, "it", node,
                                 (const char *) view->parts[i].data);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        if (row) {
            node = sqlite__u64(statement, 0);
            (void) sqlite3_reset(statement);
        }
    }
    *ret_node = node;
    return status;
}

esdm_status
sqlite__views_enter(sqlite__link *link, sqlite__views *views, uint64_t container,
                    const void *attributes, size_t bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < views->count && attributes != NULL && status == ESDM_OK; i++) {
        bool in = false;
        uint64_t node = 0;
        status = make_parts(link, &views->items[i], container, attributes, bytes, &in, err);
        if (status == ESDM_OK && in)
            status = count_up(link, &views->items[i], &node, err);
        if (status == ESDM_OK && in)
            status = sqlite__run(link, SQLITE__VIEW_MEMBER, err, "ii", container, node);
    }
    return status;
}

/* One container less at a node and above. */
static esdm_status
count_down(sqlite__link *link, uint64_t node, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    while (node != 0 && status == ESDM_OK) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        uint64_t parent = 0, left = 1;
        status = sqlite__prepare(link, SQLITE__VIEW_SUB, &statement, err, "i", node);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        if (row) {
            parent = sqlite__u64(statement, 0);
            left = sqlite__u64(statement, 1);
            (void) sqlite3_reset(statement);
        }
        if (status == ESDM_OK && left == 0 && parent != 0)
            status = sqlite__run(link, SQLITE__VIEW_DROP, err, "i", node);
        node = parent;
    }
    return status;
}

esdm_status
sqlite__views_leave(sqlite__link *link, const sqlite__views *views, uint64_t container,
                    esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < views->count && status == ESDM_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        status = sqlite__prepare(link, SQLITE__VIEW_LEAVE, &statement, err, "i", container);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        if (!row)
            break;
        uint64_t node = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
        status = sqlite__run(link, SQLITE__VIEW_UNMEMBER, err, "ii", container, node);
        if (status == ESDM_OK)
            status = count_down(link, node, err);
    }
    return status;
}

static bool
can_be_said(const char *name)
{
    return name != NULL && name[0] != '/';
}

/* Enters what can be said again. */
static esdm_status
enter_again(sqlite__link *link, sqlite__views *views, uint64_t container, esdm_error *err)
{
    void *attributes = NULL;
    size_t bytes = 0;
    esdm_status status =
        sqlite__value(link, SQLITE__ATTRIBUTE_LIST, &attributes, &bytes, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__views_enter(link, views, container, attributes, bytes, err);
    free(attributes);
    return status;
}

esdm_status
sqlite__views_named(sqlite__link *link, uint64_t container, const char *from, const char *to,
                    esdm_error *err)
{
    sqlite__views views;
    uint64_t indexed = 0;
    if (can_be_said(from) == can_be_said(to))
        return ESDM_OK;
    esdm_status status = sqlite__views_load(link, &views, err);
    if (status != ESDM_OK || views.count == 0)
        return status;
    status = sqlite__attributes_indexed(link, &indexed, err);
    if (status == ESDM_OK && container <= indexed)
        status = can_be_said(to) ? enter_again(link, &views, container, err)
                                 : sqlite__views_leave(link, &views, container, err);
    sqlite__views_clear(&views);
    return status;
}

/* ---- which views are kept ----------------------------------------------------------------- */

/* Whether the roots are those of the views. */
static bool
same_views(const sqlite__views *kept, const esdm_meta_view *views, size_t nviews)
{
    bool same = kept->count == nviews;
    for (size_t i = 0; i < nviews && same; i++) {
        const sqlite__view *one = NULL;
        for (size_t k = 0; k < kept->count && one == NULL; k++) {
            bool equal = kept->items[k].nlevels == views[i].nlevels &&
                         strcmp(kept->items[k].without, views[i].without) == 0;
            for (size_t l = 0; l < views[i].nlevels && equal; l++) {
                const char *a = kept->items[k].values[l], *b = views[i].values[l];
                equal = strcmp(kept->items[k].attributes[l], views[i].attributes[l]) == 0 &&
                        (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
            }
            one = equal ? &kept->items[k] : NULL;
        }
        same = one != NULL;
    }
    return same;
}

static esdm_status
enter_all(sqlite__link *link, esdm_error *err)
{
    sqlite__views views;
    sqlite3_stmt *statement = NULL;
    uint64_t indexed = 0;
    bool row = false;
    esdm_status status = sqlite__views_load(link, &views, err);
    if (status == ESDM_OK)
        status = sqlite__attributes_indexed(link, &indexed, err);
    if (status == ESDM_OK)
        status = sqlite__prepare(link, SQLITE__VIEW_SOURCES, &statement, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row) {
        status = sqlite__views_enter(link, &views, sqlite__u64(statement, 0),
                                     sqlite3_column_blob(statement, 1),
                                     (size_t) sqlite3_column_bytes(statement, 1), err);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    sqlite__views_clear(&views);
    return status;
}

static esdm_status
make_anew(sqlite__link *link, const esdm_meta_view *views, size_t nviews, esdm_error *err)
{
    esdm_status status = sqlite__exec(link, "DELETE FROM view_node; DELETE FROM view_member;", err);
    for (size_t i = 0; i < nviews && status == ESDM_OK; i++) {
        esdm__buffer root;
        esdm__buffer_init(&root);
        put_root(&views[i], &root);
        status = root.failed
                     ? esdm__error_nomem(err, root.bytes, "a view")
                     : sqlite__run(link, SQLITE__VIEW_ROOT, err, "t", (const char *) root.data);
        esdm__buffer_clear(&root);
    }
    return status == ESDM_OK ? enter_all(link, err) : status;
}

esdm_status
sqlite__view_set(void *self, const esdm_meta_view *views, size_t nviews, bool anew, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->writer;
    sqlite__views kept = {0};
    esdm_status status = sqlite__begin_write(store, false, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__exec(link, tables, err);
    if (status == ESDM_OK)
        status = sqlite__trees_make(link, err);
    if (status == ESDM_OK)
        status = sqlite__views_load(link, &kept, err);
    if (status == ESDM_OK && (anew || !same_views(&kept, views, nviews)))
        status = make_anew(link, views, nviews, err);
    if (status == ESDM_OK && anew) /* of a store of before */
        status = sqlite__exec(link, dataset_names, err);
    sqlite__views_clear(&kept);
    return sqlite__end_write(store, status, err);
}

/* ---- levels ------------------------------------------------------------------------------- */

typedef struct level {
    sqlite__view *view;
    const char *const *path;
    size_t depth;
    esdm_meta_view_visitor visit;
    void *user;
    bool more;
} level;

static bool
tell(level *l, const char *part, uint64_t count)
{
    l->more = l->visit(part[0] == '=' ? part + 1 : NULL, count, l->user);
    return l->more;
}

static bool
is_part(const char *part, const char *value)
{
    return value == NULL ? part[0] == '-' : part[0] == '=' && strcmp(part + 1, value) == 0;
}

/* The node at the place. 0: there is none. */
static esdm_status
find_node(sqlite__link *link, const level *l, uint64_t *ret_node, esdm_error *err)
{
    esdm__buffer part;
    esdm_status status = ESDM_OK;
    *ret_node = l->view->root;
    esdm__buffer_init(&part);
    for (size_t i = 0; i < l->depth && *ret_node != 0 && status == ESDM_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        part.bytes = 0;
        put_text(&part, l->path[i] != NULL ? "=" : "-");
        put_text(&part, l->path[i] != NULL ? l->path[i] : "");
        esdm__buffer_put_u8(&part, 0);
        status = part.failed ? esdm__error_nomem(err, part.bytes, "a place in a view")
                             : sqlite__prepare(link, SQLITE__VIEW_FIND, &statement, err, "it",
                                               *ret_node, (const char *) part.data);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        *ret_node = row ? sqlite__u64(statement, 0) : 0;
        if (row)
            (void) sqlite3_reset(statement);
    }
    esdm__buffer_clear(&part);
    return status;
}

static esdm_status
tell_nodes(sqlite__link *link, level *l, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t node = 0;
    esdm_status status = find_node(link, l, &node, err);
    if (status != ESDM_OK || node == 0)
        return status;
    status = sqlite__prepare(link, SQLITE__VIEW_LEVEL, &statement, err, "i", node);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row &&
           tell(l, sqlite__text(statement, 0), sqlite__u64(statement, 1)))
        status = sqlite__step(link, statement, &row, err);
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

/* Those that wait to be entered. */
static esdm_status
tell_pending(sqlite__link *link, level *l, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    uint64_t indexed = 0;
    bool row = false;
    esdm_status status = sqlite__attributes_indexed(link, &indexed, err);
    if (status == ESDM_OK)
        status = sqlite__prepare(link, SQLITE__ATTRIBUTE_PENDING, &statement, err, "i", indexed);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && l->more) {
        bool in = false;
        if (sqlite3_column_int(statement, 3) == 0 && sqlite3_column_blob(statement, 1) != NULL)
            status = make_parts(link, l->view, sqlite__u64(statement, 0),
                                sqlite3_column_blob(statement, 1),
                                (size_t) sqlite3_column_bytes(statement, 1), &in, err);
        for (size_t i = 0; i < l->depth && in; i++)
            in = is_part((const char *) l->view->parts[i].data, l->path[i]);
        if (status == ESDM_OK && in)
            (void) tell(l, (const char *) l->view->parts[l->depth].data, 1);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

/* The view among those that are kept. */
static sqlite__view *
kept_view(sqlite__views *kept, const esdm_meta_view *view)
{
    for (size_t i = 0; i < kept->count; i++) {
        const sqlite__views one = {.items = &kept->items[i], .count = 1};
        if (same_views(&one, view, 1))
            return &kept->items[i];
    }
    return NULL;
}

esdm_status
sqlite__view_level(void *self, const esdm_meta_view *view, const char *const *path, size_t depth,
                   esdm_meta_view_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    sqlite__link *link = &store->reader;
    sqlite__views kept = {0};
    level l = {.path = path, .depth = depth, .visit = visit, .user = user, .more = true};
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__run(link, SQLITE__BEGIN, err, "");
    if (status == ESDM_OK) {
        status = sqlite__views_load(link, &kept, err);
        l.view = kept_view(&kept, view);
        if (status == ESDM_OK && l.view == NULL)
            status = esdm__error_set(err, ESDM_ENOENT, "no counts are kept of this view");
        if (status == ESDM_OK)
            status = tell_nodes(link, &l, err);
        if (status == ESDM_OK && l.more)
            status = tell_pending(link, &l, err);
        (void) !sqlite__run(link, SQLITE__ROLLBACK, NULL, "");
    }
    sqlite__end_read(store);
    sqlite__views_clear(&kept);
    return status;
}
