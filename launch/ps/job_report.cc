#include "launch/ps/job_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collectives/contract/logbook.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/loop_line.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string RanksOf(const LivingJob& job) {
  return fmt::format("{} of {}", job.ranks.size(), job.world_size);
}

double Ago(const JobGlance& glance, int64_t since_ns) {
  return static_cast<double>(glance.scene.now_ns - since_ns) / 1e9;
}

// "in step 3 for 12.4 s", "after step 3"; empty: it runs no graphs.
std::string StepText(const JobGlance& glance, const RankGlance& rank) {
  if (!rank.step) return "";
  if (!rank.step->active()) return fmt::format("after step {}", rank.step->call);
  return fmt::format("in step {} for {:.1f} s", rank.step->call, Ago(glance, rank.step->since_ns));
}

// The call that the rank is in, the latest entered of several; null: none.
const Position* CallOf(const RankGlance& rank) {
  const Position* latest = nullptr;
  for (const Position& position : rank.sight.positions) {
    if (!position.active()) continue;
    if (latest == nullptr || position.since_ns > latest->since_ns) latest = &position;
  }
  return latest;
}

std::string Doing(const JobGlance& glance, int number) {
  const RankGlance& rank = glance.ranks.at(number);
  if (!rank.started && rank.sight.positions.empty()) return "starts";
  std::string text = DoingText(glance.scene, number);
  const Position* call = CallOf(rank);
  const bool waits = std::any_of(glance.waits.begin(), glance.waits.end(), [&](const Wait& wait) {
    return wait.rank == number && call != nullptr && wait.group == call->group;
  });
  if (waits) text += fmt::format(", for {:.1f} s", Ago(glance, call->since_ns));
  return text;
}

std::string StateText(char state) {
  static const std::map<char, std::string> names = {
      {'R', "running"}, {'S', "sleeping"}, {'D', "waiting for a disk"},
      {'T', "stopped"}, {'t', "stopped"},  {'Z', "ended"},
      {'X', "ended"}};
  const auto it = names.find(state);
  return it == names.end() ? "unknown" : it->second;
}

std::string PhaseText(Phase phase) {
  switch (phase) {
    case Phase::kCreating:
      return "creating";
    case Phase::kArriving:
      return "arriving";
    case Phase::kRunning:
      return "moving";
    case Phase::kDeparting:
      return "departing";
    default:
      return "outside";
  }
}

std::string KindText(const Position& position) {
  if (position.kind == kGatheringKind) return "agreement";
  return std::string(Name(KindOf(position)));
}

json CallJson(const JobGlance& glance, int number, const RankGlance& rank) {
  const Position* call = CallOf(rank);
  if (call == nullptr) return json();
  std::set<int> waits_for;
  for (const Wait& wait : glance.waits) {
    if (wait.rank == number && wait.group == call->group) waits_for.insert(wait.for_rank);
  }
  return {{"group", call->group_name},       {"call", call->call},
          {"kind", KindText(*call)},         {"name", OrNull(call->node)},
          {"phase", PhaseText(call->phase)}, {"seconds", Ago(glance, call->since_ns)},
          {"waits_for", waits_for}};
}

json RankJson(const JobGlance& glance, const RankWindow& window) {
  const RankGlance& rank = glance.ranks.at(window.rank());
  json step;
  if (rank.step) {
    step = {{"number", rank.step->call},
            {"graph", rank.step->node},
            {"running", rank.step->active()},
            {"seconds", Ago(glance, rank.step->since_ns)}};
  }
  json loops = json::array();
  for (const Position& loop : rank.loops) {
    loops.push_back({{"name", loop.node}, {"turn", loop.call}});
  }
  return {{"rank", window.rank()},
          {"process", window.process()},
          {"state", StateText(rank.sight.process_state)},
          {"step", step},
          {"loops", loops},
          {"call", CallJson(glance, window.rank(), rank)},
          {"text", Doing(glance, window.rank())}};
}

json JobJson(const LivingJob& job, const JobGlance& glance) {
  return {{"job", job.number},
          {"command", job.command},
          {"seconds", job.seconds},
          {"world_size", job.world_size},
          {"look_first_at", {{"ranks", glance.look_first_at}, {"text", glance.verdict}}}};
}

std::string LookFirst(const JobGlance& glance) {
  if (glance.look_first_at.empty()) return "";
  return fmt::format("look first at {}", RanksText(glance.look_first_at));
}

}  // namespace

std::string JobsText(const std::vector<LivingJob>& jobs, const std::vector<JobGlance>& glances) {
  if (jobs.empty()) return "no job runs here\n";
  std::string text =
      fmt::format("{:>9} {:>12} {:>9}  {}\n", "job", "ranks here", "since s", "command");
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string wait = LookFirst(glances[i]);
    text += fmt::format("{:>9} {:>12} {:>9.1f}  {}{}\n", jobs[i].number, RanksOf(jobs[i]),
                        jobs[i].seconds, Printable(jobs[i].command),
                        wait.empty() ? "" : fmt::format(": {}", wait));
  }
  return text;
}

CommandReport JobsReport(const std::vector<LivingJob>& jobs,
                         const std::vector<JobGlance>& glances) {
  CommandReport report;
  json list = json::array();
  for (size_t i = 0; i < jobs.size(); ++i) {
    json job = JobJson(jobs[i], glances[i]);
    job["ranks"] = ListOf(jobs[i].ranks, [](const RankWindow& rank) { return rank.rank(); });
    list.push_back(std::move(job));
  }
  report.details = {{"jobs", list}};
  return report;
}

std::string JobText(const LivingJob& job, const JobGlance& glance) {
  std::string text = fmt::format("job {}: {} ranks on this host, since {:.1f} s: {}\n", job.number,
                                 RanksOf(job), job.seconds, Printable(job.command));
  // Lines in the order of their first ranks.
  std::vector<std::pair<std::string, std::vector<const RankWindow*>>> lines;
  for (const RankWindow& rank : job.ranks) {
    const std::string step = StepText(glance, glance.ranks.at(rank.rank()));
    const std::string line =
        fmt::format("{}{}{}", step, step.empty() ? "" : ": ", Doing(glance, rank.rank()));
    const auto same = [&](const auto& each) { return each.first == line; };
    const auto it = std::find_if(lines.begin(), lines.end(), same);
    if (it == lines.end()) {
      lines.emplace_back(line, std::vector<const RankWindow*>{&rank});
    } else {
      it->second.push_back(&rank);
    }
  }
  for (const auto& [line, windows] : lines) {
    std::vector<int> ranks;
    for (const RankWindow* window : windows) ranks.push_back(window->rank());
    const std::string process =
        windows.size() > 1 ? "" : fmt::format(" (process {})", windows.front()->process());
    text += fmt::format("{}{}: {}\n", RanksText(ranks), process, PrintableMessage(line));
  }
  if (!glance.look_first_at.empty()) text += LookFirst(glance) + "\n";
  if (!glance.verdict.empty()) text += PrintableMessage(glance.verdict) + "\n";
  return text;
}

CommandReport JobReport(const LivingJob& job, const JobGlance& glance) {
  CommandReport report;
  report.verdict = glance.verdict.empty() ? "runs" : "waits";
  if (!glance.verdict.empty()) report.Add(Severity::kError, glance.verdict);
  report.details = JobJson(job, glance);
  report.details["ranks"] =
      ListOf(job.ranks, [&](const RankWindow& rank) { return RankJson(glance, rank); });
  return report;
}

}  // namespace npumesh
