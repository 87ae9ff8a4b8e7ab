#include "graph/io/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "graph/io/npy_header.h"
#include "graph/io/stored_zip.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/plain_pickle.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostPickleBytes = uint64_t{1} << 20;  // a tensor's has some hundred
constexpr uint64_t kMostRepeatedBytes = uint64_t{1} << 30;
constexpr int kMostAxes = 64;

struct TorchType {
  std::string_view name;
  DataType dtype;
};

// torch's classes of typed storages.
constexpr std::array<TorchType, 12> kStorages = {{
    {"torch.FloatStorage", DataType::kFloat},
    {"torch.HalfStorage", DataType::kFloat16},
    {"torch.BFloat16Storage", DataType::kBfloat16},
    {"torch.DoubleStorage", DataType::kDouble},
    {"torch.LongStorage", DataType::kInt64},
    {"torch.IntStorage", DataType::kInt32},
    {"torch.ShortStorage", DataType::kInt16},
    {"torch.CharStorage", DataType::kInt8},
    {"torch.ByteStorage", DataType::kUint8},
    {"torch.BoolStorage", DataType::kBool},
    {"torch.ComplexFloatStorage", DataType::kComplex64},
    {"torch.ComplexDoubleStorage", DataType::kComplex128},
}};
constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";

// Torch's dtypes whose names are not those of DataType.
constexpr std::array<TorchType, 2> kOtherNames = {{
    {"torch.float8_e8m0fnu", DataType::kFloat8E8M0},
    {"torch.complex32", DataType::kComplex32},
}};

// What makes a tensor of (storage, offset, size, stride, gradient, hooks, bits); version 3 has the
// dtype before the bits, those of a card something else.
constexpr std::array<std::string_view, 4> kRebuild = {
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch_npu.utils.storage._rebuild_npu_tensor",
};
constexpr std::string_view kRebuildWithType = "torch._utils._rebuild_tensor_v3";
constexpr size_t kPlaceOfType = 6;

// What makes a tensor of one that is its first argument.
constexpr std::array<std::string_view, 3> kWrappers = {
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
};
constexpr std::string_view kRebuildFromType = "torch._tensor._rebuild_from_type_v2";

Status DamagedTensor(std::string_view what) {
  return Error(Code::kCorrupt, "no tensor as torch saves it: {}", what);
}

// The text of {"name": ..}; empty: another value.
std::string NameIn(const json& value) {
  if (!value.is_object() || !value.contains("name") || !value["name"].is_string()) return "";
  return value["name"].get<std::string>();
}

const json* Argument(const json& arguments, size_t place) {
  return arguments.is_array() && place < arguments.size() ? &arguments[place] : nullptr;
}

