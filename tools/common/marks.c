/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a container has by name, its tags or its branches: listed, or changed one after the other.
 */

#include "common/common.h"

tool_exit
tool_marks_run(const tool_marks *marks, esdm_session *session, int argc, char **argv, bool all,
               json_t *list)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    tool_exit result = TOOL_OK;
    if (all)
        return marks->list_all(session, argc > 1 ? tool_container(argv[1]) : NULL, list);
    esdm_status status = tool_container_name(session, argv[1], name, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (argc == 2)
        return marks->list(session, name, list);
    for (int i = 2; i < argc; i++) {
        tool_exit one = marks->change(session, name, argv[i], list);
        result = result == TOOL_OK ? one : result;
    }
    return result;
}
