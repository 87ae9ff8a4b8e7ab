// Random graphs on random memory: inputs and outputs lie anywhere in one block of bytes, over each
// other too, and afterwards every byte of the block is what plain arithmetic says.
//
// What the memory holds after a run: what it held before; over that, where in-place operators may
// write into an input, what they wrote; over that the outputs. The oracle below computes just that,
// value by value, and knows nothing of plans, buffers and copies.
#include <cstring>
#include <random>

#include "tests/unit/c_interface/c_world.h"

namespace npumesh {
namespace {

constexpr int kElements = 4;
constexpr size_t kBytes = kElements * sizeof(int32_t);
constexpr size_t kBlock = 400;

using Numbers = std::array<int32_t, kElements>;

// A value of the graph and how the oracle computes it.
struct Term {
  enum class Kind { kInput, kConstant, kAdd, kSub, kMul, kNeg, kCopy };
  Kind kind = Kind::kInput;
  size_t a = 0;  // operands, or the number of the input
  size_t b = 0;
  Numbers constant{};
  Value value;
};

int32_t Wrapped(uint32_t bits) {
  return static_cast<int32_t>(bits);
}

class RandomProgram {
 public:
  RandomProgram(std::mt19937& random, bool staged) : random_(random) {
    MakeInputs();
    const size_t nodes = 1 + Pick(7);
    for (size_t i = 0; i < nodes; ++i) AddNode();
    for (size_t input = 0; input < inputs_; ++input) {
      if (Pick(3) == 0) Assign(input);
    }
    ChooseOutputs();
    if (staged) AddLateOutput();
    g_.Output(results_);
  }

  GraphBuilder& graph() { return g_; }
  size_t inputs() const { return inputs_; }
  const std::vector<size_t>& outputs() const { return outputs_; }
  bool assigned(size_t input) const { return assigned_[input].has_value(); }
  bool staged() const { return late_.has_value(); }

  std::vector<Numbers> Evaluate(const std::vector<Numbers>& inputs) const {
    std::vector<Numbers> values;
    for (const Term& term : terms_) values.push_back(ValueOf(term, inputs, values));
    return values;
  }
  const Numbers& assigned_value(size_t input, const std::vector<Numbers>& values) const {
    return values[*assigned_[input]];
  }
  // The negated indexes of what is not zero.
  std::vector<int32_t> Late(const std::vector<Numbers>& values) const {
    std::vector<int32_t> indexes;
    for (int i = 0; i < kElements; ++i) {
      if (values[*late_][static_cast<size_t>(i)] != 0) indexes.push_back(-i);
    }
    return indexes;
  }

 private:
  size_t Pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }

  void MakeInputs() {
    inputs_ = 1 + Pick(3);
    for (size_t i = 0; i < inputs_; ++i) {
      Term& term = terms_.emplace_back();
      term.a = i;
      term.value = g_.Data("x" + std::to_string(i), CInts({kElements}));
    }
    assigned_.resize(inputs_);
    Term& constant = terms_.emplace_back();
    constant.kind = Term::Kind::kConstant;
    constant.constant = {3, -1, 0, 1 << 30};
    constant.value =
        g_.Const("c", Tensor::FromVector<int32_t>(CInts({kElements}), {3, -1, 0, 1 << 30}));
  }

  void AddNode() {
    Term term;
    term.kind = static_cast<Term::Kind>(2 + Pick(5));
    term.a = Pick(terms_.size());
    term.b = Pick(terms_.size());
    const Value a = terms_[term.a].value;
    const Value b = terms_[term.b].value;
    switch (term.kind) {
      case Term::Kind::kAdd:
        term.value = g_.Op("Add", {{"x1", a}, {"x2", b}});
        break;
      case Term::Kind::kSub:
        term.value = g_.Op("Sub", {{"x1", a}, {"x2", b}});
        break;
      case Term::Kind::kMul:
        term.value = g_.Op("Mul", {{"x1", a}, {"x2", b}});
        break;
      case Term::Kind::kNeg:
        term.value = g_.Op("Neg", {{"x", a}});
        break;
      default:  // a view
        term.value = g_.Op("Reshape", {{"x", a}, {"shape", g_.Ints({kElements})}});
    }
    terms_.push_back(term);
  }

