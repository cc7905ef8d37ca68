/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/session.h"
#include "io/session/readers.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/error.h"
#include "codec/blocks.h"
#include "io/session/journaling.h"
#include "io/session/models.h"
#include "plugin/registry.h"
#include "site/parts.h"

/* More threads than this are of no use for anybody. */
#define WAITING_MAX 256u
/* Tasks for each target of a site with slow ones: all targets are to be busy at once. */
#define SLOW_TARGET_TASKS 4u
/* A target that is slower than this, in bytes per second, makes its caller wait, not work. */
#define SLOW_BELOW 1.5e9
/* A model makes no read larger than it would be with this price. */
#define READ_BYTES_MAX 524288.0
/* The memory of a session has room for so many fragments of any size that a model may choose. */
#define FRAGMENTS_IN_MEMORY 64
/* Each thread may encode a block of mode archive, which takes so many times its size with all that
 * codecs make of it, in half of the memory. Then a quarter of the cache has room for it as well. */
#define ARCHIVE_WORKING_SETS 8u
#define ARCHIVE_BLOCK_MOST   (UINT64_C(1) << ESDM__BLOCK_LOG2_MAX)
/* Smaller reads are not worth looking at the clock. */
#define OBSERVED_READ_BYTES 65536u

uint64_t
esdm__session_store_configuration(const esdm_session *session)
{
    const esdm__site_target *store = &session->site->metadata;
    return esdm__checksum(store->json, strlen(store->json)) ^
           esdm__checksum(store->plugin, strlen(store->plugin)) << 1;
}

static bool
was_told(const esdm_session *session, const esdm__store_told *told)
{
    const esdm__site *site = session->site;
    return told != NULL && told->configuration == esdm__session_store_configuration(session) &&
           (site->stated_id[0] == '\0' || strcmp(site->stated_id, told->site_id) == 0);
}

static esdm_status
open_store(esdm_session *session, const esdm__store_told *told, esdm_error *err)
{
    esdm__site *site = session->site;
    const esdm_plugin *plugin = NULL;
    esdm_status status = esdm__plugin_find(ESDM_PLUGIN_META, site->metadata.plugin, &plugin, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "%s", site->metadata.path);
    session->told = was_told(session, told);
    if (session->told)
        memcpy(site->id, told->site_id, sizeof site->id);
    else
        status = esdm__site_resolve(site, err);
    if (status != ESDM_OK)
        return status;
    esdm_plugin_config config;
    esdm__site_plugin_config(site, &site->metadata, &config);
    config.later = session->told;
    session->meta = (const esdm_meta_plugin *) plugin;
    return session->meta->open(&config, session->read_only, &session->store, err);
}

static esdm_status
open_parts(esdm_session *session, const esdm__store_told *told, esdm_error *err)
{
    esdm_status status = open_store(session, told, err);
    /* The default site has one target, which may have to be made yet. */
    return status == ESDM_OK ? esdm__targets_open(session, session->site->embedded, err) : status;
}

static void
close_parts(esdm_session *session)
{
    for (size_t i = 0; i < ESDM__SOURCE_KINDS; i++) {
        esdm__source_state *state = atomic_exchange(&session->sources[i], NULL);
        if (state != NULL)
            state->free(state);
    }
    esdm__targets_close(session);
    if (session->meta != NULL)
        session->meta->close(session->store);
    session->store = NULL;
}

static bool
stop_at_first(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name;
    (void) record;
    *(bool *) user = true;
    return false;
}

/* Whether there is nothing yet whose packs could be missing. */
static bool
is_empty(const esdm_session *session)
{
    bool found = false;
    return session->store == NULL ||
           (session->meta->container_list(session->store, NULL, stop_at_first, &found, NULL) ==
                ESDM_OK &&
            !found);
}

static void
note_step(const char *line, void *user)
{
    (void) line;
    *(bool *) user = true;
}

