// The smallest graph: x + y + p1 + p2 on one simulated NPU.
//
//   build/release/examples/seed_add
#include <cstdio>

#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

const TensorType kType{DataType::kFloat, {2, 4}};

Result<Model> BuildModel() {
  GraphBuilder g("seed_add");
  const Value x = g.Data("x", kType);
  const Value y = g.Data("y", kType);
  const Value p1 = g.Const("p1", Tensor::FromVector<float>(kType, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Value p2 = g.Const("p2", Tensor::FromVector<float>(kType, std::vector<float>(8, 0.5f)));
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", y}});
  const Value with_p1 = g.Op("Add", {{"x1", sum}, {"x2", p1}});
  g.Output({g.Op("Add", {{"x1", with_p1}, {"x2", p2}})});
  return g.Build();
}

Status Run() {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<World> world, World::Start(env));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                           DeviceMemory::Create(*world));
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildModel());
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(*world, *memory, std::move(model)));

  const Tensor x = Tensor::FromVector<float>(kType, {10, 20, 30, 40, 50, 60, 70, 80});
  const Tensor y = Tensor::FromVector<float>(kType, {1, 1, 1, 1, 2, 2, 2, 2});
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({x, y}));
  for (const float value : outputs[0].as<float>()) std::printf("%g ", value);
  std::printf("\n");
  return world->Shutdown();
}

}  // namespace
}  // namespace npumesh

int main() {
  const npumesh::Status status = npumesh::Run();
  if (!status.ok()) std::fprintf(stderr, "seed_add: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
