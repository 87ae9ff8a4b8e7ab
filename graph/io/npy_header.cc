#include "graph/io/npy_header.h"

#include <limits>
#include <optional>
#include <vector>

#include "runtime/base/text/parse.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = size_t{1} << 20;
constexpr size_t kMaxRank = 64;

Result<DataType> FromDescr(std::string_view text) {
  const char order = text.empty() ? '\0' : text[0];
  if (std::string_view("<>=|").find(order) != std::string_view::npos) {
    const std::optional<DataType> dtype = DataTypeFromNpy(text.substr(1));
    if (dtype && (order != '>' || NpyText(*dtype)[0] == '|')) return *dtype;
    if (dtype) {
      return Error(Code::kUnsupported, "'descr' is '{}' (big endian); expected '{}'", text,
                   NpyText(*dtype));
    }
  }
  return Error(Code::kUnsupported, "'descr' is '{}'; expected a bool, integer, float or complex",
               text);
}

// Reads a Python literal from left to right; every function leaves the cursor after what it took.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  // The three keys in any order, each once.
  Result<TensorType> Parse() {
    NPUMESH_RETURN_IF_ERROR(Expect('{'));
    while (!Accept('}')) {
      NPUMESH_ASSIGN_OR_RETURN(const std::string_view key, String());
      NPUMESH_RETURN_IF_ERROR(Expect(':'));
      NPUMESH_RETURN_IF_ERROR(ParseValue(key));
      if (Accept(',')) continue;
      NPUMESH_RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipBlanks();
    if (at_ != text_.size()) return Wrong("nothing behind the dictionary");
    if (!dtype_ || !ordered_ || !shape_) return Wrong("the keys descr, fortran_order and shape");
    return TensorType{*dtype_, *std::move(shape_)};
  }

 private:
  Status Wrong(std::string_view expected) const {
    return Error(Code::kCorrupt, "header at byte {}: expected {}", at_, expected);
  }

  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }

  bool Accept(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status Expect(char c) { return Accept(c) ? Status() : Wrong(fmt::format("'{}'", c)); }

  Result<std::string_view> String() {
    const char quote = Accept('\'') ? '\'' : Accept('"') ? '"' : '\0';
    if (quote == '\0') return Wrong("a quoted string");
    const size_t end = text_.find(quote, at_);
    if (end == text_.npos) return Wrong("a closing quote");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }

  Status ParseValue(std::string_view key) {
    if (key == "descr" && !dtype_) return ParseDescr();
    if (key == "fortran_order" && !ordered_) return ParseOrder();
    if (key == "shape" && !shape_) return ParseShape();
    return Wrong("descr, fortran_order and shape, each once");
  }

  Status ParseDescr() {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      return Error(Code::kUnsupported, "'descr' is a record; expected a plain dtype");
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::string_view text, String());
    NPUMESH_ASSIGN_OR_RETURN(dtype_, FromDescr(text));
    return Status();
  }

  Status ParseOrder() {
    SkipBlanks();
    if (text_.substr(at_, 4) == "True") {
      return Error(
          Code::kUnsupported,
          "'fortran_order' is True, expected C order; save numpy.ascontiguousarray(array)");
    }
    if (text_.substr(at_, 5) != "False") return Wrong("True or False");
    at_ += 5;
    ordered_ = true;
    return Status();
  }

  Status ParseShape() {
    NPUMESH_RETURN_IF_ERROR(Expect('('));
    std::vector<int64_t> dims;
    bool comma = true;  // `(2)` is a number in Python, not a tuple
    while (!Accept(')')) {
      if (!comma || dims.size() == kMaxRank) return Wrong("',' or ')', at most 64 dimensions");
      NPUMESH_ASSIGN_OR_RETURN(const int64_t dim, Int());
      dims.push_back(dim);
      comma = Accept(',');
    }
    if (dims.size() == 1 && !comma) return Wrong("a tuple");
    shape_ = Shape(std::move(dims));
    return Status();
  }

  Result<int64_t> Int() {
    SkipBlanks();
    const size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const Result<int64_t> dim =
        ParseInt(text_.substr(at_, end - at_), 0, std::numeric_limits<int64_t>::max(), "dimension");
    if (!dim.ok()) return Wrong("a dimension");
    at_ = end;
    return dim;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<DataType> dtype_;
  std::optional<Shape> shape_;
  bool ordered_ = false;
};

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string ShapeTuple(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view file) {
  if (file.size() < 10 || file.substr(0, kMagic.size()) != kMagic) {
    return Error(Code::kCorrupt, "not a .npy file: the magic bytes are missing");
  }
  const int major = static_cast<uint8_t>(file[6]);
  if (major < 1 || major > 3 || file[7] != 0) {
    return Error(Code::kUnsupported, "version {}.{}; expected 1.0 to 3.0", major,
                 static_cast<uint8_t>(file[7]));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  if (file.size() < start) return Error(Code::kCorrupt, "the file ends inside its header");
  const uint64_t length = LittleEndian(file.substr(8, length_bytes));
  if (length > file.size() - start || length > kMaxHeader) {
    return Error(Code::kCorrupt, "a header of {} bytes in a file of {}", length, file.size());
  }
  NpyHeader header;
  NPUMESH_ASSIGN_OR_RETURN(header.type, DictParser(file.substr(start, length)).Parse());
  header.data_offset = start + length;
  return header;
}

Result<std::string> FormatNpyHeader(const TensorType& type) {
  const std::string_view descr = NpyText(type.dtype);
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr,
                                 ShapeTuple(type.shape));
  const size_t unpadded = kMagic.size() + 4 + dict.size() + 1;
  dict.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  dict += '\n';
  if (descr.empty() || dict.size() > std::numeric_limits<uint16_t>::max()) {
    return Error(Code::kUnsupported, "{} has no .npy form", type.ToString());
  }
  std::string header(kMagic);
  header += {1, 0, static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

}  // namespace npumesh
