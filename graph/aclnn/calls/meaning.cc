#include "graph/aclnn/calls/meaning.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>

#include "graph/aclnn/calls/promotion.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/partial_inference.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

// A tensor on the way.
struct Computed {
  Value value;
  TensorType type;
};

// What an expression is.
struct Held {
  std::variant<std::monostate, Computed, std::vector<Held>, AclnnScalar, int64_t, double, bool,
               std::string, DataType>
      is;

  bool none() const { return std::holds_alternative<std::monostate>(is); }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&is);
  }
};

using List = std::vector<Held>;

Held HeldList(List list) {
  return Held{std::move(list)};
}

template <typename T>
List ListOf(const std::vector<T>& values) {
  List list;
  for (const auto& value : values) list.push_back(Held{static_cast<T>(value)});
  return list;
}

Status Wrong(std::string text) {
  return Error(Code::kInvalidArgument, "{}", text);
}
// A row of the table is wrong.
Status Slip(std::string_view text) {
  return Error(Code::kInternal, "the table of aclnn functions: {}", text);
}

// ---- Numbers ----

std::optional<double> Real(const Held& held) {
  if (const auto* scalar = held.get<AclnnScalar>()) return scalar->real;
  if (const auto* integer = held.get<int64_t>()) return static_cast<double>(*integer);
  if (const auto* real = held.get<double>()) return *real;
  if (const auto* truth = held.get<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<int64_t> Integer(const Held& held) {
  if (const auto* integer = held.get<int64_t>()) return *integer;
  if (const auto* truth = held.get<bool>()) return *truth ? 1 : 0;
  if (const auto* scalar = held.get<AclnnScalar>()) {
    return scalar->is_integer ? scalar->integer : static_cast<int64_t>(scalar->real);
  }
  return std::nullopt;
}

bool IsInteger(const Held& held) {
  const auto* scalar = held.get<AclnnScalar>();
  return held.get<int64_t>() != nullptr || held.get<bool>() != nullptr ||
         (scalar != nullptr && scalar->is_integer);
}

bool Truth(const Held& held) {
  return !held.none() && Real(held).value_or(1) != 0;
}

// Of the first element of a list.
DataType TypeOf(const Held& held) {
  if (const auto* tensor = held.get<Computed>()) return tensor->type.dtype;
  if (const auto* scalar = held.get<AclnnScalar>()) return scalar->dtype;
  if (const auto* type = held.get<DataType>()) return *type;
  if (const auto* list = held.get<List>()) {
    return list->empty() ? DataType::kUndefined : TypeOf(list->front());
  }
  return IsInteger(held) ? DataType::kInt64 : DataType::kFloat;
}

// The bytes of a number in an element type.
template <typename T>
std::string BytesOfNumber(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

Result<std::string> Encode(const Held& number, DataType dtype) {
  if (!Real(number)) return Slip("a number is expected");
  const double real = *Real(number);
  const int64_t integer = IsInteger(number) ? *Integer(number) : static_cast<int64_t>(real);
  if (dtype == DataType::kBool) return BytesOfNumber(static_cast<uint8_t>(real != 0 ? 1 : 0));
  const auto* scalar = number.get<AclnnScalar>();
  const double imaginary = scalar == nullptr ? 0 : scalar->imaginary;
  if (dtype == DataType::kComplex64) {
    return BytesOfNumber(static_cast<float>(real)) + BytesOfNumber(static_cast<float>(imaginary));
  }
  if (dtype == DataType::kComplex128) return BytesOfNumber(real) + BytesOfNumber(imaginary);
  return VisitStored(
      dtype,
      [&]<typename T>() -> Result<std::string> {
        if constexpr (std::integral<T>) {
          return BytesOfNumber(static_cast<T>(integer));
        } else if constexpr (StoredHalf<T>) {
          return BytesOfNumber(T(static_cast<float>(real)));
        } else {
          return BytesOfNumber(static_cast<T>(real));
        }
      },
      [&]() -> Result<std::string> {
        return Error(Code::kUnsupported, "a number of type {}", Name(dtype));
      });
}

// ---- Evaluation ----

class Evaluator {
 public:
  explicit Evaluator(const AclnnTable& table) : table_(table), builder_("aclnn") {}

  Result<AclnnMeaning> Evaluate(const AclnnFunction& function,
                                const std::vector<AclnnArgument>& arguments);

 private:
  // The names that a row sees.
  struct Scope {
    std::map<std::string, Held, std::less<>> names;
    std::map<std::string, size_t, std::less<>> written;  // parameters of the outermost function
  };
  using Call = const AclnnExpr&;
  using Function = Result<Held> (Evaluator::*)(const Scope&, Call);

  Held Enter(const AclnnFunction& function, size_t param, const AclnnArgument& argument);
  void DropUnread();
  Computed AddInput(const std::string& name, TensorType type, AclnnPlace place);
  Status Run(const AclnnFunction& function, Scope& scope);
  Status RunRow(const AclnnExpr& call, Scope& scope);
  Status Assign(Scope& scope, const std::string& target, Held value);
  Status Write(size_t param, const Held& value);
  Status WriteOne(AclnnPlace place, const std::string& name, const TensorType& type, Held value);

  Result<Held> Eval(const Scope& scope, const AclnnExpr& expr);
  Result<Held> EvalBinary(const Scope& scope, const AclnnExpr& expr);
  Result<Held> EvalElement(const Scope& scope, const AclnnExpr& expr);
  Result<Held> EvalCall(const Scope& scope, const AclnnExpr& expr);
  Result<List> EvalAll(const Scope& scope, const std::vector<AclnnExpr>& exprs);

  Result<Held> AddOperator(const Scope& scope, const AclnnExpr& expr, const Operator& op);
  Result<List> AddNode(const Operator& op, const std::vector<GraphBuilder::Input>& inputs,
                       std::vector<GraphBuilder::Attr> attrs, int outputs);
  // A node with one output, whose inputs stand in the order of its operator's ports.
  Result<Computed> AddOne(std::string_view type, const std::vector<Computed>& inputs,
                          std::vector<GraphBuilder::Attr> attrs = {});
  Result<Computed> Constant(TensorType type, std::string bytes);
  Result<Computed> Number(const Held& number, DataType dtype);
  Result<Computed> Ints(const std::vector<int64_t>& values, bool vector, DataType dtype);
  Result<Computed> TensorOf(const Held& held, DataType like);
  Result<Computed> Scalars(const List& list, DataType like);
  Result<Computed> Cast(Computed x, DataType dtype);
  Result<Computed> Reshaped(const Computed& x, const std::vector<int64_t>& dims);

  Result<Computed> NeedTensor(const Scope& scope, Call call, size_t index);
  Result<std::vector<int64_t>> NeedInts(const Scope& scope, Call call, size_t index);
  Result<Held> Need(const Scope& scope, Call call, size_t index);

  Result<Held> DoPromote(const Scope& scope, Call call);
  Result<Held> DoCast(const Scope& scope, Call call);
  Result<Held> DoReal(const Scope& scope, Call call);
  Result<Held> DoScaled(const Scope& scope, Call call);
  Result<Held> DoNumber(const Scope& scope, Call call);
  Result<Held> DoConst(const Scope& scope, Call call);
  template <DataType kType>
  Result<Held> DoInts(const Scope& scope, Call call);
  Result<Held> DoFill(const Scope& scope, Call call);
  Result<Held> DoShape(const Scope& scope, Call call);
  Result<Held> DoSize(const Scope& scope, Call call);
  Result<Held> DoRank(const Scope& scope, Call call);
  Result<Held> DoCount(const Scope& scope, Call call);
  Result<Held> DoType(const Scope& scope, Call call);
  Result<Held> DoAxis(const Scope& scope, Call call);
  Result<Held> DoAxes(const Scope& scope, Call call);
  Result<Held> DoReshape(const Scope& scope, Call call);
  Result<Held> DoTranspose(const Scope& scope, Call call);
  Result<Held> DoBroadcast(const Scope& scope, Call call);
  Result<Held> DoHas(const Scope& scope, Call call);
  Result<Held> DoIsReal(const Scope& scope, Call call);
  Result<Held> DoIsBool(const Scope& scope, Call call);
  Result<Held> DoFrontAndBack(const Scope& scope, Call call);
  Result<Held> DoRefuse(const Scope& scope, Call call);
  Result<Held> DoLength(const Scope& scope, Call call);
  Result<Held> DoOnes(const Scope& scope, Call call);
  Result<Held> DoFull(const Scope& scope, Call call);
  Result<Held> DoZeros(const Scope& scope, Call call);
  Result<Held> DoWide(const Scope& scope, Call call);
  Result<Held> DoSingle(const Scope& scope, Call call);
  Result<Held> DoIsComplex(const Scope& scope, Call call);
  Result<Held> DoLarger(const Scope& scope, Call call);
  Result<Held> DoPlace(const Scope& scope, Call call);
  Result<Held> DoFits(const Scope& scope, Call call);
  Result<Held> DoOnly(const Scope& scope, Call call);
  template <bool kUpper>
  Result<Held> DoLimit(const Scope& scope, Call call);
  Result<Held> DoWholeBelow(const Scope& scope, Call call);
  Result<Held> DoFirst(const Scope& scope, Call call);
  Result<Held> DoFrom(const Scope& scope, Call call);
  Result<Held> DoDoubled(const Scope& scope, Call call);
  Result<Held> DoPieces(const Scope& scope, Call call);
  Result<Held> DoWithout(const Scope& scope, Call call);
  Result<Held> DoResized(const Scope& scope, Call call);
  Result<Held> DoBatch(const Scope& scope, Call call);
  Result<Held> DoPresent(const Scope& scope, Call call);
  Result<Held> DoPresence(const Scope& scope, Call call);
  Result<Held> DoBeside(const Scope& scope, Call call);
  Result<Held> DoOnAxis(const Scope& scope, Call call);
  Result<Held> DoAlong(const Scope& scope, Call call);
  Result<Held> DoCut(const Scope& scope, Call call);
  Result<Computed> Broadcast(const Computed& x, const std::vector<int64_t>& dims);
  Result<Held> Filled(const Held& number, const std::vector<int64_t>& dims, DataType dtype);
  static const std::map<std::string_view, Function>& Functions();

  const AclnnTable& table_;
  GraphBuilder builder_;
  std::map<Value, Tensor> constants_;  // that inference may ask for
  std::map<Value, TensorType> types_;
  const AclnnFunction* function_ = nullptr;  // the outermost one
  const std::vector<AclnnArgument>* arguments_ = nullptr;
  std::vector<Value> results_;
  int operators_ = 0;      // so far
  bool promotes_ = false;  // the row
  AclnnMeaning meaning_;
};

Result<AclnnMeaning> Evaluator::Evaluate(const AclnnFunction& function,
                                         const std::vector<AclnnArgument>& arguments) {
  function_ = &function;
  arguments_ = &arguments;
  Scope scope;
  for (size_t i = 0; i < function.params.size(); ++i) {
    scope.names[function.params[i].name] = Enter(function, i, arguments[i]);
    if (function.params[i].written) scope.written[function.params[i].name] = i;
  }
  NPUMESH_RETURN_IF_ERROR(Run(function, scope));
  builder_.Output(results_);
  NPUMESH_ASSIGN_OR_RETURN(meaning_.model, builder_.Build());
  DropUnread();
  return std::move(meaning_);
}

// Of what is only written, and of what only the shape counts, the graph needs no input.
void Evaluator::DropUnread() {
  Graph& graph = meaning_.model.graph;
  std::vector<bool> read(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    for (const auto& input : node.inputs) {
      if (input) read[static_cast<size_t>(input->node)] = true;
    }
  }
  std::vector<AclnnPlace> kept;
  const std::vector<NodeId> inputs = graph.DataNodes();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!read[static_cast<size_t>(inputs[i])]) {
      graph.Remove(inputs[i]);
      continue;
    }
    graph.node(inputs[i]).attrs.insert_or_assign("index",
                                                 AttrValue::Int(static_cast<int64_t>(kept.size())));
    kept.push_back(meaning_.inputs[i]);
  }
  meaning_.inputs = std::move(kept);
}

Computed Evaluator::AddInput(const std::string& name, TensorType type, AclnnPlace place) {
  meaning_.inputs.push_back(place);
  const Value value = builder_.Data(name, type);
  builder_.Declare(value, type.dtype);
  types_[value] = type;
  return {value, std::move(type)};
}

Held Evaluator::Enter(const AclnnFunction& function, size_t param, const AclnnArgument& argument) {
  const std::string& name = function.params[param].name;
  struct Visitor {
    Evaluator& evaluator;
    const std::string& name;
    size_t param;
    Held operator()(std::monostate) const { return {}; }
    Held operator()(const TensorType& type) const {
      return Held{evaluator.AddInput(name, type, {param, 0})};
    }
    Held operator()(const std::vector<TensorType>& types) const {
      List list;
      for (size_t i = 0; i < types.size(); ++i) {
        list.push_back(
            Held{evaluator.AddInput(fmt::format("{}_{}", name, i), types[i], {param, i})});
      }
      return HeldList(std::move(list));
    }
    Held operator()(const AclnnScalar& scalar) const { return Held{scalar}; }
    Held operator()(const std::vector<AclnnScalar>& scalars) const {
      return HeldList(ListOf(scalars));
    }
    Held operator()(const std::vector<int64_t>& values) const { return HeldList(ListOf(values)); }
    Held operator()(const std::vector<double>& values) const { return HeldList(ListOf(values)); }
    Held operator()(const std::vector<bool>& values) const { return HeldList(ListOf(values)); }
    Held operator()(int64_t value) const { return Held{value}; }
    Held operator()(double value) const { return Held{value}; }
    Held operator()(bool value) const { return Held{value}; }
    Held operator()(const std::string& value) const { return Held{value}; }
    Held operator()(DataType value) const { return Held{value}; }
  };
  return std::visit(Visitor{*this, name, param}, argument);
}

Status Evaluator::Run(const AclnnFunction& function, Scope& scope) {
  for (const AclnnStatement& statement : function.body) {
    if (statement.targets.empty() && Functions().count(statement.value.text) == 0) {
      NPUMESH_RETURN_IF_ERROR(RunRow(statement.value, scope));
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(Held value, Eval(scope, statement.value));
    if (statement.targets.empty()) continue;
    if (statement.targets.size() == 1) {
      NPUMESH_RETURN_IF_ERROR(Assign(scope, statement.targets[0], std::move(value)));
      continue;
    }
    const List* list = value.get<List>();
    if (list == nullptr || list->size() < statement.targets.size()) {
      return Slip(fmt::format("{} has too few values for {}", function.name,
                              fmt::join(statement.targets, ", ")));
    }
    for (size_t i = 0; i < statement.targets.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(Assign(scope, statement.targets[i], (*list)[i]));
    }
  }
  return Status();
}

// Another row, with the arguments as its parameters. What it writes must be written by this one.
Status Evaluator::RunRow(const AclnnExpr& call, Scope& scope) {
  const AclnnFunction* const row = table_.Find(call.text);
  if (row == nullptr || call.children.size() != row->params.size()) {
    return Slip(fmt::format("no row {} with {} parameters", call.text, call.children.size()));
  }
  Scope inner;
  for (size_t i = 0; i < row->params.size(); ++i) {
    const AclnnExpr& argument = call.children[i];
    NPUMESH_ASSIGN_OR_RETURN(inner.names[row->params[i].name], Eval(scope, argument));
    const auto written = scope.written.find(argument.text);
    if (row->params[i].written && argument.kind == AclnnExpr::Kind::kName &&
        written != scope.written.end()) {
      inner.written[row->params[i].name] = written->second;
    }
  }
  return Run(*row, inner);
}

Status Evaluator::Assign(Scope& scope, const std::string& target, Held value) {
  const auto written = scope.written.find(target);
  if (written != scope.written.end()) return Write(written->second, value);
  scope.names[target] = std::move(value);
  return Status();
}

Status Evaluator::Write(size_t param, const Held& value) {
  const std::string& name = function_->params[param].name;
  const AclnnArgument& argument = (*arguments_)[param];
  if (std::holds_alternative<std::monostate>(argument) || value.none()) return Status();
  if (const auto* type = std::get_if<TensorType>(&argument)) {
    return WriteOne({param, 0}, name, *type, value);
  }
  const auto* const types = std::get_if<std::vector<TensorType>>(&argument);
  const List* const list = value.get<List>();
  if (types == nullptr || list == nullptr || list->size() != types->size()) {
    return Wrong(fmt::format("{} has {} tensors, expected {}", name,
                             types == nullptr ? 0 : types->size(),
                             list == nullptr ? 1 : list->size()));
  }
  for (size_t i = 0; i < types->size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(
        WriteOne({param, i}, fmt::format("{}[{}]", name, i), (*types)[i], (*list)[i]));
  }
  return Status();
}

// Clients give results dimensions of 1 more or less than the function says, as devices take them.
std::vector<int64_t> WithoutOnes(const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  std::erase(dims, 1);
  return dims;
}

Status Evaluator::WriteOne(AclnnPlace place, const std::string& name, const TensorType& type,
                           Held value) {
  if (const List* list = value.get<List>(); list != nullptr && !list->empty()) {
    value = Held((*list)[0]);
  }
  NPUMESH_ASSIGN_OR_RETURN(Computed result, TensorOf(value, type.dtype));
  const bool open = function_->params[place.param].open;
  if (!open && result.type.shape != type.shape &&
      WithoutOnes(result.type.shape) == WithoutOnes(type.shape)) {
    NPUMESH_ASSIGN_OR_RETURN(result, Reshaped(result, type.shape.dims()));
  }
  if (!open && result.type.shape != type.shape) {
    return Wrong(fmt::format("{} is {}, expected {}", name, type, result.type.shape.ToString()));
  }
  if (promotes_ && !CanCast(result.type.dtype, type.dtype)) {
    return Wrong(fmt::format("result type {} can't be cast to the desired output type {} of {}",
                             TorchName(result.type.dtype), TorchName(type.dtype), name));
  }
  NPUMESH_ASSIGN_OR_RETURN(result, Cast(std::move(result), type.dtype));
  results_.push_back(result.value);
  meaning_.outputs.push_back(place);
  return Status();
}

// ---- Expressions ----

Result<List> Evaluator::EvalAll(const Scope& scope, const std::vector<AclnnExpr>& exprs) {
  List list;
  for (const AclnnExpr& expr : exprs) {
    NPUMESH_ASSIGN_OR_RETURN(Held held, Eval(scope, expr));
    list.push_back(std::move(held));
  }
  return list;
}

Result<Held> Evaluator::Eval(const Scope& scope, const AclnnExpr& expr) {
  switch (expr.kind) {
    case AclnnExpr::Kind::kInteger:
      return Held{expr.integer};
    case AclnnExpr::Kind::kReal:
      return Held{expr.real};
    case AclnnExpr::Kind::kText:
      return Held{expr.text};
    case AclnnExpr::Kind::kName: {
      if (expr.text == "none") return Held{};
      if (expr.text == "true" || expr.text == "false") return Held{expr.text == "true"};
      if (const auto type = DataTypeFromName(expr.text)) return Held{*type};
      const auto found = scope.names.find(expr.text);
      if (found == scope.names.end()) return Slip(fmt::format("no name {}", expr.text));
      return found->second;
    }
    case AclnnExpr::Kind::kList: {
      NPUMESH_ASSIGN_OR_RETURN(List list, EvalAll(scope, expr.children));
      return HeldList(std::move(list));
    }
    case AclnnExpr::Kind::kCall:
      return EvalCall(scope, expr);
    case AclnnExpr::Kind::kUnary: {
      NPUMESH_ASSIGN_OR_RETURN(const Held of, Eval(scope, expr.children[0]));
      if (expr.text == "not") return Held{!Truth(of)};
      if (IsInteger(of)) return Held{-*Integer(of)};
      if (const auto real = Real(of)) return Held{-*real};
      return Slip("the sign of what is no number");
    }
    case AclnnExpr::Kind::kBinary:
      return EvalBinary(scope, expr);
    case AclnnExpr::Kind::kCondition: {
      NPUMESH_ASSIGN_OR_RETURN(const Held condition, Eval(scope, expr.children[0]));
      return Eval(scope, expr.children[Truth(condition) ? 1 : 2]);
    }
    case AclnnExpr::Kind::kElement:
      return EvalElement(scope, expr);
  }
  return Slip("an unknown expression");
}

// Two lists one behind the other, or whether their numbers are the same.
Result<Held> OfLists(List left, const Held& right, std::string_view sign) {
  const List* const other = right.get<List>();
  if (sign == "+") {
    if (other != nullptr) left.insert(left.end(), other->begin(), other->end());
    return HeldList(std::move(left));
  }
  if (sign != "==" && sign != "!=") return Slip(fmt::format("{} of lists", sign));
  const bool equal = other != nullptr &&
                     std::equal(left.begin(), left.end(), other->begin(), other->end(),
                                [](const Held& a, const Held& b) { return Real(a) == Real(b); });
  return Held{equal == (sign == "==")};
}

Result<Held> Evaluator::EvalBinary(const Scope& scope, const AclnnExpr& expr) {
  NPUMESH_ASSIGN_OR_RETURN(const Held left, Eval(scope, expr.children[0]));
  if (expr.text == "and" && !Truth(left)) return Held{false};
  if (expr.text == "or" && Truth(left)) return Held{true};
  NPUMESH_ASSIGN_OR_RETURN(const Held right, Eval(scope, expr.children[1]));
  if (expr.text == "and" || expr.text == "or") return Held{Truth(right)};
  if (const List* list = left.get<List>()) return OfLists(*list, right, expr.text);
  if (const auto* text = left.get<std::string>()) {
    const auto* other = right.get<std::string>();
    const bool equal = other != nullptr && *text == *other;
    return Held{expr.text == "==" ? equal : !equal};
  }
  if (const auto* type = left.get<DataType>()) {
    const auto* other = right.get<DataType>();
    const bool equal = other != nullptr && *type == *other;
    return Held{expr.text == "==" ? equal : !equal};
  }
  const auto a = Real(left), b = Real(right);
  if (!a || !b) return Slip(fmt::format("{} of what is no number", expr.text));
  if (expr.text == "==") return Held{*a == *b};
  if (expr.text == "!=") return Held{*a != *b};
  if (expr.text == "<") return Held{*a < *b};
  if (expr.text == "<=") return Held{*a <= *b};
  if (expr.text == ">") return Held{*a > *b};
  if (expr.text == ">=") return Held{*a >= *b};
  if (expr.text == "/") return Held{*a / *b};
  if (IsInteger(left) && IsInteger(right)) {
    const int64_t x = *Integer(left), y = *Integer(right);
    if (expr.text == "+") return Held{x + y};
    if (expr.text == "-") return Held{x - y};
    if (expr.text == "*") return Held{x * y};
    if (y == 0) return Wrong("a division by 0");
    return Held{expr.text == "%" ? x % y : x / y};
  }
  if (expr.text == "+") return Held{*a + *b};
  if (expr.text == "-") return Held{*a - *b};
  if (expr.text == "*") return Held{*a * *b};
  return Held{std::floor(*a / *b)};
}

Result<Held> Evaluator::EvalElement(const Scope& scope, const AclnnExpr& expr) {
  NPUMESH_ASSIGN_OR_RETURN(const Held of, Eval(scope, expr.children[0]));
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Eval(scope, expr.children[1]));
  const List* const list = of.get<List>();
  const auto index = Integer(which);
  if (list == nullptr || !index) return Slip("an element of what is no list");
  const auto size = static_cast<int64_t>(list->size());
  const int64_t place = *index < 0 ? *index + size : *index;
  if (place < 0 || place >= size) {
    return Wrong(fmt::format("{} has {} elements, expected more", expr.children[0].text, size));
  }
  return (*list)[static_cast<size_t>(place)];
}

Result<Held> Evaluator::EvalCall(const Scope& scope, const AclnnExpr& expr) {
  const auto& functions = Functions();
  if (const auto found = functions.find(expr.text); found != functions.end()) {
    return (this->*found->second)(scope, expr);
  }
  const Operator* const op = BuiltinOps().Find(expr.text);
  if (op == nullptr) return Slip(fmt::format("no operator or function {}", expr.text));
  return AddOperator(scope, expr, *op);
}

// ---- Nodes ----

Result<AttrValue> AttrOf(const std::string& name, const Held& held, const AttrSpec& spec) {
  const AttrValue& pattern = spec.pattern;
  if (pattern.get<std::string>() != nullptr) {
    const auto* const text = held.get<std::string>();
    if (text == nullptr) return Slip(fmt::format("attribute {} takes a text", name));
    return AttrValue::String(*text);
  }
  if (const auto* list = held.get<List>()) {
    const auto* kind = pattern.get<ListAttr>();
    if (kind != nullptr && kind->kind == ListKind::kFloat) {
      std::vector<float> values;
      for (const Held& value : *list) values.push_back(static_cast<float>(Real(value).value_or(0)));
      return AttrValue::Floats(std::move(values));
    }
    if (kind != nullptr && kind->kind == ListKind::kBool) {
      std::vector<bool> values;
      for (const Held& value : *list) values.push_back(Truth(value));
      return AttrValue::Bools(std::move(values));
    }
    std::vector<int64_t> values;
    for (const Held& value : *list) values.push_back(Integer(value).value_or(0));
    return AttrValue::Ints(std::move(values));
  }
  if (const auto* type = held.get<DataType>()) {
    const auto number = static_cast<int64_t>(*type);
    if (pattern.get<int64_t>() != nullptr) return AttrValue::Int(number);
    return AttrValue(AttrValue::Variant(DataTypeAttr{number}));
  }
  const auto real = Real(held);
  if (!real) return Slip(fmt::format("attribute {} of no known kind", name));
  if (pattern.get<float>() != nullptr) return AttrValue::Float(static_cast<float>(*real));
  if (pattern.get<bool>() != nullptr) return AttrValue::Bool(*real != 0);
  if (pattern.get<int64_t>() != nullptr || IsInteger(held)) return AttrValue::Int(*Integer(held));
  return AttrValue::Float(static_cast<float>(*real));
}

Result<Held> Evaluator::AddOperator(const Scope& scope, const AclnnExpr& expr, const Operator& op) {
  NPUMESH_ASSIGN_OR_RETURN(const List operands, EvalAll(scope, expr.children));
  if (operands.size() > op.schema.inputs.size()) {
    return Slip(fmt::format("{} has {} inputs", expr.text, op.schema.inputs.size()));
  }
  // Numbers beside tensors take their type.
  DataType like = DataType::kFloat;
  for (const Held& operand : operands) {
    const List* const list = operand.get<List>();
    const Held* const first = list != nullptr && !list->empty() ? list->data() : &operand;
    if (const auto* tensor = first->get<Computed>()) {
      like = tensor->type.dtype;
      break;
    }
  }
  std::vector<GraphBuilder::Input> inputs;
  size_t elements = 1;
  for (size_t i = 0; i < operands.size(); ++i) {
    const PortSpec& port = op.schema.inputs[i];
    if (operands[i].none()) continue;
    if (port.kind == PortKind::kDynamic) {
      const List* const list = operands[i].get<List>();
      if (list == nullptr) return Slip(fmt::format("{} of {} takes a list", port.name, expr.text));
      elements = std::max(elements, list->size());
      for (size_t j = 0; j < list->size(); ++j) {
        NPUMESH_ASSIGN_OR_RETURN(const Computed element, TensorOf((*list)[j], like));
        inputs.emplace_back(fmt::format("{}{}", port.name, j), element.value);
      }
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const Computed tensor, TensorOf(operands[i], like));
    inputs.emplace_back(std::string(port.name), tensor.value);
  }
  std::vector<GraphBuilder::Attr> attrs;
  std::optional<int64_t> told;
  for (const auto& [name, value] : expr.named) {
    if (name == "outputs") {
      NPUMESH_ASSIGN_OR_RETURN(const Held count, Eval(scope, value));
      told = Integer(count);
      continue;
    }
    const auto spec = std::find_if(op.schema.attrs.begin(), op.schema.attrs.end(),
                                   [&](const AttrSpec& known) { return known.name == name; });
    if (spec == op.schema.attrs.end()) {
      return Slip(fmt::format("{} has no attribute {}", expr.text, name));
    }
    NPUMESH_ASSIGN_OR_RETURN(const Held held, Eval(scope, value));
    if (held.none()) continue;
    NPUMESH_ASSIGN_OR_RETURN(AttrValue attr, AttrOf(name, held, *spec));
    attrs.emplace_back(name, std::move(attr));
  }
  const auto& ports = op.schema.outputs;
  const bool list = std::any_of(ports.begin(), ports.end(), [](const PortSpec& port) {
    return port.kind == PortKind::kDynamic;
  });
  const size_t outputs = list ? static_cast<size_t>(told.value_or(elements)) : ports.size();
  NPUMESH_ASSIGN_OR_RETURN(List made,
                           AddNode(op, inputs, std::move(attrs), static_cast<int>(outputs)));
  if (made.size() == 1 && !list) return made[0];
  return HeldList(std::move(made));
}

Result<List> Evaluator::AddNode(const Operator& op, const std::vector<GraphBuilder::Input>& inputs,
                                std::vector<GraphBuilder::Attr> attrs, int outputs) {
  // As operators of aclnn are called in profiles and dumps of a device.
  std::string name = fmt::format("{}_{}_{}", function_->name, operators_++, op.schema.type);
  const Value made =
      builder_.Op(std::string(op.schema.type), inputs, std::move(attrs), std::move(name), outputs);
  const Node& node = builder_.graph().node(made.node);
  NPUMESH_ASSIGN_OR_RETURN(OpContext context, OpContext::Bind(node, op.schema));
  for (int slot = 0; slot < context.slots(); ++slot) {
    const int index = context.input_index(slot);
    if (index < 0) continue;
    const Value source = *node.inputs[static_cast<size_t>(index)];
    context.set_in(slot, types_.at(source));
    const auto known = constants_.find(source);
    if (known != constants_.end()) context.set_value(slot, &known->second);
  }
  if (op.infer == nullptr) return Slip(fmt::format("{} has no inference", op.schema.type));
  // Dimensions are open behind an operator whose shape only the run knows.
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferPartly(op, context));
  List results;
  for (int port = 0; port < outputs; ++port) {
    const Value value = builder_.Port(made, port);
    types_[value] = types[static_cast<size_t>(port)];
    results.push_back(Held{Computed{value, types_[value]}});
  }
  return results;
}

