#include "runtime/base/env/env.h"

#include <array>
#include <cstdlib>
#include <limits>

#include "runtime/base/log.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using Entry = EnvEntry<Env>;

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

template <int Env::*field, int64_t min, int64_t max>
Status ParseIntField(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t value, ParseInt(text, min, max, variable.name));
  env.*field = static_cast<int>(value);
  return Status();
}

template <std::optional<int> Env::*field, int64_t min, int64_t max = kMaxInt>
Status ParseOptionalField(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t value, ParseInt(text, min, max, variable.name));
  env.*field = static_cast<int>(value);
  return Status();
}

template <std::chrono::seconds Env::*field, int64_t min, int64_t max>
Status ParseSecondsField(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t value, ParseInt(text, min, max, variable.name));
  env.*field = std::chrono::seconds(value);
  return Status();
}

template <bool Env::*kField>
Status ParseFlag(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(env.*kField, ParseBool(text, variable.name));
  return Status();
}

Status ParseDeadlock(const EnvVariable& variable, std::string_view text, Env& env) {
  if (text != "fail" && text != "wait") {
    return Error(Code::kInvalidArgument, "{}: expected {}, got \"{}\"", variable.name,
                 variable.accepted, text);
  }
  env.deadlock = text == "fail" ? Env::Deadlock::kFail : Env::Deadlock::kWait;
  return Status();
}

Status ParseHbmSize(const EnvVariable& variable, std::string_view text, Env& env) {
  constexpr uint64_t kLeast = uint64_t{1} << 20;
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text, variable.name));
  if (bytes < kLeast) {
    return Error(Code::kInvalidArgument, "{}: expected at least 1M, got \"{}\"", variable.name,
                 text);
  }
  env.hbm_bytes = bytes;
  return Status();
}

Status ParseHcclAlgo(const EnvVariable& variable, std::string_view text, Env& env) {
  constexpr size_t kLongest = 1600;  // HcclCommConfig::hcclAlgo
  if (text.size() > kLongest) {
    return Error(Code::kInvalidArgument, "{}: expected at most {} characters, got {}",
                 variable.name, kLongest, text.size());
  }
  env.hccl_algo = text;
  return Status();
}

Status ParseLibraries(const EnvVariable& variable, std::string_view text, Env& env) {
  env.algorithm_libraries.clear();
  for (const std::string_view path : Split(text, ":")) {
    if (path.empty()) {
      return Error(Code::kInvalidArgument, "{}: expected {}, got \"{}\"", variable.name,
                   variable.accepted, text);
    }
    env.algorithm_libraries.emplace_back(path);
  }
  return Status();
}

// Read where ranks meet (world/meeting.h): programs that compute alone may have any value there.
Status TakeAsItIs(const EnvVariable&, std::string_view, Env&) {
  return Status();
}

// TorchAir only warns, so a wrong level must not stop a program that runs on hardware. The warning
// is written whatever the level is.
Status ParseLogLevel(const EnvVariable& variable, std::string_view text, Env& env) {
  if (const auto level = ParseInt(text, 0, 4, variable.name); level.ok()) {
    env.log_level = static_cast<int>(*level);
    return Status();
  }
  const std::string warning =
      fmt::format("Value of {} should be in {{0, 1, 2, 3, 4}}, but got {}", variable.name, text);
  if (FirstTime(warning)) WriteLog(LogLevel::kWarning, {__FILE__, __LINE__}, warning);
  return Status();
}

