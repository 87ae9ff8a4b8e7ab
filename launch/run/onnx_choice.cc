#include "launch/run/onnx_choice.h"

#include <algorithm>
#include <limits>

#include "graph/io/model_file.h"
#include "graph/io/npy.h"
#include "graph/onnx/onnx_file.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// One number as it is typed, in the bytes of `type`; bools as words, too.
template <typename Number>
Result<std::vector<Number>> NumbersOf(const std::string& text, const std::string& what) {
  std::vector<Number> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word == "true" || word == "false") {
      numbers.push_back(word == "true" ? 1 : 0);
    } else if constexpr (std::is_integral_v<Number>) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t number,
                               ParseInt(word, std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int64_t>::max(), what));
      numbers.push_back(number);
    } else {
      constexpr double kMost = std::numeric_limits<double>::max();
      NPUMESH_ASSIGN_OR_RETURN(const double number, ParseDouble(word, -kMost, kMost, what));
      numbers.push_back(number);
    }
    begin = end + 1;
  }
  return numbers;
}

template <typename Number>
Result<Tensor> TensorOf(const std::string& text, TensorType type, DataType from,
                        const std::string& what) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Number> numbers, NumbersOf<Number>(text, what));
  const auto count = static_cast<int64_t>(numbers.size());
  if (!type.shape.has_rank()) type.shape = count == 1 ? Shape() : Shape({count});
  if (type.shape.rank() == 1 && type.shape[0] < 0) type.shape = Shape({count});
  if (!type.shape.is_static()) {
    return Error(Code::kInvalidArgument,
                 "{}: the input is {}; bind its open dimensions with --dim, or name a .npy file",
                 what, type.ToString());
  }
  if (count == 1) numbers.assign(static_cast<size_t>(type.shape.elements()), numbers[0]);
  const ConvertFn convert = FindConvert(from, type.dtype);
  if (convert == nullptr || static_cast<int64_t>(numbers.size()) != type.shape.elements()) {
    return Error(Code::kInvalidArgument, "{}: {} values for an input that is {}", what, count,
                 type.ToString());
  }
  Tensor tensor = Tensor::Allocate(type);
  convert(numbers.data(), tensor.mutable_data(), numbers.size());
  return tensor;
}

Result<Tensor> ValueOf(const std::string& text, const TensorType& type, const std::string& what) {
  if (text.ends_with(".npy")) {
    NPUMESH_ASSIGN_OR_RETURN(const Tensor read, ReadNpy(text));
    return ReinterpretAs(read, type.dtype);
  }
  return IsFloating(type.dtype) ? TensorOf<double>(text, type, DataType::kDouble, what)
                                : TensorOf<int64_t>(text, type, DataType::kInt64, what);
}

// The tensors that a model takes, numbered as its import numbers them, without those of `values`.
std::vector<InputSpec> TensorsOf(const OnnxModel& model, const OnnxChoice& choice,
                                 DimNames& names) {
  std::vector<InputSpec> specs;
  int64_t index = 0;
  for (const OnnxValueInfo& input : model.graph.inputs) {
    if (model.graph.initialisers.count(input.name) > 0 || choice.values.has(input.name)) continue;
    const auto length = choice.sequence_lengths.find(input.name);
    if (input.type.kind == OnnxKind::kTensor) {
      specs.push_back({input.name, index, input.type.tensor});
      names[index] = input.type.dim_names;
    }
    index += length == choice.sequence_lengths.end() ? 1 : length->second;
  }
  return specs;
}

// Takes sizes that the inputs of all steps have in common.
void TakeSizes(const OnnxChoice& choice, const std::vector<InputSpec>& specs,
               std::vector<TensorType>& types) {
  constexpr uint64_t kMostSteps = 8;
  const uint64_t steps = choice.inputs->has_steps() ? choice.steps : 1;
  if (steps > kMostSteps) return;
  for (size_t i = 0; i < specs.size(); ++i) {
    Shape common;
    for (uint64_t step = 0; step < steps; ++step) {
      const Result<Tensor> given = choice.inputs->Read(step, specs[i].index);
      if (!given.ok()) return;  // the step that needs it says so
      const Shape& shape = given->shape();
      if (step == 0) common = shape;
      if (common.rank() != shape.rank()) common = Shape::UnknownRank();
      for (int d = 0; d < common.rank(); ++d) {
        if (common[d] != shape[d]) common[d] = kUnknownDim;
      }
    }
    Shape& known = types[i].shape;
    if (!known.has_rank()) known = common;
    for (int d = 0; d < known.rank() && known.rank() == common.rank(); ++d) {
      if (known[d] < 0) known[d] = common[d];
    }
  }
}

}  // namespace

Result<InputValues> InputValues::Parse(const std::vector<std::string>& texts) {
  InputValues values;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Code::kInvalidArgument, "--set \"{}\": expected INPUT=VALUE", text);
    }
    if (values.texts_.emplace(text.substr(0, equals), text.substr(equals + 1)).second) continue;
    return Error(Code::kInvalidArgument, "--set {}: the input has a value already", text);
  }
  return values;
}

Result<std::map<std::string, Tensor>> InputValues::As(
    const std::map<std::string, TensorType>& types) const {
  std::map<std::string, Tensor> values;
  for (const auto& [name, text] : texts_) {
    const auto type = types.find(name);
    const std::string what = fmt::format("--set {}", name);
    if (type == types.end()) {
      return Error(Code::kInvalidArgument, "{}: the model has no input of tensors with this name",
                   what);
    }
    NPUMESH_ASSIGN_OR_RETURN(values[name], ValueOf(text, type->second, what));
  }
  return values;
}

Result<ChosenModel> LoadFor(const std::string& path, const OpRegistry& registry,
                            const OnnxChoice& choice, Warnings& notes) {
  NPUMESH_ASSIGN_OR_RETURN(const bool is_onnx, IsOnnxFile(path));
  if (!is_onnx) {
    if (!choice.values.empty()) {
      return Error(Code::kInvalidArgument,
                   "{}: --set makes constants of the inputs of an ONNX model, and this is a graph "
                   "of another kind",
                   path);
    }
    NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(path));
    return ChosenModel{std::move(model), false};
  }
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel onnx, LoadOnnxModel(path));
  OnnxImportOptions options;
  options.sequence_lengths = choice.sequence_lengths;
  options.note = [&](const std::string& note) {
    notes.push_back(fmt::format("{}: {}", path, note));
  };
  std::map<std::string, TensorType> all;
  for (const OnnxValueInfo& input : onnx.graph.inputs) {
    if (input.type.kind == OnnxKind::kTensor) all[input.name] = input.type.tensor;
  }
  DimNames names;
  const std::vector<InputSpec> specs = TensorsOf(onnx, choice, names);
  const auto fix = [&]() -> Status {
    NPUMESH_ASSIGN_OR_RETURN(options.values, choice.values.As(all));
    NPUMESH_ASSIGN_OR_RETURN(std::vector<TensorType> types, choice.dims.ApplySome(specs, names));
    if (choice.inputs != nullptr) TakeSizes(choice, specs, types);
    for (size_t i = 0; i < specs.size(); ++i) options.shapes[specs[i].name] = types[i].shape;
    return Status();
  };
  NPUMESH_RETURN_IF_ERROR(fix().WithContext(path));
  NPUMESH_ASSIGN_OR_RETURN(Model model, ImportOnnx(onnx, registry, options));
  return ChosenModel{std::move(model), true};
}

}  // namespace npumesh
