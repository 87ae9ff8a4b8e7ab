# npumesh_embed(<target> <file> <function> <header>)
# Compiles a text file into a library: `function` of npumesh, which `header` declares, returns it as a
# std::string_view. Run as a script (cmake -P) with FILE, FUNCTION, HEADER and OUT it writes the .cc.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} text)
  string(FIND "${text}" ")npumesh\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${FILE}: a text that is embedded cannot have )npumesh\"")
  endif()
  set(code "// Made from ${FUNCTION}'s file by cmake/NpumeshEmbed.cmake.\n#include \"${HEADER}\"\n\n")
  string(APPEND code "namespace npumesh {\n\nstd::string_view ${FUNCTION}() {\n")
  string(APPEND code "  return R\"npumesh(")
  string(APPEND code "${text}")
  string(APPEND code ")npumesh\";\n}\n\n}  // namespace npumesh\n")
  file(WRITE ${OUT} "${code}")
  return()
endif()

set(NPUMESH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(npumesh_embed target file function header)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D FILE=${source} -D FUNCTION=${function} -D HEADER=${header}
            -D OUT=${out} -P ${NPUMESH_EMBED_SCRIPT}
    DEPENDS ${source} ${NPUMESH_EMBED_SCRIPT}
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
