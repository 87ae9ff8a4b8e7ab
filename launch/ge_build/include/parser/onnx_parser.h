// ONNX models as graphs of GE.
#ifndef NPUMESH_PARSER_ONNX_PARSER_H_
#define NPUMESH_PARSER_ONNX_PARSER_H_

#include <cstddef>
#include <map>

#include "graph/ascend_string.h"
#include "graph/error_codes.h"
#include "graph/graph.h"

namespace ge {

// Takes a model, which aclgrphBuildModel reads: that names what is wrong with it. `parser_params`
// are options of the build. GRAPH_PARAM_INVALID: null, or nothing; GRAPH_FAILED: the file cannot be
// read. Data in files beside a model are found for a model in a file only.
graphStatus aclgrphParseONNX(const char* model_file,
                             const std::map<AscendString, AscendString>& parser_params,
                             Graph& graph);
graphStatus aclgrphParseONNXFromMem(const char* buffer, size_t size,
                                    const std::map<AscendString, AscendString>& parser_params,
                                    Graph& graph);

}  // namespace ge

#endif  // NPUMESH_PARSER_ONNX_PARSER_H_
