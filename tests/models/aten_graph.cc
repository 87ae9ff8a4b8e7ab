#include "tests/models/aten_graph.h"

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "tests/models/parameters.h"
#include "tests/models/torchair_form.h"

namespace npumesh::models {

Value AtenGraph::HostInput(const std::string& name, TensorType type) {
  on_host_.insert(name);
  return g_.Data(name, std::move(type));
}

Value AtenGraph::Scalar(double value, DataType dtype) {
  return g_.Const("Const", TensorOf(Shape(), {value}, dtype));
}

Value AtenGraph::Op(const std::string& type, std::vector<GraphBuilder::Input> inputs,
                    std::vector<GraphBuilder::Attr> attrs, int outputs) {
  const Operator* const op = BuiltinOps().Find(type);
  if (outputs == 0) outputs = op == nullptr ? 1 : static_cast<int>(op->schema.outputs.size());
  return g_.Op(type, std::move(inputs), std::move(attrs), {}, outputs);
}

Value AtenGraph::MulScalar(Value x, double value, DataType dtype) {
  if (dtype == DataType::kFloat) return Mul(x, Scalar(value));
  return Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(static_cast<float>(value))}});
}

Value AtenGraph::Sum(Value x, std::vector<int64_t> dims, bool keep) {
  return Op("ReduceSum", {{"x", x}, {"axes", Ints(std::move(dims))}},
            {{"keep_dims", AttrValue::Bool(keep)}});
}

Value AtenGraph::Mean(Value x, std::vector<int64_t> dims, bool keep) {
  return Op("ReduceMean", {{"x", x}, {"axes", Ints(std::move(dims))}},
            {{"keep_dims", AttrValue::Bool(keep)}});
}

Value AtenGraph::Addmm(Value addend, Value a, Value b, DataType dtype) {
  if (dtype != DataType::kFloat) {
    return Op("MatMulV2", {{"x1", a}, {"x2", b}, {"bias", addend}});
  }
  const Value product = Op("MatMulV2", {{"x1", a}, {"x2", b}});
  return Add(Binary("Mul", product, Scalar(1)), addend);
}

Value AtenGraph::View(Value x, std::vector<int64_t> sizes) {
  return Op("Reshape", {{"x", x}, {"shape", Ints(std::move(sizes))}});
}

Value AtenGraph::ViewSym(Value x, const Sizes& sizes) {
  return Op("Reshape", {{"x", x}, {"shape", Pack(sizes)}});
}

Value AtenGraph::Pack(const Sizes& sizes) {
  std::vector<int64_t> numbers;
  for (const Size& size : sizes) {
    if (const auto* const number = std::get_if<int64_t>(&size)) numbers.push_back(*number);
  }
  if (numbers.size() == sizes.size()) return Ints(std::move(numbers));
  std::vector<GraphBuilder::Input> inputs;
  for (const Size& size : sizes) {
    const auto* const number = std::get_if<int64_t>(&size);
    inputs.emplace_back(fmt::format("x{}", inputs.size()),
                        number != nullptr ? Int(*number) : std::get<Value>(size));
  }
  const auto count = static_cast<int64_t>(inputs.size());
  return Op("Pack", std::move(inputs), {{"axis", AttrValue::Int(0)}, {"N", AttrValue::Int(count)}});
}

Value AtenGraph::Permute(Value x, std::vector<int64_t> perm) {
  return Op("Transpose", {{"x", x}, {"perm", Ints(std::move(perm))}});
}

Value AtenGraph::Unsqueeze(Value x, int64_t dim) {
  return Op("Unsqueeze", {{"x", x}}, {{"axes", AttrValue::Ints({dim})}});
}

Value AtenGraph::Squeeze(Value x, int64_t dim) {
  return Op("Squeeze", {{"x", x}}, {{"axis", AttrValue::Ints({dim})}});
}

Value AtenGraph::Expand(Value x, std::vector<int64_t> sizes) {
  return Op("BroadcastTo", {{"x", x}, {"shape", Ints(std::move(sizes))}});
}

Value AtenGraph::ExpandSym(Value x, const Sizes& sizes) {
  return Op("BroadcastTo", {{"x", x}, {"shape", Pack(sizes)}});
}

Value AtenGraph::Cat(const std::vector<Value>& parts, int64_t dim) {
  std::vector<GraphBuilder::Input> inputs;
  for (const Value part : parts) inputs.emplace_back(fmt::format("x{}", inputs.size()), part);
  inputs.emplace_back("concat_dim", Int(dim));
  return Op("ConcatV2", std::move(inputs),
            {{"N", AttrValue::Int(static_cast<int64_t>(parts.size()))}});
}

Value AtenGraph::Split(Value x, const std::vector<int64_t>& sizes, int64_t dim) {
  return Op("SplitV", {{"x", x}, {"size_splits", Ints(sizes)}, {"split_dim", Int(dim)}},
            {{"num_split", AttrValue::Int(static_cast<int64_t>(sizes.size()))}},
            static_cast<int>(sizes.size()));
}

Value AtenGraph::Slice(Value x, int64_t dim, Size start, Size end) {
  const auto value = [&](const Size& size) {
    const auto* const number = std::get_if<int64_t>(&size);
    return number != nullptr ? Int(*number) : std::get<Value>(size);
  };
  return Op("StridedSliceV2", {{"x", x},
                               {"begin", value(start)},
                               {"end", value(end)},
                               {"axes", Int(dim)},
                               {"strides", Int(1)}});
}

