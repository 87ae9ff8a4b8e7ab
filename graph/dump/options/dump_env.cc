#include "graph/dump/options/dump_env.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

using DumpEntry = EnvEntry<DumpEnv>;

// As in GE, values above 3 mean no dump.
Status ParseDumpGraph(const EnvVariable& variable, std::string_view text, DumpEnv& env) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t level,
                           ParseInt(text, 0, std::numeric_limits<int>::max(), variable.name));
  env.dump_ge_graph = level <= 3 ? static_cast<int>(level) : 0;
  return Status();
}

// The exception scenes of a dump configuration (docs/dump.md).
Status ParseDumpScene(const EnvVariable& variable, std::string_view text, DumpEnv& env) {
  for (const std::string_view scene :
       {"", "lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump"}) {
    if (text != scene) continue;
    env.ascend_dump_scene = text;
    return Status();
  }
  return Error(Code::kInvalidArgument, "{}: expected {}, got \"{}\"", variable.name,
               variable.accepted, text);
}

constexpr std::array kDumpEntries = {
    DumpEntry{
        {"DUMP_GE_GRAPH", "1, 2, 3; 0 or more than 3: none", "0",
         "Writes the graph after each compile stage: 1 everything, 2 without weights, 3 nodes and "
         "edges only."},
        ParseDumpGraph,
        EnvFallback::kValue},
    DumpEntry{
        {"DUMP_GRAPH_LEVEL",
         "1 all stages but those of parts, 2 the main stages, 3 Build, 4 PreRunBegin, or parts of "
         "stage names joined by |",
         "2", "Which stages DUMP_GE_GRAPH writes."},
        ParseTextField<&DumpEnv::dump_graph_level>,
        EnvFallback::kValue},
    DumpEntry{{"DUMP_GRAPH_FORMAT", "ge_proto, onnx, readable, joined by |", "ge_proto|onnx",
               "In which forms DUMP_GE_GRAPH writes."},
              ParseTextField<&DumpEnv::dump_graph_format>,
              EnvFallback::kValue},
    DumpEntry{
        {"NPU_COLLECT_PATH", "a folder, made when it is missing",
         "DUMP_GRAPH_PATH for graphs, ASCEND_DUMP_PATH for exception dumps",
         "DUMP_GE_GRAPH writes into extra-info/graph/<pid>_<device> of it, an operator that "
         "fails into extra-info/data-dump/<device>. When it is set, there is an exception dump "
         "whatever else is configured."},
        ParseTextField<&DumpEnv::npu_collect_path>},
    DumpEntry{{"DUMP_GRAPH_PATH", "a folder, made when it is missing", "ASCEND_WORK_PATH",
               "DUMP_GE_GRAPH writes into pid_<pid>_deviceid_<device> of it."},
              ParseTextField<&DumpEnv::dump_graph_path>},
    DumpEntry{{"ASCEND_DUMP_PATH", "a folder, made when it is missing", "ASCEND_WORK_PATH",
               "Where exception dumps are written."},
              ParseTextField<&DumpEnv::ascend_dump_path>},
    DumpEntry{{"ASCEND_WORK_PATH", "a folder, made when it is missing",
               "the working folder for graphs and kernel_meta, dump_path for exception dumps",
               "Where DUMP_GE_GRAPH, op_debug_level and exception dumps write."},
              ParseTextField<&DumpEnv::ascend_work_path>},
    DumpEntry{{"ASCEND_DUMP_SCENE",
               "lite_exception, aic_err_brief_dump, aic_err_norm_dump or aic_err_detail_dump",
               "no exception dump",
               "Dumps an operator that fails, without a dump configuration; dump_scene and "
               "enable_exception_dump win over it."},
              ParseDumpScene},
};

constexpr auto kDumpManual = ManualOf(kDumpEntries);

}  // namespace

std::span<const EnvVariable> DumpEnvTable() {
  return kDumpManual;
}

DumpEnv::DumpEnv() {
  SetFallbacks(kDumpEntries, *this);
}

Result<DumpEnv> DumpEnv::From(const EnvGetter& get) {
  DumpEnv env;
  NPUMESH_RETURN_IF_ERROR(ReadVariables(kDumpEntries, get, env));
  return env;
}

Result<DumpEnv> DumpEnv::FromProcess() {
  return From([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace npumesh
