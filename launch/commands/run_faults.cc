#include "launch/commands/run_faults.h"

#include "graph/inject/fault.h"
#include "launch/commands/command.h"
#include "launch/dump/verdict.h"
#include "launch/run/double_check.h"
#include "runtime/base/text/printable.h"

namespace npumesh {

void AddFaultOptions(CLI::App& run, RunOptions& options) {
  const auto refuse = [](const std::string& text) {
    return std::string(ParseFault(text).status().message());
  };
  run.add_option("--inject", options.inject,
                 "Make something go wrong: corrupt:rank=R,op=NAME[,element=K][,output=I], "
                 "delay:rank=R,op=NAME,ms=T, kill:rank=R[,op=NAME], "
                 "exit:rank=R[,op=NAME][,code=C]; each with [,step=S]")
      ->allow_extra_args(false)
      ->check(CLI::Validator(refuse, "FAULT"));
  run.add_option("--golden", options.golden,
                 "The unsharded graph of the same model, or float64 for the same graphs "
                 "computed in float64: names the first operator that differs")
      ->type_name("PATH");
  run.add_option("--against", options.against,
                 "Run once more with this option, too, and say operator by operator where the two "
                 "runs part, bit by bit")
      ->type_name("A.B.C=VALUE")
      ->allow_extra_args(false)
      ->excludes("--golden");
}

namespace {

// On rank 0 only.
void Tell(const RankCircle& circle, const std::string& text) {
  if (circle.rank() != 0) return;
  Show(text);
}

constexpr size_t kMostLines = 40;

std::vector<std::string> DoubleVerdictLines(const DoubleVerdict& verdict) {
  if (verdict.rank < 0) return {};
  std::vector<std::string> lines = verdict.differing;
  if (lines.size() > kMostLines) {
    const size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(fmt::format("{} more operators differ", more));
  }
  lines.push_back(fmt::format("rank {} differs first: {} ({}): {} elements differ, max abs {:.6g}",
                              verdict.rank, Printable(verdict.name), Printable(verdict.type),
                              verdict.distance.differing, verdict.distance.max_abs));
  return lines;
}

}  // namespace

Result<GoldenFinding> TellGolden(World& world, RankCircle& circle, const RunOptions& options,
                                 RunJob& job) {
  GoldenFinding finding;
  if (options.golden == kFloat64Golden || !options.against.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const DoubleVerdict verdict, DoubleCheck(world, circle, options, job));
    finding.differs = verdict.rank >= 0;
    if (finding.differs) finding.ranks = {verdict.rank};
    finding.op = verdict.name;
    finding.type = verdict.type;
    finding.verdict = DoubleVerdictLines(verdict);
    Tell(circle, GoldenText(fmt::format("{} operators compared with {}", verdict.compared,
                                        options.against.empty() ? "float64" : options.golden),
                            finding.verdict));
    return finding;
  }
  NPUMESH_ASSIGN_OR_RETURN(const GoldenVerdict verdict, GoldenCheck(world, circle, options, job));
  if (circle.rank() == 0) PrintWarnings("run", verdict.warnings);
  finding.differs = verdict.differs;
  finding.ranks = verdict.blame.ranks;
  finding.weight = verdict.blame.shard.has_value();
  finding.verdict = GoldenVerdictLines(verdict.report, verdict.blame);
  Tell(circle, GoldenText(GoldenHeading(verdict.report), finding.verdict));
  if (const GoldenRow* const first = verdict.report.First()) {
    finding.op = first->name;
    finding.type = first->type;
  }
  return finding;
}

}  // namespace npumesh
