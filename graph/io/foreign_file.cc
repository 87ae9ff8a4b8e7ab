#include "graph/io/foreign_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "graph/io/offline_file.h"

namespace npumesh {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kExportTorch =
    "export the model with torch.onnx.export, or with TorchAir's dynamo_export";
constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kConvertTensorFlow = "convert the model to ONNX with tf2onnx";

// A kind that is told by bytes at a fixed place.
struct Mark {
  size_t at;
  std::string_view bytes;
  std::string_view kind;
  std::string_view advice;
};

constexpr Mark kMarks[] = {
    {4, "TFL3"sv, "a TensorFlow Lite model", kConvertTensorFlow},
    {4, "ORTM"sv, "a model in ONNX Runtime's own format",
     "give the .onnx file that it was made of"},
    {0, "GGUF"sv, "a file of weights (GGUF)", kExportTorch},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, as Keras writes it", kConvertTensorFlow},
    {0, "\x93NUMPY"sv, "an array of NumPy", "give it as one of --inputs"},
    {0, "\x1f\x8b"sv, "a file compressed with gzip", kUnpack},
    {0, "\xfd\x37zXZ\0"sv, "a file compressed with xz", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "a file compressed with zstd", kUnpack},
    {0, "BZh"sv, "a file compressed with bzip2", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "an archive of 7-Zip", kUnpack},
    {0, "PK\x05\x06"sv, "a zip archive without files", "download or write it again"},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or shared library", "operator libraries are given with --op-library"},
    {0, "version https://git-lfs"sv, "a pointer of Git LFS in place of the file",
     "fetch the file with git lfs pull"},
    {0, "ftrt"sv, "an engine of TensorRT", "give the ONNX file that it was made of"},
};

Status Foreign(std::string_view kind, std::string_view advice) {
  return Error(Code::kUnsupported, "this is {}, not a graph; {}", kind, advice);
}

bool Has(std::string_view bytes, std::string_view part) {
  return bytes.find(part) != std::string_view::npos;
}

Status RefuseZip(std::string_view bytes) {
  if (!bytes.starts_with("PK\x03\x04")) return Status();
  if (Has(bytes, "/code/__torch__")) return Foreign("a TorchScript archive", kExportTorch);
  if (Has(bytes, "data.pkl")) return Foreign("an archive of torch.save", kExportTorch);
  if (Has(bytes, "archive_format") || Has(bytes, "serialized_exported_program")) {
    return Foreign("an archive of torch.export", kExportTorch);
  }
  if (Has(bytes, "model.weights.h5")) return Foreign("a model of Keras", kConvertTensorFlow);
  if (Has(bytes, ".npy")) {
    return Foreign("an archive of NumPy arrays (.npz)",
                   "unpack it and give its arrays as files of --inputs");
  }
  return Foreign("a zip archive", kUnpack);
}

// Protocols 2 to 5 have a mark. Before them a pickle begins with an empty container, or with a
// container or class as text.
bool BeginsPickle(std::string_view bytes) {
  constexpr char kOldest = 2, kNewest = 5;
  if (bytes[0] == '\x80') return bytes[1] >= kOldest && bytes[1] <= kNewest;
  for (const std::string_view mark : {"}q"sv, "]q"sv, "(dp"sv, "(lp"sv, "ccollections\n"sv}) {
    if (bytes.starts_with(mark)) return true;
  }
  return false;
}

Status RefusePickle(std::string_view bytes) {
  const bool pickle = bytes.size() > 2 && bytes.back() == '.' && BeginsPickle(bytes);
  return pickle ? Foreign("a pickle of Python", kExportTorch) : Status();
}

// `bytes` after white space and the mark of UTF-8; at most as many as decide what the text is.
std::string_view BeginOfText(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  constexpr size_t kDecides = 4096;
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : bytes.substr(first, kDecides);
}

// `lower` is in small letters.
bool BeginsInAnyCase(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(), [](char expected, char seen) {
    return expected == (seen >= 'A' && seen <= 'Z' ? static_cast<char>(seen - 'A' + 'a') : seen);
  });
}

// No text form of a graph begins with a bracket.
Status RefuseMarkup(std::string_view bytes) {
  constexpr std::string_view kDownload = "download the file itself";
  const std::string_view text = BeginOfText(bytes);
  if (BeginsInAnyCase(text, "<!doctype") || BeginsInAnyCase(text, "<html")) {
    return Foreign("a web page", kDownload);
  }
  if (text.starts_with("<?xml") && Has(text, "<net")) {
    return Foreign("a network of OpenVINO", "give the ONNX file that it was made of");
  }
  if (text.starts_with("<?xml")) return Foreign("an XML text, such as a server's error", kDownload);
  if (!text.starts_with('{') && !text.starts_with('[')) return Status();
  for (const std::string_view key : {"\"architectures\"", "\"model_type\"", "\"weight_map\""}) {
    if (Has(text, key)) return Foreign("a JSON text that describes a model", kExportTorch);
  }
  return Foreign("a JSON text", "options are given with --config");
}

