#include "tests/onnx/example_models.h"

#include "tests/onnx/model_builder.h"

namespace npumesh::testing {
namespace {

const TensorType kRow = {DataType::kFloat, Shape({3})};

std::string ImageModel() {
  OnnxModelBuilder g;
  const TensorType filter{DataType::kFloat, Shape({2, 2, 3, 3})};
  g.Input("x", {DataType::kFloat, Shape({1, 2, 4, 4})});
  g.Output("y", {DataType::kFloat, Shape({1, 2})});
  g.Initialiser("w", Tensor::Allocate(filter));
  onnx::NodeProto& conv = g.Node("Conv", {"x", "w"}, {"c"});
  SetInts(conv, "pads", {1, 1, 1, 1});
  onnx::NodeProto& pool = g.Node("MaxPool", {"c"}, {"p", "places"});
  SetInts(pool, "kernel_shape", {2, 2});
  SetInts(pool, "dilations", {2, 1});
  onnx::NodeProto& mean = g.Node("ReduceMean", {"p"}, {"y"});
  SetInts(mean, "axes", {2, 3});
  SetInt(mean, "keepdims", 0);
  return g.Bytes();
}

std::string ShapeModel() {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kFloat, Shape({-1, 6})}).Output("y", {DataType::kFloat, Shape({-1, 3})});
  g.Initialiser("shape", Tensor::FromVector<int64_t>({DataType::kInt64, Shape({2})}, {-1, 3}));
  g.Node("Reshape", {"x", "shape"}, {"r"});
  g.Node("Softmax", {"r"}, {"s"});
  SetInt(g.Node("Concat", {"s", "s"}, {"k"}), "axis", 0);
  SetInt(g.Node("Split", {"k"}, {"y", "z"}), "axis", 0);
  return g.Bytes();
}

// A branch that gives what `op` makes of x, which is of the graph around.
void AddBranch(onnx::NodeProto& node, const std::string& attribute, const std::string& op) {
  auto* branch = node.add_attribute();
  branch->set_name(attribute);
  branch->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& graph = *branch->mutable_g();
  graph.set_name(attribute);
  onnx::NodeProto& made = *graph.add_node();
  made.set_op_type(op);
  made.add_input("x");
  made.add_output(attribute + "_y");
  SetType(*graph.add_output(), attribute + "_y", kRow);
}

void AddDoubling(onnx::ModelProto& model) {
  onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("Doubled");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(17);
  onnx::NodeProto& sum = *function.add_node();
  sum.set_op_type("Add");
  sum.add_input("a");
  sum.add_input("a");
  sum.add_output("b");
}

onnx::TensorProto& AddTensor(onnx::ModelProto& model, const std::string& name, DataType dtype) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor = ToProto(name, Tensor::Allocate({dtype, Shape({3})}));
  tensor.clear_raw_data();
  return tensor;
}

// One initialiser for each field that numbers may stand in.
void AddTypedFields(onnx::ModelProto& model) {
  onnx::TensorProto& floats = AddTensor(model, "floats", DataType::kFloat);
  onnx::TensorProto& doubles = AddTensor(model, "doubles", DataType::kDouble);
  onnx::TensorProto& longs = AddTensor(model, "longs", DataType::kInt64);
  onnx::TensorProto& unsigneds = AddTensor(model, "unsigneds", DataType::kUint32);
  onnx::TensorProto& halves = AddTensor(model, "halves", DataType::kFloat16);
  onnx::TensorProto& bytes = AddTensor(model, "bytes", DataType::kInt8);
  for (int i = 0; i < 3; ++i) {
    floats.add_float_data(0.5F * static_cast<float>(i));
    doubles.add_double_data(i);
    longs.add_int64_data(-i);
    unsigneds.add_uint64_data(static_cast<uint64_t>(i));
    halves.add_int32_data(0x3c00);
    bytes.add_int32_data(-i);
  }
}

std::string BranchModel() {
  OnnxModelBuilder g;
  g.Input("x", kRow).Input("which", {DataType::kBool, Shape()}).Output("y", kRow);
  AddTypedFields(g.proto());
  AddDoubling(g.proto());
  onnx::NodeProto& branches = g.Node("If", {"which"}, {"chosen"});
  AddBranch(branches, "then_branch", "Neg");
  AddBranch(branches, "else_branch", "Relu");
  g.Node("Doubled", {"chosen"}, {"doubled"}).set_domain("own");
  g.Node("Add", {"doubled", "floats"}, {"y"});
  return g.Bytes();
}

onnx::AttributeProto& AddAttribute(onnx::NodeProto& node,
                                   onnx::AttributeProto::AttributeType kind) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("of_kind_" + std::to_string(kind));
  attribute.set_type(kind);
  return attribute;
}

}  // namespace

std::vector<std::string> ExampleOnnxModels() {
  return {ImageModel(), ShapeModel(), BranchModel()};
}

std::string OnnxModelOfAllFields() {
  using Kind = onnx::AttributeProto;
  OnnxModelBuilder g;
  g.Output("y", {DataType::kString, Shape({-1})});
  onnx::GraphProto& graph = *g.proto().mutable_graph();
  onnx::ValueInfoProto& sequence = *graph.add_input();
  sequence.set_name("sequence");
  auto& item = *sequence.mutable_type()->mutable_sequence_type()->mutable_elem_type();
  item.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  onnx::ValueInfoProto& optional = *graph.add_value_info();
  optional.set_name("optional");
  *optional.mutable_type()->mutable_optional_type()->mutable_elem_type() = sequence.type();
  onnx::TensorProto& words = *graph.add_initializer();
  words.set_name("words");
  words.set_data_type(onnx::TensorProto::STRING);
  words.add_dims(2);
  words.add_string_data("a");
  words.add_string_data("\xff\n");
  onnx::NodeProto& node = g.Node("Any", {"sequence", "", "words"}, {"y"});
  AddAttribute(node, Kind::FLOAT).set_f(0.5F);
  AddAttribute(node, Kind::STRING).set_s("s");
  AddAttribute(node, Kind::STRINGS).add_strings("t");
  AddAttribute(node, Kind::FLOATS).add_floats(2);
  AddAttribute(node, Kind::INTS).add_ints(-1);
  *AddAttribute(node, Kind::TYPE_PROTO).mutable_tp() = optional.type();
  *AddAttribute(node, Kind::TENSOR).mutable_t() = words;
  AddAttribute(node, Kind::INT).set_ref_attr_name("outer");
  return g.Bytes();
}

}  // namespace npumesh::testing
