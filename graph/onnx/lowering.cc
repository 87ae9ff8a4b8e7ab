#include "graph/onnx/lowering.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// All elements as `to`, which is that of Number; nullopt: no constant, or a type without numbers.
template <typename Number>
std::optional<std::vector<Number>> NumbersIn(const Tensor* tensor, DataType to) {
  const ConvertFn convert = tensor == nullptr ? nullptr : FindConvert(tensor->dtype(), to);
  if (convert == nullptr) return std::nullopt;
  std::vector<Number> numbers(static_cast<size_t>(tensor->elements()));
  convert(tensor->data(), numbers.data(), numbers.size());
  return numbers;
}

Tensor TensorOfNumber(double value, DataType dtype) {
  Tensor tensor = Tensor::Allocate({dtype, Shape()});
  FindConvert(DataType::kDouble, dtype)(&value, tensor.mutable_data(), 1);
  return tensor;
}

}  // namespace

Lowering::Lowering(const OnnxNode& node, int64_t version, GraphEmitter& emitter,
                   std::vector<std::optional<OnnxValue>> operands, GraphScope* scope)
    : node_(node),
      version_(version),
      emitter_(emitter),
      operands_(std::move(operands)),
      scope_(scope),
      results_(node.outputs.size()) {}

bool Lowering::has(int input) const {
  return input < inputs() && operands_[static_cast<size_t>(input)].has_value();
}

bool Lowering::wants(int output) const {
  return output < outputs() && !node_.outputs[static_cast<size_t>(output)].empty();
}

const OnnxValue& Lowering::operand(int input) {
  static const auto* const nothing = new OnnxValue;
  if (!has(input)) {
    Fail(Code::kCorrupt, "has no input {}, which it needs", input);
    return *nothing;
  }
  return *operands_[static_cast<size_t>(input)];
}

Value Lowering::in(int input) {
  const OnnxValue& value = operand(input);
  if (!ok()) return {};
  if (value.items.size() == 1 && value.kind != OnnxKind::kSequence) return value.items[0];
  Fail(Code::kCorrupt, "input {} is a sequence or an empty optional; expected a tensor", input);
  return {};
}

int64_t Lowering::Int(std::string_view name, int64_t fallback) const {
  const OnnxAttribute* const attribute = node_.Find(name);
  return attribute != nullptr && attribute->kind == OnnxAttribute::Kind::kInt ? attribute->i
                                                                              : fallback;
}

float Lowering::Float(std::string_view name, float fallback) const {
  const OnnxAttribute* const attribute = node_.Find(name);
  return attribute != nullptr && attribute->kind == OnnxAttribute::Kind::kFloat ? attribute->f
                                                                                : fallback;
}

std::string Lowering::Text(std::string_view name, std::string_view fallback) const {
  const OnnxAttribute* const attribute = node_.Find(name);
  return attribute != nullptr && attribute->kind == OnnxAttribute::Kind::kString
             ? attribute->s
             : std::string(fallback);
}

std::vector<int64_t> Lowering::IntList(std::string_view name) const {
  const OnnxAttribute* const attribute = node_.Find(name);
  return attribute == nullptr ? std::vector<int64_t>() : attribute->ints;
}

std::vector<float> Lowering::FloatList(std::string_view name) const {
  const OnnxAttribute* const attribute = node_.Find(name);
  return attribute == nullptr ? std::vector<float>() : attribute->floats;
}

int Lowering::Rank(Value value) {
  if (!ok()) return 0;
  if (shape(value).has_rank()) return shape(value).rank();
  Refuse(
      "the rank of an operand is not known before the model runs: that of {}; --dim fixes the "
      "sizes "
      "of inputs",
      emitter_.NameOf(value));
  return 0;
}

int Lowering::Axis(int64_t axis, int rank) {
  if (!ok()) return 0;
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  Fail(Code::kCorrupt, "axis {} of a tensor of rank {}; expected {} to {}", axis, rank, -rank,
       rank - 1);
  return 0;
}

