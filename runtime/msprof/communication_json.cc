#include "runtime/msprof/communication_json.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/msprof/profile_text.h"

namespace npumesh {
namespace {

using nlohmann::json;

// All transports of the vendor; npumesh has HCCS within a node and RDMA between nodes, and SDMA
// stands for all that stays within a node.
constexpr std::array<const char*, 5> kTransports = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};

// Bytes from the rank to another member, or from it.
struct Link {
  int source = 0;  // group ranks
  int target = 0;
  const char* transport = "";
  uint64_t bytes = 0;
};

double RatioOf(double part, double rest) {
  return part + rest == 0 ? 0.0 : part / (part + rest);
}

double SpeedOf(double megabytes, double milliseconds) {
  return milliseconds == 0 ? 0.0 : megabytes / milliseconds;
}

// The links of a call, without that of the rank to itself.
std::vector<Link> LinksOf(const GroupRow& group, const CallRow& call) {
  const int members = static_cast<int>(group.group.world_ranks.size());
  std::vector<Link> links;
  for (int other = 0; other < members; ++other) {
    if (other == group.own || (call.peer >= 0 && other != call.peer)) continue;
    Link link{group.own, other, group.same_node[other] ? "HCCS" : "RDMA", 0};
    if (call.kind == "receive") std::swap(link.source, link.target);
    links.push_back(link);
  }
  // Parts differ by at most one byte, so that they add up.
  for (size_t i = 0; i < links.size(); ++i) {
    links[i].bytes = call.span->bytes / links.size() + (i < call.span->bytes % links.size());
  }
  return links;
}

// What went over one transport. One packet for each link.
struct Traffic {
  uint64_t bytes = 0;
  std::map<uint64_t, uint64_t> packets;  // by bytes

