#include "graph/onnx/graph_emitter.h"

#include <algorithm>

#include "graph/onnx/mistakes.h"
#include "graph/ops/core/partial_inference.h"
#include "graph/passes/rewrite/constant_folding.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// Values up to this size are computed while a model is imported.
constexpr uint64_t kMostKnownBytes = uint64_t{1} << 20;

TensorType NothingKnown() {
  return {DataType::kUndefined, Shape::UnknownRank()};
}

// Operators that move elements and do not compute with them.
bool MovesElements(std::string_view type) {
  constexpr std::string_view kMovers[] = {"GatherV2", "StridedSliceV2", "SqueezeV3", "UnsqueezeV3",
                                          "ConcatD",  "Identity",       "Reshape",   "Cast"};
  return std::find(std::begin(kMovers), std::end(kMovers), type) != std::end(kMovers);
}

bool IsOpen(const Tensor& sizes) {
  const auto open = [](const auto& all) { return std::ranges::count(all, -1) > 0; };
  if (sizes.dtype() == DataType::kInt64) return open(sizes.as<int64_t>());
  return sizes.dtype() != DataType::kInt32 || open(sizes.as<int32_t>());
}

// A tensor of integers that are all `number`; nullopt: of another type, or too many for a trial.
std::optional<Tensor> AllOf(int64_t number, const TensorType& type) {
  constexpr int64_t kMostElements = 64;
  const bool wide = type.dtype == DataType::kInt64;
  if (!wide && type.dtype != DataType::kInt32) return std::nullopt;
  const int64_t elements = type.shape.elements();
  if (elements > kMostElements) return std::nullopt;
  const auto count = static_cast<size_t>(elements);
  return wide ? Tensor::FromVector(type, std::vector<int64_t>(count, number))
              : Tensor::FromVector(type, std::vector<int32_t>(count, static_cast<int32_t>(number)));
}

uint64_t BytesOfAll(const std::vector<TensorType>& types) {
  uint64_t bytes = 0;
  for (const TensorType& type : types) {
    if (!type.shape.is_static() || BitsOf(type.dtype) == 0) return UINT64_MAX;
    bytes += type.bytes();
  }
  return bytes;
}

}  // namespace

GraphEmitter::GraphEmitter(std::string name, const OpRegistry& registry)
    : name_(std::move(name)), registry_(registry), builder_(name_) {}

GraphEmitter::Known& GraphEmitter::Remember(Value value, std::vector<TensorType> types) {
  const auto id = static_cast<size_t>(value.node);
  if (known_.size() <= id) known_.resize(id + 1);
  known_[id].types = std::move(types);
  return known_[id];
}

Value GraphEmitter::Data(std::string name, const TensorType& type) {
  if (const Status counted = type.shape.Check(); !counted.ok()) {
    Fail(counted.WithContext(fmt::format("input \"{}\"", Quotable(name))));
    return {};
  }
  const Value value = builder_.Data(std::move(name), type);
  Remember(value, {type});
  return value;
}

Value GraphEmitter::Const(const Tensor& value, std::string name) {
  if (BitsOf(value.dtype()) == 0) {
    Fail(Error(Code::kUnsupported, "constant \"{}\": a tensor of {} has no place in a graph", name,
               Name(value.dtype())));
    return {};
  }
  const Value made = builder_.Const(name.empty() ? "Const" : std::move(name), value);
  Known& known = Remember(made, {value.type()});
  if (value.bytes() <= kMostKnownBytes) known.constants = {Aligned(value)};
  known.stored = value;
  return made;
}

Value GraphEmitter::Write(const Operator& op, const Inputs& inputs, const Attrs& attrs,
                          std::string name, int outputs) {
  const std::vector<PortSpec>& ports = op.schema.inputs;
  std::vector<GraphBuilder::Input> named;
  size_t next = 0;
  for (size_t port = 0; port < ports.size(); ++port) {
    const bool list = ports[port].kind == PortKind::kDynamic;
    const size_t after = ports.size() - port - 1;
    const size_t end = list ? std::max(next, inputs.size() - std::min(after, inputs.size()))
                            : std::min(next + 1, inputs.size());
    for (size_t i = 0; next < end; ++i, ++next) {
      if (inputs[next]) {
        named.emplace_back(list ? fmt::format("{}{}", ports[port].name, i) : ports[port].name,
                           *inputs[next]);
      } else if (list) {
        Fail(Error(Code::kCorrupt, "has no input {}, which it needs", next));
      }
    }
  }
  if (next < inputs.size()) {
    Fail(Error(Code::kCorrupt, "has {} inputs, {} takes {}", inputs.size(), op.schema.type,
               ports.size()));
  }
  if (!ok()) return {};
  return builder_.Op(std::string(op.schema.type), std::move(named), {attrs.begin(), attrs.end()},
                     std::move(name), outputs);
}

