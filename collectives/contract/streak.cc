#include "collectives/contract/streak.h"

namespace npumesh {

void Streak::Count(const Announcement& announcement, int sole_sender) {
  if (Continues(announcement, sole_sender)) {
    ++count_;
    return;
  }
  const bool has_sender = sole_sender >= 0;
  count_ = has_sender ? 1 : 0;
  sender_ = sole_sender;
  if (has_sender) announcement_ = announcement;
}

}  // namespace npumesh
