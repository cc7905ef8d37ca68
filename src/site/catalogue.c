/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "site/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef esdm__whole_page whole_page;

static esdm_status
no_memory(esdm_error *err)
{
    return esdm__error_nomem(err, sizeof(esdm__whole), "the record of a container");
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    esdm__buffer_put(user, name, strlen(name) + 1);
    return true;
}

esdm_status
esdm__catalogue_names(const esdm__catalogue *from, esdm__buffer *ret_names, esdm_error *err)
{
    esdm__buffer_init(ret_names);
    esdm_status status = from->plugin->container_list(from->store, NULL, note_name, ret_names, err);
    if (status == ESDM_OK && ret_names->failed)
        status = no_memory(err);
    return status;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

typedef struct collection {
    esdm__whole *whole;
    bool failed;
} collection;

static bool
note_snapshot(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
              const char *message, void *user)
{
    collection *to = user;
    esdm__whole *whole = to->whole;
    char *texts[2] = {strdup(writer), strdup(message)};
    if (texts[0] == NULL || texts[1] == NULL ||
        !esdm__array_grow(&whole->snapshots, whole->nsnapshots, sizeof *whole->snapshots)) {
        free(texts[0]);
        free(texts[1]);
        to->failed = true;
        return false;
    }
    whole->snapshots[whole->nsnapshots++] = (esdm_meta_import_snapshot){.snapshot = snapshot,
                                                                        .parent = parent,
                                                                        .time_ns = time_ns,
                                                                        .writer = texts[0],
                                                                        .message = texts[1]};
    return true;
}

static esdm_status
load_snapshots(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    collection to = {.whole = whole};
    uint64_t known = 0;
    esdm_status status =
        from->plugin->snapshot_list(from->store, whole->name, note_snapshot, &to, err);
    if (status == ESDM_OK && to.failed)
        status = no_memory(err);
    for (size_t i = 0; i < whole->nsnapshots && status == ESDM_OK; i++) {
        esdm_meta_import_snapshot *one = &whole->snapshots[i];
        esdm_meta_snapshot loaded = {0};
        status = from->plugin->snapshot_open(from->store, whole->name, one->snapshot,
                                             whole->record.container, known, &loaded, err);
        if (status != ESDM_OK)
            break;
        from->plugin->unpin(from->store, loaded.record.container, loaded.snapshot);
        one->structure = known = loaded.structure;
        one->document = loaded.document;
        one->document_bytes = loaded.document_bytes;
        one->lengths = loaded.lengths;
        one->nlengths = loaded.nlengths;
    }
    return status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Directory of one snapshot. */
typedef struct directory {
    whole_page *pages;
    size_t count;
    uint64_t snapshot;
    bool failed;
} directory;

static void
free_pages(whole_page *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *) pages[i].entry.box);
        free(pages[i].data);
    }
    free(pages);
}

static bool
note_page(const esdm_meta_page *page, void *user)
{
    directory *to = user;
    size_t bytes = 2 * (size_t) page->rank * sizeof *page->box;
    uint64_t *box = malloc(bytes + 1);
    if (box == NULL || !esdm__array_grow(&to->pages, to->count, sizeof *to->pages)) {
        free(box);
        to->failed = true;
        return false;
    }
    if (bytes > 0)
        memcpy(box, page->box, bytes);
    to->pages[to->count++] = (whole_page){
        .number = page->page,
        .entry = {.dataset = page->dataset,
                  .records = page->records,
                  .level = page->level,
                  .absolute = page->absolute,
                  .raw_bytes = page->raw_bytes,
                  .stored_bytes = page->stored_bytes,
                  .rank = page->rank,
                  .box = box},
        .added = page->added,
        .last_seen = to->snapshot,
    };
    return true;
}

