// The two call sequences of initialize_system: before a training, for rank functions and
// collectives that come first; and in the session that trains, here with its options.
//
//   mpirun -n 2 build/release/examples/seed_initialize
//   mpirun -n 2 build/release/examples/seed_initialize PROFILE
//
// The second one is profiled: npumesh profile PROFILE shows its steps.
#include <cstdio>
#include <string>

#include "graph/ir/graph_builder.h"
#include "graph/session/system.h"

namespace npumesh {
namespace {

const TensorType kWeights{DataType::kFloat, {2}};

// One step of training: each rank's gradient is weight - target, and all take the mean.
Result<Model> BuildTraining(int ranks) {
  GraphBuilder g("training");
  const Value weight = g.RefData("weight", kWeights);
  const Value target = g.Data("target", kWeights);
  const float half = 0.5f / static_cast<float>(ranks);
  const Value rate = g.Const("rate", Tensor::FromVector<float>(kWeights, {half, half}));
  const Value gradient = g.Op("Sub", {{"x1", weight}, {"x2", target}}, {}, "gradient");
  const Value sum = g.Op("HcomAllReduce", {{"x", gradient}},
                         {{"reduction", AttrValue::String("sum")},
                          {"group", AttrValue::String(std::string(kWorldGroup))}},
                         "sum");
  const Value change = g.Op("Mul", {{"x1", sum}, {"x2", rate}}, {}, "change");
  const Value next = g.Op("Sub", {{"x1", weight}, {"x2", change}}, {}, "next");
  g.Output({g.Op("Assign", {{"ref", weight}, {"value", next}}, {}, "update")});
  return g.Build();
}

// Trains for two steps; the weights halve their distance to the mean of the targets in each.
Status Train(System& system) {
  NPUMESH_ASSIGN_OR_RETURN(const int rank, system.RankId());
  NPUMESH_ASSIGN_OR_RETURN(const int ranks, system.RankSize());
  NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend({}));
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildTraining(ranks));
  NPUMESH_ASSIGN_OR_RETURN(const auto session, system.Compile(std::move(model), backend));
  const auto mine = static_cast<float>(8 * rank);
  const Tensor target = Tensor::FromVector<float>(kWeights, {mine, mine + 8});
  Tensor weight = Tensor::FromVector<float>(kWeights, {0, 0});
  for (int step = 0; step < 2; ++step) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({weight, target}));
    weight = Tensor();  // from now on the session keeps it
    const auto values = outputs[0].as<float>();
    std::printf("rank %d of %d, step %d: %g %g\n", rank, ranks, step, values[0], values[1]);
  }
  return Status();
}

// Initialised by itself, because rank functions and collectives are called before the training.
Status InitializedFirst(const Env& env) {
  System system;
  NPUMESH_RETURN_IF_ERROR(system.Initialize(env));
  NPUMESH_ASSIGN_OR_RETURN(const int local, system.LocalRankId());
  NPUMESH_ASSIGN_OR_RETURN(const int locals, system.LocalRankSize());
  std::printf("local rank %d of %d\n", local, locals);
  NPUMESH_RETURN_IF_ERROR(Train(system));
  return system.Shutdown();
}

// Initialised, trained and shut down in one session, with its options: profiled.
Status InOneSession(const Env& env, const std::string& profile) {
  SystemOptions options;
  options.profiling_mode = true;
  options.profiling_options =
      R"({"output": ")" + profile + R"(", "training_trace": "on", "task_trace": "on"})";
  options.fp_point = "gradient";
  options.bp_point = "sum";
  System system;
  NPUMESH_RETURN_IF_ERROR(system.Initialize(env, options));
  NPUMESH_RETURN_IF_ERROR(Train(system));
  return system.Shutdown();
}

Status Run(int arguments, char** words) {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
  return arguments > 1 ? InOneSession(env, words[1]) : InitializedFirst(env);
}

}  // namespace
}  // namespace npumesh

int main(int arguments, char** words) {
  const npumesh::Status status = npumesh::Run(arguments, words);
  if (!status.ok()) std::fprintf(stderr, "seed_initialize: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
