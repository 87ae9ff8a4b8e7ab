#include "graph/compare/sources/msprobe_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "graph/io/npy.h"
#include "graph/io/torch_file.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostFileBytes = uint64_t{1} << 32;

// A tensor or a number among the arguments or results of a call.
struct ProbedValue {
  std::string file;              // below the folder; empty: the elements are not there
  std::optional<Tensor> number;  // a Python number
  DumpedStatistics statistics;   // of a tensor
};

// "torch.float32" of torch, "Float32" of MindSpore.
DataType DataTypeOf(std::string name) {
  constexpr std::string_view kTorch = "torch.";
  if (name.starts_with(kTorch)) name.erase(0, kTorch.size());
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return DataTypeFromName(name).value_or(DataType::kUndefined);
}

std::string TextIn(const json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_string() ? value->get<std::string>() : std::string();
}

// Of tensors of booleans true and false; "NaN" and the like as QuotePythonNumbers leaves them.
std::optional<double> NumberIn(const json& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end()) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (*value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (*value == "Infinity") return kInfinity;
  if (*value == "-Infinity") return -kInfinity;
  return std::nullopt;
}

std::optional<Shape> ShapeIn(const json& object) {
  const auto value = object.find("shape");
  if (value == object.end() || !value->is_array()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const json& dim : *value) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 0) return std::nullopt;
    dims.push_back(dim.get<int64_t>());
  }
  Shape shape(std::move(dims));
  if (!shape.Check().ok()) return std::nullopt;
  return shape;
}

std::optional<Tensor> PythonNumber(const json& value) {
  if (value.is_boolean()) {
    return Tensor::FromVector<uint8_t>({DataType::kBool, {}},
                                       {value.get<bool>() ? uint8_t{1} : uint8_t{0}});
  }
  if (value.is_number_integer()) {
    return Tensor::FromVector<int64_t>({DataType::kInt64, {}}, {value.get<int64_t>()});
  }
  const std::optional<double> number = NumberIn({{"value", value}}, "value");
  if (!number) return std::nullopt;
  return Tensor::FromVector<double>({DataType::kDouble, {}}, {*number});
}

