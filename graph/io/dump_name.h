// Names of GE's graph dumps, of all generations.
#ifndef NPUMESH_GRAPH_IO_DUMP_NAME_H_
#define NPUMESH_GRAPH_IO_DUMP_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npumesh {

// ge_<format>_<counter>[_aclop][_graph_<id>]_<stage>.<txt|pbtxt>
struct DumpName {
  std::string format;  // "proto", "onnx" or "readable"
  int64_t counter = 0;
  std::optional<int64_t> graph_id;  // older releases leave it out
  std::string stage;

  bool operator==(const DumpName&) const = default;
};

// `name` is a file name without folder; nullopt when it is not the name of a dump.
std::optional<DumpName> ParseDumpName(std::string_view name);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_DUMP_NAME_H_
