#include "collectives/hccl/creation/creation.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include "collectives/hccl/comm/settings.h"
#include "collectives/hccl/creation/device_threads.h"
#include "collectives/hccl/creation/rendezvous.h"
#include "collectives/hccl/creation/root_info.h"
#include "runtime/base/process/host_address.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// The listeners behind the root infos this process has made; gone when they have served, or with
// aclFinalize.
class RootServers {
 public:
  static RootServers& OfProcess() {
    static RootServers* const servers = new RootServers;
    return *servers;
  }

  // 1, 2, ...: how many root infos all devices of this process have made.
  int NextNumber() {
    std::lock_guard lock(mutex_);
    return ++made_;
  }

  void Keep(std::unique_ptr<RootServer> server) {
    std::lock_guard lock(mutex_);
    std::erase_if(servers_, [](const auto& other) { return other->done(); });
    if (servers_.empty()) AtFinalize([this] { Clear(); });
    servers_.push_back(std::move(server));
  }

 private:
  void Clear() {
    std::lock_guard lock(mutex_);
    servers_.clear();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<RootServer>> servers_;
  int made_ = 0;
};

// The settings and the device that every creation needs.
struct Place {
  const HcclEnv* env = nullptr;
  AclDevice* device = nullptr;
};

Verdict FindPlace(Place* place) {
  NPUMESH_RETURN_IF_REFUSED(Settings::OfProcess().Environment(&place->env));
  return SelectedDevice(&place->device);
}

Result<std::string> AddressOf(World& world, const HcclEnv& env) {
  if (world.node_count() == 1) return std::string("127.0.0.1");
  NPUMESH_ASSIGN_OR_RETURN(std::vector<NetworkInterface> interfaces, ListInterfaces());
  return ChooseAddress(std::move(interfaces), env);
}

// A name that no other group of the job has, and short, because it stands in every message about
// the group: "comm_2", or "comm_2_of_rank_3" when its maker is not rank 0.
std::string NewName(int world_rank) {
  const std::string name = fmt::format("comm_{}", RootServers::OfProcess().NextNumber());
  return world_rank == 0 ? name : fmt::format("{}_of_rank_{}", name, world_rank);
}

Verdict Create(AclDevice* device, const std::string& name, std::vector<int> world_ranks,
               const CommConfig& config, Comm::Origin origin, HcclComm* comm) {
  CommunicatorOptions options;
  if (!config.algo.empty()) options.algo = config.algo;
  options.exec_timeout = config.exec_timeout;
  // Operators of HCCL are asynchronous: what is wrong with one may show in a later call anyway.
  options.run_ahead = true;
  Result<std::unique_ptr<Communicator>> made =
      Communicator::Create(device->world, device->memory, name, std::move(world_ranks), options);
  if (!made.ok()) return VerdictOf(made.status());
  auto shared = std::make_shared<Comm>(device, std::move(*made), config, origin);
  *comm = shared->handle();
  CommTable::OfProcess().Add(std::move(shared));
  return {};
}

// Collective over all ranks of the world: the world rank of each `rank`.
Result<std::vector<int>> ExchangeRanks(AclDevice& device, uint32_t rank) {
  const std::vector<int> everyone = AllRanks(device.world.size());
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Communicator> group,
      Communicator::Create(device.world, device.memory, "rank table", everyone));
  NPUMESH_ASSIGN_OR_RETURN(void* const block,
                           device.memory.Allocate((everyone.size() + 1) * sizeof(uint32_t)));
  auto* const mine = static_cast<uint32_t*>(block);
  *mine = rank;
  const Status exchanged = group->AllGather(mine, mine + 1, 1, DataType::kUint32, "rank table");
  const std::vector<uint32_t> ranks(mine + 1, mine + 1 + everyone.size());
  NPUMESH_RETURN_IF_ERROR(device.memory.Free(block));
  NPUMESH_RETURN_IF_ERROR(exchanged);
  std::vector<int> world_ranks(everyone.size(), -1);
  for (size_t i = 0; i < ranks.size(); ++i) {
    int& place = world_ranks[ranks[i]];
    if (place >= 0) {
      return Error(Code::kInvalidArgument, "world ranks {} and {} both say they are rank {}", place,
                   i, ranks[i]);
    }
    place = static_cast<int>(i);
  }
  return world_ranks;
}

