#include "tests/models/cnn.h"

#include <map>

#include "tests/models/aten_image.h"

namespace npumesh::models {
namespace {

constexpr int64_t kPlanes = 8;  // of the last feature map

ConvolutionShape ShapeOf(const CnnUnit& unit) {
  return {unit.kernel, unit.stride, unit.groups};
}

// What the backward of a unit needs of its forward.
struct UnitMemory {
  Value x, convolved, normal;
};

// The network in either mode; `values` are parameters and statistics by name.
class CnnWriter {
 public:
  CnnWriter(AtenGraph& g, std::map<std::string, Value> values, bool training, DataType dtype)
      : g_(g), values_(std::move(values)), training_(training), dtype_(dtype) {}

  // `images`: the batch, a number or a symbol.
  Value Logits(Value image, Size images) {
    stem_ = Relu(Unit("stem", image));
    pooled_ = MaxPool(g_, stem_);
    a1_ = Relu(Unit("a1", pooled_));
    a_ = Relu(g_.Add(Unit("a2", a1_), pooled_));
    b1_ = Relu(Unit("b1", a_));
    b_ = Relu(g_.Add(Unit("b2", b1_), Unit("skip", a_)));
    means_ = g_.ViewSym(g_.Mean(b_, {-1, -2}, true), {images, kPlanes});
    return g_.Addmm(values_.at("fc.b"), means_, g_.T(values_.at("fc.w")), dtype_);
  }

  // Gradients of all parameters from that of the logits.
  std::map<std::string, Value> Backward(Value dlogits, Size images) {
    gradients_["fc.b"] = g_.View(g_.Sum(dlogits, {0}, true), {kClasses});
    gradients_["fc.w"] = g_.T(g_.T(g_.Mm(g_.T(dlogits), means_)));
    const Value means = g_.ViewSym(g_.Mm(dlogits, g_.T(g_.T(values_.at("fc.w")))),
                                   {images, kPlanes, int64_t{1}, int64_t{1}});
    const Value spread = g_.ExpandSym(means, {images, kPlanes, int64_t{2}, int64_t{2}});
    Value dy = g_.DivScalar(spread, 4);
    dy = ReluBackward(dy, b_);
    const Value skip = OfUnit("skip", dy);
    dy = ReluBackward(OfUnit("b2", dy), b1_);
    dy = ReluBackward(g_.Add(OfUnit("b1", dy), skip), a_);
    dy = g_.Add(dy, OfUnit("a1", ReluBackward(OfUnit("a2", dy), a1_)));
    OfUnit("stem", ReluBackward(MaxPoolBackward(g_, dy, stem_), stem_));
    return gradients_;
  }

 private:
  Value Relu(Value x) { return g_.Unary("Relu", x); }
  Value ReluBackward(Value dy, Value y) {
    return g_.Op("ReluGrad", {{"gradients", dy}, {"features", y}});
  }

  BatchNormValues NormOf(const std::string& name) const {
    return {values_.at(name + ".gamma"), values_.at(name + ".beta"), values_.at(name + ".mean"),
            values_.at(name + ".var")};
  }

  Value Unit(const std::string& name, Value x) {
    const CnnUnit& unit = UnitOf(name);
    UnitMemory& memory = memory_[name];
    memory.x = x;
    std::optional<Value> bias;
    if (unit.bias) bias = values_.at(name + ".b");
    memory.convolved = Convolution(g_, x, values_.at(name + ".w"), bias, ShapeOf(unit));
    memory.normal = training_ ? BatchNormTraining(g_, memory.convolved, NormOf(name))
                              : BatchNormInference(g_, memory.convolved, NormOf(name));
    return memory.normal;
  }

  Value OfUnit(const std::string& name, Value dy) {
    const CnnUnit& unit = UnitOf(name);
    const UnitMemory& memory = memory_.at(name);
    const Value norm = BatchNormBackward(g_, dy, memory.convolved, NormOf(name), memory.normal);
    gradients_[name + ".gamma"] = g_.Port(norm, 1);
    gradients_[name + ".beta"] = g_.Port(norm, 2);
    if (unit.bias) gradients_[name + ".b"] = ConvolutionOfBias(g_, norm);
    const Value filter = values_.at(name + ".w");
    gradients_[name + ".w"] = ConvolutionOfFilter(g_, norm, memory.x, filter, ShapeOf(unit));
    return ConvolutionOfInput(g_, norm, memory.x, filter, ShapeOf(unit));
  }

