// RopeWithSinCosCache: rotary embedding by positions, with one table of cosines and sines for all
// of them.
//
// Row p of the table has the cosines of position p, then the sines, half the rotated width each.
// With three rows of positions the columns of the table are shared out among them: to each a run of
// mropeSection, or, in cache mode 1, by turns: columns 1, 4, 7 .. below 3 * mropeSection[1] follow
// the second row, 2, 5, 8 .. the third, all others the first.
#include <cstring>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

struct RopeCachePlan : Planned {
  Integers positions;
  int64_t tokens = 0, head = 0, half = 0, table_rows = 0;
  InputRows rows[2];  // queries and keys, [tokens, heads * head] each
  int table = -1;
  DataType table_type = DataType::kFloat;
  bool halves = true;                  // the rotated pairs are halves apart, else neighbours
  std::vector<int64_t> row_of_column;  // of positions, for each column; empty: one row
  Workspace<float> cos_sin, cos, sin, x, y;
};

// Which row of positions each column of the table follows.
std::vector<int64_t> RowsOfColumns(const OpContext& op, int64_t half, Check& check) {
  const std::vector<int64_t> sections = op.attr_ints("mropeSection");
  const bool by_turns = check.Between("cacheMode", 0, 1) == 1;
  int64_t sum = 0;
  for (const int64_t section : sections) {
    check.That(section >= 0, "mropeSection holds {}, expected 0 or more", section);
    sum += section;
  }
  check.That(sections.size() == 3 && sum == half,
             "mropeSection has {} numbers of sum {}, expected 3 of sum {} for three rows of "
             "positions",
             sections.size(), sum, half);
  if (!check.ok()) return {};
  std::vector<int64_t> rows(static_cast<size_t>(half), 0);
  for (int64_t c = 0; c < half; ++c) {
    int64_t& row = rows[static_cast<size_t>(c)];
    if (by_turns) {
      row = c < 3 * sections[1] ? c % 3 : 0;
    } else {
      row = c < sections[0] ? 0 : c < sections[0] + sections[1] ? 1 : 2;
    }
  }
  return rows;
}

RopeCachePlan PlanRopeCache(const OpContext& op, Check& check) {
  RopeCachePlan plan;
  check.RankBetween("positions", kIndices, 1, 2);
  const auto [table_rows, rotated] = check.Matrix("cosSinCache", kFloats);
  plan.head = check.Between("headSize", 1, INT32_MAX);
  const char* const ports[] = {"queryIn", "keyIn"};
  const char* const heads[] = {"numQHeads", "numKHeads"};
  const char* const strides[] = {"qStride", "kStride"};
  for (const char* port : ports) check.RankAtLeast(port, kFloats, 1);
  check.SameType("keyIn", "queryIn");
  if (!check.ok()) return plan;
  const Shape& positions = op.in("positions").shape;
  plan.positions = Integers::OfSlot(op, op.slot("positions"));
  plan.tokens = positions.dims().back();
  plan.table = op.slot("cosSinCache");
  plan.table_type = op.in(plan.table).dtype;
  plan.table_rows = table_rows;
  plan.half = rotated / 2;
  plan.halves = op.attr_bool("isNeoxStyle");
  check.That(rotated % 2 == 0 && rotated <= plan.head,
             "cosSinCache is {}, expected an even width of at most headSize {}", op.in(plan.table),
             plan.head);
  check.That(positions.rank() == 1 || positions[0] == 3,
             "positions are {}, expected one or three rows", positions);
  if (positions.rank() == 2) {
    check.Keep(AskForLists(op, plan.half));
    plan.row_of_column = RowsOfColumns(op, plan.half, check);
  }
  for (const int i : {0, 1}) {
    const TensorType& x = op.in(ports[i]);
    const int64_t width = plan.tokens > 0 ? x.shape.elements() / plan.tokens : 0;
    const int64_t count = check.Between(heads[i], 0, INT32_MAX);
    check.That(x.shape.elements() == width * plan.tokens &&
                   (plan.tokens == 0 || width == count * plan.head),
               "\"{}\" is {}, expected {} heads of {} for each of {} tokens", ports[i], x, count,
               plan.head, plan.tokens);
    check.Among(strides[i], {0, width});
    plan.rows[i] = {op.slot(ports[i]), x.dtype, plan.tokens, width};
    plan.outputs.push_back(x);
  }
  plan.scratch.Take(rotated, {&plan.cos_sin, &plan.x, &plan.y});
  plan.scratch.Take(plan.half, {&plan.cos, &plan.sin});
  return plan;
}

// Sets the cosines and sines of a token.
Status ReadAngles(const RopeCachePlan& plan, const KernelArgs& args, int64_t token) {
  const int64_t half = plan.half, rows = plan.row_of_column.empty() ? 1 : 3;
  float *table = plan.cos_sin(args), *cos = plan.cos(args), *sin = plan.sin(args);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = plan.positions.At(args, row * plan.tokens + token);
    if (position < 0 || position >= plan.table_rows) {
      return Error(Code::kInvalidArgument, "{}: token {} is at position {}, cosSinCache has {}",
                   plan.who, token, position, plan.table_rows);
    }
    LoadNumbers(plan.table_type, args.in[plan.table], position * 2 * half, 2 * half, table);
    for (int64_t c = 0; c < half; ++c) {
      if (rows > 1 && plan.row_of_column[static_cast<size_t>(c)] != row) continue;
      cos[c] = table[c];
      sin[c] = table[half + c];
    }
  }
  return Status();
}

void RotateHead(const RopeCachePlan& plan, const KernelArgs& args, const float* x, float* y) {
  const float *cos = plan.cos(args), *sin = plan.sin(args);
  const int64_t step = plan.halves ? 1 : 2, next = plan.halves ? plan.half : 1;
  for (int64_t c = 0; c < plan.half; ++c) {
    const float a = x[c * step], b = x[c * step + next];
    y[c * step] = a * cos[c] - b * sin[c];
    y[c * step + next] = b * cos[c] + a * sin[c];
  }
}

Status RunRopeCache(const RopeCachePlan& plan, const KernelArgs& args) {
  const int64_t rotated = 2 * plan.half;
  float *x = plan.x(args), *y = plan.y(args);
  for (const int i : {0, 1}) {  // what lies after the rotated part of a head stays
    const uint64_t bytes = plan.outputs[static_cast<size_t>(i)].bytes();
    if (bytes > 0) std::memcpy(args.out[i], args.in[plan.rows[i].slot], bytes);
  }
  for (int64_t token = 0; token < plan.tokens; ++token) {
    NPUMESH_RETURN_IF_ERROR(ReadAngles(plan, args, token));
    for (const int i : {0, 1}) {
      const InputRows& rows = plan.rows[i];
      for (int64_t at = token * rows.width; at < (token + 1) * rows.width; at += plan.head) {
        LoadNumbers(rows.dtype, args.in[rows.slot], at, rotated, x);
        RotateHead(plan, args, x, y);
        StoreRow(rows.dtype, y, args.out[i], at, rotated);
      }
    }
  }
  return Status();
}

}  // namespace

void RegisterRopeCacheOps(OpRegistry& registry) {
  registry.Add(Define<PlanRopeCache, RunRopeCache>(
      "RopeWithSinCosCache(positions, queryIn, keyIn, cosSinCache; numQHeads:int, numKHeads:int, "
      "headSize:int, mropeSection=[0,0,0], qStride=0, kStride=0, isNeoxStyle=true, cacheMode=0) -> "
      "queryOut, keyOut"));
}

}  // namespace npumesh
