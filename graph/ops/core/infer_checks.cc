#include "graph/ops/core/infer_checks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace npumesh {

Status SetOutput(OpContext& op, int port, DataType dtype, Shape shape) {
  if (port >= op.outputs()) {
    return Error(Code::kCorrupt, "{}: output {} is missing; the node has {} output ports", op.Who(),
                 port, op.outputs());
  }
  NPUMESH_RETURN_IF_ERROR(shape.Check().WithContext(op.Who()));
  if (!shape.is_static()) {
    return Error(Code::kInvalidArgument,
                 "{}: output {} has the shape {}; every dimension must be "
                 "known before it runs",
                 op.Who(), port, shape.ToString());
  }
  op.set_out(port, {dtype, std::move(shape)});
  return Status();
}

Result<int> AxisOf(const OpContext& op, int64_t axis, int rank, std::string_view what) {
  const int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" names axis {}, but the tensor has rank {}",
                 op.Who(), what, axis, rank);
  }
  return static_cast<int>(positive);
}

Result<size_t> ElementBytes(const OpContext& op, DataType dtype) {
  const int bits = BitsOf(dtype);
  if (bits < 8) {
    return Error(Code::kUnsupported, "{}: elements of type {} cannot be moved one by one", op.Who(),
                 Name(dtype));
  }
  return static_cast<size_t>(bits / 8);
}

int64_t ElementsBetween(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= shape[i];
  return product;
}

std::vector<int64_t> ByteStrides(const Shape& shape, size_t element_bytes) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  auto stride = static_cast<int64_t>(element_bytes);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return strides;
}

Status ExpectSameDtype(const OpContext& op, int slot_a, int slot_b) {
  if (op.in(slot_a).dtype == op.in(slot_b).dtype) return Status();
  return Error(Code::kInvalidArgument, "{}: inputs {} and {} are {} and {}, expected equal types",
               op.Who(), slot_a, slot_b, Name(op.in(slot_a).dtype), Name(op.in(slot_b).dtype));
}

namespace {

// A quarter of what there is; lists stand beside tensors, and ranks beside each other.
uint64_t MostListBytes() {
  const auto pages = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L));
  uint64_t bytes = pages * static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 1L));
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited) bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  return bytes / 4;
}

}  // namespace

Status AskForLists(const OpContext& op, int64_t count, size_t entry_bytes) {
  constexpr int64_t kSmall = int64_t{1} << 20;  // asked without a look at the system
  if (count <= kSmall) return Status();
  const uint64_t most = MostListBytes();
  if (static_cast<uint64_t>(count) <= most / entry_bytes) return Status();
  return Error(Code::kOutOfMemory,
               "{}: it needs lists of {} entries of {} bytes on the host, at most {} bytes are "
               "given to one operator",
               op.Who(), count, entry_bytes, most);
}

int64_t SumOfDims(const Shape& shape) {
  int64_t sum = 0;
  for (const int64_t dim : shape.dims()) {
    if (__builtin_add_overflow(sum, std::max<int64_t>(dim, 0), &sum)) return INT64_MAX;
  }
  return sum;
}

}  // namespace npumesh
