// The functions of hccl/hcom.h: each finds the communicator of its group and calls the function of
// hccl.h or hccl_comm.h that it stands for.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/creation/creation.h"
#include "hccl/hccl.h"
#include "hccl/hcom.h"

namespace npumesh {
namespace {

// What HcomCreateGroup has made and HcomDestroy ends, by device.
//
// Thread-safety: all members may be called from any thread.
class CreatedGroups {
 public:
  static CreatedGroups& OfProcess() {
    static auto* const groups = new CreatedGroups;
    return *groups;
  }
  void Add(const AclDevice* device, const std::string& group) {
    const std::lock_guard lock(mutex_);
    groups_[device].insert(group);
  }
  void Remove(const AclDevice* device, const std::string& group) {
    const std::lock_guard lock(mutex_);
    groups_[device].erase(group);
  }
  std::set<std::string> TakeAll(const AclDevice* device) {
    const std::lock_guard lock(mutex_);
    return std::move(groups_[device]);
  }

 private:
  std::mutex mutex_;
  std::map<const AclDevice*, std::set<std::string>> groups_;
};

bool IsWorld(const char* group) {
  return group == nullptr || group == kWorldGroup;
}

Verdict FindWorld(std::shared_ptr<Comm>* world) {
  AclDevice* device = nullptr;
  NPUMESH_RETURN_IF_REFUSED(SelectedDevice(&device));
  *world = CommTable::OfProcess().FindClusterComm(device);
  if (*world != nullptr) return {};
  return Refuse(HCCL_E_NOT_FOUND, "this device has no world group; call HcomInitByRankTable first");
}

Verdict FindGroup(const char* group, std::shared_ptr<Comm>* comm) {
  if (IsWorld(group)) return FindWorld(comm);
  AclDevice* device = nullptr;
  NPUMESH_RETURN_IF_REFUSED(SelectedDevice(&device));
  *comm = CommTable::OfProcess().FindByName(device, group);
  if (*comm != nullptr) return {};
  return Refuse(HCCL_E_NOT_FOUND, "EI0003: there is no group \"{}\"; HcomCreateGroup makes it",
                group);
}

// What `call` returns with the group's communicator.
template <typename Call>
HcclResult InGroup(const char* name, const char* group, const Call& call) try {
  std::shared_ptr<Comm> comm;
  const Verdict found = FindGroup(group, &comm);
  if (!found.ok()) return Answer(name, found);
  return call(comm->handle());
} catch (...) {
  return AnswerThrown(name);
}

// Puts a number that `question` reads from the group's communicator where the caller wants it.
template <typename Question>
HcclResult Tell(const char* name, const char* group, uint32_t* answer,
                const Question& question) try {
  if (answer == nullptr) {
    return Answer(name, Refuse(HCCL_E_PTR, "EI0003: the place for the answer is null"));
  }
  std::shared_ptr<Comm> comm;
  const Verdict found = FindGroup(group, &comm);
  return Answer(name, found.ok() ? question(*comm, answer) : found);
} catch (...) {
  return AnswerThrown(name);
}

// How many of the group's first `ranks` ranks are of this rank's host.
uint32_t LocalAmong(const Comm& comm, uint32_t ranks) {
  const World& world = comm.device()->world;
  const std::vector<int>& nodes = world.node_of();
  return static_cast<uint32_t>(
      std::count_if(comm.world_ranks().begin(), comm.world_ranks().begin() + ranks,
                    [&](int rank) { return nodes[static_cast<size_t>(rank)] == world.node(); }));
}

// The number that `rank` of one communicator has in another one.
Verdict Translate(const Comm& from, uint32_t rank, const Comm& to, uint32_t* answer) {
  if (rank >= from.size()) {
    return Refuse(HCCL_E_PARA, "EI0003: rank is {}; \"{}\" has ranks 0 to {}", rank, from.name(),
                  from.size() - 1);
  }
  const int world_rank = from.world_ranks()[rank];
  const auto found = std::find(to.world_ranks().begin(), to.world_ranks().end(), world_rank);
  if (found == to.world_ranks().end()) {
    return Refuse(HCCL_E_PARA, "EI0003: rank {} of \"{}\" is not in \"{}\"", rank, from.name(),
                  to.name());
  }
  *answer = static_cast<uint32_t>(found - to.world_ranks().begin());
  return {};
}

Verdict ParseRank(const char* text, uint32_t* rank) {
  if (text == nullptr) return Refuse(HCCL_E_PTR, "EI0003: identify is null");
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, *rank);
  if (error == std::errc() && rest == end) return {};
  return Refuse(HCCL_E_PARA, "EI0003: identify is \"{}\"; expected a rank, 0 or more", text);
}

Verdict CreateGroup(const char* group, uint32_t count, const uint32_t* ranks) {
  if (group == nullptr || ranks == nullptr) {
    return Refuse(HCCL_E_PTR, "EI0003: group or rankIds is null");
  }
  if (IsWorld(group) || *group == '\0') {
    return Refuse(HCCL_E_PARA, "EI0003: group is \"{}\"; choose a name for it", group);
  }
  std::shared_ptr<Comm> world;
  NPUMESH_RETURN_IF_REFUSED(FindWorld(&world));
  const std::span members(ranks, count);
  const auto own = std::find(members.begin(), members.end(), world->rank());
  if (own == members.end()) {
    return Refuse(HCCL_E_NOT_FOUND, "EI0003: rank {} is not in rankIds of \"{}\"", world->rank(),
                  group);
  }
  CommConfig config;
  config.name = group;
  HcclComm made = nullptr;
  NPUMESH_RETURN_IF_REFUSED(JoinSubGroup(
      *world, members, 0, static_cast<uint32_t>(own - members.begin()), config, &made));
  CreatedGroups::OfProcess().Add(world->device(), group);
  return {};
}

// HcclCommDestroy, which closes a communicator that is held no more.
HcclResult End(std::shared_ptr<Comm> comm) {
  const HcclComm handle = comm->handle();
  comm.reset();
  return HcclCommDestroy(handle);
}

HcclResult DestroyGroup(const char* name, const char* group) {
  std::shared_ptr<Comm> comm;
  const Verdict found = FindGroup(group, &comm);
  if (!found.ok()) return Answer(name, found);
  CreatedGroups::OfProcess().Remove(comm->device(), comm->name());
  return End(std::move(comm));
}

// Ends the groups first: they are parts of the world.
HcclResult DestroyAll(const char* name) {
  std::shared_ptr<Comm> world;
  const Verdict found = FindWorld(&world);
  if (!found.ok()) return Answer(name, found);
  HcclResult first = HCCL_SUCCESS;
  const auto end = [&first](std::shared_ptr<Comm> comm) {
    const HcclResult result = End(std::move(comm));
    if (first == HCCL_SUCCESS) first = result;
  };
  const AclDevice* const device = world->device();
  for (const std::string& group : CreatedGroups::OfProcess().TakeAll(device)) {
    if (auto comm = CommTable::OfProcess().FindByName(device, group)) end(std::move(comm));
  }
  end(std::move(world));
  return first;
}

HcclResult AcceptFusion(const char* name, const char* group, uint32_t segments,
                        const void* list) try {
  const bool named = list != nullptr && segments > 0;
  std::shared_ptr<Comm> comm;
  return Answer(name, named ? FindGroup(group, &comm)
                            : Refuse(HCCL_E_PTR, "EI0003: the list of segments is empty"));
} catch (...) {
  return AnswerThrown(name);
}

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcomInitByRankTable(const char* rankTable, uint32_t rankId) try {
  HcclComm world = nullptr;
  return HcclCommInitClusterInfo(rankTable, rankId, &world);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomInitByFile(const char* rankTable, const char* identify) try {
  uint32_t rank = 0;
  const Verdict parsed = ParseRank(identify, &rank);
  return parsed.ok() ? HcomInitByRankTable(rankTable, rank) : Answer(__func__, parsed);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomDestroy() try { return DestroyAll(__func__); } catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomCreateGroup(const char* group, uint32_t rankNum, uint32_t* rankIds) try {
  return Answer(__func__, CreateGroup(group, rankNum, rankIds));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomDestroyGroup(const char* group) try {
  if (group == nullptr) return Answer(__func__, Refuse(HCCL_E_PTR, "EI0003: group is null"));
  if (IsWorld(group)) {
    return Answer(__func__, Refuse(HCCL_E_PARA, "EI0003: HcomDestroy ends the world group"));
  }
  return DestroyGroup(__func__, group);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomGetRankSize(const char* group, uint32_t* rankSize) {
  return Tell(__func__, group, rankSize, [](const Comm& comm, uint32_t* answer) {
    *answer = comm.size();
    return Verdict();
  });
}

HcclResult HcomGetRankId(const char* group, uint32_t* rankId) {
  return Tell(__func__, group, rankId, [](const Comm& comm, uint32_t* answer) {
    *answer = comm.rank();
    return Verdict();
  });
}

HcclResult HcomGetLocalRankSize(const char* group, uint32_t* localRankSize) {
  return Tell(__func__, group, localRankSize, [](const Comm& comm, uint32_t* answer) {
    *answer = LocalAmong(comm, comm.size());
    return Verdict();
  });
}

HcclResult HcomGetLocalRankId(const char* group, uint32_t* localRankId) {
  return Tell(__func__, group, localRankId, [](const Comm& comm, uint32_t* answer) {
    *answer = LocalAmong(comm, comm.rank());
    return Verdict();
  });
}

HcclResult HcomGetWorldRankFromGroupRank(const char* group, uint32_t groupRank,
                                         uint32_t* worldRank) {
  return Tell(__func__, group, worldRank, [groupRank](const Comm& comm, uint32_t* answer) {
    std::shared_ptr<Comm> world;
    NPUMESH_RETURN_IF_REFUSED(FindWorld(&world));
    return Translate(comm, groupRank, *world, answer);
  });
}

HcclResult HcomGetGroupRankFromWorldRank(uint32_t worldRank, const char* group,
                                         uint32_t* groupRank) {
  return Tell(__func__, group, groupRank, [worldRank](const Comm& comm, uint32_t* answer) {
    std::shared_ptr<Comm> world;
    NPUMESH_RETURN_IF_REFUSED(FindWorld(&world));
    return Translate(*world, worldRank, comm, answer);
  });
}

HcclResult HcomGetCommHandleByGroup(const char* group, HcclComm* commHandle) try {
  if (commHandle == nullptr) {
    return Answer(__func__, Refuse(HCCL_E_PTR, "EI0003: commHandle is null"));
  }
  return InGroup(__func__, group, [commHandle](HcclComm comm) {
    *commHandle = comm;
    return HCCL_SUCCESS;
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcomSetGradFusionByIndex(const char* group, uint32_t segmentNum,
                                    const uint32_t* inputIdxList) {
  return AcceptFusion(__func__, group, segmentNum, inputIdxList);
}

HcclResult HcomSetGradFusionBySize(const char* group, uint32_t segmentNum, const float* sizeList) {
  return AcceptFusion(__func__, group, segmentNum, sizeList);
}

HcclResult HcomAllReduce(const char* /*tag*/, void* inputPtr, void* outputPtr, uint64_t count,
                         HcclDataType dataType, HcclReduceOp op, const char* group,
                         aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAllReduce(inputPtr, outputPtr, count, dataType, op, comm, stream);
  });
}

HcclResult HcomAllGather(const char* /*tag*/, void* inputPtr, void* outputPtr, uint64_t inputCount,
                         HcclDataType dataType, const char* group, aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAllGather(inputPtr, outputPtr, inputCount, dataType, comm, stream);
  });
}

HcclResult HcomAllGatherV(const char* /*tag*/, const void* sendBuf, uint64_t sendCount,
                          const void* recvBuf, const void* recvCounts, const void* rdispls,
                          HcclDataType dataType, const char* group, aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAllGatherV(const_cast<void*>(sendBuf), sendCount, const_cast<void*>(recvBuf),
                          recvCounts, rdispls, dataType, comm, stream);
  });
}

HcclResult HcomBroadcast(const char* /*tag*/, void* ptr, uint64_t count, HcclDataType dataType,
                         uint32_t root, const char* group, aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclBroadcast(ptr, count, dataType, root, comm, stream);
  });
}

