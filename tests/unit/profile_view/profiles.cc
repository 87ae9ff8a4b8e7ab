#include "tests/unit/profile_view/profiles.h"

#include <algorithm>

#include "runtime/base/text/rank_list.h"

namespace npumesh::testing {

RankProfile ProfileOf(int rank, int world_size) {
  RankProfile profile;
  profile.owner.rank = rank;
  profile.owner.world_size = world_size;
  profile.owner.host = "host-a";
  profile.owner.boot_id = "boot-a";
  profile.owner.command = "npumesh run model.air";
  profile.ended = true;
  return profile;
}

uint32_t AddTask(RankProfile& profile, const std::string& name, const std::string& type,
                 double flops, uint64_t bytes) {
  ProfiledTask task;
  task.id = static_cast<uint32_t>(profile.tasks.size() + 1);
  task.name = name;
  task.type = type;
  task.flops = flops;
  task.bytes = bytes;
  profile.tasks.push_back(task);
  return task.id;
}

uint32_t GroupOfAll(RankProfile& profile) {
  if (profile.groups.empty()) {
    profile.groups.push_back({1, 77, "tp", AllRanks(profile.owner.world_size)});
  }
  return 1;
}

Span& AddOperator(RankProfile& profile, uint32_t task, int64_t begin_ns, int64_t end_ns,
                  uint32_t step) {
  Span span;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.subject = task;
  span.iteration = step;
  return profile.spans.emplace_back(span);
}

Span& AddCollective(RankProfile& profile, uint32_t task, uint64_t call, int64_t begin_ns,
                    int64_t arrived_ns, int64_t end_ns, uint64_t bytes) {
  Span& span = AddOperator(profile, task, begin_ns, end_ns);
  span.kind = SpanKind::kCollective;
  span.lane = kCommunicationLane;
  span.arrived_ns = arrived_ns;
  span.bytes = bytes;
  span.group = GroupOfAll(profile);
  span.number = call;
  return span;
}

Span& AddStep(RankProfile& profile, uint32_t step, int64_t begin_ns, int64_t end_ns) {
  Span& span = AddOperator(profile, 0, begin_ns, end_ns, step);
  span.kind = SpanKind::kIteration;
  span.number = step;
  return span;
}

std::vector<RankProfile> LikelyRun(int ranks, size_t spans) {
  constexpr size_t kInStep = 14;  // spans of a step
  const size_t steps = std::max<size_t>(spans / kInStep / static_cast<size_t>(ranks), 1);
  std::vector<RankProfile> profiles;
  for (int rank = 0; rank < ranks; ++rank) {
    RankProfile& profile = profiles.emplace_back(ProfileOf(rank, ranks));
    const uint32_t product = AddTask(profile, "layer0/attention/MatMul", "MatMulV2", 4e6, 60'000);
    const uint32_t add = AddTask(profile, "layer0/Add", "Add", 0, 24'000);
    const uint32_t odd = AddTask(profile, "</script><b>odd & \"name\"</b>", "Gelu", 0, 0);
    const uint32_t reduce = AddTask(profile, "layer0/AllReduce", "HcomAllReduce");
    const uint32_t copy = AddTask(profile, "host to device", "");
    const int64_t longer = rank + 1 == ranks ? 30'000 : 0;
    const int64_t latest = ranks == 1 ? 0 : 30'000;
    for (size_t s = 0; s < steps; ++s) {
      const auto begin = static_cast<int64_t>(1'000'000 + s * 400'000);
      const auto step = static_cast<uint32_t>(s);
      Span& copied = AddOperator(profile, copy, begin, begin + 10'000, step);
      copied.kind = SpanKind::kCopy;
      copied.lane = kHostLane;
      int64_t at = begin + 10'000;
      for (int i = 0; i < 9; ++i) {
        const int64_t length = i % 3 == 0 ? 20'000 : 5'000;
        AddOperator(profile, i % 3 == 0 ? product : i % 3 == 1 ? add : odd, at, at + length, step);
        at += length + 500;
      }
      AddOperator(profile, product, at, at + 20'000 + longer, step);
      const int64_t entered = at + 20'000 + longer;
      const int64_t arrived = at + 20'000 + latest + 1'000;
      AddCollective(profile, reduce, s, entered, arrived, arrived + 50'000, 1 << 18).iteration =
          step;
      Span& memory = AddOperator(profile, 0, arrived, arrived, step);
      memory.kind = SpanKind::kMemory;
      memory.bytes = 1'000'000 + (s % 5) * 250'000;
      AddStep(profile, step, begin, arrived + 60'000);
    }
  }
  return profiles;
}

}  // namespace npumesh::testing
