#include "graph/c_interface/option_pairs.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "graph/c_interface/call.h"
#include "graph/config/option_tables.h"
#include "graph/config/validation.h"
#include "graph/session/frozen_inputs.h"
#include "graph/session/session_config.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr std::string_view kThreads = "npumesh.threads";
constexpr std::string_view kParameters = "npumesh.parameters";
constexpr std::string_view kAllowOutside = "npumesh.allow_outside";
constexpr std::string_view kMissing = "npumesh.missing_operators";
constexpr std::string_view kZeros = "zeros";
constexpr std::string_view kGroup = "npumesh.group.";
constexpr int kMostThreads = 4096;

Status CheckPairs(const npumesh_option* options, size_t count) {
  if (count > 0) NPUMESH_RETURN_IF_ERROR(CheckPointer(options, "options"));
  for (size_t i = 0; i < count; ++i) {
    if (options[i].key != nullptr && options[i].value != nullptr) continue;
    return Error(Code::kInvalidArgument, "option {}: its {} is NULL", i,
                 options[i].key == nullptr ? "key" : "value");
  }
  return Status();
}

bool IsVariable(std::string_view key) {
  const auto named = [key](const EnvVariable& variable) { return variable.name == key; };
  return std::ranges::any_of(EnvTable(), named);
}

Status SetOption(const npumesh_option& pair, const OptionTable& table) {
  NPUMESH_ASSIGN_OR_RETURN(const Option* const option, table.Find(pair.key));
  return SetFromText(*option, pair.value);
}

// "npumesh.*" of a session. False: the key is another.
Result<bool> TakeOwnPair(const npumesh_option& pair, SessionPairs& read) {
  const std::string_view key = pair.key;
  if (key == kThreads) {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t threads, ParseInt(pair.value, 1, kMostThreads, key));
    read.session.compile.threads = static_cast<int>(threads);
  } else if (key == kParameters) {
    NPUMESH_ASSIGN_OR_RETURN(read.session.parameters, ParseFrozenInput(pair.value));
  } else if (key == kAllowOutside) {
    NPUMESH_ASSIGN_OR_RETURN(read.allow_outside, ParseBool(pair.value, key));
  } else if (key == kMissing) {
    read.stand_ins = pair.value == kZeros;
    if (!read.stand_ins && pair.value != std::string_view("refuse")) {
      return Error(Code::kInvalidArgument, "{} is \"{}\"; expected refuse or zeros", key,
                   pair.value);
    }
  } else if (key.starts_with(kGroup) && key.size() > kGroup.size()) {
    Result<std::vector<int>> ranks = ParseRankList(pair.value, key);
    if (!ranks.ok()) return Error(Code::kInvalidArgument, "{}", ranks.status().message());
    read.session.groups[std::string(key.substr(kGroup.size()))] = *std::move(ranks);
  } else {
    return false;
  }
  return true;
}

// What a world decides for all its sessions.
Status CheckSessionOptions(const SystemOptions& options) {
  if (!options.profiling_mode) return Status();
  return Error(Code::kInvalidArgument,
               "session.profiling_mode is for npumesh_init: a profile has all sessions of a world; "
               "or call npumesh_start_profile");
}

Status Configure(const CompilerConfig& compiler, const SystemOptions& system,
                 SessionOptions& session) {
  NPUMESH_RETURN_IF_ERROR(Validate(system));
  NPUMESH_RETURN_IF_ERROR(CheckSessionOptions(system));
  SayOnce(NoticesOf(system));
  NPUMESH_ASSIGN_OR_RETURN(SessionOptions configured, SessionOptionsFor(compiler));
  if (!configured.tuning) configured.tuning = TuningOf(system, compiler.aoe_config.work_path);
  if (!configured.tensor_dump.wanted()) {
    NPUMESH_ASSIGN_OR_RETURN(configured.tensor_dump, TensorDumpOf(system));
  }
  NPUMESH_RETURN_IF_ERROR(ApplySystemOptions(system, configured));
  configured.compile.threads = session.compile.threads;
  configured.parameters = std::move(session.parameters);
  configured.groups = std::move(session.groups);
  session = std::move(configured);
  return Status();
}

}  // namespace

Result<WorldPairs> ReadWorldPairs(const npumesh_option* options, size_t count) {
  NPUMESH_RETURN_IF_ERROR(CheckPairs(options, count));
  WorldPairs read;
  const OptionTable table = OptionsOf(read.session);
  std::map<std::string, std::string, std::less<>> variables;
  for (size_t i = 0; i < count; ++i) {
    if (IsVariable(options[i].key)) {
      variables[options[i].key] = options[i].value;
    } else {
      NPUMESH_RETURN_IF_ERROR(SetOption(options[i], table));
    }
  }
  const auto get = [&variables](const char* name) -> const char* {
    const auto found = variables.find(std::string_view(name));
    return found == variables.end() ? std::getenv(name) : found->second.c_str();
  };
  NPUMESH_ASSIGN_OR_RETURN(read.env, Env::From(get));
  read.log_level_given = variables.contains("TNG_LOG_LEVEL");
  return read;
}

Result<SessionPairs> ReadSessionPairs(const npumesh_option* options, size_t count,
                                      const GroupTable& groups, int threads) {
  NPUMESH_RETURN_IF_ERROR(CheckPairs(options, count));
  SessionPairs read;
  read.session = DefaultSessionOptions();
  read.session.groups = groups;
  read.session.compile.threads = threads;
  CompilerConfig compiler;
  SystemOptions system;
  const OptionTable table = OptionsOf(compiler, system);
  bool configured = false;
  for (size_t i = 0; i < count; ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const bool own, TakeOwnPair(options[i], read));
    if (own) continue;
    NPUMESH_RETURN_IF_ERROR(SetOption(options[i], table));
    configured = true;
  }
  if (configured) NPUMESH_RETURN_IF_ERROR(Configure(compiler, system, read.session));
  return read;
}

}  // namespace npumesh