constexpr std::array kEntries = {
    Entry{{"NPUMESH_HBM_SIZE", "bytes, at least 1M; units K, M, G, T",
           "64G, cut to this rank's share of the memory that is available",
           "Device memory of one rank."},
          ParseHbmSize},
    Entry{{"NPUMESH_NUM_THREADS", "integer in [0, 1024]", "0: the cores bound to the rank",
           "Threads of one rank's kernels."},
          ParseIntField<&Env::num_threads, 0, 1024>},
    Entry{{"NPUMESH_TOPOLOGY", "hwloc synthetic text, for example \"numa:2 core:4 pu:1\"",
           "the real machine", "Machine to plan for instead of the real one; nothing is bound."},
          ParseTextField<&Env::topology>},
    Entry{{"NPUMESH_SOFT_TIMEOUT", "seconds in [1, 86400]", "10",
           "How long a waiter stays silent before it says whom it waits for."},
          ParseSecondsField<&Env::soft_timeout, 1, 86400>,
          EnvFallback::kValue},
    Entry{{"NPUMESH_DEADLOCK", "fail or wait", "fail",
           "What a wait does that certainly never ends, because the ranks wait for each other in a "
           "circle or one has ended its work: fails within seconds, or goes on waiting."},
          ParseDeadlock,
          EnvFallback::kValue},
    Entry{
        {"NPUMESH_TRACE", "1, true, on, yes or 0, false, off, no", "0",
         "Says in the log, whatever its level, why each algorithm or kernel was taken or refused, "
         "and why a pattern was not fused."},
        ParseFlag<&Env::trace>,
        EnvFallback::kValue},
    Entry{{"NPUMESH_DEVICE_COUNT", "integer in [1, 256]", "the launcher's rank, or one device",
           "Devices of this process for programs of the C interface that drive each by a thread; "
           "without MPI, also under a launcher."},
          ParseOptionalField<&Env::device_count, 1, 256>},
    Entry{{"NPUMESH_GUARD", "1, true, on, yes or 0, false, off, no", "0",
           "Checks programs of the C interface where it costs time and memory: device memory that "
           "is written behind a block or after it was freed, streams of another context, and what "
           "is not destroyed before the end (acl.md)."},
          ParseFlag<&Env::guard>,
          EnvFallback::kValue},
    Entry{{"NPUMESH_RECORD", "a folder, made when it is missing", "no record",
           "Where each rank keeps the flight record that `npumesh record` reads."},
          ParseTextField<&Env::record>},
    Entry{{"NPUMESH_ALGORITHM_LIBRARY", "paths of shared libraries, separated by :", "none",
           "Algorithms of one's own for collectives, tried before the built-in ones; "
           "for the npumesh command and programs that export npumesh's symbols."},
          ParseLibraries},
    Entry{{"HCCL_ALGO", "the vendor's grammar or names of ours, at most 1600 characters",
           "empty: the first algorithm that does not refuse", "Picks algorithms by name."},
          ParseHcclAlgo},
    Entry{
        {"HCCL_CONNECT_TIMEOUT",
         "seconds in [1, 7200]; the vendor takes [120, 7200], smaller values let tests be short",
         "120", "How long a communicator waits for its members, and a rank for the start of all."},
        ParseSecondsField<&Env::connect_timeout, 1, 7200>,
        EnvFallback::kValue},
    Entry{{"HCCL_EXEC_TIMEOUT", "seconds in [0, 2147483647]; 0: without limit", "1836",
           "How long a collective waits for its peers."},
          ParseSecondsField<&Env::exec_timeout, 0, kMaxInt>,
          EnvFallback::kValue},
    Entry{
        {"TNG_LOG_LEVEL", "0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR, 4 EVENT; anything else only warns",
         "3", "What the log prints; 4 prints ERROR and EVENT only."},
        ParseLogLevel,
        EnvFallback::kValue},
};

// What launchers set.
constexpr std::array kLauncherEntries = {
    Entry{{"LOCAL_WORLD_SIZE", "integer in [1, 2147483647]", "not compared",
           "Set by launchers: ranks of this node. A difference from the truth is an error."},
          ParseOptionalField<&Env::local_world_size, 1>},
    Entry{{"RANK", "integer in [0, 2147483647]", "not compared",
           "Set by launchers: this rank. A difference from the truth is an error."},
          ParseOptionalField<&Env::rank, 0>},
    Entry{{"WORLD_SIZE", "integer in [1, 2147483647]", "not compared",
           "Set by launchers: number of ranks. A difference from the truth is an error."},
          ParseOptionalField<&Env::world_size, 1>},
    Entry{{"OMPI_COMM_WORLD_LOCAL_SIZE", "integer in [1, 2147483647]", "MPI_LOCALNRANKS",
           "Set by Open MPI's launcher: ranks of this node. Answers aclrtGetDeviceCount before the "
           "ranks have met."},
          ParseOptionalField<&Env::launched_on_node, 1>},
    Entry{{"MPI_LOCALNRANKS", "integer in [1, 2147483647]", "the ranks are asked",
           "The same, set by MPICH's launcher."},
          ParseOptionalField<&Env::launched_on_node, 1>},
    Entry{
        {"MASTER_ADDR", "a name or address", "ranks are MPI's, or there is one",
         "Set by torchrun and scripts: with RANK, WORLD_SIZE and MASTER_PORT, where ranks of this "
         "host meet that MPI has not started."},
        TakeAsItIs},
    Entry{{"MASTER_PORT", "integer in [0, 65535]", "ranks are MPI's, or there is one",
           "The same. Ranks of npumesh meet beside that port, not at it."},
          TakeAsItIs},
    Entry{{"TORCHELASTIC_RESTART_COUNT", "integer in [0, 2147483647]", "0",
           "Set by torchrun: tells the meetings of ranks that it starts again apart."},
          TakeAsItIs},
};

constexpr auto kManual = ManualOf(kEntries);
constexpr auto kLauncherManual = ManualOf(kLauncherEntries);

}  // namespace

std::span<const EnvVariable> EnvTable() {
  return kManual;
}

std::span<const EnvVariable> LauncherEnvTable() {
  return kLauncherManual;
}

Env::Env() {
  SetFallbacks(kEntries, *this);
}

Result<Env> Env::From(const EnvGetter& get) {
  Env env;
  NPUMESH_RETURN_IF_ERROR(ReadVariables(kEntries, get, env));
  NPUMESH_RETURN_IF_ERROR(ReadVariables(kLauncherEntries, get, env));
  return env;
}

Result<Env> Env::FromProcess() {
  return From([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace npumesh
