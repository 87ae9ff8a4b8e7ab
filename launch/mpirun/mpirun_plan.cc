#include "launch/mpirun/mpirun_plan.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace npumesh {
namespace {

std::string HostWord(const Spread& spread) {
  std::vector<std::string> words;
  for (const Host& host : spread.hosts) {
    words.push_back(fmt::format("{}:{}", host.name, host.slots > 0 ? host.slots : spread.per_host));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

// mpirun notices a host that is silent after 25 s; its own default is 8 minutes.
void AddKeepalive(std::vector<std::string>& words) {
  for (const auto& [name, value] : {std::pair("time", "10"), {"intvl", "5"}, {"probes", "3"}}) {
    words.insert(words.end(), {"--mca", fmt::format("oob_tcp_keepalive_{}", name), value});
  }
}

}  // namespace

std::vector<std::string> MpirunWords(const LaunchOptions& options, const LaunchPlace& place,
                                     const Spread& spread) {
  const bool own = RunsSubCommand(options, place);
  std::vector<std::string> words = {place.mpirun, "-n", fmt::format("{}", options.ranks)};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (place.root) add({"--allow-run-as-root"});
  if (spread.oversubscribed) add({"--oversubscribe"});
  if (!spread.hosts.empty()) {
    add({"--host", HostWord(spread), "--map-by",
         fmt::format("ppr:{}:node{}", spread.per_host,
                     spread.oversubscribed ? ":OVERSUBSCRIBE" : "")});
  }
  if (spread.hosts.size() > 1) AddKeepalive(words);
  if (!place.segments.empty()) {
    add({"--mca", "btl", "self,vader", "--mca", "btl_vader_backing_directory", place.segments});
  }
  add({"--bind-to", own || options.bind.empty() ? "none" : options.bind});
  add({"--tag-output", "-x", fmt::format("LOCAL_WORLD_SIZE={}", spread.per_host)});
  words.insert(words.end(), options.mpi_args.begin(), options.mpi_args.end());
  if (own) words.push_back(place.self);
  words.insert(words.end(), options.command.begin(), options.command.end());
  if (own && !options.bind.empty()) add({"--bind", options.bind});
  return words;
}

bool RunsSubCommand(const LaunchOptions& options, const LaunchPlace& place) {
  const auto& names = place.sub_commands;
  return std::find(names.begin(), names.end(), options.command[0]) != names.end();
}

int JobCode(int code, bool own, bool refused) {
  constexpr int kRunTime = 4;
  constexpr int kPeer = 5;
  constexpr int kSignal = 128;
  constexpr int kInterrupted = 130;  // what a rank returns that was asked to stop
  constexpr int kMpirun = 255;       // what mpirun returns for a fault in mpirun itself
  if (refused || (own && code == kMpirun)) return kRunTime;
  const bool lost = code > kSignal && code < kMpirun && !(own && code == kInterrupted);
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
