// One product of float32 matrices, by npumesh's panels and by oneDNN, each called straight.
#ifndef NPUMESH_TESTS_BENCH_DECODER_PRODUCT_PEERS_H_
#define NPUMESH_TESTS_BENCH_DECODER_PRODUCT_PEERS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ops/toolbox/product/onednn_version.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "tests/bench/timing.h"

namespace npumesh {

// y[batch, m, n] = x[batch, m, k] w[batch, k, n], one thread. Without a batch w is constant and
// packed before; with one it is read as it lies, [n, k] when `transposed`.
struct ProductSizes {
  int64_t m = 0, k = 0, n = 0;
  int64_t batch = 0;  // 0: w is constant
  bool transposed = false;

  int64_t matrices() const { return batch == 0 ? 1 : batch; }
  double operations() const { return 2.0 * static_cast<double>(matrices() * m * k * n); }
};

class OneDnnProduct {
 public:
  explicit OneDnnProduct(const ProductSizes& sizes)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const auto plain = [&](int64_t rows, int64_t columns, bool transposed) {
      const auto tag = sizes.batch == 0 ? memory::format_tag::ab
                       : transposed     ? memory::format_tag::acb
                                        : memory::format_tag::abc;
      memory::dims dims = {rows, columns};
      if (sizes.batch > 0) dims.insert(dims.begin(), sizes.batch);
      return memory::desc(dims, memory::data_type::f32, tag);
    };
    const memory::desc x = plain(sizes.m, sizes.k, false), y = plain(sizes.m, sizes.n, false);
    const memory::desc stored = plain(sizes.k, sizes.n, sizes.transposed);
    const memory::desc wanted =
        sizes.batch > 0
            ? stored
            : memory::desc(DimsOf(stored), memory::data_type::f32, memory::format_tag::any);
    const auto chosen = DescribePrimitive<dnnl::matmul>(engine_, dnnl::primitive_attr(),
                                                        /*allow_empty=*/false, x, wanted, y);
    primitive_ = dnnl::matmul(chosen);
    memory from = Filled(stored), w(chosen.weights_desc(), engine_);
    dnnl::reorder(from, w).execute(stream_, from, w);
    args_ = {{DNNL_ARG_SRC, Filled(x)}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, Filled(y)}};
  }

  void Run() {
    primitive_.execute(stream_, args_);
    stream_.wait();
  }

 private:
  dnnl::memory Filled(const dnnl::memory::desc& desc) const {
    dnnl::memory made(desc, engine_);
    auto* values = static_cast<float*>(made.get_data_handle());
    std::fill_n(values, desc.get_size() / sizeof(float), 0.01f);
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> args_;
};

class OwnProduct {
 public:
  explicit OwnProduct(const ProductSizes& sizes)
      : sizes_(sizes),
        product_(sizes.m, sizes.n, sizes.k),
        x_(Size(sizes.m, sizes.k), 0.01f),
        w_(Size(sizes.k, sizes.n), 0.01f),
        y_(Size(sizes.m, sizes.n)),
        room_(static_cast<size_t>(product_.room_floats())) {
    if (sizes.batch > 0) return;
    const Tensor weight = Tensor::FromVector({DataType::kFloat, {sizes.k, sizes.n}}, w_);
    panels_ = PackPanels(weight, sizes.k, sizes.n, false, nullptr);
  }

  void Run() {
    for (int64_t i = 0; i < sizes_.matrices(); ++i) {
      const int64_t stride = sizes_.transposed ? sizes_.k : sizes_.n;
      const FloatMatrix w{w_.data() + i * sizes_.k * sizes_.n, stride, sizes_.transposed};
      product_.Run({.x = {x_.data() + i * sizes_.m * sizes_.k, sizes_.k, false},
                    .packed = panels_.get(),
                    .w = w,
                    .y = y_.data() + i * sizes_.m * sizes_.n,
                    .y_stride = sizes_.n},
                   1, room_.data());
    }
  }

 private:
  size_t Size(int64_t rows, int64_t columns) const {
    return static_cast<size_t>(sizes_.matrices() * rows * columns);
  }

  ProductSizes sizes_;
  PanelProduct product_;
  std::vector<float> x_, w_, y_, room_;
  std::shared_ptr<const Panels> panels_;
};

// Both, and what they took.
class ProductPeers {
 public:
  explicit ProductPeers(const ProductSizes& sizes) : sizes_(sizes), own_(sizes), onednn_(sizes) {}

  // One turn of each.
  void Round() {
    own_seconds_.push_back(SecondsOf([&] { own_.Run(); }));
    onednn_seconds_.push_back(SecondsOf([&] { onednn_.Run(); }));
  }

  const ProductSizes& sizes() const { return sizes_; }
  // Medians. REQUIRES: there were rounds.
  double own() const { return MedianOf(own_seconds_); }
  double onednn() const { return MedianOf(onednn_seconds_); }

 private:
  ProductSizes sizes_;
  OwnProduct own_;
  OneDnnProduct onednn_;
  std::vector<double> own_seconds_, onednn_seconds_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_DECODER_PRODUCT_PEERS_H_
