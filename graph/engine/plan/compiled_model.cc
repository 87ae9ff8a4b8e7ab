#include "graph/engine/plan/compiled_model.h"

#include <algorithm>
#include <set>

#include "graph/engine/analyse/inference.h"
#include "graph/engine/plan/compiler.h"
#include "graph/ir/graph_input.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/rewrite/subgraphs.h"

namespace npumesh {

std::unique_ptr<CompiledModel> CompiledModel::OfStep(const Model& source, Step step) {
  std::unique_ptr<CompiledModel> model(new CompiledModel);
  model->source_ = &source;
  model->steps_.push_back(std::move(step));
  return model;
}

uint64_t CompiledModel::constant_bytes() const {
  uint64_t bytes = 0;
  for (const Tensor& constant : constants_) bytes += constant.bytes();
  return bytes;
}

uint64_t CompiledModel::device_bytes() const {
  const auto block = [](uint64_t bytes) {
    return std::max<uint64_t>(bytes + kHbmAlignment - 1, kHbmAlignment) / kHbmAlignment *
           kHbmAlignment;
  };
  uint64_t bytes = block(arena_bytes_) + block(scratch_bytes_);
  for (const TensorType& input : input_types_) bytes += block(input.bytes());
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constant_is_read_[i]) bytes += block(constants_[i].bytes());
  }
  return bytes;
}

Result<std::unique_ptr<CompiledModel>> CompiledModel::Compile(
    const Model& model, const OpRegistry& registry, const std::vector<TensorType>& input_types,
    const std::vector<Tensor>& values, GroupProvider* groups, const CompileOptions& options) {
  return Compiler(model, registry, groups, options).Run(input_types, values);
}

}  // namespace npumesh
