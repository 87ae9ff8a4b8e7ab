#include "graph/c_interface/stand_ins.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "graph/ir/node_kind.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr std::string_view kRule = "_inference_rule";
constexpr int kMostLevels = 64;
constexpr int64_t kOpen = -1;

using Symbols = std::map<std::string, int64_t, std::less<>>;

// Computes an expression of dimensions: numbers, names, + - *, and the functions that TorchAir
// writes. Values are doubles until the end, because Floor(Div(a, b)) is a division of whole
// numbers.
class DimExpression {
 public:
  DimExpression(std::string_view text, const Symbols& symbols) : text_(text), symbols_(symbols) {}

  // kOpen where a name stands for an open dimension.
  Result<int64_t> Evaluate() {
    const double value = Sum(0);
    Skip();
    if (failed_ || at_ != text_.size() || (!open_ && (value < 0 || value != std::floor(value)))) {
      return Error(Code::kCorrupt, "\"{}\" is no dimension that can be computed", text_);
    }
    return open_ ? kOpen : static_cast<int64_t>(value);
  }

 private:
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool Take(char sign) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }

  double Fail() {
    failed_ = true;
    return 0;
  }

  double Sum(int level) {
    if (level > kMostLevels) return Fail();
    double value = Product(level);
    while (!failed_) {
      if (Take('+')) {
        value += Product(level);
      } else if (Take('-')) {
        value -= Product(level);
      } else {
        break;
      }
    }
    return value;
  }

  double Product(int level) {
    double value = Factor(level);
    while (!failed_ && Take('*')) value *= Factor(level);
    return value;
  }

  double Factor(int level) {
    if (level > kMostLevels) return Fail();
    if (Take('-')) return -Factor(level + 1);
    if (Take('(')) {
      const double value = Sum(level + 1);
      return Take(')') ? value : Fail();
    }
    const std::string_view word = Word();
    if (word.empty()) return Fail();
    if (word[0] >= '0' && word[0] <= '9') {
      const Result<int64_t> number = ParseInt(word, 0, std::numeric_limits<int32_t>::max(), "");
      return number.ok() ? static_cast<double>(*number) : Fail();
    }
    if (Take('(')) return Call(word, level);
    const auto found = symbols_.find(word);
    if (found == symbols_.end()) return Fail();
    if (found->second == kOpen) open_ = true;
    return static_cast<double>(found->second);
  }

  std::string_view Word() {
    Skip();
    const size_t begin = at_;
    const auto belongs = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  double Call(std::string_view function, int level) {
    const double a = Sum(level + 1);
    if (function == "Floor" || function == "Ceil") {
      if (!Take(')')) return Fail();
      return function == "Floor" ? std::floor(a) : std::ceil(a);
    }
    const double b = Take(',') ? Sum(level + 1) : Fail();
    if (!Take(')')) return Fail();
    if (function == "Max") return std::max(a, b);
    if (function == "Min") return std::min(a, b);
    if (function == "Pow") return std::pow(a, b);
    if (b == 0) return open_ ? 0 : Fail();
    if (function == "Div") return a / b;
    if (function == "Mod") return a - b * std::floor(a / b);
    return Fail();
  }

  const std::string_view text_;
  const Symbols& symbols_;
  size_t at_ = 0;
  bool failed_ = false;
  bool open_ = false;
};

bool IsName(const std::string& text) {
  const auto belongs = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text[0] >= 'a' && std::ranges::all_of(text, belongs);
}

