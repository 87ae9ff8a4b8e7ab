#include "tests/models/recommender.h"

#include "tests/models/aten_graph.h"

namespace npumesh::models {
namespace {

class RecommenderWriter {
 public:
  // Training: parameters are RefData, and labels an input.
  RecommenderWriter(const Parameters& parameters, bool training) : g_("recommender") {
    const TensorType ids{DataType::kInt64, {-1}};
    dense_ = g_.Input("dense", {DataType::kFloat, {-1, kDenseFeatures}});
    first_ids_ = g_.Input("first_ids", ids);
    first_offsets_ = g_.Input("first_offsets", ids);
    second_ids_ = g_.Input("second_ids", ids);
    second_segments_ = g_.Input("second_segments", ids);
    if (training) labels_ = g_.Input("labels", {DataType::kFloat, {-1}});
    for (const Parameter& p : parameters.all()) {
      const TensorType type{DataType::kFloat, p.shape};
      p_[p.name] = training ? g_.RefInput(p.name, type) : g_.Weight(p.name, TensorOf(p));
      if (training) accums_[p.name] = g_.RefInput(p.name + ".accum", type);
    }
    samples_ = g_.SymSize(dense_, 0);
  }

  Result<Model> WriteInference() {
    g_.Output({g_.Unary("Sigmoid", Logits())});
    return g_.Build();
  }

  Result<Model> WriteStep(const Adagrad& rule, ClickLoss form) {
    lr_ = rule.lr;
    const Value logits = Logits();
    Value dlogits;
    const Value loss = form == ClickLoss::kWithLogits ? LossWithLogits(logits, dlogits)
                                                      : LossOfSigmoid(logits, dlogits);
    Backward(g_.Unsqueeze(dlogits, 1));
    g_.Output({loss});
    return g_.Build();
  }

 private:
  Value Relu(Value x) { return g_.Unary("Relu", x); }
  Value ReluBackward(Value dy, Value y) {
    return g_.Op("ReluGrad", {{"gradients", dy}, {"features", y}});
  }
  Value Gathered(Value x, Value ids) { return g_.Embedding(x, ids); }
  Value SegmentSum(Value x, Value segments, Value count) {
    return g_.Op("UnsortedSegmentSum",
                 {{"x", x}, {"segment_ids", segments}, {"num_segments", count}});
  }
  Value Linear(Value x, const std::string& w, const std::string& bias) {
    return g_.Addmm(p_.at(bias), x, g_.T(p_.at(w)));
  }

  // ---- forward ----

  Value Logits() {
    bottom_ = Relu(Linear(dense_, "wb", "bb"));
    bag_ = g_.Op("EmbeddingBag",
                 {{"weight", p_.at("first")}, {"indices", first_ids_}, {"offsets", first_offsets_}},
                 {{"mode", AttrValue::String("sum")}});
    unique_ = g_.Op("Unique", {{"x", second_ids_}}, {{"out_idx", AttrValue::Int(9)}});
    rows_ = Gathered(p_.at("second"), unique_);
    const Value projected = g_.Mm(rows_, g_.T(p_.at("wp")));
    const Value sums =
        SegmentSum(Gathered(projected, g_.Port(unique_, 1)), second_segments_, samples_);
    stack_ = g_.Op("Pack", {{"x0", bottom_}, {"x1", bag_}, {"x2", sums}},
                   {{"axis", AttrValue::Int(1)}, {"N", AttrValue::Int(3)}});
    const Value products = g_.Bmm(stack_, g_.Permute(stack_, {0, 2, 1}));
    // The pairs below the diagonal: x[:, (1, 2, 2), (0, 0, 1)].
    const Value cross =
        g_.Op("IndexByTensor",
              {{"x", products}, {"indices0", g_.Ints({1, 2, 2})}, {"indices1", g_.Ints({0, 0, 1})}},
              {{"indices_mask", AttrValue::Ints({0, 1, 1})}});
    features_ = g_.Cat({bottom_, cross}, 1);
    top_ = Relu(Linear(features_, "w1", "b1"));
    return g_.Squeeze(Linear(top_, "w2", "b2"), 1);
  }

  // mean((1 - t) x - log_sigmoid(x)), and its gradient.
  Value LossWithLogits(Value x, Value& dx) {
    const Value others = g_.RsubScalar(labels_, 1);
    const Value losses = g_.Sub(g_.Mul(others, x), g_.Unary("LogSigmoid", x));
    const Value each =
        g_.Div(g_.ExpandSym(g_.Full({}, 1), {samples_}), g_.ToCopy(samples_, DataType::kFloat));
    const Value of_log =
        g_.Op("LogSigmoidGrad", {{"grads", g_.Unary("Neg", each)}, {"features", x}});
    dx = g_.Add(g_.Mul(each, others), of_log);
    return g_.Mean(losses, {0});
  }