int64_t Lowering::KnownSize(Value value, int axis) const {
  const Shape& known = shape(value);
  return known.has_rank() && axis >= 0 && axis < known.rank() ? known[axis] : kUnknownDim;
}

int64_t Lowering::Dim(Value value, int axis) {
  const int rank = Rank(value);
  if (!ok()) return 1;
  if (axis < 0 || axis >= rank) {
    Fail(Code::kCorrupt, "an operand has {} dimensions and is asked for number {}", rank, axis);
    return 1;
  }
  // Numbers that are computed from sizes stay in range.
  constexpr int64_t kMost = int64_t{1} << 32;
  if (shape(value)[axis] > kMost) {
    Refuse("dimension {} of an operand is {}; expected {} at most", axis, shape(value)[axis],
           kMost);
    return 1;
  }
  if (shape(value)[axis] >= 0) return shape(value)[axis];
  Refuse(
      "dimension {} of an operand is open; this operator needs it when it is imported: that of {}; "
      "--dim fixes the sizes of inputs",
      axis, emitter_.NameOf(value));
  return 1;
}

std::optional<std::vector<double>> Lowering::KnownNumbers(Value value) const {
  return NumbersIn<double>(emitter_.constant(value), DataType::kDouble);
}

std::optional<double> Lowering::KnownNumber(Value value) const {
  const std::optional<std::vector<double>> numbers = KnownNumbers(value);
  return numbers && numbers->size() == 1 ? std::optional((*numbers)[0]) : std::nullopt;
}

std::optional<std::vector<int64_t>> Lowering::KnownInts(Value value) const {
  return NumbersIn<int64_t>(emitter_.constant(value), DataType::kInt64);
}

bool Lowering::Affords(int64_t count, int64_t each) {
  constexpr int64_t kMost = 1 << 24;
  if (count <= kMost && each <= kMost && count * each <= kMost) return ok();
  Refuse("would become {} times {} entries or nodes; expected {} at most", count, each, kMost);
  return false;
}

std::optional<std::vector<int64_t>> Lowering::IntsOf(std::string_view name, int input) {
  if (has_attr(name)) return IntList(name);
  if (!has(input)) return std::nullopt;
  const std::optional<std::vector<int64_t>> known = KnownInts(in(input));
  if (!known) {
    Refuse(
        "input {} ({}) is not known when the model is imported; expected an initialiser or a "
        "Constant",
        input, name);
  }
  return known;
}

std::string Lowering::NameOf(std::string_view below) const {
  std::string name = node_.name;
  for (size_t i = 0; name.empty() && i < node_.outputs.size(); ++i) name = node_.outputs[i];
  if (name.empty()) name = node_.op;
  return below.empty() ? name : fmt::format("{}/{}", name, below);
}

Value Lowering::Node(const std::string& type, const Inputs& inputs, const Attrs& attrs,
                     int outputs) {
  return emitter_.Op(type, inputs, attrs, NameOf(""), outputs);
}

Value Lowering::Op(const std::string& type, const Inputs& inputs, const Attrs& attrs, int outputs) {
  return emitter_.Op(type, inputs, attrs, NameOf(type), outputs);
}

Value Lowering::Call(const std::string& type, const Inputs& inputs, std::vector<Model> models,
                     const std::vector<TensorType>& types) {
  return emitter_.Call(type, inputs, std::move(models), NameOf(""), types);
}

Value Lowering::MatMul(Value a, Value b) {
  return Op("BatchMatMulV2", {a, b});
}

Value Lowering::Select(Value condition, Value yes, Value no) {
  return Op("SelectV2", {condition, yes, no});
}

Value Lowering::Cast(Value x, DataType dtype) {
  if (ok() && dtype == DataType::kUndefined) {
    Refuse("the type of an operand is not known before the model runs");
  }
  if (!ok() || this->dtype(x) == dtype) return x;
  const Value y = Op("Cast", {x}, {{"dst_type", dtype}});
  emitter_.Hint(y, {dtype, Shape::UnknownRank()});
  return y;
}

