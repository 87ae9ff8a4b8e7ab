#include "graph/ops/core/loop_stages.h"

#include <algorithm>

namespace npumesh {
namespace {

void AddOnce(LoopValue value, std::vector<LoopValue>& values) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

}  // namespace

LoopStages::LoopStages(const LoopProgram& program) : program_(program) {
  for (const LoopInstruction& line : program.instructions) {
    int stage = 0;
    for (const LoopValue arg : line.args) stage = std::max(stage, this->stage(arg));
    stage_.push_back(Reduces(line.op) ? stage + 1 : stage);
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const LoopInstruction& line = program.instructions[i];
    if (!walks(line)) continue;
    const int now = walk(static_cast<LoopValue>(i));
    count_ = std::max(count_, now + 1);
    for (const LoopValue arg : line.args) {
      const LoopInstruction& source = program.instructions[static_cast<size_t>(arg)];
      if (source.row || source.op == LoopOp::kInput || stage(arg) == now) continue;
      AddOnce(arg, kept_);
    }
  }
}

int LoopStages::walk(LoopValue value) const {
  return stage(value) - (Reduces(program_.instructions[static_cast<size_t>(value)].op) ? 1 : 0);
}

std::vector<LoopValue> LoopStages::FetchedIn(int stage) const {
  std::vector<LoopValue> fetched;
  const auto fetch = [&](LoopValue value) {
    const LoopInstruction& source = program_.instructions[static_cast<size_t>(value)];
    const bool computed = source.op != LoopOp::kInput && this->stage(value) == stage;
    if (!source.row && !computed) AddOnce(value, fetched);
  };
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    const LoopInstruction& line = program_.instructions[i];
    if (!walks(line) || walk(static_cast<LoopValue>(i)) != stage) continue;
    for (const LoopValue arg : line.args) fetch(arg);
  }
  for (const LoopOutput& output : program_.outputs) {
    const bool plain =
        program_.instructions[static_cast<size_t>(output.value)].op == LoopOp::kInput;
    if (plain && stage == 0) fetch(output.value);
  }
  return fetched;
}

}  // namespace npumesh
