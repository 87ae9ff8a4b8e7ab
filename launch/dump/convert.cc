#include "launch/dump/convert.h"

#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>

#include "graph/compare/measures/elements.h"
#include "graph/compare/sources/msprobe_folder.h"
#include "graph/dump/format/format_mapping.h"
#include "graph/io/npy.h"
#include "launch/dump/overflow_report.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr std::string_view kFailedList = "convert_failed_file_list.txt";

Tensor UnpackBits(const Tensor& tensor) {
  Tensor bits = Tensor::Allocate({DataType::kUint8, tensor.shape()});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto byte = std::to_integer<unsigned>(tensor.data()[i / 8]);
    bits.mutable_data()[i] = std::byte{static_cast<uint8_t>((byte >> (7 - i % 8)) & 1u)};
  }
  return bits;
}

bool IsWidened(DataType dtype) {
  return dtype == DataType::kBfloat16 || dtype == DataType::kFloat8E5M2 ||
         dtype == DataType::kFloat8E4M3Fn;
}

bool IsNumpyType(DataType dtype) {
  return IsInteger(dtype) || dtype == DataType::kFloat || dtype == DataType::kFloat16 ||
         dtype == DataType::kDouble || dtype == DataType::kBool || dtype == DataType::kComplex64 ||
         dtype == DataType::kComplex128;
}

// A name too long for the file system goes through the folder's mapping.csv.
Status WriteAs(const std::string& out, const std::string& name, const Tensor& tensor) {
  const std::string stored = StorableName(out, name);
  if (stored == name) return WriteNpy(out + "/" + name, tensor, FileKind::kDataDump);
  NPUMESH_RETURN_IF_ERROR(WriteNpy(out + "/" + stored + ".npy", tensor, FileKind::kDataDump));
  return AddMapping(out, stored + ".npy", name);
}

// A line for each file that failed; no file without one.
Status WriteFailedList(const std::string& out, const std::string& list) {
  if (list.empty()) return Status();
  return WriteFile(fmt::format("{}/{}", out, kFailedList), list, FileKind::kDataDump);
}

class FileConverter {
 public:
  FileConverter(const DumpFolderFile& source, const DumpFile& file, const std::string& out,
                const ConvertOptions& options)
      : source_(source), file_(file), out_(out), options_(options) {}

  Result<size_t> Run() {
    const DumpRecord& record = file_.record();
    NPUMESH_RETURN_IF_ERROR(ConvertTensors(Side::kInput, record.inputs));
    NPUMESH_RETURN_IF_ERROR(ConvertTensors(Side::kOutput, record.outputs));
    NPUMESH_RETURN_IF_ERROR(CopyPieces("l1buffer", record.buffers));
    NPUMESH_RETURN_IF_ERROR(CopyPieces("space", record.spaces));
    return files_;
  }

 private:
  Status ConvertTensors(Side side, const std::vector<DumpTensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool absent = tensors[i].size == 0 && tensors[i].type.shape.rank() == 0;
      if (absent) continue;
      const std::string place = fmt::format("{}.{}", Name(side), i);
      NPUMESH_RETURN_IF_ERROR(ConvertTensor(place, tensors[i]).WithContext(place));
    }
    return Status();
  }

  Status ConvertTensor(const std::string& place, const DumpTensor& described) {
    Tensor tensor = TensorOf(file_, described);
    std::string name = source_.full_name + "." + place;
    if (options_.to_nd && DumpFormatName(described.format) == "FRACTAL_NZ") {
      NPUMESH_ASSIGN_OR_RETURN(tensor, NzToNd(tensor, described.original_shape));
      name += fmt::format(".{}", fmt::join(tensor.shape().dims(), "x"));
    }
    NPUMESH_ASSIGN_OR_RETURN(const Tensor numpy, NumpyForm(tensor));
    ++files_;
    return WriteAs(out_, name + ".npy", numpy);
  }

  Status CopyPieces(std::string_view kind, const std::vector<DumpPiece>& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto bytes = file_.payload(pieces[i]);
      const std::string path = fmt::format("{}/{}.{}.{}.bin", out_, source_.full_name, kind, i);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      NPUMESH_RETURN_IF_ERROR(WriteFile(path, text, FileKind::kDataDump));
      ++files_;
    }
    return Status();
  }

  const DumpFolderFile& source_;
  const DumpFile& file_;
  const std::string& out_;
  const ConvertOptions& options_;
  size_t files_ = 0;
};

}  // namespace