static int
by_number(const void *a, const void *b)
{
    const whole_page *x = a;
    const whole_page *y = b;
    if (x->entry.dataset != y->entry.dataset)
        return x->entry.dataset < y->entry.dataset ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Joins a directory with what earlier snapshots have shown; both are sorted. */
static bool
merge_directory(esdm__whole *whole, directory *more)
{
    size_t total = whole->npages + more->count;
    whole_page *all = malloc((total + 1) * sizeof *all);
    size_t count = 0;
    size_t i = 0;
    size_t k = 0;
    if (all == NULL)
        return false;
    while (i < whole->npages || k < more->count) {
        int order = i == whole->npages ? 1
                    : k == more->count ? -1
                                       : by_number(&whole->pages[i], &more->pages[k]);
        if (order == 0) {
            free((void *) whole->pages[i].entry.box);
            i++;
        }
        all[count++] = order < 0 ? whole->pages[i++] : more->pages[k++];
    }
    free(whole->pages);
    free(more->pages);
    more->pages = NULL;
    more->count = 0;
    whole->pages = all;
    whole->npages = count;
    return true;
}

static esdm_status
load_pages(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < whole->nsnapshots && status == ESDM_OK; i++) {
        directory shown = {.snapshot = whole->snapshots[i].snapshot};
        status = from->plugin->page_list(from->store, whole->record.container, shown.snapshot, 0,
                                         note_page, &shown, err);
        if (status == ESDM_OK && shown.count > 0)
            qsort(shown.pages, shown.count, sizeof *shown.pages, by_number);
        if (status == ESDM_OK && (shown.failed || !merge_directory(whole, &shown)))
            status = no_memory(err);
        free_pages(shown.pages, shown.count);
    }
    /* The first snapshot that does not show a page any more counts as the one that removed it:
     * those between are not kept. */
    for (size_t p = 0; p < whole->npages; p++) {
        for (size_t i = whole->nsnapshots; i-- > 0;) {
            if (whole->snapshots[i].snapshot <= whole->pages[p].last_seen)
                break;
            whole->pages[p].removed = whole->snapshots[i].snapshot;
        }
    }
    return status;
}

/* ---- attributes ----------------------------------------------------------------------------- */

static bool
note_attribute(const esdm_meta_attribute *attribute, void *user)
{
    collection *to = user;
    esdm__whole *whole = to->whole;
    esdm_meta_attribute copy = *attribute;
    copy.name = strdup(attribute->name);
    copy.dataset_path = attribute->dataset_path != NULL ? strdup(attribute->dataset_path) : NULL;
    copy.text = attribute->text != NULL ? strdup(attribute->text) : NULL;
    if (copy.name == NULL || (copy.dataset_path == NULL) != (attribute->dataset_path == NULL) ||
        (copy.text == NULL) != (attribute->text == NULL) ||
        !esdm__array_grow(&whole->attributes, whole->nattributes, sizeof *whole->attributes)) {
        free((void *) copy.name);
        free((void *) copy.dataset_path);
        free((void *) copy.text);
        to->failed = true;
        return false;
    }
    whole->attributes[whole->nattributes++] = copy;
    return true;
}

/* By dataset, as they came within one: stores give them in different orders of datasets. */
static int
by_dataset(const void *a, const void *b)
{
    const esdm_meta_attribute *x = *(const esdm_meta_attribute *const *) a;
    const esdm_meta_attribute *y = *(const esdm_meta_attribute *const *) b;
    if (x->dataset != y->dataset)
        return x->dataset < y->dataset ? -1 : 1;
    return (x > y) - (x < y);
}

static bool
sort_attributes(esdm__whole *whole)
{
    size_t count = whole->nattributes;
    const esdm_meta_attribute **order = malloc((count + 1) * sizeof *order);
    esdm_meta_attribute *sorted = malloc((count + 1) * sizeof *sorted);
    bool good = order != NULL && sorted != NULL;
    for (size_t i = 0; good && i < count; i++)
        order[i] = &whole->attributes[i];
    if (good && count > 0)
        qsort(order, count, sizeof(esdm_meta_attribute *), by_dataset);
    for (size_t i = 0; good && i < count; i++)
        sorted[i] = *order[i];
    free(order);
    if (!good) {
        free(sorted);
        return false;
    }
    free(whole->attributes);
    whole->attributes = sorted;
    return true;
}

static esdm_status
load_attributes(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    collection to = {.whole = whole};
    esdm_status status =
        from->plugin->attributes(from->store, whole->record.container, note_attribute, &to, err);
    if (status == ESDM_OK && (to.failed || !sort_attributes(whole)))
        status = no_memory(err);
    return status;
}

/* ---- extents -------------------------------------------------------------------------------- */

