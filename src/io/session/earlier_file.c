/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The file of a record: $XDG_CACHE_HOME/esdm/runs/SITE/PROGRAM-HASH.json, of this user alone. It is
 * replaced as a whole, so that who reads it sees all of one or of the other; who writes it holds a
 * lock meanwhile. Files are bounded in size, number and age.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/program.h"
#include "esdm/text.h"
#include "io/session/cache.h"
#include "io/session/earlier_parts.h"

#define FORMAT       1
#define BYTES_MOST   ((size_t) 1 << 20)
#define FILES_MOST   256u
#define SITES_MOST   64u
#define AGE_MOST_S   (90 * 86400)
#define REWRITE_S    86400 /* so that what is used does not look old */
#define LOCK_TRIES   20
#define LOCK_WAIT_NS 5000000

/* ---- which ranks ---------------------------------------------------------------------------- */

/* Of a job the first rank alone: others read other parts. */
static bool
is_other_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID", NULL};
    for (const char *const *name = variables; *name != NULL; name++) {
        const char *text = secure_getenv(*name);
        if (text != NULL && atoi(text) > 0)
            return true;
    }
    return false;
}

/* ---- where --------------------------------------------------------------------------------- */

static char *
records_folder(void)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = asprintf(&path, "%s/esdm/runs", cache);
    else if (home != NULL && home[0] == '/')
        n = asprintf(&path, "%s/.cache/esdm/runs", home);
    return n >= 0 ? path : NULL;
}

static void
name_file(const char *program, char *ret, size_t room)
{
    char short_name[33];
    esdm__cache_key key = esdm__cache_key_of(program, "", 0);
    (void) snprintf(short_name, sizeof short_name, "%s", program);
    for (char *c = short_name; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || (*c == '.' && c != short_name) || *c == '_';
        *c = plain ? *c : '-';
    }
    (void) snprintf(ret, room, "%s-%016llx.json", short_name, (unsigned long long) key.low);
}

bool
esdm__earlier_place(esdm__earlier *earlier, const char *site_id)
{
    char *records = is_other_rank() ? NULL : records_folder();
    earlier->program = records != NULL ? esdm__program_name(true) : NULL;
    if (earlier->program != NULL && asprintf(&earlier->folder, "%s/%s", records, site_id) < 0)
        earlier->folder = NULL;
    free(records);
    if (earlier->folder == NULL)
        return false;
    name_file(earlier->program, earlier->file, sizeof earlier->file);
    return true;
}

/* Makes it, with those above. @return whether it is ours alone: what others can change would tell
 * us what to read. */
static bool
make_folder(const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    size_t length = strlen(path);
    if (length >= sizeof part)
        return false;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return false;
    }
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 022) == 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* All of it. */
static json_t *
read_json(int fd, size_t bytes)
{
    char *text = malloc(bytes + 1);
    ssize_t n = text != NULL ? pread(fd, text, bytes, 0) : -1;
    json_t *root = NULL;
    if (n > 0) {
        text[n] = '\0';
        root = esdm__json_read(text);
    }
    free(text);
    return root;
}

static json_t *
load_json(const esdm__earlier *earlier, time_t *ret_changed)
{
    char path[PATH_MAX];
    struct stat st;
    json_t *root = NULL;
    int n = snprintf(path, sizeof path, "%s/%s", earlier->folder, earlier->file);
    int fd =
        n < (int) sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 022) == 0 && (size_t) st.st_size <= BYTES_MOST) {
        root = read_json(fd, (size_t) st.st_size);
        *ret_changed = st.st_mtim.tv_sec;
    }
    if (fd >= 0)
        (void) close(fd);
    const char *program = json_string_value(json_object_get(root, "program"));
    if (json_integer_value(json_object_get(root, "format")) != FORMAT || program == NULL ||
        strcmp(program, earlier->program) != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static uint64_t
number_of(const json_t *json, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(json, key));
    return value > 0 ? (uint64_t) value : 0;
}

static bool
lengths_of(const json_t *json, uint64_t *ret, uint32_t *ret_rank)
{
    const json_t *list = json_object_get(json, "lengths");
    size_t rank = json_array_size(list);
    if (!json_is_array(list) || rank > ESDM_MAX_RANK)
        return false;
    for (size_t d = 0; d < rank; d++) {
        json_int_t value = json_integer_value(json_array_get(list, d));
        if (value < 0)
            return false;
        ret[d] = (uint64_t) value;
    }
    *ret_rank = (uint32_t) rank;
    return true;
}

