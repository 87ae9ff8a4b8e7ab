# npumesh_embed(<target> <file> <function> <header>)
# Compiles a text file into a library: `function` of npumesh, which `header` declares, returns it as a
# std::string_view. Lines that include a file of the project, by its path from the root, become that file.
# Run as a script (cmake -P) with FILE, ROOT, FUNCTION, HEADER and OUT it writes the .cc.
#
# npumesh_embed_page(<target> <name> <function> <header>)
# The same for a page's <name>.html, .css and .js: `function` returns them as PageTexts (launch/page/page.h).
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} text)
  while("${text}" MATCHES "#include \"([^\"\n]+)\"\n")
    set(line "${CMAKE_MATCH_0}")
    file(READ ${ROOT}/${CMAKE_MATCH_1} included)
    string(REPLACE "${line}" "${included}" text "${text}")
  endwhile()
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
  get_filename_component(source ${file} ABSOLUTE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  file(STRINGS ${source} included REGEX "^#include \"")
  list(TRANSFORM included REPLACE "^#include \"(.*)\"$" "${PROJECT_SOURCE_DIR}/\\1")
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D FILE=${source} -D ROOT=${PROJECT_SOURCE_DIR} -D FUNCTION=${function}
            -D HEADER=${header} -D OUT=${out} -P ${NPUMESH_EMBED_SCRIPT}
    DEPENDS ${source} ${included} ${NPUMESH_EMBED_SCRIPT}
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

function(npumesh_embed_page target name function header)
  set(declared "")
  set(texts)
  foreach(part html css js)
    npumesh_embed(${target} ${name}.${part} ${function}_${part} ${header})
    string(APPEND declared "std::string_view ${function}_${part}();\n")
    list(APPEND texts "${function}_${part}()")
  endforeach()
  list(JOIN texts ", " texts)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  file(CONFIGURE OUTPUT ${out} CONTENT "#include \"${header}\"

namespace npumesh {

${declared}
PageTexts ${function}() {
  return {${texts}};
}

}  // namespace npumesh
")
  target_sources(${target} PRIVATE ${out})
endfunction()
