#include "runtime/acl/card_limits.h"

#include "runtime/acl/errors.h"

namespace npumesh {

CardFindings* CardLimits::Findings(Status* wrong) {
  std::call_once(read_, [&] {
    const Result<Card> card = Card::FromProcess();
    *wrong = card.status();
    if (card.ok() && *card) findings_ = std::make_unique<CardFindings>(*card);
  });
  return findings_.get();
}

const Chip* CardLimits::chip() {
  Status wrong;
  const CardFindings* const findings = Findings(&wrong);
  return findings == nullptr ? nullptr : findings->card().chip;
}

aclError CardLimits::Find(std::string_view function, CardFinding finding) {
  const aclError code = finding.code;
  const Status found = findings_->Add(std::move(finding));
  return found.ok() ? ACL_SUCCESS : Fail(code, function, "{}", found.message());
}

aclError CardLimits::Permit(std::string_view function, std::string_view fact, aclError code,
                            const std::function<size_t()>& live) {
  Status wrong;
  CardFindings* const findings = Findings(&wrong);
  if (!wrong.ok()) return Fail(ACL_ERROR_INVALID_PARAM, function, "{}", wrong.message());
  if (findings == nullptr) return ACL_SUCCESS;
  const Chip& chip = *findings->card().chip;
  const ChipFact* const most = chip.Find(fact);
  if (most == nullptr) return ACL_SUCCESS;
  const size_t held = live();
  if (held < static_cast<size_t>(*chip.Number(fact))) return ACL_SUCCESS;
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

void CardLimits::NoteCapture(std::string_view function, std::string_view where, aclError code,
                             std::string_view text) {
  if (chip() == nullptr) return;
  CardFinding finding;
  finding.rule = "capture";
  finding.where = where.empty() ? std::string(function) : fmt::format("{} in {}", function, where);
  finding.text = text;
  finding.code = code;
  finding.source = "CANN runtime, error codes";
  static_cast<void>(findings_->Add(std::move(finding)));  // the call fails whatever it says
}

}  // namespace npumesh
