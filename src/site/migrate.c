/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Moving the catalogue of a site to another metadata store.
 *
 * Neither store may ever be written to while the other one is, for packs belong to one catalogue:
 * the old store is closed to writers before anything is copied, the new one opens after the old one
 * has been closed for good. At each instant at most one of them is active; an interruption leaves
 * one of these pairs, and the next attempt goes on from there:
 *
 *     old          new
 *     active       absent, empty or arriving      nothing has happened
 *     leaving      arriving                       copying, or interrupted while copying
 *     left         arriving                       copied and verified
 *     left         active                         done
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/json.h"
#include "site/admin.h"
#include "site/catalogue.h"

typedef struct migration {
    esdm__site *from;
    esdm__site *to;
    esdm__part source; /* the two metadata stores */
    esdm__part target;
    esdm__catalogue old;
    esdm__catalogue new;
    const esdm__report_to *say;
    bool dry_run;
    uint64_t containers; /* copied, or found to be there */
    uint64_t snapshots;
    uint64_t pages;
    uint64_t facts;
} migration;

/* ---- what the two sites have in common ------------------------------------------------------ */

static bool
same_object(const char *a, const char *b)
{
    json_t *x = NULL;
    json_t *y = NULL;
    bool same = esdm__json_parse(a, strlen(a), "", &x, NULL) == ESDM_OK &&
                esdm__json_parse(b, strlen(b), "", &y, NULL) == ESDM_OK && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static esdm_status
check_sites(const migration *m, esdm_error *err)
{
    for (size_t i = 0; i < m->from->ntargets; i++) {
        const esdm__site_target *target = &m->from->targets[i];
        bool found = false;
        for (size_t k = 0; k < m->to->ntargets && !found; k++)
            found = strcmp(target->name, m->to->targets[k].name) == 0 &&
                    strcmp(target->plugin, m->to->targets[k].plugin) == 0 &&
                    same_object(target->json, m->to->targets[k].json);
        if (!found)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "%s: the target \"%s\" of %s is not there, or described in "
                                   "another way; a migration moves the metadata alone",
                                   m->to->source, target->name, m->from->source);
    }
    if (strcmp(m->from->metadata.plugin, m->to->metadata.plugin) == 0 &&
        same_object(m->from->metadata.json, m->to->metadata.json))
        return esdm__error_set(err, ESDM_EINVAL, "%s and %s name the same metadata store",
                               m->from->source, m->to->source);
    return ESDM_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static esdm_status
open_store(const esdm__part *part, bool read_only, esdm__catalogue *ret_store, esdm_error *err)
{
    esdm_status status = part->meta->open(&part->config, read_only, &ret_store->store, err);
    if (status != ESDM_OK)
        return status;
    ret_store->plugin = part->meta;
    if (read_only || part->meta->is_writable(ret_store->store))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES, "%s: no permission to write", part->target->path);
}

static esdm_status
state_of(const esdm__catalogue *store, esdm_meta_state *ret_state, esdm_error *err)
{
    char note[ESDM_META_NOTE_BYTES];
    return store->plugin->state(store->store, ret_state, note, err);
}

