// all_reduce(x + y + p1 + p2) over two simulated NPUs: TorchAir's documented AllReduceSingleGroup
// example, with integer inputs that are promoted to the weights' float.
//
//   mpirun -n 2 build/release/examples/seed_allreduce
#include <cstdio>

#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

const TensorType kInputs{DataType::kInt32, {2, 2}};
const TensorType kWeights{DataType::kFloat, {2, 2}};

// Each rank has a separate graph; what they share is the group of the HcomAllReduce.
Result<Model> BuildModel() {
  GraphBuilder g("seed_allreduce");
  const Value x = g.Data("x", kInputs);
  const Value y = g.Data("y", kInputs);
  const Value p1 = g.Const("p1", Tensor::FromVector<float>(kWeights, {0.5f, 1, 1.5f, 2}));
  const Value p2 = g.Const("p2", Tensor::FromVector<float>(kWeights, {0.25f, 0.25f, 0.25f, 0.25f}));
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", y}});
  const auto to_float = AttrValue::Int(static_cast<int64_t>(DataType::kFloat));
  const Value real = g.Op("Cast", {{"x", sum}}, {{"dst_type", to_float}});
  const Value with_p1 = g.Op("Add", {{"x1", real}, {"x2", p1}});
  const Value with_p2 = g.Op("Add", {{"x1", with_p1}, {"x2", p2}});
  const Value reduced = g.Op("HcomAllReduce", {{"x", with_p2}},
                             {{"reduction", AttrValue::String("sum")},
                              {"group", AttrValue::String(std::string(kWorldGroup))}});
  g.Output({reduced});
  return g.Build();
}

Status RunOn(World& world) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory, DeviceMemory::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildModel());
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, *memory, std::move(model)));

  const int32_t mine = 10 * (world.rank() + 1);
  const Tensor x = Tensor::FromVector<int32_t>(kInputs, {mine, mine, mine, mine});
  const Tensor y = Tensor::FromVector<int32_t>(kInputs, {1, 2, 3, 4});
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({x, y}));
  const auto sum = outputs[0].as<float>();
  std::printf("rank %d of %d: %g %g %g %g\n", world.rank(), world.size(), sum[0], sum[1], sum[2],
              sum[3]);
  return Status();
}

Status Run() {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<World> world, World::Start(env));
  const Status status = RunOn(*world);
  // A rank that fails says so before it leaves; the others do not wait for it.
  if (!status.ok()) world->board().PublishFailure(status);
  return status.ok() ? world->Shutdown() : status;
}

}  // namespace
}  // namespace npumesh

int main() {
  const npumesh::Status status = npumesh::Run();
  if (!status.ok()) std::fprintf(stderr, "seed_allreduce: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
