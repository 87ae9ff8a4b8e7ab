#include "graph/ops/image/blocked_image.h"

#include <array>
#include <utility>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

using dnnl::memory;

// Stateful: every run binds its addresses to the memory objects of oneDNN.
class ReorderKernel final : public Kernel {
 public:
  ReorderKernel(std::string who, const memory::desc& from, const memory::desc& to, int threads)
      : who_(std::move(who)),
        threads_(threads),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        from_(from, engine_, nullptr),
        to_(to, engine_, nullptr),
        reorder_(from_, to_) {}

  Status Run(const KernelArgs& args) override {
    const ThreadCount threads(threads_);
    from_.set_data_handle(const_cast<void*>(args.in[0]));  // NOLINT: oneDNN only reads it
    to_.set_data_handle(args.out[0]);
    return Guarded(who_, "a reorder", [&] {
      const std::array<dnnl_exec_arg_t, 2> list = {
          {{DNNL_ARG_FROM, from_.get()}, {DNNL_ARG_TO, to_.get()}}};
      ExecuteAndWait(reorder_, stream_, list);
      return Status();
    });
  }

 private:
  std::string who_;
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  memory from_, to_;
  dnnl::reorder reorder_;
};

}  // namespace

int64_t ImageBlock() {
  if (ComputesBy(dnnl::cpu_isa::avx512_core)) return 16;
  return ComputesBy(dnnl::cpu_isa::avx2) ? 8 : 0;
}

Shape InBlocks(const Shape& image) {
  const int64_t block = ImageBlock();
  return Shape({image[0], CeilDiv(image[1], block), image[2], image[3], block});
}

Result<std::unique_ptr<Kernel>> MakeImageReorder(std::string who, const Shape& image,
                                                 bool into_blocks, int threads) {
  if (image.elements() == 0) return MakeKernel([](const KernelArgs&) { return Status(); });
  std::unique_ptr<Kernel> kernel;
  NPUMESH_RETURN_IF_ERROR(Guarded(who, "a reorder", [&] {
    const auto desc = [&](memory::format_tag tag) {
      return memory::desc(image.dims(), memory::data_type::f32, tag);
    };
    memory::desc from = desc(memory::format_tag::nchw);
    memory::desc to =
        desc(ImageBlock() == 16 ? memory::format_tag::nChw16c : memory::format_tag::nChw8c);
    if (!into_blocks) std::swap(from, to);
    kernel = std::make_unique<ReorderKernel>(std::move(who), from, to, threads);
    return Status();
  }));
  return kernel;
}

Result<Tensor> ReorderedImage(const Tensor& image) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel,
                           MakeImageReorder("a constant", image.shape(), true, 1));
  Tensor blocks = Tensor::Allocate({image.dtype(), InBlocks(image.shape())});
  const void* in = image.data();
  void* out = blocks.mutable_data();
  NPUMESH_RETURN_IF_ERROR(kernel->Run({&in, &out}));
  return blocks;
}

}  // namespace npumesh
