#include "graph/dump/place.h"

#include <ctime>
#include <numeric>
#include <vector>

#include "graph/dump/format_mapping.h"
#include "graph/dump/format_name.h"

namespace npumesh {
namespace {

// Tells this group of all ranks from others.
constexpr uint32_t kDumpGroupKey = 0x64756d70;

Deadline Limit(const World& world) {
  const auto limit = world.env().exec_timeout;
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

}  // namespace

Result<DumpPlace> AgreeOnDumpPlace(World& world) {
  DumpPlace place;
  place.world_size = world.size();
  place.rank = world.rank();
  place.device_id = world.local_rank();
  place.time = TimeFolderName(std::time(nullptr));
  if (world.size() == 1) return place;
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<PlainGroup> group,
                           world.transport().Group(everyone, kDumpGroupKey, Limit(world)));
  NPUMESH_RETURN_IF_ERROR(
      group->Broadcast(place.time.data(), place.time.size(), /*root=*/0, Limit(world)));
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
  return fmt::format("{}/extra-info/data-dump/{}", RankRoot(settings, place), place.device_id);
}

}  // namespace npumesh
