#include "runtime/acl/limits/collective_cores.h"

#include <vector>

#include "runtime/acl/process/process.h"
#include "runtime/card/core_budgets.h"
#include "runtime/device/recorded_order.h"

namespace npumesh {
namespace {

struct Collective {
  size_t task = 0;
  size_t member = 0;
  CoreBudget budget;
};

std::vector<Collective> CollectivesOf(const Recording& recording) {
  std::vector<Collective> all;
  for (size_t at = 0; at < recording.tasks().size(); ++at) {
    const RecordedTask& task = recording.tasks()[at];
    const auto* note = static_cast<const AclTaskNote*>(task.note.get());
    if (note == nullptr || note->kept_cores == 0) continue;
    const int32_t stream = recording.streams()[task.member];
    all.push_back({at,
                   task.member,
                   {fmt::format("{} on stream {}", note->name, stream), "", note->kept_cores}});
  }
  return all;
}

}  // namespace

std::shared_ptr<const AclTaskNote> NoteOfCollective(std::string_view call, aclrtStream stream) {
  const AclStream* const found = StreamUse::Find(stream);
  if (found == nullptr) return nullptr;
  const auto cores = found->core_limits.Get(ACL_RT_DEV_RES_VECTOR_CORE);
  if (!cores) return nullptr;
  return std::make_shared<AclTaskNote>(std::string(call), aclmdlRITaskParams{}, nullptr, *cores);
}

aclError CheckCollectiveCores(std::string_view function, const Recording& recording,
                              CardLimits& card) {
  const std::vector<Collective> all = CollectivesOf(recording);
  if (all.size() < 2 || card.chip() == nullptr) return ACL_SUCCESS;
  const RecordedOrder order(recording);
  aclError first = ACL_SUCCESS;
  for (size_t later = 1; later < all.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      const Collective &a = all[earlier], &b = all[later];
      if (a.member == b.member || order.Precedes(a.task, b.task)) continue;
      auto finding = FindCoresOfBoth(*card.chip(), a.budget, b.budget, "aclrtSetStreamResLimit");
      if (!finding) continue;
      const aclError found = card.Find(function, *std::move(finding));
      if (first == ACL_SUCCESS) first = found;
    }
  }
  return first;
}

}  // namespace npumesh