Value Lowering::Wide(Value x) {
  const bool narrow = dtype(x) == DataType::kFloat16 || dtype(x) == DataType::kBfloat16;
  return narrow ? Cast(x, DataType::kFloat) : x;
}

std::string Lowering::Quotient(Value a, Value b) {
  const DataType known = dtype(a) == DataType::kUndefined ? dtype(b) : dtype(a);
  if (ok() && known == DataType::kUndefined) {
    Refuse("{}", emitter_.WhyUnknown(a));
  }
  const bool real = IsFloating(dtype(a)) || IsFloating(dtype(b));
  return IsInteger(known) && !real ? "TruncateDiv" : "Div";
}

Value Lowering::Scalar(double value, DataType dtype) {
  if (!ok()) return {};
  if (dtype == DataType::kUndefined) {
    Refuse("the type of an operand is not known before the model runs");
    return {};
  }
  if (FindConvert(DataType::kDouble, dtype) == nullptr) {
    Refuse("an operand is {}, which has no numbers", Name(dtype));
    return {};
  }
  return emitter_.Const(TensorOfNumber(value, dtype), NameOf("Const"));
}

Value Lowering::Like(double value, Value like) {
  if (ok() && dtype(like) == DataType::kUndefined) Refuse("{}", emitter_.WhyUnknown(like));
  return Scalar(value, dtype(like));
}

Value Lowering::Ints(const std::vector<int64_t>& values) {
  const TensorType type{DataType::kInt64, Shape({static_cast<int64_t>(values.size())})};
  return emitter_.Const(Tensor::FromVector(type, values), NameOf("Const"));
}

Value Lowering::IntScalar(int64_t value) {
  return emitter_.Const(Tensor::FromVector<int64_t>({DataType::kInt64, Shape()}, {value}),
                        NameOf("Const"));
}

Value Lowering::Floats(const std::vector<float>& values, Shape shape) {
  return emitter_.Const(Tensor::FromVector<float>({DataType::kFloat, std::move(shape)}, values),
                        NameOf("Const"));
}

Value Lowering::Reshape(Value x, const std::vector<int64_t>& shape) {
  return ReshapeTo(x, Ints(shape), static_cast<int>(shape.size()));
}

Value Lowering::ReshapeAfter(Value x, int kept, const std::vector<int64_t>& rest) {
  if (Rank(x) < kept) Fail(Code::kCorrupt, "an operand has fewer than {} dimensions", kept);
  if (!ok()) return x;
  const std::vector<int64_t>& dims = shape(x).dims();
  std::vector<int64_t> all(dims.begin(), dims.begin() + kept);
  const bool open = std::any_of(all.begin(), all.end(), [](int64_t dim) { return dim < 0; });
  all.insert(all.end(), rest.begin(), rest.end());
  if (!open) return Reshape(x, all);
  const Value first = Slice(ShapeOf(x), 0, 0, kept);
  const Value y = ReshapeTo(x, Concat({first, Ints(rest)}, 0), static_cast<int>(all.size()));
  emitter_.Hint(y, {dtype(x), Shape(all)});
  return y;
}

Value Lowering::Along(Value x, int64_t axis, int rank) {
  const int at = Axis(axis, rank);
  if (!ok()) return x;
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(at)] = -1;
  return Reshape(x, shape);
}

Value Lowering::ReshapeTo(Value x, Value shape, int rank) {
  const Value y = Op("Reshape", {x, shape});
  if (rank >= 0) {
    emitter_.Hint(y, {dtype(x), Shape(std::vector<int64_t>(static_cast<size_t>(rank), -1))});
  }
  return y;
}

Value Lowering::Transpose(Value x, const std::vector<int64_t>& perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;  // as it is
  if (const std::optional<OrderedValue> from = OrderOf(x);
      from && from->perm.size() == perm.size()) {
    std::vector<int64_t> both;
    for (const int64_t axis : perm) both.push_back(from->perm[static_cast<size_t>(axis)]);
    if (std::is_sorted(both.begin(), both.end())) return from->value;  // there and back
  }
  return Op("TransposeD", {x}, {{"perm", perm}});
}

