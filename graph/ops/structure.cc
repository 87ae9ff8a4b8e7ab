// Inputs, constants, outputs, and operators that only hand tensors on. Ops reference 5.1.
#include <cstring>

#include "graph/ir/graph_input.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// ---- Data, RefData, Const, FileConstant, NetOutput: the engine knows them by type ----

// A graph input has the type that GraphInputDesc tells; the engine replaces unknown dimensions by
// those of the bound tensor before it comes here.
Status InferData(OpContext& op) {
  if (op.outputs() != 1) {
    return Error(Code::kCorrupt, "{}: {} output ports, expected one", op.Who(), op.outputs());
  }
  const TensorDesc declared = GraphInputDesc(op.node());
  op.set_out(0, {declared.dtype, declared.shape.value_or(Shape::UnknownRank())});
  return Status();
}

Status InferConst(OpContext& op) {
  const AttrValue* value = op.node().FindAttr("value");
  const auto* tensor = value != nullptr ? value->get<TensorAttr>() : nullptr;
  if (tensor == nullptr) {
    return Error(Code::kCorrupt, "{}: attribute \"value\" is of kind {}, expected tensor", op.Who(),
                 value != nullptr ? value->kind() : "none");
  }
  const TensorType type{tensor->desc->dtype, tensor->desc->shape.value_or(Shape())};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, type.dtype, type.shape));
  if (BitsOf(type.dtype) > 0 && tensor->data->size() < type.bytes()) {
    return Error(Code::kCorrupt, "{}: the value {} needs {} bytes, the file has {}", op.Who(),
                 type.ToString(), type.bytes(), tensor->data->size());
  }
  return Status();
}

Status InferFileConstant(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  return SetOutput(op, 0, dtype, Shape(op.attr_ints("shape")));
}

Status InferNothing(OpContext&) {
  return Status();
}

void RegisterEnds(OpRegistry& registry) {
  const std::vector<AttrSpec> index = {{"index", AttrValue::Int(0)}};
  // A Data node has an input port that nothing feeds, or none at all.
  for (const std::string_view type : {"Data", "RefData"}) {
    registry.Add(
        {.schema = {type, {{"x", PortKind::kOptional}}, {{"y"}}, index}, .infer = InferData});
  }
  registry.Add(
      {.schema = {"Const", {}, {{"y"}}, {{"value", Required::kTensor}}}, .infer = InferConst});
  registry.Alias("Constant", "Const");
  registry.Add({.schema = {"FileConstant",
                           {},
                           {{"y"}},
                           {{"file_path", AttrValue::String("")},
                            {"file_id", AttrValue::String("")},
                            {"shape", Required::kInts},
                            {"dtype", Required::kType}}},
                .infer = InferFileConstant});
  registry.Add(
      {.schema = {"NetOutput", {{"input", PortKind::kDynamic}}, {}, {}}, .infer = InferNothing});
  registry.Add({.schema = {"NoOp", {}, {}, {}},
                .infer = InferNothing,
                .make_kernel = [](const OpContext&) -> Result<std::unique_ptr<Kernel>> {
                  return MakeKernel([](const KernelArgs&) { return Status(); });
                }});
}

// ---- Identity and copies ----

Status InferSame(OpContext& op) {
  return SetOutput(op, 0, op.in(0).dtype, op.in(0).shape);
}

Result<std::unique_ptr<Kernel>> MakeCopy(const OpContext& op) {
  return MakeKernel([bytes = op.in(0).bytes()](const KernelArgs& args) {
    if (bytes > 0) std::memcpy(args.out[0], args.in[0], bytes);
    return Status();
  });
}

Status InferIdentityN(OpContext& op) {
  if (op.outputs() != op.slots()) {
    return Error(Code::kCorrupt, "{}: {} inputs but {} outputs", op.Who(), op.slots(),
                 op.outputs());
  }
  for (int i = 0; i < op.slots(); ++i) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, op.in(i).dtype, op.in(i).shape));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeIdentityN(const OpContext& op) {
  std::vector<uint64_t> bytes;
  for (int i = 0; i < op.slots(); ++i) bytes.push_back(op.in(i).bytes());
  return MakeKernel([bytes](const KernelArgs& args) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] > 0) std::memcpy(args.out[i], args.in[i], bytes[i]);
    }
    return Status();
  });
}

Status InferCopies(OpContext& op) {
  if (op.attr_int("N") != op.outputs()) {
    return Error(Code::kInvalidArgument, "{}: N is {}, but there are {} outputs", op.Who(),
                 op.attr_int("N"), op.outputs());
  }
  for (int i = 0; i < op.outputs(); ++i) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, op.in(0).dtype, op.in(0).shape));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeCopies(const OpContext& op) {
  return MakeKernel([copies = op.outputs(), bytes = op.in(0).bytes()](const KernelArgs& args) {
    for (int i = 0; i < copies && bytes > 0; ++i) std::memcpy(args.out[i], args.in[0], bytes);
    return Status();
  });
}