// What the names in shape.inputs stand for.
Result<Symbols> SymbolsOf(const nlohmann::json& rule, const std::vector<TensorType>& inputs) {
  Symbols symbols;
  for (size_t i = 0; i < rule.size(); ++i) {
    if (rule[i].is_null()) continue;
    if (i >= inputs.size() || !rule[i].is_array()) {
      return Error(Code::kCorrupt, "{}: input {} is no list, or there is no such input", kRule, i);
    }
    const Shape& shape = inputs[i].shape;
    if (!shape.has_rank()) continue;
    if (static_cast<size_t>(shape.rank()) != rule[i].size()) {
      return Error(Code::kInvalidArgument, "{}: input {} has {} dimensions, expected {}", kRule, i,
                   shape.rank(), rule[i].size());
    }
    for (size_t axis = 0; axis < rule[i].size(); ++axis) {
      if (!rule[i][axis].is_string()) continue;
      const auto name = rule[i][axis].get<std::string>();
      if (IsName(name)) symbols.emplace(name, shape[static_cast<int>(axis)]);
    }
  }
  return symbols;
}

Result<TensorType> TypeByRule(const nlohmann::json& dims, const nlohmann::json& dtype,
                              const Symbols& symbols) {
  if (!dims.is_array() || !dtype.is_number_integer()) {
    return Error(Code::kCorrupt, "{}: an output has no list of dimensions, or no dtype", kRule);
  }
  TensorType type;
  const std::optional<DataType> known = DataTypeFromRuntime(dtype.get<int64_t>());
  if (!known) return Error(Code::kCorrupt, "{}: {} is no data type", kRule, dtype.dump());
  type.dtype = *known;
  std::vector<int64_t> sizes;
  for (const nlohmann::json& dim : dims) {
    if (!dim.is_string()) return Error(Code::kCorrupt, "{}: a dimension is no text", kRule);
    const auto text = dim.get<std::string>();
    const Result<int64_t> size = DimExpression(text, symbols).Evaluate();
    if (!size.ok()) return size.status().WithContext(std::string(kRule));
    sizes.push_back(*size);
  }
  type.shape = Shape(std::move(sizes));
  NPUMESH_RETURN_IF_ERROR(type.shape.Check());
  return type;
}

// ---- the operators ----

// Strings that the schemas of stand-ins are views of.
struct Names {
  std::set<std::string, std::less<>> texts;
  std::string_view Keep(std::string_view text) { return *texts.emplace(text).first; }
};

struct Owned {
  Names names;
  OpRegistry registry;
};

// Input index of the input that output `port` is; -1: it is a separate tensor.
int SameInput(const Node& node, size_t port) {
  const std::string& name = node.output_descs[port].name;
  return name.empty() ? -1 : node.FindInput(name);
}