static esdm_status
make_default_site(esdm_session *session, esdm_error *err)
{
    bool made = false; /* another process may be faster */
    esdm_status status = esdm__site_make(session->site, false, false, note_step, &made, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "cannot make the default site");
    return made ? esdm__site_data_folder(&session->made_site, err) : ESDM_OK;
}

/* The embedded default site is made when it is not there yet. Another process may be in the middle
 * of that: the store comes before the targets. */
static esdm_status
open_plugins(esdm_session *session, const esdm__store_told *told, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = open_parts(session, told, &why);
    if (status == ESDM_ENOENT && session->site->embedded && !session->read_only) {
        bool empty = is_empty(session);
        close_parts(session);
        status = empty ? make_default_site(session, &why) : ESDM_OK;
        if (status == ESDM_OK)
            status = open_parts(session, NULL, &why);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static uint64_t
bytes_of(const esdm_range *ranges, size_t nranges)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < nranges; i++)
        bytes += ranges[i].bytes;
    return bytes;
}

/* Opens the target, which may read the ranges already. The time of that has the beginning of
 * connections in it: no model is told. @param ret_done whether they are read. */
static esdm_status
open_to_read(esdm_session *session, esdm__target *target, const char *pack,
             const esdm_range *ranges, size_t nranges, bool *ret_done, esdm_error *err)
{
    esdm__first_read first = {.pack = pack, .ranges = ranges, .nranges = nranges};
    esdm__span span;
    esdm__span_begin(&span, target->monitor);
    esdm_status status = esdm__target_need_to_read(session, target, &first, err);
    if (status != ESDM_OK || !first.done)
        return status;
    *ret_done = true;
    esdm__target_observed(target, &span, ESDM__SPAN_FETCH, bytes_of(ranges, nranges), nranges,
                          first.status);
    if (first.status != ESDM_OK && err != NULL)
        *err = first.why;
    return first.status;
}

/* pack_read() of the target. */
static esdm_status
read_now(esdm_session *session, esdm__target *target, const char *pack, const esdm_range *ranges,
         size_t nranges, esdm_error *err)
{
    const esdm_data_plugin *plugin = target->plugin;
    bool done = false;
    esdm_status status = ESDM_OK;
    if (atomic_load(&target->state) != ESDM__TARGET_OPEN)
        status = open_to_read(session, target, pack, ranges, nranges, &done, err);
    if (status != ESDM_OK || done)
        return status;
    uint64_t bytes = bytes_of(ranges, nranges);
    bool observed = bytes >= OBSERVED_READ_BYTES;
    bool waits = esdm__target_waits(target);
    double readers = 1.0 + atomic_fetch_add(&target->readers, 1u);
    if (waits)
        esdm__pool_wait_begin(session->pool);
    double started = observed ? esdm__seconds_now() : 0;
    esdm__span span;
    esdm__span_begin(&span, target->monitor);
    status = plugin->pack_read(target->handle, pack, ranges, nranges, err);
    esdm__target_observed(target, &span, ESDM__SPAN_FETCH, bytes, nranges, status);
    if (observed && status == ESDM_OK)
        esdm__models_observe(session, (size_t) (target - session->targets), true, (double) bytes,
                             readers, esdm__seconds_now() - started);
    if (waits)
        esdm__pool_wait_end(session->pool);
    atomic_fetch_sub(&target->readers, 1u);
    return status;
}

static esdm_status
read_ahead(void *user, esdm__target *target, const char *pack, const esdm_range *range,
           esdm_error *err)
{
    return read_now(user, target, pack, range, 1, err);
}

/* Takes what was asked for before. @param ret_left room for all ranges; those that were not.
 * @return how many */
static size_t
take_ahead(esdm_session *session, const esdm__target *target, const char *pack,
           const esdm_range *ranges, size_t nranges, esdm_range *ret_left)
{
    size_t left = 0;
    esdm__pool_wait_begin(session->pool);
    for (size_t i = 0; i < nranges; i++) {
        if (!esdm__ahead_take(session->ahead, target, pack, &ranges[i]))
            ret_left[left++] = ranges[i];
    }
    esdm__pool_wait_end(session->pool);
    return left;
}