Result<Computed> Evaluator::AddOne(std::string_view type, const std::vector<Computed>& inputs,
                                   std::vector<GraphBuilder::Attr> attrs) {
  const Operator& op = *BuiltinOps().Find(type);
  std::vector<GraphBuilder::Input> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    named.emplace_back(op.schema.inputs[i].name, inputs[i].value);
  }
  NPUMESH_ASSIGN_OR_RETURN(const List made, AddNode(op, named, std::move(attrs), 1));
  return *made[0].get<Computed>();
}

Result<Computed> Evaluator::Constant(TensorType type, std::string bytes) {
  Tensor tensor = Tensor::FromString(type, std::move(bytes));
  const Value value = builder_.Const(fmt::format("const_{}", constants_.size()), tensor);
  builder_.Declare(value, type.dtype);
  constants_.emplace(value, std::move(tensor));
  types_[value] = type;
  return Computed{value, std::move(type)};
}

Result<Computed> Evaluator::Number(const Held& number, DataType dtype) {
  NPUMESH_ASSIGN_OR_RETURN(std::string bytes, Encode(number, dtype));
  return Constant({dtype, Shape()}, std::move(bytes));
}

Result<Computed> Evaluator::Ints(const std::vector<int64_t>& values, bool vector, DataType dtype) {
  std::string bytes;
  for (const int64_t value : values) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string one, Encode(Held{value}, dtype));
    bytes += one;
  }
  Shape shape;
  if (vector) shape = Shape({static_cast<int64_t>(values.size())});
  return Constant({dtype, shape}, std::move(bytes));
}