static esdm__use *
use_of(const json_t *json)
{
    uint64_t lengths[ESDM_MAX_RANK];
    uint32_t rank = 0;
    const char *container = json_string_value(json_object_get(json, "container"));
    const char *dataset = json_string_value(json_object_get(json, "dataset"));
    if (container == NULL || dataset == NULL || !lengths_of(json, lengths, &rank))
        return NULL;
    esdm__use *use = esdm__use_new(container, dataset, rank, lengths);
    if (use == NULL)
        return NULL;
    json_int_t trust = json_integer_value(json_object_get(json, "trust"));
    use->trust = trust > ESDM__TRUST_MOST    ? ESDM__TRUST_MOST
                 : trust < ESDM__TRUST_LEAST ? ESDM__TRUST_LEAST
                                             : (int) trust;
    use->order = number_of(json, "order");
    use->seen_s = number_of(json, "seen");
    if (!esdm__loops_parse(json_object_get(json, "loops"), rank, &use->before)) {
        esdm__use_free(use);
        return NULL;
    }
    use->before.cut = json_is_true(json_object_get(json, "cut"));
    return use;
}

void
esdm__earlier_load(esdm__earlier *earlier)
{
    time_t changed = 0;
    json_t *root = load_json(earlier, &changed);
    const json_t *list = json_object_get(root, "uses");
    esdm__use **end = &earlier->uses;
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count && earlier->count < ESDM__USES_MOST; i++) {
        esdm__use *use = use_of(json_array_get(list, i));
        if (use == NULL)
            continue;
        *end = use;
        end = &use->next;
        earlier->count++;
    }
    earlier->stale = changed < time(NULL) - REWRITE_S;
    json_decref(root);
}

/* ---- writing ------------------------------------------------------------------------------- */

static json_t *
use_json(const esdm__use *use)
{
    json_t *lengths = json_array();
    for (uint32_t d = 0; d < use->rank; d++)
        (void) json_array_append_new(lengths, json_integer((json_int_t) use->lengths[d]));
    return json_pack("{s:s,s:s,s:o,s:I,s:I,s:i,s:b,s:o}", "container", use->container, "dataset",
                     use->dataset, "lengths", lengths, "order", (json_int_t) use->order, "seen",
                     (json_int_t) use->seen_s, "trust", use->trust, "cut", (int) use->before.cut,
                     "loops", esdm__loops_json(&use->before));
}

static bool
is_same_use(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "container"), json_object_get(b, "container")) &&
           json_equal(json_object_get(a, "dataset"), json_object_get(b, "dataset"));
}

static bool
has_use(const json_t *list, const json_t *use)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (is_same_use(json_array_get(list, i), use))
            return true;
    }
    return false;
}

/* Those of this run, then what else the file has: of another one that ended meanwhile, too. The
 * oldest go where they are too many. */
static json_t *
merged(esdm__earlier *earlier)
{
    time_t changed;
    json_t *list = json_array();
    (void) pthread_mutex_lock(&earlier->lock);
    for (const esdm__use *use = earlier->uses; use != NULL; use = use->next) {
        if (use->read || atomic_load(&use->account.requests) > 0)
            (void) json_array_append_new(list, use_json(use));
    }
    (void) pthread_mutex_unlock(&earlier->lock);
    json_t *root = load_json(earlier, &changed);
    json_t *others = json_object_get(root, "uses");
    uint64_t oldest = (uint64_t) time(NULL) - AGE_MOST_S;
    while (json_array_size(list) < ESDM__USES_MOST && json_array_size(others) > 0) {
        size_t newest = 0;
        for (size_t i = 1; i < json_array_size(others); i++) {
            if (number_of(json_array_get(others, i), "seen") >
                number_of(json_array_get(others, newest), "seen"))
                newest = i;
        }
        json_t *one = json_array_get(others, newest);
        if (!has_use(list, one) && number_of(one, "seen") > oldest)
            (void) json_array_append(list, one);
        (void) json_array_remove(others, newest);
    }
    json_decref(root);
    return list;
}

/* As an insertion: they are few. */
static json_t *
in_order(json_t *list)
{
    json_t *sorted = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *one = json_array_get(list, i);
        size_t at = json_array_size(sorted);
        while (at > 0 &&
               number_of(json_array_get(sorted, at - 1), "order") > number_of(one, "order"))
            at--;
        (void) json_array_insert(sorted, at, one);
    }
    json_decref(list);
    return sorted;
}

