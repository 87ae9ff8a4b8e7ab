// MultinomialWithReplacement: indices drawn by weight.
//
// The stream is Philox, as everywhere. No document says which index a number becomes. Here it is
// the first whose running sum of weights exceeds the number times the sum of all; without
// replacement an index that was drawn has no weight any more.
#include <cmath>

#include "graph/ops/core/check.h"
#include "graph/ops/index/family.h"
#include "graph/ops/index/philox.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

struct Draw : Planned {
  int64_t rows = 1, columns = 0, samples = 0;
  bool replacement = false;
};

Draw PlanDraw(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  check.Keep(ExpectReal(op, "x"));
  for (const std::string_view port : {"seed", "offset"}) {
    check.Keep(ExpectCount(op, port, 1, "generator"));
    check.That(IsInteger(op.in(port).dtype), "\"{}\" is {}, expected an integer", port,
               op.in(port));
  }
  Draw draw;
  draw.samples = op.attr_int("numsamples");
  draw.replacement = op.attr_bool("replacement");
  check.That(rank >= 1 && rank <= 2 && draw.samples >= 1,
             "{} samples of x {}; expected one or more, of a row or of rows", draw.samples, x);
  if (!check.ok()) return {};
  draw.columns = x[rank - 1];
  draw.rows = rank == 2 ? x[0] : 1;
  check.That(draw.columns > 0 && (draw.replacement || draw.samples <= draw.columns),
             "{} samples without replacement of {} columns", draw.samples, draw.columns);
  draw.outputs = {
      {DataType::kInt64, rank == 1 ? Shape({draw.samples}) : Shape({draw.rows, draw.samples})}};
  return draw;
}

// The sum of a row's weights. Errors name the row: a weight is negative or no number, or too few
// are above zero.
Result<double> SumOfRow(const Draw& draw, const double* weights, int64_t row) {
  double sum = 0;
  int64_t possible = 0;
  for (int64_t i = 0; i < draw.columns; ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      return Error(Code::kInvalidArgument, "{}: weight {} of row {} is {}", draw.who, i, row,
                   weights[i]);
    }
    possible += weights[i] > 0 ? 1 : 0;
    sum += weights[i];
  }
  if (possible >= (draw.replacement ? 1 : draw.samples)) return sum;
  return Error(Code::kInvalidArgument, "{}: row {} has {} weights above zero, {} samples are asked",
               draw.who, row, possible, draw.samples);
}

// The index of a number in [0, 1), by the weights that are left.
int64_t IndexOf(const double* weights, int64_t columns, double sum, double uniform) {
  int64_t last = 0;
  double running = 0;
  for (int64_t i = 0; i < columns; ++i) {
    if (weights[i] == 0) continue;
    last = i;
    running += weights[i];
    if (running > uniform * sum) break;
  }
  return last;
}

// 53 random bits a number.
double NextUniform(PhiloxStream& stream) {
  const uint64_t low = stream.Next();
  const uint64_t high = stream.Next();
  return std::ldexp(static_cast<double>((high << 32 | low) >> 11), -53);
}

Status DrawRows(const Draw& draw, RealTensors& t) {
  PhiloxStream stream(static_cast<uint64_t>(static_cast<int64_t>(t.in[1][0])), 0,
                      static_cast<uint64_t>(static_cast<int64_t>(t.in[2][0])));
  size_t next = 0;
  for (int64_t row = 0; row < draw.rows; ++row) {
    double* weights = t.in[0].data() + row * draw.columns;
    NPUMESH_ASSIGN_OR_RETURN(double sum, SumOfRow(draw, weights, row));
    for (int64_t sample = 0; sample < draw.samples; ++sample) {
      const int64_t index = IndexOf(weights, draw.columns, sum, NextUniform(stream));
      t.out[0][next++] = static_cast<double>(index);
      if (draw.replacement) continue;
      sum -= weights[index];
      weights[index] = 0;
    }
  }
  return Status();
}

}  // namespace

void RegisterMultinomialOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanDraw, DrawRows>(
      "MultinomialWithReplacement(x, seed, offset; numsamples:int, replacement=false) -> y"));
}

}  // namespace npumesh
