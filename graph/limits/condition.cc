#include "graph/limits/condition.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

using List = CardValue::List;

// Values of inputs are read up to this many.
constexpr int64_t kMostValues = 4096;

const int64_t* IntOf(const CardValue& value) {
  return std::get_if<int64_t>(&value.is);
}

std::optional<double> NumberOf(const CardValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value.is)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value.is)) return *number;
  if (const auto* truth = std::get_if<bool>(&value.is)) return *truth ? 1 : 0;
  return std::nullopt;
}

// Nothing: not known.
std::optional<bool> Truth(const CardValue& value) {
  const auto* const truth = std::get_if<bool>(&value.is);
  return truth == nullptr ? std::nullopt : std::optional(*truth);
}

CardValue Of(std::optional<bool> truth) {
  return truth ? CardValue{*truth} : CardValue();
}

// ---- Signs ----

std::optional<bool> Equal(const CardValue& a, const CardValue& b) {
  if (!a.known() || !b.known()) return std::nullopt;
  const std::optional<double> x = NumberOf(a), y = NumberOf(b);
  if (x && y) return *x == *y;
  if (const auto* const text = std::get_if<std::string>(&a.is)) {
    const auto* const other = std::get_if<std::string>(&b.is);
    return other == nullptr ? std::nullopt : std::optional(*text == *other);
  }
  if (const auto* const type = std::get_if<DataType>(&a.is)) {
    const auto* const other = std::get_if<DataType>(&b.is);
    return other == nullptr ? std::nullopt : std::optional(*type == *other);
  }
  const auto* const list = std::get_if<List>(&a.is);
  const auto* const other = std::get_if<List>(&b.is);
  if (list == nullptr || other == nullptr) return std::nullopt;
  if (list->size() != other->size()) return false;
  std::optional<bool> all = true;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::optional<bool> one = Equal((*list)[i], (*other)[i]);
    if (one == false) return false;
    if (!one) all = std::nullopt;
  }
  return all;
}

std::optional<bool> Contains(const CardValue& list, const CardValue& value) {
  const auto* const elements = std::get_if<List>(&list.is);
  if (elements == nullptr) return std::nullopt;
  std::optional<bool> any = false;
  for (const CardValue& element : *elements) {
    const std::optional<bool> one = Equal(element, value);
    if (one == true) return true;
    if (!one) any = std::nullopt;
  }
  return any;
}

std::optional<bool> Ordered(std::string_view sign, const CardValue& a, const CardValue& b) {
  const std::optional<double> x = NumberOf(a), y = NumberOf(b);
  if (!x || !y) return std::nullopt;
  if (sign == "<") return *x < *y;
  if (sign == "<=") return *x <= *y;
  return sign == ">" ? *x > *y : *x >= *y;
}

// Quotients are rounded down, and what is left has the sign of the divisor, as in Python.
CardValue WholeNumbers(char sign, int64_t a, int64_t b) {
  int64_t result = 0;
  bool over = false;
  switch (sign) {
    case '+':
      over = __builtin_add_overflow(a, b, &result);
      break;
    case '-':
      over = __builtin_sub_overflow(a, b, &result);
      break;
    case '*':
      over = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      over = b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min());
      if (!over) {
        const bool down = a % b != 0 && (a < 0) != (b < 0);
        result = sign == '%' ? a % b + (down ? b : 0) : a / b - (down ? 1 : 0);
      }
  }
  return over ? CardValue() : CardValue{result};
}

CardValue Calculated(std::string_view sign, const CardValue& a, const CardValue& b) {
  const bool real = sign == "/";
  if (!real && IntOf(a) != nullptr && IntOf(b) != nullptr) {
    return WholeNumbers(sign[0], *IntOf(a), *IntOf(b));
  }
  const std::optional<double> x = NumberOf(a), y = NumberOf(b);
  if (!x || !y) return {};
  if (sign == "+") return {*x + *y};
  if (sign == "-") return {*x - *y};
  if (sign == "*") return {*x * *y};
  if (*y == 0) return {};
  if (sign == "//") return {std::floor(*x / *y)};
  return sign == "%" ? CardValue{*x - std::floor(*x / *y) * *y} : CardValue{*x / *y};
}

