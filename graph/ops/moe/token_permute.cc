// MoeTokenPermute and MoeTokenUnpermute, the forms with a routing map, and their gradients: tokens
// copied into rows by expert, and rows added up into tokens.
//
// All eight are walks over the same entries: one for each pair of a token and an expert that it
// goes to, with the row of the permuted tensor and the place of the pair's probability.
//
//   permute             row[entry] = token[entry]
//   its gradient        token[entry] += row[entry];              probability = its row's
//   unpermute           token[entry] += row[entry] * probability
//   its gradient        row[entry] = token[entry] * probability; probability = token . row
//
// Sums are float32, entry by entry, and are rounded once.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

struct Entry {
  int64_t token = 0, row = 0;
  int64_t prob = 0;  // element of [tokens, choices] or [tokens, experts]
};

struct Routes : Planned {
  int64_t tokens = 0, rows = 0, width = 0;
  bool padded = false;  // each expert has `capacity` entries; else each token has `choices`
  int64_t choices = 0, capacity = 0;
  int64_t experts = 0;  // columns of the map; 0: there is no map, probabilities are by choice
  DataType dtype = DataType::kFloat;  // of tokens and rows
  int map = -1;                       // slot of the routing map
  Integers indices;                   // row of each entry; of capacities the token of each row
  Factors probs;
  DataType probs_type = DataType::kFloat;
  Workspace<Entry> entries;
  Workspace<int64_t> begins;  // of experts: their next row
  Workspace<float> sum, row;

  int64_t count() const { return padded ? experts * capacity : tokens * choices; }
};

// Sizes are set before.
void TakeRoom(Routes& plan) {
  plan.entries = plan.scratch.Take<Entry>(plan.count());
  plan.begins = plan.scratch.Take<int64_t>(plan.experts);
  plan.scratch.Take(plan.width, {&plan.sum, &plan.row});
}

// ---- entries ----

// Entries of a token follow each other, its experts ascending. Error: a token that goes to another
// number of experts.
Status ReadMap(const Routes& plan, const KernelArgs& args) {
  const auto* map = static_cast<const uint8_t*>(args.in[plan.map]);
  Entry* const entries = plan.entries(args);
  for (int64_t token = 0; token < plan.tokens; ++token) {
    int64_t found = 0;
    for (int64_t e = 0; e < plan.experts; ++e) {
      const int64_t at = token * plan.experts + e;
      if (map[at] == 0) continue;
      if (found < plan.choices) entries[token * plan.choices + found] = {token, 0, at};
      ++found;
    }
    if (found != plan.choices) {
      return Error(Code::kInvalidArgument,
                   "{}: token {} goes to {} experts in the routing map, expected {} for each token",
                   plan.who, token, found, plan.choices);
    }
  }
  return Status();
}

// Rows by expert, those of an expert by token.
void SortByExpert(const Routes& plan, const KernelArgs& args) {
  Entry* const entries = plan.entries(args);
  int64_t* const begins = plan.begins(args);
  std::fill_n(begins, plan.experts, 0);
  for (int64_t i = 0; i < plan.count(); ++i) ++begins[entries[i].prob % plan.experts];
  int64_t begin = 0;
  for (int64_t e = 0; e < plan.experts; ++e) begin += std::exchange(begins[e], begin);
  for (int64_t i = 0; i < plan.count(); ++i) {
    entries[i].row = begins[entries[i].prob % plan.experts]++;
  }
}

Status OutOfRange(const Routes& plan, int64_t at, int64_t value, int64_t end) {
  return Error(Code::kInvalidArgument, "{}: the indices hold {} at {}, expected 0 to {}", plan.who,
               value, at, end - 1);
}

// Entries with `choices` for each token, whose rows the indices say. Rows past the last one were
// dropped when the tokens were permuted.
Status ReadRows(const Routes& plan, const KernelArgs& args) {
  if (plan.map >= 0) NPUMESH_RETURN_IF_ERROR(ReadMap(plan, args));
  Entry* const entries = plan.entries(args);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const int64_t row = plan.indices.At(args, i);
    if (row < 0 || row >= plan.count()) return OutOfRange(plan, i, row, plan.count());
    if (plan.map < 0) entries[i] = {i / plan.choices, 0, i};
    entries[i].row = row;
  }
  return Status();
}

