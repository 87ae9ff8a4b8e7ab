#include "launch/record/launch_note.h"

#include <signal.h>
#include <string.h>

#include <filesystem>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_text.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostNoteBytes = 1 << 20;
constexpr int kHighestSignal = 64;
constexpr int kHighestRank = 1 << 20;

std::string FileIn(const std::string& folder) {
  return folder + "/launch.json";
}

// The integer of a key; `fallback` when it is absent, no integer or out of range.
int64_t NumberOf(const json& object, const char* key, int64_t least, int64_t most,
                 int64_t fallback) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return fallback;
  const auto number = it->get<int64_t>();
  return least <= number && number <= most ? number : fallback;
}

}  // namespace

std::string SignalText(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

Status RemoveLaunchNote(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove(FileIn(folder), error);
  return error ? Error(Code::kIo, "cannot remove {}: {}", FileIn(folder), error.message())
               : Status();
}

Status WriteLaunchNote(const std::string& folder, const LaunchNote& note) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return Status();
  json deaths = json::array();
  for (const RankDeath& death : note.deaths) {
    deaths.push_back(
        {{"rank", death.rank < 0 ? json() : json(death.rank)}, {"signal", death.signal}});
  }
  const json object = {{"version", 1},
                       {"exit_code", note.exit_code},
                       {"timeout_s", note.timeout_s},
                       {"signal", note.signal},
                       {"deaths", deaths},
                       {"end_realtime_ns", note.end_realtime_ns}};
  return WriteFile(FileIn(folder), JsonText(object), FileKind::kDebug);
}

Result<std::optional<LaunchNote>> ReadLaunchNote(const std::string& folder) {
  const std::string file = FileIn(folder);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::optional<LaunchNote>();
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostNoteBytes));
  const json object = ParseForeignJson(text);
  if (!object.is_object() || NumberOf(object, "version", 1, 1, 0) != 1) {
    return Error(
        Code::kCorrupt,
        "{} is no note of npumesh launch, version 1; remove it to read the records without "
        "it",
        file);
  }
  LaunchNote note;
  note.exit_code = static_cast<int>(NumberOf(object, "exit_code", 0, 255, 0));
  note.timeout_s = static_cast<int>(NumberOf(object, "timeout_s", 0, 1'000'000'000, 0));
  note.signal = static_cast<int>(NumberOf(object, "signal", 0, kHighestSignal, 0));
  note.end_realtime_ns = NumberOf(object, "end_realtime_ns", 0, int64_t{1} << 61, 0);
  const auto deaths = object.find("deaths");
  if (deaths == object.end() || !deaths->is_array()) return std::optional(note);
  for (const json& death : *deaths) {
    if (!death.is_object()) continue;
    note.deaths.push_back({static_cast<int>(NumberOf(death, "rank", 0, kHighestRank, -1)),
                           static_cast<int>(NumberOf(death, "signal", 1, kHighestSignal, 0))});
  }
  std::erase_if(note.deaths, [](const RankDeath& death) { return death.signal == 0; });
  return std::optional(note);
}

}  // namespace npumesh
