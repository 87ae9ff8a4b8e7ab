#include "launch/atc/atc_job.h"

#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "graph/export/staged_folder.h"
#include "graph/io/model_file.h"
#include "graph/io/offline_file.h"
#include "graph/io/weight_places.h"
#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "graph/offline/offline_compile.h"
#include "graph/onnx/onnx_file.h"
#include "graph/session/group_table.h"
#include "graph/session/session_config.h"
#include "launch/atc/atc_edits.h"
#include "launch/atc/atc_error.h"
#include "launch/atc/atc_shapes.h"
#include "launch/atc/single_operators.h"
#include "launch/ranks/model_choice.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;  // the files keep the order of their members

constexpr std::string_view kRelationFile = "model_relation_config.json";
constexpr std::string_view kNumaFile = "numa_config.json";
constexpr int kAir = 1, kOnnx = 5;

// A model on its way into a file.
struct Compiled {
  std::string path;  // of the .om
  Model model;
  OfflineFacts facts;
};

Status CheckFramework(const AtcOptions& options) {
  switch (options.framework) {
    case -1:
    case kAir:
    case kOnnx:
      return Status();
    case 0:
      return AtcError(atc_code::kValue, "framework",
                      "is 0, Caffe, which npumesh does not read; convert the model to ONNX");
    case 3:
      return AtcError(
          atc_code::kValue, "framework",
          "is 3, TensorFlow, which npumesh does not read; convert the model to ONNX with "
          "tf2onnx");
    default:
      return AtcError(atc_code::kValue, "framework", "is {}; expected 1 (AIR) or 5 (ONNX)",
                      options.framework);
  }
}

Result<WeightHome> HomeOf(const AtcOptions& options) {
  if (options.external_weight == "0") return WeightHome::kInside;
  if (options.external_weight == "1" || options.external_weight == "2") return WeightHome::kBeside;
  return AtcError(atc_code::kValue, "external_weight", "is \"{}\"; expected 0, 1 or 2",
                  options.external_weight);
}

Result<Model> ReadGraph(const AtcOptions& options, const std::string& file,
                        const OpRegistry& registry) {
  if (options.framework == kOnnx) return LoadOnnx(file, registry);
  if (options.framework == kAir) return LoadModel(file);
  return LoadAnyModel(file, registry);
}

// The bytes of every weight in a separate file below `folder`, whose names count on.
Status PutWeightsBeside(const std::string& folder, const std::string& stem, Model* model) {
  size_t count = 0;
  for (const Node& seen : model->graph.nodes()) {
    if (seen.removed || !IsWeightNode(seen)) continue;
    Node& node = model->graph.node(seen.id);
    NPUMESH_ASSIGN_OR_RETURN(const Tensor value, LoadWeight(node, model->path));
    constexpr uint64_t kSmall = 4096;
    if (!IsFileConstant(node) && value.bytes() < kSmall) continue;
    const std::string place = fmt::format("weight/{}/{}", stem, count++);
    NPUMESH_RETURN_IF_ERROR(MakeFoldersBelow(folder, "weight/" + stem, FileKind::kData));
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(folder + "/" + place,
                  {reinterpret_cast<const char*>(value.data()), static_cast<size_t>(value.bytes())},
                  FileKind::kData));
    node.type = "FileConstant";
    for (const char* attr : {"value", "file_id", "location", "offset", "length"}) {
      node.attrs.erase(attr);
    }
    node.attrs["file_path"] = AttrValue::String(place);
    node.attrs["dtype"] = AttrValue::Type(value.dtype());
    node.attrs["shape"] = AttrValue::Ints(value.shape().dims());
  }
  return Status();
}

class Job {
 public:
  Job(const AtcOptions& options, const OpRegistry& registry)
      : options_(options), registry_(registry) {}

  Result<AtcResult> Run() {
    NPUMESH_RETURN_IF_ERROR(CheckFramework(options_));
    NPUMESH_ASSIGN_OR_RETURN(home_, HomeOf(options_));
    NPUMESH_ASSIGN_OR_RETURN(session_.precision, PrecisionFor(options_));
    session_.registry = &registry_;
    const std::string package = PackageFolderOf();
    if (!options_.singleop.empty()) {
      NPUMESH_RETURN_IF_ERROR(CompileOperators());
    } else {
      NPUMESH_RETURN_IF_ERROR(package.empty() ? CompileOne() : CompilePackage(package));
    }
    NPUMESH_RETURN_IF_ERROR(Write(package));
    for (Compiled& compiled : compiled_) result_.facts.push_back(std::move(compiled.facts));
    return std::move(result_);
  }

 private:
  // The folder of a package of several ranks; empty: one model.
  std::string PackageFolderOf() const {
    std::error_code error;
    if (!options_.model.empty()) {
      return fs::is_directory(options_.model, error) ? options_.model : std::string();
    }
    return options_.model_relation_config.empty() ? std::string()
                                                  : FolderOf(options_.model_relation_config);
  }

