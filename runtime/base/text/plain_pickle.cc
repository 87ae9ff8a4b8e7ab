#include "runtime/base/text/plain_pickle.h"

#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostValues = uint64_t{1} << 22;
constexpr uint64_t kMostRepeatedBytes = uint64_t{1} << 28;  // of texts, by references to them
constexpr int kMostLevels = 64;
constexpr int kNewestProtocol = 5;

enum class Kind : uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInteger,
  kFloat,
  kText,
  kList,
  kDictionary,
  kName,     // parts: module, name
  kCall,     // parts: what is called, its arguments, perhaps a state
  kOutside,  // parts: the persistent id
};

// A value; others refer to it by its number, as pickle's memo does.
struct Value {
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double number = 0;
  std::string_view text;        // in the file
  std::vector<uint32_t> parts;  // of a list and others; of a dictionary key, value, key, value ...
};

// Opcodes that name or call something, or make what is not plain.
struct Refusal {
  uint8_t opcode;
  std::string_view name;
};
constexpr std::array<Refusal, 19> kRefused = {{
    {'c', "GLOBAL"},
    {0x93, "STACK_GLOBAL"},
    {'R', "REDUCE"},
    {'b', "BUILD"},
    {'i', "INST"},
    {'o', "OBJ"},
    {0x81, "NEWOBJ"},
    {0x92, "NEWOBJ_EX"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
}};

// Runs the opcodes of plain data, and writes down those of objects if it is asked for them;
// short-lived.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& path, bool objects)
      : bytes_(bytes), path_(path), objects_(objects) {}

  Result<json> Run() {
    while (true) {
      NPUMESH_RETURN_IF_ERROR(Need(1, "an opcode"));
      opcode_at_ = at_;
      const auto opcode = static_cast<uint8_t>(bytes_[at_++]);
      if (opcode == '.') break;
      NPUMESH_RETURN_IF_ERROR(Step(opcode));
      if (values_.size() > kMostValues) return Wrong("more than {} values", kMostValues);
    }
    if (stack_.size() != 1 || !marks_.empty()) {
      return Wrong("the end, with {} values in the place of one", stack_.size());
    }
    json whole;
    NPUMESH_RETURN_IF_ERROR(Copy(stack_[0], 0, whole));
    return whole;
  }

 private:
  template <typename... Args>
  Status Wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return Error(Code::kCorrupt, "{} cannot be read as a pickle of {}: at byte {} {}", path_,
                 objects_ ? "objects" : "plain data", opcode_at_,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  Status Need(uint64_t count, std::string_view what) const {
    if (bytes_.size() - at_ >= count) return Status();
    return Wrong("it ends in the middle of {}; was it copied whole?", what);
  }

  // A little-endian number of `count` bytes. REQUIRES: they are there.
  uint64_t Take(size_t count) {
    uint64_t number = 0;
    std::memcpy(&number, bytes_.data() + at_, count);
    at_ += count;
    return number;
  }

  Result<uint64_t> Number(size_t count) {
    NPUMESH_RETURN_IF_ERROR(Need(count, "a number"));
    return Take(count);
  }

  // A text behind its length of `count` bytes.
  Status PushText(size_t count) {
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t length, Number(count));
    NPUMESH_RETURN_IF_ERROR(Need(length, "a text"));
    Value& value = Push(Kind::kText);
    value.text = bytes_.substr(at_, length);
    at_ += length;
    return Status();
  }

  Value& Push(Kind kind) {
    stack_.push_back(static_cast<uint32_t>(values_.size()));
    Value& value = values_.emplace_back();
    value.kind = kind;
    return value;
  }

  Status PushInteger(int64_t integer) {
    Push(Kind::kInteger).integer = integer;
    return Status();
  }

  // Two's complement of `length` bytes, little-endian.
  Status PushLong(uint64_t length) {
    NPUMESH_RETURN_IF_ERROR(Need(length, "an integer"));
    if (length > 8) return Wrong("an integer of {} bytes", length);
    uint64_t bits = Take(length);
    const bool negative = length > 0 && (bits >> (8 * length - 1) & 1) != 0;
    if (negative && length < 8) bits |= ~uint64_t{0} << (8 * length);
    return PushInteger(static_cast<int64_t>(bits));
  }

  Status PushFloat() {
    NPUMESH_RETURN_IF_ERROR(Need(8, "a float"));
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | Take(1);
    Push(Kind::kFloat).number = std::bit_cast<double>(bits);
    return Status();
  }

  Status Tuple(size_t count) {
    if (stack_.size() - Floor() < count) return Wrong("a tuple of values that are not there");
    std::vector<uint32_t> parts(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    Push(Kind::kList).parts = std::move(parts);
    return Status();
  }

  // The first place of the stack that an opcode may touch: what lies above the last mark.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  // Takes the values above the last mark, and the mark.
  Result<std::vector<uint32_t>> PopToMark() {
    if (marks_.empty()) return Wrong("values up to a mark, and no mark");
    const auto from = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<uint32_t> popped(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return popped;
  }

  // Adds to the value on top, which must be of `kind`.
  Status Add(Kind kind, const std::vector<uint32_t>& parts) {
    if (stack_.size() <= Floor() || values_[stack_.back()].kind != kind) {
      return Wrong("something is put into what is no {}", kind == Kind::kList   ? "list"
                                                          : kind == Kind::kCall ? "object"
                                                                                : "dictionary");
    }
    if (kind == Kind::kDictionary && parts.size() % 2 != 0) return Wrong("a key without a value");
    std::vector<uint32_t>& all = values_[stack_.back()].parts;
    all.insert(all.end(), parts.begin(), parts.end());
    return Status();
  }

  Status AddLast(Kind kind, size_t count) {
    if (stack_.size() - Floor() < count + 1) return Wrong("too few values");
    const std::vector<uint32_t> parts(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return Add(kind, parts);
  }

  Status Remember(uint64_t place) {
    if (stack_.size() <= Floor()) return Wrong("nothing is there to be remembered");
    memo_[place] = stack_.back();
    return Status();
  }

  Status Recall(uint64_t place) {
    const auto it = memo_.find(place);
    if (it == memo_.end()) return Wrong("value {} of the memo, which is not there", place);
    stack_.push_back(it->second);
    return Status();
  }

  Status Refuse(uint8_t opcode) {
    for (const Refusal& refusal : kRefused) {
      if (refusal.opcode != opcode) continue;
      std::string what;
      if (opcode == 'c' || opcode == 'i') {  // two lines behind it: module and name
        const std::string_view rest = bytes_.substr(at_, 200);
        const size_t first = rest.find('\n');
        const size_t second = first == rest.npos ? rest.npos : rest.find('\n', first + 1);
        if (second != rest.npos) {
          what = fmt::format(" of {}.{}", Printable(rest.substr(0, first)),
                             Printable(rest.substr(first + 1, second - first - 1)));
        }
      }
      return Wrong("stands {}{}, which is more than data; nothing of the file was run",
                   refusal.name, what);
    }
    return Wrong("stands opcode 0x{:02x}, which plain data does not need", opcode);
  }

  Status Step(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t protocol, Number(1));
        return protocol <= kNewestProtocol ? Status() : Wrong("stands protocol {}", protocol);
      }
      case 0x95:  // FRAME
        return Number(8).status();
      case '(':
        marks_.push_back(stack_.size());
        return Status();
      case 'N':
        Push(Kind::kNone);
        return Status();
      case 0x88:
        Push(Kind::kTrue);
        return Status();
      case 0x89:
        Push(Kind::kFalse);
        return Status();
      case 'K':
      case 'M': {  // BININT1, BININT2
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t number, Number(opcode == 'K' ? 1 : 2));
        return PushInteger(static_cast<int64_t>(number));
      }
      case 'J': {  // BININT
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t number, Number(4));
        return PushInteger(static_cast<int32_t>(number));
      }
      case 0x8a: {  // LONG1
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t length, Number(1));
        return PushLong(length);
      }
      case 'G':
        return PushFloat();
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
        return PushText(1);
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
        return PushText(4);
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        return PushText(8);
      default:
        return StepOfContainers(opcode);
    }
  }

  Status StepOfContainers(uint8_t opcode) {
    switch (opcode) {
      case ']':
      case ')':  // EMPTY_TUPLE
        Push(Kind::kList);
        return Status();
      case '}':
        Push(Kind::kDictionary);
        return Status();
      case 'l':
      case 't':
      case 'd': {  // LIST, TUPLE, DICT
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, PopToMark());
        const Kind kind = opcode == 'd' ? Kind::kDictionary : Kind::kList;
        Push(kind);
        return Add(kind, parts);
      }
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return Tuple(opcode - 0x84u);
      case 'a':
        return AddLast(Kind::kList, 1);
      case 's':
        return AddLast(Kind::kDictionary, 2);
      case 'e':
      case 'u': {  // APPENDS, SETITEMS
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, PopToMark());
        return Add(opcode == 'e' ? Kind::kList : Kind::kDictionary, parts);
      }
      default:
        return StepOfMemo(opcode);
    }
  }

  Status StepOfMemo(uint8_t opcode) {
    switch (opcode) {
      case 0x94:  // MEMOIZE
        return Remember(memo_.size());
      case 'q':
      case 'r': {  // BINPUT, LONG_BINPUT
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t place, Number(opcode == 'q' ? 1 : 4));
        return Remember(place);
      }
      case 'h':
      case 'j': {  // BINGET, LONG_BINGET
        NPUMESH_ASSIGN_OR_RETURN(const uint64_t place, Number(opcode == 'h' ? 1 : 4));
        return Recall(place);
      }
      default:
        return objects_ ? StepOfObjects(opcode) : Refuse(opcode);
    }
  }

  // The last `count` values of the stack become one.
  Status Gather(Kind kind, size_t count) {
    NPUMESH_RETURN_IF_ERROR(Tuple(count));
    values_[stack_.back()].kind = kind;
    return Status();
  }

  Result<std::string_view> Line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) return Wrong("a line without an end");
    const std::string_view line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  Status StepOfObjects(uint8_t opcode) {
    switch (opcode) {
      case 'c':  // GLOBAL: two lines
        for (int i = 0; i < 2; ++i) {
          NPUMESH_ASSIGN_OR_RETURN(const std::string_view line, Line());
          Push(Kind::kText).text = line;
        }
        return Gather(Kind::kName, 2);
      case 0x93:  // STACK_GLOBAL
        return Gather(Kind::kName, 2);
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        return Gather(Kind::kCall, 2);
      case 'Q':  // BINPERSID
        return Gather(Kind::kOutside, 1);
      case 'b': {  // BUILD
        NPUMESH_RETURN_IF_ERROR(AddLast(Kind::kCall, 1));
        const bool second = values_[stack_.back()].parts.size() > 3;
        return second ? Wrong("an object is given a second state") : Status();
      }
      default:
        return Refuse(opcode);
    }
  }

  // A value may be referred to many times, and contain itself.
  Status Copy(uint32_t number, int level, json& target) {
    if (level > kMostLevels) return Wrong("values lie more than {} deep", kMostLevels);
    if (++copied_ > kMostValues) return Wrong("more than {} values", kMostValues);
    const Value& value = values_[number];
    switch (value.kind) {
      case Kind::kNone:
        return Status();
      case Kind::kFalse:
      case Kind::kTrue:
        target = value.kind == Kind::kTrue;
        return Status();
      case Kind::kInteger:
        target = value.integer;
        return Status();
      case Kind::kFloat:
        target = value.number;
        return Status();
      case Kind::kText:
        copied_bytes_ += value.text.size();
        if (copied_bytes_ > bytes_.size() + kMostRepeatedBytes) {
          return Wrong("its texts are repeated to more than {} bytes", kMostRepeatedBytes);
        }
        target = std::string(value.text);
        return Status();
      case Kind::kList:
        target = json::array();
        for (const uint32_t part : value.parts) {
          NPUMESH_RETURN_IF_ERROR(Copy(part, level + 1, target.emplace_back()));
        }
        return Status();
      case Kind::kName: {
        NPUMESH_ASSIGN_OR_RETURN(const std::string module, TextOf(value.parts[0]));
        NPUMESH_ASSIGN_OR_RETURN(const std::string name, TextOf(value.parts[1]));
        target["name"] = module + "." + name;
        return Status();
      }
      case Kind::kCall:
        NPUMESH_RETURN_IF_ERROR(Copy(value.parts[0], level + 1, target["call"]));
        NPUMESH_RETURN_IF_ERROR(Copy(value.parts[1], level + 1, target["arguments"]));
        return value.parts.size() < 3 ? Status() : Copy(value.parts[2], level + 1, target["state"]);
      case Kind::kOutside:
        return Copy(value.parts[0], level + 1, target["outside"]);
      case Kind::kDictionary:
        break;
    }
    target = json::object();
    for (size_t i = 0; i < value.parts.size(); i += 2) {
      NPUMESH_ASSIGN_OR_RETURN(const std::string key, KeyOf(values_[value.parts[i]]));
      json part;
      NPUMESH_RETURN_IF_ERROR(Copy(value.parts[i + 1], level + 1, part));
      target[key] = std::move(part);
    }
    return Status();
  }

  Result<std::string> TextOf(uint32_t number) const {
    const Value& value = values_[number];
    if (value.kind == Kind::kText) return std::string(value.text);
    return Wrong("a name that is no text");
  }

  Result<std::string> KeyOf(const Value& key) const {
    if (key.kind == Kind::kText) return std::string(key.text);
    if (key.kind == Kind::kInteger) return fmt::format("{}", key.integer);
    return Wrong("a key is neither text nor integer");
  }

  const std::string_view bytes_;
  const std::string& path_;
  const bool objects_;
  uint64_t at_ = 0;
  uint64_t opcode_at_ = 0;
  uint64_t copied_ = 0;
  uint64_t copied_bytes_ = 0;
  std::vector<Value> values_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

