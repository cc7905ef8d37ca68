/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* NetCDF calls: which library a caller means, and which variable it moves. */
#include <link.h>
#include <netcdf.h>
#include <stdlib.h>

#include "watch/watch.h"

#define VARIABLES 512u
#define LIBRARIES 8u
#define ATTEMPTS  64

/* ---- which library --------------------------------------------------------------------------- */

static struct link_map *
map_of(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object found;
    if (_dl_find_object((void *) (uintptr_t) address, &found) == 0)
        return found.dlfo_link_map;
#endif
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(address, &info, (void **) &map, RTLD_DL_LINKMAP) ? map : NULL;
}

static void *
seen_by(const struct link_map *map, const char *name)
{
    void *handle =
        map != NULL && map->l_name[0] ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (handle != NULL)
        (void) dlclose(handle);
    return found;
}

static const struct link_map *
own_map(void)
{
    static const struct link_map *own;
    const struct link_map *mine = __atomic_load_n(&own, __ATOMIC_RELAXED);
    if (mine == NULL) {
        mine = map_of((const void *) (uintptr_t) own_map);
        __atomic_store_n(&own, mine, __ATOMIC_RELAXED);
    }
    return mine;
}

/* As the dynamic linker would: first what everybody sees, then what the caller's own libraries
 * have (Python loads each extension with a libnetcdf of its own). */
void *
watch__nc_real(watch_nc_cache *cache, const char *name, const void *caller)
{
    void *found = __atomic_load_n(&cache->everybody, __ATOMIC_ACQUIRE);
    if (found != NULL)
        return found;
    const struct link_map *map = map_of(caller);
    if (map == own_map()) /* nc_create() of a library ends with a jump to nc__create() */
        map = watch__here.caller != NULL ? map_of(watch__here.caller) : NULL;
    if (map == own_map())
        return NULL;
    const void *before = __atomic_load_n(&cache->caller, __ATOMIC_ACQUIRE);
    void *callers = __atomic_load_n(&cache->callers, __ATOMIC_ACQUIRE);
    if (map != NULL && before == map && __atomic_load_n(&cache->caller, __ATOMIC_ACQUIRE) == map)
        return callers;
    int saved = errno;
    bool busy = watch__here.busy;
    watch__here.busy = true;
    found = dlsym(RTLD_NEXT, name);
    if (found != NULL) {
        __atomic_store_n(&cache->everybody, found, __ATOMIC_RELEASE);
    } else if ((found = seen_by(map, name)) != NULL) {
        __atomic_store_n(&cache->caller, NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&cache->callers, found, __ATOMIC_RELEASE);
        __atomic_store_n(&cache->caller, map, __ATOMIC_RELEASE);
    }
    watch__here.busy = busy;
    errno = saved;
    return found;
}

int
watch__nc_absent(void)
{
    return NC_ENOTBUILT;
}

/* For libesdm-netcdf.so, which tells libraries by the address that called: not by this one. */
WATCH_EXPORT const void *esdm_watch_caller(const void *address);
const void *
esdm_watch_caller(const void *address)
{
    return watch__here.caller != NULL && map_of(address) == own_map() ? watch__here.caller
                                                                      : address;
}

bool
watch__nc_begin(watch_call *call, const void *caller)
{
    if (watch__here.depth > 0 || !watch__begin(call))
        return false;
    watch__here.depth = 1;
    watch__here.caller = caller;
    return true;
}

static void
end_call(void)
{
    watch__here.depth = 0;
    watch__here.caller = NULL;
}

/* ---- which variable -------------------------------------------------------------------------- */

typedef struct inquiry {
    const void *library; /* base of the libnetcdf */
    __typeof__(&nc_inq_path) path;
    __typeof__(&nc_inq_varname) varname;
    __typeof__(&nc_inq_varndims) varndims;
    __typeof__(&nc_inq_vardimid) vardimid;
    __typeof__(&nc_inq_dimlen) dimlen;
    __typeof__(&nc_inq_vartype) vartype;
    __typeof__(&nc_inq_type) type;
    __typeof__(&nc_inq_var_chunking) chunking;
    __typeof__(&nc_inq_var_deflate) deflate;
    __typeof__(&nc_inq_unlimdims) unlimdims;
    __typeof__(&nc_inq_grpname_full) group;
} inquiry;

