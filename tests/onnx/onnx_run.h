// Imports and runs an ONNX model on one rank, for tests.
#ifndef NPUMESH_TESTS_ONNX_ONNX_RUN_H_
#define NPUMESH_TESTS_ONNX_ONNX_RUN_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh::testing {

Result<Model> ImportBytes(const std::string& bytes);
Result<std::vector<Tensor>> RunOnce(const Model& model, const std::vector<Tensor>& inputs);
// Both.
Result<std::vector<Tensor>> RunOnnx(const std::string& bytes, const std::vector<Tensor>& inputs);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_ONNX_ONNX_RUN_H_