// Which world ranks the ranks of a table are.
Verdict FindTableRanks(AclDevice& device, const RankTable& table, uint32_t rank,
                       std::vector<int>* world_ranks) {
  const auto world_size = static_cast<size_t>(device.world.size());
  if (table.ranks.size() > world_size) {
    return Refuse(HCCL_E_PARA, "EI0014: the rank table has {} ranks, but {} were started",
                  table.ranks.size(), world_size);
  }
  if (table.ranks.size() == world_size) {
    Result<std::vector<int>> found = ExchangeRanks(device, rank);
    if (!found.ok()) return VerdictOf(found.status().WithContext("EI0014"));
    *world_ranks = *std::move(found);
    return {};
  }
  if (static_cast<uint32_t>(device.world.rank()) != rank) {
    return Refuse(HCCL_E_UNAVAIL,
                  "EI0014: a rank table of {} ranks in a world of {} takes the first ones in "
                  "order; this is world rank {}, called rank {}",
                  table.ranks.size(), world_size, device.world.rank(), rank);
  }
  *world_ranks = AllRanks(static_cast<int>(table.ranks.size()));
  return {};
}

Verdict CheckMembers(const Comm& parent, std::span<const uint32_t> members, uint32_t rank) {
  const std::set<uint32_t> different(members.begin(), members.end());
  const bool listed_once = !members.empty() && different.size() == members.size();
  if (!listed_once || *different.rbegin() >= parent.size()) {
    return Refuse(HCCL_E_PARA, "EI0003: rankIds must be different ranks of 0 to {}",
                  parent.size() - 1);
  }
  if (members[rank] != parent.rank()) {
    return Refuse(HCCL_E_PARA, "EI0003: rankIds[{}] is {}, but this is rank {} of \"{}\"", rank,
                  members[rank], parent.rank(), parent.name());
  }
  return {};
}

}  // namespace

Verdict SelectedDevice(AclDevice** device) {
  const Result<AclDevice*> current = CurrentDevice();
  if (!current.ok()) {
    return Refuse(HCCL_E_RUNTIME, "no device is selected; call aclrtSetDevice first ({})",
                  current.status().message());
  }
  *device = *current;
  return {};
}

Verdict MakeRootInfo(HcclRootInfo* blob) {
  Place place;
  NPUMESH_RETURN_IF_REFUSED(FindPlace(&place));
  World& world = place.device->world;
  RootInfo info;
  const Result<std::string> ip = AddressOf(world, *place.env);
  if (!ip.ok()) return VerdictOf(ip.status());
  info.ip = *ip;
  if (getrandom(info.token.data(), info.token.size(), 0) !=
      static_cast<ssize_t>(info.token.size())) {
    return Refuse(HCCL_E_SYSCALL, "the system has no random numbers");
  }
  RootServer::Options options{info.ip, {0}, info.token, world.env().connect_timeout};
  if (!place.env->ports.empty()) options.ports = place.env->ports;
  Result<std::unique_ptr<RootServer>> server = RootServer::Start(options);
  if (!server.ok()) return VerdictOf(server.status());
  info.port = (*server)->port();
  info.world_rank = world.rank();
  info.identifier = NewName(world.rank());
  RootServers::OfProcess().Keep(*std::move(server));
  *blob = Encode(info);
  return {};
}

