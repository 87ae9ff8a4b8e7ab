#include "graph/ops/toolbox/product/panel_product.h"

#include <algorithm>

#include "graph/ops/toolbox/product/panel_packing.h"
#include "graph/ops/toolbox/product/panel_tiles.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/row_math.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// Most places of k in a block. More share the reads and writes of y; the panel's part should stay
// in the second cache. Measured with `bench_products`.
constexpr int64_t kDepth = 768;
constexpr int64_t kLine = 16;  // floats
// From so many tiles of rows on, a panel is widened once and not by each of them: 128 rows of
// float16 take as long as of float32 so (AVX2, `bench_half`).
constexpr int64_t kWidenOnce = 3;
// Rows that must fit into the second cache with all their places of k; otherwise places of k are
// packed in turn, for more rows: fewer would read all panels too often.
constexpr int64_t kFewRows = 48;
constexpr int64_t kFloatBytes = sizeof(float);
// From so many rows for each thread on, threads share rows out, not columns: then none packs rows
// that another has packed, and the weights, which all read, come from the cache that they share.
constexpr int64_t kRowsOfThread = 32;
// From so many tiles of rows on, each asks for its part of the next panel, which the first tile
// would otherwise wait for. (Between tiles, all lines of a part at once, this took longer than not
// asking.)
constexpr int64_t kTilesToAsk = 2;

// Packs `rows` rows from `row` on, as PanelOperands wants them.
void PackTile(const PanelKernels& kernels, const FloatMatrix& x, int64_t row, int64_t rows,
              int64_t begin, int64_t depth, float* to) {
  if (!x.transposed) {
    return kernels.transpose(x.data + row * x.stride + begin, x.stride, rows, depth, to, rows);
  }
  const float* from = x.data + begin * x.stride + row;
  for (int64_t i = 0; i < depth; ++i, from += x.stride, to += rows) std::copy_n(from, rows, to);
}

// The pairs of places of a packed tile of bfloat16 numbers, in the place of their floats: the first
// one in the high half of 32 bits, beside the last one of an odd depth a zero.
void PairPlaces(int64_t rows, int64_t depth, float* tile) {
  auto* const bits = reinterpret_cast<uint32_t*>(tile);
  const int64_t whole = depth / 2;
  for (int64_t i = 0; i < whole; ++i) {
    const uint32_t* const from = bits + 2 * i * rows;
    for (int64_t r = 0; r < rows; ++r) bits[i * rows + r] = from[r] | from[rows + r] >> 16;
  }
  if (depth % 2 != 0) std::copy_n(bits + 2 * whole * rows, rows, bits + whole * rows);
}

// A block of a panel: `count` columns of the right operand from `column` on; those that lack are
// zero.
void PackColumns(const PanelKernels& kernels, const FloatMatrix& w, int64_t begin, int64_t depth,
                 int64_t column, int64_t count, float* to) {
  const int64_t lacking = kernels.columns - count;
  for (int64_t i = 0; lacking > 0 && i < depth; ++i) {
    std::fill_n(to + i * kernels.columns + count, lacking, 0.0f);
  }
  if (w.transposed) {
    const float* const from = w.data + column * w.stride + begin;
    return kernels.transpose(from, w.stride, count, depth, to, kernels.columns);
  }
  const float* from = w.data + begin * w.stride + column;
  for (int64_t i = 0; i < depth; ++i, from += w.stride, to += kernels.columns) {
    std::copy_n(from, count, to);
  }
}

void CopyRows(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
              int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    std::copy_n(from, columns, to);
  }
}

}  // namespace

uint64_t Panels::row_bytes() const {
  return static_cast<uint64_t>(columns * together * BitsOf(dtype) / 8);
}

std::byte* Panels::at(int64_t index, int64_t row) const {
  return bytes.get() + static_cast<uint64_t>(index * rows + row) * row_bytes();
}

