#include "launch/validate/package_check.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

#include "graph/export/collective_match.h"
#include "graph/export/graph_match.h"
#include "graph/export/package_layout.h"
#include "graph/session/group_table.h"
#include "launch/report/card_place.h"
#include "launch/report/command_report.h"
#include "launch/validate/checksum_check.h"
#include "launch/validate/config_check.h"
#include "launch/validate/graph_check.h"
#include "launch/validate/package_files.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

constexpr size_t kMostMismatches = 16;

class PackageCheck {
 public:
  PackageCheck(PackageFiles files, const GraphCheckOptions& options, PackageReport* report)
      : files_(std::move(files)), options_(options), report_(*report) {}

  void Run(const PackageProgress& progress) {
    report_.ranks = files_.airs.size();
    ReadTable();
    for (size_t rank = 0; rank < files_.airs.size(); ++rank) {
      if (progress) progress("rank", rank, files_.airs.size());
      CheckRank(static_cast<int>(rank));
    }
    CheckLacking();
    CheckUnused();
    MatchRanks();
    CheckConfigs(files_, !used_.empty(), &report_.findings);
    CheckGroups(files_, used_, table_, &report_.findings);
    CheckChecksums(
        files_,
        [&progress](size_t done, size_t files) {
          if (progress) progress("file", done, files);
        },
        &report_.findings);
  }

 private:
  void ReadTable() {
    const std::string name(kRelationConfigName);
    // What is no JSON object at all is a finding of CheckConfigs, which knows the line.
    Findings said_later;
    if (files_.Has(name) && !ReadJsonObject(files_, name, &said_later)) return;
    Result<GroupTable> table = ReadGroupTable(files_.folder);
    if (table.ok()) {
      table_ = *std::move(table);
    } else {
      report_.findings.Error(name, std::string(table.status().message()));
    }
  }

  // Loads, checks, traces; the graph itself is not kept.
  void CheckRank(int rank) {
    const std::optional<Model> model =
        CheckGraph(files_, rank, options_, table_, &weights_, &report_.findings);
    complete_ = complete_ && model.has_value();
    report_.constants = weights_.count;
    report_.constant_bytes = weights_.bytes;
    if (!model) return;
    for (const Node& node : model->graph.nodes()) report_.nodes += node.removed ? 0 : 1;
    Result<CollectiveTrace> trace = TraceCollectives(*model, *options_.registry, table_, rank,
                                                     static_cast<int>(files_.airs.size()));
    if (!trace.ok()) {
      complete_ = false;
      return report_.findings.Error(files_.airs[static_cast<size_t>(rank)],
                                    std::string(trace.status().message()));
    }
    report_.collectives += trace->calls.size();
    for (const auto& [group, ranks] : trace->groups) used_.emplace(group, ranks);
    traces_.push_back(*std::move(trace));
    portraits_.push_back(PortraitOf(*model, *options_.registry));
  }

  void CheckLacking() {
    if (weights_.lacking.empty()) return;
    const std::vector<int>& ranks = weights_.lacking_ranks;
    const std::string whose = files_.distributed ? RanksText(ranks) : "";
    report_.findings.Error(files_.airs[static_cast<size_t>(ranks.front())],
                           LackText(weights_.lacking.size(), weights_.lacking.front(), whose));
  }

  // Weight files that no graph names: left over from an earlier export, or misnamed.
  void CheckUnused() {
    for (const std::string& name : files_.names) {
      if (!complete_ || !name.starts_with("rank_") || weights_.files.contains(name)) continue;
      if (name.ends_with(kPbtxtName)) continue;
      report_.findings.Warning(name, "no graph uses this file");
    }
  }

  void MatchRanks() {
    if (!complete_) return;
    report_.matched = true;
    for (CollectiveMismatch& mismatch : MatchCollectives(traces_, kMostMismatches)) {
      report_.findings.Error(files_.airs[static_cast<size_t>(mismatch.rank)],
                             std::move(mismatch.text));
    }
    for (GraphMismatch& mismatch : MatchGraphs(portraits_, kMostMismatches)) {
      report_.findings.Warning(files_.airs[static_cast<size_t>(mismatch.rank)],
                               std::move(mismatch.text));
    }
  }

  const PackageFiles files_;
  const GraphCheckOptions& options_;
  PackageReport& report_;
  GroupTable table_;
  std::map<std::string, std::vector<int>> used_;
  WeightSum weights_;
  std::vector<CollectiveTrace> traces_;
  std::vector<GraphPortrait> portraits_;
  bool complete_ = true;  // every rank has a graph and a trace
};

// "valid", "valid, 2 warnings", "1 error".
std::string VerdictText(const Findings& findings) {
  const auto count = [](size_t number, const char* word) {
    return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
  };
  if (findings.errors() > 0) return count(findings.errors(), "error");
  if (findings.warnings() == 0) return "valid";
  return fmt::format("valid, {}", count(findings.warnings(), "warning"));
}

}  // namespace

Result<PackageReport> CheckPackage(const std::string& folder, const OpRegistry& registry,
                                   bool allow_outside, const PackageProgress& progress) {
  PackageReport report;
  NPUMESH_ASSIGN_OR_RETURN(PackageFiles files, ListPackage(folder, &report.findings));
  NPUMESH_ASSIGN_OR_RETURN(const Card card, Card::FromProcess());
  const GraphCheckOptions options{&registry, allow_outside, card};
  PackageCheck(std::move(files), options, &report).Run(progress);
  return report;
}

std::string ReportText(const PackageReport& report) {
  std::string text;
  for (const Finding& finding : report.findings.all()) {
    text += fmt::format("{}: {}: {}\n", Name(finding.severity), Printable(finding.subject),
                        PrintableMessage(finding.text));
  }
  text += fmt::format("{} rank{}, {} nodes, {} constants of {} bytes, {} collectives{}: {}\n",
                      report.ranks, report.ranks == 1 ? "" : "s", report.nodes, report.constants,
                      report.constant_bytes, report.collectives,
                      report.matched ? "" : " (not compared)", VerdictText(report.findings));
  return text;
}

CommandReport ToReport(const PackageReport& package) {
  CommandReport report;
  report.verdict = package.findings.errors() == 0 ? "valid" : "invalid";
  const auto& on_card = package.findings.on_card();
  for (size_t i = 0; i < package.findings.all().size(); ++i) {
    const Finding& finding = package.findings.all()[i];
    nlohmann::json place = {{"file", finding.subject}};
    if (const auto card = on_card.find(i); card != on_card.end()) {
      place.update(CardPlace(card->second));
    }
    report.Add(finding.severity, finding.text, std::move(place));
  }
  report.details = {{"ranks", package.ranks},
                    {"nodes", package.nodes},
                    {"constants", package.constants},
                    {"constant_bytes", package.constant_bytes},
                    {"collectives", package.collectives},
                    {"collectives_compared", package.matched}};
  return report;
}

}  // namespace npumesh