CardValue Binary(const Expr& expr, const CardCall& call) {
  const std::string& sign = expr.text;
  const CardValue a = Evaluate(expr.children[0], call);
  if (sign == "and" || sign == "or") {
    // One side may decide whatever the other is.
    const bool deciding = sign == "or";
    if (Truth(a) == deciding) return {deciding};
    const std::optional<bool> second = Truth(Evaluate(expr.children[1], call));
    if (second == deciding) return {deciding};
    return Truth(a) && second ? CardValue{!deciding} : CardValue();
  }
  const CardValue b = Evaluate(expr.children[1], call);
  if (sign == "in") return Of(Contains(b, a));
  const std::optional<bool> equal = Equal(a, b);
  if (sign == "==") return Of(equal);
  if (sign == "!=") return equal ? CardValue{!*equal} : CardValue();
  if (sign[0] == '<' || sign[0] == '>') return Of(Ordered(sign, a, b));
  return Calculated(sign, a, b);
}

CardValue Unary(const Expr& expr, const CardCall& call) {
  const CardValue value = Evaluate(expr.children[0], call);
  if (expr.text == "not") {
    const std::optional<bool> truth = Truth(value);
    return truth ? CardValue{!*truth} : CardValue();
  }
  if (const int64_t* const number = IntOf(value)) return WholeNumbers('-', 0, *number);
  const std::optional<double> number = NumberOf(value);
  return number ? CardValue{-*number} : CardValue();
}

// ---- Names ----

template <typename T>
CardValue ListOf(const std::vector<T>& values) {
  List list;
  for (const auto& value : values) list.push_back({static_cast<T>(value)});
  return {std::move(list)};
}

CardValue OfAttribute(const AttrValue& value, const AttrValue& pattern) {
  if (const auto* number = value.get<int64_t>()) {
    if (pattern.get<bool>() != nullptr) return {*number != 0};
    return {*number};
  }
  if (const auto* number = value.get<float>()) return {static_cast<double>(*number)};
  if (const auto* truth = value.get<bool>()) return {*truth};
  if (const auto* text = value.get<std::string>()) return {*text};
  if (const auto* type = value.get<DataTypeAttr>()) {
    const std::optional<DataType> dtype = DataTypeFromRuntime(type->number);
    return dtype ? CardValue{*dtype} : CardValue();
  }
  const auto* const list = value.get<ListAttr>();
  if (list == nullptr) return {};
  if (!list->s.empty()) return ListOf(list->s);
  if (!list->b.empty()) return ListOf(list->b);
  if (!list->f.empty()) return ListOf(std::vector<double>(list->f.begin(), list->f.end()));
  return ListOf(list->i);
}

const AttrSpec* SpecOf(const OpSchema& schema, std::string_view name) {
  const auto found = std::find_if(schema.attrs.begin(), schema.attrs.end(),
                                  [&](const AttrSpec& spec) { return spec.name == name; });
  return found == schema.attrs.end() ? nullptr : &*found;
}

bool HasPort(const OpSchema& schema, std::string_view name) {
  return std::any_of(schema.inputs.begin(), schema.inputs.end(),
                     [&](const PortSpec& port) { return port.name == name; });
}

CardValue Named(const std::string& name, const CardCall& call) {
  if (const auto found = call.definitions.find(name); found != call.definitions.end()) {
    return Evaluate(found->second, call);
  }
  if (const AttrSpec* const spec = SpecOf(call.op.schema(), name)) {
    const AttrMap& attrs = call.op.node().attrs;
    const auto given = attrs.find(name);
    if (given != attrs.end()) return OfAttribute(given->second, spec->pattern);
    return spec->fallback ? OfAttribute(*spec->fallback, spec->pattern) : CardValue();
  }
  if (name == "true" || name == "false") return {name == "true"};
  const std::optional<DataType> type = DataTypeFromName(name);
  return type ? CardValue{*type} : CardValue();
}

// ---- Functions ----

// The type of the input that the first argument names; null: it is not fed.
const TensorType* Fed(const Expr& expr, const CardCall& call) {
  const std::string& port = expr.children[0].text;
  if (!HasPort(call.op.schema(), port) || !call.op.has(port)) return nullptr;
  return &call.op.in(port);
}

CardValue Has(const Expr& expr, const CardCall& call) {
  return {Fed(expr, call) != nullptr};
}

CardValue Type(const Expr& expr, const CardCall& call) {
  const TensorType* const type = Fed(expr, call);
  const bool known = type != nullptr && type->dtype != DataType::kUndefined;
  return known ? CardValue{type->dtype} : CardValue();
}

CardValue Rank(const Expr& expr, const CardCall& call) {
  const TensorType* const type = Fed(expr, call);
  const bool known = type != nullptr && type->shape.has_rank();
  return known ? CardValue{static_cast<int64_t>(type->shape.rank())} : CardValue();
}

