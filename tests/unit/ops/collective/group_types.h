// Inference of operators that need to know the members of a group, but no other ranks.
#ifndef NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_GROUP_TYPES_H_
#define NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_GROUP_TYPES_H_

#include <string>
#include <vector>

#include "graph/ops/core/partial_inference.h"
#include "tests/unit/op_values.h"

namespace npumesh {

// A group of `ranks`, as seen by one of them, that no other can meet.
class PlannedGroup final : public GroupProvider {
 public:
  PlannedGroup(int ranks, int rank) : ranks_(ranks), rank_(rank) {}
  Result<Communicator*> Group(const std::string&) override { return nullptr; }
  Result<Members> MembersOf(const std::string&) override {
    Members members;
    for (int r = 0; r < ranks_; ++r) members.world_ranks.push_back(r);
    members.rank = rank_;
    return members;
  }

 private:
  int ranks_;
  int rank_;
};

using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Texts = std::vector<std::string>;

// An input of which the type is enough. Dimensions may be unknown.
struct In {
  std::string port;
  DataType dtype = DataType::kFloat16;
  Shape shape;
};

// Types of the outputs, "float16[2,-1]". The error: one text.
inline Texts TypesIn(int ranks, int rank, const std::string& type, const std::vector<In>& inputs,
                     const Attrs& attrs) {
  const Operator* op = BuiltinOps().Find(type);
  if (op == nullptr) return {"no operator " + type};
  OpCall call = {.type = type, .attrs = attrs};
  for (const In& in : inputs) call.inputs.push_back({in.port, Tensor::Allocate({in.dtype, {2}})});
  const Node node = op_test::MakeNode(*op, call);
  Result<OpContext> context = OpContext::Bind(node, op->schema);
  if (!context.ok()) return {std::string(context.status().message())};
  for (int slot = 0; slot < context->slots(); ++slot) {
    if (!context->has(slot)) continue;
    const In& in = inputs[static_cast<size_t>(context->input_index(slot))];
    context->set_in(slot, {in.dtype, in.shape});
  }
  PlannedGroup groups(ranks, rank);
  context->set_groups(&groups);
  const Result<std::vector<TensorType>> types = InferPartly(*op, *context);
  if (!types.ok()) return {std::string(types.status().message())};
  Texts texts;
  for (const TensorType& found : *types) texts.push_back(found.ToString());
  return texts;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_GROUP_TYPES_H_
