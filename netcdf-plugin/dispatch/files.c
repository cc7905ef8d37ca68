/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The open files of the process, by libnetcdf copy and slot of the ncid. */

#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOT_BITS  8
#define SLOT_COUNT (1 << SLOT_BITS)

/* libnetcdf has 65,536 slots: two levels, so that lookups need no lock and an unused copy no
 * memory. Pages are never freed. */
typedef struct slot_page {
    _Atomic(esdmnc_file *) files[SLOT_COUNT];
} slot_page;

static _Atomic(slot_page *) pages[ESDMNC_INSTANCES_MAX][SLOT_COUNT];

/* Guards all_files, its links, their number and the making of pages. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static esdmnc_file *all_files;
static size_t writers; /* files among them that are writable */

static unsigned
slot_of(int ncid)
{
    return ((unsigned) ncid >> 16) & 0xffff;
}

static esdmnc_file *
lookup(esdmnc_id id)
{
    int instance = esdmnc_id_instance(id);
    if (instance < 0 || instance >= ESDMNC_INSTANCES_MAX)
        return NULL;
    unsigned slot = slot_of(esdmnc_id_ncid(id));
    slot_page *page =
        atomic_load_explicit(&pages[instance][slot >> SLOT_BITS], memory_order_acquire);
    if (page == NULL)
        return NULL;
    return atomic_load_explicit(&page->files[slot & (SLOT_COUNT - 1)], memory_order_acquire);
}

int
esdmnc_owns(int instance, int ncid)
{
    return lookup(esdmnc_id_make(instance, ncid)) != NULL;
}

int
esdmnc_find(esdmnc_id id, esdmnc_file **ret_file, esdmnc_group **ret_group)
{
    esdmnc_file *file = lookup(id);
    if (file == NULL)
        return NC_EBADID;
    if (file->generation != esdmnc_session_generation()) {
        int rc = esdmnc_file_revive(file);
        if (rc != NC_NOERR)
            return rc;
    }
    size_t group = (unsigned) esdmnc_id_ncid(id) & 0xffff;
    if (group >= file->group_count)
        return NC_EBADID;
    *ret_file = file;
    *ret_group = file->groups[group];
    return NC_NOERR;
}

esdmnc_file *
esdmnc_find_current(esdmnc_id id, const esdmnc_group **ret_group)
{
    esdmnc_file *file = lookup(id);
    size_t group = (unsigned) esdmnc_id_ncid(id) & 0xffff;
    if (file == NULL || file->generation != esdmnc_session_generation() ||
        group >= file->group_count)
        return NULL;
    *ret_group = file->groups[group];
    return file;
}

int
esdmnc_find_var(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_group **ret_group,
                esdmnc_var **ret_var)
{
    int rc = esdmnc_find(id, ret_file, ret_group);
    if (rc != NC_NOERR)
        return rc;
    if (varid < 0 || (size_t) varid >= (*ret_group)->count)
        return varid == NC_GLOBAL && esdmnc_is_nc3(*ret_file) ? NC_EGLOBAL : NC_ENOTVAR;
    *ret_var = (*ret_group)->vars[varid];
    return NC_NOERR;
}

int
esdmnc_files_add(esdmnc_file *file)
{
    unsigned slot = slot_of(file->ncid);
    if (file->instance < 0 || file->instance >= ESDMNC_INSTANCES_MAX)
        return NC_EBADID;
    _Atomic(slot_page *) *place = &pages[file->instance][slot >> SLOT_BITS];
    int rc = NC_NOERR;
    pthread_mutex_lock(&table_lock);
    slot_page *page = atomic_load_explicit(place, memory_order_acquire);
    if (page == NULL) {
        page = calloc(1, sizeof *page);
        if (page != NULL)
            atomic_store_explicit(place, page, memory_order_release);
        else
            rc = NC_ENOMEM;
    }
    if (rc == NC_NOERR) {
        file->next = all_files;
        file->link = &all_files;
        if (all_files != NULL)
            all_files->link = &file->next;
        all_files = file;
        writers += file->writable;
        atomic_store_explicit(&page->files[slot & (SLOT_COUNT - 1)], file, memory_order_release);
    }
    pthread_mutex_unlock(&table_lock);
    return rc;
}