Status InferStandIn(OpContext& context) {
  const Node& node = context.node();
  std::vector<TensorType> inputs(node.inputs.size());
  for (int slot = 0; slot < context.slots(); ++slot) {
    const int index = context.input_index(slot);
    if (index >= 0) inputs[static_cast<size_t>(index)] = context.in(slot);
  }
  std::vector<TensorType> outputs;
  if (const std::string rule = node.StringAttr(kRule, ""); !rule.empty()) {
    const Result<std::vector<TensorType>> types = TypesByRule(rule, inputs);
    if (!types.ok()) return types.status().WithContext(context.Who());
    outputs = *types;
  } else {
    for (const TensorDesc& desc : node.output_descs) {
      outputs.push_back({desc.dtype, desc.shape.value_or(Shape::UnknownRank())});
    }
  }
  outputs.resize(node.output_descs.size());
  for (size_t port = 0; port < outputs.size(); ++port) {
    const int same = SameInput(node, port);
    if (same >= 0) outputs[port] = inputs[static_cast<size_t>(same)];
    if (!outputs[port].shape.is_static() || outputs[port].dtype == DataType::kUndefined) {
      return Error(Code::kUnsupported,
                   "{}: its stand-in has to know the type of output {}; the node declares {} and "
                   "has no {}",
                   context.Who(), port, outputs[port], kRule);
    }
    context.set_out(static_cast<int>(port), outputs[port]);
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeStandIn(const OpContext& context) {
  std::vector<uint64_t> bytes;  // by output; 0: it is an input
  for (size_t port = 0; port < context.node().output_descs.size(); ++port) {
    const bool own = SameInput(context.node(), port) < 0;
    bytes.push_back(own ? context.out(static_cast<int>(port)).bytes() : 0);
  }
  return MakeKernel([bytes](const KernelArgs& args) {
    for (size_t port = 0; port < bytes.size(); ++port) {
      if (bytes[port] > 0) std::memset(args.out[port], 0, bytes[port]);
    }
    return Status();
  });
}

template <typename Specs>
void AddNew(Specs& specs, typename Specs::value_type spec) {
  const auto same = [&spec](const auto& each) { return each.name == spec.name; };
  if (std::ranges::none_of(specs, same)) specs.push_back(std::move(spec));
}

void Widen(const Node& node, Names& names, OpSchema& schema) {
  for (const TensorDesc& desc : node.input_descs) {
    AddNew(schema.inputs, {names.Keep(desc.name), PortKind::kOptional});
  }
  for (const TensorDesc& desc : node.output_descs) {
    AddNew(schema.outputs, {names.Keep(desc.name), PortKind::kOptional});
  }
  for (const auto& [name, value] : node.attrs) {
    AddNew(schema.attrs, AttrSpec(names.Keep(name), AttrValue()));
  }
}

// Outputs that are inputs, by the first node of the type.
std::vector<InPlace> InPlaceOf(const OpSchema& schema) {
  std::vector<InPlace> pairs;
  for (size_t output = 0; output < schema.outputs.size(); ++output) {
    const auto input =
        std::ranges::find(schema.inputs, schema.outputs[output].name, &PortSpec::name);
    if (input == schema.inputs.end()) continue;
    pairs.push_back({static_cast<int>(output), static_cast<int>(input - schema.inputs.begin())});
  }
  return pairs;
}

void Collect(const Graph& graph, const OpRegistry& base, Names& names,
             std::map<std::string_view, OpSchema>& schemas) {
  for (const Node& node : graph.nodes()) {
    if (node.removed || IsFurniture(node) || base.Find(node.type) != nullptr) continue;
    const std::string_view type = names.Keep(node.type);
    OpSchema& schema = schemas[type];
    schema.type = type;
    Widen(node, names, schema);
  }
}

}  // namespace

Result<std::vector<TensorType>> TypesByRule(const std::string& rule,
                                            const std::vector<TensorType>& inputs) {
  const nlohmann::json said = ParseForeignJson(rule);
  const nlohmann::json shape = said.is_object() ? said.value("shape", nlohmann::json()) : said;
  const nlohmann::json dtypes =
      said.is_object() ? said.value("dtype", nlohmann::json()) : nlohmann::json();
  if (!shape.is_object() || !shape.contains("inputs") || !shape["inputs"].is_array() ||
      !shape.contains("outputs") || !shape["outputs"].is_array() || !dtypes.is_array() ||
      dtypes.size() != shape["outputs"].size()) {
    return Error(Code::kCorrupt,
                 "{}: expected an object with lists shape.inputs, shape.outputs and dtype", kRule);
  }
  NPUMESH_ASSIGN_OR_RETURN(const Symbols symbols, SymbolsOf(shape["inputs"], inputs));
  std::vector<TensorType> types;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(TensorType type, TypeByRule(shape["outputs"][i], dtypes[i], symbols));
    types.push_back(std::move(type));
  }
  return types;
}

StandIns StandInsFor(const Model& model, const OpRegistry& base) {
  const auto owned = std::make_shared<Owned>();
  owned->registry = base;
  std::map<std::string_view, OpSchema> schemas;
  Collect(model.graph, base, owned->names, schemas);
  for (const Graph& graph : model.subgraphs) Collect(graph, base, owned->names, schemas);
  StandIns made;
  for (auto& [type, schema] : schemas) {
    made.types.emplace_back(type);
    Operator op;
    op.in_place = InPlaceOf(schema);
    op.schema = std::move(schema);
    op.infer = InferStandIn;
    op.make_kernel = MakeStandIn;
    op.pure = false;
    op.side_effect = true;
    owned->registry.Add(std::move(op));
  }
  made.registry = std::shared_ptr<const OpRegistry>(owned, &owned->registry);
  return made;
}

}  // namespace npumesh
