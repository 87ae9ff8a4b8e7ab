#include "launch/mpirun/host_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr int kMostSlots = 1 << 20;

// "name" or "name:slots".
Result<Host> ParseHost(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view name = text.substr(0, colon);
  if (name.empty() || name[0] == '-') {
    return Error(Code::kInvalidArgument, "\"{}\": expected a host, or host:ranks", text);
  }
  if (colon == std::string_view::npos) return Host{std::string(name), 0};
  NPUMESH_ASSIGN_OR_RETURN(const int64_t slots, ParseInt(text.substr(colon + 1), 1, kMostSlots,
                                                         fmt::format("slots of {}", name)));
  return Host{std::string(name), static_cast<int>(slots)};
}

Status CheckUnique(const std::vector<Host>& hosts) {
  std::set<std::string_view> seen;
  for (const Host& host : hosts) {
    if (!seen.insert(host.name).second) {
      return Error(Code::kInvalidArgument, "host {} is named twice; write {}:N", host.name,
                   host.name);
    }
  }
  return Status();
}

bool EveryHostSaysSlots(const std::vector<Host>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots > 0; });
}

// Hosts in order, each up to its slots.
std::vector<Host> Fill(const std::vector<Host>& hosts, int ranks) {
  std::vector<Host> filled;
  for (const Host& host : hosts) {
    const int here = std::min(host.slots, ranks);
    if (here > 0) filled.push_back({host.name, here});
    ranks -= here;
  }
  return filled;
}

std::string Counts(const std::vector<Host>& hosts) {
  std::vector<std::string> counts;
  for (const Host& host : hosts) counts.push_back(fmt::format("{} {}", host.name, host.slots));
  return fmt::format("{}", fmt::join(counts, ", "));
}

Result<Spread> SpreadEvenly(const std::vector<Host>& hosts, int ranks) {
  const int count = static_cast<int>(hosts.size());
  if (ranks % count != 0) {
    return Error(
        Code::kInvalidArgument,
        "{} ranks cannot be spread evenly over {} hosts; LOCAL_WORLD_SIZE must be the same "
        "on every host: use a multiple of {}",
        ranks, count, count);
  }
  Spread spread{hosts, ranks / count, false};
  for (const Host& host : hosts) {
    if (host.slots > 0 && host.slots < spread.per_host) spread.oversubscribed = true;
  }
  return spread;
}

}  // namespace

Result<std::vector<Host>> ParseHosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string_view part : Split(text, ",")) {
    Result<Host> host = ParseHost(part);
    if (!host.ok()) return host.status().WithContext("--hosts");
    hosts.push_back(*std::move(host));
  }
  NPUMESH_RETURN_IF_ERROR(CheckUnique(hosts).WithContext("--hosts"));
  return hosts;
}

Result<std::vector<Host>> ParseHostFile(std::string_view content, std::string_view path) {
  std::vector<Host> hosts;
  int number = 0;
  for (std::string_view line : Split(content, "\n")) {
    ++number;
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words = Split(line, " \t\r");
    std::erase_if(words, [](std::string_view word) { return word.empty(); });
    if (words.empty()) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    Result<Host> host = ParseHost(words[0]);
    if (!host.ok()) return host.status().WithContext(where);
    for (const std::string_view word : words) {
      if (!word.starts_with("slots=")) continue;
      const Result<int64_t> slots = ParseInt(word.substr(6), 1, kMostSlots, "slots");
      if (!slots.ok()) return slots.status().WithContext(where);
      host->slots = static_cast<int>(*slots);
    }
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty()) return Error(Code::kInvalidArgument, "{}: names no host", path);
  NPUMESH_RETURN_IF_ERROR(CheckUnique(hosts).WithContext(path));
  return hosts;
}

Result<Spread> SpreadRanks(const std::vector<Host>& hosts, int ranks, int local_slots) {
  if (hosts.empty()) return Spread{{}, ranks, ranks > local_slots};
  const int slots = std::accumulate(hosts.begin(), hosts.end(), 0,
                                    [](int sum, const Host& host) { return sum + host.slots; });
  if (!EveryHostSaysSlots(hosts) || ranks > slots) return SpreadEvenly(hosts, ranks);
  const std::vector<Host> filled = Fill(hosts, ranks);
  for (const Host& host : filled) {
    if (host.slots == filled[0].slots) continue;
    return Error(Code::kInvalidArgument,
                 "the hosts would run different numbers of ranks ({}); LOCAL_WORLD_SIZE must be "
                 "the same on every host",
                 Counts(filled));
  }
  return Spread{filled, filled[0].slots, false};
}

}  // namespace npumesh