bool
esdmnc_files_lock(const struct timespec *until)
{
    return (until == NULL ? pthread_mutex_lock(&table_lock)
                          : pthread_mutex_timedlock(&table_lock, until)) == 0;
}

void
esdmnc_files_unlock(void)
{
    pthread_mutex_unlock(&table_lock);
}

esdmnc_file *
esdmnc_files_first(void)
{
    return all_files;
}

void
esdmnc_files_free_slot(const esdmnc_file *file)
{
    unsigned slot = slot_of(file->ncid);
    slot_page *page = atomic_load(&pages[file->instance][slot >> SLOT_BITS]);
    atomic_store_explicit(&page->files[slot & (SLOT_COUNT - 1)], NULL, memory_order_release);
}

void
esdmnc_files_take_out(esdmnc_file *file)
{
    if (!file->postponed)
        esdmnc_files_free_slot(file);
    if (file->link == NULL)
        return;
    *file->link = file->next;
    if (file->next != NULL)
        file->next->link = file->link;
    file->link = NULL;
    writers -= file->writable;
}

esdmnc_file *
esdmnc_files_remove(esdmnc_id id)
{
    pthread_mutex_lock(&table_lock);
    esdmnc_file *file = lookup(id);
    if (file != NULL)
        esdmnc_files_take_out(file);
    pthread_mutex_unlock(&table_lock);
    return file;
}

esdm_container *
esdmnc_files_writer(const char *name)
{
    esdm_container *container = NULL;
    uint64_t generation = esdmnc_session_generation();
    pthread_mutex_lock(&table_lock);
    /* Programs that read hundreds of files open each of them: without writers none is looked at. */
    const esdmnc_file *file = writers > 0 ? all_files : NULL;
    for (; file != NULL && container == NULL; file = file->next)
        if (file->writable && !file->hidden && file->generation == generation &&
            strcmp(file->name, name) == 0)
            container = file->container;
    pthread_mutex_unlock(&table_lock);
    return container;
}

bool
esdmnc_files_writing(const char *name)
{
    return esdmnc_files_writer(name) != NULL;
}

bool
esdmnc_files_in_use(const esdm_container *container)
{
    const esdmnc_file *file = all_files;
    while (file != NULL && file->container != container)
        file = file->next;
    return file != NULL;
}

bool
esdmnc_files_use(const esdm_container *container)
{
    pthread_mutex_lock(&table_lock);
    bool found = esdmnc_files_in_use(container);
    pthread_mutex_unlock(&table_lock);
    return found;
}

bool
esdmnc_files_share(const esdmnc_file *with)
{
    pthread_mutex_lock(&table_lock);
    const esdmnc_file *file = all_files;
    while (file != NULL && (file == with || file->container != with->container))
        file = file->next;
    pthread_mutex_unlock(&table_lock);
    return file != NULL;
}

void
esdmnc_files_forked(void)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&table_lock, &unlocked, sizeof table_lock);
}

esdmnc_file *
esdmnc_file_new(esdmnc_id id, const char *name)
{
    esdmnc_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->instance = esdmnc_id_instance(id);
    file->ncid = esdmnc_id_ncid(id) & ~0xffff;
    file->name = strdup(name);
    file->fill_mode = NC_FILL;
    file->format = NC_FORMAT_NETCDF4;
    file->generation = esdmnc_session_generation();
    if (file->name == NULL) {
        free(file);
        return NULL;
    }
    return file;
}

static void
var_free(esdmnc_var *var)
{
    free(var->shape);
    free(atomic_load(&var->doubt));
    free(var);
}

static void
group_free(esdmnc_group *group)
{
    if (group == NULL)
        return;
    for (size_t i = 0; i < group->count; i++)
        var_free(group->vars[i]);
    free(group->vars);
    free(group);
}

void
esdmnc_file_forget(esdmnc_file *file)
{
    for (size_t i = 0; i < file->group_count; i++)
        group_free(file->groups[i]);
    file->group_count = 0;
    esdmnc_rooms_clear(file);
}

