#include "runtime/acl/limits/card_limits.h"

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/leaks.h"

namespace npumesh {

CardFindings* CardLimits::Findings() {
  std::call_once(read_, [&] {
    const Result<Card> card = Card::FromProcess();
    wrong_ = card.status();
    if (card.ok() && *card) findings_ = std::make_unique<CardFindings>(*card);
  });
  return findings_.get();
}

const Chip* CardLimits::chip() {
  const CardFindings* const findings = Findings();
  return findings == nullptr ? nullptr : findings->card().chip;
}

aclError CardLimits::Find(std::string_view function, CardFinding finding) {
  const aclError code = finding.code;
  const Status found = findings_->Add(std::move(finding));
  return found.ok() ? ACL_SUCCESS : Fail(code, function, "{}", found.message());
}

aclError CardLimits::Permit(std::string_view function, std::string_view fact, aclError code,
                            const std::function<size_t()>& live) {
  const Chip* const card = chip();
  if (!wrong_.ok() && !said_.exchange(true)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{}", wrong_.message());
  }
  if (card == nullptr) return ACL_SUCCESS;
  const ChipFact* const most = card->Find(fact);
  if (most == nullptr) return ACL_SUCCESS;
  const size_t held = live();
  if (held < static_cast<size_t>(*card->Number(fact))) return ACL_SUCCESS;
  CardFinding finding;
  finding.rule = fact;
  finding.where = fmt::format("{}", function);
  finding.text = fmt::format(
      "the process holds {} {} already, those of captured graphs included, and "
      "the card has {}",
      held, fact, most->value);
  finding.code = code;
  finding.mend = fmt::format("destroy {} that are done, and graphs", fact);
  finding.source = most->source;
  return Find(function, std::move(finding));
}

void CardLimits::NoteCapture(std::string_view function, aclError code, std::string_view text) {
  CardFindings* const findings = Findings();
  if (findings == nullptr) return;
  const std::string place = Origin::Search().Text();
  CardFinding finding;
  finding.rule = "capture";
  finding.where = place.empty() ? std::string(function) : fmt::format("{} in {}", function, place);
  finding.text = text;
  finding.code = code;
  finding.source = "CANN runtime, error codes";
  static_cast<void>(findings->Add(std::move(finding)));  // the call fails whatever it says
}

}  // namespace npumesh
