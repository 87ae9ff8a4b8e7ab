#include "tests/models/model_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/parameters.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh::models {

Result<std::vector<Tensor>> NamedSession::Run(const Feeds& feeds) {
  std::vector<Tensor> inputs;
  size_t used = 0;
  for (const InputSpec& spec : session_.inputs()) {
    const auto found = feeds.find(spec.name);
    used += found == feeds.end() ? 0 : 1;
    inputs.push_back(found == feeds.end() ? Tensor() : found->second);
  }
  if (used != feeds.size()) {
    return Error(Code::kInternal, "{} of {} tensors have an input", used, feeds.size());
  }
  return session_.Run(inputs);
}

Result<Tensor> NamedSession::Read(const std::string& name) {
  for (size_t i = 0; i < session_.inputs().size(); ++i) {
    if (session_.inputs()[i].name == name) return session_.ReadRef(static_cast<int>(i));
  }
  return Error(Code::kInternal, "no input \"{}\"", name);
}

void OnEachRank(int ranks, const BuildRank& build, const RunChoice& choice,
                const std::function<Status(NamedSession&)>& body) {
  const std::vector<Status> statuses = RunRanks(ranks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    SessionOptions options;
    if (choice.fuses) options.compile.fuses = [](std::string_view) { return true; };
    options.compile.overlap_collectives = choice.overlaps;
    options.compile.order = choice.order;
    options.compile.spare_memory = choice.spares_memory;
    NPUMESH_ASSIGN_OR_RETURN(Model model, build(world.rank()));
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, *memory, std::move(model), std::move(options)));
    NamedSession named(*session, world.rank());
    return body(named);
  });
  ExpectAllOk(statuses);
}

void OnOneRank(Result<Model> model, const RunChoice& choice,
               const std::function<Status(NamedSession&)>& body) {
  OnEachRank(
      1, [&](int) { return model; }, choice, body);
}

Status CheckClose(const std::vector<double>& seen, const std::vector<double>& expected,
                  double relative, const std::string& what) {
  if (seen.size() != expected.size()) {
    return Error(Code::kInternal, "{}: {} elements, expected {}", what, seen.size(),
                 expected.size());
  }
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < seen.size(); ++i) {
    // Written so that a NaN fails.
    if (std::abs(seen[i] - expected[i]) <= relative * largest) continue;
    return Error(Code::kInternal, "{}[{}]: expected {}, seen {}; the largest is {}", what, i,
                 expected[i], seen[i], largest);
  }
  return Status();
}

Status CheckClose(const Tensor& seen, const std::vector<double>& expected, double relative,
                  const std::string& what) {
  return CheckClose(ValuesIn(seen), expected, relative, what);
}

}  // namespace npumesh::models
