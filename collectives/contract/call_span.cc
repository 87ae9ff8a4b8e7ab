#include "collectives/contract/call_span.h"

#include <utility>

#include "collectives/contract/collective_kind.h"

namespace npumesh {

CallSpan::CallSpan(World& world, uint64_t number, const std::string& name,
                   const std::vector<int>& world_ranks)
    : profiler_(Profiler::Of(world)),
      group_{.number = number, .name = name, .world_ranks = world_ranks},
      sends_(!world_ranks.empty() && world_ranks[0] == world.rank()) {}

uint32_t CallSpan::SubjectOf(const CallFacts& facts) {
  if (run_ != profiler_.run()) {
    run_ = profiler_.run();
    subjects_.clear();
    group_id_ = profiler_.Group(group_);
  }
  const Subject subject{facts.kind, facts.dtype, facts.op,
                        facts.root, facts.count, std::string(facts.node)};
  const auto [known, added] = subjects_.try_emplace(subject);
  if (!added) return known->second;
  ProfiledTask task;
  task.name = facts.node;
  const std::string_view direction = sends_ ? "send" : "receive";
  task.type = facts.kind == CollectiveKind::kSendRecv ? direction : Name(facts.kind);
  task.data_type = Name(facts.dtype);
  task.count = facts.count;
  task.algorithm = facts.algorithm;
  task.peer = facts.peer;
  return known->second = profiler_.Name(std::move(task));
}

void CallSpan::Enter(const CallFacts& facts) {
  const bool message = facts.kind == CollectiveKind::kSendRecv;
  const SpanKind kind = message ? SpanKind::kMessage : SpanKind::kCollective;
  open_ = profiler_.keeps(kind);
  if (!open_) return;
  span_ = Span{.subject = SubjectOf(facts)};
  span_.kind = kind;
  span_.lane = kCommunicationLane;
  span_.bytes = facts.bytes;
  span_.number = facts.call;
  span_.group = group_id_;
  span_.iteration = profiler_.iteration();
  span_.begin_ns = Profiler::Now();
}

void CallSpan::Arrived() {
  if (open_) span_.arrived_ns = Profiler::Now();
}

void CallSpan::Leave() {
  if (!open_) return;
  open_ = false;
  span_.end_ns = Profiler::Now();
  profiler_.Add(span_);
}

}  // namespace npumesh