// A list of integers is a vector of int64; one of scalars a vector beside tensors of type `like`.
Result<Computed> Evaluator::TensorOf(const Held& held, DataType like) {
  if (const auto* tensor = held.get<Computed>()) return *tensor;
  if (const auto* list = held.get<List>()) {
    if (!list->empty() && (*list)[0].get<Computed>() != nullptr) return *(*list)[0].get<Computed>();
    if (!list->empty() && (*list)[0].get<AclnnScalar>() != nullptr) return Scalars(*list, like);
    std::vector<int64_t> values;
    for (const Held& value : *list) values.push_back(Integer(value).value_or(0));
    return Ints(values, true, DataType::kInt64);
  }
  if (!Real(held)) return Slip("a tensor is expected");
  return Number(held, like);
}

Result<Computed> Evaluator::Scalars(const List& list, DataType like) {
  const DataType dtype = npumesh::IsInteger(like) ? DataType::kInt64 : DataType::kFloat;
  std::string bytes;
  for (const Held& scalar : list) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string one, Encode(scalar, dtype));
    bytes += one;
  }
  return Constant({dtype, Shape({static_cast<int64_t>(list.size())})}, std::move(bytes));
}

Result<Computed> Evaluator::Cast(Computed x, DataType dtype) {
  if (x.type.dtype == dtype) return x;
  const bool real = IsFloating(x.type.dtype) || npumesh::IsInteger(x.type.dtype) ||
                    x.type.dtype == DataType::kBool;
  if (real && dtype == DataType::kComplex64) {
    NPUMESH_ASSIGN_OR_RETURN(x, Cast(std::move(x), DataType::kFloat));
    NPUMESH_ASSIGN_OR_RETURN(const Computed zero, Number(Held{int64_t{0}}, DataType::kFloat));
    return AddOne("Complex", {x, zero});
  }
  return AddOne("Cast", {x}, {{"dst_type", AttrValue::Int(static_cast<int64_t>(dtype))}});
}

