#include "graph/dump/place.h"

#include "graph/dump/format_mapping.h"
#include "graph/dump/format_name.h"

namespace npumesh {
namespace {

// Tells the numbers of dumps from others that a world counts.
constexpr uint64_t kDumpOrdinals = 0x64756d70;

}  // namespace

DumpPlace NextDumpPlace(World& world) {
  DumpPlace place;
  place.world_size = world.size();
  place.rank = world.rank();
  place.device_id = world.local_rank();
  place.model_id = world.NextOrdinal(kDumpOrdinals) + 1;
  place.time = TimeFolderName(world.start_time());
  return place;
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