// Entries by row, whose tokens the indices say.
Status ReadTokens(const Routes& plan, const KernelArgs& args) {
  for (int64_t row = 0; row < plan.count(); ++row) {
    const int64_t token = plan.indices.At(args, row);
    if (token < 0 || token >= plan.tokens) return OutOfRange(plan, row, token, plan.tokens);
    plan.entries(args)[row] = {token, row, token * plan.experts + row / plan.capacity};
  }
  return Status();
}

void SortByToken(const Routes& plan, const KernelArgs& args) {
  Entry* const entries = plan.entries(args);
  std::sort(entries, entries + plan.count(), [](const Entry& a, const Entry& b) {
    return a.token != b.token ? a.token < b.token : a.row < b.row;
  });
}

// The entries of a call with indices, those of a token side by side.
Status ReadEntries(const Routes& plan, const KernelArgs& args) {
  if (!plan.padded) return ReadRows(plan, args);
  NPUMESH_RETURN_IF_ERROR(ReadTokens(plan, args));
  SortByToken(plan, args);
  return Status();
}

// ---- walks ----

// tokens[entry] = the sum of its rows, of those times their probability where it is given.
void SumRows(const Routes& plan, const KernelArgs& args, const void* rows, const Factors& probs,
             void* tokens) {
  const Entry* entry = plan.entries(args);
  const Entry* const end = entry + plan.count();
  const int64_t n = plan.width;
  float *sum = plan.sum(args), *row = plan.row(args);
  for (int64_t token = 0; token < plan.tokens; ++token) {
    std::fill_n(sum, n, 0.0f);
    for (; entry < end && entry->token == token; ++entry) {
      if (entry->row >= plan.rows) continue;
      LoadNumbers(plan.dtype, rows, entry->row * n, n, row);
      if (probs.given()) ScaleRow(row, probs.At(args, entry->prob), n, row);
      AddRow(sum, row, n, sum);
    }
    StoreRow(plan.dtype, sum, tokens, token * n, n);
  }
}

// rows[entry] = its token, times its probability where it is given. Rows without an entry stay.
void SpreadTokens(const Routes& plan, const KernelArgs& args, const void* tokens,
                  const Factors& probs, void* rows) {
  const int64_t n = plan.width;
  float* const row = plan.row(args);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    if (entry.row >= plan.rows) continue;
    LoadNumbers(plan.dtype, tokens, entry.token * n, n, row);
    if (probs.given()) ScaleRow(row, probs.At(args, entry.prob), n, row);
    StoreRow(plan.dtype, row, rows, entry.row * n, n);
  }
}

// rows[entry] = its token, byte by byte, of any type.
void CopyTokens(const Routes& plan, const KernelArgs& args, int64_t row_bytes) {
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    if (entry.row >= plan.rows) continue;
    std::copy_n(static_cast<const std::byte*>(args.in[0]) + entry.token * row_bytes, row_bytes,
                static_cast<std::byte*>(args.out[0]) + entry.row * row_bytes);
  }
}

// ---- what plans share ----

// "tokens" or "rows": [.., H] of floats; sets the width and the type.
int64_t ReadMatrix(Check& check, const OpContext& op, std::string_view port, TypeSet types,
                   Routes& plan) {
  const auto [height, width] = check.Matrix(port, types);
  plan.width = width;
  plan.dtype = op.in(port).dtype;
  return height;
}

void ReadMapPort(Check& check, const OpContext& op, std::string_view port, Routes& plan) {
  if (SlotIfFed(op, port) < 0) return;
  const auto [tokens, experts] = check.Matrix(port, TypeSet(DataType::kBool) | DataType::kInt8);
  check.That(tokens == plan.tokens, "\"{}\" has {} rows, expected {} for the tokens", port, tokens,
             plan.tokens);
  plan.map = op.slot(port);
  plan.experts = experts;
}

