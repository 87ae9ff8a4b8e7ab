#include "graph/session/graph_dump.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "graph/io/graph_text.h"
#include "graph/io/model_file.h"
#include "graph/passes/rewrite/stages.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr std::string_view kOptimizedStage = "PreRunAfterOptimizeGraphBeforeBuild";
constexpr size_t kLongestName = 255;

// What GE writes with DUMP_GRAPH_LEVEL=2.
constexpr std::array<std::string_view, 12> kMainStages = {"PreRunBegin",
                                                          "PreRunAfterNormalizeGraph",
                                                          "AfterInfershape",
                                                          "PreRunAfterPrepare",
                                                          "PreRunAfterOptimizeOriginalGraph",
                                                          "PreRunAfterOptimizeAfterStage1",
                                                          "PreRunAfterOptimizeSubgraph",
                                                          "PreRunAfterOptimizeGraphBeforeBuild",
                                                          "Build",
                                                          "ComputeGraphBeforeLowering",
                                                          "ExeGraphBeforeOptimize",
                                                          "ExecuteGraphAfterSplit"};
constexpr std::array<std::string_view, 3> kMainParts = {"AutoFuseBeforeOptimize",
                                                        "AutoFuseAfterOptimize", "RunCustomPass"};
constexpr std::array<std::string_view, 4> kPartStages = {"partition", "OptimizeSubGraph", "Aicpu",
                                                         "sub_graph"};

struct StageForm {
  std::string_view name;
  std::string_view ending;
  std::string (*print)(const Model& model, int level);
};

constexpr std::array<StageForm, 3> kForms = {
    StageForm{"ge_proto", "txt", ToGeProtoText}, StageForm{"ge_onnx", "pbtxt", ToOnnxText},
    StageForm{"ge_readable", "txt", [](const Model& model, int) { return ToReadableText(model); }}};

template <size_t N>
bool ContainsAny(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return text.find(part) != text.npos; });
}

// "ge_onnx" is asked for as "onnx", "ge_proto" by its whole name, "ge_readable" as "readable".
bool WantsForm(std::string_view formats, const StageForm& form) {
  const std::string_view key = form.name == "ge_proto" ? form.name : form.name.substr(3);
  return LowerCase(formats).find(key) != std::string::npos;
}

// Names of graphs come from files; none may leave the folder.
std::string FileNamePart(std::string_view name) {
  std::string part;
  for (const char c : name.substr(0, 128)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    part += plain ? c : '_';
  }
  return part;
}

// UTC, YYYYmmddHHMMSS and six digits of microseconds.
std::string TimeStamp() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  const std::time_t seconds = micros / 1'000'000;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[16] = {};
  std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &utc);
  return fmt::format("{}{:06}", text, micros % 1'000'000);
}

// A name over 255 characters is cut, its ending stays.
std::string StageFileName(const StageForm& form, int counter, uint64_t graph_id,
                          std::string_view stage) {
  std::string name =
      fmt::format("{}_{:08}_graph_{}_{}", form.name, counter, graph_id, FileNamePart(stage));
  const size_t room = kLongestName - form.ending.size() - 1;
  return fmt::format("{}.{}", name.substr(0, room), form.ending);
}

// What is compiled for a part of a cut graph tells its number.
std::string OptimizedName(const Graph& graph) {
  const auto number = graph.attrs().find(std::string(kStageNumber));
  const int64_t* const stage =
      number == graph.attrs().end() ? nullptr : number->second.get<int64_t>();
  if (stage == nullptr || *stage == 0) return "dynamo_optimized";
  return fmt::format("dynamo_optimized_stage_{}", *stage);
}

}  // namespace

bool WantsStage(std::string_view level, std::string_view stage) {
  if (level == "1") return !ContainsAny(stage, kPartStages);
  if (level == "3") return stage == "Build";
  if (level == "4") return stage == "PreRunBegin";
  const bool number = std::all_of(level.begin(), level.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  if (number) {  // 2, or nothing that is known
    return std::find(kMainStages.begin(), kMainStages.end(), stage) != kMainStages.end() ||
           ContainsAny(stage, kMainParts);
  }
  while (!level.empty()) {
    const size_t end = std::min(level.find('|'), level.size());
    const std::string_view part = level.substr(0, end);
    if (!part.empty() && stage.find(part) != stage.npos) return true;
    level.remove_prefix(std::min(end + 1, level.size()));
  }
  return false;
}

GraphDump::GraphDump(GraphDumpConfig config, const DumpEnv& env, DumpingRank who)
    : config_(std::move(config)), env_(env), who_(who), counters_(kForms.size(), 0) {}

void GraphDump::WriteOriginal(const Model& model) {
  if (config_.type && !failed_) Keep(WriteTorchAir("dynamo_original", model));
}

void GraphDump::WriteStage(std::string_view stage, const Model& model, uint64_t graph_id) {
  if (failed_) return;
  if (config_.type && stage == kOptimizedStage) {
    const std::string name = OptimizedName(model.graph);
    if (optimized_written_.insert(name + "/" + model.graph.name()).second) {
      Keep(WriteTorchAir(name, model));
    }
  }
  const bool wanted = env_.dump_ge_graph > 0 && WantsStage(env_.dump_graph_level, stage);
  if (wanted && !failed_) Keep(WriteForms(stage, model, graph_id));
}

std::string GraphDump::StageFolder() const {
  const std::string own = fmt::format("pid_{}_deviceid_{}", getpid(), who_.device);
  if (!env_.npu_collect_path.empty()) {
    return fmt::format("{}/extra-info/graph/{}_{}", env_.npu_collect_path, getpid(), who_.device);
  }
  if (!env_.dump_graph_path.empty()) return env_.dump_graph_path + "/" + own;
  const std::string shared = env_.ascend_work_path.empty() ? "." : env_.ascend_work_path;
  return who_.ranks > 1 ? shared + "/" + own : shared;
}

Status GraphDump::WriteTorchAir(std::string_view name, const Model& model) const {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(config_.path, FileKind::kGraphDump));
  const std::string path = fmt::format("{}/{}_{}_rank_{}_pid_{}_ts_{}.{}", config_.path, name,
                                       FileNamePart(model.graph.name()), who_.rank, getpid(),
                                       TimeStamp(), *config_.type);
  const std::string text = *config_.type == "py"      ? ToPythonText(model)
                           : *config_.type == "pbtxt" ? ToPbtxt(model)
                                                      : ToGraphDefText(model);
  NPUMESH_RETURN_IF_ERROR(WriteFile(path, text, FileKind::kGraphDump));
  NPUMESH_INFO("graph dump: {} is written", path);
  return Status();
}

Status GraphDump::WriteForms(std::string_view stage, const Model& model, uint64_t graph_id) {
  const std::string folder = StageFolder();
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kGraphDump));
  for (size_t i = 0; i < kForms.size(); ++i) {
    if (!WantsForm(env_.dump_graph_format, kForms[i])) continue;
    const std::string path =
        folder + "/" + StageFileName(kForms[i], counters_[i]++, graph_id, stage);
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(path, kForms[i].print(model, env_.dump_ge_graph), FileKind::kGraphDump));
    NPUMESH_INFO("graph dump: {} is written", path);
  }
  return Status();
}

void GraphDump::Keep(const Status& status) {
  if (status.ok()) return;
  failed_ = true;
  NPUMESH_ERROR("graph dump stops, the run goes on: {}", status.message());
}

}  // namespace npumesh