// The parts of "Functional.linear.0.forward".
std::vector<std::string_view> PartsOf(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "linear" of Functional.linear.0.forward, "Linear" of Module.a.Linear.forward.0; a collective
// keeps what it is of, "Distributed.all_reduce".
std::string TypeOf(std::string_view name) {
  const std::vector<std::string_view> parts = PartsOf(name);
  if (parts.size() < 4) return "";
  const std::string type(parts[parts.size() - 3]);
  return parts[0] == "Distributed" ? "Distributed." + type : type;
}

class MsprobeFolder final : public TensorSource {
 public:
  MsprobeFolder(std::string folder, bool has_files)
      : folder_(std::move(folder)), has_files_(has_files) {}

  // A call or module of dump.json.
  void Add(const std::string& name, const json& call) {
    if (!call.is_object() || !keys_.insert(OperatorKey(name)).second) return;
    op_ = {OperatorKey(name), name, TypeOf(name), {}, {}};
    int inputs = 0, outputs = 0;
    constexpr std::array<const char*, 4> kInputs = {"input_args", "input", "input_kwargs",
                                                    "parameters"};
    for (const char* const part : kInputs) {
      if (call.contains(part)) Collect(call[part], Side::kInput, inputs);
    }
    for (const auto& [part, values] : call.items()) {  // "output"; gradients by parameter
      const bool input = std::find(kInputs.begin(), kInputs.end(), part) != kInputs.end();
      if (!input && values.is_structured()) Collect(values, Side::kOutput, outputs);
    }
    if (op_.inputs.empty() && op_.outputs.empty()) return;
    operators_.push_back(std::move(op_));
  }

  const std::string& title() const override { return folder_; }
  const std::vector<SourceOperator>& operators() const override { return operators_; }

  Result<Tensor> Load(const std::string& key, Side side, int index) const override {
    const ProbedValue* const value = ValueOf(key, side, index);
    if (value == nullptr) return NoSuchTensor(*this, key, side, index);
    if (value->number) return *value->number;
    if (value->file.empty()) {
      return Error(Code::kNotFound, "{}: of {} {} of \"{}\" there are only statistics", folder_,
                   Name(side), index, key);
    }
    const std::string path = FileOf(key, side, index);
    return path.ends_with(".npy") ? ReadNpy(path) : ReadTorchTensor(path);
  }

  bool HasElements(const std::string& key, Side side, int index) const override {
    const ProbedValue* const value = ValueOf(key, side, index);
    return value != nullptr && (value->number || !value->file.empty());
  }

  std::optional<DumpedStatistics> StatisticsOf(const std::string& key, Side side,
                                               int index) const override {
    const ProbedValue* const value = ValueOf(key, side, index);
    if (value == nullptr) return std::nullopt;
    if (!value->number) return value->statistics;
    DumpedStatistics statistics;
    statistics.type = value->number->type();
    return statistics;
  }

  std::string FileOf(const std::string& key, Side side, int index) const override {
    const ProbedValue* const value = ValueOf(key, side, index);
    if (value == nullptr || value->file.empty()) return {};
    return fmt::format("{}/{}/{}", folder_, kMsprobeTensors, value->file);
  }

  std::string CalledAt(const std::string& key) const override;

 private:
  const ProbedValue* ValueOf(const std::string& key, Side side, int index) const {
    const auto value = values_.find({key, side, index});
    return value == values_.end() ? nullptr : &value->second;
  }

  // Counts in `next` what lies in lists and dictionaries, tensors and others.
  void Collect(const json& value, Side side, int& next) {
    const bool leaf =
        !value.is_structured() || (value.is_object() && !TextIn(value, "type").empty());
    if (leaf) {
      Take(value, side, next++);
      return;
    }
    for (const json& part : value) Collect(part, side, next);
  }

  void Take(const json& leaf, Side side, int index) {
    if (!leaf.is_object()) return;
    ProbedValue value;
    if (const std::optional<Shape> shape = ShapeIn(leaf)) {
      value.statistics.type = {DataTypeOf(TextIn(leaf, "dtype")), *shape};
      value.statistics.max = NumberIn(leaf, "Max");
      value.statistics.min = NumberIn(leaf, "Min");
      value.statistics.mean = NumberIn(leaf, "Mean");
      value.statistics.norm = NumberIn(leaf, "Norm");
      value.statistics.checksum = TextIn(leaf, "md5");
      const std::string file = TextIn(leaf, "data_name");
      // A name, no path to elsewhere.
      const bool is_name = file.find('/') == file.npos;
      if (has_files_ && is_name && (file.ends_with(".pt") || file.ends_with(".npy"))) {
        value.file = file;
      }
    } else if (leaf.contains("value")) {
      value.number = PythonNumber(leaf["value"]);
      if (!value.number) return;
    } else {
      return;
    }
    AddIndex(op_, side, index);
    values_[{op_.key, side, index}] = std::move(value);
  }

  const std::string folder_;
  const bool has_files_;
  SourceOperator op_;  // that is being added
  std::set<std::string> keys_;
  std::vector<SourceOperator> operators_;
  std::map<std::tuple<std::string, Side, int>, ProbedValue> values_;
};

Result<json> ReadJsonFile(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMostFileBytes));
  return ParseForeignJson(QuotePythonNumbers(std::move(text)));
}

// Frames of stack.json, the innermost first: {"3": [[names], [frames]]}, before msProbe 8
// {name: [frames]}. Null: none is known.
const json* FramesOf(const json& stacks, const std::string& name) {
  if (!stacks.is_object()) return nullptr;
  if (const auto own = stacks.find(name); own != stacks.end()) return &*own;
  for (const json& entry : stacks) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_array()) continue;
    if (std::find(entry[0].begin(), entry[0].end(), json(name)) != entry[0].end()) return &entry[1];
  }
  return nullptr;
}

// The innermost frame outside of the framework; empty: all are within.
std::string UserFrame(const json& frames) {
  if (!frames.is_array()) return "";
  for (const json& one : frames) {
    if (!one.is_string()) continue;
    std::string frame = one.get<std::string>();
    constexpr std::array<std::string_view, 4> kFrameworks = {"/torch/", "/torch_npu/",
                                                             "/mindspore/", "/msprobe/"};
    const bool inside = std::any_of(kFrameworks.begin(), kFrameworks.end(),
                                    [&](auto part) { return frame.find(part) != frame.npos; });
    if (inside) continue;
    // "File graph_test.py, line 10, in forward, \n h = f(x)"
    constexpr std::string_view kFile = "File ";
    constexpr std::string_view kLine = ", \n ";
    if (frame.starts_with(kFile)) frame.erase(0, kFile.size());
    if (const size_t line = frame.find(kLine); line != frame.npos) {
      frame.replace(line, kLine.size(), ": ");
    }
    return frame;
  }
  return "";
}