// A message whose first field is a text of a few bytes (ONNX has a number there), and the second
// the producer.
Status RefuseMindIr(std::string_view bytes) {
  constexpr size_t kBegin = 64;
  if (!bytes.starts_with('\x0a') || !Has(bytes.substr(0, kBegin), "\x12\x09MindSpore"sv)) {
    return Status();
  }
  return Foreign("a MindIR of MindSpore", "export the model with file_format=\"AIR\" or \"ONNX\"");
}

// A length of eight bytes, then a JSON object of that length.
Status RefuseSafetensors(std::string_view bytes) {
  constexpr size_t kLength = 8;
  if (bytes.size() < kLength + 2 || bytes.substr(kLength, 1) != "{") return Status();
  uint64_t length = 0;
  for (size_t i = kLength; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length < 2 || length > bytes.size() - kLength) return Status();
  const std::string_view header = bytes.substr(kLength, length);
  const size_t last = header.find_last_not_of(' ');  // padded to a multiple of eight
  if (last == std::string_view::npos || header[last] != '}') return Status();
  return Foreign("a file of weights (safetensors)", kExportTorch);
}

// What is left of a message after a field of number 1 with a length; nullopt: without one.
std::optional<std::string_view> InsideField(std::string_view bytes, char tag) {
  if (!bytes.starts_with(tag)) return std::nullopt;
  uint64_t length = 0;
  for (size_t i = 1; i < bytes.size() && i <= 5; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    length |= static_cast<uint64_t>(byte & 0x7f) << (7 * (i - 1));
    if (byte < 0x80) {
      const std::string_view rest = bytes.substr(i + 1);
      return length <= rest.size() ? std::optional(rest.substr(0, length)) : std::nullopt;
    }
  }
  return std::nullopt;
}

// A model of this npumesh's own kind is known before.
Status RefuseOffline(std::string_view bytes) {
  if (!bytes.starts_with("IMOD")) return Status();
  return Foreign(DescribeForeignOffline(bytes),
                 "its kernels run on that NPU only; make another of the AIR or ONNX file that atc "
                 "made it of, with `npumesh atc`, or run that file itself");
}

// GraphDef: nodes, which begin with their names; SavedModel: version 1, then graphs, which begin
// with a message. In a graph of ours and in ONNX a text stands there, and no text begins with the
// byte of a field.
Status RefuseTensorFlow(std::string_view bytes) {
  constexpr std::string_view kVersion = "\x08\x01";
  constexpr char kField1 = '\x0a', kField2 = '\x12';
  if (bytes.starts_with(kVersion)) {
    const auto graph = InsideField(bytes.substr(kVersion.size()), kField2);
    if (graph && InsideField(*graph, kField1)) {
      return Foreign("a SavedModel of TensorFlow", kConvertTensorFlow);
    }
    return Status();
  }
  const auto node = InsideField(bytes, kField1);
  const auto name = node ? InsideField(*node, kField1) : std::nullopt;
  if (!name) return Status();
  const std::string_view behind = node->substr(static_cast<size_t>(name->end() - node->begin()));
  return InsideField(behind, kField2) ? Foreign("a GraphDef of TensorFlow", kConvertTensorFlow)
                                      : Status();
}

}  // namespace

Status RefuseForeignFile(std::string_view bytes) {
  if (IsOfflineFile(bytes)) return Status();
  NPUMESH_RETURN_IF_ERROR(RefuseOffline(bytes));
  for (const Mark& mark : kMarks) {
    if (bytes.size() >= mark.at && bytes.substr(mark.at).starts_with(mark.bytes)) {
      return Foreign(mark.kind, mark.advice);
    }
  }
  NPUMESH_RETURN_IF_ERROR(RefuseZip(bytes));
  NPUMESH_RETURN_IF_ERROR(RefusePickle(bytes));
  NPUMESH_RETURN_IF_ERROR(RefuseSafetensors(bytes));
  NPUMESH_RETURN_IF_ERROR(RefuseMarkup(bytes));
  NPUMESH_RETURN_IF_ERROR(RefuseMindIr(bytes));
  return RefuseTensorFlow(bytes);
}

}  // namespace npumesh