std::optional<OrderedValue> Lowering::OrderOf(Value x) const {
  const npumesh::Node* const maker = ok() ? emitter_.maker(x) : nullptr;
  if (maker == nullptr || maker->type != "TransposeD" || !maker->inputs[0]) return std::nullopt;
  std::vector<int64_t> perm = maker->IntsAttr("perm");
  if (perm.empty()) return std::nullopt;
  return OrderedValue{*maker->inputs[0], std::move(perm)};
}

Value Lowering::SwapAxes(Value x, int a, int b) {
  if (a == b || !ok()) return x;
  std::vector<int64_t> perm(static_cast<size_t>(Rank(x)));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  return Transpose(x, perm);
}

Value Lowering::Unsqueeze(Value x, const std::vector<int64_t>& axes) {
  return Op("UnsqueezeV3", {x, Ints(axes)});
}

Value Lowering::Squeeze(Value x, const std::vector<int64_t>& axes) {
  return Op("SqueezeV3", {x, Ints(axes)});
}

Value Lowering::Concat(const std::vector<Value>& values, int64_t axis) {
  return Op("ConcatD", {values.begin(), values.end()},
            {{"N", static_cast<int64_t>(values.size())}, {"concat_dim", axis}});
}

Value Lowering::Slice(Value x, int64_t axis, int64_t begin, int64_t end) {
  return Op("StridedSliceV2", {x, Ints({begin}), Ints({end}), Ints({axis}), Ints({1})});
}

Value Lowering::Gather(Value x, Value indices, int64_t axis) {
  return Op("GatherV2", {x, indices, IntScalar(axis)}, {{"negative_index_support", true}});
}

Value Lowering::Broadcast(Value x, Value shape) {
  const Value y = Op("BroadcastTo", {x, shape});
  const Shape& sizes = this->shape(shape);
  if (sizes.rank() == 1 && sizes[0] >= 0) {
    emitter_.Hint(y, {dtype(x), Shape(std::vector<int64_t>(static_cast<size_t>(sizes[0]), -1))});
  }
  return y;
}

Value Lowering::Filled(Value shape, Value value) {
  const Value y = Op("Fill", {shape, value});
  const Shape& sizes = this->shape(shape);
  const bool ranked = sizes.rank() == 1 && sizes[0] >= 0 && Affords(sizes[0]);
  emitter_.Hint(y, {dtype(value),
                    ranked ? Shape(std::vector<int64_t>(static_cast<size_t>(sizes[0]), kUnknownDim))
                           : Shape::UnknownRank()});
  return y;
}

Value Lowering::ShapeOf(Value x) {
  return Op("Shape", {x}, {{"dtype", DataType::kInt64}});
}

Value Lowering::DimOf(Value x, int64_t axis) {
  return Gather(ShapeOf(x), Ints({axis}), 0);
}

Value Lowering::Range(Value start, Value limit, Value delta) {
  const Value y = Op("Range", {start, limit, delta});
  emitter_.Hint(y, {dtype(start), Shape({-1})});
  return y;
}

Value Lowering::Reduce(const std::string& type, Value x, const std::vector<int64_t>& axes,
                       bool keep) {
  return Op(type + "D", {x}, {{"axes", axes}, {"keep_dims", keep}});
}

Value Lowering::PadWith(Value x, const std::vector<int64_t>& pads, double value) {
  return Op("PadV3", {x, Ints(pads), Like(value, x)},
            {{"mode", "constant"}, {"paddings_contiguous", false}});
}

void Lowering::Out(int output, Value value) {
  Out(output, OnnxValue::Of(value));
}

void Lowering::Out(int output, OnnxValue value) {
  if (output < outputs()) results_[static_cast<size_t>(output)] = std::move(value);
}

}  // namespace npumesh