// ---- Functions ----

Result<Held> Evaluator::Need(const Scope& scope, Call call, size_t index) {
  if (index >= call.children.size()) return Slip(fmt::format("{} takes more", call.text));
  return Eval(scope, call.children[index]);
}

Result<Computed> Evaluator::NeedTensor(const Scope& scope, Call call, size_t index) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, index));
  if (const auto* tensor = held.get<Computed>()) return *tensor;
  if (const auto* list = held.get<List>(); list != nullptr && !list->empty()) {
    if (const auto* tensor = (*list)[0].get<Computed>()) return *tensor;
  }
  return Slip(fmt::format("{} takes a tensor", call.text));
}

Result<std::vector<int64_t>> Evaluator::NeedInts(const Scope& scope, Call call, size_t index) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, index));
  std::vector<int64_t> values;
  if (const auto* list = held.get<List>()) {
    for (const Held& value : *list) values.push_back(Integer(value).value_or(0));
  } else if (const auto value = Integer(held)) {
    values.push_back(*value);
  }
  return values;
}

Result<Held> Evaluator::DoPromote(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const List operands, EvalAll(scope, call.children));
  std::vector<PromotionOperand> types;
  for (const Held& operand : operands) {
    if (const auto* tensor = operand.get<Computed>()) {
      types.push_back({tensor->type.dtype, tensor->type.shape.rank() == 0
                                               ? PromotionOperand::Rank::kNoDimensions
                                               : PromotionOperand::Rank::kTensor});
    } else if (const auto* scalar = operand.get<AclnnScalar>()) {
      types.push_back({scalar->dtype, PromotionOperand::Rank::kScalar});
    } else {
      types.push_back({IsInteger(operand) ? DataType::kInt64 : DataType::kFloat,
                       PromotionOperand::Rank::kScalar});
    }
  }
  const DataType common = PromoteAll(types);
  if (common == DataType::kUndefined) return Wrong("the operands have no common type");
  promotes_ = true;
  List promoted;
  for (const Held& operand : operands) {
    NPUMESH_ASSIGN_OR_RETURN(Computed tensor, TensorOf(operand, common));
    NPUMESH_ASSIGN_OR_RETURN(tensor, Cast(std::move(tensor), common));
    promoted.push_back(Held{std::move(tensor)});
  }
  return HeldList(std::move(promoted));
}