Verdict JoinByRootInfo(uint32_t ranks, const HcclRootInfo& blob, uint32_t rank,
                       const CommConfig& config, HcclComm* comm) {
  Place place;
  NPUMESH_RETURN_IF_REFUSED(FindPlace(&place));
  RootInfo info;
  NPUMESH_RETURN_IF_REFUSED(Decode(blob, &info));
  World& world = place.device->world;
  if (ranks > static_cast<uint32_t>(world.size())) {
    return Refuse(HCCL_E_PARA,
                  "EI0003: nRanks is {}, but there are {} simulated NPUs; start more ranks with "
                  "mpirun -n, or set NPUMESH_DEVICE_COUNT",
                  ranks, world.size());
  }
  const std::string& name = config.name.empty() ? info.identifier : config.name;
  NPUMESH_RETURN_IF_REFUSED(CommTable::OfProcess().CheckName(place.device, name));
  // When all ranks belong to it, the death of any of them is a reason to stop waiting.
  const bool everybody = ranks == static_cast<uint32_t>(world.size());
  Result<std::vector<int>> world_ranks =
      Attend(info, {ranks, rank, world.rank()}, world.env().connect_timeout,
             [&] { return everybody ? world.board().CheckPeers(world.local_ranks()) : Status(); });
  if (!world_ranks.ok()) return VerdictOf(world_ranks.status().WithContext("EI0015"));
  return Create(place.device, name, *std::move(world_ranks), config, Comm::Origin::kRootInfo, comm);
}

Verdict JoinByRankTable(const std::string& path, uint32_t rank, const CommConfig& config,
                        HcclComm* comm) {
  Place place;
  NPUMESH_RETURN_IF_REFUSED(FindPlace(&place));
  if (CommTable::OfProcess().FindClusterComm(place.device)) {
    return Refuse(HCCL_E_UNAVAIL, "this device has a communicator of a rank table already");
  }
  RankTable table;
  NPUMESH_RETURN_IF_REFUSED(LoadRankTable(path, place.device->world.env().connect_timeout, &table));
  if (rank >= table.ranks.size()) {
    return Refuse(HCCL_E_PARA, "EI0003: rank is {}; {} has ranks 0 to {}", rank, path,
                  table.ranks.size() - 1);
  }
  if (const int32_t device = table.ranks[rank].device; device != SelectedDeviceId()) {
    return Refuse(HCCL_E_UNAVAIL,
                  "EI0014: {}: rank {} has device_id {}, but this thread has selected device {}; "
                  "select that one with aclrtSetDevice or mend the table",
                  path, rank, device, SelectedDeviceId());
  }
  std::vector<int> world_ranks;
  NPUMESH_RETURN_IF_REFUSED(FindTableRanks(*place.device, table, rank, &world_ranks));
  const std::string name = config.name.empty() ? std::string(kWorldGroup) : config.name;
  NPUMESH_RETURN_IF_REFUSED(CommTable::OfProcess().CheckName(place.device, name));
  return Create(place.device, name, std::move(world_ranks), config, Comm::Origin::kClusterInfo,
                comm);
}

Verdict JoinSubGroup(Comm& parent, std::span<const uint32_t> members, uint64_t id, uint32_t rank,
                     const CommConfig& config, HcclComm* comm) {
  if (parent.origin() == Comm::Origin::kSubGroup) {
    return Refuse(HCCL_E_NOT_SUPPORT, "\"{}\" is part of another communicator; split that one",
                  parent.name());
  }
  NPUMESH_RETURN_IF_REFUSED(CheckMembers(parent, members, rank));
  std::vector<int> world_ranks;
  for (const uint32_t member : members) world_ranks.push_back(parent.world_ranks()[member]);
  const std::string name =
      config.name.empty() ? fmt::format("{}_sub_{}", parent.name(), id) : config.name;
  NPUMESH_RETURN_IF_REFUSED(CommTable::OfProcess().CheckName(parent.device(), name));
  return Create(parent.device(), name, std::move(world_ranks), config, Comm::Origin::kSubGroup,
                comm);
}

Verdict JoinAll(std::span<const int32_t> devices, HcclComm* comms) {
  const std::set<int32_t> different(devices.begin(), devices.end());
  if (different.size() != devices.size()) {
    return Refuse(HCCL_E_PARA, "EI0003: devices names one device twice");
  }
  HcclRootInfo blob;
  DeviceThreads root;
  root.Add(devices.front(), [&] { return MakeRootInfo(&blob); });
  NPUMESH_RETURN_IF_REFUSED(root.Run());
  DeviceThreads threads;
  const auto ranks = static_cast<uint32_t>(devices.size());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.Add(devices[rank], [=] { return JoinByRootInfo(ranks, blob, rank, {}, &comms[rank]); });
  }
  return threads.Run();
}

}  // namespace npumesh