std::shared_ptr<const Panels> PackPanels(const Tensor& weight, int64_t k, int64_t n,
                                         bool transposed, PackedWeights* shared) {
  const PanelKernels& kernels = ProcessorPanelKernels();
  const int64_t columns = kernels.columns * (kernels.of(weight.dtype()).two != nullptr ? 2 : 1);
  const std::string form =
      fmt::format("panels of {}: {} x {}{}", columns, k, n, transposed ? " transposed" : "");
  return PackOnce(shared, weight, form, [&] {
    const auto pack = [&](auto packing) { return std::make_shared<const Panels>(packing.Run()); };
    switch (weight.dtype()) {
      case DataType::kFloat:
        return pack(PanelPacking<float>(weight, k, n, transposed, columns));
      case DataType::kBfloat16:
        return pack(PanelPacking<uint16_t, 2>(weight, k, n, transposed, columns));
      case DataType::kFloat16:
        return pack(PanelPacking<uint16_t>(weight, k, n, transposed, columns));
      default:
        return pack(PanelPacking<uint8_t>(weight, k, n, transposed, columns));
    }
  });
}

PanelProduct::PanelProduct(int64_t m, int64_t n, int64_t k)
    : kernels_(&ProcessorPanelKernels()),
      m_(m),
      n_(n),
      k_(k),
      panels_(CeilDiv(n, kernels_->columns)),
      depth_(RoundedUp(EqualParts(k, kDepth), 2)) {
  const int64_t packed = PackedRowBytes() / kFloatBytes;
  const int64_t all_k = packed / k;  // rows of which all places of k are packed
  const bool fits = all_k >= std::min(m, kFewRows);
  span_ = fits ? k : depth_;
  const int64_t most = std::max(packed / span_, kernels_->most_rows);
  rows_ = EqualParts(m, most);
}

int64_t PanelProduct::Columns(const Span& panels) const {
  const int64_t first = panels.first * kernels_->columns;
  return std::min(panels.count * kernels_->columns, n_ - first);
}

int64_t PanelProduct::SideBySide(const Operands& operands) const {
  return operands.packed == nullptr ? 1 : operands.packed->columns / kernels_->columns;
}

int64_t PanelProduct::room_floats() const {
  return RoundedUp(rows_ * span_, kLine) + RoundedUp((depth_ + rows_) * kernels_->columns, kLine);
}

bool PanelProduct::TakesPairs(const Operands& operands) const {
  return kernels_->pairs.two != nullptr && operands.bfloat16 && operands.packed != nullptr &&
         operands.packed->dtype == DataType::kBfloat16;
}

const PanelKernels::OfType& PanelProduct::KernelsOf(const Operands& operands) const {
  if (TakesPairs(operands)) return kernels_->pairs;
  return operands.packed == nullptr ? kernels_->float32 : kernels_->of(operands.packed->dtype);
}

bool PanelProduct::MultipliesTwo(const Operands& operands, const Block& block) const {
  return SideBySide(operands) == 2 && block.rows <= KernelsOf(operands).two_to;
}

Tiles PanelProduct::TilesOf(const Operands& operands, const Block& block) const {
  return {block.rows, kernels_->most_rows / (MultipliesTwo(operands, block) ? 2 : 1)};
}

void PanelProduct::PackRows(const Operands& operands, const Block& block, float* to) const {
  const Tiles tiles = TilesOf(operands, block);
  int64_t row = block.row;
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t rows = tiles.rows(tile);
    PackTile(*kernels_, operands.x, row, rows, block.begin, block.depth, to);
    if (TakesPairs(operands)) PairPlaces(rows, block.depth, to);
    to += rows * block.depth;
    row += rows;
  }
}

PanelProduct::PanelView PanelProduct::ViewPanel(const Operands& operands, const Block& block,
                                                const Span& panels, float* room) const {
  const int64_t columns = kernels_->columns;
  if (const Panels* const packed = operands.packed; packed != nullptr) {
    const int64_t beside = SideBySide(operands);
    const std::byte* const row = packed->at(panels.first / beside, block.begin / packed->together);
    const auto bytes = static_cast<int64_t>(packed->row_bytes()) / beside;
    return {row + panels.first % beside * bytes, packed->columns * packed->together};
  }
  const FloatMatrix& w = operands.w;
  const int64_t column = panels.first * columns, count = Columns(panels);
  const bool once = block.rows <= kernels_->most_rows;  // that it is read
  if (once && !w.transposed && kernels_->whole(kernels_->float32, count)) {
    return {w.data + block.begin * w.stride + column, w.stride};
  }
  PackColumns(*kernels_, w, block.begin, block.depth, column, count, room);
  return {room, columns};
}