Result<Held> Evaluator::DoCast(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held to, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Held from, Need(scope, call, 0));
  DataType dtype = DataType::kUndefined;
  if (const auto* type = to.get<DataType>()) dtype = *type;
  if (const auto* tensor = to.get<Computed>()) dtype = tensor->type.dtype;
  NPUMESH_ASSIGN_OR_RETURN(Computed tensor, TensorOf(from, dtype));
  NPUMESH_ASSIGN_OR_RETURN(tensor, Cast(std::move(tensor), dtype));
  return Held{std::move(tensor)};
}

Result<Held> Evaluator::DoReal(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(Computed x, NeedTensor(scope, call, 0));
  const bool whole = npumesh::IsInteger(x.type.dtype) || x.type.dtype == DataType::kBool;
  if (whole) {
    NPUMESH_ASSIGN_OR_RETURN(x, Cast(std::move(x), DataType::kFloat));
  }
  return Held{std::move(x)};
}

Result<Held> Evaluator::DoScaled(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held alpha, Need(scope, call, 1));
  const auto* scalar = alpha.get<AclnnScalar>();
  const bool real = scalar == nullptr || scalar->imaginary == 0;
  if (alpha.none() || (real && Real(alpha).value_or(1) == 1)) return Held{std::move(x)};
  NPUMESH_ASSIGN_OR_RETURN(const Computed factor, Number(alpha, x.type.dtype));
  NPUMESH_ASSIGN_OR_RETURN(Computed product, AddOne("Mul", {x, factor}));
  return Held{std::move(product)};
}

