// Runs graphs as their operators are documented, one after the other, with nothing of the engine.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_INTERPRETER_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_INTERPRETER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/engine/dice.h"
#include "tests/fuzz/engine/fuzz_case.h"
#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {

// Operators that an Interpreter runs itself: branches, loops and calls.
bool IsControlFlow(const std::string& type);

// The constant of a Const node.
PlainTensor ConstantOf(const Node& node);

// One operator; nullopt: the call is not legal. `noise`, which may be null, moves rough results by
// a few units in the last place, as other correct implementations do.
std::optional<PlainTensors> ComputeNode(const Model& model, const Node& node,
                                        const std::vector<const PlainTensor*>& inputs,
                                        Dice* noise = nullptr);

enum class Meaning : uint8_t {
  kDecided,  // the numbers are those of the rule
  kIllegal,  // an operator refuses its inputs
  kUnknown,  // a rough number decided what is legal
};

struct StepResult {
  Meaning meaning = Meaning::kDecided;
  std::string node;  // that refuses
  PlainTensors outputs;
  std::map<int, PlainTensor> refs;  // what RefData hold afterwards, by input position
};

// All steps of the case up to the first that is not decided.
std::vector<StepResult> Interpret(const FuzzCase& fuzzed, Dice* noise = nullptr);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_INTERPRETER_H_