esdm_status
esdm__session_read(esdm_session *session, esdm__target *target, const char *pack,
                   const esdm_range *ranges, size_t nranges, esdm_error *err)
{
    esdm_range few[16];
    if (target->plugin->concurrency == 0 || esdm__ahead_is_empty(session->ahead))
        return read_now(session, target, pack, ranges, nranges, err);
    esdm_range *left = nranges <= 16 ? few : malloc(nranges * sizeof *left);
    if (left == NULL)
        return esdm__error_nomem(err, nranges * sizeof *left, "ranges");
    size_t nleft = take_ahead(session, target, pack, ranges, nranges, left);
    esdm_status status = nleft > 0 ? read_now(session, target, pack, left, nleft, err) : ESDM_OK;
    if (left != few)
        free(left);
    return status;
}

/* Makes fragments so large that a target spends nine tenths of its time on moving bytes. They are
 * never smaller than the default, and never so large that memory cannot hold those under way. */
static void
raise_fragment_bytes(esdm_session *session, const esdm__perf *perf)
{
    const esdm__site_engine *engine = &session->site->engine;
    double most = (double) engine->memory_bytes / FRAGMENTS_IN_MEMORY;
    double bytes = fmin(9 * perf->latency_s / fmax(perf->stream_s_per_byte, 1e-15), most);
    if (!engine->fragment_stated && bytes > (double) session->fragment_bytes)
        session->fragment_bytes = (uint64_t) bytes;
}

/* What is usual of requests, for those who look for what is not. */
static void
tell_monitor(const esdm_session *session, const esdm__target *target, bool reading,
             const esdm__perf *perf)
{
    esdm__monitor_times times;
    if (!esdm__monitor_has_rules(session->monitor))
        return;
    for (unsigned i = 0; i < ESDM__TIMES_BYTES; i++) {
        for (unsigned k = 0; k < ESDM__TIMES_AT_ONCE; k++) {
            double bytes = exp2(ESDM__TIMES_FIRST + ESDM__TIMES_STEP * i);
            times.seconds[i][k] = fmax(esdm__perf_seconds(perf, bytes, exp2(k)), 1e-9);
        }
    }
    esdm__monitor_expect(session->monitor, target->name, reading, &times);
}

/* What the model tells for good: which targets make a thread wait, and what a read of them costs.
 */
static void
ask_models(esdm_session *session)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        esdm__perf perf;
        bool measured = esdm__models_get(session, i, false, &perf);
        if (measured)
            raise_fragment_bytes(session, &perf);
        if (measured)
            target->slow = session->ntargets > 1 && perf.stream_s_per_byte * SLOW_BELOW > 1;
        if (measured)
            tell_monitor(session, target, false, &perf);
        if (!esdm__models_get(session, i, true, &perf))
            continue;
        tell_monitor(session, target, true, &perf);
        if (!(perf.stream_s_per_byte > 0) || session->site->engine.sieve_stated)
            continue;
        target->measured = true;
        double bytes = perf.latency_s / perf.stream_s_per_byte;
        bytes = bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX;
        if (bytes > (double) target->read_bytes)
            target->read_bytes = (uint64_t) bytes;
    }
}

/* Tasks that may wait for targets at once, beside those that work: as many as the targets want, as
 * far as there is memory for a fragment of each. */
