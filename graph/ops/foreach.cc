// The Foreach family: an operator applied to every tensor of a list. Ops reference 5.19.
//
// Each row of the table names an operator and what its inputs are: tensors of lists, one number for
// all, or one number of a tensor of them for each. The operator itself infers and computes; what is
// here hands it the parts. Numbers count as scalars and scalars of the lists as
// vectors of one element, so that the lists decide the types.
#include "graph/ops/foreach.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

enum class From : uint8_t { kList, kNumber, kNumbers };

// Input `port` of the Foreach operator, which becomes input `element_port` of the element's.
struct ForeachPort {
  std::string_view port;
  std::string_view element_port;
  From from = From::kList;
};

struct ForeachRow {
  std::string_view type;
  std::string_view element;
  std::vector<ForeachPort> ports;
};

std::vector<ForeachRow> Rows() {
  std::vector<ForeachRow> rows;
  const std::pair<std::string_view, std::string_view> unary[] = {
      {"ForeachAbs", "Abs"},         {"ForeachACos", "Acos"},   {"ForeachAcos", "Acos"},
      {"ForeachASin", "Asin"},       {"ForeachAsin", "Asin"},   {"ForeachATan", "Atan"},
      {"ForeachAtan", "Atan"},       {"ForeachCos", "Cos"},     {"ForeachSin", "Sin"},
      {"ForeachTan", "Tan"},         {"ForeachCosh", "Cosh"},   {"ForeachSinh", "Sinh"},
      {"ForeachTanh", "Tanh"},       {"ForeachSqrt", "Sqrt"},   {"ForeachNeg", "Neg"},
      {"ForeachExp", "Exp"},         {"ForeachExpm1", "Expm1"}, {"ForeachErf", "Erf"},
      {"ForeachErfc", "Erfc"},       {"ForeachLog", "Log"},     {"ForeachLog2", "Log2"},
      {"ForeachLog10", "Log10"},     {"ForeachLog1p", "Log1p"}, {"ForeachReciprocal", "Reciprocal"},
      {"ForeachSigmoid", "Sigmoid"}, {"ForeachSign", "Sign"},   {"ForeachCopy", "TensorMove"},
  };
  for (const auto& [type, element] : unary) rows.push_back({type, element, {{"x", "x"}}});

  constexpr From kNumber = From::kNumber, kNumbers = From::kNumbers;
  struct Binary {
    std::string_view scalar, scalars, list, element;
  };
  const Binary binary[] = {
      {"ForeachAddScalar", "ForeachAddScalarList", "", "Add"},
      {"ForeachSubScalar", "ForeachSubScalarList", "", "Sub"},
      {"ForeachMulScalar", "ForeachMulScalarList", "ForeachMulList", "Mul"},
      {"ForeachDivScalar", "ForeachDivScalarList", "ForeachDivList", "RealDiv"},
      {"ForeachMaximumScalar", "ForeachMaximumScalarList", "ForeachMaximumList", "Maximum"},
      {"ForeachMinimumScalar", "ForeachMinimumScalarList", "ForeachMinimumList", "Minimum"},
      {"ForeachPowScalar", "ForeachPowScalarList", "ForeachPowList", "Pow"},
  };
  for (const Binary& b : binary) {
    rows.push_back({b.scalar, b.element, {{"x", "x1"}, {"scalar", "x2", kNumber}}});
    rows.push_back({b.scalars, b.element, {{"x", "x1"}, {"scalars", "x2", kNumbers}}});
    if (!b.list.empty()) rows.push_back({b.list, b.element, {{"x1", "x1"}, {"x2", "x2"}}});
  }
  const auto three = [](std::string_view type, std::string_view element, From from) {
    const std::string_view number = from == kNumber ? "scalar" : "scalars";
    return ForeachRow{
        type, element, {{"x1", "input_data"}, {"x2", "x1"}, {"x3", "x2"}, {number, "value", from}}};
  };
  const std::vector<ForeachRow> others = {
      {"ForeachAddList", "AxpyV2", {{"x1", "x1"}, {"x2", "x2"}, {"alpha", "alpha", kNumber}}},
      {"ForeachSubList", "Sxpy", {{"x1", "x1"}, {"x2", "x2"}, {"alpha", "alpha", kNumber}}},
      {"ForeachPowScalarAndTensor", "Pow", {{"scalar", "x1", kNumber}, {"x", "x2"}}},
      three("ForeachAddcmulScalar", "Addcmul", kNumber),
      three("ForeachAddcmulScalarList", "Addcmul", kNumbers),
      three("ForeachAddcmulList", "Addcmul", kNumbers),
      three("ForeachAddcdivScalar", "Addcdiv", kNumber),
      three("ForeachAddcdivScalarList", "Addcdiv", kNumbers),
      three("ForeachAddcdivList", "Addcdiv", kNumbers),
      {"ForeachLerpScalar",
       "Lerp",
       {{"x1", "start"}, {"x2", "end"}, {"weight", "weight", kNumber}}},
      {"ForeachLerpList", "Lerp", {{"x1", "start"}, {"x2", "end"}, {"weight", "weight", kNumbers}}},
      {"ForeachNorm", "Norm", {{"x", "x"}, {"scalar", "p", kNumber}}},
      {"ForeachRoundOffNumber", "RoundOff", {{"x", "x"}, {"roundMode", "mode", kNumber}}},
  };
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

// One member of the list: the element's operator on a node of its own.
struct Member {
  std::unique_ptr<Node> node;  // what `context` refers to
  OpContext context;
  std::vector<int> slots;         // of the Foreach operator, for each slot of the element
  std::vector<uint64_t> offsets;  // where in them, in bytes
};

int FirstList(const ForeachRow& row) {
  int at = 0;
  while (row.ports[static_cast<size_t>(at)].from != From::kList) ++at;
  return at;
}

Status CheckLists(const OpContext& op, const ForeachRow& row) {
  const int members = op.count(row.ports[static_cast<size_t>(FirstList(row))].port);
  for (const ForeachPort& port : row.ports) {
    const int64_t count =
        port.from == From::kList ? op.count(port.port) : op.in(port.port).shape.elements();
    const bool fits = port.from == From::kNumber    ? count == 1
                      : port.from == From::kNumbers ? count == members || count == 1
                                                    : count == members;
    if (fits) continue;
    return Error(Code::kInvalidArgument, "{}: \"{}\" has {} entries, the list has {}", op.Who(),
                 port.port, count, members);
  }
  if (op.outputs() == members) return Status();
  return Error(Code::kCorrupt, "{}: the node has {} outputs, the list {} tensors", op.Who(),
               op.outputs(), members);
}

Result<Member> MemberOf(const OpContext& op, const ForeachRow& row, const Operator& element,
                        int index) {
  Member member;
  member.node = std::make_unique<Node>();
  Node& node = *member.node;
  node.name = fmt::format("{}[{}]", op.node().name, index);
  node.type = element.schema.type;
  for (const ForeachPort& port : row.ports) {
    node.inputs.push_back(Value{0, static_cast<int>(node.inputs.size())});
    node.input_descs.emplace_back().name = port.element_port;
  }
  node.output_descs.emplace_back().name = element.schema.outputs[0].name;
  NPUMESH_ASSIGN_OR_RETURN(member.context, OpContext::Bind(node, element.schema));
  OpContext& context = member.context;
  context.set_threads(op.threads());
  for (int slot = 0; slot < context.slots(); ++slot) {
    const ForeachPort& port = row.ports[static_cast<size_t>(context.input_index(slot))];
    const bool list = port.from == From::kList;
    const int source = op.slot(port.port) + (list ? index : 0);
    const TensorType& type = op.in(source);
    const bool one = type.shape.is_static() && type.shape.elements() == 1;
    const int64_t place = port.from == From::kNumbers && !one ? index : 0;
    const Shape seen = !list ? Shape() : type.shape.rank() == 0 ? Shape({1}) : type.shape;
    context.set_in(slot, {type.dtype, seen});
    member.slots.push_back(source);
    member.offsets.push_back(static_cast<uint64_t>(place) *
                             static_cast<uint64_t>(BitsOf(type.dtype) / 8));
  }
  NPUMESH_RETURN_IF_ERROR(element.infer(context));
  return member;
}

Status InferForeach(OpContext& op, const ForeachRow& row, const Operator& element) {
  NPUMESH_RETURN_IF_ERROR(CheckLists(op, row));
  const int list = op.slot(row.ports[static_cast<size_t>(FirstList(row))].port);
  for (int i = 0; i < op.outputs(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const Member member, MemberOf(op, row, element, i));
    const TensorType &x = op.in(list + i), &y = member.context.out(0);
    if (y.dtype != x.dtype) {
      return Error(Code::kUnsupported, "{}: entry {} is {}, but the result would be {}", op.Who(),
                   i, x.ToString(), Name(y.dtype));
    }
    const bool scalar = x.shape.rank() == 0 && y.shape == Shape({1});
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, y.dtype, scalar ? x.shape : y.shape));
  }
  return Status();
}

