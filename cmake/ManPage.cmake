# SPDX-License-Identifier: LGPL-3.0-or-later
# cmake -DPROGRAM=… -DNAME=… -DVERSION=… -DOUTPUT=… -P ManPage.cmake: writes the manual page of a tool, which
# is what the tool says with --help. So there is one text, and it cannot become untrue.
execute_process(COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 LC_ALL=C.UTF-8 ${PROGRAM} --help
  OUTPUT_VARIABLE text RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${NAME} --help: ${failed}")
endif()
string(REPLACE "\\" "\\e" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" text "${text}")
set(title ".TH \"${NAME}\" 1 \"\" \"ESDM ${VERSION}\"\n")
if(text MATCHES "^NAME\n")
  string(REGEX REPLACE "\n([A-Z][A-Z ]+)\n" "\n.fi\n.SH \\1\n.nf\n" text "\n${text}")
  string(REGEX REPLACE "^\n.fi\n.SH NAME\n.nf\n *" ".SH NAME\n" text "${text}")
  file(WRITE ${OUTPUT} "${title}${text}.fi\n")
  return()
endif()
# "Usage:", lines, a blank line, and what it does, whose first sentence is what `man -k` lists.
string(FIND "${text}" "\n\n" end)
string(FIND "${text}" "\n" begin)
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${text}" ${begin} ${length} usage)
string(SUBSTRING "${text}" ${end} -1 body)
string(REGEX MATCH "[^.:]+" first "${body}")
string(REPLACE "\n" " " first "${first}")
string(STRIP "${first}" first)
string(REGEX REPLACE "\n([A-Z][A-Za-z ]*):\n" "\n.fi\n.SH \\1\n.nf\n" body "${body}")
string(REGEX REPLACE "\n(See also): " "\n.fi\n.SH \\1\n.nf\n" body "${body}")
string(REPLACE "-" "\\-" name "${NAME}")
file(WRITE ${OUTPUT} "${title}.SH Name\n${name} \\- ${first}\n.SH Synopsis\n.nf${usage}\n.fi\n\
.SH Description\n.nf${body}.fi\n")
