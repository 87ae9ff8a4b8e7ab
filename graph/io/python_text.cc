#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "graph/io/graph_text.h"
#include "graph/io/model_codec.h"
#include "graph/io/python_bytes.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

constexpr std::string_view kHead =
    "# A GE graph in the form of TorchAir's \"py\" dump, written by npumesh.\n"
    "# With torchair installed it builds the graph again; npumesh has no Python, it reads the\n"
    "# forms \"txt\" and \"pbtxt\" and builds graphs with GraphBuilder.\n"
    "from torchair._ge_concrete_graph import ge_apis as ge\n\n";

constexpr int64_t kMostElements = 64;
constexpr int kMostDimensions = 16;

template <typename T>
std::vector<std::string> Elements(const std::byte* data, int64_t count) {
  std::vector<std::string> items;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      items.push_back(fmt::format("{}", +value));
    } else {
      const auto number = static_cast<double>(NumberOf(value));
      items.push_back(std::isfinite(number) ? fmt::format("{}", number)
                                            : fmt::format("float('{}')", number));
    }
  }
  return items;
}

// Empty for a dtype that torch has no numbers for.
std::vector<std::string> ElementsOf(const TensorAttr& tensor, int64_t count) {
  const DataType dtype = tensor.desc->dtype;
  if (IsUnsignedInteger(dtype) && dtype != DataType::kUint8) return {};
  const auto* data = reinterpret_cast<const std::byte*>(tensor.data->data());
  return VisitStored(
      dtype, [&]<typename T>() { return Elements<T>(data, count); },
      [] { return std::vector<std::string>(); });
}