void
esdmnc_file_free(esdmnc_file *file)
{
    if (file == NULL)
        return;
    esdmnc_file_forget(file);
    free(file->types.of_nc);
    free(file->types.of_esdm);
    free(file->groups);
    free(file->lengths);
    free(file->name);
    free(file);
}

/* Room for one more pointer in an array of them; NULL when out of memory: the old one stays. */
static void *
grow(void *items, size_t count, size_t *capacity)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    void *grown = realloc(items, wanted * sizeof(void *));
    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

static esdmnc_var *
var_new(const esdmnc_file *file, esdm_dataset *dataset)
{
    uint32_t rank = esdm_dataset_rank(dataset);
    esdmnc_var *var = calloc(1, sizeof *var + rank * sizeof var->axes[0]);
    if (var == NULL)
        return NULL;
    var->dataset = dataset;
    var->type = esdmnc_type_from_esdm(file, esdm_dataset_type(dataset));
    var->bytes = esdmnc_type_bytes(file, var->type);
    var->rank = rank;
    atomic_init(&var->quantize, ESDMNC_QUANTIZE_UNKNOWN);
    for (uint32_t i = 0; i < rank; i++) {
        esdm_dimension *dimension = esdm_dataset_dimension(dataset, i);
        var->axes[i].dimension = dimension;
        var->axes[i].unlimited = esdm_dimension_is_unlimited(dimension);
        var->axes[i].length = esdm_dimension_length(dimension);
    }
    return var;
}

static int
group_index(const esdmnc_file *file, esdmnc_group *group)
{
    size_t count = esdm_group_dataset_count(group->group);
    while (group->count < count) {
        esdmnc_var **vars = grow(group->vars, group->count, &group->capacity);
        if (vars == NULL)
            return NC_ENOMEM;
        group->vars = vars;
        vars[group->count] = var_new(file, esdm_group_dataset_at(group->group, group->count));
        if (vars[group->count] == NULL)
            return NC_ENOMEM;
        group->count++;
    }
    return NC_NOERR;
}

int
esdmnc_file_index(esdmnc_file *file)
{
    size_t count = esdm_container_group_count(file->container);
    while (file->group_count < count) {
        esdmnc_group **groups = grow(file->groups, file->group_count, &file->group_capacity);
        if (groups == NULL)
            return NC_ENOMEM;
        file->groups = groups;
        esdmnc_group *group = calloc(1, sizeof *group);
        if (group == NULL)
            return NC_ENOMEM;
        group->group = esdm_container_group(file->container, (uint32_t) file->group_count);
        groups[file->group_count++] = group;
    }
    int rc = esdmnc_types_index(file);
    for (size_t i = 0; i < file->group_count && rc == NC_NOERR; i++)
        rc = group_index(file, file->groups[i]);
    return rc;
}

static void
file_trim(esdmnc_file *file)
{
    size_t groups = esdm_container_group_count(file->container);
    while (file->group_count > groups)
        group_free(file->groups[--file->group_count]);
    for (size_t i = 0; i < file->group_count; i++) {
        esdmnc_group *group = file->groups[i];
        size_t count = esdm_group_dataset_count(group->group);
        while (group->count > count)
            var_free(group->vars[--group->count]);
    }
    size_t types = esdm_container_type_count(file->container);
    file->types.count = types < file->types.count ? types : file->types.count;
}

void
esdmnc_files_trim(const esdm_container *container)
{
    pthread_mutex_lock(&table_lock);
    for (esdmnc_file *file = all_files; file != NULL; file = file->next)
        if (file->container == container)
            file_trim(file);
    pthread_mutex_unlock(&table_lock);
}

void
esdmnc_file_settle(esdmnc_file *file, bool written)
{
    for (size_t g = 0; g < file->group_count; g++) {
        esdmnc_group *group = file->groups[g];
        for (size_t v = 0; v < group->count; v++) {
            group->vars[v]->created = true;
            if (written)
                atomic_store_explicit(&group->vars[v]->written, true, memory_order_relaxed);
        }
    }
}

void
esdmnc_file_settle_stored(esdmnc_file *file)
{
    esdmnc_file_settle(file, true);
    for (size_t g = 0; g < file->group_count; g++)
        for (size_t v = 0; v < file->groups[g]->count; v++)
            file->groups[g]->vars[v]->stored = true;
}
