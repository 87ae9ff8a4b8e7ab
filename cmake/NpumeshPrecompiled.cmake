# Precompiled headers. Most of the time of a file goes into parsing the standard library, fmt
# and GoogleTest, and every file reads the same ones.
#
#   npumesh_pch       for the libraries: what nearly all of them include
#   npumesh_json_pch  for libraries that read or write JSON, and nlohmann's header
#   npumesh_ops_pch   for the rooms of graph/ops: also what an operator is (graph/ops/CMakeLists.txt)
#   npumesh_test_pch  for the tests: the same and GoogleMock
#   npumesh_graph_test_pch  for tests of what computes: also the headers of graph and operators
#
# Preset dev builds without them, so that a file which forgets an #include is found there.
option(NPUMESH_PRECOMPILED "Use precompiled headers" ON)
if(NOT NPUMESH_PRECOMPILED)
  return()
endif()

set(npumesh_pch_headers
  <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h>)
# Written only when it differs: a new time would have everything built again.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/main.cc CONTENT "int main() {}\n")

# A file that is compiled with other flags than its header was reads the headers as text instead.
set(CMAKE_PCH_WARN_INVALID OFF)

# npumesh_precompile(<target> <LIBRARY|PROGRAM> [headers...])
# The header of a library has to be made by a library, that of a program by a program: one is
# compiled with -fPIC, the other with -fPIE.
function(npumesh_precompile target kind)
  if(kind STREQUAL LIBRARY)
    add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/precompiled/main.cc)
  else()
    add_executable(${target} ${PROJECT_BINARY_DIR}/precompiled/main.cc)
  endif()
  target_link_libraries(${target} PRIVATE npumesh_flags fmt::fmt spdlog::spdlog Threads::Threads)
  target_precompile_headers(${target} PRIVATE ${npumesh_pch_headers} ${ARGN})
endfunction()
npumesh_precompile(npumesh_pch LIBRARY)
npumesh_precompile(npumesh_json_pch LIBRARY ${PROJECT_SOURCE_DIR}/runtime/base/text/json.h)
target_link_libraries(npumesh_json_pch PRIVATE nlohmann_json::nlohmann_json)