Ahead PanelProduct::AheadOf(const Operands& operands, const Block& block, const Span& panels,
                            int64_t tiles) const {
  const Panels* const packed = operands.packed;
  if (packed == nullptr || tiles < kTilesToAsk) return {};
  const int64_t beside = SideBySide(operands);
  if (panels.first % beside > 0) return {};  // the one before has asked for both
  const int64_t rows = CeilDiv(block.depth, packed->together);
  const int64_t bytes = rows * static_cast<int64_t>(packed->row_bytes());
  const int64_t lines = CeilDiv(bytes, tiles * Ahead::kLine);
  const int64_t every = std::max<int64_t>(rows / lines, 1);
  // Blocks lie as they are multiplied, unless places of k are packed in turn.
  const int64_t panel = panels.first / beside, row = block.begin / packed->together;
  return {span_ == k_ ? packed->at(panel, row + rows) : packed->at(panel + 1, row), every,
          CeilDiv(rows, every) * Ahead::kLine};
}

void PanelProduct::Multiply(const Operands& operands, const Block& block, const Span& panels,
                            const float* x, float* room) const {
  const int64_t columns = kernels_->columns, count = Columns(panels);
  const bool two = count == 2 * columns && MultipliesTwo(operands, block);
  if (panels.count == 2 && !two) {
    Multiply(operands, block, {panels.first}, x, room);
    return Multiply(operands, block, {panels.first + 1}, x, room);
  }
  Sums sums{operands.y + block.row * operands.y_stride + panels.first * columns, operands.y_stride,
            block.begin > 0 || operands.adds};
  const bool whole = two || kernels_->whole(KernelsOf(operands), count);
  float* const edge = whole ? nullptr : room + depth_ * columns;
  if (edge != nullptr) {
    if (operands.adds && block.begin == 0) {
      CopyRows(sums.y, sums.stride, block.rows, count, edge, columns);
    }
    sums.y = edge;
    sums.stride = columns;
  }
  MultiplyTiles(operands, block, panels, x, room, sums);
  if (block.begin + block.depth == k_) Finish(operands, block, panels, edge);
}

void PanelProduct::MultiplyTiles(const Operands& operands, const Block& block, const Span& panels,
                                 const float* x, float* room, Sums sums) const {
  const PanelView view = ViewPanel(operands, block, panels, room);
  const PanelKernels::OfType* kernels = &KernelsOf(operands);
  const Tiles tiles = TilesOf(operands, block);
  // The first tile widens the panel for those after it, when they are enough.
  const bool widens =
      kernels->widens && !MultipliesTwo(operands, block) && tiles.count >= kWidenOnce;
  const int64_t vectors = CeilDiv(Columns(panels), kernels_->lanes);
  // Changed field by field: a copy would wait for the store of each.
  PanelOperands of_tile{x,
                        view.data,
                        view.stride,
                        block.depth,
                        widens ? room : nullptr,
                        AheadOf(operands, block, panels, tiles.count)};
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t rows = tiles.rows(tile);
    const auto* const table = panels.count == 2 ? kernels->two : kernels->rows[vectors - 1];
    table[rows - 1](of_tile, sums.adds, sums.y, sums.stride);
    if (widens && tile == 0) {
      of_tile.panel = room;
      of_tile.panel_stride = kernels_->columns;
      of_tile.widened = nullptr;
      kernels = &kernels_->float32;
    }
    x += rows * block.depth;
    of_tile.x = x;
    of_tile.ahead.data += of_tile.ahead.bytes;
    sums.y += rows * sums.stride;
  }
}

int64_t PanelProduct::StoredPanels(const Operands& operands, int64_t panel, int64_t last) const {
  if (operands.packed != nullptr) return 0;
  const int64_t most = operands.w.transposed ? 1 : PanelKernels::kMostWide;
  const int64_t whole = n_ / kernels_->columns;
  return std::clamp<int64_t>(std::min(whole, last) - panel, 0, most);
}

