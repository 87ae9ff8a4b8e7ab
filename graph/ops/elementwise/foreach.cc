// The Foreach family: an operator applied to every tensor of a list.
//
// Each row names an operator and what its inputs are: tensors of lists, one number for all, or one
// number of a tensor of them for each. The operator itself infers and computes; what is here hands
// it the parts. Numbers count as scalars and scalars of the lists as vectors of one element, so
// that the lists decide the types. Many have a second form, whose name ends in Inplace: it has no
// outputs and updates the first list.
#include "graph/ops/elementwise/foreach.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

enum class From : uint8_t { kList, kNumber, kNumbers };

// Input of the Foreach operator, which becomes the element's input at the same place.
struct ForeachPort {
  std::string_view port;
  From from = From::kList;
};

struct ForeachRow {
  std::string type;
  std::string_view element;
  std::vector<ForeachPort> ports;
  bool in_place = false;  // results go to the tensors of the first port, and there are no outputs
};

constexpr From kNumber = From::kNumber, kNumbers = From::kNumbers;

// A row, and the form that updates its first list where there is one.
enum class Forms : uint8_t { kOne, kBoth };

void AddRow(std::vector<ForeachRow>& rows, ForeachRow row, Forms forms = Forms::kOne) {
  if (forms == Forms::kBoth) rows.push_back({row.type + "Inplace", row.element, row.ports, true});
  rows.push_back(std::move(row));
}

void AddUnary(std::vector<ForeachRow>& rows) {
  const auto add = [&](std::string_view name, std::string_view element, Forms forms) {
    AddRow(rows, {"Foreach" + std::string(name), element, {{"x"}}}, forms);
  };
  for (const std::string_view name :
       {"Abs", "Cos", "Sin", "Tan", "Cosh", "Sinh", "Tanh", "Sqrt", "Neg", "Exp", "Expm1", "Log",
        "Log2", "Log10", "Log1p", "Reciprocal", "Sigmoid"}) {
    add(name, name, Forms::kBoth);
  }
  for (const std::string_view name : {"Acos", "Asin", "Atan", "Erf", "Erfc", "Sign"}) {
    add(name, name, Forms::kOne);
  }
  add("ACos", "Acos", Forms::kBoth);
  add("ASin", "Asin", Forms::kBoth);
  add("ATan", "Atan", Forms::kBoth);
  add("Copy", "TensorMove", Forms::kOne);
  rows.push_back({"ForeachZeroInplace", "ZerosLike", {{"x"}}, true});
}

void AddBinary(std::vector<ForeachRow>& rows) {
  struct Binary {
    std::string_view name, element;
    bool list;  // of two lists
  };
  constexpr Binary kBinary[] = {{"Add", "Add", false},        {"Sub", "Sub", false},
                                {"Mul", "Mul", true},         {"Div", "RealDiv", true},
                                {"Maximum", "Maximum", true}, {"Minimum", "Minimum", true},
                                {"Pow", "Pow", true}};
  for (const auto& [name, element, list] : kBinary) {
    const std::string type = "Foreach" + std::string(name);
    AddRow(rows, {type + "Scalar", element, {{"x"}, {"scalar", kNumber}}}, Forms::kBoth);
    AddRow(rows, {type + "ScalarList", element, {{"x"}, {"scalars", kNumbers}}}, Forms::kBoth);
    if (list) AddRow(rows, {type + "List", element, {{"x1"}, {"x2"}}}, Forms::kBoth);
  }
  const std::vector<ForeachPort> scaled = {{"x1"}, {"x2"}, {"alpha", kNumber}};
  AddRow(rows, {"ForeachAddList", "AxpyV2", scaled}, Forms::kBoth);
  AddRow(rows, {"ForeachSubList", "Sxpy", scaled}, Forms::kBoth);
  AddRow(rows, {"ForeachPowScalarAndTensor", "Pow", {{"scalar", kNumber}, {"x"}}});
}

// Operators of three lists, and the rest.
void AddOthers(std::vector<ForeachRow>& rows) {
  for (const std::string_view element : {"Addcmul", "Addcdiv"}) {
    const std::string type = "Foreach" + std::string(element);
    const auto add = [&](const char* ending, std::string_view number, From from) {
      AddRow(rows, {type + ending, element, {{"x1"}, {"x2"}, {"x3"}, {number, from}}});
    };
    add("Scalar", "scalar", kNumber);
    add("ScalarList", "scalars", kNumbers);
    add("List", "scalars", kNumbers);
  }
  AddRow(rows, {"ForeachLerpScalar", "Lerp", {{"x1"}, {"x2"}, {"weight", kNumber}}});
  AddRow(rows, {"ForeachLerpList", "Lerp", {{"x1"}, {"x2"}, {"weight", kNumbers}}});
  AddRow(rows, {"ForeachNorm", "Norm", {{"x"}, {"scalar", kNumber}}});
  AddRow(rows, {"ForeachRoundOffNumber", "RoundOff", {{"x"}, {"roundMode", kNumber}}});
}