Value GraphEmitter::Op(const std::string& type, const Inputs& inputs, const Attrs& attrs,
                       std::string name, int outputs) {
  if (!ok()) return {};
  const Operator* const op = registry_.Find(type);
  if (op == nullptr) {
    Fail(Error(Code::kInternal, "node \"{}\": there is no operator {}", name, type));
    return {};
  }
  const Value value = Write(*op, inputs, attrs, std::move(name), outputs);
  if (!ok()) return {};
  Known& known =
      Remember(value, std::vector<TensorType>(static_cast<size_t>(outputs), NothingKnown()));
  Fail(Infer(builder_.graph().node(value.node), *op, known));
  if (!ok() && keeps_misfits_) {
    fits_not_ = true;
    misfit_ = misfit_.value_or(value);
  }
  DeclareTypes(value);
  return value;
}

Value GraphEmitter::Call(const std::string& type, const Inputs& inputs, std::vector<Model> models,
                         std::string name, const std::vector<TensorType>& types) {
  if (!ok()) return {};
  const Value value =
      Write(*registry_.Find(type), inputs, {}, std::move(name), static_cast<int>(types.size()));
  if (!ok()) return {};
  Remember(value, types);
  DeclareTypes(value);
  builder_.Runs(value, std::move(models));
  return value;
}

void GraphEmitter::DeclareTypes(Value value) {
  const std::vector<TensorType>& types = known_[static_cast<size_t>(value.node)].types;
  for (size_t port = 0; port < types.size(); ++port) {
    if (types[port].dtype == DataType::kUndefined) continue;
    builder_.Declare({value.node, static_cast<int>(port)}, types[port].dtype);
  }
}

const TensorType& GraphEmitter::type(Value value) const {
  static const auto* const nothing = new TensorType(NothingKnown());
  if (value.node < 0) return *nothing;
  return known_[static_cast<size_t>(value.node)].types[static_cast<size_t>(value.port)];
}

const Tensor* GraphEmitter::constant(Value value) const {
  if (value.node < 0) return nullptr;
  const std::vector<Tensor>& constants = known_[static_cast<size_t>(value.node)].constants;
  return constants.empty() ? nullptr : &constants[static_cast<size_t>(value.port)];
}

const Tensor* GraphEmitter::stored(Value value) const {
  if (value.node < 0) return nullptr;
  const std::optional<Tensor>& stored = known_[static_cast<size_t>(value.node)].stored;
  return stored ? &*stored : constant(value);
}

void GraphEmitter::Hint(Value value, const TensorType& type) {
  if (value.node < 0) return;
  TensorType& known =
      known_[static_cast<size_t>(value.node)].types[static_cast<size_t>(value.port)];
  if (known.dtype == DataType::kUndefined && type.dtype != DataType::kUndefined) {
    known.dtype = type.dtype;
    builder_.Declare(value, type.dtype);
  }
  if (!known.shape.has_rank()) known.shape = type.shape;
  if (known.shape.rank() != type.shape.rank() || !type.shape.has_rank()) return;
  for (int d = 0; d < known.shape.rank(); ++d) {
    if (known.shape[d] < 0) known.shape[d] = type.shape[d];
  }
}

void GraphEmitter::Fail(const Status& failure) {
  if (failure_.ok() && !failure.ok()) failure_ = failure;
}

Status GraphEmitter::TakeFailure() {
  placed_ = false;
  if (std::exchange(fits_not_, false)) misfits_.push_back(std::exchange(failure_, Unsaid()));
  return std::exchange(failure_, Status());
}

std::string GraphEmitter::NameOf(Value value) const {
  if (value.node < 0) return "an operand";
  const Node& node = builder_.graph().node(value.node);
  return fmt::format("\"{}\" ({})", Quotable(node.name), node.type);
}

std::string GraphEmitter::WhyUnknown(Value value) const {
  const Graph& graph = builder_.graph();
  std::string why = fmt::format("the type of {} is not known before the model runs", NameOf(value));
  if (value.node < 0) return why;
  const NodeId asked = value.node;
  bool ranked = true;
  for (bool first = false; !first;) {
    first = true;
    for (const std::optional<Value>& input : graph.node(value.node).inputs) {
      if (!input) continue;
      ranked &= type(*input).shape.has_rank();
      if (type(*input).dtype != DataType::kUndefined) continue;
      value = *input;
      ranked = true;
      first = false;
      break;
    }
  }
  if (value.node != asked) why += fmt::format("; it follows from {}", NameOf(value));
  if (!ranked) why += ", an operand of which has an open rank";
  return why;
}

void GraphEmitter::AddContext(const std::string& who) {
  if (placed_ || IsUnsaid(failure_)) return;
  placed_ = true;
  if (!failure_.message().starts_with("node ")) failure_ = failure_.WithContext(who);
}

