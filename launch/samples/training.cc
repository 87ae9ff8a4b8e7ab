// One step of gradient descent on two ranks (data parallel): forward, backward, the gradients
// summed over the ranks, and the weights updated in place.
//
//   y = relu(x w1) w2      loss = mean((y - target)^2) over all ranks
#include "graph/ir/graph_builder.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {
namespace {

constexpr int kTrainers = 2;
constexpr int kTrainingSteps = 3;
constexpr int64_t kExamples = 4;  // of each rank
constexpr int64_t kFeatures = 8, kInner = 16, kTargets = 4;
constexpr float kLearningRate = 0.125f;
constexpr const char* kAllTrainers = "hccl_world_group";

// What the mean over all ranks divides by.
constexpr float kShare = 1.0f / (kTrainers * kExamples * kTargets);

class TrainingWriter {
 public:
  Result<Model> Write() {
    const Value x = g_.Data("x", {DataType::kFloat, {kExamples, kFeatures}});
    const Value target = g_.Data("target", {DataType::kFloat, {kExamples, kTargets}});
    const Value w1 = g_.RefData("w1", {DataType::kFloat, {kFeatures, kInner}});
    const Value w2 = g_.RefData("w2", {DataType::kFloat, {kInner, kTargets}});
    const Value inner = g_.Op("Relu", {{"x", Product(x, w1, false, false)}}, {}, "inner");
    const Value y = Product(inner, w2, false, false);
    const Value error = g_.Op("Sub", {{"x1", y}, {"x2", target}}, {}, "error");
    const Value squares = g_.Op("Mul", {{"x1", error}, {"x2", error}}, {}, "squares");
    const Value sum = g_.Op("ReduceSum", {{"x", squares}, {"axes", g_.Ints({0, 1})}}, {}, "sum");
    const Value loss = OfAllRanks(Times(sum, kShare), "loss");
    const Value of_y = Times(error, 2 * kShare);
    const Value of_inner = Product(of_y, w2, false, true);
    const Value before =
        g_.Op("ReluGrad", {{"gradients", of_inner}, {"features", inner}}, {}, "before_relu");
    const Value of_w1 = OfAllRanks(Product(x, before, true, false), "gradient_w1");
    const Value of_w2 = OfAllRanks(Product(inner, of_y, true, false), "gradient_w2");
    g_.Output({loss, Update(w1, of_w1, "new_w1"), Update(w2, of_w2, "new_w2")});
    return g_.Build();
  }

 private:
  Value Product(Value a, Value b, bool turn_a, bool turn_b) {
    return g_.Op(
        "MatMul", {{"x1", a}, {"x2", b}},
        {{"transpose_x1", AttrValue::Bool(turn_a)}, {"transpose_x2", AttrValue::Bool(turn_b)}});
  }
  Value Times(Value x, float factor) {
    return g_.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(factor)}});
  }
  Value OfAllRanks(Value x, const char* name) {
    return g_.Op(
        "HcomAllReduce", {{"x", x}},
        {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String(kAllTrainers)}},
        name);
  }
  Value Update(Value weight, Value gradient, const char* name) {
    const Value rate = g_.Const(std::string(name) + ".rate",
                                Tensor::FromVector<float>({DataType::kFloat, {}}, {kLearningRate}));
    return g_.Op("ApplyGradientDescent", {{"var", weight}, {"alpha", rate}, {"delta", gradient}},
                 {}, name);
  }

  GraphBuilder g_{"training_step"};
};

// The same step on the examples of all ranks at once.
class PlainTraining {
 public:
  PlainTraining(Table w1, Table w2) : w1_(std::move(w1)), w2_(std::move(w2)) {}

  const Table& w1() const { return w1_; }
  const Table& w2() const { return w2_; }

  double Step(const Table& x, const Table& target) {
    const Table inner = Each(Product(x, w1_), Relu);
    const Table error = Sum(Product(inner, w2_), Each(target, [](double t) { return -t; }));
    double loss = 0;
    for (const double e : error.values) loss += e * e;
    const auto count = static_cast<double>(error.values.size());
    const Table of_y = Each(error, [&](double e) { return 2 * e / count; });
    Table of_inner = Product(of_y, Turned(w2_));
    for (size_t i = 0; i < inner.values.size(); ++i) {
      if (inner.values[i] <= 0) of_inner.values[i] = 0;
    }
    const auto down = [](double gradient) { return -kLearningRate * gradient; };
    w1_ = Sum(w1_, Each(Product(Turned(x), of_inner), down));
    w2_ = Sum(w2_, Each(Product(Turned(inner), of_y), down));
    return loss / count;
  }

 private:
  Table w1_, w2_;
};

Table BothBatches(const std::vector<Table>& of_ranks) {
  Table all = of_ranks[0];
  for (size_t rank = 1; rank < of_ranks.size(); ++rank) {
    all.rows += of_ranks[rank].rows;
    all.values.insert(all.values.end(), of_ranks[rank].values.begin(), of_ranks[rank].values.end());
  }
  return all;
}

SampleStep TrainingStep(int step, PlainTraining& plain) {
  SampleStep files;
  std::vector<Table> x, target;
  for (int rank = 0; rank < kTrainers; ++rank) {
    const auto seed = static_cast<uint64_t>(100 + 10 * step + rank);
    x.push_back(Table::Random(kExamples, kFeatures, 1, seed));
    target.push_back(Table::Random(kExamples, kTargets, 1, seed + 1000));
    files.inputs.push_back({{0, TensorOf(x.back())}, {1, TensorOf(target.back())}});
    if (step > 0) continue;  // after that the graph keeps its weights
    files.inputs.back()[2] = TensorOf(plain.w1());
    files.inputs.back()[3] = TensorOf(plain.w2());
  }
  const double loss = plain.Step(BothBatches(x), BothBatches(target));
  const SampleTensors golden = {
      {0, TensorOf({1, 1, {loss}}, Shape())}, {1, TensorOf(plain.w1())}, {2, TensorOf(plain.w2())}};
  files.goldens.assign(kTrainers, golden);
  return files;
}

}  // namespace

Result<SampleContent> MakeTraining() {
  SampleContent content;
  for (int rank = 0; rank < kTrainers; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(Model model, TrainingWriter().Write());
    content.models.push_back(std::move(model));
  }
  PlainTraining plain(Table::Random(kFeatures, kInner, 0.5, 41),
                      Table::Random(kInner, kTargets, 0.5, 42));
  for (int step = 0; step < kTrainingSteps; ++step) {
    content.steps.push_back(TrainingStep(step, plain));
  }
  return content;
}

}  // namespace npumesh
