// An operator library for tests: Careless copies x and makes the mistake that its attribute names,
// where x[0] is 1; elsewhere none.
//
//   past       writes byte `at` behind the end of y
//   before     writes byte `at` before the begin of y
//   input      writes byte `at` of x
//   scratch    writes byte `at` behind the end of its scratch memory
//   unwritten  leaves element `at` of y as it was
//   unset      adds to element `at` of y what its scratch memory held before
//   unsteady   adds to element `at` of y how often it has run
#include <string>

#include "graph/ops/core/custom_operator.h"

namespace {

using npumesh::Kernel;
using npumesh::KernelArgs;
using npumesh::OpContext;
using npumesh::Status;

constexpr int64_t kScratchFloats = 16;

Status InferCareless(OpContext& op) {
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

class Careless final : public Kernel {
 public:
  explicit Careless(const OpContext& op)
      : mistake_(op.attr_string("mistake")),
        at_(op.attr_int("at")),
        elements_(op.in("x").shape.elements()) {}

  uint64_t scratch_bytes() const override { return kScratchFloats * sizeof(float); }

  Status Run(const KernelArgs& args) override {
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    auto* scratch = static_cast<float*>(args.scratch);
    const bool wrong = x[0] == 1;
    const float kept = y[at_ < elements_ ? at_ : 0];
    const float unset = scratch[0];
    for (int64_t i = 0; i < elements_; ++i) y[i] = x[i];
    for (int64_t i = 0; i < kScratchFloats; ++i) scratch[i] = 0;
    ++runs_;
    if (!wrong) return Status();
    if (mistake_ == "past") reinterpret_cast<char*>(y + elements_)[at_] = 7;
    if (mistake_ == "before") *(reinterpret_cast<char*>(y) - at_) = 7;
    if (mistake_ == "input") const_cast<char*>(reinterpret_cast<const char*>(x))[at_] = 7;
    if (mistake_ == "scratch") reinterpret_cast<char*>(scratch + kScratchFloats)[at_] = 7;
    if (mistake_ == "unwritten") y[at_] = kept;
    if (mistake_ == "unset") y[at_] += unset;
    if (mistake_ == "unsteady") y[at_] += static_cast<float>(runs_);
    return Status();
  }

 private:
  std::string mistake_;
  int64_t at_;
  int64_t elements_;
  int runs_ = 0;
};

npumesh::Result<std::unique_ptr<Kernel>> MakeCareless(const OpContext& op) {
  return std::unique_ptr<Kernel>(std::make_unique<Careless>(op));
}

}  // namespace

NPUMESH_OPERATOR_LIBRARY(list) {
  list.Add({.schema = {"Careless",
                       {{"x"}},
                       {{"y"}},
                       {{"mistake", npumesh::Required::kString}, {"at", npumesh::Required::kInt}}},
            .infer = InferCareless,
            .make_kernel = MakeCareless});
}