HcclResult HcomReduce(const char* /*tag*/, void* inputPtr, void* outputPtr, uint64_t count,
                      HcclDataType dataType, HcclReduceOp op, uint32_t root, const char* group,
                      aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclReduce(inputPtr, outputPtr, count, dataType, op, root, comm, stream);
  });
}

HcclResult HcomReduceScatter(const char* /*tag*/, void* inputPtr, void* outputPtr, uint64_t count,
                             HcclDataType dataType, HcclReduceOp op, const char* group,
                             aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclReduceScatter(inputPtr, outputPtr, count, dataType, op, comm, stream);
  });
}

HcclResult HcomReduceScatterV(const char* /*tag*/, void* sendBuf, const void* sendCounts,
                              const void* sdispls, void* recvBuf, uint64_t recvCount,
                              HcclDataType dataType, HcclReduceOp op, const char* group,
                              aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclReduceScatterV(sendBuf, sendCounts, sdispls, recvBuf, recvCount, dataType, op, comm,
                              stream);
  });
}

HcclResult HcomSend(const char* /*tag*/, void* inputPtr, uint64_t count, HcclDataType dataType,
                    uint32_t destRank, uint32_t /*srTag*/, const char* group, aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclSend(inputPtr, count, dataType, destRank, comm, stream);
  });
}

