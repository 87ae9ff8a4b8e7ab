// RotaryMulGrad and RotaryPositionEmbeddingGrad. Ops reference 5.19.
//
// Forwards, y[j] = x[first(j)] cos[j] + sign(j) x[second(j)] sin[j] for each vector, so backwards
// every dy[j] goes to two elements of dx and to one of each table.
#include "graph/ops/infer_checks.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/rope.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

struct Ports {
  std::string_view x;  // empty: not fed
  std::string_view cos;
  std::string_view sin;
  RotaryMode mode = RotaryMode::kHalf;
};

Result<Ports> PortsOf(const OpContext& op) {
  if (op.schema().type == "RotaryMulGrad") return Ports{"x", "r1", "r2", RotaryMode::kHalf};
  const int64_t mode = op.attr_int("mode");
  if (mode < 0 || mode > 3) {
    return Error(Code::kInvalidArgument, "{}: mode {}, expected 0 to 3", op.Who(), mode);
  }
  return Ports{op.has("x") ? "x" : "", "cos", "sin", static_cast<RotaryMode>(mode)};
}

struct Source {
  size_t first = 0;
  size_t second = 0;
  double sign = 1;
};

// Where each element of a rotated vector of `width` elements comes from.
std::vector<Source> SourcesOf(RotaryMode mode, size_t width) {
  std::vector<Source> sources(width);
  const size_t part = mode == RotaryMode::kQuarter ? width / 2 : width;
  for (size_t j = 0; j < width; ++j) {
    const bool low = j % part < part / 2;
    Source& source = sources[j];
    source.first = j;
    source.second = low ? j + part / 2 : j - part / 2;
    source.sign = low ? -1 : 1;
    if (mode == RotaryMode::kInterleave) {
      source.second = j ^ 1;
      source.sign = j % 2 == 0 ? -1 : 1;
    } else if (mode == RotaryMode::kInterleaveHalf) {
      source.first = low ? 2 * j : 2 * (j - width / 2) + 1;
      source.second = low ? 2 * j + 1 : 2 * (j - width / 2);
    }
  }
  return sources;
}

// For each vector of dy the first element of its vector of the tables.
std::vector<size_t> TableStarts(const Shape& dy, const Shape& table) {
  const int rank = dy.rank();
  const auto width = static_cast<size_t>(dy[rank - 1]);
  std::vector<size_t> starts(1, 0);
  for (int d = 0; d < rank - 1; ++d) {
    const int own = d - (rank - table.rank());
    const auto extent = static_cast<size_t>(dy[d]);
    size_t step = own < 0 || table[own] == 1 ? 0 : width;
    for (int below = own + 1; step > 0 && below < table.rank() - 1; ++below) {
      step *= static_cast<size_t>(table[below]);
    }
    std::vector<size_t> next;
    for (const size_t start : starts) {
      for (size_t i = 0; i < extent; ++i) next.push_back(start + i * step);
    }
    starts = std::move(next);
  }
  return starts;
}

Status InferRotaryGrad(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Ports ports, PortsOf(op));
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  if (!ports.x.empty()) NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, ports.x, "dy"));
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, ports.sin, ports.cos));
  const TensorType &dy = op.in("dy"), &cos = op.in(ports.cos);
  const Result<Shape> joined = Broadcast(dy.shape, cos.shape);
  const int parts = ports.mode == RotaryMode::kQuarter ? 4 : 2;
  const bool fits = dy.shape.rank() > 0 && cos.shape.rank() > 0 && joined.ok() &&
                    *joined == dy.shape && dy.shape.dims().back() == cos.shape.dims().back() &&
                    dy.shape.dims().back() % parts == 0;
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: dy is {} and \"{}\" {}; expected a table that broadcasts to it with the same "
                 "last dimension, a multiple of {}",
                 op.Who(), dy.ToString(), ports.cos, cos.ToString(), parts);
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dy.dtype, dy.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, cos.dtype, cos.shape));
  return SetOutput(op, 2, cos.dtype, cos.shape);
}

// The gradients of the tables stay zero without x, and where need_backward is false.
Result<std::unique_ptr<Kernel>> MakeRotaryGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Ports ports, PortsOf(op));
  const bool mul = op.schema().type == "RotaryMulGrad";
  const bool tables = !ports.x.empty() && (!mul || op.attr_bool("need_backward"));
  const auto slot = [&](std::string_view port) { return static_cast<size_t>(op.slot(port)); };
  const Shape& dy = op.in("dy").shape;
  return MakeRealKernel(op, [=, starts = TableStarts(dy, op.in(ports.cos).shape),
                             sources = SourcesOf(ports.mode, static_cast<size_t>(dy.dims().back())),
                             x_slot = tables ? slot(ports.x) : 0, cos_slot = slot(ports.cos),
                             sin_slot = slot(ports.sin), dy_slot = slot("dy")](RealTensors& t) {
    const size_t width = sources.size();
    for (size_t row = 0; row < starts.size(); ++row) {
      for (size_t j = 0; j < width; ++j) {
        const auto [first, second, sign] = sources[j];
        const size_t x = row * width, table = starts[row] + j;
        const double g = t.in[dy_slot][x + j];
        t.out[0][x + first] += g * t.in[cos_slot][table];
        t.out[0][x + second] += sign * g * t.in[sin_slot][table];
        if (!tables) continue;
        t.out[1][table] += g * t.in[x_slot][x + first];
        t.out[2][table] += sign * g * t.in[x_slot][x + second];
      }
    }
    return Status();
  });
}

}  // namespace

void RegisterRotaryGradients(OpRegistry& registry) {
  registry.Add({.schema = {"RotaryMulGrad",
                           {{"x"}, {"r1"}, {"r2"}, {"dy"}},
                           {{"dx"}, {"dr1"}, {"dr2"}},
                           {{"need_backward", AttrValue::Bool(true)}}},
                .infer = InferRotaryGrad,
                .make_kernel = MakeRotaryGrad});
  registry.Add({.schema = {"RotaryPositionEmbeddingGrad",
                           {{"dy"}, {"cos"}, {"sin"}, {"x", PortKind::kOptional}},
                           {{"dx"}, {"dcos"}, {"dsin"}},
                           {{"mode", AttrValue::Int(0)}}},
                .infer = InferRotaryGrad,
                .make_kernel = MakeRotaryGrad});
}

}  // namespace npumesh
