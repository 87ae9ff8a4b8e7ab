// The functions of hccl/hccl_comm.h and hccl/hccl_sym_win.h about memory.
#include "collectives/hccl/comm/argument_check.h"
#include "collectives/hccl/comm/memory_ranges.h"
#include "collectives/hccl/comm/registered_memory.h"
#include "collectives/hccl/comm/windows.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_sym_win.h"

using namespace npumesh;  // NOLINT: this file is the C interface

HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t alignment,
                                  uint64_t flags) try {
  ArgumentCheck check("HcclCommSetMemoryRange");
  check.NotNull("comm", comm).NotNull("baseVirPtr", baseVirPtr).Live(comm);
  check.Holds(alignment == 0 && flags == 0, HCCL_E_PARA, "EI0003: alignment and flags must be 0");
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), MemoryRanges::OfProcess().Set(baseVirPtr, size));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr) try {
  ArgumentCheck check("HcclCommUnsetMemoryRange");
  check.NotNull("comm", comm).NotNull("baseVirPtr", baseVirPtr).Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), MemoryRanges::OfProcess().Unset(baseVirPtr));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset,
                                      aclrtDrvMemHandle handle, uint64_t flags) try {
  ArgumentCheck check("HcclCommActivateCommMemory");
  check.NotNull("comm", comm).NotNull("virPtr", virPtr).NotNull("handle", handle).Live(comm);
  check.Holds(offset == 0 && flags == 0, HCCL_E_PARA, "EI0003: offset and flags must be 0");
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), MemoryRanges::OfProcess().Activate(virPtr, size));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr) try {
  ArgumentCheck check("HcclCommDeactivateCommMemory");
  check.NotNull("comm", comm).NotNull("virPtr", virPtr).Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), MemoryRanges::OfProcess().Deactivate(virPtr));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommRegister(HcclComm comm, void* addr, uint64_t size, void** handle,
                            uint32_t flag) try {
  ArgumentCheck check("HcclCommRegister");
  check.NotNull("comm", comm).NotNull("addr", addr).NotNull("handle", handle);
  check.Holds(size != 0 && flag == 0, HCCL_E_PARA,
              "EI0003: size must not be 0, and flag must be 0");
  check.Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(),
                RegisteredMemory::OfProcess().Register(*check.comm(), addr, size, handle));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommDeregister(HcclComm comm, void* handle) try {
  ArgumentCheck check("HcclCommDeregister");
  check.NotNull("comm", comm).NotNull("handle", handle).Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), RegisteredMemory::OfProcess().Deregister(*check.comm(), handle));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommExchangeMem(HcclComm comm, void* windowHandle, uint32_t* peerRanks,
                               uint32_t peerRankNum) try {
  ArgumentCheck check("HcclCommExchangeMem");
  check.NotNull("comm", comm).NotNull("windowHandle", windowHandle);
  check.NotNull("peerRanks", peerRanks).Live(comm);
  for (uint32_t i = 0; check.ok() && i < peerRankNum; ++i) {
    check.RankInComm("peerRanks", peerRanks[i]);
  }
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), RegisteredMemory::OfProcess().Check(*check.comm(), windowHandle));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size,
                                  HcclCommSymWindow* winHandle, uint32_t flag) try {
  ArgumentCheck check("HcclCommSymWinRegister");
  check.NotNull("comm", comm).NotNull("addr", addr).NotNull("winHandle", winHandle);
  check.Holds(size != 0 && flag == 1, HCCL_E_PARA,
              "EI0003: size must not be 0, and flag must be 1");
  check.Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(),
                WindowTable::OfProcess().Register(check.comm(), addr, size, winHandle));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle) try {
  return Answer("HcclCommSymWinDeregister", WindowTable::OfProcess().Deregister(winHandle));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, HcclCommSymWindow* winHandle,
                             size_t* offset) try {
  ArgumentCheck check("HcclCommSymWinGet");
  check.NotNull("comm", comm).NotNull("ptr", ptr);
  check.NotNull("winHandle", winHandle).NotNull("offset", offset).Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(),
                WindowTable::OfProcess().Find(*check.comm(), ptr, size, winHandle, offset));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow win, size_t offset, uint32_t peer,
                                    void** ptr) try {
  ArgumentCheck check("HcclSymWinGetPeerPointer");
  check.NotNull("win", win).NotNull("ptr", ptr);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  return Answer(check.call(), WindowTable::OfProcess().PeerPointer(win, offset, peer, ptr));
} catch (...) {
  return AnswerThrown(__func__);
}
