// A small recommender, for inference with dynamic sizes and for training steps whose embedding
// gradients are sparse.
//
//   bottom = relu(dense wbT + bb)                                       [B, D]
//   bag    = sum of the rows first[i] of each bag (EmbeddingBag)        [B, D]
//   sums   = per sample, sum of the rows second[i] wpT                  [B, D]
//            by Unique: each row that occurs is gathered and projected once
//   cross  = products of each pair of the three                         [B, 3]
//   logit  = relu([bottom, cross] w1T + b1) w2T + b2                    [B]
//
// How many rows Unique finds depends on the ids: the graph is planned in stages.
#ifndef NPUMESH_TESTS_MODELS_RECOMMENDER_H_
#define NPUMESH_TESTS_MODELS_RECOMMENDER_H_

#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/models/parameters.h"

namespace npumesh::models {

inline constexpr int64_t kDenseFeatures = 3;
inline constexpr int64_t kEmbedding = 4;
inline constexpr int64_t kTop = 6;
inline constexpr int64_t kFirstRows = 10;
inline constexpr int64_t kSecondRows = 13;

struct Clicks {
  std::vector<double> dense;                         // [B, kDenseFeatures]
  std::vector<int64_t> first_ids, first_offsets;     // offsets: [B], where bags begin
  std::vector<int64_t> second_ids, second_segments;  // one sample for each id, ascending
  std::vector<double> labels;                        // [B], 0 or 1

  int64_t samples() const { return static_cast<int64_t>(labels.size()); }
};
// Ids repeat, some bags are empty; with `no_ids` all are.
Clicks MakeClicks(int64_t samples, uint64_t seed, bool no_ids = false);
std::map<std::string, Tensor> FeedsOf(const Clicks& clicks, bool training);

Parameters RecommenderParameters(uint64_t seed);

// accum += g * g; p -= lr * g / sqrt(accum). What has no gradient stays.
struct Adagrad {
  double lr = 0.1;
  double start = 0.125;
  std::map<std::string, std::vector<double>> accum;

  void Step(Parameters& parameters, const LossAndGradients& at);
};

enum class ClickLoss {
  kWithLogits,  // binary_cross_entropy_with_logits, decomposed over LogSigmoid
  kOfSigmoid,   // Sigmoid and BinaryCrossEntropy with their gradients
};

// Inputs as in FeedsOf, all first dimensions -1; output: probabilities [B].
Result<Model> BuildRecommender(const Parameters& parameters);
// Inputs as in FeedsOf, and RefData "<p>" and "<p>.accum". Output: the loss.
Result<Model> BuildRecommenderStep(const Parameters& parameters, const Adagrad& rule,
                                   ClickLoss loss);

Reals RecommenderLogits(const ParameterReals& p, const Clicks& clicks);
Real RecommenderLoss(const ParameterReals& p, const Clicks& clicks);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_RECOMMENDER_H_
