// One TensorProto of a file. Internal to graph/onnx; with reader.cc, writer.cc and counterparts.h
// the only files there that know protobuf.
#ifndef NPUMESH_GRAPH_ONNX_TENSOR_READER_H_
#define NPUMESH_GRAPH_ONNX_TENSOR_READER_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

// Takes raw data out of the message. Data in files beside the model at `path` are mapped, not read.
// A tensor of strings has its type and no bytes. Errors as ReadOnnx, without the name of the file.
Result<Tensor> TakeTensor(onnx::TensorProto& proto, const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_TENSOR_READER_H_
