#include "runtime/base/text/phrase_book.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using PhraseValues = std::vector<std::string_view>;

constexpr std::string_view kPlaceholder = "{}";
constexpr int kDeepest = 6;               // phrases within phrases
constexpr size_t kLongestMessage = 4096;  // of a line; longer ones are data

std::string Translated(std::string_view text, int depth);

// Fills `values` with what stands for {} in `pattern`, each as short as it can be.
bool MatchesPhrase(std::string_view text, std::string_view pattern, PhraseValues& values) {
  const size_t at = pattern.find(kPlaceholder);
  if (at == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, at))) return false;
  text.remove_prefix(at);
  const std::string_view rest = pattern.substr(at + kPlaceholder.size());
  const std::string_view next = rest.substr(0, rest.find(kPlaceholder));
  if (rest.empty()) {
    values.push_back(text);
    return true;
  }
  for (size_t end = text.find(next); end != text.npos; end = text.find(next, end + 1)) {
    values.push_back(text.substr(0, end));
    if (MatchesPhrase(text.substr(end), rest, values)) return true;
    values.pop_back();
  }
  return false;
}

// "{1} of {0}" with its values, translated themselves.
std::string Filled(std::string_view chinese, const PhraseValues& values, int depth) {
  std::string text;
  for (size_t at = 0; at < chinese.size(); ++at) {
    const size_t close = chinese[at] == '{' ? chinese.find('}', at) : chinese.npos;
    if (close == chinese.npos) {
      text += chinese[at];
      continue;
    }
    const Result<int64_t> number = ParseInt(chinese.substr(at + 1, close - at - 1), 0, 9, "value");
    if (number.ok() && static_cast<size_t>(*number) < values.size()) {
      text += Translated(values[static_cast<size_t>(*number)], depth + 1);
    }
    at = close;
  }
  return text;
}

std::optional<std::string> OfOnePhrase(std::string_view text, int depth) {
  for (const Phrase& phrase : ChinesePhrases()) {
    PhraseValues values;
    if (MatchesPhrase(text, phrase.english, values)) return Filled(phrase.chinese, values, depth);
  }
  return std::nullopt;
}

// Where `separator` stands first outside of quotes; npos: nowhere.
size_t FindOutsideQuotes(std::string_view text, std::string_view separator) {
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (!quoted && text.substr(at).starts_with(separator)) return at;
  }
  return text.npos;
}

// What stands before ": " or after "rank 3 " may be a name and the rest a phrase, or the reverse.
std::optional<std::string> BehindAName(std::string_view text, int depth) {
  const size_t first = FindOutsideQuotes(text, ": ");
  if (first != text.npos) {
    if (const auto head = OfOnePhrase(text.substr(0, first), depth)) {
      return *head + "：" + Translated(text.substr(first + 2), depth + 1);
    }
  }
  for (size_t at = FindOutsideQuotes(text, ": "); at != text.npos;) {
    const std::string_view rest = text.substr(at + 2);
    if (auto found = OfOnePhrase(rest, depth)) return std::string(text.substr(0, at + 2)) + *found;
    const size_t next = FindOutsideQuotes(rest, ": ");
    at = next == rest.npos ? text.npos : at + 2 + next;
  }
  constexpr std::string_view kRank = "rank ";
  const size_t blank = text.starts_with(kRank) ? text.find(' ', kRank.size()) : text.npos;
  if (blank == text.npos) return std::nullopt;
  const auto predicate = OfOnePhrase(text.substr(blank + 1), depth);
  if (!predicate) return std::nullopt;
  return std::string(text.substr(0, blank + 1)) + *predicate;
}

std::string Translated(std::string_view text, int depth) {
  if (depth > kDeepest || text.empty()) return std::string(text);
  const std::string_view trimmed = Trimmed(text);
  if (trimmed.size() < text.size()) {
    const size_t begin = text.find(trimmed);
    return std::string(text.substr(0, begin)) + Translated(trimmed, depth) +
           std::string(text.substr(begin + trimmed.size()));
  }
  constexpr std::pair<std::string_view, std::string_view> kBetween[] = {{"; ", "；"},
                                                                        {", and for ", "，以及 "}};
  for (const auto& [english, chinese] : kBetween) {
    const size_t at = FindOutsideQuotes(text, english);
    if (at == text.npos) continue;
    const std::string_view tail = text.substr(at + english.size());
    const std::string first = Translated(text.substr(0, at), depth);
    const std::string second = Translated(tail, depth);
    const bool same = first == text.substr(0, at) && second == tail;
    return same ? std::string(text) : first + std::string(chinese) + second;
  }
  if (auto whole = OfOnePhrase(text, depth)) return *std::move(whole);
  if (auto rest = BehindAName(text, depth)) return *std::move(rest);
  return std::string(text);
}

bool IsSet(const char* value) {
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string InChinese(std::string_view text) {
  return text.size() > kLongestMessage ? std::string(text) : Translated(text, 0);
}

bool SpeaksChinese(const EnvGetter& get) {
  const char* const ours = get("NPUMESH_LANG");
  if (IsSet(ours)) return std::string_view(ours).starts_with("zh");
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* const value = get(name);
    if (!IsSet(value)) continue;
    const std::string language = LowerCase(value);
    const size_t charset = language.find('.');
    const bool utf8 = charset == language.npos || language.substr(charset).starts_with(".utf");
    return language.starts_with("zh") && utf8;
  }
  return false;
}

std::string InUsersLanguage(std::string_view text) {
  static const bool chinese = SpeaksChinese(secure_getenv);
  if (!chinese) return std::string(text);
  std::string lines;
  for (const std::string_view line : Split(text, "\n")) {
    if (line.data() != text.data()) lines += '\n';
    lines += InChinese(line);
  }
  return lines;
}

}  // namespace npumesh