  // Readers of the input mean its content before.
  void Assign(size_t input) {
    const size_t from = Pick(terms_.size());
    if (from == input) return;
    g_.Op("Assign", {{"ref", terms_[input].value}, {"value", terms_[from].value}});
    assigned_[input] = from;
  }

  void ChooseOutputs() {
    const size_t count = 1 + Pick(4);
    for (size_t i = 0; i < count; ++i) {
      // An input that is overwritten is no output: what it means then is not the oracle's matter.
      const size_t term = Pick(terms_.size());
      outputs_.push_back(term < inputs_ && assigned_[term] ? inputs_ : term);
      results_.push_back(terms_[outputs_.back()].value);
    }
  }

  void AddLateOutput() {
    late_ = Pick(terms_.size());
    const auto int32 = AttrValue::Int(static_cast<int64_t>(DataType::kInt32));
    const Value found = g_.Op("NonZero", {{"x", terms_[*late_].value}}, {{"dtype", int32}});
    results_.push_back(g_.Op("Neg", {{"x", found}}));
  }

  static Numbers ValueOf(const Term& term, const std::vector<Numbers>& inputs,
                         const std::vector<Numbers>& values) {
    if (term.kind == Term::Kind::kInput) return inputs[term.a];
    if (term.kind == Term::Kind::kConstant) return term.constant;
    Numbers result;
    for (size_t i = 0; i < result.size(); ++i) {
      const auto a = static_cast<uint32_t>(values[term.a][i]);
      const auto b = static_cast<uint32_t>(values[term.b][i]);
      result[i] = Wrapped(term.kind == Term::Kind::kAdd   ? a + b
                          : term.kind == Term::Kind::kSub ? a - b
                          : term.kind == Term::Kind::kMul ? a * b
                          : term.kind == Term::Kind::kNeg ? 0u - a
                                                          : a);
    }
    return result;
  }

  std::mt19937& random_;
  GraphBuilder g_;
  size_t inputs_ = 0;
  std::vector<Term> terms_;
  std::vector<std::optional<size_t>> assigned_;  // by input: the term
  std::vector<size_t> outputs_;                  // terms
  std::vector<Value> results_;
  std::optional<size_t> late_;
};

// Where the tensors of one run lie, and what the block has before and after.
class RandomMemory {
 public:
  RandomMemory(std::mt19937& random, const RandomProgram& program)
      : random_(random), program_(program), block_(kBlock) {
    for (char& byte : block_) byte = static_cast<char>(Pick(256));
    PlaceInputs();
    PlaceOutputs();
  }

  std::vector<npumesh_tensor> inputs() {
    std::vector<npumesh_tensor> tensors;
    for (const Input& input : inputs_) {
      tensors.push_back({block_.data() + input.at, kBytes, &kDims, 1, NPUMESH_INT32, input.flags});
    }
    return tensors;
  }
  std::vector<npumesh_tensor> outputs() {
    std::vector<npumesh_tensor> tensors;
    for (const size_t at : outputs_) {
      tensors.push_back({block_.data() + at, kBytes, nullptr, 0, NPUMESH_INT32, 0});
    }
    if (program_.staged()) tensors.push_back(FreshTensor());
    return tensors;
  }
  const std::vector<char>& block() const { return block_; }

