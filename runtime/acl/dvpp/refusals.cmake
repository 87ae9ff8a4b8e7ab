# cmake -D HEADER=<header of C> -D NAME=<as it is included> -D BY_HAND=<functions> -D SOURCE=<file to write>
#       -P refusals.cmake
#
# Writes a source in which each function that the header declares with ACL_FUNC_VISIBILITY, but those by hand,
# refuses (npumesh::Refuse), so that one text has the declarations.
cmake_minimum_required(VERSION 3.22)
file(READ "${HEADER}" text)
string(REGEX REPLACE "[ \n]+" " " text "${text}")
string(REGEX MATCHALL "ACL_FUNC_VISIBILITY [^;]*\\)" declarations "${text}")

set(source "// Written by refusals.cmake from ${NAME}.
#include \"${NAME}\"
#include \"runtime/acl/dvpp/refusal.h\"

")
foreach(declaration IN LISTS declarations)
  if(NOT declaration MATCHES "^ACL_FUNC_VISIBILITY (.*[ *])([a-zA-Z0-9]+)\\((.*)\\)$")
    message(FATAL_ERROR "${HEADER}: no declaration: ${declaration}")
  endif()
  if(NOT CMAKE_MATCH_2 IN_LIST BY_HAND)
    string(APPEND source
           "${CMAKE_MATCH_1}${CMAKE_MATCH_2}(${CMAKE_MATCH_3}) { "
           "return npumesh::Refusal<${CMAKE_MATCH_1}>(__func__); }\n")
  endif()
endforeach()
file(WRITE "${SOURCE}" "${source}")