class ForeachKernel final : public Kernel {
 public:
  void Add(Member member, std::unique_ptr<Kernel> kernel) {
    scratch_bytes_ = std::max(scratch_bytes_, kernel->scratch_bytes());
    in_.resize(std::max(in_.size(), member.slots.size()));
    members_.push_back(std::move(member));
    kernels_.push_back(std::move(kernel));
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  Status Run(const KernelArgs& args) override {
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      for (size_t slot = 0; slot < member.slots.size(); ++slot) {
        in_[slot] =
            static_cast<const std::byte*>(args.in[member.slots[slot]]) + member.offsets[slot];
      }
      void* out = args.out[i];
      NPUMESH_RETURN_IF_ERROR(kernels_[i]->Run({in_.data(), &out, args.scratch}));
    }
    return Status();
  }

 private:
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<const void*> in_;
  uint64_t scratch_bytes_ = 0;
};

Result<std::unique_ptr<Kernel>> MakeForeach(const OpContext& op, const ForeachRow& row,
                                            const Operator& element) {
  auto all = std::make_unique<ForeachKernel>();
  for (int i = 0; i < op.outputs(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(Member member, MemberOf(op, row, element, i));
    NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, element.make_kernel(member.context));
    all->Add(std::move(member), std::move(kernel));
  }
  return std::unique_ptr<Kernel>(std::move(all));
}

}  // namespace

void RegisterForeachOps(OpRegistry& registry) {
  OpRegistry own;
  RegisterForeachElements(own);
  for (const ForeachRow& made : Rows()) {
    const Operator* found = own.Find(made.element);
    if (found == nullptr) found = registry.Find(made.element);
    const auto row = std::make_shared<const ForeachRow>(made);
    const auto element = std::make_shared<const Operator>(*found);
    OpSchema schema;
    schema.type = row->type;
    for (const ForeachPort& port : row->ports) {
      const bool list = port.from == From::kList;
      schema.inputs.push_back({port.port, list ? PortKind::kDynamic : PortKind::kRequired});
    }
    schema.outputs = {{"y", PortKind::kDynamic}};
    registry.Add(
        {.schema = std::move(schema),
         .infer = [row, element](OpContext& op) { return InferForeach(op, *row, *element); },
         .make_kernel =
             [row, element](const OpContext& op) { return MakeForeach(op, *row, *element); }});
  }
}

}  // namespace npumesh