// "[[1, 2], [3, 4]]", or the one element of a scalar.
std::string Nested(const std::vector<std::string>& items, const Shape& shape, int axis,
                   size_t& next) {
  if (axis == shape.rank()) return items[next++];
  std::vector<std::string> rows;
  for (int64_t i = 0; i < shape[axis]; ++i) rows.push_back(Nested(items, shape, axis + 1, next));
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

std::string ConstText(const TensorAttr& tensor) {
  const TensorDesc& desc = *tensor.desc;
  const auto dtype = static_cast<int>(desc.dtype);
  const Shape shape = desc.shape.value_or(Shape());
  const bool listed =
      shape.is_static() && shape.rank() <= kMostDimensions && shape.elements() <= kMostElements;
  const auto bytes = listed && BitsOf(desc.dtype) > 0
                         ? BytesOf(desc.dtype, static_cast<uint64_t>(shape.elements()))
                         : std::nullopt;
  if (bytes && *bytes <= tensor.data->size()) {
    const std::vector<std::string> items = ElementsOf(tensor, shape.elements());
    size_t next = 0;
    if (!items.empty()) {
      return fmt::format("{}, dtype={}", Nested(items, shape, 0, next), dtype);
    }
  }
  return fmt::format("None, dtype={}, shape={}", dtype, shape.ToString());
}

std::string ListText(const ListAttr& list) {
  std::vector<std::string> items;
  for (const int64_t item : list.i) items.push_back(fmt::format("{}", item));
  for (const float item : list.f) items.push_back(fmt::format("{}", item));
  for (const std::string& item : list.s) items.push_back(PythonRepr(item));
  for (const bool item : list.b) items.emplace_back(item ? "True" : "False");
  for (const DataType item : list.dt) items.push_back(fmt::format("{}", static_cast<int>(item)));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// Empty for values that Python could not write down.
std::string ValueText(const AttrValue& value) {
  if (const auto* v = value.get<int64_t>()) return fmt::format("{}", *v);
  if (const auto* v = value.get<float>()) {
    return std::isfinite(*v) ? fmt::format("{}", *v) : fmt::format("float('{}')", *v);
  }
  if (const auto* v = value.get<bool>()) return *v ? "True" : "False";
  if (const auto* v = value.get<std::string>()) return PythonRepr(*v);
  if (const auto* v = value.get<DataTypeAttr>()) return fmt::format("{}", v->number);
  if (const auto* v = value.get<ListAttr>()) return ListText(*v);
  return "";
}

bool IsIdentifier(std::string_view name) {
  if (name.empty() || name[0] == '_' || std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
}

class Script {
 public:
  explicit Script(const Graph& graph) : graph_(graph) {}

  std::string Write() {
    std::string text(kHead);
    for (const NodeId id : FileOrder(graph_)) text += Line(graph_.node(id));
    return text;
  }

 private:
  std::string Line(const Node& node) {
    if (IsNetOutput(node)) {
      return fmt::format("_ = ge.NetOutput([{}], dependencies=[{}])\n",
                         fmt::join(Names(node), ", "), fmt::join(Controls(node), ", "));
    }
    // An operator's name is Python only if it is a word.
    const std::string type = IsIdentifier(node.type) ? node.type : "Unknown";
    return fmt::format("{} = ge.{}({})\n", Targets(node), type, fmt::join(Arguments(node), ", "));
  }

  std::string Targets(const Node& node) {
    if (node.output_descs.empty()) return "_";
    std::vector<std::string> targets;
    for (int port = 0; port < static_cast<int>(node.output_descs.size()); ++port) {
      targets.push_back(NewName(node, port));
    }
    return fmt::format("{}", fmt::join(targets, ", "));
  }

  // "<node>_<out>" with everything but letters and digits replaced; each once.
  std::string NewName(const Node& node, int port) {
    std::string name;
    for (const char c : node.name) {
      name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "n" + name;
    name += fmt::format("_{}", port);
    while (!taken_.insert(name).second) name += "_";
    return names_[{node.id, port}] = name;
  }

  std::vector<std::string> Names(const Node& node) const {
    std::vector<std::string> names;
    for (const std::optional<Value>& input : node.inputs) {
      const auto known = input ? names_.find(*input) : names_.end();
      names.push_back(known == names_.end() ? "None" : known->second);
    }
    return names;
  }

  std::vector<std::string> Controls(const Node& node) const {
    std::vector<std::string> names;
    for (const NodeId control : node.controls) {
      const auto known = names_.find({control, 0});
      if (known != names_.end()) names.push_back(known->second);
    }
    return names;
  }

  // Ports x0, x1, ... are one list: a dynamic input.
  std::vector<std::string> Inputs(const Node& node) const {
    const std::vector<std::string> names = Names(node);
    std::vector<std::string> inputs;
    for (size_t i = 0; i < names.size();) {
      const std::string& port = node.input_descs[i].name;
      const std::string base = port.ends_with("0") ? port.substr(0, port.size() - 1) : "";
      size_t end = i + 1;
      while (!base.empty() && end < names.size() &&
             node.input_descs[end].name == fmt::format("{}{}", base, end - i)) {
        ++end;
      }
      inputs.push_back(
          base.empty()
              ? names[i]
              : fmt::format("[{}]", fmt::join(names.begin() + static_cast<long>(i),
                                              names.begin() + static_cast<long>(end), ", ")));
      i = end;
    }
    return inputs;
  }

  std::vector<std::string> DataArguments(const Node& node) const {
    const TensorDesc desc = node.output_descs.empty() ? TensorDesc() : node.output_descs[0];
    return {fmt::format("index={}", node.IntAttr("index", 0)),
            fmt::format("dtype={}", static_cast<int>(desc.dtype)),
            fmt::format("shape=[{}]", fmt::join(desc.shape.value_or(Shape()).dims(), ", ")),
            fmt::format("placement=\"{}\"", desc.device_type == "CPU" ? "CPU" : "NPU")};
  }

  std::vector<std::string> Arguments(const Node& node) const {
    std::vector<std::string> arguments;
    const AttrValue* value = node.FindAttr("value");
    const TensorAttr* tensor = value != nullptr ? value->get<TensorAttr>() : nullptr;
    if (IsInputNode(node)) {
      arguments = DataArguments(node);
    } else if (IsConstType(node.type) && tensor != nullptr) {
      arguments = {ConstText(*tensor)};
    } else {
      arguments = Inputs(node);
      for (const auto& [name, attr] : node.attrs) {
        const std::string text = ValueText(attr);
        if (IsIdentifier(name) && !text.empty()) {
          arguments.push_back(fmt::format("{}={}", name, text));
        }
      }
    }
    const std::vector<std::string> controls = Controls(node);
    if (!controls.empty()) {
      arguments.push_back(fmt::format("dependencies=[{}]", fmt::join(controls, ", ")));
    }
    arguments.push_back(fmt::format("node_name={}", PythonRepr(node.name)));
    return arguments;
  }

  const Graph& graph_;
  std::map<Value, std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

std::string ToPythonText(const Model& model) {
  return Script(model.graph).Write();
}

}  // namespace npumesh
