#include "launch/mpirun/mpirun_plan.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace npumesh {
namespace {

using Words = std::vector<std::string>;

std::string HostWord(const Spread& spread) {
  Words words;
  for (const Host& host : spread.hosts) {
    words.push_back(fmt::format("{}:{}", host.name, host.slots > 0 ? host.slots : spread.per_host));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

bool IsOpenMpi5(const LaunchPlace& place) {
  return place.launcher == MpiLauncher::kOpenMpi5;
}

// mpirun notices a host that is silent after 25 s; its own default is 8 minutes.
Words KeepaliveWords(const LaunchPlace& place) {
  Words words;
  for (const auto& [name, value] : {std::pair("time", "10"), {"intvl", "5"}, {"probes", "3"}}) {
    words.insert(words.end(), {IsOpenMpi5(place) ? "--prtemca" : "--mca",
                               fmt::format("oob_tcp_keepalive_{}", name), value});
  }
  return words;
}

// Where ranks go. Open MPI 5 says with --map-by, once, also that there are more ranks than slots.
Words MappingWords(const LaunchPlace& place, const Spread& spread) {
  Words words;
  if (spread.oversubscribed && !IsOpenMpi5(place)) words.emplace_back("--oversubscribe");
  const std::string_view more = spread.oversubscribed ? ":OVERSUBSCRIBE" : "";
  if (!spread.hosts.empty()) {
    words.insert(words.end(), {"--host", HostWord(spread), "--map-by",
                               fmt::format("ppr:{}:node{}", spread.per_host, more)});
  } else if (spread.oversubscribed && IsOpenMpi5(place)) {
    words.insert(words.end(), {"--map-by", std::string(more)});
  }
  return words;
}

// How ranks, and they and mpirun, talk to each other.
Words TransportWords(const LaunchPlace& place, const Spread& spread) {
  Words words;
  if (spread.hosts.size() > 1) words = KeepaliveWords(place);
  // The server of ranks in mpirun; its other ports are kept in by launch/mpirun/loopback.
  if (spread.hosts.empty() && IsOpenMpi5(place)) words = {"--pmixmca", "ptl_base_if_include", "lo"};
  if (!place.segments.empty()) {
    const std::string_view memory = IsOpenMpi5(place) ? "sm" : "vader";
    words.insert(words.end(), {"--mca", "btl", fmt::format("self,{}", memory), "--mca",
                               fmt::format("btl_{}_backing_directory", memory), place.segments});
  }
  return words;
}

Words TagWords(const LaunchPlace& place) {
  return IsOpenMpi5(place) ? Words{"--output", "tag"} : Words{"--tag-output"};
}

// Words of Hydra that come before the program. It binds nothing unless it is told to, and minds
// neither root nor more ranks than cores.
Words HydraWords(const Spread& spread, const std::string& bind) {
  Words words = {"-prepend-pattern", std::string(kHydraPattern), "-genv", "LOCAL_WORLD_SIZE",
                 fmt::format("{}", spread.per_host)};
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (bind != "none") add({"-bind-to", bind});
  if (!spread.hosts.empty()) {
    add({"-hosts", HostWord(spread), "-ppn", fmt::format("{}", spread.per_host)});
  } else {
    add({"-iface", "lo", "-genv", "UCX_NET_DEVICES", "lo"});
  }
  return words;
}

// Words of Open MPI's mpirun that come before the program.
Words OpenMpiWords(const LaunchPlace& place, const Spread& spread, const std::string& bind) {
  Words words;
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (place.root) add({"--allow-run-as-root"});
  add(MappingWords(place, spread));
  add(TransportWords(place, spread));
  add({"--bind-to", bind});
  add(TagWords(place));
  add({"-x", fmt::format("LOCAL_WORLD_SIZE={}", spread.per_host)});
  return words;
}

// The screen's variables, for ranks on all hosts.
Words VariableWords(const LaunchPlace& place) {
  Words words;
  for (const std::string& variable : place.variables) {
    if (place.launcher == MpiLauncher::kMpich) {
      const size_t equals = variable.find('=');
      words.insert(words.end(), {"-genv", variable.substr(0, equals), variable.substr(equals + 1)});
    } else {
      words.insert(words.end(), {"-x", variable});
    }
  }
  return words;
}

}  // namespace

std::vector<std::string> MpirunWords(const LaunchOptions& options, const LaunchPlace& place,
                                     const Spread& spread) {
  const bool own = RunsSubCommand(options, place);
  Words words = {place.mpirun, "-n", fmt::format("{}", options.ranks)};
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  const std::string bind = own || options.bind.empty() ? "none" : options.bind;
  add(place.launcher == MpiLauncher::kMpich ? HydraWords(spread, bind)
                                            : OpenMpiWords(place, spread, bind));
  // Ranks of ours end themselves when another is lost, and say which; Hydra would be faster.
  if (own && place.launcher == MpiLauncher::kMpich) add({"-disable-auto-cleanup"});
  if (own) add(VariableWords(place));
  add(options.mpi_args);
  if (own || RunsPython(options)) words.push_back(place.self);
  add(options.command);
  if (own && !options.bind.empty()) add({"--bind", options.bind});
  return words;
}

bool RunsPython(const LaunchOptions& options) {
  return options.command[0] == "python";
}

bool RunsSubCommand(const LaunchOptions& options, const LaunchPlace& place) {
  if (RunsPython(options)) return false;
  const auto& names = place.sub_commands;
  return std::find(names.begin(), names.end(), options.command[0]) != names.end();
}

int JobCode(int code, const JobWords& words) {
  constexpr int kDiffers = 1;
  constexpr int kRunTime = 4;
  constexpr int kPeer = 5;
  constexpr int kSignal = 128;
  constexpr int kInterrupted = 130;  // what a rank returns that was asked to stop
  constexpr int kMpirun = 255;       // what mpirun returns for a fault in mpirun itself
  if (words.refused || (words.own && code == kMpirun)) return kRunTime;
  if (words.vanished && code == kDiffers) return kPeer;
  if (words.own && code == kDiffers && !words.verdict) return kRunTime;
  const bool lost = code > kSignal && code < kMpirun && !(words.own && code == kInterrupted);
  return lost ? kPeer : code;
}

Result<std::string> FindProgram(std::string_view program, std::string_view folders,
                                std::string_view package) {
  std::string_view rest = folders;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    if (folder.empty()) continue;
    const std::string path = (std::filesystem::path(folder) / program).string();
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return Error(Code::kNotFound, "{} is not in PATH; install the Debian package {}", program,
               package);
}

}  // namespace npumesh