template <size_t N>
bool Has(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <size_t N>
std::optional<DataType> TypeNamed(const std::array<TorchType, N>& types, std::string_view name) {
  const auto row = std::find_if(types.begin(), types.end(),
                                [&](const TorchType& type) { return type.name == name; });
  if (row == types.end()) return std::nullopt;
  return row->dtype;
}

std::string KindOf(const json& value) {
  const bool call = value.is_object() && value.contains("call");
  if (call) return "an object that " + Printable(NameIn(value["call"])) + " makes";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a dictionary";
  return "no object";
}

// The call that makes a tensor of a storage: what is called, and its arguments.
struct Rebuild {
  std::string name;
  const json* arguments = nullptr;
};

// Looks through what is laid around the call.
Result<Rebuild> FindRebuild(const json& saved) {
  constexpr int kMostWrappers = 8;
  const json* value = &saved;
  for (int i = 0; i < kMostWrappers && value != nullptr; ++i) {
    if (!value->is_object() || !value->contains("call") || !value->contains("arguments")) break;
    const json& arguments = (*value)["arguments"];
    const std::string name = NameIn((*value)["call"]);
    if (Has(kRebuild, name)) return Rebuild{name, &arguments};
    if (name == kRebuildFromType) {  // (function, class, arguments, state)
      const json* const inner = Argument(arguments, 0);
      const json* const inner_arguments = Argument(arguments, 2);
      if (inner != nullptr && inner_arguments != nullptr && Has(kRebuild, NameIn(*inner))) {
        return Rebuild{NameIn(*inner), inner_arguments};
      }
      break;
    }
    if (!Has(kWrappers, name)) break;
    value = Argument(arguments, 0);
  }
  return Error(Code::kUnsupported,
               "holds {} in the place of one tensor; torch.save(tensor, path) writes one",
               KindOf(value == nullptr ? saved : *value));
}

Result<std::vector<int64_t>> Numbers(const json* list) {
  if (list == nullptr || !list->is_array() || list->size() > kMostAxes) {
    return DamagedTensor("its shape or its strides are missing");
  }
  std::vector<int64_t> numbers;
  for (const json& one : *list) {
    if (!one.is_number_integer() || one.get<int64_t>() < 0) {
      return DamagedTensor("a size or a stride is no number");
    }
    numbers.push_back(one.get<int64_t>());
  }
  return numbers;
}

// A storage of the archive, and the dtype of its class; nullopt: it is untyped.
struct Storage {
  ZipMember member;
  std::optional<DataType> dtype;
};

class TorchReader {
 public:
  explicit TorchReader(std::string_view file) : file_(file) {}

  Result<TorchTensorPlace> Run() {
    NPUMESH_ASSIGN_OR_RETURN(members_, ListStoredZip(file_));
    const ZipMember* const pickle = FindPickle();
    if (pickle == nullptr) return DamagedTensor("the archive has no data.pkl");
    if (pickle->bytes > kMostPickleBytes) {
      return Error(Code::kUnsupported, "its data.pkl has {} bytes; that is no single tensor",
                   pickle->bytes);
    }
    const ZipMember* const order = Find("byteorder");
    if (order != nullptr && BytesOf(*order) == "big") {
      return Error(Code::kUnsupported, "written on a big-endian machine");
    }
    NPUMESH_ASSIGN_OR_RETURN(const json saved,
                             ReadPickleOfObjects(BytesOf(*pickle), "its data.pkl"));
    NPUMESH_ASSIGN_OR_RETURN(const Rebuild call, FindRebuild(saved));
    return Place(call);
  }

 private:
  std::string_view BytesOf(const ZipMember& member) const {
    return file_.substr(member.offset, member.bytes);
  }

  // All members lie in one folder with the name of the file.
  const ZipMember* FindPickle() {
    constexpr std::string_view kPickle = "data.pkl";
    for (const ZipMember& member : members_) {
      const std::string_view name = member.name;
      if (!name.ends_with(kPickle)) continue;
      folder_ = name.substr(0, name.size() - kPickle.size());
      if (folder_.empty() || folder_.find('/') == folder_.size() - 1) return &member;
    }
    return nullptr;
  }

  const ZipMember* Find(const std::string& name) const {
    const auto member = std::find_if(members_.begin(), members_.end(), [&](const ZipMember& one) {
      return one.name.starts_with(folder_) && one.name.substr(folder_.size()) == name;
    });
    return member == members_.end() ? nullptr : &*member;
  }

  // ("storage", class, key, place, size)
  Result<Storage> StorageOf(const json* value) const {
    const json* const id = value != nullptr && value->is_object() && value->contains("outside")
                               ? &(*value)["outside"]
                               : nullptr;
    const json* const type = id == nullptr ? nullptr : Argument(*id, 1);
    const json* const key = id == nullptr ? nullptr : Argument(*id, 2);
    if (type == nullptr || key == nullptr || !key->is_string())
      return DamagedTensor("it has no storage");
    const std::string name = NameIn(*type);
    Storage storage;
    storage.dtype = TypeNamed(kStorages, name);
    if (!storage.dtype && name != kUntyped) {
      return Error(Code::kUnsupported, "its elements are those of {}", Printable(name));
    }
    const ZipMember* const member = Find("data/" + key->get<std::string>());
    if (member == nullptr) return DamagedTensor("the archive lacks the storage of its elements");
    storage.member = *member;
    return storage;
  }

  // The dtype of version 3 stands in the call, that of others in the class of the storage.
  static Result<DataType> TypeOf(const Rebuild& call, const Storage& storage) {
    if (call.name != kRebuildWithType) {
      if (storage.dtype) return *storage.dtype;
      return DamagedTensor("its storage has no type");
    }
    const json* const value = Argument(*call.arguments, kPlaceOfType);
    const std::string name = value == nullptr ? "" : NameIn(*value);
    if (const std::optional<DataType> other = TypeNamed(kOtherNames, name)) return *other;
    constexpr std::string_view kModule = "torch.";
    const std::optional<DataType> dtype =
        name.starts_with(kModule) ? DataTypeFromName(std::string_view(name).substr(kModule.size()))
                                  : std::nullopt;
    if (dtype && BitsOf(*dtype) > 0 && BitsOf(*dtype) % 8 == 0) return *dtype;
    return Error(Code::kUnsupported, "its elements are {}", Printable(name));
  }

  Result<TorchTensorPlace> Place(const Rebuild& call) const {
    const json* const bits =
        Argument(*call.arguments, call.name == kRebuildWithType ? kPlaceOfType + 1 : kPlaceOfType);
    if (bits != nullptr && bits->is_object() && !bits->empty()) {
      return Error(Code::kUnsupported, "a conjugate or negative view; save tensor.resolve_conj()");
    }
    NPUMESH_ASSIGN_OR_RETURN(const Storage storage, StorageOf(Argument(*call.arguments, 0)));
    NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, TypeOf(call, storage));
    NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, Numbers(Argument(*call.arguments, 2)));
    TorchTensorPlace place;
    NPUMESH_ASSIGN_OR_RETURN(place.strides, Numbers(Argument(*call.arguments, 3)));
    if (place.strides.size() != dims.size())
      return DamagedTensor("it has not a stride for each axis");
    place.type = {dtype, Shape(std::move(dims))};
    NPUMESH_RETURN_IF_ERROR(place.type.shape.Check());
    const json* const first = Argument(*call.arguments, 1);
    if (first == nullptr || !first->is_number_integer() || first->get<int64_t>() < 0) {
      return DamagedTensor("where its elements begin is no number");
    }
    const auto width = static_cast<uint64_t>(BitsOf(dtype) / 8);
    const uint64_t held = storage.member.bytes / width;  // elements
    place.offset = storage.member.offset;
    if (place.type.shape.elements() == 0) return place;
    // Before the last element lie `last` others; no sum passes 64 bits, because each is compared.
    auto last = static_cast<uint64_t>(first->get<int64_t>());
    for (int axis = 0; axis < place.type.shape.rank(); ++axis) {
      const auto steps = static_cast<uint64_t>(place.type.shape[axis] - 1);
      const auto stride = static_cast<uint64_t>(place.strides[static_cast<size_t>(axis)]);
      if (last >= held || (steps != 0 && stride > (held - last) / steps)) {
        return DamagedTensor("its elements lie behind their storage");
      }
      last += steps * stride;
    }
    if (last >= held) return DamagedTensor("its elements lie behind their storage");
    place.offset += static_cast<uint64_t>(first->get<int64_t>()) * width;
    return place;
  }

  const std::string_view file_;
  std::vector<ZipMember> members_;
  std::string_view folder_;
};