static uint32_t
waiting_tasks(const esdm_session *session)
{
    const esdm__site_engine *engine = &session->site->engine;
    uint64_t most = engine->memory_bytes / 8 / session->fragment_bytes;
    uint32_t wanted = 0;
    size_t slow = 0;
    for (size_t i = 0; i < session->ntargets; i++) {
        uint32_t concurrency = session->targets[i].plugin->concurrency;
        wanted = concurrency > wanted ? concurrency : wanted;
        slow += session->targets[i].slow;
    }
    if (slow > 0 && wanted < SLOW_TARGET_TASKS * session->ntargets)
        wanted = SLOW_TARGET_TASKS * (uint32_t) session->ntargets;
    wanted = wanted < WAITING_MAX ? wanted : WAITING_MAX;
    return wanted < most ? wanted : (uint32_t) most;
}

/* Requests that all targets on a network may have under way together. */
static uint32_t
requests_at_once(const esdm_session *session)
{
    uint32_t count = 0;
    for (size_t i = 0; i < session->ntargets; i++)
        count += session->targets[i].plugin->concurrency;
    return count < WAITING_MAX ? count : WAITING_MAX;
}

static uint64_t
archive_block_bytes(const esdm__site_engine *engine, uint32_t threads)
{
    uint64_t bytes = engine->memory_bytes / 2 / threads / ARCHIVE_WORKING_SETS;
    bytes = bytes < ARCHIVE_BLOCK_MOST ? bytes : ARCHIVE_BLOCK_MOST;
    return bytes > ESDM__ARCHIVE_BLOCK_LEAST ? bytes : ESDM__ARCHIVE_BLOCK_LEAST;
}

static esdm_status
init_engine(esdm_session *session, const esdm__store_told *told, esdm_error *err)
{
    const esdm__site_engine *engine = &session->site->engine;
    esdm_status status = esdm__chain_parse(engine->codec, &session->default_chain, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "%s: engine.codec", session->site->source);
    uint32_t threads = engine->threads > 0 ? engine->threads : 1;
    session->gather_limit_bytes = engine->memory_bytes / 4;
    session->index_limit_bytes = engine->memory_bytes / 8;
    session->fragment_limit_bytes = engine->memory_bytes / 4 / threads;
    session->archive_block_bytes = archive_block_bytes(engine, threads);
    session->cache = esdm__cache_new(engine->memory_bytes / 4);
    session->models = esdm__models_new(session->ntargets);
    session->fragment_bytes = engine->fragment_bytes;
    session->readers = esdm__readers_new(session);
    if (session->models != NULL && session->told)
        esdm__models_tell(session, told->model, told->observed);
    if (session->models != NULL)
        ask_models(session);
    session->streams = threads + waiting_tasks(session);
    session->pool = esdm__pool_new(threads, session->streams - threads);
    if (engine->writes_behind && !session->read_only) {
        session->behind = esdm__behind_new(engine->memory_bytes / 4);
        if (session->behind == NULL)
            return esdm__error_nomem(err, sizeof *session, "the session");
    }
    uint32_t requests = requests_at_once(session);
    if (requests > 0)
        session->ahead = esdm__ahead_new(requests, engine->memory_bytes / 4, read_ahead, session);
    if (session->ahead != NULL)
        session->earlier = esdm__earlier_new(session->site);
    if (session->pool != NULL) {
        session->decoding = esdm__room_new(engine->memory_bytes / 2, session->pool);
        session->decoding_remote = esdm__room_new(engine->memory_bytes / 2, session->pool);
    }
    if (session->cache == NULL || session->decoding == NULL || session->decoding_remote == NULL ||
        session->models == NULL)
        return esdm__error_nomem(err, sizeof *session, "the session");
    return ESDM_OK;
}

/* What node-local targets are told apart by. */
static esdm_status
name_node(esdm_session *session, esdm_error *err)
{
    const char *stated = secure_getenv("ESDM_NODE");
    if (stated != NULL && stated[0] != '\0')
        (void) snprintf(session->node, sizeof session->node, "%s", stated);
    else if (gethostname(session->node, sizeof session->node - 1) != 0)
        return esdm__error_set_errno(err, errno, "the name of this node");
    if (strpbrk(session->node, ",@") != NULL ||
        (stated != NULL && strlen(stated) >= sizeof session->node))
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' cannot be the name of a node: it has a ',' or '@', or is too "
                               "long; ESDM_NODE states another one",
                               session->node);
    return ESDM_OK;
}

