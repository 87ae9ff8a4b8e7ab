#include "launch/run/input_source.h"

#include "graph/engine/analyse/bound_type.h"
#include "graph/io/npy.h"

namespace npumesh {
namespace {

bool Fits(const Shape& declared, const Shape& given) {
  if (!declared.has_rank()) return true;
  if (declared.rank() != given.rank()) return false;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (declared[axis] != kUnknownDim && declared[axis] != given[axis]) return false;
  }
  return true;
}

class FolderInputs final : public InputSource {
 public:
  FolderInputs(std::vector<InputSpec> inputs, TensorFolder folder)
      : inputs_(std::move(inputs)), folder_(std::move(folder)) {}

  Result<std::vector<Tensor>> Step(uint64_t step) const override {
    std::vector<Tensor> tensors;
    for (const InputSpec& spec : inputs_) {
      if (spec.ref && step > 0) {
        tensors.emplace_back();
        continue;
      }
      Result<Tensor> read = folder_.Read(step, spec.index);
      if (!read.ok()) {
        return read.status().WithContext(fmt::format("input {} ({})", spec.index, spec.name));
      }
      Result<Tensor> fitting = FitInput(spec, *read);
      if (!fitting.ok()) return fitting.status().WithContext(folder_.File(step, spec.index));
      tensors.push_back(*std::move(fitting));
    }
    return tensors;
  }

 private:
  std::vector<InputSpec> inputs_;
  TensorFolder folder_;
};

class SeededInputs final : public InputSource {
 public:
  SeededInputs(std::vector<InputSpec> inputs, std::vector<TensorType> types,
               std::vector<std::optional<IntRange>> ranges, uint64_t seed, uint64_t rank)
      : inputs_(std::move(inputs)),
        types_(std::move(types)),
        ranges_(std::move(ranges)),
        seed_(seed),
        rank_(rank) {
    ranges_.resize(inputs_.size());
  }

  Result<std::vector<Tensor>> Step(uint64_t step) const override {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const InputSpec& spec = inputs_[i];
      if (spec.ref && step > 0) {
        tensors.emplace_back();
        continue;
      }
      Result<Tensor> made =
          RandomTensor(types_[i], {seed_, step, static_cast<uint64_t>(spec.index), rank_},
                       ranges_[i].value_or(IntRange()));
      if (!made.ok()) {
        return made.status().WithContext(fmt::format("input {} ({})", spec.index, spec.name));
      }
      tensors.push_back(*std::move(made));
    }
    return tensors;
  }

 private:
  std::vector<InputSpec> inputs_;
  std::vector<TensorType> types_;
  std::vector<std::optional<IntRange>> ranges_;
  uint64_t seed_;
  uint64_t rank_;
};

}  // namespace

std::unique_ptr<InputSource> InputsFromFolder(std::vector<InputSpec> inputs, TensorFolder folder) {
  return std::make_unique<FolderInputs>(std::move(inputs), std::move(folder));
}

std::unique_ptr<InputSource> RandomInputs(std::vector<InputSpec> inputs,
                                          std::vector<TensorType> types,
                                          std::vector<std::optional<IntRange>> ranges,
                                          uint64_t seed, uint64_t rank) {
  return std::make_unique<SeededInputs>(std::move(inputs), std::move(types), std::move(ranges),
                                        seed, rank);
}

Result<Tensor> FitInput(const InputSpec& spec, const Tensor& tensor) {
  Result<Tensor> typed = ReinterpretAs(tensor, spec.declared.dtype);
  if (typed.ok()) typed = typed->WithType(BoundType(spec, typed->type()));
  if (typed.ok() && Fits(spec.declared.shape, typed->shape())) return typed;
  return Error(Code::kInvalidArgument, "input {} ({}): the graph declares {}, given is {}",
               spec.index, spec.name, spec.declared.ToString(), tensor.type().ToString());
}

}  // namespace npumesh
