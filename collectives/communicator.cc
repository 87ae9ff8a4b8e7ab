#include "collectives/communicator.h"

#include <algorithm>
#include <set>

#include "collectives/communicator_impl.h"
#include "collectives/contract/waiter.h"
#include "collectives/extent.h"

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

  NearBlocks(const Buffers& all, const std::vector<int>& neighbours) {
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
  NPUMESH_ASSIGN_OR_RETURN(
      Selection selection,
      options.algo ? Selection::Parse(*options.algo, fmt::format("algorithm of group {}", name))
                   : Selection::Parse(world.env().hccl_algo, "HCCL_ALGO"));
  auto impl = std::unique_ptr<Impl>(new Impl{world, memory, std::move(name), world_ranks});
  impl->rank = static_cast<int>(me - world_ranks.begin());
  impl->tag = TagOf(impl->name, world_ranks);
  impl->selection = std::move(selection);
  impl->logbook = std::make_unique<Logbook>(world, impl->name, impl->world_ranks);
  NPUMESH_ASSIGN_OR_RETURN(impl->meeting, Meeting::Open(world, impl->name, impl->world_ranks));
  impl->several_nodes = std::any_of(world_ranks.begin(), world_ranks.end(), [&](int r) {
    return world.node_of()[static_cast<size_t>(r)] != world.node();
  });
  if (impl->several_nodes) {
    NPUMESH_ASSIGN_OR_RETURN(impl->layers,
                             Layers::Open(world, impl->name, impl->world_ranks, impl->rank));
  }
  impl->logbook->Created();
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

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

Deadline Communicator::Impl::ExecDeadline() const {
  const std::chrono::seconds limit = world.env().exec_timeout;
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

Status Communicator::Impl::Run(const Call& call, std::string_view node,
                               const std::string& complaint) {
  NPUMESH_RETURN_IF_ERROR(broken);
  const auto start = SteadyClock::now();
  logbook->Enter({call.kind, call.dtype, call.op, call.root, call.count, node, meeting->sequence()},
                 start);
  broken = Perform(call, node, complaint);
  const auto end = SteadyClock::now();
  logbook->Leave(broken, end);
  totals.seconds += std::chrono::duration<double>(end - start).count();
  totals.calls += 1;
  if (broken.ok()) totals.bytes += ExtentOf(call, rank, size()).send;
  return broken;
}

Status Communicator::Impl::Perform(const Call& call, std::string_view node,
                                   const std::string& complaint) {
  Request request;
  request.kind = call.kind;
  request.dtype = static_cast<int32_t>(call.dtype);
  request.op = static_cast<uint32_t>(call.op);
  request.root = call.root;
  request.count = call.count;
  request.set_node(node);
  const Facts facts{call.kind,          size(),           meeting->in_window(), call.bytes(),
                    Reduces(call.kind), layers != nullptr};
  const Algorithm& algorithm =
      Choose(facts, selection.RowFor(call.kind, several_nodes), world.env().trace);
  const bool eager = algorithm.travel == Travel::kEager;
  Buffers buffers;
  std::span<const std::byte> data;
  const Status refusal = complaint.empty() ? Refuse(call, rank, size(), memory)
                                           : Error(Code::kInvalidArgument, "{}", complaint);
  if (!refusal.ok()) {
    request.set_refusal(refusal.message());
  } else if (eager) {
    data = EagerData(call, rank, size());
  } else {
    const Extent extent = ExtentOf(call, rank, size());
    if (extent.send != 0) buffers.send_offset = memory.OffsetOf(call.send);
    if (extent.recv != 0) buffers.recv_offset = memory.OffsetOf(call.recv);
    buffers.send_bytes = call.send_bytes;
    buffers.send_at = call.send_at;
    buffers.recv_bytes = call.recv_bytes;
  }
  NPUMESH_RETURN_IF_ERROR(meeting->Arrive(request, buffers, data));
  logbook->Arrived();
  return MeetAndRun(algorithm, call, request, buffers);
}

Status Communicator::Impl::MeetAndRun(const Algorithm& algorithm, const Call& call,
                                      const Request& request, const Buffers& buffers) {
  Members members{rank,        size(),         world, memory,      *meeting,
                  world_ranks, ExecDeadline(), tag,   layers.get()};
  const auto who = [&](Status status) {
    if (status.ok()) return status;  // the text is only made for errors
    return status.WithContext(fmt::format("{} \"{}\" (group {}, call {}, {})", Name(call.kind),
                                          request.node, name, meeting->sequence(), algorithm.name));
  };
  if (algorithm.meets_in_nodes) {
    const NearBlocks near(buffers, layers->neighbours());
    NPUMESH_RETURN_IF_ERROR(layers->meeting->Arrive(
        request,
        {buffers.send_offset, buffers.recv_offset, near.send_bytes, near.send_at, near.recv_bytes},
        {}));
  }
  NPUMESH_RETURN_IF_ERROR(who(algorithm.run(call, members)));
  logbook->Departing();
  if (algorithm.meets_in_nodes) NPUMESH_RETURN_IF_ERROR(layers->meeting->Depart());
  if (algorithm.travel == Travel::kInBuffers) return meeting->Depart();
  meeting->Pass();
  return Status();
}

}  // namespace npumesh