static bool
note_extent(const esdm_meta_extent *extent, void *user)
{
    collection *to = user;
    esdm__whole *whole = to->whole;
    esdm_meta_extent copy = *extent;
    copy.name = strdup(extent->name);
    copy.text = extent->has_number ? NULL : strdup(extent->text);
    if (copy.name == NULL || (!extent->has_number && copy.text == NULL) ||
        !esdm__array_grow(&whole->extents, whole->nextents, sizeof *whole->extents)) {
        free((void *) copy.name);
        free((void *) copy.text);
        to->failed = true;
        return false;
    }
    whole->extents[whole->nextents++] = copy;
    return true;
}

static esdm_status
load_extents(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    collection to = {.whole = whole};
    esdm_error why = {0};
    if (from->plugin->extent_list == NULL)
        return ESDM_OK;
    esdm_status status =
        from->plugin->extent_list(from->store, whole->record.container, note_extent, &to, &why);
    whole->has_extents = status == ESDM_OK;
    if (status == ESDM_OK && to.failed)
        return no_memory(err);
    if (status == ESDM_OK || status == ESDM_ENOTSUP) /* an older store has none */
        return ESDM_OK;
    if (err != NULL)
        *err = why;
    return status;
}

/* ---- what it shares, and names of its snapshots --------------------------------------------- */

bool
esdm__whole_share(esdm__whole *whole, const char *uuid)
{
    size_t digits = sizeof whole->shares[0] - 1;
    bool known = strncmp(whole->record.uuid, uuid, digits) == 0;
    for (size_t i = 0; i < whole->nshares && !known; i++)
        known = strncmp(whole->shares[i], uuid, digits) == 0;
    if (known)
        return true;
    if (!esdm__array_grow(&whole->shares, whole->nshares, sizeof *whole->shares))
        return false;
    memset(whole->shares[whole->nshares], 0, sizeof *whole->shares);
    memcpy(whole->shares[whole->nshares++], uuid, strnlen(uuid, digits));
    return true;
}

static bool
note_share(const char *uuid, uint64_t container, void *user)
{
    collection *to = user;
    (void) container;
    to->failed = !esdm__whole_share(to->whole, uuid);
    return !to->failed;
}

bool
esdm__whole_tag(esdm__whole *whole, const esdm_meta_tag *tag)
{
    if (!esdm__array_grow(&whole->tags, whole->ntags, sizeof *whole->tags))
        return false;
    esdm_meta_tag *copy = &whole->tags[whole->ntags++];
    *copy = *tag;
    copy->name = strdup(tag->name);
    copy->author = strdup(tag->author != NULL ? tag->author : "");
    return copy->name != NULL && copy->author != NULL;
}

