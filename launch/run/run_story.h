// RunStory: what a run has to say when it ends, however it ends; and its reports as JSON and JUnit.
//
// A report is written when a run begins, which checks its path before anything costs time, and says
// "unfinished" until it is replaced at the end. A job that is killed leaves that word.
#ifndef NPUMESH_LAUNCH_RUN_RUN_STORY_H_
#define NPUMESH_LAUNCH_RUN_RUN_STORY_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/ranks/rank_circle.h"
#include "launch/ranks/warnings.h"
#include "launch/run/run_options.h"
#include "launch/run/run_report.h"
#include "runtime/base/text/json.h"
#include "runtime/card/findings.h"

namespace npumesh {

// What a card says of the work of a rank.
struct CardOfRank {
  int rank = 0;
  CardFinding finding;
  bool fails = false;
  std::string text;  // as it is printed
};

// Everything the ranks measured, as every rank knows it after sharing.
struct MeasuredRun {
  std::vector<RankReport> ranks;
  std::vector<OutputCheck> checks;
  std::vector<OutputSummary> outputs;
  std::vector<CardOfRank> card;  // what the card of NPUMESH_CARD would not take
  // Of all ranks: steps that a guard checked, and how many of them ran twice.
  uint64_t guarded_steps = 0;
  uint64_t repeated_steps = 0;

  // The first output that differs from its golden; null: none does.
  const OutputCheck* FirstDifference() const;
};

// What --golden found.
struct GoldenFinding {
  bool differs = false;
  std::vector<int> ranks;  // to blame, ascending; empty: not known
  std::string op;          // the first operator that differs; empty: none does
  std::string type;        // of it
  // Sentences, as they are printed: who differs first, and what explains it.
  std::vector<std::string> verdict;
  bool weight = false;  // a weight explains it

  int rank() const { return ranks.empty() ? -1 : ranks.front(); }
};

struct RunStory {
  bool ended = false;  // false: as it stands before the run
  // Exit code and error; exit code 1 without an error: something differs.
  Outcome outcome;
  int culprit = -1;    // the rank whose error it is; -1: not known, or no error
  double seconds = 0;  // since the run began
  Warnings warnings;   // that were printed, of all ranks
  MeasuredRun measured;
  std::optional<GoldenFinding> golden;
};

// "match" or "differ" of --check and --golden together, "not checked" without them, "error",
// "stopped" by a signal, and "unfinished". `options` are those of the run.
std::string VerdictOf(const RunStory& story, const RunOptions& options);

// The rank and the operator that the story blames: those of the error, of the golden or of the
// first output that differs while those of other ranks do not. -1, empty: none is known.
int RankToBlame(const RunStory& story);
std::string OperatorToBlame(const RunStory& story);

// What to do with what a run found or wrote, a command to type; empty: nothing that it does not
// say.
std::string NextStep(const RunStory& story, const RunOptions& options);

// `versions`: of this build.
std::string ToJson(const RunStory& story, const RunOptions& options,
                   const nlohmann::json& versions);
// A case for each rank and output, one for --golden, and one for an error; warnings as what the
// suite printed.
std::string ToJunit(const RunStory& story, const RunOptions& options);

// Writes --report and --junit, where they were asked for. On one rank; ranks that have lost each
// other may all call it, and the last one stands. Errors name the file.
Status WriteReports(const RunStory& story, const RunOptions& options,
                    const nlohmann::json& versions);

// For the command that started the ranks of a run. Reports that still say "unfinished" after all
// ranks have ended, because they were killed, get the exit code and what is known of the reason.
// Paths may be empty; files that are not there, or have an end, stay. Errors name the file.
// `seconds`: how long the job lasted.
Status EndUnfinishedReports(const std::string& report, const std::string& junit, int exit_code,
                            const std::string& reason, double seconds);

// For the same command. Reports that say that `rank` has ended, from ranks that noticed it, get the
// reason: "SIGKILL ended it". Paths may be empty; other reports stay. Errors name the file.
Status ExplainLostRank(const std::string& report, const std::string& junit, int rank,
                       const std::string& reason);

// For the same command. Reports of a run that ended with an error get at whom to look first:
// `blame`, an object with `ranks`, `cause` and `text`, is the JSON's `look_first_at`, and a single
// rank that it blames is `rank`: the error may be that of a rank that waited; in JUnit `text`
// follows the error. Paths may be empty; other reports stay. Errors name the file.
Status AddBlame(const std::string& report, const std::string& junit, const nlohmann::json& blame,
                const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_STORY_H_
