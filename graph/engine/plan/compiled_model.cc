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
namespace {

uint64_t Block(uint64_t bytes) {
  return std::max<uint64_t>(bytes + kHbmAlignment - 1, kHbmAlignment) / kHbmAlignment *
         kHbmAlignment;
}

}  // namespace

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

uint64_t CompiledModel::arena_block_bytes() const {
  return Block(arena_bytes_);
}

uint64_t CompiledModel::scratch_block_bytes() const {
  return Block(scratch_bytes_);
}

uint64_t CompiledModel::constant_block_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constant_is_read_[i]) bytes += Block(constants_[i].bytes());
  }
  return bytes;
}

uint64_t CompiledModel::device_bytes() const {
  uint64_t bytes = arena_block_bytes() + scratch_block_bytes() + constant_block_bytes();
  for (const TensorType& input : input_types_) bytes += Block(input.bytes());
  return bytes;
}

Result<std::unique_ptr<CompiledModel>> CompiledModel::Compile(
    const Model& model, const OpRegistry& registry, const std::vector<TensorType>& input_types,
    const std::vector<Tensor>& values, GroupProvider* groups, const CompileOptions& options) {
  return Compiler(model, registry, groups, options).Run(input_types, values);
}

}  // namespace npumesh