  Value LossOfSigmoid(Value x, Value& dx) {
    const Value y = g_.Unary("Sigmoid", x);
    const std::vector<GraphBuilder::Attr> mean = {{"reduction", AttrValue::String("mean")}};
    const Value of_y = g_.Op("BinaryCrossEntropyGrad",
                             {{"x", y}, {"y", labels_}, {"grad_output", g_.Full({}, 1)}}, mean);
    dx = g_.Op("SigmoidGrad", {{"y", y}, {"dy", of_y}});
    return g_.Op("BinaryCrossEntropy", {{"x", y}, {"y", labels_}}, mean);
  }

  // ---- backward; every parameter is updated as soon as its gradient is there ----

  void Backward(Value dlogits) {
    OfBias("b2", dlogits);
    const Value dtop = ReluBackward(OfLinear("w2", dlogits, top_), top_);
    OfBias("b1", dtop);
    const Value dfeatures = OfLinear("w1", dtop, features_);
    const Value parts = g_.Split(dfeatures, {kEmbedding, 3}, 1);
    const Value dstack = OfCross(g_.Port(parts, 1));
    const Value each = g_.Op("Unpack", {{"x", dstack}},
                             {{"num", AttrValue::Int(3)}, {"axis", AttrValue::Int(1)}}, 3);
    const Value dbottom = ReluBackward(g_.Add(parts, each), bottom_);
    OfBias("bb", dbottom);
    OfLinear("wb", dbottom, dense_);
    OfBag(g_.Port(each, 1));
    OfSums(g_.Port(each, 2));
  }

  // products = stack stackT.
  Value OfCross(Value dcross) {
    const Value zeros =
        g_.Op("Fill", {{"dims", g_.Pack({samples_, int64_t{9}})}, {"value", g_.Scalar(0)}});
    const Value places = g_.ExpandSym(g_.View(g_.Ints({3, 6, 7}), {1, 3}), {samples_, int64_t{3}});
    const Value flat =
        g_.Op("ScatterElements", {{"data", zeros}, {"indices", places}, {"updates", dcross}},
              {{"axis", AttrValue::Int(1)}, {"reduction", AttrValue::String("add")}});
    const Value dproducts = g_.ViewSym(flat, {samples_, int64_t{3}, int64_t{3}});
    return g_.Add(g_.Bmm(dproducts, stack_), g_.Bmm(g_.Permute(dproducts, {0, 2, 1}), stack_));
  }

  // Each id gets the gradient of its bag; ids that are alike are summed.
  void OfBag(Value dbag) {
    const Value per_id = Gathered(dbag, g_.Port(bag_, 1));
    const Value unique = g_.Op("Unique", {{"x", first_ids_}}, {{"out_idx", AttrValue::Int(3)}});
    const Value count = g_.SymSize(unique, 0);
    UpdateRows("first", unique, SegmentSum(per_id, g_.Port(unique, 1), count));
  }

  void OfSums(Value dsums) {
    const Value per_id = Gathered(dsums, second_segments_);
    const Value dprojected = SegmentSum(per_id, g_.Port(unique_, 1), g_.SymSize(unique_, 0));
    const Value drows = g_.Mm(dprojected, p_.at("wp"));
    Update("wp", g_.T(g_.T(g_.Mm(g_.T(dprojected), rows_))));
    UpdateRows("second", unique_, drows);
  }

  Value OfLinear(const std::string& w, Value dy, Value x) {
    const Value dx = g_.Mm(dy, p_.at(w));
    Update(w, g_.T(g_.T(g_.Mm(g_.T(dy), x))));
    return dx;
  }
  void OfBias(const std::string& bias, Value dy) { Update(bias, g_.Sum(dy, {0})); }

  void Update(const std::string& name, Value gradient) {
    g_.Op("ApplyAdagrad", {{"var", p_.at(name)},
                           {"accum", accums_.at(name)},
                           {"lr", g_.Scalar(lr_)},
                           {"grad", gradient}});
  }

  // Adagrad on the rows `ids`, which are all different.
  void UpdateRows(const std::string& table, Value ids, Value gradient) {
    const Value sums = g_.Add(Gathered(accums_.at(table), ids), g_.Mul(gradient, gradient));
    const Value step = g_.MulScalar(g_.Mul(gradient, g_.Unary("Rsqrt", sums)), lr_);
    g_.Op("ScatterUpdate", {{"var", accums_.at(table)}, {"indices", ids}, {"updates", sums}});
    g_.Op("ScatterSub", {{"var", p_.at(table)}, {"indices", ids}, {"updates", step}});
  }

  AtenGraph g_;
  std::map<std::string, Value> p_, accums_;
  Value dense_, first_ids_, first_offsets_, second_ids_, second_segments_, labels_, samples_;
  Value bottom_, bag_, unique_, rows_, stack_, features_, top_;
  double lr_ = 0;
};

}  // namespace

Result<Model> BuildRecommender(const Parameters& parameters) {
  return RecommenderWriter(parameters, false).WriteInference();
}

Result<Model> BuildRecommenderStep(const Parameters& parameters, const Adagrad& rule,
                                   ClickLoss loss) {
  return RecommenderWriter(parameters, true).WriteStep(rule, loss);
}

}  // namespace npumesh::models
