#include "runtime/device/recorded_order.h"

#include <algorithm>

namespace npumesh {

RecordedOrder::RecordedOrder(const Recording& recording)
    : now_(recording.streams().size(), Known(recording.streams().size())),
      before_(recording.tasks().size()),
      number_(recording.tasks().size()),
      member_(recording.tasks().size()) {
  auto mark = recording.marks().begin();
  for (size_t task = 0; task < recording.tasks().size(); ++task) {
    for (; mark != recording.marks().end() && mark->place <= task; ++mark) AddMark(*mark);
    if (recording.tasks()[task].work != nullptr) AddTask(task, recording.tasks()[task].member);
  }
}

void RecordedOrder::AddMark(const RecordedMark& mark) {
  Known& now = now_[mark.member];
  recorded_.push_back(mark.waits_for ? Known() : now);
  if (!mark.waits_for) return;
  const Known& known = recorded_[*mark.waits_for];
  std::transform(now.begin(), now.end(), known.begin(), now.begin(),
                 [](uint64_t a, uint64_t b) { return std::max(a, b); });
}

void RecordedOrder::AddTask(size_t task, size_t member) {
  before_[task] = now_[member];
  member_[task] = member;
  number_[task] = now_[member][member]++;
}

bool RecordedOrder::Precedes(size_t a, size_t b) const {
  return before_[b][member_[a]] > number_[a];
}

}  // namespace npumesh
