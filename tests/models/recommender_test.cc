// A small recommender: inference with any number of samples and ids, and training steps that touch
// only the embedding rows that occur.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/model_run.h"
#include "tests/models/recommender.h"

namespace npumesh::models {
namespace {

constexpr uint64_t kSeed = 21;

TEST(RecommenderReference, GradientsAreThoseOfCentralDifferences) {
  const Parameters parameters = RecommenderParameters(kSeed);
  const Clicks clicks = MakeClicks(5, 2);
  const LossFunction loss = [&](const ParameterReals& p) { return RecommenderLoss(p, clicks); };
  ExpectCentralDifferences(parameters, loss, Differentiate(parameters, loss), 6);
}

class Recommender : public testing::TestWithParam<bool> {
 protected:
  RunChoice choice() const { return GetParam() ? kOptimised : kAsWritten; }
};

TEST_P(Recommender, InfersAnyNumberOfSamplesAndIds) {
  const Parameters parameters = RecommenderParameters(kSeed);
  OnOneRank(BuildRecommender(parameters), choice(), [&](NamedSession& session) -> Status {
    for (const int64_t samples : {4, 1, 7, 4}) {
      for (const bool no_ids : {false, true}) {
        const Clicks clicks = MakeClicks(samples, 3, no_ids);
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                                 session.Run(FeedsOf(clicks, false)));
        std::vector<double> expected;
        for (const Real& logit : RecommenderLogits(parameters.Constants(), clicks)) {
          expected.push_back(Sigmoid(logit).value);
        }
        NPUMESH_RETURN_IF_ERROR(
            CheckClose(outputs[0], expected, 1e-6,
                       fmt::format("{} samples{}", samples, no_ids ? " without ids" : "")));
      }
    }
    return Status();
  });
}

void Train(ClickLoss form, const RunChoice& choice) {
  Parameters parameters = RecommenderParameters(kSeed);
  const Parameters start = parameters;
  Adagrad rule;
  OnOneRank(
      BuildRecommenderStep(parameters, rule, form), choice, [&](NamedSession& session) -> Status {
        std::vector<double> losses;
        for (int step = 0; step < 6; ++step) {
          // The first and the last step have the same clicks; others have others, or no ids.
          const bool same = step == 0 || step == 5;
          const Clicks clicks = same ? MakeClicks(6, 1) : MakeClicks(3 + step, 1, step == 3);
          Feeds feeds = FeedsOf(clicks, true);
          for (const Parameter& p : start.all()) {
            if (step > 0) break;
            const std::vector<double> sums(p.values.size(), rule.start);
            feeds[p.name] = TensorOf(p);
            feeds[p.name + ".accum"] = TensorOf(p.shape, sums);
          }
          const LossAndGradients expected = Differentiate(
              parameters, [&](const ParameterReals& p) { return RecommenderLoss(p, clicks); });
          rule.Step(parameters, expected);
          losses.push_back(expected.loss);
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
          NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], {expected.loss}, 5e-6, "loss")
                                      .WithContext(fmt::format("step {}", step)));
          for (const Parameter& p : parameters.all()) {
            NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session.Read(p.name));
            NPUMESH_RETURN_IF_ERROR(
                CheckClose(seen, p.values, 5e-6, p.name).WithContext(fmt::format("step {}", step)));
          }
        }
        EXPECT_LT(losses.back(), losses.front());
        return Status();
      });
}

TEST_P(Recommender, TrainsOnLogits) {
  Train(ClickLoss::kWithLogits, choice());
}

TEST_P(Recommender, TrainsOnProbabilities) {
  Train(ClickLoss::kOfSigmoid, choice());
}

// Bit for bit: a row that no id names is not even rewritten.
TEST_P(Recommender, OtherRowsStayAsTheyAre) {
  const Parameters parameters = RecommenderParameters(kSeed);
  const Adagrad rule;
  OnOneRank(BuildRecommenderStep(parameters, rule, ClickLoss::kWithLogits), choice(),
            [&](NamedSession& session) -> Status {
              const Clicks clicks = MakeClicks(4, 2);
              Feeds feeds = FeedsOf(clicks, true);
              for (const Parameter& p : parameters.all()) {
                feeds[p.name] = TensorOf(p);
                feeds[p.name + ".accum"] =
                    TensorOf(p.shape, std::vector<double>(p.values.size(), rule.start));
              }
              NPUMESH_RETURN_IF_ERROR(session.Run(feeds).status());
              for (const auto& [table, ids] :
                   {std::pair("first", clicks.first_ids), {"second", clicks.second_ids}}) {
                NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session.Read(table));
                const std::vector<double> after = ValuesIn(seen);
                const std::vector<double>& before = parameters.at(table).values;
                for (size_t i = 0; i < before.size(); ++i) {
                  const auto row = static_cast<int64_t>(i) / kEmbedding;
                  const bool named = std::find(ids.begin(), ids.end(), row) != ids.end();
                  EXPECT_EQ(after[i] == before[i], !named) << table << " row " << row;
                }
              }
              return Status();
            });
}

TEST(RecommenderOrders, UpdatesInPlaceComeAfterTheirReaders) {
  for (const RunChoice& choice : kOrders) Train(ClickLoss::kWithLogits, choice);
}

INSTANTIATE_TEST_SUITE_P(, Recommender, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