// Writes opcodes of protocol 2; short-lived.
class Writer {
 public:
  std::string Run(const json& data) {
    bytes_ = "\x80\x02";
    Put(data);
    return std::move(bytes_) + '.';
  }

 private:
  void Little(uint64_t number, size_t count) {
    bytes_.append(reinterpret_cast<const char*>(&number), count);
  }

  void PutText(const std::string& text) {
    bytes_ += 'X';
    Little(text.size(), 4);
    bytes_ += text;
  }

  void PutInteger(int64_t integer) {
    if (integer == static_cast<int32_t>(integer)) {
      bytes_ += 'J';
      Little(static_cast<uint64_t>(integer), 4);
    } else {
      bytes_ += "\x8a\x08";
      Little(static_cast<uint64_t>(integer), 8);
    }
  }

  void Put(const json& data) {
    switch (data.type()) {
      case json::value_t::boolean:
        bytes_ += data.get<bool>() ? '\x88' : '\x89';
        return;
      case json::value_t::number_integer:
      case json::value_t::number_unsigned:
        return PutInteger(data.get<int64_t>());
      case json::value_t::number_float: {
        bytes_ += 'G';
        const auto bits = std::bit_cast<uint64_t>(data.get<double>());
        for (int shift = 56; shift >= 0; shift -= 8) Little(bits >> shift, 1);
        return;
      }
      case json::value_t::string:
        return PutText(data.get_ref<const std::string&>());
      case json::value_t::array:
        bytes_ += "](";
        for (const json& part : data) Put(part);
        bytes_ += 'e';
        return;
      case json::value_t::object:
        bytes_ += "}(";
        for (const auto& [key, part] : data.items()) {
          PutText(key);
          Put(part);
        }
        bytes_ += 'u';
        return;
      default:
        bytes_ += 'N';
    }
  }

  std::string bytes_;
};

}  // namespace

bool LooksLikePickle(std::string_view bytes) {
  return bytes.size() >= 2 && static_cast<uint8_t>(bytes[0]) == 0x80 && bytes[1] >= 2 &&
         bytes[1] <= kNewestProtocol;
}

Result<json> ReadPlainPickle(std::string_view bytes, const std::string& path) {
  return Machine(bytes, path, /*objects=*/false).Run();
}

Result<json> ReadPickleOfObjects(std::string_view bytes, const std::string& path) {
  return Machine(bytes, path, /*objects=*/true).Run();
}

std::string WritePlainPickle(const json& data) {
  return Writer().Run(data);
}

}  // namespace npumesh