// A floating input [tokens, choices] or [tokens, experts].
void ReadProbs(Check& check, const OpContext& op, std::string_view port, int64_t columns,
               Routes& plan) {
  plan.probs = check.Take(Factors::Of(op, port));
  if (!plan.probs.given()) return;
  check.TypeAndShape(port, kFloats, {plan.tokens, columns});
  plan.probs_type = op.in(port).dtype;
}

// Entries for a number of indices: a choice for each part of the tokens, or a capacity for each of
// the experts.
void SetEntries(Check& check, int64_t indices, bool padded, Routes& plan) {
  plan.padded = padded;
  int64_t& share = padded ? plan.capacity : plan.choices;
  const int64_t parts = padded ? plan.experts : plan.tokens;
  check.That(parts > 0 ? indices % parts == 0 : indices == 0,
             "{} indices do not divide among {} {}", indices, parts, padded ? "experts" : "tokens");
  share = parts > 0 && check.ok() ? indices / parts : 0;
}

// ---- MoeTokenPermute, MoeTokenPermuteGrad ----

struct Permute : Routes {
  int64_t row_bytes = 0;
};

Permute PlanPermute(const OpContext& op, Check& check) {
  Permute plan;
  const TensorType &tokens = op.in("tokens"), &indices = op.in("indices");
  const auto element = static_cast<int64_t>(check.Take(ElementBytes(op, tokens.dtype)));
  check.Rank("tokens", kFloats | DataType::kInt8, 2);
  check.RankBetween("indices", kIndices, 1, 2);
  if (!check.ok()) return plan;
  plan.tokens = tokens.shape[0];
  plan.width = tokens.shape[1];
  plan.row_bytes = element * plan.width;
  plan.choices = indices.shape.rank() == 1 ? 1 : indices.shape[1];
  check.That(indices.shape[0] == plan.tokens, "\"indices\" is {}, expected {} rows for tokens {}",
             indices, plan.tokens, tokens);
  plan.indices = Integers::OfSlot(op, op.slot("indices"));
  const int64_t wanted = op.attr_int("num_out_tokens"), count = plan.tokens * plan.choices;
  plan.rows = wanted > 0 ? std::min(wanted, count) : std::max<int64_t>(wanted + count, 0);
  plan.outputs = {{tokens.dtype, {plan.rows, plan.width}}, {DataType::kInt32, {count}}};
  TakeRoom(plan);
  return plan;
}

// Expert ids may be any integers, so entries are sorted, not counted.
Status RunPermute(const Permute& plan, const KernelArgs& args) {
  Entry* const entries = plan.entries(args);
  const int64_t count = plan.count();
  for (int64_t i = 0; i < count; ++i) {
    entries[i] = {i / plan.choices, plan.indices.At(args, i), i};
  }
  std::sort(entries, entries + count, [](const Entry& a, const Entry& b) {
    return a.row != b.row ? a.row < b.row : a.prob < b.prob;
  });
  auto* const rows = static_cast<int32_t*>(args.out[1]);
  for (int64_t i = 0; i < count; ++i) {
    entries[i].row = i;
    rows[entries[i].prob] = static_cast<int32_t>(i);
  }
  CopyTokens(plan, args, plan.row_bytes);
  return Status();
}

Routes PlanPermuteGrad(const OpContext& op, Check& check) {
  Routes plan;
  plan.rows = ReadMatrix(check, op, "permuted_output_grad", kFloats, plan);
  check.Rank("sorted_indices", kIndices, 1);
  plan.choices = check.Between("num_topk", 1, INT32_MAX);
  if (!check.ok()) return plan;
  plan.indices = Integers::OfSlot(op, op.slot("sorted_indices"));
  check.That(plan.indices.count() % plan.choices == 0,
             "{} sorted_indices do not divide into tokens with num_topk {}", plan.indices.count(),
             plan.choices);
  plan.tokens = plan.indices.count() / plan.choices;
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}}};
  TakeRoom(plan);
  return plan;
}

