// What a call of npumesh_run costs beside Session::Run, on a graph of one addition.
#include <benchmark/benchmark.h>

#include "graph/c_interface/handles.h"
#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

// One world and one session, for both sides.
class AddSession {
 public:
  explicit AddSession(int64_t elements) : dims_{elements} {
    const npumesh_option small = {"NPUMESH_HBM_SIZE", "256M"};
    if (npumesh_init(&small, 1, &world_) != NPUMESH_OK) return;
    GraphBuilder g;
    const TensorType type{DataType::kFloat, {elements}};
    const Value x = g.Data("x", type);
    const Value w = g.Data("w", type);
    g.Output({g.Op("Add", {{"x1", x}, {"x2", w}})});
    const Result<Model> model = g.Build();
    const Result<std::string> bytes = SerializeAir(*model);
    npumesh_load_bytes(world_, bytes->data(), bytes->size(), nullptr, nullptr, 0, &session_);
  }
  ~AddSession() {
    npumesh_close(session_);
    npumesh_finalize(world_);
  }
  bool ok() const { return session_ != nullptr; }
  npumesh_session* session() { return session_; }
  Session& inside() { return *session_->session; }
  npumesh_tensor Of(std::vector<float>& values) {
    return {values.data(), values.size() * sizeof(float), dims_, 1, NPUMESH_FLOAT32, 0};
  }

 private:
  int64_t dims_[1];
  npumesh_world* world_ = nullptr;
  npumesh_session* session_ = nullptr;
};

void SessionRun(benchmark::State& state) {
  const int64_t elements = state.range(0);
  AddSession add(elements);
  if (!add.ok()) return state.SkipWithError(npumesh_last_error());
  const TensorType type{DataType::kFloat, {elements}};
  const std::vector<Tensor> inputs = {Tensor::Allocate(type), Tensor::Allocate(type)};
  for (auto _ : state) {
    const Result<std::vector<Tensor>> outputs = add.inside().Run(inputs);
    if (!outputs.ok()) return state.SkipWithError("the run failed");
    benchmark::DoNotOptimize((*outputs)[0].data());
  }
}
BENCHMARK(SessionRun)->Arg(4)->Arg(1 << 20);

void CRun(benchmark::State& state) {
  const int64_t elements = state.range(0);
  AddSession add(elements);
  if (!add.ok()) return state.SkipWithError(npumesh_last_error());
  std::vector<float> x(static_cast<size_t>(elements));
  std::vector<float> w(x);
  std::vector<float> y(x);
  const npumesh_tensor inputs[] = {add.Of(x), add.Of(w)};
  for (auto _ : state) {
    npumesh_tensor output = add.Of(y);
    if (npumesh_run(add.session(), inputs, 2, &output, 1) != NPUMESH_OK) {
      return state.SkipWithError(npumesh_last_error());
    }
  }
}
BENCHMARK(CRun)->Arg(4)->Arg(1 << 20);

}  // namespace
}  // namespace npumesh
