/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-seal: containers that do not change any more, with a signed digest; retractions. */
#include <stdio.h>
#include <string.h>

#include "esdm-seal/seal.h"

static const tool_help help = {
    .name = "esdm-seal",
    .arguments = "NAME…",
    .description =
        "Seals containers, for good: nobody writes to one, replaces or renames it any more,\n"
        "through ESDM, not even a program that has it open. The seal holds a digest of what\n"
        "it contains (esdm-stat --digest) that is signed with an Ed25519 key. All values are\n"
        "read for that. Data may still move (esdm-drain). esdm-rm --sealed removes it.\n"
        "\n"
        "--verify reads all values again and tells whether they and the signature are still\n"
        "right, of all sealed containers when none is named; esdm-fsck does it as well. With\n"
        "--public only seals of these keys are good.\n"
        "\n"
        "--retract tells readers of all its snapshots not to use a container any more, sealed\n"
        "or not: NetCDF programs say so on standard error, and see the global attribute\n"
        "esdm_retracted. --reinstate takes that back.\n"
        "\n"
        "The key is a PEM file. Without --key it is seal-key.pem in ~/.config/esdm, which is\n"
        "made at first use, and seal-key.pem.pub, which others need for --public.",
    .statuses = "  0  everything was done, all seals are right\n"
                "  1  something failed\n"
                "  2  the command line is wrong\n"
                "  3  a container does not exist\n"
                "  5  a seal is broken: contents or signature are not what they were\n",
    .examples = "  esdm-seal --note 'CMIP7, version 20261120' published/tas.nc\n"
                "  esdm-seal --verify\n"
                "  esdm-seal --verify --public centre.pem published/tas.nc\n"
                "  esdm-seal --retract 'wrong land mask, use v2' published/tas.nc\n",
    .see_also = "esdm-stat --digest, esdm-tag, esdm-fsck",
};

static gboolean verifies, reinstates;
static char *reason, *key_file, *note;
static char **public_files;

static const GOptionEntry entries[] = {
    {"verify", 'c', 0, G_OPTION_ARG_NONE, &verifies, "Tell whether seals are right", NULL},
    {"retract", 0, 0, G_OPTION_ARG_STRING, &reason, "Tell readers not to use it", "REASON"},
    {"reinstate", 0, 0, G_OPTION_ARG_NONE, &reinstates, "Take a retraction back", NULL},
    {"note", 0, 0, G_OPTION_ARG_STRING, &note, "A line that is signed, too", "TEXT"},
    {"key", 0, 0, G_OPTION_ARG_FILENAME, &key_file, "Private key (PEM)", "FILE"},
    {"public", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &public_files,
     "Public key (PEM) that may have signed; several are possible", "FILE"},
    {0},
};

static json_t *list;

/* ---- sealing ------------------------------------------------------------------------------- */

/* The key that is used; made when it is the user's own and not there. */
static char *
find_key(void)
{
    if (key_file != NULL)
        return NULL;
    g_autofree char *folder = g_build_filename(g_get_user_config_dir(), "esdm", NULL);
    key_file = g_build_filename(folder, "seal-key.pem", NULL);
    if (g_file_test(key_file, G_FILE_TEST_EXISTS))
        return NULL;
    (void) g_mkdir_with_parents(folder, 0700);
    char *why = seal_make_key(key_file);
    if (why == NULL)
        (void) fprintf(stderr,
                       "esdm-seal: made the key '%s'; keep a copy, and give '%s.pub' to "
                       "those who verify\n",
                       key_file, key_file);
    return why;
}

static char *
now_text(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    return g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
}

static void
tell(const char *name, const char *state, const seal_text *seal, const char *why)
{
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "state", json_string(state));
        if (seal != NULL && seal->digest != NULL) {
            tool_json_set(object, "digest", tool_json_text(seal->digest));
            tool_json_set(object, "snapshot", tool_json_u64(seal->snapshot));
            tool_json_set(object, "time", tool_json_text(seal->time));
            tool_json_set(object, "by", tool_json_text(seal->by));
            tool_json_set(object, "note", tool_json_text(seal->note));
            tool_json_set(object, "key", tool_json_text(seal->key));
        }
        if (why != NULL)
            tool_json_set(object, "why", tool_json_text(why));
        tool_json_append(list, object);
        return;
    }
    g_autofree char *line =
        seal != NULL && seal->digest != NULL
            ? g_strdup_printf("%s: %s%s%s, snapshot %" G_GUINT64_FORMAT
                              ", by %s at %s, key %s, %s%s%s",
                              name, state, why != NULL ? ": " : "", why != NULL ? why : "",
                              seal->snapshot, seal->by, seal->time, seal->key, seal->digest,
                              seal->note[0] != '\0' ? ", " : "", seal->note)
            : g_strdup_printf("%s: %s%s%s", name, state, why != NULL ? ": " : "",
                              why != NULL ? why : "");
    g_autofree char *printable = tool_printable(line);
    (void) printf("%s\n", printable);
}