Result<Tensor> NumpyForm(const Tensor& tensor) {
  const DataType dtype = tensor.dtype();
  if (tensor.elements() == 0) return Tensor::Allocate({DataType::kDouble, {0}});
  Tensor numpy = tensor;
  if (dtype == DataType::kUint1) {
    numpy = UnpackBits(tensor);
  } else if (dtype == DataType::kResource) {
    numpy = tensor.WithType({DataType::kInt64, tensor.shape()});
  } else if (IsWidened(dtype)) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<double> elements, ElementsOf(tensor));
    numpy = Tensor::FromVector(TensorType{DataType::kFloat, tensor.shape()}, AsFloats(elements));
  } else if (!IsNumpyType(dtype)) {
    return Error(Code::kUnsupported, "{} cannot be written as .npy", SerialName(dtype));
  }
  if (numpy.shape().rank() == 0) numpy = numpy.WithType({numpy.dtype(), {1}});
  return numpy;
}

Result<Tensor> NzToNd(const Tensor& tensor, const Shape& shape) {
  const Shape& nz = tensor.shape();
  const int rank = nz.rank();
  const auto misfit = [&] {
    return Error(Code::kInvalidArgument, "FRACTAL_NZ {} does not hold a tensor of shape {}",
                 nz.ToString(), shape.ToString());
  };
  if (rank < 4 || shape.rank() != rank - 2 || BitsOf(tensor.dtype()) % 8 != 0) return misfit();
  const int64_t m1 = nz[rank - 3], m0 = nz[rank - 2], n0 = nz[rank - 1];
  const int64_t rows = shape[rank - 4], columns = shape[rank - 3];
  int64_t batch = 1;
  for (int i = 0; i < rank - 4; ++i) {
    if (nz[i] != shape[i]) return misfit();
    batch *= nz[i];
  }
  if (rows > m1 * m0 || columns > nz[rank - 4] * n0) return misfit();
  Tensor nd = Tensor::Allocate({tensor.dtype(), shape});
  const auto width = static_cast<size_t>(BitsOf(tensor.dtype()) / 8);
  std::byte* next = nd.mutable_data();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        const int64_t block = (b * nz[rank - 4] + n / n0) * m1 + m / m0;
        const int64_t from = (block * m0 + m % m0) * n0 + n % n0;
        std::memcpy(next, tensor.data() + static_cast<size_t>(from) * width, width);
        next += width;
      }
    }
  }
  return nd;
}

Result<size_t> ConvertFile(const DumpFolderFile& file, const std::string& out,
                           const ConvertOptions& options) {
  if (IsOverflowRecord(file.name)) return ConvertOverflowRecord(file.path, out);
  NPUMESH_ASSIGN_OR_RETURN(const DumpFile data, DumpFile::Open(file.path));
  return FileConverter(file, data, out, options).Run();
}

namespace {

// The tensors of msProbe keep their names.
Result<Converted> ConvertMsprobe(const std::string& folder, const std::string& out) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> source, OpenTensorFolder(folder));
  NPUMESH_RETURN_IF_ERROR(MakeFolders(out, FileKind::kDataDump));
  Converted converted;
  std::string list;
  for (const SourceOperator& op : source->operators()) {
    for (const Side side : {Side::kInput, Side::kOutput}) {
      for (const int index : op.indexes(side)) {
        const std::filesystem::path file = source->FileOf(op.key, side, index);
        if (file.empty()) continue;
        Result<Tensor> tensor = source->Load(op.key, side, index);
        if (tensor.ok()) tensor = NumpyForm(*tensor);
        if (!tensor.ok()) {
          list += file.string() + "\n";
          converted.failed.emplace_back(tensor.status().WithContext(file.string()).message());
          continue;
        }
        NPUMESH_RETURN_IF_ERROR(WriteAs(out, file.stem().string() + ".npy", *tensor));
        ++converted.files;
      }
    }
  }
  NPUMESH_RETURN_IF_ERROR(WriteFailedList(out, list));
  return converted;
}

}  // namespace

Result<Converted> ConvertFolder(const std::string& folder, const std::string& out,
                                const ConvertOptions& options) {
  if (IsMsprobeFolder(folder)) return ConvertMsprobe(folder, out);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(folder));
  NPUMESH_RETURN_IF_ERROR(MakeFolders(out, FileKind::kDataDump));
  Converted converted;
  std::string list;
  for (const DumpFolderFile& file : files) {
    if (file.name.stats) continue;
    const Result<size_t> count = ConvertFile(file, out, options);
    if (count.ok()) {
      converted.files += *count;
      continue;
    }
    list += file.path + "\n";
    converted.failed.push_back(fmt::format("{}: {}", file.path, count.status().message()));
  }
  NPUMESH_RETURN_IF_ERROR(WriteFailedList(out, list));
  return converted;
}

}  // namespace npumesh
