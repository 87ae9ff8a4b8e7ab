// The calls of operator tests, written down for programs that call operators alone.
//
// With NPUMESH_TEST_RECORD_CALLS=FOLDER a test program leaves there, for the first calls of each
// operator that a client of acl_op.h can make, a folder OPERATOR_N with
//   op.json   the call as the file of `npumesh atc --singleop` says it, with "known" for inputs
//   that
//             are constants without numbers in JSON, and "updated" for inputs that the call changes
//   in<i>, out<i>   the bytes of inputs and outputs; updated inputs follow the outputs
// tests/mpi/acl/operator_calls.py makes them again. NPUMESH_TEST_RECORD_MOST: calls of each.
//
// An object library, linked into every program below tests/unit/ops.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/parse.h"
#include "tests/unit/op_test.h"

namespace npumesh::op_test {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = 16 << 10;  // of a tensor

// Elements as JSON's numbers; null: they have no such form.
json NumbersOf(const Tensor& tensor) {
  static const std::map<DataType, bool> kWholes = {
      {DataType::kInt8, true},    {DataType::kUint8, true},    {DataType::kInt16, true},
      {DataType::kUint16, true},  {DataType::kInt32, true},    {DataType::kUint32, true},
      {DataType::kInt64, true},   {DataType::kBool, true},     {DataType::kFloat, false},
      {DataType::kDouble, false}, {DataType::kFloat16, false}, {DataType::kBfloat16, false}};
  const auto known = kWholes.find(tensor.dtype());
  if (known == kWholes.end()) return nullptr;
  json numbers = json::array();
  const auto width = static_cast<size_t>(BitsOf(tensor.dtype())) / 8;
  const ConvertFn convert =
      FindConvert(tensor.dtype(), known->second ? DataType::kInt64 : DataType::kDouble);
  for (size_t i = 0; i < static_cast<size_t>(tensor.elements()); ++i) {
    int64_t whole = 0;
    double real = 0;
    convert(tensor.data() + i * width,
            known->second ? static_cast<void*>(&whole) : static_cast<void*>(&real), 1);
    if (!std::isfinite(real)) return nullptr;
    numbers.push_back(known->second ? json(whole) : json(real));
  }
  return numbers;
}

json TensorJson(const TensorType& type) {
  return {{"format", "ND"}, {"shape", type.shape.dims()}, {"type", std::string(Name(type.dtype))}};
}

const json kAbsent = {{"format", "RESERVED"}, {"shape", json::array()}, {"type", "UNDEFINED"}};

json ListJson(const ListAttr& list) {
  if (!list.s.empty()) return {{"type", "list_string"}, {"value", list.s}};
  if (!list.f.empty() || list.kind == ListKind::kFloat) {
    return {{"type", "list_float"}, {"value", list.f}};
  }
  if (!list.b.empty() || list.kind == ListKind::kBool) {
    return {{"type", "list_bool"}, {"value", list.b}};
  }
  if (list.kind == ListKind::kString) return {{"type", "list_string"}, {"value", list.s}};
  if (!list.dt.empty()) return nullptr;
  return {{"type", "list_int"}, {"value", list.i}};
}

// Null: there is no such attribute in the file.
json AttrJson(const AttrValue& value) {
  if (const auto* flag = value.get<bool>()) return {{"type", "bool"}, {"value", *flag}};
  if (const auto* number = value.get<int64_t>()) return {{"type", "int"}, {"value", *number}};
  if (const auto* text = value.get<std::string>()) return {{"type", "string"}, {"value", *text}};
  if (const auto* real = value.get<float>()) {
    return std::isfinite(*real) ? json{{"type", "float"}, {"value", *real}} : json();
  }
  if (const auto* type = value.get<DataTypeAttr>()) {
    return {{"type", "data_type"}, {"value", type->number}};
  }
  if (const auto* lists = value.get<ListListInt>()) {
    return {{"type", "list_list_int"}, {"value", lists->values}};
  }
  const auto* list = value.get<ListAttr>();
  return list == nullptr ? json() : ListJson(*list);
}

bool IsKnown(const Operator& op, const OpContext& context, const OpInput& input, int slot) {
  if (input.known != Known::kIfNeeded) return input.known == Known::kYes;
  return std::any_of(op.value_inputs.begin(), op.value_inputs.end(), [&](std::string_view port) {
    const int first = context.slot(port);
    return slot >= first && slot < first + context.count(port);
  });
}

class Recorder final : public CallListener {
 public:
  Recorder(std::string folder, int most) : folder_(std::move(folder)), most_(most) {}