Status RunPermuteGrad(const Routes& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(ReadEntries(plan, args));
  SumRows(plan, args, args.in[0], {}, args.out[0]);
  return Status();
}

// ---- MoeTokenUnpermute, MoeTokenUnpermuteGrad ----

// Without probabilities each row is a token.
Routes PlanUnpermuteSizes(const OpContext& op, Check& check) {
  Routes plan;
  plan.rows = ReadMatrix(check, op, "permuted_tokens", kFloats, plan);
  check.Rank("sorted_indices", kIndices, 1);
  if (!check.ok()) return plan;
  plan.indices = Integers::OfSlot(op, op.slot("sorted_indices"));
  plan.choices = 1;
  plan.tokens = plan.indices.count();
  if (SlotIfFed(op, "probs") >= 0) {
    const auto [tokens, choices] = check.Matrix("probs", kFloats);
    check.That(tokens * choices == plan.tokens,
               "probs are {}, expected as many as the {} "
               "sorted_indices",
               op.in("probs"), plan.tokens);
    plan.tokens = tokens;
    plan.choices = choices;
    ReadProbs(check, op, "probs", choices, plan);
  }
  TakeRoom(plan);
  return plan;
}

Routes PlanUnpermute(const OpContext& op, Check& check) {
  Routes plan = PlanUnpermuteSizes(op, check);
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}}};
  return plan;
}

Status RunUnpermute(const Routes& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(ReadEntries(plan, args));
  SumRows(plan, args, args.in[0], plan.probs, args.out[0]);
  return Status();
}

Routes PlanUnpermuteGrad(const OpContext& op, Check& check) {
  Routes plan = PlanUnpermuteSizes(op, check);
  check.TypeAndShape("unpermuted_tokens_grad", plan.dtype, {plan.tokens, plan.width});
  const Shape probs = plan.probs.given() ? op.in("probs").shape : Shape{0};
  plan.outputs = {op.in("permuted_tokens"), {plan.probs_type, probs}};
  return plan;
}

// The gradients of rows and of probabilities, from the gradient of tokens and, for the latter, the
// rows themselves.
void SpreadGradients(const Routes& plan, const KernelArgs& args, const void* tokens,
                     const void* rows) {
  ClearOutput(plan, args, 0);
  SpreadTokens(plan, args, tokens, plan.probs, args.out[0]);
  if (!plan.probs.given()) return;
  ClearOutput(plan, args, 1);
  const int64_t n = plan.width;
  float *token = plan.sum(args), *row = plan.row(args);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    if (entry.row >= plan.rows) continue;
    LoadNumbers(plan.dtype, tokens, entry.token * n, n, token);
    LoadNumbers(plan.dtype, rows, entry.row * n, n, row);
    const auto slope = static_cast<float>(SumOfProducts(token, row, n));
    StoreNumbers(plan.probs_type, &slope, args.out[1], entry.prob, 1);
  }
}

Status RunUnpermuteGrad(const Routes& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(ReadEntries(plan, args));
  SpreadGradients(plan, args, args.in[1], args.in[0]);
  return Status();
}

// ---- with a routing map ----

Permute PlanPermuteWithMap(const OpContext& op, Check& check) {
  Permute plan;
  plan.tokens = ReadMatrix(check, op, "tokens", kFloats, plan);
  ReadMapPort(check, op, "routing_map", plan);
  ReadProbs(check, op, "probs", plan.experts, plan);
  if (!check.ok()) return plan;
  plan.row_bytes = plan.width * static_cast<int64_t>(check.Take(ElementBytes(op, plan.dtype)));
  const bool padded = op.attr_bool("drop_and_pad");
  const int64_t wanted = check.Between("num_out_tokens", 0, INT32_MAX);
  const int64_t parts = padded ? plan.experts : plan.tokens;
  SetEntries(check, parts > 0 ? wanted / parts * parts : 0, padded, plan);
  check.That(plan.capacity <= plan.tokens && plan.choices <= plan.experts,
             "num_out_tokens {} is more than {} tokens with {} experts have", wanted, plan.tokens,
             plan.experts);
  plan.rows = plan.count();
  plan.outputs = {{plan.dtype, {plan.rows, plan.width}},
                  {plan.probs_type, {plan.probs.given() ? plan.rows : 0}},
                  {DataType::kInt32, {plan.rows}}};
  TakeRoom(plan);
  return plan;
}

