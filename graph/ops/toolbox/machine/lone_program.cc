#include "graph/ops/toolbox/machine/lone_program.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace npumesh {
namespace {

// Whether the outputs have the elements that the program gives.
bool GivesAll(const OpContext& op, const LoopProgram& program) {
  for (int port = 0; port < op.outputs(); ++port) {
    const LoopOutput& output = program.outputs[static_cast<size_t>(port)];
    const bool row = program.instructions[static_cast<size_t>(output.value)].row;
    const int64_t given = program.rows() * (row ? 1 : program.columns);
    if (op.out(port).shape.elements() != given) return false;
  }
  return true;
}

}  // namespace

std::optional<LoopProgram> LoneProgram(const OpContext& op, const LoopFn& loop, const Shape& space,
                                       LoopTarget target) {
  const auto slots = static_cast<size_t>(op.slots());
  std::vector<int> tensors(slots);
  std::iota(tensors.begin(), tensors.end(), 0);
  LoopBuilder builder(space, target);
  builder.Begin(op, space, std::vector<LoopValue>(slots, -1), std::move(tensors));
  loop(op, builder);
  for (int port = 0; port < op.outputs(); ++port) {
    if (builder.result(port) < 0) return std::nullopt;
    builder.Write(builder.result(port), op.out(port).dtype);
  }
  return builder.Finish();
}

std::optional<LoopProgram> LoneProgram(const OpContext& op, const LoopFn& loop, LoopTarget target) {
  if (loop == nullptr || op.outputs() == 0) return std::nullopt;
  std::vector<Shape> spaces = {op.out(0).shape};
  for (int slot = 0; slot < op.slots(); ++slot) {
    const bool is_new =
        op.has(slot) && std::find(spaces.begin(), spaces.end(), op.in(slot).shape) == spaces.end();
    if (is_new) spaces.push_back(op.in(slot).shape);
  }
  for (const Shape& space : spaces) {
    std::optional<LoopProgram> program = LoneProgram(op, loop, space, target);
    if (program && GivesAll(op, *program)) return program;
  }
  return std::nullopt;
}

}  // namespace npumesh
