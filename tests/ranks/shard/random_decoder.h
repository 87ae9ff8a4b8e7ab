// Random decoders of one card, as models and exporters write them, with inputs and the numbers that
// plain arithmetic gets.
#ifndef NPUMESH_TESTS_RANKS_SHARD_RANDOM_DECODER_H_
#define NPUMESH_TESTS_RANKS_SHARD_RANDOM_DECODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "tests/ranks/shard/plain_values.h"

namespace npumesh {

enum class NormForm : uint8_t { kRms, kLayer };
enum class MlpForm : uint8_t { kSwiGlu, kGated, kPlain };
enum class ProjectionForm : uint8_t { kApart, kJoined };
enum class AttentionForm : uint8_t { kWritten, kPrompt, kFlash };

struct DecoderForm {
  int layers = 1;
  int64_t rows = 4;  // tokens
  int heads = 4;
  int shared_heads = 4;  // of keys and values
  int64_t head_size = 4;
  int64_t ffn = 16;
  int64_t vocabulary = 0;  // 0: hidden states in
  bool logits = false;     // the product with the vocabulary at the end
  bool tied = false;       // with the table of the embedding; needs a vocabulary
  bool bias = false;
  bool transposed = false;  // weights as [columns, rows]
  bool batched = false;     // hidden states [1, rows, hidden]
  bool norm_after = false;  // the norm comes after the residual, as in BERT
  bool attributes = false;  // sizes and permutations as attributes (SplitVD, TransposeD ...)
  int64_t cached = -1;      // rows that caches of keys and values have; -1: there are none
  std::string product = "MatMulV2";
  NormForm norm = NormForm::kRms;
  MlpForm mlp = MlpForm::kSwiGlu;
  ProjectionForm projections = ProjectionForm::kApart;
  AttentionForm attention = AttentionForm::kWritten;
  uint64_t seed = 0;  // of weights and inputs

  int64_t hidden() const { return heads * head_size; }
};

// Equal seeds give equal forms.
DecoderForm DrawDecoder(uint64_t seed);
// In a word or two a field, for messages.
std::string ToText(const DecoderForm& form);

struct WrittenDecoder {
  Model model;
  std::vector<Tensor> inputs;
  std::vector<Plain> outputs;  // hidden states or logits, then keys and values of each layer
};

Result<WrittenDecoder> WriteDecoder(const DecoderForm& form);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_SHARD_RANDOM_DECODER_H_
