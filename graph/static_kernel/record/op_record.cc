#include "graph/static_kernel/record/op_record.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/plain_layout.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/strings.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

// The types that the vendor's op library records as targets, in its order and spelling.
constexpr std::string_view kListedTypes[] = {
    "FlashAttentionScore",
    "FlashAttentionScoreGrad",
    "MatMulV2",
    "MatMul",
    "BatchMatMulV2",
    "BatchMatMul",
    "Transpose",
    "TransData",
    "GeluGrad",
    "Gelu",
    "FastGelu",
    "FastGeluGrad",
    "SoftmaxV2",
    "SoftmxGrad",  // not "SoftmaxGrad"
    "LayerNorm",
    "LayerNormXBackpropV2",
    "LayerNormXBackpropV3",
    "LayerNormBetaGammaBackpropV2",
    "LayerNormV3",
    "Renorm",
};

// Leaves room in the 255 bytes of a file name for "_<n>.json" and for the name of a file on its
// way.
constexpr size_t kLongestStem = 180;

std::string_view RecordedKind(PortKind kind) {
  switch (kind) {
    case PortKind::kRequired:
      return "required";
    case PortKind::kOptional:
      return "optional";
    case PortKind::kDynamic:
      break;
  }
  return "dynamic";
}

// ---- tensors ----

// The elements as numbers; "NULL" when they are not known before the operator runs, or are no
// numbers.
nlohmann::json ConstData(const Tensor* tensor) {
  if (tensor == nullptr) return "NULL";
  return VisitStored(
      tensor->dtype(),
      [&]<typename T>() {
        nlohmann::json numbers = nlohmann::json::array();
        for (const T element : tensor->as<T>()) numbers.push_back(NumberOf(element));
        return numbers;
      },
      []() -> nlohmann::json { return "NULL"; });
}

// A port of the schema and its place there.
struct RecordedPort {
  const PortSpec& spec;
  size_t index;
};

nlohmann::json TensorRecord(const RecordedPort& port, const TensorType& type,
                            const TensorDesc& desc) {
  const std::string layout = PlainLayoutOf(desc);
  return {{"name", port.spec.name},
          {"index", port.index},
          {"param_type", RecordedKind(port.spec.kind)},
          {"dtype", RecordedType(type.dtype)},
          {"shape", type.shape.dims()},
          {"format", layout},
          {"origin_shape", type.shape.dims()},
          {"origin_format", layout},
          {"value_depend", false},
          {"is_view", false}};
}

nlohmann::json InputRecord(const OpContext& context, const RecordedPort& port, int slot,
                           bool value_depend) {
  const auto input = static_cast<size_t>(context.input_index(slot));
  nlohmann::json record = TensorRecord(port, context.in(slot), context.node().input_descs[input]);
  if (value_depend) {
    record["value_depend"] = true;
    record["const_data"] = ConstData(context.value(slot));
  }
  return record;
}

nlohmann::json InputRecords(const Operator& op, const OpContext& context) {
  nlohmann::json records = nlohmann::json::array();
  const std::vector<PortSpec>& ports = context.schema().inputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    const RecordedPort port{ports[i], i};
    const bool value_depend =
        std::ranges::find(op.value_inputs, port.spec.name) != op.value_inputs.end();
    const int first = context.slot(port.spec.name);
    nlohmann::json fed = nlohmann::json::array();
    for (int n = 0; n < context.count(port.spec.name); ++n) {
      fed.push_back(InputRecord(context, port, first + n, value_depend));
    }
    if (port.spec.kind == PortKind::kDynamic) {
      records.push_back(std::move(fed));
    } else {
      records.push_back(fed.empty() ? nullptr : std::move(fed[0]));
    }
  }
  return records;
}

// How many outputs of the node a dynamic port has; several dynamic ports have equally many.
int ElementsOfDynamicOutput(const OpContext& context) {
  const std::vector<PortSpec>& ports = context.schema().outputs;
  const auto dynamic = std::ranges::count(ports, PortKind::kDynamic, &PortSpec::kind);
  const auto fixed = static_cast<int>(ports.size()) - static_cast<int>(dynamic);
  return dynamic == 0 ? 0 : std::max(0, context.outputs() - fixed) / static_cast<int>(dynamic);
}

nlohmann::json OutputRecords(const OpContext& context) {
  nlohmann::json records = nlohmann::json::array();
  const std::vector<PortSpec>& ports = context.schema().outputs;
  const int elements = ElementsOfDynamicOutput(context);
  int output = 0;
  const auto next = [&](const RecordedPort& port) -> nlohmann::json {
    const int at = output++;
    if (at >= context.outputs()) return nullptr;
    return TensorRecord(port, context.out(at),
                        context.node().output_descs[static_cast<size_t>(at)]);
  };
  for (size_t i = 0; i < ports.size(); ++i) {
    const RecordedPort port{ports[i], i};
    if (port.spec.kind != PortKind::kDynamic) {
      records.push_back(next(port));
      continue;
    }
    nlohmann::json list = nlohmann::json::array();
    for (int n = 0; n < elements; ++n) list.push_back(next(port));
    records.push_back(std::move(list));
  }
  return records;
}