/* A new file in place of the old one. */
static void
replace_file(const esdm__earlier *earlier, const char *text)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    size_t bytes = strlen(text);
    if (snprintf(path, sizeof path, "%s/%s", earlier->folder, earlier->file) >= (int) sizeof path ||
        snprintf(fresh, sizeof fresh, "%s/new.XXXXXX", earlier->folder) >= (int) sizeof fresh ||
        bytes > BYTES_MOST)
        return;
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return;
    bool good = write(fd, text, bytes) == (ssize_t) bytes;
    good = close(fd) == 0 && good;
    if (!good || rename(fresh, path) != 0)
        (void) unlink(fresh);
}

/* A lock that nobody holds for longer than it takes to write. -1: somebody does. */
static int
lock_folder(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/lock", folder) >= (int) sizeof path)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break; /* no locks here: files are replaced as a whole all the same */
        if (i == LOCK_TRIES) {
            (void) close(fd);
            return -1;
        }
        const struct timespec step = {.tv_nsec = LOCK_WAIT_NS};
        (void) nanosleep(&step, NULL);
    }
    return fd;
}

/* ---- bounds -------------------------------------------------------------------------------- */

/* A folder of ours, where nobody else makes anything. -1: it is not. */
static int
open_own(int folder, const char *name)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
        (void) close(fd);
        fd = -1;
    }
    return fd;
}

/* What this file makes in the folder of a site. */
static bool
is_record(const char *name, mode_t mode)
{
    const char *end = strrchr(name, '.');
    return S_ISREG(mode) && end != NULL &&
           (strcmp(end, ".json") == 0 || strncmp(name, "new.", strlen("new.")) == 0);
}

/* And in that of all sites: their ids. */
static bool
is_site(const char *name, mode_t mode)
{
    return S_ISDIR(mode) && strspn(name, "0123456789abcdef-") == strlen(name);
}

/* Removes entries of a folder that are older than the most, and the oldest of too many. Nothing but
 * what is ours is looked at, and no link is followed. */
static void
trim(int folder, unsigned most, bool (*is_ours)(const char *name, mode_t mode),
     bool (*remove_one)(int folder, const char *name))
{
    for (;;) {
        char oldest[NAME_MAX + 1] = "";
        struct stat st;
        time_t oldest_s = 0;
        unsigned count = 0;
        int fd = open_own(folder, ".");
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            if (entry->d_name[0] == '.' ||
                fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
                st.st_uid != geteuid() || !is_ours(entry->d_name, st.st_mode))
                continue;
            count++;
            if (oldest[0] == '\0' || st.st_mtim.tv_sec < oldest_s) {
                oldest_s = st.st_mtim.tv_sec;
                (void) snprintf(oldest, sizeof oldest, "%s", entry->d_name);
            }
        }
        if (dir != NULL)
            (void) closedir(dir);
        else if (fd >= 0)
            (void) close(fd);
        if (count == 0 || (count <= most && oldest_s > time(NULL) - AGE_MOST_S) ||
            !remove_one(folder, oldest))
            return;
    }
}

static bool
remove_file(int folder, const char *name)
{
    return unlinkat(folder, name, 0) == 0;
}

static bool
remove_site(int folder, const char *name)
{
    int site = open_own(folder, name);
    if (site < 0)
        return false;
    trim(site, 0, is_record, remove_file);
    (void) unlinkat(site, "lock", 0);
    (void) close(site);
    return unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

static void
trim_all(const esdm__earlier *earlier)
{
    char *records = records_folder();
    int all = records != NULL ? open_own(AT_FDCWD, records) : -1;
    int site = open_own(AT_FDCWD, earlier->folder);
    if (site >= 0) {
        trim(site, FILES_MOST, is_record, remove_file);
        (void) close(site);
    }
    if (all >= 0) {
        trim(all, SITES_MOST, is_site, remove_site);
        (void) close(all);
    }
    free(records);
}

void
esdm__earlier_save(esdm__earlier *earlier)
{
    int lock = make_folder(earlier->folder) ? lock_folder(earlier->folder) : -1;
    if (lock < 0)
        return;
    json_t *uses = in_order(merged(earlier));
    json_t *root =
        json_pack("{s:i,s:s,s:o}", "format", FORMAT, "program", earlier->program, "uses", uses);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text != NULL)
        replace_file(earlier, text);
    (void) close(lock);
    trim_all(earlier);
    free(text);
    json_decref(root);
}