HcclResult HcomReceive(const char* /*tag*/, void* outputPtr, uint64_t count, HcclDataType dataType,
                       uint32_t srcRank, uint32_t /*srTag*/, const char* group,
                       aclrtStream stream) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclRecv(outputPtr, count, dataType, srcRank, comm, stream);
  });
}

HcclResult HcomAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, const char* group,
                         aclrtStream stream, const char* /*tag*/) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAlltoAllV(sendBuf, sendCounts, sdispls, sendType, recvBuf, recvCounts, rdispls,
                         recvType, comm, stream);
  });
}

HcclResult HcomAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, const char* group,
                          aclrtStream stream, const char* /*tag*/) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAlltoAllVC(sendBuf, sendCountMatrix, sendType, recvBuf, recvType, comm, stream);
  });
}

HcclResult HcomAllToAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        const char* group, aclrtStream stream, const char* /*tag*/) {
  return InGroup(__func__, group, [=](HcclComm comm) {
    return HcclAlltoAll(sendBuf, sendCount, sendType, recvBuf, recvCount, recvType, comm, stream);
  });
}

// The names of releases before are the same functions.
#define NPUMESH_OLD_NAME(name, function) \
  extern "C" decltype(function) name __attribute__((alias(#function)))
NPUMESH_OLD_NAME(hcom_init, HcomInitByFile);
NPUMESH_OLD_NAME(hcom_destroy, HcomDestroy);
NPUMESH_OLD_NAME(hcom_create_group, HcomCreateGroup);
NPUMESH_OLD_NAME(hcom_destroy_group, HcomDestroyGroup);
NPUMESH_OLD_NAME(hcom_get_rank_size, HcomGetRankSize);
NPUMESH_OLD_NAME(hcom_get_rank_id, HcomGetRankId);
NPUMESH_OLD_NAME(hcom_get_local_rank_size, HcomGetLocalRankSize);
NPUMESH_OLD_NAME(hcom_get_local_rank_id, HcomGetLocalRankId);
NPUMESH_OLD_NAME(hcom_get_world_rank_from_group_rank, HcomGetWorldRankFromGroupRank);
NPUMESH_OLD_NAME(hcom_get_group_rank_from_world_rank, HcomGetGroupRankFromWorldRank);
NPUMESH_OLD_NAME(hcom_set_split_strategy_by_index, HcomSetGradFusionByIndex);
NPUMESH_OLD_NAME(hcom_set_split_strategy_by_size, HcomSetGradFusionBySize);
NPUMESH_OLD_NAME(hcom_all_reduce, HcomAllReduce);
NPUMESH_OLD_NAME(hcom_all_gather, HcomAllGather);
NPUMESH_OLD_NAME(hcom_broadcast, HcomBroadcast);
NPUMESH_OLD_NAME(hcom_reduce_scatter, HcomReduceScatter);
NPUMESH_OLD_NAME(hcom_send, HcomSend);
NPUMESH_OLD_NAME(hcom_receive, HcomReceive);
#undef NPUMESH_OLD_NAME
