#include "launch/atc/single_operators.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "graph/io/layout.h"
#include "launch/atc/atc_error.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_error.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFlag = "singleop";
constexpr size_t kLongestName = 128;  // of a file, without .om

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// The vendor's words for types, and those of npumesh.
std::optional<DataType> TypeOf(const std::string& word) {
  const std::string lower = Lower(word);
  if (lower == "half" || lower == "fp16") return DataType::kFloat16;
  if (lower == "float") return DataType::kFloat;
  if (lower == "undefined") return DataType::kUndefined;
  if (const auto known = DataTypeFromName(lower)) return known;
  return DataTypeFromName(Upper(word));
}

// The layout of a word; nullopt for one that is not known. Of an absent tensor "RESERVED".
std::optional<std::string> LayoutOf(const std::string& word) {
  const std::string upper = Upper(word);
  if (upper == "RESERVED" || upper == "UNDEFINED") return "ND";
  const int64_t number = LayoutNumber(upper);
  if (number == kReservedLayout) return std::nullopt;
  return LayoutName(number);
}

template <typename... Args>
Status Wrong(std::string_view code, fmt::format_string<Args...> format, Args&&... args) {
  return AtcError(code, kFlag, "{}", fmt::format(format, std::forward<Args>(args)...));
}

// Whole numbers of a list; nullopt: it is another value.
std::optional<std::vector<int64_t>> IntsIn(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& each : value) {
    if (!each.is_number_integer()) return std::nullopt;
    numbers.push_back(each.get<int64_t>());
  }
  return numbers;
}

// ---- Constants ----

