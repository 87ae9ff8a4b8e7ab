#include "graph/dump/writer/manifest.h"

#include "graph/dump/options/option_values.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json_text.h"

namespace npumesh {
namespace {

using nlohmann::json;

template <typename T, size_t n>
std::string WordOf(const Words<T, n>& words, T value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return std::string(word);
  }
  return "";
}

std::string KindOf(const DumpSettings& settings) {
  if (settings.overflow) return "overflow";
  if (settings.watch) return "watcher";
  if (settings.models && settings.single_operators) return "models and single operators";
  return settings.models ? "models" : "single operators";
}

}  // namespace

Status WriteManifest(const DumpSettings& settings, const DumpPlace& place, const DumpLimits& limits,
                     const std::string& model_name, const DumpReport& report, FileSystem& fs) {
  const DumpCounts& counts = report.counts;
  json manifest = {
      {"rank", place.rank},
      {"world_size", place.world_size},
      {"device_id", place.device_id},
      {"model_name", model_name},
      {"model_id", place.model_id},
      {"kind", KindOf(settings)},
      {"dump_mode", WordOf(kDumpModes, settings.mode)},
      {"dump_data", WordOf(kDumpContents, settings.content)},
      {"quant_dumpable", settings.quant_dumpable},
      {"max_bytes", limits.max_bytes},
      {"steps", report.steps},
      {"written",
       {{"files", counts.files},
        {"bytes", counts.bytes},
        {"statistics_files", counts.statistics_files}}},
      {"degraded_to_statistics",
       {{"files", report.degraded_files}, {"tensor_bytes", report.degraded_bytes}}},
      {"lost", {{"files", counts.lost_files}, {"bytes", counts.lost_bytes}}},
      {"error", report.error.ok() ? json() : json(std::string(report.error.message()))}};
  if (settings.overflow) manifest["overflows"] = report.overflows;
  const std::string folder = TimeFolder(settings, place);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kDataDump, fs));
  const std::string name =
      place.model_id == 1 ? "manifest.json" : fmt::format("manifest_{}.json", place.model_id);
  return WriteFile(folder + "/" + name, JsonText(manifest), FileKind::kDataDump, fs);
}

}  // namespace npumesh