// Inputs of an element: the ports of a row.
constexpr size_t kMostSlots = 4;

// One member of the list: the element's operator on a node that stands for it.
struct Member {
  std::unique_ptr<Node> node;  // what `context` refers to
  OpContext context;
  std::vector<int> slots;          // of the Foreach operator, for each slot of the element
  std::vector<uint64_t> offsets;   // where in them, in bytes
  std::unique_ptr<Kernel> kernel;  // when the operator is going to run
};

std::string_view FirstList(const ForeachRow& row) {
  size_t at = 0;
  while (row.ports[at].from != From::kList) ++at;
  return row.ports[at].port;
}

int Members(const OpContext& op, const ForeachRow& row) {
  return op.count(FirstList(row));
}

void CheckLists(const OpContext& op, const ForeachRow& row, Check& check) {
  const int members = Members(op, row);
  for (const auto& [port, from] : row.ports) {
    const int64_t count = from == From::kList ? op.count(port) : op.in(port).shape.elements();
    const bool one = count == 1 && from != From::kList, all = count == members && from != kNumber;
    check.That(one || all, "\"{}\" has {} entries, the list has {}", port, count, members);
  }
  check.Consistent(op.outputs() == (row.in_place ? 0 : members),
                   "the node has {} outputs, the list {} tensors{}", op.outputs(), members,
                   row.in_place ? ", which it updates" : "");
}

