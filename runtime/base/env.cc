#include "runtime/base/env.h"

#include <array>
#include <cassert>
#include <cstdlib>
#include <limits>

#include "runtime/base/log.h"
#include "runtime/base/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

// Whether the fallback in the manual is a value of the variable, which fills the field of Env, or
// words for people.
enum class Fallback : uint8_t { kWords, kValue };

// One variable: its row of the manual and how its text becomes a field of Env.
struct Entry {
  EnvVariable manual;
  Status (*parse)(const EnvVariable& variable, std::string_view text, Env& env);
  Fallback fallback = Fallback::kWords;
};

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

Status ParseTrace(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(env.trace, ParseBool(text, variable.name));
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

template <std::string Env::*field>
Status ParseTextField(const EnvVariable&, std::string_view text, Env& env) {
  env.*field = text;
  return Status();
}

// As in GE, values above 3 mean no dump.
Status ParseDumpGraph(const EnvVariable& variable, std::string_view text, Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t level, ParseInt(text, 0, kMaxInt, variable.name));
  env.dump_ge_graph = level <= 3 ? static_cast<int>(level) : 0;
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

// The exception scenes of a dump configuration (docs/dump.md).
Status ParseDumpScene(const EnvVariable& variable, std::string_view text, Env& env) {
  for (const std::string_view scene :
       {"", "lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump"}) {
    if (text != scene) continue;
    env.ascend_dump_scene = text;
    return Status();
  }
  return Error(Code::kInvalidArgument, "{}: expected {}, got \"{}\"", variable.name,
               variable.accepted, text);
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
          Fallback::kValue},
    Entry{{"NPUMESH_DEADLOCK", "fail or wait", "fail",
           "What a wait does that certainly never ends, because the ranks wait for each other in a "
           "circle or one has ended its work: fails within seconds, or goes on waiting."},
          ParseDeadlock,
          Fallback::kValue},
    Entry{
        {"NPUMESH_TRACE", "1, true, on, yes or 0, false, off, no", "0",
         "Says in the log, whatever its level, why each algorithm or kernel was taken or refused, "
         "and why a pattern was not fused."},
        ParseTrace,
        Fallback::kValue},
    Entry{{"NPUMESH_DEVICE_COUNT", "integer in [1, 256]", "the launcher's rank, or one device",
           "Devices of this process for programs of the C interface that drive each by a thread; "
           "without MPI, also under a launcher."},
          ParseOptionalField<&Env::device_count, 1, 256>},
    Entry{{"NPUMESH_RECORD", "a folder, made when it is missing", "no record",
           "Where each rank keeps the flight record that `npumesh record` reads."},
          ParseTextField<&Env::record>},
    Entry{{"HCCL_ALGO", "the vendor's grammar or names of ours, at most 1600 characters",
           "empty: the first algorithm that does not refuse", "Picks algorithms by name."},
          ParseHcclAlgo},
    Entry{
        {"HCCL_CONNECT_TIMEOUT",
         "seconds in [1, 7200]; the vendor takes [120, 7200], smaller values let tests be short",
         "120", "How long a communicator waits for its members, and a rank for the start of all."},
        ParseSecondsField<&Env::connect_timeout, 1, 7200>,
        Fallback::kValue},
    Entry{{"HCCL_EXEC_TIMEOUT", "seconds in [0, 2147483647]; 0: for ever", "1836",
           "How long a collective waits for its peers."},
          ParseSecondsField<&Env::exec_timeout, 0, kMaxInt>,
          Fallback::kValue},
    Entry{
        {"TNG_LOG_LEVEL", "0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR, 4 EVENT; anything else only warns",
         "3", "What the log prints; 4 prints ERROR and EVENT only."},
        ParseLogLevel,
        Fallback::kValue},
    Entry{
        {"DUMP_GE_GRAPH", "1, 2, 3; 0 or more than 3: none", "0",
         "Writes the graph after each compile stage: 1 everything, 2 without weights, 3 nodes and "
         "edges only."},
        ParseDumpGraph,
        Fallback::kValue},
    Entry{
        {"DUMP_GRAPH_LEVEL",
         "1 all stages but those of parts, 2 the main stages, 3 Build, 4 PreRunBegin, or parts of "
         "stage names joined by |",
         "2", "Which stages DUMP_GE_GRAPH writes."},
        ParseTextField<&Env::dump_graph_level>,
        Fallback::kValue},
    Entry{{"DUMP_GRAPH_FORMAT", "ge_proto, onnx, readable, joined by |", "ge_proto|onnx",
           "In which forms DUMP_GE_GRAPH writes."},
          ParseTextField<&Env::dump_graph_format>,
          Fallback::kValue},
    Entry{{"NPU_COLLECT_PATH", "a folder, made when it is missing",
           "DUMP_GRAPH_PATH for graphs, ASCEND_DUMP_PATH for exception dumps",
           "DUMP_GE_GRAPH writes into extra-info/graph/<pid>_<device> of it, an operator that "
           "fails into extra-info/data-dump/<device>. When it is set, there is an exception dump "
           "whatever else is configured."},
          ParseTextField<&Env::npu_collect_path>},
    Entry{{"DUMP_GRAPH_PATH", "a folder, made when it is missing", "ASCEND_WORK_PATH",
           "DUMP_GE_GRAPH writes into pid_<pid>_deviceid_<device> of it."},
          ParseTextField<&Env::dump_graph_path>},
    Entry{{"ASCEND_DUMP_PATH", "a folder, made when it is missing", "ASCEND_WORK_PATH",
           "Where exception dumps are written."},
          ParseTextField<&Env::ascend_dump_path>},
    Entry{{"ASCEND_WORK_PATH", "a folder, made when it is missing",
           "the working folder for graphs, dump_path for exception dumps",
           "Where DUMP_GE_GRAPH and exception dumps write."},
          ParseTextField<&Env::ascend_work_path>},
    Entry{{"ASCEND_DUMP_SCENE",
           "lite_exception, aic_err_brief_dump, aic_err_norm_dump or aic_err_detail_dump",
           "no exception dump",
           "Dumps an operator that fails, without a dump configuration; dump_scene and "
           "enable_exception_dump win over it."},
          ParseDumpScene},
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
};

constexpr auto kManual = [] {
  std::array<EnvVariable, kEntries.size()> manual{};
  for (size_t i = 0; i < kEntries.size(); ++i) manual[i] = kEntries[i].manual;
  return manual;
}();

}  // namespace

std::span<const EnvVariable> EnvTable() {
  return kManual;
}

Env::Env() {
  for (const Entry& entry : kEntries) {
    if (entry.fallback != Fallback::kValue) continue;
    [[maybe_unused]] const Status read = entry.parse(entry.manual, entry.manual.fallback, *this);
    assert(read.ok());
  }
}

Result<Env> Env::From(const std::function<const char*(const char*)>& get) {
  Env env;
  for (const Entry& entry : kEntries) {
    const char* text = get(entry.manual.name.data());
    if (text == nullptr) continue;
    NPUMESH_RETURN_IF_ERROR(
        entry.parse(entry.manual, text, env).WithContext("environment variable"));
  }
  return env;
}

Result<Env> Env::FromProcess() {
  return From([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace npumesh
