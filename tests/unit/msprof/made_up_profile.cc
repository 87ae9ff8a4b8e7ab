#include "tests/unit/msprof/made_up_profile.h"

#include <fmt/format.h>

namespace npumesh {
namespace {

constexpr int64_t kIterationNs = 1'000'000;

ProfiledTask MatMul() {
  ProfiledTask task;
  task.name = "layer0/MatMul";
  task.type = "MatMulV2";
  task.state = "static";
  task.graph = "decoder";
  task.input_shapes = {"4,768", "768,768"};
  task.input_types = {"FLOAT16", "FLOAT16"};
  task.input_formats = {"ND", "ND"};
  task.output_shapes = {"4,768"};
  task.output_types = {"FLOAT16"};
  task.output_formats = {"ND"};
  return task;
}

ProfiledTask Call(const std::string& type, int peer) {
  ProfiledTask task;
  task.name = "layer0/" + type;
  task.type = type;
  task.graph = "decoder";
  task.data_type = "FP32";
  task.count = 1024;
  task.algorithm = "ring";
  task.peer = peer;
  return task;
}

// What the spans of MadeUpRank are about.
struct Ids {
  uint32_t matmul, add, hcom, reduce, gather, send, receive, copy, upload, execute;
  uint32_t world, pair;
};

// One iteration of a millisecond. Ranks differ by some nanoseconds.
void AddIteration(ProfileMaker& maker, const Ids& ids, int rank, uint64_t number) {
  const int64_t at = 1'000 + static_cast<int64_t>(number) * (kIterationNs + 5'000);
  const int64_t late = 7 * rank + 3;
  maker.Iteration(number, at, at + kIterationNs);
  maker.Add(SpanKind::kApi, ids.execute, at + 100, at + kIterationNs - 100).lane = kHostLane;
  Span& upload = maker.Add(SpanKind::kCopy, ids.upload, at + 200, at + 1'200);
  upload.lane = kHostLane;
  upload.bytes = 4096;
  maker.Add(SpanKind::kCopy, ids.copy, at + 1'500, at + 2'000).bytes = 8192;
  maker.Compute(ids.matmul, at + 3'000, at + 103'001 + late);
  // Reduces while the next product computes, and 50 us longer.
  maker.Add(SpanKind::kTask, ids.hcom, at + 110'000, at + 260'000).lane = kCommunicationLane;
  maker.Call(ids.reduce, ids.world, number, at + 110'000 + late, at + 120'000, at + 250'007,
             4'194'305);
  maker.Compute(ids.matmul, at + 110'000, at + 200'000);
  maker.Compute(ids.add, at + 260'000, at + 261'500);
  maker.Call(ids.gather, ids.pair, number, at + 300'000, 0, at + 340'000, 1'048'576);
  maker.Call(ids.send, ids.world, number, at + 400'000, at + 400'500, at + 410'000, 65'536).kind =
      SpanKind::kMessage;
  maker.Call(ids.receive, ids.world, number, at + 410'000, at + 415'000, at + 425'000, 65'536)
      .kind = SpanKind::kMessage;
  maker.Compute(ids.add, at + 500'000, at + 900'000);
}

}  // namespace

ProfileMaker::ProfileMaker(int rank, int world_size) {
  ProfileOwner& owner = profile_.owner;
  owner.rank = rank;
  owner.world_size = world_size;
  owner.node = rank / 2;
  owner.local_rank = rank % 2;
  owner.process = 4000 + rank;
  owner.host = fmt::format("host{}", rank / 2);
  owner.boot_id = fmt::format("boot{}", rank / 2);
  owner.start_monotonic_ns = 0;
  owner.start_realtime_ns = 1'763'865'004'123'456'789;  // 2025-11-23 02:30:04 UTC
  owner.command = "made up";
  owner.version = "0.1.0";
}

uint32_t ProfileMaker::Task(const std::string& name, const std::string& type) {
  ProfiledTask task;
  task.name = name;
  task.type = type;
  return Task(std::move(task));
}

uint32_t ProfileMaker::Task(ProfiledTask task) {
  task.id = static_cast<uint32_t>(profile_.tasks.size() + 1);
  profile_.tasks.push_back(std::move(task));
  return profile_.tasks.back().id;
}

uint32_t ProfileMaker::Group(const std::string& name, uint64_t number,
                             std::vector<int> world_ranks) {
  ProfiledGroup group;
  group.id = static_cast<uint32_t>(profile_.groups.size() + 1);
  group.number = number;
  group.name = name;
  group.world_ranks = std::move(world_ranks);
  profile_.groups.push_back(std::move(group));
  return profile_.groups.back().id;
}

Span& ProfileMaker::Add(SpanKind kind, uint32_t subject, int64_t begin_ns, int64_t end_ns) {
  Span span;
  span.kind = kind;
  span.subject = subject;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.iteration = iteration_;
  profile_.spans.push_back(span);
  return profile_.spans.back();
}

Span& ProfileMaker::Iteration(uint64_t number, int64_t begin_ns, int64_t end_ns) {
  iteration_ = static_cast<uint32_t>(number);
  Span& span = Add(SpanKind::kIteration, 0, begin_ns, end_ns);
  span.number = number;
  span.lane = kHostLane;
  return span;
}

Span& ProfileMaker::Compute(uint32_t subject, int64_t begin_ns, int64_t end_ns) {
  return Add(SpanKind::kTask, subject, begin_ns, end_ns);
}

Span& ProfileMaker::Call(uint32_t subject, uint32_t group, uint64_t number, int64_t begin_ns,
                         int64_t arrived_ns, int64_t end_ns, uint64_t bytes) {
  Span& span = Add(SpanKind::kCollective, subject, begin_ns, end_ns);
  span.group = group;
  span.number = number;
  span.arrived_ns = arrived_ns;
  span.bytes = bytes;
  span.lane = kCommunicationLane;
  return span;
}

RankProfile MadeUpRank(int rank, int world_size) {
  ProfileMaker maker(rank, world_size);
  maker.owner().training_trace = true;
  maker.owner().fp_point = "layer0/MatMul";
  maker.owner().bp_point = "layer0/Add";
  std::vector<int> all;
  for (int each = 0; each < world_size; ++each) all.push_back(each);
  Ids ids{};
  ids.matmul = maker.Task(MatMul());
  ids.add = maker.Task("layer0/Add", "Add");
  ids.hcom = maker.Task("layer0/HcomAllReduce", "HcomAllReduce");
  ids.reduce = maker.Task(Call("HcomAllReduce", -1));
  ids.gather = maker.Task(Call("HcomAllGather", -1));
  ids.send = maker.Task(Call("HcomSend", (rank + 1) % world_size));
  ids.receive = maker.Task(Call("HcomReceive", (rank + world_size - 1) % world_size));
  ids.copy = maker.Task("device to device", "");
  ids.upload = maker.Task("host to device", "");
  ids.execute = maker.Task("aclmdlExecute", "");
  ids.world = maker.Group("hccl_world_group", 1, all);
  std::vector<int> pair{rank - rank % 2};
  if (pair[0] + 1 < world_size) pair.push_back(pair[0] + 1);
  ids.pair = maker.Group("tp", static_cast<uint64_t>(2 + rank / 2), pair);
  for (uint64_t number = 0; number < 3; ++number) AddIteration(maker, ids, rank, number);
  return std::move(maker.profile());
}

}  // namespace npumesh