// The rows of an expert: its tokens, and as many others as its capacity has places left.
void FillCapacities(const Routes& plan, const KernelArgs& args) {
  const auto* map = static_cast<const uint8_t*>(args.in[plan.map]);
  Entry* to = plan.entries(args);
  for (int64_t e = 0; e < plan.experts; ++e) {
    int64_t left = plan.capacity;
    for (const bool chosen : {true, false}) {
      for (int64_t t = 0; t < plan.tokens && left > 0; ++t) {
        const int64_t at = t * plan.experts + e;
        if ((map[at] != 0) != chosen) continue;
        *to = {t, to - plan.entries(args), at};
        ++to;
        --left;
      }
    }
  }
}

// The probability of an entry as element `at` of `out`, where probabilities are given.
void StoreProb(const Routes& plan, const KernelArgs& args, const Entry& entry, void* out,
               int64_t at) {
  if (!plan.probs.given()) return;
  const float prob = plan.probs.At(args, entry.prob);
  StoreNumbers(plan.probs_type, &prob, out, at, 1);
}

Status RunPermuteWithMap(const Permute& plan, const KernelArgs& args) {
  if (plan.padded) {
    FillCapacities(plan, args);
  } else {
    NPUMESH_RETURN_IF_ERROR(ReadMap(plan, args));
    SortByExpert(plan, args);
  }
  CopyTokens(plan, args, plan.row_bytes);
  auto* const indices = static_cast<int32_t*>(args.out[2]);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    indices[i] = static_cast<int32_t>(plan.padded ? entry.token : entry.row);
    StoreProb(plan, args, entry, args.out[1], entry.row);
  }
  return Status();
}

struct MapGrad : Routes {
  int probs_grad = -1;  // slot
};

MapGrad PlanPermuteWithMapGrad(const OpContext& op, Check& check) {
  MapGrad plan;
  plan.rows = ReadMatrix(check, op, "permuted_token_output_grad", kFloats, plan);
  check.Rank("sorted_indices", kIndices, 1);
  plan.tokens = check.Between("tokens_num", 0, INT32_MAX);
  ReadMapPort(check, op, "routing_map_optional", plan);
  const int64_t experts = check.Between("num_experts", 1, INT32_MAX);
  check.That(plan.map < 0 || plan.experts == experts,
             "\"routing_map_optional\" has {} columns, expected num_experts {}", plan.experts,
             experts);
  if (!check.ok()) return plan;
  plan.experts = experts;
  plan.indices = Integers::OfSlot(op, op.slot("sorted_indices"));
  check.That(plan.indices.count() == plan.rows, "{} sorted_indices for {} rows",
             plan.indices.count(), plan.rows);
  SetEntries(check, plan.indices.count(), op.attr_bool("padded_mode"), plan);
  plan.probs_grad = SlotIfFed(op, "permuted_probs_output_grad_optional");
  const bool probs = plan.probs_grad >= 0;
  check.TypeAndShape("permuted_probs_output_grad_optional", kFloats, {plan.rows});
  check.That(!probs || plan.map >= 0 || plan.padded,
             "the gradient of probabilities needs \"routing_map_optional\"");
  if (probs) plan.probs_type = op.in(plan.probs_grad).dtype;
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}},
                  {plan.probs_type, probs ? Shape{plan.tokens, plan.experts} : Shape{0}}};
  TakeRoom(plan);
  return plan;
}

