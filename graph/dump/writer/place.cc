#include "graph/dump/writer/place.h"

#include <algorithm>
#include <filesystem>

#include "graph/dump/format/format_mapping.h"
#include "graph/dump/format/format_name.h"
#include "runtime/base/files/leftovers.h"

namespace npumesh {
namespace {

// Tells the numbers of dumps from others that a world counts.
constexpr uint64_t kDumpOrdinals = 0x64756d70;

// YYYYMMDDHHMMSS
bool IsTimeFolder(std::string_view name) {
  return name.size() == 14 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

DumpPlace NextDumpPlace(World& world) {
  DumpPlace place;
  place.world_size = world.size();
  place.rank = world.rank();
  place.device_id = world.local_rank();
  place.model_id = static_cast<uint32_t>(world.NextOrdinal(kDumpOrdinals) + 1);
  place.time = TimeFolderName(world.start_time());
  return place;
}

// Only folders that a dump has made are searched, because the root may be a working folder.
void ClearKilledDumps(const std::string& rank_root) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(rank_root, error), end; !error && it != end;
       it.increment(error)) {
    if (!IsTimeFolder(it->path().filename().string())) continue;
    ClearLeftoversOf(it->path().string(), LeftoverDepth::kTree);
  }
}

std::string RankRoot(const DumpSettings& settings, const DumpPlace& place) {
  if (!settings.always_rank_folder && place.world_size == 1) return settings.path;
  return settings.path + "/" + RankFolderName(place.world_size, place.rank);
}

std::string TimeFolder(const DumpSettings& settings, const DumpPlace& place) {
  return RankRoot(settings, place) + "/" + place.time;
}

std::string DeviceFolder(const DumpSettings& settings, const DumpPlace& place) {
  return fmt::format("{}/{}", TimeFolder(settings, place), place.device_id);
}

std::string ModelFolder(const DumpSettings& settings, const DumpPlace& place,
                        const std::string& model_name) {
  const std::string parent = DeviceFolder(settings, place);
  return fmt::format("{}/{}/{}", parent, StorableName(parent, SanitizedName(model_name)),
                     place.model_id);
}

std::string ExceptionFolder(const DumpSettings& settings, const DumpPlace& place) {
  DumpSettings root = settings;
  if (!settings.exception_path.empty()) {
    root.path = settings.exception_path;
    root.always_rank_folder = false;
  }
  return fmt::format("{}/extra-info/data-dump/{}", RankRoot(root, place), place.device_id);
}

}  // namespace npumesh