  // What the block has after a run, and the late output.
  std::vector<char> After(std::vector<int32_t>& late) const {
    std::vector<Numbers> given(inputs_.size());
    for (size_t i = 0; i < given.size(); ++i) {
      std::memcpy(given[i].data(), block_.data() + inputs_[i].at, kBytes);
    }
    const std::vector<Numbers> values = program_.Evaluate(given);
    if (program_.staged()) late = program_.Late(values);
    std::vector<char> after = block_;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].flags != NPUMESH_IN_PLACE || !program_.assigned(i)) continue;
      std::memcpy(after.data() + inputs_[i].at, program_.assigned_value(i, values).data(), kBytes);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      std::memcpy(after.data() + outputs_[i], values[program_.outputs()[i]].data(), kBytes);
    }
    return after;
  }

 private:
  struct Input {
    size_t at = 0;
    uint32_t flags = 0;
  };
  size_t Pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  // Mostly aligned, so that memory is worked on where it is.
  size_t AnyPlace() {
    const size_t at = Pick(kBlock - kBytes);
    return Pick(4) == 0 ? at : at / kBytes * kBytes;
  }
  static bool Apart(size_t a, size_t b) { return a + kBytes <= b || b + kBytes <= a; }

  // What is written lies apart from all other inputs.
  void PlaceInputs() {
    for (size_t i = 0; i < program_.inputs(); ++i) {
      Input input;
      input.flags = Pick(2) == 0 ? NPUMESH_IN_PLACE : NPUMESH_READ_ONLY;
      const bool written = Written(i, input.flags);
      bool fits = false;
      while (!fits) {
        input.at = AnyPlace();
        fits = true;
        for (size_t k = 0; k < inputs_.size(); ++k) {
          if (!written && !Written(k, inputs_[k].flags)) continue;
          fits = fits && Apart(input.at, inputs_[k].at);
        }
      }
      inputs_.push_back(input);
    }
  }
  bool Written(size_t input, uint32_t flags) const {
    return flags == NPUMESH_IN_PLACE && program_.assigned(input);
  }

  // Often over an input; apart from each other.
  void PlaceOutputs() {
    while (outputs_.size() < program_.outputs().size()) {
      const size_t at = Pick(2) == 0 ? inputs_[Pick(inputs_.size())].at : AnyPlace();
      const bool apart = std::all_of(outputs_.begin(), outputs_.end(),
                                     [at](size_t other) { return Apart(at, other); });
      if (apart) outputs_.push_back(at);
    }
  }

  static constexpr int64_t kDims = kElements;
  std::mt19937& random_;
  const RandomProgram& program_;
  std::vector<char> block_;
  std::vector<Input> inputs_;
  std::vector<size_t> outputs_;
};

class CLendingTest : public CWorldTest {
 protected:
  // Several runs of one session, each on other memory.
  void RunProgram(std::mt19937& random, const RandomProgram& program) {
    for (int run = 0; run < 3; ++run) {
      RandomMemory memory(random, program);
      std::vector<int32_t> late;
      const std::vector<char> after = memory.After(late);
      std::vector<npumesh_tensor> outputs = memory.outputs();
      ASSERT_EQ(Run(memory.inputs(), outputs), NPUMESH_OK) << npumesh_last_error();
      ASSERT_EQ(memory.block(), after) << "run " << run;
      if (!program.staged()) continue;
      ASSERT_EQ(Values(outputs.back()), late) << "run " << run;
      npumesh_release(outputs.back().data);
    }
  }
  void RunSeeds(uint32_t from, uint32_t to, bool staged) {
    for (uint32_t seed = from; seed < to; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      RandomProgram program(random, staged);
      Load(program.graph());
      RunProgram(random, program);
      if (HasFatalFailure()) return;
      const npumesh_session_stats stats = Stats();
      copied_ += stats.input_bytes_copied + stats.output_bytes_copied;
      moved_ += stats.runs * kBytes * (program.inputs() + program.outputs().size());
      ASSERT_EQ(npumesh_close(session_), NPUMESH_OK);
      session_ = nullptr;
    }
  }
  uint64_t copied_ = 0;
  uint64_t moved_ = 0;  // of all inputs and outputs
};

TEST_F(CLendingTest, EveryByteIsWhatArithmeticSays) {
  RunSeeds(0, 600, false);
  // Both ways are taken.
  EXPECT_GT(copied_, 0u);
  EXPECT_LT(copied_, moved_);
}

TEST_F(CLendingTest, AlsoWhereARunDecidesShapes) {
  RunSeeds(1000, 1300, true);
}

}  // namespace
}  // namespace npumesh