  Status CompileOne() {
    Compiled compiled;
    compiled.path = options_.output + ".om";
    NPUMESH_ASSIGN_OR_RETURN(compiled.facts.groups, ReadGroupTable(FolderOf(options_.model)));
    return Compile(options_.model, std::move(compiled));
  }

  Status CompilePackage(const std::string& folder) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string first, ChooseModelFile(folder, 0, 1 << 20));
    const int ranks = RanksOfExport(first);
    NPUMESH_ASSIGN_OR_RETURN(const GroupTable groups, ReadGroupTable(folder));
    for (int rank = 0; rank < ranks; ++rank) {
      NPUMESH_ASSIGN_OR_RETURN(const std::string file, ChooseModelFile(folder, rank, ranks));
      Compiled compiled;
      compiled.path = options_.output + "/" + fs::path(file).stem().string() + ".om";
      compiled.facts.rank = rank;
      compiled.facts.ranks = ranks;
      compiled.facts.groups = groups;
      NPUMESH_RETURN_IF_ERROR(Compile(file, std::move(compiled)));
    }
    return Status();
  }

  // Their types are those of their descriptions.
  Status CompileOperators() {
    if (!session_.precision.mode.empty()) {
      session_.precision.mode.clear();
      result_.notes.emplace_back(
          "--precision_mode is without effect: the file says the types of single operators");
    }
    NPUMESH_ASSIGN_OR_RETURN(std::vector<NamedOperator> operators,
                             ReadSingleOperators(options_.singleop));
    session_.ref_data = true;
    for (NamedOperator& named : operators) {
      const Status compiled = CompileOperator(named);
      if (!compiled.ok()) return compiled.WithContext(options_.singleop);
    }
    return Status();
  }

  Status CompileOperator(const NamedOperator& named) {
    Compiled compiled;
    compiled.path = options_.output + "/" + named.file;
    NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOf(named.op, registry_));
    compiled.model = std::move(graph.model);
    compiled.facts.single_operator = true;
    NPUMESH_RETURN_IF_ERROR(CompileOffline(session_, &compiled.model, &compiled.facts));
    Sign(options_.singleop, &compiled);
    compiled_.push_back(std::move(compiled));
    return Status();
  }

  void Sign(const std::string& file, Compiled* compiled) {
    compiled->facts.made_of = fs::path(file).filename().string();
    compiled->facts.command = options_.command;
    compiled->facts.version = options_.version;
    compiled->facts.soc = options_.soc_version;
  }

  Status Compile(const std::string& file, Compiled compiled) {
    NPUMESH_ASSIGN_OR_RETURN(compiled.model, ReadGraph(options_, file, registry_));
    if (compiled.model.path.empty()) compiled.model.path = file;
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> notes,
                             CheckWeightPlaces(compiled.model, {}));
    result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
    const Status done = Shape(&compiled);
    if (!done.ok()) return done.WithContext(file);
    Sign(file, &compiled);
    compiled_.push_back(std::move(compiled));
    return Status();
  }

  Status Shape(Compiled* compiled) {
    NPUMESH_RETURN_IF_ERROR(CheckKept(session_.precision, compiled->model));
    NPUMESH_ASSIGN_OR_RETURN(compiled->facts.gears, ApplyShapes(options_, &compiled->model));
    NPUMESH_RETURN_IF_ERROR(ApplyEdits(options_, &compiled->model));
    return CompileOffline(session_, &compiled->model, &compiled->facts);
  }

  Status Write(const std::string& package) {
    if (!package.empty()) return WritePackage(package);
    const Status written = WriteFiles();
    if (written.ok()) return written;
    std::error_code ignored;
    for (const std::string& file : result_.written) fs::remove(file, ignored);
    return written;
  }

  Status WriteFiles() {
    const bool one = options_.singleop.empty();
    NPUMESH_RETURN_IF_ERROR(
        MakeFolders(one ? FolderOf(options_.output) : options_.output, FileKind::kData));
    for (Compiled& compiled : compiled_) {
      NPUMESH_RETURN_IF_ERROR(Save(&compiled, compiled.path));
      result_.written.push_back(compiled.path);
    }
    return Status();
  }

  // Weights beside it go into the same folder.
  Status Save(Compiled* compiled, const std::string& path) const {
    if (home_ == WeightHome::kBeside) {
      NPUMESH_RETURN_IF_ERROR(
          PutWeightsBeside(FolderOf(path), fs::path(path).stem().string(), &compiled->model));
    }
    return SaveOffline(std::move(compiled->model), ToJson(compiled->facts), home_, path);
  }

  // All files appear together or not at all.
  Status WritePackage(const std::string& package) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    StagedFolder folder(options_.output, StagedFolder::PlaceFor(options_.output),
                        fmt::format("atc.{}.{}", getpid(), now), RealFileSystem());
    std::vector<std::string> names;
    for (const Compiled& compiled : compiled_) {
      names.push_back(fs::path(compiled.path).filename().string());
    }
    NPUMESH_RETURN_IF_ERROR(folder.CheckTargets(names));
    NPUMESH_RETURN_IF_ERROR(folder.Open());
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string path = folder.PathOf(names[i]);
      NPUMESH_RETURN_IF_ERROR(MakeFolders(FolderOf(path), FileKind::kData));
      NPUMESH_RETURN_IF_ERROR(Save(&compiled_[i], path));
    }
    NPUMESH_RETURN_IF_ERROR(
        WriteConfig(ConfigFile(options_.model_relation_config, package, kRelationFile),
                    kRelationFile, &folder, &names));
    NPUMESH_RETURN_IF_ERROR(WriteConfig(ConfigFile(options_.cluster_config, package, kNumaFile),
                                        kNumaFile, &folder, &names));
    NPUMESH_RETURN_IF_ERROR(folder.Publish());
    folder.Keep();
    for (const std::string& name : names) {
      result_.written.push_back(options_.output + "/" + name);
    }
    return Status();
  }

  static std::string ConfigFile(const std::string& given, const std::string& package,
                                std::string_view name) {
    return given.empty() ? package + "/" + std::string(name) : given;
  }

  // A file of the package, with the names of offline models in place of those of graphs.
  static Status WriteConfig(const std::string& from, std::string_view name, StagedFolder* folder,
                            std::vector<std::string>* names) {
    Result<std::string> text = ReadFile(from);
    if (!text.ok()) return text.status().code() == Code::kNotFound ? Status() : text.status();
    json config = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (config.is_discarded()) return Error(Code::kCorrupt, "{}: it is no JSON", from);
    NameOfflineModels(config);
    names->emplace_back(name);
    return folder->Write(names->back(), config.dump(4, ' ', false, json::error_handler_t::replace));
  }

  static void NameOfflineModels(json& value) {
    if (value.is_structured()) {
      for (json& each : value) NameOfflineModels(each);
    } else if (value.is_string()) {
      auto& text = value.get_ref<std::string&>();
      constexpr std::string_view kAirEnd = ".air";
      if (text.ends_with(kAirEnd)) text.replace(text.size() - kAirEnd.size(), 4, ".om");
    }
  }

  const AtcOptions& options_;
  const OpRegistry& registry_;
  SessionOptions session_ = DefaultSessionOptions();
  WeightHome home_ = WeightHome::kInside;
  std::vector<Compiled> compiled_;
  AtcResult result_;
};

