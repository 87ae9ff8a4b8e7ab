// The functions of hccl/hccl_comm.h that make and end communicators.
#include "collectives/hccl/calls/group_calls.h"
#include "collectives/hccl/comm/registered_memory.h"
#include "collectives/hccl/comm/settings.h"
#include "collectives/hccl/comm/windows.h"
#include "collectives/hccl/creation/creation.h"
#include "collectives/hccl/creation/device_threads.h"
#include "hccl/hccl_comm.h"

namespace npumesh {
namespace {

constexpr uint64_t kNoSubComm = 0xFFFFFFFF;

// Now, or at the end of the thread's open group.
HcclResult Manage(std::string_view name, std::function<Verdict()> call) {
  GroupCalls& group = GroupCalls::OfThread();
  return Answer(name,
                group.open() ? group.AddManagement(SelectedDeviceId(), std::move(call)) : call());
}

Verdict CheckRootArguments(uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                           const HcclComm* comm) {
  if (root == nullptr) return Refuse(HCCL_E_PTR, "EI0003: rootInfo is null");
  if (comm == nullptr) return Refuse(HCCL_E_PTR, "EI0003: comm is null");
  if (ranks == 0) return Refuse(HCCL_E_PARA, "EI0003: nRanks is 0");
  if (rank < ranks) return {};
  return Refuse(HCCL_E_PARA, "EI0003: rank is {}; expected less than nRanks, which is {}", rank,
                ranks);
}

HcclResult InitRootInfo(std::string_view name, uint32_t ranks, const HcclRootInfo* root,
                        uint32_t rank, const CommConfig& config, HcclComm* comm) {
  const Verdict arguments = CheckRootArguments(ranks, root, rank, comm);
  if (!arguments.ok()) return Answer(name, arguments);
  return Manage(name,
                [=, blob = *root] { return JoinByRootInfo(ranks, blob, rank, config, comm); });
}

HcclResult InitClusterInfo(std::string_view name, const char* path, uint32_t rank,
                           const CommConfig& config, HcclComm* comm) {
  if (path == nullptr || comm == nullptr) {
    return Answer(name, Refuse(HCCL_E_PTR, "EI0003: clusterInfo or comm is null"));
  }
  return Manage(
      name, [=, table = std::string(path)] { return JoinByRankTable(table, rank, config, comm); });
}

Verdict CreateSubComm(HcclComm* comm, uint32_t rank_count, const uint32_t* ranks, uint64_t id,
                      uint32_t rank, const HcclCommConfig* config, HcclComm* sub_comm) {
  if (comm == nullptr || *comm == nullptr) return Refuse(HCCL_E_PTR, "EI0003: comm is null");
  if (ranks == nullptr && id == kNoSubComm) return {};
  if (ranks == nullptr || id == kNoSubComm) {
    return Refuse(HCCL_E_PARA,
                  "EI0003: who is no member passes rankIds null and subCommId 0xFFFFFFFF, both");
  }
  if (sub_comm == nullptr) return Refuse(HCCL_E_PTR, "EI0003: subComm is null");
  if (rank_count == 0 || rank >= rank_count) {
    return Refuse(HCCL_E_PARA, "EI0003: subCommRankId is {} of rankNum {}", rank, rank_count);
  }
  CommConfig loaded;
  NPUMESH_RETURN_IF_REFUSED(LoadCommConfig(config, &loaded));
  const std::shared_ptr<Comm> parent = CommTable::OfProcess().Find(*comm);
  if (parent == nullptr) return Refuse(HCCL_E_PARA, "EI0003: comm is no live communicator");
  return JoinSubGroup(*parent, std::span(ranks, rank_count), id, rank, loaded, sub_comm);
}

Verdict Destroy(HcclComm handle) {
  const std::shared_ptr<Comm> comm = CommTable::OfProcess().Find(handle);
  if (comm == nullptr) {
    return Refuse(HCCL_E_PARA, "EI0003: comm {} is no live communicator", fmt::ptr(handle));
  }
  Settings::OfProcess().Call(handle, HCCL_COMM_STATE_PHASE_DESTROY_PRE);
  WindowTable::OfProcess().ForgetComm(*comm);
  RegisteredMemory::OfProcess().ForgetComm(*comm);
  CommTable::OfProcess().Remove(handle);
  // Operators that still wait on a stream keep the communicator, which then closes after them.
  const Status closed = comm.use_count() == 1 ? comm->Close() : Status();
  Settings::OfProcess().Call(handle, HCCL_COMM_STATE_PHASE_DESTROY_POST);
  return closed.ok() ? Verdict() : VerdictOf(closed);
}

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) try {
  constexpr std::string_view kName = "HcclGetRootInfo";
  if (rootInfo == nullptr) return Answer(kName, Refuse(HCCL_E_PTR, "EI0003: rootInfo is null"));
  return Answer(kName, MakeRootInfo(rootInfo));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm) try {
  return InitRootInfo("HcclCommInitRootInfo", nRanks, rootInfo, rank, {}, comm);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) try {
  constexpr std::string_view kName = "HcclCommInitRootInfoConfig";
  CommConfig loaded;
  const Verdict verdict = LoadCommConfig(config, &loaded);
  if (!verdict.ok()) return Answer(kName, verdict);
  return InitRootInfo(kName, nRanks, rootInfo, rank, loaded, comm);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) try {
  return InitClusterInfo("HcclCommInitClusterInfo", clusterInfo, rank, {}, comm);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config, HcclComm* comm) try {
  constexpr std::string_view kName = "HcclCommInitClusterInfoConfig";
  CommConfig loaded;
  const Verdict verdict = LoadCommConfig(config, &loaded);
  if (!verdict.ok()) return Answer(kName, verdict);
  return InitClusterInfo(kName, clusterInfo, rank, loaded, comm);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) try {
  constexpr std::string_view kName = "HcclCommInitAll";
  if (devices == nullptr || comms == nullptr) {
    return Answer(kName, Refuse(HCCL_E_PTR, "EI0003: devices or comms is null"));
  }
  if (ndev == 0) return Answer(kName, Refuse(HCCL_E_PARA, "EI0003: ndev is 0"));
  return Answer(kName, JoinAll(std::span(devices, ndev), comms));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                   uint64_t subCommId, uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm) try {
  return Answer("HcclCreateSubCommConfig",
                CreateSubComm(comm, rankNum, rankIds, subCommId, subCommRankId, config, subComm));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommDestroy(HcclComm comm) try {
  if (comm == nullptr) return HCCL_SUCCESS;
  return Manage("HcclCommDestroy", [comm] { return Destroy(comm); });
} catch (...) {
  return AnswerThrown(__func__);
}