Status GraphEmitter::Infer(const Node& node, const Operator& op, Known& known) {
  NPUMESH_ASSIGN_OR_RETURN(OpContext context, OpContext::Bind(node, op.schema));
  bool asks = op.infer != nullptr, ranked = true;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const Value input = *node.inputs[static_cast<size_t>(context.input_index(slot))];
    context.set_in(slot, type(input));
    context.set_value(slot, constant(input));
    asks &= type(input).dtype != DataType::kUndefined;
    ranked &= type(input).shape.has_rank();
  }
  if (asks && !ranked) InferDtypes(op, context, known);
  if (!asks || !ranked) return Status();
  const bool all_known =
      std::all_of(op.value_inputs.begin(), op.value_inputs.end(), [&](std::string_view port) {
        return !context.has(port) || context.value(context.slot(port)) != nullptr;
      });
  Result<std::vector<TensorType>> types = InferPartly(op, context);
  if (!types.ok() && all_known) return types.status();
  if (types.ok() && types->size() == known.types.size()) known.types = *std::move(types);
  const bool typed =
      std::all_of(known.types.begin(), known.types.end(),
                  [](const TensorType& type) { return type.dtype != DataType::kUndefined; });
  if (!typed) InferDtypes(op, context, known);
  if (!types.ok()) return Status();
  Fold(op, context, known);
  if (known.constants.empty()) FoldSizes(node, op, std::move(context), known);
  return Status();
}

void GraphEmitter::InferDtypes(const Operator& op, const OpContext& context, Known& known) const {
  constexpr int kMostRank = 5;
  constexpr size_t kMostSizes = 8;
  std::vector<int64_t> sizes = {2, 1};  // and those of inputs that have some
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    for (const int64_t dim : context.in(slot).shape.dims()) {
      if (dim > 0 && sizes.size() < kMostSizes) sizes.push_back(dim);
    }
  }
  std::vector<int> deciding;  // slots whose values decide shapes
  for (const std::string_view port : op.value_inputs) {
    if (context.has(port)) deciding.push_back(context.slot(port));
  }
  const auto accepts = [&](int64_t size, int rank, int64_t number) {
    OpContext trial = context;
    std::vector<Tensor> values;
    values.reserve(static_cast<size_t>(context.slots()));  // the trial points into it
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (!context.has(slot)) continue;
      TensorType type = context.in(slot);
      if (!type.shape.has_rank()) {
        type.shape = Shape(std::vector<int64_t>(static_cast<size_t>(rank), size));
      }
      for (int64_t& dim : type.shape.mutable_dims()) dim = dim < 0 ? size : dim;
      if (!type.shape.Check().ok()) return false;
      trial.set_in(slot, type);
      if (context.value(slot) != nullptr || std::ranges::count(deciding, slot) == 0) continue;
      if (std::optional<Tensor> value = AllOf(number, type)) {
        values.push_back(*std::move(value));
        trial.set_value(slot, &values.back());
      }
    }
    if (!op.infer(trial).ok()) return false;
    for (size_t port = 0; port < known.types.size(); ++port) {
      known.types[port].dtype = trial.out(static_cast<int>(port)).dtype;
    }
    return true;
  };
  for (const int64_t size : sizes) {
    for (int rank = 1; rank <= kMostRank; ++rank) {
      for (const int64_t number : {1, -1}) {
        if (accepts(size, rank, number)) return;
        if (deciding.empty()) break;
      }
    }
  }
}

void GraphEmitter::Fold(const Operator& op, OpContext context, Known& known) const {
  if (BytesOfAll(known.types) > kMostKnownBytes) return;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (context.has(slot) && !context.in(slot).shape.is_static()) return;
  }
  if (!op.infer(context).ok()) return;
  Result<std::optional<std::vector<Tensor>>> folded = FoldConstants(op, context);
  if (folded.ok() && *folded) known.constants = std::move(**folded);
}

void GraphEmitter::FoldSizes(const Node& node, const Operator& op, OpContext context,
                             Known& known) const {
  const bool one = known.types.size() == 1 && known.types[0].shape.is_static();
  if (op.axes.shape_query() && one && known.types[0].shape.rank() == 1) {
    const std::vector<int64_t>& dims = context.in(0).shape.dims();
    if (known.types[0].dtype == DataType::kInt64) {
      known.sizes = Aligned(Tensor::FromVector(known.types[0], dims));
    }
    return;
  }
  if (!MovesElements(node.type)) return;
  bool open = false;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot) || context.value(slot) != nullptr) continue;
    const Value input = *node.inputs[static_cast<size_t>(context.input_index(slot))];
    const std::optional<Tensor>& sizes = known_[static_cast<size_t>(input.node)].sizes;
    if (!sizes || input.port != 0) return;
    context.set_value(slot, &*sizes);
    open = true;
  }
  if (!open) return;
  Known moved{known.types, {}, {}};
  Fold(op, std::move(context), moved);
  if (moved.constants.size() != 1) return;
  if (IsOpen(moved.constants[0])) {
    known.sizes = moved.constants[0];
  } else {
    known.constants = std::move(moved.constants);
  }
}

Result<Model> GraphEmitter::Finish(const std::vector<Value>& outputs) {
  NPUMESH_RETURN_IF_ERROR(failure_);
  builder_.Output(outputs);
  return builder_.Build();
}

}  // namespace npumesh