const char *
esdm__session_writer(esdm_session *session)
{
    (void) pthread_mutex_lock(&session->writer_lock);
    if (session->writer[0] == '\0')
        esdm__writer_name(session->writer, sizeof session->writer);
    (void) pthread_mutex_unlock(&session->writer_lock);
    return session->writer;
}

static atomic_bool keeps_records; /* esdm_records_keep() */

void
esdm__session_keep_records(void)
{
    atomic_store(&keeps_records, true);
}

/* What the environment says counts more than what the site's file does. */
static esdm_status
open_monitor(esdm_session *session, esdm_error *err)
{
    esdm__monitor_options *options = &session->site->monitor;
    const char *stated = secure_getenv("ESDM_MONITOR");
    esdm_status status = ESDM_OK;
    if (stated != NULL && stated[0] != '\0')
        status = esdm__monitor_parse(stated, "ESDM_MONITOR", options, err);
    if (atomic_load(&keeps_records) && (stated == NULL || strcmp(stated, "off") != 0))
        options->modules |= ESDM__MONITOR_KEEP;
    return status == ESDM_OK ? esdm__monitor_new(options, &session->monitor, err) : status;
}

esdm_status
esdm__session_new(const esdm_session_options *options, const esdm__store_told *told,
                  esdm_session **ret_session, esdm_error *err)
{
    static const esdm_session_options none = {0};
    if (options == NULL)
        options = &none;
    esdm_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return esdm__error_nomem(err, sizeof *session, "the session");
    (void) pthread_mutex_init(&session->writer_lock, NULL);
    (void) pthread_mutex_init(&session->target_lock, NULL);
    (void) pthread_cond_init(&session->target_tried, NULL);
    session->read_only = options->read_only;
    esdm_status status = name_node(session, err);
    if (status == ESDM_OK)
        status = esdm__site_load(options->config_json, options->config_path, &session->site, err);
    if (status == ESDM_OK)
        status = open_monitor(session, err);
    if (status == ESDM_OK)
        status = open_plugins(session, told, err);
    if (status == ESDM_OK)
        status = init_engine(session, told, err);
    if (status != ESDM_OK) {
        esdm__session_free(session);
        return status;
    }
    *ret_session = session;
    return ESDM_OK;
}

void
esdm__session_free(esdm_session *session)
{
    if (session == NULL)
        return;
    esdm__journaling_end(session);
    while (session->kept != NULL) {
        esdm__kept *kept = session->kept;
        session->kept = kept->next;
        kept->end(session, kept);
    }
    esdm__behind_free(session->behind);
    esdm__ahead_free(session->ahead);
    esdm__session_settle_ahead(session);
    esdm__earlier_free(session->earlier);
    esdm__readers_free(session->readers);
    esdm__pool_free(session->pool);
    esdm__room_free(session->decoding);
    esdm__room_free(session->decoding_remote);
    esdm__cache_free(session->cache);
    esdm__models_free(session->models, session);
    close_parts(session);
    esdm__monitor_free(session->monitor);
    free(session->made_site);
    esdm__site_free(session->site);
    (void) pthread_cond_destroy(&session->target_tried);
    (void) pthread_mutex_destroy(&session->target_lock);
    (void) pthread_mutex_destroy(&session->writer_lock);
    free(session);
}

esdm__target *
esdm__session_target(esdm_session *session, const char *name)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        if (strcmp(session->targets[i].name, name) == 0)
            return &session->targets[i];
    }
    return NULL;
}

bool
esdm__target_waits(const esdm__target *target)
{
    return target->plugin->concurrency > 0 || target->slow;
}

bool
esdm__session_is_far(const esdm_session *session)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        if (session->targets[i].plugin->concurrency > 0)
            return true;
    }
    return false;
}