Result<Held> Evaluator::DoNumber(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  if (IsInteger(held)) return Held{*Integer(held)};
  if (const auto real = Real(held)) return Held{*real};
  return Slip("number takes a scalar");
}

Result<Held> Evaluator::DoConst(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held number, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held like, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Number(number, TypeOf(like)));
  return Held{std::move(made)};
}

template <DataType kType>
Result<Held> Evaluator::DoInts(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> values, NeedInts(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Ints(values, held.get<List>() != nullptr, kType));
  return Held{std::move(made)};
}

Result<Held> Evaluator::DoFill(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held number, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed like, NeedTensor(scope, call, 1));
  return Filled(number, like.type.shape.dims(), like.type.dtype);
}

Result<Held> Evaluator::Filled(const Held& number, const std::vector<int64_t>& dims,
                               DataType dtype) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed value, Number(number, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Computed shape, Ints(dims, true, DataType::kInt64));
  NPUMESH_ASSIGN_OR_RETURN(Computed filled, AddOne("Fill", {shape, value}));
  return Held{std::move(filled)};
}

Result<Held> Evaluator::DoShape(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  return HeldList(ListOf(x.type.shape.dims()));
}

Result<Held> Evaluator::DoSize(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(Integer(which).value_or(0), x.type.shape.rank()));
  return Held{x.type.shape[axis]};
}

Result<Held> Evaluator::DoRank(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  return Held{int64_t{x.type.shape.rank()}};
}

Result<Held> Evaluator::DoCount(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  return Held{x.type.shape.elements()};
}

Result<Held> Evaluator::DoType(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  return Held{x.type.dtype};
}

// A tensor of no dimensions has the axes 0 and -1, as one of one dimension.
Result<Held> Evaluator::DoAxis(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(
      const int axis, NormalizeAxis(Integer(which).value_or(0), std::max(1, x.type.shape.rank())));
  return Held{int64_t{axis}};
}

Result<Held> Evaluator::DoAxes(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> axes, NeedInts(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 1));
  const int rank = x.type.shape.rank();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (rank == 0) axes.clear();
  for (int64_t& axis : axes) {
    NPUMESH_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  return HeldList(ListOf(axes));
}

Result<Held> Evaluator::DoReshape(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, NeedInts(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Reshaped(x, dims));
  return Held{std::move(made)};
}

Result<Computed> Evaluator::Reshaped(const Computed& x, const std::vector<int64_t>& dims) {
  if (x.type.shape.dims() == dims) return x;
  NPUMESH_ASSIGN_OR_RETURN(const Computed shape, Ints(dims, true, DataType::kInt64));
  return AddOne("Reshape", {x, shape});
}

Result<Held> Evaluator::DoTranspose(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> order, NeedInts(scope, call, 1));
  const int rank = x.type.shape.rank();
  for (int64_t& axis : order) {
    NPUMESH_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  if (std::is_sorted(order.begin(), order.end())) return Held{x};
  NPUMESH_ASSIGN_OR_RETURN(const Computed perm, Ints(order, true, DataType::kInt64));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, AddOne("Transpose", {x, perm}));
  return Held{std::move(made)};
}

Result<Held> Evaluator::DoBroadcast(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, NeedInts(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  if (const List* const list = held.get<List>()) {
    List made;
    for (const Held& element : *list) {
      const Computed* const x = element.get<Computed>();
      if (x == nullptr) return Slip("broadcast of a list that has other things than tensors");
      NPUMESH_ASSIGN_OR_RETURN(Computed one, Broadcast(*x, dims));
      made.push_back(Held{std::move(one)});
    }
    return HeldList(std::move(made));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Broadcast(x, dims));
  return Held{std::move(made)};
}

Result<Computed> Evaluator::Broadcast(const Computed& x, const std::vector<int64_t>& dims) {
  if (x.type.shape.dims() == dims) return x;
  NPUMESH_ASSIGN_OR_RETURN(const Computed shape, Ints(dims, true, DataType::kInt64));
  return AddOne("BroadcastTo", {x, shape});
}

Result<Held> Evaluator::DoHas(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  return Held{!held.none()};
}

Result<Held> Evaluator::DoIsReal(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  return Held{IsFloating(TypeOf(held))};
}

Result<Held> Evaluator::DoIsBool(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  return Held{TypeOf(held) == DataType::kBool};
}

// [[front, back], ...] for all axes, from [front, back of the last axis, of the one before, ...].
Result<Held> Evaluator::DoFrontAndBack(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, NeedInts(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 1));
  const auto rank = static_cast<size_t>(x.type.shape.rank());
  if (pads.size() % 2 != 0 || pads.size() > 2 * rank) {
    return Wrong(fmt::format("{} pads for {} dimensions", pads.size(), rank));
  }
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t i = 0; i < pads.size(); ++i) {
    const size_t axis = rank - 1 - i / 2;
    all[2 * axis + i % 2] = pads[i];
  }
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Ints(all, true, DataType::kInt64));
  return Held{std::move(made)};
}

