// Offline models out of graphs that a parser has read (parser/onnx_parser.h). The program
// `npumesh atc` compiles them; what it says of a failure is in aclGetRecentErrMsg and in the log.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_GE_GE_IR_BUILD_H_
#define NPUMESH_GE_GE_IR_BUILD_H_

#include <cstdint>
#include <map>
#include <memory>

#include "ge/ge_api_types.h"
#include "graph/ascend_string.h"
#include "graph/error_codes.h"
#include "graph/graph.h"

namespace ge {

// The bytes of an offline model (.om), as aclmdlLoadFromMem takes them.
struct ModelBufferData {
  std::shared_ptr<uint8_t> data = nullptr;
  uint64_t length;
};

// Options of all builds until aclgrphBuildFinalize, names as in ge_api_types.h. Options that only
// compilers of kernels need are taken without effect.
graphStatus aclgrphBuildInitialize(std::map<AscendString, AscendString>& global_options);
void aclgrphBuildFinalize();

// Compiles a graph. Options of the build win over those of the initialisation. GRAPH_PARAM_INVALID:
// no parser has filled the graph; GRAPH_FAILED: the compiler has said no, or cannot be started.
graphStatus aclgrphBuildModel(const Graph& graph,
                              const std::map<AscendString, AscendString>& build_options,
                              ModelBufferData& model);

// Writes `{output_file}.om`, whole or not at all. GRAPH_PARAM_INVALID: null or empty; GRAPH_FAILED:
// it cannot be written.
graphStatus aclgrphSaveModel(const char* output_file, const ModelBufferData& model);

// The version of the interface: 1.0.0.
graphStatus aclgrphGetIRVersion(int32_t* major_version, int32_t* minor_version,
                                int32_t* patch_version);

}  // namespace ge

#endif  // NPUMESH_GE_GE_IR_BUILD_H_