void PanelProduct::MultiplyStored(const Operands& operands, const Block& block, const Span& panels,
                                  const float* x) const {
  const FloatMatrix& w = operands.w;
  const int64_t column = panels.first * kernels_->columns;
  const auto multiply = w.transposed ? kernels_->turned : kernels_->wide[panels.count - 1];
  const float* const from =
      w.data + (w.transposed ? column * w.stride + block.begin : block.begin * w.stride + column);
  float* const y = operands.y + block.row * operands.y_stride + column;
  multiply({.x = x, .panel = from, .panel_stride = w.stride, .k = block.depth},
           block.begin > 0 || operands.adds, y);
  if (block.begin + block.depth == k_) Finish(operands, block, panels, nullptr);
}

void PanelProduct::Finish(const Operands& operands, const Block& block, const Span& panels,
                          const float* edge) const {
  const int64_t first = panels.first * kernels_->columns, count = Columns(panels);
  float* y = operands.y + block.row * operands.y_stride + first;
  if (edge != nullptr) {
    CopyRows(edge, kernels_->columns, block.rows, count, y, operands.y_stride);
  }
  if (operands.bias == nullptr) return;
  for (int64_t r = 0; r < block.rows; ++r, y += operands.y_stride) {
    AddRow(y, operands.bias + first, count, y);
  }
}

// By whole rows: panel by panel it took 0.1 ms longer for 128 rows of 768, because rows of one
// panel lie a page apart.
void PanelProduct::AddResidual(const Operands& operands, int64_t row, int64_t rows, int64_t first,
                               int64_t last) const {
  const int64_t column = first * kernels_->columns;
  const int64_t count = std::min(last * kernels_->columns, n_) - column;
  for (int64_t r = row; r < row + rows; ++r) {
    const int64_t at = r * operands.y_stride + column;
    AddRow(operands.y + at, operands.residual + at, count, operands.y + at);
  }
}

void PanelProduct::RunPart(const Operands& operands, const Part& part, float* room) const {
  float* const x = room;
  float* const rest = room + RoundedUp(rows_ * span_, kLine);
  for (int64_t row = part.row; row < part.end_row; row += rows_) {
    const int64_t rows = std::min(rows_, part.end_row - row);
    for (int64_t span = 0; span < k_; span += span_) {
      const int64_t end = std::min(span + span_, k_);
      const auto each_block = [&](const auto& body) {
        for (int64_t begin = span; begin < end; begin += depth_) {
          body(Block{row, rows, begin, std::min(depth_, end - begin)}, x + rows * (begin - span));
        }
      };
      each_block([&](const Block& block, float* to) { PackRows(operands, block, to); });
      for (Span panels{part.panel}; panels.first < part.end_panel; panels.first += panels.count) {
        const int64_t left = part.end_panel - panels.first;
        const int64_t stored = rows == 1 ? StoredPanels(operands, panels.first, part.end_panel) : 0;
        panels.count = stored > 0 ? stored : std::min(SideBySide(operands), left);
        each_block([&](const Block& block, const float* from) {
          stored > 0 ? MultiplyStored(operands, block, panels, from)
                     : Multiply(operands, block, panels, from, rest);
        });
      }
    }
    if (operands.residual != nullptr) {
      AddResidual(operands, row, rows, part.panel, part.end_panel);
    }
  }
}

int64_t PanelProduct::RowParts(const Operands& operands, int threads) const {
  if (operands.packed == nullptr || KernelsOf(operands).widens) return 1;
  int64_t parts = 1;
  while (threads % (2 * parts) == 0 && m_ >= 2 * parts * kRowsOfThread) parts *= 2;
  return parts;
}

void PanelProduct::Run(const Operands& operands, int threads, float* room) const {
  const int64_t row_parts = RowParts(operands, threads), beside = SideBySide(operands);
  const int64_t panel_parts = std::min(threads / row_parts, CeilDiv(panels_, beside));
  RunParts(static_cast<int>(row_parts * panel_parts), [&](int part) {
    const RangeOfPart rows(part / panel_parts, row_parts, m_, 1);
    const RangeOfPart panels(part % panel_parts, panel_parts, panels_, beside);
    RunPart(operands, {rows.begin, rows.end, panels.begin, panels.end},
            room + part * room_floats());
  });
}

}  // namespace npumesh