bool SameButForOneElementRank(const Shape& a, const Shape& b) {
  const auto one = [](const Shape& s) { return s.rank() == 0 || s == Shape{1}; };
  return a == b || (one(a) && one(b));
}

Status InferAssign(OpContext& op) {
  const TensorType& ref = op.in("ref");
  const TensorType& value = op.in("value");
  if (ref.dtype != value.dtype || !SameButForOneElementRank(ref.shape, value.shape)) {
    return Error(Code::kInvalidArgument,
                 "{}: \"value\" is {} but \"ref\" is {}; Assign needs equal "
                 "types and shapes",
                 op.Who(), value.ToString(), ref.ToString());
  }
  return SetOutput(op, 0, ref.dtype, ref.shape);
}

// The value may be a view of the storage it is written to.
Result<std::unique_ptr<Kernel>> MakeAssign(const OpContext& op) {
  const int value = op.slot("value");
  return MakeKernel([value, bytes = op.in(value).bytes()](const KernelArgs& args) {
    if (bytes > 0) std::memmove(args.out[0], args.in[value], bytes);
    return Status();
  });
}

// ---- Bitcast ----

// The dimensions of x when its elements become `factor` narrower ones.
Result<Shape> Narrowed(const OpContext& op, const Shape& shape, int64_t factor) {
  Shape narrow = shape;
  if (!op.attr_bool("keep_dim")) {
    narrow.mutable_dims().push_back(factor);
    return narrow;
  }
  if (shape.rank() == 0 || shape[shape.rank() - 1] > INT64_MAX / factor) {
    return Error(Code::kInvalidArgument, "{}: the last dimension of {} cannot grow {} times",
                 op.Who(), shape.ToString(), factor);
  }
  narrow.mutable_dims().back() *= factor;
  return narrow;
}

// The dimensions of x when `factor` of its elements become a wider one.
Result<Shape> Widened(const OpContext& op, const Shape& shape, int64_t factor) {
  const bool keep = op.attr_bool("keep_dim");
  const int64_t last = shape.rank() > 0 ? shape[shape.rank() - 1] : 0;
  if (shape.rank() == 0 || (keep ? last % factor != 0 : last != factor)) {
    return Error(Code::kInvalidArgument,
                 "{}: the last dimension of {} must be {}{} to become "
                 "wider elements",
                 op.Who(), shape.ToString(), keep ? "a multiple of " : "", factor);
  }
  Shape wide = shape;
  if (keep) {
    wide.mutable_dims().back() /= factor;
  } else {
    wide.mutable_dims().pop_back();
  }
  return wide;
}

Status InferBitcast(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType to, op.attr_dtype("type"));
  const TensorType& x = op.in("x");
  const int from_bits = BitsOf(x.dtype);
  const int to_bits = BitsOf(to);
  const int wider = std::max(from_bits, to_bits);
  const int narrower = std::min(from_bits, to_bits);
  if (narrower <= 0 || wider % narrower != 0) {
    return Error(Code::kUnsupported, "{}: {} cannot be read as {}", op.Who(), Name(x.dtype),
                 Name(to));
  }
  if (from_bits == to_bits) return SetOutput(op, 0, to, x.shape);
  const int64_t factor = wider / narrower;
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, from_bits > to_bits ? Narrowed(op, x.shape, factor)
                                                            : Widened(op, x.shape, factor));
  return SetOutput(op, 0, to, std::move(shape));
}

}  // namespace

void RegisterStructureOps(OpRegistry& registry) {
  RegisterEnds(registry);
  RegisterShapeQueryOps(registry);
  RegisterTextOps(registry);
  registry.Add({.schema = {"Identity", {{"x"}}, {{"y"}}, {}}, .infer = InferSame, .view = true});
  registry.Add(
      {.schema = {"IdentityN", {{"x", PortKind::kDynamic}}, {{"y", PortKind::kDynamic}}, {}},
       .infer = InferIdentityN,
       .make_kernel = MakeIdentityN});
  registry.Add({.schema = {"Copy", {{"x"}}, {{"y", PortKind::kDynamic}}, {{"N", Required::kInt}}},
                .infer = InferCopies,
                .make_kernel = MakeCopies});
  registry.Add({.schema = {"TensorMove", {{"x"}}, {{"y"}}, {}},
                .infer = InferSame,
                .make_kernel = MakeCopy});
  registry.Add({.schema = {"Assign",
                           {{"ref"}, {"value"}},
                           {{"ref"}},
                           {{"validate_shape", AttrValue::Bool(true)},
                            {"use_locking", AttrValue::Bool(false)}}},
                .infer = InferAssign,
                .make_kernel = MakeAssign,
                .in_place = {{0, 0}}});
  registry.Add({.schema = {"Bitcast",
                           {{"x"}},
                           {{"y"}},
                           {{"type", Required::kType}, {"keep_dim", AttrValue::Bool(false)}}},
                .infer = InferBitcast,
                .view = true});
}

}  // namespace npumesh
