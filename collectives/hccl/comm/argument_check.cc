#include "collectives/hccl/comm/argument_check.h"

#include "collectives/hccl/comm/settings.h"

namespace npumesh {
namespace {

// Types are refused by number where they have no name.
std::string TypeText(HcclDataType dtype) {
  const ElementType* type = FindElementType(dtype);
  return type ? std::string(type->name) : fmt::format("type {}", static_cast<int>(dtype));
}

std::string_view OpText(HcclReduceOp op) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return "sum";
    case HCCL_REDUCE_PROD:
      return "prod";
    case HCCL_REDUCE_MAX:
      return "max";
    case HCCL_REDUCE_MIN:
      return "min";
    case HCCL_REDUCE_RESERVED:
      break;
  }
  return {};
}

}  // namespace

ArgumentCheck::ArgumentCheck(std::string_view call) : span_(call), call_(call) {
  if (Settings::OfProcess().entry_log()) entry_ = std::make_unique<std::string>();
}

void ArgumentCheck::Note(std::string_view name, std::string_view text) {
  *entry_ += fmt::format("{}{}[{}]", entry_->empty() ? "" : ", ", name, text);
}

void ArgumentCheck::Note(std::string_view name, uint64_t value) {
  Note(name, fmt::format("{}", value));
}

void ArgumentCheck::Note(std::string_view name, const void* pointer) {
  Note(name, fmt::format("{}", pointer));
}

ArgumentCheck& ArgumentCheck::IsNull(std::string_view name) {
  if (ok()) verdict_ = Refuse(HCCL_E_PTR, "EI0003: {} is null", name);
  return *this;
}

ArgumentCheck& ArgumentCheck::IsTooMany(std::string_view name, uint64_t count) {
  if (ok()) {
    verdict_ = Refuse(HCCL_E_PARA, "EI0003: {} is {}; expected at most {}", name, count, kMaxCount);
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::Moves(HcclDataType dtype) {
  if (entry_) Note("dataType", TypeText(dtype));
  const ElementType* type = FindElementType(dtype);
  if (ok() && (type == nullptr || !type->moves)) {
    verdict_ = Refuse(HCCL_E_NOT_SUPPORT, "EI0003: dataType {} cannot be moved", TypeText(dtype));
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::Reduces(HcclDataType dtype, HcclReduceOp op) {
  if (entry_) Note("dataType", TypeText(dtype));
  if (entry_) Note("op", OpText(op));
  if (!ok()) return *this;
  const ElementType* type = FindElementType(dtype);
  const std::string_view name = OpText(op);
  if (type == nullptr || !type->reduces) {
    verdict_ = Refuse(HCCL_E_NOT_SUPPORT, "EI0003: dataType {} cannot be reduced", TypeText(dtype));
  } else if (name.empty()) {
    verdict_ = Refuse(HCCL_E_NOT_SUPPORT, "EI0003: op {} is none of sum, prod, max, min",
                      static_cast<int>(op));
  } else if (op == HCCL_REDUCE_PROD && !type->multiplies) {
    verdict_ = Refuse(HCCL_E_NOT_SUPPORT, "EI0003: op prod does not take dataType {}", type->name);
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::Live(HcclComm handle) {
  if (!ok()) return *this;
  comm_ = CommTable::OfProcess().Find(handle);
  if (comm_ == nullptr) {
    verdict_ =
        Refuse(HCCL_E_PARA, "EI0003: comm {} is no communicator of this process, or was destroyed",
               fmt::ptr(handle));
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::RankInComm(std::string_view name, uint32_t rank) {
  if (entry_) Note(name, rank);
  if (ok() && rank >= size()) {
    verdict_ = Refuse(HCCL_E_PARA, "EI0003: {} is {}; communicator \"{}\" has ranks 0 to {}", name,
                      rank, comm_->name(), size() - 1);
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::Differ(std::string_view left, const void* a, std::string_view right,
                                     const void* b) {
  if (ok() && a == b) {
    verdict_ =
        Refuse(HCCL_E_PARA, "EI0003: {} equals {}; this operator is not in place", left, right);
  }
  return *this;
}

ArgumentCheck& ArgumentCheck::IsOutside(std::string_view name, const void* pointer,
                                        uint64_t bytes) {
  outside_hbm_ = true;
  std::string why = comm_->device()->memory.WhyNot(pointer, bytes);
  if (why.empty()) why = "are not in the memory of this device; take it from aclrtMalloc";
  return Holds(false, HCCL_E_PARA,
               fmt::format("EI0003: {}: {} bytes at {} {}", name, bytes, pointer, why));
}

ArgumentCheck& ArgumentCheck::Holds(bool rule, HcclResult result, std::string_view why) {
  if (ok() && !rule) verdict_ = {result, std::string(why)};
  return *this;
}

}  // namespace npumesh
