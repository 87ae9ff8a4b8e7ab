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
// Written in products, or one operator: of prompts, of training, of decode steps, of all inference.
enum class AttentionForm : uint8_t { kWritten, kPrompt, kFlash, kIncre, kInfer };
// How keys and values of earlier tokens come: not at all, as inputs that the graph gives back
// longer, or as RefData, which it updates with one of these operators.
enum class CacheForm : uint8_t {
  kNone,
  kGiven,
  kScatter,
  kScatterUpdate,
  kScatterNdUpdate,
  kAssign
};

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
  bool transposed = false;     // weights as [columns, rows]
  bool batched = false;        // hidden states [1, rows, hidden]
  bool norm_after = false;     // the norm comes after the residual, as in BERT
  bool attributes = false;     // sizes and permutations as attributes (SplitVD, TransposeD ...)
  int64_t cached = 0;          // rows that caches of keys and values have
  int64_t spare = 0;           // rows of a RefData that no token has reached
  std::string layout = "BSH";  // of the operators of attention
  std::string product = "MatMulV2";
  NormForm norm = NormForm::kRms;
  MlpForm mlp = MlpForm::kSwiGlu;
  ProjectionForm projections = ProjectionForm::kApart;
  AttentionForm attention = AttentionForm::kWritten;
  CacheForm caches = CacheForm::kNone;
  uint64_t seed = 0;  // of weights and inputs

  int64_t hidden() const { return heads * head_size; }
  int64_t keys() const { return cached + rows + spare; }
  bool held() const { return caches > CacheForm::kGiven; }
};

// Equal seeds give equal forms.
DecoderForm DrawDecoder(uint64_t seed);
// In a word or two a field, for messages.
std::string ToText(const DecoderForm& form);

struct WrittenDecoder {
  Model model;
  std::vector<Tensor> inputs;
  std::vector<size_t> held;    // which of them are RefData
  std::vector<Plain> outputs;  // hidden states or logits, then keys and values of each layer
};

Result<WrittenDecoder> WriteDecoder(const DecoderForm& form);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_SHARD_RANDOM_DECODER_H_
