/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Activation in a running process. A library that is preloaded wins because the dynamic linker
 * looks symbols up in it first. Here the objects have been linked already: the slots through which
 * they call (DT_JMPREL and DT_RELA; System V ABI, "Relocation") are made to point to us, where the
 * symbol is one that we export. What is loaded later finds us in the global scope.
 */
#include "router/router.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "esdm/netcdf.h"

#if defined(__x86_64__)
#define SLOT_CALL R_X86_64_JUMP_SLOT
#define SLOT_DATA R_X86_64_GLOB_DAT
#define SUPPORTED 1
#elif defined(__aarch64__)
#define SLOT_CALL R_AARCH64_JUMP_SLOT
#define SLOT_DATA R_AARCH64_GLOB_DAT
#define SUPPORTED 1
#else
#define SLOT_CALL 0
#define SLOT_DATA 0
#define SUPPORTED 0
#endif

/* What the dynamic section of an object tells. */
typedef struct object {
    uintptr_t base;
    const char *path;
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash; /* DT_GNU_HASH */
    const ElfW(Rela) * tables[2];
    size_t counts[2];
    uintptr_t relro, relro_end; /* read-only by now */
} object;

/* A slot that was changed. */
typedef struct slot {
    _Atomic uintptr_t *at;
    uintptr_t before, after;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slot *slots; /* owned; under the lock */
static size_t nslots;
static atomic_bool activated;

bool
esdmnc_is_activated(void)
{
    return atomic_load(&activated);
}

/* ---- objects ------------------------------------------------------------------------------ */

static bool
object_of(const struct dl_phdr_info *info, object *ret)
{
    const ElfW(Dyn) *entry = NULL;
    *ret = (object){.base = info->dlpi_addr, .path = info->dlpi_name};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *) (ret->base + header->p_vaddr);
        if (header->p_type == PT_GNU_RELRO) {
            ret->relro = ret->base + header->p_vaddr;
            ret->relro_end = ret->relro + header->p_memsz;
        }
    }
    size_t bytes[2] = {0, 0};
    uintptr_t kind = DT_RELA;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        uintptr_t value = entry->d_un.d_val;
        uintptr_t at = value < ret->base ? value + ret->base : value; /* glibc has added it */
        switch (entry->d_tag) {
        case DT_SYMTAB:
            ret->symbols = (const ElfW(Sym) *) at;
            break;
        case DT_STRTAB:
            ret->names = (const char *) at;
            break;
        case DT_GNU_HASH:
            ret->hash = (const uint32_t *) at;
            break;
        case DT_RELA:
            ret->tables[0] = (const ElfW(Rela) *) at;
            break;
        case DT_RELASZ:
            bytes[0] = value;
            break;
        case DT_JMPREL:
            ret->tables[1] = (const ElfW(Rela) *) at;
            break;
        case DT_PLTRELSZ:
            bytes[1] = value;
            break;
        case DT_PLTREL:
            kind = value;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < 2; i++)
        ret->counts[i] = ret->tables[i] != NULL ? bytes[i] / sizeof(ElfW(Rela)) : 0;
    return ret->symbols != NULL && ret->names != NULL && kind == DT_RELA;
}

/* The address of a symbol that the object defines, by its hash table; 0: none. */
static uintptr_t
defined(const object *o, const char *name)
{
    uint32_t hash = 5381;
    for (const char *c = name; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char) *c;
    uint32_t nbuckets = o->hash[0];
    uint32_t first = o->hash[1];
    uint32_t nbloom = o->hash[2];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *) (o->hash + 4);
    const uint32_t *buckets = (const uint32_t *) (bloom + nbloom);
    const uint32_t *chain = buckets + nbuckets;
    const uint32_t bits = 8 * sizeof(ElfW(Addr));
    ElfW(Addr) word = bloom[hash / bits % nbloom];
    if ((word >> (hash % bits) & word >> (hash >> o->hash[3]) % bits & 1) == 0)
        return 0;
    for (uint32_t i = buckets[hash % nbuckets]; i >= first; i++) {
        const ElfW(Sym) *symbol = &o->symbols[i];
        if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            strcmp(o->names + symbol->st_name, name) == 0)
            return o->base + symbol->st_value;
        if ((chain[i - first] & 1) != 0)
            break;
    }
    return 0;
}