static tool_exit
seal_one(esdm_session *session, const char *name)
{
    char digest[ESDM_DIGEST_BYTES];
    esdm_error err = {0};
    esdm_container *container = NULL;
    seal_text seal = {.snapshot = 0};
    tool_exit result = TOOL_OK;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status == ESDM_OK)
        status = esdm_container_digest(container, ESDM_DIGEST_READ, digest, &err);
    if (status != ESDM_OK) {
        esdm_container_discard(container);
        return tool_fail(status, &err);
    }
    seal = (seal_text){.digest = g_strdup(digest),
                       .name = g_strdup(name),
                       .uuid = g_strdup(esdm_container_uuid(container)),
                       .time = now_text(),
                       .by = g_strdup_printf("%s@%s", g_get_user_name(), g_get_host_name()),
                       .note = g_strdup(note != NULL ? note : ""),
                       .snapshot = esdm_container_snapshot(container)};
    g_autofree char *why = seal_sign(key_file, &seal);
    g_autofree char *text = why == NULL ? seal_print(&seal) : NULL;
    if (why != NULL) {
        tool_error("%s", why);
        result = TOOL_FAILED;
    } else if ((status = esdm_container_seal(session, name, seal.snapshot, text, &err)) !=
               ESDM_OK) {
        result = tool_fail(status, &err);
    } else {
        tell(name, "sealed", &seal, NULL);
    }
    seal_text_clear(&seal);
    esdm_container_discard(container);
    return result;
}

/* ---- verifying ----------------------------------------------------------------------------- */

static tool_exit
verify_one(esdm_session *session, const char *name, char **keys, gboolean named)
{
    esdm_error err = {0};
    esdm_notices notices = {.sealed = false};
    seal_text seal = {.snapshot = 0};
    esdm_status status = esdm_container_notices(session, name, &notices, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = TOOL_OK;
    if (notices.sealed) {
        g_autofree char *why = seal_verify(session, name, &notices, keys, &seal);
        tell(name, why != NULL ? "the seal is BROKEN" : "the seal is right", &seal, why);
        result = why != NULL ? TOOL_DAMAGED : TOOL_OK;
    } else if (named) {
        tell(name, "not sealed", NULL, NULL);
        result = TOOL_FAILED;
    }
    if (notices.retracted)
        tell(name, "retracted", NULL, notices.retraction);
    seal_text_clear(&seal);
    esdm_notices_clear(&notices);
    return result;
}

static bool
note_name(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

static tool_exit
load_keys(char ***ret_keys)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    *ret_keys = NULL;
    for (char **file = public_files; file != NULL && *file != NULL; file++) {
        char *key = NULL;
        g_autofree char *why = seal_public_key(*file, &key);
        if (why != NULL) {
            tool_error("%s", why);
            return TOOL_FAILED;
        }
        g_ptr_array_add(keys, key);
    }
    if (keys->len > 0) {
        g_ptr_array_add(keys, NULL);
        *ret_keys = (char **) g_ptr_array_steal(keys, NULL);
    }
    return TOOL_OK;
}

static tool_exit
verify(esdm_session *session, char **names, gboolean named)
{
    g_auto(GStrv) keys = NULL;
    tool_exit result = load_keys(&keys);
    for (char **name = names; *name != NULL && (result == TOOL_OK || result == TOOL_DAMAGED);
         name++) {
        tool_exit one = verify_one(session, *name, keys, named);
        result = one != TOOL_OK ? one : result;
    }
    return result;
}

/* ---- all ----------------------------------------------------------------------------------- */

static tool_exit
retract_one(esdm_session *session, const char *name)
{
    esdm_error err = {0};
    esdm_status status = esdm_container_retract(session, name, reinstates ? NULL : reason, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tell(name, reinstates ? "reinstated" : "retracted", NULL, reason);
    return TOOL_OK;
}

static tool_exit
run(esdm_session *session, char **names)
{
    tool_exit result = TOOL_OK;
    if (reason == NULL && !reinstates) {
        g_autofree char *why = find_key();
        if (why != NULL) {
            tool_error("%s", why);
            return TOOL_FAILED;
        }
    }
    for (char **name = names; *name != NULL; name++) {
        tool_exit one =
            reason != NULL || reinstates ? retract_one(session, *name) : seal_one(session, *name);
        result = result == TOOL_OK ? one : result;
    }
    return result;
}

/* The names that were said, normalised; all containers when there are none. Owned. */
static char **
names_of(esdm_session *session, int argc, char **argv, tool_exit *ret_result)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    for (int i = 1; i < argc && status == ESDM_OK; i++) {
        char name[ESDM_CONTAINER_NAME_MAX + 1];
        status = tool_container_name(session, argv[i], name, &err);
        if (status == ESDM_OK)
            g_ptr_array_add(names, g_strdup(name));
    }
    if (argc < 2)
        status = esdm_container_list(session, NULL, note_name, names, &err);
    *ret_result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    g_ptr_array_add(names, NULL);
    return (char **) g_ptr_array_steal(names, NULL);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2 && !verifies)
        return tool_usage("which containers?");
    if ((verifies ? 1 : 0) + (reason != NULL ? 1 : 0) + (reinstates ? 1 : 0) > 1)
        return tool_usage("one of --verify, --retract and --reinstate at a time");
    if (reason != NULL && reason[0] == '\0')
        return tool_usage("--retract needs a reason");
    if (note != NULL && strchr(note, '\n') != NULL)
        return tool_usage("--note is one line");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(verifies, &session);
    if (result != TOOL_OK)
        return result;
    list = json_array();
    g_auto(GStrv) names = names_of(session, argc, argv, &result);
    if (result == TOOL_OK)
        result = verifies ? verify(session, names, argc > 1) : run(session, names);
    tool_json_print_list("containers", list);
    esdm_session_close(session);
    return tool_finish(result);
}