std::string TypesText(const std::vector<TensorType>& types) {
  std::vector<std::string> texts;
  for (const TensorType& type : types) texts.push_back(type.ToString());
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Result<AtcResult> RunAtc(const AtcOptions& options, const OpRegistry& registry) {
  return Job(options, registry).Run();
}

std::vector<std::string> BundledModels(const AtcOptions& options) {
  std::vector<std::string> files;
  for (const std::string_view file : Split(options.model, ";")) {
    if (!file.ends_with(".om")) return {};
    files.emplace_back(file);
  }
  return files.size() > 1 ? files : std::vector<std::string>();
}

Result<AtcResult> BundleModels(const AtcOptions& options) {
  const std::vector<std::string> files = BundledModels(options);
  AtcResult result;
  for (const std::string& file : files) {
    NPUMESH_ASSIGN_OR_RETURN(result.facts.emplace_back(), ReadOfflineFacts(file));
  }
  NPUMESH_RETURN_IF_ERROR(MakeFolders(FolderOf(options.output), FileKind::kData));
  result.written = {options.output + ".om"};
  NPUMESH_RETURN_IF_ERROR(SaveBundle(files, result.written[0]));
  return result;
}

Status WriteModelJson(const AtcOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const Model model, LoadModel(options.om));
  return WriteFile(options.json, ToGeProtoJson(model), FileKind::kData);
}

std::string InfoText(const OfflineFacts& facts) {
  std::string text = fmt::format("made of {} by npumesh {}\n", facts.made_of, facts.version);
  text += fmt::format("  soc_version  {}\n", facts.soc.empty() ? "none" : facts.soc);
  if (facts.ranks > 0) text += fmt::format("  rank         {} of {}\n", facts.rank, facts.ranks);
  for (const std::vector<int64_t>& gear : facts.gears.values) {
    text += fmt::format("  gear         {}\n", fmt::join(gear, ","));
  }
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    text += fmt::format("  outputs      {}\n", TypesText(facts.outputs[i]));
  }
  text += fmt::format("  memory       {} bytes for activations, {} for weights\n", facts.work_bytes,
                      facts.weight_bytes);
  return text;
}

}  // namespace npumesh
