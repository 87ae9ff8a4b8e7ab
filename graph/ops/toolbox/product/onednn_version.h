// What oneDNN 2 (Debian 12) and oneDNN 3 (Debian 13) say differently; no other file knows of it.
//
// oneDNN 2 describes an operation first and a primitive from it, and a memory descriptor is a C
// structure. oneDNN 3 describes the primitive at once, and a memory descriptor answers questions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_VERSION_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_VERSION_H_

#include <oneapi/dnnl/dnnl.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

namespace npumesh {

template <typename Primitive>
concept HasOperationDescriptor = requires {
  typename Primitive::desc;
};

template <typename Desc>
concept IsPlainStructure = requires(const Desc& desc) {
  desc.data;
};

// A description of oneDNN 2. Code that walks through its implementations (next_impl) reads the
// operation each time, which oneDNN 2.6 does not keep; so it is kept here.
template <typename Primitive>
struct DescriptionOfKept : Primitive::primitive_desc {
  using Operation = typename Primitive::desc;

  DescriptionOfKept(const Operation& described, const dnnl::primitive_attr& attr,
                    const dnnl::engine& engine, bool allow_empty)
      : DescriptionOfKept(std::make_shared<const Operation>(described), attr, engine, allow_empty) {
  }

  std::shared_ptr<const Operation> operation;

 private:
  DescriptionOfKept(std::shared_ptr<const Operation> kept, const dnnl::primitive_attr& attr,
                    const dnnl::engine& engine, bool allow_empty)
      : Primitive::primitive_desc(*kept, attr, engine, allow_empty), operation(std::move(kept)) {}
};

// Describes a primitive of kind `Primitive`; `operation` is what follows the engine in oneDNN 3:
// kinds, memory descriptors, strides. With `allow_empty` the result is empty where no
// implementation exists. The result is a Primitive::primitive_desc, and may be walked as long as it
// is kept as what it is. Throws what oneDNN throws.
template <typename Primitive, typename... Operation>
auto DescribePrimitive(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                       bool allow_empty, const Operation&... operation) {
  if constexpr (HasOperationDescriptor<Primitive>) {
    return DescriptionOfKept<Primitive>(typename Primitive::desc(operation...), attr, engine,
                                        allow_empty);
  } else {
    return typename Primitive::primitive_desc(engine, operation..., attr, allow_empty);
  }
}

// The same of a gradient; `hint` describes the forward primitive.
template <typename Primitive, typename Hint, typename... Operation>
typename Primitive::primitive_desc DescribeGradient(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attr,
                                                    const Hint& hint,
                                                    const Operation&... operation) {
  if constexpr (HasOperationDescriptor<Primitive>) {
    return {typename Primitive::desc(operation...), attr, engine, hint};
  } else {
    return {engine, operation..., hint, attr};
  }
}

template <typename Desc>
dnnl::memory::dims DimsOf(const Desc& desc) {
  if constexpr (IsPlainStructure<Desc>) {
    return desc.dims();
  } else {
    return desc.get_dims();
  }
}

template <typename Desc>
dnnl::memory::data_type ElementType(const Desc& desc) {
  if constexpr (IsPlainStructure<Desc>) {
    return desc.data_type();
  } else {
    return desc.get_data_type();
  }
}

// Elements between neighbours, for each dimension. REQUIRES: `desc` is blocked.
template <typename Desc>
dnnl::memory::dims StridesOf(const Desc& desc) {
  if constexpr (IsPlainStructure<Desc>) {
    const auto* strides = desc.data.format_desc.blocking.strides;
    return {strides, strides + desc.data.ndims};
  } else {
    return desc.get_strides();
  }
}

// Whether oneDNN keeps nothing but the elements: sums of 8-bit columns may follow them. oneDNN 3
// does not say so; the size does. False where strides leave gaps.
template <typename Desc>
bool HoldsElementsOnly(const Desc& desc) {
  if constexpr (IsPlainStructure<Desc>) {
    return desc.data.extra.flags == 0;
  } else {
    const auto dims = desc.get_padded_dims();
    const auto elements =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    return desc.get_size() ==
           static_cast<size_t>(elements) * dnnl::memory::data_type_size(desc.get_data_type());
  }
}

// The descriptor as bytes. Two that are equal may differ in unused ones.
template <typename Desc>
std::string BytesOf(const Desc& desc) {
  if constexpr (IsPlainStructure<Desc>) {
    return {reinterpret_cast<const char*>(&desc.data), sizeof(desc.data)};
  } else {
    const auto bytes = const_cast<Desc&>(desc).get_blob();  // NOLINT: only reads
    return {bytes.begin(), bytes.end()};
  }
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_VERSION_H_