CardValue Size(const Expr& expr, const CardCall& call) {
  const TensorType* const type = Fed(expr, call);
  const CardValue where = Evaluate(expr.children[1], call);
  if (type == nullptr || !type->shape.has_rank() || IntOf(where) == nullptr) return {};
  const int64_t rank = type->shape.rank();
  const int64_t at = *IntOf(where) < 0 ? *IntOf(where) + rank : *IntOf(where);
  if (at < 0 || at >= rank || type->shape[static_cast<int>(at)] < 0) return {};
  return {type->shape[static_cast<int>(at)]};
}

CardValue Count(const Expr& expr, const CardCall& call) {
  const TensorType* const type = Fed(expr, call);
  const bool known = type != nullptr && type->shape.is_static() && type->shape.Check().ok();
  return known ? CardValue{type->shape.elements()} : CardValue();
}

CardValue Tensors(const Expr& expr, const CardCall& call) {
  const std::string& port = expr.children[0].text;
  if (!HasPort(call.op.schema(), port)) return {};
  return {static_cast<int64_t>(call.op.count(port))};
}

CardValue Values(const Expr& expr, const CardCall& call) {
  if (Fed(expr, call) == nullptr) return {};
  const Tensor* const value = call.op.value(call.op.slot(expr.children[0].text));
  if (value == nullptr || value->elements() > kMostValues) return {};
  List list;
  if (value->dtype() == DataType::kInt64) {
    for (const int64_t each : value->as<int64_t>()) list.push_back({each});
  } else if (value->dtype() == DataType::kInt32) {
    for (const int32_t each : value->as<int32_t>()) list.push_back({int64_t{each}});
  } else {
    return {};
  }
  return {std::move(list)};
}

CardValue ElementOf(const CardValue& list, const CardValue& which) {
  const auto* const elements = std::get_if<List>(&list.is);
  const int64_t* const at = IntOf(which);
  if (elements == nullptr || at == nullptr) return {};
  const auto size = static_cast<int64_t>(elements->size());
  const int64_t index = *at < 0 ? *at + size : *at;
  return index < 0 || index >= size ? CardValue() : (*elements)[static_cast<size_t>(index)];
}

CardValue Value(const Expr& expr, const CardCall& call) {
  return ElementOf(Values(expr, call), Evaluate(expr.children[1], call));
}

CardValue OfCard(const Expr& expr, const CardCall& call) {
  const std::optional<int64_t> number = call.chip.Number(expr.children[0].text);
  return number ? CardValue{*number} : CardValue();
}

CardValue Length(const Expr& expr, const CardCall& call) {
  const CardValue list = Evaluate(expr.children[0], call);
  const auto* const elements = std::get_if<List>(&list.is);
  return elements == nullptr ? CardValue() : CardValue{static_cast<int64_t>(elements->size())};
}

template <bool kMost>
CardValue Extreme(const Expr& expr, const CardCall& call) {
  const CardValue list = Evaluate(expr.children[0], call);
  const auto* const elements = std::get_if<List>(&list.is);
  if (elements == nullptr || elements->empty()) return {};
  CardValue best = elements->front();
  for (const CardValue& each : *elements) {
    const std::optional<bool> better = Ordered(kMost ? ">" : "<", each, best);
    if (!better) return {};
    if (*better) best = each;
  }
  return best;
}

struct Function {
  std::string_view name;
  size_t arguments;
  bool of_input;  // its first argument names one
  CardValue (*run)(const Expr& expr, const CardCall& call);
};

constexpr std::array kFunctions = {
    Function{"has", 1, true, Has},
    Function{"type", 1, true, Type},
    Function{"rank", 1, true, Rank},
    Function{"size", 2, true, Size},
    Function{"count", 1, true, Count},
    Function{"tensors", 1, true, Tensors},
    Function{"value", 2, true, Value},
    Function{"values", 1, true, Values},
    Function{"card", 1, false, OfCard},
    Function{"length", 1, false, Length},
    Function{"max", 1, false, Extreme<true>},
    Function{"min", 1, false, Extreme<false>},
};

const Function* FunctionOf(std::string_view name) {
  const auto* const found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                         [&](const Function& one) { return one.name == name; });
  return found == kFunctions.end() ? nullptr : found;
}

Status CheckName(const std::string& name, const OpSchema& schema,
                 const CardDefinitions& definitions) {
  const bool known = definitions.contains(name) || SpecOf(schema, name) != nullptr ||
                     name == "true" || name == "false" || DataTypeFromName(name).has_value();
  if (known) return Status();
  if (HasPort(schema, name)) {
    return Error(Code::kCorrupt, "{} is an input: has(), type(), size() ask about it", name);
  }
  return Error(Code::kCorrupt, "{} has no attribute {}", schema.type, name);
}

