# npumesh_family(<name> <what> DEPENDS ... [LIBRARIES ...])
# The library npumesh_ops_<name> of the operators in this folder: those that its functions `void Register...Ops(OpRegistry&
# registry)` add and, once all families have added theirs, those that `void Derive...Ops(OpRegistry& registry)` make of
# others. A file with such a function is found; no list names it.
# Run as a script (cmake -P) with FAMILY, FOLDER and OUT it writes the .cc that calls them.
#
# npumesh_families(<target>)
# Adds families.inc to the target: a line NPUMESH_FAMILY(Name, "name", "what") for each family, in the order of the folders.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB sources ${FOLDER}/*.cc)
  foreach(kind Register Derive)
    foreach(source ${sources})
      file(STRINGS ${source} lines REGEX "^void ${kind}[A-Za-z0-9]+Ops\\(OpRegistry& registry\\) {$")
      foreach(line ${lines})
        string(REGEX REPLACE "^void (.*)\\(.*$" "\\1" name "${line}")
        string(APPEND declared "void ${name}(OpRegistry& registry);\n")
        string(APPEND ${kind}_calls "  registry.Usually(PrecisionClass::kGrey);\n  ${name}(registry);\n")
      endforeach()
    endforeach()
  endforeach()
  set(code "// Made from the functions of graph/ops by cmake/NpumeshFamily.cmake.\n#include \"graph/ops/core/op_registry.h\"\n\n")
  string(APPEND code "namespace npumesh {\n\n${declared}\n")
  string(APPEND code "void Register${FAMILY}Family([[maybe_unused]] OpRegistry& registry) {\n${Register_calls}}\n\n")
  string(APPEND code "void Derive${FAMILY}Family([[maybe_unused]] OpRegistry& registry) {\n${Derive_calls}}\n\n")
  string(APPEND code "}  // namespace npumesh\n")
  set(before "")
  if(EXISTS ${OUT})
    file(READ ${OUT} before)
  endif()
  if(NOT before STREQUAL code) # else nothing is compiled again
    file(WRITE ${OUT} "${code}")
  endif()
  return()
endif()

set(NPUMESH_FAMILY_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(npumesh_family name what)
  npumesh_library(npumesh_ops_${name} REUSES npumesh_ops_pch ${ARGN})
  string(SUBSTRING ${name} 0 1 initial)
  string(SUBSTRING ${name} 1 -1 rest)
  string(TOUPPER ${initial} initial)
  set(family ${initial}${rest})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}_family.cc)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D FAMILY=${family} -D FOLDER=${CMAKE_CURRENT_SOURCE_DIR} -D OUT=${out}
            -P ${NPUMESH_FAMILY_SCRIPT}
    DEPENDS ${sources} ${NPUMESH_FAMILY_SCRIPT}
    COMMENT "Listing the operators of ${name}"
    VERBATIM)
  target_sources(npumesh_ops_${name} PRIVATE ${out})
  set_property(GLOBAL APPEND_STRING PROPERTY NPUMESH_FAMILIES "NPUMESH_FAMILY(${family}, \"${name}\", \"${what}\")\n")
endfunction()

function(npumesh_families target)
  get_property(families GLOBAL PROPERTY NPUMESH_FAMILIES)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/families.inc CONTENT "${families}" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