Status RunPermuteWithMapGrad(const MapGrad& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(ReadEntries(plan, args));
  SumRows(plan, args, args.in[0], {}, args.out[0]);
  if (plan.probs_grad < 0) return Status();
  ClearOutput(plan, args, 1);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    float slope = 0;
    LoadNumbers(plan.probs_type, args.in[plan.probs_grad], entry.row, 1, &slope);
    StoreNumbers(plan.probs_type, &slope, args.out[1], entry.prob, 1);
  }
  return Status();
}

// The shape that tokens get back: two numbers.
void ReadRestored(Check& check, const OpContext& op, Routes& plan) {
  const std::vector<int64_t> shape = op.attr_ints("restore_shape");
  check.That(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0,
             "restore_shape has {} numbers, expected the tokens and their width", shape.size());
  if (!check.ok()) return;
  plan.tokens = shape[0];
  plan.width = shape[1];
}

// What both directions of unpermuting with a map read. REQUIRES: tokens and rows are set.
void ReadMapAndProbs(Check& check, const OpContext& op, std::string_view indices, Routes& plan) {
  ReadMapPort(check, op, "routing_map", plan);
  const bool padded = op.attr_bool("drop_and_pad");
  if (padded && SlotIfFed(op, "probs") >= 0) plan.experts = check.Matrix("probs", kFloats).width;
  check.That(!padded || plan.experts > 0,
             "drop_and_pad is true, expected \"routing_map\" or \"probs\", which have a column for "
             "each expert");
  ReadProbs(check, op, "probs", plan.experts, plan);
  check.That(padded || !plan.probs.given() || plan.map >= 0,
             "\"probs\" are fed without \"routing_map\"");
  if (!check.ok()) return;
  plan.indices = Integers::OfSlot(op, op.slot(indices));
  SetEntries(check, plan.indices.count(), padded, plan);
  TakeRoom(plan);
}

Routes PlanUnpermuteWithMap(const OpContext& op, Check& check) {
  Routes plan;
  plan.rows = ReadMatrix(check, op, "permuted_tokens", kFloats, plan);
  const int64_t width = plan.width;
  check.Rank("sorted_indices", DataType::kInt32, 1);
  ReadRestored(check, op, plan);
  check.That(plan.width == width, "restore_shape ends with {}, permuted_tokens are {} wide",
             plan.width, width);
  ReadMapAndProbs(check, op, "sorted_indices", plan);
  check.That(plan.indices.count() == plan.rows, "{} sorted_indices for {} permuted_tokens",
             plan.indices.count(), plan.rows);
  const TensorType indices = {DataType::kInt32, {plan.rows}};
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}},
                  indices,
                  indices,
                  {plan.probs_type, {plan.probs.given() ? plan.rows : 0}}};
  return plan;
}

// The entries as two lists, by token; of a capacity the probabilities by row, else by entry.
Status RunUnpermuteWithMap(const Routes& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(ReadEntries(plan, args));
  SumRows(plan, args, args.in[0], plan.probs, args.out[0]);
  auto *rows = static_cast<int32_t*>(args.out[1]), *tokens = static_cast<int32_t*>(args.out[2]);
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Entry& entry = plan.entries(args)[i];
    rows[i] = static_cast<int32_t>(entry.row);
    tokens[i] = static_cast<int32_t>(entry.token);
    StoreProb(plan, args, entry, args.out[3], plan.padded ? entry.row : i);
  }
  return Status();
}

struct UnpermuteMapGrad : Routes {
  int rows_slot = -1;  // permuted_tokens
};

UnpermuteMapGrad PlanUnpermuteWithMapGrad(const OpContext& op, Check& check) {
  UnpermuteMapGrad plan;
  plan.tokens = ReadMatrix(check, op, "unpermuted_tokens_grad", kFloats, plan);
  for (const std::string_view port : {"out_index", "permute_token_id"}) {
    check.Rank(port, DataType::kInt32, 1);
  }
  check.Shape("permute_token_id", op.in("out_index").shape);
  ReadMapAndProbs(check, op, "out_index", plan);
  plan.rows = plan.indices.count();
  plan.rows_slot = SlotIfFed(op, "permuted_tokens");
  check.TypeAndShape("permuted_tokens", plan.dtype, {plan.rows, plan.width});
  check.That(!plan.probs.given() || plan.rows_slot >= 0,
             "\"probs\" are fed without \"permuted_tokens\", of which their gradient is made");
  const Shape probs = plan.probs.given() ? op.in("probs").shape : Shape{0};
  plan.outputs = {{plan.dtype, {plan.rows, plan.width}}, {plan.probs_type, probs}};
  return plan;
}