  void Add(uint64_t packet_bytes) {
    bytes += packet_bytes;
    ++packets[packet_bytes];
  }
};

// A transport without bytes takes no time.
json TrafficJson(const Traffic& traffic, int64_t time_ns) {
  const double megabytes = Megabytes(traffic.bytes);
  const double time = traffic.bytes == 0 ? 0.0 : Milliseconds(time_ns);
  uint64_t packets = 0;
  for (const auto& [bytes, count] : traffic.packets) packets += count;
  json sizes = json::object();
  for (const auto& [bytes, count] : traffic.packets) {
    const double share = static_cast<double>(count) / static_cast<double>(packets);
    sizes[fmt::format("{}", Megabytes(bytes))] = {count, time * share};
  }
  return {{"Transit Size(MB)", megabytes},
          {"Transit Time(ms)", time},
          {"Bandwidth(GB/s)", SpeedOf(megabytes, time)},
          {"Large Packet Ratio", 0.0},
          {"Size Distribution", std::move(sizes)}};
}

json BandwidthJson(const GroupRow& group, const CallRow& call) {
  std::map<std::string, Traffic> traffic;
  for (const Link& link : LinksOf(group, call)) {
    traffic[link.transport].Add(link.bytes);
    if (std::string_view(link.transport) == "HCCS") traffic["SDMA"].Add(link.bytes);
  }
  json info = json::object();
  for (const char* transport : kTransports) {
    info[transport] = TrafficJson(traffic[transport], call.times.moving_ns);
  }
  return info;
}

json TimeJson(double start_us, int64_t waiting_ns, int64_t moving_ns) {
  const double waiting = Milliseconds(waiting_ns);
  const double moving = Milliseconds(moving_ns);
  return {{"Start Timestamp(us)", start_us},
          {"Elapse Time(ms)", Milliseconds(waiting_ns + moving_ns)},
          {"Transit Time(ms)", moving},
          {"Wait Time(ms)", waiting},
          {"Synchronization Time(ms)", waiting},
          {"Idle Time(ms)", 0.0},
          {"Wait Time Ratio", RatioOf(waiting, moving)},
          {"Synchronization Time Ratio", RatioOf(waiting, moving)}};
}

json CallJson(const VendorRows& rows, const CallRow& call) {
  const double start = Microseconds(WallClock(rows.owner(), call.span->begin_ns));
  return {{"Communication Time Info", TimeJson(start, call.times.waiting_ns, call.times.moving_ns)},
          {"Communication Bandwidth Info", BandwidthJson(rows.group(call), call)}};
}

// Links of a call in the form of the matrix, with that of the rank to itself: it tells readers
// which world rank the group rank is.
json MatrixJson(const VendorRows& rows, const CallRow& call) {
  const GroupRow& group = rows.group(call);
  const double time = Milliseconds(call.times.moving_ns);
  json matrix = json::object();
  const auto add = [&matrix](const Link& link, double milliseconds) {
    matrix[fmt::format("{}-{}", link.source, link.target)] = {
        {"Transport Type", link.transport},
        {"Transit Size(MB)", Megabytes(link.bytes)},
        {"Transit Time(ms)", milliseconds},
        {"Bandwidth(GB/s)", SpeedOf(Megabytes(link.bytes), milliseconds)}};
  };
  add({group.own, group.own, "LOCAL", 0}, 0);
  for (const Link& link : LinksOf(group, call)) add(link, time);
  return matrix;
}

std::string KeyOf(const VendorRows& rows, const CallRow& call) {
  return fmt::format("{}@{}", call.name, rows.group(call).hash);
}

template <typename Each>
json CallsByName(const VendorRows& rows, const Each& each) {
  json calls = json::object();
  for (const CallRow& call : rows.calls) calls[KeyOf(rows, call)] = each(rows, call);
  return calls;
}

std::string StepName(const VendorRows& rows, const std::optional<size_t>& step) {
  return step ? fmt::format("step{}", rows.times.steps[*step].number) : "step";
}

// Calls between iterations belong to no step.
bool BelongsToStep(const VendorRows& rows, const CallRow& call) {
  return call.step || rows.times.steps.empty();
}

template <typename Each>
json CallsByStep(const VendorRows& rows, const Each& each) {
  json steps = json::object();
  const json empty = {{"p2p", json::object()}, {"collective", json::object()}};
  if (rows.times.steps.empty()) steps[StepName(rows, std::nullopt)] = empty;
  for (size_t i = 0; i < rows.times.steps.size(); ++i) steps[StepName(rows, i)] = empty;
  for (const CallRow& call : rows.calls) {
    if (!BelongsToStep(rows, call)) continue;
    json& step = steps[StepName(rows, call.step)];
    step[call.message() ? "p2p" : "collective"][KeyOf(rows, call)] = each(rows, call);
  }
  return steps;
}

// Adds to a sum in JSON.
void AddNumber(json& sum, const json& number) {
  sum = sum.get<double>() + number.get<double>();
}

void AddTraffic(json& sum, const json& traffic) {
  for (const char* name : {"Transit Size(MB)", "Transit Time(ms)"}) {
    AddNumber(sum[name], traffic[name]);
  }
  json& sizes = sum["Size Distribution"];
  for (const auto& [size, packets] : traffic["Size Distribution"].items()) {
    json& row = sizes[size];
    if (row.is_null()) row = {0, 0.0};
    row[0] = row[0].get<uint64_t>() + packets[0].get<uint64_t>();
    AddNumber(row[1], packets[1]);
  }
  sum["Bandwidth(GB/s)"] =
      SpeedOf(sum["Transit Size(MB)"].get<double>(), sum["Transit Time(ms)"].get<double>());
}

// "Total Op Info": the sums of `calls`, of one step and kind.
json TotalOf(const json& calls, int64_t waiting_ns, int64_t moving_ns) {
  json bandwidth = json::object();
  for (const char* transport : kTransports) bandwidth[transport] = TrafficJson(Traffic(), 0);
  for (const auto& [name, call] : calls.items()) {
    for (const char* transport : kTransports) {
      AddTraffic(bandwidth[transport], call["Communication Bandwidth Info"][transport]);
    }
  }
  return {{"Communication Time Info", TimeJson(0, waiting_ns, moving_ns)},
          {"Communication Bandwidth Info", std::move(bandwidth)}};
}

}  // namespace

json MsprofCommunication(const VendorRows& rows) {
  return CallsByName(rows, CallJson);
}

json MsprofMatrix(const VendorRows& rows) {
  return CallsByName(rows, MatrixJson);
}

json TorchCommunication(const VendorRows& rows) {
  json steps = CallsByStep(rows, CallJson);
  std::map<std::pair<std::string, bool>, CallTimes> sums;
  for (const CallRow& call : rows.calls) {
    if (!BelongsToStep(rows, call)) continue;
    CallTimes& sum = sums[{StepName(rows, call.step), call.message()}];
    sum.waiting_ns += call.times.waiting_ns;
    sum.moving_ns += call.times.moving_ns;
  }
  for (const auto& [name, step] : steps.items()) {
    for (const bool message : {true, false}) {
      json& calls = step[message ? "p2p" : "collective"];
      const CallTimes& sum = sums[{name, message}];
      calls["Total Op Info"] = TotalOf(calls, sum.waiting_ns, sum.moving_ns);
    }
  }
  return steps;
}

json TorchMatrix(const VendorRows& rows) {
  return CallsByStep(rows, MatrixJson);
}

}  // namespace npumesh
