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
// float16 take 1.03 times as long as of float32 so, two tiles of 8 rows 1.06 times, and 1.19 times
// when the first one widens for both (`bench_half`).
constexpr int64_t kWidenOnce = 3;
// Rows that must fit into the second cache with all their places of k; otherwise places of k are
// packed in turn, for more rows: fewer would read all panels too often.
constexpr int64_t kFewRows = 48;
constexpr int64_t kFloatBytes = sizeof(float);
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
  const int64_t columns = ProcessorPanelKernels().columns;
  const std::string form =
      fmt::format("panels of {}: {} x {}{}", columns, k, n, transposed ? " transposed" : "");
  return PackOnce(shared, weight, form, [&] {
    const auto pack = [&](auto element) {
      return PanelPacking<decltype(element)>(weight, k, n, transposed, columns).Run();
    };
    switch (BitsOf(weight.dtype())) {
      case 8:
        return std::make_shared<const Panels>(pack(uint8_t{}));
      case 16:
        return std::make_shared<const Panels>(pack(uint16_t{}));
      default:
        return std::make_shared<const Panels>(pack(float{}));
    }
  });
}

PanelProduct::PanelProduct(int64_t m, int64_t n, int64_t k)
    : kernels_(&ProcessorPanelKernels()),
      m_(m),
      n_(n),
      k_(k),
      panels_(CeilDiv(n, kernels_->columns)),
      depth_(EqualParts(k, kDepth)) {
  const int64_t packed = PackedRowBytes() / kFloatBytes;
  const int64_t all_k = packed / k;  // rows of which all places of k are packed
  const bool fits = all_k >= std::min(m, kFewRows);
  span_ = fits ? k : depth_;
  const int64_t most = std::max(packed / span_, kernels_->most_rows);
  rows_ = EqualParts(m, most);
}

int64_t PanelProduct::Columns(int64_t panel) const {
  return std::min(kernels_->columns, n_ - panel * kernels_->columns);
}

int64_t PanelProduct::room_floats() const {
  return RoundedUp(rows_ * span_, kLine) + RoundedUp((depth_ + rows_) * kernels_->columns, kLine);
}

void PanelProduct::PackRows(const FloatMatrix& x, const Block& block, float* to) const {
  const Tiles tiles(block.rows, kernels_->most_rows);
  int64_t row = block.row;
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t rows = tiles.rows(tile);
    PackTile(*kernels_, x, row, rows, block.begin, block.depth, to);
    to += rows * block.depth;
    row += rows;
  }
}

PanelProduct::PanelView PanelProduct::ViewPanel(const Operands& operands, const Block& block,
                                                int64_t panel, float* room) const {
  const int64_t columns = kernels_->columns;
  if (const Panels* const packed = operands.packed; packed != nullptr) {
    return {packed->dtype, packed->at(panel, block.begin), columns};
  }
  const FloatMatrix& w = operands.w;
  const int64_t column = panel * columns, count = Columns(panel);
  const bool once = block.rows <= kernels_->most_rows;  // that it is read
  if (once && !w.transposed && kernels_->whole(DataType::kFloat, count)) {
    return {DataType::kFloat, w.data + block.begin * w.stride + column, w.stride};
  }
  PackColumns(*kernels_, w, block.begin, block.depth, column, count, room);
  return {DataType::kFloat, room, columns};
}

Ahead PanelProduct::AheadOf(const Operands& operands, const Block& block, int64_t panel,
                            int64_t tiles) const {
  if (operands.packed == nullptr || tiles < kTilesToAsk) return {};
  const auto bytes = block.depth * static_cast<int64_t>(operands.packed->row_bytes());
  const int64_t lines = CeilDiv(bytes, tiles * Ahead::kLine);
  return {operands.packed->at(panel, block.begin + block.depth),
          std::max<int64_t>(block.depth / lines, 1)};
}

