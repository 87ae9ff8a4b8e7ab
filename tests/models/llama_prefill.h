// Prefill through Llama-like blocks with a symbolic sequence length, whole or tensor parallel, in
// float32 and 16 bits: RMSNorm in aten form, RotaryPositionEmbedding (npu_rotary_mul),
// grouped-query attention (expand, bmm, float32 softmax), SwiGLU in aten form.
#ifndef NPUMESH_TESTS_MODELS_LLAMA_PREFILL_H_
#define NPUMESH_TESTS_MODELS_LLAMA_PREFILL_H_

#include <vector>

#include "graph/ir/graph.h"
#include "tests/models/parameters.h"

namespace npumesh::models {

struct PrefillConfig {
  int64_t layers = 2;
  int64_t hidden = 32;
  int64_t heads = 8;
  int64_t key_heads = 4;
  int64_t ffn = 24;
  DataType dtype = DataType::kFloat;
  bool symbol_input = false;  // the length is an input "s0" of the host, else a Shape and a Gather

  int64_t width() const { return hidden / heads; }
};

// Rounded to the dtype of the model.
Parameters PrefillWeights(const PrefillConfig& config, uint64_t seed);
std::vector<double> PrefillInput(const PrefillConfig& config, int64_t sequence);

// Inputs "hidden_states" [1, -1, hidden] and "position_ids" int64 [1, -1]; output: hidden states.
// Partial sums of `ranks` ranks are completed by HcomAllReduce.
Result<Model> BuildPrefill(const PrefillConfig& config, const Parameters& weights, int rank,
                           int ranks);

// The same in double, without rounding in between.
std::vector<double> PrefillReference(const PrefillConfig& config, const Parameters& weights,
                                     const std::vector<double>& hidden_states, int64_t first);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_LLAMA_PREFILL_H_
