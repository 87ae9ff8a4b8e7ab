// JobDump: what all ranks of a job dumped in one step, beside the graphs they ran. And which dumps
// of two jobs belong together.
#ifndef NPUMESH_LAUNCH_DUMP_JOB_DUMP_H_
#define NPUMESH_LAUNCH_DUMP_JOB_DUMP_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/compare/laws/law_check.h"
#include "graph/compare/laws/rank_graphs.h"
#include "graph/compare/sources/dump_folder.h"

namespace npumesh {

// The models of `ranks` ranks: `path` is a file or an export folder, as `npumesh run` takes it.
struct JobModels {
  std::vector<Model> models;  // by rank
  RankGraphs graphs;          // views of them
};
// Prints, as warnings of `command`, what is to be said of the places of their weights; links lead
// out of the package only with `allow_outside`. Errors: as ChooseModelFile, LoadModel,
// CheckWeightPlaces and ReadGroupTable.
Result<std::unique_ptr<JobModels>> LoadJobModels(std::string_view command, const std::string& path,
                                                 int ranks, bool allow_outside);

// How many ranks the job of these dumps had.
int RanksOf(const std::vector<DumpStep>& steps);

// The latest dump of each rank: steps of its latest time folder, of the model folder with the most
// steps. Steps of one rank ascend.
std::vector<DumpStep> LatestSteps(std::vector<DumpStep> steps);

// The numbers of the steps that are there, ascending; a dump without step folders is step 0.
std::vector<uint64_t> StepNumbers(const std::vector<DumpStep>& steps);

// The sources of one step by rank, null where a rank has none.
struct JobSources {
  std::vector<std::unique_ptr<TensorSource>> owned;
  RankSources sources;
};
// Errors: as OpenTensorFolder.
Result<std::unique_ptr<JobSources>> OpenStep(const std::vector<DumpStep>& steps, uint64_t step,
                                             int ranks);

// Two folders that are to be compared.
struct StepPair {
  DumpStep mine;
  DumpStep golden;
};

struct PairingOptions {
  std::optional<uint64_t> step;              // only this one
  std::optional<std::pair<int, int>> ranks;  // my rank against that golden rank
};

// Which folders of two trees belong together, by step, then rank. With `ranks` those two. Otherwise
// a rank belongs to the rank of its number; when one side has one rank only, all belong to it. A
// side with a single step belongs to every step of the other. Error: kInvalidArgument when nothing
// belongs together, with what there is.
Result<std::vector<StepPair>> PairSteps(const std::vector<DumpStep>& mine,
                                        const std::vector<DumpStep>& golden,
                                        const PairingOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_JOB_DUMP_H_