bool IsPacked(const TorchTensorPlace& place) {
  int64_t expected = 1;
  for (int axis = place.type.shape.rank() - 1; axis >= 0; --axis) {
    const int64_t dim = place.type.shape[axis];
    if (dim != 1 && place.strides[static_cast<size_t>(axis)] != expected) return false;
    expected *= dim;
  }
  return true;
}

// Copies the elements of axes `axis` and later, and moves `target` behind them.
void CopyStrided(const TorchTensorPlace& place, size_t width, size_t axis, const std::byte* source,
                 std::byte*& target) {
  if (axis == place.strides.size()) {
    std::memcpy(target, source, width);
    target += width;
    return;
  }
  const size_t step = static_cast<size_t>(place.strides[axis]) * width;
  for (int64_t i = 0; i < place.type.shape[static_cast<int>(axis)]; ++i, source += step) {
    CopyStrided(place, width, axis + 1, source, target);
  }
}

Result<Tensor> ReadPlaced(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string_view content(reinterpret_cast<const char*>(file->data()), file->size());
  NPUMESH_ASSIGN_OR_RETURN(const TorchTensorPlace place, FindTorchTensor(content));
  const uint64_t bytes = place.type.bytes();
  const bool packed = IsPacked(place);
  if (bytes != 0 && packed && place.offset % kNpyAlignment == 0) {
    return Tensor::FromFile(place.type, file, place.offset);
  }
  if (bytes > content.size() && bytes > kMostRepeatedBytes) {
    return Error(Code::kUnsupported, "{} of {} bytes, repeated from a file of {}",
                 place.type.ToString(), bytes, content.size());
  }
  Tensor tensor = Tensor::Allocate(place.type);
  if (bytes == 0) return tensor;
  const std::byte* const source = file->data() + place.offset;
  if (packed) {
    std::memcpy(tensor.mutable_data(), source, bytes);
    return tensor;
  }
  std::byte* target = tensor.mutable_data();
  CopyStrided(place, static_cast<size_t>(BitsOf(place.type.dtype) / 8), 0, source, target);
  return tensor;
}

}  // namespace

Result<TorchTensorPlace> FindTorchTensor(std::string_view file) {
  if (LooksLikePickle(file)) {
    return Error(Code::kUnsupported,
                 "written in the form of torch before version 1.6; torch.save(torch.load(path), "
                 "path) writes today's");
  }
  if (!LooksLikeZip(file)) return DamagedTensor("it is no zip archive");
  return TorchReader(file).Run();
}

Result<Tensor> ReadTorchTensor(const std::string& path) {
  Result<Tensor> tensor = ReadPlaced(path);
  if (!tensor.ok() && tensor.status().message().find(path) == std::string_view::npos) {
    return tensor.status().WithContext(path);
  }
  return tensor;
}

}  // namespace npumesh