  void Ran(const Operator& op, const OpContext& context, const OpCall& call,
           const std::vector<Tensor>& outputs) override {
    if (op.collective || !op.pure || op.late() || call.groups != nullptr) return;
    const std::optional<json> said = Say(op, context, call, outputs);
    if (!said) return;
    const std::lock_guard lock(mutex_);
    const int number = counts_[call.type]++;
    if (number >= most_) return;
    const std::string place = fmt::format("{}/{}_{}", folder_, call.type, number);
    std::filesystem::create_directories(place);
    std::ofstream(place + "/op.json") << json::array({*said}).dump(1);
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (context.has(slot))
        Write(fmt::format("{}/in{}", place, slot), InputOf(context, call, slot));
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      Write(fmt::format("{}/out{}", place, i), outputs[i]);
  }

 private:
  static const Tensor& InputOf(const OpContext& context, const OpCall& call, int slot) {
    return call.inputs[static_cast<size_t>(context.input_index(slot))].value;
  }

  static void Write(const std::string& path, const Tensor& tensor) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(tensor.data()),
               static_cast<std::streamsize>(tensor.bytes()));
  }

  static std::optional<json> Say(const Operator& op, const OpContext& context, const OpCall& call,
                                 const std::vector<Tensor>& outputs) {
    json said = {{"op", call.type},
                 {"input_desc", json::array()},
                 {"output_desc", json::array()},
                 {"attr", json::array()},
                 {"updated", json::array()}};
    for (const auto& [name, value] : call.attrs) {
      json attr = AttrJson(value);
      if (attr.is_null()) return std::nullopt;
      attr["name"] = name;
      said["attr"].push_back(std::move(attr));
    }
    for (const PortSpec& port : op.schema.inputs) {
      const int first = context.slot(port.name);
      const int count = port.kind == PortKind::kDynamic ? context.count(port.name) : 1;
      for (int i = 0; i < count; ++i) {
        std::optional<json> input = SayInput(op, context, call, first + i);
        if (!input) return std::nullopt;
        if (port.kind == PortKind::kDynamic) {
          (*input)["name"] = fmt::format("{}{}", port.name, i);
          (*input)["dynamic_input"] = port.name;
        }
        said["input_desc"].push_back(*std::move(input));
      }
    }
    for (int port = 0; port < context.outputs(); ++port) {
      if (context.out(port).bytes() > kMostBytes) return std::nullopt;
      said["output_desc"].push_back(TensorJson(context.out(port)));
    }
    for (const InPlace& pair : InPlacesOf(op, context)) {
      if (pair.output >= context.outputs() && context.has(pair.slot)) {
        said["updated"].push_back(pair.slot);
      }
    }
    const size_t expected = static_cast<size_t>(context.outputs()) + said["updated"].size();
    return outputs.size() == expected ? std::optional(said) : std::nullopt;
  }

  static std::optional<json> SayInput(const Operator& op, const OpContext& context,
                                      const OpCall& call, int slot) {
    if (!context.has(slot)) return kAbsent;
    const OpInput& input = call.inputs[static_cast<size_t>(context.input_index(slot))];
    if (input.value.bytes() > kMostBytes) return std::nullopt;
    json said = TensorJson(input.value.type());
    if (!IsKnown(op, context, input, slot)) return said;
    said["known"] = true;
    const json numbers = NumbersOf(input.value);
    if (numbers.is_null()) return said;
    said["is_const"] = true;
    said["const_value"] = numbers;
    return said;
  }

  const std::string folder_;
  const int most_;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

// Before main; never destroyed.
const bool kRecords = [] {
  const char* const folder = std::getenv("NPUMESH_TEST_RECORD_CALLS");
  if (folder == nullptr) return false;
  const char* const most = std::getenv("NPUMESH_TEST_RECORD_MOST");
  constexpr std::string_view kMost = "NPUMESH_TEST_RECORD_MOST";
  const auto number = ParseInt(most == nullptr ? "1" : most, 1, 1'000'000, kMost);
  if (!number.ok()) {
    std::fprintf(stderr, "%s\n", std::string(number.status().message()).c_str());
    std::abort();
  }
  call_listeners().push_back(new Recorder(folder, static_cast<int>(*number)));
  return true;
}();

}  // namespace
}  // namespace npumesh::op_test
