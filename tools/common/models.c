/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which model predicts what requests take, and how far off it is. */
#include "common/common.h"

#include <math.h>
#include <stdio.h>

static void
print_model(const esdm_model_info *m)
{
    g_autofree char *name = tool_printable(m->target);
    const char *what = m->reading ? "reads from" : "writes to";
    if (m->learned_requests > 0)
        (void) printf("%s %s: as learned from %" G_GUINT64_FORMAT
                      " requests of programs (off by %.0f %% for those that were held out; the "
                      "measured model by %.0f %%)\n",
                      what, name, m->learned_requests, 100 * m->learned_error,
                      100 * m->learned_from_error);
    else
        (void) printf("%s %s: as measured (off by %.0f %% for measurements that were held out)\n",
                      what, name, 100 * m->error);
}

static bool
tell_model(const esdm_model_info *m, void *user)
{
    bool learned = m->learned_requests > 0;
    if (!tool.json) {
        print_model(m);
        return true;
    }
    json_t *entry = json_object();
    tool_json_set(entry, "target", tool_json_text(m->target));
    tool_json_set(entry, "direction", json_string(m->reading ? "read" : "write"));
    tool_json_set(entry, "model", json_string(learned ? "learned" : "measured"));
    tool_json_set(entry, "error", json_real(learned ? m->learned_error : m->error));
    if (learned) {
        tool_json_set(entry, "measured_error", json_real(m->learned_from_error));
        tool_json_set(entry, "requests", tool_json_u64(m->learned_requests));
    }
    tool_json_append(user, entry);
    return true;
}

void
tool_models_tell(esdm_session *session, json_t *object)
{
    json_t *list = json_array();
    esdm_error err = {0};
    if (esdm_session_models(session, tell_model, list, &err) != ESDM_OK)
        tool_error("%s", err.message);
    if (tool.json)
        tool_json_set(object, "models", json_incref(list));
    json_decref(list);
}