Result<Member> MemberOf(const OpContext& op, const ForeachRow& row, const Operator& element,
                        int index) {
  Member member;
  member.node = std::make_unique<Node>();
  Node& node = *member.node;
  node.name = fmt::format("{}[{}]", op.node().name, index);
  node.type = element.schema.type;
  for (size_t i = 0; i < row.ports.size(); ++i) {
    node.inputs.push_back(Value{0, static_cast<int>(i)});
    node.input_descs.emplace_back().name = element.schema.inputs[i].name;
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

struct ForeachPlan : Planned {
  int updated = -1;  // slot of the first tensor that is updated; -1: results are outputs
  std::vector<Member> members;
};

ForeachPlan PlanForeach(const OpContext& op, const ForeachRow& row, const Operator& element,
                        Check& check) {
  ForeachPlan plan;
  CheckLists(op, row, check);
  const int list = op.slot(FirstList(row));
  if (row.in_place) plan.updated = list;
  for (int i = 0; check.ok() && i < Members(op, row); ++i) {
    plan.members.push_back(check.Take(MemberOf(op, row, element, i)));
    if (!check.ok()) break;
    const TensorType &x = op.in(list + i), &y = plan.members.back().context.out(0);
    check.Supported(y.dtype == x.dtype, "entry {} is {}, but the result would be {}", i, x,
                    Name(y.dtype));
    const bool scalar = x.shape.rank() == 0 && y.shape == Shape({1});
    const Shape& shape = scalar ? x.shape : y.shape;
    check.That(!row.in_place || shape == x.shape,
               "entry {} is {}, which cannot hold a result of {}", i, x, y);
    if (!row.in_place) plan.outputs.push_back({y.dtype, shape});
  }
  return plan;
}

Status RunForeach(const ForeachPlan& plan, const KernelArgs& args) {
  const void* in[kMostSlots] = {};
  for (size_t i = 0; i < plan.members.size(); ++i) {
    const Member& member = plan.members[i];
    for (size_t slot = 0; slot < member.slots.size(); ++slot) {
      in[slot] = static_cast<const std::byte*>(args.in[member.slots[slot]]) + member.offsets[slot];
    }
    // An operator that updates an input owns its storage while it runs (Operator::in_place).
    void* out = plan.updated < 0
                    ? args.out[i]
                    : const_cast<void*>(args.in[static_cast<size_t>(plan.updated) + i]);  // NOLINT
    NPUMESH_RETURN_IF_ERROR(member.kernel->Run({in, &out, args.scratch}));
  }
  return Status();
}

// A row and what it applies: one operator, or those that the attribute `op_code` names.
struct Applied {
  ForeachRow row;
  std::vector<Operator> elements;

  Result<ForeachPlan> Plan(const OpContext& op) const {
    Check check(op);
    if (elements.size() > 1) check.OneOf("op_code", {0, 1, 2, 3});
    if (!check.ok()) return check.status();
    return check.Done(PlanForeach(op, row, ElementOf(op), check));
  }
  const Operator& ElementOf(const OpContext& op) const {
    return elements[elements.size() == 1 ? 0 : static_cast<size_t>(op.attr_int("op_code"))];
  }
};

Result<std::unique_ptr<Kernel>> MakeForeach(const OpContext& op, const Applied& applied) {
  NPUMESH_ASSIGN_OR_RETURN(ForeachPlan plan, applied.Plan(op));
  const Operator& element = applied.ElementOf(op);
  uint64_t scratch = 0;
  for (Member& member : plan.members) {
    NPUMESH_ASSIGN_OR_RETURN(member.kernel, element.make_kernel(member.context));
    scratch = std::max(scratch, member.kernel->scratch_bytes());
  }
  plan.scratch.Take<std::byte>(static_cast<int64_t>(scratch));
  return std::unique_ptr<Kernel>(
      std::make_unique<define::PlannedKernel<ForeachPlan, RunForeach>>(std::move(plan)));
}

// Tensors of one shape are one walk.
constexpr size_t kMostMembers = 32;

void LoopForeach(const OpContext& op, LoopBuilder& loop, const Applied& applied) {
  const Result<ForeachPlan> plan = applied.Plan(op);
  if (!plan.ok()) return;
  if (plan->members.size() > kMostMembers) {
    loop.Refuse("its list has more than 32 tensors");
    return;
  }
  for (size_t i = 0; i < plan->members.size(); ++i) {
    const Member& member = plan->members[i];
    if (op.out(static_cast<int>(i)).shape != op.out(0).shape) {
      loop.Refuse("the tensors of its list have several shapes");
      return;
    }
    std::vector<LoopBuilder::Operand> operands;
    for (size_t slot = 0; slot < member.slots.size(); ++slot) {
      const auto width = BitsOf(member.context.in(static_cast<int>(slot)).dtype) / 8;
      operands.push_back({member.slots[slot], static_cast<int64_t>(member.offsets[slot]) / width});
    }
    const Operator& element = applied.ElementOf(op);
    const LoopValue y = loop.Apply(member.context, element.loop, operands);
    if (y < 0) return;
    loop.Give(static_cast<int>(i), y);
  }
}

// Its type is a view into the row.
OpSchema SchemaOf(const ForeachRow& row) {
  OpSchema schema;
  schema.type = row.type;
  for (const ForeachPort& port : row.ports) {
    const bool list = port.from == From::kList;
    schema.inputs.push_back({port.port, list ? PortKind::kDynamic : PortKind::kRequired});
  }
  if (!row.in_place) schema.outputs = {{"y", PortKind::kDynamic}};
  return schema;
}

// `elements` are names of `own` or of the registry.
void AddForeach(OpRegistry& registry, const OpRegistry& own, ForeachRow row,
                const std::vector<std::string_view>& elements) {
  auto made = std::make_shared<Applied>();
  made->row = std::move(row);
  for (const std::string_view element : elements) {
    const Operator* found = own.Find(element);
    made->elements.push_back(found != nullptr ? *found : *registry.Find(element));
  }
  const std::shared_ptr<const Applied> applied = std::move(made);
  Operator op;
  op.schema = SchemaOf(applied->row);
  if (elements.size() > 1) op.schema.attrs = {{"op_code", Required::kInt}};
  if (applied->row.in_place) op.in_place = {{0, 0}};
  op.infer = [applied](OpContext& context) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const ForeachPlan plan, applied->Plan(context));
    return define::SetOutputs(context, plan.outputs);
  };
  op.make_kernel = [applied](const OpContext& context) { return MakeForeach(context, *applied); };
  const bool have_loops =
      std::all_of(applied->elements.begin(), applied->elements.end(),
                  [](const Operator& element) { return element.loop != nullptr; });
  if (have_loops && !applied->row.in_place) {
    op.loop = [applied](const OpContext& context, LoopBuilder& loop) {
      LoopForeach(context, loop, *applied);
    };
  }
  registry.Add(std::move(op));
}

}  // namespace

void DeriveForeachOps(OpRegistry& registry) {
  OpRegistry own;
  RegisterForeachElements(own);
  std::vector<ForeachRow> rows;
  AddUnary(rows);
  AddBinary(rows);
  AddOthers(rows);
  for (const ForeachRow& row : rows) AddForeach(registry, own, row, {row.element});
  // An integer quotient is cut, and 0 for 0 below.
  AddForeach(registry, own, {"ForeachBinaryOp", {}, {{"x1"}, {"x2"}}},
             {"Add", "Sub", "Mul", "Quotient"});
}

}  // namespace npumesh
