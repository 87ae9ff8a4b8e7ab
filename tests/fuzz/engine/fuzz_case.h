// What is run: a model, and what it is fed in each step.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_FUZZ_CASE_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_FUZZ_CASE_H_

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh::fuzz {

struct FuzzCase {
  Model model;
  // By step, by position of the input (InputsOf). An empty tensor: the RefData keeps its content.
  std::vector<std::vector<Tensor>> steps;
  // Positions of inputs that are the same tensor in all steps: parameters that may be frozen.
  std::vector<int> parameters;
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_FUZZ_CASE_H_