Result<Held> Evaluator::DoRefuse(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held what, Need(scope, call, 0));
  const auto* const text = what.get<std::string>();
  return Error(Code::kUnsupported, "npumesh has no {}", text == nullptr ? "such form" : *text);
}

Result<Held> Evaluator::DoLength(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  const List* const list = held.get<List>();
  return Held{static_cast<int64_t>(list == nullptr ? 0 : list->size())};
}

Result<Held> Evaluator::DoOnes(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  const int64_t count = Integer(held).value_or(0);
  if (count < 0) return Wrong("fewer dimensions than the tensor has");
  return HeldList(List(static_cast<size_t>(count), Held{int64_t{1}}));
}

Result<Held> Evaluator::DoFull(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held number, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, NeedInts(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Held like, Need(scope, call, 2));
  return Filled(number, dims, TypeOf(like));
}

// ---- Functions of numbers and lists ----

Result<Held> Evaluator::DoLarger(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held a, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held b, Need(scope, call, 1));
  if (!Real(a) || !Real(b)) return Slip("larger takes numbers");
  return *Real(a) >= *Real(b) ? a : b;
}

Result<Held> Evaluator::DoPlace(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held type, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held of, Need(scope, call, 1));
  const List* const list = of.get<List>();
  if (list == nullptr) return Slip("place takes a list");
  const auto found = std::find_if(list->begin(), list->end(), [&](const Held& element) {
    return TypeOf(element) == TypeOf(type);
  });
  return Held{found == list->end() ? int64_t{-1} : found - list->begin()};
}

// Scales come as float32 or double of quotients.
Result<Held> Evaluator::DoFits(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const List numbers, EvalAll(scope, call.children));
  if (numbers.size() != 3) return Slip("fits takes a scale and two sizes");
  const double scale = Real(numbers[0]).value_or(0), in = Real(numbers[1]).value_or(0);
  const double out = Real(numbers[2]).value_or(0);
  return Held{scale <= 0 || std::fabs(scale * in - out) <= 1e-6 * out};
}

Result<Held> Evaluator::DoOnly(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held holds, Need(scope, call, 0));
  if (Truth(holds)) return Held{};
  NPUMESH_ASSIGN_OR_RETURN(const Held what, Need(scope, call, 1));
  const auto* const text = what.get<std::string>();
  return Error(Code::kUnsupported, "npumesh has no {}", text == nullptr ? "such form" : *text);
}

template <bool kUpper>
Result<Held> Evaluator::DoLimit(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  const DataType type = x.type.dtype;
  if (IsFloating(type)) {
    const double most = std::numeric_limits<double>::infinity();
    return Held{kUpper ? most : -most};
  }
  if (type == DataType::kBool) return Held{int64_t{kUpper}};
  const int bits = BitsOf(type) - (IsSignedInteger(type) ? 1 : 0);
  const auto most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) * 2 - 1);
  return Held{kUpper ? most : IsSignedInteger(type) ? -most - 1 : 0};
}

// Binary digits of a float's significand.
int DigitsOf(DataType type) {
  constexpr int kHalf = 11, kBrain = 8;
  switch (type) {
    case DataType::kFloat16:
      return kHalf;
    case DataType::kBfloat16:
      return kBrain;
    case DataType::kDouble:
      return std::numeric_limits<double>::digits;
    default:
      return std::numeric_limits<float>::digits;
  }
}

Result<Held> Evaluator::DoWholeBelow(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held number, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held like, Need(scope, call, 1));
  if (!Real(number)) return Slip("whole_below takes a number");
  const double n = *Real(number);
  const double step = std::max(
      1.0, std::ldexp(1.0, std::ilogb(std::max(1.0, std::fabs(n))) - DigitsOf(TypeOf(like)) + 1));
  return Held{(std::ceil(n / step) - 1) * step};
}

Result<Held> Evaluator::DoFirst(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> list, NeedInts(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held count, Need(scope, call, 1));
  const int64_t kept =
      std::clamp<int64_t>(Integer(count).value_or(0), 0, static_cast<int64_t>(list.size()));
  list.resize(static_cast<size_t>(kept));
  return HeldList(ListOf(list));
}

Result<Held> Evaluator::DoFrom(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> list, NeedInts(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held start, Need(scope, call, 1));
  const int64_t dropped =
      std::clamp<int64_t>(Integer(start).value_or(0), 0, static_cast<int64_t>(list.size()));
  list.erase(list.begin(), list.begin() + dropped);
  return HeldList(ListOf(list));
}

Result<Held> Evaluator::DoDoubled(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> list, NeedInts(scope, call, 0));
  std::vector<int64_t> doubled;
  for (const int64_t value : list) doubled.insert(doubled.end(), {value, value});
  return HeldList(ListOf(doubled));
}

Result<Held> Evaluator::DoPieces(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held total, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held size, Need(scope, call, 1));
  const int64_t all = Integer(total).value_or(0), most = Integer(size).value_or(0);
  if (most <= 0 && all > 0) return Wrong(fmt::format("pieces of {} elements of {}", most, all));
  std::vector<int64_t> pieces;
  for (int64_t left = all; left > 0; left -= most) pieces.push_back(std::min(left, most));
  if (pieces.empty()) pieces.push_back(0);
  return HeldList(ListOf(pieces));
}

Result<Held> Evaluator::DoWithout(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(Integer(which).value_or(0), x.type.shape.rank()));
  std::vector<int64_t> others;
  for (int i = 0; i < x.type.shape.rank(); ++i) {
    if (i != axis) others.push_back(i);
  }
  return HeldList(ListOf(others));
}

Result<Held> Evaluator::DoResized(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Held size, Need(scope, call, 2));
  std::vector<int64_t> dims = x.type.shape.dims();
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(Integer(which).value_or(0), x.type.shape.rank()));
  dims[static_cast<size_t>(axis)] = Integer(size).value_or(0);
  return HeldList(ListOf(dims));
}

Result<Held> Evaluator::DoBatch(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  return Held{x.type.shape.rank() == 0 ? int64_t{1} : x.type.shape[0]};
}

// ---- Functions of tensors ----

Result<Held> Evaluator::DoZeros(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  const List* const list = held.get<List>();
  if (list == nullptr) return Slip("zeros takes a list of tensors");
  List zeros;
  for (const Held& element : *list) {
    const auto* const tensor = element.get<Computed>();
    if (tensor == nullptr) return Slip("zeros takes a list of tensors");
    NPUMESH_ASSIGN_OR_RETURN(
        zeros.emplace_back(),
        Filled(Held{int64_t{0}}, tensor->type.shape.dims(), tensor->type.dtype));
  }
  return HeldList(std::move(zeros));
}

