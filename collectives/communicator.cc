#include "collectives/communicator.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "collectives/communicator_impl.h"
#include "collectives/contract/shared_parts.h"
#include "collectives/contract/waiter.h"
#include "collectives/extent.h"
#include "runtime/base/files/shared_library.h"
#include "runtime/base/log.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/come_back.h"

namespace npumesh {
namespace {

// Tags below are the transport's other users'; groups share the rest. Groups that hash alike only
// meet on a tag when both are in use at the same time.
constexpr int kFirstTag = 16;
constexpr int kTagSets = 4000;

int TagOf(const std::string& name, const std::vector<int>& world_ranks) {
  const uint64_t hash = GroupHash(name, world_ranks);
  return kFirstTag + kTagsOfGroup * static_cast<int>(hash % kTagSets);
}

// The blocks that a call exchanges with the members of this node.
struct NearBlocks {
  std::vector<uint64_t> send_bytes, send_at, recv_bytes;

  NearBlocks(const Call& all, const std::vector<int>& neighbours) {
    if (all.send_bytes.empty()) return;
    for (const int peer : neighbours) {
      const auto r = static_cast<size_t>(peer);
      send_bytes.push_back(all.send_bytes[r]);
      send_at.push_back(all.send_at[r]);
      recv_bytes.push_back(all.recv_bytes[r]);
    }
  }
};

}  // namespace

// A call whose data are under way, as those see it who wait for messages in it.
struct Communicator::Impl::RunningCall {
  Impl& impl;
  const PreparedCall& prepared;
  std::optional<WaitState> state;  // once it lasts