/* Parts of ESDM, and what the process itself stands on, call whom they mean. */
static bool
is_left_alone(const object *o)
{
    static const char *const names[] = {"libesdm",  "libc.so", "libc-",   "ld-linux", "libpthread",
                                        "libdl.so", "libasan", "libtsan", "libubsan", "linux-vdso"};
    const char *file = strrchr(o->path, '/');
    file = file != NULL ? file + 1 : o->path;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* ---- slots -------------------------------------------------------------------------------- */

/* Pages that are read-only since the object was linked are made writable for the moment. The
 * dynamic linker has left the last one writable when other data begin in it. */
static bool
set_slot(const object *o, uintptr_t at, uintptr_t value)
{
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
    bool sealed = at >= (o->relro & ~(page - 1)) && at < (o->relro_end & ~(page - 1));
    void *start = (void *) (at & ~(page - 1));
    if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return false;
    atomic_store((_Atomic uintptr_t *) at, value);
    if (sealed)
        (void) mprotect(start, page, PROT_READ);
    return true;
}

static bool
note_slot(uintptr_t at, uintptr_t before, uintptr_t after)
{
    for (size_t i = 0; i < nslots; i++) {
        if ((uintptr_t) slots[i].at ==
            at) { /* of an object that was loaded where another one was */
            slots[i] = (slot){(_Atomic uintptr_t *) at, before, after};
            return true;
        }
    }
    slot *grown = realloc(slots, (nslots + 1) * sizeof *slots);
    if (grown == NULL)
        return false;
    slots = grown;
    slots[nslots++] = (slot){(_Atomic uintptr_t *) at, before, after};
    return true;
}

typedef struct walk {
    object self;
    unsigned char
        begins[1u << 16 >> 3]; /* a bit for the first two bytes of each name that we export */
    bool found;                /* self is filled */
    bool back;                 /* undo */
    int changed;               /* slots */
    int objects;               /* with some */
    bool refused;              /* memory could not be made writable */
} walk;

static unsigned
first_bytes(const char *name)
{
    return (unsigned) (unsigned char) name[0] << 8 |
           (unsigned char) (name[0] != '\0' ? name[1] : 0);
}

/* Most names of large libraries need no more than this look. */
static bool
may_be_ours(const walk *w, const char *name)
{
    unsigned bits = first_bytes(name);
    return (w->begins[bits >> 3] >> (bits & 7) & 1) != 0;
}

static void
note_names(walk *w)
{
    const object *o = &w->self;
    const uint32_t *buckets = (const uint32_t *) ((const ElfW(Addr) *) (o->hash + 4) + o->hash[2]);
    const uint32_t *chain = buckets + o->hash[0];
    for (uint32_t b = 0; b < o->hash[0]; b++) {
        for (uint32_t i = buckets[b]; i >= o->hash[1]; i++) {
            unsigned bits = first_bytes(o->names + o->symbols[i].st_name);
            w->begins[bits >> 3] |= (unsigned char) (1u << (bits & 7));
            if ((chain[i - o->hash[1]] & 1) != 0)
                break;
        }
    }
}

static bool
change(walk *w, const object *o, const ElfW(Rela) * entry)
{
    uint32_t type = (uint32_t) ELF64_R_TYPE(entry->r_info);
    if (type != SLOT_CALL && type != SLOT_DATA)
        return false;
    const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(entry->r_info)];
    const char *name = o->names + symbol->st_name;
    uintptr_t ours = may_be_ours(w, name) ? defined(&w->self, name) : 0;
    uintptr_t at = o->base + entry->r_offset;
    if (ours == 0)
        return false;
    uintptr_t now = atomic_load((_Atomic uintptr_t *) at);
    if (!w->back) {
        if (now == ours || !note_slot(at, now, ours))
            return false;
        bool done = set_slot(o, at, ours);
        w->refused = w->refused || !done;
        return done;
    }
    for (size_t i = 0; i < nslots; i++) {
        if ((uintptr_t) slots[i].at == at && now == slots[i].after)
            return set_slot(o, at, slots[i].before);
    }
    return false;
}

