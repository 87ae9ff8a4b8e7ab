#include "tests/onnx/model_builder.h"
#include "runtime/base/type_numbers.h"

namespace npumesh::testing {

void SetType(onnx::ValueInfoProto& info, const std::string& name, const TensorType& type) {
  info.set_name(name);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(OnnxNumber(type.dtype));
  auto* shape = tensor->mutable_shape();
  for (const int64_t dim : type.shape.dims()) {
    auto* added = shape->add_dim();
    if (dim >= 0) added->set_dim_value(dim);
  }
}

onnx::TensorProto ToProto(const std::string& name, const Tensor& value) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(OnnxNumber(value.dtype()));
  for (const int64_t dim : value.shape().dims()) proto.add_dims(dim);
  proto.set_raw_data(value.data(), value.bytes());
  return proto;
}

TensorType FloatType(Shape shape) {
  return {DataType::kFloat, std::move(shape)};
}

Tensor FloatTensor(Shape shape, const std::vector<float>& values) {
  return Tensor::FromVector<float>(FloatType(std::move(shape)), values);
}

OnnxModelBuilder::OnnxModelBuilder(int64_t opset) {
  proto_.set_ir_version(8);
  proto_.add_opset_import()->set_version(opset);
  proto_.mutable_graph()->set_name("g");
}

OnnxModelBuilder& OnnxModelBuilder::Input(const std::string& name, const TensorType& type) {
  SetType(*proto_.mutable_graph()->add_input(), name, type);
  return *this;
}

OnnxModelBuilder& OnnxModelBuilder::Output(const std::string& name, const TensorType& type) {
  SetType(*proto_.mutable_graph()->add_output(), name, type);
  return *this;
}

OnnxModelBuilder& OnnxModelBuilder::Initialiser(const std::string& name, const Tensor& value) {
  *proto_.mutable_graph()->add_initializer() = ToProto(name, value);
  return *this;
}

onnx::NodeProto& OnnxModelBuilder::Node(const std::string& op,
                                        const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *proto_.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(op + "_" + std::to_string(proto_.graph().node_size()));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

}  // namespace npumesh::testing
