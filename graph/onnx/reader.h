// Reads the bytes of ONNX files into plain values.
//
// Takes hostile bytes: any input yields a model or one clear error that names file, place and what
// was expected; never a crash, and memory stays in proportion to the file.
#ifndef NPUMESH_GRAPH_ONNX_READER_H_
#define NPUMESH_GRAPH_ONNX_READER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx_model.h"
#include "runtime/base/status.h"

namespace npumesh {

// Whether the fields of the outermost message are those of an ONNX model. Says nothing about the
// rest of the bytes.
bool LooksLikeOnnx(std::string_view bytes);

// `path` is used in messages, and to find data in files beside it: a relative path below its
// folder, links included. Errors: kCorrupt (bytes that are no model; a tensor whose bytes do not
// fit its shape; a graph that reads what it does not make), kUnsupported (an element type, a sparse
// tensor, a version of the format that is not known), kNotFound (no such file of data),
// kInvalidArgument (a path that leaves the folder). `done`: called with pieces of the bytes, in
// their order, that are no longer needed.
Result<OnnxModel> ReadOnnx(std::string_view bytes, const std::string& path,
                           const std::function<void(std::string_view piece)>& done = nullptr);

// The bytes of one TensorProto, as test data are stored. Errors as above.
Result<Tensor> ReadOnnxTensor(std::string_view bytes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_READER_H_