static int
find_self(struct dl_phdr_info *info, size_t size, void *user)
{
    walk *w = user;
    object o;
    (void) size;
    uintptr_t here = (uintptr_t) &find_self;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && here >= start && here < start + header->p_memsz &&
            object_of(info, &o) && o.hash != NULL) {
            w->self = o;
            w->found = true;
            note_names(w);
            return 1;
        }
    }
    return 0;
}

static int
visit(struct dl_phdr_info *info, size_t size, void *user)
{
    walk *w = user;
    object o;
    int before = w->changed;
    (void) size;
    if (!object_of(info, &o) || o.base == w->self.base || is_left_alone(&o))
        return 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < o.counts[t]; i++)
            w->changed += change(w, &o, &o.tables[t][i]);
    }
    w->objects += w->changed > before;
    return 0;
}

static int
answer(char *report, size_t bytes, int result, const char *text)
{
    if (report != NULL && bytes > 0)
        (void) snprintf(report, bytes, "%s", text);
    return result;
}

static bool
ends_in(const char *text, const char *end)
{
    size_t all = strlen(text), bytes = strlen(end);
    return all > bytes && strcmp(text + all - bytes, end) == 0;
}

/* Visible to what is loaded from now on, and never unloaded. */
static bool
become_global(void)
{
    Dl_info info;
    return dladdr((const void *) &find_self, &info) != 0 && info.dli_fname != NULL &&
           dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

__attribute__((visibility("default"))) int
esdm_netcdf_activate(char *report, size_t bytes)
{
    char text[256];
    walk w = {.changed = 0};
    if (!SUPPORTED)
        return answer(report, bytes, -1, "not supported on this kind of processor: use esdm-run");
    if (!become_global()) {
        (void) snprintf(text, sizeof text, "the library cannot be made visible: %s", dlerror());
        return answer(report, bytes, -1, text);
    }
    (void) pthread_mutex_lock(&lock);
    (void) dl_iterate_phdr(find_self, &w);
    if (w.found)
        (void) dl_iterate_phdr(visit, &w);
    (void) pthread_mutex_unlock(&lock);
    atomic_store(&activated, w.found && !w.refused);
    if (!w.found)
        return answer(report, bytes, -1, "the library does not find its own symbols: use esdm-run");
    if (w.refused)
        return answer(report, bytes, -1,
                      "the system does not let calls be redirected (memory stays read-only): use "
                      "esdm-run");
    esdmnc__room_activated();
    (void) snprintf(text, sizeof text, "%d calls of %d loaded objects are redirected", w.changed,
                    w.objects);
    return answer(report, bytes, w.changed, text);
}

__attribute__((visibility("default"))) void
esdm_netcdf_activate_r(int *ret_calls)
{
    char report[256];
    *ret_calls = esdm_netcdf_activate(report, sizeof report);
    if (*ret_calls < 0)
        (void) fprintf(stderr, "esdm: %s\n", report);
}

__attribute__((visibility("default"))) int
esdm_netcdf_records(const char *path, char *report, size_t bytes)
{
    char why[512] = "";
    const esdmnc__core *core = esdmnc__core_if_loaded();
    if (path == NULL || !ends_in(path, ".jsonl"))
        return answer(report, bytes, -1,
                      "the name of the file must end in .jsonl, which esdm-explain reads");
    if (core == NULL)
        return answer(report, bytes, -1,
                      "nothing was done with esdm:// names yet. Calls of plain files are not "
                      "recorded here: esdm-run --report PROGRAM tells them");
    if (!core->records_write(path, why, sizeof why))
        return answer(report, bytes, -1, why);
    return answer(report, bytes, 0, "");
}

__attribute__((visibility("default"))) void
esdm_netcdf_records_r(char **path, int *ret_status)
{
    char report[512];
    *ret_status = esdm_netcdf_records(*path, report, sizeof report);
    if (*ret_status != 0)
        (void) fprintf(stderr, "esdm: %s\n", report);
}

__attribute__((visibility("default"))) int
esdm_netcdf_deactivate(void)
{
    walk w = {.back = true};
    (void) pthread_mutex_lock(&lock);
    (void) dl_iterate_phdr(find_self, &w);
    if (w.found)
        (void) dl_iterate_phdr(visit, &w);
    free(slots);
    slots = NULL;
    nslots = 0;
    (void) pthread_mutex_unlock(&lock);
    return w.changed;
}