template <typename To>
void PutAs(const Json& number, std::string* bytes) {
  To value{};
  if constexpr (StoredHalf<To>) {
    value = To(number.get<float>());
  } else {
    value = number.get<To>();
  }
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

using PutFn = void (*)(const Json& number, std::string* bytes);

// Null: a type without numbers.
PutFn PutterOf(DataType dtype) {
  if (dtype == DataType::kBool) return PutAs<bool>;
  return VisitStored(
      dtype, []<typename T>() -> PutFn { return PutAs<T>; }, [] { return PutFn(); });
}

// ---- One tensor ----

// "input tensor 1 of Op Add".
struct TensorPlace {
  std::string_view op;
  const char* side;
  size_t index;

  Status Wrong(const char* member, std::string_view expected) const {
    return npumesh::Wrong(atc_code::kTensor,
                          "has a wrong \"{}\" of {} tensor {} of Op {}; expected {}", member, side,
                          index, op, expected);
  }
};

class TensorReader {
 public:
  TensorReader(const Json& object, TensorPlace place) : object_(object), place_(place) {}

  Result<OperatorTensor> Read() {
    if (!object_.is_object()) return place_.Wrong("desc", "an object");
    OperatorTensor tensor;
    NPUMESH_RETURN_IF_ERROR(ReadType(&tensor));
    if (tensor.absent()) return tensor;
    NPUMESH_RETURN_IF_ERROR(ReadLayouts(&tensor));
    NPUMESH_RETURN_IF_ERROR(ReadDims("shape", &tensor.type.shape));
    if (object_.contains("origin_shape")) {
      NPUMESH_RETURN_IF_ERROR(ReadDims("origin_shape", &tensor.origin_shape));
    }
    NPUMESH_RETURN_IF_ERROR(ReadText("name", &tensor.name));
    NPUMESH_RETURN_IF_ERROR(ReadText("dynamic_input", &tensor.list));
    NPUMESH_RETURN_IF_ERROR(ReadConstant(&tensor));
    return tensor;
  }

 private:
  // An absent member leaves the text.
  Status ReadText(const char* member, std::string* text) const {
    const auto found = object_.find(member);
    if (found == object_.end()) return Status();
    if (!found->is_string()) return place_.Wrong(member, "a text");
    *text = found->get<std::string>();
    return Status();
  }

  Status ReadType(OperatorTensor* tensor) const {
    std::string word;
    NPUMESH_RETURN_IF_ERROR(ReadText("type", &word));
    const auto dtype = TypeOf(word);
    if (!dtype) return place_.Wrong("type", "a type such as float16");
    tensor->type.dtype = *dtype;
    return Status();
  }

  Status ReadLayouts(OperatorTensor* tensor) const {
    std::string word, origin;
    NPUMESH_RETURN_IF_ERROR(ReadText("format", &word));
    const auto layout = LayoutOf(word);
    if (!layout) return place_.Wrong("format", "a format such as ND");
    tensor->layout = *layout;
    NPUMESH_RETURN_IF_ERROR(ReadText("origin_format", &origin));
    if (origin.empty()) return Status();
    const auto origin_layout = LayoutOf(origin);
    if (!origin_layout) return place_.Wrong("origin_format", "a format such as ND");
    tensor->origin_layout = *origin_layout;
    return Status();
  }

  Status ReadDims(const char* member, Shape* shape) const {
    const auto found = object_.find(member);
    const auto dims = found == object_.end() ? std::nullopt : IntsIn(*found);
    if (!dims || !Shape(*dims).Check().ok()) return place_.Wrong(member, "a list of dimensions");
    *shape = Shape(*dims);
    return Status();
  }

  Status ReadConstant(OperatorTensor* tensor) const {
    const auto is_const = object_.find("is_const");
    if (is_const == object_.end()) return Status();
    if (!is_const->is_boolean()) return place_.Wrong("is_const", "true or false");
    if (!is_const->get<bool>()) return Status();
    const PutFn put = PutterOf(tensor->type.dtype);
    if (put == nullptr || !tensor->type.shape.is_static()) {
      return place_.Wrong("is_const", "a constant of numbers and of a known shape");
    }
    const auto values = object_.find("const_value");
    const auto count = static_cast<size_t>(tensor->type.shape.elements());
    const bool fits = values != object_.end() && values->is_array() && values->size() == count &&
                      std::all_of(values->begin(), values->end(), [](const Json& each) {
                        return each.is_number() || each.is_boolean();
                      });
    if (!fits) return place_.Wrong("const_value", fmt::format("a list of {} numbers", count));
    std::string bytes;
    for (const Json& each : *values) {
      put(each.is_boolean() ? Json(each.get<bool>() ? 1 : 0) : each, &bytes);
    }
    tensor->value = Tensor::FromString(tensor->type, std::move(bytes));
    return Status();
  }

  const Json& object_;
  TensorPlace place_;
};

// ---- Attributes ----

// Values of one kind; nullopt: one is of another.
template <typename T>
std::optional<std::vector<T>> ListIn(const Json& value, bool (*is)(const Json&)) {
  if (!value.is_array()) return std::nullopt;
  std::vector<T> list;
  for (const Json& each : value) {
    if (!is(each)) return std::nullopt;
    list.push_back(each.get<T>());
  }
  return list;
}

bool IsBool(const Json& value) {
  return value.is_boolean();
}
bool IsInt(const Json& value) {
  return value.is_number_integer();
}
bool IsNumber(const Json& value) {
  return value.is_number();
}
bool IsText(const Json& value) {
  return value.is_string();
}

std::optional<AttrValue> AttrType(const Json& value) {
  if (value.is_number_integer()) {
    return AttrValue::Variant(DataTypeAttr{value.get<int64_t>()});
  }
  const auto dtype = value.is_string() ? TypeOf(value.get<std::string>()) : std::nullopt;
  return dtype ? std::optional(AttrValue::Type(*dtype)) : std::nullopt;
}

std::optional<AttrValue> AttrLists(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  ListListInt lists;
  for (const Json& each : value) {
    const auto list = IntsIn(each);
    if (!list) return std::nullopt;
    lists.values.push_back(*list);
  }
  return AttrValue::Variant(std::move(lists));
}

template <typename T>
std::optional<AttrValue> AttrOf(const Json& value, bool (*is)(const Json&), AttrValue (*make)(T)) {
  if (!is(value)) return std::nullopt;
  return make(value.get<T>());
}

template <typename T>
std::optional<AttrValue> AttrOfList(const Json& value, bool (*is)(const Json&),
                                    AttrValue (*make)(std::vector<T>)) {
  auto list = ListIn<T>(value, is);
  if (!list) return std::nullopt;
  return make(*std::move(list));
}

// nullopt: the type is not known, or the value is of another.
std::optional<AttrValue> AttrIn(const std::string& type, const Json& value) {
  if (type == "bool") return AttrOf<bool>(value, IsBool, AttrValue::Bool);
  if (type == "int") return AttrOf<int64_t>(value, IsInt, AttrValue::Int);
  if (type == "float") return AttrOf<float>(value, IsNumber, AttrValue::Float);
  if (type == "string") return AttrOf<std::string>(value, IsText, AttrValue::String);
  if (type == "data_type") return AttrType(value);
  if (type == "list_bool") return AttrOfList<bool>(value, IsBool, AttrValue::Bools);
  if (type == "list_int") return AttrOfList<int64_t>(value, IsInt, AttrValue::Ints);
  if (type == "list_float") return AttrOfList<float>(value, IsNumber, AttrValue::Floats);
  if (type == "list_string") return AttrOfList<std::string>(value, IsText, AttrValue::Strings);
  if (type == "list_list_int") return AttrLists(value);
  return std::nullopt;
}

Status ReadAttr(const Json& object, const std::string& op, AttrMap* attrs) {
  const auto text = [&object](const char* member) {
    const auto found = object.is_object() ? object.find(member) : object.end();
    return object.is_object() && found != object.end() && found->is_string()
               ? found->get<std::string>()
               : std::string();
  };
  const std::string name = text("name"), type = text("type");
  if (name.empty()) {
    return Wrong(atc_code::kAttrName, "has an attribute of Op {} without a \"name\"", op);
  }
  const auto found = object.find("value");
  const auto value = found == object.end() ? std::nullopt : AttrIn(type, *found);
  if (!value) {
    return Wrong(atc_code::kAttrValue,
                 "has the attribute \"{}\" of Op {} with type \"{}\" and another \"value\"; "
                 "expected bool, int, float, string, data_type, list_bool, list_int, list_float, "
                 "list_string or list_list_int and a value of it",
                 name, op, type);
  }
  attrs->insert_or_assign(name, *value);
  return Status();
}

// ---- One operator ----

Result<std::vector<OperatorTensor>> ReadTensors(const Json& object, const std::string& op,
                                                const char* member, const char* side) {
  std::vector<OperatorTensor> tensors;
  const auto found = object.find(member);
  if (found == object.end()) return tensors;
  if (!found->is_array()) {
    return Wrong(atc_code::kTensor, "has \"{}\" of Op {} that is no list", member, op);
  }
  for (size_t i = 0; i < found->size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(tensors.emplace_back(),
                             TensorReader((*found)[i], {op, side, i}).Read());
  }
  return tensors;
}

// GE counts the layout of an absent tensor as 40.
std::string TensorName(const OperatorTensor& tensor) {
  const int64_t layout = tensor.absent() ? kReservedLayout : LayoutNumber(tensor.layout);
  std::string name = fmt::format("_{}_{}", static_cast<int>(tensor.type.dtype), layout);
  for (const int64_t dim : tensor.type.shape.dims()) name += fmt::format("_{}", dim);
  return name;
}

bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

std::string FileName(const Json& object, const SingleOperator& op, size_t index) {
  const auto given = object.find("name");
  if (given != object.end() && given->is_string()) {
    const std::string name = given->get<std::string>().substr(0, kLongestName);
    if (IsFileName(name)) return name + ".om";
  }
  std::string name = fmt::format("{}_{}", index, op.type);
  for (const auto* tensors : {&op.inputs, &op.outputs}) {
    for (const OperatorTensor& tensor : *tensors) name += TensorName(tensor);
  }
  return name.substr(0, kLongestName) + ".om";
}

Result<NamedOperator> ReadOperator(const Json& object, size_t index) {
  const auto type = object.is_object() ? object.find("op") : object.end();
  if (!object.is_object() || type == object.end() || !type->is_string() ||
      type->get<std::string>().empty()) {
    return Wrong(atc_code::kOpName, "has entry {} without an \"op\"", index);
  }
  NamedOperator named;
  SingleOperator& op = named.op;
  op.type = type->get<std::string>();
  NPUMESH_ASSIGN_OR_RETURN(op.inputs, ReadTensors(object, op.type, "input_desc", "input"));
  NPUMESH_ASSIGN_OR_RETURN(op.outputs, ReadTensors(object, op.type, "output_desc", "output"));
  if (const auto attrs = object.find("attr"); attrs != object.end()) {
    if (!attrs->is_array()) {
      return Wrong(atc_code::kAttrName, "has \"attr\" of Op {} that is no list", op.type);
    }
    for (const Json& attr : *attrs) NPUMESH_RETURN_IF_ERROR(ReadAttr(attr, op.type, &op.attrs));
  }
  named.file = FileName(object, op, index);
  return named;
}

}  // namespace

