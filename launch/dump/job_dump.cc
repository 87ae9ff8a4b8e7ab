#include "launch/dump/job_dump.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/io/model_file.h"
#include "graph/io/weight_places.h"
#include "graph/session/group_table.h"
#include "launch/ranks/model_choice.h"
#include "launch/ranks/warnings.h"

namespace npumesh {
namespace {

uint64_t NumberOf(const DumpStep& step) {
  return step.index.value_or(0);
}

std::set<int> RankSet(const std::vector<DumpStep>& steps) {
  std::set<int> ranks;
  for (const DumpStep& step : steps) ranks.insert(step.rank);
  return ranks;
}

bool SameStep(const DumpStep& mine, const DumpStep& golden, bool any) {
  return any || NumberOf(mine) == NumberOf(golden);
}

}  // namespace

Result<std::unique_ptr<JobModels>> LoadJobModels(std::string_view command, const std::string& path,
                                                 int ranks, bool allow_outside) {
  auto job = std::make_unique<JobModels>();
  std::vector<std::string> warnings;
  for (int rank = 0; rank < ranks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string file, ChooseModelFile(path, rank, ranks));
    NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(file));
    NPUMESH_ASSIGN_OR_RETURN(const Warnings places, CheckWeightPlaces(model, {allow_outside}));
    warnings.push_back(PackWarnings(places));
    job->models.push_back(std::move(model));
    if (rank > 0) continue;
    NPUMESH_ASSIGN_OR_RETURN(job->graphs.groups, ReadGroupTable(FolderOf(file)));
  }
  PrintWarnings(command, MergeWarnings(warnings));
  for (const Model& model : job->models) job->graphs.models.push_back(&model);
  return job;
}

int RanksOf(const std::vector<DumpStep>& steps) {
  int ranks = 1;
  for (const DumpStep& step : steps) ranks = std::max({ranks, step.world_size, step.rank + 1});
  return ranks;
}

std::vector<DumpStep> LatestSteps(std::vector<DumpStep> steps) {
  std::map<int, std::string> latest;
  for (const DumpStep& step : steps) latest[step.rank] = std::max(latest[step.rank], step.time);
  std::map<std::pair<int, std::string>, size_t> sizes;  // by rank and model folder
  for (const DumpStep& step : steps) {
    if (step.time == latest[step.rank]) ++sizes[{step.rank, step.model + "/" + step.model_id}];
  }
  std::map<int, std::string> largest;
  for (const auto& [model, size] : sizes) {
    const auto known = largest.find(model.first);
    const bool better = known == largest.end() || size > sizes[{model.first, known->second}];
    if (better) largest[model.first] = model.second;
  }
  std::erase_if(steps, [&](const DumpStep& step) {
    return step.time != latest[step.rank] || step.model + "/" + step.model_id != largest[step.rank];
  });
  return steps;
}

std::vector<uint64_t> StepNumbers(const std::vector<DumpStep>& steps) {
  std::set<uint64_t> numbers;
  for (const DumpStep& step : steps) numbers.insert(NumberOf(step));
  return {numbers.begin(), numbers.end()};
}

Result<std::unique_ptr<JobSources>> OpenStep(const std::vector<DumpStep>& steps, uint64_t step,
                                             int ranks) {
  auto job = std::make_unique<JobSources>();
  job->owned.resize(static_cast<size_t>(ranks));
  for (const DumpStep& one : steps) {
    if (NumberOf(one) != step) continue;
    NPUMESH_ASSIGN_OR_RETURN(job->owned[static_cast<size_t>(one.rank)], OpenTensorFolder(one.path));
  }
  for (const auto& source : job->owned) job->sources.push_back(source.get());
  return job;
}

Result<std::vector<StepPair>> PairSteps(const std::vector<DumpStep>& mine,
                                        const std::vector<DumpStep>& golden,
                                        const PairingOptions& options) {
  const std::set<int> my_ranks = RankSet(mine);
  const std::set<int> golden_ranks = RankSet(golden);
  const bool any_step = StepNumbers(mine).size() == 1 || StepNumbers(golden).size() == 1;
  const bool any_rank = my_ranks.size() == 1 || golden_ranks.size() == 1;
  std::vector<StepPair> pairs;
  for (const DumpStep& my_step : mine) {
    for (const DumpStep& golden_step : golden) {
      const bool ranks_fit = options.ranks ? my_step.rank == options.ranks->first &&
                                                 golden_step.rank == options.ranks->second
                                           : any_rank || my_step.rank == golden_step.rank;
      const bool wanted = !options.step || NumberOf(my_step) == *options.step;
      const bool steps_fit = SameStep(my_step, golden_step, any_step);
      if (ranks_fit && steps_fit && wanted) pairs.push_back({my_step, golden_step});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const StepPair& a, const StepPair& b) {
    return std::pair(NumberOf(a.mine), a.mine.rank) < std::pair(NumberOf(b.mine), b.mine.rank);
  });
  if (!pairs.empty()) return pairs;
  return Error(Code::kInvalidArgument,
               "nothing to compare: there are ranks {} with steps {} on one side, and ranks {} "
               "with steps {} on the other",
               fmt::join(my_ranks, ","), fmt::join(StepNumbers(mine), ","),
               fmt::join(golden_ranks, ","), fmt::join(StepNumbers(golden), ","));
}

}  // namespace npumesh