// A backward call was called where its forward one was.
std::string ForwardName(std::string name) {
  constexpr std::string_view kBackward = ".backward";
  if (const size_t at = name.rfind(kBackward); at != name.npos) {
    name.replace(at, kBackward.size(), ".forward");
  }
  return name;
}

std::string MsprobeFolder::CalledAt(const std::string& key) const {
  const SourceOperator* const op = Find(key);
  if (op == nullptr) return "";
  const std::string name = ForwardName(op->name);
  std::string text;
  if (const Result<json> stacks = ReadJsonFile(folder_ + "/stack.json"); stacks.ok()) {
    if (const json* const frames = FramesOf(*stacks, name)) text = UserFrame(*frames);
  }
  const Result<json> modules = ReadJsonFile(folder_ + "/construct.json");
  if (modules.ok() && modules->is_object()) {
    const std::string around = TextIn(*modules, op->name.c_str());
    if (!around.empty()) text += fmt::format("{}inside {}", text.empty() ? "" : "; ", around);
  }
  return text;
}

bool HasTensorFiles(const std::string& folder) {
  std::error_code error;
  return std::filesystem::is_directory(fmt::format("{}/{}", folder, kMsprobeTensors), error);
}

std::optional<uint64_t> NumberBehind(std::string_view part, std::string_view word, uint64_t most) {
  if (!part.starts_with(word)) return std::nullopt;
  const Result<int64_t> number =
      ParseInt(part.substr(word.size()), 0, static_cast<int64_t>(most), "folder");
  if (!number.ok()) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

}  // namespace

MsprobePlace MsprobePlaceOf(const std::string& folder) {
  constexpr uint64_t kMostSteps = uint64_t{1} << 62;
  constexpr uint64_t kMostRanks = 1 << 20;
  MsprobePlace place;
  for (const auto& part : std::filesystem::absolute(folder).lexically_normal()) {
    if (const auto step = NumberBehind(part.string(), "step", kMostSteps)) place.step = step;
    if (const auto rank = NumberBehind(part.string(), "rank", kMostRanks - 1)) {
      place.rank = static_cast<int>(*rank);
    }
  }
  return place;
}

bool IsMsprobeFolder(const std::string& folder) {
  const auto list = MappedFile::Open(fmt::format("{}/{}", folder, kMsprobeFile));
  if (!list.ok()) return false;
  constexpr uint64_t kHead = 4096;
  const std::string_view head(reinterpret_cast<const char*>((*list)->data()),
                              std::min((*list)->size(), kHead));
  if (head.find("\"dump_data_dir\"") != head.npos || head.find("\"data\"") != head.npos)
    return true;
  return HasTensorFiles(folder);
}

Result<std::unique_ptr<TensorSource>> ReadMsprobeDump(std::string text, const std::string& folder,
                                                      bool has_files) {
  std::vector<std::string> names;  // calls in their order
  bool in_data = false;
  const json dump =
      ParseForeignJson(QuotePythonNumbers(std::move(text)), [&](int level, const std::string& key) {
        if (level == 1) in_data = key == "data";
        if (level == 2 && in_data) names.push_back(key);
      });
  const std::string path = fmt::format("{}/{}", folder, kMsprobeFile);
  if (dump.is_discarded()) {
    return Error(Code::kCorrupt, "{} is no whole JSON; was it copied whole?", path);
  }
  if (!dump.is_object() || !dump.contains("data") || !dump["data"].is_object()) {
    return Error(Code::kCorrupt, "{} is no dump of msProbe: it has no \"data\"", path);
  }
  auto source = std::make_unique<MsprobeFolder>(folder, has_files);
  for (const std::string& name : names) {
    const auto call = dump["data"].find(name);
    if (call != dump["data"].end()) source->Add(name, *call);
  }
  if (source->operators().empty()) return Error(Code::kNotFound, "{}: it has no tensor", path);
  return std::unique_ptr<TensorSource>(std::move(source));
}

Result<std::unique_ptr<TensorSource>> OpenMsprobeFolder(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(std::string text,
                           ReadFile(fmt::format("{}/{}", folder, kMsprobeFile), kMostFileBytes));
  return ReadMsprobeDump(std::move(text), folder, HasTensorFiles(folder));
}

}  // namespace npumesh