Status CheckFunction(const Expr& expr, const OpSchema& schema) {
  const Function* const function = FunctionOf(expr.text);
  if (function == nullptr) return Error(Code::kCorrupt, "there is no function {}", expr.text);
  if (expr.children.size() != function->arguments || !expr.named.empty()) {
    return Error(Code::kCorrupt, "{} takes {} arguments", expr.text, function->arguments);
  }
  const Expr& first = expr.children[0];
  if (function->of_input && (first.kind != Expr::Kind::kName || !HasPort(schema, first.text))) {
    return Error(Code::kCorrupt, "{}: {} has no input {}", expr.text, schema.type, first.text);
  }
  return Status();
}

// The pieces of a text: outside of braces, inside, outside ...
Result<std::vector<std::string_view>> Pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t open = std::min(text.find('{'), text.size());
    pieces.push_back(text.substr(0, open));
    if (open == text.size()) return pieces;
    const size_t close = text.find('}', open);
    if (close == text.npos) return Error(Code::kCorrupt, "\"{{\" without \"}}\"");
    pieces.push_back(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
}

}  // namespace

bool CardValue::IsTrue() const {
  return Truth(*this) == true;
}

std::string CardValue::ToText() const {
  if (const auto* const number = std::get_if<int64_t>(&is)) return fmt::format("{}", *number);
  if (const auto* const number = std::get_if<double>(&is)) return fmt::format("{}", *number);
  if (const auto* const truth = std::get_if<bool>(&is)) return *truth ? "true" : "false";
  if (const auto* const text = std::get_if<std::string>(&is)) return *text;
  if (const auto* const type = std::get_if<DataType>(&is)) return std::string(Name(*type));
  const auto* const list = std::get_if<List>(&is);
  if (list == nullptr) return "?";
  std::vector<std::string> texts;
  for (const CardValue& each : *list) texts.push_back(each.ToText());
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

CardValue Evaluate(const Expr& expr, const CardCall& call) {
  switch (expr.kind) {
    case Expr::Kind::kInteger:
      return {expr.integer};
    case Expr::Kind::kReal:
      return {expr.real};
    case Expr::Kind::kText:
      return {expr.text};
    case Expr::Kind::kName:
      return Named(expr.text, call);
    case Expr::Kind::kList: {
      List list;
      for (const Expr& each : expr.children) list.push_back(Evaluate(each, call));
      return {std::move(list)};
    }
    case Expr::Kind::kCall: {
      const Function* const function = FunctionOf(expr.text);
      const bool fits = function != nullptr && expr.children.size() == function->arguments;
      return fits ? function->run(expr, call) : CardValue();
    }
    case Expr::Kind::kUnary:
      return Unary(expr, call);
    case Expr::Kind::kBinary:
      return Binary(expr, call);
    case Expr::Kind::kCondition: {
      const std::optional<bool> condition = Truth(Evaluate(expr.children[0], call));
      return condition ? Evaluate(expr.children[*condition ? 1 : 2], call) : CardValue();
    }
    case Expr::Kind::kElement:
      return ElementOf(Evaluate(expr.children[0], call), Evaluate(expr.children[1], call));
  }
  return {};
}

Result<std::string> Filled(std::string_view text, const CardCall& call) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string_view> pieces, Pieces(text));
  std::string filled;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % 2 == 0) {
      filled += pieces[i];
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const Expr expr, ParseExpression(pieces[i]));
    filled += Evaluate(expr, call).ToText();
  }
  return filled;
}

Result<std::vector<Expr>> ExpressionsIn(std::string_view text) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string_view> pieces, Pieces(text));
  std::vector<Expr> exprs;
  for (size_t i = 1; i < pieces.size(); i += 2) {
    NPUMESH_ASSIGN_OR_RETURN(Expr expr, ParseExpression(pieces[i]));
    exprs.push_back(std::move(expr));
  }
  return exprs;
}

Status CheckCondition(const Expr& expr, const OpSchema& schema,
                      const CardDefinitions& definitions) {
  size_t first = 0;
  if (expr.kind == Expr::Kind::kName) return CheckName(expr.text, schema, definitions);
  if (expr.kind == Expr::Kind::kCall) {
    NPUMESH_RETURN_IF_ERROR(CheckFunction(expr, schema));
    const Function& function = *FunctionOf(expr.text);
    first = function.of_input || function.run == OfCard ? 1 : 0;
  }
  for (size_t i = first; i < expr.children.size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(CheckCondition(expr.children[i], schema, definitions));
  }
  return Status();
}

}  // namespace npumesh
