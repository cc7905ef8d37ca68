# SPDX-License-Identifier: LGPL-3.0-or-later
# esdm_add_plugin(KIND NAME SOURCE…): a plug-in as a shared object esdm-KIND-NAME.so, KIND being data,
# meta or codec. ESDM finds it in a folder that $ESDM_PLUGIN_PATH names, or in the folder "esdm" beside
# libesdm. It may include esdm/sys/*.h, and base/*.h for errors, buffers, JSON and checksums.
function(esdm_add_plugin kind name)
  if(NOT kind MATCHES "^(data|meta|codec|source)$")
    message(FATAL_ERROR "esdm_add_plugin: the kind is data, meta or codec, not '${kind}'")
  endif()
  add_library(esdm-${kind}-${name} MODULE ${ARGN})
  set_target_properties(esdm-${kind}-${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden)
  target_compile_definitions(esdm-${kind}-${name} PRIVATE ESDM_PLUGIN_LOADABLE _GNU_SOURCE)
  target_link_libraries(esdm-${kind}-${name} PRIVATE esdm::esdm-plugin)
  # The plug-in exports its entry, not what it has of ESDM.
  target_link_options(esdm-${kind}-${name} PRIVATE -Wl,--exclude-libs,libesdm-plugin.a)
endfunction()