Value AtenGraph::Select(Value x, int64_t dim, int64_t index) {
  return Op("GatherV2", {{"x", x}, {"indices", Int(index)}, {"axis", Int(dim)}},
            {{"negative_index_support", AttrValue::Bool(true)}});
}

Value AtenGraph::ToCopy(Value x, DataType dtype) {
  return Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(static_cast<int64_t>(dtype))}});
}

Value AtenGraph::SymSize(Value x, int64_t dim) {
  const Value shape =
      Op("Shape", {{"x", x}}, {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))}});
  return Op("Gather", {{"x", shape}, {"indices", Int(dim)}});
}

Value AtenGraph::Arange(Size end, DataType dtype) {
  const auto* const number = std::get_if<int64_t>(&end);
  const auto int32 = [&](int64_t value) {
    return Scalar(static_cast<double>(value), DataType::kInt32);
  };
  const Value limit =
      number != nullptr ? int32(*number) : ToCopy(std::get<Value>(end), DataType::kInt32);
  return ToCopy(Op("Range", {{"start", int32(0)}, {"limit", limit}, {"delta", int32(1)}}), dtype);
}

// TorchAir makes an int32 of shape [0] of an empty list.
Value AtenGraph::Full(std::vector<int64_t> sizes, double value, DataType dtype) {
  const Value dims = sizes.empty() ? g_.Const("Const", TensorOf({0}, {}, DataType::kInt32))
                                   : Ints(std::move(sizes));
  return Op("Fill", {{"dims", dims}, {"value", Scalar(value, dtype)}});
}

Value AtenGraph::Embedding(Value weight, Value indices) {
  return Op("GatherV2", {{"x", weight}, {"indices", indices}, {"axis", Int(0)}});
}

Value AtenGraph::EmbeddingDenseBackward(Value grad, Value indices, int64_t rows) {
  return Op("EmbeddingDenseGrad", {{"grad", grad}, {"indices", indices}},
            {{"num_weights", AttrValue::Int(rows)},
             {"padding_idx", AttrValue::Int(-1)},
             {"scale_grad_by_freq", AttrValue::Bool(false)}});
}

Value AtenGraph::Softmax(Value x) {
  return Op("SoftmaxV2", {{"x", x}},
            {{"axes", AttrValue::Ints({-1})}, {"half_to_float", AttrValue::Bool(false)}});
}

Value AtenGraph::SoftmaxBackward(Value grad, Value y) {
  return Op("SoftmaxGrad", {{"softmax", y}, {"grad_softmax", grad}},
            {{"axes", AttrValue::Ints({-1})}});
}

Value AtenGraph::LayerNorm(Value x, int64_t width, Value gamma, Value beta, double epsilon) {
  return Op("LayerNormV4",
            {{"x", x}, {"normalized_shape", Ints({width})}, {"gamma", gamma}, {"beta", beta}},
            {{"epsilon", AttrValue::Float(static_cast<float>(epsilon))}});
}

Value AtenGraph::LayerNormBackward(Value grad, Value x, Value mean, Value rstd, Value gamma) {
  return Op("LayerNormGradV3",
            {{"dy", grad}, {"x", x}, {"rstd", rstd}, {"mean", mean}, {"gamma", gamma}});
}

Value AtenGraph::NllLoss(Value log_probabilities, Value targets) {
  return Op("NLLLoss", {{"x", log_probabilities}, {"target", ToCopy(targets, DataType::kInt32)}},
            {{"reduction", AttrValue::String("mean")}, {"ignore_index", AttrValue::Int(-100)}});
}

Value AtenGraph::NllLossBackward(Value grad, Value log_probabilities, Value targets,
                                 Value total_weight) {
  // Missing class weights are ones, as many as x has columns.
  const Value shape = Op("Shape", {{"x", log_probabilities}}, {{"dtype", AttrValue::Int(3)}});
  const Value classes = Op("GatherV2", {{"x", shape}, {"indices", Ints({1})}, {"axis", Int(0)}});
  const Value ones = Op("Fill", {{"dims", classes}, {"value", Scalar(1)}});
  return Op("NLLLossGrad",
            {{"x", log_probabilities},
             {"y_grad", grad},
             {"target", ToCopy(targets, DataType::kInt32)},
             {"weight", ones},
             {"total_weight", total_weight}},
            {{"reduction", AttrValue::String("mean")}, {"ignore_index", AttrValue::Int(-100)}});
}

Value AtenGraph::DropoutMask(std::vector<int64_t> sizes, double keep, int64_t seed, Value offset) {
  const Value start = Cat({Ints({0}), Unsqueeze(offset, 0)}, 0);
  return Op("StatelessDropOutGenMask", {{"shape", Ints(std::move(sizes))},
                                        {"prob", Scalar(keep)},
                                        {"seed", Int(seed)},
                                        {"seed1", Int(0)},
                                        {"offset", start}});
}

Value AtenGraph::DoMask(Value x, Value mask, double keep) {
  return Op("DropOutDoMask", {{"x", x}, {"mask", mask}, {"keep_prob", Scalar(keep)}});
}

Value AtenGraph::AllReduce(Value x, const std::string& group) {
  return Clone(Op("HcomAllReduce", {{"x", x}},
                  {{"reduction", AttrValue::String("sum")},
                   {"group", AttrValue::String(group)},
                   {"fusion", AttrValue::Int(0)},
                   {"fusion_id", AttrValue::Int(-1)}}));
}

Result<Model> AtenGraph::Build() {
  NPUMESH_ASSIGN_OR_RETURN(Model model, g_.Build());
  WriteAsTorchAir(model, on_host_);
  return model;
}

}  // namespace npumesh::models