void PanelProduct::Multiply(const Operands& operands, const Block& block, int64_t panel,
                            const float* x, float* room) const {
  const int64_t columns = kernels_->columns;
  float* const edge = room + depth_ * columns;
  PanelView view = ViewPanel(operands, block, panel, room);
  const bool whole = kernels_->whole(view.dtype, Columns(panel));
  const bool adds = block.begin > 0 || operands.adds;
  float* y = operands.y + block.row * operands.y_stride + panel * columns;
  int64_t stride = operands.y_stride;
  if (!whole) {
    if (operands.adds && block.begin == 0) {
      CopyRows(y, stride, block.rows, Columns(panel), edge, columns);
    }
    y = edge;
    stride = columns;
  }
  const Tiles tiles(block.rows, kernels_->most_rows);
  Ahead ahead = AheadOf(operands, block, panel, tiles.count);
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t rows = tiles.rows(tile);
    // The first tile widens the panel for those after it, when they are enough.
    const bool widens = view.dtype != DataType::kFloat && tiles.count >= kWidenOnce;
    float* const widened = widens ? room : nullptr;
    const auto multiply = kernels_->of(view.dtype, Columns(panel))[rows - 1];
    multiply({x, view.data, view.stride, block.depth, widened, ahead}, adds, y, stride);
    if (ahead.every > 0) ahead.data += CeilDiv(block.depth, ahead.every) * Ahead::kLine;
    if (widens) view = {DataType::kFloat, room, columns};
    x += rows * block.depth;
    y += rows * stride;
  }
  if (block.begin + block.depth == k_) Finish(operands, block, panel, whole ? nullptr : edge);
}

int64_t PanelProduct::StoredPanels(const Operands& operands, int64_t panel, int64_t last) const {
  if (operands.packed != nullptr) return 0;
  const int64_t most = operands.w.transposed ? 1 : PanelKernels::kMostWide;
  const int64_t whole = n_ / kernels_->columns;
  return std::clamp<int64_t>(std::min(whole, last) - panel, 0, most);
}

void PanelProduct::MultiplyStored(const Operands& operands, const Block& block, int64_t panel,
                                  int64_t count, const float* x) const {
  const FloatMatrix& w = operands.w;
  const int64_t column = panel * kernels_->columns;
  const auto multiply = w.transposed ? kernels_->turned : kernels_->wide[count - 1];
  const float* const from =
      w.data + (w.transposed ? column * w.stride + block.begin : block.begin * w.stride + column);
  float* const y = operands.y + block.row * operands.y_stride + column;
  multiply({x, from, w.stride, block.depth}, block.begin > 0 || operands.adds, y);
  if (operands.bias != nullptr && block.begin + block.depth == k_) {
    AddRow(y, operands.bias + column, count * kernels_->columns, y);
  }
}

void PanelProduct::Finish(const Operands& operands, const Block& block, int64_t panel,
                          const float* edge) const {
  const int64_t first = panel * kernels_->columns, count = Columns(panel);
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

void PanelProduct::RunPanels(const Operands& operands, int64_t first, int64_t last,
                             float* room) const {
  float* const x = room;
  float* const rest = room + RoundedUp(rows_ * span_, kLine);
  for (int64_t row = 0; row < m_; row += rows_) {
    const int64_t rows = std::min(rows_, m_ - row);
    for (int64_t span = 0; span < k_; span += span_) {
      const int64_t end = std::min(span + span_, k_);
      const auto each_block = [&](const auto& body) {
        for (int64_t begin = span; begin < end; begin += depth_) {
          body(Block{row, rows, begin, std::min(depth_, end - begin)}, x + rows * (begin - span));
        }
      };
      each_block([&](const Block& block, float* to) { PackRows(operands.x, block, to); });
      for (int64_t panel = first, count = 1; panel < last; panel += count) {
        const int64_t stored = rows == 1 ? StoredPanels(operands, panel, last) : 0;
        count = std::max<int64_t>(stored, 1);
        each_block([&](const Block& block, const float* from) {
          stored > 0 ? MultiplyStored(operands, block, panel, stored, from)
                     : Multiply(operands, block, panel, from, rest);
        });
      }
    }
    if (operands.residual != nullptr) AddResidual(operands, row, rows, first, last);
  }
}

void PanelProduct::Run(const Operands& operands, int threads, float* room) const {
  const auto parts = static_cast<int>(std::min<int64_t>(threads, panels_));
  RunRanges(parts, panels_, 1, [&](int part, int64_t first, int64_t last) {
    RunPanels(operands, first, last, room + part * room_floats());
  });
}

}  // namespace npumesh