  AtenGraph& g_;
  std::map<std::string, Value> values_;
  bool training_;
  DataType dtype_;
  std::map<std::string, UnitMemory> memory_;
  std::map<std::string, Value> gradients_;
  Value stem_, pooled_, a1_, a_, b1_, b_, means_;
};

void UpdateBySgd(AtenGraph& g, Value p, Value accum, Value gradient, const Momentum& rule) {
  g.Op("SGD",
       {{"parameters", p},
        {"gradient", gradient},
        {"learning_rate", g.Scalar(rule.lr)},
        {"accum", accum},
        {"momentum", g.Scalar(rule.momentum)},
        {"stat", g.Op("OnesLike", {{"x", gradient}})}},
       {{"weight_decay", AttrValue::Float(static_cast<float>(rule.weight_decay))}});
}

void UpdateByMomentum(AtenGraph& g, Value p, Value accum, Value gradient, const Momentum& rule) {
  g.Op("ApplyMomentum", {{"var", p},
                         {"accum", accum},
                         {"lr", g.Scalar(rule.lr)},
                         {"grad", gradient},
                         {"momentum", g.Scalar(rule.momentum)}});
}

void UpdateByArithmetic(AtenGraph& g, Value p, Value accum, Value gradient, const Momentum& rule) {
  if (rule.weight_decay != 0) {
    gradient =
        g.Op("AxpyV2", {{"x1", gradient}, {"x2", p}, {"alpha", g.Scalar(rule.weight_decay)}});
  }
  const Value moving = g.Add(g.MulScalar(accum, rule.momentum), gradient);
  const Value stepped = g.Op("AxpyV2", {{"x1", p}, {"x2", moving}, {"alpha", g.Scalar(-rule.lr)}});
  g.Op("Assign", {{"ref", accum}, {"value", moving}});
  g.Op("Assign", {{"ref", p}, {"value", stepped}});
}

}  // namespace

Result<Model> BuildCnnInference(const Parameters& parameters, const Parameters& statistics,
                                DataType dtype) {
  AtenGraph g("cnn");
  const Value image = g.Input("image", {dtype, {-1, kImageChannels, kImageSide, kImageSide}});
  std::map<std::string, Value> values;
  for (const Parameter& p : parameters.all()) {
    // Scales and offsets of a normalisation stay float32 beside images of 16 bits.
    const bool norm = p.name.ends_with(".gamma") || p.name.ends_with(".beta");
    values[p.name] = g.Weight(p.name, TensorOf(p, norm ? DataType::kFloat : dtype));
  }
  for (const Parameter& p : statistics.all()) values[p.name] = g.Weight(p.name, TensorOf(p));
  CnnWriter writer(g, values, false, dtype);
  g.Output({writer.Logits(image, g.SymSize(image, 0))});
  return g.Build();
}

Result<Model> BuildCnnStep(const Parameters& parameters, const Parameters& statistics,
                           const Momentum& rule, MomentumForm form, int64_t images) {
  AtenGraph g("cnn_step");
  const Value image =
      g.Input("image", {DataType::kFloat, {images, kImageChannels, kImageSide, kImageSide}});
  const Value label = g.Input("label", {DataType::kInt64, {images}});
  std::map<std::string, Value> values, accums;
  for (const Parameter& p : parameters.all()) {
    values[p.name] = g.RefInput(p.name, {DataType::kFloat, p.shape});
    accums[p.name] = g.RefInput(p.name + ".accum", {DataType::kFloat, p.shape});
  }
  for (const Parameter& p : statistics.all()) {
    values[p.name] = g.RefInput(p.name, {DataType::kFloat, p.shape});
  }
  CnnWriter writer(g, values, true, DataType::kFloat);
  const Size batch = images < 0 ? Size(g.SymSize(image, 0)) : Size(images);
  const Value logits = writer.Logits(image, batch);
  const Value log_probabilities =
      g.Op("LogSoftmaxV2", {{"logits", logits}}, {{"axes", AttrValue::Ints({-1})}});
  const Value loss = g.NllLoss(log_probabilities, label);
  const Value of_log = g.NllLossBackward(g.Full({}, 1), log_probabilities, label, g.Port(loss, 1));
  const Value dlogits = g.Op("LogSoftmaxGrad", {{"grad", of_log}, {"x", log_probabilities}},
                             {{"axis", AttrValue::Ints({-1})}});
  const std::map<std::string, Value> gradients = writer.Backward(dlogits, batch);

  const auto update = form == MomentumForm::kSgd        ? UpdateBySgd
                      : form == MomentumForm::kMomentum ? UpdateByMomentum
                                                        : UpdateByArithmetic;
  std::vector<Value> outputs = {loss};
  for (const Parameter& p : parameters.all()) {
    outputs.push_back(gradients.at(p.name));
    update(g, values.at(p.name), accums.at(p.name), gradients.at(p.name), rule);
  }
  g.Output(outputs);
  return g.Build();
}

}  // namespace npumesh::models
