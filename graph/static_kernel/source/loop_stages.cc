#include "graph/static_kernel/source/loop_stages.h"

#include <algorithm>

namespace npumesh {

LoopStages::LoopStages(const LoopProgram& program) : program_(program) {
  for (const LoopInstruction& line : program.instructions) {
    const bool reduces = Reduces(line.op);
    int stage = 0;
    for (const LoopValue arg : line.args) stage = std::max(stage, this->stage(arg));
    stage_.push_back(reduces ? stage + 1 : stage);
    reduces_.push_back(reduces);
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const LoopInstruction& line = program.instructions[i];
    const int walk = reduces_[i] ? stage_[i] - 1 : stage_[i];
    if (!line.row || reduces_[i]) count_ = std::max(count_, walk + 1);
    if (line.row && !reduces_[i]) continue;
    for (const LoopValue arg : line.args) {
      const LoopInstruction& source = program.instructions[static_cast<size_t>(arg)];
      if (source.row || source.op == LoopOp::kInput || this->stage(arg) == walk) continue;
      if (std::find(kept_.begin(), kept_.end(), arg) == kept_.end()) kept_.push_back(arg);
    }
  }
}

std::vector<LoopValue> LoopStages::FetchedIn(int stage) const {
  std::vector<LoopValue> fetched;
  const auto fetch = [&](LoopValue value) {
    const LoopInstruction& source = program_.instructions[static_cast<size_t>(value)];
    const bool computed = source.op != LoopOp::kInput && this->stage(value) == stage;
    if (source.row || computed) return;
    if (std::find(fetched.begin(), fetched.end(), value) == fetched.end()) fetched.push_back(value);
  };
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    const LoopInstruction& line = program_.instructions[i];
    const int walk = reduces_[i] ? stage_[i] - 1 : stage_[i];
    if ((line.row && !reduces_[i]) || walk != stage || line.op == LoopOp::kInput) continue;
    for (const LoopValue arg : line.args) fetch(arg);
  }
  return fetched;
}

}  // namespace npumesh
