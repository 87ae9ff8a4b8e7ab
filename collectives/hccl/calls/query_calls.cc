// The functions of hccl/hccl_comm.h that ask and steer communicators.
#include <algorithm>
#include <cstring>

#include "collectives/hccl/comm/argument_check.h"
#include "collectives/hccl/comm/settings.h"
#include "hccl/hccl_comm.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {
namespace {

// Asks the live communicator behind `handle`; E_PTR when the handle or the place for the answer is
// null.
template <typename Question>
HcclResult Ask(std::string_view call, HcclComm handle, const void* answer, Question question) {
  ArgumentCheck check(call);
  check.NotNull("comm", handle).NotNull("the place for the answer", answer).Live(handle);
  if (!check.ok()) return Answer(call, check.verdict());
  return Answer(call, question(*check.comm()));
}

// HcclOpExpansionMode of HcclCommConfig::hcclOpExpansionMode, which is numbered otherwise.
HcclOpExpansionMode ModeOf(uint32_t config_number) {
  switch (config_number) {
    case 1:
      return HCCL_OP_EXPANSION_MODE_HOST_TS;
    case 3:
      return HCCL_OP_EXPANSION_MODE_AIV;
    case 4:
      return HCCL_OP_EXPANSION_AIV_ONLY;
    case 5:
      return HCCL_OP_EXPANSION_MODE_CCU_MS;
    case 6:
      return HCCL_OP_EXPANSION_MODE_CCU_SCHED;
    case 2:
    case 7:
      return HCCL_OP_EXPANSION_MODE_AI_CPU;
    default:
      return HCCL_OP_EXPANSION_MODE_HOST;
  }
}

Verdict GetInfo(const Comm& comm, HcclConfigType type, uint32_t room, void* info) {
  if (type == HCCL_CONFIG_TYPE_OP_EXPANSION_MODE) {
    if (room != sizeof(HcclOpExpansionMode)) {
      return Refuse(HCCL_E_PARA, "EI0003: infoLen is {}; expected {}", room,
                    sizeof(HcclOpExpansionMode));
    }
    const HcclOpExpansionMode mode = ModeOf(comm.config().op_expansion_mode);
    std::memcpy(info, &mode, sizeof(mode));
    return {};
  }
  if (type != HCCL_CONFIG_TYPE_HCCL_ALGO) {
    return Refuse(HCCL_E_PARA, "EI0003: cfgType is {}; expected 0 or 1", static_cast<int>(type));
  }
  if (room < HCCL_COMM_ALGO_MAX_LENGTH) {
    return Refuse(HCCL_E_PARA, "EI0003: infoLen is {}; expected at least {}", room,
                  HCCL_COMM_ALGO_MAX_LENGTH);
  }
  const std::string& algo =
      comm.config().algo.empty() ? comm.device()->world.env().hccl_algo : comm.config().algo;
  const size_t length = std::min<size_t>(algo.size(), room - 1);
  std::memcpy(info, algo.data(), length);
  static_cast<char*>(info)[length] = '\0';
  return {};
}

constexpr const char* kResultTexts[] = {
    "no error",
    "parameter error",
    "empty pointer",
    "memory error",
    "internal error",
    "not support feature",
    "not found specific resource",
    "resource unavailable",
    "call system interface error",
    "timeout",
    "open file fail",
    "tcp connect fail",
    "roce connect fail",
    "tcp transfer fail",
    "roce transfer fail",
    "call runtime api fail",
    "call driver api fail",
    "call profiling api fail",
    "call cce api fail",
    "call network api fail",
    "try again",
    "error cqe",
    "error communicator suspending",
    "retry constraint",
    "out of memory",
};
static_assert(std::size(kResultTexts) == HCCL_E_OOM + 1);

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) try {
  return Ask("HcclGetRankSize", comm, rankSize, [&](const Comm& live) {
    *rankSize = live.size();
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) try {
  return Ask("HcclGetRankId", comm, rank, [&](const Comm& live) {
    *rank = live.rank();
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) try {
  return Ask("HcclGetCommName", comm, commName, [&](const Comm& live) {
    const size_t length = std::min<size_t>(live.name().size(), COMM_NAME_MAX_LENGTH - 1);
    std::memcpy(commName, live.name().data(), length);
    commName[length] = '\0';
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) try {
  return Ask("HcclGetCommAsyncError", comm, asyncError, [&](const Comm& live) {
    const Verdict failure = live.async_error();
    *asyncError = failure.result;
    // The call itself has done well; the words are those of the operator.
    if (!failure.ok()) RecordRecentError(failure.why);
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType cfgType, uint32_t infoLen,
                             void* info) try {
  return Ask("HcclConfigGetInfo", comm, info,
             [&](const Comm& live) { return GetInfo(live, cfgType, infoLen, info); });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm) try {
  ArgumentCheck check("HcclCommGetHandleWithName");
  check.NotNull("commName", commName).NotNull("comm", comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  const std::shared_ptr<Comm> found = CommTable::OfProcess().FindByName(commName);
  check.Holds(found != nullptr, HCCL_E_NOT_FOUND,
              fmt::format("there is no communicator \"{}\"", commName));
  if (found) *comm = found->handle();
  return Answer(check.call(), check.verdict());
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status) try {
  ArgumentCheck check("HcclCommGetStatus");
  check.NotNull("commId", commId).NotNull("status", status);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  const std::shared_ptr<Comm> found = CommTable::OfProcess().FindByName(commId);
  *status = found == nullptr     ? HCCL_COMM_STATUS_INVALID
            : found->suspended() ? HCCL_COMM_STATUS_SUSPENDING
                                 : HCCL_COMM_STATUS_READY;
  return HCCL_SUCCESS;
} catch (...) {
  return AnswerThrown(__func__);
}

const char* HcclGetErrorString(HcclResult code) {
  const auto number = static_cast<int>(code);
  if (number < 0 || number >= HCCL_E_RESERVED) return "unknown error";
  if (number > HCCL_E_OOM) return "unknown err";
  return kResultTexts[number];
}

uint32_t HcclGetCommConfigCapability() {
  return HCCL_COMM_CONFIG_RESERVED;
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) try {
  constexpr std::string_view kName = "HcclSetConfig";
  if (config != HCCL_DETERMINISTIC) {
    return Answer(kName, Refuse(HCCL_E_PARA, "EI0003: config {} is not HCCL_DETERMINISTIC",
                                static_cast<int>(config)));
  }
  return Answer(kName, Settings::OfProcess().SetDeterministic(configValue.value));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) try {
  ArgumentCheck check("HcclGetConfig");
  check.NotNull("configValue", configValue);
  check.Holds(config == HCCL_DETERMINISTIC, HCCL_E_PARA,
              "EI0003: config is not HCCL_DETERMINISTIC");
  if (check.ok()) configValue->value = Settings::OfProcess().deterministic();
  return Answer(check.call(), check.verdict());
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommSuspend(HcclComm comm) try {
  return Ask("HcclCommSuspend", comm, comm, [](Comm& live) {
    live.set_suspended(true);
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommResume(HcclComm comm) try {
  return Ask("HcclCommResume", comm, comm, [&](Comm& live) {
    Settings::OfProcess().Call(comm, HCCL_COMM_STATE_PHASE_RESUME_PRE);
    live.set_suspended(false);
    Settings::OfProcess().Call(comm, HCCL_COMM_STATE_PHASE_RESUME_POST);
    return Verdict();
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommRegCommStateCallback(const char* regName, HcclCommStateCallback cb,
                                        void* args) try {
  return Answer("HcclCommRegCommStateCallback",
                Settings::OfProcess().AddCallback(regName, cb, args));
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup,
                                    uint32_t nRanks) try {
  ArgumentCheck check("HcclCommWorkingDevNicSet");
  check.NotNull("comm", comm).NotNull("ranks", ranks).NotNull("useBackup", useBackup).Live(comm);
  for (uint32_t i = 0; check.ok() && i < nRanks; ++i) check.RankInComm("ranks", ranks[i]);
  check.Holds(false, HCCL_E_NOT_SUPPORT, "a simulated NPU has no second network interface");
  return Answer(check.call(), check.verdict());
} catch (...) {
  return AnswerThrown(__func__);
}