typedef struct variable {
    int ncid;
    int varid;
    const void *caller; /* of whose library the ncid is */
    uint32_t entry;     /* 0: free */
} variable;

static variable variables[VARIABLES];
static atomic_flag variables_used = ATOMIC_FLAG_INIT;

/* Somebody else has it for some instructions; or, in a forked child, for ever. */
static bool
take_variables(void)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!atomic_flag_test_and_set_explicit(&variables_used, memory_order_acquire))
            return true;
    }
    return false;
}

static void
give_variables(void)
{
    atomic_flag_clear_explicit(&variables_used, memory_order_release);
}

#define ASK(member, name, type)                                                                    \
    {                                                                                              \
        static watch_nc_cache cache_##member;                                                      \
        q->member = (type) watch__nc_real(&cache_##member, name, caller);                          \
    }

static bool
inquiry_of(const void *caller, inquiry *q)
{
    ASK(path, "nc_inq_path", __typeof__(&nc_inq_path))
    ASK(varname, "nc_inq_varname", __typeof__(&nc_inq_varname))
    ASK(varndims, "nc_inq_varndims", __typeof__(&nc_inq_varndims))
    ASK(vardimid, "nc_inq_vardimid", __typeof__(&nc_inq_vardimid))
    ASK(dimlen, "nc_inq_dimlen", __typeof__(&nc_inq_dimlen))
    ASK(vartype, "nc_inq_vartype", __typeof__(&nc_inq_vartype))
    ASK(type, "nc_inq_type", __typeof__(&nc_inq_type))
    ASK(chunking, "nc_inq_var_chunking", __typeof__(&nc_inq_var_chunking))
    ASK(deflate, "nc_inq_var_deflate", __typeof__(&nc_inq_var_deflate))
    ASK(unlimdims, "nc_inq_unlimdims", __typeof__(&nc_inq_unlimdims))
    ASK(group, "nc_inq_grpname_full", __typeof__(&nc_inq_grpname_full))
    return q->path != NULL && q->varname != NULL && q->varndims != NULL && q->vardimid != NULL &&
           q->dimlen != NULL && q->vartype != NULL && q->type != NULL;
}

static bool
full_path(const inquiry *q, int ncid, char *ret, size_t bytes)
{
    char text[4096];
    size_t length = 0;
    if (q->path(ncid, &length, NULL) != NC_NOERR || length >= sizeof text ||
        q->path(ncid, &length, text) != NC_NOERR)
        return false;
    text[length] = '\0';
    char *real = text[0] != '/' && strstr(text, ":/") == NULL ? realpath(text, NULL) : NULL;
    (void) snprintf(ret, bytes, "%s", real != NULL ? real : text);
    free(real);
    return true;
}

/* Which of the dimensions of a variable are unlimited: of its group; those above are not asked. */
static uint32_t
unlimited_of(const inquiry *q, int ncid, int rank, const int *dims)
{
    int found[WATCH_DIMS * 4];
    int count = 0;
    uint32_t bits = 0;
    if (q->unlimdims == NULL || q->unlimdims(ncid, &count, NULL) != NC_NOERR || count < 0 ||
        (size_t) count > sizeof found / sizeof found[0] ||
        q->unlimdims(ncid, &count, found) != NC_NOERR)
        return 0;
    for (int i = 0; i < rank && i < (int) WATCH_DIMS; i++) {
        for (int k = 0; k < count; k++)
            bits |= dims[i] == found[k] ? 1u << i : 0u;
    }
    return bits;
}

static void
describe(const inquiry *q, int ncid, int varid, watch_entry *entry)
{
    int rank = 0;
    nc_type type = NC_NAT;
    size_t size = 0;
    int dims[NC_MAX_VAR_DIMS];
    size_t chunk[NC_MAX_VAR_DIMS];
    int storage = 0;
    int shuffle = 0;
    int deflate = 0;
    int level = 0;
    entry->deflate = -1;
    entry->chunked = -1;
    if (q->varndims(ncid, varid, &rank) != NC_NOERR || q->vartype(ncid, varid, &type) != NC_NOERR ||
        q->type(ncid, type, NULL, &size) != NC_NOERR || q->vardimid(ncid, varid, dims) != NC_NOERR)
        return;
    entry->rank = (uint32_t) rank;
    entry->element_bytes = (uint32_t) size;
    entry->type = type;
    entry->unlimited = unlimited_of(q, ncid, rank, dims);
    bool chunks = q->chunking != NULL && q->chunking(ncid, varid, &storage, chunk) == NC_NOERR;
    if (chunks)
        entry->chunked = storage == NC_CHUNKED;
    for (int i = 0; i < rank && i < (int) WATCH_DIMS; i++) {
        size_t length = 0;
        (void) q->dimlen(ncid, dims[i], &length);
        entry->size[i] = length;
        entry->dimension[i] = dims[i];
        entry->chunk[i] = chunks && storage == NC_CHUNKED ? chunk[i] : 0;
    }
    if (q->deflate != NULL && q->deflate(ncid, varid, &shuffle, &deflate, &level) == NC_NOERR &&
        deflate)
        entry->deflate = level;
}

/* "/group/" in front of the variable; nothing in the root group. */
static size_t
group_name(const inquiry *q, int ncid, char *ret, size_t bytes)
{
    size_t length = 0;
    if (q->group == NULL || q->group(ncid, &length, NULL) != NC_NOERR || length < 2 ||
        length + 2 > bytes || q->group(ncid, &length, ret) != NC_NOERR)
        return 0;
    ret[length] = '/';
    return length + 1;
}

/* "FILE\nVARIABLE": a new line is in no name. */
static uint32_t
make_entry(const inquiry *q, int ncid, int varid)
{
    char name[2 * 4096 + NC_MAX_NAME + 2];
    bool fresh;
    if (!full_path(q, ncid, name, 4096))
        return WATCH_OTHERS;
    size_t length = strlen(name);
    name[length] = '\n';
    length +=
        1 + group_name(q, ncid, name + length + 1, sizeof name - length - 1 - NC_MAX_NAME - 1);
    if (q->varname(ncid, varid, name + length) != NC_NOERR)
        return WATCH_OTHERS;
    uint32_t number = watch__entry_find(WATCH_VARIABLE, name, &fresh);
    watch_entry *entry = fresh ? watch__entry(number) : NULL;
    if (entry != NULL) {
        describe(q, ncid, varid, entry);
        watch__entry_ready(number, WATCH_VARIABLE);
    }
    return number;
}

static uint32_t
entry_of(const inquiry *q, const void *caller, int ncid, int varid)
{
    const struct link_map *map = map_of(caller);
    uint32_t at = ((uint32_t) ncid * 2654435761u ^ (uint32_t) varid * 40503u) % VARIABLES;
    if (!take_variables())
        return make_entry(q, ncid, varid);
    variable *v = &variables[at];
    uint32_t found = v->ncid == ncid && v->varid == varid && v->caller == map ? v->entry : 0;
    give_variables();
    if (found != 0)
        return found;
    found = make_entry(q, ncid, varid);
    if (take_variables()) {
        *v = (variable){ncid, varid, map, found};
        give_variables();
    }
    return found;
}

/* The groups of a file share the upper half of their numbers. */
static void
forget_file(int ncid)
{
    if (!take_variables())
        return;
    for (unsigned i = 0; i < VARIABLES; i++) {
        if ((variables[i].ncid & ~0xffff) == (ncid & ~0xffff))
            variables[i].entry = 0;
    }
    give_variables();
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void
give_box(uint32_t rank, const size_t *start, const size_t *length, const ptrdiff_t *stride)
{
    uint64_t number;
    watch_box *box = rank <= WATCH_DIMS ? watch__box(&number) : NULL;
    if (box == NULL)
        return;
    for (uint32_t i = 0; i < rank; i++) {
        box->start[i] = start != NULL ? start[i] : 0;
        box->count[i] = length[i];
        box->stride[i] = stride != NULL && stride[i] > 0 ? (uint64_t) stride[i] : 1;
    }
    watch__here.box = number;
}

/* How long the part is in each dimension: `count`, or one element, or the whole variable. */
static bool
lengths_of(const inquiry *q, int ncid, int varid, uint32_t rank, const size_t *count, bool whole,
           size_t *ret)
{
    int dims[NC_MAX_VAR_DIMS];
    if (whole && q->vardimid(ncid, varid, dims) != NC_NOERR)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        ret[i] = count != NULL ? count[i] : 1;
        if (whole && q->dimlen(ncid, dims[i], &ret[i]) != NC_NOERR)
            return false;
    }
    return true;
}

static void
moved(const watch_call *call, watch_op op, int ncid, int varid, const size_t *start,
      const size_t *count, const ptrdiff_t *stride, bool whole, bool writes, int status)
{
    inquiry q;
    const void *caller = watch__here.caller;
    size_t length[NC_MAX_VAR_DIMS];
    uint64_t elements = 1;
    if (!inquiry_of(caller, &q))
        return;
    uint32_t number = entry_of(&q, caller, ncid, varid);
    watch_entry *entry = watch__entry(number);
    if (entry == NULL)
        return;
    uint32_t rank = entry->rank <= NC_MAX_VAR_DIMS ? entry->rank : 0;
    bool good = status == NC_NOERR && lengths_of(&q, ncid, varid, rank, count, whole, length);
    for (uint32_t i = 0; i < rank && good; i++)
        elements *= length[i];
    if (good)
        give_box(rank, start, length, stride);
    uint64_t first = !good ? 0 : rank > 0 ? length[0] : 1;
    uint64_t at = start != NULL && rank > 0 ? start[0] : 0;
    watch__enter(call, op, number, at, first, good ? elements * entry->element_bytes : 0,
                 status != NC_NOERR, writes ? &entry->write : &entry->read);
}

void
watch__nc_moved(watch_call *call, watch_op op, int ncid, int varid, const size_t *start,
                const size_t *count, const ptrdiff_t *stride, bool whole, bool writes, int status)
{
    int saved = errno;
    watch__here.busy = true;
    watch__here.depth = 0;
    moved(call, op, ncid, varid, start, count, stride, whole, writes, status);
    end_call();
    watch__here.busy = false;
    errno = saved;
}

static void
meta(const watch_call *call, watch_op op, uint32_t number, int status)
{
    watch_entry *entry = watch__entry(number);
    if (entry != NULL)
        watch__enter(call, op, number, WATCH_NOWHERE, 0, 0, status != NC_NOERR, &entry->other);
}

static uint32_t
dataset_named(const char *name)
{
    bool fresh;
    uint32_t number = watch__entry_find(WATCH_DATASET, name, &fresh);
    if (fresh)
        watch__entry_ready(number, WATCH_DATASET);
    return number;
}

static uint32_t
dataset_of(int ncid)
{
    inquiry q;
    char name[4096];
    if (!inquiry_of(watch__here.caller, &q) || !full_path(&q, ncid, name, sizeof name))
        return WATCH_OTHERS;
    return dataset_named(name);
}

void
watch__nc_opened(watch_call *call, watch_op op, const char *path, const int *ncid, int status)
{
    int saved = errno;
    watch__here.busy = true;
    watch__here.depth = 0;
    (void) path;
    if (status == NC_NOERR)
        forget_file(*ncid);
    meta(call, op, status == NC_NOERR ? dataset_of(*ncid) : WATCH_OTHERS, status);
    end_call();
    watch__here.busy = false;
    errno = saved;
}

void
watch__nc_closing(watch_call *call, int ncid)
{
    int saved = errno;
    watch__here.busy = true;
    call->fd_entry = dataset_of(ncid);
    forget_file(ncid);
    watch__here.busy = false;
    errno = saved;
}

void
watch__nc_closed(watch_call *call, watch_op op, int ncid)
{
    int saved = errno;
    (void) ncid;
    watch__here.busy = true;
    watch__here.depth = 0;
    meta(call, op, call->fd_entry, NC_NOERR);
    end_call();
    watch__here.busy = false;
    errno = saved;
}

void
watch__nc_meta(watch_call *call, watch_op op, int ncid, int status)
{
    int saved = errno;
    watch__here.busy = true;
    watch__here.depth = 0;
    meta(call, op, dataset_of(ncid), status);
    end_call();
    watch__here.busy = false;
    errno = saved;
}