Result<std::vector<NamedOperator>> ParseSingleOperators(const std::string& text,
                                                        const std::string& path) {
  const Json list = ParseForeignJson(text);
  if (list.is_discarded()) {
    return Wrong(atc_code::kNoJson, "has the file {}, which is no JSON: {}", path,
                 JsonErrorIn(text));
  }
  if (!list.is_array() || list.empty()) {
    return Wrong(atc_code::kNoJson, "has the file {}, which is no list of operators", path);
  }
  std::vector<NamedOperator> operators;
  std::set<std::string> files;
  for (size_t i = 0; i < list.size(); ++i) {
    Result<NamedOperator> read = ReadOperator(list[i], i);
    if (!read.ok()) return read.status().WithContext(path);
    operators.push_back(*std::move(read));
    if (files.insert(operators.back().file).second) continue;
    return Wrong(atc_code::kValue, "has the file {}, in which two operators are called {}", path,
                 operators.back().file);
  }
  return operators;
}

Result<std::vector<NamedOperator>> ReadSingleOperators(const std::string& path) {
  const Result<std::string> text = ReadFile(path, uint64_t{1} << 28);
  if (!text.ok()) {
    return Wrong(atc_code::kNoOpFile, "has a file without content: {}", text.status().message());
  }
  return ParseSingleOperators(*text, path);
}

}  // namespace npumesh