/* ESDM_ENOENT: it was never made. */
static esdm_status
target_id(migration *m, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = m->target.meta->site_id(&m->target.config, ret_id, &why);
    if (status == ESDM_OK && strcmp(ret_id, m->from->id) != 0)
        return esdm__error_set(err, ESDM_EEXIST,
                               "%s: there is the metadata store of another site (%s)",
                               m->target.target->path, ret_id);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static bool
stop_at_first(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name;
    (void) record;
    *(bool *) user = true;
    return false;
}

/* The new store must be one that nobody uses: it is being filled, or has never held anything. */
static esdm_status
check_target(const migration *m, esdm_meta_state state, esdm_error *err)
{
    bool used = state != ESDM_META_ARRIVING && state != ESDM_META_ACTIVE;
    esdm_status status = ESDM_OK;
    if (state == ESDM_META_ACTIVE)
        status = m->new.plugin->container_list(m->new.store, NULL, stop_at_first, &used, err);
    if (status == ESDM_OK && used)
        return esdm__error_set(err, ESDM_EEXIST,
                               "%s: the metadata store is in use; a migration needs an empty one",
                               m->target.target->path);
    return status;
}

/* ---- copying -------------------------------------------------------------------------------- */

static esdm_status
remove_copy(const migration *m, const char *name, esdm_error *err)
{
    uint64_t container = 0;
    esdm_status status = m->new.plugin->container_remove(m->new.store, name, &container, err);
    return status == ESDM_OK ? m->new.plugin->forget(m->new.store, container, err) : status;
}

/* Loads the copy and compares it. ESDM_ENOENT: there is none. */
static esdm_status
verify_copy(const migration *m, const esdm__whole *whole, esdm_error *err)
{
    esdm__whole copy = {0};
    esdm_status status = esdm__whole_load(&m->new, whole->name, &copy, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__whole_compare(whole, &m->old, &copy, &m->new, err);
    esdm__whole_clear(&copy);
    return status;
}

static esdm_status
copy_container(migration *m, const char *name, esdm_error *err)
{
    esdm__whole whole = {0};
    esdm_status status = esdm__whole_load(&m->old, name, &whole, err);
    if (status != ESDM_OK)
        return status;
    /* An earlier attempt may have copied it. */
    status = verify_copy(m, &whole, err);
    if (status == ESDM_ECORRUPT)
        status = remove_copy(m, name, err);
    else if (status == ESDM_ENOENT)
        status = ESDM_OK;
    else
        goto done; /* it is the same, or cannot be read */
    if (status == ESDM_OK)
        status = esdm__whole_import(&whole, &m->old, &m->new, err);
    if (status == ESDM_OK)
        status = verify_copy(m, &whole, err);
done:
    m->containers += name[0] != '/'; /* former ones come along, and are not told */
    m->snapshots += whole.nsnapshots;
    m->pages += whole.npages;
    esdm__whole_clear(&whole);
    return status;
}

static const char *
next_name(const esdm__buffer *names, const char *name)
{
    const char *next = name == NULL ? (const char *) names->data : name + strlen(name) + 1;
    return names->bytes > 0 && next < (const char *) names->data + names->bytes ? next : NULL;
}

/* Removes what an earlier attempt has copied and what was removed or renamed since. Both lists are
 * sorted. */
static esdm_status
remove_surplus(const migration *m, const esdm__buffer *names, esdm_error *err)
{
    esdm__buffer copies;
    esdm_status status = esdm__catalogue_names(&m->new, &copies, err);
    const char *name = next_name(names, NULL);
    for (const char *copy = next_name(&copies, NULL); copy != NULL && status == ESDM_OK;
         copy = next_name(&copies, copy)) {
        while (name != NULL && strcmp(name, copy) < 0)
            name = next_name(names, name);
        if (name == NULL || strcmp(name, copy) != 0)
            status = remove_copy(m, copy, err);
    }
    esdm__buffer_clear(&copies);
    return status;
}

static esdm_status
copy_catalogue(migration *m, esdm_error *err)
{
    esdm__buffer names;
    esdm_status status = esdm__catalogue_names(&m->old, &names, err);
    if (status == ESDM_OK)
        status = remove_surplus(m, &names, err);
    for (const char *name = next_name(&names, NULL); name != NULL && status == ESDM_OK;
         name = next_name(&names, name))
        status = copy_container(m, name, err);
    esdm__buffer_clear(&names);
    return status == ESDM_OK ? esdm__facts_copy(&m->old, &m->new, &m->facts, err) : status;
}

/* ---- handing over --------------------------------------------------------------------------- */

static esdm_status
set_state(const esdm__catalogue *store, esdm_meta_state state, const char *text, const char *where,
          esdm_error *err)
{
    char note[ESDM_META_NOTE_BYTES];
    (void) snprintf(note, sizeof note, text, where);
    return store->plugin->set_state(store->store, state, note, err);
}

/* Closes the new store to others. Somebody may have used it until now. */
static esdm_status
close_target(const migration *m, esdm_meta_state new_state, esdm_error *err)
{
    esdm_status status = set_state(&m->new, ESDM_META_ARRIVING,
                                   "is the target of a migration from that of %.120s; call "
                                   "esdm-mkfs --migrate again to complete it",
                                   m->from->source, err);
    if (status != ESDM_OK || new_state != ESDM_META_ACTIVE)
        return status;
    status = check_target(m, new_state, err);
    if (status != ESDM_OK)
        (void) !set_state(&m->new, ESDM_META_ACTIVE, "%s", "", NULL);
    return status;
}

static esdm_status
copy_and_close(migration *m, esdm_meta_state new_state, esdm_error *err)
{
    esdm_status status = close_target(m, new_state, err);
    if (status == ESDM_OK)
        status = set_state(&m->old, ESDM_META_LEAVING, "is being migrated to that of %.150s",
                           m->to->source, err);
    if (status != ESDM_OK)
        return status;
    esdm_error why = {0};
    status = copy_catalogue(m, &why);
    if (status == ESDM_OK)
        status = set_state(&m->old, ESDM_META_LEFT,
                           "was migrated to that of %.120s: use this configuration; the packs "
                           "belong to it now, and this store can be deleted by hand",
                           m->to->source, &why);
    else if (set_state(&m->old, ESDM_META_ACTIVE, "%s", "", NULL) != ESDM_OK)
        (void) esdm__error_prefix(&why, status,
                                  "the migration failed, and the site takes no commits until it is "
                                  "tried again");
    else
        (void) esdm__error_prefix(&why, status, "nothing was migrated");
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
hand_over(migration *m, esdm_meta_state old_state, esdm_meta_state new_state, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (old_state != ESDM_META_LEFT)
        status = copy_and_close(m, new_state, err);
    if (status != ESDM_OK)
        return status;
    status = set_state(&m->new, ESDM_META_ACTIVE, "%s", "", err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status,
                                  "everything is copied, but the new store could not be opened; "
                                  "call esdm-mkfs --migrate again");
    if (old_state != ESDM_META_LEFT)
        esdm__say(m->say,
                  "copied and verified %" PRIu64 " container%s, %" PRIu64 " snapshot%s, %" PRIu64
                  " index page%s",
                  m->containers, m->containers == 1 ? "" : "s", m->snapshots,
                  m->snapshots == 1 ? "" : "s", m->pages, m->pages == 1 ? "" : "s");
    esdm__say(m->say, "%s is the configuration of the site from now on; the store of %s is closed",
              m->to->source, m->from->source);
    return ESDM_OK;
}

/* ---- migration ------------------------------------------------------------------------------ */

static esdm_status
migrated_already(const migration *m, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL, "%s: this metadata store was migrated already",
                           m->source.target->path);
}

static esdm_status
migrate_to_made(migration *m, esdm_meta_state old_state, esdm_error *err)
{
    esdm_meta_state new_state = ESDM_META_ACTIVE;
    esdm_status status = open_store(&m->target, m->dry_run, &m->new, err);
    if (status == ESDM_OK)
        status = state_of(&m->new, &new_state, err);
    if (status == ESDM_OK && old_state == ESDM_META_LEFT && new_state != ESDM_META_ARRIVING)
        status = migrated_already(m, err);
    if (status == ESDM_OK)
        status = check_target(m, new_state, err);
    return status == ESDM_OK && !m->dry_run ? hand_over(m, old_state, new_state, err) : status;
}

static bool
count_one(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    *(uint64_t *) user += name[0] != '/'; /* former ones are not told */
    return true;
}

static esdm_status
migrate_site(migration *m, esdm_error *err)
{
    char id[ESDM__UUID_BYTES];
    esdm_meta_state state = ESDM_META_ACTIVE;
    uint64_t containers = 0;
    esdm_status status = open_store(&m->source, m->dry_run, &m->old, err);
    if (status == ESDM_OK)
        status = state_of(&m->old, &state, err);
    if (status == ESDM_OK && state == ESDM_META_ARRIVING)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "%s: this metadata store is the target of another migration",
                                 m->source.target->path);
    if (status == ESDM_OK)
        status = m->old.plugin->container_list(m->old.store, NULL, count_one, &containers, err);
    if (status != ESDM_OK)
        return status;
    esdm_error why = {0};
    status = target_id(m, id, &why);
    bool absent = status == ESDM_ENOENT;
    if (absent && state == ESDM_META_LEFT)
        status = migrated_already(m, &why);
    else if ((absent || status == ESDM_OK) && state != ESDM_META_LEFT)
        status =
            m->target.meta->make(&m->target.config, m->dry_run, m->say->report, m->say->user, &why);
    if (m->dry_run && status == ESDM_OK)
        esdm__say(m->say, "copy and verify %" PRIu64 " container%s, then close the store of %s",
                  containers, containers == 1 ? "" : "s", m->from->source);
    if (status == ESDM_OK && !(absent && m->dry_run))
        status = migrate_to_made(m, state, &why);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
load_both(migration *m, const esdm_site_options *from, const esdm_site_options *to, esdm_error *err)
{
    esdm_status status = esdm__site_load_options(&from, &m->from, err);
    if (status == ESDM_OK)
        status = esdm__site_load_options(&to, &m->to, err);
    if (status == ESDM_OK)
        status = check_sites(m, err);
    if (status == ESDM_OK)
        status = esdm__site_resolve(m->from, err);
    if (status != ESDM_OK)
        return status;
    if (m->to->stated_id[0] != '\0' && strcmp(m->to->stated_id, m->from->id) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: site.id: the site that is migrated has the id %s",
                               m->to->source, m->from->id);
    memcpy(m->to->id, m->from->id, sizeof m->to->id);
    status = esdm__part_at(m->from, m->from->ntargets, &m->source, err);
    if (status == ESDM_OK)
        status = esdm__part_at(m->to, m->to->ntargets, &m->target, err);
    m->source.config.migrating = true;
    m->target.config.migrating = true;
    return status;
}

esdm_status
esdm_site_migrate(const esdm_site_options *from, const esdm_site_options *to, esdm_error *err)
{
    ESDM__NEED(err, to);
    const esdm__report_to say =
        esdm__reporter(from != NULL ? from->report : NULL, from != NULL ? from->user : NULL);
    migration m = {.say = &say, .dry_run = from != NULL && from->dry_run};
    esdm_status status = load_both(&m, from, to, err);
    if (status == ESDM_OK)
        status = migrate_site(&m, err);
    if (m.new.plugin != NULL)
        m.new.plugin->close(m.new.store);
    if (m.old.plugin != NULL)
        m.old.plugin->close(m.old.store);
    esdm__site_free(m.from);
    esdm__site_free(m.to);
    return status;
}