Result<Held> Evaluator::DoWide(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(Computed x, NeedTensor(scope, call, 0));
  const DataType type = x.type.dtype;
  const bool stays = type == DataType::kDouble ||
                     (!IsFloating(type) && !npumesh::IsInteger(type) && type != DataType::kBool);
  NPUMESH_ASSIGN_OR_RETURN(x, Cast(std::move(x), stays ? type : DataType::kFloat));
  return Held{std::move(x)};
}

Result<Held> Evaluator::DoSingle(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(Computed x, NeedTensor(scope, call, 0));
  const DataType type = x.type.dtype;
  const bool half = type == DataType::kFloat16 || type == DataType::kBfloat16;
  NPUMESH_ASSIGN_OR_RETURN(x, Cast(std::move(x), half ? DataType::kFloat : type));
  return Held{std::move(x)};
}

Result<Held> Evaluator::DoIsComplex(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  const DataType type = TypeOf(held);
  return Held{type == DataType::kComplex32 || type == DataType::kComplex64 ||
              type == DataType::kComplex128};
}

// A tensor without elements stands for an index that is not there.
bool IsPresent(const Held& held) {
  const auto* const tensor = held.get<Computed>();
  return tensor != nullptr && tensor->type.shape.elements() > 0;
}

Result<Held> Evaluator::DoPresent(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  List present;
  if (const List* const list = held.get<List>()) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(present), IsPresent);
  }
  return HeldList(std::move(present));
}

Result<Held> Evaluator::DoPresence(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Held held, Need(scope, call, 0));
  std::vector<int64_t> presence;
  if (const List* const list = held.get<List>()) {
    for (const Held& element : *list) presence.push_back(IsPresent(element) ? 1 : 0);
  }
  return HeldList(ListOf(presence));
}

Result<Held> Evaluator::DoBeside(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed small, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 1));
  std::vector<int64_t> dims = small.type.shape.dims();
  const int more = x.type.shape.rank() - small.type.shape.rank();
  if (more > 0 && !dims.empty()) dims.insert(dims.begin() + 1, static_cast<size_t>(more), 1);
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Reshaped(small, dims));
  return Held{std::move(made)};
}

// The dimensions of a vector that lies along an axis.
Result<std::vector<int64_t>> DimsOnAxis(const Computed& vector, int64_t which, int rank) {
  NPUMESH_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(which, rank));
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = vector.type.shape.elements();
  return dims;
}

Result<Held> Evaluator::DoOnAxis(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed vector, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 2));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                           DimsOnAxis(vector, Integer(which).value_or(0), x.type.shape.rank()));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Reshaped(vector, dims));
  return Held{std::move(made)};
}

Result<Held> Evaluator::DoAlong(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed vector, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const Held which, Need(scope, call, 1));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> to, NeedInts(scope, call, 2));
  NPUMESH_ASSIGN_OR_RETURN(
      const std::vector<int64_t> dims,
      DimsOnAxis(vector, Integer(which).value_or(0), static_cast<int>(to.size())));
  NPUMESH_ASSIGN_OR_RETURN(const Computed turned, Reshaped(vector, dims));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, Broadcast(turned, to));
  return Held{std::move(made)};
}

Result<Held> Evaluator::DoCut(const Scope& scope, Call call) {
  NPUMESH_ASSIGN_OR_RETURN(const Computed x, NeedTensor(scope, call, 0));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, NeedInts(scope, call, 1));
  if (x.type.shape.dims() == dims) return Held{x};
  const std::vector<int64_t> zeros(dims.size(), 0);
  NPUMESH_ASSIGN_OR_RETURN(const Computed offsets, Ints(zeros, true, DataType::kInt64));
  NPUMESH_ASSIGN_OR_RETURN(const Computed size, Ints(dims, true, DataType::kInt64));
  NPUMESH_ASSIGN_OR_RETURN(Computed made, AddOne("Slice", {x, offsets, size}));
  return Held{std::move(made)};
}

const std::map<std::string_view, Evaluator::Function>& Evaluator::Functions() {
  static const auto* const functions = new std::map<std::string_view, Function>{
      {"promote", &Evaluator::DoPromote},
      {"cast", &Evaluator::DoCast},
      {"real", &Evaluator::DoReal},
      {"scaled", &Evaluator::DoScaled},
      {"number", &Evaluator::DoNumber},
      {"const", &Evaluator::DoConst},
      {"int32", &Evaluator::DoInts<DataType::kInt32>},
      {"int64", &Evaluator::DoInts<DataType::kInt64>},
      {"uint64", &Evaluator::DoInts<DataType::kUint64>},
      {"fill", &Evaluator::DoFill},
      {"shape", &Evaluator::DoShape},
      {"size", &Evaluator::DoSize},
      {"rank", &Evaluator::DoRank},
      {"count", &Evaluator::DoCount},
      {"type", &Evaluator::DoType},
      {"axis", &Evaluator::DoAxis},
      {"axes", &Evaluator::DoAxes},
      {"reshape", &Evaluator::DoReshape},
      {"transpose", &Evaluator::DoTranspose},
      {"broadcast", &Evaluator::DoBroadcast},
      {"has", &Evaluator::DoHas},
      {"is_real", &Evaluator::DoIsReal},
      {"is_bool", &Evaluator::DoIsBool},
      {"front_and_back", &Evaluator::DoFrontAndBack},
      {"refuse", &Evaluator::DoRefuse},
      {"length", &Evaluator::DoLength},
      {"ones", &Evaluator::DoOnes},
      {"full", &Evaluator::DoFull},
      {"zeros", &Evaluator::DoZeros},
      {"wide", &Evaluator::DoWide},
      {"single", &Evaluator::DoSingle},
      {"is_complex", &Evaluator::DoIsComplex},
      {"larger", &Evaluator::DoLarger},
      {"place", &Evaluator::DoPlace},
      {"fits", &Evaluator::DoFits},
      {"only", &Evaluator::DoOnly},
      {"lowest", &Evaluator::DoLimit<false>},
      {"highest", &Evaluator::DoLimit<true>},
      {"whole_below", &Evaluator::DoWholeBelow},
      {"first", &Evaluator::DoFirst},
      {"from", &Evaluator::DoFrom},
      {"doubled", &Evaluator::DoDoubled},
      {"pieces", &Evaluator::DoPieces},
      {"without", &Evaluator::DoWithout},
      {"resized", &Evaluator::DoResized},
      {"batch", &Evaluator::DoBatch},
      {"present", &Evaluator::DoPresent},
      {"presence", &Evaluator::DoPresence},
      {"beside", &Evaluator::DoBeside},
      {"on_axis", &Evaluator::DoOnAxis},
      {"along", &Evaluator::DoAlong},
      {"cut", &Evaluator::DoCut},
  };
  return *functions;
}

}  // namespace

Result<AclnnMeaning> MeaningOf(const AclnnTable& table, const AclnnFunction& function,
                               const std::vector<AclnnArgument>& arguments) {
  return Evaluator(table).Evaluate(function, arguments);
}

}  // namespace npumesh