  // As Waiter::Remark.
  Status Remark() {
    if (!state) state.emplace(impl.world);
    return Waiter(impl.world, impl.name, impl.world_ranks)
        .Remark(*state,
                fmt::format("{}, call {}", NameOf(prepared.call.kind, prepared.node),
                            impl.meeting->sequence()),
                impl.meeting->exec_timeout());
  }
};

Result<std::unique_ptr<Communicator>> Communicator::Create(World& world, DeviceMemory& memory,
                                                           std::string name,
                                                           std::vector<int> world_ranks,
                                                           const CommunicatorOptions& options) {
  const std::set<int> members(world_ranks.begin(), world_ranks.end());
  const auto me = std::find(world_ranks.begin(), world_ranks.end(), world.rank());
  if (me == world_ranks.end()) {
    return Error(Code::kInvalidArgument, "group \"{}\" (ranks {}): rank {} is no member", name,
                 RangeText(world_ranks), world.rank());
  }
  if (members.size() != world_ranks.size() || *members.begin() < 0 ||
      *members.rbegin() >= world.size()) {
    return Error(Code::kInvalidArgument,
                 "group \"{}\" (ranks {}): expected different ranks of 0 to {}", name,
                 RangeText(world_ranks), world.size() - 1);
  }
  NPUMESH_ASSIGN_OR_RETURN(std::shared_ptr<const AlgorithmTables> tables,
                           AlgorithmTables::Load(world.env().algorithm_libraries));
  const std::vector<std::string_view> rows = tables->Names();
  NPUMESH_ASSIGN_OR_RETURN(
      Selection selection,
      options.algo
          ? Selection::Parse(*options.algo, fmt::format("algorithm of group {}", name), rows)
          : Selection::Parse(world.env().hccl_algo, "HCCL_ALGO", rows));
  auto impl = std::unique_ptr<Impl>(new Impl{world, memory, std::move(name), world_ranks, options});
  impl->rank = static_cast<int>(me - world_ranks.begin());
  impl->tag = TagOf(impl->name, world_ranks);
  impl->tables = std::move(tables);
  impl->selection = std::move(selection);
  impl->Furnish();
  if (!options.meets_late) NPUMESH_RETURN_IF_ERROR(impl->Found());
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

void Communicator::Impl::Furnish() {
  meeting = Meeting::Of(world, name, world_ranks);
  if (!options.contract) meeting->StopComparing();
  run_ahead = options.run_ahead;
  several_nodes = std::any_of(world_ranks.begin(), world_ranks.end(), [&](int r) {
    return world.node_of()[static_cast<size_t>(r)] != world.node();
  });
  if (several_nodes) hierarchy = Hierarchy::Of(world, name, world_ranks, rank);
  if (!options.exec_timeout) return;
  meeting->set_exec_timeout(*options.exec_timeout);
  if (hierarchy) hierarchy->meeting->set_exec_timeout(*options.exec_timeout);
}

void Communicator::Impl::OpenLogbook() {
  logbook = std::make_unique<Logbook>(world, name, world_ranks);
}

Status Communicator::Impl::Ready() {
  NPUMESH_RETURN_IF_ERROR(ComeBack(world));
  if (!meets_anew) return broken;
  meets_anew = false;
  broken = Status();
  met = false;
  hierarchy.reset();
  lanes.clear();
  logbook.reset();
  calls = CallCache();
  Furnish();
  return Status();
}

// A group of a session leaves it to the session, whose other groups fail with it.
void Communicator::Impl::FailTogether(const Status& why) {
  if (options.meets_late) return;
  std::vector<CommonCall> common;
  const uint64_t mark = GroupHash(name, world_ranks, totals.calls + 1);
  for (const int member : world_ranks) {
    if (member != world.rank()) common.push_back({member, mark});
  }
  if (!npumesh::FailTogether(world, why, common)) return;
  BeginGroupEra(world, name, world_ranks);
  meets_anew = true;
}

Status Communicator::Impl::Found() {
  NPUMESH_RETURN_IF_ERROR(ComeBack(world));
  OpenLogbook();
  logbook->Creating();
  const Status status =
      Meet(fmt::format("creating group \"{}\"", name), world.env().connect_timeout);
  logbook->Created(status);
  return status;
}

Status Communicator::Impl::Meet(const std::string& what, std::chrono::seconds limit) {
  NPUMESH_RETURN_IF_ERROR(meeting->Meet(what, limit));
  if (hierarchy) NPUMESH_RETURN_IF_ERROR(hierarchy->meeting->Meet(what, limit));
  met = true;
  NPUMESH_INFO("group \"{}\" of ranks {} is made", name, RangeText(world_ranks));
  return Status();
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

void Communicator::FailNext(const Status& why) {
  if (!impl_->broken.ok() && !impl_->meets_anew) return;  // no member waits any more
  impl_->totals.calls += 1;
  impl_->FailTogether(why);
}

void Communicator::MeetAnew() {
  impl_->meets_anew = true;
}

Status Communicator::Close() {
  return impl_->meeting->Close();
}

int Communicator::rank() const {
  return impl_->rank;
}
int Communicator::size() const {
  return impl_->size();
}
const std::string& Communicator::name() const {
  return impl_->name;
}
const std::vector<int>& Communicator::world_ranks() const {
  return impl_->world_ranks;
}
Communicator::Totals Communicator::totals() const {
  return impl_->totals;
}

Status Communicator::Impl::Run(const Call& call, std::string_view node,
                               const std::string& complaint) {
  NPUMESH_RETURN_IF_ERROR(Ready());
  if (logbook == nullptr) {
    OpenLogbook();
    logbook->Created();
  }
  const PreparedCall& prepared = Prepare(call, node, complaint);
  logbook->Enter({.kind = call.kind,
                  .dtype = call.dtype,
                  .op = call.op,
                  .root = call.root,
                  .count = call.count,
                  .node = node,
                  .call = meeting->sequence(),
                  .bytes = prepared.sent_bytes,
                  .algorithm = prepared.algorithm->name},
                 prepared.announcement.serial);
  under_way = false;
  broken = Perform(prepared);
  logbook->Leave(broken);
  totals.calls += 1;
  if (broken.ok()) totals.bytes += prepared.sent_bytes;
  if (broken.ok()) return broken;
  if (under_way) {
    totals.torn += 1;
  } else if (SetBackOther()) {
    FailTogether(broken);
  }
  return broken;
}

bool Communicator::Impl::SetBackOther() const {
  return std::any_of(world_ranks.begin(), world_ranks.end(),
                     [this](int member) { return !world.board().setbacks().Of(member).ok(); });
}

const PreparedCall& Communicator::Impl::Prepare(const Call& call, std::string_view node,
                                                const std::string& complaint) {
  // A trace tells every call.
  const PreparedCall* known = world.env().trace ? nullptr : calls.Find(call, node);
  if (known != nullptr) return *known;
  PreparedCall& place = calls.PlaceFor(call);
  place = PreparedCall{call, std::string(node)};
  place.algorithm = &AlgorithmFor(call);
  place.shares_parts = world.crowded() && place.algorithm->travel == Travel::kInWindow &&
                       TraitsOf(call.kind).send != Portion::kListed;
  Request request;
  request.kind = call.kind;
  request.dtype = static_cast<int32_t>(call.dtype);
  request.op = static_cast<uint32_t>(call.op);
  request.root = call.root;
  request.count = call.count;
  request.set_algorithm(place.algorithm->name);
  request.set_node(node);
  const Status refusal = complaint.empty() ? Refuse(call, rank, size(), memory)
                                           : Error(Code::kInvalidArgument, "{}", complaint);
  if (refusal.ok()) {
    const Extent extent = ExtentOf(call, rank, size());
    place.sent_bytes = extent.send;
    if (extent.send != 0) place.send_offset = memory.OffsetOf(call.send);
    if (extent.recv != 0) place.recv_offset = memory.OffsetOf(call.recv);
    if (place.algorithm->travel == Travel::kEager) place.eager = EagerDataOf(call, rank, size());
    place.eager.may_run_ahead = run_ahead;
  } else {
    request.set_refusal(refusal.message());
  }
  place.announcement = Announcement(request, ++prepared);
  return place;
}

const Algorithm& Communicator::Impl::AlgorithmFor(const Call& call) const {
  const Facts facts{call.kind,
                    size(),
                    meeting->in_window(),
                    call.bytes(),
                    Reduces(call.kind),
                    hierarchy != nullptr,
                    meeting->in_window() && world.crowded()};
  return Choose(tables->For(call.kind), facts, selection.RowFor(call.kind, several_nodes),
                world.env().trace);
}

Status Communicator::Impl::Perform(const PreparedCall& prepared) {
  const Call& call = prepared.call;
  const Algorithm& algorithm = *prepared.algorithm;
  if (!met) {
    NPUMESH_RETURN_IF_ERROR(
        Meet(fmt::format("{}, call {}", NameOf(call.kind, prepared.node), meeting->sequence()),
             meeting->exec_timeout()));
  }
  NPUMESH_RETURN_IF_ERROR(meeting->Arrive(
      prepared.announcement,
      {prepared.send_offset, prepared.recv_offset, call.send_bytes, call.send_at, call.recv_bytes},
      prepared.eager));
  under_way = true;
  logbook->Arrived();
  if (algorithm.meets_in_nodes) NPUMESH_RETURN_IF_ERROR(MeetInNode(prepared));
  RunningCall running{*this, prepared, {}};
  const std::function<Status()> remark = [&running] { return running.Remark(); };
  Members members{rank,        size(), world,           memory, *meeting,
                  world_ranks, tag,    hierarchy.get(), &remark};
  const Status status = WithoutExceptions(algorithm.name, [&] {
    return prepared.shares_parts ? RunParts(prepared, members) : algorithm.run(call, members);
  });
  if (!status.ok()) {
    return status.WithContext(fmt::format("{} (group {}, call {}, {})",
                                          NameOf(call.kind, prepared.node), name,
                                          meeting->sequence(), algorithm.name));
  }
  logbook->Departing();
  if (algorithm.meets_in_nodes) NPUMESH_RETURN_IF_ERROR(hierarchy->meeting->Depart());
  if (prepared.shares_parts) return meeting->DepartShared();
  if (algorithm.travel != Travel::kEager) return meeting->Depart();
  meeting->Pass();
  return Status();
}

Status Communicator::Impl::RunParts(const PreparedCall& prepared, Members& members) {
  SharedParts& parts = *meeting->parts();
  const auto take = [&](int r) { return parts.Take(static_cast<size_t>(r)); };
  if (!take(rank)) return Status();
  NPUMESH_RETURN_IF_ERROR(prepared.algorithm->run(prepared.call, members));
  for (int r = 0; r < size(); ++r) {
    if (!parts.IsNeighbour(static_cast<size_t>(r)) || !take(r)) continue;
    NPUMESH_RETURN_IF_ERROR(RunPartOf(r, prepared, members));
    parts.End(static_cast<size_t>(r));
  }
  return Status();
}

Status Communicator::Impl::RunPartOf(int member, const PreparedCall& prepared,
                                     const Members& members) {
  Call theirs = prepared.call;
  theirs.send = members.send_of(member);
  theirs.recv = members.recv_of(member);
  Members as_member = members;
  as_member.rank = member;
  return prepared.algorithm->run(theirs, as_member);
}

Status Communicator::Impl::MeetInNode(const PreparedCall& prepared) {
  const NearBlocks near(prepared.call, hierarchy->neighbours());
  return hierarchy->meeting->Arrive(
      prepared.announcement,
      {prepared.send_offset, prepared.recv_offset, near.send_bytes, near.send_at, near.recv_bytes},
      {});
}

}  // namespace npumesh
