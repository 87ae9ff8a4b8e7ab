// Writes ONNX models for tests, as bytes of a file.
#ifndef NPUMESH_TESTS_ONNX_MODEL_BUILDER_H_
#define NPUMESH_TESTS_ONNX_MODEL_BUILDER_H_

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh::testing {

TensorType FloatType(Shape shape);
Tensor FloatTensor(Shape shape, const std::vector<float>& values);

// A model of version 17 with one graph "g".
class OnnxModelBuilder {
 public:
  explicit OnnxModelBuilder(int64_t opset = 17);

  // Dimensions of -1 are open.
  OnnxModelBuilder& Input(const std::string& name, const TensorType& type);
  OnnxModelBuilder& Output(const std::string& name, const TensorType& type);
  OnnxModelBuilder& Initialiser(const std::string& name, const Tensor& value);
  // The node, to which attributes can be added.
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs);

  onnx::ModelProto& proto() { return proto_; }
  std::string Bytes() const { return proto_.SerializeAsString(); }

 private:
  onnx::ModelProto proto_;
};

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value);
void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
void SetType(onnx::ValueInfoProto& info, const std::string& name, const TensorType& type);
onnx::TensorProto ToProto(const std::string& name, const Tensor& value);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_ONNX_MODEL_BUILDER_H_
