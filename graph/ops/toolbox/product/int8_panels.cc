// The product of int8 by panels of our own (int8_kernels.h), packed when it is made. Sums are added
// modulo 2^32, so the cuts of k, rows and columns change nothing.
#include <algorithm>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/int8_kernels.h"
#include "graph/ops/toolbox/product/int8_product.h"
#include "graph/ops/toolbox/product/panel_packing.h"
#include "graph/ops/toolbox/product/panel_tiles.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// Most pairs of k in a block: its part of a panel and of a tile stay in the nearest caches, while
// the reads and writes of sums are shared. From 512 to 4096 the least times of
// 128 rows differed by 5 % at most.
constexpr int64_t kBlockPairs = 1024;
// Most rows of x whose sums are formed before they are handed out.
constexpr int64_t kMostRowsOfSums = 256;

// Pairs of places of k, the last with a zero where k is odd.
std::shared_ptr<const Panels> PackPairs(const Int8Form& form, int64_t columns) {
  const std::string name = fmt::format("pairs in panels of {}: {} x {}{}", columns, form.k, form.n,
                                       form.transposed ? " transposed" : "");
  return PackOnce(form.packed, *form.weight, name, [&] {
    PanelPacking<int8_t, 2> packing(*form.weight, form.k, form.n, form.transposed, columns);
    return std::make_shared<const Panels>(packing.Run());
  });
}

// Two neighbours of a row, int8 or uint8, as int16, the first one in the high half.
template <typename X>
int32_t PairOf(X first, X second) {
  const auto high = static_cast<uint16_t>(first), low = static_cast<uint16_t>(second);
  return static_cast<int32_t>(low | static_cast<uint32_t>(high) << 16);
}

class PanelInt8Product final : public Int8Product {
 public:
  explicit PanelInt8Product(const Int8Form& form)
      : m_(form.m),
        k_(form.k),
        x_unsigned_(form.x_unsigned),
        kernels_(ProcessorInt8Kernels()),
        panels_(PackPairs(form, kernels_.columns)),
        parts_(static_cast<int>(std::min<int64_t>(form.threads, panels_->panels))),
        depth_(EqualParts(panels_->rows, kBlockPairs)) {
    const int64_t row_bytes = panels_->rows * static_cast<int64_t>(sizeof(int32_t));
    rows_ = EqualParts(
        m_, std::clamp(PackedRowBytes() / row_bytes, kernels_.most_rows, kMostRowsOfSums));
    stride_ = panels_->panels * kernels_.columns;
    room_pairs_ = rows_ * panels_->rows;
    Scratch scratch;
    scratch.Take<int32_t>(rows_ * stride_);
    rooms_at_ = scratch.bytes();
    scratch.Take<int32_t>(room_pairs_ * parts_);
    scratch_bytes_ = scratch.bytes();
  }

  Status Run(const void* x, void* scratch, const TakeRow& take) override {
    auto* const sums = static_cast<int32_t*>(scratch);
    auto* const rooms = reinterpret_cast<int32_t*>(static_cast<std::byte*>(scratch) + rooms_at_);
    for (int64_t row = 0; row < m_; row += rows_) {
      const int64_t rows = std::min(rows_, m_ - row);
      const auto* from = static_cast<const int8_t*>(x) + row * k_;
      RunRanges(parts_, panels_->panels, 1, [&](int part, int64_t first, int64_t last) {
        RunPanels(from, rows, first, last, rooms + part * room_pairs_, sums);
      });
      for (int64_t r = 0; r < rows; ++r) take(row + r, sums + r * stride_);
    }
    return Status();
  }

 private:
  // Some pairs of k.
  struct Block {
    int64_t first = 0, pairs = 0;
  };

  template <typename Body>
  void ForEachBlock(const Body& body) const {
    for (int64_t first = 0; first < panels_->rows; first += depth_) {
      body(Block{first, std::min(depth_, panels_->rows - first)});
    }
  }

  // Packs one row of a tile of `rows`, as Int8Operands wants it.
  template <typename X>
  void PackRow(const X* x, const Block& block, int64_t rows, int32_t* to) const {
    const int64_t whole = std::min(block.pairs, k_ / 2 - block.first);
    const X* from = x + 2 * block.first;
    for (int64_t i = 0; i < whole; ++i, from += 2) to[i * rows] = PairOf(from[0], from[1]);
    if (whole < block.pairs) to[whole * rows] = PairOf<X>(from[0], 0);
  }

  // Block after block, each with its tiles one after the other.
  template <typename X>
  void PackRows(const X* x, int64_t rows, int32_t* to) const {
    const Tiles tiles(rows, kernels_.most_rows);
    ForEachBlock([&](const Block& block) {
      const X* row = x;
      for (int64_t tile = 0; tile < tiles.count; ++tile) {
        const int64_t count = tiles.rows(tile);
        for (int64_t r = 0; r < count; ++r, row += k_) PackRow(row, block, count, to + r);
        to += count * block.pairs;
      }
    });
  }

  // All `rows` packed rows times a panel.
  void Multiply(const int32_t* x, int64_t rows, int64_t panel, int32_t* sums) const {
    const Tiles tiles(rows, kernels_.most_rows);
    ForEachBlock([&](const Block& block) {
      const auto* const pairs = reinterpret_cast<const int8_t*>(panels_->at(panel, block.first));
      int32_t* y = sums + panel * kernels_.columns;
      for (int64_t tile = 0; tile < tiles.count; ++tile) {
        const int64_t count = tiles.rows(tile);
        kernels_.multiply[count - 1]({x, pairs, block.pairs}, block.first > 0, y, stride_);
        x += count * block.pairs;
        y += count * stride_;
      }
    });
  }

  void RunPanels(const int8_t* x, int64_t rows, int64_t first, int64_t last, int32_t* room,
                 int32_t* sums) const {
    if (x_unsigned_) {
      PackRows(reinterpret_cast<const uint8_t*>(x), rows, room);
    } else {
      PackRows(x, rows, room);
    }
    for (int64_t i = first; i < last; ++i) Multiply(room, rows, i, sums);
  }

  const int64_t m_, k_;
  const bool x_unsigned_;
  const Int8Kernels& kernels_;
  const std::shared_ptr<const Panels> panels_;
  const int parts_;         // one for each thread that has panels to multiply
  const int64_t depth_;     // pairs of a block
  int64_t rows_ = 0;        // whose sums are formed at once
  int64_t stride_ = 0;      // from one row of sums to the next: that of whole panels
  int64_t room_pairs_ = 0;  // of the packed rows of a part
  uint64_t rooms_at_ = 0;   // in the scratch memory
};

}  // namespace

std::unique_ptr<Int8Product> MakeInt8Panels(const Int8Form& form) {
  return std::make_unique<PanelInt8Product>(form);
}

}  // namespace npumesh
