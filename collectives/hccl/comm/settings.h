// Settings: what holds for all communicators of the process.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_SETTINGS_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_SETTINGS_H_

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "collectives/hccl/comm/verdict.h"
#include "hccl/hccl_comm.h"
#include "runtime/base/env/hccl_env.h"

namespace npumesh {

class Settings {
 public:
  static Settings& OfProcess();

  // The environment as it was at the first call. E_PARA for an invalid variable (EI0001).
  Verdict Environment(const HcclEnv** env) const;

  // HCCL_ENTRY_LOG_ENABLE: every operator call leaves a line in the log.
  bool entry_log() const { return env_.ok() && env_.value().entry_log; }

  // HCCL_DETERMINISTIC, then HcclSetConfig, then 0.
  int32_t deterministic() const;
  // E_PARA outside of 0 to 2. Without effect when the environment has decided.
  Verdict SetDeterministic(int32_t value);

  Verdict AddCallback(const char* name, HcclCommStateCallback callback, void* args);
  void Call(HcclComm comm, HcclCommStatePhase phase) const;

 private:
  Settings();

  struct Callback {
    HcclCommStateCallback function;
    void* args;
  };

  const Result<HcclEnv> env_;
  std::atomic<int32_t> deterministic_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Callback> callbacks_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_SETTINGS_H_
