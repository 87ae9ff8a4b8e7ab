#include "launch/commands/run_faults.h"

#include "graph/inject/fault.h"
#include "launch/commands/command.h"
#include "launch/dump/verdict_text.h"
#include "launch/run/double_check.h"

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
                 "The unsharded graph of the same model, or float64 for the same graphs with "
                 "float64 accumulation: names the first operator that differs")
      ->type_name("PATH");
}

namespace {

// On rank 0 only.
void Tell(const RankCircle& circle, const std::string& text) {
  if (circle.rank() != 0) return;
  ShowNow(text);
}

std::string DoubleText(const DoubleVerdict& verdict) {
  const std::string text =
      fmt::format("golden: {} operators compared with float64 accumulation\n", verdict.compared);
  if (verdict.rank < 0) return text + "golden: no operator differs\n";
  return text + fmt::format(
                    "golden: rank {} differs first: {} ({}): {} elements differ, max abs "
                    "{:.6g}\n",
                    verdict.rank, verdict.name, verdict.type, verdict.distance.differing,
                    verdict.distance.max_abs);
}

}  // namespace

Result<GoldenFinding> TellGolden(World& world, RankCircle& circle, const RunOptions& options,
                                 RunJob& job) {
  if (options.golden == kFloat64Golden) {
    NPUMESH_ASSIGN_OR_RETURN(const DoubleVerdict verdict, DoubleCheck(world, circle, options, job));
    Tell(circle, DoubleText(verdict));
    return GoldenFinding{verdict.rank >= 0, verdict.rank, verdict.name, verdict.type};
  }
  NPUMESH_ASSIGN_OR_RETURN(const GoldenVerdict verdict, GoldenCheck(world, circle, options, job));
  if (circle.rank() == 0) PrintWarnings("run", verdict.warnings);
  Tell(circle, GoldenText(verdict.report, verdict.rank, verdict.shard));
  const GoldenRow* const first = verdict.report.First();
  if (first == nullptr) return GoldenFinding{verdict.differs, verdict.rank, "", ""};
  return GoldenFinding{verdict.differs, verdict.rank, first->name, first->type};
}

}  // namespace npumesh