static bool
note_tag(const esdm_meta_tag *tag, void *user)
{
    collection *to = user;
    to->failed = !esdm__whole_tag(to->whole, tag);
    return !to->failed;
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static esdm_status
load_ties(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    collection to = {.whole = whole};
    uint64_t container = whole->record.container;
    esdm_status status = ESDM_OK;
    if (from->plugin->shared_list != NULL)
        status = from->plugin->shared_list(from->store, container, note_share, &to, err);
    if (status == ESDM_OK && from->plugin->tag_list != NULL && !to.failed)
        status = from->plugin->tag_list(from->store, container, note_tag, &to, err);
    if (whole->nshares > 0)
        qsort(whole->shares, whole->nshares, sizeof *whole->shares, by_text);
    return status == ESDM_OK && to.failed ? no_memory(err) : status;
}

/* ---- whole ---------------------------------------------------------------------------------- */

void
esdm__whole_clear(esdm__whole *whole)
{
    for (size_t i = 0; i < whole->nsnapshots; i++) {
        free((void *) whole->snapshots[i].writer);
        free((void *) whole->snapshots[i].message);
        free((void *) whole->snapshots[i].document);
        free((void *) whole->snapshots[i].lengths);
    }
    for (size_t i = 0; i < whole->nattributes; i++) {
        free((void *) whole->attributes[i].name);
        free((void *) whole->attributes[i].dataset_path);
        free((void *) whole->attributes[i].text);
    }
    for (size_t i = 0; i < whole->nextents; i++) {
        free((void *) whole->extents[i].name);
        free((void *) whole->extents[i].text);
    }
    free(whole->extents);
    for (size_t i = 0; i < whole->ntags; i++) {
        free((void *) whole->tags[i].name);
        free((void *) whole->tags[i].author);
    }
    free(whole->tags);
    free(whole->shares);
    free_pages(whole->pages, whole->npages);
    free(whole->snapshots);
    free(whole->attributes);
    free(whole->name);
    *whole = (esdm__whole){0};
}

esdm_status
esdm__whole_load(const esdm__catalogue *from, const char *name, esdm__whole *ret_whole,
                 esdm_error *err)
{
    esdm__whole whole = {.name = strdup(name)};
    if (whole.name == NULL)
        return no_memory(err);
    esdm_status status = from->plugin->container_find(from->store, name, &whole.record, err);
    if (status == ESDM_OK)
        status = load_snapshots(from, &whole, err);
    if (status == ESDM_OK)
        status = load_pages(from, &whole, err);
    if (status == ESDM_OK)
        status = load_attributes(from, &whole, err);
    if (status == ESDM_OK)
        status = load_extents(from, &whole, err);
    if (status == ESDM_OK)
        status = load_ties(from, &whole, err);
    if (status != ESDM_OK)
        esdm__whole_clear(&whole);
    else
        *ret_whole = whole;
    return status;
}

/* ---- import --------------------------------------------------------------------------------- */

typedef struct page_source {
    const esdm__whole *whole;
    const esdm__catalogue *from;
    size_t next;
    void *data;          /* of the page that was handed out */
    const char **shares; /* owned */
} page_source;

static esdm_status
next_page(void *user, esdm_meta_import_page *ret_page, esdm_error *err)
{
    page_source *source = user;
    const whole_page *page = &source->whole->pages[source->next++];
    size_t bytes = 0;
    free(source->data);
    source->data = NULL;
    esdm_status status = page->data != NULL
                             ? ESDM_OK
                             : source->from->plugin->page_load(source->from->store, page->number,
                                                               &source->data, &bytes, err);
    if (status != ESDM_OK)
        return status;
    *ret_page = (esdm_meta_import_page){
        .page = page->entry, .added = page->added, .removed = page->removed};
    ret_page->page.data = page->data != NULL ? page->data : source->data;
    ret_page->page.bytes = page->data != NULL ? page->bytes : bytes;
    return ESDM_OK;
}

static void
give_shares(void *user, const char *const **ret_uuids, size_t *ret_count)
{
    const page_source *source = user;
    *ret_uuids = source->shares;
    *ret_count = source->whole->nshares;
}

/* A store of an older plug-in would not know what the container needs of others. */
static esdm_status
check_ties(const esdm__whole *whole, const esdm__catalogue *to, esdm_error *err)
{
    const esdm_meta_plugin *plugin = to->plugin;
    if ((whole->nshares == 0 || plugin->shared_list != NULL) &&
        (whole->ntags == 0 || plugin->tag_list != NULL))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "container '%.200s' %s, which the metadata store '%s' does not know",
                           whole->name,
                           whole->nshares > 0 ? "shares what is stored with others (it is a clone)"
                                              : "has names of snapshots",
                           plugin->base.name);
}

esdm_status
esdm__whole_import(const esdm__whole *whole, const esdm__catalogue *from, const esdm__catalogue *to,
                   esdm_error *err)
{
    page_source source = {.whole = whole, .from = from};
    esdm_meta_import import = {
        .name = whole->name,
        .record = whole->record,
        .snapshots = whole->snapshots,
        .nsnapshots = whole->nsnapshots,
        .attributes = whole->attributes,
        .nattributes = whole->nattributes,
        .npages = whole->npages,
        .next_page = next_page,
        .user = &source,
        .extents = whole->extents,
        .nextents = whole->nextents,
        .shares = whole->nshares > 0 ? give_shares : NULL,
        .tags = whole->tags,
        .ntags = whole->ntags,
    };
    esdm_status status = check_ties(whole, to, err);
    if (status == ESDM_OK) {
        source.shares = malloc((whole->nshares + 1) * sizeof *source.shares);
        for (size_t i = 0; source.shares != NULL && i < whole->nshares; i++)
            source.shares[i] = whole->shares[i];
        status = source.shares != NULL ? ESDM_OK : no_memory(err);
    }
    if (status == ESDM_OK)
        status = to->plugin->import(to->store, &import, err);
    free(source.shares);
    free(source.data);
    return status;
}
