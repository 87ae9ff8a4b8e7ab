#include "runtime/world/gathering.h"

#include <algorithm>
#include <numeric>

namespace npumesh {

Result<std::unique_ptr<Gathering>> Gathering::Create(World& world, uint32_t key) {
  std::unique_ptr<Gathering> gathering(new Gathering(world));
  if (world.size() == 1) return gathering;
  // Ranks that gather again with the same key count alike.
  const uint32_t again = key + 0x9e3779b9u * world.NextOrdinal(key);
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  NPUMESH_ASSIGN_OR_RETURN(gathering->group_,
                           world.transport().Group(everyone, again, gathering->Limit()));
  return gathering;
}

Deadline Gathering::Limit() const {
  const auto limit = world_.env().exec_timeout;
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

Result<std::vector<std::string>> Gathering::Share(std::string_view mine) {
  if (!group_) return std::vector<std::string>{std::string(mine)};
  const auto ranks = static_cast<size_t>(size());
  const uint64_t my_bytes = mine.size();
  std::vector<uint64_t> bytes(ranks);
  NPUMESH_RETURN_IF_ERROR(group_->AllGather(&my_bytes, bytes.data(), sizeof(my_bytes), Limit()));
  const uint64_t most = *std::max_element(bytes.begin(), bytes.end());
  std::vector<std::string> texts(ranks);
  if (most == 0) return texts;
  std::string padded(mine);
  padded.resize(most);
  std::string all(most * ranks, '\0');
  NPUMESH_RETURN_IF_ERROR(group_->AllGather(padded.data(), all.data(), most, Limit()));
  for (size_t rank = 0; rank < ranks; ++rank) texts[rank] = all.substr(rank * most, bytes[rank]);
  return texts;
}

Status Gathering::AgreeOn(const Status& mine) {
  std::string told(1, static_cast<char>(mine.code()));
  told += mine.message();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, Share(told));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto code = static_cast<Code>(all[rank][0]);
    if (code == Code::kOk) continue;
    const Status error = Status::Error(code, all[rank].substr(1));
    return size() == 1 ? error : error.WithContext(fmt::format("rank {} of {}", rank, size()));
  }
  return Status();
}

}  // namespace npumesh