// Of capacities the two lists of the forward call say entry by entry row and token.
Status RunUnpermuteWithMapGrad(const UnpermuteMapGrad& plan, const KernelArgs& args) {
  if (!plan.padded) {
    NPUMESH_RETURN_IF_ERROR(ReadRows(plan, args));
  } else {
    const auto* tokens = static_cast<const int32_t*>(args.in[2]);
    for (int64_t i = 0; i < plan.count(); ++i) {
      const int64_t row = plan.indices.At(args, i), token = tokens[i];
      if (row < 0 || row >= plan.rows) return OutOfRange(plan, i, row, plan.rows);
      if (token < 0 || token >= plan.tokens) return OutOfRange(plan, i, token, plan.tokens);
      plan.entries(args)[i] = {token, row, token * plan.experts + row / plan.capacity};
    }
  }
  SpreadGradients(plan, args, args.in[0], plan.rows_slot < 0 ? nullptr : args.in[plan.rows_slot]);
  return Status();
}

}  // namespace

void RegisterMoeTokenOps(OpRegistry& registry) {
  registry.Add(Define<PlanPermute, RunPermute>(
      "MoeTokenPermute(tokens, indices; num_out_tokens=0, padded_mode==false) -> permute_tokens, "
      "sorted_indices"));
  registry.Add(Define<PlanPermuteGrad, RunPermuteGrad>(
      "MoeTokenPermuteGrad(permuted_output_grad, sorted_indices; num_topk:int, "
      "padded_mode==false) -> input_grad"));
  registry.Add(Define<PlanUnpermute, RunUnpermute>(
      "MoeTokenUnpermute(permuted_tokens, sorted_indices, probs?; padded_mode==false, "
      "restore_shape=[]) -> unpermuted_tokens"));
  registry.Add(Define<PlanUnpermuteGrad, RunUnpermuteGrad>(
      "MoeTokenUnpermuteGrad(permuted_tokens, unpermuted_tokens_grad, sorted_indices, probs?; "
      "padded_mode==false, restore_shape=[1,1]) -> permuted_tokens_grad, probs_grad"));
  registry.Add(Define<PlanPermuteWithMap, RunPermuteWithMap>(
      "MoeTokenPermuteWithRoutingMap(tokens, routing_map, probs?; num_out_tokens:int, "
      "drop_and_pad=false) -> permute_tokens, permute_probs, sorted_indices"));
  registry.Add(Define<PlanPermuteWithMapGrad, RunPermuteWithMapGrad>(
      "MoeTokenPermuteWithRoutingMapGrad(permuted_token_output_grad, "
      "permuted_probs_output_grad_optional?, sorted_indices, routing_map_optional?; "
      "num_experts:int, tokens_num:int, padded_mode=false) -> tokens_grad_out, "
      "probs_grad_out_optional"));
  registry.Add(Define<PlanUnpermuteWithMap, RunUnpermuteWithMap>(
      "MoeTokenUnpermuteWithRoutingMap(permuted_tokens, sorted_indices, routing_map?, probs?; "
      "drop_and_pad=false, restore_shape=[]) -> unpermuted_tokens, out_index, permute_token_id, "
      "permute_probs"));
  registry.Add(Define<PlanUnpermuteWithMapGrad, RunUnpermuteWithMapGrad>(
      "MoeTokenUnpermuteWithRoutingMapGrad(unpermuted_tokens_grad, out_index, permute_token_id, "
      "routing_map?, permuted_tokens?, probs?; drop_and_pad=false, restore_shape=[]) -> "
      "permuted_tokens_grad, probs_grad"));
}

}  // namespace npumesh
