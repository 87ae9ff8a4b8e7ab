#include "graph/io/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

namespace npumesh {
namespace {

namespace pbio = google::protobuf::io;

Status CheckSize(size_t size) {
  if (size <= kMaxMessageBytes) return Status();
  return Error(Code::kCorrupt, "{} bytes; a message ends at {}", size, kMaxMessageBytes);
}

// Keeps the first error of a text, with the place a person looks for.
class FirstError final : public pbio::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}:{}: {}", line + 1, column + 1, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Bytes in pieces: those before the one that is read may be given back.
class Pieces final : public pbio::ZeroCopyInputStream {
 public:
  Pieces(std::string_view bytes, const PieceDone& done) : bytes_(bytes), done_(done) {}

  bool Next(const void** data, int* size) override {
    if (done_ && next_ > begin_) done_(bytes_.substr(begin_, next_ - begin_));
    begin_ = next_;
    if (begin_ == bytes_.size()) return false;
    next_ = begin_ + std::min(kPiece, bytes_.size() - begin_);
    *data = bytes_.data() + begin_;
    *size = static_cast<int>(next_ - begin_);
    return true;
  }
  void BackUp(int count) override { next_ -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    const size_t skipped = std::min(static_cast<size_t>(count), bytes_.size() - next_);
    next_ += skipped;
    return skipped == static_cast<size_t>(count);
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(next_); }

 private:
  static constexpr size_t kPiece = size_t{4} << 20;

  const std::string_view bytes_;
  const PieceDone& done_;
  size_t begin_ = 0, next_ = 0;  // of the piece that is read
};

}  // namespace

Status ParseWire(std::string_view bytes, google::protobuf::Message* message,
                 const PieceDone& done) {
  NPUMESH_RETURN_IF_ERROR(CheckSize(bytes.size()));
  const google::protobuf::LogSilencer quiet;
  Pieces pieces(bytes, done);
  pbio::CodedInputStream input(&pieces);
  input.SetTotalBytesLimit(static_cast<int>(kMaxMessageBytes));
  input.SetRecursionLimit(kMaxDepth);
  if (message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage()) return Status();
  return Error(Code::kCorrupt,
               "the {} bytes are not a binary {} (truncated, damaged, or nested deeper than {})",
               bytes.size(), message->GetTypeName(), kMaxDepth);
}

Status ParseText(std::string_view text, google::protobuf::Message* message) {
  NPUMESH_RETURN_IF_ERROR(CheckSize(text.size()));
  const google::protobuf::LogSilencer quiet;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  pbio::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&input, message)) return Status();
  return Error(Code::kCorrupt, "not the text of a {}: {}", message->GetTypeName(), error.text());
}

std::string SerializeWire(const google::protobuf::Message& message) {
  const google::protobuf::LogSilencer quiet;
  std::string bytes;
  bytes.reserve(message.ByteSizeLong());
  {
    pbio::StringOutputStream stream(&bytes);
    pbio::CodedOutputStream output(&stream);
    output.SetSerializationDeterministic(true);
    message.SerializeWithCachedSizes(&output);
  }
  return bytes;
}

std::string PrintText(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetHideUnknownFields(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

std::string Remainder(const google::protobuf::Message& message) {
  return message.ByteSizeLong() == 0 ? std::string() : SerializeWire(message);
}

void RestoreRemainder(const std::string& opaque, google::protobuf::Message* message) {
  const google::protobuf::LogSilencer quiet;
  if (!opaque.empty()) message->ParseFromString(opaque);
}

bool HasUnknownFields(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace npumesh