// ---- attributes ----

struct RecordedValue {
  std::string_view dtype;
  nlohmann::json value;
};

RecordedValue ListRecord(const ListAttr& list) {
  if (!list.f.empty() || list.kind == ListKind::kFloat) return {"list_float", list.f};
  if (!list.b.empty() || list.kind == ListKind::kBool) return {"list_bool", list.b};
  if (!list.s.empty() || list.kind == ListKind::kString) return {"list_str", list.s};
  if (list.dt.empty()) return {"listInt", list.i};
  nlohmann::json numbers = nlohmann::json::array();
  for (const DataType dtype : list.dt) numbers.push_back(static_cast<int>(dtype));
  return {"listInt", std::move(numbers)};
}

// A value by its kind; null for kinds that the vendor's records do not have (tensors, graphs).
RecordedValue ValueRecord(const AttrValue& value) {
  if (const auto* i = value.get<int64_t>()) return {"int", *i};
  if (const auto* f = value.get<float>()) return {"float", *f};
  if (const auto* b = value.get<bool>()) return {"bool", *b};
  if (const auto* s = value.get<std::string>()) return {"str", *s};
  if (const auto* dtype = value.get<DataTypeAttr>()) return {"int", dtype->number};
  if (const auto* list = value.get<ListAttr>()) return ListRecord(*list);
  if (const auto* rows = value.get<ListListInt>()) return {"list_list_int", rows->values};
  if (const auto* rows = value.get<ListListFloat>()) return {"list_list_float", rows->values};
  return {value.kind(), nullptr};
}

// The value in the kind that the schema gives it, because older producers write ints for bools,
// floats and lists of one.
RecordedValue AttrRecord(const OpContext& context, const AttrSpec& spec) {
  const AttrValue& kind = spec.pattern;
  if (kind.get<int64_t>()) return {"int", context.attr_int(spec.name)};
  if (kind.get<float>()) return {"float", context.attr_float(spec.name)};
  if (kind.get<bool>()) return {"bool", context.attr_bool(spec.name)};
  if (const auto* list = kind.get<ListAttr>(); list != nullptr && list->kind == ListKind::kInt) {
    return {"listInt", context.attr_ints(spec.name)};
  }
  const AttrValue* value = context.node().FindAttr(spec.name);
  const bool given = value != nullptr && value->get<OpaqueAttr>() == nullptr;
  if (!given) value = spec.fallback ? &*spec.fallback : nullptr;
  return value == nullptr ? RecordedValue{kind.kind(), nullptr} : ValueRecord(*value);
}

nlohmann::json AttrRecords(const OpContext& context) {
  nlohmann::json records = nlohmann::json::array();
  for (const AttrSpec& spec : context.schema().attrs) {
    RecordedValue recorded = AttrRecord(context, spec);
    records.push_back({{"name", spec.name},
                       {"index", records.size()},
                       {"dtype", recorded.dtype},
                       {"value", std::move(recorded.value)}});
  }
  return records;
}

// ---- names ----

std::string StemOf(const OpContext& context) {
  std::string stem = FileNamePart(context.node().type);
  const std::vector<PortSpec>& ports = context.schema().inputs;
  if (!ports.empty() && context.has(ports[0].name)) {
    const TensorType& type = context.in(0);
    const auto input = static_cast<size_t>(context.input_index(0));
    stem += fmt::format("_{}_{}", RecordedType(type.dtype),
                        FileNamePart(PlainLayoutOf(context.node().input_descs[input])));
    for (const int64_t dim : type.shape.dims()) stem += fmt::format("_{}", dim);
  }
  return stem.substr(0, kLongestStem);
}

}  // namespace

std::string RecordedType(DataType dtype) {
  constexpr std::string_view kPrefix = "DT_";
  return LowerCase(SerialName(dtype).substr(kPrefix.size()));
}

std::string FileNamePart(std::string_view text) {
  std::string part(text);
  for (char& c : part) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '-') c = '_';
  }
  return part;
}

OpRecord RecordOf(const Operator& op, const OpContext& context) {
  // A simulated NPU has as many cores as its kernels have threads, and one implementation of each
  // operator, which gives the same bits each time.
  const nlohmann::json record = {
      {"op_type", context.node().type},
      {"tune_mode", "all"},
      {"inputs", InputRecords(op, context)},
      {"outputs", OutputRecords(context)},
      {"attrs", AttrRecords(context)},
      {"platform_info",
       {{"vector_core_cnt", context.threads()}, {"cube_core_cnt", context.threads()}}},
      {"impl_mode", "high_precision"},
      {"deterministic", "true"},
      {"deterministic_level", 1}};
  return {.stem = StemOf(context),
          .json = JsonText(record),
          .listed = std::ranges::find(kListedTypes, context.node().type) != std::end(kListedTypes)};
}

}  // namespace npumesh
