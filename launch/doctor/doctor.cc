#include "launch/doctor/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "launch/doctor/clock_offset.h"
#include "launch/doctor/machine_facts.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int kRounds = 20;

int64_t WallClock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Collective over all ranks. What this rank's clock said around each meeting.
Result<std::vector<ClockMeeting>> Meet(RankCircle& circle) {
  std::vector<ClockMeeting> meetings;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t entry = WallClock();
    NPUMESH_RETURN_IF_ERROR(circle.Share(std::string_view()).status());
    meetings.push_back({entry, WallClock()});
  }
  return meetings;
}

std::string ToText(const std::vector<ClockMeeting>& meetings) {
  std::string text;
  for (const ClockMeeting& each : meetings) text += fmt::format("{} {} ", each.entry, each.exit);
  return text;
}

Result<std::vector<ClockMeeting>> MeetingsFrom(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> numbers;
  while (!text.empty()) {
    const size_t blank = std::min(text.find(' '), text.size());
    NPUMESH_ASSIGN_OR_RETURN(const int64_t number,
                             ParseInt(text.substr(0, blank), 0, kMost, "a clock"));
    numbers.push_back(number);
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  if (numbers.size() != 2 * kRounds) {
    return Error(Code::kCorrupt, "a rank sent {} readings of its clock, expected {}",
                 numbers.size(), 2 * kRounds);
  }
  std::vector<ClockMeeting> meetings;
  for (size_t i = 0; i < numbers.size(); i += 2) meetings.push_back({numbers[i], numbers[i + 1]});
  return meetings;
}

// World rank of the first rank of each host, by host in order of that rank.
std::vector<int> FirstRanks(const World& world) {
  std::vector<int> first;
  std::set<int> seen;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (seen.insert(world.node_of()[static_cast<size_t>(rank)]).second) first.push_back(rank);
  }
  return first;
}

Finding CompareVersions(const std::string& mine, const std::string& reference) {
  if (mine == reference) return {"versions", Severity::kInfo, mine, ""};
  return {"versions", Severity::kError,
          fmt::format("{}, but the first host has {}", mine, reference),
          "install the same build of npumesh on all hosts"};
}

}  // namespace

Result<std::vector<HostReport>> ExamineHosts(World& world, RankCircle& circle,
                                             const BuildFacts& build,
                                             const std::string& mpi_running) {
  HostReport mine{HostName(), {}};
  if (world.local_rank() == 0) {
    mine.findings = Judge(LookAtMachine(world.local_size(), build.mpi, mpi_running));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<ClockMeeting> meetings, Meet(circle));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> clocks, circle.Share(ToText(meetings)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> versions, circle.Share(build.versions));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle.Share(ToJson(mine)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<ClockMeeting> reference, MeetingsFrom(clocks[0]));
  std::vector<HostReport> reports;
  for (const int rank : FirstRanks(world)) {
    const auto index = static_cast<size_t>(rank);
    HostReport& report = reports.emplace_back(ReportFromJson(texts[index]));
    report.findings.push_back(CompareVersions(versions[index], versions[0]));
    if (rank == 0) continue;
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<ClockMeeting> theirs, MeetingsFrom(clocks[index]));
    report.findings.push_back(JudgeOffset(BoundOffset(reference, theirs), reports[0].host));
  }
  return reports;
}

}  // namespace npumesh
